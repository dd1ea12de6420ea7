/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucs.c - a libucs.so.0 for machines that have no UCX
 *
 * Programs that use UCP are linked to libucs as well, most for ucs_status_string(), and do not start
 * on a machine without UCX. This library has the functions that such programs use, and nothing else of
 * UCX's libucs; ucs_status_string() is Pollux's. pollux-run uses this only if the
 * loader finds no libucs and no libuct.
 * Thread of all functions: any.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include <ucs/config/types.h>
#include <ucs/debug/log_def.h>
#include <ucs/memory/memory_type.h>
#include <ucs/type/thread_mode.h>

/* As UCX names them; programs print them. */
const char *ucs_memory_type_names[] = {
	[UCS_MEMORY_TYPE_HOST] = "host",
	[UCS_MEMORY_TYPE_CUDA] = "cuda",
	[UCS_MEMORY_TYPE_CUDA_MANAGED] = "cuda-managed",
	[UCS_MEMORY_TYPE_ROCM] = "rocm",
	[UCS_MEMORY_TYPE_ROCM_MANAGED] = "rocm-managed",
	[UCS_MEMORY_TYPE_RDMA] = "rdma",
	[UCS_MEMORY_TYPE_ZE_HOST] = "ze-host",
	[UCS_MEMORY_TYPE_ZE_DEVICE] = "ze-device",
	[UCS_MEMORY_TYPE_ZE_MANAGED] = "ze-managed",
	[UCS_MEMORY_TYPE_GAUDI] = "gaudi",
	[UCS_MEMORY_TYPE_LAST] = "unknown",
	NULL,
};

const char *ucs_memory_type_descs[] = {
	[UCS_MEMORY_TYPE_HOST] = "memory of the host",
	[UCS_MEMORY_TYPE_CUDA] = "memory of an NVIDIA device",
	[UCS_MEMORY_TYPE_CUDA_MANAGED] = "managed memory of NVIDIA",
	[UCS_MEMORY_TYPE_ROCM] = "memory of an AMD device",
	[UCS_MEMORY_TYPE_ROCM_MANAGED] = "managed memory of AMD",
	[UCS_MEMORY_TYPE_RDMA] = "memory of an RDMA device",
	[UCS_MEMORY_TYPE_ZE_HOST] = "host memory of Level Zero",
	[UCS_MEMORY_TYPE_ZE_DEVICE] = "device memory of Level Zero",
	[UCS_MEMORY_TYPE_ZE_MANAGED] = "managed memory of Level Zero",
	[UCS_MEMORY_TYPE_GAUDI] = "memory of a Gaudi device",
	[UCS_MEMORY_TYPE_LAST] = "unknown memory",
	NULL,
};

const char *ucs_thread_mode_names[] = {
	[UCS_THREAD_MODE_SINGLE] = "single",
	[UCS_THREAD_MODE_SERIALIZED] = "serialized",
	[UCS_THREAD_MODE_MULTI] = "multi",
	[UCS_THREAD_MODE_LAST] = NULL,
};

const char *ucs_async_mode_names[] = {
	[UCS_ASYNC_MODE_SIGNAL] = "signal",
	[UCS_ASYNC_MODE_THREAD_SPINLOCK] = "thread_spinlock",
	[UCS_ASYNC_MODE_THREAD_MUTEX] = "thread_mutex",
	[UCS_ASYNC_MODE_POLL] = "poll",
	[UCS_ASYNC_MODE_LAST] = NULL,
};

const char *ucs_log_level_names[] = {
	[UCS_LOG_LEVEL_FATAL] = "FATAL",
	[UCS_LOG_LEVEL_ERROR] = "ERROR",
	[UCS_LOG_LEVEL_WARN] = "WARN",
	[UCS_LOG_LEVEL_DIAG] = "DIAG",
	[UCS_LOG_LEVEL_INFO] = "INFO",
	[UCS_LOG_LEVEL_DEBUG] = "DEBUG",
	[UCS_LOG_LEVEL_TRACE] = "TRACE",
	[UCS_LOG_LEVEL_TRACE_REQ] = "REQ",
	[UCS_LOG_LEVEL_TRACE_DATA] = "DATA",
	[UCS_LOG_LEVEL_TRACE_ASYNC] = "ASYNC",
	[UCS_LOG_LEVEL_TRACE_FUNC] = "FUNC",
	[UCS_LOG_LEVEL_TRACE_POLL] = "POLL",
	[UCS_LOG_LEVEL_LAST] = NULL,
	[UCS_LOG_LEVEL_PRINT] = "PRINT",
};

/* Nothing is logged here, so handlers are counted and none is called. */
static _Atomic unsigned n_handlers;

void
ucs_log_push_handler(ucs_log_func_t handler)
{
	if (handler != NULL)
		atomic_fetch_add(&n_handlers, 1);
}

void
ucs_log_pop_handler(void)
{
	unsigned n = atomic_load(&n_handlers);

	while (n > 0 && !atomic_compare_exchange_weak(&n_handlers, &n, n - 1))
		;
}

unsigned
ucs_log_num_handlers(void)
{
	return atomic_load(&n_handlers);
}

ucs_log_func_rc_t
ucs_log_default_handler(const char *file, unsigned line, const char *function,
	ucs_log_level_t level, const ucs_log_component_config_t *comp_conf, const char *format,
	va_list ap)
{
	char text[1024];

	(void)comp_conf;
	vsnprintf(text, sizeof(text), format, ap);
	fprintf(stderr, "%s:%u %s %s %s\n", file, line, function,
		level < UCS_LOG_LEVEL_LAST ? ucs_log_level_names[level] : "PRINT", text);
	return UCS_LOG_FUNC_RC_STOP;
}

/** Write an address as text, "" if it is of no known family. @return str */
const char *ucs_sockaddr_str(const struct sockaddr *addr, char *str, size_t max_size);

const char *
ucs_sockaddr_str(const struct sockaddr *addr, char *str, size_t max_size)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)addr;
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)addr;
	char ip[INET6_ADDRSTRLEN];

	if (max_size == 0)
		return str;
	str[0] = '\0';
	if (addr->sa_family == AF_INET && inet_ntop(AF_INET, &four->sin_addr, ip, sizeof(ip)) != NULL)
		snprintf(str, max_size, "%s:%u", ip, ntohs(four->sin_port));
	if (addr->sa_family == AF_INET6 && inet_ntop(AF_INET6, &six->sin6_addr, ip, sizeof(ip)) != NULL)
		snprintf(str, max_size, "[%s]:%u", ip, ntohs(six->sin6_port));
	return str;
}

/* Of a count of memory that is off in UCX, too, unless somebody asks for it. */
void ucs_memtrack_allocated(void *ptr, size_t size, const char *name);
void ucs_memtrack_releasing(void *ptr);

void
ucs_memtrack_allocated(void *ptr, size_t size, const char *name)
{
	(void)ptr;
	(void)size;
	(void)name;
}

void
ucs_memtrack_releasing(void *ptr)
{
	(void)ptr;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_rma.c - a process puts a text into another's memory, gets it back and counts there
 *
 * The parent allocates memory and hands its address, its key and the address of its
 * worker to the child through a pipe. The child does everything; the parent only
 * looks at its own memory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

#define TEXT_AT	 64 /* bytes from the beginning; the counter stands there */
#define N_COUNTS 1000

#define OK(call)                                                                                   \
	do {                                                                                       \
		ucs_status_t st_ = (call);                                                         \
		if (st_ != UCS_OK) {                                                               \
			fprintf(stderr, "%s: %d\n", #call, st_);                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const char text[] = "written by the child";

struct side {
	ucp_context_h context;
	ucp_worker_h worker;
};

static void
open_side(struct side *s)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64};
	ucp_worker_params_t worker_params = {.field_mask = 0};

	OK(ucp_init(&params, NULL, &s->context));
	OK(ucp_worker_create(s->context, &worker_params, &s->worker));
}

static void
close_side(struct side *s)
{
	ucp_worker_destroy(s->worker);
	ucp_cleanup(s->context);
}

/* A length and so many bytes. */
static void
pipe_write(int fd, const void *data, size_t len)
{
	if (write(fd, &len, sizeof(len)) != sizeof(len) || write(fd, data, len) != (ssize_t)len)
		exit(1);
}

static void *
pipe_read(int fd)
{
	size_t len;
	void *data;

	if (read(fd, &len, sizeof(len)) != sizeof(len))
		exit(1);
	data = malloc(len);
	if (data == NULL || read(fd, data, len) != (ssize_t)len)
		exit(1);
	return data;
}

/* Wait for an operation: NULL is done, a request is asked until it is. */
static void
wait_for(ucp_worker_h worker, ucs_status_ptr_t req)
{
	ucs_status_t status;

	if (!UCS_PTR_IS_PTR(req)) {
		OK(UCS_PTR_RAW_STATUS(req));
		return;
	}
	do
		ucp_worker_progress(worker);
	while ((status = ucp_request_check_status(req)) == UCS_INPROGRESS);
	ucp_request_free(req);
	OK(status);
}

static int
child(int fd)
{
	const ucp_request_param_t plain = {.op_attr_mask = 0};
	ucp_request_param_t word = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_contig(8)};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	uint64_t one = 1, *remote;
	char back[sizeof(text)];
	struct side s;
	ucp_rkey_h rkey;
	void *key;
	ucp_ep_h ep;

	ep_params.address = pipe_read(fd);
	remote = pipe_read(fd);
	key = pipe_read(fd);
	open_side(&s);
	OK(ucp_ep_create(s.worker, &ep_params, &ep));
	OK(ucp_ep_rkey_unpack(ep, key, &rkey));

	wait_for(s.worker, ucp_put_nbx(ep, text, sizeof(text), *remote + TEXT_AT, rkey, &plain));
	/* The buffer is free now; the bytes are there when the flush is over. */
	wait_for(s.worker, ucp_ep_flush_nbx(ep, &plain));
	wait_for(s.worker, ucp_get_nbx(ep, back, sizeof(back), *remote + TEXT_AT, rkey, &plain));
	if (strcmp(back, text) != 0)
		return 1;
	for (int i = 0; i < N_COUNTS; i++)
		wait_for(s.worker, ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1, *remote, rkey,
			&word));
	wait_for(s.worker, ucp_ep_flush_nbx(ep, &plain));

	ucp_rkey_destroy(rkey);
	wait_for(s.worker, ucp_ep_close_nbx(ep, &plain));
	close_side(&s);
	free((void *)(uintptr_t)ep_params.address);
	free(remote);
	free(key);
	return 0;
}

static int
parent(int fd, pid_t pid)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = 4096, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	size_t address_len, key_len;
	ucp_address_t *address;
	uint64_t base, counted;
	struct side s;
	ucp_mem_h mem;
	int status = -1;
	void *key;

	open_side(&s);
	OK(ucp_worker_get_address(s.worker, &address, &address_len));
	OK(ucp_mem_map(s.context, &params, &mem));
	OK(ucp_mem_query(mem, &attr));
	OK(ucp_rkey_pack(s.context, mem, &key, &key_len));
	base = (uintptr_t)attr.address;
	pipe_write(fd, address, address_len);
	pipe_write(fd, &base, sizeof(base));
	pipe_write(fd, key, key_len);

	do /* memory that can't be mapped by the child needs these turns */
		ucp_worker_progress(s.worker);
	while (waitpid(pid, &status, WNOHANG) == 0);
	counted = __atomic_load_n((uint64_t *)attr.address, __ATOMIC_ACQUIRE);
	printf("%llu counts, and a text \"%s\"\n", (unsigned long long)counted,
		(char *)attr.address + TEXT_AT);

	ucp_rkey_buffer_release(key);
	ucp_worker_release_address(s.worker, address);
	OK(ucp_mem_unmap(s.context, mem));
	close_side(&s);
	return status == 0 && counted == N_COUNTS ? 0 : 1;
}

int
main(void)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd) != 0)
		return 1;
	pid = fork(); /* before ucp_init(): each process has its own */
	if (pid < 0)
		return 1;
	return pid == 0 ? child(fd[0]) : parent(fd[1], pid);
}

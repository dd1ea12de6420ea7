/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * spoil.c - preloaded: a library that damages the data of one kind of operation
 *
 * SPOIL names the kind: tag, am, stream, put, get or atomic. What measures must notice.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

/* One byte in the middle; the buffers are the caller's own, and writable. */
static void
spoil(const char *kind, const void *buf, size_t len)
{
	const char *chosen = getenv("SPOIL");

	if (chosen != NULL && strcmp(chosen, kind) == 0 && len >= 8)
		((uint8_t *)(uintptr_t)buf)[len / 2] = 0xee;
}

static void *
real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (f == NULL)
		abort();
	return f;
}

ucs_status_ptr_t
ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	ucs_status_ptr_t (*f)(ucp_ep_h, const void *, size_t, ucp_tag_t,
		const ucp_request_param_t *);

	*(void **)&f = real("ucp_tag_send_nbx");
	spoil("tag", buffer, count);
	return f(ep, buffer, count, tag, param);
}

ucs_status_ptr_t
ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer,
	size_t count, const ucp_request_param_t *param)
{
	ucs_status_ptr_t (*f)(ucp_ep_h, unsigned, const void *, size_t, const void *, size_t,
		const ucp_request_param_t *);

	*(void **)&f = real("ucp_am_send_nbx");
	spoil("am", buffer, count);
	return f(ep, id, header, header_length, buffer, count, param);
}

ucs_status_ptr_t
ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	ucs_status_ptr_t (*f)(ucp_ep_h, const void *, size_t, const ucp_request_param_t *);

	*(void **)&f = real("ucp_stream_send_nbx");
	spoil("stream", buffer, count);
	return f(ep, buffer, count, param);
}

ucs_status_ptr_t
ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
	const ucp_request_param_t *param)
{
	ucs_status_ptr_t (*f)(ucp_ep_h, const void *, size_t, uint64_t, ucp_rkey_h,
		const ucp_request_param_t *);

	*(void **)&f = real("ucp_put_nbx");
	spoil("put", buffer, count);
	return f(ep, buffer, count, remote_addr, rkey, param);
}

/* What comes is not known here: the last byte does not come. */
ucs_status_ptr_t
ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
	const ucp_request_param_t *param)
{
	ucs_status_ptr_t (*f)(ucp_ep_h, void *, size_t, uint64_t, ucp_rkey_h,
		const ucp_request_param_t *);
	const char *chosen = getenv("SPOIL");

	*(void **)&f = real("ucp_get_nbx");
	count -= chosen != NULL && strcmp(chosen, "get") == 0;
	return f(ep, buffer, count, remote_addr, rkey, param);
}

ucs_status_ptr_t
ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count,
	uint64_t remote_addr, ucp_rkey_h rkey, const ucp_request_param_t *param)
{
	ucs_status_ptr_t (*f)(ucp_ep_h, ucp_atomic_op_t, const void *, size_t, uint64_t, ucp_rkey_h,
		const ucp_request_param_t *);

	*(void **)&f = real("ucp_atomic_op_nbx");
	spoil("atomic", buffer, 8);
	return f(ep, opcode, buffer, count, remote_addr, rkey, param);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_rma.c - the UCP back end's other half: puts and gets between the sides' buffers
 *
 * Design notes
 * - A put is complete when its buffer may be reused; only a flush says that the data has
 *   arrived.
 */
#include <stdlib.h>
#include <string.h>

#include "perf_ucp.h"

struct ucp_rma {
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_mem_h local, shown; /* of private buffers; otherwise both are the library's piece */
	ucp_rkey_h rkey;
	uint64_t remote; /* the other side's rbuf */
	ucp_request_param_t param;
};

/* The header of the packed key. */
struct ucp_rma_word {
	uint64_t addr;
	uint64_t len;
};

static struct ucp_rma ucp_rma;

static int
ucp_rma_map(struct perf_side *s, void *buf, ucp_mem_h *memh)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						     UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = buf,
		.length = s->buf_len};
	ucs_status_t status = ucp_mem_map(perf_ucp_context(s), &params, memh);

	return status == UCS_OK ? 0 : perf_fail(s, "ucp_mem_map: %s", ucs_status_string(status));
}

static int
ucp_rma_send_key(struct perf_side *s)
{
	struct ucp_rma_word word = {.addr = (uintptr_t)s->rbuf, .len = s->buf_len};
	ucs_status_t status;
	size_t len;
	void *key;
	char *text;
	int rc;

	status = ucp_rkey_pack(perf_ucp_context(s), ucp_rma.shown, &key, &len);
	if (status != UCS_OK)
		return perf_fail(s, "ucp_rkey_pack: %s", ucs_status_string(status));
	text = malloc(sizeof(word) + len);
	if (text != NULL) {
		memcpy(text, &word, sizeof(word));
		memcpy(text + sizeof(word), key, len);
	}
	ucp_rkey_buffer_release(key);
	if (text == NULL)
		return perf_fail(s, "out of memory");
	rc = chan_send(s->ctl_fd, text, sizeof(word) + len, s->o->timeout);
	free(text);
	return rc == 0 ? 0 : perf_fail(s, "the memory keys could not be exchanged");
}

static int
ucp_rma_take_key(struct perf_side *s)
{
	struct ucp_rma_word word;
	ucs_status_t status;
	size_t len;
	void *data;

	if (chan_recv(s, s->ctl_fd, &data, &len, s->o->timeout) != 0)
		return perf_fail(s, "the memory keys could not be exchanged");
	if (len > sizeof(word))
		memcpy(&word, data, sizeof(word));
	if (len <= sizeof(word) || word.len != s->buf_len) {
		free(data);
		return perf_fail(s, "the other side sent no memory key");
	}
	ucp_rma.remote = word.addr;
	status = ucp_ep_rkey_unpack(ucp_rma.ep, (char *)data + sizeof(word), &ucp_rma.rkey);
	free(data);
	return status == UCS_OK ? 0
				: perf_fail(s, "ucp_ep_rkey_unpack: %s", ucs_status_string(status));
}

int
perf_ucp_rma_open(struct perf_side *s)
{
	struct ucp_rma *r = &ucp_rma;

	perf_ucp_handles(s, &r->worker, &r->ep);
	r->local = r->shown = perf_ucp_memh(s);
	if (r->shown == NULL && (ucp_rma_map(s, s->sbuf, &r->local) != 0 ||
					ucp_rma_map(s, s->rbuf, &r->shown) != 0))
		return -1;
	r->param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_MEMH;
	r->param.cb.send = perf_ucp_done;
	r->param.memh = r->local;
	return ucp_rma_send_key(s) != 0 ? -1 : ucp_rma_take_key(s);
}

int
perf_ucp_rma(struct perf_side *s, struct perf_io *io, bool write, size_t at, size_t len)
{
	struct ucp_rma *r = &ucp_rma;
	ucs_status_ptr_t p;

	io->done = 0;
	io->status = 0;
	r->param.user_data = io;
	p = write ? ucp_put_nbx(r->ep, s->sbuf + at, len, r->remote + at, r->rkey, &r->param)
		  : ucp_get_nbx(r->ep, s->sbuf + at, len, r->remote + at, r->rkey, &r->param);
	return perf_ucp_posted(s, write ? "ucp_put_nbx" : "ucp_get_nbx", io, p);
}

int
perf_ucp_rma_flush(struct perf_side *s)
{
	static const ucp_request_param_t param;

	return perf_ucp_finish(s, "ucp_ep_flush_nbx", ucp_ep_flush_nbx(ucp_rma.ep, &param));
}

int
perf_ucp_rma_close(struct perf_side *s)
{
	ucp_rkey_destroy(ucp_rma.rkey);
	if (perf_ucp_memh(s) != NULL)
		return 0;
	ucp_mem_unmap(perf_ucp_context(s), ucp_rma.local);
	ucp_mem_unmap(perf_ucp_context(s), ucp_rma.shown);
	return 0;
}

ucp_rkey_h
perf_ucp_remote(uint64_t *addr)
{
	*addr = ucp_rma.remote;
	return ucp_rma.rkey;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * payload.c - --datatype: the buffer, count and datatype that a UCP call gets for a message
 *
 * Design notes
 * - A message has the bytes of the buffer in their order, so that the loops and their verification
 *   need not know of datatypes. The pieces of an iov lie one after the other; the callbacks of a
 *   generic type copy.
 * - The library uses an iov until its operation is complete. So each slot of the window has one
 *   for a send and one for a receive, which are made with the buffers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf_ucp.h"

static struct {
	size_t size;   /* of a message */
	size_t slot;   /* bytes of a slot of the buffers */
	unsigned n;    /* pieces of a message */
	ucp_dt_iov_t *iov[2]; /* by direction and slot */
	ucp_datatype_t generic;
} payload;

static void *
payload_start_pack(void *context, const void *buffer, size_t count)
{
	(void)context;
	(void)count;
	return (void *)(uintptr_t)buffer;
}

static void *
payload_start_unpack(void *context, void *buffer, size_t count)
{
	(void)context;
	(void)count;
	return buffer;
}

static size_t
payload_packed_size(void *state)
{
	(void)state;
	return payload.size;
}

static size_t
payload_pack(void *state, size_t offset, void *dest, size_t max_length)
{
	size_t n = offset < payload.size ? payload.size - offset : 0;

	n = n < max_length ? n : max_length;
	memcpy(dest, (const uint8_t *)state + offset, n);
	return n;
}

static ucs_status_t
payload_unpack(void *state, size_t offset, const void *src, size_t length)
{
	if (offset > payload.size || length > payload.size - offset)
		return UCS_ERR_MESSAGE_TRUNCATED;
	memcpy((uint8_t *)state + offset, src, length);
	return UCS_OK;
}

static void
payload_finish(void *state)
{
	(void)state;
}

/* Cut a message into pieces of nearly the same length, none of them empty. */
static void
payload_cut(ucp_dt_iov_t *v, uint8_t *buf)
{
	size_t at = 0;

	for (unsigned i = 0; i < payload.n; i++) {
		size_t end = payload.size * (i + 1) / payload.n;

		v[i] = (ucp_dt_iov_t){.buffer = buf + at, .length = end - at};
		at = end;
	}
}

static int
payload_iovs(struct perf_side *s, unsigned pieces)
{
	size_t slots = s->buf_len / payload.slot;

	payload.n = (unsigned)RTE_MIN(payload.size, pieces);
	for (int dir = 0; dir < 2; dir++) {
		payload.iov[dir] = calloc(slots * payload.n + 1, sizeof(ucp_dt_iov_t));
		if (payload.iov[dir] == NULL)
			return perf_fail(s, "no memory for %zu iovs of %u pieces", slots, payload.n);
		for (size_t i = 0; i < slots; i++)
			payload_cut(payload.iov[dir] + i * payload.n, (dir ? s->rbuf : s->sbuf) + i * payload.slot);
	}
	return 0;
}

int
perf_payload_open(struct perf_side *s)
{
	static const ucp_generic_dt_ops_t ops = {.start_pack = payload_start_pack,
		.start_unpack = payload_start_unpack, .packed_size = payload_packed_size,
		.pack = payload_pack, .unpack = payload_unpack, .finish = payload_finish};
	ucs_status_t status = UCS_OK;

	payload.size = s->size;
	payload.slot = perf_slot_len(s->size);
	if (s->o->pieces > 0)
		return payload_iovs(s, s->o->pieces);
	if (s->o->generic)
		status = ucp_dt_create_generic(&ops, NULL, &payload.generic);
	return status == UCS_OK ? 0 : perf_fail(s, "ucp_dt_create_generic: %s", ucs_status_string(status));
}

void
perf_payload_close(struct perf_side *s)
{
	for (int dir = 0; dir < 2; dir++) {
		free(payload.iov[dir]);
		payload.iov[dir] = NULL;
	}
	if (s->o->generic)
		ucp_dt_destroy(payload.generic);
}

void
perf_payload_type(struct perf_side *s, bool send, const void **buf, size_t *count, ucp_request_param_t *p)
{
	size_t slot = (size_t)((const uint8_t *)*buf - (send ? s->sbuf : s->rbuf)) / payload.slot;

	p->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
	p->op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMH;
	p->datatype = payload.generic;
	if (s->o->generic)
		return;
	p->datatype = ucp_dt_make_iov();
	*buf = payload.iov[!send] + slot * payload.n;
	*count = payload.n;
}

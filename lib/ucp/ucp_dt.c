/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_dt.c - datatypes: contiguous, iov, generic; memory that is not the host's
 *
 * Design notes
 * The functions of a generic type are the application's and run in its thread only. The call that
 * posts a send packs it into a buffer of ours, and the end of a receive unpacks it from one. The
 * reasons:
 * - with a reactor other threads move the data;
 * - what may not fit one fragment is cut anywhere, but pack() may stop short of the length given, at
 *   a whole element (MPICH's does), and unpack() may refuse a part of one;
 * - a function may fork, as any callback (plx_fork_callbacks): a child that returns into a driver
 *   would go on to write its parent's message.
 */
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ucp_int.h"

/* A handle is the address of this with the class in its low bits. */
struct dt_generic {
	ucp_generic_dt_ops_t ops;
	void *context;
};

/* One operation's iov; the entry where the last copy ended is remembered. */
struct dt_iov {
	struct plx_dt dt;
	const ucp_dt_iov_t *v;
	size_t n;
	size_t i;
	uint64_t i_offset; /* of the bytes at the start of entry i */
};

/* One operation's buffer in memory that is not the host's. */
struct dt_memory {
	struct plx_dt dt;
	uint8_t *at;
};

/* One operation's generic buffer. */
struct dt_state {
	struct plx_dt dt;
	const struct dt_generic *type;
	void *state; /* belongs to the application */
	uint64_t got; /* bytes that have arrived at bounce */
	bool recv;
	ucs_status_t status; /* the first error of pack or unpack */
	alignas(max_align_t) uint8_t bounce[]; /* its functions may expect what malloc() gives */
};

static struct dt_generic *
dt_of(ucp_datatype_t datatype)
{
	return (void *)(uintptr_t)(datatype & ~(ucp_datatype_t)UCP_DATATYPE_CLASS_MASK);
}

/* Make the piece with the byte at offset the present one; behind the last byte there is none. @return bytes before it */
static uint64_t
iov_seek(struct dt_iov *d, uint64_t offset)
{
	if (offset < d->i_offset) {
		d->i = 0;
		d->i_offset = 0;
	}
	while (d->i < d->n && offset - d->i_offset >= d->v[d->i].length)
		d->i_offset += d->v[d->i++].length;
	return offset - d->i_offset;
}

/* Copy each part of [offset, offset + len). */
static void
iov_walk(struct dt_iov *d, uint64_t offset, uint8_t *other, uint64_t len, bool pack)
{
	while (len > 0) {
		uint64_t skip = iov_seek(d, offset), n;

		if (d->i == d->n)
			return;
		n = RTE_MIN(len, d->v[d->i].length - skip);
		if (pack)
			plx_copy(other, (char *)d->v[d->i].buffer + skip, n);
		else
			plx_copy((char *)d->v[d->i].buffer + skip, other, n);
		other += n;
		offset += n;
		len -= n;
	}
}

static void
iov_pack(void *dt, uint64_t offset, void *to, uint64_t len)
{
	iov_walk(dt, offset, to, len, true);
}

static void
iov_unpack(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len)
{
	iov_walk((struct dt_iov *)dt, offset, (uint8_t *)(uintptr_t)from, len, false);
}

static unsigned
iov_pieces(struct plx_dt *dt, uint64_t offset, uint64_t len, struct plx_wire_piece *out, unsigned max)
{
	struct dt_iov *d = (struct dt_iov *)dt;
	uint64_t skip = iov_seek(d, offset), here;
	const ucp_dt_iov_t *v = &d->v[d->i];
	unsigned n = 0;

	for (; n < max && len > 0; v++, skip = 0) {
		here = RTE_MIN(len, v->length - skip);
		if (here == 0)
			continue;
		out[n++] = (struct plx_wire_piece){(uintptr_t)v->buffer + skip, here};
		len -= here;
	}
	return n;
}

static int
dt_free(struct plx_dt *dt, int status)
{
	free(dt);
	return status;
}

bool
ucp_iov_gather(const ucp_dt_iov_t *v, size_t n, uint8_t *bytes, size_t *len)
{
	uint8_t *to = bytes;

	for (size_t i = 0; i < n; i++) {
		if (v[i].length > (size_t)(bytes + UCP_GATHER_MAX - to))
			return false;
		if (v[i].length == 0) /* its buffer may be NULL */
			continue;
		plx_copy(to, v[i].buffer, v[i].length);
		to += v[i].length;
	}
	*len = to - bytes;
	return true;
}

static ucs_status_t
iov_open(const ucp_dt_iov_t *v, size_t n, struct ucp_buf *buf)
{
	struct dt_iov *d;

	buf->len = 0;
	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(buf->len, v[i].length, &buf->len))
			return UCS_ERR_INVALID_PARAM;
	buf->addr = n != 0 ? v[0].buffer : NULL;
	buf->dt = NULL;
	if (n <= 1)
		return UCS_OK;
	d = malloc(sizeof(*d));
	if (d == NULL)
		return UCS_ERR_NO_MEMORY;
	*d = (struct dt_iov){.dt = {iov_pack, iov_unpack, dt_free, 0, iov_pieces}, .v = v, .n = n};
	buf->dt = &d->dt;
	return UCS_OK;
}

static void *
call_start(const struct dt_generic *type, void *buffer, size_t count, bool recv)
{
	void *state;

	plx_fork_callbacks++;
	state = recv ? type->ops.start_unpack(type->context, buffer, count)
		     : type->ops.start_pack(type->context, buffer, count);
	plx_fork_callbacks--;
	return state;
}

static size_t
call_size(const struct dt_generic *type, void *state)
{
	size_t size;

	plx_fork_callbacks++;
	size = type->ops.packed_size(state);
	plx_fork_callbacks--;
	return size;
}

static size_t
call_pack(const struct dt_state *d, uint64_t offset, void *to, uint64_t len)
{
	size_t n;

	plx_fork_callbacks++;
	n = d->type->ops.pack(d->state, offset, to, len);
	plx_fork_callbacks--;
	return n;
}

static ucs_status_t
call_unpack(const struct dt_state *d, uint64_t offset, const void *from, uint64_t len)
{
	ucs_status_t status;

	plx_fork_callbacks++;
	status = d->type->ops.unpack(d->state, offset, from, len);
	plx_fork_callbacks--;
	return status;
}

static void
call_finish(const struct dt_generic *type, void *state)
{
	plx_fork_callbacks++;
	type->ops.finish(state);
	plx_fork_callbacks--;
}

static void
generic_pack(struct dt_state *d, uint64_t len)
{
	uint64_t done = 0;

	while (done < len) {
		size_t n = call_pack(d, done, d->bounce + done, len - done);

		if (n == 0 || n > len - done) { /* it promised more: the operation fails */
			memset(d->bounce + done, 0, len - done);
			d->status = UCS_ERR_IO_ERROR;
			return;
		}
		done += n;
	}
}

static void
generic_unpack(struct dt_state *d)
{
	ucs_status_t status;

	if (d->got == 0)
		return;
	status = call_unpack(d, 0, d->bounce, d->got);
	if (d->status == UCS_OK)
		d->status = status;
}

static void
bounce_pack(void *dt, uint64_t offset, void *to, uint64_t len)
{
	const struct dt_state *d = dt;

	plx_copy(to, d->bounce + offset, len);
}

static void
bounce_unpack(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len)
{
	struct dt_state *d = (struct dt_state *)dt;

	plx_copy(d->bounce + offset, from, len);
	d->got = RTE_MAX(d->got, offset + len);
}

static int
generic_finish(struct plx_dt *dt, int status)
{
	struct dt_state *d = (struct dt_state *)dt;

	if (d->recv)
		generic_unpack(d);
	if (status == 0 && d->status != UCS_OK)
		status = ucp_status_errno(d->status);
	call_finish(d->type, d->state);
	free(d);
	return status;
}

static ucs_status_t
generic_open(const struct dt_generic *type, void *buffer, size_t count, bool recv, struct ucp_buf *buf)
{
	void *state = call_start(type, buffer, count, recv);
	size_t len = call_size(type, state);
	struct dt_state *d = len <= SIZE_MAX - sizeof(*d) ? malloc(sizeof(*d) + len) : NULL;

	if (d == NULL) {
		call_finish(type, state);
		return UCS_ERR_NO_MEMORY;
	}
	*d = (struct dt_state){.dt = {bounce_pack, bounce_unpack, generic_finish, 0, NULL}, .type = type,
		.state = state, .recv = recv};
	*buf = (struct ucp_buf){buffer, len, &d->dt};
	if (!recv)
		generic_pack(d, len);
	return UCS_OK;
}

ucs_status_t
ucp_buf_open(ucp_datatype_t dt, const void *buffer, size_t count, bool recv, struct ucp_buf *buf)
{
	void *addr = (void *)(uintptr_t)buffer;

	switch (dt & UCP_DATATYPE_CLASS_MASK) {
	case UCP_DATATYPE_CONTIG:
		buf->addr = addr;
		buf->dt = NULL;
		if (__builtin_mul_overflow(dt >> UCP_DATATYPE_SHIFT, count, &buf->len))
			return UCS_ERR_INVALID_PARAM;
		return UCS_OK;
	case UCP_DATATYPE_IOV:
		return iov_open(addr, count, buf);
	case UCP_DATATYPE_GENERIC:
		return generic_open(dt_of(dt), addr, count, recv, buf);
	default:
		return UCS_ERR_INVALID_PARAM;
	}
}

static void
memory_pack(void *dt, uint64_t offset, void *to, uint64_t len)
{
	const struct dt_memory *d = dt;

	plx_copy(to, d->at + offset, len);
}

static void
memory_unpack(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len)
{
	struct dt_memory *d = (struct dt_memory *)dt;

	plx_copy(d->at + offset, from, len);
}

/*
 * A device that takes such memory uses it where it lies; for all others processors copy it. What is not contiguous
 * they copy in any case.
 */
ucs_status_t
ucp_buf_open_odd(ucp_worker_h w, const ucp_request_param_t *param, const void *buffer, size_t count,
	bool recv, struct ucp_buf *buf)
{
	bool typed = (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0;
	ucp_datatype_t dt = typed ? param->datatype : ucp_dt_make_contig(1);
	ucs_status_t status = ucp_buf_open(dt, buffer, count, recv, buf);
	struct dt_memory *d;

	if (status != UCS_OK || buf->dt != NULL || buf->len == 0 || !ucp_param_is_device(w, param))
		return status;
	d = malloc(sizeof(*d));
	if (d == NULL)
		return UCS_ERR_NO_MEMORY;
	*d = (struct dt_memory){.dt = {memory_pack, memory_unpack, dt_free, (uint8_t)param->memory_type, NULL},
		.at = buf->addr};
	buf->dt = &d->dt;
	return UCS_OK;
}

ucs_status_t
ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p)
{
	struct dt_generic *dt = aligned_alloc(16, (sizeof(*dt) + 15) / 16 * 16);

	if (dt == NULL)
		return UCS_ERR_NO_MEMORY;
	dt->ops = *ops;
	dt->context = context;
	*datatype_p = (uintptr_t)dt | UCP_DATATYPE_GENERIC;
	return UCS_OK;
}

void
ucp_dt_destroy(ucp_datatype_t datatype)
{
	if ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC)
		free(dt_of(datatype));
}

static ucs_status_t
generic_size(const struct dt_generic *type, const void *buffer, size_t count, size_t *size)
{
	/* const in the API, as the program's function takes it */
	void *state = call_start(type, (void *)(uintptr_t)buffer, count, false);

	*size = call_size(type, state);
	call_finish(type, state);
	return UCS_OK;
}

ucs_status_t
ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t *attr)
{
	size_t count = attr->field_mask & UCP_DATATYPE_ATTR_FIELD_COUNT ? attr->count : 1;
	bool generic = (datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC;
	bool contig = (datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
	struct ucp_buf buf = {.len = 0};
	ucs_status_t status;

	if ((attr->field_mask & UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE) == 0)
		return UCS_OK;
	if (!contig && (attr->field_mask & UCP_DATATYPE_ATTR_FIELD_BUFFER) == 0)
		return UCS_ERR_INVALID_PARAM;
	if (generic)
		return generic_size(dt_of(datatype), attr->buffer, count, &attr->packed_size);
	status = ucp_buf_open(datatype, contig ? NULL : attr->buffer, count, false, &buf);
	if (status != UCS_OK)
		return status;
	attr->packed_size = buf.len;
	return ucp_buf_drop(&buf, UCS_OK);
}

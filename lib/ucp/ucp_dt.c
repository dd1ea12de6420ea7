/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_dt.c - datatypes
 */
#include <stdlib.h>

#include "ucp_int.h"

/* A handle is the address of this with the class in its low bits. */
struct dt_generic {
	ucp_generic_dt_ops_t ops;
	void *context;
};

ucs_status_t
ucp_dt_length(ucp_datatype_t dt, size_t count, size_t *len)
{
	switch (dt & UCP_DATATYPE_CLASS_MASK) {
	case UCP_DATATYPE_CONTIG:
		if (__builtin_mul_overflow(dt >> UCP_DATATYPE_SHIFT, count, len))
			return UCS_ERR_INVALID_PARAM;
		return UCS_OK;
	case UCP_DATATYPE_IOV:
	case UCP_DATATYPE_GENERIC:
		return UCS_ERR_UNSUPPORTED; /* messages are contiguous for now */
	default:
		return UCS_ERR_INVALID_PARAM;
	}
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
		free((void *)(uintptr_t)(datatype & ~(ucp_datatype_t)UCP_DATATYPE_CLASS_MASK));
}

static size_t
iov_length(const ucp_dt_iov_t *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].length;
	return len;
}

static size_t
generic_length(ucp_datatype_t datatype, const void *buffer, size_t count)
{
	const struct dt_generic *dt =
		(void *)(uintptr_t)(datatype & ~(ucp_datatype_t)UCP_DATATYPE_CLASS_MASK);
	void *state = dt->ops.start_pack(dt->context, buffer, count);
	size_t len = dt->ops.packed_size(state);

	dt->ops.finish(state);
	return len;
}

ucs_status_t
ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t *attr)
{
	size_t count = attr->field_mask & UCP_DATATYPE_ATTR_FIELD_COUNT ? attr->count : 1;
	bool has_buffer = (attr->field_mask & UCP_DATATYPE_ATTR_FIELD_BUFFER) != 0;

	if ((attr->field_mask & UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE) == 0)
		return UCS_OK;
	switch (datatype & UCP_DATATYPE_CLASS_MASK) {
	case UCP_DATATYPE_CONTIG:
		return ucp_dt_length(datatype, count, &attr->packed_size);
	case UCP_DATATYPE_IOV:
		if (!has_buffer)
			return UCS_ERR_INVALID_PARAM;
		attr->packed_size = iov_length(attr->buffer, count);
		return UCS_OK;
	case UCP_DATATYPE_GENERIC:
		if (!has_buffer)
			return UCS_ERR_INVALID_PARAM;
		attr->packed_size = generic_length(datatype, attr->buffer, count);
		return UCS_OK;
	default:
		return UCS_ERR_INVALID_PARAM;
	}
}

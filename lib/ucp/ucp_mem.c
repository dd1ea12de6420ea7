/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_mem.c - registered and allocated memory
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "plx_mem.h"
#include "ucp_int.h"

struct ucp_mem {
	void *address;
	size_t length;
	struct plx_seg seg; /* base NULL: the memory is the application's */
};

#define PAGE 4096u

static ucs_status_t
mem_allocate(ucp_context_h context, ucp_mem_h m, void *address, unsigned flags)
{
	bool huge = plx_conf_u64(&context->conf, PLX_CONF_SHM_HUGE) == PLX_HUGE_AUTO &&
		m->length >= (1u << 20);
	bool fixed = (flags & UCP_MEM_MAP_FIXED) != 0;
	int rc;

	if (fixed && (address == NULL || (uintptr_t)address % PAGE != 0))
		return UCS_ERR_INVALID_PARAM;
	if (fixed)
		huge = false; /* the place may not fit huge pages */
	rc = plx_seg_create(&m->seg, fixed ? address : NULL, m->length, huge);
	if (rc != 0)
		return ucp_status(rc);
	m->address = m->seg.base;
	m->length = m->seg.len;
	return UCS_OK;
}

ucs_status_t
ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *p, ucp_mem_h *memh_p)
{
	unsigned flags = p->field_mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS ? p->flags : 0;
	void *address = p->field_mask & UCP_MEM_MAP_PARAM_FIELD_ADDRESS ? p->address : NULL;
	ucs_status_t status = UCS_OK;
	ucp_mem_h m;

	if (p->field_mask & UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER)
		return UCS_ERR_UNSUPPORTED;
	if ((p->field_mask & UCP_MEM_MAP_PARAM_FIELD_LENGTH) == 0)
		return UCS_ERR_INVALID_PARAM;
	if ((flags & UCP_MEM_MAP_FIXED) && !(flags & UCP_MEM_MAP_ALLOCATE))
		return UCS_ERR_INVALID_PARAM;
	if ((flags & UCP_MEM_MAP_NONBLOCK) && (flags & UCP_MEM_MAP_LOCK))
		return UCS_ERR_INVALID_PARAM;
	if (p->length != 0 && address == NULL && !(flags & UCP_MEM_MAP_ALLOCATE))
		return UCS_ERR_INVALID_PARAM;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return UCS_ERR_NO_MEMORY;
	m->length = p->length;
	if (p->length != 0) {
		m->address = address;
		if (flags & UCP_MEM_MAP_ALLOCATE)
			status = mem_allocate(context, m, address, flags);
	}
	if (status != UCS_OK) {
		free(m);
		return status;
	}
	*memh_p = m;
	return UCS_OK;
}

ucs_status_t
ucp_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
	(void)context;
	if (memh == NULL)
		return UCS_OK;
	plx_seg_destroy(&memh->seg);
	free(memh);
	return UCS_OK;
}

ucs_status_t
ucp_mem_query(const ucp_mem_h memh, ucp_mem_attr_t *attr)
{
	if (attr->field_mask & UCP_MEM_ATTR_FIELD_ADDRESS)
		attr->address = memh->address;
	if (attr->field_mask & UCP_MEM_ATTR_FIELD_LENGTH)
		attr->length = memh->length;
	if (attr->field_mask & UCP_MEM_ATTR_FIELD_MEM_TYPE)
		attr->mem_type = UCS_MEMORY_TYPE_HOST;
	return UCS_OK;
}

ucs_status_t
ucp_mem_advise(ucp_context_h context, ucp_mem_h memh, ucp_mem_advise_params_t *p)
{
	const uint64_t all = UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS | UCP_MEM_ADVISE_PARAM_FIELD_LENGTH |
		UCP_MEM_ADVISE_PARAM_FIELD_ADVICE;
	char *from = p->address, *base = memh->address;
	uintptr_t start;

	(void)context;
	if ((p->field_mask & all) != all)
		return UCS_ERR_INVALID_PARAM;
	if (from < base || p->length > memh->length ||
		(size_t)(from - base) > memh->length - p->length)
		return UCS_ERR_INVALID_PARAM;
	if (p->advice != UCP_MADV_WILLNEED || p->length == 0)
		return UCS_OK;
	start = (uintptr_t)from / PAGE * PAGE;
	/* A hint: that the kernel does not take it harms nothing. */
	(void)madvise((void *)start, (uintptr_t)from + p->length - start, MADV_WILLNEED);
	return UCS_OK;
}

void
ucp_mem_print_info(const char *mem_size, ucp_context_h context, FILE *stream)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			UCP_MEM_MAP_PARAM_FIELD_FLAGS, .flags = UCP_MEM_MAP_ALLOCATE};
	char *end;
	ucs_status_t status;
	ucp_mem_h memh;

	params.length = strtoull(mem_size, &end, 0);
	switch (*end) {
	case 'k':
	case 'K':
		params.length <<= 10;
		break;
	case 'm':
	case 'M':
		params.length <<= 20;
		break;
	case 'g':
	case 'G':
		params.length <<= 30;
		break;
	default:
		break;
	}
	status = ucp_mem_map(context, &params, &memh);
	if (status != UCS_OK) {
		fprintf(stream, "# no memory of %s bytes\n", mem_size);
		return;
	}
	fprintf(stream, "#\n# UCP memory\n#\n#   address %p length %zu pages %s\n#\n", memh->address,
		memh->length, memh->seg.huge ? "huge" : "small");
	ucp_mem_unmap(context, memh);
}

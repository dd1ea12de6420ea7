/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_mem.c - registered, allocated and imported memory
 *
 * Design notes
 * - Allocated memory is a segment that peers of this machine map; their puts, gets and atomics
 *   are loads and stores. The application's own memory stays where it is, and peers use the
 *   device or messages. Both are registered with the device if it needs keys.
 * - Atomics of a device and of processors may not be atomic to each other. So the executing side
 *   of those of 8 bytes is decided here, once for all receivers of a key: the device if all peers
 *   use it.
 * - A region of length 0 is in no table: its key unpacks and gives no access.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ucp_int.h"
#include "ucp_mem.h"

#define PAGE	 4096u
#define HUGE_MIN (1u << 20) /* shorter memory is not worth a huge page */
#define ATOMICS	 (PLX_REGION_CPU64 | PLX_REGION_DEV64)
#define RIGHTS	 (PLX_REGION_READ | PLX_REGION_WRITE | ATOMICS)

static ucs_status_t
mem_allocate(ucp_context_h context, ucp_mem_h m, void *address, unsigned flags)
{
	int setting = plx_conf_find_role(PLX_CONF_ROLE_HUGE, 0);
	bool huge = setting >= 0 && plx_conf_u64(&context->conf, setting) == PLX_CONF_AUTO &&
		m->length >= HUGE_MIN;
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

/* Accepts memory of the application. */
static void
mem_free(ucp_mem_h m)
{
	plx_window_remove(&m->seg);
	plx_seg_destroy(&m->seg);
}

static uint8_t
rights_of(const ucp_mem_map_params_t *p)
{
	uint8_t rights;

	if ((p->field_mask & UCP_MEM_MAP_PARAM_FIELD_PROT) == 0)
		return RIGHTS;
	rights = ATOMICS;
	if (p->prot & UCP_MEM_MAP_PROT_REMOTE_READ)
		rights |= PLX_REGION_READ;
	if (p->prot & UCP_MEM_MAP_PROT_REMOTE_WRITE)
		rights |= PLX_REGION_WRITE;
	return rights;
}

/* A region that another context packed for us, of the same memory. */
static ucs_status_t
mem_import(ucp_mem_h m, const void *blob)
{
	struct plx_wire_export wire;
	struct plx_seg_name name;
	int rc = ucp_mem_export_fetch(blob, &wire);

	if (rc != 0)
		return ucp_status(rc);
	name = (struct plx_seg_name){.proc = {.host = wire.host, .id = wire.proc}, .id = wire.id,
		.len = wire.len};
	rc = plx_seg_open(&name, wire.rights & PLX_REGION_WRITE, &m->seg);
	if (rc != 0)
		return rc == -EHOSTUNREACH || rc == -ESRCH || rc == -ECONNRESET ? UCS_ERR_UNREACHABLE : ucp_status(rc);
	m->address = m->seg.base;
	m->length = m->seg.len;
	m->rights = wire.rights & RIGHTS;
	m->read_only = (wire.rights & PLX_REGION_WRITE) == 0;
	return UCS_OK;
}

/* Valid combinations of flags. */
static ucs_status_t
check(const ucp_mem_map_params_t *p, unsigned flags, const void *address)
{
	if ((p->field_mask & UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER) != 0)
		return p->exported_memh_buffer == NULL || (flags & UCP_MEM_MAP_ALLOCATE)
			? UCS_ERR_INVALID_PARAM : UCS_OK;
	if ((p->field_mask & UCP_MEM_MAP_PARAM_FIELD_LENGTH) == 0)
		return UCS_ERR_INVALID_PARAM;
	if ((flags & UCP_MEM_MAP_FIXED) &&
		(!(flags & UCP_MEM_MAP_ALLOCATE) || (uintptr_t)address % PAGE != 0))
		return UCS_ERR_INVALID_PARAM;
	if ((flags & UCP_MEM_MAP_NONBLOCK) && (flags & UCP_MEM_MAP_LOCK))
		return UCS_ERR_INVALID_PARAM;
	if (p->length != 0 && address == NULL && !(flags & UCP_MEM_MAP_ALLOCATE))
		return UCS_ERR_INVALID_PARAM;
	if (p->length > UINTPTR_MAX - (uintptr_t)address)
		return UCS_ERR_INVALID_PARAM;
	return UCS_OK;
}

/* The side that executes atomics, of those that may. @return one or both of ATOMICS, or 0 */
static uint8_t
atomics_of(ucp_context_h context, const ucp_mem_h m)
{
	uint64_t who = plx_conf_u64(&context->conf, PLX_CONF_RMA_ATOMICS);
	const struct plx_dev_region *d = &m->dev;
	uint8_t may = m->rights & ATOMICS;

	if (d->dev == NULL || d->atomics == PLX_DEV_ATOMICS_NONE || who == PLX_ATOMICS_CPU ||
		(may & PLX_REGION_DEV64) == 0)
		return may & PLX_REGION_CPU64;
	if (d->atomics == PLX_DEV_ATOMICS_ALL)
		return may;
	if (who == PLX_ATOMICS_DEVICE || d->alone || (may & PLX_REGION_CPU64) == 0)
		return PLX_REGION_DEV64;
	return PLX_REGION_CPU64;
}

/* With the device, if it accepts it: otherwise everything uses messages. */
static void
mem_register(ucp_context_h context, ucp_mem_h m)
{
	uint8_t rights = 0;

	if (m->rights & PLX_REGION_READ)
		rights |= PLX_DEV_MEM_READ;
	if (m->rights & PLX_REGION_WRITE)
		rights |= PLX_DEV_MEM_WRITE | PLX_DEV_MEM_ATOMIC;
	if (rights != 0 && plx_conf_u64(&context->conf, PLX_CONF_RMA_SCHEME) != PLX_RMA_MESSAGE)
		(void)plx_dev_region_open(&context->conf, m->address, m->length, rights, &m->dev);
	m->rights = rights == 0 ? 0 : (m->rights & ~ATOMICS) | atomics_of(context, m);
}

static ucs_status_t
mem_fill(ucp_context_h context, ucp_mem_h m, const ucp_mem_map_params_t *p, unsigned flags,
	void *address)
{
	ucs_status_t status = UCS_OK;
	int rc;

	m->rights = rights_of(p);
	if (p->field_mask & UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER) {
		status = mem_import(m, p->exported_memh_buffer);
	} else if (p->length != 0) {
		m->address = address;
		m->length = p->length;
		if (flags & UCP_MEM_MAP_ALLOCATE)
			status = mem_allocate(context, m, address, flags);
	}
	if (status != UCS_OK || m->length == 0)
		return status;
	if (flags & UCP_MEM_MAP_LOCK) /* as far as the limits of the process go */
		(void)mlock(m->address, m->length);
	mem_register(context, m);
	rc = plx_region_add((uintptr_t)m->address, m->length, m->rights, &m->key);
	if (rc != 0) {
		plx_dev_region_close(&m->dev);
		mem_free(m);
	} else if (m->seg.base != NULL && !m->read_only) {
		plx_window_add(&m->seg, m->key.token); /* buffers there are copied through the
		                                        * mapping as well */
	}
	return ucp_status(rc);
}

ucs_status_t
ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *p, ucp_mem_h *memh_p)
{
	unsigned flags = p->field_mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS ? p->flags : 0;
	void *address = p->field_mask & UCP_MEM_MAP_PARAM_FIELD_ADDRESS ? p->address : NULL;
	ucs_status_t status = check(p, flags, address);
	ucp_mem_h m;

	if (status == UCS_OK && (p->field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE))
		status = ucp_memory_type_check(context, (unsigned)p->memory_type);
	if (status != UCS_OK)
		return status;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return UCS_ERR_NO_MEMORY;
	m->forks = plx_forks;
	status = mem_fill(context, m, p, flags, address);
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
	if (memh == NULL || memh->forks != plx_forks)
		return UCS_OK;
	plx_dev_region_close(&memh->dev);
	plx_region_remove(&memh->key);
	mem_free(memh);
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
	uintptr_t from, base = (uintptr_t)memh->address, start;

	(void)context;
	if ((p->field_mask & all) != all)
		return UCS_ERR_INVALID_PARAM;
	from = (uintptr_t)p->address;
	if (from < base || p->length > memh->length || from - base > memh->length - p->length)
		return UCS_ERR_INVALID_PARAM;
	if (p->advice != UCP_MADV_WILLNEED || p->length == 0)
		return UCS_OK;
	start = from / PAGE * PAGE;
	/* A hint: a refusal is harmless. */
	(void)madvise((void *)start, from + p->length - start, MADV_WILLNEED);
	return UCS_OK;
}

/* Bytes of "64", "4k", "1m,..." and so on; memory types follow a comma. */
static size_t
size_of(const char *text)
{
	char *end;
	size_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'k':
	case 'K':
		return n << 10;
	case 'm':
	case 'M':
		return n << 20;
	case 'g':
	case 'G':
		return n << 30;
	default:
		return n;
	}
}

void
ucp_mem_print_info(const char *mem_size, ucp_context_h context, FILE *stream)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			UCP_MEM_MAP_PARAM_FIELD_FLAGS, .flags = UCP_MEM_MAP_ALLOCATE,
			.length = size_of(mem_size)};
	ucs_status_t status;
	ucp_mem_h memh;

	status = ucp_mem_map(context, &params, &memh);
	if (status != UCS_OK) {
		fprintf(stream, "# no memory of %s bytes\n", mem_size);
		return;
	}
	fprintf(stream, "#\n# UCP memory\n#\n#   address %p length %zu pages %s\n#\n", memh->address,
		memh->length, memh->seg.huge ? "huge" : "small");
	ucp_mem_unmap(context, memh);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_rkey.c - regions as bytes for others, and the keys they make of them
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucp_int.h"
#include "ucp_mem.h"

static void
pack_keys(const struct plx_dev_region *r, struct plx_wire_rkey *wire)
{
	_Static_assert(PLX_WIRE_RKEY_KEYS == PLX_DEV_PORTS, "all of them");
	for (unsigned i = 0; i < r->n_keys; i++)
		wire->devs[wire->n_devs++] = (struct plx_wire_rkey_dev){
			(uint32_t)r->keys[i].mem.key, r->keys[i].port};
}

/* Peers that map it may write to it, so read-only memory is not offered. */
static uint32_t
window_of(const ucp_mem_h m)
{
	_Static_assert(PLX_WINDOW_MAX <= PLX_WIRE_WINDOW_MAX, "all of them");
	if (m->seg.base == NULL || m->rights == 0 || m->read_only)
		return 0;
	return plx_window_add(&m->seg, m->key.token);
}

ucs_status_t
ucp_rkey_pack(ucp_context_h context, ucp_mem_h m, void **rkey_buffer_p, size_t *size_p)
{
	struct plx_wire_rkey wire = {.index = m->key.index, .window = (uint16_t)window_of(m),
		.rights = m->rights, .token = m->key.token, .base = (uintptr_t)m->address,
		.len = m->length};
	struct plx_proc self;
	void *buf;
	int rc;

	_Static_assert(PLX_REGION_MAX <= PLX_WIRE_INDEX_MAX + 1, "all of them");
	(void)context;
	pack_keys(&m->dev, &wire);
	rc = plx_proc_self(&self);
	if (rc != 0)
		return ucp_status(rc);
	wire.proc = plx_proc_id(&self) & PLX_WIRE_PROC_MASK;
	buf = malloc(PLX_WIRE_RKEY_MAX);
	if (buf == NULL)
		return UCS_ERR_NO_MEMORY;
	*size_p = plx_wire_rkey_pack(&wire, buf);
	*rkey_buffer_p = buf;
	return UCS_OK;
}

static ucs_status_t
pack_export(ucp_mem_h m, void **buffer_p, size_t *size_p)
{
	struct plx_wire_export wire = {.rights = m->rights};
	struct plx_seg_name name;
	void *buf;
	int rc;

	if (m->seg.base == NULL)
		return UCS_ERR_UNSUPPORTED; /* memory of the application is in no segment */
	rc = plx_seg_name(&m->seg, &name);
	if (rc != 0)
		return ucp_status(rc);
	wire.host = name.proc.host;
	wire.proc = name.proc.id;
	wire.id = name.id;
	wire.len = name.len;
	plx_wire_export_seal(&wire);
	buf = malloc(sizeof(wire));
	if (buf == NULL)
		return UCS_ERR_NO_MEMORY;
	memcpy(buf, &wire, sizeof(wire));
	*size_p = sizeof(wire);
	*buffer_p = buf;
	return UCS_OK;
}

void
ucp_rkey_buffer_release(void *rkey_buffer)
{
	free(rkey_buffer);
}

ucs_status_t
ucp_memh_pack(ucp_mem_h memh, const ucp_memh_pack_params_t *params, void **buffer_p,
	size_t *buffer_size_p)
{
	uint64_t flags = params->field_mask & UCP_MEMH_PACK_PARAM_FIELD_FLAGS ? params->flags : 0;

	return flags & UCP_MEMH_PACK_FLAG_EXPORT ? pack_export(memh, buffer_p, buffer_size_p)
						 : ucp_rkey_pack(NULL, memh, buffer_p, buffer_size_p);
}

void
ucp_memh_buffer_release(void *buffer, const ucp_memh_buffer_release_params_t *params)
{
	(void)params;
	free(buffer);
}

int
ucp_mem_export_fetch(const void *blob, struct plx_wire_export *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = plx_proc_fetch(blob, out, PLX_WIRE_EXPORT_HEAD);
	if (rc == 0 && out->bytes == sizeof(*out))
		rc = plx_proc_fetch(blob, out, sizeof(*out));
	return rc == 0 && plx_wire_export_check(out) == 0 ? 0 : -EINVAL;
}

/* Operations that the features of the context permit. */
static uint8_t
can_by_features(uint64_t features)
{
	uint8_t can = 0;

	if (features & UCP_FEATURE_RMA)
		can |= PLX_RKEY_PUT | PLX_RKEY_GET;
	if (features & UCP_FEATURE_AMO32)
		can |= PLX_RKEY_POST32 | PLX_RKEY_FETCH32;
	if (features & UCP_FEATURE_AMO64)
		can |= PLX_RKEY_POST64 | PLX_RKEY_FETCH64;
	return can;
}

ucs_status_t
ucp_ep_rkey_unpack(ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p)
{
	ucp_context_h c = ep->worker->context;
	struct plx_rkey *k;
	int rc;

	rc = plx_worker_rkey_unpack(&ep->user, rkey_buffer, can_by_features(c->features),
		plx_conf_u64(&c->conf, PLX_CONF_RMA_SCHEME) == PLX_RMA_AUTO, &k);
	if (rc != 0)
		return ucp_status(rc);
	*rkey_p = (ucp_rkey_h)(void *)k;
	return UCS_OK;
}

ucs_status_t
ucp_rkey_ptr(ucp_rkey_h rkey, uint64_t raddr, void **addr_p)
{
	const struct plx_rkey *k = ucp_rkey_core(rkey);

	if (!k->mapped)
		return UCS_ERR_UNREACHABLE;
	if (raddr < k->base || raddr - k->base >= k->len)
		return UCS_ERR_INVALID_ADDR;
	*addr_p = plx_rkey_here(k, raddr);
	return UCS_OK;
}

ucs_status_t
ucp_rkey_compare(ucp_worker_h worker, ucp_rkey_h rkey1, ucp_rkey_h rkey2,
	const ucp_rkey_compare_params_t *params, int *result)
{
	(void)worker;
	if (params == NULL || params->field_mask != 0 || result == NULL)
		return UCS_ERR_INVALID_PARAM;
	*result = plx_rkey_compare(ucp_rkey_core(rkey1), ucp_rkey_core(rkey2));
	return UCS_OK;
}

void
ucp_rkey_destroy(ucp_rkey_h rkey)
{
	plx_rkey_destroy((struct plx_rkey *)(void *)rkey);
}

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
pack_keys(const struct plx_dev_region *r, struct plx_wire_mem *wire)
{
	_Static_assert(PLX_WIRE_MEM_KEYS == PLX_DEV_PORTS, "all of them");
	for (unsigned i = 0; i < r->n_keys; i++) {
		struct plx_wire_mem_key k = {r->keys[i].mem.key, r->keys[i].domain};

		if (i == 0)
			wire->key = k;
		else
			wire->more[wire->n_more++] = k;
	}
}

static ucs_status_t
pack(ucp_mem_h m, uint8_t kind, void **buffer_p, size_t *size_p)
{
	struct plx_wire_mem wire = {.kind = kind, .rights = m->rights, .index = m->key.index,
		.gen = m->key.gen, .token = m->key.token, .base = (uintptr_t)m->address,
		.len = m->length};
	struct plx_seg_name name;
	struct plx_proc self;
	void *buf;
	int rc;

	pack_keys(&m->dev, &wire);
	if (m->seg.base != NULL) {
		rc = plx_seg_name(&m->seg, &name);
		if (rc != 0)
			return ucp_status(rc);
		self = name.proc;
		wire.host = self.host;
		wire.start = self.start;
		wire.pid = self.pid;
		wire.fd = name.fd;
		wire.ino = name.ino;
		wire.seg_len = name.len;
	} else {
		plx_proc_self(&self);
	}
	wire.proc = plx_proc_id(&self);
	buf = malloc(PLX_WIRE_MEM_MAX);
	if (buf == NULL)
		return UCS_ERR_NO_MEMORY;
	*size_p = plx_wire_mem_pack(&wire, m->seg.base != NULL, buf);
	*buffer_p = buf;
	return UCS_OK;
}

ucs_status_t
ucp_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p, size_t *size_p)
{
	(void)context;
	return pack(memh, PLX_WIRE_MEM_RKEY, rkey_buffer_p, size_p);
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

	if ((flags & UCP_MEMH_PACK_FLAG_EXPORT) == 0)
		return pack(memh, PLX_WIRE_MEM_RKEY, buffer_p, buffer_size_p);
	if (memh->seg.base == NULL)
		return UCS_ERR_UNSUPPORTED; /* the application's memory is in no segment */
	return pack(memh, PLX_WIRE_MEM_EXPORT, buffer_p, buffer_size_p);
}

void
ucp_memh_buffer_release(void *buffer, const ucp_memh_buffer_release_params_t *params)
{
	(void)params;
	free(buffer);
}

int
ucp_mem_blob_fetch(const void *blob, uint8_t kind, struct plx_wire_mem *out)
{
	return plx_rkey_blob_fetch(blob, kind, out) == 1 ? 0 : -EINVAL;
}

/* What the features of the context let a program do. */
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
	/* Of a client that is not connected yet nobody knows the process. */
	const struct plx_peer *peer = ep->user.ep->stub ? NULL : ep->user.ep->peer;
	struct plx_rkey *k;
	int rc;

	rc = plx_rkey_unpack(peer, rkey_buffer, can_by_features(c->features),
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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rkey.c - keys of peers' regions: unpack, map, compare
 */
#include <errno.h>
#include <stdlib.h>

#include "plx_rma.h"

static uint8_t
can_by_rights(uint32_t rights)
{
	uint8_t can = 0;

	if (rights & PLX_REGION_WRITE)
		can |= PLX_RKEY_PUT | PLX_RKEY_POST32 | PLX_RKEY_POST64;
	if (rights & PLX_REGION_READ)
		can |= PLX_RKEY_GET;
	if ((rights & PLX_REGION_WRITE) && (rights & PLX_REGION_READ))
		can |= PLX_RKEY_FETCH32 | PLX_RKEY_FETCH64;
	if ((rights & (PLX_REGION_CPU64 | PLX_REGION_DEV64)) == 0)
		can &= ~(PLX_RKEY_POST64 | PLX_RKEY_FETCH64);
	return can;
}

int
plx_rkey_blob_fetch(const void *buf, uint8_t kind, struct plx_wire_mem *m)
{
	uint8_t copy[PLX_WIRE_MEM_MAX] = {0};
	bool mapped = false;
	int rc = plx_proc_fetch(buf, copy, PLX_WIRE_MEM_HEAD);

	if (rc == 0 && plx_wire_mem_len(copy) > sizeof(copy))
		rc = -EINVAL;
	if (rc == 0)
		rc = plx_proc_fetch(buf, copy, plx_wire_mem_len(copy));
	if (rc == 0)
		rc = plx_wire_mem_unpack(copy, m, &mapped);
	return rc == 0 && m->kind == kind ? mapped : -EINVAL;
}

/* Memory of this process is there already; of others, what has a segment can be mapped. */
static void
rkey_map(struct plx_rkey *k, uint64_t peer_proc, const struct plx_wire_mem *m, bool mapped)
{
	struct plx_seg_name name = {.proc = {m->host, m->start, m->pid}, .fd = m->fd, .ino = m->ino,
		.len = m->seg_len};
	struct plx_proc self;

	if (peer_proc == 0 || k->len == 0)
		return;
	plx_proc_self(&self);
	if (m->proc == plx_proc_id(&self)) {
		k->mapped = true;
	} else if (mapped && m->rights != 0 && plx_proc_id(&name.proc) == m->proc &&
		plx_map_get(&name, m->rights & PLX_REGION_WRITE, &k->map) == 0) {
		k->mapped = true;
		k->delta = (intptr_t)((uintptr_t)plx_map_base(k->map) - m->base);
	}
	if (k->mapped)
		k->now = k->can;
	if (!k->cpu64)
		k->now &= ~(PLX_RKEY_POST64 | PLX_RKEY_FETCH64);
}

/* That of the port by which the peer is reached; the first if it is reached by none of them. */
static const struct plx_wire_mem_key *
key_of(const struct plx_wire_mem *m, const struct plx_peer *peer)
{
	for (uint32_t i = 0; peer != NULL && i < m->n_more; i++)
		if (m->more[i].domain == peer->domain)
			return &m->more[i];
	return &m->key;
}

int
plx_rkey_unpack(const struct plx_peer *peer, const void *buf, uint8_t can, bool map,
	struct plx_rkey **out)
{
	struct plx_wire_mem m;
	struct plx_rkey *k;
	uint64_t proc = peer != NULL ? peer->proc : 0;
	int mapped = plx_rkey_blob_fetch(buf, PLX_WIRE_MEM_RKEY, &m);

	if (mapped < 0)
		return mapped;
	if (proc != 0 && m.proc != proc)
		return -EHOSTUNREACH;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return -ENOMEM;
	k->base = m.base;
	k->len = m.len;
	k->can = can & can_by_rights(m.rights);
	k->key = (struct plx_region_key){m.index, m.gen, m.token};
	k->proc = m.proc;
	k->dev_key = key_of(&m, peer)->key;
	k->domain = key_of(&m, peer)->domain;
	k->cpu64 = (m.rights & PLX_REGION_CPU64) != 0;
	k->dev64 = (m.rights & PLX_REGION_DEV64) != 0;
	if (map)
		rkey_map(k, proc, &m, mapped != 0);
	*out = k;
	return 0;
}

void
plx_rkey_destroy(struct plx_rkey *k)
{
	if (k == NULL)
		return;
	plx_map_put(k->map);
	free(k);
}

static int
order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int
plx_rkey_compare(const struct plx_rkey *a, const struct plx_rkey *b)
{
	int c = order(a->proc, b->proc);

	c = c != 0 ? c : order(a->key.index, b->key.index);
	c = c != 0 ? c : order(a->key.gen, b->key.gen);
	c = c != 0 ? c : order(a->key.token, b->key.token);
	c = c != 0 ? c : order(a->base, b->base);
	return c != 0 ? c : order(a->len, b->len);
}

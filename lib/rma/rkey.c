/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rkey.c - keys of peers' regions: unpack, map, compare
 */
#include <errno.h>
#include <stdlib.h>

#include "plx_rma.h"
#include "plx_window.h"

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

/* It comes without its length: read as many bytes as it says. */
static int
blob_fetch(const void *buf, struct plx_wire_rkey *m)
{
	uint8_t copy[PLX_WIRE_RKEY_MAX] = {0};
	int rc = plx_proc_fetch(buf, copy, PLX_WIRE_RKEY_HEAD);

	if (rc == 0)
		rc = plx_proc_fetch(buf, copy, plx_wire_rkey_len(copy));
	if (rc == 0)
		rc = plx_wire_rkey_unpack(copy, m);
	return rc == 0 ? 0 : -EINVAL;
}

/* By our own table: a key's or an address's claim proves nothing. */
static bool
is_own(const struct plx_rkey *k, uint8_t rights)
{
	if (plx_region_hold(&k->key, k->base, k->len, rights & (PLX_REGION_READ | PLX_REGION_WRITE)) != 0)
		return false;
	plx_region_drop(&k->key);
	return true;
}

/* Memory of this process is mapped already; that of others can be mapped if it has a window. */
static void
rkey_map(struct plx_rkey *k, const struct plx_peer *peer, const struct plx_wire_rkey *m)
{
	struct plx_seg_name table;
	struct plx_proc self;

	if (k->len == 0 || plx_proc_self(&self) != 0)
		return; /* by messages, as its owner is unknown */
	if (peer->proc == plx_proc_id(&self)) {
		k->mapped = is_own(k, m->rights);
	} else if (m->window != 0 && m->rights != 0 && plx_peer_windows(peer, &table) == 0 &&
		plx_window_map(&table, m->window, m->token, m->base, m->len,
			m->rights & PLX_REGION_WRITE, &k->map) == 0) {
		k->mapped = true;
		k->delta = (intptr_t)((uintptr_t)plx_map_base(k->map) - m->base);
	}
	if (k->mapped)
		k->now = k->can;
	if (!k->cpu64)
		k->now &= ~(PLX_RKEY_POST64 | PLX_RKEY_FETCH64);
}

/* The key of the port that reaches the peer; the first if none of them does. */
static void
dev_key_of(struct plx_rkey *k, const struct plx_wire_rkey *m, const struct plx_peer *peer)
{
	for (uint32_t i = m->n_devs; i-- > 0;) {
		k->dev_key = PLX_DEV_KEY_SET | m->devs[i].key;
		k->domain = plx_dev_domain(m->proc, m->devs[i].port);
		if (peer != NULL && k->domain == peer->domain)
			break;
	}
}

int
plx_rkey_unpack(const struct plx_peer *peer, const void *buf, uint8_t can, bool map,
	struct plx_rkey **out)
{
	struct plx_wire_rkey m;
	struct plx_rkey *k;
	uint64_t proc = peer != NULL ? peer->proc : 0;
	int rc = blob_fetch(buf, &m);

	if (rc != 0)
		return rc;
	if (proc != 0 && m.proc != (proc & PLX_WIRE_PROC_MASK))
		return -EHOSTUNREACH;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return -ENOMEM;
	k->base = m.base;
	k->len = m.len;
	k->can = can & can_by_rights(m.rights);
	k->key = (struct plx_region_key){m.index, m.token};
	k->proc = m.proc;
	dev_key_of(k, &m, peer);
	k->cpu64 = (m.rights & PLX_REGION_CPU64) != 0;
	k->dev64 = (m.rights & PLX_REGION_DEV64) != 0;
	if (map && proc != 0)
		rkey_map(k, peer, &m);
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
rkey_order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int
plx_rkey_compare(const struct plx_rkey *a, const struct plx_rkey *b)
{
	int c = rkey_order(a->proc, b->proc);

	c = c != 0 ? c : rkey_order(a->key.index, b->key.index);
	c = c != 0 ? c : rkey_order(a->key.token, b->key.token);
	c = c != 0 ? c : rkey_order(a->base, b->base);
	return c != 0 ? c : rkey_order(a->len, b->len);
}

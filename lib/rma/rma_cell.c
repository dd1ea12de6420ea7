/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_cell.c - cells of shared areas: their owners, and the target's part of an offer
 *
 * Design notes
 * - A cell belongs to one initiator until that leaves. When its process has ended, the target frees
 *   the cell.
 * - The target keeps no state of an offer, and checks all of it: it is input.
 */
#include <errno.h>
#include <string.h>

#include "plx_copy.h"
#include "plx_meet.h"
#include "plx_rma_cell.h"
#include "rma_int.h"

struct plx_rma_cell *
rma_cell_of(const struct plx_ep *ep)
{
	return plx_rma_cell_at(plx_peer_shared(ep->peer), ep->peer->q->shared_len, plx_rma_ep(ep)->cell - 1u);
}

void
plx_rma_ep_leave(struct plx_ep *ep)
{
	struct plx_rma_cell *c = plx_rma_ep(ep)->cell != 0 ? rma_cell_of(ep) : NULL;

	plx_rma_ep(ep)->cell = 0;
	if (c == NULL)
		return;
	(void)plx_rma_cell_turns(c, PLX_RMA_CELL_OFFERED, PLX_RMA_CELL_IDLE);
	if (plx_rma_cell_turns(c, PLX_RMA_CELL_TAKEN, PLX_RMA_CELL_LEFT))
		return;
	/* pairs with the acquire in cell_get() */
	atomic_store_explicit(&c->owner, 0, memory_order_release);
}

static void
cell_free(struct plx_rma_cell *c)
{
	atomic_store_explicit(&c->state, PLX_RMA_CELL_IDLE, memory_order_relaxed);
	/* pairs with the acquire in cell_get() */
	atomic_store_explicit(&c->owner, 0, memory_order_release);
}

void
rma_cells_sweep(const struct plx_queue *q)
{
	struct plx_rma_cell *c;

	for (uint64_t i = 0; (c = plx_rma_cell_at(q->shared, q->shared_len, i)) != NULL; i++) {
		uint64_t owner = atomic_load_explicit(&c->owner, memory_order_relaxed);

		if (owner != 0 && plx_meet_gone(owner))
			cell_free(c);
	}
}

static int
cell_move(struct plx_rma *r, struct plx_rma_cell *c)
{
	struct plx_rma_cell_op h;
	struct plx_region_key key;
	void *here;
	int rc;

	memcpy(&h, &c->op, sizeof(h)); /* once: the initiator may still write */
	key = (struct plx_region_key){h.index, h.token ^ r->domain};
	here = (void *)(uintptr_t)h.addr;
	if (h.len > PLX_RMA_CELL_DATA || (h.kind != PLX_RMA_PUT && h.kind != PLX_RMA_GET))
		return -EINVAL;
	rc = plx_region_hold(&key, h.addr, h.len, h.kind == PLX_RMA_PUT ? PLX_REGION_WRITE : PLX_REGION_READ);
	if (rc != 0)
		return rc;
	if (h.kind == PLX_RMA_PUT) {
		plx_copy(here, c->data, h.len);
		PLX_STAT_INC(r->stat.puts);
	} else {
		plx_copy(c->data, here, h.len);
		PLX_STAT_INC(r->stat.gets);
	}
	plx_region_drop(&key);
	return 0;
}

void
plx_rma_on_offer(struct plx_rma *r, const struct plx_queue *q, const struct plx_wire_offer *h)
{
	struct plx_rma_cell *c = plx_rma_cell_at(q->shared, q->shared_len, h->cell);

	if (c == NULL) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	if (!plx_rma_cell_turns(c, PLX_RMA_CELL_OFFERED, PLX_RMA_CELL_TAKEN))
		return; /* it was taken back */
	c->err = cell_move(r, c);
	if (c->err != 0)
		PLX_STAT_INC(r->stat.refused);
	if (!plx_rma_cell_turns(c, PLX_RMA_CELL_TAKEN, PLX_RMA_CELL_DONE))
		cell_free(c);
}

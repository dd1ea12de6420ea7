/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_cell.c - cells of shared areas and their owners
 *
 * Design notes
 * - A cell belongs to one initiator until that leaves. When its process has ended, the target frees
 *   the cell.
 */
#include <errno.h>
#include <string.h>

#include "plx_meet.h"
#include "plx_rma_cell.h"
#include "rma_int.h"

struct plx_rma_cell *
rma_cell_of(const struct plx_ep *ep)
{
	return plx_rma_cell_at(plx_peer_shared(ep->peer), ep->peer->q->shared_len, plx_rma_ep(ep)->cell - 1u);
}

/* The initiator has given up, or has ended, while both sides copy. */
static void
share_stop(struct plx_rma_cell *c)
{
	if (atomic_load_explicit(&c->state, memory_order_relaxed) == PLX_RMA_CELL_SHARED) {
		(void)atomic_fetch_or_explicit(&c->share.next, PLX_RMA_SHARE_STOPPED, memory_order_relaxed);
		atomic_store_explicit(&c->state, PLX_RMA_CELL_IDLE, memory_order_relaxed);
	}
}

void
plx_rma_ep_leave(struct plx_ep *ep)
{
	struct plx_rma_cell *c = plx_rma_ep(ep)->cell != 0 ? rma_cell_of(ep) : NULL;

	plx_rma_ep(ep)->cell = 0;
	if (c == NULL)
		return;
	share_stop(c);
	(void)plx_rma_cell_recall(c, ++plx_rma_ep(ep)->gen);
	/* pairs with the acquire in cell_get() */
	atomic_store_explicit(&c->owner, 0, memory_order_release);
}

void
rma_cell_free(struct plx_rma_cell *c)
{
	share_stop(c);
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
			rma_cell_free(c);
	}
}

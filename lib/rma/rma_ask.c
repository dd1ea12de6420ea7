/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_ask.c - whether an ep asks its target for anything, and by which cell
 *
 * Design notes
 * - Whether a target polls is known from what it did last: each time that something went without it, it is asked for
 *   nothing in the next steps, in twice as many as before.
 */
#include "plx_proc.h"
#include "rma_int.h"

/* Have a cell of the target's. @return NULL: all are in use; then ask again after many operations */
static struct plx_rma_cell *
cell_get(const struct plx_ep *ep)
{
	void *shared = plx_peer_shared(ep->peer);
	struct plx_rma_ep *e = plx_rma_ep(ep);
	struct plx_rma_cell *c;
	struct plx_proc self;

	e->skip = RMA_SKIP_MAX;
	if (plx_proc_self(&self) != 0)
		return NULL;
	for (uint64_t i = 0; (c = plx_rma_cell_at(shared, ep->peer->q->shared_len, i)) != NULL; i++) {
		uint64_t owner = 0;

		if (atomic_load_explicit(&c->owner, memory_order_relaxed) != 0 ||
			!atomic_compare_exchange_strong_explicit(&c->owner, &owner, plx_proc_id(&self),
				memory_order_acq_rel, memory_order_relaxed))
			continue;
		e->gen = (uint32_t)(atomic_load_explicit(&c->claims, memory_order_relaxed) >> 32) + 1;
		(void)plx_rma_cell_recall(c, e->gen);
		e->number = e->claimed = 0;
		e->cell = i + 1;
		e->skip = 0;
		return c;
	}
	return NULL;
}

bool
rma_may_ask(const struct plx_ep *ep)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);

	if ((ep->peer->caps & PLX_DEV_SHARED) == 0 || e->skip != 0 || !plx_ep_open(ep))
		return false;
	return e->cell != 0 || cell_get(ep) != NULL;
}

struct plx_rma_cell *
rma_cell_to_ask(const struct plx_ep *ep)
{
	return rma_may_ask(ep) ? rma_cell_of(ep) : NULL;
}

void
rma_answered(struct plx_ep *ep, bool did)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);

	e->unanswered = did ? 0 : RTE_MIN(2 * e->unanswered + 1, RMA_SKIP_MAX);
	e->skip = e->unanswered;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_burst.c - operations that wait for each other, and the call of the device that moves them
 */
#include <rte_cycles.h>

#include "rma_int.h"

_Static_assert(PLX_RMA_BURST <= PLX_RMA_BLOCKS_N, "what goes together can be shared");

/* @return of what a call of the device, or a batch, has room for; of PLX_RMA_LATE_N */
static unsigned
late_weight(const struct plx_rma_ep *e, uint64_t len)
{
	if (!e->batched)
		return 1;
	return RTE_MAX(PLX_RMA_LATE_N / PLX_RMA_BATCH_N, (uint32_t)len / (PLX_RMA_BATCH_LEN / PLX_RMA_LATE_N));
}

bool
rma_late_add(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_rma_ep *e = plx_rma_ep(o->ep);

	o->late = o->how == PLX_RMA_DEV && plx_req_of_own(o)->len <= PLX_RMA_LATE_LEN && e->proven;
	if (!o->late) {
		o->late = o->how == PLX_RMA_DEV && plx_req_of_own(o)->len >= r->share_min;
		return false;
	}
	PLX_STAT_INC(r->stat.late);
	r->late = true;
	e->n_late = (uint8_t)RTE_MIN(e->n_late + late_weight(e, plx_req_of_own(o)->len), (unsigned)PLX_RMA_LATE_N);
	return true;
}

void
rma_late_behind(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_rma_ep *e = plx_rma_ep(o->ep);

	if ((!o->late || !rma_late_add(r, o)) && e->n_late != 0)
		e->n_late = PLX_RMA_LATE_N;
}

/* Whether an operation can go with the first one. */
static bool
goes_with(const struct plx_rma_req *first, const struct plx_rma_req *o)
{
	return o->late && plx_req_of_own(o)->len <= PLX_RMA_LATE_LEN && o->how == PLX_RMA_DEV &&
	       o->kind == first->kind && o->epoch == first->epoch && o->offset == 0;
}

int
rma_burst_step(struct plx_rma *r, struct plx_rma_ep *e)
{
	const struct plx_rma_req *first = e->send, *o = first;
	struct plx_rma_piece v[PLX_RMA_BURST];
	struct rma_ended ended = TAILQ_HEAD_INITIALIZER(ended);
	uint64_t bytes = 0, begin;
	unsigned n, moved;

	e->n_late = 0;
	for (n = 0; o != NULL && n < PLX_RMA_BURST && goes_with(first, o); n++) {
		uint64_t len = plx_req_of_own(o)->len;

		if (bytes + len > PLX_RMA_SHARE_MAX)
			break;
		bytes += len;
		v[n] = (struct plx_rma_piece){plx_req_of_own(o)->buf, o->remote, len, UCS_MEMORY_TYPE_HOST};
		o = TAILQ_NEXT(o, link);
	}
	if (n < 2) { /* nobody to go with */
		e->n_lone = (uint8_t)RTE_MIN(e->n_lone + 1u, RMA_LONE_N);
		return 0;
	}
	e->n_lone = 0;
	if (plx_rma_is_long(r, first->ep, bytes) && rma_share_blocks(r, e, n, bytes))
		return rma_share_step(r, e->send);
	begin = rte_rdtsc();
	moved = plx_peer_rma_burst(first->ep->peer, first->kind == PLX_RMA_PUT, v, n);
	if (moved == n && bytes >= r->share_min)
		e->pace = rma_pace(begin, bytes);
	PLX_STAT_INC(r->stat.bursts);
	while (moved-- > 0)
		rma_end_later(r, e->send, &ended);
	return (int)rma_end_all(r, &ended);
}

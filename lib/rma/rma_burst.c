/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_burst.c - operations that wait for each other, and the call of the device that moves them
 */
#include "rma_int.h"

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
	if (e->n_late < PLX_RMA_LATE_N)
		e->n_late++;
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

/* Those that the device has moved: none is in a list when the first callback runs. */
static void
end_moved(struct plx_rma *r, struct plx_rma_ep *e, unsigned n)
{
	TAILQ_HEAD(, plx_rma_req) moved = TAILQ_HEAD_INITIALIZER(moved);
	struct plx_rma_req *o;

	while (n-- > 0) {
		o = e->send;
		rma_unlink(r, plx_req_of_own(o));
		TAILQ_INSERT_TAIL(&moved, o, link);
	}
	while ((o = TAILQ_FIRST(&moved)) != NULL) {
		TAILQ_REMOVE(&moved, o, link);
		plx_rma_over(r, plx_req_of_own(o), 0);
	}
}

unsigned
rma_burst_step(struct plx_rma *r, struct plx_rma_ep *e)
{
	const struct plx_rma_req *first = e->send, *o = first;
	struct plx_rma_piece v[PLX_RMA_LATE_N];
	unsigned n;

	e->n_late = 0;
	for (n = 0; o != NULL && n < PLX_RMA_LATE_N && goes_with(first, o); n++) {
		v[n] = (struct plx_rma_piece){plx_req_of_own(o)->buf, o->remote,
			plx_req_of_own(o)->len, UCS_MEMORY_TYPE_HOST};
		o = TAILQ_NEXT(o, link);
	}
	if (n < 2) /* nobody to go with */
		return 0;
	n = plx_peer_rma_burst(first->ep->peer, first->kind == PLX_RMA_PUT, v, n);
	PLX_STAT_INC(r->stat.bursts);
	end_moved(r, e, n);
	return n;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_offer.c - a short put or get, done by the target if it polls, otherwise by the device
 *
 * Design notes
 * - The device needs a system call, which takes longer than a message to a target that polls and
 *   its answer. So the initiator offers the operation: it writes it to a cell of the target's
 *   shared area, and sends a message that names the cell. The side that changes the cell's state
 *   from OFFERED does it: the target in its turn, or the initiator, by the device, when the target has
 *   not in offer_ticks. So it is done once, and no initiator waits for a target that computes.
 * - The answer is in the cell as well, and takes no message.
 * - An ep offers one operation at a time. Those behind it wait, so their order stays.
 * - Whether a target polls is known from its last answer: after an offer that was taken back the
 *   next ones go by the device, twice as many each time.
 * - The message is only a hint: one that comes late finds the next offer, or none.
 */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "plx_copy.h"
#include "plx_proc.h"
#include "plx_rma_cell.h"
#include "rma_int.h"

#define SKIP_MAX 255 /* operations by the device between two offers */

/* Have a cell of the target's. @return NULL: all are in use; then ask again after many operations */
static struct plx_rma_cell *
cell_get(const struct plx_ep *ep)
{
	void *shared = plx_peer_shared(ep->peer);
	struct plx_rma_cell *c;
	struct plx_proc self;

	plx_rma_ep(ep)->skip = SKIP_MAX;
	if (plx_proc_self(&self) != 0)
		return NULL;
	for (uint64_t i = 0; (c = plx_rma_cell_at(shared, ep->peer->q->shared_len, i)) != NULL; i++) {
		uint64_t owner = 0;

		if (atomic_load_explicit(&c->owner, memory_order_relaxed) != 0 ||
			!atomic_compare_exchange_strong_explicit(&c->owner, &owner, plx_proc_id(&self),
				memory_order_acq_rel, memory_order_relaxed))
			continue;
		plx_rma_ep(ep)->cell = i + 1;
		plx_rma_ep(ep)->skip = 0;
		return c;
	}
	return NULL;
}

struct plx_rma_cell *
rma_cell_to_offer(const struct plx_rma_req *o)
{
	struct plx_rma_ep *e = plx_rma_ep(o->ep);

	if ((o->ep->peer->caps & PLX_DEV_SHARED) == 0)
		return NULL;
	if (e->skip != 0) {
		e->skip--;
		return NULL;
	}
	return plx_ep_open(o->ep) ? e->cell != 0 ? rma_cell_of(o->ep) : cell_get(o->ep) : NULL;
}

bool
rma_offer(struct plx_rma *r, struct plx_rma_req *o)
{
	const struct plx_req *req = plx_req_of_own(o);
	struct plx_rma_cell *c;

	if (o->weighed)
		return false;
	o->weighed = true;
	c = req->len <= r->offer_len ? rma_cell_to_offer(o) : NULL;
	if (c == NULL)
		return false;
	c->op = (struct plx_rma_cell_op){.token = o->token, .addr = o->remote, .index = o->index,
		.len = req->len, .kind = o->kind};
	if (o->kind == PLX_RMA_PUT)
		plx_copy(c->data, req->buf, req->len);
	/* pairs with the acquire in plx_rma_on_offer() */
	atomic_store_explicit(&c->state, PLX_RMA_CELL_OFFERED, memory_order_release);
	if (plx_ep_tx_short(o->ep, PLX_WIRE_OFFER, plx_rma_ep(o->ep)->cell - 1u, NULL, 0) != 0 &&
		plx_rma_cell_turns(c, PLX_RMA_CELL_OFFERED, PLX_RMA_CELL_IDLE))
		return false;
	o->asks = PLX_RMA_ASKS_ALL;
	plx_rma_ep(o->ep)->offer_until = rte_rdtsc() + r->offer_ticks;
	PLX_STAT_INC(r->stat.offers);
	return true;
}

/* The device does it, and the next n. */
static void
by_device(struct plx_rma_req *o, uint8_t n)
{
	plx_rma_ep(o->ep)->skip = n;
	o->asks = PLX_RMA_ASKS_NOTHING;
	o->late = false;
}

void
rma_answered(struct plx_ep *ep, bool did)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);

	e->unanswered = did ? 0 : RTE_MIN(2 * e->unanswered + 1, SKIP_MAX);
	e->skip = e->unanswered;
}

static void
take_back(struct plx_rma *r, struct plx_rma_req *o)
{
	rma_answered(o->ep, false);
	by_device(o, plx_rma_ep(o->ep)->skip);
	PLX_STAT_INC(r->stat.offers_back);
}

/* The target has answered. */
static void
cell_answered(struct plx_rma *r, struct plx_rma_req *o, const struct plx_rma_cell *c)
{
	struct plx_req *req = plx_req_of_own(o);

	if (c->err != 0) { /* the device has its own opinion */
		by_device(o, SKIP_MAX);
		return;
	}
	if (o->kind == PLX_RMA_GET)
		plx_copy(req->buf, c->data, req->len);
	plx_rma_ep(o->ep)->unanswered = 0;
	o->asks = PLX_RMA_ASKS_NOTHING;
	rma_end(r, req, 0);
}

bool
rma_offer_is_over(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_rma_cell *c = rma_cell_of(o->ep);

	if (c == NULL) { /* the peer has gone; the device reports that */
		by_device(o, SKIP_MAX);
		return true;
	}
	switch (atomic_load_explicit(&c->state, memory_order_acquire)) {
	case PLX_RMA_CELL_DONE: /* pairs with the release in plx_rma_on_offer() */
		cell_answered(r, o, c);
		return true;
	case PLX_RMA_CELL_OFFERED:
		if (rte_rdtsc() < plx_rma_ep(o->ep)->offer_until ||
			!plx_rma_cell_turns(c, PLX_RMA_CELL_OFFERED, PLX_RMA_CELL_IDLE))
			return false;
		take_back(r, o);
		return true;
	case PLX_RMA_CELL_TAKEN:
		return false;
	default: /* another process has overwritten it */
		plx_rma_ep(o->ep)->cell = 0;
		by_device(o, SKIP_MAX);
		return true;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_item.c - items of the core, until they are events
 */
#include "cci_int.h"

#define HEAR_TURNS 1000 /* in which notifications of a reactor are processed */

void
cci_wake(struct cci_ep *ep)
{
	ep->awake = true;
	plx_worker_signal(ep->core);
}

void
cci_recycle(struct cci_ep *ep, struct plx_chan_item *item)
{
	if (item->kind == PLX_CHAN_SENT)
		plx_chan_op_put(plx_worker_chans(ep->core), container_of(item, struct plx_chan_op, item));
	else
		plx_worker_chan_put(ep->core, item);
}

/* Now, and not when the event is taken: it may be set again before. */
static __rte_noinline void
keepalive_off(const struct plx_chan_item *item)
{
	struct cci_conn *c = cci_conn_of_chan(item->chan);

	if (cci_is_stale(item))
		return;
	c->keepalive_us = 0;
	c->keepalive_epoch = c->ep->keepalive_epoch;
}

void
cci_deliver(struct plx_chans *cs, struct plx_chan_item *item)
{
	struct cci_ep *ep = cs->user;

	if (item->kind == PLX_CHAN_SENT) {
		ep->n_sends--;
		if (unlikely(item->flags & (CCI_FLAG_READ | CCI_FLAG_WRITE)))
			cci_mr_drop(item);
		if (unlikely(item->flags & CCI_FLAG_BLOCKING)) {
			item->answered = true; /* its caller checks */
			return;
		}
		if (unlikely(item->flags & CCI_FLAG_SILENT)) {
			cci_recycle(ep, item);
			return;
		}
	} else if (unlikely(item->kind == PLX_CHAN_SILENCE)) {
		keepalive_off(item);
	}
	STAILQ_INSERT_TAIL(&ep->ready, item, link);
	cci_started(ep);
}

void
cci_hear(struct cci_ep *ep, const uint32_t *left)
{
	for (unsigned i = 0; i < HEAR_TURNS && (left == NULL || *left != 0); i++) {
		if (plx_worker_progress(ep->core) == 0)
			break;
	}
}

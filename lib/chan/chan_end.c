/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_end.c - closing channels: closed, broken, failed with their ep or with the worker
 *
 * Design notes
 * - CLOSE is sent when an end closes, after all its messages. The other side needs no more
 *   acknowledgements for messages in flight. Messages for a channel that does not exist are
 *   answered with CLOSE too.
 */
#include "chan_int.h"

/* The channel ends; its memory belongs to the face. */
static void
chan_fini(struct plx_chans *cs, struct plx_chan *c)
{
	if (c->owes_ack)
		plx_chan_ack_told(cs, c);
	chan_unstarve(cs, c);
	chan_group_fini(cs, c);
	plx_timer_disarm(cs->timers, &c->timer);
	LIST_REMOVE(c, link);
	c->ep->refs--;
	chan_forget(cs, c);
	c->state = PLX_CHAN_NONE;
}

void
chan_break(struct plx_chans *cs, struct plx_chan *c, int err)
{
	uint8_t was = c->state;

	if (was != PLX_CHAN_CONNECTING && was != PLX_CHAN_ACCEPTING && was != PLX_CHAN_OPEN)
		return;
	c->state = PLX_CHAN_CLOSED;
	atomic_store_explicit(&c->err, err, memory_order_relaxed);
	if (was == PLX_CHAN_OPEN) {
		chan_unstarve(cs, c);
		chan_drop_ops(cs, c, err);
		return;
	}
	/* The application has never seen it. */
	chan_fini(cs, c);
	chan_tell_of(cs, c, was == PLX_CHAN_CONNECTING ? PLX_CHAN_CONNECTED : PLX_CHAN_ACCEPTED, err);
}

void
chan_close(struct plx_chan *c)
{
	if (c->owes_ack)
		chan_ctl(c->ep, PLX_WIRE_CHAN_ACK, c->remote, c->rx_next);
	chan_ctl(c->ep, PLX_WIRE_CHAN_CLOSE, c->remote, c->id);
}

void
plx_chan_end(struct plx_chans *cs, struct plx_chan *c)
{
	bool tell = c->state == PLX_CHAN_OPEN && c->ep != &cs->nobody;

	c->state = PLX_CHAN_CLOSED;
	chan_drop_ops(cs, c, -ECONNRESET);
	if (tell)
		chan_close(c);
	chan_fini(cs, c);
}

void
plx_chans_ep_failed(struct plx_chans *cs, struct plx_ep *ep)
{
	struct plx_chan *c, *next;

	if (!cs->on)
		return;
	chan_group_leave(cs, ep, 0);
	for (c = LIST_FIRST(&plx_chan_ep(ep)->all); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		chan_break(cs, c, c->state == PLX_CHAN_CONNECTING ? -ECONNREFUSED : -ECONNRESET);
	}
}

void
plx_chans_fail(struct plx_chans *cs)
{
	chan_tell_of(cs, NULL, PLX_CHAN_FAILED, -ENXIO);
	for (uint32_t i = 1; i < cs->n_slots; i++) {
		if (cs->slots[i].chan != NULL)
			chan_break(cs, cs->slots[i].chan, -ENXIO);
	}
}

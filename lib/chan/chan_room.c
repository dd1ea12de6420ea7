/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_room.c - no receive buffers left: which senders wait, and which continue
 */
#include "chan_int.h"

void
chan_starve(struct plx_chans *cs, struct plx_chan *c)
{
	PLX_STAT_INC(cs->stat.rnr_told);
	c->starved = true;
	TAILQ_INSERT_TAIL(&cs->starved, c, starved_link);
	chan_ctl(c->ep, PLX_WIRE_CHAN_RNR, c->remote, c->rx_next);
}

void
plx_chans_invite(struct plx_chans *cs)
{
	struct plx_chan *c;

	while ((c = TAILQ_FIRST(&cs->starved)) != NULL &&
		cs->rx_used + cs->n_invited < cs->rx_max) {
		TAILQ_REMOVE(&cs->starved, c, starved_link);
		c->starved = false;
		c->invited = true;
		cs->n_invited++;
		chan_ctl(c->ep, PLX_WIRE_CHAN_READY, c->remote, 0);
	}
}

void
chan_unstarve(struct plx_chans *cs, struct plx_chan *c)
{
	if (c->starved)
		TAILQ_REMOVE(&cs->starved, c, starved_link);
	if (c->invited)
		cs->n_invited--;
	c->starved = c->invited = false;
	if (!TAILQ_EMPTY(&cs->starved))
		plx_chans_invite(cs);
}

int
plx_chans_set_rx(struct plx_chans *cs, uint32_t n)
{
	if (n < cs->rx_used)
		return -ERANGE;
	__atomic_store_n(&cs->rx_max, n, __ATOMIC_RELAXED);
	plx_chans_invite(cs);
	return 0;
}

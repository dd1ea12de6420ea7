/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_recv.c - messages that arrive on channels
 */
#include <string.h>

#include <rte_common.h>

#include "chan_int.h"
#include "plx_copy.h"

/* @return NULL if rx_max are in use, or without memory. */
static struct plx_chan_rx *
rx_get(struct plx_chans *cs, uint32_t len)
{
	bool is_long = len > PLX_CHAN_RX_SHORT;
	struct plx_chan_rx *rx;

	if (unlikely(cs->rx_used >= cs->rx_max))
		return NULL;
	rx = plx_pool_get(is_long ? &cs->rx_long : &cs->rx_short);
	if (likely(rx != NULL))
		PLX_STAT_INC(cs->rx_used);
	return rx;
}

/* A message whose data is in rx. */
static inline void
rx_deliver(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_rx *rx, uint32_t len)
{
	PLX_STAT_INC(cs->stat.rx_msgs);
	rx->item.chan = c;
	rx->item.chan_id = c->id;
	rx->len = len;
	if (likely(cs->ready != NULL))
		STAILQ_INSERT_TAIL(cs->ready, &rx->item, link);
	else
		chan_tell(cs, &rx->item);
}

static inline void
rx_copy(struct plx_chan_rx *rx, const uint8_t *data, uint32_t len)
{
	if (len == 8)
		memcpy(rx->bytes, data, 8);
	else if (len != 0)
		plx_copy(rx->bytes, data, len);
}

/* The peer that got READY has sent. */
static __rte_noinline void
invited_came(struct plx_chans *cs, struct plx_chan *c)
{
	c->invited = false;
	cs->n_invited--;
}

/* The channel of a message, if it may have one of len bytes. */
static inline struct plx_chan *
rx_chan(struct plx_chans *cs, struct plx_peer *src, uint32_t to, uint32_t len)
{
	struct plx_chan *c = chan_find(cs, src, to);

	if (unlikely(c == NULL || c->state != PLX_CHAN_OPEN)) {
		chan_stray(cs, src, to);
		return NULL;
	}
	if (unlikely(len > cs->max_send)) {
		PLX_STAT_INC(cs->stat.rx_drop_bad_len);
		return NULL;
	}
	c->heard = true;
	return c;
}

/* A buffer for a message of a channel that may have it. @return NULL: not for this one, or
 * not now */
static inline struct plx_chan_rx *
rx_place(struct plx_chans *cs, struct plx_chan *c, const struct plx_wire_chan_msg *h, uint32_t len)
{
	struct plx_chan_rx *rx;

	if (unlikely(h->number != c->rx_next || c->starved || !chan_reliable(c))) {
		PLX_STAT_INC(cs->stat.rx_again);
		return NULL;
	}
	if (unlikely(c->invited))
		invited_came(cs, c);
	rx = rx_get(cs, len);
	if (unlikely(rx == NULL))
		chan_starve(cs, c);
	return rx;
}

/* Its data has arrived. */
static inline void
rx_taken(struct plx_chans *cs, struct plx_chan *c, const struct plx_wire_chan_msg *h)
{
	c->rx_next++;
	if (c->tx_at_rx != c->tx_seq) {
		c->tx_at_rx = c->tx_seq;
		c->answers = true;
	}
	/* a reactor's turns do not wait for the application to answer */
	cs->n_owed += likely(h->urgent == 0 && cs->ring == NULL) ? 1 : PLX_CHAN_ACK_MAX;
	if (!c->owes_ack) {
		c->owes_ack = true;
		LIST_INSERT_HEAD(&cs->acks, c, ack_link);
	}
}

/* As chan_acked(), with a message: the program answers that first, and learns of its sends
 * in the next turn. */
static inline void
acked_with(struct plx_chans *cs, struct plx_chan *c, uint32_t value)
{
	if (!chan_acked(cs, c, value))
		return;
	if (unlikely(cs->unreaped != NULL && cs->unreaped != c))
		plx_chans_reap_slow(cs);
	cs->unreaped = c;
	if (unlikely(cs->ring != NULL)) /* a reactor delays no program */
		plx_chans_reap_slow(cs);
}

void
plx_chan_on_msg(struct plx_chans *cs, struct plx_peer *src, struct plx_wire_chan_msg h,
	const uint8_t *data, uint32_t len)
{
	struct plx_chan *c = rx_chan(cs, src, h.to, len);
	struct plx_chan_rx *rx;

	if (unlikely(c == NULL))
		return;
	rx = rx_place(cs, c, &h, len);
	if (likely(rx != NULL)) {
		rx_taken(cs, c, &h);
		rx_copy(rx, data, len);
		rx_deliver(cs, c, rx, len);
	}
	if (h.ack != c->acked)
		acked_with(cs, c, h.ack);
}

/* The kernel reads in the order of the list. @return whether all of it was readable */
static bool
rx_fetch(struct plx_peer *src, const struct plx_wire_chan_fetch *h, void *to)
{
	uint64_t lent = 0;
	const struct plx_rma_piece pieces[] = {
		{to, h->addr, h->len, UCS_MEMORY_TYPE_HOST},
		{&lent, h->lent_addr, sizeof(lent), UCS_MEMORY_TYPE_HOST},
	};

	return plx_peer_rma_burst(src, false, pieces, RTE_DIM(pieces)) == RTE_DIM(pieces) &&
		lent == plx_wire_chan_lent(&h->msg);
}

void
plx_chan_on_fetch(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan_fetch *h)
{
	struct plx_chan *c = rx_chan(cs, src, h->msg.to, h->len);
	struct plx_chan_rx *rx;

	if (c == NULL)
		return;
	rx = rx_place(cs, c, &h->msg, h->len);
	if (rx != NULL && rx_fetch(src, h, rx->bytes)) {
		PLX_STAT_INC(cs->stat.fetches);
		rx_taken(cs, c, &h->msg);
		rx_deliver(cs, c, rx, h->len);
	} else if (rx != NULL) {
		PLX_STAT_INC(cs->stat.unfetched);
		plx_chan_item_put(cs, &rx->item);
		chan_ctl(c->ep, PLX_WIRE_CHAN_COPY, c->remote, c->rx_next);
	}
	if (h->msg.ack != c->acked)
		acked_with(cs, c, h->msg.ack);
}

/* A message that is dropped without a buffer. */
static void
lossy_deliver(struct plx_chans *cs, struct plx_chan *c, const uint8_t *data, uint32_t len)
{
	struct plx_chan_rx *rx = rx_get(cs, len);

	if (rx == NULL) {
		PLX_STAT_INC(cs->stat.rx_drop_no_buf);
		return;
	}
	rx_copy(rx, data, len);
	rx_deliver(cs, c, rx, len);
}

void
plx_chan_on_lossy(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_chan *c = chan_group_find(cs, h->to);

	if (c == NULL || len > cs->max_send) {
		c = chan_find(cs, src, h->to);
		if (c != NULL && c->attr == PLX_CHAN_UU)
			chan_done(cs, c);
		c = rx_chan(cs, src, h->to, len);
	}
	if (c == NULL)
		return;
	if (chan_reliable(c))
		PLX_STAT_INC(cs->stat.rx_drop_no_buf);
	else
		lossy_deliver(cs, c, data, len);
}

void
plx_chan_on_group(struct plx_chans *cs, uint64_t group, const uint8_t *data, uint32_t len)
{
	struct plx_chan *c;

	if (!cs->on || len > cs->max_send) {
		PLX_STAT_INC(cs->stat.rx_drop_bad_len);
		return;
	}
	LIST_FOREACH(c, &plx_chan_ep(&cs->nobody)->all, link) {
		if (c->attr == PLX_CHAN_MC_RX && c->group == group)
			lossy_deliver(cs, c, data, len);
	}
}

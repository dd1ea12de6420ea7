/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_table.c - channels by their numbers, and notifications: to the application, to their peers
 */
#include <stdlib.h>

#include <rte_common.h>
#include <rte_ring.h>

#include "chan_int.h"

PLX_LOG_DEFINE(chan, "plx.chan");

#define CHAN_SLOTS_FIRST 64
#define CHAN_INDEX_BITS	 20

_Static_assert(PLX_CHAN_MAX == 1u << CHAN_INDEX_BITS, "the rest of a number counts its uses");

uint64_t
plx_chan_ticks(const struct plx_chans *cs, uint64_t us)
{
	const uint64_t year_us = 31536000ull * 1000000;

	us = RTE_MIN(us, year_us); /* and no overflow */
	return us == 0 ? 0 : RTE_MAX(us / 1000000 * cs->hz + us % 1000000 * cs->hz / 1000000, 1ull);
}

/* Twice as many slots. Slot 0 is never used. */
static int
slots_grow(struct plx_chans *cs)
{
	uint32_t n = cs->n_slots != 0 ? 2 * cs->n_slots : CHAN_SLOTS_FIRST;
	struct plx_chan_slot *slots;

	if (n > PLX_CHAN_MAX)
		return -ENOSPC;
	slots = realloc(cs->slots, n * sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	for (uint32_t i = n - 1; i >= RTE_MAX(cs->n_slots, 1u); i--) {
		slots[i] = (struct plx_chan_slot){.next_free = cs->first_free};
		cs->first_free = i;
	}
	cs->slots = slots;
	cs->n_slots = n;
	slots[0].chan = NULL;
	return 0;
}

int
chan_number(struct plx_chans *cs, struct plx_chan *c)
{
	struct plx_chan_slot *s;
	uint32_t i;
	int rc = cs->first_free != 0 ? 0 : slots_grow(cs);

	if (rc != 0)
		return rc;
	i = cs->first_free;
	s = &cs->slots[i];
	cs->first_free = s->next_free;
	s->chan = c;
	c->id = s->gen << CHAN_INDEX_BITS | i;
	return 0;
}

void
chan_forget(struct plx_chans *cs, struct plx_chan *c)
{
	uint32_t i = c->id & (PLX_CHAN_MAX - 1);
	struct plx_chan_slot *s = &cs->slots[i];

	s->chan = NULL;
	s->gen++;
	s->next_free = cs->first_free;
	cs->first_free = i;
	c->id = 0;
}

void
chan_tell_ring(struct plx_chans *cs, struct plx_chan_item *item)
{
	if (!STAILQ_EMPTY(&cs->overflow) || rte_ring_sp_enqueue(cs->ring, item) != 0)
		STAILQ_INSERT_TAIL(&cs->overflow, item, link);
}

void
chan_tell_overflow(struct plx_chans *cs)
{
	struct plx_chan_item *item;

	while ((item = STAILQ_FIRST(&cs->overflow)) != NULL) {
		STAILQ_REMOVE_HEAD(&cs->overflow, link);
		if (rte_ring_sp_enqueue(cs->ring, item) != 0) {
			STAILQ_INSERT_HEAD(&cs->overflow, item, link);
			return;
		}
	}
}

void
chan_tell_of(struct plx_chans *cs, struct plx_chan *c, enum plx_chan_kind kind, int status)
{
	struct plx_chan_item *item = plx_pool_get(&cs->notes);

	if (item == NULL) {
		PLX_STAT_INC(cs->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, chan, "out of memory for a message about channel %u", c != NULL ? c->id : 0);
		return;
	}
	item->chans = cs;
	item->chan = c;
	item->chan_id = c != NULL ? c->id : 0;
	item->kind = kind;
	item->status = status;
	chan_tell(cs, item);
}

void
chan_ctl(struct plx_ep *ep, uint8_t op, uint32_t to, uint32_t value)
{
	struct plx_wire_chan h = {.to = to, .value = value};

	(void)plx_ep_tx_ctl(ep, op, &h, sizeof(h)); /* an error is the ep's, which reports it */
}

void
chan_tell_stray(struct plx_chans *cs, struct plx_peer *src, uint32_t to, uint32_t value)
{
	struct plx_ep *ep = cs->on ? plx_ep_of(cs->eps, src) : NULL;

	PLX_STAT_INC(cs->stat.rx_drop_no_chan);
	if (ep != NULL)
		chan_ctl(ep, PLX_WIRE_CHAN_CLOSE, to, value);
}

void
chan_stray(struct plx_chans *cs, struct plx_peer *src, uint32_t id)
{
	const struct plx_ep *ep = src->user;

	/* It was notified already if it ever had this channel; a peer that does not read
	 * gets nothing. */
	if (ep == NULL || TAILQ_EMPTY(&ep->pending))
		chan_tell_stray(cs, src, 0, id);
	else
		PLX_STAT_INC(cs->stat.rx_drop_no_chan);
}

void
plx_chan_op_put_any(struct plx_chans *cs, struct plx_chan_op *op)
{
	if (op->own_buf)
		plx_pool_put(&cs->bufs, (void *)(uintptr_t)op->data);
	op->item.answered = op->own_buf = op->urgent = op->any = false;
	op->rma.len = 0;
	op->due_ticks = 0;
	op->data = op->bytes;
	plx_pool_put(&cs->ops, op);
}

/* Release a request's ep. */
static void
request_put(struct plx_chans *cs, struct plx_chan_request *r)
{
	r->ep->refs--;
	cs->n_asks--;
	plx_pool_put(&cs->asks, r);
}

void
plx_chan_item_put_slow(struct plx_chans *cs, struct plx_chan_item *item)
{
	if (item->kind == PLX_CHAN_REQUEST)
		request_put(cs, container_of(item, struct plx_chan_request, item));
	else
		plx_pool_put(&cs->notes, item);
}

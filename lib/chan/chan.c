/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan.c - the table of channels, and items on their way to the application
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ring.h>

#include "chan_int.h"

PLX_LOG_DEFINE(chan, "plx.chan");

#define CHAN_SLOTS_FIRST 64
#define CHAN_INDEX_BITS	 20
#define CHAN_POLL_MAX	 32 /* items delivered in one poll */

_Static_assert(PLX_CHAN_MAX == 1u << CHAN_INDEX_BITS, "the rest of a number counts its uses");

const struct plx_stat_row plx_chan_stat_rows[] = {
	PLX_STAT_ROW(struct plx_chan_stat, opened),
	PLX_STAT_ROW(struct plx_chan_stat, refused),
	PLX_STAT_ROW(struct plx_chan_stat, msgs),
	PLX_STAT_ROW(struct plx_chan_stat, rmas),
	PLX_STAT_ROW(struct plx_chan_stat, lossy_msgs),
	PLX_STAT_ROW(struct plx_chan_stat, rx_msgs),
	PLX_STAT_ROW(struct plx_chan_stat, rx_drop_no_buf),
	PLX_STAT_ROW(struct plx_chan_stat, tx_drop_full),
	PLX_STAT_ROW(struct plx_chan_stat, acks),
	PLX_STAT_ROW(struct plx_chan_stat, rnr_told),
	PLX_STAT_ROW(struct plx_chan_stat, rnr_heard),
	PLX_STAT_ROW(struct plx_chan_stat, timeouts),
	PLX_STAT_ROW(struct plx_chan_stat, keepalives),
	PLX_STAT_ROW(struct plx_chan_stat, keepalive_timeouts),
	PLX_STAT_ROW(struct plx_chan_stat, fetches),
	PLX_STAT_ROW(struct plx_chan_stat, unfetched),
	PLX_STAT_ROW(struct plx_chan_stat, rx_again),
	PLX_STAT_ROW(struct plx_chan_stat, rx_drop_no_chan),
	PLX_STAT_ROW(struct plx_chan_stat, rx_drop_bad_len),
	PLX_STAT_ROW(struct plx_chan_stat, rx_drop_bad_value),
	PLX_STAT_ROW(struct plx_chan_stat, rx_drop_no_memory),
	PLX_STAT_END,
};

/* What is the same of all messages that will lie there. */
static void
rx_init(void *obj, void *arg)
{
	struct plx_chan_rx *rx = obj;

	rx->item.chans = arg;
	rx->item.kind = PLX_CHAN_RECV;
	rx->is_long = false;
	rx->data = rx->bytes;
}

static void
rx_long_init(void *obj, void *arg)
{
	rx_init(obj, arg);
	((struct plx_chan_rx *)obj)->is_long = true;
}

/* What an operation need not say of itself; plx_chan_op_put() sees to it that it stays so. */
static void
op_init(void *obj, void *arg)
{
	struct plx_chan_op *op = obj;

	memset(op, 0, sizeof(*op));
	op->item.chans = arg;
	op->item.kind = PLX_CHAN_SENT;
	op->data = op->bytes;
}

static void
pools_open(struct plx_chans *cs)
{
	const uint32_t rx_long = offsetof(struct plx_chan_rx, bytes) + cs->max_send;

	plx_pool_open(&cs->rx_short, "chan_rx", sizeof(struct plx_chan_rx), 64, 0, rx_init, cs);
	plx_pool_open(&cs->rx_long, "chan_rx_long", rx_long, 16, 0, rx_long_init, cs);
	plx_pool_open(&cs->notes, "chan_note", sizeof(struct plx_chan_item), 16, 0, NULL, NULL);
	plx_pool_open(&cs->asks, "chan_ask", sizeof(struct plx_chan_request), 4,
		0, NULL, NULL);
	plx_pool_open(&cs->hellos, "chan_hello", PLX_WIRE_CHAN_DATA_MAX + 128, 4, 0, NULL, NULL);
	plx_pool_open(&cs->ops, "chan_op", sizeof(struct plx_chan_op), 64, 0, op_init, cs);
	plx_pool_open(&cs->bufs, "chan_buf", cs->max_send, 16, 0, NULL, NULL);
}

int
plx_chans_open(struct plx_chans *cs, bool on, struct plx_eps *eps, struct plx_timers *timers,
	uint32_t max_send, uint32_t rx_max, bool dedicated)
{
	memset(cs, 0, sizeof(*cs));
	LIST_INIT(&cs->acks);
	STAILQ_INIT(&cs->overflow);
	TAILQ_INIT(&cs->starved);
	TAILQ_INIT(&cs->group_ops);
	TAILQ_INIT(&cs->lossy_ops);
	cs->on = on;
	if (!on)
		return 0;
	cs->eps = eps;
	cs->timers = timers;
	cs->hz = rte_get_tsc_hz();
	cs->max_send = max_send;
	cs->rx_max = rx_max;
	pools_open(cs);
	chan_group_open(cs);
	return dedicated ? plx_mem_ring(PLX_CHAN_RING_LEN, &cs->ring) : 0;
}

void
plx_chans_close(struct plx_chans *cs)
{
	struct plx_pool *pools[] = {&cs->rx_short, &cs->rx_long, &cs->notes, &cs->asks, &cs->hellos,
		&cs->members, &cs->ops, &cs->bufs};

	if (!cs->on)
		return;
	for (unsigned i = 0; i < RTE_DIM(pools); i++)
		plx_pool_close(pools[i]);
	plx_mem_free(cs->ring);
	free(cs->slots);
	memset(cs, 0, sizeof(*cs));
}

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

static void
note(struct plx_chans *cs, struct plx_chan *c, enum plx_chan_kind kind, int status)
{
	struct plx_chan_item *item = plx_pool_get(&cs->notes);

	if (item == NULL) {
		PLX_STAT_INC(cs->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, chan, "no memory to tell of channel %u", c != NULL ? c->id : 0);
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
chan_note(struct plx_chan *c, enum plx_chan_kind kind, int status)
{
	note(c->chans, c, kind, status);
}

void
plx_chans_fail(struct plx_chans *cs)
{
	note(cs, NULL, PLX_CHAN_FAILED, -ENXIO);
	for (uint32_t i = 1; i < cs->n_slots; i++) {
		if (cs->slots[i].chan != NULL)
			chan_break(cs, cs->slots[i].chan, -ENXIO);
	}
}

void
chan_ctl(struct plx_ep *ep, uint8_t op, uint32_t to, uint32_t value)
{
	struct plx_wire_chan h = {.to = to, .value = value};

	(void)plx_ep_tx_ctl(ep, op, &h, sizeof(h)); /* an error is the ep's, and told by that */
}

static void
overflow_flush(struct plx_chans *cs)
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

static void
acks_flush(struct plx_chans *cs)
{
	struct plx_chan *c, *next;

	for (c = LIST_FIRST(&cs->acks); c != NULL; c = next) {
		struct plx_wire_chan h = {.to = c->remote, .value = c->rx_next};
		uint64_t word;
		int rc = plx_ep_connect(c->ep);

		memcpy(&word, &h, sizeof(word));
		if (rc == 0)
			rc = plx_ep_tx_short(c->ep, PLX_WIRE_CHAN_ACK, word, NULL, 0);
		next = LIST_NEXT(c, ack_link);
		if (rc == -EAGAIN || plx_ep_may_pass(rc))
			continue; /* in the next turn */
		PLX_STAT_INC(cs->stat.acks);
		plx_chan_ack_told(cs, c);
	}
}

void
plx_chans_flush_slow(struct plx_chans *cs)
{
	if (unlikely(!TAILQ_EMPTY(&cs->group_ops)))
		chan_group_flush(cs);
	if (unlikely(!TAILQ_EMPTY(&cs->lossy_ops)))
		chan_lossy_flush(cs);
	if (plx_chans_acks_due(cs))
		acks_flush(cs);
	if (unlikely(!STAILQ_EMPTY(&cs->overflow)))
		overflow_flush(cs);
}

unsigned
plx_chans_poll(struct plx_chans *cs)
{
	unsigned n = 0;
	void *item;

	while (n < CHAN_POLL_MAX && rte_ring_sc_dequeue(cs->ring, &item) == 0) {
		cs->deliver(cs, item);
		n++;
	}
	return n;
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

int
plx_chans_set_rx(struct plx_chans *cs, uint32_t n)
{
	if (n < cs->rx_used)
		return -ERANGE;
	__atomic_store_n(&cs->rx_max, n, __ATOMIC_RELAXED);
	plx_chans_invite(cs);
	return 0;
}

/* Give a request's ep back. */
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

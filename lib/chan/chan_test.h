/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_test.h - two sides of a channel, on the fake device
 */
#ifndef CHAN_TEST_H
#define CHAN_TEST_H

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_region.h"
#include "plx_unit.h"
#include "plx_unit_worker.h"

#define MAX_SEND 4096u
#define RX_MAX	 8u

/* A worker and its events. */
struct side {
	struct plx_worker *w;
	struct plx_chan c;
	struct plx_chan_items items;
	unsigned n;
};

static struct side s[2];
static struct plx_conf conf;
static uint8_t bytes[MAX_SEND];

static void
deliver(struct plx_chans *cs, struct plx_chan_item *item)
{
	struct side *side = cs->user;

	STAILQ_INSERT_TAIL(&side->items, item, link);
	side->n++;
}

static void
begin(void)
{
	struct unit_workers u;

	fake_reset(31);
	unit_workers_conf(&u);
	conf = u.conf;
	unit_fill(bytes, sizeof(bytes), 3);
	for (unsigned i = 0; i < 2; i++) {
		struct plx_worker_params params = {.conf = &conf, .chan_deliver = deliver,
			.chan_max_send = MAX_SEND, .chan_rx_max = RX_MAX};

		memset(&s[i], 0, sizeof(s[i]));
		STAILQ_INIT(&s[i].items);
		UNIT_EQ_FATAL(plx_worker_create(&params, &s[i].w), 0);
		s[i].w->chans.user = &s[i];
	}
}

static inline void
turns(unsigned n)
{
	for (unsigned i = 0; i < 2 * n; i++) {
		if (s[i % 2].w != NULL)
			plx_worker_turn(s[i % 2].w);
	}
}

/* The oldest item of a side, of this kind. */
static struct plx_chan_item *
take(unsigned i, enum plx_chan_kind kind)
{
	struct plx_chan_item *item;

	for (unsigned k = 0; k < 200 && s[i].n == 0; k++)
		turns(1);
	UNIT_TRUE_FATAL(s[i].n > 0);
	item = STAILQ_FIRST(&s[i].items);
	STAILQ_REMOVE_HEAD(&s[i].items, link);
	s[i].n--;
	UNIT_EQ_FATAL(item->kind, kind);
	return item;
}

/* Take it, see how it ended, and give it back. */
static inline void
taken(unsigned i, enum plx_chan_kind kind, int status)
{
	struct plx_chan_item *item = take(i, kind);

	UNIT_EQ(item->status, status);
	if (kind == PLX_CHAN_SENT)
		plx_chan_op_put(&s[i].w->chans, container_of(item, struct plx_chan_op, item));
	else
		plx_chan_item_put(&s[i].w->chans, item);
}

static inline void
ask(uint8_t attr, uint64_t timeout_us)
{
	uint8_t packed[PLX_WIRE_ADDR_MAX];
	struct plx_wire_addr addr;
	struct plx_chan_asked a = {.addr = &addr, .data = bytes, .len = 1000, .attr = attr,
		.timeout_us = timeout_us};

	UNIT_TRUE_FATAL(plx_worker_addr(s[1].w, packed, sizeof(packed)) > 0);
	UNIT_EQ_FATAL(plx_wire_addr_unpack(packed, &addr), 0);
	UNIT_EQ_FATAL(plx_worker_chan_ask(s[0].w, &a, &s[0].c), 0);
}

static inline struct plx_chan_request *
asked(void)
{
	struct plx_chan_item *item = take(1, PLX_CHAN_REQUEST);

	return container_of(item, struct plx_chan_request, item);
}

/* All that pools gave out has come back. */
static void
end(void)
{
	turns(20);
	for (unsigned i = 0; i < 2; i++) {
		struct plx_chans *cs;

		if (s[i].w == NULL)
			continue;
		cs = &s[i].w->chans;
		UNIT_EQ(s[i].n, 0);
		UNIT_EQ(cs->rx_used + cs->n_asks + cs->n_invited, 0);
		UNIT_EQ(cs->rx_short.n_free, cs->rx_short.n_objs);
		UNIT_EQ(cs->rx_long.n_free, cs->rx_long.n_objs);
		UNIT_EQ(cs->notes.n_free, cs->notes.n_objs);
		UNIT_EQ(cs->asks.n_free, cs->asks.n_objs);
		UNIT_EQ(cs->hellos.n_free, cs->hellos.n_objs);
		UNIT_EQ(cs->ops.n_free, cs->ops.n_objs);
		UNIT_EQ(s[i].w->chan_reqs.pool.n_free, s[i].w->chan_reqs.pool.n_objs);
		UNIT_TRUE(TAILQ_EMPTY(&cs->starved) && LIST_EMPTY(&cs->acks));
	}
	for (unsigned i = 0; i < 2; i++)
		plx_worker_destroy(s[i].w);
}

static void
close_both(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if (s[i].c.id != 0)
			plx_worker_chan_end(s[i].w, &s[i].c);
	}
	end();
}

static struct plx_chan_op *
op_new(unsigned i, uint32_t len)
{
	struct plx_chan_op *op = plx_chan_op_get(&s[i].w->chans);

	op->item.chans = &s[i].w->chans;
	op->item.chan = &s[i].c;
	op->item.chan_id = s[i].c.id;
	op->item.kind = PLX_CHAN_SENT;
	op->data = bytes;
	op->len = len;
	op->own_buf = false;
	op->urgent = false;
	op->rma.len = 0;
	return op;
}

static inline void
send_one(unsigned i, uint32_t len)
{
	plx_worker_chan_post(s[i].w, op_new(i, len));
}

/* A message of this length comes, with what was sent. */
static inline void
received(unsigned i, uint32_t len)
{
	struct plx_chan_item *item = take(i, PLX_CHAN_RECV);
	struct plx_chan_rx *rx = container_of(item, struct plx_chan_rx, item);

	UNIT_EQ(rx->len, len);
	UNIT_EQ((uintptr_t)rx->data % 8, 0);
	UNIT_SAME(rx->data, bytes, len);
	plx_chan_item_put(&s[i].w->chans, &rx->item);
}

#endif

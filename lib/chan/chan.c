/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan.c - all channels of a worker: their memory, and what they do in a turn
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ring.h>

#include "chan_int.h"

#define CHAN_POLL_MAX 32 /* items delivered in one poll */

#define ROW(field) PLX_STAT_ROW(struct plx_chan_stat, field)

const struct plx_stat_row plx_chan_stat_rows[] = {
	ROW(opened), ROW(refused), ROW(msgs), ROW(rmas), ROW(lossy_msgs), ROW(rx_msgs),
	ROW(rx_drop_no_buf), ROW(tx_drop_full), ROW(acks), ROW(rnr_told), ROW(rnr_heard),
	ROW(timeouts), ROW(keepalives), ROW(keepalive_timeouts), ROW(fetches), ROW(unfetched),
	ROW(rx_again), ROW(rx_drop_no_chan), ROW(rx_drop_bad_len), ROW(rx_drop_bad_value),
	ROW(rx_drop_no_memory),
	PLX_STAT_END,
};

/* Fields that are the same for all its messages. */
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

/* Fields with constant initial values; plx_chan_op_put() preserves them. */
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
	plx_pool_open(&cs->members, "chan_member", sizeof(struct plx_chan_member), 16, 0, NULL, NULL);
	plx_pool_open(&cs->ops, "chan_op", sizeof(struct plx_chan_op), 64, 0, op_init, cs);
	plx_pool_open(&cs->bufs, "chan_buf", cs->max_send, 16, 0, NULL, NULL);
}

int
plx_chans_open(struct plx_chans *cs, bool on, struct plx_eps *eps, struct plx_timers *timers,
	uint32_t max_send, uint32_t rx_max, bool dedicated)
{
	memset(cs, 0, sizeof(*cs));
	LIST_INIT(&cs->acks);
	LIST_INIT(&plx_chan_ep(&cs->nobody)->all);
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
		chan_tell_overflow(cs);
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

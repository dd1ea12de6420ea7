/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_test.c - channels on the fake device: connecting, order, receivers without buffers, time
 */
#include "chan_test.h"

static void
open_with(uint8_t attr)
{
	struct plx_chan_request *r;

	begin();
	ask(attr, 0);
	r = asked();
	UNIT_EQ(r->ask.attr, attr);
	UNIT_EQ(r->len, 1000);
	UNIT_SAME(r->data, bytes, 1000);
	UNIT_EQ(plx_worker_chan_answer(s[1].w, r, &s[1].c), 0);
	plx_chan_item_put(&s[1].w->chans, &r->item);
	taken(0, PLX_CHAN_CONNECTED, 0);
	taken(1, PLX_CHAN_ACCEPTED, 0);
}

/* -- connecting -- */

static void
both_sides_agree_on_a_channel(void)
{
	for (uint8_t attr = 0; attr < PLX_CHAN_UNICAST_N; attr++) {
		open_with(attr);
		UNIT_EQ(s[0].c.remote, s[1].c.id);
		UNIT_EQ(s[1].c.remote, s[0].c.id);
		UNIT_EQ(s[0].c.max_send, s[1].c.max_send);
		close_both();
	}
}

static void
a_request_that_is_rejected_is_refused(void)
{
	struct plx_chan_request *r;

	begin();
	ask(PLX_CHAN_RO, 0);
	r = asked();
	UNIT_EQ(plx_worker_chan_answer(s[1].w, r, NULL), 0);
	plx_chan_item_put(&s[1].w->chans, &r->item);
	taken(0, PLX_CHAN_CONNECTED, -ECONNREFUSED);
	end();
}

/* The server says yes when the client has given up: neither has a channel. */
static void
a_late_answer_opens_nothing(void)
{
	struct plx_chan_request *r;

	begin();
	ask(PLX_CHAN_RO, 1);
	r = asked();
	plx_timers_run(&s[0].w->timers, rte_rdtsc() + rte_get_tsc_hz());
	taken(0, PLX_CHAN_CONNECTED, -ETIMEDOUT);
	UNIT_EQ(plx_worker_chan_answer(s[1].w, r, &s[1].c), 0);
	plx_chan_item_put(&s[1].w->chans, &r->item);
	taken(1, PLX_CHAN_ACCEPTED, -ECONNRESET);
	end();
}

static void
the_death_of_the_peer_ends_connecting(void)
{
	begin();
	ask(PLX_CHAN_RU, 0);
	turns(5);
	fake_kill(s[1].w->queues[0]);
	plx_worker_destroy(s[1].w);
	s[1].w = NULL;
	for (unsigned i = 0; i < 100 && s[0].n == 0; i++) {
		unit_check_peers(s[0].w);
		turns(1);
	}
	taken(0, PLX_CHAN_CONNECTED, -ECONNREFUSED);
	end();
}

/* -- messages -- */

static void
messages_of_all_lengths_arrive_in_order(void)
{
	const uint32_t lens[] = {0, 1, 8, PLX_CHAN_RX_SHORT, PLX_CHAN_RX_SHORT + 1, 500};

	for (uint8_t attr = 0; attr < PLX_CHAN_UNICAST_N; attr++) {
		open_with(attr);
		for (unsigned i = 0; i < 600; i++) {
			unsigned from = i % 2;
			uint32_t len = i % 7 == 6 ? s[from].c.max_send : lens[i % 7];

			send_one(from, len);
			if (attr == PLX_CHAN_UU)
				taken(from, PLX_CHAN_SENT, 0);
			received(1 - from, len);
			if (attr != PLX_CHAN_UU)
				taken(from, PLX_CHAN_SENT, 0);
		}
		close_both();
	}
}

static void
a_full_device_delays_and_loses_nothing(void)
{
	unsigned n_sent = 0, n_received = 0;

	open_with(PLX_CHAN_RO);
	fake.depth = 3;
	fake.full_percent = 30;
	fake.delay_max = 3;
	for (unsigned i = 0; i < 300; i++)
		send_one(0, i % 200);
	while (n_received < 300) {
		if (s[1].n == 0)
			turns(1);
		while (s[1].n > 0)
			received(1, n_received++ % 200);
	}
	while (n_sent++ < 300)
		taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

/* -- acknowledgements -- */

static void
an_answer_carries_the_acknowledgement(void)
{
	open_with(PLX_CHAN_RO);
	for (unsigned i = 0; i < 50; i++) {
		for (unsigned k = 0; k < 2; k++) { /* each answers what it has just got */
			send_one(k, i);
			while (s[1 - k].n == 0)
				plx_worker_turn(s[1 - k].w);
			received(1 - k, i);
			UNIT_EQ(s[1 - k].n, 0);
			if (i == 0 && k == 0)
				continue;
			/* the end of what it answers comes a turn later, which sends no ACK */
			plx_worker_turn(s[1 - k].w);
			taken(1 - k, PLX_CHAN_SENT, 0);
		}
	}
	UNIT_EQ(s[0].w->chans.stat.acks + s[1].w->chans.stat.acks, 0);
	taken(1, PLX_CHAN_SENT, 0); /* the last has no answer */
	UNIT_EQ(s[0].w->chans.stat.acks, 1);
	close_both();
}

/* Turns of the receiver until it has n messages. */
static void
turns_until(unsigned n)
{
	while (s[1].n < n)
		plx_worker_turn(s[1].w);
}

static void
an_acknowledgement_waits_a_turn_for_an_answer(void)
{
	const struct plx_chan_stat *stat;

	open_with(PLX_CHAN_RU);
	stat = &s[1].w->chans.stat;
	send_one(0, 8);
	turns_until(1);
	UNIT_EQ(stat->acks, 0);
	plx_worker_turn(s[1].w); /* brings nothing more */
	UNIT_EQ(stat->acks, 1);
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	/* so many at once wait for nothing */
	for (unsigned i = 0; i < PLX_CHAN_ACK_MAX; i++)
		send_one(0, 8);
	turns_until(PLX_CHAN_ACK_MAX);
	UNIT_EQ(stat->acks, 2);
	for (unsigned i = 0; i < PLX_CHAN_ACK_MAX; i++) {
		received(1, 8);
		taken(0, PLX_CHAN_SENT, 0);
	}
	close_both();
}

static void
what_is_waited_for_is_acknowledged_at_once(void)
{
	const struct plx_chan_stat *stat;
	struct plx_chan_op *op;

	open_with(PLX_CHAN_RO);
	stat = &s[1].w->chans.stat;
	op = op_new(0, 8);
	op->urgent = true;
	plx_worker_chan_post(s[0].w, op);
	turns_until(1);
	UNIT_EQ(stat->acks, 1);
	plx_chan_set_timeout(&s[0].c, rte_get_tsc_hz());
	send_one(0, 8);
	turns_until(2);
	UNIT_EQ(stat->acks, 2);
	for (unsigned i = 0; i < 2; i++) {
		received(1, 8);
		taken(0, PLX_CHAN_SENT, 0);
	}
	close_both();
}

/* The receiver closes before it has acknowledged what it took. */
static void
what_was_taken_is_acknowledged_before_the_channel_closes(void)
{
	open_with(PLX_CHAN_RO);
	send_one(0, 8);
	turns_until(1);
	received(1, 8);
	UNIT_TRUE(s[1].c.owes_ack);
	plx_worker_chan_end(s[1].w, &s[1].c);
	taken(0, PLX_CHAN_SENT, 0);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	close_both();
}

/* -- buffers of the application's that the receiver reads -- */

#define LENT_MIN 500u
#define LENT_MAX 900u

static void
open_lending(uint8_t attr)
{
	open_with(attr);
	for (unsigned i = 0; i < 2; i++)
		s[i].w->chans.fetch_min = LENT_MIN;
}

static uint64_t
fetches(unsigned i)
{
	return s[i].w->chans.stat.fetches;
}

static void
long_messages_are_read_where_they_lie(void)
{
	const uint32_t lens[] = {8, LENT_MIN - 1, LENT_MIN, LENT_MAX};

	for (uint8_t attr = 0; attr < PLX_CHAN_UNICAST_N; attr++) {
		open_lending(attr);
		for (unsigned i = 0; i < 5 * RTE_DIM(lens); i++) {
			uint32_t len = lens[i % RTE_DIM(lens)];
			uint64_t before = fetches(1);

			send_one(0, len);
			received(1, len);
			taken(0, PLX_CHAN_SENT, 0);
			UNIT_EQ(fetches(1) - before, attr != PLX_CHAN_UU && len >= LENT_MIN);
		}
		UNIT_EQ(s[1].w->chans.stat.unfetched, 0);
		close_both();
	}
}

static void
a_copy_of_ours_is_sent(void)
{
	struct plx_chan_op *op;

	open_lending(PLX_CHAN_RO);
	op = op_new(0, LENT_MAX);
	op->data = memcpy(plx_pool_get(&s[0].w->chans.bufs), bytes, LENT_MAX);
	op->own_buf = true;
	plx_worker_chan_post(s[0].w, op);
	received(1, LENT_MAX);
	taken(0, PLX_CHAN_SENT, 0);
	UNIT_EQ(fetches(1), 0);
	close_both();
}

/* It has found out when the others are on their way. */
static void
what_can_not_be_read_is_sent_in_order(void)
{
	const uint32_t lens[] = {LENT_MAX, 8, 700, 100, LENT_MAX};

	for (uint8_t attr = 0; attr < PLX_CHAN_UU; attr++) {
		open_lending(attr);
		fake.get_err = -EPERM;
		for (unsigned round = 0; round < 2; round++) {
			for (unsigned i = 0; i < RTE_DIM(lens); i++)
				send_one(0, lens[i]);
			for (unsigned i = 0; i < RTE_DIM(lens); i++)
				received(1, lens[i]);
			for (unsigned i = 0; i < RTE_DIM(lens); i++)
				taken(0, PLX_CHAN_SENT, 0);
		}
		UNIT_EQ(fetches(1), 0);
		UNIT_EQ(s[1].w->chans.stat.unfetched, 1);
		close_both();
	}
}

/* The application has the buffer again when the channel ends, and may write there. */
static void
what_is_not_lent_any_more_is_not_taken(void)
{
	static uint8_t mine[LENT_MAX];
	struct plx_chan_op *op;

	open_lending(PLX_CHAN_RO);
	op = op_new(0, LENT_MAX);
	op->data = mine;
	plx_worker_chan_post(s[0].w, op);
	plx_worker_chan_end(s[0].w, &s[0].c);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	memset(mine, 0xee, sizeof(mine));
	turns(10);
	UNIT_EQ(s[1].n, 0);
	UNIT_EQ(s[1].w->chans.stat.unfetched, 1);
	close_both();
}

static void
what_is_lent_waits_for_buffers(void)
{
	open_lending(PLX_CHAN_RU);
	for (unsigned i = 0; i < 3 * RX_MAX; i++)
		send_one(0, LENT_MIN + i);
	turns(20);
	UNIT_EQ(s[1].n, RX_MAX);
	for (unsigned i = 0; i < 3 * RX_MAX; i++)
		received(1, LENT_MIN + i);
	for (unsigned i = 0; i < 3 * RX_MAX; i++)
		taken(0, PLX_CHAN_SENT, 0);
	UNIT_EQ(fetches(1), 3 * RX_MAX);
	close_both();
}

/* A stranger's: too long, of no channel, not the next one. */
static void
what_makes_no_sense_is_not_read(void)
{
	struct plx_wire_chan_fetch h = {.addr = (uintptr_t)bytes, .lent_addr = (uintptr_t)bytes};

	open_lending(PLX_CHAN_RO);
	for (unsigned i = 0; i < 3; i++) {
		h.msg.to = i == 1 ? s[1].c.id + 1 : s[1].c.id;
		h.msg.number = s[1].c.rx_next + (i == 2);
		h.len = i == 0 ? MAX_SEND + 1 : 8;
		fake_inject(s[0].w->queues[0], s[1].w->queues[0], PLX_WIRE_CHAN_FETCH, &h, sizeof(h));
		turns(2);
	}
	UNIT_EQ(s[1].w->chans.stat.rx_drop_bad_len, 1);
	UNIT_EQ(s[1].w->chans.stat.rx_drop_no_chan, 1);
	UNIT_EQ(s[1].w->chans.stat.rx_again, 1);
	UNIT_EQ(s[1].w->chans.stat.unfetched + fetches(1) + s[1].n, 0);
	close_both();
}

/* -- receivers without buffers -- */

static void
a_sender_waits_for_buffers_and_goes_on_in_order(void)
{
	open_with(PLX_CHAN_RU);
	for (unsigned i = 0; i < 3 * RX_MAX; i++)
		send_one(0, i);
	turns(20);
	UNIT_EQ(s[1].n, RX_MAX);
	UNIT_EQ(s[0].n, RX_MAX);
	UNIT_EQ(s[1].w->chans.stat.rnr_told, 1);
	UNIT_EQ(s[0].w->chans.stat.rnr_heard, 1);
	for (unsigned i = 0; i < 3 * RX_MAX; i++)
		received(1, i);
	for (unsigned i = 0; i < 3 * RX_MAX; i++)
		taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

static void
unreliable_messages_without_a_buffer_are_counted(void)
{
	open_with(PLX_CHAN_UU);
	for (unsigned i = 0; i < RX_MAX + 5; i++) {
		send_one(0, 8);
		taken(0, PLX_CHAN_SENT, 0);
	}
	turns(10);
	UNIT_EQ(s[1].n, RX_MAX);
	UNIT_EQ(s[1].w->chans.stat.rx_drop_no_buf, 5);
	while (s[1].n > 0)
		received(1, 8);
	close_both();
}

/* The channel that waits for the buffer has closed: the next one gets the event. */
static void
an_invitation_is_not_lost_with_its_channel(void)
{
	open_with(PLX_CHAN_RO);
	for (unsigned i = 0; i < RX_MAX + 1; i++)
		send_one(0, 8);
	turns(10);
	UNIT_EQ(s[1].w->chans.stat.rnr_told, 1);
	plx_worker_chan_end(s[0].w, &s[0].c);
	for (unsigned i = 0; i < RX_MAX; i++) {
		struct plx_chan_item *item = take(0, PLX_CHAN_SENT);

		plx_chan_op_put(&s[0].w->chans, container_of(item, struct plx_chan_op, item));
	}
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	while (s[1].n > 0)
		received(1, 8);
	turns(5);
	UNIT_TRUE(TAILQ_EMPTY(&s[1].w->chans.starved));
	close_both();
}

/* -- RMA -- */

static uint8_t target[100000];

static struct plx_chan_op *
rma_new(const struct plx_region_key *key, uint64_t len, bool get, bool has_msg)
{
	static uint8_t local[sizeof(target)];
	struct plx_chan_op *op = op_new(0, 3);

	op->has_msg = has_msg;
	op->rma.len = len;
	op->rma.local = local;
	op->rma.remote = (uintptr_t)target;
	op->rma.index = key->index;
	op->rma.token = key->token;
	op->rma.get = get;
	op->rma.fence = false;
	return op;
}

/* A message, RMA with one, a message: they come and end as they were issued. */
static void
on_ro_the_message_of_an_rma_comes_in_its_place(void)
{
	struct plx_region_key key;

	open_with(PLX_CHAN_RO);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)target, sizeof(target),
		PLX_REGION_READ | PLX_REGION_WRITE, &key), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct plx_chan_op *op[3] = {op_new(0, 1), rma_new(&key, sizeof(target), i % 2, true),
			op_new(0, 2)};
		const uint32_t lens[] = {1, 3, 2};

		for (unsigned k = 0; k < 3; k++)
			plx_worker_chan_post(s[0].w, op[k]);
		for (unsigned k = 0; k < 3; k++)
			received(1, lens[k]);
		for (unsigned k = 0; k < 3; k++) {
			UNIT_TRUE(take(0, PLX_CHAN_SENT) == &op[k]->item);
			UNIT_EQ(op[k]->item.status, 0);
			plx_chan_op_put(&s[0].w->chans, op[k]);
		}
	}
	UNIT_EQ(s[1].w->rma.stat.fetches, 3);
	plx_region_remove(&key);
	close_both();
}

/* By messages, from then on. */
static void
a_target_that_may_not_fetch_is_written_to(void)
{
	struct plx_region_key key;

	open_with(PLX_CHAN_RU);
	fake.refuse_percent = 100;
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)target, sizeof(target), PLX_REGION_WRITE, &key), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct plx_chan_op *op = rma_new(&key, sizeof(target), false, false);

		unit_fill(op->rma.local, sizeof(target), i);
		plx_worker_chan_post(s[0].w, op);
		taken(0, PLX_CHAN_SENT, 0);
		UNIT_TRUE(unit_is_filled(target, sizeof(target), i));
	}
	UNIT_EQ(s[1].w->rma.stat.fetches, 1);
	plx_region_remove(&key);
	close_both();
}

static void
an_rma_that_is_refused_sends_no_message(void)
{
	struct plx_region_key key, none = {.index = 1, .token = 1};

	open_with(PLX_CHAN_RU);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)target, sizeof(target), PLX_REGION_READ, &key), 0);
	plx_worker_chan_post(s[0].w, rma_new(&key, 10, false, true));
	taken(0, PLX_CHAN_SENT, -EOPNOTSUPP);
	plx_worker_chan_post(s[0].w, rma_new(&key, sizeof(target) + 1, true, true));
	taken(0, PLX_CHAN_SENT, -EKEYREJECTED);
	none.index = key.index;
	plx_worker_chan_post(s[0].w, rma_new(&none, 10, true, true));
	taken(0, PLX_CHAN_SENT, -EKEYREJECTED);
	turns(10);
	UNIT_EQ(s[1].n, 0);
	plx_region_remove(&key);
	close_both();
}

static void
the_end_of_a_channel_ends_its_rma(void)
{
	struct plx_region_key key;

	open_with(PLX_CHAN_RO);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)target, sizeof(target), PLX_REGION_WRITE, &key), 0);
	fake_block(s[0].w->queues[0], true);
	for (unsigned i = 0; i < 3; i++)
		plx_worker_chan_post(s[0].w, rma_new(&key, sizeof(target), false, true));
	plx_worker_chan_end(s[0].w, &s[0].c);
	fake_block(s[0].w->queues[0], false);
	for (unsigned i = 0; i < 3; i++)
		taken(0, PLX_CHAN_SENT, -ECONNRESET);
	plx_region_remove(&key);
	close_both();
}

/* -- groups -- */

static void
a_group_reaches_who_is_in_it(void)
{
	uint8_t packed[PLX_WIRE_ADDR_MAX];
	struct plx_wire_addr addr;

	begin();
	UNIT_EQ_FATAL(plx_worker_chan_join(s[0].w, &s[0].c, PLX_CHAN_MC_TX, 77), 0);
	UNIT_EQ_FATAL(plx_worker_chan_join(s[1].w, &s[1].c, PLX_CHAN_MC_RX, 77), 0);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, 0); /* to nobody */
	UNIT_TRUE_FATAL(plx_worker_addr(s[0].w, packed, sizeof(packed)) > 0);
	UNIT_EQ_FATAL(plx_wire_addr_unpack(packed, &addr), 0);
	for (unsigned i = 0; i < 2; i++) /* the second time it is known */
		UNIT_EQ(plx_worker_chan_meet(s[1].w, &s[1].c, &addr, s[0].c.id), 0);
	send_one(0, 500);
	taken(0, PLX_CHAN_SENT, 0);
	received(1, 500);
	plx_worker_chan_end(s[1].w, &s[1].c);
	for (unsigned i = 0; i < 3; i++) {
		send_one(0, 8);
		taken(0, PLX_CHAN_SENT, 0);
		turns(3);
	}
	UNIT_EQ(s[1].w->chans.stat.rx_drop_no_chan, 1); /* it was reported once */
	UNIT_TRUE(LIST_EMPTY(&s[0].c.members));
	close_both();
}

/* -- closing -- */

static void
what_is_on_its_way_to_a_closed_channel_ends_so(void)
{
	open_with(PLX_CHAN_RO);
	plx_worker_chan_end(s[1].w, &s[1].c);
	send_one(0, 8);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	UNIT_EQ(plx_chan_err(&s[0].c), -ECONNRESET);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	close_both();
}

/* -- time -- */

static void
what_has_been_acknowledged_is_not_late(void)
{
	open_with(PLX_CHAN_RU);
	plx_chan_set_timeout(&s[0].c, plx_chan_ticks(&s[0].w->chans, 1000000));
	send_one(0, 8);
	fake_block(s[1].w->queues[0], true); /* its ACK has to wait, and goes with the answer */
	while (s[1].n == 0)
		plx_worker_turn(s[1].w);
	received(1, 8);
	send_one(1, 8);
	fake_block(s[1].w->queues[0], false);
	plx_worker_turn(s[1].w);
	while (s[0].n == 0)
		plx_worker_turn(s[0].w);
	plx_timers_run(&s[0].w->timers, rte_rdtsc() + 2 * rte_get_tsc_hz());
	received(0, 8);
	UNIT_EQ(s[0].w->chans.stat.timeouts, 0);
	UNIT_EQ(s[1].w->chans.stat.acks, 0);
	taken(0, PLX_CHAN_SENT, 0);
	taken(1, PLX_CHAN_SENT, 0);
	close_both();
}

static void
what_was_acknowledged_before_the_end_ends_well(void)
{
	open_with(PLX_CHAN_RU);
	send_one(0, 8);
	turns_until(1);
	received(1, 8);
	send_one(1, 8);
	while (s[0].n == 0)
		plx_worker_turn(s[0].w);
	plx_worker_chans_fail(s[0].w);
	received(0, 8);
	taken(0, PLX_CHAN_FAILED, -ENXIO);
	taken(0, PLX_CHAN_SENT, 0);
	taken(1, PLX_CHAN_SENT, 0);
	close_both();
}

static void
a_send_that_waits_too_long_breaks_the_channel(void)
{
	for (unsigned starved = 0; starved < 2; starved++) {
		open_with(PLX_CHAN_RO);
		plx_chan_set_timeout(&s[0].c, plx_chan_ticks(&s[0].w->chans, 1000000));
		for (unsigned i = 0; starved && i < RX_MAX; i++)
			send_one(0, 8);
		turns(10);
		for (unsigned i = 0; starved && i < RX_MAX; i++)
			taken(0, PLX_CHAN_SENT, 0);
		send_one(0, 8);
		send_one(0, 8);
		if (starved)
			turns(10);
		plx_timers_run(&s[0].w->timers, rte_rdtsc() + rte_get_tsc_hz() / 2);
		UNIT_EQ(s[0].n, 0);
		plx_timers_run(&s[0].w->timers, rte_rdtsc() + 2 * rte_get_tsc_hz());
		taken(0, PLX_CHAN_SENT, starved ? -ENOSR : -ETIMEDOUT);
		taken(0, PLX_CHAN_SENT, starved ? -ENOSR : -ETIMEDOUT);
		UNIT_EQ(s[0].w->chans.stat.timeouts, 1);
		turns(10);
		while (s[1].n > 0)
			received(1, 8);
		UNIT_EQ(plx_chan_err(&s[1].c), -ECONNRESET);
		close_both();
	}
}

static void
silence_is_told_once_and_only_of_a_peer_that_is_silent(void)
{
	uint64_t now = rte_rdtsc(), period;

	open_with(PLX_CHAN_RO);
	period = plx_chan_ticks(&s[0].w->chans, 1000000);
	plx_chan_set_keepalive(&s[0].c, period);
	for (unsigned i = 0; i < 5; i++) {
		now += 2 * period;
		plx_timers_run(&s[0].w->timers, now);
		turns(5); /* it answers */
	}
	UNIT_EQ(s[0].n, 0);
	UNIT_EQ(s[0].w->chans.stat.keepalives, 5);
	for (unsigned i = 0; i < 5; i++) {
		now += 2 * period;
		plx_timers_run(&s[0].w->timers, now);
	}
	UNIT_EQ(s[0].n, 1);
	taken(0, PLX_CHAN_SILENCE, 0);
	UNIT_EQ(s[0].c.keep_ticks, 0);
	send_one(0, 8); /* it is a channel all the same */
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

/* -- nonsense -- */

static void
what_makes_no_sense_changes_nothing(void)
{
	struct plx_wire_chan h = {.value = 5};
	struct plx_wire_chan_msg m = {.number = 5};
	struct plx_wire_chan_ask bad = {.attr = PLX_CHAN_UNICAST_N};
	struct plx_chans *cs;
	struct plx_peer *src;

	open_with(PLX_CHAN_RO);
	cs = &s[0].w->chans;
	src = s[0].c.ep->peer;
	h.to = m.to = s[0].c.id;
	plx_chan_on_ack(cs, src, &h); /* of what was never sent */
	plx_chan_on_ctl(cs, src, PLX_WIRE_CHAN_RNR, &h);
	UNIT_EQ(cs->stat.rx_drop_bad_value, 2);
	plx_chan_on_msg(cs, src, m, bytes, 8); /* of another number */
	UNIT_EQ(cs->stat.rx_again, 1);
	m.ack = 1;
	plx_chan_on_msg(cs, src, m, bytes, 8);
	UNIT_EQ(cs->stat.rx_drop_bad_value, 3);
	m = (struct plx_wire_chan_msg){.to = s[0].c.id};
	plx_chan_on_msg(cs, src, m, bytes, MAX_SEND + 1);
	plx_chan_on_ask(cs, src, &bad, bytes, 0);
	UNIT_EQ(cs->stat.rx_drop_bad_len, 2);
	h.to = m.to = s[0].c.id + 1;
	plx_chan_on_msg(cs, src, m, bytes, 8); /* for nobody */
	plx_chan_on_ack(cs, src, &h);
	UNIT_EQ(cs->stat.rx_drop_no_chan, 2);
	send_one(0, 8);
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	UNIT_EQ(s[0].n, 0);
	close_both();
}

int
main(void)
{
	CU_TestInfo tests[] = {
		UNIT_TEST(both_sides_agree_on_a_channel),
		UNIT_TEST(a_request_that_is_rejected_is_refused),
		UNIT_TEST(a_late_answer_opens_nothing),
		UNIT_TEST(the_death_of_the_peer_ends_connecting),
		UNIT_TEST(messages_of_all_lengths_arrive_in_order),
		UNIT_TEST(a_full_device_delays_and_loses_nothing),
		UNIT_TEST(an_answer_carries_the_acknowledgement),
		UNIT_TEST(an_acknowledgement_waits_a_turn_for_an_answer),
		UNIT_TEST(what_is_waited_for_is_acknowledged_at_once),
		UNIT_TEST(what_was_taken_is_acknowledged_before_the_channel_closes),
		UNIT_TEST(long_messages_are_read_where_they_lie),
	UNIT_TEST(a_copy_of_ours_is_sent),
	UNIT_TEST(what_can_not_be_read_is_sent_in_order),
	UNIT_TEST(what_is_not_lent_any_more_is_not_taken),
	UNIT_TEST(what_is_lent_waits_for_buffers),
	UNIT_TEST(what_makes_no_sense_is_not_read),
	UNIT_TEST(a_sender_waits_for_buffers_and_goes_on_in_order),
		UNIT_TEST(unreliable_messages_without_a_buffer_are_counted),
		UNIT_TEST(an_invitation_is_not_lost_with_its_channel),
		UNIT_TEST(on_ro_the_message_of_an_rma_comes_in_its_place),
		UNIT_TEST(a_target_that_may_not_fetch_is_written_to),
		UNIT_TEST(an_rma_that_is_refused_sends_no_message),
		UNIT_TEST(the_end_of_a_channel_ends_its_rma),
		UNIT_TEST(a_group_reaches_who_is_in_it),
		UNIT_TEST(what_is_on_its_way_to_a_closed_channel_ends_so),
		UNIT_TEST(what_has_been_acknowledged_is_not_late),
		UNIT_TEST(what_was_acknowledged_before_the_end_ends_well),
		UNIT_TEST(a_send_that_waits_too_long_breaks_the_channel),
		UNIT_TEST(silence_is_told_once_and_only_of_a_peer_that_is_silent),
		UNIT_TEST(what_makes_no_sense_changes_nothing),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"chan", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

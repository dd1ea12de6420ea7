/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_lossy_test.c - unreliable channels on a fake device that has datagrams
 */
#include "chan_test.h"

#define LOSSY_MTU 600u

/* A channel on a device that has datagrams, which the server does not know to be open yet. */
static void
open_lossy(void)
{
	struct plx_chan_request *r;

	begin();
	fake.lossy_mtu = LOSSY_MTU;
	ask(PLX_CHAN_UU, 0);
	r = asked();
	UNIT_EQ(plx_worker_chan_answer(s[1].w, r, &s[1].c), 0);
	plx_chan_item_put(&s[1].w->chans, &r->item);
	while (s[0].n == 0) /* DONE stays on its way */
		plx_worker_turn(s[0].w);
	taken(0, PLX_CHAN_CONNECTED, 0);
}

static void
unreliable_messages_go_as_datagrams(void)
{
	uint64_t by_ep;

	open_lossy();
	taken(1, PLX_CHAN_ACCEPTED, 0);
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ(s[i].c.max_send, LOSSY_MTU - sizeof(struct plx_wire_chan));
		by_ep = s[i].w->queues[0]->stat.tx_msgs;
		for (uint32_t len = 0; len <= s[i].c.max_send; len += 1 + len / 4) {
			send_one(i, len);
			taken(i, PLX_CHAN_SENT, 0); /* at once */
			received(!i, len);
		}
		UNIT_EQ(s[i].w->chans.stat.lossy_msgs, s[i].w->chans.stat.msgs);
		UNIT_EQ(s[i].w->queues[0]->stat.tx_msgs, by_ep);
	}
	close_both();
}

static void
reliable_messages_do_not(void)
{
	for (uint8_t attr = 0; attr < PLX_CHAN_UU; attr++) {
		struct plx_chan_request *r;

		begin();
		fake.lossy_mtu = LOSSY_MTU;
		ask(attr, 0);
		r = asked();
		UNIT_EQ(plx_worker_chan_answer(s[1].w, r, &s[1].c), 0);
		plx_chan_item_put(&s[1].w->chans, &r->item);
		taken(0, PLX_CHAN_CONNECTED, 0);
		taken(1, PLX_CHAN_ACCEPTED, 0);
		send_one(0, LOSSY_MTU);
		received(1, LOSSY_MTU);
		taken(0, PLX_CHAN_SENT, 0);
		UNIT_EQ(fake.n_lossy, 0);
		close_both();
	}
}

/* DONE and CLOSE travel by another way, and slower. */
static void
a_datagram_that_is_faster_than_done_opens_the_channel(void)
{
	open_lossy();
	UNIT_EQ(s[1].c.state, PLX_CHAN_ACCEPTING);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, 0);
	fake_lossy_run(s[1].w->queues[0]);
	UNIT_EQ_FATAL(s[1].n, 2);
	taken(1, PLX_CHAN_ACCEPTED, 0);
	received(1, 8);
	UNIT_TRUE(fake_on_the_way(s[0].w->queues[0], s[1].w->queues[0]) > 0); /* DONE */
	turns(10);
	UNIT_EQ(s[1].c.state, PLX_CHAN_OPEN);
	UNIT_EQ(s[1].n, 0);
	close_both();
}

static void
a_datagram_that_is_slower_than_close_is_counted(void)
{
	open_lossy();
	taken(1, PLX_CHAN_ACCEPTED, 0);
	plx_worker_chan_end(s[1].w, &s[1].c);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, 0);
	turns(10);
	UNIT_EQ(s[1].w->chans.stat.rx_drop_no_chan, 1);
	send_one(0, 8);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	close_both();
}

static void
datagrams_that_are_lost_are_no_error(void)
{
	unsigned n = 0;

	open_lossy();
	taken(1, PLX_CHAN_ACCEPTED, 0);
	fake.lossy_percent = 50;
	for (unsigned i = 0; i < 100; i++) {
		send_one(0, 8);
		taken(0, PLX_CHAN_SENT, 0);
		for (turns(1); s[1].n > 0; n++)
			received(1, 8);
	}
	UNIT_TRUE(n > 20 && n < 80);
	UNIT_EQ(s[0].w->chans.stat.lossy_msgs, 100);
	UNIT_EQ(s[1].w->chans.stat.rx_msgs, n);
	close_both();
}

static void
datagrams_wait_for_room_in_their_order(void)
{
	open_lossy();
	taken(1, PLX_CHAN_ACCEPTED, 0);
	fake.lossy_full = true;
	for (unsigned i = 0; i < 5; i++)
		send_one(0, i);
	turns(10);
	UNIT_EQ(s[0].n, 0);
	fake.lossy_full = false;
	send_one(0, 5); /* behind them */
	for (unsigned i = 0; i < 6; i++) {
		received(1, i);
		taken(0, PLX_CHAN_SENT, 0);
	}
	close_both();
}

static void
datagrams_that_wait_come_back_when_their_channel_ends(void)
{
	open_lossy();
	taken(1, PLX_CHAN_ACCEPTED, 0);
	fake.lossy_full = true;
	send_one(0, 8);
	send_one(0, 300);
	plx_worker_chan_end(s[0].w, &s[0].c);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	taken(0, PLX_CHAN_SENT, -ECONNRESET);
	close_both();
}

/* One side has none, or its record of them is malformed: the ep's connection does it. */
static void
without_datagrams_on_both_sides_the_connection_serves(void)
{
	for (unsigned how = 0; how < 3; how++) {
		struct plx_chan_request *r;

		begin();
		fake.lossy_mtu = how == 0 ? 0 : LOSSY_MTU;
		ask(PLX_CHAN_UU, 0);
		r = asked();
		UNIT_EQ(r->ask.lossy != 0, how != 0);
		if (how == 1)
			fake.lossy_mtu = 0; /* the server has none */
		if (how == 2)
			r->ask.lossy = 0xffffff;
		UNIT_EQ(plx_worker_chan_answer(s[1].w, r, &s[1].c), 0);
		plx_chan_item_put(&s[1].w->chans, &r->item);
		taken(0, PLX_CHAN_CONNECTED, 0);
		taken(1, PLX_CHAN_ACCEPTED, 0);
		for (unsigned i = 0; i < 2; i++) {
			UNIT_TRUE(s[i].c.max_send > LOSSY_MTU);
			send_one(i, s[i].c.max_send);
			received(!i, s[i].c.max_send);
			taken(i, PLX_CHAN_SENT, 0);
		}
		UNIT_EQ(s[1].w->chans.stat.rx_drop_bad_value, how == 2);
		UNIT_EQ(fake.n_lossy, 0);
		close_both();
	}
}

static void
an_answer_that_names_no_place_is_counted(void)
{
	struct plx_wire_chan_answer h = {.from = 7, .max = 100, .lossy = 0xffffff};

	begin();
	fake.lossy_mtu = LOSSY_MTU;
	ask(PLX_CHAN_UU, 0);
	plx_chan_item_put(&s[1].w->chans, &asked()->item);
	h.to = s[0].c.id;
	plx_chan_on_answer(&s[0].w->chans, s[0].c.ep->peer, &h);
	taken(0, PLX_CHAN_CONNECTED, 0);
	UNIT_EQ(s[0].w->chans.stat.rx_drop_bad_value, 1);
	UNIT_TRUE(!s[0].c.lossy);
	close_both();
}

static void
what_is_no_message_of_a_channel_is_no_datagram(void)
{
	const struct plx_wire_chan h = {.to = 0};
	struct plx_rx rx = {.data = (const uint8_t *)&h, .len = sizeof(h)};
	struct plx_worker *w;
	uint64_t before;

	open_lossy();
	taken(1, PLX_CHAN_ACCEPTED, 0);
	w = s[1].w;
	rx.src = s[1].c.ep->peer;
	before = w->stat.rx_drop_bad_op;
	for (rx.op = 0; rx.op < PLX_WIRE_N; rx.op++)
		if (rx.op != PLX_WIRE_CHAN_LOSSY)
			w->queues[0]->on_lossy(w->queues[0], &rx);
	UNIT_EQ(w->stat.rx_drop_bad_op - before, PLX_WIRE_N - 1);
	rx.op = PLX_WIRE_CHAN_LOSSY;
	rx.len = sizeof(h) - 1;
	w->queues[0]->on_lossy(w->queues[0], &rx);
	UNIT_EQ(w->stat.rx_drop_bad_op - before, PLX_WIRE_N);
	rx.len = sizeof(h);
	w->queues[0]->on_lossy(w->queues[0], &rx);
	UNIT_EQ(w->chans.stat.rx_drop_no_chan, 1);
	UNIT_EQ(s[1].n, 0);
	close_both();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(unreliable_messages_go_as_datagrams),
		UNIT_TEST(reliable_messages_do_not),
		UNIT_TEST(a_datagram_that_is_faster_than_done_opens_the_channel),
		UNIT_TEST(a_datagram_that_is_slower_than_close_is_counted),
		UNIT_TEST(datagrams_that_are_lost_are_no_error),
		UNIT_TEST(datagrams_wait_for_room_in_their_order),
		UNIT_TEST(datagrams_that_wait_come_back_when_their_channel_ends),
		UNIT_TEST(without_datagrams_on_both_sides_the_connection_serves),
		UNIT_TEST(an_answer_that_names_no_place_is_counted),
		UNIT_TEST(what_is_no_message_of_a_channel_is_no_datagram),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"chan_lossy", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

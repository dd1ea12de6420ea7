/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_short_test.c - short messages that nothing is in the way of, and workers that lie still
 */
#include "chan_test.h"

static void
open_with(uint8_t attr)
{
	struct plx_chan_request *r;

	begin();
	ask(attr, 0);
	r = asked();
	UNIT_EQ(plx_worker_chan_answer(s[1].w, r, &s[1].c), 0);
	plx_chan_item_put(&s[1].w->chans, &r->item);
	taken(0, PLX_CHAN_CONNECTED, 0);
	taken(1, PLX_CHAN_ACCEPTED, 0);
	for (unsigned i = 0; i < 2; i++) { /* then there are operations to take */
		send_one(i, 8);
		received(!i, 8);
		taken(i, PLX_CHAN_SENT, 0);
	}
}

/* @return whether it went so */
static bool
send_short(unsigned i, uint32_t len)
{
	struct plx_chans *cs = &s[i].w->chans;
	struct plx_chan_op *op = plx_chan_op_short(cs, &s[i].c, len);
	int rc;

	if (op == NULL)
		return false;
	memcpy(op->bytes, bytes, len);
	rc = plx_chan_tx_short(&s[i].c, op, len);
	op->item.chan = &s[i].c;
	op->item.chan_id = s[i].c.id;
	op->item.flags = 5;
	op->len = len;
	op->context = &s[i];
	plx_worker_chan_post_short(s[i].w, &s[i].c, op, rc);
	return true;
}

/* -- sending -- */

static void
short_messages_are_like_others(void)
{
	for (uint8_t attr = 0; attr < PLX_CHAN_UU; attr++) {
		open_with(attr);
		for (uint32_t len = 0; len < 90; len++) {
			struct plx_chan_item *item;

			UNIT_TRUE_FATAL(send_short(len % 2, len));
			UNIT_TRUE_FATAL(send_short(len % 2, 8));
			send_one(len % 2, 300); /* and others between them */
			received(!(len % 2), len);
			received(!(len % 2), 8);
			received(!(len % 2), 300);
			for (unsigned k = 0; k < 3; k++) {
				item = take(len % 2, PLX_CHAN_SENT);
				UNIT_EQ(item->status, 0);
				UNIT_EQ(item->chan_id, s[len % 2].c.id);
				if (k < 2) {
					UNIT_EQ(item->flags, 5);
					UNIT_TRUE(container_of(item, struct plx_chan_op, item)->context ==
						  &s[len % 2]);
				}
				plx_chan_op_put(&s[len % 2].w->chans,
					container_of(item, struct plx_chan_op, item));
			}
		}
		UNIT_EQ(s[0].w->chans.stat.msgs + s[1].w->chans.stat.msgs, 2 + 3 * 90);
		close_both();
	}
}

static void
a_short_message_carries_the_acknowledgement(void)
{
	uint64_t acks;

	open_with(PLX_CHAN_RO);
	turns(4);
	acks = s[0].w->chans.stat.acks + s[1].w->chans.stat.acks;
	for (unsigned i = 0; i < 50; i++) {
		UNIT_TRUE(send_short(i % 2, 8));
		while (s[!(i % 2)].n == 0)
			plx_worker_turn(s[!(i % 2)].w);
		received(!(i % 2), 8);
		if (i > 0) {
			plx_worker_turn(s[!(i % 2)].w);
			taken(!(i % 2), PLX_CHAN_SENT, 0);
		}
	}
	UNIT_EQ(s[0].w->chans.stat.acks + s[1].w->chans.stat.acks, acks);
	taken(1, PLX_CHAN_SENT, 0);
	close_both();
}

static void
a_short_message_does_not_go_before_what_waits(void)
{
	open_with(PLX_CHAN_RO);
	fake_block(s[0].w->queues[0], true);
	UNIT_TRUE(send_short(0, 20)); /* it waits until there is room */
	UNIT_TRUE(s[0].w->queues[0]->stat.tx_full > 0);
	UNIT_TRUE(!send_short(0, 8));
	fake_block(s[0].w->queues[0], false);
	UNIT_TRUE(!send_short(0, 8));
	received(1, 20);
	UNIT_TRUE(send_short(0, 8));
	received(1, 8);
	for (unsigned i = 0; i < 2; i++)
		taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

static void
a_short_message_waits_for_its_receiver(void)
{
	open_with(PLX_CHAN_RU);
	for (unsigned i = 0; i < RX_MAX; i++)
		UNIT_TRUE(send_short(0, 8));
	while (s[1].n < RX_MAX)
		turns(1);
	UNIT_TRUE(send_short(0, 8)); /* finds no buffer */
	turns(4);
	UNIT_EQ(s[1].w->chans.stat.rnr_told, 1);
	UNIT_TRUE(!send_short(0, 8));
	for (unsigned i = 0; i <= RX_MAX; i++)
		received(1, 8); /* what was refused there is sent again */
	for (unsigned i = 0; i <= RX_MAX; i++)
		taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

static void
a_short_message_with_a_timeout_goes_the_long_way(void)
{
	open_with(PLX_CHAN_RO);
	UNIT_EQ(plx_worker_chan_set(s[0].w, &s[0].c, PLX_CHAN_OPT_TIMEOUT, 1000000), 0);
	send_one(0, 8);
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	UNIT_TRUE(!send_short(0, 8));
	UNIT_EQ(plx_worker_chan_set(s[0].w, &s[0].c, PLX_CHAN_OPT_TIMEOUT, 0), 0);
	UNIT_TRUE(send_short(0, 8));
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

static void
only_short_messages_of_open_reliable_channels_go_so(void)
{
	open_with(PLX_CHAN_RO);
	UNIT_TRUE(!send_short(0, s[0].c.ep->peer->short_max - 7));
	UNIT_TRUE(send_short(0, s[0].c.ep->peer->short_max - 8));
	received(1, s[0].c.ep->peer->short_max - 8);
	taken(0, PLX_CHAN_SENT, 0);
	plx_worker_chan_end(s[1].w, &s[1].c);
	turns(4);
	UNIT_EQ(s[0].c.state, PLX_CHAN_CLOSED);
	UNIT_TRUE(!send_short(0, 8));
	close_both();
	open_with(PLX_CHAN_UU);
	UNIT_TRUE(!send_short(0, 8));
	close_both();
}

/* -- the line that an answer is written to, which the other side looks at -- */

static struct plx_chan_item *
comes_to_1(void)
{
	send_one(0, 8);
	return take(1, PLX_CHAN_RECV);
}

static void
goes_back_on_1(struct plx_chan_item *item)
{
	plx_chan_item_back(item);
	plx_chan_item_put(&s[1].w->chans, item);
}

static void
answers_from_1(void)
{
	UNIT_TRUE(send_short(1, 8));
	received(0, 8);
	taken(0, PLX_CHAN_SENT, 0);
}

static void
who_answers_is_to_have_the_line_when_a_message_comes_back(void)
{
	struct plx_chan_item *item;

	open_with(PLX_CHAN_RU);
	for (unsigned i = 0; i < 3; i++) {
		item = comes_to_1();
		UNIT_TRUE(s[1].c.answers);
		plx_chan_item_out(item);
		UNIT_TRUE(s[1].c.answers);
		goes_back_on_1(item);
		UNIT_TRUE(!s[1].c.answers);
		answers_from_1();
		taken(1, PLX_CHAN_SENT, 0);
	}
	item = comes_to_1();
	goes_back_on_1(item);
	item = comes_to_1(); /* it only receives now: the line would be taken in vain */
	UNIT_TRUE(!s[1].c.answers);
	goes_back_on_1(item);
	for (unsigned i = 0; i < 2; i++)
		taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

static void
who_answers_first_is_to_have_it_when_a_message_goes_out(void)
{
	struct plx_chan_item *item;

	open_with(PLX_CHAN_RO);
	for (unsigned i = 0; i < 3; i++) {
		item = comes_to_1();
		UNIT_TRUE(s[1].c.answers);
		plx_chan_item_out(item);
		UNIT_EQ(s[1].c.answers, i == 0); /* then it is known */
		answers_from_1();
		goes_back_on_1(item);
		UNIT_EQ(s[1].c.answers, i == 0);
		taken(1, PLX_CHAN_SENT, 0);
	}
	close_both();
}

static void
lines_are_asked_for_when_a_program_is_told(void)
{
	static uint8_t line[64];
	struct plx_chan_items ready = STAILQ_HEAD_INITIALIZER(ready);
	struct plx_peer *peer;

	open_with(PLX_CHAN_RU);
	peer = s[1].c.ep->peer;
	peer->tx_line = line;
	send_one(0, 8);
	received(1, 8);
	CU_ASSERT_PTR_EQUAL(peer->tx_asked, line); /* by the turn: how it is reported is not known */
	peer->tx_asked = NULL;
	turns(2);
	s[1].w->chans.ready = &ready;
	send_one(0, 8);
	turns(1);
	UNIT_TRUE_FATAL(!STAILQ_EMPTY(&ready));
	CU_ASSERT_PTR_NULL(peer->tx_asked);
	peer->tx_line = NULL;
	s[1].w->chans.ready = NULL;
	plx_chan_item_put(&s[1].w->chans, STAILQ_FIRST(&ready));
	for (unsigned i = 0; i < 2; i++)
		taken(0, PLX_CHAN_SENT, 0);
	close_both();
}

/* -- looking -- */

static bool
is_still(unsigned i)
{
	return plx_worker_peek(s[i].w) == PLX_RX_NONE;
}

/* As many looks as find nothing. */
static unsigned
looks(unsigned i)
{
	unsigned n = 0;

	while (n < 2 * PLX_WORKER_LOOKS && is_still(i))
		n++;
	return n;
}

static void
settle(void)
{
	for (unsigned k = 0; k < 10; k++)
		turns(1);
}

static void
a_still_worker_needs_few_turns(void)
{
	uint64_t empty, turns_before;

	open_with(PLX_CHAN_RU);
	settle();
	s[0].w->timers_turn = UINT64_MAX; /* behind which a turn is due */
	empty = s[0].w->empty_turns;
	turns_before = s[0].w->stat.turns;
	for (unsigned round = 0; round < 20; round++) {
		UNIT_EQ(looks(0), PLX_WORKER_LOOKS - 1);
		UNIT_EQ(plx_worker_progress_slow(s[0].w), 0); /* now and then one */
	}
	/* the spinning behind it counts looks as fewer turns, timers count them as such */
	UNIT_EQ(s[0].w->empty_turns, (empty / PLX_LOOKS_WORTH + 20) * PLX_LOOKS_WORTH);
	UNIT_EQ(s[0].w->stat.turns, turns_before + 20 * PLX_WORKER_LOOKS);
	close_both();
}

static void
a_message_ends_stillness(void)
{
	uint64_t turns_before;

	open_with(PLX_CHAN_RU);
	settle();
	UNIT_TRUE(is_still(1));
	send_one(0, 8);
	turns_before = s[1].w->stat.turns;
	UNIT_EQ(plx_worker_progress(s[1].w), 1);
	UNIT_EQ(s[1].w->stat.turns, turns_before + 1);
	UNIT_EQ(s[1].w->empty_turns, 0);
	UNIT_EQ(s[1].n, 1);
	UNIT_EQ(plx_worker_peek(s[1].w), PLX_RX_BURST); /* it owes an acknowledgement */
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	settle();
	UNIT_TRUE(is_still(1));
	close_both();
}

static void
what_is_asked_of_a_worker_ends_stillness(void)
{
	open_with(PLX_CHAN_RU);
	settle();
	UNIT_TRUE(is_still(0));
	send_one(0, 8);
	UNIT_EQ(looks(0), 0);
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	settle();
	UNIT_TRUE(is_still(0));
	UNIT_EQ(plx_worker_chan_set(s[0].w, NULL, PLX_CHAN_OPT_RX_MAX, RX_MAX), 0);
	UNIT_EQ(looks(0), 0);
	close_both();
}

static void
a_worker_with_something_to_do_is_not_still(void)
{
	open_with(PLX_CHAN_RU);
	fake_block(s[0].w->queues[0], true);
	send_one(0, 8);
	settle();
	UNIT_EQ(looks(0), 0); /* it offers the message again */
	fake_block(s[0].w->queues[0], false);
	received(1, 8);
	taken(0, PLX_CHAN_SENT, 0);
	for (unsigned i = 0; i < RX_MAX; i++)
		send_one(0, 8);
	while (s[1].n < RX_MAX)
		turns(1);
	settle();
	UNIT_EQ(looks(1), 0); /* its face is to say that it is full */
	for (unsigned i = 0; i < RX_MAX; i++) {
		received(1, 8);
		taken(0, PLX_CHAN_SENT, 0);
	}
	close_both();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(short_messages_are_like_others),
		UNIT_TEST(a_short_message_carries_the_acknowledgement),
		UNIT_TEST(a_short_message_does_not_go_before_what_waits),
		UNIT_TEST(a_short_message_waits_for_its_receiver),
		UNIT_TEST(a_short_message_with_a_timeout_goes_the_long_way),
		UNIT_TEST(only_short_messages_of_open_reliable_channels_go_so),
		UNIT_TEST(who_answers_is_to_have_the_line_when_a_message_comes_back),
		UNIT_TEST(who_answers_first_is_to_have_it_when_a_message_goes_out),
		UNIT_TEST(lines_are_asked_for_when_a_program_is_told),
		UNIT_TEST(a_still_worker_needs_few_turns),
		UNIT_TEST(a_message_ends_stillness),
		UNIT_TEST(what_is_asked_of_a_worker_ends_stillness),
		UNIT_TEST(a_worker_with_something_to_do_is_not_still),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"chan_short", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

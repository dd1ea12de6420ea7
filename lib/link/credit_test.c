/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * credit_test.c - two sides that send, receive and tell credits in any order: no
 * message ever finds no slot, and nobody is stuck for ever
 */
#include <stdio.h>
#include <string.h>

#include "plx_credit.h"
#include "plx_unit.h"

#define ON_WAY 4096
#define BUDGET 1024

/* One side: what it has sent that has not arrived yet. */
struct side {
	struct plx_credit c;
	struct plx_credit_note told[ON_WAY]; /* what each message carries */
	uint64_t sent, arrived;
	uint32_t slots;	     /* of ours, that are posted */
	uint32_t held;	     /* arrived and not released */
	uint64_t data, ctl;
};

static struct side s[2];
static uint64_t rng;
static uint16_t want; /* most of a grant */

static void
start(uint16_t grant0, uint16_t grant1)
{
	memset(s, 0, sizeof(s));
	want = 0; /* no grant grows */
	s[0].c = (struct plx_credit){.left = grant1, .most = grant1, .granted = grant0};
	s[1].c = (struct plx_credit){.left = grant0, .most = grant0, .granted = grant1};
	s[0].slots = grant0;
	s[1].slots = grant1;
}

static bool
send(struct side *a, bool ctl)
{
	if (a->sent - a->arrived == ON_WAY)
		return false;
	if (!(ctl ? plx_credit_has_last(&a->c) : plx_credit_has(&a->c))) {
		a->c.ran_out = true;
		return false;
	}
	a->told[a->sent++ % ON_WAY] = plx_credit_take(&a->c);
	*(ctl ? &a->ctl : &a->data) += 1;
	return true;
}

/* The next message of a arrives at b. */
static bool
arrive(struct side *a, struct side *b)
{
	const struct plx_credit_note *note = &a->told[a->arrived % ON_WAY];
	uint16_t more;

	if (a->sent == a->arrived)
		return false;
	UNIT_TRUE_FATAL(b->slots > 0);
	b->slots--;
	a->arrived++;
	UNIT_EQ_FATAL(plx_credit_told(&b->c, note->n, note->are_new), 0);
	b->held++;
	more = note->ran_out ? plx_credit_more(&b->c, b->c.granted, BUDGET, want) : 0;
	b->slots += more;
	plx_credit_grow(&b->c, more);
	return true;
}

static bool
release(struct side *a)
{
	if (a->held == 0)
		return false;
	a->held--;
	a->slots++;
	a->c.owed++;
	return true;
}

static bool
tell(struct side *a)
{
	return plx_credit_urgent(&a->c) && send(a, true);
}

/* Everything but new data, until nothing moves. */
static void
settle(void)
{
	bool moved;
	unsigned n = 0;

	do {
		moved = false;
		for (unsigned i = 0; i < 2; i++) {
			moved |= arrive(&s[i], &s[!i]);
			moved |= release(&s[i]);
			moved |= tell(&s[i]);
		}
		UNIT_TRUE_FATAL(++n < 100000); /* telling comes to rest */
	} while (moved);
}

static void
exchange(uint16_t g0, uint16_t g1, uint16_t most)
{
	start(g0, g1);
	want = most;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = unit_rng(&rng) & 1;

		switch (unit_rng(&rng) % 6) {
		case 0:
		case 1:
			send(&s[k], false);
			break;
		case 2:
		case 3:
			arrive(&s[k], &s[!k]);
			break;
		case 4:
			release(&s[k]);
			break;
		default:
			tell(&s[k]);
			break;
		}
		UNIT_TRUE_FATAL(s[k].c.left <= s[k].c.most);
	}
	/* At rest both may send again, two that belong together as well. */
	settle();
	UNIT_TRUE(plx_credit_has(&s[0].c) && plx_credit_has_two(&s[0].c));
	UNIT_TRUE(plx_credit_has(&s[1].c) && plx_credit_has_two(&s[1].c));
}

static void
no_message_finds_no_slot_and_nobody_is_stuck(void)
{
	rng = unit_seed(1);
	for (uint16_t g0 = PLX_CREDIT_MIN; g0 <= 12; g0++)
		for (uint16_t g1 = PLX_CREDIT_MIN; g1 <= 12; g1++)
			exchange(g0, g1, RTE_MAX(g0, g1));
	exchange(64, 4, 64);
	exchange(1024, 1024, 1024);
}

static void
nor_do_they_when_grants_grow(void)
{
	rng = unit_seed(2);
	for (uint16_t g0 = PLX_CREDIT_MIN; g0 <= 12; g0++)
		for (uint16_t g1 = PLX_CREDIT_MIN; g1 <= 12; g1++) {
			exchange(g0, g1, 64);
			UNIT_EQ(s[0].c.granted, s[1].c.most);
			UNIT_EQ(s[1].c.granted, s[0].c.most);
		}
}

static void
who_runs_out_again_and_again_has_the_whole_window_soon(void)
{
	unsigned n = 0;

	start(8, 8);
	want = 64;
	while (s[1].c.granted < 64) {
		while (send(&s[0], false))
			n++;
		settle();
	}
	UNIT_EQ(s[0].c.most, 64);
	UNIT_TRUE(n <= 7 + 15 + 31 + 3); /* 8, 16, 32; it is announced with the message after */
	UNIT_EQ(s[0].c.granted, 8);
}

static void
no_peer_makes_itself_a_window_without_end(void)
{
	struct plx_credit c = {.left = 60, .most = 64};

	UNIT_EQ(plx_credit_told(&c, PLX_CREDIT_MAX - 63, true), -EBADMSG);
	UNIT_EQ(c.most, 64);
	UNIT_EQ(plx_credit_told(&c, PLX_CREDIT_MAX - 64, true), 0);
	UNIT_EQ(c.most, PLX_CREDIT_MAX);
	UNIT_EQ(c.left, PLX_CREDIT_MAX - 4);
	UNIT_EQ(plx_credit_told(&c, 1, true), -EBADMSG);
	c.most = UINT16_MAX; /* what it said at first is not ours to choose */
	UNIT_EQ(plx_credit_told(&c, 1, true), -EBADMSG);
}

static void
grants_grow_within_the_budget(void)
{
	struct plx_credit c = {.granted = 8};

	UNIT_EQ(plx_credit_more(&c, 100, 1024, 64), 8);
	UNIT_EQ(plx_credit_more(&c, 100, 1024, 13), 5);
	UNIT_EQ(plx_credit_more(&c, 100, 1024, 10), 0); /* worth no message */
	UNIT_EQ(plx_credit_more(&c, 1000, 1024, 64), 6);
	UNIT_EQ(plx_credit_more(&c, 1010, 1024, 64), 0);
	UNIT_EQ(plx_credit_more(&c, 2000, 1024, 64), 0);
}

static void
one_way_traffic_costs_few_messages_of_credits(void)
{
	start(64, 64);
	for (unsigned i = 0; i < 64 * 100; i++) {
		if (!send(&s[0], false))
			settle();
		arrive(&s[0], &s[1]);
		release(&s[1]);
		if (tell(&s[1]))
			arrive(&s[1], &s[0]);
	}
	UNIT_TRUE(s[0].data > 64 * 90);
	UNIT_TRUE(s[1].ctl <= s[0].data / 31);
	UNIT_TRUE(s[0].ctl <= s[1].ctl / 31 + 1);
}

static void
more_credits_than_were_granted_are_refused(void)
{
	struct plx_credit c = {.left = 60, .most = 64};

	UNIT_EQ(plx_credit_told(&c, 5, false), -EBADMSG);
	UNIT_EQ(c.left, 60);
	UNIT_EQ(plx_credit_told(&c, 4, false), 0);
	UNIT_EQ(c.left, 64);
	UNIT_EQ(plx_credit_told(&c, UINT16_MAX, false), -EBADMSG);
}

static void
grants_shrink_with_the_number_of_peers_and_end_with_the_room(void)
{
	uint32_t total = 0, n = 0;
	uint16_t last = 64, g;

	UNIT_EQ(plx_credit_grant(0, 1024, 4096, 64), 64);
	while ((g = plx_credit_grant(total, 1024, 4096, 64)) != 0) {
		UNIT_TRUE(g <= last && g >= PLX_CREDIT_MIN);
		last = g;
		total += g;
		n++;
	}
	UNIT_EQ(total, 4096);
	UNIT_TRUE(n > 700);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(no_message_finds_no_slot_and_nobody_is_stuck),
	UNIT_TEST(nor_do_they_when_grants_grow),
	UNIT_TEST(who_runs_out_again_and_again_has_the_whole_window_soon),
	UNIT_TEST(no_peer_makes_itself_a_window_without_end),
	UNIT_TEST(grants_grow_within_the_budget),
	UNIT_TEST(one_way_traffic_costs_few_messages_of_credits),
	UNIT_TEST(more_credits_than_were_granted_are_refused),
	UNIT_TEST(grants_shrink_with_the_number_of_peers_and_end_with_the_room),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"credit", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}

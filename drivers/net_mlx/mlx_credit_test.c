/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_credit_test.c - two sides that send, receive and tell credits in any order: no
 * message ever finds no slot, and nobody is stuck for ever
 */
#include <stdio.h>
#include <string.h>

#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define ON_WAY 4096

/* One side: what it has sent that has not arrived yet. */
struct side {
	struct mlx_credit c;
	uint16_t told[ON_WAY]; /* credits that each message carries */
	uint64_t sent, arrived;
	uint32_t slots;	     /* of ours, that are posted */
	uint32_t held;	     /* arrived and not released */
	uint64_t data, ctl;
};

static struct side s[2];
static uint64_t rng;

static void
start(uint16_t grant0, uint16_t grant1)
{
	memset(s, 0, sizeof(s));
	s[0].c = (struct mlx_credit){.left = grant1, .most = grant1, .granted = grant0};
	s[1].c = (struct mlx_credit){.left = grant0, .most = grant0, .granted = grant1};
	s[0].slots = grant0;
	s[1].slots = grant1;
}

static bool
send(struct side *a, bool ctl)
{
	if (a->sent - a->arrived == ON_WAY ||
		!(ctl ? mlx_credit_has_last(&a->c) : mlx_credit_has(&a->c)))
		return false;
	a->told[a->sent++ % ON_WAY] = mlx_credit_take(&a->c);
	*(ctl ? &a->ctl : &a->data) += 1;
	return true;
}

/* The next message of a arrives at b. */
static bool
arrive(struct side *a, struct side *b)
{
	if (a->sent == a->arrived)
		return false;
	UNIT_TRUE_FATAL(b->slots > 0);
	b->slots--;
	UNIT_EQ_FATAL(mlx_credit_told(&b->c, a->told[a->arrived++ % ON_WAY]), 0);
	b->held++;
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
	return mlx_credit_urgent(&a->c) && send(a, true);
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
exchange(uint16_t g0, uint16_t g1)
{
	start(g0, g1);
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
	/* At rest both may send again. */
	settle();
	UNIT_TRUE(mlx_credit_has(&s[0].c));
	UNIT_TRUE(mlx_credit_has(&s[1].c));
}

static void
no_message_finds_no_slot_and_nobody_is_stuck(void)
{
	rng = unit_seed(1);
	for (uint16_t g0 = MLX_CREDIT_MIN; g0 <= 12; g0++)
		for (uint16_t g1 = MLX_CREDIT_MIN; g1 <= 12; g1++)
			exchange(g0, g1);
	exchange(64, 4);
	exchange(1024, 1024);
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
	struct mlx_credit c = {.left = 60, .most = 64};

	UNIT_EQ(mlx_credit_told(&c, 5), -EBADMSG);
	UNIT_EQ(c.left, 60);
	UNIT_EQ(mlx_credit_told(&c, 4), 0);
	UNIT_EQ(c.left, 64);
	UNIT_EQ(mlx_credit_told(&c, UINT16_MAX), -EBADMSG);
}

static void
grants_shrink_with_the_number_of_peers_and_end_with_the_room(void)
{
	uint32_t total = 0, n = 0;
	uint16_t last = 64, g;

	UNIT_EQ(mlx_credit_grant(0, 1024, 4096, 64), 64);
	while ((g = mlx_credit_grant(total, 1024, 4096, 64)) != 0) {
		UNIT_TRUE(g <= last && g >= MLX_CREDIT_MIN);
		last = g;
		total += g;
		n++;
	}
	UNIT_EQ(total, 4096);
	UNIT_TRUE(n > 700);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(no_message_finds_no_slot_and_nobody_is_stuck),
	UNIT_TEST(one_way_traffic_costs_few_messages_of_credits),
	UNIT_TEST(more_credits_than_were_granted_are_refused),
	UNIT_TEST(grants_shrink_with_the_number_of_peers_and_end_with_the_room),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx_credit", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}

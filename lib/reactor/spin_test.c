/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * spin_test.c - spinning beside who computes, yielding to who waits
 */
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_spin.h"
#include "plx_unit.h"

#define EVERY (1u << PLX_SPIN_TRY_MIN)
#define RARE  (1u << PLX_SPIN_TRY_MAX)

static struct plx_spin s;
static uint64_t len; /* of a window, ticks */

static uint64_t
us_ticks(uint64_t us)
{
	return rte_get_tsc_hz() * us / 1000000; /* as of the library: 62.5 ticks a us are not 62 */
}

/* Begin window w and, if we yield in it, report n yields of so many us each. @return whether we yield in it */
static bool
pass(uint64_t w, unsigned n, uint64_t us)
{
	bool yields;

	len = us_ticks(PLX_SPIN_WINDOW_US);
	yields = plx_spin_wait(&s, w * len + 5);
	UNIT_EQ(plx_spin_wait(&s, (w + 1) * len - 1), yields);
	for (unsigned i = 0; yields && i < n; i++)
		plx_spin_yielded(&s, us_ticks(us));
	return yields;
}

/* @return how many of these windows are ones of yields */
static unsigned
passes(uint64_t w, unsigned windows, unsigned n, uint64_t us)
{
	unsigned k = 0;

	for (unsigned i = 0; i < windows; i++)
		k += pass(w + i, n, us);
	return k;
}

static void
begin(void)
{
	memset((void *)&s, 0, sizeof(s));
}

static void
on_a_core_of_its_own_it_spins_and_tries_in_one_window_of_eight(void)
{
	begin();
	UNIT_TRUE(!pass(EVERY * 1000 + 1, 100, 0));
	UNIT_EQ(passes(EVERY * 1000 + 2, 10 * EVERY, 100, 0), 10);
	UNIT_TRUE(pass(EVERY * 1020, 0, 0)); /* at the same ticks in all processes */
	UNIT_TRUE(!pass(EVERY * 1020 + 1, 0, 0));
	/* now and then the kernel does something: that is nobody */
	UNIT_EQ(passes(EVERY * 1021, 10 * EVERY, PLX_SPIN_FEW - 1, 20), 10);
}

static void
beside_others_who_wait_it_yields_until_they_are_gone(void)
{
	begin();
	UNIT_EQ(passes(EVERY * 10 + 1, EVERY - 1, 100, 20), 0);
	UNIT_EQ(passes(EVERY * 11, 30, 100, 20), 30);
	UNIT_EQ(passes(EVERY * 20 + 1, 2, PLX_SPIN_FEW - 1, 20), 1); /* as asked in the one before */
	UNIT_EQ(passes(EVERY * 20 + 3, EVERY - 3, 100, 20), 0);
	UNIT_TRUE(pass(EVERY * 21, 100, 20));
}

static void
beside_one_who_computes_it_spins_and_tries_ever_more_rarely(void)
{
	const uint64_t hog_us = 2 * PLX_SPIN_HOG_US;

	begin();
	for (uint64_t w = 0; w < 2 * RARE; w++) /* the calendar's first window is one of all trials */
		UNIT_EQ(pass(RARE * 100 + w, 2, hog_us), w == 0 || (w >= 2 * EVERY && (w & (w - 1)) == 0));
	UNIT_EQ(passes(RARE * 102, 10 * RARE, 100, hog_us), 10);
	/* it has ended, and others wait */
	UNIT_EQ(passes(RARE * 112, RARE, 100, 20), RARE);
	/* again one who computes */
	UNIT_EQ(passes(RARE * 113, 2 * EVERY, 2, hog_us), 1);
}

static void
many_who_spin_try_at_once(void)
{
	struct plx_spin others[3];

	begin();
	memset((void *)others, 0, sizeof(others));
	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		others[i].calm = i; /* each has met one who computes at another time */
		UNIT_TRUE(plx_spin_wait(&others[i], RARE * us_ticks(PLX_SPIN_WINDOW_US)));
		others[i] = (struct plx_spin){.calm = i};
		UNIT_EQ(plx_spin_wait(&others[i], (RARE + EVERY) * us_ticks(PLX_SPIN_WINDOW_US)), i == 0);
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(on_a_core_of_its_own_it_spins_and_tries_in_one_window_of_eight),
	UNIT_TEST(beside_others_who_wait_it_yields_until_they_are_gone),
	UNIT_TEST(beside_one_who_computes_it_spins_and_tries_ever_more_rarely),
	UNIT_TEST(many_who_spin_try_at_once),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"spin", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * spin_test.c - spinning beside who computes, yielding to who waits
 */
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_clock.h"
#include "plx_spin.h"
#include "plx_unit.h"

#define EVERY (1u << PLX_SPIN_TRY_MIN)
#define RARE  (1u << PLX_SPIN_TRY_MAX)

static struct plx_spin s;

static uint64_t
us_ticks(uint64_t us)
{
	return rte_get_tsc_hz() * us / 1000000; /* as of the library: 62.5 ticks a us are not 62 */
}

/* @return the ticks at us microseconds after the beginning of window w */
static uint64_t
ticks_of(uint64_t w, uint64_t us)
{
	return us_ticks(w * PLX_SPIN_WINDOW_US + us);
}

/* Begin window w and, if we yield in it, report n yields of so many us each. @return whether we yield in it */
static bool
pass(uint64_t w, unsigned n, uint64_t us)
{
	bool yields;

	plx_spin_begin(&s, ticks_of(w, 5), (w * PLX_SPIN_WINDOW_US + 5) * 1000);
	yields = plx_spin_yields(&s);
	for (unsigned i = 0; yields && i < n; i++)
		plx_spin_yielded(&s, ticks_of(w, 100), us_ticks(us));
	UNIT_EQ(plx_spin_wait(&s, ticks_of(w, PLX_SPIN_WINDOW_US - 1)), yields); /* it is still this window */
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
	UNIT_TRUE(pass(EVERY * 1020, 0, 0)); /* at the same time in all processes */
	UNIT_TRUE(!pass(EVERY * 1020 + 1, 0, 0));
	/* now and then the kernel does something: that is nobody */
	UNIT_EQ(passes(EVERY * 1021, 10 * EVERY, 20, 20), 10);
}

static void
beside_others_who_wait_it_yields_until_they_are_gone_for_a_while(void)
{
	begin();
	UNIT_EQ(passes(EVERY * 10 + 1, EVERY - 1, 100, 20), 0);
	UNIT_EQ(passes(EVERY * 11, 30, 100, 20), 30);
	UNIT_EQ(passes(EVERY * 11 + 30, PLX_SPIN_KEEPS, 20, 20), PLX_SPIN_KEEPS);
	UNIT_EQ(passes(EVERY * 11 + 30 + PLX_SPIN_KEEPS, 2, 100, 20), 0);
	UNIT_TRUE(pass(EVERY * 11 + 32 + PLX_SPIN_KEEPS, 100, 20));
}

/* Many wait, and one of them has not learned it yet: to the others it computes. */
static void
it_goes_on_beside_one_of_many_who_has_not_learned_yet(void)
{
	begin();
	UNIT_TRUE(pass(EVERY * 10, 100, 20));
	UNIT_EQ(passes(EVERY * 10 + 1, PLX_SPIN_KEEPS - 1, 2, 2 * PLX_SPIN_HOG_US), PLX_SPIN_KEEPS - 1);
	UNIT_TRUE(pass(EVERY * 10 + PLX_SPIN_KEEPS, 100, 20));
	UNIT_EQ(passes(EVERY * 10 + PLX_SPIN_KEEPS + 1, PLX_SPIN_KEEPS, 2, 2 * PLX_SPIN_HOG_US), PLX_SPIN_KEEPS);
	UNIT_EQ(s.calm, 0);
	UNIT_TRUE(!pass(EVERY * 10 + 2 * PLX_SPIN_KEEPS + 1, 2, 2 * PLX_SPIN_HOG_US));
}

static void
beside_one_who_computes_it_spins_and_tries_ever_more_rarely(void)
{
	const uint64_t hog_us = 2 * PLX_SPIN_HOG_US, most = 1u << PLX_SPIN_TRY_LONG;

	begin();
	for (uint64_t w = 1; w < 4 * RARE; w++)
		UNIT_EQ(pass(RARE * 100 + w, 2, hog_us),
			w < RARE ? w >= EVERY && (w & (w - 1)) == 0 : w % RARE < most);
	/* it has ended, and others wait */
	UNIT_EQ(passes(RARE * 112, RARE, 100, 20), RARE);
	/* again one who computes */
	UNIT_EQ(passes(RARE * 113, PLX_SPIN_KEEPS, 2, hog_us), PLX_SPIN_KEEPS);
	(void)passes(RARE * 113 + PLX_SPIN_KEEPS, RARE - PLX_SPIN_KEEPS, 2, hog_us);
	UNIT_EQ(passes(RARE * 114, 2 * RARE, 2, hog_us), 2 * most);
}

/* Such a trial shows nothing. */
static void
a_trial_in_which_it_does_not_wait_makes_trials_no_more_frequent(void)
{
	begin();
	(void)passes(RARE * 100 + 1, RARE - 1, 2, 2 * PLX_SPIN_HOG_US);
	UNIT_EQ(s.calm, PLX_SPIN_TRY_MAX - PLX_SPIN_TRY_MIN);
	(void)passes(RARE * 101, RARE, 0, 0);
	UNIT_EQ(s.calm, PLX_SPIN_TRY_MAX - PLX_SPIN_TRY_MIN);
	UNIT_TRUE(pass(RARE * 102, 1, 0)); /* nobody is there */
	(void)pass(RARE * 102 + 1, 0, 0);
	UNIT_EQ(s.calm, 0);
}

static void
a_counter_that_jumps_back_ends_the_window(void)
{
	const uint64_t now = rte_rdtsc();

	begin();
	s.until = now + us_ticks(3600ull * 1000000);
	(void)plx_spin_wait(&s, now);
	UNIT_TRUE(s.until - now < us_ticks(2 * PLX_SPIN_WINDOW_US));
	s.yields = true;
	s.next = now + us_ticks(3600ull * 1000000);
	UNIT_TRUE(plx_spin_wait(&s, now));
	plx_spin_yielded(&s, now, (uint64_t)-100000); /* within a yield */
	UNIT_EQ(s.takers, 0);
	UNIT_EQ(s.yielded, 0);
	s.next = now + us_ticks(PLX_SPIN_REST_US);
	UNIT_TRUE(!plx_spin_wait(&s, now));
}

/* @return how many of 1,000 yields in a row that take so long are due at once */
static unsigned
due_at_once(double us)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t now = ticks_of(EVERY * 10, 100);

		n += plx_spin_wait(&s, now);
		plx_spin_yielded(&s, now, (uint64_t)(us * (double)us_ticks(1000) / 1000));
	}
	return n;
}

static void
while_nobody_takes_the_core_it_yields_rarely(void)
{
	begin();
	UNIT_TRUE(pass(EVERY * 10, 1, 0));
	UNIT_TRUE(!plx_spin_wait(&s, ticks_of(EVERY * 10, 100 + PLX_SPIN_REST_US - 1)));
	UNIT_TRUE(plx_spin_wait(&s, ticks_of(EVERY * 10, 100 + PLX_SPIN_REST_US + 1)));
	UNIT_EQ(due_at_once(0.6), 0);
	UNIT_EQ(due_at_once(2.5), 999); /* all but the first: as they did */
	UNIT_EQ(due_at_once(0.6), 255); /* the kernel refuses some, to be fair */
}

/* Others measure the rate of the counter for themselves; the clock is everybody's. */
static void
windows_are_the_wall_clocks(void)
{
	const uint64_t len_ns = PLX_SPIN_WINDOW_US * 1000;
	uint64_t set = plx_clock_wall_ns() - plx_clock_ns();
	unsigned n[2] = {0, 0};

	begin();
	while (n[0] < 10000 || n[1] < 10000) {
		const uint64_t before = plx_clock_wall_ns(), is = before - plx_clock_ns();
		bool yields;

		if (is - set + len_ns / 8 > len_ns / 4) /* somebody has set the clock */
			begin();
		set = is;
		yields = plx_spin_wait(&s, rte_rdtsc());
		/* another thread had the core meanwhile, or it is an edge */
		if (plx_clock_wall_ns() / len_ns != before / len_ns || before % len_ns < len_ns / 100)
			continue;
		n[yields]++;
		UNIT_EQ(yields, before / len_ns % EVERY == 0);
	}
}

static void
many_who_spin_try_at_once(void)
{
	struct plx_spin others[3];

	begin();
	memset((void *)others, 0, sizeof(others));
	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		others[i].calm = i; /* each has met one who computes at another time */
		plx_spin_begin(&others[i], 1 + i, RARE * PLX_SPIN_WINDOW_US * UINT64_C(1000));
		UNIT_TRUE(plx_spin_yields(&others[i]));
		others[i] = (struct plx_spin){.calm = i};
		plx_spin_begin(&others[i], 1 + i, (RARE + EVERY) * PLX_SPIN_WINDOW_US * UINT64_C(1000));
		UNIT_EQ(plx_spin_yields(&others[i]), i == 0);
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(on_a_core_of_its_own_it_spins_and_tries_in_one_window_of_eight),
	UNIT_TEST(beside_others_who_wait_it_yields_until_they_are_gone_for_a_while),
	UNIT_TEST(it_goes_on_beside_one_of_many_who_has_not_learned_yet),
	UNIT_TEST(beside_one_who_computes_it_spins_and_tries_ever_more_rarely),
	UNIT_TEST(a_trial_in_which_it_does_not_wait_makes_trials_no_more_frequent),
	UNIT_TEST(a_counter_that_jumps_back_ends_the_window),
	UNIT_TEST(while_nobody_takes_the_core_it_yields_rarely),
	UNIT_TEST(windows_are_the_wall_clocks),
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

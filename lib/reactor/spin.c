/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * spin.c - learning whether to spin or to yield
 */
#include <sched.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_clock.h"
#include "plx_spin.h"
#include "reactor_int.h"

/* After a window with yields. */
static void
learn(struct plx_spin *s)
{
	const uint64_t yielded = atomic_load_explicit(&s->yielded, memory_order_relaxed);
	/* by time: for example a reactor that checks grants takes the core as well, for
	 * microseconds */
	const bool hog = 2 * atomic_load_explicit(&s->hogged, memory_order_relaxed) > yielded;
	uint8_t calm = atomic_load_explicit(&s->calm, memory_order_relaxed);
	uint8_t keeps = atomic_load_explicit(&s->keeps, memory_order_relaxed);

	if (hog && keeps == 0 && calm < PLX_SPIN_TRY_MAX - PLX_SPIN_TRY_MIN)
		calm++;
	/* who has not waited has seen nobody */
	if (!hog && atomic_load_explicit(&s->waited, memory_order_relaxed))
		calm = 0; /* a core of its own may be yielded at any time */
	if (yielded * PLX_SPIN_SHARE > us_ticks(PLX_SPIN_WINDOW_US) && !hog)
		keeps = PLX_SPIN_KEEPS;
	else if (keeps > 0)
		keeps--;
	atomic_store_explicit(&s->calm, calm, memory_order_relaxed);
	atomic_store_explicit(&s->keeps, keeps, memory_order_relaxed);
}

void
plx_spin_begin(struct plx_spin *s, uint64_t now_ticks, uint64_t wall_ns)
{
	const uint64_t len_ns = PLX_SPIN_WINDOW_US * 1000u, window = wall_ns / len_ns;
	const uint64_t left_us = (len_ns - wall_ns % len_ns) / 1000;
	uint8_t calm;
	bool tries;

	if (plx_spin_yields(s))
		learn(s);
	calm = atomic_load_explicit(&s->calm, memory_order_relaxed);
	tries = window % (1u << (PLX_SPIN_TRY_MIN + calm)) < (1u << RTE_MIN(calm, PLX_SPIN_TRY_LONG));
	atomic_store_explicit(&s->yields, tries || atomic_load_explicit(&s->keeps, memory_order_relaxed) != 0,
		memory_order_relaxed);
	/* a bit later, as the rate of the ticks is not exact: not twice in a window */
	atomic_store_explicit(&s->until, now_ticks + us_ticks(left_us + left_us / 256 + 1), memory_order_relaxed);
	atomic_store_explicit(&s->waited, false, memory_order_relaxed);
	atomic_store_explicit(&s->yielded, 0, memory_order_relaxed);
	atomic_store_explicit(&s->hogged, 0, memory_order_relaxed);
}

/*
 * @return whether the time of t has come, also if it is more than most_us away: the counter may jump
 * back, as a virtual machine moves to another host.
 */
static bool
has_come(const _Atomic uint64_t *t, uint64_t now_ticks, uint64_t most_us)
{
	return atomic_load_explicit(t, memory_order_relaxed) - now_ticks - 1 >= us_ticks(most_us);
}

bool
plx_spin_wait(struct plx_spin *s, uint64_t now_ticks)
{
	if (unlikely(has_come(&s->until, now_ticks, PLX_SPIN_JUMP_US)))
		plx_spin_begin(s, now_ticks, plx_clock_wall_ns());
	return plx_spin_yields(s) && has_come(&s->next, now_ticks, 2 * PLX_SPIN_REST_US);
}

void
plx_spin_yielded(struct plx_spin *s, uint64_t now_ticks, uint64_t ticks)
{
	const bool taken = (int64_t)ticks > 0 && ticks * 1000 >= us_ticks(PLX_SPIN_TAKEN_NS); /* the counter may jump back */
	uint8_t takers = atomic_load_explicit(&s->takers, memory_order_relaxed);

	atomic_store_explicit(&s->waited, true, memory_order_relaxed);
	if (taken)
		takers = RTE_MIN(takers + PLX_SPIN_TAKER * (ticks / us_ticks(1)), UINT64_C(255));
	else if (takers > 0)
		takers--;
	atomic_store_explicit(&s->takers, takers, memory_order_relaxed);
	atomic_store_explicit(&s->next, takers != 0 ? 0 : now_ticks + us_ticks(PLX_SPIN_REST_US), memory_order_relaxed);
	if (!taken)
		return;
	atomic_fetch_add_explicit(&s->yielded, ticks, memory_order_relaxed);
	if (ticks >= us_ticks(PLX_SPIN_HOG_US))
		atomic_fetch_add_explicit(&s->hogged, ticks, memory_order_relaxed);
}

void
plx_spin_yield(struct plx_spin *s)
{
	uint64_t start = rte_rdtsc(), end;

	sched_yield();
	end = rte_rdtsc();
	plx_spin_yielded(s, end, end - start);
}

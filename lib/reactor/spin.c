/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * spin.c - learning whether to spin or to yield
 */
#include <sched.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "plx_spin.h"
#include "reactor_int.h"

/* Called at the end of a window with yields. @return whether the next one yields */
static bool
learn(struct plx_spin *s)
{
	uint64_t yielded = atomic_load_explicit(&s->yielded, memory_order_relaxed);
	uint32_t taken = atomic_load_explicit(&s->taken, memory_order_relaxed);
	/* by time: for example a reactor that checks grants takes the core as well, for
	 * microseconds */
	bool hog = 2 * atomic_load_explicit(&s->hogged, memory_order_relaxed) > yielded;

	uint8_t calm = atomic_load_explicit(&s->calm, memory_order_relaxed);

	if (!hog)
		calm = 0; /* a core of its own may be yielded at any time */
	else if (calm < PLX_SPIN_TRY_MAX - PLX_SPIN_TRY_MIN)
		calm++;
	atomic_store_explicit(&s->calm, calm, memory_order_relaxed);
	return taken >= PLX_SPIN_FEW && !hog;
}

static void
next_window(struct plx_spin *s, uint64_t now_ticks)
{
	const uint64_t len = us_ticks(PLX_SPIN_WINDOW_US), window = now_ticks / len;
	bool keeps = plx_spin_yields(s) && learn(s);
	uint8_t calm = atomic_load_explicit(&s->calm, memory_order_relaxed);

	atomic_store_explicit(&s->yields, keeps || window % (1u << (PLX_SPIN_TRY_MIN + calm)) == 0,
		memory_order_relaxed);
	atomic_store_explicit(&s->until, (window + 1) * len, memory_order_relaxed);
	atomic_store_explicit(&s->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&s->yielded, 0, memory_order_relaxed);
	atomic_store_explicit(&s->hogged, 0, memory_order_relaxed);
}

bool
plx_spin_wait(struct plx_spin *s, uint64_t now_ticks)
{
	if (unlikely(now_ticks >= atomic_load_explicit(&s->until, memory_order_relaxed)))
		next_window(s, now_ticks);
	return plx_spin_yields(s);
}

void
plx_spin_yielded(struct plx_spin *s, uint64_t ticks)
{
	if (ticks * 1000 < us_ticks(PLX_SPIN_TAKEN_NS))
		return;
	atomic_fetch_add_explicit(&s->taken, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->yielded, ticks, memory_order_relaxed);
	if (ticks >= us_ticks(PLX_SPIN_HOG_US))
		atomic_fetch_add_explicit(&s->hogged, ticks, memory_order_relaxed);
}

void
plx_spin_yield(struct plx_spin *s)
{
	uint64_t start = rte_rdtsc();

	sched_yield();
	plx_spin_yielded(s, rte_rdtsc() - start);
}

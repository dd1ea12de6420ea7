/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * yield.c - yielding the core, and detecting whether it was taken
 */
#include <sched.h>
#include <sys/resource.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_yield.h"

/* How often this thread was switched away from, voluntarily or not. */
static uint64_t
thread_switches(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) == 0 ? (uint64_t)(u.ru_nvcsw + u.ru_nivcsw) : 0;
}

static void
set_every(struct plx_yield *y, uint32_t every)
{
	atomic_store_explicit(&y->every, every, memory_order_relaxed);
}

uint64_t
plx_yield_now(struct plx_yield *y)
{
	uint64_t before = atomic_load_explicit(&y->switches, memory_order_relaxed);
	uint64_t start = rte_rdtsc(), ticks, after;

	sched_yield();
	ticks = rte_rdtsc() - start;
	after = thread_switches();
	atomic_store_explicit(&y->switches, after, memory_order_relaxed);
	if (before == 0 || after == before) {
		uint32_t every = atomic_load_explicit(&y->every, memory_order_relaxed);
		uint32_t twice = 2 * RTE_MAX(every, PLX_YIELD_SHARED);

		set_every(y, RTE_MIN(twice, PLX_YIELD_MAX));
		return 0;
	}
	set_every(y, PLX_YIELD_SHARED);
	return ticks;
}

void
plx_yield_offer(struct plx_yield *y)
{
	if (atomic_load_explicit(&y->every, memory_order_relaxed) == 0)
		set_every(y, PLX_YIELD_FIRST); /* the first round is polled to its end */
	else if (plx_yield_is_hog(plx_yield_now(y)))
		set_every(y, PLX_YIELD_MAX);
}

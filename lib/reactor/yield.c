/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * yield.c - offering the core, and noticing whether it was taken
 */
#include <sched.h>
#include <sys/resource.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_yield.h"

/* How often this thread was switched away from, in its own time or not. */
static uint64_t
thread_switches(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) == 0 ? (uint64_t)(u.ru_nvcsw + u.ru_nivcsw) : 0;
}

uint64_t
plx_yield_now(struct plx_yield *y)
{
	uint64_t start = rte_rdtsc(), before = y->switches, ticks;

	sched_yield();
	ticks = rte_rdtsc() - start;
	y->switches = thread_switches();
	if (before == 0 || y->switches == before) {
		uint32_t twice = 2 * RTE_MAX(y->every, PLX_YIELD_SHARED);

		y->every = RTE_MIN(twice, PLX_YIELD_MAX);
		return 0;
	}
	y->every = PLX_YIELD_SHARED;
	return ticks;
}

void
plx_yield_offer(struct plx_yield *y)
{
	y->polls = 0;
	if (y->every == 0) /* the first round is polled to its end */
		y->every = PLX_YIELD_FIRST;
	else if (plx_yield_is_hog(plx_yield_now(y)))
		y->every = PLX_YIELD_MAX;
}

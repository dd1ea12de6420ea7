/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * yield.c - offering the core, and noticing whether it was taken
 */
#include <sched.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_yield.h"

/* A yield that nobody takes is back within 0.3 us; one that switches there and back is not. */
#define TAKEN_NS 1200

uint64_t
plx_yield_now(void)
{
	uint64_t start = rte_rdtsc(), ticks;

	sched_yield();
	ticks = rte_rdtsc() - start;
	return ticks > rte_get_tsc_hz() / 1000000 * TAKEN_NS / 1000 ? ticks : 0;
}

void
plx_yield_offer(struct plx_yield *y)
{
	y->polls = 0;
	if (y->every == 0) { /* the first round is polled to its end */
		y->every = PLX_YIELD_FIRST;
		return;
	}
	if (plx_yield_now() != 0)
		y->every = PLX_YIELD_SHARED;
	else
		y->every = RTE_MIN(y->every * 2, PLX_YIELD_MAX);
}

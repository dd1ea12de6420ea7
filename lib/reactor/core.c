/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * core.c - whether a reactor shares its core: it yields, and measures how long that takes
 */

#include "reactor_int.h"

#define SHARED_MS      20 /* how long the core counts as shared */
#define OFFER_MS       1 /* between two yields of a busy reactor */
#define SEEN_MS	       1000 /* the same, while its workers are granted now and then */

void
reactor_shared(struct plx_reactor *r, uint64_t now_ticks, bool near)
{
	if (!near && now_ticks > r->shared_seen + us_ticks(SEEN_MS * 1000))
		return;
	r->shared_until = now_ticks + us_ticks(SHARED_MS * 1000);
	r->hog = true; /* it sleeps and is woken: a polling thread releases the core late */
}

void
reactor_offer(struct plx_reactor *r, uint64_t now_ticks)
{
	uint64_t taken = plx_yield_now(&r->yield);

	if (taken == 0) { /* no other thread is there any more */
		r->shared_until = 0;
		return;
	}
	PLX_STAT_INC(r->stat.yields_taken);
	r->shared_seen = now_ticks + taken;
	r->shared_until = now_ticks + taken + us_ticks(SHARED_MS * 1000);
	r->hog = plx_yield_is_hog(taken);
}

bool
reactor_is_shared(struct plx_reactor *r, uint64_t now_ticks)
{
	if (reactor_has_core(r, now_ticks) && now_ticks - r->offered > us_ticks(OFFER_MS * 1000)) {
		r->offered = now_ticks;
		reactor_offer(r, now_ticks);
	}
	return !reactor_has_core(r, now_ticks);
}

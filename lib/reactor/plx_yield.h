/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_yield.h - offering the core to others while polling, as often as they take it
 *
 * The kernel counts how often a thread was switched away from: when that has grown over
 * an offer the core is shared, and is offered often; a core of one's own is offered
 * ever more rarely. So is one that is taken by somebody who computes: each offer costs
 * a slice of the scheduler, and what is waited for may come from another core.
 */
#ifndef PLX_YIELD_H
#define PLX_YIELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#define PLX_YIELD_FIRST	 256u  /* empty polls before the core is offered for the first time */
#define PLX_YIELD_LONG	 32u   /* the same, behind a post of what takes long: others may have to move it here */
#define PLX_YIELD_SHARED 4u    /* the same, when others had it since the last time */
#define PLX_YIELD_MAX	 2048u /* the same, when they never do, or compute */
#define PLX_YIELD_HOG_US 100   /* who keeps the core longer computes */

/**
 * How one waits. Owner: whoever polls; several threads may offer at once, and what they learn is
 * a guess then. All 0: it begins.
 */
struct plx_yield {
	uint32_t polls;		   /* empty ones since the core was offered, or something was found */
	_Atomic uint32_t every;	   /* offer it after so many; 0: PLX_YIELD_FIRST; relaxed, a guess */
	_Atomic uint64_t switches; /* of the thread, at the last offer; relaxed, the same */
};

/**
 * Offer the core, and see when to do so again.
 * @return ticks that it took if others have had the core since the last time; 0: they have not
 * Blocks: while others run.
 */
uint64_t plx_yield_now(struct plx_yield *y);

/** @return whether who had the core for so long computes. */
static inline bool
plx_yield_is_hog(uint64_t taken_ticks)
{
	return taken_ticks > rte_get_tsc_hz() / 1000000 * PLX_YIELD_HOG_US;
}

/** It is time for an offer, see plx_yield_due(). Blocks: while others run. */
void plx_yield_offer(struct plx_yield *y);

/** A poll found something. */
static inline void
plx_yield_found(struct plx_yield *y)
{
	y->polls = 0;
}

/** What is waited for now takes long. */
static inline void
plx_yield_long(struct plx_yield *y)
{
	y->polls = 0;
	atomic_store_explicit(&y->every, PLX_YIELD_LONG, memory_order_relaxed);
}

/** Others need the core: offer it often. */
static inline void
plx_yield_often(struct plx_yield *y)
{
	atomic_store_explicit(&y->every, PLX_YIELD_SHARED, memory_order_relaxed);
}

/** Nobody does, or only who computes: that is seen again after a while. */
static inline void
plx_yield_rarely(struct plx_yield *y)
{
	atomic_store_explicit(&y->every, PLX_YIELD_FIRST, memory_order_relaxed);
}

/** A poll found nothing. @return whether it is time for plx_yield_offer() */
static inline bool
plx_yield_due(struct plx_yield *y)
{
	if (likely(++y->polls < atomic_load_explicit(&y->every, memory_order_relaxed)))
		return false;
	y->polls = 0;
	return true;
}

/** A poll found nothing. Blocks: while others run. */
static inline void
plx_yield_empty(struct plx_yield *y)
{
	if (unlikely(plx_yield_due(y)))
		plx_yield_offer(y);
}

#endif

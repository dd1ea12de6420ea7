/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_yield.h - yielding the core while polling, as often as others take it
 *
 * The kernel counts how often a thread was switched away from: if that has grown over a yield the
 * core is shared, and is yielded often; a core of its own is yielded ever more rarely. So is one
 * that a computing thread takes: each yield costs a slice of the scheduler, and the awaited
 * message may come from another core.
 */
#ifndef PLX_YIELD_H
#define PLX_YIELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#define PLX_YIELD_FIRST	 256u  /* empty polls before the first yield */
#define PLX_YIELD_LONG	 32u   /* the same, after a post of long data: others may have to move it
                      	        * here */
#define PLX_YIELD_SHARED 4u    /* the same, if others took it since the last time */
#define PLX_YIELD_MAX	 2048u /* the same, if they never do, or compute */
#define PLX_YIELD_HOG_US 100   /* a thread that keeps the core longer computes */

/**
 * State of one waiting loop. Owner: the polling thread; several threads may yield at once,
 * and then the results are a guess. All 0: it begins.
 */
struct plx_yield {
	uint32_t polls;		   /* empty ones since the last yield, or event */
	_Atomic uint32_t every;	   /* yield after this many; 0: PLX_YIELD_FIRST; relaxed, a guess */
	_Atomic uint64_t switches; /* of the thread, at the last yield; relaxed, the same */
};

/**
 * Yield the core, and decide when to do so again.
 * @return ticks that it took if others have had the core since the last time; 0: they have
 *   not
 * Blocks: while others run.
 */
uint64_t plx_yield_now(struct plx_yield *y);

/** @return whether a thread that had the core for so long computes. */
static inline bool
plx_yield_is_hog(uint64_t taken_ticks)
{
	return taken_ticks > rte_get_tsc_hz() / 1000000 * PLX_YIELD_HOG_US;
}

/** It is time to yield, see plx_yield_due(). Blocks: while others run. */
void plx_yield_offer(struct plx_yield *y);

/** A poll found something. */
static inline void
plx_yield_found(struct plx_yield *y)
{
	y->polls = 0;
}

/** The event that the caller waits for will take long: yield the core at longer intervals. */
static inline void
plx_yield_long(struct plx_yield *y)
{
	y->polls = 0;
	atomic_store_explicit(&y->every, PLX_YIELD_LONG, memory_order_relaxed);
}

/** Others need the core: yield it often. */
static inline void
plx_yield_often(struct plx_yield *y)
{
	atomic_store_explicit(&y->every, PLX_YIELD_SHARED, memory_order_relaxed);
}

/** No other thread needs it, or only one that computes: check again after a while. */
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

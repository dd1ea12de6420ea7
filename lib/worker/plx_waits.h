/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_waits.h - what workers wait for, told by their owners to another thread
 *
 * Design notes: the lists of waiting operations are the owner's, and no lock guards them. So another thread asks,
 * and the owner, when it looks at its timers, writes a bounded list for it and goes on. A worker whose owner takes
 * no turns cannot tell, which is an answer as well: nobody calls progress.
 */
#ifndef PLX_WAITS_H
#define PLX_WAITS_H

#include <stdatomic.h>
#include <stdint.h>

#include "plx_req.h"

#define PLX_WAITS_MAX	   256	  /* operations that are listed of one worker */
#define PLX_WAITS_RECV_MIN 64	  /* of these, for posted receives, if there are so many */
#define PLX_WAITS_KEPT_MAX 64	  /* unexpected messages that are listed */
#define PLX_WAITS_EPS_MAX  65536u /* eps that are looked at */
#define PLX_WAITS_SORT_MAX 65536u /* posted receives; of more none is listed */

#define PLX_WAITS_LEVELS 20 /* of the past: each is twice as long as the one before */
#define PLX_WAITS_NOTES	 8  /* of one level */

/** The operations that one worker waits for. */
struct plx_waits {
	uint64_t ticks;	      /* when it was written */
	uint64_t quiet_ticks; /* for at least so long no turn has found anything */
	uint64_t n_waits, n_kept; /* that there are; eps and receives beyond the bounds count, too, as far as known */
	uint32_t n, n_msgs;   /* that are listed */
	struct plx_wait_info waits[PLX_WAITS_MAX];
	struct plx_wait_info kept[PLX_WAITS_KEPT_MAX];
};

/** A worker's counts at some time: an operation with a smaller number is older than that. */
struct plx_waits_note {
	uint64_t ticks; /* 0: none */
	uint64_t order; /* plx_tag_order() */
	uint64_t rma;	/* plx_rma.seq */
	uint64_t busy;	/* plx_worker_stat.busy_turns */
};

/** Of a worker. Owner: the worker's, unless said otherwise. */
struct plx_waits_of {
	_Atomic uint32_t asked; /* writer: the thread that asks, one at a time */
	_Atomic uint32_t told;	/* writer: owner; while it is asked, out is not written */
	struct plx_waits *out;	/* written by the thread that asks, before asked; the worker frees it */
	uint64_t looked_ticks;	/* at the timers, first when it opens; readers: any, relaxed */
	uint64_t n_notes;
	struct plx_waits_note notes[PLX_WAITS_LEVELS][PLX_WAITS_NOTES];
};

struct plx_worker;

/**
 * Ask all workers, or one, and call fn for each that was asked, the youngest first.
 * @param one its id; UINT64_MAX: all
 * @param timeout_ms for all of them together
 * @param fn gets the answer; NULL: the worker has taken no turn in time. No worker ends during the call
 * Thread: any but an owner. Blocks: up to timeout_ms. Allocates: heap, once a worker.
 */
void plx_waits_each(uint64_t one, uint32_t timeout_ms,
	void (*fn)(struct plx_worker *w, const struct plx_waits *waits, void *arg), void *arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * worker_post.h - between an operation of the application's side and the owner: act at once, or
 * post a message
 */
#ifndef WORKER_POST_H
#define WORKER_POST_H

#include <sched.h>

#include "worker_int.h"

/** Slow paths of worker_give(). */
void worker_free_after_call(struct plx_worker *w);
void worker_give_behind_turn(struct plx_worker *w);
/** @return whether all earlier posts have run. Thread: owner. */
bool worker_run_before(struct plx_worker *w);
/** The same in a callback, which can't leave it to a turn. */
void worker_run_all_before(struct plx_worker *w);

/*
 * After a call that took ownership for itself.
 * @param turn run a turn when one is due; false after a receive: the program is about to post more of
 *   them, and a turn would make the messages unexpected
 */
static inline void
worker_give(struct plx_worker *w, bool turn)
{
	if (unlikely(w->poller.gate.for_call)) {
		worker_free_after_call(w);
		return;
	}
	if (turn && unlikely(--w->turn_due <= 0)) {
		worker_give_behind_turn(w);
		return;
	}
	if (unlikely(w->wake.on))
		worker_wake_app(w, 1);
	plx_poller_give(&w->poller, 0);
}

/*
 * The reactor idles, and this thread runs: it becomes the owner for a call, as inline,
 * after earlier posts have run. @return whether; until worker_end()
 */
static inline bool
worker_begin(struct plx_worker *w)
{
	if (unlikely(plx_gate_is_within(&w->poller.gate))) {
		/* a callback calls: completions of this call follow it */
		plx_req_pool_end_direct(&w->reqs);
		if (unlikely(plx_inbox_waits(&w->inbox)))
			worker_run_all_before(w);
		return true;
	}
	if (!plx_poller_take(&w->poller, false))
		return false;
	if (unlikely(plx_inbox_waits(&w->inbox)) && !worker_run_before(w)) {
		worker_give(w, true);
		return false;
	}
	PLX_STAT_INC(w->stat.direct);
	return true;
}

static inline void
worker_end(struct plx_worker *w, bool turn)
{
	if (unlikely(plx_gate_is_within(&w->poller.gate))) {
		(void)plx_req_pool_begin_direct(&w->reqs); /* not, while that is pending */
		return;
	}
	worker_give(w, turn);
	if (unlikely(w->inbox.many))
		worker_look_behind(w);
}

/* A message to the owner, to be written. Blocks: until there is room. */
static inline struct plx_inbox_cell *
worker_cell(struct plx_worker *w, uint64_t *pos)
{
	struct plx_inbox_cell *c;

	/* The reactor always empties its inbox, so this ends. */
	while (unlikely((c = plx_inbox_take(&w->inbox, pos)) == NULL)) {
		worker_run_posted(w);
		plx_reactor_wake(&w->poller); /* of receives: see recv_cell_post() */
		sched_yield();
	}
	return c;
}

/* @return whether it is left to the reactor */
static inline bool
worker_cell_give(struct plx_worker *w, struct plx_inbox_cell *c, uint64_t pos)
{
	plx_inbox_give(&w->inbox, c, pos);
	return likely(plx_gate_is_held(&w->poller.gate)) || !worker_run_posted(w);
}

static inline void
worker_cell_post(struct plx_worker *w, struct plx_inbox_cell *c, uint64_t pos)
{
	if (worker_cell_give(w, c, pos))
		plx_reactor_wake(&w->poller);
}

/* Long data should advance while the application computes now: that is the reactor's work. */
static inline void
worker_leave_long(struct plx_worker *w, uint64_t len)
{
	if (unlikely(len >= PLX_WORKER_LONG_LEN)) {
		plx_yield_long(&w->yield);
		plx_poller_long(&w->poller, len);
	}
}

/* From now on short messages may complete at once, if they would be sent at once. */
static inline void
worker_look_quick(struct plx_ep *ep)
{
	if (!atomic_load_explicit(&ep->quick, memory_order_relaxed) && plx_ep_open(ep) &&
		ep->eager_end > PLX_WORKER_QUICK_MAX && ep->peer->short_max >= PLX_WORKER_QUICK_MAX)
		atomic_store_explicit(&ep->quick, true, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * progress.c - the turn: the table of contents of the machine
 */
#include <errno.h>
#include <sched.h>

#include <rte_cycles.h>

#include "worker_int.h"

#define TIMER_EVERY 64 /* turns between two looks at the clock; timers are coarse */
#define YIELD_EVERY 16 /* turns between two yields when idle */

/* Peers found dead since the last turn. */
static __rte_noinline __rte_cold void
fail_run(struct plx_worker *w)
{
	struct plx_ep *ep;

	while ((ep = SLIST_FIRST(&w->failing)) != NULL) {
		SLIST_REMOVE_HEAD(&w->failing, failing);
		worker_drop_partial(w, ep, ep->failing_err);
		plx_ep_fail(ep, ep->failing_err);
		plx_stream_ep_failed(&w->streams, ep, ep->failing_err);
	}
}

bool
worker_flush_is_done(const struct plx_worker *w, const struct plx_flush *f)
{
	switch (f->kind) {
	case PLX_FLUSH_EP:
		return f->ep->err != 0 || STAILQ_EMPTY(&f->ep->pending);
	case PLX_FLUSH_CLOSE:
		return f->ep->err != 0 || plx_ep_is_quiet(f->ep, f->conn_id);
	default:
		return TAILQ_EMPTY(&w->eps.stalled);
	}
}

static __rte_noinline unsigned
flush_run(struct plx_worker *w)
{
	TAILQ_HEAD(, plx_flush) now = TAILQ_HEAD_INITIALIZER(now);
	struct plx_flush *f;
	unsigned n = 0;

	/* Callbacks may flush and close anew: they find the worker's list, not ours. */
	TAILQ_CONCAT(&now, &w->flushes, link);
	while ((f = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, f, link);
		if (!worker_flush_is_done(w, f)) {
			TAILQ_INSERT_TAIL(&w->flushes, f, link);
			continue;
		}
		if (f->ep != NULL)
			f->ep->refs--;
		plx_req_complete(container_of(f, struct plx_req, flush), 0);
		n++;
	}
	return n;
}

static void
turn_idle(struct plx_worker *w)
{
	w->empty_turns++;
	if (w->empty_turns > w->yield_turns && w->yield_turns != 0 &&
		w->empty_turns % YIELD_EVERY == 0 && !w->dedicated) {
		PLX_STAT_INC(w->stat.yields);
		sched_yield();
	}
}

static inline void
worker_rings_flush(struct plx_worker *w)
{
	plx_req_pool_flush(&w->reqs);
	plx_am_flush(&w->am);
}

unsigned
plx_worker_turn(struct plx_worker *w)
{
	unsigned n = 0;

	if (unlikely(w->in_turn)) /* a callback asks for progress: it is in progress */
		return 0;
	w->in_turn = true;
	if (w->dedicated)
		n += plx_inbox_run(&w->inbox);		/* 1 operations of other threads */
	n += worker_rx(w);				/* 2 packets, then the switch */
	n += plx_rndv_run(&w->rndv);			/* 3 next pieces of large messages */
	n += plx_eps_flush(&w->eps);			/* 4 what the devices did not take */
	if (unlikely(!TAILQ_EMPTY(&w->flushes)))
		n += flush_run(w);			/* 5 closes that wait */
	if (unlikely(!SLIST_EMPTY(&w->failing)))
		fail_run(w);				/* 6 peers that have died */
	if (unlikely(!LIST_EMPTY(&w->eps.stopped) && w->msgs.bytes <= w->kept_max / 2))
		plx_eps_resume(&w->eps);		/* 7 senders that were stopped */
	if (unlikely(w->stat.turns % TIMER_EVERY == 0))
		plx_timers_run(&w->timers, rte_rdtsc()); /* 8 who is alive */
	if (w->dedicated)
		worker_rings_flush(w);			/* 9 what found no room in the rings */
	PLX_STAT_INC(w->stat.turns);
	if (n != 0) {
		PLX_STAT_INC(w->stat.busy_turns);
		w->empty_turns = 0;
	} else {
		turn_idle(w);
	}
	w->in_turn = false;
	return n;
}

unsigned
plx_worker_progress(struct plx_worker *w)
{
	unsigned n;

	if (likely(!w->dedicated))
		return plx_worker_turn(w);
	if (w->in_poll) /* as in a turn: a callback asks for progress */
		return 0;
	w->in_poll = true;
	n = plx_req_pool_poll(&w->reqs) + plx_am_poll(&w->am);
	w->in_poll = false;
	return n;
}

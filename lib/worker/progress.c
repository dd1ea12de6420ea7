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
	}
}

static bool
flush_is_done(const struct plx_worker *w, const struct plx_flush *f)
{
	if (f->kind == PLX_FLUSH_WORKER)
		return TAILQ_EMPTY(&w->eps.stalled) && LIST_EMPTY(&w->eps.connecting);
	return f->ep->err != 0 || (STAILQ_EMPTY(&f->ep->pending) && f->ep->n_waits == 0);
}

/* Everything before it has been sent: tell the other side that the handle is closed. */
static bool
flush_tell(struct plx_flush *f)
{
	struct plx_wire_ep_close h = {.conn_id = f->conn_id};

	f->conn_id = 0;
	if (f->ep->err != 0 || plx_ep_tx_ctl(f->ep, PLX_WIRE_EP_CLOSE, &h, sizeof(h)) != 0)
		return true;
	return STAILQ_EMPTY(&f->ep->pending);
}

bool
worker_flush_waits(struct plx_worker *w)
{
	struct plx_flush *f;

	TAILQ_FOREACH(f, &w->flushes, link) {
		if (flush_is_done(w, f))
			break;
	}
	return f != NULL;
}

unsigned
worker_flush_run(struct plx_worker *w)
{
	struct plx_flush *f, *next;
	unsigned n = 0;

	for (f = TAILQ_FIRST(&w->flushes); f != NULL; f = next) {
		next = TAILQ_NEXT(f, link);
		if (!flush_is_done(w, f) || (f->conn_id != 0 && !flush_tell(f)))
			continue;
		TAILQ_REMOVE(&w->flushes, f, link);
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

unsigned
plx_worker_turn(struct plx_worker *w)
{
	unsigned n = 0, own = 0;

	if (unlikely(w->in_turn)) /* a callback asks for progress: it is in progress */
		return 0;
	w->in_turn = true;
	if (w->dedicated)
		n = own = plx_inbox_run(&w->inbox);	/* 1 operations of other threads */
	n += worker_rx(w);				/* 2 packets, then the switch */
	n += plx_rndv_run(&w->rndv);			/* 3 next pieces of large messages */
	n += plx_eps_flush(&w->eps);			/* 4 what the devices did not take */
	if (unlikely(!TAILQ_EMPTY(&w->flushes)))
		n += worker_flush_run(w);		/* 5 */
	if (unlikely(!SLIST_EMPTY(&w->failing)))
		fail_run(w);				/* 6 */
	if (unlikely(w->stat.turns % TIMER_EVERY == 0))
		plx_timers_run(&w->timers, rte_rdtsc()); /* 7 who is alive */
	if (w->dedicated) {
		plx_req_pool_flush(&w->reqs);		/* 8 completions that found no room */
		if (unlikely(w->wake.on))
			worker_wake_app(w, n - own);	/* 9 who sleeps until they come */
	}
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

static unsigned
collect(struct plx_worker *w)
{
	/* pairs with the release in worker_wake_app(); before what it counts is looked at */
	uint32_t seen = atomic_load_explicit(&w->wake.n_events, memory_order_acquire);
	unsigned n = plx_req_pool_poll(&w->reqs);

	/* The reactor took something: an unexpected message, say, for which nothing completes. */
	if (w->wake.on && seen != w->wake.events_seen) {
		w->wake.events_seen = seen;
		n++;
	}
	return n;
}

static __rte_noinline unsigned
progress_app(struct plx_worker *w)
{
	unsigned n;

	if (w->app_work & WORKER_APP_ARMED)
		worker_disarm(w);
	n = w->dedicated ? collect(w) : plx_worker_turn(w);
	if (w->app_work & WORKER_APP_CONNS)
		n += worker_conns_run(w);
	return n;
}

unsigned
plx_worker_progress(struct plx_worker *w)
{
	if (likely(w->app_work == 0))
		return plx_worker_turn(w);
	return progress_app(w);
}

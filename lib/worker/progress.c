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
		return TAILQ_EMPTY(&w->eps.stalled) && plx_rma_all_over(&w->rma, f->rma_seq);
	if (f->kind == PLX_FLUSH_EP)
		return f->ep->err != 0 || plx_rma_ep_over(f->ep, f->rma_seq);
	return f->ep->err != 0 || (STAILQ_EMPTY(&f->ep->pending) && f->ep->n_waits == 0);
}

/* How it ended; an error of what nobody asked about is told once. */
static int
flush_status(struct plx_worker *w, const struct plx_flush *f)
{
	int *err = f->kind == PLX_FLUSH_WORKER ? &w->rma.err : &f->ep->rma.err;
	int rc = *err;

	*err = 0;
	return f->kind == PLX_FLUSH_CLOSE ? 0 : rc;
}

void
worker_flush_end(struct plx_worker *w, struct plx_flush *f)
{
	plx_req_complete(container_of(f, struct plx_req, flush), flush_status(w, f));
}

unsigned
worker_flush_run(struct plx_worker *w)
{
	struct plx_flush *f;
	unsigned n = 0;

again:
	/* A callback may flush as well, and so end any of them: begin again after each. */
	TAILQ_FOREACH(f, &w->flushes, link) {
		if (!flush_is_done(w, f))
			continue;
		TAILQ_REMOVE(&w->flushes, f, link);
		worker_flush_end(w, f);
		n++;
		goto again;
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
	unsigned n = 0;

	if (unlikely(w->in_turn)) /* a callback asks for progress: it is in progress */
		return 0;
	w->in_turn = true;
	if (w->dedicated)
		n += plx_inbox_run(&w->inbox);		/* 1 operations of other threads */
	n += worker_rx(w);				/* 2 packets, then the switch */
	n += plx_rndv_run(&w->rndv);			/* 3 next pieces of large messages */
	n += plx_rma_run(&w->rma);			/* 4 of puts, gets, atomics */
	n += plx_eps_flush(&w->eps);			/* 5 what the devices did not take */
	if (unlikely(!TAILQ_EMPTY(&w->flushes)))
		n += worker_flush_run(w);		/* 6 */
	if (unlikely(!SLIST_EMPTY(&w->failing)))
		fail_run(w);				/* 7 */
	if (unlikely(w->stat.turns % TIMER_EVERY == 0))
		plx_timers_run(&w->timers, rte_rdtsc()); /* 8 who is alive */
	if (w->dedicated)
		plx_req_pool_flush(&w->reqs);		/* 9 completions that found no room */
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
	if (likely(!w->dedicated))
		return plx_worker_turn(w);
	return plx_req_pool_poll(&w->reqs);
}

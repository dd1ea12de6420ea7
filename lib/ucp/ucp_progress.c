/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_progress.c - progress of a worker, and what it finds: failed endpoints, the worker's own end
 */
#include <sched.h>
#include <stdlib.h>

#include <rte_pause.h>

#include "ucp_int.h"

void
ucp_worker_bury(ucp_worker_h w)
{
	ucp_context_h context = w->context;
	ucp_ep_h ep;

	if (ucp_worker_in_callback(w))
		return;
	while ((ep = LIST_FIRST(&w->eps)) != NULL) {
		ucp_ep_unlink(ep);
		plx_worker_ep_put(w->core, &ep->user);
		free(ep);
	}
	plx_worker_destroy(w->core);
	free(w);
	ucp_context_put(context);
}

#define PROGRESS_PAUSES 32 /* while another thread is in progress; a turn takes less */

static bool
is_in_progress(ucp_worker_h w)
{
	/* relaxed: a guess of where the next turn comes from */
	return atomic_load_explicit(&w->in_progress, memory_order_relaxed);
}

static void
set_in_progress(ucp_worker_h w, bool now)
{
	atomic_store_explicit(&w->in_progress, now, memory_order_relaxed);
}

/*
 * Another thread has the lock. What its turn completes may be what this one waits for; when that
 * thread has lost its core the next turn comes sooner without us. Who posts gives none: it is waited for.
 */
static __rte_noinline bool
progress_begin_slow(ucp_worker_h w)
{
	for (unsigned i = 0; i < PROGRESS_PAUSES; i++) {
		if (!is_in_progress(w)) {
			plx_lock_enter(&w->lock);
			return true;
		}
		rte_pause();
	}
	sched_yield();
	return false;
}

/*
 * Endpoints have failed, or a callback has destroyed the worker.
 * @return 1: a caller that sleeps when nothing was done looks first at what its handlers did; 0 in a
 * callback
 */
static __rte_noinline __rte_cold unsigned
progress_failed(ucp_worker_h w, bool *doomed)
{
	if (ucp_worker_in_callback(w))
		return 0;
	if (!w->doomed)
		ucp_ep_tell_failed(w);
	*doomed = w->doomed;
	return 1;
}

static inline bool
has_failed(ucp_worker_h w)
{
	return unlikely(plx_worker_n_failed(w->core) != w->failed_seen);
}

static inline unsigned
progress_found(ucp_worker_h w, enum plx_rx_found found)
{
	return found == PLX_RX_BURST ? plx_worker_progress_slow(w->core) : plx_worker_take(w->core, found);
}

/* @param n what was done; an endpoint has failed, or the worker is to go */
static __rte_noinline __rte_cold unsigned
progress_tell(ucp_worker_h w, unsigned n)
{
	bool doomed = false;

	n += progress_failed(w, &doomed);
	if (doomed)
		ucp_worker_bury(w);
	return n;
}

/* @return 0 as well when another thread is in progress */
static __rte_noinline unsigned
progress_multi(ucp_worker_h w)
{
	enum plx_offer offer = PLX_OFFER_NOT;
	enum plx_rx_found found;
	bool was, doomed = false;
	unsigned n = 0;

	if (unlikely(!plx_lock_try_enter(&w->lock)) && !progress_begin_slow(w))
		return 0;
	was = is_in_progress(w); /* a callback asks */
	set_in_progress(w, true);
	found = plx_worker_peek(w->core);
	if (found != PLX_RX_NONE) {
		n = progress_found(w, found);
		if (n == 0)
			offer = plx_worker_offers(w->core);
		if (has_failed(w)) {
			n += progress_failed(w, &doomed);
			offer = PLX_OFFER_NOT;
		}
	}
	set_in_progress(w, was);
	plx_lock_leave(&w->lock);
	/* without the lock: who waits for it may be who has the core next */
	if (unlikely(doomed))
		ucp_worker_bury(w);
	else
		plx_worker_offer(w->core, offer);
	return n;
}

unsigned
ucp_worker_progress(ucp_worker_h w)
{
	enum plx_rx_found found;
	unsigned n;

	if (unlikely(w->multi))
		return progress_multi(w);
	found = plx_worker_peek(w->core);
	if (likely(found == PLX_RX_NONE))
		return 0;
	n = progress_found(w, found);
	if (has_failed(w))
		return progress_tell(w, n);
	if (n == 0)
		plx_worker_offer(w->core, plx_worker_offers(w->core));
	return n;
}

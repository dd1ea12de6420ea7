/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_progress.c - progress of a worker, and its consequences: callbacks, failed endpoints, the
 * worker's destruction
 */
#include <sched.h>
#include <stdlib.h>

#include <rte_pause.h>

#include "ucp_int.h"

void
ucp_done_send_nb(struct plx_req *req)
{
	((ucp_send_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status));
}

void
ucp_done_send_nbx(struct plx_req *req)
{
	((ucp_send_nbx_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status), req->cb_arg);
}

void
ucp_done_recv_nb(struct plx_req *req)
{
	ucp_tag_recv_info_t info = ucp_recv_info(req);

	((ucp_tag_recv_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status), &info);
}

static __rte_noinline void
done_recv_slow(struct plx_req *req)
{
	ucp_tag_recv_info_t info = ucp_recv_info(req);

	((ucp_tag_recv_nbx_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status), &info,
		req->cb_arg);
}

_Static_assert(offsetof(ucp_tag_recv_info_t, sender_tag) == 0 && offsetof(ucp_tag_recv_info_t, length) ==
		offsetof(struct plx_req, recv.info_len) - offsetof(struct plx_req, recv.info_tag),
	"the callback's record is the request's");

void
ucp_done_recv_nbx(struct plx_req *req)
{
	const void *info = &req->recv.info_tag;

	if (unlikely((req->flags & PLX_REQ_CAME) != 0 || req->status != 0))
		done_recv_slow(req);
	else /* the last call: no register is saved */
		((ucp_tag_recv_nbx_callback_t)req->cb)(plx_req_user(req), UCS_OK, info, req->cb_arg);
}

void
ucp_worker_bury(ucp_worker_h w)
{
	ucp_context_h context = w->context;
	uint32_t forks = plx_forks;
	ucp_ep_h ep;

	if (ucp_worker_in_callback(w) || plx_worker_is_inherited(w->core))
		return;
	while ((ep = LIST_FIRST(&w->eps)) != NULL) {
		ucp_ep_unlink(ep);
		plx_worker_ep_put(w->core, &ep->user);
		free(ep);
	}
	plx_worker_destroy(w->core);
	free(w);
	if (forks == plx_forks) /* a child of a request's cleanup has no share in it */
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
 * Another thread has the lock. Its turn may complete what this thread waits for; if that
 * thread has lost its core the next turn comes sooner without us. A posting thread runs no
 * turn: wait for it.
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
 * @return 1: a caller that sleeps without events first checks the effects of its handlers;
 *   0 in a callback
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

/* @param found by a look; PLX_RX_ONE is processed already */
static __rte_always_inline unsigned
progress_turn(struct plx_worker *core, enum plx_rx_found found)
{
	if (found == PLX_RX_BURST)
		return plx_worker_progress_slow(core);
	return found == PLX_RX_ONE ? plx_worker_take_rest(core) : plx_worker_take(core, found);
}

/* @param n number of events; an endpoint has failed, or the worker is to be freed */
static __rte_noinline __rte_cold unsigned
progress_tell(ucp_worker_h w, unsigned n)
{
	bool doomed = false;

	n += progress_failed(w, &doomed);
	if (doomed)
		ucp_worker_bury(w);
	return n;
}

/* A turn that is more than a look. @return the number of events */
static __rte_always_inline unsigned
progress_whole(ucp_worker_h w, enum plx_rx_found found)
{
	unsigned n = progress_turn(w->core, found);

	if (has_failed(w))
		return progress_tell(w, n);
	if (n == 0)
		plx_worker_offer(w->core, plx_worker_offers(w->core));
	return n;
}

static __rte_noinline unsigned
progress_rest(struct plx_worker *core, enum plx_rx_found found)
{
	return progress_whole(plx_worker_user(core), found);
}

/* The same for events that only a burst finds. With a reactor, too. */
static __rte_noinline unsigned
progress_burst(ucp_worker_h w)
{
	return progress_whole(w, PLX_RX_BURST);
}

/*
 * The same with the lock, which is dropped.
 * @param was whether the thread was in progress before: a callback calls
 */
static __rte_always_inline unsigned
progress_whole_locked(ucp_worker_h w, enum plx_rx_found found, bool was)
{
	enum plx_offer offer = PLX_OFFER_NOT;
	unsigned n = progress_turn(w->core, found);
	bool doomed = false;

	if (has_failed(w))
		n += progress_failed(w, &doomed);
	else if (n == 0)
		offer = plx_worker_offers(w->core);
	set_in_progress(w, was);
	plx_lock_leave(&w->lock);
	/* without the lock: a thread that waits for it may be the next on this core */
	if (unlikely(doomed))
		ucp_worker_bury(w);
	else
		plx_worker_offer(w->core, offer);
	return n;
}

static __rte_noinline unsigned
progress_rest_locked(ucp_worker_h w, enum plx_rx_found found)
{
	return progress_whole_locked(w, found, false);
}

/* In a callback, or other threads use the worker, too. @return 0 as well when another thread is in progress */
static __rte_noinline unsigned
progress_contended(ucp_worker_h w)
{
	bool was;

	if (!plx_lock_try_enter(&w->lock) && !progress_begin_slow(w))
		return 0;
	was = is_in_progress(w);
	set_in_progress(w, true);
	return progress_whole_locked(w, PLX_RX_BURST, was);
}

static __rte_noinline unsigned
progress_locked(ucp_worker_h w)
{
	struct plx_worker *core = w->core;
	enum plx_rx_found found;
	unsigned n = 0;

	if (unlikely(!plx_lock_enter_quick(&w->lock)))
		return progress_contended(w);
	set_in_progress(w, true);
	found = plx_worker_peek(core);
	if (found == PLX_RX_ONE) {
		if (unlikely(!plx_worker_take_one(core)))
			return progress_rest_locked(w, PLX_RX_ONE);
		n = 1;
	} else if (unlikely(found != PLX_RX_NONE)) {
		return progress_rest_locked(w, found);
	}
	set_in_progress(w, false);
	plx_lock_drop_quick(&w->lock);
	return n;
}

/* Several threads and a reactor. */
static __rte_noinline unsigned
progress_locked_burst(ucp_worker_h w)
{
	if (unlikely(!plx_lock_enter_quick(&w->lock)))
		return progress_contended(w);
	set_in_progress(w, true);
	return progress_whole_locked(w, PLX_RX_BURST, false);
}

/* Several threads, or a reactor, or both. */
static __rte_noinline unsigned
progress_other(ucp_worker_h w)
{
	if (w->mode == PLX_GATE_LOCKED)
		return progress_locked(w);
	return w->multi ? progress_locked_burst(w) : progress_burst(w);
}

/* A failing endpoint, or the destruction of the worker, requests a turn: after a look there
 * is nothing to report. */
unsigned
ucp_worker_progress(ucp_worker_h w)
{
	struct plx_worker *core = w->core;
	enum plx_rx_found found;

	if (unlikely(w->mode != PLX_GATE_SINGLE))
		return progress_other(w);
	found = plx_worker_peek(core);
	if (likely(found == PLX_RX_NONE))
		return 0;
	if (likely(found == PLX_RX_ONE))
		return likely(plx_worker_take_one(core)) ? 1 : progress_rest(core, PLX_RX_ONE);
	return found == PLX_RX_BURST ? progress_burst(plx_worker_user(core)) : progress_rest(core, found);
}

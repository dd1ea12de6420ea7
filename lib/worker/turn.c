/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * turn.c - the turn: the table of contents
 */
#include <time.h>

#include <rte_cycles.h>

#include "worker_int.h"

#define TIMER_EVERY 64 /* turns between two readings of the clock, looks included; timers are coarse */

/* Peers found dead since the last turn. */
static __rte_noinline __rte_cold void
fail_run(struct plx_worker *w)
{
	struct plx_worker_ep *e;

	worker_hold_done(w);
	while ((e = SLIST_FIRST(&w->failing)) != NULL) {
		struct plx_ep *ep = worker_ep_of(e);

		SLIST_REMOVE_HEAD(&w->failing, failing);
		worker_drop_partial(w, ep, e->failing_err);
		plx_ep_fail(ep, e->failing_err);
		plx_stream_ep_failed(ep, e->failing_err);
	}
	worker_release_done(w);
}

static bool
moved_by_cpu(const struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++)
		if (w->queues[i]->by_cpu)
			return true;
	return false;
}

/* An answer from another core arrives within fewer empty turns than this. */
#define LONG_TURNS 256

static bool
yields(struct plx_worker *w)
{
	if (w->waits != PLX_WAIT_AUTO)
		return w->waits == PLX_WAIT_YIELD;
	if (w->empty_turns < LONG_TURNS && !plx_spin_yields(&w->spin))
		return false;
	return plx_spin_wait(&w->spin, rte_rdtsc());
}

/*
 * Nothing comes. Sleep, not yield: soft-RoCE's kernel thread needs this core's CPU time,
 * and a thread that yields still takes its share.
 */
enum plx_offer
plx_worker_offers_slow(struct plx_worker *w)
{
	/* a callback called, or there was an event that the caller does not count */
	if (plx_worker_in_callback(w) || w->empty_turns == 0)
		return PLX_OFFER_NOT;
	if (w->sleep_us != 0 && moved_by_cpu(w)) {
		PLX_STAT_INC(w->stat.sleeps);
		return PLX_OFFER_NAP;
	}
	if (!yields(w))
		return PLX_OFFER_NOT;
	PLX_STAT_INC(w->stat.yields);
	return PLX_OFFER_YIELD;
}

/* As inline: there is no reactor to wait for. */
static void
offer_lent(struct plx_worker *w)
{
	if (plx_spin_wait(&w->spin, rte_rdtsc())) {
		plx_spin_yield(&w->spin);
		plx_yield_often(&w->yield);
	} else {
		plx_yield_rarely(&w->yield);
	}
}

static void
offer_dedicated(struct plx_worker *w)
{
	plx_poller_away(&w->poller);
	if (worker_rest(w))
		plx_yield_often(&w->yield);
	else if (w->waits == PLX_WAIT_AUTO && plx_gate_is_granted(&w->poller.gate))
		offer_lent(w);
	else
		plx_yield_offer(&w->yield);
	plx_poller_back(&w->poller);
}

void
plx_worker_offer_slow(struct plx_worker *w, enum plx_offer how)
{
	switch (how) {
	case PLX_OFFER_LEARN:
		offer_dedicated(w);
		break;
	case PLX_OFFER_YIELD:
		plx_spin_yield(&w->spin);
		break;
	case PLX_OFFER_NAP:
		nanosleep(&(struct timespec){.tv_nsec = w->sleep_us * 1000}, NULL);
		break;
	default:
		break;
	}
}

static inline void
worker_rings_flush(struct plx_worker *w)
{
	plx_req_pool_flush(&w->reqs);
	plx_am_flush(&w->am);
}

/* Whether stages 3 to 8 have work, in one check: usually none has. */
static inline bool
has_work(const struct plx_worker *w)
{
	uintptr_t own = plx_rndv_work(&w->rndv) | plx_rma_work(&w->rma) | plx_eps_work(&w->eps) |
			(uintptr_t)TAILQ_FIRST(&w->flushes) | (uintptr_t)TAILQ_FIRST(&w->flushing) |
			(uintptr_t)SLIST_FIRST(&w->failing);

	return own != 0 || (w->chans.on && plx_chans_work(&w->chans) != 0);
}

static __rte_noinline unsigned
work(struct plx_worker *w)
{
	unsigned n = 0;

	if (unlikely(w->n_holding != 0))
		worker_hold(w);
	if (plx_rndv_work(&w->rndv) != 0 && !w->rndv.later)
		n = plx_rndv_run(&w->rndv);		/* 3 next pieces of large messages */
	n += plx_rma_run(&w->rma);			/* 4 of puts, gets, atomics */
	n += plx_eps_flush(&w->eps);			/* 5 what the devices did not take */
	plx_chans_flush(&w->chans);			/*   and acknowledgements of channels */
	if (!TAILQ_EMPTY(&w->flushes) || !TAILQ_EMPTY(&w->flushing))
		n += worker_flush_run(w);		/* 6 flushes and closes that are not
	                         			 * complete */
	if (unlikely(!SLIST_EMPTY(&w->failing)))
		fail_run(w);				/* 7 peers that have died */
	if (!LIST_EMPTY(&w->eps.stopped) && w->msgs.bytes <= w->kept_max / 2)
		plx_eps_resume(&w->eps);		/* 8 senders that were stopped */
	return n;
}

/* @return whether only arrivals are left to handle, after stages without work. Inline. */
static inline bool
is_quiet(const struct plx_worker *w)
{
	return w->may_be_quiet && w->app_work == 0 && w->streams.pace == 0 && !w->eps.is_short &&
	       (!w->chans.on || plx_chans_are_quiet(&w->chans));
}

/* @return whether looks are enough: only answers to puts and gets, or the time to recall these, make more to do */
static inline bool
awaits_messages(const struct plx_worker *w)
{
	return plx_rma_awaits(&w->rma) && (plx_rndv_work(&w->rndv) | plx_eps_work(&w->eps)) == 0 &&
	       LIST_EMPTY(&w->eps.connecting) && SLIST_EMPTY(&w->failing) &&
	       (!w->chans.on || plx_chans_work(&w->chans) == 0);
}

/*
 * The stages after the arrivals, 3 to 9.
 * @param may_look inline: due_behind_work() follows. @return the number of events
 */
static inline unsigned
stages_behind_rx(struct plx_worker *w, bool may_look, bool *was_work)
{
	unsigned n = 0;

	*was_work = has_work(w);
	if (*was_work) {
		if (may_look)
			w->eps.due = PLX_DUE_TURN; /* it sees what the stages ask for */
		n = work(w);
	}
	if (w->chans.on)
		plx_chans_turned(&w->chans);
	if (unlikely(w->stat.turns >= w->timers_turn)) {
		w->timers_turn = w->stat.turns + TIMER_EVERY;
		worker_timers_run(w, rte_rdtsc());	/* 9 timers: liveness */
		*was_work = true;
	}
	return n;
}

/* @return plx_eps.due, after a turn whose stages had work and n events */
static __rte_noinline uint8_t
due_behind_work(const struct plx_worker *w, unsigned n)
{
	if ((w->eps.due & PLX_DUE_WORK) != 0 || !is_quiet(w))
		return PLX_DUE_WORK;
	if (!has_work(w))
		return 0;
	return n == 0 && awaits_messages(w) ? PLX_DUE_BEHIND : PLX_DUE_WORK;
}

/* Inline: the end of a turn. @return the number of events */
static inline unsigned
end_turn(struct plx_worker *w)
{
	bool was_work;
	unsigned n = stages_behind_rx(w, true, &was_work);

	PLX_STAT_INC(w->stat.turns);
	if (unlikely(was_work))
		w->eps.due = due_behind_work(w, n);
	else
		w->eps.due = is_quiet(w) ? 0 : PLX_DUE_WORK;
	return n;
}

/* Inline: messages of one turn. With a reactor the application posts meanwhile: no pace helps. */
static inline uint16_t
rx_most(const struct plx_worker *w)
{
	return likely(w->streams.pace == 0) ? PLX_DEV_RX_BURST : 1;
}

/* The application takes no active messages: the stored ones have a bound, above which they
 * stay in the devices. */
static bool
am_waits(const struct plx_worker *w)
{
	return !TAILQ_EMPTY(&w->am.overflow) && w->msgs.bytes > w->kept_max;
}

/*
 * Received messages need answers, and a reserve for these was used; or active messages find
 * no room in the ring.
 * @return whether more may be received
 */
static __rte_noinline __rte_cold bool
can_answer(struct plx_worker *w)
{
	bool eps = plx_eps_refill(&w->eps), rma = plx_rma_refill(&w->rma);

	bool may = eps && rma && !am_waits(w);

	w->eps.is_short = !may || !TAILQ_EMPTY(&w->am.overflow);
	if (!may)
		PLX_STAT_INC(w->eps.stat.rx_held);
	return may;
}

/* Here and not in rx.c, as most bursts bring nothing and their path should be short. */
static inline unsigned
rx(struct plx_worker *w, uint16_t most)
{
	unsigned total = 0;

	if (unlikely(w->eps.is_short) && !can_answer(w))
		return 0;
	for (uint32_t k = 0; k < w->n_polled; k++) {
		uint16_t n = w->queues[k]->rx_burst(w->queues[k], w->rx, most);

		if (n == 0)
			continue;
		worker_rx_take(w, k, n);
		total += n;
	}
	if (unlikely(total != 0 && w->streams.pace != 0))
		w->streams.pace--;
	if (unlikely(w->offloads))
		total += plx_offload_tend(&w->offload);
	return total;
}

/* Receive: completed sends of channels, packets, then the switch. */
static inline unsigned
stage_rx(struct plx_worker *w, uint16_t most)
{
	unsigned n = plx_chans_reap(&w->chans);

	return n + rx(w, most);
}

/* @return the number of messages run */
static unsigned
run_inbox(struct plx_worker *w)
{
	unsigned n = plx_inbox_run(&w->inbox);

	PLX_STAT_ADD(w->stat.submits, n);
	return n;
}

static inline void
count_turn(struct plx_worker *w, unsigned n)
{
	if (n != 0) {
		PLX_STAT_INC(w->stat.busy_turns);
		w->empty_turns = 0;
	} else {
		w->empty_turns++;
	}
}

/* Separate, so that a turn that delays nothing saves no registers. */
static __rte_noinline void
flush_held(struct plx_queue *q)
{
	plx_queue_flush(q);
}

/* Send delayed messages. */
static __rte_noinline void
let_go(struct plx_worker *w)
{
	w->holds = false;
	for (uint32_t i = 0; i < w->n_holding; i++) {
		w->holding[i]->hold = false;
		if (w->holding[i]->held)
			flush_held(w->holding[i]);
	}
}

/* Inline. */
static unsigned
turn(struct plx_worker *w)
{
	unsigned n;

	if (unlikely(w->eps.due & PLX_DUE_TURN)) /* a callback calls progress: it is in progress */
		return 0;
	w->eps.due = PLX_DUE_WORK | PLX_DUE_TURN;
	w->due_turn = w->stat.turns + 1 + PLX_WORKER_LOOKS;
	n = stage_rx(w, rx_most(w));			/* 2 */
	n += end_turn(w);				/* 3 to 9 */
	if (unlikely(w->holds))
		let_go(w);
	count_turn(w, n);
	return n;
}

/* Dedicated. @param granted this thread, which would have posted, is the owner */
static inline unsigned
turn_dedicated(struct plx_worker *w, bool lent)
{
	unsigned n = 0, own = 0;
	bool alone = false, was_work;

	if (unlikely(w->eps.due & PLX_DUE_TURN)) /* a callback calls progress: it is in progress */
		return 0;
	w->eps.due = PLX_DUE_WORK | PLX_DUE_TURN;
	if (unlikely(w->n_holding != 0))
		worker_hold(w);				/* 0 sends below go together */
	if (lent) {
		if (unlikely(plx_inbox_waits(&w->inbox)))
			own = run_inbox(w);
		w->poller.posts = 0; /* it is not the reactor's turn */
	} else {
		alone = plx_inbox_rested(&w->inbox) && w->stat.turns % TIMER_EVERY != 0;
		own = run_inbox(w);			/* 1 operations of other threads */
		w->poller.posts = own != 0 ? w->poller.posts + 1 : 0;
	}
	/* The first message may be for the worker whose turn comes next: the other stages
	 * can wait. */
	if (!alone || own == 0) {
		n = stage_rx(w, PLX_DEV_RX_BURST);	/* 2 */
		n += stages_behind_rx(w, false, &was_work);	/* 3 to 9 */
	}
	if (unlikely(w->holds))
		let_go(w);
	worker_rings_flush(w);				/* 10 items without room in the rings */
	if (unlikely(w->wake.on))
		worker_wake_app(w, n);			/* 11 a sleeping application */
	worker_end_nap(w);
	n += own;
	PLX_STAT_INC(w->stat.turns);
	count_turn(w, n);
	w->eps.due = PLX_DUE_WORK;
	return n;
}

/*
 * After a message of a look. There may always be a next one: one look in PLX_WORKER_LOOKS
 * takes a burst anyway, so that other peers do not wait for ever. @return how many more
 * came
 */
static __rte_noinline unsigned
rx_rest(struct plx_worker *w)
{
	if (!plx_worker_turn_is_due(w) && w->streams.pace != 0)
		return 0;
	w->due_turn = w->stat.turns + 1 + PLX_WORKER_LOOKS;
	return rx(w, rx_most(w));
}

/* After a message of a look, with more work. @return the number of events, including it */
static inline unsigned
take_rest(struct plx_worker *w, bool more)
{
	unsigned n = 1;

	plx_eps_need_turn(&w->eps);
	if (more || plx_worker_turn_is_due(w))
		n += rx_rest(w);
	return n + end_turn(w);
}

unsigned
plx_worker_take_rest(struct plx_worker *w)
{
	return take_rest(w, false);
}

unsigned
plx_worker_take(struct plx_worker *w, enum plx_rx_found found)
{
	plx_worker_take_begin(w);
	if (found == PLX_RX_HELD)
		w->queues[0]->rx_release(w->queues[0], w->rx, 1);
	if (found != PLX_RX_MORE && plx_worker_take_end(w))
		return 1;
	return take_rest(w, found == PLX_RX_MORE);
}

__rte_noinline unsigned
worker_turn_granted(struct plx_worker *w)
{
	w->turn_due = PLX_WORKER_TURN_EVERY;
	return turn_dedicated(w, true);
}

unsigned
worker_poll(void *w, bool granted)
{
	return unlikely(granted) ? worker_turn_granted(w) : turn_dedicated(w, false);
}

unsigned
plx_worker_turn(struct plx_worker *w)
{
	return w->dedicated ? worker_poll(w, false) : turn(w);
}

/*
 * A lone message: if the application answered the previous one it will answer this one, so
 * prefetch the line of the answer. Otherwise the prefetch would take the line from the
 * reactor, which polls it.
 */
static inline void
ask_answer(struct plx_worker *w)
{
	uint64_t posted = plx_inbox_posted(&w->inbox);

	if (posted != w->answered)
		plx_inbox_ask(&w->inbox);
	w->answered = posted;
}

static __rte_noinline unsigned
collect_reqs(struct plx_worker *w)
{
	if (plx_cq_rested(w->reqs.cq) && plx_cq_next(w->reqs.cq) != NULL)
		ask_answer(w);
	return plx_req_pool_poll(&w->reqs);
}

static inline unsigned
collect_found(struct plx_worker *w, bool told)
{
	unsigned n = told ? 0 : collect_reqs(w);

	n += plx_am_poll(&w->am);
	if (unlikely(w->app_work & WORKER_APP_CHANS))
		n += plx_chans_poll(&w->chans);
	return n;
}

/* The reactor may have handled an event without a completion, such as an unexpected message. */
static __rte_noinline unsigned
collect_counted(struct plx_worker *w, bool told)
{
	/* pairs with the release in worker_wake_app(); before reading what it counts */
	uint32_t seen = atomic_load_explicit(&w->wake.n_events, memory_order_acquire);
	unsigned n = collect_found(w, told) + (seen != w->wake.events_seen);

	w->wake.events_seen = seen;
	return n;
}

/* @param told requests that completed in a turn of this thread */
static inline unsigned
collect(struct plx_worker *w, bool told)
{
	return unlikely(w->wake.on) ? collect_counted(w, told) : collect_found(w, told);
}

static inline void
within(struct plx_worker *w, uintptr_t thread)
{
	/* relaxed: others only find that they are not it */
	atomic_store_explicit(&w->poller.gate.within, thread, memory_order_relaxed);
}

/* The reactor has no core of its own, and this thread waits. Separate, so that progress
 * saves no registers for it. */
static __rte_noinline unsigned
turn_taken(struct plx_worker *w)
{
	bool direct, told = false;
	unsigned n;

	/* As inline: no other thread is in progress, or allocates and frees requests. */
	direct = plx_req_pool_begin_direct(&w->reqs);
	if (direct)
		within(w, (uintptr_t)__builtin_thread_pointer());
	n = worker_turn_granted(w);
	if (direct) {
		told = w->reqs.to == NULL; /* otherwise completions of a callback's own call are in
		                            * the ring */
		within(w, 0);
		plx_req_pool_end_direct(&w->reqs);
	}
	plx_poller_give(&w->poller, 1);
	worker_look_behind(w);
	return n + collect(w, told);
}

static inline unsigned
progress_dedicated(struct plx_worker *w)
{
	if (plx_poller_take(&w->poller, true))
		return turn_taken(w);
	if (unlikely(w->inbox.many) && plx_gate_is_granted(&w->poller.gate))
		worker_look_behind(w); /* others saw it inside */
	return collect(w, false);
}

/* Callbacks of operations that completed where none could run. */
static unsigned
run_later(struct plx_worker *w)
{
	unsigned n = plx_req_pool_run_later(&w->reqs);

	/* not before: a callback that calls progress must find none */
	if (STAILQ_EMPTY(&w->reqs.later.overflow))
		w->app_work &= ~WORKER_APP_LATER;
	return n;
}

/* Work that calls the application outside of a turn. Inline, too, a callback that calls
 * progress then gets 0. */
static __rte_noinline unsigned
run_app_work(struct plx_worker *w)
{
	bool was = plx_worker_callbacks_begin(w);
	unsigned n = 0;

	if (w->app_work & WORKER_APP_CONNS)
		n += worker_conns_run(w);
	if (w->app_work & WORKER_APP_LATER)
		n += run_later(w);
	plx_worker_callbacks_end(w, was);
	return n;
}

static __rte_noinline unsigned
progress_app(struct plx_worker *w)
{
	unsigned n;

	if (w->in_poll) /* as in a turn: a callback calls progress */
		return 0;
	w->in_poll = true;
	if (w->app_work & WORKER_APP_ARMED)
		worker_disarm(w);
	n = w->dedicated ? progress_dedicated(w) : turn(w);
	if (n != 0)
		plx_yield_found(&w->yield);
	if (unlikely(w->app_work & (WORKER_APP_CONNS | WORKER_APP_LATER)))
		n += run_app_work(w);
	w->in_poll = false;
	return n;
}

unsigned
plx_worker_progress(struct plx_worker *w)
{
	enum plx_rx_found found = w->dedicated ? PLX_RX_BURST : plx_worker_peek(w);

	if (likely(found == PLX_RX_NONE))
		return 0;
	return found == PLX_RX_BURST ? plx_worker_progress_slow(w) : plx_worker_take(w, found);
}

unsigned
plx_worker_progress_slow(struct plx_worker *w)
{
	return unlikely(w->app_work != 0) ? progress_app(w) : turn(w); /* not 0 with a reactor */
}

unsigned
plx_worker_look(struct plx_worker *w)
{
	unsigned n;

	if ((w->app_work & WORKER_APP_ARMED) == 0)
		return plx_worker_progress(w);
	if (!w->dedicated)
		return plx_worker_turn(w);
	n = plx_chans_poll(&w->chans);
	if (n != 0)
		plx_yield_found(&w->yield);
	return n;
}

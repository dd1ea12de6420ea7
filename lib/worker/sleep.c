/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * sleep.c - whether a worker may sleep, and arming its wake-ups: for its application, and for its
 * reactor
 *
 * Design notes
 * - The queues are armed when no stage of the turn has work. Posts of the application wake its
 *   reactor by themselves; wake.c has the wake-up of an application.
 * - Avoid starving the woken receiver when application and reactor share a core: the kernel gives
 *   a yielded core only to threads that have had less than their share. So an application that
 *   waits for a receiver that it has woken there sleeps: as the owner on the reactor's events,
 *   otherwise until the reactor notifies it.
 */
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

#include <rte_cycles.h>

#include "plx_clock.h"
#include "plx_futex.h"
#include "worker_int.h"

#define REST_US 100 /* first sleep; then the queues are armed again, after a fence: plx_queue.fences_world */

/* Work that needs turns, not events. */
static bool
needs_turns(struct plx_worker *w)
{
	return w->wake.no_sleep || !LIST_EMPTY(&w->chans.acks) ||
		w->chans.unreaped != NULL || !TAILQ_EMPTY(&w->chans.lossy_ops) ||
		!TAILQ_EMPTY(&w->eps.stalled) || !SLIST_EMPTY(&w->failing) ||
		!TAILQ_EMPTY(&w->rndv.recvs) || !TAILQ_EMPTY(&w->rndv.sends) ||
		!TAILQ_EMPTY(&w->rma.eps) || w->streams.ahead.armed ||
		worker_flush_waits(w);
}

static int
arm_queues(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++)
		if (plx_queue_arm(w->queues[i]) != 0)
			return -EBUSY;
	/* Arming may have found peers dead, and no event will report them again. */
	return SLIST_EMPTY(&w->failing) ? 0 : -EBUSY;
}

static void
disarm_queues(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++)
		plx_queue_disarm(w->queues[i]);
}

/* @return when the first device has something to do, in ticks; UINT64_MAX: none has before something comes */
static uint64_t
devices_due(const struct plx_worker *w)
{
	uint64_t due_ns = UINT64_MAX, now_ns;

	for (uint32_t i = 0; i < w->n_queues; i++)
		due_ns = RTE_MIN(due_ns, plx_queue_deadline(w->queues[i]));
	if (due_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = plx_clock_ns();
	if (due_ns <= now_ns)
		return 0;
	return rte_rdtsc() + (uint64_t)((double)(due_ns - now_ns) * (double)rte_get_tsc_hz() / 1e9);
}

/* Channels and devices have times of their own: wake for the first. */
static void
arm_timer(struct plx_worker *w)
{
	uint64_t due = RTE_MIN(plx_chans_next_ticks(&w->chans), devices_due(w)), was = w->wake.due_ticks;
	struct itimerspec t = {.it_value = {0, 0}};
	uint64_t ns;

	w->wake.due_ticks = due;
	if (due == UINT64_MAX && was == UINT64_MAX)
		return;
	if (due != UINT64_MAX) {
		ns = RTE_MAX(plx_timer_wait_ns(due, rte_rdtsc()), UINT64_C(1)); /* 0 stops it */
		t.it_value.tv_sec = (time_t)(ns / 1000000000);
		t.it_value.tv_nsec = (long)(ns % 1000000000);
	}
	timerfd_settime(w->wake.timer_fd, 0, &t, NULL);
}

/* Run timers and devices that became due while no turn was run. */
static void
run_due(struct plx_worker *w)
{
	worker_timers_run(w, rte_rdtsc());
	for (uint32_t i = 0; i < w->n_queues; i++) {
		uint64_t due_ns = plx_queue_deadline(w->queues[i]);

		if (due_ns != UINT64_MAX && due_ns <= plx_clock_ns())
			plx_queue_control(w->queues[i]);
	}
}

static int
arm_dedicated(struct plx_worker *w)
{
	struct plx_wake *k = &w->wake;

	plx_poller_return(&w->poller);
	worker_app_add(w, WORKER_APP_ARMED);
	atomic_store_explicit(&k->armed, 1, memory_order_relaxed);
	/* pairs with the fence in worker_wake_app() */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&k->n_events, memory_order_relaxed) == k->events_seen && !worker_has_news(w))
		return 0;
	worker_disarm(w);
	return -EBUSY;
}

static int
arm_inline(struct plx_worker *w)
{
	if (needs_turns(w))
		return -EBUSY;
	worker_app_add(w, WORKER_APP_ARMED);
	if (arm_queues(w) == 0) {
		arm_timer(w);
		return 0;
	}
	worker_disarm(w);
	return -EBUSY;
}

int
plx_worker_arm(struct plx_worker *w)
{
	if (!w->wake.on)
		return -EOPNOTSUPP;
	if (worker_event_take(w->wake.signal_fd) || (w->app_work & WORKER_APP_LATER))
		return -EBUSY;
	if ((w->app_work & WORKER_APP_CONNS) && plx_cm_waits(&w->conns.cm)) {
		w->conns.last_ticks = 0; /* poll in the next progress, not later */
		return -EBUSY;
	}
	return w->dedicated ? arm_dedicated(w) : arm_inline(w);
}

void
worker_disarm(struct plx_worker *w)
{
	w->app_work &= ~WORKER_APP_ARMED;
	w->conns.last_ticks = 0;
	if (w->dedicated) {
		atomic_store_explicit(&w->wake.armed, 0, memory_order_relaxed);
		worker_event_take(w->wake.app_fd);
		return;
	}
	if (!w->wake.no_sleep)
		disarm_queues(w);
	if (w->wake.due_ticks != UINT64_MAX)
		worker_event_take(w->wake.timer_fd);
	run_due(w);
}

static int
rest_arm(void *arg)
{
	struct plx_worker *w = arg;

	if (needs_turns(w) || !STAILQ_EMPTY(&w->reqs.cq->overflow) ||
		!TAILQ_EMPTY(&w->am.overflow) || !STAILQ_EMPTY(&w->chans.overflow))
		return -EBUSY;
	/* The inbox is checked last: posts have had time to arrive. */
	if (arm_queues(w) == 0 && plx_inbox_empty(&w->inbox)) {
		/* The glance is for turns: an armed queue that rests wakes it. */
		w->poller.due_ticks = RTE_MIN(plx_timers_next_but(&w->timers, &w->glance), devices_due(w));
		return 0;
	}
	disarm_queues(w);
	return -EBUSY;
}

static void
rest_disarm(void *arg)
{
	struct plx_worker *w = arg;

	disarm_queues(w);
	run_due(w);
}

int
worker_rest_open(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		int fd;

		w->queues[i]->fences_world = true;
		fd = plx_queue_efd(w->queues[i]);
		if (fd == -EOPNOTSUPP) /* a device that can't wake us: it is polled */
			return 0;
		if (fd < 0)
			return fd;
		w->rest_fds[i] = fd;
	}
	w->poller.fds = w->rest_fds;
	w->poller.n_fds = w->n_queues;
	w->poller.arm = rest_arm;
	w->poller.disarm = rest_disarm;
	return 0;
}

static bool
has_woken(const struct plx_worker *w)
{
	/* relaxed: only affects time, as below */
	for (uint32_t i = 0; i < w->n_queues; i++)
		if (atomic_load_explicit(&w->queues[i]->woke, memory_order_relaxed))
			return true;
	return false;
}

static void
forget_woken(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++)
		atomic_store_explicit(&w->queues[i]->woke, false, memory_order_relaxed);
}

static const struct timespec rest_most = {.tv_nsec = REST_US * 1000};

/* It sleeps on the reactor's events. @return whether there was one */
static bool
rest_wait(const struct plx_worker *w)
{
	struct pollfd fds[PLX_DEV_MAX];

	for (unsigned i = 0; i < w->poller.n_fds; i++)
		fds[i] = (struct pollfd){.fd = w->poller.fds[i], .events = POLLIN};
	return ppoll(fds, w->poller.n_fds, &rest_most, NULL) > 0;
}

/* This thread is the owner. @return whether it slept */
static bool
rest_lent(struct plx_worker *w)
{
	bool rests;

	if (w->poller.arm == NULL || !plx_poller_take(&w->poller, false))
		return false;
	rests = w->poller.arm(w) == 0;
	if (rests) {
		if (rest_wait(w))
			forget_woken(w);
		w->poller.disarm(w);
	}
	plx_poller_give(&w->poller, 0);
	return rests;
}

void
worker_end_nap_slow(struct plx_worker *w)
{
	if (worker_is_told_all(w))
		return;
	atomic_store_explicit(&w->wake.naps, 0, memory_order_relaxed);
	plx_futex_wake(&w->wake.naps);
}

/* The reactor is the owner. @return whether it slept */
static bool
nap(struct plx_worker *w)
{
	_Atomic uint32_t *naps = &w->wake.naps;
	bool news;

	/* relaxed: a concurrent notification may miss this, and is seen after the sleep */
	atomic_store_explicit(naps, 1, memory_order_relaxed);
	news = worker_has_news(w);
	if (!news)
		plx_futex_wait(naps, 1, &rest_most);
	if (atomic_load_explicit(naps, memory_order_relaxed) == 0)
		forget_woken(w);
	atomic_store_explicit(naps, 0, memory_order_relaxed);
	return !news;
}

bool
worker_rest(struct plx_worker *w)
{
	if (!has_woken(w) || !w->poller.gate.one || !plx_poller_is_near(&w->poller))
		return false;
	if (plx_gate_is_granted(&w->poller.gate) ? !rest_lent(w) : !nap(w))
		return false;
	PLX_STAT_INC(w->stat.sleeps);
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rest.c - how a reactor sleeps until this worker has something to do, and who waits on its core
 *
 * Design notes
 * The inline half of wake.c, for the owner: the queues are armed when nothing waits at any
 * stage of the turn. What the application posts wakes the reactor by itself.
 *
 * An application that waits on its reactor's core for a receiver that it has woken there keeps that one from
 * moving what it waits for: the kernel gives a core that is yielded only to
 * those that have had less than their share. So it sleeps: with the turns on what the reactor would sleep on,
 * without them until the reactor tells it something.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include <rte_cycles.h>

#include "plx_futex.h"
#include "worker_int.h"

#define REST_US 100 /* what a sender looked too early for is seen behind it: plx_queue.dozes */

static int
rest_arm(void *arg)
{
	struct plx_worker *w = arg;

	if (worker_needs_turns(w) || !STAILQ_EMPTY(&w->reqs.cq->overflow) ||
		!TAILQ_EMPTY(&w->am.overflow) || !STAILQ_EMPTY(&w->chans.overflow))
		return -EBUSY;
	/* What was posted is looked at last: it has had time to arrive. */
	if (worker_arm_queues(w) == 0 && plx_inbox_empty(&w->inbox))
		return 0;
	worker_disarm_queues(w);
	return -EBUSY;
}

static void
rest_disarm(void *arg)
{
	struct plx_worker *w = arg;

	worker_disarm_queues(w);
	plx_timers_run(&w->timers, rte_rdtsc());
}

int
worker_rest_open(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		int fd;

		w->queues[i]->dozes = true;
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
	/* relaxed: it is about time only, as what follows */
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

/* It sleeps on what the reactor would. @return whether something came */
static bool
rest_wait(const struct plx_worker *w)
{
	struct pollfd fds[PLX_DEV_MAX];

	for (unsigned i = 0; i < w->poller.n_fds; i++)
		fds[i] = (struct pollfd){.fd = w->poller.fds[i], .events = POLLIN};
	return ppoll(fds, w->poller.n_fds, &rest_most, NULL) > 0;
}

/* The turns are this thread's. @return whether it slept */
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

/* The reactor has the turns. @return whether it slept */
static bool
nap(struct plx_worker *w)
{
	_Atomic uint32_t *naps = &w->wake.naps;
	bool news;

	/* relaxed: what is told meanwhile may miss this, and is seen when the nap is over */
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
	PLX_STAT_INC(w->stat.naps);
	return true;
}

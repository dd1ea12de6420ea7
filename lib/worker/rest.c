/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rest.c - how a reactor sleeps until this worker has something to do
 *
 * The inline half of wake.c, for the owner: the queues are armed when nothing waits at any
 * stage of the turn. What the application posts wakes the reactor by itself.
 */
#include <errno.h>

#include <rte_cycles.h>

#include "worker_int.h"

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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * wake.c - wake-ups of an application that sleeps until its worker has work
 *
 * Design notes
 * - The application gets one epoll descriptor with all wake-up sources in it: inline the queues'
 *   descriptors, dedicated one that the reactor writes to; the signal of plx_worker_signal(); the
 *   sockets of listeners and connections. It polls readable until the next progress, or after a
 *   signal until the next arm.
 * - Arm, then sleep. Arm returns -EBUSY when any stage of the turn has work, and otherwise
 *   arranges that later events make the descriptor readable. So nothing is lost between the last
 *   poll and the sleep: inline by the devices' own protocol (as plx_queue_arm() promises);
 *   dedicated the owner counts its events, fences and reads armed, while arm stores armed, fences
 *   and reads the count: one of the two sees the other's.
 * - Work that needs time and not an event does not let the application sleep at all (a full
 *   device), or has a timer in the descriptor (connecting). The death of a peer is an event.
 *   plx_worker_sleep() still ends after PLX_WAKE_MAX_MS.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ring.h>

#include "worker_int.h"

int
worker_wake_add(struct plx_worker *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | (w->wake.edge ? EPOLLET : 0)};

	if (!w->wake.on)
		return 0;
	return epoll_ctl(w->wake.efd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static int
add_queues(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		int fd = plx_queue_efd(w->queues[i]), rc;

		if (fd == -EOPNOTSUPP) {
			w->wake.no_sleep = true;
			continue;
		}
		rc = fd < 0 ? fd : worker_wake_add(w, fd);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
open_event(struct plx_worker *w, int *fd)
{
	*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *fd < 0 ? -errno : worker_wake_add(w, *fd);
}

static int
open_timer(struct plx_worker *w)
{
	w->wake.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return w->wake.timer_fd < 0 ? -errno : worker_wake_add(w, w->wake.timer_fd);
}

int
worker_wake_open(struct plx_worker *w, const struct plx_worker_params *params)
{
	struct epoll_event ev = {.events = EPOLLIN | (params->wakeup_edge ? EPOLLET : 0),
		.data.ptr = params->event_data};
	struct plx_wake *k = &w->wake;
	int rc;

	k->efd = k->signal_fd = k->app_fd = k->timer_fd = -1;
	k->due_ticks = UINT64_MAX;
	if (!params->wakeup)
		return 0;
	k->on = true;
	k->edge = params->wakeup_edge;
	k->efd = epoll_create1(EPOLL_CLOEXEC);
	rc = k->efd < 0 ? -errno : open_event(w, &k->signal_fd);
	if (rc == 0)
		rc = w->dedicated ? open_event(w, &k->app_fd) : add_queues(w);
	if (rc == 0 && !w->dedicated)
		rc = open_timer(w);
	if (rc == 0 && params->event_fd >= 0 &&
		epoll_ctl(params->event_fd, EPOLL_CTL_ADD, k->efd, &ev) != 0)
		rc = -EINVAL; /* no epoll descriptor */
	if (rc != 0) {
		worker_wake_close(w);
		return rc;
	}
	if (w->dedicated)
		worker_app_add(w, WORKER_APP_WAKEUP);
	return 0;
}

void
worker_wake_close(struct plx_worker *w)
{
	int *fds[] = {&w->wake.app_fd, &w->wake.signal_fd, &w->wake.timer_fd, &w->wake.efd};

	w->wake.on = false;
	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* rte_ring_empty() reads plainly what another thread stores atomically. */
static bool
ring_empty(const struct rte_ring *r)
{
	/* relaxed: taking an item acquires */
	return __atomic_load_n(&r->prod.tail, __ATOMIC_RELAXED) == __atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED);
}

/* Dedicated: whether nothing is in flight to the application, except requests. */
static bool
rings_empty(const struct plx_worker *w)
{
	return ring_empty(w->am.ring) && (!w->chans.on || ring_empty(w->chans.ring));
}

bool
worker_event_take(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n);
}

static void
give(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0) /* full: readable anyway */
		return;
}

bool
worker_is_told_all(const struct plx_worker *w)
{
	return plx_cq_drained(w->reqs.cq) && rings_empty(w);
}

void
worker_wake_app(struct plx_worker *w, unsigned n)
{
	struct plx_wake *k = &w->wake;
	uint32_t failed = atomic_load_explicit(&w->n_failed, memory_order_relaxed);

	if (n != 0 || failed != k->failed_told) {
		k->failed_told = failed;
		/* pairs with the acquire in collect_counted(): the counted work is visible */
		atomic_fetch_add_explicit(&k->n_events, 1, memory_order_release);
	} else if (worker_is_told_all(w)) {
		return;
	}
	/* pairs with the fence in arm_dedicated(): count before reading armed */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&k->armed, memory_order_relaxed) != 0 &&
		atomic_exchange_explicit(&k->armed, 0, memory_order_relaxed) != 0)
		give(k->app_fd);
}

bool
worker_has_news(const struct plx_worker *w)
{
	return plx_cq_next(w->reqs.cq) != NULL || !rings_empty(w);
}

bool
plx_worker_has_rung(const struct plx_worker *w)
{
	const struct plx_wake *k = &w->wake;

	if (w->dedicated) /* alone: the next look sees a ring that is missed now */
		return atomic_load_explicit(&k->armed, memory_order_relaxed) == 0;
	return unlikely(k->due_ticks != UINT64_MAX) && rte_rdtsc() >= k->due_ticks;
}

void
plx_worker_sleep(const struct plx_worker *w)
{
	struct pollfd p = {.fd = w->wake.efd, .events = POLLIN};

	poll(&p, 1, PLX_WAKE_MAX_MS);
}

int
plx_worker_signal(struct plx_worker *w)
{
	if (!w->wake.on)
		return -EOPNOTSUPP;
	give(w->wake.signal_fd);
	return 0;
}

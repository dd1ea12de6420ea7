/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reactor_wake.c - wake-ups of a sleeping reactor: its eventfd, its pollers' descriptors, and the
 * fences between
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plx_fence.h"
#include "plx_log.h"
#include "reactor_int.h"

PLX_LOG_DEFINE(reactor, "plx.reactor");

static int
watch(struct plx_reactor *r, int op, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(r->epfd, op, fd, &ev) == 0 ? 0 : -errno;
}

_Atomic bool reactor_fences_for_all;

void
reactor_fence_open(void)
{
	atomic_store_explicit(&reactor_fences_for_all, plx_fence_open(), memory_order_relaxed);
}

void
reactor_fence_sleep(void)
{
	/* pairs with the fence in reactor_fence_post() */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&reactor_fences_for_all, memory_order_relaxed))
		plx_fence_all();
}

int
reactor_wake_open(struct plx_reactor *r)
{
	int rc;

	r->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->epfd = epoll_create1(EPOLL_CLOEXEC);
	rc = r->bell < 0 || r->epfd < 0 ? -errno : watch(r, EPOLL_CTL_ADD, r->bell);
	if (rc != 0)
		reactor_wake_close(r);
	return rc;
}

void
reactor_wake_close(struct plx_reactor *r)
{
	if (r->bell >= 0)
		close(r->bell);
	if (r->epfd >= 0)
		close(r->epfd);
	r->bell = r->epfd = -1;
}

void
reactor_wake_add(struct plx_reactor *r, const struct plx_poller *p)
{
	for (unsigned i = 0; i < p->n_fds; i++)
		if (watch(r, EPOLL_CTL_ADD, p->fds[i]) != 0)
			PLX_LOG(WARNING, reactor, "lcore %u may wake up late: error %d", r->lcore,
				errno);
}

void
reactor_wake_remove(struct plx_reactor *r, const struct plx_poller *p)
{
	for (unsigned i = 0; i < p->n_fds; i++)
		(void)watch(r, EPOLL_CTL_DEL, p->fds[i]);
}

void
reactor_wake_slow(struct plx_reactor *r)
{
	const uint64_t one = 1;

	if (atomic_exchange_explicit(&r->sleeping, REACTOR_AWAKE, memory_order_relaxed) ==
			REACTOR_ASLEEP &&
		write(r->bell, &one, sizeof(one)) < 0)
		PLX_LOG_RATELIMIT(WARNING, reactor, "the eventfd of lcore %u failed: error %d", r->lcore,
			errno);
}

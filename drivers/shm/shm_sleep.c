/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_sleep.c - a sleeping receiver; shm_bell.c has the argument why no wake-up is lost
 */
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <rte_bitops.h>
#include <rte_pause.h>

#include "plx_fence.h"
#include "shm_int.h"

#define DRAIN_MAX     64 /* wake-ups taken at once: a flood of them must not keep us here */
#define SETTLE_PAUSES 4 /* longer than a line takes to come from another core */

int
shm_queue_efd(struct plx_queue *q)
{
	struct shm_queue *sq = shm_queue(q);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = sq};
	int rc;

	if (sq->bell[0] >= 0)
		return sq->epfd;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sq->bell) != 0)
		return -errno;
	if (epoll_ctl(sq->epfd, EPOLL_CTL_ADD, sq->bell[0], &ev) != 0) {
		rc = -errno;
		shm_bell_close(sq);
		return rc;
	}
	sq->seg->fences = q->fences_world && plx_fence_world();
	if (sq->seg->fences != 0)
		(void)plx_fence_world_open(); /* peers do the same, which takes time */
	rc = shm_queue_offer(sq);
	if (rc != 0) {
		shm_bell_close(sq);
		return rc;
	}
	sq->seg->bells = 1;
	return sq->epfd;
}

/* From now on senders wake us. The pause lets earlier messages of senders without a fence
 * arrive. */
static void
begin_sleep(struct shm_queue *sq)
{
	atomic_store_explicit(&sq->seg->sleeping, SHM_SLEEP(++sq->n_sleeps, sched_getcpu()), memory_order_relaxed);
	/* pairs with the fence in shm_bell_ring() */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; sq->seg->fences != 0 && i < SETTLE_PAUSES; i++)
		rte_pause();
}

/* Whether a ring has a message; a message in a cold slot makes it hot. */
static bool
something_waits(struct shm_queue *sq)
{
	/* relaxed: the reader of the message acquires it; only its existence matters here */
	if (atomic_load_explicit(&sq->seg->doorbell, memory_order_relaxed) != 0 ||
		atomic_load_explicit(&sq->seg->news, memory_order_relaxed) != 0 ||
		shm_mail_waits(sq))
		return true;
	for (uint64_t ready = sq->ready; ready != 0; ready &= ready - 1) {
		uint32_t i = rte_bsf64(ready);

		if (shm_slot_empty(sq, i))
			continue;
		if ((sq->hot >> i & 1) == 0)
			atomic_fetch_or_explicit(&sq->seg->doorbell, 1ull << i,
				memory_order_relaxed);
		return true;
	}
	return false;
}

int
shm_queue_arm(struct plx_queue *q)
{
	struct shm_queue *sq = shm_queue(q);

	/* A dead process has more steps to go, which no event would trigger. */
	if (sq->n_gone != 0) {
		shm_queue_control(q);
		return -EBUSY;
	}
	if (atomic_load_explicit(&sq->seg->sleeping, memory_order_relaxed) == 0) /* or armed again */
		begin_sleep(sq);
	if (!something_waits(sq))
		return 0;
	atomic_store_explicit(&sq->seg->sleeping, 0, memory_order_relaxed);
	return -EBUSY;
}

void
shm_queue_disarm(struct plx_queue *q)
{
	struct shm_queue *sq = shm_queue(q);
	char text;

	/*
	 * A sender that has just read the word writes later than this reads: then there is
	 * one spurious wake-up.
	 */
	atomic_store_explicit(&sq->seg->sleeping, 0, memory_order_relaxed);
	for (unsigned i = 0; i < DRAIN_MAX && recv(sq->bell[0], &text, 1, MSG_DONTWAIT) >= 0; i++)
		; /* more cause further spurious wake-ups */
	/* pairs with the release in shm_bell_news() */
	if (atomic_exchange_explicit(&sq->seg->news, 0, memory_order_acquire) != 0 ||
		shm_events(sq))
		shm_queue_control(q);
}

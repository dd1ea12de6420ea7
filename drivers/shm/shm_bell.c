/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_bell.c - the wake-up sockets by which senders wake a sleeping receiver
 *
 * Design notes
 * - A queue whose owner may sleep has a pair of sockets (bell), of which its peers get one with
 *   the segment. Each call on a socket can be non-blocking and without SIGPIPE; flags of a file
 *   would be shared with all its users, a hostile peer among them. A full socket already wakes.
 * - No wake-up is lost. The receiver stores sleeping, fences, and polls every ring; a sender
 *   stores its message, fences, and reads sleeping (both fences sequentially consistent, so one
 *   of them comes first). If the sender's is the first, the receiver sees the message and does
 *   not sleep; if the receiver's is, the sender sees sleeping and wakes it. Each sender sends one
 *   wake-up for each sleep, so its burst of messages costs one system call, and none relies on
 *   another, which may be stopped before it sends. The word has the CPU of the sleeping receiver:
 *   one that is woken on the sender's own CPU needs it to continue.
 * - A sender's fence waits for the line of its message, so each message would. A reactor sleeps
 *   briefly before a long sleep, and makes all its senders execute a fence in between
 *   (membarrier(2)), if both sides may: a sender then has a compiler barrier only. So a message
 *   may be seen only at the end of a short sleep; the receiver waits for a moment before it
 *   polls, which usually avoids that.
 * - Peers learn of the socket when they connect. A queue without one costs its peers a branch
 *   that is never taken.
 * - Other events wake as well: the death of a process by its pidfd, which is in the same epoll
 *   descriptor; the close of a queue by a wake-up to all its senders.
 */
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plx_fence.h"
#include "shm_int.h"

void
shm_bell_close(struct shm_queue *sq)
{
	for (int i = 0; i < 2; i++) {
		if (sq->bell[i] >= 0)
			close(sq->bell[i]);
		sq->bell[i] = -1;
	}
}

/*
 * Once this process is registered its sends need no fence. What the peer stored before it
 * slept without fencing us was stored before we were registered, and is visible.
 */
static void
unfence(struct shm_peer *p)
{
	if (p->may_not && plx_fence_world_open())
		p->fences = false;
}

void
shm_bell_of(struct shm_peer *p)
{
	if (p->bell < 0)
		return;
	p->fences = true;
	p->may_not = p->seg->fences != 0;
	unfence(p);
	p->wakes = true;
}

void
shm_bell_forget(struct shm_peer *p)
{
	if (p->bell >= 0)
		close(p->bell);
	p->bell = -1;
	p->wakes = false;
}

static void
bell_write(int fd)
{
	/* full: it wakes already; reset: its owner has closed */
	if (send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != ECONNREFUSED &&
		errno != ECONNRESET && errno != ENOTCONN && errno != EPIPE)
		PLX_LOG_RATELIMIT(WARNING, shm, "a peer can't be woken up: error %d", errno);
}

__rte_noinline void
shm_bell_ring(struct shm_peer *p)
{
	uint64_t sleep;

	/* pairs with the fence in shm_queue_arm(): our message precedes this read */
	if (p->fences) {
		atomic_thread_fence(memory_order_seq_cst);
		unfence(p);
	}
	sleep = atomic_load_explicit(&p->seg->sleeping, memory_order_relaxed);
	if (sleep == 0 || sleep == p->rung)
		return;
	p->rung = sleep;
	if (SHM_SLEEP_CPU(sleep) == (uint16_t)sched_getcpu())
		atomic_store_explicit(&p->peer.q->woke, true, memory_order_relaxed);
	bell_write(p->bell);
}

void
shm_bell_news(struct shm_seg *seg, int bell)
{
	/* pairs with the acquire in shm_queue_disarm(): closed is visible after it */
	atomic_store_explicit(&seg->news, 1, memory_order_release);
	/* pairs with the fence in shm_queue_arm() */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&seg->sleeping, memory_order_relaxed) != 0)
		bell_write(bell);
}

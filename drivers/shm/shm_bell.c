/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_bell.c - a receiver that sleeps, and the bell by which senders wake it
 *
 * Design notes
 * A queue whose owner may sleep has a bell, a pair of sockets, one of which its peers are given with the
 * segment. It is a socket because each of its calls can be told not to wait and to raise no SIGPIPE: what a
 * file is told is told to all who share it, a peer that means no good among them. A full one is a bell that
 * rings already.
 *
 * No wake-up is lost. The receiver stores sleeping, fences, and looks at every
 * ring; a sender stores its message, fences, and looks at sleeping (both fences
 * sequentially consistent, so one of them comes first). If the sender's is the
 * first, the receiver sees the message and does not sleep; if the receiver's is,
 * the sender sees sleeping and rings. Each sender rings once for each sleep, so its burst of messages
 * costs one system call, and none relies on another, which may be stopped as it is about to ring. The
 * word says on which CPU the receiver sleeps: one that is woken on the sender's own needs it to go on.
 *
 * A sender's fence waits for the line of its message, so each message would. A reactor dozes before it
 * sleeps, and has all who send to it fence in between (membarrier(2)), where both sides may have that
 * done: a sender keeps the order for the compiler only. So a message may be seen at the end of a
 * doze only; the receiver waits for a moment before it looks, which mostly avoids that.
 *
 * Peers learn of the bell when they connect. A queue without one costs its peers a
 * branch that is never taken.
 *
 * What is no message wakes as well: the death of a process by its pidfd, which is in
 * the same epoll descriptor; a queue that is closed by ringing all who send to it.
 */
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_pause.h>

#include "plx_fence.h"
#include "shm_int.h"

#define DRAIN_MAX     64 /* rings taken at once: who rings all the time must not keep us here */
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
	sq->seg->fences = q->dozes && plx_fence_world();
	if (sq->seg->fences != 0)
		(void)plx_fence_world_open(); /* as peers do the same; it takes time */
	rc = shm_queue_offer(sq);
	if (rc != 0) {
		shm_bell_close(sq);
		return rc;
	}
	sq->seg->bells = 1;
	return sq->epfd;
}

void
shm_bell_close(struct shm_queue *sq)
{
	for (int i = 0; i < 2; i++) {
		if (sq->bell[i] >= 0)
			close(sq->bell[i]);
		sq->bell[i] = -1;
	}
}

/* From now on senders ring. What those sent that looked too early comes meanwhile, if they do not fence. */
static void
begin_sleep(struct shm_queue *sq)
{
	atomic_store_explicit(&sq->seg->sleeping, SHM_SLEEP(++sq->n_sleeps, sched_getcpu()), memory_order_relaxed);
	/* pairs with the fence in shm_bell_ring() */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; sq->seg->fences != 0 && i < SETTLE_PAUSES; i++)
		rte_pause();
}

/* Whether something lies in a ring; what is found in a cold slot warms it. */
static bool
something_waits(struct shm_queue *sq)
{
	/* relaxed: whoever reads the message acquires it; here only whether counts */
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

	/* A process that died has more steps to go, which no event would bring. */
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
	 * A sender that has just read the word writes later than this reads: the bell then rings
	 * for nothing, once.
	 */
	atomic_store_explicit(&sq->seg->sleeping, 0, memory_order_relaxed);
	for (unsigned i = 0; i < DRAIN_MAX && recv(sq->bell[0], &text, 1, MSG_DONTWAIT) >= 0; i++)
		; /* more than that rings again, for nothing */
	/* pairs with the release in ring_news() */
	if (atomic_exchange_explicit(&sq->seg->news, 0, memory_order_acquire) != 0 ||
		shm_events(sq))
		shm_queue_control(q);
}

/*
 * Once this process is registered its sends need no fence. What the peer stored before it slept without
 * fencing us was stored before we were registered, and is seen.
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
	/* full: it rings already; reset: its owner has gone */
	if (send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != ECONNREFUSED &&
		errno != ECONNRESET && errno != ENOTCONN && errno != EPIPE)
		PLX_LOG_RATELIMIT(WARNING, shm, "a bell does not ring: error %d", errno);
}

__rte_noinline void
shm_bell_ring(struct shm_peer *p)
{
	uint64_t sleep;

	/* pairs with the fence in shm_queue_arm(): our message comes before this look */
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

static void
ring_news(struct shm_seg *seg, int bell)
{
	/* pairs with the acquire in shm_queue_disarm(): closed is seen after it */
	atomic_store_explicit(&seg->news, 1, memory_order_release);
	/* pairs with the fence in shm_queue_arm() */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&seg->sleeping, memory_order_relaxed) != 0)
		bell_write(bell);
}

void
shm_bell_last(struct shm_peer *p)
{
	struct shm_queue *sq = shm_queue(p->peer.q);

	atomic_store_explicit(&sq->seg->closed, 1, memory_order_release);
	if (p->gone || p->peer.state == PLX_PEER_DEAD || p->addr.uid == sq->addr.uid)
		return;
	shm_peer_settle(&p->peer); /* one that has just begun to send to us may sleep already */
	if (p->seg != NULL && p->bell >= 0)
		ring_news(p->seg, p->bell);
}

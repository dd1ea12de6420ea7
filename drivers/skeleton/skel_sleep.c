/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skel_sleep.c - an owner that sleeps until something comes, or until it has to look after its peers
 *
 * Design notes
 * No wake-up is lost: the receiver stores armed, fences and looks at its lanes; a sender stores its message, fences and
 * reads armed. One of the two sees the other's. That the other end has gone is no message: the deadline is for that.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plx_clock.h"
#include "skel_int.h"

struct skel_bell *
skel_bell_new(void)
{
	struct skel_bell *bell = calloc(1, sizeof(*bell));

	if (bell == NULL)
		return NULL;
	bell->fd = -1;
	return skel_bell_get(bell);
}

struct skel_bell *
skel_bell_get(struct skel_bell *bell)
{
	/* relaxed: the caller has a reference */
	atomic_fetch_add_explicit(&bell->refs, 1, memory_order_relaxed);
	return bell;
}

void
skel_bell_put(struct skel_bell *bell)
{
	if (bell == NULL || atomic_fetch_sub_explicit(&bell->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (bell->fd >= 0)
		close(bell->fd);
	free(bell);
}

void
skel_bell_ring(struct skel_bell *bell)
{
	const uint64_t one = 1;

	/* pairs with the fence in skel_arm() */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&bell->armed, memory_order_relaxed) ||
		!atomic_exchange_explicit(&bell->armed, false, memory_order_relaxed))
		return;
	if (write(bell->fd, &one, sizeof(one)) < 0)
		return; /* full: readable anyway */
}

int
skel_efd(struct plx_queue *q)
{
	struct skel_queue *sq = q->priv;

	if (sq->bell->fd < 0)
		sq->bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return sq->bell->fd >= 0 ? sq->bell->fd : -errno;
}

static bool
something_waits(const struct skel_queue *sq)
{
	const struct skel_peer *p;

	if (atomic_load_explicit(&sq->knocked, memory_order_relaxed))
		return true;
	TAILQ_FOREACH(p, &sq->senders, link)
		if (!skel_lane_is_empty(p->rx))
			return true;
	return false;
}

int
skel_arm(struct plx_queue *q)
{
	struct skel_queue *sq = q->priv;

	if (sq->n_told_later != 0) /* nobody rings when the receiver has fetched it */
		return -EBUSY;
	atomic_store_explicit(&sq->bell->armed, true, memory_order_relaxed);
	/* pairs with the fence in skel_bell_ring() */
	atomic_thread_fence(memory_order_seq_cst);
	if (!something_waits(sq))
		return 0;
	skel_disarm(q);
	return -EBUSY;
}

void
skel_disarm(struct plx_queue *q)
{
	const struct skel_queue *sq = q->priv;
	uint64_t n;

	atomic_store_explicit(&sq->bell->armed, false, memory_order_relaxed);
	if (read(sq->bell->fd, &n, sizeof(n)) < 0)
		return; /* nobody has rung */
}

uint64_t
skel_deadline(struct plx_queue *q)
{
	const struct skel_queue *sq = q->priv;

	return sq->n_ends != 0 ? sq->looked_ns + sq->look_ns : UINT64_MAX;
}

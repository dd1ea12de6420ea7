/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_sleep.c - an owner that sleeps until something comes
 *
 * Design notes
 * epoll reports an event until somebody takes it. So only what epoll does not watch all the time is armed: hot sockets
 * (tcp_poll.c), and room in sockets that were full. An owner that an event waits for does not sleep, as it would only
 * be woken.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "tcp_int.h"

int
tcp_queue_efd(struct plx_queue *q)
{
	return tcp_sock_epoll(tcp_queue(q));
}

static bool
hot_waits(const struct tcp_queue *tq)
{
	const struct tcp_flow *f;

	TAILQ_FOREACH(f, &tq->hot, hot_link)
		if (f->odd == TCP_LOOK || (f->self && !STAILQ_EMPTY(&f->out)))
			return true;
	return false;
}

/* Whether something waits that no event will report. */
static bool
waits(const struct tcp_queue *tq)
{
	struct tcp_frame f;
	const struct tcp_rx *rx = &tq->rx;

	return tq->n_wants + tq->n_byes != 0 || !TAILQ_EMPTY(&tq->dirty) || !STAILQ_EMPTY(&tq->lent_over) ||
		!STAILQ_EMPTY(&tq->ops_over) || hot_waits(tq) ||
		(rx->end != rx->at && tcp_frame_look(rx->buf + rx->at, rx->end - rx->at, TCP_MSG_MAX, &f) != TCP_FRAME_PART);
}

/* @return whether epoll reports all that comes */
static bool
hot_arm(struct tcp_queue *tq)
{
	struct tcp_flow *f;

	tq->slept = tq->turns;
	TAILQ_FOREACH(f, &tq->hot, hot_link)
		if (!f->self && !tcp_hot_poll(f))
			return false;
	return true;
}

int
tcp_queue_arm(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	struct epoll_event ev;
	struct tcp_flow *f;

	if (waits(tq) || !hot_arm(tq) || (tq->udp != NULL && tcp_udp_arm(tq)) || (!q->rests && epoll_wait(tq->epfd, &ev, 1, 0) > 0))
		return -EBUSY;
	TAILQ_FOREACH(f, &tq->blocked, blocked_link)
		tcp_out_arm(f);
	return 0;
}

void
tcp_queue_disarm(struct plx_queue *q)
{
	tcp_poll(tcp_queue(q));
}

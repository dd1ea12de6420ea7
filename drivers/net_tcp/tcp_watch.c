/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_watch.c - those who have not acknowledged what was sent to them: are their hosts still there?
 *
 * Design notes
 * The kernel has a limit for that, TCP_USER_TIMEOUT, but counts the time in which a receiver's window is
 * full: a peer that computes for so long without reading would be given up, though its host answers. So the
 * kernel is asked, every probe_ms, whether it sends again and again without an answer, and only of peers that
 * something was sent to; who has acknowledged all is asked no more. Connections on which nothing is under way
 * are the kernel's (keep-alive).
 */
#include <errno.h>
#include <linux/tcp.h>
#include <sys/socket.h>

#include "tcp_int.h"

void
tcp_watch(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	p->watched = true;
	p->flow.mute_ms = 0;
	if (TAILQ_EMPTY(&tq->watched))
		tq->watch_ms = plx_clock_ms() + tq->probe_ms;
	TAILQ_INSERT_TAIL(&tq->watched, p, watch_link);
}

/* What has come is read up to its end, and then the peer is dead. */
static void
give_up(struct tcp_peer *p)
{
	tcp_unwatch(p);
	if (tcp_is_up(p))
		(void)shutdown(p->flow.fd, SHUT_RDWR);
	tcp_peer_cut(p, -ETIMEDOUT);
}

static void
look_at(struct tcp_peer *p, uint64_t now_ms)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(p->flow.fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return;
	if (info.tcpi_retransmits + info.tcpi_probes == 0) {
		p->flow.mute_ms = 0;
		if (info.tcpi_unacked + info.tcpi_notsent_bytes == 0)
			tcp_unwatch(p);
	} else if (p->flow.mute_ms == 0) {
		p->flow.mute_ms = RTE_MAX((uint32_t)now_ms, 1u);
	} else if ((uint32_t)now_ms - p->flow.mute_ms >= tq->dead_ms) {
		give_up(p);
	}
}

void
tcp_watch_control(struct tcp_queue *tq, uint64_t now_ms)
{
	struct tcp_peer *p, *next;

	if (TAILQ_EMPTY(&tq->watched) || now_ms < tq->watch_ms)
		return;
	tq->watch_ms = now_ms + tq->probe_ms;
	for (p = TAILQ_FIRST(&tq->watched); p != NULL; p = next) {
		next = TAILQ_NEXT(p, watch_link);
		look_at(p, now_ms);
	}
}

uint64_t
tcp_watch_deadline_ms(const struct tcp_queue *tq)
{
	return TAILQ_EMPTY(&tq->watched) ? UINT64_MAX : tq->watch_ms;
}

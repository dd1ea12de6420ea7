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

#define CLOSED 7 /* TCP_CLOSE of <netinet/tcp.h>, whose struct tcp_info is too short */

void
tcp_watch(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	p->watched = true;
	if (TAILQ_EMPTY(&tq->watched))
		tq->watch_ms = plx_clock_ms() + tq->probe_ms;
	TAILQ_INSERT_TAIL(&tq->watched, p, watch_link);
}

/* @return 0: all that was sent by it has come; or -EAGAIN; -ETIMEDOUT: it does not */
static int
flow_look(struct tcp_flow *f, const struct tcp_queue *tq, uint32_t now_ms)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (!f->sent)
		return 0;
	if (getsockopt(f->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 || info.tcpi_state == CLOSED)
		return -EAGAIN; /* who reads it finds why */
	if (info.tcpi_retransmits + info.tcpi_probes == 0) {
		f->mute_ms = 0;
		f->sent = info.tcpi_unacked + info.tcpi_notsent_bytes != 0;
		return f->sent ? -EAGAIN : 0;
	}
	if (f->mute_ms == 0)
		f->mute_ms = RTE_MAX(now_ms, 1u);
	return now_ms - f->mute_ms >= tq->dead_ms ? -ETIMEDOUT : -EAGAIN;
}

static void
look_at(struct tcp_peer *p, uint32_t now_ms)
{
	const struct tcp_queue *tq = tcp_queue(p->peer.q);
	int worst = flow_look(&p->flow, tq, now_ms);

	for (unsigned i = 0; p->more != NULL && i < TCP_FLOWS_MAX - 1 && worst != -ETIMEDOUT; i++) {
		int rc = flow_look(&p->more->to[i].flow, tq, now_ms);

		worst = rc != 0 ? rc : worst;
	}
	if (worst != -EAGAIN)
		tcp_unwatch(p);
	if (worst == -ETIMEDOUT)
		tcp_peer_cut(p, worst);
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
		look_at(p, (uint32_t)now_ms);
	}
}

uint64_t
tcp_watch_deadline_ms(const struct tcp_queue *tq)
{
	return TAILQ_EMPTY(&tq->watched) ? UINT64_MAX : tq->watch_ms;
}

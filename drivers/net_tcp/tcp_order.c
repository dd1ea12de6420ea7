/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_order.c - the first connection of a peer, while data that belongs before its bytes comes by further ones
 *
 * Design notes
 * See tcp_away.c. What waits is kept apart from the queue's buffer, which others use meanwhile, and the connection is not
 * read then.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tcp_int.h"

void
tcp_rx_bad(struct tcp_queue *tq)
{
	PLX_STAT_INC(tq->stat.drop_bad_frame);
	tcp_peer_reject(tq->rx.of, -EPROTO);
	tq->rx.at = tq->rx.end;
}

static ssize_t
read_more(struct tcp_queue *tq, struct tcp_peer *p)
{
	ssize_t n = recv(p->flow.fd, tq->rx.buf + tq->rx.end, TCP_RX_LEN - tq->rx.end, MSG_DONTWAIT);

	PLX_STAT_INC(tq->stat.rx_calls);
	tq->rx.end += n > 0 ? (uint32_t)n : 0;
	return n;
}

/* Keep the rest of the buffer apart. */
static void
rest_keep(struct tcp_queue *tq, struct tcp_peer *p)
{
	struct tcp_rx *rx = &tq->rx;

	p->more->n_rest = rx->end - rx->at;
	memcpy(p->more->rest, rx->buf + rx->at, p->more->n_rest);
	*rx = (struct tcp_rx){.buf = rx->buf, .lent = rx->lent};
}

static void
rest_take(struct tcp_queue *tq, struct tcp_peer *p)
{
	tq->rx.at = 0;
	tq->rx.end = p->more->n_rest;
	memcpy(tq->rx.buf, p->more->rest, p->more->n_rest);
	p->more->n_rest = 0;
}

/* @return whether a frame has to wait; else more has to come, or TCP_FRAME_BAD in *is */
static bool
begin_all(struct tcp_peer *p, enum tcp_frame_is *is)
{
	struct tcp_rx *rx = &tcp_queue(p->peer.q)->rx;
	struct tcp_frame f;

	for (;;) {
		const struct tcp_further *x;

		*is = tcp_frame_look(rx->buf + rx->at, rx->end - rx->at, TCP_MSG_MAX, &f);
		if (*is != TCP_FRAME_GOOD)
			return false;
		x = f.flow != 0 ? tcp_away_of(p, &f) : NULL;
		if (f.flow == 0 || (x != NULL && tcp_is_bulk(&x->flow)))
			return true;
		*is = tcp_far_frame(p, &f);
		if (*is != TCP_FRAME_AWAY)
			return false;
	}
}

void
tcp_away_wait(struct tcp_queue *tq, struct tcp_peer *p)
{
	enum tcp_frame_is is;
	bool waits = begin_all(p, &is);

	if (!waits && is == TCP_FRAME_BAD) {
		tcp_rx_bad(tq);
		return;
	}
	p->flow.odd = waits ? TCP_STALLED : TCP_AWAITS;
	if (waits) {
		tcp_cool(&p->flow);
		tcp_flow_unwatch(&p->flow);
	}
	rest_keep(tq, p);
}

bool
tcp_away_look(struct tcp_queue *tq, struct tcp_peer *p)
{
	ssize_t n = 1;

	if (p->flow.odd == TCP_STALLED)
		return false;
	rest_take(tq, p);
	if (TAILQ_EMPTY(&p->more->busy)) {
		p->flow.odd = TCP_PLAIN;
		return tq->rx.end != 0;
	}
	if (p->flow.odd == TCP_AWAITS)
		n = read_more(tq, p);
	p->flow.n_empty = n > 0 ? 0 : p->flow.n_empty + 1;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		tcp_peer_end(p, p->lost_err != 0 ? p->lost_err : n == 0 ? -ECONNRESET : -errno);
		return false;
	}
	tcp_away_wait(tq, p);
	return false;
}

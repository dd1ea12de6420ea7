/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_rx.c - receiving: whole messages are delivered in the queue's buffer
 *
 * Design notes
 * There is one buffer. It is filled from one peer at a time, and only when all delivered messages are released and all
 * whole messages are given out. The beginning of a message at its end goes to the front when the same peer
 * is read again, and waits in a chunk while others are read: an idle connection holds no memory.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tcp_int.h"

#define PUSH_MAX 4u /* peers whose sockets were full and are tried again in one turn */

static __rte_noinline void
give_stops(struct tcp_queue *tq, enum tcp_frame_is is)
{
	if (is == TCP_FRAME_BAD)
		tcp_rx_bad(tq);
	else
		tcp_away_wait(tq, tq->rx.of);
}

/* Whole messages from the buffer. */
static uint16_t
give(struct tcp_queue *tq, struct plx_rx *out, uint16_t n)
{
	struct tcp_rx *rx = &tq->rx;
	enum tcp_frame_is is = TCP_FRAME_GOOD;
	struct tcp_frame f;
	uint16_t got = 0;

	while (got < n) {
		is = tcp_frame_look(rx->buf + rx->at, rx->end - rx->at, TCP_MSG_MAX, &f);
		if (is != TCP_FRAME_GOOD)
			break;
		if (unlikely(f.kind != TCP_MSG)) {
			is = tcp_far_frame(rx->of, &f);
			if (is != TCP_FRAME_GOOD)
				break;
			continue;
		}
		out[got].src = &rx->of->peer;
		out[got].data = rx->buf + rx->at + sizeof(f);
		out[got].len = f.len;
		out[got].op = f.op;
		rx->at += tcp_frame_len(f.len);
		got++;
	}
	rx->lent += got;
	if (unlikely(is > TCP_FRAME_GOOD))
		give_stops(tq, is);
	return got;
}

/* Whole messages, unless their sender is given up. */
static inline uint16_t
rx_give(struct tcp_queue *tq, struct plx_rx *out, uint16_t n)
{
	struct tcp_rx *rx = &tq->rx;

	if (rx->at == rx->end)
		return 0;
	if (likely(rx->of->peer.state != PLX_PEER_DEAD))
		return give(tq, out, n);
	tcp_rx_drop(rx->of);
	return 0;
}

/* Somebody else is read: the beginning of a message waits in a chunk. @return whether there was one */
static bool
part_keep(struct tcp_queue *tq)
{
	struct tcp_rx *rx = &tq->rx;
	uint32_t n = rx->end - rx->at;
	struct tcp_chunk *c;

	if (n != 0) {
		c = tcp_chunk_get(tq, true);
		if (c == NULL) {
			PLX_STAT_INC(tq->stat.rx_no_chunk);
			return false;
		}
		PLX_STAT_INC(tq->stat.parts);
		memcpy(tcp_chunk_data(c), rx->buf + rx->at, n);
		c->end = n;
		rx->of->part = c;
	}
	*rx = (struct tcp_rx){.buf = rx->buf};
	return true;
}

/* What has come of a peer before goes to the front of the buffer. @return false: this one can't be read now */
static bool
part_take(struct tcp_queue *tq, struct tcp_peer *p)
{
	struct tcp_rx *rx = &tq->rx;

	if (rx->of != NULL && rx->of != p && !part_keep(tq))
		return false;
	if (p->part != NULL) {
		memcpy(rx->buf, tcp_chunk_data(p->part), p->part->end);
		rx->at = 0;
		rx->end = p->part->end;
		tcp_chunk_put(tq, p->part);
		p->part = NULL;
	} else if (rx->at != 0) {
		memmove(rx->buf, rx->buf + rx->at, rx->end - rx->at);
		rx->end -= rx->at;
		rx->at = 0;
	}
	rx->of = p;
	return true;
}

/* What we have sent to ourselves. */
static ssize_t
take_own(struct tcp_peer *p, uint8_t *to, size_t len)
{
	struct tcp_chunk *c = STAILQ_FIRST(&p->flow.out);
	size_t n;

	if (c == NULL || c->at == c->end) {
		errno = EAGAIN;
		return -1;
	}
	n = RTE_MIN(len, (size_t)(c->end - c->at));
	memcpy(to, c->from + c->at, n);
	tcp_out_sent(tcp_queue(p->peer.q), &p->flow, n);
	return (ssize_t)n;
}

/* Into the buffer. @return as recv() */
static ssize_t
take_near(struct tcp_queue *tq, struct tcp_peer *p, uint32_t len)
{
	struct tcp_rx *rx = &tq->rx;
	ssize_t n;

	PLX_STAT_INC(tq->stat.rx_calls);
	n = recv(p->flow.fd, rx->buf + rx->end, len, MSG_DONTWAIT);
	rx->end += n > 0 ? (uint32_t)n : 0;
	return n;
}

static __rte_noinline ssize_t
take_bulky(struct tcp_queue *tq, struct tcp_peer *p)
{
	uint32_t room = TCP_RX_LEN - tq->rx.end;
	ssize_t n;

	if (tcp_is_bulk(&p->flow))
		return tcp_bulk_take(&p->flow);
	n = take_near(tq, p, RTE_MIN(TCP_NEAR_LEN, room));
	p->flow.bulk.bulky -= n > 0;
	return n;
}

static __rte_noinline ssize_t
take_self(struct tcp_queue *tq, struct tcp_peer *p)
{
	ssize_t n = take_own(p, tq->rx.buf + tq->rx.end, TCP_RX_LEN - tq->rx.end);

	tq->rx.end += n > 0 ? (uint32_t)n : 0;
	return n;
}

static ssize_t
take(struct tcp_queue *tq, struct tcp_peer *p)
{
	if (unlikely(p->flow.self))
		return take_self(tq, p);
	if (unlikely(p->flow.bulk.bulky != 0 || tcp_is_bulk(&p->flow)))
		return take_bulky(tq, p);
	return take_near(tq, p, TCP_RX_LEN - tq->rx.end);
}

/* What is in the buffer can't be used now, although it is whole: there is no chunk for its answer. */
static __rte_noinline bool
is_stuck(const struct tcp_rx *rx)
{
	struct tcp_frame f;

	return tcp_frame_look(rx->buf + rx->at, rx->end - rx->at, TCP_MSG_MAX, &f) != TCP_FRAME_PART;
}

/* It is not just read. @return whether the buffer is to be given out */
static __rte_noinline bool
fill_odd(struct tcp_queue *tq, struct tcp_flow *f)
{
	struct tcp_peer *p = tcp_flow_peer(f);

	if (f->odd == TCP_DEAF || p->peer.state == PLX_PEER_DEAD)
		tcp_peer_end(p, p->lost_err);
	else if (f->odd == TCP_FURTHER)
		tcp_away_take(f);
	else if ((tq->rx.at == tq->rx.end || !is_stuck(&tq->rx)) && part_take(tq, p))
		return tcp_away_look(tq, p);
	return false;
}

/* Read a socket. @return whether something came */
static bool
fill(struct tcp_queue *tq, struct tcp_flow *f)
{
	struct tcp_peer *p = container_of(f, struct tcp_peer, flow); /* unless it is a further one */
	ssize_t n;

	if (unlikely(f->odd != TCP_PLAIN || p->peer.state == PLX_PEER_DEAD))
		return fill_odd(tq, f);
	if ((tq->rx.at != tq->rx.end && is_stuck(&tq->rx)) || !part_take(tq, p))
		return false;
	n = take(tq, p);
	if (likely(n > 0)) {
		p->flow.n_empty = 0;
		p->used_ms = tq->now_ms;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		PLX_STAT_INC(tq->stat.rx_empty);
		p->flow.n_empty++;
		return false;
	}
	if (!tcp_park_end(p))
		tcp_peer_end(p, p->lost_err != 0 ? p->lost_err : n == 0 ? -ECONNRESET : -errno);
	return false;
}

/* Those whose sockets were full, a few in each turn. */
static void
push_blocked(struct tcp_queue *tq)
{
	struct tcp_flow *f;

	for (unsigned i = 0; i < PUSH_MAX && (f = TAILQ_FIRST(&tq->blocked)) != NULL; i++) {
		TAILQ_REMOVE(&tq->blocked, f, blocked_link);
		TAILQ_INSERT_TAIL(&tq->blocked, f, blocked_link);
		tcp_flow_push(f);
	}
}

/* A peer that sends much is read on, behind messages that were given out. @return messages with those */
static uint16_t
read_on(struct tcp_queue *tq, struct tcp_peer *p, struct plx_rx *out, uint16_t n, uint16_t got)
{
	const struct tcp_rx *rx = &tq->rx;

	for (unsigned i = 1; i < TCP_READS && got < n && p->flow.bulk.bulky != 0 && rx->of == p; i++) {
		ssize_t r;

		if (rx->end > TCP_RX_LEN / 2 || p->flow.odd != TCP_PLAIN || (rx->at != rx->end && is_stuck(rx)))
			break;
		r = take(tq, p);
		if (r < 0 && errno != EAGAIN && errno != EINTR && p->lost_err == 0)
			p->lost_err = -errno;
		if (r <= 0)
			break; /* the end is found again when it is read next */
		got += rx_give(tq, out + got, n - got);
	}
	return got;
}

/* Look at the sockets until there are messages. Who was looked at goes behind the others. */
static uint16_t
look(struct tcp_queue *tq, struct plx_rx *out, uint16_t n)
{
	uint16_t got = 0;

	for (uint32_t left = tq->n_hot; left > 0 && got == 0; left--) {
		struct tcp_flow *f = TAILQ_FIRST(&tq->hot);
		struct tcp_peer *p;

		if (f == NULL) /* ends make them fewer */
			break;
		TAILQ_REMOVE(&tq->hot, f, hot_link);
		TAILQ_INSERT_TAIL(&tq->hot, f, hot_link);
		p = container_of(f, struct tcp_peer, flow); /* if something came */
		if (fill(tq, f))
			got = read_on(tq, p, out, n, rx_give(tq, out, n));
	}
	return got;
}

uint16_t
tcp_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct tcp_queue *tq = tcp_queue(q);
	uint16_t got;

	if (unlikely(!STAILQ_EMPTY(&tq->lent_over)))
		tcp_lent_tell(tq);
	if (unlikely(!STAILQ_EMPTY(&tq->ops_over)))
		tcp_op_tell(tq);
	got = rx_give(tq, rx, n);
	if (got != 0 || tq->rx.lent != 0 || tq->epfd < 0)
		return got;
	if (unlikely(!TAILQ_EMPTY(&tq->blocked)))
		push_blocked(tq);
	if (unlikely(tq->udp != NULL))
		tcp_udp_turn(tq);
	got = look(tq, rx, n);
	if (tcp_poll_is_due(tq)) {
		tcp_poll(tq);
		got = got != 0 ? got : look(tq, rx, n);
	}
	if (unlikely(!q->hold && !TAILQ_EMPTY(&tq->dirty)))
		tcp_flush(q); /* answers: nobody else sends them */
	return got;
}

void
tcp_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	tcp_queue(q)->rx.lent -= n;
	PLX_STAT_ADD(q->stat.rx_msgs, n);
	for (uint16_t i = 0; i < n; i++)
		PLX_STAT_ADD(q->stat.rx_bytes, rx[i].len);
}

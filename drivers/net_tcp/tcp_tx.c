/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_tx.c - sending: messages wait in chunks, and go by one system call a peer at the end of a turn
 *
 * Design notes
 * In a turn of the worker (plx_queue.hold) messages are written one behind the other, and tcp_flush() gives the
 * kernel all of a peer's at once. Outside of a turn nobody would flush, so a message goes at once: but only the
 * first to a peer. The next are refused until there has been a turn, and then they go together; whoever sends
 * many pays for few system calls, and nothing that was taken waits for the program's next call.
 *
 * What the socket does not take stays, up to TCP_PEER_CHUNKS chunks a peer; each turn tries again.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tcp_int.h"

int
tcp_tx_full(const struct tcp_peer *p)
{
	if (p->peer.state == PLX_PEER_DEAD)
		return p->peer.err;
	PLX_STAT_INC(p->peer.q->stat.tx_full);
	return -EAGAIN;
}

static __rte_noinline struct tcp_chunk *
another_chunk(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_chunk *c = NULL;

	if (p->n_out < TCP_PEER_CHUNKS)
		c = tcp_chunk_get(tq, p->n_out == 0);
	if (c == NULL) {
		PLX_STAT_INC(tq->stat.tx_no_chunk);
		return NULL;
	}
	STAILQ_INSERT_TAIL(&p->out, c, link);
	p->n_out++;
	p->tail = c;
	return c;
}

/* Room for a frame behind all that waits. */
static inline uint8_t *
room(struct tcp_peer *p, uint32_t len)
{
	struct tcp_chunk *c = p->tail;

	if (unlikely(c == NULL || TCP_CHUNK_DATA - c->end < len))
		c = another_chunk(p);
	return c != NULL ? tcp_chunk_data(c) + c->end : NULL;
}

static inline uint8_t *
frame_begin(struct tcp_peer *p, uint8_t op, uint32_t len)
{
	const struct tcp_frame f = {.len = len, .kind = TCP_MSG, .op = op};
	uint8_t *at;

	if (unlikely(p->state != TCP_OPEN || tcp_tx_is_late(p)))
		return NULL;
	at = room(p, tcp_frame_len(len));
	if (unlikely(at == NULL))
		return NULL;
	memcpy(at, &f, sizeof(f));
	return at + sizeof(f);
}

static __rte_noinline void
go_at_once(struct tcp_peer *p)
{
	struct plx_queue *q = p->peer.q;

	if (q->turns != NULL)
		p->sent_turn = *q->turns + 1;
	tcp_push(p);
}

static inline void
tx_go(struct tcp_peer *p, uint32_t len)
{
	struct plx_queue *q = p->peer.q;

	PLX_STAT_INC(q->stat.tx_msgs);
	PLX_STAT_ADD(q->stat.tx_bytes, len);
	if (!q->hold) {
		go_at_once(p);
	} else if (!p->dirty) {
		p->dirty = q->held = true;
		TAILQ_INSERT_TAIL(&tcp_queue(q)->dirty, p, dirty_link);
	}
}

void
tcp_tx_go(struct tcp_peer *p, uint32_t len)
{
	tx_go(p, len);
}

static inline void
frame_end(struct tcp_peer *p, uint32_t len)
{
	p->tail->end += tcp_frame_len(len);
	tx_go(p, len);
}

int
tcp_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct tcp_peer *p = tcp_peer(peer);
	uint8_t *at = frame_begin(p, op, sizeof(hdr) + len);

	if (unlikely(at == NULL))
		return tcp_tx_full(p);
	memcpy(at, &hdr, sizeof(hdr));
	memcpy(at + sizeof(hdr), data, len);
	frame_end(p, sizeof(hdr) + len);
	return 0;
}

static void
body_copy(const struct plx_tx *tx, uint8_t *at)
{
	memcpy(at, tx->hdr, tx->hdr_len);
	if (tx->pack != NULL)
		tx->pack(tx->pack_arg, tx->pack_offset, at + tx->hdr_len, tx->len);
	else if (tx->len != 0)
		memcpy(at + tx->hdr_len, tx->data, tx->len);
}

int
tcp_tx(const struct plx_tx *tx)
{
	struct tcp_peer *p = tcp_peer(tx->peer);
	uint32_t len = tx->hdr_len + tx->len;
	uint8_t *at;

	if (unlikely(len > tx->peer->mtu))
		return -EMSGSIZE;
	at = frame_begin(p, tx->op, len);
	if (unlikely(at == NULL))
		return tcp_tx_full(p);
	body_copy(tx, at);
	frame_end(p, len);
	return 0;
}

static int
out_gather(const struct tcp_peer *p, struct iovec iov[TCP_IOV], size_t *len)
{
	struct tcp_chunk *c;
	int n = 0;

	*len = 0;
	STAILQ_FOREACH(c, &p->out, link) {
		if (n == TCP_IOV)
			break;
		iov[n++] = (struct iovec){(void *)(uintptr_t)(c->from + c->at), c->end - c->at};
		*len += c->end - c->at;
	}
	return n;
}

/* One system call. @return whether all went */
static bool
push_once(struct tcp_peer *p, struct iovec *iov, int n, size_t len)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t r = sendmsg(p->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

	PLX_STAT_INC(tq->stat.tx_calls);
	if (r < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
		tcp_peer_cut(p, -errno);
		return false;
	}
	if (r > 0)
		tcp_out_sent(p, (size_t)r);
	if (!p->watched)
		tcp_watch(p);
	if (r == (ssize_t)len)
		return true;
	PLX_STAT_INC(tq->stat.tx_partial);
	return false;
}

void
tcp_push(struct tcp_peer *p)
{
	struct iovec iov[TCP_IOV];
	bool more = true;
	size_t len;
	int n = 0;

	if (p->self || p->state != TCP_OPEN)
		return;
	while (more && (n = out_gather(p, iov, &len)) != 0)
		more = push_once(p, iov, n, len);
	tcp_out_block(p, !more && p->state == TCP_OPEN);
}

void
tcp_flush(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	struct tcp_peer *p;

	while ((p = TAILQ_FIRST(&tq->dirty)) != NULL) {
		TAILQ_REMOVE(&tq->dirty, p, dirty_link);
		p->dirty = false;
		if (!p->blocked) /* else it is tried when it is its turn */
			tcp_push(p);
	}
}

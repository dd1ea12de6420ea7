/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_tx.c - sending: messages wait in chunks, and go by one system call a peer at the end of a turn
 *
 * Design notes
 * In a turn of the worker (plx_queue.hold) messages are written one behind the other, and tcp_flush() gives the
 * kernel all of a peer's at once. Outside of a turn nobody would flush, so a message goes at once: but only the
 * first to a peer. The next are refused until there has been a turn, and then they go together; whoever sends
 * many pays for few system calls, and nothing that was taken waits for the program's next call. Behind a turn that
 * sent many messages not even the first goes at once, as it would cost as much as all of the next turn.
 *
 * What the socket does not take stays, up to TCP_PEER_CHUNKS chunks a peer; each turn tries again.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tcp_int.h"

int
tcp_tx_full(struct tcp_peer *p)
{
	if (p->peer.state == PLX_PEER_DEAD)
		return p->peer.err;
	if (unlikely((p->state == TCP_NONE || p->state == TCP_LEAVING) && !p->wants)) {
		p->wants = true;
		tcp_queue(p->peer.q)->n_wants++;
	}
	PLX_STAT_INC(p->peer.q->stat.tx_full);
	return -EAGAIN;
}

static inline uint8_t *
frame_begin(struct tcp_peer *p, uint8_t op, uint32_t len)
{
	const struct tcp_frame f = {.len = len, .kind = TCP_MSG, .op = op};
	uint8_t *at;

	if (unlikely(p->state != TCP_OPEN || tcp_tx_is_late(p)))
		return NULL;
	at = tcp_out_room(p, tcp_frame_len(len));
	if (unlikely(at == NULL))
		return NULL;
	memcpy(at, &f, sizeof(f));
	return at + sizeof(f);
}

static __rte_noinline void
go_at_once(struct tcp_peer *p)
{
	struct plx_queue *q = p->peer.q;

	p->used_ms = tcp_queue(q)->now_ms;
	tcp_turn_sent(q, &p->sent_turn);
	if (!p->flow.blocked) /* else it is tried when it is its turn */
		tcp_push(p);
}

static inline void
tx_go(struct tcp_peer *p)
{
	if (p->peer.q->hold)
		tcp_tx_later(p);
	else
		go_at_once(p);
}

void
tcp_tx_go(struct tcp_peer *p)
{
	tx_go(p);
}

static inline void
frame_end(struct tcp_peer *p, uint32_t len)
{
	struct plx_queue *q = p->peer.q;

	p->flow.tail->end += tcp_frame_len(len);
	PLX_STAT_INC(q->stat.tx_msgs);
	PLX_STAT_ADD(q->stat.tx_bytes, len);
	tx_go(p);
}

int
tcp_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct tcp_peer *p = tcp_peer(peer);
	uint8_t *at = frame_begin(p, op, sizeof(hdr) + len);

	if (unlikely(at == NULL))
		return tcp_tx_full(p);
	memcpy(at, &hdr, sizeof(hdr));
	if (len != 0)
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

/* What one system call sends, and the keys by which memory in it is held meanwhile. */
struct tx_batch {
	int n;
	unsigned n_keys;
	size_t len;
	struct iovec iov[TCP_IOV];
	uint64_t keys[TCP_KEYED];
};

static void
batch_drop(const struct tx_batch *b)
{
	for (unsigned i = 0; i < b->n_keys; i++)
		tcp_key_drop(b->keys[i]);
}

/* Memory that the peer reads is ours no longer, perhaps. @return 0, or why it may not be sent now */
static __rte_noinline int
batch_hold(struct tcp_peer *p, struct tx_batch *b, const struct tcp_chunk *c)
{
	uint64_t key = container_of(c, struct tcp_lent, part)->key;
	int rc;

	if (b->n_keys == TCP_KEYED)
		return -EAGAIN;
	rc = tcp_key_hold(tcp_queue(p->peer.q)->keys, key, (uintptr_t)c->from + c->at, c->end - c->at,
		PLX_DEV_MEM_READ);
	if (rc == 0)
		b->keys[b->n_keys++] = key;
	return rc == 0 ? 0 : -EFAULT;
}

/* @return 0; or the peer can't be sent what it was promised */
static int
out_gather(struct tcp_peer *p, struct tcp_flow *f, struct tx_batch *b)
{
	struct tcp_chunk *c;
	int rc = 0;

	b->n = 0;
	b->n_keys = 0;
	b->len = 0;
	STAILQ_FOREACH(c, &f->out, link) {
		if (b->n == TCP_IOV)
			break;
		if (unlikely(c->keyed)) {
			rc = batch_hold(p, b, c);
			if (rc != 0)
				break;
		}
		b->iov[b->n++] = (struct iovec){(void *)(uintptr_t)(c->from + c->at), c->end - c->at};
		b->len += c->end - c->at;
	}
	return rc == -EAGAIN || b->n != 0 ? 0 : rc;
}

/* One piece costs the kernel less without a vector around it. */
static ssize_t
batch_send(int fd, struct tx_batch *b)
{
	const struct msghdr m = {.msg_iov = b->iov, .msg_iovlen = (size_t)b->n};

	return b->n == 1 ? send(fd, b->iov[0].iov_base, b->iov[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
			 : sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* One system call. @return whether all went */
static bool
push_once(struct tcp_peer *p, struct tcp_flow *f, struct tx_batch *b)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	ssize_t r = batch_send(f->fd, b);
	int err = errno;

	batch_drop(b);
	PLX_STAT_INC(tq->stat.tx_calls);
	if (r < 0 && err != EAGAIN && err != EINTR && err != ENOBUFS) {
		tcp_peer_cut(p, -err);
		return false;
	}
	if (r > 0)
		tcp_out_sent(tq, f, (size_t)r);
	f->sent = true;
	if (!p->watched)
		tcp_watch(p);
	if (r == (ssize_t)b->len)
		return true;
	PLX_STAT_INC(tq->stat.tx_partial);
	return false;
}

/* What was asked of us is answered behind what waits. @return whether there was room for all of it */
static inline bool
answer(struct tcp_peer *p)
{
	return likely(p->n_acks == 0 && p->due == NULL) || tcp_answer(p);
}

void
tcp_push(struct tcp_peer *p)
{
	bool more = true, answered;
	struct tx_batch b;
	int rc;

	if (p->flow.self || !tcp_is_up(p))
		return;
	do {
		answered = answer(p);
		rc = out_gather(p, &p->flow, &b);
		if (rc != 0)
			tcp_peer_reject(p, rc);
		more = rc == 0 && b.n != 0 && push_once(p, &p->flow, &b);
	} while (more);
	tcp_out_block(&p->flow, tcp_is_up(p) && (!answered || !STAILQ_EMPTY(&p->flow.out)));
}

static void
further_push(struct tcp_peer *p, struct tcp_flow *f)
{
	bool more = true;
	struct tx_batch b;
	int rc;

	while (more && tcp_is_up(p)) {
		rc = out_gather(p, f, &b);
		if (rc != 0)
			tcp_peer_reject(p, rc);
		more = rc == 0 && b.n != 0 && push_once(p, f, &b);
	}
	tcp_out_block(f, tcp_is_up(p) && !STAILQ_EMPTY(&f->out));
}

void
tcp_flow_push(struct tcp_flow *f)
{
	if (f->index == 0)
		tcp_push(tcp_flow_peer(f));
	else
		further_push(tcp_flow_peer(f), f);
}

void
tcp_flush(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	struct tcp_peer *p;

	while ((p = TAILQ_FIRST(&tq->dirty)) != NULL) {
		TAILQ_REMOVE(&tq->dirty, p, dirty_link);
		p->dirty = false;
		if (p->n_turn >= TCP_MANY)
			tcp_turn_sent(q, &p->sent_turn);
		if (!p->flow.blocked && !tcp_may_wait(p))
			tcp_push(p);
	}
	if (unlikely(tq->udp != NULL && tq->udp->n_tx != 0 && !tq->udp->blocked))
		tcp_udp_push(tq);
}

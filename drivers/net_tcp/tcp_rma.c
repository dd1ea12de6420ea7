/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_rma.c - reading and writing a peer's memory, by a key that it has given away
 *
 * Design notes
 * A write of up to a message's length is copied, a longer one is sent from where it lies, perhaps by a further
 * connection. It is over when the peer
 * has acknowledged it; short writes (tcp_put_short()) are not, what comes behind them is. What is over is
 * reported by the next look for messages.
 */
#include <errno.h>
#include <string.h>

#include "tcp_int.h"

int
tcp_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	struct tcp_queue *tq = tcp_queue(q);
	int rc = tq->keys == NULL ? tcp_keys_open(&tq->keys) : 0;

	return rc == 0 ? tcp_key_new(tq->keys, addr, len, rights, &tq->stat.randoms, out) : rc;
}

void
tcp_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
	(void)revoke; /* a key is given away once */
	tcp_key_end(tcp_queue(q)->keys, mem);
}

/* -- what is asked of the peer -- */

/* A frame of which all is copied. @return where its body goes, or NULL: there is no room */
static uint8_t *
frame_begin(struct tcp_peer *p, enum tcp_frame_kind kind, uint8_t op, uint32_t len)
{
	const struct tcp_frame f = {.len = len, .kind = (uint8_t)kind, .op = op};
	uint8_t *at = tcp_out_room(p, tcp_frame_len(len));

	if (at == NULL)
		return NULL;
	memcpy(at, &f, sizeof(f));
	return at + sizeof(f);
}

static void
frame_end(struct tcp_peer *p, uint32_t len)
{
	p->flow.tail->end += tcp_frame_len(len);
	tcp_tx_go(p);
}

static bool
put_copy(struct tcp_peer *p, const void *data, uint32_t len, const struct tcp_where *to, bool ack)
{
	uint8_t *at = frame_begin(p, TCP_PUT, ack, sizeof(*to) + len);

	if (at == NULL)
		return false;
	memcpy(at, to, sizeof(*to));
	if (len != 0)
		memcpy(at + sizeof(*to), data, len);
	p->flow.tail->end += tcp_frame_len(sizeof(*to) + len);
	return true;
}

static bool
put_lent(struct tcp_peer *p, const void *data, uint32_t len, const struct tcp_where *to)
{
	const struct tcp_frame f = {.len = sizeof(*to) + len, .kind = TCP_PUT, .op = true};
	uint8_t *head;

	if (!tcp_lent_has(&p->flow, 3) || p->flow.ahead >= TCP_AHEAD)
		return false;
	head = tcp_lent_head(&p->flow, sizeof(f) + sizeof(*to));
	memcpy(head, &f, sizeof(f));
	memcpy(head + sizeof(f), to, sizeof(*to));
	(void)tcp_lent_part(&p->flow, data, len);
	tcp_lent_pad(&p->flow, len);
	return true;
}

/* A longer one than a message. */
static bool
put_long(struct tcp_peer *p, const void *data, uint32_t len, const struct tcp_where *to)
{
	struct tcp_flow *f = p->more != NULL ? tcp_flow_for(p) : NULL;

	if (f == NULL)
		return put_lent(p, data, len, to);
	if (!tcp_away_put(p, f, data, len, to))
		return false;
	if (!f->blocked)
		tcp_flow_push(f);
	return true;
}

static int
put(struct tcp_peer *p, const struct plx_rma_op *op)
{
	const struct tcp_where to = {op->key, op->remote};
	uint32_t len = (uint32_t)op->len;
	struct tcp_op *o;

	if (p->n_puts == TCP_PEER_PUTS ||
		!(len <= p->peer.mtu ? put_copy(p, op->local, len, &to, true) : put_long(p, op->local, len, &to)))
		return tcp_tx_full(p);
	o = tcp_op_new(p, op);
	STAILQ_INSERT_TAIL(&p->puts, o, link);
	p->n_puts++;
	tcp_tx_go(p);
	return op->done != NULL ? -EINPROGRESS : 0;
}

static int
get(struct tcp_peer *p, const struct plx_rma_op *op)
{
	const struct tcp_get g = {{op->key, op->remote}, op->len};
	const struct tcp_atomic a = {{op->key, op->remote}, {op->operand[0], op->operand[1]}};
	bool atomic = op->atomic != PLX_DEV_NO_ATOMIC;
	uint32_t len = atomic ? sizeof(a) : sizeof(g);
	struct tcp_op *o;
	uint8_t *at = NULL;

	if (p->n_gets < TCP_PEER_GETS)
		at = frame_begin(p, atomic ? TCP_ATOMIC : TCP_GET, op->atomic, len);
	if (at == NULL)
		return tcp_tx_full(p);
	memcpy(at, atomic ? (const void *)&a : &g, len);
	o = tcp_op_new(p, op);
	STAILQ_INSERT_TAIL(&p->gets, o, link);
	p->n_gets++;
	frame_end(p, len);
	return op->done != NULL ? -EINPROGRESS : 0;
}

/* -- our own memory -- */

static void
self_move(const struct plx_rma_op *op)
{
	void *there = (void *)(uintptr_t)op->remote;

	if (op->atomic != PLX_DEV_NO_ATOMIC)
		*(uint64_t *)op->local = tcp_word_change(there, op->atomic, op->operand);
	else
		memmove(op->put ? there : op->local, op->put ? op->local : there, op->len);
}

static uint8_t
self_right(const struct plx_rma_op *op)
{
	return op->atomic != PLX_DEV_NO_ATOMIC ? PLX_DEV_MEM_ATOMIC : op->put ? PLX_DEV_MEM_WRITE : PLX_DEV_MEM_READ;
}

static int
self_rma(struct tcp_peer *p, const struct plx_rma_op *op)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (op->len != 0) {
		if (tcp_key_hold(tq->keys, op->key, op->remote, op->len, self_right(op)) != 0)
			return -EFAULT;
		self_move(op);
		tcp_key_drop(op->key);
	}
	tcp_op_over(tq, tcp_op_new(p, op), 0);
	return op->done != NULL ? -EINPROGRESS : 0;
}

/* -- the hooks -- */

int
tcp_rma(const struct plx_rma_op *op)
{
	struct tcp_peer *p = tcp_peer(op->peer);
	struct plx_queue *q = op->peer->q;
	int rc;

	if ((op->key == 0 && op->len != 0) || op->len > TCP_BULK_MAX)
		return -EOPNOTSUPP;
	if (p->state != TCP_OPEN || tcp_tx_is_late(p) || STAILQ_EMPTY(&tcp_queue(q)->ops_free))
		return tcp_tx_full(p);
	rc = p->flow.self ? self_rma(p, op) : op->put ? put(p, op) : get(p, op);
	if (rc == 0 || rc == -EINPROGRESS) {
		PLX_STAT_INC(q->stat.rma_ops);
		PLX_STAT_ADD(q->stat.rma_bytes, op->len);
	}
	return rc;
}

int
tcp_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	struct tcp_peer *p = tcp_peer(peer);
	const struct tcp_where to = {key, remote};

	if (unlikely(p->flow.self))
		return -EOPNOTSUPP; /* with a request */
	if (p->state != TCP_OPEN || tcp_tx_is_late(p) || !put_copy(p, data, len, &to, false))
		return tcp_tx_full(p);
	PLX_STAT_INC(peer->q->stat.rma_ops);
	PLX_STAT_ADD(peer->q->stat.rma_bytes, len);
	tcp_tx_go(p);
	return 0;
}

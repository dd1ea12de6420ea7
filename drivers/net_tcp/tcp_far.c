/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_far.c - what peers ask of our memory, by a key that they were given
 *
 * Design notes
 * All is done in the order in which it comes. Writes go straight to their place (tcp_bulk.c); what was asked for is
 * sent at the end of the turn (tcp_answer.c).
 */
#include <errno.h>
#include <string.h>

#include "tcp_int.h"

static enum tcp_frame_is
bad_key(struct tcp_peer *p)
{
	PLX_STAT_INC(tcp_queue(p->peer.q)->stat.drop_bad_key);
	return TCP_FRAME_BAD;
}

static enum tcp_frame_is
on_get(struct tcp_peer *p, const struct tcp_get *g)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	enum tcp_frame_is is;

	if (g->len > TCP_BULK_MAX)
		return TCP_FRAME_BAD;
	if (g->len != 0) {
		if (tcp_key_hold(tq->keys, g->from.key, g->from.addr, g->len, PLX_DEV_MEM_READ) != 0)
			return bad_key(p);
		tcp_key_drop(g->from.key);
	}
	if (g->len > p->peer.mtu)
		tcp_flows_make(p);
	is = tcp_due_add(p, &(struct tcp_due){g->from.key, g->from.addr, g->len});
	PLX_STAT_ADD(tq->stat.gets, is == TCP_FRAME_GOOD);
	return is;
}

static enum tcp_frame_is
on_atomic(struct tcp_peer *p, uint8_t atomic, const struct tcp_atomic *a)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	uint64_t old;

	if ((atomic != PLX_DEV_FADD && atomic != PLX_DEV_CSWAP) || a->at.addr % sizeof(old) != 0)
		return TCP_FRAME_BAD;
	if (p->due == NULL && tcp_chunks_left(tq) == 0)
		return TCP_FRAME_PART; /* it can't be done twice */
	if (tcp_key_hold(tq->keys, a->at.key, a->at.addr, sizeof(old), PLX_DEV_MEM_ATOMIC) != 0)
		return bad_key(p);
	old = tcp_word_change((uint64_t *)(uintptr_t)a->at.addr, atomic, a->operand);
	tcp_key_drop(a->at.key);
	PLX_STAT_INC(tq->stat.atomics);
	return tcp_due_add(p, &(struct tcp_due){.addr = old});
}

static enum tcp_frame_is
on_put(struct tcp_peer *p, const struct tcp_frame *f, const struct tcp_where *to)
{
	const struct tcp_bulk b = {.to = to->addr, .key = to->key, .left = f->len - (uint32_t)sizeof(*to),
		.acked = f->op != 0};

	return f->flow != 0 ? tcp_away_begin(p, f, &b, NULL) : tcp_bulk_begin(p, &b);
}

/* The answer comes by a further connection. */
static enum tcp_frame_is
on_got_away(struct tcp_peer *p, const struct tcp_frame *f, const struct tcp_bulk *b)
{
	enum tcp_frame_is is = tcp_away_begin(p, f, b, STAILQ_FIRST(&p->gets));

	if (is == TCP_FRAME_AWAY)
		(void)tcp_op_take(p);
	return is;
}

static enum tcp_frame_is
on_got(struct tcp_peer *p, const struct tcp_frame *f)
{
	const struct tcp_op *o = tcp_op_asked(p);
	struct tcp_bulk b;

	if (o == NULL || o->len != f->len)
		return TCP_FRAME_BAD;
	b = (struct tcp_bulk){.to = (uintptr_t)o->to, .left = f->len, .got = true};
	return f->flow != 0 ? on_got_away(p, f, &b) : tcp_bulk_begin(p, &b);
}

static enum tcp_frame_is
on_ack(struct tcp_peer *p, const struct tcp_ack *ack)
{
	bool is_long = false;

	if (!tcp_op_acked(p, ack->n, &is_long))
		return TCP_FRAME_BAD;
	if (is_long)
		tcp_flows_make(p);
	return TCP_FRAME_GOOD;
}

enum tcp_frame_is
tcp_far_frame(struct tcp_peer *p, const struct tcp_frame *f)
{
	struct tcp_rx *rx = &tcp_queue(p->peer.q)->rx;
	const uint8_t *at = rx->buf + rx->at + sizeof(*f);
	enum tcp_frame_is is;
	union {
		struct tcp_where put;
		struct tcp_get get;
		struct tcp_atomic atomic;
		struct tcp_ack ack;
	} body;

	switch (f->kind) {
	case TCP_PUT:
		memcpy(&body.put, at, sizeof(body.put));
		rx->at += (uint32_t)(sizeof(*f) + sizeof(body.put));
		return on_put(p, f, &body.put);
	case TCP_GOT:
		rx->at += (uint32_t)sizeof(*f);
		return on_got(p, f);
	case TCP_GET:
		memcpy(&body.get, at, sizeof(body.get));
		is = on_get(p, &body.get);
		break;
	case TCP_ATOMIC:
		memcpy(&body.atomic, at, sizeof(body.atomic));
		is = on_atomic(p, f->op, &body.atomic);
		break;
	case TCP_BYE:
		is = tcp_bye_came(p) ? TCP_FRAME_GOOD : TCP_FRAME_BAD;
		break;
	default:
		memcpy(&body.ack, at, sizeof(body.ack));
		is = on_ack(p, &body.ack);
		break;
	}
	if (is == TCP_FRAME_GOOD)
		rx->at += tcp_frame_len(f->len);
	return is;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_away.c - long data goes by a further connection, in the order of the first
 *
 * Design notes
 * The frame stands in the first connection, its data is all that comes by the other. The receiver begins to read data
 * there when it has come to the frame, so the data goes to its place behind all that was sent before. Behind such a frame
 * others that move data by idle flows are begun, too; anything else in the first connection waits until all such data is
 * there. So writes, messages and answers keep their order, and one that is acknowledged means that all before it are
 * done, as with one connection.
 * tcp_order.c has who waits.
 */
#include <errno.h>
#include <string.h>

#include "tcp_int.h"

/* -- sending -- */

/* Write the frame of data that goes by f into the first connection. @return whether both have room */
static bool
away_head(struct tcp_peer *p, struct tcp_flow *f, const struct tcp_frame *head, const struct tcp_where *to)
{
	uint32_t len = sizeof(*head) + (to != NULL ? sizeof(*to) : 0);
	uint8_t *at;

	if (!tcp_lent_has(f, 1) || f->ahead >= TCP_AHEAD)
		return false;
	at = tcp_out_room(p, len);
	if (at == NULL)
		return false;
	memcpy(at, head, sizeof(*head));
	if (to != NULL)
		memcpy(at + sizeof(*head), to, sizeof(*to));
	p->flow.tail->end += len;
	return true;
}

bool
tcp_away_put(struct tcp_peer *p, struct tcp_flow *f, const void *data, uint32_t len, const struct tcp_where *to)
{
	const struct tcp_frame head = {.len = sizeof(*to) + len, .kind = TCP_PUT, .op = true, .flow = f->index};

	if (!away_head(p, f, &head, to))
		return false;
	(void)tcp_lent_part(f, data, len);
	return true;
}

bool
tcp_away_answer(struct tcp_peer *p, struct tcp_flow *f, const struct tcp_due *d)
{
	const struct tcp_frame head = {.len = (uint32_t)d->len, .kind = TCP_GOT, .flow = f->index};
	struct tcp_lent *l;

	if (!away_head(p, f, &head, NULL))
		return false;
	l = tcp_lent_part(f, (const void *)(uintptr_t)d->addr, head.len);
	l->key = d->key;
	l->part.keyed = true;
	tcp_out_block(f, true); /* it is sent in the next turn */
	return true;
}

/* -- receiving -- */

struct tcp_further *
tcp_away_of(const struct tcp_peer *p, const struct tcp_frame *f)
{
	struct tcp_further *x;

	if (p->more == NULL || f->flow >= TCP_FLOWS_MAX)
		return NULL;
	x = &p->more->from[f->flow - 1];
	return x->flow.fd >= 0 ? x : NULL;
}

enum tcp_frame_is
tcp_away_begin(struct tcp_peer *p, const struct tcp_frame *f, const struct tcp_bulk *bulk, struct tcp_op *op)
{
	struct tcp_further *x = tcp_away_of(p, f);

	if (x == NULL || tcp_is_bulk(&x->flow) || bulk->left == 0)
		return TCP_FRAME_BAD;
	x->flow.bulk = *bulk;
	if (!tcp_bulk_may(&x->flow))
		return TCP_FRAME_BAD;
	x->op = op;
	x->n_acks = bulk->acked;
	TAILQ_INSERT_TAIL(&p->more->busy, x, busy_link);
	PLX_STAT_INC(tcp_queue(p->peer.q)->stat.rx_away);
	tcp_heat(&x->flow);
	return TCP_FRAME_AWAY;
}

/* The first connection is looked at again. */
static void
first_look(struct tcp_peer *p)
{
	if (p->flow.odd != TCP_AWAITS && p->flow.odd != TCP_STALLED)
		return;
	p->flow.odd = TCP_LOOK;
	tcp_heat(&p->flow);
}

/* All of it is there. */
static void
away_over(struct tcp_flow *f)
{
	struct tcp_further *x = container_of(f, struct tcp_further, flow), *before;
	struct tcp_peer *p = x->p;
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	tcp_cool(f);
	tcp_flow_unwatch(f);
	if (x->op != NULL)
		tcp_op_over(tq, x->op, 0);
	else
		PLX_STAT_INC(tq->stat.puts);
	x->op = NULL;
	/* Writes are acknowledged in their order. */
	before = TAILQ_PREV(x, tcp_busy, busy_link);
	*(before != NULL ? &before->n_acks : &p->n_acks) += x->n_acks;
	TAILQ_REMOVE(&p->more->busy, x, busy_link);
	if (p->n_acks != 0)
		tcp_tx_later(p);
	if (x->ends)
		tcp_further_look(x);
	first_look(p);
}

void
tcp_away_take(struct tcp_flow *f)
{
	struct tcp_peer *p = tcp_flow_peer(f);
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	ssize_t n = 1;

	for (unsigned i = 0; i < TCP_READS && n > 0 && tcp_is_bulk(f); i++) {
		n = tcp_bulk_take(f);
		f->n_empty = n > 0 ? 0 : f->n_empty + 1;
	}
	if (!tcp_is_bulk(f))
		away_over(f);
	p->used_ms = tq->now_ms;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		PLX_STAT_INC(tq->stat.rx_empty);
	else if (n <= 0)
		tcp_peer_end(p, p->lost_err != 0 ? p->lost_err : n == 0 ? -ECONNRESET : -errno);
}

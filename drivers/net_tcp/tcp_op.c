/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_op.c - reads and writes of peers' memory that are under way
 *
 * Design notes
 * A peer answers writes in their order, and reads and atomics in theirs. What is over, or will never be answered as
 * the peer is gone, is reported by the next look for messages.
 */
#include <errno.h>

#include "tcp_int.h"

struct tcp_op *
tcp_op_new(struct tcp_peer *p, const struct plx_rma_op *op)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_op *o = STAILQ_FIRST(&tq->ops_free);

	STAILQ_REMOVE_HEAD(&tq->ops_free, link);
	*o = (struct tcp_op){.done = op->done, .arg = op->arg, .to = op->local, .len = (uint32_t)op->len};
	return o;
}

void
tcp_op_over(struct tcp_queue *tq, struct tcp_op *o, int err)
{
	o->err = err;
	if (o->done != NULL)
		STAILQ_INSERT_TAIL(&tq->ops_over, o, link);
	else
		STAILQ_INSERT_HEAD(&tq->ops_free, o, link);
}

bool
tcp_op_acked(struct tcp_peer *p, uint64_t n, bool *is_long)
{
	if (n > p->n_puts)
		return false;
	p->n_puts -= (uint16_t)n;
	for (; n > 0; n--) {
		struct tcp_op *o = STAILQ_FIRST(&p->puts);

		STAILQ_REMOVE_HEAD(&p->puts, link);
		*is_long |= o->len > p->peer.mtu;
		tcp_op_over(tcp_queue(p->peer.q), o, 0);
	}
	return true;
}

struct tcp_op *
tcp_op_asked(const struct tcp_peer *p)
{
	return STAILQ_FIRST(&p->gets);
}

struct tcp_op *
tcp_op_take(struct tcp_peer *p)
{
	struct tcp_op *o = STAILQ_FIRST(&p->gets);

	STAILQ_REMOVE_HEAD(&p->gets, link);
	p->n_gets--;
	return o;
}

void
tcp_op_got(struct tcp_peer *p)
{
	tcp_op_over(tcp_queue(p->peer.q), tcp_op_take(p), 0);
}

static void
all_over(struct tcp_peer *p, struct tcp_ops *ops)
{
	struct tcp_op *o;

	while ((o = STAILQ_FIRST(ops)) != NULL) {
		STAILQ_REMOVE_HEAD(ops, link);
		tcp_op_over(tcp_queue(p->peer.q), o, p->lost_err != 0 ? p->lost_err : -ECONNRESET);
	}
}

void
tcp_op_drop(struct tcp_peer *p)
{
	all_over(p, &p->puts);
	all_over(p, &p->gets);
	p->n_puts = p->n_gets = 0;
}

void
tcp_op_tell(struct tcp_queue *tq)
{
	struct tcp_ops over = STAILQ_HEAD_INITIALIZER(over);
	struct tcp_op *o;

	STAILQ_CONCAT(&over, &tq->ops_over);
	while ((o = STAILQ_FIRST(&over)) != NULL) {
		STAILQ_REMOVE_HEAD(&over, link);
		STAILQ_INSERT_HEAD(&tq->ops_free, o, link);
		o->done(o->arg, o->err);
	}
}

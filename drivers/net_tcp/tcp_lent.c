/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_lent.c - frames that are sent from where their data lies
 *
 * Design notes
 * Such a frame stands among a socket's chunks as its parts: its head and what stands before the data, which are copied,
 * each piece of data, and what pads the frame. The kernel copies the data when it takes it; then the last part is
 * over, and the next turn reports it. A queue has TCP_LENT_MAX parts.
 */
#include "tcp_int.h"

static const uint8_t zeros[8];

struct tcp_lent *
tcp_lent_part(struct tcp_flow *f, const void *from, uint32_t len)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);
	struct tcp_lent *l = STAILQ_FIRST(&tq->lent_free);

	STAILQ_REMOVE_HEAD(&tq->lent_free, link);
	l->done = NULL;
	l->part.from = from;
	l->part.at = 0;
	l->part.end = len;
	l->part.lent = true;
	l->part.keyed = false;
	STAILQ_INSERT_TAIL(&f->out, &l->part, link);
	f->tail = NULL; /* what is copied goes behind it, into another chunk */
	f->n_lent++;
	f->ahead += len;
	return l;
}

bool
tcp_lent_has(struct tcp_flow *f, unsigned n)
{
	const struct tcp_lent *l = STAILQ_FIRST(&tcp_queue(tcp_flow_peer(f)->peer.q)->lent_free);

	if (f->n_lent + n > TCP_PEER_LENT)
		return false;
	for (; n > 0 && l != NULL; n--)
		l = STAILQ_NEXT(l, link);
	return n == 0;
}

uint8_t *
tcp_lent_head(struct tcp_flow *f, uint32_t len)
{
	struct tcp_lent *l = tcp_lent_part(f, NULL, len);

	l->part.from = l->head;
	return l->head;
}

void
tcp_lent_pad(struct tcp_flow *f, uint32_t len)
{
	if (tcp_frame_pad(len) != 0)
		(void)tcp_lent_part(f, zeros, tcp_frame_pad(len));
}

void
tcp_lent_tell(struct tcp_queue *tq)
{
	struct tcp_lents over = STAILQ_HEAD_INITIALIZER(over);
	struct tcp_lent *l;

	STAILQ_CONCAT(&over, &tq->lent_over);
	while ((l = STAILQ_FIRST(&over)) != NULL) {
		STAILQ_REMOVE_HEAD(&over, link);
		STAILQ_INSERT_HEAD(&tq->lent_free, l, link);
		l->done(l->arg, l->err);
	}
}

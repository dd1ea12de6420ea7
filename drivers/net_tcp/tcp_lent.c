/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_lent.c - messages that are sent from where their data lies
 *
 * Design notes
 * Such a message stands among a peer's chunks as its parts: the frame's head and the header, which are copied, each
 * piece of data, and what pads the frame. The kernel copies the data when it takes it; then the last part is
 * over, and the next turn reports it. A queue has TCP_LENT_MAX parts.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "tcp_int.h"

static const uint8_t zeros[8];

static struct tcp_lent *
part_add(struct tcp_peer *p, const void *from, uint32_t len)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_lent *l = STAILQ_FIRST(&tq->lent_free);

	STAILQ_REMOVE_HEAD(&tq->lent_free, link);
	l->done = NULL;
	l->part.from = from;
	l->part.at = 0;
	l->part.end = len;
	l->part.lent = true;
	STAILQ_INSERT_TAIL(&p->out, &l->part, link);
	p->tail = NULL; /* what is copied goes behind it, into another chunk */
	p->n_lent++;
	return l;
}

/* So many parts are there to be had. */
static bool
has_parts(const struct tcp_peer *p, unsigned n)
{
	const struct tcp_lent *l = STAILQ_FIRST(&tcp_queue(p->peer.q)->lent_free);

	if (p->n_lent + n > TCP_PEER_LENT)
		return false;
	for (; n > 0 && l != NULL; n--)
		l = STAILQ_NEXT(l, link);
	return n == 0;
}

static void
head_add(struct tcp_peer *p, const struct plx_tx_zcopy *tx, uint32_t len)
{
	const struct tcp_frame f = {.len = len, .kind = TCP_MSG, .op = tx->op};
	struct tcp_lent *l = part_add(p, NULL, sizeof(f) + tx->hdr_len);

	memcpy(l->head, &f, sizeof(f));
	memcpy(l->head + sizeof(f), tx->hdr, tx->hdr_len);
	l->part.from = l->head;
}

int
tcp_tx_zcopy(const struct plx_tx_zcopy *tx)
{
	struct tcp_peer *p = tcp_peer(tx->peer);
	uint64_t len = tx->hdr_len + plx_tx_zcopy_len(tx);
	struct tcp_lent *last = NULL;

	if (len > tx->peer->mtu)
		return -EMSGSIZE;
	if (sizeof(struct tcp_frame) + tx->hdr_len > TCP_LENT_HEAD)
		return -EOPNOTSUPP;
	if (p->state != TCP_OPEN || tcp_tx_is_late(p) || !has_parts(p, tx->n_iov + 2))
		return tcp_tx_full(p);
	head_add(p, tx, (uint32_t)len);
	for (unsigned i = 0; i < tx->n_iov; i++)
		last = part_add(p, tx->iov[i].iov_base, (uint32_t)tx->iov[i].iov_len);
	last->done = tx->done;
	last->arg = tx->arg;
	if (len % 8 != 0)
		part_add(p, zeros, 8 - len % 8);
	tcp_tx_go(p, (uint32_t)len);
	return -EINPROGRESS;
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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_chunk.c - a queue's memory: chunks for what waits to be sent and for the beginnings of messages, and a buffer
 *
 * Design notes
 * It is taken for the first connection. The chunks are one mapping, whose pages are there once they are used; those used last are used next. A peer that is
 * idle has none. A few are kept for peers that have none, so that those who do not read keep nobody else waiting.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tcp_int.h"

static int
chunks_open(struct tcp_queue *tq)
{
	uint8_t *at = mmap(NULL, (size_t)tq->n_chunks * TCP_CHUNK_LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	tq->chunks = at;
	return 0;
}

struct tcp_chunk *
tcp_chunk_new(struct tcp_queue *tq)
{
	struct tcp_chunk *c;

	if (tq->n_made == tq->n_chunks)
		return NULL;
	c = (struct tcp_chunk *)(void *)(tq->chunks + (size_t)tq->n_made++ * TCP_CHUNK_LEN);
	c->from = tcp_chunk_data(c);
	c->lent = c->keyed = false;
	c->at = c->end = 0;
	return c;
}

void
tcp_mem_close(struct tcp_queue *tq)
{
	if (tq->chunks != NULL)
		munmap(tq->chunks, (size_t)tq->n_chunks * TCP_CHUNK_LEN);
	free(tq->rx.buf);
	free(tq->lent);
	free(tq->ops);
	tq->lent = NULL;
	tq->ops = NULL;
	tq->chunks = tq->rx.buf = NULL;
}

int
tcp_mem_open(struct tcp_queue *tq)
{
	int rc;

	if (tq->rx.buf != NULL)
		return 0;
	rc = chunks_open(tq);
	if (rc != 0)
		return rc;
	tq->rx.buf = aligned_alloc(PLX_LINE, TCP_RX_LEN);
	tq->lent = calloc(TCP_LENT_MAX, sizeof(*tq->lent));
	tq->ops = calloc(TCP_OPS, sizeof(*tq->ops));
	if (tq->rx.buf != NULL && tq->lent != NULL && tq->ops != NULL) {
		for (unsigned i = 0; i < TCP_LENT_MAX; i++)
			STAILQ_INSERT_TAIL(&tq->lent_free, &tq->lent[i], link);
		for (unsigned i = 0; i < TCP_OPS; i++)
			STAILQ_INSERT_TAIL(&tq->ops_free, &tq->ops[i], link);
		return 0;
	}
	tcp_mem_close(tq);
	return -ENOMEM;
}

/* What was sent without a copy is its owner's again: a turn reports it. */
static void
lent_put(struct tcp_flow *f, struct tcp_lent *l)
{
	struct tcp_peer *p = tcp_flow_peer(f);
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	f->n_lent--;
	l->err = p->lost_err;
	if (l->done != NULL)
		STAILQ_INSERT_TAIL(&tq->lent_over, l, link);
	else
		STAILQ_INSERT_HEAD(&tq->lent_free, l, link);
}

struct tcp_chunk *
tcp_out_chunk(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_chunk *c = NULL;

	if (p->flow.n_out < TCP_PEER_CHUNKS)
		c = tcp_chunk_get(tq, p->flow.n_out == 0);
	if (c == NULL) {
		PLX_STAT_INC(tq->stat.tx_no_chunk);
		return NULL;
	}
	STAILQ_INSERT_TAIL(&p->flow.out, c, link);
	p->flow.n_out++;
	p->flow.tail = c;
	return c;
}

void
tcp_out_sent(struct tcp_queue *tq, struct tcp_flow *f, size_t n)
{
	struct tcp_chunk *c;

	while ((c = STAILQ_FIRST(&f->out)) != NULL) {
		size_t k = RTE_MIN(n, (size_t)(c->end - c->at));

		c->at += (uint32_t)k;
		n -= k;
		if (unlikely(c->lent))
			f->ahead -= (uint32_t)k;
		if (c->at != c->end)
			return;
		STAILQ_REMOVE_HEAD(&f->out, link);
		if (unlikely(c->lent)) {
			lent_put(f, container_of(c, struct tcp_lent, part));
			continue;
		}
		f->n_out--;
		tcp_chunk_put(tq, c);
	}
	f->tail = NULL;
}

void
tcp_out_block(struct tcp_flow *f, bool blocked)
{
	struct tcp_queue *tq;

	if (f->blocked == blocked)
		return;
	tq = tcp_queue(tcp_flow_peer(f)->peer.q);
	f->blocked = blocked;
	if (blocked)
		TAILQ_INSERT_TAIL(&tq->blocked, f, blocked_link);
	else
		TAILQ_REMOVE(&tq->blocked, f, blocked_link);
}

static void
further_out_drop(struct tcp_further *x, void *arg)
{
	tcp_out_sent(arg, &x->flow, SIZE_MAX);
	tcp_out_block(&x->flow, false);
}

void
tcp_out_drop(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	tcp_out_sent(tq, &p->flow, SIZE_MAX);
	tcp_out_block(&p->flow, false);
	tcp_more_each(p, further_out_drop, tq);
	if (p->dirty)
		TAILQ_REMOVE(&tq->dirty, p, dirty_link);
	p->dirty = false;
}

void
tcp_rx_drop(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (tq->rx.of == p) {
		tq->rx.of = NULL;
		tq->rx.at = tq->rx.end = 0;
	}
	if (p->part != NULL)
		tcp_chunk_put(tq, p->part);
	if (p->due != NULL)
		tcp_chunk_put(tq, p->due);
	p->part = p->due = NULL;
	p->flow.bulk = (struct tcp_bulk){0};
	p->n_acks = 0;
}

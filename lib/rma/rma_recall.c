/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_recall.c - an ep's batches: their memory, and how they are taken back from the target
 */
#include <stdlib.h>

#include "rma_int.h"

struct rma_batch *
rma_batch_get(struct plx_rma *r)
{
	struct rma_batch *b = r->free_batches;

	if (b != NULL) {
		r->free_batches = b->next_free;
	} else {
		b = calloc(1, sizeof(*b));
		if (b == NULL)
			return NULL;
		b->next = r->batches;
		r->batches = b;
	}
	b->n = 0;
	b->bytes = 0;
	b->claimed = b->recalled = false;
	return b;
}

void
rma_batch_put(struct plx_rma *r, struct rma_batch *b)
{
	b->next_free = r->free_batches;
	r->free_batches = b;
}

void
rma_batches_close(struct plx_rma *r)
{
	while (r->batches != NULL) {
		struct rma_batch *b = r->batches;

		r->batches = b->next;
		free(b);
	}
}

void
rma_batch_end(struct plx_rma *r, struct plx_rma_ep *e, struct rma_batch *b)
{
	TAILQ_REMOVE(&e->batches, b, link);
	rma_batch_put(r, b);
	if (--e->n_batches != 0)
		return;
	e->batch_until = 0;
	if (e->send == NULL)
		rma_list(r, e, false);
}

uint32_t
rma_claims_end(struct plx_ep *ep)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);
	struct plx_rma_cell *c = e->cell != 0 ? rma_cell_of(ep) : NULL;
	uint32_t sent = e->number, gen = e->gen, n;
	uint64_t was;

	e->number = e->claimed = 0;
	if (c == NULL)
		return 0;
	was = plx_rma_cell_recall(c, ++e->gen);
	n = (uint32_t)was;
	if (was >> 32 == gen && n <= sent)
		return n;
	e->skip = RMA_SKIP_MAX;
	/* The target has refused the next one; or a stranger has written there. */
	return was >> 32 == gen + UINT64_C(1) && n <= sent ? n : 0;
}

void
rma_batches_recall(struct plx_rma *r, struct plx_ep *ep)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);
	uint32_t claims;
	struct rma_batch *b;

	claims = rma_claims_end(ep);
	TAILQ_FOREACH(b, &e->batches, link) {
		if (b->claimed || b->recalled)
			continue;
		b->claimed = b->kind == PLX_RMA_PUT && b->number < claims;
		b->recalled = !b->claimed;
		PLX_STAT_ADD(r->stat.batches_back, b->recalled);
	}
}

void
rma_batch_forget(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_rma_ep *e = plx_rma_ep(o->ep);
	struct rma_batch *b, *next;

	rma_batches_recall(r, o->ep); /* so no answer is awaited but of claimed puts, which has no bytes */
	for (b = TAILQ_FIRST(&e->batches); b != NULL; b = next) {
		unsigned n = b->n;

		next = TAILQ_NEXT(b, link);
		b->n = 0;
		for (unsigned i = 0; i < n; i++)
			if (b->block[i].o != o)
				b->block[b->n++] = b->block[i];
		if (b->n == 0) /* also one that the target is at: its answer finds no batch */
			rma_batch_end(r, e, b);
	}
}

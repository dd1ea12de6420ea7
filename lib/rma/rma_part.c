/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_part.c - what both sides copy now: its memory and its operations
 */
#include <stdlib.h>

#include "plx_assert.h"
#include "rma_int.h"

struct rma_part *
rma_part_get(struct plx_rma *r, struct plx_rma_req *first, unsigned n)
{
	struct rma_part *p = r->free_parts;

	if (p != NULL) {
		r->free_parts = p->next_free;
	} else {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return NULL;
		p->next = r->parts;
		r->parts = p;
	}
	p->first = first;
	p->n_ops = (uint16_t)n;
	p->blocks = n > 1;
	p->over = false;
	p->err = 0;
	p->mine = 0;
	p->redo = 0;
	p->undone = 0;
	PLX_ASSERT(plx_rma_ep(first->ep)->part == NULL);
	plx_rma_ep(first->ep)->part = p;
	for (; n > 0; n--, first = TAILQ_NEXT(first, link))
		first->shared = true;
	return p;
}

void
rma_part_put(struct plx_rma *r, struct rma_part *p)
{
	struct plx_rma_req *o = p->first;

	plx_rma_ep(o->ep)->part = NULL;
	for (unsigned i = 0; i < p->n_ops; i++, o = TAILQ_NEXT(o, link))
		o->shared = false;
	atomic_store_explicit(&p->list.number, 0, memory_order_relaxed);
	p->next_free = r->free_parts;
	r->free_parts = p;
}

struct plx_rma_block *
rma_list_begin(struct plx_rma_list *list)
{
	static _Atomic uint64_t last;
	uint64_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;

	atomic_store_explicit(&list->number, number, memory_order_relaxed);
	/* Pairs with how the target reads: the blocks, then the number. */
	atomic_thread_fence(memory_order_release);
	return list->block;
}

void
rma_part_end(struct plx_rma *r, struct plx_rma_req *o)
{
	rma_part_put(r, plx_rma_ep(o->ep)->part);
	plx_rma_ep_leave(o->ep);
}

void
rma_parts_close(struct plx_rma *r)
{
	while (r->parts != NULL) {
		struct rma_part *p = r->parts;

		r->parts = p->next;
		free(p);
	}
}

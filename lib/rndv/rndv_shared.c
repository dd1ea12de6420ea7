/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_shared.c - a queue's shared area: withdrawn messages, its core, cursors
 */
#include <sched.h>

#include "rndv_int.h"

static struct plx_rndv_shared *
own_shared(const struct plx_ep *ep)
{
	return ep->peer->caps & PLX_DEV_SHARED ? ep->peer->q->shared : NULL;
}

uint32_t
plx_rndv_epoch(const struct plx_ep *ep)
{
	struct plx_rndv_shared *s = own_shared(ep);

	/* relaxed: only this thread writes it */
	return s != NULL ? atomic_load_explicit(&s->epoch, memory_order_relaxed) : 0;
}

void
rndv_epoch_end(const struct plx_ep *ep)
{
	struct plx_rndv_shared *s = own_shared(ep);

	if (s == NULL)
		return;
	atomic_store_explicit(&s->epoch, plx_rndv_epoch(ep) + 1, memory_order_relaxed);
	/* pairs with the fence in rndv_is_valid(): the program's writes to the buffer follow
	 * the count */
	atomic_thread_fence(memory_order_release);
}

bool
rndv_is_valid(const struct plx_rndv_rx *v)
{
	struct plx_rndv_shared *s = plx_peer_shared(v->ep->peer);

	/* pairs with the fence in rndv_epoch_end(): the count is read after the data */
	atomic_thread_fence(memory_order_acquire);
	return s != NULL && atomic_load_explicit(&s->epoch, memory_order_relaxed) == v->rts.epoch;
}

static uint32_t
this_cpu(void)
{
	return (uint32_t)(sched_getcpu() + 1);
}

void
rndv_place_set(struct plx_ep *ep)
{
	struct plx_rndv_shared *s = own_shared(ep);

	if (s != NULL) /* relaxed: only affects time */
		atomic_store_explicit(&s->cpu, this_cpu(), memory_order_relaxed);
}

bool
rndv_place_is_near(struct plx_ep *ep)
{
	struct plx_rndv_shared *s = plx_peer_shared(ep->peer);

	return s != NULL && atomic_load_explicit(&s->cpu, memory_order_relaxed) == this_cpu();
}

uint32_t
rndv_cursor_get(struct plx_rndv *r, const struct plx_queue *q)
{
	uint32_t slot;

	if (~r->cursors == 0)
		return RNDV_NONE;
	slot = __builtin_ctzll(~r->cursors);
	if (slot >= plx_rndv_n_cursors(q->shared_len))
		return RNDV_NONE;
	r->cursors |= 1ull << slot;
	return slot;
}

void
rndv_cursor_put(struct plx_rndv_rx *v)
{
	if (v->slot == RNDV_NONE)
		return;
	/* No generation is 0: a late helper finds nothing. */
	atomic_store_explicit(&rndv_cursor(v)->next, 0, memory_order_relaxed);
	rndv_of(v->ep)->cursors &= ~(1ull << v->slot);
	v->slot = RNDV_NONE;
}

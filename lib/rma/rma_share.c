/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_share.c - a long put or get, copied by both sides at once if the target polls
 *
 * Design notes
 * - The initiator describes the operation in its cell of the target's shared area and sends a message
 *   that names the cell. It copies chunks from the front by the device, a target that runs a turn copies
 *   chunks from the back, until none is left. A target that runs none is not waited for: it is waited
 *   for only while it has a chunk.
 * - The target counts its chunks in `done`. Those that it cannot copy it gives back by `bad`.
 * - The generation is the cell's and only grows, also from owner to owner, so that a target that is
 *   late neither takes from nor counts in another operation. The cursor is stopped before a new one is
 *   described: who has read a part of that takes nothing by the old generation.
 * - An initiator that has an error, or leaves, stops the cursor. With an error it waits for the chunks that
 *   the target has. When it leaves, a put has failed, and a chunk that the target has may still arrive.
 * - The target writes a get's chunks to the initiator's memory. So a get whose ep is closed or fails is
 *   over only when the target has no chunk, or has left: until then its request, its ep and its cell stay.
 */
#include <errno.h>
#include <sched.h>

#include <rte_common.h>

#include "plx_cursor.h"
#include "plx_rma_cell.h"
#include "rma_int.h"

#define CHUNK_MAX (64u << 10)

bool
plx_rma_is_shared(const struct plx_rma *r, const struct plx_rma_do *d)
{
	struct plx_rma_ep *e = plx_rma_ep(d->ep);

	if (!d->late || d->len < r->share_min || !d->ep->connected || !e->proven ||
		(d->ep->peer->caps & PLX_DEV_SHARED) == 0 || !plx_rma_is_direct(r, d->ep, d->kind))
		return false;
	if (e->skip == 0)
		return true;
	e->skip--;
	return false;
}

static uint64_t
share_len(const struct plx_rma_req *o)
{
	return RTE_MIN(plx_req_of_own(o)->len - o->offset, (uint64_t)PLX_RMA_SHARE_MAX);
}

static uint32_t
share_chunk(uint64_t len)
{
	uint32_t quarter = (uint32_t)(len / 4 + 4095) & ~4095u;

	return quarter < PLX_RMA_SHARE_CHUNK ? PLX_RMA_SHARE_CHUNK : RTE_MIN(quarter, CHUNK_MAX);
}

/* @return how many chunks there are, of which share.n is what is waited for */
static uint32_t
share_n(const struct plx_rma_req *o)
{
	return (uint32_t)((share_len(o) + o->share.chunk - 1) / o->share.chunk);
}

/* Nobody takes anything of a former operation any more. @return the next generation */
static uint32_t
share_next_gen(struct plx_rma_share *s)
{
	/* pairs with the release in plx_cursor_take(): who still took one has read the old description */
	uint64_t was = atomic_fetch_or_explicit(&s->next, PLX_RMA_SHARE_STOPPED, memory_order_acquire);

	return (uint32_t)(was >> 32) + 1;
}

static void
share_describe(struct plx_rma_share *s, const struct plx_rma_req *o, uint32_t len)
{
	uint64_t buf = (uintptr_t)plx_req_of_own(o)->buf + o->offset;

	atomic_store_explicit(&s->kind, o->kind, memory_order_relaxed);
	atomic_store_explicit(&s->buf, buf, memory_order_relaxed);
	atomic_store_explicit(&s->addr, o->remote + o->offset, memory_order_relaxed);
	atomic_store_explicit(&s->token, o->token, memory_order_relaxed);
	atomic_store_explicit(&s->index, o->index, memory_order_relaxed);
	atomic_store_explicit(&s->len, len, memory_order_relaxed);
	atomic_store_explicit(&s->chunk, o->share.chunk, memory_order_relaxed);
}

/* @return whether both sides copy the next part of it */
static bool
share_begin(struct plx_rma *r, struct plx_rma_req *o)
{
	uint64_t len = share_len(o);
	uint32_t chunk = share_chunk(len), gen;
	struct plx_rma_cell *c;
	struct plx_rma_share *s;

	if (len < r->share_min)
		return false;
	c = rma_cell_to_offer(o);
	if (c == NULL)
		return false;
	s = &c->share;
	gen = share_next_gen(s);
	o->share.gen = gen;
	o->share.chunk = chunk;
	o->share.n = share_n(o);
	o->share.mine = 0;
	o->share.redo = 0;
	share_describe(s, o, (uint32_t)len);
	atomic_store_explicit(&s->done, (uint64_t)gen << 32, memory_order_relaxed);
	atomic_store_explicit(&s->bad, (uint64_t)gen << 32, memory_order_relaxed);
	atomic_store_explicit(&c->state, PLX_RMA_CELL_SHARED, memory_order_relaxed);
	/* pairs with the acquire in share_help() */
	atomic_store_explicit(&s->next, (uint64_t)gen << 32, memory_order_release);
	/* if the message finds no room, nobody helps */
	(void)plx_ep_tx_short(o->ep, PLX_WIRE_OFFER, plx_rma_ep(o->ep)->cell - 1u, NULL, 0);
	o->offered = true;
	PLX_STAT_INC(r->stat.shares);
	return true;
}

/* @return what the target has given back since, a bit each */
static uint32_t
share_bad(const struct plx_rma_req *o, struct plx_rma_share *s)
{
	uint64_t none = (uint64_t)o->share.gen << 32, bad;

	if (atomic_load_explicit(&s->bad, memory_order_relaxed) == none)
		return 0;
	/* pairs with the release in share_tell(): it writes there no more */
	bad = atomic_exchange_explicit(&s->bad, none, memory_order_acquire);
	return bad >> 32 == o->share.gen ? (uint32_t)bad & (uint32_t)((1ull << share_n(o)) - 1) : 0;
}

/* @return the chunk to copy next, or PLX_CURSOR_NONE */
static uint32_t
share_next(struct plx_rma_req *o, struct plx_rma_share *s)
{
	uint32_t i = PLX_CURSOR_NONE;

	if (o->share.redo == 0)
		i = plx_cursor_take(&s->next, o->share.gen, o->share.n, false);
	if (i != PLX_CURSOR_NONE)
		return i;
	if (o->share.redo == 0)
		o->share.redo = share_bad(o, s);
	if (o->share.redo == 0)
		return PLX_CURSOR_NONE;
	i = (uint32_t)__builtin_ctz(o->share.redo);
	o->share.redo &= o->share.redo - 1;
	return i;
}

static void
share_failed(struct plx_rma_req *o, struct plx_rma_share *s, int err)
{
	uint64_t stopped = (uint64_t)o->share.gen << 32 | PLX_RMA_SHARE_STOPPED;
	uint64_t old = atomic_exchange_explicit(&s->next, stopped, memory_order_relaxed);

	if (o->err != 0)
		return;
	o->err = err;
	o->share.n = RTE_MIN(o->share.n, plx_cursor_taken(old)); /* what the target has is waited for */
}

static int
share_move(struct plx_rma_req *o, uint32_t i)
{
	uint64_t at = (uint64_t)i * o->share.chunk, from = o->offset + at;

	return rma_dev_move(o->ep, o->kind, (char *)plx_req_of_own(o)->buf + from, o->remote + from,
		RTE_MIN((uint64_t)o->share.chunk, share_len(o) - at));
}

/* The device copies the rest. */
static int
share_alone(struct plx_rma_req *o)
{
	o->offered = false;
	o->late = false;
	o->err = 0;
	return 0;
}

/* @return a word of the cell, 0 if it is of another operation */
static uint32_t
share_of_own(const struct plx_rma_req *o, _Atomic uint64_t *word)
{
	/* pairs with the release in share_tell(): the target's bytes are there */
	uint64_t v = atomic_load_explicit(word, memory_order_acquire);

	return v >> 32 == o->share.gen ? (uint32_t)v : 0;
}

/* @return whether the target may have a chunk */
static bool
share_is_away(const struct plx_rma_req *o)
{
	struct plx_rma_cell *c = rma_cell_of(o->ep);
	uint32_t back = o->share.mine + __builtin_popcount(o->share.redo);

	if (plx_peer_has_left(o->ep->peer) || plx_rma_ep(o->ep)->cell == 0)
		return false;
	if (c == NULL)
		return true;
	back += share_of_own(o, &c->share.done) + __builtin_popcount(share_of_own(o, &c->share.bad));
	return back < o->share.n && atomic_load_explicit(&c->state, memory_order_relaxed) == PLX_RMA_CELL_SHARED;
}

bool
rma_share_outlives(struct plx_rma_req *o, int err)
{
	struct plx_rma_cell *c;

	if (!o->offered || o->kind != PLX_RMA_GET || plx_req_of_own(o)->len <= PLX_RMA_OFFER_LEN)
		return false;
	c = rma_cell_of(o->ep);
	if (c != NULL)
		share_failed(o, &c->share, err);
	if (!share_is_away(o))
		return false;
	o->err = err;
	o->over = true;
	o->ep->n_msgs++;
	return true;
}

void
plx_rma_ep_settle(struct plx_ep *ep)
{
	struct plx_rma_req *o = plx_rma_ep(ep)->send;

	if (!plx_rma_offers(ep) || (!o->over && !rma_share_outlives(o, -ECANCELED)))
		return;
	while (share_is_away(o)) {
		plx_queue_control(ep->peer->q); /* sees whether the target has ended */
		sched_yield();			/* it may need this core for its copy */
	}
}

/* The target has no chunk of one that outlived its ep. @return as rma_share_step() */
static int
share_outlived(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_ep *ep = o->ep;

	rma_end(r, plx_req_of_own(o), o->err); /* leaves the cell */
	ep->n_msgs--;
	return 1;
}

/* All of a part was copied, or no more of it can be. @return as rma_share_step() */
static int
share_end(struct plx_rma *r, struct plx_rma_req *o, struct plx_rma_cell *c, bool helped)
{
	struct plx_req *req = plx_req_of_own(o);
	int err = o->err;

	atomic_store_explicit(&c->state, PLX_RMA_CELL_IDLE, memory_order_relaxed);
	o->offered = false;
	rma_answered(o->ep, helped);
	if (helped)
		PLX_STAT_INC(r->stat.shares_helped);
	if (err == -EOPNOTSUPP) /* the next step of the device finds that as well, and goes on by messages */
		return share_alone(o);
	o->offset += share_len(o);
	if (err != 0 || o->offset == req->len)
		rma_end(r, req, err);
	return 1;
}

/*
 * The cell is not ours any more: this side has left it, the target, which has no chunk then, has freed it, or a
 * stranger has overwritten it. While its area is not mapped that is not known.
 */
static int
share_lost(struct plx_rma *r, struct plx_rma_req *o, const struct plx_rma_cell *c)
{
	if (o->kind == PLX_RMA_GET && c == NULL && share_is_away(o))
		return -EAGAIN;
	plx_rma_ep(o->ep)->skip = UINT8_MAX;
	return o->over ? share_outlived(r, o) : share_alone(o);
}

int
rma_share_step(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_rma_cell *c;
	uint64_t moved = 0;
	uint32_t i, done;
	int rc;

	if (!o->offered && !share_begin(r, o))
		return 0;
	if (o->over && plx_peer_has_left(o->ep->peer))
		return share_outlived(r, o);
	c = rma_cell_of(o->ep);
	if (c == NULL || atomic_load_explicit(&c->state, memory_order_relaxed) != PLX_RMA_CELL_SHARED)
		return share_lost(r, o, c);
	while (moved < r->chunk && o->share.mine < o->share.n &&
		(i = share_next(o, &c->share)) != PLX_CURSOR_NONE) {
		rc = share_move(o, i);
		if (rc == -EAGAIN) {
			o->share.redo |= 1u << i;
			return rc;
		}
		o->share.mine++;
		moved += o->share.chunk;
		if (rc != 0)
			share_failed(o, &c->share, rc);
	}
	done = share_of_own(o, &c->share.done);
	if (o->share.mine + done < o->share.n)
		return -EAGAIN;
	return o->over ? share_outlived(r, o) : share_end(r, o, c, done != 0);
}

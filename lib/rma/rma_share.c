/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_share.c - a long put or get, or many short ones, copied by both sides at once if the target polls
 *
 * Design notes
 * - The initiator describes the operation in its cell of the target's shared area and sends a message
 *   that names the cell. It copies chunks from the front by the device, a target that runs a turn copies
 *   chunks from the back, until none is left. A target that runs none is not waited for: it is waited
 *   for only while it has a chunk.
 * - Many short operations are described by a list of blocks in the initiator's memory, a block each. The
 *   target reads the blocks of a chunk when it has taken that. A list has a number, so that a target that is
 *   late follows no other list in the same memory.
 * - The target counts its chunks in `done`. Those that it cannot copy it gives back by `bad`.
 * - The generation is the cell's and only grows, also from owner to owner, so that a target that is
 *   late neither takes from nor counts in another operation. The cursor is stopped before a new one is
 *   described: who has read a part of that takes nothing by the old generation.
 * - An initiator that has an error, or leaves, stops the cursor. With an error it waits for the chunks that
 *   the target has. Of many blocks those of the chunks that are not copied are then done one by one, which
 *   finds whose error it is. When it leaves, a put has failed, and what a chunk that the target has finds in
 *   the buffer may still arrive.
 * - The target writes a get's chunks to the initiator's memory. So a get whose ep is closed or fails is
 *   over only when the target has no chunk, or has left: until then its request, its ep and its cell stay.
 */
#include <errno.h>
#include <sched.h>

#include <rte_common.h>

#include "plx_cursor.h"
#include "rma_int.h"

#define CHUNK_MAX  (64u << 10)
#define BLOCKS_MAX (128u << 10) /* more, because the device is slower with blocks */

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

/* --- a part begins --- */

/* @return how many chunks there are; p->n are waited for */
static uint32_t
part_chunks(const struct rma_part *p)
{
	return (p->len + p->chunk - 1) / p->chunk;
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
share_describe(struct plx_rma_share *s, const struct rma_part *p)
{
	const struct plx_rma_req *o = p->first;
	uint64_t number = atomic_load_explicit(&p->list.number, memory_order_relaxed);
	uint64_t buf = p->blocks ? (uintptr_t)&p->list : (uintptr_t)plx_req_of_own(o)->buf + o->offset;

	atomic_store_explicit(&s->kind, o->kind | (p->blocks ? PLX_RMA_BLOCKS : 0), memory_order_relaxed);
	atomic_store_explicit(&s->buf, buf, memory_order_relaxed);
	atomic_store_explicit(&s->addr, o->remote + o->offset, memory_order_relaxed);
	atomic_store_explicit(&s->token, p->blocks ? number : o->token, memory_order_relaxed);
	atomic_store_explicit(&s->index, o->index, memory_order_relaxed);
	atomic_store_explicit(&s->len, p->len, memory_order_relaxed);
	atomic_store_explicit(&s->chunk, p->chunk, memory_order_relaxed);
}

/* Both sides copy it from here on. */
static void
part_begin(struct plx_rma *r, struct rma_part *p)
{
	struct plx_ep *ep = p->first->ep;
	struct plx_rma_cell *c = rma_cell_of(ep);
	struct plx_rma_share *s = &c->share;

	p->gen = share_next_gen(s);
	p->n = part_chunks(p);
	share_describe(s, p);
	atomic_store_explicit(&s->done, (uint64_t)p->gen << 32, memory_order_relaxed);
	atomic_store_explicit(&s->bad, (uint64_t)p->gen << 32, memory_order_relaxed);
	atomic_store_explicit(&c->state, PLX_RMA_CELL_SHARED, memory_order_relaxed);
	/* pairs with the acquire in share_help() */
	atomic_store_explicit(&s->next, (uint64_t)p->gen << 32, memory_order_release);
	/* if the message finds no room, nobody helps */
	(void)plx_ep_tx_short(ep, PLX_WIRE_SHARE, plx_rma_ep(ep)->cell - 1u, NULL, 0);
	PLX_STAT_INC(r->stat.shares);
}

/* @return bytes of a chunk: enough for a call of the device, and so few that nobody waits long for the last one */
static uint32_t
chunk_of(uint64_t bytes, uint32_t max)
{
	uint32_t quarter = (uint32_t)(bytes / 4 + 4095) & ~4095u;

	return quarter < PLX_RMA_SHARE_CHUNK ? PLX_RMA_SHARE_CHUNK : RTE_MIN(quarter, max);
}

/* @return whether both sides copy the next part of a long one */
static bool
share_long(struct plx_rma *r, struct plx_rma_req *o)
{
	uint64_t len = RTE_MIN(plx_req_of_own(o)->len - o->offset, (uint64_t)PLX_RMA_SHARE_MAX);
	struct rma_part *p = NULL;

	if (len >= r->share_min && rma_cell_to_ask(o->ep) != NULL)
		p = rma_part_get(r, o, 1);
	if (p == NULL)
		return false;
	p->len = (uint32_t)len;
	p->chunk = chunk_of(len, CHUNK_MAX);
	p->step = p->chunk;
	part_begin(r, p);
	return true;
}

/* @return whether they are of one handle: these end, or outlive their ep, together */
static bool
are_of_one_handle(const struct plx_rma_req *first, unsigned n)
{
	const struct plx_rma_req *o = first;

	for (; n > 0 && o->wait.conn_id == first->wait.conn_id; n--)
		o = TAILQ_NEXT(o, link);
	return n == 0;
}

bool
rma_share_blocks(struct plx_rma *r, struct plx_rma_ep *e, unsigned n, uint64_t bytes)
{
	const struct plx_rma_req *o = e->send;
	struct rma_part *p = NULL;
	uint64_t chunk = chunk_of(bytes, BLOCKS_MAX) * (uint64_t)n / bytes;
	struct plx_rma_block *block;

	if (are_of_one_handle(o, n) && rma_cell_to_ask(o->ep) != NULL)
		p = rma_part_get(r, e->send, n);
	if (p == NULL)
		return false;
	block = rma_list_begin(&p->list);
	for (unsigned i = 0; i < n; i++, o = TAILQ_NEXT(o, link))
		block[i] = (struct plx_rma_block){.local = (uintptr_t)plx_req_of_own(o)->buf, .addr = o->remote,
			.token = o->token, .index = o->index, .len = (uint32_t)plx_req_of_own(o)->len};
	p->len = n;
	chunk = RTE_MAX(chunk, (uint64_t)(n + PLX_RMA_SHARE_N - 1) / PLX_RMA_SHARE_N);
	p->chunk = (uint32_t)RTE_MIN(chunk, (uint64_t)PLX_RMA_BLOCKS_CHUNK);
	p->step = (uint32_t)(bytes * p->chunk / n);
	part_begin(r, p);
	return true;
}

/* --- and ends --- */

/* The device copies what is left of it. @return as rma_share_step() */
static int
share_alone(struct plx_rma *r, struct rma_part *p)
{
	struct plx_rma_req *o = p->first;

	for (unsigned i = 0; i < p->n_ops; i++, o = TAILQ_NEXT(o, link))
		o->late = false;
	rma_part_put(r, p);
	return 0;
}

/* --- chunks --- */

/* @return a word of the cell, 0 if it is of another operation */
static uint32_t
share_of_own(const struct rma_part *p, _Atomic uint64_t *word)
{
	/* pairs with the release in share_tell(): the target's bytes are there */
	uint64_t v = atomic_load_explicit(word, memory_order_acquire);

	return v >> 32 == p->gen ? (uint32_t)v : 0;
}

/* @return what the target has given back since, a bit each */
static uint32_t
share_bad(const struct rma_part *p, struct plx_rma_share *s)
{
	uint64_t none = (uint64_t)p->gen << 32, bad;

	if (atomic_load_explicit(&s->bad, memory_order_relaxed) == none)
		return 0;
	/* pairs with the release in share_tell(): it writes there no more */
	bad = atomic_exchange_explicit(&s->bad, none, memory_order_acquire);
	return bad >> 32 == p->gen ? (uint32_t)bad & (uint32_t)((1ull << part_chunks(p)) - 1) : 0;
}

/* Whether to leave the last chunk to the target, which otherwise has nothing to do while the program posts more. */
static bool
share_leaves(const struct rma_part *p, struct plx_rma_share *s)
{
	return p->blocks && plx_rma_ep(p->first->ep)->posts && share_of_own(p, &s->done) != 0 &&
	       plx_cursor_taken(atomic_load_explicit(&s->next, memory_order_relaxed)) + 1 >= p->n;
}

/* @return the chunk to copy next, or PLX_CURSOR_NONE */
static uint32_t
share_next(struct rma_part *p, struct plx_rma_share *s)
{
	uint32_t i = PLX_CURSOR_NONE;

	if (share_leaves(p, s))
		return i;
	if (p->redo == 0)
		i = plx_cursor_take(&s->next, p->gen, p->n, false);
	if (i != PLX_CURSOR_NONE)
		return i;
	if (p->redo == 0)
		p->redo = share_bad(p, s);
	if (p->redo == 0)
		return PLX_CURSOR_NONE;
	i = (uint32_t)__builtin_ctz(p->redo);
	p->redo &= p->redo - 1;
	return i;
}

/* @return chunks that nobody has taken, a bit each */
static uint32_t
share_untaken(const struct rma_part *p, uint64_t next)
{
	uint32_t front = (uint32_t)(next & UINT16_MAX), back = (uint32_t)(next >> 16 & UINT16_MAX);
	uint64_t below = 1ull << (part_chunks(p) - RTE_MIN(back, part_chunks(p)));

	return (uint32_t)((below - 1) & ~((1ull << RTE_MIN(front, 32u)) - 1));
}

/* Stop the cursor, if it is still of this part. */
static void
share_failed(struct rma_part *p, struct plx_rma_share *s, int err)
{
	uint64_t stopped = (uint64_t)p->gen << 32 | PLX_RMA_SHARE_STOPPED;
	uint64_t old = atomic_load_explicit(&s->next, memory_order_relaxed);

	while (old >> 32 == p->gen &&
		!atomic_compare_exchange_weak_explicit(&s->next, &old, stopped, memory_order_relaxed,
			memory_order_relaxed))
		;
	if (p->err != 0)
		return;
	p->err = err;
	if (old >> 32 != p->gen)
		return; /* a stranger's */
	p->undone |= share_untaken(p, old);
	p->n = RTE_MIN(p->n, plx_cursor_taken(old)); /* what the target has is waited for */
}

static int
blocks_move(const struct rma_part *p, const struct plx_rma_block *b, unsigned n)
{
	struct plx_rma_piece v[PLX_RMA_BLOCKS_CHUNK];

	for (unsigned i = 0; i < n; i++)
		v[i] = (struct plx_rma_piece){(void *)(uintptr_t)b[i].local, b[i].addr, b[i].len, UCS_MEMORY_TYPE_HOST};
	return rma_pieces_move(p->first->ep, p->first->kind == PLX_RMA_PUT, v, &n);
}

static int
share_move(const struct rma_part *p, uint32_t i)
{
	const struct plx_rma_req *o = p->first;
	uint32_t at = i * p->chunk, n = RTE_MIN(p->chunk, p->len - at);
	uint64_t from = o->offset + at;

	if (p->blocks)
		return blocks_move(p, p->list.block + at, n);
	return rma_dev_move(o->ep, o->kind, (char *)plx_req_of_own(o)->buf + from, o->remote + from, n);
}

/* @return whether the target may have a chunk */
static bool
share_is_away(const struct rma_part *p)
{
	const struct plx_ep *ep = p->first->ep;
	struct plx_rma_cell *c = rma_cell_of(ep);
	uint32_t back = p->mine + __builtin_popcount(p->redo);

	if (plx_peer_has_left(ep->peer) || plx_rma_ep(ep)->cell == 0)
		return false;
	if (c == NULL)
		return true;
	back += share_of_own(p, &c->share.done) + __builtin_popcount(share_of_own(p, &c->share.bad));
	return back < p->n && atomic_load_explicit(&c->state, memory_order_relaxed) == PLX_RMA_CELL_SHARED;
}

/* --- operations that outlive their ep --- */

/* The target has no chunk any more: all end but the one that its caller ends. @return as rma_share_step() */
static int
share_outlived(struct plx_rma *r, struct rma_part *p, const struct plx_rma_req *but)
{
	struct rma_ended kept = TAILQ_HEAD_INITIALIZER(kept);
	struct plx_rma_req *o = p->first, *next;
	struct plx_ep *ep = o->ep;
	unsigned n = p->n_ops;

	rma_part_put(r, p);
	plx_rma_ep_leave(ep);
	for (; n > 0; n--, o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->over && o != but)
			rma_end_later(r, o, &kept);
	}
	n = rma_end_all(r, &kept);
	ep->n_msgs -= n;
	return 1;
}

bool
rma_share_outlives(struct plx_rma_req *o, int err)
{
	struct rma_part *p = plx_rma_ep(o->ep)->part;
	struct plx_rma_cell *c;

	if (!o->shared || o->kind != PLX_RMA_GET)
		return false;
	c = rma_cell_of(o->ep);
	if (c != NULL)
		share_failed(p, &c->share, err);
	if (!share_is_away(p)) {
		if (p->over)
			share_outlived(rma_of(plx_req_of_own(o)), p, o);
		o->ep->n_msgs -= o->over;
		o->over = false;
		return false;
	}
	p->over = true;
	o->ep->n_msgs += !o->over;
	o->over = true;
	o->err = err;
	return true;
}

void
plx_rma_ep_settle(struct plx_ep *ep)
{
	struct rma_part *p = plx_rma_ep(ep)->part;

	if (p == NULL || (!p->over && !rma_share_outlives(p->first, -ECANCELED)))
		return;
	while (share_is_away(p)) {
		plx_queue_control(ep->peer->q); /* sees whether the target has ended */
		sched_yield();			/* it may need this core for its copy */
	}
}

/* --- steps --- */

/* The blocks of all chunks that are copied are over, the others are done one by one. @return as rma_share_step() */
static int
blocks_end(struct plx_rma *r, struct rma_part *p)
{
	struct rma_ended ended = TAILQ_HEAD_INITIALIZER(ended);
	struct plx_rma_req *o = p->first, *next;
	uint32_t chunk = p->chunk, undone = p->undone;
	unsigned n = p->n_ops;

	rma_part_put(r, p);
	for (unsigned i = 0; i < n; i++, o = next) {
		next = TAILQ_NEXT(o, link);
		if (undone >> i / chunk & 1)
			o->late = false;
		else
			rma_end_later(r, o, &ended);
	}
	return (int)rma_end_all(r, &ended);
}

/* All of a part was copied, or no more of it can be. @return as rma_share_step() */
static int
share_end(struct plx_rma *r, struct rma_part *p, struct plx_rma_cell *c, bool helped)
{
	struct plx_rma_req *o = p->first;
	struct plx_req *req = plx_req_of_own(o);
	uint32_t len = p->len;
	int err = p->err;

	atomic_store_explicit(&c->state, PLX_RMA_CELL_IDLE, memory_order_relaxed);
	rma_answered(o->ep, helped);
	if (helped)
		PLX_STAT_INC(r->stat.shares_helped);
	if (p->blocks)
		return blocks_end(r, p);
	if (err == -EOPNOTSUPP) /* the next step of the device finds that as well, and goes on by messages */
		return share_alone(r, p);
	rma_part_put(r, p);
	o->offset += len;
	if (err != 0 || o->offset == req->len)
		rma_end(r, req, err);
	return 1;
}

/*
 * The cell is not ours any more: this side has left it, the target, which has no chunk then, has freed it, or a
 * stranger has overwritten it. While its area is not mapped that is not known.
 */
static int
share_lost(struct plx_rma *r, struct rma_part *p, const struct plx_rma_cell *c)
{
	struct plx_rma_req *o = p->first;

	if (o->kind == PLX_RMA_GET && c == NULL && share_is_away(p))
		return -EAGAIN;
	plx_rma_ep(o->ep)->skip = UINT8_MAX;
	if (c != NULL)
		plx_rma_ep(o->ep)->cell = 0;
	return p->over ? share_outlived(r, p, NULL) : share_alone(r, p);
}

int
rma_share_step(struct plx_rma *r, struct plx_rma_req *o)
{
	struct plx_rma_cell *c;
	struct rma_part *p;
	uint64_t moved = 0, begin;
	uint32_t i, done;
	int rc;

	if (!o->shared && !share_long(r, o))
		return 0;
	p = plx_rma_ep(o->ep)->part;
	if (p->over && plx_peer_has_left(o->ep->peer))
		return share_outlived(r, p, NULL);
	c = rma_cell_of(o->ep);
	if (c == NULL || atomic_load_explicit(&c->state, memory_order_relaxed) != PLX_RMA_CELL_SHARED)
		return share_lost(r, p, c);
	while (moved < r->chunk && p->mine < p->n && (i = share_next(p, &c->share)) != PLX_CURSOR_NONE) {
		begin = rte_rdtsc();
		rc = share_move(p, i);
		if (rc == -EAGAIN) {
			p->redo |= 1u << i;
			return rc;
		}
		if (rc == 0 && p->blocks)
			plx_rma_ep(o->ep)->pace = rma_pace(begin, p->step);
		p->mine++;
		moved += p->step;
		if (rc != 0) {
			p->undone |= 1u << i;
			share_failed(p, &c->share, rc);
		}
	}
	done = share_of_own(p, &c->share.done);
	if (p->mine + done < p->n)
		return -EAGAIN;
	return p->over ? share_outlived(r, p, NULL) : share_end(r, p, c, done != 0);
}

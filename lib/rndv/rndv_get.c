/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_get.c - the receiver reads, and the sender helps by writing
 *
 * Design notes
 * SPLIT: the receiver puts a cursor {generation, chunks taken from either end} into
 * its shared area and asks the sender to help. The receiver takes chunks from the
 * front, the sender from the back, by compare-and-swap until none is left; the sender
 * counts what it has written in `done`. The receiver is finished when its own count
 * and `done` make up all. If the sender never looks, the receiver takes every chunk:
 * progress needs no help. A late sender finds another generation and leaves. A cursor
 * is memory a peer writes to: at worst a transfer of that same peer goes wrong.
 *
 * A sender that runs on the receiver's own core is not asked: who copies, and who helps, would only take
 * turns, and the one be kept from it by the other. Each end shows in its shared area where it announced last.
 *
 * Each core has an end of its own, so that buffers which are used again stay in the
 * caches they are in.
 *
 * What a call of the device costs before it moves anything is near the price of 16 KiB,
 * so the pieces of several transfers go in one (rndv_batch). A step adds a piece and
 * never ends a request; the next step finds how it went. Whoever ends one runs the batch
 * first, for a callback may end the others.
 */
#include <errno.h>
#include <sched.h>

#include "rndv_int.h"

/* Below this two system calls cost more than sharing one copy gains. */
#define CHUNK_MIN (32u << 10)

static inline uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* next is {generation, 16 bits from the back, 16 bits from the front}. */
static inline uint32_t
cursor_taken(uint64_t next)
{
	return (uint32_t)(next & UINT16_MAX) + (uint32_t)(next >> 16 & UINT16_MAX);
}

/* Take the next chunk of one end. @return its index, or RNDV_NONE */
static uint32_t
cursor_take(struct plx_rndv_cursor *c, uint32_t gen, uint32_t n_chunks, bool back)
{
	uint64_t v = atomic_load_explicit(&c->next, memory_order_relaxed);

	do {
		if ((uint32_t)(v >> 32) != gen || cursor_taken(v) >= n_chunks)
			return RNDV_NONE;
	} while (!atomic_compare_exchange_weak_explicit(&c->next, &v, v + (back ? 1u << 16 : 1),
		memory_order_relaxed, memory_order_relaxed));
	return back ? n_chunks - 1 - (uint32_t)(v >> 16 & UINT16_MAX) : (uint32_t)(v & UINT16_MAX);
}

static struct plx_rndv_cursor *
own_cursor(const struct plx_req_rndv *v)
{
	return &((struct plx_rndv_shared *)v->ep->peer->q->shared)->cursors[v->slot];
}

static struct plx_rndv_shared *
shared_of(struct plx_peer *peer)
{
	return plx_peer_shared(peer);
}

static uint32_t
this_cpu(void)
{
	return (uint32_t)(sched_getcpu() + 1);
}

void
rndv_split_place(struct plx_ep *ep)
{
	struct plx_rndv_shared *s = ep->peer->q->shared;

	/* relaxed: about time only */
	if (ep->peer->caps & PLX_DEV_SHARED)
		atomic_store_explicit(&s->cpu, this_cpu(), memory_order_relaxed);
}

bool
rndv_split_is_near(struct plx_ep *ep)
{
	struct plx_rndv_shared *s = shared_of(ep->peer);

	return s != NULL && atomic_load_explicit(&s->cpu, memory_order_relaxed) == this_cpu();
}

int
rndv_get_start(struct plx_rndv *r, struct plx_req *req)
{
	PLX_STAT_INC(r->stat.get);
	rndv_recv_start_run(r, req, RNDV_GET);
	return 0;
}

int
rndv_split_start(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	struct plx_queue *q = v->ep->peer->q;
	uint32_t n_slots = min_u64(plx_rndv_n_cursors(q->shared_len), 64);
	struct plx_wire_help h;
	struct plx_rndv_cursor *c;
	uint64_t chunk;
	uint32_t slot;
	int rc;

	if (v->copy <= CHUNK_MIN) /* one chunk is not shared, only fought over */
		return -EAGAIN;
	slot = ~q->shared_used != 0 ? __builtin_ctzll(~q->shared_used) : 64;
	if (slot >= n_slots)
		return -EAGAIN;
	rc = plx_req_id_get(&r->ids, req, &v->id);
	if (rc != 0)
		return rc;
	/* A few chunks, so that both sides get some, and that who is done waits for the other for half a turn. */
	chunk = min_u64(r->chunk / 2, v->copy / 4 + 4095) & ~4095ull;
	chunk = chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
	while (v->copy / chunk >= UINT16_MAX) /* the cursor counts no further */
		chunk *= 2;
	v->chunk = chunk;
	v->n_chunks = (v->copy + chunk - 1) / chunk;
	v->slot = slot;
	v->gen = r->gen;
	r->gen += r->gen == UINT32_MAX ? 2 : 1; /* 0 is no generation */
	v->mine = 0;
	c = own_cursor(v);
	atomic_store_explicit(&c->done, (uint64_t)v->gen << 32, memory_order_relaxed);
	atomic_store_explicit(&c->next, (uint64_t)v->gen << 32, memory_order_release);
	h = (struct plx_wire_help){.sreq = v->rts.sreq, .rreq = v->id, .addr = (uintptr_t)req->buf,
		.len = v->copy, .slot = slot, .gen = v->gen, .chunk = chunk};
	rc = plx_ep_tx_ctl(v->ep, PLX_WIRE_HELP, &h, sizeof(h));
	if (rc != 0) {
		plx_req_id_put(&r->ids, v->id);
		v->id.index = 0;
		v->slot = RNDV_NONE;
		return rc;
	}
	q->shared_used |= 1ull << slot;
	PLX_STAT_INC(r->stat.split);
	rndv_recv_start_run(r, req, RNDV_SPLIT);
	return 0;
}

void
rndv_split_stop(struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;

	if (v->slot == RNDV_NONE)
		return;
	/* No generation is 0: whoever comes late finds nothing. */
	atomic_store_explicit(&own_cursor(v)->next, 0, memory_order_relaxed);
	v->ep->peer->q->shared_used &= ~(1ull << v->slot);
	v->slot = RNDV_NONE;
}

/* Nobody takes another chunk; those in the helper's hands are waited for. */
static void
split_drain(struct plx_req *req, int err)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint64_t old = atomic_exchange_explicit(&own_cursor(v)->next, 0, memory_order_relaxed);

	v->role = RNDV_DRAIN;
	v->err = err;
	v->taken = min_u64(cursor_taken(old), v->n_chunks);
}

static void
get_moved(struct plx_req *req, const struct rndv_piece *p, int rc)
{
	struct plx_req_rndv *v = &req->recv.rndv;

	if (rc == 0)
		return;
	v->offset = min_u64(v->offset, p->offset); /* from there again */
	if (rc != -EAGAIN)
		v->err = rc;
}

static void
split_moved(struct plx_req *req, const struct rndv_piece *p, int rc)
{
	struct plx_req_rndv *v = &req->recv.rndv;

	if (rc == -EAGAIN) {
		v->held = p->chunk; /* it is ours; in the next turn */
		return;
	}
	v->mine++; /* of no use after an error, but over */
	if (rc != 0)
		split_drain(req, rc);
}

static void
help_moved(struct plx_req *req, const struct rndv_piece *p, int rc)
{
	struct plx_req_send *s = &req->send;
	struct plx_rndv_cursor *c = &shared_of(s->ep->peer)->cursors[s->help.slot];

	if (rc == 0) {
		/* pairs with the acquire in split_done() */
		atomic_fetch_add_explicit(&c->done, 1, memory_order_release);
		return;
	}
	/* Whatever it was, a helper that can't is none: the receiver needs nobody. */
	s->help.failed = p->chunk;
	s->help.err = rc;
}

unsigned
rndv_batch_run(struct plx_rndv *r, struct rndv_batch *b)
{
	unsigned i, n, moved = 0;
	uint64_t *bytes;

	if (b->n == 0)
		return 0;
	bytes = b->ops[0].put ? &r->stat.bytes_help : &r->stat.bytes_own;
	n = b->n > 1 ? plx_peer_rma_burst(b->ops, b->n) : 0;
	for (i = 0; i < b->n; i++) {
		const struct rndv_piece *p = &b->pieces[i];
		int rc = i < n ? 0 : plx_peer_rma(&b->ops[i]);

		if (rc == 0)
			PLX_STAT_ADD(*bytes, b->ops[i].len);
		moved += rc != -EAGAIN;
		if (b->ops[i].put)
			help_moved(p->req, p, rc);
		else if (p->req->recv.rndv.role == RNDV_GET)
			get_moved(p->req, p, rc);
		else
			split_moved(p->req, p, rc);
	}
	b->n = 0;
	b->bytes = 0;
	return moved;
}

/* One piece of a transfer; the device may see it only when the batch is run. */
static unsigned
batch_add(struct plx_rndv *r, struct rndv_batch *b, const struct plx_rma_op *op,
	const struct rndv_piece *p)
{
	unsigned n = 0;

	/* One peer, one direction, a transfer once. */
	if (b->n != 0 && (b->ops[0].peer != op->peer || b->ops[0].put != op->put ||
		b->pieces[0].req == p->req))
		n = rndv_batch_run(r, b);
	b->ops[b->n] = *op;
	b->pieces[b->n++] = *p;
	b->bytes += op->len;
	if (b->n == RNDV_BATCH || b->bytes >= r->chunk)
		n += rndv_batch_run(r, b);
	return n;
}

static unsigned
get_add(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b, uint32_t chunk,
	uint64_t offset, uint64_t len)
{
	const struct plx_req_rndv *v = &req->recv.rndv;
	const struct plx_rma_op op = {.peer = v->ep->peer, .local = (char *)req->buf + offset,
		.remote = v->rts.addr + v->base + offset, .len = len};
	const struct rndv_piece p = {.req = req, .offset = offset, .chunk = chunk};

	return batch_add(r, b, &op, &p);
}

/* All of it was read, or no more can be: it ends with err, if it was there to be read. */
static void
read_end(struct plx_rndv *r, struct plx_req *req, int err)
{
	if (likely(rndv_is_lent(&req->recv.rndv))) {
		rndv_recv_end(r, req, err);
		return;
	}
	rndv_recv_stop_run(r, req);
	rndv_split_stop(req);
	err = rndv_ask(r, req, err);
	if (err != 0)
		rndv_recv_end(r, req, err);
}

/* Everything was read, or no more can be. */
static void
get_end(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	int rc = v->err;

	v->err = 0;
	if (rc == -EOPNOTSUPP) { /* not allowed to read there after all */
		rndv_recv_stop_run(r, req);
		rc = rndv_frag_start(r, req);
		if (rc != 0)
			rndv_recv_end(r, req, rc);
		return;
	}
	read_end(r, req, rc);
}

unsigned
rndv_get_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint64_t offset = v->offset, len = min_u64(r->chunk, v->copy - offset);
	unsigned n;

	if (v->err != 0 || len == 0) {
		n = rndv_batch_run(r, b);
		if (v->err == 0 && v->offset < v->copy) /* the last piece was not read after all */
			return n;
		get_end(r, req);
		return n + 1;
	}
	v->offset += len;
	return get_add(r, req, b, RNDV_NONE, offset, len);
}

static uint32_t
split_done(const struct plx_req_rndv *v)
{
	/* pairs with the release in rndv_help_step(): the helper's bytes are there */
	return v->mine + (uint32_t)atomic_load_explicit(&own_cursor(v)->done, memory_order_acquire);
}

unsigned
rndv_split_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint32_t i = v->held;
	uint64_t offset;

	if (split_done(v) >= v->n_chunks) {
		rndv_batch_run(r, b);
		read_end(r, req, 0);
		return 1;
	}
	v->held = RNDV_NONE;
	if (i == RNDV_NONE) {
		i = v->redo;
		v->redo = RNDV_NONE;
	}
	if (i == RNDV_NONE)
		i = cursor_take(own_cursor(v), v->gen, v->n_chunks, false);
	if (i == RNDV_NONE)
		return 0;
	offset = (uint64_t)i * v->chunk;
	return get_add(r, req, b, i, offset, min_u64(v->chunk, v->copy - offset));
}

unsigned
rndv_drain_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	int rc;

	rndv_batch_run(r, b);
	if (v->held != RNDV_NONE) {
		v->held = RNDV_NONE;
		v->mine++;
	}
	if (v->redo != RNDV_NONE) { /* what the helper gave up is over as well */
		v->redo = RNDV_NONE;
		v->mine++;
	}
	if (split_done(v) < v->taken)
		return 0;
	if (v->err != -EOPNOTSUPP) {
		read_end(r, req, v->err);
		return 1;
	}
	/* Not allowed to read there after all: from the beginning, as messages. */
	rndv_split_stop(req);
	rndv_recv_stop_run(r, req);
	plx_req_id_put(&r->ids, v->id);
	v->id.index = 0;
	v->offset = 0;
	rc = rndv_frag_start(r, req);
	if (rc != 0)
		rndv_recv_end(r, req, rc);
	return 1;
}

/* Tell the receiver which chunk it must do itself. */
static unsigned
help_end(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_send *s = &req->send;
	struct plx_wire_help_end end = {.rreq = s->rreq, .chunk = s->help.failed,
		.err = s->help.err};

	(void)plx_ep_tx_ctl(s->ep, PLX_WIRE_HELP_END, &end, sizeof(end));
	rndv_send_stop_run(r, req);
	return 1;
}

unsigned
rndv_help_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_req_send *s = &req->send;
	struct plx_rndv_shared *shared = shared_of(s->ep->peer);
	uint32_t n_chunks = (s->help.len + s->help.chunk - 1) / s->help.chunk;
	struct rndv_piece p = {.req = req};
	struct plx_rma_op op;

	if (s->help.failed != RNDV_NONE) {
		rndv_batch_run(r, b);
		return help_end(r, req);
	}
	p.chunk = shared == NULL ? RNDV_NONE :
		cursor_take(&shared->cursors[s->help.slot], s->help.gen, n_chunks, true);
	if (p.chunk == RNDV_NONE) {
		rndv_send_stop_run(r, req);
		return 0;
	}
	p.offset = (uint64_t)p.chunk * s->help.chunk;
	op = (struct plx_rma_op){.peer = s->ep->peer, .local = (char *)req->buf + p.offset,
		.remote = s->help.addr + p.offset,
		.len = min_u64(s->help.chunk, s->help.len - p.offset), .put = true};
	return batch_add(r, b, &op, &p);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_get.c - the receiver reads, and the sender helps by writing
 *
 * Design notes
 * SPLIT: the receiver puts a cursor {generation, next chunk} into its shared area
 * and asks the sender to help. Both take chunks by compare-and-swap until none is
 * left; the sender counts what it has written in `done`. The receiver is finished
 * when its own count and `done` make up all. If the sender never looks, the
 * receiver takes every chunk: progress needs no help. A late sender finds another
 * generation and leaves. A cursor is memory a peer writes to: at worst a transfer
 * of that same peer goes wrong.
 */
#include <errno.h>
#include <stdatomic.h>

#include "rndv_int.h"

/* Below this two system calls cost more than sharing one copy gains. */
#define CHUNK_MIN (32u << 10)

static inline uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Take the next chunk. @return its index, or RNDV_NONE */
static uint32_t
cursor_take(struct plx_cursor *c, uint32_t gen, uint32_t n_chunks)
{
	uint64_t v = atomic_load_explicit(&c->next, memory_order_relaxed);

	do {
		if ((uint32_t)(v >> 32) != gen || (uint32_t)v >= n_chunks)
			return RNDV_NONE;
	} while (!atomic_compare_exchange_weak_explicit(&c->next, &v, v + 1, memory_order_relaxed,
		memory_order_relaxed));
	return (uint32_t)v;
}

static struct plx_cursor *
own_cursor(const struct plx_req_rndv *v)
{
	return (struct plx_cursor *)v->ep->peer->q->shared + v->slot;
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
	uint32_t n_slots = min_u64(q->shared_len / sizeof(struct plx_cursor), 64);
	struct plx_wire_help h;
	struct plx_cursor *c;
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
	/* A few chunks, so that both sides get some; page multiples. */
	chunk = min_u64(r->chunk, (v->copy / 4 + 4095) & ~4095ull);
	chunk = chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
	while (v->copy / chunk >= UINT32_MAX)
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
	h = (struct plx_wire_help){.sreq = v->sreq, .rreq = v->id, .addr = (uintptr_t)req->buf,
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

static int
get_range(struct plx_rndv *r, struct plx_req *req, uint64_t offset, uint64_t len)
{
	const struct plx_req_rndv *v = &req->recv.rndv;
	struct plx_rma_op op = {.peer = v->ep->peer, .local = (char *)req->buf + offset,
		.remote = v->addr + v->base + offset, .len = len};
	int rc = plx_peer_rma(&op);

	if (rc == 0)
		PLX_STAT_ADD(r->stat.bytes_own, len);
	return rc;
}

unsigned
rndv_get_step(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint64_t len = min_u64(r->chunk, v->copy - v->offset);
	int rc = get_range(r, req, v->offset, len);

	if (rc == -EAGAIN)
		return 0;
	if (rc == -EOPNOTSUPP) { /* not allowed to read there after all */
		rndv_recv_stop_run(r, req);
		rc = rndv_frag_start(r, req);
		if (rc != 0)
			rndv_recv_end(r, req, rc);
		return 1;
	}
	v->offset += len;
	if (rc != 0 || v->offset == v->copy)
		rndv_recv_end(r, req, rc);
	return 1;
}

static int
get_chunk(struct plx_rndv *r, struct plx_req *req, uint32_t i)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint64_t offset = (uint64_t)i * v->chunk;
	int rc = get_range(r, req, offset, min_u64(v->chunk, v->copy - offset));

	v->mine += rc == 0;
	return rc;
}

/* Nobody takes another chunk; those in the helper's hands are waited for. */
static void
split_drain(struct plx_req *req, int err)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint64_t old = atomic_exchange_explicit(&own_cursor(v)->next, 0, memory_order_relaxed);

	v->role = RNDV_DRAIN;
	v->err = err;
	v->taken = min_u64((uint32_t)old, v->n_chunks);
}

static uint32_t
split_done(const struct plx_req_rndv *v)
{
	/* pairs with the release in rndv_help_step(): the helper's bytes are there */
	return v->mine + (uint32_t)atomic_load_explicit(&own_cursor(v)->done, memory_order_acquire);
}

unsigned
rndv_split_step(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	uint32_t i = v->held;
	int rc = 0;

	v->held = RNDV_NONE;
	if (i == RNDV_NONE) {
		i = v->redo;
		v->redo = RNDV_NONE;
	}
	if (i == RNDV_NONE)
		i = cursor_take(own_cursor(v), v->gen, v->n_chunks);
	if (i != RNDV_NONE)
		rc = get_chunk(r, req, i);
	if (rc == -EAGAIN) {
		v->held = i; /* it is ours; in the next turn */
		return 0;
	}
	if (rc != 0) {
		v->mine++; /* of no use, but over */
		split_drain(req, rc);
	} else if (split_done(v) >= v->n_chunks) {
		rndv_recv_end(r, req, 0);
	} else if (i == RNDV_NONE) {
		return 0;
	}
	return 1;
}

unsigned
rndv_drain_step(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	int rc;

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
		rndv_recv_end(r, req, v->err);
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

/* Tell the receiver which chunk it must do itself; keeps trying. */
static unsigned
help_end(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_send *s = &req->send;
	struct plx_wire_help_end end = {.rreq = s->rreq, .chunk = s->help.failed,
		.err = s->help.err};
	int rc = plx_ep_tx_ctl(s->ep, PLX_WIRE_HELP_END, &end, sizeof(end));

	if (rc == -ENOMEM)
		return 0;
	rndv_send_stop_run(r, req);
	return 1;
}

unsigned
rndv_help_step(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_send *s = &req->send;
	struct plx_cursor *base = plx_peer_shared(s->ep->peer), *c;
	uint32_t n_chunks = (s->help.len + s->help.chunk - 1) / s->help.chunk;
	struct plx_rma_op op;
	uint64_t offset;
	uint32_t i;
	int rc;

	if (s->help.failed != RNDV_NONE)
		return help_end(r, req);
	c = base + s->help.slot;
	i = base != NULL ? cursor_take(c, s->help.gen, n_chunks) : RNDV_NONE;
	if (i == RNDV_NONE) {
		rndv_send_stop_run(r, req);
		return 0;
	}
	offset = (uint64_t)i * s->help.chunk;
	op = (struct plx_rma_op){.peer = s->ep->peer, .local = (char *)req->buf + offset,
		.remote = s->help.addr + offset, .len = min_u64(s->help.chunk, s->help.len - offset),
		.put = true};
	rc = plx_peer_rma(&op);
	if (rc == 0) {
		PLX_STAT_ADD(r->stat.bytes_help, op.len);
		/* pairs with the acquire in split_done() */
		atomic_fetch_add_explicit(&c->done, 1, memory_order_release);
		return 1;
	}
	/* Whatever it was, a helper that can't is none: the receiver needs nobody. */
	s->help.failed = i;
	s->help.err = rc;
	return help_end(r, req);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_split.c - the receiver reads, and the sender helps by writing
 *
 * Design notes
 * - SPLIT: the receiver puts a cursor {generation, chunks taken from either end} into its shared
 *   area and asks the sender to help. The receiver takes chunks from the front, the sender from
 *   the back, by compare-and-swap until none is left; the sender counts its written chunks in
 *   `done`. The receiver is finished when its own count and `done` make up all. If the sender
 *   runs no turns, the receiver takes every chunk: progress needs no help. A late sender finds
 *   another generation and stops. A cursor is memory that peers write: at worst a transfer goes wrong,
 *   and is waited for, when its worker is destroyed, until its sender has left.
 * - A sender that cannot copy a chunk gives it back in `bad` and takes no more. It sends no message,
 *   because an ep that has failed delivers none. A receive whose ep fails ends only when the sender
 *   has no chunk or has left. Until then its request, its ep and its cursor stay.
 * - Two copies by processors, one by each side, are faster than one by the kernel where lines pass
 *   fast between the cores. The driver knows (plx_peer_bulk()). Then the sender sends the chunks
 *   that it takes as DATA, if it has room for a whole one: a chunk that is taken arrives without
 *   another turn of the sender. It counts them in `sent`, as it writes to the buffer no more.
 * - A side waits for the other for r->patience: then the receiver reads one chunk, or the sender
 *   writes one. After four times in vain it does all that it can, until the other takes part again.
 *   If both did so at once, neither would find the other's messages: a call of the kernel takes longer.
 * - A sender that runs on the receiver's own core is not asked: the two would only alternate.
 *   Each end shows in its shared area the core of its last announcement.
 * - Each core takes chunks from its own end, so that reused buffers stay in its cache.
 */
#include <errno.h>
#include <sched.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_cursor.h"
#include "rndv_int.h"

/* Below this two system calls cost more than sharing one copy gains. */
#define CHUNK_MIN (32u << 10)
#define CHUNK_MSG (64u << 10) /* at most, while they come as messages */
#define HOPES	  4 /* times that a side waits for the other in vain */

/* @return the number of the cursor in the area of q that the caller owns now, or RNDV_NONE */
static uint32_t
cursor_get(struct plx_rndv *r, const struct plx_queue *q)
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

/* @return the bytes of a chunk in one message */
static uint64_t
msg_max(const struct plx_ep *ep)
{
	return ep->peer->mtu - sizeof(struct plx_wire_data);
}

/* The other side has taken part. */
static void
hope_renew(struct rndv_hope *h)
{
	h->since = rte_rdtsc();
	h->left = HOPES;
}

/* @return whether it is likely to take part soon, so that this side need not do a chunk alone */
static bool
hope_waits(const struct plx_rndv *r, struct rndv_hope *h)
{
	uint64_t now;

	if (h->left == 0)
		return false;
	now = rte_rdtsc();
	if (now - h->since < r->patience)
		return true;
	h->since = now; /* one chunk, and then again */
	h->left--;
	return false;
}

/* Whether the chunks may come as messages, and how long they are then. */
static void
split_hope(struct plx_rndv_rx *v, const struct plx_req *req, uint64_t *chunk)
{
	const struct plx_rma_op op = {.peer = v->ep->peer, .remote = v->rts.addr, .len = v->copy};
	struct rndv_ep *e = rndv_ep(v->ep);

	v->hopes = v->list == NULL && (req->dt == NULL || req->dt->pieces == NULL) && plx_peer_bulk(&op, 0) > 0;
	if (!v->hopes || e->rx.left == 0)
		return;
	e->rx.since = rte_rdtsc();
	*chunk = RTE_MIN(*chunk, CHUNK_MSG);
	if (*chunk > msg_max(v->ep)) /* no short message at its end */
		*chunk -= *chunk % msg_max(v->ep);
}

int
rndv_split_start(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct plx_wire_help h;
	struct plx_rndv_cursor *c;
	uint64_t chunk;
	int rc;

	if (v->copy <= CHUNK_MIN) /* sharing one chunk costs more than it saves */
		return -EAGAIN;
	rc = rndv_recv_name(r, req);
	if (rc != 0)
		return rc;
	v->slot = cursor_get(r, v->ep->peer->q);
	if (v->slot == RNDV_NONE) {
		rc = -EAGAIN;
		goto put_id;
	}
	/* Several chunks, so that both sides get some, and that the faster side waits for
	 * half a turn at most. */
	chunk = RTE_MIN(r->chunk / 2, v->copy / 4 + 4095) & ~4095ull;
	split_hope(v, req, &chunk);
	chunk = chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
	while (v->copy / chunk >= UINT16_MAX) /* limit of the cursor's counts */
		chunk *= 2;
	v->chunk = chunk;
	v->n_chunks = (v->copy + chunk - 1) / chunk;
	v->gen = r->gen;
	r->gen += r->gen == UINT32_MAX ? 2 : 1; /* 0 is no generation */
	v->mine = 0;
	c = rndv_cursor(v);
	atomic_store_explicit(&c->done, (uint64_t)v->gen << 32, memory_order_relaxed);
	atomic_store_explicit(&c->bad, (uint64_t)v->gen << 32, memory_order_relaxed);
	atomic_store_explicit(&c->sent, (uint64_t)v->gen << 32, memory_order_relaxed);
	atomic_store_explicit(&c->next, (uint64_t)v->gen << 32, memory_order_release);
	h = (struct plx_wire_help){.sreq = v->rts.sreq, .rreq = v->id, .addr = (uintptr_t)req->buf,
		.len = v->copy, .slot = v->slot, .gen = v->gen, .chunk = chunk};
	if (req->dt != NULL && req->dt->pieces != NULL) {
		h.addr = 0;
		rc = rndv_list_help(v, req, &h);
	} else {
		rc = plx_ep_tx_ctl(v->ep, PLX_WIRE_HELP, &h, sizeof(h));
	}
	if (rc != 0)
		goto put_cursor;
	PLX_STAT_INC(r->stat.split);
	rndv_recv_start_run(r, req, RNDV_SPLIT);
	return 0;
put_cursor:
	rndv_cursor_put(v);
put_id:
	plx_req_id_put(&r->ids, v->id);
	v->id.index = 0;
	return rc;
}

/* No more chunks are taken; wait for those that the helper has. */
static void
split_drain(struct plx_req *req, int err)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	uint64_t old = atomic_exchange_explicit(&rndv_cursor(v)->next, 0, memory_order_relaxed);

	v->role = RNDV_DRAIN;
	v->err = err;
	v->taken = RTE_MIN(plx_cursor_taken(old), v->n_chunks);
}

static void
split_moved(struct plx_req *req, const struct rndv_piece *p, int rc)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);

	if (rc == -EAGAIN) {
		v->held = p->chunk; /* claimed; copied in the next turn */
		return;
	}
	v->mine++; /* useless after an error, but complete */
	if (rc != 0)
		split_drain(req, rc);
}

static uint32_t
split_done(const struct plx_rndv_rx *v)
{
	/* pairs with the release in help_moved(): the helper's bytes are there */
	return v->mine + (uint32_t)atomic_load_explicit(&rndv_cursor(v)->done, memory_order_acquire);
}

/* The messages of one chunk arrive in order, and those of other chunks do not arrive between them. */
void
rndv_split_data(struct plx_rndv *r, struct plx_req *req, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	uint64_t end = RTE_MIN((offset / v->chunk + 1) * v->chunk, v->copy);

	if (v->role == RNDV_DRAIN) /* it has failed */
		return;
	if ((v->offset != 0 ? offset != v->offset : offset % v->chunk != 0) || offset >= v->copy || len == 0 ||
		len > end - offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	hope_renew(&rndv_ep(v->ep)->rx);
	plx_req_copy_in(req, offset, data, len);
	PLX_STAT_ADD(r->stat.bytes_own, len);
	v->offset = offset + len < end ? offset + len : 0;
	v->came += v->offset == 0;
}

/* @return the chunk that the helper has given back, which may be none that there is; or RNDV_NONE */
static uint32_t
split_bad(const struct plx_rndv_rx *v)
{
	/* pairs with the release in help_moved(): it writes there no more */
	uint64_t bad = atomic_load_explicit(&rndv_cursor(v)->bad, memory_order_acquire);

	return bad >> 32 == v->gen ? (uint32_t)bad - 1 : RNDV_NONE;
}

/* @return as split_bad(), once */
static uint32_t
split_take_bad(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	uint32_t i = split_bad(v);

	if (i == RNDV_NONE)
		return RNDV_NONE;
	if (i >= v->n_chunks) { /* the one that it has taken is never copied */
		PLX_STAT_INC(r->stat.drop_bad_range);
		split_drain(req, -EPROTO);
		return RNDV_NONE;
	}
	atomic_store_explicit(&rndv_cursor(v)->bad, (uint64_t)v->gen << 32, memory_order_relaxed);
	v->hopes = false; /* it sends no other */
	if (v->offset > (uint64_t)i * v->chunk && v->offset - (uint64_t)i * v->chunk < v->chunk)
		v->offset = 0; /* a part of it has come: no more does */
	return i;
}


unsigned
rndv_split_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct rndv_piece p = {.req = req, .moved = split_moved};
	uint32_t i = v->held;

	if (split_done(v) + v->came >= v->n_chunks) {
		rndv_batch_run(r, b);
		rndv_read_end(r, req, 0);
		return 1;
	}
	v->held = RNDV_NONE;
	if (i == RNDV_NONE)
		i = split_take_bad(r, req);
	if (i == RNDV_NONE && !(v->hopes && hope_waits(r, &rndv_ep(v->ep)->rx)))
		i = plx_cursor_take(&rndv_cursor(v)->next, v->gen, v->n_chunks, false);
	if (i == RNDV_NONE)
		return 0;
	p.chunk = i;
	p.offset = (uint64_t)i * v->chunk;
	return rndv_batch_read(r, b, &p, RTE_MIN(v->chunk, v->copy - p.offset));
}

/* @return the chunks that the helper has taken without writing to the buffer */
static uint32_t
split_sent(const struct plx_rndv_rx *v)
{
	return (uint32_t)atomic_load_explicit(&rndv_cursor(v)->sent, memory_order_relaxed);
}

/* Of one that is drained. @return whether the helper may write a chunk */
static bool
split_is_away(struct plx_rndv_rx *v)
{
	if (v->held != RNDV_NONE) {
		v->held = RNDV_NONE;
		v->mine++;
	}
	return split_done(v) + split_sent(v) + (split_bad(v) != RNDV_NONE) < v->taken && !plx_peer_has_left(v->ep->peer);
}

bool
rndv_split_outlives(struct plx_req *req, int err)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);

	if (v->role == RNDV_SPLIT)
		split_drain(req, err);
	if (v->role != RNDV_DRAIN || !split_is_away(v))
		return false;
	v->err = err;
	v->over = true;
	v->ep->n_msgs++;
	return true;
}

void
plx_rndv_settle(struct plx_rndv *r)
{
	struct plx_rndv_rx *v;

	TAILQ_FOREACH(v, &r->recvs, run) {
		if (v->role == RNDV_SPLIT)
			split_drain(plx_req_of_own(v), -ECANCELED);
		while (v->role == RNDV_DRAIN && split_is_away(v)) {
			plx_queue_control(v->ep->peer->q); /* sees whether the sender has ended */
			sched_yield();			   /* it may need this core for its copy */
		}
	}
}

unsigned
rndv_drain_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	int rc;

	rndv_batch_run(r, b);
	if (split_is_away(v))
		return 0;
	if (v->over) {
		rndv_recv_end(r, req, v->err);
		return 1;
	}
	if (v->err != -EOPNOTSUPP) {
		rndv_read_end(r, req, v->err);
		return 1;
	}
	/* Reading is not allowed there: start again, as messages. */
	rndv_cursor_put(v);
	rndv_recv_stop_run(r, req);
	rndv_list_put(r, &v->list);
	plx_req_id_put(&r->ids, v->id);
	v->id.index = 0;
	v->offset = 0;
	rc = rndv_frag_start(r, req);
	if (rc != 0)
		rndv_recv_end(r, req, rc);
	return 1;
}

void
plx_rndv_on_help(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_help *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_req *req = rndv_send_find(r, ep, h->sreq);

	if (req == NULL)
		return;
	if (plx_rndv_tx(req)->n_out != 0 || !rndv_is_memory(req, ep->peer) || h->len > req->len || h->chunk < 4096 ||
		h->len / h->chunk >= UINT16_MAX ||
		h->slot >= plx_rndv_n_cursors(ep->peer->q->shared_len) ||
		plx_peer_shared(ep->peer) == NULL) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return; /* the receiver copies alone */
	}
	rndv_send_stop_run(r, req);
	plx_rndv_tx(req)->help.addr = h->addr;
	if (len != 0 || req->dt != NULL) {
		struct plx_rndv_list *list = rndv_list_of_help(r, h, data, len);

		if (list == NULL) {
			PLX_STAT_INC(r->stat.drop_bad_range);
			return;
		}
		plx_rndv_tx(req)->help.list = list;
		plx_rndv_tx(req)->has_list = true;
	}
	plx_rndv_tx(req)->rreq = h->rreq;
	plx_rndv_tx(req)->help.len = h->len;
	plx_rndv_tx(req)->help.slot = h->slot;
	plx_rndv_tx(req)->help.gen = h->gen;
	plx_rndv_tx(req)->help.chunk = h->chunk;
	rndv_send_start_run(r, req, RNDV_HELP);
}

static void
help_moved(struct plx_req *req, const struct rndv_piece *p, int rc)
{
	const struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_rndv_shared *shared = plx_peer_shared(plx_ep_send(req)->ep->peer);
	struct plx_rndv_cursor *c = &shared->cursors[t->help.slot];

	if (rc == 0) {
		/* pairs with the acquire in split_done() */
		atomic_fetch_add_explicit(&c->done, 1, memory_order_release);
		return;
	}
	/* Any error of a helper means no help: the receiver needs none. Pairs with the acquire in split_bad(). */
	atomic_store_explicit(&c->bad, (uint64_t)t->help.gen << 32 | (p->chunk + 1), memory_order_release);
	rndv_send_stop_run(rndv_of(plx_ep_send(req)->ep), req);
}

/* As plx_peer_bulk(), of a chunk. -EAGAIN: not now, but soon. */
static int
help_way(const struct plx_rndv *r, const struct plx_req *req)
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	const struct plx_rndv_tx *t = plx_rndv_tx(req);
	const struct plx_rma_op op = {.peer = ep->peer, .remote = t->help.addr, .len = t->help.len, .put = true};
	int way;

	if (t->has_list || req->dt != NULL || !plx_ep_open(ep))
		return 0;
	way = plx_peer_bulk(&op, (t->help.chunk + msg_max(ep) - 1) / msg_max(ep));
	return way == -EAGAIN && !hope_waits(r, &rndv_ep(ep)->tx) ? 0 : way;
}

/* All of a chunk, for which there is room. */
static unsigned
help_send(struct plx_rndv *r, struct plx_req *req, const struct rndv_piece *p, uint64_t len)
{
	const struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_ep *ep = plx_ep_send(req)->ep;
	struct plx_wire_data h = {.rreq = t->rreq, .offset = p->offset};
	struct plx_tx tx = {.peer = ep->peer, .hdr = &h, .hdr_len = sizeof(h), .op = PLX_WIRE_DATA};
	const uint64_t end = p->offset + len;
	int rc = 0;

	for (; h.offset < end && rc == 0; h.offset += tx.len) {
		plx_req_tx(req, &tx, h.offset, RTE_MIN(msg_max(ep), end - h.offset));
		rc = plx_peer_tx(&tx);
	}
	if (rc != 0) { /* for example, the peer is dead */
		help_moved(req, p, rc);
		return 1;
	}
	hope_renew(&rndv_ep(ep)->tx);
	PLX_STAT_ADD(r->stat.bytes_help, len);
	PLX_STAT_INC(r->stat.chunks_sent);
	atomic_fetch_add_explicit(&((struct plx_rndv_shared *)plx_peer_shared(ep->peer))->cursors[t->help.slot].sent, 1,
		memory_order_relaxed);
	return 1;
}

unsigned
rndv_help_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_rndv_shared *shared = plx_peer_shared(s->ep->peer);
	uint32_t n_chunks = (t->help.len + t->help.chunk - 1) / t->help.chunk;
	struct rndv_piece p = {.req = req, .moved = help_moved};
	struct plx_rma_op op;
	int way = shared == NULL ? 0 : help_way(r, req);

	if (way == -EAGAIN)
		return 0;
	p.chunk = shared == NULL ? RNDV_NONE :
		plx_cursor_take(&shared->cursors[t->help.slot].next, t->help.gen, n_chunks, true);
	if (p.chunk == RNDV_NONE) {
		rndv_send_stop_run(r, req);
		return 0;
	}
	p.offset = (uint64_t)p.chunk * t->help.chunk;
	op = (struct plx_rma_op){.peer = s->ep->peer, .local = (char *)req->buf + p.offset,
		.remote = t->help.addr + p.offset,
		.len = RTE_MIN(t->help.chunk, t->help.len - p.offset), .put = true,
		.mem_type = plx_req_mem_type(req)};
	if (way > 0)
		return help_send(r, req, &p, op.len);
	if (unlikely(t->has_list))
		return rndv_batch_list(r, b, op.peer, t->help.list, true, &p, op.len);
	return rndv_batch_add(r, b, &op, &p);
}

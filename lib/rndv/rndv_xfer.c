/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_xfer.c - transfers: their run lists, names, pieces, withdrawal and completion
 *
 * Design notes
 * - A request that a peer will answer has a name (plx_wire_id) and is in its ep's list of waits.
 *   An answer is accepted only if its name is in use and the request belongs to the ep of the
 *   answer.
 * - The fixed cost of a call of the device is near that of 16 KiB. A step adds a piece and never
 *   completes a request; the next step checks the result. Code that completes a request runs the
 *   batch first, for a callback may complete the others.
 */
#include <errno.h>

#include "rndv_int.h"

void
rndv_send_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role)
{
	rndv_send_stop_run(r, req);
	plx_rndv_tx(req)->role = role;
	plx_rndv_tx(req)->on_run = true;
	r->n_sends++;
	plx_eps_need_turn(plx_ep_send(req)->ep->eps);
	TAILQ_INSERT_TAIL(&r->sends, plx_rndv_tx(req), run);
}

void
rndv_send_stop_run(struct plx_rndv *r, struct plx_req *req)
{
	if (!plx_rndv_tx(req)->on_run)
		return;
	TAILQ_REMOVE(&r->sends, plx_rndv_tx(req), run);
	r->n_sends--;
	plx_rndv_tx(req)->on_run = false;
	plx_rndv_tx(req)->role = RNDV_IDLE;
}

void
rndv_recv_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role)
{
	plx_rndv_rx(req)->role = role;
	plx_rndv_rx(req)->on_run = true;
	r->n_recvs++;
	plx_eps_need_turn(plx_rndv_rx(req)->ep->eps);
	TAILQ_INSERT_TAIL(&r->recvs, plx_rndv_rx(req), run);
}

void
rndv_recv_stop_run(struct plx_rndv *r, struct plx_req *req)
{
	if (!plx_rndv_rx(req)->on_run)
		return;
	TAILQ_REMOVE(&r->recvs, plx_rndv_rx(req), run);
	r->n_recvs--;
	plx_rndv_rx(req)->on_run = false;
}

struct plx_req *
rndv_send_find_any(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id)
{
	struct plx_req *req = plx_req_id_find(&r->ids, id);

	if (req == NULL || (atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_RECV) ||
		plx_ep_send(req)->ep != ep || !plx_rndv_tx(req)->announced || plx_rndv_tx(req)->over) {
		PLX_STAT_INC(r->stat.drop_bad_id);
		return NULL;
	}
	return req;
}

struct plx_req *
rndv_send_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id)
{
	struct plx_req *req = rndv_send_find_any(r, ep, id);

	if (req == NULL || !plx_rndv_tx(req)->announcing)
		return req;
	PLX_STAT_INC(r->stat.drop_bad_id);
	return NULL;
}

static void
cancel_send(struct plx_ep *ep, struct plx_wire_id rreq, uint32_t msg_id)
{
	struct plx_wire_cancel h = {.rreq = rreq, .msg_id = msg_id};

	(void)plx_ep_tx_ctl(ep, PLX_WIRE_CANCEL, &h, sizeof(h));
}

struct plx_req *
rndv_send_asked(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id sreq,
	struct plx_wire_id rreq)
{
	struct plx_req *req = rndv_send_find(r, ep, sreq);

	if (req == NULL && rreq.index != 0) /* it was probably withdrawn, and rreq waits */
		cancel_send(ep, rreq, 0);
	return req;
}

struct plx_req *
rndv_recv_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id)
{
	struct plx_req *req = plx_req_id_find(&r->ids, id);

	if (req == NULL ||
		(atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_RECV) == 0 ||
		plx_rndv_rx(req)->ep != ep) {
		PLX_STAT_INC(r->stat.drop_bad_id);
		return NULL;
	}
	return req;
}

uint32_t
plx_rndv_epoch(const struct plx_ep *ep)
{
	struct plx_rndv_shared *s = rndv_own_shared(ep);

	/* relaxed: only this thread writes it */
	return s != NULL ? atomic_load_explicit(&s->epoch, memory_order_relaxed) : 0;
}

/* All earlier announcements may be withdrawn: their buffers are about to be the program's
 * again. */
static void
epoch_end(const struct plx_ep *ep)
{
	struct plx_rndv_shared *s = rndv_own_shared(ep);

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

	/* pairs with the fence in epoch_end(): the count is read after the data */
	atomic_thread_fence(memory_order_acquire);
	return s != NULL && atomic_load_explicit(&s->epoch, memory_order_relaxed) == v->rts.epoch;
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

/* A receiver that reads the buffer detects it; one that waits for us needs a message. */
static void
take_back(struct plx_rndv *r, struct plx_req *req)
{
	const struct plx_ep_send *s = plx_ep_send(req);
	const struct plx_rndv_tx *t = plx_rndv_tx(req);

	PLX_STAT_INC(r->stat.taken_back);
	if (plx_req_in_place(req, s->ep->peer))
		epoch_end(s->ep);
	if (s->ep->err != 0)
		return; /* it has lost us as well */
	if (t->rreq.index != 0)
		cancel_send(s->ep, t->rreq, 0);
	else if (t->announcing) /* it has some of the pieces */
		cancel_send(s->ep, (struct plx_wire_id){0}, s->msg_id);
}

static void
mem_put(const struct plx_ep *ep, void *drv, bool revoke)
{
	plx_queue_mem_dereg(ep->peer->q, &(struct plx_dev_mem){.drv = drv}, revoke);
}

/* The sender's side is complete: acknowledged, cancelled, or the peer is gone. */
void
rndv_send_end(struct plx_rndv *r, struct plx_req *req, int err)
{
	rndv_send_stop_run(r, req);
	plx_ep_wait_end(&plx_rndv_tx(req)->wait);
	plx_req_id_put(&r->ids, plx_rndv_tx(req)->id);
	if (plx_rndv_tx(req)->has_mem)
		mem_put(plx_ep_send(req)->ep, plx_ep_send(req)->mem, false);
	if (err != 0)
		PLX_STAT_INC(r->stat.errors);
	if (plx_rndv_tx(req)->back && plx_rndv_tx(req)->announced)
		take_back(r, req);
	if (plx_rndv_tx(req)->counts && !plx_ep_send(req)->pend.held)
		plx_ep_announce_end(plx_ep_send(req)->ep);
	plx_req_complete(req, err);
}

void
rndv_mem_put(struct plx_rndv_rx *v, bool revoke)
{
	if (v->mem != NULL)
		mem_put(v->ep, v->mem, revoke);
	v->mem = NULL;
}

void
plx_rndv_ack(struct plx_ep *ep, struct plx_wire_id sreq, int err)
{
	struct plx_wire_ack h = {.sreq = sreq, .err = err};

	/* If this can't be sent the peer is dead and needs no answer. */
	(void)plx_ep_tx_ctl(ep, PLX_WIRE_ACK, &h, sizeof(h));
}

void
rndv_recv_end(struct plx_rndv *r, struct plx_req *req, int err)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct plx_ep *ep = v->ep;
	struct plx_wire_id sreq = v->rts.sreq;
	/* A receive that fails still releases the sender. */
	bool ack = err != 0 ? !v->gone : !v->more && !v->done;
	bool later = plx_req_is_told_later(req);

	rndv_recv_stop_run(r, req);
	rndv_cursor_put(v);
	plx_ep_wait_end(&v->wait);
	rndv_mem_put(v, err != 0);
	if (v->id.index != 0)
		plx_req_id_put(&r->ids, v->id);
	if (err != 0)
		PLX_STAT_INC(r->stat.errors);
	/* Complete locally before acknowledging: the acknowledgement may wake a process
	 * that takes this core. */
	if (later)
		plx_req_complete(req, err);
	if (ack)
		plx_rndv_ack(ep, sreq, err);
	if (!later)
		plx_req_complete(req, err);
}

/* All is read, and perhaps withdrawn: ask. err is the receive's status if not. */
static int
recv_ask(struct plx_rndv *r, struct plx_req *req, int err)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct plx_wire_pull h = {.sreq = v->rts.sreq, .offset = v->base};
	int rc;

	if (v->id.index == 0) {
		rc = plx_req_id_get(&r->ids, req, &v->id);
		if (rc != 0)
			return rc;
	}
	v->role = RNDV_ASK;
	v->err = err;
	h.rreq = v->id;
	PLX_STAT_INC(r->stat.asked_again);
	return plx_ep_tx_ctl(v->ep, PLX_WIRE_PULL, &h, sizeof(h));
}

void
rndv_read_end(struct plx_rndv *r, struct plx_req *req, int err)
{
	if (likely(rndv_is_valid(plx_rndv_rx(req)))) {
		rndv_recv_end(r, req, err);
		return;
	}
	rndv_recv_stop_run(r, req);
	rndv_cursor_put(plx_rndv_rx(req));
	err = recv_ask(r, req, err);
	if (err != 0)
		rndv_recv_end(r, req, err);
}

static int
move_one(const struct rndv_batch *b, const struct plx_rma_piece *m)
{
	const struct plx_rma_op op = {.peer = b->peer, .local = m->local, .remote = m->remote,
		.len = m->len, .put = b->put, .mem_type = m->mem_type};

	return plx_peer_rma(&op);
}

unsigned
rndv_batch_run(struct plx_rndv *r, struct rndv_batch *b)
{
	unsigned i, n, moved = 0;
	uint64_t *bytes;

	if (b->n == 0)
		return 0;
	bytes = b->put ? &r->stat.bytes_help : &r->stat.bytes_own;
	n = b->n > 1 ? plx_peer_rma_burst(b->peer, b->put, b->moves, b->n) : 0;
	for (i = 0; i < b->n; i++) {
		const struct rndv_piece *p = &b->pieces[i];
		int rc = i < n ? 0 : move_one(b, &b->moves[i]);

		if (rc == 0)
			PLX_STAT_ADD(*bytes, b->moves[i].len);
		moved += rc != -EAGAIN;
		p->moved(p->req, p, rc);
	}
	b->n = 0;
	b->bytes = 0;
	return moved;
}

unsigned
rndv_batch_add(struct plx_rndv *r, struct rndv_batch *b, const struct plx_rma_op *op,
	const struct rndv_piece *p)
{
	unsigned n = 0;

	/* One peer, one direction, a transfer once. */
	if (b->n != 0 && (b->peer != op->peer || b->put != op->put || b->pieces[0].req == p->req))
		n = rndv_batch_run(r, b);
	b->peer = op->peer;
	b->put = op->put;
	b->moves[b->n] = (struct plx_rma_piece){op->local, op->remote, op->len, op->mem_type};
	b->pieces[b->n++] = *p;
	b->bytes += op->len;
	if (b->n == RNDV_BATCH || b->bytes >= r->chunk)
		n += rndv_batch_run(r, b);
	return n;
}

unsigned
rndv_batch_read(struct plx_rndv *r, struct rndv_batch *b, const struct rndv_piece *p, uint64_t len)
{
	const struct plx_rndv_rx *v = plx_rndv_rx(p->req);
	const struct plx_rma_op op = {.peer = v->ep->peer, .local = (char *)p->req->buf + p->offset,
		.remote = v->rts.addr + v->base + p->offset, .len = len,
		.mem_type = plx_req_mem_type(p->req)};

	return rndv_batch_add(r, b, &op, p);
}

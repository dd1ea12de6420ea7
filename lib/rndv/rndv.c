/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv.c - announce a message, begin and run its transfer, withdraw and complete it
 *
 * Design notes
 * - A request that a peer will answer has a name (plx_wire_id) and is in its ep's list of waits.
 *   An answer is accepted only if its name is in use and the request belongs to the ep of the
 *   answer.
 * - How the data moves is a scheme, each in a file of its own above this one. recv_start() chooses.
 * - The fixed cost of a call of the device is near that of 16 KiB. A step adds a piece and never
 *   completes a request; the next step checks the result. Code that completes a request runs the
 *   batch first, for a callback may complete the others.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

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
	if (unlikely(plx_rndv_tx(req)->has_list))
		rndv_list_put(r, &plx_rndv_tx(req)->help.list);
	plx_rndv_tx(req)->has_list = false;
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

int
rndv_recv_name(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);

	return v->id.index != 0 ? 0 : plx_req_id_get(&r->ids, req, &v->id);
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
	/* pairs with the fence in rndv_epoch_is(): the program's writes to the buffer follow
	 * the count */
	atomic_thread_fence(memory_order_release);
}

bool
rndv_epoch_is(const struct plx_ep *ep, uint32_t epoch)
{
	struct plx_rndv_shared *s = plx_peer_shared(ep->peer);

	/* pairs with the fence in epoch_end(): the count is read after the data */
	atomic_thread_fence(memory_order_acquire);
	return s != NULL && atomic_load_explicit(&s->epoch, memory_order_relaxed) == epoch;
}

bool
rndv_is_valid(const struct plx_rndv_rx *v)
{
	return rndv_epoch_is(v->ep, v->rts.epoch);
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
	if (rndv_is_memory(req, s->ep->peer))
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

	if (v->over)
		ep->n_msgs--;
	rndv_recv_stop_run(r, req);
	rndv_cursor_put(v);
	rndv_list_put(r, &v->list);
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
	int rc = rndv_recv_name(r, req);

	if (rc != 0)
		return rc;
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
rndv_batch_list(struct plx_rndv *r, struct rndv_batch *b, struct plx_peer *peer, struct plx_rndv_list *list, bool put,
	const struct rndv_piece *p, uint64_t len)
{
	unsigned n = rndv_batch_run(r, b);
	int rc = rndv_list_copy(peer, p->req, list, put, p->offset, len);

	if (rc == 0)
		PLX_STAT_ADD(*(put ? &r->stat.bytes_help : &r->stat.bytes_own), len);
	p->moved(p->req, p, rc);
	return n + (rc != -EAGAIN);
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

	if (unlikely(v->list != NULL))
		return rndv_batch_list(r, b, v->ep->peer, v->list, false, p, len);
	return rndv_batch_add(r, b, &op, p);
}

/* While the device reads the buffer, be it to write it there or to send it, the request stays. @return whether it does so */
static bool
send_outlives(struct plx_rndv *r, struct plx_req *req, int err)
{
	if (plx_rndv_tx(req)->n_out == 0)
		return false;
	rndv_send_stop_run(r, req);
	plx_rndv_tx(req)->over = true;
	plx_rndv_tx(req)->err = err;
	return true;
}

static void
send_wait_fail(struct plx_wait *w, int err)
{
	struct plx_req *req = plx_req_of_own(container_of(w, struct plx_rndv_tx, wait));

	plx_rndv_tx(req)->back = true;
	if (send_outlives(rndv_of(plx_ep_send(req)->ep), req, err))
		return;
	rndv_send_end(rndv_of(plx_ep_send(req)->ep), req, err);
}

static void
send_pend_fail(struct plx_pend *p, int err)
{
	/* The wait fails as well, and that completes the request: nothing to do. */
	(void)p;
	(void)err;
}

static int
rts_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_rts h = {.tag = plx_ep_send(req)->tag, .len = req->len,
		.addr = plx_req_in_place(req, plx_ep_send(req)->ep->peer) ? (uintptr_t)req->buf : 0, .sreq = plx_rndv_tx(req)->id,
		.epoch = plx_rndv_epoch(plx_ep_send(req)->ep)};
	struct plx_tx tx = {.peer = plx_ep_send(req)->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_RTS};

	return plx_rndv_announced(req, likely(h.addr != 0) ? plx_peer_tx(&tx) : rndv_list_announce(req, &tx));
}

static int
sync_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_sync h = {.tag = plx_ep_send(req)->tag, .sreq = plx_rndv_tx(req)->id};
	struct plx_tx tx = {.peer = plx_ep_send(req)->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_SYNC};

	if (unlikely(req->len >= plx_ep_send(req)->ep->eager_end)) /* no longer */
		return rts_send(p);
	plx_req_tx(req, &tx, 0, req->len);
	return plx_rndv_announced(req, plx_peer_tx(&tx));
}

static uint32_t
this_cpu(void)
{
	return (uint32_t)(sched_getcpu() + 1);
}

/* Show peers the core of this end. */
static void
place_set(struct plx_ep *ep)
{
	struct plx_rndv_shared *s = rndv_own_shared(ep);

	if (s != NULL) /* relaxed: only affects time */
		atomic_store_explicit(&s->cpu, this_cpu(), memory_order_relaxed);
}

/* @return whether the sender at ep, which announced last, runs on this very core: it could not help meanwhile. */
static bool
place_is_near(struct plx_ep *ep)
{
	struct plx_rndv_shared *s = plx_peer_shared(ep->peer);

	return s != NULL && atomic_load_explicit(&s->cpu, memory_order_relaxed) == this_cpu();
}

static int
send_init(struct plx_rndv *r, struct plx_req *req, int (*send)(struct plx_pend *p), bool tagged)
{
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	int rc = plx_req_id_get(&r->ids, req, &t->id);

	if (rc != 0)
		return rc;
	t->on_run = false;
	t->announced = false;
	t->announcing = true;
	t->msg.offset = 0;
	t->n_out = 0;
	t->over = false;
	t->back = false;
	t->has_mem = false;
	t->has_list = false;
	t->role = RNDV_IDLE;
	t->rreq.index = 0;
	t->msg.pend.conn_id = t->msg.conn_id;
	t->msg.pend.send = send;
	t->msg.pend.fail = send_pend_fail;
	t->counts = tagged;
	t->wait.since = plx_wait_clock(rte_rdtsc());
	return 0;
}

static int
send_as(struct plx_rndv *r, struct plx_req *req, int (*send)(struct plx_pend *p), bool tagged)
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc = likely(ep->err == 0) ? send_init(r, req, send, tagged) : ep->err;

	if (rc != 0)
		return rc;
	place_set(ep);
	if (!tagged || plx_ep_announce(ep, &plx_ep_send(req)->pend)) {
		rc = plx_ep_open(ep) ? send(&plx_ep_send(req)->pend) : -EAGAIN;
		if (rc == -EAGAIN)
			plx_ep_pend_as(ep, &plx_ep_send(req)->pend, tagged ? PLX_PEND_ANNOUNCED : PLX_PEND_ANY);
	}
	if (rc != 0 && rc != -EAGAIN) {
		plx_req_id_put(&r->ids, plx_rndv_tx(req)->id);
		if (tagged)
			plx_ep_announce_end(ep);
		return rc;
	}
	plx_ep_wait(ep, &plx_rndv_tx(req)->wait, plx_ep_send(req)->conn_id, send_wait_fail);
	PLX_STAT_INC(r->stat.sends);
	return 0;
}

int
plx_rndv_send_as(struct plx_rndv *r, struct plx_req *req, int (*send)(struct plx_pend *p))
{
	return send_as(r, req, send, false);
}

int
plx_rndv_send(struct plx_rndv *r, struct plx_req *req)
{
	return send_as(r, req, rts_send, true);
}

int
plx_rndv_send_instead(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc = send_init(r, req, rts_send, true);

	if (rc != 0)
		return rc;
	place_set(ep);
	if (plx_ep_announce_early(ep, &plx_ep_send(req)->pend)) {
		rc = rts_send(&plx_ep_send(req)->pend);
		if (rc != 0 && rc != -EAGAIN) { /* it fails as an eager message */
			plx_req_id_put(&r->ids, plx_rndv_tx(req)->id);
			plx_ep_announce_end(ep);
			plx_req_complete(req, rc);
			return 0;
		}
	}
	plx_ep_wait(ep, &plx_rndv_tx(req)->wait, plx_ep_send(req)->conn_id, send_wait_fail);
	PLX_STAT_INC(r->stat.sends);
	return rc;
}

int
plx_rndv_send_sync(struct plx_rndv *r, struct plx_req *req)
{
	return send_as(r, req, sync_send, true);
}

static void
recv_wait_fail(struct plx_wait *w, int err)
{
	struct plx_req *req = plx_req_of_own(container_of(w, struct plx_rndv_rx, wait));
	struct plx_rndv *r = rndv_of(plx_rndv_rx(req)->ep);

	if (!r->schemes->outlives(req, err))
		rndv_recv_end(r, req, err);
}

/* The receiver reads, alone or with help. */
static int
read_start(struct plx_rndv *r, struct plx_req *req)
{
	const struct plx_rndv_rx *v = plx_rndv_rx(req);
	/* A helper copies from the beginning of its buffer, and all of it. */
	bool split = v->base == 0 && v->offset == 0 && (v->ep->peer->caps & PLX_DEV_PUT) != 0 &&
		(v->list == NULL || v->list->len == v->copy);

	if (r->scheme == PLX_RNDV_AUTO && split && place_is_near(v->ep))
		split = false;
	if (r->scheme != PLX_RNDV_GET && split && v->copy >= r->split_min &&
		r->schemes->start[RNDV_SPLIT](r, req) == 0)
		return 0;
	return r->schemes->start[RNDV_GET](r, req);
}

/* The one place that chooses a scheme. */
static int
recv_start(struct plx_rndv *r, struct plx_req *req)
{
	const struct rndv_schemes *schemes = r->schemes;
	const struct plx_rndv_rx *v = plx_rndv_rx(req);
	const struct plx_peer *peer = v->ep->peer;
	/* A reader must be able to check that the buffer is still valid; see plx_rndv.h. */
	bool get = v->ep->connected && (peer->caps & PLX_DEV_GET) != 0 &&
		(peer->caps & PLX_DEV_SHARED) != 0;
	bool in_place = plx_req_in_place(req, peer);
	int rc;

	if (v->ep->connected && (peer->caps & PLX_DEV_KEYS) && v->rts.addr != 0 && in_place &&
		v->copy >= r->put_min && r->scheme != PLX_RNDV_FRAG && schemes->start[RNDV_PUT](r, req) == 0)
		return 0;
	/* Buffers on either side that are no memory which the other may access travel as messages:
	 * the sender packs, the receiver unpacks. */
	if (!get || !rndv_is_memory(req, peer) || r->scheme == PLX_RNDV_FRAG ||
		(r->scheme == PLX_RNDV_AUTO && v->copy <= r->frag_max) || !rndv_is_valid(v))
		return schemes->start[RNDV_PULL](r, req);
	if (likely(in_place && v->rts.addr != 0))
		return read_start(r, req);
	rc = schemes->start[RNDV_LIST](r, req);
	return rc == 0 && v->list != NULL ? read_start(r, req) : rc;
}

/* A call that posts does not copy, and does not ask the sender, as that may have to wake its thread. */
static int
recv_later(struct plx_rndv *r, struct plx_req *req)
{
	rndv_recv_start_run(r, req, RNDV_BEGIN);
	return 0;
}

unsigned
rndv_begin_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	int rc;

	rndv_batch_run(r, b);
	rndv_recv_stop_run(r, req);
	rc = recv_start(r, req);
	if (rc != 0)
		rndv_recv_end(r, req, rc);
	return 1;
}

static inline void
recv_init(struct plx_ep *ep, const struct plx_rts *rts, uint64_t base, uint64_t len, bool more, struct plx_req *req)
{
	const struct plx_rts from = *rts; /* it may lie in req */
	struct plx_rndv_rx *v = plx_rndv_rx(req);

	memset((uint8_t *)v + offsetof(struct plx_rndv_rx, ep), 0, sizeof(*v) - offsetof(struct plx_rndv_rx, ep));
	v->ep = ep;
	v->wait.since = plx_wait_clock(rte_rdtsc());
	v->rts = from;
	v->base = base;
	v->more = more;
	v->copy = len;
	v->slot = RNDV_NONE;
	v->held = RNDV_NONE;
}

static inline void
recv_begin(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	int rc = plx_ep_connect(v->ep);

	if (rc == 0 || plx_ep_may_pass(rc)) {
		plx_ep_wait(v->ep, &v->wait, PLX_CONN_NONE, recv_wait_fail);
		rc = r->later ? recv_later(r, req) : recv_start(r, req);
	}
	if (rc != 0)
		rndv_recv_end(r, req, rc);
}

void
plx_rndv_recv_part(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t base,
	uint64_t len, bool more, struct plx_req *req)
{
	recv_init(ep, rts, base, len, more, req);
	recv_begin(r, req);
}

void
plx_rndv_recv(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t len,
	const struct plx_rndv_pieces *where, struct plx_req *req)
{
	PLX_STAT_INC(r->stat.recvs);
	if (len > req->len || len == 0) {
		plx_rndv_ack(ep, rts->sreq, 0);
		plx_req_complete(req, len > req->len ? -EMSGSIZE : 0);
		return;
	}
	recv_init(ep, rts, 0, len, false, req);
	if (unlikely(where != NULL)) /* what is bad, or has no room here, is asked for */
		(void)rndv_list_take(r, req, where->data, where->len);
	recv_begin(r, req);
}

void
plx_rndv_on_list(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_list *h, const uint8_t *data,
	uint32_t len)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);
	struct plx_rndv_rx *v;
	int rc;

	if (req == NULL)
		return;
	v = plx_rndv_rx(req);
	if (v->role != RNDV_AWAIT || !v->asked || h->offset != v->base + v->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	v->asked = false;
	/* What is bad, or has no room here, can come as messages. */
	rc = rndv_list_take(r, req, data, len) == 0 ? read_start(r, req) : r->schemes->start[RNDV_PULL](r, req);
	if (rc != 0)
		rndv_recv_end(r, req, rc);
}

void
plx_rndv_on_ack(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_ack *h)
{
	struct plx_req *req = rndv_send_find_any(r, ep, h->sreq);
	int err = h->err <= 0 && h->err > -4096 ? h->err : -EIO;

	if (req == NULL)
		return;
	if (plx_rndv_tx(req)->announcing) /* for example the receiver had no room for its first piece */
		plx_ep_unpend(ep, &plx_ep_send(req)->pend);
	if (!send_outlives(r, req, err))
		rndv_send_end(r, req, err);
}

void
plx_rndv_on_cancel(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_cancel *h)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);

	if (req == NULL)
		return;
	/* The helper stopped before it said so: it has no chunk. */
	plx_rndv_rx(req)->gone = true;
	rndv_recv_end(r, req, -ECONNRESET);
}

unsigned
plx_rndv_run(struct plx_rndv *r)
{
	struct rndv_batch b;
	struct plx_req *req;
	uint32_t k;
	unsigned n = 0;

	b.n = 0;
	b.bytes = 0;
	/*
	 * A step may complete any of them and begin others, in callbacks: take the first,
	 * put it last, and keep no pointer across a step except those of the batch, which
	 * is run before.
	 */
	for (k = r->n_sends; k > 0 && (req = plx_req_of_own(TAILQ_FIRST(&r->sends))) != NULL; k--) {
		TAILQ_REMOVE(&r->sends, plx_rndv_tx(req), run);
		TAILQ_INSERT_TAIL(&r->sends, plx_rndv_tx(req), run);
		n += r->schemes->step[plx_rndv_tx(req)->role](r, req, &b);
	}
	n += rndv_batch_run(r, &b);
	for (k = r->n_recvs; k > 0 && (req = plx_req_of_own(TAILQ_FIRST(&r->recvs))) != NULL; k--) {
		TAILQ_REMOVE(&r->recvs, plx_rndv_rx(req), run);
		TAILQ_INSERT_TAIL(&r->recvs, plx_rndv_rx(req), run);
		n += r->schemes->step[plx_rndv_rx(req)->role](r, req, &b);
	}
	return n + rndv_batch_run(r, &b);
}

static const char *
send_state(const struct plx_rndv_tx *t)
{
	if (t->announcing)
		return t->msg.pend.held ? "held: too many are announced" : "the device is full";
	if (t->n_out != 0 || t->role != RNDV_IDLE || t->rreq.index != 0)
		return "data moves";
	return "no receive has matched";
}

static void
send_info(const struct plx_rndv_tx *t, struct plx_wait_info *out)
{
	bool has_tag = t->counts && !t->has_mem;

	*out = (struct plx_wait_info){.op = t->counts ? "tag_send" : NULL, .state = send_state(t),
		.tag = has_tag ? t->msg.tag : 0, .mask = has_tag ? UINT64_MAX : 0, .len = plx_req_of_own(t)->len,
		.since = plx_wait_since(&t->wait, rte_rdtsc())};
}

/* @return bytes */
static uint64_t
recv_done(const struct plx_rndv_rx *v)
{
	if (v->role != RNDV_SPLIT)
		return v->offset;
	return RTE_MIN(v->copy, ((uint64_t)v->mine + v->came) * v->chunk);
}

static void
recv_info(const struct plx_rndv_rx *v, struct plx_wait_info *out)
{
	struct plx_req *req = plx_req_of_own(v);
	bool has_tag = (atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_RECV) != 0;

	*out = (struct plx_wait_info){.op = has_tag ? "tag_recv" : "recv", .state = "data moves",
		.tag = has_tag ? v->info[0] : 0, .mask = has_tag ? UINT64_MAX : 0, .len = v->copy, .done = recv_done(v),
		.since = plx_wait_since(&v->wait, rte_rdtsc())};
}

bool
plx_rndv_wait_info(const struct plx_wait *w, struct plx_wait_info *out)
{
	if (w->fail == send_wait_fail)
		send_info(container_of(w, struct plx_rndv_tx, wait), out);
	else if (w->fail == recv_wait_fail)
		recv_info(container_of(w, struct plx_rndv_rx, wait), out);
	else
		return rndv_of(w->list->ep)->schemes->loan_info(w, out);
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv.c - announce, choose how the data moves, acknowledge
 *
 * Design notes
 * A request that a peer will answer has a name (plx_wire_id) and stands in its
 * ep's list of waits. An answer is believed only if its name is in use and the
 * request belongs to the ep it came from.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_common.h>

#include "rndv_int.h"

const struct plx_stat_row plx_rndv_stat_rows[] = {
	PLX_STAT_ROW(struct plx_rndv_stat, sends),
	PLX_STAT_ROW(struct plx_rndv_stat, recvs),
	PLX_STAT_ROW(struct plx_rndv_stat, get),
	PLX_STAT_ROW(struct plx_rndv_stat, split),
	PLX_STAT_ROW(struct plx_rndv_stat, frag),
	PLX_STAT_ROW(struct plx_rndv_stat, put),
	PLX_STAT_ROW(struct plx_rndv_stat, bytes_own),
	PLX_STAT_ROW(struct plx_rndv_stat, bytes_help),
	PLX_STAT_ROW(struct plx_rndv_stat, drop_bad_id),
	PLX_STAT_ROW(struct plx_rndv_stat, drop_bad_range),
	PLX_STAT_ROW(struct plx_rndv_stat, taken_back),
	PLX_STAT_ROW(struct plx_rndv_stat, asked_again),
	PLX_STAT_ROW(struct plx_rndv_stat, errors),
	PLX_STAT_END,
};

void
plx_rndv_open(struct plx_rndv *r, const struct plx_conf *conf)
{
	memset(r, 0, sizeof(*r));
	TAILQ_INIT(&r->recvs);
	TAILQ_INIT(&r->sends);
	r->scheme = plx_conf_u64(conf, PLX_CONF_RNDV_SCHEME);
	r->chunk = plx_conf_u64(conf, PLX_CONF_RNDV_CHUNK);
	r->split_min = plx_conf_u64(conf, PLX_CONF_RNDV_SPLIT_MIN);
	r->frag_max = plx_conf_u64(conf, PLX_CONF_RNDV_FRAG_MAX);
	r->put_min = plx_conf_u64(conf, PLX_CONF_RNDV_PUT_MIN);
	r->gen = 1;
}

void
plx_rndv_close(struct plx_rndv *r)
{
	plx_req_ids_close(&r->ids);
}

void
rndv_send_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role)
{
	rndv_send_stop_run(r, req);
	req->send.role = role;
	req->send.on_run = true;
	r->n_sends++;
	req->send.ep->eps->quiet = false;
	TAILQ_INSERT_TAIL(&r->sends, req, send.run);
}

void
rndv_send_stop_run(struct plx_rndv *r, struct plx_req *req)
{
	if (!req->send.on_run)
		return;
	TAILQ_REMOVE(&r->sends, req, send.run);
	r->n_sends--;
	req->send.on_run = false;
	req->send.role = RNDV_IDLE;
}

void
rndv_recv_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role)
{
	req->recv.rndv.role = role;
	req->recv.rndv.on_run = true;
	r->n_recvs++;
	req->recv.rndv.ep->eps->quiet = false;
	TAILQ_INSERT_TAIL(&r->recvs, req, recv.rndv.run);
}

void
rndv_recv_stop_run(struct plx_rndv *r, struct plx_req *req)
{
	if (!req->recv.rndv.on_run)
		return;
	TAILQ_REMOVE(&r->recvs, req, recv.rndv.run);
	r->n_recvs--;
	req->recv.rndv.on_run = false;
}

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

/* The buffer is about to be the program's again: whoever reads it is to see that behind its reads. */
static void
epoch_end(const struct plx_ep *ep)
{
	struct plx_rndv_shared *s = own_shared(ep);

	if (s == NULL)
		return;
	atomic_store_explicit(&s->epoch, plx_rndv_epoch(ep) + 1, memory_order_relaxed);
	/* pairs with the fence in rndv_is_lent(): what the program writes there comes behind the count */
	atomic_thread_fence(memory_order_release);
}

bool
rndv_is_lent(const struct plx_req_rndv *v)
{
	struct plx_rndv_shared *s = plx_peer_shared(v->ep->peer);

	/* pairs with the fence in epoch_end(): the count is looked at behind the data */
	atomic_thread_fence(memory_order_acquire);
	return s != NULL && atomic_load_explicit(&s->epoch, memory_order_relaxed) == v->rts.epoch;
}

int
rndv_ask(struct plx_rndv *r, struct plx_req *req, int err)
{
	struct plx_req_rndv *v = &req->recv.rndv;
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

static void
cancel_send(struct plx_ep *ep, struct plx_wire_id rreq, uint32_t msg_id)
{
	struct plx_wire_cancel h = {.rreq = rreq, .msg_id = msg_id};

	(void)plx_ep_tx_ctl(ep, PLX_WIRE_CANCEL, &h, sizeof(h));
}

/* A receiver that reads the buffer finds out by itself; one that waits for us has to be told. */
static void
take_back(struct plx_rndv *r, struct plx_req *req)
{
	const struct plx_req_send *s = &req->send;

	PLX_STAT_INC(r->stat.taken_back);
	if (req->dt == NULL)
		epoch_end(s->ep);
	if (s->ep->err != 0)
		return; /* it has lost us as well */
	if (s->rreq.index != 0)
		cancel_send(s->ep, s->rreq, 0);
	else if (s->announcing) /* it has some of the pieces */
		cancel_send(s->ep, (struct plx_wire_id){0}, s->msg_id);
}

/* The sender's side is complete: acknowledged, cancelled, or the peer is gone. */
void
rndv_send_end(struct plx_rndv *r, struct plx_req *req, int err)
{
	rndv_send_stop_run(r, req);
	plx_ep_wait_end(&req->send.wait);
	plx_req_id_put(&r->ids, req->send.id);
	if (err != 0)
		PLX_STAT_INC(r->stat.errors);
	if (req->send.back && req->send.announced)
		take_back(r, req);
	if (req->send.counts && !req->send.pend.held)
		plx_ep_announce_end(req->send.ep);
	plx_req_complete(req, err);
}

/* Waits know their ep only; the worker's rndv is found through the callback below. */
struct plx_rndv *
rndv_of(struct plx_ep *ep)
{
	return ep->eps->rndv;
}

/* While the device reads the buffer the request stays. @return whether it does so */
static bool
send_outlives(struct plx_rndv *r, struct plx_req *req, int err)
{
	if (req->send.n_out == 0)
		return false;
	rndv_send_stop_run(r, req);
	req->send.over = true;
	req->send.err = err;
	return true;
}

static void
send_wait_fail(struct plx_wait *w, int err)
{
	struct plx_req *req = container_of(w, struct plx_req, send.wait);

	req->send.back = true;
	if (send_outlives(rndv_of(req->send.ep), req, err))
		return;
	rndv_send_end(rndv_of(req->send.ep), req, err);
}

static void
send_pend_fail(struct plx_pend *p, int err)
{
	/* The wait fails as well, and that ends the request: nothing to do. */
	(void)p;
	(void)err;
}

static int
rts_send(struct plx_pend *p)
{
	struct plx_req *req = container_of(p, struct plx_req, send.pend);
	struct plx_wire_rts h = {.tag = req->send.tag, .len = req->len,
		.addr = req->dt == NULL ? (uintptr_t)req->buf : 0, .sreq = req->send.id,
		.epoch = plx_rndv_epoch(req->send.ep)};
	struct plx_tx tx = {.peer = req->send.ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_RTS};

	return plx_rndv_announced(req, plx_peer_tx(&tx));
}

static int
sync_send(struct plx_pend *p)
{
	struct plx_req *req = container_of(p, struct plx_req, send.pend);
	struct plx_wire_sync h = {.tag = req->send.tag, .sreq = req->send.id};
	struct plx_tx tx = {.peer = req->send.ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_SYNC};

	if (unlikely(req->len >= req->send.ep->eager_end)) /* not any more */
		return rts_send(p);
	plx_req_tx(req, &tx, 0, req->len);
	return plx_rndv_announced(req, plx_peer_tx(&tx));
}

static int
send_init(struct plx_rndv *r, struct plx_req *req, int (*send)(struct plx_pend *p), bool tagged)
{
	int rc = plx_req_id_get(&r->ids, req, &req->send.id);

	if (rc != 0)
		return rc;
	req->send.on_run = false;
	req->send.announced = false;
	req->send.announcing = true;
	req->send.offset = 0;
	req->send.n_out = 0;
	req->send.over = false;
	req->send.back = false;
	req->send.role = RNDV_IDLE;
	req->send.rreq.index = 0;
	req->send.pend.conn_id = req->send.conn_id;
	req->send.pend.send = send;
	req->send.pend.fail = send_pend_fail;
	req->send.counts = tagged;
	return 0;
}

static int
send_as(struct plx_rndv *r, struct plx_req *req, int (*send)(struct plx_pend *p), bool tagged)
{
	struct plx_ep *ep = req->send.ep;
	int rc;

	rc = plx_ep_connect(ep);
	if (rc == 0)
		rc = send_init(r, req, send, tagged);
	if (rc != 0)
		return rc;
	rndv_split_place(ep);
	if (!tagged || plx_ep_announce(ep, &req->send.pend)) {
		rc = plx_ep_open(ep) ? send(&req->send.pend) : -EAGAIN;
		if (rc == -EAGAIN)
			plx_ep_pend(ep, &req->send.pend);
	}
	if (rc != 0 && rc != -EAGAIN) {
		plx_req_id_put(&r->ids, req->send.id);
		if (tagged)
			plx_ep_announce_end(ep);
		return rc;
	}
	plx_ep_wait(ep, &req->send.wait, req->send.conn_id, send_wait_fail);
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
	struct plx_ep *ep = req->send.ep;
	int rc = send_init(r, req, rts_send, true);

	if (rc != 0)
		return rc;
	rndv_split_place(ep);
	if (plx_ep_announce_early(ep, &req->send.pend)) {
		rc = rts_send(&req->send.pend);
		if (rc != 0 && rc != -EAGAIN) { /* it is failed as what it was */
			plx_req_id_put(&r->ids, req->send.id);
			plx_ep_announce_end(ep);
			plx_req_complete(req, rc);
			return 0;
		}
	}
	plx_ep_wait(ep, &req->send.wait, req->send.conn_id, send_wait_fail);
	PLX_STAT_INC(r->stat.sends);
	return rc;
}

int
plx_rndv_send_sync(struct plx_rndv *r, struct plx_req *req)
{
	return send_as(r, req, sync_send, true);
}

void
plx_rndv_ack(struct plx_ep *ep, struct plx_wire_id sreq, int err)
{
	struct plx_wire_ack h = {.sreq = sreq, .err = err};

	/* When this can't be sent the peer is gone, and so is its interest. */
	(void)plx_ep_tx_ctl(ep, PLX_WIRE_ACK, &h, sizeof(h));
}

void
rndv_recv_end(struct plx_rndv *r, struct plx_req *req, int err)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	struct plx_ep *ep = v->ep;
	struct plx_wire_id sreq = v->rts.sreq;
	/* A receiver that fails still lets the sender go. */
	bool ack = err != 0 ? !v->gone : !v->more && !v->done;
	bool later = plx_req_is_told_later(req);

	rndv_recv_stop_run(r, req);
	rndv_split_stop(req);
	plx_ep_wait_end(&v->wait);
	rndv_put_stop(req, err != 0);
	if (v->id.index != 0)
		plx_req_id_put(&r->ids, v->id);
	if (err != 0)
		PLX_STAT_INC(r->stat.errors);
	/* Whom the acknowledgement wakes may take this core, and our application waits as well: it is told first. */
	if (later)
		plx_req_complete(req, err);
	if (ack)
		plx_rndv_ack(ep, sreq, err);
	if (!later)
		plx_req_complete(req, err);
}

static void
recv_wait_fail(struct plx_wait *w, int err)
{
	struct plx_req *req = container_of(w, struct plx_req, recv.rndv.wait);

	rndv_recv_end(rndv_of(req->recv.rndv.ep), req, err);
}

/* The one place that chooses a scheme. */
static int
recv_start(struct plx_rndv *r, struct plx_req *req)
{
	const struct plx_req_rndv *v = &req->recv.rndv;
	const struct plx_peer *peer = v->ep->peer;
	/* Who reads must be able to tell that the buffer is still lent; see plx_rndv.h. */
	bool get = v->ep->connected && (peer->caps & PLX_DEV_GET) != 0 &&
		(peer->caps & PLX_DEV_SHARED) != 0;
	/* A helper copies from the beginning of its buffer. */
	bool split = get && v->base == 0 && (peer->caps & PLX_DEV_PUT);

	if (v->ep->connected && (peer->caps & PLX_DEV_KEYS) && v->rts.addr != 0 && req->dt == NULL &&
		v->copy >= r->put_min && r->scheme != PLX_RNDV_FRAG && rndv_put_start(r, req) == 0)
		return 0;
	/* Pieces on either side travel as messages: the sender packs, the receiver unpacks. */
	if (!get || v->rts.addr == 0 || req->dt != NULL || r->scheme == PLX_RNDV_FRAG ||
		(r->scheme == PLX_RNDV_AUTO && v->copy <= r->frag_max) || !rndv_is_lent(v))
		return rndv_frag_start(r, req);
	if (r->scheme == PLX_RNDV_AUTO && split && rndv_split_is_near(v->ep))
		split = false;
	if (r->scheme != PLX_RNDV_GET && split && v->copy >= r->split_min &&
		rndv_split_start(r, req) == 0)
		return 0;
	return rndv_get_start(r, req);
}

void
plx_rndv_recv(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t len,
	struct plx_req *req)
{
	PLX_STAT_INC(r->stat.recvs);
	if (len > req->len || len == 0) {
		plx_rndv_ack(ep, rts->sreq, 0);
		plx_req_complete(req, len > req->len ? -EMSGSIZE : 0);
		return;
	}
	plx_rndv_recv_part(r, ep, rts, 0, len, false, req);
}

void
plx_rndv_recv_part(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t base,
	uint64_t len, bool more, struct plx_req *req)
{
	const struct plx_rts from = *rts; /* it may lie in req */
	struct plx_req_rndv *v = &req->recv.rndv;
	int rc;

	memset(v, 0, sizeof(*v));
	v->ep = ep;
	v->rts = from;
	v->base = base;
	v->more = more;
	v->copy = len;
	v->slot = RNDV_NONE;
	v->held = RNDV_NONE;
	v->redo = RNDV_NONE;
	rc = plx_ep_connect(ep);
	if (rc == 0 || plx_ep_may_pass(rc)) {
		plx_ep_wait(ep, &v->wait, PLX_CONN_NONE, recv_wait_fail);
		rc = recv_start(r, req);
	}
	if (rc != 0)
		rndv_recv_end(r, req, rc);
}

/* A send of ours that this ep may end, or NULL. */
static struct plx_req *
send_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id)
{
	struct plx_req *req = plx_req_id_find(&r->ids, id);

	if (req == NULL || (atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_RECV) ||
		req->send.ep != ep || !req->send.announced || req->send.over) {
		PLX_STAT_INC(r->stat.drop_bad_id);
		return NULL;
	}
	return req;
}

struct plx_req *
rndv_send_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id)
{
	struct plx_req *req = send_find(r, ep, id);

	if (req == NULL || !req->send.announcing)
		return req;
	PLX_STAT_INC(r->stat.drop_bad_id);
	return NULL;
}

struct plx_req *
rndv_recv_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id)
{
	struct plx_req *req = plx_req_id_find(&r->ids, id);

	if (req == NULL ||
		(atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_RECV) == 0 ||
		req->recv.rndv.ep != ep) {
		PLX_STAT_INC(r->stat.drop_bad_id);
		return NULL;
	}
	return req;
}

void
plx_rndv_on_ack(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_ack *h)
{
	struct plx_req *req = send_find(r, ep, h->sreq);
	int err = h->err <= 0 && h->err > -4096 ? h->err : -EIO;

	if (req == NULL)
		return;
	if (req->send.announcing) /* the receiver had no room for its first piece, say */
		plx_ep_unpend(ep, &req->send.pend);
	if (!send_outlives(r, req, err))
		rndv_send_end(r, req, err);
}

void
plx_rndv_on_help(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_help *h)
{
	struct plx_req *req = rndv_send_find(r, ep, h->sreq);

	if (req == NULL)
		return;
	if (req->send.n_out != 0 || req->dt != NULL || h->len > req->len || h->chunk < 4096 ||
		h->len / h->chunk >= UINT16_MAX ||
		h->slot >= plx_rndv_n_cursors(ep->peer->q->shared_len) ||
		plx_peer_shared(ep->peer) == NULL) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return; /* the receiver does it alone */
	}
	req->send.rreq = h->rreq;
	req->send.help.addr = h->addr;
	req->send.help.len = h->len;
	req->send.help.slot = h->slot;
	req->send.help.gen = h->gen;
	req->send.help.chunk = h->chunk;
	req->send.help.failed = RNDV_NONE;
	rndv_send_start_run(r, req, RNDV_HELP);
}

void
plx_rndv_on_help_end(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_help_end *h)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);

	if (req == NULL)
		return;
	if ((req->recv.rndv.role != RNDV_SPLIT && req->recv.rndv.role != RNDV_DRAIN) ||
		h->chunk >= req->recv.rndv.n_chunks)
		PLX_STAT_INC(r->stat.drop_bad_range);
	else
		req->recv.rndv.redo = h->chunk;
}

struct plx_req *
rndv_send_asked(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id sreq,
	struct plx_wire_id rreq)
{
	struct plx_req *req = rndv_send_find(r, ep, sreq);

	if (req == NULL && rreq.index != 0) /* it was taken back, most likely, and rreq waits */
		cancel_send(ep, rreq, 0);
	return req;
}

/* The receiver has read everything and wonders whether it may believe it. */
static void
answer_lent(struct plx_ep *ep, const struct plx_wire_pull *pull)
{
	struct plx_wire_data h = {.rreq = pull->rreq, .offset = pull->offset};

	(void)plx_ep_tx_ctl(ep, PLX_WIRE_DATA, &h, sizeof(h));
}

void
plx_rndv_on_pull(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_pull *h)
{
	struct plx_req *req = rndv_send_asked(r, ep, h->sreq, h->rreq);

	if (req == NULL)
		return;
	if (rndv_send_writes(req) || h->offset > req->len || h->len > req->len - h->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	if (h->len == 0) {
		answer_lent(ep, h);
		return;
	}
	req->send.into.told = false; /* writes that end from now on end nothing */
	req->send.rreq = h->rreq;
	req->send.offset = h->offset;
	req->send.pull.end = h->offset + h->len;
	rndv_send_start_run(r, req, RNDV_PULL);
}

void
plx_rndv_on_data(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_data *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);
	struct plx_req_rndv *v;

	if (req == NULL)
		return;
	v = &req->recv.rndv;
	if (v->role == RNDV_ASK && len == 0) {
		rndv_recv_end(r, req, v->err);
		return;
	}
	if (v->role != RNDV_FRAG || h->offset != v->base + v->offset || len > v->copy - v->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	plx_req_copy_in(req, v->offset, data, len);
	v->offset += len;
	PLX_STAT_ADD(r->stat.bytes_own, len);
	if (v->offset == v->copy)
		rndv_recv_end(r, req, 0);
}

void
plx_rndv_on_cancel(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_cancel *h)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);

	if (req == NULL)
		return;
	/* Its helper stopped before it said so: nothing is in its hands. */
	req->recv.rndv.gone = true;
	rndv_recv_end(r, req, -ECONNRESET);
}

static unsigned
send_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	if (req->send.role == RNDV_HELP)
		return rndv_help_step(r, req, b);
	rndv_batch_run(r, b); /* it may end this or others */
	return req->send.role == RNDV_PUT ? rndv_put_step(r, req) : rndv_pull_step(r, req);
}

static unsigned
recv_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	switch (req->recv.rndv.role) {
	case RNDV_GET:
		return rndv_get_step(r, req, b);
	case RNDV_SPLIT:
		return rndv_split_step(r, req, b);
	default:
		return rndv_drain_step(r, req, b);
	}
}

unsigned
plx_rndv_run_slow(struct plx_rndv *r)
{
	struct rndv_batch b;
	struct plx_req *req;
	uint32_t k;
	unsigned n = 0;

	b.n = 0;
	b.bytes = 0;
	/*
	 * A step may end any of them and begin others, in callbacks: take the first, put it
	 * last, and trust no pointer across a step but those of the batch, which is run before.
	 */
	for (k = r->n_sends; k > 0 && (req = TAILQ_FIRST(&r->sends)) != NULL; k--) {
		TAILQ_REMOVE(&r->sends, req, send.run);
		TAILQ_INSERT_TAIL(&r->sends, req, send.run);
		n += send_step(r, req, &b);
	}
	n += rndv_batch_run(r, &b);
	for (k = r->n_recvs; k > 0 && (req = TAILQ_FIRST(&r->recvs)) != NULL; k--) {
		TAILQ_REMOVE(&r->recvs, req, recv.rndv.run);
		TAILQ_INSERT_TAIL(&r->recvs, req, recv.rndv.run);
		n += recv_step(r, req, &b);
	}
	return n + rndv_batch_run(r, &b);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv.c - announce, choose how the data moves, run each transfer
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

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

	return plx_rndv_announced(req, plx_peer_tx(&tx));
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

	rndv_recv_end(rndv_of(plx_rndv_rx(req)->ep), req, err);
}

/* The one place that chooses a scheme. */
static int
recv_start(struct plx_rndv *r, struct plx_req *req)
{
	const struct plx_rndv_rx *v = plx_rndv_rx(req);
	const struct plx_peer *peer = v->ep->peer;
	/* A reader must be able to check that the buffer is still valid; see plx_rndv.h. */
	bool get = v->ep->connected && (peer->caps & PLX_DEV_GET) != 0 &&
		(peer->caps & PLX_DEV_SHARED) != 0;
	/* A helper copies from the beginning of its buffer. */
	bool split = get && v->base == 0 && (peer->caps & PLX_DEV_PUT);
	bool in_place = plx_req_in_place(req, peer);

	if (v->ep->connected && (peer->caps & PLX_DEV_KEYS) && v->rts.addr != 0 && in_place &&
		v->copy >= r->put_min && r->scheme != PLX_RNDV_FRAG && rndv_put_start(r, req) == 0)
		return 0;
	/* Buffers on either side that are not contiguous, or in memory that the device does not
	 * take, travel as messages: the sender packs, the receiver unpacks. */
	if (!get || v->rts.addr == 0 || !in_place || r->scheme == PLX_RNDV_FRAG ||
		(r->scheme == PLX_RNDV_AUTO && v->copy <= r->frag_max) || !rndv_is_valid(v))
		return rndv_frag_start(r, req);
	if (r->scheme == PLX_RNDV_AUTO && split && place_is_near(v->ep))
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
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	int rc;

	memset((uint8_t *)v + offsetof(struct plx_rndv_rx, ep), 0, sizeof(*v) - offsetof(struct plx_rndv_rx, ep));
	v->ep = ep;
	v->wait.since = plx_wait_clock(rte_rdtsc());
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

static unsigned
send_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	if (plx_rndv_tx(req)->role == RNDV_HELP)
		return rndv_help_step(r, req, b);
	rndv_batch_run(r, b); /* it may complete this or other requests */
	return plx_rndv_tx(req)->role == RNDV_PUT ? rndv_put_step(r, req) : rndv_pull_step(r, req);
}

static unsigned
recv_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	switch (plx_rndv_rx(req)->role) {
	case RNDV_GET:
		return rndv_get_step(r, req, b);
	case RNDV_SPLIT:
		return rndv_split_step(r, req, b);
	default:
		return rndv_drain_step(r, req, b);
	}
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
		n += send_step(r, req, &b);
	}
	n += rndv_batch_run(r, &b);
	for (k = r->n_recvs; k > 0 && (req = plx_req_of_own(TAILQ_FIRST(&r->recvs))) != NULL; k--) {
		TAILQ_REMOVE(&r->recvs, plx_rndv_rx(req), run);
		TAILQ_INSERT_TAIL(&r->recvs, plx_rndv_rx(req), run);
		n += recv_step(r, req, &b);
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

static void
recv_info(const struct plx_rndv_rx *v, struct plx_wait_info *out)
{
	struct plx_req *req = plx_req_of_own(v);
	bool has_tag = (atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_RECV) != 0;

	*out = (struct plx_wait_info){.op = has_tag ? "tag_recv" : "recv", .state = "data moves",
		.tag = has_tag ? v->info[0] : 0, .mask = has_tag ? UINT64_MAX : 0, .len = v->copy, .done = v->offset,
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
		return false;
	return true;
}

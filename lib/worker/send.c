/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * send.c - the protocol of a message: short, eager, in fragments, or rendezvous
 */
#include <errno.h>
#include <string.h>

#include "worker_int.h"

enum send_how {
	SEND_EAGER, /* one message of the device */
	SEND_FRAGS,
	SEND_SYNC,  /* one message, answered when matched */
	SEND_RNDV,
};

/* The one place that chooses. */
static inline enum send_how
send_choose(const struct plx_ep *ep, uint64_t len, bool sync)
{
	const struct plx_peer *peer = ep->peer;

	if (len >= ep->eager_end)
		return SEND_RNDV;
	if (sync)
		return len + sizeof(struct plx_wire_sync) <= peer->mtu ? SEND_SYNC : SEND_RNDV;
	return len + sizeof(struct plx_wire_eager) <= peer->mtu ? SEND_EAGER : SEND_FRAGS;
}

enum worker_am_way
worker_am_choose(const struct plx_ep *ep, uint32_t hdr_len, uint64_t len, uint32_t how)
{
	uint64_t all = plx_am_head(hdr_len) + len;
	/* A peer that requires announcements of tagged messages accepts these at any time. */
	bool eager = hdr_len + len < ep->eps->eager_end || (how & PLX_AM_EAGER) != 0;

	if ((how & PLX_AM_RNDV) != 0 || len > WORKER_FRAGS_LEN_MAX)
		return WORKER_AM_RNDV;
	if (!eager)
		return WORKER_AM_RNDV;
	return all + sizeof(struct plx_wire_am) <= ep->peer->mtu ? WORKER_AM_WHOLE : WORKER_AM_FRAGS;
}

static inline int
eager_tx(struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	struct plx_tx tx = {.peer = ep->peer, .hdr = &tag, .hdr_len = sizeof(tag), .data = buf,
		.len = len, .op = PLX_WIRE_EAGER};

	return plx_peer_tx(&tx);
}

int
plx_worker_tag_send_long(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	int rc = likely(ep->connected) ? 0 : plx_ep_connect(ep);

	if (unlikely(rc != 0))
		return rc;
	if (!plx_ep_open(ep) || send_choose(ep, len, false) != SEND_EAGER)
		return -EAGAIN;
	rc = eager_tx(ep, buf, len, tag);
	if (likely(rc == 0))
		PLX_STAT_INC(w->stat.tag_sends);
	return rc;
}

static int
eager_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_eager h = {plx_ep_send(req)->tag};
	struct plx_tx tx = {.peer = plx_ep_send(req)->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_EAGER};
	int rc;

	if (unlikely(req->len >= plx_ep_send(req)->ep->eager_end)) /* a FLOW arrived while it was pending */
		return plx_rndv_send_instead(&worker_of(req)->rndv, req);
	plx_req_tx(req, &tx, 0, req->len);
	rc = plx_peer_tx(&tx);
	if (rc == 0)
		plx_req_complete(req, 0);
	return rc;
}

/* Send pieces until the device is full. */
static int
frags_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_wire_first first = {.tag = s->tag, .len = req->len, .msg_id = s->msg_id};
	struct plx_wire_frag frag = {.msg_id = s->msg_id};
	struct plx_tx tx = {.peer = s->ep->peer};
	int rc;

	if (unlikely(s->offset == 0 && req->len >= s->ep->eager_end))
		return plx_rndv_send_instead(&worker_of(req)->rndv, req);
	while (s->offset < req->len) {
		uint64_t left = req->len - s->offset;

		if (s->offset == 0) {
			tx.hdr = &first;
			tx.hdr_len = sizeof(first);
			tx.op = PLX_WIRE_FIRST;
		} else {
			frag.offset = s->offset;
			tx.hdr = &frag;
			tx.hdr_len = sizeof(frag);
			tx.op = PLX_WIRE_FRAG;
		}
		plx_req_tx(req, &tx, s->offset, RTE_MIN(left, s->ep->peer->mtu - tx.hdr_len));
		rc = plx_peer_tx(&tx);
		if (rc != 0)
			return rc;
		s->offset += tx.len;
	}
	plx_req_complete(req, 0);
	return 0;
}

void
worker_send_fail(struct plx_pend *p, int err)
{
	plx_req_complete(plx_req_of_own(container_of(p, struct plx_ep_send, pend)), err);
}

void
worker_frags_fail(struct plx_pend *p, int err)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_cancel h = {.msg_id = plx_ep_send(req)->msg_id};

	/* The receiver of the first piece must not wait for the last. */
	if (err == -ECANCELED && plx_ep_send(req)->offset != 0)
		(void)plx_ep_tx_ctl(plx_ep_send(req)->ep, PLX_WIRE_CANCEL, &h, sizeof(h));
	plx_req_complete(req, err);
}

void
worker_send_or_pend(struct plx_req *req, enum plx_pend_order order, int (*send)(struct plx_pend *p),
	void (*fail)(struct plx_pend *p, int err))
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc;

	plx_ep_send(req)->pend.send = send;
	plx_ep_send(req)->pend.fail = fail;
	plx_ep_send(req)->pend.conn_id = plx_ep_send(req)->conn_id;
	rc = plx_ep_open(ep) ? send(&plx_ep_send(req)->pend) : -EAGAIN;
	if (rc == -EAGAIN)
		plx_ep_pend_as(ep, &plx_ep_send(req)->pend, order);
	else if (rc != 0)
		plx_req_complete(req, rc);
}

/* Its ep is connected now. */
static void
tag_send_again(void *arg)
{
	struct plx_req *req = arg;

	worker_tag_send(worker_of(req), req,
		atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_SYNC);
}

void
worker_tag_send(struct plx_worker *w, struct plx_req *req, bool sync)
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc = plx_ep_connect(ep);

	PLX_STAT_INC(w->stat.tag_sends);
	if (rc == 0) {
		switch (send_choose(ep, req->len, sync)) {
		case SEND_EAGER:
			worker_send_or_pend(req, PLX_PEND_UNASKED, eager_send, worker_send_fail);
			break;
		case SEND_FRAGS:
			plx_ep_send(req)->offset = 0;
			plx_ep_send(req)->msg_id = ep->msg_id++;
			worker_send_or_pend(req, PLX_PEND_UNASKED, frags_send, worker_frags_fail);
			break;
		case SEND_SYNC:
			rc = plx_rndv_send_sync(&w->rndv, req);
			break;
		case SEND_RNDV:
			rc = plx_rndv_send(&w->rndv, req);
			break;
		}
	}
	if (rc == -EAGAIN)
		rc = plx_ep_defer(ep, tag_send_again, plx_req_complete, req, &plx_ep_send(req)->ep);
	if (rc != 0)
		plx_req_complete(req, rc);
}

void
worker_hold_slow(struct plx_worker *w)
{
	w->holds = true;
	for (uint32_t i = 0; i < w->n_holding; i++)
		w->holding[i]->hold = true;
}

void
worker_let_go(struct plx_worker *w)
{
	w->holds = false;
	for (uint32_t i = 0; i < w->n_holding; i++) {
		w->holding[i]->hold = false;
		if (w->holding[i]->held)
			plx_queue_flush(w->holding[i]);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_tag.c - tagged messages for the application's side: send by the protocol that fits, receive,
 * probe, cancel
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "worker_post.h"

void
plx_worker_postpone(struct plx_worker *w, struct plx_req *req)
{
	plx_req_postpone(req);
	worker_app_add(w, WORKER_APP_LATER);
}

/* @return whether it is one message of the device, sent without asking */
static inline bool
is_eager(const struct plx_ep *ep, uint64_t len)
{
	return len < ep->eager_end && len + sizeof(struct plx_wire_eager) <= ep->peer->mtu;
}

/* The one place that chooses. */
static inline enum plx_send_how
send_choose(const struct plx_ep *ep, uint64_t len, bool sync)
{
	const struct plx_peer *peer = ep->peer;

	if (len >= ep->eager_end || !plx_ep_is_eager(ep, len))
		return PLX_SEND_RNDV;
	if (sync)
		return len + sizeof(struct plx_wire_sync) <= peer->mtu ? PLX_SEND_SYNC : PLX_SEND_RNDV;
	return is_eager(ep, len) ? PLX_SEND_EAGER : PLX_SEND_FRAGS;
}

static inline int
eager_tx(struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	struct plx_tx tx = {.peer = ep->peer, .hdr = &tag, .hdr_len = sizeof(tag), .data = buf,
		.len = len, .op = PLX_WIRE_EAGER};

	return plx_peer_tx(&tx);
}

static inline int
eager_now(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	int rc;

	PLX_PROBE_SEND("tag", NULL, len, tag);
	rc = eager_tx(ep, buf, len, tag);
	if (likely(rc == 0))
		PLX_STAT_INC(w->stat.tag_sends);
	return unlikely(rc == -EAGAIN) ? (int)PLX_SEND_EAGER : rc;
}

/* The first to a peer, or one that is no single message, or waits behind others. */
static __rte_noinline int
send_connected(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	int rc = plx_ep_connect(ep);
	enum plx_send_how how;

	if (unlikely(rc != 0))
		return rc;
	how = send_choose(ep, len, false);
	return how == PLX_SEND_EAGER && plx_ep_open(ep) ? eager_now(w, ep, buf, len, tag) : (int)how;
}

int
plx_worker_tag_send_long(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	if (likely(plx_ep_open(ep) && is_eager(ep, len)))
		return eager_now(w, ep, buf, len, tag);
	return send_connected(w, ep, buf, len, tag);
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

/* Not chosen yet. */
static enum plx_send_how
req_how(struct plx_req *req)
{
	uint8_t flags = atomic_load_explicit(&req->flags, memory_order_relaxed);

	return flags & PLX_REQ_SYNC ? PLX_SEND_ANY_SYNC : PLX_SEND_ANY;
}

static void tag_send(struct plx_worker *w, struct plx_req *req, enum plx_send_how how);

/* Its ep is connected now. */
static void
tag_send_again(void *arg)
{
	struct plx_req *req = arg;

	tag_send(worker_of(req), req, req_how(req));
}

static void
tag_send(struct plx_worker *w, struct plx_req *req, enum plx_send_how how)
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc = 0;

	PLX_STAT_INC(w->stat.tag_sends);
	PLX_PROBE_SEND("tag", req, req->len, plx_ep_send(req)->tag);
	if (how == PLX_SEND_ANY || how == PLX_SEND_ANY_SYNC) {
		rc = plx_ep_connect(ep);
		if (rc == 0)
			how = send_choose(ep, req->len, how == PLX_SEND_ANY_SYNC);
	}
	if (rc == 0) {
		switch (how) {
		case PLX_SEND_EAGER:
			worker_send_or_pend(req, PLX_PEND_UNASKED, eager_send, worker_send_fail);
			break;
		case PLX_SEND_FRAGS:
			plx_ep_send(req)->offset = 0;
			plx_ep_send(req)->msg_id = ep->msg_id++;
			worker_send_or_pend(req, PLX_PEND_UNASKED, frags_send, worker_frags_fail);
			break;
		case PLX_SEND_SYNC:
			rc = plx_rndv_send_sync(&w->rndv, req);
			break;
		default: /* PLX_SEND_RNDV */
			rc = plx_rndv_send(&w->rndv, req);
			break;
		}
	}
	if (rc == -EAGAIN)
		rc = plx_ep_defer(ep, tag_send_again, plx_req_complete, req, &plx_ep_send(req)->ep);
	if (rc != 0)
		plx_req_complete(req, rc);
}

static void
tag_send_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_ep *ep = plx_ep_send(req)->ep;

	tag_send(worker_of(req), req, req_how(req));
	if (!ep->stub)
		worker_look_quick(ep);
}

void
plx_worker_tag_send(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag, enum plx_send_how how, struct plx_req *req)
{
	req->buf = (void *)(uintptr_t)buf;
	req->len = len;
	plx_ep_send(req)->ep = user->ep;
	plx_ep_send(req)->conn_id = user->conn_id;
	plx_ep_send(req)->tag = tag;
	if (how == PLX_SEND_ANY_SYNC)
		plx_req_flag(req, PLX_REQ_SYNC);
	if (!worker_submit(w, tag_send_run, req))
		tag_send(w, req, how);
}

static inline void
tag_recv(struct plx_worker *w, struct plx_req *req, uint64_t tag, uint64_t mask)
{
	struct plx_tag_msg *m = plx_tag_find(w->tag, tag, mask);

	PLX_STAT_INC(w->stat.tag_recvs);
	if (m != NULL) {
		PLX_PROBE_MATCH(req, m->tag);
		plx_tag_take(w->tag, m);
		worker_recv_msg(w, container_of(m, struct plx_msg, tag), req);
		return;
	}
	req->posted = true;
	plx_tag_post(w->tag, &req->recv.tag, tag, mask);
	if (unlikely(w->offloads))
		plx_offload_post(&w->offload, req);
}

/* Travels to the owner of a receive, in the message itself. */
struct recv_post {
	struct plx_worker *w;
	struct plx_req *req;
	uint64_t tag, mask;
};
_Static_assert(sizeof(struct recv_post) <= PLX_INBOX_BODY, "a receive fits a cell");

static void
recv_post_run(void *arg)
{
	const struct recv_post *v = arg;

	tag_recv(v->w, v->req, v->tag, v->mask);
}

/*
 * Waking a reactor takes microseconds. One that sleeps without unexpected messages need not
 * know of a receive before a message comes, which wakes it.
 */
static inline void
recv_cell_post(struct plx_worker *w, struct plx_inbox_cell *c, uint64_t pos)
{
	/* while it slept the count did not change; when awake it looks here before it sleeps */
	if (worker_cell_give(w, c, pos) && unlikely(plx_reactor_sleeps(&w->poller)) &&
		__atomic_load_n(&plx_tag_stats(w->tag)->kept, __ATOMIC_RELAXED) != 0)
		plx_reactor_wake(&w->poller);
}

void
plx_worker_tag_recv_posted(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	struct recv_post *v;
	struct plx_inbox_cell *c;
	uint64_t pos;

	req->buf = buf;
	req->len = len;
	c = worker_cell(w, &pos);
	c->fn = recv_post_run;
	c->has_body = true;
	v = (struct recv_post *)c->body;
	v->w = w;
	v->req = req;
	v->tag = tag;
	v->mask = mask;
	recv_cell_post(w, c, pos);
	worker_leave_long(w, len);
}

/* Separate, so that inline a receive saves no registers for it. */
static __rte_noinline void
recv_submit(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	bool later;

	/* The owner's fields of the request stay in its cache. */
	plx_req_flag(req, PLX_REQ_RECV);
	if (unlikely(!worker_begin(w))) {
		plx_worker_tag_recv_posted(w, buf, len, tag, mask, req);
		return;
	}
	req->buf = buf;
	req->len = len;
	later = plx_rndv_later(&w->rndv, true);
	tag_recv(w, req, tag, mask);
	(void)plx_rndv_later(&w->rndv, later);
	worker_end(w, false);
	worker_leave_long(w, len);
}

void
plx_worker_tag_recv(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	if (unlikely(w->dedicated)) {
		recv_submit(w, buf, len, tag, mask, req);
		return;
	}
	worker_recv_init(req, buf, len);
	tag_recv(w, req, tag, mask);
}

struct recv_now_arg {
	struct plx_worker *w;
	struct plx_req *req;
	uint64_t tag, mask;
	struct plx_msg *msg; /* one that a probe has removed; NULL: by tag */
	int rc;
};

static void
recv_now_run(void *arg)
{
	struct recv_now_arg *a = arg;
	struct plx_tag_msg *m = a->msg == NULL ? plx_tag_find(a->w->tag, a->tag, a->mask) : &a->msg->tag;
	struct plx_msg *msg;

	a->rc = -EAGAIN;
	if (m == NULL)
		return;
	msg = container_of(m, struct plx_msg, tag);
	if (msg->kind == PLX_MSG_RTS || msg->is_partial)
		return; /* it stays in its place */
	PLX_PROBE_MATCH(NULL, m->tag);
	if (a->msg == NULL) {
		plx_tag_take(a->w->tag, m);
		PLX_STAT_INC(a->w->stat.tag_recvs);
	}
	a->req->recv.info_tag = m->tag;
	a->req->recv.info_len = msg->len;
	a->rc = worker_take_msg(a->w, msg, a->req);
}

int
plx_worker_tag_recv_now(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	struct recv_now_arg a = {w, req, tag, mask, NULL, 0};

	worker_recv_init(req, buf, len);
	plx_worker_call(w, recv_now_run, &a);
	return a.rc;
}

int
plx_worker_msg_recv_now(struct plx_worker *w, struct plx_msg *msg, void *buf, uint64_t len,
	struct plx_req *req)
{
	struct recv_now_arg a = {w, req, 0, 0, msg, 0};

	worker_recv_init(req, buf, len);
	plx_worker_call(w, recv_now_run, &a);
	return a.rc;
}

struct probe_arg {
	struct plx_worker *w;
	uint64_t tag, mask;
	bool take;
	struct plx_probe *out;
};

static void
probe_run(void *arg)
{
	struct probe_arg *a = arg;
	struct plx_tag_msg *m = plx_tag_find(a->w->tag, a->tag, a->mask);
	struct plx_msg *msg;

	a->out->msg = NULL;
	if (m == NULL)
		return;
	msg = container_of(m, struct plx_msg, tag);
	a->out->msg = msg;
	a->out->tag = m->tag;
	a->out->len = msg->len;
	if (a->take) {
		plx_tag_take(a->w->tag, m);
		msg->taken = true;
	}
}

void
plx_worker_tag_probe(struct plx_worker *w, uint64_t tag, uint64_t mask, bool take,
	struct plx_probe *out)
{
	struct probe_arg a = {w, tag, mask, take, out};

	out->msg = NULL;
	if (likely(!w->dedicated))
		probe_run(&a);
	else if (__atomic_load_n(&plx_tag_stats(w->tag)->kept, __ATOMIC_RELAXED) != 0) /* relaxed: or a moment later */
		plx_worker_call(w, probe_run, &a);
}

static void
msg_recv_run(void *arg)
{
	struct plx_req *req = arg;

	worker_recv_msg(worker_of(req), req->recv.msg, req);
}

void
plx_worker_msg_recv(struct plx_worker *w, struct plx_msg *msg, void *buf, uint64_t len,
	struct plx_req *req)
{
	worker_recv_init(req, buf, len);
	req->recv.msg = msg;
	if (!worker_submit(w, msg_recv_run, req))
		msg_recv_run(req);
}

/* It is posted, and in the matching engine only. */
void
worker_cancel_recv(struct plx_req *req)
{
	req->posted = false;
	plx_tag_cancel(worker_of(req)->tag, &req->recv.tag);
	req->recv.info_tag = 0;
	req->recv.info_len = 0;
	plx_req_complete(req, -ECANCELED);
}

static void
cancel_run(void *arg)
{
	struct plx_req *req = arg;

	if (!req->posted)
		return;
	if (req->offload != 0 && plx_offload_cancel(&worker_of(req)->offload, req))
		return; /* its device answers */
	worker_cancel_recv(req);
}

void
plx_worker_cancel(struct plx_worker *w, struct plx_req *req)
{
	/* Waited for: the request may be freed as soon as this returns. Inline its callback
	 * has run by then. */
	if (w->dedicated)
		plx_worker_call(w, cancel_run, req);
	else
		cancel_run(req);
}

static void
ep_cancel_run(void *arg)
{
	const struct plx_ep_user *user = arg;

	plx_ep_cancel(user->ep, user->conn_id, -ECANCELED);
}

void
plx_worker_ep_cancel(struct plx_worker *w, const struct plx_ep_user *user)
{
	plx_worker_call(w, ep_cancel_run, (void *)(uintptr_t)user);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_tag.c - tagged messages for the application's side: send, receive, probe, cancel
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <rte_pause.h>

#include "worker_post.h"

void
plx_worker_postpone(struct plx_worker *w, struct plx_req *req)
{
	plx_req_postpone(req);
	worker_app_add(w, WORKER_APP_LATER);
}

static void
tag_send_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_ep *ep = plx_ep_send(req)->ep;

	worker_tag_send(worker_of(req), req,
		atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_SYNC);
	if (!ep->stub)
		worker_look_quick(ep);
}

void
plx_worker_tag_send(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag, bool sync, struct plx_req *req)
{
	req->buf = (void *)(uintptr_t)buf;
	req->len = len;
	plx_ep_send(req)->ep = user->ep;
	plx_ep_send(req)->conn_id = user->conn_id;
	plx_ep_send(req)->tag = tag;
	if (sync)
		plx_req_flag(req, PLX_REQ_SYNC);
	if (!worker_submit(w, tag_send_run, req))
		worker_tag_send(w, req, sync);
}

static inline void
tag_recv(struct plx_worker *w, struct plx_req *req, uint64_t tag, uint64_t mask)
{
	struct plx_tag_msg *m = plx_tag_find(w->tag, tag, mask);

	PLX_STAT_INC(w->stat.tag_recvs);
	if (m != NULL) {
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
	/* The owner's fields of the request stay in its cache. */
	plx_req_flag(req, PLX_REQ_RECV);
	if (unlikely(!worker_begin(w))) {
		plx_worker_tag_recv_posted(w, buf, len, tag, mask, req);
		return;
	}
	req->buf = buf;
	req->len = len;
	tag_recv(w, req, tag, mask);
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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_stream.c - streams for the application's side
 */
#include <errno.h>

#include "worker_int.h"

int
plx_worker_stream_send_now(struct plx_worker *w, struct plx_ep_user *user, const void *buf,
	uint64_t len)
{
	struct plx_stream *s = user->stream;
	int rc;

	if (unlikely(s == NULL || !user->ep->connected)) {
		rc = plx_ep_connect(user->ep);
		if (rc != 0)
			return rc;
		s = plx_stream_of(&w->streams, user);
		if (s == NULL)
			return -ENOMEM;
	}
	PLX_STAT_INC(w->streams.stat.sends);
	PLX_PROBE_SEND("stream", NULL, len, s->conn_id);
	return plx_stream_send_now(s, buf, len);
}

static void
send_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_worker *w = worker_of(req);
	struct plx_ep *ep = plx_stream_req(req)->ep;
	struct plx_stream *s;
	int rc = plx_ep_connect(ep);

	if (rc == 0) {
		s = plx_stream_get(&w->streams, ep, plx_stream_req(req)->conn_id);
		if (s != NULL)
			plx_stream_send(s, req);
		else
			rc = -ENOMEM;
	} else if (rc == -EAGAIN) {
		rc = plx_ep_defer(ep, send_run, plx_req_complete, req, &plx_stream_req(req)->ep);
	}
	if (rc != 0)
		plx_req_complete(req, rc);
}

void
plx_worker_stream_send(struct plx_worker *w, const struct plx_ep_user *user, const void *buf, uint64_t len,
	struct plx_req *req)
{
	req->buf = (void *)(uintptr_t)buf;
	req->len = len;
	plx_stream_req(req)->ep = user->ep;
	plx_stream_req(req)->conn_id = user->conn_id;
	if (!worker_submit(w, send_run, req))
		send_run(req);
}

static void
recv_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_worker *w = worker_of(req);
	struct plx_stream *s = plx_stream_of(&w->streams, plx_stream_req(req)->user);

	if (s != NULL)
		plx_stream_recv(s, req);
	else
		plx_req_complete(req, -ENOMEM);
}

static void
recv_init(struct plx_req *req, struct plx_ep_user *user, void *buf, uint64_t len, uint64_t elem,
	bool waitall)
{
	req->buf = buf;
	req->len = len;
	plx_stream_req(req)->user = user;
	plx_stream_req(req)->elem = elem;
	plx_stream_req(req)->waitall = waitall;
	plx_stream_req(req)->offset = 0;
}

void
plx_worker_stream_recv(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req)
{
	recv_init(req, user, buf, len, elem, waitall);
	if (!worker_submit(w, recv_run, req))
		recv_run(req);
}

struct lend_arg {
	struct plx_worker *w;
	struct plx_ep_user *user;
	void *data;
	uint64_t len;
	int rc;
};

static void
lend_run(void *arg)
{
	struct lend_arg *a = arg;
	struct plx_stream *s = plx_stream_of(&a->w->streams, a->user);

	a->data = s != NULL ? plx_stream_lend(s, &a->len) : NULL;
	a->rc = s == NULL ? -ENOMEM : s->err != 0 ? s->err : plx_ep_user_err(a->user);
}

int
plx_worker_stream_lend(struct plx_worker *w, struct plx_ep_user *user, void **data, uint64_t *len)
{
	struct lend_arg a = {.w = w, .user = user};

	if (likely(!w->dedicated))
		lend_run(&a);
	else
		plx_worker_call(w, lend_run, &a);
	*data = a.data;
	*len = a.len;
	return a.data == NULL ? a.rc : 0;
}

static void
return_run(void *arg)
{
	struct lend_arg *a = arg;

	if (a->user->stream != NULL)
		plx_stream_return(a->user->stream, a->data);
}

void
plx_worker_stream_return(struct plx_worker *w, struct plx_ep_user *user, void *data)
{
	struct lend_arg a = {.w = w, .user = user, .data = data};

	plx_worker_call(w, return_run, &a);
}

struct poll_arg {
	struct plx_worker *w;
	struct plx_ep_user **users;
	uint32_t n;
};

static void
poll_run(void *arg)
{
	struct poll_arg *a = arg;

	a->n = plx_stream_poll(&a->w->streams, a->users, a->n);
}

uint32_t
plx_worker_stream_poll(struct plx_worker *w, struct plx_ep_user **users, uint32_t n)
{
	struct poll_arg a = {w, users, n};

	plx_worker_call(w, poll_run, &a);
	return a.n;
}

struct recv_now_arg {
	struct plx_worker *w;
	struct plx_req *req;
	int rc;
};

static void
recv_now_run(void *arg)
{
	struct recv_now_arg *a = arg;
	struct plx_stream *s = plx_stream_of(&a->w->streams, plx_stream_req(a->req)->user);

	a->rc = s != NULL ? plx_stream_recv_now(s, a->req) : -ENOMEM;
}

int
plx_worker_stream_recv_granted(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req)
{
	struct recv_now_arg a = {w, req, -EAGAIN};
	/* in a forked child there is no reactor */
	enum plx_gate_pass pass = w->dedicated ? plx_worker_begin(w) : PLX_GATE_NOT;

	if (pass == PLX_GATE_NOT)
		return -EAGAIN;
	recv_init(req, user, buf, len, elem, waitall);
	if (plx_req_pool_is_told(&w->reqs))
		recv_now_run(&a);
	plx_worker_end(w, pass, false);
	return a.rc;
}

int
plx_worker_stream_recv_now(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req)
{
	struct recv_now_arg a = {w, req, 0};

	recv_init(req, user, buf, len, elem, waitall);
	plx_worker_call(w, recv_now_run, &a);
	return a.rc;
}

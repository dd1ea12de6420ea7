/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream.c - streams for the application's side
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
		s = plx_stream_of(&w->streams, user, user->ep);
		if (s == NULL)
			return -ENOMEM;
	}
	PLX_STAT_INC(w->streams.stat.sends);
	return plx_stream_send_now(s, buf, len);
}

/*
 * The stream of a handle, or NULL and req waits until the handle is connected, or has
 * ended with the reason why that will not be.
 */
static struct plx_stream *
stream_or_defer(struct plx_req *req, void (*run)(void *req))
{
	struct plx_ep *ep = req->stream.ep;
	struct plx_stream *s = NULL;
	int rc = 0;

	if (req->stream.user->stream == NULL && ep->stub) {
		rc = plx_ep_connect(ep);
		if (rc == -EAGAIN)
			rc = plx_ep_defer(ep, run, req, &req->stream.ep);
	} else {
		s = plx_stream_of(&worker_of(req)->streams, req->stream.user, ep);
		rc = s != NULL ? 0 : -ENOMEM;
	}
	if (rc != 0)
		plx_req_complete(req, rc);
	return s;
}

static void
send_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_stream *s = stream_or_defer(req, send_run);
	int rc;

	if (s == NULL)
		return;
	rc = plx_ep_connect(s->ep);
	if (rc == 0)
		plx_stream_send(s, req);
	else
		plx_req_complete(req, rc);
}

void
plx_worker_stream_send(struct plx_worker *w, struct plx_ep_user *user, const void *buf, uint64_t len,
	struct plx_req *req)
{
	req->buf = (void *)(uintptr_t)buf;
	req->len = len;
	req->stream.user = user;
	req->stream.ep = user->ep;
	if (!worker_submit(w, send_run, req))
		send_run(req);
}

static void
recv_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_stream *s = stream_or_defer(req, recv_run);

	if (s != NULL)
		plx_stream_recv(s, req);
}

void
plx_worker_stream_recv(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req)
{
	req->buf = buf;
	req->len = len;
	req->stream.user = user;
	req->stream.ep = user->ep;
	req->stream.elem = elem;
	req->stream.waitall = waitall;
	req->stream.offset = 0;
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
	struct plx_stream *s;

	a->data = NULL;
	if (a->user->stream == NULL && a->user->ep->stub) {
		a->rc = plx_ep_connect(a->user->ep);
		if (a->rc == -EAGAIN)
			a->rc = 0; /* nothing can have come yet */
		return;
	}
	s = plx_stream_of(&a->w->streams, a->user, a->user->ep);
	if (s != NULL)
		a->data = plx_stream_lend(s, &a->len);
	a->rc = s == NULL ? -ENOMEM : s->err != 0 ? s->err : s->ep->err;
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

struct unread_arg {
	struct plx_worker *w;
	struct plx_ep_user *user;
	uint64_t bytes;
};

static void
unread_run(void *arg)
{
	struct unread_arg *a = arg;
	struct plx_stream *s = a->user->stream;

	if (s == NULL && !a->user->ep->stub)
		s = plx_stream_of(&a->w->streams, a->user, a->user->ep);
	a->bytes = s != NULL ? plx_stream_unread(s) : 0;
}

uint64_t
plx_worker_stream_unread(struct plx_worker *w, struct plx_ep_user *user)
{
	struct unread_arg a = {w, user, 0};

	plx_worker_call(w, unread_run, &a);
	return a.bytes;
}

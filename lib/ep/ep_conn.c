/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep_conn.c - handles that are not connected yet, or no longer: stubs
 *
 * Design notes
 * - Eps are shared by handles and belong to peers that are known by address. A client with a
 *   socket address only has no peer yet, and a handle whose other side was closed has failed
 *   though its peer is alive. In both cases the handle points to a stub (a pending ep), which is
 *   an ep for all senders: it is never open, so the fast paths skip it, and plx_ep_connect()
 *   answers for it. Nothing else has to know.
 * - An operation on a connecting stub is kept as {fn, req}; when the real ep is known its pointer
 *   is put in the request and fn is called again, in the order of the operations.
 */
#include <errno.h>

#include "ep_int.h"

void
plx_ep_stub_open(struct plx_ep_stub *s, struct plx_eps *eps, uint32_t conn_id)
{
	ep_init(&s->ep, eps);
	s->ep.stub = true;
	s->real = NULL;
	s->conn_id = conn_id;
	s->connecting = true;
	s->closed = false;
	STAILQ_INIT(&s->deferred);
	LIST_INSERT_HEAD(&eps->connecting, s, link);
}

int
plx_ep_defer(struct plx_ep *ep, void (*fn)(void *req), void (*fail)(struct plx_req *req, int err),
	struct plx_req *req, struct plx_ep **where)
{
	struct plx_ep_stub *s = (struct plx_ep_stub *)ep;
	struct plx_ep_defer *d;

	PLX_ASSERT(ep->stub && ep->err == 0);
	if (s->real != NULL) { /* the application does not know yet that it is connected */
		*where = s->real;
		fn(req);
		return 0;
	}
	d = plx_pool_get(ep->eps->defers);
	if (d == NULL)
		return -ENOMEM;
	d->fn = fn;
	d->fail = fail;
	d->req = req;
	d->where = where;
	STAILQ_INSERT_TAIL(&s->deferred, d, link);
	return 0;
}

static void
connecting_end(struct plx_ep_stub *s)
{
	if (!s->connecting)
		return;
	s->connecting = false;
	LIST_REMOVE(s, link);
}

void
plx_ep_stub_connect(struct plx_ep_stub *s, struct plx_ep *real)
{
	struct plx_ep_defer *d;

	connecting_end(s);
	real->refs++;
	/* Operations that a callback starts meanwhile join the end: real is set when the
	 * list is empty. */
	while ((d = STAILQ_FIRST(&s->deferred)) != NULL) {
		struct plx_ep_defer op = *d;

		STAILQ_REMOVE_HEAD(&s->deferred, link);
		plx_pool_put(s->ep.eps->defers, d);
		*op.where = real;
		op.fn(op.req);
	}
	s->real = real;
}

void
ep_stub_cancel(struct plx_ep_stub *s, int err)
{
	struct plx_ep_defer *d;

	while ((d = STAILQ_FIRST(&s->deferred)) != NULL) {
		struct plx_ep_defer op = *d;

		STAILQ_REMOVE_HEAD(&s->deferred, link);
		plx_pool_put(s->ep.eps->defers, d);
		op.fail(op.req, err);
	}
}

void
plx_ep_stub_fail(struct plx_ep_stub *s, int err)
{
	if (s->ep.err != 0)
		return;
	connecting_end(s);
	__atomic_store_n(&s->ep.err, err, __ATOMIC_RELAXED); /* see plx_ep_user_err() */
	ep_stub_cancel(s, err);
}

void
plx_ep_stub_close(struct plx_ep_stub *s)
{
	struct plx_ep_defer *d;

	connecting_end(s);
	while ((d = STAILQ_FIRST(&s->deferred)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->deferred, link);
		plx_pool_put(s->ep.eps->defers, d);
	}
	if (s->real != NULL)
		s->real->refs--;
	s->real = NULL;
}

/* The number of a connection in progress can be guessed: only its peer may close it. */
bool
plx_ep_stub_was_closed(const struct plx_ep_stub *s)
{
	return s->closed && s->real != NULL && s->closed_by == s->real->peer->proc;
}

struct plx_ep_stub *
plx_ep_stub_find(const struct plx_eps *eps, uint32_t conn_id)
{
	struct plx_ep_stub *s;

	LIST_FOREACH(s, &eps->connecting, link) {
		if (s->conn_id == conn_id)
			break;
	}
	return s;
}

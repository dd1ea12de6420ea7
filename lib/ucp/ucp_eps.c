/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_eps.c - the endpoints of a worker: found by their number, notified of failures
 */
#include <errno.h>
#include <stdlib.h>

#include "ucp_int.h"

static struct ucp_ep_list *
conn_list(ucp_worker_h w, const struct plx_ep *core, uint32_t conn_id)
{
	/* The ep of a handle by socket address changes, but its number does not. */
	uintptr_t key = conn_id < PLX_WIRE_CONN_ID_MIN ? (uintptr_t)core / 64 : 0;

	return &w->by_conn[(key + conn_id * 31) % UCP_EP_HASH];
}

void
ucp_ep_link(ucp_ep_h ep)
{
	LIST_INSERT_HEAD(&ep->worker->eps, ep, link);
	LIST_INSERT_HEAD(conn_list(ep->worker, ep->user.ep, ep->user.conn_id), ep, conn_link);
}

void
ucp_ep_unlink(ucp_ep_h ep)
{
	if (unlikely(ep->worker->tell_next == ep))
		ep->worker->tell_next = LIST_NEXT(ep, link);
	LIST_REMOVE(ep, link);
	LIST_REMOVE(ep, conn_link);
}

/* Whether it is what the sender's handle is connected to, or is about to be. */
static inline bool
is_answer(const struct ucp_ep *ep, const struct plx_ep *core, uint32_t conn_id)
{
	if (ep->user.conn_id != conn_id)
		return false;
	if (likely(ep->user.ep == core))
		return true;
	/* Its ACCEPT is in flight by a socket, and a message may overtake it. */
	return conn_id >= PLX_WIRE_CONN_ID_MIN && plx_ep_user_is_unmet(&ep->user) && plx_ep_user_err(&ep->user) == 0;
}

static ucp_ep_h
answer_find(ucp_worker_h w, const struct plx_ep *core, uint32_t conn_id)
{
	ucp_ep_h ep;

	LIST_FOREACH(ep, conn_list(w, core, conn_id), conn_link) {
		if (is_answer(ep, core, conn_id))
			break;
	}
	return ep;
}

bool
ucp_ep_was_closed(ucp_worker_h w, const struct plx_ep *core, uint32_t conn_id)
{
	return (conn_id >= PLX_WIRE_CONN_ID_MIN || plx_ep_user_was(core, conn_id)) &&
		answer_find(w, core, conn_id) == NULL;
}

int
ucp_ep_answer(ucp_worker_h w, struct plx_ep *core, uint32_t conn_id, ucp_ep_h *out)
{
	ucp_ep_h ep = answer_find(w, core, conn_id);
	int rc;

	if (likely(ep != NULL)) {
		*out = ep;
		return 0;
	}
	if (core == NULL)
		return -ENOMEM;
	if (conn_id >= PLX_WIRE_CONN_ID_MIN)
		return -ECANCELED; /* both sides create those; it is closed here */
	ep = calloc(1, sizeof(*ep));
	if (ep == NULL)
		return -ENOMEM;
	ep->worker = w;
	rc = plx_worker_ep_answer(w->core, core, conn_id, &ep->user);
	if (rc != 0) {
		free(ep);
		return rc;
	}
	ucp_ep_link(ep);
	*out = ep;
	return 0;
}

static void
tell_failed(ucp_ep_h ep, int err)
{
	ep->told = true;
	plx_worker_conn_settle(ep->worker->core, &ep->user);
	if (ep->err_mode != UCP_ERR_HANDLING_MODE_NONE && ep->err_cb != NULL)
		ep->err_cb(ep->err_arg, ep, ucp_status(err));
}

void
ucp_ep_tell_failed(ucp_worker_h w)
{
	bool was = plx_worker_callbacks_begin(w->core);
	ucp_ep_h ep;

	w->failed_seen = plx_worker_n_failed(w->core);
	/* A handler may close any ep, and destroy the worker. */
	for (ep = LIST_FIRST(&w->eps); ep != NULL && !w->doomed; ep = w->tell_next) {
		int err = plx_ep_user_err(&ep->user);

		w->tell_next = LIST_NEXT(ep, link);
		if (err != 0 && !ep->told)
			tell_failed(ep, err);
	}
	w->tell_next = NULL;
	plx_worker_callbacks_end(w->core, was);
}

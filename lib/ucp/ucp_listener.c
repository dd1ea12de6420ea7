/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_listener.c - listeners and the requests of clients
 */
#include <stdlib.h>

#include "ucp_int.h"

struct ucp_listener {
	struct plx_listener *core;
	ucp_worker_h worker;
	ucp_listener_conn_handler_t conn;     /* one of the two has a cb */
	ucp_listener_accept_handler_t accept;
};

/* The application requested eps, not requests. */
static void
accept_at_once(struct ucp_listener *l, ucp_conn_request_h r)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST, .conn_request = r};
	ucp_ep_h ep;

	if (ucp_ep_create(l->worker, &params, &ep) == UCS_OK)
		l->accept.cb(ep, l->accept.arg);
}

static void
on_request(struct plx_conn_req *core, void *arg)
{
	struct ucp_listener *l = arg;
	ucp_conn_request_h r = malloc(sizeof(*r));
	struct plx_conn_wish wish;

	plx_conn_req_wish(core, &wish);
	if (r == NULL || wish.err_mode > UCP_ERR_HANDLING_MODE_FAILOVER) {
		plx_worker_conn_reject(l->worker->core, core, r == NULL ? -ENOMEM : -EOPNOTSUPP);
		free(r);
		return;
	}
	r->core = core;
	r->listener = l;
	r->context = l->worker->context;
	if (l->conn.cb != NULL)
		l->conn.cb(r, l->conn.arg);
	else
		accept_at_once(l, r);
}

static ucs_status_t
listener_fill(struct ucp_listener *l, const ucp_listener_params_t *p)
{
	if (p->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER)
		l->conn = p->conn_handler;
	if (p->field_mask & UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER)
		l->accept = p->accept_handler;
	if ((p->field_mask & UCP_LISTENER_PARAM_FIELD_SOCK_ADDR) == 0 ||
		(l->conn.cb == NULL) == (l->accept.cb == NULL))
		return UCS_ERR_INVALID_PARAM;
	return UCS_OK;
}

ucs_status_t
ucp_listener_create(ucp_worker_h w, const ucp_listener_params_t *params, ucp_listener_h *listener_p)
{
	struct ucp_listener *l;
	ucs_status_t status;
	int rc;

	if (plx_worker_is_inherited(w->core))
		return UCS_ERR_CONNECTION_RESET;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return UCS_ERR_NO_MEMORY;
	l->worker = w;
	status = listener_fill(l, params);
	if (status == UCS_OK) {
		ucp_lock(w);
		rc = plx_worker_listen(w->core, params->sockaddr.addr, params->sockaddr.addrlen,
			on_request, l, &l->core);
		ucp_unlock(w);
		status = rc == -EADDRINUSE ? UCS_ERR_BUSY : ucp_status(rc);
	}
	if (status != UCS_OK) {
		free(l);
		return status;
	}
	*listener_p = l;
	return UCS_OK;
}

void
ucp_listener_destroy(ucp_listener_h l)
{
	if (plx_worker_is_inherited(l->worker->core))
		return;
	ucp_lock(l->worker);
	plx_worker_unlisten(l->core);
	ucp_unlock(l->worker);
	free(l);
}

ucs_status_t
ucp_listener_query(ucp_listener_h l, ucp_listener_attr_t *attr)
{
	if (attr->field_mask & UCP_LISTENER_ATTR_FIELD_SOCKADDR)
		return ucp_status(plx_listener_addr(l->core, &attr->sockaddr));
	return UCS_OK;
}

ucs_status_t
ucp_listener_reject(ucp_listener_h l, ucp_conn_request_h r)
{
	if (r == NULL || r->listener != l)
		return UCS_ERR_INVALID_PARAM;
	if (plx_worker_is_inherited(l->worker->core))
		return UCS_ERR_CONNECTION_RESET;
	ucp_lock(l->worker);
	plx_worker_conn_reject(l->worker->core, r->core, -ECONNREFUSED);
	ucp_unlock(l->worker);
	free(r);
	return UCS_OK;
}

ucs_status_t
ucp_conn_request_query(ucp_conn_request_h r, ucp_conn_request_attr_t *attr)
{
	struct plx_conn_wish wish;

	plx_conn_req_wish(r->core, &wish);
	if (attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR)
		attr->client_address = wish.client;
	if (attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID) {
		if (!wish.has_client_id)
			return UCS_ERR_INVALID_PARAM; /* the client did not send one */
		attr->client_id = wish.client_id;
	}
	return UCS_OK;
}

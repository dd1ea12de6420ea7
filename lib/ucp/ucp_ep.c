/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_ep.c - endpoints: create, close, flush, query
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucp_int.h"

static void
set_err_handler(ucp_ep_h ep, const ucp_ep_params_t *p)
{
	if (p->field_mask & UCP_EP_PARAM_FIELD_USER_DATA)
		ep->user_data = p->user_data;
	if (p->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) {
		ep->err_cb = p->err_handler.cb;
		ep->err_arg = p->err_handler.arg;
	}
	if (p->field_mask & UCP_EP_PARAM_FIELD_USER_DATA)
		ep->err_arg = p->user_data;
}

static void
ep_fill(ucp_ep_h ep, const ucp_ep_params_t *p)
{
	if (p->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE)
		ep->err_mode = p->err_mode;
	if ((p->field_mask & UCP_EP_PARAM_FIELD_NAME) && p->name != NULL)
		snprintf(ep->name, sizeof(ep->name), "%s", p->name);
	if (p->field_mask & UCP_EP_PARAM_FIELD_FLAGS)
		ep->user.crossed = (p->flags & UCP_EP_PARAMS_FLAGS_NO_LOOPBACK) != 0;
	set_err_handler(ep, p);
}

static ucs_status_t
open_by_address(ucp_ep_h ep, const ucp_ep_params_t *p)
{
	int rc;

	if (p->address == NULL)
		return UCS_ERR_INVALID_PARAM;
	rc = plx_worker_ep_get(ep->worker->core, p->address, &ep->user);
	return rc == -EINVAL || rc == -EFAULT ? UCS_ERR_INVALID_ADDR : ucp_status(rc);
}

static ucs_status_t
open_by_sockaddr(ucp_ep_h ep, const ucp_ep_params_t *p)
{
	struct plx_conn_params c = {.to = p->sockaddr.addr, .to_len = p->sockaddr.addrlen,
		.err_mode = ep->err_mode};

	if ((p->field_mask & UCP_EP_PARAM_FIELD_SOCK_ADDR) == 0)
		return UCS_ERR_INVALID_PARAM;
	if (p->field_mask & UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR) {
		c.local = p->local_sockaddr.addr;
		c.local_len = p->local_sockaddr.addrlen;
	}
	if (p->flags & UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID) {
		c.has_client_id = true;
		c.client_id = ep->worker->client_id;
	}
	return ucp_status(plx_worker_conn_open(ep->worker->core, &c, &ep->user));
}

/* The request is consumed, unless its parameters are invalid. */
static ucs_status_t
open_by_request(ucp_ep_h ep, const ucp_ep_params_t *p)
{
	ucp_conn_request_h r = p->conn_request;
	ucp_err_handling_mode_t mode;
	struct plx_conn_wish wish;
	int rc;

	if (r == NULL || r->context != ep->worker->context)
		return UCS_ERR_INVALID_PARAM;
	plx_conn_req_wish(r->core, &wish);
	mode = wish.err_mode;
	if ((p->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) && p->err_mode != mode)
		return UCS_ERR_UNSUPPORTED; /* both sides have the same */
	ep->err_mode = mode;
	rc = plx_worker_conn_accept(ep->worker->core, r->core, &ep->user);
	free(r);
	return ucp_status(rc);
}

static ucs_status_t
ep_open(ucp_ep_h ep, const ucp_ep_params_t *p)
{
	/* If there is more than one: in UCX's order, which programs rely on. */
	if ((p->field_mask & UCP_EP_PARAM_FIELD_FLAGS) && (p->flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER))
		return open_by_sockaddr(ep, p);
	if (p->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST)
		return open_by_request(ep, p);
	if (p->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS)
		return open_by_address(ep, p);
	return UCS_ERR_INVALID_PARAM;
}

ucs_status_t
ucp_ep_create(ucp_worker_h w, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
	ucs_status_t status;
	ucp_ep_h ep;

	if (plx_worker_is_inherited(w->core))
		return UCS_ERR_CONNECTION_RESET;
	ep = calloc(1, sizeof(*ep));
	if (ep == NULL)
		return UCS_ERR_NO_MEMORY;
	ep->worker = w;
	ep_fill(ep, params);
	ucp_lock(w);
	status = ep_open(ep, params);
	if (status == UCS_OK)
		ucp_ep_link(ep);
	if (status == UCS_OK)
		ucp_table_ep(ep);
	ucp_unlock(w);
	if (status != UCS_OK) {
		free(ep);
		return status;
	}
	*ep_p = ep;
	return UCS_OK;
}

/* The handle is invalid when this returns; the request, if any, reports the completion of
 * the close. */
static ucs_status_ptr_t
ep_close(ucp_ep_h ep, bool force, const struct ucp_post *p)
{
	ucp_worker_h w = ep->worker;
	ucs_status_ptr_t ret;
	struct plx_req *req;

	if (force && ep->err_mode == UCP_ERR_HANDLING_MODE_NONE)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	if (plx_worker_is_inherited(w->core))
		return NULL;
	ucp_lock(w);
	req = ucp_req_get(w, p, NULL);
	if (req == NULL) {
		ucp_unlock(w);
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	}
	ucp_table_ep(ep); /* of one that was not connected when it was made */
	ucp_ep_unlink(ep);
	if (ep->user.conn != NULL) {
		plx_worker_conn_close(w->core, &ep->user, force, req);
	} else {
		if (force)
			plx_worker_ep_cancel(w->core, &ep->user);
		plx_worker_flush(w->core, PLX_FLUSH_CLOSE, &ep->user, req);
		plx_worker_ep_put(w->core, &ep->user);
	}
	ret = ucp_req_posted_simple(req, p);
	ucp_unlock(w);
	free(ep);
	return ret;
}

ucs_status_ptr_t
ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);
	bool force = (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 &&
		(param->flags & UCP_EP_CLOSE_FLAG_FORCE) != 0;

	return ep_close(ep, force, &p);
}

ucs_status_ptr_t
ucp_ep_close_nb(ucp_ep_h ep, unsigned mode)
{
	struct ucp_post p = {.mask = 0};

	return ep_close(ep, mode == UCP_EP_CLOSE_MODE_FORCE, &p);
}

ucs_status_ptr_t
ucp_disconnect_nb(ucp_ep_h ep)
{
	return ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);
}

void
ucp_ep_destroy(ucp_ep_h ep)
{
	ucp_worker_h w = ep->worker;

	(void)ucp_req_wait(w, ucp_disconnect_nb(ep));
}

ucs_status_ptr_t
ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
	if (ucp_post_may_end(param) && ucp_ep_status(ep) == UCS_OK && ucp_is_flushed(ep->worker, &ep->user))
		return NULL;
	return ucp_flush_param(ep->worker, ep, param);
}

ucs_status_ptr_t
ucp_ep_flush_nb(ucp_ep_h ep, unsigned flags, ucp_send_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_send_nb, (void (*)(void))cb, 0);

	(void)flags;
	return ucp_flush(ep->worker, ep, &p);
}

ucs_status_t
ucp_ep_flush(ucp_ep_h ep)
{
	return ucp_req_wait(ep->worker, ucp_ep_flush_nb(ep, 0, NULL));
}

ucs_status_ptr_t
ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params)
{
	const uint64_t fixed = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
		UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;

	if (params->field_mask & fixed)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	ucp_lock(ep->worker);
	set_err_handler(ep, params);
	ucp_unlock(ep->worker);
	return NULL;
}

static void
query_transports(ucp_ep_h ep, ucp_transports_t *t)
{
	ucp_transport_entry_t entry = {.device_name = "memory"};
	struct plx_ep_info info;

	plx_worker_ep_info(&ep->user, &info);
	if (!info.is_known)
		t->num_entries = 0;
	if (t->num_entries == 0)
		return;
	entry.transport_name = info.device;
	if (info.port != NULL)
		entry.device_name = info.port;
	/* The caller's entry may be shorter or longer than ours. */
	memcpy(t->entries, &entry, RTE_MIN(t->entry_size, sizeof(entry)));
	t->num_entries = 1;
}

static ucs_status_t
query_addrs(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
	struct sockaddr_storage local, remote;

	if ((attr->field_mask &
		    (UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR)) == 0)
		return UCS_OK;
	if (ep->user.conn == NULL)
		return UCS_ERR_NOT_CONNECTED; /* not made through a listener */
	ucp_lock(ep->worker);
	plx_conn_addrs(ep->user.conn, &local, &remote);
	ucp_unlock(ep->worker);
	if (attr->field_mask & UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR) {
		if (local.ss_family == AF_UNSPEC)
			return UCS_ERR_NOT_CONNECTED;
		attr->local_sockaddr = local;
	}
	if (attr->field_mask & UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR)
		attr->remote_sockaddr = remote;
	return UCS_OK;
}

/*
 * Of shared memory, in a table of measured points: the latency of a message, and then its
 * bytes. Large ones move at the rate of a copy, or of two that overlap.
 */
#define PERF_LATENCY_S	  0.3e-6
#define PERF_EAGER_B_PER_S 5e9
#define PERF_RNDV_S	  2e-6
#define PERF_RNDV_B_PER_S 10e9

ucs_status_t
ucp_ep_evaluate_perf(ucp_ep_h ep, const ucp_ep_evaluate_perf_param_t *param,
	ucp_ep_evaluate_perf_attr_t *attr)
{
	double len;

	if ((param->field_mask & UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE) == 0)
		return UCS_ERR_INVALID_PARAM;
	if ((attr->field_mask & UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME) == 0)
		return UCS_OK;
	len = param->message_size;
	if (param->message_size < plx_worker_eager_end(ep->worker->core))
		attr->estimated_time = PERF_LATENCY_S + len / PERF_EAGER_B_PER_S;
	else
		attr->estimated_time = PERF_LATENCY_S + PERF_RNDV_S + len / PERF_RNDV_B_PER_S;
	return UCS_OK;
}

ucs_status_t
ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
	ucs_status_t status = query_addrs(ep, attr);

	if (status != UCS_OK)
		return status;
	if (attr->field_mask & UCP_EP_ATTR_FIELD_NAME)
		snprintf(attr->name, sizeof(attr->name), "%s", ep->name);
	if (attr->field_mask & UCP_EP_ATTR_FIELD_TRANSPORTS)
		query_transports(ep, &attr->transports);
	if (attr->field_mask & UCP_EP_ATTR_FIELD_USER_DATA)
		attr->user_data = ep->user_data;
	return UCS_OK;
}

void
ucp_ep_print_info(ucp_ep_h ep, FILE *stream)
{
	struct plx_ep_info info;

	plx_worker_ep_info(&ep->user, &info);
	if (!info.is_known) {
		fprintf(stream, "#\n# UCP endpoint %s\n#\n#              state: %s\n#\n", ep->name,
			info.err != 0 ? "failed" : "connecting");
		return;
	}
	fprintf(stream, "#\n# UCP endpoint %s\n#\n#               peer: %016llx\n"
		"#             device: %s\n#              state: %s\n#\n", ep->name,
		(unsigned long long)info.uid, info.device,
		info.err != 0 ? "failed" : info.connected ? "connected" : "new");
}

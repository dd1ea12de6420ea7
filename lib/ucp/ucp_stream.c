/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_stream.c - streams: send, receive, data in place, poll
 */
#include <errno.h>

#include "ucp_int.h"

#define POLL_BURST 32

static void
done_recv_nb(struct plx_req *req)
{
	((ucp_stream_recv_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status),
		plx_stream_got(req));
}

static void
done_recv_nbx(struct plx_req *req)
{
	((ucp_stream_recv_nbx_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status),
		plx_stream_got(req), req->cb_arg);
}

static __rte_noinline ucs_status_ptr_t
send_req(ucp_ep_h ep, struct ucp_buf *buf, const struct ucp_post *p)
{
	ucs_status_t status = ucp_ep_status(ep);
	struct plx_req *req;

	if (unlikely(status != UCS_OK))
		return ucp_req_ended(ep->worker, p, ucp_status_errno(ucp_buf_drop(buf, status)));
	req = ucp_req_get(ep->worker, p, buf);
	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	plx_worker_stream_send(ep->worker->core, &ep->user, buf->addr, buf->len, req);
	return ucp_req_posted_simple(req, p);
}

static void
forced_run(void *arg)
{
	struct ucp_forced *f = arg;

	f->rc = plx_worker_stream_send_now(f->ep->worker->core, &f->ep->user, f->addr, f->len);
}

static inline ucs_status_ptr_t
send_common(ucp_ep_h ep, struct ucp_buf *buf, const struct ucp_post *p)
{
	ucp_worker_h w = ep->worker;
	int rc;

	if (likely(!plx_worker_has_reactor(w->core) && (p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0 &&
		    buf->dt == NULL && buf->len != 0)) {
		rc = plx_worker_stream_send_now(w->core, &ep->user, buf->addr, buf->len);
		if (likely(rc == 0 && (p->mask & UCP_OP_ATTR_FIELD_REQUEST) == 0))
			return NULL;
		if (rc != -EAGAIN)
			return ucp_req_ended(w, p, rc);
	}
	if (unlikely(p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)) {
		struct ucp_forced f = {.run = forced_run, .ep = ep};

		if (buf->len == 0) /* no bytes, no message */
			return ucp_req_ended(w, p,
				ucp_status_errno(ucp_buf_drop(buf, ucp_ep_status(ep))));
		return ucp_send_forced(&f, buf, p);
	}
	return send_req(ep, buf, p);
}

static __rte_noinline ucs_status_ptr_t
send_nbx(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	status = ucp_buf_open_checked(ep->worker, param, buffer, count, false, &buf);
	if (unlikely(status != UCS_OK))
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = send_common(ep, &buf, &p);
	ucp_unlock(ep->worker);
	return ret;
}

/* The usual send calls only what cannot fail, so inline it saves no registers. */
static __rte_always_inline ucs_status_ptr_t
send_plain(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param, enum plx_gate_mode mode)
{
	ucp_worker_h w = ep->worker;
	enum plx_gate_pass pass;
	bool sent;

	if (mode == PLX_GATE_SHARED && unlikely(ucp_ep_is_odd(ep)))
		return send_nbx(ep, buffer, count, param);
	pass = ucp_begin(w, mode);
	if (mode == PLX_GATE_SHARED && pass == PLX_GATE_NOT)
		return send_nbx(ep, buffer, count, param);
	sent = plx_worker_stream_send_sure(w->core, &ep->user, buffer, count);
	ucp_end(w, mode, pass, true);
	return likely(sent) ? NULL : send_nbx(ep, buffer, count, param);
}

static __rte_noinline ucs_status_ptr_t
send_locked(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	return send_plain(ep, buffer, count, param, PLX_GATE_LOCKED);
}

static __rte_noinline ucs_status_ptr_t
send_shared(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	return send_plain(ep, buffer, count, param, PLX_GATE_SHARED);
}

/* The modes are separate, so that it saves no registers for any of them. */
ucs_status_ptr_t
ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	if (likely(ucp_post_is_plain(param, 0))) {
		if (ep->worker->mode == PLX_GATE_SINGLE)
			return send_plain(ep, buffer, count, param, PLX_GATE_SINGLE);
		if (ep->worker->mode == PLX_GATE_LOCKED)
			return send_locked(ep, buffer, count, param);
		if (!ucp_is_held(ep->worker))
			return send_shared(ep, buffer, count, param);
	}
	return send_nbx(ep, buffer, count, param);
}

ucs_status_ptr_t
ucp_stream_send_nb(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_send_callback_t cb, unsigned flags)
{
	struct ucp_post p = ucp_post_nb(ucp_done_send_nb, (void (*)(void))cb, 0);
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	if (flags != 0)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	status = ucp_buf_open(datatype, buffer, count, false, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = send_common(ep, &buf, &p);
	ucp_unlock(ep->worker);
	return ret;
}

/* Bytes that arrive together or not at all; only contiguous types have larger elements. */
static uint64_t
elem_len(ucp_datatype_t datatype)
{
	if ((datatype & UCP_DATATYPE_CLASS_MASK) != UCP_DATATYPE_CONTIG)
		return 1;
	return datatype >> UCP_DATATYPE_SHIFT;
}

static ucs_status_ptr_t
recv_now(ucp_ep_h ep, struct ucp_buf *buf, uint64_t elem, bool waitall, size_t *length,
	const struct ucp_post *p)
{
	struct plx_req own, *req = ucp_req_now(ep->worker, p, buf, &own);
	ucs_status_ptr_t ret;

	ret = ucp_req_now_end(req, plx_worker_stream_recv_now(ep->worker->core, &ep->user, buf->addr,
		buf->len, elem, waitall, req));
	if (ret == NULL)
		*length = plx_stream_got(req);
	return ret;
}

/* Receive data that is here already, while the reactor has granted its turns. @return UCS_INPROGRESS: it can't */
static __rte_noinline ucs_status_t
recv_granted(ucp_ep_h ep, const struct ucp_buf *buf, uint64_t elem, bool waitall, size_t *length)
{
	struct plx_worker *core = ep->worker->core;
	struct plx_req own;
	int rc;

	plx_worker_req_init(core, &own);
	rc = plx_worker_stream_recv_granted(core, &ep->user, buf->addr, buf->len, elem, waitall, &own);
	if (rc == 0)
		*length = plx_stream_got(&own);
	return rc == -EAGAIN ? UCS_INPROGRESS : ucp_status(rc);
}

static ucs_status_ptr_t
recv_common(ucp_ep_h ep, struct ucp_buf *buf, uint64_t elem, bool waitall, size_t *length,
	const struct ucp_post *p)
{
	struct plx_worker *core = ep->worker->core;
	bool final, may_end = (p->mask & (UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_REQUEST)) == 0;
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct plx_req *req;

	if (buf->len == 0 && may_end) {
		*length = 0;
		return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_OK));
	}
	if (p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)
		return recv_now(ep, buf, elem, waitall, length, p);
	if (ep->worker->mode == PLX_GATE_SHARED && may_end && buf->dt == NULL) {
		status = recv_granted(ep, buf, elem, waitall, length);
		if (status != UCS_INPROGRESS)
			return UCS_STATUS_PTR(status);
	}
	req = ucp_req_get(ep->worker, p, buf);
	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	plx_worker_stream_recv(core, &ep->user, buf->addr, buf->len, elem, waitall, req);
	ret = ucp_req_posted(req, p, &final);
	if (!final)
		return ret;
	if (req->status == 0)
		*length = plx_stream_got(req);
	ucp_req_drop(req);
	return ret;
}

ucs_status_ptr_t
ucp_stream_recv_nbx(ucp_ep_h ep, void *buffer, size_t count, size_t *length,
	const ucp_request_param_t *param)
{
	struct ucp_post p = ucp_post_of(param, done_recv_nbx);
	bool waitall = (p.mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 &&
		(param->flags & UCP_STREAM_RECV_FLAG_WAITALL) != 0;
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	status = ucp_buf_open_checked(ep->worker, param, buffer, count, true, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = recv_common(ep, &buf,
		p.mask & UCP_OP_ATTR_FIELD_DATATYPE ? elem_len(param->datatype) : 1, waitall, length,
		&p);
	ucp_unlock(ep->worker);
	return ret;
}

ucs_status_ptr_t
ucp_stream_recv_nb(ucp_ep_h ep, void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_stream_recv_callback_t cb, size_t *length, unsigned flags)
{
	struct ucp_post p = ucp_post_nb(done_recv_nb, (void (*)(void))cb, 0);
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	status = ucp_buf_open(datatype, buffer, count, true, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = recv_common(ep, &buf, elem_len(datatype), (flags & UCP_STREAM_RECV_FLAG_WAITALL) != 0,
		length, &p);
	ucp_unlock(ep->worker);
	return ret;
}

ucs_status_ptr_t
ucp_stream_recv_data_nb(ucp_ep_h ep, size_t *length)
{
	uint64_t len = 0;
	void *data;
	int rc;

	ucp_lock(ep->worker);
	rc = plx_worker_stream_lend(ep->worker->core, &ep->user, &data, &len);
	ucp_unlock(ep->worker);
	if (rc != 0)
		return UCS_STATUS_PTR(ucp_status(rc));
	if (data != NULL)
		*length = len;
	return data;
}

void
ucp_stream_data_release(ucp_ep_h ep, void *data)
{
	ucp_lock(ep->worker);
	plx_worker_stream_return(ep->worker->core, &ep->user, data);
	ucp_unlock(ep->worker);
}

ucs_status_t
ucp_stream_recv_request_test(void *request, size_t *length_p)
{
	struct plx_req *req = plx_req_of(request);

	if (!plx_req_is_done(req))
		return UCS_INPROGRESS;
	if (req->status == 0)
		*length_p = plx_stream_got(req);
	return ucp_status(req->status);
}

ssize_t
ucp_stream_worker_poll(ucp_worker_h w, ucp_stream_poll_ep_t *poll_eps, size_t max_eps, unsigned flags)
{
	struct plx_ep_user *users[POLL_BURST];
	size_t got = 0;
	uint32_t n;

	if (flags != 0)
		return UCS_ERR_INVALID_PARAM;
	ucp_lock(w);
	do {
		n = RTE_MIN(max_eps - got, (size_t)POLL_BURST);
		n = plx_worker_stream_poll(w->core, users, n);
		for (uint32_t i = 0; i < n; i++) {
			ucp_ep_h ep = container_of(users[i], struct ucp_ep, user);

			poll_eps[got++] = (ucp_stream_poll_ep_t){.ep = ep, .user_data = ep->user_data};
		}
	} while (n == POLL_BURST && got < max_eps);
	ucp_unlock(w);
	return got;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_tag.c - tagged sends, receives and probes, in the nb, nbr and nbx forms
 */
#include <errno.h>

#include "ucp_int.h"

/* With a request: the message has to wait, or the caller requires one. */
static __rte_noinline ucs_status_ptr_t
send_req(ucp_ep_h ep, struct ucp_buf *buf, ucp_tag_t tag, enum plx_send_how how, const struct ucp_post *p)
{
	ucs_status_t status = ucp_ep_status(ep);
	ucs_status_ptr_t ret;
	struct plx_req *req;
	bool final;

	if (unlikely(status != UCS_OK))
		return ucp_req_ended(ep->worker, p, ucp_status_errno(ucp_buf_drop(buf, status)));
	req = ucp_req_get(ep->worker, p, buf);
	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	plx_worker_tag_send(ep->worker->core, &ep->user, buf->addr, buf->len, tag, how, req);
	ret = ucp_req_posted(req, p, &final);
	if (final)
		ucp_req_drop(req);
	return ret;
}

struct forced {
	struct ucp_forced f;
	ucp_tag_t tag;
};

static void
forced_run(void *arg)
{
	struct forced *a = arg;

	a->f.rc = plx_worker_tag_send_now(a->f.ep->worker->core, a->f.ep->user.ep, a->f.addr, a->f.len,
		a->tag);
}

static __rte_noinline ucs_status_ptr_t
send_forced(ucp_ep_h ep, struct ucp_buf *buf, ucp_tag_t tag, const struct ucp_post *p)
{
	struct forced a = {{.run = forced_run, .ep = ep}, tag};

	return ucp_send_forced(&a.f, buf, p);
}

static inline ucs_status_ptr_t
send_common(ucp_ep_h ep, struct ucp_buf *buf, ucp_tag_t tag, const struct ucp_post *p)
{
	ucp_worker_h w = ep->worker;
	int rc = -EAGAIN;

	if (likely(!plx_worker_has_reactor(w->core) && (p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0 &&
		    buf->dt == NULL)) {
		rc = plx_worker_tag_try(w->core, ep->user.ep, buf->addr, buf->len, tag);
		if (likely(rc == 0 && (p->mask & UCP_OP_ATTR_FIELD_REQUEST) == 0))
			return NULL;
		if (rc <= 0 && rc != -EAGAIN)
			return ucp_req_ended(w, p, rc);
	}
	if (unlikely(p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL))
		return send_forced(ep, buf, tag, p);
	return send_req(ep, buf, tag, rc > 0 ? rc : PLX_SEND_ANY, p);
}

/* With a reactor, of any that is not plain. @return whether it is over */
static bool
send_at_once(ucp_ep_h ep, const struct ucp_buf *buf, ucp_tag_t tag, uint32_t mask)
{
	ucp_worker_h w = ep->worker;
	enum plx_gate_pass pass;
	bool sent;

	if ((mask & (UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_NO_IMM_CMPL)) != 0 || buf->dt != NULL ||
		buf->len >= PLX_WORKER_LONG_LEN || ucp_ep_is_odd(ep))
		return false;
	pass = ucp_begin(w, PLX_GATE_SHARED);
	if (pass == PLX_GATE_NOT)
		return plx_worker_tag_send_posted(w->core, &ep->user, buf->addr, buf->len, tag);
	sent = plx_worker_tag_send_now(w->core, ep->user.ep, buf->addr, buf->len, tag) == 0;
	ucp_end(w, PLX_GATE_SHARED, pass, true);
	return sent;
}

/* Send an iov of few bytes if that is possible at once. @return whether it was */
static __rte_noinline bool
send_gathered(ucp_ep_h ep, const ucp_dt_iov_t *v, size_t n, ucp_tag_t tag)
{
	ucp_worker_h w = ep->worker;
	uint8_t bytes[UCP_GATHER_MAX];
	size_t len;
	int rc;

	if (plx_worker_has_reactor(w->core) || !ucp_iov_gather(v, n, bytes, &len))
		return false;
	ucp_lock(w);
	rc = plx_worker_tag_try(w->core, ep->user.ep, bytes, len, tag);
	ucp_unlock(w);
	return rc == 0;
}

static __rte_noinline ucs_status_ptr_t
send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	uint32_t mask = param->op_attr_mask;
	ucp_worker_h w = ep->worker;
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_post p;
	struct ucp_buf buf;

	if (ucp_post_is_iov(param) && send_gathered(ep, buffer, count, tag))
		return NULL;
	status = ucp_buf_open_checked(w, param, buffer, count, false, &buf);
	if (unlikely(status != UCS_OK))
		return UCS_STATUS_PTR(status);
	if (w->mode == PLX_GATE_SHARED && send_at_once(ep, &buf, tag, mask))
		return NULL;
	p = ucp_post_of(param, ucp_done_send_nbx);
	ucp_lock(w);
	ret = send_common(ep, &buf, tag, &p);
	ucp_unlock(w);
	return ret;
}

/* A plain one that did not complete at once. @param rc as of plx_worker_tag_try() */
static __rte_noinline ucs_status_ptr_t
send_late(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param, int rc)
{
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);
	struct ucp_buf buf = {(void *)(uintptr_t)buffer, count, NULL};
	ucs_status_ptr_t ret;

	ucp_lock(ep->worker);
	if (rc == -EAGAIN || rc > 0)
		ret = send_req(ep, &buf, tag, rc > 0 ? rc : PLX_SEND_ANY, &p);
	else
		ret = ucp_req_ended(ep->worker, &p, rc);
	ucp_unlock(ep->worker);
	return ret;
}

/* The reactor is the owner. */
static __rte_noinline ucs_status_ptr_t
send_posted(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	if (likely(!ucp_ep_is_odd(ep) &&
		    plx_worker_tag_send_posted(ep->worker->core, &ep->user, buffer, count, tag)))
		return NULL;
	return send_nbx(ep, buffer, count, tag, param);
}

/* The device may refuse the message. */
static __rte_noinline ucs_status_ptr_t
send_asked(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param, enum plx_gate_pass pass)
{
	ucp_worker_h w = ep->worker;
	int rc = plx_worker_tag_send_short(w->core, ep->user.ep, buffer, count, tag);

	ucp_end(w, w->mode, pass, true);
	return likely(rc == 0) ? NULL : send_late(ep, buffer, count, tag, param, rc == -EAGAIN ? PLX_SEND_EAGER : rc);
}

static __rte_noinline ucs_status_ptr_t
send_long(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param, enum plx_gate_pass pass)
{
	ucp_worker_h w = ep->worker;
	int rc = plx_worker_tag_send_long(w->core, ep->user.ep, buffer, count, tag);

	ucp_end(w, w->mode, pass, true);
	return likely(rc == 0) ? NULL : send_late(ep, buffer, count, tag, param, rc);
}

/* The usual send calls only what cannot fail, so inline it saves no registers. */
static __rte_always_inline ucs_status_ptr_t
send_plain(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param, enum plx_gate_mode mode)
{
	ucp_worker_h w = ep->worker;
	enum plx_gate_pass pass;
	struct plx_ep *to;

	if (mode == PLX_GATE_SHARED && unlikely(count >= PLX_WORKER_LONG_LEN || ucp_ep_is_odd(ep)))
		return send_nbx(ep, buffer, count, tag, param);
	pass = ucp_begin(w, mode);
	if (mode == PLX_GATE_SHARED && pass == PLX_GATE_NOT)
		return send_posted(ep, buffer, count, tag, param);
	to = ep->user.ep;
	if (unlikely(!plx_worker_tag_is_short(to, count)))
		return send_long(ep, buffer, count, tag, param, pass);
	if (!plx_worker_is_sure(to))
		return send_asked(ep, buffer, count, tag, param, pass);
	plx_worker_tag_send_sure(w->core, to, buffer, count, tag);
	ucp_end(w, mode, pass, true);
	return NULL;
}

static __rte_noinline ucs_status_ptr_t
send_locked(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	return send_plain(ep, buffer, count, tag, param, PLX_GATE_LOCKED);
}

static __rte_noinline ucs_status_ptr_t
send_shared(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	return send_plain(ep, buffer, count, tag, param, PLX_GATE_SHARED);
}

/* The modes are separate, so that it saves no registers for any of them. */
static __rte_always_inline ucs_status_ptr_t
send_by_mode(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag, const ucp_request_param_t *param)
{
	if (ep->worker->mode == PLX_GATE_SINGLE)
		return send_plain(ep, buffer, count, tag, param, PLX_GATE_SINGLE);
	if (ep->worker->mode == PLX_GATE_LOCKED)
		return send_locked(ep, buffer, count, tag, param);
	return ucp_is_held(ep->worker) ? send_posted(ep, buffer, count, tag, param)
				       : send_shared(ep, buffer, count, tag, param);
}

/* The request is the user's, or the parameters are not plain in other ways. */
static __rte_noinline ucs_status_ptr_t
send_odd(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag, const ucp_request_param_t *param)
{
	ucs_status_ptr_t ret;

	if (unlikely(!ucp_post_is_plain(param, UCP_OP_ATTR_FIELD_REQUEST)))
		return send_nbx(ep, buffer, count, tag, param);
	ret = send_by_mode(ep, buffer, count, tag, param);
	if (likely(ret == NULL))
		ucp_req_own_ended(ep->worker, param->request, 0);
	return ret;
}

ucs_status_ptr_t
ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	if (unlikely(!ucp_post_is_plain(param, 0)))
		return send_odd(ep, buffer, count, tag, param);
	return send_by_mode(ep, buffer, count, tag, param);
}

ucs_status_ptr_t
ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param)
{
	ucp_worker_h w = ep->worker;
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_post p;
	struct ucp_buf buf;

	status = ucp_post_check(w, param);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)
		return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE); /* it must wait for the receiver */
	status = ucp_buf_open_param(w, param, buffer, count, false, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	p = ucp_post_of(param, ucp_done_send_nbx);
	ucp_lock(w);
	ret = send_req(ep, &buf, tag, PLX_SEND_ANY_SYNC, &p);
	ucp_unlock(w);
	return ret;
}

/* The forms without a ucp_request_param_t differ in p, and a synchronous send in one word. */
static inline ucs_status_ptr_t
send_typed(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype, ucp_tag_t tag,
	bool sync, const struct ucp_post *p)
{
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	if ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV && !sync &&
		(p->mask & UCP_OP_ATTR_FIELD_REQUEST) == 0 && send_gathered(ep, buffer, count, tag))
		return NULL;
	status = ucp_buf_open(datatype, buffer, count, false, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = sync ? send_req(ep, &buf, tag, PLX_SEND_ANY_SYNC, p) : send_common(ep, &buf, tag, p);
	ucp_unlock(ep->worker);
	return ret;
}

ucs_status_ptr_t
ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_tag_t tag, ucp_send_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_send_nb, (void (*)(void))cb, 0);

	return send_typed(ep, buffer, count, datatype, tag, false, &p);
}

ucs_status_ptr_t
ucp_tag_send_sync_nb(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_tag_t tag, ucp_send_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_send_nb, (void (*)(void))cb, 0);

	return send_typed(ep, buffer, count, datatype, tag, true, &p);
}

ucs_status_t
ucp_tag_send_nbr(ucp_ep_h ep, const void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_tag_t tag, void *req)
{
	struct ucp_post p = {.mask = UCP_OP_ATTR_FIELD_REQUEST, .user = req};
	ucs_status_ptr_t ret = send_typed(ep, buffer, count, datatype, tag, false, &p);

	return UCS_PTR_IS_PTR(ret) ? UCS_INPROGRESS : UCS_PTR_RAW_STATUS(ret);
}

/* The result of a receive: the caller gets its information if it completed at once. */
static inline ucs_status_ptr_t
recv_posted(struct plx_req *req, const struct ucp_post *p, ucp_tag_recv_info_t *info)
{
	bool final;
	ucs_status_ptr_t ret = ucp_req_posted(req, p, &final);

	if (!final)
		return ret;
	if (info != NULL && req->status == 0)
		*info = ucp_recv_info(req);
	ucp_req_drop(req);
	return ret;
}

/*
 * By value: the fast path has both in registers.
 * @param message one that a probe has removed; NULL: by tag
 */
static __rte_noinline ucs_status_ptr_t
recv_now(ucp_worker_h w, struct ucp_buf buf, ucp_tag_t tag, ucp_tag_t mask,
	ucp_tag_message_h message, struct ucp_post p, ucp_tag_recv_info_t *info)
{
	struct plx_req own, *req = ucp_req_now(w, &p, &buf, &own);
	ucs_status_ptr_t ret;
	int rc;

	if (message == NULL)
		rc = plx_worker_tag_recv_now(w->core, buf.addr, buf.len, tag, mask, req);
	else
		rc = plx_worker_msg_recv_now(w->core, (struct plx_msg *)message, buf.addr, buf.len,
			req);
	ret = ucp_req_now_end(req, rc);
	if (ret == NULL && info != NULL)
		*info = ucp_recv_info(req);
	return ret;
}

static inline ucp_tag_recv_info_t *
param_info(const ucp_request_param_t *param)
{
	return param->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO ? param->recv_info.tag_info : NULL;
}

static __rte_noinline ucs_status_ptr_t
recv_nbx(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	struct plx_req *req;
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_post p;
	struct ucp_buf buf;

	p = ucp_post_of(param, ucp_done_recv_nbx);
	status = ucp_buf_open_checked(w, param, buffer, count, true, &buf);
	if (unlikely(status != UCS_OK))
		return UCS_STATUS_PTR(status);
	ucp_lock(w);
	if (unlikely(p.mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)) {
		ret = recv_now(w, buf, tag, tag_mask, NULL, p, param_info(param));
	} else {
		req = ucp_req_get(w, &p, &buf);
		if (likely(req != NULL)) {
			plx_worker_tag_recv(w->core, buf.addr, buf.len, tag, tag_mask, req);
			ret = recv_posted(req, &p, param_info(param));
		} else {
			ret = UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
		}
	}
	ucp_unlock(w);
	return ret;
}

/*
 * @param odd the request may be the user's
 * @return one, if the receive may be posted plainly. Thread: owner
 */
static __rte_always_inline struct plx_req *
recv_plain_get(struct plx_worker *core, const ucp_request_param_t *param, bool odd)
{
	struct plx_req *req;

	if (unlikely(!plx_worker_can_post(core)))
		return NULL;
	if (!odd || (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) == 0)
		return plx_worker_req_get_free(core);
	req = plx_req_of(param->request);
	plx_worker_req_init(core, req);
	return req;
}

static __rte_always_inline void
recv_plain_begin(struct plx_req *req, const ucp_request_param_t *param, bool odd)
{
	bool own = odd && (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) != 0;

	plx_req_begin(req, own ? PLX_REQ_RECV | PLX_REQ_USER : PLX_REQ_RECV);
	if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
		req->done = ucp_done_recv_nbx;
		req->cb = (void (*)(void))param->cb.recv;
		req->cb_arg = param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA ? param->user_data : NULL;
	}
}

/* @return the result of the call. The same */
static __rte_always_inline void *
recv_plain_post(struct plx_worker *core, struct plx_req *req, void *buffer, size_t count,
	ucp_tag_t tag, ucp_tag_t tag_mask, const ucp_request_param_t *param, bool odd)
{
	recv_plain_begin(req, param, odd);
	plx_worker_tag_post(core, buffer, count, tag, tag_mask, req);
	return plx_req_user(req);
}

/* There are unexpected messages: take a complete one that matches. */
static __rte_noinline ucs_status_ptr_t
recv_kept(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	ucp_tag_recv_info_t *to = param_info(param);
	struct plx_recv_info info;
	int rc = -EAGAIN;

	if (likely(!plx_worker_offloads(w->core)))
		rc = plx_worker_tag_take_now(w->core, buffer, count, tag, tag_mask, &info);
	if (rc == -EAGAIN)
		return recv_nbx(w, buffer, count, tag, tag_mask, param);
	if (unlikely(rc != 0))
		return UCS_STATUS_PTR(ucp_status(rc));
	if (to != NULL)
		*to = (ucp_tag_recv_info_t){.sender_tag = info.tag, .length = info.len};
	return NULL;
}

/* The reactor is the owner. */
static __rte_noinline ucs_status_ptr_t
recv_posted_plain(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	struct plx_req *req = plx_worker_req_get_free(w->core);

	if (unlikely(req == NULL))
		return recv_nbx(w, buffer, count, tag, tag_mask, param);
	recv_plain_begin(req, param, false);
	plx_worker_tag_recv_posted(w->core, buffer, count, tag, tag_mask, req);
	return plx_req_user(req);
}

static __rte_always_inline ucs_status_ptr_t
recv_plain(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param, enum plx_gate_mode mode)
{
	enum plx_gate_pass pass;
	ucs_status_ptr_t ret;
	struct plx_req *req;

	if (mode == PLX_GATE_SHARED && unlikely(count >= PLX_WORKER_LONG_LEN))
		return recv_nbx(w, buffer, count, tag, tag_mask, param);
	pass = ucp_begin(w, mode);
	if (mode == PLX_GATE_SHARED && pass == PLX_GATE_NOT)
		return recv_posted_plain(w, buffer, count, tag, tag_mask, param);
	req = recv_plain_get(w->core, param, false);
	if (mode == PLX_GATE_SINGLE)
		return likely(req != NULL) ? recv_plain_post(w->core, req, buffer, count, tag, tag_mask, param, false)
					   : recv_kept(w, buffer, count, tag, tag_mask, param);
	if (mode == PLX_GATE_SHARED && unlikely(req == NULL)) { /* it posts, and may wait for room: not as the owner */
		ucp_end(w, mode, pass, false);
		return recv_nbx(w, buffer, count, tag, tag_mask, param);
	}
	ret = likely(req != NULL) ? recv_plain_post(w->core, req, buffer, count, tag, tag_mask, param, false)
				  : recv_kept(w, buffer, count, tag, tag_mask, param);
	ucp_end(w, mode, pass, false);
	return ret;
}

static __rte_noinline ucs_status_ptr_t
recv_single(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	return recv_plain(w, buffer, count, tag, tag_mask, param, PLX_GATE_SINGLE);
}

static __rte_noinline ucs_status_ptr_t
recv_locked(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	return recv_plain(w, buffer, count, tag, tag_mask, param, PLX_GATE_LOCKED);
}

static __rte_noinline ucs_status_ptr_t
recv_shared(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	return recv_plain(w, buffer, count, tag, tag_mask, param, PLX_GATE_SHARED);
}

static inline ucs_status_ptr_t
recv_reactor(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	return ucp_is_held(w) && count < PLX_WORKER_LONG_LEN
		? recv_posted_plain(w, buffer, count, tag, tag_mask, param)
		: recv_shared(w, buffer, count, tag, tag_mask, param);
}

/* Its threads share the requests. */
static __rte_noinline ucs_status_ptr_t
recv_shared_by_many(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	ucs_status_ptr_t ret;

	plx_lock_enter(&w->lock);
	ret = recv_reactor(w, buffer, count, tag, tag_mask, param);
	plx_lock_leave(&w->lock);
	return ret;
}

/* As recv_kept(), when the call has to return a request, or the request is the user's. */
static __rte_noinline ucs_status_ptr_t
recv_kept_odd(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	bool own = (param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) != 0;
	bool later = (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) != 0;
	struct plx_recv_info info;
	struct plx_req *req;
	int rc = -EAGAIN;

	ucp_lock(w);
	req = own ? plx_req_of(param->request) : plx_worker_req_get(w->core);
	if (likely(req != NULL && !plx_worker_offloads(w->core)))
		rc = plx_worker_tag_take_now(w->core, buffer, count, tag, tag_mask, &info);
	if (likely(rc != -EAGAIN)) {
		if (own)
			plx_worker_req_init(w->core, req);
		recv_plain_begin(req, param, true);
		req->status = rc;
		req->len = count;
		req->recv.info_tag = info.tag;
		req->recv.info_len = info.len;
		if (later) {
			plx_worker_postpone(w->core, req);
		} else {
			req->done = NULL; /* the return value says it */
			plx_req_finish(req);
		}
	} else if (!own && req != NULL) {
		plx_req_put(req);
	}
	ucp_unlock(w);
	if (unlikely(rc == -EAGAIN))
		return recv_nbx(w, buffer, count, tag, tag_mask, param);
	if (later)
		return plx_req_user(req);
	if (rc == 0 && param_info(param) != NULL)
		*param_info(param) = (ucp_tag_recv_info_t){.sender_tag = info.tag, .length = info.len};
	return UCS_STATUS_PTR(ucp_status(rc));
}

/*
 * As recv_plain(), when the call has to return a request, or the request is the user's; and the way to recv_nbx() of
 * what is not plain otherwise.
 */
static __rte_noinline ucs_status_ptr_t
recv_odd(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	ucs_status_ptr_t ret = NULL;
	struct plx_req *req;

	if (unlikely(w->mode == PLX_GATE_SHARED ||
		    !ucp_post_is_plain(param, UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_REQUEST)))
		return recv_nbx(w, buffer, count, tag, tag_mask, param);
	ucp_lock(w);
	req = recv_plain_get(w->core, param, true);
	if (likely(req != NULL))
		ret = recv_plain_post(w->core, req, buffer, count, tag, tag_mask, param, true);
	ucp_unlock(w);
	return likely(req != NULL) ? ret : recv_kept_odd(w, buffer, count, tag, tag_mask, param);
}

/* Separate, as with sends. */
ucs_status_ptr_t
ucp_tag_recv_nbx(ucp_worker_h w, void *buffer, size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
	const ucp_request_param_t *param)
{
	if (unlikely(!ucp_post_is_plain(param, 0)))
		return recv_odd(w, buffer, count, tag, tag_mask, param);
	if (w->mode == PLX_GATE_SINGLE)
		return recv_single(w, buffer, count, tag, tag_mask, param);
	if (w->mode == PLX_GATE_LOCKED)
		return recv_locked(w, buffer, count, tag, tag_mask, param);
	if (w->multi)
		return recv_shared_by_many(w, buffer, count, tag, tag_mask, param);
	return recv_reactor(w, buffer, count, tag, tag_mask, param);
}

static inline ucs_status_ptr_t
recv_typed(ucp_worker_h w, void *buffer, size_t count, ucp_datatype_t datatype, ucp_tag_t tag,
	ucp_tag_t tag_mask, const struct ucp_post *p)
{
	ucs_status_ptr_t ret = UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	struct plx_req *req;
	ucs_status_t status;
	struct ucp_buf buf;

	status = ucp_buf_open(datatype, buffer, count, true, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(w);
	req = ucp_req_get(w, p, &buf);
	if (req != NULL) {
		plx_worker_tag_recv(w->core, buf.addr, buf.len, tag, tag_mask, req);
		ret = recv_posted(req, p, NULL);
	}
	ucp_unlock(w);
	return ret;
}

ucs_status_ptr_t
ucp_tag_recv_nb(ucp_worker_h w, void *buffer, size_t count, ucp_datatype_t datatype, ucp_tag_t tag,
	ucp_tag_t tag_mask, ucp_tag_recv_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_recv_nb, (void (*)(void))cb, UCP_OP_ATTR_FLAG_NO_IMM_CMPL);

	return recv_typed(w, buffer, count, datatype, tag, tag_mask, &p);
}

ucs_status_t
ucp_tag_recv_nbr(ucp_worker_h w, void *buffer, size_t count, ucp_datatype_t datatype, ucp_tag_t tag,
	ucp_tag_t tag_mask, void *user)
{
	struct ucp_post p = {.mask = UCP_OP_ATTR_FIELD_REQUEST, .user = user};
	ucs_status_ptr_t ret = recv_typed(w, buffer, count, datatype, tag, tag_mask, &p);

	return UCS_PTR_IS_PTR(ret) ? UCS_INPROGRESS : UCS_PTR_RAW_STATUS(ret);
}

ucp_tag_message_h
ucp_tag_probe_nb(ucp_worker_h w, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
	ucp_tag_recv_info_t *info)
{
	struct plx_probe probe;

	ucp_lock(w);
	probe.msg = NULL;
	if (w->mode == PLX_GATE_SHARED || unlikely(!plx_worker_can_post(w->core))) /* else nothing is kept */
		plx_worker_tag_probe(w->core, tag, tag_mask, remove != 0, &probe);
	ucp_unlock(w);
	if (probe.msg != NULL && info != NULL)
		*info = (ucp_tag_recv_info_t){.sender_tag = probe.tag, .length = probe.len};
	return (ucp_tag_message_h)probe.msg;
}

static ucs_status_ptr_t
msg_recv(ucp_worker_h w, struct ucp_buf *buf, ucp_tag_message_h message, const struct ucp_post *p,
	ucp_tag_recv_info_t *info)
{
	struct plx_req *req = ucp_req_get(w, p, buf);

	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	plx_worker_msg_recv(w->core, (struct plx_msg *)message, buf->addr, buf->len, req);
	return recv_posted(req, p, info);
}

ucs_status_ptr_t
ucp_tag_msg_recv_nbx(ucp_worker_h w, void *buffer, size_t count, ucp_tag_message_h message,
	const ucp_request_param_t *param)
{
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_post p;
	struct ucp_buf buf;

	status = ucp_buf_open_checked(w, param, buffer, count, true, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	p = ucp_post_of(param, ucp_done_recv_nbx);
	ucp_lock(w);
	if (p.mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)
		ret = recv_now(w, buf, 0, 0, message, p, param_info(param));
	else
		ret = msg_recv(w, &buf, message, &p, param_info(param));
	ucp_unlock(w);
	return ret;
}

ucs_status_ptr_t
ucp_tag_msg_recv_nb(ucp_worker_h w, void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_tag_message_h message, ucp_tag_recv_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_recv_nb, (void (*)(void))cb, UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	status = ucp_buf_open(datatype, buffer, count, true, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(w);
	ret = msg_recv(w, &buf, message, &p, NULL);
	ucp_unlock(w);
	return ret;
}

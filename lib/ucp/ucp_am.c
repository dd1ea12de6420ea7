/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_am.c - active messages: handlers, sends, kept and fetched data
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucp_int.h"

static int
deliver_old(const struct plx_am_handler *h, const struct plx_am_rx *rx, ucp_ep_h reply)
{
	ucs_status_t status;

	if (rx->rndv) { /* the old form can't fetch */
		PLX_LOG_RATELIMIT(WARNING, ucp, "the handler of active message id %u is of the old "
			"form and can't fetch: refused", rx->id);
		return -EOPNOTSUPP;
	}
	status = ((ucp_am_callback_t)h->cb)(h->arg, rx->data, rx->len, reply,
		rx->msg != NULL ? UCP_CB_PARAM_FLAG_DATA : 0);
	return status == UCS_OK ? 0 : ucp_status_errno(status);
}

/* A handler that relies on its reply ep is not called without one. */
static __rte_noinline __rte_cold int
am_drop(struct plx_am *am, int rc)
{
	if (rc == -ENOMEM) {
		PLX_STAT_INC(am->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, ucp, "out of memory for the endpoint that answers an active message: lost");
	} else {
		PLX_STAT_INC(am->stat.rx_drop_closed);
	}
	return rc;
}

int
ucp_am_deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx)
{
	ucp_am_recv_param_t param = {.recv_attr = 0};
	ucs_status_t status;

	if (unlikely(rx->reply)) {
		int rc = ucp_ep_answer(am->user, rx->ep, rx->conn_id, &param.reply_ep);

		if (unlikely(rc != 0))
			return am_drop(am, rc);
		param.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
	} else if (unlikely(rx->rndv && ucp_ep_was_closed(am->user, rx->ep, rx->conn_id))) {
		return am_drop(am, -ECANCELED); /* nobody fetches by a closed ep: UCX returns the
		                                 * same */
	}
	if (h->old)
		return deliver_old(h, rx, param.reply_ep);
	if (rx->rndv)
		param.recv_attr |= UCP_AM_RECV_ATTR_FLAG_RNDV;
	else if (rx->msg != NULL)
		param.recv_attr |= UCP_AM_RECV_ATTR_FLAG_DATA;
	status = ((ucp_am_recv_callback_t)h->cb)(h->arg, rx->hdr_len != 0 ? rx->hdr : NULL,
		rx->hdr_len, rx->data, rx->len, &param);
	return likely(status == UCS_OK) ? 0 : ucp_status_errno(status);
}

/* No reply endpoint, and the data may not be kept. */
static const ucp_am_recv_param_t plain_param;

void
ucp_am_plain(const struct plx_am_handler *h, const void *hdr, uint32_t hdr_len, const void *data, uint64_t len)
{
	ucs_status_t status = ((ucp_am_recv_callback_t)h->cb)(h->arg, hdr_len != 0 ? hdr : NULL, hdr_len,
		(void *)(uintptr_t)data, len, &plain_param);

	if (unlikely(status == UCS_INPROGRESS))
		plx_am_bad_keep(h);
}

static ucs_status_t
set_handler(ucp_worker_h w, uint16_t id, const struct plx_am_handler *h)
{
	int rc;

	ucp_lock(w);
	rc = plx_worker_am_set(w->core, id, h);
	ucp_unlock(w);
	return ucp_status(rc);
}

ucs_status_t
ucp_worker_set_am_handler(ucp_worker_h w, uint16_t id, ucp_am_callback_t cb, void *arg,
	uint32_t flags)
{
	struct plx_am_handler h = {.cb = (void (*)(void))cb, .arg = arg, .old = true,
		.persistent = (flags & UCP_AM_FLAG_PERSISTENT_DATA) != 0};

	return set_handler(w, id, &h);
}

ucs_status_t
ucp_worker_set_am_recv_handler(ucp_worker_h w, const ucp_am_handler_param_t *param)
{
	const uint64_t must = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
	struct plx_am_handler h = {.plain = true};

	if ((param->field_mask & must) != must || param->id >= PLX_AM_IDS)
		return UCS_ERR_INVALID_PARAM;
	h.cb = (void (*)(void))param->cb;
	if (param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG)
		h.arg = param->arg;
	if (param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_FLAGS)
		h.persistent = (param->flags & UCP_AM_FLAG_PERSISTENT_DATA) != 0;
	return set_handler(w, param->id, &h);
}

struct am_send {
	struct plx_wire_am wire;
	const void *hdr;
	bool copy_hdr;
	uint32_t how; /* enum plx_am_how */
};

/* With a request: the message has to wait, or the caller requires one. */
static __rte_noinline ucs_status_ptr_t
send_req(ucp_ep_h ep, struct ucp_buf *buf, const struct am_send *a, uint32_t how, const struct ucp_post *p)
{
	const void *hdr = a->hdr;
	uint32_t hdr_len = plx_am_hdr_len(&a->wire);
	ucs_status_t status = ucp_ep_status(ep);
	struct plx_req *req;

	if (unlikely(status != UCS_OK))
		return ucp_req_ended(ep->worker, p, ucp_status_errno(ucp_buf_drop(buf, status)));
	if (a->copy_hdr && hdr_len != 0) {
		hdr = malloc(hdr_len);
		if (hdr == NULL)
			return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_NO_MEMORY));
		memcpy((void *)(uintptr_t)hdr, a->hdr, hdr_len);
	}
	req = ucp_req_get(ep->worker, p, buf);
	if (req == NULL) {
		if (hdr != a->hdr)
			free((void *)(uintptr_t)hdr);
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	}
	if (hdr != a->hdr)
		plx_req_flag(req, PLX_REQ_OWN_HDR);
	plx_worker_am_send(ep->worker->core, &ep->user, a->wire, hdr, buf->addr, buf->len, how,
		req);
	return ucp_req_posted_simple(req, p);
}

struct forced {
	struct ucp_forced f;
	const struct am_send *a;
};

static void
forced_run(void *arg)
{
	struct forced *v = arg;

	v->f.rc = plx_worker_am_send_now(v->f.ep->worker->core, v->f.ep->user.ep, v->a->wire,
		v->a->hdr, v->f.addr, v->f.len, v->a->how);
}

static __rte_noinline ucs_status_ptr_t
send_forced(ucp_ep_h ep, struct ucp_buf *buf, const struct am_send *a, const struct ucp_post *p)
{
	struct forced v = {{.run = forced_run, .ep = ep}, a};

	return ucp_send_forced(&v.f, buf, p);
}

static inline ucs_status_ptr_t
send_common(ucp_ep_h ep, struct ucp_buf *buf, const struct am_send *a, const struct ucp_post *p)
{
	ucp_worker_h w = ep->worker;
	int rc = -EAGAIN;

	if (likely(!plx_worker_has_reactor(w->core) && (p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0 &&
		    buf->dt == NULL)) {
		rc = plx_worker_am_try(w->core, ep->user.ep, a->wire, a->hdr, buf->addr,
			buf->len, a->how);
		if (likely(rc == 0 && (p->mask & UCP_OP_ATTR_FIELD_REQUEST) == 0))
			return NULL;
		if (rc <= 0 && rc != -EAGAIN)
			return ucp_req_ended(w, p, rc);
	}
	if (unlikely(p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL))
		return send_forced(ep, buf, a, p);
	return send_req(ep, buf, a, rc > 0 ? (uint32_t)rc : a->how, p);
}

static inline uint32_t
param_flags(const ucp_request_param_t *param)
{
	return param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS ? param->flags : 0;
}

static inline bool
is_valid(unsigned id, const void *header, size_t header_length, uint32_t flags)
{
	const uint32_t both = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_RNDV;

	return likely(id < PLX_AM_IDS && header_length <= PLX_WIRE_AM_HDR_MAX && (flags & both) != both &&
		(header_length == 0 || header != NULL));
}

/* The message's wire header. */
static inline struct plx_wire_am
wire_of(ucp_ep_h ep, unsigned id, size_t header_length, uint32_t flags)
{
	return (struct plx_wire_am){.id = id, .conn_id = plx_ep_wire_id(&ep->user),
		.hdr_len = header_length | (flags & UCP_AM_SEND_FLAG_REPLY ? PLX_WIRE_AM_REPLY : 0)};
}

_Static_assert(UCP_AM_SEND_FLAG_EAGER == PLX_AM_EAGER << 1 && UCP_AM_SEND_FLAG_RNDV == PLX_AM_RNDV << 1,
	"how_of() relies on it");

/* @return enum plx_am_how */
static inline uint32_t
how_of(uint32_t flags)
{
	return flags >> 1 & (PLX_AM_EAGER | PLX_AM_RNDV);
}

static __rte_noinline ucs_status_ptr_t
send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
	const void *buffer, size_t count, const ucp_request_param_t *param)
{
	uint32_t flags = param_flags(param);
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);
	struct am_send a = {.hdr = header, .how = how_of(flags)};
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	if (unlikely(!is_valid(id, header, header_length, flags)))
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	a.wire = wire_of(ep, id, header_length, flags);
	a.copy_hdr = (flags & UCP_AM_SEND_FLAG_COPY_HEADER) != 0;
	status = ucp_buf_open_checked(ep->worker, param, buffer, count, false, &buf);
	if (unlikely(status != UCS_OK))
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = send_common(ep, &buf, &a, &p);
	ucp_unlock(ep->worker);
	return ret;
}

/* @return whether send_now() may try: inline, with valid parameters */
static inline bool
may_send_now(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, uint32_t flags)
{
	return likely(ep->worker->mode != PLX_GATE_SHARED && is_valid(id, header, header_length, flags));
}

/* Without a request. @return whether the device takes it at once */
static inline bool
send_now(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, uint32_t flags, const void *buf, size_t len)
{
	ucp_worker_h w = ep->worker;
	int rc;

	ucp_lock(w);
	rc = plx_worker_am_try(w->core, ep->user.ep, wire_of(ep, id, header_length, flags), header, buf, len,
		how_of(flags));
	ucp_unlock(w);
	return likely(rc == 0);
}

#define HEADED_MAX 4096 /* bytes of data: longer ones may need a request, and are tried once */

/* Plain but for a header or flags. */
static __rte_noinline ucs_status_ptr_t
send_headed(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
	const void *buffer, size_t count, const ucp_request_param_t *param)
{
	uint32_t flags = param_flags(param);

	if (likely(count <= HEADED_MAX && (flags & UCP_AM_SEND_FLAG_RNDV) == 0 &&
		    may_send_now(ep, id, header, header_length, flags) &&
		    send_now(ep, id, header, header_length, flags, buffer, count)))
		return NULL;
	return send_nbx(ep, id, header, header_length, buffer, count, param);
}

/* An iov of few bytes. @return whether the device takes it at once */
static __rte_always_inline bool
send_gathered(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, uint32_t flags,
	const ucp_dt_iov_t *v, size_t n)
{
	uint8_t bytes[UCP_GATHER_MAX];
	size_t len;

	return may_send_now(ep, id, header, header_length, flags) && likely(ucp_iov_gather(v, n, bytes, &len)) &&
	       send_now(ep, id, header, header_length, flags, bytes, len);
}

static __rte_noinline ucs_status_ptr_t
send_iov(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
	const void *buffer, size_t count, const ucp_request_param_t *param)
{
	if (likely(send_gathered(ep, id, header, header_length, param_flags(param), buffer, count)))
		return NULL;
	return send_nbx(ep, id, header, header_length, buffer, count, param);
}

/* Separate, so that the plain path saves no registers for it. */
static __rte_noinline ucs_status_ptr_t
send_odd(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
	const void *buffer, size_t count, const ucp_request_param_t *param)
{
	if (ucp_post_is_plain(param, 0))
		return send_headed(ep, id, header, header_length, buffer, count, param);
	if (ucp_post_is_iov(param))
		return send_iov(ep, id, header, header_length, buffer, count, param);
	return send_nbx(ep, id, header, header_length, buffer, count, param);
}

/* @return whether neither flags nor a header need more than the shortest path */
static inline bool
is_plain(const ucp_request_param_t *param, unsigned id, size_t header_length)
{
	return ucp_post_is_plain(param, 0) && header_length == 0 && id < PLX_AM_IDS &&
	       ((param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) == 0 || param->flags == 0);
}

/* The reactor is the owner. */
static __rte_noinline ucs_status_ptr_t
send_posted(ucp_ep_h ep, unsigned id, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	struct plx_wire_am h = {.id = id, .conn_id = plx_ep_wire_id(&ep->user)};

	if (likely(!ucp_ep_is_odd(ep) &&
		    plx_worker_am_send_posted(ep->worker->core, &ep->user, h, buffer, count)))
		return NULL;
	return send_nbx(ep, id, NULL, 0, buffer, count, param);
}

/* The device may refuse the message. */
static __rte_noinline ucs_status_ptr_t
send_asked(ucp_ep_h ep, unsigned id, const void *buffer, size_t count, const ucp_request_param_t *param,
	enum plx_gate_pass pass)
{
	struct plx_wire_am h = {.id = id, .conn_id = plx_ep_wire_id(&ep->user)};
	ucp_worker_h w = ep->worker;
	int rc = plx_worker_am_send_short(w->core, ep->user.ep, h, buffer, count);

	ucp_end(w, w->mode, pass, true);
	return likely(rc == 0) ? NULL : send_nbx(ep, id, NULL, 0, buffer, count, param);
}

/* It is not short, or its ep is not open. */
static __rte_noinline ucs_status_ptr_t
send_long(ucp_ep_h ep, unsigned id, const void *buffer, size_t count, const ucp_request_param_t *param,
	enum plx_gate_pass pass)
{
	ucp_end(ep->worker, ep->worker->mode, pass, true);
	return send_nbx(ep, id, NULL, 0, buffer, count, param);
}

/* The usual send calls only what cannot fail, so inline it saves no registers. */
static __rte_always_inline ucs_status_ptr_t
send_plain(ucp_ep_h ep, unsigned id, const void *buffer, size_t count, const ucp_request_param_t *param,
	enum plx_gate_mode mode)
{
	ucp_worker_h w = ep->worker;
	enum plx_gate_pass pass;
	struct plx_ep *to;

	if (mode == PLX_GATE_SHARED && unlikely(count >= PLX_WORKER_LONG_LEN || ucp_ep_is_odd(ep)))
		return send_nbx(ep, id, NULL, 0, buffer, count, param);
	pass = ucp_begin(w, mode);
	if (mode == PLX_GATE_SHARED && pass == PLX_GATE_NOT)
		return send_posted(ep, id, buffer, count, param);
	to = ep->user.ep;
	if (unlikely(!plx_worker_am_is_short(to, count)))
		return mode == PLX_GATE_SINGLE ? send_nbx(ep, id, NULL, 0, buffer, count, param)
					  : send_long(ep, id, buffer, count, param, pass);
	if (!plx_worker_is_sure(to))
		return send_asked(ep, id, buffer, count, param, pass);
	plx_worker_am_send_sure(w->core, to,
		(struct plx_wire_am){.id = id, .conn_id = plx_ep_wire_id(&ep->user)}, buffer, count);
	ucp_end(w, mode, pass, true);
	return NULL;
}

static __rte_noinline ucs_status_ptr_t
send_locked(ucp_ep_h ep, unsigned id, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	return send_plain(ep, id, buffer, count, param, PLX_GATE_LOCKED);
}

static __rte_noinline ucs_status_ptr_t
send_shared(ucp_ep_h ep, unsigned id, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	return send_plain(ep, id, buffer, count, param, PLX_GATE_SHARED);
}

/* The modes are separate, so that it saves no registers for any of them. */
ucs_status_ptr_t
ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
	const void *buffer, size_t count, const ucp_request_param_t *param)
{
	if (likely(is_plain(param, id, header_length))) {
		if (ep->worker->mode == PLX_GATE_SINGLE)
			return send_plain(ep, id, buffer, count, param, PLX_GATE_SINGLE);
		if (ep->worker->mode == PLX_GATE_LOCKED)
			return send_locked(ep, id, buffer, count, param);
		return ucp_is_held(ep->worker) ? send_posted(ep, id, buffer, count, param)
					       : send_shared(ep, id, buffer, count, param);
	}
	return send_odd(ep, id, header, header_length, buffer, count, param);
}

/* Few bytes, contiguous or an iov. @return whether the device takes them at once */
static inline bool
send_typed_now(ucp_ep_h ep, unsigned id, uint32_t flags, const void *buffer, size_t count, ucp_datatype_t datatype)
{
	size_t len;

	switch (datatype & UCP_DATATYPE_CLASS_MASK) {
	case UCP_DATATYPE_CONTIG:
		return !__builtin_mul_overflow(count, datatype >> UCP_DATATYPE_SHIFT, &len) && len <= HEADED_MAX &&
		       may_send_now(ep, id, NULL, 0, flags) && send_now(ep, id, NULL, 0, flags, buffer, len);
	case UCP_DATATYPE_IOV:
		return send_gathered(ep, id, NULL, 0, flags, buffer, count);
	default:
		return false;
	}
}

static __rte_noinline ucs_status_ptr_t
send_nb(ucp_ep_h ep, unsigned id, uint32_t flags, const void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_send_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_send_nb, (void (*)(void))cb, 0);
	struct am_send a = {.wire = wire_of(ep, id, 0, flags), .how = PLX_AM_EAGER};
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;

	status = ucp_buf_open(datatype, buffer, count, false, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(ep->worker);
	ret = send_common(ep, &buf, &a, &p);
	ucp_unlock(ep->worker);
	return ret;
}

ucs_status_ptr_t
ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void *buffer, size_t count, ucp_datatype_t datatype,
	ucp_send_callback_t cb, unsigned flags)
{
	if ((flags & ~(unsigned)UCP_AM_SEND_REPLY) != 0)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	if (likely(send_typed_now(ep, id, flags | UCP_AM_SEND_FLAG_EAGER, buffer, count, datatype)))
		return NULL;
	return send_nb(ep, id, flags, buffer, count, datatype, cb);
}

static void
done_recv(struct plx_req *req)
{
	((ucp_am_recv_data_nbx_callback_t)req->cb)(plx_req_user(req), ucp_status(req->status),
		req->recv.info_len, req->cb_arg);
}

static void
set_length(const ucp_request_param_t *param, size_t length)
{
	if (param->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO)
		*param->recv_info.length = length;
}

/* The data has arrived: complete at once, with a request only if the caller requires one. */
static ucs_status_ptr_t
recv_kept(ucp_worker_h w, struct plx_msg *m, void *data, struct ucp_buf *buf,
	const ucp_request_param_t *param, const struct ucp_post *p)
{
	struct plx_req *req = NULL, tmp;

	if (p->mask & (UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_REQUEST)) {
		req = ucp_req_get(w, p, NULL);
		if (req == NULL)
			return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_NO_MEMORY));
	}
	plx_worker_req_init(w->core, &tmp);
	tmp.dt = buf->dt;
	tmp.buf = buf->addr;
	tmp.len = buf->len;
	tmp.status = plx_worker_am_copy(m, data, &tmp);
	if (buf->dt != NULL)
		tmp.status = buf->dt->finish(buf->dt, tmp.status);
	if (tmp.status == 0)
		set_length(param, tmp.recv.info_len);
	if (req == NULL)
		return UCS_STATUS_PTR(ucp_status(tmp.status));
	req->status = tmp.status;
	req->recv.info_tag = 0;
	req->recv.info_len = tmp.recv.info_len;
	plx_req_flag(req, PLX_REQ_RECV | PLX_REQ_DONE);
	if ((p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0)
		return UCS_STATUS_PTR(ucp_status(tmp.status));
	req->done = p->done;
	plx_worker_postpone(w->core, req);
	return plx_req_user(req);
}

static ucs_status_ptr_t
recv_rndv(ucp_worker_h w, struct plx_msg *m, struct ucp_buf *buf, const ucp_request_param_t *param,
	const struct ucp_post *p)
{
	ucs_status_ptr_t ret;
	struct plx_req *req;
	bool final;

	if (p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)
		return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_NO_RESOURCE));
	req = ucp_req_get(w, p, buf);
	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	plx_worker_am_fetch(w->core, m, buf->addr, buf->len, req);
	ret = ucp_req_posted(req, p, &final);
	if (!final)
		return ret;
	if (req->status == 0)
		set_length(param, req->recv.info_len);
	ucp_req_drop(req);
	return ret;
}

ucs_status_ptr_t
ucp_am_recv_data_nbx(ucp_worker_h w, void *data_desc, void *buffer, size_t count,
	const ucp_request_param_t *param)
{
	struct ucp_post p = ucp_post_of(param, done_recv);
	ucs_status_ptr_t ret;
	ucs_status_t status;
	struct ucp_buf buf;
	struct plx_msg *m;

	if (plx_worker_is_inherited(w->core)) /* the device's buffers are the parent's only */
		return UCS_STATUS_PTR(UCS_ERR_CONNECTION_RESET);
	m = plx_am_msg_of(data_desc);
	status = ucp_post_check(w, param);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	if (m->taken)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	status = ucp_buf_open_param(w, param, buffer, count, true, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	ucp_lock(w);
	if (m->kind == PLX_MSG_AM)
		ret = recv_kept(w, m, data_desc, &buf, param, &p);
	else
		ret = recv_rndv(w, m, &buf, param, &p);
	ucp_unlock(w);
	return ret;
}

void
ucp_am_data_release(ucp_worker_h w, void *data)
{
	struct plx_msg *m;

	if (plx_worker_is_inherited(w->core)) /* as above */
		return;
	m = plx_am_msg_of(data);
	ucp_lock(w);
	if (!m->taken)
		plx_am_take(m, 0);
	ucp_unlock(w);
}

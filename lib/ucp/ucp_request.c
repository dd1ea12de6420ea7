/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_request.c - requests as the application sees them
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucp_int.h"

ucs_status_ptr_t
ucp_req_posted_simple(struct plx_req *req, const struct ucp_post *p)
{
	bool final;
	ucs_status_ptr_t ret = ucp_req_posted(req, p, &final);

	if (final)
		ucp_req_drop(req);
	return ret;
}

ucs_status_ptr_t
ucp_req_ended(ucp_worker_h w, const struct ucp_post *p, int rc)
{
	bool wants = rc == 0 && (p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
	struct plx_req *req;

	if (!wants) {
		if (p->mask & UCP_OP_ATTR_FIELD_REQUEST)
			ucp_req_own_ended(w, p->user, rc);
		return UCS_STATUS_PTR(ucp_status(rc));
	}
	req = ucp_req_get(w, p, NULL);
	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	req->status = rc;
	req->len = 0;
	atomic_fetch_or_explicit(&req->flags, PLX_REQ_DONE, memory_order_release);
	req->done = p->done;
	plx_worker_postpone(w->core, req);
	return plx_req_user(req);
}

ucs_status_ptr_t
ucp_flush(ucp_worker_h w, ucp_ep_h ep, const struct ucp_post *p)
{
	ucs_status_ptr_t ret = UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	ucs_status_t status = ep != NULL ? ucp_ep_status(ep) : UCS_OK;
	struct plx_req *req;

	if (plx_worker_is_inherited(w->core))
		return NULL;
	if (status != UCS_OK) /* the handle's, whose core ep may be alive */
		return UCS_STATUS_PTR(status);
	ucp_lock(w);
	req = ucp_req_get(w, p, NULL);
	if (req != NULL) {
		plx_worker_flush(w->core, ep != NULL ? PLX_FLUSH_EP : PLX_FLUSH_WORKER, ep != NULL ? &ep->user : NULL, req);
		ret = ucp_req_posted_simple(req, p);
	}
	ucp_unlock(w);
	return ret;
}

ucs_status_ptr_t
ucp_flush_param(ucp_worker_h w, ucp_ep_h ep, const ucp_request_param_t *param)
{
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);

	return ucp_flush(w, ep, &p);
}

struct plx_req *
ucp_req_now(ucp_worker_h w, const struct ucp_post *p, const struct ucp_buf *buf, struct plx_req *own)
{
	struct plx_req *req = p->mask & UCP_OP_ATTR_FIELD_REQUEST ? plx_req_of(p->user) : own;

	plx_worker_req_init(w->core, req);
	req->dt = buf->dt;
	return req;
}

ucs_status_ptr_t
ucp_req_now_end(struct plx_req *req, int rc)
{
	if (req->dt != NULL)
		rc = req->dt->finish(req->dt, rc);
	req->status = rc;
	if (rc != -EAGAIN)
		plx_req_flag(req, PLX_REQ_DONE);
	return UCS_STATUS_PTR(ucp_status(rc));
}

ucs_status_ptr_t
ucp_send_forced(struct ucp_forced *f, struct ucp_buf *buf, const struct ucp_post *p)
{
	void *copy = NULL;

	f->addr = buf->addr;
	f->len = buf->len;
	if (buf->dt != NULL && buf->len != 0) {
		f->addr = copy = malloc(buf->len);
		if (copy == NULL)
			return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_NO_MEMORY));
		buf->dt->pack(buf->dt, 0, copy, buf->len);
	}
	plx_worker_call(f->ep->worker->core, f->run, f);
	free(copy);
	if (f->rc == -EAGAIN)
		return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_NO_RESOURCE));
	ucp_buf_drop(buf, ucp_status(f->rc));
	return ucp_req_ended(f->ep->worker, p, f->rc);
}

ucs_status_t
ucp_memory_type_check(ucp_context_h c, unsigned type)
{
	if (type == UCS_MEMORY_TYPE_HOST || type == c->mem_unknown)
		return UCS_OK;
	return type > c->mem_unknown ? UCS_ERR_INVALID_PARAM : UCS_ERR_UNSUPPORTED;
}

/* Of the buffer of an operation: what processors access at least they copy. */
static ucs_status_t
buffer_type_check(ucp_context_h c, unsigned type)
{
	ucs_status_t status = ucp_memory_type_check(c, type);

	if (status == UCS_ERR_UNSUPPORTED && (UCS_BIT(type) & UCS_MEMORY_TYPES_CPU_ACCESSIBLE) != 0)
		return UCS_OK;
	return status;
}

ucs_status_t
ucp_post_check(ucp_worker_h w, const ucp_request_param_t *param)
{
	const uint32_t imm = UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;

	/* FAST_CMPL and MULTI_SEND exclude each other as well, but are hints, and UCX
	 * accepts both. */
	if ((param->op_attr_mask & imm) == imm)
		return UCS_ERR_INVALID_PARAM;
	if (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE)
		return buffer_type_check(w->context, (unsigned)param->memory_type);
	return UCS_OK;
}

ucs_status_t
ucp_req_wait(ucp_worker_h w, ucs_status_ptr_t ptr)
{
	ucs_status_t status;

	if (!UCS_PTR_IS_PTR(ptr))
		return UCS_PTR_STATUS(ptr);
	if (unlikely(ucp_worker_in_callback(w))) { /* progress does nothing until that returns */
		ucp_request_free(ptr);
		return UCS_ERR_BUSY;
	}
	do {
		ucp_worker_progress(w);
		status = ucp_request_check_status(ptr);
	} while (status == UCS_INPROGRESS);
	ucp_request_free(ptr);
	return status;
}

static ucp_worker_h
worker_of(struct plx_req *req)
{
	return plx_req_owner(req);
}

ucs_status_t
ucp_request_check_status(void *request)
{
	struct plx_req *req = plx_req_of(request);

	if (plx_mem_is_inherited(req))
		return UCS_ERR_CONNECTION_RESET;
	return plx_req_is_done(req) ? ucp_status(req->status) : UCS_INPROGRESS;
}

int
ucp_request_is_completed(void *request)
{
	struct plx_req *req = plx_req_of(request);

	return plx_mem_is_inherited(req) || plx_req_is_done(req);
}

ucs_status_t
ucp_request_test(void *request, ucp_tag_recv_info_t *info)
{
	struct plx_req *req = plx_req_of(request);

	if (plx_mem_is_inherited(req))
		return UCS_ERR_CONNECTION_RESET;
	if (!plx_req_is_done(req))
		return UCS_INPROGRESS;
	if (info != NULL && (req->flags & PLX_REQ_RECV))
		*info = ucp_recv_info(req);
	return ucp_status(req->status);
}

ucs_status_t
ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info)
{
	return ucp_request_test(request, info);
}

static __rte_noinline void
release_slow(struct plx_req *req, uint8_t flags)
{
	ucp_worker_h w;

	if (plx_mem_is_inherited(req))
		return;
	w = worker_of(req);
	ucp_lock(w);
	if (plx_req_is_done(req))
		plx_req_put(req);
	else
		plx_req_flag(req, flags);
	ucp_unlock(w);
}

/* A request that is done, of a worker that several threads use. */
static __rte_noinline void
release_locked(struct plx_req *req, uint8_t flags)
{
	struct plx_lock *lock = &worker_of(req)->lock;

	if (unlikely(!plx_lock_enter_quick(lock))) {
		release_slow(req, flags);
		return;
	}
	plx_req_put(req);
	plx_lock_drop_quick(lock);
}

static inline void
request_release(void *request, uint8_t flags)
{
	struct plx_req *req = plx_req_of(request);

	if (unlikely(plx_fork_eal || !plx_req_is_done(req)))
		release_slow(req, flags);
	else if (unlikely(worker_of(req)->multi))
		release_locked(req, flags);
	else
		plx_req_put(req);
}

void
ucp_request_free(void *request)
{
	request_release(request, PLX_REQ_RELEASED | PLX_REQ_NO_CB);
}

void
ucp_request_release(void *request)
{
	request_release(request, PLX_REQ_RELEASED);
}

void *
ucp_request_alloc(ucp_worker_h worker)
{
	(void)worker;
	return NULL; /* as in UCX: the user allocates requests in its memory */
}

void
ucp_request_cancel(ucp_worker_h worker, void *request)
{
	struct plx_req *req = plx_req_of(request);

	if (plx_worker_is_inherited(worker->core))
		return;
	ucp_lock(worker);
	if (!plx_req_is_done(req) && (req->flags & PLX_REQ_RECV)) {
		bool was = plx_worker_callbacks_begin(worker->core);

		plx_worker_cancel(worker->core, req);
		plx_worker_callbacks_end(worker->core, was);
	}
	ucp_unlock(worker);
	if (unlikely(worker->doomed))
		ucp_worker_bury(worker);
}

ucs_status_t
ucp_request_query(void *request, ucp_request_attr_t *attr)
{
	struct plx_req *req = plx_req_of(request);
	ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
	const char *what;

	if (plx_mem_is_inherited(req))
		return UCS_ERR_CONNECTION_RESET;
	if (!plx_req_is_done(req) && req->dt != NULL) /* it goes when it is done */
		type = (ucs_memory_type_t)req->dt->mem_type;
	what = req->flags & PLX_REQ_RECV ? "recv" : "send";
	if ((attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING) != 0) {
		size_t room = attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE
			? attr->debug_string_size : UCP_ENTITY_NAME_MAX;

		if (attr->debug_string == NULL)
			return UCS_ERR_INVALID_PARAM;
		if (room > 0)
			snprintf(attr->debug_string, room, "pollux %s of %llu bytes, memory type %s", what,
				(unsigned long long)req->len, type == UCS_MEMORY_TYPE_HOST ? "host" : "device");
	}
	if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_STATUS)
		attr->status = ucp_request_check_status(request);
	if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_MEM_TYPE)
		attr->mem_type = type;
	return UCS_OK;
}

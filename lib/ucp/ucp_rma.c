/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_rma.c - put, get and atomics, in every form; fence
 *
 * Design notes
 * - On memory that is mapped here an operation is complete before the call returns, in any mode
 *   and without the worker's lock: it writes nothing of the worker but that it is busy.
 *   Everything else takes the slow path.
 * - A list of pieces (SGL) is as many operations, all begun by the call, so that a flush or fence
 *   after it covers them all. The device moves them at once, many by one call. Others, as those that
 *   both sides copy, report their completion to the request of the list, which has no other part in
 *   them.
 */
#include <errno.h>
#include <string.h>

#include "ucp_int.h"
#include "ucp_mem.h"

/* Attributes without effect on an operation that completes at once. */
#define PLAIN                                                                                      \
	(UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |   \
		UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_RECV_INFO | UCP_POST_HINTS)

/* Whether the key permits it, and the other side is not known to be dead. */
static inline bool
is_in_reach(ucp_ep_h ep, const struct plx_rkey *k, uint8_t what, uint64_t addr, uint64_t len)
{
	/* err: written by a reactor; a failure that comes now may as well have come a
	 * moment later */
	return likely(k != NULL && plx_rkey_check(k, what, addr, len) == 0 &&
		plx_ep_err(ep->user.ep) == 0);
}

/* Whether the initiator can access it at once, directly. */
static inline bool
is_mapped(ucp_ep_h ep, const struct plx_rkey *k, uint8_t what)
{
	return likely((k->now & what) != 0 && !plx_worker_is_fenced(ep->worker->core));
}

static inline bool
is_direct(ucp_ep_h ep, const struct plx_rkey *k, uint8_t what, uint64_t addr, uint64_t len)
{
	return is_in_reach(ep, k, what, addr, len) && is_mapped(ep, k, what);
}

/* By loads, stores and locked instructions, on memory that is mapped here. */
static void
do_direct(const struct plx_rma_do *d, const struct ucp_buf *buf)
{
	void *there = plx_rkey_here(d->rkey, d->remote);
	uint64_t old;

	if (d->kind == PLX_RMA_ATOMIC) {
		old = plx_rma_atomic_do(there, d->op, d->len, d->operand[0], d->operand[1]);
		if (d->fetch)
			memcpy(d->buf, &old, d->len);
	} else if (buf->dt != NULL && d->kind == PLX_RMA_PUT) {
		buf->dt->pack(buf->dt, 0, there, d->len);
	} else if (buf->dt != NULL) {
		buf->dt->unpack(buf->dt, 0, there, d->len);
	} else if (d->kind == PLX_RMA_PUT) {
		plx_copy(there, d->buf, d->len);
	} else {
		plx_copy(d->buf, there, d->len);
	}
}

/*
 * At once, if that is possible.
 * @param hides as of plx_worker_rma_now()
 * @return 0; -EAGAIN it needs a request; -EINPROGRESS only if hides; or an error
 */
static int
do_now(ucp_worker_h w, const struct plx_rma_do *d, uint8_t what, const struct ucp_buf *buf, bool hides)
{
	int rc = plx_ep_err(d->ep);

	if (rc != 0)
		return rc;
	rc = plx_rkey_check(d->rkey, what, d->remote, d->len);
	if (rc != 0)
		return rc;
	if ((d->rkey->now & what) != 0 && plx_worker_unfenced(w->core)) {
		plx_worker_busy(w->core);
		do_direct(d, buf);
		return 0;
	}
	return buf->dt == NULL ? plx_worker_rma_now(w->core, d, hides) : -EAGAIN;
}

/* Whether the caller requires the request, even if it completes at once. */
static inline bool
wants_request(const struct ucp_post *p)
{
	return (p->mask & (UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_REQUEST |
		UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)) != 0;
}

/*
 * An operation that passed its checks. Called with the lock.
 * @param hides whether a request may be left out that would only report that the few bytes of a put are copied: then
 *   a flush reports an error
 */
static ucs_status_ptr_t
start(ucp_worker_h w, const struct plx_rma_do *d, uint8_t what, struct ucp_buf *buf,
	const struct ucp_post *p, bool hides)
{
	ucs_status_ptr_t ret;
	struct plx_req *req;
	bool taken;
	int rc;

	hides = hides && d->kind == PLX_RMA_PUT && d->len <= PLX_RMA_COPY_LEN && !wants_request(p);
	rc = d->len == 0 ? 0 : do_now(w, d, what, buf, hides);
	if (rc != -EAGAIN) {
		if (buf->dt != NULL)
			rc = buf->dt->finish(buf->dt, rc);
		return ucp_req_ended(w, p, rc);
	}
	if (p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)
		return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_NO_RESOURCE));
	req = ucp_req_get(w, p, buf);
	if (req == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	plx_worker_rma(w->core, d, req);
	taken = d->kind == PLX_RMA_PUT && !wants_request(p) && plx_worker_rma_is_taken(w->core, req);
	ret = ucp_req_posted_simple(req, p);
	if (taken) {
		ucp_request_free(ret);
		ret = NULL;
	}
	return ret;
}

static ucs_status_ptr_t
put_get(ucp_ep_h ep, uint8_t kind, struct ucp_buf *buf, uint64_t remote, ucp_rkey_h rkey,
	const struct ucp_post *p, bool nbi)
{
	struct plx_rma_do d = {.ep = ep->user.ep, .conn_id = ep->user.conn_id,
		.rkey = ucp_rkey_core(rkey), .buf = buf->addr, .len = buf->len, .remote = remote,
		.kind = kind, .nbi = nbi, .late = (p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) == 0};
	ucs_status_ptr_t ret;

	if ((ep->worker->context->features & UCP_FEATURE_RMA) == 0 ||
		(rkey == NULL && buf->len != 0))
		return UCS_STATUS_PTR(ucp_buf_drop(buf, UCS_ERR_INVALID_PARAM));
	ucp_lock(ep->worker);
	ret = start(ep->worker, &d, kind == PLX_RMA_PUT ? PLX_RKEY_PUT : PLX_RKEY_GET, buf, p, true);
	ucp_unlock(ep->worker);
	return ret;
}

/*
 * Pieces here and contiguous memory there, through the device. Called with the lock.
 * @return 0 all are moved; -EAGAIN they need a request; or an error
 */
static int
iov_now(ucp_ep_h ep, uint8_t kind, const ucp_dt_iov_t *iov, size_t n, uint64_t remote)
{
	struct plx_rma_piece v[PLX_RMA_BURST];
	unsigned k = 0;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (iov[i].length != 0)
			v[k++] = (struct plx_rma_piece){iov[i].buffer, remote, iov[i].length,
				UCS_MEMORY_TYPE_HOST};
		remote += iov[i].length;
		if (k == PLX_RMA_BURST || (i + 1 == n && k > 0)) {
			rc = plx_worker_rma_pieces(ep->worker->core, ep->user.ep, kind, v, &k, 0);
			k = 0;
		}
	}
	return rc;
}

static ucs_status_ptr_t
put_get_iov(ucp_ep_h ep, uint8_t kind, const ucp_dt_iov_t *iov, size_t n, struct ucp_buf *buf,
	uint64_t remote, ucp_rkey_h rkey, const struct ucp_post *p)
{
	const uint8_t what = kind == PLX_RMA_PUT ? PLX_RKEY_PUT : PLX_RKEY_GET;
	const struct plx_rkey *k = ucp_rkey_core(rkey);
	ucs_status_ptr_t ret;
	int rc = -EAGAIN;

	ucp_lock(ep->worker);
	if (is_in_reach(ep, k, what, remote, buf->len) && (k->now & what) == 0)
		rc = iov_now(ep, kind, iov, n, remote);
	if (rc == -EAGAIN) /* what was moved is moved again */
		ret = put_get(ep, kind, buf, remote, rkey, p, false);
	else
		ret = ucp_req_ended(ep->worker, p, buf->dt->finish(buf->dt, rc));
	ucp_unlock(ep->worker);
	return ret;
}

/* --- lists of pieces --- */

/* One operation over lists: local pieces, remote ones, and parameters of the post. */
struct sgl {
	ucp_dt_local_sgl_t local;
	ucp_dt_remote_sgl_t remote;
	size_t n;
	uint64_t bytes; /* of all */
	uint8_t kind; /* enum plx_rma_kind */
	uint8_t what; /* enum plx_rkey_can */
};

static bool
has(uint64_t mask, uint64_t field, const void *array)
{
	return (mask & field) != 0 && array != NULL;
}

/* A missing field is NULL from here on. @return whether all required ones are set */
static bool
sgl_take(struct sgl *s, const void *buffer, size_t count, const ucp_request_param_t *param)
{
	const uint32_t needed = UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE;
	const ucp_dt_local_sgl_t *local = buffer;
	const ucp_dt_remote_sgl_t *remote = param->remote;
	uint64_t mask;

	if ((param->op_attr_mask & needed) != needed || local == NULL || remote == NULL ||
		param->remote_datatype != ucp_dt_make_sgl() ||
		((param->op_attr_mask & UCP_OP_ATTR_FIELD_REMOTE_COUNT) != 0 &&
			param->remote_count != count))
		return false;
	mask = local->field_mask;
	if (!has(mask, UCP_DT_LOCAL_SGL_FIELD_BUFFERS, local->buffers) ||
		!has(mask, UCP_DT_LOCAL_SGL_FIELD_LENGTHS, local->lengths) ||
		!has(remote->field_mask, UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS, remote->remote_addrs) ||
		!has(remote->field_mask, UCP_DT_REMOTE_SGL_FIELD_LENGTHS, remote->lengths) ||
		!has(remote->field_mask, UCP_DT_REMOTE_SGL_FIELD_RKEYS, remote->rkeys))
		return false;
	/* A field that is set has an array; repeats have their distance, too. */
	if (((mask & UCP_DT_LOCAL_SGL_FIELD_MEMHS) && local->memhs == NULL) ||
		((mask & UCP_DT_LOCAL_SGL_FIELD_COUNTS) && local->counts == NULL) ||
		((mask & UCP_DT_LOCAL_SGL_FIELD_STRIDES) && local->strides == NULL) ||
		((mask & UCP_DT_LOCAL_SGL_FIELD_COUNTS) == 0) !=
			((mask & UCP_DT_LOCAL_SGL_FIELD_STRIDES) == 0))
		return false;
	s->local.buffers = local->buffers;
	s->local.lengths = local->lengths;
	s->local.memhs = mask & UCP_DT_LOCAL_SGL_FIELD_MEMHS ? local->memhs : NULL;
	s->local.counts = mask & UCP_DT_LOCAL_SGL_FIELD_COUNTS ? local->counts : NULL;
	s->local.strides = mask & UCP_DT_LOCAL_SGL_FIELD_STRIDES ? local->strides : NULL;
	s->remote = *remote;
	s->n = count;
	return true;
}

/* Of a piece: repeats, distance, and total bytes. @return whether these are in range */
static bool
sgl_piece(const struct sgl *s, size_t i, size_t *times, size_t *stride, size_t *bytes)
{
	*times = s->local.counts != NULL ? s->local.counts[i] : 1;
	*stride = s->local.strides != NULL ? s->local.strides[i] : 0;
	return !__builtin_mul_overflow(*times, s->local.lengths[i], bytes);
}

/* Whether a piece is inside its region. */
static bool
sgl_in_memh(const struct sgl *s, size_t i, size_t times, size_t stride)
{
	size_t at = (uintptr_t)s->local.buffers[i], len = s->local.lengths[i], more;
	const ucp_mem_h m = s->local.memhs[i];
	size_t base = m != NULL ? (uintptr_t)m->address : 0;

	if (m == NULL || __builtin_mul_overflow(times > 0 ? times - 1 : 0, stride, &more) ||
		__builtin_add_overflow(more, len, &more))
		return false;
	return at >= base && at - base <= m->length && more <= m->length - (at - base);
}

/* All of them before any is begun, so that a refused list has moved nothing; and their bytes. @return 0 or -errno */
static int
sgl_check(struct sgl *s)
{
	s->bytes = 0;
	for (size_t i = 0; i < s->n; i++) {
		size_t times, stride, bytes;
		int rc;

		if (s->remote.rkeys[i] == NULL || !sgl_piece(s, i, &times, &stride, &bytes) ||
			bytes != s->remote.lengths[i] ||
			(s->local.memhs != NULL && !sgl_in_memh(s, i, times, stride)))
			return -EINVAL;
		rc = plx_rkey_check(ucp_rkey_core(s->remote.rkeys[i]), s->what,
			s->remote.remote_addrs[i], bytes);
		if (rc != 0)
			return rc;
		s->bytes += bytes;
	}
	return 0;
}

/* A list's request. */
struct sgl_all {
	PLX_REQ_HEAD;
	uint64_t left; /* pieces that are under way */
	int err;       /* the first that one of them had */
};

static struct sgl_all *
sgl_all(struct plx_req *req)
{
	return (struct sgl_all *)(void *)req;
}

static void
sgl_piece_done(struct plx_req *req)
{
	struct plx_req *all = req->cb_arg;
	ucp_worker_h w = plx_req_owner(all);

	if (req->status != 0 && sgl_all(all)->err == 0)
		sgl_all(all)->err = req->status;
	ucp_request_free(plx_req_user(req));
	if (--sgl_all(all)->left > 0)
		return;
	all->status = sgl_all(all)->err;
	plx_worker_postpone(w->core, all);
}

/* Blocks of a list that the device moves by one call. */
struct sgl_burst {
	struct plx_rma_piece v[PLX_RMA_BURST];
	ucp_rkey_h rkeys[PLX_RMA_BURST];
	unsigned n;
};

/* A block by itself. Called with the lock. @return 0 or -errno */
static int
sgl_one(ucp_ep_h ep, const struct sgl *s, const struct plx_rma_piece *v, ucp_rkey_h rkey,
	struct plx_req *all)
{
	const struct ucp_post p = {.done = sgl_piece_done, .cb_arg = all};
	const struct plx_rma_do d = {.ep = ep->user.ep, .conn_id = ep->user.conn_id,
		.rkey = ucp_rkey_core(rkey), .buf = v->local, .len = v->len, .remote = v->remote,
		.kind = s->kind, .late = true};
	struct ucp_buf buf = {d.buf, d.len, NULL};
	ucs_status_ptr_t ret;

	++sgl_all(all)->left;
	ret = start(ep->worker, &d, s->what, &buf, &p, false); /* the list reports its errors */
	if (!UCS_PTR_IS_PTR(ret))
		--sgl_all(all)->left;
	return UCS_PTR_IS_ERR(ret) ? ucp_status_errno(UCS_PTR_STATUS(ret)) : 0;
}

/* Called with the lock. @return 0 or -errno */
static int
sgl_burst(ucp_ep_h ep, const struct sgl *s, struct sgl_burst *b, struct plx_req *all)
{
	unsigned i = b->n;
	int rc = 0;

	if (b->n > 0)
		rc = plx_worker_rma_pieces(ep->worker->core, ep->user.ep, s->kind, b->v, &i, s->bytes);
	if (rc == -EAGAIN)
		for (rc = 0; i < b->n && rc == 0; i++)
			rc = sgl_one(ep, s, &b->v[i], b->rkeys[i], all);
	b->n = 0;
	return rc;
}

/* The blocks of a piece: one, if they are adjacent. Called with the lock. @return 0 or -errno */
static int
sgl_begin(ucp_ep_h ep, const struct sgl *s, size_t i, struct sgl_burst *b, struct plx_req *all)
{
	ucp_rkey_h rkey = s->remote.rkeys[i];
	struct plx_rma_piece v = {s->local.buffers[i], s->remote.remote_addrs[i], s->local.lengths[i],
		UCS_MEMORY_TYPE_HOST};
	bool here = (ucp_rkey_core(rkey)->now & s->what) != 0;
	size_t times, stride, bytes;
	int rc = 0;

	(void)sgl_piece(s, i, &times, &stride, &bytes);
	if (stride == v.len) {
		v.len = bytes;
		times = 1;
	}
	for (; bytes > 0 && times > 0 && rc == 0; times--) {
		if (here) {
			rc = sgl_one(ep, s, &v, rkey, all);
		} else {
			b->v[b->n] = v;
			b->rkeys[b->n++] = rkey;
			rc = b->n == PLX_RMA_BURST ? sgl_burst(ep, s, b, all) : 0;
		}
		v.local = (char *)v.local + stride;
		v.remote += v.len;
	}
	return rc;
}

/* A put or get of many pieces, complete when the last one is. Called with the lock. */
static ucs_status_ptr_t
sgl_run(ucp_ep_h ep, const struct sgl *s, const struct ucp_post *p)
{
	ucp_worker_h w = ep->worker;
	struct plx_req *all = ucp_req_get(w, p, NULL);
	struct sgl_burst b;
	int rc = 0;

	if (all == NULL)
		return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
	all->len = s->bytes;
	sgl_all(all)->err = 0;
	sgl_all(all)->left = 1; /* this call */
	b.n = 0;
	for (size_t i = 0; i < s->n && rc == 0; i++)
		rc = sgl_begin(ep, s, i, &b, all);
	if (rc == 0)
		rc = sgl_burst(ep, s, &b, all);
	if (rc != 0 && sgl_all(all)->err == 0)
		sgl_all(all)->err = rc;
	if (--sgl_all(all)->left == 0) {
		rc = sgl_all(all)->err;
		ucp_req_drop(all);
		return ucp_req_ended(w, p, rc);
	}
	all->done = p->done;
	return plx_req_user(all);
}

static ucs_status_ptr_t
put_get_sgl(ucp_ep_h ep, uint8_t kind, const void *buffer, size_t count, uint64_t remote,
	ucp_rkey_h rkey, const ucp_request_param_t *param, const struct ucp_post *p)
{
	struct sgl s = {.kind = kind, .what = kind == PLX_RMA_PUT ? PLX_RKEY_PUT : PLX_RKEY_GET};
	ucs_status_ptr_t ret;
	int rc;

	if ((ep->worker->context->features & UCP_FEATURE_RMA) == 0 || rkey != UCP_RKEY_INVALID ||
		remote != UCP_REMOTE_ADDR_INVALID || !sgl_take(&s, buffer, count, param))
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	rc = sgl_check(&s);
	if (rc != 0)
		return UCS_STATUS_PTR(ucp_status(rc));
	if (p->mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)
		return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE); /* some of many might be complete, and others not */
	ucp_lock(ep->worker);
	ret = sgl_run(ep, &s, p);
	ucp_unlock(ep->worker);
	return ret;
}

static __rte_noinline ucs_status_ptr_t
put_get_nbx(ucp_ep_h ep, uint8_t kind, const void *buffer, size_t count, uint64_t remote,
	ucp_rkey_h rkey, const ucp_request_param_t *param)
{
	const uint32_t many = UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE |
		UCP_OP_ATTR_FIELD_REMOTE_COUNT;
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);
	ucs_status_t status = ucp_post_check(ep->worker, param);
	struct ucp_buf buf;

	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	if ((p.mask & UCP_OP_ATTR_FIELD_DATATYPE) && param->datatype == ucp_dt_make_sgl() &&
		ucp_param_is_device(ep->worker, param))
		return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED); /* its pieces are not copied */
	if ((p.mask & UCP_OP_ATTR_FIELD_DATATYPE) && param->datatype == ucp_dt_make_sgl())
		return put_get_sgl(ep, kind, buffer, count, remote, rkey, param, &p);
	if (p.mask & many)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	status = ucp_buf_open_param(ep->worker, param, buffer, count, kind == PLX_RMA_GET, &buf);
	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	if (buf.dt != NULL && (param->datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV)
		return put_get_iov(ep, kind, buffer, count, &buf, remote, rkey, &p);
	return put_get(ep, kind, &buf, remote, rkey, &p, false);
}

/* Attributes and datatype are those of plain bytes, for which a memory handle has no effect. */
static inline bool
is_plain(const ucp_request_param_t *param)
{
	uint32_t odd = param->op_attr_mask & ~((uint32_t)PLAIN | UCP_OP_ATTR_FIELD_MEMH);

	return likely((odd == 0 || ucp_post_is_host(param, odd)) &&
		((param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0 ||
			param->datatype == ucp_dt_make_contig(1)));
}

/* By the device, without a request. @return 0; -EAGAIN it takes more; or why it fails */
static __rte_always_inline int
put_quick(ucp_ep_h ep, const struct plx_rkey *k, const void *buffer, size_t count, uint64_t remote,
	enum plx_gate_mode mode)
{
	ucp_worker_h w = ep->worker;
	enum plx_gate_pass pass = ucp_begin(w, mode);
	int rc;

	if (mode == PLX_GATE_SHARED && pass == PLX_GATE_NOT)
		return -EAGAIN;
	rc = plx_worker_put_quick(w->core, ep->user.ep, k, buffer, count, remote, mode);
	ucp_end(w, mode, pass, true);
	return rc;
}

static __rte_noinline int
put_quick_locked(ucp_ep_h ep, const struct plx_rkey *k, const void *buffer, size_t count, uint64_t remote)
{
	return put_quick(ep, k, buffer, count, remote, PLX_GATE_LOCKED);
}

/* Its threads share the record of a fence. */
static __rte_noinline int
put_quick_shared(ucp_ep_h ep, const struct plx_rkey *k, const void *buffer, size_t count, uint64_t remote)
{
	int rc;

	ucp_lock(ep->worker);
	rc = put_quick(ep, k, buffer, count, remote, PLX_GATE_SHARED);
	ucp_unlock(ep->worker);
	return rc;
}

ucs_status_ptr_t
ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
	const ucp_request_param_t *param)
{
	const struct plx_rkey *k = ucp_rkey_core(rkey);
	ucp_worker_h w = ep->worker;
	int rc;

	if (likely(count != 0 && is_plain(param) &&
		    is_in_reach(ep, k, PLX_RKEY_PUT, remote_addr, count))) {
		if (likely(is_mapped(ep, k, PLX_RKEY_PUT))) {
			plx_worker_busy(w->core);
			plx_copy(plx_rkey_here(k, remote_addr), buffer, count);
			return NULL;
		}
		if (w->mode == PLX_GATE_SINGLE)
			rc = put_quick(ep, k, buffer, count, remote_addr, PLX_GATE_SINGLE);
		else if (w->mode == PLX_GATE_LOCKED)
			rc = put_quick_locked(ep, k, buffer, count, remote_addr);
		else
			rc = put_quick_shared(ep, k, buffer, count, remote_addr);
		if (likely(rc != -EAGAIN))
			return UCS_STATUS_PTR(ucp_status(rc));
	}
	return put_get_nbx(ep, PLX_RMA_PUT, buffer, count, remote_addr, rkey, param);
}

ucs_status_ptr_t
ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
	const ucp_request_param_t *param)
{
	const struct plx_rkey *k = ucp_rkey_core(rkey);

	if (likely(count != 0 && is_plain(param) &&
		    is_direct(ep, k, PLX_RKEY_GET, remote_addr, count))) {
		plx_worker_busy(ep->worker->core);
		plx_copy(buffer, plx_rkey_here(k, remote_addr), count);
		return NULL;
	}
	return put_get_nbx(ep, PLX_RMA_GET, buffer, count, remote_addr, rkey, param);
}

/* The nb and nbi forms: plain bytes. */
static inline ucs_status_ptr_t
put_get_nb(ucp_ep_h ep, uint8_t kind, const void *buffer, size_t length, uint64_t remote,
	ucp_rkey_h rkey, ucp_send_callback_t cb, bool nbi)
{
	struct ucp_buf buf = {(void *)(uintptr_t)buffer, length, NULL};
	struct ucp_post p = {.done = cb != NULL ? ucp_done_send_nb : NULL, .cb = (void (*)(void))cb};

	return put_get(ep, kind, &buf, remote, rkey, &p, nbi);
}

/* The caller drops the request. @return OK, INPROGRESS, or the error */
static ucs_status_t
forget(ucs_status_ptr_t ptr)
{
	if (!UCS_PTR_IS_PTR(ptr))
		return UCS_PTR_RAW_STATUS(ptr);
	ucp_request_free(ptr);
	return UCS_INPROGRESS;
}

/* Called with the lock. @return OK, INPROGRESS, or the error */
static ucs_status_t
put_get_nbi(ucp_ep_h ep, uint8_t kind, void *buffer, size_t length, uint64_t remote, ucp_rkey_h rkey)
{
	struct plx_rma_do d = {.ep = ep->user.ep, .conn_id = ep->user.conn_id,
		.rkey = ucp_rkey_core(rkey), .buf = buffer, .len = length, .remote = remote, .kind = kind,
		.nbi = true, .late = true};
	int rc;

	if (length != 0 && is_in_reach(ep, d.rkey, kind == PLX_RMA_PUT ? PLX_RKEY_PUT : PLX_RKEY_GET, remote, length)) {
		rc = plx_worker_rma_now(ep->worker->core, &d, true);
		if (rc != -EAGAIN)
			return rc == -EINPROGRESS ? UCS_INPROGRESS : ucp_status(rc);
	}
	return forget(put_get_nb(ep, kind, buffer, length, remote, rkey, NULL, true));
}

ucs_status_ptr_t
ucp_put_nb(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey,
	ucp_send_callback_t cb)
{
	return put_get_nb(ep, PLX_RMA_PUT, buffer, length, remote_addr, rkey, cb, false);
}

ucs_status_ptr_t
ucp_get_nb(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey,
	ucp_send_callback_t cb)
{
	return put_get_nb(ep, PLX_RMA_GET, buffer, length, remote_addr, rkey, cb, false);
}

ucs_status_t
ucp_put_nbi(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey)
{
	const struct plx_rkey *k = ucp_rkey_core(rkey);
	ucs_status_t status;

	if (likely(length != 0 && is_direct(ep, k, PLX_RKEY_PUT, remote_addr, length))) {
		plx_worker_busy(ep->worker->core);
		plx_copy(plx_rkey_here(k, remote_addr), buffer, length);
		return UCS_OK;
	}
	ucp_lock(ep->worker); /* keep what another thread's progress completes meanwhile */
	status = put_get_nbi(ep, PLX_RMA_PUT, (void *)(uintptr_t)buffer, length, remote_addr, rkey);
	ucp_unlock(ep->worker);
	return status;
}

ucs_status_t
ucp_get_nbi(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey)
{
	const struct plx_rkey *k = ucp_rkey_core(rkey);
	ucs_status_t status;

	if (likely(length != 0 && is_direct(ep, k, PLX_RKEY_GET, remote_addr, length))) {
		plx_worker_busy(ep->worker->core);
		plx_copy(buffer, plx_rkey_here(k, remote_addr), length);
		return UCS_OK;
	}
	ucp_lock(ep->worker);
	status = put_get_nbi(ep, PLX_RMA_GET, buffer, length, remote_addr, rkey);
	ucp_unlock(ep->worker);
	return status;
}

/* A blocking form in a callback, which can't wait: at once or not at all. */
static const ucp_request_param_t at_once = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};

static ucs_status_t
at_once_status(ucs_status_ptr_t ptr)
{
	ucs_status_t status = UCS_PTR_STATUS(ptr);

	return status == UCS_ERR_NO_RESOURCE ? UCS_ERR_BUSY : status;
}

ucs_status_t
ucp_put(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey)
{
	if (unlikely(ucp_worker_in_callback(ep->worker)))
		return at_once_status(ucp_put_nbx(ep, buffer, length, remote_addr, rkey, &at_once));
	return ucp_req_wait(ep->worker, ucp_put_nb(ep, buffer, length, remote_addr, rkey, NULL));
}

ucs_status_t
ucp_get(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey)
{
	if (unlikely(ucp_worker_in_callback(ep->worker)))
		return at_once_status(ucp_get_nbx(ep, buffer, length, remote_addr, rkey, &at_once));
	return ucp_req_wait(ep->worker, ucp_get_nb(ep, buffer, length, remote_addr, rkey, NULL));
}

/* --- atomics --- */

static inline uint8_t
can_atomic(size_t size, bool fetch)
{
	if (size == 8)
		return fetch ? PLX_RKEY_FETCH64 : PLX_RKEY_POST64;
	return fetch ? PLX_RKEY_FETCH32 : PLX_RKEY_POST32;
}

/* A word of the application's. */
static inline uint64_t
load(const void *p, size_t size)
{
	uint64_t v = 0;

	if (size == 8)
		memcpy(&v, p, 8);
	else
		memcpy(&v, p, 4);
	return v;
}

/* The request is not needed: the operand is copied, nothing comes back. */
static inline bool
is_posted(const struct plx_rma_do *d, const struct ucp_post *p)
{
	return !d->fetch && !wants_request(p);
}

/* With all checks. */
static __rte_noinline ucs_status_ptr_t
atomic_slow(ucp_ep_h ep, struct plx_rma_do *d, ucp_rkey_h rkey, const struct ucp_post *p, bool post)
{
	const uint64_t feature = d->len == 8 ? UCP_FEATURE_AMO64 : UCP_FEATURE_AMO32;
	struct ucp_buf buf = {d->buf, d->len, NULL};
	ucs_status_ptr_t ret;

	if ((d->len != 4 && d->len != 8) || d->remote % d->len != 0 || rkey == NULL ||
		(ep->worker->context->features & feature) == 0)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	d->ep = ep->user.ep;
	d->conn_id = ep->user.conn_id;
	d->rkey = ucp_rkey_core(rkey);
	d->kind = PLX_RMA_ATOMIC;
	d->nbi = post;
	ucp_lock(ep->worker);
	ret = start(ep->worker, d, can_atomic(d->len, d->fetch), &buf, p, false);
	if (post && UCS_PTR_IS_PTR(ret)) {
		ucp_request_free(ret);
		ret = NULL;
	}
	ucp_unlock(ep->worker);
	return ret;
}

/* The core's names of the operations of ucp_atomic_op_nbx(). */
static const uint8_t op_of[UCP_ATOMIC_OP_LAST] = {
	[UCP_ATOMIC_OP_ADD] = PLX_RMA_ADD,
	[UCP_ATOMIC_OP_SWAP] = PLX_RMA_SWAP,
	[UCP_ATOMIC_OP_CSWAP] = PLX_RMA_CSWAP,
	[UCP_ATOMIC_OP_AND] = PLX_RMA_AND,
	[UCP_ATOMIC_OP_OR] = PLX_RMA_OR,
	[UCP_ATOMIC_OP_XOR] = PLX_RMA_XOR,
};

static __rte_noinline ucs_status_ptr_t
atomic_nbx_slow(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count,
	uint64_t remote, ucp_rkey_h rkey, const ucp_request_param_t *param)
{
	struct ucp_post p = ucp_post_of(param, ucp_done_send_nbx);
	ucs_status_t status = ucp_post_check(ep->worker, param);
	struct plx_rma_do d = {.remote = remote};

	if (status != UCS_OK)
		return UCS_STATUS_PTR(status);
	if (ucp_param_is_device(ep->worker, param))
		return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED); /* no processor copies the reply */
	if ((unsigned)opcode >= UCP_ATOMIC_OP_LAST || count != 1 ||
		buffer == NULL || !(p.mask & UCP_OP_ATTR_FIELD_DATATYPE) ||
		(p.mask & UCP_OP_ATTR_FIELD_MEMH) ||
		(param->datatype & UCP_DATATYPE_CLASS_MASK) != UCP_DATATYPE_CONTIG)
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	d.len = param->datatype >> UCP_DATATYPE_SHIFT;
	d.fetch = (p.mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER) != 0;
	d.op = op_of[opcode];
	if ((d.len != 4 && d.len != 8) || (d.fetch && param->reply_buffer == NULL) ||
		(!d.fetch && (opcode == UCP_ATOMIC_OP_SWAP || opcode == UCP_ATOMIC_OP_CSWAP)))
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	d.operand[0] = load(buffer, d.len);
	if (d.fetch) {
		d.buf = param->reply_buffer;
		if (opcode == UCP_ATOMIC_OP_CSWAP)
			d.operand[1] = load(param->reply_buffer, d.len);
	}
	return atomic_slow(ep, &d, rkey, &p, is_posted(&d, &p));
}

/* A word of the application's, of constant length. */
static inline void
store(void *p, uint64_t v, size_t size)
{
	if (size == 8)
		memcpy(p, &v, 8);
	else
		memcpy(p, &v, 4);
}

/* On memory that is mapped here. @param size 4 or 8, a constant */
static inline ucs_status_ptr_t
atomic_direct(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, uint64_t remote_addr, ucp_rkey_h rkey,
	const ucp_request_param_t *param, size_t size)
{
	bool fetch = (param->op_attr_mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER) != 0;
	const struct plx_rkey *k = ucp_rkey_core(rkey);
	uint64_t a, b = 0;

	if (unlikely(remote_addr % size != 0 || !is_direct(ep, k, can_atomic(size, fetch), remote_addr, size)))
		return atomic_nbx_slow(ep, opcode, buffer, 1, remote_addr, rkey, param);
	plx_worker_busy(ep->worker->core);
	a = load(buffer, size);
	if (fetch && opcode == UCP_ATOMIC_OP_CSWAP)
		b = load(param->reply_buffer, size);
	a = plx_rma_atomic_do(plx_rkey_here(k, remote_addr), op_of[opcode], size, a, b);
	if (fetch)
		store(param->reply_buffer, a, size);
	return NULL;
}

/* Whether it is one word, and the shortest path is sufficient. */
static inline bool
is_plain_atomic(ucp_atomic_op_t opcode, size_t count, const ucp_request_param_t *param)
{
	uint32_t odd = param->op_attr_mask & ~((uint32_t)PLAIN | UCP_OP_ATTR_FIELD_REPLY_BUFFER);
	bool replies = opcode == UCP_ATOMIC_OP_SWAP || opcode == UCP_ATOMIC_OP_CSWAP;

	return likely(odd == 0 || ucp_post_is_host(param, odd)) && count == 1 && (unsigned)opcode < UCP_ATOMIC_OP_LAST &&
	       (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0 &&
	       (likely(!replies) || (param->op_attr_mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER) != 0);
}

ucs_status_ptr_t
ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count,
	uint64_t remote_addr, ucp_rkey_h rkey, const ucp_request_param_t *param)
{
	if (likely(is_plain_atomic(opcode, count, param))) {
		if (param->datatype == ucp_dt_make_contig(8))
			return atomic_direct(ep, opcode, buffer, remote_addr, rkey, param, 8);
		if (param->datatype == ucp_dt_make_contig(4))
			return atomic_direct(ep, opcode, buffer, remote_addr, rkey, param, 4);
	}
	return atomic_nbx_slow(ep, opcode, buffer, count, remote_addr, rkey, param);
}

ucs_status_t
ucp_atomic_post(ucp_ep_h ep, ucp_atomic_post_op_t opcode, uint64_t value, size_t op_size,
	uint64_t remote_addr, ucp_rkey_h rkey)
{
	static const uint8_t ops[UCP_ATOMIC_POST_OP_LAST] = {
		[UCP_ATOMIC_POST_OP_ADD] = PLX_RMA_ADD,
		[UCP_ATOMIC_POST_OP_AND] = PLX_RMA_AND,
		[UCP_ATOMIC_POST_OP_OR] = PLX_RMA_OR,
		[UCP_ATOMIC_POST_OP_XOR] = PLX_RMA_XOR,
	};
	struct plx_rma_do d = {.len = op_size, .remote = remote_addr, .operand = {value}};
	struct ucp_post p = {.mask = 0};

	if ((unsigned)opcode >= UCP_ATOMIC_POST_OP_LAST)
		return UCS_ERR_INVALID_PARAM;
	d.op = ops[opcode];
	return UCS_PTR_RAW_STATUS(atomic_slow(ep, &d, rkey, &p, true));
}

ucs_status_ptr_t
ucp_atomic_fetch_nb(ucp_ep_h ep, ucp_atomic_fetch_op_t opcode, uint64_t value, void *result,
	size_t op_size, uint64_t remote_addr, ucp_rkey_h rkey, ucp_send_callback_t cb)
{
	static const uint8_t ops[UCP_ATOMIC_FETCH_OP_LAST] = {
		[UCP_ATOMIC_FETCH_OP_FADD] = PLX_RMA_ADD,
		[UCP_ATOMIC_FETCH_OP_SWAP] = PLX_RMA_SWAP,
		[UCP_ATOMIC_FETCH_OP_CSWAP] = PLX_RMA_CSWAP,
		[UCP_ATOMIC_FETCH_OP_FAND] = PLX_RMA_AND,
		[UCP_ATOMIC_FETCH_OP_FOR] = PLX_RMA_OR,
		[UCP_ATOMIC_FETCH_OP_FXOR] = PLX_RMA_XOR,
	};
	struct plx_rma_do d = {.buf = result, .len = op_size, .remote = remote_addr,
		.operand = {value}, .fetch = true};
	struct ucp_post p = {.done = cb != NULL ? ucp_done_send_nb : NULL, .cb = (void (*)(void))cb};

	if ((unsigned)opcode >= UCP_ATOMIC_FETCH_OP_LAST || result == NULL ||
		(op_size != 4 && op_size != 8))
		return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
	d.op = ops[opcode];
	if (opcode == UCP_ATOMIC_FETCH_OP_CSWAP)
		d.operand[1] = load(result, op_size);
	return atomic_slow(ep, &d, rkey, &p, false);
}

/* The blocking forms. @param result NULL: not fetching */
static ucs_status_t
atomic_wait(ucp_ep_h ep, uint8_t op, size_t size, uint64_t a, uint64_t b, void *result,
	uint64_t remote, ucp_rkey_h rkey)
{
	struct plx_rma_do d = {.buf = result, .len = size, .remote = remote, .operand = {a, b},
		.op = op, .fetch = result != NULL};
	struct ucp_post p = {.mask = 0};

	if (unlikely(ucp_worker_in_callback(ep->worker))) {
		p.mask = at_once.op_attr_mask;
		return at_once_status(atomic_slow(ep, &d, rkey, &p, false));
	}
	return ucp_req_wait(ep->worker, atomic_slow(ep, &d, rkey, &p, false));
}

ucs_status_t
ucp_atomic_add32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr, ucp_rkey_h rkey)
{
	return atomic_wait(ep, PLX_RMA_ADD, 4, add, 0, NULL, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_add64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr, ucp_rkey_h rkey)
{
	return atomic_wait(ep, PLX_RMA_ADD, 8, add, 0, NULL, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_fadd32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr, ucp_rkey_h rkey, uint32_t *result)
{
	return result == NULL ? UCS_ERR_INVALID_PARAM
			      : atomic_wait(ep, PLX_RMA_ADD, 4, add, 0, result, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_fadd64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr, ucp_rkey_h rkey, uint64_t *result)
{
	return result == NULL ? UCS_ERR_INVALID_PARAM
			      : atomic_wait(ep, PLX_RMA_ADD, 8, add, 0, result, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_swap32(ucp_ep_h ep, uint32_t swap, uint64_t remote_addr, ucp_rkey_h rkey,
	uint32_t *result)
{
	return result == NULL ? UCS_ERR_INVALID_PARAM
			      : atomic_wait(ep, PLX_RMA_SWAP, 4, swap, 0, result, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_swap64(ucp_ep_h ep, uint64_t swap, uint64_t remote_addr, ucp_rkey_h rkey,
	uint64_t *result)
{
	return result == NULL ? UCS_ERR_INVALID_PARAM
			      : atomic_wait(ep, PLX_RMA_SWAP, 8, swap, 0, result, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_cswap32(ucp_ep_h ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
	ucp_rkey_h rkey, uint32_t *result)
{
	return result == NULL ? UCS_ERR_INVALID_PARAM
			      : atomic_wait(ep, PLX_RMA_CSWAP, 4, compare, swap, result, remote_addr, rkey);
}

ucs_status_t
ucp_atomic_cswap64(ucp_ep_h ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
	ucp_rkey_h rkey, uint64_t *result)
{
	return result == NULL ? UCS_ERR_INVALID_PARAM
			      : atomic_wait(ep, PLX_RMA_CSWAP, 8, compare, swap, result, remote_addr, rkey);
}

ucs_status_t
ucp_worker_fence(ucp_worker_h w)
{
	int rc;

	ucp_lock(w);
	rc = plx_worker_fence(w->core);
	ucp_unlock(w);
	/* Operations on mapped memory are complete; this orders later loads after them. */
	atomic_thread_fence(memory_order_seq_cst);
	return ucp_status(rc);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_int.h - the UCP face: its handles, and between its files
 *
 * Design notes
 * A face checks arguments, finds the core's object, calls one plx_ function and
 * maps the result. What it adds is API-shaped: the request's layout (the handle
 * points behind the core's request), callbacks in UCP's forms, and the rule of
 * when one may be called: in ucp_worker_progress(), and for a receive that is cancelled in
 * ucp_request_cancel(). So a callback may call anything: it may close its endpoint and destroy its
 * worker, which then goes when the call that the callback runs in returns.
 *
 * A worker of UCS_THREAD_MODE_MULTI has a lock, which callbacks may take again as they
 * run inside it; the other modes never touch it.
 */
#ifndef UCP_INT_H
#define UCP_INT_H

#include <stdbool.h>
#include <sys/queue.h>

#include <ucp/api/ucp.h>

#include "plx_init.h"
#include "plx_worker.h"

PLX_LOG_DECLARE(ucp);

struct ucp_config {
	struct plx_conf conf;
	char prefix[PLX_CONF_NAME_MAX]; /* of ucp_config_read(); "" */
};

struct ucp_context {
	struct plx_conf conf;
	uint64_t features;
	size_t request_size;
	uint64_t tag_sender_mask;
	ucp_request_init_callback_t request_init;
	ucp_request_cleanup_callback_t request_cleanup;
	bool mt_workers_shared;
	_Atomic uint32_t refs; /* the application's, and one for each worker */
	_Atomic uint32_t forks; /* plx_forks when this process began to use it */
	unsigned mem_unknown; /* UCS_MEMORY_TYPE_UNKNOWN of the program's version */
	char name[UCP_ENTITY_NAME_MAX];
};

#define UCP_EP_HASH 256 /* lists over which a worker's eps are spread */

struct ucp_worker {
	struct plx_worker *core;
	ucp_context_h context;
	bool multi; /* lock is in use */
	uint8_t mode; /* enum plx_gate_mode */
	ucs_thread_mode_t thread_mode;
	struct plx_lock lock;
	_Atomic bool in_progress; /* multi; writer: the owner of the lock; a waiting thread need not
	                           * run a turn then */
	uint32_t failed_seen; /* of plx_worker_n_failed() */
	bool doomed;	      /* destroyed in a callback: freed when that has returned */
	ucp_ep_h tell_next;   /* while error handlers run: the next ep */
	LIST_HEAD(ucp_ep_list, ucp_ep) eps;
	struct ucp_ep_list by_conn[UCP_EP_HASH]; /* by the core's ep and the number there */
	uint64_t client_id;
	bool own_event_fd; /* the application has its own: it does not use ours */
	char name[UCP_ENTITY_NAME_MAX];
};

struct ucp_ep {
	struct plx_ep_user user; /* the core's ep is user.ep */
	ucp_worker_h worker;
	ucp_err_handler_cb_t err_cb;
	void *err_arg;
	void *user_data;
	ucp_err_handling_mode_t err_mode;
	bool told; /* err_cb was called */
	bool shown; /* by ucp_table_ep() */
	LIST_ENTRY(ucp_ep) link;
	LIST_ENTRY(ucp_ep) conn_link;
	char name[UCP_ENTITY_NAME_MAX];
};

static inline void
ucp_lock(ucp_worker_h w)
{
	if (unlikely(w->multi))
		plx_lock_enter(&w->lock);
}

static inline void
ucp_unlock(ucp_worker_h w)
{
	if (unlikely(w->multi))
		plx_lock_leave(&w->lock);
}

/**
 * Be the owner for a plain operation, which completes nothing. Each such operation has one body, instantiated for each
 * mode.
 * @return PLX_GATE_NOT (PLX_GATE_SHARED only): the reactor is to do it; else until ucp_end()
 */
static __rte_always_inline enum plx_gate_pass
ucp_begin(ucp_worker_h w, enum plx_gate_mode mode)
{
	if (mode == PLX_GATE_SHARED)
		return plx_worker_begin(w->core);
	if (mode == PLX_GATE_LOCKED)
		plx_lock_enter(&w->lock);
	return PLX_GATE_ENTERED;
}

/** @param turn as for plx_worker_end() */
static __rte_always_inline void
ucp_end(ucp_worker_h w, enum plx_gate_mode mode, enum plx_gate_pass pass, bool turn)
{
	if (mode == PLX_GATE_SHARED)
		plx_worker_end(w->core, pass, turn);
	else if (mode == PLX_GATE_LOCKED)
		plx_lock_leave(&w->lock);
}

/** @return whether the reactor is the owner, so that ucp_begin() would fail. Thread: any. */
static inline bool
ucp_is_held(const struct ucp_worker *w)
{
	return plx_worker_is_held(w->core);
}

/**
 * @return whether a plain send over ep needs the lock of several threads, or fails: a
 *   handle by socket address may get another ep, and one that has failed in a turn of the
 *   reactor reports that later
 */
static inline bool
ucp_ep_is_odd(const struct ucp_ep *ep)
{
	/* relaxed: a turn of this thread failed it, or it may as well have failed a moment later */
	return atomic_load_explicit(&ep->user.err, memory_order_relaxed) != 0 ||
	       (ep->user.conn != NULL && ep->worker->multi);
}

/** As plx_worker_is_flushed(). Thread: any. */
static inline bool
ucp_is_flushed(ucp_worker_h w, const struct plx_ep_user *user)
{
	bool is;

	ucp_lock(w);
	is = plx_worker_is_flushed(w->core, user);
	ucp_unlock(w);
	return is;
}

/* ucp_status.c */

/** Slow path of ucp_status(). */
ucs_status_t ucp_status_of(int err);

/** The UCS status of 0 or -errno. */
static inline ucs_status_t
ucp_status(int err)
{
	return likely(err == 0) ? UCS_OK : ucp_status_of(err);
}

/** The core's -errno of a status from an application. */
int ucp_status_errno(ucs_status_t status);

/* ucp_dt.c */

/** The source or destination of an operation. */
struct ucp_buf {
	void *addr;
	size_t len;	   /* bytes, packed */
	struct plx_dt *dt; /* NULL: contiguous */
};

/**
 * Open a buffer for one operation. ucp_buf_drop() it if no request takes it.
 * @return UCS_OK, or why the datatype can't be used
 */
ucs_status_t ucp_buf_open(ucp_datatype_t dt, const void *buffer, size_t count, bool recv, struct ucp_buf *buf);

/** The same of memory that may not be the host's; ucp_post_check() has accepted its type. */
ucs_status_t ucp_buf_open_odd(ucp_worker_h w, const ucp_request_param_t *param, const void *buffer,
	size_t count, bool recv, struct ucp_buf *buf);

/* Flags that only say what a program optimizes for. */
#define UCP_POST_HINTS (UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND)

/* Attributes that ucp_post_check() has to look at. */
#define UCP_POST_CHECKED ((0xffff0000u & ~UCP_POST_HINTS) | UCP_OP_ATTR_FIELD_MEMORY_TYPE)

#define UCP_GATHER_MAX 2048 /* bytes of ucp_iov_gather() */

/**
 * Copy the pieces of an iov, if they are few bytes: that costs less than a request for them.
 * @param bytes UCP_GATHER_MAX @return whether len is set
 */
bool ucp_iov_gather(const ucp_dt_iov_t *v, size_t n, uint8_t *bytes, size_t *len);

/** @return whether a call names a type of memory that is not the host's. */
static inline bool
ucp_param_is_device(ucp_worker_h w, const ucp_request_param_t *param)
{
	return unlikely(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) &&
	       param->memory_type != UCS_MEMORY_TYPE_HOST &&
	       (unsigned)param->memory_type != w->context->mem_unknown;
}

static inline ucs_status_t
ucp_buf_open_param(ucp_worker_h w, const ucp_request_param_t *param, const void *buffer,
	size_t count, bool recv, struct ucp_buf *buf)
{
	struct ucp_buf typed; /* so that the caller's may be in registers */
	ucs_status_t status;

	if (likely(((param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0 ||
			   param->datatype == ucp_dt_make_contig(1)) &&
		    !ucp_param_is_device(w, param))) {
		buf->addr = (void *)(uintptr_t)buffer;
		buf->len = count;
		buf->dt = NULL;
		return UCS_OK;
	}
	status = ucp_buf_open_odd(w, param, buffer, count, recv, &typed);
	if (status == UCS_OK)
		*buf = typed;
	return status;
}

/**
 * Flags that exclude each other, memory that processors can't access; for UCP_POST_CHECKED only, off the
 * fast path.
 */
ucs_status_t ucp_post_check(ucp_worker_h w, const ucp_request_param_t *param);

/** The same, after ucp_post_check(). */
static inline ucs_status_t
ucp_buf_open_checked(ucp_worker_h w, const ucp_request_param_t *param, const void *buffer,
	size_t count, bool recv, struct ucp_buf *buf)
{
	ucs_status_t status = UCS_OK;

	if (unlikely(param->op_attr_mask & UCP_POST_CHECKED))
		status = ucp_post_check(w, param);
	return likely(status == UCS_OK) ? ucp_buf_open_param(w, param, buffer, count, recv, buf) : status;
}

/** End a buffer that is not used after all. @param status the reason @return status */
static inline ucs_status_t
ucp_buf_drop(struct ucp_buf *buf, ucs_status_t status)
{
	if (unlikely(buf->dt != NULL))
		buf->dt->finish(buf->dt, ucp_status_errno(status));
	return status;
}

/* ucp_request.c */

/** How an operation was posted: the parameters that all nb, nbr and nbx forms share. */
struct ucp_post {
	uint32_t mask;		   /* UCP_OP_ATTR_x */
	void *user;		   /* UCP_OP_ATTR_FIELD_REQUEST */
	void (*done)(struct plx_req *req); /* calls cb in its form; NULL: none */
	void (*cb)(void);
	void *cb_arg;
};

/* @return whether the type of memory, the host's, is the only unusual parameter of a call */
static inline bool
ucp_post_is_host(const ucp_request_param_t *param, uint32_t odd)
{
	return odd == UCP_OP_ATTR_FIELD_MEMORY_TYPE && param->memory_type == UCS_MEMORY_TYPE_HOST;
}

/**
 * @param may unusual attributes that the caller handles
 * @return whether the shortest path is sufficient: no flags but hints, no request of the
 *   user's, contiguous memory
 */
static inline bool
ucp_post_is_plain(const ucp_request_param_t *param, uint32_t may)
{
	uint32_t odd = param->op_attr_mask & (UCP_POST_CHECKED | UCP_OP_ATTR_FIELD_REQUEST) & ~may;

	return (likely(odd == 0) || ucp_post_is_host(param, odd)) &&
	       ((param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0 ||
		       param->datatype == ucp_dt_make_contig(1));
}

/** The same but for the memory, which is an iov. */
static inline bool
ucp_post_is_iov(const ucp_request_param_t *param)
{
	uint32_t odd = param->op_attr_mask & (UCP_POST_CHECKED | UCP_OP_ATTR_FIELD_REQUEST);

	return (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0 &&
	       (param->datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV &&
	       (odd == 0 || ucp_post_is_host(param, odd));
}

/**
 * @return whether a call may return NULL for an operation that is complete at once: no
 *   request is required.
 */
static inline bool
ucp_post_may_end(const ucp_request_param_t *param)
{
	return (param->op_attr_mask & (UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_REQUEST)) == 0;
}

static inline struct ucp_post
ucp_post_of(const ucp_request_param_t *param, void (*done)(struct plx_req *req))
{
	struct ucp_post p = {.mask = param->op_attr_mask};

	if (p.mask & UCP_OP_ATTR_FIELD_REQUEST)
		p.user = param->request;
	if (p.mask & UCP_OP_ATTR_FIELD_CALLBACK) {
		p.done = done;
		p.cb = (void (*)(void))param->cb.send;
		p.cb_arg = p.mask & UCP_OP_ATTR_FIELD_USER_DATA ? param->user_data : NULL;
	}
	return p;
}

/**
 * A request for an operation on buf (NULL for one without), in the user's memory if there
 * is one. NULL: no memory, and buf is dropped.
 */
static inline struct plx_req *
ucp_req_get(ucp_worker_h w, const struct ucp_post *p, struct ucp_buf *buf)
{
	struct plx_req *req;

	if (p->mask & UCP_OP_ATTR_FIELD_REQUEST) {
		req = plx_req_of(p->user);
		plx_worker_req_init(w->core, req);
	} else {
		req = plx_worker_req_get(w->core);
		if (unlikely(req == NULL)) {
			if (buf != NULL)
				ucp_buf_drop(buf, UCS_ERR_NO_MEMORY);
			return NULL;
		}
	}
	if (buf != NULL)
		req->dt = buf->dt;
	req->cb = p->cb;
	req->cb_arg = p->cb_arg;
	/*
	 * Inline the core may complete it before it returns, and then no callback may run:
	 * ucp_req_posted() sets it. Dedicated, callbacks run in progress only.
	 */
	if (plx_worker_has_reactor(w->core))
		req->done = p->done;
	return req;
}

/**
 * The result of a posting call for req, on which the core's function has just been called.
 * @param final set when the operation is complete and the return value says so (NULL or an
 *   error); the caller may then still read the request, and frees it with ucp_req_drop().
 */
static inline ucs_status_ptr_t
ucp_req_posted(struct plx_req *req, const struct ucp_post *p, bool *final)
{
	ucp_worker_h w = plx_req_owner(req);
	void *user = plx_req_user(req);

	*final = false;
	if (plx_worker_has_reactor(w->core))
		return user;
	if (!plx_req_is_done(req)) {
		req->done = p->done;
		return user;
	}
	if (p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
		req->done = p->done;
		plx_worker_postpone(w->core, req);
		return user;
	}
	*final = true;
	return UCS_STATUS_PTR(ucp_status(req->status));
}

/** Free a request that the user never saw. */
static inline void
ucp_req_drop(struct plx_req *req)
{
	if ((atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_USER) == 0)
		plx_req_put(req);
}

/** @return tag and length of the message that a receive got. */
static inline ucp_tag_recv_info_t
ucp_recv_info(const struct plx_req *req)
{
	ucp_tag_recv_info_t info;

	plx_req_info(req, &info.sender_tag, &info.length);
	return info;
}

/** The user's request of an operation that completed at once: a program that polls it sees it complete. */
static inline void
ucp_req_own_ended(ucp_worker_h w, void *user, int rc)
{
	struct plx_req *req = plx_req_of(user);

	plx_worker_req_init(w->core, req);
	req->status = rc;
	req->len = 0;
	/* pairs with the acquire in plx_req_is_done() */
	atomic_store_explicit(&req->flags, PLX_REQ_USER | PLX_REQ_DONE, memory_order_release);
}

/** Post an operation without further results: sends and flushes. */
ucs_status_ptr_t ucp_req_posted_simple(struct plx_req *req, const struct ucp_post *p);

/** Flush an endpoint, or with ep NULL the worker. @return the result of the call */
ucs_status_ptr_t ucp_flush(ucp_worker_h w, ucp_ep_h ep, const struct ucp_post *p);
/* Apart, so that a call with nothing to wait for sets up nothing. */
ucs_status_ptr_t ucp_flush_param(ucp_worker_h w, ucp_ep_h ep, const ucp_request_param_t *param);

/**
 * The result of a call that completed at once: the user's request, if there is one, gets it
 * too.
 */
ucs_status_ptr_t ucp_req_ended(ucp_worker_h w, const struct ucp_post *p, int rc);

/** The request of a receive that completes at once or not at all: the user's, or own. */
struct plx_req *ucp_req_now(ucp_worker_h w, const struct ucp_post *p, const struct ucp_buf *buf,
	struct plx_req *own);

/** Its result is rc, -EAGAIN: nothing happened. @return the result of the call */
ucs_status_ptr_t ucp_req_now_end(struct plx_req *req, int rc);

/**
 * Whether memory of a type can be read and written here.
 * @param type in the version of the program that made the context
 * @return UCS_OK; UCS_ERR_UNSUPPORTED of a device; UCS_ERR_INVALID_PARAM no such type
 */
ucs_status_t ucp_memory_type_check(ucp_context_h c, unsigned type);

/** A send that completes at once or not at all; embedded in the arguments of run(). */
struct ucp_forced {
	void (*run)(void *forced); /* as the owner: sends len bytes at addr, sets rc */
	ucp_ep_h ep;
	const void *addr; /* of the bytes, packed */
	size_t len;
	int rc;
};

/** Send buf so, in any mode and with any datatype. @return the result of the call */
ucs_status_ptr_t ucp_send_forced(struct ucp_forced *f, struct ucp_buf *buf, const struct ucp_post *p);

/** The parameters of an nb call. */
static inline struct ucp_post
ucp_post_nb(void (*done)(struct plx_req *req), void (*cb)(void), uint32_t mask)
{
	return (struct ucp_post){.mask = mask, .done = cb != NULL ? done : NULL, .cb = cb};
}

/**
 * Progress until the request is complete, and free it: for blocking calls. A callback can't
 * wait: UCS_ERR_BUSY, and the operation continues by itself.
 */
ucs_status_t ucp_req_wait(ucp_worker_h w, ucs_status_ptr_t ptr);

/* ucp_listener.c */

struct ucp_conn_request {
	struct plx_conn_req *core;
	struct ucp_listener *listener;
	struct ucp_context *context;
};

/* ucp_context.c */

/**
 * In a forked child with a context of the parent: start the library, and make the context
 * the child's. Workers are made on it as on a new one. Thread: any. Blocks: as the start.
 * Errors: those of the start.
 */
ucs_status_t ucp_context_own(ucp_context_h c);

/** @return whether it does not belong to a parent. Thread: any. */
static inline bool
ucp_context_is_own(const struct ucp_context *c)
{
	/* pairs with the release in own() */
	return atomic_load_explicit(&c->forks, memory_order_acquire) == plx_forks;
}

/** Drop a reference; the last one frees the context. */
void ucp_context_put(ucp_context_h c);

/* ucp_table.c */

/** Print the protocols of an ep, once, if settings of UCX ask for it and it is connected. */
void ucp_table_ep(ucp_ep_h ep);

/** Print the devices of a context, if UCX_PRINT_TRANSPORT_TABLES asks for it. */
void ucp_table_context(ucp_context_h c);

/* ucp_tls.c */

/**
 * Set worker.devices and related settings by UCX's lists of transports and devices, unless
 * they are set already.
 * @return UCS_ERR_NO_DEVICE: the lists leave nothing; UCS_ERR_NO_ELEM: UCX_TLS is empty
 */
ucs_status_t ucp_tls_choose(struct plx_conf *conf);

/**
 * After the start: report missing devices, exclude ports. @return UCS_ERR_NO_DEVICE: there
 * is none
 */
ucs_status_t ucp_tls_check(struct plx_conf *conf);

/* ucp_worker.c */

/** @return false: no callback that runs now is this thread's, as it would have the lock. Without a lock that is unknown. */
static inline bool
ucp_worker_is_mine(const struct ucp_worker *w)
{
	return !w->multi || plx_lock_is_mine(&w->lock);
}

/** @return whether a callback calls: a call of this thread on the worker is running. */
static inline bool
ucp_worker_in_callback(const struct ucp_worker *w)
{
	return ucp_worker_is_mine(w) && plx_worker_in_callback(w->core);
}

/* ucp_progress.c */

/** Callbacks in the forms of UCP. */
void ucp_done_send_nb(struct plx_req *req);
void ucp_done_send_nbx(struct plx_req *req);
void ucp_done_recv_nb(struct plx_req *req);
void ucp_done_recv_nbx(struct plx_req *req);

/** Free a worker that a callback has destroyed, when no call on it is running any more. */
void ucp_worker_bury(ucp_worker_h w);

/* ucp_eps.c */

/**
 * @return an error if operations on the ep can't succeed any more: the result of a posting
 *   call.
 */
static inline ucs_status_t
ucp_ep_status(const struct ucp_ep *ep)
{
	return ucp_status(plx_ep_user_err(&ep->user));
}

/** Call the error handlers of eps that have failed since the last call. */
void ucp_ep_tell_failed(ucp_worker_h w);

/** Register an ep that has its core's ep with its worker, or remove it. */
void ucp_ep_link(ucp_ep_h ep);
void ucp_ep_unlink(ucp_ep_h ep);

/** @return whether the ep of the number in a message was created here, and is closed. */
bool ucp_ep_was_closed(ucp_worker_h w, const struct plx_ep *core, uint32_t conn_id);

/**
 * Find the ep of the number in a message, or create it if only the sender has one. Errors:
 * -ENOMEM; -ECANCELED it is closed here.
 */
int ucp_ep_answer(ucp_worker_h w, struct plx_ep *core, uint32_t conn_id, ucp_ep_h *out);

/* ucp_am.c */

/** Call a handler; for the core. */
int ucp_am_deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx);
void ucp_am_plain(const struct plx_am_handler *h, const void *hdr, uint32_t hdr_len, const void *data, uint64_t len);

#endif

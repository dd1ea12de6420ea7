/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_int.h - the UCP face: its handles, and between its files
 *
 * Design notes
 * A face checks arguments, finds the core's object, calls one plx_ function and
 * maps the result. What it adds is API-shaped: the request's layout (the handle
 * points behind the core's request), callbacks in UCP's forms, and the rule of
 * when one may be called: never inside a send, inside a receive only when asked.
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
#include "plx_lock.h"
#include "plx_log.h"
#include "plx_worker.h"

PLX_LOG_DECLARE(ucp);

struct ucp_config {
	struct plx_conf conf;
};

struct ucp_context {
	struct plx_conf conf;
	uint64_t features;
	size_t request_size;
	uint64_t tag_sender_mask;
	ucp_request_init_callback_t request_init;
	ucp_request_cleanup_callback_t request_cleanup;
	bool mt_workers_shared;
	unsigned mem_unknown; /* UCS_MEMORY_TYPE_UNKNOWN as the program knows it */
	char name[UCP_ENTITY_NAME_MAX];
};

#define UCP_EP_HASH 256 /* lists over which a worker's eps are spread */

/** Whether a plain post may go the shortest way. */
enum ucp_plain {
	UCP_PLAIN_NOT,	  /* the kernel does not fence for one thread alone */
	UCP_PLAIN_INLINE,
	UCP_PLAIN_LOCKED, /* inline, with the lock */
	UCP_PLAIN_LENT,	  /* to a reactor, whose turns may be lent */
	UCP_PLAIN_SHARED, /* to a reactor, by several threads */
};

struct ucp_worker {
	struct plx_worker *core;
	ucp_context_h context;
	bool multi; /* lock is in use */
	uint8_t plain; /* enum ucp_plain */
	ucs_thread_mode_t thread_mode;
	struct plx_lock lock;
	_Atomic bool in_progress; /* multi; writer: who has the lock; who waits need not give a turn then */
	uint32_t failed_seen; /* of core->n_failed */
	LIST_HEAD(ucp_ep_list, ucp_ep) eps;
	struct ucp_ep_list by_conn[UCP_EP_HASH]; /* by the core's ep and the number there */
	uint64_t client_id;
	bool own_event_fd; /* the application gave one: it has no use for ours */
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

/* ucp_status.c */

/** Slow path of ucp_status(). */
ucs_status_t ucp_status_of(int err);

/** The UCS status of 0 or -errno. */
static inline ucs_status_t
ucp_status(int err)
{
	return likely(err == 0) ? UCS_OK : ucp_status_of(err);
}

/** The core's -errno of a status that an application gives. */
int ucp_status_errno(ucs_status_t status);

/* ucp_dt.c */

/** What an operation sends from or receives into. */
struct ucp_buf {
	void *addr;
	size_t len;	   /* bytes, packed */
	struct plx_dt *dt; /* NULL: contiguous */
};

/**
 * Open a buffer for one operation. ucp_buf_drop() it if no request takes it.
 * @return UCS_OK, or why the datatype can't be used
 */
ucs_status_t ucp_buf_open(ucp_worker_h w, ucp_datatype_t dt, const void *buffer, size_t count,
	bool recv, struct ucp_buf *buf);

static inline ucs_status_t
ucp_buf_open_param(ucp_worker_h w, const ucp_request_param_t *param, const void *buffer,
	size_t count, bool recv, struct ucp_buf *buf)
{
	struct ucp_buf typed; /* so that the caller's may be in registers */
	ucs_status_t status;

	if (likely((param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0 ||
		    param->datatype == ucp_dt_make_contig(1))) {
		buf->addr = (void *)(uintptr_t)buffer;
		buf->len = count;
		buf->dt = NULL;
		return UCS_OK;
	}
	status = ucp_buf_open(w, param->datatype, buffer, count, recv, &typed);
	if (status == UCS_OK)
		*buf = typed;
	return status;
}

/** Nothing came of it, for the reason given: finish what was started. @return the status */
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

/**
 * @return whether nothing is asked for that takes more than the shortest way: no flags, no request
 * of the user's, contiguous memory
 */
static inline bool
ucp_post_is_plain(const ucp_request_param_t *param)
{
	return (param->op_attr_mask & (0xffff0000u | UCP_OP_ATTR_FIELD_REQUEST)) == 0 &&
	       ((param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0 ||
		       param->datatype == ucp_dt_make_contig(1));
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
 * A request for an operation on buf (NULL for one without), in the user's memory when that was
 * given. NULL: no memory, and buf is dropped.
 */
static inline struct plx_req *
ucp_req_get(ucp_worker_h w, const struct ucp_post *p, struct ucp_buf *buf)
{
	struct plx_req *req;

	if (p->mask & UCP_OP_ATTR_FIELD_REQUEST) {
		req = plx_req_of(p->user);
		plx_req_init(req, &w->core->reqs, PLX_REQ_USER);
	} else {
		req = plx_req_get(&w->core->reqs);
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
	 * Inline the core may complete it before it returns, and then no callback may run: it is
	 * set by ucp_req_posted(). Dedicated, callbacks run in progress only.
	 */
	if (w->core->dedicated)
		req->done = p->done;
	return req;
}

/**
 * What a posting call returns for req, on which the core's function has just been called.
 * @param final set when the operation is over and the return value says so (NULL or an error);
 * the request is then still the caller's to read, and ucp_req_drop() gives it back.
 */
static inline ucs_status_ptr_t
ucp_req_posted(struct plx_req *req, const struct ucp_post *p, bool *final)
{
	void *user = plx_req_user(req);

	*final = false;
	if (req->pool->cq != NULL)
		return user;
	if (!plx_req_is_done(req)) {
		req->done = p->done;
		return user;
	}
	if (p->mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
		req->done = p->done;
		if (req->done != NULL)
			req->done(req); /* may free it; the pointer is returned all the same */
		return user;
	}
	*final = true;
	return UCS_STATUS_PTR(ucp_status(req->status));
}

/** Give back a request that the user never saw. */
static inline void
ucp_req_drop(struct plx_req *req)
{
	if ((atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_USER) == 0)
		plx_req_put(req);
}

/** Post something without information of its own to return: sends and flushes. */
ucs_status_ptr_t ucp_req_posted_simple(struct plx_req *req, const struct ucp_post *p);

/** What a call returns that ended at once: the user's request, if there is one, says so too. */
ucs_status_ptr_t ucp_req_ended(ucp_worker_h w, const struct ucp_post *p, int rc);

/** The request of a receive that ends at once or not at all: the user's, or own. */
struct plx_req *ucp_req_now(ucp_worker_h w, const struct ucp_post *p, const struct ucp_buf *buf,
	struct plx_req *own);

/** It came to rc, -EAGAIN: nothing happened. @return what the call returns */
ucs_status_ptr_t ucp_req_now_end(struct plx_req *req, int rc);

/** Flags that exclude each other; for mask & ~0xffff only, off the fast path. */
ucs_status_t ucp_post_check(uint32_t mask);

/** A send that ends at once or not at all; embedded in what run() needs besides. */
struct ucp_forced {
	void (*run)(void *forced); /* as the owner: sends len bytes at addr, sets rc */
	ucp_ep_h ep;
	const void *addr; /* of the bytes, packed */
	size_t len;
	int rc;
};

/** Send buf so, whoever gives the turns and whatever the datatype. @return what the call returns */
ucs_status_ptr_t ucp_send_forced(struct ucp_forced *f, struct ucp_buf *buf, const struct ucp_post *p);

/** The parameters of an nb call. */
static inline struct ucp_post
ucp_post_nb(void (*done)(struct plx_req *req), void (*cb)(void), uint32_t mask)
{
	return (struct ucp_post){.mask = mask, .done = cb != NULL ? done : NULL, .cb = cb};
}

/** Callbacks in the forms of UCP. */
void ucp_done_send_nb(struct plx_req *req);
void ucp_done_send_nbx(struct plx_req *req);
void ucp_done_recv_nb(struct plx_req *req);
void ucp_done_recv_nbx(struct plx_req *req);

/** Progress until the request is over, and free it: for blocking calls. */
ucs_status_t ucp_req_wait(ucp_worker_h w, ucs_status_ptr_t ptr);

/* ucp_listener.c */

struct ucp_conn_request {
	struct plx_conn_req *core;
	struct ucp_listener *listener;
	struct ucp_context *context;
};

/* ucp_ep.c */

/** @return an error if operations on the ep can't succeed any more: what a posting call returns. */
static inline ucs_status_t
ucp_ep_status(const struct ucp_ep *ep)
{
	return ucp_status(plx_ep_user_err(&ep->user));
}

/** Call the error handlers of eps that have failed since the last time. */
void ucp_ep_tell_failed(ucp_worker_h w);

/** Make an ep that has its core's ep known to its worker, or forget it. */
void ucp_ep_link(ucp_ep_h ep);
void ucp_ep_unlink(ucp_ep_h ep);

/** @return the ep whose number a message carried, made when there is none, or NULL without memory. */
ucp_ep_h ucp_ep_answer(ucp_worker_h w, struct plx_ep *core, uint32_t conn_id);

/* ucp_am.c */

/** Call a handler; for the core. */
int ucp_am_deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_req.h - an operation in flight, or an unexpected message
 *
 * Design notes
 * - Requests belong to the application's side: the thread that calls the API allocates and frees
 *   them. The worker's owner only completes them, with plx_req_complete(). If the owner is that
 *   same thread (inline) this runs the callback at once; if it is a reactor the request goes
 *   through the completion ring and the callback runs in the application's progress call.
 * - A request may be in the user's memory (USER). From the moment DONE is visible, or its
 *   callback returns, nothing here touches it again.
 */
#ifndef PLX_REQ_H
#define PLX_REQ_H

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "plx_assert.h"
#include "plx_copy.h"
#include "plx_cq.h"
#include "plx_mem.h"
#include "plx_probe.h"
#include "plx_tag.h"
#include "plx_wire.h"

struct plx_ep;
struct plx_req;
struct plx_msg;
struct plx_am;

/**
 * A buffer that is not contiguous, or not in memory of the host: how processors read and write its
 * bytes as if it were. Embedded in the face's own struct; called by the worker's owner.
 */
struct plx_dt {
	void (*pack)(void *dt, uint64_t offset, void *to, uint64_t len);
	void (*unpack)(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len);
	/* the operation is complete; application's side; frees itself. @return the final status */
	int (*finish)(struct plx_dt *dt, int status);
	uint8_t mem_type; /* ucs_memory_type_t of a contiguous buffer that is not the host's; 0: any other */
	/* Find len bytes, 1 or more, from offset on in the host's memory: in pieces of one byte or more each, as many
	 * as there are and no more than max. @return how many. NULL: it is not in pieces of memory */
	unsigned (*pieces)(struct plx_dt *dt, uint64_t offset, uint64_t len, struct plx_wire_piece *out, unsigned max);
};

#define PLX_CONN_NONE UINT32_MAX /* no handle's: control messages, receives */

/** Which messages a held tagged message delays as well, see plx_ep.h. */
enum plx_pend_order {
	PLX_PEND_ANY,	    /* none: it may overtake */
	PLX_PEND_UNASKED,   /* an eager tagged message */
	PLX_PEND_ANNOUNCED, /* one that counts as announced */
	PLX_PEND_MARK,	    /* a mark: everything before it has been sent */
};

/** Something to send that the device did not take; in order, for each ep. */
struct plx_pend {
	TAILQ_ENTRY(plx_pend) link;
	uint32_t conn_id; /* of the handle it was sent on */
	bool held;	  /* in the ep's held list, or it ended there */
	uint8_t order;	  /* enum plx_pend_order */
	/* retry: 0 sent, -EAGAIN not yet; any other error fails it */
	int (*send)(struct plx_pend *p);
	void (*fail)(struct plx_pend *p, int err);
};

struct plx_wait_list;

/** An operation that waits for an answer of a peer; fail is called when the peer dies. */
struct plx_wait {
	TAILQ_ENTRY(plx_wait) link;
	void (*fail)(struct plx_wait *w, int err);
	struct plx_wait_list *list; /* NULL: does not wait */
	uint32_t conn_id;	    /* of the handle, for sends */
	uint32_t since;		    /* plx_wait_clock() of its engine, if that keeps it */
};

#define PLX_WAIT_CLOCK_SHIFT 22 /* about a millisecond */

/** @return a coarse time for plx_wait.since. */
static inline uint32_t
plx_wait_clock(uint64_t ticks)
{
	return (uint32_t)(ticks >> PLX_WAIT_CLOCK_SHIFT);
}

/** @return about when it began, ticks. */
static inline uint64_t
plx_wait_since(const struct plx_wait *w, uint64_t now_ticks)
{
	return now_ticks - ((uint64_t)(plx_wait_clock(now_ticks) - w->since) << PLX_WAIT_CLOCK_SHIFT);
}

/** The waiting operations of one ep; those of a closing handle have a list of their own. */
struct plx_wait_list {
	TAILQ_HEAD(, plx_wait) head;
	struct plx_ep *ep;
	LIST_ENTRY(plx_wait_list) link; /* of the ep's closing */
};

/** An incomplete operation, as it is shown to an operator. Text is static. */
struct plx_wait_info {
	const char *op;	    /* as "tag_send" */
	const char *state;  /* the thing that it waits for */
	uint64_t peer;	    /* uid of the queue at the other end; 0: it is not known */
	uint64_t tag, mask; /* mask 0: it has no tag */
	uint64_t len, done; /* bytes */
	uint64_t since;	    /* ticks when it began, or later; 0: not known */
};

enum plx_req_flag {
	PLX_REQ_DONE = 1 << 0,	   /* status is final */
	PLX_REQ_USER = 1 << 1,	   /* lies in the user's memory */
	PLX_REQ_RELEASED = 1 << 2, /* goes back to the pool when done */
	PLX_REQ_NO_CB = 1 << 3,	   /* the user has freed it: no callback */
	PLX_REQ_RECV = 1 << 4,	   /* a tag receive: info is its */
	PLX_REQ_SYNC = 1 << 5,	   /* send: done when matched */
	PLX_REQ_OWN_HDR = 1 << 6,  /* own is freed with free() */
	PLX_REQ_CAME = 1 << 7,	   /* a tag receive: its info came with the completion */
};

/** An announced message, as its receiver knows it. */
struct plx_rts {
	struct plx_wire_id sreq;
	uint64_t addr;	/* in the sender's process; 0: not contiguous */
	uint32_t epoch; /* the sender's, as it announced */
};

struct plx_req_pool;

#define PLX_REQ_SIZE 272
#define PLX_REQ_HEAD_LEN 72

/**
 * The head of an engine's request: the engine declares a struct that begins with this and is no longer than
 * PLX_REQ_SIZE, and casts. Only the engine looks inside.
 */
#define PLX_REQ_HEAD alignas(8) uint8_t req_head[PLX_REQ_HEAD_LEN]

struct plx_req {
	/* line 0: application's side; for a short receive the owner never reads it */
	union {
		struct plx_pool_obj free; /* link while in the pool */
		struct plx_dt *dt;	  /* NULL: buf is contiguous */
	};
	_Atomic uint8_t flags;	  /* enum plx_req_flag; application's side */
	uint8_t came_len;	  /* CAME: of the message; it is a short one */
	int status;		  /* 0 or -errno, final once DONE */
	void (*done)(struct plx_req *req); /* calls cb in the API's form; NULL: no callback */
	void (*cb)(void);	  /* the user's, in the form of the API */
	void *cb_arg;
	union {
		void *buf;
		STAILQ_ENTRY(plx_req) over; /* completed, while the ring is full */
		uint64_t came_tag;	    /* CAME */
	};
	uint64_t len;	   /* bytes of buf, or of dt */
	struct plx_req_pool *pool;
	/* line 1: owner */
	bool posted;	  /* in the matcher */
	uint16_t offload; /* its device in lib/offload, 0 none */
	union {
		/* of the engine that has the request: see PLX_REQ_HEAD */
		alignas(8) uint8_t room[PLX_REQ_SIZE - PLX_REQ_HEAD_LEN];
		void *own; /* with OWN_HDR: an active message's header, copied */
		union {
			struct plx_tag_recv tag; /* until it is matched */
			struct {
				/* of the matched message: plx_req_info() */
				uint64_t info_tag, info_len;
				struct plx_msg *msg; /* on the way to the owner */
			};
		} recv;
	};
};

_Static_assert(sizeof(struct plx_req) == PLX_REQ_SIZE, "the ABI promises this size");
_Static_assert(offsetof(struct plx_req, room) == PLX_REQ_HEAD_LEN, "what is no engine's comes first");
_Static_assert(PLX_REQ_SIZE % 16 == 0, "user areas stay aligned");
_Static_assert(offsetof(struct plx_req, recv.info_tag) == offsetof(struct plx_req, recv.tag.tag),
	"a match leaves the message's tag where it is asked for");
_Static_assert(offsetof(struct plx_req, recv) + sizeof(struct plx_tag_recv) <= 2 * PLX_LINE,
	"a match reads two lines of a request");

/** @return the user's area: the API's request pointer. */
static inline void *
plx_req_user(struct plx_req *req)
{
	return (char *)req + PLX_REQ_SIZE;
}

/** The inverse of plx_req_user(). */
static inline struct plx_req *
plx_req_of(void *user)
{
	return (struct plx_req *)((char *)user - PLX_REQ_SIZE);
}

/** @param own a struct that begins with PLX_REQ_HEAD, or NULL @return the request that it is */
static inline struct plx_req *
plx_req_of_own(const void *own)
{
	return (struct plx_req *)(uintptr_t)own;
}

/** @return ucs_memory_type_t of its buffer; 0: the host's, or it is not contiguous. */
static inline uint8_t
plx_req_mem_type(const struct plx_req *req)
{
	return likely(req->dt == NULL) ? 0 : req->dt->mem_type;
}

/** Requests of one worker. Owner: the application's side. */
struct plx_req_pool {
	/* line 0: set at open; both sides read */
	alignas(PLX_LINE) struct plx_cq *cq; /* completions from a reactor, or NULL: inline */
	struct plx_cq *to; /* owner: destination of completions; NULL: callbacks run at once */
	void (*user_init)(void *user);	     /* once for each request's user area */
	void (*user_cleanup)(void *user);
	void *user;	   /* the face's worker */
	uint32_t n_holds;  /* owner, inline: of plx_req_pool_hold() */
	bool mute;	   /* application's side: no more callbacks */
	/* application's side, with each request */
	alignas(PLX_LINE) struct plx_pool pool;
	/* cold, application's side: a ring without room, so that delayed completions are
	 * in its overflow */
	struct plx_cq later;
};

/**
 * Open a pool.
 * @param user_len bytes of the user's area behind each request
 * @param dedicated completions come from another thread
 * Errors: -ENOMEM. Thread: control.
 */
int plx_req_pool_open(struct plx_req_pool *p, uint32_t user_len, bool dedicated,
	void (*user_init)(void *user), void (*user_cleanup)(void *user));

/** @return the face's worker. Thread: any. */
static inline void *
plx_req_owner(const struct plx_req *req)
{
	return req->pool->user;
}

/** Run user_cleanup on every request and free the memory. Thread: application's side. */
void plx_req_pool_close(struct plx_req_pool *p);

/**
 * In a forked child, inside of fork(): there is no reactor, and the ring is in the parent's memory.
 * A turn may be running, whose callback forks: it finds the ring without room, empty. Thread: control.
 */
static inline void
plx_req_pool_lose(struct plx_req_pool *p)
{
	if (p->cq != NULL)
		p->cq = &p->later;
	p->to = NULL;
}

/**
 * Application's side, dedicated: run callbacks of completed requests, a bounded number: one
 * after a pause. @return how many
 */
unsigned plx_req_pool_poll(struct plx_req_pool *p);

/** Slow path of plx_req_pool_flush(). */
void plx_req_pool_flush_slow(struct plx_cq *cq);

/** @return whether all completions were delivered. Thread: the application's, which is the owner. */
static inline bool
plx_req_pool_is_told(const struct plx_req_pool *p)
{
	return plx_cq_next(p->cq) == NULL && STAILQ_EMPTY(&p->cq->overflow);
}

/**
 * From now on callbacks run at once, as inline. @return false: earlier ones are pending;
 * nothing has changed. Thread: the application's, which is the owner, in progress.
 */
static inline bool
plx_req_pool_begin_direct(struct plx_req_pool *p)
{
	if (!plx_req_pool_is_told(p))
		return false;
	p->to = NULL;
	return true;
}

/** End that. Thread: the same. */
static inline void
plx_req_pool_end_direct(struct plx_req_pool *p)
{
	p->to = p->cq;
}

/**
 * Run no callback until as many plx_req_pool_release(): for steps that complete requests
 * while they walk over lists, since a callback may close, destroy and post anything. Inline
 * the completions wait for plx_req_pool_run_later(), with a reactor in the ring. Thread:
 * owner.
 */
static inline void
plx_req_pool_hold(struct plx_req_pool *p)
{
	if (p->cq != NULL) {
		plx_req_pool_end_direct(p); /* for the remainder of a turn that the application runs */
		return;
	}
	p->n_holds++;
	p->to = &p->later;
}

/** @return whether completions wait for plx_req_pool_run_later(). Thread: owner. */
static inline bool
plx_req_pool_release(struct plx_req_pool *p)
{
	if (p->cq != NULL)
		return false;
	if (--p->n_holds == 0)
		p->to = NULL;
	return !STAILQ_EMPTY(&p->later.overflow);
}

/** Run the delayed callbacks. @return how many. Thread: application's side. */
unsigned plx_req_pool_run_later(struct plx_req_pool *p);

/**
 * Run no more callbacks: the worker is freed as soon as the callback that destroys it has
 * returned. Thread: application's side, in a callback.
 */
static inline void
plx_req_pool_mute(struct plx_req_pool *p)
{
	p->mute = true;
	if (p->cq == NULL || p->to == NULL) /* the callback runs in a turn of this thread */
		plx_req_pool_hold(p);
}

/**
 * A completed request counts as in flight again: its callback runs in
 * plx_req_pool_run_later(). It is not released. Thread: application's side.
 */
void plx_req_postpone(struct plx_req *req);

/** Owner, dedicated: put completions that did not fit into the ring. */
static inline void
plx_req_pool_flush(struct plx_req_pool *p)
{
	if (unlikely(!STAILQ_EMPTY(&p->cq->overflow)))
		plx_req_pool_flush_slow(p->cq);
}

/** Slow path of plx_req_complete(): through the ring. Thread: owner. */
void plx_req_defer(struct plx_req *req);

/** The fields that the application's side writes each time: line 0. */
static inline void
plx_req_begin(struct plx_req *req, uint8_t flags)
{
	atomic_store_explicit(&req->flags, flags, memory_order_relaxed);
	req->status = 0;
	req->dt = NULL;
	req->done = NULL;
}

/** Prepare a request in the user's memory. */
static inline void
plx_req_init(struct plx_req *req, struct plx_req_pool *p, uint8_t flags)
{
	plx_req_begin(req, flags);
	req->pool = p;
	req->posted = false;
	req->offload = 0;
}

/** @return a request for plx_req_begin(), or NULL: none is free. Thread: application's side. */
static inline struct plx_req *
plx_req_get_free(struct plx_req_pool *p)
{
	return plx_pool_get_free(&p->pool);
}

/** @return a request, or NULL without memory. Thread: application's side. */
static inline struct plx_req *
plx_req_get(struct plx_req_pool *p)
{
	struct plx_req *req = plx_pool_get(&p->pool);

	if (likely(req != NULL))
		plx_req_begin(req, 0);
	return req;
}

/** Free a request. Thread: application's side. */
static inline void
plx_req_put(struct plx_req *req)
{
	plx_pool_put(&req->pool->pool, req);
}

/** Add flags to a request that no other thread accesses, or from the application's side. */
static inline void
plx_req_flag(struct plx_req *req, uint8_t flags)
{
	uint8_t f = atomic_load_explicit(&req->flags, memory_order_relaxed);

	atomic_store_explicit(&req->flags, f | flags, memory_order_relaxed);
}

/** Slow path of plx_req_finish(): more than a callback. Thread: application's side. */
void plx_req_finish_slow(struct plx_req *req, uint8_t flags);

/* Completion has more to do than to run the callback. */
#define PLX_REQ_MORE (PLX_REQ_RELEASED | PLX_REQ_NO_CB | PLX_REQ_OWN_HDR)

/** Make the request's status final and run its callback. Thread: application's side. */
static inline void
plx_req_finish(struct plx_req *req)
{
	uint8_t f = atomic_load_explicit(&req->flags, memory_order_relaxed);
	void (*done)(struct plx_req *) = req->done;

	if (unlikely((f & PLX_REQ_MORE) != 0 || req->dt != NULL)) {
		plx_req_finish_slow(req, f);
		return;
	}
	PLX_PROBE_COMPLETE(req, req->status);
	/* pairs with the acquire in plx_req_is_done() */
	atomic_store_explicit(&req->flags, f | PLX_REQ_DONE, memory_order_release);
	if (done != NULL)
		done(req); /* may free it */
}

/**
 * @return whether another thread will run the callback of req: for this thread it is
 *   complete at once. Thread: owner.
 */
static inline bool
plx_req_is_told_later(const struct plx_req *req)
{
	return req->pool->to != NULL;
}

/** The operation is complete. @param status 0 or -errno. Thread: owner. */
static inline void
plx_req_complete(struct plx_req *req, int status)
{
	req->status = status;
	if (unlikely(plx_req_is_told_later(req)))
		plx_req_defer(req);
	else
		plx_req_finish(req);
}

/**
 * @param flags of the request
 * @return whether a message of len bytes only needs storing and the callback. Thread:
 *   application's side.
 */
static inline bool
plx_req_is_plain(const struct plx_req *req, uint8_t flags, uint64_t len)
{
	return len <= req->len && req->dt == NULL && (flags & PLX_REQ_MORE) == 0;
}

/**
 * plx_req_finish() for such a request, once its bytes are stored successfully. Thread:
 * application's side.
 */
static inline void
plx_req_finish_plain(struct plx_req *req, uint8_t flags)
{
	void (*done)(struct plx_req *) = req->done;

	PLX_ASSERT(req->status == 0); /* since plx_req_begin() */
	PLX_PROBE_COMPLETE(req, 0);
	/* pairs with the acquire in plx_req_is_done() */
	atomic_store_explicit(&req->flags, flags | PLX_REQ_DONE, memory_order_release);
	if (done != NULL)
		done(req); /* may free it */
}

/** Write arrived bytes into a receive's buffer, as far as they fit. Thread: owner. */
static inline void
plx_req_copy_in(struct plx_req *req, uint64_t offset, const void *from, uint64_t len)
{
	if (unlikely(offset >= req->len))
		return;
	if (len > req->len - offset)
		len = req->len - offset;
	if (unlikely(req->dt != NULL))
		req->dt->unpack(req->dt, offset, from, len);
	else
		plx_copy((char *)req->buf + offset, from, len);
}

/** The status of a receive for a whole message. Thread: the one that finishes it. */
static inline int
plx_req_take(struct plx_req *req, const void *data, uint64_t len)
{
	if (likely(len <= req->len && req->dt == NULL && len == 8)) {
		memcpy(req->buf, data, 8);
		return 0;
	}
	plx_req_copy_in(req, 0, data, len);
	return unlikely(len > req->len) ? -EMSGSIZE : 0;
}

/** The same, if it came with the completion: the owner's lines stay with the owner. */
static inline void
plx_req_take_came(struct plx_req *req, const struct plx_cq_cell *c)
{
	req->status = plx_req_take(req, c->data, c->len);
	req->came_tag = c->tag;
	req->came_len = (uint8_t)c->len;
	plx_req_flag(req, PLX_REQ_CAME);
}

/** The message that a completed receive has matched. Thread: application's side. */
static inline void
plx_req_info(const struct plx_req *req, uint64_t *tag, uint64_t *len)
{
	bool came = (atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_CAME) != 0;

	*tag = came ? req->came_tag : req->recv.info_tag;
	*len = came ? req->came_len : req->recv.info_len;
}

/** A whole message has matched its receive, which is complete. Thread: owner. */
static inline void
plx_req_complete_recv(struct plx_req_pool *p, struct plx_req *req, uint64_t tag, const void *data,
	uint64_t len)
{
	struct plx_cq_cell *c;

	if (unlikely(p->to != NULL) && len <= PLX_CQ_DATA && (c = plx_cq_take(p->to)) != NULL) {
		c->req = req;
		c->tag = tag;
		c->len = len;
		if (likely(len == 8))
			memcpy(c->data, data, 8);
		else
			memcpy(c->data, data, len);
		plx_cq_give(p->to, c);
		return;
	}
	req->recv.info_tag = tag;
	req->recv.info_len = len;
	plx_req_complete(req, plx_req_take(req, data, len));
}

/** @return whether status is final. Thread: application's side. */
static inline bool
plx_req_is_done(struct plx_req *req)
{
	return (atomic_load_explicit(&req->flags, memory_order_acquire) & PLX_REQ_DONE) != 0;
}

/** Kinds of unexpected messages. */
enum plx_msg_kind {
	PLX_MSG_EAGER, /* data is here, or still arriving */
	PLX_MSG_SYNC,  /* data is here; the sender waits for a match */
	PLX_MSG_RTS,   /* data is at the sender */
	PLX_MSG_AM,	/* active message: header and data are here, or still arriving */
	PLX_MSG_AM_RTS, /* its header is, or is arriving; the data is at the sender */
	PLX_MSG_STREAM, /* bytes of a stream */
	PLX_MSG_STREAM_RTS, /* bytes of a stream that are at the sender */
};

#define PLX_MSG_INLINE 192 /* bytes of data within a plx_msg */

/**
 * A message without a receive, or one that is still arriving. Of a whole tagged one with a word of data, searched
 * for under two masks, no more than two lines are read and written: where there are 100,000, each comes from memory.
 */
struct plx_msg {
	struct plx_tag_msg tag;
	struct plx_ep *ep;	/* of the sender */
	uint64_t len;		/* of the whole message */
	uint64_t cost;		/* bytes of memory that it takes */
	uint64_t got;		/* bytes that have arrived */
	uint8_t *data;
	uint8_t kind;		/* enum plx_msg_kind */
	uint8_t size_class;	/* of data; PLX_MSG_CLASS_INLINE, as in the pool: it is in inl */
	int16_t ack;		/* AM_RTS, in flight back to the owner: -errno for the sender, 1
	            		 * none */
	/* plx_msg_begin() clears these at once */
	bool is_partial;
	bool direct;		/* partial: data goes directly to req->buf */
	bool taken;		/* removed by a probe: waits for msg_recv; AM: received or dropped */
	bool in_cb;		/* AM, application's side: its handler runs */
	alignas(8) uint8_t inl[PLX_MSG_INLINE];
	struct plx_tag_far far;
	struct plx_req *req;	/* is_partial: the receive that waits for the remaining bytes, or NULL */
	LIST_ENTRY(plx_msg) partial; /* of the ep's: fragments are missing */
	struct plx_am *am;	/* AM */
	uint32_t msg_id;	/* is_partial */
	TAILQ_ENTRY(plx_msg) chunk;  /* in a stream, or in flight to the application */
	union {
		struct plx_rts rts;	/* RTS; SYNC: sreq of it */
		struct {
			/* PLX_MSG_CLASS_BUF: the owner of the memory at data gets it when the message is freed */
			void (*give_back)(struct plx_msg *m);
			void *of, *buf;
		} lies;
	};
};

_Static_assert(offsetof(struct plx_msg, inl) + 8 <= 2 * PLX_LINE, "two lines with 8 bytes of data");

#define PLX_MSG_CLASSES	     6
#define PLX_MSG_CLASS_INLINE 0xff
#define PLX_MSG_CLASS_BUF    0xfd /* data lies where it arrived */

/** Unexpected messages and their data. Owner: the worker's. */
struct plx_msg_pools {
	struct plx_pool msg;
	struct plx_pool data[PLX_MSG_CLASSES];
	uint64_t bytes; /* of memory of present messages */
	uint8_t *spare; /* the last that was larger than every class, or NULL */
	uint64_t spare_len;
};

void plx_msg_pools_open(struct plx_msg_pools *p);
void plx_msg_pools_close(struct plx_msg_pools *p);

/* Use a message of the pool. @param more bytes of memory for its data besides its own */
static inline void
plx_msg_begin(struct plx_msg_pools *p, struct plx_msg *m, uint64_t len, uint64_t more)
{
	m->len = len;
	m->got = 0;
	m->ep = NULL;
	m->is_partial = false;
	m->direct = false;
	m->taken = false;
	m->in_cb = false;
	m->cost = sizeof(*m) + more;
	p->bytes += sizeof(*m) + more;
}

/** Slow path of plx_msg_get(). */
struct plx_msg *plx_msg_get_slow(struct plx_msg_pools *p, uint64_t len);

/** @return a message with room for len bytes at data, or NULL. Thread: owner. */
static inline struct plx_msg *
plx_msg_get(struct plx_msg_pools *p, uint64_t len)
{
	struct plx_msg *m = likely(len <= PLX_MSG_INLINE) ? plx_pool_get_free(&p->msg) : NULL;

	if (unlikely(m == NULL))
		return plx_msg_get_slow(p, len);
	plx_msg_begin(p, m, len, 0);
	return m;
}

/** Room for a message in pieces before they have arrived, bytes; more, as they do. */
#define PLX_MSG_ROOM 65536u
#define PLX_MSG_GROW 16 /* times the present room, if all of it will be needed */

/** Memory that is kept for the next large message, bytes: the allocator clears what is freed. */
#define PLX_MSG_SPARE_MAX (5u << 20)

/** @return the room at data, bytes. */
static inline uint64_t
plx_msg_room(const struct plx_msg *m)
{
	return m->data == m->inl ? PLX_MSG_INLINE : m->cost - sizeof(*m);
}

/**
 * Make more room, at another place: PLX_MSG_GROW times the present at the most.
 * @param need bytes, more than plx_msg_room()
 * @param all bytes that the whole message will need
 * @param move copies the arrived bytes, m->got, from m->data to their place
 * @return 0, or -ENOMEM and nothing happened. Thread: owner.
 */
int plx_msg_grow(struct plx_msg_pools *p, struct plx_msg *m, uint64_t need, uint64_t all,
	void (*move)(const struct plx_msg *m, uint8_t *to));

/** Slow path of plx_msg_put(). */
void plx_msg_put_slow(struct plx_msg_pools *p, struct plx_msg *m);

/** Free a message and its data. Thread: owner. */
static inline void
plx_msg_put(struct plx_msg_pools *p, struct plx_msg *m)
{
	if (unlikely(m->size_class != PLX_MSG_CLASS_INLINE)) {
		plx_msg_put_slow(p, m);
		return;
	}
	p->bytes -= m->cost;
	plx_pool_put(&p->msg, m);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_ep.h - one peer as the protocol knows it: order, pending messages, waiting operations
 *
 * Design notes
 * - There is one ep for each remote worker, whether it became known by the application or by a
 *   message; the handles of an API (ucp_ep_h) share it. So all messages from one worker to
 *   another keep their order, and an answer needs no connection of its own.
 * - Messages that the device does not take are in the pending list, in order, and are offered
 *   again every turn. While the list is not empty nothing overtakes it. Control messages are
 *   pending there as well when the peer cannot be connected for want of descriptors or memory.
 *   They are never dropped: memory for PLX_EPS_CTL_RESERVE of them is reserved, and a worker that
 *   cannot refill the reserve receives nothing from its devices until it can.
 * - Memory for one peer's messages is bounded for each ep (PLX_EP_KEPT_MORE). A peer that follows
 *   the protocol does not reach the bound: it sends no eager data once it is stopped, and
 *   announces at most PLX_EP_MAX_ANNOUNCED messages. Further tagged messages of ours are in the
 *   ep's held list, in order; only the marks of flushes wait behind them.
 */
#ifndef PLX_EP_H
#define PLX_EP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plx_dev.h"
#include "plx_mem.h"
#include "plx_req.h"
#include "plx_stat.h"
#include "plx_window.h"
#include "plx_wire.h"

struct plx_stream;

/** Engines that are found by an ep, as waits that fail know nothing else. */
enum plx_ep_engine { PLX_EP_RNDV, PLX_EP_RMA, PLX_EP_ENGINES };

#define PLX_EPS_CTL_RESERVE 256u /* control messages; a burst asks for a few each */

struct plx_ep_stat {
	uint64_t tx_pending; /* messages that were pending */
	uint64_t tx_unreached; /* attempts to connect that failed temporarily */
	uint64_t rx_held; /* turns that received nothing, for want of memory to answer, or of
	                   * progress calls */
	uint64_t tx_failed;
	uint64_t eps, eps_failed;
	uint64_t stops, stopped_by_peer;
	uint64_t tx_held; /* tagged messages that waited because too many were announced */
	uint64_t refused, refused_by_peer; /* connections that failed because of messages beyond the
	                                    * bounds */
};

extern const struct plx_stat_row plx_ep_stat_rows[];

enum plx_eps_due {
	PLX_DUE_WORK = 1 << 0, /* a turn may have more to do than to receive; always with a reactor */
	PLX_DUE_TURN = 1 << 1, /* a turn is running: a callback calls */
	PLX_DUE_BEHIND = 1 << 2, /* more to do behind the next message; until then one turn in PLX_WORKER_LOOKS is enough */
};

/** The eps of a worker. Owner: the worker's. */
struct plx_eps {
	uint8_t due; /* enum plx_eps_due: why the next progress is more than a poll of the device;
	              * owner */
	bool is_short; /* a reserve for answers was used: refill it before receiving more */
	TAILQ_HEAD(, plx_ep) stalled; /* with something pending */
	LIST_HEAD(, plx_ep) stopped; /* peers that have to announce everything */
	LIST_HEAD(, plx_ep) all;
	LIST_HEAD(, plx_ep_stub) connecting;
	struct plx_pool *defers; /* rare: not where each turn reads */
	struct plx_pool ctl;	/* pending control messages */
	struct plx_pool pool;
	struct plx_ep_stat stat;
	void *engine[PLX_EP_ENGINES];
	uint64_t eager_end;	/* of a new ep, */
	bool eager_auto;	/* whose device may choose a longer one */
	uint32_t n_tries;	/* attempts to connect for pending messages */
	void (*on_new)(struct plx_ep *ep); /* creates the engines' state of an ep from zeros; or
	                                    * NULL */
	/* called once with a failed ep, after all its operations have failed */
	void (*on_failed)(struct plx_ep *ep, int err);
};

/** There is work for a turn now: called by code that creates some. Thread: owner. */
static inline void
plx_eps_need_turn(struct plx_eps *eps)
{
	eps->due |= PLX_DUE_WORK;
}

/*
 * Messages in pieces that arrive from one peer at a time. A sender completes one, or
 * withdraws it, before it begins the next: more open ones violate the protocol.
 */
#define PLX_EP_MAX_PARTIAL 16

/**
 * Handles that a peer has named and this side has not created: with bytes of their streams,
 * or reply handles.
 */
#define PLX_EP_MAX_UNMET 4096u

/** Tagged messages to one peer that wait for its answer: announced, or synchronous. */
#define PLX_EP_MAX_ANNOUNCED (1u << 18)

/* The most that a sender may have in flight when it is stopped: a long message that it has
 * begun, and its messages of the turns until it polls (plx_dev.h:PLX_DEV_BLIND_MAX). */
#define PLX_EP_FLIGHT (128ull << 20)

/** Bytes of memory for a peer's messages above which it is refused, besides tag.unexpected_max. */
#define PLX_EP_KEPT_MORE (PLX_EP_FLIGHT + PLX_EP_MAX_ANNOUNCED * sizeof(struct plx_msg))

TAILQ_HEAD(plx_pends, plx_pend);

struct plx_ep {
	/* line 0 */
	struct plx_peer *peer;
	struct plx_eps *eps;
	struct plx_pends pending;
	uint32_t refs;	 /* API handles */
	uint32_t next_conn_id;
	uint32_t msg_id; /* of the next multi-fragment message */
	int err;	 /* -errno once failed; writer: owner; readers: any, relaxed */
	bool connected;
	bool stalled;
	/* writer: owner; readers: any, relaxed: a short message is sent as soon as it is posted */
	_Atomic bool quick;
	uint64_t eager_end; /* shorter tagged messages are eager now, bytes: 0 or eager_own */
	uint64_t eager_own; /* by this ep's device */
	bool stub;	 /* part of a plx_ep_stub; has no peer */
	uint64_t n_waits;
	uint64_t kept;	    /* bytes of memory of its stored messages */
	bool stopped;	    /* we told the peer to announce everything */
	bool refused;	    /* or that we accept nothing more */
	bool flow_waits;
	struct plx_pend flow; /* the pending FLOW message */
	LIST_ENTRY(plx_ep) stopped_link;
	uint64_t n_msgs;		/* stored messages, streams and operations that still point here */
	uint32_t n_announced;		/* our tagged messages that wait for an answer */
	bool announces;			/* the peer requires announcements */
	bool overtaken;			/* pending messages behind a held one are to be held, too */
	struct plx_pends held;		/* tagged messages that are not announced yet, */
	struct plx_pend *held_early;	/* the last of those that were to be eager, or NULL */
	struct plx_wait_list waits;	/* requests that wait for an answer */
	LIST_HEAD(, plx_wait_list) closing; /* those of handles that are closing */
	LIST_HEAD(, plx_ep_user) users; /* API handles */
	/* The engines' state of an ep: see plx_rma_ep(), rndv_ep(), plx_stream_ep(), plx_chan_ep(),
	 * plx_worker_ep(). Initially zeros. */
	_Alignas(8) uint8_t of_stream[16];
	_Alignas(8) uint8_t of_chan[8];
	uint32_t n_answers;		/* reply handles for the peer */
	uint32_t next_crossed;		/* as next_conn_id, for handles that are crossed */
	TAILQ_ENTRY(plx_ep) stalled_link;
	LIST_ENTRY(plx_ep) link;
	_Alignas(8) uint8_t of_rma[128];
	_Alignas(8) uint8_t of_rndv[32];
	_Alignas(8) uint8_t of_worker[72];
};

/** A send's request: eager pieces; lib/rndv adds what an announced one needs. */
struct plx_ep_send {
	PLX_REQ_HEAD;
	const void *hdr;	/* active message: the user's header, plx_req.own; tag is the plx_wire_am */
	struct plx_ep *ep;
	union {
		uint64_t tag;	/* until all of it is announced */
		void *mem;	/* then lib/rndv's: plx_dev_mem.drv of the buffer, registered to be sent from */
	};
	uint64_t offset;	/* sent so far */
	struct plx_pend pend;
	uint32_t msg_id;
	uint32_t conn_id;	/* of the handle it was sent on */
};
_Static_assert(offsetof(struct plx_ep_send, hdr) == offsetof(struct plx_req, own), "the end of a request frees it");

/** @return the send's part of its request. */
static inline struct plx_ep_send *
plx_ep_send(const struct plx_req *req)
{
	return (void *)(uintptr_t)req;
}

/** An API handle on an ep; embedded in the face's struct. */
struct plx_ep_user {
	LIST_ENTRY(plx_ep_user) link; /* of the ep's */
	LIST_ENTRY(plx_ep_user) all;  /* of the worker's */
	struct plx_ep *ep;
	struct plx_conn *conn; /* made through a listener: the worker's; or NULL */
	_Atomic int err; /* -errno: this handle has failed, not its ep; writer: owner; readers: any */
	/*
	 * Which of several handles to one worker this is. The n-th handle of one side and
	 * the n-th of the other belong together: this number names a handle on the wire.
	 */
	uint32_t conn_id;
	/*
	 * With a worker's own address both ends of a handle are here. Crossed handles come
	 * in pairs instead, 2n with 2n + 1, and the wire carries the number of the other.
	 */
	bool crossed;
	bool answers; /* a reply handle */
	struct plx_stream *stream; /* owner; NULL before the first use */
};

#define PLX_EP_CROSSED 0x40000000u /* crossed handles are numbered from here */

/** @return the number of this handle in its messages. */
static inline uint32_t
plx_ep_wire_id(const struct plx_ep_user *user)
{
	return user->conn_id ^ user->crossed;
}

/**
 * A pending ep: stands in for the ep of a handle that is not connected yet, or that failed
 * while the peer is alive: an ep without a peer, on which operations wait, or fail. Owner:
 * the worker's.
 */
struct plx_ep_stub {
	struct plx_ep ep;
	struct plx_ep *real; /* once connected; a reference */
	STAILQ_HEAD(, plx_ep_defer) deferred;
	LIST_ENTRY(plx_ep_stub) link; /* while connecting */
	uint32_t conn_id;
	bool connecting;
	bool closed;	    /* a close arrived before the connection: */
	uint64_t closed_by; /* its plx_peer.proc */
};

/** Thread of all functions: owner. */

/** Errors: -ENOMEM, and it must be closed all the same. */
int plx_eps_open(struct plx_eps *eps, void (*on_failed)(struct plx_ep *ep, int err));
void plx_eps_close(struct plx_eps *eps);

/** Slow path of plx_ep_of(). */
struct plx_ep *plx_ep_of_slow(struct plx_eps *eps, struct plx_peer *peer);

/** @return the ep of a peer, created if needed, or NULL without memory. */
static inline struct plx_ep *
plx_ep_of(struct plx_eps *eps, struct plx_peer *peer)
{
	return likely(peer->user != NULL) ? peer->user : plx_ep_of_slow(eps, peer);
}

/**
 * Add, or remove, a zeroed API handle, crossed or not. A failed ep without handles and waits is
 * freed by sweep.
 */
void plx_ep_user_add(struct plx_ep *ep, struct plx_ep_user *user);
/** The same with a number that both sides have agreed on. */
void plx_ep_user_link(struct plx_ep *ep, struct plx_ep_user *user, uint32_t conn_id);
void plx_ep_user_remove(struct plx_ep_user *user);

/** @return whether a handle numbered by this side ever had this number. */
bool plx_ep_user_was(const struct plx_ep *ep, uint32_t conn_id);

/** @return the handle with this number, or NULL. */
struct plx_ep_user *plx_ep_user_find(const struct plx_ep *ep, uint32_t conn_id);

/** Slow path of plx_ep_connect(): it is not connected, or has failed. */
int plx_ep_connect_slow(struct plx_ep *ep);

/**
 * Connect before the first send.
 * @return 0; -EAGAIN: a stub that is connecting, plx_ep_defer() the operation; one that
 * plx_ep_may_pass(); or another -errno: the ep has failed.
 */
static inline int
plx_ep_connect(struct plx_ep *ep)
{
	return likely(ep->connected) ? 0 : plx_ep_connect_slow(ep);
}

/** @return whether connecting may succeed later: a resource of the process is used up. */
static inline bool
plx_ep_may_pass(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;
}

/* ep_conn.c */

void plx_ep_stub_open(struct plx_ep_stub *s, struct plx_eps *eps, uint32_t conn_id);

/**
 * Start an operation when the stub is connected, in order; at once if it already is.
 * @param ep for which plx_ep_connect() returned -EAGAIN
 * @param fn starts the operation; is called again with req
 * @param fail is called instead if it never connects: completes req with the reason
 * @param where the place of the ep in the request: it is replaced before fn is called
 * @return 0, or -ENOMEM and nothing happened
 */
int plx_ep_defer(struct plx_ep *ep, void (*fn)(void *req), void (*fail)(struct plx_req *req, int err),
	struct plx_req *req, struct plx_ep **where);

/** Start the waiting operations on the real ep, which the stub references from now on. */
void plx_ep_stub_connect(struct plx_ep_stub *s, struct plx_ep *real);

/** Present and later operations fail with err. The stub may have been connected. */
void plx_ep_stub_fail(struct plx_ep_stub *s, int err);

/** Release the real ep; waiting operations are dropped. */
void plx_ep_stub_close(struct plx_ep_stub *s);

/** @return whether the process of the stub's ep had closed before. */
bool plx_ep_stub_was_closed(const struct plx_ep_stub *s);

/** The other side's EP_CLOSE may arrive before its answer. @return the stub, or NULL */
struct plx_ep_stub *plx_ep_stub_find(const struct plx_eps *eps, uint32_t conn_id);

/**
 * @return the reason why operations on the ep fail, or 0; a reactor's finding may become
 *   visible a little later. Thread: any.
 */
static inline int
plx_ep_err(const struct plx_ep *ep)
{
	return __atomic_load_n(&ep->err, __ATOMIC_RELAXED);
}

/** @return the reason why operations on the handle fail, or 0. Thread: any. */
static inline int
plx_ep_user_err(const struct plx_ep_user *user)
{
	/* pairs with the release where it is set */
	int err = atomic_load_explicit(&user->err, memory_order_acquire);

	return err != 0 ? err : plx_ep_err(user->ep);
}

/** @return whether the ep of the handle is not known yet. Thread: application's side. */
static inline bool
plx_ep_user_is_unmet(const struct plx_ep_user *user)
{
	return user->ep->stub;
}

/** @return whether a message may go to the device now: connected, and nothing is pending. */
static inline bool
plx_ep_open(const struct plx_ep *ep)
{
	return likely(ep->connected && TAILQ_EMPTY(&ep->pending));
}

#define PLX_EP_PIECES_MAX 4 /* messages of the device in which what it chooses to send eagerly goes */

/**
 * The second bound, after eager_own. @return whether a message of len bytes goes without asking. Lengths beyond
 *   the setting, which the device has chosen, do so if the peer takes them in a few messages, and if this process
 *   has no memory that peers map: from mapped memory one copy is enough, which takes an announcement.
 */
static inline bool
plx_ep_is_eager(const struct plx_ep *ep, uint64_t len)
{
	if (len < ep->eps->eager_end)
		return true;
	return len <= PLX_EP_PIECES_MAX * (uint64_t)ep->peer->mtu &&
		((ep->peer->caps & PLX_DEV_SHARED) == 0 || !plx_window_any());
}

/**
 * Send a short message now or not at all.
 * @return 0, -EAGAIN (nothing happened), or another error: the ep has failed.
 */
static inline int
plx_ep_tx_short(struct plx_ep *ep, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	return plx_peer_tx_short(ep->peer, op, hdr, data, len);
}

#define PLX_KEEP_LEAST 256u /* bytes of a message: shorter ones are copied, whatever the device says */

/**
 * Whether an arrived message is long enough to be kept in the device's buffer instead of a copy; plx_queue_rx_keep()
 * does that.
 */
static inline bool
plx_rx_is_keepable(const struct plx_rx *rx)
{
	return unlikely(rx->len >= PLX_KEEP_LEAST) && rx->src->q->keep_min - 1 < rx->len; /* 0: none is */
}

/**
 * A message's data lies in a device's buffer, which goes back when the message is freed.
 * @param m without data of its own
 * @param buf of plx_queue_rx_keep() @param data in it. Thread: owner.
 */
void plx_msg_lies(struct plx_msg *m, struct plx_queue *q, void *buf, const uint8_t *data);

/** @return whether the peer's device, and the peer by it, may use a request's buffer where it lies. */
static inline bool
plx_req_in_place(const struct plx_req *req, const struct plx_peer *peer)
{
	return likely(req->dt == NULL) ||
	       (req->dt->mem_type != 0 && plx_queue_takes(peer->q, req->dt->mem_type));
}

/** Make len bytes of a send's buffer, from offset on, the data of tx. */
static inline void
plx_req_tx(struct plx_req *req, struct plx_tx *tx, uint64_t offset, uint64_t len)
{
	tx->len = len;
	if (likely(req->dt == NULL)) {
		tx->data = (const void *)((uintptr_t)req->buf + offset); /* it may be NULL */
		return;
	}
	tx->pack = req->dt->pack;
	tx->pack_arg = req->dt;
	tx->pack_offset = offset;
}

/** @return whether a message is pending or held. */
static inline bool
plx_ep_has_any(const struct plx_ep *ep)
{
	return !TAILQ_EMPTY(&ep->pending) || !TAILQ_EMPTY(&ep->held);
}

/** Append to the pending list a message that a held tagged message may delay. */
void plx_ep_pend_as(struct plx_ep *ep, struct plx_pend *p, enum plx_pend_order order);

/** The same for a message that only the device delays. */
static inline void
plx_ep_pend(struct plx_ep *ep, struct plx_pend *p)
{
	plx_ep_pend_as(ep, p, PLX_PEND_ANY);
}

/** The same for a mark, behind held tagged messages, if there are any. */
void plx_ep_pend_last(struct plx_ep *ep, struct plx_pend *p);

/**
 * A tagged message is to be announced. @return whether it counts now; else p is held, and
 * queued when it may be.
 */
bool plx_ep_announce(struct plx_ep *ep, struct plx_pend *p);

/**
 * The same for a pending eager message that may not be eager any more: it is the first of
 * the waiting ones.
 */
bool plx_ep_announce_early(struct plx_ep *ep, struct plx_pend *p);

/** An announced message that was counted has completed. */
void plx_ep_announce_end(struct plx_ep *ep);

/** The peer exceeds the bounds: notify it, and fail. */
void plx_ep_refuse(struct plx_ep *ep);

/** It is not sent any more; it must be pending or held. */
void plx_ep_unpend(struct plx_ep *ep, struct plx_pend *p);

/**
 * Call passed when all present messages have been given to the device, or failed.
 * @return 0, or -ENOMEM
 */
int plx_ep_mark(struct plx_ep *ep, void (*passed)(void *arg), void *arg);

/** @return whether a message of this handle is pending. Walks the whole list. */
bool plx_ep_has_pending(const struct plx_ep *ep, uint32_t conn_id);

/**
 * Send a message of at most PLX_WIRE_HDR_MAX bytes: now, or queued (a copy) when the device is full or
 * the peer cannot be connected just now.
 * @param conn_id of the handle whose closing waits for it, or PLX_CONN_NONE
 * @return 0; the ep's error; or -ENOMEM, and the ep fails: the reserve is used up
 */
int plx_ep_tx_copy(struct plx_ep *ep, uint32_t conn_id, uint8_t op, const void *hdr,
	uint8_t hdr_len);

/** The same with a control message, of no handle. */
int plx_ep_tx_ctl(struct plx_ep *ep, uint8_t op, const void *hdr, uint8_t hdr_len);

/** Refill the reserve. @return whether it is full */
bool plx_eps_refill(struct plx_eps *eps);

/** Tell the peer to announce everything; once. */
void plx_ep_stop(struct plx_ep *ep);

/** Let all stopped peers send again. */
void plx_eps_resume(struct plx_eps *eps);

/** A FLOW of the peer has arrived. */
void plx_ep_on_flow(struct plx_ep *ep, const struct plx_wire_flow *h);

/** Slow path of plx_eps_flush(). */
unsigned plx_eps_flush_slow(struct plx_eps *eps);

/** @return 0: nothing is pending, and no peer is stopped. */
static inline uintptr_t
plx_eps_work(const struct plx_eps *eps)
{
	return (uintptr_t)TAILQ_FIRST(&eps->stalled) | (uintptr_t)LIST_FIRST(&eps->stopped);
}

/** Offer pending messages to the devices again. @return how many were taken */
static inline unsigned
plx_eps_flush(struct plx_eps *eps)
{
	return likely(TAILQ_EMPTY(&eps->stalled)) ? 0 : plx_eps_flush_slow(eps);
}

/** Wait for an answer from the ep's peer. @param conn_id of the handle, or PLX_CONN_NONE */
static inline void
plx_ep_wait(struct plx_ep *ep, struct plx_wait *w, uint32_t conn_id,
	void (*fail)(struct plx_wait *w, int err))
{
	w->list = &ep->waits;
	w->conn_id = conn_id;
	w->fail = fail;
	ep->n_waits++;
	TAILQ_INSERT_TAIL(&ep->waits.head, w, link);
}

/** Stop waiting; no effect if it does not wait. */
static inline void
plx_ep_wait_end(struct plx_wait *w)
{
	if (w->list == NULL)
		return;
	TAILQ_REMOVE(&w->list->head, w, link);
	w->list->ep->n_waits--;
	w->list = NULL;
}

/** Waiting and pending sends of one handle fail with err; others continue. */
void plx_ep_cancel(struct plx_ep *ep, uint32_t conn_id, int err);

/** Move waiting sends of a closing handle to a list of its own. */
void plx_ep_closing_begin(struct plx_ep *ep, uint32_t conn_id, struct plx_wait_list *list);

/** The same for sends that wait only since then, as they were announced and not sent. */
void plx_ep_closing_more(struct plx_ep *ep, uint32_t conn_id, struct plx_wait_list *list);

/** The list, which is empty, does not belong to the ep any more. */
void plx_ep_closing_end(struct plx_wait_list *list);

/** The peer is dead: all its operations fail with err, then on_failed. */
void plx_ep_fail(struct plx_ep *ep, int err);

/** Free failed eps without references and waits. */
void plx_eps_sweep(struct plx_eps *eps);

#endif

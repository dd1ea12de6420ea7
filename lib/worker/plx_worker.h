/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_worker.h - one core's world: queues, eps, matcher, pools, turns
 *
 * Design notes
 * - A worker has an owner, the thread that runs its turns: the caller of plx_worker_progress()
 *   (inline), or a reactor (dedicated). The application's side is the thread, or the threads one
 *   at a time, that call the API. Inline both are the same.
 * - Functions with "Thread: application's side" work in both modes: dedicated, they post the
 *   operation to the reactor and return. The others are for the owner.
 * - A face includes this header, which includes those of the layers below, and plx_init.h. It
 *   reads no field of a worker or of an ep: there is a function here for everything that it
 *   needs.
 */
#ifndef PLX_WORKER_H
#define PLX_WORKER_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "plx_am.h"
#include "plx_chan.h"
#include "plx_cm.h"
#include "plx_conf.h"
#include "plx_dev.h"
#include "plx_ep.h"
#include "plx_fork.h"
#include "plx_inbox.h"
#include "plx_lock.h"
#include "plx_log.h"
#include "plx_offload.h"
#include "plx_probe.h"
#include "plx_reactor.h"
#include "plx_req.h"
#include "plx_rma.h"
#include "plx_rndv.h"
#include "plx_stream.h"
#include "plx_tag.h"
#include "plx_timer.h"
#include "plx_spin.h"
#include "plx_waits.h"
#include "plx_window.h"
#include "plx_yield.h"

#define PLX_WORKER_NAME_MAX 32

struct plx_worker_stat {
	uint64_t turns; /* including looks in place of a turn */
	uint64_t busy_turns, yields, sleeps;
	uint64_t tag_sends, tag_recvs;
	uint64_t tag_quick; /* of the sends: posted to a reactor with their data */
	uint64_t eager_bytes_kept; /* of unexpected messages that were copied, in total */
	uint64_t eager_in_place;   /* unexpected messages that stay where the device has put them */
	uint64_t rx_drop_bad_op, rx_drop_bad_frag, rx_drop_no_memory;
	uint64_t rx_drop_refused; /* beyond the bounds of their ep, which failed */
	uint64_t submits;	   /* operations posted to a reactor */
	uint64_t direct;	   /* operations that the application ran as the owner */
};

extern const struct plx_stat_row plx_worker_stat_rows[];

/** How an application sleeps until something happens; wake.c. Owner: application's side. */
struct plx_wake {
	bool on;
	bool edge;
	bool no_sleep; /* a device can't wake us: always busy */
	int efd;       /* what polls readable */
	int signal_fd; /* any thread writes: plx_worker_signal() */
	int app_fd;    /* dedicated: the owner writes */
	int timer_fd;  /* inline: the first of the times of channels and devices */
	uint64_t due_ticks;    /* of timer_fd; UINT64_MAX: of none */
	uint32_t events_seen;  /* dedicated: of n_events */
	uint32_t failed_told;  /* owner: of n_failed */
	_Atomic uint32_t n_events; /* writer: owner; turns with events */
	_Atomic uint32_t armed; /* dedicated; writer: application's side 1; the thread that wakes it
	                         * 0 */
	_Atomic uint32_t naps;	/* the same, for a short sleep in progress; sleep.c */
};

/** The operations that a flush waits for. */
enum plx_flush_kind {
	PLX_FLUSH_EP,	  /* the device has everything that was sent to ep */
	PLX_FLUSH_CLOSE,  /* the device has everything of one handle, and every answer has come */
	PLX_FLUSH_WORKER, /* as EP, for all eps */
};

TAILQ_HEAD(plx_flush_list, plx_flush);

/** Of an ep. */
struct plx_worker_ep {
	struct plx_flush_list flushes;	    /* in order of the requests */
	struct plx_flush_list closes;	    /* the same, of handles */
	TAILQ_ENTRY(plx_worker_ep) flushing; /* of the worker's, while there are any */
	LIST_HEAD(, plx_msg) partial;	    /* messages in pieces that are arriving */
	SLIST_ENTRY(plx_worker_ep) failing; /* peer found dead, not reported yet */
	int failing_err;
	bool is_flushing;
	/* writer: any; reader: owner: a key was unpacked, so memory of the peer may be
	 * written without a message */
	_Atomic bool keys;
};
_Static_assert(sizeof(struct plx_worker_ep) == sizeof(((struct plx_ep *)0)->of_worker), "it is kept there");

/** @return the worker's state of an ep. */
static inline struct plx_worker_ep *
plx_worker_ep(const struct plx_ep *ep)
{
	return (void *)(uintptr_t)ep->of_worker;
}

/** Listeners and connections in progress; conn.c. Owner: application's side. */
struct plx_conns {
	struct plx_cm cm;
	enum plx_cm_transport transport;
	uint32_t done_ms; /* time limit of an accepted client */
	LIST_HEAD(, plx_listener) listeners;
	LIST_HEAD(, plx_conn) list;
	bool in_run;
	uint64_t last_ticks; /* last poll of the sockets */
};

struct plx_worker {
	/* line 0: set at create, read in every turn */
	struct plx_tag *tag;
	uint16_t n_queues;
	bool offloads; /* a device has a list of receives */
	bool may_be_quiet; /* inline, one queue and one that looks */
	alignas(4) bool dedicated;
	uint8_t app_work; /* enum worker_app_work; application's side */
	uint8_t n_holding;
	uint8_t n_polled; /* of the queues, the first: behind them are those that rest */
	struct plx_queue *queues[PLX_DEV_MAX];

	/* owner */
	alignas(PLX_LINE) uint64_t empty_turns;
	uint8_t waits; /* PLX_WAIT_x */
	bool holds; /* queues keep back what this turn sends, until its end */
	uint64_t timers_turn; /* the next of stat.turns to look at the timers */
	uint64_t due_turn; /* of stat.turns: when a look will not do, PLX_WORKER_LOOKS behind the last that was more */
	int32_t turn_due; /* granted: calls of posting threads until the next turn */
	uint32_t sleep_us;
	struct plx_spin spin; /* inline: how it waits behind progress */
	uint64_t kept_max; /* bytes of unexpected data above which senders are stopped */
	uint64_t check_ticks; /* between two looks at the peers */
	struct plx_flush_list flushes;		/* of the worker, in order of the requests */
	TAILQ_HEAD(, plx_worker_ep) flushing;		/* with flushes or closes of their own */
	SLIST_HEAD(, plx_worker_ep) failing; /* peers found dead, reported in the next turn */
	struct plx_worker_stat stat;
	/* each turn reads their first fields; so they are next to each other */
	struct plx_rndv rndv;
	struct plx_eps eps;
	struct plx_rma rma; /* its last fields are the application's side's */
	struct plx_streams streams;
	struct plx_chans chans; /* its last fields are the application's side's */
	struct plx_req_pool chan_reqs; /* for their RMA, and for marks of others */
	struct plx_msg_pools msgs;
	struct plx_offload offload;
	struct plx_timers timers;
	struct plx_timer check;
	struct plx_timer glance; /* at queues that rest */
	struct plx_am am; /* its handlers: application's side */
	struct plx_rx rx[PLX_DEV_RX_BURST];

	/* application's side */
	alignas(PLX_LINE) struct plx_req_pool reqs;
	struct plx_yield yield; /* dedicated: how it waits behind progress */
	uint64_t answered; /* dedicated: number of posts at the last lone completion */
	bool in_poll;
	_Atomic uint32_t n_failed; /* writer: owner; eps and handles that have failed */
	struct plx_conns conns;

	/* both sides; hardly written without wakeup */
	alignas(PLX_LINE) struct plx_wake wake;

	/* cold */
	alignas(PLX_LINE) struct plx_dev *devs[PLX_DEV_MAX];
	struct plx_queue *holding[PLX_DEV_MAX]; /* of the queues: those that can delay messages */
	struct plx_inbox inbox;
	struct plx_poller poller;
	int rest_fds[PLX_DEV_MAX]; /* dedicated: of the queues, descriptors that the reactor sleeps
	                            * on */
	pthread_mutex_t users_lock; /* of the list of API handles: for walking and changing it */
	LIST_HEAD(, plx_ep_user) users;
	uint64_t uid;
	uint32_t forks; /* plx_forks when it was made */
	struct plx_ep_stub orphan; /* in a forked child: replaces the ep of every handle */
	void (*lost)(struct plx_worker *w); /* see plx_worker_params */
	bool (*mine)(const struct plx_worker *w);
	struct plx_waits_of waits_of;
	uint32_t id; /* in RPC and logs */
	char name[PLX_WORKER_NAME_MAX];
	LIST_ENTRY(plx_worker) link;
};

struct plx_worker_params {
	const struct plx_conf *conf; /* copied as needed */
	const char *name;	     /* or NULL */
	uint32_t user_len;	     /* bytes of the user's area behind a request */
	void (*user_init)(void *user);
	void (*user_cleanup)(void *user);
	void *user; /* of the face: plx_worker_user() */
	uint64_t sender_mask; /* bits of a tag that identify the sender, 0: unknown */
	bool multi;	  /* several threads post at once: plx_worker_tag_send_posted() */
	bool wakeup;	  /* plx_worker_efd(), _arm() and _wait() work */
	bool wakeup_edge; /* the descriptor is readable for new events only */
	void (*lost)(struct plx_worker *w); /* or NULL; in a forked child, inside of fork(): it is the parent's */
	bool (*mine)(const struct plx_worker *w); /* or NULL; inside of fork(): false if no callback that runs now is this thread's */
	int event_fd;	  /* wakeup: an epoll descriptor that is to be told too, or -1 */
	void *event_data; /* what it then says */
	/* plx_am.deliver and .plain */
	int (*am_deliver)(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx);
	void (*am_plain)(const struct plx_am_handler *h, const void *hdr, uint32_t hdr_len, const void *data, uint64_t len);
	uint32_t am_align; /* of the data of active messages, at least; a power of 2 */
	bool own_keys; /* keys of remote memory are good for this worker alone: plx_worker_key_domain() */
	/* called on the application's side with what channels bring; NULL: no channels */
	void (*chan_deliver)(struct plx_chans *cs, struct plx_chan_item *item);
	struct plx_chan_items *chan_ready; /* without a reactor and wakeup messages come here instead; or NULL */
	uint32_t chan_max_send; /* longest message of a channel, bytes */
	uint32_t chan_rx_max;	/* receive buffers of all channels */
};

/**
 * Create a worker: dedicated when a reactor runs, inline otherwise.
 * Thread: control. Errors: -ENOMEM; -ENODEV no device opened; a device's.
 */
int plx_worker_create(const struct plx_worker_params *params, struct plx_worker **out);

/** Destroy a worker and all its objects. Accepts NULL. Thread: application's side. */
void plx_worker_destroy(struct plx_worker *w);

/** @return whether a reactor runs the turns. Thread: any. */
static inline bool
plx_worker_has_reactor(const struct plx_worker *w)
{
	return w->dedicated;
}

/**
 * @return whether the reactor is the owner now, so that plx_worker_begin() would fail.
 *   Thread: any.
 */
static inline bool
plx_worker_is_held(const struct plx_worker *w)
{
	return plx_gate_is_held(&w->poller.gate);
}

/** @return plx_worker_params.user. Thread: any. */
static inline void *
plx_worker_user(const struct plx_worker *w)
{
	return w->reqs.user;
}

/** @return a number that changes with each ep and handle that fails. Thread: any. */
static inline uint32_t
plx_worker_n_failed(const struct plx_worker *w)
{
	/* pairs with the release in on_ep_failed() */
	return atomic_load_explicit(&w->n_failed, memory_order_acquire);
}

/** @return whether its only device has failed. Thread: any. */
static inline bool
plx_worker_dev_has_failed(const struct plx_worker *w)
{
	return plx_dev_has_failed(w->queues[0]->dev);
}

/** @return the length from which on messages are announced, bytes. Thread: any. */
static inline uint64_t
plx_worker_eager_end(const struct plx_worker *w)
{
	return w->eps.eager_end;
}

/** As plx_req_get(), plx_req_get_free() and plx_req_init(), of the worker. Thread: application's side. */
static inline struct plx_req *
plx_worker_req_get(struct plx_worker *w)
{
	return plx_req_get(&w->reqs);
}

/** The same if it needs no memory. @return NULL: it does */
static inline struct plx_req *
plx_worker_req_get_free(struct plx_worker *w)
{
	return plx_req_get_free(&w->reqs);
}

/** Make a request of memory of the application's. */
static inline void
plx_worker_req_init(struct plx_worker *w, struct plx_req *req)
{
	plx_req_init(req, &w->reqs, PLX_REQ_USER);
}

/** Set the handler of an active message. @return as plx_am_set(). Thread: application's side. */
static inline int
plx_worker_am_set(struct plx_worker *w, uint16_t id, const struct plx_am_handler *h)
{
	return plx_am_set(&w->am, id, h);
}

/** @return the channels, to allocate their operations and buffers. Thread: application's side. */
static inline struct plx_chans *
plx_worker_chans(struct plx_worker *w)
{
	return &w->chans;
}

/**
 * The number to mix into a key's token for plx_worker_params.own_keys. @return 0: workers share keys.
 * Thread: any.
 */
static inline uint64_t
plx_worker_key_domain(const struct plx_worker *w)
{
	return w->rma.domain;
}

/**
 * One turn (inline), or the callbacks of completed operations (dedicated).
 * @return the number of events, 0 for none; 0 when called from a callback
 * Thread: application's side.
 */
unsigned plx_worker_progress(struct plx_worker *w);

/** The same after a plx_worker_peek() that returned PLX_RX_BURST. */
unsigned plx_worker_progress_slow(struct plx_worker *w);

/**
 * @return whether a callback calls: plx_worker_progress() is running. Thread: application's
 *   side.
 */
static inline bool
plx_worker_in_callback(const struct plx_worker *w)
{
	return w->in_poll || (!w->dedicated && (w->eps.due & PLX_DUE_TURN) != 0);
}

/**
 * Run callbacks outside of plx_worker_progress(), which does nothing meanwhile.
 * @return for plx_worker_callbacks_end(). Thread: application's side.
 */
static inline bool
plx_worker_callbacks_begin(struct plx_worker *w)
{
	bool was = w->dedicated ? w->in_poll : (w->eps.due & PLX_DUE_TURN) != 0;

	if (w->dedicated)
		w->in_poll = true;
	else
		w->eps.due |= PLX_DUE_WORK | PLX_DUE_TURN;
	return was;
}

/** @param was result of plx_worker_callbacks_begin(). Thread: the same. */
static inline void
plx_worker_callbacks_end(struct plx_worker *w, bool was)
{
	if (was)
		return;
	if (w->dedicated)
		w->in_poll = false;
	else
		w->eps.due &= ~PLX_DUE_TURN;
}

/** As plx_req_postpone(), and plx_worker_progress() knows. Thread: application's side. */
void plx_worker_postpone(struct plx_worker *w, struct plx_req *req);

/**
 * Run no more callbacks, accept no more clients: plx_worker_destroy() follows when
 * plx_worker_progress() has returned. Thread: application's side, in a callback.
 */
void plx_worker_mute(struct plx_worker *w);

#define PLX_WORKER_OFFER_EVERY 16 /* inline: turns that find nothing between two offers of the core */
#define PLX_WORKER_LOOKS       16 /* the last of so many looks is a turn: for timers, and for what drivers look at rarely */
#define PLX_LOOKS_WORTH        4  /* empty turns that last as long as these; a power of two */

/** How to yield the core. */
enum plx_offer {
	PLX_OFFER_NOT,
	PLX_OFFER_LEARN, /* dedicated: and measure whether another thread takes it */
	PLX_OFFER_YIELD,
	PLX_OFFER_NAP,	 /* sleep: the kernel moves our data on this core */
};

/** Slow path of plx_worker_offers(). */
__rte_cold enum plx_offer plx_worker_offers_slow(struct plx_worker *w);

/** Slow path of plx_worker_offer(). */
__rte_cold void plx_worker_offer_slow(struct plx_worker *w, enum plx_offer how);

/**
 * After a progress call without events.
 * @return what plx_worker_offer() has to do now
 * Thread: application's side.
 */
static inline enum plx_offer
plx_worker_offers(struct plx_worker *w)
{
	if (w->dedicated)
		return likely(!plx_yield_due(&w->yield)) ? PLX_OFFER_NOT : PLX_OFFER_LEARN;
	if (likely(w->empty_turns % PLX_WORKER_OFFER_EVERY != 0) || w->stat.turns + PLX_WORKER_LOOKS != w->due_turn)
		return PLX_OFFER_NOT;
	return plx_worker_offers_slow(w);
}

/**
 * Yield the core. Outside of any lock: otherwise a thread that waits for the lock on this
 * core would run only while it is taken. Thread: any. Blocks: while others run, or
 * worker.sleep_us.
 */
static inline void
plx_worker_offer(struct plx_worker *w, enum plx_offer how)
{
	if (unlikely(how != PLX_OFFER_NOT))
		plx_worker_offer_slow(w, how);
}

/** One turn. Thread: owner. */
unsigned plx_worker_turn(struct plx_worker *w);

/** @return whether the looks since the last turn are so many that another is due. Thread: owner. */
static inline bool
plx_worker_turn_is_due(const struct plx_worker *w)
{
	return w->stat.turns + 1 >= w->due_turn;
}

/** @return whether this turn may be a look only, which is counted as one. Thread: owner. */
static inline bool
plx_worker_count_look(struct plx_worker *w)
{
	if (unlikely(plx_worker_turn_is_due(w)))
		return false;
	PLX_STAT_INC(w->stat.turns);
	return true;
}

/**
 * The beginning of each progress: check whether there is work.
 * @return PLX_RX_NONE; PLX_RX_BURST: run a turn; or another: plx_worker_take() is due
 * Thread: owner, inline.
 */
static inline enum plx_rx_found
plx_worker_peek(struct plx_worker *w)
{
	enum plx_rx_found found;

	if (unlikely((w->eps.due & (PLX_DUE_WORK | PLX_DUE_TURN)) != 0))
		return PLX_RX_BURST;
	found = w->queues[0]->rx_look(w->queues[0], w->rx);
	if (found != PLX_RX_NONE)
		return found;
	if (likely(plx_worker_count_look(w)))
		return PLX_RX_NONE;
	w->empty_turns |= PLX_LOOKS_WORTH - 1; /* for the looks before the turn that is due */
	return PLX_RX_BURST;
}

/** A lone message of a look: other work, if there is any, waits for messages. rx.c */
void plx_worker_rx_lone(struct plx_worker *w);

/** Handle the message that plx_worker_peek() has found. Thread: owner, inline. */
static inline void
plx_worker_take_begin(struct plx_worker *w)
{
	w->eps.due |= PLX_DUE_TURN;
	w->empty_turns = 0;
	PLX_STAT_INC(w->stat.busy_turns);
	plx_worker_rx_lone(w);
}

/** After it. @return whether there is no more work: this was the turn */
static inline bool
plx_worker_take_end(struct plx_worker *w)
{
	if (unlikely(w->eps.due != PLX_DUE_TURN || !plx_worker_count_look(w)))
		return false;
	w->eps.due = 0;
	return true;
}

/**
 * A turn with PLX_RX_ONE. @return whether that was all; if not plx_worker_take_rest() is
 * due. Thread: owner, inline.
 */
static inline bool
plx_worker_take_one(struct plx_worker *w)
{
	plx_worker_take_begin(w);
	return plx_worker_take_end(w);
}

/** @return the number of events, with that message */
unsigned plx_worker_take_rest(struct plx_worker *w);

/**
 * A turn with any result of plx_worker_peek(), except PLX_RX_BURST. @return the number of
 * events. Thread: the same.
 */
unsigned plx_worker_take(struct plx_worker *w, enum plx_rx_found found);

/**
 * @return whether it was made before this process was forked: it belongs to the parent, and
 *   cleaning up has no effect. Thread: any.
 */
static inline bool
plx_worker_is_inherited(const struct plx_worker *w)
{
	return unlikely(w->forks != plx_forks);
}

/** Run fn as the owner and wait for it. Thread: application's side. Blocks: until the owner's turn. */
void plx_worker_call(struct plx_worker *w, void (*fn)(void *arg), void *arg);

/** The packed worker address. @return its bytes, or -EMSGSIZE. Thread: any. */
int plx_worker_addr(const struct plx_worker *w, void *buf, size_t len);

/**
 * Find or make the ep of a worker address.
 * @param user the API's handle, linked to the ep
 * Errors: -EINVAL not an address; -EHOSTUNREACH no device reaches it; -EPERM a device
 * would, but one of the two processes may not; -ENOMEM. Thread: application's side.
 */
int plx_worker_ep_get(struct plx_worker *w, const void *addr, struct plx_ep_user *user);

/** The other end of a handle, and the device that reaches it. */
struct plx_ep_info {
	bool is_known; /* else the handle is connecting, or could not: only err is set */
	bool connected;
	int err;
	uint32_t caps; /* PLX_DEV_x of the device */
	uint64_t uid;  /* of the worker there */
	uint64_t mtu, eager_end;
	const char *device;
	const char *port; /* or NULL */
};

/** Thread: application's side. */
void plx_worker_ep_info(const struct plx_ep_user *user, struct plx_ep_info *info);

/** Unlink the API's handle. Thread: application's side. */
void plx_worker_ep_put(struct plx_worker *w, struct plx_ep_user *user);

/**
 * @return whether the device is certain to take a short message: plx_peer.tx_sure. Thread:
 *   owner.
 */
static inline bool
plx_worker_is_sure(const struct plx_ep *ep)
{
	return likely(ep->peer->tx_sure != 0);
}

/** @return whether a tagged message may be a short message of the device, now. Thread: owner. */
static inline bool
plx_worker_tag_is_short(const struct plx_ep *ep, uint64_t len)
{
	return plx_ep_open(ep) && len <= ep->peer->short_max && len < ep->eager_end;
}

/**
 * Send such a message if the device is certain to take it (plx_peer.tx_sure); inline only.
 * Thread: owner.
 */
static inline void
plx_worker_tag_send_sure(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	PLX_STAT_INC(w->stat.tag_sends);
	PLX_PROBE_SEND("tag", NULL, len, tag);
	plx_peer_tx_sure(ep->peer, PLX_WIRE_EAGER, tag, buf, len);
}

/** The protocol of a tagged message. */
enum plx_send_how {
	PLX_SEND_ANY,	   /* not chosen: the owner does */
	PLX_SEND_ANY_SYNC, /* the same, of one that completes when it is matched */
	PLX_SEND_EAGER,	   /* one message of the device */
	PLX_SEND_FRAGS,
	PLX_SEND_SYNC,	   /* one message, answered when matched */
	PLX_SEND_RNDV,
};

/** Send such a message if the device may refuse it. @return as plx_worker_tag_send_now() */
static inline int
plx_worker_tag_send_short(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	int rc;

	PLX_PROBE_SEND("tag", NULL, len, tag);
	rc = plx_ep_tx_short(ep, PLX_WIRE_EAGER, tag, buf, len);
	if (likely(rc == 0))
		PLX_STAT_INC(w->stat.tag_sends);
	return rc;
}

/** Send a message that is not short, or whose ep is not open. @return as plx_worker_tag_try() */
int plx_worker_tag_send_long(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag);

/**
 * Send a tagged message if it can be sent at once; inline only.
 * @return 0 done, the buffer is free; enum plx_send_how: it needs a request, and then goes this way;
 *   -EAGAIN it needs one, and its ep is not connected yet; or the ep's error. Thread: owner.
 */
static inline int
plx_worker_tag_try(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len, uint64_t tag)
{
	int rc;

	if (unlikely(!plx_worker_tag_is_short(ep, len)))
		return plx_worker_tag_send_long(w, ep, buf, len, tag);
	rc = plx_worker_tag_send_short(w, ep, buf, len, tag);
	return rc == -EAGAIN ? (int)PLX_SEND_EAGER : rc;
}

/** The same at once or not at all. @return 0; -EAGAIN it needs a request; or the ep's error. Thread: owner. */
static inline int
plx_worker_tag_send_now(struct plx_worker *w, struct plx_ep *ep, const void *buf, uint64_t len,
	uint64_t tag)
{
	int rc = plx_worker_tag_try(w, ep, buf, len, tag);

	return rc > 0 ? -EAGAIN : rc;
}

/** Longest message of plx_worker_tag_send_posted(): with its other fields, one line. */
#define PLX_WORKER_QUICK_MAX 24u

/**
 * With a reactor that has the turns: hand a short message to it with its data, so that it is complete at once.
 * @return whether it was; if not nothing has happened. Thread: application's side, or any if the worker was made for
 * several.
 */
bool plx_worker_tag_send_posted(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag);

/**
 * Send a tagged message. req completes when buf may be used again, of a synchronous one when it
 * is matched; inline that may be before this returns.
 * @param how PLX_SEND_ANY or PLX_SEND_ANY_SYNC; or what plx_worker_tag_try() has just returned, so
 *   that a send connects once and chooses once. Thread: application's side.
 */
void plx_worker_tag_send(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag, enum plx_send_how how, struct plx_req *req);

/**
 * Receive a tagged message into buf; req completes with its info, -EMSGSIZE when it
 * was longer than len, -ECANCELED. Thread: application's side.
 */
void plx_worker_tag_recv(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req);

/**
 * The same through the reactor's inbox: shorter while it is the owner.
 * @param req with PLX_REQ_RECV
 */
void plx_worker_tag_recv_posted(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req);

/** Result of plx_worker_tag_probe(). */
struct plx_probe {
	struct plx_msg *msg; /* NULL: none */
	uint64_t tag, len;
};

/**
 * Receive a message that has arrived completely.
 * @param req has the buffer's dt and gets the message's info; it does not complete and
 *   belongs to the caller again
 * @return 0; -EMSGSIZE it was longer than len; -ECONNRESET its sender has withdrawn it or
 *   died; -EAGAIN none, nothing happened. Thread: application's side.
 */
int plx_worker_tag_recv_now(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag,
	uint64_t mask, struct plx_req *req);

/** The message of a receive. */
struct plx_recv_info {
	uint64_t tag, len;
};

/**
 * The same into contiguous memory, without a request; inline only.
 * @param info set unless this returns -EAGAIN
 * @return as plx_worker_tag_recv_now(); -EAGAIN as well where a request is needed. Thread: owner.
 */
int plx_worker_tag_take_now(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_recv_info *info);

/** The same for a message that a probe has removed. */
int plx_worker_msg_recv_now(struct plx_worker *w, struct plx_msg *msg, void *buf, uint64_t len,
	struct plx_req *req);

/** Look for an unexpected message, or remove it. Thread: application's side. */
void plx_worker_tag_probe(struct plx_worker *w, uint64_t tag, uint64_t mask, bool take,
	struct plx_probe *out);

/** @return whether devices match receives as well. Thread: owner. */
static inline bool
plx_worker_offloads(const struct plx_worker *w)
{
	return w->offloads;
}

/**
 * @return whether plx_worker_tag_post() is sufficient: there are no unexpected messages.
 *   Thread: owner.
 */
static inline bool
plx_worker_can_post(const struct plx_worker *w)
{
	return !w->offloads && plx_tag_stats(w->tag)->kept == 0;
}

/**
 * As plx_worker_tag_recv(), directly after plx_worker_can_post() returned true: completes
 * in a turn.
 * @param req with PLX_REQ_RECV
 */
static inline void
plx_worker_tag_post(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	PLX_STAT_INC(w->stat.tag_recvs);
	req->buf = buf;
	req->len = len;
	req->posted = true;
	plx_tag_post(w->tag, &req->recv.tag, tag, mask);
}

#define PLX_WORKER_TURN_EVERY 32 /* calls between two of progress: a thread that posts without
                                  * waiting runs turns too */
#define PLX_WORKER_LONG_LEN   32768 /* moving this many bytes takes longer than waking a reactor */

/** Slow paths of plx_worker_begin() and plx_worker_end(). */
enum plx_gate_pass plx_worker_begin_slow(struct plx_worker *w);
void plx_worker_end_slow(struct plx_worker *w, enum plx_gate_pass pass, bool turn);

/**
 * With a reactor: become the owner, for a call that completes nothing. Earlier posts have
 * run then.
 * @return PLX_GATE_NOT: post a message; else until plx_worker_end(). Thread: application's
 *   side. Blocks: never.
 */
static inline enum plx_gate_pass
plx_worker_begin(struct plx_worker *w)
{
	struct plx_gate *g = &w->poller.gate;

	if (plx_gate_owner(g) == PLX_GATE_REACTOR)
		return PLX_GATE_NOT;
	if (unlikely(!g->one || !plx_gate_enter(g, PLX_GATE_ONE)))
		return plx_worker_begin_slow(w);
	if (unlikely(plx_inbox_waits(&w->inbox))) {
		plx_bias_leave(&g->bias);
		return plx_worker_begin_slow(w);
	}
	PLX_STAT_INC(w->stat.direct);
	return PLX_GATE_ENTERED;
}

/** @param turn it may be time for one: not after a receive, when others are about to be posted */
static inline void
plx_worker_end(struct plx_worker *w, enum plx_gate_pass pass, bool turn)
{
	if (unlikely(pass != PLX_GATE_ENTERED || (turn && --w->turn_due <= 0) || w->wake.on || w->poller.returns))
		plx_worker_end_slow(w, pass, turn);
	else
		plx_bias_leave(&w->poller.gate.bias);
}

/** Receive a message that a probe removed; as plx_worker_tag_recv(). Thread: application's side. */
void plx_worker_msg_recv(struct plx_worker *w, struct plx_msg *msg, void *buf, uint64_t len,
	struct plx_req *req);

/** Cancel a posted receive; a matched one continues. Thread: application's side. */
void plx_worker_cancel(struct plx_worker *w, struct plx_req *req);

/**
 * Whether a flush of the worker, or of one handle, would succeed at once, and all earlier completions were
 * delivered. Stores to mapped memory are visible before any later load, as after a flush.
 * @param user NULL: of the worker @return false as well where only plx_worker_flush() can tell
 * Thread: application's side.
 */
bool plx_worker_is_flushed(struct plx_worker *w, const struct plx_ep_user *user);

/**
 * req completes when the flush is done; inline that may be at once.
 * @param user the handle; NULL for PLX_FLUSH_WORKER
 * Thread: application's side.
 */
void plx_worker_flush(struct plx_worker *w, enum plx_flush_kind kind,
	const struct plx_ep_user *user, struct plx_req *req);

/** Call fn for each API handle, which stays valid meanwhile. Thread: any. */
void plx_worker_users_each(struct plx_worker *w, void (*fn)(struct plx_ep_user *user, void *arg),
	void *arg);

/** Cancel all waiting and pending sends of this handle. Thread: application's side. */
void plx_worker_ep_cancel(struct plx_worker *w, const struct plx_ep_user *user);

/**
 * Put or get at once, through the device; the face accesses mapped memory itself.
 * @param hides the program needs no request, and gets errors by a flush: see plx_rma_later()
 * @return 0 done, or copied; -EINPROGRESS its buffer is in use until a flush completes; -EAGAIN it
 *   needs a request; or an error. Thread: application's side.
 */
int plx_worker_rma_now(struct plx_worker *w, const struct plx_rma_do *d, bool hides);

/**
 * As plx_rma_pieces_now(). @param all bytes of the list that the pieces are of: of what both sides should copy none
 *   is done, and -EAGAIN returned; 0: never. Thread: application's side.
 */
int plx_worker_rma_pieces(struct plx_worker *w, struct plx_ep *ep, uint8_t kind,
	const struct plx_rma_piece *pieces, unsigned *n, uint64_t all);

/**
 * Later puts, gets and atomics wait for earlier ones. Errors: -ENOMEM. Thread:
 * application's side.
 */
int plx_worker_fence(struct plx_worker *w);

/**
 * @return whether a fence delays direct access to mapped memory; plx_worker_unfenced() may
 *   end that.
 */
static inline bool
plx_worker_is_fenced(const struct plx_worker *w)
{
	return w->rma.fenced;
}

/** As plx_rma_unfenced(). Thread: application's side. */
static inline bool
plx_worker_unfenced(struct plx_worker *w)
{
	return plx_rma_unfenced(&w->rma);
}

/** As plx_rkey_unpack(), of memory of the handle's other end. */
int plx_worker_rkey_unpack(const struct plx_ep_user *user, const void *buf, uint8_t can, bool map,
	struct plx_rkey **out);

/** Put, get or atomic; req completes when the operation does. Thread: application's side. */
void plx_worker_rma(struct plx_worker *w, const struct plx_rma_do *d, struct plx_req *req);

/**
 * After it, for a put without a visible request: as plx_rma_is_taken(). Thread:
 * application's side, before any other call on the worker.
 */
bool plx_worker_rma_is_taken(struct plx_worker *w, struct plx_req *req);

/**
 * The application works with its peers without events, by loads and stores: it is not idle,
 * and should not yield. Thread: application's side.
 */
static inline void
plx_worker_busy(struct plx_worker *w)
{
	/* two threads of a MULTI worker may meet here: either count is fine */
	if (w->dedicated)
		__atomic_store_n(&w->yield.polls, 0, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&w->empty_turns, 0, __ATOMIC_RELAXED);
}

/**
 * A short put that plx_worker_rma_now() would do, if it is of the usual kind.
 * @param mode as this thread has become the owner
 * @return as it. Thread: application's side, and owner.
 */
static __rte_always_inline int
plx_worker_put_quick(struct plx_worker *w, struct plx_ep *ep, const struct plx_rkey *k,
	const void *buf, uint64_t len, uint64_t remote, enum plx_gate_mode mode)
{
	if (!plx_rma_unfenced(&w->rma) || !plx_rma_is_quick(&w->rma, ep, k, len) || plx_rma_ep(ep)->sure != 0)
		return -EAGAIN;
	if (mode == PLX_GATE_SHARED)
		w->rma.may_mark = true;
	w->empty_turns = 0; /* as plx_worker_busy() */
	return plx_rma_quick(&w->rma, ep, k, buf, (uint32_t)len, remote);
}

/**
 * Add a reply handle for the sender of a message, by the number in the message. Thread:
 * application's side.
 */
int plx_worker_ep_answer(struct plx_worker *w, struct plx_ep *ep, uint32_t conn_id,
	struct plx_ep_user *user);

/** The protocol of an active message. */
enum plx_am_how {
	PLX_AM_EAGER = 1 << 0, /* eager, whatever its length */
	PLX_AM_RNDV = 1 << 1,  /* rendezvous, whatever its length */
	/* what plx_worker_am_try() has chosen */
	PLX_AM_WHOLE = 1 << 2, /* one message of the device */
	PLX_AM_FRAGS = 1 << 3,
	PLX_AM_RTS = 1 << 4,
	PLX_AM_CHOSEN = PLX_AM_WHOLE | PLX_AM_FRAGS | PLX_AM_RTS,
};

/**
 * Send an active message of contiguous data if it can be sent at once; inline only.
 * @param hdr h.hdr_len bytes
 * @return 0 done, header and data are free; enum plx_am_how: a request is needed, and then it is
 *   sent so; -EAGAIN one is needed, and the ep is not connected yet, or is full; or the ep's
 *   error. Thread: owner.
 */
int plx_worker_am_try(struct plx_worker *w, struct plx_ep *ep, struct plx_wire_am h,
	const void *hdr, const void *buf, uint64_t len, uint32_t how);

/** The same at once or not at all. @return 0; -EAGAIN it needs a request; or the ep's error. Thread: owner. */
static inline int
plx_worker_am_send_now(struct plx_worker *w, struct plx_ep *ep, struct plx_wire_am h,
	const void *hdr, const void *buf, uint64_t len, uint32_t how)
{
	int rc = plx_worker_am_try(w, ep, h, hdr, buf, len, how);

	return rc > 0 ? -EAGAIN : rc;
}

/**
 * @param len bytes of data, and of a user's header with its padding
 * @return whether an active message may be a short message now. Thread: owner.
 */
static inline bool
plx_worker_am_is_short(const struct plx_ep *ep, uint64_t len)
{
	return plx_ep_open(ep) && len <= ep->peer->short_max && len < ep->eager_own;
}

/** Send such a message. @return 0; -EAGAIN it has to wait; or the ep's error. Thread: owner. */
static inline int
plx_worker_am_send_short(struct plx_worker *w, struct plx_ep *ep, struct plx_wire_am h, const void *buf,
	uint64_t len)
{
	uint64_t word;
	int rc;

	memcpy(&word, &h, sizeof(word));
	PLX_PROBE_SEND("am", NULL, len, word);
	rc = plx_ep_tx_short(ep, PLX_WIRE_AM, word, buf, len);
	if (likely(rc == 0))
		PLX_STAT_INC(w->am.stat.sends);
	return rc;
}

/** The same if the device is certain to take it (plx_peer.tx_sure). Thread: owner. */
static inline void
plx_worker_am_send_sure(struct plx_worker *w, struct plx_ep *ep, struct plx_wire_am h, const void *buf,
	uint64_t len)
{
	uint64_t word;

	memcpy(&word, &h, sizeof(word));
	PLX_STAT_INC(w->am.stat.sends);
	PLX_PROBE_SEND("am", NULL, len, word);
	plx_peer_tx_sure(ep->peer, PLX_WIRE_AM, word, buf, len);
}

/**
 * A short active message without a user's header, through the inbox with its data: it is
 * complete at once.
 * @return whether it was; if not nothing has happened. Thread: application's side, or any
 *   if the worker was made for several.
 */
bool plx_worker_am_send_posted(struct plx_worker *w, const struct plx_ep_user *user, struct plx_wire_am h,
	const void *buf, uint64_t len);

/**
 * Send an active message. req completes when hdr and buf may be reused; an announced one
 * with its receiver's status. Thread: application's side.
 */
void plx_worker_am_send(struct plx_worker *w, const struct plx_ep_user *user, struct plx_wire_am h,
	const void *hdr, const void *buf, uint64_t len, uint32_t how, struct plx_req *req);

/**
 * Copy a stored message with its data, and free it.
 * @param req has buf, len and dt, is used for the call only and gets info_len
 * @return 0, -EMSGSIZE. Thread: application's side.
 */
int plx_worker_am_copy(struct plx_msg *m, void *data, struct plx_req *req);

/** Loan the data of an announced message, as plx_rndv_loan(). Thread: owner. */
int plx_worker_am_loan(struct plx_worker *w, const struct plx_msg *m, struct plx_loan **out);

/** Fetch the data of an announced message; req completes with info_len. Thread: application's side. */
void plx_worker_am_fetch(struct plx_worker *w, struct plx_msg *m, void *buf, uint64_t len,
	struct plx_req *req);

/**
 * Send bytes of a stream if the device is certain to take them. @return whether it was; if
 * not nothing has happened. Thread: owner.
 */
static inline bool
plx_worker_stream_send_sure(struct plx_worker *w, const struct plx_ep_user *user, const void *buf, uint64_t len)
{
	struct plx_stream *s = user->stream;

	if (unlikely(s == NULL || !plx_stream_is_sure(s, len)))
		return false;
	PLX_STAT_INC(w->streams.stat.sends);
	PLX_PROBE_SEND("stream", NULL, len, s->conn_id);
	plx_stream_send_sure(s, buf, len);
	return true;
}

/** As plx_worker_tag_send_now(), for the bytes of a stream. Thread: owner. */
int plx_worker_stream_send_now(struct plx_worker *w, struct plx_ep_user *user, const void *buf,
	uint64_t len);

/** Send bytes; req completes when buf may be used again. Thread: application's side. */
void plx_worker_stream_send(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, struct plx_req *req);

/**
 * Receive arrived bytes, at least an element and whole ones, or with waitall len bytes; req
 * completes with plx_stream_got() bytes. Thread: application's side.
 */
void plx_worker_stream_recv(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req);

/**
 * Get the next bytes in place. @return 0, *data NULL: none; or why none will come. Thread:
 * application's side.
 */
int plx_worker_stream_lend(struct plx_worker *w, struct plx_ep_user *user, void **data,
	uint64_t *len);
void plx_worker_stream_return(struct plx_worker *w, struct plx_ep_user *user, void *data);

/** List handles that got data since the last call. @return how many. Thread: application's side. */
uint32_t plx_worker_stream_poll(struct plx_worker *w, struct plx_ep_user **users, uint32_t n);

/**
 * The same for arrived bytes. @param req does not complete and belongs to the caller again
 * @return 0; -EAGAIN: not enough bytes, nothing happened; or why none will come. Thread:
 *   application's side.
 */
int plx_worker_stream_recv_now(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req);

/**
 * The same, with a reactor, while this thread may act as the owner and all completions were delivered; else -EAGAIN.
 */
int plx_worker_stream_recv_granted(struct plx_worker *w, struct plx_ep_user *user, void *buf, uint64_t len,
	uint64_t elem, bool waitall, struct plx_req *req);

/* post_chan.c: channels. All: application's side. */

/** A request for a channel. */
struct plx_chan_asked {
	const struct plx_wire_addr *addr; /* of the peer's worker */
	const void *data;
	uint32_t len;	     /* of data, at most PLX_WIRE_CHAN_DATA_MAX */
	uint8_t attr;	     /* enum plx_chan_attr */
	uint64_t timeout_us; /* 0: none */
};

/** As plx_chan_ask(). Errors also: -EHOSTUNREACH no device reaches the address. */
int plx_worker_chan_ask(struct plx_worker *w, const struct plx_chan_asked *a, struct plx_chan *c);

/** Accept with c as plx_chan_accept(), or with NULL refuse. */
int plx_worker_chan_answer(struct plx_worker *w, struct plx_chan_request *r, struct plx_chan *c);

/** As plx_chan_join(), plx_chan_meet() and plx_chan_joined(). */
int plx_worker_chan_join(struct plx_worker *w, struct plx_chan *c, uint8_t attr, uint64_t group);
int plx_worker_chan_meet(struct plx_worker *w, struct plx_chan *c, const struct plx_wire_addr *addr,
	uint32_t id);
void plx_worker_chan_joined(struct plx_worker *w, struct plx_chan *c);

/** As plx_chans_fail(). */
void plx_worker_chans_fail(struct plx_worker *w);

/** As plx_chan_end(). */
void plx_worker_chan_end(struct plx_worker *w, struct plx_chan *c);

/** Dedicated path of plx_worker_chan_post(), and of plx_worker_chan_put(). */
void plx_worker_chan_post_far(struct plx_worker *w, struct plx_chan_op *op);
void plx_worker_chan_put_far(struct plx_worker *w, struct plx_chan_item *item);

/** As plx_chan_post(). */
static inline void
plx_worker_chan_post(struct plx_worker *w, struct plx_chan_op *op)
{
	if (likely(!w->dedicated)) {
		plx_eps_need_turn(&w->eps); /* it may wait for a turn */
		plx_chan_post(&w->chans, op);
	} else {
		plx_worker_chan_post_far(w, op);
	}
}

/** As plx_chan_post_short(). Thread: owner, inline. */
static inline void
plx_worker_chan_post_short(struct plx_worker *w, struct plx_chan *c, struct plx_chan_op *op, int rc)
{
	if (unlikely(rc != 0))
		plx_eps_need_turn(&w->eps); /* it may wait for a turn */
	plx_chan_post_short(&w->chans, c, op, rc);
}

/** As plx_chan_item_put(). */
static inline void
plx_worker_chan_put(struct plx_worker *w, struct plx_chan_item *item)
{
	if (likely(!w->dedicated)) {
		plx_eps_need_turn(&w->eps); /* senders without a buffer get READY */
		plx_chan_item_put(&w->chans, item);
	} else {
		plx_worker_chan_put_far(w, item);
	}
}

/** Inline: complete sends that the peers have acknowledged, as a turn does. */
static inline void
plx_worker_chans_reap(struct plx_worker *w)
{
	if (w->chans.unreaped != NULL)
		plx_chans_reap_slow(&w->chans);
}

enum plx_chan_opt {
	PLX_CHAN_OPT_RX_MAX,	/* receive buffers; of all */
	PLX_CHAN_OPT_TIMEOUT,	/* of sends, us */
	PLX_CHAN_OPT_KEEPALIVE, /* period, us */
};

/** Set an option of one channel, or with c NULL of all. Errors: -ERANGE. */
int plx_worker_chan_set(struct plx_worker *w, struct plx_chan *c, enum plx_chan_opt opt,
	uint64_t value);

/** Write the state as text. Thread: application's side. */
void plx_worker_dump(FILE *f, struct plx_worker *w);

/* wake.c */

/** @return the descriptor that polls readable when an armed worker has work. */
static inline int
plx_worker_efd(const struct plx_worker *w)
{
	return w->wake.on ? w->wake.efd : -EOPNOTSUPP;
}

/**
 * Arm: later events make the descriptor readable.
 * @return 0; -EBUSY: there is work, run turns first; -EOPNOTSUPP made without wakeup
 * Thread: application's side.
 */
int plx_worker_arm(struct plx_worker *w);

/**
 * Without a system call: the descriptor of an armed worker may be readable because of a
 * timer, or of an event that the reactor handled, and stays so until plx_worker_progress().
 * Arrivals of a device are not checked. Thread: application's side.
 */
bool plx_worker_has_rung(const struct plx_worker *w);

/**
 * As plx_worker_progress() for a program that polls while armed: the worker stays armed.
 * Later events still make the descriptor readable; after that only plx_worker_progress()
 * makes it quiet. Thread: application's side.
 */
unsigned plx_worker_look(struct plx_worker *w);

/**
 * After plx_worker_arm(): sleep until something happens, or PLX_WAKE_MAX_MS.
 * Thread: any. Blocks: may.
 */
void plx_worker_sleep(const struct plx_worker *w);
#define PLX_WAKE_MAX_MS 500

/** Make the descriptor readable until the next plx_worker_arm(). Thread: any, at any time. */
int plx_worker_signal(struct plx_worker *w);

/* conn.c: eps by socket address. All: application's side. */

struct plx_listener;
struct plx_conn_req;
struct plx_conn;

/** The request of a client. */
struct plx_conn_wish {
	uint8_t err_mode;
	bool has_client_id;
	uint64_t client_id;
	struct sockaddr_storage client;
};

/** Of a connection request that is not answered yet. */
void plx_conn_req_wish(const struct plx_conn_req *r, struct plx_conn_wish *wish);

/**
 * Listen on a socket address.
 * @param fn called from plx_worker_progress() with each request, which it has to answer
 * Errors: -EINVAL not an address; -EADDRINUSE and others.
 */
int plx_worker_listen(struct plx_worker *w, const struct sockaddr *addr, socklen_t len,
	void (*fn)(struct plx_conn_req *r, void *arg), void *arg, struct plx_listener **out);
void plx_worker_unlisten(struct plx_listener *l);
/** The address of a listener. @return 0 or -errno */
int plx_listener_addr(const struct plx_listener *l, struct sockaddr_storage *addr);

struct plx_conn_params {
	const struct sockaddr *to, *local; /* local may be NULL */
	socklen_t to_len, local_len;
	uint8_t err_mode;
	bool has_client_id;
	uint64_t client_id;
};

/** Connect a handle; operations on it wait meanwhile. @return 0 or -errno: bad arguments */
int plx_worker_conn_open(struct plx_worker *w, const struct plx_conn_params *p,
	struct plx_ep_user *user);

/** Answer a request with a handle, and free it. @return 0; on an error the client is refused */
int plx_worker_conn_accept(struct plx_worker *w, struct plx_conn_req *r, struct plx_ep_user *user);

/** Refuse a request, and free it. */
void plx_worker_conn_reject(struct plx_worker *w, struct plx_conn_req *r, int err);

/** Close a handle with a conn and notify its other side; req completes when that is done. */
void plx_worker_conn_close(struct plx_worker *w, struct plx_ep_user *user, bool force,
	struct plx_req *req);

/** Operations on a failed handle fail from now on. */
void plx_worker_conn_settle(struct plx_worker *w, struct plx_ep_user *user);

/** Its socket addresses; family AF_UNSPEC if not known yet. */
void plx_conn_addrs(const struct plx_conn *c, struct sockaddr_storage *local,
	struct sockaddr_storage *remote);

/**
 * Call fn for each worker of the process, none of which can be destroyed meanwhile. Thread:
 * any.
 */
void plx_worker_each(void (*fn)(struct plx_worker *w, void *arg), void *arg);

#endif

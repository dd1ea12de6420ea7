/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * worker_int.h - between the files of lib/worker
 */
#ifndef WORKER_INT_H
#define WORKER_INT_H

#include <rte_common.h>

#include "plx_log.h"
#include "plx_worker.h"

PLX_LOG_DECLARE(worker);

/* rx.c */
/** What a burst of queue k has brought, n messages in w->rx; and its release. */
void worker_rx_take(struct plx_worker *w, uint32_t k, uint16_t n);
void worker_recv_msg(struct plx_worker *w, struct plx_msg *msg, struct plx_req *req);
int worker_take_msg(struct plx_worker *w, struct plx_msg *msg, struct plx_req *req);
void worker_drop_partial(struct plx_worker *w, struct plx_ep *ep, int err);
/** A device has matched this receive with a message that software is to finish. */
void worker_finish_recv(void *worker, struct plx_req *req, const struct plx_rx *rx);
void worker_msg_free(struct plx_worker *w, struct plx_msg *msg);

/* keep.c */
/** @return whether so many bytes more of a peer's messages may be kept; if not its connection fails. */
bool worker_may_keep(struct plx_worker *w, struct plx_ep *ep, uint64_t more);
/** @return whether one more message in pieces may begin to arrive from this peer. */
bool worker_partial_room(const struct plx_ep *ep);

/** The inverse of plx_worker_ep(). */
static inline struct plx_ep *
worker_ep_of(struct plx_worker_ep *e)
{
	return (struct plx_ep *)((uint8_t *)e - offsetof(struct plx_ep, of_worker));
}

/** @return whether it has failed: nothing that waits would be ended again, but the process there may send on. */
static inline bool
worker_ep_is_over(const struct plx_ep *ep)
{
	return (ep->err | plx_worker_ep(ep)->failing_err) != 0;
}

/** What the application's side does in progress besides a turn. */
enum worker_app_work {
	WORKER_APP_DEDICATED = 1 << 0, /* collect completions instead of a turn */
	WORKER_APP_ARMED = 1 << 1,     /* it may have slept */
	WORKER_APP_WAKEUP = 1 << 2,    /* dedicated: the owner counts events */
	WORKER_APP_CONNS = 1 << 3,     /* sockets to look at */
	WORKER_APP_CHANS = 1 << 4,     /* dedicated: what channels bring */
	WORKER_APP_LATER = 1 << 5,     /* completions that were held back */
};

/** From now on, and until it is taken out of app_work. Thread: application's side. */
static inline void
worker_app_add(struct plx_worker *w, enum worker_app_work work)
{
	w->app_work |= work;
	if (!w->dedicated)
		plx_eps_need_turn(&w->eps); /* progress asks that only */
}

/* wake.c */
int worker_wake_open(struct plx_worker *w, const struct plx_worker_params *params);
void worker_wake_close(struct plx_worker *w);
int worker_wake_add(struct plx_worker *w, int fd);
/** Dedicated, at the end of the owner's turn that did n things: wake the application. */
void worker_wake_app(struct plx_worker *w, unsigned n);

/** Dedicated: whether the application has seen all that it was told. Thread: owner. */
bool worker_is_told_all(const struct plx_worker *w);
/** Dedicated: whether something waits to be collected. Thread: application's side. */
bool worker_has_news(const struct plx_worker *w);

/** Make an eventfd or a timer quiet. @return whether it was readable. */
bool worker_event_take(int fd);

/* sleep.c */
void worker_disarm(struct plx_worker *w);
/** Prepare poller.arm and disarm. Thread: control, before the reactor has it. @return 0 or -errno */
int worker_rest_open(struct plx_worker *w);
/**
 * Something long is under way, and a receiver that slept was woken, whose reactor may share this core: an
 * application that polls here stands in its way.
 * @return whether this thread slept instead. Thread: application's side. Blocks: at most for 100 us.
 */
bool worker_rest(struct plx_worker *w);
/** Slow path of worker_end_nap(). */
void worker_end_nap_slow(struct plx_worker *w);

/** Dedicated, at the end of the owner's turn: wake an application that naps until it is told something. */
static inline void
worker_end_nap(struct plx_worker *w)
{
	/* relaxed: it sleeps for a short time only, if this comes too early */
	if (unlikely(atomic_load_explicit(&w->wake.naps, memory_order_relaxed) != 0))
		worker_end_nap_slow(w);
}

/* conn.c */
unsigned worker_conns_run(struct plx_worker *w);
void worker_conns_close(struct plx_worker *w);
/** In a forked child, inside of fork(): the sockets are the parent's. */
void worker_conns_lose(struct plx_worker *w);
/** Refuse every client from now on. */
void worker_conns_mute(struct plx_worker *w);
void worker_conn_drop(struct plx_worker *w, struct plx_ep_user *user);
/** @param src who sends it: a handle that is connecting believes only the process that it connects to */
void worker_on_ep_close(struct plx_worker *w, const struct plx_peer *src, const struct plx_wire_ep_close *h);

/* users.c: the list of handles; any thread */
void worker_users_add(struct plx_worker *w, struct plx_ep_user *user);
void worker_users_remove(struct plx_worker *w, struct plx_ep_user *user);

/* reach.c */
/** The ep of the worker with this address. Thread: owner. */
int worker_ep_of_addr(struct plx_worker *w, const struct plx_wire_addr *addr, struct plx_ep **out);
/* worker.c */
/** Fail an ep in this turn or the next: found inside a send, where no callback may run. Thread: owner. */
void worker_ep_failing(struct plx_worker *w, struct plx_ep *ep, int err);

/* send.c */
void worker_tag_send(struct plx_worker *w, struct plx_req *req, bool sync);
/** Give it to the device, or let it wait behind what waits. */
void worker_send_or_pend(struct plx_req *req, enum plx_pend_order order, int (*send)(struct plx_pend *p),
	void (*fail)(struct plx_pend *p, int err));
void worker_send_fail(struct plx_pend *p, int err);
void worker_frags_fail(struct plx_pend *p, int err);

enum worker_am_way {
	WORKER_AM_WHOLE, /* one message of the device */
	WORKER_AM_FRAGS,
	WORKER_AM_RNDV,
};
/** How an active message of so many bytes of header and of data travels. */
enum worker_am_way worker_am_choose(const struct plx_ep *ep, uint32_t hdr_len, uint64_t len,
	uint32_t how);

#define WORKER_FRAGS_LEN_MAX (64ull << 20) /* the most that proto.eager_max allows */

/* post_am.c */
void worker_rx_am_first(struct plx_worker *w, const struct plx_rx *rx);
void worker_rx_am_rts(struct plx_worker *w, const struct plx_rx *rx);
void worker_am_frag(struct plx_worker *w, struct plx_msg *m, const struct plx_wire_frag *h,
	const uint8_t *data, uint64_t len);
void worker_am_end(struct plx_am *am, struct plx_msg *m, int ack);

/* turn.c */
/** A turn of the application's, which the reactor has granted. */
unsigned worker_turn_granted(struct plx_worker *w);
/** plx_poller.fn of a dedicated worker. */
unsigned worker_poll(void *w, bool granted);

/* send.c */
void worker_hold_slow(struct plx_worker *w);
/** Send what was held. */
void worker_let_go(struct plx_worker *w);

/** What is sent in the rest of this turn goes together. */
static inline void
worker_hold(struct plx_worker *w)
{
	if (unlikely(w->n_holding != 0))
		worker_hold_slow(w);
}

/* flush.c */
/** End the flushes whose time has come. @return how many */
unsigned worker_flush_run(struct plx_worker *w);
/** @return whether one could end now */
bool worker_flush_waits(const struct plx_worker *w);
/** A handle that both sides have is closed: tell the other side when all that was sent on it has left. */
void worker_flush_close(struct plx_req *req, struct plx_ep *ep, uint32_t conn_id);
/** What the worker has started just now its flushes wait for as well: they waited for the connection. */
void worker_flushes_extend(struct plx_worker *w);

/* post_chan.c */
int worker_chans_open(struct plx_worker *w, const struct plx_worker_params *params);
void worker_chans_close(struct plx_worker *w);
void worker_rx_chan(struct plx_worker *w, const struct plx_rx *rx);
/** plx_queue.on_joined */
void worker_on_joined(struct plx_queue *q, uint64_t group, bool rx, int rc);
/** plx_queue.on_lossy */
void worker_on_lossy(struct plx_queue *q, const struct plx_rx *rx);
/** plx_queue.on_group */
void worker_on_group(struct plx_queue *q, uint64_t group, const uint8_t *data, uint32_t len);

/* post_rma.c */
void worker_rx_rma(struct plx_worker *w, const struct plx_rx *rx);

/* post.c: what the owner does with an operation of the application's side */
bool worker_submit(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req);
void worker_post(struct plx_worker *w, plx_inbox_fn fn, void *arg);
/** Run what was posted, while the reactor idles. @return whether the reactor need not know of it */
bool worker_run_posted(struct plx_worker *w);
/** Run what other threads have posted while this one had the turns, or seemed to. */
void worker_look_behind(struct plx_worker *w);
void worker_cancel_recv(struct plx_req *req); /* post_tag.c */

static inline void
worker_recv_init(struct plx_req *req, void *buf, uint64_t len)
{
	plx_req_flag(req, PLX_REQ_RECV);
	req->buf = buf;
	req->len = len;
	req->recv.info_tag = 0;
	req->recv.info_len = 0;
}

static inline struct plx_worker *
worker_of(struct plx_req *req)
{
	return container_of(req->pool, struct plx_worker, reqs);
}

/** What completes until worker_release_done() is told in the next progress. Thread: owner. */
static inline void
worker_hold_done(struct plx_worker *w)
{
	plx_req_pool_hold(&w->reqs);
}

static inline void
worker_release_done(struct plx_worker *w)
{
	if (plx_req_pool_release(&w->reqs))
		worker_app_add(w, WORKER_APP_LATER);
}

#endif

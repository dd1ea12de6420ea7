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
/** Process a burst of queue k, n messages in w->rx; and release it. */
void worker_rx_take(struct plx_worker *w, uint32_t k, uint16_t n);
void worker_recv_msg(struct plx_worker *w, struct plx_msg *msg, struct plx_req *req);
int worker_take_msg(struct plx_worker *w, struct plx_msg *msg, struct plx_req *req);
void worker_drop_partial(struct plx_worker *w, struct plx_ep *ep, int err);
/** A device has matched this receive with a message that software has to finish. */
void worker_finish_recv(void *worker, struct plx_req *req, const struct plx_rx *rx);
void worker_msg_free(struct plx_worker *w, struct plx_msg *msg);

/* keep.c */
/**
 * @return whether this many more bytes of a peer's messages may be stored; if not its
 *   connection fails.
 */
bool worker_may_keep(struct plx_worker *w, struct plx_ep *ep, uint64_t more);

/** The inverse of plx_worker_ep(). */
static inline struct plx_ep *
worker_ep_of(struct plx_worker_ep *e)
{
	return (struct plx_ep *)((uint8_t *)e - offsetof(struct plx_ep, of_worker));
}

/**
 * @return whether it has failed: new waiting operations would not fail again, but the
 *   process there may still send.
 */
static inline bool
worker_ep_is_over(const struct plx_ep *ep)
{
	return (ep->err | plx_worker_ep(ep)->failing_err) != 0;
}

/** @return whether one more message in pieces may begin to arrive from this peer. */
static inline bool
worker_partial_room(const struct plx_ep *ep)
{
	const struct plx_msg *m;
	unsigned n = 0;

	LIST_FOREACH(m, &plx_worker_ep(ep)->partial, partial)
		n++;
	return n < PLX_EP_MAX_PARTIAL && !worker_ep_is_over(ep);
}

/** Work of the application's side in progress besides a turn. */
enum worker_app_work {
	WORKER_APP_DEDICATED = 1 << 0, /* collect completions instead of a turn */
	WORKER_APP_ARMED = 1 << 1,     /* it may have slept */
	WORKER_APP_WAKEUP = 1 << 2,    /* dedicated: the owner counts events */
	WORKER_APP_CONNS = 1 << 3,     /* sockets to poll */
	WORKER_APP_CHANS = 1 << 4,     /* dedicated: items of channels */
	WORKER_APP_LATER = 1 << 5,     /* completions that were delayed */
};

/** From now on, until it is removed from app_work. Thread: application's side. */
static inline void
worker_app_add(struct plx_worker *w, enum worker_app_work work)
{
	w->app_work |= work;
	if (!w->dedicated)
		plx_eps_need_turn(&w->eps); /* progress checks only that */
}

/* wake.c */
int worker_wake_open(struct plx_worker *w, const struct plx_worker_params *params);
void worker_wake_close(struct plx_worker *w);
int worker_wake_add(struct plx_worker *w, int fd);
/** Dedicated, at the end of the owner's turn with n events: wake the application. */
void worker_wake_app(struct plx_worker *w, unsigned n);

/** Dedicated: whether the application has seen all notifications. Thread: owner. */
bool worker_is_told_all(const struct plx_worker *w);
/** Dedicated: whether there is something to collect. Thread: application's side. */
bool worker_has_news(const struct plx_worker *w);

/** Make an eventfd or a timer quiet. @return whether it was readable. */
bool worker_event_take(int fd);

/* sleep.c */
void worker_disarm(struct plx_worker *w);
/** Prepare poller.arm and disarm. Thread: control, before the reactor has it. @return 0 or -errno */
int worker_rest_open(struct plx_worker *w);
/**
 * Long data moves, and a sleeping receiver was woken, whose reactor may share this core: an
 * application that polls here starves it.
 * @return whether this thread slept instead. Thread: application's side. Blocks: at most
 *   for 100 us.
 */
bool worker_rest(struct plx_worker *w);
/** Slow path of worker_end_nap(). */
void worker_end_nap_slow(struct plx_worker *w);

/**
 * Dedicated, at the end of the owner's turn: wake an application that sleeps until a
 * notification.
 */
static inline void
worker_end_nap(struct plx_worker *w)
{
	/* relaxed: it sleeps briefly only, if this comes too early */
	if (unlikely(atomic_load_explicit(&w->wake.naps, memory_order_relaxed) != 0))
		worker_end_nap_slow(w);
}

/* conn.c */
unsigned worker_conns_run(struct plx_worker *w);
void worker_conns_close(struct plx_worker *w);
/** In a forked child, inside of fork(): the sockets belong to the parent. */
void worker_conns_lose(struct plx_worker *w);
/** Refuse every client from now on. */
void worker_conns_mute(struct plx_worker *w);
void worker_conn_drop(struct plx_worker *w, struct plx_ep_user *user);
/**
 * @param src the sender: a handle that is connecting trusts only the process that it
 *   connects to
 */
void worker_on_ep_close(struct plx_worker *w, const struct plx_peer *src, const struct plx_wire_ep_close *h);

/* users.c: the list of handles; any thread */
void worker_users_add(struct plx_worker *w, struct plx_ep_user *user);
void worker_users_remove(struct plx_worker *w, struct plx_ep_user *user);
/* A struct plx_ep_user leaves its ep. Thread: owner. */
void worker_user_end_run(void *user);

/* reach.c */
/** The ep of the worker with this address. Thread: owner. */
int worker_ep_of_addr(struct plx_worker *w, const struct plx_wire_addr *addr, struct plx_ep **out);
/* worker.c */
/**
 * Fail an ep in this turn or the next: found inside a send, where no callback may run.
 * Thread: owner.
 */
void worker_ep_failing(struct plx_worker *w, struct plx_ep *ep, int err);

/* send.c */
/** Give it to the device, or append it to the pending list. */
void worker_send_or_pend(struct plx_req *req, enum plx_pend_order order, int (*send)(struct plx_pend *p),
	void (*fail)(struct plx_pend *p, int err));
void worker_send_fail(struct plx_pend *p, int err);
void worker_frags_fail(struct plx_pend *p, int err);

#define WORKER_FRAGS_LEN_MAX (64ull << 20) /* the most that proto.eager_max allows */

/* waits.c */
/** Answer a thread that has asked for this worker's incomplete operations. */
void worker_waits_tell(struct plx_worker *w, uint64_t now_ticks);
/** Note how much was posted until now, for the ages of operations; at each look at the peers. */
void worker_waits_note(struct plx_worker *w, uint64_t now_ticks);

/** Now and then, between two turns. */
static inline void
worker_timers_run(struct plx_worker *w, uint64_t now_ticks)
{
	struct plx_waits_of *o = &w->waits_of;

	plx_timers_run(&w->timers, now_ticks);
	w->streams.now = now_ticks;
	__atomic_store_n(&o->looked_ticks, now_ticks, __ATOMIC_RELAXED); /* readers: any */
	/* pairs with the release in waits_ask() */
	if (unlikely(atomic_load_explicit(&o->asked, memory_order_acquire) != o->told))
		worker_waits_tell(w, now_ticks);
}

/* flush.c */
/** Call fn for each flush and close of the worker that waits, or of one ep. */
void worker_flushes_each(const struct plx_worker *w, const struct plx_ep *ep,
	void (*fn)(const struct plx_wait_info *info, void *arg), void *arg);

/* post_am.c */
/** @return whether it sends an active message. */
bool worker_am_sends(const struct plx_pend *p);
void worker_rx_am_first(struct plx_worker *w, const struct plx_rx *rx);
void worker_rx_am_rts(struct plx_worker *w, const struct plx_rx *rx);
void worker_am_frag(struct plx_worker *w, struct plx_msg *m, const struct plx_wire_frag *h,
	const uint8_t *data, uint64_t len);
void worker_am_end(struct plx_am *am, struct plx_msg *m, int ack);

/* turn.c */
/** A turn of the application, to which the worker is granted. */
unsigned worker_turn_granted(struct plx_worker *w);
/** plx_poller.fn of a dedicated worker. */
unsigned worker_poll(void *w, bool granted);

/** Messages of the remaining turn are sent together, w->n_holding != 0; rx.c */
void worker_hold(struct plx_worker *w);

/* flush.c */
/** Complete due flushes. @return how many */
unsigned worker_flush_run(struct plx_worker *w);
/** @return whether one could complete now */
bool worker_flush_waits(const struct plx_worker *w);
/**
 * A handle that both sides have is closed: notify the other side when all its messages have
 * been sent.
 */
void worker_flush_close(struct plx_req *req, struct plx_ep *ep, uint32_t conn_id);
/**
 * The worker's flushes also wait for operations that it has started just now: they waited
 * for the connection.
 */
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
void worker_rx_batch(struct plx_worker *w, const struct plx_rx *rx);
/**
 * Move what waits for others, of one ep, or NULL: of all. Callbacks run in the next progress.
 * Thread: owner.
 */
void worker_rma_run(struct plx_worker *w, struct plx_ep *ep);

/** The same of all eps, if there is something to do. */
static inline void
worker_rma_move(struct plx_worker *w)
{
	if (unlikely(w->rma.late))
		worker_rma_run(w, NULL);
}

/* post.c: the owner's part of an operation of the application's side */
/** Slow path of worker_submit(). */
bool worker_submit_far(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req);

/** With a reactor: run an operation as the owner, or post it. @return false: the caller runs it */
static inline bool
worker_submit(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req)
{
	return unlikely(w->dedicated) && worker_submit_far(w, fn, req);
}

void worker_post(struct plx_worker *w, plx_inbox_fn fn, void *arg);
/** Run posts, while the reactor idles. @return whether the reactor need not know of it */
bool worker_run_posted(struct plx_worker *w);
/** Run what other threads have posted while this one was the owner, or seemed to be. */
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

/** Completions until worker_release_done() are reported in the next progress. Thread: owner. */
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

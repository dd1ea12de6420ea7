/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * submit.c - the application's side: at once when inline, through the inbox when dedicated
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <rte_memcpy.h>
#include <rte_pause.h>

#include "worker_int.h"

#define POSTED_RUNS 4  /* of what other threads post meanwhile */
#define TURN_COUNTS 4  /* a turn of who posts says that it runs as so many of who waits */
#define CALL_PAUSES 32 /* before the core is offered; a turn takes less, on a core of its own */

/* The reactor sleeps, and may not any more. */
static __rte_noinline void
give_borrowed(struct plx_worker *w)
{
	bool wake;

	if (unlikely(w->wake.on))
		worker_wake_app(w, 1);
	wake = w->poller.armed && w->poller.arm(w) != 0;
	plx_poller_give(&w->poller, 0);
	if (unlikely(wake))
		plx_reactor_wake(&w->poller);
}

static __rte_noinline void
give_behind_turn(struct plx_worker *w)
{
	worker_turn_lent(w);
	plx_poller_give(&w->poller, TURN_COUNTS);
}

/*
 * Behind what was done with turns that were taken for a call.
 * @param turn it may be time for one: not behind a receive, when others are about to be posted for
 * what a turn would find
 */
static inline void
worker_give(struct plx_worker *w, bool turn)
{
	if (unlikely(w->poller.gate.borrowed)) {
		give_borrowed(w);
		return;
	}
	if (turn && unlikely(--w->turn_due <= 0)) {
		give_behind_turn(w);
		return;
	}
	if (unlikely(w->wake.on))
		worker_wake_app(w, 1);
	plx_poller_give(&w->poller, 0);
}

void
plx_worker_leave_slow(struct plx_worker *w)
{
	w->poller.gate.entered = true;
	if (w->turn_due <= 0) {
		give_behind_turn(w);
		return;
	}
	worker_give(w, false);
}

/* @return whether something waits, and this thread was not given the turns for it */
static bool
run_while_taken(struct plx_worker *w)
{
	for (unsigned i = 0; i < POSTED_RUNS && plx_inbox_waits(&w->inbox); i++) {
		if (!plx_poller_take(&w->poller, false))
			return true;
		PLX_STAT_ADD(w->stat.submits, plx_inbox_run(&w->inbox));
		worker_give(w, true);
	}
	return false;
}

bool
worker_run_posted(struct plx_worker *w)
{
	const struct plx_gate *g = &w->poller.gate;

	/* pairs with plx_poller_give(): another thread in its turn sees the post, or this the end of it */
	atomic_thread_fence(memory_order_seq_cst);
	while (run_while_taken(w) && plx_gate_is_idle(g))
		;
	return plx_gate_is_granted(g) || !plx_inbox_waits(&w->inbox);
}

/* @return whether all that was posted before has run */
static __rte_noinline bool
run_before(struct plx_worker *w)
{
	unsigned n = 1;

	for (unsigned i = 0; i < POSTED_RUNS && n != 0 && plx_inbox_waits(&w->inbox); i++) {
		n = plx_inbox_run(&w->inbox);
		PLX_STAT_ADD(w->stat.submits, n);
	}
	return !plx_inbox_waits(&w->inbox);
}

/*
 * A callback in a turn of this thread's: what was posted while the reactor had the turns comes first,
 * and cannot be left to the turn.
 */
static __rte_noinline void
run_all_before(struct plx_worker *w)
{
	PLX_STAT_ADD(w->stat.submits, plx_inbox_drain(&w->inbox));
}

/*
 * The reactor idles, and this thread runs: it is the owner for a call, as inline, behind what was
 * posted before. @return whether; until worker_end()
 */
static inline bool
worker_begin(struct plx_worker *w)
{
	if (unlikely(plx_gate_is_within(&w->poller.gate))) {
		/* a callback calls: what is over with this call is told behind it */
		plx_req_pool_end_direct(&w->reqs);
		if (unlikely(plx_inbox_waits(&w->inbox)))
			run_all_before(w);
		return true;
	}
	if (!plx_poller_take(&w->poller, false))
		return false;
	if (unlikely(plx_inbox_waits(&w->inbox)) && !run_before(w)) {
		worker_give(w, true);
		return false;
	}
	PLX_STAT_INC(w->stat.direct);
	return true;
}

static __rte_noinline void
run_posted_meanwhile(struct plx_worker *w)
{
	if (!worker_run_posted(w))
		plx_reactor_wake(&w->poller);
}

void
worker_look_behind(struct plx_worker *w)
{
	if (unlikely(plx_inbox_waits(&w->inbox)))
		run_posted_meanwhile(w);
}

static inline void
worker_end(struct plx_worker *w, bool turn)
{
	if (unlikely(plx_gate_is_within(&w->poller.gate))) {
		(void)plx_req_pool_begin_direct(&w->reqs); /* not, while that waits */
		return;
	}
	worker_give(w, turn);
	if (unlikely(w->inbox.many))
		worker_look_behind(w);
}

/* A message to the owner, to be written. Blocks: until there is room. */
static inline struct plx_inbox_cell *
worker_cell(struct plx_worker *w, uint64_t *pos)
{
	struct plx_inbox_cell *c;

	/* The reactor empties its inbox whatever we do, so this ends. */
	while (unlikely((c = plx_inbox_take(&w->inbox, pos)) == NULL)) {
		worker_run_posted(w);
		plx_reactor_wake(&w->poller); /* of receives: see recv_cell_post() */
		sched_yield();
	}
	return c;
}

/* @return whether it is left to the reactor */
static inline bool
worker_cell_give(struct plx_worker *w, struct plx_inbox_cell *c, uint64_t pos)
{
	plx_inbox_give(&w->inbox, c, pos);
	return likely(plx_gate_is_held(&w->poller.gate)) || !worker_run_posted(w);
}

static inline void
worker_cell_post(struct plx_worker *w, struct plx_inbox_cell *c, uint64_t pos)
{
	if (worker_cell_give(w, c, pos))
		plx_reactor_wake(&w->poller);
}

void
worker_post(struct plx_worker *w, plx_inbox_fn fn, void *arg)
{
	struct plx_inbox_cell *c;
	uint64_t pos;

	if (worker_begin(w)) {
		fn(arg);
		worker_end(w, true);
		return;
	}
	c = worker_cell(w, &pos);
	c->fn = fn;
	c->has_body = false;
	c->arg = arg;
	worker_cell_post(w, c, pos);
}

/* What takes long shall go on when the application computes now: that is the reactor's. */
static inline void
leave_long(struct plx_worker *w, uint64_t len)
{
	if (unlikely(len >= PLX_WORKER_LONG_LEN)) {
		plx_yield_long(&w->yield);
		plx_poller_long(&w->poller, len);
	}
}

bool
worker_submit(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req)
{
	uint64_t len;

	if (likely(!w->dedicated))
		return false;
	len = req->len; /* it may be over, and another's, when this returns */
	worker_post(w, fn, req);
	leave_long(w, len);
	return true;
}

struct call {
	void (*fn)(void *arg);
	void *arg;
	_Atomic bool done;
};

static void
call_run(void *arg)
{
	struct call *c = arg;

	c->fn(c->arg);
	/* pairs with the acquire in plx_worker_call() */
	atomic_store_explicit(&c->done, true, memory_order_release);
}

void
plx_worker_call(struct plx_worker *w, void (*fn)(void *arg), void *arg)
{
	struct call c = {.fn = fn, .arg = arg};
	struct plx_yield y = {.every = CALL_PAUSES}; /* of this thread: several may wait */

	if (!w->dedicated) {
		w->eps.quiet = false;
		worker_hold_done(w);
		fn(arg);
		worker_release_done(w);
		return;
	}
	worker_post(w, call_run, &c);
	while (!atomic_load_explicit(&c.done, memory_order_acquire)) {
		rte_pause();
		plx_yield_empty(&y);
	}
}

void
plx_worker_postpone(struct plx_worker *w, struct plx_req *req)
{
	plx_req_postpone(req);
	w->app_work |= WORKER_APP_LATER;
}

/* From now on short messages may be over at once, if they would go out at once. */
static inline void
look_quick(struct plx_ep *ep)
{
	if (!atomic_load_explicit(&ep->quick, memory_order_relaxed) && plx_ep_open(ep) &&
		ep->eager_end > PLX_WORKER_QUICK_MAX && ep->peer->short_max >= PLX_WORKER_QUICK_MAX)
		atomic_store_explicit(&ep->quick, true, memory_order_relaxed);
}

static void
tag_send_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_ep *ep = req->send.ep;

	worker_tag_send(worker_of(req), req,
		atomic_load_explicit(&req->flags, memory_order_relaxed) & PLX_REQ_SYNC);
	if (!ep->stub)
		look_quick(ep);
}

/* What travels to the owner instead of a request, in the message itself. */
struct quick {
	struct plx_ep *ep; /* not the handle: that may come to stand on another */
	uint64_t tag;
	uint8_t data[PLX_WORKER_QUICK_MAX];
	uint32_t len;
	uint32_t conn_id;
};
_Static_assert(sizeof(struct quick) == PLX_INBOX_BODY, "a short message fills a cell");

/* The device is full, or something waits: a copy waits as well, and the next ones want requests. */
static __rte_noinline void
quick_late(struct plx_ep *ep, const struct quick *k)
{
	uint8_t msg[sizeof(struct plx_wire_eager) + PLX_WORKER_QUICK_MAX];
	struct plx_wire_eager h = {k->tag};

	atomic_store_explicit(&ep->quick, false, memory_order_relaxed);
	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), k->data, k->len);
	/* Any other error is the ep's: its handler tells, as of any message that was on its way. */
	(void)plx_ep_tx_copy(ep, k->conn_id, PLX_WIRE_EAGER, msg, sizeof(h) + k->len);
}

static void
quick_run(void *arg)
{
	const struct quick *k = arg;
	struct plx_ep *ep = k->ep;
	struct plx_worker *w = ep->peer->q->owner;

	PLX_STAT_INC(w->stat.tag_sends);
	PLX_STAT_INC(w->stat.tag_quick);
	if (unlikely(!plx_ep_open(ep) ||
		    plx_ep_tx_short(ep, PLX_WIRE_EAGER, k->tag, k->data, k->len) != 0))
		quick_late(ep, k);
}

static inline bool
quick_post(struct plx_worker *w, const struct plx_ep_user *user, const void *buf, uint64_t len,
	uint64_t tag)
{
	struct plx_inbox_cell *c;
	struct quick *k;
	uint64_t pos;

	c = plx_inbox_take(&w->inbox, &pos);
	if (unlikely(c == NULL))
		return false;
	c->fn = quick_run;
	c->has_body = true;
	k = (struct quick *)c->body;
	k->ep = user->ep;
	k->tag = tag;
	k->len = len;
	k->conn_id = user->conn_id;
	if (likely(len == 8))
		memcpy(k->data, buf, 8);
	else if (len != 0)
		rte_memcpy(k->data, buf, len); /* without a call */
	worker_cell_post(w, c, pos);
	return true;
}

bool
plx_worker_tag_send_held(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag)
{
	return len <= PLX_WORKER_QUICK_MAX &&
	       atomic_load_explicit(&user->ep->quick, memory_order_relaxed) &&
	       quick_post(w, user, buf, len, tag);
}

bool
plx_worker_tag_send_quick(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag)
{
	struct plx_ep *ep = user->ep;
	int rc;

	if (len > PLX_WORKER_QUICK_MAX || !atomic_load_explicit(&ep->quick, memory_order_relaxed))
		return false;
	/* It may come to stand on another ep, which who has the lock sees. */
	if (unlikely(user->conn != NULL && w->inbox.many))
		return false;
	if (!worker_begin(w)) /* apart, so that while turns are lent this saves no registers for it */
		return plx_worker_tag_send_held(w, user, buf, len, tag);
	rc = plx_worker_tag_send_now(w, ep, buf, len, tag);
	worker_end(w, true);
	return rc == 0;
}

void
plx_worker_tag_send(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag, bool sync, struct plx_req *req)
{
	req->buf = (void *)(uintptr_t)buf;
	req->len = len;
	req->send.ep = user->ep;
	req->send.conn_id = user->conn_id;
	req->send.tag = tag;
	if (sync)
		plx_req_flag(req, PLX_REQ_SYNC);
	if (!worker_submit(w, tag_send_run, req))
		worker_tag_send(w, req, sync);
}

void
worker_recv_init(struct plx_req *req, void *buf, uint64_t len)
{
	plx_req_flag(req, PLX_REQ_RECV);
	req->buf = buf;
	req->len = len;
	req->recv.info_tag = 0;
	req->recv.info_len = 0;
}

static inline void
tag_recv(struct plx_worker *w, struct plx_req *req, uint64_t tag, uint64_t mask)
{
	struct plx_tag_msg *m = plx_tag_find(w->tag, tag, mask);

	PLX_STAT_INC(w->stat.tag_recvs);
	if (m != NULL) {
		plx_tag_take(w->tag, m);
		worker_recv_msg(w, container_of(m, struct plx_msg, tag), req);
		return;
	}
	req->posted = true;
	plx_tag_post(w->tag, &req->recv.tag, tag, mask);
	if (unlikely(w->offloads))
		plx_offload_post(&w->offload, req);
}

/* What travels to the owner of a receive, in the message itself. */
struct recv_post {
	struct plx_worker *w;
	struct plx_req *req;
	uint64_t tag, mask;
};
_Static_assert(sizeof(struct recv_post) <= PLX_INBOX_BODY, "a receive fits a cell");

static void
recv_post_run(void *arg)
{
	const struct recv_post *v = arg;

	tag_recv(v->w, v->req, v->tag, v->mask);
}

/*
 * To wake a reactor takes microseconds. One that sleeps, and has kept no message, need not know of a
 * receive before a message comes, which wakes it.
 */
static inline void
recv_cell_post(struct plx_worker *w, struct plx_inbox_cell *c, uint64_t pos)
{
	/* as it slept the count did not change; when it does not it looks here before it sleeps */
	if (worker_cell_give(w, c, pos) && unlikely(plx_reactor_sleeps(&w->poller)) &&
		__atomic_load_n(&plx_tag_stats(w->tag)->kept, __ATOMIC_RELAXED) != 0)
		plx_reactor_wake(&w->poller);
}

void
plx_worker_tag_recv_held(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	struct recv_post *v;
	struct plx_inbox_cell *c;
	uint64_t pos;

	req->buf = buf;
	req->len = len;
	c = worker_cell(w, &pos);
	c->fn = recv_post_run;
	c->has_body = true;
	v = (struct recv_post *)c->body;
	v->w = w;
	v->req = req;
	v->tag = tag;
	v->mask = mask;
	recv_cell_post(w, c, pos);
	leave_long(w, len);
}

/* Apart, so that inline a receive saves no registers for it. */
static __rte_noinline void
recv_submit(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	/* What the owner writes in the request stays in its cache. */
	plx_req_flag(req, PLX_REQ_RECV);
	if (unlikely(!worker_begin(w))) {
		plx_worker_tag_recv_held(w, buf, len, tag, mask, req);
		return;
	}
	req->buf = buf;
	req->len = len;
	tag_recv(w, req, tag, mask);
	worker_end(w, false);
	leave_long(w, len);
}

void
plx_worker_tag_recv(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	if (unlikely(w->dedicated)) {
		recv_submit(w, buf, len, tag, mask, req);
		return;
	}
	worker_recv_init(req, buf, len);
	tag_recv(w, req, tag, mask);
}

struct recv_now_arg {
	struct plx_worker *w;
	struct plx_req *req;
	uint64_t tag, mask;
	struct plx_msg *msg; /* one that a probe has taken; NULL: by tag */
	int rc;
};

static void
recv_now_run(void *arg)
{
	struct recv_now_arg *a = arg;
	struct plx_tag_msg *m = a->msg == NULL ? plx_tag_find(a->w->tag, a->tag, a->mask) : &a->msg->tag;
	struct plx_msg *msg;

	a->rc = -EAGAIN;
	if (m == NULL)
		return;
	msg = container_of(m, struct plx_msg, tag);
	if (msg->kind == PLX_MSG_RTS || msg->is_partial)
		return; /* it stays where it is, in its place */
	if (a->msg == NULL) {
		plx_tag_take(a->w->tag, m);
		PLX_STAT_INC(a->w->stat.tag_recvs);
	}
	a->req->recv.info_tag = m->tag;
	a->req->recv.info_len = msg->len;
	a->rc = worker_take_msg(a->w, msg, a->req);
}

int
plx_worker_tag_recv_now(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_req *req)
{
	struct recv_now_arg a = {w, req, tag, mask, NULL, 0};

	worker_recv_init(req, buf, len);
	plx_worker_call(w, recv_now_run, &a);
	return a.rc;
}

int
plx_worker_msg_recv_now(struct plx_worker *w, struct plx_msg *msg, void *buf, uint64_t len,
	struct plx_req *req)
{
	struct recv_now_arg a = {w, req, 0, 0, msg, 0};

	worker_recv_init(req, buf, len);
	plx_worker_call(w, recv_now_run, &a);
	return a.rc;
}

struct probe_arg {
	struct plx_worker *w;
	uint64_t tag, mask;
	bool take;
	struct plx_probe *out;
};

static void
probe_run(void *arg)
{
	struct probe_arg *a = arg;
	struct plx_tag_msg *m = plx_tag_find(a->w->tag, a->tag, a->mask);
	struct plx_msg *msg;

	a->out->msg = NULL;
	if (m == NULL)
		return;
	msg = container_of(m, struct plx_msg, tag);
	a->out->msg = msg;
	a->out->tag = m->tag;
	a->out->len = msg->len;
	if (a->take) {
		plx_tag_take(a->w->tag, m);
		msg->taken = true;
	}
}

void
plx_worker_tag_probe(struct plx_worker *w, uint64_t tag, uint64_t mask, bool take,
	struct plx_probe *out)
{
	struct probe_arg a = {w, tag, mask, take, out};

	if (likely(!w->dedicated))
		probe_run(&a);
	else
		plx_worker_call(w, probe_run, &a);
}

static void
msg_recv_run(void *arg)
{
	struct plx_req *req = arg;

	worker_recv_msg(worker_of(req), req->recv.msg, req);
}

void
plx_worker_msg_recv(struct plx_worker *w, struct plx_msg *msg, void *buf, uint64_t len,
	struct plx_req *req)
{
	worker_recv_init(req, buf, len);
	req->recv.msg = msg;
	if (!worker_submit(w, msg_recv_run, req))
		msg_recv_run(req);
}

/* It is posted, and in the matching engine only. */
void
worker_cancel_recv(struct plx_req *req)
{
	req->posted = false;
	plx_tag_cancel(worker_of(req)->tag, &req->recv.tag);
	req->recv.info_tag = 0;
	req->recv.info_len = 0;
	plx_req_complete(req, -ECANCELED);
}

static void
cancel_run(void *arg)
{
	struct plx_req *req = arg;

	if (!req->posted)
		return;
	if (req->offload != 0 && plx_offload_cancel(&worker_of(req)->offload, req))
		return; /* its device answers */
	worker_cancel_recv(req);
}

void
plx_worker_cancel(struct plx_worker *w, struct plx_req *req)
{
	/* Waited for: the request may be freed as soon as this returns. Inline its callback has run by then. */
	if (w->dedicated)
		plx_worker_call(w, cancel_run, req);
	else
		cancel_run(req);
}

static void
ep_cancel_run(void *arg)
{
	const struct plx_ep_user *user = arg;

	plx_ep_cancel(user->ep, user->conn_id, -ECANCELED);
}

void
plx_worker_ep_cancel(struct plx_worker *w, const struct plx_ep_user *user)
{
	plx_worker_call(w, ep_cancel_run, (void *)(uintptr_t)user);
}

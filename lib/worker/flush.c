/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * flush.c - flushes and closes, which wait until everything before them is sent and answered
 *
 * Design notes
 * A flush goes through these in order, most of them at once:
 *
 *	sent		the device has taken all that was pending when the flush was issued. A mark in
 *			each ep's list shows it, so nothing is searched
 *	complete	the puts, gets and atomics issued before it are complete; for a close, what was sent
 *			on the handle is answered as well
 *	closed		for a close of a handle that both sides have: EP_CLOSE is sent
 *
 * Flushes of one ep complete in the order in which they were issued, as do those of the worker, so
 * a turn checks only the first of each. Closes have no order among each other.
 *
 * A flush returns the error of its ep, a flush of the worker that of any handle that has failed
 * and is still open; otherwise the first error of an operation without a request.
 */
#include <errno.h>
#include <stdatomic.h>

#include <rte_cycles.h>

#include "worker_int.h"

struct plx_flush {
	PLX_REQ_HEAD;
	TAILQ_ENTRY(plx_flush) link; /* of its ep's flushes or closes, or of the worker's */
	struct plx_pend pend;
	struct plx_ep *ep;	     /* NULL: of the worker */
	uint64_t rma_seq;	     /* puts, gets and atomics up to this one */
	struct plx_wait_list waits;  /* CLOSE: waiting sends of the handle */
	uint32_t n_marks;	     /* WORKER: eps with a mark that has not passed */
	uint32_t conn_id;	     /* CLOSE: of the handle */
	uint32_t tell_id;	     /* CLOSE: then notify the other side of it; 0: no need */
	uint8_t kind;		     /* enum plx_flush_kind */
	uint64_t since;		     /* ticks; when it began to wait for answers */
};
_Static_assert(sizeof(struct plx_flush) <= PLX_REQ_SIZE, "a request has room for it");

static inline struct plx_flush *
flush_of(struct plx_req *req)
{
	return (struct plx_flush *)(void *)req;
}

/* Its error, or that of its peer, which was found dead in this turn. */
static int
ep_err(const struct plx_ep *ep)
{
	return ep->err != 0 ? ep->err : plx_worker_ep(ep)->failing_err;
}

static bool
is_complete(const struct plx_worker *w, const struct plx_flush *f)
{
	if (f->ep == NULL)
		return f->n_marks == 0 && LIST_EMPTY(&w->eps.connecting) &&
		       plx_rma_all_over(&w->rma, f->rma_seq);
	if (f->ep->err != 0)
		return !plx_rma_shares(f->ep); /* a peer may still write to memory of a get */
	return (f->kind != PLX_FLUSH_CLOSE || TAILQ_EMPTY(&f->waits.head)) &&
	       plx_rma_ep_over(f->ep, f->rma_seq);
}

static void
user_err(struct plx_ep_user *user, void *arg)
{
	int *err = arg;

	if (*err == 0)
		*err = plx_ep_user_err(user);
	if (*err == 0)
		*err = ep_err(user->ep);
}

/* The error of a handle that has failed, 0 when none has. */
static int
users_err(struct plx_worker *w)
{
	int err = 0;

	if (atomic_load_explicit(&w->n_failed, memory_order_relaxed) != 0 || !SLIST_EMPTY(&w->failing))
		plx_worker_users_each(w, user_err, &err);
	return err;
}

/* An error that only a flush reports is reported once. */
static int
take_err(int *err)
{
	int rc = *err;

	*err = 0;
	return rc;
}

static int
status(struct plx_worker *w, const struct plx_flush *f)
{
	int err, once;

	switch (f->kind) {
	case PLX_FLUSH_EP:
		err = ep_err(f->ep);
		once = take_err(&plx_rma_ep(f->ep)->err);
		return err != 0 ? err : once;
	case PLX_FLUSH_WORKER:
		err = users_err(w);
		once = take_err(&w->rma.err);
		return err != 0 ? err : once;
	default:
		return 0; /* other handles of the ep may still flush */
	}
}

static void
end(struct plx_worker *w, struct plx_flush *f)
{
	int rc = status(w, f);

	if (f->kind == PLX_FLUSH_CLOSE)
		plx_ep_closing_end(&f->waits);
	if (f->ep != NULL)
		f->ep->refs--;
	plx_req_complete(plx_req_of_own(f), rc);
}

static void
flushing_add(struct plx_worker *w, struct plx_worker_ep *e)
{
	if (e->is_flushing)
		return;
	e->is_flushing = true;
	TAILQ_INSERT_TAIL(&w->flushing, e, flushing);
}

static void
wait_for_answers(struct plx_worker *w, struct plx_flush *f)
{
	struct plx_worker_ep *e;

	f->since = rte_rdtsc();
	plx_eps_need_turn(&w->eps);
	if (f->ep == NULL) {
		TAILQ_INSERT_TAIL(&w->flushes, f, link);
		return;
	}
	e = plx_worker_ep(f->ep);
	flushing_add(w, e);
	TAILQ_INSERT_TAIL(f->kind == PLX_FLUSH_CLOSE ? &e->closes : &e->flushes, f, link);
}

static void wait_for_device(struct plx_flush *f);

/* The device has everything before it: the next steps, or wait for them. */
static void
go_on(struct plx_worker *w, struct plx_flush *f)
{
	struct plx_wire_ep_close h = {.conn_id = f->tell_id};

	if (!is_complete(w, f)) {
		wait_for_answers(w, f);
		return;
	}
	if (f->tell_id != 0 && f->ep->err == 0) {
		(void)plx_ep_tx_ctl(f->ep, PLX_WIRE_EP_CLOSE, &h, sizeof(h));
		f->tell_id = 0;
		if (!TAILQ_EMPTY(&f->ep->pending)) {
			wait_for_device(f);
			return;
		}
	}
	end(w, f);
}

static struct plx_worker *
flush_worker(struct plx_flush *f)
{
	return worker_of(plx_req_of_own(f));
}

static int
mark_send(struct plx_pend *p)
{
	struct plx_flush *f = container_of(p, struct plx_flush, pend);

	if (f->kind == PLX_FLUSH_CLOSE)
		plx_ep_closing_more(f->ep, f->conn_id, &f->waits);
	go_on(flush_worker(f), f);
	return 0;
}

static void
mark_fail(struct plx_pend *p, int err)
{
	struct plx_flush *f = container_of(p, struct plx_flush, pend);

	(void)err; /* the ep's, whose status it gets */
	go_on(flush_worker(f), f);
}

static void
wait_for_device(struct plx_flush *f)
{
	f->pend.send = mark_send;
	f->pend.fail = mark_fail;
	f->pend.conn_id = PLX_CONN_NONE;
	if (f->kind == PLX_FLUSH_CLOSE) /* held messages wait for an answer, like sent ones */
		plx_ep_pend(f->ep, &f->pend);
	else
		plx_ep_pend_last(f->ep, &f->pend);
}

static void
mark_passed(void *arg)
{
	struct plx_flush *f = arg;

	f->n_marks--;
}

static int
mark(struct plx_flush *f, struct plx_ep *ep)
{
	int rc = plx_ep_mark(ep, mark_passed, f);

	f->n_marks += rc == 0;
	return rc;
}

/* A mark after the pending messages of each ep. @return 0, or -ENOMEM: those that were set stay */
static int
mark_all(struct plx_worker *w, struct plx_flush *f)
{
	struct plx_ep *ep;
	int rc = 0;

	f->n_marks = 0;
	if (w->eps.stat.tx_held == 0) {
		TAILQ_FOREACH(ep, &w->eps.stalled, stalled_link) {
			rc = mark(f, ep);
			if (rc != 0)
				return rc;
		}
		return 0;
	}
	LIST_FOREACH(ep, &w->eps.all, link) {
		if (ep->stalled || !TAILQ_EMPTY(&ep->held))
			rc = mark(f, ep);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void
flush_worker_start(struct plx_worker *w, struct plx_flush *f)
{
	if (mark_all(w, f) != 0)
		w->rma.err = w->rma.err != 0 ? w->rma.err : -ENOMEM; /* it does not cover all */
	go_on(w, f);
}

/*
 * Direct access to the peer's memory by this side succeeds even if the peer is dead: a
 * flush promises that the data arrived, so it checks whether the peer is alive.
 */
static int
look(struct plx_ep *ep)
{
	int rc = 0;

	if (ep->err != 0)
		return 0; /* its status is that */
	/* An ep that has sent no message is connected here, so that there is something to check. */
	if (!ep->connected && atomic_load_explicit(&plx_worker_ep(ep)->keys, memory_order_relaxed) &&
		plx_peer_may_leave(ep->peer))
		rc = plx_ep_connect(ep);
	if (!ep->connected)
		return plx_ep_may_pass(rc) ? 0 : rc;
	return plx_peer_has_left(ep->peer) ? -ECONNRESET : 0;
}

static void
flush_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_worker *w = worker_of(req);
	struct plx_flush *f = flush_of(req);
	bool close = f->kind == PLX_FLUSH_CLOSE;
	int rc;

	w->rma.n_flushes++;
	if (f->ep != NULL && f->ep->stub) {
		rc = plx_ep_connect(f->ep);
		if (rc == -EAGAIN)
			rc = plx_ep_defer(f->ep, flush_run, plx_req_complete, req, &f->ep);
		if (rc != 0)
			plx_req_complete(req, close ? 0 : rc);
		return;
	}
	worker_rma_move(w);
	rc = plx_rma_mark(&w->rma, f->ep);
	if (rc == 0 && f->kind == PLX_FLUSH_EP)
		rc = look(f->ep);
	if (rc != 0 && !close) { /* a close still notifies the other side */
		plx_req_complete(req, rc);
		return;
	}
	f->rma_seq = w->rma.seq;
	if (f->ep == NULL) {
		flush_worker_start(w, f);
		return;
	}
	f->ep->refs++; /* until it is complete */
	if (close)
		plx_ep_closing_begin(f->ep, f->conn_id, &f->waits);
	if (close ? plx_ep_has_pending(f->ep, f->conn_id) : plx_ep_has_any(f->ep))
		wait_for_device(f);
	else
		go_on(w, f);
}

/* Complete what can be completed; callbacks may flush and close again. @return how many */
static unsigned
ep_run(struct plx_worker *w, struct plx_worker_ep *e)
{
	struct plx_flush_list closes = TAILQ_HEAD_INITIALIZER(closes);
	struct plx_flush *f;
	unsigned n = 0;

	while ((f = TAILQ_FIRST(&e->flushes)) != NULL && is_complete(w, f)) {
		TAILQ_REMOVE(&e->flushes, f, link);
		end(w, f);
		n++;
	}
	TAILQ_CONCAT(&closes, &e->closes, link);
	while ((f = TAILQ_FIRST(&closes)) != NULL) {
		TAILQ_REMOVE(&closes, f, link);
		if (!is_complete(w, f)) {
			TAILQ_INSERT_TAIL(&e->closes, f, link);
			continue;
		}
		go_on(w, f);
		n++;
	}
	return n;
}

unsigned
worker_flush_run(struct plx_worker *w)
{
	TAILQ_HEAD(, plx_worker_ep) eps = TAILQ_HEAD_INITIALIZER(eps);
	struct plx_worker_ep *e;
	struct plx_flush *f;
	unsigned n = 0;

	while ((f = TAILQ_FIRST(&w->flushes)) != NULL && is_complete(w, f)) {
		TAILQ_REMOVE(&w->flushes, f, link);
		end(w, f);
		n++;
	}
	TAILQ_CONCAT(&eps, &w->flushing, flushing);
	while ((e = TAILQ_FIRST(&eps)) != NULL) {
		TAILQ_REMOVE(&eps, e, flushing);
		e->is_flushing = false;
		n += ep_run(w, e);
		if (!TAILQ_EMPTY(&e->flushes) || !TAILQ_EMPTY(&e->closes))
			flushing_add(w, e);
	}
	return n;
}

static bool
ep_waits(const struct plx_worker *w, const struct plx_worker_ep *e)
{
	const struct plx_flush *f = TAILQ_FIRST(&e->flushes);

	if (f != NULL && is_complete(w, f))
		return true;
	TAILQ_FOREACH(f, &e->closes, link) {
		if (is_complete(w, f))
			break;
	}
	return f != NULL;
}

bool
worker_flush_waits(const struct plx_worker *w)
{
	const struct plx_flush *f = TAILQ_FIRST(&w->flushes);
	const struct plx_worker_ep *e;

	if (f != NULL && is_complete(w, f))
		return true;
	TAILQ_FOREACH(e, &w->flushing, flushing) {
		if (ep_waits(w, e))
			break;
	}
	return e != NULL;
}

void
worker_flushes_extend(struct plx_worker *w)
{
	struct plx_flush *f;

	TAILQ_FOREACH(f, &w->flushes, link)
		f->rma_seq = w->rma.seq;
}

void
worker_flush_close(struct plx_req *req, struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_flush *f = flush_of(req);

	f->kind = PLX_FLUSH_CLOSE;
	f->ep = ep;
	f->conn_id = conn_id;
	f->tell_id = conn_id;
	flush_run(req);
}

/* Of the worker, or of an ep. */
static bool
nothing_waits(const struct plx_worker *w)
{
	return TAILQ_EMPTY(&w->eps.stalled) && w->eps.stat.tx_held == 0 && LIST_EMPTY(&w->eps.connecting) &&
	       TAILQ_EMPTY(&w->flushes) && TAILQ_EMPTY(&w->rma.all) && SLIST_EMPTY(&w->rma.quick) &&
	       w->rma.err == 0 && SLIST_EMPTY(&w->failing) &&
	       atomic_load_explicit(&w->n_failed, memory_order_relaxed) == 0;
}

static bool
nothing_waits_at(const struct plx_ep *ep)
{
	const struct plx_worker_ep *e = plx_worker_ep(ep);
	const struct plx_rma_ep *rma = plx_rma_ep(ep);

	return ep->connected && (ep->err | e->failing_err) == 0 && !plx_ep_has_any(ep) && TAILQ_EMPTY(&e->flushes) &&
	       TAILQ_EMPTY(&rma->ops) && !rma->quick && rma->err == 0 &&
	       !plx_peer_has_left(ep->peer);
}

static inline bool
is_flushed(struct plx_worker *w, const struct plx_ep_user *user)
{
	w->rma.n_flushes++;
	/* Stores to mapped memory are seen before any later load. */
	atomic_thread_fence(memory_order_seq_cst);
	return user == NULL ? nothing_waits(w) : nothing_waits_at(user->ep);
}

/* Apart, so that inline it saves no registers for it. */
static __rte_noinline bool
is_flushed_shared(struct plx_worker *w, const struct plx_ep_user *user)
{
	enum plx_gate_pass pass = plx_worker_begin(w);
	bool is;

	if (pass == PLX_GATE_NOT)
		return false;
	is = plx_req_pool_is_told(&w->reqs) && is_flushed(w, user);
	plx_worker_end(w, pass, true);
	return is;
}

bool
plx_worker_is_flushed(struct plx_worker *w, const struct plx_ep_user *user)
{
	return likely(!w->dedicated) ? is_flushed(w, user) : is_flushed_shared(w, user);
}

void
plx_worker_flush(struct plx_worker *w, enum plx_flush_kind kind, const struct plx_ep_user *user,
	struct plx_req *req)
{
	struct plx_flush *f = flush_of(req);

	f->kind = kind;
	f->ep = user != NULL ? user->ep : NULL;
	f->conn_id = user != NULL ? user->conn_id : PLX_CONN_NONE;
	f->tell_id = 0;
	/* Stores to mapped memory are visible before any later load. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!worker_submit(w, flush_run, req))
		flush_run(req);
}

static void
flush_each(const struct plx_flush_list *list, void (*fn)(const struct plx_wait_info *info, void *arg), void *arg)
{
	static const char *const ops[] = {"ep_flush", "ep_close", "worker_flush"};
	const struct plx_flush *f;
	struct plx_wait_info info;

	TAILQ_FOREACH(f, list, link) {
		info = (struct plx_wait_info){.op = ops[f->kind], .state = "earlier operations", .since = f->since};
		fn(&info, arg);
	}
}

void
worker_flushes_each(const struct plx_worker *w, const struct plx_ep *ep,
	void (*fn)(const struct plx_wait_info *info, void *arg), void *arg)
{
	if (ep == NULL) {
		flush_each(&w->flushes, fn, arg);
		return;
	}
	flush_each(&plx_worker_ep(ep)->flushes, fn, arg);
	flush_each(&plx_worker_ep(ep)->closes, fn, arg);
}

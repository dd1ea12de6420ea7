/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep.c - one peer: connect, order, pending, failure
 */
#include <errno.h>
#include <string.h>

#include "ep_int.h"
#include "plx_log.h"

PLX_LOG_DEFINE(ep, "plx.ep");

const struct plx_stat_row plx_ep_stat_rows[] = {
	PLX_STAT_ROW(struct plx_ep_stat, tx_pending),
	PLX_STAT_ROW(struct plx_ep_stat, tx_unreached),
	PLX_STAT_ROW(struct plx_ep_stat, rx_held),
	PLX_STAT_ROW(struct plx_ep_stat, tx_failed),
	PLX_STAT_ROW(struct plx_ep_stat, eps),
	PLX_STAT_ROW(struct plx_ep_stat, eps_failed),
	PLX_STAT_ROW(struct plx_ep_stat, stops),
	PLX_STAT_ROW(struct plx_ep_stat, stopped_by_peer),
	PLX_STAT_ROW(struct plx_ep_stat, tx_held),
	PLX_STAT_ROW(struct plx_ep_stat, refused),
	PLX_STAT_ROW(struct plx_ep_stat, refused_by_peer),
	PLX_STAT_END,
};

/* A control message that waits: a copy of its header. */
struct ep_ctl {
	struct plx_pend pend;
	struct plx_ep *ep;
	uint8_t op;
	uint8_t hdr_len;
	uint8_t hdr[PLX_WIRE_HDR_MAX];
};

/* What is called when all before it has been sent; of the same pool. */
struct ep_mark {
	struct plx_pend pend;
	struct plx_ep *ep;
	void (*passed)(void *arg);
	void *arg;
};
_Static_assert(sizeof(struct ep_mark) <= sizeof(struct ep_ctl), "one pool serves both");

int
plx_eps_open(struct plx_eps *eps, void (*on_failed)(struct plx_ep *ep, int err))
{
	memset(eps, 0, sizeof(*eps));
	TAILQ_INIT(&eps->stalled);
	LIST_INIT(&eps->all);
	LIST_INIT(&eps->stopped);
	LIST_INIT(&eps->connecting);
	eps->on_failed = on_failed;
	plx_pool_open(&eps->ctl, "ctl", sizeof(struct ep_ctl), PLX_EPS_CTL_RESERVE, 0, NULL, NULL);
	plx_pool_open(&eps->pool, "ep", sizeof(struct plx_ep), 16, 0, NULL, NULL);
	plx_pool_open(&eps->defers, "defer", EP_DEFER_SIZE, 32, 0, NULL, NULL);
	return plx_pool_reserve(&eps->ctl, PLX_EPS_CTL_RESERVE) ? 0 : -ENOMEM;
}

bool
plx_eps_refill(struct plx_eps *eps)
{
	return plx_pool_reserve(&eps->ctl, PLX_EPS_CTL_RESERVE);
}

static void *
ctl_get(struct plx_eps *eps)
{
	void *c = plx_pool_get(&eps->ctl);

	if (eps->ctl.n_free < PLX_EPS_CTL_RESERVE) {
		eps->is_short = true;
		eps->quiet = false;
	}
	return c;
}

static void
ep_free(struct plx_ep *ep)
{
	struct plx_eps *eps = ep->eps;

	if (ep->stalled)
		TAILQ_REMOVE(&eps->stalled, ep, stalled_link);
	if (ep->stopped)
		LIST_REMOVE(ep, stopped_link);
	LIST_REMOVE(ep, link);
	ep->peer->user = NULL;
	plx_peer_put(ep->peer);
	plx_pool_put(&eps->pool, ep);
}

void
plx_eps_close(struct plx_eps *eps)
{
	while (!LIST_EMPTY(&eps->all))
		ep_free(LIST_FIRST(&eps->all));
	plx_pool_close(&eps->ctl);
	plx_pool_close(&eps->pool);
	plx_pool_close(&eps->defers);
}

void
ep_init(struct plx_ep *ep, struct plx_eps *eps)
{
	memset(ep, 0, sizeof(*ep));
	ep->eps = eps;
	ep->eager_end = eps->eager_end;
	TAILQ_INIT(&ep->pending);
	TAILQ_INIT(&ep->held);
	TAILQ_INIT(&ep->waits.head);
	ep->waits.ep = ep;
	LIST_INIT(&ep->closing);
	TAILQ_INIT(&ep->flushes);
	TAILQ_INIT(&ep->closes);
	LIST_INIT(&ep->partial);
	LIST_INIT(&ep->users);
	TAILQ_INIT(&ep->rma.ops);
	LIST_INIT(&ep->streams);
	LIST_INIT(&ep->chans);
}

struct plx_ep *
plx_ep_of_slow(struct plx_eps *eps, struct plx_peer *peer)
{
	struct plx_ep *ep = peer->user;

	if (ep != NULL)
		return ep;
	ep = plx_pool_get(&eps->pool);
	if (ep == NULL)
		return NULL;
	ep_init(ep, eps);
	ep->peer = peer;
	peer->user = ep;
	peer->refs++;
	LIST_INSERT_HEAD(&eps->all, ep, link);
	PLX_STAT_INC(eps->stat.eps);
	if (peer->state == PLX_PEER_DEAD)
		ep->err = peer->err;
	return ep;
}

void
plx_ep_user_add(struct plx_ep *ep, struct plx_ep_user *user)
{
	plx_ep_user_link(ep, user, user->crossed ? PLX_EP_CROSSED + ep->next_crossed++
						 : ep->next_conn_id++);
}

bool
plx_ep_user_was(const struct plx_ep *ep, uint32_t conn_id)
{
	return conn_id < ep->next_conn_id || conn_id - PLX_EP_CROSSED < ep->next_crossed;
}

void
plx_ep_user_link(struct plx_ep *ep, struct plx_ep_user *user, uint32_t conn_id)
{
	user->ep = ep;
	user->conn_id = conn_id;
	ep->n_answers += user->answers;
	ep->refs++;
	LIST_INSERT_HEAD(&ep->users, user, link);
}

void
plx_ep_user_remove(struct plx_ep_user *user)
{
	LIST_REMOVE(user, link);
	user->ep->n_answers -= user->answers;
	user->ep->refs--;
	user->ep = NULL;
}

struct plx_ep_user *
plx_ep_user_find(const struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_ep_user *user;

	LIST_FOREACH(user, &ep->users, link) {
		if (user->conn_id == conn_id)
			break;
	}
	return user;
}

int
plx_ep_connect(struct plx_ep *ep)
{
	int rc;

	if (ep->err != 0)
		return ep->err;
	if (ep->connected)
		return 0;
	if (ep->stub)
		return -EAGAIN;
	rc = plx_peer_connect(ep->peer); /* a failure comes back through plx_ep_fail() */
	if (rc != 0)
		return rc;
	ep->connected = true;
	return 0;
}

static void
stall(struct plx_ep *ep)
{
	PLX_STAT_INC(ep->eps->stat.tx_pending);
	if (!ep->stalled) {
		ep->stalled = true;
		ep->eps->quiet = false;
		TAILQ_INSERT_TAIL(&ep->eps->stalled, ep, stalled_link);
	}
}

void
plx_ep_pend(struct plx_ep *ep, struct plx_pend *p)
{
	p->held = false;
	TAILQ_INSERT_TAIL(&ep->pending, p, link);
	stall(ep);
}

static void
hold(struct plx_ep *ep, struct plx_pend *p)
{
	p->held = true;
	p->early = false;
	TAILQ_INSERT_TAIL(&ep->held, p, link);
}

void
plx_ep_pend_last(struct plx_ep *ep, struct plx_pend *p)
{
	if (TAILQ_EMPTY(&ep->held))
		plx_ep_pend(ep, p);
	else
		hold(ep, p);
}

/* Shorter tagged messages go unasked. Behind one that is held none does. */
static void
set_eager_end(struct plx_ep *ep)
{
	ep->eager_end = ep->announces || !TAILQ_EMPTY(&ep->held) ? 0 : ep->eps->eager_end;
	if (ep->eager_end == 0)
		atomic_store_explicit(&ep->quick, false, memory_order_relaxed);
}

bool
plx_ep_announce(struct plx_ep *ep, struct plx_pend *p)
{
	if (likely(ep->n_announced < PLX_EP_MAX_ANNOUNCED && TAILQ_EMPTY(&ep->held))) {
		p->held = false;
		ep->n_announced++;
		return true;
	}
	PLX_STAT_INC(ep->eps->stat.tx_held);
	hold(ep, p);
	set_eager_end(ep);
	return false;
}

bool
plx_ep_announce_early(struct plx_ep *ep, struct plx_pend *p)
{
	if (ep->n_announced < PLX_EP_MAX_ANNOUNCED && ep->held_early == NULL) {
		p->held = false;
		ep->n_announced++;
		return true;
	}
	PLX_STAT_INC(ep->eps->stat.tx_held);
	p->held = p->early = true;
	if (ep->held_early != NULL)
		TAILQ_INSERT_AFTER(&ep->held, ep->held_early, p, link);
	else
		TAILQ_INSERT_HEAD(&ep->held, p, link);
	ep->held_early = p;
	return false;
}

static void
held_remove(struct plx_ep *ep, struct plx_pend *p)
{
	if (ep->held_early == p) /* all before it are early, too */
		ep->held_early = TAILQ_PREV(p, plx_pends, link);
	TAILQ_REMOVE(&ep->held, p, link);
}

static __rte_noinline void
held_go(struct plx_ep *ep)
{
	struct plx_pend *p;

	while ((p = TAILQ_FIRST(&ep->held)) != NULL) {
		bool counts = p->conn_id != PLX_CONN_NONE; /* a mark does not */

		if (counts && ep->n_announced >= PLX_EP_MAX_ANNOUNCED)
			return;
		ep->n_announced += counts;
		held_remove(ep, p);
		plx_ep_pend(ep, p);
	}
	set_eager_end(ep);
}

void
plx_ep_announce_end(struct plx_ep *ep)
{
	PLX_ASSERT(ep->n_announced > 0);
	ep->n_announced--;
	if (unlikely(!TAILQ_EMPTY(&ep->held)))
		held_go(ep);
}

static int
ctl_send(struct plx_pend *p)
{
	struct ep_ctl *c = (struct ep_ctl *)p;
	struct plx_tx tx = {.peer = c->ep->peer, .hdr = c->hdr, .hdr_len = c->hdr_len, .op = c->op};
	int rc = plx_peer_tx(&tx);

	if (rc == 0)
		plx_pool_put(&c->ep->eps->ctl, c);
	return rc;
}

static void
ctl_fail(struct plx_pend *p, int err)
{
	struct ep_ctl *c = (struct ep_ctl *)p;

	(void)err;
	plx_pool_put(&c->ep->eps->ctl, c);
}

static int
mark_send(struct plx_pend *p)
{
	struct ep_mark m = *(struct ep_mark *)p;

	plx_pool_put(&m.ep->eps->ctl, p);
	m.passed(m.arg);
	return 0;
}

static void
mark_fail(struct plx_pend *p, int err)
{
	(void)err;
	(void)mark_send(p);
}

int
plx_ep_mark(struct plx_ep *ep, void (*passed)(void *arg), void *arg)
{
	struct ep_mark *m = ctl_get(ep->eps);

	if (m == NULL)
		return -ENOMEM;
	m->pend.send = mark_send;
	m->pend.fail = mark_fail;
	m->pend.conn_id = PLX_CONN_NONE;
	m->ep = ep;
	m->passed = passed;
	m->arg = arg;
	plx_ep_pend_last(ep, &m->pend);
	return 0;
}

int
plx_ep_tx_copy(struct plx_ep *ep, uint32_t conn_id, uint8_t op, const void *hdr, uint8_t hdr_len)
{
	struct plx_tx tx = {.hdr = hdr, .hdr_len = hdr_len, .op = op};
	struct ep_ctl *c;
	int rc = plx_ep_connect(ep);

	if (rc != 0 && !plx_ep_may_pass(rc))
		return rc;
	tx.peer = ep->peer;
	if (plx_ep_open(ep)) {
		rc = plx_peer_tx(&tx);
		if (rc != -EAGAIN)
			return rc;
	}
	c = ctl_get(ep->eps);
	if (c == NULL) {
		PLX_LOG_RATELIMIT(ERR, ep, "no memory to tell a peer anything: its connection fails");
		plx_peer_dead(ep->peer, -ENOMEM);
		return -ENOMEM;
	}
	c->pend.send = ctl_send;
	c->pend.fail = ctl_fail;
	c->pend.conn_id = conn_id;
	c->ep = ep;
	c->op = op;
	c->hdr_len = hdr_len;
	memcpy(c->hdr, hdr, hdr_len);
	plx_ep_pend(ep, &c->pend);
	return 0;
}

static int
flow_send(struct plx_pend *p)
{
	struct plx_ep *ep = container_of(p, struct plx_ep, flow);
	struct plx_wire_flow h = {.stop = ep->refused ? PLX_WIRE_FLOW_REFUSED
		: ep->stopped ? PLX_WIRE_FLOW_ANNOUNCE : PLX_WIRE_FLOW_GO};
	struct plx_tx tx = {.peer = ep->peer, .hdr = &h, .hdr_len = sizeof(h), .op = PLX_WIRE_FLOW};
	int rc = plx_peer_tx(&tx);

	ep->flow_waits = rc == -EAGAIN;
	return rc;
}

static void
flow_fail(struct plx_pend *p, int err)
{
	(void)err; /* to one who is gone there is nothing to say */
	container_of(p, struct plx_ep, flow)->flow_waits = false;
}

/* It goes ahead of what waits, as the peer goes on until it comes. */
static void
flow_tell(struct plx_ep *ep)
{
	int rc = plx_ep_connect(ep);

	if (ep->flow_waits || (rc != 0 && !plx_ep_may_pass(rc)))
		return;
	if (rc == 0 && flow_send(&ep->flow) != -EAGAIN)
		return;
	ep->flow_waits = true;
	ep->flow.send = flow_send;
	ep->flow.fail = flow_fail;
	ep->flow.conn_id = PLX_CONN_NONE;
	TAILQ_INSERT_HEAD(&ep->pending, &ep->flow, link);
	stall(ep);
}

void
plx_ep_refuse(struct plx_ep *ep)
{
	if (ep->peer->state == PLX_PEER_DEAD)
		return;
	PLX_STAT_INC(ep->eps->stat.refused);
	PLX_LOG_RATELIMIT(ERR, ep, "a peer sends more than it may before it is received: its connection fails");
	ep->refused = true;
	flow_tell(ep);
	plx_peer_dead(ep->peer, -ECONNRESET);
}

void
plx_ep_stop(struct plx_ep *ep)
{
	if (ep->stopped || ep->err != 0)
		return;
	ep->stopped = true;
	ep->eps->quiet = false;
	LIST_INSERT_HEAD(&ep->eps->stopped, ep, stopped_link);
	PLX_STAT_INC(ep->eps->stat.stops);
	flow_tell(ep);
}

void
plx_eps_resume(struct plx_eps *eps)
{
	struct plx_ep *ep;

	while ((ep = LIST_FIRST(&eps->stopped)) != NULL) {
		LIST_REMOVE(ep, stopped_link);
		ep->stopped = false;
		flow_tell(ep);
	}
}

void
plx_ep_on_flow(struct plx_ep *ep, const struct plx_wire_flow *h)
{
	if (h->stop == PLX_WIRE_FLOW_REFUSED) {
		PLX_STAT_INC(ep->eps->stat.refused_by_peer);
		plx_peer_dead(ep->peer, -ECONNRESET);
		return;
	}
	ep->announces = h->stop != PLX_WIRE_FLOW_GO;
	set_eager_end(ep);
	if (ep->announces)
		PLX_STAT_INC(ep->eps->stat.stopped_by_peer);
}

#define TRY_EVERY 64u /* turns between two tries to connect: each is a few system calls */

/* Connect for what waits. @return whether it may go now */
static bool
ep_reach(struct plx_ep *ep)
{
	if (likely(ep->connected))
		return true;
	if (ep->eps->n_tries++ % TRY_EVERY != 0)
		return false;
	PLX_STAT_INC(ep->eps->stat.tx_unreached);
	return plx_ep_connect(ep) == 0;
}

static unsigned
ep_flush(struct plx_ep *ep)
{
	struct plx_pend *p;
	unsigned n = 0;

	if (!ep_reach(ep))
		return 0;
	while ((p = TAILQ_FIRST(&ep->pending)) != NULL) {
		int rc;

		/* Unlinked first: what is sent may complete, be freed and come again. */
		TAILQ_REMOVE(&ep->pending, p, link);
		rc = p->send(p);
		if (rc == -EAGAIN) {
			TAILQ_INSERT_HEAD(&ep->pending, p, link);
			break;
		}
		if (rc != 0) {
			PLX_STAT_INC(ep->eps->stat.tx_failed);
			p->fail(p, rc);
		}
		n++;
	}
	return n;
}

unsigned
plx_eps_flush_slow(struct plx_eps *eps)
{
	struct plx_ep *ep, *next;
	unsigned n = 0;

	for (ep = TAILQ_FIRST(&eps->stalled); ep != NULL; ep = next) {
		next = TAILQ_NEXT(ep, stalled_link);
		n += ep_flush(ep);
		if (TAILQ_EMPTY(&ep->pending)) {
			TAILQ_REMOVE(&eps->stalled, ep, stalled_link);
			ep->stalled = false;
		}
	}
	return n;
}

TAILQ_HEAD(waits, plx_wait);

static void
take_pending(struct plx_ep *ep, bool all, uint32_t conn_id, struct plx_pends *to)
{
	struct plx_pend *p, *next;

	for (p = TAILQ_FIRST(&ep->pending); p != NULL; p = next) {
		next = TAILQ_NEXT(p, link);
		if (!all && p->conn_id != conn_id)
			continue;
		TAILQ_REMOVE(&ep->pending, p, link);
		TAILQ_INSERT_TAIL(to, p, link);
	}
	for (p = TAILQ_FIRST(&ep->held); p != NULL; p = next) {
		next = TAILQ_NEXT(p, link);
		if (!all && p->conn_id != conn_id)
			continue;
		held_remove(ep, p);
		TAILQ_INSERT_TAIL(to, p, link);
	}
}

static void
take_waits(struct plx_wait_list *list, bool all, uint32_t conn_id, struct waits *to)
{
	struct plx_wait *w, *next;

	for (w = TAILQ_FIRST(&list->head); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (!all && w->conn_id != conn_id)
			continue;
		plx_ep_wait_end(w);
		TAILQ_INSERT_TAIL(to, w, link);
	}
}

/*
 * Fail what waits: of one handle, or all. Taken out first and failed then, since what
 * fails may send, and close, anew.
 */
static void
fail_waiting(struct plx_ep *ep, bool all, uint32_t conn_id, int err)
{
	struct plx_pends pends = TAILQ_HEAD_INITIALIZER(pends);
	struct waits waits = TAILQ_HEAD_INITIALIZER(waits);
	struct plx_wait_list *list;
	struct plx_pend *p;
	struct plx_wait *w;

	take_pending(ep, all, conn_id, &pends);
	take_waits(&ep->waits, all, conn_id, &waits);
	if (all)
		LIST_FOREACH(list, &ep->closing, link)
			take_waits(list, true, 0, &waits);
	while ((p = TAILQ_FIRST(&pends)) != NULL) {
		TAILQ_REMOVE(&pends, p, link);
		p->fail(p, err);
	}
	while ((w = TAILQ_FIRST(&waits)) != NULL) {
		TAILQ_REMOVE(&waits, w, link);
		w->fail(w, err);
	}
	if (!all) /* what was behind them may go */
		held_go(ep);
	if (ep->stub)
		ep_stub_cancel((struct plx_ep_stub *)ep, err);
}

void
plx_ep_cancel(struct plx_ep *ep, uint32_t conn_id, int err)
{
	fail_waiting(ep, false, conn_id, err);
}

bool
plx_ep_has_pending(const struct plx_ep *ep, uint32_t conn_id)
{
	const struct plx_pend *p;

	TAILQ_FOREACH(p, &ep->pending, link) {
		if (p->conn_id == conn_id)
			return true;
	}
	TAILQ_FOREACH(p, &ep->held, link) {
		if (p->conn_id == conn_id)
			return true;
	}
	return false;
}

void
plx_ep_closing_begin(struct plx_ep *ep, uint32_t conn_id, struct plx_wait_list *list)
{
	TAILQ_INIT(&list->head);
	list->ep = ep;
	LIST_INSERT_HEAD(&ep->closing, list, link);
	plx_ep_closing_more(ep, conn_id, list);
}

void
plx_ep_closing_more(struct plx_ep *ep, uint32_t conn_id, struct plx_wait_list *list)
{
	struct plx_wait *w, *next;

	for (w = TAILQ_FIRST(&ep->waits.head); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (w->conn_id != conn_id)
			continue;
		TAILQ_REMOVE(&ep->waits.head, w, link);
		TAILQ_INSERT_TAIL(&list->head, w, link);
		w->list = list;
	}
}

void
plx_ep_closing_end(struct plx_wait_list *list)
{
	PLX_ASSERT(TAILQ_EMPTY(&list->head));
	LIST_REMOVE(list, link);
}

void
plx_ep_fail(struct plx_ep *ep, int err)
{
	if (ep->err != 0)
		return;
	ep->err = err;
	ep->connected = false;
	PLX_STAT_INC(ep->eps->stat.eps_failed);
	fail_waiting(ep, true, 0, err);
	if (ep->eps->on_failed != NULL)
		ep->eps->on_failed(ep, err);
}

void
plx_eps_sweep(struct plx_eps *eps)
{
	struct plx_ep *ep, *next;

	for (ep = LIST_FIRST(&eps->all); ep != NULL; ep = next) {
		next = LIST_NEXT(ep, link);
		if (ep->err != 0 && ep->refs == 0 && ep->n_waits == 0 &&
			LIST_EMPTY(&ep->partial) && ep->n_msgs == 0)
			ep_free(ep);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep.c - one peer: connect, order, pending, failure
 */
#include <errno.h>
#include <string.h>

#include "ep_int.h"

const struct plx_stat_row plx_ep_stat_rows[] = {
	PLX_STAT_ROW(struct plx_ep_stat, tx_pending),
	PLX_STAT_ROW(struct plx_ep_stat, tx_failed),
	PLX_STAT_ROW(struct plx_ep_stat, eps),
	PLX_STAT_ROW(struct plx_ep_stat, eps_failed),
	PLX_STAT_ROW(struct plx_ep_stat, stops),
	PLX_STAT_ROW(struct plx_ep_stat, stopped_by_peer),
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

void
plx_eps_open(struct plx_eps *eps, void (*on_failed)(struct plx_ep *ep, int err))
{
	memset(eps, 0, sizeof(*eps));
	TAILQ_INIT(&eps->stalled);
	LIST_INIT(&eps->all);
	LIST_INIT(&eps->stopped);
	LIST_INIT(&eps->connecting);
	eps->on_failed = on_failed;
	plx_pool_open(&eps->ctl, "ctl", sizeof(struct ep_ctl), 64, 0, NULL, NULL);
	plx_pool_open(&eps->pool, "ep", sizeof(struct plx_ep), 16, 0, NULL, NULL);
	plx_pool_open(&eps->defers, "defer", EP_DEFER_SIZE, 32, 0, NULL, NULL);
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
	ep->eager_max = eps->eager_max;
	STAILQ_INIT(&ep->pending);
	TAILQ_INIT(&ep->waits);
	LIST_INIT(&ep->partial);
	LIST_INIT(&ep->announced);
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
	ep->refs++;
	LIST_INSERT_HEAD(&ep->users, user, link);
}

void
plx_ep_user_remove(struct plx_ep_user *user)
{
	LIST_REMOVE(user, link);
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

void
plx_ep_pend(struct plx_ep *ep, struct plx_pend *p)
{
	STAILQ_INSERT_TAIL(&ep->pending, p, link);
	PLX_STAT_INC(ep->eps->stat.tx_pending);
	if (!ep->stalled) {
		ep->stalled = true;
		TAILQ_INSERT_TAIL(&ep->eps->stalled, ep, stalled_link);
	}
}

void
plx_ep_unpend(struct plx_ep *ep, struct plx_pend *p)
{
	STAILQ_REMOVE(&ep->pending, p, plx_pend, link);
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

int
plx_ep_tx_copy(struct plx_ep *ep, uint32_t conn_id, uint8_t op, const void *hdr, uint8_t hdr_len)
{
	struct plx_tx tx = {.hdr = hdr, .hdr_len = hdr_len, .op = op};
	struct ep_ctl *c;
	int rc = plx_ep_connect(ep);

	if (rc != 0)
		return rc;
	tx.peer = ep->peer;
	if (plx_ep_open(ep)) {
		rc = plx_peer_tx(&tx);
		if (rc != -EAGAIN)
			return rc;
	}
	c = plx_pool_get(&ep->eps->ctl);
	if (c == NULL)
		return -ENOMEM;
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

static void
flow_send(struct plx_ep *ep, bool stop)
{
	struct plx_wire_flow h = {.stop = stop};

	/* To one who is gone there is nothing to say. */
	(void)plx_ep_tx_ctl(ep, PLX_WIRE_FLOW, &h, sizeof(h));
}

void
plx_ep_stop(struct plx_ep *ep)
{
	if (ep->stopped || ep->err != 0)
		return;
	ep->stopped = true;
	LIST_INSERT_HEAD(&ep->eps->stopped, ep, stopped_link);
	PLX_STAT_INC(ep->eps->stat.stops);
	flow_send(ep, true);
}

void
plx_eps_resume(struct plx_eps *eps)
{
	struct plx_ep *ep;

	while ((ep = LIST_FIRST(&eps->stopped)) != NULL) {
		LIST_REMOVE(ep, stopped_link);
		ep->stopped = false;
		flow_send(ep, false);
	}
}

void
plx_ep_on_flow(struct plx_ep *ep, const struct plx_wire_flow *h)
{
	ep->eager_max = h->stop ? 0 : ep->eps->eager_max;
	if (!h->stop)
		return;
	atomic_store_explicit(&ep->quick, false, memory_order_relaxed);
	PLX_STAT_INC(ep->eps->stat.stopped_by_peer);
}

static unsigned
ep_flush(struct plx_ep *ep)
{
	struct plx_pend *p;
	unsigned n = 0;

	while ((p = STAILQ_FIRST(&ep->pending)) != NULL) {
		int rc;

		/* Unlinked first: what is sent may complete, be freed and come again. */
		STAILQ_REMOVE_HEAD(&ep->pending, link);
		rc = p->send(p);
		if (rc == -EAGAIN) {
			STAILQ_INSERT_HEAD(&ep->pending, p, link);
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
		if (STAILQ_EMPTY(&ep->pending)) {
			TAILQ_REMOVE(&eps->stalled, ep, stalled_link);
			ep->stalled = false;
		}
	}
	return n;
}

/*
 * Fail what waits: of one handle, or all. Taken out first and failed then, since what
 * fails runs callbacks that may send, and close, anew.
 */
static void
fail_waiting(struct plx_ep *ep, bool all, uint32_t conn_id, int err)
{
	STAILQ_HEAD(, plx_pend) rest = STAILQ_HEAD_INITIALIZER(rest);
	STAILQ_HEAD(, plx_pend) failed = STAILQ_HEAD_INITIALIZER(failed);
	TAILQ_HEAD(, plx_wait) waits = TAILQ_HEAD_INITIALIZER(waits);
	struct plx_wait *w, *next;
	struct plx_pend *p;

	while ((p = STAILQ_FIRST(&ep->pending)) != NULL) {
		STAILQ_REMOVE_HEAD(&ep->pending, link);
		if (all || p->conn_id == conn_id)
			STAILQ_INSERT_TAIL(&failed, p, link);
		else
			STAILQ_INSERT_TAIL(&rest, p, link);
	}
	while ((p = STAILQ_FIRST(&rest)) != NULL) {
		STAILQ_REMOVE_HEAD(&rest, link);
		STAILQ_INSERT_TAIL(&ep->pending, p, link);
	}
	for (w = TAILQ_FIRST(&ep->waits); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (!all && w->conn_id != conn_id)
			continue;
		plx_ep_wait_end(w);
		TAILQ_INSERT_TAIL(&waits, w, link);
	}
	while ((p = STAILQ_FIRST(&failed)) != NULL) {
		STAILQ_REMOVE_HEAD(&failed, link);
		p->fail(p, err);
	}
	while ((w = TAILQ_FIRST(&waits)) != NULL) {
		TAILQ_REMOVE(&waits, w, link);
		w->fail(w, err);
	}
	if (ep->stub)
		ep_stub_cancel((struct plx_ep_stub *)ep, err);
}

void
plx_ep_cancel(struct plx_ep *ep, uint32_t conn_id, int err)
{
	fail_waiting(ep, false, conn_id, err);
}

bool
plx_ep_is_quiet(const struct plx_ep *ep, uint32_t conn_id)
{
	const struct plx_wait *w;
	const struct plx_pend *p;

	STAILQ_FOREACH(p, &ep->pending, link) {
		if (p->conn_id == conn_id)
			return false;
	}
	TAILQ_FOREACH(w, &ep->waits, link) {
		if (w->conn_id == conn_id)
			return false;
	}
	return true;
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

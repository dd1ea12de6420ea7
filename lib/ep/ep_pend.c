/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep_pend.c - order: pending messages, and what may overtake them
 */
#include <errno.h>
#include <string.h>

#include "ep_int.h"
#include "plx_log.h"

PLX_LOG_DEFINE(ep, "plx.ep");

/* Called when everything before it has been sent; of the same pool. */
struct ep_mark {
	struct plx_pend pend;
	struct plx_ep *ep;
	void (*passed)(void *arg);
	void *arg;
};
_Static_assert(sizeof(struct ep_mark) <= sizeof(struct ep_ctl), "one pool serves both");

static void *
ctl_get(struct plx_eps *eps)
{
	void *c = plx_pool_get(&eps->ctl);

	if (eps->ctl.n_free < PLX_EPS_CTL_RESERVE) {
		eps->is_short = true;
		plx_eps_need_turn(eps);
	}
	return c;
}

static void
pend_stall(struct plx_ep *ep)
{
	PLX_STAT_INC(ep->eps->stat.tx_pending);
	if (!ep->stalled) {
		ep->stalled = true;
		plx_eps_need_turn(ep->eps);
		TAILQ_INSERT_TAIL(&ep->eps->stalled, ep, stalled_link);
	}
}

void
plx_ep_pend_as(struct plx_ep *ep, struct plx_pend *p, enum plx_pend_order order)
{
	PLX_PROBE_STALL(ep->peer != NULL ? ep->peer->uid : 0, "the device is full");
	p->held = false;
	p->order = order;
	TAILQ_INSERT_TAIL(&ep->pending, p, link);
	pend_stall(ep);
}

static void
pend_hold(struct plx_ep *ep, struct plx_pend *p, enum plx_pend_order order)
{
	PLX_PROBE_STALL(ep->peer != NULL ? ep->peer->uid : 0, "too many are announced");
	p->held = true;
	p->order = order;
	TAILQ_INSERT_TAIL(&ep->held, p, link);
}

void
plx_ep_pend_last(struct plx_ep *ep, struct plx_pend *p)
{
	if (TAILQ_EMPTY(&ep->held))
		plx_ep_pend_as(ep, p, PLX_PEND_MARK);
	else
		pend_hold(ep, p, PLX_PEND_MARK);
}

/* Shorter tagged messages are eager. Behind a held one none is. */
static void
set_eager_end(struct plx_ep *ep)
{
	ep->eager_end = ep->announces || !TAILQ_EMPTY(&ep->held) ? 0 : ep->eager_own;
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
	pend_hold(ep, p, PLX_PEND_ANNOUNCED);
	set_eager_end(ep);
	return false;
}

/* Before those that were posted when one was held already. */
static void
hold_early(struct plx_ep *ep, struct plx_pend *p)
{
	p->held = true;
	if (ep->held_early != NULL)
		TAILQ_INSERT_AFTER(&ep->held, ep->held_early, p, link);
	else
		TAILQ_INSERT_HEAD(&ep->held, p, link);
	ep->held_early = p;
}

bool
plx_ep_announce_early(struct plx_ep *ep, struct plx_pend *p)
{
	p->order = PLX_PEND_ANNOUNCED;
	if (ep->n_announced < PLX_EP_MAX_ANNOUNCED && ep->held_early == NULL) {
		p->held = false;
		ep->n_announced++;
		return true;
	}
	PLX_STAT_INC(ep->eps->stat.tx_held);
	if (ep->held_early == NULL)
		ep->overtaken = true;
	hold_early(ep, p);
	set_eager_end(ep);
	return false;
}

void
ep_held_remove(struct plx_ep *ep, struct plx_pend *p)
{
	if (ep->held_early == p) /* all earlier ones are early, too */
		ep->held_early = TAILQ_PREV(p, plx_pends, link);
	TAILQ_REMOVE(&ep->held, p, link);
}

void
ep_held_go(struct plx_ep *ep)
{
	struct plx_pend *p;

	while ((p = TAILQ_FIRST(&ep->held)) != NULL) {
		bool counts = p->order == PLX_PEND_ANNOUNCED;

		if (counts && ep->n_announced >= PLX_EP_MAX_ANNOUNCED)
			return;
		ep->n_announced += counts;
		ep_held_remove(ep, p);
		plx_ep_pend_as(ep, p, p->order);
	}
	set_eager_end(ep);
}

void
plx_ep_unpend(struct plx_ep *ep, struct plx_pend *p)
{
	if (likely(!p->held)) {
		TAILQ_REMOVE(&ep->pending, p, link);
		return;
	}
	ep_held_remove(ep, p);
	ep_held_go(ep);
}

/*
 * A pending message is held now. Later messages that must not overtake it are held as well:
 * one that counts as announced passes its place on to it.
 */
static __rte_noinline __rte_cold void
hold_behind(struct plx_ep *ep)
{
	struct plx_pend *p, *next;
	int rc;

	ep->overtaken = false;
	for (p = TAILQ_FIRST(&ep->pending); p != NULL && ep->held_early != NULL; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->order == PLX_PEND_ANY)
			continue;
		TAILQ_REMOVE(&ep->pending, p, link);
		if (p->order != PLX_PEND_UNASKED) {
			ep->n_announced -= p->order == PLX_PEND_ANNOUNCED;
			hold_early(ep, p);
			continue;
		}
		rc = p->send(p); /* nothing is eager now: it is held, see plx_ep_announce_early() */
		if (rc == 0)
			continue;
		PLX_STAT_INC(ep->eps->stat.tx_failed);
		p->fail(p, rc); /* it may do anything: start again */
		ep->overtaken = true;
		return;
	}
	ep_held_go(ep);
}

void
plx_ep_announce_end(struct plx_ep *ep)
{
	PLX_ASSERT(ep->n_announced > 0);
	ep->n_announced--;
	if (unlikely(!TAILQ_EMPTY(&ep->held)))
		ep_held_go(ep);
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
		PLX_LOG_RATELIMIT(ERR, ep, "out of memory for a message to a peer: its connection fails");
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

int
plx_ep_tx_ctl(struct plx_ep *ep, uint8_t op, const void *hdr, uint8_t hdr_len)
{
	return plx_ep_tx_copy(ep, PLX_CONN_NONE, op, hdr, hdr_len);
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
	(void)err; /* a dead peer needs no message */
	container_of(p, struct plx_ep, flow)->flow_waits = false;
}

/* It overtakes pending messages, as the peer continues until it comes. */
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
	ep->flow.order = PLX_PEND_ANY;
	TAILQ_INSERT_HEAD(&ep->pending, &ep->flow, link);
	pend_stall(ep);
}

void
plx_ep_refuse(struct plx_ep *ep)
{
	if (ep->peer->state == PLX_PEER_DEAD)
		return;
	PLX_STAT_INC(ep->eps->stat.refused);
	PLX_LOG_RATELIMIT(ERR, ep, "a peer sent more than its window allows: its connection fails");
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
	plx_eps_need_turn(ep->eps);
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

#define TRY_EVERY 64u /* turns between two attempts to connect: each is a few system calls */

/* Connect for pending messages. @return whether they may be sent now */
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
	for (;;) {
		int rc;

		while (unlikely(ep->overtaken))
			hold_behind(ep);
		p = TAILQ_FIRST(&ep->pending);
		if (p == NULL)
			break;
		/* Unlinked first: the object may complete, be freed and be reused. */
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

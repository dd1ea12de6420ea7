/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep_fail.c - failing pending and waiting operations: of one handle, or all when the peer is dead
 */
#include "ep_int.h"

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
		ep_held_remove(ep, p);
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
 * Fail what waits: of one handle, or all. Everything is unlinked first, since a failing
 * operation may send, and close, again.
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
	if (!all) /* later ones may be sent */
		ep_held_go(ep);
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
	__atomic_store_n(&ep->err, err, __ATOMIC_RELAXED); /* see plx_ep_user_err() */
	ep->connected = false;
	PLX_STAT_INC(ep->eps->stat.eps_failed);
	fail_waiting(ep, true, 0, err);
	if (ep->eps->on_failed != NULL)
		ep->eps->on_failed(ep, err);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep.c - eps of peers, and the handles on them
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ep_int.h"

#define ROW(field) PLX_STAT_ROW(struct plx_ep_stat, field)

const struct plx_stat_row plx_ep_stat_rows[] = {
	ROW(tx_pending), ROW(tx_unreached), ROW(rx_held), ROW(tx_failed), ROW(eps), ROW(eps_failed),
	ROW(stops), ROW(stopped_by_peer), ROW(tx_held), ROW(refused), ROW(refused_by_peer),
	PLX_STAT_END,
};

int
plx_eps_open(struct plx_eps *eps, void (*on_failed)(struct plx_ep *ep, int err))
{
	memset(eps, 0, sizeof(*eps));
	TAILQ_INIT(&eps->stalled);
	LIST_INIT(&eps->all);
	LIST_INIT(&eps->stopped);
	LIST_INIT(&eps->connecting);
	eps->on_failed = on_failed;
	eps->due = PLX_DUE_WORK;
	plx_pool_open(&eps->ctl, "ctl", sizeof(struct ep_ctl), PLX_EPS_CTL_RESERVE, 0, NULL, NULL);
	plx_pool_open(&eps->pool, "ep", sizeof(struct plx_ep), 16, 0, NULL, NULL);
	eps->defers = calloc(1, sizeof(*eps->defers));
	if (eps->defers == NULL)
		return -ENOMEM;
	plx_pool_open(eps->defers, "defer", EP_DEFER_SIZE, 32, 0, NULL, NULL);
	return plx_pool_reserve(&eps->ctl, PLX_EPS_CTL_RESERVE) ? 0 : -ENOMEM;
}

bool
plx_eps_refill(struct plx_eps *eps)
{
	return plx_pool_reserve(&eps->ctl, PLX_EPS_CTL_RESERVE);
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
	if (eps->defers != NULL)
		plx_pool_close(eps->defers);
	free(eps->defers);
	eps->defers = NULL;
}

void
ep_init(struct plx_ep *ep, struct plx_eps *eps)
{
	memset(ep, 0, sizeof(*ep));
	ep->eps = eps;
	ep->eager_own = ep->eager_end = eps->eager_end;
	TAILQ_INIT(&ep->pending);
	TAILQ_INIT(&ep->held);
	TAILQ_INIT(&ep->waits.head);
	ep->waits.ep = ep;
	LIST_INIT(&ep->closing);
	LIST_INIT(&ep->users);
	if (eps->on_new != NULL)
		eps->on_new(ep);
}

static void
set_eager(struct plx_ep *ep, const struct plx_queue *q)
{
	if (ep->eps->eager_auto)
		ep->eager_own = RTE_MAX(ep->eps->eager_end, q->eager_max + UINT64_C(1));
	ep->eager_end = ep->eager_own;
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
	set_eager(ep, peer->q);
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
plx_ep_connect_slow(struct plx_ep *ep)
{
	int rc;

	if (ep->err != 0)
		return ep->err;
	if (ep->stub)
		return -EAGAIN;
	rc = plx_peer_connect(ep->peer); /* plx_ep_fail() reports a failure */
	if (rc != 0)
		return rc;
	ep->connected = true;
	return 0;
}

void
plx_eps_sweep(struct plx_eps *eps)
{
	struct plx_ep *ep, *next;

	for (ep = LIST_FIRST(&eps->all); ep != NULL; ep = next) {
		next = LIST_NEXT(ep, link);
		if (ep->err != 0 && ep->refs == 0 && ep->n_waits == 0 && ep->n_msgs == 0)
			ep_free(ep);
	}
}

static void
buf_give_back(struct plx_msg *m)
{
	plx_queue_rx_return(m->lies.of, m->lies.buf);
}

void
plx_msg_lies(struct plx_msg *m, struct plx_queue *q, void *buf, const uint8_t *data)
{
	m->size_class = PLX_MSG_CLASS_BUF;
	m->data = (uint8_t *)(uintptr_t)data;
	m->lies.give_back = buf_give_back;
	m->lies.of = q;
	m->lies.buf = buf;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_peer.c - where a peer stands, and in which of its queue's lists
 *
 * Design notes
 * Nothing here sends or makes anything, so it may be called in the middle of anything: who sends finds
 * the peer lost, who receives finds it wanted. What is to be done about it is done in a turn, by
 * mlx_conn.c and mlx_park.c.
 */
#include <errno.h>

#include "mlx_peer.h"

struct mlx_peer *
mlx_peer_look(struct mlx_queue *mq, uint32_t qpn)
{
	struct mlx_peer *p;

	SLIST_FOREACH(p, &mq->by_qpn[qpn % MLX_QPN_HASH], qpn_link) {
		if (p->qp->qpn == qpn)
			break;
	}
	mq->found = p;
	mq->found_qpn = qpn;
	return p;
}

void
mlx_peer_want(struct mlx_peer *p, bool called)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->conn >= MLX_CONN_OPEN)
		return;
	p->called |= called;
	if (p->wanted)
		return;
	p->wanted = true;
	p->n_asked = 0;
	p->asked_ns = 0;
	if (p->qp != NULL) {
		TAILQ_INSERT_TAIL(&mq->asking, p, asking);
		mq->n_own += !p->called;
		return;
	}
	PLX_STAT_INC(mq->stat.conn_waits);
	TAILQ_INSERT_TAIL(&mq->waiting, p, asking);
}

void
mlx_peer_want_end(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->wanted && p->qp != NULL) {
		TAILQ_REMOVE(&mq->asking, p, asking);
		mq->n_own -= !p->called;
	} else if (p->wanted) {
		TAILQ_REMOVE(&mq->waiting, p, asking);
	}
	p->wanted = p->called = false;
}

void
mlx_peer_works(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->conn != MLX_CONN_READY)
		return;
	p->conn = MLX_CONN_OPEN;
	plx_peer_met(&p->peer);
	p->made_ns = mq->now;
	p->used = p->opened = mq->looks - 1; /* so that a use at this look is seen */
	mlx_peer_want_end(p);
}

void
mlx_peer_park(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	p->conn = MLX_CONN_PARKING;
	p->said = p->theirs = p->cut = false;
	p->park_ns = mq->now;
	if (p->owes)
		SLIST_REMOVE(&mq->owes, p, mlx_peer, owes_link);
	p->owes = false;
	TAILQ_INSERT_TAIL(&mq->parking, p, parking);
}

void
mlx_peer_park_told(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->conn == MLX_CONN_OPEN) {
		mlx_peer_park(p);
		PLX_STAT_INC(mq->stat.conn_parked_by_peer);
	}
	p->theirs = true;
}

void
mlx_peer_park_end(struct mlx_peer *p)
{
	if (p->conn == MLX_CONN_PARKING)
		TAILQ_REMOVE(&mlx_queue(p->peer.q)->parking, p, parking);
}

void
mlx_peer_lose(struct mlx_peer *p, int err)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->conn >= MLX_CONN_LOST)
		return;
	if (mlx_peer_is_parked(p)) {
		p->cut = true;
		return;
	}
	mlx_peer_want_end(p);
	mlx_peer_park_end(p);
	p->conn = MLX_CONN_LOST;
	p->err = err;
	SLIST_INSERT_HEAD(&mq->lost, p, lost_link);
}

void
mlx_peer_bye(struct mlx_peer *p)
{
	p->said = false; /* it was not to be parked, after all */
	mlx_peer_lose(p, -ECONNRESET);
}

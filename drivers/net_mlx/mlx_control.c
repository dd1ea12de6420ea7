/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_control.c - periodic work of a queue, and leaving before it closes
 */
#include <errno.h>
#include <unistd.h>

#include "mlx_conn.h"
#include "mlx_group.h"
#include "mlx_lossy.h"
#include "mlx_rx.h"
#include "mlx_tm.h"
#include "mlx_tx.h"

#define LEAVE_NS 2000000000u /* for sent messages to arrive when a queue closes */

static void
peer_leave(struct plx_peer *peer, void *arg)
{
	struct mlx_peer *p = mlx_peer(peer);
	unsigned *waits = arg;
	bool over = plx_link_is_parked(&p->link);

	if ((p->link.state != PLX_LINK_OPEN && p->link.state != PLX_LINK_PARKING) || p->link.cut)
		return;
	if (!p->bye && !over)
		p->bye = mlx_tx_ctl(p, MLX_IMM_BYE);
	*waits += (!p->bye && !over) || p->tx_room != MLX_TX_DEPTH;
}

void
mlx_queue_leave(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);
	uint64_t until = plx_clock_ns() + LEAVE_NS;
	unsigned waits;

	if (getpid() != mq->pid)
		return;
	q->hold = false;
	if (mq->tm != NULL)
		mlx_tm_leave(mq);
	do {
		waits = mlx_lossy_drain(mq);
		mlx_flush(q);
		mlx_rx_drain(mq); /* credits, and closing peers as well: nobody waits for them */
		mlx_tx_poll(mq);
		plx_peer_each(q, peer_leave, &waits);
	} while (waits > 0 && plx_clock_ns() < until);
}

static void
peer_look(struct plx_peer *peer, void *arg)
{
	struct mlx_queue *mq = arg;
	struct mlx_peer *p = mlx_peer(peer);

	if (mlx_port_is_gone(mq->port))
		plx_link_lose(&p->link, -ENODEV);
	else
		plx_link_look(&p->link, mlx_ud_room(&mq->ud) != NULL);
}

/* Check whether all peers are alive, if it is time; at once when the device has failed. */
static bool
peers_look(struct mlx_queue *mq)
{
	struct plx_link *l = &mq->link;

	l->caught_up = mq->tx_seen - mq->tx_then >= MLX_TX_ALL;
	if (!mlx_port_is_gone(mq->port) && !plx_link_is_time(l, mq->tx_due != 0))
		return false;
	l->overdue = false;
	l->up_ns = atomic_load_explicit(&mq->port->up_ns, memory_order_relaxed); /* alone */
	plx_peer_each(mq->q, peer_look, mq);
	l->peers_ns = l->now_ns;
	mq->tx_then = mq->tx_seen;
	return true;
}

void
mlx_queue_control(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);
	uint64_t now = plx_clock_ns();

	mq->link.now_ns = now;
	mlx_port_events(mq->port);
	mlx_dgrams_poll(mq);
	mlx_ud_mend(mq, &mq->ud);
	mlx_ud_mend(mq, &mq->lossy);
	mlx_groups_mend(mq);
	plx_link_control(&mq->link, now);
	plx_reg_cache_control(&mq->stat.regs);
	if (peers_look(mq) && mq->hw->ops->check != NULL)
		mq->hw->ops->check(mq->hw);
}

/* Whether there may be a peer whose death no event reports. */
static bool
has_to_look(const struct mlx_queue *mq)
{
	return !TAILQ_EMPTY(&mq->link.conns) || mq->lossy.qp != NULL;
}

uint64_t
mlx_queue_deadline(struct plx_queue *q)
{
	const struct mlx_queue *mq = mlx_queue(q);
	uint64_t look_ns = has_to_look(mq) ? mq->link.peers_ns + mq->link.probe_ns : UINT64_MAX;

	return RTE_MIN(plx_link_deadline(&mq->link), look_ns);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_alive.c - peers that are silent: they are asked, and at last they are gone
 *
 * Design notes
 * The device may send again for ever, so the driver says when a peer is gone. A sign of life is
 * whatever comes of it and the completion of any request. Who gives none for probe_ms gets an empty
 * write, which its device acknowledges whatever its owner does; from then on a completion is due,
 * and dead_ms later the peer is gone.
 *
 * Completions come in time though much is to be sent: no request is longer than MLX_RMA_MAX, and
 * one out of MLX_SIGNAL_EVERY has a completion at the least. Where even that takes longer than
 * dead_ms (many share a slow link, packets get lost) datagrams help, which overtake what is queued:
 * the peer's owner answers them if it looks. While the own port was down nothing could come, so that
 * it is back counts like such an answer. But neither means that the connection works: after
 * MLX_PATIENCE times dead_ms without a completion the peer is gone all the same.
 *
 * An owner may not look for long, and finds then what came meanwhile. So a peer that is overdue at
 * one look is gone only at another, when all that had been completed at the first was taken.
 * It is the turn that takes it: callbacks are not called from here.
 *
 * Messages that may get lost need no connection, and without one no device says whether it got them.
 * So who is sent such and is not heard for probe_ms is called by datagrams, and gone when its
 * owner answers none for connect_ms: it has as long as one who is asked for a connection.
 */
#include "mlx_conn.h"
#include "mlx_dgram.h"
#include "mlx_tx.h"

#define CALLS_MIN 8

/* Whether a completion is to come. */
static bool
is_due(const struct mlx_peer *p)
{
	for (uint16_t i = p->tx_done; i != p->qp->next; i++)
		if (p->recs[i % MLX_TX_RECS].signalled)
			return true;
	return false;
}

static bool
is_overdue(const struct mlx_queue *mq, const struct mlx_peer *p, uint64_t at_ns)
{
	uint64_t silent = at_ns - p->silent_ns;
	uint64_t up_ns = atomic_load_explicit(&mq->port->up_ns, memory_order_relaxed);
	uint64_t heard_ns = RTE_MAX(p->heard_ns, up_ns);

	heard_ns = RTE_MIN(heard_ns, at_ns);
	return silent >= MLX_PATIENCE * mq->dead_ns ||
		(silent >= mq->dead_ns && at_ns - heard_ns >= mq->dead_ns);
}

/* A peer that gave no sign of life for a while. */
static void
silent_look(struct mlx_queue *mq, struct mlx_peer *p)
{
	mlx_tx_probe(p);
	if (p->qp == NULL || p->conn >= MLX_CONN_LOST || p->cut || !is_due(p))
		return;
	if (p->silent_ns <= p->rx_ns) {
		p->silent_ns = mq->now;
		return;
	}
	if (mq->caught_up && is_overdue(mq, p, mq->peers_ns)) {
		PLX_STAT_INC(mq->stat.silent_gone);
		mlx_peer_lose(p, -ETIME);
		return;
	}
	mlx_conn_call(p);
	mq->overdue |= is_overdue(mq, p, mq->now);
}

/* Whether nobody tells if it is there: it has no connection, and is not asked for one. */
static bool
is_untold(const struct mlx_peer *p)
{
	return p->conn < MLX_CONN_OPEN && !(p->wanted && p->qp != NULL);
}

static void
tell(struct mlx_queue *mq, struct mlx_peer *p, enum mlx_dgram_kind kind)
{
	struct mlx_dgram d = {.kind = kind, .qpn = mq->lossy.qp->qp_num};

	(void)mlx_dgrams_send(mq, p, &d); /* where there is no way it is not answered either */
}

static void
unheard_look(struct mlx_queue *mq, struct mlx_peer *p)
{
	if (mq->now - RTE_MIN(p->heard_ns, mq->now) < mq->probe_ns || mlx_ud_room(&mq->ud) == NULL)
		return;
	if (p->n_calls == 0)
		p->silent_ns = mq->now;
	/* So many calls, as we ourselves may not have looked for long. */
	if (p->n_calls >= CALLS_MIN && mq->now - p->silent_ns >= mq->connect_ns) {
		PLX_STAT_INC(mq->stat.silent_gone);
		mlx_peer_lose(p, -ETIME);
		return;
	}
	p->n_calls += p->n_calls != UINT8_MAX;
	PLX_STAT_INC(mq->stat.silent_asked);
	tell(mq, p, MLX_DGRAM_CALL);
}

void
mlx_alive_on_dgram(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_dgram *d)
{
	/* Who has forgotten what was agreed, or given the peer up, is not there for it. */
	if (p->lossy_qpn != d->qpn || p->conn >= MLX_CONN_LOST)
		return;
	if (d->kind == MLX_DGRAM_CALL) {
		tell(mq, p, MLX_DGRAM_HERE);
		return;
	}
	PLX_STAT_ADD(mq->stat.silent_answered, p->n_calls != 0);
	mlx_peer_heard(mq, p);
}

static void
peer_look(struct plx_peer *peer, void *arg)
{
	struct mlx_queue *mq = arg;
	struct mlx_peer *p = mlx_peer(peer);

	if (atomic_load_explicit(&mq->port->gone, memory_order_relaxed) && p->conn < MLX_CONN_LOST)
		mlx_peer_lose(p, -ENODEV);
	else if (p->unheard && is_untold(p))
		unheard_look(mq, p);
	else if (mq->now - p->rx_ns >= mq->probe_ns)
		silent_look(mq, p);
}

/* Now and then; soon, when there is a peer to be told gone; at once when the device is. */
static bool
is_time(const struct mlx_queue *mq)
{
	if (atomic_load_explicit(&mq->port->gone, memory_order_relaxed))
		return true;
	if (mq->overdue && mq->tx_due != 0)
		return mq->caught_up;
	return mq->now - mq->peers_ns >= mq->probe_ns / 4;
}

bool
mlx_alive_look(struct mlx_queue *mq)
{
	mq->caught_up = mq->tx_seen - mq->tx_then >= MLX_TX_ALL;
	if (!is_time(mq))
		return false;
	mq->overdue = false;
	plx_peer_each(mq->q, peer_look, mq);
	mq->peers_ns = mq->now;
	mq->tx_then = mq->tx_seen;
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_park.c - no more queue pairs than may be: connections that are idle give way
 *
 * Design notes
 * When somebody needs a queue pair and there are as many as may be, the connection that was not used
 * for longest is parked: closed such that nothing is lost, and made anew when either side has
 * something to send. Each side stops to send, waits until the device has done all of its requests,
 * says PARK as its last, and closes when it has the other's PARK and its own is acknowledged. The one
 * that begins says it first; both may begin at the same time. An acknowledgement that is lost while the
 * other closes makes our PARK fail: as theirs was there, it is over all the same.
 *
 * PARK needs a credit. Until it is said credits are told as ever, with the last one as well: both may
 * begin with one left and all the rest on the way, and if each kept what it owes until it had another
 * to say PARK with, both would wait for ever.
 *
 * And who waits for a credit of a peer that is silent already waits for ever. So the first to say
 * PARK keeps a credit, and tells with it what it owes if the other has none left: if all that was
 * granted is back here. In any other case something is still to come, its PARK perhaps,
 * and it may be gone when credits arrive.
 *
 * Of the queue pairs half may be ours that ask, the rest are for peers that ask us: else several
 * queues that wait for each other's answer in a circle would wait for ever. And a connection
 * stays until something was sent by it, or some time, so that each gets its turn.
 */
#include <errno.h>

#include "mlx_conn.h"
#include "mlx_tx.h"

#define HOLD_NS 20000000u 

/* Whether neither the peer has a credit left, nor anything of it is on the way. */
static bool
peer_is_dry(const struct mlx_peer *p)
{
	uint32_t to_tell = p->credit.owed + p->credit.fresh;

	return to_tell > 0 && to_tell + p->rx_held == p->credit.granted;
}

static void
park_say(struct mlx_peer *p)
{
	if (p->tx_room != MLX_TX_DEPTH)
		mlx_tx_probe(p); /* its completion stands for all before it */
	else if (p->theirs || plx_credit_has(&p->credit))
		p->said = mlx_tx_ctl(p, MLX_IMM_PARK);
	else if (plx_credit_urgent(&p->credit))
		mlx_tx_ctl(p, 0);
}

static void
park_step(struct mlx_peer *p)
{
	if (!p->said)
		park_say(p);
	else if (!p->theirs && peer_is_dry(p))
		mlx_tx_ctl(p, 0);
	else if (p->theirs && p->rx_held == 0 && (p->cut || p->tx_room == MLX_TX_DEPTH))
		mlx_conn_reset(p);
}

/* Parked for long, and the peer does not look: it may for a long time. */
static bool
is_stuck(const struct mlx_queue *mq, const struct mlx_peer *p)
{
	return mq->now - p->park_ns >= HOLD_NS;
}

/* Whether a connection had its turn; or one of a peer that asked and then did nothing. */
static bool
may_go(const struct mlx_queue *mq, const struct mlx_peer *p)
{
	if (p->conn == MLX_CONN_READY)
		return !p->wanted && mq->now - p->made_ns >= mq->connect_ns;
	return p->conn == MLX_CONN_OPEN && (p->used != p->opened || mq->now - p->made_ns >= HOLD_NS);
}

static struct mlx_peer *
least_used(const struct mlx_queue *mq)
{
	struct mlx_peer *p, *best = NULL;

	TAILQ_FOREACH(p, &mq->conns, conns) {
		if (may_go(mq, p) && (best == NULL || mq->looks - p->used > mq->looks - best->used))
			best = p;
	}
	return best;
}

/* So many more queue pairs are needed: as many connections give way. */
static void
room_make(struct mlx_queue *mq, unsigned n)
{
	struct mlx_peer *p;

	TAILQ_FOREACH(p, &mq->parking, parking)
		n -= n > 0 && !is_stuck(mq, p);
	for (; n > 0 && (p = least_used(mq)) != NULL; n--) {
		if (p->conn == MLX_CONN_OPEN) {
			mlx_peer_park(p);
			PLX_STAT_INC(mq->stat.conn_parked);
		} else {
			mlx_conn_reset(p);
		}
	}
}

/* Who waits gets a queue pair, if there is one. */
static void
waiting_serve(struct mlx_queue *mq)
{
	unsigned own = mq->n_own, missing = 0;
	struct mlx_peer *p, *next;

	for (p = TAILQ_FIRST(&mq->waiting); p != NULL; p = next) {
		next = TAILQ_NEXT(p, asking);
		if (!p->called && own >= mq->qps_max / 2)
			continue;
		own += !p->called;
		if (!mlx_peer_has_room(mq))
			missing++;
		else
			mlx_conn_start(p);
	}
	room_make(mq, missing);
}

void
mlx_park_work(struct mlx_queue *mq)
{
	struct mlx_peer *p, *next;

	for (p = TAILQ_FIRST(&mq->parking); p != NULL; p = next) {
		next = TAILQ_NEXT(p, parking);
		park_step(p);
	}
	if (!TAILQ_EMPTY(&mq->waiting))
		waiting_serve(mq);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_conn.c - from an address to an open queue pair, and its end
 *
 * Design notes
 * A peer costs an address until something is sent to it or comes from it. Then each side
 * makes one queue pair for the other. By datagrams it ASKs with its own and is ANSWERed with
 * the other's; both may ask at the same time, since an ASK tells all that one needs to make
 * one's own queue pair ready, and every ASK is answered, however often it comes. Datagrams get
 * lost: whoever wants to send asks again, with growing pauses, until it may or gives up. While the
 * own port is down nothing is sent. Where no way is found that is an error at the third try, as the
 * other side's port may come up after ours; a try may take the kernel a second.
 *
 * A side may send when it knows that the other's queue pair is ready to receive: an ANSWER to
 * its own ASK says so, or any message by the queue pair. Who is answered sends at once, if
 * only an empty one, so the other side needs no third datagram.
 *
 * A queue numbers its queue pairs (attempt). An ASK with a higher number than before comes
 * from a peer that has made a new one, so the one we have leads nowhere: it is dead, unless both had
 * agreed to close it (mlx_park.c), or it was never used. Lower numbers are of datagrams that were late.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx_conn.h"
#include "mlx_dgram.h"
#include "mlx_glue.h"
#include "mlx_pick.h"
#include "mlx_slot.h"
#include "mlx_tm.h"

#define BACKOFF_MAX 6 /* doublings of the pause between two ASKs */
#define WAY_TRIES   3
#define READS	    16 /* READs and atomics of one peer at once */
#define RNR_TIMER   12 /* 0.64 ms; it is never used while the credits hold */

bool
mlx_peer_is(const struct plx_peer *peer, const struct plx_addr *addr)
{
	const struct mlx_peer *p = (const struct mlx_peer *)peer;

	return addr->len == sizeof(p->addr) && memcmp(addr->bytes, &p->addr, sizeof(p->addr)) == 0;
}

int
mlx_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);
	int rc;

	if (addr->len != sizeof(p->addr))
		return -EINVAL;
	memcpy(&p->addr, addr->bytes, sizeof(p->addr));
	rc = mlx_addr_check(&p->addr);
	if (rc == 0)
		rc = mlx_queue_reach(mq, &p->addr);
	if (rc != 0)
		return rc;
	peer->proc = p->addr.proc;
	peer->domain = mlx_addr_domain(&p->addr);
	peer->mtu = RTE_MIN(p->addr.rx_len, mq->addr.rx_len);
	peer->short_max = MLX_INLINE_MAX - sizeof(uint64_t);
	peer->caps = peer->q->caps;
	if (mlx_peer_has_tags(p))
		mlx_tm_speak(mq, p);
	return 0;
}

static void
lost_end(struct mlx_queue *mq, struct mlx_peer *p)
{
	if (p->conn == MLX_CONN_LOST)
		SLIST_REMOVE(&mq->lost, p, mlx_peer, lost_link);
}

static void
dgram_send(struct mlx_queue *mq, struct mlx_peer *p, enum mlx_dgram_kind kind)
{
	struct mlx_dgram d = {.kind = kind, .qpn = p->qp->qpn, .psn = p->psn,
		.your_qpn = p->their_qpn, .attempt = p->attempt, .credits = p->credit.granted,
		.reads = READS};

	if (!mlx_port_is_up(mq->port))
		return;
	if (mlx_dgrams_send(mq, p, &d) == 0)
		p->n_no_way = 0;
	else if (p->conn != MLX_CONN_OPEN && ++p->n_no_way == WAY_TRIES)
		mlx_peer_lose(p, -EHOSTUNREACH);
}

static void
ask(struct mlx_queue *mq, struct mlx_peer *p, uint64_t now)
{
	if (p->n_asked++ == 0) {
		PLX_STAT_INC(mq->stat.conn_asked);
		p->give_up_ns = now + mq->connect_ns;
	} else {
		PLX_STAT_INC(mq->stat.conn_asked_again);
	}
	p->asked_ns = now;
	dgram_send(mq, p, MLX_DGRAM_ASK);
}

void
mlx_conn_call(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	PLX_STAT_INC(mq->stat.silent_asked);
	dgram_send(mq, p, MLX_DGRAM_ASK);
}

/* A queue pair of ours, slots for what comes by it, and its place among those by number. */
static int
qp_make(struct mlx_queue *mq, struct mlx_peer *p)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = mq->port->num,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_ATOMIC};
	uint16_t grant = plx_credit_grant(mq->granted, mq->rx_budget, mq->rx_room - mq->rx_spare,
		RTE_MIN(mq->want, PLX_CREDIT_FIRST));
	int rc;

	if (mlx_port_is_gone(mq->port))
		return -ENODEV;
	if (grant == 0 || mlx_slots_grow(mq, mq->granted + grant) != 0) {
		PLX_STAT_INC(mq->stat.conn_no_room);
		return -ENOMEM;
	}
	if (p->recs == NULL)
		p->recs = calloc(MLX_TX_RECS, sizeof(p->recs[0]));
	if (p->recs == NULL)
		return -ENOMEM;
	rc = mq->hw->ops->qp_open(mq->hw, MLX_TX_DEPTH, MLX_INLINE_MAX, &p->qp);
	if (rc != 0)
		return rc;
	rc = -mlx_glue.modify_qp(p->qp->qp, &a,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc != 0 || p->qp->max_inline < MLX_INLINE_MAX) {
		mq->hw->ops->qp_close(p->qp);
		p->qp = NULL;
		return rc != 0 ? rc : -ENODEV;
	}
	mq->granted += grant;
	p->credit = (struct plx_credit){.granted = grant};
	p->tx_room = MLX_TX_DEPTH;
	p->tx_done = p->qp->next;
	p->unsignalled = 0;
	p->silent_ns = p->heard_ns = 0;
	p->n_calls = p->n_no_way = 0;
	p->rx_held = 0;
	p->bye = p->cut = false;
	p->attempt = ++mq->attempts;
	p->psn = mlx_now_ns() & 0xffffff;
	p->conn = MLX_CONN_ASKED;
	mq->n_qps++;
	TAILQ_INSERT_TAIL(&mq->conns, p, conns);
	SLIST_INSERT_HEAD(&mq->by_qpn[p->qp->qpn % MLX_QPN_HASH], p, qpn_link);
	return 0;
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* Now that the peer's is known: ready to receive, and to send. */
static int
qp_ready(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_dgram *d)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .dest_qp_num = d->qpn, .rq_psn = d->psn,
		.path_mtu = least(mq->addr.path_mtu, p->addr.path_mtu), .min_rnr_timer = RNR_TIMER,
		.max_dest_rd_atomic = least(READS, mq->port->attr.max_qp_rd_atom),
		.ah_attr = {.port_num = mq->port->num, .dlid = mlx_addr_lid(&p->addr),
			.is_global = p->addr.link != MLX_LINK_IB,
			.grh = {.sgid_index = mq->port->gid_index, .hop_limit = 64}}};
	int rc;

	memcpy(a.ah_attr.grh.dgid.raw, p->addr.gid, sizeof(p->addr.gid));
	rc = mlx_glue.modify_qp(p->qp->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = mq->timeout,
		.retry_cnt = mq->retries, .rnr_retry = 7, .sq_psn = p->psn,
		.max_rd_atomic = least(d->reads, mq->port->attr.max_qp_init_rd_atom)};
	if (rc == 0)
		rc = mlx_glue.modify_qp(p->qp->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
			IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc != 0)
		return -rc;
	p->their_qpn = d->qpn;
	p->their_attempt = d->attempt;
	p->credit.left = p->credit.most = d->credits;
	p->conn = MLX_CONN_READY;
	p->made_ns = mq->now;
	return 0;
}

void
mlx_conn_start(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	int rc = qp_make(mq, p);

	if (rc == 0) {
		TAILQ_REMOVE(&mq->waiting, p, asking);
		TAILQ_INSERT_TAIL(&mq->asking, p, asking);
		mq->n_own += !p->called;
		ask(mq, p, mlx_now_ns());
	} else if (rc != -ENOMEM) {
		mlx_peer_lose(p, rc);
	}
}

int
mlx_peer_connect(struct plx_peer *peer)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);
	int rc = 0;

	if (p->wanted || p->conn >= MLX_CONN_OPEN)
		return 0;
	if (p->conn == MLX_CONN_NONE && mlx_peer_has_room_to_ask(mq))
		rc = qp_make(mq, p);
	if (rc != 0)
		return rc;
	mlx_peer_want(p, false);
	if (p->qp != NULL)
		ask(mq, p, mlx_now_ns());
	return p->conn >= MLX_CONN_LOST ? p->err : 0;
}

/* Whether it is of a queue pair that the peer has made after all that we know of. */
static bool
is_newer(const struct mlx_peer *p, const struct mlx_dgram *d)
{
	return p->their_attempt == 0 || (int32_t)(d->attempt - p->their_attempt) > 0;
}

/* The peer has made a queue pair after the one that ours is connected to. @return whether to answer */
static bool
on_newer(struct mlx_peer *p)
{
	switch (p->conn) {
	case MLX_CONN_PARKING:
		if (!mlx_peer_is_parked(p) || p->rx_held != 0)
			return false; /* what it said last is still to be seen; it asks again */
		/* fallthrough */
	case MLX_CONN_READY:
		mlx_conn_reset(p); /* nothing was sent by it, or all has come */
		return true;
	default:
		mlx_peer_lose(p, -ECONNRESET);
		return false;
	}
}

void
mlx_conn_on_ask(struct mlx_peer *p, const struct mlx_dgram *d)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	bool newer = is_newer(p, d);
	int rc = 0;

	if (p->conn >= MLX_CONN_LOST)
		return; /* until nobody holds it any more */
	if (!newer && (p->conn < MLX_CONN_READY || d->attempt != p->their_attempt)) {
		PLX_STAT_INC(mq->stat.conn_drop_old);
		return;
	}
	if (newer && p->conn >= MLX_CONN_READY && !on_newer(p))
		return;
	if (p->conn == MLX_CONN_NONE) {
		if (!mlx_peer_has_room(mq)) {
			mlx_peer_want(p, true);
			return;
		}
		mlx_peer_want_end(p);
		rc = qp_make(mq, p);
	}
	if (rc == 0 && p->conn == MLX_CONN_ASKED)
		rc = qp_ready(mq, p, d);
	if (rc != 0) {
		PLX_STAT_INC(mq->stat.conn_refused); /* it asks again, perhaps in better times */
		PLX_LOG_RATELIMIT(WARNING, mlx, "a peer can't be connected: error %d", -rc);
		return;
	}
	PLX_STAT_INC(mq->stat.conn_answered);
	dgram_send(mq, p, MLX_DGRAM_ANSWER);
}

void
mlx_conn_on_answer(struct mlx_peer *p, const struct mlx_dgram *d)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	int rc = 0;

	if (p->qp == NULL || p->conn >= MLX_CONN_LOST || d->your_qpn != p->qp->qpn)
		return; /* late, or for a queue pair that we no longer have */
	if (p->conn >= MLX_CONN_READY ? d->attempt != p->their_attempt : !is_newer(p, d)) {
		PLX_STAT_INC(mq->stat.conn_drop_old);
		return;
	}
	if (p->conn >= MLX_CONN_OPEN) {
		p->heard_ns = mlx_now_ns();
		PLX_STAT_ADD(mq->stat.silent_answered, p->silent_ns > p->rx_ns);
		return;
	}
	if (p->conn == MLX_CONN_ASKED)
		rc = qp_ready(mq, p, d);
	if (rc != 0) {
		mlx_peer_lose(p, rc);
		return;
	}
	mlx_peer_works(p);
	mlx_tx_ctl(p, MLX_IMM_CTL);
}

void
mlx_conn_control(struct mlx_queue *mq, uint64_t now)
{
	struct mlx_peer *p, *next;

	for (p = TAILQ_FIRST(&mq->asking); p != NULL; p = next) {
		next = TAILQ_NEXT(p, asking);
		if (p->n_asked != 0 && now >= p->give_up_ns)
			mlx_peer_lose(p, -ETIMEDOUT);
		else if (now - p->asked_ns >=
			mq->again_ns << RTE_MIN(p->n_asked, (uint32_t)BACKOFF_MAX))
			ask(mq, p, now);
	}
}

/* The device knows nothing of it any more. */
static void
qp_end(struct mlx_queue *mq, struct mlx_peer *p)
{
	if (p->qp == NULL)
		return;
	SLIST_REMOVE(&mq->by_qpn[p->qp->qpn % MLX_QPN_HASH], p, mlx_peer, qpn_link);
	if (mq->found == p)
		mq->found = NULL;
	if (p->held)
		SLIST_REMOVE(&mq->held, p, mlx_peer, held_link);
	if (p->owes)
		SLIST_REMOVE(&mq->owes, p, mlx_peer, owes_link);
	p->held = p->owes = false;
	mq->hw->ops->qp_close(p->qp);
	p->qp = NULL;
	mq->n_qps--;
	TAILQ_REMOVE(&mq->conns, p, conns);
	mq->granted -= p->credit.granted; /* its slots stay, for the next */
}

void
mlx_conn_reset(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	mlx_peer_want_end(p);
	mlx_peer_park_end(p);
	qp_end(mq, p);
	mlx_tx_drop(p, -ECANCELED); /* nothing of the application's */
	p->conn = MLX_CONN_NONE;
}

static void
conn_fail(struct mlx_peer *p, int err)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	PLX_LOG(INFO, mlx, "peer %llx is lost: error %d", (unsigned long long)p->peer.uid, -err);
	mlx_peer_want_end(p);
	lost_end(mq, p);
	p->conn = MLX_CONN_DEAD;
	mlx_queue_shun(mq, p->peer.uid);
	/* First, so that the device reads no buffer that is given back. */
	qp_end(mq, p);
	mlx_tx_drop(p, err);
	plx_peer_dead(&p->peer, err);
	if (mq->tm != NULL)
		mlx_tm_peer_lost(mq, p);
}

void
mlx_conn_settle(struct mlx_queue *mq)
{
	while (!SLIST_EMPTY(&mq->lost))
		conn_fail(SLIST_FIRST(&mq->lost), SLIST_FIRST(&mq->lost)->err);
}

void
mlx_peer_close(struct plx_peer *peer)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);

	if (getpid() != mq->pid)
		return;
	mlx_peer_want_end(p);
	lost_end(mq, p);
	mlx_peer_park_end(p);
	qp_end(mq, p);
	mlx_tx_drop(p, -ECANCELED);
	if (mq->tm != NULL)
		mlx_tm_peer_lost(mq, p);
	mlx_way_drop(p);
	free(p->recs);
}

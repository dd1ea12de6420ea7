/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_conn.c - queue pairs: executes the decisions of lib/link
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx_conn.h"
#include "mlx_glue.h"
#include "mlx_pick.h"
#include "mlx_slot.h"
#include "mlx_tm.h"

#define READS	  16 /* READs and atomics of one peer at once */
#define RNR_TIMER 12 /* 0.64 ms; unused while the credits hold */

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

	p->link.link = &mq->link;
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

/* A queue pair of ours, slots for its arrivals, and its place among those by number. */
static int
qp_make(struct plx_link_peer *lp)
{
	struct mlx_peer *p = mlx_peer_of(lp);
	struct mlx_queue *mq = mlx_queue(p->peer.q);
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
	p->link.credit = (struct plx_credit){.granted = grant};
	p->link.id = p->qp->qpn;
	p->tx_room = MLX_TX_DEPTH;
	p->tx_done = p->qp->next;
	p->unsignalled = 0;
	p->bye = false;
	p->psn = plx_clock_ns() & 0xffffff;
	SLIST_INSERT_HEAD(&mq->by_qpn[p->qp->qpn % MLX_QPN_HASH], p, qpn_link);
	return 0;
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* The peer's is known: make ours ready to receive, and to send. */
static int
qp_ready(struct plx_link_peer *lp, const struct plx_link_hello *hello)
{
	const struct mlx_peer *p = mlx_peer_of(lp);
	const struct mlx_queue *mq = mlx_queue(p->peer.q);
	const struct mlx_dgram *d = hello->more;
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
	return -rc;
}

static void
qp_close(struct mlx_queue *mq, struct mlx_peer *p)
{
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
	mq->granted -= p->link.credit.granted; /* its slots stay, for the next peer */
}

static void
qp_end(struct plx_link_peer *lp, int err)
{
	struct mlx_peer *p = mlx_peer_of(lp);

	/* First, so that the device reads no buffer that is freed. */
	if (p->qp != NULL)
		qp_close(mlx_queue(p->peer.q), p);
	mlx_tx_drop(p, err);
}

static void
conn_met(struct plx_link_peer *lp)
{
	plx_peer_met(&mlx_peer_of(lp)->peer);
}

static void
conn_parks(struct plx_link_peer *lp)
{
	struct mlx_peer *p = mlx_peer_of(lp);

	if (p->owes)
		SLIST_REMOVE(&mlx_queue(p->peer.q)->owes, p, mlx_peer, owes_link);
	p->owes = false;
}

static void
conn_dead(struct plx_link_peer *lp, int err)
{
	struct mlx_peer *p = mlx_peer_of(lp);
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	PLX_LOG(INFO, mlx, "the connection to peer %llx is lost: error %d", (unsigned long long)p->peer.uid, -err);
	mlx_queue_shun(mq, p->peer.uid);
	plx_peer_dead(&p->peer, err);
	if (mq->tm != NULL)
		mlx_tm_peer_lost(mq, p);
}

/* Of a connection, or of the queue pair for unreliable datagrams. */
static int
conn_say(struct plx_link_peer *lp, const struct plx_link_hello *hello)
{
	struct mlx_peer *p = mlx_peer_of(lp);
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	struct mlx_dgram d = {.kind = hello->kind};

	if (hello->kind >= PLX_LINK_CALL) {
		d.qpn = mq->lossy.qp->qp_num;
		return mlx_dgrams_send(mq, p, &d);
	}
	if (!mlx_port_is_up(mq->port))
		return -EAGAIN;
	d.qpn = hello->id;
	d.psn = p->psn;
	d.your_qpn = hello->your_id;
	d.attempt = hello->attempt;
	d.credits = hello->credits;
	d.reads = READS;
	return mlx_dgrams_send(mq, p, &d);
}

static bool
conn_tell(struct plx_link_peer *lp, bool park)
{
	return mlx_tx_ctl(mlx_peer_of(lp), park ? MLX_IMM_PARK : 0);
}

static bool
conn_is_idle(const struct plx_link_peer *lp)
{
	return container_of(lp, struct mlx_peer, link)->tx_room == MLX_TX_DEPTH;
}

static bool
conn_is_due(const struct plx_link_peer *lp)
{
	const struct mlx_peer *p = container_of(lp, struct mlx_peer, link);

	for (uint16_t i = p->tx_done; i != p->qp->next; i++)
		if (p->recs[i % MLX_TX_RECS].signalled)
			return true;
	return false;
}

static void
conn_probe(struct plx_link_peer *lp)
{
	mlx_tx_probe(mlx_peer_of(lp));
}

static_assert((int)MLX_DGRAM_ASK == PLX_LINK_ASK && (int)MLX_DGRAM_HERE == PLX_LINK_HERE, "wire");

const struct plx_link_ops mlx_conn_ops = {
	.make = qp_make,
	.ready = qp_ready,
	.met = conn_met,
	.parks = conn_parks,
	.end = qp_end,
	.dead = conn_dead,
	.say = conn_say,
	.tell = conn_tell,
	.is_idle = conn_is_idle,
	.is_due = conn_is_due,
	.probe = conn_probe,
};

int
mlx_peer_connect(struct plx_peer *peer)
{
	return plx_link_connect(&mlx_peer(peer)->link, plx_clock_ns());
}

void
mlx_peer_close(struct plx_peer *peer)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);

	if (getpid() != mq->pid)
		return;
	plx_link_close(&p->link);
	if (mq->tm != NULL)
		mlx_tm_peer_lost(mq, p);
	mlx_way_drop(p);
	free(p->recs);
}

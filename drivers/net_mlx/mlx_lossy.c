/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_lossy.c - unreliable messages: one datagram each, without a connection
 *
 * Design notes
 * - A queue has one queue pair for them, made when the first is expected, by which it sends and
 *   receives; peers get its number. So a message is accepted if its port and queue pair are those
 *   of the peer that it names. A sender has to know the queue's uid as well, for the key.
 * - A message has at most the length of one packet on both ports.
 */
#include <errno.h>
#include <string.h>

#include "mlx_glue.h"
#include "mlx_lossy.h"
#include "mlx_peer.h"

#define MAGIC	0x6c786c70u /* "plxl" */
#define QPN_MAX 0xffffffu

int
mlx_lossy_open(struct plx_queue *q, uint32_t *where)
{
	struct mlx_queue *mq = mlx_queue(q);
	int rc;

	if (mq->lossy.qp == NULL) {
		rc = mlx_ud_open(mq, &mq->lossy, mlx_addr_mtu(&mq->addr), MLX_LOSSY_RX,
			mlx_addr_qkey(&mq->addr));
		if (rc != 0)
			return rc;
		mlx_ud_spare(mq, &mq->lossy);
	}
	*where = mq->lossy.qp->qp_num;
	return 0;
}

int
mlx_lossy_to(struct plx_peer *peer, uint32_t where)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);

	if (mq->lossy.qp == NULL || where == 0 || where > QPN_MAX)
		return -EINVAL;
	p->lossy_qpn = where;
	peer->lossy_mtu = RTE_MIN(mlx_addr_mtu(&mq->addr), mlx_addr_mtu(&p->addr)) -
		sizeof(struct mlx_stamp);
	return 0;
}

int
mlx_lossy_tx(const struct plx_tx *tx)
{
	struct mlx_queue *mq = mlx_queue(tx->peer->q);
	struct mlx_peer *p = mlx_peer(tx->peer);
	const struct mlx_stamp stamp = {.magic = MAGIC, .len = tx->hdr_len + tx->len, .op = tx->op,
		.from = mq->addr.uid};
	uint8_t *at = mlx_ud_room(&mq->lossy);
	struct ibv_ah *ah;
	int rc = at != NULL ? mlx_way_get(mq, p, &mq->lossy, &ah) : -EAGAIN;

	if (rc == -EAGAIN) {
		PLX_STAT_INC(mq->stat.lossy_no_room);
		return rc;
	}
	if (rc != 0) { /* lost, as any may be */
		PLX_STAT_INC(mq->stat.lossy_no_way);
		return 0;
	}
	memcpy(at, &stamp, sizeof(stamp));
	memcpy(at + sizeof(stamp), tx->hdr, tx->hdr_len);
	if (tx->len != 0)
		memcpy(at + sizeof(stamp) + tx->hdr_len, tx->data, tx->len);
	mlx_ud_send(mq, &mq->lossy, sizeof(stamp) + stamp.len, ah, p->lossy_qpn,
		mlx_addr_qkey(&p->addr));
	p->link.unheard = true;
	PLX_STAT_INC(mq->stat.lossy_tx);
	return 0;
}

/* The peer that a message names, if it comes from there. */
static struct plx_peer *
sender(const struct mlx_queue *mq, const struct mlx_ud_src *src, uint64_t uid)
{
	struct plx_peer *peer;

	LIST_FOREACH(peer, &mq->q->peers[uid % PLX_DEV_PEER_HASH], link) {
		const struct mlx_peer *p = mlx_peer(peer);

		if (peer->uid == uid && p->lossy_qpn == src->qpn && peer->state != PLX_PEER_DEAD &&
			mlx_addr_sent(&p->addr, src->grh, src->lid))
			break;
	}
	return peer;
}

static void
lossy_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data, uint32_t len)
{
	struct plx_rx rx = {.data = data + sizeof(struct mlx_stamp)};
	struct mlx_stamp stamp;

	if (len < sizeof(stamp)) {
		PLX_STAT_INC(mq->stat.lossy_drop_bad);
		return;
	}
	memcpy(&stamp, data, sizeof(stamp));
	if (stamp.magic != MAGIC || stamp.pad != 0 || stamp.len != len - sizeof(stamp)) {
		PLX_STAT_INC(mq->stat.lossy_drop_bad);
		return;
	}
	rx.src = sender(mq, src, stamp.from);
	if (rx.src == NULL) {
		PLX_STAT_INC(mq->stat.lossy_drop_not_ours);
		return;
	}
	rx.len = stamp.len;
	rx.op = stamp.op;
	plx_link_heard(&mlx_peer(rx.src)->link);
	PLX_STAT_INC(mq->stat.lossy_rx);
	if (mq->q->on_lossy != NULL)
		mq->q->on_lossy(mq->q, &rx);
}

unsigned
mlx_lossy_poll(struct mlx_queue *mq)
{
	return mq->lossy.qp != NULL ? mlx_ud_poll(mq, &mq->lossy, lossy_take) : 0;
}

int
mlx_lossy_arm(struct mlx_queue *mq)
{
	if (mq->lossy.qp == NULL)
		return 0;
	return mq->lossy.failed ? -EBUSY : ibv_req_notify_cq(mq->lossy.cq, 0);
}

static void
forget(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data, uint32_t len)
{
	(void)mq, (void)src, (void)data, (void)len;
}

bool
mlx_lossy_drain(struct mlx_queue *mq)
{
	if (mq->lossy.qp == NULL)
		return false;
	mlx_ud_poll(mq, &mq->lossy, forget);
	mlx_ud_end(mq, &mq->lossy);
	return mq->lossy.sent != mq->lossy.done && !mq->lossy.failed;
}

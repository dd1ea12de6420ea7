/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_tx.c - sending to a queue whose device matches tags
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "mlx_tm.h"
#include "mlx_tx.h"
#include "plx_wire.h"

/* Send it after a header for the device. @param skip bytes of its own header that this replaces */
static int
framed(const struct plx_tx *tx, const struct ibv_tmh *tmh, uint8_t skip)
{
	uint8_t hdr[sizeof(*tmh) + UINT8_MAX];
	struct plx_tx f = *tx;

	PLX_ASSERT(tx->hdr_len >= skip && tx->hdr_len + sizeof(*tmh) <= UINT8_MAX);
	memcpy(hdr, tmh, sizeof(*tmh));
	memcpy(hdr + sizeof(*tmh), (const uint8_t *)tx->hdr + skip, tx->hdr_len - skip);
	f.hdr = hdr;
	f.hdr_len = sizeof(*tmh) + tx->hdr_len - skip;
	return mlx_tx_framed(&f, tx->hdr_len + tx->len);
}

/* Both messages can be sent, or neither. */
static bool
room_for_two(struct mlx_queue *mq, struct mlx_peer *p)
{
	uint32_t buf = mlx_bufs_get(&mq->tx_bufs);

	if (buf == MLX_NONE)
		return false;
	mlx_bufs_put(&mq->tx_bufs, buf);
	return plx_credit_has_two(&p->link.credit) && p->tx_room > 2 && mq->tx_out + 1 < MLX_TX_ALL;
}

/* A token and its message: the next one, as queue pairs keep the order. */
static int
announced(const struct plx_tx *tx, struct ibv_tmh *tmh)
{
	struct mlx_peer *p = mlx_peer(tx->peer);
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	struct plx_tx token = {.peer = tx->peer, .hdr = tmh, .hdr_len = sizeof(*tmh), .op = tx->op};
	int rc;

	if (p->link.state == PLX_LINK_OPEN && !room_for_two(mq, p)) {
		p->link.credit.ran_out |= !plx_credit_has_two(&p->link.credit);
		PLX_STAT_INC(p->peer.q->stat.tx_full);
		return -EAGAIN;
	}
	tmh->app_ctx = htobe32(MLX_TM_TOKEN);
	rc = mlx_tx_framed(&token, 0);
	return rc != 0 ? rc : framed(tx, &mlx_tx_no_tag, 0);
}

static int
tm_tx(const struct plx_tx *tx)
{
	struct mlx_peer *p = mlx_peer(tx->peer);
	uint32_t len = tx->hdr_len + tx->len;
	struct ibv_tmh tmh = {.opcode = IBV_TMH_EAGER, .app_ctx = htobe32(MLX_TM_WHOLE)};
	uint64_t tag;

	if (!mlx_peer_has_tags(p))
		return mlx_tx(tx);
	if (len > p->peer.mtu && p->link.state != PLX_LINK_DEAD)
		return -EMSGSIZE;
	if (!plx_wire_is_tagged(tx->op, len))
		return framed(tx, &mlx_tx_no_tag, 0);
	PLX_ASSERT(tx->hdr_len >= sizeof(tag));
	memcpy(&tag, tx->hdr, sizeof(tag));
	tmh.tag = htobe64(tag);
	return tx->op == PLX_WIRE_EAGER ? framed(tx, &tmh, sizeof(tag)) : announced(tx, &tmh);
}

static int
tm_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct plx_tx tx = {.peer = peer, .hdr = &hdr, .hdr_len = sizeof(hdr), .data = data,
		.len = len, .op = op};

	return mlx_peer_has_tags(mlx_peer(peer)) ? tm_tx(&tx) : mlx_tx_short(peer, op, hdr, data, len);
}

void
mlx_tm_speak(struct mlx_queue *mq, struct mlx_peer *p)
{
	mq->q->tx = tm_tx;
	mq->q->tx_short = tm_tx_short;
	p->peer.mtu -= sizeof(struct ibv_tmh);
}

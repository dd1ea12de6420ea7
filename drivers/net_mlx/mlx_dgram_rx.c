/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_dgram_rx.c - what other queues say by datagrams, and whom it concerns
 */
#include <string.h>

#include "mlx_conn.h"
#include "mlx_peer.h"

void
mlx_dgram_take(struct mlx_queue *mq, const struct mlx_dgram *d)
{
	struct plx_addr addr = {.len = sizeof(d->from)};
	struct plx_peer *peer;

	memcpy(addr.bytes, &d->from, sizeof(d->from));
	if (d->to_uid != mq->addr.uid || plx_peer_get(mq->q, &addr, &peer) != 0) {
		PLX_STAT_INC(mq->stat.dgram_drop_not_ours);
		return;
	}
	plx_peer_put(peer); /* known is enough: eps hold references */
	if (d->kind == MLX_DGRAM_ASK)
		mlx_conn_on_ask(mlx_peer(peer), d);
	else if (d->kind == MLX_DGRAM_ANSWER)
		mlx_conn_on_answer(mlx_peer(peer), d);
	else
		mlx_alive_on_dgram(mq, mlx_peer(peer), d);
}

static void
datagram_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data, uint32_t len)
{
	struct mlx_dgram d;

	(void)src; /* it says who it is from, and names us */
	PLX_STAT_INC(mq->stat.dgram_rx);
	if (mlx_dgram_open(data, len, &d) != 0)
		PLX_STAT_INC(mq->stat.dgram_drop_bad);
	else
		mlx_dgram_take(mq, &d);
}

unsigned
mlx_dgrams_poll(struct mlx_queue *mq)
{
	unsigned n = mlx_ud_poll(mq, &mq->ud, datagram_take);

	mlx_park_work(mq);
	return n;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_dgram_rx.c - datagrams of other queues, and the peers they concern
 */
#include <string.h>

#include "mlx_conn.h"
#include "mlx_peer.h"

void
mlx_dgram_take(struct mlx_queue *mq, const struct mlx_dgram *d)
{
	const struct plx_link_hello hello = {.kind = (enum plx_link_kind)d->kind, .id = d->qpn,
		.your_id = d->your_qpn, .attempt = d->attempt, .credits = d->credits, .more = d};
	struct plx_addr addr = {.len = sizeof(d->from)};
	struct plx_peer *peer;
	struct mlx_peer *p;

	memcpy(addr.bytes, &d->from, sizeof(d->from));
	if (d->to_uid != mq->addr.uid || plx_peer_get(mq->q, &addr, &peer) != 0) {
		PLX_STAT_INC(mq->stat.dgram_drop_not_ours);
		return;
	}
	plx_peer_put(peer); /* it stays in the table: eps have references */
	p = mlx_peer(peer);
	if (d->kind < MLX_DGRAM_CALL)
		plx_link_on_hello(&p->link, &hello, plx_clock_ns());
	else if (p->lossy_qpn == d->qpn) /* a side that has forgotten the agreement does not answer */
		plx_link_on_call(&p->link, (enum plx_link_kind)d->kind);
}

static void
datagram_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data, uint32_t len)
{
	struct mlx_dgram d;

	(void)src; /* the datagram names its sender, and us */
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

	if (plx_link_has_work(&mq->link))
		plx_link_work(&mq->link, plx_clock_ns());
	return n;
}

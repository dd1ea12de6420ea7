/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_peer.c - the peer of a queue pair
 */
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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_dgram.c - datagrams from one queue to another
 */
#include <errno.h>
#include <string.h>

#include "mlx_glue.h"
#include "mlx_peer.h"

int
mlx_dgrams_open(struct mlx_queue *mq)
{
	int rc = mlx_ud_open(mq, &mq->ud, sizeof(struct mlx_dgram), MLX_UD_RX,
		mlx_addr_qkey(&mq->addr));

	if (rc == 0)
		mq->addr.ud_qpn = mq->ud.qp->qp_num;
	return rc;
}

int
mlx_dgrams_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_dgram *d)
{
	void *at = mlx_ud_room(&mq->ud);
	struct ibv_ah *ah;
	int rc = at != NULL ? mlx_way_get(mq, p, &mq->ud, &ah) : -EAGAIN;

	if (rc != 0)
		return rc != -EAGAIN ? rc : 0;
	d->to_uid = p->addr.uid;
	d->from = mq->addr;
	mlx_dgram_seal(d);
	memcpy(at, d, sizeof(*d));
	mlx_ud_send(mq, &mq->ud, sizeof(*d), ah, p->addr.ud_qpn, mlx_addr_qkey(&p->addr));
	return 0;
}

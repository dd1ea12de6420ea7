/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_dgram.c - datagrams by which two queues find each other's queue pairs
 */
#include <errno.h>
#include <string.h>

#include "mlx_glue.h"
#include "mlx_int.h"

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

static void
dgram_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data, uint32_t len)
{
	struct mlx_dgram d;

	(void)src; /* it says who it is from, and names us */
	PLX_STAT_INC(mq->stat.dgram_rx);
	if (mlx_dgram_open(data, len, &d) != 0)
		PLX_STAT_INC(mq->stat.dgram_drop_bad);
	else
		mlx_conn_on_dgram(mq, &d);
}

unsigned
mlx_dgrams_poll(struct mlx_queue *mq)
{
	unsigned n = mlx_ud_poll(mq, &mq->ud, dgram_take);

	mlx_park_work(mq);
	return n;
}

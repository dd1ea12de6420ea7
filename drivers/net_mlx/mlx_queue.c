/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_queue.c - opening and closing a queue
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mlx_conn.h"
#include "mlx_glue.h"
#include "mlx_conf.h"
#include "mlx_group.h"
#include "mlx_mem.h"
#include "mlx_queue.h"
#include "mlx_rx.h"
#include "mlx_tm.h"
#include "mlx_tx.h"

#define AGAIN_MS 20   /* before the second ASK; then twice as long each time */
#define HDR_ROOM 64   /* of a message besides its data */

static uint64_t
ms_ns(uint64_t ms)
{
	return ms * 1000000;
}

/* A time in the unit of queue pairs: 4.096 us << n. */
static uint8_t
timeout_of(uint64_t ms)
{
	uint8_t n = 1;

	while (n < 31 && 4096ull << n < ms * 1000000)
		n++;
	return n;
}

static void
read_conf(struct mlx_queue *mq, const struct plx_conf *conf)
{
	mq->link.connect_ns = ms_ns(plx_conf_u64(conf, MLX_CONF(CONNECT_MS)));
	mq->link.again_ns = ms_ns(AGAIN_MS) / 2;
	mq->link.probe_ns = ms_ns(plx_conf_u64(conf, MLX_CONF(PROBE_MS)));
	mq->link.dead_ns = ms_ns(plx_conf_u64(conf, MLX_CONF(DEAD_MS)));
	mq->timeout = timeout_of(plx_conf_u64(conf, MLX_CONF(ACK_MS)));
	mq->retries = plx_conf_u64(conf, MLX_CONF(RETRIES));
	mq->routed = plx_conf_u64(conf, MLX_CONF(ROUTED));
	mq->by_manager = mq->addr.link == MLX_LINK_IB ||
		plx_conf_u64(conf, MLX_CONF(GROUPS_BY_CM));
	mq->link.n_max = plx_conf_u64(conf, MLX_CONF(CONNECTED));
	mq->want = plx_conf_u64(conf, MLX_CONF(WINDOW));
	mq->rx_budget = plx_conf_u64(conf, MLX_CONF(SLOTS));
	mq->rx_room = RTE_MIN(plx_conf_u64(conf, MLX_CONF(SLOTS_MAX)),
		(uint64_t)mq->port->attr.max_srq_wr);
	mq->rx_room = RTE_MIN(mq->rx_room, (uint32_t)mq->port->attr.max_cqe);
	mq->addr.rx_len = plx_conf_u64(conf, MLX_CONF(MSG_LEN)) + HDR_ROOM;
}

static bool
wants_tags(const struct mlx_queue *mq)
{
	return plx_conf_u64(mq->q->conf, PLX_CONF_TAG_OFFLOAD) &&
		plx_conf_u64(mq->q->conf, MLX_CONF(TAG_MATCHING));
}

/* Tag-matching hardware is optional: warn and continue. */
static void
tags_open(struct mlx_queue *mq, const struct mlx_hw_conf *conf)
{
	int rc = mlx_tm_open(mq, conf);

	if (rc != 0)
		PLX_LOG(WARNING, mlx, "%s does not match tags: %s", mq->port->ctx->device->name,
			strerror(-rc));
	else
		mq->q->rx_burst = mlx_rx_burst_tags;
}

/* Short requests and arrivals bypass the hooks of mlx_hw_ops. */
static void
hooks_set(struct mlx_queue *mq)
{
	if (mq->hw->ops != &mlx_hw_mlx5_ops)
		return;
	mq->q->tx_short = mlx_tx_short_mlx5;
	mq->q->put_short = mlx_put_short_mlx5;
	mq->q->rx_burst = mlx_rx_burst_mlx5;
}

static int
hw_open(struct mlx_queue *mq, bool direct)
{
	const struct mlx_hw_ops *ops = direct ? mq->port->hw : &mlx_hw_verbs_ops;
	struct mlx_hw_conf conf = {.ctx = mq->port->ctx, .pd = mq->port->pd,
		.channel = mq->channel, .n_rx = mq->rx_room, .n_tx = MLX_TX_ALL,
		.stat = &mq->stat.hw};
	int rc = mlx_bufs_open(&mq->rx_bufs, &mq->port->domain, mq->addr.rx_len,
		mq->rx_room + 2 * MLX_BUFS_CHUNK); /* for those that are kept */

	if (rc == 0)
		rc = mlx_bufs_open(&mq->tx_bufs, &mq->port->domain, mq->addr.rx_len, MLX_SEND_BUFS);
	if (rc == 0 && wants_tags(mq))
		tags_open(mq, &conf);
	if (rc == 0 && mq->tm == NULL)
		rc = ops->open(&conf, &mq->hw);
	if (rc == 0)
		rc = mlx_dgrams_open(mq);
	if (rc == 0)
		hooks_set(mq);
	if (rc == 0)
		PLX_LOG(INFO, mlx, "port %s by %s", mq->port->label, mq->hw->ops->name);
	return rc;
}

static void
hw_close(struct mlx_queue *mq)
{
	mlx_mem_close(mq);
	mlx_rma_close(mq);
	mlx_groups_close(mq);
	mlx_ud_close(&mq->lossy);
	mlx_ud_close(&mq->ud);
	mlx_ways_close(mq);
	if (mq->hw != NULL)
		mq->hw->ops->close(mq->hw);
	mlx_tm_close(mq);
	mlx_bufs_close(&mq->tx_bufs);
	mlx_bufs_close(&mq->rx_bufs);
	mlx_sleep_close(mq);
	if (mq->cached)
		plx_reg_cache_close();
	mlx_port_put(mq->port);
	free(mq);
}

int
mlx_queue_open(struct plx_queue *q)
{
	const struct plx_conf *conf = q->conf;
	struct mlx_queue *mq;
	struct mlx_port *port;
	int rc = mlx_port_get(conf, q->port, &port);

	if (rc != 0)
		return rc;
	mq = aligned_alloc(PLX_LINE, (sizeof(*mq) + PLX_LINE - 1) / PLX_LINE * PLX_LINE);
	if (mq == NULL) {
		mlx_port_put(port);
		return -ENOMEM;
	}
	memset(mq, 0, sizeof(*mq));
	mq->q = q;
	mq->port = port;
	mq->pid = getpid();
	mq->epfd = -1;
	mq->link.now_ns = mq->link.peers_ns = plx_clock_ns();
	plx_link_init(&mq->link, &mlx_conn_ops, &mq->stat.link);
	TAILQ_INIT(&mq->ways);
	mq->rx_spare = MLX_RX_SPARE;
	mq->addr = port->addr;
	mq->addr.flags = port->speed << MLX_ADDR_SPEED_AT | q->port << MLX_ADDR_PLACE_AT |
		(mlx_net_is_near(mlx_glue.get_device_name(port->ctx->device)) ? MLX_ADDR_NEAR : 0);
	read_conf(mq, conf);
	rc = getrandom(&mq->addr.uid, sizeof(mq->addr.uid), 0) == sizeof(mq->addr.uid) ? 0 : -EIO;
	if (rc == 0)
		rc = mlx_sleep_open(mq);
	if (rc == 0)
		rc = plx_reg_cache_open(plx_conf_u64(conf, MLX_CONF(CACHE)),
			plx_conf_u64(conf, MLX_CONF(CACHE_LEN)));
	mq->cached = rc == 0;
	if (rc == 0)
		rc = hw_open(mq, plx_conf_u64(conf, MLX_CONF(DIRECT)) == PLX_CONF_AUTO);
	if (rc != 0) {
		hw_close(mq);
		return rc;
	}
	q->priv = mq;
	q->caps = q->dev->caps;
	q->group_mtu = mlx_group_mtu(mq);
	q->zcopy_min = MLX_ZCOPY_MIN;
	q->zcopy_iov = MLX_HW_SGES - 1;
	q->keep_min = mq->tm == NULL ? MLX_KEEP_MIN : 0;
	return 0;
}

void
mlx_queue_close(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);

	/* A child's copies of the device's handles act on the parent's objects: leave them. */
	if (getpid() == mq->pid)
		hw_close(mq);
}

void
mlx_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	const struct mlx_queue *mq = mlx_queue(q);

	addr->len = sizeof(mq->addr);
	memcpy(addr->bytes, &mq->addr, sizeof(mq->addr));
}

const char *
mlx_queue_port(const struct plx_queue *q)
{
	return mlx_queue(q)->port->label;
}

bool
mlx_queue_is_up(const struct plx_queue *q)
{
	return mlx_port_is_up(mlx_queue(q)->port);
}

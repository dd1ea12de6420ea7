/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hooks.c - replacements of hooks: of those that a driver lacks, and of a queue of the parent
 */
#include <errno.h>

#include "dev_int.h"

/* Their parameters are those of the hooks. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Replacements of hooks that a driver leaves out, so that no caller tests for NULL. */
static int
dummy_rma(const struct plx_rma_op *op)
{
	return -EOPNOTSUPP;
}

static enum plx_rx_found
dummy_rx_look(struct plx_queue *q, struct plx_rx *rx)
{
	return PLX_RX_BURST;
}

static int
dummy_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	return -EOPNOTSUPP;
}

static int
dummy_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	return -EOPNOTSUPP;
}

static int
dummy_bulk(const struct plx_rma_op *op, uint32_t n)
{
	(void)op;
	(void)n;
	return 0;
}

static void *
dummy_peer_shared(struct plx_peer *peer)
{
	return NULL;
}

unsigned
plx_dev_no_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	return 0;
}

void
dev_fill_hooks(struct plx_queue *q, const struct plx_dev_ops *ops)
{
	q->tx_short = ops->tx_short;
	q->tx = ops->tx;
	q->rx_burst = ops->rx_burst;
	q->rx_release = ops->rx_release;
	q->rma = ops->rma.rma != NULL ? ops->rma.rma : dummy_rma;
	q->rx_look = ops->rx_look != NULL ? ops->rx_look : dummy_rx_look;
	q->put_short = ops->keys.put_short != NULL ? ops->keys.put_short : dummy_put_short;
	q->peer_shared = ops->shared.peer != NULL ? ops->shared.peer : dummy_peer_shared;
	q->bulk = ops->bulk != NULL ? ops->bulk : dummy_bulk;
	q->flush = ops->flush;
	q->mem_reg = ops->keys.reg != NULL ? ops->keys.reg : dummy_mem_reg;
	q->mem_dereg = ops->keys.dereg;
}

/* Hooks of a child for a queue of its parent: the device sees nothing. */
static int
lost_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	return -ECONNRESET;
}

static int
lost_tx(const struct plx_tx *tx)
{
	return -ECONNRESET;
}

static void
lost_queue(struct plx_queue *q)
{
}

static uint16_t
lost_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	return 0;
}

static void
lost_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
}

static int
lost_rma(const struct plx_rma_op *op)
{
	return -ECONNRESET;
}

static int
lost_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	return -ECONNRESET;
}

static int
lost_arm(struct plx_queue *q)
{
	return -EBUSY;
}

static int
lost_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	return -ECONNRESET;
}

static int
lost_peer_connect(struct plx_peer *peer)
{
	return -ECONNRESET;
}

static void
lost_peer_close(struct plx_peer *peer)
{
}

static int
lost_tag_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen)
{
	return -ENOSPC;
}

static int
lost_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	return 0;
}

static void
lost_give_back(struct plx_queue *q, void *kept)
{
}

static void
lost_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
}

/* By driver: its queries about a queue and its addresses stay, its actions are replaced. */
static struct {
	struct plx_dev dev;
	struct plx_dev_ops ops;
} lost[PLX_DEV_MAX];

static void
lost_fill(struct plx_dev_ops *to, const struct plx_dev_ops *ops)
{
	*to = (struct plx_dev_ops){.name = ops->name, .peer_len = ops->peer_len, .ports.look = ops->ports.look,
		.queue_addr = ops->queue_addr, .ports.name = ops->ports.name,
		.addr_whose = ops->addr_whose, .addr_why = ops->addr_why, .peer_is = ops->peer_is,
		.stat_rows = ops->stat_rows, .stats = ops->stats,
		.queue_close = lost_queue, .sleep.disarm = lost_queue,
		.sleep.arm = lost_arm, .peer_open = lost_peer_open, .peer_connect = lost_peer_connect,
		.peer_close = lost_peer_close,
		.tag.post = lost_tag_post, .tag.cancel = lost_tag_cancel, .datagram.tx = lost_tx,
		.keep.give_back = lost_give_back};
}

static struct plx_dev *
lost_dev(const struct plx_dev_ops *ops)
{
	unsigned i = 0;

	while (i < PLX_DEV_MAX - 1 && lost[i].ops.name != NULL && lost[i].ops.name != ops->name)
		i++;
	lost_fill(&lost[i].ops, ops);
	lost[i].dev.ops = &lost[i].ops;
	return &lost[i].dev;
}

void
plx_queue_lose(struct plx_queue *q)
{
	if (q->dev->ops->queue_lose != NULL)
		q->dev->ops->queue_lose(q);
	q->dev = lost_dev(q->dev->ops);
	q->tx_short = lost_tx_short;
	q->tx = lost_tx;
	q->rx_burst = lost_rx_burst;
	q->rx_release = lost_rx_release;
	q->rma = lost_rma;
	q->rx_look = dummy_rx_look;
	q->put_short = lost_put_short;
	q->peer_shared = dummy_peer_shared;
	q->bulk = dummy_bulk;
	q->flush = lost_queue;
	q->mem_reg = dummy_mem_reg;
	q->mem_dereg = lost_mem_dereg;
	q->group_mtu = 0;
	q->zcopy_min = q->keep_min = 0;
}

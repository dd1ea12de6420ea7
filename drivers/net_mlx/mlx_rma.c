/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rma.c - reading and writing the memory of peers
 *
 * Design notes
 * - Short data goes through our buffers, longer data directly from and to the local memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_mem.h"
#include "mlx_tx.h"

/** A read or write of a peer's memory in progress. Owner: the queue's. */
struct mlx_io {
	SLIST_ENTRY(mlx_io) link; /* of the queue's free ones */
	struct mlx_queue *mq;
	void (*done)(void *arg, int err);
	void *arg;
	struct mlx_memref memref; /* of the local memory */
	void *to;	   /* a READ into buf: its destination */
	uint32_t len;
	uint32_t buf;	   /* or MLX_NONE */
	bool by_cpu;	   /* counts in the queue's n_by_cpu */
};

void
mlx_rma_close(struct mlx_queue *mq)
{
	struct mlx_io *io;

	while ((io = SLIST_FIRST(&mq->ios)) != NULL) {
		SLIST_REMOVE_HEAD(&mq->ios, link);
		free(io);
	}
}

static struct mlx_io *
io_get(struct mlx_queue *mq)
{
	struct mlx_io *io = SLIST_FIRST(&mq->ios);

	if (io == NULL)
		return malloc(sizeof(*io));
	SLIST_REMOVE_HEAD(&mq->ios, link);
	return io;
}

/* Release its resources. */
static void
io_put(struct mlx_queue *mq, struct mlx_io *io)
{
	if (io->buf != MLX_NONE)
		mlx_bufs_put(&mq->tx_bufs, io->buf);
	mlx_memref_put(&io->memref);
	SLIST_INSERT_HEAD(&mq->ios, io, link);
}

static void
io_done(void *arg, int err)
{
	struct mlx_io *io = arg;
	struct mlx_queue *mq = io->mq;
	void (*done)(void *, int) = io->done;
	void *done_arg = io->arg;

	if (err == 0 && io->to != NULL)
		memcpy(io->to, mlx_bufs_at(&mq->tx_bufs, io->buf), io->len);
	if (io->by_cpu)
		mq->q->by_cpu = --mq->n_by_cpu != 0;
	io_put(mq, io);
	/* The initiator may be destroyed when a queue closes. */
	if (!mq->q->closing)
		done(done_arg, err);
}

/* The place of the local bytes for the device. @return 0; -EAGAIN; -EOPNOTSUPP */
static int
io_local(struct mlx_queue *mq, const struct plx_rma_op *op, struct mlx_io *io, struct mlx_hw_wr *wr)
{
	*io = (struct mlx_io){.mq = mq, .done = op->done, .arg = op->arg, .len = op->len,
		.buf = MLX_NONE};
	if (op->len == 0)
		return 0;
	wr->addr = (uintptr_t)op->local;
	if (op->put && op->len <= MLX_INLINE_MAX) {
		wr->flags |= MLX_WR_INLINE;
		return 0;
	}
	if (op->len <= mq->tx_bufs.len) { /* atomics as well */
		io->buf = mlx_bufs_get(&mq->tx_bufs);
		if (io->buf == MLX_NONE)
			return -EAGAIN;
		wr->addr = (uintptr_t)mlx_bufs_at(&mq->tx_bufs, io->buf);
		wr->lkey = mlx_bufs_lkey(&mq->tx_bufs, io->buf);
		if (op->put)
			memcpy(mlx_bufs_at(&mq->tx_bufs, io->buf), op->local, op->len);
		else
			io->to = op->local;
		return 0;
	}
	if (mlx_memref_get(mq, op->local, op->len, op->put ? 0 : PLX_DEV_MEM_WRITE,
		op->put ? 0 : IBV_ACCESS_LOCAL_WRITE, &io->memref) != 0)
		return -EOPNOTSUPP; /* more than may be locked, or another kind of memory */
	wr->lkey = io->memref.mr->lkey;
	return 0;
}

static enum mlx_wr_op
op_of(const struct plx_rma_op *op)
{
	switch (op->atomic) {
	case PLX_DEV_FADD:
		return MLX_WR_FADD;
	case PLX_DEV_CSWAP:
		return MLX_WR_CSWAP;
	default:
		return op->put ? MLX_WR_WRITE : MLX_WR_READ;
	}
}

static void
rma_post(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr, struct mlx_io *io)
{
	p->link.used_at = mq->link.looks;
	PLX_STAT_INC(mq->q->stat.rma_ops);
	PLX_STAT_ADD(mq->q->stat.rma_bytes, wr->len);
	mlx_tx_post(mq, p, wr, (struct mlx_txrec){.done = io_done, .arg = io, .buf = MLX_NONE});
}

int
mlx_rma(const struct plx_rma_op *op)
{
	struct mlx_queue *mq = mlx_queue(op->peer->q);
	struct mlx_peer *p = mlx_peer(op->peer);
	struct mlx_hw_wr wr = {.op = op_of(op), .flags = MLX_WR_SIGNAL, .len = op->len,
		.remote = op->remote, .rkey = (uint32_t)op->key,
		.operand = {op->operand[0], op->operand[1]}};
	struct mlx_io *io;
	int rc;

	if (p->link.state == PLX_LINK_DEAD)
		return op->peer->err;
	if ((op->key == 0 && op->len != 0) || op->len > PLX_DEV_RMA_MAX)
		return -EOPNOTSUPP;
	if (!mlx_tx_has_room(mq, p)) {
		plx_link_want(&p->link, false);
		return -EAGAIN;
	}
	if (op->len == 0 && !op->put)
		return 0;
	io = io_get(mq);
	if (io == NULL)
		return -EAGAIN;
	rc = io_local(mq, op, io, &wr);
	if (rc != 0) {
		io_put(mq, io);
		return rc;
	}
	io->by_cpu = mq->port->soft && op->len >= MLX_LONG;
	if (io->by_cpu) {
		mq->n_by_cpu++;
		mq->q->by_cpu = true;
	}
	rma_post(mq, p, &wr, io);
	return -EINPROGRESS;
}

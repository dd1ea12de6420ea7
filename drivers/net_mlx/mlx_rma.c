/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rma.c - registered memory, and reading and writing that of peers
 *
 * Design notes
 * What is short goes through a buffer of ours; what is longer lies in a region that the
 * application has made, or the local memory is registered for this one operation. No registration
 * outlives what it was made for: the application may unmap and map again what it likes, and no
 * library that is only loaded can learn of that in time. Of regions it has promised to tell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_glue.h"
#include "mlx_int.h"

struct mlx_mem {
	LIST_ENTRY(mlx_mem) link;  /* of the queue's */
	struct ibv_mr *mr;	   /* NULL: */
	struct mlx_region *region; /* it lies in this one */
};

int
mlx_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_mem *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return -ENOMEM;
	m->mr = NULL;
	m->region = mlx_region_hold(mq->port, addr, len, rights);
	errno = 0;
	if (m->region == NULL)
		m->mr = mlx_glue.reg_mr(mq->port->pd, addr, len, mlx_access(rights));
	if (m->region == NULL && m->mr == NULL) {
		rc = errno != 0 ? -errno : -EIO;
		free(m);
		PLX_STAT_INC(mq->stat.mem_refused);
		return rc;
	}
	LIST_INSERT_HEAD(&mq->mems, m, link);
	if (m->region != NULL)
		PLX_STAT_INC(mq->stat.mem_reused);
	else
		PLX_STAT_INC(mq->stat.mem_regs);
	out->key = MLX_KEY_SET | (m->region != NULL ? mlx_region_mr(m->region) : m->mr)->rkey;
	out->drv = m;
	return 0;
}

static void
mem_free(struct mlx_mem *m)
{
	LIST_REMOVE(m, link);
	if (m->mr != NULL)
		mlx_glue.dereg_mr(m->mr);
	mlx_region_drop(m->region);
	free(m);
}

void
mlx_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem)
{
	(void)q;
	mem_free(mem->drv);
}

void
mlx_mem_close(struct mlx_queue *mq)
{
	struct mlx_io *io;

	while (!LIST_EMPTY(&mq->mems))
		mem_free(LIST_FIRST(&mq->mems));
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

/* What it took is free again. */
static void
io_put(struct mlx_queue *mq, struct mlx_io *io)
{
	if (io->buf != MLX_NONE)
		mlx_bufs_put(&mq->tx_bufs, io->buf);
	if (io->mr != NULL)
		mlx_glue.dereg_mr(io->mr);
	mlx_region_drop(io->region);
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
	io_put(mq, io);
	/* Who asked may be gone when a queue closes. */
	if (!mq->q->closing)
		done(done_arg, err);
}

/* Where the device finds the local bytes. @return 0; -EAGAIN; -EOPNOTSUPP */
static int
io_local(struct mlx_queue *mq, const struct plx_rma_op *op, struct mlx_io *io, struct mlx_hw_wr *wr)
{
	*io = (struct mlx_io){.mq = mq, .done = op->done, .arg = op->arg, .len = op->len,
		.buf = MLX_NONE};
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
	io->region = mlx_region_hold(mq->port, op->local, op->len,
		op->put ? 0 : PLX_DEV_MEM_WRITE);
	if (io->region != NULL) {
		wr->lkey = mlx_region_mr(io->region)->lkey;
		PLX_STAT_INC(mq->stat.mem_reused);
		return 0;
	}
	io->mr = mlx_glue.reg_mr(mq->port->pd, op->local, op->len,
		op->put ? 0 : IBV_ACCESS_LOCAL_WRITE);
	if (io->mr == NULL) {
		PLX_STAT_INC(mq->stat.mem_refused);
		return -EOPNOTSUPP; /* more than may be locked, or memory of another kind */
	}
	PLX_STAT_INC(mq->stat.mem_regs);
	wr->lkey = io->mr->lkey;
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

	if (p->conn == MLX_CONN_DEAD)
		return op->peer->err;
	if (op->key == 0 || op->len > MLX_RMA_MAX)
		return -EOPNOTSUPP;
	if (p->conn != MLX_CONN_OPEN || p->tx_room <= 1 || mq->tx_out >= MLX_TX_ALL)
		return -EAGAIN;
	if (op->len == 0)
		return 0;
	io = io_get(mq);
	if (io == NULL)
		return -EAGAIN;
	rc = io_local(mq, op, io, &wr);
	if (rc != 0) {
		io_put(mq, io);
		return rc;
	}
	mlx_tx_post(mq, p, &wr, (struct mlx_txrec){.done = io_done, .arg = io, .buf = MLX_NONE});
	PLX_STAT_INC(mq->q->stat.rma_ops);
	PLX_STAT_ADD(mq->q->stat.rma_bytes, op->len);
	return -EINPROGRESS;
}

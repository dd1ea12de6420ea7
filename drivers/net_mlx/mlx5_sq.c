/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_sq.c - send queues: entries, the doorbell record, the doorbell
 *
 * Design notes
 * The device may begin with what the doorbell record shows before the doorbell rings, and may
 * read an entry again until it has completed it. So an entry is whole before the record moves,
 * and its blocks are free only when a completion has passed them.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_io.h>

#include "mlx5_int.h"

static const uint8_t opcodes[] = {
	[MLX_WR_SEND] = MLX5_OPCODE_SEND_IMM,
	[MLX_WR_WRITE] = MLX5_OPCODE_RDMA_WRITE,
	[MLX_WR_READ] = MLX5_OPCODE_RDMA_READ,
	[MLX_WR_FADD] = MLX5_OPCODE_ATOMIC_FA,
	[MLX_WR_CSWAP] = MLX5_OPCODE_ATOMIC_CS,
};

static inline unsigned
wr_ds(const struct mlx_hw_wr *wr)
{
	unsigned ds = 1 + (wr->op != MLX_WR_SEND) + (wr->op >= MLX_WR_FADD);

	if (wr->len == 0)
		return ds;
	return ds + (wr->flags & MLX_WR_INLINE ? mlx5_inline_ds(wr->len) : 1);
}

static inline unsigned
ds_blocks(unsigned ds)
{
	return (ds * sizeof(struct mlx5_seg) + MLX5_BLOCK - 1) / MLX5_BLOCK;
}

static inline uint8_t
wr_mode(uint8_t flags)
{
	return (flags & MLX_WR_SIGNAL ? MLX5_WQE_CTRL_CQ_UPDATE : 0) |
		(flags & MLX_WR_FENCE ? MLX5_WQE_CTRL_FENCE : 0);
}

/* What names the peer's memory stands in the first block and never wraps. */
static inline struct mlx5_seg *
put_remote(struct mlx5_seg *seg, const struct mlx_hw_wr *wr)
{
	if (wr->op == MLX_WR_SEND)
		return seg;
	mlx5_put_raddr(seg++, wr->remote, wr->rkey);
	if (wr->op == MLX_WR_FADD)
		mlx5_put_atomic(seg++, wr->operand[0], 0);
	else if (wr->op == MLX_WR_CSWAP)
		mlx5_put_atomic(seg++, wr->operand[1], wr->operand[0]);
	return seg;
}

static inline void
post_one(struct mlx5_qp *q, const struct mlx_hw_wr *wr)
{
	unsigned ds = wr_ds(wr), blocks = ds_blocks(ds);
	uint32_t at = q->pi & q->mask;
	struct mlx5_seg *ctrl = (struct mlx5_seg *)(q->sq + at * MLX5_BLOCK);
	struct mlx5_seg *seg = put_remote(ctrl + 1, wr);

	PLX_ASSERT((uint16_t)(q->pi - q->ci) + blocks <= q->mask + 1);
	PLX_ASSERT(!(wr->flags & MLX_WR_INLINE) || wr->len <= q->base.max_inline);
	if (wr->len != 0) {
		if (wr->flags & MLX_WR_INLINE)
			mlx5_put_inline(seg, q->sq, q->sq + (q->mask + 1) * MLX5_BLOCK,
				(const void *)(uintptr_t)wr->addr, wr->len);
		else
			mlx5_put_data(seg, wr->len, wr->lkey, wr->addr);
	}
	mlx5_put_ctrl(ctrl, q->pi, opcodes[wr->op], q->base.qpn, ds, wr_mode(wr->flags),
		wr->op == MLX_WR_SEND ? wr->imm : 0);
	q->sent[at] = (struct mlx5_sent){.seq = q->base.next++, .blocks = blocks};
	for (unsigned b = 1; b < blocks; b++)
		q->sent[(at + b) & q->mask].blocks = 0;
	q->last = at;
	q->pi += blocks;
	q->n_staged++;
	if (wr->flags & MLX_WR_SIGNAL)
		q->signal_end = q->pi;
}

void
mlx5_post(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		post_one(mlx5_qp(qp), &wr[i]);
}

/* The newest entry itself goes to the register, which spares the device reading it. */
static inline void
ring_blueflame(const struct mlx5_qp *q, uint8_t *reg, unsigned blocks)
{
	for (unsigned b = 0; b < blocks; b++) {
		const uint64_t *from =
			(const uint64_t *)(q->sq + ((q->last + b) & q->mask) * MLX5_BLOCK);

		for (unsigned i = 0; i < MLX5_BLOCK / sizeof(*from); i++)
			rte_write64_relaxed(from[i], reg + b * MLX5_BLOCK + i * sizeof(*from));
	}
}

/* Show the device all up to pi. */
static inline void
ring(struct mlx5_qp *q, bool blueflame)
{
	struct mlx5_bf *bf = q->bf;
	uint8_t *reg = bf->reg + bf->off;
	unsigned blocks = q->sent[q->last].blocks;

	rte_io_wmb(); /* the entries before the record */
	/* the device reads this; the barriers on both sides order it */
	atomic_store_explicit(q->dbrec, rte_cpu_to_be_32(q->pi), memory_order_relaxed);
	rte_wmb(); /* the record before the write-combined register */
	if (blueflame && blocks * MLX5_BLOCK <= bf->size)
		ring_blueflame(q, reg, blocks);
	else
		rte_write64_relaxed(*(const uint64_t *)(q->sq + q->last * MLX5_BLOCK), reg);
	rte_wmb(); /* now, and not merged with what another queue pair writes there */
	bf->off ^= bf->size;
	q->rung = q->pi;
	q->n_staged = 0;
}

int
mlx5_ring(struct mlx_hw_qp *qp)
{
	struct mlx5_qp *q = mlx5_qp(qp);

	if (likely(q->n_staged != 0))
		ring(q, q->n_staged == 1);
	return 0;
}

/*
 * A doorbell that got lost is never missed by the device, so whoever waits for a completion and
 * sees nothing move from one look to the next rings once more: the device takes
 * that for the doorbell it was, and one too many is harmless.
 */
void
mlx5_qp_check(struct mlx5_qp *q)
{
	bool waits = (uint16_t)(q->signal_end - q->ci - 1) < (uint16_t)(q->rung - q->ci);
	bool moved = q->ci != q->ci_checked;

	q->ci_checked = q->ci;
	if (!waits || moved || !q->stuck) {
		q->stuck = waits && !moved;
		return;
	}
	q->stuck = false;
	if (q->n_staged != 0)
		return; /* it rings anyway */
	PLX_STAT_INC(q->base.hw->conf.stat->rung_again);
	ring(q, false);
}

void
mlx5_check(struct mlx_hw *hw)
{
	struct mlx5_qp *q;

	for (unsigned i = 0; i < MLX5_QP_HASH; i++)
		LIST_FOREACH(q, &mlx5_hw(hw)->qps[i], link)
			mlx5_qp_check(q);
}

/*
 * Only the register of our own thread domain may be written in more than 8 bytes at once: others
 * may be another thread's too.
 */
static void
qp_bf(struct mlx5_hw *hw, struct mlx5_qp *q, const struct mlx5dv_qp *obj)
{
	if (hw->own_uar && hw->bf.reg == NULL)
		hw->bf = (struct mlx5_bf){.reg = obj->bf.reg, .size = obj->bf.size};
	q->bf_plain.reg = obj->bf.reg;
	q->bf = obj->bf.reg == hw->bf.reg ? &hw->bf : &q->bf_plain;
}

int
mlx5_qp_init(struct mlx5_hw *hw, struct mlx5_qp *q, const struct mlx5dv_qp *obj)
{
	unsigned blocks = ds_blocks(RTE_MAX(4u, 2 + mlx5_inline_ds(q->base.max_inline)));

	if (obj->sq.wqe_cnt > MLX5_SQ_MAX || !rte_is_power_of_2(obj->sq.wqe_cnt) ||
		blocks * 4 > MLX5_DS_MAX ||
		obj->sq.wqe_cnt < q->base.max_wr * blocks)
		return -EINVAL;
	q->sent = calloc(obj->sq.wqe_cnt, sizeof(*q->sent));
	if (q->sent == NULL)
		return -ENOMEM;
	q->base.hw = &hw->base;
	q->sq = obj->sq.buf;
	qp_bf(hw, q, obj);
	q->dbrec = (_Atomic rte_be32_t *)&obj->dbrec[MLX5_SND_DBR];
	q->mask = obj->sq.wqe_cnt - 1;
	LIST_INSERT_HEAD(&hw->qps[q->base.qpn % MLX5_QP_HASH], q, link);
	return 0;
}

void
mlx5_qp_fini(struct mlx5_qp *q)
{
	struct mlx5_hw *hw = mlx5_hw(q->base.hw);

	LIST_REMOVE(q, link);
	if (hw->last_qp == q)
		hw->last_qp = NULL;
	mlx5_cq_forget(&hw->tx, q->base.qpn);
	mlx5_cq_forget(&hw->rx, q->base.qpn);
	free(q->sent);
}

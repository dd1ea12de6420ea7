/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_sq.h - one request, written into a send queue by inline code
 *
 * Design notes
 * - With a constant kind of request and constant flags the compiler removes most of this.
 */
#ifndef MLX5_SQ_H
#define MLX5_SQ_H

#include <rte_common.h>

#include "mlx5_int.h"

static const uint8_t mlx5_opcodes[] = {
	[MLX_WR_SEND] = MLX5_OPCODE_SEND_IMM,
	[MLX_WR_WRITE] = MLX5_OPCODE_RDMA_WRITE,
	[MLX_WR_READ] = MLX5_OPCODE_RDMA_READ,
	[MLX_WR_FADD] = MLX5_OPCODE_ATOMIC_FA,
	[MLX_WR_CSWAP] = MLX5_OPCODE_ATOMIC_CS,
};

static inline unsigned
mlx5_wr_ds(const struct mlx_hw_wr *wr)
{
	unsigned ds = 1 + (wr->op != MLX_WR_SEND) + (wr->op >= MLX_WR_FADD);

	if (wr->len == 0)
		return ds;
	return ds + (wr->flags & MLX_WR_INLINE ? mlx5_inline_ds(wr->len) : 1);
}

static inline unsigned
mlx5_ds_blocks(unsigned ds)
{
	return (ds * sizeof(struct mlx5_seg) + MLX5_BLOCK - 1) / MLX5_BLOCK;
}

static inline uint8_t
mlx5_wr_mode(uint8_t flags)
{
	return (flags & MLX_WR_SIGNAL ? MLX5_WQE_CTRL_CQ_UPDATE : 0) |
		(flags & MLX_WR_FENCE ? MLX5_WQE_CTRL_FENCE : 0);
}

/* The address of the peer's memory is in the first block and never wraps. */
static inline struct mlx5_seg *
mlx5_put_remote(struct mlx5_seg *seg, const struct mlx_hw_wr *wr)
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

/* An entry of so many blocks is written at `at`. */
static __rte_always_inline void
mlx5_staged(struct mlx5_qp *q, uint32_t at, unsigned blocks, uint8_t flags)
{
	q->sent[at] = (struct mlx5_sent){.seq = q->base.next++, .blocks = blocks};
	for (unsigned b = 1; b < blocks; b++)
		q->sent[(at + b) & q->mask].blocks = 0;
	q->last = at;
	q->pi += blocks;
	q->n_staged++;
	if (flags & MLX_WR_SIGNAL)
		q->signal_end = q->pi;
}

/** As post() of one. */
static __rte_always_inline void
mlx5_post_one(struct mlx5_qp *q, const struct mlx_hw_wr *wr)
{
	unsigned ds = mlx5_wr_ds(wr), blocks = mlx5_ds_blocks(ds);
	uint32_t at = q->pi & q->mask;
	struct mlx5_seg *ctrl = (struct mlx5_seg *)(q->sq + at * MLX5_BLOCK);
	struct mlx5_seg *seg = mlx5_put_remote(ctrl + 1, wr);

	PLX_ASSERT((uint16_t)(q->pi - q->ci) + blocks <= q->mask + 1);
	PLX_ASSERT(!(wr->flags & MLX_WR_INLINE) || wr->len <= q->base.max_inline);
	if (wr->len != 0) {
		if (wr->flags & MLX_WR_INLINE)
			mlx5_put_inline(seg, q->sq, q->sq + (q->mask + 1) * MLX5_BLOCK,
				(const void *)(uintptr_t)wr->addr, wr->len);
		else
			mlx5_put_data(seg, wr->len, wr->lkey, wr->addr);
	}
	mlx5_put_ctrl(ctrl, q->pi, mlx5_opcodes[wr->op], q->base.qpn, ds, mlx5_wr_mode(wr->flags),
		wr->op == MLX_WR_SEND ? wr->imm : 0);
	mlx5_staged(q, at, blocks, wr->flags);
}

/** The same, and ring(). */
static __rte_always_inline void
mlx5_post_now(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr)
{
	mlx5_post_one(mlx5_qp(qp), wr);
	(void)mlx5_ring(qp); /* which can't fail */
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_sq.c - send queues: entries, the doorbell record, the doorbell
 *
 * Design notes
 * - The device may begin with entries below the doorbell record before the doorbell rings, and
 *   may read an entry again until it has completed it. So an entry is complete before the record
 *   moves, and its blocks are free only when a completion has passed them.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_io.h>

#include "mlx5_sq.h"

void
mlx5_post(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		mlx5_post_one(mlx5_qp(qp), &wr[i]);
}

void
mlx5_post_gather(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, const struct ibv_sge *sge)
{
	struct mlx5_qp *q = mlx5_qp(qp);
	uint32_t at = q->pi & q->mask;
	struct mlx5_seg *seg = (struct mlx5_seg *)(q->sq + at * MLX5_BLOCK);

	PLX_ASSERT((uint16_t)(q->pi - q->ci) < q->mask + 1);
	for (unsigned i = 0; i < MLX_HW_SGES; i++)
		mlx5_put_data(&seg[1 + i], sge[i].length, sge[i].lkey, sge[i].addr);
	mlx5_put_ctrl(seg, q->pi, MLX5_OPCODE_SEND_IMM, q->base.qpn, 1 + MLX_HW_SGES, mlx5_wr_mode(wr->flags),
		wr->imm);
	mlx5_staged(q, at, 1, wr->flags);
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

/* Show the device all entries up to pi. */
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
 * The device never misses a doorbell that it got, so a queue pair that waits for a
 * completion without progress between two checks gets it again: if the first was lost the
 * device takes this one, otherwise it is harmless.
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
		return; /* it gets a doorbell anyway */
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
 * Only the register of our own thread domain may be written in more than 8 bytes at once:
 * others may belong to another thread, too.
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
	unsigned blocks = mlx5_ds_blocks(RTE_MAX(4u, 2 + mlx5_inline_ds(q->base.max_inline)));

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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_cq.c - completions: their queue pair, their contents, inline bytes
 *
 * Design notes
 * - A completion is valid when it has an opcode and its owner bit is that of the present lap. It
 *   names a queue pair and an entry; both are looked up in what we posted, and a completion
 *   without a match is counted and skipped. A message of up to 32 bytes may be in the completion
 *   itself, or up to 64 in the half before it where completions are 128 bytes; it is copied to
 *   the entry's buffer, so that no caller has to know.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_io.h>

#include "mlx5_int.h"

#define CQ_N_MAX  (1u << 24)
#define CQ_SET_CI 0 /* words of its doorbell record */
#define CQ_ARM	  1
#define CI_MASK   0xffffffu
#define QPN_MASK  0xffffffu

static inline struct mlx5_cqe64 *
cqe_at(const struct mlx5_cq *cq, uint32_t i)
{
	return (struct mlx5_cqe64 *)(cq->buf + ((size_t)(i & (cq->n - 1)) << cq->shift));
}

static inline bool
cqe_is_ours(const struct mlx5_cq *cq, const struct mlx5_cqe64 *cqe, uint32_t i)
{
	/* the device writes this last; the barrier after it orders the rest */
	uint8_t own = atomic_load_explicit((const _Atomic uint8_t *)&cqe->op_own,
		memory_order_relaxed);

	return own >> 4 != MLX5_CQE_INVALID && (own & MLX5_CQE_OWNER_MASK) == !!(i & cq->n);
}

static inline const struct mlx5_cqe64 *
cq_next(struct mlx5_cq *cq)
{
	const struct mlx5_cqe64 *cqe = cqe_at(cq, cq->ci);

	if (!cqe_is_ours(cq, cqe, cq->ci))
		return NULL;
	rte_io_rmb();
	cq->ci++;
	return cqe;
}

/* The device may overwrite completions before ci. */
static inline void
cq_done(struct mlx5_cq *cq)
{
	/* release: their contents have been read */
	atomic_store_explicit(&cq->dbrec[CQ_SET_CI], rte_cpu_to_be_32(cq->ci & CI_MASK),
		memory_order_release);
}

static inline uint32_t
cqe_qpn(const struct mlx5_cqe64 *cqe)
{
	return rte_be_to_cpu_32(cqe->sop_drop_qpn) & QPN_MASK;
}

static inline struct mlx5_qp *
qp_find(struct mlx5_hw *hw, uint32_t qpn)
{
	struct mlx5_qp *q = hw->last_qp;

	if (likely(q != NULL && q->base.qpn == qpn))
		return q;
	LIST_FOREACH(q, &hw->qps[qpn % MLX5_QP_HASH], link) {
		if (q->base.qpn == qpn) {
			hw->last_qp = q;
			return q;
		}
	}
	return NULL;
}

static const uint8_t statuses[256] = {
	[MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR] = MLX_COMP_LOCAL,
	[MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR] = MLX_COMP_LOCAL,
	[MLX5_CQE_SYNDROME_LOCAL_PROT_ERR] = MLX_COMP_LOCAL,
	[MLX5_CQE_SYNDROME_WR_FLUSH_ERR] = MLX_COMP_FLUSHED,
	[MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR] = MLX_COMP_LOCAL,
	[MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR] = MLX_COMP_ACCESS,
	[MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR] = MLX_COMP_ACCESS,
	[MLX5_CQE_SYNDROME_REMOTE_OP_ERR] = MLX_COMP_ACCESS,
	[MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] = MLX_COMP_RETRY,
	[MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR] = MLX_COMP_RNR,
};

static __rte_noinline __rte_cold void
comp_error(struct mlx_hw_comp *comp, const struct mlx5_cqe64 *cqe)
{
	const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe *)cqe;

	comp->status = statuses[err->syndrome];
	if (comp->status == MLX_COMP_OK)
		comp->status = MLX_COMP_OTHER;
	comp->vendor = err->vendor_err_synd;
}

/* Inline bytes of the completion, or NULL: they are in the buffer. */
static inline const void *
cqe_inline(const struct mlx5_cqe64 *cqe, uint32_t *max)
{
	if (cqe->op_own & MLX5_INLINE_SCATTER_32) {
		*max = 32;
		return cqe;
	}
	if (cqe->op_own & MLX5_INLINE_SCATTER_64) {
		*max = 64;
		return cqe - 1;
	}
	return NULL;
}

/* Copy the result of a READ or an atomic to its entry's buffer; both are in one block. */
static void
tx_scatter(const struct mlx5_qp *q, uint32_t at, const struct mlx5_cqe64 *cqe)
{
	const struct mlx5_seg *seg = (const struct mlx5_seg *)(q->sq + at * MLX5_BLOCK);
	uint8_t opcode = rte_be_to_cpu_32(cqe->sop_drop_qpn) >> 24;
	uint32_t room, max = 0, len = rte_be_to_cpu_32(cqe->byte_cnt);
	const void *from = cqe_inline(cqe, &max);

	if (opcode == MLX5_OPCODE_RDMA_READ)
		seg += 2;
	else if (opcode == MLX5_OPCODE_ATOMIC_FA || opcode == MLX5_OPCODE_ATOMIC_CS)
		seg += 3;
	else
		return;
	if (opcode != MLX5_OPCODE_RDMA_READ)
		len = sizeof(uint64_t);
	room = rte_be_to_cpu_64(seg->w[0]) >> 32;
	room = RTE_MIN(room, max);
	len = RTE_MIN(len, room);
	memcpy((void *)(uintptr_t)rte_be_to_cpu_64(seg->w[1]), from, len);
}

/* @return completions written: 1, or 0 without a matching entry */
static inline uint16_t
tx_one(struct mlx5_hw *hw, const struct mlx5_cqe64 *cqe, struct mlx_hw_comp *comp)
{
	uint8_t opcode = cqe->op_own >> 4;
	uint16_t wqe = rte_be_to_cpu_16(cqe->wqe_counter);
	struct mlx5_qp *q = qp_find(hw, cqe_qpn(cqe));
	uint32_t at;

	if (unlikely(q == NULL)) {
		PLX_STAT_INC(hw->base.conf.stat->comp_stale);
		return 0;
	}
	at = wqe & q->mask;
	if (unlikely((uint16_t)(wqe - q->ci) >= (uint16_t)(q->rung - q->ci) ||
		    q->sent[at].blocks == 0 ||
		    (opcode != MLX5_CQE_REQ && opcode != MLX5_CQE_REQ_ERR))) {
		PLX_STAT_INC(hw->base.conf.stat->comp_bad);
		return 0;
	}
	*comp = (struct mlx_hw_comp){.qpn = q->base.qpn, .seq = q->sent[at].seq};
	if (unlikely(opcode == MLX5_CQE_REQ_ERR))
		comp_error(comp, cqe);
	else if (unlikely(cqe->op_own & (MLX5_INLINE_SCATTER_32 | MLX5_INLINE_SCATTER_64)))
		tx_scatter(q, at, cqe);
	q->ci = wqe + q->sent[at].blocks;
	return 1;
}

uint16_t
mlx5_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct mlx5_cq *cq = &mlx5_hw(hw)->tx;
	const struct mlx5_cqe64 *cqe;
	uint32_t ci = cq->ci;
	uint16_t got = 0;

	while (got < n && (cqe = cq_next(cq)) != NULL)
		got += tx_one(mlx5_hw(hw), cqe, &comp[got]);
	if (cq->ci != ci)
		cq_done(cq);
	return got;
}

static inline bool
is_arrival(uint8_t opcode)
{
	return (opcode >= MLX5_CQE_RESP_WR_IMM && opcode <= MLX5_CQE_RESP_SEND_INV) ||
		opcode == MLX5_CQE_RESP_ERR;
}

static inline uint16_t
rx_one(struct mlx5_hw *hw, const struct mlx5_cqe64 *cqe, struct mlx_hw_comp *comp)
{
	uint16_t wqe = rte_be_to_cpu_16(cqe->wqe_counter);
	uint8_t opcode = cqe->op_own >> 4;
	struct mlx5_slot slot;
	const void *from;
	uint32_t max = 0;

	if (unlikely(!is_arrival(opcode) || !mlx5_srq_take(&hw->srq, wqe, &slot))) {
		PLX_STAT_INC(hw->base.conf.stat->comp_bad);
		return 0;
	}
	*comp = (struct mlx_hw_comp){.qpn = cqe_qpn(cqe), .slot = slot.slot};
	if (unlikely(opcode != MLX5_CQE_RESP_SEND_IMM)) {
		comp->status = MLX_COMP_OTHER; /* a peer that violates the protocol */
		if (opcode == MLX5_CQE_RESP_ERR)
			comp_error(comp, cqe);
		return 1;
	}
	comp->imm = rte_be_to_cpu_32(cqe->imm_inval_pkey);
	comp->len = RTE_MIN(rte_be_to_cpu_32(cqe->byte_cnt), slot.len);
	from = cqe_inline(cqe, &max);
	if (from != NULL) {
		comp->len = RTE_MIN(comp->len, max);
		memcpy(mlx5_srq_addr(&hw->srq, wqe), from, comp->len);
	}
	return 1;
}

uint16_t
mlx5_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct mlx5_cq *cq = &mlx5_hw(hw)->rx;
	const struct mlx5_cqe64 *cqe;
	uint32_t ci = cq->ci;
	uint16_t got = 0;

	for (uint16_t i = 0; i < n && (cqe = cq_next(cq)) != NULL; i++)
		got += rx_one(mlx5_hw(hw), cqe, &comp[got]);
	if (cq->ci != ci)
		cq_done(cq);
	return got;
}

static void
cq_arm(struct mlx5_cq *cq)
{
	uint32_t what = (cq->arm_n & 3) << 28 | MLX5_CQ_DB_REQ_NOT | (cq->ci & CI_MASK);

	/* the device reads this; the barrier orders it */
	atomic_store_explicit(&cq->dbrec[CQ_ARM], rte_cpu_to_be_32(what), memory_order_relaxed);
	rte_wmb(); /* the record before the register */
	rte_write64_relaxed(rte_cpu_to_be_64((uint64_t)what << 32 | cq->cqn),
		(uint8_t *)cq->uar + MLX5_CQ_DOORBELL);
	rte_wmb();
}

int
mlx5_arm(struct mlx_hw *hw)
{
	cq_arm(&mlx5_hw(hw)->tx);
	cq_arm(&mlx5_hw(hw)->rx);
	return 0;
}

int
mlx5_cq_init(struct mlx5_cq *cq, const struct mlx5dv_cq *obj)
{
	if (obj->cqe_cnt == 0 || obj->cqe_cnt > CQ_N_MAX || !rte_is_power_of_2(obj->cqe_cnt) ||
		(obj->cqe_size != 64 && obj->cqe_size != 128))
		return -EINVAL;
	cq->buf = (uint8_t *)obj->buf + obj->cqe_size - sizeof(struct mlx5_cqe64);
	cq->dbrec = (_Atomic rte_be32_t *)obj->dbrec;
	cq->uar = obj->cq_uar;
	cq->ci = 0;
	cq->n = obj->cqe_cnt;
	cq->shift = obj->cqe_size == 128 ? 7 : 6;
	cq->cqn = obj->cqn;
	return 0;
}

void
mlx5_cq_forget(struct mlx5_cq *cq, uint32_t qpn)
{
	for (uint32_t i = cq->ci; i != cq->ci + cq->n; i++) {
		struct mlx5_cqe64 *cqe = cqe_at(cq, i);

		if (!cqe_is_ours(cq, cqe, i))
			return;
		if (cqe_qpn(cqe) == qpn)
			cqe->sop_drop_qpn &= ~rte_cpu_to_be_32(QPN_MASK);
	}
}

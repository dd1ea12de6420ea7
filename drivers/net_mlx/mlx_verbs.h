/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_verbs.h - one request, and one arrival, by libibverbs in inline code
 *
 * Design notes
 * - A call of a hook, with its arguments in memory, costs as much as filling in the request or
 *   reading the completion. So with mlx_hw_qp.at_once inline code may do what post() and ring()
 *   do together, and with mlx_hw.plain_cq it may poll rx_cq as poll_rx() does.
 */
#ifndef MLX_VERBS_H
#define MLX_VERBS_H

#include <arpa/inet.h>

#include <rte_branch_prediction.h>

#include "plx_assert.h"

#include "mlx_hw.h"

static const enum ibv_wr_opcode mlx_verbs_opcodes[] = {
	[MLX_WR_SEND] = IBV_WR_SEND_WITH_IMM,
	[MLX_WR_WRITE] = IBV_WR_RDMA_WRITE,
	[MLX_WR_READ] = IBV_WR_RDMA_READ,
	[MLX_WR_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[MLX_WR_CSWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

/** The device refused a posting. @param rc of ibv_post_send() @return -errno */
int mlx_verbs_failed(struct mlx_hw_qp *qp, int rc);

/** @param addr the local bytes until w is posted */
static inline void
mlx_verbs_fill(struct ibv_send_wr *w, struct ibv_sge *sge, const struct mlx_hw_wr *wr, uint16_t seq,
	uint64_t addr)
{
	unsigned flags = 0;

	sge->addr = addr;
	sge->length = wr->len;
	sge->lkey = wr->lkey;
	if (wr->flags & MLX_WR_SIGNAL)
		flags |= IBV_SEND_SIGNALED;
	if (wr->flags & MLX_WR_FENCE)
		flags |= IBV_SEND_FENCE;
	if (wr->flags & MLX_WR_INLINE)
		flags |= IBV_SEND_INLINE;
	w->wr_id = seq;
	w->sg_list = sge;
	w->num_sge = wr->len != 0;
	w->send_flags = flags;
	w->opcode = mlx_verbs_opcodes[wr->op];
	if (likely(wr->op == MLX_WR_SEND)) {
		w->imm_data = htonl(wr->imm);
	} else if (wr->op == MLX_WR_WRITE || wr->op == MLX_WR_READ) {
		w->wr.rdma.remote_addr = wr->remote;
		w->wr.rdma.rkey = wr->rkey;
	} else {
		w->wr.atomic.remote_addr = wr->remote;
		w->wr.atomic.rkey = wr->rkey;
		w->wr.atomic.compare_add = wr->operand[0];
		w->wr.atomic.swap = wr->operand[1];
	}
}

/** As post() of one, and ring(). @param qp with at_once */
static inline int
mlx_verbs_post_one(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr)
{
	struct ibv_send_wr w, *bad;
	struct ibv_sge sge;
	int rc;

	mlx_verbs_fill(&w, &sge, wr, qp->next++, wr->addr);
	w.next = NULL;
	rc = ibv_post_send(qp->qp, &w, &bad);
	return likely(rc == 0) ? 0 : mlx_verbs_failed(qp, rc);
}

/** Slow path of mlx_verbs_status(). */
uint8_t mlx_verbs_error(enum ibv_wc_status s);

/** @return enum mlx_comp_status */
static inline uint8_t
mlx_verbs_status(enum ibv_wc_status s)
{
	return likely(s == IBV_WC_SUCCESS) ? MLX_COMP_OK : mlx_verbs_error(s);
}

static inline struct mlx_hw_comp
mlx_verbs_arrived(const struct ibv_wc *wc)
{
	return (struct mlx_hw_comp){.qpn = wc->qp_num, .slot = (uint32_t)wc->wr_id,
		.len = wc->byte_len, .imm = ntohl(wc->imm_data),
		.status = mlx_verbs_status(wc->status), .vendor = (uint8_t)wc->vendor_err};
}

/** @return how many, at most n and MLX_HW_POLL_MAX */
static inline unsigned
mlx_verbs_poll(struct ibv_cq *cq, struct ibv_wc *wc, unsigned n)
{
	int got;

	PLX_ASSERT(n <= MLX_HW_POLL_MAX);
	got = ibv_poll_cq(cq, n, wc);
	return likely(got >= 0) ? got : 0; /* an error of the queue itself comes as an event */
}

#endif

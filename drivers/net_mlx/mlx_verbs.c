/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_verbs.c - the hardware queues by libibverbs, on every RDMA device
 *
 * Design notes
 * Requests are gathered in the queue pair and handed over as one list, since on devices
 * that are emulated (soft-RoCE) each handing over is a system call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_glue.h"
#include "mlx_hw.h"
#include "mlx_int.h"

#define BATCH 16 /* requests handed over at once */

struct verbs_qp {
	struct mlx_hw_qp hw;
	uint16_t n;  /* gathered */
	int err;     /* of a handing over */
	uint8_t *inl; /* BATCH * max_inline bytes */
	struct ibv_sge sge[BATCH];
	struct ibv_send_wr wr[BATCH];
};

static bool
verbs_usable(struct ibv_context *ctx)
{
	(void)ctx;
	return true;
}

static void
verbs_close(struct mlx_hw *hw)
{
	mlx_hw_fini(hw);
	free(hw);
}

static int
verbs_open(const struct mlx_hw_conf *conf, struct mlx_hw **out)
{
	struct mlx_hw *hw = calloc(1, sizeof(*hw));
	int rc;

	if (hw == NULL)
		return -ENOMEM;
	rc = mlx_hw_init(hw, &mlx_hw_verbs_ops, conf);
	if (rc == 0)
		*out = hw;
	else
		free(hw);
	return rc;
}

static void
verbs_qp_close(struct mlx_hw_qp *qp)
{
	struct verbs_qp *q = (struct verbs_qp *)qp;

	mlx_glue.destroy_qp(qp->qp);
	free(q->inl);
	free(q);
}

static int
verbs_qp_open(struct mlx_hw *hw, uint16_t max_wr, uint16_t max_inline, struct mlx_hw_qp **out)
{
	struct verbs_qp *q = calloc(1, sizeof(*q));
	int rc;

	if (q == NULL)
		return -ENOMEM;
	q->inl = malloc((size_t)BATCH * max_inline);
	rc = q->inl == NULL ? -ENOMEM
			    : mlx_hw_qp_init(hw, hw->conf.pd, max_wr, max_inline, &q->hw);
	if (rc == 0) {
		*out = &q->hw;
		return 0;
	}
	free(q->inl);
	free(q);
	return rc;
}

static int
verbs_ring(struct mlx_hw_qp *qp)
{
	struct verbs_qp *q = (struct verbs_qp *)qp;
	struct ibv_send_wr *bad;

	if (q->n == 0 || q->err != 0)
		return q->err;
	q->wr[q->n - 1].next = NULL;
	q->n = 0;
	q->err = -ibv_post_send(qp->qp, q->wr, &bad);
	return q->err;
}

static const enum ibv_wr_opcode opcodes[] = {
	[MLX_WR_WRITE] = IBV_WR_RDMA_WRITE,
	[MLX_WR_READ] = IBV_WR_RDMA_READ,
	[MLX_WR_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[MLX_WR_CSWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* @param addr where the local bytes are until w is handed over */
static inline void
fill(struct ibv_send_wr *w, struct ibv_sge *sge, const struct mlx_hw_wr *wr, uint16_t seq,
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
	if (likely(wr->op == MLX_WR_SEND)) {
		w->opcode = IBV_WR_SEND_WITH_IMM;
		w->imm_data = htonl(wr->imm);
		return;
	}
	w->opcode = opcodes[wr->op];
	if (wr->op == MLX_WR_WRITE || wr->op == MLX_WR_READ) {
		w->wr.rdma.remote_addr = wr->remote;
		w->wr.rdma.rkey = wr->rkey;
	} else {
		w->wr.atomic.remote_addr = wr->remote;
		w->wr.atomic.rkey = wr->rkey;
		w->wr.atomic.compare_add = wr->operand[0];
		w->wr.atomic.swap = wr->operand[1];
	}
}

static inline void
gather(struct verbs_qp *q, const struct mlx_hw_wr *wr, uint16_t seq)
{
	struct ibv_send_wr *w = &q->wr[q->n];
	uint64_t addr = wr->addr;

	if (wr->flags & MLX_WR_INLINE) {
		uint8_t *inl = q->inl + (size_t)q->n * q->hw.max_inline;

		memcpy(inl, (const void *)(uintptr_t)addr, wr->len);
		addr = (uintptr_t)inl;
	}
	fill(w, &q->sge[q->n], wr, seq, addr);
	w->next = w + 1;
	q->n++;
}

static void
verbs_post(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, uint16_t n)
{
	struct verbs_qp *q = (struct verbs_qp *)qp;

	for (uint16_t i = 0; i < n; i++) {
		if (q->n == BATCH)
			verbs_ring(qp); /* an error stays for the next ring */
		if (q->err == 0)
			gather(q, &wr[i], qp->next);
		qp->next++;
	}
}

static int
verbs_post_one(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr)
{
	struct verbs_qp *q = (struct verbs_qp *)qp;
	struct ibv_send_wr w, *bad;
	struct ibv_sge sge;

	if (unlikely(q->n != 0 || q->err != 0)) {
		verbs_post(qp, wr, 1);
		return verbs_ring(qp);
	}
	fill(&w, &sge, wr, qp->next++, wr->addr);
	w.next = NULL;
	q->err = -ibv_post_send(qp->qp, &w, &bad);
	return q->err;
}

static void
verbs_post_rx(struct mlx_hw *hw, const struct mlx_hw_rx *rx, uint16_t n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	while (n > 0) {
		uint16_t k, part = n < BATCH ? n : BATCH;

		for (k = 0; k < part; k++) {
			sge[k] = (struct ibv_sge){rx[k].addr, rx[k].len, rx[k].lkey};
			wr[k] = (struct ibv_recv_wr){.wr_id = rx[k].slot, .next = &wr[k + 1],
				.sg_list = &sge[k], .num_sge = 1};
		}
		wr[part - 1].next = NULL;
		if (ibv_post_srq_recv(hw->srq, wr, &bad) != 0)
			PLX_LOG_RATELIMIT(ERR, mlx, "a receive slot was not taken: lost");
		rx += part;
		n -= part;
	}
}

static __rte_noinline __rte_cold uint8_t
error_of(enum ibv_wc_status s)
{
	switch (s) {
	case IBV_WC_WR_FLUSH_ERR:
		return MLX_COMP_FLUSHED;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return MLX_COMP_RETRY;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return MLX_COMP_RNR;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return MLX_COMP_ACCESS;
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_LOC_PROT_ERR:
		return MLX_COMP_LOCAL;
	default:
		return MLX_COMP_OTHER;
	}
}

static inline uint8_t
status_of(enum ibv_wc_status s)
{
	return likely(s == IBV_WC_SUCCESS) ? MLX_COMP_OK : error_of(s);
}

static uint16_t
poll_cq(struct ibv_cq *cq, struct ibv_wc *wc, uint16_t n)
{
	int got;

	PLX_ASSERT(n <= MLX_HW_POLL_MAX);
	got = ibv_poll_cq(cq, n, wc);
	return got > 0 ? got : 0; /* an error of the queue itself comes as an event */
}

static uint16_t
verbs_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	uint16_t got = poll_cq(hw->tx_cq, wc, n);

	for (uint16_t i = 0; i < got; i++)
		comp[i] = (struct mlx_hw_comp){.qpn = wc[i].qp_num, .seq = (uint16_t)wc[i].wr_id,
			.status = status_of(wc[i].status), .vendor = (uint8_t)wc[i].vendor_err};
	return got;
}

static uint16_t
verbs_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	uint16_t got = poll_cq(hw->rx_cq, wc, n);

	for (uint16_t i = 0; i < got; i++)
		comp[i] = (struct mlx_hw_comp){.qpn = wc[i].qp_num, .slot = (uint32_t)wc[i].wr_id,
			.len = wc[i].byte_len, .imm = ntohl(wc[i].imm_data),
			.status = status_of(wc[i].status), .vendor = (uint8_t)wc[i].vendor_err};
	return got;
}

static int
verbs_arm(struct mlx_hw *hw)
{
	int rc = ibv_req_notify_cq(hw->rx_cq, 0);

	return -(rc != 0 ? rc : ibv_req_notify_cq(hw->tx_cq, 0));
}

static void
verbs_event(struct mlx_hw *hw, struct ibv_cq *cq)
{
	(void)hw;
	(void)cq; /* libibverbs keeps no account of its own */
}

const struct mlx_hw_ops mlx_hw_verbs_ops = {
	.name = "verbs",
	.usable = verbs_usable,
	.open = verbs_open,
	.close = verbs_close,
	.qp_open = verbs_qp_open,
	.qp_close = verbs_qp_close,
	.post = verbs_post,
	.ring = verbs_ring,
	.post_one = verbs_post_one,
	.post_rx = verbs_post_rx,
	.poll_tx = verbs_poll_tx,
	.poll_rx = verbs_poll_rx,
	.arm = verbs_arm,
	.event = verbs_event,
};

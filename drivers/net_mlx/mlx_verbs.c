/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_verbs.c - the hardware queues by libibverbs, on every RDMA device
 *
 * Design notes
 * - Requests are gathered in the queue pair and posted as one list, since on emulated devices
 *   (soft-RoCE) each posting is a system call.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_base.h"
#include "mlx_glue.h"
#include "mlx_verbs.h"

#define BATCH 16 /* requests posted at once */

struct verbs_qp {
	struct mlx_hw_qp hw;
	uint16_t n;  /* gathered */
	int err;     /* of a posting */
	uint8_t *inl; /* BATCH * max_inline bytes */
	struct ibv_sge sge[BATCH][MLX_HW_SGES];
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
	hw->plain_cq = true;
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
		q->hw.at_once = true;
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
	qp->at_once = q->err == 0;
	return q->err;
}

int
mlx_verbs_failed(struct mlx_hw_qp *qp, int rc)
{
	struct verbs_qp *q = (struct verbs_qp *)qp;

	q->err = -rc;
	qp->at_once = false;
	return q->err;
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
	mlx_verbs_fill(w, q->sge[q->n], wr, seq, addr);
	w->next = w + 1;
	q->n++;
	q->hw.at_once = false;
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

static void
verbs_post_gather(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, const struct ibv_sge *sge)
{
	struct verbs_qp *q = (struct verbs_qp *)qp;

	verbs_post(qp, wr, 1);
	if (q->err != 0)
		return;
	memcpy(q->sge[q->n - 1], sge, MLX_HW_SGES * sizeof(*sge));
	q->wr[q->n - 1].num_sge = MLX_HW_SGES;
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
			PLX_LOG_RATELIMIT(ERR, mlx, "a receive slot could not be posted again: lost");
		rx += part;
		n -= part;
	}
}

uint8_t
mlx_verbs_error(enum ibv_wc_status s)
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

static uint16_t
verbs_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	uint16_t got = mlx_verbs_poll(hw->tx_cq, wc, n);

	for (uint16_t i = 0; i < got; i++)
		comp[i] = (struct mlx_hw_comp){.qpn = wc[i].qp_num, .seq = (uint16_t)wc[i].wr_id,
			.status = mlx_verbs_status(wc[i].status), .vendor = (uint8_t)wc[i].vendor_err};
	return got;
}

static uint16_t
verbs_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	uint16_t got = mlx_verbs_poll(hw->rx_cq, wc, n);

	for (uint16_t i = 0; i < got; i++)
		comp[i] = mlx_verbs_arrived(&wc[i]);
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
	(void)cq; /* libibverbs does not track it */
}

const struct mlx_hw_ops mlx_hw_verbs_ops = {
	.name = "verbs",
	.usable = verbs_usable,
	.open = verbs_open,
	.close = verbs_close,
	.qp_open = verbs_qp_open,
	.qp_close = verbs_qp_close,
	.post = verbs_post,
	.post_gather = verbs_post_gather,
	.ring = verbs_ring,
	.post_rx = verbs_post_rx,
	.poll_tx = verbs_poll_tx,
	.poll_rx = verbs_poll_rx,
	.arm = verbs_arm,
	.event = verbs_event,
};

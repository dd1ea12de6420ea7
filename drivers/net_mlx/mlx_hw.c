/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_hw.c - the objects of a queue, which libibverbs makes in any case
 */
#include <errno.h>
#include <stddef.h>

#include "mlx_glue.h"
#include "mlx_hw.h"

static int
last_error(void)
{
	return errno != 0 ? -errno : -EIO;
}

int
mlx_hw_init(struct mlx_hw *hw, const struct mlx_hw_ops *ops, const struct mlx_hw_conf *conf)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = conf->n_rx, .max_sge = 1}};
	int rc;

	hw->ops = ops;
	hw->conf = *conf;
	hw->rx_cq = mlx_glue.create_cq(conf->ctx, conf->n_rx, NULL, conf->channel, 0);
	if (hw->rx_cq != NULL)
		hw->tx_cq = mlx_glue.create_cq(conf->ctx, conf->n_tx, NULL, conf->channel, 0);
	if (hw->tx_cq != NULL)
		hw->srq = mlx_glue.create_srq(conf->pd, &attr);
	if (hw->srq != NULL)
		return 0;
	rc = last_error();
	mlx_hw_fini(hw);
	return rc;
}

void
mlx_hw_fini(struct mlx_hw *hw)
{
	if (hw->srq != NULL)
		mlx_glue.destroy_srq(hw->srq);
	if (hw->rx_cq != NULL)
		mlx_glue.destroy_cq(hw->rx_cq);
	if (hw->tx_cq != NULL)
		mlx_glue.destroy_cq(hw->tx_cq);
}

int
mlx_hw_qp_init(struct mlx_hw *hw, struct ibv_pd *pd, uint16_t max_wr, uint16_t max_inline,
	struct mlx_hw_qp *qp)
{
	struct ibv_qp_init_attr attr = {.send_cq = hw->tx_cq, .recv_cq = hw->rx_cq, .srq = hw->srq,
		.cap = {.max_send_wr = max_wr, .max_send_sge = MLX_HW_SGES, .max_inline_data = max_inline},
		.qp_type = IBV_QPT_RC};

	qp->hw = hw;
	qp->qp = mlx_glue.create_qp(pd, &attr);
	if (qp->qp == NULL)
		return last_error();
	qp->qpn = qp->qp->qp_num;
	qp->max_wr = max_wr;
	qp->max_inline = max_inline < attr.cap.max_inline_data ? max_inline
							       : attr.cap.max_inline_data;
	return 0;
}

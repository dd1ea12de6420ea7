/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_rig.c - two queues of the mlx5 direct way, on the model of the device
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "mlx5_rig.h"
#include "mlx5_verbs.h"

#define TX_CQ 1024u /* completions */

const struct rig_conf rig_plain = {.seed = 1, .cqe_size = 64, .srq_stride = 32, .bf_size = 256,
	.own_uar = true, .max_inline = 128};

static void
node_open(struct rig *r, unsigned i)
{
	struct rig_node *n = &r->node[i];
	struct mlx_hw_conf conf = {.ctx = mlx5_verbs.ctx, .pd = mlx5_verbs.pd, .n_rx = RIG_SLOTS,
		.n_tx = TX_CQ, .stat = &n->stat};
	struct mlx_hw *hw;

	UNIT_EQ_FATAL(mlx_hw_mlx5_ops.open(&conf, &hw), 0);
	n->hw = mlx5_hw(hw);
	n->tx_cq = mlx5_verbs_cq(hw->tx_cq);
	n->rx_cq = mlx5_verbs_cq(hw->rx_cq);
	n->slots = malloc(RIG_SLOTS * RIG_SLOT_LEN);
	n->mem = calloc(1, RIG_MEM);
	n->slots_key = mlx5_model_mr(r->m, n->slots, RIG_SLOTS * RIG_SLOT_LEN, false);
	n->mem_key = mlx5_model_mr(r->m, n->mem, RIG_MEM, true);
	for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
		rig_post_rx(r, i, slot);
}

void
rig_open(struct rig *r, const struct rig_conf *conf)
{
	memset(r, 0, sizeof(*r));
	r->conf = *conf;
	UNIT_EQ_FATAL(mlx5_model_create(conf->seed, &r->m), 0);
	r->stat = mlx5_model_stat(r->m);
	mlx5_verbs = (struct mlx5_verbs){.m = r->m, .cqe_size = conf->cqe_size,
		.srq_stride = conf->srq_stride, .bf_size = conf->bf_size, .no_td = !conf->own_uar};
	mlx5_verbs_begin();
	node_open(r, 0);
	node_open(r, 1);
}

void
rig_close(struct rig *r)
{
	UNIT_EQ(r->stat->violations, 0);
	if (r->stat->violations != 0)
		printf("%s\n", r->stat->first);
	for (unsigned i = 0; i < 2; i++) {
		struct rig_node *n = &r->node[i];
		struct mlx5_qp *q;

		for (unsigned k = 0; k < MLX5_QP_HASH; k++)
			while ((q = LIST_FIRST(&n->hw->qps[k])) != NULL)
				rig_qp_close(r, q);
		mlx_hw_mlx5_ops.close(&n->hw->base);
		free(n->slots);
		free(n->mem);
	}
	mlx5_model_destroy(r->m);
}

struct mlx5_qp *
rig_qp_open(struct rig *r, unsigned node)
{
	struct mlx_hw_qp *qp;

	UNIT_EQ_FATAL(mlx_hw_mlx5_ops.qp_open(&r->node[node].hw->base, RIG_MAX_WR,
			      r->conf.max_inline, &qp), 0);
	return mlx5_qp(qp);
}

void
rig_qp_close(struct rig *r, struct mlx5_qp *q)
{
	(void)r;
	mlx_hw_mlx5_ops.qp_close(&q->base);
}

void
rig_pair(struct rig *r, struct mlx5_qp *qp[2])
{
	qp[0] = rig_qp_open(r, 0);
	qp[1] = rig_qp_open(r, 1);
	mlx5_model_connect(r->m, qp[0]->base.qpn, qp[1]->base.qpn);
	mlx5_model_connect(r->m, qp[1]->base.qpn, qp[0]->base.qpn);
}

void
rig_post_rx(struct rig *r, unsigned node, uint32_t slot)
{
	struct rig_node *n = &r->node[node];
	struct mlx_hw_rx rx = {.addr = (uintptr_t)(n->slots + slot * RIG_SLOT_LEN),
		.len = RIG_SLOT_LEN, .lkey = n->slots_key, .slot = slot};

	mlx_hw_mlx5_ops.post_rx(&n->hw->base, &rx, 1);
}

void
rig_send(struct rig *r, struct mlx5_qp *q, const struct mlx_hw_wr *wr)
{
	mlx5_post(&q->base, wr, 1);
	rig_ring(r, q);
}

void
rig_ring(struct rig *r, struct mlx5_qp *q)
{
	UNIT_EQ(mlx5_ring(&q->base), 0);
	mlx5_model_mmio(r->m);
}

void
rig_check(struct rig *r)
{
	struct mlx5_qp *q;

	for (unsigned i = 0; i < 2 * MLX5_QP_HASH; i++) {
		LIST_FOREACH(q, &r->node[i % 2].hw->qps[i / 2], link) {
			mlx5_qp_check(q);
			mlx5_model_mmio(r->m); /* before the next one writes there */
		}
	}
}

void
rig_arm(struct rig *r, unsigned node)
{
	UNIT_EQ(mlx5_arm(&r->node[node].hw->base), 0);
	mlx5_model_mmio(r->m);
}

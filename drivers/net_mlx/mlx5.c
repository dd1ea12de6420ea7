/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5.c - direct access to mlx5 devices: verbs make the objects, we drive them
 *
 * Design notes
 * - The queue pairs of a queue are made in a thread domain of its own if the device has one left,
 *   so that they share a doorbell register with no other thread: only then may entries be written
 *   to it as a whole (BlueFlame). Otherwise it takes doorbells of 8 bytes, which cannot be torn.
 * - Once libmlx5 has returned the addresses of the queues, verbs must not post to them nor poll
 *   them; and as verbs would restart their own count, a queue pair is closed and opened again
 *   instead of being moved back to RESET.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "mlx5_int.h"
#include "mlx_base.h"
#include "mlx_glue.h"

#define LIBRARY "libmlx5.so.1"

struct mlx5_glue mlx5_glue;

static void
glue_open(void)
{
	struct mlx5_glue found;
	void *lib;

	if (mlx5_glue.is_supported != NULL)
		return;
	lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		PLX_LOG(INFO, mlx, "%s", dlerror());
		return;
	}
	*(void **)&found.is_supported = dlsym(lib, "mlx5dv_is_supported");
	*(void **)&found.init_obj = dlsym(lib, "mlx5dv_init_obj");
	if (found.is_supported != NULL && found.init_obj != NULL)
		mlx5_glue = found;
	else
		dlclose(lib);
}

static bool
direct_usable(struct ibv_context *ctx)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, glue_open);
	return mlx5_glue.is_supported != NULL && mlx5_glue.is_supported(ctx->device);
}

int
mlx5_hw_init(struct mlx5_hw *hw, const struct mlx5_hw_obj *obj)
{
	int rc = mlx5_cq_init(&hw->tx, &obj->tx);

	if (rc == 0)
		rc = mlx5_cq_init(&hw->rx, &obj->rx);
	if (rc == 0)
		rc = mlx5_srq_init(&hw->srq, &obj->srq);
	return rc;
}

void
mlx5_hw_fini(struct mlx5_hw *hw)
{
	free(hw->srq.slots);
}

/* Without one, queue pairs are made in the plain domain. */
static void
domain_open(struct mlx5_hw *hw)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr attr = {.pd = hw->base.conf.pd};

	hw->pd = hw->base.conf.pd;
	hw->td = ibv_alloc_td(hw->base.conf.ctx, &td_attr);
	if (hw->td == NULL)
		return;
	attr.td = hw->td;
	hw->pd = ibv_alloc_parent_domain(hw->base.conf.ctx, &attr);
	if (hw->pd != NULL) {
		hw->own_uar = true;
		return;
	}
	hw->pd = hw->base.conf.pd;
	ibv_dealloc_td(hw->td);
	hw->td = NULL;
}

static void
direct_close(struct mlx_hw *base)
{
	struct mlx5_hw *hw = mlx5_hw(base);

	mlx5_hw_fini(hw);
	mlx_hw_fini(base);
	if (hw->own_uar) {
		mlx_glue.dealloc_pd(hw->pd);
		ibv_dealloc_td(hw->td);
	}
	free(hw);
}

/* Get the addresses of the queues. */
static int
queues_find(struct mlx5_hw *hw)
{
	struct mlx5_hw_obj obj = {0};
	struct mlx5dv_obj tx = {.cq = {hw->base.tx_cq, &obj.tx}};
	struct mlx5dv_obj rx = {.cq = {hw->base.rx_cq, &obj.rx}, .srq = {hw->base.srq, &obj.srq}};

	if (mlx5_glue.init_obj(&tx, MLX5DV_OBJ_CQ) != 0 ||
		mlx5_glue.init_obj(&rx, MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ) != 0)
		return -EOPNOTSUPP;
	if (obj.srq.tail - obj.srq.head < hw->base.conf.n_rx)
		return -EINVAL;
	return mlx5_hw_init(hw, &obj);
}

static int
direct_open(const struct mlx_hw_conf *conf, struct mlx_hw **out)
{
	struct mlx5_hw *hw = aligned_alloc(PLX_LINE, RTE_ALIGN_CEIL(sizeof(*hw), PLX_LINE));
	int rc;

	if (hw == NULL)
		return -ENOMEM;
	memset(hw, 0, sizeof(*hw));
	rc = mlx_hw_init(&hw->base, &mlx_hw_mlx5_ops, conf);
	if (rc != 0) {
		free(hw);
		return rc;
	}
	domain_open(hw);
	rc = queues_find(hw);
	if (rc != 0) {
		direct_close(&hw->base);
		return rc;
	}
	*out = &hw->base;
	return 0;
}

static int
direct_qp_open(struct mlx_hw *hw, uint16_t max_wr, uint16_t max_inline, struct mlx_hw_qp **out)
{
	struct mlx5_qp *q = aligned_alloc(PLX_LINE, RTE_ALIGN_CEIL(sizeof(*q), PLX_LINE));
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj obj;
	int rc;

	if (q == NULL)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	rc = mlx_hw_qp_init(hw, mlx5_hw(hw)->pd, max_wr, max_inline, &q->base);
	if (rc != 0)
		goto free_qp;
	obj = (struct mlx5dv_obj){.qp = {q->base.qp, &dv}};
	rc = mlx5_glue.init_obj(&obj, MLX5DV_OBJ_QP) == 0 ? mlx5_qp_init(mlx5_hw(hw), q, &dv)
							  : -EOPNOTSUPP;
	if (rc != 0)
		goto destroy_qp;
	*out = &q->base;
	return 0;

destroy_qp:
	mlx_glue.destroy_qp(q->base.qp);
free_qp:
	free(q);
	return rc;
}

static void
direct_qp_close(struct mlx_hw_qp *qp)
{
	mlx_glue.destroy_qp(qp->qp); /* first: then no more completions of it arrive */
	mlx5_qp_fini(mlx5_qp(qp));
	free(qp);
}

static void
direct_post_rx(struct mlx_hw *hw, const struct mlx_hw_rx *rx, uint16_t n)
{
	mlx5_srq_post(&mlx5_hw(hw)->srq, rx, n);
}

static void
direct_event(struct mlx_hw *hw, struct ibv_cq *cq)
{
	if (cq == hw->tx_cq)
		mlx5_cq_event(&mlx5_hw(hw)->tx);
	else if (cq == hw->rx_cq)
		mlx5_cq_event(&mlx5_hw(hw)->rx);
}

const struct mlx_hw_ops mlx_hw_mlx5_ops = {
	.name = "mlx5",
	.usable = direct_usable,
	.open = direct_open,
	.close = direct_close,
	.qp_open = direct_qp_open,
	.qp_close = direct_qp_close,
	.post = mlx5_post,
	.post_gather = mlx5_post_gather,
	.ring = mlx5_ring,
	.post_rx = direct_post_rx,
	.poll_tx = mlx5_poll_tx,
	.poll_rx = mlx5_poll_rx,
	.arm = mlx5_arm,
	.event = direct_event,
	.check = mlx5_check,
};

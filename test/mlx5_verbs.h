/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_verbs.h - libibverbs and libmlx5 as the driver sees them, with the model as device
 *
 * One device of one port. Reliable queue pairs and what belongs to them lie in the model, where
 * the driver writes and reads them directly. Datagrams, which it sends by libibverbs, are handed
 * over at once.
 */
#ifndef MLX5_VERBS_H
#define MLX5_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mlx5_model.h"

struct mlx5_verbs {
	struct mlx5_model *m;
	uint32_t cqe_size;   /* 64 or 128 */
	uint32_t srq_stride; /* 32 or 64 */
	uint32_t bf_size;    /* 0 or 256 */
	bool no_td;	     /* there are no thread domains left */
	bool plain;	     /* it is not of the mlx5 kind, see mlx_tm_model.h */
	bool no_datagrams;   /* they are lost */
	uint32_t n_ahs;	     /* address handles that there are */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};

extern struct mlx5_verbs mlx5_verbs;

/** From now on the driver finds this device; the caller has set all but ctx and pd. */
void mlx5_verbs_begin(void);

/** A completion queue of libibverbs has one more; its channel is told if it is armed. */
void mlx5_verbs_done(struct ibv_cq *cq, const struct ibv_wc *wc);

/** Its channel, if it has one, is told of a completion queue. */
void mlx5_verbs_tell(struct ibv_cq *cq);

/** The number of a completion queue in the model. */
int mlx5_verbs_cq(const struct ibv_cq *cq);

/** Give the channels their events. @return whether any completion queue is armed */
bool mlx5_verbs_events(void);

#endif

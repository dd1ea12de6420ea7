/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_rig.h - two queues of the mlx5 direct way, on the model of the device
 *
 * The driver opens them as it would; see mlx5_verbs.h.
 */
#ifndef MLX5_RIG_H
#define MLX5_RIG_H

#include "mlx5_model.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define RIG_SLOTS    128u  /* receive slots of a node */
#define RIG_SLOT_LEN 512u  /* bytes of one */
#define RIG_MEM	     (1u << 20) /* bytes that a node sends from, and others read and write */
#define RIG_MAX_WR   64u

struct rig_conf {
	uint64_t seed;
	uint32_t cqe_size;   /* 64 or 128 */
	uint32_t srq_stride; /* 32 or 64 */
	uint32_t bf_size;    /* 0 or 256 */
	bool own_uar;	     /* all queue pairs of a node share a register */
	uint16_t max_inline;
};

struct rig_node {
	struct mlx5_hw *hw;
	struct mlx_hw_stat stat;
	uint8_t *slots, *mem;
	uint32_t slots_key, mem_key;
	int tx_cq, rx_cq; /* numbers in the model */
};

struct rig {
	struct rig_conf conf;
	struct mlx5_model *m;
	struct mlx5_model_stat *stat;
	struct rig_node node[2];
};

extern const struct rig_conf rig_plain;

/** All slots are posted. */
void rig_open(struct rig *r, const struct rig_conf *conf);
/** The model found nothing to complain of; frees all. */
void rig_close(struct rig *r);

struct mlx5_qp *rig_qp_open(struct rig *r, unsigned node);
void rig_qp_close(struct rig *r, struct mlx5_qp *qp);
/** A queue pair of each node, connected. */
void rig_pair(struct rig *r, struct mlx5_qp *qp[2]);

void rig_post_rx(struct rig *r, unsigned node, uint32_t slot);
/** Post one request and ring. */
void rig_send(struct rig *r, struct mlx5_qp *qp, const struct mlx_hw_wr *wr);
void rig_ring(struct rig *r, struct mlx5_qp *qp);
void rig_check(struct rig *r);
void rig_arm(struct rig *r, unsigned node);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rma.h - reading and writing the memory of peers
 */
#ifndef MLX_RMA_H
#define MLX_RMA_H



#define MLX_RMA_MAX	 (1u << 20) /* bytes of one read or write */
#define MLX_LONG	 (64u << 10) /* bytes that a device which is software takes a while for */

struct mlx_queue;
struct plx_rma_op;

void mlx_rma_close(struct mlx_queue *mq);
int mlx_rma(const struct plx_rma_op *op);

#endif

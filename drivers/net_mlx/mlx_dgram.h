/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_dgram.h - datagrams between two queues: of connecting, and of who is alive
 */
#ifndef MLX_DGRAM_H
#define MLX_DGRAM_H

#include "mlx_addr.h"

#define MLX_UD_RX	 64    /* datagrams that may arrive between two looks */

struct mlx_peer;
struct mlx_queue;

int mlx_dgrams_open(struct mlx_queue *mq);
/** Send one; lost when there is no room, as any may be. @return 0, or why it can't be reached */
int mlx_dgrams_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_dgram *d);

#endif

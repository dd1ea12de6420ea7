/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_lossy.h - unreliable messages: one datagram each, without a connection
 */
#ifndef MLX_LOSSY_H
#define MLX_LOSSY_H

#include <stdbool.h>
#include <stdint.h>

#define MLX_LOSSY_RX	 256   /* unreliable messages that may arrive between two polls */

struct mlx_queue;
struct plx_peer;
struct plx_queue;
struct plx_tx;

int mlx_lossy_open(struct plx_queue *q, uint32_t *where);
int mlx_lossy_to(struct plx_peer *peer, uint32_t where);
int mlx_lossy_tx(const struct plx_tx *tx);
unsigned mlx_lossy_poll(struct mlx_queue *mq);
int mlx_lossy_arm(struct mlx_queue *mq);
/** Drop arrivals. @return whether the device still has something to send */
bool mlx_lossy_drain(struct mlx_queue *mq);

#endif

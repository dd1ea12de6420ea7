/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rx.h - receiving: a burst, its release, and a queue's other work in it
 */
#ifndef MLX_RX_H
#define MLX_RX_H

#include <stdbool.h>
#include <stdint.h>

struct mlx_queue;
struct plx_queue;
struct plx_rx;

uint16_t mlx_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
/** The same, of a queue that is driven directly. */
uint16_t mlx_rx_burst_mlx5(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
/** The same, of a queue whose device matches tags. */
uint16_t mlx_rx_burst_tags(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
void mlx_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);
void *mlx_rx_keep(struct plx_queue *q, struct plx_rx *rx);
void mlx_rx_give_back(struct plx_queue *q, void *kept);
/** @return whether a message has arrived; it is stored for the next burst */
bool mlx_rx_waits(struct mlx_queue *mq);
/** Drop arrivals, except credits and closing peers. */
void mlx_rx_drain(struct mlx_queue *mq);

#endif

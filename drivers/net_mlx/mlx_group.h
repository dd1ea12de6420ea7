/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_group.h - groups: one datagram for all receivers
 */
#ifndef MLX_GROUP_H
#define MLX_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#define MLX_GROUP_RX	 256   /* messages to groups that may arrive between two polls */
#define MLX_GROUP_LEN	 1024u /* longest of them, bytes */

struct mlx_queue;
struct plx_queue;

/** @return the longest message to a group, bytes; 0: such a network has no groups */
uint32_t mlx_group_mtu(const struct mlx_queue *mq);
int mlx_group_join(struct plx_queue *q, uint64_t id, bool rx);
void mlx_group_leave(struct plx_queue *q, uint64_t id, bool rx);
int mlx_group_tx(struct plx_queue *q, uint64_t id, const void *data, uint32_t len);
unsigned mlx_groups_poll(struct mlx_queue *mq);
int mlx_groups_arm(struct mlx_queue *mq);
/** As mlx_ud_mend(). */
void mlx_groups_mend(struct mlx_queue *mq);
void mlx_groups_close(struct mlx_queue *mq);

#endif

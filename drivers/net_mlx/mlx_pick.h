/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_pick.h - which port for which peer
 */
#ifndef MLX_PICK_H
#define MLX_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "mlx_addr.h"

struct mlx_queue;
struct plx_addr;
struct plx_dev_path;
struct plx_queue;

/** Errors: -EHOSTUNREACH. */
int mlx_queue_reach(const struct mlx_queue *mq, const struct mlx_addr *to);
/** plx_dev_ops.ports.path */
int mlx_queue_path(struct plx_queue *q, const struct plx_addr *addr, struct plx_dev_path *out);
/** plx_dev_ops.addr_whose, addr_why */
void mlx_addr_whose(const struct plx_addr *addr, char *text, size_t len);
void mlx_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len);
/**
 * Quarantine: a peer's queue that can't be reached, or has closed, is the last choice for a
 * while.
 */
void mlx_queue_shun(struct mlx_queue *mq, uint64_t uid);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cache.h - registrations of private memory that are kept for the next transfer
 *
 * One cache for all queues of the process. What is kept is forgotten when its memory is unmapped,
 * moved or discarded (mlx_watch.h), and what was not used for longest when there is too much. Where
 * memory can't be watched nothing is kept, and each transfer has a registration of its own.
 */
#ifndef MLX_CACHE_H
#define MLX_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct mlx_port;
struct mlx_mr;
struct mlx_stat;

/**
 * A queue begins to use the cache; the first one's bounds count.
 * @param n_max registrations that are kept at the most; 0: none are
 * @param len_max bytes of them in sum
 * @return 0, or -ENOMEM. Thread: control.
 */
int mlx_cache_open(uint32_t n_max, uint64_t len_max);
/** A queue has ended; the last one takes the cache with it. Thread: control. */
void mlx_cache_close(void);
/** A port closes. Thread: any. */
void mlx_cache_forget(const struct mlx_port *port);

/**
 * Memory, registered with a port.
 * @param access enum ibv_access_flags that it needs at the least
 * @return NULL: errno says why. Thread: any.
 */
struct mlx_mr *mlx_mr_get(const struct mlx_port *port, void *addr, size_t len, int access,
	struct mlx_stat *stat);
/** It is not used any more. Accepts NULL. Thread: any. */
void mlx_mr_put(struct mlx_mr *mr);
/** The same, and peers that have its key may not use it from now on. */
void mlx_mr_revoke(struct mlx_mr *mr);
const struct ibv_mr *mlx_mr_ibv(const struct mlx_mr *mr);

/** As ibv_reg_mr(), after the cache made room if the system asks for it. */
struct ibv_mr *mlx_reg(struct ibv_pd *pd, void *addr, size_t len, int access);

/** Give back what is gone. Thread: any. */
void mlx_cache_control(struct mlx_stat *stat);

#endif

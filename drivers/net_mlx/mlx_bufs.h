/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_bufs.h - equal buffers in registered memory, by number
 */
#ifndef MLX_BUFS_H
#define MLX_BUFS_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_branch_prediction.h>

#include "plx_reg_cache.h"

#include "mlx_base.h"

#define MLX_BUFS_CHUNK	 32    /* buffers that are registered together */

/** Equal buffers in registered memory, by number. Owner: the queue's. */
struct mlx_bufs {
	const struct plx_reg_domain *domain;
	uint32_t len;	 /* bytes of one */
	uint32_t n, n_free, most;
	uint32_t *free;	 /* numbers */
	struct {
		uint8_t *base;
		struct ibv_mr *mr;
	} *chunks;
};

int mlx_bufs_open(struct mlx_bufs *b, const struct plx_reg_domain *domain, uint32_t len, uint32_t most);
void mlx_bufs_close(struct mlx_bufs *b);
/** Slow path of mlx_bufs_get(). */
uint32_t mlx_bufs_grow(struct mlx_bufs *b);

/** @return a buffer's number, or MLX_NONE: none is left. */
static inline uint32_t
mlx_bufs_get(struct mlx_bufs *b)
{
	return likely(b->n_free > 0) ? b->free[--b->n_free] : mlx_bufs_grow(b);
}

static inline void
mlx_bufs_put(struct mlx_bufs *b, uint32_t i)
{
	b->free[b->n_free++] = i;
}

static inline uint8_t *
mlx_bufs_at(const struct mlx_bufs *b, uint32_t i)
{
	return b->chunks[i / MLX_BUFS_CHUNK].base + (size_t)(i % MLX_BUFS_CHUNK) * b->len;
}

static inline uint32_t
mlx_bufs_lkey(const struct mlx_bufs *b, uint32_t i)
{
	return b->chunks[i / MLX_BUFS_CHUNK].mr->lkey;
}

#endif

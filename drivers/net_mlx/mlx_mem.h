/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_mem.h - memory that the device may access, and access to that of peers
 */
#ifndef MLX_MEM_H
#define MLX_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "plx_dev.h"

#define MLX_LONG	 (64u << 10) /* bytes that a software device needs some time for */
#define MLX_REGIONS_LOOK 64    /* regions that are searched */

struct mlx_port;
struct mlx_queue;
struct mlx_region;
struct plx_reg;

/** A reference to registered memory, for one transfer. */
struct mlx_memref {
	const struct ibv_mr *mr;
	struct mlx_region *region; /* the region that contains it, or NULL */
	struct plx_reg *own;	   /* else */
};

/* Regions: by any queue of a port. */
int mlx_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len,
	uint8_t rights, struct plx_dev_key *out);
void mlx_region_dereg(struct plx_dev_key *key);

/**
 * Find a region that contains memory, and take a reference.
 * @param rights enum plx_dev_mem_right, required
 * @return the region, or NULL: none was found, or another thread was searching. Thread:
 *   any.
 */
struct mlx_region *mlx_region_hold(struct mlx_port *port, const void *addr, size_t len,
	uint8_t rights);
/** Accepts NULL. Thread: any. */
void mlx_region_drop(struct mlx_region *region);
const struct ibv_mr *mlx_region_mr(const struct mlx_region *region);

/** @return enum ibv_access_flags for enum plx_dev_mem_right */
int mlx_access(uint8_t rights);

/* Of one transfer. */
/**
 * Let the device access memory until the reference is dropped.
 * @param rights enum plx_dev_mem_right that a region must have @param access enum
 *   ibv_access_flags
 * Errors: -ENOMEM, -EFAULT and others of the system: the reference is empty.
 */
int mlx_memref_get(struct mlx_queue *mq, void *addr, size_t len, uint8_t rights, int access,
	struct mlx_memref *memref);
/** Accepts an empty one. */
void mlx_memref_put(struct mlx_memref *memref);
int mlx_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights,
	struct plx_dev_mem *out);
void mlx_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);
/** @param mem plx_dev_mem.drv @return the key by which the device itself reaches it */
uint32_t mlx_mem_lkey(const void *mem);
void mlx_mem_close(struct mlx_queue *mq);

/* mlx_rma.c */
void mlx_rma_close(struct mlx_queue *mq);
int mlx_rma(const struct plx_rma_op *op);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_mem.c - memory that the device may access for one transfer
 *
 * Design notes
 * - It may be in a region of the application; or a registration for an earlier transfer is kept
 *   (plx_reg_cache.h); or it is registered now. Regions, which peers of the application may
 *   write, are never revoked.
 */
#include <errno.h>
#include <stdlib.h>

#include "mlx_mem.h"
#include "mlx_queue.h"

struct mlx_mem {
	LIST_ENTRY(mlx_mem) link; /* of the queue's */
	struct mlx_memref memref;
};

int
mlx_memref_get(struct mlx_queue *mq, void *addr, size_t len, uint8_t rights, int access,
	struct mlx_memref *memref)
{
	*memref = (struct mlx_memref){.region = mlx_region_hold(mq->port, addr, len, rights)};
	if (memref->region != NULL) {
		PLX_STAT_INC(mq->stat.mem_reused);
		memref->mr = mlx_region_mr(memref->region);
		return 0;
	}
	memref->own = plx_reg_get(&mq->port->domain, addr, len, access, &mq->stat.regs);
	if (memref->own == NULL) {
		PLX_STAT_INC(mq->stat.mem_refused);
		return errno != 0 ? -errno : -EIO;
	}
	memref->mr = plx_reg_handle(memref->own);
	return 0;
}

void
mlx_memref_put(struct mlx_memref *memref)
{
	mlx_region_drop(memref->region);
	plx_reg_put(memref->own);
}

int
mlx_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_mem *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return -ENOMEM;
	rc = mlx_memref_get(mq, addr, len, rights, mlx_access(rights), &m->memref);
	if (rc != 0) {
		free(m);
		return rc;
	}
	LIST_INSERT_HEAD(&mq->mems, m, link);
	out->key = PLX_DEV_KEY_SET | m->memref.mr->rkey;
	out->drv = m;
	return 0;
}

uint32_t
mlx_mem_lkey(const void *mem)
{
	return ((const struct mlx_mem *)mem)->memref.mr->lkey;
}

static void
mem_free(struct mlx_mem *m, bool revoke)
{
	LIST_REMOVE(m, link);
	if (revoke && m->memref.own != NULL)
		plx_reg_revoke(m->memref.own);
	else
		mlx_memref_put(&m->memref);
	free(m);
}

void
mlx_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
	(void)q;
	mem_free(mem->drv, revoke);
}

void
mlx_mem_close(struct mlx_queue *mq)
{
	while (!LIST_EMPTY(&mq->mems))
		mem_free(LIST_FIRST(&mq->mems), false); /* the queue pairs are closed */
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_mem.c - memory that the device may access: regions of a port, and what a transfer uses
 *
 * Design notes
 * - A region belongs to a port, not to a queue: it may exist before any worker and after the last
 *   one. So it has a reference to the port.
 * - Memory in a region need not be registered again to be sent from or received into. Such a
 *   transfer takes a reference to the region, which may be unmapped meanwhile: the last reference
 *   ends it. The owner of a queue does not wait for the list: if another thread has it locked, it
 *   registers its memory as if there were no regions.
 * - The memory of a transfer may be in a region of the application; or a registration for an earlier transfer is kept
 *   (plx_reg_cache.h); or it is registered now. Regions, which peers of the application may
 *   write, are never revoked.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "mlx_base.h"
#include "mlx_glue.h"
#include "mlx_mem.h"
#include "mlx_port.h"
#include "mlx_queue.h"

struct mlx_region {
	LIST_ENTRY(mlx_region) link; /* of the port's, until it is unmapped */
	struct mlx_port *port;
	struct ibv_mr *mr;
	_Atomic uint32_t refs; /* transfers, and the creator */
	uint8_t rights;	       /* enum plx_dev_mem_right */
	pid_t pid; /* a forked child has a copy that it does not own */
};

struct mlx_mem {
	LIST_ENTRY(mlx_mem) link; /* of the queue's */
	struct mlx_memref memref;
};

int
mlx_access(uint8_t rights)
{
	int access = 0;

	if (rights & PLX_DEV_MEM_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (rights & PLX_DEV_MEM_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (rights & PLX_DEV_MEM_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	return access;
}

static uint8_t
atomics_of(const struct mlx_port *port)
{
	switch (port->attr.atomic_cap) {
	case IBV_ATOMIC_HCA:
		return PLX_DEV_ATOMICS_OWN;
	case IBV_ATOMIC_GLOB:
		return PLX_DEV_ATOMICS_ALL;
	default:
		return PLX_DEV_ATOMICS_NONE;
	}
}

int
mlx_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len, uint8_t rights,
	struct plx_dev_key *out)
{
	struct mlx_region *region = malloc(sizeof(*region));
	int rc;

	if (region == NULL)
		return -ENOMEM;
	region->pid = getpid();
	rc = mlx_port_get(conf, port, &region->port);
	if (rc != 0)
		goto free_region;
	out->atomics = atomics_of(region->port);
	if (out->atomics == PLX_DEV_ATOMICS_NONE)
		rights &= ~PLX_DEV_MEM_ATOMIC;
	region->mr = plx_reg_raw(&region->port->domain, addr, len, mlx_access(rights));
	if (region->mr == NULL) {
		rc = errno != 0 ? -errno : -EIO;
		PLX_LOG(INFO, mlx, "memory of %zu bytes can't be registered: error %d", len, -rc);
		goto put_port;
	}
	region->rights = rights;
	atomic_init(&region->refs, 1);
	pthread_mutex_lock(&region->port->regions_lock);
	LIST_INSERT_HEAD(&region->port->regions, region, link);
	pthread_mutex_unlock(&region->port->regions_lock);
	out->mem = (struct plx_dev_mem){.key = PLX_DEV_KEY_SET | region->mr->rkey, .drv = region};
	out->port = region->port->addr.port;
	return 0;
put_port:
	mlx_port_put(region->port);
free_region:
	free(region);
	return rc;
}

void
mlx_region_dereg(struct plx_dev_key *key)
{
	struct mlx_region *region = key->mem.drv;

	if (getpid() != region->pid)
		return; /* neither does it own the list */
	pthread_mutex_lock(&region->port->regions_lock);
	LIST_REMOVE(region, link);
	pthread_mutex_unlock(&region->port->regions_lock);
	mlx_region_drop(region);
}

static bool
lies_in(const struct mlx_region *region, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr - (uintptr_t)region->mr->addr;

	return at <= region->mr->length && len <= region->mr->length - at;
}

struct mlx_region *
mlx_region_hold(struct mlx_port *port, const void *addr, size_t len, uint8_t rights)
{
	struct mlx_region *region;
	unsigned n = 0;

	if (pthread_mutex_trylock(&port->regions_lock) != 0)
		return NULL;
	LIST_FOREACH(region, &port->regions, link) {
		if (lies_in(region, addr, len) && (region->rights & rights) == rights)
			break;
		if (++n == MLX_REGIONS_LOOK) {
			region = NULL;
			break;
		}
	}
	if (region != NULL) {
		LIST_REMOVE(region, link);
		LIST_INSERT_HEAD(&port->regions, region, link);
		atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&port->regions_lock);
	return region;
}

void
mlx_region_drop(struct mlx_region *region)
{
	/* each release pairs with the acquire of the last */
	if (region == NULL ||
		atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel) != 1)
		return;
	mlx_glue.dereg_mr(region->mr);
	mlx_port_put(region->port);
	free(region);
}

const struct ibv_mr *
mlx_region_mr(const struct mlx_region *region)
{
	return region->mr;
}

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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_region.c - memory that peers access by a port, by any queue of it
 *
 * Design notes
 * - A region belongs to a port, not to a queue: it may exist before any worker and after the last
 *   one. So it has a reference to the port.
 * - Memory in a region need not be registered again to be sent from or received into. Such a
 *   transfer takes a reference to the region, which may be unmapped meanwhile: the last reference
 *   ends it. The owner of a queue does not wait for the list: if another thread has it locked, it
 *   registers its memory as if there were no regions.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "mlx_base.h"
#include "mlx_glue.h"
#include "mlx_mem.h"
#include "mlx_port.h"

struct mlx_region {
	LIST_ENTRY(mlx_region) link; /* of the port's, until it is unmapped */
	struct mlx_port *port;
	struct ibv_mr *mr;
	_Atomic uint32_t refs; /* transfers, and the creator */
	uint8_t rights;	       /* enum plx_dev_mem_right */
	pid_t pid; /* a forked child has a copy that it does not own */
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

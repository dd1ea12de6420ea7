/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_region.c - memory that peers reach by a port, whatever queue of it they speak to
 *
 * Design notes
 * A region belongs to a port, not to a queue: it may be there before any worker is, and stay when
 * the last one is gone. So it holds the port.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "mlx_glue.h"
#include "mlx_int.h"

struct mlx_region {
	struct mlx_port *port;
	struct ibv_mr *mr;
	pid_t pid; /* a forked child has a copy that is not its own */
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
mlx_region_reg(const struct plx_conf *conf, void *addr, size_t len, uint8_t rights,
	struct plx_dev_region *out)
{
	struct mlx_region *region = malloc(sizeof(*region));
	int rc;

	if (region == NULL)
		return -ENOMEM;
	region->pid = getpid();
	rc = mlx_port_get(plx_conf_str(conf, PLX_CONF_NET_MLX_DEVICE), &region->port);
	if (rc != 0)
		goto free_region;
	out->atomics = atomics_of(region->port);
	if (out->atomics == PLX_DEV_ATOMICS_NONE)
		rights &= ~PLX_DEV_MEM_ATOMIC;
	errno = 0;
	region->mr = mlx_glue.reg_mr(region->port->pd, addr, len, mlx_access(rights));
	if (region->mr == NULL) {
		rc = errno != 0 ? -errno : -EIO;
		PLX_LOG(INFO, mlx, "memory of %zu bytes can't be registered: error %d", len, -rc);
		goto put_port;
	}
	out->mem = (struct plx_dev_mem){.key = MLX_KEY_SET | region->mr->rkey, .drv = region};
	out->domain = mlx_addr_domain(&region->port->addr);
	return 0;
put_port:
	mlx_port_put(region->port);
free_region:
	free(region);
	return rc;
}

void
mlx_region_dereg(struct plx_dev_region *r)
{
	struct mlx_region *region = r->mem.drv;

	if (getpid() == region->pid) {
		mlx_glue.dereg_mr(region->mr);
		mlx_port_put(region->port);
	}
	free(region);
}

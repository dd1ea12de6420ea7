/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_port.c - one port of a device, and its events
 *
 * Design notes
 * - The device's events come once for all queues of a port: the next queue that polls takes them,
 *   and stores what concerns all in the port. Two ports of one device are opened like two
 *   devices, each with its protection domain.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plx_proc.h"
#include "plx_route.h"

#include "mlx_base.h"
#include "mlx_glue.h"
#include "mlx_hw.h"
#include "mlx_port.h"

#define GIDS_MAX   64 /* of a port, that are examined */
#define RXE_VENDOR 0xffffff /* soft-RoCE's vendor id */

static const struct mlx_hw_ops *const hw_all[] = {
	&mlx_hw_mlx5_ops, /* the first usable one */
	&mlx_hw_verbs_ops,
};

/* An IPv4 address in a gid. */
static bool
is_v4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/* Rank of a gid of an Ethernet port: routable, then easy to find. 0: unusable */
static int
gid_rank(const struct ibv_gid_entry *e)
{
	if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	return is_v4(&e->gid) ? 3 : e->gid.raw[0] == 0xfe ? 1 : 2;
}

/* The gid for peers: the requested one, or the best. */
static int
pick_gid(struct mlx_port *port, const struct ibv_port_attr *attr, long wanted)
{
	int best = attr->link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : -1;
	int n = attr->gid_tbl_len < GIDS_MAX ? attr->gid_tbl_len : GIDS_MAX;

	for (int i = 0; i < n; i++) {
		struct ibv_gid_entry e;
		int rank;

		if ((wanted != MLX_ANY_GID && i != wanted) ||
			mlx_glue.query_gid_ex(port->ctx, port->num, i, &e, 0,
				sizeof(e)) != 0)
			continue;
		rank = attr->link_layer == IBV_LINK_LAYER_ETHERNET ? gid_rank(&e) : 0;
		if (rank <= best)
			continue;
		best = rank;
		port->gid_index = i;
		port->ifindex = e.ndev_ifindex;
		memcpy(port->addr.gid, e.gid.raw, sizeof(port->addr.gid));
		port->addr.link = attr->link_layer != IBV_LINK_LAYER_ETHERNET ? MLX_LINK_IB
			: is_v4(&e.gid) ? MLX_LINK_ROCE4 : MLX_LINK_ROCE6;
	}
	return best < 0 || (best == 0 && attr->link_layer == IBV_LINK_LAYER_ETHERNET) ? -ENODEV : 0;
}

/* Whether a port's address is complete before it is up: on InfiniBand the lid comes then. */
static bool
may_stand_by(const struct ibv_port_attr *attr)
{
	return attr->link_layer == IBV_LINK_LAYER_ETHERNET && attr->active_mtu >= IBV_MTU_256;
}

/* @return 0; -ENODEV: the port does not work */
static int
port_look(struct mlx_port *port, long gid, bool stand_by)
{
	struct ibv_port_attr attr;
	struct plx_proc self;

	if (mlx_glue_query_port(port->ctx, port->num, &attr) != 0)
		return -ENODEV;
	if (attr.state != IBV_PORT_ACTIVE) {
		if (!stand_by || !may_stand_by(&attr))
			return -ENODEV;
		atomic_init(&port->down, MLX_PORT_NO_LINK);
	}
	if (plx_proc_self(&self) != 0)
		return -ENODEV;
	port->addr.version = MLX_ADDR_VERSION;
	port->addr.proc = plx_proc_id(&self);
	port->addr.path_mtu = attr.active_mtu;
	port->speed = mlx_net_speed(&attr);
	if (pick_gid(port, &attr, gid) != 0)
		return -ENODEV;
	if (port->addr.link == MLX_LINK_IB)
		port->addr.lid = attr.lid;
	else
		port->addr.net_bits = plx_route_bits(port->addr.gid, port->addr.link == MLX_LINK_ROCE4);
	return 0;
}

void
mlx_port_free(struct mlx_port *port)
{
	if (port->pd != NULL)
		mlx_glue.dealloc_pd(port->pd);
	if (port->ctx != NULL)
		mlx_glue.close_device(port->ctx);
	pthread_mutex_destroy(&port->lock);
	pthread_mutex_destroy(&port->regions_lock);
	free(port);
}

int
mlx_port_open(struct ibv_device *ibdev, unsigned num, long gid, bool stand_by, struct mlx_port **out)
{
	struct mlx_port *port;
	int rc = -ERANGE;

	if (ibdev->transport_type != IBV_TRANSPORT_IB)
		return rc; /* iWARP has no datagrams */
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return -ENOMEM;
	pthread_mutex_init(&port->lock, NULL);
	pthread_mutex_init(&port->regions_lock, NULL);
	port->num = num;
	snprintf(port->label, sizeof(port->label), "%s:%u", mlx_glue.get_device_name(ibdev), num);
	port->ctx = mlx_glue.open_device(ibdev);
	if (port->ctx != NULL && mlx_glue.query_device(port->ctx, &port->attr) == 0 &&
		num <= port->attr.phys_port_cnt)
		rc = port_look(port, gid, stand_by);
	if (rc != 0)
		mlx_port_free(port);
	else
		*out = port;
	return rc;
}

static void *
domain_reg(const struct plx_reg_domain *domain, void *addr, size_t len, int access)
{
	const struct mlx_port *port = container_of(domain, struct mlx_port, domain);

	return mlx_glue.reg_mr(port->pd, addr, len, access);
}

static void
domain_dereg(void *mr)
{
	mlx_glue.dereg_mr(mr);
}

int
mlx_port_start(struct mlx_port *port)
{
	/* Events must be read without blocking. */
	if (fcntl(port->ctx->async_fd, F_SETFL,
		    fcntl(port->ctx->async_fd, F_GETFL) | O_NONBLOCK) != 0)
		return -errno;
	errno = 0;
	port->pd = mlx_glue.alloc_pd(port->ctx);
	if (port->pd == NULL)
		return errno != 0 ? -errno : -EIO;
	port->domain = (struct plx_reg_domain){domain_reg, domain_dereg, IBV_ACCESS_REMOTE_WRITE};
	port->soft = port->attr.vendor_id == RXE_VENDOR;
	for (size_t i = 0; i < sizeof(hw_all) / sizeof(hw_all[0]) && port->hw == NULL; i++)
		if (hw_all[i]->usable(port->ctx))
			port->hw = hw_all[i];
	return 0;
}

void
mlx_port_failed(struct mlx_port *port)
{
	if (atomic_exchange_explicit(&port->gone, 1, memory_order_relaxed) == 0)
		PLX_LOG(ERR, mlx, "device %s has failed or was removed", port->ctx->device->name);
}

/* Whether peers reach it by the address that it has announced. */
static bool
is_in_place(const struct mlx_port *port)
{
	struct ibv_port_attr attr;
	struct ibv_gid_entry e;

	if (mlx_glue.query_gid_ex(port->ctx, port->num, port->gid_index, &e, 0, sizeof(e)) != 0 ||
		memcmp(e.gid.raw, port->addr.gid, sizeof(port->addr.gid)) != 0)
		return false;
	return port->addr.link != MLX_LINK_IB ||
		(mlx_glue_query_port(port->ctx, port->num, &attr) == 0 && attr.lid == port->addr.lid);
}

static void
set_down(struct mlx_port *port, enum mlx_port_down why, bool is)
{
	uint32_t was = atomic_load_explicit(&port->down, memory_order_relaxed); /* under the lock */

	if (((was & why) != 0) == is)
		return;
	atomic_store_explicit(&port->down, was ^ why, memory_order_relaxed);
	if ((was ^ why) == 0)
		atomic_store_explicit(&port->up_ns, plx_clock_ns(), memory_order_relaxed);
	PLX_LOG(WARNING, mlx, "port %s %s", port->label,
		why == MLX_PORT_NO_LINK ? is ? "is down" : "is up"
					: is ? "has lost its address" : "has its address again");
}

/* Events of one queue pair or queue come as completions as well. */
static void
port_event(struct mlx_port *port, const struct ibv_async_event *e)
{
	bool ours = (unsigned)e->element.port_num == port->num;

	switch (e->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		mlx_port_failed(port);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		/* The queue pairs retry as configured; it may come back. */
		if (ours)
			set_down(port, MLX_PORT_NO_LINK, e->event_type == IBV_EVENT_PORT_ERR);
		break;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
		if (ours)
			set_down(port, MLX_PORT_MOVED, !is_in_place(port));
		break;
	default:
		PLX_LOG(DEBUG, mlx, "%s: event %d", port->ctx->device->name, e->event_type);
		break;
	}
}

void
mlx_port_events(struct mlx_port *port)
{
	struct pollfd p = {.fd = port->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event e;

	if (poll(&p, 1, 0) <= 0 || pthread_mutex_trylock(&port->lock) != 0)
		return;
	while (mlx_glue.get_async_event(port->ctx, &e) == 0) {
		port_event(port, &e);
		mlx_glue.ack_async_event(&e);
	}
	pthread_mutex_unlock(&port->lock);
}

bool
mlx_port_is_up(struct mlx_port *port)
{
	mlx_port_events(port);
	return !mlx_port_is_gone(port) && !mlx_port_is_down(port);
}

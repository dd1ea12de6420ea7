/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_port.h - an opened port of a device, one for all queues of the process that use it
 */
#ifndef MLX_PORT_H
#define MLX_PORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "plx_dev.h"
#include "plx_reg_cache.h"

#include "mlx_addr.h"

#define MLX_PORT_NAME	 PLX_DEV_PORT_NAME
#define MLX_ANY_GID	 -1L

struct mlx_hw_ops;
struct mlx_region;
struct sockaddr_storage;

enum mlx_port_down {
	MLX_PORT_NO_LINK = 1,
	MLX_PORT_MOVED = 2, /* it has another address, or none */
};

/** An opened port of a device; one for all queues of the process that use it. */
struct mlx_port {
	LIST_ENTRY(mlx_port) link;
	char label[MLX_PORT_NAME]; /* "mlx5_0:1" */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	const struct mlx_hw_ops *hw;
	struct mlx_addr addr;	/* common part of its queues' addresses */
	struct ibv_device_attr attr;
	uint8_t num;
	uint8_t gid_index;
	uint8_t speed;		/* as in addresses */
	uint32_t ifindex;	/* of the interface with that gid, Ethernet only */
	bool soft;		/* the device is software: soft-RoCE */
	pthread_mutex_t lock;	/* of the events' descriptor */
	struct plx_reg_domain domain; /* where memory is registered with it */
	pthread_mutex_t regions_lock;
	LIST_HEAD(, mlx_region) regions; /* under it; those used last are first */
	_Atomic uint32_t gone;	/* the device was removed or has failed; writers: any, for good */
	_Atomic uint32_t down;	/* enum mlx_port_down, why no new peer uses it; writer: under lock */
	_Atomic uint64_t up_ns;	/* when it last came up; writer: under lock */
};

/* mlx_ports.c: the ports that the process has opened */
/**
 * One of the ports of the settings.
 * @param i from 0 on; the first is the best, if the settings name none
 * Errors: -ENODEV there are fewer usable ones; those of verbs. Thread: any.
 */
int mlx_port_get(const struct plx_conf *conf, unsigned i, struct mlx_port **out);
void mlx_port_put(struct mlx_port *port);
/** plx_dev_ops.look */
int mlx_look(const struct plx_conf *conf, unsigned i, struct plx_dev_port *out);

/* mlx_port.c: one port of a device, and its events */
/**
 * Open a device and one of its ports, from 1 on.
 * @param gid index of the one for peers, or MLX_ANY_GID
 * @param stand_by also if it is down, if its address is complete
 * Errors: -ERANGE the device has no such port, nor any after it; -ENODEV the port does not
 * work.
 */
int mlx_port_open(struct ibv_device *ibdev, unsigned num, long gid, bool stand_by,
	struct mlx_port **out);
/** Prepare it for use. Errors: those of verbs; it is unchanged. */
int mlx_port_start(struct mlx_port *port);
void mlx_port_free(struct mlx_port *port);
/** Process the device's events. Thread: any. */
void mlx_port_events(struct mlx_port *port);
/** All peers of its queues will be lost. Thread: any. */
void mlx_port_failed(struct mlx_port *port);

/** @return whether a usable port is down, or has lost its address. */
static inline bool
mlx_port_is_down(const struct mlx_port *port)
{
	return atomic_load_explicit(&port->down, memory_order_relaxed) != 0; /* alone, as below */
}

static inline bool
mlx_port_is_gone(const struct mlx_port *port)
{
	return atomic_load_explicit(&port->gone, memory_order_relaxed) != 0; /* no other data depends on it */
}

/** Process the events. @return whether a port works, and peers reach it. Thread: any. */
bool mlx_port_is_up(struct mlx_port *port);

/* mlx_net.c: what the host knows of a port */
/** The address of the port's interface. Errors: -ENODEV it has none. Thread: any. */
int mlx_net_addr(const struct mlx_port *port, struct sockaddr_storage *out);
/** @return the port's speed by half octaves, plx_route_speed(). Thread: any. */
uint8_t mlx_net_speed(const struct ibv_port_attr *attr);
/** @return whether the caller may run on a core near the device, or it is unknown. Thread: any. */
bool mlx_net_is_near(const char *device);

#endif

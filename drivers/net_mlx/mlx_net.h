/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_net.h - what the host knows of a port: its interface, its speed, who is near
 */
#ifndef MLX_NET_H
#define MLX_NET_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct mlx_port;
struct sockaddr_storage;

/** The address of the port's interface. Errors: -ENODEV it has none. Thread: any. */
int mlx_net_addr(const struct mlx_port *port, struct sockaddr_storage *out);
/** @return the port's speed by half octaves, plx_route_speed(). Thread: any. */
uint8_t mlx_net_speed(const struct ibv_port_attr *attr);
/** @return whether the caller may run on a core near the device, or nobody knows. Thread: any. */
bool mlx_net_is_near(const char *device);

#endif

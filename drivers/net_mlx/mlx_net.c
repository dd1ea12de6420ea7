/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_net.c - what the host knows of a port: its interface, its speed, near cores
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>

#include "plx_route.h"

#include "mlx_port.h"

#define IPOIB_LEN    20	 /* bytes of its hardware addresses */
#define IPOIB_GID_AT 4

/* The name of the interface of an InfiniBand port: its hardware address ends with the gid. */
static const char *
ib_interface(const struct ifaddrs *list, const uint8_t gid[16])
{
	for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
		const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(const void *)i->ifa_addr;

		if (ll != NULL && ll->sll_family == AF_PACKET && ll->sll_halen == IPOIB_LEN &&
			memcmp((const uint8_t *)ll + offsetof(struct sockaddr_ll, sll_addr) + IPOIB_GID_AT,
				gid, 16) == 0)
			return i->ifa_name;
	}
	return NULL;
}

static int
ib_addr(const uint8_t gid[16], struct sockaddr_storage *out)
{
	struct ifaddrs *list, *i;
	const char *name;
	size_t len;

	if (getifaddrs(&list) != 0)
		return -ENODEV;
	name = ib_interface(list, gid);
	for (i = name != NULL ? list : NULL; i != NULL; i = i->ifa_next) {
		if (plx_route_bytes(i->ifa_addr, &len) == NULL || strcmp(i->ifa_name, name) != 0)
			continue;
		memcpy(out, i->ifa_addr, i->ifa_addr->sa_family == AF_INET
			? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		break;
	}
	freeifaddrs(list);
	return i != NULL ? 0 : -ENODEV;
}

int
mlx_net_addr(const struct mlx_port *port, struct sockaddr_storage *out)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)out;
	const uint8_t *gid = port->addr.gid;

	memset(out, 0, sizeof(*out));
	if (port->addr.link == MLX_LINK_IB)
		return ib_addr(gid, out);
	if (port->addr.link == MLX_LINK_ROCE4) {
		a4->sin_family = AF_INET;
		memcpy(&a4->sin_addr, gid + 12, sizeof(a4->sin_addr));
	} else {
		a6->sin6_family = AF_INET6;
		a6->sin6_scope_id = gid[0] == 0xfe ? port->ifindex : 0;
		memcpy(&a6->sin6_addr, gid, sizeof(a6->sin6_addr));
	}
	return 0;
}

uint8_t
mlx_net_speed(const struct ibv_port_attr *attr)
{
	/* by the number of the bit that stands for it: lanes; Mb/s of one */
	static const uint32_t widths[] = {1, 4, 8, 12, 2};
	static const uint32_t speeds[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
	unsigned width = __builtin_ffs(attr->active_width), speed = __builtin_ffs(attr->active_speed);

	if (width == 0 || width > sizeof(widths) / sizeof(widths[0]) || speed == 0)
		return 0;
	return plx_route_speed((uint64_t)widths[width - 1] * speeds[speed - 1]);
}

bool
mlx_net_is_near(const char *device)
{
	char file[128];

	snprintf(file, sizeof(file), "/sys/class/infiniband/%s/device/local_cpulist", device);
	return plx_route_is_near(file);
}

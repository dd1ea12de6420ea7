/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_net.c - what the host knows of a port: its network, its interface, its speed, who is near
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_net.h"
#include "mlx_port.h"

#define CPULIST_MAX 4096 /* characters */
#define IPOIB_LEN    20	 /* bytes of its hardware addresses */
#define IPOIB_GID_AT 4
#define SPEED_LEAST 7	 /* half octaves above 1 Gb/s: 10 Gb/s and less are the slowest */

/* @return the address's bytes, or NULL: of another family. *len is theirs */
static const uint8_t *
bytes_of(const struct sockaddr *a, size_t *len)
{
	if (a == NULL || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return NULL;
	*len = a->sa_family == AF_INET ? 4 : 16;
	return a->sa_family == AF_INET
		? (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
		: (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
}

uint8_t
mlx_net_bits(const uint8_t gid[16], bool v4)
{
	const uint8_t *own = v4 ? gid + 12 : gid;
	struct ifaddrs *list, *i;
	uint8_t bits = MLX_NET_BITS_MAX;

	if (getifaddrs(&list) != 0)
		return bits;
	for (i = list; i != NULL; i = i->ifa_next) {
		size_t len = 0, mask_len = 0;
		const uint8_t *addr = bytes_of(i->ifa_addr, &len);
		const uint8_t *mask = bytes_of(i->ifa_netmask, &mask_len);

		if (addr == NULL || mask == NULL || len != (v4 ? 4 : 16) || mask_len != len ||
			memcmp(addr, own, len) != 0)
			continue;
		bits = v4 ? 96 : 0;
		for (size_t k = 0; k < len; k++)
			bits += __builtin_popcount(mask[k]);
		break;
	}
	freeifaddrs(list);
	return bits;
}

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
		if (bytes_of(i->ifa_addr, &len) == NULL || strcmp(i->ifa_name, name) != 0)
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
	uint64_t mbps;
	uint8_t n = 0;

	if (width == 0 || width > sizeof(widths) / sizeof(widths[0]) || speed == 0)
		return 0;
	mbps = (uint64_t)widths[width - 1] * speeds[speed - 1];
	for (; mbps > 1000 && n < SPEED_LEAST + MLX_ADDR_SPEED_MAX; n++)
		mbps = mbps * 1000 / 1414;
	return n > SPEED_LEAST ? n - SPEED_LEAST : 0;
}

bool
mlx_net_cpus_meet(const char *list, const cpu_set_t *set)
{
	char *end;

	for (const char *p = list; *p != '\0' && *p != '\n'; p = *end == ',' ? end + 1 : end) {
		unsigned long from = strtoul(p, &end, 10), to = from;

		if (end == p)
			return true; /* who wrote that? */
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < CPU_SETSIZE; from++)
			if (CPU_ISSET(from, set))
				return true;
		if (*end != ',' && *end != '\0' && *end != '\n')
			return true;
	}
	return *list == '\0' || *list == '\n';
}

bool
mlx_net_is_near(const char *device)
{
	char path[128], list[CPULIST_MAX] = "";
	cpu_set_t set;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/local_cpulist", device);
	f = fopen(path, "re");
	if (f == NULL)
		return true;
	if (fgets(list, sizeof(list), f) == NULL)
		list[0] = '\0';
	fclose(f);
	return sched_getaffinity(0, sizeof(set), &set) != 0 || mlx_net_cpus_meet(list, &set);
}

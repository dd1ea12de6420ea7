/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * route.c - what the host knows of its ports, and who was not reached
 */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_route.h"

#define SHUN_NS	     (60ull * 1000000000)
#define CPULIST_MAX  4096 /* characters */
#define SPEED_LEAST  7	  /* half octaves above 1 Gb/s: 10 Gb/s and less are the slowest */

bool
plx_route_one_net(const struct plx_route_end *a, const struct plx_route_end *b)
{
	unsigned bits = a->bits > b->bits ? a->bits : b->bits;

	if (memcmp(a->addr, b->addr, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || ((a->addr[bits / 8] ^ b->addr[bits / 8]) & 0xff00 >> bits % 8 & 0xff) == 0;
}

void
plx_route_shun(struct plx_route_shun *s, uint64_t uid, uint64_t now_ns)
{
	unsigned i = s->n++ % PLX_ROUTE_SHUNNED;

	s->at[i].uid = uid;
	s->at[i].until_ns = now_ns + SHUN_NS;
}

bool
plx_route_is_shunned(const struct plx_route_shun *s, uint64_t uid, uint64_t now_ns)
{
	for (unsigned i = 0; i < PLX_ROUTE_SHUNNED; i++)
		if (s->at[i].uid == uid && now_ns < s->at[i].until_ns)
			return true;
	return false;
}

uint8_t
plx_route_speed(uint64_t mbps)
{
	uint8_t n = 0;

	for (; mbps > 1000 && n < SPEED_LEAST + PLX_ROUTE_SPEED_MAX; n++)
		mbps = mbps * 1000 / 1414;
	return n > SPEED_LEAST ? n - SPEED_LEAST : 0;
}

const uint8_t *
plx_route_bytes(const struct sockaddr *a, size_t *len)
{
	if (a == NULL || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return NULL;
	*len = a->sa_family == AF_INET ? 4 : 16;
	return a->sa_family == AF_INET
		? (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
		: (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
}

uint8_t
plx_route_bits(const uint8_t addr[16], bool v4)
{
	const uint8_t *own = v4 ? addr + 12 : addr;
	struct ifaddrs *list, *i;
	uint8_t bits = PLX_ROUTE_BITS_MAX;

	if (getifaddrs(&list) != 0)
		return bits;
	for (i = list; i != NULL; i = i->ifa_next) {
		size_t len = 0, mask_len = 0;
		const uint8_t *at = plx_route_bytes(i->ifa_addr, &len);
		const uint8_t *mask = plx_route_bytes(i->ifa_netmask, &mask_len);

		if (at == NULL || mask == NULL || len != (v4 ? 4 : 16) || mask_len != len ||
			memcmp(at, own, len) != 0)
			continue;
		bits = v4 ? 96 : 0;
		for (size_t k = 0; k < len; k++)
			bits += __builtin_popcount(mask[k]);
		break;
	}
	freeifaddrs(list);
	return bits;
}

bool
plx_route_is_near(const char *file)
{
	char list[CPULIST_MAX] = "";
	FILE *f = fopen(file, "re");
	cpu_set_t set;

	if (f == NULL)
		return true;
	if (fgets(list, sizeof(list), f) == NULL)
		list[0] = '\0';
	fclose(f);
	return sched_getaffinity(0, sizeof(set), &set) != 0 || plx_route_cpus_meet(list, &set);
}

bool
plx_route_cpus_meet(const char *list, const cpu_set_t *set)
{
	char *end;

	for (const char *p = list; *p != '\0' && *p != '\n'; p = *end == ',' ? end + 1 : end) {
		unsigned long from = strtoul(p, &end, 10), to = from;

		if (end == p)
			return true; /* an unexpected format */
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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_route.h - facts that rank the paths between two hosts: networks, speeds, places, failures
 *
 * Design notes
 * - A worker has a queue at each of its ports, and so has the peer. Both sides choose the same
 *   two queues, each on its own: these facts about a path depend on both addresses alike, and
 *   plx_dev_path_rank() ranks paths by them. Failures that only one side has seen take precedence:
 *   a queue of the peer that could not be reached is the last choice for a while.
 */
#ifndef PLX_ROUTE_H
#define PLX_ROUTE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

#define PLX_ROUTE_SPEED_MAX 15
#define PLX_ROUTE_BITS_MAX  128
#define PLX_ROUTE_SHUNNED   16 /* queues of peers in quarantine */

/** One end of a route: a queue's port, from its address. */
struct plx_route_end {
	const uint8_t *addr; /* 16 bytes: of IPv6, or of IPv4 at their end */
	uint8_t bits;	     /* of these, the bits of its network */
};

/** @return whether two addresses are on one network by both their masks. Thread: any. */
bool plx_route_one_net(const struct plx_route_end *a, const struct plx_route_end *b);

/** Queues of peers that could not be reached, or failed. */
struct plx_route_shun {
	uint32_t n; /* ever */
	struct {
		uint64_t uid, until_ns;
	} at[PLX_ROUTE_SHUNNED];
};

/** Quarantine: a queue is the last choice for a minute. Thread: owner. */
void plx_route_shun(struct plx_route_shun *s, uint64_t uid, uint64_t now_ns);
/** @return whether it still is in quarantine. Thread: owner. */
bool plx_route_is_shunned(const struct plx_route_shun *s, uint64_t uid, uint64_t now_ns);

/** @return a speed by half octaves, up to PLX_ROUTE_SPEED_MAX; 10 Gb/s and less are 0. Thread: any. */
uint8_t plx_route_speed(uint64_t mbps);
/** @return the bytes of an address of IPv4 or IPv6, *len of them; NULL: of another kind. Thread: any. */
const uint8_t *plx_route_bytes(const struct sockaddr *a, size_t *len);
/** @return bits of an address of this host that name its network. @param v4 it is IPv4. Thread: any. */
uint8_t plx_route_bits(const uint8_t addr[16], bool v4);
/**
 * @return whether the caller may run on a core that a file of sysfs lists, or the file is
 *   unreadable. Thread: any.
 */
bool plx_route_is_near(const char *file);
/** @param list as "0-3,8" @return whether one of them is in the set, or it is no such list. Thread: any. */
bool plx_route_cpus_meet(const char *list, const cpu_set_t *set);

#endif

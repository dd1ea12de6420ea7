/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_region.h - memory that peers may access, and regions of peers as mapped here
 *
 * Design notes
 * - The table of regions belongs to the process. Control threads add and remove; the owners of
 *   workers look up a peer's region, without a lock: a slot never moves, and its state word has
 *   whether it is valid and the number of accesses in progress. A removal waits for those; none
 *   lasts longer than one message.
 * - A peer names a region by its slot and proves its right by a token of 64 random bits, new for
 *   each region, which only receivers of a key know.
 */
#ifndef PLX_REGION_H
#define PLX_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "plx_mem.h"
#include "plx_proc.h"

#define PLX_REGION_MAX (256u << 10) /* regions of a process */

enum plx_region_right {
	PLX_REGION_READ = 1 << 0,
	PLX_REGION_WRITE = 1 << 1,
	PLX_REGION_CPU64 = 1 << 2, /* atomics of 8 bytes by processors: by message, or mapped */
	PLX_REGION_DEV64 = 1 << 3, /* in keys: by the device, with its key */
};

/** Name and proof of a region; index 0: none. */
struct plx_region_key {
	uint32_t index;
	uint64_t token;
};

/**
 * Add a region.
 * @param rights enum plx_region_right, for peers
 * Errors: -ENOSPC over PLX_REGION_MAX; -ENOMEM; -EIO no random numbers.
 * Thread: any. Blocks: may.
 */
int plx_region_add(uint64_t base, uint64_t len, uint8_t rights, struct plx_region_key *out);

/** Remove a region and wait until it is unused. Thread: any. Blocks: until accesses end. */
void plx_region_remove(const struct plx_region_key *key);

/**
 * Find a peer's region and begin an access.
 * @return 0; -EINVAL no such region, a wrong token, or no rights at all; -EACCES not this
 *   right; -ERANGE outside of it. An error begins no access. Thread: any. Blocks: never.
 */
int plx_region_hold(const struct plx_region_key *key, uint64_t addr, uint64_t len, uint8_t rights);

/** End an access. Thread: any. */
void plx_region_drop(const struct plx_region_key *key);

/** A segment by its name for another process. */
struct plx_seg_name {
	struct plx_proc proc; /* its owner; the pid is ignored */
	uint64_t id;	      /* of the segment */
	uint64_t len;	      /* bytes */
	bool pages;	      /* it may be pages of an EAL, from a process of our user */
};

/**
 * Name a segment of ours, and offer it to processes that know the name, until it is
 * destroyed.
 * @return 0 or -errno. Thread: any. Blocks: may.
 */
int plx_seg_name(const struct plx_seg *seg, struct plx_seg_name *out);

/**
 * Ask for another process's segment and map it; plx_seg_destroy() ends it.
 * Errors: as plx_ask_open() and plx_ask_wait(); -EACCES it is no segment, or another one.
 * Thread: any. Blocks: up to PLX_ASK_MS for a process that does not run.
 */
int plx_seg_open(const struct plx_seg_name *name, bool write, struct plx_seg *out);

/** A peer's segment, mapped once for all its keys. */
struct plx_map;

/** Map, or take one more reference. Errors: as plx_seg_open(). Thread: any. Blocks: may. */
int plx_map_get(const struct plx_seg_name *name, bool write, struct plx_map **out);

/** Its owner has another segment by this name: the next plx_map_get() asks for that. Thread: any. */
void plx_map_forget(struct plx_map *map);

/** Take one more reference. Accepts NULL. @return the map. Thread: any. */
struct plx_map *plx_map_hold(struct plx_map *map);

/** Drop a reference. Accepts NULL. Thread: any. */
void plx_map_put(struct plx_map *map);

/** @return the address of the mapping. Thread: any. */
void *plx_map_base(const struct plx_map *map);

#endif

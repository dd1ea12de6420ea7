/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_window.h - segments of this process that peers map, to move data without system calls
 *
 * Design notes
 * A process lists the segments that it gave to its application in a table in shared memory,
 * which peers map. An address of the owner's process that lies in one of them is looked up
 * there and read or written where the segment is mapped here; for any other the answer is no,
 * and the kernel copies. Nothing else of a protocol has to know.
 *
 * A segment's place in the table is its short name, which is what a packed key has room for. A
 * place may be another segment's by the time that somebody asks for it: the asker has to know base,
 * length and the token that the segment was listed with.
 *
 * The table has a version: a look that finds the one it knows needs no more than that word.
 * The owner takes a segment out before its addresses are free for something else. Who has it
 * mapped then still reads what it was, so a transfer that the owner gave up finds memory.
 * The table goes with the last queue and segment, and the next one has the same name: one that has gone says so, and a
 * peer that knows it yet asks for the next.
 *
 * A peer writes the table: each entry is copied, then checked.
 */
#ifndef PLX_WINDOW_H
#define PLX_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "plx_region.h"

#define PLX_WINDOW_MAX 4095u /* segments in the table; more are not listed */

/** The name of a process's table: it follows from the process. Thread: any. */
void plx_window_table_of(const struct plx_proc *proc, struct plx_seg_name *out);

/**
 * The name of this process's table, which exists as long as it has references. Errors:
 * -ENOMEM and others of the system. Thread: any. Blocks: may.
 */
int plx_window_table_get(struct plx_seg_name *out);

/** Drop a reference. Thread: any. */
void plx_window_table_put(void);

/**
 * List a segment, which peers may then read and write. A segment that can't be listed is
 * accessed like other memory.
 * @param token that a peer has to know to ask for it by its place
 * @return its place, from 1 on, also if it was listed before; or 0. Thread: any. Blocks:
 *   may.
 */
uint32_t plx_window_add(const struct plx_seg *seg, uint64_t token);

/** Remove it, before it is unmapped. Accepts one that is not listed. Thread: any. */
void plx_window_remove(const struct plx_seg *seg);

/** How many segments are listed. */
extern _Atomic uint32_t plx_window_n;

/** @return whether any is. Thread: any. */
static inline bool
plx_window_any(void)
{
	return atomic_load_explicit(&plx_window_n, memory_order_relaxed) != 0;
}

/**
 * Map the segment at a place of a peer's table.
 * @param len its whole length
 * Errors: as plx_map_get(); -EINVAL it is no table; -ESRCH another segment, or none, is
 * there. Thread: any. Blocks: may.
 */
int plx_window_map(const struct plx_seg_name *table, uint32_t place, uint64_t token, uint64_t base,
	uint64_t len, bool write, struct plx_map **out);

/** A peer process's table, and its segments as mapped here. */
struct plx_windows;

/** Map a table. Errors: as plx_map_get(); -EINVAL it is no table. Thread: any. Blocks: may. */
int plx_windows_open(const struct plx_seg_name *name, struct plx_windows **out);

/** Unmap it and its segments. Accepts NULL. Thread: owner. */
void plx_windows_close(struct plx_windows *w);

/** Slow path of plx_windows_find(): the table has changed, or it is another range. */
void *plx_windows_find_slow(struct plx_windows *w, uint64_t addr, uint64_t *len);

/** The first fields of a plx_windows: the range that the last look found, a segment or what lies between two. */
struct plx_windows_last {
	const _Atomic uint64_t *version; /* in the table */
	uint64_t seen;
	uint64_t base, len; /* in the peer's process; 0 bytes: none */
	char *here;	    /* NULL: no segment */
};

/** @return whether len bytes at addr are within n bytes at base; no sum may overflow. */
static inline bool
plx_window_has(uint64_t base, uint64_t n, uint64_t addr, uint64_t len)
{
	return addr - base < n && len <= n - (addr - base);
}

/**
 * @param addr in the peer's process
 * @param len bytes; set to those in one segment: what follows may be in the next
 * @return where these bytes are mapped here, until the next call, or NULL: they are in no
 *   segment
 * Thread: owner. Blocks: may (a new segment).
 */
static inline void *
plx_windows_find(struct plx_windows *w, uint64_t addr, uint64_t *len)
{
	const struct plx_windows_last *l = (const struct plx_windows_last *)w;

	/* pairs with the release in table_end(): the entries of that version are complete */
	if (atomic_load_explicit(l->version, memory_order_acquire) == l->seen &&
		plx_window_has(l->base, l->len, addr, *len))
		return l->here != NULL ? l->here + (addr - l->base) : NULL;
	return plx_windows_find_slow(w, addr, len);
}

/** As plx_windows_find(), until plx_map_put(map): also when the peer has ended or removed the segment. */
void *plx_windows_view(struct plx_windows *w, uint64_t addr, uint64_t *len, struct plx_map **map);

#endif

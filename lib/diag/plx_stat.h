/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_stat.h - counters: plain uint64_t in the owner's struct, one writer
 *
 * The struct that owns counters describes them once in a table of rows; the
 * RPC server, plx-top and the dump functions print any table the same way.
 */
#ifndef PLX_STAT_H
#define PLX_STAT_H

#include <stddef.h>
#include <stdint.h>

/** One counter of a struct; its name is the event (rx_drop_bad_len). */
struct plx_stat_row {
	const char *name;
	size_t offset; /* of the uint64_t in the struct */
	int gauge;     /* what is there now, or was at the most: it is no count of events */
};

#define PLX_STAT_ROW(type, field) PLX_STAT_NAMED(#field, type, field)
#define PLX_STAT_NAMED(name, type, field)                                                          \
	{                                                                                          \
		name, offsetof(type, field), 0                                                     \
	}
#define PLX_STAT_GAUGE(type, field)                                                                \
	{                                                                                          \
		#field, offsetof(type, field), 1                                                   \
	}
#define PLX_STAT_END                                                                               \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

/** Owner thread: count one more. */
#define PLX_STAT_INC(counter) PLX_STAT_ADD(counter, 1)

/** Owner thread: count n more; readers in other threads use plx_stat_read(). */
#ifdef __x86_64__ /* one store as well; compilers make three instructions of the other form */
#define PLX_STAT_ADD(counter, n)                                                                   \
	__asm__("addq %1, %0"                                                                      \
		: "+m"(*_Generic(&(counter), uint64_t *: &(counter)))                              \
		: "er"((uint64_t)(n))                                                              \
		: "cc")
#else
#define PLX_STAT_ADD(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)
#endif

/** Any thread: the value of the counter that row describes in obj. */
static inline uint64_t
plx_stat_read(const void *obj, const struct plx_stat_row *row)
{
	return __atomic_load_n((const uint64_t *)((const char *)obj + row->offset),
		__ATOMIC_RELAXED);
}

#endif

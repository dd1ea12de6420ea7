/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_cursor.h - one copy by two processes: each takes chunks from its own end of the memory
 *
 * The word in shared memory is generation << 32 | taken from the back << 16 | from the front. Who
 * comes late finds another generation and takes nothing.
 */
#ifndef PLX_CURSOR_H
#define PLX_CURSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PLX_CURSOR_NONE UINT32_MAX

/** @return how many chunks are taken. */
static inline uint32_t
plx_cursor_taken(uint64_t next)
{
	return (uint32_t)(next & UINT16_MAX) + (uint32_t)(next >> 16 & UINT16_MAX);
}

/**
 * Take the next chunk of one end.
 * @param n_chunks in all, below UINT16_MAX
 * @return its index, or PLX_CURSOR_NONE. Thread: any.
 */
static inline uint32_t
plx_cursor_take(_Atomic uint64_t *next, uint32_t gen, uint32_t n_chunks, bool back)
{
	uint64_t v = atomic_load_explicit(next, memory_order_relaxed);

	do {
		if ((uint32_t)(v >> 32) != gen || plx_cursor_taken(v) >= n_chunks)
			return PLX_CURSOR_NONE;
		/* release: what the caller has read before is of this generation */
	} while (!atomic_compare_exchange_weak_explicit(next, &v, v + (back ? 1u << 16 : 1), memory_order_release,
		memory_order_relaxed));
	return back ? n_chunks - 1 - (uint32_t)(v >> 16 & UINT16_MAX) : (uint32_t)(v & UINT16_MAX);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_clock.h - the clock of slow paths, which needs no EAL
 */
#ifndef PLX_CLOCK_H
#define PLX_CLOCK_H

#include <stdint.h>
#include <time.h>

/** @return ns of a clock. Thread: any. */
static inline uint64_t
plx_clock_read(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/** @return ns of CLOCK_MONOTONIC. Thread: any. */
static inline uint64_t
plx_clock_ns(void)
{
	return plx_clock_read(CLOCK_MONOTONIC);
}

/** @return ns of the wall clock, which is the same in all containers, and may be set. Thread: any. */
static inline uint64_t
plx_clock_wall_ns(void)
{
	return plx_clock_read(CLOCK_REALTIME);
}

/** The same in ms. */
static inline uint64_t
plx_clock_ms(void)
{
	return plx_clock_ns() / 1000000;
}

#endif

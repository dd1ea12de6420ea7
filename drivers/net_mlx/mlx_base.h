/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_base.h - what every file of the driver needs: its log type, the clock
 */
#ifndef MLX_BASE_H
#define MLX_BASE_H

#include <stdint.h>
#include <time.h>

#include "plx_log.h"

PLX_LOG_DECLARE(mlx);

#define MLX_NONE	 UINT32_MAX /* no number of a buffer or a receive */

/** The clock of slow paths, which needs no EAL. */
static inline uint64_t
mlx_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

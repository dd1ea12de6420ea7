/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_base.h - what every file of the driver needs: its log type, the clock
 */
#ifndef MLX_BASE_H
#define MLX_BASE_H

#include <stdint.h>

#include "plx_clock.h"
#include "plx_log.h"

PLX_LOG_DECLARE(mlx);

#define MLX_NONE	 UINT32_MAX /* no number of a buffer or a receive */

#endif

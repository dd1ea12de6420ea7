/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_mlx.h - the inside of the net_mlx driver, for tests of what needs no device
 */
#ifndef PLX_UNIT_MLX_H
#define PLX_UNIT_MLX_H

#include "../../drivers/net_mlx/mlx5_int.h"
#include "../../drivers/net_mlx/mlx_glue.h"
#include "../../drivers/net_mlx/mlx_int.h"
#include "../../drivers/net_mlx/mlx_tm.h"
#include "../../drivers/net_mlx/plx_net_mlx.h"

#endif

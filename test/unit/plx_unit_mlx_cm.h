/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_mlx_cm.h - how net_mlx meets peers by librdmacm, whose header brings the sockets' names
 */
#ifndef PLX_UNIT_MLX_CM_H
#define PLX_UNIT_MLX_CM_H

#include "../../drivers/net_mlx/mlx_cm.h"
#include "../../drivers/net_mlx/mlx_join.h"

#endif

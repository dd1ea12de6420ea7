/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_net_mlx.h - the net_mlx driver's ops table, for lib/init's list of drivers
 */
#ifndef PLX_NET_MLX_H
#define PLX_NET_MLX_H

#include "plx_dev_ops.h"

extern const struct plx_dev_ops plx_net_mlx_ops;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_mlx.h - the inside of the net_mlx driver, for tests of what needs no device
 */
#ifndef PLX_UNIT_MLX_H
#define PLX_UNIT_MLX_H

#include "../../drivers/net_mlx/mlx5_int.h"
#include "../../drivers/net_mlx/mlx_addr.h"
#include "../../drivers/net_mlx/mlx_base.h"
#include "../../drivers/net_mlx/mlx_bufs.h"
#include "../../drivers/net_mlx/mlx_conn.h"
#include "../../drivers/net_mlx/mlx_glue.h"
#include "../../drivers/net_mlx/mlx_group.h"
#include "../../drivers/net_mlx/mlx_hw.h"
#include "../../drivers/net_mlx/mlx_lossy.h"
#include "../../drivers/net_mlx/mlx_mem.h"
#include "../../drivers/net_mlx/mlx_peer.h"
#include "../../drivers/net_mlx/mlx_pick.h"
#include "../../drivers/net_mlx/mlx_port.h"
#include "../../drivers/net_mlx/mlx_queue.h"
#include "../../drivers/net_mlx/mlx_rx.h"
#include "../../drivers/net_mlx/mlx_slot.h"
#include "../../drivers/net_mlx/mlx_tm.h"
#include "../../drivers/net_mlx/mlx_tx.h"
#include "../../drivers/net_mlx/mlx_ud.h"
#include "../../drivers/net_mlx/plx_net_mlx.h"

#endif

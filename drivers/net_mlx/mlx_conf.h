/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_conf.h - settings of the driver, and its names in other interfaces
 */
#ifndef MLX_CONF_H
#define MLX_CONF_H

#include "plx_conf.h"
#include "plx_dev.h"

/** In the order of the rows. */
enum mlx_conf {
	MLX_CONF_DEVICE,
	MLX_CONF_PORTS,
	MLX_CONF_ROUTED,
	MLX_CONF_GROUPS_BY_CM,
	MLX_CONF_MSG_LEN,
	MLX_CONF_WINDOW,
	MLX_CONF_SLOTS,
	MLX_CONF_SLOTS_MAX,
	MLX_CONF_CONNECTED,
	MLX_CONF_CONNECT_MS,
	MLX_CONF_ACK_MS,
	MLX_CONF_RETRIES,
	MLX_CONF_PROBE_MS,
	MLX_CONF_DEAD_MS,
	MLX_CONF_DIRECT,
	MLX_CONF_TAG_MATCHING,
	MLX_CONF_CACHE,
	MLX_CONF_CACHE_LEN,
	MLX_CONF_N
};

extern struct plx_conf_rows mlx_settings;
extern const struct plx_dev_names mlx_names;

/** Index of a setting in a struct plx_conf. */
#define MLX_CONF(x) (mlx_settings.first + MLX_CONF_##x)

#endif

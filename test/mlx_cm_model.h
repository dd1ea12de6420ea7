/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm_model.h - librdmacm, and as much of libibverbs as messages by it need, in one process
 *
 * The one device has all addresses but the loopback's and those of 192.0.2.0/24.
 */
#ifndef MLX_CM_MODEL_H
#define MLX_CM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct mlx_cm_model {
	bool silent;	 /* requests are never answered */
	bool strange;	 /* answers have other private data than they were given */
	bool hold_acks;	 /* what was sent has not been acknowledged */
	bool fail_sends; /* what is sent is given up */
	uint32_t live;	 /* objects that were not destroyed */
	const char *wrong; /* what the driver may not do */
};

extern struct mlx_cm_model mlx_cm_model;

/** From now on the driver finds it. */
void mlx_cm_model_begin(void);

/** What was held is acknowledged. */
void mlx_cm_model_ack(void);

/** The device goes: all ids get an event. */
void mlx_cm_model_remove(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * device_mlx5.c - the device is the model of mlx5_driver.c
 */
#include "device.h"
#include "mlx5_verbs.h"

void
device_plain(void)
{
	mlx5_model_fault(mlx5_verbs.m, MLX5_FAULT_LATE, 0);
	mlx5_model_inlines(mlx5_verbs.m);
}

void
device_run(void)
{
	mlx5_model_mmio(mlx5_verbs.m);
	mlx5_model_run(mlx5_verbs.m);
}

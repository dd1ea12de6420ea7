/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_driver.c - linked to a test of drivers: net_mlx finds the model of an mlx5 device
 *
 * Design notes
 * The functions of the driver that write to the device's registers or look at its completions are
 * wrapped (--wrap of the linker), so that the model sees every doorbell and does some of its
 * work whenever somebody looks. Faults that cost no connection are on.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5_verbs.h"
#include "plx_unit_mlx.h"

#define STEPS 8 /* of the model, each time */

int __real_access(const char *path, int mode);
int __real_mlx5_ring(struct mlx_hw_qp *qp);
int __real_mlx5_arm(struct mlx_hw *hw);
void __real_mlx5_check(struct mlx_hw *hw);
uint16_t __real_mlx5_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);
uint16_t __real_mlx5_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);

int __wrap_access(const char *path, int mode);
int __wrap_mlx5_ring(struct mlx_hw_qp *qp);
int __wrap_mlx5_arm(struct mlx_hw *hw);
void __wrap_mlx5_check(struct mlx_hw *hw);
uint16_t __wrap_mlx5_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);
uint16_t __wrap_mlx5_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);

static void
device_works(void)
{
	for (int i = 0; i < STEPS; i++)
		mlx5_model_step(mlx5_verbs.m);
}

/* A sleeper cannot give the device its time, so all is done before. */
static void
device_looks(void)
{
	mlx5_model_mmio(mlx5_verbs.m);
	device_works();
	if (mlx5_verbs_events()) {
		mlx5_model_run(mlx5_verbs.m);
		mlx5_verbs_events();
	}
}

int
__wrap_access(const char *path, int mode)
{
	return strcmp(path, "/sys/class/infiniband_verbs") == 0 ? 0 : __real_access(path, mode);
}

int
__wrap_mlx5_ring(struct mlx_hw_qp *qp)
{
	int rc = __real_mlx5_ring(qp);

	device_looks();
	return rc;
}

int
__wrap_mlx5_arm(struct mlx_hw *hw)
{
	int rc = __real_mlx5_arm(hw);

	device_looks();
	return rc;
}

void
__wrap_mlx5_check(struct mlx_hw *hw)
{
	__real_mlx5_check(hw);
	device_looks();
}

uint16_t
__wrap_mlx5_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	device_works();
	return __real_mlx5_poll_tx(hw, comp, n);
}

uint16_t
__wrap_mlx5_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	device_works();
	return __real_mlx5_poll_rx(hw, comp, n);
}

static void __attribute__((constructor))
device_begin(void)
{
	mlx5_verbs = (struct mlx5_verbs){.cqe_size = 64, .srq_stride = 32, .bf_size = 256};
	if (mlx5_model_create(20261, &mlx5_verbs.m) != 0)
		abort();
	mlx5_model_fault(mlx5_verbs.m, MLX5_FAULT_LATE, 4);
	mlx5_verbs_begin();
}

/* What the driver did wrong fails the test, whatever the test says. */
static void __attribute__((destructor))
device_end(void)
{
	const struct mlx5_model_stat *st = mlx5_model_stat(mlx5_verbs.m);
	bool good = st->violations == 0 && st->entries > 0;

	printf("model: %llu requests, %llu doorbells, %llu whole entries, %llu violations %s\n",
		(unsigned long long)st->entries, (unsigned long long)st->doorbells,
		(unsigned long long)st->blueflames, (unsigned long long)st->violations, st->first);
	fflush(stdout);
	mlx5_model_destroy(mlx5_verbs.m);
	if (!good)
		_exit(EXIT_FAILURE);
}

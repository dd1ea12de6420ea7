/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_driver.c - linked to a test of drivers: net_mlx finds a device that matches tags
 *
 * access() is wrapped (--wrap of the linker), as the driver looks whether there is any device.
 * MODEL_LATE in the environment: one step in so many is done each time somebody looks, see
 * mlx_tm_model.h; else all is done at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5_verbs.h"
#include "mlx_tm_model.h"

#define TAGS 64 /* receives that the device holds at the most */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int
__wrap_access(const char *path, int mode)
{
	if (strcmp(path, "/sys/class/infiniband_verbs") != 0)
		return __real_access(path, mode);
	errno = ENOENT;
	return mlx5_verbs.absent ? -1 : 0;
}

static void __attribute__((constructor))
device_begin(void)
{
	const char *late = getenv("MODEL_LATE");

	mlx5_verbs = (struct mlx5_verbs){.cqe_size = 64, .srq_stride = 32, .plain = true};
	if (mlx5_model_create(20261, &mlx5_verbs.m) != 0)
		abort();
	mlx5_verbs_begin();
	mlx_tm_model_reset(TAGS);
	mlx_tm.late = late != NULL ? strtoul(late, NULL, 10) : 0;
	mlx_tm.front = true;
}

/* What the driver did wrong fails the test, whatever the test says. */
static void __attribute__((destructor))
device_end(void)
{
	const struct mlx5_model_stat *st = mlx5_model_stat(mlx5_verbs.m);
	bool good = st->violations == 0 && mlx_tm.wrong == NULL;

	if (!good)
		printf("model: %s %s\n", st->first, mlx_tm.wrong != NULL ? mlx_tm.wrong : "");
	fflush(stdout);
	mlx5_model_destroy(mlx5_verbs.m);
	if (!good)
		_exit(EXIT_FAILURE);
}

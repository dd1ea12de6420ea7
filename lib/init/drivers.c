/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * drivers.c - the one table of drivers
 */
#include "plx_shm.h"

#include "init_int.h"

static const struct plx_dev_ops *const drivers[] = {
	&plx_shm_ops,
};

int
init_drivers(void)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		int rc = plx_dev_register(drivers[i]);

		if (rc != 0)
			return rc;
	}
	return 0;
}

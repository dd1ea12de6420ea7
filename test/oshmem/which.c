/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * which.c - which libucp this OpenSHMEM uses
 */
#include "shmem_util.h"

int
main(void)
{
	shmem_init();
	if (shmem_my_pe() == 0) {
		util_print_libraries();
		printf("which ok\n");
	}
	shmem_finalize();
	return 0;
}

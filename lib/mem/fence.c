/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fence.c - one thread fences for all, so that the others need not
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plx_assert.h"
#include "plx_fence.h"

static int
barrier(int cmd)
{
	return (int)syscall(SYS_membarrier, cmd, 0, 0);
}

bool
plx_fence_open(void)
{
	return barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void
plx_fence_all(void)
{
	int rc = barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);

	if (rc != 0 && plx_fence_open()) /* a child of fork() is not registered */
		rc = barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	PLX_ASSERT(rc == 0);
}

bool
plx_fence_world_open(void)
{
	return barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

bool
plx_fence_world(void)
{
	return barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

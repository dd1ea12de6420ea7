/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fork.c - the number of forks before this process
 */
#include <pthread.h>

#include <rte_common.h>
#include <rte_lcore.h>

#include "plx_fork.h"

uint32_t plx_forks;
bool plx_fork_eal;
_Thread_local uint32_t plx_fork_callbacks;

static void
after_fork_in_child(void)
{
	plx_forks++;
	plx_fork_eal = rte_lcore_count() != 0;
}

/* When the library is loaded, not with the first object: the application may have started
 * the EAL itself. */
RTE_INIT(fork_watch)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

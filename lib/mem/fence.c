/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fence.c - one thread fences for all, so that the others need not
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "mem_int.h"
#include "plx_fence.h"
#include "plx_log.h"

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

bool
plx_fence_has(void)
{
	int has;

	if (__libc_single_threaded) /* nobody has to be waited for */
		return plx_fence_open();
	has = barrier(MEMBARRIER_CMD_QUERY);
	return has > 0 && (has & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
}

/*
 * A filter for system calls has been installed since it was asked for. The other threads rely on the fence
 * and can't be told, as only the fence would order that: nothing else orders what they have under way. Two
 * owners of a worker would corrupt it, so the process ends here, where the reason is known.
 */
static __rte_noinline __rte_cold __rte_noreturn void
fence_refused(int err)
{
	PLX_LOG(ERR, mem, "membarrier(2) worked when the library started, and is refused now: errno %d", err);
	fprintf(stderr, "pollux: membarrier(2) worked when the library was started, and is refused now (%s): "
		"the filter for system calls has to allow it, or to be installed before ucp_init()\n",
		strerror(err));
	abort();
}

void
plx_fence_all(void)
{
	int rc = barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);

	if (rc != 0 && plx_fence_open()) /* not yet registered, or a child of fork() */
		rc = barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	if (unlikely(rc != 0))
		fence_refused(errno);
}

enum world {
	WORLD_NEW,
	WORLD_ASKED,
	WORLD_OPEN,
	WORLD_REFUSED,
};

static _Atomic int world;

static void *
world_register(void *arg)
{
	int rc = barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);

	(void)arg;
	/* pairs with the acquire in plx_fence_world_open() */
	atomic_store_explicit(&world, rc == 0 ? WORLD_OPEN : WORLD_REFUSED, memory_order_release);
	return NULL;
}

/* The kernel takes milliseconds, and seconds if threads poll on all cores: a thread of its
 * own waits for it. */
static void
world_ask(void)
{
	int was = WORLD_NEW;
	sigset_t all, before;
	pthread_t thread;

	if (!atomic_compare_exchange_strong(&world, &was, WORLD_ASKED))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals belong to the application */
	if (pthread_create(&thread, NULL, world_register, NULL) == 0)
		pthread_detach(thread);
	else
		atomic_store_explicit(&world, WORLD_REFUSED, memory_order_relaxed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool
plx_fence_world_open(void)
{
	int is = atomic_load_explicit(&world, memory_order_acquire);

	if (unlikely(is == WORLD_NEW))
		world_ask();
	return is == WORLD_OPEN;
}

bool
plx_fence_world_is_open(void)
{
	return atomic_load_explicit(&world, memory_order_acquire) == WORLD_OPEN;
}

bool
plx_fence_world(void)
{
	return barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

/* The thread that registers does not exist here, and the kernel need not have registered
 * the copy. */
static void
after_fork_in_child(void)
{
	atomic_store_explicit(&world, WORLD_NEW, memory_order_relaxed);
}
RTE_INIT(fence_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

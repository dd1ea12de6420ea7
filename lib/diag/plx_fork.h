/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_fork.h - whether this process is a forked child, and its inherited state
 *
 * A child has a copy of all objects, and none of the threads. The parent still owns what the
 * objects refer to: shared memory, sockets, registrations with a device. So a child leaves them
 * alone and makes its own. An object records plx_forks when it is made; an object with another
 * number belongs to the parent.
 *
 * The owner of process-wide state behind a lock repairs it with pthread_atfork(3): a thread that
 * does not exist in the child may have taken the lock.
 */
#ifndef PLX_FORK_H
#define PLX_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* Hot paths read it, by one instruction if no other library can interpose it. */
#pragma GCC visibility push(hidden)

/**
 * The number of forks between the program's start and this process. Writer: fork();
 * readers: any.
 */
extern uint32_t plx_forks;

/**
 * Whether a parent started the EAL of this process. It can't be started again. Its settings
 * and the list of cores are valid here; its threads do not exist, and its memory may belong
 * to the parent. Writer: fork(); readers: any.
 */
extern bool plx_fork_eal;

/**
 * How many callbacks of the program this thread has called outside of workers' turns and has not
 * returned from. If one of them forks, the child returns from it, too.
 */
extern _Thread_local uint32_t plx_fork_callbacks;

#pragma GCC visibility pop

#endif

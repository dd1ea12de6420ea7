/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_fork.h - whether this process is a child that was forked, and what it has of its parent
 *
 * A child has a copy of all objects, and none of the threads. What the objects stand for is still the
 * parent's: shared memory, sockets, what is registered with a device. So a child leaves them alone and
 * makes its own. An object notes plx_forks when it is made; one of another number is the parent's.
 *
 * State that is of the process, behind a lock, is put in order by who has it, with pthread_atfork(3): a
 * thread that is not there in the child may have held the lock.
 */
#ifndef PLX_FORK_H
#define PLX_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* Read in hot paths, by one instruction where no other library may have it instead. */
#pragma GCC visibility push(hidden)

/** How many forks lie between the program's start and this process. Writer: fork(); readers: any. */
extern uint32_t plx_forks;

/**
 * Whether the EAL that this process has was started by a parent. It can't be started again. Its settings
 * and the list of cores are of use here; its threads do not exist, and its memory may be the parent's.
 * Writer: fork(); readers: any.
 */
extern bool plx_fork_eal;

#pragma GCC visibility pop

#endif

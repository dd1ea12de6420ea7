/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_proc.h - which process this is
 *
 * Thread of all functions: any. They may block in the file system.
 */
#ifndef PLX_PROC_H
#define PLX_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A process, distinct from all others at any time. */
struct plx_proc {
	uint64_t host;	/* boot, and network namespace or folder of sockets, hashed; an unknown half
	              	 * is 0 */
	uint64_t id;	/* random, never 0: its name to peers, in any namespace */
	uint32_t pid;	/* in its own namespace: informational */
};

/** @return whether two values of plx_proc.host may be of one machine and boot. */
bool plx_proc_host_same_boot(uint64_t a, uint64_t b);

/**
 * @return whether two processes are in one network namespace, or name one folder: each
 *   finds the other's socket.
 */
bool plx_proc_same_names(const struct plx_proc *a, const struct plx_proc *b);

/** Processes find this one in a folder instead of its network namespace; NULL: in the namespace. */
void plx_proc_set_folder(const char *path);

/** @return whether a thread of this process is runnable; false also if unknown. */
bool plx_proc_runs(uint32_t tid);

/**
 * Fill in the calling process. It is determined once, and again after a fork. Errors, and
 * *out is not set: -EMFILE, -ENFILE, -ENOMEM; -EIO: there are no random numbers.
 */
int plx_proc_self(struct plx_proc *out);

/** @return one number for a process, never 0. */
static inline uint64_t
plx_proc_id(const struct plx_proc *p)
{
	return p->id;
}

/**
 * Copy from an application's pointer through the kernel, so that a bad pointer is an error.
 * Errors: -EFAULT.
 */
int plx_proc_fetch(const void *from, void *to, size_t len);

#endif

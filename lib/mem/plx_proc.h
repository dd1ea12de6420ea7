/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_proc.h - which process this is, and whether another is still the one it was
 *
 * Thread of all functions: any. They may block in the file system.
 */
#ifndef PLX_PROC_H
#define PLX_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A process, told from all others that were or will be. */
struct plx_proc {
	uint64_t host;	/* boot, and pid and user namespace, hashed: same value, same machine as far as
			 * /proc/PID reaches */
	uint64_t start; /* as plx_proc_start() */
	uint32_t pid;
};

/** @return whether two values of plx_proc.host are of one machine since it was started. */
bool plx_proc_host_same_boot(uint64_t a, uint64_t b);

/**
 * Whether this process and another of the same host may open what the other has open,
 * each by /proc/PID/fd. Both find the same.
 * @param fd one that the other has open
 * @return 0, also when the other has ended; -EPERM one of them may not
 */
int plx_proc_reach(uint32_t pid, uint32_t fd);

/** @return start time of a process in ticks since boot, 0 if there is none such. */
uint64_t plx_proc_start(uint32_t pid);

/**
 * @param start as plx_proc_start() once said, 0 for any
 * @return whether the process has ended, is a zombie, or is another by now; not when nobody knows
 */
bool plx_proc_gone(uint32_t pid, uint64_t start);

/**
 * @return whether the first thread of a process has ended and others go on: the kernel finds neither its
 * memory nor what it has open by its pid. Not when nobody knows.
 */
bool plx_proc_headless(uint32_t pid);

/**
 * Find what a process has open, without opening it: to see what it is before plx_proc_fd_reopen().
 * @return a descriptor of O_PATH, the caller's to close; -ENOENT: it has no such, or has ended; another -errno
 */
int plx_proc_fd_open(uint32_t pid, uint32_t fd);

/**
 * Open what a descriptor of O_PATH names.
 * @param flags O_RDONLY or O_RDWR; it neither blocks nor becomes a terminal
 * @return a descriptor, or -errno
 */
int plx_proc_fd_reopen(int path_fd, int flags);

/** @return whether a thread of this process runs, or would if it had a core; false: or nobody knows. */
bool plx_proc_runs(uint32_t tid);

/**
 * Fill in the calling process. It reads /proc once, and again after a fork.
 * Errors, and *out is not set: -EMFILE, -ENFILE, -ENOMEM; -EIO: there is no /proc, or not all of it.
 */
int plx_proc_self(struct plx_proc *out);

/** @return one number for a process, never 0. */
uint64_t plx_proc_id(const struct plx_proc *p);

/**
 * Copy what an application points to by the kernel's hand, so that a bad pointer is an
 * error. Errors: -EFAULT.
 */
int plx_proc_fetch(const void *from, void *to, size_t len);

#endif

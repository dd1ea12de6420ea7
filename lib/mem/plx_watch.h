/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_watch.h - notification when memory gets other pages under the same address
 *
 * Design notes
 * - A thread that unmaps, moves or discards watched memory waits in the kernel until the watch
 *   has read the event (userfaultfd(2) with its events; no fault is ever handled). The watch
 *   reads it with its lock. So the owner of the lock knows of all changes whose call has
 *   returned.
 * - While that call waits another thread may already map something at the address and use it. So
 *   before relying on unchanged memory, also ask whether the kernel is quiet.
 * - The waiting thread may have any lock of the program, such as an allocator's. So with the lock
 *   of the watch nothing is allocated, freed or logged, and no other lock is taken.
 * - Only private memory without a file can be watched: pages of files and of shared memory can be
 *   removed through other mappings.
 */
#ifndef PLX_WATCH_H
#define PLX_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** [from, to) now has other pages, or none. Called with the lock. */
typedef void plx_watch_gone(uintptr_t from, uintptr_t to);

/** One for each process. Members except lock are private. */
struct plx_watch {
	pthread_mutex_t lock;
	plx_watch_gone *gone;
	int uffd, pagemap, stop;
	uint8_t *own; /* a page that is watched and never changes */
	long page;
	pthread_t thread; /* which reads events */
};

/**
 * Start to watch; lock is initialised. Errors: -EPERM, -ENOSYS and others: this system has
 * no such feature, or not for this user. Thread: control. Blocks: may.
 */
int plx_watch_open(struct plx_watch *w, plx_watch_gone *gone);
/** Stop notifications. Thread: control, without the lock. Blocks: may. */
void plx_watch_close(struct plx_watch *w);

/** Whether memory that is present and pinned can be watched. Thread: any. */
bool plx_watch_can(const struct plx_watch *w, const void *addr, size_t len);
/** Watch the pages in [from, to), whole ones. Called with the lock. Errors: -EINVAL, -EBUSY ... */
int plx_watch_add(struct plx_watch *w, uintptr_t from, uintptr_t to);
/** Stop watching. Called with the lock. */
void plx_watch_del(struct plx_watch *w, uintptr_t from, uintptr_t to);
/** @return whether all changes so far have been reported. Called with the lock. */
bool plx_watch_quiet(const struct plx_watch *w);

#endif

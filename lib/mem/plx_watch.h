/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_watch.h - to be told when memory gets other pages under the same address
 *
 * Design notes
 * Whoever unmaps, moves or discards memory that is watched waits in the kernel until the watch has
 * been told (userfaultfd(2) with its events; no fault is ever taken). It is told with the lock of
 * the watch held. So who has the lock knows of all changes whose call has returned.
 *
 * While the call waits another thread may map something at that address already and use it. So who
 * relies on memory to be unchanged asks whether the kernel is quiet as well.
 *
 * He who waits may hold any lock of the program, that of an allocator among them. So with the lock
 * of the watch held nothing is allocated, freed or logged, and no other lock is taken.
 *
 * Only private memory that belongs to no file can be watched: pages of files and of shared memory
 * can be taken away through other mappings.
 */
#ifndef PLX_WATCH_H
#define PLX_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** From then on [from, to) has other pages, or none. Called with the lock. */
typedef void plx_watch_gone(uintptr_t from, uintptr_t to);

/** One of a process. Members but lock are the watch's own. */
struct plx_watch {
	pthread_mutex_t lock;
	plx_watch_gone *gone;
	int uffd, pagemap, stop;
	uint8_t *own; /* a page that is watched and never changes */
	long page;
	pthread_t thread; /* which is told */
};

/**
 * Start to watch; lock is initialised.
 * Errors: -EPERM, -ENOSYS and others: this system has no such thing, or not for this user.
 * Thread: control. Blocks: may.
 */
int plx_watch_open(struct plx_watch *w, plx_watch_gone *gone);
/** Nobody is told any more. Thread: control, without the lock. Blocks: may. */
void plx_watch_close(struct plx_watch *w);

/** Whether memory that is present and pinned is of the kind that can be watched. Thread: any. */
bool plx_watch_can(const struct plx_watch *w, const void *addr, size_t len);
/** Watch the pages in [from, to), whole ones. Called with the lock. Errors: -EINVAL, -EBUSY ... */
int plx_watch_add(struct plx_watch *w, uintptr_t from, uintptr_t to);
/** No more. Called with the lock. */
void plx_watch_del(struct plx_watch *w, uintptr_t from, uintptr_t to);
/** @return whether all changes made so far are told. Called with the lock. */
bool plx_watch_quiet(const struct plx_watch *w);

#endif

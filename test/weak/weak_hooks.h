/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_hooks.h - included before the code that weak.h runs: its threads are coroutines
 */
#ifndef WEAK_HOOKS_H
#define WEAK_HOOKS_H

#include <poll.h>
#include <rte_memcpy.h>
#include <rte_pause.h>
#include <sched.h>
#include <string.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "weak.h"

static inline int
weak_watch(int epfd, int op, int fd, const struct epoll_event *ev)
{
	(void)epfd;
	(void)op;
	(void)fd;
	(void)ev;
	return 0;
}

#define __builtin_thread_pointer() weak_self()
#define rte_pause()		   ((void)weak_pause())
#define sched_yield()		   weak_pause()
#define nanosleep(for_, left)	   ((void)(for_), weak_pause())
#define syscall			   weak_syscall
#define sched_getcpu()		   0
#define memcpy			   weak_copy
#define calloc(n, size)		   memset(weak_alloc((n) * (size)), 0, (n) * (size))
#define aligned_alloc(align, len)  weak_alloc(len)
#define free(p)			   ((void)(p))
#define mmap(at, len, may, how, fd, off) weak_map(len)
#define munmap(at, len)		   ((void)(at))
#define getpid()		   WEAK_PID
#define getrandom(p, len, how)	   (*(p) = 1, (ssize_t)(len))
/* Descriptors are numbers of events. A short sleep ends by itself. */
#define socketpair(where, how, by, fds) ((fds)[0] = (fds)[1] = 0)
#define epoll_create1(how)	   0
#define epoll_ctl		   weak_watch
#define close(fd)		   ((void)(fd))
#define send(fd, text, len, flags) ((void)(text), weak_event_write((unsigned)(fd)))
#define recv(fd, text, len, flags) ((void)(text), weak_event_read((unsigned)(fd)) != 0 ? 1 : -1)
#define write(fd, n, len)	   ((void)(n), weak_event_write((unsigned)(fd)))
#define read(fd, n, len)	   (*(n) = weak_event_read((unsigned)(fd)), *(n) != 0 ? 8 : -1)
#define epoll_wait(fd, ev, n, ms)  ((void)(ev), (ms) == 0 ? 0 : weak_event_wait((unsigned)(fd)))
#define ppoll(fd, n, most, mask)   ((void)(fd), (void)(most), 0)

#endif

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
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "weak.h"

#define __builtin_thread_pointer() weak_self()
#define rte_pause()		   ((void)weak_pause())
#define sched_yield()		   weak_pause()
#define nanosleep(for_, left)	   ((void)(for_), weak_pause())
#define syscall			   weak_syscall
#define sched_getcpu()		   0
#define memcpy			   weak_copy
/* Descriptors are numbers of events. A short sleep ends by itself. */
#define send(fd, text, len, flags) ((void)(text), weak_event_write((unsigned)(fd)))
#define recv(fd, text, len, flags) ((void)(text), weak_event_read((unsigned)(fd)) != 0 ? 1 : -1)
#define write(fd, n, len)	   ((void)(n), weak_event_write((unsigned)(fd)))
#define read(fd, n, len)	   (*(n) = weak_event_read((unsigned)(fd)), *(n) != 0 ? 8 : -1)
#define epoll_wait(fd, ev, n, ms)  ((void)(ev), (void)(ms), weak_event_wait((unsigned)(fd)))
#define ppoll(fd, n, most, mask)   ((void)(fd), (void)(most), 0)

#endif

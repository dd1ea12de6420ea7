/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_reactor.h - pinned threads that run the turns of pollers
 *
 * A reactor runs on one lcore of the EAL and knows nothing of messages: it calls each of its
 * pollers, counts busy and idle ticks, and applies the idle policy after empty turns.
 */
#ifndef PLX_REACTOR_H
#define PLX_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "plx_poller.h"
#include "plx_stat.h"

#define PLX_REACTOR_MAX 128 /* the EAL's number of lcores */

struct plx_reactor_stat {
	uint64_t turns, busy_turns;
	uint64_t busy_ticks, idle_ticks;
	uint64_t idles;	       /* times the idle policy was applied */
	uint64_t yields_taken; /* auto: another thread took the core that was yielded */
	uint64_t sleeps;
	uint64_t grants;	       /* times that the application took a granted worker */
};

extern const struct plx_stat_row plx_reactor_stat_rows[];

/** Result of plx_reactor_info(). */
struct plx_reactor_info {
	unsigned lcore;
	bool beside; /* in a thread of its own: the lcore is the program's */
	unsigned n_pollers;
	struct plx_reactor_stat stat;
};

/**
 * Start a reactor on an lcore that waits for work.
 * @param beside in a thread of its own on the lcore's cores: the program may still launch functions
 *   there. So it is in a child of a process with an EAL.
 * @param idle PLX_IDLE_x
 * @param idle_turns empty turns before it is applied
 * Errors: -EBUSY the lcore is in use: by a function, as a service core, and, beside, as main lcore;
 *   -ENODEV the EAL has no such lcore, or it is the main one; -ENOMEM.
 * Thread: control.
 */
int plx_reactor_start(unsigned lcore, bool beside, unsigned idle, uint64_t idle_turns);

/** Stop all reactors and wait for them; pollers must be removed before. Thread: control. */
void plx_reactor_stop_all(void);

/** @return how many run. Thread: any. */
unsigned plx_reactor_count(void);

/** Change the idle policy of all reactors. Thread: any. */
void plx_reactor_set_idle(unsigned idle, uint64_t idle_turns);

/**
 * Offset of this process among reactors with the same number of pollers: the local rank,
 * which differs between processes of one node with the same cores. Thread: control.
 */
void plx_reactor_set_seat(unsigned seat);

/** Add a poller to the reactor with the fewest; returns when it has begun. Thread: control. */
int plx_reactor_add(struct plx_poller *p);

/**
 * Give a poller to the reactor of another lcore; between two turns.
 * Errors: -ENODEV no reactor there, or the poller has none. Thread: control, not a reactor.
 */
int plx_reactor_move(struct plx_poller *p, unsigned lcore);

/** @return the lcore of a poller's reactor, or -ENODEV. Thread: control. */
int plx_reactor_lcore(const struct plx_poller *p);

/** A message was posted for a poller: make it run a turn. Thread: any. Blocks: never. */
void plx_reactor_wake(const struct plx_poller *p);

/**
 * After a post for a poller.
 * @return whether its reactor sleeps; if not, it sees the post before it does. Thread: any.
 */
bool plx_reactor_sleeps(const struct plx_poller *p);

/** Remove a poller; returns after its last turn. Thread: control, not a reactor. */
void plx_reactor_remove(struct plx_poller *p);

/** Facts about the i-th reactor. @return 0 or -ENOENT. Thread: control. */
int plx_reactor_info(unsigned i, struct plx_reactor_info *info);

#endif

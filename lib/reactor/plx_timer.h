/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_timer.h - the few timers of one owner, in a list by time
 *
 * Time is a parameter, so tests need no clock. (rte_timer keeps its lists by lcore and may not be
 * run by a thread without one, such as an inline worker's.)
 */
#ifndef PLX_TIMER_H
#define PLX_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct plx_timer {
	TAILQ_ENTRY(plx_timer) link;
	uint64_t due_ticks;
	bool armed;
	void (*fn)(struct plx_timer *t, uint64_t now_ticks);
};

struct plx_timers {
	TAILQ_HEAD(plx_timer_list, plx_timer) list;
	uint64_t next_ticks; /* of the first, UINT64_MAX with none */
};

/** Thread of all: owner. */
void plx_timers_init(struct plx_timers *ts);

/** Arm, or move, a timer; it fires once. */
void plx_timer_arm(struct plx_timers *ts, struct plx_timer *t, uint64_t due_ticks);

/** Disarm; nothing happens when it is not armed. */
void plx_timer_disarm(struct plx_timers *ts, struct plx_timer *t);

/** @return when the first of the others is due, in ticks; UINT64_MAX with none. Thread: owner. */
uint64_t plx_timers_next_but(const struct plx_timers *ts, const struct plx_timer *but);

/** Fire all that are due; a timer may arm itself again for later. @return how many fired */
unsigned plx_timers_run(struct plx_timers *ts, uint64_t now_ticks);

/** How long to sleep. @param due_ticks not UINT64_MAX @return ns, 0 if it is due. Thread: any. */
uint64_t plx_timer_wait_ns(uint64_t due_ticks, uint64_t now_ticks);

#endif

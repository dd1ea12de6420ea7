/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * timer.c - a sorted list: few timers, or many with the same period
 */
#include <stddef.h>

#include <rte_cycles.h>

#include "plx_timer.h"

static void
timers_update(struct plx_timers *ts)
{
	struct plx_timer *first = TAILQ_FIRST(&ts->list);

	ts->next_ticks = first != NULL ? first->due_ticks : UINT64_MAX;
}

void
plx_timers_init(struct plx_timers *ts)
{
	TAILQ_INIT(&ts->list);
	ts->next_ticks = UINT64_MAX;
}

void
plx_timer_arm(struct plx_timers *ts, struct plx_timer *t, uint64_t due_ticks)
{
	struct plx_timer *at;

	plx_timer_disarm(ts, t);
	t->due_ticks = due_ticks;
	t->armed = true;
	/* from the end: most are armed for the same delay as those before them */
	TAILQ_FOREACH_REVERSE(at, &ts->list, plx_timer_list, link) {
		if (at->due_ticks <= due_ticks)
			break;
	}
	if (at != NULL)
		TAILQ_INSERT_AFTER(&ts->list, at, t, link);
	else
		TAILQ_INSERT_HEAD(&ts->list, t, link);
	timers_update(ts);
}

void
plx_timer_disarm(struct plx_timers *ts, struct plx_timer *t)
{
	if (!t->armed)
		return;
	TAILQ_REMOVE(&ts->list, t, link);
	t->armed = false;
	timers_update(ts);
}

uint64_t
plx_timers_next_but(const struct plx_timers *ts, const struct plx_timer *but)
{
	const struct plx_timer *first = TAILQ_FIRST(&ts->list);

	if (first == but && first != NULL)
		first = TAILQ_NEXT(first, link);
	return first != NULL ? first->due_ticks : UINT64_MAX;
}

unsigned
plx_timers_run(struct plx_timers *ts, uint64_t now_ticks)
{
	unsigned n = 0;

	while (ts->next_ticks <= now_ticks) {
		struct plx_timer *t = TAILQ_FIRST(&ts->list);

		plx_timer_disarm(ts, t);
		t->fn(t, now_ticks);
		n++;
	}
	return n;
}

uint64_t
plx_timer_wait_ns(uint64_t due_ticks, uint64_t now_ticks)
{
	if (due_ticks <= now_ticks)
		return 0;
	/* one more: a sleep that ends too early would be followed by another */
	return (uint64_t)((double)(due_ticks - now_ticks) * 1e9 / (double)rte_get_tsc_hz()) + 1;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * waits_ask.c - another thread asks owners what their workers wait for
 */
#include <stdlib.h>
#include <time.h>

#include "worker_int.h"

#define ASK_STEP_MS 1
#define WAKE_STEPS  10 /* between two wake-ups of owners that sleep */

/* The thread that asks; one at a time. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

/* A question to some workers. */
struct ask {
	uint64_t one;
	bool left; /* an answer is due */
	void (*fn)(struct plx_worker *w, const struct plx_waits *waits, void *arg);
	void *arg;
};

static bool
waits_told(const struct plx_waits_of *o)
{
	/* pairs with the release in worker_waits_tell() */
	return atomic_load_explicit(&o->told, memory_order_acquire) ==
	       atomic_load_explicit(&o->asked, memory_order_relaxed);
}

/* A question without an answer so far stands. */
static void
waits_ask(struct plx_worker *w, void *arg)
{
	const struct ask *a = arg;
	struct plx_waits_of *o = &w->waits_of;

	if ((a->one != UINT64_MAX && a->one != w->id) || !waits_told(o))
		return;
	if (o->out == NULL)
		o->out = calloc(1, sizeof(*o->out));
	if (o->out != NULL)
		/* pairs with the acquire in worker_timers_run() */
		atomic_fetch_add_explicit(&o->asked, 1, memory_order_release);
}

/* Owners that sleep look at their timers when they wake up. */
static void
waits_wake(struct plx_worker *w, void *arg)
{
	(void)arg;
	if (waits_told(&w->waits_of))
		return;
	(void)plx_worker_signal(w);
	if (w->dedicated)
		plx_reactor_wake(&w->poller);
}

static void
waits_look(struct plx_worker *w, void *arg)
{
	struct ask *a = arg;

	if ((a->one == UINT64_MAX || a->one == w->id) && !waits_told(&w->waits_of))
		a->left = true;
}

static void
waits_show(struct plx_worker *w, void *arg)
{
	const struct ask *a = arg;
	const struct plx_waits_of *o = &w->waits_of;

	if (a->one == UINT64_MAX || a->one == w->id)
		a->fn(w, waits_told(o) ? o->out : NULL, a->arg);
}

void
plx_waits_each(uint64_t one, uint32_t timeout_ms,
	void (*fn)(struct plx_worker *w, const struct plx_waits *waits, void *arg), void *arg)
{
	const struct timespec step = {.tv_nsec = ASK_STEP_MS * 1000000};
	struct ask a = {.one = one, .left = true, .fn = fn, .arg = arg};

	pthread_mutex_lock(&asking);
	plx_worker_each(waits_ask, &a);
	for (uint32_t i = 0; a.left && i <= timeout_ms / ASK_STEP_MS; i++) {
		if (i % WAKE_STEPS == 0)
			plx_worker_each(waits_wake, NULL);
		nanosleep(&step, NULL);
		a.left = false;
		plx_worker_each(waits_look, &a);
	}
	plx_worker_each(waits_show, &a);
	pthread_mutex_unlock(&asking);
}

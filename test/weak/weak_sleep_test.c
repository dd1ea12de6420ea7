/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_sleep_test.c - a reactor that sleeps, and who wakes it, on a weakly ordered machine: see weak.h
 *
 * Design notes
 * idle.c, reactor_wake.c and the inbox run as they are. The short sleep ends by itself, the long one never: each
 * wake-up that is lost is found.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "plx_conf.h"
#include "plx_fence.h"
#include "plx_mem.h"
#include "plx_timer.h"
#include "reactor_int.h"

#define BELL 1

static struct plx_reactor reactor;
static unsigned ran;
static uint64_t word;
static bool among; /* the processes that plx_fence_world() fences */

/* -- in place of other parts -- */

bool plx_fence_open(void) { return true; }
bool plx_fence_has(void) { return true; }
void plx_fence_all(void) { weak_barrier(); }
bool plx_fence_world_is_open(void) { return among; }
void *plx_mem_alloc(size_t len) { return aligned_alloc(64, len); }
void plx_mem_free(void *p) { free(p); }
void reactor_free(struct plx_reactor *r, struct plx_poller *p) { (void)r; (void)p; }
uint64_t plx_timer_wait_ns(uint64_t due_ticks, uint64_t now_ticks) { (void)due_ticks; (void)now_ticks; return 1000000; }
void reactor_offer(struct plx_reactor *r, uint64_t now_ticks) { (void)r; (void)now_ticks; }
bool reactor_is_shared(struct plx_reactor *r, uint64_t now_ticks) { (void)r; (void)now_ticks; return true; }

bool
plx_fence_world(void)
{
	if (among)
		weak_barrier();
	return true;
}

static void
run(void *arg)
{
	weak_check(*(uint64_t *)arg == 1);
	ran++;
}

static void
setup(bool fences_for_all)
{
	plx_inbox_close(&reactor.inbox);
	memset((void *)&reactor, 0, sizeof(reactor));
	if (plx_inbox_open(&reactor.inbox, false) != 0)
		abort();
	TAILQ_INIT(&reactor.pollers);
	reactor.bell = reactor.epfd = BELL;
	reactor.idle = PLX_IDLE_SLEEP;
	reactor_fences_for_all = fences_for_all;
	among = false;
	ran = 0;
	word = 0;
	weak_share(reactor.inbox.cells, PLX_INBOX_LEN * sizeof(reactor.inbox.cells[0]));
	weak_share(&word, sizeof(word));
	weak_name(&reactor.sleeping, "sleeping");
	weak_name(&reactor.inbox.cells[0].seq, "seq");
}

static void setup_fenced(void) { setup(true); }
static void setup_fencing(void) { setup(false); }

/* It has a poller, to whose queue other processes send. */
static void
setup_world(bool is_among)
{
	setup(true);
	among = is_among;
	reactor.n_mine = 1;
	atomic_store_explicit(&reactor.n_pollers, 1, memory_order_relaxed);
}

static void setup_among(void) { setup_world(true); }
static void setup_alone(void) { setup_world(false); }

/* As plx_reactor_wake() does behind a post. */
static void
post(void)
{
	word = 1;
	weak_check(plx_inbox_post(&reactor.inbox, run, &word) == 0);
	reactor_fence_post();
	reactor_wake(&reactor);
}

static void
loop(void)
{
	while (ran == 0)
		if (plx_inbox_run(&reactor.inbox) == 0)
			(void)reactor_idle(&reactor, 0);
}

static const struct weak_scene fenced = {.name = "a reactor fences for all before it sleeps", setup_fenced,
	{post, loop}, NULL,
	.moves = "seq"};
static const struct weak_scene among_others = {.name = "it fences for all processes, this one among them", setup_among,
	{post, loop}, NULL,
	.moves = "seq"};
static const struct weak_scene alone = {.name = "it fences for all other processes, and for this one", setup_alone,
	{post, loop}, NULL,
	.moves = "seq"};
static const struct weak_scene fencing = {.name = "a reactor and a poster fence", setup_fencing,
	{post, loop}, NULL};

static const struct weak_row rows[] = {
	{&fenced, WEAK_NOTHING, {0}},
	{&fenced, WEAK_STUCK, WEAK_WITHOUT(WEAK_BARRIER, NULL)},
	{&fenced, WEAK_STUCK, WEAK_WITHOUT(WEAK_SIGNAL_FENCE, NULL)},
	{&among_others, WEAK_NOTHING, {0}},
	{&among_others, WEAK_STUCK, WEAK_WITHOUT(WEAK_BARRIER, NULL)},
	{&alone, WEAK_NOTHING, {0}},
	{&alone, WEAK_STUCK, WEAK_WITHOUT(WEAK_BARRIER, NULL)},
	{&fencing, WEAK_NOTHING, {0}},
	{&fencing, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&fencing, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&fencing, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "seq")},
	{&fencing, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "seq")},
	{&fencing, WEAK_NOTHING, WEAK_WITHOUT(WEAK_STORE, "sleeping")}, /* a fence follows; plx_reactor_sleeps() needs it */
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}

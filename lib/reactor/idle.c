/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * idle.c - a reactor whose turns find nothing
 *
 * Design notes
 * - The policy auto detects other threads on the core. A reactor with a core of its own polls,
 *   and yields ever more rarely. On a shared core it polls for a few turns, yields, and then
 *   sleeps on an event: a sleeping thread gets the core at once when it is woken, while one that
 *   yields all the time has used up its share. If another thread does not release the core soon,
 *   because it computes, the reactor sleeps without yielding: the scheduler would run that thread
 *   for milliseconds. In both cases its workers are free, and with grant, which is otherwise as
 *   auto, an application that waits may take them (policy.c).
 * - No wake-up is lost. The reactor stores sleeping, and then looks at its inbox and asks every
 *   poller; a thread posts and then reads sleeping, in this order for the compiler. The thread
 *   that takes sleeping from ASLEEP writes to the eventfd. Devices have their own descriptors. A
 *   thread that read sleeping just before the store may have posted what is not visible yet. So
 *   the reactor first sleeps briefly, for REACTOR_DOZE_US. If nothing came in that time it fences
 *   for all threads of this process, and of others that send to it (membarrier(2)), and looks
 *   again before it sleeps for longer: this fence interrupts each computing thread, but a fence
 *   of each poster would cost it the time that its line takes to arrive. A sleep ends when the
 *   first of its pollers has something to do (plx_poller.due_ticks), or after SLEEP_MAX_MS.
 */
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "plx_conf.h"
#include "plx_fence.h"
#include "plx_timer.h"
#include "reactor_int.h"

#define SLEEP_MAX_MS   500u
#define SHARED_TURNS   UINT64_C(32) /* empty turns before a shared core is yielded */
#define SHARED_OFFERS  8  /* yields with a taker before it sleeps */

/* Arm all pollers. @return whether all agree */
static bool
arm(struct plx_reactor *r)
{
	struct plx_poller *p;

	r->due_ticks = UINT64_MAX;
	TAILQ_FOREACH(p, &r->pollers, link) {
		if (p->granted && reactor_was_returned(p))
			return false;
		if (!p->mine)
			continue;
		if (p->arm == NULL || p->arm(p->arg) != 0)
			return false;
		p->armed = true;
		r->due_ticks = RTE_MIN(r->due_ticks, p->due_ticks);
	}
	return true;
}

static void
free_all(struct plx_reactor *r)
{
	struct plx_poller *p;

	TAILQ_FOREACH(p, &r->pollers, link)
		reactor_free(r, p);
}

/* When to check the turns of granted workers. */
static struct timespec
next_look(const struct plx_reactor *r)
{
	uint32_t us = REACTOR_LOOK_SHORT_US;
	const struct plx_poller *p;

	TAILQ_FOREACH(p, &r->pollers, link)
		if (p->granted && p->look_us < us)
			us = p->look_us;
	return (struct timespec){.tv_nsec = us * 1000l};
}

/* Until the first of those that are armed has something to do. */
static int
until_due_ms(const struct plx_reactor *r)
{
	uint64_t now = rte_rdtsc(), due = RTE_MIN(r->due_ticks, now + us_ticks(SLEEP_MAX_MS * 1000u));

	return (int)((plx_timer_wait_ns(due, now) + 999999) / 1000000);
}

/* @return whether it timed out */
static bool
nap(struct plx_reactor *r, struct timespec most)
{
	struct pollfd fd = {.fd = r->epfd, .events = POLLIN};

	return ppoll(&fd, 1, &most, NULL) == 0;
}

/* @param sound all have executed a fence */
static void
rest(struct plx_reactor *r, bool sound)
{
	struct epoll_event ev;

	/* More events may follow the one that woke it: again a short sleep first. */
	if (r->n_granted != 0)
		r->dozed = nap(r, next_look(r)) && r->dozed;
	else if (sound)
		r->dozed = epoll_wait(r->epfd, &ev, 1, until_due_ms(r)) == 0;
	else
		r->dozed = nap(r, (struct timespec){.tv_nsec = REACTOR_DOZE_US * 1000l});
}

/* An application arms those that it owns now after its call, and nobody fences for it. */
static bool
has_all(const struct plx_reactor *r)
{
	/* relaxed: this reactor is notified of one that is being added or removed */
	return r->n_mine == atomic_load_explicit(&r->n_pollers, memory_order_relaxed);
}

/* Its pollers are armed then. */
static bool
may_sleep(struct plx_reactor *r)
{
	return plx_inbox_empty(&r->inbox) && !atomic_load_explicit(&r->stop, memory_order_relaxed) &&
	       arm(r);
}

/*
 * Pairs with the order in plx_reactor_wake(), and with that of senders to the pollers' queues. Each call of the kernel
 * interrupts the cores on which such threads compute, and one is enough for both where this process is one of those
 * that it fences for the others.
 */
static void
fence_for_all(const struct plx_reactor *r)
{
	const bool is_among = plx_fence_world_is_open(); /* before the call */

	if (r->n_mine == 0 || !plx_fence_world() || !is_among)
		reactor_fence_sleep();
}

/* @return whether it slept; otherwise turns are needed */
static bool
reactor_sleep(struct plx_reactor *r)
{
	bool sound = r->dozed && has_all(r), slept;
	uint64_t n;

	/* pairs with the acquire in plx_reactor_sleeps() */
	atomic_store_explicit(&r->sleeping, REACTOR_ASLEEP, memory_order_release);
	/* pairs with the fences in wake_after() and plx_poller_return() */
	atomic_thread_fence(memory_order_seq_cst);
	slept = may_sleep(r);
	if (slept && sound) {
		fence_for_all(r);
		slept = may_sleep(r);
	}
	if (slept) {
		PLX_STAT_INC(r->stat.sleeps);
		free_all(r); /* the next owner disarms */
		rest(r, sound);
	}
	if (atomic_exchange_explicit(&r->sleeping, REACTOR_AWAKE, memory_order_relaxed) == REACTOR_AWAKE)
		r->rings++;
	if (r->rings != 0 && read(r->bell, &n, sizeof(n)) > 0)
		r->rings -= n;
	else if (r->rings != 0)
		sched_yield(); /* it is about to write the eventfd: that wakes the next sleep, which
		                * consumes it */
	return slept;
}

/* This thread keeps no other one from running. */
static void
sleep_or_yield(struct plx_reactor *r)
{
	if (!reactor_sleep(r)) {
		free_all(r);
		sched_yield();
	}
}

/* All are granted, and no other thread uses the core: poll without system calls. */
static void
stand_by(struct plx_reactor *r)
{
	uint64_t start = rte_rdtsc(), ticks = us_ticks(REACTOR_LOOK_OWN_US);

	/* relaxed: a missed value is seen at the next look */
	atomic_store_explicit(&r->sleeping, REACTOR_STANDS_BY, memory_order_relaxed);
	while (atomic_load_explicit(&r->sleeping, memory_order_relaxed) != REACTOR_AWAKE &&
		rte_rdtsc() - start < ticks)
		rte_pause();
	atomic_store_explicit(&r->sleeping, REACTOR_AWAKE, memory_order_relaxed);
}

/* @return whether that took time */
static bool
idle_auto(struct plx_reactor *r, uint64_t now_ticks)
{
	if (reactor_granted_all(r) && !reactor_is_shared(r, now_ticks)) {
		stand_by(r);
	} else if (TAILQ_EMPTY(&r->pollers) || reactor_granted_all(r)) {
		sleep_or_yield(r);
	} else if (reactor_has_core(r, now_ticks)) {
		if (++r->yield.polls < r->yield.every)
			return false;
		r->yield.polls = 0;
		reactor_offer(r, now_ticks);
	} else if (r->hog || r->empty >= SHARED_TURNS + SHARED_OFFERS) {
		sleep_or_yield(r);
	} else {
		free_all(r);
		reactor_offer(r, now_ticks);
	}
	return true;
}

static uint64_t
turns_before_idle(const struct plx_reactor *r, unsigned policy, uint64_t now_ticks)
{
	/* relaxed: it may change a turn later */
	uint64_t turns = atomic_load_explicit(&r->idle_turns, memory_order_relaxed);

	if (reactor_granted_all(r))
		return 0;
	if (policy < PLX_IDLE_AUTO || reactor_has_core(r, now_ticks))
		return turns;
	return RTE_MIN(turns, (uint64_t)SHARED_TURNS);
}

bool
reactor_idle(struct plx_reactor *r, uint64_t now_ticks)
{
	unsigned policy = atomic_load_explicit(&r->idle, memory_order_relaxed);

	if (++r->empty < turns_before_idle(r, policy, now_ticks))
		return false;
	PLX_STAT_INC(r->stat.idles);
	switch (policy) {
	case PLX_IDLE_PAUSE:
		rte_pause();
		break;
	case PLX_IDLE_YIELD:
		sched_yield();
		break;
	case PLX_IDLE_SLEEP:
		sleep_or_yield(r);
		break;
	case PLX_IDLE_AUTO:
	case PLX_IDLE_GRANT:
		return idle_auto(r, now_ticks);
	default:
		return false;
	}
	return true;
}

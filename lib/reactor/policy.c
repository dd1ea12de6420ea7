/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * policy.c - when a reactor grants its workers to the application, and when it revokes them
 *
 * Design notes
 * - A reactor without a core of its own takes time from other threads, and each message costs two
 *   context switches, while an application that polls for that message is idle. So a reactor that
 *   yields or sleeps on a shared core frees its workers, and an application that waits takes
 *   them. It keeps them as long as it runs many turns; the reactor checks now and then, and
 *   revokes them when few were run, since then the application computes.
 * - A call that posts runs already: it need not wake a reactor for that. While a worker is
 *   granted, the call takes it, acts and returns it. While it is free the call takes it for
 *   itself: after the call it is free again and the reactor sleeps on, armed as before, unless
 *   the operation needs turns. So an application that computes and posts now and then pays for no
 *   wake-up, and the reactor handles arrivals. An application that often takes it for a call, or
 *   posts all the time while the reactor owns it on a shared core, is granted the worker as if it
 *   waited.
 * - Short data does not move while the application computes: the call sends it, and the receiver
 *   stores it. So an application that waits for short data gets the worker at once, and the
 *   reactor checks rarely: a program that waits often for a short time keeps it throughout. Long
 *   data should move meanwhile, so its post returns the worker. Until the transfer may be
 *   complete, an application that waits gets it soon on the reactor's very core, where only one
 *   of the two can run, and on another core when it has polled for a while; and the reactor
 *   checks soon.
 * - Waking a reactor for each long message costs more than moving the message on shared cores.
 *   Whether the application computes after such a post shows in its next call of progress: at
 *   once and repeatedly, or later. An application that usually waited keeps the worker on the
 *   reactor's very core, and moves the message itself, as if it were short; the reactor finds out
 *   at its next look if it computes instead. On another core nothing is guessed: each post of long
 *   data returns the worker, and an application that polls behind it takes it.
 * - An application that alternates between waiting and computing would find the reactor late each
 *   time, since that has to look first. So after a grant that ends soon the reactor keeps the
 *   worker, for twice as long each time. A grant whose threads did not run, being more of them
 *   than cores, does not count.
 */
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_conf.h"
#include "plx_proc.h"
#include "reactor_int.h"

static void
disarm(struct plx_poller *p)
{
	if (!p->armed)
		return;
	p->armed = false;
	p->disarm(p->arg);
}

static bool
on_core_of(const struct plx_reactor *r)
{
	/* relaxed: a wrong guess costs time only */
	return atomic_load_explicit(&r->cpu, memory_order_relaxed) == sched_getcpu();
}

static bool
grants(const struct plx_reactor *r)
{
	/* relaxed: it may change a turn later */
	return atomic_load_explicit(&r->idle, memory_order_relaxed) == PLX_IDLE_GRANT;
}

/* relaxed: only affects time */
static bool
may_grant(const struct plx_poller *p, uint64_t now_ticks)
{
	return now_ticks >= atomic_load_explicit(&p->grant_after, memory_order_relaxed);
}

/* relaxed: the same */
static bool
has_long(const struct plx_poller *p, uint64_t now_ticks)
{
	return now_ticks < atomic_load_explicit(&p->long_until, memory_order_relaxed);
}

/* relaxed: the same */
static bool
waits_long(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->waits_long, memory_order_relaxed);
}

/* The reactor should move long data while the application computes. */
static bool
leaves_long(const struct plx_poller *p, uint64_t now_ticks)
{
	return has_long(p, now_ticks) && !waits_long(p);
}

/* Time of other work counts half, for the reactor may have taken it. */
static bool
waits(struct plx_poller *p, bool near)
{
	uint64_t now = rte_rdtsc(), away;
	/* relaxed: a concurrent yield of another thread makes it a guess */
	uint64_t gap = now - atomic_load_explicit(&p->asked_ticks, memory_order_relaxed);
	bool again = gap <= us_ticks(REACTOR_ASK_US);

	atomic_store_explicit(&p->asked_ticks, now, memory_order_relaxed);
	if (again) {
		p->waited_ticks += gap;
	} else {
		away = RTE_MIN(gap / 2, us_ticks(REACTOR_AWAY_US));
		p->waited_ticks -= RTE_MIN(away, p->waited_ticks);
	}
	if (!may_grant(p, now))
		return false;
	if (!leaves_long(p, now))
		return again;
	return p->waited_ticks >= us_ticks(near ? REACTOR_WAIT_NEAR_US : REACTOR_WAIT_FAR_US);
}

/* A thread that took it so often for a call may keep it. */
static bool
calls_often(struct plx_poller *p)
{
	return ++p->n_calls % REACTOR_BORROW_CALLS == 0 && may_grant(p, rte_rdtsc());
}

static bool
take_free(struct plx_poller *p, bool polls)
{
	struct plx_reactor *r = atomic_load_explicit(&p->reactor, memory_order_relaxed);

	if (r == NULL || !grants(r) || (polls && !waits(p, on_core_of(r))) ||
		!plx_gate_take_free(&p->gate, PLX_GATE_TAKEN))
		return false;
	p->gate.for_call = !polls && !calls_often(p);
	if (p->gate.for_call)
		return true;
	p->near = on_core_of(r);
	/* relaxed: at worst the reactor sees it late, and its next look is late */
	atomic_store_explicit(&p->polled, polls, memory_order_relaxed);
	if (polls)
		p->waited_ticks = 0;
	disarm(p);
	reactor_wake(r); /* nothing else would: it has to look again soon */
	return true;
}

bool
plx_poller_take_slow(struct plx_poller *p, bool polls)
{
	if (plx_gate_is_granted(&p->gate))
		return plx_gate_take_granted(&p->gate);
	return !plx_gate_is_held(&p->gate) && take_free(p, polls);
}

void
plx_poller_give_taken(struct plx_poller *p)
{
	bool returns = p->returns;

	p->returns = false;
	plx_gate_give_taken(&p->gate);
	if (unlikely(returns))
		plx_poller_return(p);
}

bool
plx_poller_is_near(const struct plx_poller *p)
{
	const struct plx_reactor *r = atomic_load_explicit(&p->reactor, memory_order_relaxed);

	return r != NULL && has_long(p, rte_rdtsc()) && on_core_of(r);
}

static uint64_t
thread_ran_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* The last long post. Asymmetric hysteresis: a wrong "it waits" costs more than a spare
 * wake-up, so one that computed weighs as several that waited. */
static void
know_long(struct plx_poller *p, bool waited)
{
	atomic_store_explicit(&p->long_posted, false, memory_order_relaxed);
	if (waited)
		p->long_sure = RTE_MIN(p->long_sure + 1u, 2 * REACTOR_LONG_SURE);
	else
		p->long_sure -= RTE_MIN(p->long_sure, REACTOR_LONG_SURE);
	/* relaxed: only affects time */
	atomic_store_explicit(&p->waits_long, p->long_sure >= REACTOR_LONG_SURE, memory_order_relaxed);
}

/*
 * A thread has not called progress for gap ticks. @return whether it ran: a thread without
 * a core, for a slice of the scheduler or more, has not computed. The time without a core
 * is known since the last such gap; between the two it called often, so most of that time
 * is in this one.
 */
static bool
did_run(struct plx_poller *p, uint64_t now_ticks, uint64_t gap)
{
	double ns = 1e9 / rte_get_tsc_hz(), off;
	uint64_t ran;

	if (gap < us_ticks(REACTOR_SLICE_US))
		return true;
	ran = thread_ran_ns();
	off = (now_ticks - p->gap_ticks) * ns - (double)(ran - p->gap_ran_ns);
	p->gap_ticks = now_ticks;
	p->gap_ran_ns = ran;
	return off < gap * ns / 2;
}

void
plx_poller_asks_long(struct plx_poller *p)
{
	uint64_t now = rte_rdtsc();
	uint64_t gap = now - atomic_load_explicit(&p->long_ticks, memory_order_relaxed);

	atomic_store_explicit(&p->long_ticks, now, memory_order_relaxed);
	if (gap > us_ticks(REACTOR_ASK_US) && did_run(p, now, gap))
		know_long(p, false);
	else if (++p->long_asks >= REACTOR_LONG_ASKS)
		know_long(p, true);
}

/* It is granted: whether the application keeps it after a long post. */
static bool
keeps_long(const struct plx_poller *p)
{
	const struct plx_reactor *r = atomic_load_explicit(&p->reactor, memory_order_relaxed);

	return waits_long(p) && (r == NULL || on_core_of(r));
}

void
plx_poller_long(struct plx_poller *p, uint64_t len)
{
	uint64_t now = rte_rdtsc(), until = now + us_ticks(REACTOR_LONG_US + len / REACTOR_LONG_RATE);

	/* relaxed: only affects time */
	if (until > atomic_load_explicit(&p->long_until, memory_order_relaxed))
		atomic_store_explicit(&p->long_until, until, memory_order_relaxed);
	atomic_store_explicit(&p->long_ticks, now, memory_order_relaxed);
	if (!plx_poller_has_posted_long(p)) {
		p->long_asks = 0;
		atomic_store_explicit(&p->long_posted, true, memory_order_relaxed);
	}
	if (plx_gate_is_granted(&p->gate) && !keeps_long(p))
		plx_poller_return(p);
}

void
plx_poller_away(struct plx_poller *p)
{
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();

	/* relaxed: the last of several is one of them */
	if (unlikely(atomic_load_explicit(&p->waiter_thread, memory_order_relaxed) != thread)) {
		atomic_store_explicit(&p->waiter_thread, thread, memory_order_relaxed);
		atomic_store_explicit(&p->waiter, gettid(), memory_order_relaxed);
	}
	atomic_store_explicit(&p->away, true, memory_order_relaxed);
}

void
plx_poller_back(struct plx_poller *p)
{
	uint64_t now = rte_rdtsc();

	atomic_store_explicit(&p->asked_ticks, now, memory_order_relaxed);
	atomic_store_explicit(&p->long_ticks, now, memory_order_relaxed);
	atomic_store_explicit(&p->away, false, memory_order_relaxed);
}

void
plx_poller_return(struct plx_poller *p)
{
	struct plx_reactor *r = atomic_load_explicit(&p->reactor, memory_order_relaxed);

	if (plx_gate_is_within(&p->gate) || plx_gate_is_inside(&p->gate)) { /* a callback calls */
		p->returns = true;
		return;
	}
	if (!plx_gate_free_granted(&p->gate) || r == NULL)
		return;
	/* pairs with the fence in reactor_sleep(): either it sees that, or this thread sees
	 * that it sleeps */
	atomic_thread_fence(memory_order_seq_cst);
	reactor_wake(r);
}

/* Another thread is about to own the worker. */
static void
let_go(struct plx_reactor *r, struct plx_poller *p)
{
	p->mine = false;
	p->n_calls = 0;
	r->n_mine--;
	atomic_store_explicit(&r->cpu, sched_getcpu(), memory_order_relaxed);
}

void
reactor_free(struct plx_reactor *r, struct plx_poller *p)
{
	if (!p->mine)
		return;
	let_go(r, p);
	plx_gate_free(&p->gate);
}

/* The time that all threads ran, ns; this one sleeps meanwhile. */
static uint64_t
ran_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* Turns were seen to be run, or will be. A polling reactor runs, so it need not ask which
 * threads did. */
static void
look_again(const struct plx_reactor *r, struct plx_poller *p, uint32_t n_asked, uint64_t now_ticks)
{
	p->n_seen = n_asked;
	p->ran_ns = reactor_has_core(r, now_ticks) ? 0 : ran_ns();
	p->looked = now_ticks;
	p->granted_until = now_ticks + us_ticks(p->look_us);
}

/* @param long_us while long data moves */
static uint32_t
until_look_us(const struct plx_reactor *r, const struct plx_poller *p, uint64_t now_ticks, uint32_t long_us)
{
	if (reactor_has_core(r, now_ticks))
		return REACTOR_LOOK_OWN_US;
	if (leaves_long(p, now_ticks))
		return long_us;
	if (p->look_us == 0)
		return has_long(p, now_ticks) ? REACTOR_LOOK_MAX_US : REACTOR_LOOK_SHORT_US;
	return RTE_MIN(2 * p->look_us, REACTOR_LOOK_LATE_US);
}

static void
begin_grant(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks)
{
	bool polled = atomic_load_explicit(&p->polled, memory_order_relaxed);

	p->granted = true;
	p->granted_since = now_ticks;
	p->look_us = 0;
	p->look_us = until_look_us(r, p, now_ticks,
		polled ? REACTOR_LOOK_MIN_US : REACTOR_LOOK_MAX_US);
	r->n_granted++;
	PLX_STAT_INC(r->stat.grants);
	reactor_wake_remove(r, p); /* arrivals are not for the reactor */
}

void
reactor_end_grant(struct plx_reactor *r, struct plx_poller *p)
{
	p->granted = false;
	r->n_granted--;
	reactor_wake_add(r, p);
}

/* No turns were run. @return whether because its threads had no core, or slept */
static bool
did_not_run(const struct plx_poller *p, uint64_t now_ticks)
{
	return (ran_ns() - p->ran_ns) * 2 < (now_ticks - p->looked) / (rte_get_tsc_hz() / 1e9);
}

/* relaxed: only affects time */
static bool
is_away(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->away, memory_order_relaxed);
}

/*
 * @return whether a waiting thread is runnable without a core. The reactor leaves the
 *   worker to that thread, which would otherwise have to wait for it when it runs again.
 */
static bool
is_kept_off(const struct plx_poller *p, uint64_t now_ticks)
{
	/* relaxed: only affects time */
	uint32_t waiter = atomic_load_explicit(&p->waiter, memory_order_relaxed);

	return waiter != 0 && did_not_run(p, now_ticks) && plx_proc_runs(waiter);
}

/* @return whether the application runs many turns; checked now and then */
static bool
in_use(struct plx_reactor *r, struct plx_poller *p, uintptr_t owner, uint64_t now_ticks)
{
	uint32_t n = atomic_load_explicit(&p->n_asked, memory_order_relaxed);
	bool few = n - p->n_seen < RTE_MIN(REACTOR_GRANT_TURNS, 1 + p->look_us / REACTOR_TURN_US);

	if (owner == PLX_GATE_FREE)
		return false;
	if (!p->granted)
		begin_grant(r, p, now_ticks);
	else if (!grants(r)) /* the policy has changed: no more grants */
		return owner == PLX_GATE_TAKEN || plx_bias_is_inside(&p->gate.bias);
	else if (now_ticks < p->granted_until)
		return true;
	else if (is_away(p) || (few && is_kept_off(p, now_ticks)))
		p->look_us = REACTOR_LOOK_AWAY_US;
	else if (few)
		return owner == PLX_GATE_TAKEN || plx_bias_is_inside(&p->gate.bias);
	else
		p->look_us = until_look_us(r, p, now_ticks,
			RTE_MIN(2 * p->look_us, REACTOR_LOOK_MAX_US));
	look_again(r, p, n, now_ticks);
	return true;
}

/* Without a request: the next call finds it granted. */
static void
grant_unasked(struct plx_reactor *r, struct plx_poller *p, bool polled, uint64_t now_ticks)
{
	atomic_store_explicit(&p->polled, polled, memory_order_relaxed);
	p->near = false;
	begin_grant(r, p, now_ticks);
	look_again(r, p, atomic_load_explicit(&p->n_asked, memory_order_relaxed), now_ticks);
	let_go(r, p);
	plx_gate_grant(&p->gate);
}

void
reactor_grant_to_poster(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks)
{
	p->posts = 0;
	if (grants(r) && may_grant(p, now_ticks) && reactor_is_shared(r, now_ticks))
		grant_unasked(r, p, false, now_ticks);
}

static void
look_who_waits(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks)
{
	uint32_t n = atomic_load_explicit(&p->n_asked, memory_order_relaxed), asked = n - p->n_seen;

	p->n_seen = n;
	if (asked >= REACTOR_GRANT_TURNS && may_grant(p, now_ticks) && !leaves_long(p, now_ticks))
		grant_unasked(r, p, true, now_ticks);
}

void
reactor_grant_to_waiters(struct plx_reactor *r, uint64_t now_ticks)
{
	struct plx_poller *p;

	r->look_at = now_ticks + us_ticks(REACTOR_LOOK_OWN_US);
	if (!grants(r))
		return;
	TAILQ_FOREACH(p, &r->pollers, link)
		if (p->mine)
			look_who_waits(r, p, now_ticks);
}

static void
granted_in_vain(struct plx_poller *p, uint64_t now_ticks)
{
	bool soon = now_ticks - p->granted_since < us_ticks(REACTOR_WORTH_US);

	if (did_not_run(p, now_ticks))
		return;
	p->pause_us = soon && p->pause_us != 0 ? RTE_MIN(2 * p->pause_us, REACTOR_PAUSE_MAX_US)
					       : REACTOR_PAUSE_MIN_US;
	atomic_store_explicit(&p->grant_after, now_ticks + us_ticks(p->pause_us),
		memory_order_relaxed);
}

/* @return whether no other thread has it */
static bool
take_back(struct plx_poller *p, uintptr_t was)
{
	return was == PLX_GATE_FREE ? plx_gate_take_free(&p->gate, PLX_GATE_REACTOR)
				    : plx_gate_revoke(&p->gate);
}

bool
reactor_regain(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks)
{
	uintptr_t was = plx_gate_owner(&p->gate);

	if (in_use(r, p, was, now_ticks) || !take_back(p, was))
		return false;
	p->mine = true;
	r->n_mine++;
	if (p->granted) {
		if (was != PLX_GATE_FREE)
			granted_in_vain(p, now_ticks);
		reactor_end_grant(r, p);
		reactor_shared(r, now_ticks, p->near);
	}
	disarm(p);
	return true;
}

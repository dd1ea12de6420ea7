/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_poller.h - something that takes turns, and who gives them: a reactor, or threads that it grants them to
 *
 * Design notes
 * The gate (plx_gate.h) says who may give a turn. When a reactor grants turns and when it revokes them is its policy
 * (policy.c); what the policy has to know of the application is counted here, as the application asks for turns.
 */
#ifndef PLX_POLLER_H
#define PLX_POLLER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "plx_gate.h"

struct plx_reactor;

/** Embedded in its owner. */
struct plx_poller {
	/* hardly written while the reactor has the turns */
	alignas(64) _Atomic(struct plx_reactor *) reactor; /* writer: control; NULL when it runs on none */
	struct plx_gate gate;
	_Atomic uint64_t grant_after; /* ticks; writer: the reactor; not granted before */
	_Atomic bool polled;	   /* writer: the thread that has taken the turns over: it waits; else it posts */
	_Atomic bool waits_long;   /* writer: the application; who posts what is long waits for it */
	bool returns;		   /* owner: the application; behind its turn the reactor has them again */
	_Atomic uint64_t long_until; /* ticks; writer: the application; until then something long moves */
	unsigned (*fn)(void *arg, bool granted); /* one turn, of the application's if granted; how much it did */
	/*
	 * Before the reactor sleeps: 0 when no turn is needed until one of fds polls readable or
	 * plx_reactor_wake() is called, or -EBUSY; and after it, or after others were busy. NULL:
	 * turns are needed at any time.
	 */
	int (*arm)(void *arg);
	void (*disarm)(void *arg);
	void *arg;
	const int *fds;
	unsigned n_fds;
	/* application: who has the turns, or asks for them */
	alignas(64) _Atomic uint32_t n_asked; /* turns given, and asked for in vain; reader: the reactor */
	_Atomic bool away;   /* it waits, and has yielded its core; readers: the reactor */
	_Atomic uint32_t waiter; /* the number of the thread that waited last; the same */
	_Atomic uintptr_t waiter_thread;
	_Atomic uint64_t asked_ticks; /* when it did last */
	uint64_t waited_ticks; /* for how long, less what it did something else */
	/* when something long was posted, or turns behind it were asked for or given; writer: any */
	_Atomic uint64_t long_ticks;
	_Atomic bool long_posted; /* does it wait for that? writer: one at a time */
	uint64_t gap_ticks;    /* when it last asked after it had not for a while, */
	uint64_t gap_ran_ns;   /* and how long its thread had run then */
	uint8_t long_asks;     /* so often, so far */
	uint8_t long_sure;     /* REACTOR_LONG_SURE: it mostly has */
	/* owner: who has the turns */
	alignas(64) bool armed;
	bool near; /* the thread that took them over was on the reactor's core */
	uint32_t n_calls; /* that borrowed them since the reactor had them */
	uint32_t posts;	  /* the reactor's turns in a row that ran what the application posted */
	/* owner: the reactor */
	bool mine; /* it has the turns */
	bool granted; /* the application has them, as far as it knows */
	uint32_t n_seen; /* of n_asked, when it looked */
	uint32_t look_us, pause_us;
	uint64_t granted_since, granted_until; /* ticks */
	uint64_t looked; /* ticks, when turns were last seen to be given */
	uint64_t ran_ns; /* of the whole process, then; 0: not asked */
	TAILQ_ENTRY(plx_poller) link;
};

/** Slow paths of plx_poller_take(). */
void plx_poller_asks_long(struct plx_poller *p);
bool plx_poller_take_slow(struct plx_poller *p, bool polls);

/* One thread at a time; the reactor looks now and then. */
static inline void
plx_poller_asked(struct plx_poller *p, uint32_t n)
{
	n += atomic_load_explicit(&p->n_asked, memory_order_relaxed);
	atomic_store_explicit(&p->n_asked, n, memory_order_relaxed);
}

/* relaxed: it is about time only */
static inline bool
plx_poller_has_posted_long(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->long_posted, memory_order_relaxed);
}

/* @return whether the turns, which are granted to this thread, are its until plx_poller_give() */
static inline bool
plx_poller_enter(struct plx_poller *p, uintptr_t self)
{
	if (unlikely(!plx_gate_enter(&p->gate, self)))
		return false;
	p->gate.entered = true;
	return true;
}

/**
 * Take over the turns of a reactor that idles on a core which it shares, or those that are granted to the
 * application. A reactor that has them learns how often they are asked for.
 * One thread alone, or the first of several until another comes, has no locked instruction for that.
 * @param polls the application asks for progress: often, and it waits. By one thread at a time.
 * Otherwise it has something to do and may borrow them for that
 * @return whether they are this thread's, until plx_poller_give(). Thread: any. Blocks: never.
 */
static inline bool
plx_poller_take(struct plx_poller *p, bool polls)
{
	uintptr_t owner = plx_gate_owner(&p->gate), self;

	if (polls && unlikely(plx_poller_has_posted_long(p)))
		plx_poller_asks_long(p);
	if (owner == PLX_GATE_REACTOR) {
		if (polls)
			plx_poller_asked(p, 1);
		return false;
	}
	self = plx_gate_self(&p->gate);
	return likely(owner == self) ? plx_poller_enter(p, self) : plx_poller_take_slow(p, polls);
}

/** The application will take no turns: the reactor shall; behind the present one, in a callback. Thread: any. */
void plx_poller_return(struct plx_poller *p);

/** Slow path of plx_poller_give(). */
void plx_poller_give_taken(struct plx_poller *p);

/* It was entered. */
static inline void
plx_poller_leave(struct plx_poller *p)
{
	bool returns = p->returns;

	if (unlikely(returns))
		p->returns = false;
	plx_gate_leave(&p->gate);
	if (unlikely(returns))
		plx_poller_return(p);
}

/**
 * After plx_poller_take(); what is loaded behind it is loaded after it.
 * @param turns that it counts for: as long as these are given the reactor leaves it to others
 */
static inline void
plx_poller_give(struct plx_poller *p, uint32_t turns)
{
	if (turns != 0)
		plx_poller_asked(p, turns);
	if (unlikely(plx_poller_has_posted_long(p)))
		atomic_store_explicit(&p->long_ticks, rte_rdtsc(), memory_order_relaxed);
	if (likely(p->gate.entered))
		plx_poller_leave(p);
	else
		plx_poller_give_taken(p);
}

/**
 * @return whether this thread runs on the reactor's very core, while something long is under way: the receiver
 * that moves it may need this core. Thread: any.
 */
bool plx_poller_is_near(const struct plx_poller *p);

/**
 * A thread that waits is about to yield its core. Until plx_poller_back() it counts as one that
 * asks for turns: the reactor leaves them granted. Thread: any.
 */
void plx_poller_away(struct plx_poller *p);
void plx_poller_back(struct plx_poller *p);

/**
 * Something long was posted, which shall move while the application computes: it returns its turns,
 * and for as long as that may take it has them again only when it has waited for a while. An application that mostly
 * waited for such before keeps them.
 * @param len bytes
 * Thread: any, one at a time.
 */
void plx_poller_long(struct plx_poller *p, uint64_t len);

#endif

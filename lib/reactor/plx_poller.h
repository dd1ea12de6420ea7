/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_poller.h - something that needs turns, and their owner: a reactor, or threads that it
 * grants them to
 *
 * Design notes
 * - The gate (plx_gate.h) says which thread may run a turn. When a reactor grants and revokes is
 *   its policy (policy.c); the counters of the application for the policy are here, as the
 *   application calls progress.
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
	/* rarely written while the reactor is the owner */
	alignas(64) _Atomic(struct plx_reactor *) reactor; /* writer: control; NULL: no reactor */
	struct plx_gate gate;
	_Atomic uint64_t grant_after; /* ticks; writer: the reactor; not granted before */
	_Atomic bool polled;	   /* writer: the thread that has taken the worker: true if it
	                    	    * waits; else it posts */
	_Atomic bool waits_long;   /* writer: the application; after posting long data it waits for
	                            * it */
	bool returns;		   /* owner: the application; it returns the worker after its turn */
	_Atomic uint64_t long_until; /* ticks; writer: the application; until then long data moves */
	unsigned (*fn)(void *arg, bool granted); /* one turn, of the application's if granted;
	                                          * @return the number of events */
	/*
	 * Before the reactor sleeps: 0 if no turn is needed until one of fds polls readable
	 * or plx_reactor_wake() is called, or due_ticks, or -EBUSY; and after the sleep, or after
	 * others were busy. NULL: turns are needed at any time.
	 */
	int (*arm)(void *arg);
	void (*disarm)(void *arg);
	void *arg;
	const int *fds;
	unsigned n_fds;
	/* application: the owner, or a thread that wants to be */
	alignas(64) _Atomic uint32_t n_asked; /* turns run, and failed attempts to take; reader: the
	                                       * reactor */
	_Atomic bool away;   /* it waits, and has yielded its core; readers: the reactor */
	_Atomic uint32_t waiter; /* thread id of the last that waited; the same */
	_Atomic uintptr_t waiter_thread;
	_Atomic uint64_t asked_ticks; /* time of its last call */
	uint64_t waited_ticks; /* how long, minus other work */
	/* when long data was posted, or turns after it were requested or run; writer: any */
	_Atomic uint64_t long_ticks;
	_Atomic bool long_posted; /* does it wait for it? writer: one at a time */
	uint64_t gap_ticks;    /* first call of progress after a gap, */
	uint64_t gap_ran_ns;   /* and how long its thread had run then */
	uint8_t long_asks;     /* calls of progress so far */
	uint8_t long_sure;     /* REACTOR_LONG_SURE: it usually has waited */
	/* owner of the worker */
	alignas(64) bool armed;
	uint64_t due_ticks; /* arm sets it: the sleep ends then at the latest; UINT64_MAX: when it likes */
	bool near; /* the thread that took it was on the reactor's core */
	uint32_t n_calls; /* calls that took it for themselves since the reactor owned it */
	uint32_t posts;	  /* consecutive turns of the reactor that ran posts of the application */
	/* owner: the reactor */
	bool mine; /* it is the owner */
	bool granted; /* granted, as far as it knows */
	uint32_t n_seen; /* n_asked at the last look */
	uint32_t look_us, pause_us;
	uint64_t granted_since, granted_until; /* ticks */
	uint64_t looked; /* ticks, when turns were last seen to be run */
	uint64_t ran_ns; /* of the whole process, then; 0: not asked */
	TAILQ_ENTRY(plx_poller) link;
};

/** Slow paths of plx_poller_take(). */
void plx_poller_asks_long(struct plx_poller *p);
bool plx_poller_take_slow(struct plx_poller *p, bool polls);

/* One thread at a time; the reactor reads it now and then. */
static inline void
plx_poller_asked(struct plx_poller *p, uint32_t n)
{
	n += atomic_load_explicit(&p->n_asked, memory_order_relaxed);
	atomic_store_explicit(&p->n_asked, n, memory_order_relaxed);
}

/* relaxed: only affects time */
static inline bool
plx_poller_has_posted_long(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->long_posted, memory_order_relaxed);
}

/* @return whether this thread, which the worker is granted to, owns it until plx_poller_give() */
static inline bool
plx_poller_enter(struct plx_poller *p, uintptr_t self)
{
	if (unlikely(!plx_gate_enter(&p->gate, self)))
		return false;
	p->gate.entered = true;
	return true;
}

/**
 * Take ownership of a worker whose reactor idles on a shared core, or which is granted to
 * the application. A reactor that owns it learns how often it is requested. One thread
 * alone, or the first of several until another comes, needs no locked instruction.
 * @param polls true: the caller polls and may keep ownership (one thread at a time); false:
 *   the caller needs it for one operation
 * @return whether this thread owns it, until plx_poller_give(). Thread: any. Blocks: never.
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

/**
 * The application will not run turns: the reactor shall; after the present one, in a
 * callback. Thread: any.
 */
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
 * After plx_poller_take(); later loads are ordered after it.
 * @param turns that it counts for: while these are run the reactor keeps the grant
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
 * @return whether this thread runs on the reactor's very core, while long data moves: the
 *   receiver may need this core. Thread: any.
 */
bool plx_poller_is_near(const struct plx_poller *p);

/**
 * A waiting thread is about to yield its core. Until plx_poller_back() it counts as
 * polling: the reactor keeps the grant. Thread: any.
 */
void plx_poller_away(struct plx_poller *p);
void plx_poller_back(struct plx_poller *p);

/**
 * Long data was posted, which should move while the application computes: the application
 * returns the worker, and for the time of the transfer gets it again only after it has
 * waited for a while. An application that usually waited before keeps it.
 * @param len bytes
 * Thread: any, one at a time.
 */
void plx_poller_long(struct plx_poller *p, uint64_t len);

#endif

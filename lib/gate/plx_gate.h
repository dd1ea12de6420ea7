/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_gate.h - the gate before a worker: may this thread act as its owner now?
 *
 * Design notes
 * A worker with a reactor has one owner at a time: the reactor, or a thread of the application
 * that the reactor has granted the worker to. The gate records the owner. The owner may do anything
 * with the worker's state, and sees what earlier owners wrote: taking acquires what returning
 * released. A thread that may not own the worker posts to the inbox (plx_inbox.h).
 *
 *        grant                              take
 *   REACTOR ------> ALL, ONE or a thread  <------> TAKEN
 *      ^  \          | revoke: the reactor             | return, for_call
 *      |   \---------|---------> FREE <----------------/
 *      \-------------/             (the reactor sleeps)
 *
 * A grant is biased (plx_bias.h): to the one thread that posts, whichever it is (ONE), or to the
 * first of several. That thread enters and leaves by plain stores. The first other thread ends the
 * bias for good: from then on the worker is granted to ALL, and each thread takes and returns it by a
 * locked instruction.
 *
 * When to grant and when to revoke is the reactor's policy (lib/reactor/policy.c).
 */
#ifndef PLX_GATE_H
#define PLX_GATE_H

#include <stdbool.h>

#include "plx_bias.h"

/**
 * How a call becomes the owner of a worker. Fixed when the worker is made; the faces have one body for each operation,
 * instantiated for each mode.
 */
enum plx_gate_mode {
	PLX_GATE_SINGLE, /* nothing: the one thread that calls is the owner */
	PLX_GATE_LOCKED, /* the lock of several threads (plx_lock.h): its holder is the owner */
	PLX_GATE_SHARED, /* this gate: the application shares the worker with a reactor */
};

/** The owner, in bias.to: one of these, or the thread that has the turns granted. The order counts. */
enum plx_gate_owner {
	PLX_GATE_FREE,	  /* nobody: the reactor idles on a shared core */
	PLX_GATE_REACTOR,
	PLX_GATE_TAKEN,	  /* a thread of the application, temporarily */
	PLX_GATE_ALL,	  /* granted: the application's threads take and return */
	PLX_GATE_ONE,	  /* granted: the one thread that posts enters */
};

/** How a thread became the owner for a call. */
enum plx_gate_pass {
	PLX_GATE_NOT,	  /* it did not: it posts a message */
	PLX_GATE_ENTERED, /* by the bias, as the one thread that posts */
	PLX_GATE_GIVEN,	  /* otherwise, or it was already: a callback calls */
};

struct plx_gate {
	struct plx_bias bias;
	uintptr_t grantee; /* thread of the next grant; 0: the first thread that takes; writer: the
	                    * owner */
	bool one;	   /* only one thread of the application posts; also false without
	         	    * membarrier */
	/* owner: the application */
	bool entered;  /* by the bias, not by TAKEN */
	bool for_call; /* TAKEN for one call, then FREE again */
	_Atomic uintptr_t within; /* the thread in whose turn callbacks run, or 0; writer: the owner */
};

/**
 * The reactor is the owner at first.
 * @param one one thread of the application posts, at a time
 * Thread: control.
 */
void plx_gate_open(struct plx_gate *g, bool one);

/** @return this thread's name at the gate. Thread: any. */
static inline uintptr_t
plx_gate_self(const struct plx_gate *g)
{
	return likely(g->one) ? PLX_GATE_ONE : plx_bias_self();
}

/**
 * @return the owner, which may change at any time. Thread: any; relaxed, as a thread that
 *   takes acquires.
 */
static inline uintptr_t
plx_gate_owner(const struct plx_gate *g)
{
	return atomic_load_explicit(&g->bias.to, memory_order_relaxed);
}

/** @return whether the reactor is the owner. Thread: any. */
static inline bool
plx_gate_is_held(const struct plx_gate *g)
{
	return plx_gate_owner(g) == PLX_GATE_REACTOR;
}

/** @return whether the worker is granted. Thread: any. */
static inline bool
plx_gate_is_granted(const struct plx_gate *g)
{
	return plx_gate_owner(g) >= PLX_GATE_TAKEN;
}

/** @return whether the caller is a callback in a turn of this thread. Thread: any. */
static inline bool
plx_gate_is_within(const struct plx_gate *g)
{
	/* relaxed: only this thread's own store makes it equal */
	return atomic_load_explicit(&g->within, memory_order_relaxed) == plx_bias_self();
}

/**
 * @return whether this thread is inside by the bias, so that the caller is a callback.
 *   Thread: any.
 */
static inline bool
plx_gate_is_inside(const struct plx_gate *g)
{
	return plx_bias_is_mine(&g->bias, plx_gate_self(g));
}

/**
 * By the bias only.
 * @param self plx_gate_self(), and it was the owner a moment ago
 * @return whether this thread is the owner, until plx_gate_leave(); not in a callback
 */
static inline bool
plx_gate_enter(struct plx_gate *g, uintptr_t self)
{
	if (unlikely(plx_bias_is_mine(&g->bias, self)))
		return false;
	if (likely(plx_bias_enter(&g->bias, self)))
		return true;
	/* Other threads that saw this one inside rely on it to run their messages: it checks
	 * the inbox after this. */
	atomic_thread_fence(memory_order_seq_cst);
	return false;
}

/**
 * @param owner plx_gate_owner()
 * @return whether the worker is granted and no thread is inside that would run the inbox: a
 *   thread that has posted, and failed to take the worker, tries again. Thread: any, after a
 *   fence.
 */
static inline bool
plx_gate_is_idle(const struct plx_gate *g, uintptr_t owner)
{
	return owner >= PLX_GATE_ALL && !plx_bias_is_inside(&g->bias);
}

/** Later loads are ordered after it if others may have posted meanwhile. */
static inline void
plx_gate_leave(struct plx_gate *g)
{
	plx_bias_leave(&g->bias);
	/* Threads that revoked the bias while this one was inside rely on it to run their
	 * messages. */
	if (unlikely(plx_gate_owner(g) != plx_gate_self(g)))
		atomic_thread_fence(memory_order_seq_cst);
}

/**
 * Take a granted worker that is not granted to this thread: it revokes a bias. @return
 * whether it has TAKEN it
 */
bool plx_gate_take_granted(struct plx_gate *g);

/** Take a FREE worker. @return whether `to`, TAKEN or REACTOR, is the owner now */
bool plx_gate_take_free(struct plx_gate *g, enum plx_gate_owner to);

/** Return a TAKEN worker. Later loads are ordered after it. */
void plx_gate_give_taken(struct plx_gate *g);

/**
 * The application does not need the worker. @return whether it is FREE; not while a thread
 * has it
 */
bool plx_gate_free_granted(struct plx_gate *g);

/** From the reactor to the application, or to nobody. Thread: the reactor, and owner. */
void plx_gate_grant(struct plx_gate *g);
void plx_gate_free(struct plx_gate *g);

/**
 * From the application. @return whether the reactor is the owner; not while a thread is in.
 * Thread: the reactor.
 */
bool plx_gate_revoke(struct plx_gate *g);

#endif

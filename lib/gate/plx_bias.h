/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_bias.h - biased ownership: one thread enters without a locked instruction, others can revoke that
 *
 * Design notes
 * This is the one algorithm by which the library lets a thread in cheaply. The lock of several threads (plx_lock.h)
 * and the gate between an application and its reactor (plx_gate.h) both stand on it. A locked instruction would also
 * wait for all that was just stored for a peer; a message would have four of them.
 *
 * Proof. `to` names the one thread T that is let in, or nobody.
 *
 *   T enters:                            R revokes, one at a time:
 *     1  inside = T                        a  to = somebody else
 *        (compiler barrier)                b  every thread passes a full barrier: plx_fence_all()
 *     2  if (to == T) T is in              c  if (inside == 0) T is out, and stays out
 *     3  else inside = 0
 *
 * The barrier that T passes in b lies before 2 or behind it. Before 2: the load in 2 comes behind a, finds `to`
 * changed, and T leaves by 3. Behind 2: the store in 1 is visible before c, which finds T inside. So T and R are never
 * both in. What T did is visible to R, as T's leaving releases and c acquires; what R did is visible to T, as a
 * grant (a store of T to `to`) releases and 2 acquires.
 *
 * R that finds T inside has two ways: it waits until T is out (a lock), or it grants `to` back and goes on without
 * (a gate). Only the thread that `to` names, or has named, may store to inside: a thread may stand before 1 for any
 * time and would wipe out another's store. So a bias that several threads have revoked is never granted to another
 * thread again.
 *
 * test/gate_explore_test.c explores all this, with store buffers and planted bugs; test/weak runs this code on a
 * model of a weakly ordered machine.
 */
#ifndef PLX_BIAS_H
#define PLX_BIAS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "plx_fence.h"

struct plx_bias {
	_Atomic uintptr_t to;	  /* a thread's plx_bias_self(), or a small number of the user's: no thread */
	_Atomic uintptr_t inside; /* the thread that is in; writer: that thread */
};

/** @return this thread's name: larger than any number of a user's. */
static inline uintptr_t
plx_bias_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/** Thread: the one that is in. */
static inline void
plx_bias_leave(struct plx_bias *b)
{
	/* pairs with the acquire in plx_bias_is_inside() */
	atomic_store_explicit(&b->inside, 0, memory_order_release);
}

/**
 * Steps 1 to 3 of the proof.
 * @param self the caller, as `to` names it
 * @return whether it is in, until plx_bias_leave(). Thread: one that `to` names or has named, and is not in.
 */
static inline bool
plx_bias_enter(struct plx_bias *b, uintptr_t self)
{
	atomic_store_explicit(&b->inside, self, memory_order_relaxed);
	/* pairs with plx_fence_all() behind plx_bias_revoke(): inside is stored before `to` is read */
	atomic_signal_fence(memory_order_seq_cst);
	/* pairs with the release of the granting thread */
	if (likely(atomic_load_explicit(&b->to, memory_order_acquire) == self))
		return true;
	plx_bias_leave(b);
	return false;
}

/** @return whether this thread is in. Thread: any; relaxed, as only its own store makes it equal. */
static inline bool
plx_bias_is_mine(const struct plx_bias *b, uintptr_t self)
{
	return atomic_load_explicit(&b->inside, memory_order_relaxed) == self;
}

/** Step c. @return whether the thread that was let in is in. Thread: any. */
static inline bool
plx_bias_is_inside(const struct plx_bias *b)
{
	/* pairs with the release in plx_bias_leave() */
	return atomic_load_explicit(&b->inside, memory_order_acquire) != 0;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_lock.h - the lock of an endpoint: nearly free for the thread that uses it alone
 *
 * Design notes
 * The first thread that takes the lock is favoured: it takes it by plain stores and
 * loads, without a locked instruction, which would also wait for all that was just
 * stored for the peer. The first other thread ends that for good: it says so in
 * favoured, makes all threads of the process pass a barrier (plx_fence_all()) and waits
 * until the favoured one is out. Either that one's held was stored before the barrier
 * and is seen, or its second look at favoured comes after it and finds the change.
 */
#ifndef CCI_LOCK_H
#define CCI_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

/* Values of favoured that are no thread's. */
#define CCI_LOCK_NOBODY 0 /* yet */
#define CCI_LOCK_ALL	1 /* several threads use it */

/** Zeroed: free, and never taken. */
struct cci_lock {
	_Atomic uintptr_t favoured; /* a thread; writer: who has taken */
	_Atomic int held;	    /* writer: the favoured thread */
	_Atomic int taken;	    /* by any thread, in the slow way */
	bool fast;		    /* how it was taken by who has it */
};

/** Can a thread be favoured in this process? Once, before any lock is taken. */
void cci_locks_init(void);

/** Slow path of cci_lock_take(). */
void cci_lock_slow(struct cci_lock *l);

/**
 * Only without waiting, and without a locked instruction. Thread: any; not by one that has it.
 * @return whether it is taken: any way of dropping it will do
 */
static inline bool
cci_lock_take_quick(struct cci_lock *l)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	/* alone: only this thread's own claim makes it equal */
	if (unlikely(atomic_load_explicit(&l->favoured, memory_order_relaxed) != self))
		return false;
	atomic_store_explicit(&l->held, 1, memory_order_relaxed);
	/* pairs with the barrier in unfavour(): held is stored before favoured is read */
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&l->favoured, memory_order_acquire) == self)) {
		l->fast = true;
		return true;
	}
	atomic_store_explicit(&l->held, 0, memory_order_release);
	return false;
}

/** What cci_lock_take_quick() took, and nothing else. */
static inline void
cci_lock_drop_quick(struct cci_lock *l)
{
	/* pairs with the acquire in wait_for() */
	atomic_store_explicit(&l->held, 0, memory_order_release);
}

/** Thread: any; not by one that has it. Blocks: while another has it. */
static inline void
cci_lock_take(struct cci_lock *l)
{
	if (unlikely(!cci_lock_take_quick(l)))
		cci_lock_slow(l);
}

static inline void
cci_lock_drop(struct cci_lock *l)
{
	/* pairs with the acquires in cci_lock.c */
	atomic_store_explicit(likely(l->fast) ? &l->held : &l->taken, 0, memory_order_release);
}

#endif

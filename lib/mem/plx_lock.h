/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_lock.h - a lock that is nearly free for the thread that uses it alone
 *
 * Design notes
 * The first thread that takes the lock is favoured: it takes it by plain stores and
 * loads, without a locked instruction, which would also wait for all that was just
 * stored for a peer. Another thread takes the favour away: it says so in favoured, makes
 * all threads of the process pass a barrier (plx_fence_all()) and waits until the favoured
 * one is out. Either that one's inside was stored before the barrier and is seen, or its
 * second look at favoured comes after it and finds the change.
 *
 * From then on it is an ordinary lock, on which who waits long sleeps, for good: the former favoured
 * thread may stand before its store to inside for any time, and would wipe out another's.
 */
#ifndef PLX_LOCK_H
#define PLX_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

/* Values of favoured that are no thread's. */
#define PLX_LOCK_NOBODY 0 /* yet */
#define PLX_LOCK_ALL	1 /* several threads use it */

enum plx_lock_taken {
	PLX_LOCK_FREE,
	PLX_LOCK_TAKEN,
	PLX_LOCK_SLEPT_ON, /* and somebody may sleep */
};

struct plx_lock {
	_Atomic uintptr_t favoured; /* a thread; writer: who has taken */
	_Atomic uintptr_t inside;   /* the favoured thread while it has the lock; writer: it */
	_Atomic uintptr_t owner;    /* who has taken; writer: it, relaxed, as only it finds itself there */
	_Atomic uint32_t taken;	    /* enum plx_lock_taken; in the slow way, by any thread */
	uint32_t depth;		    /* who has it: how often it has entered besides */
};

/** Free, and never taken. Thread: control. */
void plx_lock_open(struct plx_lock *l);

/** Slow paths of plx_lock_take() and plx_lock_drop(). */
void plx_lock_take_slow(struct plx_lock *l);
void plx_lock_drop_slow(struct plx_lock *l);

/** Slow path of plx_lock_try_enter(). */
bool plx_lock_try_slow(struct plx_lock *l);

/**
 * Only without waiting, and without a locked instruction. Thread: any; not by one that has it.
 * @return whether it is taken: any way of dropping it will do
 */
static inline bool
plx_lock_take_quick(struct plx_lock *l)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	/* alone: only this thread's own claim makes it equal */
	if (unlikely(atomic_load_explicit(&l->favoured, memory_order_relaxed) != self))
		return false;
	atomic_store_explicit(&l->inside, self, memory_order_relaxed);
	/* pairs with the barrier in unfavour(): inside is stored before favoured is read */
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&l->favoured, memory_order_acquire) == self))
		return true;
	atomic_store_explicit(&l->inside, 0, memory_order_release);
	return false;
}

/** What plx_lock_take_quick() took, and nothing else. */
static inline void
plx_lock_drop_quick(struct plx_lock *l)
{
	/* pairs with the acquire in is_inside() */
	atomic_store_explicit(&l->inside, 0, memory_order_release);
}

/** Thread: any; not by one that has it. Blocks: while another has it. */
static inline void
plx_lock_take(struct plx_lock *l)
{
	if (unlikely(!plx_lock_take_quick(l)))
		plx_lock_take_slow(l);
}

/** What this thread has taken, in whatever way. */
static inline void
plx_lock_drop(struct plx_lock *l)
{
	/* relaxed: only this thread's own store makes it equal */
	if (likely(atomic_load_explicit(&l->inside, memory_order_relaxed) ==
		    (uintptr_t)__builtin_thread_pointer()))
		plx_lock_drop_quick(l);
	else
		plx_lock_drop_slow(l);
}

/** @return whether this thread has it. Thread: any. */
static inline bool
plx_lock_is_mine(const struct plx_lock *l)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	/* relaxed: the same */
	return atomic_load_explicit(&l->inside, memory_order_relaxed) == self ||
	       atomic_load_explicit(&l->owner, memory_order_relaxed) == self;
}

/** @return whether no other thread would lose its favour by this one's taking it. Thread: any. */
static inline bool
plx_lock_is_open_to_me(const struct plx_lock *l)
{
	/* relaxed: about speed only */
	uintptr_t favoured = atomic_load_explicit(&l->favoured, memory_order_relaxed);

	return favoured == PLX_LOCK_ALL || favoured == (uintptr_t)__builtin_thread_pointer();
}

/** As plx_lock_take(), also by who has it. */
static inline void
plx_lock_enter(struct plx_lock *l)
{
	if (unlikely(plx_lock_is_mine(l)))
		l->depth++;
	else
		plx_lock_take(l);
}

/** As plx_lock_enter(). @return false: another has it. Blocks: never. */
static inline bool
plx_lock_try_enter(struct plx_lock *l)
{
	if (unlikely(plx_lock_is_mine(l))) {
		l->depth++;
		return true;
	}
	return likely(plx_lock_take_quick(l)) || plx_lock_try_slow(l);
}

/** Once for each time that it was entered. */
static inline void
plx_lock_leave(struct plx_lock *l)
{
	if (unlikely(l->depth != 0))
		l->depth--;
	else
		plx_lock_drop(l);
}

#endif

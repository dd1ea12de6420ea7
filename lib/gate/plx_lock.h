/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_lock.h - the gate of threads that share an object: nearly free for the thread that uses it alone
 *
 * Design notes
 * The bias (plx_bias.h) is granted to the first thread that takes the lock. Another thread revokes it for good and
 * waits until the first is out. From then on it is an ordinary lock, on which a thread that waits long sleeps.
 */
#ifndef PLX_LOCK_H
#define PLX_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "plx_bias.h"

/* Values of bias.to that name no thread. */
#define PLX_LOCK_NOBODY 0 /* not taken yet */
#define PLX_LOCK_ALL	1 /* several threads use it */

enum plx_lock_taken {
	PLX_LOCK_FREE,
	PLX_LOCK_TAKEN,
	PLX_LOCK_SLEPT_ON, /* and a thread may sleep */
};

struct plx_lock {
	struct plx_bias bias;	 /* writer of `to`: the thread that has taken */
	_Atomic uintptr_t owner; /* the thread that has taken; writer: that thread, relaxed, as only
	                          * it compares equal */
	_Atomic uint32_t taken;	 /* enum plx_lock_taken; the slow path of any thread */
	uint32_t depth;		 /* nested entries of the owner */
};

/** Free, and never taken. Thread: control. */
void plx_lock_open(struct plx_lock *l);

/** Slow paths of plx_lock_take() and plx_lock_drop(). */
void plx_lock_take_slow(struct plx_lock *l);
void plx_lock_drop_slow(struct plx_lock *l);

/** Slow path of plx_lock_enter(). */
void plx_lock_enter_slow(struct plx_lock *l);

/** As plx_lock_enter(). @return false: another has it. Blocks: never. */
bool plx_lock_try_enter(struct plx_lock *l);

/**
 * Only without waiting, and without a locked instruction. Thread: any, except the owner.
 * @return whether it is taken: any function may drop it
 */
static inline bool
plx_lock_take_quick(struct plx_lock *l)
{
	uintptr_t self = plx_bias_self();

	/* relaxed: only this thread's own claim makes it equal */
	return likely(atomic_load_explicit(&l->bias.to, memory_order_relaxed) == self) &&
	       plx_bias_enter(&l->bias, self);
}

/** Drops a lock of plx_lock_take_quick() only. */
static inline void
plx_lock_drop_quick(struct plx_lock *l)
{
	plx_bias_leave(&l->bias);
}

/** Thread: any; not by one that has it. Blocks: while another has it. */
static inline void
plx_lock_take(struct plx_lock *l)
{
	if (unlikely(!plx_lock_take_quick(l)))
		plx_lock_take_slow(l);
}

/** Release the lock, however this thread took it. */
static inline void
plx_lock_drop(struct plx_lock *l)
{
	if (likely(plx_bias_is_mine(&l->bias, plx_bias_self())))
		plx_lock_drop_quick(l);
	else
		plx_lock_drop_slow(l);
}

/** @return whether this thread has it. Thread: any. */
static inline bool
plx_lock_is_mine(const struct plx_lock *l)
{
	uintptr_t self = plx_bias_self();

	/* relaxed: only this thread's own store makes it equal */
	return plx_bias_is_mine(&l->bias, self) ||
	       atomic_load_explicit(&l->owner, memory_order_relaxed) == self;
}

/** @return whether this thread may take it without revoking another's bias. Thread: any. */
static inline bool
plx_lock_is_open_to_me(const struct plx_lock *l)
{
	/* relaxed: only affects speed */
	uintptr_t to = atomic_load_explicit(&l->bias.to, memory_order_relaxed);

	return to == PLX_LOCK_ALL || to == plx_bias_self();
}

/**
 * As plx_lock_take_quick(), by any thread. @return also false if this thread has it. If
 * true, plx_lock_drop_quick() drops it.
 */
static inline bool
plx_lock_enter_quick(struct plx_lock *l)
{
	return likely(!plx_bias_is_mine(&l->bias, plx_bias_self())) && plx_lock_take_quick(l);
}

/** As plx_lock_take(), also by the owner. */
static inline void
plx_lock_enter(struct plx_lock *l)
{
	if (unlikely(!plx_lock_enter_quick(l)))
		plx_lock_enter_slow(l);
}

/** Once for each time it was entered. */
static inline void
plx_lock_leave(struct plx_lock *l)
{
	if (unlikely(l->depth != 0))
		l->depth--;
	else
		plx_lock_drop(l);
}

#endif

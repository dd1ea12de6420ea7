/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * lock.c - the lock when several threads use it
 *
 * Design notes
 * A thread that waits spins for as long as a call takes, then yields its core, since the owner may need that
 * one, and then sleeps until the lock is dropped: there may be more threads than cores. The thread with the bias
 * wakes nobody: the thread that revokes it looks now and then.
 */
#include <sched.h>
#include <string.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_pause.h>

#include "plx_futex.h"
#include "plx_lock.h"

#define SPINS	 64 /* polls before the core is yielded, */
#define YIELDS	 8  /* number of yields */
#define LOOK_NS	 50000 /* pause between two checks of the thread with the bias, then */

void
plx_lock_open(struct plx_lock *l)
{
	memset((void *)l, 0, sizeof(*l));
	if (!plx_fence_has())
		l->bias.to = PLX_LOCK_ALL;
}

/* Before the i-th poll. @return false: it is time to sleep */
static bool
wait_awake(unsigned i)
{
	if (i < SPINS)
		rte_pause();
	else if (i < SPINS + YIELDS)
		sched_yield();
	else
		return false;
	return true;
}

static bool
try_taken(struct plx_lock *l, uint32_t as)
{
	uint32_t was = PLX_LOCK_FREE;

	/* relaxed: taking it acquires; pairs with the release in drop_taken() */
	return atomic_load_explicit(&l->taken, memory_order_relaxed) == PLX_LOCK_FREE &&
	       atomic_compare_exchange_strong_explicit(&l->taken, &was, as, memory_order_acquire,
		       memory_order_relaxed);
}

static __rte_noinline void
wait_taken(struct plx_lock *l)
{
	uint32_t as = PLX_LOCK_TAKEN;

	for (;;) {
		for (unsigned i = 0; wait_awake(i); i++)
			if (try_taken(l, as))
				return;
		as = PLX_LOCK_SLEPT_ON; /* from then on, as others may sleep, too; acquires like the
		                         * other one */
		if (atomic_exchange_explicit(&l->taken, as, memory_order_acquire) == PLX_LOCK_FREE)
			return;
		plx_futex_wait(&l->taken, as, NULL);
	}
}

static inline void
drop_taken(struct plx_lock *l)
{
	/* pairs with the acquires where it is taken */
	if (unlikely(atomic_exchange_explicit(&l->taken, PLX_LOCK_FREE, memory_order_release) ==
		    PLX_LOCK_SLEPT_ON))
		plx_futex_wake(&l->taken);
}

static __rte_noinline __rte_cold void
wait_inside(struct plx_lock *l)
{
	for (unsigned i = 0; plx_bias_is_inside(&l->bias); i++)
		if (!wait_awake(i))
			nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

/* A second thread has come. */
static __rte_noinline __rte_cold void
end_bias(struct plx_lock *l)
{
	atomic_store_explicit(&l->bias.to, PLX_LOCK_ALL, memory_order_seq_cst);
	plx_fence_all(); /* steps a and b in plx_bias.h */
}

/* It is taken. @return whether nobody is inside */
static inline bool
is_empty(struct plx_lock *l)
{
	/* relaxed: written by the thread that has taken */
	uintptr_t to = atomic_load_explicit(&l->bias.to, memory_order_relaxed);

	if (unlikely(to > PLX_LOCK_ALL && to != plx_bias_self()))
		end_bias(l);
	return likely(!plx_bias_is_inside(&l->bias));
}

/* It is taken, and nobody is inside. */
static inline void
own(struct plx_lock *l)
{
	uintptr_t self = plx_bias_self();

	atomic_store_explicit(&l->owner, self, memory_order_relaxed);
	/* relaxed: others check after they have taken */
	if (unlikely(atomic_load_explicit(&l->bias.to, memory_order_relaxed) == PLX_LOCK_NOBODY))
		atomic_store_explicit(&l->bias.to, self, memory_order_relaxed);
}

void
plx_lock_take_slow(struct plx_lock *l)
{
	if (unlikely(!try_taken(l, PLX_LOCK_TAKEN)))
		wait_taken(l);
	if (unlikely(!is_empty(l)))
		wait_inside(l);
	own(l);
}

/* @return whether this thread has it already, and so has entered once more */
static bool
enter_again(struct plx_lock *l)
{
	if (!plx_lock_is_mine(l))
		return false;
	l->depth++;
	return true;
}

void
plx_lock_enter_slow(struct plx_lock *l)
{
	if (!enter_again(l))
		plx_lock_take_slow(l);
}

bool
plx_lock_try_enter(struct plx_lock *l)
{
	if (enter_again(l) || plx_lock_take_quick(l))
		return true;
	if (!try_taken(l, PLX_LOCK_TAKEN))
		return false;
	if (unlikely(!is_empty(l))) {
		drop_taken(l);
		return false;
	}
	own(l);
	return true;
}

void
plx_lock_drop_slow(struct plx_lock *l)
{
	atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
	drop_taken(l);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_lock.c - the lock of an endpoint, when several threads use it
 */
#include <sched.h>

#include <rte_pause.h>

#include "cci_lock.h"
#include "plx_fence.h"

#define SPINS_BEFORE_YIELD 200

static bool can_favour; /* written before there is a lock */

void
cci_locks_init(void)
{
	can_favour = plx_fence_open();
}

/* Until it is 0. */
static void
wait_for(_Atomic int *word)
{
	unsigned spins = 0;

	/* pairs with the release in cci_lock_drop() */
	while (atomic_load_explicit(word, memory_order_acquire) != 0) {
		if (++spins % SPINS_BEFORE_YIELD == 0)
			sched_yield();
		else
			rte_pause();
	}
}

/* Another thread than the favoured one has come. */
static __rte_noinline __rte_cold void
unfavour(struct cci_lock *l)
{
	atomic_store_explicit(&l->favoured, CCI_LOCK_ALL, memory_order_seq_cst);
	plx_fence_all(); /* pairs with the signal fence in cci_lock_take_quick() */
	wait_for(&l->held);
}

__rte_noinline void
cci_lock_slow(struct cci_lock *l)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer(), favoured;

	/* pairs with the release in cci_lock_drop() */
	while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire) != 0)
		wait_for(&l->taken);
	favoured = atomic_load_explicit(&l->favoured, memory_order_relaxed);
	if (unlikely(favoured == CCI_LOCK_NOBODY))
		atomic_store_explicit(&l->favoured, can_favour ? self : CCI_LOCK_ALL,
			memory_order_relaxed);
	else if (unlikely(favoured != CCI_LOCK_ALL && favoured != self))
		unfavour(l);
	l->fast = false;
}

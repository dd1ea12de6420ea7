/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_spin.h - whether a thread that waits spins or yields its core
 *
 * Design notes
 * Which is right depends on the others on the core. Beside threads that wait as well, a yield costs
 * microseconds, and to spin costs everybody a slice of the scheduler. Beside one that computes a yield
 * gives that one a slice, milliseconds, and to spin costs nothing. How long yields take tells which.
 *
 * So a thread that spins tries to yield now and then, for a window of time. All processes of a host cut
 * time at the same ticks and try in the same windows: a thread that yields alone among many that spin would
 * take them for programs that compute. Beside a program that computes the trials become ever rarer.
 */
#ifndef PLX_SPIN_H
#define PLX_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PLX_SPIN_WINDOW_US 8000u
#define PLX_SPIN_TAKEN_NS  1000u /* a yield that takes longer has given the core to somebody */
#define PLX_SPIN_HOG_US	   1000u /* to a program that computes, or spins; less than the scheduler's slice */
#define PLX_SPIN_FEW	   4u	 /* such yields of a window tell nothing */
#define PLX_SPIN_TRY_MIN   3u	 /* log2 of the windows from one trial to the next, */
#define PLX_SPIN_TRY_MAX   7u	 /* and while others compute, in the end */

/**
 * All 0: it begins, and spins. All accesses are relaxed: several threads may wait at once, and then what they
 * learn is a guess.
 */
struct plx_spin {
	_Atomic uint64_t until; /* ticks: the end of the window; 0: there is none */
	_Atomic bool yields;	/* in it */
	_Atomic uint8_t calm;	/* the next trial comes after 1 << (PLX_SPIN_TRY_MIN + calm) windows */
	/* of the window */
	_Atomic uint32_t taken;	 /* yields that gave the core to somebody */
	_Atomic uint64_t yielded; /* ticks that those took, */
	_Atomic uint64_t hogged;  /* and of them, to somebody who computes */
};

/** @return whether it yields in this window, as far as is known. Thread: any. */
static inline bool
plx_spin_yields(const struct plx_spin *s)
{
	return atomic_load_explicit(&s->yields, memory_order_relaxed);
}

/**
 * It has waited for a while. Thread: any.
 * @param now_ticks of a clock that all processes of the host share
 * @return whether plx_spin_yield() is due
 */
bool plx_spin_wait(struct plx_spin *s, uint64_t now_ticks);

/** Yield the core, and see how long that takes. Thread: any. Blocks: while others run. */
void plx_spin_yield(struct plx_spin *s);

/** What plx_spin_yield() has seen. */
void plx_spin_yielded(struct plx_spin *s, uint64_t ticks);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_spin.h - whether a waiting thread spins or yields its core
 *
 * Design notes
 * - The right choice depends on the other threads of the core. Next to threads that wait as well,
 *   a yield costs microseconds, and spinning costs everybody a slice of the scheduler. Next to
 *   one that computes a yield gives it a slice, milliseconds, and spinning costs nothing. The
 *   duration of yields distinguishes the two.
 * - So a thread that spins tries to yield now and then, for a window of time. All processes of a
 *   host divide time at the same ticks and try in the same windows: a thread that yields alone
 *   among many that spin would take them for programs that compute. Next to a program that
 *   computes the trials become ever rarer.
 */
#ifndef PLX_SPIN_H
#define PLX_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PLX_SPIN_WINDOW_US 8000u
#define PLX_SPIN_TAKEN_NS  1000u /* a longer yield has given the core to another thread */
#define PLX_SPIN_HOG_US	   1000u /* to a thread that computes, or spins; less than the scheduler's
                       	          * slice */
#define PLX_SPIN_FEW	   4u	 /* with fewer such yields in a window there is no result */
#define PLX_SPIN_TRY_MIN   3u	 /* log2 of the windows from one trial to the next, */
#define PLX_SPIN_TRY_MAX   7u	 /* and while others compute, in the end */

/**
 * All 0: it begins, and spins. All accesses are relaxed: several threads may wait at once,
 * and then the results are a guess.
 */
struct plx_spin {
	_Atomic uint64_t until; /* ticks: the end of the window; 0: there is none */
	_Atomic bool yields;	/* in it */
	_Atomic uint8_t calm;	/* the next trial comes after 1 << (PLX_SPIN_TRY_MIN + calm) windows */
	/* of the window */
	_Atomic uint32_t taken;	 /* yields that gave the core to another thread */
	_Atomic uint64_t yielded; /* ticks that those took, */
	_Atomic uint64_t hogged;  /* and of them, to a thread that computes */
};

/** @return whether it yields in this window, as far as known. Thread: any. */
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

/** Yield the core, and measure how long that takes. Thread: any. Blocks: while others run. */
void plx_spin_yield(struct plx_spin *s);

/** The measurement of plx_spin_yield(). */
void plx_spin_yielded(struct plx_spin *s, uint64_t ticks);

#endif

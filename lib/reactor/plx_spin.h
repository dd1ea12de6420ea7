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
 *   host, of all its containers, divide time by the wall clock and try in the same windows: a thread
 *   that yields alone among many that spin would take them for programs that compute. (Each process
 *   measures the rate of the processor's counter itself: what they divide by that drifts apart by
 *   windows in hours.) Next to a program that computes the trials become ever rarer.
 * - Alone on its core, a thread that yields misses what arrives meanwhile: half the time that 16 KiB
 *   take. So it yields rarely while nobody takes the core, and others have to use a good part of
 *   a window: a few yields always take long, by an interrupt or a virtual machine's host.
 * - Of many on a core some learn in one window and some in a later one. So who has learned that
 *   others wait goes on for some windows in which it looks as if they computed.
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
#define PLX_SPIN_SHARE	   16u	 /* others wait if they take more than this part of a window: 1/16 */
#define PLX_SPIN_KEEPS	   32u	 /* windows for which a thread that knows this goes on to yield */
#define PLX_SPIN_JUMP_US   1000000u /* many windows: if one ends so late, the counter has jumped back */
#define PLX_SPIN_REST_US   20u	 /* between two yields while nobody takes the core */
#define PLX_SPIN_TAKER	   8u	 /* such yields in a row that outweigh 1 us in which somebody had it; at most 255 */
#define PLX_SPIN_TRY_MIN   3u	 /* log2 of the windows from one trial to the next, */
#define PLX_SPIN_TRY_MAX   7u	 /* and while others compute, in the end */
#define PLX_SPIN_TRY_LONG  3u	 /* log2 of the windows of a trial then: many have to find each other */

/**
 * All 0: it begins, and spins. All accesses are relaxed: several threads may wait at once,
 * and then the results are a guess.
 */
struct plx_spin {
	_Atomic uint64_t until; /* ticks: the end of the window; 0: there is none */
	_Atomic bool yields;	/* in it */
	_Atomic uint8_t calm;	/* the next trial comes after 1 << (PLX_SPIN_TRY_MIN + calm) windows */
	_Atomic uint8_t keeps;	/* windows in which it goes on to yield, whatever they show */
	_Atomic uint8_t takers; /* 0: nobody took the core of late */
	_Atomic uint64_t next;	/* ticks: no yield before */
	/* of the window */
	_Atomic bool waited;	  /* it has yielded, however long that took */
	_Atomic uint64_t yielded; /* ticks of yields that gave the core to another thread, */
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
 * @return whether plx_spin_yield() is due
 */
bool plx_spin_wait(struct plx_spin *s, uint64_t now_ticks);

/** Begin the window that contains wall_ns. plx_spin_wait() calls this after the end of a window. Thread: any. */
void plx_spin_begin(struct plx_spin *s, uint64_t now_ticks, uint64_t wall_ns);

/** Yield the core, and measure how long that takes. Thread: any. Blocks: while others run. */
void plx_spin_yield(struct plx_spin *s);

/** The measurement of plx_spin_yield(). @param ticks it took */
void plx_spin_yielded(struct plx_spin *s, uint64_t now_ticks, uint64_t ticks);

#endif

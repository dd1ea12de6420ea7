/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_litmus_test.c - the model itself, by the small programs that tell one memory model from another: see weak.h
 *
 * Design notes
 * Their names are those of the literature on the memory of Power and Arm processors. With its orders each program has
 * one outcome fewer; without one of them AArch64 allows that outcome, or C11 does, and the model has to come to it.
 */
#include <stdatomic.h>

#include "weak.h"

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release

static _Atomic uint32_t x, y;
static uint32_t r[4]; /* what was loaded */

static uint32_t get(const _Atomic uint32_t *p, memory_order order) { return atomic_load_explicit(p, order); }
static void set(_Atomic uint32_t *p, uint32_t v, memory_order order) { atomic_store_explicit(p, v, order); }
static void fence(memory_order order) { atomic_thread_fence(order); }

static void
setup(void)
{
	x = y = 0;
	r[0] = r[1] = r[2] = r[3] = 0;
	weak_name(&x, "x");
	weak_name(&y, "y");
}

/* MP: a message passes. */
static void mp_0(void) { set(&x, 1, RELAXED); set(&y, 1, RELEASE); }
static void mp_1(void) { r[0] = get(&y, ACQUIRE); r[1] = get(&x, RELAXED); }
static void mp_end(void) { weak_check(!(r[0] == 1 && r[1] == 0)); }

/* The same by fences. */
static void mpf_0(void) { set(&x, 1, RELAXED); fence(RELEASE); set(&y, 1, RELAXED); }
static void mpf_1(void) { r[0] = get(&y, RELAXED); fence(ACQUIRE); r[1] = get(&x, RELAXED); }

/* SB: stores stay in a buffer. */
static void sb_0(void) { set(&x, 1, RELAXED); fence(memory_order_seq_cst); r[0] = get(&y, RELAXED); }
static void sb_1(void) { set(&y, 1, RELAXED); fence(memory_order_seq_cst); r[1] = get(&x, RELAXED); }
static void sb_end(void) { weak_check(r[0] == 1 || r[1] == 1); }

/* WRC: what one thread has read and passes on. */
static void wrc_0(void) { set(&x, 1, RELAXED); }
static void wrc_1(void) { r[0] = get(&x, RELAXED); set(&y, 1, RELEASE); }
static void wrc_2(void) { r[1] = get(&y, ACQUIRE); r[2] = get(&x, RELAXED); }
static void wrc_end(void) { weak_check(!(r[0] == 1 && r[1] == 1 && r[2] == 0)); }

/* IRIW: two that read, in two orders. */
static void iriw_0(void) { set(&x, 1, RELAXED); }
static void iriw_1(void) { set(&y, 1, RELAXED); }
static void iriw_2(void) { r[0] = get(&x, RELAXED); fence(memory_order_seq_cst); r[1] = get(&y, RELAXED); }
static void iriw_3(void) { r[2] = get(&y, RELAXED); fence(memory_order_seq_cst); r[3] = get(&x, RELAXED); }
static void iriw_end(void) { weak_check(!(r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0)); }

/* CoRR: one place has one order, for all. */
static void corr_0(void) { set(&x, 1, RELAXED); }
static void corr_1(void) { r[0] = get(&x, RELAXED); r[1] = get(&x, RELAXED); }

static const struct weak_scene mp = {.name = "MP", setup, {mp_0, mp_1}, mp_end};
static const struct weak_scene mpf = {.name = "MP by fences", setup, {mpf_0, mpf_1}, mp_end};
static const struct weak_scene sb = {.name = "SB", setup, {sb_0, sb_1}, sb_end};
static const struct weak_scene wrc = {.name = "WRC", setup, {wrc_0, wrc_1, wrc_2}, wrc_end};
static const struct weak_scene iriw = {.name = "IRIW", setup, {iriw_0, iriw_1, iriw_2, iriw_3}, iriw_end};
static const struct weak_scene corr = {.name = "CoRR", setup, {corr_0, corr_1}, mp_end};

static const struct weak_row rows[] = {
	{&mp, WEAK_NOTHING, {0}},
	{&mp, WEAK_WRONG, WEAK_WITHOUT(WEAK_STORE, "y")},
	{&mp, WEAK_WRONG, WEAK_WITHOUT(WEAK_LOAD, "y")},
	{&mpf, WEAK_NOTHING, {0}},
	{&mpf, WEAK_WRONG, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&mpf, WEAK_WRONG, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&sb, WEAK_NOTHING, {0}},
	{&sb, WEAK_WRONG, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&sb, WEAK_WRONG, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&wrc, WEAK_NOTHING, {0}},
	{&wrc, WEAK_WRONG, WEAK_WITHOUT(WEAK_STORE, "y")},
	{&wrc, WEAK_WRONG, WEAK_WITHOUT(WEAK_LOAD, "y")},
	{&iriw, WEAK_NOTHING, {0}},
	{&iriw, WEAK_WRONG, {WEAK_FENCE, NULL, WEAK_ANY, 2}},
	{&iriw, WEAK_WRONG, {WEAK_FENCE, NULL, WEAK_ANY, 3}},
	{&corr, WEAK_NOTHING, {0}},
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}

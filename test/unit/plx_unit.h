/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit.h - what unit tests share: comparisons that say why, seeds, a start, a main
 */
#ifndef PLX_UNIT_H
#define PLX_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include <CUnit/CUnit.h>

#include "../fake_dev.h"

/** A row of a suite's list of tests. */
#define UNIT_TEST(fn)                                                                              \
	{                                                                                          \
		#fn, fn                                                                            \
	}

/** Two whole numbers are equal; a failure prints both. */
#define UNIT_EQ(got, want)                                                                         \
	unit_eq((long long)(got), (long long)(want), #got " == " #want, __FILE__, __LINE__, false)
/** The same, and the test ends when they are not. */
#define UNIT_EQ_FATAL(got, want)                                                                   \
	unit_eq((long long)(got), (long long)(want), #got " == " #want, __FILE__, __LINE__, true)
/** A condition holds. */
#define UNIT_TRUE(cond)	      UNIT_EQ(!!(cond), true)
#define UNIT_TRUE_FATAL(cond) UNIT_EQ_FATAL(!!(cond), true)
/** Two pieces of memory are equal; a failure prints where they begin to differ. */
#define UNIT_SAME(a, b, len) unit_same(a, b, len, #a " is as " #b, __FILE__, __LINE__)

bool unit_eq(long long got, long long want, const char *what, const char *file, int line,
	bool fatal);
bool unit_same(const void *a, const void *b, uint64_t len, const char *what, const char *file,
	int line);

/** splitmix64: the next of the sequence that state holds. */
uint64_t unit_rng(uint64_t *state);

/** PLX_TEST_SEED, or def; printed, so that a run can be repeated. */
uint64_t unit_seed(uint64_t def);

/** Fill memory with what belongs to a key, and compare with it. */
void unit_fill(void *buf, uint64_t len, uint64_t key);
bool unit_is_filled(const void *buf, uint64_t len, uint64_t key);

/** @return descriptors of this process, and a few: to be compared */
unsigned unit_open_files(void);

/** An EAL without reactors, the heap, the drivers, and the fake device. @return 0, or 77 */
int unit_start(void);

/** Run the suites. @return the exit status of main */
int unit_run(CU_SuiteInfo *suites);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * api_run.h - tables of tests of a public API, and what runs them
 */
#ifndef API_RUN_H
#define API_RUN_H

#include <CUnit/Basic.h>

#include "test_util.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

/** A test is named as the sentence it proves. */
struct api_test {
	const char *name;
	void (*fn)(void);
	const char *differs; /* what UCX does instead, where it does */
	const char *(*lacks)(void); /* what the test needs and this system lacks, or NULL; NULL: it needs nothing */
};

#define T(f) {#f, f, NULL, NULL}
#define T_NEEDS(f, lacks) {#f, f, NULL, lacks}

/**
 * Run what has one of the parts, between which there are commas, in its name; each test has an alarm.
 * @return exit status
 */
int api_run(const char *name, const struct api_test *const *tables, size_t n, const char *parts,
	bool skip_differs);
void api_list(const struct api_test *const *tables, size_t n);

/** The next pseudo-random number; the same numbers in every run of a test. */
uint64_t rnd(void);
extern uint64_t rnd_seed;

/**
 * Before a fork, if huge_fork_test.sh asks for it, which sets the number back: no huge page is free from now on, so
 * the kernel takes from a child what its parent writes to. To touch it there is a bus error.
 */
void api_take_free_huge_pages(void);

#endif

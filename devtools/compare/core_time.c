/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * core_time.c - time of a cache line from one core to another, in ns: core_time CORE CORE
 *
 * The median of many short runs: an interrupt spoils one of them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

#define RUNS   51
#define TRIPS  1000
#define WARMUP 20

static alignas(128) atomic_uint ball;
static double ns[RUNS];

static int
pin(const char *core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(strtoul(core, NULL, 10), &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* Every even value is one side's to answer, every odd one the other's. */
static void
play(unsigned side, unsigned first, unsigned trips)
{
	for (unsigned i = 0; i < trips; i++) {
		while (atomic_load_explicit(&ball, memory_order_acquire) != first + 2 * i + side)
			;
		atomic_store_explicit(&ball, first + 2 * i + side + 1, memory_order_release);
	}
}

static void *
answer(void *core)
{
	if (pin(core) == 0)
		play(1, 0, (RUNS + WARMUP) * TRIPS);
	return NULL;
}

static int
before(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	pthread_t other;

	if (argc != 3 || pin(argv[1]) != 0 || pthread_create(&other, NULL, answer, argv[2]) != 0) {
		fprintf(stderr, "usage: core_time CORE CORE, two cores that this process may use\n");
		return 2;
	}
	for (unsigned i = 0; i < RUNS + WARMUP; i++) {
		double start = now_ns();

		play(0, 2 * TRIPS * i, TRIPS);
		if (i >= WARMUP)
			ns[i - WARMUP] = (now_ns() - start) / TRIPS / 2;
	}
	qsort(ns, RUNS, sizeof(ns[0]), before);
	printf("%.1f\n", ns[RUNS / 2]);
	return 0;
}

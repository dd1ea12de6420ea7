/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * measure.h - the clock, and the memory of this process
 */
#ifndef COMPARE_MEASURE_H
#define COMPARE_MEASURE_H

#include <stdio.h>
#include <time.h>

static inline double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline double
now_ms(void)
{
	return now_ns() / 1e6;
}

/* Huge pages included. */
static inline long
resident_kib(void)
{
	char line[256];
	long sum = 0, kib;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kib) == 1 || sscanf(line, "HugetlbPages: %ld", &kib) == 1)
			sum += kib;
	if (f != NULL)
		fclose(f);
	return sum;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * memory.h - resident memory of this process, huge pages included
 */
#ifndef COMPARE_MEMORY_H
#define COMPARE_MEMORY_H

#include <stdio.h>
#include <string.h>

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

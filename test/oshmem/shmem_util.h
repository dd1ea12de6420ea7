/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shmem_util.h - what the OpenSHMEM test programs share: checks
 */
#ifndef SHMEM_UTIL_H
#define SHMEM_UTIL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define CHECK(cond, ...) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: pe %d: %s: ", __FILE__, __LINE__, shmem_my_pe(), #cond); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			shmem_global_exit(1); \
		} \
	} while (0)

/* Which libucp and which components this process has. */
static inline void
util_print_libraries(void)
{
	static const char *const names[] = {"/libucp.so", "/mca_spml_", "/mca_atomic_",
		"/mca_sshmem_", "/mca_pml_"};
	char line[4096], last[5][4096] = {""}, *path;
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned i;

	CHECK(f != NULL, "no /proc/self/maps");
	while (fgets(line, sizeof(line), f) != NULL) {
		path = strchr(line, '/');
		for (i = 0; path != NULL && i < 5; i++) {
			if (strstr(path, names[i]) == NULL || strcmp(path, last[i]) == 0)
				continue;
			strcpy(last[i], path);
			printf("loaded %s", path);
		}
	}
	fclose(f);
}

#endif

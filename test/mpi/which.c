/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * which.c - which libucp and which components this MPI uses, and how long MPI_Init takes
 */
#define _GNU_SOURCE
#include <time.h>

#include "mpi_util.h"

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

int
main(int argc, char **argv)
{
	double t = now_s(), longest;
	char line[4096], seen[4096] = "", *path;
	int rank, size;
	FILE *f;

	MPI_Init(&argc, &argv);
	t = now_s() - t;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Reduce(&t, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		f = fopen("/proc/self/maps", "r");
		CHECK(f != NULL, "no /proc/self/maps");
		while (fgets(line, sizeof(line), f) != NULL) {
			path = strchr(line, '/');
			if (path == NULL || strcmp(path, seen) == 0 || (strstr(path, "/libucp.so") == NULL &&
				strstr(path, "/mca_pml_") == NULL && strstr(path, "/mca_osc_") == NULL))
				continue;
			strcpy(seen, path);
			printf("loaded %s", path);
		}
		fclose(f);
		printf("init_s %.3f\n", longest);
		printf("ranks %d\nwhich ok\n", size);
	}
	MPI_Finalize();
	return 0;
}

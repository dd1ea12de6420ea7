/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mpi_start.c - time of MPI_Init in ms, and the memory of a rank behind it in KiB; of the worst rank
 */
#include <stdio.h>

#include <mpi.h>

#include "measure.h"

int
main(int argc, char **argv)
{
	double mine[2], most[2];
	int rank;

	mine[0] = now_ms();
	MPI_Init(&argc, &argv);
	mine[0] = now_ms() - mine[0];
	mine[1] = resident_kib();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("start_ms %.3f\nmemory_kib %.0f\n", most[0], most[1]);
	MPI_Finalize();
	return 0;
}

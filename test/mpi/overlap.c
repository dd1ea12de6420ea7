/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * overlap.c - how much of a transfer passes while the application computes:
 * printed for the reader, the contents alone are checked
 */
#include "mpi_util.h"

static volatile double sink;

static void
compute(double seconds)
{
	double end = MPI_Wtime() + seconds, x = 1;
	int i;

	while (MPI_Wtime() < end)
		for (i = 0; i < 1000; i++)
			x = x * 1.0000001 + 1e-9;
	sink = x;
}

int
main(int argc, char **argv)
{
	enum { LEN = 1 << 20, N = 20 };
	uint8_t *buf = malloc(LEN);
	double t, plain = 0, both = 0;
	int rank, size, i;
	MPI_Request req;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < 2 * N && rank < 2 && size > 1; i++) {
		if (rank == 0)
			util_fill(buf, LEN, i);
		MPI_Sendrecv(NULL, 0, MPI_BYTE, rank ^ 1, 9, NULL, 0, MPI_BYTE, rank ^ 1, 9,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t = MPI_Wtime();
		if (rank == 0)
			MPI_Isend(buf, LEN, MPI_BYTE, 1, i, MPI_COMM_WORLD, &req);
		else
			MPI_Irecv(buf, LEN, MPI_BYTE, 0, i, MPI_COMM_WORLD, &req);
		if (i >= N)
			compute(0.002);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		t = MPI_Wtime() - t;
		if (i < N)
			plain += t / N;
		else
			both += t / N;
		if (rank == 1)
			util_check(buf, LEN, i);
	}
	if (rank == 0) {
		if (size > 1)
			printf("overlap_percent %.0f\n", 100 * (1 - (both - 0.002) / plain));
		printf("overlap ok\n");
	}
	MPI_Finalize();
	free(buf);
	return 0;
}

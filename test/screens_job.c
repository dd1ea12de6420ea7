/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * screens_job.c - ranks that talk all the time, until a file is there; for screens_test.py
 *
 * usage: screens_job FILE
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 128 };

int
main(int argc, char **argv)
{
	int ranks, rank, end = 0;
	long *in, *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	in = calloc((size_t)ranks * N, sizeof(*in));
	out = calloc((size_t)ranks * N, sizeof(*out));
	if (argc < 2 || in == NULL || out == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	while (!end) {
		MPI_Alltoall(out, N, MPI_LONG, in, N, MPI_LONG, MPI_COMM_WORLD);
		end = rank == 0 && access(argv[1], F_OK) == 0;
		MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD);
		usleep(1000); /* the cores are for those who look, too */
	}
	free(in);
	free(out);
	return MPI_Finalize();
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * collective.c - alltoall, allreduce, bcast and gather agree with arithmetic
 */
#include "mpi_util.h"

int
main(int argc, char **argv)
{
	static const int lens[] = {1, 10, 1000, 20000, 100000};
	int rank, size, i, k, round;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (k = 0; k < 5; k++) {
		int len = lens[k], *out = util_alloc(sizeof(int) * len * size);
		int *in = util_alloc(sizeof(int) * len * size);
		double *a = util_alloc(sizeof(double) * len), *b = util_alloc(sizeof(double) * len);

		for (round = 0; round < (k < 3 ? 20 : 3); round++) {
			for (i = 0; i < len * size; i++)
				out[i] = rank * 1000003 + i + round;
			MPI_Alltoall(out, len, MPI_INT, in, len, MPI_INT, MPI_COMM_WORLD);
			for (i = 0; i < len * size; i++)
				CHECK(in[i] == i / len * 1000003 + rank * len + i % len + round,
					"alltoall %d of %d", i, len);
			for (i = 0; i < len; i++)
				a[i] = rank + i;
			MPI_Allreduce(a, b, len, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			for (i = 0; i < len; i++)
				CHECK(b[i] == (double)size * (size - 1) / 2 + (double)size * i,
					"allreduce %d of %d", i, len);
			if (rank == round % size)
				for (i = 0; i < len; i++)
					a[i] = i * 3 + round;
			MPI_Bcast(a, len, MPI_DOUBLE, round % size, MPI_COMM_WORLD);
			for (i = 0; i < len; i++)
				CHECK(a[i] == i * 3 + round, "bcast %d of %d", i, len);
			MPI_Gather(&rank, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD);
			if (rank == 0)
				for (i = 0; i < size; i++)
					CHECK(in[i] == i, "gather %d", i);
			MPI_Barrier(MPI_COMM_WORLD);
		}
		free(out);
		free(in);
		free(a);
		free(b);
	}
	if (rank == 0)
		printf("collective ok\n");
	MPI_Finalize();
	return 0;
}

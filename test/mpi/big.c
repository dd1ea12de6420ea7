/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * big.c - 64 MiB messages in a ring, and an alltoall larger than the caches
 */
#include "mpi_util.h"

int
main(int argc, char **argv)
{
	size_t len = 64u << 20, i;
	int rank, size, right, left, round;
	uint64_t *out, *in;
	MPI_Request req[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	out = util_alloc(len);
	in = util_alloc(len);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < len / 8; i++) {
			out[i] = (uint64_t)rank << 56 | (i * 3 + round);
			in[i] = 0;
		}
		MPI_Irecv(in, (int)len, MPI_BYTE, left, round, MPI_COMM_WORLD, &req[0]);
		MPI_Isend(out, (int)len, MPI_BYTE, right, round, MPI_COMM_WORLD, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		for (i = 0; i < len / 8; i++)
			CHECK(in[i] == ((uint64_t)left << 56 | (i * 3 + round)), "word %zu", i);
	}
	if (rank == 0)
		printf("big ok\n");
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}

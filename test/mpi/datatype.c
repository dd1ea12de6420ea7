/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * datatype.c - derived datatypes on one side or on both: UCX's generic datatype
 */
#include "mpi_util.h"

static int rank, size, right, left;

/* Every second int of a matrix: UCX's generic datatype. */
static void
strided(int n)
{
	int *a = util_alloc(2 * n * sizeof(int)), *b = util_alloc(2 * n * sizeof(int)), i;
	MPI_Datatype type;

	for (i = 0; i < 2 * n; i++) {
		a[i] = rank * 7 + i;
		b[i] = -1;
	}
	MPI_Type_vector(n, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Sendrecv(a, 1, type, right, 7, b, 1, type, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < 2 * n - 1; i++)
		CHECK(b[i] == (i & 1 ? -1 : left * 7 + i), "%d of %d is %d", i, n, b[i]);
	/* Strided on one side only. */
	for (i = 0; i < 2 * n; i++)
		b[i] = -1;
	MPI_Sendrecv(a, 1, type, right, 8, b, n, MPI_INT, left, 8, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		CHECK(b[i] == left * 7 + 2 * i, "%d of %d is %d", i, n, b[i]);
	MPI_Type_free(&type);
	free(a);
	free(b);
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	strided(10);
	strided(3000);
	strided(100000);
	if (rank == 0)
		printf("datatype ok\n");
	MPI_Finalize();
	return 0;
}

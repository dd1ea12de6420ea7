/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reduce.c - the collectives that collective.c leaves out: uneven ones, scans,
 * reduce and scatter, many nonblocking ones at once
 */
#include "mpi_util.h"

static int rank, size;

static void
uneven(int unit)
{
	int *n = util_alloc(4 * size * sizeof(*n)), *at = n + size, *rn = at + size, *rat = rn + size;
	int total = 0, rtotal = 0, i, j;
	long *out, *in;

	/* i gets unit * (i + rank) elements of me: rank 0 sends itself none. */
	for (i = 0; i < size; i++) {
		n[i] = unit * (i + rank);
		at[i] = total;
		total += n[i];
		rn[i] = unit * (i + rank);
		rat[i] = rtotal;
		rtotal += rn[i] + 3;
	}
	out = util_alloc((total + 1) * sizeof(*out));
	in = util_alloc((rtotal + 1) * sizeof(*in));
	memset(in, 0xff, rtotal * sizeof(*in));
	for (i = 0; i < size; i++)
		for (j = 0; j < n[i]; j++)
			out[at[i] + j] = (long)rank * 1000000000 + i * 10000000L + j;
	MPI_Alltoallv(out, n, at, MPI_LONG, in, rn, rat, MPI_LONG, MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		for (j = 0; j < rn[i] + 3; j++)
			CHECK(in[rat[i] + j] == (j < rn[i] ? (long)i * 1000000000 + rank * 10000000L + j : -1),
				"from %d: %d", i, j);
	for (i = 0; i < size; i++) {
		rn[i] = unit * i;
		rat[i] = unit * (size - 1) * (size - 1 - i);
	}
	free(in);
	in = util_alloc(((size_t)unit * size * size + 1) * sizeof(*in));
	free(out);
	out = util_alloc((unit * size + 1) * sizeof(*out));
	for (i = 0; i < unit * rank; i++)
		out[i] = rank * 1000000L + i;
	MPI_Allgatherv(out, unit * rank, MPI_LONG, in, rn, rat, MPI_LONG, MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		for (j = 0; j < rn[i]; j++)
			CHECK(in[rat[i] + j] == i * 1000000L + j, "of %d: %d", i, j);
	/* And scatter it again from the last. */
	MPI_Scatterv(in, rn, rat, MPI_LONG, out, unit * rank, MPI_LONG, size - 1, MPI_COMM_WORLD);
	for (j = 0; j < unit * rank; j++)
		CHECK(out[j] == rank * 1000000L + j, "%d", j);
	free(n);
	free(out);
	free(in);
}

static void
scans(int len)
{
	long *a = util_alloc(len * size * sizeof(*a)), *b = util_alloc(len * size * sizeof(*b)), i;

	for (i = 0; i < len; i++)
		a[i] = rank + i;
	MPI_Scan(a, b, len, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < len; i++)
		CHECK(b[i] == (long)rank * (rank + 1) / 2 + (rank + 1) * i, "%ld", i);
	MPI_Exscan(a, b, len, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; rank > 0 && i < len; i++)
		CHECK(b[i] == (long)rank * (rank - 1) / 2 + rank * i, "%ld", i);
	MPI_Reduce(rank ? a : MPI_IN_PLACE, a, len, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	for (i = 0; rank == 0 && i < len; i++)
		CHECK(a[i] == size - 1 + i, "%ld", i);
	for (i = 0; i < len * size; i++)
		a[i] = rank * 7 + i;
	MPI_Reduce_scatter_block(a, b, len, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < len; i++)
		CHECK(b[i] == 7L * size * (size - 1) / 2 + size * (rank * len + i), "%ld", i);
	free(a);
	free(b);
}

/* Different ones at once, waited for in turn. */
static void
nonblocking(int len)
{
	enum { N = 12 };
	MPI_Request req[N + 1];
	int *out[N], *in[N], i, j;

	for (i = 0; i < N; i++) {
		out[i] = util_alloc(len * size * sizeof(int));
		in[i] = util_alloc(len * size * sizeof(int));
		for (j = 0; j < len * size; j++)
			out[i][j] = rank * 3 + i + j;
		if (i % 4 == 0)
			MPI_Iallreduce(out[i], in[i], len, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[i]);
		else if (i % 4 == 1)
			MPI_Ialltoall(out[i], len, MPI_INT, in[i], len, MPI_INT, MPI_COMM_WORLD, &req[i]);
		else if (i % 4 == 2)
			MPI_Ibcast(out[i], len, MPI_INT, i % size, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Iallgather(out[i], len, MPI_INT, in[i], len, MPI_INT, MPI_COMM_WORLD,
				&req[i]);
	}
	MPI_Ibarrier(MPI_COMM_WORLD, &req[N]);
	for (i = N; i >= 0; i--)
		MPI_Wait(&req[(i + 5) % (N + 1)], MPI_STATUS_IGNORE);
	for (i = 0; i < N; i++) {
		for (j = 0; j < (i % 4 == 1 || i % 4 == 3 ? len * size : len); j++) {
			int from = j / len, k = j % len;

			if (i % 4 == 0)
				CHECK(in[i][j] == 3 * size * (size - 1) / 2 + size * (i + j), "%d %d", i, j);
			else if (i % 4 == 1)
				CHECK(in[i][j] == from * 3 + i + rank * len + k, "%d %d", i, j);
			else if (i % 4 == 2)
				CHECK(out[i][j] == i % size * 3 + i + j, "%d %d", i, j);
			else
				CHECK(in[i][j] == from * 3 + i + k, "%d %d", i, j);
		}
		free(out[i]);
		free(in[i]);
	}
}

int
main(int argc, char **argv)
{
	static const int lens[] = {1, 30, 2000, 30000};
	int i, r;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < 4; i++)
		for (r = 0; r < (i < 2 ? 20 : 2); r++) {
			uneven(lens[i] < 5000 ? lens[i] : 5000);
			scans(lens[i]);
			nonblocking(lens[i]);
		}
	if (rank == 0)
		printf("reduce ok\n");
	MPI_Finalize();
	return 0;
}

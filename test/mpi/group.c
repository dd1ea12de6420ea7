/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * group.c - communicators: split, dup, intercommunicators, topologies; none hears
 * another's messages
 */
#include "mpi_util.h"

enum { MANY = 40 };

static int rank, size;

static void
split(void)
{
	int color = rank % 2, n, r, sum, i;
	MPI_Comm half, none;
	long value;

	MPI_Comm_split(MPI_COMM_WORLD, color, -rank, &half);
	MPI_Comm_size(half, &n);
	MPI_Comm_rank(half, &r);
	CHECK(n == (size + 1 - color) / 2, "%d", n);
	CHECK(r == n - 1 - rank / 2, "the key turned the order: %d", r);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
	CHECK(sum == n * (n - 1) + n * color, "%d", sum);
	for (i = 0; i < 10; i++) {
		value = r == i % n ? 1000 * color + i : -1;
		MPI_Bcast(&value, 1, MPI_LONG, i % n, half);
		CHECK(value == 1000 * color + i, "%ld", value);
	}
	MPI_Comm_free(&half);
	MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 1 : MPI_UNDEFINED, 0, &none);
	CHECK((none != MPI_COMM_NULL) == (rank == 0), "undefined");
	if (none != MPI_COMM_NULL)
		MPI_Comm_free(&none);
}

/* The same source and tag in each; received in another order than sent. */
static void
dup(void)
{
	MPI_Comm c[MANY];
	MPI_Request req[MANY];
	int right = (rank + 1) % size, left = (rank + size - 1) % size, i, got, flag;
	int out[MANY];

	for (i = 0; i < MANY; i++)
		MPI_Comm_dup(i % 3 || i == 0 ? MPI_COMM_WORLD : c[i - 1], &c[i]);
	for (i = 0; i < MANY; i++) {
		out[i] = rank * MANY + i;
		MPI_Isend(&out[i], 1, MPI_INT, right, 5, c[i], &req[i]);
	}
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag, "a message of another communicator");
	for (i = MANY - 1; i >= 0; i--) {
		MPI_Recv(&got, 1, MPI_INT, i & 1 ? MPI_ANY_SOURCE : left,
			i & 2 ? MPI_ANY_TAG : 5, c[i], MPI_STATUS_IGNORE);
		CHECK(got == left * MANY + i, "%d", got);
	}
	MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < MANY; i++)
		MPI_Comm_free(&c[i]);
}

/* Even and odd ranks as the two sides. */
static void
inter(void)
{
	MPI_Comm half, between, merged;
	int color = rank % 2, n, r, m, i, sum, out, *in;
	MPI_Status status;

	if (size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, color, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 7, &between);
	MPI_Comm_rank(half, &r);
	MPI_Comm_size(half, &m);
	MPI_Comm_remote_size(between, &n);
	CHECK(n == size - m, "%d", n);
	for (i = 0; i < n; i++) {
		MPI_Request req;

		out = rank * 100 + i;
		MPI_Isend(&out, 1, MPI_INT, i, 1, between, &req);
		MPI_Recv(&sum, 1, MPI_INT, i, 1, between, &status);
		CHECK(sum == (2 * i + 1 - color) * 100 + r, "%d", sum);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, between);
	CHECK(sum == n * (n - 1) + n * (1 - color), "the other side's sum %d", sum);
	in = util_alloc(n * sizeof(*in));
	MPI_Allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, between);
	for (i = 0; i < n; i++)
		CHECK(in[i] == 2 * i + 1 - color, "%d", in[i]);
	free(in);
	MPI_Intercomm_merge(between, color, &merged);
	MPI_Comm_size(merged, &n);
	MPI_Comm_rank(merged, &r);
	CHECK(n == size && r == (color ? (size + 1) / 2 : 0) + rank / 2, "%d", r);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&between);
	MPI_Comm_free(&half);
}

static void
cart(void)
{
	int dims[2] = {0, 0}, periods[2] = {1, 0}, near[4], out[4], in[4], i, k;
	MPI_Comm grid, line;

	MPI_Dims_create(size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	for (i = 0; i < 2; i++)
		MPI_Cart_shift(grid, i, 1, &near[2 * i], &near[2 * i + 1]);
	for (i = 0; i < 4; i++) {
		out[i] = rank * 4 + i;
		in[i] = -1;
	}
	MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid);
	for (i = 0; i < 4; i++) {
		/* What I call the lower neighbour calls me the upper one; two that are one may mix. */
		k = near[i] == MPI_PROC_NULL ? -1 : near[i] * 4 + (i ^ 1);
		if (near[i & 2] == near[i | 1] && near[i] != MPI_PROC_NULL)
			CHECK(in[i] / 4 == near[i], "%d is %d", i, in[i]);
		else
			CHECK(in[i] == k, "%d is %d, not %d", i, in[i], k);
	}
	{
		int keep[2] = {0, 1}, n, sum = 0;

		MPI_Cart_sub(grid, keep, &line);
		MPI_Comm_size(line, &n);
		k = 1;
		MPI_Allreduce(&k, &sum, 1, MPI_INT, MPI_SUM, line);
		CHECK(n == dims[1] && sum == n, "%d", sum);
		MPI_Comm_free(&line);
	}
	MPI_Comm_free(&grid);
}

/* Made by its members only. */
/* @return ranks of this machine, by the names that all tell */
static int
neighbours(void)
{
	char (*names)[MPI_MAX_PROCESSOR_NAME] = calloc(size, sizeof(*names));
	int len, n = 0, i;

	MPI_Get_processor_name(names[rank], &len);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, names, sizeof(*names), MPI_CHAR,
		MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		n += strcmp(names[i], names[rank]) == 0;
	free(names);
	return n;
}

static void
members(void)
{
	int first[2] = {0, size - 1}, n = size > 1 ? 2 : 1, sum;
	MPI_Group world, ends;
	MPI_Comm c, shared;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, n, first, &ends);
	if (rank == 0 || rank == size - 1) {
		MPI_Comm_create_group(MPI_COMM_WORLD, ends, 3, &c);
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
		CHECK(sum == size - 1, "%d", sum);
		MPI_Comm_free(&c);
	}
	MPI_Group_free(&ends);
	MPI_Group_free(&world);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
	MPI_Comm_size(shared, &n);
	CHECK(n == neighbours(), "%d on this machine", n);
	MPI_Comm_free(&shared);
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	split();
	dup();
	inter();
	cart();
	members();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("group ok\n");
	MPI_Finalize();
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * layout.c - structs, indexed and subarray types of every length, also probed,
 * also in messages that nobody awaited, also truncated
 */
#include <stdbool.h>
#include <stddef.h>

#include "mpi_util.h"

struct item {
	char name[3];
	double value;
	short tail;
};

static int rank, size, right, left;

static MPI_Datatype
item_type(void)
{
	int n[3] = {3, 1, 1};
	MPI_Aint at[3] = {offsetof(struct item, name), offsetof(struct item, value),
		offsetof(struct item, tail)};
	MPI_Datatype of[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, t, resized;

	MPI_Type_create_struct(3, n, at, of, &t);
	MPI_Type_create_resized(t, 0, sizeof(struct item), &resized);
	MPI_Type_commit(&resized);
	MPI_Type_free(&t);
	return resized;
}

static void
check_items(const struct item *a, int n, int from)
{
	int i;

	for (i = 0; i < n; i++)
		CHECK(a[i].name[0] == 'a' + i % 26 && a[i].name[2] == (char)from &&
			a[i].value == from * 1e6 + i && a[i].tail == (short)i, "%d of %d", i, n);
}

/* expected: the receive is posted before; else the message waits. */
static void
structs(int n, bool expected, bool probed)
{
	struct item *a = calloc(n + 1, sizeof(*a)), *b = calloc(n + 1, sizeof(*b));
	MPI_Datatype type = item_type();
	MPI_Request req[2];
	MPI_Message msg;
	MPI_Status status;
	int i, count;

	for (i = 0; i < n; i++)
		a[i] = (struct item){{'a' + i % 26, 'x', rank}, rank * 1e6 + i, i};
	if (expected) {
		MPI_Irecv(b, n, type, left, n, MPI_COMM_WORLD, &req[1]);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Isend(a, n, type, right, n, MPI_COMM_WORLD, &req[0]);
	if (!expected) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (probed) {
			MPI_Mprobe(left, n, MPI_COMM_WORLD, &msg, &status);
			MPI_Get_count(&status, type, &count);
			CHECK(count == n, "%d, not %d", count, n);
			MPI_Imrecv(b, n, type, &msg, &req[1]);
		} else {
			MPI_Irecv(b, n, type, left, n, MPI_COMM_WORLD, &req[1]);
		}
	}
	MPI_Wait(&req[1], &status);
	MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	MPI_Get_count(&status, type, &count);
	CHECK(count == n, "%d, not %d", count, n);
	check_items(b, n, left);
	MPI_Type_free(&type);
	free(a);
	free(b);
}

/* With gaps on one side, without on the other: no piece may end inside an element. */
static void
dense(int n)
{
	struct __attribute__((packed)) item_dense {
		char name[3];
		double value;
		short tail;
	} *d = calloc(n, sizeof(*d));
	struct item *a = calloc(n, sizeof(*a));
	int len[3] = {3, 1, 1}, i;
	MPI_Aint at[3] = {0, 3, 11};
	MPI_Datatype of[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, type = item_type(), t, packed;

	MPI_Type_create_struct(3, len, at, of, &t);
	MPI_Type_create_resized(t, 0, sizeof(*d), &packed);
	MPI_Type_commit(&packed);
	MPI_Type_free(&t);
	for (i = 0; i < n; i++)
		a[i] = (struct item){{'a' + i % 26, 'x', rank}, rank * 1e6 + i, i};
	MPI_Sendrecv(a, n, type, right, 1, d, n, packed, left, 1, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		CHECK(d[i].name[0] == 'a' + i % 26 && d[i].name[2] == (char)left &&
			d[i].value == left * 1e6 + i && d[i].tail == (short)i, "%d of %d", i, n);
	memset(a, 0, n * sizeof(*a));
	MPI_Sendrecv(d, n, packed, left, 2, a, n, type, right, 2, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	check_items(a, n, rank);
	MPI_Type_free(&packed);
	MPI_Type_free(&type);
	free(a);
	free(d);
}

/* A column block of a matrix becomes a row block of the neighbour's. */
static void
subarray(int n)
{
	int full[2] = {n, n}, part[2] = {n, 3}, from[2] = {0, n / 2}, i, j;
	int flat[2] = {3, n}, to[2] = {n / 2, 0};
	int *a = util_alloc(n * n * sizeof(*a)), *b = calloc(n * n, sizeof(*b));
	MPI_Datatype column, row;

	for (i = 0; i < n * n; i++)
		a[i] = rank * n * n + i + 1;
	MPI_Type_create_subarray(2, full, part, from, MPI_ORDER_C, MPI_INT, &column);
	MPI_Type_create_subarray(2, full, flat, to, MPI_ORDER_C, MPI_INT, &row);
	MPI_Type_commit(&column);
	MPI_Type_commit(&row);
	MPI_Sendrecv(a, 1, column, right, 1, b, 1, row, left, 1, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		for (j = 0; j < 3; j++)
			CHECK(b[n / 2 * n + i * 3 + j] == left * n * n + i * n + n / 2 + j + 1, "%d %d",
				i, j);
	MPI_Type_free(&column);
	MPI_Type_free(&row);
	free(a);
	free(b);
}

/* Blocks of uneven length, backwards. */
static void
indexed(int n)
{
	int *len = util_alloc(n * sizeof(*len)), *at = util_alloc(n * sizeof(*at)), i, j, k = 0;
	int total = 0, *a, *b;
	MPI_Datatype type;

	for (i = 0; i < n; i++) {
		len[i] = i % 4;
		total += len[i];
		at[i] = 5 * (n - 1 - i);
	}
	a = util_alloc(5 * n * sizeof(*a));
	b = calloc(total + 1, sizeof(*b));
	for (i = 0; i < 5 * n; i++)
		a[i] = rank * 5 * n + i;
	MPI_Type_indexed(n, len, at, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Sendrecv(a, 1, type, right, 1, b, total, MPI_INT, left, 1, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		for (j = 0; j < len[i]; j++, k++)
			CHECK(b[k] == left * 5 * n + at[i] + j, "%d of %d", k, total);
	/* And back into place. */
	memset(a, 0xff, 5 * n * sizeof(*a));
	MPI_Sendrecv(b, total, MPI_INT, left, 2, a, 1, type, right, 2, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		for (j = 0; j < 5; j++)
			CHECK(a[at[i] + j] == (j < len[i] ? rank * 5 * n + at[i] + j : -1), "%d %d", i, j);
	MPI_Type_free(&type);
	free(len);
	free(at);
	free(a);
	free(b);
}

static void
truncated(int n)
{
	int *a = calloc(2 * n, sizeof(*a)), *b = util_alloc(2 * n * sizeof(*b)), rc, class, i;
	MPI_Datatype type;
	MPI_Request req[2];

	memset(b, 0x77, 2 * n * sizeof(*b));
	MPI_Type_vector(n / 2, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Irecv(b, 1, type, left, 1, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(a, 2 * n, MPI_INT, right, 1, MPI_COMM_WORLD, &req[1]);
	rc = MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
	MPI_Wait(&req[1], MPI_STATUS_IGNORE);
	for (i = 0; i < 2 * n; i++)
		CHECK(b[i] == 0x77777777 || (b[i] == 0 && i % 2 == 0 && i < n), "%d is %d", i, b[i]);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Type_free(&type);
	free(a);
	free(b);
}

int
main(int argc, char **argv)
{
	static const int n[] = {1, 7, 400, 1500, 30000};
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	for (i = 0; i < 5; i++) {
		structs(n[i], true, false);
		structs(n[i], false, false);
		structs(n[i], false, true);
		indexed(n[i]);
		dense(n[i]);
	}
	subarray(10);
	subarray(500);
	truncated(100);
	truncated(30000);
	if (rank == 0)
		printf("layout ok\n");
	MPI_Finalize();
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma.c - windows of every kind: fence, lock, post and start, put, get and atomics
 */
#include "mpi_util.h"

enum { N = 4096, ROUNDS = 200, BIG = 300000 };

static int rank, size, right, left;

static void
fence(long *mem, MPI_Win win)
{
	int r, i;

	for (i = 0; i < N; i++)
		mem[i] = -1;
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	for (r = 0; r < 5; r++) {
		long *out = util_alloc(N * sizeof(*out)), *in = util_alloc(N * sizeof(*in));

		for (i = 0; i < N; i++)
			out[i] = rank * 100000L + r * 10000 + i;
		MPI_Put(out, N / 2, MPI_LONG, right, 0, N / 2, MPI_LONG, win);
		MPI_Put(out + N / 2, N / 2, MPI_LONG, left, N / 2, N / 2, MPI_LONG, win);
		MPI_Win_fence(0, win);
		for (i = 0; i < N; i++)
			CHECK(mem[i] == (i < N / 2 ? left : right) * 100000L + r * 10000 + i,
				"put %d is %ld", i, mem[i]);
		MPI_Get(in, N, MPI_LONG, right, 0, N, MPI_LONG, win);
		MPI_Win_fence(0, win);
		for (i = 0; i < N; i++)
			CHECK(in[i] == (i < N / 2 ? rank : (right + 1) % size) * 100000L + r * 10000 + i,
				"get %d is %ld", i, in[i]);
		MPI_Win_fence(0, win);
		free(out);
		free(in);
	}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* All add to all, in one call and one by one. */
static void
accumulate(long *mem, MPI_Win win)
{
	long *ones = util_alloc(N * sizeof(*ones)), sum = (long)size * (size + 1) / 2;
	int t, i;

	for (i = 0; i < N; i++) {
		mem[i] = i;
		ones[i] = rank + 1;
	}
	MPI_Win_fence(0, win);
	for (t = 0; t < size; t++)
		MPI_Accumulate(ones, N, MPI_LONG, t, 0, N, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < N; i++)
		CHECK(mem[i] == i + sum, "sum %d is %ld", i, mem[i]);
	MPI_Win_fence(0, win);
	for (t = 0; t < size; t++)
		MPI_Accumulate(ones, 16, MPI_LONG, t, 0, 16, MPI_LONG, MPI_REPLACE, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < 16; i++)
		CHECK(mem[i] >= 1 && mem[i] <= size, "replaced %d by %ld", i, mem[i]);
	MPI_Win_fence(0, win);
	free(ones);
}

/* One counter on rank 0: every value is handed out once. */
static void
fetch(long *mem, MPI_Win win)
{
	long got[ROUNDS], one = 1, *all = util_alloc(ROUNDS * size * sizeof(*all));
	char *seen = calloc(ROUNDS * size, 1);
	int i;

	mem[0] = mem[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < ROUNDS; i++) {
		MPI_Fetch_and_op(&one, &got[i], MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Gather(got, ROUNDS, MPI_LONG, all, ROUNDS, MPI_LONG, 0, MPI_COMM_WORLD);
	if (rank == 0)
		for (i = 0; i < ROUNDS * size; i++) {
			CHECK(all[i] >= 0 && all[i] < ROUNDS * size, "ticket %ld", all[i]);
			CHECK(!seen[all[i]]++, "ticket %ld twice", all[i]);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	free(all);
	free(seen);
}

/* A sum made with compare-and-swap, and one under an exclusive lock. */
static void
swap(long *mem, MPI_Win win)
{
	long old, want, seen, value;
	int i;

	mem[0] = mem[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	for (i = 0, old = 0; i < ROUNDS;) {
		want = old + 1;
		MPI_Compare_and_swap(&want, &old, &seen, MPI_LONG, 0, 0, win);
		MPI_Win_flush(0, win);
		i += seen == old;
		old = seen == old ? want : seen;
	}
	MPI_Win_unlock(0, win);
	for (i = 0; i < 20; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		value++;
		MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
	MPI_Get(&seen, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
	MPI_Win_unlock(0, win);
	CHECK(value == (long)ROUNDS * size, "swapped to %ld", value);
	CHECK(seen == 20L * size, "locked to %ld", seen);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void
post_start(long *mem, MPI_Win win)
{
	int peers[2] = {left, right}, n = left == right ? 1 : 2, r;
	MPI_Group world, near;
	long out;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, n, peers, &near);
	for (r = 0; r < 20; r++) {
		mem[0] = mem[1] = -1;
		out = rank * 1000 + r;
		MPI_Win_post(near, 0, win);
		MPI_Win_start(near, 0, win);
		MPI_Put(&out, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
		MPI_Put(&out, 1, MPI_LONG, left, 1, 1, MPI_LONG, win);
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		CHECK(mem[0] == left * 1000 + r && mem[1] == right * 1000 + r, "%ld and %ld", mem[0],
			mem[1]);
	}
	MPI_Group_free(&near);
	MPI_Group_free(&world);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Memory attached later, found by the address that its owner tells. */
static void
dynamic(void)
{
	long *mem = util_alloc(N * sizeof(*mem)), *in = util_alloc(N * sizeof(*in)), one = 1, i;
	MPI_Aint mine, theirs;
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (i = 0; i < N; i++)
		mem[i] = rank * 10000 + i;
	MPI_Win_attach(win, mem, N * sizeof(*mem));
	MPI_Get_address(mem, &mine);
	MPI_Sendrecv(&mine, 1, MPI_AINT, left, 0, &theirs, 1, MPI_AINT, right, 0, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, win);
	MPI_Get(in, N, MPI_LONG, right, theirs, N, MPI_LONG, win);
	MPI_Win_flush(right, win);
	for (i = 0; i < N; i++)
		CHECK(in[i] == right * 10000 + i, "dynamic %ld is %ld", i, in[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < N; i++)
		in[i] = -in[i];
	MPI_Put(in + 1, N - 1, MPI_LONG, right, theirs + sizeof(long), N - 1, MPI_LONG, win);
	MPI_Accumulate(&one, 1, MPI_LONG, right, theirs, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_flush(right, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(mem[0] == rank * 10000 + 1, "added to %ld", mem[0]);
	for (i = 1; i < N; i++)
		CHECK(mem[i] == -(rank * 10000 + i), "written %ld is %ld", i, mem[i]);
	MPI_Win_detach(win, mem);
	MPI_Win_free(&win);
	free(mem);
	free(in);
}

/* Long, strided, by request; what a peer of length 0 has is nothing. */
static void
request(void)
{
	uint8_t *mem = util_alloc(BIG), *in = util_alloc(BIG);
	MPI_Datatype type;
	MPI_Request req[2];
	MPI_Win win, none;

	util_fill(mem, BIG, rank);
	MPI_Win_create(mem, BIG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &none);
	MPI_Win_lock_all(0, win);
	MPI_Rget(in, BIG / 2, MPI_BYTE, right, 0, BIG / 2, MPI_BYTE, win, &req[0]);
	MPI_Rget(in + BIG / 2, BIG / 2, MPI_BYTE, right, BIG / 2, BIG / 2, MPI_BYTE, win, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	util_check(in, BIG, right);
	MPI_Win_unlock_all(win);
	MPI_Type_vector(1000, 10, 20, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	MPI_Win_fence(0, win);
	memset(in, rank, BIG);
	MPI_Put(in, 10000, MPI_BYTE, right, 0, 1, type, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < 20000 - 10; i++)
		CHECK(mem[i] == (i % 20 < 10 ? (uint8_t)left : util_byte(rank, i)), "byte %d is %d", i,
			mem[i]);
	MPI_Type_free(&type);
	MPI_Win_free(&none);
	MPI_Win_free(&win);
	free(mem);
	free(in);
}

int
main(int argc, char **argv)
{
	MPI_Win made, allocated;
	long *own, *theirs;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	own = util_alloc(N * sizeof(*own));
	MPI_Win_create(own, N * sizeof(*own), sizeof(*own), MPI_INFO_NULL, MPI_COMM_WORLD, &made);
	MPI_Win_allocate(N * sizeof(*own), sizeof(*own), MPI_INFO_NULL, MPI_COMM_WORLD, &theirs,
		&allocated);
	fence(own, made);
	fence(theirs, allocated);
	accumulate(own, made);
	accumulate(theirs, allocated);
	fetch(own, made);
	fetch(theirs, allocated);
	swap(own, made);
	swap(theirs, allocated);
	post_start(own, made);
	post_start(theirs, allocated);
	dynamic();
	request();
	MPI_Win_free(&allocated);
	MPI_Win_free(&made);
	if (rank == 0)
		printf("rma ok\n");
	MPI_Finalize();
	free(own);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * onesided.c - windows of every kind; fence, lock, PSCW; put, get, accumulate,
 * fetch_and_op, compare_and_swap; flush; dynamic windows
 */
#include "mpi_util.h"

enum { LEN = 200000, N_COUNT = 100 };

static int rank, size;

/* Put a piece into every window, get it back from there; all pieces are checked at home too. */
static void
fence(MPI_Win win, uint8_t *base)
{
	const int per = LEN / size;
	uint8_t *out = util_alloc(per), *in = util_alloc(per);
	int r;

	util_fill(out, per, rank);
	MPI_Win_fence(0, win);
	for (r = 0; r < size; r++)
		MPI_Put(out, per, MPI_BYTE, r, (MPI_Aint)rank * per, per, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	for (r = 0; r < size; r++)
		util_check(base + (size_t)r * per, per, r);
	for (r = 0; r < size; r++) {
		memset(in, 0, per);
		MPI_Win_fence(0, win);
		MPI_Get(in, per, MPI_BYTE, (rank + r) % size, (MPI_Aint)r * per, per, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		util_check(in, per, r);
	}
	MPI_Win_fence(0, win);
	memset(base, 0, LEN);
	MPI_Win_fence(0, win);
	free(in);
	free(out);
}

/* A counter at rank 0, in turns under its lock. */
static void
lock(MPI_Win win, uint8_t *base)
{
	uint64_t v;
	int i;

	for (i = 0; i < N_COUNT; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&v, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
		MPI_Win_flush(0, win);
		v++;
		MPI_Put(&v, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		memcpy(&v, base, sizeof(v));
		CHECK(v == (uint64_t)(N_COUNT * size), "%llu", (unsigned long long)v);
		memset(base, 0, LEN);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Counters of all ranks, all at once. */
static void
count(MPI_Win win, uint8_t *base)
{
	int64_t one = 1, old, last = -1, want, swap;
	int64_t *w = (int64_t *)(void *)base;
	double half = 0.5;
	int i, r;

	MPI_Win_lock_all(0, win);
	for (i = 0; i < N_COUNT; i++) {
		for (r = 0; r < size; r++) {
			MPI_Accumulate(&one, 1, MPI_INT64_T, r, 8, 1, MPI_INT64_T, MPI_SUM, win);
			MPI_Accumulate(&half, 1, MPI_DOUBLE, r, 16, 1, MPI_DOUBLE, MPI_SUM, win);
		}
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 24, MPI_SUM, win);
		MPI_Win_flush(0, win);
		CHECK(old > last && old < N_COUNT * size, "%lld after %lld", (long long)old,
			(long long)last);
		last = old;
	}
	/* A lock of our own by compare-and-swap, and what it protects. */
	for (i = 0; i < 20; i++) {
		swap = rank + 1;
		want = 0;
		do {
			MPI_Compare_and_swap(&swap, &want, &old, MPI_INT64_T, 0, 32, win);
			MPI_Win_flush(0, win);
		} while (old != 0);
		MPI_Get(&old, 1, MPI_INT64_T, 0, 40, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		old++;
		MPI_Put(&old, 1, MPI_INT64_T, 0, 40, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		swap = 0;
		want = rank + 1;
		MPI_Compare_and_swap(&swap, &want, &old, MPI_INT64_T, 0, 32, win);
		MPI_Win_flush(0, win);
		CHECK(old == rank + 1, "%lld", (long long)old);
	}
	MPI_Win_flush_all(win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	CHECK(w[1] == N_COUNT * size, "%lld", (long long)w[1]);
	memcpy(&half, &w[2], sizeof(half));
	CHECK(half == 0.5 * N_COUNT * size, "%f", half);
	if (rank == 0) {
		CHECK(w[3] == N_COUNT * size, "%lld", (long long)w[3]);
		CHECK(w[5] == 20 * size, "%lld", (long long)w[5]);
	}
	memset(base, 0, LEN);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank to the next one around. */
static void
pscw(MPI_Win win, uint8_t *base)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, i;
	uint8_t *out = util_alloc(LEN);
	MPI_Group all, to, from;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &next, &to);
	MPI_Group_incl(all, 1, &before, &from);
	for (i = 0; i < 5; i++) {
		util_fill(out, LEN, rank * 100 + i);
		MPI_Win_post(from, 0, win);
		MPI_Win_start(to, 0, win);
		MPI_Put(out, LEN, MPI_BYTE, next, 0, LEN, MPI_BYTE, win);
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		util_check(base, LEN, before * 100 + i);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&all);
	memset(base, 0, LEN);
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
}

/* Every third word, by a datatype. */
static void
strided(MPI_Win win, uint8_t *base)
{
	const uint64_t *w = (const uint64_t *)(const void *)base;
	MPI_Datatype type;
	uint64_t out[100];
	int i, next = (rank + 1) % size, before = (rank + size - 1) % size;

	MPI_Type_vector(100, 1, 3, MPI_UINT64_T, &type);
	MPI_Type_commit(&type);
	for (i = 0; i < 100; i++)
		out[i] = (uint64_t)rank << 32 | (uint64_t)i;
	MPI_Win_fence(0, win);
	MPI_Put(out, 100, MPI_UINT64_T, next, 0, 1, type, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < 300; i++)
		CHECK(w[i] == (i % 3 == 0 ? (uint64_t)before << 32 | (uint64_t)(i / 3) : 0), "%d", i);
	MPI_Win_fence(0, win);
	memset(base, 0, LEN);
	MPI_Win_fence(0, win);
	MPI_Type_free(&type);
}

static void
dynamic(void)
{
	MPI_Aint *at = calloc(size, sizeof(*at));
	uint64_t *mem = calloc(1000, sizeof(*mem)), v = 100 + rank, got = 0;
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, mem, 8000);
	MPI_Get_address(mem, &at[rank]);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at, 1, MPI_AINT, MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Put(&v, 1, MPI_UINT64_T, next, at[next] + 80, 1, MPI_UINT64_T, win);
	MPI_Win_flush(next, win);
	MPI_Get(&got, 1, MPI_UINT64_T, next, at[next] + 80, 1, MPI_UINT64_T, win);
	MPI_Win_flush(next, win);
	CHECK(got == v, "%llu", (unsigned long long)got);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(mem[10] == (uint64_t)(100 + before), "%llu", (unsigned long long)mem[10]);
	MPI_Win_detach(win, mem);
	MPI_Win_free(&win);
	free(mem);
	free(at);
}

int
main(int argc, char **argv)
{
	MPI_Info info;
	int kind;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* Without this MPICH shares the windows of one node by itself and the library sees little. */
	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shm", "false");
	for (kind = 0; kind < 3; kind++) {
		uint8_t *base = NULL;
		MPI_Win win;

		if (kind == 0) {
			base = calloc(1, LEN);
			MPI_Win_create(base, LEN, 1, info, MPI_COMM_WORLD, &win);
		} else {
			MPI_Win_allocate(LEN, 1, kind == 1 ? info : MPI_INFO_NULL, MPI_COMM_WORLD, &base,
				&win);
			memset(base, 0, LEN);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		fence(win, base);
		lock(win, base);
		count(win, base);
		pscw(win, base);
		strided(win, base);
		MPI_Win_free(&win);
		if (kind == 0)
			free(base);
	}
	/* Nobody has anything in this one but rank 0. */
	{
		uint64_t word = 0, v = 5;
		MPI_Win win;

		MPI_Win_create(&word, rank == 0 ? 8 : 0, 1, info, MPI_COMM_WORLD, &win);
		MPI_Win_fence(0, win);
		if (rank == size - 1)
			MPI_Put(&v, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
		MPI_Win_fence(0, win);
		CHECK(word == (rank == 0 ? 5u : 0u), "%llu", (unsigned long long)word);
		MPI_Win_free(&win);
	}
	dynamic();
	MPI_Info_free(&info);
	if (rank == 0)
		printf("onesided ok\n");
	MPI_Finalize();
	return 0;
}

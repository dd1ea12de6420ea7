/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * atomic.c - atomics of 4 and 8 bytes, and locks
 */
#include "shmem_util.h"

enum { ROUNDS = 300 };

static int me, n;
static long lock;
static long counter;

#define EACH_WIDTH(type, name) \
	static void all_##name(type *v) \
	{ \
		type seen, i, *got = malloc(ROUNDS * sizeof(*got)), last = -1; \
		int t = n - 1; \
\
		*v = v[1] = 0; \
		v[2] = 0x0f; \
		shmem_barrier_all(); \
		for (i = 0; i < ROUNDS; i++) { \
			got[i] = shmem_##name##_atomic_fetch_add(v, 1, 0); \
			CHECK(got[i] > last && got[i] < ROUNDS * n, "ticket"); \
			last = got[i]; \
			shmem_##name##_atomic_add(v + 1, 2, t); \
			shmem_##name##_atomic_inc(v + 1, t); \
		} \
		shmem_barrier_all(); \
		CHECK(shmem_##name##_atomic_fetch(v, 0) == ROUNDS * n, "sum"); \
		CHECK(shmem_##name##_atomic_fetch(v + 1, t) == 3 * ROUNDS * n, "sum of adds"); \
		shmem_barrier_all(); \
		/* A value is swapped round: in the end each is somewhere once. */ \
		*v = 0; \
		shmem_barrier_all(); \
		seen = me + 1; \
		for (i = 0; i < ROUNDS; i++) \
			seen = shmem_##name##_atomic_swap(v, seen, 0); \
		v[3] = seen; \
		shmem_barrier_all(); \
		for (i = 0, last = shmem_##name##_atomic_fetch(v, 0); i < n; i++) \
			last += shmem_##name##_atomic_fetch(v + 3, i); \
		CHECK(last == n * (n + 1) / 2, "lost one"); \
		shmem_barrier_all(); \
		shmem_##name##_atomic_set(v, me + 7, (me + 1) % n); \
		shmem_barrier_all(); \
		CHECK(*v == (me + n - 1) % n + 7, "set"); \
		shmem_barrier_all(); \
		free(got); \
	}

EACH_WIDTH(int, int)
EACH_WIDTH(long, long)

/*
 * A count made with compare and swap. Of 8 bytes only: Open MPI 4.1.4's own function
 * for 4 writes 8 on its stack, with UCX as well.
 */
static void
compare(long *v)
{
	long seen, last;
	int i;

	*v = 0;
	shmem_barrier_all();
	for (i = 0, last = 0; i < ROUNDS;) {
		seen = shmem_long_atomic_compare_swap(v, last, last + 1, 0);
		i += seen == last;
		last = seen == last ? last + 1 : seen;
	}
	shmem_barrier_all();
	CHECK(shmem_long_atomic_fetch(v, 0) == ROUNDS * n, "swapped");
	shmem_barrier_all();
}

/* Without the values that were there: UCX 1.13 on shared memory fetches wrong ones. */
static void
bits(unsigned long *v)
{
	unsigned long old;
	int i;

	*v = 0;
	shmem_barrier_all();
	shmem_ulong_atomic_or(v, 1ull << me, 0);
	shmem_barrier_all();
	CHECK(shmem_ulong_atomic_fetch(v, 0) == (1ull << n) - 1, "or");
	shmem_barrier_all();
	for (i = 0; i < 101; i++) {
		shmem_ulong_atomic_xor(v, 1ull << me, 0);
		old = shmem_ulong_atomic_fetch(v, 0);
		CHECK((old >> me & 1) == i % 2, "xor %d", i);
	}
	shmem_barrier_all();
	CHECK(shmem_ulong_atomic_fetch(v, 0) == 0, "xor");
	shmem_barrier_all();
	if (me == 0)
		shmem_ulong_atomic_set(v, (1ull << n) - 1, 0);
	shmem_barrier_all();
	shmem_ulong_atomic_and(v, ~(1ull << me), 0);
	shmem_barrier_all();
	CHECK(shmem_ulong_atomic_fetch(v, 0) == 0, "and");
	shmem_barrier_all();
}

/* Read, add, write under a lock: none is lost. */
static void
locked(void)
{
	long value;
	int i;

	for (i = 0; i < 30; i++) {
		shmem_set_lock(&lock);
		value = shmem_long_g(&counter, n - 1);
		shmem_long_p(&counter, value + 1, n - 1);
		shmem_quiet();
		shmem_clear_lock(&lock);
	}
	shmem_barrier_all();
	CHECK(shmem_long_g(&counter, n - 1) == 30 * n, "%ld", counter);
	while (shmem_test_lock(&lock) != 0)
		;
	shmem_clear_lock(&lock);
	shmem_barrier_all();
}

int
main(void)
{
	void *heap;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	heap = shmem_malloc(64);
	CHECK(heap != NULL, "no memory");
	all_int(heap);
	all_long(heap);
	compare(heap);
	bits(heap);
	locked();
	shmem_free(heap);
	if (me == 0)
		printf("atomic ok\n");
	shmem_finalize();
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * collective.c - broadcast, collect, reductions, all to all, and waits in a ring
 */
#include "shmem_util.h"

enum { LEN = 5000 };

static long sync_a[SHMEM_COLLECT_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE +
	SHMEM_REDUCE_SYNC_SIZE];
static long work[LEN + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static int me, n;

static void
reset(void)
{
	size_t i;

	for (i = 0; i < sizeof(sync_a) / sizeof(*sync_a); i++)
		sync_a[i] = SHMEM_SYNC_VALUE;
	shmem_barrier_all();
}

static void
all(long *from, long *to, int len)
{
	int i;

	for (i = 0; i < len; i++) {
		from[i] = me * 100000L + i;
		to[i] = -1;
	}
	reset();
	shmem_broadcast64(to, from, len, n - 1, 0, 0, n, sync_a);
	shmem_barrier_all();
	for (i = 0; i < len; i++)
		CHECK(to[i] == (me == n - 1 ? -1 : (n - 1) * 100000L + i), "broadcast %d", i);
	reset();
	shmem_fcollect64(to, from, len, 0, 0, n, sync_a);
	for (i = 0; i < len * n; i++)
		CHECK(to[i] == i / len * 100000L + i % len, "fcollect %d of %d", i, len);
	reset();
	shmem_long_sum_to_all(to, from, len, 0, 0, n, work, sync_a);
	for (i = 0; i < len; i++)
		CHECK(to[i] == n * (n - 1) / 2 * 100000L + (long)n * i, "sum %d", i);
	reset();
	shmem_long_max_to_all(to, from, len, 0, 0, n, work, sync_a);
	for (i = 0; i < len; i++)
		CHECK(to[i] == (n - 1) * 100000L + i, "max %d", i);
	for (i = 0; i < len * n; i++)
		from[i] = me * 1000000L + i;
	reset();
	shmem_alltoall64(to, from, len, 0, 0, n, sync_a);
	for (i = 0; i < len * n; i++)
		CHECK(to[i] == i / len * 1000000L + me * len + i % len, "alltoall %d of %d", i, len);
	shmem_barrier_all();
}

/* A token goes round; only who holds it may go on. */
static void
ring(int *token)
{
	int round;

	*token = me == 0 ? 1 : 0;
	shmem_barrier_all();
	for (round = 1; round <= 100; round++) {
		shmem_int_wait_until(token, SHMEM_CMP_EQ, round);
		shmem_int_p(token, me == n - 1 ? round + 1 : round, (me + 1) % n);
	}
	shmem_barrier_all();
	CHECK(*token == (me == 0 ? 101 : 100), "%d", *token);
}

int
main(void)
{
	long *from, *to;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	from = shmem_malloc(LEN * n * sizeof(*from));
	to = shmem_malloc(LEN * n * sizeof(*to));
	CHECK(from != NULL && to != NULL, "no memory");
	all(from, to, 1);
	all(from, to, 100);
	all(from, to, LEN);
	ring((int *)from);
	shmem_free(from);
	shmem_free(to);
	if (me == 0)
		printf("collective ok\n");
	shmem_finalize();
	return 0;
}

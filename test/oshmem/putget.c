/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * putget.c - put and get of every length and kind, on heap and static memory
 */
#include "shmem_util.h"

enum { MAX = 1 << 20 };

static uint8_t in_static[100000];
static int me, n, right, left;

static uint8_t
byte(int pe, size_t i)
{
	uint64_t x = (pe * 7919u + i) * 0x9e3779b97f4a7c15u;

	return (uint8_t)(x >> 56 ^ x >> 29);
}

/* into is symmetric. */
static void
blocks(uint8_t *into, size_t max)
{
	static const size_t lens[] = {1, 7, 8, 64, 1000, 8192, 65536, 100000, MAX};
	uint8_t *own = malloc(MAX);
	size_t i, k;

	for (k = 0; k < 9 && lens[k] <= max; k++) {
		size_t len = lens[k];

		memset(into, 0, len);
		shmem_barrier_all();
		for (i = 0; i < len; i++)
			own[i] = byte(me + k, i);
		if (k & 1) {
			shmem_putmem(into, own, len, right);
		} else {
			shmem_putmem_nbi(into, own, len, right);
			shmem_quiet();
		}
		shmem_barrier_all();
		for (i = 0; i < len; i++)
			CHECK(into[i] == byte(left + k, i), "put %zu of %zu", i, len);
		memset(own, 0, len);
		if (k & 1) {
			shmem_getmem_nbi(own, into, len, right);
			shmem_quiet();
		} else {
			shmem_getmem(own, into, len, right);
		}
		for (i = 0; i < len; i++)
			CHECK(own[i] == byte(me + k, i), "get %zu of %zu", i, len);
		shmem_barrier_all();
	}
	free(own);
}

static void
strided(int *sym)
{
	int own[200], i;

	for (i = 0; i < 200; i++) {
		own[i] = me * 1000 + i;
		sym[i] = -1;
	}
	shmem_barrier_all();
	shmem_int_iput(sym, own, 2, 3, 60, right);
	shmem_barrier_all();
	for (i = 0; i < 120; i++)
		CHECK(sym[i] == (i & 1 ? -1 : left * 1000 + 3 * (i / 2)), "%d is %d", i, sym[i]);
	shmem_int_iget(own, sym, 1, 2, 60, right);
	for (i = 0; i < 60; i++)
		CHECK(own[i] == me * 1000 + 3 * i, "%d is %d", i, own[i]);
	shmem_barrier_all();
}

/* The flag comes after the data: by fence, and by a wait for it. */
static void
order(long *data, long *flag)
{
	long own[500], i, r;

	*flag = 0;
	shmem_barrier_all();
	for (r = 1; r <= 50; r++) {
		for (i = 0; i < 500; i++)
			own[i] = me * 1000000L + r * 1000 + i;
		shmem_long_put(data, own, 500, right);
		shmem_fence();
		shmem_long_p(flag, r, right);
		shmem_long_wait_until(flag, SHMEM_CMP_GE, r);
		for (i = 0; i < 500; i++)
			CHECK(data[i] == left * 1000000L + r * 1000 + i, "%ld of round %ld is %ld", i, r,
				data[i]);
		shmem_barrier_all();
	}
	CHECK(shmem_long_g(flag, right) == 50, "flag");
	shmem_barrier_all();
}

static void
pointer(int *sym)
{
	int *theirs, t;

	for (t = 0; t < n; t++) {
		*sym = me + 5;
		shmem_barrier_all();
		theirs = shmem_ptr(sym, t);
		CHECK(t != me || theirs == sym, "mine");
		if (theirs != NULL)
			CHECK(*(volatile int *)theirs == t + 5, "%d", *theirs);
		shmem_barrier_all();
	}
}

int
main(void)
{
	uint8_t *heap;
	long *flag;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	right = (me + 1) % n;
	left = (me + n - 1) % n;
	heap = shmem_malloc(MAX);
	flag = shmem_calloc(1, sizeof(*flag));
	CHECK(heap != NULL && flag != NULL, "no memory");
	CHECK(shmem_addr_accessible(heap, right), "heap");
	blocks(heap, MAX);
	blocks(in_static, sizeof(in_static));
	strided((int *)heap);
	strided((int *)in_static);
	order((long *)heap, flag);
	pointer((int *)heap);
	shmem_free(flag);
	shmem_free(heap);
	if (me == 0)
		printf("putget ok\n");
	shmem_finalize();
	return 0;
}

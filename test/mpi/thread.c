/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * thread.c - MPI_THREAD_MULTIPLE: threads that send, receive, probe and reduce at once
 */
#include <pthread.h>

#include "mpi_util.h"

enum { THREADS = 3, ROUNDS = 60, LONG = 50000 };

static int rank, size, right, left;
static MPI_Comm comms[THREADS];

/* By tag on one communicator: eager, long, probed, and any source. */
static void
by_tag(int t)
{
	uint8_t *out = util_alloc(LONG), *in = util_alloc(LONG);
	MPI_Request req[2];
	MPI_Message msg;
	MPI_Status status;
	int i, len, count;

	for (i = 0; i < ROUNDS; i++) {
		len = i % 4 == 3 ? LONG : 10 + i;
		util_fill(out, len, rank * 1000 + t * 100 + i);
		MPI_Isend(out, len, MPI_BYTE, right, t, MPI_COMM_WORLD, &req[0]);
		if (i % 3 == 0) {
			MPI_Mprobe(MPI_ANY_SOURCE, t, MPI_COMM_WORLD, &msg, &status);
			MPI_Get_count(&status, MPI_BYTE, &count);
			CHECK(count == len, "%d of %d", count, len);
			MPI_Mrecv(in, len, MPI_BYTE, &msg, &status);
		} else {
			MPI_Irecv(in, len, MPI_BYTE, i % 3 == 1 ? left : MPI_ANY_SOURCE, t,
				MPI_COMM_WORLD, &req[1]);
			MPI_Wait(&req[1], MPI_STATUS_IGNORE);
		}
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		util_check(in, len, left * 1000 + t * 100 + i);
	}
	free(out);
	free(in);
}

static void
collectives(int t)
{
	int i, value, sum;

	for (i = 0; i < ROUNDS; i++) {
		value = rank + i + t;
		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comms[t]);
		CHECK(sum == size * (size - 1) / 2 + size * (i + t), "%d", sum);
		value = rank == i % size ? i * 10 + t : -1;
		MPI_Bcast(&value, 1, MPI_INT, i % size, comms[t]);
		CHECK(value == i * 10 + t, "%d", value);
	}
}

static void *
body(void *arg)
{
	int t = (int)(intptr_t)arg;

	by_tag(t);
	collectives(t);
	return NULL;
}

int
main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int level, t;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	CHECK(level == MPI_THREAD_MULTIPLE, "only level %d", level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	for (t = 0; t < THREADS; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
	for (t = 0; t < THREADS; t++)
		CHECK(pthread_create(&threads[t], NULL, body, (void *)(intptr_t)t) == 0, "thread");
	for (t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (t = 0; t < THREADS; t++)
		MPI_Comm_free(&comms[t]);
	if (rank == 0)
		printf("thread ok\n");
	MPI_Finalize();
	return 0;
}

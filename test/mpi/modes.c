/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * modes.c - send modes, probes, cancel and persistent requests
 */
#include "mpi_util.h"

enum { N = 64, MAX = 300000 };

static int rank, size, right, left;
static uint8_t *out, *in;

static const int lens[] = {0, 8, 1000, 9000, 33000, MAX};

static void
sync_send(void)
{
	MPI_Request req;
	int i;

	for (i = 0; i < 6; i++) {
		util_fill(out, lens[i], rank + i);
		MPI_Issend(out, lens[i], MPI_BYTE, right, 1, MPI_COMM_WORLD, &req);
		MPI_Recv(in, MAX, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		util_check(in, lens[i], left + i);
	}
	if (size > 1 && (rank ^ 1) < size) {
		if (rank & 1)
			MPI_Recv(in, MAX, MPI_BYTE, rank ^ 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Ssend(out, 5000, MPI_BYTE, rank ^ 1, 2, MPI_COMM_WORLD);
	}
}

static void
many_at_once(void)
{
	MPI_Request req[2 * N];
	uint8_t *o[N], *r[N];
	int i;

	for (i = 0; i < N; i++) {
		int len = lens[i % 6];

		o[i] = util_alloc(len);
		r[i] = util_alloc(len);
		util_fill(o[i], len, rank * 100 + i);
		MPI_Irecv(r[i], len, MPI_BYTE, left, i, MPI_COMM_WORLD, &req[i]);
	}
	/* In another order than they were posted. */
	for (i = N - 1; i >= 0; i--)
		MPI_Isend(o[i], lens[i % 6], MPI_BYTE, right, i, MPI_COMM_WORLD, &req[N + i]);
	MPI_Waitall(2 * N, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < N; i++) {
		util_check(r[i], lens[i % 6], left * 100 + i);
		free(o[i]);
		free(r[i]);
	}
}

static void
send_receive(void)
{
	MPI_Status status;
	int i, count;

	for (i = 0; i < 6; i++) {
		util_fill(out, lens[i], rank);
		MPI_Sendrecv(out, lens[i], MPI_BYTE, right, 3, in, MAX, MPI_BYTE, left, 3,
			MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == lens[i], "%d", count);
		util_check(in, lens[i], left);
	}
}

static void
probes(void)
{
	MPI_Request req;
	MPI_Message msg;
	MPI_Status status;
	int i, flag, count;

	MPI_Iprobe(left, 77, MPI_COMM_WORLD, &flag, &status);
	CHECK(!flag, "a message that nobody sent");
	for (i = 0; i < 6; i++) {
		util_fill(out, lens[i], rank + i);
		MPI_Isend(out, lens[i], MPI_BYTE, right, 4, MPI_COMM_WORLD, &req);
		do {
			MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, &status);
		} while (!flag);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == lens[i] && status.MPI_SOURCE == left, "%d from %d", count,
			status.MPI_SOURCE);
		if (i & 1) {
			MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &msg, &status);
			MPI_Iprobe(left, 4, MPI_COMM_WORLD, &flag, &status);
			CHECK(!flag, "still there after Mprobe");
			MPI_Mrecv(in, MAX, MPI_BYTE, &msg, &status);
		} else {
			MPI_Recv(in, MAX, MPI_BYTE, left, 4, MPI_COMM_WORLD, &status);
		}
		util_check(in, lens[i], left + i);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void
cancel(void)
{
	MPI_Request req;
	MPI_Status status;
	int cancelled;

	MPI_Irecv(in, MAX, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &status);
	MPI_Test_cancelled(&status, &cancelled);
	CHECK(cancelled, "a receive that nobody sends to");
	/* What comes later goes to a later receive. */
	MPI_Barrier(MPI_COMM_WORLD);
	util_fill(out, 100, rank);
	MPI_Sendrecv(out, 100, MPI_BYTE, right, 5, in, 100, MPI_BYTE, left, 5, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
	util_check(in, 100, left);
}

static void
persistent(void)
{
	MPI_Request req[2];
	int i;

	MPI_Send_init(out, 1000, MPI_BYTE, right, 6, MPI_COMM_WORLD, &req[0]);
	MPI_Recv_init(in, 1000, MPI_BYTE, left, 6, MPI_COMM_WORLD, &req[1]);
	for (i = 0; i < 50; i++) {
		util_fill(out, 1000, rank + i);
		MPI_Startall(2, req);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		util_check(in, 1000, left + i);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	out = malloc(MAX);
	in = malloc(MAX);
	sync_send();
	many_at_once();
	send_receive();
	MPI_Barrier(MPI_COMM_WORLD);
	probes();
	cancel();
	persistent();
	if (rank == 0)
		printf("modes ok\n");
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}

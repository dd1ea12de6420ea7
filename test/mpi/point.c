/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * point.c - buffered and ready sends, matched probes, unexpected floods, partial
 * completion, persistent synchronous sends, truncation
 */
#include "mpi_util.h"

enum { MAX = 200000, FLOOD = 500 };

static int rank, size, right, left;
static uint8_t *out, *in;

static const int lens[] = {0, 1, 200, 8192, 20000, MAX};

static void
buffered(void)
{
	int len = 6 * (MAX + MPI_BSEND_OVERHEAD), i;
	void *space = util_alloc(len), *back;

	MPI_Buffer_attach(space, len);
	for (i = 0; i < 6; i++) {
		util_fill(out, lens[i], rank + i);
		MPI_Bsend(out, lens[i], MPI_BYTE, right, i, MPI_COMM_WORLD);
		memset(out, 0, lens[i]); /* it was copied */
	}
	for (i = 5; i >= 0; i--) {
		MPI_Recv(in, MAX, MPI_BYTE, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		util_check(in, lens[i], left + i);
	}
	MPI_Buffer_detach(&back, &len);
	CHECK(back == space, "%p", back);
	free(space);
}

static void
ready(void)
{
	MPI_Request req[6];
	uint8_t *r[6];
	int i;

	for (i = 0; i < 6; i++) {
		r[i] = util_alloc(lens[i]);
		MPI_Irecv(r[i], lens[i], MPI_BYTE, left, i, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < 6; i++) {
		util_fill(out, lens[i], rank + i);
		MPI_Rsend(out, lens[i], MPI_BYTE, right, i, MPI_COMM_WORLD);
	}
	MPI_Waitall(6, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < 6; i++) {
		util_check(r[i], lens[i], left + i);
		free(r[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Taken by Improbe in another order than received by Imrecv. */
static void
matched(void)
{
	MPI_Message msg[6];
	MPI_Request req[6], got[6];
	MPI_Status status;
	uint8_t *o[6], *r[6];
	int i, flag, count;

	for (i = 0; i < 6; i++) {
		o[i] = util_alloc(lens[i]);
		r[i] = util_alloc(lens[i]);
		util_fill(o[i], lens[i], rank + i);
		MPI_Isend(o[i], lens[i], MPI_BYTE, right, 9, MPI_COMM_WORLD, &req[i]);
	}
	for (i = 0; i < 6; i++) {
		do {
			MPI_Improbe(i & 1 ? MPI_ANY_SOURCE : left, 9, MPI_COMM_WORLD, &flag, &msg[i],
				&status);
		} while (!flag);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == lens[i], "%d", count);
	}
	MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, &status);
	CHECK(!flag, "all were taken");
	for (i = 5; i >= 0; i--)
		MPI_Imrecv(r[i], lens[i], MPI_BYTE, &msg[i], &got[i]);
	MPI_Waitall(6, got, MPI_STATUSES_IGNORE);
	MPI_Waitall(6, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < 6; i++) {
		util_check(r[i], lens[i], left + i);
		free(o[i]);
		free(r[i]);
	}
	MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &msg[0], &status);
	CHECK(msg[0] == MPI_MESSAGE_NO_PROC, "a message of nobody");
	MPI_Mrecv(NULL, 0, MPI_BYTE, &msg[0], &status);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* None of them has a receive when it comes; then they are taken from the last one on. */
static void
flood(void)
{
	MPI_Request *req = util_alloc(2 * FLOOD * sizeof(*req));
	int *o = util_alloc(FLOOD * 600 * sizeof(*o)), *r = util_alloc(600 * sizeof(*r)), i, n, count;
	MPI_Status status;

	for (i = 0; i < FLOOD; i++) {
		n = i % 50 == 0 ? 600 * 4 : 4 + i % 8;
		n = n > 600 ? 600 : n;
		o[600 * i] = rank * FLOOD + i;
		o[600 * i + n - 1] = rank * FLOOD + i;
		MPI_Isend(o + 600 * i, n, MPI_INT, right, i, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = FLOOD - 1; i >= 0; i--) {
		MPI_Recv(r, 600, MPI_INT, i % 3 ? left : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_INT, &count);
		CHECK(count == (i % 50 == 0 ? 600 : 4 + i % 8), "%d", count);
		CHECK(r[0] == left * FLOOD + i && r[count - 1] == r[0], "%d", r[0]);
	}
	MPI_Waitall(FLOOD, req, MPI_STATUSES_IGNORE);
	free(req);
	free(o);
	free(r);
}

static void
some(void)
{
	MPI_Request req[40];
	int got[40], index[40], i, n, left_over = 20, seen = 0;

	for (i = 0; i < 20; i++) {
		got[i] = -1;
		MPI_Irecv(&got[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &req[i]);
	}
	for (i = 0; i < 20; i++) {
		got[20 + i] = rank + 19 - i;
		MPI_Isend(&got[20 + i], 1, MPI_INT, right, 19 - i, MPI_COMM_WORLD, &req[20 + i]);
	}
	while (left_over > 0) {
		MPI_Waitsome(20, req, &n, index, MPI_STATUSES_IGNORE);
		CHECK(n > 0, "%d", n);
		for (i = 0; i < n; i++) {
			CHECK(got[index[i]] == left + index[i], "%d", got[index[i]]);
			CHECK(!(seen >> index[i] & 1), "%d twice", index[i]);
			seen |= 1 << index[i];
		}
		left_over -= n;
	}
	MPI_Waitall(20, req + 20, MPI_STATUSES_IGNORE);
}

static void
persistent(void)
{
	MPI_Request req[4];
	uint8_t *r = util_alloc(MAX);
	int i;

	MPI_Ssend_init(out, MAX, MPI_BYTE, right, 1, MPI_COMM_WORLD, &req[0]);
	MPI_Send_init(out, 30000, MPI_BYTE, left, 2, MPI_COMM_WORLD, &req[1]);
	MPI_Recv_init(in, MAX, MPI_BYTE, left, 1, MPI_COMM_WORLD, &req[2]);
	MPI_Recv_init(r, 30000, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &req[3]);
	for (i = 0; i < 20; i++) {
		util_fill(out, MAX, rank + i);
		MPI_Startall(4, req);
		MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
		util_check(in, MAX, left + i);
		util_check(r, 30000, right + i);
	}
	for (i = 0; i < 4; i++)
		MPI_Request_free(&req[i]);
	free(r);
}

/* Longer than the buffer: the error comes, what is behind it stays, the next is right. */
static void
truncated(void)
{
	MPI_Request req[4];
	MPI_Status status;
	int i, rc, class;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 0; i < 2; i++) {
		int len = i ? MAX : 500;

		util_fill(out, len, rank);
		memset(in, 0xee, 200);
		MPI_Irecv(in, 100, MPI_BYTE, left, 1, MPI_COMM_WORLD, &req[0]);
		MPI_Irecv(in + 1000, 100, MPI_BYTE, left, 1, MPI_COMM_WORLD, &req[1]);
		MPI_Isend(out, len, MPI_BYTE, right, 1, MPI_COMM_WORLD, &req[2]);
		MPI_Isend(out, 100, MPI_BYTE, right, 1, MPI_COMM_WORLD, &req[3]);
		rc = MPI_Wait(&req[0], &status);
		MPI_Error_class(rc, &class);
		CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
		CHECK(in[100] == 0xee && in[199] == 0xee, "written past the buffer");
		rc = MPI_Waitall(3, req + 1, MPI_STATUSES_IGNORE);
		CHECK(rc == MPI_SUCCESS, "%d", rc);
		util_check(in + 1000, 100, left);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Cancelled ones among many posted; one that matched is not cancelled. */
static void
cancel_some(void)
{
	MPI_Request req[50];
	MPI_Status status;
	int got[50], i, flag, n = 0, value = rank;

	for (i = 0; i < 50; i++)
		MPI_Irecv(&got[i], 1, MPI_INT, left, 3, MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < 50; i += 2) {
		MPI_Cancel(&req[i]);
		MPI_Wait(&req[i], &status);
		MPI_Test_cancelled(&status, &flag);
		CHECK(flag, "%d", i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < 25; i++, value += 100)
		MPI_Send(&value, 1, MPI_INT, right, 3, MPI_COMM_WORLD);
	for (i = 1; i < 50; i += 2)
		MPI_Wait(&req[i], MPI_STATUS_IGNORE);
	for (i = 1; i < 50; i += 2)
		CHECK(got[i] == left + 100 * n++, "%d is %d", i, got[i]);
	MPI_Irecv(&got[0], 1, MPI_INT, left, 4, MPI_COMM_WORLD, &req[0]);
	MPI_Send(&value, 1, MPI_INT, right, 4, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	while (MPI_Request_get_status(req[0], &flag, &status) == MPI_SUCCESS && !flag)
		;
	MPI_Cancel(&req[0]);
	MPI_Wait(&req[0], &status);
	MPI_Test_cancelled(&status, &flag);
	CHECK(!flag && got[0] == left + 2500, "%d", got[0]);
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	out = util_alloc(MAX);
	in = util_alloc(MAX);
	buffered();
	ready();
	matched();
	flood();
	some();
	persistent();
	truncated();
	cancel_some();
	if (rank == 0)
		printf("point ok\n");
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}

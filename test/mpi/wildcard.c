/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * wildcard.c - MPI_ANY_SOURCE and MPI_ANY_TAG keep the order of every sender
 */
#include "mpi_util.h"

enum { N = 400, MAX = 70000 };

static int
length(int from, int i)
{
	static const int lens[] = {4, 20, 100, 9000, 4, 64, 40000, 8, MAX, 12};

	return lens[(from + i) % 10];
}

int
main(int argc, char **argv)
{
	int rank, size, i, from, count, n_specific = 0;
	uint8_t *buf = malloc(MAX);
	MPI_Request *req;
	uint8_t **out;
	MPI_Status status;
	int *next;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	req = calloc(N, sizeof(*req));
	out = calloc(N, sizeof(*out));
	next = calloc(size, sizeof(*next));
	/* All send to rank 0, itself included. */
	for (i = 0; i < N; i++) {
		out[i] = util_alloc(length(rank, i));
		util_fill(out[i], length(rank, i), rank * N + i);
		memcpy(out[i], &i, sizeof(i));
		MPI_Isend(out[i], length(rank, i), MPI_BYTE, 0, i % 3, MPI_COMM_WORLD, &req[i]);
	}
	if (rank == 0) {
		for (i = 0; i < N * size; i++) {
			int want_source = MPI_ANY_SOURCE, want_tag = MPI_ANY_TAG, got;

			/* Now and then by name: the next one of some rank. */
			if (i % 5 == 4 && next[i % size] < N) {
				want_source = i % size;
				want_tag = next[i % size] % 3;
				n_specific++;
			}
			MPI_Recv(buf, MAX, MPI_BYTE, want_source, want_tag, MPI_COMM_WORLD, &status);
			from = status.MPI_SOURCE;
			memcpy(&got, buf, sizeof(got));
			CHECK(got == next[from], "message %d of rank %d, not %d", got, from, next[from]);
			CHECK(status.MPI_TAG == got % 3, "tag %d", status.MPI_TAG);
			MPI_Get_count(&status, MPI_BYTE, &count);
			CHECK(count == length(from, got), "length %d", count);
			memset(buf, 0, sizeof(got));
			{
				uint8_t *want = util_alloc(count);

				util_fill(want, count, from * N + got);
				CHECK(memcmp(want + 4, buf + 4, count - 4) == 0, "contents");
				free(want);
			}
			next[from]++;
		}
		printf("wildcard ok\n");
	}
	MPI_Waitall(N, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < N; i++)
		free(out[i]);
	free(out);
	free(req);
	free(next);
	free(buf);
	MPI_Finalize();
	return n_specific < 0;
}

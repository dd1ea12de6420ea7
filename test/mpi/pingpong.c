/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pingpong.c - every length there and back between each rank and its neighbour
 */
#include "mpi_util.h"

static const int lens[] = {0, 1, 7, 8, 64, 100, 1000, 4096, 8191, 8192, 8193, 16384, 32768, 65536,
	100000, 262144, 1048576, 4194307};

int
main(int argc, char **argv)
{
	uint8_t *buf = malloc(4194308);
	int rank, size, peer, n, i, turn, count;
	MPI_Status status;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	peer = rank ^ 1;
	if (size == 1 || peer >= size)
		peer = rank;
	for (i = 0; i < (int)(sizeof(lens) / sizeof(lens[0])); i++) {
		n = lens[i] < 10000 ? 100 : 5;
		for (turn = 0; turn < n; turn++) {
			if (peer == rank) {
				uint8_t *out = util_alloc(lens[i]);

				util_fill(out, lens[i], turn);
				MPI_Sendrecv(out, lens[i], MPI_BYTE, rank, i, buf, lens[i], MPI_BYTE, rank,
					i, MPI_COMM_WORLD, &status);
				util_check(buf, lens[i], turn);
				free(out);
				continue;
			}
			if (rank < peer) {
				util_fill(buf, lens[i], turn);
				MPI_Send(buf, lens[i], MPI_BYTE, peer, i, MPI_COMM_WORLD);
				memset(buf, 0, lens[i]);
			}
			MPI_Recv(buf, lens[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_BYTE, &count);
			CHECK(count == lens[i], "%d of %d", count, lens[i]);
			CHECK(status.MPI_SOURCE == peer && status.MPI_TAG == i, "from %d tag %d",
				status.MPI_SOURCE, status.MPI_TAG);
			util_check(buf, lens[i], turn);
			if (rank > peer)
				MPI_Send(buf, lens[i], MPI_BYTE, peer, i, MPI_COMM_WORLD);
		}
	}
	if (rank == 0)
		printf("pingpong ok\n");
	MPI_Finalize();
	free(buf);
	return 0;
}

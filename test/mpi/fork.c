/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fork.c - ranks that run other programs and fork in the middle of communication
 */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "mpi_util.h"

#define LEN	(1u << 20)
#define ROUNDS	5
#define N_LENS	4

static const int lens[N_LENS] = {8, 2000, 60000, LEN};
static uint8_t *out[N_LENS], *in[N_LENS];
static int rank, right, left;

static void
ends_well(pid_t pid)
{
	int status = -1;

	CHECK(pid > 0, "fork");
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(status == 0, "status %x", status);
}

static void
by_system(void)
{
	CHECK(system("true") == 0, "system");
}

static void
by_popen(void)
{
	char word[8] = "";
	FILE *f = popen("echo word", "r");

	CHECK(f != NULL && fgets(word, sizeof(word), f) != NULL && strcmp(word, "word\n") == 0, "popen");
	CHECK(pclose(f) == 0, "pclose");
}

static void
by_exec(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("true", "true", NULL);
		_exit(127);
	}
	ends_well(pid);
}

static void
by_end_at_once(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ends_well(pid);
}

/* With what runs at the exit: handlers and destructors of the MPI and of the library. */
static void
by_end(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(0);
	ends_well(pid);
}

static void (*const ways[])(void) = {by_system, by_popen, by_exec, by_end_at_once, by_end};

int
main(int argc, char **argv)
{
	MPI_Request req[2 * N_LENS];
	int size, sum, one = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	for (int i = 0; i < N_LENS; i++) {
		out[i] = util_alloc(lens[i]);
		in[i] = util_alloc(lens[i]);
	}
	for (unsigned round = 0; round < ROUNDS * sizeof(ways) / sizeof(ways[0]); round++) {
		for (int i = 0; i < N_LENS; i++) {
			util_fill(out[i], lens[i], rank + round);
			memset(in[i], 0, lens[i]);
			MPI_Irecv(in[i], lens[i], MPI_BYTE, left, i, MPI_COMM_WORLD, &req[2 * i]);
			MPI_Isend(out[i], lens[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &req[2 * i + 1]);
		}
		if ((round + rank) % 3 != 0) /* not all at the same time */
			ways[round % (sizeof(ways) / sizeof(ways[0]))]();
		MPI_Waitall(2 * N_LENS, req, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N_LENS; i++)
			util_check(in[i], lens[i], left + round);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		CHECK(sum == size, "%d of %d", sum, size);
	}
	for (int i = 0; i < N_LENS; i++) {
		free(out[i]);
		free(in[i]);
	}
	if (rank == 0)
		printf("fork ok\n");
	MPI_Finalize();
	return 0;
}

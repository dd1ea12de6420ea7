/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pairs.c - one rank of many: it meets the others at the hub of rank 0, which tells it the address
 * of its other side
 *
 * Design notes
 * - A rank knows its number from the environment; no MPI library is needed. Rank 0 forks: the
 *   parent is the hub, the child is a rank like all others.
 * - Rank i < n/2 is side A of a pair, rank i + n/2 is its side B, which listens for it at the
 *   address by which it reaches the hub.
 * - All sides A wait for the hub before and after each line, so that all pairs measure at once.
 */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pairs.h"

/* The first of these variables that is set, as a number below max. */
static bool
pairs_variable(const char *const *names, unsigned max, unsigned *out)
{
	for (; *names != NULL; names++) {
		const char *text = getenv(*names);
		unsigned long v;
		char *e;

		if (text == NULL)
			continue;
		errno = 0;
		v = strtoul(text, &e, 10);
		*out = (unsigned)v;
		return text[0] >= '0' && text[0] <= '9' && *e == '\0' && errno == 0 && v < max;
	}
	return false;
}

static int
pairs_find(struct pairs_job *job)
{
	static const char *const rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
	static const char *const n[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
	static const char *const local[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};

	if (!pairs_variable(rank, 2 * PAIRS_MAX, &job->rank) || !pairs_variable(n, 2 * PAIRS_MAX + 1, &job->n)) {
		fprintf(stderr, "commperf: --pairs runs under mpirun or srun, with at most %d ranks\n", 2 * PAIRS_MAX);
		return -EINVAL;
	}
	if (job->n < 2 || job->n % 2 != 0 || job->rank >= job->n) {
		fprintf(stderr, "commperf: --pairs takes an even number of ranks, and %u is rank %u\n", job->n, job->rank);
		return -EINVAL;
	}
	if (!pairs_variable(local, 2 * PAIRS_MAX, &job->local))
		job->local = job->rank;
	return 0;
}

/* Side B's listener, on the address of its socket to the hub. */
static int
pairs_listen(int hub, struct pairs_hello *hello)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char host[64];
	int fd, rc;

	if (getsockname(hub, (struct sockaddr *)&at, &len) != 0 ||
		getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
		return -EADDRNOTAVAIL;
	fd = chan_listener(host, "0", 1);
	if (fd < 0)
		return fd;
	len = sizeof(at);
	rc = getsockname(fd, (struct sockaddr *)&at, &len) != 0 ? -errno : 0;
	if (rc == 0 && getnameinfo((struct sockaddr *)&at, len, NULL, 0, hello->port, sizeof(hello->port),
			       NI_NUMERICSERV) != 0)
		rc = -EADDRNOTAVAIL;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Say hello, and wait until all ranks have. A launcher may start them one after the other. */
static int
pairs_meet(const struct perf_opts *o, const struct pairs_job *job, int hub, int *lfd, struct pairs_start *start)
{
	struct pairs_hello hello = {.magic = "commprf", .rank = job->rank, .n = job->n};
	void *data;
	size_t len;
	int rc = 0;

	if (job->rank >= job->n / 2)
		rc = *lfd = pairs_listen(hub, &hello);
	if (rc >= 0)
		rc = chan_send(hub, &hello, sizeof(hello), o->timeout);
	if (rc == 0)
		rc = chan_recv(NULL, hub, &data, &len, o->timeout * 2);
	if (rc != 0)
		return rc;
	rc = len == sizeof(*start) ? 0 : -EPROTO;
	if (rc == 0)
		memcpy(start, data, sizeof(*start));
	free(data);
	start->host[sizeof(start->host) - 1] = '\0';
	start->port[sizeof(start->port) - 1] = '\0';
	return rc;
}

static int
pairs_side(const struct perf_opts *given, const struct pairs_job *job, int hub, int lfd,
	const struct pairs_start *start)
{
	static struct perf_rows rows;
	struct perf_opts o = *given;
	struct perf_side s = {.o = &o, .rank = lfd >= 0, .rows = &rows, .out_fd = -1};
	int rc;

	o.progress = false;
	if (lfd >= 0) {
		s.ctl_fd = chan_accept(lfd, o.timeout);
	} else {
		snprintf(o.host, sizeof(o.host), "%s", start->host);
		snprintf(o.port, sizeof(o.port), "%s", start->port);
		s.ctl_fd = launch_dial(&o);
		s.out_fd = hub;
	}
	if (s.ctl_fd < 0)
		return 1;
	if (lfd >= 0 && launch_take_options(&o, s.ctl_fd) != 0)
		return 1;
	s.cpu = o.cpus[job->local % o.n_cpus];
	s.tsc_hz = place_tsc_hz();
	rc = run_side(&s);
	rows_free(&rows);
	return rc;
}

static int
pairs_member(const struct perf_opts *o, const struct pairs_job *job)
{
	struct pairs_start start = {.host = ""};
	int lfd = -1, hub = chan_connect(o->host, o->port, o->timeout, o->timeout), rc;

	if (hub < 0) {
		fprintf(stderr, "commperf: rank %u: %s:%s: %s\n", job->rank, o->host, o->port, strerror(-hub));
		return 1;
	}
	rc = pairs_meet(o, job, hub, &lfd, &start);
	if (rc < 0) {
		fprintf(stderr, "commperf: rank %u cannot connect to the other ranks: %s\n", job->rank, strerror(-rc));
		return 1;
	}
	rc = pairs_side(o, job, hub, lfd, &start);
	if (rc == 0 && lfd < 0)
		rc = chan_send(hub, "E", 1, o->timeout) != 0;
	if (lfd >= 0)
		close(lfd);
	close(hub); /* the hub sees its end */
	return rc;
}

/* Rank 0: the child is a rank, the parent the hub. */
static int
pairs_first(const struct perf_opts *o, const struct pairs_job *job, struct perf_rows *rows)
{
	int status, rc, lfd = chan_listener(o->host, o->port, (int)job->n);
	pid_t pid;

	if (lfd < 0) {
		fprintf(stderr, "commperf: %s:%s: %s\n", o->host, o->port, strerror(-lfd));
		return 1;
	}
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("commperf: fork");
		return 1;
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		perf_stop_is_for_parent();
		close(lfd);
		rc = pairs_member(o, job);
		fflush(NULL);
		_exit(rc);
	}
	rc = hub_run(o, job, lfd, rows);
	if (rc != 0)
		kill(pid, SIGKILL);
	TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	return rc != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int
pairs_run(const struct perf_opts *o, struct perf_rows *rows)
{
	struct pairs_job job;

	if (pairs_find(&job) != 0)
		return 2;
	if (job.rank != 0) {
		perf_stop_is_for_parent();
		return pairs_member(o, &job);
	}
	if (report_check(o) != 0)
		return 2;
	return pairs_first(o, &job, rows);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mem.c - costs of a process: the time to a first worker, the memory of an ep
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "perf.h"

#define MEM_STARTUP_RUNS 5

struct mem_startup {
	double eal_us;
	double context_us;
	double worker_us;
	double rss_kib;
	double huge_kib;
};

static uint64_t
mem_huge(void)
{
	return place_memory("Private_Hugetlb:") + place_memory("Shared_Hugetlb:");
}

static int
startup_child(const struct perf_opts *o, double tsc_hz, int fd)
{
	static struct perf_side s;
	struct mem_startup m = {0};
	uint64_t start;

	s.o = o;
	s.ctl_fd = -1;
	s.out_fd = -1;
	s.tsc_hz = tsc_hz;
	s.be = &perf_backend_ucp;
	s.cpu = o->cpus[0];
	if (o->bind && place_pin(s.cpu) != 0)
		return perf_fail(&s, "cannot run on core %d", s.cpu);
	start = rte_rdtsc();
	if (o->eal && place_eal_init(o, s.cpu) != 0)
		return perf_fail(&s, "the EAL does not start");
	m.eal_us = o->eal ? perf_ns(&s, rte_rdtsc() - start) / 1e3 : 0;
	if (s.be->open(&s) != 0)
		return -1;
	m.context_us = perf_ns(&s, s.context_ticks) / 1e3;
	m.worker_us = perf_ns(&s, s.worker_ticks) / 1e3;
	m.rss_kib = (double)place_memory("Rss:") / 1024;
	m.huge_kib = (double)mem_huge() / 1024;
	if (write(fd, &m, sizeof(m)) != (ssize_t)sizeof(m))
		return -1;
	s.be->close(&s);
	return 0;
}

/* A fresh process each time; it is killed after the timeout. */
static int
startup_once(const struct perf_opts *o, double tsc_hz, struct mem_startup *m)
{
	int fd[2], status = 0;
	pid_t pid;
	ssize_t n;

	if (pipe(fd) != 0)
		return -errno;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		perf_stop_is_for_parent();
		alarm((unsigned)o->timeout + 1);
		status = startup_child(o, tsc_hz, fd[1]);
		fflush(NULL);
		_exit(status != 0);
	}
	close(fd[1]);
	n = pid > 0 ? TEMP_FAILURE_RETRY(read(fd[0], m, sizeof(*m))) : -1;
	close(fd[0]);
	if (pid > 0)
		TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	if (n == (ssize_t)sizeof(*m) && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (pid > 0 && WIFSIGNALED(status))
		fprintf(stderr, "commperf: startup: the process died: %s\n",
			strsignal(WTERMSIG(status)));
	return -EIO;
}

int
startup_run(const struct perf_opts *o, double tsc_hz, struct perf_rows *rows)
{
	unsigned runs = o->repeat > 1 ? o->repeat : MEM_STARTUP_RUNS;
	size_t first = rows->n;
	struct mem_startup m;

	for (unsigned i = 0; i < runs; i++) {
		struct perf_row row = {.n = 1, .test = "startup", .unit = "us"};

		report_progress(o, "startup, run %u of %u", i + 1, runs);
		if (startup_once(o, tsc_hz, &m) != 0)
			return -EIO;
		if (perf_stopped() != 0)
			break;
		row.value = m.eal_us + m.context_us + m.worker_us;
		perf_row_field(&row, "total", row.value);
		perf_row_field(&row, "eal", m.eal_us);
		perf_row_field(&row, "context", m.context_us);
		perf_row_field(&row, "worker", m.worker_us);
		perf_row_field(&row, "rss KiB", m.rss_kib);
		perf_row_field(&row, "huge KiB", m.huge_kib);
		if (rows_add(rows, &row) == NULL)
			return -ENOMEM;
	}
	if (rows->n == first)
		return -EINTR;
	runs = (unsigned)(rows->n - first);
	rows_reduce(rows, first, o->pick_best);
	rows->row[first].n = runs;
	snprintf(rows->library, sizeof(rows->library), "%s %s", perf_backend_ucp.name,
		perf_backend_ucp.version());
	report_head(o, rows->library);
	report_row(o, &rows->row[first]);
	return 0;
}

/* ---- the memory of an ep ---- */

struct mem_use {
	double rss;
	double huge;
	double dpdk;   /* in use of the EAL's heaps, if we started it */
	double malloc; /* in use of the C library's heap */
	double poll_ns; /* a turn that finds nothing */
};

#define MEM_POLLS 2000

/* The fastest of a few, as others share the cores. */
static double
mem_poll_ns(struct perf_side *s)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 10; round++) {
		uint64_t start = rte_rdtsc();

		for (int i = 0; i < MEM_POLLS; i++)
			s->be->progress(s);
		best = RTE_MIN(best, rte_rdtsc() - start);
	}
	return perf_ns(s, best) / MEM_POLLS;
}

static struct mem_use
mem_use(struct perf_side *s)
{
	struct mem_use u = {.rss = (double)place_memory("Rss:"), .huge = (double)mem_huge()};
	struct rte_malloc_socket_stats stats;
	struct mallinfo2 mi = mallinfo2();

	u.malloc = (double)mi.uordblks + (double)mi.hblkhd;
	u.poll_ns = mem_poll_ns(s);
	for (int i = 0; s->o->eal && i < 8; i++) {
		if (rte_malloc_get_socket_stats(i, &stats) == 0)
			u.dpdk += (double)stats.heap_allocsz_bytes;
	}
	return u;
}

static int
ep_mem_rows(struct perf_side *s, const struct perf_test *t, const char *label,
	const struct mem_use *from, const struct mem_use *to)
{
	struct perf_row *row = perf_row_new(s, t, 0);
	double n = s->o->eps;

	if (row == NULL)
		return perf_fail(s, "out of memory");
	snprintf(row->label, sizeof(row->label), "%s", label);
	snprintf(row->unit, sizeof(row->unit), "B/ep");
	row->n = s->o->eps;
	row->value = (to->rss - from->rss + to->huge - from->huge) / n;
	perf_row_field(row, "B/ep", row->value);
	perf_row_field(row, "rss", (to->rss - from->rss) / n);
	perf_row_field(row, "huge", (to->huge - from->huge) / n);
	perf_row_field(row, "malloc", (to->malloc - from->malloc) / n);
	perf_row_field(row, "dpdk", (to->dpdk - from->dpdk) / n);
	perf_row_field(row, "poll", to->poll_ns);
	perf_row_field(row, "poll 1", from->poll_ns);
	return 0;
}

/* Rank 1: take one message from every ep. */
static int
ep_mem_peer(struct perf_side *s)
{
	struct perf_io io;

	if (perf_barrier(s) != 0)
		return -1;
	for (unsigned i = 0; i < s->o->eps; i++) {
		if (s->be->recv(s, &io, s->rbuf, 8, PERF_TAG + i, UINT64_MAX) != 0 ||
			perf_wait(s, &io) != 0)
			return -1;
	}
	return perf_barrier(s);
}

static int
ep_mem_use(struct perf_side *s)
{
	struct perf_io io;

	for (unsigned i = 0; i < s->o->eps; i++) {
		if (s->be->eps_use(s, i, &io, PERF_TAG + i) != 0 || perf_wait(s, &io) != 0)
			return -1;
		if ((i & 0x3f) == 0)
			perf_alive(s);
	}
	return 0;
}

/* As many eps to ourselves; no message is sent. */
static int
ep_mem_self(struct perf_side *s, const struct perf_test *t)
{
	struct mem_use before, idle;
	void *peer = s->peer_addr, *own;
	size_t len;
	int rc;

	if (s->be->address(s, &own, &len) != 0)
		return -1;
	malloc_trim(0); /* otherwise these reuse freed memory */
	before = mem_use(s);
	s->peer_addr = own;
	rc = s->be->eps_create(s, s->o->eps);
	s->peer_addr = peer;
	idle = mem_use(s);
	free(own);
	if (rc != 0 || ep_mem_rows(s, t, "self", &before, &idle) != 0)
		return -1;
	return s->be->eps_close(s);
}

int
ep_mem_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	struct mem_use before, idle, used;

	(void)size;
	if (s->rank == 1)
		return ep_mem_peer(s);
	before = mem_use(s);
	if (s->be->eps_create(s, s->o->eps) != 0)
		return -1;
	idle = mem_use(s);
	if (perf_barrier(s) != 0 || ep_mem_use(s) != 0 || perf_barrier(s) != 0)
		return -1;
	used = mem_use(s);
	if (ep_mem_rows(s, t, "idle", &before, &idle) != 0 ||
		ep_mem_rows(s, t, "used", &before, &used) != 0)
		return -1;
	if (s->be->eps_close(s) != 0)
		return -1;
	return ep_mem_self(s, t);
}

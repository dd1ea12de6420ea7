/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * start_test.c - the first ucp_init and worker of a process: what they ask of the system, and how long they take
 *
 * usage: start_test LIBUCP
 *
 * Design notes
 * - Each start is of a process of its own, which loads the library first. System calls are counted by
 *   ptrace(2), of the thread that starts. Their number does not depend on what else runs.
 * - Times do. The shortest of some starts is compared with that of UCX, where it is installed.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include <ucp/api/ucp.h>

#include "plx_unit.h"

#define MARK   0x706c78 /* of a call of getpgid(), which fails: begin and end */
#define STARTS 9
#define LATE_NS 2000000 /* more than UCX */
#define SLOW_NS 25000000 /* five times its start on an idle machine */
#define UCX    "libucp.so.0"

/* Of a start, without what each core or NUMA node adds. */
#define CALLS_MAX    125
#define OPENS_MAX    13
#define CALLS_A_CORE 16
#define OPENS_A_CORE 1
#define THREADS_MAX  1 /* that peers introduce themselves to */
#define SLEEPS_MAX   1 /* to measure the clock, where no time has passed since the library was loaded */

static const char *library;

struct start {
	unsigned calls, opens, threads, sleeps, failed;
};

static void
mark(void)
{
	(void)syscall(SYS_getpgid, MARK);
}

static bool
is_mark(const struct ptrace_syscall_info *s)
{
	return s->entry.nr == SYS_getpgid && s->entry.args[0] == MARK;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* In a process of its own. @return how long it took, or 0 */
static uint64_t
start(const char *path)
{
	ucs_status_t (*init)(unsigned major, unsigned minor, const ucp_params_t *params,
		const ucp_config_t *config, ucp_context_h *out);
	ucs_status_t (*create)(ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker);
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t worker_params = {0};
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ucp_context_h context;
	ucp_worker_h worker;
	uint64_t ns;

	if (lib == NULL)
		return 0;
	*(void **)&init = dlsym(lib, "ucp_init_version");
	*(void **)&create = dlsym(lib, "ucp_worker_create");
	mark();
	ns = now_ns();
	/* 1.10: what both libraries have */
	if (init(1, 10, &params, NULL, &context) != UCS_OK || create(context, &worker_params, &worker) != UCS_OK)
		return 0;
	ns = now_ns() - ns;
	mark();
	return ns;
}

static void
count(struct start *s, uint64_t nr)
{
	s->calls++;
	s->opens += nr == SYS_openat;
	s->threads += nr == SYS_clone || nr == SYS_clone3;
	s->sleeps += nr == SYS_nanosleep || nr == SYS_clock_nanosleep;
}

/* To its end; what lies between two marks is counted. @return its status */
static int
trace(pid_t pid, struct start *s)
{
	unsigned marks = 0;
	int status, sig = 0;

	while (ptrace(PTRACE_SYSCALL, pid, NULL, sig) == 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		struct ptrace_syscall_info info;

		sig = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (sig != 0 || ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
			info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (is_mark(&info))
			marks++;
		else if (marks == 1)
			count(s, info.entry.nr);
	}
	return marks == 2 ? status : -1;
}

/* @return false: nobody may be traced here */
static bool
count_start(struct start *s)
{
	int status;
	pid_t pid = fork();

	UNIT_TRUE_FATAL(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(77);
		raise(SIGSTOP);
		_exit(start(library) == 0);
	}
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return false;
	UNIT_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	UNIT_EQ(trace(pid, s), 0);
	return true;
}

static void
a_start_asks_little_of_the_system(void)
{
	unsigned cores = sysconf(_SC_NPROCESSORS_CONF);
	struct start s = {0};

	if (!count_start(&s))
		return;
	printf("%u system calls, %u files opened, %u threads, %u sleeps; %u cores\n", s.calls, s.opens, s.threads,
		s.sleeps, cores);
	UNIT_TRUE(s.calls <= CALLS_MAX + CALLS_A_CORE * cores);
	UNIT_TRUE(s.opens <= OPENS_MAX + OPENS_A_CORE * cores);
	UNIT_TRUE(s.threads <= THREADS_MAX);
	UNIT_TRUE(s.sleeps <= SLEEPS_MAX);
}

/* @return of a process of its own, 0 where it does not start */
static uint64_t
time_start(const char *path)
{
	uint64_t ns = 0;
	int fds[2];
	pid_t pid;

	UNIT_EQ(pipe(fds), 0);
	pid = fork();
	UNIT_TRUE_FATAL(pid >= 0);
	if (pid == 0) {
		ns = start(path);
		_exit(write(fds[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	close(fds[1]);
	if (read(fds[0], &ns, sizeof(ns)) != sizeof(ns))
		ns = 0;
	close(fds[0]);
	UNIT_EQ(waitpid(pid, NULL, 0), pid);
	return ns;
}

static uint64_t
least_of(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static void
a_start_takes_no_longer_than_that_of_ucx(void)
{
	uint64_t ours = 0, ucx = 0;

	for (unsigned i = 0; i < STARTS; i++) {
		ours = least_of(ours, time_start(library));
		ucx = least_of(ucx, time_start(UCX));
	}
	UNIT_TRUE(ours != 0);
	printf("%.1f ms, UCX %.1f ms\n", ours / 1e6, ucx / 1e6);
	if (ucx > SLOW_NS)
		printf("# skipped: where UCX takes so long, a processor is emulated\n");
	else if (ucx != 0)
		UNIT_TRUE(ours <= ucx + LATE_NS);
}

int
main(int argc, char **argv)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(a_start_asks_little_of_the_system),
		UNIT_TEST(a_start_takes_no_longer_than_that_of_ucx),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"start", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	if (argc != 2) {
		fprintf(stderr, "usage: start_test LIBUCP\n");
		return 2;
	}
	library = argv[1];
	return unit_run(suites);
}

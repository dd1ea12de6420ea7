/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * eal.c - an EAL for processes without one
 *
 * Design notes
 * - The EAL gets no huge pages of its own: pools are in an external heap (lib/mem) that continues
 *   with 4 KiB pages when huge ones run out, which the EAL can't. It keeps no shared files, scans
 *   no bus, opens no telemetry socket, and the calling thread keeps its CPU affinity, the process
 *   its limits.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "init_int.h"
#include "plx_fork.h"
#include "plx_mem.h"

PLX_LOG_DEFINE(init, "plx.init");

#define ARGS_MAX 24
#define LIST_MAX 4096

/* Append to a list of text. @return 0, or -ENOSPC */
static int
append(char *list, const char *fmt, unsigned a, unsigned b)
{
	size_t used = strlen(list);
	int n = snprintf(list + used, LIST_MAX - used, fmt, a, b);

	return n < 0 || (size_t)n >= LIST_MAX - used ? -ENOSPC : 0;
}

/* "127@(0-1),2@2": the caller on its cores, each reactor on its own. */
static int
lcore_list(char *list, unsigned main_lcore, const cpu_set_t *set, const unsigned *lcores, int n)
{
	bool first = true;
	int rc;

	list[0] = '\0';
	rc = append(list, "%u@(", main_lcore, 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && rc == 0; cpu++) {
		unsigned last = cpu;

		if (!CPU_ISSET(cpu, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		rc = append(list, first ? "%u-%u" : ",%u-%u", cpu, last);
		first = false;
		cpu = last;
	}
	if (rc == 0)
		rc = append(list, ")", 0, 0);
	for (int i = 0; i < n && rc == 0; i++)
		rc = append(list, ",%u@%u", lcores[i], lcores[i]);
	return rc;
}

static unsigned
free_lcore(const unsigned *lcores, int n)
{
	unsigned id = RTE_MAX_LCORE - 1;

	for (int i = 0; i < n; i++)
		if (lcores[i] == id)
			return free_lcore(lcores, i) - 1;
	return id;
}

/*
 * The EAL's own choice is 4 GiB, where OpenSHMEM's symmetric heap is (Open MPI asks for it
 * at 0xff000000, fixed). 256 GiB does not collide.
 */
#define BASE_VA "0x4000000000"

#define PREFIX "pollux_" /* of the EAL's folder; then the pid */

/* Folders of processes that were killed during their start. Only empty ones are removed,
 * and nobody needs those. */
static void
remove_dirs_of_dead(const char *parent)
{
	struct dirent *e;
	DIR *d = opendir(parent);
	int pid, len;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (sscanf(e->d_name, PREFIX "%d%n", &pid, &len) != 1 || e->d_name[len] != '\0')
			continue;
		if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d != NULL)
		closedir(d);
}

/* The EAL makes an empty folder even without shared files. */
static void
remove_runtime_dir(void)
{
	const char *dir = rte_eal_get_runtime_dir();
	char parent[PATH_MAX];

	if (dir == NULL || dir[0] == '\0')
		return; /* the drop-in's makes none */
	(void)rmdir(dir);
	snprintf(parent, sizeof(parent), "%s", dir);
	remove_dirs_of_dead(dirname(parent));
}

/*
 * The application's signals are not for the threads of the EAL, reactors included: a
 * program that waits for one with sigwait() blocks it in its own threads only. Faults and
 * profiling signals stay enabled.
 */
static int
eal_init(int n_args, char **args)
{
	static const int theirs[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
	sigset_t set, before;
	struct rlimit files;
	bool limited = getrlimit(RLIMIT_NOFILE, &files) == 0;
	int rc;

	sigfillset(&set);
	for (unsigned i = 0; i < RTE_DIM(theirs); i++)
		sigdelset(&set, theirs[i]);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	rc = rte_eal_init(n_args, args);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* The EAL raises it; but a program's select() relies on it, and its children inherit it. */
	if (limited)
		(void)setrlimit(RLIMIT_NOFILE, &files);
	return rc;
}

bool init_has_files;
static pid_t files_pid;

/* The telemetry socket in it is gone by then: the EAL removes it at exit, before this. */
static void
remove_files(void)
{
	if (getpid() == files_pid)
		(void)rmdir(rte_eal_get_runtime_dir());
}

static void
want_files(void)
{
	init_has_files = true;
	files_pid = getpid();
	if (atexit(remove_files) != 0)
		PLX_LOG(WARNING, init, "the folder of the telemetry socket will stay");
}

static int
start(const struct plx_conf *conf, const cpu_set_t *set, const unsigned *lcores, int n)
{
	char mem[32], list[LIST_MAX], prefix[32], main_text[16];
	unsigned main_lcore = free_lcore(lcores, n);
	char *args[ARGS_MAX];
	int n_args = 0, rc;

	rc = lcore_list(list, main_lcore, set, lcores, n);
	if (rc != 0)
		return rc;
	snprintf(mem, sizeof(mem), "%llu",
		(unsigned long long)(plx_conf_u64(conf, PLX_CONF_EAL_MEM) >> 20));
	snprintf(prefix, sizeof(prefix), PREFIX "%d", getpid());
	snprintf(main_text, sizeof(main_text), "%u", main_lcore);
	args[n_args++] = (char *)"pollux";
	args[n_args++] = (char *)"--no-huge";
	args[n_args++] = (char *)"-m";
	args[n_args++] = mem;
	args[n_args++] = (char *)"--no-shconf";
	args[n_args++] = (char *)"--no-pci";
	if (plx_conf_u64(conf, PLX_CONF_EAL_TELEMETRY))
		want_files();
	else
		args[n_args++] = (char *)"--no-telemetry";
	args[n_args++] = (char *)"--iova-mode=va";
	args[n_args++] = (char *)"--base-virtaddr=" BASE_VA;
	args[n_args++] = (char *)"--log-level=*:3";
	args[n_args++] = (char *)"--file-prefix";
	args[n_args++] = prefix;
	args[n_args++] = (char *)"--main-lcore";
	args[n_args++] = main_text;
	args[n_args++] = (char *)"--lcores";
	args[n_args++] = list;
	args[n_args] = NULL;
	if (plx_mem_too_long(plx_conf_u64(conf, PLX_CONF_EAL_MEM)))
		return -EFBIG;
	rc = eal_init(n_args, args);
	remove_runtime_dir();
	return rc >= 0 ? 0 : rte_errno > 0 ? -rte_errno : -EIO;
}

int
init_eal_may_start(const char **refused)
{
	cpu_set_t set;
	int fd;

	*refused = "sched_setaffinity";
	if (sched_getaffinity(0, sizeof(set), &set) != 0 || sched_setaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	*refused = "timerfd_create";
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static bool eal_is_ours;

bool
init_eal_is_programs(void)
{
	return !eal_is_ours && !plx_fork_eal;
}

int
init_eal(const struct plx_conf *conf, const unsigned *lcores, int n_lcores)
{
	const char *refused;
	cpu_set_t set;
	int rc;

	if (rte_lcore_count() != 0) /* the application's, an earlier one of ours, or the parent's */
		return 0;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	rc = init_eal_may_start(&refused);
	if (rc != 0) {
		PLX_LOG(ERR, init, "the system refuses %s(2), which the EAL needs to start: %s", refused,
			strerror(-rc));
		return rc;
	}
	rc = start(conf, &set, lcores, n_lcores);
	eal_is_ours = true;
	/* Restore the caller's affinity, whatever the EAL did. */
	sched_setaffinity(0, sizeof(set), &set);
	if (rc != 0)
		PLX_LOG(ERR, init, "EAL did not start: %s", strerror(-rc));
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * init_test.c - lists of cores, and a start that is counted
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "init_int.h"
#include "plx_init.h"
#include "plx_mem.h"
#include "plx_reactor.h"
#include "plx_unit.h"

static void
core_lists_are_read_as_written(void)
{
	const struct {
		const char *text;
		int n;
		unsigned first, last;
	} good[] = {
		{"", 0, 0, 0}, {"lcore:", 0, 0, 0}, {"lcore:1", 1, 1, 1}, {"0", 1, 0, 0},
		{"1,3-5", 4, 1, 5}, {"lcore:3-3,1", 2, 3, 1}, {"0-63", 64, 0, 63},
		{"007", 1, 7, 7},
	};
	unsigned lcores[PLX_INIT_LCORES_MAX];

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int n = plx_init_parse_lcores(good[i].text, lcores);

		UNIT_EQ_FATAL(n, good[i].n);
		if (n == 0)
			continue;
		UNIT_EQ(lcores[0], good[i].first);
		UNIT_EQ(lcores[n - 1], good[i].last);
	}
}

static void
other_text_is_no_core_list(void)
{
	const char *const bad[] = {"x", "lcore", "lcore:x", "1,", ",1", "1,,2", "1-", "-1", "2-1",
		"1 2", "1;2", "1-2-3", "0-64", "99999999999999999999", "1,99999999999999999999",
		"4294967296", "lcore:lcore:1", "0x1", "1\n", "+1", "1,-2"};
	unsigned lcores[PLX_INIT_LCORES_MAX];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!UNIT_EQ(plx_init_parse_lcores(bad[i], lcores), -EINVAL))
			printf("\"%s\"\n", bad[i]);
}

static struct plx_conf conf;

static void
a_bad_core_list_does_not_start(void)
{
	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "log.level", "emergency", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_conf_set(&conf, "reactor.lcores", "1-", PLX_CONF_FROM_API, NULL), 0);
	UNIT_EQ(plx_init_get(&conf), -EINVAL);
	UNIT_EQ(rte_lcore_count(), 0);
}

/* The number of a process that has ended. */
static pid_t
dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

/* As one leaves it that is killed during its start. */
static void
the_first_start_removes_the_folders_of_the_dead(void)
{
	const char *parent = geteuid() == 0 ? "/var/run/dpdk" : "/tmp/dpdk";
	char dir[64];

	unsetenv("XDG_RUNTIME_DIR");
	mkdir(parent, 0700);
	snprintf(dir, sizeof(dir), "%s/pollux_%d", parent, (int)dead_pid());
	UNIT_EQ_FATAL(mkdir(dir, 0700), 0);
	plx_conf_set(&conf, "reactor.lcores", "0", PLX_CONF_FROM_RPC, NULL);
	UNIT_EQ_FATAL(plx_init_get(&conf), 0);
	plx_init_put();
	UNIT_EQ(rmdir(dir), -1);
	UNIT_EQ(errno, ENOENT);
}

static void
the_start_is_counted_and_the_last_one_stops_the_reactors(void)
{
	plx_conf_set(&conf, "reactor.lcores", "0", PLX_CONF_FROM_RPC, NULL);
	UNIT_EQ_FATAL(plx_init_get(&conf), 0);
	UNIT_EQ(rte_lcore_count(), 2); /* the caller's, and the reactor's */
	UNIT_EQ(plx_reactor_count(), 1);
	UNIT_EQ_FATAL(plx_init_get(&conf), 0);
	UNIT_EQ(plx_reactor_count(), 1);
	plx_init_put();
	UNIT_EQ(plx_reactor_count(), 1);
	plx_init_put();
	UNIT_EQ(plx_reactor_count(), 0);
	UNIT_EQ_FATAL(plx_init_get(&conf), 0); /* the EAL is still there */
	UNIT_EQ(plx_reactor_count(), 1);
	plx_init_put();
	UNIT_EQ(plx_reactor_count(), 0);
}

/* Process-wide, with its default action, which would be the end. */
static void
a_signal_waits_for_who_asks_for_it(void)
{
	const struct timespec patience = {.tv_sec = 10};
	sigset_t set, before;

	UNIT_TRUE_FATAL(rte_lcore_count() > 1); /* the EAL began when it was not blocked */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	UNIT_EQ(kill(getpid(), SIGUSR2), 0);
	UNIT_EQ(sigtimedwait(&set, NULL, &patience), SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The EAL ended in the middle of its start, with a word of its own. */
static void
a_refused_system_call_is_named(void)
{
	static const struct {
		const char *name;
		int nr;
	} calls[] = {{"sched_setaffinity", SYS_sched_setaffinity}, {"timerfd_create", SYS_timerfd_create}};
	const char *refused;

	UNIT_EQ(init_eal_may_start(&refused), 0);
	for (unsigned i = 0; i < RTE_DIM(calls); i++) {
		int st = -1;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			struct sock_filter code[] = {
				BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].nr, 0, 1),
				BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
				BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
			};
			struct sock_fprog prog = {RTE_DIM(code), code};

			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
				prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
				_exit(77);
			_exit(init_eal_may_start(&refused) == -EPERM && strcmp(refused, calls[i].name) == 0 ? 0 : 1);
		}
		CU_ASSERT_FATAL(pid > 0 && waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		UNIT_TRUE(WEXITSTATUS(st) == 0 || WEXITSTATUS(st) == 77);
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(core_lists_are_read_as_written),
	UNIT_TEST(other_text_is_no_core_list),
	UNIT_TEST(a_bad_core_list_does_not_start),
	UNIT_TEST(the_first_start_removes_the_folders_of_the_dead),
	UNIT_TEST(the_start_is_counted_and_the_last_one_stops_the_reactors),
	UNIT_TEST(a_signal_waits_for_who_asks_for_it),
	UNIT_TEST(a_refused_system_call_is_named),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"init", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}

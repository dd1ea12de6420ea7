/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dropin_test.c - what the drop-in libraries do with the EAL of their own
 *
 * usage: dropin_test LIBUCP LIBCCI
 * clock_gettime() is wrapped (--wrap of the linker). The libraries find nanosleep() here, before that
 * of libc: programs come first.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_config.h>

#include <cci.h>
#include <ucp/api/ucp.h>

#include "plx_unit.h"

#define LOOKS	 20
#define NO_START 255
#define NAP_NS	 100000000u /* of the EAL, to measure the clock */
#define OURS_NS	 1000000u
#define EAL_SAYS 12345u
#define BUFFER	 (1u << 20)
#define BUFFER_PAGES ((long)(BUFFER / 4096))

static const char *const *libraries;
static bool no_clock;
static unsigned n_asked, n_naps, n_cores_asked, n_folders;

extern bool init_has_files; /* of lib/init */

uint64_t __wrap_get_tsc_freq(void);
uint64_t __real_get_tsc_freq(void);
int __wrap_eal_cpu_detected(unsigned lcore);
int __real_eal_cpu_detected(unsigned lcore);
unsigned __wrap_eal_cpu_socket_id(unsigned lcore);
unsigned __real_eal_cpu_socket_id(unsigned lcore);
int __wrap_eal_create_runtime_dir(void);
int __real_eal_create_runtime_dir(void);
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int
__wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	return no_clock ? -1 : __real_clock_gettime(id, t);
}

uint64_t
__real_get_tsc_freq(void)
{
	n_asked++;
	return EAL_SAYS;
}

int
__real_eal_cpu_detected(unsigned lcore)
{
	(void)lcore;
	n_cores_asked++;
	return 1;
}

unsigned
__real_eal_cpu_socket_id(unsigned lcore)
{
	(void)lcore;
	n_cores_asked++;
	return 1;
}

int
__real_eal_create_runtime_dir(void)
{
	n_folders++;
	return 0;
}

int
nanosleep(const struct timespec *t, struct timespec *left)
{
	n_naps += t->tv_sec > 0 || t->tv_nsec >= NAP_NS;
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
	return errno == 0 ? 0 : -1;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	__real_clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
the_clock_is_measured_well(void)
{
	double worst = 1;

	n_asked = 0;
	/* where others run the best of some is looked at */
	for (unsigned i = 0; i < LOOKS && worst > 1e-3; i++) {
		uint64_t ns = now_ns(), ticks = rte_rdtsc(), hz = __wrap_get_tsc_freq();
		double same;

		usleep(30000);
		ticks = rte_rdtsc() - ticks;
		same = (double)hz * (double)(now_ns() - ns) / 1e9 / (double)ticks;
		worst = same > 1 ? same - 1 : 1 - same;
	}
	UNIT_TRUE(worst <= 1e-3);
	UNIT_EQ(n_asked, 0);
}

static void
cores_that_are_not_there_are_not_looked_for(void)
{
	UNIT_EQ(__wrap_eal_cpu_detected(RTE_MAX_LCORE * 1000), 0);
	UNIT_EQ(__wrap_eal_cpu_socket_id(RTE_MAX_LCORE * 1000), 0);
	UNIT_EQ(n_cores_asked, 0);
}

static void
a_folder_is_made_for_the_telemetry_socket_only(void)
{
	CU_ASSERT_EQUAL(__wrap_eal_create_runtime_dir(), 0);
	CU_ASSERT_EQUAL(n_folders, 0);
	init_has_files = true;
	CU_ASSERT_EQUAL(__wrap_eal_create_runtime_dir(), 0);
	CU_ASSERT_EQUAL(n_folders, 1);
	init_has_files = false;
}

static void
every_core_that_may_be_used_is_there(void)
{
	cpu_set_t set;
	unsigned cores = 0;

	UNIT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) {
			UNIT_EQ(__wrap_eal_cpu_detected(i), 1);
			UNIT_EQ(__wrap_eal_cpu_socket_id(i), 1);
			cores++;
		}
	UNIT_EQ(n_cores_asked, 2 * cores);
}

static void
on_alarm(int sig)
{
	(void)sig;
}

static void
the_clock_is_measured_as_long_through_signals(void)
{
	const struct sigaction act = {.sa_handler = on_alarm};
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction before;
	uint64_t ns;

	sigaction(SIGALRM, &act, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	ns = now_ns();
	UNIT_TRUE(__wrap_get_tsc_freq() != 0);
	ns = now_ns() - ns;
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	UNIT_TRUE(ns >= OURS_NS);
}

static void
without_a_clock_the_eal_measures(void)
{
	n_asked = 0;
	no_clock = true;
	UNIT_EQ(__wrap_get_tsc_freq(), EAL_SAYS);
	no_clock = false;
	UNIT_EQ(n_asked, 1);
}

/* In a process of its own. */
static int
start_ucp(void *lib)
{
	ucs_status_t (*init)(unsigned major, unsigned minor, const ucp_params_t *params,
		const ucp_config_t *config, ucp_context_h *out);
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_context_h context;

	*(void **)&init = dlsym(lib, "ucp_init_version");
	return init != NULL && init(UCP_API_MAJOR, UCP_API_MINOR, &params, NULL, &context) == UCS_OK;
}

static int
start_cci(void *lib)
{
	int (*init)(uint32_t abi, uint32_t flags, uint32_t *caps);
	uint32_t caps;

	*(void **)&init = dlsym(lib, "cci_init");
	return init != NULL && init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS;
}

/* Two buffers of 1 MiB, as MPICH's of an accumulate. @return pages that were faulted in */
static long
buffers_come_and_go(void)
{
	struct rusage before, after;
	void *volatile a, *volatile b;

	getrusage(RUSAGE_SELF, &before);
	a = malloc(BUFFER);
	b = malloc(BUFFER);
	if (a == NULL || b == NULL)
		return BUFFER;
	explicit_bzero(a, BUFFER); /* memset() is left out before free() */
	explicit_bzero(b, BUFFER);
	free(a);
	free(b);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt;
}

/* @return whether the heap keeps the memory of buffers */
static int
keeps_heap(void *lib)
{
	if (!start_ucp(lib))
		return 0;
	buffers_come_and_go(); /* the heap grows */
	return buffers_come_and_go() < BUFFER_PAGES;
}

static int
keeps_heap_unless_told(void *lib)
{
	return setenv("PLX_HEAP_KEEP", "0", 1) == 0 && !keeps_heap(lib);
}

static int
keeps_heap_unless_set(void *lib)
{
	return mallopt(M_TRIM_THRESHOLD, 128 << 10) == 1 && !keeps_heap(lib);
}

/* In a process of its own. @return how often it napped for so long that a clock can be measured */
static unsigned
naps_of(const char *path, int (*start)(void *lib))
{
	int status;
	pid_t pid = fork();

	UNIT_TRUE_FATAL(pid >= 0);
	if (pid == 0) {
		void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		_exit(lib != NULL && start(lib) ? (int)n_naps : NO_START);
	}
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_TRUE_FATAL(WIFEXITED(status) && WEXITSTATUS(status) != NO_START);
	return WEXITSTATUS(status);
}

/* As the EAL does where it is left alone. */
static int
nap(void *lib)
{
	int (*sleeps)(const struct timespec *, struct timespec *);

	(void)lib;
	*(void **)&sleeps = dlsym(RTLD_DEFAULT, "nanosleep");
	return sleeps(&(struct timespec){.tv_nsec = NAP_NS}, NULL) == 0;
}

static void
a_start_does_not_wait_for_the_eal_to_measure_the_clock(void)
{
	UNIT_EQ(naps_of(libraries[0], nap), 1);
	UNIT_EQ(naps_of(libraries[0], start_ucp), 0);
	UNIT_EQ(naps_of(libraries[1], start_cci), 0);
}

static void
freed_buffers_are_not_faulted_in_anew(void)
{
	UNIT_EQ(naps_of(libraries[0], keeps_heap), 0);
	UNIT_EQ(naps_of(libraries[0], keeps_heap_unless_told), 0);
	UNIT_EQ(naps_of(libraries[0], keeps_heap_unless_set), 0);
}

int
main(int argc, char **argv)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(a_folder_is_made_for_the_telemetry_socket_only),
		UNIT_TEST(the_clock_is_measured_well),
		UNIT_TEST(the_clock_is_measured_as_long_through_signals),
		UNIT_TEST(without_a_clock_the_eal_measures),
		UNIT_TEST(cores_that_are_not_there_are_not_looked_for),
		UNIT_TEST(every_core_that_may_be_used_is_there),
		UNIT_TEST(a_start_does_not_wait_for_the_eal_to_measure_the_clock),
		UNIT_TEST(freed_buffers_are_not_faulted_in_anew),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"dropin", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	if (argc != 3) {
		fprintf(stderr, "usage: dropin_test LIBUCP LIBCCI\n");
		return 2;
	}
	libraries = (const char *const *)argv + 1;
	return unit_run(suites);
}

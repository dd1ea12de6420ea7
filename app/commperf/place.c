/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * place.c - where a process runs: its core, the EAL, the clock, its memory
 */
#include <errno.h>
#include <linux/mman.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "perf.h"

#define PLACE_MAX_EAL_ARGS 64
#define PLACE_EAL_HUGE	   (16ul << 20) /* bytes of huge pages that an EAL needs at start, and some
                      	                 * more */

/* A value in bytes of /proc/self/smaps_rollup, such as "Rss:". */
uint64_t
place_memory(const char *key)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib = 0;
	char line[256];

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0 &&
			sscanf(line + strlen(key), "%llu", &kib) == 1)
			break;
	}
	fclose(f);
	return kib << 10;
}

int
place_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

uint64_t
place_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

double
place_now(void)
{
	return (double)place_clock_ns() * 1e-9;
}

/* Ticks a second, against the monotonic clock, over 30 ms. */
double
place_tsc_hz(void)
{
	uint64_t t0, t1, ns0, ns1;

	ns0 = place_clock_ns();
	t0 = rte_rdtsc();
	do {
		ns1 = place_clock_ns();
		t1 = rte_rdtsc();
	} while (ns1 - ns0 < UINT64_C(30000000));
	return (double)(t1 - t0) * 1e9 / (double)(ns1 - ns0);
}

/*
 * A control group may refuse free pages: an EAL that counts on them does not start, and
 * can't be started twice. So allocate as many as it needs, for a moment.
 */
static bool
place_huge_pages_granted(void)
{
	void *va = mmap(NULL, PLACE_EAL_HUGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
	bool granted;

	if (va == MAP_FAILED)
		return false;
	/* an old kernel does not know the advice: then the failure shows too late */
	granted = madvise(va, PLACE_EAL_HUGE, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
	munmap(va, PLACE_EAL_HUGE);
	return granted;
}

static bool
place_huge_pages_free(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	unsigned long n = 0;

	if (f == NULL)
		return false;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n >= 64 && geteuid() == 0 && place_huge_pages_granted();
}

static bool
place_eal_has_memory(const struct perf_opts *o)
{
	static const char *const names[] = {"--in-memory", "--no-huge", "--no-shconf", "-m",
		"--socket-mem", "--file-prefix", "--legacy-mem", "--proc-type"};

	for (int i = 0; i < o->eal_argc; i++) {
		for (size_t k = 0; k < RTE_DIM(names); k++) {
			if (strncmp(o->eal_argv[i], names[k], strlen(names[k])) == 0)
				return true;
		}
	}
	return false;
}

/* Start the EAL on one core: private memory, silent, no PCI scan, unless the user says otherwise.
 */
int
place_eal_init(const struct perf_opts *o, int cpu)
{
	char *argv[PLACE_MAX_EAL_ARGS + 12], core[32];
	static char *const huge[] = {"--in-memory", NULL};
	static char *const small[] = {"--no-huge", "--no-shconf", "-m", "64", NULL};
	char *const *memory = place_huge_pages_free() ? huge : small;
	cpu_set_t before;
	int argc = 0, rc;

	if (o->eal_argc > PLACE_MAX_EAL_ARGS)
		return -E2BIG;
	CPU_ZERO(&before);
	sched_getaffinity(0, sizeof(before), &before);
	snprintf(core, sizeof(core), "%d", cpu);
	argv[argc++] = "commperf";
	argv[argc++] = "-l";
	argv[argc++] = core;
	argv[argc++] = "--no-telemetry";
	argv[argc++] = "--no-pci";
	argv[argc++] = "--log-level=*:3";
	for (; !place_eal_has_memory(o) && *memory != NULL; memory++)
		argv[argc++] = *memory;
	for (int i = 0; i < o->eal_argc; i++)
		argv[argc++] = o->eal_argv[i];
	argv[argc] = NULL;
	rc = rte_eal_init(argc, argv);
	if (rc < 0)
		return -rte_errno;
	if (!o->bind)
		sched_setaffinity(0, sizeof(before), &before);
	return 0;
}

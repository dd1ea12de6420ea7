/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * machine.c - the facts of a machine that explain results, and none that identifies it
 *
 * Design notes
 * - The page shows the keys, with spaces for "_". A fact that the system does not give is left out.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#include "page.h"

#define MACHINE_LINE 256
#define MACHINE_CPU  "/sys/devices/system/cpu/cpu%d/%s"

/*
 * Find the first line of a file that begins with key, or the first of all for "". out gets the
 * rest of it without separators and quotes.
 */
static bool
machine_line(const char *path, const char *key, char *out, size_t len)
{
	FILE *f = fopen(path, "re");
	char line[8192];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = strncmp(line, key, strlen(key)) == 0;
	if (f != NULL)
		fclose(f);
	if (!found)
		return false;
	line[strcspn(line, "\n")] = '\0';
	snprintf(out, len, "%s", line + strlen(key) + strspn(line + strlen(key), " \t:=\""));
	out[strcspn(out, "\"")] = '\0';
	return out[0] != '\0';
}

static void
machine_set(json_t *m, const char *name, const char *path, const char *key)
{
	char text[MACHINE_LINE];

	if (machine_line(path, key, text, sizeof(text)))
		json_object_set_new(m, name, page_string(text));
}

/* The line of a /sys file for the cores of both sides, once if the two are the same. */
static void
machine_cores(json_t *m, const struct perf_opts *o, const char *name, const char *file)
{
	char path[MACHINE_LINE], text[2][MACHINE_LINE], both[2 * MACHINE_LINE + 8];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), MACHINE_CPU, o->cpus[i < o->n_cpus ? i : 0], file);
		if (!machine_line(path, "", text[i], sizeof(text[i])))
			return;
	}
	snprintf(both, sizeof(both), strcmp(text[0], text[1]) != 0 ? "%s and %s" : "%s", text[0], text[1]);
	json_object_set_new(m, name, page_string(both));
}

static void
machine_processor(json_t *m, const struct perf_opts *o)
{
	char text[MACHINE_LINE * 8];
	cpu_set_t set;

	machine_set(m, "processor", "/proc/cpuinfo", "model name");
	json_object_set_new(m, "cores_online", json_integer(get_nprocs()));
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		json_object_set_new(m, "cores_allowed", json_integer(CPU_COUNT(&set)));
	json_object_set_new(m, "cores_used", json_pack("[i, i]", o->cpus[0], o->cpus[o->n_cpus > 1]));
	machine_cores(m, o, "hardware_threads_of_these_cores", "topology/thread_siblings_list");
	machine_cores(m, o, "governor", "cpufreq/scaling_governor");
	machine_cores(m, o, "highest_frequency_kHz", "cpufreq/cpuinfo_max_freq");
	machine_set(m, "numa_nodes", "/sys/devices/system/node/online", "");
	machine_set(m, "isolated_cores", "/sys/devices/system/cpu/isolated", "");
	if (machine_line("/proc/cpuinfo", "flags", text, sizeof(text)))
		json_object_set_new(m, "virtual", json_boolean(strstr(text, " hypervisor") != NULL));
}

static void
machine_memory(json_t *m)
{
	static const char dir[] = "/sys/kernel/mm/hugepages/hugepages-2048kB";
	char path[MACHINE_LINE];

	machine_set(m, "memory", "/proc/meminfo", "MemTotal:");
	snprintf(path, sizeof(path), "%s/nr_hugepages", dir);
	machine_set(m, "huge_pages_of_2_MiB", path, "");
	snprintf(path, sizeof(path), "%s/free_hugepages", dir);
	machine_set(m, "huge_pages_free", path, "");
	machine_set(m, "transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled", "");
}

json_t *
machine_facts(const struct perf_opts *o)
{
	json_t *m = json_object();
	struct utsname u;
	char text[MACHINE_LINE];
	time_t now = time(NULL);
	struct tm tm;

	if (strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", localtime_r(&now, &tm)) > 0)
		json_object_set_new(m, "time", json_string(text));
	machine_processor(m, o);
	machine_memory(m);
	machine_set(m, "system", "/etc/os-release", "PRETTY_NAME=");
	if (uname(&u) == 0) {
		snprintf(text, sizeof(text), "%s %s %s", u.sysname, u.release, u.machine);
		json_object_set_new(m, "kernel", page_string(text));
	}
	machine_set(m, "clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "");
	machine_set(m, "load_before_the_run", "/proc/loadavg", "");
	return m;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * eal_start.c - what the EAL does as it starts and no process of ours needs
 *
 * Design notes
 * The drop-in libraries have an EAL of their own and are linked such that it calls these (--wrap).
 * A DPDK that calls them by other names takes its time as before.
 *
 *	cores		looked for one by one up to 1,024 in 32 NUMA nodes: 5,000 system calls
 *	plug-ins	the loader searches all its folders for shared parts of DPDK, several times. If the
 *			program has loaded some, they are of its EAL, and not of this one
 *	interrupts	a thread that waits for those of devices, which no driver of ours has. Without it the
 *			process has a single thread, and membarrier(2) registers it at once instead of within 10 ms
 *	folder		for files that --no-shconf says not to share; unless there is to be a telemetry socket
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "init_int.h"

#define PRESENT "/sys/devices/system/cpu/present"

int __real_eal_cpu_detected(unsigned lcore);
int __wrap_eal_cpu_detected(unsigned lcore);
unsigned __real_eal_cpu_socket_id(unsigned lcore);
unsigned __wrap_eal_cpu_socket_id(unsigned lcore);
int __wrap_eal_plugins_init(void);
int __wrap_rte_eal_intr_init(void);
int __real_eal_create_runtime_dir(void);
int __wrap_eal_create_runtime_dir(void);

/* The last number of a list as 0-3,8-11, or -1 if there is none. */
static int
last_present(void)
{
	char text[4096];
	int last = -1;
	FILE *f = fopen(PRESENT, "re");

	if (f == NULL)
		return -1;
	if (fgets(text, sizeof(text), f) != NULL && strlen(text) < sizeof(text) - 1) {
		size_t digits = strspn(text, "0123456789,-");

		while (digits > 0 && isdigit((unsigned char)text[digits - 1]))
			last = atoi(&text[--digits]);
	}
	fclose(f);
	return last;
}

static bool
is_absent(unsigned lcore)
{
	static int last = -2; /* the EAL asks in one thread, as it starts */

	if (last == -2)
		last = last_present();
	return last >= 0 && lcore > (unsigned)last;
}

int
__wrap_eal_cpu_detected(unsigned lcore)
{
	return is_absent(lcore) ? 0 : __real_eal_cpu_detected(lcore);
}

unsigned
__wrap_eal_cpu_socket_id(unsigned lcore)
{
	return is_absent(lcore) ? 0 : __real_eal_cpu_socket_id(lcore);
}

int
__wrap_eal_plugins_init(void)
{
	return 0;
}

int
__wrap_rte_eal_intr_init(void)
{
	return 0;
}

int
__wrap_eal_create_runtime_dir(void)
{
	return init_has_files ? __real_eal_create_runtime_dir() : 0;
}

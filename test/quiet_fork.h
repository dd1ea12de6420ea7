/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * quiet_fork.h - with the address sanitizer, no fork while a thread starts or ends
 *
 * The C library's allocator is in order in a child, whatever other threads do. That of GCC 12's address sanitizer
 * keeps its locks as the fork finds them: of a thread that starts or ends just then the child inherits a lock which
 * nobody frees, and waits for ever in its next malloc(). So before each fork() of a test the threads that are young
 * have to sleep. Included once in a program.
 */
#ifndef QUIET_FORK_H
#define QUIET_FORK_H

#if defined(__SANITIZE_ADDRESS__)

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUIET_YOUNG_S 0.2 /* seconds in which a thread may be starting, or do what it was made for and end */
#define QUIET_TRIES   10000

/* @return whether a thread of this process runs that was made just now */
static bool
quiet_is_starting(const char *tid)
{
	char path[64], text[512] = "", state = 'S';
	unsigned long long start = 0;
	struct timespec now;
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false; /* it has ended */
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	p = strrchr(text, ')');
	if (p == NULL || sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		    &state, &start) != 2)
		return false;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return state == 'R' &&
	       (double)now.tv_sec + now.tv_nsec * 1e-9 - (double)start / sysconf(_SC_CLK_TCK) < QUIET_YOUNG_S;
}

static bool
quiet_any_starts(void)
{
	char own[16];
	bool any = false;
	struct dirent *e;
	DIR *d = opendir("/proc/self/task");

	snprintf(own, sizeof(own), "%d", (int)gettid());
	while (d != NULL && !any && (e = readdir(d)) != NULL)
		any = e->d_name[0] != '.' && strcmp(e->d_name, own) != 0 && quiet_is_starting(e->d_name);
	if (d != NULL)
		closedir(d);
	return any;
}

static void
quiet_wait(void)
{
	for (unsigned i = 0; i < QUIET_TRIES && quiet_any_starts(); i++)
		usleep(100);
}

__attribute__((constructor)) static void
quiet_watch_forks(void)
{
	(void)pthread_atfork(quiet_wait, NULL, NULL);
}

#endif /* __SANITIZE_ADDRESS__ */

#endif

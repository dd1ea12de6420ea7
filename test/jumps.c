/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * jumps.c - to be preloaded: the time of day is another at every look, a day early, right or a day late
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 86400 };

static time_t
jump(void)
{
	static unsigned looks;

	return ((time_t)(__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % 3) - 1) * DAY_S;
}

/* By the kernel: the C library's function is this one. */
int
clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
		t->tv_sec += jump();
	return rc;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	int rc = (int)syscall(SYS_gettimeofday, tv, zone);

	if (rc == 0)
		tv->tv_sec += jump();
	return rc;
}

time_t
time(time_t *out)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (out != NULL)
		*out = t.tv_sec;
	return t.tv_sec;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * clock.c - how fast the time stamp counter runs, found out sooner than the EAL does
 *
 * Design notes
 * Where neither the processor nor its registers say it (virtual machines, AMD, older Intel, no
 * right to read the latter) the EAL sleeps for 100 ms to measure it, in each process, and rounds to 10 MHz.
 * With both clocks read at nearly the same moment 1 ms is enough for more than that, and most of it has passed
 * since the library was loaded. The drop-in libraries, which have an EAL of their own, are linked such that it calls
 * this (--wrap).
 */
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include <rte_cycles.h>

#define MEASURE_NS 1000000
#define LATE_NS	   1000000000 /* a machine may be suspended meanwhile, or move with its guests */
#define TRIES	   8	      /* of which the shortest counts */
#define HZ_MIN	   1000000    /* AArch64 counts from that on; less than that is no such counter */

uint64_t __real_get_tsc_freq(void);
uint64_t __wrap_get_tsc_freq(void);

struct moment {
	uint64_t ticks, ns;
};

/* Both clocks. */
static int
moment_get(struct moment *m)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t before = rte_rdtsc_precise(), after;
		struct timespec t;

		if (clock_gettime(CLOCK_MONOTONIC_RAW, &t) != 0)
			return -1;
		after = rte_rdtsc_precise();
		if (after - before >= best)
			continue;
		best = after - before;
		m->ticks = before + best / 2;
		m->ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return best != UINT64_MAX ? 0 : -1;
}

static struct moment loaded; /* for one measurement */

static __attribute__((constructor)) void
moment_of_load(void)
{
	if (moment_get(&loaded) != 0)
		loaded.ns = 0;
}

/* Begin when the library was loaded, or now. @return the time since then, or -1 without a clock */
static int64_t
begin(struct moment *from)
{
	struct moment now;

	if (moment_get(&now) != 0)
		return -1;
	*from = loaded.ns != 0 && now.ns - loaded.ns < LATE_NS ? loaded : now;
	loaded.ns = 0;
	return (int64_t)(now.ns - from->ns);
}

uint64_t
__wrap_get_tsc_freq(void)
{
	struct moment from, to;
	int64_t passed = begin(&from);
	struct timespec pause = {.tv_nsec = MEASURE_NS - passed};
	uint64_t hz = 0;

	if (passed >= 0) {
		while (pause.tv_nsec > 0 && nanosleep(&pause, &pause) != 0 && errno == EINTR)
			;
		if (moment_get(&to) == 0 && to.ns > from.ns)
			hz = (uint64_t)((double)(to.ticks - from.ticks) * 1e9 / (double)(to.ns - from.ns));
	}
	return hz >= HZ_MIN ? hz : __real_get_tsc_freq();
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * timed.c - --duration: a line runs for a time, not for a number of messages, and shows its rate
 * each second
 *
 * Design notes
 * - Both sides run chunks of messages. Side A sizes each to about a tenth of a second and tells
 *   side B its length over the control socket. Only the time within chunks is measured.
 * - Loops tell odd from even messages, so a chunk has an even number of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define TIMED_FIRST   64
#define TIMED_CHUNK_S 0.1
#define TIMED_GROWTH  4.0
#define TIMED_SHOW_S  1.0

static uint64_t
timed_size(const struct perf_timed *t)
{
	uint64_t step = 2 * t->s->o->batch;

	return (t->chunk + step - 1) / step * step;
}

static int
timed_say(struct perf_timed *t, uint64_t n)
{
	int rc = chan_send(t->s->ctl_fd, &n, sizeof(n), t->s->o->timeout);

	return rc == 0 ? 0 : perf_fail(t->s, "the length of a chunk: %s", strerror(-rc));
}

static int
timed_hear(struct perf_timed *t, uint64_t *n)
{
	void *data;
	size_t len;
	int rc = chan_recv(t->s, t->s->ctl_fd, &data, &len, t->s->o->timeout);

	if (rc != 0)
		return perf_fail(t->s, "the length of a chunk: %s", strerror(-rc));
	rc = len == sizeof(*n) ? 0 : -EPROTO;
	if (rc == 0)
		memcpy(n, data, sizeof(*n));
	free(data);
	return rc == 0 && *n <= PERF_MAX_ITERS + 2 * PERF_MAX_BATCH ? 0 : perf_fail(t->s, "the two sides are out of step");
}

/* Side B answers once it has left its last loop, which would take the first message of the next. */
static int
timed_tell(struct perf_timed *t, uint64_t n)
{
	uint64_t heard;

	if (t->alone)
		return 0;
	return timed_say(t, n) != 0 ? -1 : timed_hear(t, &heard);
}

/* Sets *n to the messages of the next chunk, 0 at the end of the duration. @return -1 after perf_fail() */
int
perf_timed_next(struct perf_timed *t, uint64_t *n)
{
	double now = place_now();

	if (t->s->rank == 1)
		return timed_hear(t, n) != 0 ? -1 : timed_say(t, *n);
	if (t->begin <= 0) {
		t->begin = t->shown = t->since = now;
		t->chunk = TIMED_FIRST;
	} else {
		double left = t->begin + t->s->o->duration - now;
		double aim = left < TIMED_CHUNK_S ? left : TIMED_CHUNK_S, by = aim / RTE_MAX(now - t->since, 1e-6);

		t->chunk = (uint64_t)((double)t->chunk * (by > TIMED_GROWTH ? TIMED_GROWTH : by > 0 ? by : 0)) + 1;
		t->chunk = RTE_MIN(t->chunk, PERF_MAX_ITERS);
		t->since = now;
	}
	*n = now - t->begin < t->s->o->duration ? timed_size(t) : 0;
	return timed_tell(t, *n);
}

static double
timed_value(const struct perf_timed *t, uint64_t n, uint64_t ticks)
{
	double sec = perf_ns(t->s, ticks) * 1e-9;

	return t->rate ? (double)n * t->factor / sec : sec * t->factor / (double)n;
}

/* Add a chunk to the total. Once a second, show the rate since the last time. */
void
perf_timed_add(struct perf_timed *t, uint64_t n, uint64_t ticks)
{
	double now = place_now();
	struct perf_live live = {.size = t->size, .at = now - t->begin, .of = t->s->o->duration, .rate = t->rate};

	t->n += n;
	t->ticks += ticks;
	if (t->s->rank != 0 || live.of <= 0 || now - t->shown < TIMED_SHOW_S)
		return;
	live.value = timed_value(t, t->n - t->shown_n, t->ticks - t->shown_ticks);
	snprintf(live.test, sizeof(live.test), "%s", t->test);
	snprintf(live.unit, sizeof(live.unit), "%s", t->unit);
	perf_live(t->s, &live);
	t->shown = now;
	t->shown_n = t->n;
	t->shown_ticks = t->ticks;
}

int
perf_count_alone(struct perf_timed *total, perf_alone_fn *run, const void *arg)
{
	struct perf_side *s = total->s;
	uint64_t n = perf_iters(s->o, !total->rate, total->size), start;
	bool timed = s->o->duration > 0;
	int rc = run(s, arg, perf_warmup(s->o, n));

	total->alone = true;
	if (rc == 0 && timed)
		rc = perf_timed_next(total, &n);
	while (rc == 0 && n > 0) {
		start = rte_rdtsc();
		rc = run(s, arg, n);
		perf_timed_add(total, n, rte_rdtsc() - start);
		n = 0;
		if (rc == 0 && timed)
			rc = perf_timed_next(total, &n);
	}
	return rc;
}

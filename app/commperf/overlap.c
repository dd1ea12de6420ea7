/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * overlap.c - how much of a receive overlaps with the application's computation
 *
 * Design notes
 * - The work is counted in steps and not in time, so that a loss of the core is visible.
 * - Side A posts the receive, asks for the message, works for about twice as long as the
 *   transfer alone takes, without a call of the library, and waits. Side B only waits and sends.
 */
#include <stdlib.h>

#include "perf.h"

#define OVERLAP_MAX_ROUNDS UINT64_C(1000)
#define OVERLAP_STEPS	   100000 /* of one measurement of the pace */
#define OVERLAP_PACES	   50

struct overlap_times {
	double *all;  /* ns, one a round */
	double *work; /* the part of it in the work */
	unsigned n;
};

static volatile double overlap_sink;

static void
overlap_work(uint64_t steps)
{
	double x = 1;

	for (uint64_t i = 0; i < steps; i++)
		x = x * 1.0000001 + 1e-9;
	overlap_sink = x;
}

static int
overlap_before(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
overlap_median(double *v, unsigned n)
{
	qsort(v, n, sizeof(v[0]), overlap_before);
	return v[n / 2];
}

static double
overlap_work_ns(struct perf_side *s, uint64_t steps)
{
	uint64_t start = rte_rdtsc();

	overlap_work(steps);
	return perf_ns(s, rte_rdtsc() - start);
}

/* Steps a ns without disturbance. */
static double
overlap_pace(struct perf_side *s)
{
	double least = overlap_work_ns(s, OVERLAP_STEPS);

	for (unsigned i = 0; i < OVERLAP_PACES; i++)
		least = RTE_MIN(least, overlap_work_ns(s, OVERLAP_STEPS));
	return OVERLAP_STEPS / least;
}

static int
overlap_receive(struct perf_side *s, size_t size, uint64_t steps, double *all, double *work)
{
	struct perf_io rx, go;
	uint64_t start;

	if (s->be->recv(s, &rx, s->rbuf, size, PERF_TAG, UINT64_MAX) != 0 ||
		s->be->send(s, &go, PERF_PEER, NULL, 0, PERF_TAG_ACK, 0) != 0)
		return -1;
	if (perf_wait(s, &go) != 0)
		return -1;
	start = rte_rdtsc();
	if (steps != 0)
		overlap_work(steps);
	*work = perf_ns(s, rte_rdtsc() - start);
	if (perf_wait(s, &rx) != 0)
		return -1;
	*all = perf_ns(s, rte_rdtsc() - start);
	if (s->o->verify)
		perf_check(s, &rx, s->rbuf, size, 0);
	perf_alive(s);
	return 0;
}

static int
overlap_send(struct perf_side *s, size_t size)
{
	struct perf_io tx, go;

	if (s->be->recv(s, &go, NULL, 0, PERF_TAG_ACK, UINT64_MAX) != 0 || perf_wait(s, &go) != 0)
		return -1;
	if (s->be->send(s, &tx, PERF_PEER, s->sbuf, size, PERF_TAG, 0) != 0)
		return -1;
	return perf_wait(s, &tx);
}

/* Both sides: n messages; side A records its times. */
static int
overlap_rounds(struct perf_side *s, size_t size, uint64_t steps, struct overlap_times *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		int rc = s->rank == 0
			? overlap_receive(s, size, steps, &t->all[i], &t->work[i])
			: overlap_send(s, size);

		if (rc != 0)
			return -1;
	}
	return perf_barrier(s);
}

static int
overlap_measure(struct perf_side *s, const struct perf_test *t, size_t size,
	struct overlap_times *v)
{
	double plain, alone, all, worked;
	struct perf_row *row;
	uint64_t steps;

	if (overlap_rounds(s, size, 0, v) != 0 || overlap_rounds(s, size, 0, v) != 0)
		return -1;
	plain = overlap_median(v->all, v->n);
	steps = (uint64_t)(2 * plain * overlap_pace(s)) + 1;
	for (unsigned i = 0; i < v->n && s->rank == 0; i++)
		v->work[i] = overlap_work_ns(s, steps);
	alone = overlap_median(v->work, v->n);
	if (perf_barrier(s) != 0 || overlap_rounds(s, size, steps, v) != 0)
		return -1;
	all = overlap_median(v->all, v->n);
	worked = overlap_median(v->work, v->n);
	if (s->rank != 0)
		return 0;
	row = perf_row_new(s, t, size);
	if (row == NULL)
		return perf_fail(s, "out of memory");
	row->n = v->n;
	row->value = 100 * (plain + alone - all) / plain;
	row->higher_better = true;
	snprintf(row->unit, sizeof(row->unit), "%%");
	perf_row_field(row, "hidden %", row->value);
	perf_row_field(row, "kept %", 100 * alone / worked);
	perf_row_field(row, "plain us", plain * 1e-3);
	perf_row_field(row, "work us", alone * 1e-3);
	perf_row_field(row, "both us", all * 1e-3);
	return 0;
}

int
overlap_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	struct overlap_times v;
	int rc;

	v.n = RTE_MIN(s->o->iters != 0 ? s->o->iters : perf_iters(s->o, true, size) / 10,
		OVERLAP_MAX_ROUNDS);
	v.all = calloc(v.n, 2 * sizeof(v.all[0]));
	if (v.all == NULL)
		return perf_fail(s, "out of memory");
	v.work = v.all + v.n;
	if (s->o->verify)
		perf_fill(s->sbuf, size, 0);
	rc = overlap_measure(s, t, size, &v);
	free(v.all);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rate.c - small messages a second: the stream of bw.c, counted in messages
 */
#include "perf.h"

#define RATE_ITERS 2000000

struct perf_row *
rate_row(struct perf_side *s, const struct perf_test *t, size_t size, uint64_t n, uint64_t ticks)
{
	struct perf_row *row = perf_row_new(s, t, size);
	double sec = perf_ns(s, ticks) * 1e-9;

	if (row == NULL) {
		perf_fail(s, "out of memory");
		return NULL;
	}
	row->n = n;
	row->value = (double)n / sec * 1e-6;
	row->higher_better = true;
	snprintf(row->unit, sizeof(row->unit), "Mmsg/s");
	perf_row_field(row, "Mmsg/s", row->value);
	perf_row_field(row, "ns/msg", sec * 1e9 / (double)n);
	return row;
}

int
rate_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	uint64_t n = s->o->iters != 0 ? s->o->iters
		     : size <= 1024   ? RATE_ITERS
				      : perf_iters(s->o, false, size);
	struct perf_timed total = {.s = s, .test = t->name, .size = size, .unit = "Mmsg/s", .rate = true,
		.factor = 1e-6};

	if (bw_count(&total, n, false) != 0)
		return -1;
	if (s->rank != 0)
		return 0;
	return rate_row(s, t, size, total.n, total.ticks) != NULL ? 0 : -1;
}

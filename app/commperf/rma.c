/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma.c - reads and writes of the other side's memory: one at a time, or a window of them
 *
 * Design notes
 * - Side B only gives turns. An operation is over when the back end says so, which is when the data
 *   is in its place.
 */
#include <string.h>

#include "perf.h"

static struct perf_io rma_io[PERF_MAX_WINDOW];

struct rma_what {
	bool write;
	bool verify;
	size_t size;
	size_t stride;
	unsigned window;
};

static int
rma_run_n(struct perf_side *s, const struct rma_what *w, uint64_t n)
{
	unsigned slot = 0;

	for (unsigned i = 0; i < w->window; i++)
		rma_io[i] = (struct perf_io){.done = 1};
	for (uint64_t i = 0; i < n; i++, slot = perf_slot_next(slot, w->window)) {
		if (unlikely(perf_wait(s, &rma_io[slot]) != 0))
			return -1;
		if (unlikely(s->be->rma(s, &rma_io[slot], w->write, slot * w->stride, w->size) != 0))
			return -1;
		if (unlikely((i & 0xff) == 0))
			perf_alive(s);
	}
	for (unsigned i = 0; i < w->window; i++) {
		if (perf_wait(s, &rma_io[i]) != 0)
			return -1;
	}
	return 0;
}

/* What was written last is read back and compared. */
static int
rma_verify(struct perf_side *s, const struct rma_what *w)
{
	struct rma_what one = *w;

	one.window = 1;
	one.write = true;
	perf_fill(s->sbuf, w->size, 1);
	if (rma_run_n(s, &one, 1) != 0)
		return -1;
	memset(s->sbuf, 0, w->size);
	one.write = false;
	if (rma_run_n(s, &one, 1) != 0)
		return -1;
	rma_io[0].len = w->size;
	perf_check(s, &rma_io[0], s->sbuf, w->size, 1);
	return 0;
}

static int
rma_row(struct perf_side *s, const struct perf_test *t, const struct rma_what *w, uint64_t n,
	uint64_t ticks)
{
	struct perf_row *row = perf_row_new(s, t, w->size);
	double sec = perf_ns(s, ticks) * 1e-9;

	if (row == NULL)
		return perf_fail(s, "out of memory");
	row->n = n;
	row->higher_better = w->window > 1;
	row->value = w->window > 1 ? (double)w->size * (double)n / sec * 1e-6 : sec * 1e6 / (double)n;
	snprintf(row->unit, sizeof(row->unit), "%s", w->window > 1 ? "MB/s" : "us");
	perf_row_field(row, row->unit, row->value);
	if (w->window > 1)
		perf_row_field(row, "us/op", sec * 1e6 / (double)n);
	else
		perf_row_field(row, "MB/s", (double)w->size * (double)n / sec * 1e-6);
	return 0;
}

int
rma_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	bool lat = strstr(t->name, "_lat") != NULL;
	struct rma_what w = {.write = strstr(t->name, "write") != NULL, .size = size,
		.window = lat ? 1 : s->o->window};
	uint64_t n = perf_iters(s->o, lat, size), start = 0;
	int rc;

	w.stride = perf_stride(s);
	if (s->be->rma_open(s) != 0)
		return -1;
	if (s->rank == 0) {
		rc = s->o->verify ? rma_verify(s, &w) : 0;
		if (rc == 0)
			rc = rma_run_n(s, &w, perf_warmup(s->o, n));
		start = rte_rdtsc();
		if (rc == 0)
			rc = rma_run_n(s, &w, n);
		if (rc != 0 || rma_row(s, t, &w, n, rte_rdtsc() - start) != 0)
			return -1;
	}
	s->patient = s->rank == 1;
	rc = perf_barrier(s);
	s->patient = false;
	return rc != 0 || s->be->rma_close(s) != 0 ? -1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plot.c - the curves of results, and their axes: x logarithmic, y too when it spans decades
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

int
plot_open(struct plot *p)
{
	*p = (struct plot){.s = calloc(PLOT_MAX, sizeof(*p->s))};
	return p->s != NULL ? 0 : -ENOMEM;
}

void
plot_close(struct plot *p)
{
	free(p->s);
}

static struct plot_series *
plot_find(struct plot *p, const char *chart, const char *name)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (strcmp(p->s[i].chart, chart) == 0 && strcmp(p->s[i].name, name) == 0)
			return &p->s[i];
	}
	return NULL;
}

static struct plot_series *
plot_new(struct plot *p, const char *chart, const char *name, const struct perf_row *row)
{
	struct plot_series *s;

	if (p->n == PLOT_MAX)
		return NULL;
	s = &p->s[p->n++];
	snprintf(s->chart, sizeof(s->chart), "%s", chart);
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->unit, sizeof(s->unit), "%s", row->unit);
	snprintf(s->axis, sizeof(s->axis), "%s", row->depth != 0 ? "depth" : "bytes");
	return s;
}

/* Add y at the row's size or depth to the curve of that chart and name, which is created if needed. */
static void
plot_point(struct plot *p, const char *chart, const char *name, const struct perf_row *row, double y)
{
	struct plot_series *s = plot_find(p, chart, name);
	double x = (double)(row->depth != 0 ? row->depth : RTE_MAX(row->size, UINT64_C(1)));
	unsigned i;

	if (s == NULL)
		s = plot_new(p, chart, name, row);
	if (s == NULL || s->n == RTE_DIM(s->x)) {
		p->full = true;
		return;
	}
	for (i = s->n++; i > 0 && s->x[i - 1] > x; i--) {
		s->x[i] = s->x[i - 1];
		s->y[i] = s->y[i - 1];
	}
	s->x[i] = x;
	s->y[i] = y;
}

void
plot_add_point(struct plot *p, const char *name, const struct perf_row *row, double y)
{
	char chart[sizeof(p->s->chart)];

	snprintf(chart, sizeof(chart), "%s%s%s", row->test, row->label[0] != '\0' ? " " : "", row->label);
	plot_point(p, chart, name, row, y);
}

/* The charts of a plain run: each test by size (or depth), with the raw ping-pong for latencies. */
void
plot_add_rows(struct plot *p, const struct perf_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct perf_row *row = &rows->row[i];

		plot_point(p, row->test, row->label[0] != '\0' ? row->label : row->test, row, row->value);
		if (row->raw_ns > 0 && strcmp(row->unit, "us") == 0)
			plot_point(p, row->test, "raw cache line", row, row->raw_ns / 1e3);
	}
}

unsigned
plot_charts(const struct plot *p, unsigned *firsts)
{
	unsigned charts = 0;

	for (unsigned i = 0; i < p->n; i++) {
		unsigned k = 0;

		while (k < charts && strcmp(p->s[firsts[k]].chart, p->s[i].chart) != 0)
			k++;
		if (k == charts)
			firsts[charts++] = i;
	}
	return charts;
}

static double
plot_log2(double v)
{
	return v > 0 ? log2(v) : 0;
}

struct plot_frame
plot_bounds(const struct plot *p, const char *chart)
{
	struct plot_frame f = {.x0 = INFINITY, .x1 = -INFINITY};
	double least = INFINITY, max = 0, min = 0; /* least: above 0 */

	for (unsigned i = 0; i < p->n; i++) {
		const struct plot_series *s = &p->s[i];

		if (strcmp(s->chart, chart) != 0)
			continue;
		f.x0 = fmin(f.x0, plot_log2(s->x[0]));
		f.x1 = fmax(f.x1, plot_log2(s->x[s->n - 1]));
		for (unsigned k = 0; k < s->n; k++) {
			if (s->y[k] > 0)
				least = fmin(least, s->y[k]);
			max = fmax(max, s->y[k]);
			min = fmin(min, s->y[k]);
		}
	}
	f.ylog = min >= 0 && max > 20 * least;
	f.y0 = f.ylog ? floor(log10(least)) : min * 1.1;
	f.y1 = f.ylog ? ceil(log10(max)) : max > 0 ? max * 1.1 : 1;
	return f;
}

double
plot_step(double range, unsigned most)
{
	static const double by[] = {2, 2.5, 2};
	double step = pow(10, floor(log10(range / most)));

	for (unsigned i = 0; range / step > most; i++)
		step *= by[i % RTE_DIM(by)];
	return step;
}

double
plot_x(const struct plot_frame *f, double v)
{
	return f->x1 > f->x0 ? (plot_log2(v) - f->x0) / (f->x1 - f->x0) : 0.5;
}

double
plot_y(const struct plot_frame *f, double v)
{
	double y = !f->ylog ? v : v > 0 ? log10(v) : f->y0;

	return f->y1 > f->y0 ? (y - f->y0) / (f->y1 - f->y0) : 0.5;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plot.h - curves over sizes or depths, drawn as SVG or with the letters of a terminal
 */
#ifndef PLOT_H
#define PLOT_H

#include "perf.h"

#define PLOT_MAX 256 /* curves */

struct plot_series {
	char name[96];
	char chart[64]; /* title; series with the same title share a chart */
	char unit[16];
	char axis[16]; /* what x is */
	unsigned n;
	double x[PERF_MAX_SIZES]; /* ascending */
	double y[PERF_MAX_SIZES];
};

/* All curves of a run, or of several. */
struct plot {
	struct plot_series *s;
	unsigned n;
	bool full; /* there was no room for a curve or a point */
};

/* The ranges of a chart: logarithms of x, and of y if ylog. */
struct plot_frame {
	double x0, x1, y0, y1;
	bool ylog;
	unsigned top; /* where the chart begins on its page */
};

int plot_open(struct plot *p);
void plot_close(struct plot *p);
/* A point of the curve of that name: each test and label has a chart. */
void plot_add_point(struct plot *p, const char *name, const struct perf_row *row, double y);
void plot_add_rows(struct plot *p, const struct perf_rows *rows);
/* The first curve of each chart. @return their number; firsts has room for PLOT_MAX */
unsigned plot_charts(const struct plot *p, unsigned *firsts);
struct plot_frame plot_bounds(const struct plot *p, const char *chart);
/* The distance between marks of a linear axis: 1, 2 or 5 times a power of ten. The axis has at most this many steps. */
double plot_step(double range, unsigned most);
/* The position of a value on its axis, from 0 to 1. */
double plot_x(const struct plot_frame *f, double v);
double plot_y(const struct plot_frame *f, double v);

/* plot_svg.c: write all charts to a file, a page if its name has .html, else a picture. @return 0 or -errno */
int plot_write(const char *path, const char *title, const struct plot *p);
void plot_style(FILE *out);
/* The chart of that curve as an svg element; its page needs plot_style(). */
void plot_svg(FILE *out, const struct plot *p, unsigned first);
/* Text as content or attribute of HTML and XML. */
void plot_escape(FILE *out, const char *text);

/* plot_text.c */
void plot_print(FILE *out, const struct plot *p);

/* plot_runs.c: the results of earlier runs in one plot. @return an exit status */
int plot_runs(const struct perf_opts *o);

#endif /* PLOT_H */

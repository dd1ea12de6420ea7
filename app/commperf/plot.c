/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plot.c - charts as SVG, or as one HTML page of them: x logarithmic, y too when it spans
 * decades
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define PLOT_W 760
#define PLOT_H 420
#define PLOT_L 80
#define PLOT_R 190
#define PLOT_T 44
#define PLOT_B 52

static const char *const plot_colors[] = {
	"#1f5fa8", "#c4511d", "#2c8a4b", "#7a3f9d", "#8a6d1a", "#187c86", "#a8325e", "#555555"};

struct plot_frame {
	double x0, x1, y0, y1; /* of the data; logarithms if the axis is logarithmic */
	bool ylog;
	unsigned top; /* where this chart begins on the page */
};

static double
plot_log2(double v)
{
	return v > 0 ? log2(v) : 0;
}

static double
plot_x(const struct plot_frame *f, double v)
{
	double w = f->x1 > f->x0 ? f->x1 - f->x0 : 1;

	return PLOT_L + (plot_log2(v) - f->x0) / w * (PLOT_W - PLOT_L - PLOT_R);
}

static double
plot_y(const struct plot_frame *f, double v)
{
	double h = f->y1 > f->y0 ? f->y1 - f->y0 : 1;
	double y = f->ylog ? log10(v > 0 ? v : 1e-12) : v;

	return f->top + PLOT_H - PLOT_B - (y - f->y0) / h * (PLOT_H - PLOT_T - PLOT_B);
}

static void
plot_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<' || *text == '&')
			fputs(*text == '<' ? "&lt;" : "&amp;", out);
		else
			fputc(*text, out);
	}
}

static void
plot_label(FILE *out, double x, double y, const char *anchor, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	plot_text(out, text);
	fprintf(out, "</text>\n");
}

static void
plot_bounds(struct plot_frame *f, const char *chart, const struct plot_series *s, unsigned n)
{
	double min = INFINITY, max = 0;

	f->x0 = INFINITY;
	f->x1 = -INFINITY;
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(s[i].chart, chart) != 0)
			continue;
		for (unsigned k = 0; k < s[i].n; k++) {
			f->x0 = fmin(f->x0, plot_log2(s[i].x[k]));
			f->x1 = fmax(f->x1, plot_log2(s[i].x[k]));
			if (s[i].y[k] > 0)
				min = fmin(min, s[i].y[k]);
			max = fmax(max, s[i].y[k]);
		}
	}
	f->ylog = max > 20 * min;
	f->y0 = f->ylog ? floor(log10(min)) : 0;
	f->y1 = f->ylog ? ceil(log10(max)) : max * 1.1;
}

static void
plot_grid_y(FILE *out, const struct plot_frame *f)
{
	double step = 1, at;
	char text[32];

	if (!f->ylog) {
		step = pow(10, floor(log10((f->y1 > 0 ? f->y1 : 1) / 4)));
		while (f->y1 / step > 8)
			step *= 2;
	}
	for (at = f->y0; at <= f->y1 + step * 1e-6; at += step) {
		double v = f->ylog ? pow(10, at) : at, y = plot_y(f, v);

		fprintf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"g\"/>\n",
			PLOT_L, y, PLOT_W - PLOT_R, y);
		snprintf(text, sizeof(text), "%g", v);
		plot_label(out, PLOT_L - 6, y + 4, "end", text);
	}
}

static void
plot_tick_x(FILE *out, const struct plot_frame *f, double v, const char *text)
{
	double x = plot_x(f, v);

	fprintf(out, "<line x1=\"%.1f\" y1=\"%u\" x2=\"%.1f\" y2=\"%u\" class=\"g\"/>\n", x,
		f->top + PLOT_T, x, f->top + PLOT_H - PLOT_B);
	plot_label(out, x, f->top + PLOT_H - PLOT_B + 18, "middle", text);
}

/* Bytes in powers of two, depths in powers of ten. */
static void
plot_grid_x(FILE *out, const struct plot_frame *f, bool bytes)
{
	int every = (int)((f->x1 - f->x0) / 11) + 1;
	char text[32];

	for (int e = (int)ceil(f->x0); bytes && e <= (int)f->x1; e += every) {
		report_size(text, sizeof(text), UINT64_C(1) << e);
		plot_tick_x(out, f, pow(2, e), text);
	}
	for (double v = 1; !bytes && v < 1e8; v *= 10) {
		if (plot_log2(v) < f->x0 - 1e-9 || plot_log2(v) > f->x1 + 1e-9)
			continue;
		snprintf(text, sizeof(text), "%.0f", v);
		plot_tick_x(out, f, v, text);
	}
}

static void
plot_curve(FILE *out, const struct plot_frame *f, const struct plot_series *s, unsigned k)
{
	const char *color = plot_colors[k % RTE_DIM(plot_colors)];
	bool dashed = strncmp(s->name, "raw", 3) == 0;
	double y = f->top + PLOT_T + 14 + 20.0 * k;

	fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", color,
		dashed ? " stroke-dasharray=\"5 4\"" : "");
	for (unsigned i = 0; i < s->n; i++)
		fprintf(out, "%.1f,%.1f ", plot_x(f, s->x[i]), plot_y(f, s->y[i]));
	fprintf(out, "\"/>\n");
	for (unsigned i = 0; i < s->n && !dashed; i++)
		fprintf(out,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%g: %g "
			"%s</title></circle>\n",
			plot_x(f, s->x[i]), plot_y(f, s->y[i]), color, s->x[i], s->y[i], s->unit);
	fprintf(out,
		"<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
		"stroke-width=\"2\"/>\n",
		PLOT_W - PLOT_R + 12, y - 4, PLOT_W - PLOT_R + 34, y - 4, color);
	plot_label(out, PLOT_W - PLOT_R + 40, y, "start", s->name);
}

static void
plot_chart(FILE *out, const struct plot_series *first, const struct plot_series *all, unsigned n,
	unsigned top)
{
	struct plot_frame f = {.top = top};
	unsigned k = 0;
	char text[128];

	plot_bounds(&f, first->chart, all, n);
	fprintf(out, "<g>\n");
	snprintf(text, sizeof(text), "%s, %s", first->chart, first->unit);
	plot_label(out, PLOT_L, top + 26, "start", text);
	plot_grid_y(out, &f);
	plot_grid_x(out, &f, strcmp(first->axis, "bytes") == 0);
	plot_label(out, (PLOT_L + PLOT_W - PLOT_R) / 2.0, top + PLOT_H - 12, "middle", first->axis);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(all[i].chart, first->chart) == 0)
			plot_curve(out, &f, &all[i], k++);
	}
	fprintf(out, "</g>\n");
}

static unsigned
plot_charts(const struct plot_series *s, unsigned n, unsigned *firsts)
{
	unsigned charts = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned k = 0;

		while (k < charts && strcmp(s[firsts[k]].chart, s[i].chart) != 0)
			k++;
		if (k == charts)
			firsts[charts++] = i;
	}
	return charts;
}

/* Write all charts to one file, by its name an SVG picture or an HTML page; 0 or -errno. */
int
plot_write(const char *path, const char *title, const struct plot_series *series, unsigned n)
{
	bool html = strstr(path, ".html") != NULL;
	unsigned firsts[PLOT_MAX], charts;
	FILE *out;

	n = n < PLOT_MAX ? n : PLOT_MAX;
	charts = plot_charts(series, n, firsts);
	out = fopen(path, "w");
	if (out == NULL)
		return -errno;
	if (html) {
		fprintf(out, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>");
		plot_text(out, title);
		fprintf(out, "</title></head><body>\n");
	}
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\""
		" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<style>.g{stroke:#ddd;stroke-width:1}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		PLOT_W, 30 + charts * PLOT_H);
	plot_label(out, PLOT_L, 22, "start", title);
	for (unsigned i = 0; i < charts; i++)
		plot_chart(out, &series[firsts[i]], series, n, 30 + i * PLOT_H);
	fprintf(out, "</svg>\n%s", html ? "</body></html>\n" : "");
	return fclose(out) == 0 ? 0 : -errno;
}

/* Add a point to the series of that chart and name, which is created if needed. */
void
plot_point(struct plot_series *s, unsigned *n, const char *chart, const char *name,
	const char *unit, bool depth, double x, double y)
{
	unsigned i = 0;

	while (i < *n && (strcmp(s[i].chart, chart) != 0 || strcmp(s[i].name, name) != 0))
		i++;
	if (i == PLOT_MAX)
		return;
	if (i == *n) {
		snprintf(s[i].chart, sizeof(s[i].chart), "%s", chart);
		snprintf(s[i].name, sizeof(s[i].name), "%s", name);
		snprintf(s[i].unit, sizeof(s[i].unit), "%s", unit);
		snprintf(s[i].axis, sizeof(s[i].axis), "%s", depth ? "depth" : "bytes");
		(*n)++;
	}
	if (s[i].n < PERF_MAX_SIZES) {
		s[i].x[s[i].n] = x;
		s[i].y[s[i].n++] = y;
	}
}

/* The charts of a plain run: each test by size (or depth), with the raw ping-pong for latencies. */
int
plot_rows(const struct perf_opts *o, const struct perf_rows *rows)
{
	struct plot_series *s = calloc(PLOT_MAX, sizeof(*s));
	unsigned n = 0;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++) {
		const struct perf_row *row = &rows->row[i];
		double x = (double)(row->depth != 0 ? row->depth : row->size);

		plot_point(s, &n, row->test, row->label[0] != '\0' ? row->label : row->test,
			row->unit, row->depth != 0, x > 0 ? x : 1, row->value);
		if (row->raw_ns > 0 && strcmp(row->unit, "us") == 0)
			plot_point(s, &n, row->test, "raw cache line", "us", false, x > 0 ? x : 1,
				row->raw_ns / 1e3);
	}
	rc = plot_write(o->plot, rows->library, s, n);
	free(s);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plot_svg.c - charts as SVG, alone or within a page, in the colours that the reader prefers
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "plot.h"

#define SVG_W      760
#define SVG_H      380 /* without the legend */
#define SVG_L      70
#define SVG_R      24
#define SVG_T      40
#define SVG_B      50
#define SVG_LEGEND 18 /* a line of it */
#define SVG_SHORT  42 /* characters of a name; two such fit in a line */
#define SVG_COLORS 8

static const char *const svg_light[SVG_COLORS] = {
	"#1f5fa8", "#c4511d", "#2c8a4b", "#7a3f9d", "#8a6d1a", "#187c86", "#a8325e", "#555555"};
static const char *const svg_dark[SVG_COLORS] = {
	"#74aef0", "#f0915f", "#66c98c", "#c596e6", "#d9ba5c", "#58c8d3", "#f087ae", "#b4b4b4"};

void
plot_escape(FILE *out, const char *text)
{
	static const struct {
		char c;
		const char *as;
	} table[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

	for (; *text != '\0'; text++) {
		size_t i = 0;

		while (i < RTE_DIM(table) && table[i].c != *text)
			i++;
		if (i < RTE_DIM(table))
			fputs(table[i].as, out);
		else
			fputc((unsigned char)*text < ' ' && *text != '\n' ? ' ' : *text, out);
	}
}

static void
svg_colors(FILE *out, const char *paper, const char *ink, const char *grid, const char *const *colors)
{
	fprintf(out, ".paper{fill:%s}.plot text{fill:%s}.grid{stroke:%s}", paper, ink, grid);
	for (unsigned i = 0; i < SVG_COLORS; i++)
		fprintf(out, ".c%u{color:%s}", i, colors[i]);
}

void
plot_style(FILE *out)
{
	fputs("<style>.plot{font:12px sans-serif}", out);
	svg_colors(out, "#ffffff", "#222222", "#dddddd", svg_light);
	fputs("\n@media(prefers-color-scheme:dark){", out);
	svg_colors(out, "#15181c", "#d8dce0", "#343a40", svg_dark);
	fputs("}</style>\n", out);
}

static double
svg_x(const struct plot_frame *f, double v)
{
	return SVG_L + plot_x(f, v) * (SVG_W - SVG_L - SVG_R);
}

static double
svg_y(const struct plot_frame *f, double v)
{
	return f->top + SVG_H - SVG_B - plot_y(f, v) * (SVG_H - SVG_T - SVG_B);
}

static void
svg_label(FILE *out, double x, double y, const char *anchor, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	plot_escape(out, text);
	fputs("</text>\n", out);
}

static void
svg_grid_line(FILE *out, double x1, double y1, double x2, double y2)
{
	fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n", x1, y1,
		x2, y2);
}

static void
svg_grid_y(FILE *out, const struct plot_frame *f)
{
	double step = f->ylog ? 1 : plot_step(f->y1 - f->y0, 8);
	char text[32];

	for (double at = ceil(f->y0 / step) * step; at <= f->y1 + step * 1e-6; at += step) {
		double v = f->ylog ? pow(10, at) : fabs(at) < step * 1e-6 ? 0 : at, y = svg_y(f, v);

		svg_grid_line(out, SVG_L, y, SVG_W - SVG_R, y);
		snprintf(text, sizeof(text), "%g", v);
		svg_label(out, SVG_L - 6, y + 4, "end", text);
	}
}

static void
svg_tick_x(FILE *out, const struct plot_frame *f, double v, const char *text)
{
	double x = svg_x(f, v);

	svg_grid_line(out, x, f->top + SVG_T, x, f->top + SVG_H - SVG_B);
	svg_label(out, x, f->top + SVG_H - SVG_B + 18, "middle", text);
}

/* Bytes in powers of two, depths in powers of ten. */
static void
svg_grid_x(FILE *out, const struct plot_frame *f, bool bytes)
{
	int every = (int)((f->x1 - f->x0) / 11) + 1;
	char text[32];

	for (int e = (int)ceil(f->x0); bytes && e <= (int)f->x1; e += every) {
		report_size(text, sizeof(text), UINT64_C(1) << e);
		svg_tick_x(out, f, pow(2, e), text);
	}
	for (double v = 1; !bytes && v < 1e8; v *= 10) {
		if (log2(v) < f->x0 - 1e-9 || log2(v) > f->x1 + 1e-9)
			continue;
		snprintf(text, sizeof(text), "%.0f", v);
		svg_tick_x(out, f, v, text);
	}
}

/* Curve k of its chart: after SVG_COLORS curves the colours repeat, dashed. */
static void
svg_stroke(FILE *out, const struct plot_series *s, unsigned k)
{
	static const char *const dashes[] = {"", "7 3", "2 3", "9 3 2 3"};
	const char *dash = strncmp(s->name, "raw", 3) == 0 ? "5 4"
							   : dashes[k / SVG_COLORS % RTE_DIM(dashes)];

	fprintf(out, "class=\"c%u\" stroke=\"currentColor\" stroke-width=\"2\" fill=\"none\"",
		k % SVG_COLORS);
	if (dash[0] != '\0')
		fprintf(out, " stroke-dasharray=\"%s\"", dash);
}

static void
svg_curve(FILE *out, const struct plot_frame *f, const struct plot_series *s, unsigned k)
{
	fputs("<polyline ", out);
	svg_stroke(out, s, k);
	fputs(" points=\"", out);
	for (unsigned i = 0; i < s->n; i++)
		fprintf(out, "%.1f,%.1f ", svg_x(f, s->x[i]), svg_y(f, s->y[i]));
	fputs("\"/>\n", out);
	for (unsigned i = 0; i < s->n && (strncmp(s->name, "raw", 3) != 0 || s->n == 1); i++) {
		fprintf(out, "<circle class=\"c%u\" fill=\"currentColor\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\">"
			"<title>", k % SVG_COLORS, svg_x(f, s->x[i]), svg_y(f, s->y[i]));
		plot_escape(out, s->name);
		fprintf(out, ", %g: %g ", s->x[i], s->y[i]);
		plot_escape(out, s->unit);
		fputs("</title></circle>\n", out);
	}
}

static unsigned
svg_curves(const struct plot *p, const char *chart, unsigned *columns)
{
	unsigned n = 0;

	*columns = 2;
	for (unsigned i = 0; i < p->n; i++) {
		if (strcmp(p->s[i].chart, chart) != 0)
			continue;
		n++;
		if (strlen(p->s[i].name) > SVG_SHORT)
			*columns = 1;
	}
	return n;
}

static void
svg_legend(FILE *out, const struct plot_frame *f, const struct plot_series *s, unsigned k,
	unsigned columns)
{
	double x = SVG_L + k % columns * (SVG_W - SVG_L - SVG_R) / 2.0;
	double y = f->top + SVG_H + 8 + k / columns * SVG_LEGEND;

	fprintf(out, "<path d=\"M%.1f %.1fh24\" ", x, y - 4);
	svg_stroke(out, s, k);
	fputs("/>\n", out);
	svg_label(out, x + 32, y, "start", s->name);
}

static unsigned
svg_height(const struct plot *p, unsigned first)
{
	unsigned columns, n = svg_curves(p, p->s[first].chart, &columns);

	return SVG_H + 8 + (n + columns - 1) / columns * SVG_LEGEND;
}

static void
svg_chart(FILE *out, const struct plot *p, unsigned first, unsigned top)
{
	const struct plot_series *s = &p->s[first];
	struct plot_frame f = plot_bounds(p, s->chart);
	unsigned k = 0, columns;
	char text[96];

	f.top = top;
	svg_curves(p, s->chart, &columns);
	snprintf(text, sizeof(text), "%s, %s", s->chart, s->unit);
	svg_label(out, SVG_L, top + 22, "start", text);
	svg_grid_y(out, &f);
	svg_grid_x(out, &f, strcmp(s->axis, "bytes") == 0);
	svg_label(out, (SVG_L + SVG_W - SVG_R) / 2.0, top + SVG_H - 14, "middle", s->axis);
	for (unsigned i = first; i < p->n; i++) {
		if (strcmp(p->s[i].chart, s->chart) != 0)
			continue;
		svg_curve(out, &f, &p->s[i], k);
		svg_legend(out, &f, &p->s[i], k++, columns);
	}
}

static void
svg_open(FILE *out, unsigned height)
{
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 %d %u\" "
		"width=\"%d\" height=\"%u\">\n", SVG_W, height, SVG_W, height);
}

void
plot_svg(FILE *out, const struct plot *p, unsigned first)
{
	svg_open(out, svg_height(p, first));
	svg_chart(out, p, first, 0);
	fputs("</svg>\n", out);
}

static void
svg_all(FILE *out, const char *title, const struct plot *p)
{
	unsigned firsts[PLOT_MAX], charts = plot_charts(p, firsts), top = 30, height = top;

	for (unsigned i = 0; i < charts; i++)
		height += svg_height(p, firsts[i]) + 12;
	svg_open(out, height);
	plot_style(out);
	fputs("<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n", out);
	svg_label(out, SVG_L, 22, "start", title);
	for (unsigned i = 0; i < charts; top += svg_height(p, firsts[i++]) + 12)
		svg_chart(out, p, firsts[i], top);
	fputs("</svg>\n", out);
}

int
plot_write(const char *path, const char *title, const struct plot *p)
{
	bool html = strstr(path, ".html") != NULL;
	FILE *out = fopen(path, "w");

	if (out == NULL)
		return -errno;
	if (html) {
		fputs("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">"
		      "<meta name=\"color-scheme\" content=\"light dark\"><title>", out);
		plot_escape(out, title);
		fputs("</title></head><body>\n", out);
	}
	svg_all(out, title, p);
	fputs(html ? "</body></html>\n" : "", out);
	return fclose(out) == 0 ? 0 : -errno;
}

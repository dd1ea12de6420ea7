/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plot_text.c - charts in a terminal of 80x24: a letter for each curve
 */
#include <math.h>
#include <string.h>

#include "plot.h"

#define TEXT_W      80
#define TEXT_H      23 /* a line remains for the prompt */
#define TEXT_LEFT   9
#define TEXT_COLS   (TEXT_W - TEXT_LEFT - 2)
#define TEXT_LEGEND 6 /* lines; more curves than that share lines */

struct text_chart {
	const struct plot *p;
	const char *chart;
	struct plot_frame f;
	unsigned rows;
	char cell[TEXT_H][TEXT_COLS + 1];
};

static char
text_letter(unsigned k)
{
	return (char)(k < 26 ? 'a' + k : k < 52 ? 'A' + k - 26 : '#');
}

static void
text_put(struct text_chart *t, double x, double y, char letter)
{
	int column = (int)lround(plot_x(&t->f, x) * (TEXT_COLS - 1));
	int row = (int)lround((1 - plot_y(&t->f, y)) * (t->rows - 1));
	char *c;

	if (column < 0 || column >= TEXT_COLS || row < 0 || row >= (int)t->rows)
		return;
	c = &t->cell[row][column];
	*c = *c == ' ' || *c == letter ? letter : '*';
}

/* A curve: its points, and straight lines between them. */
static void
text_curve(struct text_chart *t, const struct plot_series *s, char letter)
{
	for (unsigned i = 0; i + 1 < s->n; i++) {
		double steps = 4.0 * TEXT_COLS / s->n;
		bool log_y = t->f.ylog && s->y[i] > 0 && s->y[i + 1] > 0;

		for (double k = 0; k < steps; k++) {
			double w = k / steps;

			text_put(t, s->x[i] * pow(s->x[i + 1] / s->x[i], w),
				log_y ? s->y[i] * pow(s->y[i + 1] / s->y[i], w)
				      : s->y[i] + (s->y[i + 1] - s->y[i]) * w, letter);
		}
	}
	text_put(t, s->x[s->n - 1], s->y[s->n - 1], letter);
}

/* The value beside a row: on a logarithmic axis at each decade, else at round ones. */
static void
text_value(const struct text_chart *t, unsigned r, char *out, size_t len)
{
	double step = (t->f.y1 - t->f.y0) / (t->rows - 1), v = t->f.y1 - r * step;
	double every = t->f.ylog ? 1 : plot_step(t->f.y1 - t->f.y0, t->rows / 3);
	double label = round(v / every) * every + 0.0; /* no -0 */

	out[0] = '\0';
	if (fabs(v - label) <= step / 2 && label - v > -step / 2)
		snprintf(out, len, "%g", t->f.ylog ? pow(10, label) : label);
}

static void
text_rows(FILE *out, const struct text_chart *t)
{
	for (unsigned r = 0; r < t->rows; r++) {
		char text[16], line[TEXT_COLS + 1];
		int end = snprintf(line, sizeof(line), "%s", t->cell[r]);

		text_value(t, r, text, sizeof(text));
		while (end > 0 && line[end - 1] == ' ')
			line[--end] = '\0';
		fprintf(out, "%*s |%s\n", TEXT_LEFT - 1, text, line);
	}
}

/* Bytes or depths under the axis, where there is room for them. */
static void
text_axis(FILE *out, const struct text_chart *t, const struct plot_series *s)
{
	bool bytes = strcmp(s->axis, "bytes") == 0;
	char line[TEXT_COLS + 1], text[24];
	int free_from = 0;

	memset(line, ' ', sizeof(line));
	line[TEXT_COLS] = '\0';
	for (unsigned i = 0; i < s->n; i++) {
		int at = (int)lround(plot_x(&t->f, s->x[i]) * (TEXT_COLS - 1)), n;

		report_size(text, sizeof(text), (uint64_t)s->x[i]);
		n = bytes ? (int)strlen(text) : snprintf(text, sizeof(text), "%.0f", s->x[i]);
		at = at + n > TEXT_COLS ? TEXT_COLS - n : at; /* the last ends with the axis */
		if (at < free_from)
			continue;
		memcpy(line + at, text, (size_t)n);
		free_from = at + n + 1;
	}
	fprintf(out, "%*s +%.*s\n", TEXT_LEFT - 1, "", TEXT_COLS,
		"-----------------------------------------------------------------------");
	fprintf(out, "%*s%s\n", TEXT_LEFT + 1, s->axis[0] == 'b' ? "bytes  " : "depth  ", line);
}

static unsigned
text_columns(unsigned curves)
{
	return (curves + TEXT_LEGEND - 1) / TEXT_LEGEND;
}

static void
text_legend(FILE *out, const struct text_chart *t, unsigned n)
{
	unsigned columns = text_columns(n), k = 0;
	int width = TEXT_W / (int)columns;

	for (unsigned i = 0; i < t->p->n; i++) {
		if (strcmp(t->p->s[i].chart, t->chart) != 0)
			continue;
		fprintf(out, "%c %-*.*s%s", text_letter(k), k % columns + 1 < columns ? width - 3 : 0,
			width - 3, t->p->s[i].name, (k + 1) % columns == 0 || k + 1 == n ? "\n" : " ");
		k++;
	}
}

static void
text_chart(FILE *out, const struct plot *p, unsigned first)
{
	struct text_chart t = {.p = p, .chart = p->s[first].chart, .f = plot_bounds(p, p->s[first].chart)};
	unsigned n = 0, k = 0;

	for (unsigned i = first; i < p->n; i++)
		n += strcmp(p->s[i].chart, t.chart) == 0;
	t.rows = TEXT_H - 3 - (n + text_columns(n) - 1) / text_columns(n);
	for (unsigned r = 0; r < t.rows; r++)
		memset(t.cell[r], ' ', TEXT_COLS);
	for (unsigned i = first; i < p->n; i++) {
		if (strcmp(p->s[i].chart, t.chart) == 0)
			text_curve(&t, &p->s[i], text_letter(k++));
	}
	fprintf(out, "%s, %s\n", t.chart, p->s[first].unit);
	text_rows(out, &t);
	text_axis(out, &t, &p->s[first]);
	text_legend(out, &t, n);
}

void
plot_print(FILE *out, const struct plot *p)
{
	unsigned firsts[PLOT_MAX], charts = plot_charts(p, firsts);

	for (unsigned i = 0; i < charts; i++) {
		if (i > 0)
			fputc('\n', out);
		text_chart(out, p, firsts[i]);
	}
}

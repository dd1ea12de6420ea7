/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plot_runs.c - the results of earlier runs in one plot: of commits, libraries, devices
 */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

/* The name of "before.json" is "before", and so is that of "before/data.json" of a report. */
static void
runs_name(const char *path, char *out, size_t len)
{
	char copy[4096], *base, *dot;

	snprintf(copy, sizeof(copy), "%s", path);
	base = basename(copy);
	if (strcmp(base, "data.json") == 0 && strchr(path, '/') != NULL) {
		snprintf(copy, sizeof(copy), "%s", path);
		base = basename(dirname(copy));
	}
	dot = strrchr(base, '.');
	if (dot != NULL && strcmp(dot, ".json") == 0)
		*dot = '\0';
	snprintf(out, len, "%.40s", base);
}

static void
runs_add(struct plot *p, const struct perf_rows *rows, const char *name)
{
	char curve[96];

	snprintf(curve, sizeof(curve), "%.40s: %.50s", name, rows->library);
	for (size_t i = 0; i < rows->n; i++)
		plot_add_point(p, curve, &rows->row[i], rows->row[i].value);
}

/* The file of a comparison holds two runs. */
static int
runs_file(struct plot *p, const struct perf_opts *o, unsigned at)
{
	struct perf_rows rows[2] = {{.n = 0}, {.n = 0}};
	char name[64], numbered[80];
	unsigned same = 1, n = 0;
	int rc = rows_load_all(rows, &n, o->runs[at]);

	runs_name(o->runs[at], name, sizeof(name));
	for (unsigned i = 0; i < at; i++) {
		char other[64];

		runs_name(o->runs[i], other, sizeof(other));
		same += strcmp(name, other) == 0;
	}
	snprintf(numbered, sizeof(numbered), same > 1 ? "%s (%u)" : "%s", name, same);
	for (unsigned i = 0; i < n; i++)
		runs_add(p, &rows[i], numbered);
	rows_free(&rows[0]);
	rows_free(&rows[1]);
	return rc;
}

static int
runs_draw(const struct perf_opts *o, const struct plot *p)
{
	int rc = 0;

	if (p->n == 0 || p->full) {
		fprintf(stderr, p->full ? "commperf: more than %d curves, or %d points of one; plot fewer files\n"
					: "commperf: the files have no results\n", PLOT_MAX, PERF_MAX_SIZES);
		return 1;
	}
	if (o->plot == NULL)
		plot_print(stdout, p);
	else
		rc = plot_write(o->plot, "commperf", p);
	if (rc != 0)
		fprintf(stderr, "commperf: %s: %s\n", o->plot, strerror(-rc));
	return rc != 0;
}

int
plot_runs(const struct perf_opts *o)
{
	struct plot p;
	int rc = plot_open(&p);

	for (unsigned i = 0; i < o->n_runs && rc == 0; i++)
		rc = runs_file(&p, o, i);
	if (rc == 0)
		rc = runs_draw(o, &p);
	plot_close(&p);
	return rc != 0;
}

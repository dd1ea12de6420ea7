/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * report.c - results for people and for programs: a table, CSV, JSON, and the progress line
 */
#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page.h"

#define REPORT_WIDTH 80 /* columns of a terminal */

static FILE *report_line_shown; /* where a line waits to be replaced */
static char report_last_head[64];

/* A line that the next one replaces; an empty text removes it. */
static void
report_line(FILE *out, const char *text)
{
	if (report_line_shown != NULL && (report_line_shown != out || text[0] == '\0')) {
		fputs("\r\033[K", report_line_shown);
		fflush(report_line_shown);
	}
	report_line_shown = text[0] != '\0' ? out : NULL;
	if (text[0] == '\0')
		return;
	fprintf(out, "\r\033[K%s", text);
	fflush(out);
}

/* The one line on stderr of the process that prints the table; an empty text removes it. */
void
report_progress(const struct perf_opts *o, const char *fmt, ...)
{
	char text[REPORT_WIDTH];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (o->progress || text[0] == '\0')
		report_line(stderr, text);
}

/* Show the rate of the last second: on a terminal in one line that changes, else in a new line. */
void
report_live(const struct perf_opts *o, const struct perf_live *live)
{
	char text[512], size[24], value[24];

	if (o->quiet)
		return;
	report_size(size, sizeof(size), live->size);
	report_number(value, sizeof(value), live->value);
	snprintf(text, sizeof(text), "# %s %s, %.1f of %g s: %s %s", live->test, size, live->at, live->of, value,
		live->unit);
	if (isatty(STDOUT_FILENO)) {
		report_line(stdout, text);
		return;
	}
	puts(text);
	fflush(stdout);
}

/* A line on stderr; it removes the one that waits to be replaced. */
void
report_say(const char *fmt, ...)
{
	va_list ap;

	report_line(stderr, "");
	fputs("commperf: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* 8, 64k, 4m: the short form where it is exact. */
void
report_size(char *out, size_t len, uint64_t size)
{
	static const char unit[] = {'\0', 'k', 'm', 'g'};
	unsigned i = 0;

	while (i < 3 && size >= 1024 && size % 1024 == 0) {
		size /= 1024;
		i++;
	}
	snprintf(out, len, "%llu%c", (unsigned long long)size, unit[i]);
}

void
report_at(char *out, size_t len, const struct perf_row *row)
{
	if (row->depth != 0)
		snprintf(out, len, "%llu", (unsigned long long)row->depth);
	else
		report_size(out, len, row->size);
}

void
report_head(const struct perf_opts *o, const char *library)
{
	if (o->quiet)
		return;
	report_progress(o, "%s", "");
	printf("# library %.50s, cores %d and %d\n", library, o->cpus[0], o->cpus[o->n_cpus > 1]);
	if (o->verify || o->mem >= PERF_MEM_MAPPED)
		printf("#%s%s\n", o->mem == PERF_MEM_MAPPED ? " mapped memory" : o->mem == PERF_MEM_EAL ? " EAL memory" : "",
			o->verify ? " verified: not for comparison" : "");
	fflush(stdout);
}

/* Four digits or all before the point; from a million on in thousands (k), then millions (M). */
void
report_number(char *out, size_t len, double v)
{
	double a = v < 0 ? -v : v;

	if (a >= 999999.5)
		snprintf(out, len, "%.0f%s", v / (a >= 1e9 ? 1e6 : 1e3), a >= 1e9 ? "M" : "k");
	else
		snprintf(out, len, "%.*f", a >= 999.95 ? 0 : a >= 99.995 ? 1 : a >= 9.9995 ? 2 : 3, v);
}

/* The layout of a table line. */
struct report_shape {
	int label;  /* columns of the label; 0: it is above the table */
	int column; /* columns of each figure */
	bool short_of_room;
};

#define REPORT_FIXED 15 /* size and n */

static struct report_shape
report_shape(const struct perf_row *row)
{
	const struct perf_test *t = perf_test_find(row->test);
	int n = (int)row->n_fields + (row->raw_ns > 0), label = (int)strlen(row->label);
	struct report_shape shape = {.label = label == 0 ? 0 : label <= 6 ? 7 : 19};

	if (t != NULL && (t->flags & (PERF_CCI | PERF_TYPED)) && (t->flags & PERF_SIZED))
		shape.label = 0; /* all lines have the same */
	shape.short_of_room = REPORT_FIXED + shape.label + 7 * n > REPORT_WIDTH;
	n -= shape.short_of_room;
	shape.column = n > 0 ? (REPORT_WIDTH - 1 - REPORT_FIXED - shape.label) / n : 0;
	shape.column = shape.column < 7 ? 7 : RTE_MIN(shape.column, 10);
	return shape;
}

/* The files have all fields; a table with many columns has no room for this one. */
static bool
report_leaves(const struct perf_row *row, const struct report_shape *shape, unsigned i)
{
	return shape->short_of_room && strcmp(row->fields[i].name, "p99.9") == 0;
}

static void
report_heading(const struct perf_row *row, const struct report_shape *shape)
{
	const char *above = shape->label == 0 ? row->label : "";
	char head[sizeof(report_last_head)];

	snprintf(head, sizeof(head), "%s, %s%s%s", row->test, row->unit, above[0] != '\0' ? ", " : "",
		above);
	if (strcmp(report_last_head, head) == 0)
		return;
	snprintf(report_last_head, sizeof(report_last_head), "%s", head);
	printf("\n%s\n%-*s%6s %8s", head, shape->label, "", row->depth != 0 ? "depth" : "size", "n");
	for (unsigned i = 0; i < row->n_fields; i++) {
		if (!report_leaves(row, shape, i))
			printf("%*s", shape->column, row->fields[i].name);
	}
	printf("%*s\n", row->raw_ns > 0 ? shape->column : 0, row->raw_ns > 0 ? "raw ns" : "");
}

/* One line of the table; a heading when the test changes. */
void
report_row(const struct perf_opts *o, const struct perf_row *row)
{
	struct report_shape shape = report_shape(row);
	char text[24], n[24];

	report_progress(o, "%s", "");
	if (o->quiet)
		return;
	report_heading(row, &shape);
	if (row->n < 100000000)
		snprintf(n, sizeof(n), "%llu", (unsigned long long)row->n);
	else
		report_number(n, sizeof(n), (double)row->n);
	report_at(text, sizeof(text), row);
	printf("%-*s%6s %8s", shape.label, shape.label != 0 ? row->label : "", text, n);
	for (unsigned i = 0; i < row->n_fields; i++) {
		if (report_leaves(row, &shape, i))
			continue;
		report_number(text, sizeof(text), row->fields[i].value);
		printf("%*s", shape.column, text);
	}
	if (row->raw_ns > 0) {
		report_number(text, sizeof(text), row->raw_ns);
		printf("%*s", shape.column, text);
		if (row->raw_end_ns > 1.5 * row->raw_ns || row->raw_ns > 1.5 * row->raw_end_ns)
			printf("+");
	}
	printf("\n");
	if (row->errors != 0)
		printf("%*llu messages WRONG\n", REPORT_FIXED, (unsigned long long)row->errors);
	fflush(stdout);
}

static const double *
report_field(const struct perf_row *row, const char *name)
{
	for (unsigned i = 0; i < row->n_fields; i++) {
		if (strcmp(row->fields[i].name, name) == 0)
			return &row->fields[i].value;
	}
	return NULL;
}

#define REPORT_MAX_NAMES 64

/* Every field name of any row, in the order of first appearance. */
static unsigned
report_names(const struct perf_rows *rows, const char **names)
{
	unsigned n = 0;

	for (size_t r = 0; r < rows->n; r++) {
		for (unsigned f = 0; f < rows->row[r].n_fields; f++) {
			const char *name = rows->row[r].fields[f].name;
			unsigned i = 0;

			while (i < n && strcmp(names[i], name) != 0)
				i++;
			if (i == n && n < REPORT_MAX_NAMES)
				names[n++] = name;
		}
	}
	return n;
}

static int
report_csv(const char *path, const struct perf_rows *rows)
{
	const char *names[REPORT_MAX_NAMES];
	unsigned n = report_names(rows, names);
	bool out = strcmp(path, "-") == 0;
	FILE *f = out ? stdout : fopen(path, "w");

	if (f == NULL)
		return -errno;
	fprintf(f, "test,label,size,depth,n,unit,value,raw_ns,raw_end_ns,errors");
	for (unsigned i = 0; i < n; i++)
		fprintf(f, ",%s", names[i]);
	fprintf(f, "\n");
	for (size_t r = 0; r < rows->n; r++) {
		const struct perf_row *row = &rows->row[r];

		fprintf(f, "%s,%s,%llu,%llu,%llu,%s,%.9g,%.9g,%.9g,%llu", row->test, row->label,
			(unsigned long long)row->size, (unsigned long long)row->depth,
			(unsigned long long)row->n, row->unit, row->value, row->raw_ns,
			row->raw_end_ns, (unsigned long long)row->errors);
		for (unsigned i = 0; i < n; i++) {
			const double *v = report_field(row, names[i]);

			if (v != NULL)
				fprintf(f, ",%.9g", *v);
			else
				fprintf(f, ",");
		}
		fprintf(f, "\n");
	}
	return (out ? fflush(f) : fclose(f)) == 0 ? 0 : -errno;
}

/* "-" is the standard output. */
int
report_json_file(const json_t *j, const char *path)
{
	if (j == NULL)
		return -1;
	return strcmp(path, "-") == 0 ? json_dumpf(j, stdout, JSON_INDENT(1))
				      : json_dump_file(j, path, JSON_INDENT(1));
}

static int
report_json(const struct perf_opts *o, const struct perf_rows *rows)
{
	json_t *j = rows_to_json(o, rows);
	int rc = report_json_file(j, o->json);

	json_decref(j);
	return rc == 0 ? 0 : -EIO;
}

static int
report_written(const char *path, int rc)
{
	if (rc != 0)
		fprintf(stderr, "commperf: %s: %s\n", path, strerror(-rc));
	return rc;
}

/* --plot and --report show the same curves. */
static int
report_charts(const struct perf_opts *o, const struct perf_rows *rows)
{
	struct plot p;
	int rc = plot_open(&p), one;

	if (rc != 0)
		return report_written(o->plot != NULL ? o->plot : o->report, rc);
	plot_add_rows(&p, rows);
	if (o->plot != NULL)
		rc = report_written(o->plot, plot_write(o->plot, rows->library, &p));
	if (o->report != NULL) {
		one = report_written(o->report, report_dir_write(o, rows, &p, rows_to_json(o, rows)));
		rc = one != 0 ? one : rc;
	}
	plot_close(&p);
	return rc;
}

/* Check that the requested files can be written, before hours are spent; 0 or -errno. */
int
report_check(const struct perf_opts *o)
{
	const char *const paths[] = {o->csv, o->json, o->plot};

	for (size_t i = 0; i < RTE_DIM(paths); i++) {
		char dir[4096];
		int rc;

		if (paths[i] == NULL || strcmp(paths[i], "-") == 0)
			continue;
		rc = access(paths[i], W_OK);
		if (rc != 0 && errno == ENOENT) {
			snprintf(dir, sizeof(dir), "%s", paths[i]);
			rc = access(dirname(dir), W_OK | X_OK);
		}
		if (rc == 0)
			continue;
		rc = -errno;
		fprintf(stderr, "commperf: %s: %s\n", paths[i], strerror(-rc));
		return rc;
	}
	return o->report != NULL ? report_dir_open(o) : 0;
}

/* Write the files of --csv, --json, --plot and --report; 0 or -errno of the last failure. */
int
report_files(const struct perf_opts *o, const struct perf_rows *rows)
{
	int rc = 0, one;

	if (o->csv != NULL)
		rc = report_written(o->csv, report_csv(o->csv, rows));
	if (o->json != NULL && (one = report_json(o, rows)) != 0) {
		fprintf(stderr, "commperf: cannot write %s\n", o->json);
		rc = one;
	}
	if ((o->plot != NULL || o->report != NULL) && (one = report_charts(o, rows)) != 0)
		rc = one;
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * report.c - results for people and for programs: a table, CSV, JSON, and the progress line
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static bool report_line_shown;
static char report_last_test[16];

/* The one line on stderr; an empty text removes it. */
void
report_progress(const struct perf_opts *o, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	if (!o->progress)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (text[0] == '\0' && !report_line_shown)
		return;
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	report_line_shown = text[0] != '\0';
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
report_head(const struct perf_opts *o, const char *library)
{
	if (!o->quiet)
		printf("# library %s, cores %d and %d%s%s\n", library, o->cpus[0],
			o->cpus[o->n_cpus > 1], o->verify ? ", verified: not for comparison" : "",
			o->mapped ? ", mapped memory" : "");
	fflush(stdout);
}

static void
report_number(double v)
{
	double a = v < 0 ? -v : v;

	printf(" %10.*f", a >= 100000 ? 0 : a >= 100 ? 1 : a >= 10 ? 2 : 3, v);
}

/* One line of the table; a heading when the test changes. */
void
report_row(const struct perf_opts *o, const struct perf_row *row)
{
	bool labelled = row->label[0] != '\0';
	char size[24];

	if (o->quiet)
		return;
	if (strcmp(report_last_test, row->test) != 0) {
		snprintf(report_last_test, sizeof(report_last_test), "%s", row->test);
		printf("\n%-12s %s%7s %9s", row->test, labelled ? "                   " : "",
			row->depth != 0 ? "depth" : "size", "n");
		for (unsigned i = 0; i < row->n_fields; i++)
			printf(" %10s", row->fields[i].name);
		printf("%s\n", row->raw_ns > 0 ? "     raw ns" : "");
	}
	report_size(size, sizeof(size), row->size);
	if (row->depth != 0)
		snprintf(size, sizeof(size), "%llu", (unsigned long long)row->depth);
	printf("%-12s ", row->unit);
	if (labelled)
		printf("%-19s", row->label);
	printf("%7s %9llu", size, (unsigned long long)row->n);
	for (unsigned i = 0; i < row->n_fields; i++)
		report_number(row->fields[i].value);
	if (row->raw_ns > 0) {
		report_number(row->raw_ns);
		if (row->raw_end_ns > 1.5 * row->raw_ns || row->raw_ns > 1.5 * row->raw_end_ns)
			printf("  moved to %.0f", row->raw_end_ns);
	}
	if (row->errors != 0)
		printf("  %llu WRONG", (unsigned long long)row->errors);
	printf("\n");
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

/* Write what --csv, --json and --plot ask for; 0 or -errno of the first that failed. */
int
report_files(const struct perf_opts *o, const struct perf_rows *rows)
{
	int rc = 0, one;

	if (o->csv != NULL && (one = report_csv(o->csv, rows)) != 0) {
		fprintf(stderr, "commperf: %s: %s\n", o->csv, strerror(-one));
		rc = one;
	}
	if (o->json != NULL && (one = report_json(o, rows)) != 0) {
		fprintf(stderr, "commperf: cannot write %s\n", o->json);
		rc = one;
	}
	if (o->plot != NULL && (one = plot_rows(o, rows)) != 0) {
		fprintf(stderr, "commperf: %s: %s\n", o->plot, strerror(-one));
		rc = one;
	}
	return rc;
}

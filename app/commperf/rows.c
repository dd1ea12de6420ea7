/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rows.c - the list of results: grown, reduced over repetitions, written to and read from JSON
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define ROWS_MAX_VALUE 1e15 /* of a number in a file */

/* Append a copy. Returns it (valid until the next add), or NULL without memory. */
struct perf_row *
rows_add(struct perf_rows *rows, const struct perf_row *row)
{
	if (rows->n == rows->room) {
		size_t room = rows->room ? 2 * rows->room : 64;
		struct perf_row *p = realloc(rows->row, room * sizeof(*p));

		if (p == NULL)
			return NULL;
		rows->row = p;
		rows->room = room;
	}
	rows->row[rows->n] = *row;
	return &rows->row[rows->n++];
}

void
rows_free(struct perf_rows *rows)
{
	free(rows->row);
	memset(rows, 0, sizeof(*rows));
}

bool
rows_same_key(const struct perf_row *a, const struct perf_row *b)
{
	return strcmp(a->test, b->test) == 0 && strcmp(a->label, b->label) == 0 &&
	       a->size == b->size && a->depth == b->depth;
}

static int
rows_cmp_value(const void *a, const void *b)
{
	const struct perf_row *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

/* Of the rows from first on, keep one of each key: the best, or the (lower) median by value. */
void
rows_reduce(struct perf_rows *rows, size_t first, bool best)
{
	size_t n = rows->n - first, out = 0;
	struct perf_row *in, *group;

	if (n < 2)
		return;
	in = malloc(2 * n * sizeof(*in));
	if (in == NULL)
		return;
	group = in + n;
	memcpy(in, rows->row + first, n * sizeof(*in));
	for (size_t i = 0; i < n; i++) {
		uint64_t errors = 0;
		size_t g = 0, take;
		bool seen = false;

		for (size_t j = 0; j < i && !seen; j++)
			seen = rows_same_key(&in[j], &in[i]);
		if (seen)
			continue;
		for (size_t j = i; j < n; j++) {
			if (!rows_same_key(&in[j], &in[i]))
				continue;
			errors += in[j].errors;
			group[g++] = in[j];
		}
		qsort(group, g, sizeof(*group), rows_cmp_value);
		if (best)
			take = group[0].higher_better ? g - 1 : 0;
		else
			take = group[0].higher_better ? g / 2 : (g - 1) / 2;
		rows->row[first + out] = group[take];
		rows->row[first + out].errors = errors;
		out++;
	}
	rows->n = first + out;
	free(in);
}

static int
rows_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
rows_median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), rows_cmp);
	return n == 0 ? 0 : n & 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static json_t *
row_to_json(const struct perf_row *row)
{
	json_t *j = json_pack("{s:s s:s s:I s:I s:I s:f s:s s:s s:f s:f s:I}", "test", row->test,
		"label", row->label, "size", (json_int_t)row->size, "depth", (json_int_t)row->depth,
		"n", (json_int_t)row->n, "value", row->value, "unit", row->unit, "better",
		row->higher_better ? "higher" : "lower", "raw_ns", row->raw_ns, "raw_end_ns",
		row->raw_end_ns, "errors", (json_int_t)row->errors);
	json_t *fields = json_object();

	for (unsigned i = 0; i < row->n_fields; i++)
		json_object_set_new(fields, row->fields[i].name, json_real(row->fields[i].value));
	json_object_set_new(j, "fields", fields);
	return j;
}

json_t *
rows_to_json(const struct perf_opts *o, const struct perf_rows *rows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->n; i++)
		json_array_append_new(list, row_to_json(&rows->row[i]));
	return json_pack("{s:s s:o s:o}", "library", rows->library, "options", opts_to_json(o),
		"rows", list);
}

static void
row_copy_text(char *to, size_t room, const json_t *j)
{
	const char *text = json_string_value(j);

	snprintf(to, room, "%s", text != NULL ? text : "");
}

/* Read a whole number from 0 to max. */
static int
row_whole(const json_t *j, const char *key, uint64_t max, uint64_t *out)
{
	json_int_t v = json_integer_value(json_object_get(j, key));

	*out = (uint64_t)v;
	return v >= 0 && (uint64_t)v <= max ? 0 : -EINVAL;
}

static int
row_number(const json_t *j, const char *key, double *out)
{
	*out = json_number_value(json_object_get(j, key));
	return fabs(*out) <= ROWS_MAX_VALUE ? 0 : -EINVAL;
}

/* @param key the name of the value */
static int
row_from_json(struct perf_row *row, const json_t *j, const char *key)
{
	const char *name;
	json_t *value, *fields = json_object_get(j, "fields");

	memset(row, 0, sizeof(*row));
	if (!json_is_object(j) || !json_is_number(json_object_get(j, key)))
		return -EINVAL;
	row_copy_text(row->test, sizeof(row->test), json_object_get(j, "test"));
	row_copy_text(row->label, sizeof(row->label), json_object_get(j, "label"));
	row_copy_text(row->unit, sizeof(row->unit), json_object_get(j, "unit"));
	if (row_whole(j, "size", UINT64_C(1) << 32, &row->size) != 0 ||
		row_whole(j, "depth", UINT64_C(1) << 32, &row->depth) != 0 ||
		row_whole(j, "n", INT64_MAX, &row->n) != 0 || row_whole(j, "errors", INT64_MAX, &row->errors) != 0)
		return -EINVAL;
	if (row_number(j, key, &row->value) != 0 || row_number(j, "raw_ns", &row->raw_ns) != 0 ||
		row_number(j, "raw_end_ns", &row->raw_end_ns) != 0)
		return -EINVAL;
	name = json_string_value(json_object_get(j, "better"));
	row->higher_better = name != NULL && strcmp(name, "higher") == 0;
	json_object_foreach(fields, name, value)
		perf_row_field(row, name, json_number_value(value));
	return 0;
}

/* Append the rows of a file; library and key are its names of the library and of a value. 0 or -errno. */
static int
rows_from_json(struct perf_rows *rows, const json_t *j, const char *library, const char *key)
{
	struct perf_row row;
	json_t *item;
	size_t i;
	int rc = json_is_array(json_object_get(j, "rows")) ? 0 : -EINVAL;

	row_copy_text(rows->library, sizeof(rows->library), json_object_get(j, library));
	json_array_foreach(json_object_get(j, "rows"), i, item)
	{
		rc = row_from_json(&row, item, key);
		if (rc == 0 && rows_add(rows, &row) == NULL)
			rc = -ENOMEM;
		if (rc != 0)
			break;
	}
	return rc;
}

/* Read a file that --json wrote and append its rows; 0 or -errno. */
int
rows_load(struct perf_rows *rows, const char *path)
{
	json_t *j = json_load_file(path, 0, NULL);
	int rc = j != NULL ? rows_from_json(rows, j, "library", "value") : -EINVAL;

	json_decref(j);
	return rc;
}

/*
 * Read a file that --json or a report wrote, of a run or of a comparison, which has two lists
 * of rows. @return 0, or -errno after an error was printed
 */
int
rows_load_all(struct perf_rows rows[2], unsigned *n, const char *path)
{
	json_error_t why;
	json_t *j = json_load_file(path, 0, &why);
	int rc;

	if (j == NULL) {
		fprintf(stderr, "commperf: %s: %s\n", path, why.text);
		return -EINVAL;
	}
	*n = json_is_string(json_object_get(j, "first")) ? 2 : 1;
	rc = *n == 1 ? rows_from_json(&rows[0], j, "library", "value")
		     : rows_from_json(&rows[0], j, "first", "first");
	if (rc == 0 && *n == 2)
		rc = rows_from_json(&rows[1], j, "second", "second");
	if (rc != 0)
		fprintf(stderr, "commperf: %s: no results of commperf\n", path);
	json_decref(j);
	return rc;
}

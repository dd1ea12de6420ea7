/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * report_dir.c - the folder of a report: the results, the machine, the library and its settings
 *
 * Design notes
 * - commperf knows a library by its public functions only. For the build, devices and settings of
 *   ours it runs pollux_info in the same environment.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "page.h"

#define REPORT_INFO_S 30.0

static json_t *report_machine, *report_info;

static void
report_path(const struct perf_opts *o, const char *name, char *out, size_t len)
{
	snprintf(out, len, "%s/%s", o->report, name);
}

json_t *
page_string(const char *text)
{
	json_t *j = json_string(text);
	char copy[4096];

	if (j != NULL)
		return j;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = copy; *p != '\0'; p++)
		*p = (unsigned char)*p < 0x80 ? *p : '?';
	return json_string(copy);
}

/* The output of pollux_info, or NULL without one. */
static json_t *
report_ask(const struct perf_opts *o)
{
	struct child_args a = {.n = 0};
	char program[4096], path[4200];
	struct child_how how = {.out = path, .cpu = -1};
	json_t *info = NULL;

	child_find_program("pollux_info", program, sizeof(program));
	report_path(o, "pollux_info.json", path, sizeof(path));
	child_arg(&a, "%s", program);
	child_arg(&a, "--json");
	if (child_finish(child_start(&a, &how), place_now() + REPORT_INFO_S) == 0)
		info = json_load_file(path, 0, NULL);
	if (info == NULL)
		fprintf(stderr, "commperf: the report has no settings: %s says nothing\n", program);
	unlink(path);
	child_args_free(&a);
	return info;
}

int
report_dir_open(const struct perf_opts *o)
{
	struct stat st;
	int rc = mkdir(o->report, 0777) == 0 || errno == EEXIST ? 0 : -errno;

	if (rc == 0 && (stat(o->report, &st) != 0 || !S_ISDIR(st.st_mode)))
		rc = -ENOTDIR;
	if (rc == 0 && access(o->report, W_OK | X_OK) != 0)
		rc = -errno;
	if (rc != 0) {
		fprintf(stderr, "commperf: %s: %s\n", o->report, strerror(-rc));
		return rc;
	}
	report_machine = machine_facts(o);
	if (strstr(perf_backend_ucp.version(), "pollux") != NULL)
		report_info = report_ask(o);
	return 0;
}

static json_t *
report_command(const struct perf_opts *o)
{
	json_t *list = json_array();

	for (int i = 0; i < o->argc; i++)
		json_array_append_new(list, page_string(o->argv[i]));
	return list;
}

/* The time of a cache line from core to core, over all lines of the results. */
static void
report_line_ns(const struct perf_rows *rows, json_t *machine)
{
	double min = 0, max = 0;

	for (size_t i = 0; i < rows->n; i++) {
		double ns = rows->row[i].raw_ns;

		if (ns > 0 && (min <= 0 || ns < min))
			min = ns;
		max = ns > max ? ns : max;
	}
	if (max > 0)
		json_object_set_new(machine, "cache_line_from_core_to_core_ns",
			json_sprintf("%.1f to %.1f", min, max));
}

int
report_dir_write(const struct perf_opts *o, const struct perf_rows *rows, const struct plot *p,
	json_t *data)
{
	char path[4200];
	int rc;

	if (data == NULL)
		return -ENOMEM;
	report_line_ns(rows, report_machine);
	json_object_set_new(data, "command", report_command(o));
	json_object_set(data, "machine", report_machine);
	if (report_info != NULL)
		json_object_set(data, "pollux_info", report_info);
	report_path(o, "data.json", path, sizeof(path));
	rc = report_json_file(data, path) == 0 ? 0 : -EIO;
	report_path(o, "index.html", path, sizeof(path));
	if (rc == 0)
		rc = page_write(path, data, rows, p);
	json_decref(data);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * page.c - the page of a report: one file that loads nothing else
 */
#include <errno.h>
#include <string.h>

#include "page.h"

static const char page_style[] =
	"<style>\n"
	":root{color-scheme:light dark;--paper:#fff;--ink:#222;--soft:#666;--line:#ddd;--head:#f4f5f7}\n"
	"@media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#d8dce0;--soft:#98a0a8;"
	"--line:#343a40;--head:#1f242a}}\n"
	"body{background:var(--paper);color:var(--ink);font:15px/1.45 sans-serif;max-width:800px;"
	"margin:24px auto;padding:0 20px}\n"
	"h1{font-size:22px;margin:0 0 4px}h2{font-size:18px;margin:32px 0 8px}\n"
	"p{margin:4px 0;color:var(--soft)}code{overflow-wrap:anywhere;color:var(--ink)}\n"
	".wide{overflow-x:auto}svg{max-width:100%;height:auto;margin:8px 0}\n"
	"table{border-collapse:collapse;font-size:13px;margin:8px 0}\n"
	"th,td{padding:3px 10px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}\n"
	"th{color:var(--soft);font-weight:600;white-space:nowrap}\n"
	".num th,.num td{text-align:right;padding-left:10px;padding-right:2px;"
	"font-variant-numeric:tabular-nums}\n"
	".num .t{text-align:left;padding-left:0}.bad{color:#c22}\n"
	"</style>\n";

static void
page_cell(FILE *f, const char *kind, const char *text)
{
	fprintf(f, "<%s>", kind);
	plot_escape(f, text);
	fprintf(f, "</%s>", kind);
}

static void
page_value(FILE *f, const json_t *v)
{
	const json_t *item;
	size_t i;

	if (json_is_string(v))
		plot_escape(f, json_string_value(v));
	else if (json_is_integer(v))
		fprintf(f, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		fprintf(f, "%g", json_real_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "yes" : "no", f);
	json_array_foreach(v, i, item) {
		fputs(i > 0 ? ", " : "", f);
		page_value(f, item);
	}
}

/* A row for each name and value; a name has spaces where the JSON has "_". */
static void
page_object(FILE *f, const json_t *object)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)object, key, v) {
		char name[64];

		if (json_is_object(v) || json_is_null(v))
			continue;
		snprintf(name, sizeof(name), "%s", key);
		for (char *p = name; *p != '\0'; p++)
			*p = *p == '_' ? ' ' : *p;
		fputs("<tr>", f);
		page_cell(f, "th", name);
		fputs("<td>", f);
		page_value(f, v);
		fputs("</td></tr>\n", f);
	}
}

static const char *
page_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static void
page_devices(FILE *f, const json_t *list)
{
	const json_t *d;
	size_t i;

	fputs("<h2>Devices</h2>\n<table><tr><th>device</th><th>port</th><th>state</th><th>used by workers</th></tr>\n", f);
	json_array_foreach(list, i, d) {
		const char *why = page_text(d, "reason");

		fputs("<tr>", f);
		page_cell(f, "td", page_text(d, "name"));
		page_cell(f, "td", page_text(d, "port"));
		fputs("<td>", f);
		plot_escape(f, page_text(d, "state"));
		fputs(why[0] != '\0' ? ": " : "", f);
		plot_escape(f, why);
		fprintf(f, "</td><td>%s</td></tr>\n", json_is_true(json_object_get(d, "used")) ? "yes" : "no");
	}
	fputs("</table>\n", f);
}

static void
page_settings(FILE *f, const json_t *list)
{
	static const char *const keys[] = {"name", "value", "source", "default", "unit"};
	const json_t *s;
	size_t i, changed = 0;

	fputs("<h2>Settings that are not at their default</h2>\n<table><tr><th>setting</th><th>value</th>"
	      "<th>from</th><th>default</th><th>unit</th></tr>\n", f);
	json_array_foreach(list, i, s) {
		if (strcmp(page_text(s, "source"), "default") == 0)
			continue;
		changed++;
		fputs("<tr>", f);
		for (size_t k = 0; k < RTE_DIM(keys); k++)
			page_cell(f, "td", page_text(s, keys[k]));
		fputs("</tr>\n", f);
	}
	fprintf(f, "</table>\n<p>%zu of %zu settings.</p>\n", changed, json_array_size(list));
}

static void
page_environment(FILE *f, const json_t *list)
{
	const json_t *e;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	fputs("<h2>Environment</h2>\n", f);
	json_array_foreach(list, i, e) {
		fputs("<p><code>", f);
		plot_escape(f, json_string_value(e));
		fputs("</code></p>\n", f);
	}
}

static void
page_library(FILE *f, const json_t *info)
{
	if (info == NULL)
		return;
	fputs("<h2>Library</h2>\n<table>\n", f);
	page_object(f, json_object_get(info, "build"));
	fputs("</table>\n", f);
	page_devices(f, json_object_get(info, "devices"));
	page_settings(f, json_object_get(info, "settings"));
	page_environment(f, json_object_get(info, "environment"));
}

static void
page_heading(FILE *f, const struct perf_row *row, bool labels)
{
	fputs("<tr>", f);
	if (labels)
		fputs("<th class=\"t\">kind</th>", f);
	page_cell(f, "th", row->depth != 0 ? "depth" : "size");
	page_cell(f, "th", "n");
	for (unsigned i = 0; i < row->n_fields; i++)
		page_cell(f, "th", row->fields[i].name);
	fputs(row->raw_ns > 0 ? "<th>raw ns</th></tr>\n" : "</tr>\n", f);
}

static void
page_number(FILE *f, double v)
{
	char text[24];

	report_number(text, sizeof(text), v);
	page_cell(f, "td", text);
}

static void
page_row(FILE *f, const struct perf_row *row, bool labels)
{
	char at[24];

	fputs("<tr>", f);
	if (labels)
		fputs("<td class=\"t\">", f), plot_escape(f, row->label), fputs("</td>", f);
	report_at(at, sizeof(at), row);
	page_cell(f, "td", at);
	fprintf(f, "<td>%llu</td>", (unsigned long long)row->n);
	for (unsigned i = 0; i < row->n_fields; i++)
		page_number(f, row->fields[i].value);
	if (row->raw_ns > 0)
		page_number(f, row->raw_ns);
	if (row->errors != 0)
		fprintf(f, "<td class=\"bad\">%llu messages wrong</td>", (unsigned long long)row->errors);
	fputs("</tr>\n", f);
}

static void
page_table(FILE *f, const struct perf_rows *rows, const char *test)
{
	const struct perf_row *before = NULL;
	bool labels = false;

	for (size_t i = 0; i < rows->n; i++)
		labels = labels || (strcmp(rows->row[i].test, test) == 0 && rows->row[i].label[0] != '\0');
	fputs("<div class=\"wide\"><table class=\"num\">\n", f);
	for (size_t i = 0; i < rows->n; i++) {
		const struct perf_row *row = &rows->row[i];

		if (strcmp(row->test, test) != 0)
			continue;
		if (before == NULL || before->n_fields != row->n_fields)
			page_heading(f, row, labels);
		page_row(f, row, labels);
		before = row;
	}
	fputs("</table></div>\n", f);
}

/* The titles of the charts of a test are its name, or its name and a label. One size is no curve. */
static void
page_charts(FILE *f, const struct plot *p, const char *test)
{
	unsigned firsts[PLOT_MAX], charts = plot_charts(p, firsts);
	size_t n = strlen(test);

	for (unsigned i = 0; i < charts; i++) {
		const struct plot_series *s = &p->s[firsts[i]];
		struct plot_frame b = plot_bounds(p, s->chart);

		if (b.x1 > b.x0 && strncmp(s->chart, test, n) == 0 && (s->chart[n] == '\0' || s->chart[n] == ' '))
			plot_svg(f, p, firsts[i]);
	}
}

static void
page_results(FILE *f, const struct perf_rows *rows, const struct plot *p)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct perf_row *row = &rows->row[i];
		const struct perf_test *t = perf_test_find(row->test);
		size_t k = 0;

		while (k < i && strcmp(rows->row[k].test, row->test) != 0)
			k++;
		if (k < i)
			continue;
		page_cell(f, "h2", row->test);
		fputs("<p>", f);
		plot_escape(f, t != NULL ? t->help : "");
		fputs(", ", f);
		plot_escape(f, row->unit);
		fputs("</p>\n", f);
		page_charts(f, p, row->test);
		page_table(f, rows, row->test);
	}
}

static void
page_head(FILE *f, const json_t *data, const char *library)
{
	const json_t *arg;
	size_t i;

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>commperf: ", f);
	plot_escape(f, library);
	fputs("</title>\n", f);
	fputs(page_style, f);
	plot_style(f);
	fputs("</head><body>\n<h1>commperf: ", f);
	plot_escape(f, library);
	fputs("</h1>\n<p><code>", f);
	json_array_foreach(json_object_get(data, "command"), i, arg) {
		fputs(i > 0 ? " " : "", f);
		plot_escape(f, json_string_value(arg));
	}
	fputs("</code></p>\n", f);
}

int
page_write(const char *path, const json_t *data, const struct perf_rows *rows, const struct plot *p)
{
	FILE *f = fopen(path, "w");

	if (f == NULL)
		return -errno;
	page_head(f, data, rows->library);
	page_results(f, rows, p);
	fputs("<h2>Machine</h2>\n<table>\n", f);
	page_object(f, json_object_get(data, "machine"));
	fputs("</table>\n", f);
	page_library(f, json_object_get(data, "pollux_info"));
	fputs("</body></html>\n", f);
	return fclose(f) == 0 ? 0 : -errno;
}

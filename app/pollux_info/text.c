/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * text.c - what was found, for people
 */
#include <stdio.h>
#include <string.h>

#include "info.h"

#define TEXT_COLUMNS 80
#define TEXT_CHANGED_MAX 6 /* settings that the short text shows */

static const char *
text_of(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s != NULL ? s : "";
}

static json_int_t
number_of(const json_t *obj, const char *key)
{
	return json_integer_value(json_object_get(obj, key));
}

static int
is(const json_t *obj, const char *key)
{
	return json_is_true(json_object_get(obj, key));
}

/* "name      text", the text cut at the last column. */
static void
line(const char *name, const char *text)
{
	printf("%-12s %.*s\n", name, TEXT_COLUMNS - 13, text);
}

static void
print_build(const json_t *b)
{
	char text[256] = "", drivers[128] = "";
	const json_t *d;
	size_t i;

	snprintf(text, sizeof(text), "Pollux %s", text_of(b, "version"));
	puts(text);
	json_array_foreach(json_object_get(b, "drivers"), i, d) {
		size_t n = strlen(drivers);

		snprintf(drivers + n, sizeof(drivers) - n, "%s%s", i > 0 ? ", " : "", json_string_value(d));
	}
	snprintf(text, sizeof(text), "%s, %s, %s", text_of(b, "type"), text_of(b, "compiler"), text_of(b, "dpdk"));
	line("build", text);
	line("drivers", drivers);
}

static void
print_devices(const json_t *list)
{
	const json_t *d;
	char text[256];
	size_t i;

	json_array_foreach(list, i, d) {
		const char *port = text_of(d, "port"), *reason = text_of(d, "reason");

		snprintf(text, sizeof(text), "%s%s%s: %s%s%s%s", text_of(d, "name"), port[0] != '\0' ? " at " : "", port,
			text_of(d, "state"), reason[0] != '\0' ? ", " : "", reason,
			is(d, "used") ? "" : " (worker.devices leaves it out)");
		line(i == 0 ? "devices" : "", text);
	}
}

static void
print_pages(const json_t *p)
{
	char text[256];

	if (json_is_null(json_object_get(p, "reserved")))
		snprintf(text, sizeof(text), "this kernel has none of 2 MiB, or /sys is not there");
	else
		snprintf(text, sizeof(text), "%lld of 2 MiB reserved, %lld free", (long long)number_of(p, "reserved"),
			(long long)number_of(p, "free"));
	line("huge pages", text);
	line("", !is(p, "wanted") ? "the settings ask for none"
		: is(p, "given") ? "this process is given them" : "this process is given none: 4 KiB pages are used");
}

static void
print_copies(const json_t *c)
{
	char text[256];

	if (!is(c, "wanted"))
		snprintf(text, sizeof(text), "the settings ask for none");
	else if (is(c, "allowed"))
		snprintf(text, sizeof(text), "the kernel copies between processes of this user");
	else
		snprintf(text, sizeof(text), "refused (%s): large private buffers go in pieces", text_of(c, "reason"));
	line("copies", text);
	if (number_of(c, "ptrace_scope") > 0) {
		snprintf(text, sizeof(text), "ptrace_scope is %lld: see containers.md",
			(long long)number_of(c, "ptrace_scope"));
		line("", text);
	}
}

static void
print_namespaces(const json_t *spaces)
{
	char text[2][128] = {"", ""}, both[160]; /* of its own, the host's */
	const char *name;
	json_t *s;

	json_object_foreach((json_t *)spaces, name, s) {
		const json_t *host = json_object_get(s, "host");
		char *t = text[json_is_true(host)];
		size_t n = strlen(t);

		if (json_is_boolean(host))
			snprintf(t + n, sizeof(text[0]) - n, "%s%s", n > 0 ? ", " : "", name);
	}
	for (int host = 1; host >= 0; host--)
		if (text[host][0] != '\0') {
			snprintf(both, sizeof(both), "%s: %s", host ? "of the host" : "of its own", text[host]);
			line(host || text[1][0] == '\0' ? "namespaces" : "", both);
		}
	if (text[0][0] == '\0' && text[1][0] == '\0')
		line("namespaces", "not known: /proc is not there");
}

static void
print_environment(const json_t *list, int all)
{
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n && (all || i < 3); i++)
		line(i == 0 ? "environment" : "", json_string_value(json_array_get(list, i)));
	if (!all && n > 3)
		printf("%-12s and %zu more: pollux_info --all\n", "", n - 3);
}

/* A long value is shown whole where the number of columns does not count. */
static void
print_setting(const json_t *s, int all)
{
	const char *value = text_of(s, "value");

	printf("  %-26s %-34.*s %s\n", text_of(s, "name"), all ? PLX_CONF_STR_MAX : 34, value[0] != '\0' ? value : "-",
		text_of(s, "source"));
}

static void
print_settings(const json_t *list, int all)
{
	size_t n = json_array_size(list), changed = 0;

	puts(all ? "settings" : "settings that are not at their default");
	for (size_t i = 0; i < n; i++) {
		const json_t *s = json_array_get(list, i);
		int is_changed = strcmp(text_of(s, "source"), "default") != 0;

		changed += (size_t)is_changed;
		if (all || (is_changed && changed <= TEXT_CHANGED_MAX))
			print_setting(s, all);
	}
	if (!all)
		printf("  %s%zu of %zu settings; all of them: pollux_info --all\n",
			changed > TEXT_CHANGED_MAX ? "... " : "", changed, n);
}

void
info_print(const json_t *info, int all)
{
	print_build(json_object_get(info, "build"));
	print_devices(json_object_get(info, "devices"));
	print_pages(json_object_get(info, "pages"));
	print_copies(json_object_get(info, "copies"));
	print_namespaces(json_object_get(info, "namespaces"));
	print_environment(json_object_get(info, "environment"), all);
	print_settings(json_object_get(info, "settings"), all);
}

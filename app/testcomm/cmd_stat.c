/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_stat.c - show, set, expect, sleep
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testcomm.h"

#define STAT_MAX_DUMP 256

static const struct {
	ucs_status_t status;
	const char *name;
} stat_names[] = {
	{UCS_OK, "OK"},
	{UCS_INPROGRESS, "INPROGRESS"},
	{UCS_ERR_NO_MESSAGE, "NO_MESSAGE"},
	{UCS_ERR_NO_RESOURCE, "NO_RESOURCE"},
	{UCS_ERR_IO_ERROR, "IO_ERROR"},
	{UCS_ERR_NO_MEMORY, "NO_MEMORY"},
	{UCS_ERR_INVALID_PARAM, "INVALID_PARAM"},
	{UCS_ERR_UNREACHABLE, "UNREACHABLE"},
	{UCS_ERR_INVALID_ADDR, "INVALID_ADDR"},
	{UCS_ERR_NOT_IMPLEMENTED, "NOT_IMPLEMENTED"},
	{UCS_ERR_MESSAGE_TRUNCATED, "MESSAGE_TRUNCATED"},
	{UCS_ERR_NO_PROGRESS, "NO_PROGRESS"},
	{UCS_ERR_BUFFER_TOO_SMALL, "BUFFER_TOO_SMALL"},
	{UCS_ERR_NO_ELEM, "NO_ELEM"},
	{UCS_ERR_BUSY, "BUSY"},
	{UCS_ERR_CANCELED, "CANCELED"},
	{UCS_ERR_NO_DEVICE, "NO_DEVICE"},
	{UCS_ERR_ALREADY_EXISTS, "ALREADY_EXISTS"},
	{UCS_ERR_OUT_OF_RANGE, "OUT_OF_RANGE"},
	{UCS_ERR_TIMED_OUT, "TIMED_OUT"},
	{UCS_ERR_UNSUPPORTED, "UNSUPPORTED"},
	{UCS_ERR_REJECTED, "REJECTED"},
	{UCS_ERR_NOT_CONNECTED, "NOT_CONNECTED"},
	{UCS_ERR_CONNECTION_RESET, "CONNECTION_RESET"},
	{UCS_ERR_ENDPOINT_TIMEOUT, "ENDPOINT_TIMEOUT"},
};

/* The name in scripts; for rare statuses the library's own text. */
const char *
tc_status_name(ucs_status_t status)
{
	for (size_t i = 0; i < sizeof(stat_names) / sizeof(stat_names[0]); i++) {
		if (stat_names[i].status == status)
			return stat_names[i].name;
	}
	return ucs_status_string(status);
}

/* The n-th status that has a name in scripts, or NULL. */
const char *
tc_status_at(size_t n)
{
	return n < sizeof(stat_names) / sizeof(stat_names[0]) ? stat_names[n].name : NULL;
}

static int
show_worker(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	ucp_worker_attr_t attr = {0};
	ucs_status_t status;

	if (w == NULL)
		return -1;
	if (argc > 1 && strcmp(argv[1], "full") != 0)
		return tc_error(tc, "\"%s\" is not \"full\"", argv[1]);
	attr.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE | UCP_WORKER_ATTR_FIELD_NAME |
			  UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
	status = ucp_worker_query(w->worker, &attr);
	tc->last.status = status;
	if (status != UCS_OK)
		return tc_error(
			tc, "worker %s does not answer: %s", w->name, ucs_status_string(status));
	fprintf(tc->out, "worker %s, in the library \"%s\"\n", w->name, attr.name);
	fprintf(tc->out, "  thread mode      %s\n",
		attr.thread_mode == UCS_THREAD_MODE_SINGLE  ? "single"
		: attr.thread_mode == UCS_THREAD_MODE_MULTI ? "multi"
							    : "serialized");
	fprintf(tc->out, "  turns            %llu, of these busy %llu\n",
		(unsigned long long)w->turns, (unsigned long long)w->busy_turns);
	fprintf(tc->out, "  sent             %llu messages, %llu bytes\n",
		(unsigned long long)w->sent, (unsigned long long)w->sent_bytes);
	fprintf(tc->out, "  received         %llu messages, %llu bytes\n",
		(unsigned long long)w->received, (unsigned long long)w->received_bytes);
	fprintf(tc->out, "  failed           %llu\n", (unsigned long long)w->failed);
	if (argc > 1)
		ucp_worker_print_info(w->worker, tc->out);
	return 0;
}

/* The lines about tag offload in the library's print of a worker. */
static int
show_offload(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	char *text = NULL, *line, *save = NULL;
	bool inside = false;
	size_t len;
	FILE *f;

	(void)argc;
	if (w == NULL)
		return -1;
	f = open_memstream(&text, &len);
	if (f == NULL)
		return tc_error(tc, "no memory");
	ucp_worker_print_info(w->worker, f);
	fclose(f);
	tc->last.count = 0;
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "#   ", 4) != 0) {
			inside = strcmp(line, "# tag offload") == 0;
			continue;
		}
		if (!inside)
			continue;
		fprintf(tc->out, "%s\n", line + 4);
		(void)sscanf(line, "#   consumed %" SCNu64, &tc->last.count);
	}
	free(text);
	return 0;
}

static int
show_data(struct tc *tc, int argc, char **argv)
{
	const struct tc_req *r = tc_req_find(tc, argv[0]);
	uint64_t n;

	(void)argc;
	if (r == NULL)
		return -1;
	n = r->size < STAT_MAX_DUMP ? r->size : STAT_MAX_DUMP;
	for (uint64_t i = 0; i < n; i += 16) {
		fprintf(tc->out, "%06llx ", (unsigned long long)i);
		for (uint64_t k = i; k < i + 16; k++) {
			if (k < n)
				fprintf(tc->out, " %02x", r->buf[k]);
			else
				fprintf(tc->out, "   ");
		}
		fprintf(tc->out, "  ");
		for (uint64_t k = i; k < i + 16 && k < n; k++)
			fputc(isprint(r->buf[k]) ? r->buf[k] : '.', tc->out);
		fprintf(tc->out, "\n");
	}
	if (n < r->size)
		fprintf(tc->out, "... %llu bytes in all\n", (unsigned long long)r->size);
	return 0;
}

static int
show_config(struct tc *tc, int argc, char **argv)
{
	ucs_status_t status;

	(void)argc;
	(void)argv;
	if (tc->config == NULL) {
		status = ucp_config_read(NULL, NULL, &tc->config);
		if (status != UCS_OK) {
			tc->config = NULL;
			return tc_error(tc, "the configuration cannot be read: %s",
				ucs_status_string(status));
		}
	}
	ucp_config_print(tc->config, tc->out, "settings", UCS_CONFIG_PRINT_CONFIG);
	return 0;
}

static int
show_version(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fprintf(tc->out, "library %s\n", ucp_get_version_string());
	return 0;
}

static int
show_settings(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fprintf(tc->out, "pattern %llu\ntimeout %llu\nidle %s\nverbose %s\nhistory %s\n",
		(unsigned long long)tc->pattern, (unsigned long long)tc->timeout_ms,
		tc->idle ? "on" : "off", tc->verbose ? "on" : "off", tc->history ? "on" : "off");
	return 0;
}

static int
set_switch(struct tc *tc, const char *text, bool *out)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return tc_error(tc, "\"%s\" is neither on nor off", text);
	*out = strcmp(text, "on") == 0;
	return 0;
}

static int
set_pattern(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return tc_number(tc, argv[0], &tc->pattern);
}

static int
set_timeout(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return tc_number(tc, argv[0], &tc->timeout_ms);
}

static int
set_idle(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return set_switch(tc, argv[0], &tc->idle);
}

static int
set_verbose(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return set_switch(tc, argv[0], &tc->verbose);
}

static int
set_history(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return set_switch(tc, argv[0], &tc->history);
}

static int
expect_number(struct tc *tc, const char *what, const char *text, uint64_t got)
{
	uint64_t want;

	if (tc_number(tc, text, &want) != 0)
		return -1;
	if (got == want)
		return 0;
	return tc_error(tc, "expected %s %s, got %llu (0x%llx)", what, text,
		(unsigned long long)got, (unsigned long long)got);
}

static int
expect_text(struct tc *tc, int argc, char **argv)
{
	const struct tc_req *r = tc->last.req;
	uint64_t n;

	(void)argc;
	if (r == NULL)
		return tc_error(tc, "the last command left no text to compare");
	n = r->length < r->size ? r->length : r->size;
	if (n == strlen(argv[0]) && memcmp(r->buf, argv[0], n) == 0)
		return 0;
	return tc_error(tc, "expected text \"%s\", got \"%.*s\"", argv[0], (int)(n < 200 ? n : 200),
		(const char *)r->buf);
}

/* The first bytes received, as a number in the byte order of this machine. */
static int
expect_value(struct tc *tc, int argc, char **argv)
{
	const struct tc_req *r = tc->last.req;
	uint64_t value = 0;

	(void)argc;
	if (r == NULL || r->length == 0)
		return tc_error(tc, "the last command left no value to compare");
	memcpy(&value, r->buf, r->size < sizeof(value) ? r->size : sizeof(value));
	return expect_number(tc, "value", argv[0], value);
}

static int
expect_header(struct tc *tc, int argc, char **argv)
{
	const struct tc_req *r = tc->last.req;

	(void)argc;
	if (r == NULL || r->header == NULL)
		return tc_error(tc, "the last command left no header to compare");
	if (r->header_len == strlen(argv[0]) && memcmp(r->header, argv[0], r->header_len) == 0)
		return 0;
	return tc_error(tc, "expected header \"%s\", got \"%.200s\"", argv[0], (const char *)r->header);
}

static int
expect_status(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	if (strcmp(tc_status_name(tc->last.status), argv[0]) == 0)
		return 0;
	return tc_error(tc, "expected status %s, got %s (%s)", argv[0],
		tc_status_name(tc->last.status), ucs_status_string(tc->last.status));
}

static int
expect_length(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return expect_number(tc, "length", argv[0], tc->last.length);
}

static int
expect_tag(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return expect_number(tc, "tag", argv[0], tc->last.tag);
}

static int
expect_count(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	return expect_number(tc, "count", argv[0], tc->last.count);
}

static int
stat_sleep(struct tc *tc, int argc, char **argv)
{
	uint64_t ms, end;
	bool turns = argc > 1 && strcmp(argv[1], "turns") == 0;

	if (tc_number(tc, argv[0], &ms) != 0)
		return -1;
	if (argc > 1 && !turns)
		return tc_error(tc, "\"%s\" is not \"turns\"", argv[1]);
	end = tc_now_us() + ms * 1000;
	while (tc_now_us() < end && !tc_interrupted()) {
		if (turns)
			tc_progress(tc);
		else
			usleep(1000);
	}
	return 0;
}

const struct tc_cmd tc_cmd_stat[] = {
	{"show version", "", "the library's version", 0, 0, show_version},
	{"show config", "", "its settings", 0, 0, show_config},
	{"show settings", "", "those of set", 0, 0, show_settings},
	{"show worker", "WORKER [full]", "thread mode and counters; full: as the library prints it", 1,
		2, show_worker},
	{"show offload", "WORKER", "its receives in devices; count: how many matched there", 1, 1,
		show_offload},
	{"show data", "REQ|last", "the first 256 bytes of its buffer", 1, 1, show_data},
	{"set pattern", "N", "seed of what send fills and check compares", 1, 1, set_pattern},
	{"set timeout", "MS", "longest wait", 1, 1, set_timeout},
	{"set idle", "on|off", "run turns while waiting for a line", 1, 1, set_idle},
	{"set verbose", "on|off", "show each command of a script", 1, 1, set_verbose},
	{"set history", "on|off", "keep the lines that follow at the prompt for the next time", 1, 1,
		set_history},
	{"expect status", "STATUS", "fail unless the last command had this status", 1, 1, expect_status},
	{"expect length", "N", "the same of the length of its message", 1, 1, expect_length},
	{"expect tag", "N", "of its tag", 1, 1, expect_tag},
	{"expect count", "N", "of what it counts", 1, 1, expect_count},
	{"expect text", "\"TEXT\"", "of the bytes that it received", 1, 1, expect_text},
	{"expect value", "N", "of the first of them, up to eight, as a number", 1, 1, expect_value},
	{"expect header", "\"TEXT\"", "of the header of an active message", 1, 1, expect_header},
	{"sleep", "MS [turns]", "do nothing, or, with turns, run turns", 1, 2, stat_sleep},
	{0},
};

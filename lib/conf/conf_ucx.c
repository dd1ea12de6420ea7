/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_ucx.c - the UCX_... names that mean something here, and what they become
 *
 * Design notes: a value that UCX would take and we cannot express is not the
 * user's mistake; it is reported to the caller, who says so at info level.
 */
#include "plx_conf.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "conf_int.h"

/* What a word of UCX is called here; NULL: leave our default. */
struct ucx_word {
	const char *ucx, *ours;
};

static const struct ucx_word ucx_levels[] = {{"fatal", "critical"}, {"error", "error"},
	{"warn", "warning"}, {"diag", "notice"}, {"info", "info"}, {"debug", "debug"},
	{"trace", "debug"}, {"req", "debug"}, {"data", "debug"}, {"async", "debug"},
	{"func", "debug"}, {"poll", "debug"}, {"trace_req", "debug"}, {"trace_data", "debug"},
	{"trace_async", "debug"}, {"trace_func", "debug"}, {"trace_poll", "debug"}, {NULL, NULL}};

/* put_zcopy: the sender moves the data; here it at least helps. */
static const struct ucx_word ucx_schemes[] = {{"auto", "auto"}, {"get_zcopy", "get"},
	{"rkey_ptr", "get"}, {"put_zcopy", "split"}, {"get_ppln", "frag"}, {"put_ppln", "frag"},
	{"am", "frag"}, {NULL, NULL}};

static int
ucx_word(struct plx_conf *c, enum plx_conf_id id, const struct ucx_word *words, const char *text,
	enum plx_conf_source source, char *err)
{
	for (; words->ucx != NULL; words++)
		if (strcasecmp(words->ucx, text) == 0)
			return plx_conf_set(c, plx_conf_row(id)->name, words->ours, source, err);
	conf_err(err, "\"%.32s\" has no counterpart in %s", text, plx_conf_row(id)->name);
	return -EINVAL;
}

static int
ucx_log_level(struct plx_conf *c, const char *text, enum plx_conf_source source, char *err)
{
	return ucx_word(c, PLX_CONF_LOG_LEVEL, ucx_levels, text, source, err);
}

static int
ucx_rndv_scheme(struct plx_conf *c, const char *text, enum plx_conf_source source, char *err)
{
	return ucx_word(c, PLX_CONF_RNDV_SCHEME, ucx_schemes, text, source, err);
}

/* UCX: rendezvous from this length on. Ours: the longest length without. */
static int
ucx_rndv_thresh(struct plx_conf *c, const char *text, enum plx_conf_source source, char *err)
{
	const struct plx_conf_row *row = plx_conf_row(PLX_CONF_EAGER_MAX);
	char value[32];
	uint64_t u;
	int rc;

	if (strcasecmp(text, "auto") == 0)
		return 0;
	rc = strcasecmp(text, "inf") == 0 ? -ERANGE : conf_parse_uint(text, &u);
	if (rc == -EINVAL) {
		conf_err(err, "\"%.32s\" has no counterpart in %s", text, row->name);
		return rc;
	}
	if (rc == -ERANGE || u > row->max)
		u = row->max;
	else if (u > 0)
		u--;
	snprintf(value, sizeof(value), "%" PRIu64, u);
	return plx_conf_set(c, row->name, value, source, err);
}

static bool
ucx_is_shared_memory(const char *name, size_t len)
{
	static const char *const names[] = {
		"all", "sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], name, len) == 0)
			return true;
	return false;
}

/* A list without shared memory, or "^" and a list that names all of it. */
static int
ucx_tls(struct plx_conf *c, const char *text, enum plx_conf_source source, char *err)
{
	bool negated = *text == '^', named = false;
	size_t len;

	(void)c;
	(void)source;
	(void)err;
	for (const char *p = text + negated; *p != '\0'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (!negated)
			named |= ucx_is_shared_memory(p, len);
		else
			named |= (len == 2 && strncasecmp(p, "sm", 2) == 0) ||
				 (len == 3 && strncasecmp(p, "shm", 3) == 0);
	}
	if (named == negated)
		PLX_LOG(NOTICE, conf, "UCX_TLS %.64s leaves out shared memory and is not followed",
			text);
	return 0;
}

/* Of UCX's devices those with a port are RDMA's, as ours; of the others we have none. */
static int
ucx_net_devices(struct plx_conf *c, const char *text, enum plx_conf_source source, char *err)
{
	const char *name = plx_conf_row(PLX_CONF_NET_MLX_DEVICE)->name;
	char ours[PLX_CONF_STR_MAX] = "";
	size_t len, n = 0;

	if (strcasecmp(text, "all") == 0)
		return 0;
	for (const char *p = text; *p != '\0'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (*p == '^' || memchr(p, ':', len) == NULL)
			continue;
		if (n + len + 2 > sizeof(ours)) {
			conf_err(err, "\"%.32s...\" is too long for %s", text, name);
			return -EINVAL;
		}
		n += (size_t)snprintf(ours + n, sizeof(ours) - n, "%s%.*s", n != 0 ? "," : "", (int)len, p);
	}
	if (n == 0 || *text == '^') {
		conf_err(err, "\"%.32s\" has no counterpart in %s", text, name);
		return -EINVAL;
	}
	return plx_conf_set(c, name, ours, source, err);
}

static const struct {
	const char *name;
	int (*set)(struct plx_conf *c, const char *text, enum plx_conf_source source, char *err);
} ucx_rows[] = {
	{"LOG_LEVEL", ucx_log_level},
	{"NET_DEVICES", ucx_net_devices},
	{"RNDV_SCHEME", ucx_rndv_scheme},
	{"RNDV_THRESH", ucx_rndv_thresh},
	{"TLS", ucx_tls},
};

int
plx_conf_set_ucx(struct plx_conf *c, const char *name, const char *text,
	enum plx_conf_source source, char *err)
{
	for (size_t i = 0; i < sizeof(ucx_rows) / sizeof(ucx_rows[0]); i++)
		if (strcasecmp(ucx_rows[i].name, name) == 0)
			return ucx_rows[i].set(c, text, source, err);
	conf_err(err, "UCX_%.64s means nothing here", name);
	return -ENOENT;
}

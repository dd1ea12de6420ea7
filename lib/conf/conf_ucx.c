/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_ucx.c - settings by UCX's names: stored as they are set, followed if they have a meaning
 * here
 *
 * Design notes
 * - A set stores the values that were set, not the defaults, as consecutive records: a byte for
 *   the source, the name, the value. So a copy of the set has them, and the input of callers is
 *   bounded. A value that UCX accepts and we cannot follow is no mistake: it is stored, and an
 *   info line says what we do instead.
 */
#include "plx_conf.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "conf_ucx.h"

/* Our word for a word of UCX. */
struct ucx_word {
	const char *ucx, *ours;
};

static const struct ucx_word ucx_levels[] = {{"FATAL", "critical"}, {"ERROR", "error"},
	{"WARN", "warning"}, {"DIAG", "notice"}, {"INFO", "info"}, {"DEBUG", "debug"},
	{"TRACE", "debug"}, {"REQ", "debug"}, {"DATA", "debug"}, {"ASYNC", "debug"},
	{"FUNC", "debug"}, {"POLL", "debug"}, {NULL, NULL}};

/* put_zcopy: the sender moves the data; here it helps. */
static const struct ucx_word ucx_schemes[] = {{"auto", "auto"}, {"get_zcopy", "get"},
	{"rkey_ptr", "get"}, {"put_zcopy", "split"}, {"get_ppln", "frag"}, {"put_ppln", "frag"},
	{"am", "frag"}, {NULL, NULL}};

static void
follow_word(struct plx_conf *c, unsigned int id, const struct ucx_word *words, const char *value,
	enum plx_conf_source source)
{
	for (; words->ucx != NULL; words++)
		if (strcmp(words->ucx, value) == 0)
			plx_conf_set(c, plx_conf_row(id)->name, words->ours, source, NULL);
}

static void
follow_level(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source)
{
	follow_word(c, id, ucx_levels, value, source);
}

/* A name that does not fit one of our settings is too long for a file, too. */
static void
follow_file(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source)
{
	char err[PLX_CONF_ERR_MAX];

	if (plx_conf_set(c, plx_conf_row(id)->name, value, source, err) != 0)
		PLX_LOG(WARNING, conf, "UCX_LOG_FILE is ignored: %s", err);
}

static void
follow_scheme(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source)
{
	follow_word(c, id, ucx_schemes, value, source);
}

static void
follow_number(struct plx_conf *c, unsigned int id, uint64_t u, enum plx_conf_source source)
{
	const struct plx_conf_row *row = plx_conf_row(id);
	char text[32];

	if (u < row->min)
		u = row->min;
	if (u > row->max)
		u = row->max;
	snprintf(text, sizeof(text), "%" PRIu64, u);
	plx_conf_set(c, row->name, text, source, NULL);
}

/* The first length that UCX announces. @return 0; -ENOENT: auto */
static int
thresh(const char *value, const char *key, uint64_t *u)
{
	char text[32];

	if (conf_ucx_key(value, key, text, sizeof(text)) != 0 || conf_ucx_mem(text, u) != 0 ||
		*u == CONF_UCX_AUTO)
		return -ENOENT;
	return 0;
}

/* Ours is the longest length that is not announced, and whether empty messages are. */
static uint64_t
eager_max(uint64_t u)
{
	return u == 0 ? 0 : RTE_MIN(u - 1, plx_conf_row(PLX_CONF_EAGER_MAX)->max);
}

static void
follow_eager(struct plx_conf *c, uint64_t u, enum plx_conf_source source)
{
	follow_number(c, PLX_CONF_EAGER_MAX, eager_max(u), source);
	plx_conf_set(c, plx_conf_row(PLX_CONF_EAGER_EMPTY)->name, u == 0 ? "no" : "yes", source, NULL);
}

/* There is one length for all peers: that for this node, unless only the other one is set. */
static void
follow_thresh(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source)
{
	uint64_t u;

	(void)id; /* it stands for two settings */
	if (thresh(value, "intra", &u) == 0 || thresh(value, "inter", &u) == 0)
		follow_eager(c, u, source);
}

void
plx_conf_follow_inter(struct plx_conf *c)
{
	char value[CONF_UCX_VALUE_MAX];
	uint64_t intra, inter;

	plx_conf_format_ucx(c, "RNDV_THRESH", value, sizeof(value));
	if (thresh(value, "inter", &inter) == 0 && thresh(value, "intra", &intra) == 0 &&
		plx_conf_u64(c, PLX_CONF_EAGER_MAX) == eager_max(intra)) /* otherwise a setting of ours
		                                                          * overrides it */
		follow_eager(c, inter, c->v[PLX_CONF_EAGER_MAX].source);
}

/* Of UCX's devices those with a port are RDMA's, the others are interfaces. */
static void
follow_net_devices(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source)
{
	bool interfaces = plx_conf_row(id)->role == PLX_CONF_ROLE_INTERFACES;
	char ours[PLX_CONF_STR_MAX] = "";
	size_t len, n = 0;

	if (strcmp(value, "all") == 0 || (*value == '^' && !interfaces))
		return;
	for (const char *p = value + (*value == '^'); *p != '\0'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if ((memchr(p, ':', len) == NULL) != interfaces || n + len + 2 > sizeof(ours))
			continue;
		n += (size_t)snprintf(ours + n, sizeof(ours) - n, "%s%.*s", n != 0 ? "," : *value == '^' ? "^" : "",
			(int)len, p);
	}
	if (n != 0)
		plx_conf_set(c, plx_conf_row(id)->name, ours, source, NULL);
}

/* UCX's interval for checking peers; some of our devices probe instead. */
static void
follow_keepalive(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source)
{
	double us = strtod(value, NULL); /* "20000000.00us", or a word: 0 */

	if (us >= 1 && us < 1e15)
		follow_number(c, id, (uint64_t)(us / 1000), source);
}

static const struct follower {
	const char *name;
	unsigned int id; /* PLX_CONF_N: those of the role */
	enum plx_conf_role role, other;
	void (*follow)(struct plx_conf *c, unsigned int id, const char *value, enum plx_conf_source source);
} followed[] = {
	{"KEEPALIVE_INTERVAL", PLX_CONF_N, PLX_CONF_ROLE_PROBE_MS, PLX_CONF_ROLE_NONE, follow_keepalive},
	{"LOG_FILE", PLX_CONF_LOG_FILE, PLX_CONF_ROLE_NONE, PLX_CONF_ROLE_NONE, follow_file},
	{"LOG_LEVEL", PLX_CONF_LOG_LEVEL, PLX_CONF_ROLE_NONE, PLX_CONF_ROLE_NONE, follow_level},
	{"NET_DEVICES", PLX_CONF_N, PLX_CONF_ROLE_PORT_NAMES, PLX_CONF_ROLE_INTERFACES, follow_net_devices},
	{"RNDV_SCHEME", PLX_CONF_RNDV_SCHEME, PLX_CONF_ROLE_NONE, PLX_CONF_ROLE_NONE, follow_scheme},
	{"RNDV_THRESH", PLX_CONF_EAGER_MAX, PLX_CONF_ROLE_NONE, PLX_CONF_ROLE_NONE, follow_thresh},
};

/* The first setting of either role after another. @return -ENOENT: there is none */
static int
next_of_roles(const struct follower *f, int before)
{
	int a = plx_conf_find_role(f->role, before + 1);
	int b = f->other != PLX_CONF_ROLE_NONE ? plx_conf_find_role(f->other, before + 1) : -ENOENT;

	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Our next setting that follows UCX's of this name. @return -ENOENT: no more */
static int
next_follower(const char *name, int before, const struct follower **f)
{
	for (*f = followed; *f < followed + RTE_DIM(followed); (*f)++) {
		if (strcmp((*f)->name, name) != 0)
			continue;
		if ((*f)->role != PLX_CONF_ROLE_NONE)
			return next_of_roles(*f, before);
		return before < 0 ? (int)(*f)->id : -ENOENT;
	}
	return -ENOENT;
}

/* The next record, or the first for NULL. @return NULL at the end */
static char *
next_record(const struct plx_conf *c, const char *r)
{
	if (r == NULL)
		r = c->ucx.text;
	else
		r += 1 + strlen(r + 1) + 1 + strlen(r + 1 + strlen(r + 1) + 1) + 1;
	return r < c->ucx.text + c->ucx.len ? (char *)(uintptr_t)r : NULL;
}

static const char *
record_value(const char *r)
{
	return r + 1 + strlen(r + 1) + 1;
}

static char *
find_record(const struct plx_conf *c, const char *name)
{
	char *r;

	for (r = next_record(c, NULL); r != NULL; r = next_record(c, r))
		if (strcmp(r + 1, name) == 0)
			break;
	return r;
}

/* @return whether it has an effect: no stronger source has set the name before; or -errno. */
static int
keep(struct plx_conf *c, const char *name, const char *value, enum plx_conf_source source, char *err)
{
	size_t len = 1 + strlen(name) + 1 + strlen(value) + 1, old = 0;
	char *r = find_record(c, name);

	if (r != NULL) {
		if (source < (enum plx_conf_source)*r)
			return 0;
		old = 1 + strlen(name) + 1 + strlen(record_value(r)) + 1;
	}
	if (c->ucx.len - old + len > sizeof(c->ucx.text)) {
		conf_err(err, "no room for %.64s: all UCX settings together take at most %zu bytes", name,
			sizeof(c->ucx.text));
		return -ENOMEM;
	}
	if (r != NULL) {
		memmove(r, r + old, c->ucx.text + c->ucx.len - (r + old));
		c->ucx.len -= old;
	}
	r = c->ucx.text + c->ucx.len;
	*r = (char)source;
	memcpy(r + 1, name, strlen(name) + 1);
	memcpy(r + 1 + strlen(name) + 1, value, strlen(value) + 1);
	c->ucx.len += len;
	return 1;
}

static int
set_row(struct plx_conf *c, const struct conf_ucx_row *row, const char *text,
	enum plx_conf_source source, char *err)
{
	char value[CONF_UCX_VALUE_MAX];
	const struct follower *f;
	int id, rc;

	if (row->type == UCX_ALIAS)
		row = conf_ucx_find(row->def);
	rc = conf_ucx_value(row, text, value);
	if (rc != 0) {
		conf_err(err, "\"%.48s\" is not a value of UCX_%s", text, row->name);
		return rc;
	}
	rc = keep(c, row->name, value, source, err);
	if (rc <= 0)
		return rc;
	for (id = next_follower(row->name, -1, &f); id >= 0; id = next_follower(row->name, id, &f))
		f->follow(c, id, value, source);
	return 0;
}

/* All rows that match the pattern, as in UCX. */
static int
set_rows(struct plx_conf *c, const char *pattern, const char *text, enum plx_conf_source source,
	char *err)
{
	const struct conf_ucx_row *row;
	int rc, found = -ENOENT;

	for (unsigned int i = 0; (row = conf_ucx_row(i)) != NULL; i++) {
		if (fnmatch(pattern, row->name, 0) != 0)
			continue;
		rc = set_row(c, row, text, source, err);
		if (rc != 0)
			return rc;
		found = 0;
	}
	return found;
}

int
plx_conf_set_ucx(struct plx_conf *c, const char *name, const char *text,
	enum plx_conf_source source, char *err)
{
	const struct conf_ucx_row *row = conf_ucx_find(name);
	int rc = -ENOENT;

	if (row != NULL)
		return set_row(c, row, text, source, err);
	if (strlen(name) < PLX_CONF_NAME_MAX) {
		if (conf_ucx_is_pattern(name))
			rc = set_rows(c, name, text, source, err);
		if (rc != -ENOENT)
			return rc;
		if (conf_ucx_is_transport(name)) {
			if (strlen(text) < CONF_UCX_VALUE_MAX)
				rc = keep(c, name, text, source, err);
			else
				rc = -ENAMETOOLONG;
			return rc > 0 ? 0 : rc;
		}
	}
	conf_err(err, "UCX has no setting \"%.64s\"", name);
	return rc;
}

int
plx_conf_format_ucx(const struct plx_conf *c, const char *name, char *buf, size_t len)
{
	const struct conf_ucx_row *row = conf_ucx_find(name);
	char value[CONF_UCX_VALUE_MAX];
	const char *r;

	if (row != NULL && row->type == UCX_ALIAS)
		row = conf_ucx_find(row->def);
	r = find_record(c, row != NULL ? row->name : name);
	if (r != NULL)
		return snprintf(buf, len, "%s", record_value(r));
	if (row == NULL)
		return -ENOENT;
	conf_ucx_value(row, row->def, value);
	return snprintf(buf, len, "%s", value);
}

bool
plx_conf_ucx_is_set(const struct plx_conf *c, const char *name)
{
	return find_record(c, name) != NULL;
}

static void
print_row(const struct plx_conf *c, FILE *f, const struct conf_ucx_row *row, unsigned int flags)
{
	const struct conf_ucx_row *real = row->type == UCX_ALIAS ? conf_ucx_find(row->def) : row;
	const struct follower *by;
	char value[CONF_UCX_VALUE_MAX];

	if (flags & PLX_CONF_PRINT_DOC) {
		fprintf(f, "#\n# default: %s\n", real->def);
		if (real != row)
			fprintf(f, "# alias of: UCX_%s\n", real->name);
		for (int id = next_follower(real->name, -1, &by); id >= 0; id = next_follower(real->name, id, &by))
			fprintf(f, "# sets: %s\n", plx_conf_row(id)->name);
		fprintf(f, "#\n");
	}
	plx_conf_format_ucx(c, real->name, value, sizeof(value));
	fprintf(f, "%sUCX_%s=%s\n",
		(flags & PLX_CONF_PRINT_COMMENT_DEFAULT) && find_record(c, real->name) == NULL ? "# " : "",
		row->name, value);
	if (flags & PLX_CONF_PRINT_DOC)
		fputc('\n', f);
}

void
plx_conf_print_ucx(const struct plx_conf *c, FILE *f, unsigned int flags)
{
	const struct conf_ucx_row *row;

	if ((flags & PLX_CONF_PRINT_VALUES) == 0)
		return;
	for (unsigned int i = 0; (row = conf_ucx_row(i)) != NULL; i++) {
		if (row->type == UCX_ALIAS && (flags & PLX_CONF_PRINT_HIDDEN) == 0)
			continue;
		if (row->group == UCX_UCP || find_record(c, row->name) != NULL)
			print_row(c, f, row, flags);
	}
	/* UCX, too, writes these without UCX_. */
	for (const char *r = next_record(c, NULL); r != NULL; r = next_record(c, r))
		if (conf_ucx_find(r + 1) == NULL)
			fprintf(f, "%s=%s\n", r + 1, record_value(r));
}

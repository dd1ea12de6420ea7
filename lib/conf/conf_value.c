/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_value.c - one setting: find it, set it from text, write it as text
 */
#include "plx_conf.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "conf_int.h"

/* Short and former names of settings. They are accepted and never shown. */
static const struct {
	const char *name;
	enum plx_conf_id id;
} aliases[] = {
	{"reactor", PLX_CONF_REACTOR},
	{"worker.nap_us", PLX_CONF_WORKER_SLEEP_US},
};

/* The same for words of a choice. */
static const struct {
	enum plx_conf_id id;
	const char *old, *now;
} old_words[] = {
	{PLX_CONF_REACTOR_IDLE, "lend", "grant"},
};

void
conf_err(char *err, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(err, PLX_CONF_ERR_MAX, fmt, ap);
	va_end(ap);
	for (; *err != '\0'; err++)
		if (iscntrl((unsigned char)*err))
			*err = '?';
}

int
conf_parse_uint(const char *text, uint64_t *out)
{
	static const char suffixes[] = "kmg";
	const char *suffix;
	uint64_t u = 0;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(u, 10, &u) ||
			__builtin_add_overflow(u, (uint64_t)(*text - '0'), &u))
			return -ERANGE;
	if (*text != '\0') {
		suffix = strchr(suffixes, tolower((unsigned char)*text));
		if (suffix == NULL || text[1] != '\0')
			return -EINVAL;
		if (__builtin_mul_overflow(u, 1ull << 10 * (suffix - suffixes + 1), &u))
			return -ERANGE;
	}
	*out = u;
	return 0;
}

int
conf_env_name(const char *name, char *buf, size_t len)
{
	size_t i;

	for (i = 0; name[i] != '\0'; i++)
		if (i + 1 < len)
			buf[i] = name[i] == '.' ? '_' : (char)toupper((unsigned char)name[i]);
	if (len > 0)
		buf[i < len ? i : len - 1] = '\0';
	return (int)i;
}

/* Whether name is that of the setting, with its dot or in environment form. */
static bool
conf_is_named(const char *setting, const char *name)
{
	char env[PLX_CONF_NAME_MAX];

	conf_env_name(setting, env, sizeof(env));
	return strcmp(setting, name) == 0 || strcasecmp(env, name) == 0;
}

int
plx_conf_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < plx_conf_n(); i++)
		if (conf_is_named(plx_conf_row(i)->name, name))
			return (int)i;
	for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (conf_is_named(aliases[i].name, name))
			return aliases[i].id;
	return -ENOENT;
}

static int
conf_set_bool(const struct plx_conf_row *row, const char *text, uint64_t *u, char *err)
{
	static const char *const words[2][6] = {
		{"n", "no", "off", "false", "0", NULL},
		{"y", "yes", "on", "true", "1", NULL},
	};

	for (unsigned int b = 0; b < 2; b++)
		for (unsigned int i = 0; words[b][i] != NULL; i++)
			if (strcasecmp(words[b][i], text) == 0) {
				*u = b;
				return 0;
			}
	conf_err(err, "%s: \"%.32s\" is neither yes nor no", row->name, text);
	return -EINVAL;
}

static int
conf_set_uint(const struct plx_conf_row *row, const char *text, uint64_t *u, char *err)
{
	int rc = conf_parse_uint(text, u);

	if (rc == -EINVAL)
		conf_err(err, "%s: \"%.32s\" is not a number such as 100 or 64k", row->name, text);
	else if (rc < 0)
		conf_err(err, "%s: %.32s does not fit 64 bits", row->name, text);
	else if (*u < row->min || *u > row->max) {
		conf_err(err, "%s: %.32s is outside %" PRIu64 "..%" PRIu64 "%s%s", row->name, text,
			row->min, row->max, *row->unit != '\0' ? " " : "", row->unit);
		rc = -ERANGE;
	}
	return rc;
}

/* @return the present word for one that the choices of this setting had before, or text */
static const char *
conf_new_word(const struct plx_conf_row *row, const char *text)
{
	for (unsigned int i = 0; i < sizeof(old_words) / sizeof(old_words[0]); i++)
		if (row == plx_conf_row(old_words[i].id) && strcasecmp(old_words[i].old, text) == 0)
			return old_words[i].now;
	return text;
}

static int
conf_set_enum(const struct plx_conf_row *row, const char *text, uint64_t *u, char *err)
{
	char list[80] = "";
	size_t n = 0;

	text = conf_new_word(row, text);
	for (unsigned int i = 0; row->choices[i] != NULL; i++) {
		if (strcasecmp(row->choices[i], text) == 0) {
			*u = i;
			return 0;
		}
		if (n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i > 0 ? " " : "",
				row->choices[i]);
	}
	conf_err(err, "%s: \"%.16s\" is none of: %s", row->name, text, list);
	return -EINVAL;
}

/* Text is part of JSON, of lines of plx_conf_print() and of paths. */
static int
conf_check_str(const struct plx_conf_row *row, const char *text, char *err)
{
	json_t *json;

	if (strlen(text) >= PLX_CONF_STR_MAX) {
		conf_err(err, "%s: longer than %d bytes", row->name, PLX_CONF_STR_MAX - 1);
		return -ENAMETOOLONG;
	}
	for (const char *p = text; *p != '\0'; p++)
		if (iscntrl((unsigned char)*p)) {
			conf_err(err, "%s: the text has control characters", row->name);
			return -EINVAL;
		}
	json = json_string(text);
	if (json == NULL) {
		conf_err(err, "%s: the text is not UTF-8", row->name);
		return -EINVAL;
	}
	json_decref(json);
	return 0;
}

int
plx_conf_set(struct plx_conf *c, const char *name, const char *text, enum plx_conf_source source,
	char *err)
{
	const struct plx_conf_row *row;
	uint64_t u = 0;
	int id, rc;

	id = plx_conf_find(name);
	if (id < 0) {
		conf_err(err, "no setting \"%.64s\"", name);
		return id;
	}
	row = plx_conf_row(id);
	switch (row->type) {
	case PLX_CONF_BOOL:
		rc = conf_set_bool(row, text, &u, err);
		break;
	case PLX_CONF_UINT:
		rc = conf_set_uint(row, text, &u, err);
		break;
	case PLX_CONF_ENUM:
		rc = conf_set_enum(row, text, &u, err);
		break;
	default:
		rc = conf_check_str(row, text, err);
		break;
	}
	if (rc < 0 || source < c->v[id].source)
		return rc;
	if (row->type == PLX_CONF_STR)
		snprintf(c->v[id].s, sizeof(c->v[id].s), "%s", text);
	__atomic_store_n(&c->v[id].u, u, __ATOMIC_RELAXED);
	c->v[id].source = source;
	return 0;
}

void
plx_conf_defaults(struct plx_conf *c)
{
	conf_table_use();
	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < plx_conf_n(); i++)
		plx_conf_set(c, plx_conf_row(i)->name, plx_conf_row(i)->def, PLX_CONF_FROM_DEFAULT,
			NULL);
}

const char *
plx_conf_role_str(const struct plx_conf *c, enum plx_conf_role role, const char *def)
{
	int id = plx_conf_find_role(role, 0);

	return id >= 0 ? plx_conf_str(c, id) : def;
}

int
plx_conf_set_role(struct plx_conf *c, enum plx_conf_role role, const char *text,
	enum plx_conf_source source)
{
	int rc = 0;

	for (int id = plx_conf_find_role(role, 0); id >= 0 && rc == 0; id = plx_conf_find_role(role, id + 1))
		rc = plx_conf_set(c, plx_conf_row(id)->name, text, source, NULL);
	return rc;
}

/* Bytes use the largest suffix without a remainder. */
static int
conf_format_uint(const struct plx_conf_row *row, uint64_t u, char *buf, size_t len)
{
	static const char *const suffixes[] = {"", "k", "m", "g"};
	unsigned int i = 0;

	if (strcmp(row->unit, "bytes") == 0)
		for (; i < 3 && u != 0 && u % 1024 == 0; i++)
			u /= 1024;
	return snprintf(buf, len, "%" PRIu64 "%s", u, suffixes[i]);
}

int
plx_conf_format(const struct plx_conf *c, unsigned int id, char *buf, size_t len)
{
	const struct plx_conf_row *row = plx_conf_row(id);
	uint64_t u = plx_conf_u64(c, id);

	switch (row->type) {
	case PLX_CONF_BOOL:
		return snprintf(buf, len, "%s", u ? "yes" : "no");
	case PLX_CONF_UINT:
		return conf_format_uint(row, u, buf, len);
	case PLX_CONF_ENUM:
		return snprintf(buf, len, "%s", row->choices[u]);
	default:
		return snprintf(buf, len, "%s", c->v[id].s);
	}
}

int
plx_conf_format_range(unsigned int id, char *buf, size_t len)
{
	const struct plx_conf_row *row = plx_conf_row(id);
	char lo[32], hi[32];
	size_t n = 0;

	switch (row->type) {
	case PLX_CONF_BOOL:
		return snprintf(buf, len, "yes, no");
	case PLX_CONF_UINT:
		conf_format_uint(row, row->min, lo, sizeof(lo));
		conf_format_uint(row, row->max, hi, sizeof(hi));
		return snprintf(buf, len, "%s..%s", lo, hi);
	case PLX_CONF_ENUM:
		for (unsigned int i = 0; row->choices[i] != NULL; i++)
			n += (size_t)snprintf(n < len ? buf + n : NULL, n < len ? len - n : 0,
				"%s%s", i > 0 ? ", " : "", row->choices[i]);
		return (int)n;
	default:
		return snprintf(buf, len, "text, up to %d bytes", PLX_CONF_STR_MAX - 1);
	}
}

void
plx_conf_print(const struct plx_conf *c, FILE *f, const char *prefix, unsigned int flags)
{
	char env[PLX_CONF_NAME_MAX], value[PLX_CONF_STR_MAX], range[PLX_CONF_STR_MAX];
	const struct plx_conf_row *row;

	if (flags & PLX_CONF_PRINT_HEADER)
		fprintf(f, "#\n# Pollux settings\n#\n\n");
	for (unsigned int i = 0; i < plx_conf_n(); i++) {
		row = plx_conf_row(i);
		if (flags & PLX_CONF_PRINT_DOC) {
			plx_conf_format_range(i, range, sizeof(range));
			fprintf(f, "#\n# %s\n# %s%s%s (default \"%s\")\n#\n", row->help, range,
				*row->unit != '\0' ? " " : "", row->unit, row->def);
		}
		if (flags & PLX_CONF_PRINT_VALUES) {
			conf_env_name(row->name, env, sizeof(env));
			plx_conf_format(c, i, value, sizeof(value));
			fprintf(f, "%s%s=%s\n", prefix != NULL ? prefix : "PLX_", env, value);
		}
		if (flags & PLX_CONF_PRINT_DOC)
			fputc('\n', f);
	}
}

bool
plx_conf_next(const char **list, char *name, size_t len)
{
	size_t n;

	*list += strspn(*list, ", ");
	n = strcspn(*list, ", ");
	snprintf(name, len, "%.*s", (int)n, *list);
	*list += n;
	return n != 0;
}

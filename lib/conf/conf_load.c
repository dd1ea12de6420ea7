/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_load.c - many settings: a JSON file, the environment, the process's own set
 *
 * Design notes
 * - A JSON document is applied to a copy, which replaces the set only if all of it is valid, so a
 *   refused document changes nothing.
 */
#include "plx_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "conf_ucx.h"
#include "plx_hash.h"

extern char **environ;

static struct plx_conf conf_process;
static uint64_t conf_process_env; /* hash of the variables that it was read from */
static pthread_once_t conf_process_once = PTHREAD_ONCE_INIT;
static bool conf_unknown_plx_said; /* once in a process; see conf_load_env() */
static bool conf_unknown_ucx_said;

int
plx_conf_set_json(struct plx_conf *c, const char *name, const struct json_t *value,
	enum plx_conf_source source, char *err)
{
	char text[32];
	int id = plx_conf_find(name);
	enum plx_conf_type type;

	if (id < 0) {
		conf_err(err, "no setting \"%.64s\"", name);
		return id;
	}
	type = plx_conf_row(id)->type;
	if (json_is_string(value))
		return plx_conf_set(c, name, json_string_value(value), source, err);
	if (type == PLX_CONF_BOOL && json_is_boolean(value))
		return plx_conf_set(c, name, json_is_true(value) ? "yes" : "no", source, err);
	if (type == PLX_CONF_UINT && json_is_integer(value)) {
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return plx_conf_set(c, name, text, source, err);
	}
	conf_err(err, "%s: the value must be %s", name,
		type == PLX_CONF_UINT   ? "a whole number or text such as \"64k\""
		: type == PLX_CONF_BOOL ? "true or false"
					: "text");
	return -EINVAL;
}

/* A name with a dot is never an environment form: files use the names of the table. */
static int
conf_set_in_section(struct plx_conf *c, const char *section, const char *key, const json_t *value,
	enum plx_conf_source source, char *err)
{
	char name[PLX_CONF_NAME_MAX];
	int id, len;

	len = snprintf(name, sizeof(name), "%s.%s", section, key);
	id = len < (int)sizeof(name) ? plx_conf_find(name) : -ENOENT;
	if (id < 0) {
		conf_err(err, "no setting \"%.64s\"", name);
		return -EINVAL;
	}
	return plx_conf_set_json(c, name, value, source, err);
}

static int
conf_apply_json(struct plx_conf *c, const json_t *root, enum plx_conf_source source, char *err)
{
	const char *section, *key;
	json_t *settings, *value;
	int rc;

	if (!json_is_object(root)) {
		conf_err(err, "the document is not an object of sections");
		return -EINVAL;
	}
	json_object_foreach((json_t *)(uintptr_t)root, section, settings)
	{
		if (!json_is_object(settings)) {
			conf_err(err, "section \"%.32s\" is not an object of settings", section);
			return -EINVAL;
		}
		json_object_foreach(settings, key, value)
		{
			rc = conf_set_in_section(c, section, key, value, source, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* Other threads may be reading numbers of dst meanwhile, never text. */
static void
conf_take(struct plx_conf *dst, const struct plx_conf *src)
{
	for (unsigned int i = 0; i < plx_conf_n(); i++) {
		__atomic_store_n(&dst->v[i].u, src->v[i].u, __ATOMIC_RELAXED);
		if (strcmp(dst->v[i].s, src->v[i].s) != 0)
			memcpy(dst->v[i].s, src->v[i].s, sizeof(dst->v[i].s));
		dst->v[i].source = src->v[i].source;
	}
}

/* A setting that is fixed at start must not differ; a row with its present value does not
 * change its source. */
static int
conf_keep_fixed(const struct plx_conf *before, struct plx_conf *after, char *err)
{
	for (unsigned int i = 0; i < plx_conf_n(); i++) {
		if (plx_conf_row(i)->runtime)
			continue;
		if (before->v[i].u != after->v[i].u || strcmp(before->v[i].s, after->v[i].s) != 0) {
			conf_err(err, "%s: can be set only before start", plx_conf_row(i)->name);
			return -EPERM;
		}
		after->v[i].source = before->v[i].source;
	}
	return 0;
}

int
plx_conf_load_json(struct plx_conf *c, const struct json_t *root, enum plx_conf_source source,
	bool runtime_only, char *err)
{
	struct plx_conf *copy;
	int rc;

	copy = malloc(sizeof(*copy));
	if (copy == NULL) {
		conf_err(err, "out of memory");
		return -ENOMEM;
	}
	*copy = *c;
	rc = conf_apply_json(copy, root, source, err);
	if (rc == 0 && runtime_only)
		rc = conf_keep_fixed(c, copy, err);
	if (rc == 0)
		conf_take(c, copy);
	free(copy);
	return rc;
}

static int
conf_load_fd(struct plx_conf *c, int fd, char *err)
{
	json_error_t at;
	char *text = NULL;
	size_t len = 0;
	json_t *root;
	int rc;

	rc = conf_read_file(fd, &text, &len, err);
	if (rc < 0)
		return rc;
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	free(text);
	if (root == NULL) {
		conf_err(err, "line %d column %d: %.80s", at.line, at.column, at.text);
		return -EINVAL;
	}
	rc = plx_conf_load_json(c, root, PLX_CONF_FROM_FILE, false, err);
	json_decref(root);
	return rc == -ENOMEM ? rc : rc < 0 ? -EINVAL : 0;
}

int
plx_conf_load_file(struct plx_conf *c, const char *path, char *err, size_t err_len)
{
	char why[PLX_CONF_ERR_MAX] = "";
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a fifo must not block */
	if (fd < 0)
		rc = -errno;
	else
		rc = conf_load_fd(c, fd, why);
	if (fd >= 0)
		close(fd);
	if (rc < 0 && *why == '\0')
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	if (rc < 0 && err != NULL)
		snprintf(err, err_len, "%s: %s", path, why);
	return rc;
}

/* If entry is <prefix>NAME=value: copies NAME and returns value, else NULL. */
static const char *
conf_env_split(const char *entry, const char *prefix, char name[PLX_CONF_NAME_MAX])
{
	size_t len, prefix_len = strlen(prefix);

	if (strncmp(entry, prefix, prefix_len) != 0)
		return NULL;
	entry += prefix_len;
	len = strcspn(entry, "=");
	if (len == 0 || entry[len] == '\0')
		return NULL;
	snprintf(name, PLX_CONF_NAME_MAX, "%.*s", (int)(len < 256 ? len : 256), entry);
	return entry + len + 1;
}

static void
conf_load_ucx(struct plx_conf *c, const char *prefix, bool report)
{
	char name[PLX_CONF_NAME_MAX], err[PLX_CONF_ERR_MAX];
	const char *text;
	int rc;

	for (char **e = environ; e != NULL && *e != NULL; e++) {
		text = conf_env_split(*e, prefix, name);
		if (text == NULL || conf_ucx_is_pattern(name))
			continue;
		rc = plx_conf_set_ucx(c, name, text, PLX_CONF_FROM_ENV, err);
		if (rc < 0 && rc != -ENOENT && report)
			PLX_LOG(WARNING, conf, "%s%s is ignored: %s", prefix, name, err);
	}
}

static void
conf_load_plx(struct plx_conf *c, bool report)
{
	char name[PLX_CONF_NAME_MAX], err[PLX_CONF_ERR_MAX];
	bool unknown = false;
	const char *text;
	int rc;

	for (char **e = environ; e != NULL && *e != NULL; e++) {
		text = conf_env_split(*e, "PLX_", name);
		if (text == NULL || strcmp(name, "CONFIG") == 0)
			continue;
		rc = plx_conf_set(c, name, text, PLX_CONF_FROM_ENV, err);
		if (!report || rc == 0)
			continue;
		if (rc != -ENOENT)
			PLX_LOG(WARNING, conf, "PLX_%s is ignored: %s", name, err);
		else if (!__atomic_load_n(&conf_unknown_plx_said, __ATOMIC_RELAXED))
			PLX_LOG(WARNING, conf, "PLX_%s is not a setting and is ignored", name);
		unknown |= rc == -ENOENT;
	}
	if (unknown)
		__atomic_store_n(&conf_unknown_plx_said, true, __ATOMIC_RELAXED);
}

/* UCX_NAME=value of an unknown setting: append its name. */
static void
conf_add_unknown(const char *entry, const char *prefix, char *names, size_t len)
{
	char name[PLX_CONF_NAME_MAX];
	size_t n = strlen(names);

	if (conf_env_split(entry, prefix, name) == NULL || strcmp(name, "CONFIG_DIR") == 0)
		return;
	if (!conf_ucx_is_pattern(name) && (conf_ucx_find(name) != NULL || conf_ucx_is_transport(name)))
		return;
	if (n + strlen(prefix) + strlen(name) + 2 < len)
		snprintf(names + n, len - n, " %s%s", prefix, name);
}

void
plx_conf_tell_unknown(const struct plx_conf *c, const char *prefix)
{
	char names[512] = "", ucx[PLX_CONF_NAME_MAX] = "", text[8];

	plx_conf_format_ucx(c, "WARN_UNUSED_ENV_VARS", text, sizeof(text));
	if (strcmp(text, "n") == 0)
		return;
	if (*prefix != '\0' && snprintf(ucx, sizeof(ucx), "%s_UCX_", prefix) >= (int)sizeof(ucx))
		ucx[0] = '\0';
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		conf_add_unknown(*e, "UCX_", names, sizeof(names));
		if (ucx[0] != '\0')
			conf_add_unknown(*e, ucx, names, sizeof(names));
	}
	if (names[0] != '\0' && !__atomic_exchange_n(&conf_unknown_ucx_said, true, __ATOMIC_RELAXED))
		PLX_LOG(WARNING, conf, "these variables are not settings of UCX:%s "
			"(UCX_WARN_UNUSED_ENV_VARS=n silences this)", names);
}

static int
conf_load_env(struct plx_conf *c, const char *prefix, bool report)
{
	const char *path = secure_getenv("PLX_CONFIG");
	char err[512], ucx[PLX_CONF_NAME_MAX] = "";
	int rc = 0;

	if (prefix != NULL && *prefix != '\0' &&
		snprintf(ucx, sizeof(ucx), "%s_UCX_", prefix) >= (int)sizeof(ucx))
		ucx[0] = '\0';
	conf_load_ini(c, "UCX_", report);
	if (ucx[0] != '\0')
		conf_load_ini(c, ucx, report);
	if (path != NULL && *path != '\0') {
		rc = plx_conf_load_file(c, path, err, sizeof(err));
		if (rc < 0 && report)
			PLX_LOG(ERR, conf, "settings of PLX_CONFIG are not used: %s", err);
	}
	conf_load_ucx(c, "UCX_", report);
	if (ucx[0] != '\0')
		conf_load_ucx(c, ucx, report);
	conf_load_plx(c, report);
	return rc;
}

int
plx_conf_load_env(struct plx_conf *c, const char *prefix)
{
	return conf_load_env(c, prefix, true);
}

/* @return a hash of all variables that may be settings */
static uint64_t
conf_env_hash(void)
{
	uint64_t hash = PLX_HASH_BEGIN;

	for (char **e = environ; e != NULL && *e != NULL; e++)
		if (strncmp(*e, "PLX_", 4) == 0 || strncmp(*e, "UCX_", 4) == 0)
			hash = plx_hash_on(hash, *e, strlen(*e) + 1);
	return hash;
}

/* The first pass is silent, so that the second logs at the level that the first found. */
static void
conf_process_load(void)
{
	conf_process_env = conf_env_hash();
	plx_conf_defaults(&conf_process);
	conf_load_env(&conf_process, NULL, false);
	if (conf_process.v[PLX_CONF_LOG_LEVEL].source != PLX_CONF_FROM_DEFAULT)
		plx_log_set_level(plx_conf_log_level(&conf_process));
	plx_log_set_file(conf_process.v[PLX_CONF_LOG_FILE].s);
	conf_load_env(&conf_process, NULL, true);
}

struct plx_conf *
plx_conf_process(void)
{
	pthread_once(&conf_process_once, conf_process_load);
	return &conf_process;
}

void
plx_conf_now(struct plx_conf *c, const char *prefix)
{
	const struct plx_conf *process = plx_conf_process();

	if (prefix == NULL && conf_env_hash() == conf_process_env) {
		*c = *process; /* what is wrong in it was reported */
		return;
	}
	plx_conf_defaults(c);
	(void)plx_conf_load_env(c, prefix); /* a bad file is reported, and the variables count */
	for (unsigned i = 0; i < plx_conf_n(); i++)
		if (process->v[i].source == PLX_CONF_FROM_RPC)
			c->v[i] = process->v[i];
}

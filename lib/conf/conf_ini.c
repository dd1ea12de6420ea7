/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_ini.c - a file as text; and ucx.conf, in the places where UCX looks for it
 *
 * Design notes
 * - Lines are UCX_NAME = value, comments begin with # or ;, and there are sections. A section may
 *   begin with conditions on the machine (name of a processor or product). Sections with
 *   conditions are skipped: their settings were measured with UCX, not with us.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf_ucx.h"

#define CONF_FILE_MAX (1u << 20)

static const char *const conditions[] = {"CPU vendor", "CPU model", "DMI product name", NULL};

int
conf_read_file(int fd, char **out, size_t *out_len, char *err)
{
	struct stat st;
	size_t len = 0;
	ssize_t n = 0;
	char *buf;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > CONF_FILE_MAX) {
		conf_err(err, S_ISREG(st.st_mode) ? "larger than 1 MiB" : "not a regular file");
		return -EINVAL;
	}
	buf = malloc(CONF_FILE_MAX + 1);
	if (buf == NULL)
		return -ENOMEM;
	while (len < CONF_FILE_MAX && (n = read(fd, buf + len, CONF_FILE_MAX - len)) > 0)
		len += (size_t)n;
	if (n < 0) {
		n = -errno;
		free(buf);
		return (int)n;
	}
	buf[len] = '\0';
	*out = buf;
	*out_len = len;
	return 0;
}

char *
plx_conf_trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

/* Return the position of the first = or :, and cut off a comment after blanks; NULL: no setting. */
static char *
split_line(char *line)
{
	char *mark = strpbrk(line, "=:");

	if (mark == NULL)
		return NULL;
	for (char *p = mark + 1; *p != '\0'; p++)
		if (*p == ';' && isspace((unsigned char)p[-1])) {
			*p = '\0';
			break;
		}
	*mark = '\0';
	return mark + 1;
}

static bool
is_condition(const char *name)
{
	for (unsigned int i = 0; conditions[i] != NULL; i++)
		if (strcmp(conditions[i], name) == 0)
			return true;
	return false;
}

struct ini {
	struct plx_conf *conf;
	const char *prefix; /* of the names that are used: "UCX_" */
	const char *path;
	bool report;
	bool skip; /* below a condition */
};

static void
ini_set(struct ini *ini, const char *name, const char *value)
{
	char err[PLX_CONF_ERR_MAX];
	size_t len = strlen(ini->prefix);
	int rc;

	if (strncmp(name, ini->prefix, len) != 0 || conf_ucx_is_pattern(name))
		return;
	rc = plx_conf_set_ucx(ini->conf, name + len, value, PLX_CONF_FROM_FILE, err);
	if (rc != 0 && ini->report)
		PLX_LOG(WARNING, conf, "%s of %s is ignored: %s", name, ini->path, err);
}

static void
ini_line(struct ini *ini, char *line)
{
	char *value, *name;

	line = plx_conf_trim(line);
	if (*line == '\0' || *line == '#' || *line == ';')
		return;
	if (*line == '[') {
		ini->skip = false;
		return;
	}
	value = split_line(line);
	if (value == NULL) {
		if (ini->report)
			PLX_LOG(WARNING, conf, "%s: \"%.40s\" is not a setting", ini->path, line);
		return;
	}
	name = plx_conf_trim(line);
	if (is_condition(name))
		ini->skip = true;
	else if (!ini->skip)
		ini_set(ini, name, plx_conf_trim(value));
}

static void
ini_load(struct ini *ini)
{
	char *text = NULL, *rest, *line;
	char err[PLX_CONF_ERR_MAX] = "";
	size_t len;
	int fd, rc;

	fd = open(ini->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	rc = conf_read_file(fd, &text, &len, err);
	close(fd);
	if (rc < 0) {
		if (ini->report)
			PLX_LOG(WARNING, conf, "%s is ignored: %s", ini->path,
				*err != '\0' ? err : strerror(-rc));
		return;
	}
	ini->skip = false;
	rest = text;
	if (strncmp(rest, "\xef\xbb\xbf", 3) == 0)
		rest += 3;
	while ((line = strsep(&rest, "\n")) != NULL)
		ini_line(ini, line);
	free(text);
}

/* dir/more/ucx.conf; dir of dir_len bytes. */
static void
ini_load_in(struct ini *ini, const char *dir, size_t dir_len, const char *more)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%.*s/%sucx.conf", (int)dir_len, dir, more) >= (int)sizeof(path))
		return;
	ini->path = path;
	ini_load(ini);
	ini->path = NULL;
}

void
conf_load_ini(struct plx_conf *c, const char *prefix, bool report)
{
	struct ini ini = {.conf = c, .prefix = prefix, .report = report};
	const char *dir, *slash;
	Dl_info me;

	ini_load_in(&ini, "/etc/ucx", strlen("/etc/ucx"), "");
	if (getauxval(AT_SECURE))
		return; /* the caller closes the rest */
	if (dladdr((const void *)(uintptr_t)conf_load_ini, &me) != 0 && me.dli_fname != NULL) {
		slash = strrchr(me.dli_fname, '/');
		if (slash != NULL)
			ini_load_in(&ini, me.dli_fname, (size_t)(slash - me.dli_fname), "../etc/ucx/");
	}
	dir = secure_getenv("HOME");
	if (dir != NULL)
		ini_load_in(&ini, dir, strlen(dir), "");
	dir = secure_getenv("UCX_CONFIG_DIR");
	if (dir != NULL)
		ini_load_in(&ini, dir, strlen(dir), "");
	ini_load_in(&ini, ".", 1, "");
}

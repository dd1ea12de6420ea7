/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_ini.c - the configuration file: sections, and lines of key and value
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cci_int.h"

static int
ini_bad(char *err, unsigned line, const char *what)
{
	snprintf(err, CCI_ERR_TEXT, "line %u: %s", line, what);
	return -EINVAL;
}

static int
ini_section(struct cci_ini *ini, char *s, unsigned line, char *err)
{
	char *close = strchr(s, ']');
	struct cci_ini_dev *d;
	char *name;

	if (close == NULL || close[1] != '\0')
		return ini_bad(err, line, "a section is [name]");
	*close = '\0';
	name = plx_conf_trim(s + 1);
	if (*name == '\0')
		return ini_bad(err, line, "a section without a name");
	for (unsigned i = 0; i < ini->n_devs; i++) {
		if (strcmp(ini->devs[i].name, name) == 0)
			return ini_bad(err, line, "a section of this name is there already");
	}
	if (ini->n_devs == CCI_INI_DEVS)
		return ini_bad(err, line, "too many sections");
	d = &ini->devs[ini->n_devs];
	d->name = strdup(name);
	if (d->name == NULL)
		return -ENOMEM;
	d->line = line;
	d->n_keys = 0;
	ini->n_devs++;
	return 0;
}

static int
ini_key(struct cci_ini *ini, char *s, unsigned line, char *err)
{
	char *eq = strchr(s, '='), *value;
	struct cci_ini_dev *d;
	struct cci_ini_key *k;

	if (ini->n_devs == 0)
		return ini_bad(err, line, "a line before the first section");
	d = &ini->devs[ini->n_devs - 1];
	if (eq == NULL)
		return ini_bad(err, line, "neither [section] nor key = value");
	*eq = '\0';
	s = plx_conf_trim(s);
	value = plx_conf_trim(eq + 1);
	if (*s == '\0')
		return ini_bad(err, line, "a value without a key");
	for (unsigned i = 0; i < d->n_keys; i++) {
		if (strncmp(d->keys[i].text, s, strlen(s)) == 0 &&
			d->keys[i].text[strlen(s)] == '=')
			return ini_bad(err, line, "this key is there already");
	}
	if (d->n_keys == CCI_INI_KEYS)
		return ini_bad(err, line, "too many keys");
	k = &d->keys[d->n_keys];
	if (asprintf(&k->text, "%s=%s", s, value) < 0)
		return -ENOMEM;
	k->line = line;
	d->n_keys++;
	return 0;
}

static int
parse_line(struct cci_ini *ini, const char *text, size_t len, unsigned line, char *err)
{
	const char *comment = memchr(text, '#', len);
	char buf[CCI_INI_LINE];
	char *s;

	if (comment != NULL)
		len = comment - text;
	if (len >= sizeof(buf))
		return ini_bad(err, line, "longer than 1,023 bytes");
	if (memchr(text, '\0', len) != NULL)
		return ini_bad(err, line, "a byte of value 0");
	memcpy(buf, text, len);
	buf[len] = '\0';
	s = plx_conf_trim(buf);
	if (*s == '\0')
		return 0;
	return *s == '[' ? ini_section(ini, s, line, err) : ini_key(ini, s, line, err);
}

int
cci_ini_parse(const char *text, size_t len, struct cci_ini *ini, char *err)
{
	static const char bom[] = "\xef\xbb\xbf"; /* some editors begin files of UTF-8 with it */
	const size_t bom_len = sizeof(bom) - 1;
	unsigned line = 1;

	ini->n_devs = 0;
	snprintf(err, CCI_ERR_TEXT, "no memory");
	if (len >= bom_len && memcmp(text, bom, bom_len) == 0) {
		text += bom_len;
		len -= bom_len;
	}
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end != NULL ? (size_t)(end - text) : len;
		int rc = parse_line(ini, text, n, line++, err);

		if (rc != 0) {
			cci_ini_free(ini);
			return rc;
		}
		n = RTE_MIN(n + 1, len);
		text += n;
		len -= n;
	}
	return 0;
}

void
cci_ini_free(struct cci_ini *ini)
{
	for (unsigned i = 0; i < ini->n_devs; i++) {
		free(ini->devs[i].name);
		for (unsigned k = 0; k < ini->devs[i].n_keys; k++)
			free(ini->devs[i].keys[k].text);
	}
	ini->n_devs = 0;
}

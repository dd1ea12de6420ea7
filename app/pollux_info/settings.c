/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * settings.c - every setting with its value and source, and the variables of the environment
 */
#include <string.h>

#include "info.h"

extern char **environ;

static const char *const sources[] = {"default", "file", "environment", "api", "rpc"};

static json_t *
setting(const struct plx_conf *conf, unsigned id)
{
	const struct plx_conf_row *row = plx_conf_row(id);
	char value[PLX_CONF_STR_MAX];

	plx_conf_format(conf, id, value, sizeof(value));
	return json_pack("{s:s, s:s*, s:s, s:s, s:s, s:s}", "name", row->name, "value", value, "source",
		sources[conf->v[id].source], "default", row->def, "unit", row->unit, "help", row->help);
}

json_t *
info_settings(const struct plx_conf *conf)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < plx_conf_n(); i++)
		json_array_append_new(list, setting(conf, i));
	return list;
}

json_t *
info_environment(void)
{
	json_t *list = json_array();

	for (char **e = environ; *e != NULL; e++)
		if (strncmp(*e, "PLX_", 4) == 0 || strncmp(*e, "UCX_", 4) == 0) {
			json_t *text = json_string(*e); /* NULL: it is no UTF-8 */

			json_array_append_new(list, text != NULL ? text : json_string("?"));
		}
	return list;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_config.c - settings, by UCX's names and by ours
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucp_int.h"

ucs_status_t
ucp_config_read(const char *env_prefix, const char *filename, ucp_config_t **config_p)
{
	char err[PLX_CONF_ERR_MAX];
	struct ucp_config *c = malloc(sizeof(*c));
	int rc = 0;

	if (c == NULL)
		return UCS_ERR_NO_MEMORY;
	snprintf(c->prefix, sizeof(c->prefix), "%s", env_prefix != NULL ? env_prefix : "");
	if (filename != NULL) {
		plx_conf_defaults(&c->conf);
		rc = plx_conf_load_file(&c->conf, filename, err, sizeof(err));
		if (rc == 0)
			(void)plx_conf_load_env(&c->conf, env_prefix); /* as plx_conf_now() */
		else
			PLX_LOG(ERR, ucp, "%s: %s", filename, err);
	} else {
		plx_conf_now(&c->conf, env_prefix);
	}
	if (rc != 0) {
		free(c);
		return ucp_status(rc);
	}
	*config_p = c;
	return UCS_OK;
}

void
ucp_config_release(ucp_config_t *config)
{
	free(config);
}

/* UCX's names first: LOG_LEVEL is one of ours as well, whose words are accepted, too. */
ucs_status_t
ucp_config_modify(ucp_config_t *config, const char *name, const char *value)
{
	char err[PLX_CONF_ERR_MAX] = "", ours[PLX_CONF_ERR_MAX];
	int rc, id = plx_conf_find(name);

	rc = plx_conf_set_ucx(&config->conf, name, value, PLX_CONF_FROM_API, err);
	if (id >= 0 && (rc == -ENOENT || (rc == -EINVAL &&
				plx_conf_set(&config->conf, name, value, PLX_CONF_FROM_API, ours) == 0)))
		rc = plx_conf_set(&config->conf, name, value, PLX_CONF_FROM_API, err);
	if (rc == 0 && id == PLX_CONF_LOG_LEVEL)
		plx_log_set_level(plx_conf_log_level(&config->conf)); /* at once, as in UCX */
	if (rc != 0)
		PLX_LOG(INFO, ucp, "setting %s: %s", name, err);
	return rc == 0 ? UCS_OK : rc == -ENOMEM ? UCS_ERR_NO_MEMORY : UCS_ERR_INVALID_PARAM;
}

void
ucp_config_print(const ucp_config_t *config, FILE *stream, const char *title,
	ucs_config_print_flags_t print_flags)
{
	if ((print_flags & UCS_CONFIG_PRINT_HEADER) && title != NULL)
		fprintf(stream, "#\n# %s\n#\n\n", title);
	plx_conf_print_ucx(&config->conf, stream, (unsigned)print_flags);
	if (print_flags & UCS_CONFIG_PRINT_HEADER)
		fprintf(stream, "\n#\n# Pollux\n#\n\n");
	plx_conf_print(&config->conf, stream, NULL, (unsigned)print_flags & ~UCS_CONFIG_PRINT_HEADER);
}

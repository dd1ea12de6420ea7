/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_ucx.c - settings of UCX, as an application or a user writes them: NAME=value lines
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_conf.h"
#include "plx_log.h"

#define TEXT_MAX 2048

static struct plx_conf conf;

/* What was taken is printed, and what is printed is taken and printed the same. */
static void
set(const char *name, const char *value)
{
	char kept[TEXT_MAX], again[TEXT_MAX], err[PLX_CONF_ERR_MAX];

	if (plx_conf_set_ucx(&conf, name, value, PLX_CONF_FROM_API, err) != 0)
		return;
	if (plx_conf_format_ucx(&conf, name, kept, sizeof(kept)) < 0)
		return; /* a pattern of several */
	/* what is above 0 may be printed as 0.000 */
	if (plx_conf_set_ucx(&conf, name, kept, PLX_CONF_FROM_API, err) != 0) {
		if (strcmp(kept, "0.000") != 0)
			abort();
		return;
	}
	if (plx_conf_format_ucx(&conf, name, again, sizeof(again)) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char text[TEXT_MAX], *rest = text, *line, *value;
	static FILE *null;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	plx_log_set_level(RTE_LOG_EMERG);
	plx_conf_defaults(&conf);
	while ((line = strsep(&rest, "\n")) != NULL) {
		value = strchr(line, '=');
		if (value == NULL)
			continue;
		*value++ = '\0';
		set(line, value);
	}
	if (null == NULL)
		null = fopen("/dev/null", "w");
	if (null != NULL)
		plx_conf_print_ucx(&conf, null, PLX_CONF_PRINT_VALUES | PLX_CONF_PRINT_HIDDEN);
	return 0;
}

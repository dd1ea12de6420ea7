/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * info.h - what pollux_info finds out, as JSON, and the text that is made of it
 */
#ifndef INFO_H
#define INFO_H

#include <jansson.h>

#include "plx_conf.h"

/* facts.c: each is a new object, the caller's. */
json_t *info_build(void);
json_t *info_devices(const struct plx_conf *conf);
json_t *info_pages(const struct plx_conf *conf);
json_t *info_namespaces(void);
json_t *info_copies(const struct plx_conf *conf);

/* settings.c: every setting, and the variables that may have set one. */
json_t *info_settings(const struct plx_conf *conf);
json_t *info_environment(void);

/* text.c: at most 80 columns, and 24 lines unless all is asked for. */
void info_print(const json_t *info, int all);

#endif

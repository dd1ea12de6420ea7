/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_int.h - what the files of lib/conf share
 */
#ifndef CONF_INT_H
#define CONF_INT_H

#include <stdint.h>

#include "plx_conf.h"
#include "plx_log.h"

PLX_LOG_DECLARE(conf);

/** A set is being made: from now on no settings can be added. */
void conf_table_use(void);

/** Write a sentence to err (PLX_CONF_ERR_MAX bytes, may be NULL); control bytes become '?'. */
__attribute__((format(printf, 2, 3))) void conf_err(char *err, const char *fmt, ...);

/**
 * Digits with an optional suffix k, m or g, and nothing else.
 * Errors: -EINVAL not such a number; -ERANGE does not fit 64 bits.
 */
int conf_parse_uint(const char *text, uint64_t *out);

/** Write the environment form of a name: "rndv.chunk" -> "RNDV_CHUNK". @return len as snprintf. */
int conf_env_name(const char *name, char *buf, size_t len);

/**
 * Read the whole of a regular file of at most 1 MiB; the caller frees text, which ends with
 * a byte 0. Errors: -EINVAL no such file; -ENOMEM; those of read(). Only the first writes
 * to err.
 */
int conf_read_file(int fd, char **text, size_t *len, char *err);

/** Apply the settings of every ucx.conf whose names begin with prefix; see conf_ini.c. */
void conf_load_ini(struct plx_conf *c, const char *prefix, bool report);

#endif

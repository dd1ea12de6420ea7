/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_ucx.h - the settings of UCX, between the files of lib/conf
 */
#ifndef CONF_UCX_H
#define CONF_UCX_H

#include <string.h>

#include "conf_int.h"

/** Types of UCX's settings, by the names of its parser. */
enum conf_ucx_type {
	UCX_ALIAS,   /* another name of the row that def names */
	UCX_BOOL,    /* y, yes, on, 1; n, no, off, 0 */
	UCX_TERNARY, /* and try, maybe */
	UCX_ONOFF,   /* on, off, auto */
	UCX_INT,
	UCX_UINT,    /* and inf */
	UCX_ULONG,
	UCX_ULUNITS, /* and auto, inf */
	UCX_DOUBLE,
	UCX_POS,     /* above 0, or auto */
	UCX_MEM,     /* bytes: 8k, 1mb, inf, auto */
	UCX_TIME,    /* 10us, 1s */
	UCX_TIMEU,   /* and inf, auto */
	UCX_BW,      /* 10GBps, 100Mb/s, auto */
	UCX_ENUM,    /* one of words */
	UCX_BITS,    /* some of words */
	UCX_SIGNO,   /* HUP, SIGHUP, 1 */
	UCX_STR,
	UCX_STRS,    /* a,b,c */
	UCX_PATHS,   /* a:b:c */
	UCX_MEMS,    /* a list of UCX_MEM */
	UCX_SIGNOS,  /* a list of UCX_SIGNO */
	UCX_LIST,    /* all; a,b; ^a,b */
	UCX_RANGES,  /* and mlx5_[0-3]:1 */
	UCX_KMEM,    /* of each of words a UCX_MEM: 8k; intra:8k,inter:1m */
	UCX_KTIME,
	UCX_KBW,
};

enum conf_ucx_group {
	UCX_UCP,    /* ucp_config_print() writes these */
	UCX_GLOBAL,
};

struct conf_ucx_row {
	const char *name; /* without UCX_ */
	enum conf_ucx_group group;
	enum conf_ucx_type type;
	const char *def;
	const char *const *words; /* NULL-terminated */
};

/** Longest value, with its terminating byte. */
#define CONF_UCX_VALUE_MAX 1024

/** @return whether a name is a pattern of fnmatch(3): UCX takes those, too. */
static inline bool
conf_ucx_is_pattern(const char *name)
{
	return strpbrk(name, "*?[") != NULL;
}

/** @return row i of UCX's table, or NULL after the last. */
const struct conf_ucx_row *conf_ucx_row(unsigned int i);

/** @return the row of exactly this name, or NULL. */
const struct conf_ucx_row *conf_ucx_find(const char *name);

/** @return whether a setting of UCX's transports has a name that matches the fnmatch(3) pattern. */
bool conf_ucx_is_transport(const char *pattern);

/**
 * Check a value as UCX does, and write it as UCX prints it to out (CONF_UCX_VALUE_MAX bytes).
 * Errors: -EINVAL not of the type; -ENAMETOOLONG.
 */
int conf_ucx_value(const struct conf_ucx_row *row, const char *text, char *out);

/** The value of a UCX_MEM in bytes. Errors: -EINVAL. */
#define CONF_UCX_INF UINT64_MAX
#define CONF_UCX_AUTO (UINT64_MAX - 1)
int conf_ucx_mem(const char *text, uint64_t *bytes);

/** Copy the value of key in "intra:8k,inter:1m". Errors: -ENOENT. */
int conf_ucx_key(const char *text, const char *key, char *out, size_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_param.c - the parameters of a method
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "plx_rpc.h"

int
plx_rpc_unpack(const json_t *params, char *err, const char *fmt, ...)
{
	json_t *none = params == NULL ? json_object() : NULL;
	json_error_t at;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = json_vunpack_ex(
		none != NULL ? none : (json_t *)(uintptr_t)params, &at, JSON_STRICT, fmt, ap);
	va_end(ap);
	json_decref(none); /* nothing was read from it */
	if (rc == 0)
		return 0;
	snprintf(err, PLX_RPC_ERR_MAX, "%s", at.text);
	return -EINVAL;
}

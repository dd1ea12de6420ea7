/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_param.c - the parameters of a method, and in words what is wrong with them
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plx_rpc.h"

/* The only parameter whose value is of this type, or NULL. */
static const char *
only_one_of(json_t *params, const char *type)
{
	static const char *const names[] = {[JSON_OBJECT] = "object", [JSON_ARRAY] = "array", [JSON_STRING] = "string",
		[JSON_INTEGER] = "integer", [JSON_REAL] = "real", [JSON_TRUE] = "true", [JSON_FALSE] = "false",
		[JSON_NULL] = "null"};
	const char *key, *found = NULL;
	json_t *value;

	json_object_foreach(params, key, value) {
		if (strcmp(names[json_typeof(value)], type) != 0)
			continue;
		if (found != NULL)
			return NULL;
		found = key;
	}
	return found;
}

static void
say_type(json_t *params, const char *text, char *err)
{
	char wanted[40] = "of another type", got[20] = "";
	const char *name;

	(void)sscanf(text, "Expected %39[^,], got %19[a-z]", wanted, got);
	name = only_one_of(params, got);
	if (name != NULL)
		snprintf(err, PLX_RPC_ERR_MAX, "parameter \"%.64s\" must be %s, not %s", name, wanted, got);
	else
		snprintf(err, PLX_RPC_ERR_MAX, "a parameter must be %s, not %s", wanted, got);
}

/* The library's text names what it is about behind a colon; without that our words are enough. */
static void
say_wrong(json_t *params, const json_error_t *at, char *err)
{
	const char *colon = strstr(at->text, ": "), *names = colon != NULL ? colon + 2 : "?";

	switch (json_error_code(at)) {
	case json_error_item_not_found:
		snprintf(err, PLX_RPC_ERR_MAX, "parameter \"%.64s\" is missing", names);
		break;
	case json_error_end_of_input_expected:
		snprintf(err, PLX_RPC_ERR_MAX, "it has no parameter \"%.64s\"", names);
		break;
	case json_error_wrong_type:
		say_type(params, at->text, err);
		break;
	default:
		snprintf(err, PLX_RPC_ERR_MAX, "wrong parameters");
		break;
	}
}

int
plx_rpc_unpack(const json_t *params, char *err, const char *fmt, ...)
{
	json_t *all = params == NULL ? json_object() : json_incref((json_t *)(uintptr_t)params);
	json_error_t at;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = json_vunpack_ex(all, &at, JSON_STRICT, fmt, ap);
	va_end(ap);
	if (rc != 0)
		say_wrong(all, &at, err);
	json_decref(all); /* of an absent one nothing was read */
	return rc == 0 ? 0 : -EINVAL;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_call.c - JSON-RPC 2.0: from the text of a request to its answer
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpc_int.h"

PLX_LOG_DEFINE(rpc, "plx.rpc");

/* Answer a text even if a method cut it in the middle of a character. */
static json_t *
rpc_text(const char *text)
{
	json_t *json = json_string(text);
	char ascii[PLX_RPC_ERR_MAX];
	size_t i;

	if (json != NULL)
		return json;
	for (i = 0; text[i] != '\0' && i < sizeof(ascii) - 1; i++)
		ascii[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	ascii[i] = '\0';
	return json_string(ascii);
}

/* Consumes data, which may be NULL. */
static json_t *
rpc_error_data(const json_t *id, enum rpc_code code, const char *message, json_t *data)
{
	json_t *error = json_pack("{s:i, s:o}", "code", (int)code, "message", rpc_text(message));

	if (data != NULL)
		json_object_set_new(error, "data", data);
	return json_pack("{s:s, s:O?, s:o}", "jsonrpc", "2.0", "id", id, "error", error);
}

/* An absent id is answered as null. */
json_t *
rpc_error(const json_t *id, enum rpc_code code, const char *message)
{
	return rpc_error_data(id, code, message, NULL);
}

static enum rpc_code
rpc_code_of(int rc)
{
	return rc == -EINVAL || rc == -ERANGE ? RPC_INVALID_PARAMS : RPC_FAILED;
}

static json_t *
rpc_failed(const json_t *id, int rc, const char *err)
{
	const char *name = strerrorname_np(-rc);
	const char *text = strerrordesc_np(-rc);
	json_t *data;

	data = json_pack("{s:i, s:s, s:s}", "errno", -rc, "name", name != NULL ? name : "?", "text",
		text != NULL ? text : "?");
	return rpc_error_data(id, rpc_code_of(rc),
		*err != '\0'   ? err
		: text != NULL ? text
			       : "failed",
		data);
}

static json_t *
rpc_run(const json_t *id, const struct plx_rpc_method *method, const json_t *params)
{
	char err[PLX_RPC_ERR_MAX] = "";
	json_t *result = NULL;
	int rc;

	rc = method->fn(params, &result, err, method->arg);
	err[sizeof(err) - 1] = '\0';
	if (rc < 0) {
		json_decref(result);
		PLX_LOG(DEBUG, rpc, "%s failed %d: %s", method->name, rc, err);
		return rpc_failed(id, rc, err);
	}
	return json_pack("{s:s, s:O?, s:o}", "jsonrpc", "2.0", "id", id, "result",
		result != NULL ? result : json_true());
}

/* One place refuses everything that the specification allows besides an object. */
static const char *
rpc_check_request(const json_t *req)
{
	const json_t *id = json_object_get(req, "id");
	const json_t *params = json_object_get(req, "params");
	const char *version = json_string_value(json_object_get(req, "jsonrpc"));

	if (!json_is_object(req))
		return "the request is not an object";
	if (version == NULL || strcmp(version, "2.0") != 0)
		return "\"jsonrpc\" must be \"2.0\"";
	if (!json_is_string(json_object_get(req, "method")))
		return "\"method\" must be a string";
	if (id != NULL && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		return "\"id\" must be a string, a number or null";
	if (params != NULL && !json_is_object(params) && !json_is_array(params) &&
		!json_is_null(params))
		return "\"params\" must be an object";
	return NULL;
}

/* @return the answer, or NULL: a notification gets none, even if it failed. */
static json_t *
rpc_call(const json_t *req)
{
	const json_t *id = json_object_get(req, "id");
	json_t *name = json_object_get(req, "method");
	const json_t *params = json_object_get(req, "params");
	const char *wrong = rpc_check_request(req);
	struct plx_rpc_method method;
	json_t *answer;

	if (wrong != NULL)
		return rpc_error(NULL, RPC_INVALID_REQUEST, wrong);
	if (json_is_null(params) || (json_is_array(params) && json_array_size(params) == 0))
		params = NULL;
	if (rpc_method_find(json_string_value(name), &method) < 0)
		answer = rpc_error_data(
			id, RPC_METHOD_NOT_FOUND, "no such method", json_incref(name));
	else if (params != NULL && !json_is_object(params))
		answer = rpc_error(id, RPC_INVALID_PARAMS, "parameters are named: send an object");
	else
		answer = rpc_run(id, &method, params);
	if (id == NULL) {
		json_decref(answer);
		return NULL;
	}
	return answer;
}

static json_t *
rpc_batch(const json_t *batch)
{
	size_t n = json_array_size(batch);
	json_t *answers, *answer;

	if (n == 0)
		return rpc_error(NULL, RPC_INVALID_REQUEST, "the batch is empty");
	if (n > PLX_RPC_MAX_BATCH)
		return rpc_error(NULL, RPC_INVALID_REQUEST,
			"the batch has more than " RTE_STR(PLX_RPC_MAX_BATCH) " requests");
	answers = json_array();
	for (size_t i = 0; i < n; i++) {
		answer = rpc_call(json_array_get(batch, i));
		if (answer != NULL)
			json_array_append_new(answers, answer);
	}
	if (json_array_size(answers) > 0)
		return answers;
	json_decref(answers);
	return NULL;
}

int
rpc_call_text(const char *text, size_t len, json_t **answer)
{
	json_error_t at;
	json_t *json;

	json = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &at);
	if (json == NULL && json_error_code(&at) == json_error_duplicate_key) {
		*answer = rpc_error(NULL, RPC_INVALID_REQUEST, at.text);
		return 0;
	}
	if (json == NULL) {
		*answer = rpc_error(NULL, RPC_PARSE_ERROR, at.text);
		return -EBADMSG;
	}
	*answer = json_is_array(json) ? rpc_batch(json) : rpc_call(json);
	json_decref(json);
	return 0;
}

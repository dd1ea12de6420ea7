/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_worker.c - workers: created, listed, exported, advanced, destroyed
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

struct tc_worker *
tc_worker_find(struct tc *tc, const char *name)
{
	for (unsigned i = 0; i < tc->n_workers; i++) {
		if (strcmp(tc->worker[i]->name, name) == 0)
			return tc->worker[i];
	}
	tc_error(tc, "there is no worker \"%s\"", name);
	return NULL;
}

/* A name is a letter, then letters, digits, "_", "-" or "."; it is not taken. */
int
tc_name_check(struct tc *tc, const char *name)
{
	const char *p = name;

	if (!isalpha((unsigned char)*p) || strlen(name) >= TC_MAX_NAME)
		return tc_error(tc, "\"%s\" is not a name: a letter first, up to %d characters",
			name, TC_MAX_NAME - 1);
	while (isalnum((unsigned char)*p) || *p == '_' || *p == '-' || *p == '.')
		p++;
	if (*p != '\0')
		return tc_error(tc, "\"%s\" is not a name: it has a \"%c\"", name, *p);
	for (unsigned i = 0; i < tc->n_workers; i++) {
		if (strcmp(tc->worker[i]->name, name) == 0)
			return tc_error(tc, "the name \"%s\" is taken by a worker", name);
	}
	for (unsigned i = 0; i < tc->n_eps; i++) {
		if (strcmp(tc->ep[i]->name, name) == 0)
			return tc_error(tc, "the name \"%s\" is taken by an endpoint", name);
	}
	return 0;
}

unsigned
tc_progress_one(struct tc_worker *w)
{
	unsigned n = ucp_worker_progress(w->worker);

	w->turns++;
	w->busy_turns += n != 0;
	return n;
}

/* One turn of every worker, and a poll of every CCI endpoint. */
unsigned
tc_progress(struct tc *tc)
{
	unsigned n = tc_cci_progress();

	for (unsigned i = 0; i < tc->n_workers; i++)
		n += tc_progress_one(tc->worker[i]);
	return n;
}

/* The library starts with the first worker or memory. */
int
tc_library(struct tc *tc)
{
	ucp_params_t params = {0};
	ucs_status_t status;

	if (tc->context != NULL)
		return 0;
	if (tc->config == NULL) {
		status = ucp_config_read(NULL, NULL, &tc->config);
		if (status != UCS_OK) {
			tc->config = NULL;
			return tc_error(tc, "the configuration cannot be read: %s",
				ucs_status_string(status));
		}
	}
	params.field_mask = UCP_PARAM_FIELD_FEATURES;
	params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 |
			  UCP_FEATURE_AM | UCP_FEATURE_STREAM;
	status = ucp_init(&params, tc->config, &tc->context);
	if (status == UCS_OK)
		return 0;
	tc->context = NULL;
	return tc_error(tc, "the library does not start: %s", ucs_status_string(status));
}

static int
worker_mode(struct tc *tc, const char *text, ucs_thread_mode_t *mode)
{
	static const char *const names[] = {"single", "serialized", "multi"};

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			*mode = (ucs_thread_mode_t)i;
			return 0;
		}
	}
	return tc_error(tc, "\"%s\" is not a thread mode: single, serialized or multi", text);
}

static int
worker_create(struct tc *tc, int argc, char **argv)
{
	ucp_worker_params_t params = {0};
	ucs_thread_mode_t mode = UCS_THREAD_MODE_SINGLE;
	struct tc_worker *w;
	ucs_status_t status;
	char name[TC_MAX_NAME];

	if (argc > 1 && worker_mode(tc, argv[1], &mode) != 0)
		return -1;
	if (argc == 0)
		snprintf(name, sizeof(name), "w%u", tc->next_worker);
	if (tc_name_check(tc, argc > 0 ? argv[0] : name) != 0)
		return -1;
	if (tc->n_workers == TC_MAX_WORKERS)
		return tc_error(tc, "there are already %d workers, the maximum", TC_MAX_WORKERS);
	if (tc_library(tc) != 0)
		return -1;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return tc_error(tc, "no memory");
	params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
	params.thread_mode = mode;
	status = ucp_worker_create(tc->context, &params, &w->worker);
	tc->last.status = status;
	if (status != UCS_OK) {
		free(w);
		return tc_error(tc, "the worker cannot be created: %s", ucs_status_string(status));
	}
	snprintf(w->name, sizeof(w->name), "%s", argc > 0 ? argv[0] : name);
	tc->next_worker++;
	tc->worker[tc->n_workers++] = w;
	fprintf(tc->out, "worker %s\n", w->name);
	return 0;
}

static int
worker_list(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < tc->n_workers; i++) {
		const struct tc_worker *w = tc->worker[i];
		unsigned eps = 0;

		for (unsigned k = 0; k < tc->n_eps; k++)
			eps += tc->ep[k]->worker == w;
		fprintf(tc->out, "worker %s: %u endpoints, sent %llu, received %llu, failed %llu\n",
			w->name, eps, (unsigned long long)w->sent, (unsigned long long)w->received,
			(unsigned long long)w->failed);
	}
	tc->last.count = tc->n_workers;
	return 0;
}

static int
worker_address(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	ucp_address_t *addr;
	ucs_status_t status;
	size_t len;

	(void)argc;
	if (w == NULL)
		return -1;
	status = ucp_worker_get_address(w->worker, &addr, &len);
	tc->last.status = status;
	if (status != UCS_OK)
		return tc_error(
			tc, "worker %s has no address: %s", w->name, ucs_status_string(status));
	for (size_t i = 0; i < len; i++)
		fprintf(tc->out, "%02x", ((const uint8_t *)addr)[i]);
	fprintf(tc->out, "\n");
	tc->last.length = len;
	ucp_worker_release_address(w->worker, addr);
	return 0;
}

static void
worker_remove(struct tc *tc, struct tc_worker *w)
{
	unsigned i = 0;

	while (tc->worker[i] != w)
		i++;
	for (; i + 1 < tc->n_workers; i++)
		tc->worker[i] = tc->worker[i + 1];
	tc->n_workers--;
	for (i = 0; i < tc->n_msgs;) {
		if (tc->msg[i]->worker != w) {
			i++;
			continue;
		}
		free(tc->msg[i]);
		tc->msg[i] = tc->msg[--tc->n_msgs];
	}
	tc_listeners_drop(tc, w);
	tc_reqs_drop(tc, w);
	ucp_worker_destroy(w->worker);
	tc_am_drop(w);
	free(w);
}

static int
worker_destroy(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	unsigned eps = 0;

	(void)argc;
	if (w == NULL)
		return -1;
	for (unsigned i = 0; i < tc->n_eps; i++)
		eps += tc->ep[i]->worker == w;
	if (eps != 0)
		return tc_error(tc, "worker %s has %u endpoints; close them first", w->name, eps);
	worker_remove(tc, w);
	return 0;
}

void
tc_workers_destroy(struct tc *tc)
{
	while (tc->n_workers > 0)
		worker_remove(tc, tc->worker[tc->n_workers - 1]);
	tc_mems_free(tc);
	if (tc->context != NULL)
		ucp_cleanup(tc->context);
	if (tc->config != NULL)
		ucp_config_release(tc->config);
	tc->context = NULL;
	tc->config = NULL;
}

static int
worker_progress(struct tc *tc, int argc, char **argv)
{
	bool all = strcmp(argv[0], "all") == 0;
	struct tc_worker *w = all ? NULL : tc_worker_find(tc, argv[0]);
	uint64_t n = 1, busy = 0;

	if ((!all && w == NULL) || (argc > 1 && tc_number(tc, argv[1], &n) != 0))
		return -1;
	for (uint64_t i = 0; i < n && !tc_interrupted(); i++)
		busy += all ? tc_progress(tc) : tc_progress_one(w);
	tc->last.count = busy;
	fprintf(tc->out, "%llu turns, %llu events\n", (unsigned long long)n,
		(unsigned long long)busy);
	return 0;
}

const struct tc_cmd tc_cmd_worker[] = {
	{"worker create", "[NAME] [single|serialized|multi]",
		"make a worker (the library starts with the first); default name w0, w1, ...", 0, 2,
		worker_create},
	{"worker list", "", "the workers and their counters", 0, 0, worker_list},
	{"worker address", "WORKER", "its address in hexadecimal; \"> FILE\" writes it for others", 1,
		1, worker_address},
	{"worker destroy", "WORKER", "destroy it; close its endpoints first, pending operations are lost",
		1, 1, worker_destroy},
	{"progress", "WORKER|all [N]", "run N turns (default 1)", 1, 2, worker_progress},
	{0},
};

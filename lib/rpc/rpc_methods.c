/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_methods.c - the table of built-in methods, and the registered ones
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "plx_conf.h"
#include "plx_config.h"
#include "plx_reactor.h"
#include "rpc_int.h"
#include "rpc_stats.h"

static pthread_mutex_t rpc_methods_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plx_rpc_method rpc_methods[PLX_RPC_MAX_METHODS]; /* under the lock */
static size_t rpc_n_methods;

static json_t *
rpc_conf_value(const struct plx_conf *c, unsigned int id)
{
	uint64_t u = plx_conf_u64(c, id);
	char text[PLX_CONF_STR_MAX];

	switch (plx_conf_row(id)->type) {
	case PLX_CONF_BOOL:
		return json_boolean(u);
	case PLX_CONF_UINT:
		if (u <= INT64_MAX)
			return json_integer((json_int_t)u);
		/* fallthrough */
	default:
		plx_conf_format(c, id, text, sizeof(text));
		return json_string(text);
	}
}

static json_t *
rpc_conf_row(const struct plx_conf *c, unsigned int id)
{
	static const char *const sources[] = {"default", "file", "environment", "api", "rpc"};
	static const char *const types[] = {"bool", "uint", "enum", "string"};
	const struct plx_conf_row *row = plx_conf_row(id);
	char range[PLX_CONF_STR_MAX];

	plx_conf_format_range(id, range, sizeof(range));
	return json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:b, s:s}", "name", row->name,
		"value", rpc_conf_value(c, id), "source", sources[c->v[id].source], "default",
		row->def, "type", types[row->type], "unit", row->unit, "range", range, "runtime",
		(int)row->runtime, "help", row->help);
}

static int
conf_get(const json_t *params, json_t **result, char *err, void *arg)
{
	const struct plx_conf *c = plx_conf_process();
	const char *name = NULL;
	int id, rc;

	(void)arg;
	rc = plx_rpc_unpack(params, err, "{s?s}", "name", &name);
	if (rc < 0)
		return rc;
	if (name != NULL) {
		id = plx_conf_find(name);
		if (id < 0) {
			snprintf(err, PLX_RPC_ERR_MAX, "no setting \"%.64s\"", name);
			return id;
		}
		*result = rpc_conf_row(c, id);
		return 0;
	}
	*result = json_array();
	for (unsigned int i = 0; i < plx_conf_n(); i++)
		json_array_append_new(*result, rpc_conf_row(c, i));
	return 0;
}

static bool
rpc_conf_is_ours(const struct plx_conf *c, unsigned int id)
{
	return c->v[id].source == PLX_CONF_FROM_RPC;
}

/* The settings that act at once; the others apply to the next object that is opened. */
static void
rpc_conf_apply(const struct plx_conf *c)
{
	if (rpc_conf_is_ours(c, PLX_CONF_LOG_LEVEL))
		plx_log_set_level(plx_conf_log_level(c));
	if (rpc_conf_is_ours(c, PLX_CONF_REACTOR_IDLE) ||
		rpc_conf_is_ours(c, PLX_CONF_REACTOR_IDLE_TURNS))
		plx_reactor_set_idle((unsigned int)plx_conf_u64(c, PLX_CONF_REACTOR_IDLE),
			plx_conf_u64(c, PLX_CONF_REACTOR_IDLE_TURNS));
}

static int
rpc_conf_set(const char *name, const json_t *value, char *err)
{
	struct plx_conf *c = plx_conf_process();
	int id = plx_conf_find(name), rc;

	if (id >= 0 && !plx_conf_row(id)->runtime) {
		snprintf(err, PLX_RPC_ERR_MAX, "%s: can be set only before start",
			plx_conf_row(id)->name);
		return -EPERM;
	}
	rc = plx_conf_set_json(c, name, value, PLX_CONF_FROM_RPC, err);
	if (rc == 0)
		rpc_conf_apply(c);
	return rc;
}

static int
conf_set(const json_t *params, json_t **result, char *err, void *arg)
{
	const char *name;
	json_t *value;
	int rc;

	(void)arg;
	rc = plx_rpc_unpack(params, err, "{s:s, s:o}", "name", &name, "value", &value);
	if (rc == 0)
		rc = rpc_conf_set(name, value, err);
	if (rc == 0)
		*result = rpc_conf_row(plx_conf_process(), plx_conf_find(name));
	return rc;
}

static json_t *
rpc_log_level(void)
{
	const struct plx_conf_row *row = plx_conf_row(PLX_CONF_LOG_LEVEL);
	uint32_t level = plx_log_get_level();

	for (uint32_t i = 0; row->choices[i] != NULL; i++)
		if (i + RTE_LOG_EMERG == level)
			return json_string(row->choices[i]);
	return json_integer(level);
}

static int
log_get_level(const json_t *params, json_t **result, char *err, void *arg)
{
	int rc = plx_rpc_unpack(params, err, "{}");

	(void)arg;
	if (rc == 0)
		*result = json_pack("{s:o}", "level", rpc_log_level());
	return rc;
}

static int
log_set_level(const json_t *params, json_t **result, char *err, void *arg)
{
	json_t *level;
	int rc;

	(void)arg;
	rc = plx_rpc_unpack(params, err, "{s:o}", "level", &level);
	if (rc == 0)
		rc = rpc_conf_set(plx_conf_row(PLX_CONF_LOG_LEVEL)->name, level, err);
	if (rc == 0)
		*result = json_pack("{s:o}", "level", rpc_log_level());
	return rc;
}

static int
save_config(const json_t *params, json_t **result, char *err, void *arg)
{
	const struct plx_conf *c = plx_conf_process();
	const char *name, *dot;
	json_t *section;
	char key[PLX_CONF_NAME_MAX];
	int changed = 0, rc;

	(void)arg;
	rc = plx_rpc_unpack(params, err, "{s?b}", "changed", &changed);
	if (rc < 0)
		return rc;
	*result = json_object();
	for (unsigned int i = 0; i < plx_conf_n(); i++) {
		if (changed && c->v[i].source == PLX_CONF_FROM_DEFAULT)
			continue;
		name = plx_conf_row(i)->name;
		dot = strchr(name, '.');
		snprintf(key, sizeof(key), "%.*s", (int)(dot - name), name);
		section = json_object_get(*result, key);
		if (section == NULL) {
			section = json_object();
			json_object_set_new(*result, key, section);
		}
		json_object_set_new(section, dot + 1, rpc_conf_value(c, i));
	}
	return 0;
}

static int
load_config(const json_t *params, json_t **result, char *err, void *arg)
{
	struct plx_conf *c = plx_conf_process();
	int rc;

	(void)arg, (void)result;
	if (params == NULL) {
		snprintf(err, PLX_RPC_ERR_MAX, "parameters are sections of settings");
		return -EINVAL;
	}
	rc = plx_conf_load_json(c, params, PLX_CONF_FROM_RPC, true, err);
	if (rc == 0)
		rpc_conf_apply(c);
	return rc;
}

static int
get_version(const json_t *params, json_t **result, char *err, void *arg)
{
	int rc = plx_rpc_unpack(params, err, "{}");

	(void)arg;
	if (rc == 0)
		*result = json_pack("{s:s, s:s, s:i}", "version", PLX_VERSION, "dpdk",
			rte_version(), "pid", (int)getpid());
	return rc;
}

static int rpc_get_methods(const json_t *params, json_t **result, char *err, void *arg);

#define RPC_VIEW(name) (void *)&rpc_views[RPC_VIEW_##name]

static const struct plx_rpc_method rpc_builtin[] = {
	{"rpc_get_methods", "", "Name, parameters and meaning of every method.", rpc_get_methods,
		NULL},
	{"get_version", "", "Version of Pollux and of DPDK, and the process id.", get_version,
		NULL},
	{"log_get_level", "", "The log level in force.", log_get_level, NULL},
	{"log_set_level", "level: emergency ... debug",
		"Write log lines of this level and of more severe ones.", log_set_level, NULL},
	{"conf_get", "name?: setting",
		"One setting or all: value, where it came from, and its row.", conf_get, NULL},
	{"conf_set", "name: setting, value: number or text", "Change a setting marked runtime.",
		conf_set, NULL},
	{"save_config", "changed?: bool, leave out what is at its default",
		"All settings, in the form of the configuration file.", save_config, NULL},
	{"load_config", "SECTION: {NAME: value, ...}, ...",
		"Change settings marked runtime, all or none.", load_config, NULL},
	{"reactor_get_list", "", "Every reactor: lcore, pollers, share of busy time, counters.",
		rpc_reactor_get_list, NULL},
	{"worker_get_list", "worker?: id",
		"Every worker: mode, reactor, devices, eps, requests, kept bytes, counters.",
		rpc_workers_get, RPC_VIEW(WORKER)},
	{"worker_get_waits", "worker?: id, timeout_ms?: 1 to 5000",
		"What every worker waits for: operation, peer, tag, bytes, for how long.", rpc_worker_get_waits, NULL},
	{"worker_move", "worker: id, lcore: of a reactor",
		"Let another reactor run a worker's turns.", rpc_worker_move, NULL},
	{"ep_get_list", "worker?: id", "Every ep in use: peer, device, state, what waits.",
		rpc_workers_get, RPC_VIEW(EPS)},
	{"device_get_list", "worker?: id", "Every worker's queue on every device, with counters.",
		rpc_workers_get, RPC_VIEW(QUEUES)},
	{"device_fail", "name: device", "Let a device fail for good, to see what programs do then.",
		rpc_device_fail, NULL},
	{"tag_get_stats", "worker?: id", "Depth and counters of every worker's matching.",
		rpc_workers_get, RPC_VIEW(TAG)},
	{"rndv_get_stats", "worker?: id", "Scheme and counters of every worker's rendezvous.",
		rpc_workers_get, RPC_VIEW(RNDV)},
	{"rma_get_stats", "worker?: id", "Counters of every worker's puts, gets and atomics.",
		rpc_workers_get, RPC_VIEW(RMA)},
	{"am_get_stats", "worker?: id", "Counters of every worker's active messages.",
		rpc_workers_get, RPC_VIEW(AM)},
	{"stream_get_stats", "worker?: id", "Counters of every worker's streams.",
		rpc_workers_get, RPC_VIEW(STREAM)},
	{"metrics_get", "format?: prometheus or openmetrics",
		"All counters as one text for a monitoring system.", rpc_metrics_get, NULL},
	{"mem_get_stats", "", "Bytes of the heap, and how many of them are on huge pages.",
		rpc_mem_get_stats, NULL},
};

#define RPC_N_BUILTIN (sizeof(rpc_builtin) / sizeof(rpc_builtin[0]))

static void
rpc_append_method(json_t *list, const struct plx_rpc_method *m)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", m->name, "params",
					    m->params != NULL ? m->params : "", "help",
					    m->help != NULL ? m->help : ""));
}

static int
rpc_get_methods(const json_t *params, json_t **result, char *err, void *arg)
{
	int rc = plx_rpc_unpack(params, err, "{}");

	(void)arg;
	if (rc < 0)
		return rc;
	*result = json_array();
	for (size_t i = 0; i < RPC_N_BUILTIN; i++)
		rpc_append_method(*result, &rpc_builtin[i]);
	pthread_mutex_lock(&rpc_methods_lock);
	for (size_t i = 0; i < rpc_n_methods; i++)
		rpc_append_method(*result, &rpc_methods[i]);
	pthread_mutex_unlock(&rpc_methods_lock);
	return 0;
}

/* Under the lock. */
static const struct plx_rpc_method *
rpc_find_locked(const char *name)
{
	for (size_t i = 0; i < RPC_N_BUILTIN; i++)
		if (strcmp(rpc_builtin[i].name, name) == 0)
			return &rpc_builtin[i];
	for (size_t i = 0; i < rpc_n_methods; i++)
		if (strcmp(rpc_methods[i].name, name) == 0)
			return &rpc_methods[i];
	return NULL;
}

int
rpc_method_find(const char *name, struct plx_rpc_method *out)
{
	const struct plx_rpc_method *m;

	pthread_mutex_lock(&rpc_methods_lock);
	m = rpc_find_locked(name);
	if (m != NULL)
		*out = *m;
	pthread_mutex_unlock(&rpc_methods_lock);
	return m != NULL ? 0 : -ENOENT;
}

static int
rpc_register_locked(const struct plx_rpc_method *row)
{
	const struct plx_rpc_method *m = rpc_find_locked(row->name);

	if (m != NULL)
		return m->fn == row->fn && m->arg == row->arg ? 0 : -EEXIST;
	if (rpc_n_methods == PLX_RPC_MAX_METHODS)
		return -ENOSPC;
	rpc_methods[rpc_n_methods++] = *row;
	return 0;
}

int
plx_rpc_register(const struct plx_rpc_method *methods, size_t n)
{
	size_t before;
	int rc = 0;

	pthread_mutex_lock(&rpc_methods_lock);
	before = rpc_n_methods;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = rpc_register_locked(&methods[i]);
	if (rc < 0)
		rpc_n_methods = before;
	pthread_mutex_unlock(&rpc_methods_lock);
	return rc;
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&rpc_methods_lock, NULL);
}
RTE_INIT(rpc_methods_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

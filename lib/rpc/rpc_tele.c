/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_tele.c - commands under /pollux for the telemetry socket of the EAL
 *
 * Design notes: rte_telemetry runs each client in a thread of its own and knows flat lists of at most 256 entries,
 * with text of at most 128 bytes. So a command shows one worker, and counters are named by object and counter. What
 * is read is read as for the control socket: see rpc_stats.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "plx_config.h"
#include "plx_mem.h"
#include "rpc_int.h"
#include "rpc_tables.h"

#define TELE_TIMEOUT_MS 300

/* One command about one worker. */
struct tele_walk {
	uint64_t id;
	struct rte_tel_data *out;
	bool found;
};

static int
tele_version(const char *cmd, const char *params, struct rte_tel_data *out)
{
	uint64_t total, huge;

	(void)cmd, (void)params;
	plx_mem_stats(&total, &huge);
	rte_tel_data_start_dict(out);
	rte_tel_data_add_dict_string(out, "version", PLX_VERSION);
	rte_tel_data_add_dict_string(out, "dpdk", rte_version());
	rte_tel_data_add_dict_int(out, "pid", (int)getpid());
	rte_tel_data_add_dict_u64(out, "heap_bytes", total);
	rte_tel_data_add_dict_u64(out, "heap_huge_bytes", huge);
	return 0;
}

static void
tele_add_id(struct plx_worker *w, void *arg)
{
	rte_tel_data_add_array_u64(arg, w->id); /* of too many the last are left out */
}

static int
tele_workers(const char *cmd, const char *params, struct rte_tel_data *out)
{
	(void)cmd, (void)params;
	rte_tel_data_start_array(out, RTE_TEL_U64_VAL);
	plx_worker_each(tele_add_id, out);
	return 0;
}

static void
tele_add_rows(struct rte_tel_data *out, const char *object, const void *obj, const struct plx_stat_row *row)
{
	char name[RTE_TEL_MAX_STRING_LEN];

	for (; row->name != NULL; row++) {
		snprintf(name, sizeof(name), "%s_%s", object, row->name);
		rte_tel_data_add_dict_u64(out, name, plx_stat_read(obj, row));
	}
}

static void
tele_show_worker(struct plx_worker *w, void *arg)
{
	struct tele_walk *walk = arg;

	if (walk->id != w->id)
		return;
	walk->found = true;
	rte_tel_data_add_dict_string(walk->out, "mode", w->dedicated ? "dedicated" : "inline");
	for (size_t i = 0; i < RPC_N_TABLES; i++)
		tele_add_rows(walk->out, rpc_tables[i].object, rpc_table_of(w, &rpc_tables[i]), rpc_tables[i].rows);
}

static void
tele_show_devices(struct plx_worker *w, void *arg)
{
	struct tele_walk *walk = arg;

	if (walk->id != w->id)
		return;
	walk->found = true;
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const char *port = plx_queue_port(w->queues[i]);
		char object[64];

		snprintf(object, sizeof(object), "%s%s%s", plx_dev_name(w->devs[i]), port != NULL ? "_" : "",
			port != NULL ? port : "");
		for (char *c = object; *c != '\0'; c++)
			if (*c == ':')
				*c = '_'; /* a name may have few characters */
		tele_add_rows(walk->out, object, &w->queues[i]->stat, plx_queue_stat_rows);
	}
}

/* @return the id in params, or UINT64_MAX */
static uint64_t
tele_id(const char *params)
{
	char *end;
	uint64_t id;

	if (params == NULL || *params < '0' || *params > '9')
		return UINT64_MAX;
	id = strtoull(params, &end, 10);
	return *end == '\0' ? id : UINT64_MAX;
}

static int
tele_of_worker(const char *params, struct rte_tel_data *out, void (*show)(struct plx_worker *w, void *arg))
{
	struct tele_walk walk = {.id = tele_id(params), .out = out};

	rte_tel_data_start_dict(out);
	plx_worker_each(show, &walk);
	return walk.found ? 0 : -EINVAL;
}

static int
tele_worker(const char *cmd, const char *params, struct rte_tel_data *out)
{
	(void)cmd;
	return tele_of_worker(params, out, tele_show_worker);
}

static int
tele_devices(const char *cmd, const char *params, struct rte_tel_data *out)
{
	(void)cmd;
	return tele_of_worker(params, out, tele_show_devices);
}

static void
tele_add_wait(struct rte_tel_data *out, const struct plx_wait_info *i, uint64_t now)
{
	char text[RTE_TEL_MAX_STRING_LEN], tag[48] = "", peer[32] = "", age[32] = "";

	if (i->mask != 0)
		snprintf(tag, sizeof(tag), " tag 0x%" PRIx64 " of 0x%" PRIx64, i->tag, i->mask);
	if (i->peer != 0)
		snprintf(peer, sizeof(peer), " peer %016" PRIx64, i->peer);
	if (i->since != 0)
		snprintf(age, sizeof(age), ", %.1f s", (double)(now - i->since) / (double)rte_get_tsc_hz());
	snprintf(text, sizeof(text), "%s%.44s%.24s %" PRIu64 " B: %.30s%.16s", i->op, tag, peer, i->len, i->state, age);
	rte_tel_data_add_array_string(out, text);
}

static void
tele_show_waits(struct plx_worker *w, const struct plx_waits *waits, void *arg)
{
	struct tele_walk *walk = arg;

	(void)w;
	walk->found = true;
	if (waits == NULL)
		rte_tel_data_add_array_string(walk->out, "the worker takes no turns");
	for (uint32_t i = 0; waits != NULL && i < waits->n; i++)
		tele_add_wait(walk->out, &waits->waits[i], waits->ticks);
}

static int
tele_waits(const char *cmd, const char *params, struct rte_tel_data *out)
{
	struct tele_walk walk = {.id = tele_id(params), .out = out};

	(void)cmd;
	rte_tel_data_start_array(out, RTE_TEL_STRING_VAL);
	if (walk.id != UINT64_MAX)
		plx_waits_each(walk.id, TELE_TIMEOUT_MS, tele_show_waits, &walk);
	return walk.found ? 0 : -EINVAL;
}

static void
tele_register(void)
{
	static const struct {
		const char *cmd;
		telemetry_cb fn;
		const char *help;
	} cmds[] = {
		{"/pollux/version", tele_version, "Version, process, bytes of the heap. No parameters"},
		{"/pollux/workers", tele_workers, "Ids of all workers. No parameters"},
		{"/pollux/worker", tele_worker, "Counters of a worker. Parameter: id"},
		{"/pollux/devices", tele_devices, "Counters of a worker's queues on devices. Parameter: id"},
		{"/pollux/waits", tele_waits, "What a worker waits for. Parameter: id"},
	};

	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		if (rte_telemetry_register_cmd(cmds[i].cmd, cmds[i].fn, cmds[i].help) < 0)
			PLX_LOG(WARNING, rpc, "no telemetry command %s", cmds[i].cmd);
}

void
plx_rpc_register_telemetry(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, tele_register); /* there is no way to remove them */
}

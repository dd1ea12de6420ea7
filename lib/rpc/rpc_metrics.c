/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_metrics.c - all counters as text for Prometheus and OpenMetrics
 *
 * Design notes: a family is one row of a table of counters; its samples, one for each object, stand together, as
 * both formats demand. The list of workers is therefore walked once for each row. All names and labels are of ours:
 * nothing has to be escaped.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "plx_config.h"
#include "plx_mem.h"
#include "plx_reactor.h"
#include "plx_worker.h"
#include "rpc_int.h"
#include "rpc_stats.h"
#include "rpc_tables.h"

#define METRICS_OWN_MAX 16 /* drivers with counters of their own */

/* One text in the making. */
struct metrics {
	FILE *f;
	bool open_metrics;
	const char *object;
	const struct plx_stat_row *row;
	const struct rpc_table *table; /* of workers */
	const struct plx_stat_row *own;	   /* of a driver; NULL: of all devices */
};

/* OpenMetrics names a family of counters without _total, Prometheus with it. */
static void
family_begin(const struct metrics *m)
{
	const char *type = m->row->gauge ? "gauge" : "counter";
	const char *total = m->row->gauge || m->open_metrics ? "" : "_total";

	fprintf(m->f, "# HELP pollux_%s_%s%s Pollux: %s of %s, see doc/guides/rpc.md.\n", m->object, m->row->name, total,
		m->row->name, m->object);
	fprintf(m->f, "# TYPE pollux_%s_%s%s %s\n", m->object, m->row->name, total, type);
}

static void
sample_begin(const struct metrics *m)
{
	fprintf(m->f, "pollux_%s_%s%s{pid=\"%d\"", m->object, m->row->name, m->row->gauge ? "" : "_total", (int)getpid());
}

static void
sample_worker(struct plx_worker *w, void *arg)
{
	const struct metrics *m = arg;
	sample_begin(m);
	fprintf(m->f, ",worker=\"%" PRIu64 "\"} %" PRIu64 "\n", (uint64_t)w->id, plx_stat_read(rpc_table_of(w, m->table), m->row));
}

static void
metrics_workers(struct metrics *m)
{
	for (size_t i = 0; i < RPC_N_TABLES; i++) {
		m->table = &rpc_tables[i];
		m->object = rpc_tables[i].object;
		for (m->row = rpc_tables[i].rows; m->row->name != NULL; m->row++) {
			family_begin(m);
			plx_worker_each(sample_worker, m);
		}
	}
}

static void
sample_queues(struct plx_worker *w, void *arg)
{
	const struct metrics *m = arg;

	for (uint32_t i = 0; i < w->n_queues; i++) {
		const struct plx_stat_row *rows;
		const void *own = plx_queue_drv_stats(w->queues[i], &rows);
		const char *port = plx_queue_port(w->queues[i]);

		if (m->own != NULL && (own == NULL || rows != m->own))
			continue;
		sample_begin(m);
		fprintf(m->f, ",worker=\"%" PRIu64 "\",device=\"%s\",port=\"%s\",queue=\"%u\"} %" PRIu64 "\n", (uint64_t)w->id,
			plx_dev_name(w->devs[i]), port != NULL ? port : "", i,
			plx_stat_read(m->own != NULL ? own : &w->queues[i]->stat, m->row));
	}
}

static void
metrics_queues(struct metrics *m, const char *object, const struct plx_stat_row *rows)
{
	m->object = object;
	for (m->row = rows; m->row->name != NULL; m->row++) {
		family_begin(m);
		plx_worker_each(sample_queues, m);
	}
}

/* Which drivers have counters of their own. */
struct metrics_own {
	unsigned n;
	struct {
		const char *device;
		const struct plx_stat_row *rows;
	} of[METRICS_OWN_MAX];
};

static void
own_add(struct metrics_own *own, const char *device, const struct plx_stat_row *rows)
{
	for (unsigned i = 0; i < own->n; i++)
		if (own->of[i].rows == rows)
			return;
	if (own->n == METRICS_OWN_MAX)
		return;
	own->of[own->n].device = device;
	own->of[own->n++].rows = rows;
}

static void
own_find(struct plx_worker *w, void *arg)
{
	const struct plx_stat_row *rows;

	for (uint32_t i = 0; i < w->n_queues; i++)
		if (plx_queue_drv_stats(w->queues[i], &rows) != NULL)
			own_add(arg, plx_dev_name(w->devs[i]), rows);
}

static void
metrics_devices(struct metrics *m)
{
	struct metrics_own own = {0};

	metrics_queues(m, "device", plx_queue_stat_rows);
	plx_worker_each(own_find, &own);
	for (unsigned i = 0; i < own.n; i++) {
		m->own = own.of[i].rows;
		metrics_queues(m, own.of[i].device, m->own);
	}
	m->own = NULL;
}

static void
metrics_reactors(struct metrics *m)
{
	struct plx_reactor_info info;

	m->object = "reactor";
	for (m->row = plx_reactor_stat_rows; m->row->name != NULL; m->row++) {
		family_begin(m);
		for (unsigned i = 0; plx_reactor_info(i, &info) == 0; i++) {
			sample_begin(m);
			fprintf(m->f, ",lcore=\"%u\"} %" PRIu64 "\n", info.lcore, plx_stat_read(&info.stat, m->row));
		}
	}
}

static void
metrics_process(const struct metrics *m)
{
	uint64_t total, huge;
	int pid = (int)getpid();

	plx_mem_stats(&total, &huge);
	fprintf(m->f, "# HELP pollux_build_info Pollux: its version and that of DPDK.\n# TYPE pollux_build_info gauge\n"
		"pollux_build_info{pid=\"%d\",version=\"%s\",dpdk=\"%s\"} 1\n", pid, PLX_VERSION, rte_version());
	fprintf(m->f, "# HELP pollux_heap_bytes Pollux: bytes in the heap.\n# TYPE pollux_heap_bytes gauge\n"
		"pollux_heap_bytes{pid=\"%d\"} %" PRIu64 "\n", pid, total);
	fprintf(m->f, "# HELP pollux_heap_huge_bytes Pollux: of these, on huge pages.\n"
		"# TYPE pollux_heap_huge_bytes gauge\npollux_heap_huge_bytes{pid=\"%d\"} %" PRIu64 "\n", pid, huge);
}

static int
metrics_text(bool open_metrics, char **text)
{
	size_t len;
	struct metrics m = {.open_metrics = open_metrics, .f = open_memstream(text, &len)};
	bool failed;

	if (m.f == NULL)
		return -ENOMEM;
	metrics_process(&m);
	metrics_reactors(&m);
	metrics_workers(&m);
	metrics_devices(&m);
	if (open_metrics)
		fputs("# EOF\n", m.f);
	failed = ferror(m.f) != 0;
	failed |= fclose(m.f) != 0;
	if (!failed)
		return 0;
	free(*text);
	return -ENOMEM;
}

int
rpc_metrics_get(const json_t *params, json_t **result, char *err, void *arg)
{
	const char *format = "prometheus";
	char *text;
	int rc = plx_rpc_unpack(params, err, "{s?s}", "format", &format);

	(void)arg;
	if (rc < 0)
		return rc;
	if (strcmp(format, "prometheus") != 0 && strcmp(format, "openmetrics") != 0) {
		snprintf(err, PLX_RPC_ERR_MAX, "\"format\" is prometheus or openmetrics");
		return -EINVAL;
	}
	rc = metrics_text(format[0] == 'o', &text);
	if (rc < 0)
		return rc;
	*result = json_string(text);
	free(text);
	return *result != NULL ? 0 : -ENOMEM;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_stats.h - the methods of rpc_stats.c, for the table in rpc_methods.c
 *
 * Each is a plx_rpc_fn. Thread: the server's. Blocks: never on a worker's turn. Allocates: heap.
 */
#ifndef RPC_STATS_H
#define RPC_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct plx_queue;
struct plx_stat_row;
struct plx_worker;

int rpc_reactor_get_list(const json_t *params, json_t **result, char *err, void *arg);
int rpc_mem_get_stats(const json_t *params, json_t **result, char *err, void *arg);

int rpc_worker_move(const json_t *params, json_t **result, char *err, void *arg);
int rpc_device_fail(const json_t *params, json_t **result, char *err, void *arg);

enum {
	RPC_VIEW_WORKER,
	RPC_VIEW_EPS,
	RPC_VIEW_QUEUES,
	RPC_VIEW_TAG,
	RPC_VIEW_RNDV,
	RPC_VIEW_RMA,
	RPC_VIEW_AM,
	RPC_VIEW_STREAM,
};

/** What a method shows of each worker. */
struct rpc_view {
	void (*show)(struct plx_worker *w, json_t *list); /* appends objects; NULL: only these counters */
	const struct plx_stat_row *rows;
	size_t offset; /* in the worker */
};

extern const struct rpc_view rpc_views[];

/* With an optional "worker": -EINVAL no worker has this id. @param arg a row of rpc_views */
int rpc_workers_get(const json_t *params, json_t **result, char *err, void *arg);

/* With an optional "worker", and how long to wait for the answers of all workers. */
int rpc_worker_get_waits(const json_t *params, json_t **result, char *err, void *arg);

#define RPC_UID_LEN 17 /* 16 hexadecimal digits */

/** @param text RPC_UID_LEN bytes @return text, which now is that of the uid */
const char *rpc_uid(uint64_t uid, char *text);
/** @return -EINVAL, with a sentence for an id that no worker has, or that can't be one. */
int rpc_not_worker(const json_t *id, char *err);
/** @return the uid of the queue, as its peers know it. */
uint64_t rpc_queue_uid(struct plx_queue *q);
/** @return a new reference; the name comes from the application and need not be text. */
json_t *rpc_worker_name(const struct plx_worker *w);

/* rpc_metrics.c: all counters as one text; with an optional "format". */
int rpc_metrics_get(const json_t *params, json_t **result, char *err, void *arg);

#endif

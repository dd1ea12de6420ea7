/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_stats.h - the methods of rpc_stats.c, for the table in rpc_methods.c
 *
 * Each is a plx_rpc_fn. Thread: the server's. Blocks: never on a worker's turn. Allocates: heap.
 */
#ifndef RPC_STATS_H
#define RPC_STATS_H

#include <jansson.h>

int rpc_reactor_get_list(const json_t *params, json_t **result, char *err, void *arg);
int rpc_mem_get_stats(const json_t *params, json_t **result, char *err, void *arg);

/* With an optional "worker": -EINVAL no worker has this id. */
int rpc_worker_get_list(const json_t *params, json_t **result, char *err, void *arg);
int rpc_worker_move(const json_t *params, json_t **result, char *err, void *arg);
int rpc_ep_get_list(const json_t *params, json_t **result, char *err, void *arg);
int rpc_device_get_list(const json_t *params, json_t **result, char *err, void *arg);
int rpc_device_fail(const json_t *params, json_t **result, char *err, void *arg);
int rpc_tag_get_stats(const json_t *params, json_t **result, char *err, void *arg);
int rpc_rndv_get_stats(const json_t *params, json_t **result, char *err, void *arg);
int rpc_rma_get_stats(const json_t *params, json_t **result, char *err, void *arg);
int rpc_am_get_stats(const json_t *params, json_t **result, char *err, void *arg);
int rpc_stream_get_stats(const json_t *params, json_t **result, char *err, void *arg);

/* rpc_metrics.c: all counters as one text; with an optional "format". */
int rpc_metrics_get(const json_t *params, json_t **result, char *err, void *arg);

#endif

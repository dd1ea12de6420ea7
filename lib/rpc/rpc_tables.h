/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_tables.h - the structs of counters that each worker has
 */
#ifndef RPC_TABLES_H
#define RPC_TABLES_H

#include <stddef.h>

#include "plx_worker.h"

struct rpc_table {
	const char *object;
	const struct plx_stat_row *rows;
	size_t offset; /* in the worker; 0: of the matching, which is elsewhere */
};

static const struct rpc_table rpc_tables[] = {
	{"worker", plx_worker_stat_rows, offsetof(struct plx_worker, stat)},
	{"ep", plx_ep_stat_rows, offsetof(struct plx_worker, eps.stat)},
	{"tag", plx_tag_stat_rows, 0},
	{"offload", plx_offload_stat_rows, offsetof(struct plx_worker, offload.stat)},
	{"rndv", plx_rndv_stat_rows, offsetof(struct plx_worker, rndv.stat)},
	{"rma", plx_rma_stat_rows, offsetof(struct plx_worker, rma.stat)},
	{"am", plx_am_stat_rows, offsetof(struct plx_worker, am.stat)},
	{"stream", plx_stream_stat_rows, offsetof(struct plx_worker, streams.stat)},
	{"chan", plx_chan_stat_rows, offsetof(struct plx_worker, chans.stat)},
	{"cm", plx_cm_stat_rows, offsetof(struct plx_worker, conns.cm.stat)},
};

#define RPC_N_TABLES (sizeof(rpc_tables) / sizeof(rpc_tables[0]))

/** @return the struct that the rows of a table describe. */
static inline const void *
rpc_table_of(const struct plx_worker *w, const struct rpc_table *t)
{
	return t->offset != 0 ? (const char *)w + t->offset : (const void *)plx_tag_stats(w->tag);
}

#endif

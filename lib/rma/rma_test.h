/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_test.h - workers of which the first puts to and gets from another, on the fake device
 */
#ifndef RMA_TEST_H
#define RMA_TEST_H

#include "plx_rma_cell.h"
#include "plx_unit.h"
#include "plx_unit_worker.h"

#define TARGET 1

static struct unit_workers u;

static struct plx_req *
flush(enum plx_flush_kind kind)
{
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_flush(u.w[0], kind, kind != PLX_FLUSH_WORKER ? &u.to[0][TARGET] : NULL, req);
	return req;
}

static const struct plx_rma_stat *
stat_of(unsigned i)
{
	return &u.w[i]->rma.stat;
}

/* Cell i of the target's, or NULL. */
static inline struct plx_rma_cell *
cell(uint64_t i)
{
	const struct plx_queue *q = unit_queue(&u, TARGET);

	return plx_rma_cell_at(q->shared, q->shared_len, i);
}

#endif

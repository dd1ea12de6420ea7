/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_get.c - the receiver reads alone, a chunk a turn
 */
#include <errno.h>

#include <rte_common.h>

#include "rndv_int.h"

int
rndv_get_start(struct plx_rndv *r, struct plx_req *req)
{
	PLX_STAT_INC(r->stat.get);
	rndv_recv_start_run(r, req, RNDV_GET);
	return 0;
}

static void
get_moved(struct plx_req *req, const struct rndv_piece *p, int rc)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);

	if (rc == 0)
		return;
	v->offset = RTE_MIN(v->offset, p->offset); /* again from there */
	if (rc != -EAGAIN)
		v->err = rc;
}

/* Everything was read, or no more can be. */
static void
get_end(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	int rc = v->err;

	v->err = 0;
	if (rc == 0 && v->offset < v->copy) {
		rc = rndv_where_next(r, req);
		if (rc != 0)
			rndv_recv_end(r, req, rc);
		return;
	}
	if (rc == -EOPNOTSUPP) { /* reading is not allowed there */
		rndv_recv_stop_run(r, req);
		rndv_list_put(r, &v->list);
		rc = rndv_frag_start(r, req);
		if (rc != 0)
			rndv_recv_end(r, req, rc);
		return;
	}
	rndv_read_end(r, req, rc);
}

unsigned
rndv_get_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	uint64_t offset = v->offset, end = unlikely(v->list != NULL) ? v->list->start + v->list->len : v->copy;
	uint64_t len = RTE_MIN(r->chunk, end - offset);
	const struct rndv_piece p = {.req = req, .moved = get_moved, .offset = offset};
	unsigned n;

	if (v->err != 0 || len == 0) {
		n = rndv_batch_run(r, b);
		if (v->err == 0 && v->offset < end) /* the last piece was not read */
			return n;
		get_end(r, req);
		return n + 1;
	}
	v->offset += len;
	return rndv_batch_read(r, b, &p, len);
}

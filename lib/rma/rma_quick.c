/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_quick.c - short puts without a request
 *
 * Design notes
 * - The device copies the bytes, and does not report their arrival. But it completes operations
 *   for a peer in order, so the completion of any later operation covers them. A flush, a fence
 *   or the close of a handle sends a mark after them: an empty put, which is an operation like
 *   all others, with a request.
 * - A mark costs a packet and its acknowledgement, so the next puts have requests of their own
 *   for a while: a program that flushes after every put pays for a mark once in RMA_SURE + 1.
 */
#include <errno.h>

#include "rma_int.h"

#define RMA_SURE 32 /* puts with a request after a mark */

int
plx_rma_quick_slow(struct plx_rma *r, struct plx_ep *ep, int rc)
{
	if (rc != 0)
		return rc == -EOPNOTSUPP ? -EAGAIN : rc;
	plx_rma_ep(ep)->quick = true;
	SLIST_INSERT_HEAD(&r->quick, plx_rma_ep(ep), quick_link);
	PLX_STAT_INC(r->stat.quick);
	return 0;
}

static void
quick_end(struct plx_rma *r, struct plx_ep *ep)
{
	plx_rma_ep(ep)->quick = false;
	SLIST_REMOVE(&r->quick, plx_rma_ep(ep), plx_rma_ep, quick_link);
}

static int
quick_mark(struct plx_rma *r, struct plx_ep *ep)
{
	static const struct plx_rkey none;
	const struct plx_rma_do d = {.conn_id = PLX_CONN_NONE, .ep = ep, .rkey = &none,
		.kind = PLX_RMA_PUT, .nbi = true};
	struct plx_req *req = plx_req_get(r->reqs);

	if (req == NULL)
		return -ENOMEM;
	plx_req_flag(req, PLX_REQ_RELEASED);
	quick_end(r, ep);
	plx_rma_ep(ep)->sure = RMA_SURE;
	plx_rma_prepare(r, &d, req);
	plx_rma_req(req)->how = PLX_RMA_MARK;
	PLX_STAT_INC(r->stat.marks);
	plx_rma_start(r, req);
	return 0;
}

int
plx_rma_mark(struct plx_rma *r, struct plx_ep *ep)
{
	int rc = 0;

	if (ep != NULL)
		return plx_rma_ep(ep)->quick ? quick_mark(r, ep) : 0;
	while (rc == 0 && !SLIST_EMPTY(&r->quick))
		rc = quick_mark(r, rma_ep_of(SLIST_FIRST(&r->quick)));
	return rc;
}

void
plx_rma_ep_failed(struct plx_rma *r, struct plx_ep *ep, int err)
{
	if (!plx_rma_shares(ep)) /* else a get outlives it */
		plx_rma_ep_leave(ep);
	rma_cells_sweep(ep->peer->q);
	if (!plx_rma_ep(ep)->quick)
		return;
	quick_end(r, ep);
	rma_keep_err(r, ep, err);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_batch.c - pieces of several transfers, moved by one call of the device
 *
 * Design notes
 * - The fixed cost of a call of the device is near that of 16 KiB. A step adds a piece and never
 *   completes a request; the next step checks the result. Code that completes a request runs the
 *   batch first, for a callback may complete the others.
 */
#include <errno.h>

#include "rndv_int.h"

unsigned
rndv_batch_run(struct plx_rndv *r, struct rndv_batch *b)
{
	unsigned i, n, moved = 0;
	uint64_t *bytes;

	if (b->n == 0)
		return 0;
	bytes = b->ops[0].put ? &r->stat.bytes_help : &r->stat.bytes_own;
	n = b->n > 1 ? plx_peer_rma_burst(b->ops, b->n) : 0;
	for (i = 0; i < b->n; i++) {
		const struct rndv_piece *p = &b->pieces[i];
		int rc = i < n ? 0 : plx_peer_rma(&b->ops[i]);

		if (rc == 0)
			PLX_STAT_ADD(*bytes, b->ops[i].len);
		moved += rc != -EAGAIN;
		p->moved(p->req, p, rc);
	}
	b->n = 0;
	b->bytes = 0;
	return moved;
}

unsigned
rndv_batch_add(struct plx_rndv *r, struct rndv_batch *b, const struct plx_rma_op *op,
	const struct rndv_piece *p)
{
	unsigned n = 0;

	/* One peer, one direction, a transfer once. */
	if (b->n != 0 && (b->ops[0].peer != op->peer || b->ops[0].put != op->put ||
		b->pieces[0].req == p->req))
		n = rndv_batch_run(r, b);
	b->ops[b->n] = *op;
	b->pieces[b->n++] = *p;
	b->bytes += op->len;
	if (b->n == RNDV_BATCH || b->bytes >= r->chunk)
		n += rndv_batch_run(r, b);
	return n;
}

unsigned
rndv_batch_read(struct plx_rndv *r, struct rndv_batch *b, const struct rndv_piece *p, uint64_t len)
{
	const struct plx_rndv_rx *v = plx_rndv_rx(p->req);
	const struct plx_rma_op op = {.peer = v->ep->peer, .local = (char *)p->req->buf + p->offset,
		.remote = v->rts.addr + v->base + p->offset, .len = len,
		.mem_type = plx_req_mem_type(p->req)};

	return rndv_batch_add(r, b, &op, p);
}

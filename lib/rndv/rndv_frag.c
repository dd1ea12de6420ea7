/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_frag.c - the sender sends the data as messages, as the device takes them
 */
#include <errno.h>

#include "rndv_int.h"

int
rndv_frag_start(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_rndv *v = &req->recv.rndv;
	struct plx_wire_pull h;
	int rc;

	rc = plx_req_id_get(&r->ids, req, &v->id);
	if (rc != 0)
		return rc;
	v->role = RNDV_FRAG;
	PLX_STAT_INC(r->stat.frag);
	h = (struct plx_wire_pull){.sreq = v->rts.sreq, .rreq = v->id, .offset = v->base + v->offset,
		.len = v->copy - v->offset};
	return plx_ep_tx_ctl(v->ep, PLX_WIRE_PULL, &h, sizeof(h));
}

unsigned
rndv_pull_step(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_req_send *s = &req->send;
	struct plx_wire_data h = {.rreq = s->rreq};
	struct plx_tx tx = {.peer = s->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_DATA};
	uint64_t stop = s->offset + r->chunk;
	unsigned n = 0;

	/* What waits already goes first; messages sent meanwhile may go between. */
	while (plx_ep_open(s->ep) && s->offset < s->pull.end && s->offset < stop) {
		uint64_t len = s->ep->peer->mtu - sizeof(h);

		len = len < s->pull.end - s->offset ? len : s->pull.end - s->offset;
		h.offset = s->offset;
		plx_req_tx(req, &tx, s->offset, len);
		if (plx_peer_tx(&tx) != 0)
			break; /* full: next turn; dead: the wait fails */
		s->offset += len;
		n++;
	}
	if (s->offset == s->pull.end)
		rndv_send_stop_run(r, req);
	return n;
}

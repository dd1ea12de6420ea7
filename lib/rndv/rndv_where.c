/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_where.c - the receiver asks in which pieces of memory the data is, to read them
 *
 * Design notes
 * - It reads as with GET or SPLIT. A list has PLX_RNDV_LIST_MAX pieces: of a longer message the
 *   next part is asked for when this one is read.
 */
#include <errno.h>

#include "rndv_int.h"

static int
where_ask(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct plx_wire_pull h = {.sreq = v->rts.sreq, .offset = v->base + v->offset, .len = v->copy - v->offset};
	int rc = rndv_recv_name(r, req);

	if (rc != 0)
		return rc;
	v->role = RNDV_AWAIT;
	v->asked = true;
	h.rreq = v->id;
	return plx_ep_tx_ctl(v->ep, PLX_WIRE_WHERE, &h, sizeof(h));
}

int
rndv_where_start(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	const struct plx_wire_piece whole = {.addr = v->rts.addr + v->base, .len = v->copy};

	PLX_STAT_INC(r->stat.list);
	if (v->list == NULL && v->rts.addr != 0) /* the sender's is one piece */
		(void)rndv_list_take(r, req, (const uint8_t *)&whole, sizeof(whole));
	return v->list != NULL ? 0 : where_ask(r, req);
}

int
rndv_where_next(struct plx_rndv *r, struct plx_req *req)
{
	rndv_list_put(r, &plx_rndv_rx(req)->list);
	rndv_recv_stop_run(r, req);
	return where_ask(r, req);
}

/* Try to answer. @return whether it is sent, or need not be */
static bool
where_answer(struct plx_req *req)
{
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_ep *ep = plx_ep_send(req)->ep;
	struct plx_wire_list h = {.rreq = t->rreq, .offset = plx_ep_send(req)->offset};
	struct plx_wire_piece p[PLX_RNDV_LIST_MAX];
	struct plx_tx tx = {.peer = ep->peer, .hdr = &h, .hdr_len = sizeof(h), .op = PLX_WIRE_LIST, .data = p};
	uint64_t offset = h.offset;

	if (!plx_ep_open(ep))
		return false;
	tx.len = rndv_list_fill(req, ep, sizeof(h), &offset, t->pull.end, p) * sizeof(p[0]);
	return plx_peer_tx(&tx) != -EAGAIN; /* dead: the wait fails */
}

void
plx_rndv_on_where(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_pull *h)
{
	struct plx_req *req = plx_req_id_find(&r->ids, h->sreq);

	if (req == NULL || req->dt == NULL || req->dt->pieces == NULL || h->len == 0) {
		plx_rndv_on_pull(r, ep, h); /* it sends the data, or finds what is wrong */
		return;
	}
	req = rndv_send_asked(r, ep, h->sreq, h->rreq);
	if (req == NULL)
		return;
	if (rndv_send_writes(req) || h->offset > req->len || h->len > req->len - h->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	rndv_send_stop_run(r, req);
	plx_rndv_tx(req)->rreq = h->rreq;
	plx_ep_send(req)->offset = h->offset;
	plx_rndv_tx(req)->pull.end = h->offset + h->len;
	if (!where_answer(req))
		rndv_send_start_run(r, req, RNDV_LIST);
}

unsigned
rndv_where_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	rndv_batch_run(r, b);
	if (!where_answer(req))
		return 0;
	rndv_send_stop_run(r, req);
	return 1;
}

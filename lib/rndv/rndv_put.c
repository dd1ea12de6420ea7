/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_put.c - the sender writes the receiver's registered buffer by the device
 *
 * Design notes
 * - The receiver registers its memory and the sender writes: a sender that withdraws its message
 *   waits for its own writes and says so, while a reader would lose the key in the middle, which
 *   fails the connection. A receive that fails in the middle revokes the key, for the sender may
 *   still write; otherwise the driver may keep the registration.
 * - DONE follows the last write without waiting for it: devices with keys keep writes and sends
 *   to one peer in order.
 */
#include <errno.h>

#include <rte_common.h>

#include "rndv_int.h"

#define PUT_OUT 8	   /* writes of one transfer in flight */

int
rndv_put_start(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct plx_dev_mem mem;
	struct plx_wire_into h;
	int rc;

	rc = plx_queue_mem_reg(v->ep->peer->q, req->buf, v->copy, PLX_DEV_MEM_WRITE, &mem);
	if (rc != 0)
		return rc;
	v->mem = mem.drv;
	rc = rndv_recv_name(r, req);
	if (rc != 0)
		goto dereg;
	h = (struct plx_wire_into){.sreq = v->rts.sreq, .rreq = v->id, .offset = v->base,
		.len = v->copy, .addr = (uintptr_t)req->buf, .key = mem.key, .last = !v->more};
	rc = plx_ep_tx_ctl(v->ep, PLX_WIRE_INTO, &h, sizeof(h));
	if (rc != 0)
		goto put_id;
	v->role = RNDV_AWAIT;
	PLX_STAT_INC(r->stat.put);
	return 0;
put_id:
	plx_req_id_put(&r->ids, v->id);
	v->id.index = 0;
dereg:
	rndv_mem_put(v, false);
	return rc;
}

void
plx_rndv_on_done(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_done *h)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);

	if (req == NULL)
		return;
	if (plx_rndv_rx(req)->role != RNDV_AWAIT || plx_rndv_rx(req)->mem == NULL) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	PLX_STAT_ADD(r->stat.bytes_help, plx_rndv_rx(req)->copy);
	plx_rndv_rx(req)->done = true;
	rndv_recv_end(r, req, 0);
}

/* All is written and the receiver knows. */
static void
put_end(struct plx_rndv *r, struct plx_req *req)
{
	if (plx_rndv_tx(req)->into.last)
		rndv_send_end(r, req, 0);
	else
		rndv_send_stop_run(r, req); /* the receiver asks for more, or acknowledges */
}

void
rndv_out_done(void *arg, int err)
{
	struct plx_req *req = arg;
	struct plx_rndv *r = rndv_of(plx_ep_send(req)->ep);

	plx_rndv_tx(req)->n_out--;
	if (plx_rndv_tx(req)->n_out != 0)
		return;
	if (plx_rndv_tx(req)->over)
		rndv_send_end(r, req, plx_rndv_tx(req)->err);
	else if (err == 0 && plx_rndv_tx(req)->puts && plx_rndv_tx(req)->told)
		put_end(r, req);
	/* else: steps go on, the receiver acknowledges, or the peer is gone and its wait fails */
}

void
plx_rndv_on_into(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_into *h)
{
	struct plx_req *req = rndv_send_asked(r, ep, h->sreq, h->rreq);

	if (req == NULL)
		return;
	if (!(ep->peer->caps & PLX_DEV_KEYS) || rndv_send_writes(req) || h->offset > req->len ||
		h->len > req->len - h->offset || h->len == 0) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	rndv_send_stop_run(r, req);
	plx_rndv_tx(req)->rreq = h->rreq;
	plx_ep_send(req)->offset = h->offset;
	plx_rndv_tx(req)->into.start = h->offset;
	plx_rndv_tx(req)->into.end = h->offset + h->len;
	plx_rndv_tx(req)->into.addr = h->addr;
	plx_rndv_tx(req)->into.key = h->key;
	plx_rndv_tx(req)->into.last = h->last != 0;
	plx_rndv_tx(req)->told = false;
	plx_rndv_tx(req)->puts = true;
	rndv_send_start_run(r, req, RNDV_PUT);
}

/* The device can't: as messages, from the beginning; the receiver accepts them as well. */
static unsigned
put_give_up(struct plx_rndv *r, struct plx_req *req)
{
	uint64_t end = plx_rndv_tx(req)->into.end;

	if (plx_rndv_tx(req)->n_out != 0)
		return 0; /* writes in flight first */
	plx_ep_send(req)->offset = plx_rndv_tx(req)->into.start;
	plx_rndv_tx(req)->pull.end = end;
	plx_rndv_tx(req)->told = plx_rndv_tx(req)->puts = false;
	rndv_send_start_run(r, req, RNDV_PULL);
	return 1;
}

/* @return 0: DONE is sent */
static int
put_tell(struct plx_req *req)
{
	struct plx_wire_done h = {.rreq = plx_rndv_tx(req)->rreq};
	int rc = plx_ep_tx_ctl(plx_ep_send(req)->ep, PLX_WIRE_DONE, &h, sizeof(h));

	plx_rndv_tx(req)->told = rc == 0;
	return rc;
}

unsigned
rndv_put_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_rma_op op = {.peer = s->ep->peer, .put = true, .key = t->into.key,
		.mem_type = plx_req_mem_type(req), .done = rndv_out_done, .arg = req};
	unsigned n = 0;

	rndv_batch_run(r, b);
	/* Behind pending messages, so that DONE can't be delayed by later ones. */
	while (plx_ep_open(s->ep) && s->offset < t->into.end && t->n_out < PUT_OUT) {
		int rc;

		op.local = (char *)req->buf + s->offset;
		op.remote = t->into.addr + (s->offset - t->into.start);
		op.len = RTE_MIN(t->into.end - s->offset, (uint64_t)PLX_DEV_RMA_MAX);
		rc = plx_req_in_place(req, op.peer) ? plx_peer_rma(&op) : -EOPNOTSUPP;
		if (rc == -EAGAIN)
			break;
		if (rc != 0 && rc != -EINPROGRESS)
			return put_give_up(r, req);
		t->n_out += rc == -EINPROGRESS;
		s->offset += op.len;
		n++;
	}
	if (s->offset < t->into.end || put_tell(req) != 0)
		return n;
	if (t->n_out == 0)
		put_end(r, req);
	else
		rndv_send_stop_run(r, req); /* the last write completes it */
	return n + 1;
}

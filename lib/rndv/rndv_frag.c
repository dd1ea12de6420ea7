/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_frag.c - the sender sends the data as messages, as the device takes them
 */
#include <errno.h>

#include "rndv_int.h"

#define ZCOPY_OUT 1024 /* messages of one transfer that are not copied, at once */

int
rndv_frag_start(struct plx_rndv *r, struct plx_req *req)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);
	struct plx_wire_pull h;
	int rc;

	rc = rndv_recv_name(r, req);
	if (rc != 0)
		return rc;
	v->role = RNDV_AWAIT;
	PLX_STAT_INC(r->stat.frag);
	h = (struct plx_wire_pull){.sreq = v->rts.sreq, .rreq = v->id, .offset = v->base + v->offset,
		.len = v->copy - v->offset};
	return plx_ep_tx_ctl(v->ep, PLX_WIRE_PULL, &h, sizeof(h));
}

/* Its pieces need not be copied where a device that wants to know the memory does; to register little does not pay. */
static void
zcopy_begin(const struct plx_rndv *r, struct plx_req *req, uint64_t len)
{
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_queue *q = s->ep->peer->q;
	struct plx_dev_mem mem;

	if (q->zcopy_min == 0 || len < r->put_min || !plx_req_in_place(req, s->ep->peer) || t->has_mem ||
		plx_queue_mem_reg(q, req->buf, req->len, 0, &mem) != 0)
		return;
	s->mem = mem.drv;
	t->has_mem = true;
}

static int
send_zcopy(struct plx_req *req, const struct plx_tx *tx, uint64_t len)
{
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	const struct iovec iov = {(char *)req->buf + s->offset, len};
	const struct plx_tx_zcopy z = {.peer = tx->peer, .hdr = tx->hdr, .hdr_len = tx->hdr_len, .op = tx->op,
		.iov = &iov, .n_iov = 1, .mem_type = plx_req_mem_type(req), .mem = t->has_mem ? s->mem : NULL, .done = rndv_out_done, .arg = req};
	int rc = plx_peer_tx_zcopy(&z);

	t->n_out += rc == -EINPROGRESS;
	return rc == -EINPROGRESS ? 0 : rc;
}

/* The next piece, of len bytes. */
static int
send_piece(struct plx_req *req, struct plx_tx *tx, uint64_t len)
{
	const struct plx_queue *q = tx->peer->q;
	int rc = -EOPNOTSUPP;

	if (q->zcopy_min != 0 && len >= q->zcopy_min && plx_req_in_place(req, tx->peer) &&
		plx_rndv_tx(req)->n_out < ZCOPY_OUT)
		rc = send_zcopy(req, tx, len);
	if (rc != -EOPNOTSUPP)
		return rc;
	plx_req_tx(req, tx, plx_ep_send(req)->offset, len);
	return plx_peer_tx(tx);
}

/* The receiver has read everything and wonders whether it may believe it. */
static void
answer_lent(struct plx_ep *ep, const struct plx_wire_pull *pull)
{
	struct plx_wire_data h = {.rreq = pull->rreq, .offset = pull->offset};

	(void)plx_ep_tx_ctl(ep, PLX_WIRE_DATA, &h, sizeof(h));
}

void
plx_rndv_on_pull(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_pull *h)
{
	struct plx_req *req = rndv_send_asked(r, ep, h->sreq, h->rreq);

	if (req == NULL)
		return;
	if (rndv_send_writes(req) || h->offset > req->len || h->len > req->len - h->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	if (h->len == 0) {
		answer_lent(ep, h);
		return;
	}
	plx_rndv_tx(req)->told = plx_rndv_tx(req)->puts = false; /* writes that end from now on end nothing */
	zcopy_begin(r, req, h->len);
	rndv_send_stop_run(r, req);
	plx_rndv_tx(req)->rreq = h->rreq;
	plx_ep_send(req)->offset = h->offset;
	plx_rndv_tx(req)->pull.end = h->offset + h->len;
	rndv_send_start_run(r, req, RNDV_PULL);
}

unsigned
rndv_pull_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b)
{
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_rndv_tx *t = plx_rndv_tx(req);
	struct plx_wire_data h = {.rreq = t->rreq};
	struct plx_tx tx = {.peer = s->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_DATA};
	uint64_t stop = s->offset + r->chunk;
	unsigned n = 0;

	rndv_batch_run(r, b);
	/* Pending messages go first; messages sent meanwhile may go between. */
	while (plx_ep_open(s->ep) && s->offset < t->pull.end && s->offset < stop) {
		uint64_t len = s->ep->peer->mtu - sizeof(h);

		len = len < t->pull.end - s->offset ? len : t->pull.end - s->offset;
		h.offset = s->offset;
		if (send_piece(req, &tx, len) != 0)
			break; /* full: next turn; dead: the wait fails */
		s->offset += len;
		n++;
	}
	if (s->offset == t->pull.end) {
		t->told = true;
		rndv_send_stop_run(r, req);
	}
	return n;
}

void
plx_rndv_on_data(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_data *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_req *req = rndv_recv_find(r, ep, h->rreq);
	struct plx_rndv_rx *v;

	if (req == NULL)
		return;
	v = plx_rndv_rx(req);
	if (v->role == RNDV_ASK && len == 0) {
		rndv_recv_end(r, req, v->err);
		return;
	}
	if (v->role == RNDV_SPLIT || v->role == RNDV_DRAIN) {
		r->schemes->split_data(r, req, h->offset, data, len);
		return;
	}
	if (v->role != RNDV_AWAIT || h->offset != v->base + v->offset || len > v->copy - v->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	plx_req_copy_in(req, v->offset, data, len);
	v->offset += len;
	PLX_STAT_ADD(r->stat.bytes_own, len);
	if (v->offset == v->copy)
		rndv_recv_end(r, req, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_soft.c - put, get and atomics by messages: the initiator's and the target's side
 *
 * Design notes
 * - Every message names region, token and address and is checked on its own; the target keeps no
 *   state of an operation. An answer without room in the device is pending with the ep's
 *   messages; a get's data is read, and its region looked up again, when it is sent.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "rma_int.h"

/* After a cancel an initiator begins a new window while old messages are in flight. */
#define REPLIES_MAX (16 * PLX_RMA_WINDOW)

#define NO_FETCH (-EXDEV) /* the target cannot read our memory */

/* An unsent answer of the target. */
struct rma_reply {
	struct plx_pend pend;
	struct plx_rma *r;
	struct plx_ep *ep;
	struct plx_wire_id id;
	struct plx_wire_where from; /* of the data still to send */
	uint64_t offset, left;
	uint64_t value;
	int err;
	bool data; /* RMA_DATA, else RMA_ACK */
	bool batch; /* RMA_BATCH_DONE, of id.index */
	bool fetch; /* fetch the remaining bytes from offset, an address of the initiator's, to
	             * from; then RMA_ACK */
};

int
rma_soft_open(struct plx_rma *r)
{
	plx_pool_open(&r->replies, "rma_reply", sizeof(struct rma_reply), RMA_REPLIES_RESERVE, 0, NULL,
		NULL);
	return plx_rma_refill(r) ? 0 : -ENOMEM;
}

bool
plx_rma_refill(struct plx_rma *r)
{
	return plx_pool_reserve(&r->replies, RMA_REPLIES_RESERVE);
}

/* --- initiator --- */

static struct plx_wire_where
msg_where(const struct plx_rma_req *o)
{
	return (struct plx_wire_where){.index = o->index, .token = o->token,
		.addr = o->remote + o->offset};
}

static int
put_send(struct plx_req *req, uint64_t *n)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_wire_put h = {.id = o->id, .to = msg_where(o)};
	struct plx_tx tx = {.peer = o->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_PUT};

	*n = RTE_MIN(req->len - o->offset, o->ep->peer->mtu - sizeof(h));
	plx_req_tx(req, &tx, o->offset, *n);
	return plx_peer_tx(&tx);
}

/* Long data need not go through the device, if the target can fetch them. */
static bool
put_at_is_good(const struct plx_rma *r, const struct plx_req *req)
{
	const struct plx_rma_req *o = plx_rma_req(req);

	return o->kind == PLX_RMA_PUT && r->fetch_min != 0 && req->len >= r->fetch_min &&
		o->offset == 0 && req->dt == NULL && (o->ep->peer->caps & PLX_DEV_GET) != 0;
}

static int
put_at_send(struct plx_req *req, uint64_t *n)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_wire_put_at h = {.id = o->id, .to = msg_where(o), .from = (uintptr_t)req->buf,
		.len = req->len};
	struct plx_tx tx = {.peer = o->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_PUT_AT};

	*n = req->len;
	return plx_peer_tx(&tx);
}

static int
get_send(struct plx_req *req, uint64_t *n)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_wire_get h = {.id = o->id, .from = msg_where(o), .offset = o->offset,
		.len = RTE_MIN(req->len - o->offset, PLX_RMA_GET_LEN)};
	struct plx_tx tx = {.peer = o->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_GET};

	*n = h.len;
	return plx_peer_tx(&tx);
}

static int
atomic_send(struct plx_req *req, uint64_t *n)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_wire_atomic h = {.id = o->id, .at = msg_where(o), .op = o->op, .size = o->size,
		.fetch = o->fetch};
	struct plx_tx tx = {.peer = o->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.data = o->operand, .len = sizeof(o->operand), .op = PLX_WIRE_ATOMIC};

	*n = req->len;
	return plx_peer_tx(&tx);
}

int
rma_msg_step(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);
	uint64_t n;
	int rc;

	while (o->offset < req->len) {
		if (!plx_ep_open(o->ep) || plx_rma_ep(o->ep)->n_out >= PLX_RMA_WINDOW)
			return -EAGAIN;
		rc = put_at_is_good(r, req) ? put_at_send(req, &n)
			: o->kind == PLX_RMA_PUT ? put_send(req, &n)
			: o->kind == PLX_RMA_GET ? get_send(req, &n) : atomic_send(req, &n);
		if (rc != 0)
			return rc;
		o->offset += n;
		o->n_out++;
		plx_rma_ep(o->ep)->n_out++;
	}
	return 0;
}

/* An operation that this ep may answer and that waits for an answer, or NULL. */
static struct plx_req *
op_find(struct plx_rma *r, struct plx_ep *ep, struct plx_wire_id id, bool get)
{
	struct plx_req *req = plx_req_id_find(&r->ids, id);

	if (req == NULL || plx_rma_req(req)->ep != ep || (plx_rma_req(req)->kind == PLX_RMA_GET) != get ||
		plx_rma_req(req)->n_out == 0) {
		PLX_STAT_INC(r->stat.drop_bad_id);
		return NULL;
	}
	return req;
}

/* One message is answered. */
static void
op_answered(struct plx_rma *r, struct plx_req *req, int err)
{
	struct plx_rma_req *o = plx_rma_req(req);

	o->n_out--;
	plx_rma_ep(o->ep)->n_out--;
	if (err == NO_FETCH && o->kind == PLX_RMA_PUT && r->fetch_min != 0) {
		r->fetch_min = 0; /* from now on by messages, also this one */
		rma_send_again(r, req);
		return;
	}
	if (err != 0 && o->err == 0)
		o->err = err < 0 && err > -4096 ? err : -EIO;
	if (o->err != 0)
		o->offset = req->len; /* nothing more is sent */
	rma_end_if_over(r, req);
}

void
plx_rma_on_ack(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_ack *h)
{
	struct plx_req *req = op_find(r, ep, h->id, false);

	if (req == NULL)
		return;
	if (plx_rma_req(req)->kind == PLX_RMA_ATOMIC && plx_rma_req(req)->fetch && h->err == 0)
		memcpy(req->buf, &h->value, plx_rma_req(req)->size);
	op_answered(r, req, h->err);
}

void
plx_rma_on_data(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_data *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_req *req = op_find(r, ep, h->id, true);

	if (req == NULL)
		return;
	if (h->offset > req->len || len > req->len - h->offset) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	if (h->err == 0) {
		plx_req_copy_in(req, h->offset, data, len);
		plx_rma_req(req)->got += len;
	}
	if (h->last != 0)
		op_answered(r, req, h->err);
}

/* --- target --- */

static void
reply_free(struct rma_reply *p)
{
	plx_rma_ep(p->ep)->n_replies--;
	plx_pool_put(&p->r->replies, p);
}

static int
ack_step(const struct rma_reply *p)
{
	struct plx_wire_rma_ack h = {.id = p->id, .value = p->value, .err = p->err};
	struct plx_tx tx = {.peer = p->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_RMA_ACK};

	return plx_peer_tx(&tx);
}

static int
data_step(struct rma_reply *p)
{
	const struct plx_peer *peer = p->ep->peer;
	struct plx_region_key key = rma_region_key(p->r, p->from.index, p->from.token);
	struct plx_wire_rma_data h = {.id = p->id};
	struct plx_tx tx = {.peer = p->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_RMA_DATA};
	int rc;

	do {
		uint64_t n = RTE_MIN(p->left, peer->mtu - sizeof(h));

		if (p->err == 0)
			p->err = plx_region_hold(&key, p->from.addr, n, PLX_REGION_READ);
		h.offset = p->offset;
		h.err = p->err;
		h.last = p->err != 0 || n == p->left;
		tx.data = (const void *)(uintptr_t)p->from.addr;
		tx.len = p->err == 0 ? n : 0;
		rc = plx_peer_tx(&tx);
		if (p->err == 0)
			plx_region_drop(&key);
		if (rc != 0)
			return rc;
		p->from.addr += n;
		p->offset += n;
		p->left -= n;
	} while (p->err == 0 && p->left > 0);
	if (p->err != 0)
		PLX_STAT_INC(p->r->stat.refused);
	return 0;
}

/* The next piece; a long fetch lets others run in between. */
static int
fetch_step(struct rma_reply *p)
{
	struct plx_region_key key = rma_region_key(p->r, p->from.index, p->from.token);
	struct plx_rma_op op = {.peer = p->ep->peer, .local = (void *)(uintptr_t)p->from.addr,
		.remote = p->offset, .len = RTE_MIN(p->left, PLX_RMA_CHUNK)};
	int rc;

	if (p->err == 0 && p->left > 0) {
		p->err = plx_region_hold(&key, p->from.addr, p->left, PLX_REGION_WRITE);
		if (p->err != 0)
			return ack_step(p);
		rc = plx_peer_rma(&op);
		plx_region_drop(&key);
		if (rc == -EAGAIN)
			return rc;
		p->err = rc == -EOPNOTSUPP ? NO_FETCH : rc;
		p->from.addr += op.len;
		p->offset += op.len;
		p->left -= op.len;
	}
	return p->err == 0 && p->left > 0 ? -EAGAIN : ack_step(p);
}

static int
reply_step(struct rma_reply *p)
{
	if (p->batch)
		return plx_ep_tx_short(p->ep, PLX_WIRE_RMA_BATCH_DONE, p->id.index, NULL, 0);
	if (p->fetch)
		return fetch_step(p);
	return p->data ? data_step(p) : ack_step(p);
}

static int
reply_send(struct plx_pend *pend)
{
	struct rma_reply *p = container_of(pend, struct rma_reply, pend);
	int rc = reply_step(p);

	if (rc == 0)
		reply_free(p);
	return rc;
}

static void
reply_fail(struct plx_pend *pend, int err)
{
	(void)err;
	reply_free(container_of(pend, struct rma_reply, pend));
}

/* Answer at once, or when there is room and the initiator can be connected. */
static void
reply_start(struct rma_reply *now)
{
	struct plx_ep *ep = now->ep;
	struct rma_reply *p = NULL;

	(void)plx_ep_connect(ep);
	if (ep->err != 0 || ep->peer->state == PLX_PEER_DEAD)
		return; /* the initiator is dead and needs no answer */
	if (plx_ep_open(ep) && reply_step(now) != -EAGAIN)
		return;
	if (plx_rma_ep(ep)->n_replies < REPLIES_MAX)
		p = plx_pool_get(&now->r->replies);
	if (now->r->replies.n_free < RMA_REPLIES_RESERVE) {
		ep->eps->is_short = true;
		plx_eps_need_turn(ep->eps);
	}
	if (p == NULL) { /* it exceeds its window; memory for one burst is reserved */
		PLX_STAT_INC(now->r->stat.drop_replies);
		plx_peer_dead(ep->peer, -EPROTO);
		return;
	}
	*p = *now;
	p->pend.send = reply_send;
	p->pend.fail = reply_fail;
	p->pend.conn_id = PLX_CONN_NONE;
	plx_rma_ep(ep)->n_replies++;
	plx_ep_pend(ep, &p->pend);
}

/* Apart, so that an answer that finds room saves no registers for it. */
static __rte_noinline void
batch_ack_later(struct plx_rma *r, struct plx_ep *ep, uint32_t id)
{
	struct rma_reply p = {.r = r, .ep = ep, .id.index = id, .batch = true};

	reply_start(&p);
}

void
rma_batch_ack(struct plx_rma *r, struct plx_ep *ep, uint32_t id)
{
	/* the header is its id, and 0 */
	if (unlikely(!plx_ep_open(ep) || plx_ep_tx_short(ep, PLX_WIRE_RMA_BATCH_DONE, id, NULL, 0) != 0))
		batch_ack_later(r, ep, id);
}

static int
region_hold(const struct plx_rma *r, const struct plx_wire_where *at, uint64_t len, uint8_t rights)
{
	struct plx_region_key key = rma_region_key(r, at->index, at->token);

	return plx_region_hold(&key, at->addr, len, rights);
}

static void
region_drop(const struct plx_wire_where *at)
{
	plx_region_drop(&(struct plx_region_key){at->index, at->token});
}

void
plx_rma_on_put(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_put *h,
	const uint8_t *data, uint32_t len)
{
	struct rma_reply p = {.r = r, .ep = ep, .id = h->id};

	p.err = region_hold(r, &h->to, len, PLX_REGION_WRITE);
	if (p.err == 0) {
		plx_copy((void *)(uintptr_t)h->to.addr, data, len);
		region_drop(&h->to);
		PLX_STAT_INC(r->stat.puts);
	} else {
		PLX_STAT_INC(r->stat.refused);
	}
	reply_start(&p);
}

void
plx_rma_on_put_at(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_put_at *h)
{
	struct rma_reply p = {.r = r, .ep = ep, .id = h->id, .from = h->to, .offset = h->from,
		.left = h->len, .fetch = true};

	p.err = region_hold(r, &h->to, h->len, PLX_REGION_WRITE);
	if (p.err == 0) {
		region_drop(&h->to);
		PLX_STAT_INC(r->stat.puts);
		PLX_STAT_INC(r->stat.fetches);
	} else {
		PLX_STAT_INC(r->stat.refused);
	}
	reply_start(&p);
}

void
plx_rma_on_get(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_get *h)
{
	struct rma_reply p = {.r = r, .ep = ep, .id = h->id, .from = h->from, .offset = h->offset,
		.left = h->len, .data = true};

	if (h->len == 0 || h->len > PLX_RMA_GET_LEN)
		p.err = -EINVAL;
	else
		PLX_STAT_INC(r->stat.gets);
	reply_start(&p);
}

static int
atomic_at_target(const struct plx_rma *r, const struct plx_wire_atomic *h, const uint64_t *operand,
	uint64_t *old)
{
	uint8_t rights;
	int rc;

	if ((h->size != 4 && h->size != 8) || h->op >= PLX_RMA_ATOMIC_N || h->at.addr % h->size != 0)
		return -EINVAL;
	rights = PLX_REGION_WRITE | (h->fetch ? PLX_REGION_READ : 0) |
		(h->size == 8 ? PLX_REGION_CPU64 : 0);
	rc = region_hold(r, &h->at, h->size, rights);
	if (rc != 0)
		return rc;
	*old = plx_rma_atomic_do((void *)(uintptr_t)h->at.addr, h->op, h->size, operand[0],
		operand[1]);
	region_drop(&h->at);
	return 0;
}

void
plx_rma_on_atomic(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_atomic *h,
	const uint8_t *data, uint32_t len)
{
	struct rma_reply p = {.r = r, .ep = ep, .id = h->id};
	uint64_t operand[2], old = 0;

	p.err = -EINVAL;
	if (len == sizeof(operand)) {
		memcpy(operand, data, sizeof(operand));
		p.err = atomic_at_target(r, h, operand, &old);
	}
	if (p.err == 0)
		PLX_STAT_INC(r->stat.atomics);
	else
		PLX_STAT_INC(r->stat.refused);
	if (h->fetch)
		p.value = old;
	reply_start(&p);
}

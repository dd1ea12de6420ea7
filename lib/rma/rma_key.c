/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_key.c - put, get and atomics by the device, with the key of registered memory
 *
 * Design notes
 * - The target takes no part: its device checks key, rights and bounds. If the device refuses the
 *   connection fails, so the initiator checks them first, with the packed key.
 * - Devices add, and compare and swap. Other atomics are compare-and-swap of the value that the
 *   previous attempt found (the first finds it by adding 0) until it succeeds; it only fails if
 *   another initiator succeeds.
 */
#include <errno.h>

#include "rma_int.h"

#define KEY_LEN (1u << 20) /* bytes of one operation of the device */
#define KEY_OUT 8	   /* of one request in flight */

bool
rma_key_is_good(const struct plx_rma *r, const struct plx_req *req)
{
	const struct plx_rma_req *o = plx_rma_req(req);
	const struct plx_peer *peer = o->ep->peer;

	if (o->key == 0 || o->checked || req->dt != NULL || !(peer->caps & PLX_DEV_KEYS) ||
		o->domain != peer->domain)
		return false;
	/* The owner of the memory chooses how atomics are executed. */
	return r->by_device || (o->kind == PLX_RMA_ATOMIC && !o->cpu64);
}

/* An atomic of the device; or the one that emulates others. */
static bool
is_of_device(const struct plx_rma_req *o)
{
	return o->op == PLX_RMA_ADD || o->op == PLX_RMA_CSWAP;
}

static uint64_t
atomic_becomes(const struct plx_rma_req *o)
{
	switch (o->op) {
	case PLX_RMA_AND:
		return o->seen & o->operand[0];
	case PLX_RMA_OR:
		return o->seen | o->operand[0];
	case PLX_RMA_XOR:
		return o->seen ^ o->operand[0];
	default: /* SWAP */
		return o->operand[0];
	}
}

enum { STAGE_FIND, STAGE_SWAP };

/* An atomic has completed. @return whether that was all of it */
static bool
atomic_done(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);

	if (!is_of_device(o) && (o->stage == STAGE_FIND || o->seen != o->tried)) {
		o->stage = STAGE_SWAP;
		rma_send_again(r, req);
		return false;
	}
	if (o->fetch)
		memcpy(req->buf, &o->seen, sizeof(o->seen));
	return true;
}

/* plx_rma_op.done: arg is the request. */
static void
key_done(void *arg, int err)
{
	struct plx_req *req = arg;
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_rma *r = rma_of(req);

	o->n_dev--;
	if (o->over) {
		if (o->n_dev == 0)
			rma_end(r, req, o->err);
		return;
	}
	if (err != 0 && o->err == 0) {
		o->err = err;
		rma_send_stop(r, req);
	}
	if (o->kind != PLX_RMA_ATOMIC || o->err != 0 || atomic_done(r, req))
		rma_end_if_over(r, req);
}

static void
atomic_op(struct plx_req *req, struct plx_rma_op *op)
{
	struct plx_rma_req *o = plx_rma_req(req);

	op->local = &o->seen;
	op->atomic = PLX_DEV_FADD;
	if (o->op == PLX_RMA_CSWAP) {
		op->atomic = PLX_DEV_CSWAP;
		memcpy(op->operand, o->operand, sizeof(op->operand));
	} else if (o->op == PLX_RMA_ADD) {
		op->operand[0] = o->operand[0];
	} else if (o->stage == STAGE_SWAP) {
		op->atomic = PLX_DEV_CSWAP;
		op->operand[0] = o->tried = o->seen;
		op->operand[1] = atomic_becomes(o);
	}
}

/* Pieces in flight complete it. @return as rma_key_step() */
static int
key_fail(struct plx_rma *r, struct plx_req *req, int err)
{
	if (plx_rma_req(req)->n_dev == 0)
		return err;
	plx_rma_req(req)->err = err;
	rma_send_stop(r, req);
	return 0;
}

/* The device can't access our side's memory: the remainder by messages. */
static int
key_give_up(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);

	if (o->kind == PLX_RMA_ATOMIC)
		return -EOPNOTSUPP;
	o->how = PLX_RMA_MSG;
	o->got = o->offset;
	PLX_STAT_INC(r->stat.msg);
	return rma_msg_step(r, req);
}

int
rma_key_step(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_rma_op op = {.peer = o->ep->peer, .put = o->kind == PLX_RMA_PUT, .key = o->key,
		.done = key_done, .arg = req};
	int rc;

	while (o->offset < req->len) {
		if (o->n_dev >= KEY_OUT)
			return -EAGAIN;
		op.local = (char *)req->buf + o->offset;
		op.remote = o->remote + o->offset;
		op.len = RTE_MIN(req->len - o->offset, (uint64_t)KEY_LEN);
		if (o->kind == PLX_RMA_ATOMIC)
			atomic_op(req, &op);
		rc = plx_peer_rma(&op);
		if (rc == -EOPNOTSUPP)
			return key_give_up(r, req);
		if (rc == -EAGAIN)
			return rc;
		if (rc != -EINPROGRESS)
			return key_fail(r, req, rc);
		o->n_dev++;
		o->offset += op.len;
	}
	return 0;
}

int
rma_mark_step(struct plx_req *req)
{
	int rc = plx_peer_rma(&(struct plx_rma_op){.peer = plx_rma_req(req)->ep->peer, .put = true,
		.done = key_done, .arg = req});

	if (rc != -EINPROGRESS)
		return rc;
	plx_rma_req(req)->n_dev++;
	return 0;
}

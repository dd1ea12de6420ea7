/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_op.c - one operation in flight: its place in the ep's list, its completion
 */
#include <errno.h>

#include "rma_int.h"

void
rma_send_again(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);
	const struct plx_rma_req *first = plx_rma_ep(o->ep)->send;

	o->offset = 0;
	/* Skip successors that are completely sent. */
	if (first == NULL || first->seq > o->seq)
		rma_set_send(r, plx_rma_ep(o->ep), o);
}

void
rma_send_stop(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);

	o->offset = req->len;
	if (plx_rma_ep(o->ep)->send == o)
		rma_set_send(r, plx_rma_ep(o->ep), TAILQ_NEXT(o, link));
}

void
rma_keep_err(struct plx_rma *r, struct plx_ep *ep, int err)
{
	if (plx_rma_ep(ep)->err == 0)
		plx_rma_ep(ep)->err = err;
	if (r->err == 0)
		r->err = err;
}

void
plx_rma_over(struct plx_rma *r, struct plx_req *req, int err)
{
	if (err != 0) {
		PLX_STAT_INC(r->stat.errors);
		if (plx_rma_req(req)->nbi)
			rma_keep_err(r, plx_rma_req(req)->ep, err);
	}
	/* pairs with the acquire in plx_rma_unfenced() */
	atomic_fetch_sub_explicit(&r->n_ops, 1, memory_order_release);
	plx_req_complete(req, err);
}

void
rma_unlink(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_ep *ep = o->ep;

	if (unlikely(o->shared))
		rma_part_end(r, o); /* the target is not to do it any more */
	if (unlikely(o->n_out != 0 && o->how == PLX_RMA_DEV))
		rma_batch_forget(r, o);
	if (plx_rma_ep(ep)->send == o)
		rma_set_send(r, plx_rma_ep(ep), TAILQ_NEXT(o, link));
	TAILQ_REMOVE(&plx_rma_ep(ep)->ops, o, link);
	TAILQ_REMOVE(&r->all, o, all);
	plx_ep_wait_end(&o->wait);
	if (o->id.index != 0)
		plx_req_id_put(&r->ids, o->id);
	plx_rma_ep(ep)->n_out -= o->n_out; /* later answers for it find no operation */
}

void
rma_end(struct plx_rma *r, struct plx_req *req, int err)
{
	rma_unlink(r, req);
	plx_rma_over(r, req, err);
}

void
rma_end_later(struct plx_rma *r, struct plx_rma_req *o, struct rma_ended *ended)
{
	rma_unlink(r, plx_req_of_own(o));
	TAILQ_INSERT_TAIL(ended, o, link);
}

unsigned
rma_end_all(struct plx_rma *r, struct rma_ended *ended)
{
	struct plx_rma_req *o;
	unsigned n = 0;

	for (; (o = TAILQ_FIRST(ended)) != NULL; n++) {
		TAILQ_REMOVE(ended, o, link);
		plx_rma_over(r, plx_req_of_own(o), o->err);
	}
	return n;
}

void
rma_end_if_over(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);

	if (o->n_out > 0 || o->n_dev > 0 || o->offset < req->len)
		return;
	if (o->err == 0 && o->kind == PLX_RMA_GET && o->how == PLX_RMA_MSG && o->got != req->len)
		o->err = -EIO;
	rma_end(r, req, o->err);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_rma.c - put, get and atomics: from the application's side, and arrivals of them
 */
#include <errno.h>
#include <string.h>

#include "worker_int.h"

void
worker_rma_run(struct plx_worker *w, struct plx_ep *ep)
{
	worker_hold_done(w);
	plx_rma_run_late(&w->rma, ep);
	worker_release_done(w);
}

static int
later(struct plx_worker *w, const struct plx_rma_do *d)
{
	int rc = plx_rma_later(&w->rma, d);

	plx_worker_busy(w);
	if (plx_rma_is_full(d->ep))
		worker_rma_run(w, d->ep);
	return rc;
}

/* Move the late operations of an ep. @return whether the next may pass: not while the target has one of them */
static inline bool
late_is_over(struct plx_worker *w, struct plx_ep *ep)
{
	if (unlikely(plx_rma_ep(ep)->n_late != 0)) {
		worker_rma_run(w, ep);
		if (plx_rma_ep(ep)->send != NULL)
			return false;
	}
	return likely(!plx_rma_asks(ep));
}

/* As the owner. */
static int
rma_now(struct plx_worker *w, const struct plx_rma_do *d, bool hides)
{
	int rc;

	if (plx_rma_is_late(&w->rma, d)) {
		if (plx_rma_is_lone(&w->rma, d->ep, w->stat.turns))
			return plx_rma_dev_now(&w->rma, d);
		return hides ? later(w, d) : -EAGAIN;
	}
	if (!late_is_over(w, d->ep))
		return -EAGAIN;
	if (d->kind == PLX_RMA_PUT && plx_rma_is_quick(&w->rma, d->ep, d->rkey, d->len)) {
		if (plx_rma_ep(d->ep)->sure != 0) {
			plx_rma_ep(d->ep)->sure--;
			return -EAGAIN;
		}
		rc = plx_rma_quick(&w->rma, d->ep, d->rkey, d->buf, (uint32_t)d->len, d->remote);
		if (rc != -EAGAIN) {
			plx_worker_busy(w); /* as in plx_worker_rma() */
			return rc;
		}
	}
	if (d->len >= w->rma.share_min && plx_rma_is_shared(&w->rma, d))
		return -EAGAIN;
	return plx_rma_dev_now(&w->rma, d);
}

int
plx_worker_rma_now(struct plx_worker *w, const struct plx_rma_do *d, bool hides)
{
	enum plx_gate_pass pass;
	int rc;

	if (d->ep->stub || d->kind == PLX_RMA_ATOMIC || !plx_rma_unfenced(&w->rma))
		return -EAGAIN;
	if (likely(!w->dedicated))
		return rma_now(w, d, hides);
	/* A long operation is the reactor's, so that the application may compute meanwhile. */
	pass = d->len < PLX_WORKER_LONG_LEN ? plx_worker_begin(w) : PLX_GATE_NOT;
	if (pass == PLX_GATE_NOT)
		return -EAGAIN;
	w->rma.may_mark = true;
	rc = rma_now(w, d, hides);
	plx_worker_end(w, pass, true);
	return rc;
}

/* Whether both sides should copy a list, of which these are: then each is an operation that waits for the others. */
static bool
are_shared(struct plx_worker *w, struct plx_ep *ep, uint8_t kind, const struct plx_rma_piece *pieces, unsigned n,
	uint64_t all)
{
	const struct plx_rma_do d = {.ep = ep, .kind = kind, .len = all, .late = true};
	uint64_t bytes = 0;

	/* A reactor would get them one by one, and move few by a call. */
	if (w->dedicated || all < w->rma.share_min)
		return false;
	for (unsigned i = 0; i < n; i++)
		bytes += pieces[i].len;
	return bytes >= w->rma.share_min && plx_rma_is_long(&w->rma, ep, bytes / n * PLX_RMA_LATE_N) &&
	       plx_rma_is_shared(&w->rma, &d);
}

int
plx_worker_rma_pieces(struct plx_worker *w, struct plx_ep *ep, uint8_t kind,
	const struct plx_rma_piece *pieces, unsigned *n, uint64_t all)
{
	enum plx_gate_pass pass = PLX_GATE_NOT;
	int rc;

	if (ep->stub || !plx_rma_unfenced(&w->rma) ||
		(w->dedicated && (pass = plx_worker_begin(w)) == PLX_GATE_NOT)) {
		*n = 0;
		return -EAGAIN;
	}
	if (!are_shared(w, ep, kind, pieces, *n, all) && late_is_over(w, ep)) {
		rc = plx_rma_pieces_now(&w->rma, ep, kind, pieces, n);
	} else {
		*n = 0;
		rc = -EAGAIN;
	}
	plx_worker_busy(w);
	if (w->dedicated)
		plx_worker_end(w, pass, true);
	return rc;
}

struct fence_arg {
	struct plx_worker *w;
	int rc;
};

static void
mark_run(void *arg)
{
	struct fence_arg *a = arg;

	worker_rma_move(a->w);
	a->rc = plx_rma_mark(&a->w->rma, NULL);
}

int
plx_worker_fence(struct plx_worker *w)
{
	struct fence_arg a = {.w = w};

	if (!w->dedicated)
		mark_run(&a);
	else if (w->rma.may_mark)
		plx_worker_call(w, mark_run, &a);
	w->rma.may_mark = a.rc != 0;
	if (a.rc == 0)
		plx_rma_fence(&w->rma);
	return a.rc;
}

static void
rma_fail(struct plx_req *req, int err)
{
	plx_rma_over(&worker_of(req)->rma, req, err);
}

static void
rma_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_worker *w = worker_of(req);
	struct plx_ep *ep;
	int rc;

	if (plx_rma_req(req)->ep->stub) {
		rc = plx_ep_connect(plx_rma_req(req)->ep);
		if (rc == -EAGAIN)
			rc = plx_ep_defer(plx_rma_req(req)->ep, rma_run, rma_fail, req, &plx_rma_req(req)->ep);
		if (rc != 0)
			rma_fail(req, rc);
		return;
	}
	ep = plx_rma_req(req)->ep;
	plx_rma_start(&w->rma, req);
	if (unlikely(plx_rma_is_full(ep)))
		worker_rma_run(w, ep);
}

void
plx_worker_rma(struct plx_worker *w, const struct plx_rma_do *d, struct plx_req *req)
{
	plx_rma_prepare(&w->rma, d, req);
	plx_worker_busy(w); /* its answer may be stores to our memory, which no turn detects */
	if (!worker_submit(w, rma_run, req))
		rma_run(req);
}

int
plx_worker_rkey_unpack(const struct plx_ep_user *user, const void *buf, uint8_t can, bool map,
	struct plx_rkey **out)
{
	struct plx_ep *ep = user->ep;
	/* The process of a client that is not connected yet is unknown. */
	int rc = plx_rkey_unpack(ep->stub ? NULL : ep->peer, buf, can, map, out);

	if (rc == 0 && !ep->stub)
		atomic_store_explicit(&plx_worker_ep(ep)->keys, true, memory_order_relaxed);
	return rc;
}

bool
plx_worker_rma_is_taken(struct plx_worker *w, struct plx_req *req)
{
	return !w->dedicated && !plx_rma_req(req)->ep->stub && plx_rma_is_taken(req);
}

void
worker_rx_batch(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_ep *ep = plx_ep_of(&w->eps, rx->src);
	struct plx_wire_rma_batch_done done;
	struct plx_wire_rma_batch batch;

	if (unlikely(ep == NULL)) {
		PLX_STAT_INC(w->stat.rx_drop_no_memory);
	} else if (rx->op == PLX_WIRE_RMA_BATCH) {
		memcpy(&batch, rx->data, sizeof(batch)); /* once: the sender may still write */
		plx_rma_on_batch(&w->rma, ep, &batch, rx->data + sizeof(batch), rx->len - sizeof(batch));
	} else {
		memcpy(&done, rx->data, sizeof(done));
		plx_rma_on_batch_done(&w->rma, ep, &done, rx->data + sizeof(done), rx->len - sizeof(done));
	}
}

union rx_hdr {
	struct plx_wire_put put;
	struct plx_wire_put_at put_at;
	struct plx_wire_get get;
	struct plx_wire_atomic atomic;
	struct plx_wire_rma_ack ack;
	struct plx_wire_rma_data data;
	struct plx_wire_share share;
};

void
worker_rx_rma(struct plx_worker *w, const struct plx_rx *rx)
{
	uint32_t hdr_len = plx_wire_hdr_len[rx->op];
	const uint8_t *data = rx->data + hdr_len;
	uint32_t len = rx->len - hdr_len;
	struct plx_ep *ep = plx_ep_of(&w->eps, rx->src);
	union rx_hdr hdr;

	if (ep == NULL) {
		PLX_STAT_INC(w->stat.rx_drop_no_memory);
		return;
	}
	memcpy(&hdr, rx->data, hdr_len);
	switch (rx->op) {
	case PLX_WIRE_PUT:
		plx_rma_on_put(&w->rma, ep, &hdr.put, data, len);
		break;
	case PLX_WIRE_PUT_AT:
		plx_rma_on_put_at(&w->rma, ep, &hdr.put_at);
		break;
	case PLX_WIRE_GET:
		plx_rma_on_get(&w->rma, ep, &hdr.get);
		break;
	case PLX_WIRE_ATOMIC:
		plx_rma_on_atomic(&w->rma, ep, &hdr.atomic, data, len);
		break;
	case PLX_WIRE_RMA_ACK:
		plx_rma_on_ack(&w->rma, ep, &hdr.ack);
		break;
	case PLX_WIRE_RMA_DATA:
		plx_rma_on_data(&w->rma, ep, &hdr.data, data, len);
		break;
	case PLX_WIRE_SHARE:
		plx_rma_on_share(&w->rma, ep, &hdr.share);
		break;
	default:
		PLX_STAT_INC(w->stat.rx_drop_bad_op);
		break;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_late.c - short puts and gets by the device wait for each other
 *
 * Design notes
 * - The fixed cost of a call of the device is that of several KiB. So short puts and gets of
 *   private memory are only queued; the next turn, flush or fence, the 128th of them, or an
 *   operation that may not wait, moves them all, by one call a direction or with the target.
 * - What the application has no request for needs one here, from the owner's pool. A put of a few
 *   bytes is kept in it, so that its buffer is the application's again at once.
 * - A program that waits for each of them gains nothing by that, and a queue, a request and a flush cost
 *   more than a quarter of the device's call. So after a few that nothing came behind the next one is
 *   done at once, if the target polls for no messages now, which cost less. Of those that a program posts
 *   between two turns or flushes only the first is, so that it is seen when others come behind it again.
 * - The device has to have moved something before: a peer whose memory it can't reach gets no
 *   queue that would only turn into messages.
 */
#include <errno.h>
#include <string.h>

#include "plx_copy.h"
#include "rma_int.h"

bool
plx_rma_is_late(const struct plx_rma *r, const struct plx_rma_do *d)
{
	return d->late && d->len <= PLX_RMA_LATE_LEN && d->ep->connected && plx_rma_ep(d->ep)->proven &&
	       plx_rma_is_direct(r, d->ep, d->kind);
}

bool
plx_rma_is_lone(const struct plx_rma *r, struct plx_ep *ep, uint64_t turns)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);
	const uint16_t at = (uint16_t)(turns + r->n_flushes);

	/* The last step that asks for nothing goes the usual way, which asks again then. */
	if (likely(e->n_lone < RMA_LONE_N) || e->skip < 2 || !TAILQ_EMPTY(&e->ops) || e->lone_at == at)
		return false;
	e->skip--;
	e->lone_at = at;
	return true;
}

int
plx_rma_later(struct plx_rma *r, const struct plx_rma_do *d)
{
	struct plx_req *req = plx_req_get(r->reqs);
	bool copies = d->kind == PLX_RMA_PUT && d->len <= PLX_RMA_COPY_LEN;

	if (req == NULL)
		return -EAGAIN;
	if (plx_rma_ep(d->ep)->send == NULL && plx_rma_ep(d->ep)->n_batches == 0)
		plx_peer_tx_now(d->ep->peer);
	plx_req_flag(req, PLX_REQ_RELEASED);
	plx_rma_prepare(r, d, req);
	plx_rma_req(req)->nbi = true;
	if (copies) {
		plx_copy(plx_rma_req(req)->copy, d->buf, d->len);
		req->buf = plx_rma_req(req)->copy;
	}
	plx_rma_start(r, req);
	return copies ? 0 : -EINPROGRESS;
}

void
plx_rma_run_late(struct plx_rma *r, struct plx_ep *ep)
{
	r->posts = true;
	if (ep != NULL) {
		plx_rma_ep(ep)->n_late = 0;
		plx_rma_ep(ep)->posts = true;
		rma_ep_run(r, plx_rma_ep(ep));
		plx_rma_ep(ep)->posts = false;
		if (plx_rma_ep(ep)->send != NULL) /* others may not pass them */
			plx_rma_ep(ep)->n_late = 1;
	} else {
		r->late = false;
		plx_rma_run(r);
	}
	r->posts = false;
}

int
plx_rma_pieces_now(struct plx_rma *r, struct plx_ep *ep, uint8_t kind,
	const struct plx_rma_piece *pieces, unsigned *n)
{
	unsigned all = *n;
	uint64_t bytes = 0, begin;
	int rc = plx_ep_connect(ep);

	if (rc == 0 && !plx_rma_is_direct(r, ep, kind))
		rc = -EAGAIN;
	if (rc != 0) {
		*n = 0;
		return rc;
	}
	for (unsigned i = 0; i < all; i++)
		bytes += pieces[i].len;
	begin = rte_rdtsc();
	rc = rma_pieces_move(ep, kind == PLX_RMA_PUT, pieces, n);
	if (rc == 0 && bytes >= r->share_min)
		plx_rma_ep(ep)->pace = rma_pace(begin, bytes);
	PLX_STAT_ADD(r->stat.dev, *n);
	plx_rma_ep(ep)->proven |= *n != 0;
	return rc == -EOPNOTSUPP ? -EAGAIN : rc;
}

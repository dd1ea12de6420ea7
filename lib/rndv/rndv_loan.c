/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_loan.c - announced messages that the application reads where they lie, in the sender's memory
 *
 * Design notes
 * - Nothing is moved: the loan holds the mapping of the sender's segments, and the sender completes
 *   by the ACK that returning it sends. So the pages stay whatever becomes of the sender, of its ep
 *   and of this worker.
 * - A sender that withdraws the message, by closing its handle by force, may write to the buffer
 *   again at once. The reader finds that in the count of withdrawals, as a receiver does that reads
 *   (plx_rndv.h); the count may be another message's, which is as good as a withdrawal.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "plx_region.h"

#include "rndv_int.h"

static void
loan_wait_fail(struct plx_wait *w, int err)
{
	(void)err; /* the pages stay; whoever asks learns that the sender is gone */
	container_of(w, struct plx_loan, wait)->ep = NULL;
}

static void
loan_free(struct plx_loan *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		plx_map_put(l->p[i].map);
	free(l);
}

/* @return whether all of it is mapped here, in few enough pieces */
static bool
loan_view(struct plx_loan *l, struct plx_peer *peer)
{
	for (uint64_t done = 0, n; done < l->len; done += n) {
		const void *at;

		n = l->len - done;
		if (l->n == PLX_LOAN_PIECES)
			return false;
		at = plx_peer_view(peer, l->rts.addr + done, &n, &l->p[l->n].map);
		if (at == NULL)
			return false;
		l->p[l->n].at = at;
		l->p[l->n++].len = n;
	}
	return true;
}

int
plx_rndv_loan(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t len, struct plx_loan **out)
{
	struct plx_loan *l;

	if (len == 0 || rts->addr == 0 || len > UINT64_MAX - rts->addr || plx_ep_connect(ep) != 0 || ep->peer == NULL ||
		!rndv_epoch_is(ep, rts->epoch))
		return -EOPNOTSUPP;
	if (r->stat.loans - r->stat.loans_returned >= PLX_RNDV_LOANS_MAX) {
		PLX_STAT_INC(r->stat.loans_refused);
		return -ENOBUFS;
	}
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->rts = *rts;
	l->len = len;
	if (!loan_view(l, ep->peer)) {
		loan_free(l);
		return -EOPNOTSUPP;
	}
	l->rndv = r;
	l->ep = ep;
	l->wait.since = plx_wait_clock(rte_rdtsc());
	plx_ep_wait(ep, &l->wait, PLX_CONN_NONE, loan_wait_fail);
	LIST_INSERT_HEAD(&r->loans, l, link);
	PLX_STAT_INC(r->stat.loans);
	*out = l;
	return 0;
}

bool
plx_rndv_loan_is_valid(const struct plx_loan *l)
{
	return l->rndv != NULL && l->ep != NULL && rndv_epoch_is(l->ep, l->rts.epoch);
}

void
plx_rndv_loan_return(struct plx_loan *l)
{
	if (l->rndv != NULL) {
		LIST_REMOVE(l, link);
		PLX_STAT_INC(l->rndv->stat.loans_returned);
		plx_ep_wait_end(&l->wait);
		if (l->ep != NULL)
			plx_rndv_ack(l->ep, l->rts.sreq, 0);
	}
	loan_free(l);
}

void
rndv_loans_detach(struct plx_rndv *r)
{
	struct plx_loan *l;

	while ((l = LIST_FIRST(&r->loans)) != NULL) {
		LIST_REMOVE(l, link);
		l->rndv = NULL;
		l->ep = NULL;
	}
}

bool
rndv_loan_info(const struct plx_wait *w, struct plx_wait_info *out)
{
	const struct plx_loan *l = container_of(w, struct plx_loan, wait);

	if (w->fail != loan_wait_fail)
		return false;
	*out = (struct plx_wait_info){.op = "am_loan", .state = "loaned to the program", .len = l->len, .done = l->len,
		.since = plx_wait_since(&l->wait, rte_rdtsc())};
	return true;
}

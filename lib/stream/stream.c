/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream.c - all streams of a worker: open, handles created and closed, failures of peers
 */
#include <string.h>

#include "stream_int.h"

#define ROW(field) PLX_STAT_ROW(struct plx_stream_stat, field)

const struct plx_stat_row plx_stream_stat_rows[] = {
	ROW(streams), ROW(sends), ROW(tx_no_credit), ROW(rx_direct_bytes), ROW(rx_kept_bytes),
	ROW(rx_fetched_bytes), ROW(rx_ahead_bytes), ROW(rx_stopped), ROW(rx_paced),
	ROW(rx_drop_closed), ROW(rx_drop_no_memory), ROW(rx_drop_no_credit), ROW(rx_drop_refused),
	ROW(drop_bad_grant), ROW(grants),
	PLX_STAT_END,
};

void
plx_streams_open(struct plx_streams *all, struct plx_eps *eps, struct plx_msg_pools *msgs,
	struct plx_rndv *rndv, struct plx_timers *timers, const struct plx_streams_conf *conf)
{
	memset(all, 0, sizeof(*all));
	TAILQ_INIT(&all->ready);
	TAILQ_INIT(&all->late);
	TAILQ_INIT(&all->stopped);
	all->timers = timers;
	all->ahead.fn = stream_ahead;
	all->eps = eps;
	all->msgs = msgs;
	all->rndv = rndv;
	all->rndv_min = conf->rndv_min;
	all->unread_max = conf->unread_max;
	(void)plx_req_pool_open(&all->xfers, 0, false, NULL, NULL); /* cannot fail without a ring */
	plx_pool_open(&all->pool, "stream", sizeof(struct plx_stream), 16, 0, NULL, NULL);
}

void
plx_streams_close(struct plx_streams *all)
{
	plx_timer_disarm(all->timers, &all->ahead);
	plx_req_pool_close(&all->xfers);
	plx_pool_close(&all->pool);
}

void
plx_stream_detach(struct plx_ep *ep, struct plx_ep_user *user)
{
	/* The ep may be a pending one by now, and the stream is where it was. */
	struct plx_stream *s = user->stream != NULL ? user->stream : stream_find(ep, user->conn_id);

	user->stream = NULL;
	if (s == NULL)
		return;
	s->user = plx_ep_user_find(s->ep, s->conn_id);
	if (s->user != NULL)
		return; /* another handle has the same number: a reply handle */
	s->closed = true;
	stream_set_ready(s, false);
	if (s->xfer == NULL) { /* otherwise when nothing writes to the first receive's buffer any
	                        * more */
		s->busy++;
		stream_recvs_fail(s, -ECANCELED);
		stream_drop_unread(s);
		s->busy--;
	}
	stream_free_if(s);
}

void
plx_stream_move(struct plx_ep_user *user)
{
	struct plx_stream *s = user->stream, *t;
	struct plx_stream_req *r;

	if (s == NULL || s->ep == user->ep || !s->ep->stub)
		return;
	t = stream_find(user->ep, s->conn_id);
	if (t == NULL) {
		LIST_REMOVE(s, link);
		s->ep->n_msgs--;
		s->ep = user->ep;
		s->ep->n_msgs++;
		LIST_INSERT_HEAD(&plx_stream_ep(s->ep)->all, s, link);
		return;
	}
	/* Sends, or bytes, came first. A pending ep's stream has receives and nothing else. */
	TAILQ_FOREACH(r, &s->recvs, link)
		r->stream = t;
	TAILQ_CONCAT(&t->recvs, &s->recvs, link);
	user->stream = t;
	stream_user_set(t, user);
	stream_free(s);
	t->busy++;
	stream_match(t);
	t->busy--;
	stream_grant_if(t);
	stream_free_if(t);
}

void
plx_stream_user_failed(struct plx_ep_user *user, int err)
{
	struct plx_stream *s = user->stream;

	if (s == NULL || s->xfer != NULL || !TAILQ_EMPTY(&s->chunks))
		return; /* arrived bytes can still be read */
	s->busy++;
	stream_recvs_fail(s, err);
	s->busy--;
	stream_free_if(s);
}

void
plx_stream_ep_failed(struct plx_ep *ep, int err)
{
	struct plx_stream *s, *next;

	for (s = LIST_FIRST(&plx_stream_ep(ep)->all); s != NULL; s = next) {
		s->busy++;
		if (s->xfer == NULL && TAILQ_EMPTY(&s->chunks))
			stream_recvs_fail(s, err);
		next = LIST_NEXT(s, link);
		s->busy--;
		s->ep_failed = true;
		stream_close_if(s);
		stream_free_if(s);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_match.c - matching receives with bytes that have arrived or are still at the sender
 *
 * Design notes
 * - Bytes of a long send are at the sender until a receive reaches them, or none has for a while.
 *   Fetched bytes match receives like arrived ones: the functions call each other in a circle.
 */
#include <rte_common.h>
#include <rte_cycles.h>

#include "stream_int.h"

#define FETCH_LEN ((64u << 10) - STREAM_BACK_LEN) /* bytes that are stored at a time */
#define FETCH_DIRECT_MIN (8u << 10) /* receives of fewer bytes are served from there */
#define AHEAD_PIECES	 16	    /* read ahead in one turn, if they come at once */

static void ahead_run(struct plx_stream *s);

/* Bytes of the first chunk have been fetched, or never will be. */
static void
xfer_done(struct plx_req *x)
{
	struct plx_stream *s = x->cb_arg;
	struct plx_msg *m = s->rts, *to = s->xfer_to;
	struct plx_req *req = stream_first(&s->recvs);
	uint64_t n = x->len;
	int rc = x->status;

	s->busy++;
	s->xfer = NULL;
	s->xfer_to = NULL;
	plx_req_put(x);
	if (rc != 0 && to != NULL) {
		stream_unkeep(s->all, to->len);
		plx_msg_put(s->all->msgs, to);
	}
	if (rc == 0) {
		PLX_STAT_ADD(s->all->stat.rx_fetched_bytes, n);
		m->got += n;
		if (to != NULL)
			TAILQ_INSERT_BEFORE(m, to, chunk);
		if (m->got == m->len)
			stream_chunk_remove(s, m);
		if (to != NULL)
			stream_set_ready(s, true);
	} else if (m == TAILQ_FIRST(&s->chunks)) {
		s->err = rc;
		stream_chunk_remove(s, m);
	} else {
		s->lost = rc; /* an error after arrived bytes */
	}
	if (to == NULL) {
		plx_stream_req(req)->offset += n;
		if (s->closed)
			rc = -ECANCELED;
		if (rc != 0 || stream_recv_ends(req, plx_stream_req(req)->offset))
			stream_recv_end(s, req, rc);
	}
	if (s->closed) {
		stream_recvs_fail(s, -ECANCELED);
		stream_drop_unread(s);
	} else if (!s->matching) {
		stream_match(s);
		if (to != NULL)
			ahead_run(s);
	}
	s->busy--;
	stream_grant_if(s);
	stream_close_if(s);
	if (s->closed)
		stream_free_if(s);
}

static void
xfer_unpack(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len)
{
	struct plx_stream *s = container_of(dt, struct plx_stream, xfer_dt);
	struct plx_req *req = stream_first(&s->recvs);

	req->dt->unpack(req->dt, plx_stream_req(req)->offset + offset, from, len);
}

static int
xfer_dt_finish(struct plx_dt *dt, int status)
{
	(void)dt;
	return status;
}

/* @return 0, and it may be complete; -ENOMEM it did not begin */
static int
xfer_start(struct plx_stream *s, struct plx_msg *m, void *buf, struct plx_dt *dt, uint64_t n)
{
	struct plx_req *x = plx_req_get(&s->all->xfers);

	if (x == NULL)
		return -ENOMEM;
	atomic_store_explicit(&x->flags, PLX_REQ_RECV, memory_order_relaxed);
	x->done = xfer_done;
	x->cb_arg = s;
	x->buf = buf;
	x->len = n;
	x->dt = dt;
	s->xfer = x;
	plx_rndv_recv_part(s->all->rndv, s->ep, &m->rts, m->got, n, m->got + n < m->len, x);
	return 0;
}

void
stream_late_if(struct plx_stream *s)
{
	struct plx_streams *all = s->all;

	if (s->rts != NULL && TAILQ_EMPTY(&s->recvs) && !all->ahead.armed)
		plx_timer_arm(all->timers, &all->ahead,
			rte_rdtsc() + rte_get_tsc_hz() / 1000000 * PLX_STREAM_AHEAD_US);
}

/* @return whether it can't get further now */
static bool
ahead_pieces(struct plx_stream *s)
{
	struct plx_streams *all = s->all;

	for (unsigned i = 0; s->rts != NULL && s->xfer == NULL && s->err == 0 && s->lost == 0 && !s->closed &&
		TAILQ_EMPTY(&s->recvs); i++) {
		if (i == AHEAD_PIECES)
			return false;
		if (all->kept + FETCH_LEN + PLX_STREAM_COST > all->unread_max || stream_fetch_piece(s) != 0) {
			all->full = true; /* continue when bytes are read */
			break;
		}
	}
	return true;
}

/* Fetch as many pieces as there is room for, while no receive waits. */
static void
ahead_run(struct plx_stream *s)
{
	if (s->reading)
		return;
	s->reading = true;
	s->busy++;
	if (!ahead_pieces(s))
		plx_timer_arm(s->all->timers, &s->all->ahead, 0);
	s->busy--;
	s->reading = false;
}

int
stream_fetch_piece(struct plx_stream *s)
{
	struct plx_msg *m = s->rts;
	uint64_t n = RTE_MIN(m->len - m->got, (uint64_t)FETCH_LEN);
	struct plx_msg *to = plx_msg_get(s->all->msgs, STREAM_BACK_LEN + n);

	if (to == NULL)
		return -ENOMEM;
	to->kind = PLX_MSG_STREAM;
	to->len = n;
	to->ack = 1; /* its sender has not paid for it */
	s->all->kept += n + PLX_STREAM_COST;
	s->xfer_to = to;
	if (TAILQ_EMPTY(&s->recvs))
		PLX_STAT_ADD(s->all->stat.rx_ahead_bytes, n);
	if (xfer_start(s, m, stream_chunk_data(to), NULL, n) == 0)
		return 0;
	s->xfer_to = NULL;
	stream_unkeep(s->all, n);
	plx_msg_put(s->all->msgs, to);
	return -ENOMEM;
}

/* The first receive has reached bytes at the sender, or s->err says why not. */
static void
match_fetch(struct plx_stream *s, struct plx_req *req, struct plx_msg *m)
{
	struct plx_stream_req *r = plx_stream_req(req);
	uint64_t n = stream_recv_total(req, m->len - m->got) - r->offset;

	if (n < FETCH_DIRECT_MIN && n < m->len - m->got) {
		if (stream_fetch_piece(s) != 0)
			s->err = -ENOMEM;
		return;
	}
	s->xfer_dt = (struct plx_dt){.unpack = xfer_unpack, .finish = xfer_dt_finish};
	if (xfer_start(s, m, (char *)req->buf + r->offset, req->dt != NULL ? &s->xfer_dt : NULL, n) != 0)
		s->err = -ENOMEM; /* otherwise xfer_done() reports the result */
}

void
stream_match(struct plx_stream *s)
{
	struct plx_req *req;
	struct plx_msg *m;
	uint64_t n;
	bool done;

	if (s->matching)
		return;
	s->matching = true;
	s->busy++;
	while ((s->xfer == NULL || s->xfer_to != NULL) && !s->closed && s->err == 0 &&
		(req = stream_first(&s->recvs)) != NULL && (m = TAILQ_FIRST(&s->chunks)) != NULL) {
		if (m->kind == PLX_MSG_STREAM_RTS) {
			if (s->xfer != NULL)
				break; /* its next bytes are in flight */
			if (s->lost == 0) {
				match_fetch(s, req, m);
			} else {
				s->err = s->lost;
				stream_chunk_remove(s, m);
			}
			continue;
		}
		n = stream_recv_take(req, stream_chunk_data(m), m->len - m->got, &done);
		m->got += n;
		if (m->got == m->len)
			stream_chunk_remove(s, m);
		if (done)
			stream_recv_end(s, req, 0);
	}
	s->matching = false;
	if (s->err != 0 && s->xfer == NULL)
		stream_recvs_fail(s, s->err);
	stream_late_if(s);
	s->busy--;
}

/* There is room again: a sender may continue before its bytes are read. */
static void
match_resume(struct plx_stream *s)
{
	struct plx_msg *m;

	TAILQ_REMOVE(&s->all->stopped, s, stopped_link);
	s->stopped = false;
	TAILQ_FOREACH(m, &s->chunks, chunk) {
		if (m->kind == PLX_MSG_STREAM && m->ack == 0) {
			m->ack = 1;
			s->held -= stream_chunk_cost(m);
			s->owed += stream_chunk_cost(m);
		}
	}
	stream_grant_if(s);
}

void
stream_ahead(struct plx_timer *t, uint64_t now_ticks)
{
	struct plx_streams *all = container_of(t, struct plx_streams, ahead);
	struct plx_stream *s, *next;

	(void)now_ticks;
	all->full = !TAILQ_EMPTY(&all->stopped) && all->kept > all->unread_max / 2;
	while (all->kept <= all->unread_max / 2 && (s = TAILQ_FIRST(&all->stopped)) != NULL)
		match_resume(s);
	for (s = TAILQ_FIRST(&all->late); s != NULL; s = next) {
		s->busy++;
		ahead_run(s);
		next = TAILQ_NEXT(s, late_link);
		s->busy--;
		stream_grant_if(s);
		stream_free_if(s);
	}
}

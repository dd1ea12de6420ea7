/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_fetch.c - bytes of a long send are at the sender until a receive meets them, or
 * none has for a while
 */
#include <rte_common.h>
#include <rte_cycles.h>

#include "stream_int.h"

#define FETCH_LEN ((64u << 10) - STREAM_BACK_LEN) /* bytes that are kept at a time */
#define FETCH_DIRECT_MIN (8u << 10) /* receives of fewer bytes are served from there */
#define AHEAD_PIECES	 16	    /* that are read ahead in one turn, if they come at once */

/* Bytes of the first chunk have been fetched, or never will be. */
static void
xfer_done(struct plx_req *x)
{
	struct plx_stream *s = x->cb_arg;
	struct plx_msg *m = s->rts, *to = s->xfer_to;
	struct plx_req *req = TAILQ_FIRST(&s->recvs);
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
		PLX_STAT_ADD(s->all->stat.rx_fetched, n);
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
		s->lost = rc; /* an error behind bytes that have come */
	}
	if (to == NULL) {
		req->stream.offset += n;
		if (s->closed)
			rc = -ECANCELED;
		if (rc != 0 || stream_recv_ends(req, req->stream.offset))
			stream_recv_end(s, req, rc);
	}
	if (s->closed) {
		stream_recvs_fail(s, -ECANCELED);
		stream_drop_unread(s);
	} else if (!s->matching) {
		stream_match(s);
		if (to != NULL)
			stream_read_ahead(s);
	}
	s->busy--;
	stream_grant_if(s);
	if (s->closed)
		stream_free_if(s);
}

static void
xfer_unpack(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len)
{
	struct plx_stream *s = container_of(dt, struct plx_stream, xfer_dt);
	struct plx_req *req = TAILQ_FIRST(&s->recvs);

	req->dt->unpack(req->dt, req->stream.offset + offset, from, len);
}

static int
xfer_dt_finish(struct plx_dt *dt, int status)
{
	(void)dt;
	return status;
}

/* @return 0, and it may be over; -ENOMEM it did not begin */
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
stream_rts_set(struct plx_stream *s, struct plx_msg *m)
{
	if (s->rts == NULL && m != NULL)
		TAILQ_INSERT_TAIL(&s->all->late, s, late_link);
	else if (s->rts != NULL && m == NULL)
		TAILQ_REMOVE(&s->all->late, s, late_link);
	s->rts = m;
}

void
stream_late_if(struct plx_stream *s)
{
	struct plx_streams *all = s->all;

	if (s->rts != NULL && TAILQ_EMPTY(&s->recvs) && !all->ahead.armed)
		plx_timer_arm(all->timers, &all->ahead,
			rte_rdtsc() + rte_get_tsc_hz() / 1000000 * PLX_STREAM_AHEAD_US);
}

/* @return whether it is as far as it can get now */
static bool
read_ahead(struct plx_stream *s)
{
	struct plx_streams *all = s->all;

	for (unsigned i = 0; s->rts != NULL && s->xfer == NULL && s->err == 0 && s->lost == 0 && !s->closed &&
		TAILQ_EMPTY(&s->recvs); i++) {
		if (i == AHEAD_PIECES)
			return false;
		if (all->kept + FETCH_LEN + PLX_STREAM_COST > all->unread_max || stream_fetch_piece(s) != 0) {
			all->full = true; /* more when something is read */
			break;
		}
	}
	return true;
}

void
stream_read_ahead(struct plx_stream *s)
{
	if (s->reading)
		return;
	s->reading = true;
	s->busy++;
	if (!read_ahead(s))
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
		PLX_STAT_ADD(s->all->stat.rx_ahead, n);
	if (xfer_start(s, m, stream_chunk_data(to), NULL, n) == 0)
		return 0;
	s->xfer_to = NULL;
	stream_unkeep(s->all, n);
	plx_msg_put(s->all->msgs, to);
	return -ENOMEM;
}

void
stream_fetch(struct plx_stream *s, struct plx_req *req, struct plx_msg *m)
{
	struct plx_req_stream *r = &req->stream;
	uint64_t n = stream_recv_total(req, m->len - m->got) - r->offset;

	if (n < FETCH_DIRECT_MIN && n < m->len - m->got) {
		if (stream_fetch_piece(s) != 0)
			s->err = -ENOMEM;
		return;
	}
	s->xfer_dt = (struct plx_dt){NULL, xfer_unpack, xfer_dt_finish};
	if (xfer_start(s, m, (char *)req->buf + r->offset, req->dt != NULL ? &s->xfer_dt : NULL, n) != 0)
		s->err = -ENOMEM; /* else xfer_done() says what became of it */
}

void
plx_stream_on_rts(struct plx_streams *all, struct plx_peer *src, const struct plx_wire_stream_rts *h)
{
	struct plx_ep *ep = plx_ep_of(all->eps, src);
	struct plx_stream *s = ep != NULL ? stream_find(ep, h->conn_id) : NULL;
	struct plx_msg *m;

	if (ep != NULL && s == NULL)
		s = stream_of_arrival(all, ep, h->conn_id, 0);
	if (s == NULL || s->closed || h->len == 0) {
		if (ep != NULL)
			plx_rndv_ack(ep, h->sreq, 0);
		if (s != NULL)
			s->owed += PLX_STREAM_COST;
		return;
	}
	if (s->held + s->owed + PLX_STREAM_COST > PLX_STREAM_WINDOW) {
		PLX_STAT_INC(all->stat.rx_drop_no_credit);
		s->err = -EPROTO;
		return;
	}
	m = plx_msg_get(all->msgs, 0);
	if (m == NULL) {
		PLX_STAT_INC(all->stat.rx_drop_no_memory);
		plx_rndv_ack(ep, h->sreq, -ENOMEM);
		s->err = -ENOMEM;
		return;
	}
	m->kind = PLX_MSG_STREAM_RTS;
	m->len = h->len;
	m->rts = (struct plx_rts){.sreq = h->sreq, .addr = h->addr, .epoch = h->epoch};
	m->ack = 0;
	TAILQ_INSERT_TAIL(&s->chunks, m, chunk);
	s->held += PLX_STREAM_COST;
	stream_set_ready(s, true);
	if (s->rts == NULL)
		stream_rts_set(s, m);
	s->busy++;
	if (!TAILQ_EMPTY(&s->recvs))
		stream_match(s);
	stream_late_if(s);
	s->busy--;
	stream_grant_if(s);
	stream_free_if(s);
}

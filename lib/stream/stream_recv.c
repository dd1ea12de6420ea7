/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_recv.c - receives are posted, and bytes arrive
 */
#include <string.h>

#include <rte_common.h>

#include "plx_copy.h"
#include "plx_log.h"
#include "stream_int.h"

PLX_LOG_DEFINE(stream, "plx.stream");

#define PACE_LEN 1024u /* bytes for which a second copy costs more than a turn */
#define PACE_MSGS 256u

/* Why no more bytes will come, or 0. */
static int
why_none(const struct plx_stream *s)
{
	return s->err != 0 ? s->err : s->ep->err != 0 ? s->ep->err : s->user->err;
}

void
plx_stream_recv(struct plx_stream *s, struct plx_req *req)
{
	int err = why_none(s);

	plx_stream_req(req)->offset = 0;
	plx_stream_req(req)->stream = NULL;
	if (unlikely(req->len == 0 || (err != 0 && TAILQ_EMPTY(&s->chunks)))) {
		plx_req_complete(req, req->len == 0 ? 0 : err);
		return;
	}
	plx_stream_req(req)->stream = s;
	plx_stream_req(req)->since = s->all->now;
	TAILQ_INSERT_TAIL(&s->recvs, plx_stream_req(req), link);
	if (!TAILQ_EMPTY(&s->chunks)) {
		s->busy++;
		stream_match(s);
		if (err != 0 && s->xfer == NULL && TAILQ_EMPTY(&s->chunks))
			stream_recvs_fail(s, err);
		s->busy--;
		stream_grant_if(s);
		stream_free_if(s);
	}
}

/* Whether a receive would get least bytes at once. */
static bool
has_unread(const struct plx_stream *s, uint64_t least)
{
	const struct plx_msg *m;
	uint64_t n = 0;

	if (!TAILQ_EMPTY(&s->recvs))
		return least == 0;
	TAILQ_FOREACH(m, &s->chunks, chunk) {
		if (n >= least || m->kind == PLX_MSG_STREAM_RTS)
			break;
		n += m->len - m->got;
	}
	return n >= least;
}

int
plx_stream_recv_now(struct plx_stream *s, struct plx_req *req)
{
	uint64_t least = plx_stream_req(req)->waitall ? req->len : RTE_MIN(plx_stream_req(req)->elem, req->len);
	int err = why_none(s);
	bool done = req->len == 0;
	struct plx_msg *m;

	plx_stream_req(req)->offset = 0;
	if (!has_unread(s, least)) /* and if nothing will come, the reason */
		return TAILQ_EMPTY(&s->chunks) && err != 0 ? err : -EAGAIN;
	while (!done && (m = TAILQ_FIRST(&s->chunks)) != NULL) {
		m->got += stream_recv_take(req, stream_chunk_data(m), m->len - m->got, &done);
		if (m->got == m->len)
			stream_chunk_remove(s, m);
	}
	stream_grant_if(s);
	return 0;
}

void *
plx_stream_lend(struct plx_stream *s, uint64_t *len)
{
	struct plx_msg *m = TAILQ_FIRST(&s->chunks);
	uint8_t *data;

	if (m == NULL || !TAILQ_EMPTY(&s->recvs))
		return NULL;
	if (m->kind == PLX_MSG_STREAM_RTS) {
		if (s->lost != 0) {
			s->err = s->lost;
			stream_chunk_remove(s, m);
		} else if (s->xfer == NULL && s->err == 0 && stream_fetch_piece(s) != 0) {
			s->err = -ENOMEM;
		}
		m = TAILQ_FIRST(&s->chunks); /* the bytes, if they were fetched at once */
		if (m == NULL || m->kind == PLX_MSG_STREAM_RTS)
			return NULL;
	}
	TAILQ_REMOVE(&s->chunks, m, chunk);
	TAILQ_INSERT_TAIL(&s->lent, m, chunk);
	if (TAILQ_EMPTY(&s->chunks))
		stream_set_ready(s, false);
	data = stream_chunk_data(m);
	*len = m->len - m->got;
	memcpy(data - STREAM_BACK_LEN, &m, STREAM_BACK_LEN);
	return data;
}

void
plx_stream_return(struct plx_stream *s, void *data)
{
	struct plx_msg *m;

	memcpy(&m, (uint8_t *)data - STREAM_BACK_LEN, STREAM_BACK_LEN);
	TAILQ_REMOVE(&s->lent, m, chunk);
	stream_chunk_end(s, m);
	stream_grant_if(s);
}

uint32_t
plx_stream_poll(struct plx_streams *all, struct plx_ep_user **users, uint32_t n)
{
	struct plx_stream *s, *next;
	uint32_t got = 0;

	for (s = TAILQ_FIRST(&all->ready); s != NULL && got < n; s = next) {
		next = TAILQ_NEXT(s, ready_link);
		if (s->user == NULL)
			stream_user_set(s, plx_ep_user_find(s->ep, s->conn_id));
		if (s->user == NULL)
			continue; /* its handle does not exist yet */
		users[got++] = s->user;
		stream_set_ready(s, false);
	}
	return got;
}

/* A long message came in the same turn as one that completed the only receive. */
static void
recv_pace(struct plx_stream *s, uint32_t len)
{
	if (s->fed && len >= PACE_LEN) {
		s->all->pace = PACE_MSGS;
		plx_eps_need_turn(s->all->eps);
		PLX_STAT_INC(s->all->stat.rx_paced);
	}
	s->fed = false;
}

/* Bytes are stored. @return whether their sender may continue before they are read */
static bool
count_kept(struct plx_stream *s, uint64_t len)
{
	struct plx_streams *all = s->all;

	all->kept += len + PLX_STREAM_COST;
	if (likely(all->kept <= all->unread_max))
		return true;
	all->full = true;
	PLX_STAT_INC(all->stat.rx_stopped);
	PLX_LOG_RATELIMIT(NOTICE, stream, "%llu bytes of streams are unread, more than stream.unread_max: "
		"their senders wait until the program reads", (unsigned long long)all->kept);
	if (!s->stopped) {
		s->stopped = true;
		TAILQ_INSERT_TAIL(&all->stopped, s, stopped_link);
	}
	return false;
}

/* Bytes without a receive are stored in m. @param ack whether their sender may continue
 * before they are read */
static inline void
chunk_add(struct plx_stream *s, struct plx_msg *m, const uint8_t *data, uint64_t len, bool ack)
{
	m->kind = PLX_MSG_STREAM;
	m->len = len;
	m->ack = ack;
	plx_copy(stream_chunk_data(m), data, len);
	TAILQ_INSERT_TAIL(&s->chunks, m, chunk);
	*(ack ? &s->owed : &s->held) += len + PLX_STREAM_COST; /* stream_chunk_cost() */
	PLX_STAT_ADD(s->all->stat.rx_kept_bytes, len);
	stream_set_ready(s, true);
}

static __rte_noinline void
recv_keep(struct plx_stream *s, const uint8_t *data, uint32_t len)
{
	struct plx_streams *all = s->all;
	struct plx_msg *m = plx_msg_get(all->msgs, STREAM_BACK_LEN + len);

	if (m == NULL) {
		PLX_STAT_INC(all->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, stream, "out of memory for %u bytes of a stream: the stream fails", len);
		s->err = -ENOMEM;
		return;
	}
	chunk_add(s, m, data, len, count_kept(s, len));
}

/* The stream of arriving data that had none, or NULL. */
static struct plx_stream *
of_arrival(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id, uint32_t len)
{
	struct plx_ep_user *user = plx_ep_user_find(ep, conn_id);
	struct plx_wire_grant h = {.conn_id = plx_stream_wire_id(conn_id),
		.cost = len + PLX_STREAM_COST};
	struct plx_stream *s;

	if (user != NULL)
		return plx_stream_of_slow(all, user);
	if (!plx_ep_user_was(ep, conn_id)) {
		if (plx_stream_ep(ep)->n_unmet >= PLX_EP_MAX_UNMET) {
			PLX_STAT_INC(all->stat.rx_drop_refused);
			plx_ep_refuse(ep);
			return NULL;
		}
		s = stream_new(all, ep, conn_id);
		if (s == NULL) {
			PLX_STAT_INC(all->stat.rx_drop_no_memory);
			return NULL;
		}
		s->unmet = true;
		plx_stream_ep(ep)->n_unmet++;
		return s;
	}
	PLX_STAT_ADD(all->stat.rx_drop_closed, len);
	(void)plx_ep_tx_ctl(ep, PLX_WIRE_GRANT, &h, sizeof(h)); /* or its sender waits for ever */
	return NULL;
}

static inline bool
has_credit(const struct plx_stream *s, uint64_t len)
{
	return likely(s->held + s->owed + len + PLX_STREAM_COST <= PLX_STREAM_WINDOW);
}

static __rte_noinline void
on_data(struct plx_streams *all, struct plx_peer *src, uint32_t conn_id, const uint8_t *data, uint32_t len)
{
	struct plx_ep *ep = plx_ep_of(all->eps, src);
	struct plx_stream *s;
	struct plx_req *req;
	bool done;

	if (unlikely(ep == NULL)) {
		PLX_STAT_INC(all->stat.rx_drop_no_memory);
		return;
	}
	s = stream_find(ep, conn_id);
	if (unlikely(s == NULL)) {
		s = of_arrival(all, ep, conn_id, len);
		if (s == NULL)
			return;
	}
	if (unlikely(!has_credit(s, len))) {
		PLX_STAT_INC(all->stat.rx_drop_no_credit); /* a peer that exceeds its credit */
		s->err = -EPROTO;
		return;
	}
	s->busy++;
	s->owed += PLX_STREAM_COST;
	while (len > 0 && TAILQ_EMPTY(&s->chunks) && !s->closed &&
		(req = stream_first(&s->recvs)) != NULL) {
		uint64_t n = stream_recv_take(req, data, len, &done);

		data += n;
		len -= n;
		s->owed += n;
		PLX_STAT_ADD(all->stat.rx_direct_bytes, n);
		s->fed = done;
		if (done)
			stream_recv_end(s, req, 0);
	}
	if (unlikely(s->closed)) {
		s->owed += len;
		PLX_STAT_ADD(all->stat.rx_drop_closed, len);
	} else if (len > 0 && s->err == 0) {
		s->owed -= PLX_STREAM_COST; /* the chunk includes it */
		recv_pace(s, len);
		recv_keep(s, data, len);
	}
	s->busy--;
	stream_grant_if(s);
	if (unlikely(s->closed))
		stream_free_if(s);
}

void
plx_stream_on_rts(struct plx_streams *all, struct plx_peer *src, const struct plx_wire_stream_rts *h)
{
	struct plx_ep *ep = plx_ep_of(all->eps, src);
	struct plx_stream *s = ep != NULL ? stream_find(ep, h->conn_id) : NULL;
	struct plx_msg *m;

	if (ep != NULL && s == NULL)
		s = of_arrival(all, ep, h->conn_id, 0);
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

/* Whether a few bytes are to be stored, and nothing else is needed for them. */
static inline bool
keeps_short(const struct plx_streams *all, const struct plx_stream *s, uint64_t len)
{
	return TAILQ_EMPTY(&s->recvs) && ((uint32_t)s->err | s->closed) == 0 && has_credit(s, len) &&
	       len - 1 < PLX_MSG_INLINE - STREAM_BACK_LEN && all->kept + len + PLX_STREAM_COST <= all->unread_max;
}

void
plx_stream_on_data(struct plx_streams *all, struct plx_peer *src, uint32_t conn_id,
	const uint8_t *data, uint32_t len)
{
	struct plx_ep *ep = src->user;
	struct plx_stream *s = likely(ep != NULL) ? LIST_FIRST(&plx_stream_ep(ep)->all) : NULL;
	struct plx_msg *m;

	if (unlikely(s == NULL || s->conn_id != conn_id || !keeps_short(all, s, len) ||
		    (m = plx_pool_get_free(&all->msgs->msg)) == NULL)) {
		on_data(all, src, conn_id, data, len);
		return;
	}
	plx_msg_begin(all->msgs, m, len, 0);
	all->kept += len + PLX_STREAM_COST;
	s->fed = false;
	chunk_add(s, m, data, len, true);
	stream_grant_if(s);
}

static void
recv_info(const struct plx_stream *s, const struct plx_stream_req *r, struct plx_wait_info *out)
{
	*out = (struct plx_wait_info){.op = "stream_recv", .len = plx_req_of_own(r)->len, .done = r->offset,
		.state = s->xfer != NULL ? "data moves" : "nothing has come", .since = r->since};
}

void
plx_stream_recvs_each(const struct plx_ep *ep, void (*fn)(const struct plx_wait_info *info, void *arg), void *arg)
{
	const struct plx_stream *s;
	const struct plx_stream_req *r;
	struct plx_wait_info info;

	LIST_FOREACH(s, &plx_stream_ep(ep)->all, link)
		TAILQ_FOREACH(r, &s->recvs, link) {
			recv_info(s, r, &info);
			fn(&info, arg);
		}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream.c - bytes in order between two handles, as much as the reader takes
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_copy.h"
#include "plx_log.h"
#include "plx_stream.h"

PLX_LOG_DEFINE(stream, "plx.stream");

#define GRANT_AT (PLX_STREAM_WINDOW / 4)
#define FETCH_LEN ((64u << 10) - BACK_LEN) /* bytes of an announced send that are kept at a time */
#define FETCH_DIRECT_MIN (8u << 10)	   /* receives of fewer bytes are served from there */
#define BACK_LEN sizeof(struct plx_msg *)
#define PACE_LEN 1024u /* bytes that are dearer to copy twice than a turn is */
#define PACE_MSGS 256u

const struct plx_stat_row plx_stream_stat_rows[] = {
	PLX_STAT_ROW(struct plx_stream_stat, streams),
	PLX_STAT_ROW(struct plx_stream_stat, sends),
	PLX_STAT_ROW(struct plx_stream_stat, tx_no_credit),
	PLX_STAT_ROW(struct plx_stream_stat, rx_direct),
	PLX_STAT_ROW(struct plx_stream_stat, rx_kept),
	PLX_STAT_ROW(struct plx_stream_stat, rx_fetched),
	PLX_STAT_ROW(struct plx_stream_stat, rx_paced),
	PLX_STAT_ROW(struct plx_stream_stat, rx_drop_closed),
	PLX_STAT_ROW(struct plx_stream_stat, rx_drop_no_memory),
	PLX_STAT_ROW(struct plx_stream_stat, rx_drop_no_credit),
	PLX_STAT_ROW(struct plx_stream_stat, drop_bad_grant),
	PLX_STAT_ROW(struct plx_stream_stat, grants),
	PLX_STAT_END,
};

void
plx_streams_open(struct plx_streams *all, struct plx_eps *eps, struct plx_msg_pools *msgs,
	struct plx_rndv *rndv, uint64_t rndv_min)
{
	memset(all, 0, sizeof(*all));
	TAILQ_INIT(&all->ready);
	all->eps = eps;
	all->msgs = msgs;
	all->rndv = rndv;
	all->rndv_min = rndv_min;
	(void)plx_req_pool_open(&all->xfers, 0, false, NULL, NULL); /* cannot fail without a ring */
	plx_pool_open(&all->pool, "stream", sizeof(struct plx_stream), 16, 0, NULL, NULL);
}

void
plx_streams_close(struct plx_streams *all)
{
	plx_req_pool_close(&all->xfers);
	plx_pool_close(&all->pool);
}

static inline struct plx_stream *
find(const struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_stream *s;

	LIST_FOREACH(s, &ep->streams, link) {
		if (likely(s->conn_id == conn_id))
			break;
	}
	return s;
}

static struct plx_stream *
stream_new(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_stream *s = plx_pool_get(&all->pool);

	if (s == NULL)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->all = all;
	s->ep = ep;
	s->conn_id = conn_id;
	s->credit = PLX_STREAM_WINDOW;
	TAILQ_INIT(&s->sends);
	TAILQ_INIT(&s->recvs);
	TAILQ_INIT(&s->chunks);
	TAILQ_INIT(&s->lent);
	LIST_INSERT_HEAD(&ep->streams, s, link);
	ep->n_msgs++;
	PLX_STAT_INC(all->stat.streams);
	return s;
}

struct plx_stream *
plx_stream_get(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_stream *s = find(ep, conn_id);

	return s != NULL ? s : stream_new(all, ep, conn_id);
}

struct plx_stream *
plx_stream_of_slow(struct plx_streams *all, struct plx_ep_user *user)
{
	struct plx_stream *s = plx_stream_get(all, user->ep, user->conn_id);

	if (s != NULL) {
		s->user = user;
		user->stream = s;
	}
	return s;
}

static void
set_ready(struct plx_stream *s, bool ready)
{
	if (s->ready == ready)
		return;
	s->ready = ready;
	if (ready)
		TAILQ_INSERT_TAIL(&s->all->ready, s, ready_link);
	else
		TAILQ_REMOVE(&s->all->ready, s, ready_link);
}

/* A chunk costs what its sender paid for it. */
static inline uint64_t
chunk_cost(const struct plx_msg *m)
{
	return (m->kind == PLX_MSG_STREAM ? m->len : 0) + PLX_STREAM_COST;
}

static void
chunk_end(struct plx_stream *s, struct plx_msg *m)
{
	plx_msg_unlist(m);
	if (m->ack == 0) {
		s->held -= chunk_cost(m);
		s->owed += chunk_cost(m);
	}
	plx_msg_put(s->all->msgs, m);
}

static void
chunks_drop(struct plx_stream *s, struct plx_stream_chunks *list)
{
	struct plx_msg *m;

	while ((m = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, m, chunk);
		if (m->kind == PLX_MSG_STREAM_RTS && !m->gone)
			plx_rndv_ack(s->ep, m->sreq, 0);
		chunk_end(s, m);
	}
}

static void
stream_free(struct plx_stream *s)
{
	set_ready(s, false);
	LIST_REMOVE(s, link);
	s->ep->n_msgs--;
	plx_pool_put(&s->all->pool, s);
}

/* A number that can come again as news must be remembered as gone. */
static void
stream_free_if(struct plx_stream *s)
{
	struct plx_ep *ep = s->ep;

	if (!s->closed || s->busy != 0 || s->pended || s->xfer != NULL || !TAILQ_EMPTY(&s->sends))
		return;
	if (ep->err == 0 && !ep->stub && !plx_ep_user_was(ep, s->conn_id))
		return;
	stream_free(s);
}

static __rte_noinline void
grant(struct plx_stream *s)
{
	struct plx_wire_grant h = {.conn_id = plx_stream_wire_id(s->conn_id), .cost = s->owed};

	if (plx_ep_tx_ctl(s->ep, PLX_WIRE_GRANT, &h, sizeof(h)) != 0)
		return; /* without memory, later; without a peer, no matter */
	PLX_STAT_INC(s->all->stat.grants);
	s->owed = 0;
}

static inline void
grant_if(struct plx_stream *s)
{
	if (unlikely(s->owed >= GRANT_AT))
		grant(s);
}

static int
rts_send(struct plx_pend *p)
{
	struct plx_req *req = container_of(p, struct plx_req, send.pend);
	struct plx_wire_stream_rts h = {.conn_id = req->send.tag, .len = req->len,
		.addr = req->dt == NULL ? (uintptr_t)req->buf : 0, .sreq = req->send.id};
	struct plx_tx tx = {.peer = req->send.ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_STREAM_RTS};

	return plx_rndv_announced(req, plx_peer_tx(&tx));
}

/* From here on the request is lib/rndv's. */
static void
send_announce(struct plx_stream *s, struct plx_req *req)
{
	int rc;

	s->credit -= PLX_STREAM_COST;
	plx_ep_wait_end(&req->stream.wait);
	req->send.ep = s->ep;
	req->send.conn_id = s->conn_id;
	req->send.tag = plx_stream_wire_id(s->conn_id);
	rc = plx_rndv_send_as(s->all->rndv, req, rts_send);
	if (rc != 0) {
		s->credit += PLX_STREAM_COST;
		plx_req_complete(req, rc);
	}
}

/* The next pieces of a send. @return 0 all; -ENOBUFS no credit; or the device's error */
static int
send_pieces(struct plx_stream *s, struct plx_req *req, bool first)
{
	uint64_t id = plx_stream_wire_id(s->conn_id);
	struct plx_tx tx = {.peer = s->ep->peer, .hdr = &id, .hdr_len = sizeof(id),
		.op = PLX_WIRE_STREAM};
	uint64_t most = RTE_MIN(s->ep->peer->mtu - sizeof(id), PLX_STREAM_PIECE_MAX);
	int rc;

	while (req->stream.offset < req->len) {
		uint64_t n = RTE_MIN(req->len - req->stream.offset, most);

		if (s->credit < n + PLX_STREAM_COST)
			return -ENOBUFS;
		/* Behind what waits, unless our turn in the ep's list has come. */
		if (!first && !plx_ep_open(s->ep))
			return -EAGAIN;
		plx_req_tx(req, &tx, req->stream.offset, n);
		rc = plx_peer_tx(&tx);
		if (rc != 0)
			return rc;
		s->credit -= n + PLX_STREAM_COST;
		req->stream.offset += n;
	}
	return 0;
}

/*
 * Send what the reader has room for.
 * @param first our turn in the ep's list of pending messages has come
 * @return 0 all, or no credit; -EAGAIN the device is full, or others wait before us
 */
static int
send_run(struct plx_stream *s, bool first)
{
	struct plx_req *req;
	int rc = 0;

	s->sending = true;
	while (rc == 0 && (req = TAILQ_FIRST(&s->sends)) != NULL) {
		if (req->len > s->all->rndv_min) {
			bool behind = !plx_ep_open(s->ep);

			rc = s->credit < PLX_STREAM_COST ? -ENOBUFS : behind && !first ? -EAGAIN : 0;
			if (rc != 0)
				break;
			TAILQ_REMOVE(&s->sends, req, stream.link);
			send_announce(s, req);
			/* It went to the end of the ep's list: our next ones go behind it. */
			if (behind && !TAILQ_EMPTY(&s->sends))
				rc = -EXFULL;
			continue;
		}
		rc = send_pieces(s, req, first);
		if (rc != 0)
			break;
		TAILQ_REMOVE(&s->sends, req, stream.link);
		req->stream.stream = NULL;
		plx_ep_wait_end(&req->stream.wait);
		plx_req_complete(req, 0);
	}
	s->sending = false;
	if (rc == -ENOBUFS) {
		PLX_STAT_INC(s->all->stat.tx_no_credit);
		rc = 0;
	}
	return rc;
}

static int
pend_send(struct plx_pend *p)
{
	struct plx_stream *s = container_of(p, struct plx_stream, pend);
	int rc;

	s->busy++;
	s->pended = false;
	rc = send_run(s, true);
	s->pended = rc == -EAGAIN || rc == -EXFULL;
	if (rc == -EXFULL) {
		plx_ep_pend(s->ep, p);
		rc = 0;
	}
	s->busy--;
	stream_free_if(s);
	return rc;
}

static void
pend_fail(struct plx_pend *p, int err)
{
	(void)err; /* the waits of the requests fail as well, and that ends them */
	container_of(p, struct plx_stream, pend)->pended = false;
}

static void
send_kick(struct plx_stream *s)
{
	if (s->sending || s->pended)
		return;
	s->busy++;
	if (send_run(s, false) == -EAGAIN) {
		s->pended = true;
		s->pend.conn_id = s->conn_id;
		s->pend.send = pend_send;
		s->pend.fail = pend_fail;
		plx_ep_pend(s->ep, &s->pend);
	}
	s->busy--;
	stream_free_if(s);
}

static void
send_wait_fail(struct plx_wait *w, int err)
{
	struct plx_req *req = container_of(w, struct plx_req, stream.wait);
	struct plx_stream *s = req->stream.stream;

	TAILQ_REMOVE(&s->sends, req, stream.link);
	req->stream.stream = NULL;
	s->busy++;
	plx_req_complete(req, err);
	s->busy--;
	stream_free_if(s);
}

void
plx_stream_send(struct plx_stream *s, struct plx_req *req)
{
	req->stream.stream = s;
	req->stream.offset = 0;
	TAILQ_INSERT_TAIL(&s->sends, req, stream.link);
	plx_ep_wait(s->ep, &req->stream.wait, s->conn_id, send_wait_fail);
	send_kick(s);
}

/* Give bytes to a receive. @return how many it took; *done when it is over */
static inline uint64_t
recv_take(struct plx_req *req, const uint8_t *from, uint64_t len, bool *done)
{
	struct plx_req_stream *r = &req->stream;
	uint64_t total = RTE_MIN(r->offset + len, req->len), n;

	if (total != req->len && !r->waitall && r->elem > 1 && total >= r->elem)
		total -= total % r->elem;
	*done = total == req->len || (!r->waitall && total >= r->elem);
	n = total - r->offset;
	plx_req_copy_in(req, r->offset, from, n);
	r->offset = total;
	return n;
}

static inline uint8_t *
chunk_data(struct plx_msg *m)
{
	return m->data + BACK_LEN + m->got;
}

static void
chunk_remove(struct plx_stream *s, struct plx_msg *m)
{
	TAILQ_REMOVE(&s->chunks, m, chunk);
	chunk_end(s, m);
	if (TAILQ_EMPTY(&s->chunks))
		set_ready(s, false);
}

static void
recv_end(struct plx_stream *s, struct plx_req *req, int err)
{
	TAILQ_REMOVE(&s->recvs, req, stream.link);
	req->stream.stream = NULL;
	plx_req_complete(req, err);
}

static void match_run(struct plx_stream *s);

static void
recvs_fail(struct plx_stream *s, int err)
{
	struct plx_req *req;

	s->busy++;
	while ((req = TAILQ_FIRST(&s->recvs)) != NULL)
		recv_end(s, req, err);
	s->busy--;
}

static void
closed_drop(struct plx_stream *s)
{
	chunks_drop(s, &s->chunks);
	chunks_drop(s, &s->lent);
	if (s->ep->err == 0 && s->owed != 0)
		grant(s);
}

static void
rts_list(struct plx_stream *s, struct plx_msg *m)
{
	m->listed = true;
	LIST_INSERT_HEAD(&s->ep->announced, m, partial);
}

/* Bytes of the first chunk have been fetched, or never will be. */
static void
xfer_done(struct plx_req *x)
{
	struct plx_stream *s = x->cb_arg;
	struct plx_msg *m = TAILQ_FIRST(&s->chunks), *to = s->xfer_to;
	struct plx_req *req = TAILQ_FIRST(&s->recvs);
	uint64_t n = x->len;
	int rc = x->status;

	s->busy++;
	s->xfer = NULL;
	s->xfer_to = NULL;
	plx_req_put(x);
	m->got += n;
	if (rc != 0 && to != NULL)
		plx_msg_put(s->all->msgs, to);
	if (rc != 0)
		s->err = rc;
	else
		PLX_STAT_ADD(s->all->stat.rx_fetched, n);
	if (rc == 0 && to != NULL) {
		TAILQ_INSERT_BEFORE(m, to, chunk);
	}
	if (rc != 0 || m->got == m->len)
		chunk_remove(s, m);
	else
		rts_list(s, m);
	if (rc == 0 && to != NULL)
		set_ready(s, true);
	if (to == NULL) {
		req->stream.offset += n;
		if (s->closed)
			rc = -ECANCELED;
		if (rc != 0 || req->stream.offset == req->len ||
			(!req->stream.waitall && req->stream.offset >= req->stream.elem))
			recv_end(s, req, rc);
	}
	if (s->closed) {
		recvs_fail(s, -ECANCELED);
		closed_drop(s);
	} else if (!s->matching)
		match_run(s);
	s->busy--;
	grant_if(s);
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

static void
xfer_start(struct plx_stream *s, struct plx_msg *m, void *buf, struct plx_dt *dt, uint64_t n)
{
	struct plx_req *x = m->gone ? NULL : plx_req_get(&s->all->xfers);

	if (x == NULL) {
		s->err = m->gone ? -ECONNRESET : -ENOMEM;
		return;
	}
	plx_msg_unlist(m);
	atomic_store_explicit(&x->flags, PLX_REQ_RECV, memory_order_relaxed);
	x->done = xfer_done;
	x->cb_arg = s;
	x->buf = buf;
	x->len = n;
	x->dt = dt;
	s->xfer = x;
	plx_rndv_recv_part(s->all->rndv, s->ep, m->sreq, m->addr, m->got, n, m->got + n < m->len, x);
}

/* Fetch a piece into memory of ours, to be read or lent from there. */
static void
fetch_piece(struct plx_stream *s, struct plx_msg *m)
{
	uint64_t n = RTE_MIN(m->len - m->got, (uint64_t)FETCH_LEN);
	struct plx_msg *to = plx_msg_get(s->all->msgs, BACK_LEN + n);

	if (to == NULL) {
		PLX_STAT_INC(s->all->stat.rx_drop_no_memory);
		s->err = -ENOMEM;
		return;
	}
	to->kind = PLX_MSG_STREAM;
	to->len = n;
	to->ack = 1; /* its sender has not paid for it */
	s->xfer_to = to;
	xfer_start(s, m, chunk_data(to), NULL, n);
	if (s->err != 0 && s->xfer == NULL && s->xfer_to == to) { /* it did not begin */
		s->xfer_to = NULL;
		plx_msg_put(s->all->msgs, to);
	}
}

/* The first receive has met bytes that are at the sender. */
static void
fetch(struct plx_stream *s, struct plx_req *req, struct plx_msg *m)
{
	struct plx_req_stream *r = &req->stream;
	uint64_t total = RTE_MIN(r->offset + (m->len - m->got), req->len), n;

	if (total != req->len && !r->waitall && r->elem > 1 && total >= r->elem)
		total -= total % r->elem;
	n = total - r->offset;
	if (n < FETCH_DIRECT_MIN && n < m->len - m->got) {
		fetch_piece(s, m);
		return;
	}
	s->xfer_dt = (struct plx_dt){NULL, xfer_unpack, xfer_dt_finish};
	xfer_start(s, m, (char *)req->buf + r->offset, req->dt != NULL ? &s->xfer_dt : NULL, n);
}

/* Bring receives and bytes together. */
static void
match_run(struct plx_stream *s)
{
	struct plx_req *req;
	struct plx_msg *m;
	uint64_t n;
	bool done;

	if (s->matching)
		return;
	s->matching = true;
	s->busy++;
	while (s->xfer == NULL && !s->closed && s->err == 0 &&
		(req = TAILQ_FIRST(&s->recvs)) != NULL && (m = TAILQ_FIRST(&s->chunks)) != NULL) {
		if (m->kind == PLX_MSG_STREAM_RTS) {
			fetch(s, req, m);
			continue;
		}
		n = recv_take(req, chunk_data(m), m->len - m->got, &done);
		m->got += n;
		if (m->got == m->len)
			chunk_remove(s, m);
		if (done)
			recv_end(s, req, 0);
	}
	s->matching = false;
	if (s->err != 0 && s->xfer == NULL)
		recvs_fail(s, s->err);
	s->busy--;
}

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

	req->stream.offset = 0;
	req->stream.stream = NULL;
	if (unlikely(req->len == 0 || (err != 0 && TAILQ_EMPTY(&s->chunks)))) {
		plx_req_complete(req, req->len == 0 ? 0 : err);
		return;
	}
	req->stream.stream = s;
	TAILQ_INSERT_TAIL(&s->recvs, req, stream.link);
	if (!TAILQ_EMPTY(&s->chunks)) {
		s->busy++;
		match_run(s);
		if (err != 0 && s->xfer == NULL && TAILQ_EMPTY(&s->chunks))
			recvs_fail(s, err);
		s->busy--;
		grant_if(s);
		stream_free_if(s);
	}
}

/* Bytes that a receive would get at once. */
static uint64_t
unread(const struct plx_stream *s)
{
	const struct plx_msg *m;
	uint64_t n = 0;

	if (!TAILQ_EMPTY(&s->recvs))
		return 0;
	TAILQ_FOREACH(m, &s->chunks, chunk) {
		if (m->kind == PLX_MSG_STREAM_RTS)
			break;
		n += m->len - m->got;
	}
	return n;
}

int
plx_stream_recv_now(struct plx_stream *s, struct plx_req *req)
{
	uint64_t least = req->stream.waitall ? req->len : RTE_MIN(req->stream.elem, req->len);
	int err = why_none(s);
	bool done = req->len == 0;
	struct plx_msg *m;

	req->stream.offset = 0;
	if (unread(s) < least) /* and if nothing will come, why */
		return TAILQ_EMPTY(&s->chunks) && err != 0 ? err : -EAGAIN;
	while (!done && (m = TAILQ_FIRST(&s->chunks)) != NULL) {
		m->got += recv_take(req, chunk_data(m), m->len - m->got, &done);
		if (m->got == m->len)
			chunk_remove(s, m);
	}
	grant_if(s);
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
		if (s->xfer == NULL && s->err == 0)
			fetch_piece(s, m);
		m = TAILQ_FIRST(&s->chunks); /* the bytes, when that was done at once */
		if (m == NULL || m->kind == PLX_MSG_STREAM_RTS)
			return NULL;
	}
	TAILQ_REMOVE(&s->chunks, m, chunk);
	TAILQ_INSERT_TAIL(&s->lent, m, chunk);
	if (TAILQ_EMPTY(&s->chunks))
		set_ready(s, false);
	data = chunk_data(m);
	*len = m->len - m->got;
	memcpy(data - BACK_LEN, &m, BACK_LEN);
	return data;
}

void
plx_stream_return(struct plx_stream *s, void *data)
{
	struct plx_msg *m;

	memcpy(&m, (uint8_t *)data - BACK_LEN, BACK_LEN);
	TAILQ_REMOVE(&s->lent, m, chunk);
	chunk_end(s, m);
	grant_if(s);
}

uint32_t
plx_stream_poll(struct plx_streams *all, struct plx_ep_user **users, uint32_t n)
{
	struct plx_stream *s, *next;
	uint32_t got = 0;

	for (s = TAILQ_FIRST(&all->ready); s != NULL && got < n; s = next) {
		next = TAILQ_NEXT(s, ready_link);
		if (s->user == NULL)
			s->user = plx_ep_user_find(s->ep, s->conn_id);
		if (s->user == NULL)
			continue; /* its handle is still to be made */
		users[got++] = s->user;
		set_ready(s, false);
	}
	return got;
}

/* A long message came in the same turn as one that ended the only receive. */
static void
pace(struct plx_stream *s, uint32_t len)
{
	if (s->fed && len >= PACE_LEN) {
		s->all->pace = PACE_MSGS;
		PLX_STAT_INC(s->all->stat.rx_paced);
	}
	s->fed = false;
}

/* Bytes that no receive waits for. */
static __rte_noinline void
keep(struct plx_stream *s, const uint8_t *data, uint32_t len)
{
	struct plx_streams *all = s->all;
	struct plx_msg *m = plx_msg_get(all->msgs, BACK_LEN + len);

	if (m == NULL) {
		PLX_STAT_INC(all->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, stream, "no memory for %u bytes of a stream: it ends here", len);
		s->err = -ENOMEM;
		return;
	}
	m->kind = PLX_MSG_STREAM;
	m->len = len;
	m->ack = 0;
	plx_copy(chunk_data(m), data, len);
	TAILQ_INSERT_TAIL(&s->chunks, m, chunk);
	s->held += len + PLX_STREAM_COST;
	PLX_STAT_ADD(all->stat.rx_kept, len);
	set_ready(s, true);
}

/* The stream of data that arrived, if it is to be had. */
static __rte_noinline struct plx_stream *
arrival_stream(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id, uint32_t len)
{
	struct plx_ep_user *user = plx_ep_user_find(ep, conn_id);
	struct plx_wire_grant h = {.conn_id = plx_stream_wire_id(conn_id),
		.cost = len + PLX_STREAM_COST};
	struct plx_stream *s;

	if (user != NULL)
		return plx_stream_of_slow(all, user);
	if (!plx_ep_user_was(ep, conn_id)) {
		s = stream_new(all, ep, conn_id);
		if (s == NULL)
			PLX_STAT_INC(all->stat.rx_drop_no_memory);
		return s;
	}
	PLX_STAT_ADD(all->stat.rx_drop_closed, len);
	(void)plx_ep_tx_ctl(ep, PLX_WIRE_GRANT, &h, sizeof(h)); /* or its sender waits for ever */
	return NULL;
}

void
plx_stream_on_data(struct plx_streams *all, struct plx_peer *src, uint32_t conn_id,
	const uint8_t *data, uint32_t len)
{
	struct plx_ep *ep = plx_ep_of(all->eps, src);
	struct plx_stream *s;
	struct plx_req *req;
	bool done;

	if (unlikely(ep == NULL)) {
		PLX_STAT_INC(all->stat.rx_drop_no_memory);
		return;
	}
	s = find(ep, conn_id);
	if (unlikely(s == NULL)) {
		s = arrival_stream(all, ep, conn_id, len);
		if (s == NULL)
			return;
	}
	if (unlikely(s->held + s->owed + len + PLX_STREAM_COST > PLX_STREAM_WINDOW)) {
		PLX_STAT_INC(all->stat.rx_drop_no_credit); /* a peer that does not keep to it */
		s->err = -EPROTO;
		return;
	}
	s->busy++;
	s->owed += PLX_STREAM_COST;
	while (len > 0 && TAILQ_EMPTY(&s->chunks) && !s->closed &&
		(req = TAILQ_FIRST(&s->recvs)) != NULL) {
		uint64_t n = recv_take(req, data, len, &done);

		data += n;
		len -= n;
		s->owed += n;
		PLX_STAT_ADD(all->stat.rx_direct, n);
		s->fed = done;
		if (done)
			recv_end(s, req, 0);
	}
	if (unlikely(s->closed)) {
		s->owed += len;
		PLX_STAT_ADD(all->stat.rx_drop_closed, len);
	} else if (len > 0 && s->err == 0) {
		s->owed -= PLX_STREAM_COST; /* the chunk has it */
		pace(s, len);
		keep(s, data, len);
	}
	s->busy--;
	grant_if(s);
	if (unlikely(s->closed))
		stream_free_if(s);
}

void
plx_stream_on_rts(struct plx_streams *all, struct plx_peer *src, const struct plx_wire_stream_rts *h)
{
	struct plx_ep *ep = plx_ep_of(all->eps, src);
	struct plx_stream *s = ep != NULL ? find(ep, h->conn_id) : NULL;
	struct plx_msg *m;

	if (ep != NULL && s == NULL)
		s = arrival_stream(all, ep, h->conn_id, 0);
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
	m->addr = h->addr;
	m->sreq = h->sreq;
	m->ack = 0;
	TAILQ_INSERT_TAIL(&s->chunks, m, chunk);
	rts_list(s, m);
	s->held += PLX_STREAM_COST;
	set_ready(s, true);
	if (!TAILQ_EMPTY(&s->recvs)) {
		s->busy++;
		match_run(s);
		s->busy--;
		grant_if(s);
		stream_free_if(s);
	}
}

void
plx_stream_on_grant(struct plx_streams *all, struct plx_ep *ep, const struct plx_wire_grant *h)
{
	struct plx_stream *s = find(ep, h->conn_id);

	if (s == NULL)
		return; /* closed meanwhile */
	if (h->cost > PLX_STREAM_WINDOW - s->credit) {
		PLX_STAT_INC(all->stat.drop_bad_grant);
		return;
	}
	s->credit += h->cost;
	if (!TAILQ_EMPTY(&s->sends))
		send_kick(s);
}

void
plx_stream_detach(struct plx_ep *ep, struct plx_ep_user *user)
{
	/* The ep may be a stub by now, and the stream is where it was. */
	struct plx_stream *s = user->stream != NULL ? user->stream : find(ep, user->conn_id);

	user->stream = NULL;
	if (s == NULL)
		return;
	s->user = plx_ep_user_find(s->ep, s->conn_id);
	if (s->user != NULL)
		return; /* another handle has the same number: an answering one */
	s->closed = true;
	set_ready(s, false);
	if (s->xfer == NULL) { /* else when nothing writes to the first receive's buffer any more */
		s->busy++;
		recvs_fail(s, -ECANCELED);
		closed_drop(s);
		s->busy--;
	}
	stream_free_if(s);
}

void
plx_stream_move(struct plx_ep_user *user)
{
	struct plx_stream *s = user->stream, *t;
	struct plx_req *req;

	if (s == NULL || s->ep == user->ep || !s->ep->stub)
		return;
	t = find(user->ep, s->conn_id);
	if (t == NULL) {
		LIST_REMOVE(s, link);
		s->ep->n_msgs--;
		s->ep = user->ep;
		s->ep->n_msgs++;
		LIST_INSERT_HEAD(&s->ep->streams, s, link);
		return;
	}
	/* Sends, or bytes, were faster. A stub's stream has receives and nothing else. */
	TAILQ_FOREACH(req, &s->recvs, stream.link)
		req->stream.stream = t;
	TAILQ_CONCAT(&t->recvs, &s->recvs, stream.link);
	user->stream = t;
	t->user = user;
	stream_free(s);
	t->busy++;
	match_run(t);
	t->busy--;
	grant_if(t);
	stream_free_if(t);
}

void
plx_stream_user_failed(struct plx_ep_user *user, int err)
{
	struct plx_stream *s = user->stream;

	if (s == NULL || s->xfer != NULL || !TAILQ_EMPTY(&s->chunks))
		return; /* what has come can still be read */
	s->busy++;
	recvs_fail(s, err);
	s->busy--;
	stream_free_if(s);
}

void
plx_stream_ep_failed(struct plx_ep *ep, int err)
{
	struct plx_stream *s, *next;

	for (s = LIST_FIRST(&ep->streams); s != NULL; s = next) {
		s->busy++;
		if (s->xfer == NULL && TAILQ_EMPTY(&s->chunks))
			recvs_fail(s, err);
		next = LIST_NEXT(s, link);
		s->busy--;
		if (s->xfer == NULL && !s->closed &&
			plx_ep_user_find(ep, s->conn_id) == NULL) {
			set_ready(s, false);
			chunks_drop(s, &s->chunks);
			s->closed = true;
		}
		stream_free_if(s);
	}
}

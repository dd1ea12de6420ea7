/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_send.c - sending within the reader's credit
 */
#include <rte_common.h>

#include "plx_probe.h"
#include "stream_int.h"

static int
rts_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_stream_rts h = {.conn_id = plx_ep_send(req)->tag, .len = req->len,
		.addr = req->dt == NULL ? (uintptr_t)req->buf : 0, .sreq = plx_rndv_tx(req)->id,
		.epoch = plx_rndv_epoch(plx_ep_send(req)->ep)};
	struct plx_tx tx = {.peer = plx_ep_send(req)->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_STREAM_RTS};

	return plx_rndv_announced(req, plx_peer_tx(&tx));
}

/* From here on lib/rndv owns the request. */
static void
send_announce(struct plx_stream *s, struct plx_req *req)
{
	int rc;

	s->credit -= PLX_STREAM_COST;
	plx_ep_wait_end(&plx_stream_req(req)->wait);
	plx_ep_send(req)->ep = s->ep;
	plx_ep_send(req)->conn_id = s->conn_id;
	plx_ep_send(req)->tag = plx_stream_wire_id(s->conn_id);
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

	while (plx_stream_req(req)->offset < req->len) {
		uint64_t n = RTE_MIN(req->len - plx_stream_req(req)->offset, most);

		if (s->credit < n + PLX_STREAM_COST)
			return -ENOBUFS;
		/* After pending messages, unless our turn in the ep's list has come. */
		if (!first && !plx_ep_open(s->ep))
			return -EAGAIN;
		plx_req_tx(req, &tx, plx_stream_req(req)->offset, n);
		rc = plx_peer_tx(&tx);
		if (rc != 0)
			return rc;
		s->credit -= n + PLX_STREAM_COST;
		plx_stream_req(req)->offset += n;
	}
	return 0;
}

/*
 * Send within the reader's credit.
 * @param first our turn in the ep's list of pending messages has come
 * @return 0 all, or no credit; -EAGAIN the device is full, or earlier messages are pending
 */
static int
send_run(struct plx_stream *s, bool first)
{
	struct plx_req *req;
	int rc = 0;

	s->sending = true;
	while (rc == 0 && (req = stream_first(&s->sends)) != NULL) {
		if (req->len > s->all->rndv_min) {
			rc = s->credit < PLX_STREAM_COST ? -ENOBUFS : !first && !plx_ep_open(s->ep) ? -EAGAIN : 0;
			if (rc != 0)
				break;
			TAILQ_REMOVE(&s->sends, plx_stream_req(req), link);
			send_announce(s, req);
			/* If it moved to the end of the ep's list, our next ones follow it. */
			if (first && !plx_ep_open(s->ep) && !TAILQ_EMPTY(&s->sends))
				rc = -EXFULL;
			continue;
		}
		rc = send_pieces(s, req, first);
		if (rc != 0)
			break;
		TAILQ_REMOVE(&s->sends, plx_stream_req(req), link);
		plx_stream_req(req)->stream = NULL;
		plx_ep_wait_end(&plx_stream_req(req)->wait);
		plx_req_complete(req, 0);
	}
	s->sending = false;
	if (rc == -ENOBUFS) {
		PLX_STAT_INC(s->all->stat.tx_no_credit);
		PLX_PROBE_STALL(s->ep->peer->uid, "the reader does not read");
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
	(void)err; /* the waits of the requests fail as well, and that completes them */
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
	struct plx_req *req = plx_req_of_own(container_of(w, struct plx_stream_req, wait));
	struct plx_stream *s = plx_stream_req(req)->stream;

	TAILQ_REMOVE(&s->sends, plx_stream_req(req), link);
	plx_stream_req(req)->stream = NULL;
	s->busy++;
	plx_req_complete(req, err);
	s->busy--;
	stream_free_if(s);
}

void
plx_stream_send(struct plx_stream *s, struct plx_req *req)
{
	PLX_PROBE_SEND("stream", req, req->len, s->conn_id);
	plx_stream_req(req)->stream = s;
	plx_stream_req(req)->offset = 0;
	plx_stream_req(req)->since = s->all->now;
	TAILQ_INSERT_TAIL(&s->sends, plx_stream_req(req), link);
	plx_ep_wait(s->ep, &plx_stream_req(req)->wait, s->conn_id, send_wait_fail);
	send_kick(s);
}

void
plx_stream_on_grant(struct plx_streams *all, struct plx_ep *ep, const struct plx_wire_grant *h)
{
	struct plx_stream *s = stream_find(ep, h->conn_id);

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

bool
plx_stream_wait_info(const struct plx_wait *w, struct plx_wait_info *out)
{
	const struct plx_stream_req *r = container_of(w, struct plx_stream_req, wait);

	if (w->fail != send_wait_fail)
		return false;
	*out = (struct plx_wait_info){.op = "stream_send", .len = plx_req_of_own(r)->len, .done = r->offset,
		.state = r->stream->pended ? "the device is full" : "the reader does not read", .since = r->since};
	return true;
}

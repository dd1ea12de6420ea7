/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_am.c - active messages: sending with each protocol, assembling the pieces, fetching
 */
#include <errno.h>
#include <string.h>

#include "plx_copy.h"
#include "worker_post.h"

#define SHORT_MAX 128u /* longest header and data that are assembled on the stack */
#define HEAD_MAX  120u /* longest header that is assembled there alone: the device copies the data */

/* The bytes of a message: its header, padded, and its data. */
struct am_src {
	const void *hdr;
	uint32_t hdr_len;
	const void *buf;
	struct plx_dt *dt;
};

static inline struct plx_wire_am
wire_am(uint64_t word)
{
	struct plx_wire_am h;

	memcpy(&h, &word, sizeof(h));
	return h;
}

static inline uint64_t
wire_word(struct plx_wire_am h)
{
	uint64_t word;

	memcpy(&word, &h, sizeof(word));
	return word;
}

static void
am_pack(void *arg, uint64_t offset, void *to, uint64_t len)
{
	const struct am_src *src = arg;
	uint32_t head = plx_am_head(src->hdr_len);
	uint8_t *p = to;

	if (offset < head) {
		uint64_t n = RTE_MIN(len, head - offset);
		uint64_t real = offset < src->hdr_len ? RTE_MIN(n, src->hdr_len - offset) : 0;

		memcpy(p, (const uint8_t *)src->hdr + offset, real);
		memset(p + real, 0, n - real);
		p += n;
		offset += n;
		len -= n;
	}
	if (len == 0)
		return;
	offset -= head;
	if (src->dt != NULL)
		src->dt->pack(src->dt, offset, p, len);
	else
		plx_copy(p, (const uint8_t *)src->buf + offset, len);
}

static inline void
src_tx(struct am_src *src, struct plx_tx *tx, uint64_t offset, uint64_t len)
{
	tx->len = len;
	if (src->hdr_len == 0 && src->dt == NULL) {
		tx->data = (const uint8_t *)src->buf + offset;
		return;
	}
	if (offset == 0)
		tx->skew = (uint8_t)plx_am_head(src->hdr_len);
	tx->pack = am_pack;
	tx->pack_arg = src;
	tx->pack_offset = offset;
}

static inline struct am_src
src_of(const struct plx_req *req)
{
	struct plx_wire_am h = wire_am(plx_ep_send(req)->tag);

	return (struct am_src){plx_ep_send(req)->hdr, plx_am_hdr_len(&h), req->buf, req->dt};
}

/* Write a header, padded. @return its bytes then */
static inline uint32_t
head_put(uint8_t *to, const void *hdr, uint32_t len)
{
	uint32_t head = plx_am_head(len);

	if (head != len)
		memset(to + head - 8, 0, 8);
	if (len != 0)
		memcpy(to, hdr, len);
	return head;
}

/* A short message with a header of its own. */
static __rte_noinline int
short_tx(struct plx_ep *ep, uint64_t word, const struct am_src *src, uint64_t len)
{
	uint8_t both[SHORT_MAX];
	uint32_t head = head_put(both, src->hdr, src->hdr_len);

	if (len != 0)
		memcpy(both + head, src->buf, len);
	return plx_ep_tx_short(ep, PLX_WIRE_AM, word, both, head + len);
}

/* One whose data the device copies. */
static int
headed_tx(struct plx_ep *ep, uint64_t word, const struct am_src *src, uint64_t len)
{
	uint8_t head[sizeof(word) + HEAD_MAX];
	struct plx_tx tx = {.peer = ep->peer, .hdr = head, .data = src->buf, .len = len, .op = PLX_WIRE_AM};

	memcpy(head, &word, sizeof(word));
	tx.hdr_len = sizeof(word) + head_put(head + sizeof(word), src->hdr, src->hdr_len);
	return plx_peer_tx(&tx);
}

/* @param len of data */
static int
whole_tx(struct plx_ep *ep, uint64_t word, struct am_src *src, uint64_t len)
{
	struct plx_tx tx = {.peer = ep->peer, .hdr = &word, .hdr_len = sizeof(word),
		.op = PLX_WIRE_AM};

	if (src->hdr_len <= HEAD_MAX && src->dt == NULL)
		return headed_tx(ep, word, src, len);
	src_tx(src, &tx, 0, plx_am_head(src->hdr_len) + len);
	return plx_peer_tx(&tx);
}

/* The protocol, by the bytes of header and of data. @return how, with what is chosen */
static uint32_t
am_choose(const struct plx_ep *ep, uint32_t hdr_len, uint64_t len, uint32_t how)
{
	uint64_t all = plx_am_head(hdr_len) + len;
	/* A peer that requires announcements of tagged messages accepts these at any time. */
	bool eager = (hdr_len + len < ep->eager_own && plx_ep_is_eager(ep, hdr_len + len)) || (how & PLX_AM_EAGER) != 0;

	if ((how & PLX_AM_RNDV) != 0 || len > WORKER_FRAGS_LEN_MAX)
		return how | PLX_AM_RTS;
	if (!eager)
		return how | PLX_AM_RTS;
	return all + sizeof(struct plx_wire_am) <= ep->peer->mtu ? how | PLX_AM_WHOLE : how | PLX_AM_FRAGS;
}

static __rte_noinline int
send_now_slow(struct plx_ep *ep, uint64_t word, struct am_src *src,
	uint64_t len, uint32_t how)
{
	int rc = plx_ep_connect(ep);

	if (rc != 0)
		return rc;
	how = am_choose(ep, src->hdr_len, len, how);
	if (!plx_ep_open(ep) || (how & PLX_AM_WHOLE) == 0)
		return (int)how;
	rc = whole_tx(ep, word, src, len);
	return rc == -EAGAIN ? (int)how : rc;
}

/* @return whether header and data fit into one short message, and no announcement is asked for */
static inline bool
is_short(const struct plx_ep *ep, uint32_t hdr_len, uint64_t len, uint32_t how)
{
	uint64_t all = plx_am_head(hdr_len) + len;

	return (how & PLX_AM_RNDV) == 0 && len <= SHORT_MAX && all <= SHORT_MAX && plx_worker_am_is_short(ep, all);
}

int
plx_worker_am_try(struct plx_worker *w, struct plx_ep *ep, struct plx_wire_am h,
	const void *hdr, const void *buf, uint64_t len, uint32_t how)
{
	struct am_src src = {hdr, plx_am_hdr_len(&h), buf, NULL};
	int rc;

	if (likely(src.hdr_len == 0 && (how & PLX_AM_RNDV) == 0 && plx_worker_am_is_short(ep, len)))
		return plx_worker_am_send_short(w, ep, h, buf, len);
	PLX_PROBE_SEND("am", NULL, len, wire_word(h));
	if (likely(is_short(ep, src.hdr_len, len, how)))
		rc = short_tx(ep, wire_word(h), &src, len);
	else
		rc = send_now_slow(ep, wire_word(h), &src, len, how);
	if (likely(rc == 0))
		PLX_STAT_INC(w->am.stat.sends);
	return rc;
}

static int
whole_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct am_src src = src_of(req);
	int rc;

	rc = whole_tx(plx_ep_send(req)->ep, plx_ep_send(req)->tag, &src, req->len);
	if (rc == 0)
		plx_req_complete(req, 0);
	return rc;
}

/* Send pieces until the device is full: of len bytes, the first with its own wire header. */
static int
pieces_send(struct plx_req *req, uint8_t op, const void *first, uint8_t first_len, uint64_t len)
{
	struct plx_ep_send *s = plx_ep_send(req);
	struct plx_wire_frag frag = {.msg_id = s->msg_id};
	struct am_src src = src_of(req);

	do {
		struct plx_tx tx = {.peer = s->ep->peer, .hdr = first, .hdr_len = first_len,
			.op = op};
		int rc;

		if (s->offset != 0) {
			frag.offset = s->offset;
			tx.hdr = &frag;
			tx.hdr_len = sizeof(frag);
			tx.op = PLX_WIRE_FRAG;
		}
		src_tx(&src, &tx, s->offset, RTE_MIN(len - s->offset, tx.peer->mtu - tx.hdr_len));
		rc = plx_peer_tx(&tx);
		if (rc != 0)
			return rc;
		s->offset += tx.len;
	} while (s->offset < len);
	return 0;
}

static int
frags_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_am_first h = {.am = wire_am(plx_ep_send(req)->tag), .len = req->len,
		.msg_id = plx_ep_send(req)->msg_id};
	int rc = pieces_send(req, PLX_WIRE_AM_FIRST, &h, sizeof(h),
		plx_am_head(plx_am_hdr_len(&h.am)) + req->len);

	if (rc == 0)
		plx_req_complete(req, 0);
	return rc;
}

/* Announce: the header travels with it. */
static int
rts_send(struct plx_pend *p)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_am_rts h = {.am = wire_am(plx_ep_send(req)->tag), .len = req->len,
		.addr = plx_req_in_place(req, plx_ep_send(req)->ep->peer) ? (uintptr_t)req->buf : 0, .sreq = plx_rndv_tx(req)->id,
		.msg_id = plx_ep_send(req)->msg_id, .epoch = plx_rndv_epoch(plx_ep_send(req)->ep)};

	return plx_rndv_announced(req, pieces_send(req, PLX_WIRE_AM_RTS, &h, sizeof(h),
		plx_am_head(plx_am_hdr_len(&h.am))));
}

bool
worker_am_sends(const struct plx_pend *p)
{
	return p->send == whole_send || p->send == frags_send || p->send == rts_send;
}

static void send_run(void *arg);

static void
am_send(struct plx_worker *w, struct plx_req *req, uint32_t how)
{
	struct plx_wire_am h = wire_am(plx_ep_send(req)->tag);
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc = 0;

	PLX_PROBE_SEND("am", req, req->len, plx_ep_send(req)->tag);
	plx_ep_send(req)->offset = 0;
	if ((how & PLX_AM_CHOSEN) == 0) {
		rc = plx_ep_connect(ep);
		if (rc == 0)
			how = am_choose(ep, plx_am_hdr_len(&h), req->len, how);
	}
	if (rc == 0) {
		switch (how & PLX_AM_CHOSEN) {
		case PLX_AM_WHOLE:
			worker_send_or_pend(req, PLX_PEND_ANY, whole_send, worker_send_fail);
			break;
		case PLX_AM_FRAGS:
			plx_ep_send(req)->msg_id = ep->msg_id++;
			worker_send_or_pend(req, PLX_PEND_ANY, frags_send, worker_frags_fail);
			break;
		default: /* PLX_AM_RTS */
			plx_ep_send(req)->msg_id = ep->msg_id++;
			rc = plx_rndv_send_as(&w->rndv, req, rts_send);
			break;
		}
	}
	if (rc == -EAGAIN) { /* not connected yet */
		rc = plx_ep_defer(ep, send_run, plx_req_complete, req, &plx_ep_send(req)->ep);
		if (rc == 0)
			return;
	}
	if (rc != 0)
		plx_req_complete(req, rc);
	else
		PLX_STAT_INC(w->am.stat.sends);
}

static void
send_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_ep *ep = plx_ep_send(req)->ep;

	am_send(worker_of(req), req, plx_rndv_tx(req)->rreq.index);
	if (!ep->stub)
		worker_look_quick(ep);
}

void
plx_worker_am_send(struct plx_worker *w, const struct plx_ep_user *user, struct plx_wire_am h,
	const void *hdr, const void *buf, uint64_t len, uint32_t how, struct plx_req *req)
{
	req->buf = (void *)(uintptr_t)buf;
	req->len = len;
	plx_ep_send(req)->ep = user->ep;
	plx_ep_send(req)->conn_id = user->conn_id;
	plx_ep_send(req)->tag = wire_word(h);
	plx_ep_send(req)->hdr = hdr;
	plx_rndv_tx(req)->rreq.index = how & ~PLX_AM_CHOSEN; /* until the receiver's name arrives */
	if (!worker_submit(w, send_run, req))
		am_send(w, req, how);
}

static void
piece(struct plx_worker *w, struct plx_msg *m, const uint8_t *data, uint64_t len)
{
	struct plx_ep *ep = m->ep;
	uint64_t before = m->cost;
	int rc;

	if (!worker_may_keep(w, ep, len))
		return;
	rc = plx_am_write(m, data, len);
	ep->kept += m->cost - before;
	if (rc == -ENOMEM) {
		PLX_STAT_INC(w->am.stat.rx_drop_no_memory);
		plx_am_msg_put(&w->am, m);
	} else if (rc < 0) {
		PLX_STAT_INC(w->stat.rx_drop_bad_frag);
	}
	if (rc <= 0)
		return;
	LIST_REMOVE(m, partial);
	m->is_partial = false;
	ep->kept -= m->cost; /* it belongs to the program from here on */
	plx_am_arrived(&w->am, m);
}

static void
first_piece(struct plx_worker *w, struct plx_msg *m, uint32_t msg_id, const uint8_t *data,
	uint64_t len)
{
	m->msg_id = msg_id;
	m->is_partial = true;
	LIST_INSERT_HEAD(&plx_worker_ep(m->ep)->partial, m, partial);
	m->ep->kept += m->cost;
	piece(w, m, data, len);
}

void
worker_rx_am_first(struct plx_worker *w, const struct plx_rx *rx)
{
	const struct plx_ep *ep = rx->src->user;
	struct plx_wire_am_first h;
	struct plx_msg *m;

	memcpy(&h, rx->data, sizeof(h));
	if (plx_am_hdr_len(&h.am) > PLX_WIRE_AM_HDR_MAX || h.len > WORKER_FRAGS_LEN_MAX ||
		rx->len == sizeof(h) || (ep != NULL && !worker_partial_room(ep))) {
		PLX_STAT_INC(w->stat.rx_drop_bad_frag);
		return;
	}
	m = plx_am_msg_get(&w->am, rx->src, &h.am, h.len, PLX_MSG_AM);
	if (m != NULL)
		first_piece(w, m, h.msg_id, rx->data + sizeof(h), rx->len - sizeof(h));
}

void
worker_rx_am_rts(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_ep *ep = rx->src->user;
	struct plx_wire_am_rts h;
	struct plx_msg *m;

	memcpy(&h, rx->data, sizeof(h));
	if (plx_am_hdr_len(&h.am) > PLX_WIRE_AM_HDR_MAX || (ep != NULL && !worker_partial_room(ep))) {
		PLX_STAT_INC(w->stat.rx_drop_bad_frag);
		return;
	}
	m = plx_am_msg_get(&w->am, rx->src, &h.am, 0, PLX_MSG_AM_RTS);
	if (m == NULL) {
		ep = plx_ep_of(&w->eps, rx->src);
		if (ep != NULL)
			plx_rndv_ack(ep, h.sreq, -ENOMEM);
		return;
	}
	m->len = h.len;
	m->rts = (struct plx_rts){.sreq = h.sreq, .addr = h.addr, .epoch = h.epoch};
	first_piece(w, m, h.msg_id, rx->data + sizeof(h), rx->len - sizeof(h));
}

void
worker_am_frag(struct plx_worker *w, struct plx_msg *m, const struct plx_wire_frag *h,
	const uint8_t *data, uint64_t len)
{
	if (h->offset != m->got || len == 0)
		PLX_STAT_INC(w->stat.rx_drop_bad_frag);
	else
		piece(w, m, data, len);
}

static void
end_run(void *arg)
{
	struct plx_msg *m = arg;

	if (m->kind == PLX_MSG_AM_RTS && m->ack != 1)
		plx_rndv_ack(m->ep, m->rts.sreq, m->ack);
	plx_am_msg_put(m->am, m);
}

void
worker_am_end(struct plx_am *am, struct plx_msg *m, int ack)
{
	struct plx_worker *w = container_of(am, struct plx_worker, am);

	m->ack = ack;
	if (w->dedicated)
		worker_post(w, end_run, m);
	else
		end_run(m);
}

int
plx_worker_am_copy(struct plx_msg *m, void *data, struct plx_req *req)
{
	int rc = m->len > req->len ? -EMSGSIZE : 0;

	req->recv.info_len = m->len;
	plx_req_copy_in(req, 0, data, m->len);
	plx_am_take(m, 0);
	return rc;
}

int
plx_worker_am_loan(struct plx_worker *w, const struct plx_msg *m, struct plx_loan **out)
{
	return plx_rndv_loan(&w->rndv, m->ep, &m->rts, m->len, out);
}

static void
fetch_run(void *arg)
{
	struct plx_req *req = arg;
	struct plx_worker *w = worker_of(req);
	const struct plx_msg *m = req->recv.msg;

	if (req->len != 0 || m->len == 0) {
		plx_rndv_recv(&w->rndv, m->ep, &m->rts, m->len, NULL, req);
	} else { /* the program needs none of it: a drop, not a truncation */
		plx_rndv_ack(m->ep, m->rts.sreq, 0);
		req->recv.info_len = 0;
		plx_req_complete(req, 0);
	}
}

void
plx_worker_am_fetch(struct plx_worker *w, struct plx_msg *m, void *buf, uint64_t len,
	struct plx_req *req)
{
	worker_recv_init(req, buf, len);
	req->recv.info_len = m->len;
	req->recv.msg = m;
	/* The message stays until then: earlier posts run first. */
	if (!worker_submit(w, fetch_run, req))
		fetch_run(req);
	plx_am_take(m, 1);
}

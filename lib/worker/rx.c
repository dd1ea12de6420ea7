/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rx.c - the meaning of an arrived packet: the switch, and tagged delivery
 *
 * Design notes
 * - Headers are copied out of the message before they are checked, since a peer may still write
 *   there. An invalid message is counted and dropped, and changes nothing.
 * - The first piece of a message in fragments takes its place in matching; the later ones find it
 *   by (ep, msg_id).
 */
#include <errno.h>
#include <string.h>

#include <rte_prefetch.h>

#include "plx_copy.h"
#include "worker_int.h"

#define RX_PREFETCH_DEPTH 2000 /* posted receives that no longer fit into the second-level cache */

static inline struct plx_req *
match(struct plx_worker *w, uint64_t tag)
{
	struct plx_tag_recv *r = NULL;
	struct plx_req *req;

	if (likely(plx_tag_stats(w->tag)->posted != 0))
		r = plx_tag_match(w->tag, tag);
	else
		plx_tag_miss(w->tag);
	if (r == NULL)
		return NULL;
	req = container_of(r, struct plx_req, recv.tag);
	PLX_PROBE_MATCH(req, tag);
	req->posted = false;
	if (unlikely(w->offloads && req->offload != 0))
		plx_offload_matched(&w->offload, req);
	return req;
}

static void
msg_set_ep(struct plx_msg *m, struct plx_ep *ep)
{
	m->ep = ep;
	ep->n_msgs++;
	ep->kept += m->cost;
}

static inline void
msg_unset_ep(const struct plx_msg *m)
{
	m->ep->n_msgs--;
	m->ep->kept -= m->cost;
}

void
worker_msg_free(struct plx_worker *w, struct plx_msg *m)
{
	if (m->is_partial)
		LIST_REMOVE(m, partial);
	if (m->ep != NULL)
		msg_unset_ep(m);
	plx_msg_put(&w->msgs, m);
}

/*
 * Store a message without a receive. Above the bound its sender only announces from there
 * on.
 * @return NULL without memory, or the sender is refused
 */
static struct plx_msg *
msg_keep(struct plx_worker *w, struct plx_peer *src, uint64_t tag, uint64_t len, uint64_t data_len,
	enum plx_msg_kind kind)
{
	struct plx_ep *ep = plx_ep_of(&w->eps, src);
	struct plx_msg *m;

	if (likely(ep != NULL) && unlikely(!worker_may_keep(w, ep, data_len + sizeof(*m))))
		return NULL;
	m = likely(ep != NULL) ? plx_msg_get(&w->msgs, data_len) : NULL;
	if (unlikely(m == NULL)) {
		PLX_STAT_INC(w->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, worker, "no memory to keep a message of %llu bytes: lost",
			(unsigned long long)len);
		return NULL;
	}
	m->kind = kind;
	m->len = len;
	m->tag.whole = false;
	plx_tag_keep(w->tag, &m->tag, tag);
	PLX_STAT_ADD(w->stat.eager_bytes_kept, data_len);
	msg_set_ep(m, ep);
	if (unlikely(w->msgs.bytes > w->kept_max))
		plx_ep_stop(ep);
	return m;
}

static __rte_noinline void
keep_eager_slow(struct plx_worker *w, struct plx_peer *src, uint64_t tag, const uint8_t *data,
	uint64_t len)
{
	struct plx_msg *m = msg_keep(w, src, tag, len, len, PLX_MSG_EAGER);

	if (m == NULL)
		return;
	m->tag.whole = true;
	m->got = len;
	plx_copy(m->data, data, len);
}

/* Whether a short message needs neither stopping nor refusing: the total bounds each peer. */
static inline bool
keeps_short(const struct plx_worker *w, const struct plx_ep *ep, uint64_t len)
{
	return likely(ep != NULL) && !worker_ep_is_over(ep) && len <= PLX_MSG_INLINE &&
	       w->msgs.bytes + sizeof(struct plx_msg) <= w->kept_max;
}

static inline void
keep_eager(struct plx_worker *w, struct plx_peer *src, uint64_t tag, const uint8_t *data, uint64_t len)
{
	struct plx_ep *ep = src->user;
	struct plx_msg *m = keeps_short(w, ep, len) ? plx_pool_get_free(&w->msgs.msg) : NULL;

	if (unlikely(m == NULL)) {
		keep_eager_slow(w, src, tag, data, len);
		return;
	}
	plx_msg_begin(&w->msgs, m, len, 0);
	m->kind = PLX_MSG_EAGER;
	m->got = len;
	m->tag.whole = true;
	plx_copy(m->inl, data, len);
	msg_set_ep(m, ep);
	PLX_STAT_ADD(w->stat.eager_bytes_kept, len);
	plx_tag_keep(w->tag, &m->tag, tag);
}

/* Where the device has put it. @return false: it is to be copied */
static __rte_noinline bool
keep_in_place(struct plx_worker *w, struct plx_rx *rx, uint64_t tag)
{
	struct plx_queue *q = rx->src->q;
	void *buf = plx_queue_rx_keep(q, rx);
	struct plx_msg *m;

	if (buf == NULL)
		return false;
	m = msg_keep(w, rx->src, tag, rx->len - sizeof(tag), 0, PLX_MSG_EAGER);
	if (m == NULL) {
		plx_queue_rx_return(q, buf);
		return true;
	}
	plx_msg_lies(m, q, buf, rx->data + sizeof(tag));
	m->tag.whole = true;
	m->got = m->len;
	PLX_STAT_INC(w->stat.eager_in_place);
	return true;
}

static inline void
rx_eager(struct plx_worker *w, struct plx_rx *rx)
{
	struct plx_req *req;
	uint64_t tag;

	memcpy(&tag, rx->data, sizeof(tag));
	req = match(w, tag);
	if (likely(req != NULL))
		plx_req_complete_recv(&w->reqs, req, tag, rx->data + sizeof(tag), rx->len - sizeof(tag));
	else if (likely(!plx_rx_is_keepable(rx)) || !keep_in_place(w, rx, tag))
		keep_eager(w, rx->src, tag, rx->data + sizeof(tag), rx->len - sizeof(tag));
}

/* In these three req is the receive that a device has matched; NULL: none. */
static void
rx_sync(struct plx_worker *w, const struct plx_rx *rx, struct plx_req *req)
{
	const uint8_t *data = rx->data + sizeof(struct plx_wire_sync);
	uint64_t len = rx->len - sizeof(struct plx_wire_sync);
	struct plx_wire_sync h;
	struct plx_msg *m;
	struct plx_ep *ep;

	memcpy(&h, rx->data, sizeof(h));
	if (req == NULL)
		req = match(w, h.tag);
	if (req != NULL) {
		ep = plx_ep_of(&w->eps, rx->src);
		if (ep != NULL)
			plx_rndv_ack(ep, h.sreq, 0);
		plx_req_complete_recv(&w->reqs, req, h.tag, data, len);
		return;
	}
	m = msg_keep(w, rx->src, h.tag, len, len, PLX_MSG_SYNC);
	if (m == NULL)
		return;
	m->rts.sreq = h.sreq;
	m->got = len;
	plx_copy(m->data, data, len);
}

/* All pieces have arrived. */
static void
partial_end(struct plx_worker *w, struct plx_msg *m)
{
	struct plx_req *req = m->req;

	LIST_REMOVE(m, partial);
	m->is_partial = false;
	if (req == NULL)
		return; /* unexpected, complete now */
	if (m->direct) {
		int status = m->len > req->len ? -EMSGSIZE : 0;

		worker_msg_free(w, m);
		plx_req_complete(req, status);
	} else {
		worker_recv_msg(w, m, req);
	}
}

/* A message is lost, and no other receive shall wait for it. */
static __rte_noinline __rte_cold void
recv_lost(struct plx_req *req, int err)
{
	if (req != NULL)
		plx_req_complete(req, err);
}

static void
rx_first(struct plx_worker *w, const struct plx_rx *rx, struct plx_req *req)
{
	const uint8_t *data = rx->data + sizeof(struct plx_wire_first);
	uint64_t len = rx->len - sizeof(struct plx_wire_first);
	struct plx_ep *ep = plx_ep_of(&w->eps, rx->src);
	struct plx_wire_first h;
	struct plx_msg *m;

	memcpy(&h, rx->data, sizeof(h));
	if (ep == NULL) { /* later pieces could not be identified */
		PLX_STAT_INC(w->stat.rx_drop_no_memory);
		recv_lost(req, -ENOMEM);
		return;
	}
	if (h.len < len || h.len > WORKER_FRAGS_LEN_MAX || len == 0 || !worker_partial_room(ep)) {
		PLX_STAT_INC(w->stat.rx_drop_bad_frag);
		recv_lost(req, -EIO);
		return;
	}
	if (req == NULL)
		req = match(w, h.tag);
	if (req != NULL) {
		m = plx_msg_get(&w->msgs, 0);
		if (m == NULL) {
			PLX_STAT_INC(w->stat.rx_drop_no_memory);
			plx_req_complete(req, -ENOMEM);
			return;
		}
		m->kind = PLX_MSG_EAGER;
		m->len = h.len;
		m->direct = true;
		req->recv.info_tag = h.tag;
		req->recv.info_len = h.len;
		msg_set_ep(m, ep);
		plx_req_copy_in(req, 0, data, len);
	} else {
		uint64_t room = RTE_MAX(len, PLX_MSG_ROOM);

		m = msg_keep(w, rx->src, h.tag, h.len, RTE_MIN(h.len, room), PLX_MSG_EAGER);
		if (m == NULL)
			return;
		plx_copy(m->data, data, len);
	}
	m->msg_id = h.msg_id;
	m->req = req;
	m->got = len;
	m->is_partial = true;
	LIST_INSERT_HEAD(&plx_worker_ep(m->ep)->partial, m, partial);
	if (m->got == m->len)
		partial_end(w, m);
}

static void
partial_drop(struct plx_worker *w, struct plx_msg *m, int err);

static void
msg_move(const struct plx_msg *m, uint8_t *to)
{
	plx_copy(to, m->data, m->got);
}

/* Room for len more bytes of a stored message; without memory it is lost. */
static __rte_noinline bool
msg_grow(struct plx_worker *w, struct plx_msg *m, uint64_t len)
{
	uint64_t before = m->cost;

	if (!worker_may_keep(w, m->ep, len))
		return false; /* it is freed with everything else of the ep as that fails */
	if (plx_msg_grow(&w->msgs, m, m->got + len, m->len, msg_move) == 0) {
		m->ep->kept += m->cost - before;
		return true;
	}
	PLX_STAT_INC(w->stat.rx_drop_no_memory);
	PLX_LOG_RATELIMIT(ERR, worker, "no memory to keep a message of %llu bytes: lost",
		(unsigned long long)m->len);
	partial_drop(w, m, -ENOMEM);
	return false;
}

/* Not inlined: the loop over messages would have fewer registers. */
static __rte_noinline void
msg_append(struct plx_msg *m, const uint8_t *data, uint64_t len)
{
	plx_copy(m->data + m->got, data, len);
}

static void
rx_frag(struct plx_worker *w, const struct plx_rx *rx)
{
	const uint8_t *data = rx->data + sizeof(struct plx_wire_frag);
	uint64_t len = rx->len - sizeof(struct plx_wire_frag);
	struct plx_ep *ep = rx->src->user;
	struct plx_wire_frag h;
	struct plx_msg *m = NULL;

	memcpy(&h, rx->data, sizeof(h));
	if (ep != NULL) {
		LIST_FOREACH(m, &plx_worker_ep(ep)->partial, partial) {
			if (m->msg_id == h.msg_id)
				break;
		}
	}
	if (m != NULL && m->kind >= PLX_MSG_AM) {
		worker_am_frag(w, m, &h, data, len);
		return;
	}
	if (m == NULL || h.offset != m->got || len > m->len - m->got) {
		PLX_STAT_INC(w->stat.rx_drop_bad_frag);
		return;
	}
	if (!m->direct && m->got + len > plx_msg_room(m) && !msg_grow(w, m, len))
		return;
	if (m->direct)
		plx_req_copy_in(m->req, m->got, data, len);
	else
		msg_append(m, data, len);
	m->got += len;
	if (m->got == m->len)
		partial_end(w, m);
}

static void
rx_rts(struct plx_worker *w, const struct plx_rx *rx, struct plx_req *req)
{
	struct plx_wire_rts h;
	struct plx_rts rts;
	struct plx_msg *m;
	struct plx_ep *ep;

	memcpy(&h, rx->data, sizeof(h));
	rts = (struct plx_rts){.sreq = h.sreq, .addr = h.addr, .epoch = h.epoch};
	ep = plx_ep_of(&w->eps, rx->src);
	if (ep == NULL) {
		PLX_STAT_INC(w->stat.rx_drop_no_memory);
		recv_lost(req, -ENOMEM);
		return;
	}
	if (req == NULL)
		req = match(w, h.tag);
	if (req != NULL) {
		const struct plx_rndv_pieces where = {(const uint8_t *)rx->data + sizeof(h), rx->len - sizeof(h)};

		req->recv.info_tag = h.tag;
		req->recv.info_len = h.len;
		plx_rndv_recv(&w->rndv, ep, &rts, h.len, where.len != 0 ? &where : NULL, req);
		return;
	}
	m = msg_keep(w, rx->src, h.tag, h.len, 0, PLX_MSG_RTS);
	if (m == NULL)
		return;
	m->rts = rts;
}

/* Copy a whole message out, answer its sender, free it. @return 0, -EMSGSIZE, -ECONNRESET */
int
worker_take_msg(struct plx_worker *w, struct plx_msg *m, struct plx_req *req)
{
	int rc = m->len > req->len ? -EMSGSIZE : 0;

	if (m->kind == PLX_MSG_SYNC && m->ep != NULL)
		plx_rndv_ack(m->ep, m->rts.sreq, 0);
	if (m->got != m->len)
		rc = -ECONNRESET; /* its sender died in the middle */
	else
		plx_req_copy_in(req, 0, m->data, m->len);
	worker_msg_free(w, m);
	return rc;
}

int
plx_worker_tag_take_now(struct plx_worker *w, void *buf, uint64_t len, uint64_t tag, uint64_t mask,
	struct plx_recv_info *info)
{
	struct plx_tag_msg *found = plx_tag_take_whole(w->tag, tag, mask);
	struct plx_msg *m;
	int rc = 0;

	if (found == NULL)
		return -EAGAIN;
	PLX_PROBE_MATCH(NULL, found->tag);
	m = container_of(found, struct plx_msg, tag);
	PLX_STAT_INC(w->stat.tag_recvs);
	info->tag = found->tag;
	info->len = m->len;
	if (likely(m->len <= len))
		len = m->len;
	else
		rc = -EMSGSIZE;
	plx_copy(buf, m->data, len);
	msg_unset_ep(m);
	plx_msg_put(&w->msgs, m);
	return rc;
}

void
worker_recv_msg(struct plx_worker *w, struct plx_msg *m, struct plx_req *req)
{
	req->recv.info_tag = m->tag.tag;
	req->recv.info_len = m->len;
	if (m->kind == PLX_MSG_RTS) {
		const struct plx_rts rts = m->rts;
		struct plx_ep *ep = m->ep;
		uint64_t len = m->len;

		worker_msg_free(w, m);
		plx_rndv_recv(&w->rndv, ep, &rts, len, NULL, req);
	} else if (m->is_partial) {
		m->req = req;
	} else {
		plx_req_complete(req, worker_take_msg(w, m, req));
	}
}

/* The remaining pieces of a message do not come. */
static void
partial_drop(struct plx_worker *w, struct plx_msg *m, int err)
{
	struct plx_req *req;

	if (m->kind >= PLX_MSG_AM) {
		plx_am_msg_put(&w->am, m);
		return;
	}
	req = m->req;
	LIST_REMOVE(m, partial);
	m->is_partial = false;
	if (req != NULL) {
		worker_msg_free(w, m);
		plx_req_complete(req, err);
	} else if (!m->taken) {
		plx_tag_take(w->tag, &m->tag);
		worker_msg_free(w, m);
	} /* else: the application has it and learns of it when it receives */
}

void
worker_drop_partial(struct plx_worker *w, struct plx_ep *ep, int err)
{
	struct plx_msg *m;

	while ((m = LIST_FIRST(&plx_worker_ep(ep)->partial)) != NULL)
		partial_drop(w, m, err);
}

/* The remaining pieces of a message do not come, or the sender has withdrawn a message that
 * a receive asked for. */
static void
rx_cancel(struct plx_worker *w, struct plx_ep *ep, const struct plx_wire_cancel *h)
{
	struct plx_msg *m;

	if (h->rreq.index != 0) {
		plx_rndv_on_cancel(&w->rndv, ep, h);
		return;
	}
	LIST_FOREACH(m, &plx_worker_ep(ep)->partial, partial) {
		if (m->msg_id != h->msg_id)
			continue;
		partial_drop(w, m, -ECONNRESET);
		return;
	}
}

union rx_hdr {
	struct plx_wire_ack ack;
	struct plx_wire_help help;
	struct plx_wire_pull pull;
	struct plx_wire_into into;
	struct plx_wire_done done;
	struct plx_wire_data data;
	struct plx_wire_list list;
	struct plx_wire_flow flow;
	struct plx_wire_cancel cancel;
};

/* Without a reactor. */
static inline void
rx_am_inline(struct plx_worker *w, struct plx_rx *rx)
{
	struct plx_wire_am h;

	memcpy(&h, rx->data, sizeof(h)); /* once: the sender may still write */
	plx_am_show(&w->am, rx, h, rx->data + sizeof(h), rx->len - sizeof(h));
}

static inline void
rx_am(struct plx_worker *w, struct plx_rx *rx)
{
	struct plx_wire_am h;

	if (!w->dedicated) {
		rx_am_inline(w, rx);
		return;
	}
	memcpy(&h, rx->data, sizeof(h));
	plx_am_keep(&w->am, rx, h, rx->data + sizeof(h), rx->len - sizeof(h));
}

static inline void
rx_stream(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_wire_stream h;

	memcpy(&h, rx->data, sizeof(h));
	plx_stream_on_data(&w->streams, rx->src, h.conn_id, rx->data + sizeof(h),
		rx->len - sizeof(h));
}

static inline bool
is_chan_msg(const struct plx_rx *rx)
{
	return rx->op == PLX_WIRE_CHAN_MSG && rx->len >= sizeof(struct plx_wire_chan_msg);
}

static inline void
rx_chan_msg(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_wire_chan_msg h;

	memcpy(&h, rx->data, sizeof(h));
	plx_chan_on_msg(&w->chans, rx->src, h, rx->data + sizeof(h), rx->len - sizeof(h));
}

static void
rx_stream_rts(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_wire_stream_rts h;

	memcpy(&h, rx->data, sizeof(h));
	plx_stream_on_rts(&w->streams, rx->src, &h);
}

static void
rx_grant(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_wire_grant h;

	memcpy(&h, rx->data, sizeof(h));
	if (rx->src->user != NULL)
		plx_stream_on_grant(&w->streams, rx->src->user, &h);
}

/* Answers between the two sides of a rendezvous. */
static __rte_noinline void
rx_rndv(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_ep *ep = rx->src->user;
	union rx_hdr hdr;

	if (ep == NULL) { /* nothing was ever sent there */
		PLX_STAT_INC(w->rndv.stat.drop_bad_id);
		return;
	}
	memcpy(&hdr, rx->data, plx_wire_hdr_len[rx->op]);
	switch (rx->op) {
	case PLX_WIRE_FLOW:
		plx_ep_on_flow(ep, &hdr.flow);
		break;
	case PLX_WIRE_CANCEL:
		rx_cancel(w, ep, &hdr.cancel);
		break;
	case PLX_WIRE_ACK:
		plx_rndv_on_ack(&w->rndv, ep, &hdr.ack);
		break;
	case PLX_WIRE_HELP:
		plx_rndv_on_help(&w->rndv, ep, &hdr.help, rx->data + sizeof(hdr.help), rx->len - sizeof(hdr.help));
		break;
	case PLX_WIRE_PULL:
		plx_rndv_on_pull(&w->rndv, ep, &hdr.pull);
		break;
	case PLX_WIRE_WHERE:
		plx_rndv_on_where(&w->rndv, ep, &hdr.pull);
		break;
	case PLX_WIRE_LIST:
		plx_rndv_on_list(&w->rndv, ep, &hdr.list, rx->data + sizeof(hdr.list), rx->len - sizeof(hdr.list));
		break;
	case PLX_WIRE_INTO:
		plx_rndv_on_into(&w->rndv, ep, &hdr.into);
		break;
	case PLX_WIRE_DONE:
		plx_rndv_on_done(&w->rndv, ep, &hdr.done);
		break;
	case PLX_WIRE_DATA:
		plx_rndv_on_data(&w->rndv, ep, &hdr.data, rx->data + sizeof(hdr.data),
			rx->len - sizeof(hdr.data));
		break;
	default:
		PLX_STAT_INC(w->stat.rx_drop_bad_op);
		break;
	}
}

static __rte_noinline void
rx_ep_close(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_wire_ep_close h;

	memcpy(&h, rx->data, sizeof(h));
	worker_on_ep_close(w, rx->src, &h);
}

static inline void
rx_switch(struct plx_worker *w, struct plx_rx *rx)
{
	if (likely(rx->op == PLX_WIRE_EAGER && rx->len >= sizeof(struct plx_wire_eager))) {
		rx_eager(w, rx);
		return;
	}
	if (is_chan_msg(rx)) {
		rx_chan_msg(w, rx);
		return;
	}
	if (unlikely(plx_wire_check(rx->op, rx->len) != 0)) {
		PLX_STAT_INC(w->stat.rx_drop_bad_op);
		return;
	}
	switch (rx->op) {
	case PLX_WIRE_SYNC:
		rx_sync(w, rx, NULL);
		break;
	case PLX_WIRE_FIRST:
		rx_first(w, rx, NULL);
		break;
	case PLX_WIRE_FRAG:
		rx_frag(w, rx);
		break;
	case PLX_WIRE_RTS:
		rx_rts(w, rx, NULL);
		break;
	case PLX_WIRE_PUT:
	case PLX_WIRE_PUT_AT:
	case PLX_WIRE_GET:
	case PLX_WIRE_ATOMIC:
	case PLX_WIRE_RMA_ACK:
	case PLX_WIRE_RMA_DATA:
	case PLX_WIRE_SHARE:
		worker_rx_rma(w, rx);
		break;
	case PLX_WIRE_RMA_BATCH:
	case PLX_WIRE_RMA_BATCH_DONE:
		worker_rx_batch(w, rx);
		break;
	case PLX_WIRE_EP_CLOSE:
		rx_ep_close(w, rx);
		break;
	case PLX_WIRE_AM:
		rx_am(w, rx);
		break;
	case PLX_WIRE_AM_FIRST:
		worker_rx_am_first(w, rx);
		break;
	case PLX_WIRE_AM_RTS:
		worker_rx_am_rts(w, rx);
		break;
	case PLX_WIRE_STREAM:
		rx_stream(w, rx);
		break;
	case PLX_WIRE_STREAM_RTS:
		rx_stream_rts(w, rx);
		break;
	case PLX_WIRE_GRANT:
		rx_grant(w, rx);
		break;
	case PLX_WIRE_CHAN_ASK:
	case PLX_WIRE_CHAN_ANSWER:
	case PLX_WIRE_CHAN_DONE:
	case PLX_WIRE_CHAN_CLOSE:
	case PLX_WIRE_CHAN_LOSSY:
	case PLX_WIRE_CHAN_ACK:
	case PLX_WIRE_CHAN_RNR:
	case PLX_WIRE_CHAN_READY:
	case PLX_WIRE_CHAN_PING:
	case PLX_WIRE_CHAN_PONG:
	case PLX_WIRE_CHAN_JOIN:
	case PLX_WIRE_CHAN_FETCH:
	case PLX_WIRE_CHAN_COPY:
		worker_rx_chan(w, rx);
		break;
	default:
		rx_rndv(w, rx);
		break;
	}
}

/* The tag of a message that is to be matched. */
static inline bool
rx_tag(const struct plx_rx *rx, uint64_t *tag)
{
	if (!plx_wire_is_tagged(rx->op, rx->len))
		return false;
	memcpy(tag, rx->data, sizeof(*tag));
	return true;
}

/* @param tag of the last message that had one @return whether this one has another */
static inline bool
rx_tag_differs(const struct plx_rx *rx, uint64_t *tag)
{
	uint64_t last = *tag;

	return rx_tag(rx, tag) && *tag != last;
}

/*
 * Wait for the memory of all matches of a burst at once, not one after the other. Later
 * ones of one tag are prefetched as the first is matched.
 */
static __rte_noinline void
rx_prefetch(const struct plx_worker *w, const struct plx_rx *rx, uint16_t n)
{
	uint64_t tag = UINT64_MAX;
	const struct plx_tag_recv *r;
	const char *req;

	for (uint16_t i = 0; i < n; i++)
		if (rx_tag_differs(&rx[i], &tag))
			plx_tag_prefetch(w->tag, tag);
	tag = UINT64_MAX;
	for (uint16_t i = 0; i < n; i++) {
		r = rx_tag_differs(&rx[i], &tag) ? plx_tag_guess(w->tag, tag) : NULL;
		if (r == NULL)
			continue;
		req = (const char *)container_of(r, struct plx_req, recv.tag);
		rte_prefetch0(req);
		rte_prefetch0(req + PLX_LINE);
	}
}

void
worker_finish_recv(void *worker, struct plx_req *req, const struct plx_rx *rx)
{
	struct plx_worker *w = worker;

	switch (rx->op) {
	case PLX_WIRE_SYNC:
		rx_sync(worker, rx, req);
		break;
	case PLX_WIRE_FIRST:
		rx_first(worker, rx, req);
		break;
	case PLX_WIRE_RTS:
		rx_rts(worker, rx, req);
		break;
	default:
		PLX_STAT_INC(w->stat.rx_drop_bad_op);
		recv_lost(req, -EIO);
		break;
	}
}

/* The sender of the last message may get an answer; but a program has not seen a message of
 * its channels yet. */
static inline void
rx_done(const struct plx_worker *w, const struct plx_rx *last)
{
	if (last->op != PLX_WIRE_CHAN_MSG || w->chans.ready == NULL)
		plx_peer_tx_soon(last->src);
}

__rte_noinline void
worker_hold(struct plx_worker *w)
{
	w->holds = true;
	for (uint32_t i = 0; i < w->n_holding; i++)
		w->holding[i]->hold = true;
}

static inline void
rx_dispatch(struct plx_worker *w, uint32_t k, uint16_t n)
{
	struct plx_queue *q = w->queues[k];

	if (w->reqs.to != NULL)
		plx_cq_ask(w->reqs.to);
	if (n > 1 && plx_tag_stats(w->tag)->posted > RX_PREFETCH_DEPTH)
		rx_prefetch(w, w->rx, n);
	for (uint16_t i = 0; i < n; i++)
		rx_switch(w, &w->rx[i]);
	if (unlikely(w->offloads))
		plx_offload_seen(&w->offload, k, w->rx, n);
	rx_done(w, &w->rx[n - 1]);
	q->rx_release(q, w->rx, n);
}

/* One tagged message, without other work before or after it. */
static inline bool
rx_is_usual(const struct plx_worker *w, uint16_t n)
{
	return n == 1 && w->rx[0].op == PLX_WIRE_EAGER &&
	       w->rx[0].len >= sizeof(struct plx_wire_eager) && w->reqs.to == NULL && !w->offloads;
}

void
worker_rx_take(struct plx_worker *w, uint32_t k, uint16_t n)
{
	struct plx_queue *q = w->queues[k];

	if (likely(rx_is_usual(w, n))) {
		rx_eager(w, w->rx);
		plx_peer_tx_soon(w->rx[0].src);
		q->rx_release(q, w->rx, 1);
		return;
	}
	if (unlikely(w->n_holding != 0))
		worker_hold(w);
	rx_dispatch(w, k, n);
}

/*
 * A lone message in a quiet worker, which has no reactor, so callbacks run at once. The usual message is handled in
 * place and its callback is the last call, so hardly a register is saved. Rare cases are functions of their own.
 */
static inline const uint8_t *
lone_data(const struct plx_worker *w, uint64_t *len)
{
	*len = w->rx->len - sizeof(struct plx_wire_eager);
	return w->rx->data + sizeof(struct plx_wire_eager);
}

static __rte_noinline void
keep_lone(struct plx_worker *w, uint64_t tag)
{
	uint64_t len;
	const uint8_t *data = lone_data(w, &len);

	keep_eager(w, w->rx->src, tag, data, len);
}

/* Of known length, so hardly a register is saved. */
static __rte_noinline void
keep_lone_word(struct plx_worker *w, uint64_t tag)
{
	uint64_t len;

	keep_eager(w, w->rx->src, tag, lone_data(w, &len), 8);
}

/* Its buffer is not plain, or too short, or completion is more than a callback. */
static __rte_noinline void
take_lone_slow(struct plx_req *req, const uint8_t *data, uint64_t len)
{
	req->status = plx_req_take(req, data, len);
	plx_req_finish(req);
}

/* More than a word, or less. */
static __rte_noinline void
take_lone(struct plx_req *req, const uint8_t *data, uint64_t len)
{
	if (likely(len <= PLX_COPY_NEAR))
		rte_memcpy(req->buf, data, len);
	else
		plx_copy_soon(req->buf, data, len);
	plx_req_finish_plain(req, atomic_load_explicit(&req->flags, memory_order_relaxed));
}

static inline void
recv_lone(struct plx_worker *w, struct plx_req *req)
{
	uint8_t flags = atomic_load_explicit(&req->flags, memory_order_relaxed);
	uint64_t len;
	const uint8_t *data = lone_data(w, &len);

	req->posted = false;
	req->recv.info_len = len; /* the match has stored info_tag */
	if (unlikely(!plx_req_is_plain(req, flags, len))) {
		take_lone_slow(req, data, len);
	} else if (likely(len == 8)) {
		memcpy(req->buf, data, 8);
		plx_req_finish_plain(req, flags);
	} else {
		take_lone(req, data, len);
	}
}

/* Separate, so that others save no registers for it. */
static __rte_noinline void
rx_lone_tagged(struct plx_worker *w)
{
	struct plx_tag_recv *r;
	uint64_t tag;

	plx_peer_tx_soon(w->rx->src);
	memcpy(&tag, w->rx->data, sizeof(tag)); /* once: the sender may still write */
	if (unlikely(plx_tag_stats(w->tag)->posted == 0)) {
		plx_tag_miss(w->tag);
		if (likely(w->rx->len == sizeof(struct plx_wire_eager) + 8))
			keep_lone_word(w, tag);
		else
			keep_lone(w, tag);
		return;
	}
	r = plx_tag_match(w->tag, tag);
	if (unlikely(r == NULL))
		keep_lone(w, plx_tag_missed(w->tag));
	else
		recv_lone(w, container_of(r, struct plx_req, recv.tag));
}

static inline bool
is_stream_data(const struct plx_rx *rx)
{
	return rx->op == PLX_WIRE_STREAM && rx->len >= sizeof(struct plx_wire_stream);
}

static inline bool
is_batch(const struct plx_rx *rx)
{
	return (rx->op == PLX_WIRE_RMA_BATCH || rx->op == PLX_WIRE_RMA_BATCH_DONE) &&
	       plx_wire_check(rx->op, rx->len) == 0;
}

/* It may create work implicitly. */
static __rte_noinline void
rx_lone_chan(struct plx_worker *w, const struct plx_rx *rx)
{
	plx_eps_need_turn(&w->eps);
	rx_chan_msg(w, rx);
	rx_done(w, rx);
}

/* The same. */
static __rte_noinline void
rx_lone_other(struct plx_worker *w, struct plx_rx *rx)
{
	plx_eps_need_turn(&w->eps);
	rx_switch(w, rx);
	rx_done(w, rx);
}

void
plx_worker_rx_lone(struct plx_worker *w)
{
	struct plx_rx *rx = w->rx;

	if (likely(rx->op == PLX_WIRE_EAGER && rx->len >= sizeof(struct plx_wire_eager))) {
		rx_lone_tagged(w);
	} else if (rx->op == PLX_WIRE_AM && rx->len >= sizeof(struct plx_wire_am)) {
		plx_peer_tx_soon(rx->src);
		rx_am_inline(w, rx);
	} else if (is_chan_msg(rx)) {
		rx_lone_chan(w, rx);
	} else if (is_stream_data(rx)) {
		plx_peer_tx_soon(rx->src);
		rx_stream(w, rx);
	} else if (is_batch(rx)) {
		worker_rx_batch(w, rx); /* makes no work for the turn */
	} else {
		rx_lone_other(w, rx);
	}
}

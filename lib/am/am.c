/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * am.c - messages delivered without matching: handlers, and the messages that they keep
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ring.h>

#include "plx_am.h"
#include "plx_copy.h"
#include "plx_log.h"

PLX_LOG_DEFINE(am, "plx.am");

#define AM_POLL_MAX 32 /* messages delivered in one poll */
#define BACK_LEN    sizeof(struct plx_msg *)
_Static_assert(BACK_LEN == sizeof(struct plx_wire_am), "a message that stays where it is has the one in place of the other");
#define PLAIN_ALIGN 8  /* of data that is shown where it lies, unless the application asks for more */

#define ROW(field) PLX_STAT_ROW(struct plx_am_stat, field)

const struct plx_stat_row plx_am_stat_rows[] = {
	ROW(sends), ROW(rx_borrowed), ROW(rx_kept), ROW(rx_in_place), ROW(rx_rndv),
	ROW(rx_drop_no_handler), ROW(rx_drop_bad_len), ROW(rx_drop_no_memory), ROW(rx_drop_closed),
	ROW(bad_keep),
	PLX_STAT_END,
};

int
plx_am_open(struct plx_am *am, struct plx_eps *eps, struct plx_msg_pools *msgs, bool dedicated)
{
	memset(am, 0, sizeof(*am));
	TAILQ_INIT(&am->overflow);
	am->eps = eps;
	am->msgs = msgs;
	am->align = PLAIN_ALIGN;
	return dedicated ? plx_mem_ring(PLX_AM_RING_LEN, &am->ring) : 0;
}

void
plx_am_close(struct plx_am *am)
{
	for (unsigned i = 0; i < RTE_DIM(am->pages); i++)
		free(am->pages[i]);
	plx_mem_free(am->ring);
	memset(am, 0, sizeof(*am));
}

int
plx_am_set(struct plx_am *am, uint16_t id, const struct plx_am_handler *h)
{
	struct plx_am_handler **page = &am->pages[id / PLX_AM_PAGE], *own;

	if (*page == NULL && h->cb == NULL)
		return 0;
	if (*page == NULL) {
		*page = calloc(PLX_AM_PAGE, sizeof(**page));
		if (*page == NULL)
			return -ENOMEM;
	}
	own = &(*page)[id % PLX_AM_PAGE];
	*own = *h;
	own->am = am;
	own->id = id;
	/* else all messages are stored, or some for their alignment, or there is no handler */
	own->plain = h->plain && !h->persistent && h->cb != NULL && am->align == PLAIN_ALIGN;
	return 0;
}

/* @return the handler of an id, perhaps without a cb, or NULL */
static inline const struct plx_am_handler *
am_place(const struct plx_am *am, uint16_t id)
{
	const struct plx_am_handler *page = am->pages[id / PLX_AM_PAGE];

	return likely(page != NULL) ? &page[id % PLX_AM_PAGE] : NULL;
}

static inline const struct plx_am_handler *
am_find(const struct plx_am *am, uint16_t id)
{
	const struct plx_am_handler *h = am_place(am, id);

	return likely(h != NULL && h->cb != NULL) ? h : NULL;
}

static __rte_noinline __rte_cold void
no_handler(struct plx_am *am, uint16_t id)
{
	PLX_STAT_INC(am->stat.rx_drop_no_handler);
	PLX_LOG_RATELIMIT(WARNING, am, "active message id %u has no handler: dropped", id);
}

__rte_cold void
plx_am_bad_keep(const struct plx_am_handler *h)
{
	PLX_STAT_INC(h->am->stat.bad_keep);
	PLX_LOG_RATELIMIT(WARNING, am, "the handler of active message id %u keeps data "
		"that it was not told it may", h->id);
}

/* Where the data of a stored message begins whose memory is at base. */
static inline uint8_t *
data_at(const struct plx_am *am, const uint8_t *base, uint32_t hdr_len)
{
	uintptr_t p = (uintptr_t)base + plx_am_head(hdr_len) + BACK_LEN;

	return (uint8_t *)((p + am->align - 1) & ~(uintptr_t)(am->align - 1));
}

static inline uint8_t *
data_of(const struct plx_am *am, const struct plx_msg *m, uint32_t hdr_len)
{
	return data_at(am, m->data, hdr_len);
}

/* Header, back pointer and data, and the bytes that aligning them may take. */
static inline uint64_t
room_for(const struct plx_am *am, uint32_t head, uint64_t data_len)
{
	return head + BACK_LEN + (am->align > 8 ? am->align : 0) + data_len;
}

static inline struct plx_wire_am
wire_of(const struct plx_msg *m)
{
	struct plx_wire_am h;

	memcpy(&h, &m->tag.tag, sizeof(h));
	return h;
}

/* Always inline: a call costs 20 of the 734 instructions of a turn. @param room bytes of memory for it */
static __rte_always_inline struct plx_msg *
msg_new(struct plx_am *am, struct plx_peer *src, const struct plx_wire_am *h, uint64_t data_len, uint64_t room)
{
	struct plx_msg *m = plx_msg_get(am->msgs, room);

	if (m != NULL)
		m->ep = plx_ep_of(am->eps, src);
	if (unlikely(m == NULL || m->ep == NULL)) {
		if (m != NULL)
			plx_msg_put(am->msgs, m);
		PLX_STAT_INC(am->stat.rx_drop_no_memory);
		PLX_LOG_RATELIMIT(ERR, am, "no memory for an active message of %llu bytes: lost",
			(unsigned long long)data_len);
		return NULL;
	}
	m->ep->n_msgs++;
	m->len = data_len;
	m->am = am;
	m->in_cb = false;
	memcpy(&m->tag.tag, h, sizeof(*h));
	return m;
}

static struct plx_msg *
msg_get(struct plx_am *am, struct plx_peer *src, const struct plx_wire_am *h, uint64_t data_len, uint64_t room,
	enum plx_msg_kind kind)
{
	struct plx_msg *m = msg_new(am, src, h, data_len, room);
	void *data;

	if (m == NULL)
		return NULL;
	m->kind = kind;
	data = data_of(am, m, plx_am_hdr_len(h));
	memcpy((char *)data - BACK_LEN, &m, BACK_LEN);
	return m;
}

struct plx_msg *
plx_am_msg_get(struct plx_am *am, struct plx_peer *src, const struct plx_wire_am *h,
	uint64_t data_len, enum plx_msg_kind kind)
{
	uint32_t head = plx_am_head(plx_am_hdr_len(h));
	uint64_t room = RTE_MAX(room_for(am, head, 0), PLX_MSG_ROOM);

	return msg_get(am, src, h, data_len, RTE_MIN(room, room_for(am, head, data_len)), kind);
}

void
plx_am_msg_put(struct plx_am *am, struct plx_msg *m)
{
	if (m->is_partial) {
		LIST_REMOVE(m, partial);
		m->ep->kept -= m->cost;
	}
	m->ep->n_msgs--;
	plx_msg_put(am->msgs, m);
}

/* Move to memory with more room, where the alignment of the data may differ. */
static void
am_move(const struct plx_msg *m, uint8_t *to)
{
	struct plx_wire_am h = wire_of(m);
	uint32_t hdr_len = plx_am_hdr_len(&h), head = plx_am_head(hdr_len);
	uint8_t *data = data_at(m->am, to, hdr_len);

	memcpy(to, m->data, RTE_MIN(m->got, head));
	memcpy(data - BACK_LEN, &m, BACK_LEN);
	if (m->got > head)
		plx_copy(data, data_of(m->am, m, hdr_len), m->got - head);
}

int
plx_am_write(struct plx_msg *m, const uint8_t *from, uint64_t len)
{
	struct plx_wire_am h = wire_of(m);
	uint32_t head = plx_am_head(plx_am_hdr_len(&h));
	uint64_t all = head + (m->kind == PLX_MSG_AM ? m->len : 0), n;

	if (len > all - m->got)
		return -EBADMSG;
	if (m->got + len > head) {
		n = room_for(m->am, head, m->got + len - head);
		if (n > plx_msg_room(m) && plx_msg_grow(m->am->msgs, m, n,
				room_for(m->am, head, all - head), am_move) != 0)
			return -ENOMEM;
	}
	if (m->got < head) {
		n = RTE_MIN(len, head - m->got);
		memcpy(m->data + m->got, from, n);
		m->got += n;
		from += n;
		len -= n;
	}
	if (len != 0) {
		plx_copy(data_of(m->am, m, plx_am_hdr_len(&h)) + (m->got - head), from, len);
		m->got += len;
	}
	return m->got == all;
}

/* Call the handler of a stored message and follow its result. Application's side. */
static void
deliver_msg(struct plx_am *am, struct plx_msg *m)
{
	struct plx_wire_am w = wire_of(m);
	const struct plx_am_handler *h = am_find(am, w.id);
	bool rndv = m->kind == PLX_MSG_AM_RTS;
	struct plx_am_rx rx = {.ep = m->ep, .hdr = m->data, .len = m->len, .msg = m,
		.hdr_len = plx_am_hdr_len(&w), .conn_id = w.conn_id, .id = w.id,
		.reply = (w.hdr_len & PLX_WIRE_AM_REPLY) != 0, .rndv = rndv};
	int rc;

	if (unlikely(h == NULL)) {
		no_handler(am, w.id);
		am->end(am, m, 0);
		return;
	}
	rx.data = data_of(am, m, rx.hdr_len);
	m->in_cb = true;
	rc = am->deliver(am, h, &rx);
	m->in_cb = false;
	if (m->taken)
		am->end(am, m, m->ack);
	else if (rc != -EINPROGRESS)
		am->end(am, m, rc);
}

void
plx_am_take(struct plx_msg *m, int ack)
{
	m->taken = true;
	m->ack = ack;
	if (!m->in_cb) /* otherwise when the handler returns */
		m->am->end(m->am, m, ack);
}

static inline void
to_ring(struct plx_am *am, struct plx_msg *m)
{
	if (likely(TAILQ_EMPTY(&am->overflow) && rte_ring_sp_enqueue(am->ring, m) == 0))
		return;
	plx_eps_need_turn(am->eps);
	am->eps->is_short = true; /* look whether that is too much */
	TAILQ_INSERT_TAIL(&am->overflow, m, chunk);
}

void
plx_am_flush_slow(struct plx_am *am)
{
	struct plx_msg *m;

	while ((m = TAILQ_FIRST(&am->overflow)) != NULL) {
		TAILQ_REMOVE(&am->overflow, m, chunk);
		if (rte_ring_sp_enqueue(am->ring, m) != 0) {
			TAILQ_INSERT_HEAD(&am->overflow, m, chunk);
			return;
		}
	}
}

unsigned
plx_am_poll_slow(struct plx_am *am)
{
	unsigned n = 0;
	void *m;

	while (n < AM_POLL_MAX && rte_ring_sc_dequeue(am->ring, &m) == 0) {
		deliver_msg(am, m);
		n++;
	}
	return n;
}

static inline void
pass_on(struct plx_am *am, struct plx_msg *m)
{
	if (am->ring != NULL)
		to_ring(am, m);
	else
		deliver_msg(am, m);
}

void
plx_am_arrived(struct plx_am *am, struct plx_msg *m)
{
	if (m->kind == PLX_MSG_AM_RTS)
		PLX_STAT_INC(am->stat.rx_rndv);
	else
		PLX_STAT_INC(am->stat.rx_kept);
	pass_on(am, m);
}

/* @return false: it is to be copied */
static __rte_noinline bool
keep_in_place(struct plx_am *am, struct plx_wire_am w, struct plx_rx *rx)
{
	uint32_t head = plx_am_head(plx_am_hdr_len(&w));
	uint8_t *at = (uint8_t *)(uintptr_t)rx->data;
	struct plx_queue *q = rx->src->q;
	struct plx_msg *m;
	void *buf;

	if ((uintptr_t)(at + sizeof(w) + head) % am->align != 0)
		return false;
	buf = plx_queue_rx_keep(q, rx);
	if (buf == NULL)
		return false;
	m = msg_new(am, rx->src, &w, rx->len - sizeof(w) - head, 0);
	if (m == NULL) {
		plx_queue_rx_return(q, buf);
		return true;
	}
	m->kind = PLX_MSG_AM;
	plx_msg_lies(m, q, buf, at);
	memmove(at, at + sizeof(w), head);
	memcpy(at + head, &m, BACK_LEN);
	PLX_STAT_INC(am->stat.rx_in_place);
	plx_am_arrived(am, m);
	return true;
}

void
plx_am_keep(struct plx_am *am, struct plx_rx *rx, struct plx_wire_am w, const uint8_t *p, uint32_t len)
{
	uint32_t hdr_len = plx_am_hdr_len(&w), head = plx_am_head(hdr_len);
	struct plx_msg *m;

	if (unlikely(hdr_len > PLX_WIRE_AM_HDR_MAX || len < head)) {
		PLX_STAT_INC(am->stat.rx_drop_bad_len);
		return;
	}
	if (plx_rx_is_keepable(rx) && keep_in_place(am, w, rx))
		return;
	m = msg_get(am, rx->src, &w, len - head, room_for(am, head, len - head), PLX_MSG_AM);
	if (m == NULL)
		return;
	if (plx_am_write(m, p, len) < 0) {
		PLX_STAT_INC(am->stat.rx_drop_no_memory);
		plx_am_msg_put(am, m);
		return;
	}
	PLX_STAT_INC(am->stat.rx_kept);
	pass_on(am, m);
}

static __rte_noinline void
show_slow(struct plx_am *am, struct plx_rx *from, struct plx_wire_am w, const uint8_t *p, uint32_t len)
{
	uint32_t hdr_len = plx_am_hdr_len(&w), head = plx_am_head(hdr_len);
	const struct plx_am_handler *h;
	struct plx_am_rx rx;

	if (unlikely(hdr_len > PLX_WIRE_AM_HDR_MAX || len < head)) {
		PLX_STAT_INC(am->stat.rx_drop_bad_len);
		return;
	}
	h = am_find(am, w.id);
	if (unlikely(h == NULL)) {
		no_handler(am, w.id);
		return;
	}
	rx.reply = (w.hdr_len & PLX_WIRE_AM_REPLY) != 0;
	if (h->persistent || ((uintptr_t)(p + head) & (am->align - 1)) != 0) {
		plx_am_keep(am, from, w, p, len);
		return;
	}
	rx.hdr = p;
	rx.hdr_len = hdr_len;
	rx.data = (void *)(uintptr_t)(p + head);
	rx.len = len - head;
	rx.msg = NULL;
	rx.conn_id = w.conn_id;
	rx.id = w.id;
	rx.rndv = false;
	rx.ep = unlikely(rx.reply) ? plx_ep_of(am->eps, from->src) : NULL;
	PLX_STAT_INC(am->stat.rx_borrowed);
	if (unlikely(am->deliver(am, h, &rx) == -EINPROGRESS))
		plx_am_bad_keep(h);
}

void
plx_am_show(struct plx_am *am, struct plx_rx *rx, struct plx_wire_am w, const uint8_t *p, uint32_t len)
{
	uint32_t hdr_len = w.hdr_len, head = plx_am_head(hdr_len);
	const struct plx_am_handler *h = am_place(am, w.id);

	/* PLX_WIRE_AM_REPLY makes hdr_len exceed the maximum: such messages take the slow path */
	if (unlikely(h == NULL || !h->plain || hdr_len > PLX_WIRE_AM_HDR_MAX || len < head ||
		    (uintptr_t)p % PLAIN_ALIGN != 0)) {
		show_slow(am, rx, w, p, len);
		return;
	}
	PLX_STAT_INC(am->stat.rx_borrowed);
	am->plain(h, p, hdr_len, p + head, len - head); /* the last call: no register is saved */
}

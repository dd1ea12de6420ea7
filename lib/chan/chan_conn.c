/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_conn.c - opening channels: ask, answer, done, join; control messages of peers
 *
 * Design notes
 * - The server's end is open when DONE comes, and not before: a client that gave up meanwhile
 *   answers with CLOSE, so there is no channel with one end.
 */
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "chan_int.h"

/* An ASK that waits for a full device. */
struct chan_hello {
	struct plx_pend pend;
	struct plx_chans *cs;
	struct plx_ep *ep;
	struct plx_wire_chan_ask h;
	uint32_t len;
	uint8_t data[PLX_WIRE_CHAN_DATA_MAX];
};
_Static_assert(sizeof(struct chan_hello) <= PLX_WIRE_CHAN_DATA_MAX + 128, "its pool's objects");

/* It is agreed on once, for the life of the connection. */
static uint32_t
max_send(const struct plx_chans *cs, const struct plx_ep *ep)
{
	plx_peer_settle(ep->peer);
	return RTE_MIN(cs->max_send, ep->peer->mtu - (uint32_t)sizeof(struct plx_wire_chan_msg));
}

static int
chan_init(struct plx_chans *cs, struct plx_chan *c, struct plx_ep *ep, uint8_t attr, uint8_t state)
{
	int rc;

	memset(c, 0, sizeof(*c));
	rc = chan_number(cs, c);
	if (rc != 0)
		return rc;
	c->chans = cs;
	c->ep = ep;
	c->attr = attr;
	c->state = state;
	ep->refs++;
	LIST_INSERT_HEAD(&plx_chan_ep(ep)->all, c, link);
	chan_timer_init(c);
	chan_msg_init(c);
	plx_chan_set_timeout(c, cs->send_ticks);
	plx_chan_set_keepalive(c, cs->keep_ticks);
	return 0;
}

static int
hello_send(struct plx_pend *p)
{
	struct chan_hello *hello = container_of(p, struct chan_hello, pend);
	struct plx_tx tx = {.peer = hello->ep->peer, .hdr = &hello->h, .hdr_len = sizeof(hello->h),
		.data = hello->data, .len = hello->len, .op = PLX_WIRE_CHAN_ASK};
	int rc = plx_peer_tx(&tx);

	if (rc == 0)
		plx_pool_put(&hello->cs->hellos, hello);
	return rc;
}

static void
hello_fail(struct plx_pend *p, int err)
{
	struct chan_hello *hello = container_of(p, struct chan_hello, pend);

	(void)err; /* the channel's ep reports it */
	plx_pool_put(&hello->cs->hellos, hello);
}

int
plx_chan_ask(struct plx_chans *cs, struct plx_chan *c, struct plx_ep *ep, uint8_t attr,
	const void *data, uint32_t len, uint64_t timeout_ticks)
{
	struct chan_hello *hello = plx_pool_get(&cs->hellos);
	int rc;

	if (hello == NULL)
		return -ENOMEM;
	rc = chan_init(cs, c, ep, attr, PLX_CHAN_CONNECTING);
	if (rc != 0)
		goto put;
	rc = plx_ep_connect(ep);
	if (rc != 0) { /* there is no peer: an event reports it */
		plx_pool_put(&cs->hellos, hello);
		chan_break(cs, c, -ECONNREFUSED);
		return 0;
	}
	c->max_send = max_send(cs, ep);
	if (timeout_ticks != 0) {
		c->connect_ticks = rte_rdtsc() + timeout_ticks;
		chan_timer_at(c, c->connect_ticks);
	}
	hello->pend.send = hello_send;
	hello->pend.fail = hello_fail;
	hello->pend.conn_id = c->id;
	hello->cs = cs;
	hello->ep = ep;
	hello->h = (struct plx_wire_chan_ask){.from = c->id, .max = c->max_send,
		.lossy = chan_lossy_where(ep, attr), .attr = attr};
	hello->len = len;
	if (len != 0)
		memcpy(hello->data, data, len);
	rc = plx_ep_open(ep) ? hello_send(&hello->pend) : -EAGAIN;
	if (rc == -EAGAIN)
		plx_ep_pend(ep, &hello->pend);
	else if (rc != 0)
		hello_fail(&hello->pend, rc);
	return 0;
put:
	plx_pool_put(&cs->hellos, hello);
	return rc;
}

static void
conn_refuse(struct plx_chans *cs, struct plx_ep *ep, uint32_t to, int err)
{
	struct plx_wire_chan_answer h = {.to = to, .err = err};

	PLX_STAT_INC(cs->stat.refused);
	(void)plx_ep_tx_ctl(ep, PLX_WIRE_CHAN_ANSWER, &h, sizeof(h));
}

void
plx_chan_on_ask(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan_ask *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_ep *ep = plx_ep_of(cs->eps, src);
	struct plx_chan_request *r;

	if (ep == NULL) {
		PLX_STAT_INC(cs->stat.rx_drop_no_memory);
		return;
	}
	if (len > PLX_WIRE_CHAN_DATA_MAX || h->attr >= PLX_CHAN_UNICAST_N) {
		PLX_STAT_INC(cs->stat.rx_drop_bad_len);
		return;
	}
	r = cs->n_asks < PLX_CHAN_ASKS_MAX ? plx_pool_get(&cs->asks) : NULL;
	if (r == NULL) {
		if (TAILQ_EMPTY(&ep->pending)) /* a peer that does not read gets no answer */
			conn_refuse(cs, ep, h->from, -ECONNREFUSED);
		return;
	}
	cs->n_asks++;
	ep->refs++;
	r->ep = ep;
	r->ask = *h;
	r->len = len;
	if (len != 0)
		memcpy(r->data, data, len);
	r->item.chans = cs;
	r->item.chan = NULL;
	r->item.chan_id = 0;
	r->item.kind = PLX_CHAN_REQUEST;
	r->item.status = 0;
	r->item.answered = false;
	chan_tell(cs, &r->item);
}

int
plx_chan_accept(struct plx_chans *cs, struct plx_chan_request *r, struct plx_chan *c)
{
	struct plx_wire_chan_answer h = {.to = r->ask.from};
	int rc = chan_init(cs, c, r->ep, r->ask.attr, PLX_CHAN_ACCEPTING);

	if (rc != 0)
		return rc;
	c->remote = r->ask.from;
	rc = plx_ep_connect(r->ep);
	if (rc != 0) {
		conn_refuse(cs, r->ep, r->ask.from, rc); /* for example out of descriptors: the
		                                          * client gets an answer later */
		chan_break(cs, c, -ECONNRESET);
		return 0;
	}
	c->max_send = RTE_MIN(max_send(cs, r->ep), r->ask.max);
	if (r->ask.lossy != 0)
		h.lossy = chan_lossy_where(r->ep, c->attr);
	if (h.lossy != 0 && chan_lossy_begin(cs, c, r->ask.lossy) != 0)
		h.lossy = 0;
	h.from = c->id;
	h.max = c->max_send;
	(void)plx_ep_tx_ctl(r->ep, PLX_WIRE_CHAN_ANSWER, &h, sizeof(h));
	return 0;
}

void
plx_chan_reject(struct plx_chans *cs, struct plx_chan_request *r)
{
	conn_refuse(cs, r->ep, r->ask.from, -ECONNREFUSED);
}

static void
conn_opened(struct plx_chans *cs, struct plx_chan *c)
{
	PLX_STAT_INC(cs->stat.opened);
	c->state = PLX_CHAN_OPEN;
}

static void
chan_open(struct plx_chans *cs, struct plx_chan *c, enum plx_chan_kind kind)
{
	conn_opened(cs, c);
	chan_tell_of(cs, c, kind, 0);
	if (c->keep_ticks != 0)
		plx_chan_set_keepalive(c, c->keep_ticks);
}

void
chan_done(struct plx_chans *cs, struct plx_chan *c)
{
	if (c->state == PLX_CHAN_ACCEPTING)
		chan_open(cs, c, PLX_CHAN_ACCEPTED);
}

void
plx_chan_on_answer(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan_answer *h)
{
	struct plx_chan *c = chan_find(cs, src, h->to);

	if (c == NULL || c->state != PLX_CHAN_CONNECTING) {
		if (h->err == 0)
			chan_tell_stray(cs, src, h->from, h->to);
		return;
	}
	if (h->err != 0) {
		chan_break(cs, c, -ECONNREFUSED);
		return;
	}
	c->remote = h->from;
	c->max_send = RTE_MIN(c->max_send, h->max);
	if (c->attr == PLX_CHAN_UU && h->lossy != 0)
		(void)chan_lossy_begin(cs, c, h->lossy); /* or by the connection */
	chan_ctl(c->ep, PLX_WIRE_CHAN_DONE, c->remote, 0);
	chan_open(cs, c, PLX_CHAN_CONNECTED);
}

void
plx_chan_joined(struct plx_chan *c)
{
	chan_tell_of(c->chans, c, PLX_CHAN_CONNECTED, 0);
}

int
plx_chan_join(struct plx_chans *cs, struct plx_chan *c, uint8_t attr, uint64_t group)
{
	bool open;
	int rc = 0;

	if (cs->group_q != NULL)
		rc = plx_queue_group_join(cs->group_q, group, attr == PLX_CHAN_MC_RX);
	if (rc != 0 && rc != -EINPROGRESS)
		return rc;
	open = rc == 0;
	rc = chan_init(cs, c, &cs->nobody, attr, PLX_CHAN_CONNECTING);
	if (rc != 0) {
		if (cs->group_q != NULL)
			plx_queue_group_leave(cs->group_q, group, attr == PLX_CHAN_MC_RX);
		return rc;
	}
	c->group = group;
	c->max_send = RTE_MIN(cs->max_send, PLX_CHAN_GROUP_MAX);
	if (cs->group_q != NULL)
		c->max_send = RTE_MIN(c->max_send, cs->group_q->group_mtu);
	if (open)
		conn_opened(cs, c);
	if (open && cs->group_q != NULL)
		plx_chan_joined(c);
	return 0;
}

void
plx_chans_on_joined(struct plx_chans *cs, uint64_t group, bool rx, int rc)
{
	struct plx_chan *c, *next;

	for (c = LIST_FIRST(&plx_chan_ep(&cs->nobody)->all); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (c->group != group || (c->attr == PLX_CHAN_MC_RX) != rx ||
			c->state != PLX_CHAN_CONNECTING)
			continue;
		if (rc != 0) {
			chan_break(cs, c, rc);
			continue;
		}
		conn_opened(cs, c);
		plx_chan_joined(c);
	}
}

static void
on_close(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan *h)
{
	struct plx_chan *c = chan_find(cs, src, h->to);
	const struct plx_ep *ep = src->user;

	if (h->to == 0 && ep != NULL) { /* an answer to a stray message: rare */
		chan_group_leave(cs, ep, h->value);
		LIST_FOREACH(c, &plx_chan_ep(ep)->all, link) {
			if (c->remote == h->value && c->state == PLX_CHAN_OPEN)
				break;
		}
	}
	if (c != NULL && (c->remote == h->value || c->state == PLX_CHAN_ACCEPTING))
		chan_break(cs, c, -ECONNRESET);
}

/* Messages for open channels only. */
static void
on_open_ctl(struct plx_chans *cs, struct plx_chan *c, uint8_t op, const struct plx_wire_chan *h)
{
	c->heard = true;
	switch (op) {
	case PLX_WIRE_CHAN_PING:
		chan_ctl(c->ep, PLX_WIRE_CHAN_PONG, c->remote, 0);
		break;
	case PLX_WIRE_CHAN_RNR:
		chan_on_rnr(cs, c, h->value);
		break;
	case PLX_WIRE_CHAN_COPY:
		chan_on_copy(cs, c, h->value);
		break;
	case PLX_WIRE_CHAN_READY:
		c->rnr = false;
		chan_push(cs, c);
		break;
	case PLX_WIRE_CHAN_PONG:
	case PLX_WIRE_CHAN_DONE: /* again */
		break;
	default:
		PLX_STAT_INC(cs->stat.rx_drop_no_chan);
		break;
	}
}

void
plx_chan_on_ctl(struct plx_chans *cs, struct plx_peer *src, uint8_t op,
	const struct plx_wire_chan *h)
{
	struct plx_chan *c;

	if (op == PLX_WIRE_CHAN_CLOSE) {
		on_close(cs, src, h);
		return;
	}
	c = chan_find(cs, src, h->to);
	if (c == NULL)
		PLX_STAT_INC(cs->stat.rx_drop_no_chan);
	else if (op == PLX_WIRE_CHAN_DONE && c->state == PLX_CHAN_ACCEPTING)
		chan_open(cs, c, PLX_CHAN_ACCEPTED);
	else if (c->state == PLX_CHAN_OPEN)
		on_open_ctl(cs, c, op, h);
	else
		PLX_STAT_INC(cs->stat.rx_drop_no_chan);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_group.c - groups: one sender, many receivers
 *
 * Design notes
 * - There is no server. A new member publishes itself on the machine (the face does), and then
 *   looks for earlier ones: a sender adds the receivers that it finds as members, a receiver
 *   sends JOIN to the senders that it finds. Of two that join at once at least one sees the
 *   other.
 * - A former member is detected by a message to it, which its worker answers with CLOSE. Messages
 *   are sent at the end of the turn, so members that joined in it get them. Nobody is waited for:
 *   a message without room in a member's ring is dropped.
 * - If the device has groups of its own there are no members, and nothing is published: the
 *   device joins, and each message goes to it once.
 */
#include <string.h>

#include <rte_common.h>

#include "chan_int.h"

static void
member_remove(struct plx_chans *cs, struct plx_chan_member *m)
{
	LIST_REMOVE(m, link);
	m->ep->refs--;
	plx_pool_put(&cs->members, m);
}

void
chan_group_fini(struct plx_chans *cs, struct plx_chan *c)
{
	struct plx_chan_member *m;

	while ((m = LIST_FIRST(&c->members)) != NULL)
		member_remove(cs, m);
	if (c->ep == &cs->nobody && cs->group_q != NULL)
		plx_queue_group_leave(cs->group_q, c->group, c->attr == PLX_CHAN_MC_RX);
}

/* Add the receiver's channel with this number to the members of c. */
static int
member_add(struct plx_chans *cs, struct plx_chan *c, struct plx_ep *ep, uint32_t id)
{
	struct plx_chan_member *m;

	LIST_FOREACH(m, &c->members, link) {
		if (m->ep == ep && m->id == id)
			return 0;
	}
	plx_peer_settle(ep->peer); /* a message that can't be sent at once is dropped */
	m = plx_pool_get(&cs->members);
	if (m == NULL)
		return -ENOMEM;
	m->ep = ep;
	m->id = id;
	ep->refs++;
	LIST_INSERT_HEAD(&c->members, m, link);
	return 0;
}

int
plx_chan_meet(struct plx_chans *cs, struct plx_chan *c, struct plx_ep *ep, uint32_t id)
{
	struct plx_wire_chan_join h = {.group = c->group, .from = c->id};
	int rc = plx_ep_connect(ep);

	if (rc == 0)
		rc = c->attr == PLX_CHAN_MC_TX ? member_add(cs, c, ep, id)
			: plx_ep_tx_ctl(ep, PLX_WIRE_CHAN_JOIN, &h, sizeof(h));
	return rc;
}

void
plx_chan_on_join(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan_join *h)
{
	struct plx_ep *ep = plx_ep_of(cs->eps, src);
	struct plx_chan *c;

	LIST_FOREACH(c, &plx_chan_ep(&cs->nobody)->all, link) {
		if (c->attr != PLX_CHAN_MC_TX || c->group != h->group)
			continue;
		if (ep == NULL || plx_ep_connect(ep) != 0 || member_add(cs, c, ep, h->from) != 0)
			PLX_STAT_INC(cs->stat.rx_drop_no_memory);
	}
}

void
chan_group_leave(struct plx_chans *cs, const struct plx_ep *ep, uint32_t id)
{
	struct plx_chan_member *m, *next;
	struct plx_chan *c;

	LIST_FOREACH(c, &plx_chan_ep(&cs->nobody)->all, link) {
		for (m = LIST_FIRST(&c->members); m != NULL; m = next) {
			next = LIST_NEXT(m, link);
			if (m->ep == ep && (id == 0 || m->id == id))
				member_remove(cs, m);
		}
	}
}

struct plx_chan *
chan_group_find(struct plx_chans *cs, uint32_t id)
{
	uint32_t i = id & (PLX_CHAN_MAX - 1);
	struct plx_chan *c = i < cs->n_slots ? cs->slots[i].chan : NULL;

	return c != NULL && c->id == id && c->attr == PLX_CHAN_MC_RX ? c : NULL;
}

void
chan_group_post(struct plx_chans *cs, struct plx_chan_op *op)
{
	TAILQ_INSERT_TAIL(&cs->group_ops, op, link);
}

static void
send_to_all(struct plx_chans *cs, struct plx_chan *c, const struct plx_chan_op *op)
{
	struct plx_chan_member *m;

	if (cs->group_q != NULL) {
		if (plx_queue_group_tx(cs->group_q, c->group, op->data, op->len) != 0)
			PLX_STAT_INC(cs->stat.tx_drop_full);
		return;
	}
	LIST_FOREACH(m, &c->members, link) {
		if (!plx_ep_open(m->ep) || chan_tx(m->ep, PLX_WIRE_CHAN_LOSSY, m->id, 0, op) != 0)
			PLX_STAT_INC(cs->stat.tx_drop_full);
	}
}

void
chan_group_flush(struct plx_chans *cs)
{
	struct plx_chan_op *op;

	while ((op = TAILQ_FIRST(&cs->group_ops)) != NULL) {
		struct plx_chan *c = op->item.chan;

		TAILQ_REMOVE(&cs->group_ops, op, link);
		if (op->item.chan_id == c->id) {
			PLX_STAT_INC(cs->stat.msgs);
			send_to_all(cs, c, op);
		}
		op->item.status = 0;
		chan_tell(cs, &op->item);
	}
}

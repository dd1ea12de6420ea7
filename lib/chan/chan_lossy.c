/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_lossy.c - unreliable channels by datagrams, if the device has them
 *
 * Design notes
 * - ASK and ANSWER contain each side's address for datagrams. From then on messages need no
 *   connection of the ep's, and may overtake those of the connection: the first may come before
 *   DONE, the last after CLOSE. Their loss is no error: an operation is complete when the device
 *   has taken its message.
 * - Messages that the device has no room for are in one list for all channels, as the room is
 *   shared.
 */
#include <rte_common.h>

#include "chan_int.h"

uint32_t
chan_lossy_where(const struct plx_ep *ep, uint8_t attr)
{
	uint32_t where;

	if (attr != PLX_CHAN_UU || plx_queue_lossy_open(ep->peer->q, &where) != 0)
		return 0;
	return where;
}

int
chan_lossy_begin(struct plx_chans *cs, struct plx_chan *c, uint32_t where)
{
	struct plx_peer *peer = c->ep->peer;

	if (plx_peer_lossy_to(peer, where) != 0) {
		PLX_STAT_INC(cs->stat.rx_drop_bad_value);
		return -EINVAL;
	}
	c->lossy = true;
	c->max_send = RTE_MIN(c->max_send,
		peer->lossy_mtu - (uint32_t)sizeof(struct plx_wire_chan));
	return 0;
}

static int
lossy_tx(const struct plx_chan *c, const struct plx_chan_op *op)
{
	const struct plx_wire_chan h = {.to = c->remote};
	const struct plx_tx tx = {.peer = c->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.data = op->data, .len = op->len, .op = PLX_WIRE_CHAN_LOSSY};

	return plx_peer_lossy_tx(&tx);
}

static void
lossy_over(struct plx_chans *cs, struct plx_chan_op *op, int status)
{
	PLX_STAT_ADD(cs->stat.msgs, status == 0);
	PLX_STAT_ADD(cs->stat.lossy_msgs, status == 0);
	op->item.status = status;
	chan_tell(cs, &op->item);
}

bool
chan_lossy_post(struct plx_chans *cs, struct plx_chan_op *op)
{
	const struct plx_chan *c = op->item.chan;
	int rc;

	if (!c->lossy)
		return false;
	rc = TAILQ_EMPTY(&cs->lossy_ops) ? lossy_tx(c, op) : -EAGAIN;
	if (rc == -EAGAIN)
		TAILQ_INSERT_TAIL(&cs->lossy_ops, op, link);
	else
		lossy_over(cs, op, rc);
	return true;
}

void
chan_lossy_flush(struct plx_chans *cs)
{
	struct plx_chan_op *op;

	while ((op = TAILQ_FIRST(&cs->lossy_ops)) != NULL) {
		const struct plx_chan *c = op->item.chan;
		int rc = op->item.chan_id == c->id && c->state == PLX_CHAN_OPEN ? lossy_tx(c, op)
										: -ECONNRESET;

		if (rc == -EAGAIN)
			return;
		TAILQ_REMOVE(&cs->lossy_ops, op, link);
		lossy_over(cs, op, rc);
	}
}

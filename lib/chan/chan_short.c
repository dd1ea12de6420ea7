/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_short.c - a short message that nothing is in the way of: by far the most
 */
#include <rte_common.h>

#include "chan_int.h"

/* What of the header follows the word that the device takes by itself. */
#define HDR_REST (uint32_t)(sizeof(struct plx_wire_chan_msg) - sizeof(uint64_t))

_Static_assert(HDR_REST == PLX_CHAN_HDR_REST, "as the header of the library says");

void
plx_chan_post_short(struct plx_chans *cs, struct plx_chan_op *op)
{
	struct plx_chan *c = op->item.chan;
	const uint64_t word = (uint64_t)c->tx_seq << 32 | c->remote;
	const uint64_t rest = c->rx_next; /* and not urgent: by one store, as the device reads it */

	memcpy(&op->hdr.ack, &rest, sizeof(rest));
	if (unlikely(plx_peer_tx_short(c->ep->peer, PLX_WIRE_CHAN_MSG, word, &op->hdr.ack,
			     HDR_REST + op->len) != 0)) {
		plx_chan_post(cs, op);
		return;
	}
	if (c->owes_ack)
		chan_ack_told(cs, c);
	op->state = PLX_CHAN_OP_SENT;
	op->due_ticks = 0;
	op->seq = c->tx_seq++;
	TAILQ_INSERT_TAIL(&c->ops, op, link);
	PLX_STAT_INC(cs->stat.msgs);
}

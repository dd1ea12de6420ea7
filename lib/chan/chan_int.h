/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_int.h - between the files of lib/chan
 */
#ifndef CHAN_INT_H
#define CHAN_INT_H

#include <string.h>

#include "plx_chan.h"
#include "plx_log.h"

PLX_LOG_DECLARE(chan);

/** @return the channel with this number, if it is one with this peer; else it is counted. */
static inline struct plx_chan *
chan_find(struct plx_chans *cs, struct plx_peer *src, uint32_t id)
{
	uint32_t i = id & (PLX_CHAN_MAX - 1);
	struct plx_chan *c = likely(i < cs->n_slots) ? cs->slots[i].chan : NULL;

	return likely(c != NULL && c->id == id && c->ep->peer == src) ? c : NULL;
}

static inline bool
chan_reliable(const struct plx_chan *c)
{
	return c->attr < PLX_CHAN_UU;
}

/* A receiver. */
struct plx_chan_member {
	LIST_ENTRY(plx_chan_member) link;
	struct plx_ep *ep; /* a reference */
	uint32_t id;	   /* of its channel */
};

/** Run the channel's timers at this time, or before. */
static inline void
chan_timer_at(struct plx_chan *c, uint64_t due_ticks)
{
	if (!c->timer.armed || due_ticks < c->timer.due_ticks)
		plx_timer_arm(c->chans->timers, &c->timer, due_ticks);
}

/** All messages before this number have arrived. @return whether that is valid */
static inline bool
chan_acked(struct plx_chans *cs, struct plx_chan *c, uint32_t value)
{
	if (unlikely(value - c->acked > c->tx_seq - c->acked)) {
		PLX_STAT_INC(cs->stat.rx_drop_bad_value);
		return false;
	}
	c->acked = value;
	c->heard = true;
	return true;
}

/** Give a message to the device. @return 0, -EAGAIN, or the ep's error */
static inline int
chan_tx(struct plx_ep *ep, uint8_t code, uint32_t to, uint32_t value, const struct plx_chan_op *op)
{
	struct plx_wire_chan h = {.to = to, .value = value};
	struct plx_tx tx;
	uint64_t word;

	if (likely(op->len <= ep->peer->short_max)) {
		memcpy(&word, &h, sizeof(word));
		return plx_ep_tx_short(ep, code, word, op->data, op->len);
	}
	tx = (struct plx_tx){.peer = ep->peer, .hdr = &h, .hdr_len = sizeof(h), .data = op->data,
		.len = op->len, .op = code};
	return plx_peer_tx(&tx);
}

/* chan_table.c: channels by their numbers, and notifications */
int chan_number(struct plx_chans *cs, struct plx_chan *c);
void chan_forget(struct plx_chans *cs, struct plx_chan *c);
void chan_tell_ring(struct plx_chans *cs, struct plx_chan_item *item);
void chan_tell_overflow(struct plx_chans *cs);
/** Deliver an item to the application's side. */
static inline void
chan_tell(struct plx_chans *cs, struct plx_chan_item *item)
{
	if (likely(cs->ring == NULL))
		cs->deliver(cs, item);
	else
		chan_tell_ring(cs, item);
}

/** Report the state of a channel, or with NULL of all. */
void chan_tell_of(struct plx_chans *cs, struct plx_chan *c, enum plx_chan_kind kind, int status);
void chan_ctl(struct plx_ep *ep, uint8_t op, uint32_t to, uint32_t value);
/**
 * The channel of a message does not exist: its sender's end is useless. Without channels
 * nothing is sent.
 */
void chan_tell_stray(struct plx_chans *cs, struct plx_peer *src, uint32_t to, uint32_t value);
/** A message for a channel that does not exist, or is not open any more: answer its sender. */
void chan_stray(struct plx_chans *cs, struct plx_peer *src, uint32_t id);

/* chan_group.c */
void chan_group_fini(struct plx_chans *cs, struct plx_chan *c);
/** A member has closed; with id 0 all members of an ep. */
void chan_group_leave(struct plx_chans *cs, const struct plx_ep *ep, uint32_t id);
/** @return the channel by which a group is received, or NULL */
struct plx_chan *chan_group_find(struct plx_chans *cs, uint32_t id);
void chan_group_post(struct plx_chans *cs, struct plx_chan_op *op);
void chan_group_flush(struct plx_chans *cs);

/* chan_lossy.c */
/** @return this side's address for the datagrams of such a channel; 0: none */
uint32_t chan_lossy_where(const struct plx_ep *ep, uint8_t attr);
/** The other side's address for datagrams has arrived, valid or not. Errors: -EINVAL: counted. */
int chan_lossy_begin(struct plx_chans *cs, struct plx_chan *c, uint32_t where);
/** @return whether the operation is a datagram */
bool chan_lossy_post(struct plx_chans *cs, struct plx_chan_op *op);
void chan_lossy_flush(struct plx_chans *cs);

/* chan_room.c */
/** There was no buffer for its message: it waits for READY. */
void chan_starve(struct plx_chans *cs, struct plx_chan *c);
void chan_unstarve(struct plx_chans *cs, struct plx_chan *c);

/* chan_send.c */
void chan_on_rnr(struct plx_chans *cs, struct plx_chan *c, uint32_t value);
void chan_on_copy(struct plx_chans *cs, struct plx_chan *c, uint32_t value);
void chan_msg_init(struct plx_chan *c);
void chan_push(struct plx_chans *cs, struct plx_chan *c);
void chan_drop_ops(struct plx_chans *cs, struct plx_chan *c, int err);

/* chan_end.c */
/** The channel is unusable: operations in flight complete with err. */
void chan_break(struct plx_chans *cs, struct plx_chan *c, int err);
/** Notify the peer of the close, after unreturned acknowledgements. */
void chan_close(struct plx_chan *c);

/* chan_time.c */
void chan_timer_init(struct plx_chan *c);

/* chan_conn.c */
/** A message from the other end implies its DONE, which arrives later on another path. */
void chan_done(struct plx_chans *cs, struct plx_chan *c);

#endif

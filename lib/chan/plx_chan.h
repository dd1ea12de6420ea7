/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_chan.h - channels: many connections between two workers, over one ep
 *
 * Design notes
 * - Both sides agree on a channel (ASK, ANSWER, DONE); it has a number on each. All channels of
 *   two workers share the ep, so a channel costs no buffers: receive buffers belong to the
 *   worker, in bounded number. A message without a buffer is dropped and its sender stopped
 *   (RNR); it begins again with that message when there is room (READY). Devices are reliable, so
 *   nothing else is ever sent twice.
 * - Messages of a reliable channel are numbered. The receiver acknowledges them with its own next
 *   message on the channel. Without one, an ACK follows in the first turn without arrivals, and
 *   after PLX_CHAN_ACK_MAX messages at the latest; at the end of the same turn if the sender
 *   waits for it (urgent). The sender learns of it a turn after the message, which it may want to
 *   answer at once. An operation is complete when its message is acknowledged, or when its RMA is
 *   complete; they are in the channel's list in the order of issue, and RO channels complete them
 *   in that order.
 * - The application's side gets items: completed operations, messages, requests, notes. Inline
 *   they are delivered at once; dedicated they travel through a ring. An item of a channel that
 *   has ended meanwhile has another number than the channel's memory has now; this identifies it.
 */
#ifndef PLX_CHAN_H
#define PLX_CHAN_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "plx_ep.h"
#include "plx_mem.h"
#include "plx_req.h"
#include "plx_stat.h"
#include "plx_timer.h"
#include "plx_wire.h"

#define PLX_CHAN_MAX	  (1u << 20) /* channels of a worker, and one that is never used */
#define PLX_CHAN_ASKS_MAX 16384	     /* unanswered requests; more are refused */
#define PLX_CHAN_RING_LEN 8192	     /* items in flight to the application; then a list */
#define PLX_CHAN_ACK_MAX  8	     /* messages before an acknowledgement */
#define PLX_CHAN_RX_SHORT 176	     /* bytes of a message that need no long buffer */
#define PLX_CHAN_TX_SHORT 144	     /* of a sent one */
#define PLX_CHAN_HDR_REST 8	     /* bytes that a device counts as data of a short one */

/** Guarantees of a channel; also on the wire. */
enum plx_chan_attr {
	PLX_CHAN_RO, /* reliable, ordered */
	PLX_CHAN_RU, /* reliable */
	PLX_CHAN_UU, /* dropped without a buffer */
	PLX_CHAN_UNICAST_N,
	PLX_CHAN_MC_TX = PLX_CHAN_UNICAST_N, /* to a group */
	PLX_CHAN_MC_RX,			     /* from a group */
};

#define PLX_CHAN_GROUP_MAX 1024u /* longest message to a group: every member accepts it */

enum plx_chan_state {
	PLX_CHAN_NONE,
	PLX_CHAN_CONNECTING, /* client: asked */
	PLX_CHAN_ACCEPTING,  /* server: answered */
	PLX_CHAN_OPEN,
	PLX_CHAN_CLOSED, /* err is the reason */
};

struct plx_chan_stat {
	uint64_t opened, refused, msgs, rmas;
	uint64_t lossy_msgs; /* of msgs, those that went as datagrams */
	uint64_t rx_msgs, rx_drop_no_buf; /* the latter: unreliable ones */
	uint64_t tx_drop_full;		  /* to a member of a group whose ring was full */
	uint64_t acks; /* sent alone, without a message that carries them */
	uint64_t rnr_told, rnr_heard, timeouts, keepalives, keepalive_timeouts;
	uint64_t fetches;	   /* messages read from their sender's memory */
	uint64_t unfetched;	   /* that could not be, and were requested */
	uint64_t rx_again;	   /* after RNR or COPY, before it was sent again */
	uint64_t rx_drop_no_chan;  /* for a channel that does not exist, or not of the sender */
	uint64_t rx_drop_bad_len, rx_drop_bad_value, rx_drop_no_memory;
};

extern const struct plx_stat_row plx_chan_stat_rows[];

/** Kinds of items. */
enum plx_chan_kind {
	PLX_CHAN_SENT, /* an operation of the application is complete */
	PLX_CHAN_RECV,
	PLX_CHAN_REQUEST,
	PLX_CHAN_CONNECTED, /* or not: status */
	PLX_CHAN_ACCEPTED,  /* or not: status */
	PLX_CHAN_SILENCE,   /* keepalive timed out */
	PLX_CHAN_FAILED,    /* the device; of no channel */
};

/** A notification for the application's side, which returns the item. */
struct plx_chan_item {
	STAILQ_ENTRY(plx_chan_item) link;
	struct plx_chans *chans;
	struct plx_chan *chan; /* REQUEST, FAILED: NULL */
	uint32_t chan_id;      /* of chan, at the creation of the item */
	uint8_t kind;	       /* enum plx_chan_kind */
	uint8_t flags;	       /* SENT: the face's */
	bool answered;	       /* REQUEST */
	bool held;	       /* the face's: the program has it */
	int status;	       /* 0 or -errno */
	uint64_t event[3];     /* the face's */
};
STAILQ_HEAD(plx_chan_items, plx_chan_item);

/** A message that arrived. */
struct plx_chan_rx {
	struct plx_chan_item item; /* its chans and kind never change */
	uint32_t len;
	bool is_long; /* nor does this */
	void *data;   /* nor this: bytes */
	alignas(8) uint8_t bytes[PLX_CHAN_RX_SHORT];
};

/** A client's request. */
struct plx_chan_request {
	struct plx_chan_item item;
	struct plx_ep *ep; /* a reference */
	struct plx_wire_chan_ask ask;
	uint32_t len; /* bytes of data */
	alignas(8) uint8_t data[PLX_WIRE_CHAN_DATA_MAX];
};

/** State of an operation. */
enum plx_chan_op_state {
	PLX_CHAN_OP_NEW,
	PLX_CHAN_OP_MOVES, /* its RMA */
	PLX_CHAN_OP_MSG,   /* its message is to be sent */
	PLX_CHAN_OP_SENT,  /* and not acknowledged yet */
	PLX_CHAN_OP_OVER,
};

/** An operation: a message, or RMA and perhaps a message after it. The face fills it in. */
struct plx_chan_op {
	/* line 0 */
	struct plx_chan_item item;
	/* line 1 */
	TAILQ_ENTRY(plx_chan_op) link;
	const void *data; /* of the message: bytes, a long buffer, or the application's */
	uint32_t len;
	uint32_t seq;
	uint8_t state; /* enum plx_chan_op_state */
	bool has_msg;
	bool own_buf; /* data is a long buffer of the pool's */
	bool urgent;  /* the application waits for its completion */
	bool any;     /* allocated by plx_chan_op_get() */
	void *context;	    /* the face's */
	uint64_t due_ticks; /* send timeout; 0: none */
	uint64_t lent;	    /* plx_wire_chan_lent() while the peer may read data; the peer reads it */
	/* line 2 */
	alignas(8) struct plx_wire_chan_msg hdr; /* header of the message on the wire */
	uint8_t bytes[PLX_CHAN_TX_SHORT];
	struct {
		uint64_t len; /* 0: no RMA */
		void *local;
		uint64_t remote; /* address in the peer's process */
		uint64_t token;
		uint32_t index;
		bool get, fence;
		uint8_t n_ends; /* checked and incomplete pieces */
		int err;	/* the first of them */
	} rma;
};
_Static_assert(offsetof(struct plx_chan_op, hdr) == 128, "a short message is in three lines");
_Static_assert(offsetof(struct plx_chan_op, bytes) ==
		       offsetof(struct plx_chan_op, hdr) + sizeof(struct plx_wire_chan_msg),
	"a short message and its header are sent as one");
TAILQ_HEAD(plx_chan_ops, plx_chan_op);

/** A channel; embedded in the face's struct, in memory that remains a channel's. */
struct plx_chan {
	/* line 0: each message */
	struct plx_ep *ep;
	uint32_t remote;  /* there */
	uint32_t tx_seq;  /* of the next message; as in its header */
	uint32_t id;	  /* here; 0 when it has ended */
	uint32_t acked;	  /* all before it are */
	uint32_t rx_next; /* number of the next message that is taken */
	uint32_t tx_at_rx; /* tx_seq at the last received one */
	uint32_t n_moves; /* operations with RMA in flight */
	uint8_t state; /* enum plx_chan_state */
	uint8_t attr;  /* enum plx_chan_attr */
	bool pended;   /* in ep's pending list */
	bool rnr;      /* the peer has no buffer for us */
	bool owes_ack;
	bool starved; /* we had no buffer for the peer */
	bool heard;   /* a message arrived since the last ping */
	bool pinged;
	bool pushing;
	bool invited; /* got READY, and has sent nothing yet */
	bool copies;  /* the peer can't read our memory */
	bool lossy;   /* its messages are datagrams */
	bool answers; /* a message was sent between the last two received ones */
	bool answers_first; /* and before the program returned the first */
	_Atomic int err; /* -errno; writer: owner; readers: application's side */
	struct plx_chan_ops ops; /* in the order of issue */
	struct plx_chan_op *next; /* the first of ops that is not completely sent */
	LIST_ENTRY(plx_chan) ack_link; /* while an ACK is due */
	uint32_t max_send;
	struct plx_pend pend;
	TAILQ_ENTRY(plx_chan) starved_link;
	LIST_ENTRY(plx_chan) link; /* of the ep's */
	struct plx_chans *chans;
	struct plx_timer timer;
	uint64_t connect_ticks; /* deadline; 0: none */
	uint64_t send_ticks;	/* timeout; 0: none */
	uint64_t keep_ticks;	/* period; 0: off */
	uint64_t keep_due;
	uint64_t group; /* MC: a hash of its name */
	LIST_HEAD(, plx_chan_member) members; /* MC_TX */
};
_Static_assert(sizeof(struct plx_chan) <= 384, "a connection's memory stays under 1 KiB");

struct plx_chan_slot {
	struct plx_chan *chan; /* NULL: free */
	uint32_t gen;
	uint32_t next_free;
};

/** Of an ep. */
struct plx_chan_ep {
	LIST_HEAD(, plx_chan) all;
};
_Static_assert(sizeof(struct plx_chan_ep) == sizeof(((struct plx_ep *)0)->of_chan), "it is kept there");

/** @return this engine's state of an ep. */
static inline struct plx_chan_ep *
plx_chan_ep(const struct plx_ep *ep)
{
	return (void *)(uintptr_t)ep->of_chan;
}

/** The channels of a worker. Owner: the worker's. */
struct plx_chans {
	/* line 0: each turn, each message */
	bool on;
	uint32_t n_slots;
	struct plx_chan_slot *slots;
	LIST_HEAD(, plx_chan) acks; /* channels with an unsent ACK */
	struct plx_chan *unreaped; /* inline: its peer has acknowledged more than was reported; or
	                            * NULL */
	uint32_t n_owed;      /* messages received since acks was empty */
	uint32_t n_owed_seen; /* n_owed at the end of the previous turn */
	uint32_t max_send; /* longest message, bytes */
	uint32_t fetch_min; /* shortest that is not copied, if the application allows it; the
	                     * worker's */
	uint32_t rx_max;   /* most buffers in use; readers: any, as rx_used */
	uint64_t rx_used;
	uint32_t n_invited;
	TAILQ_HEAD(, plx_chan) starved;
	struct plx_chan_ops group_ops; /* to groups, at the end of the turn */
	struct plx_chan_ops lossy_ops; /* datagrams that the device had no room for */
	struct plx_chan_items overflow; /* items without room in the ring */
	struct plx_pool rx_short, rx_long;
	struct rte_ring *ring;		/* NULL: inline */
	struct plx_chan_items *ready;	/* the face's: messages are delivered into it; NULL: by
	                             	 * deliver */
	/* called on the application's side with each item; the worker's params */
	void (*deliver)(struct plx_chans *cs, struct plx_chan_item *item);
	/* the worker's: start op's RMA; plx_chan_moved() completes it, perhaps before this
	 * returns */
	void (*move)(struct plx_chans *cs, struct plx_chan_op *op);

	uint32_t first_free; /* slot; 0: none */
	uint32_t n_asks;
	struct plx_eps *eps;
	struct plx_timers *timers;
	uint64_t hz;
	struct plx_pool notes, asks, hellos, members;
	struct plx_queue *group_q;	/* whose device copies messages to groups; NULL: we do */
	struct plx_ep nobody;		/* the ep of groups: has no peer */
	uint64_t keep_ticks; /* of new reliable channels */
	uint64_t send_ticks;
	struct plx_chan_stat stat;

	/* application's side */
	void *user; /* the face's */
	struct plx_pool ops, bufs;
};

/**
 * Enable channels, or with on false only initialise the struct.
 * @param max_send longest message, bytes
 * @param rx_max receive buffers
 * Errors: -ENOMEM. Thread: control.
 */
int plx_chans_open(struct plx_chans *cs, bool on, struct plx_eps *eps, struct plx_timers *timers,
	uint32_t max_send, uint32_t rx_max, bool dedicated);
void plx_chans_close(struct plx_chans *cs);

/** @return us as ticks, at least 1, 0 for 0. */
uint64_t plx_chan_ticks(const struct plx_chans *cs, uint64_t us);

/* --- owner --- */

/**
 * Ask the peer for a channel; a CONNECTED follows unless this fails.
 * @param c zeroed except the face's fields before it
 * @param data len bytes, copied
 * @param timeout_ticks 0: none
 * Errors: -ENOSPC too many channels; -ENOMEM.
 */
int plx_chan_ask(struct plx_chans *cs, struct plx_chan *c, struct plx_ep *ep, uint8_t attr,
	const void *data, uint32_t len, uint64_t timeout_ticks);

/** Accept; an ACCEPTED follows unless this fails. Errors: as plx_chan_ask(). */
int plx_chan_accept(struct plx_chans *cs, struct plx_chan_request *r, struct plx_chan *c);

/** Refuse. */
void plx_chan_reject(struct plx_chans *cs, struct plx_chan_request *r);

/**
 * Join a group, as sender or receiver. If the device has groups a CONNECTED follows unless
 * this fails, else call plx_chan_joined(). Errors: -ENOSPC, -ENOMEM; those of the device.
 */
int plx_chan_join(struct plx_chans *cs, struct plx_chan *c, uint8_t attr, uint64_t group);

/**
 * The group of c has a member of the other kind: send to it from now on, or send it a JOIN.
 * @param id of its channel
 * Errors: -ENOMEM; those of the ep.
 */
int plx_chan_meet(struct plx_chans *cs, struct plx_chan *c, struct plx_ep *ep, uint32_t id);

/** Report to the application's side that c is joined. */
void plx_chan_joined(struct plx_chan *c);

/** End a channel: its operations come back as items of a channel that does not exist any more. */
void plx_chan_end(struct plx_chans *cs, struct plx_chan *c);

/** Start an operation that the face has filled in. */
void plx_chan_post(struct plx_chans *cs, struct plx_chan_op *op);

/** An operation's RMA is complete. @param err 0 or -errno */
void plx_chan_moved(struct plx_chans *cs, struct plx_chan_op *op, int err);

/** Slow path of plx_chan_item_put(). */
void plx_chan_item_put_slow(struct plx_chans *cs, struct plx_chan_item *item);

/** Let stopped senders continue, as far as there are buffers. */
void plx_chans_invite(struct plx_chans *cs);

/** An item other than an operation is returned. */
static inline void
plx_chan_item_put(struct plx_chans *cs, struct plx_chan_item *item)
{
	struct plx_chan_rx *rx = container_of(item, struct plx_chan_rx, item);

	if (unlikely(item->kind != PLX_CHAN_RECV)) {
		plx_chan_item_put_slow(cs, item);
		return;
	}
	plx_pool_put(rx->is_long ? &cs->rx_long : &cs->rx_short, rx);
	PLX_STAT_ADD(cs->rx_used, -1);
	if (unlikely(!TAILQ_EMPTY(&cs->starved)))
		plx_chans_invite(cs);
}

/** Set the number of receive buffers. Errors: -ERANGE more are in use. */
int plx_chans_set_rx(struct plx_chans *cs, uint32_t n);

/** Set the period of keepalive; 0: off. */
void plx_chan_set_keepalive(struct plx_chan *c, uint64_t ticks);

/** Set the send timeout of later operations; 0: none. */
void plx_chan_set_timeout(struct plx_chan *c, uint64_t ticks);

/** All channels of an ep that has failed. */
void plx_chans_ep_failed(struct plx_chans *cs, struct plx_ep *ep);

/** The device has failed: all channels end with -ENXIO, and a FAILED reports it. */
void plx_chans_fail(struct plx_chans *cs);

/** When the first timer of a channel is due, UINT64_MAX: none. */
uint64_t plx_chans_next_ticks(const struct plx_chans *cs);

/* Arrived messages; only the length of the header is checked. */
void plx_chan_on_msg(struct plx_chans *cs, struct plx_peer *src, struct plx_wire_chan_msg h,
	const uint8_t *data, uint32_t len);
void plx_chan_on_fetch(struct plx_chans *cs, struct plx_peer *src,
	const struct plx_wire_chan_fetch *h);
void plx_chan_on_lossy(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan *h,
	const uint8_t *data, uint32_t len);
void plx_chan_on_ack(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan *h);
/** All other opcodes that have a plx_wire_chan. */
void plx_chan_on_ctl(struct plx_chans *cs, struct plx_peer *src, uint8_t op,
	const struct plx_wire_chan *h);
void plx_chan_on_ask(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan_ask *h,
	const uint8_t *data, uint32_t len);
void plx_chan_on_answer(struct plx_chans *cs, struct plx_peer *src,
	const struct plx_wire_chan_answer *h);

/** A receiver joins a group. */
void plx_chan_on_join(struct plx_chans *cs, struct plx_peer *src,
	const struct plx_wire_chan_join *h);

/** The device reports the result of joining a group. @param rc 0 or -errno */
void plx_chans_on_joined(struct plx_chans *cs, uint64_t group, bool rx, int rc);

/** A message to a group, by the device. */
void plx_chan_on_group(struct plx_chans *cs, uint64_t group, const uint8_t *data, uint32_t len);

/** Between turns: complete what was acknowledged. There is something. */
void plx_chans_reap_slow(struct plx_chans *cs);

/** Begin of a turn: complete what the previous one acknowledged. @return how many channels */
static inline unsigned
plx_chans_reap(struct plx_chans *cs)
{
	if (cs->unreaped == NULL)
		return 0;
	plx_chans_reap_slow(cs);
	cs->n_owed_seen = 0; /* an answer may still come */
	return 1;
}

/** Slow path of plx_chans_flush(). */
void plx_chans_flush_slow(struct plx_chans *cs);

/** @return whether acknowledgements must not wait for a message any longer. */
static inline bool
plx_chans_acks_due(const struct plx_chans *cs)
{
	return !LIST_EMPTY(&cs->acks) &&
	       (cs->n_owed == cs->n_owed_seen || cs->n_owed >= PLX_CHAN_ACK_MAX);
}

/** @return 0: plx_chans_flush() finds nothing to do. */
static inline uintptr_t
plx_chans_work(const struct plx_chans *cs)
{
	return (uintptr_t)plx_chans_acks_due(cs) | (uintptr_t)STAILQ_FIRST(&cs->overflow) |
	       (uintptr_t)TAILQ_FIRST(&cs->group_ops) | (uintptr_t)TAILQ_FIRST(&cs->lossy_ops);
}

/** End of a turn: acknowledge received messages, and offer items to the ring again. */
static inline void
plx_chans_flush(struct plx_chans *cs)
{
	if (unlikely(plx_chans_work(cs) != 0))
		plx_chans_flush_slow(cs);
}

/** After the last plx_chans_flush() of a turn. */
static inline void
plx_chans_turned(struct plx_chans *cs)
{
	if (unlikely(cs->n_owed_seen != cs->n_owed)) /* the application's side reads this line */
		cs->n_owed_seen = cs->n_owed;
}

/** Call fn for each channel of an ep that is not open yet, and for each operation that waits. Thread: owner. */
void plx_chans_waits_each(const struct plx_ep *ep, void (*fn)(const struct plx_wait_info *info, void *arg), void *arg);

/* --- application's side --- */

/** @return whether every receive buffer is in use. */
static inline bool
plx_chans_are_full(const struct plx_chans *cs)
{
	/* alone: it may change at any time */
	return __atomic_load_n(&cs->rx_used, __ATOMIC_RELAXED) >=
		__atomic_load_n(&cs->rx_max, __ATOMIC_RELAXED);
}

/** @return whether turns are only needed for arrivals. Thread: owner, inline. */
static inline bool
plx_chans_are_quiet(const struct plx_chans *cs)
{
	return LIST_EMPTY(&cs->acks) && cs->unreaped == NULL && !plx_chans_are_full(cs);
}

/** Dedicated: deliver arrived items. @return how many */
unsigned plx_chans_poll(struct plx_chans *cs);

/** @return an operation, not filled in, or NULL without memory. */
static inline struct plx_chan_op *
plx_chan_op_get(struct plx_chans *cs)
{
	struct plx_chan_op *op = plx_pool_get(&cs->ops);

	if (likely(op != NULL))
		op->any = true;
	return op;
}

/** @return room for the longest message of an operation with own_buf, or NULL without memory. */
static inline void *
plx_chan_buf_get(struct plx_chans *cs)
{
	return plx_pool_get(&cs->bufs);
}

/**
 * An operation for a message that can be sent at once: on an open reliable channel without
 * a send timeout, with nothing unsent before it. Fill in only chan, chan_id and flags of
 * its item, len and context.
 * @return NULL: not possible, or none is free. Thread: owner.
 */
static inline struct plx_chan_op *
plx_chan_op_short(struct plx_chans *cs, const struct plx_chan *c, uint32_t len)
{
	if (unlikely(c->state != PLX_CHAN_OPEN || c->attr >= PLX_CHAN_UU || !plx_ep_open(c->ep) ||
		    ((uintptr_t)c->next | c->send_ticks | c->n_moves | c->rnr) != 0))
		return NULL;
	if (c->tx_seq == c->tx_at_rx) /* an answer; in a stream its receiver would have the line
	                               * back at once */
		plx_peer_tx_now(c->ep->peer);
	if (unlikely(len > PLX_CHAN_TX_SHORT || len + PLX_CHAN_HDR_REST > c->ep->peer->short_max))
		return NULL;
	return plx_pool_get_free(&cs->ops);
}

/**
 * Send the message in an operation's bytes, of plx_chan_op_short(): nothing delays it,
 * unless the device has no room. The other fields of the operation are filled in while it
 * travels.
 * @return for plx_chan_post_short(), which follows. Thread: owner.
 */
static inline int
plx_chan_tx_short(const struct plx_chan *c, struct plx_chan_op *op, uint32_t len)
{
	const uint64_t word = (uint64_t)c->tx_seq << 32 | c->remote;
	const uint64_t rest = c->rx_next; /* and not urgent: by one store, as the device reads it */

	memcpy(&op->hdr.ack, &rest, sizeof(rest));
	return plx_peer_tx_short(c->ep->peer, PLX_WIRE_CHAN_MSG, word, &op->hdr.ack,
		PLX_CHAN_HDR_REST + len);
}

/** The peer has an acknowledgement of all received messages. */
static inline void
plx_chan_ack_told(struct plx_chans *cs, struct plx_chan *c)
{
	LIST_REMOVE(c, ack_link);
	c->owes_ack = false;
	if (likely(LIST_EMPTY(&cs->acks)))
		cs->n_owed = cs->n_owed_seen = 0;
}

/** As plx_chan_post(), after plx_chan_tx_short(). @param rc its result */
static inline void
plx_chan_post_short(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_op *op, int rc)
{
	if (unlikely(rc != 0)) {
		plx_chan_post(cs, op);
		return;
	}
	if (c->owes_ack)
		plx_chan_ack_told(cs, c);
	op->state = PLX_CHAN_OP_SENT;
	op->seq = c->tx_seq++;
	TAILQ_INSERT_TAIL(&c->ops, op, link);
	PLX_STAT_INC(cs->stat.msgs);
}

/**
 * The program gets a message: prefetch the line of the answer if it answers before it
 * returns messages. Thread: owner.
 */
static inline void
plx_chan_item_out(const struct plx_chan_item *item)
{
	struct plx_chan *c = item->chan;

	if (likely(!c->answers_first || !c->answers))
		return;
	c->answers = false;
	plx_peer_tx_now(c->ep->peer);
}

/**
 * The program returns a message: without an answer so far it may be about to answer.
 * Thread: owner.
 */
static inline void
plx_chan_item_back(const struct plx_chan_item *item)
{
	struct plx_chan *c = item->chan;

	if (c->tx_seq != c->tx_at_rx) {
		c->answers_first = true;
	} else if (c->answers && likely(item->chan_id == c->id)) {
		c->answers = c->answers_first = false;
		plx_peer_tx_now(c->ep->peer);
	}
}

/** Slow path of plx_chan_op_put(). */
void plx_chan_op_put_any(struct plx_chans *cs, struct plx_chan_op *op);

/** Free an operation. */
static inline void
plx_chan_op_put(struct plx_chans *cs, struct plx_chan_op *op)
{
	if (unlikely(op->any))
		plx_chan_op_put_any(cs, op);
	else
		plx_pool_put(&cs->ops, op);
}

/** @return why operations on the channel fail, or 0. Thread: any. */
static inline int
plx_chan_err(const struct plx_chan *c)
{
	/* alone: it orders no other data */
	return atomic_load_explicit(&c->err, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_int.h - between the files of the shm driver
 */
#ifndef SHM_INT_H
#define SHM_INT_H

#include <unistd.h>

#include <rte_bitops.h>

#include "plx_copy.h"
#include "plx_dev.h"
#include "plx_dev_ops.h"
#include "plx_log.h"
#include "plx_meet.h"
#include "plx_mem.h"
#include "plx_window.h"

#include "shm_ring.h"

/** Settings of the driver, in the order of its rows. */
enum shm_conf {
	SHM_CONF_HUGE,
	SHM_CONF_FAST_PEERS,
	SHM_CONF_WIDE_PEERS,
	SHM_CONF_CMA,
	SHM_CONF_WINDOWS,
	SHM_CONF_FAR,
	SHM_CONF_DIR,
	SHM_CONF_PEERS,
	SHM_CONF_N
};

extern struct plx_conf_rows shm_settings;
extern const struct plx_dev_names shm_names;

/** Index of a setting in a struct plx_conf. */
#define SHM_CONF(x) (shm_settings.first + SHM_CONF_##x)

PLX_LOG_DECLARE(shm);

#define SHM_NO_SLOT    0xff
#define SHM_RX_AHEAD   8    /* cells prefetched for reading, while messages come */
#define SHM_RX_SMALL   1536u /* bytes of a message whose room is published with its quarter of the
                              * lap */
#define SHM_STRANGERS  16384u /* peers known by their messages only; the bound limits a flood */
#define SHM_ASKED      256u /* of these, peers that were asked for their segments, which takes
                             * descriptors */
#define SHM_FAR_NS     100  /* a line of a receiver takes longer: the cores share no cache */
#define SHM_LAP_MUCH   (512u << 10) /* bytes of the data area that plx_tx.much uses */
#define SHM_GAP	       1024u /* bytes before a turn's first message: processors prefetch so far behind what they read */
#define SHM_COMING_STEP 4096u /* a longer message says when so much of it is written, */
#define SHM_COMING_MAX 16384u /* unless it is longer than this */
#define SHM_ALIGNED_MIN 1024u /* bytes of data that begins at a line, if the message is not a short one */
#define SHM_PAST_FAR   1024u /* bytes of a message that is stored past the caches then, */
#define SHM_PAST_LONG  8192u /* and when they share one that passes lines slowly: */
#define SHM_LINE_NS    5    /* each of many lines takes longer */
#define SHM_PROBE_US   1000 /* this is measured so often, */
#define SHM_RETRY      20   /* and so often times as rarely where no long messages would be sent */
#define SHM_EAGER_MAX  (64u << 10) /* two copies cost less than a question and the kernel's copy */
#define SHM_COLD_AFTER 4096 /* empty polls before a slot is left to the doorbell */

/** How this side sends to a peer. */
enum shm_tx_mode {
	SHM_TX_NONE, /* not connected, or dead: see peer.err */
	SHM_TX_SLOT,
	SHM_TX_MAIL,
};

/* The other end. peer.tx_line is the next cell to send in, SHM_TX_SLOT. Owner: the queue's worker. */
struct shm_peer {
	struct plx_peer peer;
	/* sending, SHM_TX_SLOT */
	alignas(SHM_LINE) struct shm_cell *tx_behind; /* as shm_rx_slot.behind, after peer.tx_line */
	uint64_t tx_pos;			  /* next cell */
	uint64_t rx_seen;			  /* rx_pos as last read */
	struct shm_slot *slot;
	uint8_t *data;		/* the slot's data area */
	uint64_t data_head;	/* bytes allocated since the start */
	uint64_t data_tail;	/* of these, free again */
	uint32_t tx_seq;	/* of the cells of this lap */
	uint8_t tx_mode;	/* enum shm_tx_mode */
	uint8_t slot_index;
	bool self;		/* a queue of this process: copy instead of CMA */
	bool huge;		/* its segment is on huge pages */
	bool wakes;		/* the receiver may sleep: check whether to wake it, */
	bool fences;		/* after a fence, which the receiver does not execute for us */
	bool may_not;		/* it does for registered processes */
	uint32_t data_len;	/* of the data area, bytes */
	uint32_t data_off;	/* in it, of data_head */
	uint32_t past_min;	/* bytes of a message that is stored past the caches */
	uint64_t probe_at;	/* ticks: the lines of the next long message are timed then */
	/* cold */
	struct shm_seg *seg;	/* mapped, or our own */
	struct shm_addr addr;
	int pidfd;		/* -1: none; then the control tick checks */
	struct plx_ask ask;	/* for its segment, while asking */
	bool asking;
	bool stranger;		/* known by its messages only, when it was made */
	bool own_user;		/* its process belongs to our user */
	bool busy;		/* it could not answer: do not ask again at once */
	uint8_t n_asks;		/* answers without a wake-up socket that exists */
	uint32_t n_looks;	/* polls for the answer */
	pid_t pid;		/* of its process by the kernel, 0: no name for it here */
	uint64_t len;		/* of the mapped segment, bytes */
	uint32_t ticks;		/* control ticks, for rare checks */
	bool slow;		/* the last line that it had written took long to come, */
	bool far;		/* and so did the one before */
	bool slow_lines;	/* the lines of the last message that were timed took long, */
	bool drags;		/* and so did those before */
	int bell;		/* wake-up socket of the receiver, or -1 */
	uint64_t rung;		/* the last of its sleeps that we sent a wake-up for */
	bool gone;		/* the process has ended; drain its messages, then dead */
	uint8_t rx_slot;	/* of ours that it sends to, or SHM_NO_SLOT */
	bool no_windows;	/* windows of its process can't be used */
	struct plx_windows *windows; /* NULL: not opened yet */
	uint64_t turn;		/* the worker's turn in which we last checked for room, */
	uint32_t n_blind;	/* and how often in it */
	uint64_t data_turn;	/* and that of the last message in the data area */
	uint32_t *data_end;	/* of each cell: data_head behind it, low 32 bits; SHM_TX_SLOT */
};

/* The receiving side of one slot in our own segment. */
struct shm_rx_slot {
	struct shm_cell *next;	 /* to poll: when the low half of its head is seq, there is a message */
	struct shm_cell *behind; /* the cell after that; not at the end of half a lap */
	uint32_t seq;
	uint32_t left;	    /* cells from the next to the end of the quarter */
	uint64_t pos;	    /* of the next cell */
	uint64_t published; /* rx_pos: cells before this may be reused */
	uint32_t empty;	    /* consecutive empty polls */
	uint32_t data_len;  /* of its data area, bytes */
	uint32_t coming;    /* bytes of the message at coming_pos that were fetched while it was written */
	bool large;	    /* an unreleased message takes much of the data area */
	uint64_t coming_pos;
	const uint8_t *data;
	struct plx_peer *peer;
	struct shm_slot *slot;
};

struct shm_queue {
	struct plx_queue *q;
	struct shm_seg *seg;
	uint64_t hot;	/* slots polled in every turn, one bit each; shm_hot_set() */
	struct shm_rx_slot *only; /* the only hot one; NULL: none is, or several are */
	uint64_t ready; /* slots with a sender */
	uint32_t next_cold;
	uint32_t next_hot;
	uint64_t mail_pos;
	const _Atomic uint64_t *mail_word; /* of the next mail cell: when its low half is */
	uint32_t mail_ready;		   /* this, there is mail */
	uint32_t n_slots, n_wide;
	struct plx_seg mem;
	struct shm_addr addr;
	int epfd;	/* pidfds of all peers, and our wake-up socket */
	LIST_ENTRY(shm_queue) link; /* of the process's queues */
	int bell[2];	/* the pair of wake-up sockets, -1: we never sleep */
	uint64_t proc;	/* the number of this process */
	uint64_t n_sleeps; /* numbers them */
	uint64_t far_ticks; /* a line that takes longer comes from far */
	uint64_t lines_ticks; /* 1,024 of many lines that take longer come slowly */
	uint64_t probe_ticks; /* between two looks at that; UINT64_MAX: none */
	bool windows;	/* whether to open those of peers */
	bool by_message; /* a message has named the peer that is being created */
	uint32_t n_strangers;
	uint32_t n_gone; /* not 0: processes of peers may have ended that are not declared dead yet */
	struct shm_rx_slot rx[SHM_SLOTS_MAX];
};

static inline struct shm_queue *
shm_queue(const struct plx_queue *q)
{
	return q->priv;
}

static inline struct shm_peer *
shm_peer(struct plx_peer *peer)
{
	return (struct shm_peer *)peer;
}

/* shm_seg.c: segments, peers, liveness */
int shm_queue_open(struct plx_queue *q);
void shm_queue_close(struct plx_queue *q);
void shm_queue_addr(const struct plx_queue *q, struct plx_addr *addr);
void shm_queue_control(struct plx_queue *q);
bool shm_slot_empty(const struct shm_queue *sq, uint32_t i);
/** Process the events of epfd. @return whether a process was found ended */
bool shm_events(struct shm_queue *sq);

/* shm_seg.c */
/** Register the uids of queues of this process. */
void shm_queue_enlist(struct shm_queue *sq);
void shm_queue_delist(struct shm_queue *sq);
/** The process has ended: send nothing more to it; its messages are received first. */
void shm_peer_gone(struct shm_queue *sq, struct shm_peer *p, const char *how);
/** Stop sending to a peer: unmap its segment. */
void shm_tx_leave(struct shm_peer *p);
int shm_peer_open(struct plx_peer *peer, const struct plx_addr *addr);
bool shm_peer_is(const struct plx_peer *peer, const struct plx_addr *addr);
void shm_peer_close(struct plx_peer *peer);
void shm_addr_whose(const struct plx_addr *addr, char *text, size_t len);
void shm_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len);
int shm_peer_connect(struct plx_peer *peer);
void shm_peer_settle(struct plx_peer *peer);
/** Poll for the answer of an asked peer, and take it. @return 0: connected; -EAGAIN; or an error */
int shm_peer_meet(struct shm_peer *p);
/** Offer, or offer again, the descriptors for our peers. @return 0 or -errno */
int shm_queue_offer(struct shm_queue *sq);
/** The peer of an address in our segment. @return 0, -ENOMEM, or why the address is invalid */
int shm_peer_of(struct shm_queue *sq, const struct shm_addr *addr, struct plx_peer **out);

/** A forked child has a copy of the queue, which still belongs to the parent. */
static inline bool
shm_is_owner(const struct shm_queue *sq)
{
	return (uint32_t)getpid() == sq->addr.pid;
}

static inline void
shm_hot_set(struct shm_queue *sq, uint64_t hot)
{
	sq->hot = hot;
	sq->only = hot != 0 && (hot & (hot - 1)) == 0 ? &sq->rx[rte_bsf64(hot)] : NULL;
}

#define SHM_SHORT_ROOM (SHM_GAP + RTE_ALIGN_CEIL(8 + SHM_SHORT_MAX, SHM_LINE)) /* of the longest short message with its gap, bytes */

static inline uint32_t
shm_cells_free(const struct shm_peer *p)
{
	return SHM_CELLS - (uint32_t)(p->tx_pos - p->rx_seen);
}

static inline uint32_t
shm_data_free(const struct shm_peer *p)
{
	return p->data_len - (uint32_t)(p->data_head - p->data_tail);
}

/**
 * @return the number of short messages that certainly find room in the data area, whatever
 *   these skip at its end.
 */
static inline uint32_t
shm_data_sure(const struct shm_peer *p)
{
	return RTE_MAX(shm_data_free(p) / SHM_SHORT_ROOM, 1u) - 1;
}

/**
 * Set the next cell (peer.tx_line) and the number of short messages from there to the end
 * of the half lap that certainly find a free cell and room (peer.tx_sure).
 */
static inline void
shm_tx_lap(struct shm_peer *p)
{
	uint32_t cells = RTE_MIN(shm_cells_free(p), SHM_CELLS / 2 - (uint32_t)(p->tx_pos % (SHM_CELLS / 2)));
	bool by_slot = p->tx_mode == SHM_TX_SLOT;

	p->peer.tx_line = by_slot ? shm_cell_at(p->slot->cells, p->tx_pos) : NULL;
	p->tx_behind = by_slot ? shm_cell_at(p->slot->cells, p->tx_pos + 1) : NULL;
	p->peer.tx_sure = by_slot ? RTE_MIN(cells, shm_data_sure(p)) : 0;
	p->tx_seq = shm_seq(p->tx_pos);
}

/** Set how messages are sent to the peer. */
static inline void
shm_tx_by(struct shm_peer *p, enum shm_tx_mode mode)
{
	p->tx_mode = mode;
	shm_tx_lap(p);
}

/** Poll this position of a slot next. */
static inline void
shm_slot_at_pos(struct shm_rx_slot *r, uint64_t pos)
{
	r->pos = pos;
	r->next = shm_cell_at(r->slot->cells, pos);
	r->behind = shm_cell_at(r->slot->cells, pos + 1);
	r->seq = shm_seq(pos);
	r->left = SHM_CELLS / 4 - pos % (SHM_CELLS / 4);
}

/** Cells before pos may be reused. */
static inline void
shm_slot_publish(struct shm_rx_slot *r, uint64_t pos)
{
	r->large = false;
	if (r->published == pos)
		return;
	r->published = pos;
	/* pairs with the acquire in slot_refresh(): we have read the cells */
	atomic_store_explicit(&r->slot->rx_pos, pos, memory_order_release);
}

/* shm_rare.c */
/** Slot i may have a new sender: identify it. */
void shm_slot_greet(struct shm_queue *sq, uint32_t i);
/** A cell is invalid: count and skip it. @param got valid messages of this burst before it */
__rte_cold void shm_slot_bad(struct shm_queue *sq, uint32_t i, uint16_t got);
/** Leave a slot to the doorbell. */
__rte_cold void shm_slot_idle(struct shm_queue *sq, uint32_t i);
/** Poll the slots whose doorbell rang. */
void shm_slots_wake(struct shm_queue *sq, uint64_t bells);

/* shm_seg.c */
/** Forget the sender of a slot of ours and free the slot. */
void shm_slot_reset(struct shm_queue *sq, uint32_t i);

/* shm_bell.c: wake-ups of sleeping receivers */
/** After a message to a peer that may sleep. @return whether shm_bell_ring() has work */
static inline bool
shm_bell_due(const struct shm_peer *p)
{
	/* pairs with the fence that the receiver's owner makes us execute: our message
	 * precedes this read */
	atomic_signal_fence(memory_order_seq_cst);
	return p->fences || atomic_load_explicit(&p->seg->sleeping, memory_order_relaxed) != 0;
}

void shm_bell_close(struct shm_queue *sq);
/**
 * A peer's segment is mapped, and its wake-up socket is known if it has one: determine how
 * to wake it.
 */
void shm_bell_of(struct shm_peer *p);
void shm_bell_forget(struct shm_peer *p);
/** Wake the peer if it sleeps; after the store that it is to see. */
void shm_bell_ring(struct shm_peer *p);
/** Make the owner of a segment handle an event that is no message. */
void shm_bell_news(struct shm_seg *seg, int bell);

/* shm_sleep.c */
int shm_queue_efd(struct plx_queue *q);
int shm_queue_arm(struct plx_queue *q);
void shm_queue_disarm(struct plx_queue *q);

/* shm_slot.c */
int shm_bulk(const struct plx_rma_op *op, uint32_t n);
int shm_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len);
int shm_tx(const struct plx_tx *tx);
uint16_t shm_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
enum plx_rx_found shm_rx_look(struct plx_queue *q, struct plx_rx *rx);
void shm_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);

/** Put the data of a message in its place. */
static inline void
shm_tx_copy(uint8_t *to, const struct plx_tx *tx)
{
	if (unlikely(tx->pack != NULL))
		tx->pack(tx->pack_arg, tx->pack_offset, to, tx->len);
	else if (tx->len != 0)
		plx_copy(to, tx->data, tx->len);
}

/* shm_far.c */
/** Times in ticks of the clock; with shm.far no they are longer than any. */
void shm_far_open(struct shm_queue *sq, const struct plx_conf *conf);
/** It is near, and its lines come fast, as far as is known. */
void shm_far_peer_open(struct shm_peer *p);
/** Learn from the ticks that reading a line of the receiver's took. */
void shm_far_learn(struct shm_peer *p, uint64_t ticks);
/** Read the receiver's position, and learn how far it is. */
uint64_t shm_far_read(struct shm_peer *p);
/** Learn from the ticks that taking n lines of the data area from the receiver took. */
void shm_far_learn_lines(struct shm_peer *p, uint64_t ticks, uint32_t n);
/** Take the lines of a message, which are written next, and learn from the time. */
void shm_far_probe(struct shm_peer *p, uint8_t *to, uint32_t len);

/* shm_mail.c */
#define SHM_RX_MAIL 0xff /* plx_rx.drv[0]: from the mail ring; drv[1] is the cell */
int shm_mail_tx(struct shm_peer *p, const struct plx_tx *given);
/** One message. @return whether there is one that is valid. */
uint16_t shm_mail_rx(struct shm_queue *sq, struct plx_rx *rx);
void shm_mail_release(struct shm_queue *sq, uint8_t cell);

/** Poll this position of the mail ring next. */
static inline void
shm_mail_at(struct shm_queue *sq, uint64_t pos)
{
	sq->mail_pos = pos;
	sq->mail_word = &sq->seg->mail[pos % SHM_MAIL_CELLS].state;
	sq->mail_ready = (uint32_t)SHM_MAIL_STATE(0, pos / SHM_MAIL_CELLS, SHM_MAIL_READY);
}

static inline void
shm_mail_next(struct shm_queue *sq)
{
	shm_mail_at(sq, sq->mail_pos + 1);
}

static inline bool
shm_mail_waits(const struct shm_queue *sq)
{
	/* pairs with the release in shm_mail_tx() */
	return (uint32_t)atomic_load_explicit(sq->mail_word, memory_order_acquire) == sq->mail_ready;
}

/* shm_rma.c */
int shm_rma(const struct plx_rma_op *op);
unsigned shm_rma_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n);
/** @return whether the memory at addr in the peer is mapped here. */
bool shm_is_mapped(struct shm_peer *p, uint64_t addr);
void *shm_peer_shared(struct plx_peer *peer);
/** Unmap the windows of its process. */
void shm_windows_close(struct shm_peer *p);
int shm_peer_windows(const struct plx_peer *peer, struct plx_seg_name *out);
const void *shm_peer_view(struct plx_peer *peer, uint64_t addr, uint64_t *len, struct plx_map **map);
bool shm_peer_has_left(const struct plx_peer *peer);

#endif

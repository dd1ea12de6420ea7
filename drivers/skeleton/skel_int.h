/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skel_int.h - between the files of the skeleton driver
 */
#ifndef SKEL_INT_H
#define SKEL_INT_H

#include <stdatomic.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "plx_dev_ops.h"

#define SKEL_MTU       4096 /* header and data, bytes */
#define SKEL_SHORT_MAX 256
#define SKEL_IOV       4    /* pieces of a message that is not copied */
#define SKEL_ZCOPY_MIN 512
#define SKEL_KEEP_MIN  512
#define SKEL_SPARES    16   /* messages that a queue's owner may keep */

/** An address; others get it as bytes, and may give us anything. The uid stands first. */
struct skel_addr {
	uint64_t uid;
	uint64_t host, proc; /* of plx_proc */
};

/** Where a message's bytes are. It is in the hands of one thread at a time, as its cell is. */
struct skel_buf {
	LIST_ENTRY(skel_buf) link; /* of a queue's spare ones, or of those that are kept */
	uint8_t bytes[SKEL_MTU];
};

LIST_HEAD(skel_bufs, skel_buf);

/** Where the data is that the sender did not copy. */
enum skel_where {
	SKEL_HERE,   /* it is in the cell's buffer */
	SKEL_THERE,  /* in iov, behind a header of hdr_len bytes in the buffer */
	SKEL_MOVING, /* somebody copies it */
};

struct skel_cell {
	struct skel_buf *buf;
	uint32_t len;
	uint8_t op;
	/* only of data that is not copied */
	_Atomic uint8_t where; /* enum skel_where; the thread that moves it from THERE copies the data */
	uint8_t hdr_len, n_iov;
	struct iovec iov[SKEL_IOV];
	void (*done)(void *arg, int err); /* sender: NULL once it was called, or when there is nothing to report */
	void *arg;
};

/** Wakes a receiver that sleeps. The receiver and the lanes to it share it. */
struct skel_bell {
	_Atomic uint32_t refs;
	_Atomic bool armed; /* the thread that takes it from true writes to fd */
	int fd;		    /* -1: it never sleeps */
};

struct skel_lane {
	/* line 0: writer: sender */
	_Atomic uint64_t tail;
	_Atomic bool sender_left;
	uint64_t told; /* sender: the messages without a copy before it were reported */
	/* line 1: writer: receiver */
	alignas(PLX_LINE) _Atomic uint64_t head;
	_Atomic bool receiver_left;
	uint64_t taken; /* given to the receiver's owner, up to here */
	/* line 2: set when it is made; and cold */
	alignas(PLX_LINE) struct skel_addr from;
	struct skel_bell *bell; /* the receiver's */
	uint64_t n_cells;
	_Atomic uint32_t refs;
	STAILQ_ENTRY(skel_lane) link; /* at a door: state.lock in skeleton.c */
	struct skel_cell cells[];
};

/** The other end. Owner: the queue's worker. */
struct skel_peer {
	struct plx_peer peer;
	struct skel_lane *tx, *rx;   /* NULL: none yet */
	TAILQ_ENTRY(skel_peer) link; /* those with rx */
};

struct skel_queue {
	struct plx_queue *q;
	struct skel_addr addr;
	uint64_t n_cells;
	uint32_t n_told_later; /* messages that were not copied and not told */
	uint32_t n_ends;       /* of lanes */
	uint64_t look_ns, looked_ns; /* how often, and when, it looked whether the other ends are there */
	struct skel_bell *bell;
	TAILQ_HEAD(skel_senders, skel_peer) senders; /* the one looked at longest ago comes first */
	struct skel_bufs spare, kept;
	_Atomic bool knocked;		 /* there is something at the door */
	STAILQ_HEAD(, skel_lane) door;	 /* state.lock: lanes to us that we don't know */
	LIST_ENTRY(skel_queue) link;	 /* the same */
};

static inline struct skel_peer *
skel_peer(struct plx_peer *peer)
{
	return container_of(peer, struct skel_peer, peer);
}

/* skel_lane.c */
/** @return a lane with empty cells, or NULL without memory. */
struct skel_lane *skel_lane_new(const struct skel_queue *from);
/** One end goes; the last frees it. @param left of the lane: that of this end */
void skel_lane_leave(struct skel_lane *lane, _Atomic bool *left);
/** @return whether the receiver has taken all. */
bool skel_lane_is_empty(const struct skel_lane *lane);
void skel_bufs_free(struct skel_bufs *bufs);

/* skel_sleep.c */
/** @return NULL without memory */
struct skel_bell *skel_bell_new(void);
struct skel_bell *skel_bell_get(struct skel_bell *bell);
void skel_bell_put(struct skel_bell *bell);
/** Something has come. */
void skel_bell_ring(struct skel_bell *bell);
int skel_efd(struct plx_queue *q);
int skel_arm(struct plx_queue *q);
void skel_disarm(struct plx_queue *q);
uint64_t skel_deadline(struct plx_queue *q);

/* skel_msg.c */
int skel_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len);
int skel_tx(const struct plx_tx *tx);
int skel_tx_zcopy(const struct plx_tx_zcopy *tx);
/** Return to the owner data that was sent without a copy and is read. @param err not 0: the peer is dead, return all */
void skel_tell(struct skel_peer *p, int err);
/** Copy the data that the receiver has not read yet: the owner wants its memory back. */
void skel_take_back(struct skel_peer *p);
/** Take up to n messages from all senders. */
uint16_t skel_take(struct skel_queue *sq, struct plx_rx *rx, uint16_t n);
void skel_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);
void *skel_rx_keep(struct plx_queue *q, struct plx_rx *rx);
void skel_rx_return(struct plx_queue *q, void *kept);

#endif

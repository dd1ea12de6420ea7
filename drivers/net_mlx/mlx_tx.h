/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tx.h - sending, and send completions
 */
#ifndef MLX_TX_H
#define MLX_TX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/tm_types.h>

#include "plx_dev.h"

#include "mlx_peer.h"

#define MLX_ZCOPY_MIN 4096    /* bytes of data; a shorter message is copied as fast as its completion is seen to */
#define MLX_SIGNAL_EVERY 32    /* requests of a peer between two that are signalled */

/* Immediate data of a message: opcode << 0, credits << 8, flags << 24. */
#define MLX_IMM(op, credits, flags) ((uint32_t)(op) | (uint32_t)(credits) << 8 | (uint32_t)(flags) << 24)
#define MLX_IMM_OP(imm)	     ((uint8_t)(imm))
#define MLX_IMM_CREDITS(imm) ((uint16_t)((imm) >> 8))
#define MLX_IMM_FLAGS(imm)   ((uint8_t)((imm) >> 24))
#define MLX_IMM_CTL	     1u /* no message: credits only, or that the queue pair works */
#define MLX_IMM_BYE	     2u /* CTL: the sender's queue closes */
#define MLX_IMM_NEW	     4u /* the credits are new ones: the window grows */
#define MLX_IMM_SHORT	     8u /* the sender ran out of credits */
#define MLX_IMM_PARK	     16u /* CTL: the connection is to close, and it carries no more messages */

/** The function to call when a request has completed. */
struct mlx_txrec {
	void (*done)(void *arg, int err);
	void *arg;
	uint32_t buf; /* of the queue's tx_bufs, or MLX_NONE */
	bool signalled;
	bool of_owner; /* done is the queue's owner's: it is not called while the queue closes */
	bool holds;   /* of what stands above anything; that of a request which is over never */
};

/** The peer's credits are to be returned when the owner flushes. */
static inline void
mlx_owes(struct mlx_queue *mq, struct mlx_peer *p)
{
	SLIST_INSERT_HEAD(&mq->owes, p, owes_link);
	mq->q->held = true;
}

/** @return whether a request may be posted, with room for a control request after it. */
static inline bool
mlx_tx_has_room(const struct mlx_queue *mq, const struct mlx_peer *p)
{
	return likely(p->link.state == PLX_LINK_OPEN && p->tx_room > 1 && mq->tx_out < MLX_TX_ALL);
}

/** Header of a message without a tag to a queue whose device matches tags. */
extern const struct ibv_tmh mlx_tx_no_tag;

int mlx_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len);
int mlx_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key);
/* The same, of a queue that is driven directly. */
int mlx_tx_short_mlx5(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len);
int mlx_put_short_mlx5(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote,
	uint64_t key);
int mlx_tx(const struct plx_tx *tx);
int mlx_tx_zcopy(const struct plx_tx_zcopy *tx);
/** The same for a message that exceeds the mtu by at most sizeof(struct ibv_tmh); statistics count len. */
int mlx_tx_framed(const struct plx_tx *tx, uint32_t len);
/** Return credits, or with MLX_IMM_BYE announce our close. @return whether it was sent */
bool mlx_tx_ctl(struct mlx_peer *p, uint8_t flags);
/** Post one request, with a place for it. */
void mlx_tx_post(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr,
	struct mlx_txrec rec);
/** Test whether the peer is alive: an empty write, which needs no slot and wakes nobody. */
void mlx_tx_probe(struct mlx_peer *p);
/** Ring the doorbells, return credits. */
void mlx_flush(struct plx_queue *q);
/** Poll for send completions. @return how many */
unsigned mlx_tx_poll(struct mlx_queue *mq);
/** @return whether a send has completed; it is stored for the next poll */
bool mlx_tx_waits(struct mlx_queue *mq);
/** All requests of a peer end now. */
void mlx_tx_drop(struct mlx_peer *p, int err);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_peer.h - the other end of a queue
 */
#ifndef MLX_PEER_H
#define MLX_PEER_H

#include <stdalign.h>
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "plx_dev.h"

#include "plx_link.h"
#include "mlx_queue.h"

#define MLX_TX_RECS	 128   /* of requests of a peer; a power of 2 */
#define MLX_TX_DEPTH	 (MLX_TX_RECS - 1) /* not completed: soft-RoCE's rings keep one free, and double */

struct mlx_txrec;

/* The other end. Owner: the queue's worker. */
struct mlx_peer {
	struct plx_peer peer;
	/* sending */
	alignas(PLX_LINE) struct mlx_hw_qp *qp;
	struct mlx_txrec *recs; /* by number of the request, modulo MLX_TX_RECS */
	uint16_t tx_room;	/* requests that may be posted */
	uint16_t tx_done;	/* number of the first incomplete one */
	uint8_t unsignalled;
	bool held;		/* in the queue's list of doorbells to ring */
	bool owes;		/* in the queue's list of peers with unreturned credits */
	struct plx_link_peer link; /* its credits, its state */
	SLIST_ENTRY(mlx_peer) held_link;
	SLIST_ENTRY(mlx_peer) owes_link;
	SLIST_ENTRY(mlx_peer) qpn_link;
	/* cold */
	struct mlx_addr addr;
	struct mlx_way *way;	/* for datagrams; NULL: none is kept */
	uint32_t lossy_qpn;	/* its queue pair for unreliable datagrams; 0: unknown yet */
	bool bye;		/* we have announced our close */
	bool probing;		/* an empty write is out, to test whether it is alive */
	uint32_t tm_waits;	/* see mlx_tm.h */
	uint32_t psn;
};

static_assert(offsetof(struct mlx_peer, link.rx_ns) - offsetof(struct mlx_peer, qp) <= PLX_LINE - 8,
	"what a message touches");

static inline struct mlx_peer *
mlx_peer(struct plx_peer *peer)
{
	return (struct mlx_peer *)peer;
}

static inline struct mlx_peer *
mlx_peer_of(struct plx_link_peer *lp)
{
	return container_of(lp, struct mlx_peer, link);
}

/** Slow path of mlx_peer_find(). */
struct mlx_peer *mlx_peer_look(struct mlx_queue *mq, uint32_t qpn);

/** @return the peer of that queue pair, or NULL: it is closed. */
static inline struct mlx_peer *
mlx_peer_find(struct mlx_queue *mq, uint32_t qpn)
{
	return likely(mq->found_qpn == qpn && mq->found != NULL) ? mq->found
								 : mlx_peer_look(mq, qpn);
}

/** @return whether its device matches tags. */
static inline bool
mlx_peer_has_tags(const struct mlx_peer *p)
{
	return (p->addr.flags & MLX_ADDR_TM) != 0;
}

#endif

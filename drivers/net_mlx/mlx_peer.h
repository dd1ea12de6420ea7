/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_peer.h - the other end of a queue
 */
#ifndef MLX_PEER_H
#define MLX_PEER_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "plx_dev.h"

#include "plx_credit.h"
#include "mlx_queue.h"

#define MLX_TX_RECS	 128   /* of requests of a peer; a power of 2 */
#define MLX_TX_DEPTH	 (MLX_TX_RECS - 1) /* not completed: soft-RoCE's rings keep one free, and double */

struct mlx_txrec;

enum mlx_conn {
	MLX_CONN_NONE,	/* no queue pair */
	MLX_CONN_ASKED,	/* it has one, and we do not know the peer's */
	MLX_CONN_READY,	/* ours can send; the peer's may not be ready to receive yet */
	MLX_CONN_OPEN,
	MLX_CONN_PARKING, /* either side wants to close it; see mlx_park.c */
	MLX_CONN_LOST,	/* failed, or it has gone: what has come of it is delivered first */
	MLX_CONN_DEAD,
};

/* The other end. Owner: the queue's worker. */
struct mlx_peer {
	struct plx_peer peer;
	/* sending */
	alignas(PLX_LINE) struct mlx_hw_qp *qp;
	struct mlx_txrec *recs; /* by number of the request, modulo MLX_TX_RECS */
	struct plx_credit credit;
	uint16_t tx_room;	/* requests that may be posted */
	uint16_t tx_done;	/* number of the first that is not completed */
	uint8_t unsignalled;
	uint8_t conn;		/* enum mlx_conn */
	bool held;		/* in the queue's list of those to ring */
	bool owes;		/* in the queue's list of those to be told credits */
	SLIST_ENTRY(mlx_peer) held_link;
	SLIST_ENTRY(mlx_peer) owes_link;
	SLIST_ENTRY(mlx_peer) qpn_link;
	uint16_t rx_held;	/* messages that came and are not released */
	uint32_t used;		/* mq->looks when a message last went or came */
	uint64_t rx_ns;	/* when something last came, or was completed */
	uint64_t silent_ns;	/* when it was found silent, with a completion due; void if not after rx_ns.
				 * not connected: when it was first called, void if n_calls is 0 */
	uint64_t heard_ns;	/* when it last answered a datagram, or sent what may get lost */
	/* cold */
	struct mlx_addr addr;
	struct mlx_way *way;	/* for datagrams; NULL: none is kept */
	uint32_t lossy_qpn;	/* by which it takes and sends what may get lost; 0: not told yet */
	bool unheard;		/* such a message went after all that was heard of it */
	uint8_t n_calls;	/* that it did not answer, or UINT8_MAX */
	uint8_t n_no_way;	/* times in turn that no way to it was found */
	TAILQ_ENTRY(mlx_peer) asking; /* of the queue's, while wanted and not open */
	bool wanted;		/* we have asked, or must: without a queue pair it is in waiting */
	bool called;		/* the peer has asked us meanwhile */
	/* while PARKING */
	bool said, theirs;	/* PARK is out; has come */
	bool cut;		/* and then the queue pair failed */
	uint64_t park_ns;	/* since when */
	TAILQ_ENTRY(mlx_peer) parking;
	TAILQ_ENTRY(mlx_peer) conns; /* of the queue's, while there is a queue pair */
	uint32_t opened;	/* mq->looks before it was */
	uint64_t made_ns;	/* when the queue pair was ready */
	SLIST_ENTRY(mlx_peer) lost_link;
	int err;		/* once lost */
	bool bye;		/* we have said that we go */
	bool probing;		/* an empty write is out, to see whether it is there */
	uint32_t tm_waits;	/* see mlx_tm.h */
	uint32_t attempt;	/* of our queue pair */
	uint32_t psn;
	uint32_t their_attempt;
	uint32_t their_qpn;
	uint64_t asked_ns;	/* when last */
	uint64_t give_up_ns;
	uint32_t n_asked;
};

static inline struct mlx_peer *
mlx_peer(struct plx_peer *peer)
{
	return (struct mlx_peer *)peer;
}

/* mlx_peer.c: where a peer stands, and in which of its queue's lists */
/** Have the peer connected, as soon as may be. @param called as it has asked for it. Never blocks. */
void mlx_peer_want(struct mlx_peer *p, bool called);
/** It is connected, or given up. */
void mlx_peer_want_end(struct mlx_peer *p);
/** A message came by the queue pair: the peer's works. */
void mlx_peer_works(struct mlx_peer *p);
/** The connection is to end, for others; all that was sent is to arrive. */
void mlx_peer_park(struct mlx_peer *p);
/** The peer has said PARK. */
void mlx_peer_park_told(struct mlx_peer *p);
/** The peer is on its way out of PARKING. */
void mlx_peer_park_end(struct mlx_peer *p);
/** Nothing more goes; what has come is still to be delivered. May be called in the middle of anything. */
void mlx_peer_lose(struct mlx_peer *p, int err);
/** The peer has said that it goes. */
void mlx_peer_bye(struct mlx_peer *p);
/** Slow path of mlx_peer_find(). */
struct mlx_peer *mlx_peer_look(struct mlx_queue *mq, uint32_t qpn);

/** @return whose queue pair that is, or NULL: it is closed. */
static inline struct mlx_peer *
mlx_peer_find(struct mlx_queue *mq, uint32_t qpn)
{
	return likely(mq->found_qpn == qpn && mq->found != NULL) ? mq->found
								 : mlx_peer_look(mq, qpn);
}

/** Whether another queue pair may be made. */
static inline bool
mlx_peer_has_room(const struct mlx_queue *mq)
{
	return mq->n_qps < mq->qps_max;
}

/** The same, to ask by it. */
static inline bool
mlx_peer_has_room_to_ask(const struct mlx_queue *mq)
{
	return mlx_peer_has_room(mq) && mq->n_own < mq->qps_max / 2;
}

/** Whether both sides have said PARK: nothing more is sent. */
static inline bool
mlx_peer_is_parked(const struct mlx_peer *p)
{
	return p->conn == MLX_CONN_PARKING && p->said && p->theirs;
}

/** A message that may get lost has come of a peer. */
static inline void
mlx_peer_heard(const struct mlx_queue *mq, struct mlx_peer *p)
{
	p->heard_ns = mq->now;
	p->unheard = false;
	p->n_calls = 0;
}

/** @return whether its device matches tags. */
static inline bool
mlx_peer_has_tags(const struct mlx_peer *p)
{
	return (p->addr.flags & MLX_ADDR_TM) != 0;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm.h - receives that an RDMA device matches by their tags
 *
 * Design notes
 * A queue of net_mlx.tag_matching has a shared receive queue of the kind IBV_SRQT_TM: receives
 * that lib/offload gives are put into its list, and whatever else comes goes to slots as ever.
 * The bytes before each message tell the device what it is (struct ibv_tmh):
 *
 *	IBV_TMH_EAGER, MLX_TM_WHOLE	a whole tagged message: what follows is its data
 *	IBV_TMH_EAGER, MLX_TM_TOKEN	nothing follows: it takes part in matching on behalf of the
 *					next message, which only software can finish
 *	IBV_TMH_NO_TAG			any other message, with its header; also the one after a token
 *
 * So an announcement is matched in its place and yet comes in a slot, and not in the buffer of
 * the receive, where it might be longer than what it announces.
 *
 * Senders need nothing of their device for that: the address of a queue says that it is one.
 */
#ifndef MLX_TM_H
#define MLX_TM_H

#include <infiniband/tm_types.h>

#include "plx_dev.h"

#include "mlx_hw.h"

struct mlx_peer;
struct mlx_queue;
struct plx_tx;

#define MLX_TM_SLOTS	   33 /* that mlx5 devices want besides those that are granted */
#define MLX_TM_OPS_MIN	   64 /* commands on their way */
#define MLX_TM_SIGNAL_EVERY 16 /* commands, between two whose end is told */
#define MLX_TM_LEN_MAX	   (1u << 30) /* of a receive that the device is told of: no message is longer */

/** mlx_peer.tm_waits: who the message after a token is for. */
enum {
	MLX_TM_NOBODY,
	MLX_TM_SOFTWARE,
	MLX_TM_RECVS, /* and above: a receive */
};

/** ibv_tmh.app_ctx */
enum {
	MLX_TM_WHOLE,
	MLX_TM_TOKEN,
};

/** mlx_hw_comp.status of what such a queue tells; slot is a slot's number, or a receive's. */
enum mlx_tm_comp {
	MLX_TM_UNEXPECTED = MLX_COMP_TM, /* slot: a tagged message that met no receive */
	MLX_TM_NO_TAG,	/* slot: any other */
	MLX_TM_MET,	/* receive: a message has met it, and is not whole yet */
	MLX_TM_PLACED,	/* receive: it is whole; imm and len are its */
	MLX_TM_MET_PLACED,
	MLX_TM_TOO_LONG, /* receive: the message is longer */
	MLX_TM_FAILED,	/* receive: the message ended with an error */
	MLX_TM_GONE,	/* receive: it is out of the list, and met nothing */
	MLX_TM_LATE,	/* receive: it was not in the list any more when it was to be taken out */
	MLX_TM_BROKEN,	/* commands are not executed any more */
};

/** What the device has said of a receive. */
struct mlx_tm_met {
	uint64_t tag; /* of the message that met it */
	uint32_t app;
	bool over; /* it was the last: what add said may stand for another receive now */
};

/** The hardware of such a queue; driven by libibverbs. Owner: the queue's. */
struct mlx_tm_hw {
	struct mlx_hw base;
	struct mlx_hw_ops ops;
	struct ibv_cq_ex *cq; /* the same as base.rx_cq */
	uint32_t list_n, n_ops;
	uint64_t next_op, done_op; /* numbers of commands */
	uint32_t *dels;		   /* by command: the receive that its end is told of, or MLX_NONE */
	uint32_t *gens;		   /* by receive: counts its uses */
	struct mlx_tm_met *met;	   /* by receive */
};

/* mlx_tm_hw.c */
/**
 * Open the hardware queues.
 * @param list_n receives wanted in the list
 * Errors: -EOPNOTSUPP the device cannot match tags; those of verbs.
 */
int mlx_tm_hw_open(const struct mlx_hw_conf *conf, uint32_t list_n, struct mlx_tm_hw **out);

/** A command: what it is about, and whether it tells the device the count. */
struct mlx_tm_cmd {
	uint32_t recv;	/* number */
	uint32_t handle; /* add: out; delete: what add said */
	uint16_t count;
	bool counts;	/* count is told */
};

/** @return 0; -ENOSPC the list is full; -EAGAIN no room for a command; others of verbs. */
int mlx_tm_hw_add(struct mlx_tm_hw *h, struct mlx_tm_cmd *cmd, const struct plx_dev_recv *recv,
	uint32_t lkey);
/** @param told whether MLX_TM_GONE or MLX_TM_LATE is to come. @return as of add, not -ENOSPC */
int mlx_tm_hw_del(struct mlx_tm_hw *h, const struct mlx_tm_cmd *cmd, bool told);
int mlx_tm_hw_sync(struct mlx_tm_hw *h, uint16_t count);

/* mlx_tm.c: receives that the device matches */
/** Errors: -EOPNOTSUPP the device cannot; those of verbs. Then the queue is as it was. */
int mlx_tm_open(struct mlx_queue *mq, const struct mlx_hw_conf *conf);
/** No callback is called any more. */
void mlx_tm_leave(struct mlx_queue *mq);
/** After the hardware is closed; accepts a queue that matches none. */
void mlx_tm_close(struct mlx_queue *mq);
int mlx_tm_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);
int mlx_tm_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);
/** A completion of MLX_COMP_TM or above. @return whether *rx is a message for the owner */
bool mlx_tm_take(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx);
/** What it sent the first part of does not come. */
void mlx_tm_peer_lost(struct mlx_queue *mq, struct mlx_peer *p);
/** After a burst: commands that found no room; the end of what is asked back when the device is gone. */
void mlx_tm_work(struct mlx_queue *mq);

/* mlx_tm_tx.c: sending to a queue whose device matches tags */
/** Such a peer is opened: the queue's ways of sending, and the peer's mtu, change. */
void mlx_tm_speak(struct mlx_queue *mq, struct mlx_peer *p);

#endif

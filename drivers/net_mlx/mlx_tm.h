/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm.h - receives that an RDMA device matches by their tags
 *
 * Design notes
 * - A queue of net_mlx.tag_matching has a shared receive queue of the kind IBV_SRQT_TM: receives
 *   of lib/offload are put into its list, and all other messages go to slots as usual. The bytes
 *   before each message tell the device its kind (struct ibv_tmh): IBV_TMH_EAGER with
 *   MLX_TM_WHOLE is a whole tagged message, whose data follows; IBV_TMH_EAGER with MLX_TM_TOKEN
 *   has no data and takes part in matching for the next message, which only software can finish;
 *   IBV_TMH_NO_TAG is any other message, with its header, and the one after a token.
 * - So an announcement is matched in its place and still arrives in a slot, and not in the buffer
 *   of the receive, which its data might exceed.
 * - Senders need no support of their device: the address of a queue says that it matches tags.
 */
#ifndef MLX_TM_H
#define MLX_TM_H

#include <infiniband/tm_types.h>

#include "plx_dev.h"

#include "mlx_hw.h"

struct mlx_peer;
struct mlx_queue;
struct plx_tx;

#define MLX_TM_SLOTS	   33 /* that mlx5 devices need besides the granted ones */
#define MLX_TM_OPS_MIN	   64 /* commands in flight */
#define MLX_TM_SIGNAL_EVERY 16 /* commands, between two with a reported completion */
#define MLX_TM_LEN_MAX	   (1u << 30) /* of a receive for the device: no message is longer */

/** mlx_peer.tm_waits: the receive of the message after a token. */
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

/** mlx_hw_comp.status of such a queue; slot is a slot's number, or a receive's. */
enum mlx_tm_comp {
	MLX_TM_UNEXPECTED = MLX_COMP_TM, /* slot: a tagged message that matched no receive */
	MLX_TM_NO_TAG,	/* slot: any other */
	MLX_TM_MET,	/* receive: a message has matched it, and is not complete yet */
	MLX_TM_PLACED,	/* receive: it is complete; imm and len are its */
	MLX_TM_MET_PLACED,
	MLX_TM_TOO_LONG, /* receive: the message is longer */
	MLX_TM_FAILED,	/* receive: the message failed */
	MLX_TM_GONE,	/* receive: it is out of the list, without a match */
	MLX_TM_LATE,	/* receive: it was already out of the list */
	MLX_TM_BROKEN,	/* commands are not executed any more */
};

/** The device's reports about a receive. */
struct mlx_tm_met {
	uint64_t tag; /* of the matched message */
	uint32_t app;
	bool over; /* it was the last: the handle of add may be another receive's now */
};

/** The hardware of such a queue; driven by libibverbs. Owner: the queue's. */
struct mlx_tm_hw {
	struct mlx_hw base;
	struct mlx_hw_ops ops;
	struct ibv_cq_ex *cq; /* the same as base.rx_cq */
	uint32_t list_n, n_ops;
	uint64_t next_op, done_op; /* numbers of commands */
	uint32_t *dels;		   /* by command: the receive whose removal it reports, or MLX_NONE */
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

/** A command: its receive, and whether it carries the count. */
struct mlx_tm_cmd {
	uint32_t recv;	/* number */
	uint32_t handle; /* add: out; delete: from add */
	uint16_t count;
	bool counts;	/* count is sent */
};

/** @return 0; -ENOSPC the list is full; -EAGAIN no room for a command; others of verbs. */
int mlx_tm_hw_add(struct mlx_tm_hw *h, struct mlx_tm_cmd *cmd, const struct plx_dev_recv *recv,
	uint32_t lkey);
/**
 * @param told whether MLX_TM_GONE or MLX_TM_LATE is to be reported. @return as of add, not
 *   -ENOSPC
 */
int mlx_tm_hw_del(struct mlx_tm_hw *h, const struct mlx_tm_cmd *cmd, bool told);
int mlx_tm_hw_sync(struct mlx_tm_hw *h, uint16_t count);

/* mlx_tm.c: receives that the device matches */
/** Errors: -EOPNOTSUPP the device cannot; those of verbs. Then the queue is unchanged. */
int mlx_tm_open(struct mlx_queue *mq, const struct mlx_hw_conf *conf);
/** No callback is called any more. */
void mlx_tm_leave(struct mlx_queue *mq);
/** After the hardware is closed; accepts a queue that does not match. */
void mlx_tm_close(struct mlx_queue *mq);
int mlx_tm_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);
int mlx_tm_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);
/** A completion of MLX_COMP_TM or above. @return whether *rx is a message for the owner */
bool mlx_tm_take(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx);
/** Later parts of its messages do not come. */
void mlx_tm_peer_lost(struct mlx_queue *mq, struct mlx_peer *p);
/**
 * After a burst: commands that found no room; the end of cancelled receives when the device
 * has failed.
 */
void mlx_tm_work(struct mlx_queue *mq);

/* mlx_tm_tx.c: sending to a queue whose device matches tags */
/** Such a peer is opened: the queue's send hooks, and the peer's mtu, change. */
void mlx_tm_speak(struct mlx_queue *mq, struct mlx_peer *p);

#endif

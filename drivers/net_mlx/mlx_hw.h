/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_hw.h - the hardware queues of one worker: post, ring, poll
 *
 * Two files fill in struct mlx_hw_ops: mlx_verbs.c by libibverbs, on every device, and the mlx5
 * one by writing work queue entries and reading completions itself. The rest of the driver
 * (peers, connections, credits, keys) is above and does not know which it is.
 *
 * Design notes
 * - A queue has one shared receive queue, one completion queue for arrivals and one for sends.
 *   Queue pairs are of the RC kind, made by verbs in any case: the driver above moves them
 *   through their states with mlx_hw_qp.qp.
 * - The work requests of a queue pair are numbered from 0, modulo 2^16; each counts as one,
 *   whatever its length. The caller has at most qp->max_wr without a completion, and gets one for
 *   each with MLX_WR_SIGNAL, in order: it covers all earlier ones. Once a queue pair has failed
 *   every request counts as signalled, or one failure covers them all.
 * - post() copies data of MLX_WR_INLINE before it returns; the device need not see a request
 *   before ring(), which rings one doorbell for all since the last one. Receive buffers are the
 *   caller's slots, named by a number that the completion returns; they are used in any order.
 */
#ifndef MLX_HW_H
#define MLX_HW_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "plx_stat.h"

#define MLX_HW_POLL_MAX	  16 /* completions taken in one go */
#define MLX_HW_SGES	  2  /* pieces of one message that is gathered */
#define MLX_INLINE_MAX	  128 /* longest message that is written into the request, bytes */

struct mlx_hw_ops;

/** Counters of the hardware of a queue. */
struct mlx_hw_stat {
	uint64_t comp_stale; /* completions of closed queue pairs */
	uint64_t comp_bad;   /* without a matching request */
	uint64_t rung_again; /* doorbells repeated without progress */
};

/** Which implementation drives a queue, if that is known at compile time. */
enum mlx_by {
	MLX_BY_VERBS,
	MLX_BY_MLX5,
};

/** Parameters of a queue's hardware objects. */
struct mlx_hw_conf {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* for both completion queues, or NULL: the owner never
	                                   * sleeps */
	uint32_t n_rx;	   /* slots that may be posted at once; also bounds unpolled arrivals */
	uint32_t n_tx;	   /* completions of sends that may be unpolled at once */
	struct mlx_hw_stat *stat; /* the caller's; writer: owner */
};

/** Begins the struct of each implementation. Owner: the queue's. */
struct mlx_hw {
	const struct mlx_hw_ops *ops;
	struct mlx_hw_conf conf;
	struct ibv_cq *rx_cq, *tx_cq;
	struct ibv_srq *srq;
	bool plain_cq; /* rx_cq may be polled as mlx_verbs.h does */
};

/** A queue pair; begins the struct of each implementation. */
struct mlx_hw_qp {
	struct mlx_hw *hw;
	struct ibv_qp *qp;   /* NULL in a model */
	uint32_t qpn;
	uint16_t max_wr;     /* requests without a completion, at the most */
	uint16_t max_inline; /* most bytes of a request with MLX_WR_INLINE */
	uint16_t next;	     /* number of the next request; writer: post() */
	bool at_once;	     /* by libibverbs, and nothing waits for ring(): see mlx_verbs.h */
};

enum mlx_wr_op {
	MLX_WR_SEND,  /* with imm, to a slot of the peer */
	MLX_WR_WRITE,
	MLX_WR_READ,
	MLX_WR_FADD,  /* 8 bytes; the previous value goes to addr */
	MLX_WR_CSWAP,
};

enum mlx_wr_flag {
	MLX_WR_SIGNAL = 1 << 0, /* request a completion */
	MLX_WR_INLINE = 1 << 1, /* SEND, WRITE: the data is copied now; lkey is ignored */
	MLX_WR_FENCE = 1 << 2,	/* not before earlier READs and atomics are complete */
};

/** One work request. */
struct mlx_hw_wr {
	uint8_t op;    /* enum mlx_wr_op */
	uint8_t flags; /* enum mlx_wr_flag */
	uint32_t imm;  /* SEND, in host order on both sides */
	uint64_t addr; /* local, of len bytes; 0 bytes: both are ignored */
	uint32_t len;
	uint32_t lkey;
	uint64_t remote;
	uint32_t rkey;
	uint64_t operand[2]; /* FADD: the addend; CSWAP: compare, swap */
};

/** A receive slot to post. */
struct mlx_hw_rx {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
	uint32_t slot; /* returned in mlx_hw_comp.slot */
};

/** Status of a request. */
enum mlx_comp_status {
	MLX_COMP_OK,
	MLX_COMP_FLUSHED, /* the queue pair had failed before */
	MLX_COMP_RETRY,	  /* the peer does not answer */
	MLX_COMP_RNR,	  /* it has no slot: a bug in the credits */
	MLX_COMP_ACCESS,  /* refused: no such key, out of bounds, no right */
	MLX_COMP_LOCAL,	  /* our own buffer, key or length */
	MLX_COMP_OTHER,
	MLX_COMP_TM, /* and above: enum mlx_tm_comp, of queues that match tags */
};

/** A completion. */
struct mlx_hw_comp {
	uint32_t qpn;
	uint8_t status; /* enum mlx_comp_status */
	uint8_t vendor; /* of an error: the device's code, for the log */
	uint16_t seq;	/* sent: number of the request */
	uint32_t slot;	/* arrival: its slot */
	uint32_t len;	/* arrival: bytes */
	uint32_t imm;	/* arrival */
};

/** Thread of all: owner, except open and close as of the queue. */
struct mlx_hw_ops {
	const char *name; /* "verbs", "mlx5" */

	/** @return whether this implementation can drive the device. */
	bool (*usable)(struct ibv_context *ctx);

	/* Slow; 0 or -errno. conf is copied. */
	int (*open)(const struct mlx_hw_conf *conf, struct mlx_hw **out);
	void (*close)(struct mlx_hw *hw); /* all queue pairs are closed */
	/** In state RESET. @param max_wr, max_inline wanted; the latter may become less */
	int (*qp_open)(struct mlx_hw *hw, uint16_t max_wr, uint16_t max_inline,
		struct mlx_hw_qp **out);
	void (*qp_close)(struct mlx_hw_qp *qp); /* its completions may still come: by qpn */

	/* Hot. post: n within max_wr. */
	void (*post)(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, uint16_t n);
	/* A SEND of MLX_HW_SGES pieces, none empty; addr and len of wr are not looked at, nor is MLX_WR_INLINE. */
	void (*post_gather)(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, const struct ibv_sge *sge);
	int (*ring)(struct mlx_hw_qp *qp); /* 0, or -errno: the queue pair is of no use any more */
	void (*post_rx)(struct mlx_hw *hw, const struct mlx_hw_rx *rx, uint16_t n);
	uint16_t (*poll_tx)(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n); /* < n: all */
	uint16_t (*poll_rx)(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);

	/** The channel becomes readable with the next completion of either kind. 0 or -errno */
	int (*arm)(struct mlx_hw *hw);
	/** The channel reports a completion queue; it may not be one of ours. */
	void (*event)(struct mlx_hw *hw, struct ibv_cq *cq);
	/** Slow, every now and then: handle requests without progress. May be NULL. */
	void (*check)(struct mlx_hw *hw);
};

extern const struct mlx_hw_ops mlx_hw_verbs_ops;
extern const struct mlx_hw_ops mlx_hw_mlx5_ops;

/** Implementations: make the completion queues and the receive queue. Errors: those of verbs. */
int mlx_hw_init(struct mlx_hw *hw, const struct mlx_hw_ops *ops, const struct mlx_hw_conf *conf);
/** Destroy the existing ones. */
void mlx_hw_fini(struct mlx_hw *hw);

/** Implementations: make a queue pair, in pd. Errors: those of verbs. */
int mlx_hw_qp_init(struct mlx_hw *hw, struct ibv_pd *pd, uint16_t max_wr, uint16_t max_inline,
	struct mlx_hw_qp *qp);

#endif

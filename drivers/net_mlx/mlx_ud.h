/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_ud.h - a queue pair for datagrams, and the way to where they go
 */
#ifndef MLX_UD_H
#define MLX_UD_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mlx_addr.h"

#define MLX_UD_RX	 64    /* datagrams that may arrive between two looks */
#define MLX_UD_TX	 32
#define MLX_UD_SIGNAL	 8     /* messages that may get lost, between two that are signalled */
#define MLX_UD_TRIES	 50    /* to bring a queue pair for datagrams back; one a control */
#define MLX_WAYS_MAX	 1024  /* address handles of a queue */

struct mlx_peer;
struct mlx_queue;

/** A queue pair for datagrams. Owner: the queue's. */
struct mlx_ud {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;	     /* n_rx slots for arrivals, then MLX_UD_TX */
	uint32_t slot;	     /* bytes of one */
	uint16_t n_rx;
	bool failed;	     /* nothing goes or comes until it is brought back */
	uint8_t n_tries;     /* to bring it back, in vain */
	uint16_t max_inline; /* longest that is written into the request, bytes */
	uint16_t every;	     /* of so many that are sent one is signalled */
	uint32_t qkey;
	uint64_t sent, done;
	uint64_t due;	     /* of sent, those up to the last that is signalled */
	struct ibv_ah *self; /* the way to its own port, where every is above 1 */
};

/** Where a datagram came from. */
struct mlx_ud_src {
	uint32_t qpn;
	uint16_t lid;
	const uint8_t *grh; /* or NULL */
};

/* mlx_ud.c */
/** Called with what came, without what stands before it. */
typedef void mlx_ud_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data,
	uint32_t len);
/** @param len of the longest datagram, bytes */
int mlx_ud_open(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, uint16_t n_rx, uint32_t qkey);
void mlx_ud_close(struct mlx_ud *ud);
/** The way to a port, or to a group. @return NULL: errno may say why */
struct ibv_ah *mlx_ud_way(struct mlx_queue *mq, const uint8_t *gid, uint16_t lid);
/** @return where the next one to send is written, or NULL: there is no room */
void *mlx_ud_room(struct mlx_ud *ud);
/** Have only some of what is sent signalled from now on, if that may be. */
void mlx_ud_spare(struct mlx_queue *mq, struct mlx_ud *ud);
/** All that was sent is done some time, though nothing follows it. */
void mlx_ud_end(struct mlx_queue *mq, struct mlx_ud *ud);
/** Send what was written there. */
void mlx_ud_send(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/** Take what came, and what was sent. @return how many */
unsigned mlx_ud_poll(struct mlx_queue *mq, struct mlx_ud *ud, mlx_ud_take *take);
/** Bring it back if it has failed; the port has when that can't be done. Not in a turn: system calls. */
void mlx_ud_mend(struct mlx_queue *mq, struct mlx_ud *ud);

/* mlx_way.c: address handles */
/**
 * The way to a peer's port, for one datagram that is then sent by ud, the queue's own or lossy.
 * Errors: -EAGAIN too many are in use; those of the system: it can't be reached.
 */
int mlx_way_get(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_ud *ud,
	struct ibv_ah **ah);
/** The peer goes. */
void mlx_way_drop(struct mlx_peer *p);
/** All queue pairs for datagrams are closed. */
void mlx_ways_close(struct mlx_queue *mq);

/* mlx_dgram.c: from one queue to another */
int mlx_dgrams_open(struct mlx_queue *mq);
/** Send one; lost when there is no room, as any may be. @return 0, or why it can't be reached */
int mlx_dgrams_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_dgram *d);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_ud.h - a queue pair for datagrams, and the address handles of their destinations
 */
#ifndef MLX_UD_H
#define MLX_UD_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mlx_addr.h"

#define MLX_UD_RX	 64    /* datagrams that may arrive between two polls */
#define MLX_UD_TX	 32
#define MLX_UD_SIGNAL	 8     /* unreliable messages between two signalled ones */
#define MLX_UD_TRIES	 50    /* attempts to reset a queue pair for datagrams; one a control */
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
	bool failed;	     /* nothing is sent or received until it is reset */
	uint8_t n_tries;     /* failed resets */
	uint16_t max_inline; /* longest inline datagram, bytes */
	uint16_t every;	     /* one of this many sends is signalled */
	uint32_t qkey;
	uint64_t sent, done;
	uint64_t due;	     /* number of the last signalled send */
	struct ibv_ah *self; /* address handle of its own port, if every is above 1 */
};

/** Where a datagram came from. */
struct mlx_ud_src {
	uint32_t qpn;
	uint16_t lid;
	const uint8_t *grh; /* or NULL */
};

/* mlx_ud.c */
/** Called with each arrival, without its header. */
typedef void mlx_ud_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data,
	uint32_t len);
/** @param len of the longest datagram, bytes */
int mlx_ud_open(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, uint16_t n_rx, uint32_t qkey);
void mlx_ud_close(struct mlx_ud *ud);
/** An address handle of a port, or of a group. @return NULL: errno may say why */
struct ibv_ah *mlx_ud_way(struct mlx_queue *mq, const uint8_t *gid, uint16_t lid);
/** @return the buffer of the next send, or NULL: there is no room */
void *mlx_ud_room(struct mlx_ud *ud);
/** Signal only some of the sends from now on, if that is allowed. */
void mlx_ud_spare(struct mlx_queue *mq, struct mlx_ud *ud);
/** Make all sends complete, though none follows. */
void mlx_ud_end(struct mlx_queue *mq, struct mlx_ud *ud);
/** Send the written datagram. */
void mlx_ud_send(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/** Process arrivals and send completions. @return how many */
unsigned mlx_ud_poll(struct mlx_queue *mq, struct mlx_ud *ud, mlx_ud_take *take);
/**
 * Reset it if it has failed; if that is impossible the port has failed. Not in a turn:
 * system calls.
 */
void mlx_ud_mend(struct mlx_queue *mq, struct mlx_ud *ud);

/* mlx_way.c: address handles */
/**
 * The address handle of a peer's port, for one datagram that ud, the queue's own or lossy,
 * sends next. Errors: -EAGAIN too many are in use; those of the system: there is no route.
 */
int mlx_way_get(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_ud *ud,
	struct ibv_ah **ah);
/** The peer is destroyed. */
void mlx_way_drop(struct mlx_peer *p);
/** All queue pairs for datagrams are closed. */
void mlx_ways_close(struct mlx_queue *mq);

/* mlx_dgram.c: from one queue to another */
int mlx_dgrams_open(struct mlx_queue *mq);
/** Send one; lost without room, as any may be. @return 0, or the error without a route */
int mlx_dgrams_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_dgram *d);

#endif

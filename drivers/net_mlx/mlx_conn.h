/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_conn.h - the connection to a peer: how it is made, who is alive, who gives way to others
 */
#ifndef MLX_CONN_H
#define MLX_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "mlx_addr.h"

#define MLX_PATIENCE	 10    /* times dead_ms for a peer that answers, and whose device does not */

struct mlx_peer;
struct mlx_queue;
struct plx_addr;
struct plx_peer;

/* mlx_conn.c: from an address to an open queue pair, and its end */
int mlx_peer_open(struct plx_peer *peer, const struct plx_addr *addr);
bool mlx_peer_is(const struct plx_peer *peer, const struct plx_addr *addr);
int mlx_peer_connect(struct plx_peer *peer);
void mlx_peer_close(struct plx_peer *peer);
/** An ASK: whatever we are at, its sender wants to know our queue pair. */
void mlx_conn_on_ask(struct mlx_peer *p, const struct mlx_dgram *d);
void mlx_conn_on_answer(struct mlx_peer *p, const struct mlx_dgram *d);
/** Ask again, give up. */
void mlx_conn_control(struct mlx_queue *mq, uint64_t now);
/** Ask a connected peer whether it is there: by a datagram, which overtakes all that it is sent. */
void mlx_conn_call(struct mlx_peer *p);
/** Everything that had come is delivered: the lost are dead now. */
void mlx_conn_settle(struct mlx_queue *mq);
/** One of waiting gets a queue pair, and asks. It may stay there, or be lost. */
void mlx_conn_start(struct mlx_peer *p);
/** No connection any more, as if there had never been one. */
void mlx_conn_reset(struct mlx_peer *p);

/* mlx_alive.c: peers that are silent */
/** Look at all peers, if it is time to. @return whether it was */
bool mlx_alive_look(struct mlx_queue *mq);
/** A peer asks whether we are there, or says that it is. */
void mlx_alive_on_dgram(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_dgram *d);

/* mlx_park.c: connections that are idle give way */
/** Go on with those that park, and serve those that wait. */
void mlx_park_work(struct mlx_queue *mq);

/* mlx_dgram_rx.c: what other queues say by datagrams */
/** Take what came, and go on with who is to be connected. @return how many came */
unsigned mlx_dgrams_poll(struct mlx_queue *mq);
/** One has come. */
void mlx_dgram_take(struct mlx_queue *mq, const struct mlx_dgram *d);

#endif

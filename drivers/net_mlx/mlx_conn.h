/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_conn.h - queue pairs, and the datagrams of other queues
 */
#ifndef MLX_CONN_H
#define MLX_CONN_H

#include <stdbool.h>

#include "plx_link.h"

#include "mlx_addr.h"

struct mlx_queue;
struct plx_addr;
struct plx_peer;

/* mlx_conn.c */
extern const struct plx_link_ops mlx_conn_ops;
int mlx_peer_open(struct plx_peer *peer, const struct plx_addr *addr);
bool mlx_peer_is(const struct plx_peer *peer, const struct plx_addr *addr);
int mlx_peer_connect(struct plx_peer *peer);
void mlx_peer_close(struct plx_peer *peer);

/* mlx_dgram_rx.c: datagrams of other queues */
/** Process arrived datagrams, and continue connecting. @return how many arrived */
unsigned mlx_dgrams_poll(struct mlx_queue *mq);
/** Process one datagram. */
void mlx_dgram_take(struct mlx_queue *mq, const struct mlx_dgram *d);

#endif

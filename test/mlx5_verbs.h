/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_verbs.h - libibverbs and libmlx5 as the driver sees them, with the model as device
 *
 * One device of one port, or several that mlx5_verbs.ports describes. Reliable queue pairs and what belongs to them lie in the model, where
 * the driver writes and reads them directly. Datagrams, which it sends by libibverbs, are handed
 * over at once.
 */
#ifndef MLX5_VERBS_H
#define MLX5_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mlx5_model.h"

#define MLX5_VERBS_DEVICES 4
#define MLX5_VERBS_PORTS   2 /* of one */

/** A port; all 0 it is one of InfiniBand, of unknown speed. */
struct mlx5_verbs_port {
	bool down;
	bool ethernet;
	uint8_t width, speed; /* as libibverbs says */
	uint8_t wire;	      /* what is sent arrives at ports of the same wire */
	uint8_t gid[16];      /* 0: fe80:: */
};

struct mlx5_verbs {
	struct mlx5_model *m;
	uint32_t cqe_size;   /* 64 or 128 */
	uint32_t srq_stride; /* 32 or 64 */
	uint32_t bf_size;    /* 0 or 256 */
	bool no_td;	     /* there are no thread domains left */
	bool plain;	     /* it is not of the mlx5 kind, see mlx_tm_model.h */
	bool absent;	     /* the kernel has no such devices, see mlx_tm_driver.c */
	bool no_datagrams;   /* they are lost */
	bool datagrams_fail; /* to be sent, and their queue pair with them */
	uint64_t n_datagrams, n_inline, n_sent; /* sent; of these, inside of requests, with completions */
	uint32_t n_ahs;	     /* address handles that there are */
	unsigned n_devices, n_ports; /* of each device; 0: one */
	struct mlx5_verbs_port ports[MLX5_VERBS_DEVICES][MLX5_VERBS_PORTS];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};

extern struct mlx5_verbs mlx5_verbs;

/** From now on the driver finds this device; the caller has set all but ctx and pd. */
void mlx5_verbs_begin(void);

/** All queue pairs for datagrams go to the error state. */
void mlx5_verbs_fail(void);

/** A port goes down, or up again, and all that have opened the device get an event. */
void mlx5_verbs_switch(unsigned device, unsigned port, bool down);

/** A port has another address, and all that have opened the device get an event. */
void mlx5_verbs_move(unsigned device, unsigned port, const uint8_t gid[16]);

/** The port, from 1 on, of whoever has this context. */
struct mlx5_verbs_port *mlx5_verbs_port(const struct ibv_context *ctx, unsigned num);

/** @return whether what the one sends to a gid arrives at the other */
bool mlx5_verbs_arrives(const struct mlx5_verbs_port *from, const struct mlx5_verbs_port *to,
	const struct ibv_ah_attr *way);

/** @return whether a key is of this protection domain, or of none that is known */
bool mlx5_verbs_may_use(uint32_t key, const struct ibv_pd *pd);

/** A completion queue of libibverbs has one more; its channel gets an event if it is armed. */
void mlx5_verbs_done(struct ibv_cq *cq, const struct ibv_wc *wc);

/** Its channel, if it has one, gets an event of a completion queue. */
void mlx5_verbs_tell(struct ibv_cq *cq);

/** The number of a completion queue in the model. */
int mlx5_verbs_cq(const struct ibv_cq *cq);

/** Give the channels their events. @return whether any completion queue is armed */
bool mlx5_verbs_events(void);

#endif

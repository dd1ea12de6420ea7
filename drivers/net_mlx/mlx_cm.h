/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm.h - listeners and clients by the RDMA connection manager (librdmacm)
 */
#ifndef MLX_CM_H
#define MLX_CM_H

#include <rdma/rdma_cma.h>

#include "plx_dev_cm.h"

/** The used functions of librdmacm, by their names without "rdma_". */
struct mlx_cm_glue {
	__typeof__((rdma_create_event_channel)) *create_event_channel;
	__typeof__((rdma_destroy_event_channel)) *destroy_event_channel;
	__typeof__((rdma_get_cm_event)) *get_cm_event;
	__typeof__((rdma_ack_cm_event)) *ack_cm_event;
	__typeof__((rdma_create_id)) *create_id;
	__typeof__((rdma_destroy_id)) *destroy_id;
	__typeof__((rdma_migrate_id)) *migrate_id;
	__typeof__((rdma_bind_addr)) *bind_addr;
	__typeof__((rdma_listen)) *listen;
	__typeof__((rdma_resolve_addr)) *resolve_addr;
	__typeof__((rdma_resolve_route)) *resolve_route;
	__typeof__((rdma_create_qp)) *create_qp;
	__typeof__((rdma_destroy_qp)) *destroy_qp;
	__typeof__((rdma_connect)) *connect;
	__typeof__((rdma_accept)) *accept;
	__typeof__((rdma_reject)) *reject;
	__typeof__((rdma_disconnect)) *disconnect;
	__typeof__((rdma_join_multicast_ex)) *join_multicast_ex;
	__typeof__((rdma_leave_multicast)) *leave_multicast;
};

/** Valid after mlx_cm_glue_open() returned 0. */
extern struct mlx_cm_glue mlx_cm_glue;

/**
 * Load librdmacm, once in a process; it stays. Errors: -ENODEV no such library, a function
 * is missing, or the kernel has no rdma_ucm. Thread: any.
 */
int mlx_cm_glue_open(void);

extern const struct plx_dev_cm_ops mlx_cm_ops;

/** The private data of the request and the answer. */
struct mlx_cm_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t msg_max; /* PLX_DEV_CM_MSG_MAX */
};
_Static_assert(sizeof(struct mlx_cm_hello) == 8, "wire");

#define MLX_CM_MAGIC   0x52584c50u /* "PLXR" */
#define MLX_CM_VERSION 1

/** A listener, or a connection with its queue pair. */
struct mlx_cm_id {
	struct plx_dev_cm_id dev; /* fd contains those of channel and comp */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool client;
	int err; /* the error that it has failed with */
	/* NULL, except for connections in progress or open; mlx_cm_id.c */
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;	  /* PLX_DEV_CM_SENDS messages to send, and one to receive */
	uint32_t sent, done;
	uint32_t got_len; /* of an arrived message that was not taken */
};

/** An id without an rdma_cm_id. */
int mlx_cm_id_new(struct mlx_cm_id **out);
/** With all its objects. */
void mlx_cm_id_free(struct mlx_cm_id *c);

/** Create its queue pair and make it receive; id has a device. */
int mlx_cm_id_qp(struct mlx_cm_id *c);

/** Poll the device. @return bytes of a message that was written to buf, or 0 */
uint32_t mlx_cm_id_poll(struct mlx_cm_id *c, void *buf);

int mlx_cm_id_send(struct plx_dev_cm_id *id, const void *msg, uint32_t len);
bool mlx_cm_id_busy(struct plx_dev_cm_id *id);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm.h - listeners and clients by the RDMA connection manager (librdmacm)
 */
#ifndef MLX_CM_H
#define MLX_CM_H

#include <rdma/rdma_cma.h>

#include "plx_dev_cm.h"

/** The functions of librdmacm that are used, by their names without "rdma_". */
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

/** Valid after mlx_cm_glue_open() said 0. */
extern struct mlx_cm_glue mlx_cm_glue;

/**
 * Open librdmacm, once in a process; it stays.
 * Errors: -ENODEV no such library, one without a function that is needed, or the kernel has no
 * rdma_ucm. Thread: any.
 */
int mlx_cm_glue_open(void);

extern const struct plx_dev_cm_ops mlx_cm_ops;

/** What both sides say with the request and the answer, as private data. */
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
	struct plx_dev_cm_id dev; /* fd holds those of channel and comp */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool client;
	int err; /* why nothing more will come */
	/* NULL, but for connections on their way or made; mlx_cm_id.c */
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;	  /* PLX_DEV_CM_SENDS messages to send, and one that comes */
	uint32_t sent, done;
	uint32_t got_len; /* of one that has come and was not taken */
};

/** An id without an rdma_cm_id. */
int mlx_cm_id_new(struct mlx_cm_id **out);
/** With all that belongs to it. */
void mlx_cm_id_free(struct mlx_cm_id *c);

/** Make its queue pair and let it receive; id has a device. */
int mlx_cm_id_qp(struct mlx_cm_id *c);

/** Look at what the device has done. @return bytes of a message that was written to buf, or 0 */
uint32_t mlx_cm_id_poll(struct mlx_cm_id *c, void *buf);

int mlx_cm_id_send(struct plx_dev_cm_id *id, const void *msg, uint32_t len);
bool mlx_cm_id_busy(struct plx_dev_cm_id *id);

#endif

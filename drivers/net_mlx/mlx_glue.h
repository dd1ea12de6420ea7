/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_glue.h - libibverbs, loaded when the driver first finds an RDMA device
 *
 * Design notes
 * - The libraries of rdma-core are not linked: a library that names them would not load on a
 *   machine without them, and every program would load them and their providers even within one
 *   machine. So exported functions of libibverbs are called as mlx_glue.name(); its inline
 *   functions (ibv_poll_cq() and so on) go through the device's context and are called directly.
 */
#ifndef MLX_GLUE_H
#define MLX_GLUE_H

#include <infiniband/verbs.h>

/** The used functions of libibverbs, by their names without "ibv_". */
struct mlx_glue {
	__typeof__((ibv_get_device_list)) *get_device_list;
	__typeof__((ibv_free_device_list)) *free_device_list;
	__typeof__((ibv_get_device_name)) *get_device_name;
	__typeof__((ibv_open_device)) *open_device;
	__typeof__((ibv_close_device)) *close_device;
	__typeof__((ibv_get_async_event)) *get_async_event;
	__typeof__((ibv_ack_async_event)) *ack_async_event;
	__typeof__((ibv_query_device)) *query_device;
	__typeof__((ibv_query_port)) *query_port;
	__typeof__((_ibv_query_gid_ex)) *query_gid_ex;
	__typeof__((ibv_alloc_pd)) *alloc_pd;
	__typeof__((ibv_dealloc_pd)) *dealloc_pd;
	__typeof__((ibv_reg_mr)) *reg_mr;
	__typeof__((ibv_dereg_mr)) *dereg_mr;
	__typeof__((ibv_create_comp_channel)) *create_comp_channel;
	__typeof__((ibv_destroy_comp_channel)) *destroy_comp_channel;
	__typeof__((ibv_create_cq)) *create_cq;
	__typeof__((ibv_destroy_cq)) *destroy_cq;
	__typeof__((ibv_get_cq_event)) *get_cq_event;
	__typeof__((ibv_ack_cq_events)) *ack_cq_events;
	__typeof__((ibv_create_srq)) *create_srq;
	__typeof__((ibv_destroy_srq)) *destroy_srq;
	__typeof__((ibv_create_qp)) *create_qp;
	__typeof__((ibv_modify_qp)) *modify_qp;
	__typeof__((ibv_destroy_qp)) *destroy_qp;
	__typeof__((ibv_create_ah)) *create_ah;
	__typeof__((ibv_destroy_ah)) *destroy_ah;
	__typeof__((ibv_attach_mcast)) *attach_mcast;
	__typeof__((ibv_detach_mcast)) *detach_mcast;
};

/** A function of a library, and the place of its pointer in a table such as struct mlx_glue. */
struct mlx_symbol {
	const char *name;
	size_t at;
};

/**
 * Load a library, which stays, and fill a table with its functions.
 * @param out changed on an error too
 * Errors: -ENODEV no such library, or a function is missing. Thread: control.
 */
int mlx_glue_load(const char *library, const struct mlx_symbol *rows, size_t n, void *out);

/** Valid after mlx_glue_open() returned 0. */
extern struct mlx_glue mlx_glue;

/**
 * Load libibverbs, once in a process; it stays. Errors: -ENODEV no such library, or a
 * function is missing. Thread: control, serialised by the caller.
 */
int mlx_glue_open(void);

/** As ibv_query_port(), whatever the provider's age. @return 0 or an errno */
int mlx_glue_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);

#endif

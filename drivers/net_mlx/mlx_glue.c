/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_glue.c - libibverbs, loaded when the driver first finds an RDMA device
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "mlx_base.h"
#include "mlx_glue.h"

PLX_LOG_DEFINE(mlx, "plx.drv.net_mlx");

#define LIBRARY "libibverbs.so.1"

struct mlx_glue mlx_glue;

static const struct mlx_symbol symbols[] = {
	{"ibv_get_device_list", offsetof(struct mlx_glue, get_device_list)},
	{"ibv_free_device_list", offsetof(struct mlx_glue, free_device_list)},
	{"ibv_get_device_name", offsetof(struct mlx_glue, get_device_name)},
	{"ibv_open_device", offsetof(struct mlx_glue, open_device)},
	{"ibv_close_device", offsetof(struct mlx_glue, close_device)},
	{"ibv_get_async_event", offsetof(struct mlx_glue, get_async_event)},
	{"ibv_ack_async_event", offsetof(struct mlx_glue, ack_async_event)},
	{"ibv_query_device", offsetof(struct mlx_glue, query_device)},
	{"ibv_query_port", offsetof(struct mlx_glue, query_port)},
	{"_ibv_query_gid_ex", offsetof(struct mlx_glue, query_gid_ex)},
	{"ibv_alloc_pd", offsetof(struct mlx_glue, alloc_pd)},
	{"ibv_dealloc_pd", offsetof(struct mlx_glue, dealloc_pd)},
	{"ibv_reg_mr", offsetof(struct mlx_glue, reg_mr)},
	{"ibv_dereg_mr", offsetof(struct mlx_glue, dereg_mr)},
	{"ibv_create_comp_channel", offsetof(struct mlx_glue, create_comp_channel)},
	{"ibv_destroy_comp_channel", offsetof(struct mlx_glue, destroy_comp_channel)},
	{"ibv_create_cq", offsetof(struct mlx_glue, create_cq)},
	{"ibv_destroy_cq", offsetof(struct mlx_glue, destroy_cq)},
	{"ibv_get_cq_event", offsetof(struct mlx_glue, get_cq_event)},
	{"ibv_ack_cq_events", offsetof(struct mlx_glue, ack_cq_events)},
	{"ibv_create_srq", offsetof(struct mlx_glue, create_srq)},
	{"ibv_destroy_srq", offsetof(struct mlx_glue, destroy_srq)},
	{"ibv_create_qp", offsetof(struct mlx_glue, create_qp)},
	{"ibv_modify_qp", offsetof(struct mlx_glue, modify_qp)},
	{"ibv_destroy_qp", offsetof(struct mlx_glue, destroy_qp)},
	{"ibv_create_ah", offsetof(struct mlx_glue, create_ah)},
	{"ibv_destroy_ah", offsetof(struct mlx_glue, destroy_ah)},
	{"ibv_attach_mcast", offsetof(struct mlx_glue, attach_mcast)},
	{"ibv_detach_mcast", offsetof(struct mlx_glue, detach_mcast)},
};

_Static_assert(sizeof(struct mlx_glue) == sizeof(symbols) / sizeof(symbols[0]) * sizeof(void *),
	"every function has its row");

int
mlx_glue_load(const char *library, const struct mlx_symbol *rows, size_t n, void *out)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (lib == NULL) {
		PLX_LOG(INFO, mlx, "%s", dlerror());
		return -ENODEV;
	}
	for (size_t i = 0; i < n; i++) {
		void *fn = dlsym(lib, rows[i].name);

		if (fn == NULL) {
			PLX_LOG(WARNING, mlx, "%s has no %s", library, rows[i].name);
			dlclose(lib);
			return -ENODEV;
		}
		memcpy((char *)out + rows[i].at, &fn, sizeof(fn));
	}
	return 0;
}

int
mlx_glue_open(void)
{
	struct mlx_glue found;
	int rc;

	if (mlx_glue.get_device_list != NULL)
		return 0;
	rc = mlx_glue_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), &found);
	if (rc == 0)
		mlx_glue = found;
	return rc;
}

int
mlx_glue_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_port);

	memset(attr, 0, sizeof(*attr));
	if (v != NULL)
		return v->query_port(ctx, port, attr, sizeof(*attr));
	return mlx_glue.query_port(ctx, port, (void *)attr);
}

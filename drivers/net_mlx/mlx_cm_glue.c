/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm_glue.c - librdmacm, loaded for the first listener, client or group that needs it
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "mlx_cm.h"
#include "mlx_glue.h"

#define LIBRARY "librdmacm.so.1"
#define KERNEL	"/dev/infiniband/rdma_cm"

struct mlx_cm_glue mlx_cm_glue;

#define ROW(fn)                                                                                    \
	{                                                                                          \
		"rdma_" #fn, offsetof(struct mlx_cm_glue, fn)                                      \
	}

static const struct mlx_symbol symbols[] = {
	ROW(create_event_channel),
	ROW(destroy_event_channel),
	ROW(get_cm_event),
	ROW(ack_cm_event),
	ROW(create_id),
	ROW(destroy_id),
	ROW(migrate_id),
	ROW(bind_addr),
	ROW(listen),
	ROW(resolve_addr),
	ROW(resolve_route),
	ROW(create_qp),
	ROW(destroy_qp),
	ROW(connect),
	ROW(accept),
	ROW(reject),
	ROW(disconnect),
	ROW(join_multicast_ex),
	ROW(leave_multicast),
};

_Static_assert(sizeof(mlx_cm_glue) == sizeof(symbols) / sizeof(symbols[0]) * sizeof(void *),
	"every function has its row");

int
mlx_cm_glue_open(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct mlx_cm_glue found;
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (mlx_cm_glue.create_id == NULL) {
		/* The library complains on standard error when something is missing. */
		rc = access(KERNEL, R_OK | W_OK) != 0 ? -ENODEV
			: mlx_glue_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), &found);
		if (rc == 0)
			mlx_cm_glue = found;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

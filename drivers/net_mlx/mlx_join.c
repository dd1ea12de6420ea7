/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_join.c - groups that are joined by the RDMA connection manager
 *
 * Design notes
 * - On InfiniBand the manager asks the subnet manager, for a group with the partition, the rate
 *   and the service level of the IP broadcast group of the port's interface. So the port needs an
 *   interface (IPoIB), and an id is bound to its address. On Ethernet the manager makes the
 *   kernel join the IP group.
 * - Each group has an id and an event channel of its own. The id has no queue pair: a receiver
 *   attaches its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_base.h"
#include "mlx_cm.h"
#include "mlx_join.h"
#include "mlx_port.h"

#define JOIN_MS 2000

_Static_assert(MLX_JOIN_QKEY == RDMA_UDP_QKEY, "as the manager has it");

struct mlx_join {
	const struct mlx_port *port;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_storage group;
	bool joined;
	uint64_t until_ns; /* deadline of the answer */
};

static int
last_error(void)
{
	return errno == EADDRNOTAVAIL ? -EHOSTUNREACH : errno > 0 ? -errno : -EIO;
}

/* The group's address in the manager's form. */
static void
name_group(struct mlx_join *j, const uint8_t gid[16])
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)&j->group;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&j->group;

	if (gid[0] == 0) {
		a4->sin_family = AF_INET;
		memcpy(&a4->sin_addr, gid + 12, sizeof(a4->sin_addr));
	} else {
		a6->sin6_family = AF_INET6;
		memcpy(&a6->sin6_addr, gid, sizeof(a6->sin6_addr));
	}
}

static int
id_bind(struct mlx_join *j, const struct mlx_port *port)
{
	const char *device = port->ctx->device->name;
	struct sockaddr_storage at;
	int rc = mlx_net_addr(port, &at);

	if (rc != 0)
		return rc;
	j->channel = mlx_cm_glue.create_event_channel();
	if (j->channel == NULL ||
		fcntl(j->channel->fd, F_SETFL, fcntl(j->channel->fd, F_GETFL) | O_NONBLOCK) != 0 ||
		mlx_cm_glue.create_id(j->channel, &j->id, j, RDMA_PS_UDP) != 0 ||
		mlx_cm_glue.bind_addr(j->id, (struct sockaddr *)&at) != 0)
		return last_error();
	if (j->id->verbs == NULL || j->id->port_num != port->num ||
		strcmp(j->id->verbs->device->name, device) != 0)
		return -ENODEV; /* the address has moved to another port */
	return 0;
}

/* Handle an event of the manager. @return whether that is an answer: *rc, and the path */
static bool
take(const struct rdma_cm_event *e, struct ibv_ah_attr *way, int *rc)
{
	switch (e->event) {
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		*way = e->param.ud.ah_attr;
		*rc = e->param.ud.qkey == MLX_JOIN_QKEY ? 0 : -EPROTO;
		return true;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		*rc = e->status == -ETIMEDOUT ? -ETIMEDOUT : -ECONNREFUSED;
		return true;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		*rc = -ENODEV;
		return true;
	default:
		return false;
	}
}

static int
ask(struct mlx_join *j)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)&j->group,
	};

	if (mlx_cm_glue.join_multicast_ex(j->id, &attr, NULL) != 0)
		return last_error();
	j->joined = true;
	j->until_ns = plx_clock_ns() + JOIN_MS * UINT64_C(1000000);
	return 0;
}

static int
refused(const struct mlx_port *port, int rc)
{
	PLX_LOG_RATELIMIT(WARNING, mlx, "port %s is in no group: the connection manager says %s",
		port->label, strerror(-rc));
	return rc;
}

int
mlx_join_begin(const struct mlx_port *port, const uint8_t gid[16], struct mlx_join **out)
{
	struct mlx_join *j;
	int rc = mlx_cm_glue_open();

	if (rc != 0)
		return rc;
	j = calloc(1, sizeof(*j));
	if (j == NULL)
		return -ENOMEM;
	j->port = port;
	name_group(j, gid);
	rc = id_bind(j, port);
	if (rc == 0)
		rc = ask(j);
	if (rc != 0) {
		mlx_join_end(j);
		return refused(port, rc);
	}
	*out = j;
	return 0;
}

int
mlx_join_look(struct mlx_join *j, struct ibv_ah_attr *way)
{
	struct rdma_cm_event *e;
	bool said = false;
	int rc = -ETIMEDOUT;

	while (!said && mlx_cm_glue.get_cm_event(j->channel, &e) == 0) {
		said = take(e, way, &rc);
		mlx_cm_glue.ack_cm_event(e);
	}
	if (!said && plx_clock_ns() < j->until_ns)
		return -EINPROGRESS;
	return rc == 0 ? 0 : refused(j->port, rc);
}

void
mlx_join_end(struct mlx_join *j)
{
	if (j == NULL)
		return;
	if (j->joined)
		mlx_cm_glue.leave_multicast(j->id, (struct sockaddr *)&j->group);
	if (j->id != NULL)
		mlx_cm_glue.destroy_id(j->id);
	if (j->channel != NULL)
		mlx_cm_glue.destroy_event_channel(j->channel);
	free(j);
}

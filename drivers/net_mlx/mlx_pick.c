/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_pick.c - which port for which peer
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plx_dev_ops.h"

#include "mlx_pick.h"
#include "mlx_queue.h"

int
mlx_queue_reach(const struct mlx_queue *mq, const struct mlx_addr *to)
{
	int rc = mlx_addr_reach(&mq->addr, to);

	return rc == 0 && !mq->routed && !mlx_addr_one_net(&mq->addr, to) ? -EHOSTUNREACH : rc;
}

void
mlx_queue_shun(struct mlx_queue *mq, uint64_t uid)
{
	plx_route_shun(&mq->shunned, uid, plx_clock_ns());
}

int
mlx_queue_path(struct plx_queue *q, const struct plx_addr *addr, struct plx_dev_path *out)
{
	const struct mlx_queue *mq = mlx_queue(q);
	struct mlx_addr to;
	int rc;

	if (addr->len != sizeof(to))
		return -EINVAL;
	memcpy(&to, addr->bytes, sizeof(to));
	rc = mlx_addr_check(&to);
	if (rc == 0)
		rc = mlx_queue_reach(mq, &to);
	if (rc != 0)
		return rc;
	mlx_addr_path(&mq->addr, &to, out);
	out->works = mlx_port_is_up(mq->port) && !plx_route_is_shunned(&mq->shunned, to.uid, plx_clock_ns());
	return 0;
}

void
mlx_addr_whose(const struct plx_addr *addr, char *text, size_t len)
{
	char host[INET6_ADDRSTRLEN] = "";
	struct mlx_addr to;

	memcpy(&to, addr->bytes, sizeof(to));
	if (to.link == MLX_LINK_ROCE4)
		inet_ntop(AF_INET, to.gid + 12, host, sizeof(host));
	else
		inet_ntop(AF_INET6, to.gid, host, sizeof(host));
	snprintf(text, len, "a process at %s, queue %u", host, to.ud_qpn);
}

void
mlx_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len)
{
	const struct mlx_queue *mq = mlx_queue(q);
	struct mlx_addr to;

	memcpy(&to, addr->bytes, sizeof(to));
	if (err == -EHOSTUNREACH)
		snprintf(text, len, mq->addr.link != to.link ? "its port is of another kind than %s"
			: "no network leads from %s to its port", mq->port->label);
}

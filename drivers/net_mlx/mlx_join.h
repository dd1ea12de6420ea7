/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_join.h - groups that are joined by the RDMA connection manager
 */
#ifndef MLX_JOIN_H
#define MLX_JOIN_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct mlx_join;
struct mlx_port;

/** The key that datagrams to such groups carry: the manager's for all that are joined by UDP. */
#define MLX_JOIN_QKEY 0x01234567u

/**
 * Ask the manager that a port be a member of a group.
 * @param port outlives it
 * @param gid of the group as mlx_addr_group() makes it
 * Errors: -ENODEV there is no manager, or it does not find the port; -EHOSTUNREACH its interface is
 * in no group. Thread: any.
 */
int mlx_join_begin(const struct mlx_port *port, const uint8_t gid[16], struct mlx_join **out);
/**
 * Whether the manager has answered; not to be asked again after that.
 * @param way where the group is, for address handles and for attaching queue pairs
 * Errors: -EINPROGRESS not yet; -ECONNREFUSED the subnet manager says no; -ETIMEDOUT it said nothing
 * for 2 s; -ENODEV, -EPROTO. Thread: owner. Blocks: never.
 */
int mlx_join_look(struct mlx_join *j, struct ibv_ah_attr *way);
/** The port is no member any more; accepts NULL. */
void mlx_join_end(struct mlx_join *j);

#endif

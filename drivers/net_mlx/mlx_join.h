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

/** The key of datagrams to such groups: the manager's for all that are joined by UDP. */
#define MLX_JOIN_QKEY 0x01234567u

/**
 * Ask the manager to make a port a member of a group.
 * @param port outlives it
 * @param gid of the group from mlx_addr_group()
 * Errors: -ENODEV there is no manager, or it does not find the port; -EHOSTUNREACH its
 * interface is in no group. Thread: any.
 */
int mlx_join_begin(const struct mlx_port *port, const uint8_t gid[16], struct mlx_join **out);
/**
 * Poll for the manager's answer; do not call it again after an answer.
 * @param way the group's address, for address handles and for attaching queue pairs
 * Errors: -EINPROGRESS not yet; -ECONNREFUSED the subnet manager refuses; -ETIMEDOUT no
 * answer for 2 s; -ENODEV, -EPROTO. Thread: owner. Blocks: never.
 */
int mlx_join_look(struct mlx_join *j, struct ibv_ah_attr *way);
/** End the membership; accepts NULL. */
void mlx_join_end(struct mlx_join *j);

#endif

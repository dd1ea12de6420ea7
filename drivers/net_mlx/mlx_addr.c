/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_addr.c - a queue's address, and the datagrams by which two queues connect
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_hash_crc.h>

#include "plx_credit.h"
#include "plx_dev_ops.h"
#include "plx_route.h"

#include "mlx_addr.h"

#define MAGIC 0x316d6c70u /* "plm1" */
#define QPN_MAX 0xffffffu
#define PSN_MAX 0xffffffu

static bool
net_bits_good(const struct mlx_addr *a)
{
	if (a->link == MLX_LINK_IB)
		return true;
	return a->net_bits <= PLX_ROUTE_BITS_MAX && (a->link == MLX_LINK_ROCE6 || a->net_bits >= 96);
}

int
mlx_addr_check(const struct mlx_addr *a)
{
	if (a->uid == 0 || a->version != MLX_ADDR_VERSION || a->link > MLX_LINK_ROCE6 ||
		a->ud_qpn == 0 || a->ud_qpn > QPN_MAX || a->path_mtu < IBV_MTU_256 ||
		a->path_mtu > IBV_MTU_4096 || a->rx_len < MLX_RX_LEN_MIN ||
		a->rx_len > MLX_RX_LEN_MAX || a->port == 0 || !net_bits_good(a))
		return -EINVAL;
	return 0;
}

/* A link-local address, which no router forwards. */
static bool
is_of_link(const struct mlx_addr *a)
{
	return a->link == MLX_LINK_ROCE6 && a->gid[0] == 0xfe && (a->gid[1] & 0xc0) == 0x80;
}

int
mlx_addr_reach(const struct mlx_addr *own, const struct mlx_addr *to)
{
	if (own->link != to->link || is_of_link(own) != is_of_link(to))
		return -EHOSTUNREACH;
	/* Within one subnet of InfiniBand; an Ethernet address may be behind any router. */
	if (own->link == MLX_LINK_IB && (to->lid == 0 || memcmp(own->gid, to->gid, 8) != 0))
		return -EHOSTUNREACH;
	return 0;
}

static struct plx_route_end
end_of(const struct mlx_addr *a)
{
	return (struct plx_route_end){.addr = a->gid, .bits = a->net_bits};
}

bool
mlx_addr_one_net(const struct mlx_addr *own, const struct mlx_addr *to)
{
	const struct plx_route_end a = end_of(own), b = end_of(to);

	return own->link == MLX_LINK_IB || plx_route_one_net(&a, &b);
}

void
mlx_addr_path(const struct mlx_addr *own, const struct mlx_addr *to, struct plx_dev_path *out)
{
	const unsigned place = MLX_ADDR_PLACE_MAX << MLX_ADDR_PLACE_AT;

	/* All links have the same addresses: equal ones prove nothing. */
	out->one_net = mlx_addr_one_net(own, to) && !is_of_link(own);
	out->speed = RTE_MIN(own->flags >> MLX_ADDR_SPEED_AT, to->flags >> MLX_ADDR_SPEED_AT);
	out->one_place = ((own->flags ^ to->flags) & place) == 0;
	out->n_near = !!(own->flags & MLX_ADDR_NEAR) + !!(to->flags & MLX_ADDR_NEAR);
}

uint32_t
mlx_addr_domain(const struct mlx_addr *a)
{
	return plx_dev_domain(a->proc, a->port);
}

uint32_t
mlx_addr_qkey(const struct mlx_addr *a)
{
	return (uint32_t)a->uid & 0x7fffffff; /* the highest bit is reserved for the administrator */
}

void
mlx_addr_group(const struct mlx_addr *own, uint64_t group, uint8_t gid[16])
{
	/* 239.192/14, an organization's own; with 18 bits of the number */
	const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 192 | (group >> 16 & 3),
		[14] = group >> 8, [15] = group};
	/* transient, for the organization, or for the link if that is all that the port has */
	const uint8_t v6[8] = {0xff, own->gid[0] == 0xfe ? 0x12 : 0x18};

	if (own->link == MLX_LINK_ROCE4) {
		memcpy(gid, v4, sizeof(v4));
	} else {
		memcpy(gid, v6, sizeof(v6));
		memcpy(gid + sizeof(v6), &group, sizeof(group));
	}
}

bool
mlx_addr_sent(const struct mlx_addr *a, const uint8_t *grh, uint16_t lid)
{
	if (grh == NULL)
		return a->link == MLX_LINK_IB && lid == a->lid;
	if (a->link == MLX_LINK_ROCE4) /* the last 20 bytes are an IPv4 header */
		return grh[20] >> 4 == 4 && memcmp(grh + 32, a->gid + 12, 4) == 0;
	return grh[0] >> 4 == 6 && memcmp(grh + 8, a->gid, sizeof(a->gid)) == 0;
}

void
mlx_dgram_seal(struct mlx_dgram *d)
{
	d->magic = MAGIC;
	d->crc = 0;
	d->crc = rte_hash_crc(d, sizeof(*d), 0);
}

int
mlx_dgram_open(const void *buf, size_t len, struct mlx_dgram *out)
{
	uint32_t crc;

	if (len != sizeof(*out))
		return -EBADMSG;
	memcpy(out, buf, sizeof(*out));
	crc = out->crc;
	out->crc = 0;
	if (out->magic != MAGIC || crc != rte_hash_crc(out, sizeof(*out), 0))
		return -EBADMSG;
	if (out->kind == 0 || out->kind >= MLX_DGRAM_N || mlx_addr_check(&out->from) != 0)
		return -EBADMSG;
	if (out->qpn == 0 || out->qpn > QPN_MAX || out->psn > PSN_MAX)
		return -EBADMSG;
	if (out->kind < MLX_DGRAM_CALL && out->credits < PLX_CREDIT_MIN)
		return -EBADMSG;
	return 0;
}

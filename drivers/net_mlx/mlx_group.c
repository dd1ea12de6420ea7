/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_group.c - groups: one datagram for all receivers, copied by the network
 *
 * Design notes
 * - A group is an address of IP multicast (mlx_addr_group()). On Ethernet a receiving queue
 *   attaches its queue pair of groups to it, so the device accepts the datagrams, and joins it by
 *   a socket on the port's interface, so that the network (IGMP, MLD) and the host's own stack,
 *   which soft-RoCE uses, forward them. rdma_cm makes the kernel do the same; here it needs
 *   neither its ids nor their events. A sender joins nothing.
 * - InfiniBand requires the subnet manager's permission, for senders as well: there rdma_cm asks
 *   it, and returns the group's address (mlx_join.c). On Ethernet that is a setting. The answer
 *   takes a while, and turns poll for it; others who join meanwhile wait for the same one.
 * - Some devices read an address handle only when they complete a send, and fail the queue pair
 *   if the handle is destroyed: a leaving sender keeps it, and the membership, until then.
 * - Several groups may share an address, so each datagram has the number of its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mlx_glue.h"
#include "mlx_group.h"
#include "mlx_join.h"
#include "mlx_queue.h"

#define MULTICAST_QPN 0xffffffu
#define QKEY	      0x6d6c7867u /* of all groups */
#define MAGIC	      0x67786c70u /* "plxg" */

struct mlx_group {
	LIST_ENTRY(mlx_group) link;
	uint64_t id;
	uint8_t gid[16];
	uint32_t n_tx, n_rx;
	struct ibv_ah *ah; /* while n_tx, and until its sends are complete */
	uint64_t sent;	   /* datagrams that are complete when its own are */
	int fd;		   /* while n_rx, without a manager */
	struct mlx_join *join;	/* by the manager, or NULL */
	bool joining;		/* it has not answered yet */
	uint32_t n_wait[2];	/* senders and receivers that wait for it */
	struct ibv_ah_attr way; /* from the manager */
};

struct mlx_groups {
	LIST_HEAD(, mlx_group) list;
	uint32_t n_leaving; /* groups with a handle and without a sender */
	uint32_t n_joining;
	struct mlx_ud ud;
};

uint32_t
mlx_group_mtu(const struct mlx_queue *mq)
{
	struct sockaddr_storage at;

	if (mq->by_manager && mlx_net_addr(mq->port, &at) != 0)
		return 0;
	return RTE_MIN(mlx_addr_mtu(&mq->addr) - sizeof(struct mlx_cast), MLX_GROUP_LEN);
}

static uint32_t
qkey(const struct mlx_queue *mq)
{
	return mq->by_manager ? MLX_JOIN_QKEY : QKEY;
}

/* Make the queue pair of groups, with the first group. */
static int
groups_open(struct mlx_queue *mq)
{
	struct mlx_groups *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return -ENOMEM;
	LIST_INIT(&g->list);
	rc = mlx_ud_open(mq, &g->ud, sizeof(struct mlx_cast) + MLX_GROUP_LEN, MLX_GROUP_RX, qkey(mq));
	if (rc != 0) {
		free(g);
		return rc;
	}
	mq->groups = g;
	return 0;
}

static struct mlx_group *
group_find(const struct mlx_groups *groups, uint64_t id)
{
	struct mlx_group *g = NULL;

	if (groups != NULL)
		LIST_FOREACH(g, &groups->list, link)
			if (g->id == id)
				break;
	return g;
}

/* A socket that is a member of the group on the port's interface. */
static int
host_join(const struct mlx_queue *mq, const struct mlx_group *g)
{
	bool v4 = mq->addr.link == MLX_LINK_ROCE4;
	struct group_req r = {.gr_interface = mq->port->ifindex};
	struct sockaddr_in *a4 = (struct sockaddr_in *)&r.gr_group;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&r.gr_group;
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	r.gr_group.ss_family = v4 ? AF_INET : AF_INET6;
	if (v4)
		memcpy(&a4->sin_addr, g->gid + 12, sizeof(a4->sin_addr));
	else
		memcpy(&a6->sin6_addr, g->gid, sizeof(a6->sin6_addr));
	if (setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &r, sizeof(r)) != 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Attach to the group's address or detach from it, unless another received group has it. */
static int
attach(struct mlx_queue *mq, const struct mlx_group *g, bool on)
{
	const struct mlx_group *other;
	union ibv_gid gid;

	LIST_FOREACH(other, &mq->groups->list, link)
		if (other != g && other->n_rx != 0 && memcmp(other->gid, g->gid, sizeof(g->gid)) == 0)
			return 0;
	memcpy(gid.raw, g->gid, sizeof(gid.raw));
	return on ? -mlx_glue.attach_mcast(mq->groups->ud.qp, &gid, g->way.dlid)
		  : -mlx_glue.detach_mcast(mq->groups->ud.qp, &gid, g->way.dlid);
}

static int
rx_join(struct mlx_queue *mq, struct mlx_group *g)
{
	int rc;

	g->fd = g->join == NULL ? host_join(mq, g) : -1;
	if (g->join == NULL && g->fd < 0)
		return g->fd;
	rc = attach(mq, g, true);
	if (rc != 0 && g->fd >= 0)
		close(g->fd);
	return rc;
}

static void
rx_leave(struct mlx_queue *mq, struct mlx_group *g)
{
	(void)attach(mq, g, false);
	if (g->fd >= 0)
		close(g->fd);
}

static int
tx_join(struct mlx_queue *mq, struct mlx_group *g)
{
	if (g->ah != NULL) {
		mq->groups->n_leaving--;
		return 0;
	}
	errno = 0;
	g->ah = g->join != NULL ? mlx_glue.create_ah(mq->port->pd, &g->way)
				: mlx_ud_way(mq, g->gid, 0);
	return g->ah != NULL ? 0 : errno != 0 ? -errno : -EIO;
}

static void
group_free_if_left(struct mlx_group *g)
{
	if (g->n_tx + g->n_rx != 0 || g->ah != NULL || g->joining)
		return;
	LIST_REMOVE(g, link);
	mlx_join_end(g->join);
	free(g);
}

static void
ah_free(struct mlx_group *g)
{
	mlx_glue.destroy_ah(g->ah);
	g->ah = NULL;
	group_free_if_left(g);
}

/* Destroy handles without senders, when all their sends are complete. */
static __rte_noinline void
leaving_end(struct mlx_groups *groups)
{
	struct mlx_group *g, *next;

	for (g = LIST_FIRST(&groups->list); g != NULL; g = next) {
		next = LIST_NEXT(g, link);
		if (g->ah != NULL && g->n_tx == 0 && groups->ud.done >= g->sent) {
			groups->n_leaving--;
			ah_free(g);
		}
	}
}

static int
ask_manager(struct mlx_queue *mq, struct mlx_group *g)
{
	int rc = mlx_join_begin(mq->port, g->gid, &g->join);

	if (rc == 0) {
		g->joining = true;
		mq->groups->n_joining++;
	}
	return rc;
}

static int
group_get(struct mlx_queue *mq, uint64_t id, struct mlx_group **out)
{
	int rc = mq->groups == NULL ? groups_open(mq) : 0;

	if (rc != 0)
		return rc;
	*out = group_find(mq->groups, id);
	if (*out != NULL)
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->id = id;
	mlx_addr_group(&mq->addr, id, (*out)->gid);
	rc = mq->by_manager ? ask_manager(mq, *out) : 0;
	if (rc != 0)
		free(*out);
	else
		LIST_INSERT_HEAD(&mq->groups->list, *out, link);
	return rc;
}

/* n more members: senders of a usable group, or receivers. */
static int
members_add(struct mlx_queue *mq, struct mlx_group *g, bool rx, uint32_t more)
{
	uint32_t *n = rx ? &g->n_rx : &g->n_tx;
	int rc = 0;

	if (*n == 0)
		rc = rx ? rx_join(mq, g) : tx_join(mq, g);
	if (rc == 0)
		*n += more;
	return rc;
}

int
mlx_group_join(struct plx_queue *q, uint64_t id, bool rx)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_group *g;
	int rc = group_get(mq, id, &g);

	if (rc != 0)
		return rc;
	if (g->joining) {
		g->n_wait[rx]++;
		return -EINPROGRESS;
	}
	rc = members_add(mq, g, rx, 1);
	group_free_if_left(g);
	return rc;
}

/* Stop waiting for the manager's answer. */
static void
joining_end(struct mlx_queue *mq, struct mlx_group *g)
{
	g->joining = false;
	g->n_wait[0] = g->n_wait[1] = 0;
	mq->groups->n_joining--;
}

/* The manager has answered: the waiting ones are members, or get the error. */
static void
answered(struct mlx_queue *mq, struct mlx_group *g, int rc)
{
	const uint32_t n[2] = {g->n_wait[0], g->n_wait[1]};
	uint64_t id = g->id;
	int err[2] = {rc, rc};

	joining_end(mq, g);
	if (rc == 0) {
		memcpy(g->gid, g->way.grh.dgid.raw, sizeof(g->gid));
		PLX_STAT_INC(mq->stat.group_by_cm);
	}
	for (unsigned rx = 0; rx < 2; rx++)
		if (rc == 0 && n[rx] != 0)
			err[rx] = members_add(mq, g, rx != 0, n[rx]);
	group_free_if_left(g);
	for (unsigned rx = 0; rx < 2; rx++)
		if (n[rx] != 0 && mq->q->on_joined != NULL)
			mq->q->on_joined(mq->q, id, rx != 0, err[rx]);
}

static __rte_noinline void
joining_look(struct mlx_queue *mq)
{
	struct mlx_group *g;
	int rc;

	LIST_FOREACH(g, &mq->groups->list, link) {
		rc = g->joining ? mlx_join_look(g->join, &g->way) : -EINPROGRESS;
		if (rc != -EINPROGRESS) {
			answered(mq, g, rc);
			return; /* the list may have changed */
		}
	}
}

void
mlx_group_leave(struct plx_queue *q, uint64_t id, bool rx)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_group *g = group_find(mq->groups, id);

	if (g != NULL && g->joining && g->n_wait[rx] != 0) {
		if (--g->n_wait[rx] + g->n_wait[!rx] == 0)
			joining_end(mq, g);
		group_free_if_left(g);
		return;
	}
	if (g == NULL || (rx ? g->n_rx : g->n_tx) == 0)
		return;
	if (!rx && --g->n_tx == 0) {
		mq->groups->n_leaving++;
		leaving_end(mq->groups); /* g with it, perhaps */
		return;
	}
	if (rx && --g->n_rx == 0)
		rx_leave(mq, g);
	group_free_if_left(g);
}

static void
group_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data, uint32_t len)
{
	const struct mlx_group *g;
	struct mlx_cast h;

	(void)src; /* anybody may send */
	if (len < sizeof(h)) {
		PLX_STAT_INC(mq->stat.group_drop_bad);
		return;
	}
	memcpy(&h, data, sizeof(h));
	g = group_find(mq->groups, h.group);
	if (h.magic != MAGIC || h.len != len - sizeof(h)) {
		PLX_STAT_INC(mq->stat.group_drop_bad);
	} else if (g == NULL || g->n_rx == 0) {
		PLX_STAT_INC(mq->stat.group_drop_not_ours);
	} else {
		PLX_STAT_INC(mq->stat.group_rx);
		if (mq->q->on_group != NULL)
			mq->q->on_group(mq->q, h.group, data + sizeof(h), h.len);
	}
}

int
mlx_group_tx(struct plx_queue *q, uint64_t id, const void *data, uint32_t len)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_group *g = group_find(mq->groups, id);
	struct mlx_cast h = {.magic = MAGIC, .len = len, .group = id};
	uint8_t *at;

	if (g == NULL || g->n_tx == 0)
		return -ENOENT;
	PLX_ASSERT(len <= q->group_mtu);
	at = mlx_ud_room(&mq->groups->ud);
	if (at == NULL) {
		PLX_STAT_INC(mq->stat.group_no_room);
		return -EAGAIN;
	}
	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), data, len);
	mlx_ud_send(mq, &mq->groups->ud, sizeof(h) + len, g->ah, MULTICAST_QPN, qkey(mq));
	g->sent = mq->groups->ud.sent;
	PLX_STAT_INC(mq->stat.group_tx);
	return 0;
}

unsigned
mlx_groups_poll(struct mlx_queue *mq)
{
	unsigned n;

	if (mq->groups == NULL)
		return 0;
	n = mlx_ud_poll(mq, &mq->groups->ud, group_take);
	if (unlikely(mq->groups->n_leaving != 0))
		leaving_end(mq->groups);
	if (unlikely(mq->groups->n_joining != 0 && mq->link.looks % MLX_UD_EVERY == 0))
		joining_look(mq);
	return n;
}

int
mlx_groups_arm(struct mlx_queue *mq)
{
	if (mq->groups == NULL)
		return 0;
	return mq->groups->n_joining != 0 || mq->groups->ud.failed
		? -EBUSY : ibv_req_notify_cq(mq->groups->ud.cq, 0);
}

void
mlx_groups_mend(struct mlx_queue *mq)
{
	if (mq->groups != NULL)
		mlx_ud_mend(mq, &mq->groups->ud);
}

void
mlx_groups_close(struct mlx_queue *mq)
{
	struct mlx_group *g;

	if (mq->groups == NULL)
		return;
	LIST_FOREACH(g, &mq->groups->list, link) {
		if (g->n_rx != 0)
			rx_leave(mq, g);
		g->n_rx = g->n_tx = 0;
		g->joining = false;
	}
	mlx_ud_close(&mq->groups->ud);
	while ((g = LIST_FIRST(&mq->groups->list)) != NULL) {
		if (g->ah != NULL)
			ah_free(g);
		else
			group_free_if_left(g);
	}
	free(mq->groups);
}

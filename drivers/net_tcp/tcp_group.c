/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_group.c - groups: one datagram for all receivers, which the network copies
 *
 * Design notes
 * - A group has two addresses of IP multicast, of IPv4 and of IPv6, which follow from its name, as its key does. A
 *   receiver joins them at each interface of net_tcp.interfaces, by a socket that is bound to the address. A sender
 *   joins nothing, and sends by the first of the interfaces. Loopback, used where there is no other, has IPv4 only: it
 *   has no multicast of IPv6.
 * - Everybody who knows a group's name may send to it; the key keeps out all others. Datagrams carry a number in the
 *   clear, from which neither the key nor the name follows. Groups may share an address: the number tells them apart.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tcp_int.h"

#ifndef IPV6_MULTICAST_ALL /* of linux/in6.h, which netinet/in.h does not go with */
#define IPV6_MULTICAST_ALL 29
#endif

struct tcp_group {
	LIST_ENTRY(tcp_group) link;
	uint64_t id;	 /* a hash of its name */
	uint64_t number; /* that datagrams carry */
	uint32_t n_tx, n_rx;
	struct tcp_udp_way way;
	struct tcp_udp_in in[2]; /* of IPv4, of IPv6; while n_rx */
};

static struct tcp_group *
group_find(const struct tcp_queue *tq, uint64_t id)
{
	struct tcp_group *g = NULL;

	if (tq->udp != NULL)
		LIST_FOREACH(g, &tq->udp->groups, link)
			if (g->id == id)
				break;
	return g;
}

/* 239.192/14, an organization's own; ff18::/16, transient and the organization's. */
static struct tcp_ip
ip_of(const struct tcp_group *g, uint8_t family)
{
	struct tcp_ip ip = {.family = family, .bytes = {0xff, 0x18}};
	const uint8_t v4[4] = {239, 192 | (g->number >> 16 & 3), (uint8_t)(g->number >> 8), (uint8_t)g->number};

	if (family == 4)
		memcpy(ip.bytes, v4, sizeof(v4));
	else
		memcpy(ip.bytes + 8, &g->number, sizeof(g->number));
	return ip;
}

static void
key_of(struct tcp_group *g)
{
	const struct tcp_mac_part none = {NULL, 0};
	uint8_t secret[TCP_MAC_LEN] = "group of", number[TCP_MAC_LEN];

	memcpy(secret + 8, &g->id, sizeof(g->id));
	tcp_mac(secret, (struct tcp_mac_part){"datagrams", 9}, none, (uint8_t *)g->way.key.k);
	tcp_mac(secret, (struct tcp_mac_part){"number", 6}, none, number);
	memcpy(&g->number, number, sizeof(g->number));
}

/* -- sending -- */

/* The interface to send by: the first that is allowed, loopback if there is no other. */
static const struct tcp_if *
way_out(const struct tcp_if *ifs, unsigned n)
{
	const struct tcp_if *loopback = NULL;

	for (unsigned i = 0; i < n; i++) {
		if (ifs[i].used && !ifs[i].loopback)
			return &ifs[i];
		if (ifs[i].used && loopback == NULL)
			loopback = &ifs[i];
	}
	return loopback;
}

static int
send_by(const struct tcp_queue *tq, uint8_t family, const char *name)
{
	const struct ip_mreqn by = {.imr_ifindex = (int)if_nametoindex(name)};
	int fd = tq->udp->in.fd, rc;

	if (by.imr_ifindex == 0)
		return -ENODEV;
	if (family == 6) {
		rc = tcp_sock_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, by.imr_ifindex);
		return rc == 0 ? tcp_sock_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, tq->group_ttl) : rc;
	}
	rc = setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)) == 0 ? 0 : -errno;
	return rc == 0 ? tcp_sock_set(fd, IPPROTO_IP, IP_MULTICAST_TTL, tq->group_ttl) : rc;
}

/* Choose how to send to groups, once. */
static int
casts_open(struct tcp_queue *tq)
{
	struct tcp_if ifs[TCP_IF_MAX];
	const struct tcp_if *by;
	uint8_t family;
	int rc;

	if (tq->udp->casts != 0)
		return 0;
	by = way_out(ifs, tcp_if_list(&tq->ifs, ifs));
	if (by == NULL)
		return -ENODEV;
	family = by->loopback ? 4 : by->ip.family;
	rc = send_by(tq, family, by->name);
	if (rc == 0)
		tq->udp->casts = family;
	return rc;
}

static int
tx_join(struct tcp_queue *tq, struct tcp_group *g)
{
	struct tcp_ip ip;
	int rc = casts_open(tq);

	if (rc != 0)
		return rc;
	ip = ip_of(g, tq->udp->casts);
	g->way.to_len = tcp_ip_sockaddr(&ip, tq->group_port, &g->way.to);
	return 0;
}

int
tcp_group_tx(struct plx_queue *q, uint64_t id, const void *data, uint32_t len)
{
	struct tcp_queue *tq = tcp_queue(q);
	struct tcp_group *g = group_find(tq, id);
	uint8_t *at;

	if (g == NULL || g->n_tx == 0)
		return -ENOENT;
	PLX_ASSERT(len <= q->group_mtu);
	at = tcp_udp_room(tq);
	if (at == NULL) {
		PLX_STAT_INC(tq->stat.group_no_room);
		return -EAGAIN;
	}
	if (len != 0)
		memcpy(at, data, len);
	tcp_udp_send(tq, (struct tcp_stamp){.kind = TCP_STAMP_GROUP, .from = g->number}, len, &g->way);
	PLX_STAT_INC(tq->stat.group_tx);
	return 0;
}

/* -- receiving -- */

static void
group_take(struct tcp_queue *tq, struct tcp_udp_in *in, const struct tcp_stamp *stamp, const uint8_t *data, uint32_t len)
{
	const struct tcp_group *g = in->of;

	if (stamp->kind != TCP_STAMP_GROUP || stamp->from != g->number || len > TCP_GROUP_LEN ||
		!tcp_udp_is_by(stamp, data, len, &g->way.key)) {
		PLX_STAT_INC(tq->stat.group_drop_not_ours);
		return;
	}
	PLX_STAT_INC(tq->stat.group_rx);
	if (tq->q->on_group != NULL)
		tq->q->on_group(tq->q, g->id, data, len);
}

/* At each interface that is allowed. @return 0, or why at none */
static int
join_all(const struct tcp_queue *tq, int fd, const struct tcp_ip *ip, const struct sockaddr_storage *sa)
{
	struct tcp_if ifs[TCP_IF_MAX];
	unsigned n = tcp_if_list(&tq->ifs, ifs), n_joined = 0;
	int rc = -ENODEV;

	for (unsigned i = 0; i < n; i++) {
		struct group_req r = {.gr_interface = if_nametoindex(ifs[i].name), .gr_group = *sa};

		if (!ifs[i].used || ip->family != (ifs[i].loopback ? 4 : ifs[i].ip.family))
			continue;
		if (setsockopt(fd, ip->family == 4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &r, sizeof(r)) == 0)
			n_joined++;
		else if (errno != EADDRINUSE) /* another address of the same interface */
			rc = -errno;
	}
	return n_joined != 0 ? 0 : rc;
}

/* A socket that receives the group's datagrams of one family. @return it, or -errno */
static int
rx_socket(const struct tcp_queue *tq, const struct tcp_group *g, uint8_t family)
{
	const struct tcp_ip ip = ip_of(g, family);
	struct sockaddr_storage sa;
	socklen_t len = tcp_ip_sockaddr(&ip, tq->group_port, &sa);
	int fd = tcp_sock_new(sa.ss_family, SOCK_DGRAM), rc;

	if (fd < 0)
		return fd;
	if (family == 6)
		rc = tcp_sock_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	else
		rc = tcp_sock_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	if (rc == 0)
		rc = tcp_sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* others of this host receive, too */
	if (rc == 0 && bind(fd, (struct sockaddr *)&sa, len) != 0)
		rc = -errno;
	if (rc == 0)
		rc = join_all(tq, fd, &ip, &sa);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static int
rx_open(struct tcp_queue *tq, struct tcp_group *g, unsigned i)
{
	struct tcp_udp_in *in = &g->in[i];
	int rc, fd = rx_socket(tq, g, i == 0 ? 4 : 6);

	if (fd < 0)
		return fd;
	*in = (struct tcp_udp_in){.take = group_take, .of = g, .fd = fd};
	rc = tcp_udp_in_open(tq, in);
	if (rc == 0)
		return 0;
	in->fd = -1;
	close(fd);
	return rc;
}

static void
rx_leave(struct tcp_queue *tq, struct tcp_group *g)
{
	for (unsigned i = 0; i < 2; i++)
		tcp_udp_in_close(tq, &g->in[i]);
}

/* By one family at least. */
static int
rx_join(struct tcp_queue *tq, struct tcp_group *g)
{
	int rc4 = rx_open(tq, g, 0), rc6 = rx_open(tq, g, 1);

	return rc4 == 0 || rc6 == 0 ? 0 : rc4 != -ENODEV ? rc4 : rc6;
}

/* -- members -- */

static void
group_free_if_left(struct tcp_group *g)
{
	if (g->n_tx + g->n_rx != 0)
		return;
	LIST_REMOVE(g, link);
	free(g);
}

static int
group_get(struct tcp_queue *tq, uint64_t id, struct tcp_group **out)
{
	struct tcp_group *g;
	int rc = tcp_udp_open(tq);

	if (rc != 0)
		return rc;
	*out = group_find(tq, id);
	if (*out != NULL)
		return 0;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	g->id = id;
	g->in[0].fd = g->in[1].fd = -1;
	key_of(g);
	LIST_INSERT_HEAD(&tq->udp->groups, g, link);
	*out = g;
	return 0;
}

int
tcp_group_join(struct plx_queue *q, uint64_t id, bool rx)
{
	struct tcp_queue *tq = tcp_queue(q);
	struct tcp_group *g;
	uint32_t *n;
	int rc = group_get(tq, id, &g);

	if (rc != 0)
		return rc;
	n = rx ? &g->n_rx : &g->n_tx;
	if (*n == 0)
		rc = rx ? rx_join(tq, g) : tx_join(tq, g);
	*n += rc == 0;
	group_free_if_left(g);
	return rc;
}

void
tcp_group_leave(struct plx_queue *q, uint64_t id, bool rx)
{
	struct tcp_queue *tq = tcp_queue(q);
	struct tcp_group *g = group_find(tq, id);

	if (g == NULL || (rx ? g->n_rx : g->n_tx) == 0)
		return;
	if (!rx)
		g->n_tx--;
	else if (--g->n_rx == 0)
		rx_leave(tq, g);
	group_free_if_left(g);
}

void
tcp_groups_lose(struct tcp_queue *tq)
{
	struct tcp_group *g;

	if (tq->udp == NULL)
		return;
	LIST_FOREACH(g, &tq->udp->groups, link)
		for (unsigned i = 0; i < 2; i++)
			tcp_sock_lose(&g->in[i].fd);
}

void
tcp_groups_close(struct tcp_queue *tq)
{
	struct tcp_group *g;

	tcp_groups_lose(tq);
	while (tq->udp != NULL && (g = LIST_FIRST(&tq->udp->groups)) != NULL) {
		LIST_REMOVE(g, link);
		free(g);
	}
}

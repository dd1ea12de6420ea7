/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_sock.c - system calls with sockets
 */
#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tcp_int.h"

#define BACKLOG	    4096
#define BIND_TRIES  1024 /* ports of a range that are tried */
#define UNSENT_MAX  (128 << 10) /* bytes that a socket takes beyond what may be under way: more leave the caches */
#define PROBES_MAX  127u /* that the kernel counts */
#define RTO_MAX_MS  44 /* TCP_RTO_MAX_MS, Linux 6.15: the longest pause between two tries to send the same */
#define HEAD_IP4    20 /* bytes of heads */
#define HEAD_IP6    40
#define HEAD_UDP    8
#define HEAD_TCP    20
#define HEAD_STAMPS 12
#define DEFER_S	    3 /* a connection on which nothing comes is the kernel's for so long */

uint32_t
tcp_random(uint32_t n)
{
	uint32_t any = 0;

	(void)!getrandom(&any, sizeof(any), GRND_NONBLOCK); /* without entropy yet it is the first */
	return any % n;
}

int
tcp_sock_epoll(struct tcp_queue *tq)
{
	int none = -1, fd = tq->epfd;

	if (fd >= 0)
		return fd;
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (atomic_compare_exchange_strong(&tq->epfd, &none, fd))
		return fd;
	close(fd); /* another thread asked for the address meanwhile */
	return none;
}

int
tcp_sock_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? 0 : -errno;
}

int
tcp_sock_new(int family, int type)
{
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd >= 0 ? fd : -errno;
}

static int
bind_any(int fd, int family, uint16_t port)
{
	struct tcp_ip any = {.family = family == AF_INET ? 4 : 6};
	struct sockaddr_storage sa;
	socklen_t len = tcp_ip_sockaddr(&any, port, &sa);

	return bind(fd, (struct sockaddr *)&sa, len) == 0 ? 0 : -errno;
}

/* To a port of the range that the settings give, beginning anywhere in it. */
static int
bind_range(const struct tcp_queue *tq, int fd, int family)
{
	unsigned n = tq->port_last - tq->port_first + 1u, from;
	int rc = -EADDRINUSE;

	if (tq->port_first == 0)
		return bind_any(fd, family, 0);
	from = tcp_random(n);
	for (unsigned i = 0; i < RTE_MIN(n, (unsigned)BIND_TRIES) && rc == -EADDRINUSE; i++)
		rc = bind_any(fd, family, (uint16_t)(tq->port_first + (from + i) % n));
	return rc;
}

static int
port_of(int fd, uint16_t *port)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		return -errno;
	*port = ntohs(sa.ss_family == AF_INET ? ((struct sockaddr_in *)&sa)->sin_port
					      : ((struct sockaddr_in6 *)&sa)->sin6_port);
	return 0;
}

/* A socket at a port of net_tcp.ports. @return it, or -errno */
static int
bound(const struct tcp_queue *tq, int type, int family, bool v6only, uint16_t *port)
{
	int fd = tcp_sock_new(family, type), rc = 0;

	if (fd < 0)
		return fd;
	if (type == SOCK_STREAM && tq->port_first != 0) /* connections of one before may still be known there */
		(void)tcp_sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (family == AF_INET6)
		rc = tcp_sock_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6only);
	if (rc == 0)
		rc = bind_range(tq, fd, family);
	if (rc == 0)
		rc = port_of(fd, port);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Of IPv6, where there is any. */
static int
bound_by6(const struct tcp_queue *tq, int type, bool v6only, uint16_t *port)
{
	int fd = bound(tq, type, AF_INET6, v6only, port);

	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? bound(tq, type, AF_INET, false, port) : fd;
}

/* @return -EAGAIN: others were bound to its port, too, and were quicker to listen */
static int
listen_try(const struct tcp_queue *tq, uint16_t *port)
{
	uint8_t only = tq->ifs.family;
	int fd = only == TCP_FAMILY_4 ? bound(tq, SOCK_STREAM, AF_INET, false, port)
				      : bound_by6(tq, SOCK_STREAM, only == TCP_FAMILY_6, port);
	int rc;

	if (fd < 0)
		return fd;
	if (listen(fd, BACKLOG) != 0) {
		rc = errno == EADDRINUSE ? -EAGAIN : -errno;
		close(fd);
		return rc;
	}
	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_S);
	return fd;
}

int
tcp_sock_listen(const struct tcp_queue *tq, uint16_t *port)
{
	int fd = -EAGAIN;

	for (unsigned i = 0; i < BIND_TRIES && fd == -EAGAIN; i++)
		fd = listen_try(tq, port);
	return fd;
}

int
tcp_sock_udp(const struct tcp_queue *tq, uint16_t *port)
{
	return bound_by6(tq, SOCK_DGRAM, false, port);
}

/* The longest datagram to a place by the MTU of the path, as far as it is known. @return bytes behind the head of UDP, or -errno */
static int
udp_room(const struct tcp_ip *ip, uint16_t port)
{
	struct sockaddr_storage sa;
	socklen_t len = tcp_ip_sockaddr(ip, port, &sa), n = sizeof(int);
	int fd = tcp_sock_new(sa.ss_family, SOCK_DGRAM), mtu = 0, rc;

	if (fd < 0)
		return fd;
	rc = connect(fd, (struct sockaddr *)&sa, len);
	if (rc == 0)
		rc = ip->family == 4 ? getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &n)
				     : getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &n);
	if (rc != 0)
		mtu = -errno;
	close(fd);
	return mtu < 0 ? mtu : mtu - (ip->family == 4 ? HEAD_IP4 : HEAD_IP6) - HEAD_UDP;
}

/* The same, by the segments of a connection, which both ends have agreed on: a packet of UDP may be as long. */
static int
tcp_room(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return INT_MAX;
	return (int)info.tcpi_snd_mss + ((info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0 ? HEAD_STAMPS : 0) +
		HEAD_TCP - HEAD_UDP;
}

int
tcp_sock_udp_room(const struct tcp_ip *ip, uint16_t port, int fd)
{
	int room = udp_room(ip, port);

	return room < 0 ? room : RTE_MIN(room, tcp_room(fd));
}

int
tcp_sock_connect(const struct tcp_queue *tq, const struct tcp_ip *ip, uint16_t port)
{
	struct sockaddr_storage sa;
	socklen_t len = tcp_ip_sockaddr(ip, port, &sa);
	int fd = tcp_sock_new(sa.ss_family, SOCK_STREAM), rc = 0;

	if (fd < 0)
		return fd;
	if (tq->port_first != 0) {
		(void)tcp_sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		rc = bind_range(tq, fd, sa.ss_family);
		if (rc == -EADDRINUSE)
			rc = -EADDRNOTAVAIL; /* as connect() says it */
	}
	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (rc == 0 && connect(fd, (struct sockaddr *)&sa, len) != 0 && errno != EINPROGRESS)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

void
tcp_sock_settle(const struct tcp_queue *tq, int fd)
{
	uint32_t dead_s = (tq->dead_ms + 999) / 1000, every_s = RTE_MAX(tq->probe_ms / 1000, 1 + dead_s / PROBES_MAX);
	uint32_t pause_ms = RTE_MAX(tq->dead_ms / 4, 1000u);

	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_MAX);
	(void)tcp_sock_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)every_s);
	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)every_s);
	(void)tcp_sock_set(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)((dead_s + every_s - 1) / every_s));
	(void)tcp_sock_set(fd, IPPROTO_TCP, RTO_MAX_MS, (int)RTE_MIN(pause_ms, 120000u));
}

static int
watch(const struct tcp_queue *tq, int op, int fd, uint32_t events, void *what, enum tcp_watch kind)
{
	struct epoll_event ev = {.events = events, .data.u64 = (uintptr_t)what | kind};

	return epoll_ctl(tq->epfd, op, fd, &ev) == 0 ? 0 : -errno;
}

int
tcp_sock_watch(const struct tcp_queue *tq, int fd, uint32_t events, void *what, enum tcp_watch kind)
{
	return watch(tq, EPOLL_CTL_ADD, fd, events, what, kind);
}

int
tcp_sock_rewatch(const struct tcp_queue *tq, int fd, uint32_t events, void *what, enum tcp_watch kind)
{
	return watch(tq, EPOLL_CTL_MOD, fd, events, what, kind);
}

void
tcp_sock_unwatch(const struct tcp_queue *tq, int fd)
{
	(void)epoll_ctl(tq->epfd, EPOLL_CTL_DEL, fd, NULL);
}

void
tcp_sock_close(const struct tcp_queue *tq, int *fd)
{
	int was = *fd;

	*fd = -1;
	tcp_sock_unwatch(tq, was); /* a forked child may have a copy */
	close(was);
}

void
tcp_sock_lose(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

uint64_t
tcp_sock_idle_ms(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_last_ack_recv : 0;
}

bool
tcp_sock_waits(int fd, bool more)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int left = 0;

	/* A socket that the peer has reset keeps its bytes for ever. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 || info.tcpi_state == TCP_CLOSE)
		return false;
	return more || (ioctl(fd, SIOCOUTQ, &left) == 0 && left != 0);
}

int
tcp_sock_read(int fd, void *msg, size_t len, uint16_t *n)
{
	ssize_t r = recv(fd, (uint8_t *)msg + *n, len - *n, MSG_DONTWAIT);

	if (r == 0)
		return -ECONNABORTED;
	if (r < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	*n += (uint16_t)r;
	return *n == len ? 0 : -EAGAIN;
}

int
tcp_sock_write(int fd, const void *msg, size_t len)
{
	ssize_t r = send(fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r == (ssize_t)len)
		return 0;
	return r < 0 ? -errno : -ENOBUFS;
}

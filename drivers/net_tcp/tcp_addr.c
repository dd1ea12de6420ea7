/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_addr.c - the address of a queue: who it is, what proves that, and where it listens
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plx_route.h"

#include "tcp_addr.h"

/* The place that begins at an offset. @return the next offset, or 0: there is none */
static unsigned
end_at(const struct tcp_addr *a, unsigned at, struct tcp_ip *out)
{
	if (at >= a->n_bytes)
		return 0;
	out->family = a->ends[at++];
	if ((out->family != 4 && out->family != 6) || at + tcp_ip_len(out) > a->n_bytes)
		return 0;
	memcpy(out->bytes, a->ends + at, tcp_ip_len(out));
	return at + tcp_ip_len(out);
}

static bool
ends_are_good(const struct tcp_addr *a)
{
	unsigned at = 0, next;
	struct tcp_ip ip;

	while ((next = end_at(a, at, &ip)) != 0)
		at = next;
	return at == a->n_bytes;
}

int
tcp_addr_read(const void *bytes, size_t len, struct tcp_addr *out)
{
	if (len < offsetof(struct tcp_addr, ends) || len > sizeof(*out))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, bytes, len);
	if (out->version != TCP_ADDR_VERSION || len != tcp_addr_len(out) || out->uid == 0 || out->proc == 0 ||
		!ends_are_good(out))
		return -EINVAL;
	return 0;
}

bool
tcp_addr_add(struct tcp_addr *a, const struct tcp_ip *ip)
{
	struct tcp_ip ips[TCP_ENDS_MAX];

	if (a->n_bytes + 1 + tcp_ip_len(ip) > TCP_ENDS_LEN || tcp_addr_ends(a, ips) == TCP_ENDS_MAX)
		return false;
	a->ends[a->n_bytes] = ip->family;
	memcpy(a->ends + a->n_bytes + 1, ip->bytes, tcp_ip_len(ip));
	a->n_bytes += 1 + tcp_ip_len(ip);
	return true;
}

unsigned
tcp_addr_ends(const struct tcp_addr *a, struct tcp_ip ips[TCP_ENDS_MAX])
{
	unsigned at = 0, n = 0;

	while (n < TCP_ENDS_MAX && (at = end_at(a, at, &ips[n])) != 0)
		n++;
	return n;
}

bool
tcp_ip_is_loopback(const struct tcp_ip *ip)
{
	static const uint8_t lo6[16] = {[15] = 1};

	return ip->family == 4 ? ip->bytes[0] == 127 : memcmp(ip->bytes, lo6, sizeof(lo6)) == 0;
}

socklen_t
tcp_ip_sockaddr(const struct tcp_ip *ip, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (ip->family == 4) {
		a4->sin_family = AF_INET;
		a4->sin_port = htons(port);
		memcpy(&a4->sin_addr, ip->bytes, 4);
		return sizeof(*a4);
	}
	a6->sin6_family = AF_INET6;
	a6->sin6_port = htons(port);
	memcpy(&a6->sin6_addr, ip->bytes, 16);
	return sizeof(*a6);
}

int
tcp_ip_of_sockaddr(const struct sockaddr *sa, struct tcp_ip *out)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *bytes;
	size_t len;

	bytes = plx_route_bytes(sa, &len);
	if (bytes == NULL)
		return -EAFNOSUPPORT;
	memset(out, 0, sizeof(*out));
	if (len == 16 && memcmp(bytes, mapped, sizeof(mapped)) == 0) { /* IPv4 at a socket of IPv6 */
		bytes += sizeof(mapped);
		len = 4;
	}
	out->family = len == 4 ? 4 : 6;
	memcpy(out->bytes, bytes, len);
	return 0;
}

void
tcp_ip_text(const struct tcp_ip *ip, uint16_t port, char text[TCP_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->bytes, host, sizeof(host));
	snprintf(text, TCP_TEXT_MAX, ip->family == 4 ? "%s:%u" : "[%s]:%u", host, port);
}

void
tcp_addr_whose(const struct plx_addr *addr, char *text, size_t len)
{
	struct tcp_ip ips[TCP_ENDS_MAX];
	char at[TCP_TEXT_MAX] = "no address";
	struct tcp_addr a;

	if (tcp_addr_read(addr->bytes, addr->len, &a) != 0)
		return;
	if (tcp_addr_ends(&a, ips) != 0)
		tcp_ip_text(&ips[0], a.port, at);
	snprintf(text, len, "a process at %s", at);
}

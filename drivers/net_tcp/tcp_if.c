/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_if.c - the interfaces of this host, and which of a peer's places to connect to
 *
 * Design notes
 * A worker address lists what the host has; the side that connects chooses. It asks the kernel for a route to
 * each place, by a UDP socket that sends nothing. A place that this host holds itself is another host's of the
 * same address (docker0 is on every one), unless both are one host. What is behind a place is proven
 * by the handshake only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_proc.h"
#include "plx_route.h"

#include "tcp_conf.h"
#include "tcp_if.h"

/* Bridges of containers and virtual machines: each host has them, with the same addresses. */
static const char *const decoys[] = {"docker", "virbr", "lxcbr", "lxdbr", "podman", "cni"};

static bool
is_decoy(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(decoys); i++)
		if (strncmp(name, decoys[i], strlen(decoys[i])) == 0)
			return true;
	return false;
}

static bool
is_link_local(const struct tcp_ip *ip)
{
	return ip->family == 4 ? ip->bytes[0] == 169 && ip->bytes[1] == 254
			       : ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

static bool
same_net(const struct tcp_ip *a, const struct tcp_ip *b, unsigned bits)
{
	if (a->family != b->family || bits > 8 * tcp_ip_len(a) || memcmp(a->bytes, b->bytes, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || ((a->bytes[bits / 8] ^ b->bytes[bits / 8]) >> (8 - bits % 8)) == 0;
}

/* "10.1.0.0/16" or an address alone. @return whether it is one, and has the IP address in it */
static bool
net_has(const char *word, const struct tcp_ip *ip)
{
	char text[INET6_ADDRSTRLEN + 4];
	struct tcp_ip net = {.family = strchr(word, ':') != NULL ? 6 : 4};
	unsigned bits = 8 * (unsigned)tcp_ip_len(&net);
	char *slash, more;

	snprintf(text, sizeof(text), "%s", word);
	slash = strchr(text, '/');
	if (slash != NULL) {
		*slash = '\0';
		if (sscanf(slash + 1, "%3u%c", &bits, &more) != 1)
			return false;
	}
	return inet_pton(net.family == 4 ? AF_INET : AF_INET6, text, net.bytes) == 1 &&
		bits <= 8 * tcp_ip_len(&net) && same_net(&net, ip, bits);
}

/* Whether the list names the interface or a network that the address is in. */
static bool
list_has(const char *list, const char *name, const struct tcp_ip *ip)
{
	char text[PLX_CONF_STR_MAX], *save = NULL, *word;

	snprintf(text, sizeof(text), "%s", list);
	for (word = strtok_r(text, ", ", &save); word != NULL; word = strtok_r(NULL, ", ", &save))
		if (strcmp(word, name) == 0 || net_has(word, ip))
			return true;
	return false;
}

bool
tcp_if_is_allowed(const struct tcp_if_conf *conf, const char *name, const struct tcp_ip *ip)
{
	if (conf->family == (ip->family == 4 ? TCP_FAMILY_6 : TCP_FAMILY_4) || is_link_local(ip))
		return false;
	if (conf->text[0] == '^')
		return !is_decoy(name) && !list_has(conf->text + 1, name, ip);
	return conf->text[0] == '\0' ? !is_decoy(name) : list_has(conf->text, name, ip);
}

static uint8_t
bits_of(const struct sockaddr *mask)
{
	const uint8_t *bytes;
	uint8_t bits = 0;
	size_t len;

	bytes = plx_route_bytes(mask, &len);
	for (size_t i = 0; bytes != NULL && i < len; i++)
		bits += (uint8_t)__builtin_popcount(bytes[i]);
	return bits;
}

unsigned
tcp_if_list(const struct tcp_if_conf *conf, struct tcp_if out[TCP_IF_MAX])
{
	struct ifaddrs *list;
	unsigned n = 0;

	if (getifaddrs(&list) != 0)
		return 0;
	for (const struct ifaddrs *i = list; i != NULL && n < TCP_IF_MAX; i = i->ifa_next) {
		struct tcp_if *at = &out[n];
		bool up = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_RUNNING) != 0;

		if (i->ifa_addr == NULL || tcp_ip_of_sockaddr(i->ifa_addr, &at->ip) != 0)
			continue;
		snprintf(at->name, sizeof(at->name), "%s", i->ifa_name);
		at->bits = bits_of(i->ifa_netmask);
		at->loopback = tcp_ip_is_loopback(&at->ip) || (i->ifa_flags & IFF_LOOPBACK) != 0;
		at->rank = 0;
		at->used = up && tcp_if_is_allowed(conf, at->name, &at->ip);
		n++;
	}
	freeifaddrs(list);
	return n;
}

/* The address from which the kernel would send to a place. @return 0 or -errno */
static int
route_to(const struct tcp_ip *ip, struct tcp_ip *from)
{
	struct sockaddr_storage sa;
	socklen_t len = tcp_ip_sockaddr(ip, 9, &sa);
	int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (struct sockaddr *)&sa, len) == 0 ? 0 : -errno;
	len = sizeof(sa);
	if (rc == 0 && getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		rc = -errno;
	close(fd);
	return rc == 0 ? tcp_ip_of_sockaddr((struct sockaddr *)&sa, from) : rc;
}

static const struct tcp_if *
if_of(const struct tcp_if *ifs, unsigned n, const struct tcp_ip *ip)
{
	for (unsigned i = 0; i < n; i++)
		if (ifs[i].ip.family == ip->family && memcmp(ifs[i].ip.bytes, ip->bytes, tcp_ip_len(ip)) == 0)
			return &ifs[i];
	return NULL;
}

enum { RANK_BOTH = 1, RANK_DEFAULT = 2 };

/* The address from which the kernel sends to the rest of the world. */
static void
rank_default(struct tcp_if *ifs, unsigned n, const struct tcp_ip *anywhere)
{
	const struct tcp_if *at;
	struct tcp_ip from;

	if (route_to(anywhere, &from) != 0)
		return;
	at = if_of(ifs, n, &from);
	if (at != NULL)
		ifs[at - ifs].rank |= RANK_DEFAULT;
}

static bool
has_family(const struct tcp_if *ifs, unsigned n, const char *name, uint8_t family)
{
	for (unsigned i = 0; i < n; i++)
		if (ifs[i].used && ifs[i].ip.family == family && strcmp(ifs[i].name, name) == 0)
			return true;
	return false;
}

/* Interfaces with the default route come first, then those with both families: a bridge for containers has neither. */
static void
rank(struct tcp_if *ifs, unsigned n)
{
	/* Networks that no host is in: the default route leads to them. */
	static const struct tcp_ip anywhere4 = {4, {192, 0, 2, 1}}, anywhere6 = {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};

	for (unsigned i = 0; i < n; i++)
		ifs[i].rank = has_family(ifs, n, ifs[i].name, ifs[i].ip.family == 4 ? 6 : 4) ? RANK_BOTH : 0;
	rank_default(ifs, n, &anywhere4);
	rank_default(ifs, n, &anywhere6);
}

/* Take the best that is left of a family. @return whether there was one, and room for it */
static bool
advertise_best(struct tcp_if *ifs, unsigned n, uint8_t family, bool loopback, struct tcp_addr *own)
{
	struct tcp_if *best = NULL;

	for (unsigned i = 0; i < n; i++)
		if (ifs[i].used && ifs[i].ip.family == family && ifs[i].loopback == loopback &&
			(best == NULL || ifs[i].rank > best->rank))
			best = &ifs[i];
	if (best == NULL)
		return false;
	best->used = false;
	return tcp_addr_add(own, &best->ip);
}

void
tcp_if_choose(struct tcp_if *ifs, unsigned n, struct tcp_addr *own)
{
	bool more;

	own->n_bytes = 0;
	for (int loopback = 0; loopback < 2 && own->n_bytes == 0; loopback++)
		for (more = true; more;) {
			more = advertise_best(ifs, n, 4, loopback, own);
			more |= advertise_best(ifs, n, 6, loopback, own);
		}
}

void
tcp_if_advertise(const struct tcp_if_conf *conf, struct tcp_addr *own)
{
	struct tcp_if ifs[TCP_IF_MAX];
	unsigned n = tcp_if_list(conf, ifs);

	rank(ifs, n);
	tcp_if_choose(ifs, n, own);
}

uint32_t
tcp_host(const struct plx_proc *self)
{
	return (uint32_t)((self->host ^ self->host >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

enum { SCORE_ANY = 1, SCORE_ALLOWED = 2, SCORE_NET = 4 }; /* each counts more than those before it */

/* How good a place is. @param one_host whether the peer is on this host */
static int
place_score(const struct tcp_if *ifs, unsigned n, const struct tcp_ip *ip, bool one_host)
{
	const struct tcp_if *way;
	struct tcp_ip from;
	int rc;

	if (!one_host && (tcp_ip_is_loopback(ip) || if_of(ifs, n, ip) != NULL))
		return -EADDRINUSE;
	rc = route_to(ip, &from);
	if (rc != 0)
		return rc;
	way = if_of(ifs, n, &from);
	if (way == NULL)
		return SCORE_ANY;
	if (!way->used && !one_host)
		return -ENETUNREACH;
	return SCORE_ANY | (way->used ? SCORE_ALLOWED : 0) | (same_net(ip, &way->ip, way->bits) ? SCORE_NET : 0);
}

static void
places_sort(struct tcp_place *places, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k > 0 && places[k].score > places[k - 1].score; k--) {
			struct tcp_place p = places[k];

			places[k] = places[k - 1];
			places[k - 1] = p;
		}
}

unsigned
tcp_if_places(const struct tcp_if_conf *conf, const struct tcp_addr *own, const struct tcp_addr *peer,
	struct tcp_place places[TCP_ENDS_MAX], unsigned *n_good)
{
	bool one_host = peer->host == own->host;
	struct tcp_if ifs[TCP_IF_MAX];
	unsigned n_ifs = tcp_if_list(conf, ifs), n;
	struct tcp_ip ips[TCP_ENDS_MAX];

	n = tcp_addr_ends(peer, ips);
	*n_good = 0;
	for (unsigned i = 0; i < n; i++) {
		places[i] = (struct tcp_place){ips[i], place_score(ifs, n_ifs, &ips[i], one_host)};
		*n_good += places[i].score >= 0;
	}
	places_sort(places, n);
	return n;
}

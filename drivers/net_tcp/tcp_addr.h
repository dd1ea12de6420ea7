/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_addr.h - the address of a queue: who it is, what proves that, and where it listens
 */
#ifndef TCP_ADDR_H
#define TCP_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plx_dev.h"

#define TCP_ADDR_VERSION 2
#define TCP_SECRET_LEN	 16
#define TCP_ENDS_LEN	 56 /* bytes of the places in an address: 5 for one of IPv4, 17 for one of IPv6 */
#define TCP_ENDS_MAX	 8

/** As it travels; only the first n_bytes of ends do. */
struct tcp_addr {
	uint64_t uid;
	uint64_t proc;	    /* plx_proc_id() of its process */
	uint8_t secret[TCP_SECRET_LEN]; /* who knows it may connect */
	uint32_t host;	    /* tcp_host(): those with the same see the same interfaces */
	uint16_t port;	    /* where it listens; 0: nowhere */
	uint8_t version;    /* TCP_ADDR_VERSION */
	uint8_t n_bytes;    /* of ends */
	uint8_t ends[TCP_ENDS_LEN]; /* each: 4 or 6, and the bytes of an IP address */
};

_Static_assert(offsetof(struct tcp_addr, secret) == 16, "wire");
_Static_assert(offsetof(struct tcp_addr, host) == 32, "wire");
_Static_assert(offsetof(struct tcp_addr, ends) == 40, "wire");
_Static_assert(sizeof(struct tcp_addr) == PLX_ADDR_MAX, "wire");

/** An IP address. */
struct tcp_ip {
	uint8_t family; /* 4 or 6 */
	uint8_t bytes[16];
};

#define TCP_TEXT_MAX 64 /* of "[address]:port" */

/** @return bytes of an address of this family. */
static inline size_t
tcp_ip_len(const struct tcp_ip *ip)
{
	return ip->family == 4 ? 4 : 16;
}

/** @return bytes that travel. Thread: any. */
static inline uint8_t
tcp_addr_len(const struct tcp_addr *a)
{
	return offsetof(struct tcp_addr, ends) + a->n_bytes;
}

/** Read what came from anybody. @return 0 or -EINVAL. Thread: any. */
int tcp_addr_read(const void *bytes, size_t len, struct tcp_addr *out);

/** Append a place. @return whether there was room. Thread: any. */
bool tcp_addr_add(struct tcp_addr *a, const struct tcp_ip *ip);

/** The places of an address that was read. @return how many, up to TCP_ENDS_MAX. Thread: any. */
unsigned tcp_addr_ends(const struct tcp_addr *a, struct tcp_ip ips[TCP_ENDS_MAX]);

/** @return whether an IP address means its own host to whoever uses it. Thread: any. */
bool tcp_ip_is_loopback(const struct tcp_ip *ip);

/** @return its length. Thread: any. */
socklen_t tcp_ip_sockaddr(const struct tcp_ip *ip, uint16_t port, struct sockaddr_storage *out);

/** Errors: -EAFNOSUPPORT. Thread: any. */
int tcp_ip_of_sockaddr(const struct sockaddr *sa, struct tcp_ip *out);

/** "10.0.0.1:7", for people. Thread: any. */
void tcp_ip_text(const struct tcp_ip *ip, uint16_t port, char text[TCP_TEXT_MAX]);

/** plx_dev_ops.addr_whose */
void tcp_addr_whose(const struct plx_addr *addr, char *text, size_t len);

#endif

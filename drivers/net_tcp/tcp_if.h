/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_if.h - the interfaces of this host, and which of a peer's places to connect to
 */
#ifndef TCP_IF_H
#define TCP_IF_H

#include <net/if.h>

#include "plx_proc.h"

#include "tcp_addr.h"

#define TCP_IF_MAX 32 /* addresses of this host that are looked at */

/** An address of this host. */
struct tcp_if {
	char name[IF_NAMESIZE];
	struct tcp_ip ip;
	uint8_t bits;	/* of it, those that name its network */
	bool used;	/* the settings allow it */
	bool loopback;
	uint8_t rank;	/* how likely others reach it, for tcp_if_choose() */
};

/** What the settings say of interfaces; belongs to whoever has the text. */
struct tcp_if_conf {
	const char *text; /* net_tcp.interfaces */
	uint8_t family;	  /* enum tcp_family */
};

/**
 * Put addresses into the address of a queue, as many as have room: those of the highest rank, of both families in
 * turn; loopback only if there is nothing else. Those that were looked at are no longer marked as used. Thread: any.
 */
void tcp_if_choose(struct tcp_if *ifs, unsigned n, struct tcp_addr *own);

/** The addresses of this host. @return how many. Thread: any. Blocks: may (system calls). */
unsigned tcp_if_list(const struct tcp_if_conf *conf, struct tcp_if out[TCP_IF_MAX]);

/** @return whether there is an interface of this name, or an address in this network, which the settings allow. */
bool tcp_if_is_allowed(const struct tcp_if_conf *conf, const char *name, const struct tcp_ip *ip);

/** Write those by which peers may come into an address, the best first. Thread: any. Blocks: may (system calls). */
void tcp_if_advertise(const struct tcp_if_conf *conf, struct tcp_addr *own);

/** @return what those have in common who see the same interfaces: boot and network namespace. Thread: any. */
uint32_t tcp_host(const struct plx_proc *self);

/** A place of a peer's. */
struct tcp_place {
	struct tcp_ip ip;
	int score; /* the more the better; below 0: it is left out, for this -errno */
};

/**
 * The places of a peer, the best first, those that are left out last.
 * @return how many; *n_good of them may be tried. Thread: any. Blocks: may (system calls).
 */
unsigned tcp_if_places(const struct tcp_if_conf *conf, const struct tcp_addr *own, const struct tcp_addr *peer,
	struct tcp_place places[TCP_ENDS_MAX], unsigned *n_good);

#endif

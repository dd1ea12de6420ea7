/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_hello.c - the handshake: three messages, after which both sides know who the other is
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "tcp_hello.h"

#define MAGIC	0x31746c70u /* "plt1" */
#define VERSION 1

static const struct tcp_mac_part nothing = {NULL, 0};

void
tcp_greet_make(struct tcp_greet *g, enum tcp_hello_kind kind)
{
	*g = (struct tcp_greet){.magic = MAGIC, .version = VERSION, .kind = kind};
}

static bool
is_greet(const struct tcp_greet *g, enum tcp_hello_kind kind)
{
	return g->magic == MAGIC && g->version == VERSION && g->kind == kind;
}

bool
tcp_greet_is(const struct tcp_greet *g, enum tcp_hello_kind kind)
{
	return is_greet(g, kind) && g->flow == 0;
}

static void
mac_of(uint8_t mac[TCP_MAC_LEN], const struct tcp_addr *keyed, const void *msg, size_t len, const uint8_t *before)
{
	tcp_mac(keyed->secret, (struct tcp_mac_part){msg, len},
		before != NULL ? (struct tcp_mac_part){before, TCP_MAC_LEN} : nothing, mac);
}

static bool
mac_is(const uint8_t mac[TCP_MAC_LEN], const struct tcp_addr *keyed, const void *msg, size_t len, const uint8_t *before)
{
	uint8_t good[TCP_MAC_LEN];

	mac_of(good, keyed, msg, len, before);
	return tcp_mac_same(mac, good);
}

/* What hides a secret, and shows it again. */
static void
mask(struct tcp_hello *h, const struct tcp_addr *to)
{
	static const char what[] = "mask";
	uint8_t pad[TCP_MAC_LEN];

	_Static_assert(TCP_MAC_LEN == TCP_SECRET_LEN, "the one masks the other");
	tcp_mac(to->secret, (struct tcp_mac_part){what, sizeof(what)},
		(struct tcp_mac_part){h->nonce, sizeof(h->nonce)}, pad);
	for (unsigned i = 0; i < TCP_SECRET_LEN; i++)
		h->addr[offsetof(struct tcp_addr, secret) + i] ^= pad[i];
}

int
tcp_hello_make(struct tcp_hello *h, const struct tcp_addr *from, const struct tcp_addr *to, uint16_t flow)
{
	memset(h, 0, sizeof(*h));
	tcp_greet_make(&h->head, TCP_HELLO);
	h->head.flow = flow;
	h->to = to->uid;
	if (getrandom(h->nonce, sizeof(h->nonce), 0) != sizeof(h->nonce))
		return -EIO;
	memcpy(h->addr, from, tcp_addr_len(from));
	mask(h, to);
	mac_of(h->mac, to, h, offsetof(struct tcp_hello, mac), NULL);
	return 0;
}

int
tcp_hello_open(const struct tcp_hello *h, const struct tcp_addr *own, struct tcp_addr *from)
{
	struct tcp_hello open = *h;
	size_t len;

	if (!is_greet(&h->head, TCP_HELLO) || h->to != own->uid ||
		!mac_is(h->mac, own, h, offsetof(struct tcp_hello, mac), NULL))
		return -EBADMSG;
	mask(&open, own);
	len = offsetof(struct tcp_addr, ends) + open.addr[offsetof(struct tcp_addr, n_bytes)];
	return tcp_addr_read(open.addr, len, from) == 0 ? 0 : -EBADMSG;
}

int
tcp_answer_make(struct tcp_answer *a, enum tcp_hello_kind kind, const struct tcp_hello *to, const struct tcp_addr *own)
{
	tcp_greet_make(&a->head, kind);
	if (getrandom(a->nonce, sizeof(a->nonce), 0) != sizeof(a->nonce))
		return -EIO;
	mac_of(a->mac, own, a, offsetof(struct tcp_answer, mac), to->mac);
	return 0;
}

int
tcp_answer_open(const struct tcp_answer *a, const struct tcp_hello *to, const struct tcp_addr *peer)
{
	bool refused = tcp_greet_is(&a->head, TCP_REFUSE);

	if ((!refused && !tcp_greet_is(&a->head, TCP_ANSWER)) ||
		!mac_is(a->mac, peer, a, offsetof(struct tcp_answer, mac), to->mac))
		return -EBADMSG;
	return refused ? -ECONNREFUSED : 0;
}

/* A CONFIRM is bound to the ANSWER, and to the first connection. */
static void
confirm_mac(uint8_t mac[TCP_MAC_LEN], const struct tcp_confirm *c, const struct tcp_answer *to,
	const struct tcp_addr *keyed, const uint8_t *first)
{
	uint8_t before[2 * TCP_MAC_LEN];

	memcpy(before, to->mac, TCP_MAC_LEN);
	if (first != NULL)
		memcpy(before + TCP_MAC_LEN, first, TCP_MAC_LEN);
	tcp_mac(keyed->secret, (struct tcp_mac_part){c, offsetof(struct tcp_confirm, mac)},
		(struct tcp_mac_part){before, first != NULL ? sizeof(before) : TCP_MAC_LEN}, mac);
}

void
tcp_confirm_make(struct tcp_confirm *c, const struct tcp_answer *to, const struct tcp_addr *peer,
	const uint8_t *first)
{
	tcp_greet_make(&c->head, TCP_CONFIRM);
	confirm_mac(c->mac, c, to, peer, first);
}

int
tcp_confirm_open(const struct tcp_confirm *c, const struct tcp_answer *to, const struct tcp_addr *own,
	const uint8_t *first)
{
	uint8_t good[TCP_MAC_LEN];

	confirm_mac(good, c, to, own, first);
	return tcp_greet_is(&c->head, TCP_CONFIRM) && tcp_mac_same(c->mac, good) ? 0 : -EBADMSG;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_hello.h - the handshake: three messages, after which both sides know who the other is
 *
 * Design notes
 * HELLO goes from the side that connects, ANSWER comes back, CONFIRM follows, and messages may come behind it.
 * All are keyed by the secret of the side that listens, which stands in its worker address: HELLO proves that
 * the sender was given the address, ANSWER that the listener is the one that is meant and no other at the same
 * IP address, CONFIRM that HELLO is no copy of an earlier one. Each side adds a nonce, and each message is
 * bound to the one before it.
 *
 * The same opens further connections of two queues, flows. Their CONFIRM proves, too, that it comes from who made the
 * first: it is bound to that one's CONFIRM, which nobody else has. TAKEN says behind it that data may come.
 *
 * HELLO carries the sender's own address, so that the listener knows the peer as if it had been given the
 * address. The secret in it is masked: somebody else may listen there.
 */
#ifndef TCP_HELLO_H
#define TCP_HELLO_H

#include "tcp_addr.h"
#include "tcp_mac.h"

#define TCP_NONCE_LEN 16

enum tcp_hello_kind {
	TCP_HELLO = 1,
	TCP_ANSWER,
	TCP_REFUSE, /* instead of ANSWER: not now, and not later */
	TCP_CONFIRM,
	TCP_TAKEN, /* only its head, of a flow: behind CONFIRM, from who listens */
};

/** What each message begins with. */
struct tcp_greet {
	uint32_t magic;
	uint8_t version;
	uint8_t kind; /* enum tcp_hello_kind */
	uint16_t flow; /* of HELLO: the number of a further connection; else 0 */
};

struct tcp_hello {
	struct tcp_greet head;
	uint64_t to; /* uid of the queue that is meant */
	uint8_t nonce[TCP_NONCE_LEN];
	uint8_t addr[PLX_ADDR_MAX]; /* of the sender, its secret masked; zeroes behind its end */
	uint8_t mac[TCP_MAC_LEN];
};

struct tcp_answer {
	struct tcp_greet head;
	uint8_t nonce[TCP_NONCE_LEN];
	uint8_t mac[TCP_MAC_LEN];
};

struct tcp_confirm {
	struct tcp_greet head;
	uint8_t mac[TCP_MAC_LEN];
};

_Static_assert(sizeof(struct tcp_greet) == 8, "wire");
_Static_assert(offsetof(struct tcp_hello, addr) == 32, "wire");
_Static_assert(sizeof(struct tcp_hello) == 144, "wire");
_Static_assert(sizeof(struct tcp_answer) == 40, "wire");
_Static_assert(sizeof(struct tcp_confirm) == 24, "wire");

/** Make a HELLO from one to another. @param flow 0: of the first connection. Errors: -EIO no random numbers. Thread: any. */
int tcp_hello_make(struct tcp_hello *h, const struct tcp_addr *from, const struct tcp_addr *to,
	uint16_t flow);

/**
 * Read a HELLO that came from anybody.
 * @param own the address of the queue that reads it
 * @param from out: whose it is
 * Errors: -EBADMSG. Thread: any.
 */
int tcp_hello_open(const struct tcp_hello *h, const struct tcp_addr *own, struct tcp_addr *from);

/** Make an ANSWER, or REFUSE, to a HELLO that was opened. Errors: -EIO no random numbers. Thread: any. */
int tcp_answer_make(struct tcp_answer *a, enum tcp_hello_kind kind, const struct tcp_hello *to, const struct tcp_addr *own);

/**
 * Read the answer to a HELLO.
 * @param peer the address that the HELLO went to
 * @return 0; -EBADMSG it is not from there; -ECONNREFUSED it is, and says no. Thread: any.
 */
int tcp_answer_open(const struct tcp_answer *a, const struct tcp_hello *to, const struct tcp_addr *peer);

/** @param first mac of the CONFIRM of the first connection; NULL: this is that one */
void tcp_confirm_make(struct tcp_confirm *c, const struct tcp_answer *to, const struct tcp_addr *peer,
	const uint8_t *first);

/**
 * @param own the address of the queue that made the ANSWER
 * @param first as above
 * Errors: -EBADMSG. Thread: any.
 */
int tcp_confirm_open(const struct tcp_confirm *c, const struct tcp_answer *to, const struct tcp_addr *own,
	const uint8_t *first);

/** What only has a head. */
void tcp_greet_make(struct tcp_greet *g, enum tcp_hello_kind kind);
bool tcp_greet_is(const struct tcp_greet *g, enum tcp_hello_kind kind);

#endif

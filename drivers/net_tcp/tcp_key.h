/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_key.h - memory that peers may read and write by a key
 *
 * Design notes
 * A key is a number that nobody can guess and only those know who were given it. Memory of a queue (a receive
 * that waits for its data) has one of 53 random bits, memory of the process (a region, whose key has to fit into
 * 32 bits) one of 32. Who uses a wrong one loses the connection: there is one guess in a connection.
 */
#ifndef TCP_KEY_H
#define TCP_KEY_H

#include "plx_dev.h"

#define TCP_REGS	1024u /* registrations of a queue */
#define TCP_REGIONS	12288u /* of the process; more are reached by messages */
#define TCP_DRAWN	64u   /* keys of one system call */
#define TCP_DOMAIN_PORT UINT16_MAX /* see plx_dev_domain(): a port that no other driver has */

struct tcp_keys;

/** plx_dev_keys_ops */
int tcp_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len, uint8_t rights,
	struct plx_dev_key *out);
void tcp_region_dereg(struct plx_dev_key *key);

/** Registrations of a queue. Errors: -ENOMEM. Thread: owner. */
int tcp_keys_open(struct tcp_keys **out);
/** Accepts NULL. */
void tcp_keys_close(struct tcp_keys *k);

/**
 * @param rights enum plx_dev_mem_right
 * @param n_calls counts the system calls for random numbers: one of TCP_DRAWN
 * Errors: -ENOSPC TCP_REGS are registered; -EIO no random numbers. Thread: owner. Blocks: never.
 */
int tcp_key_new(struct tcp_keys *k, void *addr, size_t len, uint8_t rights, uint64_t *n_calls, struct plx_dev_mem *out);
void tcp_key_end(struct tcp_keys *k, struct plx_dev_mem *mem);

/**
 * Begin to read or write memory for a peer.
 * @param k of the queue; NULL: nothing is registered there
 * @param rights enum plx_dev_mem_right
 * @return 0; -ESTALE it was ended a moment ago; -EINVAL, -EACCES, -ERANGE as plx_region_hold(). An error begins
 * nothing. Thread: owner. Blocks: never.
 */
int tcp_key_hold(struct tcp_keys *k, uint64_t key, uint64_t addr, uint64_t len, uint8_t rights);
void tcp_key_drop(uint64_t key);

/** Change a word that is held. @param atomic enum plx_dev_atomic @return what it was. Thread: any. */
uint64_t tcp_word_change(uint64_t *at, uint8_t atomic, const uint64_t operand[2]);

#endif

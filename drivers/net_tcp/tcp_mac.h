/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_mac.h - message authentication: HMAC with SHA-256
 */
#ifndef TCP_MAC_H
#define TCP_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCP_MAC_LEN 16

/** A part of what is authenticated. */
struct tcp_mac_part {
	const void *data;
	size_t len;
};

/** The first 16 bytes of HMAC-SHA256 (RFC 2104) of two parts, by a key of 16 bytes. Thread: any. */
void tcp_mac(const uint8_t key[16], struct tcp_mac_part a, struct tcp_mac_part b, uint8_t out[TCP_MAC_LEN]);

/** @return whether two are equal, in a time that tells nothing. Thread: any. */
bool tcp_mac_same(const uint8_t a[TCP_MAC_LEN], const uint8_t b[TCP_MAC_LEN]);

#endif

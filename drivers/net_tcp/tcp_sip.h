/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_sip.h - authentication of datagrams: SipHash-2-4 with 128 bits of result
 */
#ifndef TCP_SIP_H
#define TCP_SIP_H

#include <stddef.h>
#include <stdint.h>

#define TCP_TAG_LEN  16
#define TCP_HEAD_LEN 16 /* bytes that come before the data */

struct tcp_sip_key {
	uint64_t k[2];
};

/** The tag of a head and of data, by a key. Thread: any. */
void tcp_sip(const struct tcp_sip_key *key, const void *head, const void *data, size_t len, uint8_t out[TCP_TAG_LEN]);

#endif

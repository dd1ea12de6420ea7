/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_mac.c - message authentication: HMAC with SHA-256
 *
 * Design notes
 * SHA-256 is libmd's, which is in every process that has DPDK: libbsd needs it.
 */
#include <string.h>

#include <sha2.h>

#include "tcp_mac.h"

#define KEY_LEN 16

static void
key_in(SHA2_CTX *sha, const uint8_t key[KEY_LEN], uint8_t with)
{
	uint8_t block[SHA256_BLOCK_LENGTH];

	memset(block, with, sizeof(block));
	for (unsigned i = 0; i < KEY_LEN; i++)
		block[i] ^= key[i];
	SHA256Init(sha);
	SHA256Update(sha, block, sizeof(block));
}

void
tcp_mac(const uint8_t key[KEY_LEN], struct tcp_mac_part a, struct tcp_mac_part b, uint8_t out[16])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX sha;

	key_in(&sha, key, 0x36);
	SHA256Update(&sha, a.data, a.len);
	if (b.len != 0)
		SHA256Update(&sha, b.data, b.len);
	SHA256Final(digest, &sha);
	key_in(&sha, key, 0x5c);
	SHA256Update(&sha, digest, sizeof(digest));
	SHA256Final(digest, &sha);
	memcpy(out, digest, 16);
}

bool
tcp_mac_same(const uint8_t a[TCP_MAC_LEN], const uint8_t b[TCP_MAC_LEN])
{
	uint8_t differ = 0;

	for (unsigned i = 0; i < TCP_MAC_LEN; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

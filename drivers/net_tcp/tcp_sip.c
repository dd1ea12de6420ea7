/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_sip.c - authentication of datagrams: SipHash-2-4 with 128 bits of result
 *
 * Design notes
 * SipHash (Aumann and Bernstein, 2012) is made to authenticate short messages by a secret key. HMAC with SHA-256,
 * which the handshake uses, takes many times as long, longer than the system call that sends: too much for each
 * datagram. Keys come from the handshake's HMAC.
 */
#include <string.h>

#include "tcp_sip.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t
rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static inline void
rounds(struct state *s, unsigned n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v0 = rotate(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v2 = rotate(s->v2, 32);
	}
}

static inline void
word(struct state *s, uint64_t m)
{
	s->v3 ^= m;
	rounds(s, 2);
	s->v0 ^= m;
}

/* Whole words. @return the bytes behind them */
static inline const uint8_t *
words(struct state *s, const uint8_t *at, size_t len)
{
	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t), at += sizeof(uint64_t)) {
		uint64_t m;

		memcpy(&m, at, sizeof(m));
		word(s, m);
	}
	return at;
}

void
tcp_sip(const struct tcp_sip_key *key, const void *head, const void *data, size_t len, uint8_t out[TCP_TAG_LEN])
{
	struct state s = {UINT64_C(0x736f6d6570736575) ^ key->k[0], UINT64_C(0x646f72616e646f6d) ^ key->k[1] ^ 0xee,
		UINT64_C(0x6c7967656e657261) ^ key->k[0], UINT64_C(0x7465646279746573) ^ key->k[1]};
	uint64_t last = (uint64_t)(TCP_HEAD_LEN + len) << 56, tag[2];
	const uint8_t *rest;

	(void)words(&s, head, TCP_HEAD_LEN);
	rest = words(&s, data, len);
	for (size_t i = 0; i < len % sizeof(uint64_t); i++)
		last |= (uint64_t)rest[i] << (8 * i);
	word(&s, last);
	s.v2 ^= 0xee;
	rounds(&s, 4);
	tag[0] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
	s.v1 ^= 0xdd;
	rounds(&s, 4);
	tag[1] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
	memcpy(out, tag, sizeof(tag));
}

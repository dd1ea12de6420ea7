/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_frame.h - what the stream of a connection is made of
 *
 * Design notes
 * A frame is a head of 8 bytes and a body, which is padded so that each frame begins at a multiple of 8.
 */
#ifndef TCP_FRAME_H
#define TCP_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum tcp_frame_kind {
	TCP_MSG = 1, /* a message of the layers above, with their opcode */
	TCP_FRAME_N
};

struct tcp_frame {
	uint32_t len; /* of the body, bytes */
	uint8_t kind; /* enum tcp_frame_kind */
	uint8_t op;
	uint16_t pad; /* 0 */
};

_Static_assert(sizeof(struct tcp_frame) == 8, "wire");

/** @return bytes of a frame with a body of len bytes. */
static inline uint32_t
tcp_frame_len(uint32_t len)
{
	return (uint32_t)sizeof(struct tcp_frame) + ((len + 7u) & ~7u);
}

/** What stands at a place of a stream. */
enum tcp_frame_is {
	TCP_FRAME_PART, /* more has to come */
	TCP_FRAME_GOOD,
	TCP_FRAME_BAD,
};

/**
 * Look at a frame that came from a peer.
 * @param left bytes that are there
 * @param most bytes of a message
 */
static inline enum tcp_frame_is
tcp_frame_look(const void *at, uint32_t left, uint32_t most, struct tcp_frame *out)
{
	if (left < sizeof(*out))
		return TCP_FRAME_PART;
	__builtin_memcpy(out, at, sizeof(*out));
	if (out->kind == 0 || out->kind >= TCP_FRAME_N || out->len > most || out->pad != 0)
		return TCP_FRAME_BAD;
	return tcp_frame_len(out->len) <= left ? TCP_FRAME_GOOD : TCP_FRAME_PART;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_frame.h - what the stream of a connection is made of
 *
 * Design notes
 * A frame is a head of 8 bytes and a body, which is padded so that each frame begins at a multiple of 8.
 *
 * Bodies of PUT and GOT are data that belong in the receiver's memory: they need not be there as a whole, and are
 * read straight to where they go. A side does what it is asked in the order of the frames. It answers PUTs by their
 * number, and GETs and ATOMICs, in their order, by a GOT each.
 *
 * The data of a PUT or GOT may come by another connection of the two, a flow: nothing but such data does, in the order
 * of the frames that name the flow. The body has what stands before the data only, though len counts all.
 * Frames behind it that move data of other flows may go before it; all others are done after it. So the first
 * connection has the order of everything, and what comes by a flow is named there.
 */
#ifndef TCP_FRAME_H
#define TCP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define TCP_BULK_MAX (1u << 30) /* bytes that one PUT or GET moves */

enum tcp_frame_kind {
	TCP_MSG = 1, /* a message of the layers above, with their opcode */
	TCP_PUT,     /* struct tcp_where, then data for there; op: it is to be acknowledged */
	TCP_GET,     /* struct tcp_get */
	TCP_ATOMIC,  /* struct tcp_atomic; op: enum plx_dev_atomic */
	TCP_ACK,     /* struct tcp_ack */
	TCP_GOT,     /* data */
	TCP_BYE,     /* nothing new comes behind it, only answers: the connection is idle; see tcp_park.c */
	TCP_FRAME_N
};

struct tcp_frame {
	uint32_t len; /* of the body, bytes */
	uint8_t kind; /* enum tcp_frame_kind */
	uint8_t op;
	uint16_t flow; /* of PUT and GOT: by which the data comes; 0: behind it */
};

/** Memory of the receiver of a frame. */
struct tcp_where {
	uint64_t key; /* that the receiver has given away */
	uint64_t addr;
};

struct tcp_get {
	struct tcp_where from;
	uint64_t len;
};

struct tcp_atomic {
	struct tcp_where at;
	uint64_t operand[2];
};

struct tcp_ack {
	uint64_t n; /* PUTs that are done, after those that were acknowledged before */
};

_Static_assert(sizeof(struct tcp_frame) == 8, "wire");
_Static_assert(sizeof(struct tcp_where) == 16, "wire");
_Static_assert(sizeof(struct tcp_get) == 24, "wire");
_Static_assert(sizeof(struct tcp_atomic) == 32, "wire");
_Static_assert(sizeof(struct tcp_ack) == 8, "wire");

/** @return bytes of a frame with a body of len bytes. */
static inline uint32_t
tcp_frame_len(uint32_t len)
{
	return (uint32_t)sizeof(struct tcp_frame) + ((len + 7u) & ~7u);
}

/** @return bytes that pad a body of len bytes. */
static inline uint32_t
tcp_frame_pad(uint32_t len)
{
	return -len & 7u;
}

/** What stands at a place of a stream. */
enum tcp_frame_is {
	TCP_FRAME_PART, /* more has to come */
	TCP_FRAME_GOOD,
	TCP_FRAME_BAD,
	TCP_FRAME_AWAY, /* it is good; those behind it may have to wait */
};

/** Bytes of a body that have to be there before the frame is used: all but data that goes elsewhere. */
static inline enum tcp_frame_is
tcp_frame_look_far(uint32_t left, const struct tcp_frame *f)
{
	static const uint8_t bytes[TCP_FRAME_N] = {[TCP_PUT] = sizeof(struct tcp_where),
		[TCP_GET] = sizeof(struct tcp_get), [TCP_ATOMIC] = sizeof(struct tcp_atomic),
		[TCP_ACK] = sizeof(struct tcp_ack), [TCP_GOT] = 0, [TCP_BYE] = 0};
	uint32_t most;

	if (f->kind == 0 || f->kind >= TCP_FRAME_N || (f->flow != 0 && f->kind != TCP_PUT && f->kind != TCP_GOT))
		return TCP_FRAME_BAD;
	most = f->kind == TCP_PUT || f->kind == TCP_GOT ? bytes[f->kind] + TCP_BULK_MAX : bytes[f->kind];
	if (f->len < bytes[f->kind] || f->len > most)
		return TCP_FRAME_BAD;
	return sizeof(*f) + bytes[f->kind] <= left ? TCP_FRAME_GOOD : TCP_FRAME_PART;
}

/**
 * Look at a frame that came from a peer: of a message all of it, of others what stands before their data.
 * @param left bytes that are there
 * @param most bytes of a message
 */
static inline enum tcp_frame_is
tcp_frame_look(const void *at, uint32_t left, uint32_t most, struct tcp_frame *out)
{
	if (left < sizeof(*out))
		return TCP_FRAME_PART;
	__builtin_memcpy(out, at, sizeof(*out));
	if (__builtin_expect(out->kind != TCP_MSG, 0))
		return tcp_frame_look_far(left, out);
	if (out->len > most || out->flow != 0)
		return TCP_FRAME_BAD;
	return tcp_frame_len(out->len) <= left ? TCP_FRAME_GOOD : TCP_FRAME_PART;
}

#endif

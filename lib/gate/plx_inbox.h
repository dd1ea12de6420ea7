/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_inbox.h - messages from other threads to the owner
 *
 * Design notes
 * - A ring of cells of one cache line each: a function, its argument, and the sequence number
 *   that says that the cell is written. So a message moves one line, and neither side reads the
 *   other's position unless the ring seems full. One producer claims cells by counting, several
 *   by compare-and-swap. A producer that is preempted between claiming a cell and writing it
 *   blocks the consumer at that cell, not the other producers.
 */
#ifndef PLX_INBOX_H
#define PLX_INBOX_H

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "plx_line.h"

#define PLX_INBOX_LEN  1024 /* messages that may be pending; a power of two */
#define PLX_INBOX_BODY 48   /* bytes of a message's own */
#define PLX_INBOX_AHEAD 2   /* cells that a producer prefetches for writing */
#define PLX_INBOX_PAUSE 8   /* empty runs, after which one message is taken instead of a burst */

/** Runs in the owner's thread. @param arg of the message; or its body, during the call */
typedef void (*plx_inbox_fn)(void *arg);

struct plx_inbox_cell {
	alignas(64) _Atomic uint32_t seq; /* lap of the ring, from 1 on; stored last */
	bool has_body;
	plx_inbox_fn fn;
	union {
		void *arg;
		alignas(16) uint8_t body[PLX_INBOX_BODY];
	};
};
_Static_assert(sizeof(struct plx_inbox_cell) == 64, "a message is one line");

struct plx_inbox {
	/* line 0: set at open */
	alignas(64) struct plx_inbox_cell *cells;
	bool many;
	/* line 1: producers */
	alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t seen; /* done, from when the ring last seemed full */
	/* line 2: owner */
	alignas(64) uint64_t tail;
	uint32_t empty; /* consecutive empty runs */
	bool runs;
	/* line 3: writer: owner, once a burst; readers: producers */
	alignas(64) _Atomic uint64_t done;
};

/** @param many several producers may post at once. Errors: -ENOMEM. Thread: control. */
int plx_inbox_open(struct plx_inbox *in, bool many);

/** Pending messages are dropped. Thread: control, when nobody posts. */
void plx_inbox_close(struct plx_inbox *in);

/** Slow path of plx_inbox_room(). */
__rte_cold bool plx_inbox_room_slow(struct plx_inbox *in, uint64_t pos);

/** @return whether the cell at pos is free. */
static inline bool
plx_inbox_room(struct plx_inbox *in, uint64_t pos)
{
	/* pairs with the release in plx_inbox_room_slow(), of another producer */
	uint64_t seen = atomic_load_explicit(&in->seen, memory_order_acquire);

	/* signed: others may have advanced since pos was read */
	if (likely((int64_t)(pos - seen) < PLX_INBOX_LEN))
		return true;
	return plx_inbox_room_slow(in, pos);
}

/** Claim a cell to write. @return NULL: full. Thread: as opened. Blocks: never. */
static inline struct plx_inbox_cell *
plx_inbox_take(struct plx_inbox *in, uint64_t *pos)
{
	*pos = atomic_load_explicit(&in->head, memory_order_relaxed);
	if (likely(!in->many)) {
		if (unlikely(!plx_inbox_room(in, *pos)))
			return NULL;
		atomic_store_explicit(&in->head, *pos + 1, memory_order_relaxed);
	} else {
		do {
			if (unlikely(!plx_inbox_room(in, *pos)))
				return NULL;
		} while (!atomic_compare_exchange_weak_explicit(
			&in->head, pos, *pos + 1, memory_order_relaxed, memory_order_relaxed));
	}
	return &in->cells[*pos % PLX_INBOX_LEN];
}

/** @return the number of messages ever posted. Thread: any. */
static inline uint64_t
plx_inbox_posted(const struct plx_inbox *in)
{
	return atomic_load_explicit(&in->head, memory_order_relaxed);
}

/** A post is likely: prefetch its cell. Thread: any. */
static inline void
plx_inbox_ask(const struct plx_inbox *in)
{
	plx_line_own(&in->cells[plx_inbox_posted(in) % PLX_INBOX_LEN]);
}

/** It is written: the owner may run it. */
static inline void
plx_inbox_give(struct plx_inbox *in, struct plx_inbox_cell *c, uint64_t pos)
{
	/* pairs with the acquire in cell_at() in inbox.c */
	atomic_store_explicit(
		&c->seq, (uint32_t)(pos / PLX_INBOX_LEN) + 1, memory_order_release);
	plx_line_own(&in->cells[(pos + PLX_INBOX_AHEAD) % PLX_INBOX_LEN]);
}

/** Post one message. @return 0, or -EAGAIN full. Thread: as opened. Blocks: never. */
static inline int
plx_inbox_post(struct plx_inbox *in, plx_inbox_fn fn, void *arg)
{
	uint64_t pos;
	struct plx_inbox_cell *c = plx_inbox_take(in, &pos);

	if (unlikely(c == NULL))
		return -EAGAIN;
	c->fn = fn;
	c->has_body = false;
	c->arg = arg;
	plx_inbox_give(in, c, pos);
	return 0;
}

/** @return whether nothing is pending. Thread: owner. */
bool plx_inbox_empty(const struct plx_inbox *in);

/** @return whether a posted message has not run. Thread: any. */
static inline bool
plx_inbox_waits(const struct plx_inbox *in)
{
	return atomic_load_explicit(&in->done, memory_order_relaxed) != plx_inbox_posted(in);
}

/** @return whether nothing has come for a while: the next run takes one message. Thread: owner. */
static inline bool
plx_inbox_rested(const struct plx_inbox *in)
{
	return in->empty >= PLX_INBOX_PAUSE;
}

/**
 * Run pending messages, a bounded number: one after a pause.
 * @return how many ran. Thread: owner, also while a message runs: the later ones.
 */
unsigned plx_inbox_run(struct plx_inbox *in);

/**
 * Run all messages that were posted before this call.
 * @return how many ran. Thread: the same. Blocks: while another thread writes one of them.
 */
unsigned plx_inbox_drain(struct plx_inbox *in);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_cq.h - completed requests in flight from a reactor to the application
 *
 * Design notes
 * - A ring of cells of one cache line each, with the sequence number in the cell, as in the
 *   inbox: an empty poll reads one line, and neither side reads the other's position unless the
 *   ring seems full. A short matched message travels in the cell, so that the owner touches
 *   neither the request's first line nor the user's buffer: the application's thread has both in
 *   its cache.
 * - One producer, the worker's owner; one consumer, the application's side.
 */
#ifndef PLX_CQ_H
#define PLX_CQ_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "plx_line.h"

#define PLX_CQ_LEN     1024u /* completions that may be pending; a power of two */
#define PLX_CQ_DATA    40u   /* bytes of a message that travel along */
#define PLX_CQ_NO_DATA UINT32_MAX
#define PLX_CQ_PAUSE   8u    /* after 8 empty polls take one completion instead of a burst */

struct plx_req;

struct plx_cq_cell {
	alignas(64) _Atomic uint32_t seq; /* lap of the ring, from 1 on; stored last */
	uint32_t len;			  /* of data, or PLX_CQ_NO_DATA: the request has it all */
	struct plx_req *req;
	uint64_t tag; /* with data */
	uint8_t data[PLX_CQ_DATA];
};
_Static_assert(sizeof(struct plx_cq_cell) == 64, "a completion is one line");

struct plx_cq {
	/* line 0: set at open */
	alignas(64) struct plx_cq_cell *cells;
	/* line 1: owner */
	alignas(64) uint64_t head;
	uint64_t seen;				/* done, from when the ring last seemed full */
	STAILQ_HEAD(, plx_req) overflow;	/* what the ring had no room for */
	/* line 2: application's side */
	alignas(64) uint64_t tail;
	uint32_t empty; /* consecutive empty polls */
	/* line 3: writer: application's side, once a burst; readers: owner */
	alignas(64) _Atomic uint64_t done;
};

/** @param out set on success. Errors: -ENOMEM. Thread: control. */
int plx_cq_create(struct plx_cq **out);

/** Accepts NULL; pending completions are dropped. Thread: control. */
void plx_cq_destroy(struct plx_cq *cq);

/** Slow path of plx_cq_take(). */
bool plx_cq_room(struct plx_cq *cq);

/** @return the next cell to write, or NULL: full, or earlier ones are pending. Thread: owner. */
static inline struct plx_cq_cell *
plx_cq_take(struct plx_cq *cq)
{
	if (unlikely(!STAILQ_EMPTY(&cq->overflow)))
		return NULL;
	if (unlikely(cq->head - cq->seen >= PLX_CQ_LEN && !plx_cq_room(cq)))
		return NULL;
	return &cq->cells[cq->head % PLX_CQ_LEN];
}

/** A completion is likely: prefetch its cell. Thread: owner. */
static inline void
plx_cq_ask(const struct plx_cq *cq)
{
	plx_line_own(&cq->cells[cq->head % PLX_CQ_LEN]);
}

/** It is written. Thread: owner. */
static inline void
plx_cq_give(struct plx_cq *cq, struct plx_cq_cell *c)
{
	/* pairs with the acquire in plx_cq_next() */
	atomic_store_explicit(&c->seq, (uint32_t)(cq->head++ / PLX_CQ_LEN) + 1,
		memory_order_release);
	plx_line_own(&cq->cells[(cq->head + 1) % PLX_CQ_LEN]); /* past the one polled */
}

/** @return the next completion, or NULL. Thread: application's side. */
static inline struct plx_cq_cell *
plx_cq_next(const struct plx_cq *cq)
{
	struct plx_cq_cell *c = &cq->cells[cq->tail % PLX_CQ_LEN];

	/* pairs with the release in plx_cq_give() */
	return atomic_load_explicit(&c->seq, memory_order_acquire) ==
		       (uint32_t)(cq->tail / PLX_CQ_LEN) + 1 ? c : NULL;
}

/**
 * @return whether nothing has come for a while: the next poll takes one. Thread:
 *   application's side.
 */
static inline bool
plx_cq_rested(const struct plx_cq *cq)
{
	return cq->empty >= PLX_CQ_PAUSE;
}

/** The cells read so far may be reused. Thread: application's side. */
static inline void
plx_cq_done(struct plx_cq *cq)
{
	/* pairs with the acquire in plx_cq_room() and plx_cq_drained() */
	atomic_store_explicit(&cq->done, cq->tail, memory_order_release);
}

/** @return whether the application has seen all of them. Thread: owner. */
static inline bool
plx_cq_drained(const struct plx_cq *cq)
{
	return atomic_load_explicit(&cq->done, memory_order_acquire) == cq->head;
}

#endif

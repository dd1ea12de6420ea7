/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_tag.h - matching of posted receives and arrived messages
 *
 * A data structure and nothing else: no devices, no time, no I/O. It links objects of others (a
 * plx_tag_recv inside a request, a plx_tag_msg inside an unexpected message) and never owns or
 * frees them. All functions are for the owner thread and never block. A message matches a receive
 * when the two tags agree in the bits of the receive's mask; the other bits may have any value.
 *
 * The caller follows two rules, which together are MPI's order: call plx_tag_find() before
 * plx_tag_post(), and plx_tag_match() before plx_tag_keep().
 */
#ifndef PLX_TAG_H
#define PLX_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "plx_stat.h"

/** Masks of posted receives that are hashed at a time; others are scanned. */
#define PLX_TAG_MAX_CLASSES 8
/** Masks by which unexpected messages are indexed at a time; others are scanned. */
#define PLX_TAG_MAX_INDEXES 4
/** Of these, those whose links are in plx_tag_msg. */
#define PLX_TAG_NEAR_INDEXES 2
/** Most keys of a mask's table: beyond, receives are scanned. */
#define PLX_TAG_MAX_SLOTS (UINT32_C(1) << 26)

struct plx_tag;

/* Neighbours in a queue of the engine. */
struct plx_tag_link {
	struct plx_tag_link *next;
	struct plx_tag_link *prev;
};

/**
 * A posted receive's place in the engine; embedded in a request. Read-only for the caller,
 * and stable from plx_tag_post() to the match or the cancel.
 */
struct plx_tag_recv {
	uint64_t tag;  /* as posted, without the bits outside mask; after the match, the message's */
	uint64_t mask; /* bits of the tag that matter */
	uint64_t order; /* place in post order, and in the last byte its class */
	union {
		struct plx_tag_link link;           /* same mask and tag */
		TAILQ_ENTRY(plx_tag_recv) residual; /* receives without a class */
	};
	struct plx_tag_recv *walk; /* next in post order, see plx_tag_recv_first() */
};

_Static_assert(sizeof(struct plx_tag_recv) == 48, "fits beside 16 bytes in a cache line");

/**
 * An unexpected message's place in the engine; embedded in plx_msg. Read-only for the
 * caller, and stable from plx_tag_keep() to plx_tag_take().
 */
struct plx_tag_msg {
	uint64_t tag; /* as sent */
	uint64_t seq; /* place in arrival order */
	TAILQ_ENTRY(plx_tag_msg) all;
	struct plx_tag_link link[PLX_TAG_NEAR_INDEXES]; /* same tag under that index's mask */
	bool whole; /* set by the caller before plx_tag_keep(): plx_tag_take_whole() may take it */
};

/**
 * Its links under more masks. A program seldom uses more than two, so what embeds both keeps this one
 * away from what every look-up reads.
 */
struct plx_tag_far {
	struct plx_tag_link link[PLX_TAG_MAX_INDEXES - PLX_TAG_NEAR_INDEXES];
};

/** Counters of one engine. Writer: owner; readers: any, relaxed. */
struct plx_tag_stat {
	uint64_t posted;         /* receives posted now */
	uint64_t posted_max;     /* most ever */
	uint64_t kept;           /* unexpected messages now */
	uint64_t kept_max;       /* most ever */
	uint64_t match_hit;      /* arrivals that matched a posted receive */
	uint64_t match_miss;     /* arrivals that matched none */
	uint64_t probes;         /* table look-ups for arrivals: 1 a live mask */
	uint64_t cancels;        /* receives cancelled */
	uint64_t consumed;       /* receives that a device has matched */
	uint64_t finds;          /* searches of unexpected messages, if there were any */
	uint64_t find_hit;       /* of those, successful ones */
	uint64_t classes;        /* masks of posted receives that have a table */
	uint64_t class_recycled; /* tables given to another mask */
	uint64_t residual;       /* receives now in the scanned list */
	uint64_t residual_posts; /* receives that ever went there */
	uint64_t residual_seen;  /* steps in that list */
	uint64_t indexes;        /* masks by which unexpected messages are indexed */
	uint64_t index_recycled; /* indexes given to another mask */
	uint64_t scanned;        /* unexpected messages scanned one by one */
	uint64_t rehashes;       /* tables doubled */
	uint64_t rehash_fails;   /* tables that could not be: no memory, or PLX_TAG_MAX_SLOTS */
};

/** Rows that describe struct plx_tag_stat, ended by PLX_STAT_END. */
extern const struct plx_stat_row plx_tag_stat_rows[];

/**
 * Make an empty engine.
 * @param seed random, and unknown to peers: the hashing of tags depends on it
 * @param far_at bytes from each plx_tag_msg to its plx_tag_far
 * @param out set to the engine on success; the caller destroys it
 * @return 0 or -errno
 * Thread: control.  Blocks: may.  Allocates: heap. Errors: -ENOMEM.
 */
int plx_tag_create(uint64_t seed, size_t far_at, struct plx_tag **out);

/**
 * Destroy an engine; linked entries are forgotten, not freed.
 * @param t the engine, or NULL
 * Thread: control.  Blocks: may.  Allocates: no.
 */
void plx_tag_destroy(struct plx_tag *t);

/**
 * In a forked child, inside of fork(): reset the engine. Linked entries are in the parent's
 * memory and are not accessed; tables that had grown stay allocated, as no allocator may be
 * called here. Thread: control.  Blocks: never.  Allocates: no.
 */
void plx_tag_forget(struct plx_tag *t);

/**
 * The engine's counters, live.
 * @return valid until plx_tag_destroy(); read single fields with plx_stat_read() elsewhere
 * Thread: any.  Blocks: never.  Allocates: no.
 */
static inline const struct plx_tag_stat *
plx_tag_stats(const struct plx_tag *t)
{
	return (const struct plx_tag_stat *)t; /* they are its first member */
}

/**
 * Append a receive to the posted ones. No unexpected message may match it: call
 * plx_tag_find() first.
 * @param r linked by no engine; the caller keeps it alive until it is matched or cancelled
 * @param tag tag to wait for
 * @param mask bits of the tag that must agree
 * Thread: owner.  Blocks: never.  Allocates: heap, when a table doubles.
 */
void plx_tag_post(struct plx_tag *t, struct plx_tag_recv *r, uint64_t tag, uint64_t mask);

/**
 * Remove the earliest posted receive that matches an arrived message; some are posted, else
 * plx_tag_miss().
 * @param tag the message's tag
 * @return the receive, which belongs to the caller again, or NULL
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
struct plx_tag_recv *plx_tag_match(struct plx_tag *t, uint64_t tag);

/**
 * @return the tag of the last plx_tag_match() that returned NULL: the caller need
 *   not store it. Thread: owner.
 */
uint64_t plx_tag_missed(const struct plx_tag *t);

/** Count an arrival that matched no receive, as none is posted. Thread: owner. */
static inline void
plx_tag_miss(struct plx_tag *t)
{
	PLX_STAT_INC(((struct plx_tag_stat *)t)->match_miss); /* as plx_tag_stats() */
}

/**
 * The result of plx_tag_match() now, without removing anything.
 * @param tag the message's tag
 * @return the receive, still posted, or NULL
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
struct plx_tag_recv *plx_tag_peek(struct plx_tag *t, uint64_t tag);

/**
 * Prefetch the slots that plx_tag_match() will read; worth it with several arrivals at hand
 * and thousands of posted receives.
 * @param tag the message's tag
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
void plx_tag_prefetch(const struct plx_tag *t, uint64_t tag);

/**
 * Guess the result of plx_tag_match() from the slots alone.
 * @param tag the message's tag
 * @return a posted receive, to prefetch and not to read, or NULL
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
const struct plx_tag_recv *plx_tag_guess(const struct plx_tag *t, uint64_t tag);

/**
 * Cancel a posted receive; the same cost at any depth and for any mask.
 * @param r posted in t; belongs to the caller again
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
void plx_tag_cancel(struct plx_tag *t, struct plx_tag_recv *r);

/**
 * A device has matched a posted receive; the same cost as a cancel.
 * @param r posted in t; belongs to the caller again
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
void plx_tag_consume(struct plx_tag *t, struct plx_tag_recv *r);

/**
 * Append an unexpected message. No posted receive may match it: call plx_tag_match() first.
 * @param m linked by no engine; the caller keeps it alive until it is taken
 * @param tag the message's tag
 * Thread: owner.  Blocks: never.  Allocates: heap, when a table doubles.
 */
void plx_tag_keep(struct plx_tag *t, struct plx_tag_msg *m, uint64_t tag);

/** Slow path of plx_tag_find(): there are unexpected messages. */
struct plx_tag_msg *plx_tag_find_kept(struct plx_tag *t, uint64_t tag, uint64_t mask);

/**
 * The earliest unexpected message that a receive would match; it stays in the engine.
 * @param tag tag to search
 * @param mask bits of the tag that must agree
 * @return the message, or NULL
 * Thread: owner.  Blocks: never.  Allocates: heap, when a table doubles.
 */
static inline struct plx_tag_msg *
plx_tag_find(struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	return plx_tag_stats(t)->kept == 0 ? NULL : plx_tag_find_kept(t, tag, mask);
}

/**
 * As plx_tag_find(), and a found message is removed if it is complete.
 * @return the message, which belongs to the caller again, or NULL: none is found, or it is
 *   incomplete
 * Thread: owner.  Blocks: never.  Allocates: heap, when a table doubles.
 */
struct plx_tag_msg *plx_tag_take_whole(struct plx_tag *t, uint64_t tag, uint64_t mask);

/**
 * Remove an unexpected message; the same cost at any depth.
 * @param m in t; belongs to the caller again
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
void plx_tag_take(struct plx_tag *t, struct plx_tag_msg *m);

/**
 * Start a walk over the posted receives in post order; n log n, for teardown and
 * introspection. The walk omits receives posted after this call, and the present one may be
 * cancelled after plx_tag_recv_next() of it was read.
 * @return the earliest posted receive, or NULL
 * Thread: owner.  Blocks: never.  Allocates: no.
 */
struct plx_tag_recv *plx_tag_recv_first(struct plx_tag *t);

/** The one posted after r in the walk begun by plx_tag_recv_first(), or NULL. Thread: owner. */
static inline struct plx_tag_recv *
plx_tag_recv_next(const struct plx_tag_recv *r)
{
	return r->walk;
}

/** The earliest unexpected message, or NULL. Thread: owner. */
struct plx_tag_msg *plx_tag_msg_first(const struct plx_tag *t);

/** The unexpected message after m, or NULL. Thread: owner. */
static inline struct plx_tag_msg *
plx_tag_msg_next(const struct plx_tag_msg *m)
{
	return TAILQ_NEXT(m, all);
}

/** @return above the order of every receive posted so far, and not of a later one. Thread: owner. */
uint64_t plx_tag_order(const struct plx_tag *t);

/**
 * Write the masks, the depths and the counters as text.
 * @param f open for writing
 * Thread: owner.  Blocks: may.  Allocates: no.
 */
void plx_tag_dump(FILE *f, const struct plx_tag *t);

#endif

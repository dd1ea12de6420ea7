/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_credit.h - never send a message for which the peer has no slot
 *
 * Design notes
 * - Each side grants the other a number of slots when they connect, and posts as many to its
 *   shared receive queue; so a sender with a credit always finds one. Credits are returned with
 *   every message, and by a message of their own when half of them are unreturned.
 * - The first grant is small, since most peers send little. A sender that runs out of credits
 *   says so with the next message, and gets new slots, up to as many as it had; they are
 *   announced in place of unreturned ones.
 * - Returning credits needs a slot as well: the last credit is reserved for it. It can't be
 *   missing for ever: a side that has sent its last credit has returned all credits with it, or
 *   announced new ones, and half of a grant, or PLX_CREDIT_MIN (2 at least), is more than the one
 *   slot that this message takes.
 */
#ifndef PLX_CREDIT_H
#define PLX_CREDIT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#define PLX_CREDIT_MIN	 4    /* of a grant, and of its growth */
#define PLX_CREDIT_FIRST 16   /* most of a first grant */
#define PLX_CREDIT_MAX	 1024 /* of a grant, whatever the peer asks for */

/** Of one peer. Owner: the queue's. */
struct plx_credit {
	uint16_t left;	  /* messages that may be sent */
	uint16_t most;	  /* the most that left may be: the peer's grant */
	uint16_t owed;	  /* slots that are free again and not returned to the peer */
	uint16_t granted; /* to the peer */
	uint16_t fresh;	  /* those of them that the peer does not know of */
	bool ran_out;	  /* of credits, and the peer does not know */
};

/** The credits in a message. */
struct plx_credit_note {
	uint16_t n;
	bool are_new;
	bool ran_out;
};

/** @return whether a message of the application may be sent. */
static inline bool
plx_credit_has(const struct plx_credit *c)
{
	return c->left > 1;
}

/** @return whether two of them may be sent. */
static inline bool
plx_credit_has_two(const struct plx_credit *c)
{
	return c->left > 2;
}

/** @return whether a message that only returns credits may be sent. */
static inline bool
plx_credit_has_last(const struct plx_credit *c)
{
	return c->left > 0;
}

/** A message is sent. @return its note */
static inline struct plx_credit_note
plx_credit_take(struct plx_credit *c)
{
	struct plx_credit_note note = {c->owed, false, false};

	c->left--;
	if (likely((c->fresh | c->ran_out) == 0)) {
		c->owed = 0;
		return note;
	}
	note.ran_out = c->ran_out;
	note.are_new = c->fresh != 0;
	c->ran_out = false;
	if (note.are_new) {
		note.n = c->fresh;
		c->fresh = 0;
	} else {
		c->owed = 0;
	}
	return note;
}

/** @return whether the unreturned credits, with this many slots more, are worth a message. */
static inline bool
plx_credit_urgent_with(const struct plx_credit *c, uint16_t more)
{
	return c->owed + more >= c->granted / 2 || c->fresh != 0;
}

/** @return whether the unreturned credits are worth a message. */
static inline bool
plx_credit_urgent(const struct plx_credit *c)
{
	return plx_credit_urgent_with(c, 0);
}

/** The peer returns credits. @return 0, or -EBADMSG: more than it ever had of us, or may have */
static inline int
plx_credit_told(struct plx_credit *c, uint16_t n, bool are_new)
{
	int room = are_new ? PLX_CREDIT_MAX - c->most : c->most - c->left;

	if (n > room)
		return -EBADMSG;
	if (are_new)
		c->most += n;
	c->left += n;
	return 0;
}

/** The peer gets n more slots, which are posted. */
static inline void
plx_credit_grow(struct plx_credit *c, uint16_t n)
{
	c->granted += n;
	c->fresh += n;
}

/**
 * @return the grant for the next peer: a quarter of the remaining budget, within the least
 *   and want; 0: there is no room for another.
 * @param total granted so far
 * @param budget above which every peer gets the least
 * @param room the most slots of all peers
 */
static inline uint16_t
plx_credit_grant(uint32_t total, uint32_t budget, uint32_t room, uint16_t want)
{
	uint32_t n = total < budget ? (budget - total) / 4 : 0;

	n = n < PLX_CREDIT_MIN ? PLX_CREDIT_MIN : n > want ? want : n;
	if (n > room - total)
		n = room - total;
	return n < PLX_CREDIT_MIN ? 0 : n;
}

/**
 * @return the growth of the grant of a peer that ran out of it: at most what it has, and a
 *   quarter of the remaining budget; 0: it has the most.
 */
static inline uint16_t
plx_credit_more(const struct plx_credit *c, uint32_t total, uint32_t budget, uint16_t want)
{
	uint32_t n = total < budget ? (budget - total) / 4 : 0;

	if (c->granted >= want)
		return 0;
	if (n > c->granted)
		n = c->granted;
	if (n > (uint32_t)(want - c->granted))
		n = want - c->granted;
	return n < PLX_CREDIT_MIN ? 0 : n;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_credit.h - never send a message for which the peer has no slot
 *
 * Design notes
 * Each side grants the other a number of slots when they connect, and posts so many more to
 * its shared receive queue; so a sender that keeps to its credits always finds one. Credits
 * come back with whatever is sent, and by a message of their own when half of them are owed.
 *
 * The first grant is small, since most peers say little. Who runs out of credits says so with
 * the next message, and gets new slots, up to as many as it had; they are told in place of those
 * that are owed.
 *
 * Telling needs a slot as well: the last credit is kept for it. It can't be wanting
 * for ever: who has sent his last credit has told the other all that he owed with it, or new
 * ones, and half of a grant, or PLX_CREDIT_MIN (2 at least), is more than the one slot that the
 * telling takes.
 */
#ifndef PLX_CREDIT_H
#define PLX_CREDIT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#define PLX_CREDIT_MIN	 4    /* of a grant, and of what it grows by */
#define PLX_CREDIT_FIRST 16   /* most of a first grant */
#define PLX_CREDIT_MAX	 1024 /* of a grant, whatever the peer says */

/** Of one peer. Owner: the queue's. */
struct plx_credit {
	uint16_t left;	  /* messages that may be sent */
	uint16_t most;	  /* what left may be at the most: the peer's grant */
	uint16_t owed;	  /* slots that are free again, of which the peer was not told */
	uint16_t granted; /* to the peer */
	uint16_t fresh;	  /* those of them of which it was never told */
	bool ran_out;	  /* of ours, and the peer was not told */
};

/** What a message tells. */
struct plx_credit_note {
	uint16_t n;
	bool are_new;
	bool ran_out;
};

/** @return whether a message of the application may go. */
static inline bool
plx_credit_has(const struct plx_credit *c)
{
	return c->left > 1;
}

/** @return whether two of them may. */
static inline bool
plx_credit_has_two(const struct plx_credit *c)
{
	return c->left > 2;
}

/** @return whether a message that only tells credits may go. */
static inline bool
plx_credit_has_last(const struct plx_credit *c)
{
	return c->left > 0;
}

/** A message goes. @return what it tells */
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

/** @return whether what is to be told, with so many slots more, is worth a message. */
static inline bool
plx_credit_urgent_with(const struct plx_credit *c, uint16_t more)
{
	return c->owed + more >= c->granted / 2 || c->fresh != 0;
}

/** @return whether what is to be told is worth a message. */
static inline bool
plx_credit_urgent(const struct plx_credit *c)
{
	return plx_credit_urgent_with(c, 0);
}

/** The peer tells us so many. @return 0, or -EBADMSG: more than it ever had of us, or may have */
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

/** The peer gets n slots more, which are posted. */
static inline void
plx_credit_grow(struct plx_credit *c, uint16_t n)
{
	c->granted += n;
	c->fresh += n;
}

/**
 * @return what to grant the next peer: a quarter of what the budget has left, within the least
 * and want; 0: there is no room for another.
 * @param total granted so far
 * @param budget after which everybody gets the least
 * @param room slots there can be at all
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
 * @return by how much to grow the grant of a peer that ran out of it: no more than it has, nor than
 * a quarter of what the budget has left; 0: it has all that it can have.
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

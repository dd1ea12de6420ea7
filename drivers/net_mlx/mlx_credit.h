/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_credit.h - never send a message for which the peer has no slot
 *
 * Design notes
 * Each side grants the other a number of slots when they connect, and posts so many more to
 * its shared receive queue; so a sender that keeps to its credits always finds one. Credits
 * come back with whatever is sent, and by a message of their own when half of them are owed.
 *
 * Such a message needs a slot as well: the last credit is kept for it. It can't be wanting
 * for ever: who has sent his last credit has told the other all that he owed with it, and
 * half of a grant (2 at least) is more than the one slot that the telling takes.
 */
#ifndef MLX_CREDIT_H
#define MLX_CREDIT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define MLX_CREDIT_MIN 4 /* of a grant */

/** Of one peer. Owner: the queue's. */
struct mlx_credit {
	uint16_t left;	  /* messages that may be sent */
	uint16_t most;	  /* what left may be at the most: the peer's grant */
	uint16_t owed;	  /* slots that are free again, of which the peer was not told */
	uint16_t granted; /* to the peer */
};

/** @return whether a message of the application may go. */
static inline bool
mlx_credit_has(const struct mlx_credit *c)
{
	return c->left > 1;
}

/** @return whether a message that only tells credits may go. */
static inline bool
mlx_credit_has_last(const struct mlx_credit *c)
{
	return c->left > 0;
}

/** A message goes. @return the credits that it tells */
static inline uint16_t
mlx_credit_take(struct mlx_credit *c)
{
	uint16_t told = c->owed;

	c->left--;
	c->owed = 0;
	return told;
}

/** @return whether so many are owed that they are worth a message. */
static inline bool
mlx_credit_urgent(const struct mlx_credit *c)
{
	return c->owed >= c->granted / 2;
}

/** The peer tells us so many. @return 0, or -EBADMSG: more than it ever had of us */
static inline int
mlx_credit_told(struct mlx_credit *c, uint16_t n)
{
	if (n > c->most - c->left)
		return -EBADMSG;
	c->left += n;
	return 0;
}

/**
 * @return what to grant the next peer: a quarter of what the budget has left, within the least
 * and want; 0: there is no room for another.
 * @param total granted so far
 * @param budget after which everybody gets the least
 * @param room slots there can be at all
 */
static inline uint16_t
mlx_credit_grant(uint32_t total, uint32_t budget, uint32_t room, uint16_t want)
{
	uint32_t n = total < budget ? (budget - total) / 4 : 0;

	n = n < MLX_CREDIT_MIN ? MLX_CREDIT_MIN : n > want ? want : n;
	if (n > room - total)
		n = room - total;
	return n < MLX_CREDIT_MIN ? 0 : n;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_park.c - a bounded number of connections: idle ones are closed
 *
 * Design notes
 * - When a connection is needed and the number is at its bound, the least recently used one is
 *   parked: closed without loss, and made again when either side has a message. Each side stops
 *   sending, waits until the device has completed all of its requests, sends PARK as its last
 *   message, and closes when it has the other's PARK and its own is acknowledged. The side that
 *   begins sends it first; both may begin at the same time. If an acknowledgement is lost while
 *   the other side closes our PARK fails: as theirs has arrived, the connection is closed anyway.
 * - PARK needs a credit. Until it is sent credits are returned as usual, even with the last one:
 *   both may begin with one left and all others in flight, and if each kept its unreturned
 *   credits until it had another to send PARK with, both would wait for ever.
 * - And a side that waits for a credit of a peer that is already silent waits for ever. So the
 *   first to send PARK keeps a credit, and returns credits with it if the other has none left: if
 *   all granted slots are back here. Otherwise a message is still to come, perhaps its PARK, and
 *   the peer may be closed when credits arrive.
 * - At most half of the connections are for our own requests, the others for peers that ask us:
 *   otherwise several queues that wait for each other's answer in a circle would wait for ever.
 *   And a connection stays until something was sent by it, or some time, so that each gets its
 *   turn.
 */
#include "link_int.h"

#define HOLD_NS 20000000u /* least lifetime of a connection that nothing is sent by */

/* Whether the peer has no credit left, and nothing of it is in flight. */
static bool
peer_is_dry(const struct plx_link_peer *p)
{
	uint32_t to_tell = p->credit.owed + p->credit.fresh;

	return to_tell > 0 && to_tell + p->rx_held == p->credit.granted;
}

static void
park_say(struct plx_link_peer *p)
{
	if (!p->link->ops->is_idle(p))
		p->link->ops->probe(p); /* its completion covers all earlier requests */
	else if (p->theirs || plx_credit_has(&p->credit))
		p->said = p->link->ops->tell(p, true);
	else if (plx_credit_urgent(&p->credit))
		p->link->ops->tell(p, false);
}

static void
park_step(struct plx_link_peer *p)
{
	if (!p->said)
		park_say(p);
	else if (!p->theirs && peer_is_dry(p))
		p->link->ops->tell(p, false);
	else if (p->theirs && p->rx_held == 0 && (p->cut || p->link->ops->is_idle(p)))
		plx_link_reset(p);
}

/* Parking for long, and the peer runs no turns: that may last. */
static bool
is_stuck(const struct plx_link *l, const struct plx_link_peer *p)
{
	return l->now_ns - p->park_ns >= HOLD_NS;
}

/* Whether a connection was used; or one of a peer that asked and then did nothing. */
static bool
may_go(const struct plx_link *l, const struct plx_link_peer *p)
{
	if (p->state == PLX_LINK_READY)
		return !p->wanted && l->now_ns - p->made_ns >= l->connect_ns;
	return p->state == PLX_LINK_OPEN && (p->used_at != p->opened || l->now_ns - p->made_ns >= HOLD_NS);
}

static struct plx_link_peer *
least_used(const struct plx_link *l)
{
	struct plx_link_peer *p, *best = NULL;

	TAILQ_FOREACH(p, &l->conns, conns) {
		if (may_go(l, p) && (best == NULL || l->looks - p->used_at > l->looks - best->used_at))
			best = p;
	}
	return best;
}

/* More connections are needed: close as many idle ones. */
static void
room_make(struct plx_link *l, unsigned n)
{
	struct plx_link_peer *p;

	TAILQ_FOREACH(p, &l->parking, parking)
		n -= n > 0 && !is_stuck(l, p);
	for (; n > 0 && (p = least_used(l)) != NULL; n--) {
		if (p->state == PLX_LINK_OPEN) {
			link_park(p);
			PLX_STAT_INC(l->stat->parked);
		} else {
			plx_link_reset(p);
		}
	}
}

/* Waiting peers get a connection, if there is one. */
static void
waiting_serve(struct plx_link *l, uint64_t now_ns)
{
	unsigned own = l->n_own, missing = 0;
	struct plx_link_peer *p, *next;

	for (p = TAILQ_FIRST(&l->waiting); p != NULL; p = next) {
		next = TAILQ_NEXT(p, asking);
		if (!p->called && own >= l->n_max / 2)
			continue;
		own += !p->called;
		if (!link_has_room(l))
			missing++;
		else
			link_start(p, now_ns);
	}
	room_make(l, missing);
}

void
plx_link_work(struct plx_link *l, uint64_t now_ns)
{
	struct plx_link_peer *p, *next;

	for (p = TAILQ_FIRST(&l->parking); p != NULL; p = next) {
		next = TAILQ_NEXT(p, parking);
		park_step(p);
	}
	if (!TAILQ_EMPTY(&l->waiting))
		waiting_serve(l, now_ns);
}

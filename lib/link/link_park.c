/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_park.c - no more connections than may be: those that are idle give way
 *
 * Design notes
 * When somebody needs a connection and there are as many as may be, the connection that was not used
 * for longest is parked: closed such that nothing is lost, and made anew when either side has
 * something to send. Each side stops to send, waits until the device has done all of its requests,
 * says PARK as its last, and closes when it has the other's PARK and its own is acknowledged. The one
 * that begins says it first; both may begin at the same time. An acknowledgement that is lost while the
 * other closes makes our PARK fail: as theirs was there, it is over all the same.
 *
 * PARK needs a credit. Until it is said credits are told as ever, with the last one as well: both may
 * begin with one left and all the rest on the way, and if each kept what it owes until it had another
 * to say PARK with, both would wait for ever.
 *
 * And who waits for a credit of a peer that is silent already waits for ever. So the first to say
 * PARK keeps a credit, and tells with it what it owes if the other has none left: if all that was
 * granted is back here. In any other case something is still to come, its PARK perhaps,
 * and it may be gone when credits arrive.
 *
 * Of the connections half may be ours that ask, the rest are for peers that ask us: else several
 * queues that wait for each other's answer in a circle would wait for ever. And a connection
 * stays until something was sent by it, or some time, so that each gets its turn.
 */
#include "link_int.h"

#define HOLD_NS 20000000u /* a connection by which nothing is sent lives so long at the least */

/* Whether neither the peer has a credit left, nor anything of it is on the way. */
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
		p->link->ops->probe(p); /* its completion stands for all before it */
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

/* Parked for long, and the peer does not look: it may for a long time. */
static bool
is_stuck(const struct plx_link *l, const struct plx_link_peer *p)
{
	return l->now_ns - p->park_ns >= HOLD_NS;
}

/* Whether a connection had its turn; or one of a peer that asked and then did nothing. */
static bool
may_go(const struct plx_link *l, const struct plx_link_peer *p)
{
	if (p->state == PLX_LINK_READY)
		return !p->wanted && l->now_ns - p->made_ns >= l->connect_ns;
	return p->state == PLX_LINK_OPEN && (p->used != p->opened || l->now_ns - p->made_ns >= HOLD_NS);
}

static struct plx_link_peer *
least_used(const struct plx_link *l)
{
	struct plx_link_peer *p, *best = NULL;

	TAILQ_FOREACH(p, &l->conns, conns) {
		if (may_go(l, p) && (best == NULL || l->looks - p->used > l->looks - best->used))
			best = p;
	}
	return best;
}

/* So many more connections are needed: as many connections give way. */
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

/* Who waits gets a connection, if there is one. */
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

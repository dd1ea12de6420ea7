/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link.c - the state of a peer, and the link's lists that it is in
 *
 * Design notes
 * - Nothing here sends or allocates, so it may be called at any point: a sender finds the peer
 *   lost, a receiver finds it wanted. A turn then acts on it.
 */
#include <errno.h>
#include <stddef.h>

#include "link_int.h"

void
plx_link_init(struct plx_link *l, const struct plx_link_ops *ops, struct plx_link_stat *stat)
{
	l->ops = ops;
	l->stat = stat;
	SLIST_INIT(&l->lost);
	TAILQ_INIT(&l->asking);
	TAILQ_INIT(&l->waiting);
	TAILQ_INIT(&l->parking);
	TAILQ_INIT(&l->conns);
}

void
plx_link_want(struct plx_link_peer *p, bool called)
{
	struct plx_link *l = p->link;

	if (p->state >= PLX_LINK_OPEN)
		return;
	p->called |= called;
	if (p->wanted)
		return;
	p->wanted = true;
	p->n_asked = 0;
	p->asked_ns = 0;
	if (p->made) {
		TAILQ_INSERT_TAIL(&l->asking, p, asking);
		l->n_own += !p->called;
		return;
	}
	PLX_STAT_INC(l->stat->waits);
	TAILQ_INSERT_TAIL(&l->waiting, p, asking);
}

void
link_want_end(struct plx_link_peer *p)
{
	struct plx_link *l = p->link;

	if (p->wanted && p->made) {
		TAILQ_REMOVE(&l->asking, p, asking);
		l->n_own -= !p->called;
	} else if (p->wanted) {
		TAILQ_REMOVE(&l->waiting, p, asking);
	}
	p->wanted = p->called = false;
}

void
plx_link_works(struct plx_link_peer *p)
{
	struct plx_link *l = p->link;

	if (p->state != PLX_LINK_READY)
		return;
	p->state = PLX_LINK_OPEN;
	l->ops->met(p);
	p->made_ns = l->now_ns;
	p->used_at = p->opened = l->looks - 1; /* so that a use at this look counts */
	link_want_end(p);
}

void
link_park(struct plx_link_peer *p)
{
	struct plx_link *l = p->link;

	p->state = PLX_LINK_PARKING;
	p->said = p->theirs = p->cut = false;
	p->park_ns = l->now_ns;
	l->ops->parks(p);
	TAILQ_INSERT_TAIL(&l->parking, p, parking);
}

void
plx_link_park_told(struct plx_link_peer *p)
{
	if (p->state == PLX_LINK_OPEN) {
		link_park(p);
		PLX_STAT_INC(p->link->stat->parked_by_peer);
	}
	p->theirs = true;
}

void
link_park_end(struct plx_link_peer *p)
{
	if (p->state == PLX_LINK_PARKING)
		TAILQ_REMOVE(&p->link->parking, p, parking);
}

void
plx_link_lose(struct plx_link_peer *p, int err)
{
	if (p->state >= PLX_LINK_LOST)
		return;
	if (plx_link_is_parked(p)) {
		p->cut = true;
		return;
	}
	link_want_end(p);
	link_park_end(p);
	p->state = PLX_LINK_LOST;
	p->err = err;
	SLIST_INSERT_HEAD(&p->link->lost, p, lost_link);
}

void
plx_link_bye(struct plx_link_peer *p)
{
	p->said = false; /* the park is cancelled */
	plx_link_lose(p, -ECONNRESET);
}

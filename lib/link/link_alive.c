/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_alive.c - peers that are silent: they are asked, and at last they are gone
 *
 * Design notes
 * The device may send again for ever, so the driver says when a peer is gone. A sign of life is
 * whatever comes of it and the completion of any request. Who gives none for probe_ms gets an empty
 * write, which its device acknowledges whatever its owner does; from then on a completion is due,
 * and dead_ms later the peer is gone.
 *
 * Completions come in time though much is to be sent: the driver bounds the length of a request, and
 * one out of a few has a completion at the least. Where even that takes longer than
 * dead_ms (many share a slow link, packets get lost) datagrams help, which overtake what is queued:
 * the peer's owner answers them if it looks. While the own port was down nothing could come, so that
 * it is back counts like such an answer. But neither means that the connection works: after
 * PLX_LINK_PATIENCE times dead_ms without a completion the peer is gone all the same.
 *
 * An owner may not look for long, and finds then what came meanwhile. So a peer that is overdue at
 * one look is gone only at another, when all that had been completed at the first was taken.
 * It is the turn that takes it: callbacks are not called from here.
 *
 * Messages that may get lost need no connection, and without one no device says whether it got them.
 * So who is sent such and is not heard for probe_ms is called by datagrams, and gone when its
 * owner answers none for connect_ms: it has as long as one who is asked for a connection.
 */
#include <errno.h>

#include <rte_common.h>

#include "link_int.h"

#define CALLS_MIN 8

static bool
is_overdue(const struct plx_link *l, const struct plx_link_peer *p, uint64_t at_ns)
{
	uint64_t silent = at_ns - p->silent_ns;
	uint64_t heard_ns = RTE_MAX(p->heard_ns, l->up_ns);

	heard_ns = RTE_MIN(heard_ns, at_ns);
	return silent >= PLX_LINK_PATIENCE * l->dead_ns ||
		(silent >= l->dead_ns && at_ns - heard_ns >= l->dead_ns);
}

/* A peer that gave no sign of life for a while. */
static void
silent_look(struct plx_link *l, struct plx_link_peer *p)
{
	l->ops->probe(p);
	if (!p->made || p->state >= PLX_LINK_LOST || p->cut || !l->ops->is_due(p))
		return;
	if (p->silent_ns <= p->rx_ns) {
		p->silent_ns = l->now_ns;
		return;
	}
	if (l->caught_up && is_overdue(l, p, l->peers_ns)) {
		PLX_STAT_INC(l->stat->silent_gone);
		plx_link_lose(p, -ETIME);
		return;
	}
	link_call(p);
	l->overdue |= is_overdue(l, p, l->now_ns);
}

/* Whether nobody tells if it is there: it has no connection, and is not asked for one. */
static bool
is_untold(const struct plx_link_peer *p)
{
	return p->state < PLX_LINK_OPEN && !(p->wanted && p->made);
}

static void
alive_tell(struct plx_link_peer *p, enum plx_link_kind kind)
{
	/* Where there is no way it is not answered either. */
	(void)p->link->ops->say(p, &(struct plx_link_hello){.kind = kind});
}

static void
unheard_look(struct plx_link *l, struct plx_link_peer *p, bool can_say)
{
	if (l->now_ns - RTE_MIN(p->heard_ns, l->now_ns) < l->probe_ns || !can_say)
		return;
	if (p->n_calls == 0)
		p->silent_ns = l->now_ns;
	/* So many calls, as we ourselves may not have looked for long. */
	if (p->n_calls >= CALLS_MIN && l->now_ns - p->silent_ns >= l->connect_ns) {
		PLX_STAT_INC(l->stat->silent_gone);
		plx_link_lose(p, -ETIME);
		return;
	}
	p->n_calls += p->n_calls != UINT8_MAX;
	PLX_STAT_INC(l->stat->silent_asked);
	alive_tell(p, PLX_LINK_CALL);
}

void
plx_link_on_call(struct plx_link_peer *p, enum plx_link_kind kind)
{
	if (p->state >= PLX_LINK_LOST)
		return; /* who has given the peer up is not there for it */
	if (kind == PLX_LINK_CALL) {
		alive_tell(p, PLX_LINK_HERE);
		return;
	}
	PLX_STAT_ADD(p->link->stat->silent_answered, p->n_calls != 0);
	plx_link_heard(p);
}

void
plx_link_look(struct plx_link_peer *p, bool can_say)
{
	struct plx_link *l = p->link;

	if (p->unheard && is_untold(p))
		unheard_look(l, p, can_say);
	else if (l->now_ns - p->rx_ns >= l->probe_ns)
		silent_look(l, p);
}

/* Now and then; soon, when there is a peer to be told gone. */
bool
plx_link_is_time(const struct plx_link *l, bool is_due)
{
	if (l->overdue && is_due)
		return l->caught_up;
	return l->now_ns - l->peers_ns >= l->probe_ns / 4;
}

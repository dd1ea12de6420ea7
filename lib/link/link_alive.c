/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_alive.c - silent peers: they are asked, and finally declared dead
 *
 * Design notes
 * - The device may retransmit for ever, so the driver decides when a peer is dead. A sign of life
 *   is any message from it and the completion of any request. A peer without one for probe_ms
 *   gets an empty write, which its device acknowledges whatever its owner does; from then on a
 *   completion is due, and dead_ms later the peer is dead.
 * - Completions come in time under load: the driver bounds the length of a request, and at least
 *   one of a few has a completion. If even that takes longer than dead_ms (a shared slow link,
 *   lost packets) datagrams help, which overtake the queued messages: the peer's owner answers
 *   them in its turns. While the own port was down nothing could arrive, so its return counts
 *   like such an answer. But neither proves that the connection works: after PLX_LINK_PATIENCE
 *   times dead_ms without a completion the peer is dead anyway.
 * - An owner may not poll for long, and then finds all arrivals of that time. So a peer that is
 *   overdue at one look is declared dead only at a later one, after all earlier completions were
 *   processed. The turn processes them: callbacks are not called from here.
 * - Unreliable messages need no connection, and without one no device reports whether they
 *   arrived. So a peer that gets such messages and is not heard for probe_ms is asked by
 *   datagrams, and dead if its owner answers none for connect_ms: the time of a request for a
 *   connection.
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

/* A peer without a sign of life for a while. */
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

/* Whether nothing else detects its death: it has no connection, and is not asked for one. */
static bool
is_untold(const struct plx_link_peer *p)
{
	return p->state < PLX_LINK_OPEN && !(p->wanted && p->made);
}

static void
alive_tell(struct plx_link_peer *p, enum plx_link_kind kind)
{
	/* Without a route it is not answered either. */
	(void)p->link->ops->say(p, &(struct plx_link_hello){.kind = kind});
}

static void
unheard_look(struct plx_link *l, struct plx_link_peer *p, bool can_say)
{
	if (l->now_ns - RTE_MIN(p->heard_ns, l->now_ns) < l->probe_ns || !can_say)
		return;
	if (p->n_calls == 0)
		p->silent_ns = l->now_ns;
	/* CALLS_MIN calls, as this side may not have polled for long. */
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
		return; /* a sender that has given the peer up does not answer it */
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

/* Now and then; soon, if a peer is to be declared dead. */
bool
plx_link_is_time(const struct plx_link *l, bool is_due)
{
	if (l->overdue && is_due)
		return l->caught_up;
	return l->now_ns - l->peers_ns >= l->probe_ns / 4;
}

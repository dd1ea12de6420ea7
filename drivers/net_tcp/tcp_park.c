/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_park.c - connections that are idle are closed while there are more than net_tcp.connected
 *
 * Design notes
 * - The side that closes says BYE when it has nothing to send and waits for no answer. After that it sends nothing
 *   but answers to what was under way to it. The other side reads the BYE, begins nothing new, waits for the answers to
 *   all that it has asked, and says BYE. So the second BYE is the last message of both directions: both sides close,
 *   and nothing is lost. If both begin at once both are idle, and each takes the other's BYE for the answer.
 * - Both sides know each other as before. The one that has something to send connects again.
 * - On a further connection only the side that made it sends. That side closes it, and before the first one. The
 *   other waits a little longer before it says BYE.
 */
#include <errno.h>
#include <string.h>

#include "tcp_int.h"

#define IDLE_MS	  20u /* without anything, before a connection counts as idle */
#define AT_ONCE	  4u  /* connections that are begun to be closed in one control */

static bool
is_quiet(const struct tcp_peer *p)
{
	return STAILQ_EMPTY(&p->flow.out) && p->n_acks == 0 && p->due == NULL && tcp_more_is_quiet(p);
}

static uint32_t
idle_ms(const struct tcp_peer *p)
{
	return p->more != NULL && p->more->n_came != 0 ? 5 * IDLE_MS : IDLE_MS;
}

static bool
is_idle(const struct tcp_peer *p, const struct tcp_queue *tq)
{
	return p->state == TCP_OPEN && !p->flow.self && !p->dirty && is_quiet(p) && p->n_puts + p->n_gets == 0 &&
		p->flow.odd == TCP_PLAIN && p->part == NULL && !tcp_is_bulk(&p->flow) && (tq->rx.of != p || tq->rx.at == tq->rx.end) &&
		tq->now_ms - p->used_ms >= idle_ms(p) && p->peer.state != PLX_PEER_DEAD;
}

static void
leave(struct tcp_peer *p)
{
	if (p->state == TCP_OPEN)
		tcp_queue(p->peer.q)->n_leaving++;
	p->state = TCP_LEAVING;
}

static void
say_bye(struct tcp_peer *p)
{
	const struct tcp_frame f = {.kind = TCP_BYE};
	uint8_t *at = tcp_out_room(p, sizeof(f));

	if (at == NULL)
		return; /* later */
	memcpy(at, &f, sizeof(f));
	p->flow.tail->end += (uint32_t)sizeof(f);
	p->bye_said = true;
	leave(p);
	tcp_push(p);
}

bool
tcp_bye_came(struct tcp_peer *p)
{
	if (p->bye_came || p->flow.self)
		return false;
	p->bye_came = true;
	tcp_queue(p->peer.q)->n_byes++;
	leave(p);
	return true;
}

bool
tcp_park_end(struct tcp_peer *p)
{
	if (!p->bye_said || !p->bye_came || !is_quiet(p) || p->peer.state == PLX_PEER_DEAD)
		return false;
	tcp_peer_disconnect(p);
	p->state = TCP_NONE;
	PLX_STAT_INC(tcp_queue(p->peer.q)->stat.parked);
	return true;
}

/* -- now and then -- */

static void
leaving_step(struct tcp_peer *p)
{
	if (!p->bye_said && is_quiet(p) && p->n_puts + p->n_gets == 0)
		say_bye(p);
	if (p->state == TCP_LEAVING)
		(void)tcp_park_end(p);
}

static void
wants_step(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	int rc = 0;

	if (p->state == TCP_LEAVING)
		return;
	if (p->state == TCP_NONE) {
		rc = tcp_join(p);
		PLX_STAT_ADD(tq->stat.reopened, rc == 0);
	}
	if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		return;
	p->wants = false;
	tq->n_wants--;
	if (rc != 0)
		tcp_peer_end(p, rc);
}

static void
peer_step(struct plx_peer *peer, void *arg)
{
	struct tcp_peer *p = tcp_peer(peer);

	(void)arg;
	if (p->state == TCP_LEAVING)
		leaving_step(p);
	if (p->wants)
		wants_step(p);
}

static void
oldest_step(struct plx_peer *peer, void *arg)
{
	struct tcp_queue *tq = tcp_queue(peer->q);
	struct tcp_peer *p = tcp_peer(peer), **oldest = arg;

	if (is_idle(p, tq) && (*oldest == NULL || tq->now_ms - p->used_ms > tq->now_ms - (*oldest)->used_ms))
		*oldest = p;
}

void
tcp_park_control(struct tcp_queue *tq)
{
	if (tq->n_leaving + tq->n_wants != 0)
		plx_peer_each(tq->q, peer_step, NULL);
	for (unsigned i = 0; i < AT_ONCE && tq->n_conns + tq->n_further > tq->connected + tq->n_leaving; i++) {
		struct tcp_peer *oldest = NULL;

		plx_peer_each(tq->q, oldest_step, &oldest);
		if (oldest == NULL)
			return;
		if (!tcp_more_park(oldest))
			say_bye(oldest);
	}
}

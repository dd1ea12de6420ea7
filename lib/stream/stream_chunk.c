/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_chunk.c - unread bytes: their bound, and the credit of their sender
 */
#include <rte_common.h>

#include "stream_int.h"

void
stream_grant(struct plx_stream *s)
{
	struct plx_wire_grant h = {.conn_id = plx_stream_wire_id(s->conn_id), .cost = s->owed};

	if (plx_ep_tx_ctl(s->ep, PLX_WIRE_GRANT, &h, sizeof(h)) != 0)
		return; /* without memory, later; without a peer, not needed */
	PLX_STAT_INC(s->all->stat.grants);
	s->owed = 0;
}

void
stream_rts_set(struct plx_stream *s, struct plx_msg *m)
{
	if (s->rts == NULL && m != NULL)
		TAILQ_INSERT_TAIL(&s->all->late, s, late_link);
	else if (s->rts != NULL && m == NULL)
		TAILQ_REMOVE(&s->all->late, s, late_link);
	s->rts = m;
}

void
stream_unkeep(struct plx_streams *all, uint64_t len)
{
	all->kept -= len + PLX_STREAM_COST;
	if (unlikely(all->full && all->kept <= all->unread_max / 2))
		plx_timer_arm(all->timers, &all->ahead, 0);
}

void
stream_chunk_end(struct plx_stream *s, struct plx_msg *m)
{
	if (m->ack == 0) {
		s->held -= stream_chunk_cost(m);
		s->owed += stream_chunk_cost(m);
	}
	if (m->kind == PLX_MSG_STREAM)
		stream_unkeep(s->all, m->len);
	plx_msg_put(s->all->msgs, m);
}

/* The next announced send of this stream becomes the first. */
static void
rts_next(struct plx_stream *s)
{
	struct plx_msg *m = TAILQ_NEXT(s->rts, chunk);

	while (m != NULL && m->kind != PLX_MSG_STREAM_RTS)
		m = TAILQ_NEXT(m, chunk);
	stream_rts_set(s, m);
}

static void
chunk_take(struct plx_stream *s, struct plx_stream_chunks *list, struct plx_msg *m)
{
	if (m == s->rts)
		rts_next(s);
	TAILQ_REMOVE(list, m, chunk);
}

void
stream_chunk_remove(struct plx_stream *s, struct plx_msg *m)
{
	chunk_take(s, &s->chunks, m);
	stream_chunk_end(s, m);
	if (TAILQ_EMPTY(&s->chunks))
		stream_set_ready(s, false);
}

void
stream_chunks_drop(struct plx_stream *s, struct plx_stream_chunks *list)
{
	struct plx_msg *m;

	while ((m = TAILQ_FIRST(list)) != NULL) {
		chunk_take(s, list, m);
		if (m->kind == PLX_MSG_STREAM_RTS)
			plx_rndv_ack(s->ep, m->rts.sreq, 0);
		stream_chunk_end(s, m);
	}
}

void
stream_drop_unread(struct plx_stream *s)
{
	stream_chunks_drop(s, &s->chunks);
	stream_chunks_drop(s, &s->lent);
	if (s->ep->err == 0 && s->owed != 0)
		stream_grant(s);
}

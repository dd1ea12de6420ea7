/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_answer.c - what peers have asked of our memory is sent to them
 *
 * Design notes
 * Writes are counted, and one frame at the end of the turn acknowledges all. What is read is sent from where it
 * lies, and looked up again by its key whenever more of it is sent: until then it may be taken back. While there is
 * no room for an answer those behind it wait with it, in a chunk.
 */
#include <errno.h>
#include <string.h>

#include "tcp_int.h"

#define COPY_MAX 512u /* bytes of an answer that are copied */

_Static_assert(TCP_PEER_GETS * sizeof(struct tcp_due) <= TCP_CHUNK_DATA, "all that is due has room in a chunk");

enum tcp_frame_is
tcp_due_add(struct tcp_peer *p, const struct tcp_due *d)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_chunk *c = p->due;

	if (c == NULL)
		c = p->due = tcp_chunk_get(tq, true);
	if (c == NULL) {
		PLX_STAT_INC(tq->stat.rx_no_chunk);
		return TCP_FRAME_PART;
	}
	if (c->at != 0 && c->end == TCP_PEER_GETS * sizeof(*d)) {
		memmove(tcp_chunk_data(c), tcp_chunk_data(c) + c->at, c->end - c->at);
		c->end -= c->at;
		c->at = 0;
	}
	if (c->end == TCP_PEER_GETS * sizeof(*d))
		return TCP_FRAME_BAD;
	memcpy(tcp_chunk_data(c) + c->end, d, sizeof(*d));
	c->end += (uint32_t)sizeof(*d);
	tcp_tx_later(p);
	return TCP_FRAME_GOOD;
}

/* @return whether there was room */
static bool
answer_copy(struct tcp_peer *p, const void *data, uint32_t len)
{
	const struct tcp_frame f = {.len = len, .kind = TCP_GOT};
	uint8_t *at = tcp_out_room(p, tcp_frame_len(len));

	if (at == NULL)
		return false;
	memcpy(at, &f, sizeof(f));
	memcpy(at + sizeof(f), data, len);
	p->flow.tail->end += tcp_frame_len(len);
	return true;
}

static bool
answer_lent(struct tcp_peer *p, const struct tcp_due *d)
{
	const struct tcp_frame f = {.len = (uint32_t)d->len, .kind = TCP_GOT};
	struct tcp_flow *away = p->more != NULL && d->len > p->peer.mtu ? tcp_flow_for(p) : NULL;
	struct tcp_lent *l;

	if (away != NULL)
		return tcp_away_answer(p, away, d);
	if (!tcp_lent_has(&p->flow, 3))
		return false;
	memcpy(tcp_lent_head(&p->flow, sizeof(f)), &f, sizeof(f));
	l = tcp_lent_part(&p->flow, (const void *)(uintptr_t)d->addr, f.len);
	l->key = d->key;
	l->part.keyed = true;
	tcp_lent_pad(&p->flow, f.len);
	return true;
}

/* @return 0; -EAGAIN there is no room; or the key is good no more */
static int
answer_one(struct tcp_peer *p, const struct tcp_due *d)
{
	bool room;

	if (d->key == 0)
		return answer_copy(p, &d->addr, sizeof(d->addr)) ? 0 : -EAGAIN;
	if (d->len > COPY_MAX)
		return answer_lent(p, d) ? 0 : -EAGAIN;
	if (tcp_key_hold(tcp_queue(p->peer.q)->keys, d->key, d->addr, d->len, PLX_DEV_MEM_READ) != 0)
		return -EFAULT;
	room = answer_copy(p, (const void *)(uintptr_t)d->addr, (uint32_t)d->len);
	tcp_key_drop(d->key);
	return room ? 0 : -EAGAIN;
}

static bool
answer_due(struct tcp_peer *p)
{
	struct tcp_chunk *c = p->due;
	struct tcp_due d;
	int rc = 0;

	while (c->at < c->end && rc == 0) {
		memcpy(&d, tcp_chunk_data(c) + c->at, sizeof(d));
		rc = answer_one(p, &d);
		c->at += rc == 0 ? (uint32_t)sizeof(d) : 0;
	}
	if (rc == -EAGAIN)
		return false;
	tcp_chunk_put(tcp_queue(p->peer.q), c);
	p->due = NULL;
	if (rc != 0)
		tcp_peer_reject(p, rc);
	return true;
}

static bool
answer_acks(struct tcp_peer *p)
{
	const struct tcp_frame f = {.len = sizeof(struct tcp_ack), .kind = TCP_ACK};
	const struct tcp_ack ack = {p->n_acks};
	uint8_t *at = tcp_out_room(p, tcp_frame_len(f.len));

	if (at == NULL)
		return false;
	memcpy(at, &f, sizeof(f));
	memcpy(at + sizeof(f), &ack, sizeof(ack));
	p->flow.tail->end += tcp_frame_len(f.len);
	p->n_acks = 0;
	return true;
}

bool
tcp_answer(struct tcp_peer *p)
{
	if (p->n_acks != 0 && !answer_acks(p))
		return false;
	return p->due == NULL || answer_due(p);
}

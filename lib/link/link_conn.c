/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_conn.c - from a peer's address to an open connection, and its end
 *
 * Design notes
 * - A peer costs an address until a message is sent to it or comes from it. Then each side makes
 *   one end for the other. By datagrams it sends ASK with its own end and receives ANSWER with
 *   the other's; both may ask at the same time, since an ASK contains all that the other needs to
 *   make its end ready, and every ASK is answered, however often it comes. Datagrams get lost: a
 *   side that wants to send asks again, with growing pauses, until it may or gives up. While the
 *   own port is down nothing is sent. A missing route is an error at the third attempt, as the
 *   other side's port may come up after ours; an attempt may take the kernel a second.
 * - A side may send when it knows that the other's end is ready to receive: after an ANSWER to
 *   its own ASK, or any message by the connection. A side that is answered sends at once, if only
 *   an empty message, so the other side needs no third datagram.
 * - A queue numbers its ends (attempt). An ASK with a higher number than before comes from a peer
 *   that has made a new end, so the present one is unusable: it is dead, unless both had agreed
 *   to close it (link_park.c), or it was never used. Lower numbers belong to late datagrams.
 */
#include <errno.h>

#include <rte_common.h>

#include "link_int.h"
#include "plx_log.h"

#define BACKOFF_MAX 6 /* doublings of the pause between two ASKs */
#define WAY_TRIES   3

PLX_LOG_DEFINE(link, "plx.link");

static void
conn_say(struct plx_link_peer *p, enum plx_link_kind kind)
{
	const struct plx_link_hello hello = {.kind = kind, .id = p->id, .your_id = p->their_id,
		.attempt = p->attempt, .credits = p->credit.granted};
	int rc = p->link->ops->say(p, &hello);

	if (rc == 0)
		p->n_no_way = 0;
	else if (rc != -EAGAIN && p->state != PLX_LINK_OPEN && ++p->n_no_way == WAY_TRIES)
		plx_link_lose(p, -EHOSTUNREACH);
}

static void
conn_ask(struct plx_link_peer *p, uint64_t now_ns)
{
	struct plx_link *l = p->link;

	if (p->n_asked++ == 0) {
		PLX_STAT_INC(l->stat->asked);
		p->give_up_ns = now_ns + l->connect_ns;
	} else {
		PLX_STAT_INC(l->stat->asked_again);
	}
	p->asked_ns = now_ns;
	conn_say(p, PLX_LINK_ASK);
}

void
link_call(struct plx_link_peer *p)
{
	PLX_STAT_INC(p->link->stat->silent_asked);
	conn_say(p, PLX_LINK_ASK);
}

static int
end_make(struct plx_link_peer *p)
{
	struct plx_link *l = p->link;
	int rc = l->ops->make(p);

	if (rc != 0)
		return rc;
	p->silent_ns = p->heard_ns = 0;
	p->n_calls = p->n_no_way = 0;
	p->rx_held = 0;
	p->cut = false;
	p->attempt = ++l->attempts;
	p->state = PLX_LINK_ASKED;
	p->made = true;
	l->n_made++;
	TAILQ_INSERT_TAIL(&l->conns, p, conns);
	return 0;
}

static int
end_ready(struct plx_link_peer *p, const struct plx_link_hello *hello)
{
	int rc = p->link->ops->ready(p, hello);

	if (rc != 0)
		return rc;
	p->their_id = hello->id;
	p->their_attempt = hello->attempt;
	p->credit.left = p->credit.most = hello->credits;
	p->state = PLX_LINK_READY;
	p->made_ns = p->link->now_ns;
	return 0;
}

static void
end_close(struct plx_link_peer *p, int err)
{
	if (p->made) {
		p->link->n_made--;
		TAILQ_REMOVE(&p->link->conns, p, conns);
	}
	p->made = false;
	p->link->ops->end(p, err);
}

void
link_start(struct plx_link_peer *p, uint64_t now_ns)
{
	struct plx_link *l = p->link;
	int rc = end_make(p);

	if (rc == 0) {
		TAILQ_REMOVE(&l->waiting, p, asking);
		TAILQ_INSERT_TAIL(&l->asking, p, asking);
		l->n_own += !p->called;
		conn_ask(p, now_ns);
	} else if (rc != -ENOMEM) {
		plx_link_lose(p, rc);
	}
}

int
plx_link_connect(struct plx_link_peer *p, uint64_t now_ns)
{
	struct plx_link *l = p->link;
	int rc = 0;

	if (p->wanted || p->state >= PLX_LINK_OPEN)
		return 0;
	if (p->state == PLX_LINK_NONE && link_has_room(l) && l->n_own < l->n_max / 2)
		rc = end_make(p);
	if (rc != 0)
		return rc;
	plx_link_want(p, false);
	if (p->made)
		conn_ask(p, now_ns);
	return p->state >= PLX_LINK_LOST ? p->err : 0;
}

/* Whether it belongs to an end that the peer has made after all that we know. */
static bool
is_newer(const struct plx_link_peer *p, const struct plx_link_hello *hello)
{
	return p->their_attempt == 0 || (int32_t)(hello->attempt - p->their_attempt) > 0;
}

/* The peer has made a new end after the one that ours is connected to. @return whether to answer */
static bool
on_newer(struct plx_link_peer *p)
{
	switch (p->state) {
	case PLX_LINK_PARKING:
		if (!plx_link_is_parked(p) || p->rx_held != 0)
			return false; /* its last messages are still to be read; it asks again */
		/* fallthrough */
	case PLX_LINK_READY:
		plx_link_reset(p); /* nothing was sent by it, or everything has arrived */
		return true;
	default:
		plx_link_lose(p, -ECONNRESET);
		return false;
	}
}

/* In any state, its sender needs to know our end. */
static void
on_ask(struct plx_link_peer *p, const struct plx_link_hello *hello)
{
	struct plx_link *l = p->link;
	bool newer = is_newer(p, hello);
	int rc = 0;

	if (p->state >= PLX_LINK_LOST)
		return; /* until nobody uses it any more */
	if (!newer && (p->state < PLX_LINK_READY || hello->attempt != p->their_attempt)) {
		PLX_STAT_INC(l->stat->drop_old);
		return;
	}
	if (newer && p->state >= PLX_LINK_READY && !on_newer(p))
		return;
	if (p->state == PLX_LINK_NONE) {
		if (!link_has_room(l)) {
			plx_link_want(p, true);
			return;
		}
		link_want_end(p);
		rc = end_make(p);
	}
	if (rc == 0 && p->state == PLX_LINK_ASKED)
		rc = end_ready(p, hello);
	if (rc != 0) {
		PLX_STAT_INC(l->stat->refused); /* it asks again, perhaps with more success */
		PLX_LOG_RATELIMIT(WARNING, link, "a peer can't be connected: error %d", -rc);
		return;
	}
	PLX_STAT_INC(l->stat->answered);
	conn_say(p, PLX_LINK_ANSWER);
}

static void
on_answer(struct plx_link_peer *p, const struct plx_link_hello *hello, uint64_t now_ns)
{
	struct plx_link *l = p->link;
	int rc = 0;

	if (!p->made || p->state >= PLX_LINK_LOST || hello->your_id != p->id)
		return; /* late, or for an end that we no longer have */
	if (p->state >= PLX_LINK_READY ? hello->attempt != p->their_attempt : !is_newer(p, hello)) {
		PLX_STAT_INC(l->stat->drop_old);
		return;
	}
	if (p->state >= PLX_LINK_OPEN) {
		p->heard_ns = now_ns;
		PLX_STAT_ADD(l->stat->silent_answered, p->silent_ns > p->rx_ns);
		return;
	}
	if (p->state == PLX_LINK_ASKED)
		rc = end_ready(p, hello);
	if (rc != 0) {
		plx_link_lose(p, rc);
		return;
	}
	plx_link_works(p);
	l->ops->tell(p, false);
}

void
plx_link_on_hello(struct plx_link_peer *p, const struct plx_link_hello *hello, uint64_t now_ns)
{
	if (hello->kind == PLX_LINK_ASK)
		on_ask(p, hello);
	else
		on_answer(p, hello, now_ns);
}

/* When it asks again. */
static uint64_t
again_ns(const struct plx_link_peer *p)
{
	uint32_t n = p->n_asked < BACKOFF_MAX ? p->n_asked : BACKOFF_MAX;

	return p->asked_ns + (p->link->again_ns << n);
}

static uint64_t
give_up_ns(const struct plx_link_peer *p)
{
	return p->n_asked != 0 ? p->give_up_ns : UINT64_MAX;
}

void
plx_link_control(struct plx_link *l, uint64_t now_ns)
{
	struct plx_link_peer *p, *next;

	l->now_ns = now_ns;
	for (p = TAILQ_FIRST(&l->asking); p != NULL; p = next) {
		next = TAILQ_NEXT(p, asking);
		if (now_ns >= give_up_ns(p))
			plx_link_lose(p, -ETIMEDOUT);
		else if (now_ns >= again_ns(p))
			conn_ask(p, now_ns);
	}
}

uint64_t
plx_link_deadline(const struct plx_link *l)
{
	const struct plx_link_peer *p;
	uint64_t due = UINT64_MAX;

	TAILQ_FOREACH(p, &l->asking, asking) {
		due = RTE_MIN(due, again_ns(p));
		due = RTE_MIN(due, give_up_ns(p));
	}
	return due;
}

void
plx_link_reset(struct plx_link_peer *p)
{
	link_want_end(p);
	link_park_end(p);
	end_close(p, -ECANCELED); /* no operation of the application */
	p->state = PLX_LINK_NONE;
}

void
plx_link_settle(struct plx_link *l)
{
	struct plx_link_peer *p;

	while ((p = SLIST_FIRST(&l->lost)) != NULL) {
		SLIST_REMOVE_HEAD(&l->lost, lost_link);
		p->state = PLX_LINK_DEAD;
		end_close(p, p->err);
		l->ops->dead(p, p->err);
	}
}

void
plx_link_close(struct plx_link_peer *p)
{
	link_want_end(p);
	if (p->state == PLX_LINK_LOST)
		SLIST_REMOVE(&p->link->lost, p, plx_link_peer, lost_link);
	link_park_end(p);
	end_close(p, -ECANCELED);
}

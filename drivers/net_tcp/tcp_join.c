/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_join.c - connecting: the best places of a peer are tried at once, the first that proves to be it counts
 *
 * Design notes
 * A place is given up when nobody listens there, when somebody else does, or when the peer itself refuses. All
 * else may pass (a cable, a full backlog, no descriptor), and is tried again, later each time, until
 * connect_ms is over. When no place is left the peer is dead, and the log says what each place answered.
 *
 * A place where somebody listens and says nothing is no failure: its kernel has taken our HELLO, and the peer
 * computes, or has not come so far. It is waited for up to answer_ms, by a try that goes on as long as no place waits
 * for its first one. The time that we ourselves compute does not count.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_int.h"

#define AGAIN_MS     20u   /* before the second try of a place; twice as long each time, */
#define AGAIN_MAX_MS 1000u /* up to this */
#define TRY_MS	     3000u /* that a place has to answer, while others wait for their try */
#define SHUT_MAX     6u	   /* times that somebody closes without a word before it is somebody else */

struct tcp_try {
	int fd; /* -1: none */
	uint8_t place;
	bool said; /* HELLO is out */
	uint16_t n; /* bytes of the answer */
	uint64_t since_ms;
	struct tcp_hello hello;
	struct tcp_answer answer;
};

struct tcp_join {
	struct tcp_try tries[TCP_TRIES];
	struct tcp_place places[TCP_ENDS_MAX];
	struct {
		int err; /* of the last try */
		uint8_t n; /* tries */
		bool tried_now, over;
		uint64_t again_ms;
	} at[TCP_ENDS_MAX];
	unsigned n_places, n_good;
	bool told; /* that it takes long */
	uint64_t seen_ms, until_ms, answer_until_ms;
};

static bool
is_final(int err, unsigned n_tries)
{
	return err == -ECONNREFUSED || err == -EBADMSG || (err == -ECONNABORTED && n_tries >= SHUT_MAX);
}

static void
try_close(struct tcp_queue *tq, struct tcp_join *j, struct tcp_try *t)
{
	if (t->fd < 0)
		return;
	tcp_sock_close(tq, &t->fd);
	j->at[t->place].tried_now = false;
}

static void
place_failed(struct tcp_join *j, unsigned i, int err)
{
	uint64_t wait_ms = j->at[i].n < 6 ? (uint64_t)AGAIN_MS << j->at[i].n : AGAIN_MAX_MS;

	j->at[i].err = err;
	j->at[i].n += j->at[i].n != UINT8_MAX;
	j->at[i].over = is_final(err, j->at[i].n);
	/* Many who were refused at once are not to come again at once. */
	j->at[i].again_ms = plx_clock_ms() + wait_ms / 2 + tcp_random((uint32_t)wait_ms);
}

static void
try_failed(struct tcp_queue *tq, struct tcp_join *j, struct tcp_try *t, int err)
{
	place_failed(j, t->place, err);
	try_close(tq, j, t);
}

static int
try_begin(struct tcp_peer *p, struct tcp_try *t, unsigned i)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_join *j = p->join;
	int fd = tcp_sock_connect(tq, &j->places[i].ip, p->addr->port), rc;

	PLX_STAT_ADD(tq->stat.no_fd, fd == -EMFILE || fd == -ENFILE);
	if (fd < 0)
		return fd;
	rc = tcp_sock_watch(tq, fd, EPOLLOUT, p, TCP_WATCH_TRY);
	if (rc != 0) {
		close(fd);
		return rc;
	}
	PLX_STAT_INC(tq->stat.joins);
	*t = (struct tcp_try){.fd = fd, .place = (uint8_t)i, .since_ms = plx_clock_ms()};
	j->at[i].tried_now = true;
	return 0;
}

/* It is connected to somebody. */
static int
try_greet(struct tcp_peer *p, struct tcp_try *t)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	int err = 0, rc;
	socklen_t len = sizeof(err);

	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0)
		return err != 0 ? -err : -EIO;
	rc = tcp_hello_make(&t->hello, &tq->addr, p->addr, 0);
	if (rc == 0)
		rc = tcp_sock_write(t->fd, &t->hello, sizeof(t->hello));
	if (rc != 0)
		return rc == -EAGAIN || rc == -ENOTCONN ? -EAGAIN : rc;
	t->said = true;
	tcp_sock_settle(tq, t->fd); /* should its host go */
	rc = tcp_sock_rewatch(tq, t->fd, EPOLLIN, p, TCP_WATCH_TRY);
	return rc == 0 ? -EAGAIN : rc;
}

/* @return 0: it is the peer, and says yes; -EAGAIN; or why not */
static int
try_read(struct tcp_peer *p, struct tcp_try *t)
{
	int rc = tcp_sock_read(t->fd, &t->answer, sizeof(t->answer), &t->n);
	uint16_t none = 0;
	uint8_t more;

	if (rc == 0)
		rc = tcp_answer_open(&t->answer, &t->hello, p->addr);
	if (rc != 0)
		return rc;
	/* We may have computed so long that it has closed again. */
	rc = tcp_sock_read(t->fd, &more, sizeof(more), &none);
	return rc == -EAGAIN ? 0 : rc == 0 ? -EBADMSG : rc;
}

/* The join and its tries are no more behind this. */
static int
try_won(struct tcp_peer *p, struct tcp_try *t)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_confirm c;
	int rc, fd = t->fd;

	tcp_confirm_make(&c, &t->answer, p->addr, NULL);
	rc = tcp_sock_write(fd, &c, sizeof(c));
	if (rc != 0)
		return rc;
	t->fd = -1; /* else it would be closed with the rest */
	tcp_join_end(p);
	rc = tcp_peer_adopt(p, fd, &c);
	PLX_STAT_ADD(tq->stat.joined, rc == 0);
	if (rc != 0) {
		tcp_sock_close(tq, &fd);
		tcp_peer_end(p, rc);
	}
	return 0;
}

static void
try_step(struct tcp_peer *p, struct tcp_try *t)
{
	int rc = t->said ? try_read(p, t) : try_greet(p, t);

	if (rc == 0)
		rc = try_won(p, t);
	if (rc != 0 && rc != -EAGAIN)
		try_failed(tcp_queue(p->peer.q), p->join, t, rc);
}

/* -- all of them -- */

/* @return a place whose time has come, or the number of places */
static unsigned
next_place(const struct tcp_join *j, uint64_t now_ms)
{
	for (unsigned i = 0; i < j->n_good; i++)
		if (!j->at[i].over && !j->at[i].tried_now && now_ms >= j->at[i].again_ms)
			return i;
	return j->n_good;
}

static void
begin_tries(struct tcp_peer *p, uint64_t now_ms)
{
	struct tcp_join *j = p->join;

	for (unsigned k = 0; k < TCP_TRIES; k++) {
		unsigned i = next_place(j, now_ms);
		int rc;

		if (i == j->n_good)
			return;
		if (j->tries[k].fd >= 0)
			continue;
		rc = try_begin(p, &j->tries[k], i);
		if (rc != 0)
			place_failed(j, i, rc);
	}
}

/* @return whether a place has yet to have its first try */
static bool
is_place_new(const struct tcp_join *j)
{
	for (unsigned i = 0; i < j->n_good; i++)
		if (j->at[i].n == 0 && !j->at[i].tried_now)
			return true;
	return false;
}

static void
end_long_tries(struct tcp_queue *tq, struct tcp_join *j, uint64_t now_ms)
{
	bool new = is_place_new(j);

	for (unsigned k = 0; k < TCP_TRIES; k++) {
		struct tcp_try *t = &j->tries[k];

		if (t->fd >= 0 && now_ms - t->since_ms >= TRY_MS && (!t->said || new))
			try_failed(tq, j, t, -ETIMEDOUT);
	}
}

/* Somebody has our HELLO. */
static bool
is_heard(const struct tcp_join *j)
{
	for (unsigned k = 0; k < TCP_TRIES; k++)
		if (j->tries[k].fd >= 0 && j->tries[k].said)
			return true;
	return false;
}

static bool
is_hopeless(const struct tcp_join *j, uint64_t now_ms)
{
	if (now_ms >= (is_heard(j) ? j->answer_until_ms : j->until_ms))
		return true;
	for (unsigned i = 0; i < j->n_good; i++)
		if (!j->at[i].over)
			return false;
	return true;
}

static const char *
answer_text(const struct tcp_queue *tq, int err)
{
	switch (err) {
	case 0:
		return "no answer";
	case -EBADMSG:
	case -ECONNABORTED:
		return "somebody else listens there";
	case -EADDRINUSE:
		return "this host has the address itself";
	case -EADDRNOTAVAIL:
		return tcp_no_port(tq);
	default:
		return strerror(-err);
	}
}

static void
log_hopeless(const struct tcp_peer *p)
{
	const struct tcp_join *j = p->join;
	char text[512] = "it has no addresses", at[TCP_TEXT_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < j->n_places && n < sizeof(text); i++) {
		tcp_ip_text(&j->places[i].ip, p->addr->port, at);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s: %s", i != 0 ? "; " : "", at,
			answer_text(tcp_queue(p->peer.q), i < j->n_good ? j->at[i].err : j->places[i].score));
	}
	PLX_LOG_RATELIMIT(WARNING, tcp, "a peer can't be reached: %s", text);
}

static void
log_slow(struct tcp_peer *p)
{
	struct tcp_join *j = p->join;
	char at[TCP_TEXT_MAX];

	for (unsigned k = 0; k < TCP_TRIES; k++) {
		if (j->tries[k].fd < 0 || !j->tries[k].said)
			continue;
		j->told = true;
		tcp_ip_text(&j->places[j->tries[k].place].ip, p->addr->port, at);
		PLX_LOG_RATELIMIT(WARNING, tcp, "a peer does not answer: %s has been connected for long; it computes, or "
			"somebody else listens there", at);
		return;
	}
}

/* @return why no place is left: what the best one answered */
static int
join_err(const struct tcp_join *j)
{
	if (j->n_good == 0)
		return -EHOSTUNREACH;
	return j->at[0].over ? -ECONNREFUSED : -ETIMEDOUT;
}

static void
join_fail(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	int err = join_err(p->join);
	bool came = p->n_waiting + p->n_answered != 0;

	if (!came)
		log_hopeless(p);
	tcp_join_end(p);
	if (!came) {
		tcp_peer_end(p, err);
		return;
	}
	p->state = TCP_JOINING; /* by what has come to us: tcp_guests_control() answers */
	tq->n_joins++;
}

uint64_t
tcp_join_deadline_ms(const struct tcp_peer *p)
{
	const struct tcp_join *j = p->join;
	uint64_t due_ms = UINT64_MAX;
	bool may_try = false;

	if (j == NULL) /* it came to us: who came is looked after by then */
		return p->state == TCP_JOINING && p->n_answered + p->n_waiting == 0 ? 0 : UINT64_MAX;
	for (unsigned k = 0; k < TCP_TRIES; k++) {
		may_try |= j->tries[k].fd < 0;
		if (j->tries[k].fd >= 0)
			due_ms = RTE_MIN(due_ms, j->tries[k].since_ms + TRY_MS);
	}
	for (unsigned i = 0; may_try && i < j->n_good; i++)
		if (!j->at[i].over && !j->at[i].tried_now)
			due_ms = RTE_MIN(due_ms, j->at[i].again_ms);
	return RTE_MIN(due_ms, j->told ? j->answer_until_ms : j->until_ms);
}

/* The program took no turn for long, though one was due: nobody had the time that passed. */
static void
leave_out_absence(struct tcp_peer *p, uint64_t now_ms)
{
	struct tcp_join *j = p->join;
	uint64_t from_ms = RTE_MAX(j->seen_ms, tcp_join_deadline_ms(p));
	uint64_t away_ms = now_ms > from_ms ? now_ms - from_ms : 0;

	j->seen_ms = now_ms;
	if (away_ms < TCP_AWAY_MS)
		return;
	j->until_ms += away_ms;
	j->answer_until_ms += away_ms;
	for (unsigned k = 0; k < TCP_TRIES; k++)
		j->tries[k].since_ms = RTE_MIN(now_ms, j->tries[k].since_ms + away_ms);
}

/* It came to us, and has gone again. */
static void
join_after_guest(struct tcp_peer *p)
{
	int rc;

	tcp_join_end(p);
	rc = tcp_join(p);
	if (rc != 0)
		tcp_peer_end(p, rc);
}

void
tcp_join_control(struct tcp_peer *p, uint64_t now_ms)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_join *j = p->join;

	if (j == NULL) {
		if (p->state == TCP_JOINING && p->n_answered + p->n_waiting == 0)
			join_after_guest(p);
		return;
	}
	leave_out_absence(p, now_ms);
	end_long_tries(tq, j, now_ms);
	if (now_ms >= j->until_ms && !j->told)
		log_slow(p);
	if (is_hopeless(j, now_ms))
		join_fail(p);
	else
		begin_tries(p, now_ms);
}

void
tcp_try_event(struct tcp_peer *p)
{
	for (unsigned k = 0; k < TCP_TRIES && p->join != NULL; k++)
		if (p->join->tries[k].fd >= 0)
			try_step(p, &p->join->tries[k]);
	if (p->join != NULL)
		tcp_join_control(p, plx_clock_ms());
}

int
tcp_join(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	uint64_t now_ms = plx_clock_ms();
	struct tcp_join *j = NULL;
	int rc;

	rc = tcp_sock_epoll(tq);
	if (rc < 0)
		return rc;
	if (p->n_answered == 0) { /* else it is about to connect to us */
		j = calloc(1, sizeof(*j));
		if (j == NULL)
			return -ENOMEM;
		for (unsigned k = 0; k < TCP_TRIES; k++)
			j->tries[k].fd = -1;
		j->seen_ms = now_ms;
		j->until_ms = now_ms + tq->connect_ms;
		j->answer_until_ms = now_ms + tq->answer_ms;
		j->n_places = tcp_if_places(&tq->ifs, &tq->addr, p->addr, j->places, &j->n_good);
	}
	plx_queue_rouse(tq->q);
	p->join = j;
	p->state = TCP_JOINING;
	tq->n_joins++;
	if (j != NULL)
		begin_tries(p, now_ms);
	return 0;
}

void
tcp_join_lose(struct tcp_peer *p)
{
	for (unsigned k = 0; p->join != NULL && k < TCP_TRIES; k++)
		tcp_sock_lose(&p->join->tries[k].fd);
}

void
tcp_join_end(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (p->state == TCP_JOINING) {
		tq->n_joins--;
		p->state = TCP_NONE;
	}
	if (p->join == NULL)
		return;
	for (unsigned k = 0; k < TCP_TRIES; k++)
		try_close(tq, p->join, &p->join->tries[k]);
	free(p->join);
	p->join = NULL;
}

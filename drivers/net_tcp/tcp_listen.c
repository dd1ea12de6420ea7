/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_listen.c - those who come: strangers until they prove that they were given our address
 *
 * Design notes
 * Anybody may connect. A guest holds one of TCP_GUESTS places, for TCP_GUEST_MS, and gets not a byte before its
 * HELLO is proven; when all places are taken the oldest guest goes. One whose HELLO is good may compute before
 * it says the rest, and goes only when there is no other place; it comes again. The kernel keeps connections on which
 * nothing comes for itself (TCP_DEFER_ACCEPT), a few thousand; those that are too many wait in our backlog.
 * With no descriptor left we accept later: the backlog waits.
 *
 * Two queues may connect to each other at once. The attempt of the one with the larger uid counts: it leaves the
 * other's HELLO without an answer while its own attempt goes on, and the other, who answers, gives its own up when
 * it is confirmed. Should the attempt fail, as where a firewall lets one direction pass, the guest is answered
 * after all. A queue that has answered makes no attempt of its own.
 *
 * A guest whose HELLO names a flow is to be a further connection of a peer that has its first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_int.h"

#define ACCEPTS_MAX 16u /* in one turn */
#define PAUSE_MS    20u /* when there is no descriptor or no place */
#define YOUNG_MS    200u /* a guest that is given the time to speak, whoever else comes; */
#define KNOWN_MS    1000u /* the same, once its HELLO is good */

static void
pause_accepting(struct tcp_queue *tq)
{
	if (tq->listens)
		(void)tcp_sock_rewatch(tq, tq->listener, 0, tq, TCP_WATCH_LISTENER);
	tq->listens = false;
	tq->accept_ms = plx_clock_ms() + PAUSE_MS;
}

static void
go_on_accepting(struct tcp_queue *tq, uint64_t now_ms)
{
	if (tq->listens || tq->listener < 0 || now_ms < tq->accept_ms)
		return;
	tq->listens = tcp_sock_rewatch(tq, tq->listener, EPOLLIN, tq, TCP_WATCH_LISTENER) == 0;
	tq->accept_ms = now_ms + PAUSE_MS; /* if it does not */
}

static int
listen_open(struct tcp_queue *tq)
{
	int rc = tcp_sock_epoll(tq), fd;

	if (rc < 0)
		return rc;
	fd = tcp_sock_listen(tq, &tq->addr.port);
	if (fd < 0)
		return fd;
	tcp_if_advertise(&tq->ifs, &tq->addr);
	if (tq->addr.n_bytes == 0)
		PLX_LOG(WARNING, tcp, "nobody can connect to this worker: this host has no address that net_tcp.interfaces "
			"(%.64s) and net_tcp.family allow", tq->if_text[0] != '\0' ? tq->if_text : "all");
	tq->listener = fd; /* before its first event */
	rc = tcp_sock_watch(tq, fd, EPOLLIN, tq, TCP_WATCH_LISTENER);
	if (rc != 0) {
		tq->listener = -1;
		close(fd);
	}
	return rc;
}

static void
listen_once(struct tcp_queue *tq)
{
	int rc = tq->listener >= 0 || tq->cannot_listen ? 0 : listen_open(tq);

	if (rc == 0)
		return;
	/* It connects all the same to those who listen. */
	tq->addr.port = 0;
	tq->cannot_listen = true;
	PLX_LOG(WARNING, tcp, "nobody can connect to this worker: %s",
		rc == -EADDRINUSE ? tcp_no_port(tq) : strerror(-rc));
}

/*
 * Threads of the program ask for the address while a reactor owns the queue. A forked child leaves
 * its parent's queue alone: the lock may be held by a thread that the child does not have.
 */
void
tcp_listen(struct tcp_queue *tq)
{
	if (getpid() != tq->pid)
		return;
	pthread_mutex_lock(&tq->listen_lock);
	listen_once(tq);
	pthread_mutex_unlock(&tq->listen_lock);
}

/* -- places -- */

/* @return a free place, one that is taken from its guest, or NULL */
static struct tcp_guest *
guest_place(struct tcp_queue *tq, uint64_t now_ms)
{
	struct tcp_guest *oldest[2] = {NULL, NULL};

	for (unsigned i = 0; i < TCP_GUESTS; i++) {
		struct tcp_guest *g = &tq->guests[i], **old = &oldest[g->p != NULL];

		if (!g->open)
			return g;
		if (*old == NULL || g->since_ms < (*old)->since_ms)
			*old = g;
	}
	if (oldest[0] != NULL && now_ms - oldest[0]->since_ms >= YOUNG_MS)
		return oldest[0];
	return oldest[1] != NULL && now_ms - oldest[1]->since_ms >= KNOWN_MS ? oldest[1] : NULL;
}

/* @return the number of the further connection that a known guest is to be; 0: it is to be the first */
static uint16_t
guest_flow(const struct tcp_guest *g)
{
	return g->hello.head.flow;
}

static void
guest_leave(struct tcp_queue *tq, struct tcp_guest *g)
{
	tq->n_guests--;
	if (g->p != NULL && guest_flow(g) == 0)
		(*(g->waits ? &g->p->n_waiting : &g->p->n_answered))--;
	g->open = false;
	g->p = NULL;
}

static void
guest_drop(struct tcp_queue *tq, struct tcp_guest *g)
{
	PLX_STAT_ADD(tq->stat.drop_stranger, g->p == NULL);
	guest_leave(tq, g);
	tcp_sock_close(tq, &g->fd);
}

/* -- what they say -- */

static void
guest_answer(struct tcp_queue *tq, struct tcp_guest *g, enum tcp_hello_kind kind)
{
	int rc = tcp_answer_make(&g->answer, kind, &g->hello, &tq->addr);

	g->n = 0;
	if (rc == 0)
		rc = tcp_sock_write(g->fd, &g->answer, sizeof(g->answer));
	if (rc == 0 && kind == TCP_ANSWER)
		return;
	PLX_STAT_ADD(tq->stat.refused, kind == TCP_REFUSE);
	guest_drop(tq, g);
}

/* @return whose HELLO it is, or NULL: it does not count */
static struct tcp_peer *
guest_peer(struct tcp_queue *tq, const struct tcp_guest *g)
{
	struct tcp_addr from;
	struct plx_addr addr;
	struct plx_peer *peer;

	if (tcp_hello_open(&g->hello, &tq->addr, &from) != 0 || from.uid == tq->addr.uid)
		return NULL;
	addr.len = tcp_addr_len(&from);
	memcpy(addr.bytes, &from, addr.len);
	if (plx_peer_get(tq->q, &addr, &peer) != 0)
		return NULL;
	plx_peer_put(peer); /* known is enough */
	return tcp_peer(peer);
}

static void
guest_hello(struct tcp_queue *tq, struct tcp_guest *g)
{
	struct tcp_peer *p = guest_peer(tq, g);

	if (p == NULL) {
		guest_drop(tq, g);
		return;
	}
	plx_queue_rouse(tq->q);
	tcp_sock_settle(tq, g->fd); /* should its host go */
	g->p = p;
	if (guest_flow(g) != 0) {
		if (tcp_flow_may_come(p, guest_flow(g)))
			guest_answer(tq, g, TCP_ANSWER);
		else
			guest_drop(tq, g);
		return;
	}
	/* It has closed a connection whose end we have not read yet. */
	g->waits = p->state == TCP_LEAVING || (p->join != NULL && tq->addr.uid > p->addr->uid);
	PLX_STAT_ADD(tq->stat.crossed, p->join != NULL);
	(*(g->waits ? &p->n_waiting : &p->n_answered))++;
	if (p->state == TCP_OPEN || p->state == TCP_CUT)
		guest_drop(tq, g); /* it was late, and finds the other connection */
	else if (!g->waits)
		guest_answer(tq, g, p->peer.state != PLX_PEER_DEAD ? TCP_ANSWER : TCP_REFUSE);
}

/* It is to be a further connection. */
static void
guest_confirm_flow(struct tcp_queue *tq, struct tcp_guest *g)
{
	struct tcp_peer *p = g->p;

	if (!tcp_flow_may_come(p, guest_flow(g)) ||
		tcp_confirm_open(&g->confirm, &g->answer, &tq->addr, p->more->first) != 0 ||
		tcp_flow_came(p, guest_flow(g), g->fd) != 0)
		guest_drop(tq, g);
	else
		guest_leave(tq, g);
}

static void
guest_confirm(struct tcp_queue *tq, struct tcp_guest *g)
{
	struct tcp_peer *p = g->p;
	int rc;

	if (tcp_confirm_open(&g->confirm, &g->answer, &tq->addr, NULL) != 0 || p->state >= TCP_OPEN) {
		guest_drop(tq, g);
		return;
	}
	PLX_STAT_INC(tq->stat.accepted);
	guest_leave(tq, g);
	tcp_join_end(p);
	rc = tcp_peer_adopt(p, g->fd, &g->confirm);
	if (rc == 0)
		return;
	tcp_sock_close(tq, &g->fd);
	tcp_peer_end(p, rc);
}

void
tcp_guest_event(struct tcp_queue *tq, struct tcp_guest *g)
{
	uint8_t early;
	uint16_t n = 0;
	int rc;

	if (!g->open)
		return;
	if (g->waits)
		rc = tcp_sock_read(g->fd, &early, sizeof(early), &n) == -EAGAIN ? -EAGAIN : -EBADMSG;
	else if (g->p == NULL)
		rc = tcp_sock_read(g->fd, &g->hello, sizeof(g->hello), &g->n);
	else
		rc = tcp_sock_read(g->fd, &g->confirm, sizeof(g->confirm), &g->n);
	if (rc == -EAGAIN)
		return;
	if (rc != 0)
		guest_drop(tq, g);
	else if (g->p == NULL)
		guest_hello(tq, g);
	else if (guest_flow(g) != 0)
		guest_confirm_flow(tq, g);
	else
		guest_confirm(tq, g);
}

static void
guest_begin(struct tcp_queue *tq, struct tcp_guest *g, int fd, uint64_t now_ms)
{
	if (g->open)
		guest_drop(tq, g);
	*g = (struct tcp_guest){.open = true, .fd = fd, .since_ms = now_ms};
	tq->n_guests++;
	if (tcp_sock_watch(tq, fd, EPOLLIN, g, TCP_WATCH_GUEST) != 0)
		guest_drop(tq, g);
	else
		tcp_guest_event(tq, g); /* what it says is there, mostly */
	if (g->open && g->p == NULL) /* in the backlog it had the time to speak, too */
		g->since_ms -= RTE_MIN(now_ms, tcp_sock_idle_ms(fd));
}

/* @return whether there may be more */
static bool
accept_one(struct tcp_queue *tq, uint64_t now_ms)
{
	struct tcp_guest *g = guest_place(tq, now_ms);
	int fd = -1;

	if (g != NULL)
		fd = accept4(tq->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		guest_begin(tq, g, fd, now_ms);
		return true;
	}
	if (g != NULL && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return errno == ECONNABORTED;
	PLX_STAT_ADD(tq->stat.no_fd, g != NULL);
	pause_accepting(tq);
	return false;
}

void
tcp_listen_event(struct tcp_queue *tq)
{
	uint64_t now_ms = plx_clock_ms();

	if (tq->guests == NULL)
		tq->guests = calloc(TCP_GUESTS, sizeof(*tq->guests));
	if (tq->guests == NULL) {
		pause_accepting(tq);
		return;
	}
	for (unsigned i = 0; i < ACCEPTS_MAX && accept_one(tq, now_ms); i++)
		;
}

/* What became of our own attempt to reach the peer of a guest that waits. */
static void
guest_control(struct tcp_queue *tq, struct tcp_guest *g, uint64_t now_ms)
{
	struct tcp_peer *p = g->p;

	if (p != NULL && guest_flow(g) != 0) {
		if (!tcp_flow_may_come(p, guest_flow(g)))
			guest_drop(tq, g);
	} else if (p != NULL && p->state >= TCP_OPEN && !(g->waits && p->state == TCP_LEAVING)) {
		guest_drop(tq, g); /* it was made, or the peer is no more */
	} else if (g->waits && p->state < TCP_OPEN && p->join == NULL) {
		p->n_waiting--;
		p->n_answered++;
		g->waits = false;
		g->since_ms = now_ms;
		guest_answer(tq, g, TCP_ANSWER);
	} else if (p == NULL && now_ms - g->since_ms >= TCP_GUEST_MS) {
		PLX_STAT_INC(tq->stat.drop_silent);
		guest_drop(tq, g);
	}
}

void
tcp_guests_control(struct tcp_queue *tq, uint64_t now_ms)
{
	uint64_t away_ms = now_ms - tq->guests_ms;

	tq->guests_ms = now_ms;
	go_on_accepting(tq, now_ms);
	for (unsigned i = 0; tq->n_guests != 0 && i < TCP_GUESTS; i++) {
		struct tcp_guest *g = &tq->guests[i];

		if (away_ms >= TCP_AWAY_MS) /* we computed: what they said meanwhile may wait still */
			g->since_ms = RTE_MIN(now_ms, g->since_ms + away_ms);
		if (g->open)
			guest_control(tq, g, now_ms);
	}
}

static uint64_t
guest_due_ms(const struct tcp_guest *g)
{
	const struct tcp_peer *p = g->p;

	if (p != NULL && guest_flow(g) != 0)
		return tcp_flow_may_come(p, guest_flow(g)) ? UINT64_MAX : 0;
	if (p != NULL && (p->state >= TCP_OPEN || (g->waits && p->join == NULL)))
		return 0;
	return g->waits ? UINT64_MAX : g->since_ms + TCP_GUEST_MS;
}

uint64_t
tcp_guests_deadline_ms(const struct tcp_queue *tq)
{
	uint64_t due_ms = tq->listens || tq->listener < 0 ? UINT64_MAX : tq->accept_ms;

	for (unsigned i = 0; tq->n_guests != 0 && i < TCP_GUESTS; i++)
		if (tq->guests[i].open)
			due_ms = RTE_MIN(due_ms, guest_due_ms(&tq->guests[i]));
	return due_ms;
}

void
tcp_guests_drop(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	for (unsigned i = 0; tq->n_guests != 0 && i < TCP_GUESTS; i++) {
		struct tcp_guest *g = &tq->guests[i];

		if (!g->open || g->p != p)
			continue;
		guest_leave(tq, g);
		tcp_sock_close(tq, &g->fd);
	}
}

void
tcp_listen_lose(struct tcp_queue *tq)
{
	int fd;

	for (unsigned i = 0; tq->n_guests != 0 && i < TCP_GUESTS; i++)
		if (tq->guests[i].open)
			tcp_sock_lose(&tq->guests[i].fd);
	fd = atomic_exchange(&tq->listener, -1);
	tcp_sock_lose(&fd);
}

void
tcp_listen_close(struct tcp_queue *tq)
{
	for (unsigned i = 0; tq->n_guests != 0 && i < TCP_GUESTS; i++)
		if (tq->guests[i].open)
			close(tq->guests[i].fd);
	free(tq->guests);
	if (tq->listener >= 0)
		close(tq->listener);
}

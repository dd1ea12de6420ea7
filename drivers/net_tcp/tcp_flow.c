/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_flow.c - further connections to a peer, for long data
 *
 * Design notes
 * One connection is one flow to the network, which may get less than the link has. So who moves long data makes further
 * ones, up to net_tcp.flows of its own and of the peer, once the peer has answered such data: many pairs never need
 * them. Each is for data from who made it, so both may make some at once and none meets another.
 *
 * They go to where the first leads, and need no second try: while one is not there its share goes by the others, and
 * after a while it is tried anew.
 *
 * They end with the first, or before. If something was under way on one, its end is the peer's. If not, whoever made it
 * does without, and makes it again; for the other it ends behind the last data that the first names, or is replaced.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tcp_int.h"

#define AGAIN_MS 10000u /* after one that could not be made, or has ended */

/** The handshake of one that we make. */
struct tcp_ask {
	bool said, confirmed;
	uint16_t n; /* bytes of the message that is read now */
	struct tcp_hello hello;
	struct tcp_answer answer;
	struct tcp_greet taken;
};

/* -- are they there? -- */

/* @return 0: it is there, or has data; 1: it was closed; or -errno */
static int
further_state(const struct tcp_further *x)
{
	uint8_t byte;
	ssize_t n = recv(x->flow.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	if (n >= 0)
		return n == 0;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* @return whether nothing is under way by one of ours */
static bool
is_quiet(const struct tcp_further *x)
{
	return !x->flow.sent && STAILQ_EMPTY(&x->flow.out);
}

static void
ours_look(struct tcp_further *x)
{
	int rc = further_state(x);

	if (rc != 0 && is_quiet(x)) {
		x->p->more->again_ms = plx_clock_ms() + AGAIN_MS;
		tcp_further_end(x);
	} else if (rc != 0) {
		tcp_peer_cut(x->p, rc < 0 ? rc : -ECONNRESET);
	}
}

/* One that has failed stays, to be found by data that a frame names, or replaced. */
static void
theirs_look(struct tcp_further *x)
{
	int rc = tcp_is_bulk(&x->flow) ? 0 : further_state(x);

	x->ends = rc == 0;
	if (rc == 1)
		tcp_further_end(x);
}

void
tcp_further_look(struct tcp_further *x)
{
	if (tcp_further_is_ours(x))
		ours_look(x);
	else
		theirs_look(x);
}

/* -- those that we make -- */

static void
ask_end(struct tcp_further *x)
{
	free(x->ask);
	x->ask = NULL;
}

static void
ask_fail(struct tcp_further *x, int err)
{
	struct tcp_queue *tq = tcp_queue(x->p->peer.q);

	ask_end(x);
	if (x->flow.fd >= 0)
		tcp_sock_close(tq, &x->flow.fd);
	x->p->more->again_ms = plx_clock_ms() + AGAIN_MS;
	PLX_STAT_ADD(tq->stat.no_fd, err == -EMFILE || err == -ENFILE);
	PLX_STAT_INC(tq->stat.flows_failed);
	if (!tq->told_flows)
		PLX_LOG(WARNING, tcp, "a peer has fewer than %u connections (net_tcp.flows), which go on: %s", tq->flows,
			err == -ECONNABORTED ? "it takes no more" : strerror(-err));
	tq->told_flows = true;
}

/* @return 0 it is connected, and has our HELLO; or why not */
static int
ask_greet(struct tcp_further *x)
{
	struct tcp_queue *tq = tcp_queue(x->p->peer.q);
	int err = 0, rc;
	socklen_t len = sizeof(err);

	if (getsockopt(x->flow.fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0)
		return err != 0 ? -err : -EIO;
	rc = tcp_hello_make(&x->ask->hello, &tq->addr, x->p->addr, x->flow.index);
	if (rc == 0)
		rc = tcp_sock_write(x->flow.fd, &x->ask->hello, sizeof(x->ask->hello));
	if (rc != 0)
		return rc == -ENOTCONN ? -EAGAIN : rc;
	x->ask->said = true;
	tcp_sock_settle(tq, x->flow.fd);
	return tcp_sock_rewatch(tq, x->flow.fd, EPOLLIN, &x->flow, TCP_WATCH_FLOW);
}

static int
ask_confirm(struct tcp_further *x)
{
	struct tcp_ask *a = x->ask;
	int rc = tcp_sock_read(x->flow.fd, &a->answer, sizeof(a->answer), &a->n);
	struct tcp_confirm c;

	if (rc == 0)
		rc = tcp_answer_open(&a->answer, &a->hello, x->p->addr);
	if (rc != 0)
		return rc;
	tcp_confirm_make(&c, &a->answer, x->p->addr, x->p->more->first);
	a->confirmed = true;
	a->n = 0;
	return tcp_sock_write(x->flow.fd, &c, sizeof(c));
}

static int
ask_taken(struct tcp_further *x)
{
	struct tcp_queue *tq = tcp_queue(x->p->peer.q);
	struct tcp_ask *a = x->ask;
	int rc = tcp_sock_read(x->flow.fd, &a->taken, sizeof(a->taken), &a->n);

	if (rc == 0 && !tcp_greet_is(&a->taken, TCP_TAKEN))
		rc = -EBADMSG;
	if (rc == 0) /* nothing comes by it */
		rc = tcp_sock_rewatch(tq, x->flow.fd, TCP_WATCH_END, &x->flow, TCP_WATCH_FLOW);
	if (rc != 0)
		return rc;
	ask_end(x);
	PLX_LOG(INFO, tcp, "connection %u to queue %016llx", x->flow.index + 1u, (unsigned long long)x->p->peer.uid);
	x->p->more->n_up++;
	tq->n_further++;
	PLX_STAT_INC(tq->stat.flows);
	return 0;
}

void
tcp_ask_event(struct tcp_further *x)
{
	int rc = !x->ask->said ? ask_greet(x) : !x->ask->confirmed ? ask_confirm(x) : ask_taken(x);

	if (rc != 0 && rc != -EAGAIN)
		ask_fail(x, rc);
}

/* Where the first leads: the peer's listener is on that host. */
static int
ask_connect(struct tcp_peer *p)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tcp_ip ip;

	if (getpeername(p->flow.fd, (struct sockaddr *)&sa, &len) != 0)
		return -errno;
	if (tcp_ip_of_sockaddr((struct sockaddr *)&sa, &ip) != 0)
		return -EAFNOSUPPORT;
	return tcp_sock_connect(tcp_queue(p->peer.q), &ip, p->addr->port);
}

static int
ask_begin(struct tcp_further *x)
{
	int fd;

	x->ask = calloc(1, sizeof(*x->ask));
	if (x->ask == NULL)
		return -ENOMEM;
	fd = ask_connect(x->p);
	if (fd < 0)
		return fd;
	x->flow.fd = fd;
	return tcp_sock_watch(tcp_queue(x->p->peer.q), fd, EPOLLOUT, &x->flow, TCP_WATCH_FLOW);
}

void
tcp_flows_make(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_more *m = p->more;
	int rc = 0;

	if (m == NULL || m->n_up + 1u >= tq->flows || p->flow.self || p->state != TCP_OPEN || p->addr->port == 0)
		return;
	if (m->again_ms != 0 && plx_clock_ms() < m->again_ms)
		return;
	for (unsigned i = 0; i + 1 < tq->flows && rc == 0; i++) {
		struct tcp_further *x = &m->to[i];

		if (x->flow.fd >= 0)
			continue;
		rc = ask_begin(x);
		if (rc != 0)
			ask_fail(x, rc);
	}
}

/* @return the one that has least to send, or NULL */
static struct tcp_further *
least_ahead(struct tcp_more *m)
{
	struct tcp_further *best = NULL;

	for (unsigned i = 0; i < TCP_FLOWS_MAX - 1 && m->n_up != 0; i++) {
		struct tcp_further *x = &m->to[(m->next + i) % (TCP_FLOWS_MAX - 1)];

		if (x->flow.fd >= 0 && x->ask == NULL && (best == NULL || x->flow.ahead < best->flow.ahead))
			best = x;
	}
	return best;
}

struct tcp_flow *
tcp_flow_for(struct tcp_peer *p)
{
	struct tcp_further *best;

	/* One that was idle may have ended, and epoll was not asked since. */
	while ((best = least_ahead(p->more)) != NULL && is_quiet(best)) {
		ours_look(best);
		if (best->flow.fd >= 0)
			break;
	}
	if (best == NULL)
		return NULL;
	p->more->next = best->flow.index; /* the one behind it: equals take turns */
	return &best->flow;
}

/* -- those that come -- */

/* @return whether another may be in its place: it has ended, and all that it had was read */
static bool
is_free(const struct tcp_further *x)
{
	return x->flow.fd < 0 || (!tcp_is_bulk(&x->flow) && further_state(x) != 0);
}

bool
tcp_flow_may_come(const struct tcp_peer *p, unsigned flow)
{
	return p->state == TCP_OPEN && p->peer.state != PLX_PEER_DEAD && p->more != NULL &&
		flow < tcp_queue(p->peer.q)->flows && is_free(&p->more->from[flow - 1]);
}

int
tcp_flow_came(struct tcp_peer *p, unsigned flow, int fd)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_more *m = p->more;
	struct tcp_further *x = &m->from[flow - 1];
	struct tcp_greet g;
	int rc;

	if (m->rest == NULL)
		m->rest = malloc(TCP_RX_LEN);
	if (m->rest == NULL)
		return -ENOMEM;
	tcp_greet_make(&g, TCP_TAKEN);
	rc = tcp_sock_write(fd, &g, sizeof(g));
	if (rc == 0)
		rc = tcp_sock_rewatch(tq, fd, TCP_WATCH_END, &x->flow, TCP_WATCH_FLOW);
	if (rc != 0)
		return rc;
	if (x->flow.fd >= 0)
		tcp_further_end(x);
	x->flow.fd = fd;
	m->n_came++;
	tq->n_further++;
	PLX_STAT_INC(tq->stat.flows_taken);
	return 0;
}

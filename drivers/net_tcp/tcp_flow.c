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
 * after a while it is tried anew. They end with the first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tcp_int.h"

#define AGAIN_MS 10000u /* after one that could not be made */

/** The handshake of one that we make. */
struct tcp_ask {
	bool said, confirmed;
	uint16_t n; /* bytes of the message that is read now */
	struct tcp_hello hello;
	struct tcp_answer answer;
	struct tcp_greet taken;
};

static void
further_init(struct tcp_further *x, struct tcp_peer *p, unsigned i)
{
	x->p = p;
	x->flow.index = (uint8_t)(i + 1);
	x->flow.odd = TCP_FURTHER;
	x->flow.fd = -1;
	STAILQ_INIT(&x->flow.out);
}

void
tcp_more_open(struct tcp_peer *p, const uint8_t first[TCP_MAC_LEN])
{
	if (tcp_queue(p->peer.q)->flows == 1)
		return;
	if (p->more == NULL) {
		p->more = calloc(1, sizeof(*p->more));
		if (p->more == NULL)
			return; /* it does without */
		TAILQ_INIT(&p->more->busy);
		for (unsigned i = 0; i < TCP_FLOWS_MAX - 1; i++) {
			further_init(&p->more->to[i], p, i);
			further_init(&p->more->from[i], p, i);
		}
	}
	memcpy(p->more->first, first, TCP_MAC_LEN);
	p->more->again_ms = 0;
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
	struct tcp_ask *a = x->ask;
	int rc = tcp_sock_read(x->flow.fd, &a->taken, sizeof(a->taken), &a->n);

	if (rc != 0)
		return rc;
	if (!tcp_greet_is(&a->taken, TCP_TAKEN))
		return -EBADMSG;
	ask_end(x);
	PLX_LOG(INFO, tcp, "connection %u to queue %016llx", x->flow.index + 1u, (unsigned long long)x->p->peer.uid);
	tcp_sock_unwatch(tcp_queue(x->p->peer.q), x->flow.fd); /* nothing comes by it */
	x->p->more->n_up++;
	PLX_STAT_INC(tcp_queue(x->p->peer.q)->stat.flows);
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

struct tcp_flow *
tcp_flow_for(struct tcp_peer *p)
{
	struct tcp_more *m = p->more;
	struct tcp_flow *best = NULL;

	for (unsigned i = 0; i < TCP_FLOWS_MAX - 1 && m->n_up != 0; i++) {
		struct tcp_further *x = &m->to[(m->next + i) % (TCP_FLOWS_MAX - 1)];

		if (x->flow.fd >= 0 && x->ask == NULL && (best == NULL || x->flow.ahead < best->ahead))
			best = &x->flow;
	}
	if (best != NULL)
		m->next = best->index; /* the one behind it: equals take turns */
	return best;
}

/* -- those that come -- */

bool
tcp_flow_may_come(const struct tcp_peer *p, unsigned flow)
{
	return p->state == TCP_OPEN && p->peer.state != PLX_PEER_DEAD && p->more != NULL &&
		flow < tcp_queue(p->peer.q)->flows && p->more->from[flow - 1].flow.fd < 0;
}

int
tcp_flow_came(struct tcp_peer *p, unsigned flow, int fd)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_more *m = p->more;
	struct tcp_greet g;
	int rc;

	if (m->rest == NULL)
		m->rest = malloc(TCP_RX_LEN);
	if (m->rest == NULL)
		return -ENOMEM;
	tcp_greet_make(&g, TCP_TAKEN);
	rc = tcp_sock_write(fd, &g, sizeof(g));
	if (rc != 0)
		return rc;
	tcp_sock_unwatch(tq, fd); /* until data of it is expected */
	m->from[flow - 1].flow.fd = fd;
	PLX_STAT_INC(tq->stat.flows_taken);
	return 0;
}

/* -- all -- */

void
tcp_more_each(struct tcp_peer *p, void (*fn)(struct tcp_further *x, void *arg), void *arg)
{
	for (unsigned i = 0; p->more != NULL && i < TCP_FLOWS_MAX - 1; i++) {
		if (p->more->to[i].flow.fd >= 0)
			fn(&p->more->to[i], arg);
		if (p->more->from[i].flow.fd >= 0)
			fn(&p->more->from[i], arg);
	}
}

static void
further_drop(struct tcp_further *x, void *arg)
{
	struct tcp_queue *tq = tcp_queue(x->p->peer.q);

	(void)arg;
	if (x->ask != NULL)
		ask_end(x);
	tcp_cool(&x->flow);
	tcp_sock_close(tq, &x->flow.fd);
	x->flow.polled = x->flow.out_armed = false;
	x->flow.bulk = (struct tcp_bulk){0};
	if (x->op != NULL)
		tcp_op_over(tq, x->op, x->p->lost_err != 0 ? x->p->lost_err : -ECONNRESET);
	x->op = NULL;
	x->n_acks = 0;
}

void
tcp_more_drop(struct tcp_peer *p)
{
	struct tcp_more *m = p->more;

	if (m == NULL)
		return;
	tcp_more_each(p, further_drop, NULL);
	TAILQ_INIT(&m->busy);
	m->n_up = m->next = 0;
	m->n_rest = 0;
	p->flow.odd = TCP_PLAIN;
}

void
tcp_more_close(struct tcp_peer *p)
{
	if (p->more != NULL)
		free(p->more->rest);
	free(p->more);
	p->more = NULL;
}

bool
tcp_more_is_quiet(const struct tcp_peer *p)
{
	const struct tcp_more *m = p->more;

	if (m == NULL)
		return true;
	for (unsigned i = 0; i < TCP_FLOWS_MAX - 1 && m->n_up != 0; i++)
		if (!STAILQ_EMPTY(&m->to[i].flow.out))
			return false;
	return TAILQ_EMPTY(&m->busy);
}

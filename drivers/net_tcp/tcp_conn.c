/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_conn.c - a connection: from the end of its handshake to its own end
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tcp_int.h"

static void
log_connected(const struct tcp_peer *p, int fd)
{
	char text[TCP_TEXT_MAX] = "?";
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tcp_ip ip;

	if (getpeername(fd, (struct sockaddr *)&sa, &len) == 0 && tcp_ip_of_sockaddr((struct sockaddr *)&sa, &ip) == 0)
		tcp_ip_text(&ip, ntohs(((struct sockaddr_in *)&sa)->sin_port), text);
	PLX_LOG(INFO, tcp, "connected to queue %016llx at %s", (unsigned long long)p->peer.uid, text);
}

int
tcp_peer_adopt(struct tcp_peer *p, int fd, const struct tcp_confirm *c)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);
	int rc = tcp_mem_open(tq);

	if (rc == 0)
		rc = tcp_sock_rewatch(tq, fd, EPOLLIN, &p->flow, TCP_WATCH_FLOW);
	if (rc != 0)
		return rc;
	plx_queue_rouse(tq->q);
	tcp_sock_settle(tq, fd);
	log_connected(p, fd);
	p->flow.fd = fd;
	p->flow.polled = true;
	p->state = TCP_OPEN;
	p->used_ms = tq->now_ms;
	tq->n_conns++;
	tcp_more_open(p, c->mac);
	tcp_heat(&p->flow);
	tcp_lossy_moved(p);
	plx_peer_met(&p->peer);
	return 0;
}

static void
not_leaving(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	tq->n_leaving -= p->state == TCP_LEAVING;
	tq->n_byes -= p->bye_came;
	p->bye_said = p->bye_came = false;
}

void
tcp_peer_cut(struct tcp_peer *p, int err)
{
	if (!tcp_is_up(p))
		return;
	not_leaving(p);
	p->state = TCP_CUT;
	p->lost_err = err;
	if (p->flow.fd >= 0) /* the peer may know of nothing; what it has sent is read up to its end, if its host is there */
		(void)shutdown(p->flow.fd, err == -ETIMEDOUT ? SHUT_RDWR : SHUT_WR);
	tcp_out_drop(p);
	if (p->flow.odd != TCP_STALLED)
		tcp_heat(&p->flow); /* who reads to the end finds it */
}

void
tcp_peer_reject(struct tcp_peer *p, int err)
{
	p->flow.odd = TCP_DEAF;
	tcp_peer_cut(p, err);
}

void
tcp_peer_disconnect(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	tcp_cool(&p->flow);
	tcp_unwatch(p);
	not_leaving(p);
	tcp_out_drop(p);
	tcp_rx_drop(p);
	tcp_op_drop(p);
	tcp_more_drop(p);
	if (p->flow.fd >= 0) {
		tcp_sock_close(tq, &p->flow.fd);
		p->flow.polled = false;
		tq->n_conns--;
	}
	p->flow.sent = false;
	p->flow.mute_ms = 0;
	p->state = TCP_OVER;
}

void
tcp_peer_end(struct tcp_peer *p, int err)
{
	p->lost_err = err;
	tcp_peer_disconnect(p);
	plx_peer_dead(&p->peer, err);
}

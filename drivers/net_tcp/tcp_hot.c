/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_hot.c - the sockets that are read in each turn
 */
#include <sys/epoll.h>

#include "tcp_int.h"

void
tcp_cool(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);

	if (!f->is_hot)
		return;
	f->is_hot = false;
	TAILQ_REMOVE(&tq->hot, f, hot_link);
	tq->n_hot--;
}

bool
tcp_hot_poll(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);

	if (f->polled)
		return true;
	PLX_STAT_INC(tq->stat.poll_changes);
	f->polled = (f->out_armed ? tcp_sock_rewatch(tq, f->fd, EPOLLIN | EPOLLOUT, f, TCP_WATCH_FLOW)
				  : tcp_sock_watch(tq, f->fd, EPOLLIN, f, TCP_WATCH_FLOW)) == 0;
	return f->polled;
}

void
tcp_flow_unwatch(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);

	if (!f->polled && !f->out_armed)
		return;
	PLX_STAT_INC(tq->stat.poll_changes);
	tcp_sock_unwatch(tq, f->fd);
	f->polled = f->out_armed = false;
}

void
tcp_out_arm(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);

	if (f->out_armed)
		return;
	if (f->polled)
		(void)tcp_sock_rewatch(tq, f->fd, EPOLLIN | EPOLLOUT, f, TCP_WATCH_FLOW);
	else
		(void)tcp_sock_watch(tq, f->fd, EPOLLOUT, f, TCP_WATCH_FLOW);
	f->out_armed = true;
}

void
tcp_out_disarm(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);

	f->out_armed = false;
	if (f->polled)
		(void)tcp_sock_rewatch(tq, f->fd, EPOLLIN, f, TCP_WATCH_FLOW);
	else
		tcp_sock_unwatch(tq, f->fd);
}

/* Room among those that are hot: the one that was quiet for longest goes. */
static void
make_room(struct tcp_queue *tq)
{
	struct tcp_flow *f, *most = NULL;

	TAILQ_FOREACH(f, &tq->hot, hot_link)
		if (!f->self && (most == NULL || f->n_empty > most->n_empty))
			most = f;
	if (most != NULL && tcp_hot_poll(most))
		tcp_cool(most);
}

void
tcp_heat(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);

	if (f->is_hot)
		return;
	if (tq->n_hot >= TCP_HOT)
		make_room(tq);
	f->is_hot = true;
	f->n_empty = 0;
	f->heated = (uint16_t)tq->turns;
	TAILQ_INSERT_HEAD(&tq->hot, f, hot_link);
	tq->n_hot++;
}

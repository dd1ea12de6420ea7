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

/* Ask epoll for a socket's events; it always reports the end of a further connection. @return whether it does so */
static bool
poll_for(struct tcp_flow *f, bool in, bool out)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);
	uint32_t events = (in ? EPOLLIN : 0) | (out ? EPOLLOUT : 0);
	bool was = f->polled || f->out_armed || f->index != 0;
	int rc = 0;

	if (events == 0 && f->index != 0)
		events = TCP_WATCH_END;
	PLX_STAT_ADD(tq->stat.poll_changes, f->polled != in);
	if (events == 0)
		tcp_sock_unwatch(tq, f->fd);
	else if (was)
		rc = tcp_sock_rewatch(tq, f->fd, events, f, TCP_WATCH_FLOW);
	else
		rc = tcp_sock_watch(tq, f->fd, events, f, TCP_WATCH_FLOW);
	if (rc != 0)
		return false;
	f->polled = in;
	f->out_armed = out;
	return true;
}

bool
tcp_hot_poll(struct tcp_flow *f)
{
	return f->polled || poll_for(f, true, f->out_armed);
}

void
tcp_flow_unwatch(struct tcp_flow *f)
{
	if (f->polled || f->out_armed)
		(void)poll_for(f, false, false);
}

void
tcp_out_arm(struct tcp_flow *f)
{
	if (!f->out_armed)
		(void)poll_for(f, f->polled, true);
}

void
tcp_out_disarm(struct tcp_flow *f)
{
	(void)poll_for(f, f->polled, false);
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

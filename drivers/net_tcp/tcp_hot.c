/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_hot.c - the sockets that are read in each turn
 */
#include <sys/epoll.h>

#include "tcp_int.h"

void
tcp_cool(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (!p->is_hot)
		return;
	p->is_hot = false;
	TAILQ_REMOVE(&tq->hot, p, hot_link);
	tq->n_hot--;
}

bool
tcp_hot_poll(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (p->polled)
		return true;
	PLX_STAT_INC(tq->stat.poll_changes);
	p->polled = tcp_sock_watch(tq, p->fd, EPOLLIN, p, TCP_WATCH_PEER) == 0;
	return p->polled;
}

/* Room among those that are hot: the one that was quiet for longest goes. */
static void
make_room(struct tcp_queue *tq)
{
	struct tcp_peer *p, *most = NULL;

	TAILQ_FOREACH(p, &tq->hot, hot_link)
		if (!p->self && (most == NULL || p->n_empty > most->n_empty))
			most = p;
	if (most != NULL && tcp_hot_poll(most))
		tcp_cool(most);
}

void
tcp_heat(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (p->is_hot)
		return;
	if (tq->n_hot >= TCP_HOT)
		make_room(tq);
	p->is_hot = true;
	p->n_empty = 0;
	p->heated = (uint16_t)tq->turns;
	TAILQ_INSERT_HEAD(&tq->hot, p, hot_link);
	tq->n_hot++;
}

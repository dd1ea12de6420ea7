/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_poll.c - which sockets are looked at
 *
 * Design notes
 * To read a socket costs no more than to ask epoll whether it can be read. So a few that something came
 * from are read in each turn; epoll is asked for the rest, in each turn if none is hot, else
 * in one out of TCP_POLL_EVERY. Idle connections cost nothing then, however many there are.
 *
 * Each arrival at a socket that epoll watches costs the kernel an event. So epoll does not watch a socket that has been
 * hot for long, until it cools or the owner sleeps.
 */
#include <sys/epoll.h>

#include "tcp_int.h"

/* @return whether it was read for long, by an owner that sleeps rarely: epoll is not needed soon */
static bool
is_busy(const struct tcp_queue *tq, const struct tcp_flow *f)
{
	return (uint16_t)(tq->turns - f->heated) >= TCP_AWAKE && tq->turns - tq->slept >= TCP_AWAKE;
}

static void
hot_control(struct tcp_queue *tq)
{
	struct tcp_flow *f, *next;

	for (f = TAILQ_FIRST(&tq->hot); f != NULL; f = next) {
		next = TAILQ_NEXT(f, hot_link);
		if (f->self)
			continue;
		if (f->n_empty >= TCP_COLD && tcp_hot_poll(f))
			tcp_cool(f);
		else if (f->polled && is_busy(tq, f))
			tcp_flow_unwatch(f);
	}
}

static void
flow_event(struct tcp_flow *f, uint32_t events)
{
	struct tcp_further *x = f->index != 0 ? container_of(f, struct tcp_further, flow) : NULL;

	if (f->fd < 0)
		return; /* it has ended since */
	if (x != NULL && x->ask != NULL) {
		tcp_ask_event(x);
		return;
	}
	if (x != NULL && !f->polled && !f->out_armed) {
		tcp_further_look(x);
		return;
	}
	if (f->out_armed && (x != NULL || (events & EPOLLOUT) != 0)) {
		tcp_out_disarm(f);
		tcp_flow_push(f);
	}
	if ((events & ~(uint32_t)EPOLLOUT) != 0 && f->polled)
		tcp_heat(f);
}

static void
event(struct tcp_queue *tq, uintptr_t what, uint32_t events)
{
	void *at = (void *)(what & ~(uintptr_t)TCP_WATCH_BITS);

	switch (what & TCP_WATCH_BITS) {
	case TCP_WATCH_LISTENER:
		tcp_listen_event(tq);
		break;
	case TCP_WATCH_GUEST:
		tcp_guest_event(tq, at);
		break;
	case TCP_WATCH_TRY:
		tcp_try_event(at);
		break;
	case TCP_WATCH_UDP:
		tcp_udp_event(tq, at, events);
		break;
	default:
		flow_event(at, events);
		break;
	}
}

void
tcp_poll(struct tcp_queue *tq)
{
	struct epoll_event ev[TCP_EVENTS];
	int n;

	if (tq->epfd < 0)
		return;
	PLX_STAT_INC(tq->stat.polls);
	hot_control(tq);
	n = epoll_wait(tq->epfd, ev, TCP_EVENTS, 0);
	for (int i = 0; i < n; i++)
		event(tq, (uintptr_t)ev[i].data.u64, ev[i].events);
}

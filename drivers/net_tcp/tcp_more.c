/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_more.c - the further connections of a peer: places for them, and what becomes of those
 */
#include <stdlib.h>
#include <string.h>

#include "tcp_int.h"

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
	if (x->ask == NULL)
		tq->n_further--;
	free(x->ask);
	x->ask = NULL;
	tcp_cool(&x->flow);
	tcp_sock_close(tq, &x->flow.fd);
	x->flow.polled = x->flow.out_armed = x->flow.sent = x->ends = false;
	x->flow.mute_ms = 0;
	x->flow.bulk = (struct tcp_bulk){0};
	if (x->op != NULL)
		tcp_op_over(tq, x->op, x->p->lost_err != 0 ? x->p->lost_err : -ECONNRESET);
	x->op = NULL;
	x->n_acks = 0;
}

void
tcp_further_end(struct tcp_further *x)
{
	PLX_LOG(INFO, tcp, "connection %u to queue %016llx ends", x->flow.index + 1u,
		(unsigned long long)x->p->peer.uid);
	PLX_STAT_INC(tcp_queue(x->p->peer.q)->stat.flows_ended);
	*(tcp_further_is_ours(x) ? &x->p->more->n_up : &x->p->more->n_came) -= 1;
	further_drop(x, NULL);
}

void
tcp_more_drop(struct tcp_peer *p)
{
	struct tcp_more *m = p->more;

	if (m == NULL)
		return;
	tcp_more_each(p, further_drop, NULL);
	TAILQ_INIT(&m->busy);
	m->n_up = m->n_came = m->next = 0;
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

static void
ours_park(struct tcp_further *x, void *arg)
{
	bool *some = arg;

	if (!tcp_further_is_ours(x) || x->ask != NULL)
		return;
	tcp_further_end(x);
	*some = true;
}

bool
tcp_more_park(struct tcp_peer *p)
{
	bool some = false;

	tcp_more_each(p, ours_park, &some);
	return some;
}

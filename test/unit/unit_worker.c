/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * unit_worker.c - a few workers on the fake device in one thread
 */
#include <string.h>

#include <rte_cycles.h>

#include "plx_unit_worker.h"

#define TURNS_MAX 200000 /* for one request to finish */

void
unit_workers_conf(struct unit_workers *u)
{
	memset(u, 0, sizeof(*u));
	plx_conf_defaults(&u->conf);
	unit_workers_set(u, "worker.devices", "fake");
	unit_workers_set(u, "worker.wait", "spin");
	unit_workers_set(u, "worker.peer_check_ms", "60000");
	unit_workers_set(u, "proto.eager_max", "32k"); /* whatever the default */
}

void
unit_workers_set(struct unit_workers *u, const char *name, const char *text)
{
	char err[PLX_CONF_ERR_MAX] = "";

	if (plx_conf_set(&u->conf, name, text, PLX_CONF_FROM_RPC, err) != 0)
		CU_assertImplementation(CU_FALSE, __LINE__, err, __FILE__, "", CU_TRUE);
}

void
unit_workers_open(struct unit_workers *u, unsigned n)
{
	struct plx_worker_params params = {.conf = &u->conf};
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	u->n = n;
	for (unsigned i = 0; i < n; i++)
		UNIT_EQ_FATAL(plx_worker_create(&params, &u->w[i]), 0);
	for (unsigned to = 0; to < n; to++) {
		UNIT_TRUE_FATAL(plx_worker_addr(u->w[to], addr, sizeof(addr)) > 0);
		for (unsigned from = 0; from < n; from++)
			UNIT_EQ_FATAL(plx_worker_ep_get(u->w[from], addr, &u->to[from][to]), 0);
	}
}

static void
worker_end(struct unit_workers *u, unsigned i)
{
	for (unsigned to = 0; to < u->n; to++)
		plx_worker_ep_put(u->w[i], &u->to[i][to]);
	plx_worker_destroy(u->w[i]);
	u->w[i] = NULL;
}

static void
pool_is_full(const struct plx_pool *p, const char *what)
{
	if (p->n_free != p->n_objs)
		printf("%s: %llu of %llu are out\n", what,
			(unsigned long long)(p->n_objs - p->n_free), (unsigned long long)p->n_objs);
	UNIT_EQ(p->n_free, p->n_objs);
}

void
unit_nothing_left(const struct unit_workers *u)
{
	for (unsigned i = 0; i < u->n; i++) {
		const struct plx_worker *w = u->w[i];
		const struct plx_stream *s;
		const struct plx_ep *ep;

		if (w == NULL)
			continue;
		pool_is_full(&w->reqs.pool, "requests");
		pool_is_full(&w->msgs.msg, "messages");
		pool_is_full(&w->eps.ctl, "control messages");
		for (unsigned k = 0; k < PLX_MSG_CLASSES; k++)
			pool_is_full(&w->msgs.data[k], "message data");
		UNIT_EQ(w->msgs.bytes, 0);
		UNIT_EQ(w->rndv.cursors, 0);
		UNIT_TRUE(TAILQ_EMPTY(&w->rndv.recvs) && TAILQ_EMPTY(&w->rndv.sends));
		UNIT_EQ(w->rndv.n_recvs + w->rndv.n_sends, 0);
		UNIT_TRUE(TAILQ_EMPTY(&w->flushes) && TAILQ_EMPTY(&w->flushing));
		for (uint32_t k = 1; k < w->rndv.ids.n; k++)
			CU_ASSERT(w->rndv.ids.v[k].req == NULL);
		LIST_FOREACH(ep, &w->eps.all, link) {
			uint32_t streams = 0; /* they stay as long as their handles */

			LIST_FOREACH(s, &plx_stream_ep(ep)->all, link)
				streams++;
			UNIT_TRUE(TAILQ_EMPTY(&ep->pending) && TAILQ_EMPTY(&ep->waits.head));
			UNIT_TRUE(LIST_EMPTY(&plx_worker_ep(ep)->partial));
			UNIT_EQ(ep->n_waits, 0);
			UNIT_EQ(ep->n_msgs, streams);
		}
		UNIT_EQ(plx_tag_stats(w->tag)->posted, 0);
		UNIT_EQ(plx_tag_stats(w->tag)->kept, 0);
	}
}

void
unit_workers_close(struct unit_workers *u)
{
	unit_turns(u, 20);
	unit_nothing_left(u);
	for (unsigned i = 0; i < u->n; i++)
		if (u->w[i] != NULL)
			worker_end(u, i);
}

struct plx_queue *
unit_queue(const struct unit_workers *u, unsigned i)
{
	return u->w[i]->queues[0];
}

unsigned
unit_turns(struct unit_workers *u, unsigned n)
{
	unsigned done = 0;

	for (unsigned k = 0; k < n; k++)
		for (unsigned i = 0; i < u->n; i++)
			if (u->w[i] != NULL)
				done += plx_worker_progress(u->w[i]);
	return done;
}

void
unit_check_peers(struct plx_worker *w)
{
	w->check.fn(&w->check, rte_rdtsc());
}

void
unit_kill(struct unit_workers *u, unsigned i)
{
	fake_kill(unit_queue(u, i));
	worker_end(u, i);
}

struct plx_req *
unit_send(struct unit_workers *u, unsigned from, unsigned to, const void *buf, uint64_t len,
	uint64_t tag, bool sync)
{
	struct plx_req *req = plx_req_get(&u->w[from]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_tag_send(u->w[from], &u->to[from][to], buf, len, tag, sync ? PLX_SEND_ANY_SYNC : PLX_SEND_ANY, req);
	return req;
}

struct plx_req *
unit_am_send(struct unit_workers *u, unsigned from, unsigned to, uint16_t hdr_len, const void *buf,
	uint64_t len)
{
	struct plx_ep_user *user = &u->to[from][to];
	struct plx_wire_am h = {.hdr_len = hdr_len, .conn_id = plx_ep_wire_id(user)};
	struct plx_req *req = plx_req_get(&u->w[from]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_am_send(u->w[from], user, h, buf, buf, len, PLX_AM_RNDV, req);
	return req;
}

struct plx_req *
unit_recv(struct unit_workers *u, unsigned at, void *buf, uint64_t len, uint64_t tag, uint64_t mask)
{
	struct plx_req *req = plx_req_get(&u->w[at]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_tag_recv(u->w[at], buf, len, tag, mask, req);
	return req;
}

bool
unit_finish(struct unit_workers *u, struct plx_req *req)
{
	for (unsigned i = 0; i < TURNS_MAX && !plx_req_is_done(req); i++)
		unit_turns(u, 1);
	return plx_req_is_done(req);
}

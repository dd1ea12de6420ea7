/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * req.c - request pools, completions from a reactor, names on the wire
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "plx_req.h"

#define REQ_FIRST     256  /* in a pool's first chunk */
#define REQ_CQ_LEN    8192
#define REQ_CQ_BURST  32

static void
req_init(void *obj, void *arg)
{
	struct plx_req_pool *p = arg;

	memset(obj, 0, PLX_REQ_SIZE);
	if (p->user_init != NULL)
		p->user_init(plx_req_user(obj));
}

static void
req_cleanup(void *obj, void *arg)
{
	struct plx_req_pool *p = arg;

	p->user_cleanup(plx_req_user(obj));
}

int
plx_req_pool_open(struct plx_req_pool *p, uint32_t user_len, bool dedicated,
	void (*user_init)(void *user), void (*user_cleanup)(void *user))
{
	static _Atomic uint32_t serial;
	char name[RTE_RING_NAMESIZE];

	memset(p, 0, sizeof(*p));
	STAILQ_INIT(&p->overflow);
	p->user_init = user_init;
	p->user_cleanup = user_cleanup;
	if (dedicated) {
		snprintf(name, sizeof(name), "plx_cq_%u",
			atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
		if (plx_mem_reserve(2 * REQ_CQ_LEN * sizeof(void *)) != 0)
			return -ENOMEM;
		p->cq = rte_ring_create(name, REQ_CQ_LEN, plx_mem_socket(),
			RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (p->cq == NULL)
			return -ENOMEM;
	}
	plx_pool_open(&p->pool, "req", PLX_REQ_SIZE + user_len, REQ_FIRST, 0, req_init, p);
	return 0;
}

void
plx_req_pool_close(struct plx_req_pool *p)
{
	if (p->user_cleanup != NULL)
		plx_pool_each(&p->pool, req_cleanup, p);
	plx_pool_close(&p->pool);
	rte_ring_free(p->cq);
	p->cq = NULL;
}

unsigned
plx_req_pool_poll(struct plx_req_pool *p)
{
	void *v[REQ_CQ_BURST];
	unsigned n = rte_ring_sc_dequeue_burst(p->cq, v, REQ_CQ_BURST, NULL);

	for (unsigned i = 0; i < n; i++)
		plx_req_finish(v[i]);
	return n;
}

/* While a completed request waits for the ring, its pool link is free to hold the place. */
static struct plx_req_over *
over_of(struct plx_req *req)
{
	_Static_assert(sizeof(struct plx_req_over) <= sizeof(req->free), "the link fits");
	return (struct plx_req_over *)(void *)&req->free;
}

void
plx_req_pool_flush(struct plx_req_pool *p)
{
	struct plx_req_over *o;

	while ((o = STAILQ_FIRST(&p->overflow)) != NULL) {
		struct plx_req_over *next = STAILQ_NEXT(o, link);

		if (rte_ring_sp_enqueue(p->cq, (char *)o - offsetof(struct plx_req, free)) != 0)
			return;
		STAILQ_FIRST(&p->overflow) = next;
		if (next == NULL)
			STAILQ_INIT(&p->overflow);
	}
}

void
plx_req_hdr_free(struct plx_req *req)
{
	free((void *)(uintptr_t)req->send.hdr);
	req->send.hdr = NULL;
}

void
plx_req_defer(struct plx_req *req)
{
	struct plx_req_pool *p = req->pool;

	if (STAILQ_EMPTY(&p->overflow) && rte_ring_sp_enqueue(p->cq, req) == 0)
		return;
	STAILQ_INSERT_TAIL(&p->overflow, over_of(req), link);
}

static int
ids_grow(struct plx_req_ids *ids)
{
	uint32_t n = ids->n != 0 ? ids->n * 2 : 64;
	void *v;

	if (n > PLX_REQ_IDS_MAX)
		return -ENOMEM;
	v = realloc(ids->v, n * sizeof(ids->v[0]));
	if (v == NULL)
		return -ENOMEM;
	ids->v = v;
	for (uint32_t i = ids->n != 0 ? ids->n : 1; i < n; i++) {
		ids->v[i].req = NULL;
		ids->v[i].gen = 1;
		ids->v[i].next_free = i + 1 < n ? i + 1 : 0;
	}
	ids->first_free = ids->n != 0 ? ids->n : 1;
	ids->n = n;
	return 0;
}

int
plx_req_id_get(struct plx_req_ids *ids, struct plx_req *req, struct plx_wire_id *out)
{
	uint32_t i;

	if (ids->first_free == 0 && ids_grow(ids) != 0)
		return -ENOMEM;
	i = ids->first_free;
	ids->first_free = ids->v[i].next_free;
	ids->v[i].req = req;
	out->index = i;
	out->gen = ids->v[i].gen;
	return 0;
}

void
plx_req_id_put(struct plx_req_ids *ids, struct plx_wire_id id)
{
	PLX_ASSERT(plx_req_id_find(ids, id) != NULL);
	ids->v[id.index].req = NULL;
	ids->v[id.index].gen++;
	ids->v[id.index].next_free = ids->first_free;
	ids->first_free = id.index;
}

void
plx_req_ids_close(struct plx_req_ids *ids)
{
	free(ids->v);
	memset(ids, 0, sizeof(*ids));
}

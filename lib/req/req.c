/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * req.c - request pools, completions from a reactor, names on the wire
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "plx_fork.h"

#include "plx_req.h"
#include "plx_req_id.h"

#define REQ_FIRST     256  /* in a pool's first chunk */
#define REQ_CQ_BURST  32

static void
req_init(void *obj, void *arg)
{
	struct plx_req_pool *p = arg;

	memset(obj, 0, PLX_REQ_SIZE);
	((struct plx_req *)obj)->pool = p;
	if (p->user_init == NULL)
		return;
	plx_fork_callbacks++;
	p->user_init(plx_req_user(obj));
	plx_fork_callbacks--;
}

static void
req_cleanup(void *obj, void *arg)
{
	struct plx_req_pool *p = arg;

	plx_fork_callbacks++;
	p->user_cleanup(plx_req_user(obj));
	plx_fork_callbacks--;
}

/* Of a ring that nothing goes through: it never has the number of a lap. Writer: none. */
static struct plx_cq_cell no_cell;

int
plx_req_pool_open(struct plx_req_pool *p, uint32_t user_len, bool dedicated,
	void (*user_init)(void *user), void (*user_cleanup)(void *user))
{
	memset(p, 0, sizeof(*p));
	p->user_init = user_init;
	p->user_cleanup = user_cleanup;
	if (dedicated && plx_cq_create(&p->cq) != 0)
		return -ENOMEM;
	p->to = p->cq;
	STAILQ_INIT(&p->later.overflow);
	p->later.head = PLX_CQ_LEN; /* full for good */
	p->later.cells = &no_cell;
	plx_pool_open(&p->pool, "req", PLX_REQ_SIZE + user_len, REQ_FIRST, 0, req_init, p);
	return 0;
}

void
plx_req_pool_close(struct plx_req_pool *p)
{
	if (p->user_cleanup != NULL)
		plx_pool_each(&p->pool, req_cleanup, p);
	plx_pool_close(&p->pool);
	plx_cq_destroy(p->cq);
	p->cq = p->to = NULL;
}

unsigned
plx_req_pool_poll(struct plx_req_pool *p)
{
	struct plx_cq *cq = p->cq;
	unsigned most = plx_cq_rested(cq) ? 1 : REQ_CQ_BURST, n; /* as plx_inbox_run() */
	struct plx_cq_cell *c;

	for (n = 0; n < most && !p->mute && (c = plx_cq_next(cq)) != NULL; n++) {
		struct plx_req *req = c->req;

		if (c->len != PLX_CQ_NO_DATA)
			plx_req_take_came(req, c);
		cq->tail++;
		plx_req_finish(req);
	}
	if (n == 0) {
		cq->empty++;
		return 0;
	}
	cq->empty = 0;
	plx_cq_done(cq);
	return n;
}

unsigned
plx_req_pool_run_later(struct plx_req_pool *p)
{
	STAILQ_HEAD(, plx_req) now = STAILQ_HEAD_INITIALIZER(now);
	struct plx_req *req;
	unsigned n = 0;

	/* Completions that a callback's own calls delay wait for the next time. */
	STAILQ_CONCAT(&now, &p->later.overflow);
	while (!p->mute && (req = STAILQ_FIRST(&now)) != NULL) {
		STAILQ_REMOVE_HEAD(&now, over);
		plx_req_finish(req);
		n++;
	}
	return n;
}

void
plx_req_postpone(struct plx_req *req)
{
	const uint8_t over = PLX_REQ_DONE | PLX_REQ_OWN_HDR;
	uint8_t flags = atomic_load_explicit(&req->flags, memory_order_relaxed);

	req->dt = NULL; /* finished, as its header is freed */
	atomic_store_explicit(&req->flags, flags & ~over, memory_order_relaxed);
	STAILQ_INSERT_TAIL(&req->pool->later.overflow, req, over);
}

static void
cq_put(struct plx_cq *cq, struct plx_cq_cell *c, struct plx_req *req)
{
	c->req = req;
	c->len = PLX_CQ_NO_DATA;
	plx_cq_give(cq, c);
}

void
plx_req_pool_flush_slow(struct plx_cq *cq)
{
	struct plx_req *req;

	while ((req = STAILQ_FIRST(&cq->overflow)) != NULL && plx_cq_room(cq)) {
		/* Unlinked first: the application may use the request again at once. */
		STAILQ_REMOVE_HEAD(&cq->overflow, over);
		cq_put(cq, &cq->cells[cq->head % PLX_CQ_LEN], req);
	}
}

void
plx_req_finish_slow(struct plx_req *req, uint8_t flags)
{
	bool put = (flags & (PLX_REQ_RELEASED | PLX_REQ_USER)) == PLX_REQ_RELEASED;
	void (*done)(struct plx_req *) = flags & PLX_REQ_NO_CB ? NULL : req->done;

	if (req->dt != NULL)
		req->status = req->dt->finish(req->dt, req->status);
	if (flags & PLX_REQ_OWN_HDR) {
		free(req->own);
		req->own = NULL;
	}
	PLX_PROBE_COMPLETE(req, req->status);
	/* pairs with the acquire in plx_req_is_done() */
	atomic_store_explicit(&req->flags, flags | PLX_REQ_DONE, memory_order_release);
	if (done != NULL)
		done(req); /* may free it, unless it was released before */
	if (put)
		plx_req_put(req);
}

void
plx_req_defer(struct plx_req *req)
{
	struct plx_cq *cq = req->pool->to;
	struct plx_cq_cell *c = plx_cq_take(cq);

	if (likely(c != NULL))
		cq_put(cq, c, req);
	else
		STAILQ_INSERT_TAIL(&cq->overflow, req, over);
}

int
plx_req_ids_grow(struct plx_req_ids *ids)
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

void
plx_req_ids_close(struct plx_req_ids *ids)
{
	free(ids->v);
	memset(ids, 0, sizeof(*ids));
}

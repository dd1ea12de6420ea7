/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma.c - operations begin: the way of execution, order, fences, failure
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "rma_int.h"

#define ROW(field) PLX_STAT_ROW(struct plx_rma_stat, field)

const struct plx_stat_row plx_rma_stat_rows[] = {
	ROW(dev), ROW(key), ROW(msg), ROW(quick), ROW(marks), ROW(deferred), ROW(late),
	ROW(bursts), ROW(batches), ROW(batches_back), ROW(batches_late), ROW(shares), ROW(shares_helped), ROW(puts),
	ROW(gets), ROW(atomics), ROW(fetches), ROW(refused), ROW(drop_bad_id),
	ROW(drop_bad_range), ROW(drop_replies), ROW(errors),
	PLX_STAT_END,
};

static void
wait_fail(struct plx_wait *w, int err)
{
	struct plx_req *req = plx_req_of_own(container_of(w, struct plx_rma_req, wait));

	if (rma_share_outlives(plx_rma_req(req), err))
		return;
	/* While the device has the buffer the request stays. */
	plx_rma_req(req)->over = plx_rma_req(req)->n_dev != 0;
	plx_rma_req(req)->err = err;
	if (plx_rma_req(req)->over)
		rma_send_stop(rma_of(req), req);
	else
		rma_end(rma_of(req), req, err);
}

int
plx_rma_open(struct plx_rma *r, const struct plx_conf *conf, bool dedicated)
{
	const uint64_t scheme = plx_conf_u64(conf, PLX_CONF_RMA_SCHEME);

	memset(r, 0, sizeof(*r));
	TAILQ_INIT(&r->all);
	TAILQ_INIT(&r->eps);
	SLIST_INIT(&r->quick);
	/* Inline the caller waits only for its own operation. */
	r->chunk = dedicated ? PLX_RMA_CHUNK : UINT64_MAX;
	r->by_device = scheme != PLX_RMA_MESSAGE;
	r->share_min = PLX_RMA_SHARE_MIN;
	r->share_ticks = rte_get_tsc_hz() * PLX_RMA_SHARE_US / 1000000;
	r->batch_len = scheme == PLX_RMA_AUTO ? PLX_RMA_BATCH_LEN : 0;
	r->ask_ticks = rte_get_tsc_hz() * PLX_RMA_ASK_US / 1000000;
	return rma_soft_open(r);
}

void
plx_rma_ep_init(struct plx_ep *ep)
{
	TAILQ_INIT(&plx_rma_ep(ep)->ops);
	TAILQ_INIT(&plx_rma_ep(ep)->batches);
	plx_rma_ep(ep)->most_gets = PLX_RMA_BATCHES_GET;
}

void
plx_rma_close(struct plx_rma *r)
{
	plx_pool_close(&r->replies);
	rma_parts_close(r);
	rma_batches_close(r);
	plx_req_ids_close(&r->ids);
}

int
plx_rma_dev_now(struct plx_rma *r, const struct plx_rma_do *d)
{
	int rc = plx_ep_connect(d->ep);

	if (rc != 0)
		return rc;
	if (!plx_rma_is_direct(r, d->ep, d->kind))
		return -EAGAIN;
	rc = rma_dev_move(d->ep, d->kind, d->buf, d->remote, d->len);
	if (rc == 0) {
		plx_rma_ep(d->ep)->proven = true;
		PLX_STAT_INC(r->stat.dev);
	}
	return rc == -EOPNOTSUPP ? -EAGAIN : rc;
}

/* Whether the initiator can access the word or bytes itself. */
static bool
is_here(const struct plx_rma_do *d)
{
	return d->rkey->mapped && (d->kind != PLX_RMA_ATOMIC || d->len != 8 || d->rkey->cpu64);
}

void
plx_rma_prepare(struct plx_rma *r, const struct plx_rma_do *d, struct plx_req *req)
{
	const uint32_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);
	struct plx_rma_req *o = plx_rma_req(req);

	req->buf = d->buf;
	req->len = d->len;
	o->ep = d->ep;
	o->wait.list = NULL;
	o->wait.conn_id = d->conn_id;
	o->id.index = 0;
	o->remote = d->remote;
	o->how = is_here(d) ? PLX_RMA_COPY : PLX_RMA_MSG;
	if (o->how == PLX_RMA_COPY)
		o->delta = d->rkey->delta;
	else
		o->key = d->kind != PLX_RMA_ATOMIC || (d->len == 8 && d->rkey->dev64)
			? d->rkey->dev_key : 0;
	o->domain = d->rkey->domain;
	o->cpu64 = d->rkey->cpu64;
	o->token = d->rkey->key.token;
	o->index = d->rkey->key.index;
	o->offset = 0;
	o->operand[0] = d->kind == PLX_RMA_ATOMIC ? d->operand[0] : 0;
	o->operand[1] = d->operand[1];
	o->epoch = epoch;
	o->err = 0;
	o->n_out = 0;
	o->n_dev = 0;
	o->over = false;
	o->again = false;
	o->shared = false;
	o->stage = 0;
	o->kind = d->kind;
	o->op = d->op;
	o->size = d->len;
	o->fetch = d->fetch;
	o->nbi = d->nbi;
	o->checked = d->checked;
	o->late = d->late;
	atomic_fetch_add_explicit(&r->n_ops, 1, memory_order_relaxed);
}

/* On mapped memory, when a fence delayed it. @return bytes moved */
static uint64_t
copy_step(struct plx_req *req, uint64_t n)
{
	struct plx_rma_req *o = plx_rma_req(req);
	char *there = (char *)(uintptr_t)(o->remote + (uint64_t)o->delta) + o->offset;
	uint64_t old;

	switch (o->kind) {
	case PLX_RMA_PUT:
		if (req->dt != NULL)
			req->dt->pack(req->dt, o->offset, there, n);
		else
			plx_copy(there, (char *)req->buf + o->offset, n);
		break;
	case PLX_RMA_GET:
		plx_req_copy_in(req, o->offset, there, n);
		break;
	default:
		old = plx_rma_atomic_do(there, o->op, o->size, o->operand[0], o->operand[1]);
		if (o->fetch)
			memcpy(req->buf, &old, o->size);
		break;
	}
	return n;
}

/* A chunk of an operation of this side. Apart, so that others save no registers for it. @return as send_step() */
static __rte_noinline int
move_step(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);
	uint64_t n = RTE_MIN(r->chunk, req->len - o->offset);
	int rc = 0;

	if (o->how == PLX_RMA_COPY)
		copy_step(req, n);
	else
		rc = rma_dev_move(o->ep, o->kind, (char *)req->buf + o->offset, o->remote + o->offset, n);
	if (rc == -EOPNOTSUPP) { /* the device has just found that it can't */
		o->how = PLX_RMA_MSG;
		o->late = false;
		if (o->kind == PLX_RMA_GET)
			o->got = o->offset;
		PLX_STAT_INC(r->stat.msg);
		return -EAGAIN;
	}
	if (rc == 0) {
		plx_rma_ep(o->ep)->proven = true;
		o->offset += n;
		if (o->offset < req->len)
			return -EAGAIN;
	}
	if (rc != -EAGAIN)
		rma_end(r, req, rc);
	return rc;
}

/* Send to the device or the peer. @return 0 all of it; -EAGAIN not yet; or an error */
static int
send_step(struct plx_rma *r, struct plx_req *req)
{
	switch (plx_rma_req(req)->how) {
	case PLX_RMA_KEY:
		return rma_key_step(r, req);
	case PLX_RMA_MARK:
		return rma_mark_step(req);
	default:
		return rma_msg_step(r, req);
	}
}

/*
 * Whether gets go past those that the target was asked for. While a program posts, as in one call for a long list,
 * no turn sees the answers, so the target would not be asked for more; and gets need not keep their order. One that
 * is in batches in part waits for these.
 */
static bool
gets_go_on(const struct plx_rma *r, const struct plx_rma_ep *e)
{
	const struct plx_rma_req *o = e->send;

	return r->posts && o->kind == PLX_RMA_GET && o->offset == 0 &&
	       atomic_load_explicit(&r->n_ops, memory_order_relaxed) >= PLX_RMA_MANY && rma_has_gets_only(e);
}

/*
 * The first operation may be the target's, or both sides', or go together with others.
 * @return how many are sent or over; 0 the device does this one; -EAGAIN not yet
 */
static __rte_noinline int
late_step(struct plx_rma *r, struct plx_rma_ep *e)
{
	struct plx_rma_req *o = e->send;
	bool skips = e->skip != 0;
	int rc;

	if (o->shared)
		return rma_share_step(r, o);
	rc = rma_batch_step(r, e);
	if (rc == 0 && e->n_batches != 0)
		rc = -EAGAIN;
	if (rc != 0 && (rc != -EAGAIN || !gets_go_on(r, e)))
		return rc;
	rc = plx_req_of_own(o)->len > PLX_RMA_LATE_LEN ? rma_share_step(r, o) : rma_burst_step(r, e);
	if (skips && e->skip != 0) /* a callback may have counted, too */
		e->skip--;
	return rc;
}

/* An operation that can't be part of a batch waits until the target is done with the ep's batches. */
static bool
waits_for_batches(const struct plx_rma_ep *e)
{
	return e->n_batches != 0 && e->send != NULL && !e->send->late;
}

/* Steps that the ep can do now. @return how many */
static unsigned
ep_send(struct plx_rma *r, struct plx_rma_ep *e)
{
	struct plx_rma_req *o;
	unsigned n = 0;
	int rc;

	while ((o = e->send) != NULL) {
		struct plx_req *req = plx_req_of_own(o);

		if (o->epoch != TAILQ_FIRST(&r->all)->epoch)
			break; /* after a fence */
		if (unlikely(o->late) && (rc = late_step(r, e)) != 0) {
			if (rc < 0)
				break;
			n += rc;
			if (waits_for_batches(e))
				break;
			continue;
		}
		if (o->how == PLX_RMA_COPY || o->how == PLX_RMA_DEV) {
			rc = move_step(r, req);
			n++;
			if ((rc == -EAGAIN && o->how != PLX_RMA_MSG) || waits_for_batches(e))
				break; /* the others in the next turn */
			continue;
		}
		rc = send_step(r, req);
		if (likely(rc == 0)) {
			if (e->send == o)
				rma_set_send(r, e, TAILQ_NEXT(o, link));
		} else if (rc == -EAGAIN) {
			break;
		} else {
			rma_end(r, req, rc);
			if (waits_for_batches(e))
				break;
		}
		n++;
	}
	return n;
}

unsigned
rma_ep_run(struct plx_rma *r, struct plx_rma_ep *e)
{
	unsigned n = 0;

	if (unlikely(e->n_batches != 0))
		n = rma_batches_run(r, e);
	return waits_for_batches(e) ? n : n + ep_send(r, e);
}

/* The way of execution, if not by the initiator. @return 0 or an error */
static int
rma_choose(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);

	if (o->key != 0 && rma_key_is_good(r, req)) {
		o->how = PLX_RMA_KEY;
		PLX_STAT_INC(r->stat.key);
	} else if (o->kind == PLX_RMA_ATOMIC && o->size == 8 && !o->cpu64) {
		return -EOPNOTSUPP; /* peers use the device for these */
	} else if (o->kind != PLX_RMA_ATOMIC && !o->checked && req->dt == NULL &&
		plx_rma_is_direct(r, o->ep, o->kind)) {
		o->how = PLX_RMA_DEV;
		PLX_STAT_INC(r->stat.dev);
	} else {
		PLX_STAT_INC(r->stat.msg);
	}
	return plx_req_id_get(&r->ids, req, &o->id);
}

/* The first that may wait. The target begins with it at once. Apart, so that others save no registers for it. */
static __rte_noinline void
start_late(struct plx_rma *r, struct plx_rma_ep *e, struct plx_rma_req *o)
{
	rma_set_send(r, e, o);
	if (!rma_late_add(r, o))
		rma_ep_run(r, e);
	else if (e->n_batches == 0 && o->epoch == TAILQ_FIRST(&r->all)->epoch)
		(void)rma_batch_step(r, e);
}

void
plx_rma_start(struct plx_rma *r, struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);
	struct plx_ep *ep = o->ep;
	struct plx_rma_ep *e = plx_rma_ep(ep);
	int rc = o->how == PLX_RMA_COPY ? ep->err : plx_ep_connect(ep);

	o->seq = ++r->seq;
	TAILQ_INSERT_TAIL(&r->all, o, all);
	TAILQ_INSERT_TAIL(&e->ops, o, link);
	if (rc == 0 && o->how == PLX_RMA_MSG)
		rc = rma_choose(r, req);
	else if (rc == 0 && o->how == PLX_RMA_COPY)
		PLX_STAT_INC(r->stat.deferred);
	if (rc != 0) {
		rma_end(r, req, rc);
		return;
	}
	plx_ep_wait(ep, &o->wait, o->wait.conn_id, wait_fail);
	if (unlikely(e->send != NULL)) {
		rma_late_behind(r, o);
	} else if (unlikely(o->late)) {
		start_late(r, e, o);
	} else {
		rma_set_send(r, e, o);
		if (likely(e->n_batches == 0))
			ep_send(r, e);
	}
}

bool
plx_rma_is_taken(struct plx_req *req)
{
	struct plx_rma_req *o = plx_rma_req(req);

	if (o->how != PLX_RMA_KEY || o->kind != PLX_RMA_PUT || o->offset != req->len ||
		req->len > o->ep->peer->mtu || plx_req_is_done(req))
		return false;
	o->nbi = true;
	return true;
}

unsigned
plx_rma_run_slow(struct plx_rma *r)
{
	unsigned n = 0;

	/* Each present ep once: completions may add and remove eps. */
	for (uint32_t i = r->n_eps; i > 0; i--) {
		struct plx_rma_ep *e = TAILQ_FIRST(&r->eps);

		if (e == NULL)
			break;
		TAILQ_REMOVE(&r->eps, e, link);
		TAILQ_INSERT_TAIL(&r->eps, e, link);
		n += rma_ep_run(r, e);
	}
	return n;
}

uint64_t
plx_rma_wait_info(const struct plx_wait *w, struct plx_wait_info *out)
{
	static const char *const ops[] = {"put", "get", "atomic"};
	const struct plx_rma_req *o = container_of(w, struct plx_rma_req, wait);

	if (w->fail != wait_fail)
		return 0;
	*out = (struct plx_wait_info){.op = ops[o->kind], .len = plx_req_of_own(o)->len, .done = o->offset,
		.state = o->n_out != 0 ? "not answered" : o->n_dev != 0 ? "the device moves it" : "not sent"};
	return o->seq;
}

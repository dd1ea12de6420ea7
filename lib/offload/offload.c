/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * offload.c - the receives that devices match, as software shadows them
 *
 * Design notes
 * - Every receive stays in the matching engine until a message matches it, whether a device has
 *   it or not; `req->offload` says where it is. A receive moves once: into a device when it is
 *   posted, or later, when its obstacle is gone; and out of it, but not in again.
 * - If the engine matches a receive that a device has, then the count had not agreed when it was
 *   posted, so the device has not begun to match it: otherwise the device would have taken the
 *   message. That is why withdrawing it by force is safe.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "offload_int.h"
#include "plx_log.h"
#include "plx_wire.h"

PLX_LOG_DEFINE(offload, "plx.offload");

/* A receive in a device. */
struct offload_recv {
	uct_tag_context_t ctx;
	struct plx_req *req; /* NULL: software has matched it, an answer is still to come */
	struct plx_offload_dev *d;
	bool asked; /* the device was asked to return it */
	bool wanted; /* by the application */
	TAILQ_ENTRY(offload_recv) link;
};

#define ROW(field) PLX_STAT_ROW(struct plx_offload_stat, field)
#define GAUGE(field) PLX_STAT_GAUGE(struct plx_offload_stat, field)

const struct plx_stat_row plx_offload_stat_rows[] = {
	ROW(posts), ROW(moves), GAUGE(posted), GAUGE(posted_max), ROW(consumed), ROW(placed),
	ROW(inlined), ROW(finished), ROW(truncated), ROW(withdrawn), ROW(cancels), ROW(cancel_late),
	ROW(syncs), GAUGE(soft), ROW(soft_short), ROW(soft_dt), ROW(soft_order), ROW(soft_source),
	ROW(soft_full), ROW(soft_refused), ROW(demotions),
	PLX_STAT_END,
};

static inline struct offload_recv *
recv_of(uct_tag_context_t *ctx)
{
	return container_of(ctx, struct offload_recv, ctx);
}

/* The device has sent its last answer about it. */
static void
recv_free(struct offload_recv *v)
{
	struct plx_offload_dev *d = v->d;

	TAILQ_REMOVE(&d->held, v, link);
	TAILQ_INSERT_HEAD(&d->free, v, link);
	PLX_STAT_ADD(d->n_held, -1);
	PLX_STAT_ADD(d->o->stat.posted, -1);
	d->o->look = true;
}

/* A receive that only software has. */
struct offload_req {
	PLX_REQ_HEAD;
	struct plx_tag_recv tag; /* plx_req.recv.tag */
	TAILQ_ENTRY(offload_req) link;
};
_Static_assert(offsetof(struct offload_req, tag) == offsetof(struct plx_req, recv.tag), "it is not touched");
_Static_assert(sizeof(struct offload_req) <= PLX_REQ_SIZE, "a request has room for it");

static inline struct offload_req *
soft_of(struct plx_req *req)
{
	return (struct offload_req *)(void *)req;
}

static void
soft_add(struct plx_offload *o, struct plx_req *req)
{
	req->offload = offload_soft_add(&o->soft, &req->recv.tag);
	TAILQ_INSERT_TAIL(&o->soft_list, soft_of(req), link);
	PLX_STAT_INC(o->stat.soft);
}

/* It leaves the receives that only software has. */
static void
soft_unlink(struct plx_offload *o, struct plx_req *req, enum offload_where where)
{
	offload_soft_remove(&o->soft, &req->recv.tag, where);
	TAILQ_REMOVE(&o->soft_list, soft_of(req), link);
	PLX_STAT_ADD(o->stat.soft, -1);
}

static void
soft_remove(struct plx_offload *o, struct plx_req *req)
{
	soft_unlink(o, req, req->offload);
	req->offload = OFFLOAD_NONE;
	o->look = true;
}

static void
stop_posting(struct plx_offload_dev *d)
{
	struct plx_offload *o = d->o;

	bool on = false;

	__atomic_store_n(&d->on, false, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < o->n_devs; i++)
		on |= o->devs[i].on;
	/* relaxed: other threads only display it */
	__atomic_store_n(&o->on, on, __ATOMIC_RELAXED);
	/* A receive that the device returns is after those that were posted later. */
	o->unordered = true;
	PLX_STAT_INC(o->stat.demotions);
}

/* The device returns it, and no message has matched it there. */
static void
recv_back(struct offload_recv *v)
{
	struct plx_offload *o = v->d->o;
	struct plx_req *req = v->req;
	bool wanted = v->wanted;

	recv_free(v);
	if (req == NULL)
		return; /* software has matched it meanwhile */
	req->offload = OFFLOAD_NONE;
	if (wanted)
		o->ops->cancelled(req);
	else
		soft_add(o, req);
}

/* The device has failed and dropped its list: software has all receives. */
static __rte_noinline __rte_cold void
dev_lost(struct plx_offload_dev *d, int err)
{
	struct offload_recv *v;

	PLX_LOG(WARNING, offload, "device %s no longer matches tags: %s", plx_dev_name(d->q->dev),
		strerror(-err));
	if (d->on)
		stop_posting(d);
	while ((v = TAILQ_FIRST(&d->held)) != NULL)
		recv_back(v);
}

static void
on_consumed(uct_tag_context_t *ctx)
{
	struct offload_recv *v = recv_of(ctx);
	struct plx_offload *o = v->d->o;

	PLX_ASSERT(v->req != NULL && v->req->posted);
	v->req->posted = false;
	plx_tag_consume(o->tag, &v->req->recv.tag);
	PLX_STAT_INC(o->stat.consumed);
	if (v->wanted)
		PLX_STAT_INC(o->stat.cancel_late);
}

static int
done_status(struct plx_offload *o, ucs_status_t status)
{
	if (status == UCS_OK)
		return 0;
	if (status != UCS_ERR_MESSAGE_TRUNCATED)
		return -EIO;
	PLX_STAT_INC(o->stat.truncated);
	return -EMSGSIZE;
}

/* Remove the receive and its message from the device. */
static struct plx_req *
recv_end(struct offload_recv *v, uint64_t tag, uint64_t len)
{
	struct plx_req *req = v->req;

	v->d->o->n_done++;
	recv_free(v);
	req->offload = OFFLOAD_NONE;
	req->recv.info_tag = tag;
	req->recv.info_len = len;
	return req;
}

static void
on_completed(uct_tag_context_t *ctx, uct_tag_t stag, uint64_t imm, size_t length, void *inline_data,
	ucs_status_t status)
{
	struct offload_recv *v = recv_of(ctx);
	struct plx_offload *o = v->d->o;
	struct plx_req *req;

	(void)imm; /* nothing is sent besides the data */
	if (status == UCS_ERR_CANCELED) {
		recv_back(v);
		return;
	}
	req = recv_end(v, stag, length);
	if (status == UCS_OK && inline_data != NULL) {
		PLX_STAT_INC(o->stat.inlined);
		plx_req_copy_in(req, 0, inline_data, length);
	} else if (status == UCS_OK) {
		PLX_STAT_INC(o->stat.placed);
	}
	plx_req_complete(req, done_status(o, status));
}

static void
on_rndv(uct_tag_context_t *ctx, uct_tag_t stag, const void *header, unsigned header_length,
	ucs_status_t status, unsigned flags)
{
	struct offload_recv *v = recv_of(ctx);
	struct plx_offload *o = v->d->o;
	struct plx_req *req = recv_end(v, stag, 0);

	(void)flags; /* a plx_rx says where its data is */
	PLX_ASSERT(status != UCS_OK || header_length == sizeof(struct plx_rx));
	(void)header_length;
	if (status != UCS_OK) {
		plx_req_complete(req, done_status(o, status));
		return;
	}
	PLX_STAT_INC(o->stat.finished);
	o->ops->finish(o->arg, req, header);
}

static uint32_t
list_n(const struct plx_queue *q)
{
	return RTE_MIN(q->tag_caps.list_n, PLX_OFFLOAD_MAX_RECVS);
}

static void
dev_open(struct plx_offload *o, struct plx_queue *q, struct offload_recv *recvs)
{
	struct plx_offload_dev *d = &o->devs[o->n_devs++];

	d->o = o;
	d->q = q;
	d->on = list_n(q) != 0;
	TAILQ_INIT(&d->held);
	TAILQ_INIT(&d->free);
	for (uint32_t i = 0; i < list_n(q); i++) {
		recvs[i].d = d;
		recvs[i].ctx.tag_consumed_cb = on_consumed;
		recvs[i].ctx.completed_cb = on_completed;
		recvs[i].ctx.rndv_cb = on_rndv;
		TAILQ_INSERT_TAIL(&d->free, &recvs[i], link);
	}
	o->on |= d->on;
}

int
plx_offload_open(struct plx_offload *o, const struct plx_offload_params *params)
{
	bool senders = params->n_queues > 1 && params->sender_mask != 0;
	uint32_t n = 0;

	memset(o, 0, sizeof(*o));
	TAILQ_INIT(&o->soft_list);
	o->tag = params->tag;
	o->len_min = params->len_min;
	o->withdrawn_max = params->withdrawn_max;
	o->sender_mask = params->sender_mask;
	o->ops = params->ops;
	o->arg = params->arg;
	for (uint32_t i = 0; i < params->n_queues; i++)
		o->n_recvs += list_n(params->queues[i]);
	if (o->n_recvs == 0)
		return 0;
	o->recvs = calloc(o->n_recvs, sizeof(o->recvs[0]));
	if (senders)
		o->senders = calloc(PLX_OFFLOAD_MAX_SENDERS, sizeof(o->senders[0]));
	if (o->recvs == NULL || (senders && o->senders == NULL)) {
		plx_offload_close(o);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < params->n_queues; i++) {
		dev_open(o, params->queues[i], &o->recvs[n]);
		n += list_n(params->queues[i]);
	}
	return 0;
}

void
plx_offload_close(struct plx_offload *o)
{
	free(o->recvs);
	free(o->senders);
	o->recvs = NULL;
	o->senders = NULL;
}

/* The device that may have it, apart from the order; NULL: none, and *why is the counter. */
static struct plx_offload_dev *
choose(struct plx_offload *o, const struct plx_req *req, uint64_t **why)
{
	struct plx_offload_dev *d = offload_dev_of(o, &req->recv.tag);

	if (req->dt != NULL && req->dt->mem_type == 0)
		*why = &o->stat.soft_dt;
	else if (d == NULL || !d->on)
		*why = &o->stat.soft_source;
	else if (req->dt != NULL && !plx_queue_takes(d->q, req->dt->mem_type))
		*why = &o->stat.soft_dt;
	else if (req->len < o->len_min || req->len < d->q->tag_caps.len_min)
		*why = &o->stat.soft_short;
	else
		return d;
	return NULL;
}

static void
recv_take(struct plx_offload_dev *d, struct offload_recv *v, struct plx_req *req)
{
	struct plx_offload *o = d->o;

	v->req = req;
	v->asked = false;
	v->wanted = false;
	TAILQ_REMOVE(&d->free, v, link);
	TAILQ_INSERT_TAIL(&d->held, v, link);
	PLX_STAT_INC(d->n_held);
	d->n_given++;
	req->offload = OFFLOAD_RECVS + (v - o->recvs);
	PLX_STAT_INC(o->stat.posts);
	PLX_STAT_INC(o->stat.posted);
	if (o->stat.posted > o->stat.posted_max)
		PLX_STAT_INC(o->stat.posted_max);
}

/* Post it to the device. @return NULL: the device has it; else the counter */
static uint64_t *
give(struct plx_offload_dev *d, struct plx_req *req)
{
	struct plx_dev_recv recv = {.tag = req->recv.tag.tag, .mask = req->recv.tag.mask,
		.buf = req->buf, .len = req->len, .mem_type = plx_req_mem_type(req)};
	struct offload_recv *v = TAILQ_FIRST(&d->free);
	int rc;

	if (v == NULL)
		return &d->o->stat.soft_full;
	recv.ctx = &v->ctx;
	rc = plx_queue_tag_post(d->q, &recv, d->seen);
	if (rc == -ENOSPC)
		return &d->o->stat.soft_full;
	if (rc != 0) {
		if (rc != -EAGAIN && rc != -EOPNOTSUPP)
			dev_lost(d, rc);
		return &d->o->stat.soft_refused;
	}
	d->told = d->seen;
	recv_take(d, v, req);
	return NULL;
}

void
plx_offload_post(struct plx_offload *o, struct plx_req *req)
{
	struct plx_offload_dev *d;
	uint64_t *why;

	if (!o->on) /* given up: software matches alone */
		return;
	d = choose(o, req, &why);
	if (d != NULL)
		why = offload_soft_conflicts(&o->soft, &req->recv.tag) ? &o->stat.soft_order
								       : give(d, req);
	if (why == NULL)
		return;
	PLX_STAT_INC(*why);
	soft_add(o, req);
}

/* @return whether one message may match r and one of these */
static bool
may_meet_any(const struct plx_tag_recv *r, struct plx_req *const *reqs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (offload_recvs_conflict(r, &reqs[i]->recv.tag))
			return true;
	return false;
}

/* The device to which a software receive can move now, once the passed ones are skipped. */
static struct plx_offload_dev *
moves_to(struct plx_offload *o, const struct plx_req *req, struct plx_req *const *passed, uint32_t n)
{
	uint64_t *why;
	struct plx_offload_dev *d = choose(o, req, &why);

	if (d == NULL || TAILQ_EMPTY(&d->free) || may_meet_any(&req->recv.tag, passed, n))
		return NULL;
	return d;
}

/*
 * In the order posted: the earliest permitted one moves. A later one in a device can not
 * match the messages of this one, or it would have stayed behind it.
 */
static __rte_noinline void
move_in(struct plx_offload *o)
{
	struct plx_req *passed[PLX_OFFLOAD_LOOK];
	struct offload_req *soft, *next;
	uint32_t n = 0;

	for (soft = TAILQ_FIRST(&o->soft_list); soft != NULL && n < PLX_OFFLOAD_LOOK; soft = next) {
		struct plx_req *req = plx_req_of_own(soft);
		struct plx_offload_dev *d = moves_to(o, req, passed, n);
		enum offload_where where = req->offload;

		next = TAILQ_NEXT(soft, link);
		if (d == NULL || give(d, req) != NULL) {
			passed[n++] = req;
			if (o->unordered)
				return;
			continue;
		}
		soft_unlink(o, req, where);
		PLX_STAT_INC(o->stat.moves);
	}
}

/* Withdraw a receive. @return false: the device has failed, and every receive is back */
static bool
ask_back(struct offload_recv *v, bool force)
{
	struct plx_offload_dev *d = v->d;
	int rc;

	d->told = d->seen;
	rc = plx_queue_tag_cancel(d->q, &v->ctx, force, d->seen);
	if (unlikely(rc != 0))
		dev_lost(d, rc);
	return rc == 0;
}

void
plx_offload_matched(struct plx_offload *o, struct plx_req *req)
{
	struct offload_recv *v;

	if (req->offload < OFFLOAD_RECVS) {
		soft_remove(o, req);
		return;
	}
	v = &o->recvs[req->offload - OFFLOAD_RECVS];
	req->offload = OFFLOAD_NONE;
	v->req = NULL;
	v->d->n_withdrawn++;
	PLX_STAT_INC(o->stat.withdrawn);
	if (!v->asked && ask_back(v, true))
		recv_free(v);
}

bool
plx_offload_cancel(struct plx_offload *o, struct plx_req *req)
{
	struct offload_recv *v;

	if (req->offload < OFFLOAD_RECVS) {
		soft_remove(o, req);
		return false;
	}
	v = &o->recvs[req->offload - OFFLOAD_RECVS];
	v->wanted = true;
	if (v->asked)
		return true;
	v->asked = true;
	PLX_STAT_INC(o->stat.cancels);
	(void)ask_back(v, false); /* on failure it is cancelled with all the others */
	return true;
}

void
plx_offload_seen(struct plx_offload *o, uint32_t i, const struct plx_rx *rx, uint16_t n)
{
	struct plx_offload_dev *d = &o->devs[i];
	uint64_t tag;
	int rc;

	for (uint16_t k = 0; k < n; k++) {
		if (!plx_wire_is_tagged(rx[k].op, rx[k].len))
			continue;
		d->seen++;
		if (o->senders == NULL)
			continue;
		memcpy(&tag, rx[k].data, sizeof(tag));
		offload_sender_learn(o, tag, i);
	}
	/* Otherwise receives posted meanwhile would never match, or the device would lose count. */
	if (d->told == d->seen ||
		(d->n_held == 0 && (uint16_t)(d->seen - d->told) < PLX_OFFLOAD_TELL))
		return;
	rc = plx_queue_tag_post(d->q, NULL, d->seen);
	if (rc == 0) {
		d->told = d->seen;
		PLX_STAT_INC(o->stat.syncs);
	} else if (rc != -EAGAIN) {
		dev_lost(d, rc);
	}
}

static struct offload_recv *
last_to_ask(const struct plx_offload_dev *d)
{
	struct offload_recv *v;

	TAILQ_FOREACH_REVERSE(v, &d->held, offload_list, link)
	{
		if (!v->asked)
			break;
	}
	return v;
}

void
plx_offload_demote(struct plx_offload *o, uint32_t i)
{
	struct plx_offload_dev *d = &o->devs[i];
	struct offload_recv *v;

	if (!d->on)
		return;
	stop_posting(d);
	/* Last first: a receive that stays in the device is never later than one that returned. */
	while ((v = last_to_ask(d)) != NULL) {
		v->asked = true;
		if (!ask_back(v, false))
			return;
	}
}

/* Messages come before their receives are active: each costs two commands and saves nothing. */
static void
pays(struct plx_offload *o, uint32_t i)
{
	struct plx_offload_dev *d = &o->devs[i];
	bool hopeless = o->withdrawn_max != 0 &&
		d->n_withdrawn * 100ull >= (uint64_t)o->withdrawn_max * d->n_given;

	if (hopeless) {
		PLX_LOG(NOTICE, offload, "device %s no longer matches tags: %u of %u receives were "
			"taken back", plx_dev_name(d->q->dev), d->n_withdrawn, d->n_given);
		plx_offload_demote(o, i);
	}
	d->n_given = d->n_withdrawn = 0;
}

void
plx_offload_tend_slow(struct plx_offload *o)
{
	o->look = false;
	for (uint32_t i = 0; i < o->n_devs; i++)
		if (o->devs[i].n_given >= PLX_OFFLOAD_TRIAL && o->devs[i].on)
			pays(o, i);
	if (o->on && !o->unordered)
		move_in(o);
}

void
plx_offload_dump(FILE *f, const struct plx_offload *o)
{
	const struct plx_stat_row *row;

	for (uint32_t i = 0; i < o->n_devs; i++) {
		const struct plx_offload_dev *d = &o->devs[i];

		/* relaxed: the application's side reads it */
		fprintf(f, "#   device %s %s, holds %" PRIu64 " of %" PRIu32 "\n",
			plx_dev_name(d->q->dev),
			__atomic_load_n(&d->on, __ATOMIC_RELAXED) ? "matches" : "does not match",
			__atomic_load_n(&d->n_held, __ATOMIC_RELAXED), list_n(d->q));
	}
	for (row = plx_offload_stat_rows; row->name != NULL; row++)
		fprintf(f, "#   %-20s %" PRIu64 "\n", row->name, plx_stat_read(&o->stat, row));
}

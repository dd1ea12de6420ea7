/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_stats.c - the methods that show reactors, workers, eps, devices, matching, memory
 *
 * Design notes
 * - A worker stays valid because plx_worker_each() locks the list of workers, and an ep because
 *   plx_worker_users_each() locks the list of its handles. No owner of a worker takes either lock
 *   in a turn, so a worker without turns is shown as well. The owner's fields are read with
 *   relaxed loads, one by one: two fields of one answer may be a turn apart.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plx_conf.h"
#include "plx_mem.h"
#include "plx_reactor.h"
#include "plx_worker.h"
#include "rpc_int.h"
#include "rpc_stats.h"

/* A field that another thread writes: any recent value is fine. */
#define STATS_READ(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static json_t *
stats_counters(const void *obj, const struct plx_stat_row *row)
{
	json_t *out = json_object();

	for (; row->name != NULL; row++)
		json_object_set_new(out, row->name, json_integer(plx_stat_read(obj, row)));
	return out;
}

const char *
rpc_uid(uint64_t uid, char *text)
{
	snprintf(text, RPC_UID_LEN, "%016" PRIx64, uid);
	return text;
}

static json_t *
stats_reactor(const struct plx_reactor_info *info)
{
	uint64_t busy = info->stat.busy_ticks, all = busy + info->stat.idle_ticks;

	return json_pack("{s:I, s:b, s:I, s:f, s:o}", "lcore", (json_int_t)info->lcore, "beside", info->beside,
		"pollers", (json_int_t)info->n_pollers, "busy_share", all != 0 ? (double)busy / all : 0.0,
		"counters", stats_counters(&info->stat, plx_reactor_stat_rows));
}

int
rpc_reactor_get_list(const json_t *params, json_t **result, char *err, void *arg)
{
	struct plx_reactor_info info;
	int rc = plx_rpc_unpack(params, err, "{}");

	(void)arg;
	if (rc < 0)
		return rc;
	*result = json_array();
	for (unsigned int i = 0; plx_reactor_info(i, &info) == 0; i++)
		json_array_append_new(*result, stats_reactor(&info));
	return 0;
}

int
rpc_mem_get_stats(const json_t *params, json_t **result, char *err, void *arg)
{
	int rc = plx_rpc_unpack(params, err, "{}");
	uint64_t total, huge;

	(void)arg;
	if (rc < 0)
		return rc;
	plx_mem_stats(&total, &huge);
	*result = json_pack(
		"{s:I, s:I}", "heap_bytes", (json_int_t)total, "heap_huge_bytes", (json_int_t)huge);
	return 0;
}

/* A walk over all workers, of which all or one are shown. */
struct stats_walk {
	const struct rpc_view *view;
	const json_t *worker; /* its id, NULL: all */
	json_t *list;
	bool found;
};

/* The youngest worker comes first: insert its objects before the present ones. */
static void
stats_visit(struct plx_worker *w, void *arg)
{
	struct stats_walk *walk = arg;
	const struct rpc_view *v = walk->view;
	json_t *list;

	if (walk->worker != NULL && json_integer_value(walk->worker) != w->id)
		return;
	walk->found = true;
	list = json_array();
	if (v->show != NULL)
		v->show(w, list);
	else
		json_array_append_new(list, json_pack("{s:I, s:o}", "worker", (json_int_t)w->id, "counters",
						    stats_counters((const char *)w + v->offset, v->rows)));
	json_array_extend(list, walk->list);
	json_decref(walk->list);
	walk->list = list;
}

int
rpc_not_worker(const json_t *id, char *err)
{
	if (json_is_integer(id))
		snprintf(err, PLX_RPC_ERR_MAX, "no worker %" JSON_INTEGER_FORMAT, json_integer_value(id));
	else
		snprintf(err, PLX_RPC_ERR_MAX, "\"worker\" must be the id of a worker, a number");
	return -EINVAL;
}

int
rpc_workers_get(const json_t *params, json_t **result, char *err, void *arg)
{
	struct stats_walk walk = {.view = arg};
	int rc = plx_rpc_unpack(params, err, "{s?o}", "worker", &walk.worker);

	if (rc < 0)
		return rc;
	if (walk.worker != NULL && !json_is_integer(walk.worker))
		return rpc_not_worker(walk.worker, err);
	walk.list = json_array();
	plx_worker_each(stats_visit, &walk);
	if (walk.list == NULL)
		return -ENOMEM;
	*result = walk.list;
	return walk.worker == NULL || walk.found ? 0 : rpc_not_worker(walk.worker, err);
}

json_t *
rpc_worker_name(const struct plx_worker *w)
{
	json_t *name = json_string(w->name);

	return name != NULL ? name : json_string("?");
}

/* The two counts are read one after the other, so the difference may be inexact, but not
 * below 0. */
static uint64_t
stats_pool_used(const struct plx_pool *p)
{
	uint64_t n = STATS_READ(p->n_objs), n_free = STATS_READ(p->n_free);

	return n > n_free ? n - n_free : 0;
}

static json_t *
stats_reqs(const struct plx_pool *p)
{
	uint64_t n = STATS_READ(p->n_objs);

	return json_pack("{s:I, s:I, s:I}", "used", (json_int_t)stats_pool_used(p), "made",
		(json_int_t)n, "bytes", (json_int_t)(n * p->obj_len));
}

static json_t *
stats_devices(const struct plx_worker *w)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < w->n_queues; i++)
		if (i == 0 || w->devs[i] != w->devs[i - 1]) /* one queue for each port */
			json_array_append_new(out, json_string(plx_dev_name(w->devs[i])));
	return out;
}

/* The lcore of its reactor; null for an inline worker. */
static json_t *
stats_lcore(const struct plx_worker *w)
{
	int lcore = plx_reactor_lcore(&w->poller);

	return lcore >= 0 ? json_integer(lcore) : json_null();
}

static void
stats_show_worker(struct plx_worker *w, json_t *list)
{
	char uid[RPC_UID_LEN];

	json_array_append_new(list,
		json_pack("{s:I, s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "id",
			(json_int_t)w->id, "name", rpc_worker_name(w), "uid", rpc_uid(w->uid, uid),
			"mode", w->dedicated ? "dedicated" : "inline", "reactor", stats_lcore(w),
			"devices", stats_devices(w),
			"eps", (json_int_t)stats_pool_used(&w->eps.pool), "kept_bytes",
			(json_int_t)STATS_READ(w->msgs.bytes), "reqs", stats_reqs(&w->reqs.pool),
			"counters", stats_counters(&w->stat, plx_worker_stat_rows), "ep_counters",
			stats_counters(&w->eps.stat, plx_ep_stat_rows), "chan_counters",
			stats_counters(&w->chans.stat, plx_chan_stat_rows), "cm_counters",
			stats_counters(&w->conns.cm.stat, plx_cm_stat_rows)));
}

/* A worker to move to another reactor. */
struct worker_move {
	json_int_t worker, lcore;
	bool found;
	int rc;
};

static void
worker_move_visit(struct plx_worker *w, void *arg)
{
	struct worker_move *m = arg;

	if (m->worker != w->id)
		return;
	m->found = true;
	m->rc = m->lcore >= 0 && m->lcore <= UINT32_MAX
			? plx_reactor_move(&w->poller, (unsigned int)m->lcore)
			: -ENODEV;
}

int
rpc_worker_move(const json_t *params, json_t **result, char *err, void *arg)
{
	struct worker_move m = {0};
	int rc = plx_rpc_unpack(params, err, "{s:I, s:I}", "worker", &m.worker, "lcore", &m.lcore);

	(void)arg;
	if (rc < 0)
		return rc;
	plx_worker_each(worker_move_visit, &m);
	if (!m.found) {
		snprintf(err, PLX_RPC_ERR_MAX, "no worker %" JSON_INTEGER_FORMAT, m.worker);
		return -EINVAL;
	}
	if (m.rc != 0)
		snprintf(err, PLX_RPC_ERR_MAX,
			"no reactor on lcore %" JSON_INTEGER_FORMAT ", or the worker is inline", m.lcore);
	else
		*result = json_true();
	return m.rc;
}

static const char *
stats_ep_state(const struct plx_ep *ep, int rc)
{
	if (rc != 0)
		return "failed";
	return STATS_READ(ep->connected) ? "connected" : "new";
}

static json_t *
stats_ep(const struct plx_worker *w, const struct plx_ep *ep)
{
	const struct plx_peer *peer = ep->peer;
	int rc = STATS_READ(ep->err);
	char uid[RPC_UID_LEN];

	return json_pack("{s:I, s:s, s:s, s:s?, s:s, s:s?, s:I, s:b, s:I, s:I, s:I}", "worker",
		(json_int_t)w->id, "peer", rpc_uid(peer->uid, uid), "device",
		plx_dev_name(peer->q->dev), "port", plx_queue_port(peer->q), "state", stats_ep_state(ep, rc), "err",
		rc != 0 ? strerrordesc_np(-rc) : NULL, "handles", (json_int_t)STATS_READ(ep->refs),
		"pending", (int)STATS_READ(ep->stalled), "waits",
		(json_int_t)STATS_READ(ep->n_waits), "kept_msgs",
		(json_int_t)STATS_READ(ep->n_msgs), "mtu", (json_int_t)STATS_READ(peer->mtu));
}

struct stats_eps {
	const struct plx_worker *w;
	json_t *list;
	json_t *seen; /* keys are addresses of eps: several handles may share one */
};

static void
stats_visit_user(struct plx_ep_user *user, void *arg)
{
	struct stats_eps *eps = arg;
	char key[RPC_UID_LEN];

	if (user->ep->stub) /* no peer to show */
		return;
	rpc_uid((uintptr_t)user->ep, key);
	if (json_object_get(eps->seen, key) != NULL)
		return;
	json_object_set_new(eps->seen, key, json_true());
	json_array_append_new(eps->list, stats_ep(eps->w, user->ep));
}

static void
stats_show_eps(struct plx_worker *w, json_t *list)
{
	struct stats_eps eps = {.w = w, .list = list, .seen = json_object()};

	plx_worker_users_each(w, stats_visit_user, &eps);
	json_decref(eps.seen);
}

uint64_t
rpc_queue_uid(struct plx_queue *q)
{
	struct plx_addr addr;
	uint64_t uid;

	plx_queue_addr(q, &addr);
	memcpy(&uid, addr.bytes, sizeof(uid));
	return uid;
}

static void
stats_show_queues(struct plx_worker *w, json_t *list)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const struct plx_stat_row *rows;
		const void *own = plx_queue_drv_stats(w->queues[i], &rows);
		json_t *counters = stats_counters(&w->queues[i]->stat, plx_queue_stat_rows);
		char text[RPC_UID_LEN];

		if (own != NULL)
			json_object_update_new(counters, stats_counters(own, rows));
		json_array_append_new(list,
			json_pack("{s:I, s:s, s:s?, s:s, s:o}", "worker", (json_int_t)w->id, "device",
				plx_dev_name(w->devs[i]), "port", plx_queue_port(w->queues[i]), "uid",
				rpc_uid(rpc_queue_uid(w->queues[i]), text), "counters", counters));
	}
}

/* Wake a sleeping reactor. */
static void
stats_wake(struct plx_worker *w, void *arg)
{
	(void)arg;
	(void)plx_worker_signal(w);
}

int
rpc_device_fail(const json_t *params, json_t **result, char *err, void *arg)
{
	const char *name;
	int rc = plx_rpc_unpack(params, err, "{s:s}", "name", &name);

	(void)arg;
	if (rc < 0)
		return rc;
	if (plx_dev_fail(name) != 0) {
		snprintf(err, PLX_RPC_ERR_MAX, "no device \"%.64s\" is open", name);
		return -EINVAL;
	}
	plx_worker_each(stats_wake, NULL);
	*result = json_true();
	return 0;
}

static void
stats_show_tag(struct plx_worker *w, json_t *list)
{
	json_array_append_new(
		list, json_pack("{s:I, s:o, s:{s:b, s:o}}", "worker", (json_int_t)w->id, "counters",
			      stats_counters(plx_tag_stats(w->tag), plx_tag_stat_rows), "offload",
			      "on", __atomic_load_n(&w->offload.on, __ATOMIC_RELAXED), "counters",
			      stats_counters(&w->offload.stat, plx_offload_stat_rows)));
}

static void
stats_show_rndv(struct plx_worker *w, json_t *list)
{
	json_array_append_new(
		list, json_pack("{s:I, s:s, s:o}", "worker", (json_int_t)w->id, "scheme",
			      plx_conf_row(PLX_CONF_RNDV_SCHEME)->choices[w->rndv.scheme],
			      "counters", stats_counters(&w->rndv.stat, plx_rndv_stat_rows)));
}

const struct rpc_view rpc_views[] = {
	[RPC_VIEW_WORKER] = {.show = stats_show_worker},
	[RPC_VIEW_EPS] = {.show = stats_show_eps},
	[RPC_VIEW_QUEUES] = {.show = stats_show_queues},
	[RPC_VIEW_TAG] = {.show = stats_show_tag},
	[RPC_VIEW_RNDV] = {.show = stats_show_rndv},
	[RPC_VIEW_RMA] = {.rows = plx_rma_stat_rows, .offset = offsetof(struct plx_worker, rma.stat)},
	[RPC_VIEW_AM] = {.rows = plx_am_stat_rows, .offset = offsetof(struct plx_worker, am.stat)},
	[RPC_VIEW_STREAM] = {.rows = plx_stream_stat_rows, .offset = offsetof(struct plx_worker, streams.stat)},
};

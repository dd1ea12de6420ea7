/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * worker.c - creating and destroying workers, and their handles
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cycles.h>

#include "plx_proc.h"
#include "worker_int.h"

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, plx_worker) list;
	uint32_t next_id;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Linked lists are consistent in the child: no thread is in the middle of a change. */
static void
before_fork(void)
{
	bool in_callback = plx_fork_callbacks != 0;
	struct plx_worker *w;

	pthread_mutex_lock(&all.lock);
	LIST_FOREACH(w, &all.list, link) {
		pthread_mutex_lock(&w->users_lock);
		if (w->mine == NULL || w->mine(w)) /* without a lock it may be another thread's: a copy too many */
			in_callback |= plx_worker_in_callback(w);
	}
	if (in_callback)
		plx_mem_copy_for_child();
}

static void
after_fork(void)
{
	struct plx_worker *w;

	plx_mem_drop_copy();
	LIST_FOREACH(w, &all.list, link)
		pthread_mutex_unlock(&w->users_lock);
	pthread_mutex_unlock(&all.lock);
}

/*
 * The worker belongs to the parent. A turn of the child would take the parent's messages,
 * and the child's messages would count as the parent's. There is no reactor any more, so
 * operations for it complete, or fail, at once.
 */
static void
lose(struct plx_worker *w)
{
	struct plx_ep_user *user;

	w->eps.due = PLX_DUE_WORK | PLX_DUE_TURN;
	w->in_poll = true;
	w->wake.on = false;
	w->dedicated = false;
	plx_req_pool_lose(&w->reqs);
	atomic_store_explicit(&w->poller.reactor, NULL, memory_order_relaxed);
	for (uint32_t i = 0; i < w->n_queues; i++)
		plx_queue_lose(w->queues[i]);
	plx_ep_stub_open(&w->orphan, &w->eps, 0);
	plx_ep_stub_fail(&w->orphan, -ECONNRESET);
	LIST_FOREACH(user, &w->users, all) {
		atomic_store_explicit(&user->err, -ECONNRESET, memory_order_relaxed);
		user->ep = &w->orphan.ep; /* the real one and its streams are in pools of the parent */
		user->stream = NULL;
	}
	if (w->tag != NULL)
		plx_tag_forget(w->tag);
	worker_conns_lose(w);
	if (w->lost != NULL)
		w->lost(w);
}

static void
after_fork_in_child(void)
{
	struct plx_worker *w;

	LIST_FOREACH(w, &all.list, link) {
		lose(w);
		pthread_mutex_unlock(&w->users_lock);
	}
	LIST_INIT(&all.list);
	pthread_mutex_unlock(&all.lock);
}

RTE_INIT(worker_watch_forks)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

#define ROW(field) PLX_STAT_ROW(struct plx_worker_stat, field)

const struct plx_stat_row plx_worker_stat_rows[] = {
	ROW(turns), ROW(busy_turns), ROW(yields), ROW(sleeps), ROW(tag_sends), ROW(tag_recvs),
	ROW(tag_quick), ROW(eager_bytes_kept), ROW(eager_in_place), ROW(rx_drop_bad_op),
	ROW(rx_drop_bad_frag), ROW(rx_drop_no_memory), ROW(rx_drop_refused), ROW(submits),
	ROW(direct),
	PLX_STAT_END,
};

void
worker_ep_failing(struct plx_worker *w, struct plx_ep *ep, int err)
{
	struct plx_worker_ep *e = plx_worker_ep(ep);

	if (e->failing_err != 0)
		return;
	e->failing_err = err;
	plx_eps_need_turn(&w->eps);
	SLIST_INSERT_HEAD(&w->failing, e, failing);
}

static void
on_peer_dead(struct plx_peer *peer)
{
	if (peer->user != NULL)
		worker_ep_failing(peer->q->owner, peer->user, peer->err);
}

static void
on_ep_failed(struct plx_ep *ep, int err)
{
	struct plx_worker *w = ep->peer->q->owner;

	plx_rma_ep_failed(&w->rma, ep, err);
	plx_chans_ep_failed(&w->chans, ep);
	plx_eps_need_turn(&w->eps); /* this progress or the next notifies the program */
	/* pairs with the acquire in the face's progress */
	atomic_fetch_add_explicit(&w->n_failed, 1, memory_order_release);
}

static void
check_peers(struct plx_timer *t, uint64_t now_ticks)
{
	struct plx_worker *w = container_of(t, struct plx_worker, check);

	for (uint32_t i = 0; i < w->n_queues; i++)
		plx_queue_control(w->queues[i]);
	plx_eps_sweep(&w->eps);
	worker_waits_note(w, now_ticks);
	plx_timer_arm(&w->timers, t, now_ticks + w->check_ticks);
}

/*
 * Which queues the turns look at: all up to the last that does not rest. A worker whose other queues rest is as quiet
 * as if it had only one.
 */
static void
poll_those_awake(struct plx_worker *w)
{
	w->n_polled = w->n_holding = 0;
	for (uint32_t i = 0; i < w->n_queues; i++) {
		if (!w->queues[i]->rests)
			w->n_polled = (uint8_t)(i + 1);
		if (!w->queues[i]->rests && plx_queue_holds(w->queues[i]))
			w->holding[w->n_holding++] = w->queues[i];
	}
	w->may_be_quiet = !w->dedicated && w->n_polled == 1 && !w->offloads && w->n_holding == 0 &&
			  plx_queue_looks(w->queues[0]);
	plx_eps_need_turn(&w->eps);
}

static void
on_rouse(struct plx_queue *q)
{
	poll_those_awake(q->owner);
}

#define GLANCE_US 500 /* between two looks at queues that rest: a peer may come to them */

static void
glance(struct plx_timer *t, uint64_t now_ticks)
{
	struct plx_worker *w = container_of(t, struct plx_worker, glance);
	bool rests = false;

	for (uint32_t i = w->n_polled; i < w->n_queues; i++) {
		plx_queue_control(w->queues[i]);
		rests |= w->queues[i]->rests;
	}
	if (rests)
		plx_timer_arm(&w->timers, t, now_ticks + GLANCE_US * rte_get_tsc_hz() / 1000000);
}

/* The setting lists possible devices; only a present one that does not open is an error. */
static void
device_missing(const char *name, int rc)
{
	if (rc == -ENODEV)
		PLX_LOG(INFO, worker, "no device %s here", name);
	else
		PLX_LOG(ERR, worker, "device %s: %s", name, strerror(-rc));
}

/* One queue at a port of a device. */
static int
open_queue(struct plx_worker *w, const struct plx_conf *conf, const char *name, unsigned port)
{
	struct plx_dev **dev = &w->devs[w->n_queues];
	struct plx_queue **q = &w->queues[w->n_queues];
	int rc = plx_dev_open(name, conf, dev);

	if (rc != 0)
		return rc;
	rc = plx_queue_open_port(*dev, conf, port, w, q);
	if (rc == 0 && !plx_queue_is_sure(*q)) {
		PLX_LOG(ERR, worker, "device %s may lose or reorder messages, which endpoints do not repair: not used", name);
		plx_queue_close(*q);
		rc = -EPROTONOSUPPORT;
	}
	if (rc != 0) {
		plx_dev_close(*dev);
		return rc;
	}
	(*q)->on_dead = on_peer_dead;
	(*q)->turns = &w->stat.turns;
	(*q)->on_group = worker_on_group;
	(*q)->on_joined = worker_on_joined;
	(*q)->on_lossy = worker_on_lossy;
	if ((*q)->group_mtu != 0 && w->chans.group_q == NULL)
		w->chans.group_q = *q;
	(*q)->on_rouse = on_rouse;
	w->n_queues++;
	return 0;
}

/* Open every device of the setting, at all its ports; at least one must open. */
static int
open_queues(struct plx_worker *w, const struct plx_conf *conf)
{
	const char *list = plx_conf_str(conf, PLX_CONF_DEVICES);
	char name[PLX_CONF_STR_MAX];
	int rc, err = -ENODEV;

	while (plx_conf_next(&list, name, sizeof(name))) {
		for (unsigned port = 0; port < PLX_DEV_PORTS && w->n_queues < PLX_DEV_MAX; port++) {
			rc = open_queue(w, conf, name, port);
			if (rc == -ENODEV && port != 0)
				break;
			if (rc == 0)
				continue;
			err = rc;
			device_missing(name, rc);
		}
	}
	return w->n_queues > 0 ? 0 : err;
}

static void
close_queues(struct plx_worker *w)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		plx_queue_close(w->queues[i]);
		plx_dev_close(w->devs[i]);
	}
}

static const struct plx_offload_ops offload_ops = {
	.finish = worker_finish_recv,
	.cancelled = worker_cancel_recv,
};

static int
open_offload(struct plx_worker *w, const struct plx_worker_params *params)
{
	const struct plx_offload_params p = {.queues = w->queues, .n_queues = w->n_queues,
		.tag = w->tag, .len_min = plx_conf_u64(params->conf, PLX_CONF_TAG_OFFLOAD_MIN),
		.withdrawn_max = plx_conf_u64(params->conf, PLX_CONF_TAG_OFFLOAD_WITHDRAWN),
		.sender_mask = params->sender_mask, .ops = &offload_ops, .arg = w};

	int rc = plx_offload_open(&w->offload, &p);

	w->offloads = w->offload.n_recvs != 0;
	return rc;
}

/* @return the shortest length that is announced; 0: empty messages as well */
static uint64_t
eager_end(const struct plx_conf *conf)
{
	uint64_t max = plx_conf_u64(conf, PLX_CONF_EAGER_MAX);

	return max == 0 && plx_conf_u64(conf, PLX_CONF_EAGER_EMPTY) == 0 ? 0 : max + 1;
}

/* The engines' state of an ep; the others' begins with zeros. */
static void
ep_init_engines(struct plx_ep *ep)
{
	struct plx_worker_ep *e = plx_worker_ep(ep);

	TAILQ_INIT(&e->flushes);
	TAILQ_INIT(&e->closes);
	plx_rma_ep_init(ep);
}

static int
init_fields(struct plx_worker *w, const struct plx_worker_params *params)
{
	const struct plx_conf *conf = params->conf;
	int rc, rma_rc;

	w->forks = plx_forks;
	w->lost = params->lost;
	w->mine = params->mine;
	w->dedicated = plx_reactor_count() > 0;
	w->app_work = w->dedicated ? WORKER_APP_DEDICATED : 0;
	w->conns.cm.epfd = -1;
	w->conns.transport = plx_conf_u64(conf, PLX_CONF_CM_TRANSPORT);
	w->conns.done_ms = plx_conf_u64(conf, PLX_CONF_CM_DONE_MS);
	w->turn_due = PLX_WORKER_TURN_EVERY;
	w->waits = (uint8_t)plx_conf_u64(conf, PLX_CONF_WORKER_WAIT);
	w->sleep_us = plx_conf_u64(conf, PLX_CONF_WORKER_SLEEP_US);
	w->kept_max = plx_conf_u64(conf, PLX_CONF_TAG_UNEXPECTED_MAX);
	w->check_ticks = plx_conf_u64(conf, PLX_CONF_PEER_CHECK_MS) * rte_get_tsc_hz() / 1000;
	TAILQ_INIT(&w->flushes);
	TAILQ_INIT(&w->flushing);
	SLIST_INIT(&w->failing);
	LIST_INIT(&w->users);
	pthread_mutex_init(&w->users_lock, NULL);
	snprintf(w->name, sizeof(w->name), "%s", params->name != NULL ? params->name : "");
	plx_timers_init(&w->timers);
	w->waits_of.looked_ticks = rte_rdtsc(); /* of a worker without turns, the age */
	plx_rndv_open(&w->rndv, conf);
	rc = plx_eps_open(&w->eps, on_ep_failed);
	w->eps.engine[PLX_EP_RNDV] = &w->rndv;
	w->eps.eager_end = eager_end(conf);
	w->eps.eager_auto = conf->v[PLX_CONF_EAGER_MAX].source == PLX_CONF_FROM_DEFAULT;
	rma_rc = plx_rma_open(&w->rma, conf, w->dedicated);
	w->eps.engine[PLX_EP_RMA] = &w->rma;
	w->eps.on_new = ep_init_engines;
	w->rma.reqs = &w->chan_reqs;
	plx_msg_pools_open(&w->msgs);
	plx_streams_open(&w->streams, &w->eps, &w->msgs, &w->rndv, &w->timers,
		&(struct plx_streams_conf){.rndv_min = plx_conf_u64(conf, PLX_CONF_EAGER_MAX),
			.unread_max = plx_conf_u64(conf, PLX_CONF_STREAM_UNREAD_MAX)});
	w->check.fn = check_peers;
	plx_timer_arm(&w->timers, &w->check, rte_rdtsc() + w->check_ticks);
	return rc != 0 ? rc : rma_rc;
}

static void
free_fields(struct plx_worker *w)
{
	plx_am_close(&w->am);
	worker_chans_close(w);
	plx_streams_close(&w->streams);
	plx_msg_pools_close(&w->msgs);
	plx_rndv_close(&w->rndv);
	plx_rma_close(&w->rma);
	free(w->waits_of.out);
	pthread_mutex_destroy(&w->users_lock);
}

int
plx_worker_create(const struct plx_worker_params *params, struct plx_worker **out)
{
	struct plx_worker *w;
	uint64_t tag_seed;
	int rc;

	w = aligned_alloc(PLX_LINE, (sizeof(*w) + PLX_LINE - 1) / PLX_LINE * PLX_LINE);
	if (w == NULL)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	rc = init_fields(w, params);
	if (rc != 0)
		goto free_w;
	if (getrandom(&w->uid, sizeof(w->uid), 0) != sizeof(w->uid) ||
		getrandom(&tag_seed, sizeof(tag_seed), 0) != sizeof(tag_seed)) {
		rc = -EIO;
		goto free_w;
	}
	if (params->own_keys)
		w->rma.domain = w->uid;
	rc = plx_am_open(&w->am, &w->eps, &w->msgs, w->dedicated);
	w->am.end = worker_am_end;
	w->am.user = params->user;
	w->am.deliver = params->am_deliver;
	w->am.plain = params->am_plain;
	w->am.align = RTE_MAX(w->am.align, params->am_align);
	if (rc == 0)
		rc = worker_chans_open(w, params);
	if (rc == 0)
		rc = plx_tag_create(tag_seed, offsetof(struct plx_msg, far) - offsetof(struct plx_msg, tag), &w->tag);
	if (rc != 0)
		goto free_w;
	rc = plx_req_pool_open(&w->reqs, params->user_len, w->dedicated, params->user_init,
		params->user_cleanup);
	if (rc != 0)
		goto free_tag;
	w->reqs.user = params->user;
	rc = open_queues(w, params->conf);
	if (rc != 0)
		goto free_reqs;
	rc = open_offload(w, params);
	if (rc == 0)
		rc = worker_wake_open(w, params);
	if (rc != 0)
		goto close_q;
	poll_those_awake(w);
	w->glance.fn = glance;
	if (w->n_polled != w->n_queues)
		plx_timer_arm(&w->timers, &w->glance, rte_rdtsc());
	w->poller.fn = worker_poll;
	w->poller.arg = w;
	if (w->dedicated) {
		plx_gate_open(&w->poller.gate, !params->multi);
		rc = plx_inbox_open(&w->inbox, params->multi);
		if (rc != 0)
			goto close_wake;
		rc = worker_rest_open(w);
		if (rc != 0)
			goto close_inbox;
		rc = plx_reactor_add(&w->poller);
		if (rc != 0)
			goto close_inbox;
	}
	pthread_mutex_lock(&all.lock);
	w->id = all.next_id++;
	LIST_INSERT_HEAD(&all.list, w, link);
	pthread_mutex_unlock(&all.lock);
	*out = w;
	return 0;
close_inbox:
	plx_inbox_close(&w->inbox);
close_wake:
	worker_wake_close(w);
close_q:
	close_queues(w);
	plx_offload_close(&w->offload);
free_reqs:
	plx_req_pool_close(&w->reqs);
free_tag:
	plx_tag_destroy(w->tag);
free_w:
	plx_eps_close(&w->eps);
	free_fields(w);
	free(w);
	return rc;
}

void
plx_worker_destroy(struct plx_worker *w)
{
	struct plx_ep *ep;

	if (w == NULL || plx_worker_is_inherited(w))
		return;
	pthread_mutex_lock(&all.lock);
	LIST_REMOVE(w, link);
	pthread_mutex_unlock(&all.lock);
	plx_reactor_remove(&w->poller); /* from here on this thread is the owner */
	while (w->dedicated && plx_inbox_run(&w->inbox) != 0)
		; /* completed sends of the application in there: let them go out */
	plx_inbox_close(&w->inbox);
	worker_conns_close(w);
	worker_wake_close(w);
	plx_rndv_settle(&w->rndv);
	LIST_FOREACH(ep, &w->eps.all, link) {
		plx_rma_ep_settle(ep);
		plx_rma_ep_leave(ep);
	}
	plx_eps_close(&w->eps);
	close_queues(w);
	plx_offload_close(&w->offload);
	plx_req_pool_close(&w->reqs);
	plx_tag_destroy(w->tag);
	free_fields(w);
	free(w);
}

static int
mute_deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx)
{
	(void)am, (void)h, (void)rx;
	return 0; /* dropped */
}

static void
mute_plain(const struct plx_am_handler *h, const void *hdr, uint32_t hdr_len, const void *data, uint64_t len)
{
	(void)h, (void)hdr, (void)hdr_len, (void)data, (void)len;
}

void
plx_worker_mute(struct plx_worker *w)
{
	if (!w->dedicated)
		plx_eps_need_turn(&w->eps); /* the progress that the callback runs in destroys the
		                             * worker */
	plx_req_pool_mute(&w->reqs);
	w->am.deliver = mute_deliver;
	w->am.plain = mute_plain;
	worker_conns_mute(w);
}

/* An address comes without its length: trust the one inside within bounds. */
static int
addr_fetch(const void *addr, struct plx_wire_addr *out)
{
	uint8_t buf[PLX_WIRE_ADDR_MAX] = {0};
	int rc = plx_proc_fetch(addr, buf, PLX_WIRE_ADDR_HEAD);

	if (rc != 0)
		return rc;
	if (plx_wire_addr_len(buf) > sizeof(buf))
		return -EINVAL;
	rc = plx_proc_fetch(addr, buf, plx_wire_addr_len(buf));
	return rc != 0 ? rc : plx_wire_addr_unpack(buf, out);
}

struct ep_get_arg {
	struct plx_worker *w;
	const struct plx_wire_addr *addr;
	struct plx_ep_user *user;
	int rc;
};

static void
ep_get_run(void *arg)
{
	struct ep_get_arg *a = arg;
	struct plx_ep *ep;

	a->rc = worker_ep_of_addr(a->w, a->addr, &ep);
	if (a->rc != 0)
		return;
	if (a->addr->uid != a->w->uid)
		a->user->crossed = false;
	plx_ep_user_add(ep, a->user);
	if (ep->err != 0)
		on_ep_failed(ep, ep->err); /* its handler has to be called, too */
}

int
plx_worker_ep_get(struct plx_worker *w, const void *addr, struct plx_ep_user *user)
{
	struct plx_wire_addr wire;
	struct ep_get_arg a = {w, &wire, user, 0};
	int rc = addr_fetch(addr, &wire);

	if (rc != 0)
		return rc;
	plx_worker_call(w, ep_get_run, &a);
	if (a.rc == 0)
		worker_users_add(w, user);
	return a.rc;
}

struct ep_answer_arg {
	struct plx_worker *w;
	struct plx_ep *ep;
	struct plx_ep_user *user;
	uint32_t conn_id;
	int rc;
};

static void
ep_answer_run(void *arg)
{
	struct ep_answer_arg *a = arg;

	if (a->ep->n_answers >= PLX_EP_MAX_UNMET) {
		PLX_STAT_INC(a->w->stat.rx_drop_refused);
		plx_ep_refuse(a->ep);
		a->rc = -ECANCELED;
		return;
	}
	a->user->answers = true;
	plx_ep_user_link(a->ep, a->user, a->conn_id);
}

int
plx_worker_ep_answer(struct plx_worker *w, struct plx_ep *ep, uint32_t conn_id,
	struct plx_ep_user *user)
{
	struct ep_answer_arg a = {w, ep, user, conn_id, 0};

	user->crossed = conn_id - PLX_EP_CROSSED < PLX_EP_CROSSED;
	plx_worker_call(w, ep_answer_run, &a);
	if (a.rc != 0)
		return a.rc;
	worker_users_add(w, user);
	return 0;
}

void
plx_worker_ep_put(struct plx_worker *w, struct plx_ep_user *user)
{
	if (user->conn != NULL) {
		worker_conn_drop(w, user);
		return;
	}
	worker_users_remove(w, user);
	plx_worker_call(w, worker_user_end_run, user);
}

void
plx_worker_each(void (*fn)(struct plx_worker *w, void *arg), void *arg)
{
	struct plx_worker *w;

	pthread_mutex_lock(&all.lock);
	LIST_FOREACH(w, &all.list, link)
		fn(w, arg);
	pthread_mutex_unlock(&all.lock);
}

static void
dump_rows(FILE *f, const void *obj, const struct plx_stat_row *row)
{
	for (; row->name != NULL; row++)
		fprintf(f, "#   %-20s %llu\n", row->name,
			(unsigned long long)plx_stat_read(obj, row));
}

void
plx_worker_dump(FILE *f, struct plx_worker *w)
{
	const struct plx_stat_row *rows;
	const void *own;

	fprintf(f, "# worker %u %s %s\n", w->id, w->name, w->dedicated ? "dedicated" : "inline");
	dump_rows(f, &w->stat, plx_worker_stat_rows);
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const char *port = plx_queue_port(w->queues[i]);

		fprintf(f, "# device %s %s\n", plx_dev_name(w->devs[i]), port != NULL ? port : "");
		dump_rows(f, &w->queues[i]->stat, plx_queue_stat_rows);
		own = plx_queue_drv_stats(w->queues[i], &rows);
		if (own != NULL)
			dump_rows(f, own, rows);
	}
	fprintf(f, "# eps\n");
	dump_rows(f, &w->eps.stat, plx_ep_stat_rows);
	fprintf(f, "# rendezvous\n");
	dump_rows(f, &w->rndv.stat, plx_rndv_stat_rows);
	fprintf(f, "# put, get, atomics\n");
	dump_rows(f, &w->rma.stat, plx_rma_stat_rows);
	fprintf(f, "# active messages\n");
	dump_rows(f, &w->am.stat, plx_am_stat_rows);
	fprintf(f, "# streams\n");
	dump_rows(f, &w->streams.stat, plx_stream_stat_rows);
	fprintf(f, "# channels\n");
	dump_rows(f, &w->chans.stat, plx_chan_stat_rows);
	fprintf(f, "# sockets\n");
	dump_rows(f, &w->conns.cm.stat, plx_cm_stat_rows);
	fprintf(f, "# matching\n");
	dump_rows(f, plx_tag_stats(w->tag), plx_tag_stat_rows);
	fprintf(f, "# tag offload\n");
	plx_offload_dump(f, &w->offload);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reactor.c - one loop for each lcore: turns, ticks, what to do when idle
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "plx_assert.h"
#include "plx_conf.h"
#include "plx_log.h"
#include "plx_reactor.h"

PLX_LOG_DEFINE(reactor, "plx.reactor");

#define REACTOR_SLEEP_NS 50000

struct plx_reactor {
	/* owner: the reactor's thread; stat readers: any, relaxed */
	TAILQ_HEAD(, plx_poller) pollers;
	struct plx_inbox inbox;
	struct plx_reactor_stat stat;
	/* writer: control */
	_Atomic bool stop;
	_Atomic unsigned idle;
	_Atomic uint64_t idle_turns;
	_Atomic unsigned n_pollers;
	unsigned lcore;
};

static struct {
	pthread_mutex_t lock;
	struct plx_reactor *r[PLX_REACTOR_MAX];
	unsigned n;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct plx_stat_row plx_reactor_stat_rows[] = {
	PLX_STAT_ROW(struct plx_reactor_stat, turns),
	PLX_STAT_ROW(struct plx_reactor_stat, busy_turns),
	PLX_STAT_ROW(struct plx_reactor_stat, busy_ticks),
	PLX_STAT_ROW(struct plx_reactor_stat, idle_ticks),
	PLX_STAT_ROW(struct plx_reactor_stat, idles),
	PLX_STAT_END,
};

static void
reactor_idle(struct plx_reactor *r)
{
	PLX_STAT_INC(r->stat.idles);
	switch (atomic_load_explicit(&r->idle, memory_order_relaxed)) {
	case PLX_IDLE_PAUSE:
		rte_pause();
		break;
	case PLX_IDLE_YIELD:
		sched_yield();
		break;
	case PLX_IDLE_SLEEP:
		nanosleep(&(struct timespec){0, REACTOR_SLEEP_NS}, NULL);
		break;
	default:
		break;
	}
}

static int
reactor_loop(void *arg)
{
	struct plx_reactor *r = arg;
	uint64_t empty = 0, last = rte_rdtsc();

	while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
		struct plx_poller *p;
		unsigned n = 0;
		uint64_t now;

		TAILQ_FOREACH(p, &r->pollers, link)
			n += p->fn(p->arg);
		n += plx_inbox_run(&r->inbox);
		now = rte_rdtsc();
		PLX_STAT_INC(r->stat.turns);
		if (n != 0) {
			PLX_STAT_INC(r->stat.busy_turns);
			PLX_STAT_ADD(r->stat.busy_ticks, now - last);
			empty = 0;
		} else {
			PLX_STAT_ADD(r->stat.idle_ticks, now - last);
			if (++empty >= atomic_load_explicit(&r->idle_turns, memory_order_relaxed))
				reactor_idle(r);
		}
		last = now;
	}
	return 0;
}

/* Called with the lock held. */
static int
reactor_create(unsigned lcore, unsigned idle, uint64_t idle_turns, struct plx_reactor **out)
{
	struct plx_reactor *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return -ENOMEM;
	rc = plx_inbox_open(&r->inbox);
	if (rc != 0)
		goto free_r;
	TAILQ_INIT(&r->pollers);
	r->lcore = lcore;
	r->idle = idle;
	r->idle_turns = idle_turns;
	rc = rte_eal_remote_launch(reactor_loop, r, lcore);
	if (rc != 0)
		goto close_inbox;
	*out = r;
	return 0;
close_inbox:
	plx_inbox_close(&r->inbox);
free_r:
	free(r);
	return rc;
}

int
plx_reactor_start(unsigned lcore, unsigned idle, uint64_t idle_turns)
{
	int rc;

	if (lcore >= RTE_MAX_LCORE || !rte_lcore_is_enabled(lcore) ||
		lcore == rte_get_main_lcore())
		return -ENODEV;
	pthread_mutex_lock(&all.lock);
	if (all.n == PLX_REACTOR_MAX)
		rc = -ENOSPC;
	else
		rc = reactor_create(lcore, idle, idle_turns, &all.r[all.n]);
	if (rc == 0)
		all.n++;
	pthread_mutex_unlock(&all.lock);
	if (rc == 0)
		PLX_LOG(INFO, reactor, "reactor started on lcore %u", lcore);
	return rc;
}

void
plx_reactor_stop_all(void)
{
	pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.n; i++) {
		if (all.r[i]->n_pollers == 0)
			continue;
		/* Their owners still believe in it: better a thread too many than a lost one. */
		PLX_LOG(ERR, reactor, "workers are left on lcore %u, the reactors stay",
			all.r[i]->lcore);
		goto out;
	}
	while (all.n > 0) {
		struct plx_reactor *r = all.r[--all.n];

		atomic_store_explicit(&r->stop, true, memory_order_relaxed);
		rte_eal_wait_lcore(r->lcore);
		plx_inbox_close(&r->inbox);
		free(r);
	}
out:
	pthread_mutex_unlock(&all.lock);
}

unsigned
plx_reactor_count(void)
{
	unsigned n;

	pthread_mutex_lock(&all.lock);
	n = all.n;
	pthread_mutex_unlock(&all.lock);
	return n;
}

void
plx_reactor_set_idle(unsigned idle, uint64_t idle_turns)
{
	pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.n; i++) {
		atomic_store_explicit(&all.r[i]->idle, idle, memory_order_relaxed);
		atomic_store_explicit(&all.r[i]->idle_turns, idle_turns, memory_order_relaxed);
	}
	pthread_mutex_unlock(&all.lock);
}

/* A change of the poller list, done by the reactor between two turns. */
struct list_change {
	struct plx_poller *p;
	struct plx_reactor *r;
	bool add;
	_Atomic bool done;
};

static void
list_change_run(void *arg)
{
	struct list_change *c = arg;

	if (c->add)
		TAILQ_INSERT_TAIL(&c->r->pollers, c->p, link);
	else
		TAILQ_REMOVE(&c->r->pollers, c->p, link);
	/* pairs with the acquire in list_change() */
	atomic_store_explicit(&c->done, true, memory_order_release);
}

static void
list_change(struct plx_reactor *r, struct plx_poller *p, bool add)
{
	struct list_change c = {.p = p, .r = r, .add = add};

	while (plx_inbox_post(&r->inbox, list_change_run, &c) != 0)
		sched_yield();
	while (!atomic_load_explicit(&c.done, memory_order_acquire))
		sched_yield();
}

int
plx_reactor_add(struct plx_poller *p)
{
	struct plx_reactor *best = NULL;

	pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.n; i++)
		if (best == NULL || all.r[i]->n_pollers < best->n_pollers)
			best = all.r[i];
	if (best != NULL) {
		p->reactor = best;
		best->n_pollers++;
		list_change(best, p, true);
	}
	pthread_mutex_unlock(&all.lock);
	return best != NULL ? 0 : -ENODEV;
}

void
plx_reactor_remove(struct plx_poller *p)
{
	if (p->reactor == NULL)
		return;
	pthread_mutex_lock(&all.lock);
	list_change(p->reactor, p, false);
	p->reactor->n_pollers--;
	p->reactor = NULL;
	pthread_mutex_unlock(&all.lock);
}

int
plx_reactor_info(unsigned i, struct plx_reactor_info *info)
{
	int rc = -ENOENT;

	pthread_mutex_lock(&all.lock);
	if (i < all.n) {
		const struct plx_reactor *r = all.r[i];

		info->lcore = r->lcore;
		info->n_pollers = r->n_pollers;
		for (const struct plx_stat_row *row = plx_reactor_stat_rows; row->name != NULL; row++)
			*(uint64_t *)((char *)&info->stat + row->offset) =
				plx_stat_read(&r->stat, row);
		rc = 0;
	}
	pthread_mutex_unlock(&all.lock);
	return rc;
}

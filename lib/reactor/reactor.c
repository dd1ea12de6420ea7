/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reactor.c - one loop for each lcore: turns and ticks; which poller is on which
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "plx_assert.h"
#include "plx_conf.h"
#include "plx_fork.h"
#include "plx_log.h"
#include "reactor_int.h"

PLX_LOG_DECLARE(reactor);

#define TIMER_SLACK_NS 1000

static struct {
	pthread_mutex_t lock;
	struct plx_reactor *r[PLX_REACTOR_MAX];
	unsigned n;
	unsigned seat;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define ROW(field) PLX_STAT_ROW(struct plx_reactor_stat, field)

const struct plx_stat_row plx_reactor_stat_rows[] = {
	ROW(turns), ROW(busy_turns), ROW(busy_ticks), ROW(idle_ticks), ROW(idles),
	ROW(yields_taken), ROW(sleeps), ROW(grants),
	PLX_STAT_END,
};

static void
wake_after(struct plx_reactor *r)
{
	/* pairs with the fence in reactor_sleep(): the post precedes the read of sleeping */
	atomic_thread_fence(memory_order_seq_cst);
	reactor_wake(r);
}

static int
reactor_loop(void *arg)
{
	struct plx_reactor *r = arg;
	struct reactor_clock c = {.last = rte_rdtsc()};

	/* Its sleeps are microseconds, to which the kernel adds 50 by default. */
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
		struct plx_poller *p;
		unsigned n = 0;

		TAILQ_FOREACH(p, &r->pollers, link) {
			if (unlikely(!p->mine) && !reactor_regain(r, p, c.last))
				continue;
			n += p->fn(p->arg, false);
			if (unlikely(p->posts >= REACTOR_POST_TURNS))
				reactor_grant_to_poster(r, p, c.last);
		}
		n += plx_inbox_run(&r->inbox);
		PLX_STAT_INC(r->stat.turns);
		if (n != 0) {
			PLX_STAT_INC(r->stat.busy_turns);
			reactor_clock_busy(&c, rte_rdtsc(), &r->stat);
			r->empty = 0;
			r->dozed = false;
		} else {
			if (++c.idle == REACTOR_CLOCK_TURNS)
				reactor_clock_idle(&c, rte_rdtsc(), &r->stat);
			if (reactor_idle(r, c.last))
				reactor_clock_idle(&c, rte_rdtsc(), &r->stat);
		}
		if (unlikely(c.last >= r->look_at))
			reactor_grant_to_waiters(r, c.last);
	}
	atomic_store_explicit(&r->ended, true, memory_order_release); /* pairs with thread_join() */
	return 0;
}

static void *
reactor_main(void *arg)
{
	struct plx_reactor *r = arg;

	/* as the EAL does: a thread that may not run there runs elsewhere */
	(void)pthread_setaffinity_np(pthread_self(), sizeof(r->set), &r->set);
	reactor_loop(r);
	return NULL;
}

/* The EAL's threads belong to the program, or to the parent. Signals are for the application, except faults
 * and profiling: as in lib/init. */
static int
thread_create(struct plx_reactor *r)
{
	static const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
	sigset_t set, before;
	int rc;

	if (rte_lcore_is_enabled(r->lcore)) {
		r->set = rte_lcore_cpuset(r->lcore);
	} else {
		CPU_ZERO(&r->set);
		CPU_SET(r->lcore, &r->set);
	}
	sigfillset(&set);
	for (unsigned i = 0; i < RTE_DIM(ours); i++)
		sigdelset(&set, ours[i]);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	rc = pthread_create(&r->thread, NULL, reactor_main, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static int
thread_start(struct plx_reactor *r)
{
	return r->beside ? thread_create(r) : rte_eal_remote_launch(reactor_loop, r, r->lcore);
}

static void
thread_join(struct plx_reactor *r)
{
	if (r->beside)
		pthread_join(r->thread, NULL);
	else
		rte_eal_wait_lcore(r->lcore);
	/* The EAL orders this, too, but is not instrumented: the thread sanitizer does not see that. */
	(void)atomic_load_explicit(&r->ended, memory_order_acquire);
}

/* In a child, whose EAL the parent has set up, on any core. @return 0 or -errno */
static int
may_start(unsigned lcore, bool beside)
{
	bool enabled = lcore < RTE_MAX_LCORE && rte_lcore_is_enabled(lcore);

	if (lcore >= RTE_MAX_LCORE)
		return -ENODEV;
	if (plx_fork_eal)
		return 0;
	if (!beside)
		return enabled && lcore != rte_get_main_lcore() ? 0 : -ENODEV;
	return lcore == rte_get_main_lcore() || rte_lcore_has_role(lcore, ROLE_SERVICE) ||
			(enabled && rte_eal_get_lcore_state(lcore) != WAIT) ? -EBUSY : 0;
}

/* Call with the lock. */
static int
reactor_create(unsigned lcore, bool beside, unsigned idle, uint64_t idle_turns, struct plx_reactor **out)
{
	struct plx_reactor *r = aligned_alloc(alignof(struct plx_reactor), sizeof(*r));
	int rc;

	if (r == NULL)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	rc = reactor_wake_open(r);
	if (rc != 0)
		goto free_r;
	rc = plx_inbox_open(&r->inbox, true);
	if (rc != 0)
		goto close_idle;
	TAILQ_INIT(&r->pollers);
	r->lcore = lcore;
	r->beside = beside || plx_fork_eal;
	r->cpu = -1;
	r->idle = idle;
	r->idle_turns = idle_turns;
	rc = thread_start(r);
	if (rc != 0)
		goto close_inbox;
	*out = r;
	return 0;
close_inbox:
	plx_inbox_close(&r->inbox);
close_idle:
	reactor_wake_close(r);
free_r:
	free(r);
	return rc;
}

int
plx_reactor_start(unsigned lcore, bool beside, unsigned idle, uint64_t idle_turns)
{
	int rc = may_start(lcore, beside);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&all.lock);
	if (all.n == 0)
		reactor_fence_open();
	if (all.n == PLX_REACTOR_MAX)
		rc = -ENOSPC;
	else
		rc = reactor_create(lcore, beside, idle, idle_turns, &all.r[all.n]);
	if (rc == 0)
		all.n++;
	pthread_mutex_unlock(&all.lock);
	if (rc == 0)
		PLX_LOG(INFO, reactor, "reactor started %s lcore %u", beside ? "beside the program's" : "on", lcore);
	return rc;
}

void
plx_reactor_stop_all(void)
{
	pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.n; i++) {
		if (all.r[i]->n_pollers == 0)
			continue;
		/* Their owners still use it: better a thread too many than a lost poller. */
		PLX_LOG(ERR, reactor, "lcore %u still has workers: the reactors go on",
			all.r[i]->lcore);
		goto out;
	}
	while (all.n > 0) {
		struct plx_reactor *r = all.r[--all.n];

		atomic_store_explicit(&r->stop, true, memory_order_relaxed);
		wake_after(r);
		thread_join(r);
		plx_inbox_close(&r->inbox);
		reactor_wake_close(r);
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
		wake_after(all.r[i]);
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

	if (c->add) {
		TAILQ_INSERT_TAIL(&c->r->pollers, c->p, link);
		reactor_wake_add(c->r, c->p);
	} else {
		TAILQ_REMOVE(&c->r->pollers, c->p, link);
		if (c->p->granted)
			reactor_end_grant(c->r, c->p);
		reactor_wake_remove(c->r, c->p);
		reactor_free(c->r, c->p);
	}
	/* pairs with the acquire in list_change() */
	atomic_store_explicit(&c->done, true, memory_order_release);
}

static void
list_change(struct plx_reactor *r, struct plx_poller *p, bool add)
{
	struct list_change c = {.p = p, .r = r, .add = add};

	while (plx_inbox_post(&r->inbox, list_change_run, &c) != 0)
		sched_yield();
	wake_after(r);
	while (!atomic_load_explicit(&c.done, memory_order_acquire))
		sched_yield();
}

/* Call with the lock. */
static void
give(struct plx_poller *p, struct plx_reactor *r)
{
	atomic_store_explicit(&p->reactor, r, memory_order_relaxed);
	/* pairs with the fence in plx_reactor_wake(): a thread that woke the former reactor
	 * has posted before */
	reactor_fence_sleep();
	r->n_pollers++;
	list_change(r, p, true);
}

/* The same. */
static struct plx_reactor *
take(struct plx_poller *p)
{
	struct plx_reactor *r = atomic_load_explicit(&p->reactor, memory_order_relaxed);

	if (r == NULL)
		return NULL;
	list_change(r, p, false);
	r->n_pollers--;
	return r;
}

void
plx_reactor_set_seat(unsigned seat)
{
	pthread_mutex_lock(&all.lock);
	all.seat = seat;
	pthread_mutex_unlock(&all.lock);
}

int
plx_reactor_add(struct plx_poller *p)
{
	struct plx_reactor *best = NULL;

	pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.n; i++) {
		struct plx_reactor *r = all.r[(i + all.seat) % all.n];

		if (best == NULL || r->n_pollers < best->n_pollers)
			best = r;
	}
	if (best != NULL)
		give(p, best);
	pthread_mutex_unlock(&all.lock);
	return best != NULL ? 0 : -ENODEV;
}

void
plx_reactor_remove(struct plx_poller *p)
{
	pthread_mutex_lock(&all.lock);
	take(p);
	atomic_store_explicit(&p->reactor, NULL, memory_order_relaxed);
	pthread_mutex_unlock(&all.lock);
}

int
plx_reactor_move(struct plx_poller *p, unsigned lcore)
{
	struct plx_reactor *to = NULL;

	pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.n && p->reactor != NULL; i++)
		if (all.r[i]->lcore == lcore)
			to = all.r[i];
	if (to != NULL && to != p->reactor) {
		take(p);
		give(p, to);
	}
	pthread_mutex_unlock(&all.lock);
	return to != NULL ? 0 : -ENODEV;
}

int
plx_reactor_lcore(const struct plx_poller *p)
{
	const struct plx_reactor *r = atomic_load_explicit(&p->reactor, memory_order_relaxed);

	return r != NULL ? (int)r->lcore : -ENODEV; /* reactors outlive their pollers */
}

/* After a post. */
static inline struct plx_reactor *
reactor_of(const struct plx_poller *p)
{
	/* pairs with those in give(): a poller that moves runs a turn after this post;
	 * reactor_sleep() */
	reactor_fence_post();
	return atomic_load_explicit(&p->reactor, memory_order_relaxed);
}

void
plx_reactor_wake(const struct plx_poller *p)
{
	struct plx_reactor *r = reactor_of(p);

	if (likely(r != NULL))
		reactor_wake(r);
}

bool
plx_reactor_sleeps(const struct plx_poller *p)
{
	const struct plx_reactor *r = reactor_of(p);

	/* pairs with the fence in reactor_sleep(): its earlier stores are visible */
	return r != NULL && atomic_load_explicit(&r->sleeping, memory_order_acquire) != 0;
}

int
plx_reactor_info(unsigned i, struct plx_reactor_info *info)
{
	int rc = -ENOENT;

	pthread_mutex_lock(&all.lock);
	if (i < all.n) {
		const struct plx_reactor *r = all.r[i];

		info->lcore = r->lcore;
		info->beside = r->beside;
		info->n_pollers = r->n_pollers;
		for (const struct plx_stat_row *row = plx_reactor_stat_rows; row->name != NULL; row++)
			*(uint64_t *)((char *)&info->stat + row->offset) =
				plx_stat_read(&r->stat, row);
		rc = 0;
	}
	pthread_mutex_unlock(&all.lock);
	return rc;
}

/* The threads are the parent's. */
static void
after_fork_in_child(void)
{
	pthread_mutex_init(&all.lock, NULL);
	all.n = 0;
}
RTE_INIT(reactor_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

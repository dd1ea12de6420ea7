/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reactor_test.c - timers, inboxes with many producers, reactors that come and go
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "plx_conf.h"
#include "plx_fence.h"
#include "plx_inbox.h"
#include "plx_log.h"
#include "plx_mem.h"
#include "plx_reactor.h"
#include "plx_timer.h"
#include "plx_unit.h"
#include "plx_yield.h"
#include "reactor_int.h"

/* -- timers -- */

static struct plx_timers timers;
static struct plx_timer timer[8];
static unsigned fired[64], n_fired;
static uint64_t again_at;

static void
on_timer(struct plx_timer *t, uint64_t now_ticks)
{
	fired[n_fired++] = (unsigned)(t - timer);
	if (again_at > now_ticks)
		plx_timer_arm(&timers, t, again_at);
}

static void
timers_begin(void)
{
	memset(timer, 0, sizeof(timer));
	plx_timers_init(&timers);
	for (unsigned i = 0; i < 8; i++)
		timer[i].fn = on_timer;
	n_fired = 0;
	again_at = 0;
}

static void
fired_are(const char *order)
{
	UNIT_EQ_FATAL(n_fired, strlen(order));
	for (unsigned i = 0; i < n_fired; i++)
		UNIT_EQ(fired[i], order[i] - '0');
	n_fired = 0;
}

static void
timers_fire_in_order_of_time(void)
{
	const uint64_t due[] = {50, 10, 30, 10, 70, 30, 1, 50};

	timers_begin();
	UNIT_EQ(timers.next_ticks, UINT64_MAX);
	UNIT_EQ(plx_timers_run(&timers, 1000), 0);
	for (unsigned i = 0; i < 8; i++)
		plx_timer_arm(&timers, &timer[i], due[i]);
	UNIT_EQ(timers.next_ticks, 1);
	UNIT_EQ(plx_timers_run(&timers, 0), 0);
	UNIT_EQ(plx_timers_run(&timers, 30), 5);
	fired_are("61325"); /* of equal times the one armed first */
	UNIT_EQ(timers.next_ticks, 50);
	UNIT_EQ(plx_timers_run(&timers, 49), 0);
	UNIT_EQ(plx_timers_run(&timers, 1000), 3);
	fired_are("074");
	UNIT_EQ(timers.next_ticks, UINT64_MAX);
}

static void
a_timer_moves_stops_and_comes_again(void)
{
	timers_begin();
	plx_timer_disarm(&timers, &timer[0]); /* not armed: nothing */
	plx_timer_arm(&timers, &timer[0], 10);
	plx_timer_arm(&timers, &timer[1], 20);
	plx_timer_arm(&timers, &timer[0], 30);
	UNIT_EQ(timers.next_ticks, 20);
	plx_timer_disarm(&timers, &timer[1]);
	UNIT_EQ(timers.next_ticks, 30);
	plx_timer_disarm(&timers, &timer[1]);
	again_at = 40;
	UNIT_EQ(plx_timers_run(&timers, 39), 1); /* and arms itself for 40 */
	UNIT_EQ(timers.next_ticks, 40);
	again_at = 0;
	UNIT_EQ(plx_timers_run(&timers, 40), 1);
	UNIT_EQ(plx_timers_run(&timers, 1000), 0);
	fired_are("00");
}

/* -- inbox -- */

#define PRODUCERS 4
#define POSTS	  20000

static struct plx_inbox inbox;
static uint64_t seen[PRODUCERS];
static bool in_order;

static void
on_post(void *arg)
{
	uint64_t v = (uintptr_t)arg;

	in_order = in_order && v % POSTS == seen[v / POSTS];
	seen[v / POSTS]++;
}

static void *
produce(void *arg)
{
	uint64_t first = (uintptr_t)arg * POSTS;

	for (uint64_t i = 0; i < POSTS; i++)
		while (plx_inbox_post(&inbox, on_post, (void *)(uintptr_t)(first + i)) != 0)
			sched_yield();
	return NULL;
}

static void
many_producers_keep_their_order_each(void)
{
	pthread_t thread[PRODUCERS];
	unsigned total = 0;

	memset(seen, 0, sizeof(seen));
	in_order = true;
	UNIT_EQ_FATAL(plx_inbox_open(&inbox, true), 0);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		CU_ASSERT_FATAL(pthread_create(&thread[i], NULL, produce, (void *)i) == 0);
	while (total < PRODUCERS * POSTS) {
		unsigned n = plx_inbox_run(&inbox);

		total += n;
		if (n == 0)
			sched_yield();
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(thread[i], NULL);
		UNIT_EQ(seen[i], POSTS);
	}
	UNIT_TRUE(in_order);
	UNIT_EQ(plx_inbox_run(&inbox), 0);
	plx_inbox_close(&inbox);
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static void
the_first_message_after_a_pause_is_run_alone(void)
{
	UNIT_EQ_FATAL(plx_inbox_open(&inbox, false), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 4; i++)
			UNIT_EQ(plx_inbox_post(&inbox, on_nothing, NULL), 0);
		UNIT_TRUE(plx_inbox_rested(&inbox));
		UNIT_EQ(plx_inbox_run(&inbox), 1);
		UNIT_TRUE(!plx_inbox_rested(&inbox));
		UNIT_EQ(plx_inbox_run(&inbox), 3);
		for (unsigned i = 0; i < PLX_INBOX_PAUSE; i++) {
			UNIT_TRUE(!plx_inbox_rested(&inbox));
			UNIT_EQ(plx_inbox_run(&inbox), 0);
		}
	}
	plx_inbox_close(&inbox);
}

static void
a_full_inbox_says_so_and_loses_nothing(void)
{
	unsigned total = 0;
	uint64_t n = 0;

	memset(seen, 0, sizeof(seen));
	in_order = true;
	UNIT_EQ_FATAL(plx_inbox_open(&inbox, false), 0);
	while (plx_inbox_post(&inbox, on_post, (void *)(uintptr_t)n) == 0)
		CU_ASSERT_FATAL(++n <= PLX_INBOX_LEN);
	UNIT_TRUE(n >= PLX_INBOX_LEN - 1);
	UNIT_EQ(plx_inbox_post(&inbox, on_post, NULL), -EAGAIN);
	for (unsigned k; (k = plx_inbox_run(&inbox)) != 0; total += k)
		UNIT_TRUE(k < 100); /* a turn's share is bounded */
	UNIT_EQ(total, n);
	UNIT_EQ(seen[0], n);
	UNIT_TRUE(in_order);
	plx_inbox_close(&inbox);
}

static void
on_drain(void *arg)
{
	seen[0]++;
	UNIT_EQ(plx_inbox_drain(&inbox), PLX_INBOX_LEN - 1);
	UNIT_EQ(seen[0], PLX_INBOX_LEN);
	UNIT_EQ(plx_inbox_drain(&inbox), 0);
	/* the cell of this message is in use */
	UNIT_EQ(plx_inbox_post(&inbox, on_post, arg), -EAGAIN);
}

static void
a_message_runs_those_behind_it_and_keeps_its_cell(void)
{
	memset(seen, 0, sizeof(seen));
	in_order = true;
	UNIT_EQ_FATAL(plx_inbox_open(&inbox, false), 0);
	UNIT_EQ(plx_inbox_post(&inbox, on_drain, NULL), 0);
	for (uintptr_t i = 1; i < PLX_INBOX_LEN; i++)
		UNIT_EQ(plx_inbox_post(&inbox, on_post, (void *)i), 0);
	UNIT_EQ(plx_inbox_run(&inbox), 1);
	UNIT_TRUE(in_order);
	UNIT_TRUE(!plx_inbox_waits(&inbox));
	UNIT_EQ(plx_inbox_post(&inbox, on_post, (void *)(uintptr_t)PLX_INBOX_LEN), 0);
	UNIT_EQ(plx_inbox_drain(&inbox), 1);
	UNIT_TRUE(in_order);
	plx_inbox_close(&inbox);
}

static unsigned n_bodies;

static void
on_body(void *arg)
{
	const uint8_t *body = arg;

	for (unsigned i = 0; i < PLX_INBOX_BODY; i++)
		in_order = in_order && body[i] == (uint8_t)(n_bodies + i);
	n_bodies++;
}

static void
a_message_carries_its_body_round_the_ring(void)
{
	n_bodies = 0;
	in_order = true;
	UNIT_EQ_FATAL(plx_inbox_open(&inbox, false), 0);
	for (unsigned i = 0; i < 3 * PLX_INBOX_LEN; i++) {
		uint64_t pos;
		struct plx_inbox_cell *c = plx_inbox_take(&inbox, &pos);

		CU_ASSERT_FATAL(c != NULL);
		c->fn = on_body;
		c->has_body = true;
		for (unsigned k = 0; k < PLX_INBOX_BODY; k++)
			c->body[k] = (uint8_t)(i + k);
		UNIT_TRUE(plx_inbox_empty(&inbox)); /* taken is not given */
		plx_inbox_give(&inbox, c, pos);
		UNIT_TRUE(!plx_inbox_empty(&inbox));
		UNIT_EQ(plx_inbox_run(&inbox), 1);
	}
	UNIT_EQ(n_bodies, 3 * PLX_INBOX_LEN);
	UNIT_TRUE(in_order);
	plx_inbox_close(&inbox);
}

static void
post_again(void *arg)
{
	if (--*(unsigned *)arg != 0)
		UNIT_EQ(plx_inbox_post(&inbox, post_again, arg), 0);
}

static void
what_runs_may_post_itself_again(void)
{
	unsigned left = 5, runs = 0;

	UNIT_EQ_FATAL(plx_inbox_open(&inbox, false), 0);
	UNIT_EQ(plx_inbox_post(&inbox, post_again, &left), 0);
	for (unsigned n; (n = plx_inbox_run(&inbox)) != 0;)
		runs += n;
	UNIT_EQ(runs, 5);
	UNIT_EQ(left, 0);
	plx_inbox_close(&inbox);
}

/* -- reactors -- */

struct work {
	struct plx_poller poller;
	_Atomic uint64_t turns;
	_Atomic unsigned busy; /* what a turn says it did */
	_Atomic unsigned lcore;
};

static unsigned
work_turn(void *arg, bool granted)
{
	struct work *w = arg;

	(void)granted;
	atomic_fetch_add(&w->turns, 1);
	atomic_store(&w->lcore, rte_lcore_id());
	return atomic_load(&w->busy);
}

static void
work_init(struct work *w)
{
	memset(w, 0, sizeof(*w));
	w->poller.fn = work_turn;
	w->poller.arg = w;
}

/* Until it has had n turns more. */
static void
wait_turns(struct work *w, uint64_t n)
{
	uint64_t end = atomic_load(&w->turns) + n;

	while (atomic_load(&w->turns) < end)
		sched_yield();
}

static void
a_reactor_starts_only_where_it_can(void)
{
	struct plx_reactor_info info;

	UNIT_EQ(plx_reactor_count(), 0);
	UNIT_EQ(plx_reactor_start(rte_get_main_lcore(), false, PLX_IDLE_YIELD, 1), -ENODEV);
	UNIT_EQ(plx_reactor_start(77, false, PLX_IDLE_YIELD, 1), -ENODEV);
	UNIT_EQ(plx_reactor_start(RTE_MAX_LCORE, false, PLX_IDLE_YIELD, 1), -ENODEV);
	UNIT_EQ(plx_reactor_start(UINT32_MAX, false, PLX_IDLE_YIELD, 1), -ENODEV);
	UNIT_EQ(plx_reactor_count(), 0);
	UNIT_EQ(plx_reactor_start(1, false, PLX_IDLE_YIELD, 1), 0);
	UNIT_EQ(plx_reactor_start(1, false, PLX_IDLE_YIELD, 1), -EBUSY);
	UNIT_EQ(plx_reactor_count(), 1);
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	UNIT_EQ(info.lcore, 1);
	UNIT_EQ(info.n_pollers, 0);
	UNIT_EQ(plx_reactor_info(1, &info), -ENOENT);
	plx_reactor_stop_all();
	UNIT_EQ(plx_reactor_count(), 0);
	plx_reactor_stop_all(); /* once more is nothing */
}

static int
answer(void *arg)
{
	return *(int *)arg;
}

static void
beside_an_lcore_that_stays_the_programs(void)
{
	struct plx_reactor_info info;
	struct work w;
	int value = 4711;

	UNIT_EQ(plx_reactor_start(rte_get_main_lcore(), true, PLX_IDLE_YIELD, 1), -EBUSY);
	UNIT_EQ(plx_reactor_start(RTE_MAX_LCORE, true, PLX_IDLE_YIELD, 1), -ENODEV);
	UNIT_EQ_FATAL(plx_reactor_start(1, true, PLX_IDLE_YIELD, 1), 0);
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	UNIT_TRUE(info.lcore == 1 && info.beside);
	work_init(&w);
	UNIT_EQ(plx_reactor_add(&w.poller), 0);
	UNIT_EQ(rte_eal_remote_launch(answer, &value, 1), 0); /* the program's own function */
	UNIT_EQ(rte_eal_wait_lcore(1), value);
	wait_turns(&w, 100);
	plx_reactor_remove(&w.poller);
	plx_reactor_stop_all();
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_YIELD, 1), 0); /* what uses an lcore keeps it */
	UNIT_EQ(plx_reactor_start(1, true, PLX_IDLE_YIELD, 1), -EBUSY);
	plx_reactor_stop_all();
}

static void
a_poller_without_a_reactor_is_told_so(void)
{
	struct work w;

	work_init(&w);
	UNIT_EQ(plx_reactor_add(&w.poller), -ENODEV);
	plx_reactor_remove(&w.poller); /* not there: nothing */
	UNIT_EQ(w.turns, 0);
}

static void
pollers_are_spread_and_get_turns_until_they_go(void)
{
	struct work w[4];
	struct plx_reactor_info info[2];
	uint64_t after[4];

	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_YIELD, 1), 0);
	UNIT_EQ_FATAL(plx_reactor_start(2, false, PLX_IDLE_YIELD, 1), 0);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 4; i++) {
			work_init(&w[i]);
			UNIT_EQ_FATAL(plx_reactor_add(&w[i].poller), 0);
		}
		for (unsigned i = 0; i < 2; i++) {
			UNIT_EQ(plx_reactor_info(i, &info[i]), 0);
			UNIT_EQ(info[i].n_pollers, 2);
		}
		for (unsigned i = 0; i < 4; i++)
			wait_turns(&w[i], 3);
		for (unsigned i = 0; i < 4; i++)
			UNIT_TRUE(w[i].lcore == 1 || w[i].lcore == 2);
		for (unsigned i = 0; i < 4; i++) {
			plx_reactor_remove(&w[i].poller);
			CU_ASSERT_PTR_NULL(w[i].poller.reactor);
			after[i] = w[i].turns;
			plx_reactor_remove(&w[i].poller); /* not there any more: nothing */
		}
		sched_yield();
		for (unsigned i = 0; i < 4; i++)
			UNIT_EQ(w[i].turns, after[i]);
	}
	plx_reactor_stop_all();
}

static void
every_idle_policy_gives_turns_and_is_counted(void)
{
	const unsigned policies[] = {PLX_IDLE_SLEEP, PLX_IDLE_YIELD, PLX_IDLE_PAUSE, PLX_IDLE_AUTO,
		PLX_IDLE_SPIN};
	struct plx_reactor_info before, after;
	struct work w;

	work_init(&w);
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SLEEP, 10), 0);
	UNIT_EQ_FATAL(plx_reactor_add(&w.poller), 0);
	for (unsigned i = 0; i < RTE_DIM(policies); i++) {
		plx_reactor_set_idle(policies[i], 10);
		UNIT_EQ(plx_reactor_info(0, &before), 0);
		wait_turns(&w, 100);
		UNIT_EQ(plx_reactor_info(0, &after), 0);
		UNIT_TRUE(after.stat.turns >= before.stat.turns + 90);
		UNIT_TRUE(after.stat.idles > before.stat.idles);
		UNIT_TRUE(after.stat.idle_ticks > before.stat.idle_ticks);
	}
	plx_reactor_set_idle(PLX_IDLE_YIELD, 1);
	atomic_store(&w.busy, 1);
	wait_turns(&w, 10);
	UNIT_EQ(plx_reactor_info(0, &before), 0);
	wait_turns(&w, 100);
	UNIT_EQ(plx_reactor_info(0, &after), 0);
	UNIT_TRUE(after.stat.busy_turns >= before.stat.busy_turns + 90);
	UNIT_TRUE(after.stat.busy_ticks > before.stat.busy_ticks);
	UNIT_EQ(after.stat.idles, before.stat.idles); /* who is busy is not idle */
	plx_reactor_remove(&w.poller);
	plx_reactor_stop_all();
}

static void
time_between_busy_turns_is_idle(void)
{
	struct reactor_clock c = {.last = 1000};
	struct plx_reactor_stat st = {0};

	c.idle = 1;
	reactor_clock_busy(&c, 1500, &st); /* what an idle turn takes is not known yet */
	UNIT_EQ(st.busy_ticks, 500);
	UNIT_EQ(st.idle_ticks, 0);
	c.idle = REACTOR_CLOCK_TURNS;
	reactor_clock_idle(&c, 1500 + 100 * REACTOR_CLOCK_TURNS, &st);
	UNIT_EQ(st.idle_ticks, 100 * REACTOR_CLOCK_TURNS);
	c.idle = 3;
	reactor_clock_busy(&c, c.last + 1000, &st);
	UNIT_EQ(st.busy_ticks, 500 + 700);
	UNIT_EQ(st.idle_ticks, 100 * REACTOR_CLOCK_TURNS + 300);
	c.idle = 3;
	reactor_clock_busy(&c, c.last + 200, &st); /* they were quicker this time */
	UNIT_EQ(st.busy_ticks, 500 + 700);
	UNIT_EQ(st.idle_ticks, 100 * REACTOR_CLOCK_TURNS + 500);
	reactor_clock_idle(&c, c.last + 100000, &st); /* it slept: not what a turn takes */
	c.idle = 1;
	reactor_clock_busy(&c, c.last + 150, &st);
	UNIT_EQ(st.busy_ticks, 500 + 700 + 50);
}

/* -- sleep -- */

#define WAIT_MAX_S 30

static _Atomic bool no_fence_for_all, sleeps_for_good;
static _Atomic unsigned n_fences; /* by plx_fence_all() */
static unsigned n_world_fences;
static _Atomic unsigned n_long_sleeps;
static _Atomic int long_sleep_ms; /* the last one, at most */
static unsigned n_unsound; /* of them, without a fence between two looks */
static bool looked_again = true; /* the last look was behind a fence that was behind the one before */

bool __real_plx_fence_open(void);
bool __wrap_plx_fence_open(void);
void __real_plx_fence_all(void);
void __wrap_plx_fence_all(void);
bool __real_plx_fence_world(void);
bool __wrap_plx_fence_world(void);
int __real_epoll_wait(int epfd, struct epoll_event *events, int n, int timeout_ms);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int n, int timeout_ms);

void
__wrap_plx_fence_all(void)
{
	n_fences++;
	__real_plx_fence_all();
}

bool
__wrap_plx_fence_world(void)
{
	n_world_fences++;
	return __real_plx_fence_world();
}

bool
__wrap_plx_fence_open(void)
{
	return !no_fence_for_all && __real_plx_fence_open();
}

/* A wake-up that is lost is not made good for by the longest sleep. */
int
__wrap_epoll_wait(int epfd, struct epoll_event *events, int n, int timeout_ms)
{
	long_sleep_ms = timeout_ms;
	n_long_sleeps++;
	n_unsound += !looked_again;
	return __real_epoll_wait(epfd, events, n, sleeps_for_good ? -1 : timeout_ms);
}

/* A poller that may sleep: it has work when n is not 0. */
struct sleeper {
	struct plx_poller poller;
	_Atomic unsigned n, done;
	_Atomic unsigned arms, disarms;
	int fd;
};

static unsigned
sleeper_turn(void *arg, bool granted)
{
	struct sleeper *s = arg;
	unsigned n = atomic_exchange(&s->n, 0);

	(void)granted;
	atomic_fetch_add(&s->done, n);
	return n;
}

static int
sleeper_arm(void *arg)
{
	struct sleeper *s = arg;

	atomic_fetch_add(&s->arms, 1);
	return atomic_load(&s->n) != 0 ? -EBUSY : 0;
}

static void
sleeper_disarm(void *arg)
{
	struct sleeper *s = arg;
	uint64_t v;

	atomic_fetch_add(&s->disarms, 1);
	if (read(s->fd, &v, sizeof(v)) < 0)
		return; /* woken by something else */
}

static void
sleeper_init(struct sleeper *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = eventfd(0, EFD_NONBLOCK);
	s->poller.fn = sleeper_turn;
	s->poller.arm = sleeper_arm;
	s->poller.disarm = sleeper_disarm;
	s->poller.due_ticks = UINT64_MAX;
	s->poller.arg = s;
	s->poller.fds = &s->fd;
	s->poller.n_fds = 1;
}

static void
wait_done(struct sleeper *s, unsigned n)
{
	while (atomic_load(&s->done) != n)
		sched_yield();
}

static void
no_wake_of_a_sleeping_reactor_is_lost(void)
{
	const uint64_t one = 1;
	struct plx_reactor_info before, info;
	struct sleeper s;

	sleeper_init(&s);
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SLEEP, 1), 0);
	UNIT_EQ_FATAL(plx_reactor_add(&s.poller), 0);
	UNIT_EQ_FATAL(plx_reactor_info(0, &before), 0);
	for (unsigned i = 1; i <= 2000; i++) {
		atomic_store(&s.n, 1);
		if (i % 2 == 0)
			plx_reactor_wake(&s.poller);
		else
			UNIT_EQ(write(s.fd, &one, sizeof(one)), sizeof(one));
		wait_done(&s, i);
	}
	do { /* where it had no time to, it does now */
		sched_yield();
		UNIT_EQ_FATAL(plx_reactor_info(0, &info), 0);
	} while (info.stat.sleeps == before.stat.sleeps);
	plx_reactor_remove(&s.poller);
	UNIT_TRUE(s.disarms + 1 >= info.stat.sleeps - before.stat.sleeps);
	UNIT_TRUE(s.arms >= s.disarms);
	close(s.fd);
	plx_reactor_stop_all();
}

#define ROUNDS 20000

/* A poller with an inbox, which is posted to as a worker's is: a store and no more. */
struct posted {
	struct plx_poller poller;
	struct plx_inbox inbox;
	_Atomic unsigned done;
	unsigned fences; /* of plx_fence_all(), when it was asked last */
	bool late; /* a post comes between the last look and the sleep, */
	unsigned arms; /* but in two of eight: in the second of them the next sleep is long */
};

static void
on_posted(void *arg)
{
	atomic_fetch_add_explicit(&((struct posted *)arg)->done, 1, memory_order_relaxed);
}

static unsigned
posted_turn(void *arg, bool granted)
{
	(void)granted;
	return plx_inbox_run(&((struct posted *)arg)->inbox);
}

static void
post(struct posted *s)
{
	UNIT_EQ_FATAL(plx_inbox_post(&s->inbox, on_posted, s), 0);
	plx_reactor_wake(&s->poller);
}

/* As of a worker; then, if it is late, another thread's post comes. */
static int
posted_arm(void *arg)
{
	struct posted *s = arg;
	bool empty = plx_inbox_empty(&s->inbox);

	looked_again = n_fences != s->fences;
	s->fences = n_fences;
	if (empty && s->late && s->arms++ % 8 >= 2 && atomic_load(&s->done) < ROUNDS)
		post(s);
	return empty ? 0 : -EBUSY;
}

static void
posted_disarm(void *arg)
{
	(void)arg;
}

/* @return whether n have run before the test has waited too long */
static bool
posted_ran(struct posted *s, unsigned n)
{
	uint64_t end = rte_rdtsc() + WAIT_MAX_S * rte_get_tsc_hz();

	while (atomic_load_explicit(&s->done, memory_order_relaxed) < n)
		if (rte_rdtsc() > end)
			return false;
	return true;
}

static struct posted *
posted_start(bool fences, bool late)
{
	struct posted *s = aligned_alloc(alignof(struct posted), sizeof(*s));

	UNIT_TRUE_FATAL(s != NULL);
	memset((void *)s, 0, sizeof(*s));
	UNIT_EQ_FATAL(plx_inbox_open(&s->inbox, false), 0);
	s->poller = (struct plx_poller){.fn = posted_turn, .arm = posted_arm,
		.disarm = posted_disarm, .due_ticks = UINT64_MAX, .arg = s};
	s->late = late;
	no_fence_for_all = !fences;
	sleeps_for_good = true;
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SLEEP, 1), 0);
	s->fences = n_fences;
	UNIT_EQ_FATAL(plx_reactor_add(&s->poller), 0);
	return s;
}

static void
posted_stop(struct posted *s, bool fences)
{
	struct plx_reactor_info info;

	sleeps_for_good = false;
	plx_reactor_set_idle(PLX_IDLE_SPIN, 1); /* wakes it, whatever went wrong */
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	UNIT_TRUE(info.stat.sleeps > ROUNDS / 100);
	plx_reactor_remove(&s->poller);
	plx_reactor_stop_all();
	UNIT_TRUE(n_long_sleeps > ROUNDS / 1000);
	if (fences)
		UNIT_EQ(n_unsound, 0);
	else
		UNIT_EQ(n_fences, 0); /* the kernel would not do it */
	no_fence_for_all = false;
	n_fences = n_long_sleeps = n_unsound = 0;
	looked_again = true; /* without a poller it need not */
	plx_inbox_close(&s->inbox);
	free(s);
}

static uint64_t
sleeps(void)
{
	struct plx_reactor_info info;

	UNIT_EQ_FATAL(plx_reactor_info(0, &info), 0);
	return info.stat.sleeps;
}

static void
no_post_is_missed(bool fences)
{
	struct posted *s = posted_start(fences, false);
	uint64_t seed = unit_seed(20261121), slept = 0, end;
	unsigned doze_us = REACTOR_DOZE_US, n_long = 0; /* the kernel's timers make it longer */

	for (unsigned i = 1; i <= ROUNDS; i++) {
		if (i % 64 == 0) { /* where a sleep takes longer to begin than the posts are apart */
			while (sleeps() == slept)
				sched_yield();
			slept = sleeps();
		}
		if (i % 64 == 32) { /* it has slept briefly, and is about to sleep for long */
			doze_us = n_long_sleeps == n_long ? doze_us + 8 : RTE_MAX(doze_us - 4, REACTOR_DOZE_US);
			n_long = n_long_sleeps;
			end = rte_rdtsc() + us_ticks(doze_us + unit_rng(&seed) % 32);
			while (rte_rdtsc() < end)
				rte_pause();
		}
		for (uint64_t n = unit_rng(&seed) % 64; n > 0; n--)
			rte_pause(); /* it is on its way to sleep, somewhere */
		post(s);
		if (!posted_ran(s, i)) {
			UNIT_TRUE(false);
			break;
		}
	}
	posted_stop(s, fences);
	s = posted_start(fences, true);
	UNIT_TRUE(posted_ran(s, ROUNDS));
	posted_stop(s, fences);
}

static void
wait_long_sleep(unsigned n)
{
	while (atomic_load(&n_long_sleeps) < n)
		sched_yield();
}

static void
behind_what_wakes_it_a_reactor_sleeps_short_at_first(void)
{
	struct sleeper s;
	uint64_t slept;

	sleeper_init(&s);
	atomic_store(&n_long_sleeps, 0);
	sleeps_for_good = true;
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SLEEP, 1), 0);
	UNIT_EQ_FATAL(plx_reactor_add(&s.poller), 0);
	for (unsigned i = 1; i <= 20; i++) {
		wait_long_sleep(i);
		slept = sleeps();
		plx_reactor_wake(&s.poller); /* for nothing, as it seems */
		wait_long_sleep(i + 1);
		UNIT_EQ(sleeps(), slept + 2);
	}
	sleeps_for_good = false;
	plx_reactor_wake(&s.poller);
	plx_reactor_remove(&s.poller);
	plx_reactor_stop_all();
	close(s.fd);
	atomic_store(&n_long_sleeps, 0);
	n_fences = 0;
}

/* How long a reactor sleeps whose pollers have something to do in so many ms; 0: never. */
static int
slept_ms(uint64_t first, uint64_t second)
{
	const uint64_t due[] = {first, second};
	struct sleeper s[2];
	int ms;

	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SPIN, 1), 0);
	atomic_store(&n_long_sleeps, 0);
	for (unsigned i = 0; i < 2; i++) {
		sleeper_init(&s[i]);
		if (due[i] != 0)
			s[i].poller.due_ticks = rte_rdtsc() + us_ticks(due[i] * 1000);
		UNIT_EQ_FATAL(plx_reactor_add(&s[i].poller), 0);
	}
	plx_reactor_set_idle(PLX_IDLE_SLEEP, 1);
	wait_long_sleep(1);
	ms = long_sleep_ms;
	for (unsigned i = 0; i < 2; i++) {
		plx_reactor_remove(&s[i].poller);
		close(s[i].fd);
	}
	plx_reactor_stop_all();
	atomic_store(&n_long_sleeps, 0);
	n_fences = 0;
	return ms;
}

static void
a_sleep_ends_when_the_first_poller_has_something_to_do(void)
{
	UNIT_TRUE(slept_ms(0, 0) >= 500);
	UNIT_TRUE(slept_ms(100000, 0) >= 500);
	UNIT_TRUE(slept_ms(100000, 400) <= 400);
	UNIT_TRUE(slept_ms(400, 100000) <= 400);
}

static void
who_sends_to_no_worker_of_it_is_not_fenced(void)
{
	n_world_fences = 0;
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SLEEP, 1), 0);
	wait_long_sleep(3);
	plx_reactor_stop_all();
	UNIT_EQ(n_world_fences, 0);
	atomic_store(&n_long_sleeps, 0);
	n_fences = 0;
}

static void
no_post_is_missed_where_one_fences_for_all(void)
{
	if (plx_fence_open())
		no_post_is_missed(true);
}

static void
no_post_is_missed_where_the_kernel_has_no_membarrier(void)
{
	no_post_is_missed(false);
}

static void
a_poller_that_needs_turns_keeps_its_reactor_awake(void)
{
	struct plx_reactor_info info;
	struct sleeper s;
	struct work w;

	sleeper_init(&s);
	work_init(&w); /* it can't be armed */
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_SLEEP, 1), 0);
	UNIT_EQ_FATAL(plx_reactor_add(&w.poller), 0);
	UNIT_EQ_FATAL(plx_reactor_add(&s.poller), 0);
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	wait_turns(&w, 1000);
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	UNIT_EQ(s.arms, s.disarms);
	plx_reactor_remove(&w.poller);
	plx_reactor_remove(&s.poller);
	close(s.fd);
	plx_reactor_stop_all();
}

static void
an_auto_reactor_without_pollers_sleeps_until_it_gets_one(void)
{
	struct plx_reactor_info info;
	struct sleeper s;

	sleeper_init(&s);
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_AUTO, 1), 0);
	do
		UNIT_EQ_FATAL(plx_reactor_info(0, &info), 0);
	while (info.stat.sleeps == 0);
	UNIT_EQ_FATAL(plx_reactor_add(&s.poller), 0); /* it wakes for that */
	for (unsigned i = 1; i <= 100; i++) {
		atomic_store(&s.n, 1);
		plx_reactor_wake(&s.poller);
		wait_done(&s, i);
	}
	plx_reactor_remove(&s.poller);
	close(s.fd);
	plx_reactor_stop_all();
}

static void
a_poller_moves_between_reactors_and_goes_on(void)
{
	struct plx_reactor_info info;
	struct work w;

	work_init(&w);
	plx_reactor_set_seat(1);
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_YIELD, 1), 0);
	UNIT_EQ_FATAL(plx_reactor_start(2, false, PLX_IDLE_AUTO, 1), 0);
	UNIT_EQ(plx_reactor_move(&w.poller, 1), -ENODEV); /* it has none */
	UNIT_EQ_FATAL(plx_reactor_add(&w.poller), 0);
	UNIT_EQ(plx_reactor_lcore(&w.poller), 2); /* the second seat */
	plx_reactor_set_seat(0);
	UNIT_EQ(plx_reactor_move(&w.poller, 3), -ENODEV);
	for (unsigned i = 0; i < 200; i++) {
		UNIT_EQ(plx_reactor_move(&w.poller, 1 + i % 2), 0);
		UNIT_EQ(plx_reactor_lcore(&w.poller), (int)(1 + i % 2));
		wait_turns(&w, 2);
		UNIT_EQ(w.lcore, 1 + i % 2);
	}
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	UNIT_EQ(info.n_pollers, 0);
	UNIT_EQ(plx_reactor_info(1, &info), 0);
	UNIT_EQ(info.n_pollers, 1);
	plx_reactor_remove(&w.poller);
	UNIT_EQ(plx_reactor_lcore(&w.poller), -ENODEV);
	plx_reactor_stop_all();
}

static void *
compute(void *arg)
{
	_Atomic bool *stop = arg;

	while (!atomic_load(stop))
		;
	return NULL;
}

static void
an_offer_of_the_core_is_taken_by_who_waits_for_it(void)
{
	struct plx_yield y = {0};
	_Atomic bool stop = false;
	cpu_set_t before, one;
	uint64_t taken = 0;
	pthread_t id;
	unsigned i;

	UNIT_EQ_FATAL(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (i = 0; !CPU_ISSET(i, &before); i++)
		;
	CPU_SET(i, &one);
	UNIT_EQ_FATAL(sched_setaffinity(0, sizeof(one), &one), 0); /* the thread inherits it */
	CU_ASSERT_FATAL(pthread_create(&id, NULL, compute, &stop) == 0);
	for (i = 0; i < 1000 && taken == 0; i++)
		taken = plx_yield_now(&y);
	UNIT_TRUE(taken != 0);
	UNIT_EQ(y.every, PLX_YIELD_SHARED);
	for (i = 0; i < 1000000 && y.every != PLX_YIELD_MAX; i++)
		plx_yield_empty(&y);
	UNIT_EQ(y.every, PLX_YIELD_MAX); /* that one computes */
	atomic_store(&stop, true);
	pthread_join(id, NULL);
	sched_setaffinity(0, sizeof(before), &before);
}

/*
 * A poller whose turns are run by the reactor and by two threads, all on one core, or by one thread
 * alone, on another core where there is one.
 */
struct shared {
	struct plx_poller poller;
	cpu_set_t core;
	int reactor; /* thread, 0: not seen yet */
	_Atomic bool inside, stop;
	_Atomic unsigned crowded;
	_Atomic uint64_t own, taken; /* turns of the reactor, and of others */
	_Atomic uint64_t granted;	     /* of these, granted */
};

static unsigned
shared_turn(void *arg, bool granted)
{
	struct shared *s = arg;

	(void)granted;
	if (atomic_exchange(&s->inside, true))
		s->crowded++;
	if (s->reactor == 0) {
		s->reactor = gettid();
		sched_setaffinity(0, sizeof(s->core), &s->core);
	}
	if (s->reactor == gettid())
		s->own++;
	else
		s->taken++;
	atomic_store(&s->inside, false);
	return 0;
}

static int
shared_arm(void *arg)
{
	struct shared *s = arg;

	s->poller.due_ticks = rte_rdtsc() + us_ticks(20000); /* to look after it */
	return 0;
}

static void
shared_disarm(void *arg)
{
	(void)arg;
}

static void
shared_poll(struct shared *s, bool waits)
{
	for (unsigned i = 0; i < 1000; i++) /* it waits for a while */
		if (plx_poller_take(&s->poller, waits)) {
			s->granted += !s->poller.gate.for_call;
			shared_turn(s, true);
			plx_poller_give(&s->poller, true);
		}
	sched_yield();
}

static void *
shared_thread(void *arg)
{
	struct shared *s = arg;

	while (!atomic_load(&s->stop))
		shared_poll(s, false);
	return NULL;
}

/* The worker was granted to the application, and the reactor owns it again. */
static void
shared_round(struct shared *s, bool alone)
{
	uint64_t granted = s->granted, own;
	pthread_t id;

	atomic_store(&s->stop, false);
	if (!alone)
		UNIT_EQ_FATAL(pthread_create(&id, NULL, shared_thread, s), 0);
	while (s->granted < granted + 100)
		shared_poll(s, true);
	atomic_store(&s->stop, true);
	if (!alone)
		pthread_join(id, NULL);
	own = s->own;
	while (s->own == own) /* we do not poll any more */
		sched_yield();
}

static void
turns_change_hands(bool alone)
{
	struct shared *s = aligned_alloc(alignof(struct shared), sizeof(*s));
	struct plx_reactor_info info;
	cpu_set_t before;

	UNIT_TRUE_FATAL(s != NULL);
	memset((void *)s, 0, sizeof(*s));
	s->poller = (struct plx_poller){.fn = shared_turn, .arm = shared_arm,
		.disarm = shared_disarm, .arg = s};
	plx_gate_open(&s->poller.gate, alone);
	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&s->core);
	CPU_SET(sched_getcpu(), &s->core);
	UNIT_EQ_FATAL(plx_reactor_start(1, false, PLX_IDLE_GRANT, 1), 0);
	UNIT_EQ_FATAL(plx_reactor_add(&s->poller), 0);
	if (!alone)
		sched_setaffinity(0, sizeof(s->core), &s->core);
	for (unsigned round = 0; round < 20; round++)
		shared_round(s, alone);
	UNIT_EQ(s->crowded, 0);
	UNIT_EQ(plx_reactor_info(0, &info), 0);
	UNIT_TRUE(info.stat.grants >= 20);
	plx_reactor_remove(&s->poller);
	plx_reactor_stop_all();
	sched_setaffinity(0, sizeof(before), &before);
	free(s);
}

static void
turns_change_hands_and_nobody_meets_in_them(void)
{
	turns_change_hands(false);
}

static void
turns_change_hands_with_one_thread_alone_and_nobody_meets_in_them(void)
{
	turns_change_hands(true);
}

static CU_TestInfo timer_tests[] = {
	UNIT_TEST(timers_fire_in_order_of_time),
	UNIT_TEST(a_timer_moves_stops_and_comes_again),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo inbox_tests[] = {
	UNIT_TEST(many_producers_keep_their_order_each),
	UNIT_TEST(the_first_message_after_a_pause_is_run_alone),
	UNIT_TEST(a_full_inbox_says_so_and_loses_nothing),
	UNIT_TEST(a_message_runs_those_behind_it_and_keeps_its_cell),
	UNIT_TEST(a_message_carries_its_body_round_the_ring),
	UNIT_TEST(what_runs_may_post_itself_again),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo reactor_tests[] = {
	UNIT_TEST(a_reactor_starts_only_where_it_can),
	UNIT_TEST(beside_an_lcore_that_stays_the_programs),
	UNIT_TEST(a_poller_without_a_reactor_is_told_so),
	UNIT_TEST(pollers_are_spread_and_get_turns_until_they_go),
	UNIT_TEST(every_idle_policy_gives_turns_and_is_counted),
	UNIT_TEST(time_between_busy_turns_is_idle),
	UNIT_TEST(no_wake_of_a_sleeping_reactor_is_lost),
	UNIT_TEST(behind_what_wakes_it_a_reactor_sleeps_short_at_first),
	UNIT_TEST(a_sleep_ends_when_the_first_poller_has_something_to_do),
	UNIT_TEST(who_sends_to_no_worker_of_it_is_not_fenced),
	UNIT_TEST(no_post_is_missed_where_one_fences_for_all),
	UNIT_TEST(no_post_is_missed_where_the_kernel_has_no_membarrier),
	UNIT_TEST(a_poller_that_needs_turns_keeps_its_reactor_awake),
	UNIT_TEST(an_auto_reactor_without_pollers_sleeps_until_it_gets_one),
	UNIT_TEST(a_poller_moves_between_reactors_and_goes_on),
	UNIT_TEST(an_offer_of_the_core_is_taken_by_who_waits_for_it),
	UNIT_TEST(turns_change_hands_and_nobody_meets_in_them),
	UNIT_TEST(turns_change_hands_with_one_thread_alone_and_nobody_meets_in_them),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"timers", NULL, NULL, NULL, NULL, timer_tests},
	{"inbox", NULL, NULL, NULL, NULL, inbox_tests},
	{"reactors", NULL, NULL, NULL, NULL, reactor_tests},
	CU_SUITE_INFO_NULL,
};

/* Three lcores on whatever cpus we have, so that one cpu is enough. */
static int
start(void)
{
	char cpus[512] = "", lcores[1600];
	char *argv[] = {(char *)"reactor_test", (char *)"--no-huge", (char *)"-m", (char *)"16",
		(char *)"--no-shconf", (char *)"--no-pci", (char *)"--no-telemetry",
		(char *)"--log-level=*:3", (char *)"--iova-mode=va", (char *)"--lcores", lcores, NULL};
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -1;
	for (unsigned i = 0; i < CPU_SETSIZE && strlen(cpus) < 500; i++)
		if (CPU_ISSET(i, &set))
			snprintf(cpus + strlen(cpus), sizeof(cpus) - strlen(cpus), "%s%u",
				cpus[0] != '\0' ? "," : "", i);
	snprintf(lcores, sizeof(lcores), "0@(%s),1@(%s),2@(%s)", cpus, cpus, cpus);
	return rte_eal_init(sizeof(argv) / sizeof(argv[0]) - 1, argv);
}

int
main(void)
{
	plx_log_set_level(RTE_LOG_EMERG);
	if (start() < 0 || plx_mem_init(false) != 0) {
		fprintf(stderr, "skipped: no EAL here: %s\n", rte_strerror(rte_errno));
		return 77;
	}
	return unit_run(suites);
}

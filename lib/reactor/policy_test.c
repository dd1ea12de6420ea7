/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * policy_test.c - turns that go from a reactor to the application's threads and back
 */
#include <errno.h>
#include <sched.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_conf.h"
#include "plx_fence.h"
#include "plx_proc.h"
#include "plx_unit.h"
#include "reactor_int.h"

#define ASKS 1000000 /* enough, whatever else runs here */

static struct plx_reactor r;
static struct plx_poller p;
static cpu_set_t cpus;
static int fd, cpu;
static unsigned disarms;
static uint64_t now; /* ticks */

static void
on_disarm(void *arg)
{
	(void)arg;
	disarms++;
}

/* A reactor that has one poller, and a thread that stays on one core. */
static void
begin(void)
{
	cpu_set_t one;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	cpu = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	UNIT_EQ_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
	memset((void *)&r, 0, sizeof(r));
	memset((void *)&p, 0, sizeof(p));
	UNIT_EQ_FATAL(reactor_wake_open(&r), 0);
	UNIT_EQ_FATAL(plx_inbox_open(&r.inbox, true), 0);
	r.idle = PLX_IDLE_GRANT;
	TAILQ_INIT(&r.pollers);
	TAILQ_INSERT_TAIL(&r.pollers, &p, link);
	fd = eventfd(0, EFD_NONBLOCK);
	p.fds = &fd;
	p.n_fds = 1;
	plx_gate_open(&p.gate, false);
	p.gate.grantee = PLX_GATE_ALL; /* several threads have had them */
	p.disarm = on_disarm;
	p.reactor = &r;
	p.long_until = UINT64_MAX;
	reactor_wake_add(&r, &p);
	disarms = 0;
	now = rte_rdtsc();
	r.shared_seen = now;
	r.shared_until = now + us_ticks(1000000);
	UNIT_TRUE_FATAL(reactor_regain(&r, &p, now));
}

static void
end(void)
{
	reactor_wake_close(&r);
	plx_inbox_close(&r.inbox);
	close(fd);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static uint64_t
ran_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * UINT64_C(1000000) + t.tv_nsec / 1000;
}

/* It computes. */
static void
pass_us(uint64_t us)
{
	uint64_t then = ran_us();

	now += us_ticks(us);
	while (ran_us() - then <= us)
		;
}

/* It has no core, or sleeps. */
static void
pass_without_core_us(uint64_t us)
{
	now += us_ticks(us);
}

static bool
readable(int efd)
{
	struct pollfd f = {.fd = efd, .events = POLLIN};

	return poll(&f, 1, 0) == 1;
}

/* Ask for turns, as who waits does. @return whether they were given */
static bool
ask(unsigned most)
{
	bool taken = false;

	for (unsigned i = 0; i < most && !taken; i++)
		taken = plx_poller_take(&p, true);
	return taken;
}

static void
give_turns(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		UNIT_TRUE_FATAL(plx_poller_take(&p, false));
		plx_poller_give(&p, true);
	}
}

/* And taken back at the first look that finds no turn. */
static void
is_granted_and_looked_at_each(uint64_t us)
{
	UNIT_TRUE(!p.mine);
	UNIT_TRUE(plx_gate_is_granted(&p.gate));
	UNIT_TRUE(reactor_granted_all(&r));
	pass_us(us - 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	give_turns(REACTOR_GRANT_TURNS);
	pass_us(2);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	pass_us(us + 1);
	UNIT_TRUE(reactor_regain(&r, &p, now)); /* it computes */
}

/* The application waits, and the reactor has seen it. */
static void
grant(void)
{
	reactor_free(&r, &p);
	p.grant_after = 0; /* behind a pause */
	UNIT_TRUE_FATAL(ask(ASKS));
	plx_poller_give(&p, true);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
}

static void
turns_are_taken_while_the_reactor_idles_and_by_one_thread_at_a_time(void)
{
	begin();
	UNIT_TRUE(!ask(100)); /* the reactor has them */
	UNIT_TRUE(p.mine);
	UNIT_EQ(r.n_mine, 1);
	reactor_free(&r, &p);
	UNIT_TRUE(!p.mine);
	UNIT_EQ(r.n_mine, 0);
	UNIT_TRUE(!plx_gate_is_held(&p.gate));
	UNIT_TRUE(!plx_gate_is_granted(&p.gate));
	UNIT_TRUE(!ask(3));
	UNIT_TRUE(ask(ASKS));
	UNIT_TRUE(plx_gate_is_granted(&p.gate));
	UNIT_TRUE(!plx_poller_take(&p, false));
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	plx_poller_give(&p, true);
	UNIT_TRUE(plx_gate_is_granted(&p.gate));
	UNIT_TRUE(plx_poller_take(&p, false));
	plx_poller_give(&p, true);
	end();
}

static void
from_another_core_only_who_waits_takes_them_from_the_reactor(void)
{
	begin();
	reactor_free(&r, &p);
	UNIT_EQ(r.cpu, cpu);
	r.cpu = cpu + 1;
	p.waited_ticks = us_ticks(REACTOR_WAIT_NEAR_US);
	p.asked_ticks = rte_rdtsc();
	UNIT_TRUE(!ask(3));
	UNIT_TRUE(ask(ASKS));
	plx_poller_give(&p, true);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_TRUE(now < r.shared_until);
	UNIT_TRUE(r.hog);
	grant();
	p.near = false;
	pass_without_core_us(5000000); /* nobody was seen to want its core for long */
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_TRUE(now > r.shared_until);
	grant();
	r.cpu = cpu + 1; /* but from other threads that have them */
	UNIT_TRUE(plx_poller_take(&p, false));
	plx_poller_give(&p, true);
	end();
}

static void
only_a_reactor_whose_policy_it_is_grants(void)
{
	begin();
	reactor_free(&r, &p);
	for (r.idle = PLX_IDLE_SPIN; r.idle <= PLX_IDLE_AUTO; r.idle++) {
		UNIT_TRUE(!ask(100));
		UNIT_TRUE(!plx_poller_take(&p, false));
	}
	UNIT_TRUE(ask(ASKS));
	end();
}

static void
who_asks_now_and_then_computes_and_gets_none(void)
{
	begin();
	reactor_free(&r, &p);
	for (unsigned i = 0; i < 100; i++) {
		p.asked_ticks = 1; /* long ago */
		UNIT_TRUE(!ask(1));
	}
	UNIT_TRUE(ask(ASKS));
	end();
	begin();
	reactor_free(&r, &p);
	r.cpu = cpu + 1;
	for (unsigned i = 0; i < 100; i++) { /* it waits for a third of its time */
		p.waited_ticks += us_ticks(REACTOR_WAIT_FAR_US / 3);
		p.asked_ticks = rte_rdtsc() - us_ticks(REACTOR_WAIT_FAR_US * 2 / 3);
		UNIT_TRUE(!ask(1));
	}
	p.waited_ticks = us_ticks(REACTOR_WAIT_FAR_US + REACTOR_AWAY_US + 10);
	p.asked_ticks = rte_rdtsc() - us_ticks(1000000); /* its thread did not run */
	UNIT_TRUE(ask(1));
	end();
}

/* A call that has something to do while the reactor sleeps. */
static void
take_for_call(void)
{
	UNIT_TRUE_FATAL(plx_poller_take(&p, false));
	UNIT_TRUE(!plx_poller_take(&p, false)); /* one at a time */
	plx_poller_give(&p, false);
}

static void
a_call_takes_turns_and_lets_the_reactor_sleep(void)
{
	begin();
	UNIT_TRUE(!plx_poller_take(&p, false)); /* the reactor has them */
	p.armed = true;
	reactor_free(&r, &p);
	r.sleeping = REACTOR_ASLEEP;
	take_for_call();
	UNIT_TRUE(!plx_gate_is_granted(&p.gate));
	UNIT_TRUE(p.armed);
	UNIT_EQ(disarms, 0);
	UNIT_TRUE(!readable(r.bell));
	UNIT_TRUE(reactor_regain(&r, &p, now)); /* what woke it is its to do */
	UNIT_EQ(r.stat.grants, 0);
	UNIT_EQ(disarms, 1);
	end();
}

static void
who_takes_turns_often_keeps_them(void)
{
	begin();
	p.grant_after = UINT64_MAX; /* after a grant that ended soon */
	p.armed = true;
	reactor_free(&r, &p);
	r.sleeping = REACTOR_ASLEEP;
	for (unsigned i = 0; i < 3 * REACTOR_BORROW_CALLS; i++)
		take_for_call();
	UNIT_TRUE(!plx_gate_is_granted(&p.gate));
	p.grant_after = 0;
	for (unsigned i = 1; i < REACTOR_BORROW_CALLS; i++)
		take_for_call();
	UNIT_TRUE(!plx_gate_is_granted(&p.gate));
	UNIT_TRUE(!readable(r.bell));
	take_for_call();
	UNIT_TRUE(plx_gate_is_granted(&p.gate));
	UNIT_EQ(disarms, 1);
	UNIT_TRUE(readable(r.bell)); /* it looks whether turns are run */
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	UNIT_EQ(r.stat.grants, 1);
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE(reactor_regain(&r, &p, now)); /* none was */
	reactor_free(&r, &p);
	p.grant_after = 0;
	for (unsigned i = 1; i < REACTOR_BORROW_CALLS; i++) /* it counts anew */
		take_for_call();
	UNIT_TRUE(!plx_gate_is_granted(&p.gate));
	end();
}

static void
who_waits_for_long_data_on_the_reactors_core_is_near(void)
{
	begin();
	r.cpu = cpu;
	UNIT_TRUE(plx_poller_is_near(&p));
	p.long_until = 0;
	UNIT_TRUE(!plx_poller_is_near(&p));
	p.long_until = UINT64_MAX;
	r.cpu = cpu + 1;
	UNIT_TRUE(!plx_poller_is_near(&p));
	p.reactor = NULL; /* that of a worker which is about to go */
	UNIT_TRUE(!plx_poller_is_near(&p));
	p.reactor = &r;
	end();
}

static void
a_busy_reactor_that_shares_its_core_grants_to_a_poster(void)
{
	begin();
	now = us_ticks(10000000);
	r.offered = now; /* and nobody took it */
	r.shared_until = 0;
	p.posts = REACTOR_POST_TURNS;
	reactor_grant_to_poster(&r, &p, now);
	UNIT_TRUE(p.mine);
	UNIT_EQ(p.posts, 0);
	r.shared_until = now + 1;
	p.grant_after = now + 1;
	reactor_grant_to_poster(&r, &p, now);
	UNIT_TRUE(p.mine);
	p.grant_after = 0;
	r.idle = PLX_IDLE_AUTO;
	reactor_grant_to_poster(&r, &p, now);
	UNIT_TRUE(p.mine);
	r.idle = PLX_IDLE_GRANT;
	reactor_grant_to_poster(&r, &p, now);
	is_granted_and_looked_at_each(REACTOR_LOOK_MAX_US);
	end();
}

static void
a_busy_reactor_offers_its_core_now_and_then(void)
{
	uint64_t offered;

	begin();
	now = us_ticks(10000000);
	r.shared_until = 0;
	(void)reactor_is_shared(&r, now);
	offered = r.offered;
	UNIT_EQ(offered, now);
	pass_us(900);
	r.shared_until = 0;
	UNIT_TRUE(!reactor_is_shared(&r, now));
	UNIT_EQ(r.offered, offered);
	pass_us(200);
	(void)reactor_is_shared(&r, now);
	UNIT_EQ(r.offered, now);
	end();
}

static void
the_reactor_has_them_again_when_nobody_waits(void)
{
	begin();
	grant();
	UNIT_TRUE(reactor_granted_all(&r));
	UNIT_EQ(r.stat.grants, 1);
	for (unsigned i = 0; i < 10; i++) {
		pass_us(REACTOR_LOOK_MAX_US + 1);
		give_turns(REACTOR_GRANT_TURNS);
		UNIT_TRUE(!reactor_regain(&r, &p, now));
	}
	pass_us(p.look_us / 2);
	give_turns(RTE_MIN(REACTOR_GRANT_TURNS, 1 + p.look_us / REACTOR_TURN_US) - 1);
	for (unsigned i = 0; i < 100; i++) { /* it posts, and does not wait */
		UNIT_TRUE(plx_poller_take(&p, false));
		plx_poller_give(&p, false);
	}
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	pass_us(p.look_us / 2 + 1);
	UNIT_TRUE(plx_poller_take(&p, false));
	UNIT_TRUE(!reactor_regain(&r, &p, now)); /* somebody is in a turn */
	plx_poller_give(&p, false);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_TRUE(!reactor_granted_all(&r));
	UNIT_TRUE(!ask(100));
	UNIT_TRUE(now < r.shared_until);
	UNIT_TRUE(r.hog); /* it will not offer the core */
	UNIT_EQ(r.stat.grants, 1);
	end();
}

/* @return for how long the reactor keeps them, us */
static uint64_t
pause_behind_a_grant_of(uint64_t us)
{
	grant();
	for (; us > REACTOR_LOOK_MAX_US; us -= REACTOR_LOOK_MAX_US) {
		pass_us(REACTOR_LOOK_MAX_US + 1);
		give_turns(REACTOR_GRANT_TURNS);
		UNIT_TRUE_FATAL(!reactor_regain(&r, &p, now));
	}
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE_FATAL(reactor_regain(&r, &p, now));
	return ((p.grant_after - now) * 1000000 + rte_get_tsc_hz() / 2) / rte_get_tsc_hz();
}

static void
behind_grants_that_end_soon_the_reactor_pauses_ever_longer(void)
{
	begin();
	UNIT_EQ(pause_behind_a_grant_of(0), REACTOR_PAUSE_MIN_US);
	UNIT_EQ(pause_behind_a_grant_of(0), 2 * REACTOR_PAUSE_MIN_US);
	UNIT_EQ(pause_behind_a_grant_of(REACTOR_WORTH_US / 2), 4 * REACTOR_PAUSE_MIN_US);
	for (unsigned i = 0; i < 10; i++)
		(void)pause_behind_a_grant_of(0);
	UNIT_EQ(pause_behind_a_grant_of(0), REACTOR_PAUSE_MAX_US);
	p.grant_after = UINT64_MAX;
	reactor_free(&r, &p);
	UNIT_TRUE(!ask(10000));
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_EQ(pause_behind_a_grant_of(REACTOR_WORTH_US), REACTOR_PAUSE_MIN_US); /* that was worth it */
	UNIT_EQ(pause_behind_a_grant_of(0), 2 * REACTOR_PAUSE_MIN_US);
	grant();
	plx_poller_return(&p); /* it goes to sleep */
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_EQ(p.grant_after, 0);
	end();
}

static void
a_loan_to_threads_that_had_no_core_ends_without_a_pause(void)
{
	begin();
	for (unsigned i = 0; i < 3; i++) {
		grant();
		pass_without_core_us(REACTOR_LOOK_MAX_US + 1);
		UNIT_TRUE(reactor_regain(&r, &p, now));
		UNIT_EQ(p.grant_after, 0);
	}
	UNIT_EQ(pause_behind_a_grant_of(0), REACTOR_PAUSE_MIN_US); /* as the first that counts */
	end();
}

/* Progress while the reactor has the turns; none are given. */
static void
ask_in_vain(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		UNIT_TRUE_FATAL(!plx_poller_take(&p, true));
}

static void
a_reactor_with_a_core_of_its_own_lends_to_who_waits_and_looks_soon(void)
{
	begin();
	r.shared_seen = r.shared_until = 0;
	p.long_until = 0;
	reactor_grant_to_waiters(&r, now);
	UNIT_EQ(r.look_at, now + us_ticks(REACTOR_LOOK_OWN_US));
	ask_in_vain(REACTOR_GRANT_TURNS - 1); /* now and then */
	reactor_grant_to_waiters(&r, now);
	UNIT_TRUE(p.mine);
	ask_in_vain(REACTOR_GRANT_TURNS);
	reactor_grant_to_waiters(&r, now);
	is_granted_and_looked_at_each(REACTOR_LOOK_OWN_US);
	UNIT_TRUE(reactor_has_core(&r, now));
	ask_in_vain(REACTOR_GRANT_TURNS);
	reactor_grant_to_waiters(&r, now);
	UNIT_TRUE(p.mine); /* after a short grant */
	end();
}

static void
a_reactor_does_not_lend_to_who_waits_what_it_has_to_move(void)
{
	begin();
	r.shared_until = 0; /* something long is under way: see begin() */
	ask_in_vain(REACTOR_GRANT_TURNS);
	reactor_grant_to_waiters(&r, now);
	UNIT_TRUE(p.mine);
	p.long_until = 0;
	r.idle = PLX_IDLE_AUTO;
	ask_in_vain(REACTOR_GRANT_TURNS);
	reactor_grant_to_waiters(&r, now);
	UNIT_TRUE(p.mine);
	end();
}

static void
a_reactor_that_stands_by_is_woken_without_a_call_of_the_kernel(void)
{
	begin();
	r.shared_until = 0;
	r.offered = now;
	p.long_until = 0;
	ask_in_vain(REACTOR_GRANT_TURNS);
	reactor_grant_to_waiters(&r, now);
	reactor_idle(&r, now); /* and comes back, to look */
	UNIT_EQ(r.stat.sleeps, 0);
	UNIT_EQ(r.sleeping, REACTOR_AWAKE);
	r.sleeping = REACTOR_STANDS_BY;
	plx_poller_long(&p, 1);
	UNIT_EQ(r.sleeping, REACTOR_AWAKE);
	UNIT_TRUE(!readable(r.bell));
	UNIT_TRUE(reactor_regain(&r, &p, now));
	end();
}

static void
one_thread_alone_enters_and_leaves_without_a_change_of_turns(void)
{
	begin();
	p.gate.one = true;
	p.gate.grantee = PLX_GATE_ONE;
	grant();
	UNIT_TRUE(plx_poller_take(&p, true));
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ONE);
	UNIT_TRUE(!plx_poller_take(&p, false)); /* a callback asks */
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now)); /* it is in a turn */
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ONE);
	plx_poller_give(&p, false);
	UNIT_TRUE(!p.gate.bias.inside);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_TRUE(!plx_poller_take(&p, false));
	UNIT_TRUE(!p.gate.bias.inside);
	grant();
	UNIT_TRUE(plx_poller_take(&p, true));
	plx_poller_return(&p); /* the same */
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ONE);
	plx_poller_give(&p, true);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_FREE);
	UNIT_TRUE(!p.returns);
	end();
}

static void *
another_takes(void *arg)
{
	bool *taken = arg;

	*taken = plx_poller_take(&p, false);
	if (*taken)
		plx_poller_give(&p, 1);
	return NULL;
}

static bool
another_gets_them(void)
{
	bool taken;
	pthread_t id;

	UNIT_EQ_FATAL(pthread_create(&id, NULL, another_takes, &taken), 0);
	pthread_join(id, NULL);
	return taken;
}

static void *
another_returns(void *arg)
{
	plx_poller_return(&p);
	return arg;
}

static void
another_returns_them(void)
{
	pthread_t id;

	UNIT_EQ_FATAL(pthread_create(&id, NULL, another_returns, NULL), 0);
	pthread_join(id, NULL);
}

static void
the_first_of_several_threads_enters_until_another_comes(void)
{
	begin();
	p.gate.grantee = 0;
	grant();
	UNIT_TRUE(plx_poller_take(&p, false));
	UNIT_EQ(p.gate.bias.to, PLX_GATE_TAKEN);
	plx_poller_give(&p, 0);
	UNIT_TRUE(plx_poller_take(&p, false));
	UNIT_EQ(p.gate.bias.to, plx_bias_self());
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	UNIT_TRUE(!another_gets_them());
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ALL);
	UNIT_TRUE(!another_gets_them()); /* it is inside yet, though it enters no more */
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	plx_poller_give(&p, 0);
	UNIT_TRUE(another_gets_them());
	UNIT_TRUE(plx_poller_take(&p, false));
	UNIT_EQ(p.gate.bias.to, PLX_GATE_TAKEN);
	UNIT_TRUE(!another_gets_them());
	plx_poller_give(&p, 0);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ALL);
	end();
}

static void
another_thread_returns_them_only_when_nobody_is_inside(void)
{
	begin();
	p.gate.grantee = 0;
	grant();
	UNIT_TRUE(plx_poller_take(&p, false)); /* the first */
	plx_poller_give(&p, 0);
	UNIT_TRUE(plx_poller_take(&p, false));
	UNIT_TRUE(!another_gets_them());
	another_returns_them();
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ALL);
	UNIT_TRUE(!p.returns);
	plx_poller_give(&p, 0);
	plx_poller_return(&p);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_FREE);
	end();
}

static void
the_first_look_comes_soon_and_the_next_ones_later(void)
{
	begin();
	grant();
	for (uint64_t us = REACTOR_LOOK_MIN_US; us < 2 * REACTOR_LOOK_MAX_US; us *= 2) {
		UNIT_EQ(p.look_us, RTE_MIN(us, REACTOR_LOOK_MAX_US));
		pass_us(p.look_us - 1);
		UNIT_TRUE(!reactor_regain(&r, &p, now)); /* it does not look yet */
		pass_us(2);
		give_turns(REACTOR_GRANT_TURNS);
		UNIT_TRUE(!reactor_regain(&r, &p, now));
	}
	end();
}

static void
who_takes_them_from_a_reactor_that_sleeps_disarms_and_wakes_it(void)
{
	uint64_t n;

	begin();
	p.armed = true;
	reactor_free(&r, &p);
	r.sleeping = REACTOR_ASLEEP;
	UNIT_TRUE(ask(ASKS));
	UNIT_EQ(disarms, 1);
	UNIT_TRUE(!p.armed);
	UNIT_EQ(read(r.bell, &n, sizeof(n)), sizeof(n));
	plx_poller_give(&p, true);
	UNIT_TRUE(plx_poller_take(&p, false)); /* from then on they do without */
	plx_poller_give(&p, true);
	UNIT_EQ(disarms, 1);
	UNIT_TRUE(!readable(r.bell));
	end();
}

static void
what_comes_for_a_poller_that_is_granted_does_not_wake_the_reactor(void)
{
	const uint64_t one = 1;

	begin();
	UNIT_EQ(write(fd, &one, sizeof(one)), sizeof(one));
	UNIT_TRUE(readable(r.epfd));
	grant();
	UNIT_TRUE(!readable(r.epfd));
	pass_us(REACTOR_LOOK_MAX_US + 1);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_TRUE(readable(r.epfd));
	end();
}

static void
who_is_to_sleep_returns_them_at_once(void)
{
	begin();
	plx_poller_return(&p); /* it has none: nothing */
	UNIT_TRUE(plx_gate_is_held(&p.gate));
	grant();
	r.sleeping = REACTOR_ASLEEP;
	plx_poller_return(&p);
	UNIT_TRUE(readable(r.bell));
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_EQ(r.n_mine, 1);
	UNIT_EQ(r.n_granted, 0);
	end();
}

static void
a_reactor_does_not_sleep_on_turns_that_were_returned_meanwhile(void)
{
	begin();
	grant();
	reactor_idle(&r, now);
	UNIT_EQ(r.stat.sleeps, 1);
	plx_poller_return(&p); /* it does not sleep: nobody wakes it */
	UNIT_TRUE(!readable(r.bell));
	reactor_idle(&r, now);
	UNIT_EQ(r.stat.sleeps, 1);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	end();
}

static void
who_waits_while_nothing_long_moves_has_them_at_once_and_keeps_them(void)
{
	begin();
	p.long_until = 0;
	reactor_free(&r, &p);
	r.cpu = cpu + 1;
	for (unsigned i = 0; i < 10; i++) {
		p.asked_ticks = rte_rdtsc() - us_ticks(2 * REACTOR_ASK_US); /* it asks now and then */
		UNIT_TRUE(!plx_poller_take(&p, true));
	}
	for (unsigned i = 0; i < 1000 && !plx_gate_is_granted(&p.gate); i++) { /* an emulator is slow at first */
		p.asked_ticks = rte_rdtsc();
		(void)plx_poller_take(&p, true);
	}
	UNIT_TRUE(plx_gate_is_granted(&p.gate));
	plx_poller_give(&p, true);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	pass_us(REACTOR_LOOK_SHORT_US - 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	give_turns(REACTOR_GRANT_TURNS);
	pass_us(2);
	for (unsigned us = 2 * REACTOR_LOOK_SHORT_US; us < 4 * REACTOR_LOOK_LATE_US; us *= 2) {
		UNIT_TRUE(!reactor_regain(&r, &p, now));
		UNIT_EQ(p.look_us, RTE_MIN(us, REACTOR_LOOK_LATE_US)); /* it need not look so often */
		give_turns(REACTOR_GRANT_TURNS);
		pass_us(p.look_us + 1);
	}
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	pass_us(REACTOR_LOOK_LATE_US + 1);
	UNIT_TRUE(reactor_regain(&r, &p, now)); /* it computes for long */
	end();
}

static void
who_yields_while_it_waits_keeps_them(void)
{
	begin();
	p.long_until = 0;
	grant();
	plx_poller_away(&p);
	pass_us(REACTOR_LOOK_SHORT_US + 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	UNIT_EQ(p.look_us, REACTOR_LOOK_AWAY_US);
	p.asked_ticks = 0;
	plx_poller_back(&p);
	UNIT_TRUE(rte_rdtsc() - p.asked_ticks < us_ticks(1000)); /* as if it had asked meanwhile */
	pass_us(REACTOR_LOOK_AWAY_US + 1);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	end();
}

static void
another_policy_ends_a_loan_at_once(void)
{
	begin();
	p.long_until = 0;
	grant();
	plx_poller_away(&p);
	give_turns(REACTOR_GRANT_TURNS);
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	r.idle = PLX_IDLE_YIELD;
	UNIT_TRUE(reactor_regain(&r, &p, now));
	plx_poller_back(&p);
	end();
}

static void *
wait_and_sleep(void *arg)
{
	int *fds = arg;
	char c;

	plx_poller_away(&p);
	plx_poller_back(&p);
	UNIT_EQ(read(fds[0], &c, 1), 1);
	return NULL;
}

static void
who_waits_and_has_no_core_keeps_them_but_not_who_sleeps(void)
{
	pthread_t id;
	int fds[2];

	begin();
	p.long_until = 0;
	grant();
	plx_poller_away(&p); /* so it is this thread that waits, */
	plx_poller_back(&p);
	pass_without_core_us(100 * REACTOR_LOOK_SHORT_US); /* and it runs, as the kernel says */
	UNIT_TRUE(!reactor_regain(&r, &p, now));
	UNIT_EQ_FATAL(pipe(fds), 0);
	UNIT_EQ_FATAL(pthread_create(&id, NULL, wait_and_sleep, fds), 0);
	while (p.waiter == (uint32_t)gettid() || plx_proc_runs(p.waiter))
		usleep(100);
	pass_without_core_us(100 * REACTOR_LOOK_AWAY_US);
	UNIT_TRUE(reactor_regain(&r, &p, now));
	UNIT_EQ(write(fds[1], "", 1), 1);
	pthread_join(id, NULL);
	close(fds[0]);
	close(fds[1]);
	end();
}

static void
what_is_long_returns_them_until_it_may_be_over(void)
{
	const uint64_t len = 10 * 1000 * REACTOR_LONG_RATE;
	uint64_t then;

	begin();
	p.long_until = 0;
	grant();
	then = rte_rdtsc();
	plx_poller_long(&p, len);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_FREE);
	UNIT_TRUE(p.long_until >= then + us_ticks(10000 + REACTOR_LONG_US));
	UNIT_TRUE(p.long_until <= rte_rdtsc() + us_ticks(10000 + REACTOR_LONG_US));
	then = p.long_until;
	plx_poller_long(&p, 1); /* over sooner */
	UNIT_EQ(p.long_until, then);
	r.cpu = cpu + 1;
	p.waited_ticks = 0;
	for (unsigned i = 0; i < 10; i++) {
		p.asked_ticks = rte_rdtsc();
		UNIT_TRUE(!plx_poller_take(&p, true));
	}
	end();
}

/* Something long, and turns asked for behind it at once, or later. */
static void
post_long(bool waits)
{
	p.gate.bias.to = PLX_GATE_ALL;
	plx_poller_long(&p, 1);
	for (unsigned i = 0; i < REACTOR_LONG_ASKS && p.long_posted; i++) {
		p.gate.bias.to = PLX_GATE_ALL;
		p.long_ticks = rte_rdtsc() - (waits ? 0 : us_ticks(REACTOR_ASK_US + 1));
		UNIT_TRUE_FATAL(plx_poller_take(&p, true));
		plx_poller_give(&p, 1);
	}
}

static void
who_has_waited_for_what_is_long_keeps_them_until_it_computes(void)
{
	unsigned n = 0;

	begin();
	p.long_until = 0;
	grant();
	while (!p.waits_long && n < ASKS) { /* this thread may have no core now and then */
		post_long(true);
		n++;
	}
	UNIT_TRUE(n >= REACTOR_LONG_SURE && p.waits_long);
	p.gate.bias.to = PLX_GATE_ONE;
	pass_us(REACTOR_LOOK_SHORT_US + 1);
	UNIT_TRUE(!reactor_regain(&r, &p, now)); /* there were turns */
	r.sleeping = REACTOR_ASLEEP;
	plx_poller_long(&p, 1);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_ONE);
	UNIT_TRUE(!readable(r.bell));
	r.cpu = cpu + 1; /* for a reactor that need not take its core it would be a guess */
	plx_poller_long(&p, 1);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_FREE);
	UNIT_TRUE(readable(r.bell));
	r.cpu = cpu;
	p.gate.bias.to = PLX_GATE_ONE;
	pass_us(p.look_us + 1); /* but it computes */
	UNIT_TRUE(reactor_regain(&r, &p, now));
	post_long(false);
	post_long(false);
	UNIT_TRUE(!p.waits_long);
	p.gate.bias.to = PLX_GATE_ONE;
	r.sleeping = REACTOR_ASLEEP;
	plx_poller_long(&p, 1);
	UNIT_EQ(p.gate.bias.to, PLX_GATE_FREE);
	UNIT_TRUE(readable(r.bell));
	end();
}

static void
who_waits_for_what_is_long_is_looked_at_ever_more_rarely_and_may_give_few_turns(void)
{
	begin();
	p.waits_long = true;
	p.long_until = UINT64_MAX;
	grant();
	p.granted_until = 0;
	p.look_us = REACTOR_LOOK_MAX_US;
	for (unsigned us = 2 * REACTOR_LOOK_MAX_US; us < 4 * REACTOR_LOOK_LATE_US; us *= 2) {
		give_turns(RTE_MIN(REACTOR_GRANT_TURNS, 1 + p.look_us / REACTOR_TURN_US));
		UNIT_TRUE(!reactor_regain(&r, &p, now));
		UNIT_EQ(p.look_us, RTE_MIN(us, REACTOR_LOOK_LATE_US));
		pass_us(p.look_us + 1);
	}
	UNIT_TRUE(reactor_regain(&r, &p, now));
	end();
}

/* Who wakes it has taken sleeping, and writes to the bell when the reactor is up already. */
static int
arm_while_woken(void *arg)
{
	(void)arg;
	UNIT_EQ(atomic_exchange(&r.sleeping, REACTOR_AWAKE), REACTOR_ASLEEP);
	return -EBUSY;
}

static int
arm_alone(void *arg)
{
	(void)arg;
	return 0;
}

static void
a_bell_that_rings_late_wakes_one_sleep_only(void)
{
	const uint64_t one = 1;

	begin();
	r.idle = PLX_IDLE_SLEEP;
	p.arm = arm_while_woken;
	reactor_idle(&r, now);
	UNIT_EQ(r.stat.sleeps, 0);
	UNIT_EQ(write(r.bell, &one, sizeof(one)), sizeof(one));
	p.arm = arm_alone;
	for (unsigned i = 1; i <= 2; i++) {
		UNIT_TRUE(reactor_regain(&r, &p, now));
		reactor_idle(&r, now);
		UNIT_EQ(r.stat.sleeps, i);
		UNIT_TRUE(!readable(r.bell));
	}
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(turns_are_taken_while_the_reactor_idles_and_by_one_thread_at_a_time),
	UNIT_TEST(from_another_core_only_who_waits_takes_them_from_the_reactor),
	UNIT_TEST(only_a_reactor_whose_policy_it_is_grants),
	UNIT_TEST(who_asks_now_and_then_computes_and_gets_none),
	UNIT_TEST(a_call_takes_turns_and_lets_the_reactor_sleep),
	UNIT_TEST(who_takes_turns_often_keeps_them),
	UNIT_TEST(who_waits_for_long_data_on_the_reactors_core_is_near),
	UNIT_TEST(a_busy_reactor_that_shares_its_core_grants_to_a_poster),
	UNIT_TEST(a_busy_reactor_offers_its_core_now_and_then),
	UNIT_TEST(the_reactor_has_them_again_when_nobody_waits),
	UNIT_TEST(behind_grants_that_end_soon_the_reactor_pauses_ever_longer),
	UNIT_TEST(a_loan_to_threads_that_had_no_core_ends_without_a_pause),
	UNIT_TEST(a_reactor_with_a_core_of_its_own_lends_to_who_waits_and_looks_soon),
	UNIT_TEST(a_reactor_does_not_lend_to_who_waits_what_it_has_to_move),
	UNIT_TEST(a_reactor_that_stands_by_is_woken_without_a_call_of_the_kernel),
	UNIT_TEST(one_thread_alone_enters_and_leaves_without_a_change_of_turns),
	UNIT_TEST(the_first_of_several_threads_enters_until_another_comes),
	UNIT_TEST(another_thread_returns_them_only_when_nobody_is_inside),
	UNIT_TEST(the_first_look_comes_soon_and_the_next_ones_later),
	UNIT_TEST(who_takes_them_from_a_reactor_that_sleeps_disarms_and_wakes_it),
	UNIT_TEST(what_comes_for_a_poller_that_is_granted_does_not_wake_the_reactor),
	UNIT_TEST(who_is_to_sleep_returns_them_at_once),
	UNIT_TEST(a_reactor_does_not_sleep_on_turns_that_were_returned_meanwhile),
	UNIT_TEST(who_waits_while_nothing_long_moves_has_them_at_once_and_keeps_them),
	UNIT_TEST(who_yields_while_it_waits_keeps_them),
	UNIT_TEST(another_policy_ends_a_loan_at_once),
	UNIT_TEST(who_waits_and_has_no_core_keeps_them_but_not_who_sleeps),
	UNIT_TEST(what_is_long_returns_them_until_it_may_be_over),
	UNIT_TEST(who_has_waited_for_what_is_long_keeps_them_until_it_computes),
	UNIT_TEST(who_waits_for_what_is_long_is_looked_at_ever_more_rarely_and_may_give_few_turns),
	UNIT_TEST(a_bell_that_rings_late_wakes_one_sleep_only),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"lend", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

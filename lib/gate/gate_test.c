/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * gate_test.c - one owner at a time: each change of owner, and threads and a reactor that change it at random
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_pause.h>

#include "plx_gate.h"
#include "plx_unit.h"

#define TIMES	200000
#define REACTOR_TIMES 1000
#define THREADS 3

static struct plx_gate g;

/* The ways of an application's thread, without a policy. */
static bool
app_take(bool for_call)
{
	uintptr_t owner = plx_gate_owner(&g), self = plx_gate_self(&g);

	if (owner == self) {
		if (!plx_gate_enter(&g, self))
			return false;
		g.entered = true;
		return true;
	}
	if (plx_gate_is_granted(&g))
		return plx_gate_take_granted(&g);
	if (owner != PLX_GATE_FREE || !plx_gate_take_free(&g, PLX_GATE_TAKEN))
		return false;
	g.for_call = for_call;
	return true;
}

static void
app_give(void)
{
	if (g.entered)
		plx_gate_leave(&g);
	else
		plx_gate_give_taken(&g);
}

static bool
reactor_take(void)
{
	return plx_gate_owner(&g) == PLX_GATE_FREE ? plx_gate_take_free(&g, PLX_GATE_REACTOR)
						   : plx_gate_revoke(&g);
}

struct other {
	bool (*fn)(void);
	bool rc;
};

static void *
other_run(void *arg)
{
	struct other *o = arg;

	o->rc = o->fn();
	return NULL;
}

/* fn in another thread. */
static bool
another(bool (*fn)(void))
{
	struct other o = {.fn = fn};
	pthread_t id;

	UNIT_EQ_FATAL(pthread_create(&id, NULL, other_run, &o), 0);
	pthread_join(id, NULL);
	return o.rc;
}

static bool
takes(void)
{
	return app_take(false);
}

static bool
takes_and_gives(void)
{
	if (!app_take(false))
		return false;
	app_give();
	return true;
}

static bool
frees(void)
{
	return plx_gate_free_granted(&g);
}

static void
granted_gate(bool one)
{
	plx_gate_open(&g, one);
	UNIT_TRUE_FATAL(reactor_take());
	plx_gate_grant(&g);
	UNIT_TRUE(plx_gate_is_granted(&g));
}

static void
the_reactor_has_what_is_free_and_nobody_else_then(void)
{
	plx_gate_open(&g, true);
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_FREE);
	UNIT_TRUE(reactor_take());
	UNIT_TRUE(plx_gate_is_held(&g));
	UNIT_TRUE(!reactor_take());
	UNIT_TRUE(!app_take(false));
	UNIT_TRUE(!plx_gate_take_granted(&g));
	UNIT_TRUE(!plx_gate_free_granted(&g));
	plx_gate_free(&g);
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_FREE);
}

static void
one_thread_enters_what_is_granted_and_the_reactor_waits_until_it_has_left(void)
{
	granted_gate(true);
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_ONE);
	UNIT_TRUE(app_take(false));
	UNIT_TRUE(plx_gate_is_inside(&g));
	UNIT_TRUE(!app_take(false)); /* a callback asks */
	UNIT_TRUE(!another(reactor_take));
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_ONE);
	app_give();
	UNIT_TRUE(!plx_gate_is_inside(&g));
	UNIT_TRUE(another(reactor_take));
	UNIT_TRUE(!app_take(false));
	UNIT_TRUE(!plx_gate_is_inside(&g));
}

static void
what_is_free_is_taken_for_a_call_or_kept(void)
{
	plx_gate_open(&g, true);
	UNIT_TRUE(app_take(true));
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_TAKEN);
	UNIT_TRUE(!another(reactor_take));
	app_give();
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_FREE);
	UNIT_TRUE(app_take(false));
	app_give();
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_ONE);
	UNIT_TRUE(frees());
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_FREE);
	UNIT_TRUE(!frees());
}

static void
the_first_of_several_has_the_bias_until_another_comes(void)
{
	granted_gate(false);
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_ALL);
	UNIT_TRUE(takes_and_gives());
	UNIT_EQ(plx_gate_owner(&g), plx_bias_self());
	UNIT_TRUE(app_take(false));
	UNIT_TRUE(g.entered);
	UNIT_TRUE(!another(takes)); /* this one is in yet, */
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_ALL); /* though it enters no more */
	app_give();
	UNIT_TRUE(app_take(false));
	UNIT_TRUE(!g.entered);
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_TAKEN);
	UNIT_TRUE(!another(takes));
	app_give();
	UNIT_TRUE(another(takes_and_gives));
	UNIT_TRUE(reactor_take());
	plx_gate_grant(&g);
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_ALL); /* for good */
}

static void
another_thread_frees_them_only_when_nobody_is_in(void)
{
	granted_gate(false);
	UNIT_TRUE(takes_and_gives());
	UNIT_TRUE(app_take(false));
	UNIT_TRUE(!another(frees));
	app_give();
	UNIT_TRUE(another(frees));
	UNIT_EQ(plx_gate_owner(&g), PLX_GATE_FREE);
}

/* -- at random -- */

static struct {
	uint64_t n;	       /* the owner's, plain */
	bool busy;	       /* the same */
	uint64_t crowded;      /* two at a time */
	_Atomic bool stop;
	_Atomic uint64_t by_reactor, by_apps;
} owned;

static void
act(void)
{
	owned.crowded += owned.busy;
	owned.busy = true;
	owned.n++;
	owned.busy = false;
}

/* The others are to be in the middle of something, not asleep; but there may be more threads than cores. */
static void
in_vain(unsigned *n)
{
	if (++*n % 256 == 0)
		sched_yield();
}

static void *
reactor_run(void *arg)
{
	unsigned seed = 1, vain = 0;

	while (!atomic_load(&owned.stop)) {
		if (!reactor_take()) {
			in_vain(&vain);
			continue;
		}
		act();
		atomic_fetch_add(&owned.by_reactor, 1);
		if (rand_r(&seed) % 4 == 0)
			plx_gate_free(&g);
		else
			plx_gate_grant(&g);
		for (unsigned i = rand_r(&seed) % 64; i != 0; i--)
			rte_pause();
	}
	return arg;
}

static void *
app_run(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg, vain = 0;
	uint64_t n = 0;

	/* The reactor may begin late, where there are more threads than cores. */
	while (n < TIMES || atomic_load(&owned.by_reactor) < REACTOR_TIMES) {
		if (rand_r(&seed) % 1024 == 0)
			(void)plx_gate_free_granted(&g);
		if (!app_take(rand_r(&seed) % 2)) {
			in_vain(&vain);
			continue;
		}
		act();
		app_give();
		n++;
	}
	atomic_fetch_add(&owned.by_apps, n);
	return NULL;
}

static void
one_owner_at_a_time(unsigned n_threads)
{
	pthread_t reactor, app[THREADS];

	plx_gate_open(&g, n_threads == 1);
	owned.n = 0;
	owned.by_reactor = 0;
	owned.by_apps = 0;
	owned.stop = false;
	UNIT_EQ_FATAL(pthread_create(&reactor, NULL, reactor_run, NULL), 0);
	for (uintptr_t i = 0; i < n_threads; i++)
		UNIT_EQ_FATAL(pthread_create(&app[i], NULL, app_run, (void *)(i + 2)), 0);
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(app[i], NULL);
	atomic_store(&owned.stop, true);
	pthread_join(reactor, NULL);
	UNIT_EQ(owned.crowded, 0);
	UNIT_EQ(owned.n, owned.by_apps + owned.by_reactor);
}

static void
a_reactor_and_one_thread_are_never_both_owners(void)
{
	one_owner_at_a_time(1);
}

static void
nor_are_a_reactor_and_several_threads(void)
{
	one_owner_at_a_time(THREADS);
}

int
main(void)
{
	CU_TestInfo tests[] = {
		UNIT_TEST(the_reactor_has_what_is_free_and_nobody_else_then),
		UNIT_TEST(one_thread_enters_what_is_granted_and_the_reactor_waits_until_it_has_left),
		UNIT_TEST(what_is_free_is_taken_for_a_call_or_kept),
		UNIT_TEST(the_first_of_several_has_the_bias_until_another_comes),
		UNIT_TEST(another_thread_frees_them_only_when_nobody_is_in),
		UNIT_TEST(a_reactor_and_one_thread_are_never_both_owners),
		UNIT_TEST(nor_are_a_reactor_and_several_threads),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"gate", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

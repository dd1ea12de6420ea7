/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * lock_test.c - to which thread the lock is biased, which wait, and that one at a time has it
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "plx_fence.h"
#include "plx_lock.h"
#include "plx_unit.h"

#define ROUNDS	10
#define TIMES	20000
#define THREADS 4

static struct plx_lock lock;
static uint64_t n_counted; /* under the lock */

static uintptr_t
me(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static uintptr_t
favoured(void)
{
	return atomic_load(&lock.bias.to);
}

static bool
is_free(void)
{
	return atomic_load(&lock.bias.inside) == 0 && atomic_load(&lock.owner) == 0 &&
	       atomic_load(&lock.taken) == PLX_LOCK_FREE && lock.depth == 0;
}

static void *
count(void *arg)
{
	for (unsigned i = 0; i < TIMES; i++) {
		plx_lock_enter(&lock);
		n_counted++;
		plx_lock_leave(&lock);
	}
	return arg;
}

static pthread_t
start(void *(*fn)(void *), void *arg)
{
	pthread_t id;

	UNIT_EQ_FATAL(pthread_create(&id, NULL, fn, arg), 0);
	return id;
}

static void *
enter_once(void *arg)
{
	plx_lock_enter(&lock);
	plx_lock_leave(&lock);
	return arg;
}

static void *
try_once(void *arg)
{
	bool *got = arg;

	*got = plx_lock_try_enter(&lock);
	if (*got)
		plx_lock_leave(&lock);
	return arg;
}

static bool
another_gets_it(void)
{
	bool got;

	pthread_join(start(try_once, &got), NULL);
	return got;
}

static void
open_lock(void)
{
	UNIT_TRUE_FATAL(plx_fence_open());
	plx_lock_open(&lock);
	n_counted = 0;
}

static void
the_first_thread_is_favoured_until_another_comes(void)
{
	open_lock();
	UNIT_EQ(favoured(), PLX_LOCK_NOBODY);
	enter_once(NULL);
	UNIT_EQ(favoured(), me());
	plx_lock_enter(&lock);
	UNIT_EQ(lock.bias.inside, me()); /* and no more */
	UNIT_EQ(lock.taken, PLX_LOCK_FREE);
	plx_lock_leave(&lock);
	UNIT_TRUE(is_free());
	pthread_join(start(enter_once, NULL), NULL);
	UNIT_EQ(favoured(), PLX_LOCK_ALL);
	plx_lock_enter(&lock);
	UNIT_EQ(lock.bias.inside, 0);
	UNIT_EQ(lock.taken, PLX_LOCK_TAKEN);
	plx_lock_leave(&lock);
	UNIT_TRUE(is_free());
}

static void
without_a_barrier_for_all_nobody_is_favoured(void)
{
	open_lock();
	lock.bias.to = PLX_LOCK_ALL; /* as plx_lock_open() leaves it then */
	count(NULL);
	UNIT_EQ(favoured(), PLX_LOCK_ALL);
}

/* The thread with the bias has ended, and the one that comes may look like it. */
static void
a_favoured_thread_that_has_ended_is_not_waited_for(void)
{
	open_lock();
	pthread_join(start(count, NULL), NULL);
	UNIT_TRUE(favoured() > PLX_LOCK_ALL);
	count(NULL);
	pthread_join(start(count, NULL), NULL);
	UNIT_EQ(n_counted, 3ull * TIMES);
	UNIT_TRUE(is_free());
}

/* However long it is alone again: the thread that had the bias may come back to where it stopped. */
static void
nobody_is_favoured_after_that(void)
{
	open_lock();
	enter_once(NULL);
	pthread_join(start(enter_once, NULL), NULL);
	count(NULL);
	UNIT_EQ(favoured(), PLX_LOCK_ALL);
	UNIT_TRUE(is_free());
}

/* Recursion: with the bias, as one of several, and while the bias is being revoked. */
static void
who_has_it_may_enter_again(void)
{
	open_lock();
	enter_once(NULL);
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ(favoured(), i == 0 ? me() : PLX_LOCK_ALL);
		plx_lock_enter(&lock);
		plx_lock_enter(&lock);
		UNIT_TRUE(plx_lock_try_enter(&lock));
		UNIT_TRUE(plx_lock_is_mine(&lock));
		for (unsigned k = 0; k < 2; k++) {
			UNIT_TRUE(!another_gets_it());
			plx_lock_leave(&lock);
		}
		UNIT_EQ(favoured(), PLX_LOCK_ALL);
		plx_lock_enter(&lock); /* the bias is revoked, the thread is still inside */
		plx_lock_leave(&lock);
		UNIT_TRUE(!another_gets_it());
		plx_lock_leave(&lock);
		UNIT_TRUE(!plx_lock_is_mine(&lock));
		UNIT_TRUE(another_gets_it());
	}
	UNIT_TRUE(is_free());
}

/* The quick way is for the thread that the lock is biased to, while it does not have the lock, and for no other. */
static void
the_quick_way_is_the_favoured_threads(void)
{
	open_lock();
	UNIT_TRUE(!plx_lock_enter_quick(&lock)); /* it has no bias yet */
	enter_once(NULL);
	UNIT_TRUE(plx_lock_enter_quick(&lock));
	UNIT_TRUE(!plx_lock_enter_quick(&lock));
	plx_lock_enter(&lock);
	UNIT_TRUE(!another_gets_it());
	plx_lock_leave(&lock);
	plx_lock_drop_quick(&lock);
	UNIT_TRUE(is_free());
	UNIT_TRUE(another_gets_it());
	UNIT_TRUE(!plx_lock_enter_quick(&lock)); /* the bias is gone */
	UNIT_TRUE(is_free());
}

/* In vain, however often: who is inside has it. */
static void *
try_often(void *arg)
{
	bool *got = arg;

	*got = false;
	for (unsigned i = 0; i < TIMES; i++)
		*got = *got || plx_lock_try_enter(&lock);
	return arg;
}

static void
who_tries_does_not_wait(void)
{
	bool got;

	open_lock();
	enter_once(NULL);
	plx_lock_enter(&lock);
	pthread_join(start(try_often, &got), NULL);
	UNIT_TRUE(!got);
	UNIT_EQ(favoured(), PLX_LOCK_ALL);
	UNIT_EQ(lock.taken, PLX_LOCK_FREE);
	plx_lock_leave(&lock);
	UNIT_TRUE(another_gets_it());
	UNIT_TRUE(is_free());
}

/* The others come while the one with the bias is busy; more threads than most machines of ours have cores. */
static void
one_at_a_time_has_it(void)
{
	pthread_t other[THREADS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		open_lock();
		enter_once(NULL);
		for (unsigned k = 0; k < THREADS; k++)
			other[k] = start(count, NULL);
		count(NULL);
		for (unsigned k = 0; k < THREADS; k++)
			pthread_join(other[k], NULL);
		UNIT_EQ(n_counted, (THREADS + 1ull) * TIMES);
		UNIT_TRUE(is_free());
	}
}

static void *
try_and_count(void *arg)
{
	for (unsigned i = 0; i < TIMES;) {
		if (!plx_lock_try_enter(&lock)) {
			sched_yield();
			continue;
		}
		n_counted++;
		plx_lock_leave(&lock);
		i++;
	}
	return arg;
}

static void
nor_do_two_of_those_who_try_and_those_who_wait(void)
{
	pthread_t other[2];

	for (unsigned i = 0; i < ROUNDS; i++) {
		open_lock();
		other[0] = start(try_and_count, NULL);
		other[1] = start(count, NULL);
		try_and_count(NULL);
		for (unsigned k = 0; k < 2; k++)
			pthread_join(other[k], NULL);
		UNIT_EQ(n_counted, 3ull * TIMES);
		UNIT_TRUE(is_free());
	}
}

static void
wait_until(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) != value)
		sched_yield();
}

static void
who_waits_long_sleeps_and_is_woken(void)
{
	pthread_t other[THREADS];

	open_lock();
	enter_once(NULL);
	pthread_join(start(enter_once, NULL), NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		plx_lock_enter(&lock);
		for (unsigned k = 0; k < THREADS; k++)
			other[k] = start(count, NULL);
		wait_until(&lock.taken, PLX_LOCK_SLEPT_ON);
		plx_lock_leave(&lock);
		for (unsigned k = 0; k < THREADS; k++)
			pthread_join(other[k], NULL);
	}
	UNIT_EQ(n_counted, (uint64_t)ROUNDS * THREADS * TIMES);
	UNIT_TRUE(is_free());
}

static uint64_t
counted(void)
{
	uint64_t n;

	plx_lock_enter(&lock);
	n = n_counted;
	plx_lock_leave(&lock);
	return n;
}

/* It is taken and dropped all the time. */
static void *
keep_busy(void *arg)
{
	_Atomic uint32_t *go_on = arg;

	while (atomic_load_explicit(go_on, memory_order_relaxed) != 0)
		count(NULL);
	return arg;
}

static void
who_waits_gets_it_from_those_who_take_it_all_the_time(void)
{
	_Atomic uint32_t go_on = 1;
	pthread_t other[THREADS];
	uint64_t before;

	open_lock();
	for (unsigned k = 0; k < THREADS; k++)
		other[k] = start(keep_busy, &go_on);
	for (unsigned i = 0; i < ROUNDS; i++) {
		before = counted();
		while (counted() == before) /* they do, too */
			sched_yield();
	}
	atomic_store(&go_on, 0);
	for (unsigned k = 0; k < THREADS; k++)
		pthread_join(other[k], NULL);
	UNIT_EQ(n_counted % TIMES, 0);
	UNIT_TRUE(is_free());
}

int
main(void)
{
	CU_TestInfo tests[] = {
		UNIT_TEST(the_first_thread_is_favoured_until_another_comes),
		UNIT_TEST(without_a_barrier_for_all_nobody_is_favoured),
		UNIT_TEST(a_favoured_thread_that_has_ended_is_not_waited_for),
		UNIT_TEST(nobody_is_favoured_after_that),
		UNIT_TEST(who_has_it_may_enter_again),
		UNIT_TEST(the_quick_way_is_the_favoured_threads),
		UNIT_TEST(who_tries_does_not_wait),
		UNIT_TEST(one_at_a_time_has_it),
		UNIT_TEST(nor_do_two_of_those_who_try_and_those_who_wait),
		UNIT_TEST(who_waits_long_sleeps_and_is_woken),
		UNIT_TEST(who_waits_gets_it_from_those_who_take_it_all_the_time),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"lock", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * watch_test.c - no change of a mapping is missed
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plx_unit.h"
#include "plx_watch.h"

#define PAGES 16
#define TOLD  8

static struct plx_watch watch = {.lock = PTHREAD_MUTEX_INITIALIZER};
static size_t page;
static uint8_t *mem;

static struct {
	unsigned n;
	uintptr_t from[TOLD], to[TOLD];
} told;

static void
on_gone(uintptr_t from, uintptr_t to)
{
	told.from[told.n % TOLD] = from;
	told.to[told.n % TOLD] = to;
	told.n++;
}

static void *
map_at(void *at, size_t len, int flags, int fd)
{
	void *p = mmap(at, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	UNIT_TRUE_FATAL(p != MAP_FAILED);
	memset(p, 1, len);
	return p;
}

static void *
map_new(size_t len)
{
	return map_at(NULL, len, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static int
watch_add(void *addr, size_t len)
{
	int rc;

	pthread_mutex_lock(&watch.lock);
	rc = plx_watch_add(&watch, (uintptr_t)addr, (uintptr_t)addr + len);
	pthread_mutex_unlock(&watch.lock);
	return rc;
}

static void
watch_del(void *addr, size_t len)
{
	pthread_mutex_lock(&watch.lock);
	plx_watch_del(&watch, (uintptr_t)addr, (uintptr_t)addr + len);
	pthread_mutex_unlock(&watch.lock);
}

static void
begin(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	UNIT_EQ_FATAL(plx_watch_open(&watch, on_gone), 0);
	mem = map_new(PAGES * page);
	UNIT_EQ_FATAL(watch_add(mem, PAGES * page), 0);
	told.n = 0;
}

static void
end(void)
{
	plx_watch_close(&watch);
	munmap(mem, PAGES * page);
}

/* Whether the last change was reported when its call had returned, and what was reported. */
static void
expect(unsigned first, unsigned n)
{
	pthread_mutex_lock(&watch.lock);
	UNIT_EQ(told.n, 1);
	UNIT_EQ(told.from[0], (uintptr_t)mem + first * page);
	UNIT_EQ(told.to[0], (uintptr_t)mem + (first + n) * page);
	told.n = 0;
	pthread_mutex_unlock(&watch.lock);
}

static void
every_change_is_told_before_its_call_returns(void)
{
	begin();
	munmap(mem + page, page);
	expect(1, 1);
	map_at(mem + 3 * page, 2 * page, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	expect(3, 2);
	UNIT_EQ(madvise(mem + 6 * page, page, MADV_DONTNEED), 0);
	expect(6, 1);
	UNIT_EQ(madvise(mem + 7 * page, page, MADV_FREE), 0);
	expect(7, 1);
	UNIT_EQ(mprotect(mem + 8 * page, page, PROT_READ), 0);
	UNIT_EQ(mprotect(mem + 8 * page, page, PROT_READ | PROT_WRITE), 0);
	pthread_mutex_lock(&watch.lock);
	UNIT_EQ(told.n, 0); /* the pages are the same */
	pthread_mutex_unlock(&watch.lock);
	end();
}

static void
what_is_moved_is_told_as_gone_and_not_watched_there(void)
{
	uint8_t *there = map_new(PAGES * page), *at;

	begin();
	at = mremap(mem, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, there);
	UNIT_TRUE_FATAL(at == there);
	pthread_mutex_lock(&watch.lock);
	UNIT_TRUE(told.n > 0);
	for (unsigned i = 0; i < told.n; i++) {
		UNIT_EQ(told.from[i], (uintptr_t)mem);
		UNIT_EQ(told.to[i], (uintptr_t)mem + 2 * page);
	}
	told.n = 0;
	pthread_mutex_unlock(&watch.lock);
	munmap(there, PAGES * page);
	UNIT_EQ(told.n, 0);
	end();
}

static void
a_heap_that_shrinks_is_told(void)
{
	uint8_t *old = sbrk(0), *at = (uint8_t *)(((uintptr_t)old + page - 1) & ~(page - 1));

	begin();
	UNIT_EQ_FATAL(brk(at + 4 * page), 0);
	memset(at, 1, 4 * page);
	UNIT_EQ_FATAL(watch_add(at, 4 * page), 0);
	UNIT_EQ(brk(at + page), 0);
	pthread_mutex_lock(&watch.lock);
	UNIT_EQ(told.n, 1);
	UNIT_EQ(told.from[0], (uintptr_t)at + page);
	pthread_mutex_unlock(&watch.lock);
	UNIT_EQ(brk(old), 0);
	end();
}

static void
what_is_not_watched_any_more_is_not_told(void)
{
	begin();
	watch_del(mem, 4 * page);
	munmap(mem, 3 * page);
	pthread_mutex_lock(&watch.lock);
	UNIT_EQ(told.n, 0);
	pthread_mutex_unlock(&watch.lock);
	watch_del(mem, 4 * page); /* of which a part is gone */
	munmap(mem + 5 * page, page);
	expect(5, 1);
	end();
}

static void *
unmap(void *arg)
{
	munmap(arg, page);
	return NULL;
}

/* Its address may be used again before the call has returned. */
static void
a_change_that_nobody_looked_at_yet_is_no_quiet(void)
{
	pthread_t thread;

	begin();
	pthread_mutex_lock(&watch.lock);
	UNIT_TRUE(plx_watch_quiet(&watch));
	UNIT_EQ_FATAL(pthread_create(&thread, NULL, unmap, mem), 0);
	for (time_t until = time(NULL) + 20; plx_watch_quiet(&watch) && time(NULL) < until;)
		sched_yield();
	UNIT_TRUE(!plx_watch_quiet(&watch));
	UNIT_EQ(told.n, 0);
	pthread_mutex_unlock(&watch.lock);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&watch.lock);
	UNIT_TRUE(plx_watch_quiet(&watch));
	UNIT_EQ(told.n, 1);
	pthread_mutex_unlock(&watch.lock);
	end();
}

static void
only_private_memory_of_no_file_can_be_watched(void)
{
	int fd = memfd_create("watch", 0);
	uint8_t *p;

	begin();
	UNIT_EQ_FATAL(ftruncate(fd, 4 * page), 0);
	UNIT_TRUE(plx_watch_can(&watch, mem + 5, 1));
	UNIT_TRUE(plx_watch_can(&watch, mem + 5, PAGES * page - 5));
	p = map_at(NULL, 4 * page, MAP_SHARED, fd);
	UNIT_TRUE(!plx_watch_can(&watch, p, 4 * page));
	munmap(p, 4 * page);
	p = map_at(NULL, 4 * page, MAP_SHARED | MAP_ANONYMOUS, -1);
	UNIT_TRUE(!plx_watch_can(&watch, p, 4 * page));
	munmap(p, 4 * page);
	p = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE, fd, 0);
	UNIT_EQ(p[0], 1);
	UNIT_TRUE(!plx_watch_can(&watch, p, 1));
	munmap(p, 4 * page);
	close(fd);
	/* not present, and longer than what is read at once */
	p = mmap(NULL, 600 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 599 * page);
	UNIT_TRUE(plx_watch_can(&watch, p, 599 * page));
	UNIT_TRUE(!plx_watch_can(&watch, p, 599 * page + 1));
	munmap(p, 600 * page);
	end();
}

/* A child that lives on must not leave its parent waiting for a watch that is closed. */
static void
a_forked_child_does_not_keep_the_watch(void)
{
	pid_t child;

	begin();
	child = fork();
	if (child == 0) {
		munmap(mem, page); /* no watch is notified of a child's memory */
		pause();
		_exit(0);
	}
	plx_watch_close(&watch);
	alarm(20);
	munmap(mem, PAGES * page);
	alarm(0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	UNIT_EQ(told.n, 0);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(every_change_is_told_before_its_call_returns),
	UNIT_TEST(what_is_moved_is_told_as_gone_and_not_watched_there),
	UNIT_TEST(a_heap_that_shrinks_is_told),
	UNIT_TEST(what_is_not_watched_any_more_is_not_told),
	UNIT_TEST(a_change_that_nobody_looked_at_yet_is_no_quiet),
	UNIT_TEST(only_private_memory_of_no_file_can_be_watched),
	UNIT_TEST(a_forked_child_does_not_keep_the_watch),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"watch", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = plx_watch_open(&watch, on_gone);

	if (rc != 0) {
		printf("memory can't be watched here: error %d\n", -rc);
		return 77;
	}
	plx_watch_close(&watch);
	return unit_run(suites);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reg_cache_test.c - what is kept, what is found again, and what is forgotten
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "plx_reg_cache.h"
#include "plx_unit.h"
#include "plx_watch.h"

#define LEN    65536u
#define PARTS  8
#define WRITES 3 /* bits of access: may write, and peers may */
#define WRITE  1

static void *reg(const struct plx_reg_domain *domain, void *addr, size_t len, int access);
static void dereg(void *handle);

static const struct plx_reg_domain port = {reg, dereg, WRITES & ~WRITE}, port_2 = {reg, dereg, WRITES & ~WRITE};
static struct plx_reg_stat st;
static unsigned n_regs;	/* there are */
static unsigned n_most;	/* that the device takes */
static uint8_t *mem;

static void *
reg(const struct plx_reg_domain *domain, void *addr, size_t len, int access)
{
	(void)domain;
	(void)addr;
	(void)len;
	(void)access;
	if (n_regs == n_most) {
		errno = ENOMEM;
		return NULL;
	}
	n_regs++;
	return malloc(1);
}

static void
dereg(void *handle)
{
	n_regs--;
	free(handle);
}

static void *
map_at(void *at, int flags)
{
	void *p = mmap(at, LEN, PROT_READ | PROT_WRITE, flags, -1, 0);

	UNIT_TRUE_FATAL(p != MAP_FAILED);
	memset(p, 1, LEN);
	return p;
}

/* Whoever changed a mapping goes on while the watch still has the lock: wait for that. */
static void
settle(void)
{
	static const struct plx_reg_domain nobodys;

	plx_reg_cache_forget(&nobodys);
}

static void
begin(uint32_t n_max, uint64_t len_max)
{
	memset(&st, 0, sizeof(st));
	n_regs = 0;
	n_most = UINT32_MAX;
	mem = map_at(NULL, MAP_PRIVATE | MAP_ANONYMOUS);
	UNIT_EQ_FATAL(plx_reg_cache_open(n_max, len_max), 0);
}

static void
end(void)
{
	plx_reg_cache_close();
	UNIT_EQ(n_regs, 0);
	munmap(mem, LEN);
}

static struct plx_reg *
get(size_t at, size_t len, int access)
{
	struct plx_reg *r = plx_reg_get(&port, mem + at, len, access, &st);

	UNIT_TRUE_FATAL(r != NULL);
	return r;
}

static void
use(size_t at, size_t len, int access)
{
	plx_reg_put(get(at, len, access));
}

/* One of PARTS pieces, each in pages of its own. */
static void
use_part(unsigned i)
{
	use(i * LEN / PARTS, 1000, 0);
}

static void
counts(uint64_t hits, uint64_t misses)
{
	UNIT_EQ(st.hits, hits);
	UNIT_EQ(st.misses, misses);
	UNIT_EQ(st.made, misses);
}

static void
what_was_registered_is_found_again_whole_and_in_part(void)
{
	struct plx_reg *r;

	begin(8, LEN);
	use(100, 20000, 0);
	use(100, 20000, 0);
	use(101, 19999, 0);
	use(20099, 1, 0);
	counts(3, 1);
	use(99, 20000, 0);
	use(101, 20000, 0);
	counts(3, 3);
	r = get(100, 20000, 0); /* by two at once */
	use(100, 20000, 0);
	plx_reg_put(r);
	counts(5, 3);
	UNIT_EQ(n_regs, 3);
	end();
}

static void
a_registration_serves_only_its_domain_and_what_it_may(void)
{
	begin(8, LEN);
	use(0, 4096, 0);
	use(0, 4096, WRITE);
	counts(0, 2);
	use(0, 4096, WRITE);
	use(0, 4096, 0);
	counts(2, 2);
	plx_reg_put(plx_reg_get(&port_2, mem, 4096, 0, &st));
	counts(2, 3);
	UNIT_EQ(n_regs, 3);
	plx_reg_cache_forget(&port);
	UNIT_EQ(n_regs, 1);
	end();
}

static void
what_peers_write_is_used_by_one_transfer_at_a_time(void)
{
	struct plx_reg *a, *b;

	begin(8, LEN);
	a = get(0, 4096, WRITES);
	b = get(0, 4096, WRITES);
	UNIT_TRUE(a != b);
	use(0, 4096, 0); /* nor is it sent from */
	counts(0, 3);
	plx_reg_put(a);
	use(0, 4096, WRITES);
	counts(1, 3);
	plx_reg_put(b);
	end();
}

static void
what_is_revoked_is_gone_at_once(void)
{
	struct plx_reg *r;

	begin(8, LEN);
	use(0, 4096, WRITES);
	r = get(0, 4096, WRITES);
	counts(1, 1);
	plx_reg_revoke(r);
	UNIT_EQ(n_regs, 0);
	use(0, 4096, WRITES);
	counts(1, 2);
	r = get(0, 4096, WRITES);
	munmap(mem, LEN);
	UNIT_EQ(n_regs, 1);
	plx_reg_revoke(r); /* after its memory */
	UNIT_EQ(n_regs, 0);
	mem = map_at(mem, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
	end();
}

static void
memory_that_changed_under_its_address_is_registered_again(void)
{
	begin(8, LEN);
	for (unsigned i = 0; i < PARTS; i++)
		use_part(i);
	map_at(mem, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
	UNIT_EQ(n_regs, PARTS); /* by an owner only */
	settle();
	for (unsigned i = 0; i < PARTS; i++)
		use_part(i);
	counts(0, 2 * PARTS);
	plx_reg_cache_control(&st);
	UNIT_EQ(st.gone, PARTS);
	UNIT_EQ(n_regs, PARTS);
	UNIT_EQ(madvise(mem + LEN / PARTS, LEN / PARTS, MADV_DONTNEED), 0);
	settle();
	memset(mem, 2, LEN);
	for (unsigned i = 0; i < PARTS; i++)
		use_part(i);
	counts(PARTS - 1, 2 * PARTS + 1);
	end();
}

static void
what_is_in_use_outlives_its_memory(void)
{
	struct plx_reg *r;

	begin(8, LEN);
	r = get(0, 4096, 0);
	map_at(mem, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
	settle();
	plx_reg_cache_control(&st);
	UNIT_EQ(st.gone, 1);
	UNIT_EQ(n_regs, 1);
	use(0, 4096, 0);
	counts(0, 2);
	UNIT_EQ(n_regs, 2);
	plx_reg_put(r);
	UNIT_EQ(n_regs, 1);
	end();
}

static void
what_was_not_used_for_longest_makes_room(void)
{
	struct plx_reg *r;

	begin(3, LEN);
	for (unsigned i = 0; i < 3; i++)
		use_part(i);
	use_part(0);
	use_part(3);
	UNIT_EQ(st.evicted, 1);
	UNIT_EQ(n_regs, 3);
	use_part(0);
	use_part(2);
	counts(3, 4);
	use_part(1);
	counts(3, 5);
	/* What is in use stays. */
	r = get(0, 1000, 0);
	for (unsigned i = 4; i < PARTS; i++)
		use_part(i);
	UNIT_EQ(n_regs, 3);
	plx_reg_put(r);
	use_part(0);
	counts(5, 9);
	end();
}

static void
no_more_bytes_are_kept_than_may_be(void)
{
	struct plx_reg *r;

	begin(100, 4000);
	use(0, 4001, 0);
	UNIT_EQ(n_regs, 0);
	UNIT_EQ(st.unfit, 1);
	use_part(0);
	use_part(1);
	use(0, 3000, 0);
	UNIT_EQ(st.evicted, 1);
	UNIT_EQ(n_regs, 2);
	r = get(0, 3000, 0);
	use(1, 3000, 0); /* the other must go, which is not enough */
	UNIT_EQ(n_regs, 1);
	plx_reg_put(r);
	UNIT_EQ(n_regs, 1);
	end();
}

/* Pieces share pages: who goes leaves the others watched. */
static void
an_evicted_neighbour_does_not_take_the_watch_along(void)
{
	begin(2, LEN);
	use(3000, 6000, 0);
	use(0, 3500, 0);
	use(3000, 6000, 0);
	use(LEN / 2, 1000, 0); /* 0 to 3500 goes */
	UNIT_EQ(st.evicted, 1);
	UNIT_EQ(madvise(mem, 4096, MADV_DONTNEED), 0);
	use(3000, 6000, 0);
	counts(1, 4);
	end();
}

static void
shared_memory_is_not_kept(void)
{
	begin(8, LEN);
	munmap(mem, LEN);
	mem = map_at(mem, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED);
	use(0, 4096, 0);
	use(0, 4096, 0);
	counts(0, 2);
	UNIT_EQ(st.unfit, 2);
	UNIT_EQ(n_regs, 0);
	end();
}

static void
what_is_kept_goes_where_memory_is_short(void)
{
	struct plx_reg *r;
	void *handle;

	begin(8, LEN);
	for (unsigned i = 0; i < 4; i++)
		use_part(i);
	r = get(0, 1000, 0);
	n_most = 4;
	handle = plx_reg_raw(&port, mem, LEN, 0);
	UNIT_TRUE_FATAL(handle != NULL);
	UNIT_EQ(n_regs, 2); /* this and the one in use */
	n_most = 2;
	UNIT_TRUE(plx_reg_get(&port, mem, LEN, 0, &st) == NULL);
	UNIT_EQ(errno, ENOMEM);
	dereg(handle);
	plx_reg_put(r);
	plx_reg_cache_control(&st);
	UNIT_EQ(st.evicted, 3);
	end();
}

static void
nothing_is_kept_when_told_so(void)
{
	begin(0, LEN);
	use(0, 4096, 0);
	use(0, 4096, 0);
	UNIT_EQ(st.made, 2);
	UNIT_EQ(st.hits + st.misses + st.unfit, 0);
	UNIT_EQ(n_regs, 0);
	end();
	begin(8, 0);
	use(0, 4096, 0);
	UNIT_EQ(n_regs, 0);
	end();
}

static void
the_cache_lives_as_long_as_its_last_user(void)
{
	begin(8, LEN);
	UNIT_EQ(plx_reg_cache_open(1, 1), 0); /* the first one's bounds count */
	use_part(0);
	use_part(1);
	plx_reg_cache_close();
	use_part(0);
	counts(1, 2);
	end();
	begin(8, LEN); /* and again */
	use_part(0);
	use_part(0);
	counts(1, 1);
	end();
}

/* Who unmaps meanwhile is not waited for by an owner, and is not missed. */
static void *
remap(void *arg)
{
	for (unsigned i = 0; i < 2000; i++) {
		(void)mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			0);
		memset(mem, 1, LEN);
	}
	*(_Atomic bool *)arg = true;
	return NULL;
}

static void
others_may_unmap_at_any_time(void)
{
	_Atomic bool over = false;
	pthread_t thread;

	begin(4, LEN);
	UNIT_EQ_FATAL(pthread_create(&thread, NULL, remap, &over), 0);
	for (unsigned i = 0; !atomic_load(&over); i++) {
		use_part(i % PARTS);
		plx_reg_cache_control(&st);
	}
	pthread_join(thread, NULL);
	UNIT_TRUE(st.gone > 0);
	use_part(0); /* there may be one that was registered in between */
	use_part(0);
	UNIT_TRUE(st.hits > 0);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(what_was_registered_is_found_again_whole_and_in_part),
	UNIT_TEST(a_registration_serves_only_its_domain_and_what_it_may),
	UNIT_TEST(what_peers_write_is_used_by_one_transfer_at_a_time),
	UNIT_TEST(what_is_revoked_is_gone_at_once),
	UNIT_TEST(memory_that_changed_under_its_address_is_registered_again),
	UNIT_TEST(what_is_in_use_outlives_its_memory),
	UNIT_TEST(what_was_not_used_for_longest_makes_room),
	UNIT_TEST(no_more_bytes_are_kept_than_may_be),
	UNIT_TEST(an_evicted_neighbour_does_not_take_the_watch_along),
	UNIT_TEST(shared_memory_is_not_kept),
	UNIT_TEST(what_is_kept_goes_where_memory_is_short),
	UNIT_TEST(nothing_is_kept_when_told_so),
	UNIT_TEST(the_cache_lives_as_long_as_its_last_user),
	UNIT_TEST(others_may_unmap_at_any_time),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"reg_cache", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

static void
none_gone(uintptr_t from, uintptr_t to)
{
	(void)from;
	(void)to;
}

int
main(void)
{
	struct plx_watch watch = {.lock = PTHREAD_MUTEX_INITIALIZER};
	int rc = plx_watch_open(&watch, none_gone);

	if (rc != 0) {
		printf("memory can't be watched here, nothing is kept: error %d\n", -rc);
		return 77;
	}
	plx_watch_close(&watch);
	return unit_run(suites);
}

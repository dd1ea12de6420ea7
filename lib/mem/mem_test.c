/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mem_test.c - segments huge and small, and pools that grow
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_ring.h>

#include "plx_copy.h"
#include "plx_fence.h"
#include "plx_meet.h"
#include "plx_mem.h"
#include "plx_region.h"
#include "plx_unit.h"
#include "plx_unit_refuse.h"

static void
segment_is_good(size_t len, bool huge)
{
	struct plx_seg seg;
	uint8_t *other;

	UNIT_EQ_FATAL(plx_seg_create(&seg, NULL, len, huge), 0);
	UNIT_TRUE(seg.len >= len && seg.len % 4096 == 0);
	UNIT_TRUE(!seg.huge || (huge && seg.len % (2u << 20) == 0));
	for (size_t i = 0; i < seg.len; i += 512)
		CU_ASSERT_FATAL(((uint8_t *)seg.base)[i] == 0);
	other = mmap(NULL, seg.len, PROT_READ | PROT_WRITE, MAP_SHARED, seg.fd, 0);
	CU_ASSERT_FATAL(other != MAP_FAILED);
	unit_fill(seg.base, len, len);
	CU_ASSERT(unit_is_filled(other, len, len));
	munmap(other, seg.len);
	plx_seg_destroy(&seg);
	CU_ASSERT_PTR_NULL(seg.base);
	plx_seg_destroy(&seg); /* once more is nothing */
}

static void
a_segment_is_zeroed_and_can_be_mapped_by_others(void)
{
	const size_t lens[] = {1, 4095, 4096, 4097, 300000, (2u << 20) + 1};
	unsigned files = unit_open_files();

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		segment_is_good(lens[i], false);
		segment_is_good(lens[i], true); /* huge where there are free ones */
	}
	UNIT_EQ(unit_open_files(), files);
}

static void
a_segment_comes_where_it_is_wanted_or_not_at_all(void)
{
	struct plx_seg a, b = {.base = NULL};
	void *where;

	UNIT_EQ_FATAL(plx_seg_create(&a, NULL, 8192, false), 0);
	UNIT_EQ(plx_seg_create(&b, a.base, 4096, false), -EEXIST);
	UNIT_EQ(plx_seg_create(&b, a.base, 4096, true), -EEXIST);
	CU_ASSERT_PTR_NULL(b.base);
	where = a.base;
	plx_seg_destroy(&a);
	UNIT_EQ_FATAL(plx_seg_create(&b, where, 4096, false), 0);
	CU_ASSERT_PTR_EQUAL(b.base, where);
	plx_seg_destroy(&b);
}

static void
a_segment_that_cannot_be_leaves_nothing_behind(void)
{
	struct plx_seg seg = {.base = NULL, .fd = -7};
	unsigned files = unit_open_files();

	UNIT_EQ(plx_seg_create(&seg, NULL, 0, false), -ENOMEM);
	UNIT_EQ(plx_seg_create(&seg, NULL, SIZE_MAX, true), -ENOMEM);
	UNIT_TRUE(plx_seg_create(&seg, NULL, (size_t)1 << 50, true) < 0);
	UNIT_TRUE(plx_seg_create(&seg, NULL, (size_t)1 << 62, false) < 0);
	UNIT_EQ(seg.fd, -7);
	UNIT_EQ(unit_open_files(), files);
}

static unsigned n_inits;

static void
obj_init(void *obj, void *arg)
{
	uint64_t *v = obj;

	CU_ASSERT_PTR_EQUAL(arg, &n_inits);
	v[1] = 1;
	n_inits++;
}

static void
obj_count(void *obj, void *arg)
{
	CU_ASSERT(((uint64_t *)obj)[1] != 0);
	++*(unsigned *)arg;
}

static int
by_address(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return (x > y) - (x < y);
}

#define OBJS 5000

static void
a_pool_grows_and_its_objects_are_apart(void)
{
	static char *objs[OBJS];
	struct plx_pool p;
	unsigned n = 0;

	n_inits = 0;
	plx_pool_open(&p, "test", 200, 16, 0, obj_init, &n_inits);
	CU_ASSERT_PTR_NULL(plx_pool_get_free(&p));
	UNIT_EQ(p.n_objs, 0); /* nothing before the first get */
	for (unsigned i = 0; i < OBJS; i++) {
		objs[i] = plx_pool_get(&p);
		CU_ASSERT_FATAL(objs[i] != NULL);
		UNIT_EQ((uintptr_t)objs[i] % 64, 0);
		memset(objs[i], 1 + i % 255, 200);
	}
	UNIT_TRUE(p.n_chunks > 1);
	UNIT_EQ(p.n_free, p.n_objs - OBJS);
	for (unsigned i = 0; i < OBJS; i++)
		for (unsigned k = 0; k < 200; k++)
			CU_ASSERT_FATAL(objs[i][k] == (char)(1 + i % 255));
	qsort(objs, OBJS, sizeof(objs[0]), by_address);
	for (unsigned i = 1; i < OBJS; i++)
		CU_ASSERT_FATAL(objs[i] - objs[i - 1] >= 200);
	UNIT_EQ(n_inits, p.n_objs); /* once each, not once a get */
	for (unsigned i = 0; i < OBJS; i++)
		plx_pool_put(&p, objs[i]);
	CU_ASSERT_PTR_EQUAL(plx_pool_get(&p), objs[OBJS - 1]); /* the last one put */
	plx_pool_put(&p, objs[OBJS - 1]);
	UNIT_EQ(p.n_free, p.n_objs);
	UNIT_EQ(n_inits, p.n_objs);
	plx_pool_each(&p, obj_count, &n);
	UNIT_EQ(n, p.n_objs);
	plx_pool_close(&p);
	UNIT_EQ(p.n_objs, 0);
}

static void
a_pool_ends_at_its_bound(void)
{
	void *objs[100];
	struct plx_pool p;

	plx_pool_open(&p, "test", 64, 16, 100, NULL, NULL);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_FATAL((objs[i] = plx_pool_get(&p)) != NULL);
	CU_ASSERT_PTR_NULL(plx_pool_get(&p));
	CU_ASSERT_PTR_NULL(plx_pool_get(&p));
	plx_pool_put(&p, objs[3]);
	CU_ASSERT_PTR_EQUAL(plx_pool_get(&p), objs[3]);
	CU_ASSERT_PTR_NULL(plx_pool_get(&p));
	plx_pool_close(&p);
}

static void
a_pool_without_memory_says_so_and_goes_on_later(void)
{
	uint64_t total, huge, total_after;
	struct plx_pool absurd, p;

	plx_mem_stats(&total, &huge);
	plx_pool_open(&absurd, "absurd", 3u << 30, 1u << 24, 0, NULL, NULL); /* 48 PiB */
	CU_ASSERT_PTR_NULL(plx_pool_get(&absurd));
	CU_ASSERT_PTR_NULL(plx_pool_get(&absurd));
	UNIT_EQ(absurd.n_objs, 0);
	plx_pool_close(&absurd);
	plx_mem_stats(&total_after, &huge);
	UNIT_EQ(total_after, total);
	plx_pool_open(&p, "after", 64, 16, 0, NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL(plx_pool_get(&p));
	plx_pool_close(&p);
}

static void
pools_that_come_and_go_use_their_memory_again(void)
{
	uint64_t total[3], huge;

	for (unsigned round = 0; round < 60; round++) {
		struct plx_pool p;

		plx_pool_open(&p, "come and go, with a long name", 4096, 200, 0, NULL, NULL);
		CU_ASSERT_FATAL(plx_pool_get(&p) != NULL);
		plx_pool_close(&p);
		plx_mem_stats(&total[round < 2 ? round : 2], &huge);
		UNIT_TRUE(huge <= total[round < 2 ? round : 2]);
	}
	UNIT_EQ(total[2], total[1]);
}

/* Without huge pages the EAL's own heap is shared with children, its notes on what is free included. */
static void
a_ring_takes_nothing_of_the_heap_that_children_share(void)
{
	struct rte_malloc_socket_stats before, after;
	struct rte_ring *r;
	void *p;

	UNIT_EQ_FATAL(rte_malloc_get_socket_stats(0, &before), 0);
	UNIT_EQ_FATAL(plx_mem_ring(1024, &r), 0);
	UNIT_EQ(rte_malloc_get_socket_stats(0, &after), 0);
	UNIT_EQ(after.alloc_count, before.alloc_count);
	UNIT_EQ(rte_ring_sp_enqueue(r, &before), 0);
	UNIT_EQ(rte_ring_sc_dequeue(r, &p), 0);
	CU_ASSERT_PTR_EQUAL(p, &before);
	plx_mem_free(r);
}

/* @return bytes of this process's address space */
static uint64_t
mapped(void)
{
	int fd = open("/proc/self/statm", O_RDONLY); /* no memory for a stream */
	char text[100] = "";

	UNIT_TRUE(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
a_copy_for_a_child_is_gone_after_the_fork(void)
{
	uint64_t before, total, huge, some;
	struct rlimit lim, no_more;
	void *p[4];

	for (unsigned i = 0; i < RTE_DIM(p); i++)
		p[i] = plx_mem_alloc(3 << 20);
	for (unsigned i = 0; i < RTE_DIM(p); i++)
		plx_mem_free(p[i]);
	plx_mem_stats(&total, &huge);
	if (huge < 2 * (3 << 20)) {
		puts("\n# skipped: the copy of huge pages: none are free");
		return;
	}
	before = mapped();
	plx_mem_copy_for_child();
	UNIT_EQ(mapped(), before + huge);
	plx_mem_drop_copy();
	UNIT_EQ(mapped(), before);
	getrlimit(RLIMIT_AS, &lim);
	no_more = (struct rlimit){before + huge - (2 << 20), lim.rlim_max};
	UNIT_EQ(setrlimit(RLIMIT_AS, &no_more), 0);
	plx_mem_copy_for_child(); /* there is no memory for all of it */
	some = mapped();
	plx_mem_drop_copy();
	UNIT_EQ(setrlimit(RLIMIT_AS, &lim), 0);
	UNIT_TRUE(some > before && some < before + huge);
	UNIT_EQ(mapped(), before);
}

static atomic_uint handled;

static void
copy_in_handler(int sig)
{
	(void)sig;
	plx_mem_copy_for_child();
	plx_mem_drop_copy();
	atomic_fetch_add(&handled, 1);
}

/* As one of a crash that starts a debugger. */
static void
a_handler_that_forks_in_a_function_of_the_heap_does_not_hang(void)
{
	struct sigaction sa = {.sa_handler = copy_in_handler, .sa_flags = SA_RESTART}, old;

	UNIT_EQ_FATAL(sigaction(SIGALRM, &sa, &old), 0);
	for (unsigned i = 0; i < 50; i++) {
		const struct itimerval once = {{0, 0}, {0, 500 + i}};

		UNIT_EQ_FATAL(setitimer(ITIMER_REAL, &once, NULL), 0);
		while (atomic_load(&handled) == i)
			plx_mem_free(plx_mem_alloc(64));
	}
	sigaction(SIGALRM, &old, NULL);
}

static int
memory_in_child(char *inherited)
{
	uint64_t total, huge;
	char *own;

	plx_mem_free(inherited); /* it is not the child's to give again */
	own = plx_mem_alloc(4096);
	if (own == NULL || own == inherited || (uintptr_t)own % 64 != 0)
		return 1;
	memset(own, 2, 4096);
	plx_mem_stats(&total, &huge);
	if (total < 4096 || total > 8192 || huge != 0)
		return 2;
	plx_mem_free(own);
	plx_mem_stats(&total, &huge);
	return total == 0 ? 0 : 3;
}

static void
a_child_has_memory_of_its_own(void)
{
	char *p = plx_mem_alloc(4096), *q;
	int status;
	pid_t pid;

	CU_ASSERT_FATAL(p != NULL);
	memset(p, 1, 4096);
	pid = fork();
	if (pid == 0)
		_exit(memory_in_child(p));
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_EQ(status, 0);
	UNIT_EQ(p[0], 1);
	UNIT_EQ(p[4095], 1);
	q = plx_mem_alloc(4096);
	CU_ASSERT(q != NULL && q != p);
	plx_mem_free(q);
	plx_mem_free(p);
}

static void
a_child_fences_for_all_without_being_registered(void)
{
	int status;
	pid_t pid;

	if (!plx_fence_open())
		return; /* no membarrier(2) here, and nobody calls plx_fence_all() */
	plx_fence_all();
	pid = fork();
	if (pid == 0) {
		plx_fence_all();
		_exit(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0);
	}
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_EQ(status, 0);
}

#define FENCE_LATE "fence-late" /* an argument */

static void *
wait_for_end(void *arg)
{
	(void)arg;
	return pause() == 0 ? arg : NULL;
}

static bool
is_registered(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* In a program of its own: a copy of this one is registered as it is. @return which step failed */
static int
fence_late(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, wait_for_end, NULL) != 0 || is_registered())
		return 1;
	if (!plx_fence_has() || is_registered())
		return 2;
	plx_fence_all();
	return is_registered() ? 0 : 3;
}

/* The kernel waits 10 ms for all cores as it registers: a process that never fences need not. */
static void
a_process_with_threads_is_registered_when_it_first_fences(void)
{
	int status;
	pid_t pid;

	if (!plx_fence_open())
		return; /* no membarrier(2) here */
	pid = fork();
	UNIT_TRUE_FATAL(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "mem_test", FENCE_LATE, NULL);
		_exit(127);
	}
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == 127)
		printf("\n# skipped: this program can not be started by itself: an emulator runs it\n");
	else
		UNIT_EQ(WEXITSTATUS(status), 0);
}

/* From now on membarrier(2) fails: as where a sandbox closes behind the start of a program. */
static int
refuse_membarrier(void)
{
	static const int call = SYS_membarrier;

	return unit_refuse(&call, 1, EPERM);
}

/* The other threads do not fence any more: to go on would be to go on without exclusion. */
static void
a_fence_that_is_refused_ends_the_process_with_a_word(void)
{
	char text[512] = "";
	int status, err[2];
	pid_t pid;

	if (!plx_fence_open())
		return;
	UNIT_EQ_FATAL(pipe(err), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0); /* no core file */
		dup2(err[1], 2);
		if (refuse_membarrier() != 0)
			_exit(77);
		plx_fence_all();
		_exit(1);
	}
	close(err[1]);
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 77) { /* a sandbox that allows no other */
		UNIT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		UNIT_TRUE(read(err[0], text, sizeof(text) - 1) > 0);
		UNIT_TRUE(strstr(text, "membarrier") != NULL);
	}
	close(err[0]);
}

/* @return what a child that may not use process_vm_readv() finds wrong; 77: it can't be forbidden */
static int
fetch_without_the_call(void)
{
	static const int call = SYS_process_vm_readv;
	static uint8_t from[10000], to[10000];

	unit_fill(from, sizeof(from), 1);
	if (unit_refuse(&call, 1, EPERM) != 0)
		return 77;
	if (plx_proc_fetch(from, to, sizeof(from)) != 0 || memcmp(from, to, sizeof(from)) != 0)
		return 1;
	return plx_proc_fetch((void *)16, to, 64) == -EFAULT && plx_proc_fetch(NULL, to, 1) == -EFAULT ? 0 : 2;
}

static void
a_bad_pointer_is_an_error_in_a_sandbox_too(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0); /* no core file */
		_exit(fetch_without_the_call());
	}
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_TRUE_FATAL(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("\n# skipped: no call can be refused here\n");
	else
		UNIT_EQ(WEXITSTATUS(status), 0);
}

static void
copies_are_of_any_length_and_of_nothing_else(void)
{
	static const uint64_t lens[] = {0, 1, 7, 8, 9, 64, PLX_COPY_NEAR, PLX_COPY_NEAR + 1, 4096,
		PLX_COPY_FAR - 1, PLX_COPY_FAR, PLX_COPY_FAR + 77};
	uint8_t *from = malloc(PLX_COPY_FAR + 300), *to = malloc(PLX_COPY_FAR + 300);

	UNIT_TRUE_FATAL(from != NULL && to != NULL);
	unit_fill(from, PLX_COPY_FAR + 300, 1);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (unsigned at = 0; at < 130; at += 43) { /* no line begins there */
			memset(to, 0xee, lens[i] + 200);
			plx_copy(to + at, from + 3, lens[i]);
			UNIT_TRUE(memcmp(to + at, from + 3, lens[i]) == 0);
			UNIT_TRUE(at == 0 || to[at - 1] == 0xee);
			UNIT_EQ(to[at + lens[i]], 0xee);
		}
	}
	free(from);
	free(to);
}

/* @return the fastest of several copies, ns */
static uint64_t
copy_ns(uint8_t *to, const uint8_t *from, uint64_t len)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < 200; i++) {
		struct timespec a, b;
		uint64_t ns;

		clock_gettime(CLOCK_MONOTONIC, &a);
		plx_copy(to, from, len);
		clock_gettime(CLOCK_MONOTONIC, &b);
		ns = (b.tv_sec - a.tv_sec) * 1000000000ull + b.tv_nsec - a.tv_nsec;
		best = ns < best ? ns : best;
	}
	return best;
}

/* Fast string instructions are slow where the destination is a few bytes behind the source within a page. */
static void
no_alignment_is_slow(void)
{
	const uint64_t page = 4096, len = 8 * page;
	uint8_t *from = aligned_alloc(page, len + page), *to = aligned_alloc(page, len + page);
	uint64_t best;

	UNIT_TRUE_FATAL(from != NULL && to != NULL);
	unit_fill(from, len + page, 1);
	memset(to, 0, len + page);
	best = copy_ns(to, from, len);
	for (unsigned at = 1; at < 70; at += at < 8 ? 1 : 7) {
		UNIT_TRUE(copy_ns(to + at, from, len) < 4 * best + 1000);
		UNIT_TRUE(memcmp(to + at, from, len) == 0);
	}
	free(from);
	free(to);
}

static void
copies_of_lines_hold_header_and_data(void)
{
	static const uint64_t lens[] = {0, 1, 40, 56, 57, 63, 64, 65, 119, 120, 121, 1000, 8192, 16376};
	static const uint32_t head_lens[] = {8, 24, 64};
	alignas(PLX_LINE) static uint8_t to[16384 + 4 * PLX_LINE], from[16384 + PLX_LINE], head[64];

	unit_fill(from, sizeof(from), 1);
	unit_fill(head, sizeof(head), 2);
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		for (unsigned k = 0; k < RTE_DIM(head_lens); k++) {
			const uint32_t head_len = head_lens[k];
			const uint64_t end = RTE_ALIGN_CEIL(head_len + lens[i], PLX_LINE);

			memset(to, 0xee, sizeof(to));
			plx_copy_lines(to + PLX_LINE, head, head_len, from + 3, lens[i]);
			UNIT_TRUE(memcmp(to + PLX_LINE, head, head_len) == 0);
			UNIT_TRUE(memcmp(to + PLX_LINE + head_len, from + 3, lens[i]) == 0);
			UNIT_EQ(to[PLX_LINE - 1], 0xee);
			UNIT_EQ(to[PLX_LINE + end], 0xee);
		}
	}
}

static void
copy_holds_all(void (*copy)(void *to, const void *from, uint64_t len), uint64_t min)
{
	static const uint64_t lens[] = {0, 1, 63, 64, 255, 256, 257, 300, 1000, 4096, 4097, 8191, 8192, 8193, 16383, 16384, 16385};
	static uint8_t to[16385 + 2 * PLX_LINE], from[16385 + PLX_LINE];

	unit_fill(from, sizeof(from), 1);
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		for (unsigned at = 1; lens[i] >= min && at < PLX_LINE; at += 9) {
			memset(to, 0xee, sizeof(to));
			copy(to + at, from + 3, lens[i]);
			UNIT_TRUE(memcmp(to + at, from + 3, lens[i]) == 0);
			UNIT_TRUE(to[at - 1] == 0xee && to[at + lens[i]] == 0xee);
		}
	}
}

static void
copies_past_the_caches_hold_all(void)
{
	copy_holds_all(plx_copy_past, 0);
}

static void
copies_that_are_waited_for_hold_all(void)
{
	copy_holds_all(plx_copy_soon, PLX_COPY_NEAR + 1);
}

/* Whatever a peer hands over is looked at by calls that no file system of the peer's takes part in. */
static void
nothing_but_sealed_memory_is_memory(void)
{
	char name[] = "/tmp/pollux-seg-XXXXXX";
	int fds[2], fd;

	UNIT_EQ(plx_meet_memory_len(-1), 0);
	UNIT_EQ_FATAL(pipe(fds), 0);
	UNIT_EQ(plx_meet_memory_len(fds[0]), 0);
	close(fds[0]);
	close(fds[1]);
	fd = mkstemp(name);
	UNIT_TRUE_FATAL(fd >= 0);
	UNIT_EQ(ftruncate(fd, 4096), 0);
	UNIT_EQ(plx_meet_memory_len(fd), 0);
	unlink(name);
	UNIT_EQ(plx_meet_memory_len(fd), 0);
	close(fd);
	fd = open("/dev/null", O_RDWR);
	UNIT_EQ(plx_meet_memory_len(fd), 0);
	close(fd);
	fd = memfd_create("test", MFD_ALLOW_SEALING);
	UNIT_EQ(ftruncate(fd, 4096), 0);
	UNIT_EQ(plx_meet_memory_len(fd), 0);
	UNIT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	UNIT_EQ(plx_meet_memory_len(fd), 4096);
	UNIT_TRUE(plx_meet_is_memory(fd, 4096, false));
	UNIT_TRUE(!plx_meet_is_memory(fd, 4095, true));
	UNIT_TRUE(!plx_meet_is_memory(fd, 0, true));
	close(fd);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(nothing_but_sealed_memory_is_memory),
	UNIT_TEST(copies_are_of_any_length_and_of_nothing_else),
	UNIT_TEST(no_alignment_is_slow),
	UNIT_TEST(copies_of_lines_hold_header_and_data),
	UNIT_TEST(copies_past_the_caches_hold_all),
	UNIT_TEST(copies_that_are_waited_for_hold_all),
	UNIT_TEST(a_segment_is_zeroed_and_can_be_mapped_by_others),
	UNIT_TEST(a_segment_comes_where_it_is_wanted_or_not_at_all),
	UNIT_TEST(a_segment_that_cannot_be_leaves_nothing_behind),
	UNIT_TEST(a_pool_grows_and_its_objects_are_apart),
	UNIT_TEST(a_pool_ends_at_its_bound),
	UNIT_TEST(a_pool_without_memory_says_so_and_goes_on_later),
	UNIT_TEST(pools_that_come_and_go_use_their_memory_again),
	UNIT_TEST(a_ring_takes_nothing_of_the_heap_that_children_share),
	UNIT_TEST(a_copy_for_a_child_is_gone_after_the_fork),
	UNIT_TEST(a_handler_that_forks_in_a_function_of_the_heap_does_not_hang),
	UNIT_TEST(a_child_has_memory_of_its_own),
	UNIT_TEST(a_child_fences_for_all_without_being_registered),
	UNIT_TEST(a_process_with_threads_is_registered_when_it_first_fences),
	UNIT_TEST(a_bad_pointer_is_an_error_in_a_sandbox_too),
	UNIT_TEST(a_fence_that_is_refused_ends_the_process_with_a_word),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mem", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(int argc, char **argv)
{
	int rc;

	if (argc == 2 && strcmp(argv[1], FENCE_LATE) == 0)
		return fence_late();
	rc = unit_start();
	return rc != 0 ? rc : unit_run(suites);
}

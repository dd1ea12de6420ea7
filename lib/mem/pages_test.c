/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pages_test.c - memory of a program's own EAL is found by peers while it is allocated
 *
 * An EAL starts once in a process, so each kind has a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "plx_meet.h"
#include "plx_pages.h"
#include "plx_unit.h"
#include "plx_window.h"

#define LEN (5u << 20) /* of an allocation: several huge pages */

/* @return whether all of it is found, and is this memory */
static bool
is_found(struct plx_windows *w, char *p, uint64_t len)
{
	for (uint64_t done = 0, n; done < len; done += n) {
		char *there;

		n = len - done;
		there = plx_windows_find(w, (uintptr_t)p + done, &n);
		if (there == NULL || there == p + done)
			return false;
		p[done] = 1;
		there[n - 1] = 2;
		if (there[0] != (n == 1 ? 2 : 1) || p[done + n - 1] != 2)
			return false;
	}
	return true;
}

/* In a process of its own. @return what is wrong, or 0 */
static int
pages_of(const char *kind, bool grows)
{
	char *args[] = {(char *)"test", (char *)kind, (char *)"--no-shconf", (char *)"--no-pci", (char *)"--no-telemetry",
		(char *)"-m", (char *)"16", (char *)"--log-level=*:3", (char *)"--lcores", (char *)"0@0", NULL};
	struct plx_windows *w;
	struct plx_seg_name name;
	char *first, *later, one;
	int rc = rte_eal_init((int)(sizeof(args) / sizeof(args[0])) - 1, args);
	uint64_t n = 1;

	if (rc < 0 || plx_window_table_get(&name) != 0 || plx_windows_open(&name, &w) != 0)
		return 1;
	first = rte_malloc(NULL, LEN, 0);
	plx_pages_open();
	if (first == NULL || plx_pages_bytes() < LEN || !is_found(w, first, LEN))
		return 2;
	if (plx_windows_find(w, (uintptr_t)&one, &n) != NULL)
		return 3;
	if (grows) {
		later = rte_malloc(NULL, 4 * LEN, 0); /* more than the EAL has */
		if (later == NULL || !is_found(w, later, 4 * LEN))
			return 4;
		rte_free(later);
		if (plx_windows_find(w, (uintptr_t)later + 2 * LEN, &n) != NULL)
			return 5;
	}
	if (!is_found(w, first, LEN))
		return 6;
	plx_pages_close();
	plx_pages_close();
	return plx_pages_bytes() != 0 || plx_windows_find(w, (uintptr_t)first, &n) != NULL ? 7 : 0;
}

static int
in_a_process(const char *kind, bool grows)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(pages_of(kind, grows));
	CU_ASSERT_FATAL(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
memory_without_huge_pages_is_found(void)
{
	UNIT_EQ(in_a_process("--no-huge", false), 0);
}

static bool
huge_pages_are_free(void)
{
	void *va = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	bool are = va != MAP_FAILED && madvise(va, 32 << 20, MADV_POPULATE_WRITE) == 0;

	if (va != MAP_FAILED)
		munmap(va, 32 << 20);
	if (!are)
		printf("no huge pages: skipped ");
	return are && geteuid() == 0;
}

static void
huge_pages_come_and_go_with_allocations(void)
{
	if (huge_pages_are_free())
		UNIT_EQ(in_a_process("--in-memory", true), 0);
}

static void
pages_are_a_kind_of_memory_for_one_user_only(void)
{
	int fd = memfd_create("pages", MFD_CLOEXEC), pipes[2];
	char name[] = "/tmp/pollux-pages-XXXXXX";

	UNIT_EQ(ftruncate(fd, 8192), 0);
	UNIT_EQ(plx_meet_memory_len(fd), 0); /* it may shrink */
	UNIT_EQ(plx_meet_pages_len(fd), 8192);
	close(fd);
	UNIT_EQ(plx_meet_pages_len(-1), 0);
	UNIT_EQ_FATAL(pipe(pipes), 0);
	UNIT_EQ(plx_meet_pages_len(pipes[0]), 0);
	close(pipes[0]);
	close(pipes[1]);
	fd = mkstemp(name); /* a file has a name, and others may cut it off */
	UNIT_EQ(ftruncate(fd, 8192), 0);
	UNIT_EQ(plx_meet_pages_len(fd), 0);
	unlink(name);
	close(fd);
}

/* What is listed as pages is taken from the list only: a key can't name it. */
static void
a_key_of_pages_is_refused(void)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);
	struct plx_seg seg = {.base = (void *)4096, .len = 8192, .fd = fd, .id = 77, .own_user = true}, got;
	struct plx_seg_name name = {.pages = true}, table = {.pages = true};
	int status = -1;
	pid_t pid;

	UNIT_EQ(ftruncate(fd, 8192), 0);
	UNIT_EQ_FATAL(plx_seg_name(&seg, &name), 0);
	plx_window_table_of(&name.proc, &table);
	UNIT_TRUE(!name.pages && !table.pages);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bool refused = plx_seg_open(&name, true, &got) == -EACCES;

		name.pages = true;
		_exit(refused && plx_seg_open(&name, true, &got) == 0 ? 0 : 1);
	}
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_EQ(status, 0);
	plx_meet_withdraw(seg.id);
	close(fd);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(pages_are_a_kind_of_memory_for_one_user_only),
	UNIT_TEST(a_key_of_pages_is_refused),
	UNIT_TEST(memory_without_huge_pages_is_found),
	UNIT_TEST(huge_pages_come_and_go_with_allocations),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"pages", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}

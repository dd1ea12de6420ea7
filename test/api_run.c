/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * api_run.c - runs tables of tests of a public API, or those with a part of a name
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api_run.h"
#include "quiet_fork.h"

#define TEST_ALARM_S 240
#define TEST_LONG_NS 500000000u /* so that one sees which tests take the time */

uint64_t rnd_seed = 1;
static const char *test_now = "";
static uint64_t test_began;
static pid_t program;

uint64_t
rnd(void)
{
	rnd_seed = rnd_seed * 6364136223846793005u + 1442695040888963407u;
	return util_mix(rnd_seed >> 13);
}

static void
on_alarm(int sig)
{
	static const char text[] = ": hangs\nRun Summary:\n tests 1 1 0 1 0\n";

	(void)sig;
	if (write(STDOUT_FILENO, test_now, strlen(test_now)) < 0 ||
		write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

/* An assertion that ends the test of a child ends the child. */
static void
leave_if_child(void)
{
	if (getpid() != program)
		_exit(97);
}

static void
before_test(const CU_pTest test, const CU_pSuite suite)
{
	(void)suite;
	leave_if_child();
	test_now = test->pName;
	printf("%s ... ", test->pName);
	fflush(stdout);
	rnd_seed = 1;
	test_began = util_now_ns();
	alarm(TEST_ALARM_S);
}

static void
after_test(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
	const uint64_t ns = util_now_ns() - test_began;
	CU_pFailureRecord f;

	(void)test;
	(void)suite;
	alarm(0);
	printf("%s", failure == NULL ? "passed" : "FAILED");
	if (ns > TEST_LONG_NS)
		printf(" in %.1f s", (double)ns / 1e9);
	puts("");
	for (f = failure; f != NULL; f = f->pNext)
		printf("    %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
	fflush(stdout);
}

void
api_list(const struct api_test *const *tables, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (const struct api_test *t = tables[i]; t->name != NULL; t++)
			puts(t->name);
}

/* Whether a name has one of the parts, between which there are commas. */
static bool
has_part(const char *name, const char *parts)
{
	size_t len = strcspn(parts, ",");

	if (memmem(name, strlen(name), parts, len) != NULL)
		return true;
	return parts[len] == ',' && has_part(name, parts + len + 1);
}

/* Why a test is not run; NULL: it is. */
static const char *
why_not(const struct api_test *t, bool skip_differs)
{
	const char *why = t->lacks != NULL ? t->lacks() : NULL;

	return why == NULL && skip_differs ? t->differs : why;
}

int
api_run(const char *name, const struct api_test *const *tables, size_t n, const char *parts,
	bool skip_differs)
{
	unsigned n_failed;
	CU_pSuite suite;

	signal(SIGALRM, on_alarm);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite(name, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		for (const struct api_test *t = tables[i]; t->name != NULL; t++) {
			const char *why;

			if (!has_part(t->name, parts))
				continue;
			why = why_not(t, skip_differs);
			if (why != NULL)
				printf("# skipped: %s: %s%s\n", t->name, why == t->differs ? "UCX: " : "", why);
			else
				CU_add_test(suite, t->name, t->fn);
		}
	}
	CU_set_test_start_handler(before_test);
	CU_set_test_complete_handler(after_test);
	program = getpid();
	CU_run_all_tests();
	leave_if_child();
	n_failed = CU_get_number_of_tests_failed();
	printf("Run Summary:    Type  Total    Ran Passed Failed Inactive\n"
		"               tests %6u %6u %6u %6u        0\n", CU_get_number_of_tests_run(),
		CU_get_number_of_tests_run(), CU_get_number_of_tests_run() - n_failed, n_failed);
	CU_cleanup_registry();
	return n_failed != 0;
}

/* @return a number that the kernel says, or 0 */
static unsigned long
huge_pages(const char *what)
{
	char path[96], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-2048kB/%s", what);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	return strtoul(text, NULL, 10);
}

void
api_take_free_huge_pages(void)
{
	unsigned long all = huge_pages("nr_hugepages"), left = huge_pages("free_hugepages");
	FILE *f;

	if (getenv("TEST_NO_FREE_HUGE_PAGE") == NULL)
		return;
	f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "w");
	CU_ASSERT_FATAL(f != NULL);
	fprintf(f, "%lu\n", all - left);
	fclose(f);
	CU_ASSERT_FATAL(huge_pages("nr_hugepages") > 0); /* else this tests nothing: the heap has none */
}

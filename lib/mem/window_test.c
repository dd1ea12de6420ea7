/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * window_test.c - segments that are listed, found, changed and taken away
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plx_unit.h"
#include "plx_window.h"

#define LEN 8192u

/* As in window.c: what a peer may write there. */
enum { WORD_MAGIC, WORD_VERSION, WORD_N, WORD_BASE, WORD_LEN, WORD_ID, WORD_PROOF };

static struct plx_seg
segment(size_t len)
{
	struct plx_seg seg = {.base = NULL};

	UNIT_EQ_FATAL(plx_seg_create(&seg, NULL, len, false), 0);
	return seg;
}

static struct plx_windows *
windows(void)
{
	struct plx_windows *w = NULL;
	struct plx_seg_name name;

	UNIT_EQ_FATAL(plx_window_table_get(&name), 0);
	UNIT_EQ_FATAL(plx_windows_open(&name, &w), 0);
	plx_window_table_put();
	return w;
}

/* @return where all len bytes are mapped, or NULL */
static void *
whole(struct plx_windows *w, uint64_t addr, uint64_t len)
{
	uint64_t n = len;
	void *p = plx_windows_find(w, addr, &n);

	return n == len ? p : NULL;
}

static void
what_is_listed_is_found_and_the_same_memory(void)
{
	struct plx_seg a = segment(LEN), b = segment(4 * LEN), other = segment(LEN);
	struct plx_windows *w;
	char *p;

	plx_window_add(&a, 7);
	plx_window_add(&b, 7);
	w = windows();
	for (unsigned round = 0; round < 2; round++) { /* first mapped, then known */
		p = whole(w, (uintptr_t)a.base + 100, 200);
		CU_ASSERT_FATAL(p != NULL);
		CU_ASSERT(p != (char *)a.base + 100);
		strcpy(p, "of the peer");
		CU_ASSERT_STRING_EQUAL((char *)a.base + 100, "of the peer");
		p = whole(w, (uintptr_t)b.base + LEN, 3 * LEN); /* to its end */
		CU_ASSERT_FATAL(p != NULL);
		memset(b.base, 'b', b.len);
		UNIT_EQ(p[3 * LEN - 1], 'b');
	}
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)other.base, 1));
	plx_windows_close(w);
	plx_window_remove(&a);
	plx_window_remove(&b);
	plx_window_remove(&b); /* once more is nothing */
	plx_seg_destroy(&a);
	plx_seg_destroy(&b);
	plx_seg_destroy(&other);
}

/* @return whether a look at len bytes at addr needs no search */
static bool
is_known(const struct plx_windows *w, uint64_t addr, uint64_t len)
{
	const struct plx_windows_last *l = (const struct plx_windows_last *)w;

	return plx_window_has(l->base, l->len, addr, len);
}

static void
what_lies_between_segments_is_looked_up_once(void)
{
	struct plx_seg all = segment(3 * LEN), a, b = {.base = NULL}, c = {.base = NULL};
	struct plx_windows *w;
	uintptr_t between = (uintptr_t)all.base + LEN;

	a = (struct plx_seg){.base = all.base};
	plx_seg_destroy(&all);
	UNIT_EQ_FATAL(plx_seg_create(&a, a.base, LEN, false), 0);
	UNIT_EQ_FATAL(plx_seg_create(&c, (char *)a.base + 2 * LEN, LEN, false), 0);
	plx_window_add(&a, 7);
	w = windows();
	CU_ASSERT_PTR_NULL(whole(w, between, 8));
	UNIT_TRUE(is_known(w, (uintptr_t)c.base, LEN) && !is_known(w, between - 1, 1)); /* to the end */
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)a.base - 8, 8));
	UNIT_TRUE(is_known(w, 8, 8) && !is_known(w, (uintptr_t)a.base, 1)); /* from the beginning */
	plx_window_add(&c, 7);
	CU_ASSERT_PTR_NULL(whole(w, between + 8, 8));
	UNIT_TRUE(is_known(w, between, LEN) && !is_known(w, between - 1, 1) && !is_known(w, between, LEN + 1));
	CU_ASSERT_PTR_NULL(whole(w, between, LEN));
	CU_ASSERT_PTR_NULL(whole(w, between, LEN + 1)); /* its end is the next segment's */
	CU_ASSERT_PTR_NOT_NULL(whole(w, (uintptr_t)c.base, LEN));
	CU_ASSERT_PTR_NULL(whole(w, between, 8));
	UNIT_EQ_FATAL(plx_seg_create(&b, (char *)a.base + LEN, LEN, false), 0);
	plx_window_add(&b, 7);
	CU_ASSERT_PTR_NOT_NULL(whole(w, between, LEN));
	plx_windows_close(w);
	plx_window_remove(&a);
	plx_window_remove(&b);
	plx_window_remove(&c);
	plx_seg_destroy(&a);
	plx_seg_destroy(&b);
	plx_seg_destroy(&c);
}

static void
what_is_not_all_inside_is_not_found(void)
{
	struct plx_seg a = segment(LEN);
	uintptr_t base = (uintptr_t)a.base;
	struct plx_windows *w;

	plx_window_add(&a, 7);
	w = windows();
	for (unsigned round = 0; round < 2; round++) {
		CU_ASSERT_PTR_NULL(whole(w, base - 1, 2));
		CU_ASSERT_PTR_NULL(whole(w, base + LEN - 1, 2));
		CU_ASSERT_PTR_NULL(whole(w, base, LEN + 1));
		CU_ASSERT_PTR_NULL(whole(w, base + LEN, 1));
		CU_ASSERT_PTR_NULL(whole(w, base + 8, UINT64_MAX));
		CU_ASSERT_PTR_NULL(whole(w, base + 8, UINT64_MAX - 16));
		CU_ASSERT_PTR_NULL(whole(w, 0, 1));
		CU_ASSERT_PTR_NULL(whole(w, UINT64_MAX, 1));
		CU_ASSERT_PTR_NOT_NULL(whole(w, base, LEN));
	}
	plx_windows_close(w);
	plx_window_remove(&a);
	plx_seg_destroy(&a);
}

/* Pages of an EAL are segments of their own, one after the other. */
static void
what_goes_on_in_the_next_segment_is_found_in_parts(void)
{
	struct plx_seg both = segment(2 * LEN), a, b = {.base = NULL};
	struct plx_windows *w;
	uint64_t n = LEN;
	char *p;

	a = (struct plx_seg){.base = both.base};
	plx_seg_destroy(&both);
	UNIT_EQ_FATAL(plx_seg_create(&a, a.base, LEN, false), 0);
	UNIT_EQ_FATAL(plx_seg_create(&b, (char *)a.base + LEN, LEN, false), 0);
	plx_window_add(&a, 7);
	plx_window_add(&b, 7);
	w = windows();
	p = plx_windows_find(w, (uintptr_t)a.base + 100, &n);
	UNIT_TRUE(p != NULL && n == LEN - 100);
	n = LEN;
	p = plx_windows_find(w, (uintptr_t)b.base, &n);
	CU_ASSERT_FATAL(p != NULL && n == LEN);
	strcpy(p, "next");
	CU_ASSERT_STRING_EQUAL(b.base, "next");
	plx_windows_close(w);
	plx_window_remove(&a);
	plx_window_remove(&b);
	plx_seg_destroy(&a);
	plx_seg_destroy(&b);
}

static void
what_is_taken_away_is_not_found_and_stays_readable(void)
{
	struct plx_seg a = segment(LEN), b = segment(LEN);
	struct plx_windows *w;
	void *where = a.base;
	char *p, *q;

	plx_window_add(&a, 7);
	plx_window_add(&b, 7);
	w = windows();
	p = whole(w, (uintptr_t)b.base, 1);
	q = whole(w, (uintptr_t)a.base, 1);
	CU_ASSERT_FATAL(p != NULL && q != NULL);
	plx_window_remove(&a);
	plx_seg_destroy(&a);
	*q = 'x'; /* a transfer that does not know yet */
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)where, 1));
	CU_ASSERT_PTR_EQUAL(whole(w, (uintptr_t)b.base, 1), p); /* not mapped anew */
	/* The addresses are another segment's now. */
	UNIT_EQ_FATAL(plx_seg_create(&a, where, LEN, false), 0);
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)where, 1));
	plx_window_add(&a, 7);
	strcpy(a.base, "new");
	q = whole(w, (uintptr_t)where, 4);
	CU_ASSERT_FATAL(q != NULL);
	CU_ASSERT_STRING_EQUAL(q, "new");
	plx_windows_close(w);
	plx_window_remove(&a);
	plx_window_remove(&b);
	plx_seg_destroy(&a);
	plx_seg_destroy(&b);
}

static void
more_segments_than_places_are_not_listed(void)
{
	static struct plx_seg segs[PLX_WINDOW_MAX + 3];
	unsigned n = sizeof(segs) / sizeof(segs[0]), found = 0;
	struct plx_windows *w;
	struct plx_seg_name name;

	UNIT_EQ_FATAL(plx_window_table_get(&name), 0); /* as an open queue does */
	w = windows();
	for (unsigned i = 0; i < n; i++) {
		segs[i] = segment(4096);
		plx_window_add(&segs[i], 7);
	}
	for (unsigned i = 0; i < n; i++)
		found += whole(w, (uintptr_t)segs[i].base, 4096) != NULL;
	UNIT_EQ(found, PLX_WINDOW_MAX);
	plx_window_remove(&segs[0]);
	plx_window_add(&segs[n - 1], 7); /* into its place */
	CU_ASSERT_PTR_NOT_NULL(whole(w, (uintptr_t)segs[n - 1].base, 4096));
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)segs[0].base, 4096));
	plx_windows_close(w);
	plx_window_table_put();
	for (unsigned i = 0; i < n; i++) {
		plx_window_remove(&segs[i]);
		plx_seg_destroy(&segs[i]);
	}
}

static void
a_table_of_nonsense_finds_nothing(void)
{
	struct plx_seg a = segment(LEN), fake = segment(256 << 10);
	uint64_t *t = fake.base, len;
	struct plx_seg_name name, of_a;
	struct plx_windows *w = NULL;

	UNIT_EQ_FATAL(plx_seg_name(&fake, &name), 0);
	UNIT_EQ_FATAL(plx_seg_name(&a, &of_a), 0);
	UNIT_EQ(plx_windows_open(&name, &w), -EINVAL); /* no magic number */
	UNIT_EQ_FATAL(plx_window_table_get(&of_a), 0);
	UNIT_EQ_FATAL(plx_windows_open(&of_a, &w), 0);
	plx_windows_close(w);
	plx_window_table_put();
	t[WORD_MAGIC] = 0x3357444e58584c50ull;
	t[WORD_N] = UINT64_MAX; /* more than there can be */
	len = name.len;
	name.len = 64;
	UNIT_EQ(plx_windows_open(&name, &w), -EINVAL); /* too short */
	name.len = len;
	UNIT_EQ_FATAL(plx_windows_open(&name, &w), 0);

	UNIT_EQ_FATAL(plx_seg_name(&a, &of_a), 0);
	t[WORD_BASE] = UINT64_MAX - 100; /* past the end of all addresses */
	t[WORD_LEN] = LEN;
	t[WORD_ID] = of_a.id;
	t[WORD_VERSION] = 2;
	CU_ASSERT_PTR_NULL(whole(w, UINT64_MAX - 50, 1));
	t[WORD_BASE] = (uintptr_t)a.base;
	t[WORD_ID]++; /* nobody offers that */
	t[WORD_VERSION] = 4;
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)a.base, 1));
	t[WORD_ID]--;
	t[WORD_LEN] = 2 * LEN; /* longer than it is */
	t[WORD_VERSION] = 6;
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)a.base, 1));
	t[WORD_LEN] = LEN;
	t[WORD_VERSION] = 9; /* changes for ever */
	CU_ASSERT_PTR_NULL(whole(w, (uintptr_t)a.base, 1));
	t[WORD_VERSION] = 10;
	CU_ASSERT_PTR_NOT_NULL(whole(w, (uintptr_t)a.base, 1));
	plx_windows_close(w);
	plx_seg_destroy(&a);
	plx_seg_destroy(&fake);
}

/* In the child. @return what is wrong, or 0 */
static int
child(const struct plx_seg_name *parent, uintptr_t addr)
{
	struct plx_seg mine = {.base = NULL};
	struct plx_windows *of_parent, *of_me;
	struct plx_seg_name name;
	char *p;

	if (plx_windows_open(parent, &of_parent) != 0)
		return 1;
	p = whole(of_parent, addr, 16);
	if (p == NULL || strcmp(p, "from above") != 0)
		return 2;
	strcpy(p, "from below");
	/* What the child lists is its own. */
	if (plx_seg_create(&mine, NULL, LEN, false) != 0 || plx_window_table_get(&name) != 0)
		return 3;
	plx_window_add(&mine, 7);
	if (plx_windows_open(&name, &of_me) != 0)
		return 4;
	if (whole(of_me, (uintptr_t)mine.base, LEN) == NULL)
		return 5;
	if (whole(of_parent, (uintptr_t)mine.base, LEN) != NULL)
		return 6;
	if (whole(of_me, addr, 16) != NULL)
		return 7;
	return 0;
}

static void
another_process_finds_them_and_has_its_own(void)
{
	struct plx_seg a = segment(LEN);
	struct plx_seg_name name;
	int status = -1;
	pid_t pid;

	plx_window_add(&a, 7);
	UNIT_EQ_FATAL(plx_window_table_get(&name), 0);
	strcpy(a.base, "from above");
	pid = fork();
	if (pid == 0)
		_exit(child(&name, (uintptr_t)a.base));
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_TRUE(WIFEXITED(status));
	UNIT_EQ(WEXITSTATUS(status), 0);
	CU_ASSERT_STRING_EQUAL((char *)a.base, "from below");
	plx_window_table_put();
	plx_window_remove(&a);
	plx_seg_destroy(&a);
}

/* What a key says is not believed: place, base, length and token all have to be the segment's. */
static void
a_place_is_a_name_for_who_knows_the_token(void)
{
	struct plx_seg a = segment(LEN), b = segment(LEN);
	uint64_t base = (uintptr_t)a.base;
	struct plx_map *map = NULL;
	struct plx_seg_name table;
	uint32_t at;

	at = plx_window_add(&a, 7);
	UNIT_TRUE(at != 0 && at <= PLX_WINDOW_MAX);
	UNIT_EQ(plx_window_add(&a, 7), at); /* listed already */
	UNIT_TRUE(plx_window_add(&b, 8) != at);
	UNIT_EQ_FATAL(plx_window_table_get(&table), 0);
	UNIT_EQ_FATAL(plx_window_map(&table, at, 7, base, LEN, true, &map), 0);
	strcpy(plx_map_base(map), "by its place");
	CU_ASSERT_STRING_EQUAL(a.base, "by its place");
	plx_map_put(map);
	UNIT_EQ(plx_window_map(&table, 0, 7, base, LEN, true, &map), -EINVAL);
	UNIT_EQ(plx_window_map(&table, PLX_WINDOW_MAX + 1, 7, base, LEN, true, &map), -EINVAL);
	UNIT_EQ(plx_window_map(&table, PLX_WINDOW_MAX, 7, base, LEN, true, &map), -ESRCH);
	UNIT_EQ(plx_window_map(&table, at, 8, base, LEN, true, &map), -ESRCH);
	UNIT_EQ(plx_window_map(&table, at, 7, base + 4096, LEN, true, &map), -ESRCH);
	UNIT_EQ(plx_window_map(&table, at, 7, base, LEN / 2, true, &map), -ESRCH);
	UNIT_EQ(plx_window_map(&table, at + 1, 7, base, LEN, true, &map), -ESRCH);
	plx_window_remove(&a);
	UNIT_EQ(plx_window_map(&table, at, 7, base, LEN, true, &map), -ESRCH);
	UNIT_EQ(plx_window_add(&a, 9), at); /* the same memory, of another region */
	UNIT_EQ(plx_window_map(&table, at, 7, base, LEN, true, &map), -ESRCH);
	table.len = 64;
	UNIT_EQ(plx_window_map(&table, at, 9, base, LEN, true, &map), -EINVAL);
	plx_window_table_put();
	plx_window_remove(&a);
	plx_window_remove(&b);
	plx_seg_destroy(&a);
	plx_seg_destroy(&b);
}

/* The last queue is closed and another opened, while a peer knows one of the first yet. */
static void
a_new_table_is_not_taken_for_the_one_before(void)
{
	struct plx_seg a = segment(LEN), b = segment(LEN);
	struct plx_windows *before, *now = NULL;
	struct plx_map *map = NULL;
	struct plx_seg_name name;
	uint32_t at;

	at = plx_window_add(&a, 7);
	before = windows();
	CU_ASSERT_PTR_NOT_NULL(whole(before, (uintptr_t)a.base, LEN));
	plx_window_remove(&a); /* nobody holds the table any more */
	UNIT_EQ_FATAL(plx_window_table_get(&name), 0);
	UNIT_EQ(plx_window_add(&b, 7), at); /* of the new one */
	UNIT_EQ(plx_window_map(&name, at, 7, (uintptr_t)b.base, LEN, true, &map), 0);
	if (map != NULL) {
		strcpy(plx_map_base(map), "of the new one");
		CU_ASSERT_STRING_EQUAL(b.base, "of the new one");
	}
	UNIT_EQ_FATAL(plx_windows_open(&name, &now), 0);
	CU_ASSERT_PTR_NOT_NULL(whole(now, (uintptr_t)b.base, LEN));
	CU_ASSERT_PTR_NULL(whole(before, (uintptr_t)a.base, LEN));
	CU_ASSERT_PTR_NULL(whole(before, (uintptr_t)b.base, LEN));
	plx_map_put(map);
	plx_windows_close(before);
	plx_windows_close(now);
	plx_window_table_put();
	plx_window_remove(&b);
	plx_seg_destroy(&a);
	plx_seg_destroy(&b);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_place_is_a_name_for_who_knows_the_token),
	UNIT_TEST(what_is_listed_is_found_and_the_same_memory),
	UNIT_TEST(what_lies_between_segments_is_looked_up_once),
	UNIT_TEST(what_is_not_all_inside_is_not_found),
	UNIT_TEST(what_goes_on_in_the_next_segment_is_found_in_parts),
	UNIT_TEST(what_is_taken_away_is_not_found_and_stays_readable),
	UNIT_TEST(more_segments_than_places_are_not_listed),
	UNIT_TEST(a_table_of_nonsense_finds_nothing),
	UNIT_TEST(another_process_finds_them_and_has_its_own),
	UNIT_TEST(a_new_table_is_not_taken_for_the_one_before),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"window", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}

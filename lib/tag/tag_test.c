/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_test.c - what matching promises, and that two plain lists agree with it
 *
 * PLX_TEST_SEED, if set, replaces the seeds of the random tests.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <CUnit/Basic.h>

/* The engine's allocations fail while this is set. */
static bool no_memory;

#define aligned_alloc(align, size) (no_memory ? NULL : (aligned_alloc)(align, size))
#define mmap(...)                  (no_memory ? MAP_FAILED : (mmap)(__VA_ARGS__))
#include "tag.c"
#include "tag_table.c"
#undef aligned_alloc
#undef mmap

#define EXACT      UINT64_MAX
#define ANY_SOURCE UINT64_C(0xffff0000ffffffff) /* 16 bits context, 16 rank, 32 tag */
#define ANY_TAG    UINT64_C(0xffffffff00000000)

/* A message with its links under many masks. */
struct kept {
	struct plx_tag_msg m;
	struct plx_tag_far far;
};

static struct plx_tag *
engine_of(uint64_t seed)
{
	struct plx_tag *t = NULL;

	CU_ASSERT_EQUAL_FATAL(plx_tag_create(seed, offsetof(struct kept, far), &t), 0);
	return t;
}

static struct plx_tag *
engine(void)
{
	return engine_of(UINT64_C(0x9e3779b97f4a7c15));
}

/* As arrivals do. */
static struct plx_tag_recv *
match(struct plx_tag *t, uint64_t tag)
{
	if (plx_tag_stats(t)->posted != 0)
		return plx_tag_match(t, tag);
	plx_tag_miss(t);
	return NULL;
}

#define CROWD_N 5 /* more than a few: from here on receives stand in tables */

static void
crowd(struct plx_tag *t, struct plx_tag_recv r[CROWD_N], uint64_t mask)
{
	for (int i = 0; i < CROWD_N; i++)
		plx_tag_post(t, &r[i], UINT64_C(0x0777070700000000) + i, mask);
}

static const uint64_t default_seeds[] = {1, 20261, 7777777};
static uint64_t env_seed[1];
static const uint64_t *seeds = default_seeds;
static unsigned seed_n = RTE_DIM(default_seeds);

static uint64_t rng_state;

static uint64_t
rng(void)
{
	uint64_t z = rng_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void
empty_engine_matches_nothing(void)
{
	struct plx_tag *t = engine();

	CU_ASSERT_PTR_NULL(match(t, 0));
	CU_ASSERT_PTR_NULL(plx_tag_peek(t, EXACT));
	CU_ASSERT_PTR_NULL(plx_tag_find(t, 0, 0));
	CU_ASSERT_PTR_NULL(plx_tag_recv_first(t));
	CU_ASSERT_PTR_NULL(plx_tag_msg_first(t));
	plx_tag_destroy(t);
	plx_tag_destroy(NULL);
}

static void
create_without_memory_says_so(void)
{
	struct plx_tag *t = (struct plx_tag *)&no_memory;

	no_memory = true;
	CU_ASSERT_EQUAL(plx_tag_create(1, offsetof(struct kept, far), &t), -ENOMEM);
	no_memory = false;
	CU_ASSERT_PTR_EQUAL(t, &no_memory);
}

static void
equal_posts_match_in_post_order(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[3];
	int i;

	for (i = 0; i < 3; i++)
		plx_tag_post(t, &r[i], 7, EXACT);
	CU_ASSERT_PTR_NULL(match(t, 8));
	for (i = 0; i < 3; i++)
		CU_ASSERT_PTR_EQUAL(match(t, 7), &r[i]);
	CU_ASSERT_PTR_NULL(match(t, 7));
	plx_tag_destroy(t);
}

static void
wildcard_takes_earliest_post(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[4];

	plx_tag_post(t, &r[0], 5, EXACT);
	plx_tag_post(t, &r[1], 5, ANY_SOURCE);
	plx_tag_post(t, &r[2], 0, 0);
	plx_tag_post(t, &r[3], 5, EXACT);
	CU_ASSERT_PTR_EQUAL(match(t, 6), &r[2]);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[0]);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[1]);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[3]);
	plx_tag_destroy(t);
}

static void
bits_outside_the_mask_do_not_matter(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r;
	struct kept m;

	plx_tag_post(t, &r, UINT64_C(0x1111222233334444), ANY_SOURCE);
	CU_ASSERT_PTR_NULL(match(t, UINT64_C(0x1111999933334445)));
	CU_ASSERT_PTR_EQUAL(match(t, UINT64_C(0x1111999933334444)), &r);
	plx_tag_post(t, &r, EXACT, 0);
	CU_ASSERT_PTR_EQUAL(match(t, 1), &r);
	plx_tag_keep(t, &m.m, UINT64_C(0x1111222233334444));
	CU_ASSERT_EQUAL(m.m.tag, UINT64_C(0x1111222233334444));
	CU_ASSERT_PTR_EQUAL(plx_tag_find(t, UINT64_C(0x1111777733334444), ANY_SOURCE), &m.m);
	CU_ASSERT_PTR_NULL(plx_tag_find(t, UINT64_C(0x1111777733334444), EXACT));
	plx_tag_destroy(t);
}

static void
peek_removes_nothing(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[2];

	plx_tag_post(t, &r[0], 5, ANY_TAG);
	plx_tag_post(t, &r[1], 5, EXACT);
	plx_tag_prefetch(t, 5);
	CU_ASSERT_PTR_EQUAL(plx_tag_guess(t, 5), &r[0]);
	CU_ASSERT_PTR_NULL(plx_tag_guess(t, UINT64_C(5) << 32));
	CU_ASSERT_PTR_EQUAL(plx_tag_peek(t, 5), &r[0]);
	CU_ASSERT_PTR_EQUAL(plx_tag_peek(t, 5), &r[0]);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->posted, 2);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[0]);
	plx_tag_destroy(t);
}

static void
cancel_of_wildcard_leaves_order(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[5];

	plx_tag_post(t, &r[0], 5, ANY_TAG);
	plx_tag_post(t, &r[1], 5, EXACT);
	plx_tag_post(t, &r[2], 5, ANY_TAG);
	plx_tag_post(t, &r[3], 5, EXACT);
	plx_tag_post(t, &r[4], 5, ANY_TAG);
	plx_tag_cancel(t, &r[0]);
	plx_tag_cancel(t, &r[3]);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[1]);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[2]);
	CU_ASSERT_PTR_EQUAL(match(t, 5), &r[4]);
	CU_ASSERT_PTR_NULL(match(t, 5));
	plx_tag_destroy(t);
}

static void
cancel_in_the_middle_of_equals_leaves_order(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[3];

	for (int victim = 0; victim < 3; victim++) {
		for (int i = 0; i < 3; i++)
			plx_tag_post(t, &r[i], 9, EXACT);
		plx_tag_cancel(t, &r[victim]);
		for (int i = 0; i < 3; i++)
			if (i != victim)
				CU_ASSERT_PTR_EQUAL(match(t, 9), &r[i]);
		CU_ASSERT_PTR_NULL(match(t, 9));
	}
	CU_ASSERT_EQUAL(plx_tag_stats(t)->cancels, 3);
	plx_tag_destroy(t);
}

static void
ninth_mask_matches_in_post_order(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[24];

	for (int i = 0; i < 24; i++)
		plx_tag_post(t, &r[i], 0, UINT64_C(1) << (i % 12));
	CU_ASSERT_EQUAL(plx_tag_stats(t)->classes, PLX_TAG_MAX_CLASSES);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->residual, 24 - 2 * PLX_TAG_MAX_CLASSES);
	plx_tag_cancel(t, &r[10]);
	for (int i = 0; i < 24; i++)
		if (i != 10)
			CU_ASSERT_PTR_EQUAL(match(t, UINT64_C(1) << 63), &r[i]);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->residual, 0);
	plx_tag_destroy(t);
}

static void
idle_class_goes_to_a_new_mask(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r, others[CROWD_N];

	crowd(t, others, EXACT);
	for (int i = 0; i < 64; i++) {
		plx_tag_post(t, &r, 0, UINT64_C(1) << i);
		CU_ASSERT_PTR_NULL(match(t, UINT64_C(1) << i));
		CU_ASSERT_PTR_EQUAL(match(t, ~(UINT64_C(1) << i)), &r);
	}
	CU_ASSERT_EQUAL(plx_tag_stats(t)->residual_posts, 0);
	CU_ASSERT(plx_tag_stats(t)->class_recycled >= 64 - PLX_TAG_MAX_CLASSES);
	plx_tag_destroy(t);
}

static void
a_few_receives_become_many_and_few_again(void)
{
	static const uint64_t masks[] = {EXACT, ANY_SOURCE, ANY_TAG};
	struct plx_tag *t = engine();
	struct plx_tag_recv r[8];

	for (int n = 1; n <= 8; n++) {
		for (int i = 0; i < n; i++)
			plx_tag_post(t, &r[i], 5, masks[i % 3]);
		CU_ASSERT_PTR_EQUAL(plx_tag_recv_first(t), &r[0]);
		plx_tag_cancel(t, &r[n / 2]);
		for (int i = 0; i < n; i++) {
			if (i == n / 2)
				continue;
			CU_ASSERT_PTR_EQUAL(plx_tag_peek(t, 5), &r[i]);
			CU_ASSERT_PTR_EQUAL(match(t, 5), &r[i]);
		}
		CU_ASSERT_PTR_NULL(match(t, 5));
		CU_ASSERT_EQUAL(plx_tag_stats(t)->posted, 0);
	}
	plx_tag_destroy(t);
}

static void
arrival_asks_only_masks_with_receives(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[2], others[CROWD_N];

	crowd(t, others, ANY_TAG);
	plx_tag_post(t, &r[0], 5, EXACT);
	plx_tag_post(t, &r[1], 5, ANY_SOURCE);
	match(t, 6);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->probes, 3);
	plx_tag_cancel(t, &r[0]);
	match(t, 6);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->probes, 5);
	match(t, 5);
	match(t, 5);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->probes, 8);
	plx_tag_destroy(t);
}

/* Whatever is kept: a few messages, or so many that there are indexes. */
static void
only_the_earliest_is_taken_and_only_whole(void)
{
	for (unsigned n = 2; n <= 100; n += 14) {
		struct plx_tag *t = engine();
		struct kept m[100];

		for (unsigned i = 0; i < n; i++) {
			m[i].m.whole = i % 2 == 0;
			plx_tag_keep(t, &m[i].m, i / 2);
		}
		CU_ASSERT_PTR_NULL(plx_tag_take_whole(t, 1000, EXACT));
		for (unsigned i = 0; i < n; i += 2) {
			CU_ASSERT_PTR_EQUAL(plx_tag_take_whole(t, i / 2, EXACT), &m[i].m);
			CU_ASSERT_PTR_NULL(plx_tag_take_whole(t, i / 2, EXACT));
			CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i / 2, EXACT), &m[i + 1].m);
		}
		CU_ASSERT_EQUAL(plx_tag_stats(t)->kept, n / 2);
		CU_ASSERT_PTR_EQUAL(plx_tag_msg_first(t), &m[1].m);
		plx_tag_destroy(t);
	}
}

static void
a_match_leaves_the_messages_tag(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[8];

	for (unsigned n = 1; n <= 8; n++) {
		for (unsigned i = 0; i < n; i++)
			plx_tag_post(t, &r[i], 0x10 + i, 0xff);
		CU_ASSERT_PTR_NULL(match(t, 0xa77));
		CU_ASSERT_EQUAL(plx_tag_missed(t), 0xa77);
		for (unsigned i = 0; i < n; i++) {
			CU_ASSERT_PTR_EQUAL(match(t, 0xa10 + i), &r[i]);
			CU_ASSERT_EQUAL(r[i].tag, 0xa10 + i);
		}
	}
	plx_tag_destroy(t);
}

static void
find_returns_earliest_kept_and_leaves_it(void)
{
	struct plx_tag *t = engine();
	struct kept m[100];

	for (int i = 0; i < 100; i++)
		plx_tag_keep(t, &m[i].m, i % 10);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i, EXACT), &m[i].m);
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i, EXACT), &m[i].m);
	}
	CU_ASSERT_PTR_EQUAL(plx_tag_find(t, 0, 0), &m[0].m);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i % 10, EXACT), &m[i].m);
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, 0, 0), &m[i].m);
		plx_tag_take(t, &m[i].m);
	}
	CU_ASSERT_EQUAL(plx_tag_stats(t)->kept, 0);
	plx_tag_destroy(t);
}

static void
more_masks_than_indexes_find_the_earliest(void)
{
	struct plx_tag *t = engine();
	struct kept m[256];

	for (int i = 0; i < 256; i++)
		plx_tag_keep(t, &m[i].m, i);
	for (int round = 0; round < 20; round++)
		for (int bit = 0; bit < 8; bit++)
			CU_ASSERT_PTR_EQUAL(plx_tag_find(t, 255, 1 << bit), &m[1 << bit].m);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->indexes, PLX_TAG_MAX_INDEXES);
	CU_ASSERT(plx_tag_stats(t)->index_recycled > 0);
	plx_tag_destroy(t);
}

static void
walk_meets_all_in_order_and_allows_cancel(void)
{
	enum { N = 1000 };
	static struct plx_tag_recv r[N];
	static struct kept m[N];
	struct plx_tag *t = engine();
	struct plx_tag_recv *p, *next;
	struct plx_tag_msg *q;
	int i;

	for (i = 0; i < N; i++) {
		plx_tag_post(t, &r[i], i, i % 3 == 0 ? EXACT : ~(UINT64_C(1) << (32 + i % 11)));
		plx_tag_keep(t, &m[i].m, i);
	}
	for (p = plx_tag_recv_first(t), i = 0; p != NULL; p = next, i++) {
		next = plx_tag_recv_next(p);
		CU_ASSERT_PTR_EQUAL(p, &r[i]);
		plx_tag_cancel(t, p);
	}
	CU_ASSERT_EQUAL(i, N);
	CU_ASSERT_PTR_NULL(plx_tag_recv_first(t));
	for (q = plx_tag_msg_first(t), i = 0; q != NULL; q = plx_tag_msg_next(q), i++)
		CU_ASSERT_PTR_EQUAL(q, &m[i].m);
	CU_ASSERT_EQUAL(i, N);
	plx_tag_destroy(t);
}

static void
dump_names_every_counter(void)
{
	struct plx_tag *t = engine();
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	plx_tag_dump(f, t);
	fclose(f);
	for (const struct plx_stat_row *row = plx_tag_stat_rows; row->name != NULL; row++)
		CU_ASSERT_PTR_NOT_NULL(strstr(text, row->name));
	CU_ASSERT_EQUAL(
		RTE_DIM(plx_tag_stat_rows) - 1, sizeof(struct plx_tag_stat) / sizeof(uint64_t));
	free(text);
	plx_tag_destroy(t);
}

/* crc32c of one word, as the processor computes it. */
static uint32_t
crc32c(uint32_t word)
{
	for (int i = 0; i < 32; i++)
		word = word >> 1 ^ (word & 1 ? UINT32_C(0x82f63b78) : 0);
	return word;
}

/* The i-th of the tags whose crc32c is 0: anybody can compute these. */
static uint64_t
tag_of_crc_zero(uint32_t i)
{
	return (uint64_t)crc32c(i + 1) << 32 | (i + 1);
}

static uint32_t
longest_run(const struct tag_table *tb)
{
	uint32_t n = 0, most = 0;

	for (uint32_t i = 0; i < tag_slots_n(tb->shift); i++) {
		n = tb->slots[i].seq != 0 ? n + 1 : 0;
		most = RTE_MAX(most, n);
	}
	return most;
}

/* A sender that chooses its tags does not choose where they stand. */
static void
tags_chosen_to_collide_do_not(void)
{
	enum { N = 4096 };
	struct plx_tag_recv *r = calloc(N, sizeof(*r));
	struct kept *m = calloc(N, sizeof(*m));

	CU_ASSERT_FATAL(r != NULL && m != NULL);
	for (unsigned k = 0; k < seed_n; k++) {
		struct plx_tag *t;

		rng_state = seeds[k];
		t = engine_of(rng());
		for (uint32_t i = 0; i < N; i++)
			plx_tag_post(t, &r[i], tag_of_crc_zero(i), EXACT);
		CU_ASSERT(longest_run(&t->classes[0].table) < 200);
		for (uint32_t i = 0; i < N; i++)
			CU_ASSERT_PTR_EQUAL(match(t, tag_of_crc_zero(i)), &r[i]);
		for (uint32_t i = 0; i < N; i++)
			plx_tag_keep(t, &m[i].m, tag_of_crc_zero(i));
		for (uint32_t i = N; i-- > 0;)
			CU_ASSERT_PTR_EQUAL(plx_tag_find(t, tag_of_crc_zero(i), EXACT), &m[i].m);
		CU_ASSERT_EQUAL(t->stat.indexes, 1);
		CU_ASSERT(longest_run(&t->indexes[0].table) < 200);
		plx_tag_destroy(t);
	}
	free(m);
	free(r);
}

static void
cost_in_steps_does_not_follow_depth(void)
{
	enum { N = 20000 };
	static struct kept m[N];
	struct plx_tag *t = engine();
	uint64_t before;

	for (int i = 0; i < N; i++)
		plx_tag_keep(t, &m[i].m, i);
	for (int i = N - 1; i >= 0; i--) {
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i, EXACT), &m[i].m);
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i, ANY_SOURCE), &m[i].m);
	}
	CU_ASSERT_EQUAL(plx_tag_stats(t)->scanned, 2 * N);
	before = plx_tag_stats(t)->scanned;
	for (int i = 0; i < N; i++) {
		plx_tag_take(t, &m[i].m);
		plx_tag_keep(t, &m[i].m, i);
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i, EXACT), &m[i].m);
	}
	CU_ASSERT_EQUAL(plx_tag_stats(t)->scanned, before);
	plx_tag_destroy(t);
}

/* A message that is taken leaves only the indexes that somebody asks. */
static void
an_index_that_nobody_asks_is_left_behind_and_catches_up(void)
{
	enum { N = 10000 };
	static struct kept m[N];
	struct plx_tag *t = engine();

	for (int i = 0; i < N; i++) {
		plx_tag_keep(t, &m[i].m, i);
		CU_ASSERT_PTR_EQUAL(plx_tag_find(t, i, i < 16 ? EXACT : ANY_SOURCE), &m[i].m);
	}
	CU_ASSERT_EQUAL(t->indexes[0].mask, EXACT);
	CU_ASSERT(t->indexes[0].fed < m[N / 2].m.seq);
	plx_tag_take(t, &m[N - 2].m); /* not in it */
	CU_ASSERT_PTR_EQUAL(plx_tag_find(t, N - 1, EXACT), &m[N - 1].m);
	CU_ASSERT_EQUAL(t->indexes[0].fed, m[N - 1].m.seq);
	CU_ASSERT_PTR_NULL(plx_tag_find(t, N - 2, EXACT));
	plx_tag_destroy(t);
}

static void
never_repeating_tags_do_not_grow_a_table(void)
{
	struct plx_tag *t = engine();
	struct plx_tag_recv r[16];

	for (uint64_t i = 0; i < 100000; i++) {
		if (i >= 16)
			CU_ASSERT_PTR_EQUAL(match(t, i - 16), &r[i % 16]);
		plx_tag_post(t, &r[i % 16], i, EXACT);
	}
	CU_ASSERT_EQUAL(plx_tag_stats(t)->rehashes, 0);
	plx_tag_destroy(t);
}

/* The oracle: both queues as plain lists in order, searched from the front. */
struct oracle_recv {
	struct plx_tag_recv r;
	uint64_t tag, mask;
	struct oracle_recv *next, *prev;
};
struct oracle_msg {
	struct plx_tag_msg m;
	struct plx_tag_far far;
	uint64_t tag;
	struct oracle_msg *next, *prev;
};

_Static_assert(offsetof(struct oracle_msg, far) == offsetof(struct kept, far), "as the engine is told");

static struct {
	struct plx_tag *t;
	struct oracle_recv recvs; /* rings with a head */
	struct oracle_msg msgs;
	struct oracle_recv **posted; /* the same, unordered, for random victims */
	struct oracle_msg **kept;
	uint32_t posted_n, kept_n;
	uint64_t faults; /* disagreements */
	const uint64_t *masks;
	uint32_t mask_n;
	uint64_t tag_n; /* size of the key space */
	uint64_t ops;
} o;

static uint64_t
random_tag(void)
{
	uint64_t x = rng() % o.tag_n;

	/* spread over context, rank and tag, as MPI does */
	return (x & 1) << 48 | (x >> 1 & 0x3f) << 32 | x >> 7;
}

static uint64_t
random_mask(void)
{
	/* the first masks more often */
	uint32_t i = rng() % o.mask_n;

	return o.masks[rng() % 2 ? i : RTE_MIN(i, (uint32_t)(rng() % o.mask_n))];
}

static struct oracle_recv *
oracle_match(uint64_t tag)
{
	struct oracle_recv *r;

	for (r = o.recvs.next; r != &o.recvs; r = r->next)
		if (((r->tag ^ tag) & r->mask) == 0)
			return r;
	return NULL;
}

static struct oracle_msg *
oracle_find(uint64_t tag, uint64_t mask)
{
	struct oracle_msg *m;

	for (m = o.msgs.next; m != &o.msgs; m = m->next)
		if (((m->tag ^ tag) & mask) == 0)
			return m;
	return NULL;
}

static void
oracle_recv_remove(struct oracle_recv *r)
{
	uint32_t i;

	r->prev->next = r->next;
	r->next->prev = r->prev;
	for (i = 0; o.posted[i] != r; i++)
		;
	o.posted[i] = o.posted[--o.posted_n];
	memset(r, 0xa5, sizeof(*r)); /* the engine may not look at it any more */
	free(r);
}

static void
oracle_msg_remove(struct oracle_msg *m)
{
	uint32_t i;

	m->prev->next = m->next;
	m->next->prev = m->prev;
	for (i = 0; o.kept[i] != m; i++)
		;
	o.kept[i] = o.kept[--o.kept_n];
	memset(m, 0xa5, sizeof(*m));
	free(m);
}

static void
oracle_take(struct oracle_msg *m)
{
	plx_tag_take(o.t, &m->m);
	oracle_msg_remove(m);
}

/* What a receive does: take the earliest kept message, at once if it is whole, or be posted. */
static void
op_recv(uint64_t tag, uint64_t mask)
{
	struct oracle_msg *want = oracle_find(tag, mask);
	bool whole = want != NULL && want->m.whole;
	struct plx_tag_msg *got = plx_tag_take_whole(o.t, tag, mask);
	struct oracle_recv *r;

	if (got != (whole ? &want->m : NULL)) {
		o.faults++;
		return;
	}
	if (whole) {
		oracle_msg_remove(want);
		return;
	}
	got = plx_tag_find(o.t, tag, mask);
	if (got != (want ? &want->m : NULL)) {
		o.faults++;
		return;
	}
	if (want != NULL) {
		oracle_take(want);
		return;
	}
	r = malloc(sizeof(*r));
	memset(r, 0x5a, sizeof(*r));
	r->tag = tag;
	r->mask = mask;
	r->next = &o.recvs;
	r->prev = o.recvs.prev;
	r->prev->next = r->next->prev = r;
	o.posted[o.posted_n++] = r;
	plx_tag_post(o.t, &r->r, tag, mask);
}

/* What a message does: meet the earliest receive, or be kept. */
static void
op_arrive(uint64_t tag)
{
	struct oracle_recv *want = oracle_match(tag);
	struct plx_tag_recv *peek = plx_tag_peek(o.t, tag);
	struct plx_tag_recv *got = match(o.t, tag);
	struct oracle_msg *m;

	if (got != (want ? &want->r : NULL) || peek != got) {
		o.faults++;
		return;
	}
	if (want != NULL) {
		oracle_recv_remove(want);
		return;
	}
	m = malloc(sizeof(*m));
	memset(m, 0x5a, sizeof(*m));
	m->tag = tag;
	m->m.whole = rng() % 4 != 0;
	m->next = &o.msgs;
	m->prev = o.msgs.prev;
	m->prev->next = m->next->prev = m;
	o.kept[o.kept_n++] = m;
	plx_tag_keep(o.t, &m->m, tag);
}

static void
op_cancel(void)
{
	struct oracle_recv *r;

	if (o.posted_n == 0)
		return;
	r = o.posted[rng() % o.posted_n];
	plx_tag_cancel(o.t, &r->r);
	oracle_recv_remove(r);
}

static void
op_probe(uint64_t tag, uint64_t mask, bool take)
{
	struct oracle_msg *want = oracle_find(tag, mask);

	if (plx_tag_find(o.t, tag, mask) != (want ? &want->m : NULL)) {
		o.faults++;
		return;
	}
	if (want != NULL && take)
		oracle_take(want);
}

static void
oracle_check_walks(void)
{
	struct oracle_recv *r = o.recvs.next;
	struct oracle_msg *m = o.msgs.next;
	struct plx_tag_recv *p;
	struct plx_tag_msg *q;

	for (p = plx_tag_recv_first(o.t); p != NULL; p = plx_tag_recv_next(p), r = r->next)
		if (r == &o.recvs || p != &r->r) {
			o.faults++;
			return;
		}
	for (q = plx_tag_msg_first(o.t); q != NULL; q = plx_tag_msg_next(q), m = m->next)
		if (m == &o.msgs || q != &m->m) {
			o.faults++;
			return;
		}
	o.faults += r != &o.recvs || m != &o.msgs;
	o.faults += plx_tag_stats(o.t)->posted != o.posted_n;
	o.faults += plx_tag_stats(o.t)->kept != o.kept_n;
}

static void
oracle_begin(const uint64_t *masks, uint32_t mask_n, uint64_t tag_n, uint32_t depth_max)
{
	memset(&o, 0, sizeof(o));
	o.t = engine();
	o.recvs.next = o.recvs.prev = &o.recvs;
	o.msgs.next = o.msgs.prev = &o.msgs;
	o.posted = malloc((depth_max + 1) * sizeof(*o.posted));
	o.kept = malloc((depth_max + 1) * sizeof(*o.kept));
	o.masks = masks;
	o.mask_n = mask_n;
	o.tag_n = tag_n;
}

static void
oracle_end(void)
{
	oracle_check_walks();
	CU_ASSERT_EQUAL(o.faults, 0);
	plx_tag_destroy(o.t);
	while (o.posted_n > 0)
		oracle_recv_remove(o.posted[o.posted_n - 1]);
	while (o.kept_n > 0)
		oracle_msg_remove(o.kept[o.kept_n - 1]);
	free(o.posted);
	free(o.kept);
}

/* bias: receives in 100 of receives and messages; the depth drifts to the excess. */
static void
oracle_run(uint32_t ops, uint32_t bias, uint32_t depth_max)
{
	for (uint32_t i = 0; i < ops && o.faults == 0; i++) {
		uint32_t what = rng() % 100;

		if (what < 8)
			op_probe(random_tag(), random_mask(), rng() % 4 == 0);
		else if (what < 12)
			op_cancel();
		else if (what < 14 && o.kept_n > 0)
			oracle_take(o.kept[rng() % o.kept_n]);
		else if (rng() % 100 < bias) {
			if (o.posted_n < depth_max)
				op_recv(random_tag(), random_mask());
		} else if (o.kept_n < depth_max) {
			op_arrive(random_tag());
		}
		o.ops++;
		if (i % 8192 == 0)
			oracle_check_walks();
	}
}

static const uint64_t mpi_masks[] = {EXACT, ANY_SOURCE, ANY_TAG, UINT64_C(0xffff000000000000)};

static void
random_masks(uint64_t *masks, uint32_t n)
{
	masks[0] = EXACT;
	masks[1] = ANY_SOURCE;
	masks[2] = ANY_TAG;
	masks[3] = 0;
	for (uint32_t i = 4; i < n; i++)
		masks[i] = rng() | rng();
}

static void
random_operations_agree_with_lists(void)
{
	static const uint64_t tag_n[] = {6, 200, 1000000};
	static const uint32_t bias[] = {50, 62, 38};
	uint64_t masks[16], ops = 0;

	for (unsigned s = 0; s < seed_n; s++) {
		rng_state = seeds[s];
		for (unsigned k = 0; k < RTE_DIM(tag_n); k++) {
			for (unsigned n = 1; n <= RTE_DIM(masks); n *= 2) {
				random_masks(masks, n);
				oracle_begin(masks, n, tag_n[k], 600);
				for (unsigned b = 0; b < 6; b++)
					oracle_run(5000, bias[b % RTE_DIM(bias)], 600);
				ops += o.ops;
				oracle_end();
			}
		}
	}
	printf("[%" PRIu64 " operations] ", ops);
}

static void
masks_coming_and_going_agree_with_lists(void)
{
	uint64_t masks[16];

	for (unsigned s = 0; s < seed_n; s++) {
		rng_state = seeds[s];
		random_masks(masks, 16);
		oracle_begin(masks, 16, 300, 200);
		for (unsigned epoch = 0; epoch < 100; epoch++) {
			random_masks(masks, 16);
			oracle_run(700, epoch % 2 ? 65 : 35, 200);
		}
		CU_ASSERT(plx_tag_stats(o.t)->residual_posts > 0);
		CU_ASSERT(plx_tag_stats(o.t)->class_recycled > 0);
		CU_ASSERT(plx_tag_stats(o.t)->index_recycled > 0);
		oracle_end();
	}
}

static void
growth_failure_agrees_with_lists(void)
{
	uint64_t masks[12];

	for (unsigned s = 0; s < seed_n; s++) {
		rng_state = seeds[s];
		random_masks(masks, 12);
		oracle_begin(masks, s % 2 ? 12 : 2, 1000000, 400);
		no_memory = true;
		for (unsigned b = 0; b < 6; b++)
			oracle_run(5000, b % 2 ? 70 : 30, 400);
		CU_ASSERT_EQUAL(plx_tag_stats(o.t)->rehashes, 0);
		CU_ASSERT(plx_tag_stats(o.t)->rehash_fails > 0);
		CU_ASSERT(plx_tag_stats(o.t)->residual_posts > 0);
		no_memory = false;
		for (unsigned b = 0; b < 6; b++)
			oracle_run(5000, b % 2 ? 70 : 30, 400);
		CU_ASSERT(plx_tag_stats(o.t)->rehashes > 0);
		oracle_end();
	}
}

/*
 * Deep queues, where plain lists are too slow an oracle: distinct tags, in a
 * permutation, so that each match is known.
 */
static void
deep_posted_queue_grows_and_drains_right(void)
{
	enum { N = 60000 };
	static struct plx_tag_recv r[2 * N];
	struct plx_tag *t = engine();
	uint64_t wrong = 0;

	/* a wildcard for every exact receive of the same tag, posted after it */
	for (uint64_t i = 0; i < N; i++) {
		plx_tag_post(t, &r[2 * i], i << 20 | 1 << 19, EXACT);
		plx_tag_post(t, &r[2 * i + 1], i << 20 | (i & 0xffff), ~UINT64_C(0xfffff));
		if (i % 3 == 2) /* old keys while the table grows */
			wrong += plx_tag_peek(t, i / 2 << 20 | 1 << 19) != &r[i / 2 * 2];
		if (i % 5 == 4) {
			plx_tag_cancel(t, &r[i / 3 * 2]);
			plx_tag_post(t, &r[i / 3 * 2], i / 3 << 20 | 1 << 19, EXACT);
			/* now later than the wildcard */
			wrong += plx_tag_peek(t, i / 3 << 20 | 1 << 19) != &r[i / 3 * 2 + 1];
			plx_tag_cancel(t, &r[i / 3 * 2 + 1]);
			plx_tag_post(t, &r[i / 3 * 2 + 1], i / 3 << 20, ~UINT64_C(0xfffff));
		}
	}
	CU_ASSERT(plx_tag_stats(t)->rehashes >= 20);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->posted_max, 2 * N);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t k = i * 7919 % N;

		wrong += match(t, k << 20 | 1 << 19) != &r[2 * k];
		wrong += match(t, k << 20 | 1 << 19) != &r[2 * k + 1];
		wrong += match(t, k << 20 | 1 << 19) != NULL;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->posted, 0);
	plx_tag_destroy(t);
}

static void
deep_unexpected_queue_grows_and_drains_right(void)
{
	enum { N = 60000 };
	static struct kept m[N];
	struct plx_tag *t = engine();
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < N; i++) {
		plx_tag_keep(t, &m[i].m, i << 32 | i % 1000);
		if (i % 7 == 6) {
			wrong += plx_tag_find(t, i % 1000, 0xffffffff) != &m[i % 1000].m;
			wrong += plx_tag_find(t, i << 32 | i % 1000, EXACT) != &m[i].m;
		}
	}
	for (uint64_t i = 0; i < N / 2; i++) {
		wrong += plx_tag_find(t, i % 1000, 0xffffffff) != &m[i].m;
		plx_tag_take(t, &m[i].m);
	}
	for (uint64_t i = N / 2; i < N; i++) {
		uint64_t k = N / 2 + (i * 7919) % (N / 2);

		wrong += plx_tag_find(t, k << 32 | k % 1000, EXACT) != &m[k].m;
		plx_tag_take(t, &m[k].m);
		wrong += plx_tag_find(t, k << 32 | k % 1000, EXACT) != NULL;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(plx_tag_stats(t)->kept, 0);
	plx_tag_destroy(t);
}

static void
deep_queues_agree_with_lists(void)
{
	for (unsigned s = 0; s < seed_n; s++) {
		rng_state = seeds[s];
		oracle_begin(mpi_masks, 1, UINT64_C(1) << 38, 20000);
		for (unsigned i = 0; i < 6000; i++)
			op_recv(random_tag(), EXACT);
		o.masks = mpi_masks;
		o.mask_n = RTE_DIM(mpi_masks);
		o.tag_n = 4000;
		oracle_run(3000, 90, 20000);
		oracle_run(3000, 10, 20000);
		oracle_end();
	}
}

#define TEST(name)                                                                                 \
	{                                                                                          \
		.pName = #name, .pTestFunc = name                                                  \
	}

static CU_TestInfo order_tests[] = {
	TEST(empty_engine_matches_nothing),
	TEST(create_without_memory_says_so),
	TEST(equal_posts_match_in_post_order),
	TEST(wildcard_takes_earliest_post),
	TEST(bits_outside_the_mask_do_not_matter),
	TEST(peek_removes_nothing),
	TEST(cancel_of_wildcard_leaves_order),
	TEST(cancel_in_the_middle_of_equals_leaves_order),
	TEST(ninth_mask_matches_in_post_order),
	TEST(idle_class_goes_to_a_new_mask),
	TEST(a_few_receives_become_many_and_few_again),
	TEST(arrival_asks_only_masks_with_receives),
	TEST(only_the_earliest_is_taken_and_only_whole),
	TEST(a_match_leaves_the_messages_tag),
	TEST(find_returns_earliest_kept_and_leaves_it),
	TEST(more_masks_than_indexes_find_the_earliest),
	TEST(walk_meets_all_in_order_and_allows_cancel),
	TEST(dump_names_every_counter),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo depth_tests[] = {
	TEST(tags_chosen_to_collide_do_not),
	TEST(cost_in_steps_does_not_follow_depth),
	TEST(an_index_that_nobody_asks_is_left_behind_and_catches_up),
	TEST(never_repeating_tags_do_not_grow_a_table),
	TEST(deep_posted_queue_grows_and_drains_right),
	TEST(deep_unexpected_queue_grows_and_drains_right),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo oracle_tests[] = {
	TEST(random_operations_agree_with_lists),
	TEST(masks_coming_and_going_agree_with_lists),
	TEST(growth_failure_agrees_with_lists),
	TEST(deep_queues_agree_with_lists),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{.pName = "tag order", .pTests = order_tests},
	{.pName = "tag depth", .pTests = depth_tests},
	{.pName = "tag oracle", .pTests = oracle_tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	const char *env = getenv("PLX_TEST_SEED");
	unsigned failures;

	if (env != NULL) {
		env_seed[0] = strtoull(env, NULL, 0);
		seeds = env_seed;
		seed_n = 1;
	}
	for (unsigned i = 0; i < seed_n; i++)
		printf("seed %" PRIu64 "\n", seeds[i]);
	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

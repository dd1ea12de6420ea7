/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_kept.c - unexpected messages, and searches for them
 *
 * Design notes
 * - There is one list of all messages in arrival order, and an index for each mask of recent
 *   searches. An index covers a prefix of that list: the messages up to seq ix->fed; ix->cur is
 *   the first beyond. So a hit in the index is the earliest match, a miss continues at ix->cur
 *   and indexes what it passes, and an index that may not grow, or that restarts for another
 *   mask, is merely slower. Membership is (m->seq <= ix->fed), so a recycled index has nothing to
 *   undo in the messages.
 * - plx_tag_keep() feeds the recently used indexes, so that no single plx_tag_find() has to do it
 *   all.
 */
#include <stdbool.h>

#include <rte_prefetch.h>

#include "tag_int.h"

#define TAG_SCAN_MAX  8     /* unexpected messages that are scanned, whatever the mask */
#define TAG_MSG_LINES 2     /* cache lines of a message that are read, with what embeds it */
#define TAG_FEED_N    2     /* messages indexed by one keep(), so that indexes catch up */
#define TAG_FEED_IDLE 4096  /* keeps and finds after which an unused index is no longer fed, */
#define TAG_OTHER_IDLE 65536 /* and after which another mask may have it */

/* The place of a message in an index. */
static inline struct plx_tag_link *
link_of(const struct tag_index *ix, struct plx_tag_msg *m)
{
	return (struct plx_tag_link *)((uint8_t *)m + ix->at);
}

static inline struct plx_tag_msg *
msg_of(const struct tag_index *ix, struct plx_tag_link *l)
{
	return (struct plx_tag_msg *)((uint8_t *)l - ix->at);
}

/* Index the message at ix->cur; false when the table is full and cannot grow. */
static bool
index_feed(struct tag_index *ix)
{
	struct plx_tag_msg *m = ix->cur;
	struct tag_slot *s = tag_table_put(&ix->table, m->tag & ix->mask);

	if (unlikely(s == NULL))
		return false;
	tag_queue_append(&ix->table, s, link_of(ix, m));
	ix->fed = m->seq;
	ix->cur = TAILQ_NEXT(m, all);
	return true;
}

static inline void
index_remove(struct tag_index *ix, const struct plx_tag_msg *m, struct plx_tag_link *l)
{
	struct tag_slot *s = tag_queue_slot(&ix->table, l, m->tag & ix->mask);

	tag_queue_remove(&ix->table, s, l);
}

static struct plx_tag_msg *
scan(struct plx_tag *t, struct plx_tag_msg *m, uint64_t tag, uint64_t mask)
{
	uint64_t n = 1;

	for (; m != NULL; m = TAILQ_NEXT(m, all), n++)
		if (((m->tag ^ tag) & mask) == 0)
			break;
	PLX_STAT_ADD(t->stat.scanned, n);
	return m;
}

/*
 * An index for a mask that has none. Recycling one restarts it for both masks, so it must
 * be idle, or scans must have cost as much already: NULL until then.
 */
static __rte_noinline __rte_cold struct tag_index *
index_new(struct plx_tag *t, uint64_t mask)
{
	struct tag_index *ix = &t->indexes[0];
	uint32_t i;

	if (t->index_n < PLX_TAG_MAX_INDEXES) {
		ix = &t->indexes[t->index_n++];
		t->stat.indexes = t->index_n;
	} else {
		for (i = 1; i < PLX_TAG_MAX_INDEXES; i++)
			if (t->indexes[i].asked < ix->asked)
				ix = &t->indexes[i];
		if (t->clock - ix->asked < TAG_OTHER_IDLE && t->scan_debt < 4 * t->stat.kept)
			return NULL;
		tag_table_reset(&ix->table);
		PLX_STAT_INC(t->stat.index_recycled);
	}
	t->scan_debt = 0;
	ix->mask = mask;
	ix->fed = 0;
	ix->cur = TAILQ_FIRST(&t->all);
	return ix;
}

static inline struct tag_index *
index_find(struct plx_tag *t, uint64_t mask)
{
	uint32_t i;

	for (i = 0; i < t->index_n; i++)
		if (t->indexes[i].mask == mask)
			return &t->indexes[i];
	return index_new(t, mask);
}

/* It is about to be taken: its lines are fetched together. */
static inline void
msg_ask(const struct plx_tag_msg *m)
{
	for (unsigned i = 0; i < TAG_MSG_LINES; i++)
		rte_prefetch0((const char *)m + i * PLX_LINE);
}

/* The first message in a slot of an index. */
static inline struct plx_tag_msg *
index_first(const struct tag_index *ix, const struct tag_slot *s)
{
	struct plx_tag_msg *m = msg_of(ix, s->head);

	msg_ask(m);
	return m;
}

static struct plx_tag_msg *
index_search(struct plx_tag *t, struct tag_index *ix, uint64_t tag)
{
	struct tag_slot *s = tag_table_get(&ix->table, tag & ix->mask);
	struct plx_tag_msg *m;

	if (s != NULL)
		return index_first(ix, s);
	while ((m = ix->cur) != NULL) {
		PLX_STAT_INC(t->stat.scanned);
		if (unlikely(!index_feed(ix)))
			return scan(t, m, tag, ix->mask);
		if (((m->tag ^ tag) & ix->mask) == 0)
			return m;
	}
	return NULL;
}

static struct plx_tag_msg *
msg_search(struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	uint64_t before = t->stat.scanned;
	struct plx_tag_msg *m;
	struct tag_index *ix;

	t->clock++;
	if (t->stat.kept <= TAG_SCAN_MAX)
		return scan(t, TAILQ_FIRST(&t->all), tag, mask);
	ix = index_find(t, mask);
	if (likely(ix != NULL)) {
		ix->asked = t->clock;
		return index_search(t, ix, tag);
	}
	m = scan(t, TAILQ_FIRST(&t->all), tag, mask);
	t->scan_debt += t->stat.scanned - before;
	return m;
}

static __rte_noinline void
indexes_add(struct plx_tag *t, struct plx_tag_msg *m)
{
	uint32_t i, n;

	for (i = 0; i < t->index_n; i++) {
		struct tag_index *ix = &t->indexes[i];

		if (ix->cur == NULL)
			ix->cur = m;
		if (t->stat.kept <= TAG_SCAN_MAX || t->clock - ix->asked > TAG_FEED_IDLE)
			continue;
		for (n = 0; n < TAG_FEED_N && ix->cur != NULL; n++)
			if (!index_feed(ix))
				break;
	}
}

/* Except from the index that it has left already; NULL: from all. */
static inline void
indexes_remove(struct plx_tag *t, struct plx_tag_msg *m, const struct tag_index *left)
{
	uint32_t i;

	for (i = 0; i < t->index_n; i++) {
		struct tag_index *ix = &t->indexes[i];

		if (ix == left)
			continue;
		if (m->seq <= ix->fed)
			index_remove(ix, m, link_of(ix, m));
		else if (ix->cur == m)
			ix->cur = TAILQ_NEXT(m, all);
	}
}

void
plx_tag_keep(struct plx_tag *t, struct plx_tag_msg *m, uint64_t tag)
{
	m->tag = tag;
	m->seq = ++t->clock;
	TAILQ_INSERT_TAIL(&t->all, m, all);
	PLX_STAT_INC(t->stat.kept);
	if (t->stat.kept > t->stat.kept_max)
		PLX_STAT_INC(t->stat.kept_max);
	if (unlikely(t->index_n != 0))
		indexes_add(t, m);
}

/* The first of a few matches it. */
static inline bool
meets_first(const struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	const struct plx_tag_msg *m = TAILQ_FIRST(&t->all);

	return t->stat.kept <= TAG_SCAN_MAX && m != NULL && ((m->tag ^ tag) & mask) == 0;
}

static inline void
count_find(struct plx_tag *t, const struct plx_tag_msg *m)
{
	PLX_STAT_INC(t->stat.finds);
	if (m != NULL)
		PLX_STAT_INC(t->stat.find_hit);
}

struct plx_tag_msg *
plx_tag_find_kept(struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	struct plx_tag_msg *m = msg_search(t, tag, mask);

	count_find(t, m);
	return m;
}

static inline void
msg_remove(struct plx_tag *t, struct plx_tag_msg *m)
{
	PLX_ASSERT(t->stat.kept > 0);
	PLX_STAT_ADD(t->stat.kept, -1);
	TAILQ_REMOVE(&t->all, m, all);
}

void
plx_tag_take(struct plx_tag *t, struct plx_tag_msg *m)
{
	if (unlikely(t->index_n != 0))
		indexes_remove(t, m, NULL);
	msg_remove(t, m);
}

/* @return the slot of the message that such a receive takes, if an index of that mask has it */
static inline struct tag_slot *
slot_known(struct plx_tag *t, uint64_t tag, uint64_t mask, struct tag_index **out)
{
	if (t->stat.kept <= TAG_SCAN_MAX)
		return NULL;
	for (uint32_t i = 0; i < t->index_n; i++) {
		struct tag_index *ix = &t->indexes[i];

		if (ix->mask == mask) {
			*out = ix;
			return tag_table_get(&ix->table, tag & mask);
		}
	}
	return NULL;
}

/* Take the first message of a slot if it is whole, without a second look-up. */
static inline struct plx_tag_msg *
take_known(struct plx_tag *t, struct tag_index *ix, struct tag_slot *s)
{
	struct plx_tag_msg *m = index_first(ix, s);

	ix->asked = ++t->clock;
	count_find(t, m);
	if (unlikely(!m->whole))
		return NULL;
	(void)tag_queue_pop(&ix->table, s);
	indexes_remove(t, m, ix);
	msg_remove(t, m);
	return m;
}

/* It has to be searched, or other masks were used before. */
static __rte_noinline struct plx_tag_msg *
take_whole_slow(struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	struct tag_index *ix;
	struct tag_slot *s = slot_known(t, tag, mask, &ix);
	struct plx_tag_msg *m;

	if (likely(s != NULL))
		return take_known(t, ix, s);
	m = plx_tag_find(t, tag, mask);
	if (m == NULL || !m->whole)
		return NULL;
	plx_tag_take(t, m);
	return m;
}

struct plx_tag_msg *
plx_tag_take_whole(struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	struct plx_tag_msg *m = TAILQ_FIRST(&t->all);

	if (unlikely(!meets_first(t, tag, mask) || !m->whole || t->index_n != 0))
		return take_whole_slow(t, tag, mask);
	t->clock++;
	PLX_STAT_INC(t->stat.scanned);
	count_find(t, m);
	msg_remove(t, m);
	return m;
}

struct plx_tag_msg *
plx_tag_msg_first(const struct plx_tag *t)
{
	return TAILQ_FIRST(&t->all);
}

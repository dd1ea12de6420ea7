/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag.c - matching of posted receives and arrived messages
 *
 * Design notes
 * - Each mask in use is a class with its table. Order counts over all classes, a slot has that of
 *   its first receive, and an arrival takes the lowest among the classes with receives: post
 *   order. The last byte of an order names the class, so that one store writes both. Receives
 *   without a class (a ninth mask) or slot go to the residual list, which is in post order as
 *   well and is scanned only up to the best match found elsewhere.
 * - Most programs have a few receives posted, or thousands: while there are no more than TAG_FEW
 *   they are in an array, t->few, and in no table. Either all are there or none.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "tag_int.h"

static_assert(sizeof(struct plx_tag_recv) <= 64, "a line of the request");
static_assert(sizeof(struct plx_tag_msg) <= 72, "a line, and a word of the next");
static_assert(offsetof(struct tag_class, table.old_shift) < PLX_LINE, "a look-up reads line 0");
static_assert(offsetof(struct plx_tag_stat, probes) < PLX_LINE, "each match counts in line 0");
static_assert(offsetof(struct plx_tag, stat) == 0, "plx_tag_stats() is inline");
static_assert(TAG_CLASS_FEW < TAG_ORDER_ONE, "a class stands below the order");

#define ROW(field) PLX_STAT_ROW(struct plx_tag_stat, field)
#define GAUGE(field) PLX_STAT_GAUGE(struct plx_tag_stat, field)

const struct plx_stat_row plx_tag_stat_rows[] = {
	GAUGE(posted), GAUGE(posted_max), GAUGE(kept), GAUGE(kept_max), ROW(match_hit),
	ROW(match_miss), ROW(probes), ROW(cancels), ROW(consumed), ROW(finds), ROW(find_hit),
	GAUGE(classes), ROW(class_recycled), GAUGE(residual), ROW(residual_posts),
	ROW(residual_seen), GAUGE(indexes), ROW(index_recycled), ROW(scanned), ROW(rehashes),
	ROW(rehash_fails),
	PLX_STAT_END,
};

/* PLX_TAG_MAX_CLASSES: residual; TAG_CLASS_FEW: in few. */
static inline uint32_t
recv_class(const struct plx_tag_recv *r)
{
	return r->order % TAG_ORDER_ONE;
}

static inline void
recv_class_set(struct plx_tag_recv *r, uint32_t i)
{
	r->order += (uint64_t)i - recv_class(r);
}

/* A class for a mask that had none; NULL when all are in use. */
static __rte_noinline __rte_cold struct tag_class *
class_new(struct plx_tag *t, uint64_t mask)
{
	struct tag_class *c = NULL;
	uint32_t i;

	if (t->class_n < PLX_TAG_MAX_CLASSES) {
		c = &t->classes[t->class_n++];
		t->stat.classes = t->class_n;
	} else {
		for (i = 0; i < PLX_TAG_MAX_CLASSES; i++)
			if (t->classes[i].n == 0 && (c == NULL || t->classes[i].asked < c->asked))
				c = &t->classes[i];
		if (c == NULL)
			return NULL;
		tag_table_reset(&c->table);
		PLX_STAT_INC(t->stat.class_recycled);
	}
	c->mask = mask;
	return c;
}

static __rte_noinline struct tag_class *
class_find(struct plx_tag *t, uint64_t mask)
{
	struct tag_class *c;
	uint32_t i;

	for (i = 0; i < t->class_n; i++)
		if (t->classes[i].mask == mask)
			break;
	c = i < t->class_n ? &t->classes[i] : class_new(t, mask);
	if (c != NULL)
		t->class_last = c - t->classes;
	return c;
}

static __rte_noinline __rte_cold void
residual_post(struct plx_tag *t, struct plx_tag_recv *r)
{
	recv_class_set(r, PLX_TAG_MAX_CLASSES);
	TAILQ_INSERT_TAIL(&t->residual, r, residual);
	PLX_STAT_INC(t->stat.residual);
	PLX_STAT_INC(t->stat.residual_posts);
}

/* The first match in the residual list that was posted before order, or NULL. */
static __rte_noinline __rte_cold struct plx_tag_recv *
residual_search(struct plx_tag *t, uint64_t tag, uint64_t order)
{
	struct plx_tag_recv *r;

	TAILQ_FOREACH(r, &t->residual, residual)
	{
		if (r->order >= order)
			return NULL;
		PLX_STAT_INC(t->stat.residual_seen);
		if ((tag & r->mask) == r->tag)
			return r;
	}
	return NULL;
}

static void
residual_remove(struct plx_tag *t, struct plx_tag_recv *r)
{
	TAILQ_REMOVE(&t->residual, r, residual);
	PLX_STAT_ADD(t->stat.residual, -1);
}

static inline bool
few_meets(const struct tag_few *f, uint64_t tag)
{
	return ((tag ^ f->tag) & f->mask) == 0;
}

static inline struct plx_tag_recv *
few_search(const struct plx_tag *t, uint64_t tag, uint32_t *at)
{
	uint32_t i;

	for (i = 0; i < t->few_n; i++) {
		if (few_meets(&t->few[i], tag)) {
			*at = i;
			return t->few[i].r;
		}
	}
	return NULL;
}

static inline void
few_remove(struct plx_tag *t, uint32_t at)
{
	t->few_n--;
	for (; at < t->few_n; at++)
		t->few[at] = t->few[at + 1];
}

static void
few_cancel(struct plx_tag *t, const struct plx_tag_recv *r)
{
	uint32_t i = 0;

	while (t->few[i].r != r)
		i++;
	PLX_ASSERT(i < t->few_n);
	few_remove(t, i);
}

/* The earliest posted match, and its slot (NULL: it is residual); few is empty. */
static inline struct plx_tag_recv *
recv_search(struct plx_tag *t, uint64_t tag, struct tag_slot **slot)
{
	uint64_t seq = UINT64_MAX;
	struct tag_slot *best = NULL;
	struct plx_tag_recv *r;
	uint32_t live, n = 0;

	for (live = t->live; live != 0; live &= live - 1, n++) {
		struct tag_class *c = &t->classes[__builtin_ctz(live)];
		struct tag_slot *s = tag_table_get(&c->table, tag & c->mask);

		if (s != NULL && s->seq < seq) {
			best = s;
			seq = s->seq;
		}
	}
	PLX_STAT_ADD(t->stat.probes, n);
	if (unlikely(!TAILQ_EMPTY(&t->residual))) {
		r = residual_search(t, tag, seq);
		if (r != NULL) {
			*slot = NULL;
			return r;
		}
	}
	*slot = best;
	return best != NULL ? recv_of(best->head) : NULL;
}

/* A class has become empty. */
static inline void
class_rest(struct plx_tag *t, struct tag_class *c)
{
	c->asked = t->order;
	t->live &= ~(1u << (c - t->classes));
}

static inline void
class_leave(struct plx_tag *t, struct tag_class *c)
{
	if (--c->n == 0)
		class_rest(t, c);
}

static inline void
recv_remove(struct plx_tag *t, struct plx_tag_recv *r, struct tag_slot *s)
{
	struct tag_class *c = &t->classes[recv_class(r)];

	PLX_ASSERT(c->n > 0 && c->mask == r->mask);
	tag_queue_remove(&c->table, s, &r->link);
	if (r->link.prev == NULL && r->link.next != NULL)
		s->seq = recv_of(r->link.next)->order;
	class_leave(t, c);
}

/* It is matched after the next one: prefetch its memory meanwhile. */
static inline void
recv_ask(struct plx_tag_link *l)
{
	const char *r = (const char *)recv_of(l);

	rte_prefetch0(r - PLX_LINE); /* the request that embeds it */
	rte_prefetch0(r);
}

/* The same for a receive that has matched: it is the first in its queue. */
static inline void
recv_pop(struct plx_tag *t, struct tag_class *c, struct tag_slot *s)
{
	struct plx_tag_link *next;

	PLX_ASSERT(c->n > 0 && c->mask == recv_of(s->head)->mask);
	next = tag_queue_pop(&c->table, s);
	if (next != NULL) {
		s->seq = recv_of(next)->order;
		if (next->next != NULL)
			recv_ask(next->next);
	}
	class_leave(t, c);
}

/* Bytes from a kept message to its link of index i. */
static size_t
link_at(const struct plx_tag *t, uint32_t i)
{
	if (i < PLX_TAG_NEAR_INDEXES)
		return offsetof(struct plx_tag_msg, link) + i * sizeof(struct plx_tag_link);
	return t->far_at + (i - PLX_TAG_NEAR_INDEXES) * sizeof(struct plx_tag_link);
}

static void
init(struct plx_tag *t, uint64_t seed, size_t far_at)
{
	uint32_t i;

	memset(t, 0, sizeof(*t));
	t->seed = seed;
	t->far_at = far_at;
	TAILQ_INIT(&t->residual);
	TAILQ_INIT(&t->all);
	for (i = 0; i < PLX_TAG_MAX_CLASSES; i++)
		tag_table_init(&t->classes[i].table, t->first[i], seed | 1, &t->stat);
	for (i = 0; i < PLX_TAG_MAX_INDEXES; i++) {
		tag_table_init(&t->indexes[i].table, t->first[PLX_TAG_MAX_CLASSES + i], seed | 1,
			&t->stat);
		t->indexes[i].at = link_at(t, i);
	}
	class_find(t, UINT64_MAX); /* post() may then rely on class_last */
}

int
plx_tag_create(uint64_t seed, size_t far_at, struct plx_tag **out)
{
	struct plx_tag *t = aligned_alloc(PLX_LINE, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	init(t, seed, far_at);
	*out = t;
	return 0;
}

void
plx_tag_forget(struct plx_tag *t)
{
	init(t, t->seed, t->far_at);
}

void
plx_tag_destroy(struct plx_tag *t)
{
	uint32_t i;

	if (t == NULL)
		return;
	for (i = 0; i < PLX_TAG_MAX_CLASSES; i++)
		tag_table_fini(&t->classes[i].table);
	for (i = 0; i < PLX_TAG_MAX_INDEXES; i++)
		tag_table_fini(&t->indexes[i].table);
	free(t);
}

/* Append to the receives of class i, in the slot of its tag. */
static inline void
slot_post(struct plx_tag *t, uint32_t i, struct tag_slot *s, struct plx_tag_recv *r, uint64_t order)
{
	struct tag_class *c = &t->classes[i];

	r->order = order + i;
	if (s->head == NULL)
		s->seq = order + i;
	tag_queue_append(&c->table, s, &r->link);
	if (c->n++ == 0)
		t->live |= 1u << i;
}

static __rte_noinline void
table_post_slow(struct plx_tag *t, struct plx_tag_recv *r)
{
	struct tag_class *c = &t->classes[t->class_last];
	struct tag_slot *s;

	if (unlikely(c->mask != r->mask))
		c = class_find(t, r->mask);
	s = likely(c != NULL) ? tag_table_put(&c->table, r->tag) : NULL;
	if (unlikely(s == NULL))
		residual_post(t, r);
	else
		slot_post(t, c - t->classes, s, r, r->order - recv_class(r));
}

/* One more than a few: move all into the tables, in post order. */
static __rte_noinline void
few_spill(struct plx_tag *t, struct plx_tag_recv *r)
{
	uint32_t i;

	for (i = 0; i < t->few_n; i++)
		table_post_slow(t, t->few[i].r);
	t->few_n = 0;
	table_post_slow(t, r);
}

/* It is posted after all others. @return its order */
static inline uint64_t
recv_init(struct plx_tag *t, struct plx_tag_recv *r, uint64_t tag, uint64_t mask, uint32_t class)
{
	uint64_t order = t->order + TAG_ORDER_ONE, posted = t->stat.posted;

	t->order = order;
	r->tag = tag;
	r->mask = mask;
	r->order = order + class;
	PLX_STAT_INC(t->stat.posted);
	if (unlikely(posted >= t->stat.posted_max))
		PLX_STAT_INC(t->stat.posted_max);
	return order;
}

static __rte_noinline void
table_post(struct plx_tag *t, struct plx_tag_recv *r, uint64_t tag, uint64_t mask)
{
	uint64_t order = recv_init(t, r, tag, mask, 0);
	uint32_t i = t->class_last;
	struct tag_class *c = &t->classes[i];
	struct tag_slot *s;

	if (unlikely(t->few_n != 0)) {
		few_spill(t, r);
		return;
	}
	if (c->mask == mask) {
		s = tag_slot_guess(&c->table, tag_hash(&c->table, tag));
		if (likely(s->key == tag && s->seq != 0 && c->table.old == NULL)) {
			slot_post(t, i, s, r, order);
			return;
		}
	}
	table_post_slow(t, r);
}

/*
 * The common paths, with no more than a few receives or with one mask, call nothing: so
 * they save no registers.
 */
void
plx_tag_post(struct plx_tag *t, struct plx_tag_recv *r, uint64_t tag, uint64_t mask)
{
	uint32_t n = t->few_n;

	tag &= mask;
	if (unlikely(n != t->stat.posted || n >= TAG_FEW)) {
		table_post(t, r, tag, mask);
		return;
	}
	(void)recv_init(t, r, tag, mask, TAG_CLASS_FEW);
	t->few[n].tag = tag;
	t->few[n].mask = mask;
	t->few[n].r = r;
	t->few_n = n + 1;
}

/* The receive belongs to the caller again, with the tag of its message. */
static inline struct plx_tag_recv *
matched(struct plx_tag *t, struct plx_tag_recv *r, uint64_t tag)
{
	PLX_STAT_INC(t->stat.match_hit);
	PLX_STAT_ADD(t->stat.posted, -1);
	r->tag = tag;
	return r;
}

static __rte_noinline struct plx_tag_recv *
match_none(struct plx_tag *t, uint64_t tag)
{
	PLX_STAT_INC(t->stat.match_miss);
	t->missed = tag;
	return NULL;
}

static __rte_noinline struct plx_tag_recv *
match_few(struct plx_tag *t, uint64_t tag)
{
	struct plx_tag_recv *r;
	uint32_t at;

	r = few_search(t, tag, &at);
	if (r == NULL)
		return match_none(t, tag);
	few_remove(t, at);
	return matched(t, r, tag);
}

/* With several masks, or none. */
static __rte_noinline struct plx_tag_recv *
match_any(struct plx_tag *t, uint64_t tag)
{
	struct tag_slot *s;
	struct plx_tag_recv *r = recv_search(t, tag, &s);

	if (r == NULL)
		return match_none(t, tag);
	if (likely(s != NULL))
		recv_pop(t, &t->classes[recv_class(r)], s);
	else
		residual_remove(t, r);
	return matched(t, r, tag);
}

static inline bool
is_one_mask(const struct plx_tag *t)
{
	return t->live != 0 && (t->live & (t->live - 1)) == 0 && likely(TAILQ_EMPTY(&t->residual));
}

/* With one mask. */
static inline struct plx_tag_recv *
match_one(struct plx_tag *t, uint64_t tag)
{
	struct tag_class *c = &t->classes[__builtin_ctz(t->live)];
	uint64_t key = tag & c->mask;
	struct tag_slot *s = tag_slot_guess(&c->table, tag_hash(&c->table, key));
	struct plx_tag_recv *r;

	if (unlikely(s->key != key || s->head == NULL)) /* it is not in the usual place */
		return match_any(t, tag);
	PLX_STAT_INC(t->stat.probes);
	r = recv_of(s->head);
	recv_pop(t, c, s);
	return matched(t, r, tag);
}

struct plx_tag_recv *
plx_tag_match(struct plx_tag *t, uint64_t tag)
{
	if (t->few_n == 1 && few_meets(&t->few[0], tag)) { /* a program that waits for each answer */
		t->few_n = 0;
		return matched(t, t->few[0].r, tag);
	}
	if (t->few_n != 0)
		return match_few(t, tag);
	return likely(is_one_mask(t)) ? match_one(t, tag) : match_any(t, tag);
}

uint64_t
plx_tag_missed(const struct plx_tag *t)
{
	return t->missed;
}

struct plx_tag_recv *
plx_tag_peek(struct plx_tag *t, uint64_t tag)
{
	struct tag_slot *s;
	uint32_t at;

	return t->few_n != 0 ? few_search(t, tag, &at) : recv_search(t, tag, &s);
}

void
plx_tag_prefetch(const struct plx_tag *t, uint64_t tag)
{
	uint32_t live;

	for (live = t->live; live != 0; live &= live - 1) {
		const struct tag_class *c = &t->classes[__builtin_ctz(live)];

		rte_prefetch0(&c->table.slots[tag_hash(&c->table, tag & c->mask) >> c->table.shift]);
	}
}

const struct plx_tag_recv *
plx_tag_guess(const struct plx_tag *t, uint64_t tag)
{
	const struct tag_slot *best = NULL;
	uint32_t live, at;

	if (t->few_n != 0)
		return few_search(t, tag, &at);
	for (live = t->live; live != 0; live &= live - 1) {
		const struct tag_class *c = &t->classes[__builtin_ctz(live)];
		uint64_t key = tag & c->mask;
		const struct tag_slot *s = &c->table.slots[tag_hash(&c->table, key) >> c->table.shift];

		if (s->key == key && s->head != NULL && (best == NULL || s->seq < best->seq))
			best = s;
	}
	return best != NULL ? recv_of(best->head) : NULL;
}

static void
recv_unlink(struct plx_tag *t, struct plx_tag_recv *r)
{
	PLX_ASSERT(t->stat.posted > 0 && recv_class(r) <= TAG_CLASS_FEW);
	PLX_STAT_ADD(t->stat.posted, -1);
	if (recv_class(r) == TAG_CLASS_FEW) {
		few_cancel(t, r);
		return;
	}
	if (unlikely(recv_class(r) == PLX_TAG_MAX_CLASSES)) {
		residual_remove(t, r);
		return;
	}
	recv_remove(t, r, tag_queue_slot(&t->classes[recv_class(r)].table, &r->link, r->tag));
}

void
plx_tag_cancel(struct plx_tag *t, struct plx_tag_recv *r)
{
	recv_unlink(t, r);
	PLX_STAT_INC(t->stat.cancels);
}

void
plx_tag_consume(struct plx_tag *t, struct plx_tag_recv *r)
{
	recv_unlink(t, r);
	PLX_STAT_INC(t->stat.consumed);
}

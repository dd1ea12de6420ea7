/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag.c - posted receives meet arrived messages
 *
 * Design notes
 *
 * Posted receives. Each mask in use is a class with its table. Order counts over
 * all classes, a slot carries that of its first receive, and an arrival takes the
 * lowest among the classes with receives: post order. The last byte of an order
 * names the class, so that both are stored at once. What
 * finds no class (a ninth mask) or no slot goes to the residual list, which is
 * in post order as well and is scanned only up to the best found elsewhere.
 * Most programs have a few receives posted, or thousands: while there are no
 * more than TAG_FEW they stand in an array, t->few, and in no table. Either all
 * are there or none.
 *
 * Kept messages. One list of all in arrival order, and an index for each mask
 * that receives ask with. An index holds a prefix of that list: the messages up
 * to seq ix->fed; ix->cur is the first beyond. So a hit in the index is the
 * earliest match, a miss goes on at ix->cur and indexes what it passes, and an
 * index that may not grow, or that begins anew for another mask, is merely
 * slower. Membership is (m->seq <= ix->fed), so a recycled index has nothing to
 * undo in the messages. plx_tag_keep() feeds the indexes that were asked lately,
 * lest one plx_tag_find() have all to do.
 */
#include "plx_tag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "plx_assert.h"
#include "tag_table.h"

#define TAG_FEW       4     /* posted receives that need no table */
#define TAG_CLASS_FEW (PLX_TAG_MAX_CLASSES + 1) /* the class of those */
#define TAG_ORDER_ONE 256 /* below it is the class */
#define TAG_SCAN_MAX  8     /* kept messages that are scanned, whatever the mask */
#define TAG_FEED_N    2     /* messages indexed by one keep(), so that indexes catch up */
#define TAG_FEED_IDLE 65536 /* keeps and finds after which an unasked index starves */
#define TAG_WALK_BINS 48    /* log2 of the most receives a walk can sort */

/* Posted receives with one mask. */
struct tag_class {
	/* line 0: read and written by every post and match */
	alignas(PLX_LINE) uint64_t mask;
	uint64_t asked; /* order when it was last emptied: which to recycle */
	uint64_t n;     /* receives */
	struct tag_table table;
};

/* Kept messages by one mask. */
struct tag_index {
	alignas(PLX_LINE) uint64_t mask;
	uint64_t fed;            /* messages up to this seq are in the table */
	struct plx_tag_msg *cur; /* the first that is not, or NULL */
	uint64_t asked;          /* clock of the last find: which to recycle */
	struct tag_table table;
};

/* One of a few posted receives. */
struct tag_few {
	uint64_t tag;
	uint64_t mask;
	struct plx_tag_recv *r;
};

TAILQ_HEAD(tag_residual, plx_tag_recv);
TAILQ_HEAD(tag_all, plx_tag_msg);

/* Owner: the worker's thread. */
struct plx_tag {
	alignas(PLX_LINE) struct plx_tag_stat stat; /* first: plx_tag_stats() */
	/* posted receives */
	alignas(PLX_LINE) uint64_t order; /* of the last post */
	uint32_t live;                    /* bit i: classes[i] has receives */
	uint32_t class_n;
	uint32_t class_last; /* that of the last post */
	uint32_t index_n;
	struct tag_residual residual;
	uint32_t few_n; /* not 0: all posted receives are in few, in post order */
	struct tag_few few[TAG_FEW];
	/* kept messages */
	uint64_t clock; /* keeps and finds; the seq of messages */
	struct tag_all all;
	uint64_t scan_debt; /* steps of scans that an index would have saved */

	struct tag_class classes[PLX_TAG_MAX_CLASSES];
	struct tag_index indexes[PLX_TAG_MAX_INDEXES];
	alignas(PLX_LINE) struct tag_slot
		first[PLX_TAG_MAX_CLASSES + PLX_TAG_MAX_INDEXES][TAG_FIRST_N];
};

static_assert(sizeof(struct plx_tag_recv) <= 64, "a line of the request");
static_assert(sizeof(struct plx_tag_msg) <= 128, "two lines of the kept message");
static_assert(offsetof(struct tag_class, table.old_shift) < PLX_LINE, "a look-up reads line 0");
static_assert(offsetof(struct plx_tag_stat, probes) < PLX_LINE, "each match counts in line 0");
static_assert(offsetof(struct plx_tag, stat) == 0, "plx_tag_stats() is inline");
static_assert(TAG_CLASS_FEW < TAG_ORDER_ONE, "a class stands below the order");

const struct plx_stat_row plx_tag_stat_rows[] = {
	PLX_STAT_ROW(struct plx_tag_stat, posted),
	PLX_STAT_ROW(struct plx_tag_stat, posted_max),
	PLX_STAT_ROW(struct plx_tag_stat, kept),
	PLX_STAT_ROW(struct plx_tag_stat, kept_max),
	PLX_STAT_ROW(struct plx_tag_stat, match_hit),
	PLX_STAT_ROW(struct plx_tag_stat, match_miss),
	PLX_STAT_ROW(struct plx_tag_stat, probes),
	PLX_STAT_ROW(struct plx_tag_stat, cancels),
	PLX_STAT_ROW(struct plx_tag_stat, consumed),
	PLX_STAT_ROW(struct plx_tag_stat, finds),
	PLX_STAT_ROW(struct plx_tag_stat, find_hit),
	PLX_STAT_ROW(struct plx_tag_stat, classes),
	PLX_STAT_ROW(struct plx_tag_stat, class_recycled),
	PLX_STAT_ROW(struct plx_tag_stat, residual),
	PLX_STAT_ROW(struct plx_tag_stat, residual_posts),
	PLX_STAT_ROW(struct plx_tag_stat, residual_seen),
	PLX_STAT_ROW(struct plx_tag_stat, indexes),
	PLX_STAT_ROW(struct plx_tag_stat, index_recycled),
	PLX_STAT_ROW(struct plx_tag_stat, scanned),
	PLX_STAT_ROW(struct plx_tag_stat, rehashes),
	PLX_STAT_ROW(struct plx_tag_stat, rehash_fails),
	PLX_STAT_END,
};

static inline struct plx_tag_recv *
recv_of(struct plx_tag_link *l)
{
	return container_of(l, struct plx_tag_recv, link);
}

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

static inline struct plx_tag_recv *
few_search(const struct plx_tag *t, uint64_t tag, uint32_t *at)
{
	uint32_t i;

	for (i = 0; i < t->few_n; i++) {
		if (((tag ^ t->few[i].tag) & t->few[i].mask) == 0) {
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

/* The earliest posted match, and its slot (NULL: it is residual); none are few. */
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

/* The same of a receive that has matched: it is the first in its queue. */
static inline void
recv_pop(struct plx_tag *t, struct tag_class *c, struct tag_slot *s)
{
	struct plx_tag_link *next;

	PLX_ASSERT(c->n > 0 && c->mask == recv_of(s->head)->mask);
	next = tag_queue_pop(&c->table, s);
	if (next != NULL)
		s->seq = recv_of(next)->order;
	class_leave(t, c);
}

int
plx_tag_create(struct plx_tag **out)
{
	struct plx_tag *t = aligned_alloc(PLX_LINE, sizeof(*t));
	uint32_t i;

	if (t == NULL)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	TAILQ_INIT(&t->residual);
	TAILQ_INIT(&t->all);
	for (i = 0; i < PLX_TAG_MAX_CLASSES; i++)
		tag_table_init(&t->classes[i].table, t->first[i], &t->stat);
	for (i = 0; i < PLX_TAG_MAX_INDEXES; i++)
		tag_table_init(&t->indexes[i].table, t->first[PLX_TAG_MAX_CLASSES + i], &t->stat);
	class_find(t, UINT64_MAX); /* post() may then trust class_last */
	*out = t;
	return 0;
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

/* Behind the other receives of class i, in the slot of its tag. */
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

/* There is one more than a few: into the tables, in post order. */
static __rte_noinline void
few_spill(struct plx_tag *t, struct plx_tag_recv *r)
{
	uint32_t i;

	for (i = 0; i < t->few_n; i++)
		table_post_slow(t, t->few[i].r);
	t->few_n = 0;
	table_post_slow(t, r);
}

/*
 * The paths that most programs take, with no more than a few receives or with one mask, call
 * nothing: so they save no registers.
 */
void
plx_tag_post(struct plx_tag *t, struct plx_tag_recv *r, uint64_t tag, uint64_t mask)
{
	uint64_t order = t->order + TAG_ORDER_ONE, posted = t->stat.posted;
	uint32_t i = t->class_last, few_n = t->few_n;
	struct tag_class *c = &t->classes[i];
	struct tag_slot *s;

	tag &= mask;
	t->order = order;
	r->tag = tag;
	r->mask = mask;
	r->order = order;
	PLX_STAT_INC(t->stat.posted);
	if (unlikely(posted >= t->stat.posted_max))
		PLX_STAT_INC(t->stat.posted_max);
	if (few_n == posted && likely(few_n < TAG_FEW)) {
		r->order = order + TAG_CLASS_FEW;
		t->few[few_n] = (struct tag_few){tag, mask, r};
		t->few_n = few_n + 1;
		return;
	}
	if (unlikely(few_n != 0)) {
		few_spill(t, r);
		return;
	}
	if (c->mask == mask) {
		s = tag_slot_guess(&c->table, tag_hash(tag));
		if (likely(s->key == tag && s->seq != 0 && c->table.old == NULL)) {
			slot_post(t, i, s, r, order);
			return;
		}
	}
	table_post_slow(t, r);
}

static inline void
count_match(struct plx_tag *t)
{
	PLX_STAT_INC(t->stat.match_hit);
	PLX_STAT_ADD(t->stat.posted, -1);
}

static __rte_noinline struct plx_tag_recv *
match_few(struct plx_tag *t, uint64_t tag)
{
	struct plx_tag_recv *r;
	uint32_t at;

	r = few_search(t, tag, &at);
	if (r == NULL) {
		PLX_STAT_INC(t->stat.match_miss);
		return NULL;
	}
	count_match(t);
	few_remove(t, at);
	return r;
}

/* With several masks, or none. */
static __rte_noinline struct plx_tag_recv *
match_any(struct plx_tag *t, uint64_t tag)
{
	struct tag_slot *s;
	struct plx_tag_recv *r = recv_search(t, tag, &s);

	if (r == NULL) {
		PLX_STAT_INC(t->stat.match_miss);
		return NULL;
	}
	count_match(t);
	if (likely(s != NULL))
		recv_pop(t, &t->classes[recv_class(r)], s);
	else
		residual_remove(t, r);
	return r;
}

struct plx_tag_recv *
plx_tag_match(struct plx_tag *t, uint64_t tag)
{
	uint32_t live = t->live;
	struct plx_tag_recv *r;
	struct tag_class *c;
	struct tag_slot *s;
	uint64_t key;

	if (t->few_n != 0)
		return match_few(t, tag);
	if (live == 0 || (live & (live - 1)) != 0 || unlikely(!TAILQ_EMPTY(&t->residual)))
		return match_any(t, tag);
	/* one mask, and its tag stands where most do */
	c = &t->classes[__builtin_ctz(live)];
	key = tag & c->mask;
	s = tag_slot_guess(&c->table, tag_hash(key));
	if (unlikely(s->key != key || s->head == NULL))
		return match_any(t, tag);
	PLX_STAT_INC(t->stat.probes);
	count_match(t);
	r = recv_of(s->head);
	recv_pop(t, c, s);
	return r;
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

		rte_prefetch0(&c->table.slots[tag_hash(tag & c->mask) >> c->table.shift]);
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
		const struct tag_slot *s = &c->table.slots[tag_hash(key) >> c->table.shift];

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

/* Index the message at ix->cur; false when the table is full and cannot grow. */
static bool
index_feed(struct plx_tag *t, struct tag_index *ix)
{
	struct plx_tag_msg *m = ix->cur;
	struct tag_slot *s = tag_table_put(&ix->table, m->tag & ix->mask);

	if (unlikely(s == NULL))
		return false;
	tag_queue_append(&ix->table, s, &m->link[ix - t->indexes]);
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
 * An index for a mask that has none. Taking one from another mask costs both a
 * new start, so it must be idle, or scans must have cost as much already: NULL
 * until then.
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
		if (t->clock - ix->asked < TAG_FEED_IDLE && t->scan_debt < 4 * t->stat.kept)
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

static struct plx_tag_msg *
index_search(struct plx_tag *t, struct tag_index *ix, uint64_t tag)
{
	struct tag_slot *s = tag_table_get(&ix->table, tag & ix->mask);
	uint32_t i = ix - t->indexes;
	struct plx_tag_msg *m;

	if (s != NULL)
		return container_of(s->head - i, struct plx_tag_msg, link[0]);
	while ((m = ix->cur) != NULL) {
		PLX_STAT_INC(t->stat.scanned);
		if (unlikely(!index_feed(t, ix)))
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

void
plx_tag_keep(struct plx_tag *t, struct plx_tag_msg *m, uint64_t tag)
{
	uint32_t i, n;

	m->tag = tag;
	m->seq = ++t->clock;
	TAILQ_INSERT_TAIL(&t->all, m, all);
	PLX_STAT_INC(t->stat.kept);
	if (t->stat.kept > t->stat.kept_max)
		PLX_STAT_INC(t->stat.kept_max);
	for (i = 0; i < t->index_n; i++) {
		struct tag_index *ix = &t->indexes[i];

		if (ix->cur == NULL)
			ix->cur = m;
		if (t->stat.kept <= TAG_SCAN_MAX || t->clock - ix->asked > TAG_FEED_IDLE)
			continue;
		for (n = 0; n < TAG_FEED_N && ix->cur != NULL; n++)
			if (!index_feed(t, ix))
				break;
	}
}

struct plx_tag_msg *
plx_tag_find_kept(struct plx_tag *t, uint64_t tag, uint64_t mask)
{
	struct plx_tag_msg *m = msg_search(t, tag, mask);

	PLX_STAT_INC(t->stat.finds);
	if (m != NULL)
		PLX_STAT_INC(t->stat.find_hit);
	return m;
}

void
plx_tag_take(struct plx_tag *t, struct plx_tag_msg *m)
{
	uint32_t i;

	PLX_ASSERT(t->stat.kept > 0);
	for (i = 0; i < t->index_n; i++) {
		struct tag_index *ix = &t->indexes[i];

		if (m->seq <= ix->fed)
			index_remove(ix, m, &m->link[i]);
		else if (ix->cur == m)
			ix->cur = TAILQ_NEXT(m, all);
	}
	TAILQ_REMOVE(&t->all, m, all);
	PLX_STAT_ADD(t->stat.kept, -1);
}

static struct plx_tag_recv *
walk_merge(struct plx_tag_recv *a, struct plx_tag_recv *b)
{
	struct plx_tag_recv *head = NULL;
	struct plx_tag_recv **end = &head;

	while (a != NULL && b != NULL) {
		struct plx_tag_recv **low = a->order < b->order ? &a : &b;

		*end = *low;
		end = &(*low)->walk;
		*low = *end;
	}
	*end = a != NULL ? a : b;
	return head;
}

/* bins[i] is NULL or a sorted list of 2^i receives: a merge sort fed one by one. */
static void
walk_add(struct plx_tag_recv **bins, struct plx_tag_recv *r)
{
	r->walk = NULL;
	for (; *bins != NULL; bins++) {
		r = walk_merge(*bins, r);
		*bins = NULL;
	}
	*bins = r;
}

static void
walk_slots(struct plx_tag_recv **bins, struct tag_slot *slots, uint8_t shift)
{
	uint32_t i, n = slots == NULL ? 0 : tag_slots_n(shift);
	struct plx_tag_link *l;

	for (i = 0; i < n; i++)
		for (l = slots[i].head; l != NULL; l = l->next)
			walk_add(bins, recv_of(l));
}

struct plx_tag_recv *
plx_tag_recv_first(struct plx_tag *t)
{
	struct plx_tag_recv *bins[TAG_WALK_BINS] = {NULL};
	struct plx_tag_recv *r, *head = NULL;
	uint32_t i;

	for (i = 0; i < t->class_n; i++) {
		walk_slots(bins, t->classes[i].table.slots, t->classes[i].table.shift);
		walk_slots(bins, t->classes[i].table.old, t->classes[i].table.old_shift);
	}
	TAILQ_FOREACH(r, &t->residual, residual)
	{
		walk_add(bins, r);
	}
	for (i = 0; i < t->few_n; i++)
		walk_add(bins, t->few[i].r);
	for (i = 0; i < TAG_WALK_BINS; i++)
		head = walk_merge(bins[i], head);
	return head;
}

struct plx_tag_msg *
plx_tag_msg_first(const struct plx_tag *t)
{
	return TAILQ_FIRST(&t->all);
}

static void
table_dump(FILE *f, const char *what, uint64_t mask, const struct tag_table *tb)
{
	fprintf(f, "  %s mask 0x%016" PRIx64 " keys %" PRIu32 " slots %" PRIu32 "%s\n", what, mask,
		tb->live, tag_slots_n(tb->shift), tb->old != NULL ? " growing" : "");
}

void
plx_tag_dump(FILE *f, const struct plx_tag *t)
{
	const struct plx_stat_row *row;
	uint32_t i;

	fprintf(f, "tag\n");
	for (i = 0; i < t->class_n; i++)
		table_dump(f, "class", t->classes[i].mask, &t->classes[i].table);
	for (i = 0; i < t->index_n; i++)
		table_dump(f, "index", t->indexes[i].mask, &t->indexes[i].table);
	for (row = plx_tag_stat_rows; row->name != NULL; row++)
		fprintf(f, "  %s %" PRIu64 "\n", row->name, plx_stat_read(&t->stat, row));
}

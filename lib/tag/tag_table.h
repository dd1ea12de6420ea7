/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_table.h - keys to queues: the hash table for matching
 *
 * A table maps a key, (tag & mask), to a queue of links in order. Slots are probed linearly from
 * the top bits of the hash. A slot with an empty queue keeps its key (dead): programs reuse tags,
 * and the next use then finds it by one look-up. New keys reuse dead slots on their probe path,
 * and dead slots are swept, a few runs at a time, when half of the slots are in use. A table of
 * 7/16 live keys doubles, by parts: look-ups probe the new slots and then the old ones, and every
 * put moves a few. A key is live in one of the two only. A table that cannot double fills up to
 * 7/8, and then refuses new keys.
 *
 * Tags come from peers. The hash depends on a random number of the engine, so that nobody can
 * choose tags that collide in one slot, whose probing all other senders would pay for.
 */
#ifndef TAG_TABLE_H
#define TAG_TABLE_H

#include <assert.h>
#include <stdint.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

#include <rte_branch_prediction.h>

#include "plx_tag.h"

#define TAG_FIRST_BITS 8 /* log2 of the slots a table begins with */
#define TAG_FIRST_N    (1u << TAG_FIRST_BITS)
#define TAG_MOVE_N     8 /* old slots moved by one change of a growing table */

/* The entry of a key in a table. Empty: seq 0. Dead: head NULL. */
struct tag_slot {
	uint64_t key;
	uint64_t seq; /* of the first posted receive; any but 0 in an index */
	struct plx_tag_link *head;
	struct plx_tag_link *tail;
};

static_assert(sizeof(struct tag_slot) == 32, "two slots a line");

struct tag_table {
	/* read by every look-up */
	struct tag_slot *slots;
	struct tag_slot *old; /* while growing: the slots not moved yet */
	uint64_t mul;         /* random and odd: factor of the hash */
	uint8_t shift;        /* 64 - log2(slots) */
	uint8_t old_shift;
	/* written when keys are added and removed */
	uint32_t live;          /* keys with a queue, in slots and old */
	uint32_t used;          /* of slots: those not empty, dead ones included */
	uint32_t hand;          /* of slots: where the next sweep begins */
	uint32_t moved;         /* of old: those before it are empty */
	uint32_t grow_wait;     /* new keys until the next attempt to grow */
	struct tag_slot *first; /* the initial slots; the owner's, never freed */
	struct plx_tag_stat *stat;
};

/* Begin with TAG_FIRST_N zeroed slots of the caller's at first. mul: random and odd. */
void tag_table_init(struct tag_table *tb, struct tag_slot *first, uint64_t mul,
	struct plx_tag_stat *stat);

/* Free what the table allocated. */
void tag_table_fini(struct tag_table *tb);

/* Start again, without keys. */
void tag_table_reset(struct tag_table *tb);

/* Move the next n old slots; growing only. */
void tag_table_drain(struct tag_table *tb, uint32_t n);

/* tag_table_put() of a key that is not in the slots. */
struct tag_slot *tag_table_put_slow(struct tag_table *tb, uint64_t hash, uint64_t key);

/*
 * Tags are fields side by side (context, rank, tag): every bit must influence the top bits.
 * A crc is linear, so which keys collide is known, whatever its start value: the random
 * number is multiplied in before. Multiplied in after it as well, it replaces a constant.
 */
static inline uint64_t
tag_hash(const struct tag_table *tb, uint64_t key)
{
	key *= tb->mul;
#ifdef __SSE4_2__
	return _mm_crc32_u64(0, key) * tb->mul;
#else
	key ^= key >> 32;
	return key * tb->mul;
#endif
}

static inline uint32_t
tag_slots_n(uint8_t shift)
{
	return UINT32_C(1) << (64 - shift);
}

/* The slot of key, live or dead, or NULL. Some slot is empty, so that this ends. */
static inline struct tag_slot *
tag_slot_find(struct tag_slot *slots, uint8_t shift, uint64_t hash, uint64_t key)
{
	uint32_t i_mask, i = hash >> shift;

	if (likely(slots[i].key == key && slots[i].seq != 0)) /* the usual place */
		return &slots[i];
	for (i_mask = tag_slots_n(shift) - 1; slots[i].seq != 0; i = (i + 1) & i_mask)
		if (slots[i].key == key)
			return &slots[i];
	return NULL;
}

/* The usual slot of a key; another key's, if it is elsewhere. */
static inline struct tag_slot *
tag_slot_guess(const struct tag_table *tb, uint64_t hash)
{
	return &tb->slots[hash >> tb->shift];
}

/* The slot of key, created if needed; NULL if there is no room. */
static inline struct tag_slot *
tag_table_put(struct tag_table *tb, uint64_t key)
{
	uint64_t hash = tag_hash(tb, key);
	struct tag_slot *s;

	if (unlikely(tb->old != NULL))
		tag_table_drain(tb, TAG_MOVE_N);
	s = tag_slot_find(tb->slots, tb->shift, hash, key);
	return likely(s != NULL) ? s : tag_table_put_slow(tb, hash, key);
}

/* The slot of key if its queue is not empty. */
static inline struct tag_slot *
tag_table_get(const struct tag_table *tb, uint64_t key)
{
	uint64_t hash = tag_hash(tb, key);
	struct tag_slot *s = tag_slot_find(tb->slots, tb->shift, hash, key);

	if (s != NULL && s->head != NULL)
		return s;
	if (likely(tb->old == NULL))
		return NULL;
	s = tag_slot_find(tb->old, tb->old_shift, hash, key);
	return s != NULL && s->head != NULL ? s : NULL;
}

static inline void
tag_queue_append(struct tag_table *tb, struct tag_slot *s, struct plx_tag_link *l)
{
	l->next = NULL;
	if (s->head == NULL) {
		l->prev = NULL;
		s->head = l;
		tb->live++;
	} else {
		l->prev = s->tail;
		s->tail->next = l;
	}
	s->tail = l;
}

/* s: the slot of the queue, or NULL when l has neighbours on both sides. */
static inline void
tag_queue_remove(struct tag_table *tb, struct tag_slot *s, struct plx_tag_link *l)
{
	if (l->prev != NULL)
		l->prev->next = l->next;
	else
		s->head = l->next;
	if (l->next != NULL)
		l->next->prev = l->prev;
	else
		s->tail = l->prev;
	if (l->prev == NULL && l->next == NULL)
		tb->live--;
}

/* Remove the first of a queue. @return the next one, or NULL */
static inline struct plx_tag_link *
tag_queue_pop(struct tag_table *tb, struct tag_slot *s)
{
	struct plx_tag_link *next = s->head->next;

	s->head = next;
	if (next != NULL) {
		next->prev = NULL;
	} else {
		s->tail = NULL;
		tb->live--;
	}
	return next;
}

/* The slot that tag_queue_remove() of l needs. */
static inline struct tag_slot *
tag_queue_slot(const struct tag_table *tb, const struct plx_tag_link *l, uint64_t key)
{
	return l->prev != NULL && l->next != NULL ? NULL : tag_table_get(tb, key);
}

#endif

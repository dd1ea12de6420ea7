/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_table.c - keys to queues: how a table grows and is cleaned
 */
#include "tag_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "plx_assert.h"

#define TAG_MAP       (64u << 10) /* bytes; tables from here on are mapped */
#define TAG_HUGE      (2u << 20)  /* bytes; and from here on ask for hugepages */
#define TAG_SWEEP_N   64          /* slots swept at a time */
#define TAG_GROW_WAIT 1024        /* new keys between two failed attempts to grow */

/* Zeroed slots, or NULL. A mapping comes zeroed, page by page: no long memset at once. */
static struct tag_slot *
tag_table_alloc(uint32_t n)
{
	size_t size = n * sizeof(struct tag_slot);
	size_t align = size < TAG_HUGE ? 0 : TAG_HUGE;
	size_t head;
	char *p;

	if (size < TAG_MAP) {
		p = aligned_alloc(PLX_LINE, size);
		return p == NULL ? NULL : memset(p, 0, size);
	}
	p = mmap(NULL, size + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (align == 0)
		return (struct tag_slot *)p;
	head = -(uintptr_t)p & (align - 1);
	if (head > 0)
		munmap(p, head);
	munmap(p + head + size, align - head);
	madvise(p + head, size, MADV_HUGEPAGE); /* a hint: small pages are correct as well */
	return (struct tag_slot *)(p + head);
}

static void
tag_table_free(struct tag_slot *slots, uint32_t n)
{
	size_t size = n * sizeof(struct tag_slot);

	if (size < TAG_MAP)
		free(slots);
	else
		munmap(slots, size);
}

/* A dead slot on the probe path of a key that has none, or the empty one at its end. */
static struct tag_slot *
slot_free(struct tag_slot *slots, uint8_t shift, uint64_t hash)
{
	uint32_t i_mask = tag_slots_n(shift) - 1;
	uint32_t i = hash >> shift;

	while (slots[i].head != NULL)
		i = (i + 1) & i_mask;
	return &slots[i];
}

/*
 * Empty the dead slots of the next few runs, TAG_SWEEP_N slots and then to the end of the
 * run. A live slot after a dead one is put back from its hash on, which ends at its old
 * place at the latest. A run is swept from its first slot or not at all.
 */
static void
table_sweep(struct tag_table *tb)
{
	uint32_t i_mask = tag_slots_n(tb->shift) - 1;
	uint32_t i = tb->hand;
	uint32_t n = 0;

	while (tb->slots[i].seq != 0)
		i = (i + 1) & i_mask;
	for (; n < TAG_SWEEP_N || tb->slots[i].seq != 0; n++, i = (i + 1) & i_mask) {
		struct tag_slot s = tb->slots[i];

		if (s.seq == 0)
			continue;
		tb->slots[i] = (struct tag_slot){0};
		if (s.head == NULL)
			tb->used--;
		else
			*slot_free(tb->slots, tb->shift, tag_hash(tb, s.key)) = s;
	}
	tb->hand = i;
}

static void
table_old_free(struct tag_table *tb)
{
	if (tb->old != NULL && tb->old != tb->first)
		tag_table_free(tb->old, tag_slots_n(tb->old_shift));
	tb->old = NULL;
}

static struct tag_slot *
table_place(struct tag_table *tb, uint64_t hash, const struct tag_slot *from)
{
	struct tag_slot *s = slot_free(tb->slots, tb->shift, hash);

	if (s->seq == 0)
		tb->used++;
	PLX_ASSERT(tb->used < tag_slots_n(tb->shift));
	*s = *from;
	return s;
}

/* Move the next n old slots. The order of the hash is kept, so this walks both in order. */
void
tag_table_drain(struct tag_table *tb, uint32_t n)
{
	uint32_t end = RTE_MIN((uint64_t)tb->moved + n, (uint64_t)tag_slots_n(tb->old_shift));

	for (; tb->moved < end; tb->moved++) {
		struct tag_slot *s = &tb->old[tb->moved];

		if (s->head == NULL)
			continue;
		table_place(tb, tag_hash(tb, s->key), s);
		s->head = NULL;
	}
	if (end == tag_slots_n(tb->old_shift))
		table_old_free(tb);
}

static __rte_noinline __rte_cold void
table_grow(struct tag_table *tb)
{
	uint32_t n = tag_slots_n(tb->shift);
	struct tag_slot *slots;

	if (tb->grow_wait > 0) {
		tb->grow_wait--;
		return;
	}
	slots = n < PLX_TAG_MAX_SLOTS ? tag_table_alloc(n * 2) : NULL;
	if (slots == NULL) {
		tb->grow_wait = TAG_GROW_WAIT;
		PLX_STAT_INC(tb->stat->rehash_fails);
		return;
	}
	tb->old = tb->slots;
	tb->old_shift = tb->shift;
	tb->moved = 0;
	tb->slots = slots;
	tb->shift--;
	tb->used = 0;
	tb->hand = 0;
	PLX_STAT_INC(tb->stat->rehashes);
}

/* A slot for a key that has none, or NULL: the table is full and cannot grow. */
static struct tag_slot *
table_add(struct tag_table *tb, uint64_t hash, uint64_t key)
{
	struct tag_slot fresh = {.key = key, .seq = 1};
	uint32_t n = tag_slots_n(tb->shift);

	if (unlikely(tb->live >= n / 16 * 7)) {
		if (tb->old != NULL)
			tag_table_drain(tb, UINT32_MAX);
		table_grow(tb);
		n = tag_slots_n(tb->shift);
	}
	if (tb->old == NULL && tb->used >= n / 2)
		table_sweep(tb);
	if (unlikely(tb->used >= n / 8 * 7) && slot_free(tb->slots, tb->shift, hash)->seq == 0)
		return NULL;
	return table_place(tb, hash, &fresh);
}

struct tag_slot *
tag_table_put_slow(struct tag_table *tb, uint64_t hash, uint64_t key)
{
	struct tag_slot *s;

	if (tb->old == NULL)
		return table_add(tb, hash, key);
	s = tag_slot_find(tb->old, tb->old_shift, hash, key);
	if (s != NULL && s->head != NULL) {
		struct tag_slot *to = table_place(tb, hash, s);

		s->head = NULL;
		return to;
	}
	return table_add(tb, hash, key);
}

void
tag_table_init(struct tag_table *tb, struct tag_slot *first, uint64_t mul,
	struct plx_tag_stat *stat)
{
	*tb = (struct tag_table){.slots = first, .first = first, .mul = mul,
		.shift = 64 - TAG_FIRST_BITS, .stat = stat};
}

void
tag_table_fini(struct tag_table *tb)
{
	table_old_free(tb);
	if (tb->slots != tb->first)
		tag_table_free(tb->slots, tag_slots_n(tb->shift));
}

void
tag_table_reset(struct tag_table *tb)
{
	tag_table_fini(tb);
	memset(tb->first, 0, TAG_FIRST_N * sizeof(*tb->first));
	tag_table_init(tb, tb->first, tb->mul, tb->stat);
}

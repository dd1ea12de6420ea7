/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_walk.c - all posted receives in their order, and the dump
 */
#include <inttypes.h>
#include <stdio.h>

#include "tag_int.h"

#define TAG_WALK_BINS 48    /* log2 of the most receives a walk can sort */

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

uint64_t
plx_tag_order(const struct plx_tag *t)
{
	return t->order + TAG_ORDER_ONE;
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

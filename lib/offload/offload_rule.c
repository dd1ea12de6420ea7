/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * offload_rule.c - which receives a device may have without breaking the order
 *
 * Design notes
 * - A message goes to the earliest receive that it matches. A device sees only its own list, so
 *   it must not have a receive while only software has an earlier one that the same message could
 *   match; and it sees only its own messages, so with several devices it must have no receive
 *   that a message of another one could match.
 * - Both answers err on the safe side: a receive that stays in software needlessly is matched
 *   there.
 */
#include "offload_int.h"

static inline uint32_t
hash(uint64_t key, uint64_t mask, uint32_t n)
{
	uint64_t h = (key ^ mask * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return (uint32_t)(h >> 40) % n;
}

/* The place of a mask in use, or OFFLOAD_SOFT_MASKS. */
static uint32_t
mask_find(const struct offload_soft *s, uint64_t mask)
{
	uint32_t i;

	for (i = 0; i < OFFLOAD_SOFT_MASKS; i++)
		if (s->masks[i].n != 0 && s->masks[i].mask == mask)
			break;
	return i;
}

enum offload_where
offload_soft_add(struct offload_soft *s, const struct plx_tag_recv *r)
{
	uint32_t i = mask_find(s, r->mask);

	s->n++;
	if (i == OFFLOAD_SOFT_MASKS)
		for (i = 0; i < OFFLOAD_SOFT_MASKS && s->masks[i].n != 0; i++)
			;
	if (i == OFFLOAD_SOFT_MASKS) {
		s->n_other++;
		return OFFLOAD_SOFT_OTHER;
	}
	s->masks[i].mask = r->mask;
	s->masks[i].n++;
	s->keys[hash(r->tag, r->mask, OFFLOAD_SOFT_KEYS)]++;
	return OFFLOAD_SOFT;
}

void
offload_soft_remove(struct offload_soft *s, const struct plx_tag_recv *r, enum offload_where where)
{
	s->n--;
	if (where == OFFLOAD_SOFT_OTHER) {
		s->n_other--;
		return;
	}
	s->masks[mask_find(s, r->mask)].n--;
	s->keys[hash(r->tag, r->mask, OFFLOAD_SOFT_KEYS)]--;
}

bool
offload_soft_conflicts(const struct offload_soft *s, const struct plx_tag_recv *r)
{
	if (s->n == 0)
		return false;
	if (s->n_other != 0)
		return true;
	for (uint32_t i = 0; i < OFFLOAD_SOFT_MASKS; i++) {
		uint64_t mask = s->masks[i].mask;

		if (s->masks[i].n == 0)
			continue;
		if ((mask & ~r->mask) != 0) /* r leaves the bits open that they require */
			return true;
		if (s->keys[hash(r->tag & mask, mask, OFFLOAD_SOFT_KEYS)] != 0)
			return true;
	}
	return false;
}

bool
offload_recvs_conflict(const struct plx_tag_recv *a, const struct plx_tag_recv *b)
{
	return ((a->tag ^ b->tag) & a->mask & b->mask) == 0;
}

static struct offload_sender *
sender_at(const struct plx_offload *o, uint64_t key)
{
	return &o->senders[hash(key, 0, PLX_OFFLOAD_MAX_SENDERS)];
}

void
offload_sender_learn(struct plx_offload *o, uint64_t tag, uint32_t i)
{
	uint64_t key = tag & o->sender_mask;
	struct offload_sender *s = sender_at(o, key);

	s->key = key;
	s->dev = i + 1;
}

struct plx_offload_dev *
offload_dev_of(struct plx_offload *o, const struct plx_tag_recv *r)
{
	uint64_t key = r->tag & o->sender_mask;
	const struct offload_sender *s;

	if (o->n_devs == 1)
		return &o->devs[0];
	if (o->senders == NULL || (r->mask & o->sender_mask) != o->sender_mask)
		return NULL;
	s = sender_at(o, key);
	return s->dev != 0 && s->key == key ? &o->devs[s->dev - 1] : NULL;
}

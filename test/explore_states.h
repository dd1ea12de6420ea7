/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * explore_states.h - the states that an explorer has seen, each once
 */
#ifndef EXPLORE_STATES_H
#define EXPLORE_STATES_H

#include <stdint.h>
#include <string.h>

#include "plx_unit.h"

/** A state is a struct without holes: it is compared by its bytes. */
struct explore_states {
	uint8_t *all;
	size_t len;	  /* of one, bytes */
	uint32_t *places; /* hash table of 2 * max entries; 0: none, else 1 + number */
	uint32_t n, max;
};

static inline uint64_t
explore_hash(const uint8_t *b, size_t len)
{
	uint64_t h = 0;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * UINT64_C(0x100000001b3) + (h >> 29);
	return h ^ h >> 32;
}

/** @return the number of a state; it is a new one when that was e->n before. Thread: one. */
static inline uint32_t
explore_number(struct explore_states *e, const void *state)
{
	uint32_t at = (uint32_t)(explore_hash(state, e->len) % (2 * e->max));

	for (; e->places[at] != 0; at = (at + 1) % (2 * e->max))
		if (memcmp(e->all + (e->places[at] - 1) * e->len, state, e->len) == 0)
			return e->places[at] - 1;
	UNIT_TRUE_FATAL(e->n < e->max);
	memcpy(e->all + e->n * e->len, state, e->len);
	e->places[at] = ++e->n;
	return e->n - 1;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * explore_states.h - the states that an explorer has seen, each once, and the steps between them
 */
#ifndef EXPLORE_STATES_H
#define EXPLORE_STATES_H

#include <stdbool.h>
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

/** Steps by which a model goes on by itself, from one state to another, by their numbers. */
struct explore_edges {
	struct explore_edge { uint32_t from, to; } *v;
	uint32_t n, max;
};

/** Add a step. Thread: one. */
static inline void
explore_edge(struct explore_edges *e, uint32_t from, uint32_t to)
{
	UNIT_TRUE_FATAL(e->n < e->max);
	e->v[e->n++] = (struct explore_edge){from, to};
}

/**
 * Go back from good states: those that lead to one are good as well.
 * @param good of each of n states. @return the first that leads to none, or n: all do. Thread: one.
 */
static inline uint32_t
explore_back(const struct explore_edges *e, bool *good, uint32_t n)
{
	bool again = true;
	uint32_t i;

	while (again) {
		again = false;
		for (uint32_t k = e->n; k-- > 0;)
			if (good[e->v[k].to] && !good[e->v[k].from])
				again = good[e->v[k].from] = true;
	}
	for (i = 0; i < n && good[i]; i++)
		;
	return i;
}

#endif

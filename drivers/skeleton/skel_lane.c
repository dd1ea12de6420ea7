/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skel_lane.c - rings of cells, each with one writer and one reader
 */
#include <stdlib.h>
#include <string.h>

#include "skel_int.h"

void
skel_bufs_free(struct skel_bufs *bufs)
{
	struct skel_buf *b;

	while ((b = LIST_FIRST(bufs)) != NULL) {
		LIST_REMOVE(b, link);
		free(b);
	}
}

static void
lane_free(struct skel_lane *lane)
{
	for (uint64_t i = 0; i < lane->n_cells; i++)
		free(lane->cells[i].buf);
	skel_bell_put(lane->bell);
	free(lane);
}

struct skel_lane *
skel_lane_new(const struct skel_queue *from)
{
	const size_t len = sizeof(struct skel_lane) + from->n_cells * sizeof(struct skel_cell);
	struct skel_lane *lane = aligned_alloc(PLX_LINE, RTE_ALIGN_CEIL(len, (size_t)PLX_LINE));

	if (lane == NULL)
		return NULL;
	memset(lane, 0, len);
	lane->from = from->addr;
	lane->n_cells = from->n_cells;
	atomic_store_explicit(&lane->refs, 2, memory_order_relaxed); /* nobody else has it yet */
	for (uint64_t i = 0; i < lane->n_cells; i++) {
		lane->cells[i].buf = malloc(sizeof(struct skel_buf));
		if (lane->cells[i].buf == NULL) {
			lane_free(lane);
			return NULL;
		}
	}
	return lane;
}

void
skel_lane_leave(struct skel_lane *lane, _Atomic bool *left)
{
	/* pairs with is_over(): what was sent before is seen before */
	atomic_store_explicit(left, true, memory_order_release);
	if (atomic_fetch_sub_explicit(&lane->refs, 1, memory_order_acq_rel) == 1)
		lane_free(lane);
}

bool
skel_lane_is_empty(const struct skel_lane *lane)
{
	/* pairs with the release in cell_give() */
	return atomic_load_explicit(&lane->tail, memory_order_acquire) == lane->taken;
}

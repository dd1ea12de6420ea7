/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cq.c - the ring of completions: its memory, and when it seems full
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "plx_cq.h"
#include "plx_mem.h"

int
plx_cq_create(struct plx_cq **out)
{
	const size_t head = RTE_ALIGN_CEIL(sizeof(struct plx_cq), 64);
	const size_t len = head + PLX_CQ_LEN * sizeof(struct plx_cq_cell);
	/* In our heap, which a forked child does not share with its parent. */
	struct plx_cq *cq = plx_mem_alloc(len);

	if (cq == NULL)
		return -ENOMEM;
	memset((void *)cq, 0, len);
	cq->cells = (struct plx_cq_cell *)((char *)cq + head);
	STAILQ_INIT(&cq->overflow);
	cq->empty = PLX_CQ_PAUSE;
	*out = cq;
	return 0;
}

void
plx_cq_destroy(struct plx_cq *cq)
{
	plx_mem_free(cq);
}

bool
plx_cq_room(struct plx_cq *cq)
{
	/* pairs with the release in plx_cq_done(): the cells' contents have been read */
	cq->seen = atomic_load_explicit(&cq->done, memory_order_acquire);
	return cq->head - cq->seen < PLX_CQ_LEN;
}

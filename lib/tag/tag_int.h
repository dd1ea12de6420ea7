/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_int.h - between the files of lib/tag
 */
#ifndef TAG_INT_H
#define TAG_INT_H

#include <assert.h>
#include <stdalign.h>

#include <rte_common.h>

#include "plx_assert.h"
#include "tag_table.h"

#define TAG_FEW       4     /* posted receives that need no table */
#define TAG_CLASS_FEW (PLX_TAG_MAX_CLASSES + 1) /* the class of those */
#define TAG_ORDER_ONE 256 /* below it is the class */

/* Posted receives with one mask. */
struct tag_class {
	/* line 0: read and written by every post and match */
	alignas(PLX_LINE) uint64_t mask;
	uint64_t asked; /* order when it was last emptied: selects the class to recycle */
	uint64_t n;     /* receives */
	struct tag_table table;
};

/* Unexpected messages by one mask. */
struct tag_index {
	alignas(PLX_LINE) uint64_t mask;
	uint64_t fed;            /* messages up to this seq are in the table */
	struct plx_tag_msg *cur; /* the first that is not, or NULL */
	uint64_t asked;          /* clock of the last find: selects the index to recycle */
	struct tag_table table;
	size_t at;               /* of its link in a message, bytes */
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
	uint32_t few_n;  /* not 0: all posted receives are in few, in post order */
	uint32_t far_at; /* from an unexpected message to its far links, bytes */
	struct tag_few few[TAG_FEW];
	/* unexpected messages */
	uint64_t clock; /* keeps and finds; the seq of messages */
	struct tag_all all;
	uint64_t seed;
	uint64_t missed;    /* tag of the last arrival that matched no receive, though some were
	                     * posted */
	uint64_t scan_debt; /* steps of scans that an index would have saved */

	struct tag_class classes[PLX_TAG_MAX_CLASSES];
	struct tag_index indexes[PLX_TAG_MAX_INDEXES];
	alignas(PLX_LINE) struct tag_slot
		first[PLX_TAG_MAX_CLASSES + PLX_TAG_MAX_INDEXES][TAG_FIRST_N];
};

static inline struct plx_tag_recv *
recv_of(struct plx_tag_link *l)
{
	return container_of(l, struct plx_tag_recv, link);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_rma_cell.h - what an initiator and a target tell each other in the target's shared area
 */
#ifndef PLX_RMA_CELL_H
#define PLX_RMA_CELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plx_dev.h"

#define PLX_RMA_SHARE_MAX (1u << 20) /* of what both sides copy at once, bytes */

#define PLX_RMA_SHARE_CHUNK (16u << 10)	  /* bytes that one side copies at once, at least */
#define PLX_RMA_SHARE_N	    32u		  /* chunks at most: a bit each */
#define PLX_RMA_SHARE_STOPPED UINT32_MAX /* of a cursor: more is taken than there is */

#define PLX_RMA_BLOCKS	     (1u << 8) /* in plx_rma_share.kind: of many blocks */
#define PLX_RMA_BLOCKS_N     256u      /* blocks that are shared at once, at most */
#define PLX_RMA_BLOCKS_CHUNK 64u       /* blocks of a chunk, at most */

enum plx_rma_cell_state {
	PLX_RMA_CELL_IDLE,
	PLX_RMA_CELL_SHARED, /* both sides copy, see rma_share.c; only the initiator ends that */
};

/** One of many blocks that both sides copy. */
struct plx_rma_block {
	uint64_t local;	      /* address in the initiator's process */
	uint64_t addr, token; /* of the target's memory */
	uint32_t index;
	uint32_t len; /* bytes */
};
_Static_assert(sizeof(struct plx_rma_block) == 32, "shared layout");

/** The blocks, in the initiator's memory, where the target reads them, and then the number. */
struct plx_rma_list {
	_Atomic uint64_t number; /* no other list of the process has it; stored before the blocks. 0: none */
	struct plx_rma_block block[PLX_RMA_BLOCKS_N];
};

/** A put or get that both sides copy, or many of them, which a list describes. */
struct plx_rma_share {
	/* line 0; each of these has the generation above */
	_Alignas(PLX_LINE) _Atomic uint64_t next; /* see plx_cursor.h; both sides take */
	_Atomic uint64_t done;	/* chunks that the target has copied; writer: the target */
	_Atomic uint64_t bad;	/* chunks that the target gives back, a bit each; both write */
	/* writer: the initiator, while next is stopped; the target, relaxed: what it takes proves them */
	_Atomic uint64_t buf;	      /* address in the initiator's process: of the bytes, or the list */
	_Atomic uint64_t addr, token; /* of the target's memory; token: or the list's number */
	_Atomic uint32_t index;
	_Atomic uint32_t len, chunk; /* bytes, or blocks */
	_Atomic uint32_t kind;	     /* enum plx_rma_kind: PUT or GET, and PLX_RMA_BLOCKS */
};

/** Of a shared area. Writer: the initiator that owns it, and where it says so the target. */
struct plx_rma_cell {
	_Alignas(PLX_LINE) _Atomic uint32_t state;
	_Atomic uint64_t owner; /* number of the initiator's process, 0: free */
	struct plx_rma_share share;
	/* generation above, and below how many of its batches of puts the target has claimed; both write */
	_Alignas(PLX_LINE) _Atomic uint64_t claims;
};
_Static_assert(sizeof(struct plx_rma_cell) == 3 * PLX_LINE, "shared layout");
_Static_assert(sizeof(struct plx_rma_share) == PLX_LINE, "shared layout");

/**
 * The target is to do a batch of puts: the next one of a generation, if the initiator has not recalled that.
 * @return whether it is the target's. Thread: its owner.
 */
static inline bool
plx_rma_cell_claim(struct plx_rma_cell *c, uint32_t gen, uint32_t number)
{
	uint64_t was = (uint64_t)gen << 32 | number;

	/* relaxed, as all accesses to claims: their order alone decides who does a batch, and the message brings its bytes */
	return atomic_compare_exchange_strong_explicit(&c->claims, &was, was + 1, memory_order_relaxed,
		memory_order_relaxed);
}

/** The target claims neither this batch nor a later one of its generation, and that is seen. Thread: its owner. */
static inline void
plx_rma_cell_refuse(struct plx_rma_cell *c, uint32_t gen, uint32_t number)
{
	uint64_t was = (uint64_t)gen << 32 | number;

	(void)atomic_compare_exchange_strong_explicit(&c->claims, &was, was + (UINT64_C(1) << 32), memory_order_relaxed,
		memory_order_relaxed);
}

/**
 * Begin another generation: the target claims nothing of former ones any more.
 * @return what claims was. Thread: the initiator's owner.
 */
static inline uint64_t
plx_rma_cell_recall(struct plx_rma_cell *c, uint32_t gen)
{
	return atomic_exchange_explicit(&c->claims, (uint64_t)gen << 32, memory_order_relaxed);
}

/** @return cell i of a shared area of len bytes, or NULL: it has none of this number. */
static inline struct plx_rma_cell *
plx_rma_cell_at(void *shared, size_t len, uint64_t i)
{
	if (shared == NULL || len <= PLX_SHARED_RNDV || i >= (len - PLX_SHARED_RNDV) / sizeof(struct plx_rma_cell))
		return NULL;
	return (struct plx_rma_cell *)((char *)shared + PLX_SHARED_RNDV) + i;
}

#endif

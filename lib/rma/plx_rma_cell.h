/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_rma_cell.h - operations that a queue's shared area offers to its owner
 */
#ifndef PLX_RMA_CELL_H
#define PLX_RMA_CELL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "plx_dev.h"

#define PLX_RMA_CELL_DATA 912u	     /* bytes */
#define PLX_RMA_SHARE_MAX (1u << 20) /* of what both sides copy at once, bytes */

#define PLX_RMA_SHARE_CHUNK (16u << 10)	  /* bytes that one side copies at once, at least */
#define PLX_RMA_SHARE_N	    32u		  /* chunks at most: a bit each */
#define PLX_RMA_SHARE_STOPPED UINT32_MAX /* of a cursor: more is taken than there is */

#define PLX_RMA_BLOCKS	     (1u << 8) /* in plx_rma_share.kind: of many blocks */
#define PLX_RMA_BLOCKS_N     256u      /* blocks that are shared at once, at most */
#define PLX_RMA_BLOCKS_CHUNK 64u       /* blocks of a chunk, at most */

/** The side that changes OFFERED does the operation. */
enum plx_rma_cell_state {
	PLX_RMA_CELL_IDLE,
	PLX_RMA_CELL_OFFERED,
	PLX_RMA_CELL_TAKEN, /* the target does it now */
	PLX_RMA_CELL_DONE,  /* it has, or err says why not */
	PLX_RMA_CELL_LEFT,  /* the initiator has left while it was TAKEN: the target frees the cell */
	PLX_RMA_CELL_SHARED, /* both sides copy, see rma_share.c; only the initiator ends that */
};

/** The offered operation; written by the initiator, and input of the target. */
struct plx_rma_cell_op {
	uint64_t token, addr; /* of the target's memory */
	uint32_t index;
	uint16_t len;
	uint8_t kind; /* enum plx_rma_kind: PUT or GET */
	uint8_t pad;
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

/** Of a shared area. Writer: while it is TAKEN the target, otherwise the initiator that owns it. */
struct plx_rma_cell {
	_Alignas(PLX_LINE) _Atomic uint32_t state;
	int32_t err;		/* 0 or -errno of the target */
	_Atomic uint64_t owner; /* number of the initiator's process, 0: free */
	struct plx_rma_cell_op op;
	uint8_t pad[8];
	uint8_t data[PLX_RMA_CELL_DATA]; /* of a put, or what a get found */
	struct plx_rma_share share;
};
_Static_assert(sizeof(struct plx_rma_cell) == 1024, "shared layout");
_Static_assert(sizeof(struct plx_rma_share) == PLX_LINE, "shared layout");
_Static_assert(offsetof(struct plx_rma_cell, data) + 8 <= PLX_LINE, "a word moves with one line");

/** @return whether the state was from, and is to now. Thread: any. */
static inline bool
plx_rma_cell_turns(struct plx_rma_cell *c, uint32_t from, uint32_t to)
{
	/* pairs with itself at the other side */
	return atomic_compare_exchange_strong_explicit(&c->state, &from, to, memory_order_acq_rel,
		memory_order_acquire);
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

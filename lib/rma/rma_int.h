/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_int.h - between the files of lib/rma
 */
#ifndef RMA_INT_H
#define RMA_INT_H

#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_copy.h"
#include "plx_rma.h"
#include "plx_rma_cell.h"

static inline struct plx_ep *
rma_ep_of(struct plx_rma_ep *e)
{
	return (struct plx_ep *)((uint8_t *)e - offsetof(struct plx_ep, of_rma));
}

/** The ep has something to do in turns, or no more: see plx_rma_ep.link. */
static inline void
rma_list(struct plx_rma *r, struct plx_rma_ep *e, bool in)
{
	if (in) {
		TAILQ_INSERT_TAIL(&r->eps, e, link);
		r->n_eps++;
		plx_eps_need_turn(rma_ep_of(e)->eps);
	} else {
		TAILQ_REMOVE(&r->eps, e, link);
		r->n_eps--;
	}
}

/** Set the ep's first operation that is not completely sent, or none. */
static inline void
rma_set_send(struct plx_rma *r, struct plx_rma_ep *e, struct plx_rma_req *o)
{
	bool was = e->send != NULL;

	e->send = o;
	if (was == (o != NULL))
		return;
	r->n_send += was ? -1 : 1;
	if (likely(e->n_batches == 0))
		rma_list(r, e, !was);
	else if (!was)
		plx_eps_need_turn(rma_ep_of(e)->eps);
}

/* rma_op.c */

/** The operation is complete: remove it from all lists, complete its request. */
void rma_end(struct plx_rma *r, struct plx_req *req, int err);

/** Remove it from all lists; plx_rma_over() completes it. */
void rma_unlink(struct plx_rma *r, struct plx_req *req);

/** Operations that end together: none is in another list when the first callback runs. */
TAILQ_HEAD(rma_ended, plx_rma_req);

/** Move one from all lists to the last place of this one. */
void rma_end_later(struct plx_rma *r, struct plx_rma_req *o, struct rma_ended *ended);

/** Complete all with the error that each has. @return how many */
unsigned rma_end_all(struct plx_rma *r, struct rma_ended *ended);

/** Complete it if nothing of it is left to send or in flight. */
void rma_end_if_over(struct plx_rma *r, struct plx_req *req);

/** Send all of an operation again. */
void rma_send_again(struct plx_rma *r, struct plx_req *req);

/** Send nothing more of it; pieces in flight stay. */
void rma_send_stop(struct plx_rma *r, struct plx_req *req);

/** The next flush of the ep and of the worker returns err, once. */
void rma_keep_err(struct plx_rma *r, struct plx_ep *ep, int err);

static inline struct plx_rma *
rma_of(struct plx_req *req)
{
	return plx_rma_req(req)->ep->eps->engine[PLX_EP_RMA];
}

/** @return whether operations in flight, if they are as long as one of len bytes, are more than caches hold. */
static inline bool
rma_is_much(const struct plx_rma *r, uint64_t len)
{
	return atomic_load_explicit(&r->n_ops, memory_order_relaxed) * len >= PLX_RMA_MUCH;
}

/** Copy the bytes of a block. */
static inline void
rma_copy(void *to, const void *from, uint32_t len, bool much)
{
	if (unlikely(much))
		plx_copy_past(to, from, len);
	else
		plx_copy(to, from, len);
}

/** @return plx_rma_ep.pace of bytes whose move began at that tick. */
static inline uint32_t
rma_pace(uint64_t begin, uint64_t bytes)
{
	uint64_t ticks = (rte_rdtsc() - begin) / RTE_MAX(bytes >> 10, (uint64_t)1) + 1;

	return (uint32_t)RTE_MIN(ticks, (uint64_t)UINT32_MAX);
}

/** @return the key of a region of this process, as a peer names it. */
static inline struct plx_region_key
rma_region_key(const struct plx_rma *r, uint32_t index, uint64_t token)
{
	return (struct plx_region_key){index, token ^ r->domain};
}

/** Read or write by the device. @return as plx_peer_rma() */
static inline int
rma_dev_move(struct plx_ep *ep, uint8_t kind, void *buf, uint64_t remote, uint64_t len)
{
	struct plx_rma_op op = {.peer = ep->peer, .local = buf, .remote = remote, .len = len,
		.put = kind == PLX_RMA_PUT};

	return plx_peer_rma(&op);
}

/* rma_part.c */

/**
 * The copy that both sides make now, of a part of one long operation or of several short ones. It belongs to the
 * ep until it ends.
 */
struct rma_part {
	struct rma_part *next, *next_free;
	struct plx_rma_req *first; /* to send */
	uint16_t n_ops;		   /* it and those behind it */
	bool blocks;		   /* several */
	bool over;		   /* their ep has failed: only the target's chunks are waited for */
	int err;		   /* the first that this side had */
	uint32_t gen;		   /* generation of the cursor */
	uint32_t len, chunk;	   /* bytes, or blocks: in all, of a chunk */
	uint32_t step;		   /* bytes of a chunk; of blocks, the mean */
	uint32_t n;		   /* chunks that are waited for */
	uint32_t mine;		   /* chunks that this side is done with */
	uint32_t redo;		   /* chunks taken and not copied, a bit each */
	uint32_t undone;	   /* after an error: chunks that are not copied, a bit each */
	struct plx_rma_list list;
};

/** @return a part of n operations, from the first on, to describe; or NULL without memory. */
struct rma_part *rma_part_get(struct plx_rma *r, struct plx_rma_req *first, unsigned n);

/** Its operations are each by itself again. */
void rma_part_put(struct plx_rma *r, struct rma_part *p);

/** @return the blocks to fill: nobody who looks for the number of a former list follows them. */
struct plx_rma_block *rma_list_begin(struct plx_rma_list *list);

/** An operation of a part ends: the target is to do no more of it. */
void rma_part_end(struct plx_rma *r, struct plx_rma_req *o);

/** Free the memory of parts. */
void rma_parts_close(struct plx_rma *r);

/* rma_move.c */

/**
 * Read or write pieces by the device, in their order.
 * @param n in: how many; out: how many are done. @return as plx_peer_rma()
 */
int rma_pieces_move(struct plx_ep *ep, bool put, const struct plx_rma_piece *pieces, unsigned *n);

/* rma.c */

/** Steps that the ep can do now. @return how many */
unsigned rma_ep_run(struct plx_rma *r, struct plx_rma_ep *e);

/* rma_burst.c */

/**
 * An operation may wait for others, if it is short and goes by the device.
 * @return whether it does from now on
 */
bool rma_late_add(struct plx_rma *r, struct plx_rma_req *o);

/** The same of one behind others. If it does not wait, those do no more. */
void rma_late_behind(struct plx_rma *r, struct plx_rma_req *o);

/**
 * Move the operations that can go together with the first one to send.
 * @return how many are over; -EAGAIN both sides copy them now; 0 the device does the first one by itself
 */
int rma_burst_step(struct plx_rma *r, struct plx_rma_ep *e);

/* rma_batch.c */

/** Bytes of an operation in a batch. */
struct rma_batch_block {
	struct plx_rma_req *o;
	uint64_t offset;
	uint32_t len;
};

/** What one message asks the target to do. */
struct rma_batch {
	TAILQ_ENTRY(rma_batch) link;	   /* of the ep's */
	struct rma_batch *next, *next_free; /* of the worker's */
	uint32_t id;			   /* in the answer */
	uint32_t number;		   /* of a put's: claims before it */
	uint32_t bytes;
	uint8_t kind; /* PUT or GET */
	uint8_t n;    /* blocks */
	bool claimed; /* known to be the target's: only waited for */
	bool recalled; /* the device's */
	struct rma_batch_block block[PLX_RMA_BATCH_N];
};

/**
 * Send the next operations to the target.
 * @return 1: a batch is sent; -EAGAIN not yet; 0 the device is to do the first one
 */
int rma_batch_step(struct plx_rma *r, struct plx_rma_ep *e);

/** @return whether the target was asked for something, but only for gets, and nothing of that is recalled. */
bool rma_has_gets_only(const struct plx_rma_ep *e);

/** The ep has batches: recall them if no answer comes, do what is recalled. @return operations that are over */
unsigned rma_batches_run(struct plx_rma *r, struct plx_rma_ep *e);

/* rma_recall.c */

/** @return an empty batch, or NULL without memory. */
struct rma_batch *rma_batch_get(struct plx_rma *r);

/** Its memory is free: it is in no list. */
void rma_batch_put(struct plx_rma *r, struct rma_batch *b);

/** It is over: neither the target nor the device has to do any more of it. */
void rma_batch_end(struct plx_rma *r, struct plx_rma_ep *e, struct rma_batch *b);

/** @return how many batches of puts of this generation the target has claimed; it claims no other one. */
uint32_t rma_claims_end(struct plx_ep *ep);

/** What the target has not claimed is the device's. */
void rma_batches_recall(struct plx_rma *r, struct plx_ep *ep);

/** An operation ends otherwise than by answers: the target is to do no more of it. */
void rma_batch_forget(struct plx_rma *r, struct plx_rma_req *o);

/** Free the memory of batches. */
void rma_batches_close(struct plx_rma *r);

/* rma_share.c */

/**
 * The wait of an operation has failed. @return whether the target may still be at it: then rma_share_step()
 * ends it, when the target does no more
 */
bool rma_share_outlives(struct plx_rma_req *o, int err);

/**
 * A long put or get, or several, copied by both sides.
 * @return how many are over, or 1: a part of a long one is; -EAGAIN not yet; 0 the device does it alone
 */
int rma_share_step(struct plx_rma *r, struct plx_rma_req *o);

/**
 * Share the first n operations to send, which are of one kind and epoch.
 * @param bytes of all together. @return whether they are shared: then rma_share_step() goes on
 */
bool rma_share_blocks(struct plx_rma *r, struct plx_rma_ep *e, unsigned n, uint64_t bytes);

/** @param kind PUT or GET of a peer. @return what it needs of our region */
static inline uint8_t
rma_rights_of(uint8_t kind)
{
	return kind == PLX_RMA_GET ? PLX_REGION_READ : PLX_REGION_WRITE;
}

/** @return whether a cell of ours is the peer's. */
static inline bool
rma_cell_is_of(const struct plx_rma_cell *c, const struct plx_peer *peer)
{
	return peer->proc == 0 || atomic_load_explicit(&c->owner, memory_order_relaxed) == peer->proc;
}

/* rma_soft.c */

/** Answer a batch of puts, now or when there is room. */
void rma_batch_ack(struct plx_rma *r, struct plx_ep *ep, uint32_t id);

/* rma_ask.c */
#define RMA_SKIP_MAX 255 /* steps in which the target is asked for nothing, at most */
#define RMA_LONE_N   4u /* operations in a row that waited for others in vain: then the next does not wait */

/** @return whether the target may be asked for something now; then the ep has a cell. */
bool rma_may_ask(const struct plx_ep *ep);

/** @return the ep's cell, or NULL: the target is asked for nothing now. */
struct plx_rma_cell *rma_cell_to_ask(const struct plx_ep *ep);

/** Learn whether the target polls: it did something for this side, or something went without it. */
void rma_answered(struct plx_ep *ep, bool did);

/* rma_cell.c */

/** @return the ep's cell; NULL: the target's shared area is not mapped any more. */
struct plx_rma_cell *rma_cell_of(const struct plx_ep *ep);

/** Nobody owns it any more. */
void rma_cell_free(struct plx_rma_cell *c);

/** Free the cells of processes that have ended. */
void rma_cells_sweep(const struct plx_queue *q);

/* rma_key.c */

/** @return whether the device does this with the key of the memory. */
bool rma_key_is_good(const struct plx_rma *r, const struct plx_req *req);

/** Give the device as much as possible. @return 0 all; -EAGAIN not yet; or an error. */
int rma_key_step(struct plx_rma *r, struct plx_req *req);

/** Give the device a mark. @return 0 done; -EAGAIN not yet; or an error. */
int rma_mark_step(struct plx_req *req);

/* rma_soft.c */
#define RMA_REPLIES_RESERVE (2 * PLX_DEV_RX_BURST) /* a reserve: more than a burst needs */

/** Errors: -ENOMEM. */
int rma_soft_open(struct plx_rma *r);

/** Send as much as possible. @return 0 all is sent; -EAGAIN not yet; or an error. */
int rma_msg_step(struct plx_rma *r, struct plx_req *req);

#endif

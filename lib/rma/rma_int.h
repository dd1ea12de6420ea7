/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_int.h - between the files of lib/rma
 */
#ifndef RMA_INT_H
#define RMA_INT_H

#include "plx_rma.h"

static inline struct plx_ep *
rma_ep_of(struct plx_rma_ep *e)
{
	return (struct plx_ep *)((uint8_t *)e - offsetof(struct plx_ep, of_rma));
}

/**
 * Set the ep's first operation that is not completely sent, or none; and its place in the
 * run list.
 */
static inline void
rma_set_send(struct plx_rma *r, struct plx_rma_ep *e, struct plx_rma_req *o)
{
	bool was = e->send != NULL;

	e->send = o;
	if (was == (o != NULL))
		return;
	if (was) {
		TAILQ_REMOVE(&r->eps, e, link);
		r->n_eps--;
	} else {
		TAILQ_INSERT_TAIL(&r->eps, e, link);
		r->n_eps++;
		plx_eps_need_turn(rma_ep_of(e)->eps);
	}
}

/* rma_op.c */

/** The operation is complete: remove it from all lists, complete its request. */
void rma_end(struct plx_rma *r, struct plx_req *req, int err);

/** Remove it from all lists; plx_rma_over() completes it. */
void rma_unlink(struct plx_rma *r, struct plx_req *req);

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

/** Read or write by the device. @return as plx_peer_rma() */
static inline int
rma_dev_move(struct plx_ep *ep, uint8_t kind, void *buf, uint64_t remote, uint64_t len)
{
	struct plx_rma_op op = {.peer = ep->peer, .local = buf, .remote = remote, .len = len,
		.put = kind == PLX_RMA_PUT};

	return plx_peer_rma(&op);
}

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

/** Move the operations that can go together with the first one to send. @return how many */
unsigned rma_burst_step(struct plx_rma *r, struct plx_rma_ep *e);

/* rma_offer.c */

/** Offer an operation to the target. @return whether it did; then it is in flight */
bool rma_offer(struct plx_rma *r, struct plx_rma_req *o);

/** @return whether it has ended, or is the device's now. */
bool rma_offer_is_over(struct plx_rma *r, struct plx_rma_req *o);

/** @return the ep's cell, which is idle, or NULL: nothing is offered to the target now. */
struct plx_rma_cell *rma_cell_to_offer(const struct plx_rma_req *o);

/** Learn whether the target polls: it did something for this side, or another operation went without it. */
void rma_answered(struct plx_ep *ep, bool did);

/* rma_share.c */

/**
 * The wait of an operation has failed. @return whether the target may still write to its buffer: then
 * rma_share_step() ends it, when the target does no more
 */
bool rma_share_outlives(struct plx_rma_req *o, int err);

/**
 * A long put or get, copied by both sides.
 * @return 1 a part of it, or all, is over; -EAGAIN not yet; 0 the device does it alone
 */
int rma_share_step(struct plx_rma *r, struct plx_rma_req *o);

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

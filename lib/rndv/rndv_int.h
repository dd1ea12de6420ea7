/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_int.h - between the files of lib/rndv
 */
#ifndef RNDV_INT_H
#define RNDV_INT_H

#include "plx_rndv.h"

#define RNDV_NONE UINT32_MAX

/** What a request in a run list does there. */
enum rndv_role {
	RNDV_IDLE,
	RNDV_GET,
	RNDV_SPLIT,
	RNDV_DRAIN, /* a SPLIT that failed: waits until its helper has stopped */
	RNDV_FRAG, /* receiver: waits for DATA, or DONE; not in a list */
	RNDV_ASK,  /* receiver: has it all, and waits to hear that it was not taken back; not in a list */
	RNDV_HELP, /* sender */
	RNDV_PULL, /* sender: sends DATA */
	RNDV_PUT,  /* sender: writes by the device */
};

/** Pieces of transfers with one peer that move in one direction by one call of the device. */
#define RNDV_BATCH PLX_RMA_BURST
struct rndv_batch {
	unsigned n;
	uint64_t bytes;
	struct plx_rma_op ops[RNDV_BATCH];
	struct rndv_piece {
		struct plx_req *req;
		uint64_t offset;
		uint32_t chunk; /* SPLIT: its index */
	} pieces[RNDV_BATCH];
};

/* rndv.c */
void rndv_send_end(struct plx_rndv *r, struct plx_req *req, int err);
struct plx_rndv *rndv_of(struct plx_ep *ep);
/** A send, or receive, that this ep may speak of now, or NULL. */
struct plx_req *rndv_send_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id);
/** As rndv_send_find() for a receiver that waits: if there is none it is told. */
struct plx_req *rndv_send_asked(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id sreq,
	struct plx_wire_id rreq);
struct plx_req *rndv_recv_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id);
void rndv_recv_end(struct plx_rndv *r, struct plx_req *req, int err);
void rndv_recv_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role);
void rndv_recv_stop_run(struct plx_rndv *r, struct plx_req *req);
void rndv_send_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role);
void rndv_send_stop_run(struct plx_rndv *r, struct plx_req *req);

/**
 * Whether nothing was taken back since the message was announced. Behind reads of the sender's memory:
 * then they found what was sent.
 */
bool rndv_is_lent(const struct plx_req_rndv *v);
/** All is read, and perhaps taken back: ask. err is how the receive ends if not. @return 0 or -errno */
int rndv_ask(struct plx_rndv *r, struct plx_req *req, int err);

/* rndv_get.c: data moved by reading and writing the peer's memory */
int rndv_get_start(struct plx_rndv *r, struct plx_req *req);
int rndv_split_start(struct plx_rndv *r, struct plx_req *req);
/** Show peers where this end runs. */
void rndv_split_place(struct plx_ep *ep);
/** @return whether the sender at ep, who announced last, runs on this very core: it could not help meanwhile. */
bool rndv_split_is_near(struct plx_ep *ep);
void rndv_split_stop(struct plx_req *req);
/** Move what was added, and note in each request how that went; ends none. @return how many moved */
unsigned rndv_batch_run(struct plx_rndv *r, struct rndv_batch *b);
unsigned rndv_get_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
unsigned rndv_split_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
unsigned rndv_drain_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
unsigned rndv_help_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);

/* rndv_put.c: data written by the device */
void rndv_put_stop(struct plx_req *req, bool revoke);
int rndv_put_start(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_put_step(struct plx_rndv *r, struct plx_req *req);

/**
 * Whether a piece is still being written. One that the receiver was told of is there, and it may
 * ask for the next before the device has said here that the writes are over.
 */
static inline bool
rndv_send_writes(const struct plx_req *req)
{
	return req->send.n_out != 0 && !req->send.into.told;
}

/* rndv_frag.c: data sent as messages */
int rndv_frag_start(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_pull_step(struct plx_rndv *r, struct plx_req *req);

#endif

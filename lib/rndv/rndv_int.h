/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_int.h - between the files of lib/rndv
 */
#ifndef RNDV_INT_H
#define RNDV_INT_H

#include "plx_rndv.h"

#define RNDV_NONE UINT32_MAX

/** The part that a request in a run list plays. */
enum rndv_role {
	RNDV_IDLE,
	RNDV_BEGIN, /* receiver: the next turn chooses the scheme */
	RNDV_GET,
	RNDV_SPLIT,
	RNDV_DRAIN, /* a SPLIT that failed: waits until its helper has no chunk */
	RNDV_AWAIT, /* receiver: waits for DATA, LIST or DONE; not in a list */
	RNDV_ASK,  /* receiver: has all data, and waits for the answer about the epoch; not in a
	            * list */
	RNDV_HELP, /* sender */
	RNDV_PULL, /* sender: sends DATA */
	RNDV_LIST, /* sender: sends LIST */
	RNDV_PUT,  /* sender: writes by the device */
	RNDV_ROLES,
};

struct rndv_batch;

/** By role; the schemes stand above rndv.c, which calls them by this table. */
struct rndv_schemes {
	/* a receive, by the role of whoever moves its data. @return 0; else nothing has changed */
	int (*start[RNDV_ROLES])(struct plx_rndv *r, struct plx_req *req);
	/* of each turn; pieces go into the batch. @return how many moved */
	unsigned (*step[RNDV_ROLES])(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
	/* a receive whose ep fails: it completes later, as the sender may still write to its buffer. @return whether so */
	bool (*outlives)(struct plx_req *req, int err);
	/* a DATA for a receive that reads chunks */
	void (*split_data)(struct plx_rndv *r, struct plx_req *req, uint64_t offset, const uint8_t *data, uint32_t len);
	bool (*loan_info)(const struct plx_wait *w, struct plx_wait_info *out);
};

/** Pieces of transfers with one peer in one direction, moved by one call of the device. */
#define RNDV_BATCH 8
struct rndv_batch {
	unsigned n;
	bool put;
	struct plx_peer *peer;
	uint64_t bytes;
	struct plx_rma_piece moves[RNDV_BATCH];
	struct rndv_piece {
		struct plx_req *req;
		void (*moved)(struct plx_req *req, const struct rndv_piece *p, int rc);
		uint64_t offset;
		uint32_t chunk; /* SPLIT: its index */
	} pieces[RNDV_BATCH];
};

/*
 * Whether the other side takes part in messages of transfers that both sides move. plx_ep.of_rndv.
 * How often more this side waits for it in vain before it does without.
 */
struct rndv_hope {
	uint64_t since; /* ticks */
	uint32_t left;
};

struct rndv_ep {
	struct rndv_hope tx, rx; /* to send such messages, to receive them */
};
_Static_assert(sizeof(struct rndv_ep) <= sizeof(((struct plx_ep *)0)->of_rndv), "an ep has room for it");

static inline struct rndv_ep *
rndv_ep(struct plx_ep *ep)
{
	return (struct rndv_ep *)ep->of_rndv;
}

/* Waits know their ep only. */
static inline struct plx_rndv *
rndv_of(struct plx_ep *ep)
{
	return ep->eps->engine[PLX_EP_RNDV];
}

/* The part of this end's queue that peers see; NULL: its device shares nothing. */
static inline struct plx_rndv_shared *
rndv_own_shared(const struct plx_ep *ep)
{
	return ep->peer->caps & PLX_DEV_SHARED ? ep->peer->q->shared : NULL;
}

static inline struct plx_rndv_cursor *
rndv_cursor(const struct plx_rndv_rx *v)
{
	return &((struct plx_rndv_shared *)v->ep->peer->q->shared)->cursors[v->slot];
}

/* rndv.c: transfers */
/**
 * Whether nothing was withdrawn since the message was announced. Called after reads of the
 * sender's memory: then they found what was sent.
 */
bool rndv_is_valid(const struct plx_rndv_rx *v);
bool rndv_epoch_is(const struct plx_ep *ep, uint32_t epoch);
void rndv_cursor_put(struct plx_rndv_rx *v);
/** Give a receive the name by which the sender answers; it may have one. @return 0; -ENOMEM */
int rndv_recv_name(struct plx_rndv *r, struct plx_req *req);
void rndv_send_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role);
void rndv_send_stop_run(struct plx_rndv *r, struct plx_req *req);
void rndv_recv_start_run(struct plx_rndv *r, struct plx_req *req, enum rndv_role role);
void rndv_recv_stop_run(struct plx_rndv *r, struct plx_req *req);
/** A send that this ep may complete, or NULL. */
struct plx_req *rndv_send_find_any(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id);
/** A send, or receive, that a message of this ep may refer to now, or NULL. */
struct plx_req *rndv_send_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id);
struct plx_req *rndv_recv_find(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id id);
/** As rndv_send_find() for a receiver that waits: without a send it gets a CANCEL. */
struct plx_req *rndv_send_asked(struct plx_rndv *r, struct plx_ep *ep, struct plx_wire_id sreq,
	struct plx_wire_id rreq);
void rndv_send_end(struct plx_rndv *r, struct plx_req *req, int err);
/** Of a receive that a posting call has matched. */
unsigned rndv_begin_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
void rndv_recv_end(struct plx_rndv *r, struct plx_req *req, int err);
/** All of it was read, or no more can be: it completes with err, if the buffer was still valid. */
void rndv_read_end(struct plx_rndv *r, struct plx_req *req, int err);
/** Release the registration for the sender's writes, if there is one. */
void rndv_mem_put(struct plx_rndv_rx *v, bool revoke);

/* Pieces of several transfers, moved by one call of the device. */
/**
 * Move the added pieces, and record the result in each request; completes none. @return how
 * many moved
 */
unsigned rndv_batch_run(struct plx_rndv *r, struct rndv_batch *b);
/** Add one piece of a transfer; the device sees it when the batch is run. */
unsigned rndv_batch_add(struct plx_rndv *r, struct rndv_batch *b, const struct plx_rma_op *op,
	const struct rndv_piece *p);
/** As rndv_batch_add() for len bytes between the request's buffer and a list; it is moved at once. */
unsigned rndv_batch_list(struct plx_rndv *r, struct rndv_batch *b, struct plx_peer *peer, struct plx_rndv_list *list,
	bool put, const struct rndv_piece *p, uint64_t len);
/** As rndv_batch_add() for len bytes that a receive reads. */
unsigned rndv_batch_read(struct plx_rndv *r, struct rndv_batch *b, const struct rndv_piece *p, uint64_t len);

/* rndv_frag.c: the sender sends messages */
int rndv_frag_start(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_pull_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);

/* rndv_list.c: lists of pieces of memory */
/** Drop a list; NULL is none. */
static inline void
rndv_list_put(struct plx_rndv *r, struct plx_rndv_list **list)
{
	if (*list != NULL)
		plx_pool_put(r->lists, *list);
	*list = NULL;
}
/** A LIST has come. @return 0, or -EBADMSG: it is bad, or there is no memory here */
int rndv_list_take(struct plx_rndv *r, struct plx_req *req, const uint8_t *data, uint32_t len);
/** Move bytes of a message between a request's buffer and the peer's memory. @return 0 or an error of the device */
int rndv_list_copy(struct plx_peer *peer, struct plx_req *req, struct plx_rndv_list *list, bool put, uint64_t offset,
	uint64_t len);
/**
 * Describe a buffer from offset on, up to end, in one message with a header of hdr_len bytes.
 * @return pieces; offset: of what follows them
 */
unsigned rndv_list_fill(const struct plx_req *req, const struct plx_ep *ep, size_t hdr_len, uint64_t *offset,
	uint64_t end, struct plx_wire_piece *p);
/** Send an announcement, with the buffer's pieces behind it if the receiver may read them and they are few. */
int rndv_list_announce(const struct plx_req *req, struct plx_tx *tx);
/** Ask the sender to help to write to a buffer in pieces. @return 0; -EAGAIN not now, or too many pieces */
int rndv_list_help(struct plx_rndv_rx *v, const struct plx_req *req, const struct plx_wire_help *h);
/** @return the receiver's memory, which HELP names in one piece or in several; NULL: it does not, or no memory here */
struct plx_rndv_list *rndv_list_of_help(struct plx_rndv *r, const struct plx_wire_help *h, const uint8_t *data,
	uint32_t len);

/* rndv_loan.c: messages that the application reads where they lie */
/** The worker ends before them. */
void rndv_loans_detach(struct plx_rndv *r);
/** Fill out. @return whether the wait is a loan's */
bool rndv_loan_info(const struct plx_wait *w, struct plx_wait_info *out);

/* rndv_where.c: the receiver asks for the sender's pieces */
int rndv_where_start(struct plx_rndv *r, struct plx_req *req);
/** All of a list is read, and it was not all. */
int rndv_where_next(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_where_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);

/** @return whether the buffer is memory that the peer's device may read or write where it lies. */
static inline bool
rndv_is_memory(const struct plx_req *req, const struct plx_peer *peer)
{
	return plx_req_in_place(req, peer) || req->dt->pieces != NULL;
}

/* rndv_put.c: the sender writes by the device */
int rndv_put_start(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_put_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);

/** A write, or a message that was not copied, is over. @param arg the request of the sender */
void rndv_out_done(void *arg, int err);

/**
 * Whether a piece is still being written. After DONE its data is there, and the receiver
 * may ask for the next before the device has reported the completion here.
 */
static inline bool
rndv_send_writes(const struct plx_req *req)
{
	return plx_rndv_tx(req)->n_out != 0 && !plx_rndv_tx(req)->told;
}

/* rndv_get.c: the receiver reads alone */
int rndv_get_start(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_get_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);

/* rndv_split.c: the receiver reads, and the sender helps by writing */
int rndv_split_start(struct plx_rndv *r, struct plx_req *req);
unsigned rndv_split_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
void rndv_split_data(struct plx_rndv *r, struct plx_req *req, uint64_t offset, const uint8_t *data, uint32_t len);
bool rndv_split_outlives(struct plx_req *req, int err);
unsigned rndv_drain_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);
unsigned rndv_help_step(struct plx_rndv *r, struct plx_req *req, struct rndv_batch *b);

#endif

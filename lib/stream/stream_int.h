/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_int.h - between the files of lib/stream
 */
#ifndef STREAM_INT_H
#define STREAM_INT_H

#include <rte_common.h>

#include "plx_stream.h"

/** Before the bytes of a chunk: its plx_msg, to find it when the application returns them. */
#define STREAM_BACK_LEN sizeof(struct plx_msg *)

#define STREAM_GRANT_AT (PLX_STREAM_WINDOW / 4)

/* stream_chunk.c */
void stream_grant(struct plx_stream *s);
/** The first announced send of a stream changes, or there is none. */
void stream_rts_set(struct plx_stream *s, struct plx_msg *m);
/** Bytes that were counted as stored are released. */
void stream_unkeep(struct plx_streams *all, uint64_t len);
/** It is read, or never will be: free its memory, and return its sender's credit. */
void stream_chunk_end(struct plx_stream *s, struct plx_msg *m);
void stream_chunk_remove(struct plx_stream *s, struct plx_msg *m);
void stream_chunks_drop(struct plx_stream *s, struct plx_stream_chunks *list);
/** Drop arrived bytes that nobody will read. */
void stream_drop_unread(struct plx_stream *s);

/* stream_make.c */
struct plx_stream *stream_new(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id);
/** Its handle exists, or NULL. */
void stream_user_set(struct plx_stream *s, struct plx_ep_user *user);
void stream_free(struct plx_stream *s);
/** Close a stream whose ep has failed and which has no handle, unless a transfer of it outlives the ep. */
void stream_close_if(struct plx_stream *s);
/** Free a stream that is not needed any more. */
void stream_free_if(struct plx_stream *s);
void stream_recvs_fail(struct plx_stream *s, int err);

/* stream_match.c */
/** Match receives and bytes. */
void stream_match(struct plx_stream *s);
/** Fetch a piece of s->rts into our memory, to be read from there. @return 0 or -ENOMEM */
int stream_fetch_piece(struct plx_stream *s);
/** Start the timer, if no receive waits for an announced send. */
void stream_late_if(struct plx_stream *s);
/** The streams' timer: serve what has waited long enough, or has become possible. */
void stream_ahead(struct plx_timer *t, uint64_t now_ticks);

static inline struct plx_stream *
stream_find(const struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_stream *s;

	LIST_FOREACH(s, &plx_stream_ep(ep)->all, link) {
		if (likely(s->conn_id == conn_id))
			break;
	}
	return s;
}

static inline void
stream_set_ready(struct plx_stream *s, bool ready)
{
	if (s->ready == ready)
		return;
	s->ready = ready;
	if (ready)
		TAILQ_INSERT_TAIL(&s->all->ready, s, ready_link);
	else
		TAILQ_REMOVE(&s->all->ready, s, ready_link);
}

/** @return the first of a stream's sends or receives, or NULL. */
static inline struct plx_req *
stream_first(const struct plx_stream_reqs *reqs)
{
	return plx_req_of_own(TAILQ_FIRST(reqs));
}

/**
 * @return the length of a receive when len more bytes arrive: whole elements, unless it
 *   waits for all
 */
static inline uint64_t
stream_recv_total(const struct plx_req *req, uint64_t len)
{
	const struct plx_stream_req *r = plx_stream_req(req);
	uint64_t total = RTE_MIN(r->offset + len, req->len);

	if (total != req->len && !r->waitall && r->elem > 1 && total >= r->elem)
		total -= total % r->elem;
	return total;
}

/** @return whether a receive with this many bytes is complete */
static inline bool
stream_recv_ends(const struct plx_req *req, uint64_t total)
{
	return total == req->len || (!plx_stream_req(req)->waitall && total >= plx_stream_req(req)->elem);
}

/** Give bytes to a receive. @return how many it took; *done if it is complete */
static inline uint64_t
stream_recv_take(struct plx_req *req, const uint8_t *from, uint64_t len, bool *done)
{
	struct plx_stream_req *r = plx_stream_req(req);
	uint64_t total = stream_recv_total(req, len), n = total - r->offset;

	*done = stream_recv_ends(req, total);
	plx_req_copy_in(req, r->offset, from, n);
	r->offset = total;
	return n;
}

/** A receive is complete. */
static inline void
stream_recv_end(struct plx_stream *s, struct plx_req *req, int err)
{
	TAILQ_REMOVE(&s->recvs, plx_stream_req(req), link);
	plx_stream_req(req)->stream = NULL;
	plx_req_complete(req, err);
}

/** A chunk costs what its sender paid for it. */
static inline uint64_t
stream_chunk_cost(const struct plx_msg *m)
{
	return (m->kind == PLX_MSG_STREAM ? m->len : 0) + PLX_STREAM_COST;
}

static inline uint8_t *
stream_chunk_data(struct plx_msg *m)
{
	return m->data + STREAM_BACK_LEN + m->got;
}

static inline void
stream_grant_if(struct plx_stream *s)
{
	if (unlikely(s->owed >= STREAM_GRANT_AT))
		stream_grant(s);
}

#endif

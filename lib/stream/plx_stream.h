/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_stream.h - bytes in order between two handles, with flow control by the reader
 *
 * Design notes
 * - A stream belongs to an ep and to the number of a handle (plx_ep_user.conn_id), not to the
 *   handle, which may be created after the first bytes have arrived.
 * - A sender has credit for PLX_STREAM_WINDOW; a message costs its bytes and a constant for its
 *   storage (PLX_STREAM_COST). The receiver grants, in quarters of the window, the cost of read
 *   bytes, and of stored bytes while all streams of the worker store at most unread_max. So a
 *   program that reads only after its peer has sent everything makes progress, as with UCX; above
 *   that bound a reader that stops stops its sender. A send without credit waits in its stream's
 *   own queue and delays nothing else on the ep.
 * - A long send is announced, and fetched by the receives that reach it (lib/rndv), or a piece at
 *   a time into our memory: when the program reads in place, reads in small steps, or has posted
 *   no receive for a while (PLX_STREAM_AHEAD_US), within unread_max. Meanwhile it is a chunk like
 *   others, in its place.
 * - Receives wait only while there are no bytes, or while bytes for the first of them are being
 *   fetched: arriving data is copied to the waiting receive at once, and the remainder is stored
 *   as a chunk. A reader with one receive at a time gets one long message a turn (pace), so that
 *   it has the next receive posted before the next message is copied. A chunk that the
 *   application reads in place has the address of its plx_msg in the 8 bytes before its data.
 * - All functions are for the owner thread.
 */
#ifndef PLX_STREAM_H
#define PLX_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plx_ep.h"
#include "plx_mem.h"
#include "plx_req.h"
#include "plx_rndv.h"
#include "plx_stat.h"
#include "plx_timer.h"

#define PLX_STREAM_WINDOW    (256u << 10) /* both sides must agree */
#define PLX_STREAM_COST	     64u	  /* of a message, besides its bytes */
#define PLX_STREAM_PIECE_MAX (32u << 10)  /* bytes of one message */
#define PLX_STREAM_AHEAD_US  1000u	  /* that an announced send waits for a receive */

struct plx_stream_stat {
	uint64_t streams;	  /* created so far */
	uint64_t sends;
	uint64_t tx_no_credit;	  /* times that a send had to wait for the reader */
	uint64_t rx_direct_bytes;	  /* bytes copied to a waiting receive */
	uint64_t rx_kept_bytes;	  /* stored bytes */
	uint64_t rx_fetched_bytes;	  /* bytes fetched from the sender */
	uint64_t rx_ahead_bytes;	  /* of these, bytes before a receive for them */
	uint64_t rx_stopped;	  /* messages whose cost was not granted at once */
	uint64_t rx_paced;	  /* times that the worker was asked for shorter turns */
	uint64_t rx_drop_closed;  /* bytes for a closed handle */
	uint64_t rx_drop_no_memory;
	uint64_t rx_drop_no_credit; /* messages beyond the window */
	uint64_t rx_drop_refused; /* of too many handles that do not exist here: their ep failed */
	uint64_t drop_bad_grant;
	uint64_t grants;
};

extern const struct plx_stat_row plx_stream_stat_rows[];

/** Of an ep. */
struct plx_stream_ep {
	LIST_HEAD(, plx_stream) all;
	uint32_t n_unmet; /* without a handle so far */
};
_Static_assert(sizeof(struct plx_stream_ep) == sizeof(((struct plx_ep *)0)->of_stream), "it is kept there");

/** @return this engine's state of an ep. */
static inline struct plx_stream_ep *
plx_stream_ep(const struct plx_ep *ep)
{
	return (void *)(uintptr_t)ep->of_stream;
}

/** A request of either end of a stream. */
struct plx_stream_req {
	PLX_REQ_HEAD;
	struct plx_stream *stream; /* NULL: in no queue */
	struct plx_ep_user *user;  /* receive, on the way to the owner */
	struct plx_ep *ep;	   /* send, the same */
	uint32_t conn_id;
	TAILQ_ENTRY(plx_stream_req) link; /* of the stream's queue */
	uint64_t offset;	   /* bytes sent or received so far */
	uint64_t elem;		   /* receive: of whole elements of so many bytes */
	bool waitall;
	uint64_t since;		   /* ticks; of a send that waits, and of a receive */
	struct plx_wait wait;	   /* send */
};
_Static_assert(sizeof(struct plx_stream_req) <= PLX_REQ_SIZE, "a request has room for it");

TAILQ_HEAD(plx_stream_reqs, plx_stream_req);

/** @return this engine's part of a request of its own. */
static inline struct plx_stream_req *
plx_stream_req(const struct plx_req *req)
{
	return (void *)(uintptr_t)req;
}

/** @return how many bytes a receive has got. */
static inline uint64_t
plx_stream_got(const struct plx_req *req)
{
	return plx_stream_req(req)->offset;
}

/** All streams of a worker. */
struct plx_streams {
	uint32_t pace;			/* number of next messages that should have a turn each */
	struct plx_pool pool;
	struct plx_eps *eps;
	struct plx_msg_pools *msgs;
	struct plx_rndv *rndv;
	struct plx_req_pool xfers; /* our own transfers; completed by the owner, not through a ring */
	uint64_t rndv_min;
	uint64_t unread_max;
	uint64_t kept;			/* cost of unread bytes */
	bool full;			/* bytes were not stored, or not fetched, for want of room */
	TAILQ_HEAD(, plx_stream) ready; /* with data that came since the last poll */
	TAILQ_HEAD(, plx_stream) late;	/* with an announced send that no receive has reached */
	TAILQ_HEAD(, plx_stream) stopped; /* with unreturned cost */
	struct plx_timers *timers;
	struct plx_timer ahead;		/* armed while late and stopped have work */
	uint64_t now;			/* ticks, when the worker has last looked at the time */
	struct plx_stream_stat stat;
};

struct plx_stream {
	struct plx_streams *all;
	struct plx_ep *ep;
	struct plx_ep_user *user; /* NULL: not created yet, or closed */
	uint32_t conn_id;
	uint32_t busy;		  /* callbacks run below: must not be freed */
	bool unmet;		  /* one of n_unmet: not created yet */
	bool closed;		  /* the handle is closed: arriving bytes are dropped */
	bool ep_failed;		  /* plx_stream_ep_failed() has looked at it */
	bool ready;
	bool pended;		  /* pend is in the ep's list */
	bool sending;		  /* send_run() is running */
	int err;		  /* bytes were lost: nothing more can be received */
	/* sending */
	uint64_t credit;
	struct plx_stream_reqs sends;
	struct plx_pend pend;
	/* receiving */
	struct plx_stream_reqs recvs;
	TAILQ_HEAD(plx_stream_chunks, plx_msg) chunks, lent;
	struct plx_msg *rts;	  /* first of the chunks that is an announced send, or NULL */
	struct plx_req *xfer;	  /* bytes of rts are being fetched */
	struct plx_msg *xfer_to;  /* into this, or NULL: into the first receive */
	struct plx_dt xfer_dt;	  /* the receive's, from its present offset */
	int lost;		  /* why the remainder of rts cannot be fetched, or 0 */
	bool matching;		  /* stream_match() is running */
	bool reading;		  /* stream_read_ahead() is running */
	bool stopped;
	bool fed;		  /* the last arrival has completed a receive */
	uint64_t held;		  /* cost of arrived bytes that is granted when they are read */
	uint64_t owed;		  /* cost that may be granted and is not yet */
	TAILQ_ENTRY(plx_stream) ready_link, late_link, stopped_link;
	LIST_ENTRY(plx_stream) link; /* of the ep's */
};

/** The worker's settings. */
struct plx_streams_conf {
	uint64_t rndv_min;   /* longer sends are announced and fetched when they are read, bytes */
	uint64_t unread_max; /* unread bytes before senders have to wait */
};

void plx_streams_open(struct plx_streams *all, struct plx_eps *eps, struct plx_msg_pools *msgs,
	struct plx_rndv *rndv, struct plx_timers *timers, const struct plx_streams_conf *conf);
void plx_streams_close(struct plx_streams *all);

/** Slow path of plx_stream_of(). */
struct plx_stream *plx_stream_of_slow(struct plx_streams *all, struct plx_ep_user *user);

/** As plx_stream_of() by number; there may be no handle. */
struct plx_stream *plx_stream_get(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id);

/** @return the stream of a handle, created if needed, or NULL without memory. */
static inline struct plx_stream *
plx_stream_of(struct plx_streams *all, struct plx_ep_user *user)
{
	return likely(user->stream != NULL) ? user->stream : plx_stream_of_slow(all, user);
}

/** Numbers of crossed handles differ in the last bit. @return the number on the wire */
static inline uint32_t
plx_stream_wire_id(uint32_t conn_id)
{
	return conn_id ^ (conn_id - PLX_EP_CROSSED < PLX_EP_CROSSED);
}

/**
 * @return whether a message of len bytes may be sent at once, as far as the reader and the
 *   ep allow.
 */
static inline bool
plx_stream_is_open(const struct plx_stream *s, uint64_t len)
{
	return TAILQ_EMPTY(&s->sends) && plx_ep_open(s->ep) && s->credit >= len + PLX_STREAM_COST;
}

/** @return whether plx_stream_send_sure() may send len bytes now. */
static inline bool
plx_stream_is_sure(const struct plx_stream *s, uint64_t len)
{
	return len != 0 && plx_stream_is_open(s, len) && plx_peer_is_sure(s->ep->peer, len);
}

/** Send bytes that the device is certain to take. */
static inline void
plx_stream_send_sure(struct plx_stream *s, const void *buf, uint64_t len)
{
	s->credit -= len + PLX_STREAM_COST;
	plx_peer_tx_sure(s->ep->peer, PLX_WIRE_STREAM, plx_stream_wire_id(s->conn_id), buf, len);
}

/**
 * Send bytes in one message now or not at all; the ep is connected.
 * @return 0; -EAGAIN nothing happened; or another error.
 */
static inline int
plx_stream_send_now(struct plx_stream *s, const void *buf, uint64_t len)
{
	struct plx_ep *ep = s->ep;
	uint64_t id = plx_stream_wire_id(s->conn_id);
	struct plx_tx tx;
	int rc;

	if (unlikely(!plx_stream_is_open(s, len)))
		return -EAGAIN;
	if (likely(len <= ep->peer->short_max)) {
		rc = plx_ep_tx_short(ep, PLX_WIRE_STREAM, id, buf, len);
	} else if (len <= PLX_STREAM_PIECE_MAX && len + sizeof(id) <= ep->peer->mtu) {
		tx = (struct plx_tx){.peer = ep->peer, .hdr = &id, .hdr_len = sizeof(id),
			.data = buf, .len = len, .op = PLX_WIRE_STREAM};
		rc = plx_peer_tx(&tx);
	} else {
		return -EAGAIN;
	}
	if (likely(rc == 0))
		s->credit -= len + PLX_STREAM_COST;
	return rc;
}

/** Send req's bytes after pending ones; it completes when its buffer may be reused. */
void plx_stream_send(struct plx_stream *s, struct plx_req *req);

/** Receive into req, whose elem and waitall are set; it completes with plx_stream_got() bytes. */
void plx_stream_recv(struct plx_stream *s, struct plx_req *req);

/**
 * Receive arrived bytes into req; it does not complete.
 * @return 0; -EAGAIN: not enough bytes, nothing happened; or the reason why none will come
 */
int plx_stream_recv_now(struct plx_stream *s, struct plx_req *req);

/**
 * Give the application the next chunk in place. @return its bytes, valid until
 * plx_stream_return(), or NULL
 */
void *plx_stream_lend(struct plx_stream *s, uint64_t *len);
void plx_stream_return(struct plx_stream *s, void *data);

/** Fill out. @return false: the operation that waits is not this engine's. Thread: owner. */
bool plx_stream_wait_info(const struct plx_wait *w, struct plx_wait_info *out);

/** Call fn for each receive of an ep's streams that waits. Thread: owner. */
void plx_stream_recvs_each(const struct plx_ep *ep, void (*fn)(const struct plx_wait_info *info, void *arg), void *arg);

/** List handles whose streams got data since the last call. @return how many */
uint32_t plx_stream_poll(struct plx_streams *all, struct plx_ep_user **users, uint32_t n);

/** Arrived messages. */
void plx_stream_on_rts(struct plx_streams *all, struct plx_peer *src,
	const struct plx_wire_stream_rts *h);
void plx_stream_on_data(struct plx_streams *all, struct plx_peer *src, uint32_t conn_id,
	const uint8_t *data, uint32_t len);
void plx_stream_on_grant(struct plx_streams *all, struct plx_ep *ep, const struct plx_wire_grant *h);

/** The handle closes and is no longer among ep's: its receives complete with -ECANCELED. */
void plx_stream_detach(struct plx_ep *ep, struct plx_ep_user *user);

/** The handle has another ep now: what waits on a pending ep's stream moves there. */
void plx_stream_move(struct plx_ep_user *user);

/** The handle has failed, and its ep has not: waiting receives complete with err. */
void plx_stream_user_failed(struct plx_ep_user *user, int err);

/** The ep has failed: waiting receives complete with err. */
void plx_stream_ep_failed(struct plx_ep *ep, int err);

#endif

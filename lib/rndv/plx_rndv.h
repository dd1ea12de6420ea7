/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_rndv.h - rendezvous: messages too big for eager
 *
 * The sender's RTS takes the message's place in the matching order; the receiver chooses how
 * the data moves:
 *
 *	GET	the receiver reads it, one chunk per turn
 *	SPLIT	both sides copy: each takes chunks from a cursor in the receiver's
 *		shared area, so one side alone makes progress, and two cores copy
 *		when both poll; by messages of the sender where these are faster
 *	PUT	the receiver registers its buffer with the device and sends its key, and the
 *		device writes into it; for devices that can do that
 *	LIST	a buffer on either side is in pieces of memory: the receiver asks for the sender's, and
 *		reads them as with GET or SPLIT
 *	FRAG	the sender sends it as a pipeline of DATA messages: two copies, or one
 *		where the device sends without a copy; works with every device
 *
 * The receiver acknowledges when it has all data.
 *
 * A sender may withdraw a message, and the application owns the buffer again at once, however full
 * the ring to the receiver is. The receiver detects this itself: the sender counts withdrawals in a
 * word of its shared area (epoch) before it returns the buffer; an announcement carries the count; a
 * receiver that has read everything compares it with the word, loaded after its reads. If they are
 * equal, no older announcement has been withdrawn, and what was read is what was sent. If not, the
 * receiver asks the sender (PULL of 0 bytes), which answers DATA if this message is still valid, and
 * CANCEL if not. A receiver that waits for the sender, for help or for data, gets CANCEL without asking.
 *
 * All functions are for the owner thread.
 */
#ifndef PLX_RNDV_H
#define PLX_RNDV_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plx_conf.h"
#include "plx_ep.h"
#include "plx_req.h"
#include "plx_req_id.h"
#include "plx_stat.h"

struct plx_rndv_stat {
	uint64_t sends, recvs;
	uint64_t get, split, frag, put; /* transfers by scheme */
	uint64_t list;			/* of get and split: with a buffer in pieces of memory */
	uint64_t chunks_sent;		/* chunks of a split that this side has sent as messages */
	uint64_t bytes_own, bytes_help; /* copied by this side as receiver, as helper */
	uint64_t drop_bad_id;		/* answers without a question */
	uint64_t drop_bad_range;
	uint64_t loans, loans_returned; /* messages loaned to the application where they lie */
	uint64_t loans_refused;		/* too many at once */
	uint64_t taken_back;		/* sends withdrawn */
	uint64_t asked_again;		/* receives that needed an answer about the epoch */
	uint64_t errors;
};

extern const struct plx_stat_row plx_rndv_stat_rows[];

/** The cursor that both sides of a transfer take chunks from. */
struct plx_rndv_cursor {
	_Atomic uint64_t next; /* generation << 32 | taken from the back << 16 | from the front */
	_Atomic uint64_t done; /* generation << 32 | chunks that the sender has copied */
	_Atomic uint64_t bad;  /* generation << 32 | the chunk that it could not copy, plus 1; it takes no more */
	_Atomic uint64_t sent; /* generation << 32 | chunks that it has sent as messages */
	uint64_t pad[4];
};

/**
 * A queue's shared area. Writer: its owner; the sender of a transfer takes from next, counts in
 * done, and gives back in bad.
 */
struct plx_rndv_shared {
	_Atomic uint32_t cpu;	/* on which the last transfer was announced, plus 1; 0: none was */
	_Atomic uint32_t epoch; /* announced messages that were withdrawn; written before their
	                         * buffers are reused */
	uint32_t pad[14];
	struct plx_rndv_cursor cursors[];
};
_Static_assert(sizeof(struct plx_rndv_cursor) == 64 && sizeof(struct plx_rndv_shared) == 64, "shared layout");

/** @return the number of cursors in a shared area of len bytes. */
static inline uint64_t
plx_rndv_n_cursors(size_t len)
{
	const size_t head = sizeof(struct plx_rndv_shared);

	len = RTE_MIN(len, (size_t)PLX_SHARED_RNDV);
	return len < head ? 0 : (len - head) / sizeof(struct plx_rndv_cursor);
}

#define PLX_RNDV_PATIENCE_US 2u

#define PLX_RNDV_LIST_MAX  64u	 /* pieces of memory in a list */
#define PLX_RNDV_LISTS_MAX 4096u /* lists of a worker: more transfers go by fragments */

/** The other side's memory with a part of a message. */
struct plx_rndv_list {
	uint64_t start; /* of the first piece in the message */
	uint64_t len;	/* of all pieces, bytes */
	uint64_t at;	/* of piece i, from start on: where the last look ended */
	uint32_t n, i;
	struct plx_wire_piece p[PLX_RNDV_LIST_MAX];
};

/** What an announcement has behind its header: a plx_wire_piece each. Not checked. */
struct plx_rndv_pieces {
	const uint8_t *data;
	uint32_t len; /* bytes */
};

#define PLX_RNDV_LOANS_MAX 1024u /* messages of a worker that are loaned at once */
#define PLX_LOAN_PIECES	   8u	 /* of a message, in pages that do not follow each other here: more are copied */

/** An announced message that the application reads where it lies. Owner: the worker's; it outlives the worker. */
struct plx_loan {
	struct plx_wait wait;
	LIST_ENTRY(plx_loan) link; /* of rndv's */
	struct plx_rndv *rndv;	   /* NULL: the worker is destroyed */
	struct plx_ep *ep;	   /* NULL: it has failed */
	void *user;		   /* the face's */
	struct plx_rts rts;
	uint64_t len;
	uint32_t n;
	struct {
		const void *at;
		uint64_t len;
		struct plx_map *map;
	} p[PLX_LOAN_PIECES];
};

/** The sender's side. */
struct plx_rndv_tx {
	struct plx_ep_send msg;
	struct plx_wait wait;
	struct plx_wire_id id;	/* index 0: none */
	bool announced : 1;	/* the receiver may know of it */
	bool announcing : 1;	/* but not of all: the remainder waits in the ep's list */
	bool on_run : 1;	/* linked in rndv's run list */
	bool over : 1;		/* it completes with the writes in flight; err is the status */
	bool counts : 1;	/* as one of ep->n_announced, unless pend.held */
	bool back : 1;		/* it completes unanswered: the receiver may still read the buffer */
	bool puts : 1;		/* the receiver's last request was a write to its memory */
	bool has_mem : 1;	/* msg.mem is set */
	bool has_list : 1;	/* help.list is set, in place of help.addr; while on_run */
	uint8_t role;		/* enum in rndv_int.h */
	bool told;		/* n_out != 0: the receiver knows of all sends and writes */
	uint16_t n_out;		/* incomplete writes, and messages that are not copied */
	int16_t err;		/* -errno */
	TAILQ_ENTRY(plx_rndv_tx) run;
	struct plx_wire_id rreq; /* of the receiver that asked for help or data */
	union {
		struct {
			union {
				uint64_t addr;
				struct plx_rndv_list *list;
			};
			uint64_t len;
			uint32_t slot, gen, chunk;
		} help;
		struct {
			uint64_t end;
		} pull;
		struct {
			uint64_t start, end; /* of the message, bytes */
			uint64_t addr, key;  /* destination of start */
			bool last;
		} into;
	};
};
_Static_assert(sizeof(struct plx_rndv_tx) <= PLX_REQ_SIZE, "a request has room for it");

/** The receiver's side. */
struct plx_rndv_rx {
	PLX_REQ_HEAD;
	uint64_t info[2]; /* plx_req.recv: of the message that was matched */
	struct plx_ep *ep;
	struct plx_wait wait;
	TAILQ_ENTRY(plx_rndv_rx) run;
	struct plx_rts rts;
	struct plx_wire_id id;
	uint64_t base;	 /* start of this transfer in the message */
	uint64_t copy;	 /* bytes to move */
	uint64_t offset; /* moved so far; SPLIT: of the next message of a chunk that has begun to come, 0 none has */
	uint32_t chunk, n_chunks, mine;
	uint32_t slot, gen; /* cursor; slot UINT32_MAX: none */
	uint32_t held;	    /* chunk that is claimed and not read yet, UINT32_MAX none */
	uint32_t came;	    /* chunks that have come as messages */
	uint32_t taken;	    /* DRAIN: chunks that were ever taken */
	int err;	    /* GET, DRAIN: the error */
	uint8_t role;
	bool on_run;
	bool over;	    /* DRAIN: its ep has failed */
	bool more;	    /* another transfer follows: no acknowledge */
	bool done;	    /* the sender needs no acknowledgement */
	bool gone;	    /* the sender has withdrawn it */
	bool asked;	    /* a LIST may come */
	bool hopes;	    /* SPLIT: messages of the sender are faster than reads */
	void *mem;	    /* plx_dev_mem.drv of the buffer, while it is registered */
	struct plx_rndv_list *list; /* of the sender's memory; or NULL */
};
_Static_assert(sizeof(struct plx_rndv_rx) <= PLX_REQ_SIZE, "a request has room for it");
_Static_assert(offsetof(struct plx_rndv_rx, info) == offsetof(struct plx_req, recv.info_tag) &&
	offsetof(struct plx_rndv_rx, ep) == offsetof(struct plx_req, recv.info_len) + sizeof(uint64_t),
	"the message that was matched stays known");

/** @return the sender's part of a request. */
static inline struct plx_rndv_tx *
plx_rndv_tx(const struct plx_req *req)
{
	return (void *)(uintptr_t)req;
}

/** The same of the receiver's side. */
static inline struct plx_rndv_rx *
plx_rndv_rx(const struct plx_req *req)
{
	return (void *)(uintptr_t)req;
}

struct rndv_schemes;

struct plx_rndv {
	TAILQ_HEAD(, plx_rndv_rx) recvs; /* receivers with work */
	TAILQ_HEAD(, plx_rndv_tx) sends; /* senders that help or send fragments */
	uint32_t n_recvs, n_sends;
	bool later; /* see plx_rndv_later() */
	struct plx_req_ids ids;
	uint32_t scheme; /* PLX_RNDV_x */
	const struct rndv_schemes *schemes;
	uint32_t gen;	 /* of the next cursor */
	uint64_t cursors; /* in use, a bit each */
	struct plx_pool *lists; /* NULL: no memory for one */
	LIST_HEAD(, plx_loan) loans;
	uint64_t chunk, split_min, frag_max, put_min;
	uint64_t patience; /* ticks for which a side waits for the other to take part with messages */
	struct plx_rndv_stat stat;
};

void plx_rndv_open(struct plx_rndv *r, const struct plx_conf *conf);
void plx_rndv_close(struct plx_rndv *r);

/**
 * Wait until no sender writes to the buffer of a receive, as the worker ends before it. Thread: owner.
 * Blocks: while a sender that has a chunk copies it, or is stopped; not when it has left.
 */
void plx_rndv_settle(struct plx_rndv *r);

/**
 * Announce a message; req (ep, which is connected, and tag of its plx_ep_send, buf, len are set)
 * completes when the receiver has it. @return 0, or -errno: nothing was sent and req belongs to the caller.
 */
int plx_rndv_send(struct plx_rndv *r, struct plx_req *req);

/**
 * As plx_rndv_send(), announced by what send() sends: plx_rndv_tx(req)->id names it. send() returns
 * 0 or an error of the device, through plx_rndv_announced(); the fragments of one
 * announcement may take several calls, and send.offset counts the sent bytes.
 */
int plx_rndv_send_as(struct plx_rndv *r, struct plx_req *req, int (*send)(struct plx_pend *p));

/** The result of sending an announcement, or its next pieces. @return rc */
static inline int
plx_rndv_announced(struct plx_req *req, int rc)
{
	plx_rndv_tx(req)->announced = rc == 0 || plx_ep_send(req)->offset != 0;
	plx_rndv_tx(req)->announcing = rc != 0;
	return rc;
}

/** As plx_rndv_send() for a whole small message that completes when it is matched. */
int plx_rndv_send_sync(struct plx_rndv *r, struct plx_req *req);

/**
 * As plx_rndv_send() for an eager message whose turn in the ep's list has come: its pend is
 * out of it.
 * @return the result of its pend.send()
 */
int plx_rndv_send_instead(struct plx_rndv *r, struct plx_req *req);

/** @return the count of withdrawn messages for an announcement to ep. */
uint32_t plx_rndv_epoch(const struct plx_ep *ep);

/**
 * A receive has matched an announced message: move the data and complete req.
 * @param rts copied
 * @param len of the message, bytes; more than req->len is truncation
 * @param where the sender's pieces of memory, copied; NULL: it has not named them
 */
void plx_rndv_recv(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t len,
	const struct plx_rndv_pieces *where, struct plx_req *req);

/**
 * As plx_rndv_recv() for len bytes of the message from base on; req has room for them.
 * @param more the message is not acknowledged yet, unless this fails
 */
void plx_rndv_recv_part(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t base,
	uint64_t len, bool more, struct plx_req *req);

/**
 * Loan an announced message: the sender completes when it is returned.
 * @return 0; nothing has changed: -EOPNOTSUPP it has to be moved; -ENOBUFS PLX_RNDV_LOANS_MAX; -ENOMEM.
 * Allocates: heap.
 */
int plx_rndv_loan(struct plx_rndv *r, struct plx_ep *ep, const struct plx_rts *rts, uint64_t len, struct plx_loan **out);

/** @return whether the sender has withdrawn nothing since it announced the message, and is there. */
bool plx_rndv_loan_is_valid(const struct plx_loan *loan);

/** Return it, and free it. Also when its worker is destroyed: then any thread may. */
void plx_rndv_loan_return(struct plx_loan *loan);

/** Acknowledge to a sender that its message was matched, or that all data has arrived. */
void plx_rndv_ack(struct plx_ep *ep, struct plx_wire_id sreq, int err);

/* Arrived messages; only the length of the header is checked. */
void plx_rndv_on_ack(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_ack *h);
void plx_rndv_on_help(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_help *h,
	const uint8_t *data, uint32_t len);
void plx_rndv_on_pull(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_pull *h);
void plx_rndv_on_where(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_pull *h);
void plx_rndv_on_list(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_list *h,
	const uint8_t *data, uint32_t len);
void plx_rndv_on_into(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_into *h);
void plx_rndv_on_done(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_done *h);
void plx_rndv_on_data(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_data *h,
	const uint8_t *data, uint32_t len);

/**
 * The sender has withdrawn a message that a receive has asked for: the receive completes
 * with -ECONNRESET.
 */
void plx_rndv_on_cancel(struct plx_rndv *r, struct plx_ep *ep, const struct plx_wire_cancel *h);

/**
 * Fill out; op is NULL for a send that is not tagged.
 * @return false: the operation that waits is not this engine's. Thread: owner.
 */
bool plx_rndv_wait_info(const struct plx_wait *w, struct plx_wait_info *out);

/** @return 0: plx_rndv_run() finds nothing to do. */
static inline uintptr_t
plx_rndv_work(const struct plx_rndv *r)
{
	return (uintptr_t)TAILQ_FIRST(&r->recvs) | (uintptr_t)TAILQ_FIRST(&r->sends);
}

/** Leave transfers to the next turn, or not: a call that posts does. @return what was set. Thread: owner. */
static inline bool
plx_rndv_later(struct plx_rndv *r, bool later)
{
	bool was = r->later;

	r->later = later;
	return was;
}

/** One chunk of every transfer with work. @return how many moved */
unsigned plx_rndv_run(struct plx_rndv *r);

#endif

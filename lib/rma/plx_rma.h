/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_rma.h - put, get and atomics on a peer's memory
 *
 * How an operation is done, in the order of preference:
 *
 *	COPY	loads, stores and locked instructions by the initiator: the memory is
 *		mapped here, or is this process's own
 *	DEV	the device reads or writes the peer's private memory (put and get)
 *	KEY	the same of memory that is registered with it, and atomics of 8 bytes
 *	MSG	messages; the target checks, does it and answers in its turns
 *
 * A short put by KEY takes no request; the MARK whose completion covers it does: see rma_quick.c.
 * Puts and gets by DEV may go other ways. Short ones wait for each other, and go together: rma_late.c. If the
 * target polls, messages ask it to do them, any length between near cores and the shortest between far ones:
 * rma_batch.c. Both sides copy the other long ones, and many short ones, at once: rma_share.c.
 *
 * An operation that is long is cut into pieces: COPY, none; DEV, PLX_RMA_CHUNK if a reactor moves it, else none;
 * KEY, rma_key.c:KEY_LEN; MSG, PLX_RMA_GET_LEN for gets, and for puts what a message of the device holds; batches,
 * PLX_RMA_BATCH_LEN; both sides, PLX_RMA_SHARE_MAX.
 *
 * Design notes
 * Memory that is mapped here needs no request and no turn, so the application's
 * thread does the operation at once, also when a reactor runs the turns.
 *
 * All atomics on one word have to use one mechanism. Atomics of 4 bytes are locked instructions,
 * by the initiator or at the target, on any memory. Those of 8 bytes are either that or the
 * device's, and the key says which: the region's owner has chosen for all. Operations that the
 * device lacks are loops of compare-and-swap.
 *
 * An operation that can't complete at once is in flight: it is in the worker's list and in
 * its ep's list, both in the order issued. A flush remembers the last number issued
 * and is complete when the first in the list is younger. A fence begins a new epoch; an
 * operation waits until all of older epochs are complete, and so does one on mapped
 * memory, which is then in flight as well.
 *
 * An ep has at most PLX_RMA_WINDOW unanswered messages, which bounds what a target
 * must keep for it.
 */
#ifndef PLX_RMA_H
#define PLX_RMA_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plx_conf.h"
#include "plx_ep.h"
#include "plx_region.h"
#include "plx_req.h"
#include "plx_req_id.h"
#include "plx_stat.h"

#define PLX_RMA_WINDOW	  64	     /* messages of one ep that are not answered */
#define PLX_RMA_GET_LEN	  (64u << 10) /* bytes requested by one message */
#define PLX_RMA_CHUNK	  (512u << 10) /* bytes of one operation that a reactor moves in a turn */
#define PLX_RMA_LATE_N	  128	     /* of an ep that wait for each other: then they are moved */
#define PLX_RMA_SHARE_MIN (128u << 10) /* shorter ones are not copied by both sides, bytes */
#define PLX_RMA_LATE_LEN  (PLX_RMA_SHARE_MIN - 1) /* longer puts and gets by DEV wait for no others */
#define PLX_RMA_SHARE_US  30	     /* many are, if the device alone would take as long */
#define PLX_RMA_BATCH_N	  16u	     /* blocks of a batch */
#define PLX_RMA_BATCH_HEAD 448u	     /* room for what describes them, bytes */
#define PLX_RMA_BATCH_LEN 16384u     /* bytes of a batch, at most */
#define PLX_RMA_BATCHES	  32u	     /* of an ep that are not answered */
#define PLX_RMA_BATCHES_GET 20u	     /* the same, if they are gets, */
#define PLX_RMA_BATCHES_SURE 5u	     /* and after the answers to more have found no room */
#define PLX_RMA_MANY	  512u	     /* operations in flight: gets do not wait for those in batches, */
#define PLX_RMA_TOO_MANY  (64u << 10)     /* and batches are recalled though a program that posts may not see answers */
#define PLX_RMA_MUCH	  (8ull << 20) /* bytes in flight, from here on more than caches hold */
#define PLX_RMA_ASK_US	  2	     /* a batch waits for its answer, about as long as a call of the device takes */
#define PLX_RMA_COPY_LEN  32	     /* puts that are kept in their request, bytes */

enum plx_rma_kind { PLX_RMA_PUT, PLX_RMA_GET, PLX_RMA_ATOMIC };
enum plx_rma_how { PLX_RMA_COPY, PLX_RMA_DEV, PLX_RMA_KEY, PLX_RMA_MSG, PLX_RMA_MARK };

/** Also on the wire. */
enum plx_rma_atomic {
	PLX_RMA_ADD,
	PLX_RMA_AND,
	PLX_RMA_OR,
	PLX_RMA_XOR,
	PLX_RMA_SWAP,
	PLX_RMA_CSWAP,
	PLX_RMA_ATOMIC_N
};

/** Operations that a key permits. */
enum plx_rkey_can {
	PLX_RKEY_PUT = 1 << 0,
	PLX_RKEY_GET = 1 << 1,
	PLX_RKEY_POST32 = 1 << 2, /* atomics without a result */
	PLX_RKEY_POST64 = 1 << 3,
	PLX_RKEY_FETCH32 = 1 << 4,
	PLX_RKEY_FETCH64 = 1 << 5,
};

/** A peer's region as an ep may use it. Owner: the application's side. */
struct plx_rkey {
	uint64_t base, len; /* in the target's process */
	intptr_t delta;	    /* to the same bytes here, when mapped */
	uint8_t can;	    /* enum plx_rkey_can */
	uint8_t now;	    /* of these, what the initiator executes itself */
	bool mapped;
	bool cpu64, dev64;  /* which side executes atomics of 8 bytes; both: either */
	uint32_t domain;    /* plx_peer.domain of the peers that dev_key is valid for */
	uint64_t dev_key;   /* 0: none */
	struct plx_region_key key;
	uint64_t proc; /* of the owner, within PLX_WIRE_PROC_MASK */
	struct plx_map *map;
};

struct plx_rma_stat {
	uint64_t dev, key, msg, deferred;     /* operations by kind; native ones are not counted */
	uint64_t late, bursts;		      /* of dev: those that waited for others; calls that
	                      		       * moved several */
	uint64_t batches, batches_back;	      /* sent to the target; of these, recalled */
	uint64_t batches_late;		      /* answers after that */
	uint64_t shares, shares_helped;	      /* of dev: parts that the target may help to copy; of
	                      		       * these, those where it did */
	uint64_t quick, marks;		      /* puts without a request; empty ones that complete
	                      		       * them */
	uint64_t puts, gets, atomics;	      /* of peers, executed here */
	uint64_t fetches;		      /* of the puts, those that were fetched */
	uint64_t refused;		      /* of these: no such region, no right, out of bounds */
	uint64_t drop_bad_id, drop_bad_range; /* answers without a question */
	uint64_t drop_replies;		      /* of a peer that exceeds its window */
	uint64_t errors;
};

extern const struct plx_stat_row plx_rma_stat_rows[];

/** The request of a put, get or atomic that takes more than one step. */
struct plx_rma_req {
	PLX_REQ_HEAD;
	struct plx_ep *ep;
	struct plx_wait wait;
	TAILQ_ENTRY(plx_rma_req) all;  /* of the worker's, in the order issued */
	TAILQ_ENTRY(plx_rma_req) link; /* of the ep's, the same */
	struct plx_wire_id id;	   /* index 0: none */
	uint64_t seq;		   /* counts at the worker */
	uint64_t remote;	   /* address in the target's process */
	union {
		intptr_t delta;	   /* COPY: to where it is mapped here */
		uint64_t key;	   /* KEY: of the device */
	};
	uint64_t token;
	uint32_t index;		   /* of the region */
	uint64_t offset;	   /* moved, or asked for, so far */
	union {
		struct {
			uint64_t operand[2];  /* of an atomic; the result goes to buf */
			uint64_t seen, tried; /* KEY: what it found, and expected to find */
		};
		uint64_t got;	     /* of a get: bytes that have come */
		uint8_t copy[PLX_RMA_COPY_LEN]; /* of a put: its bytes, then buf is here */
	};
	uint32_t epoch;		   /* fences before it */
	int err;		   /* the first that an answer had */
	uint16_t n_out;		   /* answers outstanding */
	uint16_t n_dev;		   /* KEY: what the device has not ended */
	uint32_t domain;	   /* KEY: plx_rkey.domain */
	uint8_t kind, how;	   /* enums plx_rma_kind, plx_rma_how */
	uint8_t op, size;	   /* of an atomic */
	bool fetch;
	bool nbi;		   /* the next flush returns errors */
	bool checked;		   /* by message, whatever the device can */
	bool late;		   /* DEV: may wait for others; of a long one: may be copied by both sides */
	bool cpu64;		   /* plx_rkey.cpu64 */
	bool over;		   /* KEY, shared: ends with err when the device, or the target, has */
	bool again;		   /* the device can't do all of it: it goes by messages */
	bool shared;		   /* of the ep's part, which both sides copy */
	uint8_t stage;		   /* KEY: of an atomic, see rma_key.c */
};
_Static_assert(sizeof(struct plx_rma_req) <= PLX_REQ_SIZE, "a request has room for it");

/** @return this engine's part of a request of its own. */
static inline struct plx_rma_req *
plx_rma_req(const struct plx_req *req)
{
	return (void *)(uintptr_t)req;
}

/** Of an ep. */
struct plx_rma_ep {
	TAILQ_HEAD(, plx_rma_req) ops;	/* in flight, in the order issued */
	struct plx_rma_req *send;	/* the first of them that is not completely sent, or NULL */
	TAILQ_ENTRY(plx_rma_ep) link;	/* of the worker's, while there are send or batches */
	SLIST_ENTRY(plx_rma_ep) quick_link; /* the same, while quick */
	bool quick;			/* puts are outstanding without a request */
	uint8_t sure;			/* number of next puts with a request */
	bool proven;			/* DEV has succeeded */
	bool posts;			/* the program is posting, and may have more */
	uint8_t n_late;			/* operations that wait for others, or their weight in a batch */
	bool batched;			/* the last step asked the target */
	uint8_t n_batches;
	uint8_t most_gets;		/* of them, if they are gets */
	uint32_t n_out;			/* messages not answered */
	uint32_t n_replies;		/* pending answers of ours */
	int err;			/* of an operation that only a flush reports */
	uint16_t cell;			/* of the peer's shared area that this side has, plus 1; 0: none */
	uint8_t skip;			/* number of next steps that ask the target for nothing */
	uint8_t unanswered;		/* skip after the last batch that was recalled */
	TAILQ_HEAD(, rma_batch) batches; /* at the target, or recalled */
	uint64_t batch_until;		/* ticks: then they are recalled; 0: no time was set */
	uint32_t batch_id;		/* of the next one */
	uint32_t gen;			/* of claims, see plx_rma_cell_claim() */
	uint32_t number;		/* of the next batch of puts in it */
	uint32_t claimed;		/* claims at the last look */
	uint32_t pace;			/* ticks of the device for a KiB of many, the last time; 0: unknown */
	uint16_t lone_at;		/* low bits of turns and flushes when the last one was done at once */
	uint8_t n_lone;			/* times in a row that an operation waited for others and none came */
	struct rma_part *part;		/* what both sides copy now, see rma_share.c; NULL: nothing */
};
_Static_assert(PLX_RMA_LATE_N <= UINT8_MAX, "n_late counts them");
_Static_assert(sizeof(struct plx_rma_ep) == sizeof(((struct plx_ep *)0)->of_rma), "it is kept there");

/** @return this engine's state of an ep. */
static inline struct plx_rma_ep *
plx_rma_ep(const struct plx_ep *ep)
{
	return (void *)(uintptr_t)ep->of_rma;
}

/** Make it; for plx_eps.on_new. */
void plx_rma_ep_init(struct plx_ep *ep);

/** Of a worker. */
struct plx_rma {
	/* owner */
	TAILQ_HEAD(, plx_rma_ep) eps; /* with something to do in turns */
	TAILQ_HEAD(, plx_rma_req) all; /* in flight, in the order issued */
	SLIST_HEAD(, plx_rma_ep) quick; /* with outstanding puts without a request */
	struct plx_req_pool *reqs; /* for marks */
	uint32_t n_eps; /* of these */
	uint32_t n_send; /* of these, those with something to send; the others have batches at their targets */
	struct plx_req_ids ids;
	struct plx_pool replies;
	struct rma_part *parts, *free_parts; /* all, and those of no ep: see rma_part.c */
	struct rma_batch *batches, *free_batches; /* the same */
	uint64_t seq; /* of the last operation issued */
	uint64_t chunk;
	uint64_t n_flushes; /* begun, or found to have nothing to wait for; some count twice */
	bool by_device; /* may be used for put and get */
	bool late;      /* operations of an ep may wait for each other */
	bool posts;     /* the program posts: answers may be there that no turn has seen yet */
	uint64_t share_min; /* least that is copied by both sides, bytes */
	uint32_t batch_len; /* bytes of a batch, at most; 0: the target is sent none */
	uint32_t ask_ticks; /* a batch waits for its answer */
	uint32_t share_ticks; /* PLX_RMA_SHARE_US */
	uint64_t fetch_min; /* puts by message from here on are fetched by their target; 0: none */
	uint64_t domain; /* difference between tokens on the wire and in the table */
	int err;      /* of an operation that only a flush reports */
	struct plx_rma_stat stat;

	/* application's side */
	_Atomic uint64_t n_ops; /* in flight; writers: this side adds, the owner subtracts */
	_Atomic uint32_t epoch; /* readers: any, relaxed */
	bool fenced; /* an operation of an older epoch was in flight at the last check */
	bool may_mark; /* with a reactor: puts of quick may be younger than the last fence */
};

/** One operation, from the face. */
struct plx_rma_do {
	uint32_t conn_id; /* of the handle */
	struct plx_ep *ep;
	const struct plx_rkey *rkey;
	void *buf;	     /* put: from, get and fetching atomics: to */
	uint64_t len;
	uint64_t remote;
	uint64_t operand[2]; /* CSWAP: compare, swap */
	uint8_t kind;	     /* enum plx_rma_kind */
	uint8_t op;	     /* enum plx_rma_atomic */
	bool fetch;
	bool nbi;	     /* no request is visible to the program */
	bool checked;	     /* by message: the target checks key, rights and bounds */
	bool late;	     /* a short one by DEV may wait for the next turn, flush or fence */
};

/**
 * @param dedicated whether a reactor runs the turns
 * Errors: -ENOMEM, and it must be closed all the same. Thread: control.
 */
int plx_rma_open(struct plx_rma *r, const struct plx_conf *conf, bool dedicated);

/** Refill the reserve for answers. @return whether it is full. Thread: owner. */
bool plx_rma_refill(struct plx_rma *r);
void plx_rma_close(struct plx_rma *r);

/**
 * Make a packed key usable with a peer.
 * @param peer of the key, or NULL: not known yet
 * @param can operations of the application, enum plx_rkey_can
 * @param map whether to map the memory here if possible
 * Errors: -EINVAL not a key; -EHOSTUNREACH not of this peer; -ENOMEM. Thread: any. Blocks:
 * may. Allocates: heap.
 */
int plx_rkey_unpack(const struct plx_peer *peer, const void *buf, uint8_t can, bool map,
	struct plx_rkey **out);

/** Destroy a key. Accepts NULL. Thread: any. */
void plx_rkey_destroy(struct plx_rkey *k);

/** @return below 0, 0 or above: a total order of keys. Thread: any. */
int plx_rkey_compare(const struct plx_rkey *a, const struct plx_rkey *b);

/** @return 0; -EINVAL no right or not requested; -ERANGE outside. Thread: any. */
static inline int
plx_rkey_check(const struct plx_rkey *k, uint8_t what, uint64_t addr, uint64_t len)
{
	if (unlikely((k->can & what) == 0))
		return -EINVAL;
	if (unlikely(addr - k->base > k->len || len > k->len - (addr - k->base)))
		return -ERANGE;
	return 0;
}

/** @return the address of the key's memory here. */
static inline void *
plx_rkey_here(const struct plx_rkey *k, uint64_t addr)
{
	return (void *)(uintptr_t)(addr + (uint64_t)k->delta);
}

/** Fill out. @return its plx_rma_req.seq; 0: the operation that waits is not this engine's. Thread: owner. */
uint64_t plx_rma_wait_info(const struct plx_wait *w, struct plx_wait_info *out);

/** Release a fence whose older operations are complete. @return whether there is none. */
static inline bool
plx_rma_unfenced(struct plx_rma *r)
{
	if (likely(!r->fenced))
		return true;
	/* pairs with the release in plx_rma_over() */
	if (atomic_load_explicit(&r->n_ops, memory_order_acquire) != 0)
		return false;
	r->fenced = false;
	return true;
}

/** Later operations wait for earlier ones. Thread: application's side. */
static inline void
plx_rma_fence(struct plx_rma *r)
{
	if (atomic_load_explicit(&r->n_ops, memory_order_acquire) != 0) {
		atomic_store_explicit(&r->epoch, atomic_load_explicit(&r->epoch, memory_order_relaxed) + 1,
			memory_order_relaxed);
		r->fenced = true;
	}
}

_Static_assert(PLX_RMA_CSWAP + 1 == PLX_RMA_ATOMIC_N, "PLX_RMA_ATOMIC_AS and atomic_becomes() know each");

/* One atomic instruction; a switch over constants compiles to that alone. */
#define PLX_RMA_ATOMIC_AS(type, p, op, a, b)                                                       \
	__extension__({                                                                            \
		type *p_ = (p), a_ = (type)(a), old_ = a_;                                         \
		switch (op) {                                                                      \
		case PLX_RMA_ADD:                                                                  \
			old_ = __atomic_fetch_add(p_, a_, __ATOMIC_SEQ_CST);                       \
			break;                                                                     \
		case PLX_RMA_AND:                                                                  \
			old_ = __atomic_fetch_and(p_, a_, __ATOMIC_SEQ_CST);                       \
			break;                                                                     \
		case PLX_RMA_OR:                                                                   \
			old_ = __atomic_fetch_or(p_, a_, __ATOMIC_SEQ_CST);                        \
			break;                                                                     \
		case PLX_RMA_XOR:                                                                  \
			old_ = __atomic_fetch_xor(p_, a_, __ATOMIC_SEQ_CST);                       \
			break;                                                                     \
		case PLX_RMA_SWAP:                                                                 \
			old_ = __atomic_exchange_n(p_, a_, __ATOMIC_SEQ_CST);                      \
			break;                                                                     \
		default: /* CSWAP */                                                               \
			__atomic_compare_exchange_n(p_, &old_, (type)(b), false, __ATOMIC_SEQ_CST, \
				__ATOMIC_SEQ_CST);                                                 \
			break;                                                                     \
		}                                                                                  \
		old_;                                                                              \
	})

/**
 * Change a word that is mapped here. @return its previous value.
 * @param p aligned to size. @param size 4 or 8. Thread: any.
 */
static inline uint64_t
plx_rma_atomic_do(void *p, uint8_t op, uint8_t size, uint64_t a, uint64_t b)
{
	if (size == 8) {
		if (likely(op == PLX_RMA_ADD)) /* no jump by a table */
			return __atomic_fetch_add((uint64_t *)p, a, __ATOMIC_SEQ_CST);
		return PLX_RMA_ATOMIC_AS(uint64_t, p, op, a, b);
	}
	return PLX_RMA_ATOMIC_AS(uint32_t, p, op, a, b);
}

/** @return whether the device does puts or gets with this peer. Thread: owner. */
static inline bool
plx_rma_is_direct(const struct plx_rma *r, const struct plx_ep *ep, uint8_t kind)
{
	return r->by_device && (ep->peer->caps & (kind == PLX_RMA_PUT ? PLX_DEV_PUT : PLX_DEV_GET)) != 0;
}

/**
 * Put or get through the device at once.
 * @return 0 done; -EAGAIN it needs a request; or an error. Thread: owner, inline.
 */
int plx_rma_dev_now(struct plx_rma *r, const struct plx_rma_do *d);

/** @return whether it is one of the operations that wait for each other. Thread: owner. */
bool plx_rma_is_late(const struct plx_rma *r, const struct plx_rma_do *d);

/**
 * Decide whether one of these is done at once: the target computes, and the last ones have waited in vain. It is the
 * only one then until the next turn or flush, in which the program may wait.
 * @param turns of the worker. Thread: owner.
 */
bool plx_rma_is_lone(const struct plx_rma *r, struct plx_ep *ep, uint64_t turns);

/**
 * Start such an operation without a request of the application's; a flush reports its error.
 * @return 0 its bytes are copied; -EINPROGRESS its buffer is in use until a flush completes;
 *   -EAGAIN no memory. Thread: owner.
 */
int plx_rma_later(struct plx_rma *r, const struct plx_rma_do *d);

/**
 * Decide whether both sides copy a put or get, which then needs a request. Each call counts while the target is passed over
 * because it has not helped. Thread: owner.
 */
bool plx_rma_is_shared(const struct plx_rma *r, const struct plx_rma_do *d);

/**
 * Whether it pays that both sides copy many bytes of short operations. The device alone moves cached memory before the
 * target can help; the rest takes longer. The pace of the last ones tells which it is; before there is one, many more
 * bytes have to be moved. Thread: owner.
 */
static inline bool
plx_rma_is_long(const struct plx_rma *r, const struct plx_ep *ep, uint64_t bytes)
{
	uint64_t pace = plx_rma_ep(ep)->pace;

	if (bytes < r->share_min)
		return false;
	return pace != 0 ? (bytes >> 10) * pace >= r->share_ticks : bytes >= PLX_RMA_SHARE_MIN * 4;
}

/** @return whether so many wait that the caller has to call plx_rma_run_late(). Thread: owner. */
static inline bool
plx_rma_is_full(const struct plx_ep *ep)
{
	return plx_rma_ep(ep)->n_late >= PLX_RMA_LATE_N;
}

/**
 * Move what waits for others. Requests complete: hold their pool.
 * @param ep whose, or NULL: of all. Thread: owner.
 */
void plx_rma_run_late(struct plx_rma *r, struct plx_ep *ep);

/**
 * Put or get pieces of memory through the device, in their order, at once.
 * @param n in: how many, to PLX_RMA_BURST; out: how many are done
 * @return 0 all; -EAGAIN the others need requests; or the error of the next one. Thread: owner.
 */
int plx_rma_pieces_now(struct plx_rma *r, struct plx_ep *ep, uint8_t kind,
	const struct plx_rma_piece *pieces, unsigned *n);

/**
 * Whether the device can put this many bytes by key, and no earlier operation is pending.
 * Thread: owner, inline.
 */
static inline bool
plx_rma_is_quick(const struct plx_rma *r, const struct plx_ep *ep, const struct plx_rkey *k,
	uint64_t len)
{
	return k->dev_key != 0 && ep->connected && len <= ep->peer->short_max &&
		(ep->peer->caps & PLX_DEV_KEYS) != 0 && k->domain == ep->peer->domain &&
		r->by_device && plx_rma_ep(ep)->send == NULL;
}

/** Slow path of plx_rma_quick(): the first of an ep, or the device returned rc. */
int plx_rma_quick_slow(struct plx_rma *r, struct plx_ep *ep, int rc);

/**
 * Put a few bytes by the device with a key, without a request: requires plx_rma_is_quick(),
 * and none in plx_rma_ep(ep)->sure. plx_rma_mark() completes it.
 * @return 0 the device has a copy of them; -EAGAIN it needs a request; or an error. Thread:
 *   owner, inline.
 */
static inline int
plx_rma_quick(struct plx_rma *r, struct plx_ep *ep, const struct plx_rkey *k, const void *buf,
	uint32_t len, uint64_t remote)
{
	int rc = plx_peer_put_short(ep->peer, buf, len, remote, k->dev_key);

	if (unlikely(rc != 0 || !plx_rma_ep(ep)->quick))
		return plx_rma_quick_slow(r, ep, rc);
	PLX_STAT_INC(r->stat.quick);
	return 0;
}

/**
 * Turn the outstanding puts of plx_rma_quick() into an operation in flight like others.
 * @param ep their peer, or NULL: any. Errors: -ENOMEM. Thread: owner, inline.
 */
int plx_rma_mark(struct plx_rma *r, struct plx_ep *ep);

/**
 * It is unknown whether the puts of plx_rma_quick() have arrived: a flush reports that.
 * Thread: owner.
 */
void plx_rma_ep_failed(struct plx_rma *r, struct plx_ep *ep, int err);

/** @return whether both sides copy something now: the peer may write to the buffer of a get. Thread: owner. */
static inline bool
plx_rma_shares(const struct plx_ep *ep)
{
	return plx_rma_ep(ep)->part != NULL;
}

/** @return whether the target of an ep may be at an operation of it now. Thread: owner. */
static inline bool
plx_rma_asks(const struct plx_ep *ep)
{
	return plx_rma_shares(ep) || plx_rma_ep(ep)->n_batches != 0;
}

/** Wait until the peer writes to no buffer of a get any more. Thread: owner. Blocks: while it copies a chunk. */
void plx_rma_ep_settle(struct plx_ep *ep);

/** Give back what this side has of the peer's shared area. Thread: owner. */
void plx_rma_ep_leave(struct plx_ep *ep);

/** Fill in a request for an operation; counts it as in flight. Thread: application's side. */
void plx_rma_prepare(struct plx_rma *r, const struct plx_rma_do *d, struct plx_req *req);

/** Start a prepared operation; req completes, perhaps before this returns. Thread: owner. */
void plx_rma_start(struct plx_rma *r, struct plx_req *req);

/** A prepared operation that was not started is cancelled: req completes. Thread: owner. */
void plx_rma_over(struct plx_rma *r, struct plx_req *req, int err);

/**
 * A put was started: if the device has its bytes it reports an error to the next flush.
 * @return whether it has them, and the buffer is no longer needed. Thread: owner, inline.
 */
bool plx_rma_is_taken(struct plx_req *req);

/** @return whether all operations of one ep up to seq are complete. Thread: owner. */
static inline bool
plx_rma_ep_over(const struct plx_ep *ep, uint64_t seq)
{
	const struct plx_rma_req *first = TAILQ_FIRST(&plx_rma_ep(ep)->ops);

	return first == NULL || first->seq > seq;
}

/** The same of the worker. Thread: owner. */
static inline bool
plx_rma_all_over(const struct plx_rma *r, uint64_t seq)
{
	const struct plx_rma_req *first = TAILQ_FIRST(&r->all);

	return first == NULL || first->seq > seq;
}

/* Arrived messages; only the length of the header is checked. Thread: owner. */
void plx_rma_on_put(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_put *h,
	const uint8_t *data, uint32_t len);
void plx_rma_on_put_at(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_put_at *h);
void plx_rma_on_get(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_get *h);
void plx_rma_on_atomic(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_atomic *h,
	const uint8_t *data, uint32_t len);
void plx_rma_on_ack(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_ack *h);
void plx_rma_on_data(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_data *h,
	const uint8_t *data, uint32_t len);

/** Puts or gets of a peer, which knows by the answer that they are done. Thread: owner. */
void plx_rma_on_batch(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_batch *h,
	const uint8_t *data, uint32_t len);

/** The answer. Thread: owner. */
void plx_rma_on_batch_done(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_batch_done *h,
	const uint8_t *data, uint32_t len);

/** Copy chunks of what the peer's cell describes, if there are any left. Thread: owner. */
void plx_rma_on_share(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_share *h);

/** Slow path of plx_rma_run(). */
unsigned plx_rma_run_slow(struct plx_rma *r);

/** @return 0: plx_rma_run() finds nothing to do. */
static inline uintptr_t
plx_rma_work(const struct plx_rma *r)
{
	return (uintptr_t)TAILQ_FIRST(&r->eps);
}

/** @return whether all that is left to do is to wait for answers of targets, and at last to recall batches. */
static inline bool
plx_rma_awaits(const struct plx_rma *r)
{
	return r->n_eps != 0 && r->n_send == 0;
}

/** The next pieces of operations in flight. @return how many moved. Thread: owner. */
static inline unsigned
plx_rma_run(struct plx_rma *r)
{
	return plx_rma_work(r) == 0 ? 0 : plx_rma_run_slow(r);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_am.h - messages delivered without matching: handlers, and the messages that they keep
 *
 * Design notes
 * - The table of handlers and everything that a handler sees belong to the application's side.
 *   Inline that is the owner, so a handler reads a message of one piece in place, in the device's
 *   memory, and nothing is copied. It is stored first when the handler may keep it, when it has to
 *   be aligned, when it came in pieces, and always when a reactor runs the turns: then it travels
 *   to the application through a ring. To store a message is to copy it, unless the device can do
 *   without its buffer.
 * - A stored message is found again by the address of its data: the 8 bytes before that contain
 *   the plx_msg. One whose data is still at the sender has such an address too, without data.
 * - An active message is its header, padded to 8 bytes, and its data; offsets count over both.
 */
#ifndef PLX_AM_H
#define PLX_AM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_ring.h>

#include "plx_ep.h"
#include "plx_req.h"
#include "plx_stat.h"
#include "plx_wire.h"

#define PLX_AM_IDS	 65536
#define PLX_AM_PAGE	 256  /* handlers that are allocated together */
#define PLX_AM_RING_LEN	 4096 /* messages in flight to the application; then a list */
#define PLX_AM_ALIGN_MAX 4096

struct plx_am_stat {
	uint64_t sends;
	uint64_t rx_borrowed;	     /* read in place */
	uint64_t rx_kept;	     /* stored first */
	uint64_t rx_in_place;	     /* of these, not copied: they stay where the device has put them */
	uint64_t rx_rndv;	     /* announced */
	uint64_t rx_drop_no_handler;
	uint64_t rx_drop_bad_len;
	uint64_t rx_drop_no_memory;
	uint64_t rx_drop_closed;     /* request a reply through a handle that is closed here */
	uint64_t bad_keep;	     /* handlers that kept data without permission */
};

extern const struct plx_stat_row plx_am_stat_rows[];

/** The handler of an id. */
struct plx_am_handler {
	void (*cb)(void); /* the API's; NULL: none */
	void *arg;
	struct plx_am *am; /* set by plx_am_set(), as is id */
	uint16_t id;
	bool old;	  /* registered in the older of the API's two forms */
	bool persistent;  /* data may always be kept */
	bool plain;	  /* plx_am.plain is called where it can be; else always plx_am.deliver */
};

/** A message as a handler sees it. */
struct plx_am_rx {
	struct plx_ep *ep; /* of the sender; only when reply */
	const void *hdr;
	void *data;
	uint64_t len;
	struct plx_msg *msg; /* stored; NULL: in place */
	uint32_t hdr_len;
	uint32_t conn_id; /* of the sender's handle */
	uint16_t id;
	bool reply;
	bool rndv; /* data is a descriptor to fetch it with */
};

struct plx_am {
	struct plx_am_handler *pages[PLX_AM_IDS / PLX_AM_PAGE]; /* application's side */
	struct plx_eps *eps;
	struct plx_msg_pools *msgs;
	uint32_t align; /* of data; a power of 2, at least 8 */
	/*
	 * Call the API's handler. @return 0; -EINPROGRESS the application keeps the data;
	 * or the status for the sender of an announced message.
	 */
	int (*deliver)(struct plx_am *am, const struct plx_am_handler *h,
		const struct plx_am_rx *rx);
	/*
	 * The same for a message in one piece that requests no reply and may not be kept. If the
	 * handler keeps it all the same, the face calls plx_am_bad_keep().
	 */
	void (*plain)(const struct plx_am_handler *h, const void *hdr, uint32_t hdr_len, const void *data,
		uint64_t len);
	/* The application has finished with m: free it, and unless ack is 1 answer its sender. */
	void (*end)(struct plx_am *am, struct plx_msg *m, int ack);
	void *user; /* the face's */
	struct rte_ring *ring; /* NULL: inline */
	TAILQ_HEAD(, plx_msg) overflow; /* owner: messages that the ring had no room for */
	struct plx_am_stat stat;
};

/** Errors: -ENOMEM. Thread: control. */
int plx_am_open(struct plx_am *am, struct plx_eps *eps, struct plx_msg_pools *msgs, bool dedicated);
void plx_am_close(struct plx_am *am);

/**
 * Set, or with cb NULL remove, the handler of an id. Errors: -ENOMEM. Thread: application's
 * side.
 */
int plx_am_set(struct plx_am *am, uint16_t id, const struct plx_am_handler *h);

/** Report a handler that wants to keep data without leave. Thread: application's side. */
__rte_cold void plx_am_bad_keep(const struct plx_am_handler *h);

/** @return the bytes of the user's header. */
static inline uint32_t
plx_am_hdr_len(const struct plx_wire_am *h)
{
	return h->hdr_len & ~PLX_WIRE_AM_REPLY;
}

/** @return the bytes of the header before the data. */
static inline uint32_t
plx_am_head(uint32_t hdr_len)
{
	return (hdr_len + 7) & ~7u;
}

/**
 * A message in one piece has arrived: deliver it in place, or store it, as plx_am_keep().
 * @param w its first bytes, copied: the sender may still write
 * @param p what follows, len bytes of rx
 * Thread: owner, inline.
 */
void plx_am_show(struct plx_am *am, struct plx_rx *rx, struct plx_wire_am w, const uint8_t *p, uint32_t len);

/**
 * The same, and it is always stored: for the application's side, when a reactor runs the turns. If the device can do
 * without its buffer it stays there, and the pointer before its data replaces the wire's header, behind the user's.
 * Thread: owner.
 */
void plx_am_keep(struct plx_am *am, struct plx_rx *rx, struct plx_wire_am w, const uint8_t *p, uint32_t len);

/**
 * Allocate a message to be filled by plx_am_write().
 * @param data_len bytes of data here, 0 for an announced one
 * @return NULL without memory, and then it is counted. Thread: owner.
 */
struct plx_msg *plx_am_msg_get(struct plx_am *am, struct plx_peer *src, const struct plx_wire_am *h,
	uint64_t data_len, enum plx_msg_kind kind);

/** Free it. Thread: owner. */
void plx_am_msg_put(struct plx_am *am, struct plx_msg *m);

/**
 * Store the next bytes of a message, as they arrive, in more memory if needed.
 * @return 1 complete, 0 not yet, -EBADMSG, -ENOMEM
 */
int plx_am_write(struct plx_msg *m, const uint8_t *from, uint64_t len);

/** A stored message is complete: deliver it. Thread: owner. */
void plx_am_arrived(struct plx_am *am, struct plx_msg *m);

/** Slow path of plx_am_poll(). */
unsigned plx_am_poll_slow(struct plx_am *am);

/** Application's side, dedicated: call the handlers of arrived messages. @return how many */
static inline unsigned
plx_am_poll(struct plx_am *am)
{
	const struct rte_ring *r = am->ring;

	/* relaxed: taking it out of the ring acquires */
	return likely(__atomic_load_n(&r->prod.tail, __ATOMIC_RELAXED) == r->cons.tail)
		? 0 : plx_am_poll_slow(am);
}

/** Slow path of plx_am_flush(). */
void plx_am_flush_slow(struct plx_am *am);

/** Owner, dedicated: put messages that did not fit into the ring. */
/** The same, if there are any. */
static inline void
plx_am_flush(struct plx_am *am)
{
	if (unlikely(!TAILQ_EMPTY(&am->overflow)))
		plx_am_flush_slow(am);
}

/** @return the stored message of this data. Thread: application's side. */
static inline struct plx_msg *
plx_am_msg_of(const void *data)
{
	struct plx_msg *m;

	memcpy(&m, (const char *)data - sizeof(m), sizeof(m));
	return m;
}

/**
 * The application has taken a stored message's data, or needs none: it can't be taken
 * again.
 * @param ack as plx_am.end. Thread: application's side.
 */
void plx_am_take(struct plx_msg *m, int ack);

#endif

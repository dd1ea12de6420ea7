/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_link.h - connections between the queues of hosts: made when needed, watched, closed to make
 * room
 *
 * Design notes
 * - Decisions are here, actions are the driver's (struct plx_link_ops): it makes its end of a
 *   connection, sends hellos by datagrams which may get lost, and returns credits by the
 *   connection itself. Nothing here allocates memory, reads a clock or enters the system: time is
 *   a parameter.
 * - link.c: the state of a peer. It calls nothing else of the driver's and may be called at any
 *   point. link_conn.c: how two queues connect. link_park.c: closing idle connections.
 *   link_alive.c: silent peers.
 */
#ifndef PLX_LINK_H
#define PLX_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plx_credit.h"

#define PLX_LINK_PATIENCE 10 /* times dead_ns for a peer that answers, and whose device does not */

enum plx_link_state {
	PLX_LINK_NONE,	/* no end of ours */
	PLX_LINK_ASKED, /* we have an end, and do not know the peer's */
	PLX_LINK_READY, /* ours can send; the peer's may not be ready to receive yet */
	PLX_LINK_OPEN,
	PLX_LINK_PARKING, /* either side wants to close it; see link_park.c */
	PLX_LINK_LOST,	/* failed, or closed by the peer: its arrived messages are delivered first */
	PLX_LINK_DEAD,
};

enum plx_link_kind {
	PLX_LINK_ASK = 1, /* our end; asks for yours */
	PLX_LINK_ANSWER,  /* our end, ready for the one that asked */
	PLX_LINK_CALL,	  /* are you alive? from a peer without a connection */
	PLX_LINK_HERE,	  /* yes */
};

/** The contents of a datagram. */
struct plx_link_hello {
	enum plx_link_kind kind;
	uint32_t id;	   /* of the sender's end */
	uint32_t your_id;  /* ANSWER: from the ASK */
	uint32_t attempt;  /* counts a queue's ends */
	uint16_t credits;  /* slots for messages of the receiver */
	const void *more;  /* the driver's own data */
};

/** The other end. Begins with the fields that each message uses. Owner: the queue's worker. */
struct plx_link_peer {
	struct plx_credit credit;
	uint8_t state;		/* enum plx_link_state */
	uint16_t rx_held;	/* messages that arrived and are not released; writer: the driver */
	uint32_t used_at;	/* link->looks when it was used last; the driver's */
	uint64_t rx_ns;		/* time of the last arrival or completion; the driver's */
	uint64_t silent_ns;	/* when it was found silent, with a completion due; void if not
	                   	 * after rx_ns. not connected: when it was first called, void if
	                   	 * n_calls is 0 */
	uint64_t heard_ns;	/* time of its last answer by a datagram, or datagram without a
	                  	 * connection */
	struct plx_link *link;
	uint32_t id;		/* of our end; the driver's */
	uint32_t attempt;	/* of our end */
	uint32_t their_id;
	uint32_t their_attempt;
	bool made;		/* we have an end */
	bool unheard;		/* a message without a connection was sent after the last sign of
	             		 * life */
	uint8_t n_calls;	/* calls without an answer, or UINT8_MAX */
	uint8_t n_no_way;	/* consecutive attempts without a route */
	bool wanted;		/* we have asked, or must: without an end of ours it is in waiting */
	bool called;		/* the peer has asked us meanwhile */
	/* while PARKING */
	bool said, theirs;	/* PARK was sent; has come */
	bool cut;		/* and then the connection failed */
	int err;		/* once lost */
	uint64_t park_ns;	/* start */
	uint64_t made_ns;	/* when it was ready */
	uint64_t asked_ns;	/* when last */
	uint64_t give_up_ns;
	uint32_t n_asked;
	uint32_t opened;	/* link->looks before it was */
	TAILQ_ENTRY(plx_link_peer) asking; /* while wanted and not open; or waiting */
	TAILQ_ENTRY(plx_link_peer) parking;
	TAILQ_ENTRY(plx_link_peer) conns;
	SLIST_ENTRY(plx_link_peer) lost_link;
};

/** Actions of the driver. */
struct plx_link_ops {
	/**
	 * Make our end: its id, and its grant. Errors: -ENOMEM no room now, try again;
	 * others: the peer is lost.
	 */
	int (*make)(struct plx_link_peer *p);
	/**
	 * The peer's end is known: make ours ready to receive, and to send. @return 0, or
	 * the error
	 */
	int (*ready)(struct plx_link_peer *p, const struct plx_link_hello *hello);
	/** The connection works. */
	void (*met)(struct plx_link_peer *p);
	/** It is about to be closed: only tell() returns credits. */
	void (*parks)(struct plx_link_peer *p);
	/**
	 * Remove our end from the device; operations that wait for its completion fail with
	 * err.
	 */
	void (*end)(struct plx_link_peer *p, int err);
	/** The peer is dead; called once, after end(). */
	void (*dead)(struct plx_link_peer *p, int err);
	/**
	 * Send a hello; lost if there is no room.
	 * @return 0; -EAGAIN not while our port is down; or the error without a route
	 */
	int (*say)(struct plx_link_peer *p, const struct plx_link_hello *hello);
	/** By the connection: return credits, or PARK with them. @return whether it was sent */
	bool (*tell)(struct plx_link_peer *p, bool park);
	/** @return whether all sends are complete. */
	bool (*is_idle)(const struct plx_link_peer *p);
	/** @return whether a completion is due. */
	bool (*is_due)(const struct plx_link_peer *p);
	/** Send a request that only has a completion, which covers all earlier ones. */
	void (*probe)(struct plx_link_peer *p);
};

struct plx_link_stat {
	uint64_t asked, asked_again, answered, refused;
	uint64_t parked, parked_by_peer; /* closed, to be made again when needed */
	uint64_t waits;		/* for an end: there is no room, or it is made again */
	uint64_t drop_old;
	uint64_t silent_asked, silent_answered; /* by datagram; peers that had sent nothing */
	uint64_t silent_gone;
};

/** Of a queue. Begins with the fields that each turn uses. */
struct plx_link {
	uint64_t now_ns;	/* as of the last control */
	uint32_t looks;		/* counts the driver's turns; the driver's */
	SLIST_HEAD(, plx_link_peer) lost;
	TAILQ_HEAD(, plx_link_peer) asking;
	/* cold */
	TAILQ_HEAD(, plx_link_peer) waiting; /* for an end */
	TAILQ_HEAD(, plx_link_peer) parking;
	TAILQ_HEAD(, plx_link_peer) conns;   /* that have an end */
	const struct plx_link_ops *ops;
	struct plx_link_stat *stat;
	uint64_t connect_ns, again_ns, probe_ns, dead_ns; /* settings */
	uint32_t n_max;		/* ends there may be; a setting */
	uint32_t n_made;
	uint32_t n_own;		/* of asking, those whose peer has not asked us */
	uint32_t attempts;
	/* silent peers */
	uint64_t peers_ns;	/* time of the last look at all peers */
	uint64_t up_ns;		/* when our port last came up; the driver's */
	bool overdue;		/* a peer was overdue then */
	bool caught_up;		/* completions up to then are processed; the driver's */
};

/** Initialise it without peers; the caller fills in the settings. */
void plx_link_init(struct plx_link *l, const struct plx_link_ops *ops, struct plx_link_stat *stat);

/** Connect the peer, as soon as possible. @param called the peer has asked for it. Never blocks. */
void plx_link_want(struct plx_link_peer *p, bool called);
/** A message came by the connection: the peer's end works. */
void plx_link_works(struct plx_link_peer *p);
/** The peer has sent PARK. */
void plx_link_park_told(struct plx_link_peer *p);
/** Stop sending; arrived messages are still delivered. May be called at any point. */
void plx_link_lose(struct plx_link_peer *p, int err);
/** The peer has announced its close. */
void plx_link_bye(struct plx_link_peer *p);

/** Connect. @return 0, or the error: retry at -ENOMEM */
int plx_link_connect(struct plx_link_peer *p, uint64_t now_ns);
/** An ASK or an ANSWER of the peer has arrived. */
void plx_link_on_hello(struct plx_link_peer *p, const struct plx_link_hello *hello, uint64_t now_ns);
/** Now and then: ask again, give up. */
void plx_link_control(struct plx_link *l, uint64_t now_ns);
/** All arrived messages are delivered: lost peers are dead now. */
void plx_link_settle(struct plx_link *l);
/** Remove the connection, as if there had never been one. */
void plx_link_reset(struct plx_link_peer *p);
/** Remove the peer, and its end. */
void plx_link_close(struct plx_link_peer *p);

/** Continue parking, and serve waiting peers. */
void plx_link_work(struct plx_link *l, uint64_t now_ns);

/**
 * When plx_link_control() has to ask again or to give up, though nothing comes.
 * @return ns, UINT64_MAX: never. Never blocks.
 */
uint64_t plx_link_deadline(const struct plx_link *l);
/** @return whether it is time to check all peers. @param is_due whether any completion is due */
bool plx_link_is_time(const struct plx_link *l, bool is_due);
/** Check whether a peer is alive. @param can_say whether a datagram has room */
void plx_link_look(struct plx_link_peer *p, bool can_say);
/** A peer without a connection asks whether we are alive, or answers. */
void plx_link_on_call(struct plx_link_peer *p, enum plx_link_kind kind);

/** An unreliable message of a peer has arrived. */
static inline void
plx_link_heard(struct plx_link_peer *p)
{
	p->heard_ns = p->link->now_ns;
	p->unheard = false;
	p->n_calls = 0;
}

/** Whether both sides have sent PARK: nothing more is sent. */
static inline bool
plx_link_is_parked(const struct plx_link_peer *p)
{
	return p->state == PLX_LINK_PARKING && p->said && p->theirs;
}

/** @return whether plx_link_work() has something to do. */
static inline bool
plx_link_has_work(const struct plx_link *l)
{
	return !TAILQ_EMPTY(&l->parking) || !TAILQ_EMPTY(&l->waiting);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_link.h - connections between the queues of hosts: made when needed, watched, closed to make room
 *
 * Design notes
 * What is decided is here, what is done is the driver's (struct plx_link_ops): it makes its end of a
 * connection, says hello by datagrams which may get lost, and tells credits by the connection itself.
 * Nothing here takes memory, reads a clock or enters the system: time is passed in.
 *
 * link.c: where a peer stands. It calls nothing of the driver's but that and may be called in the
 * middle of anything. link_conn.c: how two queues connect. link_park.c: idle connections give way.
 * link_alive.c: silent peers.
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
	PLX_LINK_ASKED, /* there is one, and we do not know the peer's */
	PLX_LINK_READY, /* ours can send; the peer's may not be ready to receive yet */
	PLX_LINK_OPEN,
	PLX_LINK_PARKING, /* either side wants to close it; see link_park.c */
	PLX_LINK_LOST,	/* failed, or it has gone: what has come of it is delivered first */
	PLX_LINK_DEAD,
};

enum plx_link_kind {
	PLX_LINK_ASK = 1, /* this is my end for you: what is yours? */
	PLX_LINK_ANSWER,  /* mine is this, and it is ready for the one you asked with */
	PLX_LINK_CALL,	  /* are you there? Of one that has no connection */
	PLX_LINK_HERE,	  /* yes */
};

/** What a datagram says. */
struct plx_link_hello {
	enum plx_link_kind kind;
	uint32_t id;	   /* of the sender's end */
	uint32_t your_id;  /* ANSWER: as it came with ASK */
	uint32_t attempt;  /* counts a queue's ends */
	uint16_t credits;  /* messages that the sender of this has slots for */
	const void *more;  /* what the driver has to say besides */
};

/** The other end. Begins with what each message touches. Owner: the queue's worker. */
struct plx_link_peer {
	struct plx_credit credit;
	uint8_t state;		/* enum plx_link_state */
	uint16_t rx_held;	/* messages that came and are not released; writer: the driver */
	uint32_t used;		/* link->looks when a message last went or came; the driver's */
	uint64_t rx_ns;		/* when something last came, or was completed; the driver's */
	uint64_t silent_ns;	/* when it was found silent, with a completion due; void if not after rx_ns.
				 * not connected: when it was first called, void if n_calls is 0 */
	uint64_t heard_ns;	/* when it last answered a datagram, or sent one without a connection */
	struct plx_link *link;
	uint32_t id;		/* of our end; the driver's */
	uint32_t attempt;	/* of our end */
	uint32_t their_id;
	uint32_t their_attempt;
	bool made;		/* there is an end of ours */
	bool unheard;		/* a message without a connection went after all that was heard of it */
	uint8_t n_calls;	/* that it did not answer, or UINT8_MAX */
	uint8_t n_no_way;	/* times in turn that no way to it was found */
	bool wanted;		/* we have asked, or must: without an end of ours it is in waiting */
	bool called;		/* the peer has asked us meanwhile */
	/* while PARKING */
	bool said, theirs;	/* PARK is out; has come */
	bool cut;		/* and then the connection failed */
	int err;		/* once lost */
	uint64_t park_ns;	/* since when */
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

/** What the driver does. */
struct plx_link_ops {
	/**
	 * Make our end: its id, and what it grants.
	 * Errors: -ENOMEM no room now, try again; others: the peer is lost.
	 */
	int (*make)(struct plx_link_peer *p);
	/** Now that the peer's is known: ready to receive, and to send. @return 0, or why not */
	int (*ready)(struct plx_link_peer *p, const struct plx_link_hello *hello);
	/** The connection works. */
	void (*met)(struct plx_link_peer *p);
	/** It is about to be closed: credits are told by tell() only. */
	void (*parks)(struct plx_link_peer *p);
	/** The device is to know nothing of our end any more; what waits for its completion ends with err. */
	void (*end)(struct plx_link_peer *p, int err);
	/** The peer is dead; called once, after end(). */
	void (*dead)(struct plx_link_peer *p, int err);
	/**
	 * Say hello; lost when there is no room.
	 * @return 0; -EAGAIN not while our port is down; or why there is no way
	 */
	int (*say)(struct plx_link_peer *p, const struct plx_link_hello *hello);
	/** By the connection: the credits that are owed, or PARK with them. @return whether it went */
	bool (*tell)(struct plx_link_peer *p, bool park);
	/** @return whether all that was sent is over. */
	bool (*is_idle)(const struct plx_link_peer *p);
	/** @return whether a completion is to come. */
	bool (*is_due)(const struct plx_link_peer *p);
	/** Send what only has a completion, which stands for all before it. */
	void (*probe)(struct plx_link_peer *p);
};

struct plx_link_stat {
	uint64_t asked, asked_again, answered, refused;
	uint64_t parked, parked_by_peer; /* closed, to be made again when needed */
	uint64_t waits;		/* for an end: there is no room, or it is made again */
	uint64_t drop_old;
	uint64_t silent_asked, silent_answered; /* by datagram; peers of whom nothing came */
	uint64_t silent_gone;
};

/** Of a queue. Begins with what each turn touches. */
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
	uint64_t peers_ns;	/* when all peers were looked at last */
	uint64_t up_ns;		/* when our port last was no longer down; the driver's */
	bool overdue;		/* a peer was, then */
	bool caught_up;		/* what was completed then is taken; the driver's */
};

/** Begin without a peer; the settings are the caller's to fill in. */
void plx_link_init(struct plx_link *l, const struct plx_link_ops *ops, struct plx_link_stat *stat);

/** Have the peer connected, as soon as may be. @param called as it has asked for it. Never blocks. */
void plx_link_want(struct plx_link_peer *p, bool called);
/** A message came by the connection: the peer's end works. */
void plx_link_works(struct plx_link_peer *p);
/** The peer has said PARK. */
void plx_link_park_told(struct plx_link_peer *p);
/** Nothing more goes; what has come is still to be delivered. May be called in the middle of anything. */
void plx_link_lose(struct plx_link_peer *p, int err);
/** The peer has said that it goes. */
void plx_link_bye(struct plx_link_peer *p);

/** Connect. @return 0, or why it can't be: it may be tried again at -ENOMEM */
int plx_link_connect(struct plx_link_peer *p, uint64_t now_ns);
/** An ASK or an ANSWER has come of the peer. */
void plx_link_on_hello(struct plx_link_peer *p, const struct plx_link_hello *hello, uint64_t now_ns);
/** Now and then: ask again, give up. */
void plx_link_control(struct plx_link *l, uint64_t now_ns);
/** Everything that had come is delivered: the lost are dead now. */
void plx_link_settle(struct plx_link *l);
/** No connection any more, as if there had never been one. */
void plx_link_reset(struct plx_link_peer *p);
/** The peer is forgotten, and its end with it. */
void plx_link_close(struct plx_link_peer *p);

/** Go on with those that park, and serve those that wait. */
void plx_link_work(struct plx_link *l, uint64_t now_ns);

/** @return whether it is time to look at all peers. @param is_due whether any completion is to come */
bool plx_link_is_time(const struct plx_link *l, bool is_due);
/** Look whether a peer is alive. @param can_say whether a datagram has room */
void plx_link_look(struct plx_link_peer *p, bool can_say);
/** A peer without a connection asks whether we are there, or says that it is. */
void plx_link_on_call(struct plx_link_peer *p, enum plx_link_kind kind);

/** A message that needs no connection has come of a peer. */
static inline void
plx_link_heard(struct plx_link_peer *p)
{
	p->heard_ns = p->link->now_ns;
	p->unheard = false;
	p->n_calls = 0;
}

/** Whether both sides have said PARK: nothing more is sent. */
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

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reactor_int.h - a reactor, between the files of lib/reactor
 */
#ifndef REACTOR_INT_H
#define REACTOR_INT_H

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "plx_inbox.h"
#include "plx_reactor.h"
#include "plx_yield.h"

static inline uint64_t
us_ticks(uint64_t us)
{
	return rte_get_tsc_hz() / 1000000 * us;
}

enum reactor_sleep {
	REACTOR_AWAKE,
	REACTOR_ASLEEP,
	REACTOR_STANDS_BY, /* it looks at that line only */
};

struct plx_reactor {
	/* line 0: others look here after each post */
	alignas(64) _Atomic uint32_t sleeping; /* enum reactor_sleep; writer: owner; who wakes it 0 */
	_Atomic int cpu;		       /* writer: owner, when it frees a poller */
	int bell;			       /* eventfd; who took sleeping from ASLEEP to 0 writes */

	/* owner: the reactor's thread; stat readers: any, relaxed */
	alignas(64) TAILQ_HEAD(, plx_poller) pollers;
	struct plx_inbox inbox;
	struct plx_reactor_stat stat;
	uint64_t empty;	     /* turns in a row that found nothing */
	uint64_t shared_until; /* ticks; when others were last seen to want the core, and some more */
	uint64_t shared_seen; /* ticks; when an offer was taken */
	uint64_t offered;    /* ticks; when it was busy and made one */
	uint64_t look_at;    /* ticks; when it looks next who waits */
	bool hog;	     /* and they kept it for long */
	bool dozed;	     /* it has slept for a short time, and nothing came: the next time all fence */
	unsigned n_mine;     /* pollers that it has the turns of */
	unsigned n_granted;     /* those that the application has them of */
	struct plx_yield yield;
	int epfd;	     /* the bell, and what the pollers sleep on */
	uint64_t rings;	     /* not heard yet: who took sleeping has not written to the bell */

	/* writer: control */
	alignas(64) _Atomic bool stop;
	_Atomic unsigned idle;
	_Atomic uint64_t idle_turns;
	_Atomic unsigned n_pollers;
	unsigned lcore;
	pthread_t thread; /* in a forked child */
	cpu_set_t set;	  /* there: the cores that it may run on */
};

/*
 * To read the clock takes as long as half a turn that finds nothing, and a message waits for
 * it: it is read after turns that found something, and once in so many others. What
 * those take that came in between is known from the last that came all in a row.
 */
#define REACTOR_CLOCK_TURNS 16

/** Where a reactor's time goes. Owner: its loop. */
struct reactor_clock {
	uint64_t last; /* ticks, when it was read */
	uint64_t turn; /* ticks of a turn that finds nothing */
	unsigned idle; /* such turns since it was read */
};

static inline void
reactor_clock_add(struct reactor_clock *c, uint64_t now, uint64_t idle, struct plx_reactor_stat *st)
{
	PLX_STAT_ADD(st->idle_ticks, idle);
	PLX_STAT_ADD(st->busy_ticks, now - c->last - idle);
	c->last = now;
	c->idle = 0;
}

/** Nothing was found since the last time. */
static inline void
reactor_clock_idle(struct reactor_clock *c, uint64_t now, struct plx_reactor_stat *st)
{
	if (c->idle == REACTOR_CLOCK_TURNS)
		c->turn = (now - c->last) / REACTOR_CLOCK_TURNS;
	reactor_clock_add(c, now, now - c->last, st);
}

/** The last turn found something. */
static inline void
reactor_clock_busy(struct reactor_clock *c, uint64_t now, struct plx_reactor_stat *st)
{
	reactor_clock_add(c, now, RTE_MIN(c->idle * c->turn, now - c->last), st);
}

/*
 * Whoever sleeps for long, rarely, has every thread of the process fence, so that who posts, often,
 * needs none: a fence there waits for the line that was just written, from the other core.
 * Where the kernel has no such call, both fence.
 */
extern _Atomic bool reactor_fences_for_all; /* relaxed: the same at every start */

/** Between a post and the look at sleeping. Thread: any. */
static inline void
reactor_fence_post(void)
{
	if (likely(atomic_load_explicit(&reactor_fences_for_all, memory_order_relaxed)))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

/* reactor_wake.c */
/** Register for reactor_fence_sleep(); again does nothing. Thread: control. */
void reactor_fence_open(void);
/** Between storing sleeping, or where a poller went, and the look at what was posted. Thread: any. Blocks: may. */
void reactor_fence_sleep(void);
int reactor_wake_open(struct plx_reactor *r);
void reactor_wake_close(struct plx_reactor *r);
/** Sleep on what p names as well, or no more. */
void reactor_wake_add(struct plx_reactor *r, const struct plx_poller *p);
void reactor_wake_remove(struct plx_reactor *r, const struct plx_poller *p);

/** Slow path of reactor_wake(). */
void reactor_wake_slow(struct plx_reactor *r);

/** Let it have a turn, if it sleeps: after a fence behind what it shall see. Thread: any. */
static inline void
reactor_wake(struct plx_reactor *r)
{
	if (unlikely(atomic_load_explicit(&r->sleeping, memory_order_relaxed) != 0))
		reactor_wake_slow(r);
}

/* core.c */
/** Yield the core, and learn from the time whether others want it. */
void reactor_offer(struct plx_reactor *r, uint64_t now_ticks);
/** It has turns again that were granted: its core is shared still. @param near by a thread on this core */
void reactor_shared(struct plx_reactor *r, uint64_t now_ticks, bool near);
/** It is busy. @return whether others want its core; now and then it is offered to see that */
bool reactor_is_shared(struct plx_reactor *r, uint64_t now_ticks);
/** @return whether nobody else wants its core, for all that it knows */
static inline bool
reactor_has_core(const struct plx_reactor *r, uint64_t now_ticks)
{
	return now_ticks >= r->shared_until;
}

/* idle.c */
#define REACTOR_DOZE_US 100u /* its first sleep behind something that came */
/** Its last turn found nothing. @return whether that took time */
bool reactor_idle(struct plx_reactor *r, uint64_t now_ticks);

/* policy.c. Times are in us. */

/* An application that asks for turns: does it wait? */
#define REACTOR_ASK_US	     5u	   /* it waits if it asks again within this time */
#define REACTOR_AWAY_US	     100u  /* a longer time in between counts at most this: the thread may have lost its core */
#define REACTOR_WAIT_NEAR_US 20u   /* while long data moves: a thread on the reactor's core has the turns after this wait, */
#define REACTOR_WAIT_FAR_US  200u  /* and one on another core after this */

/* How long until the reactor looks whether granted turns are given. */
#define REACTOR_LOOK_MIN_US   25u   /* the first look, while long data moves; each next one after twice the time, */
#define REACTOR_LOOK_MAX_US   100u  /* up to this */
#define REACTOR_LOOK_SHORT_US 500u  /* the first look, while nothing long is under way; then twice the time, */
#define REACTOR_LOOK_LATE_US  2000u /* up to this: each look is a context switch on that core */
#define REACTOR_LOOK_AWAY_US  4000u /* while the application has yielded its core: a look would take that core */
#define REACTOR_LOOK_OWN_US   20u   /* a reactor that has a core of its own */

/* Long data: for how long it counts as under way, and whether the application waits for it. */
#define REACTOR_LONG_US	  2000u /* at least so long, */
#define REACTOR_LONG_RATE 1000u /* and 1 us more for so many bytes */
#define REACTOR_LONG_ASKS 8u	/* an application that asks so often at once behind a post waits for it */
#define REACTOR_LONG_SURE 8u	/* and one that did so often keeps the turns the next time */
#define REACTOR_SLICE_US  1000u /* a thread that has lost its core has none for so long, mostly */

/* After a grant that ended soon. */
#define REACTOR_WORTH_US     4000u  /* a grant that lasted so long was worth it */
#define REACTOR_PAUSE_MIN_US 2000u  /* after a shorter one the reactor grants none for this time, */
#define REACTOR_PAUSE_MAX_US 64000u /* and after each further one for twice the time, up to this */

/* Counts of turns and of calls. */
#define REACTOR_GRANT_TURNS  16u /* fewer turns between two looks: the reactor revokes its grant */
#define REACTOR_TURN_US	     32u /* soon after a look one turn for each such time is enough: it may move long data */
#define REACTOR_BORROW_CALLS 16	 /* so many calls that borrow the turns of a sleeping reactor: it grants them */
#define REACTOR_POST_TURNS   16	 /* so many of its own turns in a row that ran posts: it grants them, on a shared core */

/** Let the application take the turns, if it is on this core and polls. */
void reactor_free(struct plx_reactor *r, struct plx_poller *p);
/** The application posts all the time, and so runs: on a shared core it may as well give the turns. */
__rte_cold void reactor_grant_to_poster(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks);
/** Who waits all the time may as well give the turns: it is a way of two lines shorter. */
__rte_cold void reactor_grant_to_waiters(struct plx_reactor *r, uint64_t now_ticks);
/** Have them again. @return whether; not while somebody takes them */
__rte_cold bool reactor_regain(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks);
/** Its grant is over, for all that the reactor knows. */
void reactor_end_grant(struct plx_reactor *r, struct plx_poller *p);

/** The application gave it back. */
static inline bool
reactor_was_returned(const struct plx_poller *p)
{
	/* relaxed: what it was before is acquired when it is taken */
	return plx_gate_owner(&p->gate) == PLX_GATE_FREE;
}

/** All its pollers are granted. */
static inline bool
reactor_granted_all(const struct plx_reactor *r)
{
	return r->n_mine == 0 && r->n_granted != 0;
}

#endif

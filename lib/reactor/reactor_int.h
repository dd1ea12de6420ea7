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
	return rte_get_tsc_hz() * us / 1000000; /* few ticks a microsecond, as of ARM: not rounded first */
}

enum reactor_sleep {
	REACTOR_AWAKE,
	REACTOR_ASLEEP,
	REACTOR_STANDS_BY, /* it polls that line only */
};

struct plx_reactor {
	/* line 0: read by others after each post */
	alignas(64) _Atomic uint32_t sleeping; /* enum reactor_sleep; writer: owner; the thread that
	                                        * wakes it stores 0 */
	_Atomic int cpu;		       /* writer: owner, when it frees a poller */
	int bell;			       /* eventfd; written by the thread that took sleeping
	         			        * from ASLEEP to 0 */

	/* owner: the reactor's thread; stat readers: any, relaxed */
	alignas(64) TAILQ_HEAD(, plx_poller) pollers;
	struct plx_inbox inbox;
	struct plx_reactor_stat stat;
	uint64_t empty;	     /* consecutive empty turns */
	uint64_t shared_until; /* ticks; end of the time that the core counts as shared */
	uint64_t shared_seen; /* ticks; when a yield found a taker */
	uint64_t offered;    /* ticks; of the last yield while busy */
	uint64_t look_at;    /* ticks; time of the next check for waiting applications */
	uint64_t due_ticks;  /* the first of those that its armed pollers name; it sleeps no longer */
	bool hog;	     /* and they kept it for long */
	bool dozed;	     /* it has slept briefly, and nothing came: the next time all fence */
	unsigned n_mine;     /* pollers that it owns */
	unsigned n_granted;     /* pollers that are granted */
	struct plx_yield yield;
	int epfd;	     /* the eventfd, and the pollers' descriptors */
	uint64_t rings;	     /* not consumed yet: the thread that took sleeping has not written the
	               	      * eventfd */

	/* writer: control */
	alignas(64) _Atomic bool stop;
	_Atomic bool ended; /* writer: owner */
	bool beside; /* in a thread of its own */
	_Atomic unsigned idle;
	_Atomic uint64_t idle_turns;
	_Atomic unsigned n_pollers;
	unsigned lcore;
	pthread_t thread; /* in a forked child */
	cpu_set_t set;	  /* there: the cores that it may run on */
};

/*
 * Reading the clock takes as long as half an empty turn, and a message waits for it: it is
 * read after turns that found something, and once in so many others. The duration of turns
 * in between is estimated from the last uninterrupted series.
 */
#define REACTOR_CLOCK_TURNS 16

/** How a reactor spends its time. Owner: its loop. */
struct reactor_clock {
	uint64_t last; /* ticks, of the last reading */
	uint64_t turn; /* ticks of an empty turn */
	unsigned idle; /* empty turns since the last reading */
};

static inline void
reactor_clock_add(struct reactor_clock *c, uint64_t now, uint64_t idle, struct plx_reactor_stat *st)
{
	PLX_STAT_ADD(st->idle_ticks, idle);
	PLX_STAT_ADD(st->busy_ticks, now - c->last - idle);
	c->last = now;
	c->idle = 0;
}

/** Nothing was found since the last reading. */
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
 * A long sleep, which is rare, makes every thread of the process execute a fence, so that
 * posts, which are frequent, need none: a fence there waits for the line that was just
 * written, from the other core. Without that system call both sides fence.
 */
extern _Atomic bool reactor_fences_for_all; /* relaxed: the same at every start */

/** Between a post and the read of sleeping. Thread: any. */
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
/**
 * Between storing sleeping, or moving a poller, and the look at posts. Thread: any. Blocks:
 * may.
 */
void reactor_fence_sleep(void);
int reactor_wake_open(struct plx_reactor *r);
void reactor_wake_close(struct plx_reactor *r);
/** Add, or remove, p's descriptors to those that the reactor sleeps on. */
void reactor_wake_add(struct plx_reactor *r, const struct plx_poller *p);
void reactor_wake_remove(struct plx_reactor *r, const struct plx_poller *p);

/** Slow path of reactor_wake(). */
void reactor_wake_slow(struct plx_reactor *r);

/** Wake it, if it sleeps: after a fence that follows the event. Thread: any. */
static inline void
reactor_wake(struct plx_reactor *r)
{
	if (unlikely(atomic_load_explicit(&r->sleeping, memory_order_relaxed) != 0))
		reactor_wake_slow(r);
}

/* core.c */
/** Yield the core, and learn from the duration whether others use it. */
void reactor_offer(struct plx_reactor *r, uint64_t now_ticks);
/** A grant has ended: its core is still shared. @param near by a thread on this core */
void reactor_shared(struct plx_reactor *r, uint64_t now_ticks, bool near);
/** It is busy. @return whether others use its core; it yields now and then to find out */
bool reactor_is_shared(struct plx_reactor *r, uint64_t now_ticks);
/** @return whether no other thread uses its core, as far as known */
static inline bool
reactor_has_core(const struct plx_reactor *r, uint64_t now_ticks)
{
	return now_ticks >= r->shared_until;
}

/* idle.c */
#define REACTOR_DOZE_US 500u /* its first sleep after an event; the fence behind it interrupts who computes */
/** Its last turn found nothing. @return whether that took time */
bool reactor_idle(struct plx_reactor *r, uint64_t now_ticks);

/* policy.c. Times are in us. */

/* Does an application that polls wait? */
#define REACTOR_ASK_US	     5u	   /* it waits if it polls again within this time */
#define REACTOR_AWAY_US	     100u  /* a longer time in between counts at most this: the thread may
                       	            * have lost its core */
#define REACTOR_WAIT_NEAR_US 20u   /* while long data moves: a thread on the reactor's core gets the
                                    * worker after this wait, */
#define REACTOR_WAIT_FAR_US  200u  /* and one on another core after this */

/* How long until the reactor checks the turns of a granted worker. */
#define REACTOR_LOOK_MIN_US   25u   /* the first look, while long data moves; each next one after twice the time, */
#define REACTOR_LOOK_MAX_US   100u  /* up to this */
#define REACTOR_LOOK_SHORT_US 500u  /* the first look, without long data; then twice the time, */
#define REACTOR_LOOK_LATE_US  2000u /* up to this: each look is a context switch on that core */
#define REACTOR_LOOK_AWAY_US  4000u /* while the application has yielded its core: a look would take
                                     * that core */
#define REACTOR_LOOK_OWN_US   20u   /* a reactor that has a core of its own */

/* Long data: how long it counts as moving, and whether the application waits for it. */
#define REACTOR_LONG_US	  2000u /* at least this long, */
#define REACTOR_LONG_RATE 1000u /* and 1 us more for this many bytes */
#define REACTOR_LONG_ASKS 8u	/* an application with this many immediate calls after a post waits
                            	 * for it */
#define REACTOR_LONG_SURE 8u	/* and one that did so often keeps the worker the next time */
#define REACTOR_SLICE_US  1000u /* a thread that has lost its core usually has none for so long */

/* After a grant that ended soon. */
#define REACTOR_WORTH_US     4000u  /* a grant of this duration was worth it */
#define REACTOR_PAUSE_MIN_US 2000u  /* after a shorter one the reactor grants none for this time, */
#define REACTOR_PAUSE_MAX_US 64000u /* and after each further one for twice the time, up to this */

/* Counts of turns and of calls. */
#define REACTOR_GRANT_TURNS  16u /* fewer turns between two looks: the reactor revokes its grant */
#define REACTOR_TURN_US	     32u /* soon after a look one turn for each such time is enough: it may
                       	          * move long data */
#define REACTOR_BORROW_CALLS 16	 /* this many calls that take a sleeping reactor's worker for
                               	  * themselves: it grants it */
#define REACTOR_POST_TURNS   16	 /* this many consecutive turns of its own that ran posts: it grants
                               	  * it, on a shared core */

/** Let the application take the worker, if it is on this core and polls. */
void reactor_free(struct plx_reactor *r, struct plx_poller *p);
/**
 * The application posts all the time, and so runs: on a shared core it can run the turns
 * itself.
 */
__rte_cold void reactor_grant_to_poster(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks);
/** Grant the worker to a thread that spins anyway: this saves two cache-line transfers. */
__rte_cold void reactor_grant_to_waiters(struct plx_reactor *r, uint64_t now_ticks);
/** Own it again. @return whether; not while another thread takes it */
__rte_cold bool reactor_regain(struct plx_reactor *r, struct plx_poller *p, uint64_t now_ticks);
/** Its grant is over, as far as the reactor knows. */
void reactor_end_grant(struct plx_reactor *r, struct plx_poller *p);

/** The application has returned it. */
static inline bool
reactor_was_returned(const struct plx_poller *p)
{
	/* relaxed: taking it acquires */
	return plx_gate_owner(&p->gate) == PLX_GATE_FREE;
}

/** All its pollers are granted. */
static inline bool
reactor_granted_all(const struct plx_reactor *r)
{
	return r->n_mine == 0 && r->n_granted != 0;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_reactor.h - pinned threads that give turns to pollers
 *
 * A reactor runs on one lcore of the EAL and knows nothing of messages: it calls
 * each of its pollers, counts busy and idle ticks, and applies the idle policy
 * when nothing was done for a while.
 */
#ifndef PLX_REACTOR_H
#define PLX_REACTOR_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "plx_inbox.h"
#include "plx_stat.h"

#define PLX_REACTOR_MAX 128 /* as many as the EAL has lcores */

struct plx_reactor;

/** Who gives a poller its turns, and so owns what it stands for. */
enum plx_turns {
	PLX_TURNS_FREE,	   /* nobody, now: its reactor idles on a core that it shares */
	PLX_TURNS_REACTOR,
	PLX_TURNS_LENT,	   /* the application's threads, as they call */
	PLX_TURNS_TAKEN,   /* one of them, now; or LENT and inside */
};

/* Values of favoured that are no thread's. */
#define PLX_POLLER_NOBODY 0 /* yet */
#define PLX_POLLER_ALL	  1 /* several threads have them */

/** Something that takes turns; embedded in its owner. */
struct plx_poller {
	/* hardly written while the reactor has the turns */
	alignas(64) unsigned (*fn)(void *arg); /* one turn; how much it did */
	/*
	 * Before the reactor sleeps: 0 when no turn is needed until one of fds polls readable or
	 * plx_reactor_wake() is called, or -EBUSY; and after it, or after others were busy. NULL:
	 * turns are needed at any time.
	 */
	int (*arm)(void *arg);
	void (*disarm)(void *arg);
	void *arg;
	const int *fds;
	unsigned n_fds;
	bool alone; /* one thread of the application only; and not where the kernel does not fence for it */
	_Atomic uintptr_t favoured; /* not alone: the thread that enters; writer: who has taken the turns */
	_Atomic(struct plx_reactor *) reactor; /* writer: control; NULL when it runs on none */
	_Atomic uint32_t turns;		       /* enum plx_turns */
	_Atomic uint64_t lend_after;	       /* ticks; writer: the reactor; not lent before */
	_Atomic uint64_t long_until;	       /* ticks; writer: the application; until then something long moves */
	_Atomic bool polled;		       /* writer: who has taken them over: it waits; else it posts */
	_Atomic bool waits_long;	       /* writer: the application; who posts what is long waits for it */
	/* application: who has the turns, or asks for them */
	alignas(64) _Atomic uint32_t n_asked; /* turns given, and asked for in vain; reader: the reactor */
	_Atomic bool away;   /* it waits, and has yielded its core; readers: the reactor */
	_Atomic uint32_t waiter; /* the number of the thread that waited last; the same */
	_Atomic uintptr_t waiter_thread;
	_Atomic bool inside; /* alone, favoured: in one of the turns that are LENT; readers: the others */
	bool entered;	     /* who has the turns is inside */
	bool returns;	     /* behind this one it returns them */
	_Atomic uintptr_t within; /* the thread in whose turn callbacks run, or 0 */
	_Atomic uint64_t asked_ticks; /* when it did last */
	uint64_t waited_ticks; /* for how long, less what it did something else */
	/* when something long was posted, or turns behind it were asked for or given; writer: any */
	_Atomic uint64_t long_ticks;
	_Atomic bool long_posted; /* does it wait for that? writer: one at a time */
	uint64_t gap_ticks;    /* when it last asked after it had not for a while, */
	uint64_t gap_ran_ns;   /* and how long its thread had run then */
	uint8_t long_asks;     /* so often, so far */
	uint8_t long_sure;     /* REACTOR_LONG_SURE: it mostly has */
	/* owner: who has the turns */
	alignas(64) bool armed;
	bool near; /* who took them over was on the reactor's core */
	bool borrowed;	  /* taken for a call: free again behind it */
	uint32_t n_calls; /* that borrowed them since the reactor had them */
	uint32_t posts;	  /* the reactor's turns in a row that ran what the application posted */
	/* owner: the reactor */
	bool mine; /* it has the turns */
	bool lent; /* the application has them, as far as it knows */
	uint32_t n_seen; /* of n_asked, when it looked */
	uint32_t look_us, pause_us;
	uint64_t lent_since, lent_until; /* ticks */
	uint64_t looked; /* ticks, when turns were last seen to be given */
	uint64_t ran_ns; /* of the whole process, then; 0: not asked */
	TAILQ_ENTRY(plx_poller) link;
};

struct plx_reactor_stat {
	uint64_t turns, busy_turns;
	uint64_t busy_ticks, idle_ticks;
	uint64_t idles;	       /* times the idle policy was applied */
	uint64_t yields_taken; /* auto: somebody else wanted the core that was offered */
	uint64_t sleeps;
	uint64_t lent;	       /* times that the application took turns over */
};

extern const struct plx_stat_row plx_reactor_stat_rows[];

/** What plx_reactor_info() tells. */
struct plx_reactor_info {
	unsigned lcore;
	unsigned n_pollers;
	struct plx_reactor_stat stat;
};

/**
 * Start a reactor on an lcore that waits for work.
 * @param idle PLX_IDLE_x
 * @param idle_turns empty turns before it is applied
 * Errors: -EBUSY the lcore is in use; -ENODEV the EAL has no such lcore; -ENOMEM.
 * Thread: control.
 */
int plx_reactor_start(unsigned lcore, unsigned idle, uint64_t idle_turns);

/** Stop all reactors and wait for them; pollers must be gone. Thread: control. */
void plx_reactor_stop_all(void);

/** @return how many run. Thread: any. */
unsigned plx_reactor_count(void);

/** Change the idle policy of all reactors. Thread: any. */
void plx_reactor_set_idle(unsigned idle, uint64_t idle_turns);

/**
 * Where this process begins among reactors that have the same number of pollers: processes of one
 * node that name the same cores differ in it. Thread: control.
 */
void plx_reactor_set_seat(unsigned seat);

/** Give a poller to the reactor with the fewest; returns when it has begun. Thread: control. */
int plx_reactor_add(struct plx_poller *p);

/**
 * Give a poller to the reactor of another lcore; between two turns.
 * Errors: -ENODEV no reactor there, or the poller has none. Thread: control, not a reactor.
 */
int plx_reactor_move(struct plx_poller *p, unsigned lcore);

/** @return the lcore of a poller's reactor, or -ENODEV. Thread: control. */
int plx_reactor_lcore(const struct plx_poller *p);

/** Something was posted for a poller: let it have a turn. Thread: any. Blocks: never. */
void plx_reactor_wake(const struct plx_poller *p);

/**
 * Behind something that was posted for a poller.
 * @return whether its reactor sleeps; if not, it sees that before it does. Thread: any.
 */
bool plx_reactor_sleeps(const struct plx_poller *p);

/** Slow paths of plx_poller_take(). */
void plx_poller_asks_long(struct plx_poller *p);
bool plx_poller_take_free(struct plx_poller *p, bool polls);
bool plx_poller_take_lent(struct plx_poller *p);

/** @return whether the reactor has the turns. Thread: any. */
static inline bool
plx_poller_is_held(const struct plx_poller *p)
{
	/* relaxed: who takes them acquires */
	return atomic_load_explicit(&p->turns, memory_order_relaxed) == PLX_TURNS_REACTOR;
}

/** @return whether the application's threads have the turns. Thread: any. */
static inline bool
plx_poller_is_lent(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->turns, memory_order_relaxed) >= PLX_TURNS_LENT;
}

/* One thread at a time; the reactor looks now and then. */
static inline void
plx_poller_asked(struct plx_poller *p, uint32_t n)
{
	n += atomic_load_explicit(&p->n_asked, memory_order_relaxed);
	atomic_store_explicit(&p->n_asked, n, memory_order_relaxed);
}

/* @return whether this thread enters. Relaxed: only this thread's own claim makes it equal. */
static inline bool
plx_poller_is_mine(const struct plx_poller *p)
{
	return likely(p->alone) || atomic_load_explicit(&p->favoured, memory_order_relaxed) ==
					   (uintptr_t)__builtin_thread_pointer();
}

/** @return whether a callback asks, which a turn of this thread's runs. The same. Thread: any. */
static inline bool
plx_poller_is_within(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->within, memory_order_relaxed) ==
	       (uintptr_t)__builtin_thread_pointer();
}

/*
 * Without a locked instruction, of which a message would have four: the reactor and other threads,
 * which want them rarely, have all threads fence between their store to turns or favoured and their
 * look at inside.
 */
static inline bool
plx_poller_enter(struct plx_poller *p)
{
	if (unlikely(atomic_load_explicit(&p->inside, memory_order_relaxed)))
		return false; /* a callback asks */
	atomic_store_explicit(&p->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* pairs with the release in free_for() */
	if (likely(atomic_load_explicit(&p->turns, memory_order_acquire) == PLX_TURNS_LENT) &&
		plx_poller_is_mine(p)) {
		p->entered = true;
		return true;
	}
	/* pairs with the acquire in is_inside(), as in plx_poller_leave() */
	atomic_store_explicit(&p->inside, false, memory_order_release);
	return false;
}

/* relaxed: it is about time only */
static inline bool
plx_poller_has_posted_long(const struct plx_poller *p)
{
	return atomic_load_explicit(&p->long_posted, memory_order_relaxed);
}

/**
 * Take over the turns of a reactor that idles on a core which it shares, or those that other
 * threads have taken over before. One that has them is told so, by how often they are asked for.
 * One thread alone, or the first of several until another comes, has no locked instruction for that.
 * @param polls the application asks for progress: often, and it waits. By one thread at a time.
 * Otherwise it has something to do and may borrow them for that
 * @return whether they are this thread's, until plx_poller_give(). Thread: any. Blocks: never.
 */
static inline bool
plx_poller_take(struct plx_poller *p, bool polls)
{
	uint32_t was = atomic_load_explicit(&p->turns, memory_order_relaxed);

	if (polls && unlikely(plx_poller_has_posted_long(p)))
		plx_poller_asks_long(p);
	if (likely(was == PLX_TURNS_LENT))
		return plx_poller_is_mine(p) ? plx_poller_enter(p) : plx_poller_take_lent(p);
	if (was == PLX_TURNS_FREE)
		return plx_poller_take_free(p, polls);
	if (was == PLX_TURNS_REACTOR && polls)
		plx_poller_asked(p, 1);
	return false;
}

/**
 * plx_poller_take() of one thread alone, and of turns that are lent only.
 * @return whether; until plx_poller_leave_alone(), or plx_poller_give() with entered
 */
static inline bool
plx_poller_enter_alone(struct plx_poller *p)
{
	if (unlikely(atomic_load_explicit(&p->inside, memory_order_relaxed)))
		return false; /* as in plx_poller_enter() */
	atomic_store_explicit(&p->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&p->turns, memory_order_acquire) == PLX_TURNS_LENT))
		return true;
	atomic_store_explicit(&p->inside, false, memory_order_release);
	return false;
}

/** When nobody has returned them meanwhile. */
static inline void
plx_poller_leave_alone(struct plx_poller *p)
{
	/* pairs with the acquire in is_inside() */
	atomic_store_explicit(&p->inside, false, memory_order_release);
}

/** The application will take no turns: the reactor shall; behind the present one, in a callback. Thread: any. */
void plx_poller_return(struct plx_poller *p);

/* It was entered. */
static inline void
plx_poller_leave(struct plx_poller *p)
{
	bool returns = p->returns;

	if (unlikely(returns))
		p->returns = false;
	/* pairs with the acquire in is_inside() */
	atomic_store_explicit(&p->inside, false, memory_order_release);
	/* pairs with the one behind a post: others, that have not fenced for it, saw it inside */
	if (unlikely(!plx_poller_is_mine(p)))
		atomic_thread_fence(memory_order_seq_cst);
	if (unlikely(returns))
		plx_poller_return(p);
}

/**
 * @return whether this thread runs on the reactor's very core, while something long is under way: who is
 * to move that may need this core. Thread: any.
 */
bool plx_poller_is_near(const struct plx_poller *p);

/**
 * A thread that waits is about to yield its core. Until plx_poller_back() it counts as one that
 * asks for turns: the reactor leaves them lent. Thread: any.
 */
void plx_poller_away(struct plx_poller *p);
void plx_poller_back(struct plx_poller *p);

/** Slow path of plx_poller_give(). */
void plx_poller_give_taken(struct plx_poller *p);

/**
 * After plx_poller_take(); what is loaded behind it is loaded after it.
 * @param turns that it counts for: as long as these are given the reactor leaves it to others
 */
static inline void
plx_poller_give(struct plx_poller *p, uint32_t turns)
{
	if (turns != 0)
		plx_poller_asked(p, turns);
	if (unlikely(plx_poller_has_posted_long(p)))
		atomic_store_explicit(&p->long_ticks, rte_rdtsc(), memory_order_relaxed);
	if (likely(p->entered))
		plx_poller_leave(p);
	else
		plx_poller_give_taken(p);
}

/**
 * Something long was posted, which shall move while the application computes: it returns its turns,
 * and for as long as that may take it has them again only when it has waited for a while. Who mostly
 * waited for such before keeps them.
 * @param len bytes
 * Thread: any, one at a time.
 */
void plx_poller_long(struct plx_poller *p, uint64_t len);

/** Take a poller away; returns after its last turn. Thread: control, not a reactor. */
void plx_reactor_remove(struct plx_poller *p);

/** Facts about the i-th reactor. @return 0 or -ENOENT. Thread: control. */
int plx_reactor_info(unsigned i, struct plx_reactor_info *info);

#endif

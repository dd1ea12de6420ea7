/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak.h - run the library's own code on a model of a weakly ordered machine, in every order
 *
 * Design notes
 * - Code that is compiled with -fsanitize=thread calls a function for each access to memory. These functions are
 *   here, and no sanitizer is linked: the threads of a scene are coroutines, each atomic access is a step, and
 *   all orders of the steps are run.
 * - The model is C11's, as far as it can be had without guesses at future stores. A location keeps all values that
 *   were stored to it. A thread has a view: for each location the oldest value that it may still read. A relaxed
 *   load takes any value from there on, so loads and stores of several locations seem to be in any order. A release
 *   hands the view over, and an acquire takes it. A sequentially consistent fence exchanges it with that of all such
 *   fences. This is weaker than AArch64 and x86 but for two things: no load takes a value that is stored later, and
 *   what two threads store to two places is overwritten in the order of each. What would come of that to plain memory
 *   is found as a race.
 * - A plain access to memory that a scene shares has to be ordered with those of other threads by releases and
 *   acquires; else it is a race, whatever it read.
 * - A store may come after a load that follows it: compilers may do that. It is what plx_fence_all() needs a
 *   compiler's barrier against.
 * - Two orders that differ only in steps that have nothing to do with each other are run once (sleep sets).
 * - A rule takes an order from the code: what it makes possible has to be found. Of each order that a scene uses at a
 *   place with a name some row has to do that.
 */
#ifndef WEAK_H
#define WEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK_THREADS 4

enum weak_op {
	WEAK_NO_OP,
	WEAK_LOAD,
	WEAK_STORE,
	WEAK_RMW,	   /* also a compare-and-swap */
	WEAK_SIGNAL_FENCE, /* of the compiler only */
	WEAK_FENCE,	   /* atomic_thread_fence() */
	WEAK_BARRIER,	   /* membarrier(2) */
	WEAK_KERNEL,	   /* sleeps and wake-ups */
};

/** What a scene comes to. */
enum weak_found {
	WEAK_NOTHING,
	WEAK_RACE,    /* plain accesses that are not ordered */
	WEAK_WRONG,   /* weak_check() */
	WEAK_STUCK,   /* all threads that have not ended wait */
	WEAK_ENDLESS, /* or go on for ever */
};

/** Accesses that are made relaxed, fences that are left out. */
struct weak_rule {
	enum weak_op op;
	const char *name; /* of the location, by weak_name(); NULL: any */
	int order;	  /* memory_order_x; WEAK_ANY */
	int thread;	  /* WEAK_ANY */
};

#define WEAK_ANY (-1)
/** All accesses of a kind to a location. */
#define WEAK_WITHOUT(op, name) {op, name, WEAK_ANY, WEAK_ANY}

struct weak_scene {
	const char *name;
	void (*setup)(void);		   /* before each run; steps are not explored */
	void (*thread[WEAK_THREADS])(void);
	void (*end)(void);		   /* all threads have ended; may be NULL */
	const char *moves; /* of these locations: compilers may move a store down, where a thread relies on plx_fence_all() */
	uint64_t most;	/* runs at most; 0: all */
	bool impatient; /* a waiting loop runs on, to where it sleeps; else it waits for the next store */
};

/** A scene, the order that is taken from the code, and what has to be found. */
struct weak_row {
	const struct weak_scene *scene;
	enum weak_found expected;
	struct weak_rule without; /* WEAK_NO_OP: the code as it is */
};

/** Run all orders of each scene, and print what was found. @return the exit status of main */
int weak_main(const struct weak_row *rows, unsigned n);

/** In setup: memory of several threads. */
void weak_share(const void *p, size_t len);
void weak_name(const void *p, const char *name);

/** As memcpy(), of which the compiler would say nothing. */
void *weak_copy(void *to, const void *from, size_t len);
/** @return memory that lasts for one run, aligned to a line */
void *weak_alloc(size_t len);
/** Of a scene that maps memory of another process: @return that. */
void *weak_map(size_t len);
#define WEAK_PID 1 /* of all processes of a scene */

/** In a thread, or in end. */
void weak_check(bool ok);
/** @return this thread's number; WEAK_THREADS: none */
unsigned weak_thread(void);
/** @return a name for __builtin_thread_pointer(); the same of a thread */
void *weak_self(void);
void *weak_self_of(unsigned thread);
/** A waiting loop looks again. */
int weak_pause(void);
/** All threads pass a fence: membarrier(2). */
void weak_barrier(void);
/** As futex(2) with these two operations. */
long weak_syscall(long number, ...);
/** A file descriptor, by its number below WEAK_EVENTS: sleep until it has been written. */
#define WEAK_EVENTS 4
int weak_event_wait(unsigned e);
int weak_event_write(unsigned e);
/** @return how often it was written since it was last read */
uint64_t weak_event_read(unsigned e);

#endif

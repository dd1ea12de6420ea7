/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * gate_explore_test.c - the gate and the lock, in every order of steps and of the processor's stores
 *
 * Design notes
 * A model of lib/gate: a reactor and up to two threads of an application, each a program of steps, and a step is one
 * access to memory. A store goes into its thread's store buffer and becomes visible at any later time, in order, as
 * on x86; a locked instruction and a fence empty the buffer of their thread, membarrier those of all. All states that
 * can be reached are made.
 *
 * Three things have to hold in each state: there is one owner at a time; some step can be taken until all programs
 * have ended; and in the end a message that waits is one that the reactor was woken for.
 *
 * A mistake that is planted in the model has to be found, and for its own reason.
 *
 * Not in the model: how a reactor sleeps (idle.c has that argument), and when it looks by the clock, which would find
 * each message that is forgotten, late.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_unit.h"

enum { R, A, B, THREADS };

/* What bias.to holds; a thread has its number plus OF. */
enum { FREE, REACTOR, TAKEN, ALL, ONE, OF };

/* Memory. */
enum { TO, INSIDE, SENT_A, SENT_B, LOCKED, VARS };

#define BUFFER 4
#define CALLS  2 /* of thread A; and one of B, which keeps the states few enough */

/* Where a thread stands: before the step of that name. */
enum pc {
	IDLE,	   /* between two calls; the reactor: asleep */
	DONE,
	LOOK,	   /* at bias.to */
	ENTER,	   /* store inside */
	CHECK,	   /* look at bias.to behind that */
	BACK_OUT,
	IN,	   /* by the bias */
	LEAVE,
	LEFT,	   /* look whether it was revoked meanwhile */
	BEHIND,	   /* look at the inbox */
	TAKE,	   /* change bias.to */
	BARRIER,
	INSIDE_IS, /* look at inside */
	PUT_BACK,
	IN_TAKEN,
	GIVE,
	POST,
	POSTED,	   /* look at bias.to */
	RUN,	   /* what was posted: fence */
	RUN_LOOK,
	RUN_END,
	FREED,	   /* by the reactor, which fences before it sleeps */
	LOCK_TAKE,
	LOCK_REVOKE,
	LOCK_BARRIER,
	LOCK_WAIT,
	LOCK_DROP,
};

struct thread {
	uint8_t pc;
	uint8_t calls;	 /* left */
	uint8_t was;	 /* bias.to, as it found it */
	uint8_t fence;	 /* all threads have to */
	uint8_t borrows;
	uint8_t runs;	 /* it takes the turns for what was posted */
	uint8_t in;	 /* it acts as the owner */
	uint8_t n;	 /* in the store buffer */
	uint8_t var[BUFFER], val[BUFFER];
};

struct state {
	uint8_t mem[VARS];
	uint8_t ran[THREADS]; /* messages of each thread; the owner's */
	uint8_t grantee;
	uint8_t woken;	      /* the reactor */
	struct thread t[THREADS];
};

enum wrong { NOTHING, TWO_OWNERS, STUCK, FORGOTTEN };

static const char *const wrongs[] = {"nothing", "two owners", "nobody can go on", "a message is forgotten"};

enum bug {
	BUG_NONE,
	BUG_REACTOR_NO_BARRIER,
	BUG_THREAD_NO_BARRIER,
	BUG_LOOKS_FIRST,    /* at inside, before bias.to is changed */
	BUG_ENTERS_BLIND,   /* bias.to is not looked at behind the store to inside */
	BUG_LEAVES_BLIND,   /* without a fence, where the bias was revoked */
	BUG_BACKS_OUT_BLIND, /* the same */
	BUG_BIAS_MOVES,	    /* to the next thread that comes */
	BUG_GIVES_BLIND,    /* without a look at the inbox */
	BUG_PUTS_BACK_BLIND, /* without a fence: others saw TAKEN, and left what they posted */
	BUG_TRIES_ONCE,	    /* and does not look whether all who may be in have left meanwhile */
	BUG_LOCK_NO_BARRIER,
	BUG_LOCK_BIAS_MOVES,
};

static struct {
	enum bug bug;
	bool lock, one;
	bool polls;	    /* thread B asks for turns and posts nothing */
	unsigned n_threads; /* with the reactor */
} scene;

/* -- memory -- */

static void
drain_one(struct state *s, struct thread *t)
{
	s->mem[t->var[0]] = t->val[0];
	t->n--;
	memmove(t->var, t->var + 1, BUFFER - 1);
	memmove(t->val, t->val + 1, BUFFER - 1);
	t->var[BUFFER - 1] = t->val[BUFFER - 1] = 0;
}

static void
drain(struct state *s, struct thread *t)
{
	while (t->n != 0)
		drain_one(s, t);
}

static void
drain_all(struct state *s)
{
	for (unsigned i = 0; i < THREADS; i++)
		drain(s, &s->t[i]);
}

static void
store(struct state *s, struct thread *t, uint8_t var, uint8_t val)
{
	if (t->n == BUFFER)
		drain_one(s, t);
	t->var[t->n] = var;
	t->val[t->n++] = val;
}

static uint8_t
load(const struct state *s, const struct thread *t, uint8_t var)
{
	for (unsigned i = t->n; i-- != 0;)
		if (t->var[i] == var)
			return t->val[i];
	return s->mem[var];
}

static bool
compare_and_swap(struct state *s, struct thread *t, uint8_t var, uint8_t was, uint8_t val)
{
	drain(s, t);
	if (s->mem[var] != was)
		return false;
	s->mem[var] = val;
	return true;
}

static bool
waits(const struct state *s, const struct thread *t)
{
	return load(s, t, SENT_A) != s->ran[A] || load(s, t, SENT_B) != s->ran[B];
}

/* -- what both have -- */

static uint8_t
self(unsigned i)
{
	return scene.one ? ONE : OF + i;
}

static uint8_t
granted(const struct state *s)
{
	return s->grantee != 0 ? s->grantee : ALL;
}

static void
owns(struct state *s, struct thread *t)
{
	t->in = 1;
	s->ran[A] = load(s, t, SENT_A);
	s->ran[B] = load(s, t, SENT_B);
}

static void
call_ends(struct thread *t)
{
	t->runs = 0;
	t->was = t->fence = t->borrows = 0;
	t->pc = --t->calls != 0 ? IDLE : DONE;
}

/* It could not take the turns. */
static void
takes_not(struct thread *t, unsigned i)
{
	t->was = t->fence = t->borrows = 0;
	t->pc = i == R ? IDLE : t->runs ? RUN_END : i == B && scene.polls ? BEHIND : POST;
}

/* -- the bias, and who revokes it -- */

static void
look(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	t->was = load(s, t, TO);
	if (i != R && t->was == self(i))
		t->pc = ENTER;
	else if (t->was == FREE || t->was >= ALL)
		t->pc = scene.bug == BUG_LOOKS_FIRST && t->was >= ALL ? INSIDE_IS : TAKE;
	else
		takes_not(t, i);
}

static void
end_bias(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	if (s->grantee == 0 || scene.bug == BUG_BIAS_MOVES) {
		t->fence = s->grantee != 0 && t->was != ALL;
		s->grantee = self(i);
		return;
	}
	s->grantee = ALL;
	t->fence = t->was != ALL;
}

static void
take(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];
	bool free = t->was == FREE;

	t->fence = 0;
	if (!compare_and_swap(s, t, TO, t->was, i == R ? REACTOR : TAKEN)) {
		takes_not(t, i);
		return;
	}
	t->borrows = free;
	if (!free && i == R)
		t->fence = t->was > ALL && scene.bug != BUG_REACTOR_NO_BARRIER;
	else if (!free)
		end_bias(s, i);
	if (scene.bug == BUG_THREAD_NO_BARRIER && i != R)
		t->fence = 0;
	t->pc = free || scene.bug == BUG_LOOKS_FIRST ? IN_TAKEN : t->fence ? BARRIER : INSIDE_IS;
	if (t->pc == IN_TAKEN)
		owns(s, t);
}

static void
inside_is(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];
	bool is = load(s, t, INSIDE) != 0;

	if (scene.bug == BUG_LOOKS_FIRST) {
		if (is)
			takes_not(t, i);
		else
			t->pc = TAKE;
		return;
	}
	t->pc = is ? PUT_BACK : IN_TAKEN;
	if (!is)
		owns(s, t);
}

static void
put_back(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	store(s, t, TO, granted(s));
	if (scene.bug != BUG_PUTS_BACK_BLIND)
		drain(s, t);
	takes_not(t, i);
}

/* -- the gate -- */

static void
give(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	t->in = 0;
	store(s, t, TO, t->borrows ? FREE : granted(s));
	if (i == R) {
		t->pc = FREED;
		return;
	}
	drain(s, t);
	t->pc = t->runs ? RUN_LOOK : BEHIND;
}

static void
left(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	if (load(s, t, TO) != self(i) && scene.bug != BUG_LEAVES_BLIND)
		drain(s, t);
	t->pc = t->runs ? RUN_LOOK : BEHIND;
}

static void
behind(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	if (scene.bug != BUG_GIVES_BLIND && waits(s, t))
		t->pc = RUN;
	else
		call_ends(t);
}

static void
posted(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	if (load(s, t, TO) == REACTOR) {
		drain(s, t); /* pairs with the fence before it sleeps */
		s->woken = 1;
		call_ends(t);
	} else {
		t->pc = RUN;
	}
}

/* @return whether nobody is in who would look behind it */
static bool
nobody_is_in(const struct state *s, const struct thread *t, uint8_t to)
{
	if (scene.bug == BUG_TRIES_ONCE)
		return false;
	return to >= ALL && load(s, t, INSIDE) == 0;
}

static void
run_end(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];
	uint8_t to = load(s, t, TO);

	if (waits(s, t) && nobody_is_in(s, t, to)) {
		t->pc = LOOK; /* whoever was in, and would have looked, is out */
		return;
	}
	if (waits(s, t) && to < TAKEN)
		s->woken = 1;
	call_ends(t);
}

/* The reactor has granted the worker. */
static void
freed(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	drain(s, t);
	t->was = t->fence = t->borrows = 0;
	t->pc = IDLE;
}

/* -- the lock -- */

static void
lock_look(struct state *s, unsigned i)
{
	s->t[i].pc = load(s, &s->t[i], TO) == self(i) ? ENTER : LOCK_TAKE;
}

static bool
lock_take(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	if (!compare_and_swap(s, t, LOCKED, 0, 1))
		return false;
	t->was = load(s, t, TO);
	t->pc = t->was >= OF && t->was != self(i) ? LOCK_REVOKE : LOCK_WAIT;
	return true;
}

static void
lock_revoke(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	store(s, t, TO, scene.bug == BUG_LOCK_BIAS_MOVES ? self(i) : ALL);
	t->pc = scene.bug == BUG_LOCK_NO_BARRIER ? LOCK_WAIT : LOCK_BARRIER;
}

static bool
lock_wait(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	if (load(s, t, INSIDE) != 0)
		return false;
	if (load(s, t, TO) == FREE) /* nobody, yet */
		store(s, t, TO, self(i));
	t->in = 1;
	t->pc = LOCK_DROP;
	return true;
}

static void
lock_drop(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];

	t->in = 0;
	drain(s, t);
	s->mem[LOCKED] = 0;
	call_ends(t);
}

/* -- all steps -- */

static void
check(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];
	bool is = scene.bug == BUG_ENTERS_BLIND || load(s, t, TO) == self(i);

	t->pc = is ? IN : BACK_OUT;
	if (!is)
		return;
	if (scene.lock)
		t->in = 1;
	else
		owns(s, t);
}

/* Others saw it inside, and left what they posted to it. */
static void
backs_out(struct state *s, unsigned i)
{
	if (scene.bug != BUG_BACKS_OUT_BLIND)
		drain(s, &s->t[i]);
	takes_not(&s->t[i], i);
}

static void
leave(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];
	bool was_in = t->pc == LEAVE;

	store(s, t, INSIDE, 0);
	if (scene.lock && was_in)
		call_ends(t);
	else if (scene.lock)
		t->pc = LOCK_TAKE;
	else if (was_in)
		t->pc = LEFT;
	else
		backs_out(s, i);
}

static void
post(struct state *s, unsigned i)
{
	struct thread *t = &s->t[i];
	uint8_t var = i == A ? SENT_A : SENT_B;

	store(s, t, var, load(s, t, var) + 1);
	t->pc = POSTED;
}

/* The reactor grants its turns, or frees them. */
static void
reactor_gives(struct state *s, bool grants)
{
	struct thread *t = &s->t[R];

	t->borrows = !grants;
	t->pc = GIVE;
	t->in = 0;
}

/* @return whether thread i can take a step; `other`: the other one of two that it may take */
static bool
step(struct state *s, unsigned i, bool other)
{
	struct thread *t = &s->t[i];

	if (other && !(i == R && t->pc == IN_TAKEN))
		return false;
	switch ((enum pc)t->pc) {
	case DONE:
		return false;
	case IDLE:
		if (i == R)
			s->woken = 0;
		t->pc = LOOK;
		return true;
	case LOOK:
		if (scene.lock)
			lock_look(s, i);
		else
			look(s, i);
		return true;
	case ENTER:
		store(s, t, INSIDE, self(i));
		t->pc = CHECK;
		return true;
	case CHECK:
		check(s, i);
		return true;
	case IN:
		t->in = 0;
		t->pc = LEAVE;
		return true;
	case BACK_OUT:
	case LEAVE:
		leave(s, i);
		return true;
	case LEFT:
		left(s, i);
		return true;
	case BEHIND:
		behind(s, i);
		return true;
	case TAKE:
		take(s, i);
		return true;
	case BARRIER:
		drain_all(s);
		t->pc = INSIDE_IS;
		return true;
	case INSIDE_IS:
		inside_is(s, i);
		return true;
	case PUT_BACK:
		put_back(s, i);
		return true;
	case IN_TAKEN:
		if (i == R) {
			reactor_gives(s, other);
		} else {
			t->in = 0;
			t->pc = GIVE;
		}
		return true;
	case GIVE:
		give(s, i);
		return true;
	case POST:
		post(s, i);
		return true;
	case POSTED:
		posted(s, i);
		return true;
	case RUN:
		drain(s, t);
		t->runs = 1;
		t->pc = RUN_LOOK;
		return true;
	case RUN_LOOK:
		t->pc = waits(s, t) ? LOOK : RUN_END;
		return true;
	case RUN_END:
		run_end(s, i);
		return true;
	case FREED:
		freed(s, i);
		return true;
	case LOCK_TAKE:
		return lock_take(s, i);
	case LOCK_REVOKE:
		lock_revoke(s, i);
		return true;
	case LOCK_BARRIER:
		drain_all(s);
		t->pc = LOCK_WAIT;
		return true;
	case LOCK_WAIT:
		return lock_wait(s, i);
	case LOCK_DROP:
		lock_drop(s, i);
		return true;
	}
	return false;
}

/* -- all states -- */

#define SLOTS (1u << 23)

static struct {
	struct state *all;
	uint32_t *from;	 /* the state before each */
	uint32_t *slots; /* of the hash, an index plus 1 */
	uint32_t n, now;
} seen;

static uint32_t
hash(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ p[i]) * 1099511628211u;
	return (uint32_t)(h ^ h >> 32);
}

static void
add(const struct state *s)
{
	uint32_t k = hash(s) % SLOTS;

	for (; seen.slots[k] != 0; k = (k + 1) % SLOTS)
		if (memcmp(&seen.all[seen.slots[k] - 1], s, sizeof(*s)) == 0)
			return;
	UNIT_TRUE_FATAL(seen.n < SLOTS / 2);
	seen.from[seen.n] = seen.now;
	seen.all[seen.n++] = *s;
	seen.slots[k] = seen.n;
}

static bool
is_over(const struct state *s)
{
	return s->t[A].pc == DONE && (scene.n_threads < 3 || s->t[B].pc == DONE) &&
	       (scene.lock || s->t[R].pc == IDLE) && s->t[R].n + s->t[A].n + s->t[B].n == 0;
}

static enum wrong
judge(const struct state *s, bool moves)
{
	if (s->t[R].in + s->t[A].in + s->t[B].in > 1)
		return TWO_OWNERS;
	if (is_over(s) && !scene.lock && waits(s, &s->t[R]) && !s->woken)
		return FORGOTTEN;
	return moves || is_over(s) ? NOTHING : STUCK;
}

/* All that may come behind a state. @return whether anything may */
static bool
expand(const struct state *s)
{
	bool moves = false;
	struct state next;

	for (unsigned i = scene.lock ? A : R; i < scene.n_threads; i++) {
		for (unsigned other = 0; other < 2; other++) {
			next = *s;
			if (!step(&next, i, other))
				continue;
			add(&next);
			moves = true;
		}
		next = *s;
		if (next.t[i].n == 0)
			continue;
		drain_one(&next, &next.t[i]);
		add(&next);
		moves = true;
	}
	return moves;
}

/* How a state is reached, from the last step back. */
static void
print_way(uint32_t i)
{
	for (;; i = seen.from[i]) {
		const struct state *s = &seen.all[i];

		printf("%u: to %u inside %u sent %u %u ran %u %u woken %u", i, s->mem[TO], s->mem[INSIDE],
			s->mem[SENT_A], s->mem[SENT_B], s->ran[A], s->ran[B], s->woken);
		for (unsigned k = 0; k < THREADS; k++)
			printf(" | %c at %u, buffers %u%s", "RAB"[k], s->t[k].pc, s->t[k].n, s->t[k].in ? ", in" : "");
		printf("\n");
		if (i == 0)
			return;
	}
}

static enum wrong
explore(enum wrong expected)
{
	enum wrong w = NOTHING;
	struct state s;

	seen.all = malloc(SLOTS / 2 * sizeof(*seen.all));
	seen.from = malloc(SLOTS / 2 * sizeof(*seen.from));
	seen.slots = calloc(SLOTS, sizeof(*seen.slots));
	UNIT_TRUE_FATAL(seen.all != NULL && seen.from != NULL && seen.slots != NULL);
	seen.n = seen.now = 0;
	memset(&s, 0, sizeof(s));
	s.grantee = scene.one ? ONE : 0;
	s.t[A].calls = CALLS;
	s.t[B].calls = scene.lock ? CALLS : 1;
	add(&s);
	for (uint32_t i = 0; i < seen.n && w == NOTHING; i++) {
		seen.now = i;
		s = seen.all[i];
		w = judge(&s, expand(&s));
	}
	if (w != expected)
		print_way(seen.now);
	free(seen.all);
	free(seen.from);
	free(seen.slots);
	return w;
}

static void
finds(enum bug bug, bool lock, bool one, enum wrong expected)
{
	enum wrong w;

	scene.bug = bug;
	scene.lock = lock;
	scene.one = one;
	scene.n_threads = one ? 2 : 3;
	w = explore(expected);
	if (w != expected)
		printf("bug %u, %s: %s, %u states\n", bug, lock ? "lock" : one ? "one thread" : "several", wrongs[w],
			seen.n);
	UNIT_EQ(w, expected);
	if (expected == NOTHING)
		UNIT_TRUE(seen.n > 100);
}

static void
a_reactor_and_one_thread(void)
{
	finds(BUG_NONE, false, true, NOTHING);
}

static void
a_reactor_and_several_threads(void)
{
	finds(BUG_NONE, false, false, NOTHING);
}

static void
and_threads_that_only_poll(void)
{
	scene.polls = true;
	finds(BUG_NONE, false, false, NOTHING);
	finds(BUG_BACKS_OUT_BLIND, false, false, FORGOTTEN);
	scene.polls = false;
}

static void
several_threads_at_a_lock(void)
{
	finds(BUG_NONE, true, false, NOTHING);
}

static void
planted_mistakes_are_found(void)
{
	finds(BUG_REACTOR_NO_BARRIER, false, true, TWO_OWNERS);
	finds(BUG_REACTOR_NO_BARRIER, false, false, TWO_OWNERS);
	finds(BUG_THREAD_NO_BARRIER, false, false, TWO_OWNERS);
	finds(BUG_LOOKS_FIRST, false, true, TWO_OWNERS);
	finds(BUG_ENTERS_BLIND, false, true, TWO_OWNERS);
	finds(BUG_LEAVES_BLIND, false, false, FORGOTTEN);
	finds(BUG_BIAS_MOVES, false, false, TWO_OWNERS);
	finds(BUG_GIVES_BLIND, false, false, FORGOTTEN);
	finds(BUG_PUTS_BACK_BLIND, false, false, FORGOTTEN);
	finds(BUG_TRIES_ONCE, false, true, FORGOTTEN);
	finds(BUG_TRIES_ONCE, false, false, FORGOTTEN);
	finds(BUG_LOCK_NO_BARRIER, true, false, TWO_OWNERS);
	finds(BUG_LOCK_BIAS_MOVES, true, false, TWO_OWNERS);
}

int
main(void)
{
	CU_TestInfo tests[] = {
		UNIT_TEST(a_reactor_and_one_thread),
		UNIT_TEST(a_reactor_and_several_threads),
		UNIT_TEST(and_threads_that_only_poll),
		UNIT_TEST(several_threads_at_a_lock),
		UNIT_TEST(planted_mistakes_are_found),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"gate_explore", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	return unit_run(suites);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * share_explore_test.c - puts and gets that both sides copy, in every order of steps, with deaths, departures and refusals
 *
 * Design notes
 * A model, step by step, of lib/rma/rma_share.c and rma_help.c: an initiator puts, or gets, three times by one cell, and a target
 * handles up to three messages, each at any time after it was sent. A step is one access to the cell, or one copy. Up to
 * two faults come at any time: either side dies, the initiator leaves, either one's copy fails. After an initiator that
 * has left or is dead comes another one, which may get the same cell. What memory orders do is in test/weak.
 *
 * A get whose initiator leaves goes on until the target has no chunk of it, or is dead: only then it has failed, and
 * no copy comes later.
 *
 * All states that can be reached are made. A put that is over well has all its bytes, and no copy of it comes later; no
 * copy is made by two halves of descriptions. From each state the initiator can end all its puts without a step of the
 * target, but those by which that copies a chunk that it has taken.
 *
 * A mistake that is planted in the model has to be found, and for its own reason. The first two were in the code once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "explore_states.h"
#include "plx_unit.h"

#define PUTS   3
#define CHUNKS 2
#define NONE   UINT8_MAX

static const uint8_t n_of[PUTS + 1] = {0, 1, 2, 1}; /* chunks of each put; puts count from 1 */

/* Where the initiator stands: before the step of that name. */
enum at {
	GET,	   /* the cell, if it is free */
	STOP,
	DESCRIBE,  /* lengths */
	DESCRIBE_2, /* addresses */
	RESET_DONE,
	RESET_BAD,
	SHARE,	   /* set the state */
	PUBLISH,
	SEND,
	TAKE,
	COPY,
	LOOK_BAD,
	LOOK_DONE,
	IDLE,	   /* set the state */
	RELEASE,   /* the owner; it has left */
	END,
};

enum target_at { T_IDLE, T_GEN, T_READ, T_READ_2, T_TAKE, T_COPY, T_COUNT, T_GIVE_BACK };

enum told { NOT, WELL, BADLY, FAILED /* as it has left, or the target is dead */, DEAD /* nobody is left to learn it */ };

struct state {
	/* the cell */
	uint8_t gen, front, back, stopped;
	uint8_t done_gen, done, bad_gen, bad;
	uint8_t lens, addrs; /* of this put */
	uint8_t shared, owner;
	/* the initiator */
	uint8_t at, put, self, my_gen, n, mine, redo, chunk, err, over;
	uint8_t told[PUTS + 1];
	uint8_t copies[PUTS + 1]; /* chunks that are there, a bit each */
	/* the target */
	uint8_t t_at, t_gen, t_lens, t_addrs, t_chunk, messages;
	uint8_t dead; /* the target */
	uint8_t owner_dead;
	uint8_t faults;
};

enum wrong {
	RIGHT,
	LOST,	  /* a put is over well, and lacks bytes */
	LATE,	  /* a copy comes when its put is over */
	TORN,	  /* a copy by halves of two descriptions */
	FOR_EVER, /* the initiator may wait for ever */
};

static const char *const wrongs[] = {"nothing", "bytes are lost", "a copy is late", "a copy is torn", "a put never ends"};

enum bug {
	BUG_NONE,
	BUG_DESCRIBES_RUNNING, /* the cursor is not stopped before */
	BUG_BAD_IS_A_SUM,      /* of the chunks' numbers */
	BUG_PUBLISHES_FIRST,   /* before it describes */
	BUG_COUNTS_FIRST,      /* before it copies */
	BUG_COUNTS_BLIND,      /* without a look at the generation */
	BUG_WAITS_FOR_NOBODY,  /* all is taken: over */
	BUG_OWN_GENERATIONS,   /* each owner begins with the first */
	BUG_LEAVES_RUNNING,    /* the cursor is not stopped */
	BUG_ERROR_WAITS,       /* for all, though none is taken any more */
	BUG_ERROR_WAITS_NOT,   /* for what the target has */
	BUG_RESETS_LATE,       /* the count, when the put is published */
	BUG_LEAVES_HALF,       /* of the chunks to the target */
	BUG_DEATH_IS_SILENT,
	BUG_NO_GIVING_BACK,    /* what cannot be read is forgotten */
	BUG_GET_LEAVES,	       /* as a put does */
	BUG_GET_WAITS_FOR_ALL, /* though none is taken any more */
	BUG_GET_RUNS_ON,       /* the cursor is not stopped */
	BUG_GET_WAITS_BLIND,   /* does not see that the target is dead */
	BUG_GET_TAKES_NOTHING_BACK, /* what the target gives back is not looked for */
};

static enum bug bug;
static enum wrong found;

enum fault { F_NONE, F_LEAVE = 1, F_DIE = 2, F_TARGET_DIES = 4, F_REFUSE = 8, F_ERROR = 16, F_ALL = 31 };

static struct {
	unsigned faults, n_faults;
	bool gets;
} scene;

/* -- the cell -- */

/* @return a chunk of the generation, or NONE */
static uint8_t
cursor_take(struct state *s, uint8_t gen, uint8_t n, bool back)
{
	if (s->gen != gen || s->stopped || s->front + s->back >= n)
		return NONE;
	return back ? n - 1 - s->back++ : s->front++;
}

static void
cursor_set(struct state *s, uint8_t gen)
{
	s->gen = gen;
	s->front = s->back = s->stopped = 0;
}

/* -- the initiator -- */

static void
tell(struct state *s, enum told how)
{
	if (how == WELL && s->copies[s->put] != (1u << n_of[s->put]) - 1)
		found = LOST;
	s->told[s->put] = how;
}

static void
next_put(struct state *s)
{
	s->err = s->over = 0;
	s->chunk = NONE;
	if (s->put == PUTS) {
		s->at = END;
		return;
	}
	s->put++;
	s->at = s->owner == s->self ? STOP : GET;
	s->my_gen = s->n = s->mine = s->redo = 0;
}

/* The device alone. */
static void
put_alone(struct state *s)
{
	s->copies[s->put] = (1u << n_of[s->put]) - 1;
	tell(s, WELL);
	next_put(s);
}

static void
copy_own(struct state *s)
{
	s->copies[s->put] |= 1u << s->chunk;
	s->mine++;
	s->chunk = NONE;
	s->at = TAKE;
}

static void
take_own(struct state *s)
{
	if (s->redo != 0) {
		s->chunk = s->redo & 1 ? 0 : 1;
		s->redo &= s->redo - 1;
	} else if (bug == BUG_LEAVES_HALF && s->front * 2 >= s->n) {
		s->chunk = NONE;
	} else {
		s->chunk = cursor_take(s, s->my_gen, s->n, false);
	}
	s->at = s->chunk != NONE ? COPY : LOOK_BAD;
}

static void
look_bad(struct state *s)
{
	s->at = LOOK_DONE;
	if (s->bad_gen != s->my_gen || s->bad == 0 || (s->over && bug == BUG_GET_TAKES_NOTHING_BACK))
		return;
	s->redo = bug != BUG_BAD_IS_A_SUM ? s->bad : s->bad <= s->n ? 1u << (s->bad - 1) : 0;
	s->bad = 0;
	s->at = s->redo != 0 ? TAKE : LOOK_DONE;
}

static void
look_done(struct state *s)
{
	uint8_t done = s->done_gen == s->my_gen ? s->done : 0;

	s->at = TAKE;
	if (s->mine + done >= s->n || (bug == BUG_WAITS_FOR_NOBODY && s->front + s->back >= s->n) ||
		(bug == BUG_ERROR_WAITS_NOT && s->err)) {
		tell(s, s->over ? FAILED : s->err ? BADLY : WELL);
		s->shared = s->over ? 0 : s->shared;
		s->at = s->over ? RELEASE : IDLE;
	}
}

static bool
own_step(struct state *s)
{
	switch (s->at) {
	case GET:
		if (s->owner != 0) {
			put_alone(s);
			return true;
		}
		s->owner = s->self;
		s->at = STOP;
		return true;
	case STOP:
		s->my_gen = bug == BUG_OWN_GENERATIONS ? s->put - s->self + 1 : s->gen + 1;
		if (bug != BUG_DESCRIBES_RUNNING)
			s->stopped = 1;
		s->n = n_of[s->put];
		s->at = bug == BUG_PUBLISHES_FIRST ? PUBLISH : DESCRIBE;
		return true;
	case DESCRIBE:
		s->lens = s->put;
		break;
	case DESCRIBE_2:
		s->addrs = s->put;
		if (bug == BUG_RESETS_LATE) {
			s->at = RESET_BAD;
			return true;
		}
		break;
	case RESET_DONE:
		s->done_gen = s->my_gen;
		s->done = 0;
		if (bug == BUG_RESETS_LATE) {
			s->at = SEND;
			return true;
		}
		break;
	case RESET_BAD:
		s->bad_gen = s->my_gen;
		s->bad = 0;
		break;
	case SHARE:
		s->shared = 1;
		if (bug == BUG_PUBLISHES_FIRST) {
			s->at = SEND;
			return true;
		}
		break;
	case PUBLISH:
		cursor_set(s, s->my_gen);
		s->at = bug == BUG_PUBLISHES_FIRST ? DESCRIBE : bug == BUG_RESETS_LATE ? RESET_DONE : SEND;
		return true;
	case SEND:
		s->messages++;
		break;
	case TAKE:
		take_own(s);
		return true;
	case COPY:
		copy_own(s);
		return true;
	case LOOK_BAD:
		look_bad(s);
		return true;
	case LOOK_DONE:
		look_done(s);
		return true;
	case IDLE:
		s->shared = 0;
		next_put(s);
		return true;
	case RELEASE: /* another one comes */
		s->owner = 0;
		s->self = s->put + 1;
		next_put(s);
		return true;
	default:
		return false;
	}
	s->at++;
	return true;
}

/* -- the target -- */

static void
count(struct state *s)
{
	if (s->done_gen == s->t_gen || bug == BUG_COUNTS_BLIND)
		s->done++;
}

static void
copy_theirs(struct state *s)
{
	uint8_t put = s->t_lens;

	if (s->t_lens != s->t_addrs)
		found = TORN;
	else if (s->told[put] == WELL || s->told[put] == BADLY || (scene.gets && s->told[put] == FAILED))
		found = LATE;
	s->copies[put] |= 1u << s->t_chunk;
	s->t_at = bug == BUG_COUNTS_FIRST ? T_TAKE : T_COUNT;
}

static void
take_theirs(struct state *s)
{
	s->t_chunk = cursor_take(s, s->t_gen, n_of[s->t_lens], true);
	s->t_at = s->t_chunk == NONE ? T_IDLE : bug == BUG_COUNTS_FIRST ? T_COUNT : T_COPY;
	if (s->t_chunk != NONE && s->told[s->t_lens] == FAILED)
		found = LATE; /* it had it not when the put failed */
	if (s->t_at == T_IDLE)
		s->t_gen = s->t_lens = s->t_addrs = 0;
}

static void
give_back(struct state *s)
{
	if (s->bad_gen == s->t_gen)
		s->bad = bug == BUG_BAD_IS_A_SUM ? s->bad + s->t_chunk + 1u : s->bad | 1u << s->t_chunk;
	s->t_at = T_IDLE;
	s->t_gen = s->t_lens = s->t_addrs = 0;
	s->t_chunk = NONE;
}

static bool
target_step(struct state *s)
{
	if (s->dead)
		return false;
	switch (s->t_at) {
	case T_IDLE:
		if (s->messages == 0)
			return false;
		s->messages--;
		s->t_at = s->shared ? T_GEN : T_IDLE;
		return true;
	case T_GEN:
		s->t_gen = s->gen;
		s->t_at = T_READ;
		return true;
	case T_READ:
		s->t_lens = s->lens;
		s->t_at = T_READ_2;
		return true;
	case T_READ_2:
		s->t_addrs = s->addrs;
		s->t_at = T_TAKE;
		return true;
	case T_TAKE:
		take_theirs(s);
		return true;
	case T_COPY:
		copy_theirs(s);
		return true;
	case T_COUNT:
		count(s);
		s->t_at = bug == BUG_COUNTS_FIRST ? T_COPY : T_TAKE;
		return true;
	default:
		give_back(s);
		return true;
	}
}

/* It frees the cell of an owner that is dead. */
static bool
sweep_step(struct state *s)
{
	if (s->dead || !s->owner_dead || s->t_at != T_IDLE)
		return false;
	if (s->shared)
		s->stopped = 1;
	s->shared = 0;
	s->owner = 0;
	s->owner_dead = 0;
	return true;
}

/* -- faults -- */

/* The put has failed; what the target has may still come. */
static void
fails(struct state *s, enum told how)
{
	if (s->told[s->put] == NOT)
		s->told[s->put] = how;
	s->chunk = NONE;
}

static bool
is_at_it(const struct state *s)
{
	return s->at > GET && s->at < IDLE;
}

/* A get that is shared: no more of it is taken. */
static void
outlive(struct state *s)
{
	s->over = 1;
	if (s->chunk != NONE) { /* it is taken, and is not copied any more */
		s->mine++;
		s->chunk = NONE;
	}
	if (!s->err && bug != BUG_GET_WAITS_FOR_ALL)
		s->n = RTE_MIN(s->n, s->front + s->back);
	if (bug != BUG_GET_RUNS_ON)
		s->stopped = 1;
	s->at = TAKE;
}

static bool
fault_step(struct state *s, enum fault f)
{
	switch (f) {
	case F_LEAVE:
		if (!is_at_it(s) || s->over)
			return false;
		if (scene.gets && s->at >= SEND && bug != BUG_GET_LEAVES) {
			outlive(s);
			return true;
		}
		if (bug != BUG_LEAVES_RUNNING && s->shared)
			s->stopped = 1;
		s->shared = bug == BUG_LEAVES_RUNNING ? s->shared : 0;
		fails(s, FAILED);
		s->at = RELEASE;
		return true;
	case F_DIE: /* another one comes */
		if (!is_at_it(s))
			return false;
		fails(s, DEAD);
		s->owner_dead = 1;
		s->self = s->put + 1;
		next_put(s);
		return true;
	case F_TARGET_DIES:
		s->dead = 1;
		return true;
	case F_REFUSE:
		if (s->dead || s->t_at != T_COPY)
			return false;
		s->t_at = T_GIVE_BACK;
		if (bug == BUG_NO_GIVING_BACK)
			s->t_at = T_IDLE;
		return true;
	case F_ERROR:
		if (s->at != COPY || s->err)
			return false;
		s->err = 1;
		if (bug != BUG_ERROR_WAITS)
			s->n = RTE_MIN(s->n, s->front + s->back);
		s->stopped = 1;
		s->mine++;
		s->chunk = NONE;
		s->at = TAKE;
		return true;
	default:
		return false;
	}
}

/* The device says so, and there is no other put. */
static bool
death_step(struct state *s)
{
	if (!s->dead || s->at == END || bug == BUG_DEATH_IS_SILENT || (s->over && bug == BUG_GET_WAITS_BLIND))
		return false;
	fails(s, FAILED);
	s->at = END;
	return true;
}

/* -- all states -- */

enum step { STEP_OWN, STEP_TARGET, STEP_DEATH, STEP_SWEEP, STEP_FAULT, STEPS = STEP_FAULT + 5 };

#define STATES_MAX (1u << 21)

static struct state *all; /* seen.all */
static struct explore_edges edges = {.max = 1u << 22}; /* by which the initiator goes on, whatever the target does */
static struct from { uint32_t state, step; } *from; /* how each was met first */
static struct explore_states seen = {.len = sizeof(struct state), .max = STATES_MAX};

static bool
take(struct state *s, unsigned step)
{
	switch (step) {
	case STEP_OWN:
		return own_step(s);
	case STEP_TARGET:
		return target_step(s);
	case STEP_DEATH:
		return death_step(s);
	case STEP_SWEEP:
		return sweep_step(s);
	default:
		if (s->faults == scene.n_faults || (scene.faults & 1u << (step - STEP_FAULT)) == 0)
			return false;
		s->faults++;
		return fault_step(s, 1u << (step - STEP_FAULT));
	}
}

/* The target has a chunk, and does not have to begin anything. */
static bool
goes_on_by(const struct state *s, unsigned step)
{
	return step == STEP_OWN || step == STEP_DEATH || (step == STEP_TARGET && s->t_at >= T_COPY);
}

static uint32_t
number_of(const struct state *s)
{
	return explore_number(&seen, s);
}

static void
print_step(const struct state *s, unsigned step)
{
	static const char *const own[] = {"gets the cell", "stops", "describes", "describes more", "resets done",
		"resets bad", "shares", "publishes", "sends", "takes", "copies", "looks at bad", "looks at done",
		"is idle", "releases"};
	static const char *const target[] = {"has a message", "reads the generation", "reads lengths", "reads addresses",
		"takes", "copies", "counts", "gives back"};
	static const char *const others[] = {"death is seen", "target sweeps", "FAULT: leaves", "FAULT: dies",
		"FAULT: target dies", "FAULT: target can't read", "FAULT: can't write"};

	if (step == STEP_OWN)
		printf(" %u %s,", s->put, own[s->at]);
	else if (step == STEP_TARGET)
		printf(" target %s,", target[s->t_at]);
	else
		printf(" %s,", others[step - STEP_DEATH]);
}

static void
print_path(uint32_t i)
{
	if (i == 0)
		return;
	print_path(from[i].state);
	print_step(&all[from[i].state], from[i].step);
}

static enum wrong
report(enum wrong w, uint32_t at, unsigned step)
{
	printf("\n    %s:", wrongs[w]);
	print_path(at);
	if (step != STEPS)
		print_step(&all[at], step);
	return w;
}

static enum wrong
make_all(void)
{
	for (uint32_t i = 0; i < seen.n; i++) {
		for (unsigned k = 0; k < STEPS; k++) {
			struct state next = all[i];
			uint32_t to, before = seen.n;

			found = RIGHT;
			if (!take(&next, k))
				continue;
			if (found != RIGHT)
				return report(found, i, k);
			to = number_of(&next);
			if (to == before)
				from[to] = (struct from){i, k};
			if (goes_on_by(&all[i], k))
				explore_edge(&edges, i, to);
		}
	}
	return RIGHT;
}

/* Back from the states where the initiator is at its end: whoever is not met waits for ever. */
static enum wrong
look_ahead(void)
{
	bool *good = calloc(seen.n, 1);
	uint32_t i = 0;

	UNIT_TRUE_FATAL(good != NULL);
	for (; i < seen.n; i++)
		good[i] = all[i].at == END;
	i = explore_back(&edges, good, seen.n);
	free(good);
	return i == seen.n ? RIGHT : report(FOR_EVER, i, STEPS);
}

static enum wrong
explore(enum bug b, bool gets, unsigned faults, unsigned n_faults)
{
	struct state first = {.self = 1, .put = 1, .chunk = NONE, .t_chunk = NONE};
	enum wrong w;

	bug = b;
	scene.gets = gets;
	scene.faults = faults;
	scene.n_faults = n_faults;
	seen.n = edges.n = 0;
	memset(seen.places, 0, 2 * STATES_MAX * sizeof(*seen.places));
	number_of(&first);
	w = make_all();
	return w != RIGHT ? w : look_ahead();
}

/* -- tests -- */

static void
without_faults_all_puts_are_over_well(void)
{
	unsigned n = 0;

	UNIT_EQ(explore(BUG_NONE, false, F_NONE, 0), RIGHT);
	for (uint32_t i = 0; i < seen.n; i++) {
		if (all[i].at != END)
			continue;
		n++;
		for (unsigned k = 1; k <= PUTS; k++)
			UNIT_EQ(all[i].told[k], WELL);
	}
	UNIT_TRUE(n != 0);
	printf("%u states ", seen.n);
}

static void
with_any_two_faults_nothing_is_lost_late_or_torn(void)
{
	for (unsigned gets = 0; gets < 2; gets++) {
		UNIT_EQ(explore(BUG_NONE, gets, F_ALL, 2), RIGHT);
		UNIT_TRUE(seen.n > 10000);
		printf("%u states ", seen.n);
	}
}

/* A target that takes a part of each put, or of none, is both. */
static void
each_way_to_end_is_reached(bool gets)
{
	unsigned helped = 0, alone = 0, failed = 0, badly = 0, over = 0;

	UNIT_EQ(explore(BUG_NONE, gets, F_ALL, 1), RIGHT);
	for (uint32_t i = 0; i < seen.n; i++) {
		const struct state *s = &all[i];

		helped += s->at == IDLE && s->done != 0;
		alone += s->at == IDLE && s->mine == s->n;
		failed += s->told[2] == FAILED;
		badly += s->told[2] == BADLY;
		over += s->over && s->t_at == T_COPY && s->t_gen == s->my_gen;
	}
	UNIT_TRUE(helped != 0 && alone != 0 && failed != 0 && badly != 0);
	UNIT_EQ(over != 0, gets);
}

static void
each_way_to_end_of_a_put_is_reached(void)
{
	each_way_to_end_is_reached(false);
}

static void
each_way_to_end_of_a_get_is_reached(void)
{
	each_way_to_end_is_reached(true);
}

static const struct {
	const char *name;
	enum bug bug;
	enum wrong as;
	unsigned n_faults; /* with which it is found */
	bool gets;
} mistakes[] = {
	{"the cursor runs while a put is described", BUG_DESCRIBES_RUNNING, TORN, 0, false},
	{"what is given back is a sum", BUG_BAD_IS_A_SUM, FOR_EVER, 2, false},
	{"a put is published first", BUG_PUBLISHES_FIRST, LATE, 0, false},
	{"a chunk is counted before it is copied", BUG_COUNTS_FIRST, LOST, 0, false},
	{"a chunk counts in any put", BUG_COUNTS_BLIND, LOST, 1, false},
	{"what the target has is not waited for", BUG_WAITS_FOR_NOBODY, LOST, 0, false},
	{"each owner begins with the first generation", BUG_OWN_GENERATIONS, LATE, 1, false},
	{"who leaves does not stop the cursor", BUG_LEAVES_RUNNING, LATE, 1, false},
	{"an error waits for all chunks", BUG_ERROR_WAITS, FOR_EVER, 1, false},
	{"an error waits for none", BUG_ERROR_WAITS_NOT, LATE, 1, false},
	{"the count is reset when the put is published", BUG_RESETS_LATE, FOR_EVER, 0, false},
	{"half of the chunks are the target's", BUG_LEAVES_HALF, FOR_EVER, 0, false},
	{"the death of a target is silent", BUG_DEATH_IS_SILENT, FOR_EVER, 1, false},
	{"nothing is given back", BUG_NO_GIVING_BACK, FOR_EVER, 1, false},
	{"a get leaves while the target has a chunk", BUG_GET_LEAVES, LATE, 1, true},
	{"a get that leaves waits for all chunks", BUG_GET_WAITS_FOR_ALL, FOR_EVER, 1, true},
	{"a get that leaves does not stop the cursor", BUG_GET_RUNS_ON, LATE, 1, true},
	{"a get that leaves does not see a dead target", BUG_GET_WAITS_BLIND, FOR_EVER, 2, true},
	{"a get that leaves takes nothing back", BUG_GET_TAKES_NOTHING_BACK, FOR_EVER, 2, true},
	{"what the target has of a get is not waited for", BUG_WAITS_FOR_NOBODY, LOST, 0, true},
	{"an error of a get waits for none", BUG_ERROR_WAITS_NOT, LATE, 1, true},
};

static void
each_planted_mistake_is_found(void)
{
	for (unsigned i = 0; i < RTE_DIM(mistakes); i++) {
		printf("\n  %s:", mistakes[i].name);
		UNIT_EQ(explore(mistakes[i].bug, mistakes[i].gets, F_ALL, mistakes[i].n_faults), mistakes[i].as);
	}
	printf("\n    ");
}

static CU_TestInfo tests[] = {
	UNIT_TEST(without_faults_all_puts_are_over_well),
	UNIT_TEST(each_way_to_end_of_a_put_is_reached),
	UNIT_TEST(each_way_to_end_of_a_get_is_reached),
	UNIT_TEST(with_any_two_faults_nothing_is_lost_late_or_torn),
	UNIT_TEST(each_planted_mistake_is_found),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"share_explore", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	all = malloc(STATES_MAX * sizeof(*all));
	seen.all = (uint8_t *)all;
	seen.places = malloc(2 * STATES_MAX * sizeof(*seen.places));
	edges.v = malloc(edges.max * sizeof(*edges.v));
	from = malloc(STATES_MAX * sizeof(*from));
	if (all == NULL || seen.places == NULL || edges.v == NULL || from == NULL)
		return EXIT_FAILURE;
	return unit_run(suites);
}

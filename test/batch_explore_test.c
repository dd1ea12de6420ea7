/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * batch_explore_test.c - batches of puts that a target claims and an initiator recalls, in every order of steps
 *
 * Design notes
 * A model, step by step, of lib/rma/rma_batch.c, rma_recall.c and rma_take.c: an initiator puts three times to the same word, a
 * batch each. A step is one access to the claims, one copy, or one message. The target takes messages in their order, at
 * any time or never, and refuses up to one. The initiator recalls at any time, and up to once it leaves: then its puts
 * have failed, and it puts again.
 *
 * All states that can be reached are made. A put that is over is copied no more, and was copied before if it is over
 * well; the last one stays. From each state the initiator can end all its puts without a step of the target, but those
 * by which that ends what it has claimed.
 *
 * A mistake that is planted in the model has to be found, and for its own reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "explore_states.h"
#include "plx_unit.h"

#define PUTS	   3
#define STATES_MAX (1u << 20)

enum told { NOT, WELL, FAILED };
enum where { SENT, CLAIMED, RECALLED };

struct message {
	uint8_t put, gen, number, pad;
};

struct batch {
	uint8_t put, number, where; /* put 0: its operation has ended */
	uint8_t id;
};

struct state {
	struct message ring[PUTS]; /* to the target */
	struct batch batch[PUTS];  /* of the initiator, in their order */
	uint8_t answer[PUTS];
	uint8_t n_ring, n_batch, n_answer;
	uint8_t next;	     /* put to send */
	uint8_t gen, number; /* the initiator's */
	uint8_t claims_gen, claims;
	uint8_t word;
	uint8_t taken, copied; /* the target is at this put; 0: none */
	uint8_t left, refused;
	uint8_t told[PUTS + 1], was[PUTS + 1]; /* what of each put; whether it was ever copied */
};

enum bug {
	BUG_NONE,
	BUG_NO_CLAIM,	   /* the target copies whatever claims say */
	BUG_SAME_GEN,	   /* a recall leaves the generation */
	BUG_TAKES_CLAIMED, /* and the device does what is claimed */
	BUG_NO_NUMBER,	   /* a claim is of any number, and what is refused leaves the generation */
	BUG_EARLY,	   /* what is recalled does not wait for what is claimed */
	BUG_PASSES,	   /* what is sent later does not wait for what is recalled */
	BUG_FORGETS,	   /* who leaves recalls nothing */
	BUG_LOSES,	   /* what was claimed before a refusal is not seen */
};

enum wrong { RIGHT, LATE, NEVER, TWICE, LAST, FOR_EVER };

enum step { SEND, RECALL, DEVICE, ANSWER, LEAVE, TAKE, REFUSE, COPY, TELL, STEPS };

static const char *const wrongs[] = {"right", "a copy comes late", "a put that is over was not copied", "a put is copied twice",
	"the last put does not stay", "a put waits for ever"};

static struct explore_states seen;
static struct explore_edges edges = {.max = 1u << 22};
static enum bug bug;
static enum wrong found;

static void
set_wrong(enum wrong w)
{
	if (found == RIGHT)
		found = w;
}

static void
copy(struct state *s, uint8_t put)
{
	if (s->told[put] != NOT)
		set_wrong(LATE);
	if (s->was[put])
		set_wrong(TWICE);
	s->word = put;
	s->was[put] = 1;
}

static void
batch_end(struct state *s, unsigned i)
{
	uint8_t put = s->batch[i].put;

	if (put != 0) {
		s->told[put] = WELL;
		if (!s->was[put])
			set_wrong(NEVER);
	}
	for (s->n_batch--; i < s->n_batch; i++)
		s->batch[i] = s->batch[i + 1];
	s->batch[s->n_batch] = (struct batch){0};
}

static bool
send(struct state *s)
{
	if (s->next > PUTS)
		return false;
	for (unsigned i = 0; i < s->n_batch; i++)
		if (s->batch[i].where != SENT && bug != BUG_PASSES)
			return false;
	s->ring[s->n_ring++] = (struct message){.put = s->next, .gen = s->gen, .number = s->number};
	s->batch[s->n_batch++] = (struct batch){.put = s->next, .number = s->number, .id = s->next};
	s->number++;
	s->next++;
	return true;
}

static bool
recall(struct state *s)
{
	uint8_t claims = s->claims_gen == s->gen || (s->claims_gen == s->gen + 1 && bug != BUG_LOSES) ? s->claims : 0;

	if (bug != BUG_SAME_GEN) {
		s->claims_gen = ++s->gen;
		s->claims = s->number = 0;
	}
	for (unsigned i = 0; i < s->n_batch; i++) {
		struct batch *b = &s->batch[i];

		if (b->where == SENT)
			b->where = b->number < claims && bug != BUG_TAKES_CLAIMED ? CLAIMED : RECALLED;
	}
	return true;
}

static bool
device(struct state *s)
{
	unsigned i = 0;

	while (bug == BUG_EARLY && i < s->n_batch && s->batch[i].where == CLAIMED)
		i++;
	if (i >= s->n_batch || s->batch[i].where != RECALLED)
		return false;
	copy(s, s->batch[i].put);
	batch_end(s, i);
	return true;
}

static bool
take_answer(struct state *s)
{
	uint8_t id = s->answer[0];

	if (s->n_answer == 0)
		return false;
	for (unsigned i = 0; i < s->n_batch; i++) {
		if (s->batch[i].id != id || s->batch[i].where == RECALLED)
			continue;
		batch_end(s, i);
		break;
	}
	memmove(s->answer, s->answer + 1, --s->n_answer);
	s->answer[s->n_answer] = 0;
	return true;
}

static bool
leave(struct state *s)
{
	if (s->left || s->n_batch == 0)
		return false;
	s->left = true;
	if (bug != BUG_FORGETS)
		recall(s);
	for (unsigned i = s->n_batch; i-- > 0;) {
		/* What the target has begun may still be copied. */
		if (s->batch[i].where != CLAIMED)
			s->told[s->batch[i].put] = FAILED;
		s->batch[i].put = 0;
		if (s->batch[i].where == RECALLED)
			batch_end(s, i);
	}
	return true;
}

static struct message
ring_take(struct state *s)
{
	struct message m = s->ring[0];

	s->n_ring--;
	memmove(s->ring, s->ring + 1, s->n_ring * sizeof(m));
	s->ring[s->n_ring] = (struct message){0};
	return m;
}

static bool
target_takes(struct state *s)
{
	struct message m;

	if (s->taken != 0 || s->n_ring == 0)
		return false;
	m = ring_take(s);
	if (bug == BUG_NO_CLAIM)
		s->taken = m.put;
	else if (s->claims_gen == m.gen && (s->claims == m.number || bug == BUG_NO_NUMBER)) {
		s->claims++;
		s->taken = m.put;
	}
	return true;
}

static bool
target_refuses(struct state *s)
{
	struct message m;

	if (s->taken != 0 || s->n_ring == 0 || s->refused)
		return false;
	m = ring_take(s);
	s->refused = true;
	if (s->claims_gen == m.gen && s->claims == m.number && bug != BUG_NO_NUMBER)
		s->claims_gen++;
	return true;
}

static bool
target_copies(struct state *s)
{
	if (s->taken == 0 || s->copied)
		return false;
	copy(s, s->taken);
	s->copied = true;
	return true;
}

static bool
target_tells(struct state *s)
{
	if (!s->copied)
		return false;
	s->answer[s->n_answer++] = s->taken;
	s->taken = s->copied = 0;
	return true;
}

/* All is sent and over, for the initiator. */
static bool
is_over(const struct state *s)
{
	return s->next > PUTS && s->n_batch == 0;
}

static bool
step(struct state *s, enum step k)
{
	static bool (*const steps[])(struct state *) = {send, recall, device, take_answer, leave, target_takes, target_refuses,
		target_copies, target_tells};

	/* Nothing is recalled that is not there, which would make states without end. */
	if (k == RECALL && (s->n_batch == 0 || s->batch[0].where != SENT))
		return false;
	return steps[k](s);
}

/* The steps of the initiator, and those of a target that has claimed something. */
static bool
goes_on_by(enum step k)
{
	return k != LEAVE && k != TAKE && k != REFUSE;
}

static enum wrong
make_all(void)
{
	const struct state *all = (const struct state *)(const void *)seen.all;

	for (uint32_t i = 0; i < seen.n; i++) {
		for (unsigned k = 0; k < STEPS; k++) {
			struct state next = all[i];
			uint32_t to;

			found = RIGHT;
			if (!step(&next, k))
				continue;
			if (is_over(&next) && next.n_ring == 0 && next.taken == 0 && next.told[PUTS] == WELL && next.word != PUTS)
				set_wrong(LAST);
			if (found != RIGHT)
				return found;
			to = explore_number(&seen, &next);
			if (goes_on_by(k))
				explore_edge(&edges, i, to);
		}
	}
	return RIGHT;
}

/* Back from the states where all is over: whoever is not met waits for ever. */
static enum wrong
look_ahead(void)
{
	const struct state *all = (const struct state *)(const void *)seen.all;
	bool *good = calloc(seen.n, 1);
	uint32_t i;

	UNIT_TRUE_FATAL(good != NULL);
	for (i = 0; i < seen.n; i++)
		good[i] = is_over(&all[i]);
	i = explore_back(&edges, good, seen.n);
	free(good);
	return i == seen.n ? RIGHT : FOR_EVER;
}

static enum wrong
explore(enum bug b)
{
	struct state first = {.next = 1, .gen = 1, .claims_gen = 1};
	enum wrong w;

	bug = b;
	seen.n = edges.n = 0;
	memset(seen.places, 0, 2 * STATES_MAX * sizeof(*seen.places));
	explore_number(&seen, &first);
	w = make_all();
	return w != RIGHT ? w : look_ahead();
}

static void
each_put_is_done_once_and_the_last_one_stays(void)
{
	const struct state *all = (const struct state *)(const void *)seen.all;
	unsigned by_target = 0, by_device = 0, failed = 0, waited = 0;

	UNIT_EQ(explore(BUG_NONE), RIGHT);
	for (uint32_t i = 0; i < seen.n; i++) {
		by_target += all[i].n_answer == PUTS;
		by_device += is_over(&all[i]) && all[i].n_ring == PUTS;
		failed += all[i].told[1] == FAILED && all[i].told[PUTS] == WELL;
		waited += all[i].n_batch == PUTS && all[i].batch[0].where == CLAIMED && all[i].batch[2].where == RECALLED;
	}
	UNIT_TRUE(by_target != 0 && by_device != 0 && failed != 0 && waited != 0);
	printf("%u states ", seen.n);
}

static void
mistakes_are_found(void)
{
	static const struct { enum bug bug; enum wrong wrong; } rows[] = {
		{BUG_NO_CLAIM, LATE},
		{BUG_SAME_GEN, LATE},
		{BUG_TAKES_CLAIMED, LATE},
		{BUG_NO_NUMBER, LATE},
		{BUG_EARLY, LAST},
		{BUG_PASSES, LAST},
		{BUG_FORGETS, LATE},
		{BUG_LOSES, TWICE},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		enum wrong w = explore(rows[i].bug);

		if (w != rows[i].wrong)
			printf("mistake %u: %s\n", rows[i].bug, wrongs[w]);
		UNIT_EQ(w, rows[i].wrong);
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(each_put_is_done_once_and_the_last_one_stays),
	UNIT_TEST(mistakes_are_found),
	CU_TEST_INFO_NULL,
};

int
main(void)
{
	CU_SuiteInfo suites[] = {{"batch_explore", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

	seen = (struct explore_states){.len = sizeof(struct state), .max = STATES_MAX,
		.all = malloc(STATES_MAX * sizeof(struct state)), .places = malloc(2 * STATES_MAX * sizeof(*seen.places))};
	edges.v = malloc(edges.max * sizeof(*edges.v));
	if (seen.all == NULL || seen.places == NULL || edges.v == NULL)
		return 1;
	return unit_run(suites);
}

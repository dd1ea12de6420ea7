/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_explore_test.c - tag offload in every order of events, against a sequential oracle
 *
 * Design notes
 * A worker on a device (tag_explore.h) is led along every path of up to a number of
 * steps: a receive is posted or cancelled, a message comes to the device, software
 * takes an event, the device is given up, or does something of its own. Then all events
 * are taken, and compared with the oracle: messages in the order they came meet receives in the order posted, less
 * those whose cancel succeeded. That pairing is the same whenever software learns of
 * what, so it needs no times.
 *
 * A path whose state was reached before with as many steps left is not led further. The
 * state is all that decides what comes: the receives that have not ended, the device's
 * list, its events, the kept messages, and what either side has been told. Shorter
 * paths (depth_all) are led whatever their state: all of the longer ones would take minutes.
 *
 * Paths can be repeated by hand: a failure prints its steps.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_unit.h"
#include "plx_unit_offload.h"
#include "plx_unit_worker.h"
#include "tag_explore.h"

#define STEPS_MAX 400 /* of a path */
#define SEEN_MAX  (1u << 22)

#define TAG_A UINT64_C(0x1a)
#define TAG_B UINT64_C(0x2b)

enum step {
	POST_A,	     /* exact, long enough for the device */
	POST_ANY,    /* the same, every message matches */
	POST_A_SOFT, /* exact, too short for the device */
	POST_LOW,    /* random paths: matches by the low digit */
	ARRIVE_A,
	ARRIVE_B, /* the device reports it in two events */
	POLL,
	DEMOTE,
	OWN, /* and EXPLORE_OWN in all: what the device does by itself */
	CANCEL = OWN + EXPLORE_OWN, /* and above: the n-th receive */
};

struct explore_recv {
	uint64_t tag, mask;
	struct plx_req *req; /* NULL: ended */
	int status;
	uint32_t got;	 /* id of the message */
	uint32_t buf[EXPLORE_LEN / sizeof(uint32_t)]; /* the id, as received */
	int cancelled;	 /* step, -1 never */
	bool soft;
};

struct explore_msg {
	uint64_t tag;
	int step;
};

static const struct explore_dev *dev;
static struct unit_workers u;
static struct plx_worker *w;
static struct explore_recv recvs[STEPS_MAX];
static struct explore_msg msgs[STEPS_MAX];
static unsigned n_recvs, n_msgs;
static uint16_t path[STEPS_MAX];
static unsigned n_path;
static uint64_t n_paths, n_states;
static uint32_t list_len; /* receives that the device holds */
static const char *found; /* what went wrong first */
static bool quiet;	  /* a mistake is planted: it is to be found */

/* -- the planted mistakes within the rules -- */

static bool past_conflicts, moves_past_conflicts;

bool __real_offload_soft_conflicts(const struct offload_soft *s, const struct plx_tag_recv *r);
bool __wrap_offload_soft_conflicts(const struct offload_soft *s, const struct plx_tag_recv *r);

bool
__wrap_offload_soft_conflicts(const struct offload_soft *s, const struct plx_tag_recv *r)
{
	return !past_conflicts && __real_offload_soft_conflicts(s, r);
}

bool __real_offload_recvs_conflict(const struct plx_tag_recv *a, const struct plx_tag_recv *b);
bool __wrap_offload_recvs_conflict(const struct plx_tag_recv *a, const struct plx_tag_recv *b);

bool
__wrap_offload_recvs_conflict(const struct plx_tag_recv *a, const struct plx_tag_recv *b)
{
	return !moves_past_conflicts && __real_offload_recvs_conflict(a, b);
}

/* -- steps -- */

static void
fail(const char *what)
{
	static const char *const names[] = {"post A", "post any", "post A short", "post low digit",
		"A comes", "B comes", "poll", "demote"};

	if (found != NULL)
		return;
	found = what;
	printf("%s%s, list of %u: ", quiet ? "\n    found: " : "\n", what, list_len);
	for (unsigned i = 0; i < n_path; i++) {
		if (path[i] < OWN)
			printf("%s%s", i == 0 ? "" : ", ", names[path[i]]);
		else if (path[i] < CANCEL)
			printf("%s%s", i == 0 ? "" : ", ", dev->own_names[path[i] - OWN]);
		else
			printf(", cancel %u", path[i] - CANCEL);
	}
	printf("\n");
}

static void
post(uint64_t tag, uint64_t mask, bool soft)
{
	struct explore_recv *r = &recvs[n_recvs++];
	struct plx_req *req = plx_req_get(&w->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	*r = (struct explore_recv){.tag = tag & mask, .mask = mask, .req = req, .cancelled = -1,
		.soft = soft};
	plx_worker_tag_recv(w, r->buf, soft ? MODEL_MSG_LEN : dev->len, tag, mask, req);
}

static void
arrive(uint64_t tag, int at, bool halves)
{
	msgs[n_msgs] = (struct explore_msg){tag, at};
	n_msgs += dev->arrive(tag, n_msgs, halves);
}

/* See who has ended. */
static void
look(void)
{
	for (unsigned i = 0; i < n_recvs; i++) {
		struct explore_recv *r = &recvs[i];

		if (r->req == NULL || !plx_req_is_done(r->req))
			continue;
		r->status = r->req->status;
		r->got = r->buf[0];
		if (r->status == -ECANCELED && r->cancelled < 0)
			fail("a receive was cancelled that nobody cancelled");
		plx_req_put(r->req);
		r->req = NULL;
	}
}

static void
step(uint16_t what, int at)
{
	switch (what) {
	case POST_A:
		post(TAG_A, UNIT_EXACT, false);
		break;
	case POST_ANY:
		post(0, 0, false);
		break;
	case POST_A_SOFT:
		post(TAG_A, UNIT_EXACT, true);
		break;
	case POST_LOW:
		post(TAG_B, 0xf, false);
		break;
	case ARRIVE_A:
		arrive(TAG_A, at, false);
		break;
	case ARRIVE_B:
		arrive(TAG_B, at, true);
		break;
	case POLL:
		plx_worker_turn(w);
		break;
	case DEMOTE:
		plx_offload_demote(&w->offload, 0);
		break;
	case OWN:
	case OWN + 1:
		dev->own(what - OWN);
		break;
	default:
		recvs[what - CANCEL].cancelled = at;
		plx_worker_cancel(w, recvs[what - CANCEL].req);
		break;
	}
	look();
	if (dev->wrong() != NULL)
		fail(dev->wrong());
}

/* A turn takes events, or moves receives into the device. */
static bool
turn_does(void)
{
	return dev->waits() || w->offload.look;
}

static bool
own_can(unsigned i)
{
	return dev->own_names[i] != NULL && dev->own_can(i);
}

static bool
is_possible(uint16_t what)
{
	if (what == POLL)
		return turn_does();
	if (what == DEMOTE)
		return w->offload.devs[0].on && w->offload.devs[0].n_held != 0;
	if (what == POST_LOW)
		return false;
	if (what >= OWN && what < CANCEL)
		return own_can(what - OWN);
	return what < CANCEL || (recvs[what - CANCEL].req != NULL && recvs[what - CANCEL].cancelled < 0);
}

/* -- the oracle -- */

/* Which receive a message meets, or -1; taken says which are gone. */
static int
oracle_meets(const struct explore_msg *m, const bool *taken)
{
	for (unsigned i = 0; i < n_recvs; i++) {
		const struct explore_recv *r = &recvs[i];

		if (!taken[i] && (m->tag & r->mask) == r->tag &&
			!(r->req == NULL && r->status == -ECANCELED))
			return (int)i;
	}
	return -1;
}

static uint32_t
kept_id(const struct plx_tag_msg *kept)
{
	const struct plx_msg *m = container_of(kept, const struct plx_msg, tag);
	uint32_t id;

	memcpy(&id, m->data, sizeof(id));
	return id;
}

/* All events are taken: is all as it must be? */
static void
compare(void)
{
	bool taken[STEPS_MAX] = {false};
	struct plx_tag_msg *kept = plx_tag_msg_first(w->tag);

	for (unsigned k = 0; k < n_msgs; k++) {
		int i = oracle_meets(&msgs[k], taken);

		if (i < 0) {
			if (kept == NULL || kept_id(kept) != k) {
				fail("a message that met nothing is not kept, or not in its place");
				return;
			}
			kept = plx_tag_msg_next(kept);
			continue;
		}
		taken[i] = true;
		if (recvs[i].req != NULL)
			fail("a receive waits for a message that has come");
		else if (recvs[i].status != 0 || recvs[i].got != k)
			fail("a receive has not the message that is its");
		else if (!dev->cancels_late && recvs[i].cancelled >= 0 &&
			msgs[k].step > recvs[i].cancelled)
			fail("a message met a receive that was cancelled before it came");
	}
	if (kept != NULL)
		fail("more is kept than has come");
	for (unsigned i = 0; i < n_recvs; i++) {
		if (!taken[i] && recvs[i].req == NULL && recvs[i].status != -ECANCELED)
			fail("a receive ended without a message");
		if (recvs[i].req != NULL && recvs[i].cancelled >= 0)
			fail("a cancel has no end");
	}
}

static void
take_all(void)
{
	bool did = true;

	while (did && found == NULL) {
		did = turn_does();
		if (did)
			step(POLL, (int)n_path);
		for (unsigned i = 0; i < EXPLORE_OWN; i++)
			if (own_can(i)) {
				did = true;
				step(OWN + i, (int)n_path);
			}
	}
}

/* Leave nothing posted and nothing kept. */
static void
clean(void)
{
	struct plx_tag_msg *kept;
	struct plx_offload_dev *d = &w->offload.devs[0];
	uint32_t buf[2];

	for (unsigned i = 0; i < n_recvs; i++)
		if (recvs[i].req != NULL && recvs[i].cancelled < 0)
			step(CANCEL + i, (int)n_path);
	take_all();
	while ((kept = plx_tag_msg_first(w->tag)) != NULL) {
		UNIT_END(&u, unit_recv(&u, 0, buf, sizeof(buf), kept->tag, UNIT_EXACT), 0);
	}
	n_recvs = n_msgs = 0;
	if (found != NULL)
		return;
	UNIT_EQ_FATAL(dev->n_list(), 0);
	UNIT_EQ_FATAL(d->n_held, 0);
	UNIT_EQ_FATAL(w->offload.soft.n, 0);
	UNIT_EQ_FATAL((uint16_t)(dev->given() - d->seen), 0);
	if (dev->settle != NULL)
		dev->settle(d->seen);
	d->on = w->offload.on = true; /* after a DEMOTE: a new device, so to say */
	w->offload.unordered = false;
}

static void
begin(uint32_t list_n)
{
	list_len = list_n;
	unit_workers_conf(&u);
	dev->reset(&u, list_n);
	unit_workers_set(&u, "tag.offload_min", "8");
	unit_workers_set(&u, "tag.offload_withdrawn", "0");
	unit_workers_open(&u, 1);
	w = u.w[0];
	UNIT_TRUE_FATAL(w->offload.on);
	dev->open(w);
	found = NULL;
	n_paths = n_states = 0;
	n_recvs = n_msgs = n_path = 0;
}

/* A path that failed has left things as they are: the worker goes with them. */
static void
end(void)
{
	if (found == NULL)
		unit_nothing_left(&u);
	plx_worker_ep_put(w, &u.to[0][0]);
	plx_worker_destroy(w);
	past_conflicts = moves_past_conflicts = false;
	quiet = false;
}

/* -- states -- */

static struct {
	uint64_t hash;
	uint8_t left; /* steps that were led from it, plus 1; 0: none such */
} seen[SEEN_MAX];

static uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 32;
}

/* Its number among those that have not ended, from 1. */
static uint64_t
recv_number(const void *buf)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < n_recvs; i++) {
		n += recvs[i].req != NULL;
		if ((const void *)recvs[i].buf == buf)
			return recvs[i].req != NULL ? n : 0;
	}
	return 0;
}

static uint64_t
state_hash(void)
{
	const struct plx_offload_dev *d = &w->offload.devs[0];
	struct plx_tag_msg *m;
	uint64_t h = d->on << 2 | w->offload.look << 1 | w->offload.unordered;

	h = mix(h, (uint16_t)(dev->given() - d->seen));
	h = mix(h, d->told != d->seen);
	for (unsigned i = 0; i < n_recvs; i++)
		if (recvs[i].req != NULL)
			h = mix(h, recvs[i].tag << 16 ^ recvs[i].mask << 8 ^ (recvs[i].cancelled >= 0) << 3 ^
				recvs[i].soft << 2 ^ recvs[i].req->posted << 1 ^
				(recvs[i].req->offload >= OFFLOAD_RECVS));
	h = dev->hash(h, mix, recv_number);
	for (m = plx_tag_msg_first(w->tag); m != NULL; m = plx_tag_msg_next(m))
		h = mix(h, 3000 + m->tag);
	return h;
}

/* @return whether this many steps were led from the state before; else they are now */
static bool
was_led(uint64_t hash, unsigned left)
{
	uint64_t i = hash % SEEN_MAX;

	for (unsigned tries = 0; tries < 64; tries++, i = (i + 1) % SEEN_MAX) {
		if (seen[i].left == 0)
			n_states++;
		else if (seen[i].hash != hash)
			continue;
		else if (seen[i].left > left)
			return true;
		seen[i].hash = hash;
		seen[i].left = left + 1;
		return false;
	}
	return false; /* no room: it is led again */
}

/* -- paths -- */

/* Lead the path from the start, see how it ends. @return bit i: step i could follow */
static uint64_t
lead(uint64_t *hash)
{
	uint64_t next = 0;

	n_paths++;
	for (unsigned i = 0; i < n_path && found == NULL; i++)
		step(path[i], (int)i);
	for (unsigned i = 0; i < CANCEL + n_recvs; i++)
		next |= (uint64_t)is_possible(i) << i;
	*hash = state_hash();
	take_all();
	if (found == NULL)
		compare();
	if (found == NULL)
		clean();
	return next;
}

static void
explore(unsigned depth, bool all)
{
	uint64_t hash, next = lead(&hash);

	if (n_path == depth || found != NULL || (!all && was_led(hash, depth - n_path)))
		return;
	for (; next != 0 && found == NULL; next &= next - 1) {
		path[n_path++] = (uint16_t)__builtin_ctzll(next);
		explore(depth, all);
		n_path--;
	}
}

static void
explore_list(uint32_t list_n)
{
	begin(list_n);
	explore(dev->depth_all, true);
	memset(seen, 0, sizeof(seen));
	explore(dev->depth, false);
	CU_ASSERT(found == NULL);
	UNIT_TRUE(n_states > 1000);
	UNIT_TRUE(w->offload.stat.consumed != 0 && w->offload.stat.withdrawn != 0 &&
		w->offload.stat.cancel_late != 0 && w->offload.stat.soft_order != 0 &&
		w->offload.stat.demotions != 0 && w->offload.stat.moves != 0);
	printf("%" PRIu64 " paths, %" PRIu64 " states ", n_paths, n_states);
	end();
}

static void
every_order_on_a_list_of_1(void)
{
	explore_list(1);
}

static void
every_order_on_a_list_of_2(void)
{
	explore_list(2);
}

static void
every_order_on_a_list_of_4(void)
{
	explore_list(4);
}

static void
a_mistake_is_found(enum model_bug bug, bool posts_past, bool moves_past)
{
	static const uint32_t lists[] = {1, 2, 4};

	for (unsigned i = 0; i < RTE_DIM(lists); i++) {
		begin(lists[i]);
		dev->plant(bug);
		past_conflicts = posts_past;
		moves_past_conflicts = moves_past;
		quiet = true;
		memset(seen, 0, sizeof(seen));
		explore(dev->depth, false);
		CU_ASSERT(found != NULL);
		end();
	}
}

static void
skipping_the_count_is_found(void)
{
	a_mistake_is_found(MODEL_BUG_COUNT, false, false);
}

static void
posting_past_a_conflict_is_found(void)
{
	a_mistake_is_found(MODEL_NO_BUG, true, false);
}

static void
moving_past_a_conflict_is_found(void)
{
	a_mistake_is_found(MODEL_NO_BUG, false, true);
}

static void
ignoring_a_failed_cancel_is_found(void)
{
	a_mistake_is_found(MODEL_BUG_CANCEL, false, false);
}

/* -- long random paths -- */

static uint64_t rng_state;

static unsigned
rnd(unsigned n)
{
	return (unsigned)(unit_rng(&rng_state) % n);
}

static uint16_t
random_step(void)
{
	unsigned r = rnd(100);

	if (r < 10 && n_recvs != 0) {
		unsigned i = n_recvs - 1 - rnd(RTE_MIN(n_recvs, 8u));

		return is_possible(CANCEL + i) ? CANCEL + i : POLL;
	}
	if (r < 45)
		return rnd(POST_LOW + 1);
	if (r < 75)
		return ARRIVE_A + rnd(2);
	if (r < 85) {
		unsigned i = rnd(EXPLORE_OWN);

		return own_can(i) ? OWN + i : POLL;
	}
	return r == 99 && rnd(20) == 0 ? DEMOTE : POLL;
}

static void
long_random_paths(void)
{
	static const uint32_t lists[] = {1, 2, 4, 16};

	rng_state = unit_seed(20261121);
	for (unsigned i = 0; i < RTE_DIM(lists); i++) {
		begin(lists[i]);
		for (unsigned round = 0; round < 400 && found == NULL; round++) {
			for (n_path = 0; n_path < STEPS_MAX && found == NULL; n_path++) {
				dev->burst(1 + rnd(4));
				path[n_path] = random_step();
				step(path[n_path], (int)n_path);
			}
			take_all();
			if (found == NULL)
				compare();
			if (found == NULL)
				clean();
		}
		CU_ASSERT(found == NULL);
		end();
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(every_order_on_a_list_of_1),
	UNIT_TEST(every_order_on_a_list_of_2),
	UNIT_TEST(every_order_on_a_list_of_4),
	UNIT_TEST(skipping_the_count_is_found),
	UNIT_TEST(posting_past_a_conflict_is_found),
	UNIT_TEST(moving_past_a_conflict_is_found),
	UNIT_TEST(ignoring_a_failed_cancel_is_found),
	UNIT_TEST(long_random_paths),
	CU_TEST_INFO_NULL,
};

static void
on_first(void)
{
	dev = &explore_devs[0];
}

static void
on_second(void)
{
	dev = &explore_devs[1];
}

int
main(void)
{
	CU_SuiteInfo suites[] = {
		{explore_devs[0].suite, NULL, NULL, on_first, NULL, tests},
		CU_SUITE_INFO_NULL,
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	if (explore_n > 1)
		suites[1] = (CU_SuiteInfo){explore_devs[1].suite, NULL, NULL, on_second, NULL, tests};

	if (rc == 0 && plx_dev_register(&tag_model_ops) != 0)
		rc = EXIT_FAILURE;
	return rc != 0 ? rc : unit_run(suites);
}

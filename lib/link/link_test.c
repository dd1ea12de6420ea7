/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_test.c - hosts connect, are disconnected and go silent, over datagrams that get lost
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "plx_link.h"
#include "plx_unit.h"

#define HOSTS	4
#define ON_WAY	256
#define GRANT	8
#define MS	UINT64_C(1000000)
#define CONNECT (1000 * MS)
#define AGAIN	(10 * MS)
#define PROBE	(100 * MS)
#define DEAD	(400 * MS)

struct far {
	struct plx_link_peer link;
	unsigned from, to;
	unsigned n_met, n_dead, n_probes;
	bool due;
};

static struct host {
	struct plx_link link;
	struct plx_link_stat stat;
	struct far far[HOSTS];
	uint32_t ids;
} h[HOSTS];

/* What is on its way: a datagram, or what a connection reports. */
static struct {
	struct {
		unsigned from, to;
		bool is_tell, park;
		uint32_t id; /* of the end that tells */
		struct plx_credit_note note;
		struct plx_link_hello hello;
	} at[ON_WAY];
	unsigned sent, came;
} way;

static uint64_t now, rng;
static unsigned loss; /* of a hundred datagrams */
static int say_error;

static unsigned
dice(unsigned n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (rng >> 33) % n;
}

static struct far *
far_of(struct plx_link_peer *p)
{
	return container_of(p, struct far, link);
}

static int
make(struct plx_link_peer *p)
{
	p->id = ++h[far_of(p)->from].ids;
	p->credit = (struct plx_credit){.granted = GRANT};
	return 0;
}

static int
ready(struct plx_link_peer *p, const struct plx_link_hello *hello)
{
	(void)p;
	return hello->credits == GRANT ? 0 : -EINVAL;
}

static void
met(struct plx_link_peer *p)
{
	far_of(p)->n_met++;
}

static void
nothing(struct plx_link_peer *p)
{
	(void)p;
}

static void
end(struct plx_link_peer *p, int err)
{
	(void)err;
	far_of(p)->due = false;
}

static void
dead(struct plx_link_peer *p, int err)
{
	UNIT_TRUE(err < 0 && p->state == PLX_LINK_DEAD && !p->made);
	far_of(p)->n_dead++;
}

static int
say(struct plx_link_peer *p, const struct plx_link_hello *hello)
{
	if (say_error != 0)
		return say_error;
	if (dice(100) < loss)
		return 0;
	UNIT_TRUE_FATAL(way.sent - way.came < ON_WAY);
	way.at[way.sent % ON_WAY].from = far_of(p)->from;
	way.at[way.sent % ON_WAY].to = far_of(p)->to;
	way.at[way.sent % ON_WAY].is_tell = false;
	way.at[way.sent++ % ON_WAY].hello = *hello;
	return 0;
}

static bool
tell(struct plx_link_peer *p, bool park)
{
	if (!plx_credit_has_last(&p->credit))
		return false;
	UNIT_TRUE_FATAL(way.sent - way.came < ON_WAY);
	way.at[way.sent % ON_WAY].from = far_of(p)->from;
	way.at[way.sent % ON_WAY].to = far_of(p)->to;
	way.at[way.sent % ON_WAY].is_tell = true;
	way.at[way.sent % ON_WAY].park = park;
	way.at[way.sent % ON_WAY].id = p->id;
	way.at[way.sent++ % ON_WAY].note = plx_credit_take(&p->credit);
	return true;
}

static bool
is_idle(const struct plx_link_peer *p)
{
	return !container_of(p, struct far, link)->due;
}

static bool
is_due(const struct plx_link_peer *p)
{
	return container_of(p, struct far, link)->due;
}

static void
probe(struct plx_link_peer *p)
{
	far_of(p)->n_probes++;
	far_of(p)->due = p->made;
}

static const struct plx_link_ops ops = {.make = make, .ready = ready, .met = met,
	.parks = nothing, .end = end, .dead = dead, .say = say, .tell = tell, .is_idle = is_idle, .is_due = is_due, .probe = probe};

static void
begin(uint32_t n_max)
{
	memset(h, 0, sizeof(h));
	memset(&way, 0, sizeof(way));
	now = 1000 * MS;
	loss = 0;
	say_error = 0;
	for (unsigned i = 0; i < HOSTS; i++) {
		plx_link_init(&h[i].link, &ops, &h[i].stat);
		h[i].link.connect_ns = CONNECT;
		h[i].link.again_ns = AGAIN;
		h[i].link.probe_ns = PROBE;
		h[i].link.dead_ns = DEAD;
		h[i].link.n_max = n_max;
		h[i].link.now_ns = now;
		for (unsigned k = 0; k < HOSTS; k++) {
			h[i].far[k].link.link = &h[i].link;
			h[i].far[k].from = i;
			h[i].far[k].to = k;
		}
	}
}

static struct plx_link_peer *
peer(unsigned from, unsigned to)
{
	return &h[from].far[to].link;
}

/* An end that the receiver's is connected to reports it, or it is lost. */
static void
take_tell(struct plx_link_peer *p, unsigned i)
{
	if (!p->made || p->state < PLX_LINK_READY || p->their_id != way.at[i].id)
		return;
	p->rx_ns = now;
	UNIT_EQ(plx_credit_told(&p->credit, way.at[i].note.n, way.at[i].note.are_new), 0);
	plx_link_works(p);
	p->credit.owed++;
	if (way.at[i].park)
		plx_link_park_told(p);
}

/* All that is on its way arrives, and what that brings. */
static void
deliver(void)
{
	while (way.came != way.sent) {
		unsigned i = way.came++ % ON_WAY;
		struct plx_link_peer *p = peer(way.at[i].to, way.at[i].from);

		if (way.at[i].is_tell)
			take_tell(p, i);
		else if (way.at[i].hello.kind >= PLX_LINK_CALL)
			plx_link_on_call(p, way.at[i].hello.kind);
		else
			plx_link_on_hello(p, &way.at[i].hello, now);
	}
}

static void
turn(uint64_t ns)
{
	now += ns;
	for (unsigned i = 0; i < HOSTS; i++) {
		h[i].link.looks++;
		plx_link_control(&h[i].link, now);
		plx_link_work(&h[i].link, now);
		plx_link_settle(&h[i].link);
	}
	deliver();
}

static void
connect_two(void)
{
	UNIT_EQ_FATAL(plx_link_connect(peer(0, 1), now), 0);
	deliver();
	UNIT_EQ_FATAL(peer(0, 1)->state, PLX_LINK_OPEN);
	UNIT_EQ_FATAL(peer(1, 0)->state, PLX_LINK_OPEN);
}

static void
two_datagrams_and_a_message_connect_two(void)
{
	begin(8);
	connect_two();
	UNIT_EQ(way.sent, 3);
	UNIT_EQ(h[0].stat.asked, 1);
	UNIT_EQ(h[1].stat.answered, 1);
	UNIT_EQ(h[0].far[1].n_met + h[1].far[0].n_met, 2);
	UNIT_EQ(peer(0, 1)->their_id, peer(1, 0)->id);
}

static void
both_may_ask_at_the_same_time(void)
{
	begin(8);
	UNIT_EQ(plx_link_connect(peer(0, 1), now), 0);
	UNIT_EQ(plx_link_connect(peer(1, 0), now), 0);
	deliver();
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_OPEN);
	UNIT_EQ(peer(1, 0)->state, PLX_LINK_OPEN);
	UNIT_EQ(h[0].link.n_made + h[1].link.n_made, 2);
}

static void
who_is_not_answered_asks_less_and_less_often_and_gives_up(void)
{
	uint64_t began;

	begin(8);
	began = now;
	loss = 100;
	UNIT_EQ(plx_link_connect(peer(0, 1), now), 0);
	while (h[0].far[1].n_dead == 0 && now - began < 2 * CONNECT)
		turn(MS);
	UNIT_TRUE(now - began >= CONNECT && now - began <= CONNECT + 2 * MS);
	UNIT_TRUE(h[0].stat.asked_again >= 4 && h[0].stat.asked_again <= 7);
	UNIT_EQ(peer(0, 1)->err, -ETIMEDOUT);
	UNIT_EQ(h[0].link.n_made, 0);
}

/* Control is called at these times only. */
static void
who_sleeps_asks_again_in_time_and_gives_up_in_time(void)
{
	uint64_t began, due;
	unsigned n = 0;

	begin(8);
	UNIT_EQ(plx_link_deadline(&h[0].link), UINT64_MAX);
	began = now;
	loss = 100;
	UNIT_EQ(plx_link_connect(peer(0, 1), now), 0);
	while (h[0].far[1].n_dead == 0 && n++ < 10) {
		due = plx_link_deadline(&h[0].link);
		UNIT_TRUE_FATAL(due > now && due <= began + CONNECT);
		plx_link_control(&h[0].link, due - 1); /* too early: nothing */
		UNIT_EQ(h[0].stat.asked_again, n - 1);
		now = due;
		plx_link_control(&h[0].link, now);
		plx_link_settle(&h[0].link);
	}
	UNIT_EQ(now, began + CONNECT);
	UNIT_EQ(h[0].stat.asked_again, n - 1);
	UNIT_TRUE(n >= 5);
	UNIT_EQ(plx_link_deadline(&h[0].link), UINT64_MAX);
}

static void
a_way_that_is_not_found_is_an_error_at_the_third_try(void)
{
	begin(8);
	say_error = -EHOSTUNREACH;
	UNIT_EQ(plx_link_connect(peer(0, 1), now), 0);
	turn(3 * AGAIN);
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_ASKED);
	turn(5 * AGAIN);
	turn(1);
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_DEAD);
	UNIT_EQ(peer(0, 1)->err, -EHOSTUNREACH);
	/* While the own port is down no try counts. */
	begin(8);
	say_error = -EAGAIN;
	UNIT_EQ(plx_link_connect(peer(0, 1), now), 0);
	for (unsigned i = 0; i < 5; i++)
		turn(10 * AGAIN);
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_ASKED);
	say_error = 0;
	while (peer(0, 1)->state == PLX_LINK_ASKED)
		turn(AGAIN);
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_OPEN);
}

static void
what_is_late_changes_nothing_and_what_is_new_ends_the_old(void)
{
	struct plx_link_hello old = {.kind = PLX_LINK_ASK, .credits = GRANT};

	begin(8);
	connect_two();
	old.id = peer(0, 1)->id;
	old.attempt = peer(0, 1)->attempt - 1;
	plx_link_on_hello(peer(1, 0), &old, now);
	UNIT_EQ(h[1].stat.drop_old, 1);
	UNIT_EQ(peer(1, 0)->state, PLX_LINK_OPEN);
	old.attempt += 2; /* it has begun anew */
	plx_link_on_hello(peer(1, 0), &old, now);
	UNIT_EQ(peer(1, 0)->state, PLX_LINK_LOST);
	UNIT_EQ(peer(1, 0)->err, -ECONNRESET);
	plx_link_settle(&h[1].link);
	UNIT_EQ(h[1].far[0].n_dead, 1);
}

static void
an_idle_connection_gives_way_to_one_that_is_wanted(void)
{
	begin(2);
	for (unsigned k = 1; k < HOSTS; k++) {
		plx_link_want(peer(0, k), false);
		for (unsigned i = 0; i < 100 && peer(0, k)->state != PLX_LINK_OPEN; i++)
			turn(MS);
		UNIT_EQ_FATAL(peer(0, k)->state, PLX_LINK_OPEN);
		UNIT_TRUE(h[0].link.n_made <= 2);
		peer(0, k)->used_at = ++h[0].link.looks;
	}
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_NONE); /* that used longest ago */
	UNIT_EQ(peer(1, 0)->state, PLX_LINK_NONE);
	UNIT_EQ(h[0].stat.parked, 1);
	UNIT_EQ(h[1].stat.parked_by_peer, 1);
	UNIT_EQ(h[1].far[0].n_dead, 0);
}

static void
look(unsigned from, unsigned to)
{
	h[from].link.caught_up = true;
	h[from].link.overdue = false;
	plx_link_look(peer(from, to), true);
	h[from].link.peers_ns = h[from].link.now_ns;
}

static void
who_is_silent_is_probed_then_asked_then_gone(void)
{
	begin(8);
	connect_two();
	peer(0, 1)->rx_ns = now;
	turn(PROBE / 2);
	look(0, 1);
	UNIT_EQ(h[0].far[1].n_probes, 0);
	turn(PROBE / 2);
	look(0, 1);
	UNIT_EQ(h[0].far[1].n_probes, 1);
	loss = 100;
	turn(DEAD / 2);
	look(0, 1);
	UNIT_EQ(h[0].stat.silent_asked, 1);
	turn(DEAD / 2 + MS);
	look(0, 1); /* overdue; gone only at the next look */
	UNIT_TRUE(h[0].link.overdue && plx_link_is_time(&h[0].link, true));
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_OPEN);
	turn(MS);
	look(0, 1);
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_LOST);
	UNIT_EQ(h[0].stat.silent_gone, 1);
}

static void
who_answers_lives_on_but_not_for_ever(void)
{
	unsigned n;

	begin(8);
	connect_two();
	peer(0, 1)->rx_ns = now;
	for (n = 0; n < 100 && peer(0, 1)->state == PLX_LINK_OPEN; n++) {
		turn(PROBE);
		look(0, 1);
		deliver();
	}
	UNIT_TRUE(h[0].stat.silent_answered > 0);
	UNIT_TRUE(n * PROBE >= PLX_LINK_PATIENCE * DEAD && n * PROBE <= (PLX_LINK_PATIENCE + 1) * DEAD);
	UNIT_EQ(peer(0, 1)->state, PLX_LINK_LOST);
}

static void
who_has_no_connection_is_called_and_gone_if_it_says_nothing(void)
{
	begin(8);
	peer(0, 1)->unheard = true;
	turn(PROBE);
	look(0, 1);
	deliver();
	UNIT_EQ(h[0].stat.silent_answered, 1);
	UNIT_TRUE(!peer(0, 1)->unheard);
	loss = 100;
	peer(0, 1)->unheard = true;
	for (unsigned i = 0; i < 20; i++) {
		turn(PROBE);
		look(0, 1);
	}
	UNIT_EQ(h[0].stat.silent_gone, 1);
	UNIT_EQ(peer(0, 1)->err, -ETIME);
}

/* All want all, with half of the ends that takes, and every third datagram gets lost. */
static void
everybody_gets_through_to_everybody(void)
{
	unsigned n_open = 0;

	for (unsigned round = 0; round < 20; round++) {
		bool was[HOSTS][HOSTS] = {{false}};

		begin(2);
		rng = round + 1;
		loss = 33;
		n_open = 0;
		for (unsigned t = 0; t < 20000 && n_open < HOSTS * (HOSTS - 1); t++) {
			turn(MS);
			for (unsigned i = 0; i < HOSTS; i++) {
				UNIT_TRUE(h[i].link.n_made <= 2);
				for (unsigned k = 0; k < HOSTS; k++) {
					if (i == k || was[i][k])
						continue;
					plx_link_want(peer(i, k), false);
					if (peer(i, k)->state != PLX_LINK_OPEN)
						continue;
					peer(i, k)->used_at = h[i].link.looks;
					was[i][k] = true;
					n_open++;
				}
			}
		}
		if (n_open != HOSTS * (HOSTS - 1))
			printf("seed %u\n", round + 1);
		UNIT_EQ(n_open, HOSTS * (HOSTS - 1));
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(two_datagrams_and_a_message_connect_two),
	UNIT_TEST(both_may_ask_at_the_same_time),
	UNIT_TEST(who_is_not_answered_asks_less_and_less_often_and_gives_up),
	UNIT_TEST(who_sleeps_asks_again_in_time_and_gives_up_in_time),
	UNIT_TEST(a_way_that_is_not_found_is_an_error_at_the_third_try),
	UNIT_TEST(what_is_late_changes_nothing_and_what_is_new_ends_the_old),
	UNIT_TEST(an_idle_connection_gives_way_to_one_that_is_wanted),
	UNIT_TEST(who_is_silent_is_probed_then_asked_then_gone),
	UNIT_TEST(who_answers_lives_on_but_not_for_ever),
	UNIT_TEST(who_has_no_connection_is_called_and_gone_if_it_says_nothing),
	UNIT_TEST(everybody_gets_through_to_everybody),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"link", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}

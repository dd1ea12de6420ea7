/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_park_test.c - queues of net_mlx that know more peers than they may be connected to
 *
 * It runs on the model of an mlx5 device, and on an RDMA device where there is one.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define QUEUES	   6
#define EACH	   40 /* messages from each to each */
#define LIMIT	   2
#define PATIENCE_S 15

struct side {
	struct plx_queue *q;
	struct plx_peer *to[QUEUES];
	unsigned sent[QUEUES], got[QUEUES];
	struct plx_rx held; /* a message that is not released yet */
	bool holds;
};

/* A message: who sends it, its number, and that often its number. */
struct msg {
	uint32_t from, number;
	uint32_t fill[40];
};

static struct plx_conf conf;
static struct plx_dev *dev;
static struct side s[QUEUES];
static unsigned n_sides;
static unsigned hold_percent; /* of messages that are kept for a while */
static unsigned n_dead;
static const char *window = "4"; /* so that credits are short */
static uint64_t rng;

static void
patiently(time_t since)
{
	sched_yield();
	if (time(NULL) - since > PATIENCE_S)
		CU_FAIL_FATAL("it takes too long");
}

static void
on_dead(struct plx_peer *peer)
{
	(void)peer;
	n_dead++;
}

static unsigned
side_of(const struct plx_peer *peer)
{
	for (unsigned i = 0; i < n_sides; i++)
		if (mlx_queue(s[i].q)->addr.uid == peer->uid)
			return i;
	CU_FAIL_FATAL("a message of nobody");
	return 0;
}

static void
begin(unsigned n)
{
	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "net_mlx.connected", "2", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.window", window, PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.ack_ms", "16", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.retries", "4", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	memset(s, 0, sizeof(s));
	n_sides = n;
	n_dead = hold_percent = 0;
	for (unsigned i = 0; i < n; i++) {
		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &s[i].q), 0);
		s[i].q->on_dead = on_dead;
	}
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < n; k++) {
			struct plx_addr addr;

			plx_queue_addr(s[k].q, &addr);
			UNIT_EQ_FATAL(plx_peer_get(s[i].q, &addr, &s[i].to[k]), 0);
		}
	}
}

static void
end(void)
{
	for (unsigned i = 0; i < n_sides; i++)
		plx_queue_close(s[i].q);
	plx_dev_close(dev);
}

static const struct mlx_stat *
stat_of(unsigned i)
{
	return &mlx_queue(s[i].q)->stat;
}

/* @return whether it went */
static bool
send(unsigned from, unsigned to)
{
	struct msg m = {.from = from, .number = s[from].sent[to]};
	struct plx_tx tx = {.peer = s[from].to[to], .hdr = &m, .hdr_len = 8, .data = m.fill,
		.len = sizeof(m.fill), .op = 1};
	int rc = plx_peer_connect(s[from].to[to]);

	for (unsigned i = 0; i < RTE_DIM(m.fill); i++)
		m.fill[i] = m.number;
	if (rc == 0)
		rc = plx_peer_tx(&tx);
	if (rc != 0 && rc != -EAGAIN)
		UNIT_EQ_FATAL(rc, 0);
	s[from].sent[to] += rc == 0;
	return rc == 0;
}

static void
check(const struct plx_rx *rx, unsigned number)
{
	struct msg m;

	UNIT_EQ_FATAL(rx->len, sizeof(m));
	memcpy(&m, rx->data, sizeof(m));
	UNIT_EQ_FATAL(m.from, side_of(rx->src));
	UNIT_EQ_FATAL(m.number, number);
	for (unsigned i = 0; i < RTE_DIM(m.fill); i++)
		UNIT_EQ_FATAL(m.fill[i], number);
}

static void
take(unsigned at, const struct plx_rx *rx)
{
	struct side *side = &s[at];

	check(rx, side->got[side_of(rx->src)]++);
	if (!side->holds && unit_rng(&rng) % 100 < hold_percent) {
		side->held = *rx;
		side->holds = true;
		return;
	}
	side->q->rx_release(side->q, rx, 1);
}

static void
let_go(unsigned at)
{
	struct side *side = &s[at];

	if (!side->holds)
		return;
	side->q->rx_release(side->q, &side->held, 1);
	side->holds = false;
}

/* A turn of one queue. */
static void
turn(unsigned i)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint16_t n = s[i].q->rx_burst(s[i].q, rx, PLX_DEV_RX_BURST);

	for (uint16_t k = 0; k < n; k++)
		take(i, &rx[k]);
	plx_queue_control(s[i].q);
	if (mlx_queue(s[i].q)->link.n_made > LIMIT)
		CU_FAIL_FATAL("more queue pairs than may be");
}

static void
turns(void)
{
	for (unsigned i = 0; i < n_sides; i++)
		turn(i);
}

/* One message, and until it is there. */
static void
pass(unsigned from, unsigned to)
{
	time_t since = time(NULL);

	while (!send(from, to)) {
		turns();
		patiently(since);
	}
	while (s[to].got[from] != s[from].sent[to]) {
		turns();
		patiently(since);
	}
}

static void
nothing_is_wrong(void)
{
	UNIT_EQ(n_dead, 0);
	for (unsigned i = 0; i < n_sides; i++) {
		UNIT_EQ(stat_of(i)->rx_drop_bad_credit + stat_of(i)->rx_drop_no_peer, 0);
		UNIT_EQ(stat_of(i)->qp_rnr + stat_of(i)->qp_access + stat_of(i)->qp_other, 0);
	}
}

static void
one_sends_to_more_peers_than_it_may_be_connected_to(void)
{
	begin(QUEUES);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 1; i < QUEUES; i++)
			pass(0, i);
	UNIT_TRUE(stat_of(0)->link.parked >= 3 * (QUEUES - 1) - LIMIT);
	UNIT_TRUE(stat_of(0)->link.waits > 0);
	UNIT_TRUE(stat_of(1)->link.parked_by_peer > 0);
	nothing_is_wrong();
	end();
}

static void
who_was_used_last_stays_connected(void)
{
	begin(4);
	for (unsigned round = 0; round < 3; round++) {
		pass(0, 1);
		pass(0, 2 + round % 2);
	}
	UNIT_EQ(mlx_peer(s[0].to[1])->link.state, PLX_LINK_OPEN);
	UNIT_EQ(stat_of(1)->link.parked_by_peer, 0);
	UNIT_TRUE(stat_of(0)->link.parked >= 2);
	nothing_is_wrong();
	end();
}

static void
more_peers_send_than_one_may_be_connected_to(void)
{
	time_t since = time(NULL);
	unsigned n;

	begin(QUEUES);
	do {
		n = 0;
		for (unsigned i = 1; i < QUEUES; i++) {
			if (s[i].sent[0] < EACH)
				send(i, 0);
			n += s[0].got[i];
		}
		turns();
		patiently(since);
	} while (n < EACH * (QUEUES - 1));
	UNIT_TRUE(stat_of(0)->link.parked >= QUEUES - 1 - LIMIT);
	nothing_is_wrong();
	end();
}

/* All at their limit, some with messages that they keep for a while. */
static void
everybody_sends_to_everybody(void)
{
	time_t since = time(NULL);
	unsigned n = 0, parked = 0;

	begin(QUEUES);
	hold_percent = 5;
	while (n < EACH * QUEUES * (QUEUES - 1)) {
		unsigned from = unit_rng(&rng) % QUEUES, to = unit_rng(&rng) % QUEUES;

		for (unsigned i = unit_rng(&rng) % 20; i > 0 && from != to; i--)
			if (s[from].sent[to] < EACH)
				send(from, to);
		turn(unit_rng(&rng) % QUEUES);
		if (unit_rng(&rng) % 200 == 0)
			let_go(unit_rng(&rng) % QUEUES);
		n = 0;
		for (unsigned i = 0; i < QUEUES; i++)
			for (unsigned k = 0; k < QUEUES; k++)
				n += s[i].got[k];
		patiently(since);
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		let_go(i);
		parked += stat_of(i)->link.parked;
	}
	UNIT_TRUE(parked >= QUEUES);
	nothing_is_wrong();
	end();
}

/* It is read after the connection that it came by was to be closed, and others were made. */
static void
a_message_that_is_held_keeps_its_connection(void)
{
	time_t since = time(NULL);

	begin(4);
	hold_percent = 100;
	pass(1, 0);
	hold_percent = 0;
	pass(0, 2);
	for (unsigned i = 0; i < 4; i++)
		pass(0, 2 + i % 2); /* by what is left */
	check(&s[0].held, 0);
	UNIT_EQ(mlx_peer(s[0].to[1])->link.state, PLX_LINK_PARKING);
	let_go(0);
	while (mlx_peer(s[0].to[1])->link.state != PLX_LINK_NONE) {
		turns();
		patiently(since);
	}
	for (unsigned i = 0; i < 3 * EACH; i++)
		pass(1, 0);
	nothing_is_wrong();
	end();
}

/* All of their queue pairs ask others, who have none left for them. */
static void
queues_that_ask_in_a_circle_do_not_wait_for_ever(void)
{
	const unsigned n = 5;
	time_t since = time(NULL);
	unsigned got;

	begin(n);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 1; k <= LIMIT; k++)
			send(i, (i + k) % n); /* connects */
	do {
		got = 0;
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 1; k <= LIMIT; k++)
				if (s[i].sent[(i + k) % n] == 0)
					send(i, (i + k) % n);
		turns();
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 0; k < n; k++)
				got += s[i].got[k];
		patiently(since);
	} while (got < n * LIMIT);
	UNIT_TRUE(time(NULL) - since < 5); /* net_mlx.connect_ms is twice that */
	nothing_is_wrong();
	end();
}

static void
run_until(unsigned at, unsigned to, enum plx_link_state conn)
{
	time_t since = time(NULL);

	while (mlx_peer(s[at].to[to])->link.state != conn) {
		turns();
		patiently(since);
	}
}

/* The other has no credit left to say PARK with, and all that it sent is on the way. */
static void
who_parks_tells_credits_to_a_peer_that_has_none(void)
{
	struct mlx_peer *to_1;
	struct mlx_queue *mq;
	time_t since = time(NULL);

	window = "8";
	begin(4);
	window = "4";
	mq = mlx_queue(s[0].q);
	to_1 = mlx_peer(s[0].to[1]);
	pass(0, 1);
	pass(0, 2);
	for (unsigned i = 0; i < 200; i++)
		turns();
	for (unsigned i = 0; i < 20; i++)
		send(1, 0);
	for (unsigned i = 0; i < 4; i++)
		send(0, 1);
	while (mlx_peer(s[1].to[0])->link.credit.left != 0) { /* it tells credits with the last */
		turn(1);
		patiently(since);
	}
	send(0, 2);
	UNIT_TRUE(!send(0, 3));
	while (!to_1->link.said) {
		plx_link_work(&mq->link, plx_clock_ns());
		mlx_tx_poll(mq);
		turn(1);
		patiently(since);
	}
	UNIT_EQ(mlx_peer(s[1].to[0])->link.credit.left, 0);
	run_until(0, 1, PLX_LINK_NONE);
	pass(0, 3);
	pass(1, 0);
	nothing_is_wrong();
	end();
}

/* It stops to send while all that it sent is on the way, with one credit left. */
static void
begin_to_park(unsigned from, unsigned to, unsigned other, unsigned third)
{
	struct mlx_peer *p = mlx_peer(s[from].to[to]);

	while (send(from, to))
		;
	UNIT_EQ(p->link.credit.left, 1);
	UNIT_TRUE(send(from, other)); /* used as late; which was made later */
	UNIT_TRUE(!send(from, third));
	plx_link_work(&mlx_queue(s[from].q)->link, plx_clock_ns());
	UNIT_EQ_FATAL(p->link.state, PLX_LINK_PARKING);
}

/* 0 sees one of 1's messages before it sends as many itself: each owes the other all but one. */
static void
both_begin_to_park_with_one_credit_left(void)
{
	const struct plx_credit *of_0, *of_1;
	time_t since = time(NULL);
	struct plx_rx rx;

	begin(QUEUES);
	of_0 = &mlx_peer(s[0].to[1])->link.credit;
	of_1 = &mlx_peer(s[1].to[0])->link.credit;
	pass(0, 1);
	pass(0, 2);
	pass(1, 3);
	do { /* a peer that has all its credits has the most */
		pass(0, 1);
		for (unsigned i = 0; i < 200; i++)
			turns();
		patiently(since);
	} while (of_1->left != of_1->most);
	begin_to_park(1, 0, 3, 5);
	while (s[0].q->rx_burst(s[0].q, &rx, 1) == 0)
		patiently(since);
	hold_percent = 100;
	take(0, &rx);
	hold_percent = 0;
	UNIT_EQ(of_0->left, of_0->most);
	begin_to_park(0, 1, 2, 4);
	let_go(0);
	run_until(0, 1, PLX_LINK_NONE);
	run_until(1, 0, PLX_LINK_NONE);
	UNIT_EQ(s[1].got[0], s[0].sent[1]);
	UNIT_EQ(s[0].got[1], s[1].sent[0]);
	nothing_is_wrong();
	end();
}

/* Our last was received, but its acknowledgement was lost and the peer's queue pair is gone. */
static void
a_queue_pair_that_fails_after_both_said_park_costs_nothing(void)
{
	window = "64"; /* the other has nothing to say meanwhile, credits neither */
	begin(2);
	window = "4";
	pass(0, 1);
	run_until(1, 0, PLX_LINK_OPEN);
	plx_link_park_told(&mlx_peer(s[0].to[1])->link);
	while (mlx_peer(s[0].to[1])->link.state != PLX_LINK_NONE)
		turn(0);
	/* The other has it and says it as well, to a queue pair that is gone. */
	run_until(1, 0, PLX_LINK_NONE);
	UNIT_EQ(stat_of(1)->qp_retry, 1);
	UNIT_EQ(n_dead, 0);
	pass(0, 1);
	pass(1, 0);
	end();
}

static void
before_both_said_it_a_failure_is_the_end(void)
{
	begin(2);
	pass(0, 1);
	run_until(1, 0, PLX_LINK_OPEN);
	plx_link_park_told(&mlx_peer(s[0].to[1])->link);
	plx_link_lose(&mlx_peer(s[0].to[1])->link, -ETIME);
	while (n_dead == 0)
		turn(0);
	UNIT_EQ(s[0].to[1]->state, PLX_PEER_DEAD);
	UNIT_EQ(s[0].to[1]->err, -ETIME);
	end();
}

/* A datagram of a connection that was parked comes late. */
static void
an_ask_of_an_old_connection_is_dropped(void)
{
	struct mlx_dgram old = {.kind = MLX_DGRAM_ASK, .qpn = 77, .psn = 5, .credits = 8, .reads = 1};
	const struct mlx_peer *p;

	begin(4);
	pass(1, 0);
	p = mlx_peer(s[0].to[1]);
	old.to_uid = mlx_queue(s[0].q)->addr.uid;
	old.from = p->addr;
	old.attempt = p->link.their_attempt;
	pass(2, 0);
	pass(3, 0);
	run_until(0, 1, PLX_LINK_NONE);
	mlx_dgram_take(mlx_queue(s[0].q), &old);
	UNIT_EQ(p->link.state, PLX_LINK_NONE);
	UNIT_EQ(stat_of(0)->link.drop_old, 1);
	pass(1, 0);
	pass(0, 1);
	nothing_is_wrong();
	end();
}

/* It asks and is never heard of again: its place is wanted by others. */
static void
who_asks_and_goes_does_not_keep_a_place_for_ever(void)
{
	begin(4);
	mlx_queue(s[0].q)->link.connect_ns = 50000000;
	for (unsigned i = 2; i < 4; i++) {
		struct mlx_dgram ask = {.kind = MLX_DGRAM_ASK, .qpn = 77, .psn = 5, .credits = 8,
			.reads = 1, .attempt = 1, .from = mlx_queue(s[i].q)->addr,
			.to_uid = mlx_queue(s[0].q)->addr.uid};

		mlx_dgram_take(mlx_queue(s[0].q), &ask);
		UNIT_EQ(mlx_peer(s[0].to[i])->link.state, PLX_LINK_READY);
	}
	UNIT_EQ(mlx_queue(s[0].q)->link.n_made, LIMIT);
	pass(1, 0);
	end();
}

static void
who_closes_while_it_parks_is_told_of(void)
{
	time_t since = time(NULL);

	begin(4);
	pass(0, 1);
	pass(0, 2);
	while (mlx_peer(s[0].to[1])->link.state == PLX_LINK_OPEN) { /* until it is disconnected */
		send(0, 3);
		turn(0);
		patiently(since);
	}
	UNIT_EQ(mlx_peer(s[0].to[1])->link.state, PLX_LINK_PARKING);
	while (!mlx_peer(s[0].to[1])->link.said) {
		turn(0);
		patiently(since);
	}
	plx_queue_close(s[0].q);
	while (s[1].to[0]->state != PLX_PEER_DEAD) {
		turn(1);
		patiently(since);
	}
	/* It says so; but what we send to it may fail before that is seen. */
	UNIT_TRUE(s[1].to[0]->err == -ECONNRESET || s[1].to[0]->err == -ETIME);
	for (unsigned i = 1; i < 4; i++)
		plx_queue_close(s[i].q);
	plx_dev_close(dev);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(one_sends_to_more_peers_than_it_may_be_connected_to),
	UNIT_TEST(who_was_used_last_stays_connected),
	UNIT_TEST(more_peers_send_than_one_may_be_connected_to),
	UNIT_TEST(everybody_sends_to_everybody),
	UNIT_TEST(queues_that_ask_in_a_circle_do_not_wait_for_ever),
	UNIT_TEST(who_parks_tells_credits_to_a_peer_that_has_none),
	UNIT_TEST(both_begin_to_park_with_one_credit_left),
	UNIT_TEST(a_message_that_is_held_keeps_its_connection),
	UNIT_TEST(a_queue_pair_that_fails_after_both_said_park_costs_nothing),
	UNIT_TEST(before_both_said_it_a_failure_is_the_end),
	UNIT_TEST(an_ask_of_an_old_connection_is_dropped),
	UNIT_TEST(who_asks_and_goes_does_not_keep_a_place_for_ever),
	UNIT_TEST(who_closes_while_it_parks_is_told_of),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx_park", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	struct plx_queue *q = NULL;

	rng = unit_seed(7);
	plx_log_set_level(RTE_LOG_EMERG);
	plx_conf_defaults(&conf);
	if (plx_init_drivers() != 0 || plx_dev_open("net_mlx", &conf, &dev) != 0)
		return EXIT_FAILURE;
	if (plx_queue_open(dev, &conf, NULL, &q) == 0)
		plx_queue_close(q);
	plx_dev_close(dev);
	if (q == NULL) {
		printf("no RDMA device here\n");
		return 77;
	}
	return unit_run(suites);
}

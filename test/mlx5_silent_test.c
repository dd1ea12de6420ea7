/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_silent_test.c - peers of net_mlx that are silent, for less and for more than they may
 *
 * The device is the model of an mlx5 device, which reports nothing while the network is to be down.
 * Time is not waited for but taken off what the driver remembers.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mlx5_verbs.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define DEAD_NS	   60000000u
#define NEVER_NS   (3600ull * 1000000000u)
#define LONG_NS	   (10ull * 1000000000u) /* no test takes so long */
#define WRITES	   100
#define LOOKS	   5 /* of the driver at its peers */
#define PATIENCE_S 15
#define LATE_1_IN  4 /* as it is while the network is there */

static struct plx_dev *dev;
static struct plx_queue *q[2];
static struct plx_peer *to[2]; /* each the other */
static struct mlx_queue *mq;   /* of the first: the other side is silent */
static struct mlx_peer *peer;
static unsigned n_dead, n_got, n_written;
static bool keeps; /* messages are not released */
static struct plx_rx kept;
static struct plx_dev_mem mem; /* of the second */
static uint64_t words[WRITES];

static void
acknowledgements(bool come)
{
	mlx5_model_fault(mlx5_verbs.m, MLX5_FAULT_LATE, come ? LATE_1_IN : 1);
}

static void
network(bool up)
{
	acknowledgements(up);
	mlx5_verbs.no_datagrams = !up;
}

static void
on_dead(struct plx_peer *p)
{
	(void)p;
	n_dead++;
}

static void
turn(unsigned i)
{
	struct plx_rx rx;

	if (q[i]->rx_burst(q[i], &rx, 1) == 1) {
		n_got++;
		if (keeps)
			kept = rx;
		else
			q[i]->rx_release(q[i], &rx, 1);
	}
	plx_queue_control(q[i]);
}

#define TURN_UNTIL(cond)                                                                           \
	do {                                                                                       \
		time_t began = time(NULL);                                                         \
		while (!(cond)) {                                                                  \
			turn(0);                                                                   \
			turn(1);                                                                   \
			sched_yield();                                                             \
			if (time(NULL) - began > PATIENCE_S)                                       \
				CU_FAIL_FATAL("it takes too long: " #cond);                        \
		}                                                                                  \
	} while (0)

/* Until the driver has looked at its peers some more times. */
static void
looks(void)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		uint64_t before = mq->link.peers_ns;

		TURN_UNTIL(mq->link.peers_ns != before);
	}
}

/* @return what the driver says */
static int
try(unsigned from)
{
	struct plx_tx tx = {.peer = to[from], .hdr = "a header", .hdr_len = 8, .op = 1};

	return plx_peer_tx(&tx);
}

static void
send(unsigned from)
{
	UNIT_EQ_FATAL(try(from), 0);
}

static void
on_written(void *arg, int err)
{
	(void)arg;
	n_written += err == 0;
}

static void
write_word(unsigned i)
{
	static const uint64_t word = 0x1234;
	struct plx_rma_op op = {.peer = to[0], .local = (void *)(uintptr_t)&word, .put = true,
		.remote = (uintptr_t)&words[i], .len = sizeof(word), .key = mem.key, .done = on_written};

	UNIT_EQ_FATAL(plx_peer_rma(&op), -EINPROGRESS);
}

/* So much later. */
static void
age(uint64_t ns)
{
	peer->link.silent_ns -= ns;
	peer->link.rx_ns -= ns;
	peer->link.heard_ns -= RTE_MIN(peer->link.heard_ns, ns);
	mq->link.peers_ns -= ns;
}

/* The driver waits for an acknowledgement. */
static void
until_silent(void)
{
	TURN_UNTIL(peer->link.silent_ns > peer->link.rx_ns);
}

/* Two queues that are connected, and nothing is on the way. */
static void
begin(uint64_t dead_ns)
{
	struct plx_conf conf;

	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "net_mlx.probe_ms", "10", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[i]), 0);
		q[i]->on_dead = on_dead;
		mlx_queue(q[i])->link.dead_ns = NEVER_NS;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct plx_addr addr;

		plx_queue_addr(q[!i], &addr);
		UNIT_EQ_FATAL(plx_peer_get(q[i], &addr, &to[i]), 0);
	}
	mq = mlx_queue(q[0]);
	mq->link.dead_ns = dead_ns;
	peer = mlx_peer(to[0]);
	n_dead = n_got = n_written = 0;
	keeps = false;
	UNIT_EQ_FATAL(plx_queue_mem_reg(q[1], words, sizeof(words), PLX_DEV_MEM_WRITE, &mem), 0);
	UNIT_EQ_FATAL(plx_peer_connect(to[0]), 0);
	TURN_UNTIL(peer->link.state == PLX_LINK_OPEN && mlx_peer(to[1])->link.state == PLX_LINK_OPEN);
	TURN_UNTIL(peer->link.rx_ns != 0 && peer->tx_room == MLX_TX_DEPTH);
}

static void
end(void)
{
	network(true);
	plx_queue_mem_dereg(q[1], &mem, true);
	for (unsigned i = 0; i < 2; i++)
		plx_queue_close(q[i]);
	plx_dev_close(dev);
}

static void
who_is_silent_for_less_than_it_may_lives(void)
{
	begin(NEVER_NS);
	network(false);
	send(0);
	until_silent();
	looks();
	UNIT_EQ(n_got, 0);
	network(true);
	TURN_UNTIL(n_got == 1 && peer->link.rx_ns >= peer->link.silent_ns);
	send(1);
	TURN_UNTIL(n_got == 2);
	UNIT_EQ(n_dead, 0);
	UNIT_EQ(mq->stat.link.silent_gone, 0);
	end();
}

static void
who_is_silent_for_longer_is_told_once(void)
{
	uint64_t since;

	begin(DEAD_NS);
	network(false);
	since = plx_clock_ns();
	send(0);
	TURN_UNTIL(n_dead != 0);
	UNIT_TRUE(plx_clock_ns() - since >= DEAD_NS);
	UNIT_EQ(to[0]->state, PLX_PEER_DEAD);
	UNIT_EQ(to[0]->err, -ETIME);
	looks();
	UNIT_EQ(n_dead, 1);
	UNIT_EQ(mq->stat.link.silent_gone, 1);
	UNIT_EQ(mq->stat.qp_retry, 0);
	end();
}

/* Nothing is sent to it: the probe asks. */
static void
an_idle_peer_that_is_silent_is_told(void)
{
	begin(DEAD_NS);
	network(false);
	TURN_UNTIL(n_dead != 0);
	UNIT_TRUE(mq->stat.probes > 0);
	UNIT_EQ(mq->stat.link.silent_gone, 1);
	end();
}

/* The first queue's owner sleeps, and has turns only when it may not. @return whether it slept until its deadline */
static bool
sleep_once(void)
{
	struct pollfd p = {.fd = plx_queue_efd(q[0]), .events = POLLIN};
	uint64_t due_ns, now_ns;
	bool woken;

	UNIT_TRUE_FATAL(p.fd >= 0);
	if (plx_queue_arm(q[0]) != 0) {
		turn(0);
		return false;
	}
	due_ns = plx_queue_deadline(q[0]);
	now_ns = plx_clock_ns();
	UNIT_TRUE_FATAL(due_ns < now_ns + LONG_NS);
	woken = poll(&p, 1, due_ns > now_ns ? (int)((due_ns - now_ns) / 1000000) + 1 : 0) != 0;
	plx_queue_disarm(q[0]);
	if (plx_queue_deadline(q[0]) <= plx_clock_ns())
		plx_queue_control(q[0]);
	return !woken;
}

static void
who_sleeps_looks_at_its_peers_in_time(void)
{
	uint64_t probes;
	unsigned n = 0;

	begin(NEVER_NS);
	probes = mq->stat.probes;
	for (time_t began = time(NULL); n < 3 && time(NULL) - began <= PATIENCE_S;)
		n += sleep_once();
	UNIT_EQ(n, 3);
	UNIT_TRUE(mq->stat.probes > probes); /* the peer says nothing of itself */
	end();
}

static void
who_waits_for_an_answer_sleeps_and_asks_again(void)
{
	struct plx_queue *gone;
	struct plx_addr addr;
	struct plx_conf conf;
	struct plx_peer *p;
	unsigned n = 0;

	begin(NEVER_NS);
	plx_conf_defaults(&conf);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &gone), 0);
	plx_queue_addr(gone, &addr);
	plx_queue_close(gone);
	mq->link.connect_ns = LONG_NS / 100;
	UNIT_EQ_FATAL(plx_peer_get(q[0], &addr, &p), 0);
	UNIT_EQ_FATAL(plx_peer_connect(p), 0);
	for (time_t began = time(NULL); n_dead == 0 && time(NULL) - began <= PATIENCE_S;)
		n += sleep_once();
	UNIT_TRUE(n >= 3);
	UNIT_TRUE(mq->stat.link.asked_again >= 2);
	UNIT_EQ(p->err, -ETIMEDOUT);
	plx_peer_put(p);
	end();
}

/* Told soon, and in the turn: not at the look that finds it so. */
static void
who_is_overdue_keeps_the_owner_awake_and_is_told_soon(void)
{
	begin(LONG_NS);
	network(false);
	until_silent();
	age(LONG_NS);
	plx_queue_control(q[0]);
	UNIT_TRUE(mq->link.overdue);
	UNIT_EQ(plx_queue_arm(q[0]), -EBUSY);
	UNIT_EQ(peer->link.state, PLX_LINK_OPEN);
	turn(0);
	UNIT_EQ(peer->link.state, PLX_LINK_LOST);
	UNIT_EQ(n_dead, 0);
	turn(0);
	UNIT_EQ(n_dead, 1);
	UNIT_TRUE(!mq->link.overdue);
	end();
}

/* It was silent once, answered, and then the owner did not look for long: that silence was not its own. */
static void
a_silence_of_long_ago_does_not_count(void)
{
	begin(LONG_NS);
	network(false);
	send(0);
	until_silent();
	network(true);
	TURN_UNTIL(peer->link.rx_ns >= peer->link.silent_ns && peer->tx_room == MLX_TX_DEPTH);
	age(2 * LONG_NS);
	network(false);
	until_silent();
	looks();
	UNIT_EQ(n_dead, 0);
	end();
}

/* The answer lies in the completion queue when the owner looks again; whoever waits for it hears of it in a burst. */
static void
who_has_answered_while_nobody_looked_lives(void)
{
	begin(LONG_NS);
	network(false);
	write_word(0);
	until_silent();
	network(true);
	mlx5_model_run(mlx5_verbs.m);
	age(2 * LONG_NS);
	for (unsigned i = 0; i < LOOKS; i++)
		plx_queue_control(q[0]);
	UNIT_TRUE(mq->link.overdue);
	UNIT_EQ(n_written, 0);
	turn(0);
	UNIT_EQ(n_written, 1);
	looks();
	UNIT_EQ(peer->link.state, PLX_LINK_OPEN);
	UNIT_TRUE(!mq->link.overdue);
	end();
}

/* Nothing could come while the own port was down; but that it is back does not help for ever. */
static void
who_was_out_of_reach_gets_time_when_the_port_is_back(void)
{
	begin(LONG_NS);
	network(false);
	until_silent();
	age(LONG_NS);
	mlx5_verbs_switch(0, 1, true);
	mlx5_verbs_switch(0, 1, false);
	looks();
	UNIT_TRUE(!mq->link.overdue);
	UNIT_EQ(peer->link.state, PLX_LINK_OPEN);
	atomic_fetch_sub(&mq->port->up_ns, LONG_NS);
	TURN_UNTIL(n_dead == 1);
	UNIT_EQ(to[0]->err, -ETIME);
	end();
}

/* Many writes, one after the other, that take longer than a peer may be silent. */
static void
a_transfer_may_take_longer_than_a_peer_may_be_silent(void)
{
	begin(LONG_NS);
	network(false);
	for (unsigned i = 0; i < WRITES; i++)
		write_word(i);
	for (unsigned n = 0, before; n < LOOKS; n++) {
		until_silent();
		age(LONG_NS / 2);
		looks();
		before = n_written;
		network(true);
		TURN_UNTIL(n_written != before);
		UNIT_TRUE_FATAL(n_written < WRITES);
		network(false);
	}
	network(true);
	TURN_UNTIL(n_written == WRITES);
	UNIT_EQ(n_dead, 0);
	end();
}

/* A single write that takes that long: the peer's owner answers. */
static void
who_answers_datagrams_lives(void)
{
	begin(LONG_NS);
	acknowledgements(false);
	write_word(0);
	until_silent();
	age(2 * LONG_NS);
	looks();
	UNIT_TRUE(mq->stat.link.silent_asked > 0);
	UNIT_TRUE(mq->stat.link.silent_answered > 0);
	UNIT_EQ(n_written, 0);
	UNIT_EQ(peer->link.state, PLX_LINK_OPEN);
	acknowledgements(true);
	TURN_UNTIL(n_written == 1);
	UNIT_EQ(n_dead, 0);
	end();
}

static void
who_only_answers_datagrams_is_gone_at_last(void)
{
	begin(LONG_NS);
	acknowledgements(false);
	write_word(0);
	until_silent();
	age((PLX_LINK_PATIENCE - 1) * LONG_NS);
	looks();
	UNIT_EQ(peer->link.state, PLX_LINK_OPEN);
	age(LONG_NS);
	TURN_UNTIL(n_dead == 1);
	UNIT_EQ(mq->stat.link.silent_gone, 1);
	UNIT_EQ(n_written, 0);
	end();
}

/* A probe is answered at once: the owner of a peer that is idle is left alone. */
static void
who_acknowledges_is_not_called(void)
{
	uint64_t before;

	begin(NEVER_NS);
	before = mq->stat.probes;
	for (unsigned i = 0; i < LOOKS; i++) {
		age(mq->link.probe_ns);
		plx_queue_control(q[0]);
		mlx5_model_run(mlx5_verbs.m);
		turn(0);
	}
	UNIT_EQ(mq->stat.probes, before + LOOKS);
	UNIT_EQ(mq->stat.link.silent_asked, 0);
	end();
}

/* No room for a probe, and what is out makes no completion: nobody has asked it. */
static void
who_was_not_asked_is_not_silent(void)
{
	begin(DEAD_NS);
	mq->tx_out += MLX_TX_ALL;
	peer->tx_room--; /* a message that is not signalled */
	peer->qp->next++;
	peer->recs[peer->tx_done % MLX_TX_RECS] = (struct mlx_txrec){.buf = MLX_NONE};
	TURN_UNTIL(mq->link.now_ns - peer->link.rx_ns > mq->link.probe_ns + DEAD_NS);
	looks();
	UNIT_EQ(peer->link.state, PLX_LINK_OPEN);
	peer->qp->next--;
	peer->tx_room++;
	mq->tx_out -= MLX_TX_ALL;
	end();
}

/* Both have said that they part: that the last is not acknowledged costs nothing, and counts once. */
static void
who_is_silent_after_both_said_park_is_parked(void)
{
	begin(DEAD_NS);
	keeps = true;
	send(1);
	TURN_UNTIL(n_got == 1 && peer->tx_room == MLX_TX_DEPTH);
	network(false);
	plx_link_park_told(&peer->link);
	TURN_UNTIL(peer->link.cut);
	looks();
	UNIT_EQ(peer->link.state, PLX_LINK_PARKING);
	UNIT_EQ(mq->stat.link.silent_gone, 1);
	q[0]->rx_release(q[0], &kept, 1);
	TURN_UNTIL(peer->link.state == PLX_LINK_NONE);
	UNIT_EQ(n_dead, 0);
	UNIT_EQ(try(0), -EAGAIN);
	TURN_UNTIL(peer->qp != NULL);
	UNIT_TRUE(!peer->link.cut);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(who_is_silent_for_less_than_it_may_lives),
	UNIT_TEST(who_is_silent_for_longer_is_told_once),
	UNIT_TEST(an_idle_peer_that_is_silent_is_told),
	UNIT_TEST(who_sleeps_looks_at_its_peers_in_time),
	UNIT_TEST(who_waits_for_an_answer_sleeps_and_asks_again),
	UNIT_TEST(who_is_overdue_keeps_the_owner_awake_and_is_told_soon),
	UNIT_TEST(a_silence_of_long_ago_does_not_count),
	UNIT_TEST(who_has_answered_while_nobody_looked_lives),
	UNIT_TEST(who_was_out_of_reach_gets_time_when_the_port_is_back),
	UNIT_TEST(a_transfer_may_take_longer_than_a_peer_may_be_silent),
	UNIT_TEST(who_answers_datagrams_lives),
	UNIT_TEST(who_only_answers_datagrams_is_gone_at_last),
	UNIT_TEST(who_acknowledges_is_not_called),
	UNIT_TEST(who_was_not_asked_is_not_silent),
	UNIT_TEST(who_is_silent_after_both_said_park_is_parked),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx5_silent", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_init_drivers() != 0)
		return EXIT_FAILURE;
	return unit_run(suites);
}

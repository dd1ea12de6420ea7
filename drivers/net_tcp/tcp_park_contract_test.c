/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_park_contract_test.c - idle connections over TCP: how they are closed and made again
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <rte_common.h>

#include "plx_unit_dev.h"

#include "tcp_contract_test.h"
#include "tcp_int.h"

#define LEAVES 24u
#define BOUND  4

static struct plx_queue *hub, *leaf[LEAVES];
static struct plx_peer *to_leaf[LEAVES], *to_hub[LEAVES];
static uint64_t sent[2 * LEAVES], came[2 * LEAVES]; /* from leaves, then to them */

static unsigned
index_of(const struct plx_queue *at, const struct plx_peer *from)
{
	for (unsigned i = 0; i < LEAVES; i++)
		if (at == hub ? to_leaf[i] == from : to_hub[i] == from)
			return at == hub ? i : LEAVES + i;
	return 0;
}

static void
turn_of(struct plx_queue *q)
{
	struct plx_rx rx[4];
	uint16_t n = q->rx_burst(q, rx, 4);

	for (uint16_t i = 0; i < n; i++) {
		unsigned k = index_of(q, rx[i].src);

		CU_ASSERT(msg_is(&rx[i], came[k]++, 60));
	}
	q->rx_release(q, rx, n);
	plx_queue_control(q);
}

static void
turns(void)
{
	turn_of(hub);
	for (unsigned i = 0; i < LEAVES; i++)
		turn_of(leaf[i]);
	sched_yield();
}

static void
open_star(void)
{
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_tcp.connected", RTE_STR(BOUND), PLX_CONF_FROM_API, NULL), 0);
	memset(sent, 0, sizeof(sent));
	memset(came, 0, sizeof(came));
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &hub), 0);
	for (unsigned i = 0; i < LEAVES; i++) {
		struct plx_addr addr;

		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &leaf[i]), 0);
		plx_queue_addr(hub, &addr);
		to_hub[i] = peer_known(leaf[i], &addr);
		plx_queue_addr(leaf[i], &addr);
		to_leaf[i] = peer_known(hub, &addr);
		UNIT_EQ_FATAL(plx_peer_connect(to_leaf[i]), 0);
		UNIT_EQ_FATAL(plx_peer_connect(to_hub[i]), 0);
	}
}

static void
close_star(void)
{
	for (unsigned i = 0; i < LEAVES; i++)
		plx_queue_close(leaf[i]);
	plx_queue_close(hub);
}

static void
send_one(unsigned k)
{
	struct plx_peer *to = k < LEAVES ? to_hub[k] : to_leaf[k - LEAVES];
	int rc = -EAGAIN;

	for (uint64_t since = now_ns(); rc == -EAGAIN; turns()) {
		rc = msg_send(to, sent[k], 60);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(rc, 0);
	sent[k]++;
}

static void
wait_all_came(void)
{
	for (uint64_t since = now_ns(); memcmp(sent, came, sizeof(sent)) != 0; turns())
		CU_ASSERT_FATAL(patient(since));
}

static void
wait_few(void)
{
	for (uint64_t since = now_ns(); tcp_queue(hub)->n_conns > BOUND; turns())
		CU_ASSERT_FATAL(patient(since));
}

static void
idle_connections_above_the_bound_are_closed(void)
{
	const struct tcp_stat *st;

	open_star();
	st = &tcp_queue(hub)->stat;
	for (unsigned k = 0; k < LEAVES; k++)
		send_one(k);
	wait_few();
	wait_all_came();
	UNIT_TRUE(st->parked >= LEAVES - BOUND);
	for (unsigned i = 0; i < LEAVES; i++) {
		UNIT_EQ(to_leaf[i]->state, PLX_PEER_OPEN);
		UNIT_EQ(to_hub[i]->state, PLX_PEER_OPEN);
	}
	/* Either side makes it again: the leaves, and, when some are closed once more, the hub. */
	for (unsigned k = 0; k < LEAVES; k++)
		send_one(k);
	wait_all_came();
	wait_few();
	for (unsigned k = LEAVES; k < 2 * LEAVES; k++)
		send_one(k);
	wait_all_came();
	UNIT_TRUE(st->reopened > 0);
	UNIT_EQ(hub->stat.peers_dead, 0);
	close_star();
}

static void
nothing_is_lost_while_connections_come_and_go(void)
{
	unsigned n = 0;

	open_star();
	for (unsigned round = 0; round < 12; round++) {
		for (unsigned i = 0; i < 30; i++)
			send_one((unsigned)(unit_rng(&rng_state) % (2 * LEAVES)));
		for (unsigned i = 0; i < unit_rng(&rng_state) % 60; i++) {
			struct timespec t = {.tv_nsec = 1000000};

			turns();
			nanosleep(&t, NULL);
		}
	}
	wait_all_came();
	for (unsigned k = 0; k < 2 * LEAVES; k++)
		n += (unsigned)sent[k];
	UNIT_EQ(n, 360);
	UNIT_TRUE(tcp_queue(hub)->stat.parked > LEAVES);
	UNIT_EQ(hub->stat.peers_dead, 0);
	close_star();
}

/* Both sides begin at once, as both have too many. */
static void
two_may_close_at_once(void)
{
	open_star();
	for (unsigned k = 0; k < LEAVES; k++)
		send_one(k);
	for (unsigned i = 0; i < LEAVES; i++)
		tcp_queue(leaf[i])->connected = 0;
	tcp_queue(hub)->connected = 0;
	for (uint64_t since = now_ns(); tcp_queue(hub)->n_conns > 0; turns())
		CU_ASSERT_FATAL(patient(since));
	for (unsigned k = 0; k < 2 * LEAVES; k++)
		send_one(k);
	wait_all_came();
	UNIT_EQ(hub->stat.peers_dead, 0);
	close_star();
}

static void
who_dies_while_it_closes_is_dead(void)
{
	struct tcp_peer *p;

	open_star();
	tcp_queue(hub)->connected = 2 * LEAVES;
	for (unsigned k = 0; k < LEAVES; k++)
		send_one(k);
	wait_all_came();
	tcp_queue(hub)->connected = 0;
	for (uint64_t since = now_ns(); tcp_queue(hub)->n_leaving == 0; turn_of(hub))
		CU_ASSERT_FATAL(patient(since));
	for (unsigned i = 0; i < LEAVES; i++) {
		p = tcp_peer(to_leaf[i]);
		if (p->state == TCP_LEAVING)
			shutdown(tcp_peer(to_hub[i])->flow.fd, SHUT_RDWR);
	}
	for (uint64_t since = now_ns(); hub->stat.peers_dead == 0; turn_of(hub))
		CU_ASSERT_FATAL(patient(since));
	close_star();
}

CU_TestInfo tcp_park_tests[] = {
	UNIT_TEST(idle_connections_above_the_bound_are_closed),
	UNIT_TEST(nothing_is_lost_while_connections_come_and_go),
	UNIT_TEST(two_may_close_at_once),
	UNIT_TEST(who_dies_while_it_closes_is_dead),
	CU_TEST_INFO_NULL,
};

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_contract_test.c - the TCP driver in the contract of drivers, and what only it has
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_net_tcp.h"
#include "plx_unit_dev.h"

#include "tcp_contract_test.h"
#include "tcp_int.h"

static void
set_up(unsigned i)
{
	plx_conf_set(&conf, "net_tcp.connect_ms", "2000", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_tcp.answer_ms", "3000", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_tcp.interfaces", "lo", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_tcp.family", i == 0 ? "any" : "inet6", PLX_CONF_FROM_API, NULL);
}

static bool
is_settled(struct plx_peer *peer)
{
	return tcp_peer(peer)->state == TCP_OPEN;
}

/* Somebody listens there and says nothing: no event ever comes. */
static void
who_is_not_answered_sleeps_and_gives_up_in_time(void)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	struct plx_queue *a = queue_new(), *b = queue_new();
	int mute = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t since_ms = plx_clock_ms(); /* whole ms, as the driver counts them */
	socklen_t len = sizeof(at);
	struct plx_addr addr;
	struct plx_peer *p;
	unsigned n = 0;

	UNIT_EQ_FATAL(bind(mute, (struct sockaddr *)&at, len), 0);
	UNIT_EQ_FATAL(listen(mute, 8), 0);
	UNIT_EQ_FATAL(getsockname(mute, (struct sockaddr *)&at, &len), 0);
	plx_queue_addr(b, &addr);
	memcpy(addr.bytes + offsetof(struct tcp_addr, port), &(uint16_t){ntohs(at.sin6_port)}, sizeof(uint16_t));
	UNIT_TRUE_FATAL(plx_queue_efd(a) >= 0);
	p = peer_known(a, &addr);
	UNIT_EQ_FATAL(plx_peer_connect(p), 0);
	while (p->state != PLX_PEER_DEAD && sleep_once(a) && n < 1000)
		n++;
	UNIT_EQ(p->state, PLX_PEER_DEAD);
	UNIT_EQ(p->err, -ETIMEDOUT);
	UNIT_TRUE(plx_clock_ms() - since_ms >= 3000);
	UNIT_TRUE(n < 50); /* it did not turn round and round */
	close(mute);
	queue_close(a);
	queue_close(b);
}

/* The peer ends with bytes unread, so its end is a reset, and our bytes are never acknowledged. */
static void
who_closes_does_not_wait_for_a_peer_that_has_gone(void)
{
	uint64_t since = now_ns();

	for (unsigned i = 0; i < 10; i++) {
		struct plx_queue *a = queue_new(), *b = queue_new();
		struct plx_peer *to_b = connected_to(a, b), *to_a = connected_to(b, a);

		UNIT_EQ(setsockopt(tcp_peer(to_a)->flow.fd, IPPROTO_TCP, TCP_QUICKACK, &(int){0}, sizeof(int)), 0);
		UNIT_EQ(msg_send(to_b, 0, 100), 0);
		queue_close(b);
		queue_close(a);
	}
	UNIT_TRUE(now_ns() - since < UINT64_C(1500000000)); /* of TCP_LEAVE_MS once */
}

/* As a worker's turn does. */
static void
send_in_turn(struct plx_queue *q, struct plx_peer *to, unsigned n, uint64_t *turns)
{
	q->hold = true;
	for (unsigned i = 0; i < n; i++)
		UNIT_EQ_FATAL(msg_send(to, i, 8), 0);
	++*turns;
	q->hold = false;
	plx_queue_flush(q);
}

/* The program's next turn sends it together with those behind it. */
static void
behind_many_messages_of_a_turn_the_next_waits_too(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct tcp_stat *st = &tcp_queue(a)->stat;
	uint64_t turns = 0, calls;

	a->turns = &turns;
	for (unsigned many = 0; many < 2; many++) {
		turns++;
		calls = st->tx_calls;
		send_in_turn(a, to_b, TCP_MANY + many, &turns);
		UNIT_EQ(st->tx_calls - calls, 1);
		UNIT_EQ(msg_send(to_b, 0, 8), many ? -EAGAIN : 0);
		UNIT_EQ(st->tx_calls - calls, many ? 1 : 2);
	}
	turns++;
	UNIT_EQ(msg_send(to_b, 0, 8), 0);
	UNIT_EQ(st->tx_calls - calls, 2);
	queue_close(a);
	queue_close(b);
}

static void
send_and_take(struct plx_peer *to_b, struct plx_queue *b)
{
	uint64_t since = now_ns();
	struct plx_rx rx;

	UNIT_EQ_FATAL(msg_send(to_b, 0, 8), 0);
	while (burst(b, &rx, 1) == 0)
		CU_ASSERT_FATAL(patient(since));
	b->rx_release(b, &rx, 1);
}

/* @return b's side of a connection that carries messages until epoll does not watch it */
static struct tcp_peer *
busy_peer(struct plx_queue *b, struct plx_queue *a, struct plx_peer *to_b)
{
	struct tcp_peer *p = tcp_peer(connected_to(b, a));
	uint64_t since = now_ns();

	for (; p->flow.polled; send_and_take(to_b, b))
		CU_ASSERT_FATAL(patient(since));
	return p;
}

/* @return whether the queue's descriptor reports something within a second, or at once that it does not */
static bool
efd_reports(struct plx_queue *q, int ms)
{
	struct pollfd fd = {plx_queue_efd(q), POLLIN, 0};

	return poll(&fd, 1, ms) == 1;
}

/* Each message that epoll reports costs its sender. */
static void
epoll_does_not_watch_a_busy_socket_until_its_owner_sleeps(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct tcp_peer *p = busy_peer(b, a, to_b);
	struct plx_rx rx;

	UNIT_TRUE(p->flow.is_hot);
	UNIT_EQ(msg_send(to_b, 0, 8), 0);
	UNIT_TRUE(!efd_reports(b, 10));
	UNIT_EQ(plx_queue_arm(b), -EBUSY); /* it has come */
	UNIT_EQ(burst(b, &rx, 1), 1);
	b->rx_release(b, &rx, 1);
	UNIT_EQ(plx_queue_arm(b), 0);
	UNIT_EQ(msg_send(to_b, 0, 8), 0);
	UNIT_TRUE(efd_reports(b, 1000));
	plx_queue_disarm(b);
	UNIT_EQ(burst(b, &rx, 1), 1);
	b->rx_release(b, &rx, 1);
	UNIT_TRUE(p->flow.polled); /* who sleeps is not soon without it */
	queue_close(a);
	queue_close(b);
}

static void
epoll_watches_a_socket_again_that_cools(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct tcp_peer *p = busy_peer(b, a, to_b);
	struct plx_rx rx;

	for (unsigned i = 0; i < TCP_COLD + TCP_POLL_EVERY; i++)
		UNIT_EQ(burst(b, &rx, 1), 0);
	UNIT_TRUE(p->flow.polled && !p->flow.is_hot);
	send_and_take(to_b, b);
	UNIT_TRUE(p->flow.is_hot);
	queue_close(a);
	queue_close(b);
}

static struct asked {
	struct plx_queue *q;
	struct plx_addr addr;
} asked[2];

static void *
ask(void *arg)
{
	struct asked *at = arg;

	plx_queue_addr(at->q, &at->addr);
	return NULL;
}

/* As programs with a reactor do: its thread is the owner. The thread sanitizer finds races that rarely show. */
static void
threads_may_ask_for_the_address_while_the_owner_has_turns(void)
{
	for (unsigned round = 0; round < 20; round++) {
		unsigned before = unit_open_files();
		struct plx_queue *a = queue_new();
		pthread_t thread[2];
		struct plx_rx rx;

		for (unsigned i = 0; i < 2; i++) {
			asked[i].q = a;
			UNIT_EQ_FATAL(pthread_create(&thread[i], NULL, ask, &asked[i]), 0);
		}
		UNIT_TRUE(plx_queue_efd(a) >= 0);
		for (unsigned i = 0; i < 100; i++) {
			UNIT_EQ(burst(a, &rx, 1), 0);
			plx_queue_control(a);
		}
		for (unsigned i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		UNIT_EQ(unit_open_files() - before, 2); /* one epoll, and one listener */
		UNIT_TRUE(asked[0].addr.len != 0 && asked[0].addr.len == asked[1].addr.len);
		UNIT_SAME(asked[0].addr.bytes, asked[1].addr.bytes, asked[0].addr.len);
		queue_close(a);
	}
}

static CU_TestInfo own_tests[] = {
	UNIT_TEST(who_closes_does_not_wait_for_a_peer_that_has_gone),
	UNIT_TEST(threads_may_ask_for_the_address_while_the_owner_has_turns),
	UNIT_TEST(behind_many_messages_of_a_turn_the_next_waits_too),
	UNIT_TEST(epoll_does_not_watch_a_busy_socket_until_its_owner_sleeps),
	UNIT_TEST(epoll_watches_a_socket_again_that_cools),
	UNIT_TEST(who_is_not_answered_sleeps_and_gives_up_in_time),
	CU_TEST_INFO_NULL,
};

static const struct dev_contract_suite suites[] = {
	{"itself", 0, own_tests, 0},
	{"memory by keys", 0, tcp_far_tests, 0},
	{"further connections", 0, tcp_flow_tests, 0},
	{"idle connections", 0, tcp_park_tests, 0},
	{"datagrams", 0, tcp_udp_tests, NEED_GROUP | NEED_DATAGRAM},
	{"many peers", 0, tcp_idle_tests, 0},
	{NULL, 0, NULL, 0},
};

static const char *const setups[] = {"over any family", "over IPv6", NULL};

/* An emulator passes few options of sockets on. */
static unsigned
lacks(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), mtu;
	socklen_t len = sizeof(mtu);
	bool unknown = getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) != 0 && errno == ENOPROTOOPT;

	close(fd);
	if (!unknown)
		return 0;
	printf("# skipped: groups and datagrams of net_tcp: a socket knows no MTU here\n");
	return NEED_GROUP | NEED_DATAGRAM;
}

static struct dev_contract contract = {
	.ops = &plx_net_tcp_ops,
	.setups = setups,
	.set_up = set_up,
	.lacks = lacks,
	.is_settled = is_settled,
	.suites = suites,
	.atomics_by_message = true,
	.at_least = 16,
};

RTE_INIT(tcp_contract)
{
	dev_contract_add(&contract);
}

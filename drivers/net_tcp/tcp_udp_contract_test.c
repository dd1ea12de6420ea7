/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_udp_contract_test.c - datagrams: their authentication, and system calls of a turn
 *
 * Tests take a datagram from a queue's slots before it is sent, and send it by a socket of their own.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_unit_dev.h"

#include "tcp_contract_test.h"
#include "tcp_int.h"

#define OP    7
#define LEN   40
#define GROUP UINT64_C(0x1234567890abcdef)

static struct plx_queue *q[3];
static struct plx_peer *to[3][3];
static uint32_t where[3];

static struct {
	unsigned n;
	struct plx_queue *q;
	struct plx_peer *src;
	uint32_t len;
} got;

static void
on_lossy(struct plx_queue *queue, const struct plx_rx *rx)
{
	got.n++;
	got.q = queue;
	got.src = rx->src;
	got.len = rx->len;
	UNIT_EQ(rx->op, OP);
}

static void
on_group(struct plx_queue *queue, uint64_t group, const uint8_t *data, uint32_t len)
{
	(void)data;
	UNIT_TRUE(group == GROUP);
	got.n++;
	got.q = queue;
	got.len = len;
}

/* Three queues. The first two know each other, and the third knows them. */
static void
begin(void)
{
	struct plx_addr addr;

	for (unsigned i = 0; i < 3; i++) {
		q[i] = queue_new();
		q[i]->on_lossy = on_lossy;
		q[i]->on_group = on_group;
		UNIT_EQ_FATAL(plx_queue_lossy_open(q[i], &where[i]), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 2; k++) {
			plx_queue_addr(q[k], &addr);
			to[i][k] = peer_known(q[i], &addr);
			if (i != k)
				UNIT_EQ_FATAL(plx_peer_lossy_to(to[i][k], where[k]), 0);
		}
	memset(&got, 0, sizeof(got));
}

static void
end(void)
{
	for (unsigned i = 0; i < 3; i++)
		queue_close(q[i]);
}

static int
send_one(struct plx_peer *peer, uint32_t len)
{
	static uint8_t data[TCP_UDP_LEN];
	const uint64_t hdr = 5;
	const struct plx_tx tx = {.peer = peer, .hdr = &hdr, .hdr_len = sizeof(hdr), .data = data, .len = len, .op = OP};

	return plx_peer_lossy_tx(&tx);
}

/* Wait until n have come, and a while for more. */
static void
expect(unsigned n)
{
	uint64_t since = now_ns();
	struct plx_rx rx;

	while (got.n < n || now_ns() - since < 3000000) {
		for (unsigned i = 0; i < 3; i++)
			if (burst(q[i], &rx, 1) != 0)
				q[i]->rx_release(q[i], &rx, 1);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(got.n, n);
	got.n = 0;
}

static struct tcp_stat *
stat_of(unsigned i)
{
	return &tcp_queue(q[i])->stat;
}

/* A datagram that was about to go. */
struct caught {
	struct sockaddr_storage to;
	socklen_t to_len;
	uint8_t bytes[TCP_UDP_LEN + 1];
	size_t len;
};

static void
catch_one(struct plx_queue *from, struct caught *c)
{
	struct tcp_udp *u = tcp_queue(from)->udp;

	UNIT_EQ_FATAL(u->n_tx, 1);
	c->to = u->to[0];
	c->to_len = u->tx[0].msg_hdr.msg_namelen;
	c->len = u->tx_iov[0].iov_len;
	memcpy(c->bytes, u->tx_iov[0].iov_base, c->len);
	u->n_tx = 0;
	from->hold = from->held = false;
}

static void
catch_lossy(unsigned from, unsigned dest, struct caught *c)
{
	q[from]->hold = true;
	UNIT_EQ_FATAL(send_one(to[from][dest], LEN), 0);
	catch_one(q[from], c);
}

/* From somebody else's socket. */
static void
replay(const struct caught *c)
{
	int fd = socket(c->to.ss_family, SOCK_DGRAM, 0);
	const struct ip_mreqn lo = {.imr_ifindex = 1};

	(void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo));
	UNIT_EQ(sendto(fd, c->bytes, c->len, 0, (const struct sockaddr *)&c->to, c->to_len), (ssize_t)c->len);
	close(fd);
}

/* Copies with one byte changed, or of another length. */
static void
replay_changed(struct caught *c)
{
	for (size_t i = 0; i < c->len; i++) {
		c->bytes[i] ^= 1;
		replay(c);
		c->bytes[i] ^= 1;
		expect(0);
	}
	c->len--;
	replay(c);
	c->len += 2;
	replay(c);
	c->len = 0;
	replay(c);
	c->len = sizeof(c->bytes);
	replay(c);
	expect(0);
}

static void
a_datagram_is_a_peers_if_it_is_keyed_by_it_and_whole(void)
{
	struct caught c = {.len = 0};
	uint64_t not_ours;
	size_t len;

	begin();
	catch_lossy(0, 1, &c);
	len = c.len;
	UNIT_EQ(len, sizeof(struct tcp_stamp) + sizeof(uint64_t) + LEN);
	replay(&c); /* where it comes from does not matter */
	expect(1);
	UNIT_TRUE(got.src == to[1][0] && got.len == sizeof(uint64_t) + LEN);
	not_ours = stat_of(1)->lossy_drop_not_ours;
	replay_changed(&c);
	UNIT_EQ(stat_of(1)->udp_drop_bad, 4 + 2 + 2); /* magic, pad; too short, too long */
	UNIT_EQ(stat_of(1)->lossy_drop_not_ours - not_ours, len - 4 - 2 + 2);
	c.len = len;
	for (unsigned i = 0; i < 2; i++) /* again: as from a network that doubles them */
		replay(&c);
	expect(2);
	end();
}

static void
strangers_and_other_ways_are_not_believed(void)
{
	struct caught c;

	begin();
	catch_lossy(2, 1, &c); /* is not known there */
	replay(&c);
	expect(0);
	UNIT_EQ(stat_of(1)->lossy_drop_not_ours, 1);
	catch_lossy(0, 1, &c); /* was meant for somebody else: for its sender, */
	tcp_ip_sockaddr(&(struct tcp_ip){4, {127, 0, 0, 1}}, (uint16_t)where[0], &c.to);
	c.to_len = sizeof(struct sockaddr_in);
	replay(&c);
	tcp_ip_sockaddr(&(struct tcp_ip){4, {127, 0, 0, 1}}, (uint16_t)where[2], &c.to);
	replay(&c); /* for a third */
	expect(0);
	UNIT_EQ(stat_of(0)->lossy_drop_not_ours + stat_of(2)->lossy_drop_not_ours, 2);
	end();
}

static void
a_turn_sends_by_few_calls_and_refuses_more(void)
{
	const unsigned most = TCP_UDP_TX * (TCP_UDP_CALLS + 1);
	unsigned n = 0;

	begin();
	q[0]->hold = true;
	while (n < 10 * most && send_one(to[0][1], 1) == 0)
		n++;
	UNIT_EQ(n, most);
	UNIT_EQ(send_one(to[0][1], 1), -EAGAIN);
	UNIT_EQ(stat_of(0)->lossy_no_room, 2);
	UNIT_EQ(stat_of(0)->udp_tx_calls, TCP_UDP_CALLS);
	q[0]->hold = false;
	UNIT_TRUE(q[0]->held);
	plx_queue_flush(q[0]);
	UNIT_EQ(stat_of(0)->udp_tx_calls, TCP_UDP_CALLS + 1);
	expect(most);
	UNIT_EQ(send_one(to[0][1], 1), 0);
	expect(1);
	end();
}

static void
outside_of_a_turn_one_goes_at_once_and_the_next_waits_for_a_turn(void)
{
	uint64_t turns = 3;

	begin();
	q[0]->turns = &turns;
	UNIT_EQ(send_one(to[0][1], 1), 0);
	expect(1);
	UNIT_EQ(send_one(to[0][1], 1), -EAGAIN);
	turns++;
	UNIT_EQ(send_one(to[0][1], 1), 0);
	expect(1);
	end();
}

static void
one_that_the_kernel_refuses_is_lost_alone(void)
{
	begin();
	q[0]->hold = true;
	for (unsigned i = 0; i < 3; i++)
		UNIT_EQ(send_one(to[0][1], 1), 0);
	/* a broadcast, which nobody has allowed */
	tcp_ip_sockaddr(&(struct tcp_ip){4, {255, 255, 255, 255}}, 9, &tcp_queue(q[0])->udp->to[1]);
	q[0]->hold = false;
	plx_queue_flush(q[0]);
	expect(2);
	UNIT_EQ(stat_of(0)->udp_refused, 1);
	UNIT_EQ(stat_of(0)->lossy_tx, 3);
	end();
}

static void
a_message_to_a_group_is_keyed_by_its_name(void)
{
	struct caught c = {.len = 0};
	size_t len;

	begin();
	UNIT_EQ_FATAL(plx_queue_group_join(q[0], GROUP, false), 0);
	UNIT_EQ_FATAL(plx_queue_group_join(q[1], GROUP, true), 0);
	q[0]->hold = true;
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, "to all", 6), 0);
	catch_one(q[0], &c);
	len = c.len;
	replay(&c);
	expect(1);
	UNIT_EQ(got.len, 6);
	UNIT_TRUE(memmem(c.bytes, len, &(uint64_t){GROUP}, 8) == NULL); /* the key is not in it */
	replay_changed(&c);
	UNIT_EQ(stat_of(1)->group_drop_not_ours, len - 4 - 2 + 2);
	c.len = len;
	tcp_ip_sockaddr(&(struct tcp_ip){4, {127, 0, 0, 1}}, (uint16_t)where[1], &c.to); /* not by the group's address */
	c.to_len = sizeof(struct sockaddr_in);
	replay(&c);
	expect(0);
	UNIT_EQ(stat_of(1)->lossy_drop_not_ours, 1);
	end();
}

static void
without_an_interface_there_is_no_group(void)
{
	struct plx_queue *alone;

	plx_conf_set(&conf, "net_tcp.interfaces", "none0", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &alone), 0);
	UNIT_EQ(plx_queue_group_join(alone, GROUP, true), -ENODEV);
	UNIT_EQ(plx_queue_group_join(alone, GROUP, false), -ENODEV);
	UNIT_EQ(plx_queue_group_tx(alone, GROUP, "", 0), -ENOENT);
	plx_queue_close(alone);
}

CU_TestInfo tcp_udp_tests[] = {
	UNIT_TEST(a_datagram_is_a_peers_if_it_is_keyed_by_it_and_whole),
	UNIT_TEST(strangers_and_other_ways_are_not_believed),
	UNIT_TEST(a_turn_sends_by_few_calls_and_refuses_more),
	UNIT_TEST(outside_of_a_turn_one_goes_at_once_and_the_next_waits_for_a_turn),
	UNIT_TEST(one_that_the_kernel_refuses_is_lost_alone),
	UNIT_TEST(a_message_to_a_group_is_keyed_by_its_name),
	UNIT_TEST(without_an_interface_there_is_no_group),
	CU_TEST_INFO_NULL,
};

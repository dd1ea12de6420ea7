/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_flow_contract_test.c - further connections of a peer over TCP: what goes by them, its order, and how they end
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_unit_dev.h"

#include "tcp_contract_test.h"
#include "tcp_int.h"

#define LONG  (1u << 20)
#define N_OPS 8u
#define ALL   (N_OPS * LONG)

static uint8_t here[ALL], there[ALL];
static struct plx_queue *a, *b;
static struct plx_peer *to_a, *to_b;
static struct plx_dev_mem mem;
static int over[N_OPS];

static struct plx_queue *
queue_with(const char *flows)
{
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_tcp.flows", flows, PLX_CONF_FROM_API, NULL), 0);
	return queue_new();
}

static void
open_two(const char *flows_a, const char *flows_b)
{
	a = queue_with(flows_a);
	b = queue_with(flows_b);
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_tcp.flows", "1", PLX_CONF_FROM_API, NULL), 0);
	to_b = connected_to(a, b);
	to_a = connected_to(b, a);
	memset(there, 0x55, sizeof(there));
	UNIT_EQ_FATAL(plx_queue_mem_reg(b, there, sizeof(there),
		PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE | PLX_DEV_MEM_ATOMIC, &mem), 0);
}

static void
close_two(void)
{
	plx_queue_mem_dereg(b, &mem, true);
	queue_close(a);
	queue_close(b);
}

static const struct tcp_stat *
stat_of(const struct plx_queue *q)
{
	return &tcp_queue(q)->stat;
}

/* Operation i: len bytes at a place of its own. @return as plx_peer_rma(), -EAGAIN excepted */
static int
begin(unsigned i, bool put, uint32_t len)
{
	struct plx_rma_op op = {.peer = to_b, .local = here + i * LONG, .remote = (uintptr_t)there + i * LONG, .len = len,
		.put = put, .key = mem.key, .done = rma_over, .arg = &over[i]};
	int rc;

	over[i] = 1;
	for (uint64_t since = now_ns(); (rc = plx_peer_rma(&op)) == -EAGAIN;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return rc;
}

static void
wait_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		for (uint64_t since = now_ns(); over[i] == 1;) {
			others_turn(NULL);
			CU_ASSERT_FATAL(patient(since));
		}
	}
}

/* Move long data until q has this number of further connections to its peer. */
static void
grow(const struct plx_queue *q, bool put, unsigned n)
{
	UNIT_EQ(stat_of(q)->flows, 0);
	UNIT_EQ(begin(0, put, LONG), -EINPROGRESS);
	wait_all(1);
	UNIT_EQ(over[0], 0);
	for (uint64_t since = now_ns(); stat_of(q)->flows < n;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
}

/* @return how many of a peer's further connections have sent something */
static unsigned
n_used(struct plx_peer *to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TCP_FLOWS_MAX - 1; i++) {
		struct tcp_info info = {0};
		socklen_t len = sizeof(info);
		int fd = tcp_peer(to)->more->to[i].flow.fd;

		if (fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
			n += info.tcpi_bytes_acked >= LONG;
	}
	return n;
}

static void
long_data_goes_by_further_connections(void)
{
	open_two("4", "4");
	grow(a, true, 3);
	UNIT_EQ(stat_of(b)->rx_away, 0);
	unit_fill(here, ALL, 7);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, true, LONG), -EINPROGRESS);
	wait_all(N_OPS);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(over[i], 0);
	CU_ASSERT(unit_is_filled(there, ALL, 7));
	UNIT_EQ(stat_of(b)->rx_away, N_OPS);
	UNIT_EQ(stat_of(b)->puts, N_OPS + 1);
	UNIT_EQ(n_used(to_b), 3);
	UNIT_EQ(stat_of(b)->flows, 0); /* it has moved nothing itself */
	UNIT_EQ(stat_of(b)->flows_taken, 3);
	close_two();
}

static void
so_does_what_is_read(void)
{
	open_two("3", "3");
	grow(b, false, 2);
	unit_fill(there, ALL, 9);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, false, LONG - i), -EINPROGRESS);
	wait_all(N_OPS);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(over[i], 0);
	for (unsigned i = 0; i < N_OPS; i++)
		CU_ASSERT(memcmp(here + i * LONG, there + i * LONG, LONG - i) == 0);
	UNIT_EQ(stat_of(a)->rx_away, N_OPS);
	UNIT_EQ(n_used(to_a), 2);
	close_two();
}

static void
one_connection_is_the_default(void)
{
	open_two("1", "4");
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, true, LONG), -EINPROGRESS);
	wait_all(N_OPS);
	for (unsigned i = 0; i < 100; i++)
		others_turn(NULL);
	UNIT_EQ(stat_of(a)->flows + stat_of(a)->flows_failed + stat_of(b)->flows_taken, 0);
	close_two();
}

static void
no_more_are_made_than_both_allow(void)
{
	open_two("4", "2");
	grow(a, true, 1);
	for (uint64_t since = now_ns(); stat_of(a)->flows_failed < 2;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, true, LONG), -EINPROGRESS);
	wait_all(N_OPS);
	UNIT_EQ(stat_of(b)->rx_away, N_OPS);
	UNIT_EQ(stat_of(a)->flows, 1);
	close_two();
}

static void
without_descriptors_the_first_has_it_all(void)
{
	struct rlimit was, few;

	open_two("4", "4");
	UNIT_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = 3;
	UNIT_EQ_FATAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, true, LONG), -EINPROGRESS);
	wait_all(N_OPS);
	UNIT_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
	UNIT_EQ(stat_of(a)->flows_failed, 1); /* it does not ask again and again */
	UNIT_EQ(stat_of(a)->no_fd, 1);
	UNIT_EQ(stat_of(b)->rx_away, 0);
	tcp_peer(to_b)->more->again_ms = 0;
	grow(a, true, 3);
	close_two();
}

/* -- order -- */

static uint64_t n_sent, n_come;

static void
message(uint32_t len)
{
	for (uint64_t since = now_ns(); msg_send(to_b, n_sent, len) == -EAGAIN;) {
		others_turn(b);
		CU_ASSERT_FATAL(patient(since));
	}
	n_sent++;
}

static void
is_found(uint32_t len)
{
	struct plx_rx rx;

	for (uint64_t since = now_ns(); burst(b, &rx, 1) == 0;) {
		others_turn(b);
		CU_ASSERT_FATAL(patient(since));
	}
	CU_ASSERT(msg_is(&rx, n_come++, len));
	b->rx_release(b, &rx, 1);
}

/* By whatever connection each goes. */
static void
a_message_is_found_behind_all_writes_before_it(void)
{
	open_two("4", "4");
	grow(a, true, 3);
	n_sent = n_come = 0;
	for (unsigned round = 0; round < 60; round++) {
		unsigned n = 1 + round % N_OPS;
		uint8_t word = (uint8_t)round;

		unit_fill(here, ALL, round);
		for (unsigned i = 0; i < n; i++)
			UNIT_EQ(begin(i, true, i % 3 == 2 ? 5000 : LONG - 7 * round), -EINPROGRESS);
		/* A short write to the same place, that nothing acknowledges. */
		for (uint64_t since = now_ns(); plx_peer_put_short(to_b, &word, 1, (uintptr_t)there, mem.key) == -EAGAIN;) {
			others_turn(b);
			CU_ASSERT_FATAL(patient(since));
		}
		message(100);
		message(1000);
		is_found(100);
		UNIT_EQ(there[0], word);
		for (unsigned i = 0; i < n; i++)
			CU_ASSERT(memcmp(here + i * LONG + 1, there + i * LONG + 1,
				(i % 3 == 2 ? 5000 : LONG - 7 * round) - 1) == 0);
		is_found(1000);
		wait_all(n);
	}
	UNIT_TRUE(stat_of(b)->rx_away > 100);
	close_two();
}

/* An acknowledgement of the last is one of all. */
static void
writes_are_over_in_their_order(void)
{
	open_two("4", "4");
	grow(a, true, 3);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, true, i == 0 ? LONG : 40000), -EINPROGRESS);
	for (uint64_t since = now_ns(); over[N_OPS - 1] == 1;) {
		for (unsigned i = 1; i < N_OPS; i++)
			CU_ASSERT_FATAL(over[i - 1] == 0 || over[i] == 1);
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(over[0], 0);
	close_two();
}

/* -- what waits, and what does not -- */

static void
say(const void *bytes, size_t len)
{
	UNIT_EQ(send(tcp_peer(to_b)->flow.fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

struct said_put {
	struct tcp_frame f;
	struct tcp_where to;
};

/* The frame of data that goes by a further connection. */
static void
say_put(uint16_t flow, uint32_t len)
{
	struct said_put put = {{.len = 16 + len, .kind = TCP_PUT, .op = 1, .flow = flow}, {mem.key, (uintptr_t)there}};

	say(&put, sizeof(put));
}

static void
say_data(unsigned flow, uint32_t len)
{
	UNIT_EQ(send(tcp_peer(to_b)->more->to[flow - 1].flow.fd, here, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void
who_keeps_data_back_stops_only_itself(void)
{
	struct plx_queue *c;
	struct plx_peer *from_c;
	struct plx_rx rx;

	open_two("3", "3");
	grow(a, true, 2);
	c = queue_new();
	from_c = connected_to(c, b);
	n_sent = n_come = 0;
	say_put(1, 1000);
	message(100);
	for (unsigned i = 0; i < 1000; i++)
		others_turn(NULL); /* b finds nothing */
	UNIT_EQ(tcp_peer(to_a)->flow.odd, TCP_STALLED);
	for (unsigned i = 0; i < 50; i++) {
		UNIT_EQ(msg_send(from_c, i, 60), 0);
		for (uint64_t since = now_ns(); burst(b, &rx, 1) == 0;)
			CU_ASSERT_FATAL(patient(since));
		CU_ASSERT(msg_is(&rx, i, 60));
		b->rx_release(b, &rx, 1);
	}
	/* It sleeps, though bytes of a's first connection are there. */
	message(200);
	UNIT_EQ(plx_queue_arm(b), 0);
	UNIT_EQ(poll(&(struct pollfd){plx_queue_efd(b), POLLIN, 0}, 1, 50), 0);
	say_data(1, 1000);
	UNIT_EQ(poll(&(struct pollfd){plx_queue_efd(b), POLLIN, 0}, 1, 1000), 1);
	plx_queue_disarm(b);
	is_found(100);
	is_found(200);
	UNIT_SAME(there, here, 1000);
	UNIT_EQ(tcp_peer(to_a)->flow.odd, TCP_PLAIN);
	queue_close(c);
	close_two();
}

static void
data_may_come_byte_by_byte_and_before_its_frame(void)
{
	struct said_put put = {{.len = 16 + 40, .kind = TCP_PUT, .flow = 2}, {0, (uintptr_t)there}};

	open_two("3", "3");
	grow(a, true, 2);
	n_sent = n_come = 0;
	put.to.key = mem.key;
	say_data(2, 20);
	for (size_t i = 0; i < sizeof(put); i++) {
		say((uint8_t *)&put + i, 1);
		for (unsigned k = 0; k < 20; k++)
			others_turn(NULL);
	}
	message(8);
	for (unsigned i = 0; i < 20; i++) {
		others_turn(NULL);
		UNIT_EQ(send(tcp_peer(to_b)->more->to[1].flow.fd, here + 20 + i, 1, MSG_NOSIGNAL), 1);
	}
	is_found(8);
	UNIT_SAME(there, here, 40);
	close_two();
}

/* -- the end -- */

/* In the middle of a write or a read, one socket ends: a further one, or the first. */
static void
ends_in_the_middle(bool put, bool first)
{
	struct plx_peer *from, *to;
	unsigned files = unit_open_files();
	int fd;

	open_two("3", "3");
	from = put ? to_b : to_a;
	to = put ? to_a : to_b;
	grow(put ? a : b, put, 2);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, put, LONG), -EINPROGRESS);
	for (uint64_t since = now_ns(); TAILQ_EMPTY(&tcp_peer(to)->more->busy);) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	fd = first ? tcp_peer(from)->flow.fd : tcp_peer(from)->more->to[0].flow.fd;
	shutdown(fd, SHUT_RDWR);
	tcp_wait_dead(from);
	tcp_wait_dead(to);
	wait_all(N_OPS);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_TRUE(over[i] <= 0); /* once */
	UNIT_TRUE(over[N_OPS - 1] < 0);
	memset(put ? there : here, 0x77, ALL);
	for (unsigned i = 0; i < 100; i++)
		others_turn(NULL);
	for (unsigned i = 0; i < ALL; i++)
		CU_ASSERT_FATAL((put ? there : here)[i] == 0x77);
	close_two();
	UNIT_EQ(unit_open_files(), files);
}

static void
one_that_ends_in_the_middle_is_the_end_of_the_peer(void)
{
	for (unsigned i = 0; i < 4; i++)
		ends_in_the_middle(i & 1, i & 2);
}

/* -- one that ends alone -- */

/* All that a has sent is acknowledged. */
static void
settle(void)
{
	struct tcp_queue *tq = tcp_queue(a);

	for (uint64_t since = now_ns(); !TAILQ_EMPTY(&tq->watched); others_turn(NULL)) {
		tq->watch_ms = 0;
		CU_ASSERT_FATAL(patient(since));
	}
}

/* As a box between the two that resets a connection; who ends it tells the other. */
static void
reset(int fd)
{
	UNIT_EQ(connect(fd, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr)), 0);
}

/* Nothing that comes to a socket is acknowledged: it drops what has passed a router, or might have. */
static void
deafen(int fd, bool deaf)
{
	int least = deaf ? 255 : 0, family = 0;
	socklen_t len = sizeof(family);

	UNIT_EQ(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len), 0);
	UNIT_EQ(setsockopt(fd, IPPROTO_IP, IP_MINTTL, &least, sizeof(least)), 0); /* of mapped addresses, too */
	if (family == AF_INET6)
		UNIT_EQ(setsockopt(fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &least, sizeof(least)), 0);
}

static struct tcp_further *
further_of_a(unsigned i)
{
	return &tcp_peer(to_b)->more->to[i];
}

static struct tcp_further *
further_at_b(unsigned i)
{
	return &tcp_peer(to_a)->more->from[i];
}

/* Long data goes. @return how many writes of N_OPS went by further connections */
static uint64_t
goes(void)
{
	uint64_t away = stat_of(b)->rx_away;

	unit_fill(here, ALL, (unsigned)away + 3);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(begin(i, true, LONG), -EINPROGRESS);
	wait_all(N_OPS);
	for (unsigned i = 0; i < N_OPS; i++)
		UNIT_EQ(over[i], 0);
	CU_ASSERT(unit_is_filled(there, ALL, (unsigned)away + 3));
	return stat_of(b)->rx_away - away;
}

static void
wait_ended(const struct plx_queue *q, unsigned n)
{
	for (uint64_t since = now_ns(); stat_of(q)->flows_ended < n; others_turn(NULL))
		CU_ASSERT_FATAL(patient(since));
}

/* @param late whether it is found by the next data, not before */
static void
an_idle_one_ends(bool late)
{
	unsigned files = unit_open_files();

	open_two("4", "4");
	grow(a, true, 3);
	settle();
	reset(further_at_b(1)->flow.fd);
	if (!late)
		wait_ended(a, 1);
	UNIT_EQ(goes(), N_OPS);
	UNIT_EQ(stat_of(a)->flows_ended, 1);
	UNIT_EQ(tcp_queue(a)->n_further, 2);
	UNIT_EQ(stat_of(a)->flows, 3); /* not again and again */
	tcp_peer(to_b)->more->again_ms = 0;
	UNIT_EQ(goes(), N_OPS);
	for (uint64_t since = now_ns(); stat_of(a)->flows < 4; others_turn(NULL))
		CU_ASSERT_FATAL(patient(since));
	UNIT_EQ(goes(), N_OPS);
	UNIT_EQ(tcp_queue(a)->n_further, 3);
	UNIT_EQ(tcp_queue(b)->n_further, 3);
	UNIT_EQ(stat_of(b)->flows_ended, 1); /* when it was replaced */
	UNIT_EQ(stat_of(a)->flows_failed, 0);
	close_two();
	UNIT_EQ(unit_open_files(), files);
}

static void
an_idle_one_that_ends_is_made_anew(void)
{
	an_idle_one_ends(false);
	an_idle_one_ends(true);
}

/* Data goes by further connections, of which b hears nothing of one; the first stays. */
static void
one_goes_silent(uint32_t len)
{
	open_two("3", "3");
	grow(a, true, 2);
	settle();
	tcp_queue(a)->dead_ms = 300;
	tcp_queue(a)->probe_ms = 50;
	deafen(further_at_b(0)->flow.fd, true);
	for (unsigned i = 0; i < 2; i++)
		UNIT_EQ(begin(i, true, len), -EINPROGRESS);
	UNIT_TRUE(further_of_a(0)->flow.sent);
}

/* Long before b could by itself. */
static void
both_find_it(void)
{
	tcp_wait_dead(to_b);
	if (further_at_b(0)->flow.fd >= 0)
		deafen(further_at_b(0)->flow.fd, false);
	tcp_wait_dead(to_a);
	wait_all(2);
	UNIT_TRUE(over[0] < 0 || over[1] < 0);
}

static void
one_that_is_not_acknowledged_is_the_end_of_the_peer(void)
{
	one_goes_silent(LONG);
	both_find_it();
	UNIT_EQ(to_b->err, -ETIMEDOUT);
	close_two();
}

/* Its data is with the kernel: there is nothing more to send. */
static void
one_that_is_reset_while_data_goes_is_the_end_of_the_peer(void)
{
	one_goes_silent(100000);
	UNIT_TRUE(STAILQ_EMPTY(&further_of_a(0)->flow.out));
	tcp_queue(a)->dead_ms = 20000;
	reset(further_of_a(0)->flow.fd);
	both_find_it();
	UNIT_TRUE(to_b->err != -ETIMEDOUT);
	close_two();
}

/* A frame of the first names data of one that has ended: it is still there. */
static void
data_before_the_end_of_one_is_read(void)
{
	struct tcp_further *x;

	open_two("3", "3");
	grow(a, true, 2);
	settle();
	n_sent = n_come = 0;
	x = further_at_b(0);
	memcpy(here, "0123456789", 10);
	say_data(1, 10);
	UNIT_EQ(shutdown(further_of_a(0)->flow.fd, SHUT_WR), 0);
	for (unsigned i = 0; i < 100; i++)
		others_turn(NULL);
	UNIT_TRUE(x->flow.fd >= 0);
	say_put(1, 10);
	message(8);
	is_found(8);
	UNIT_SAME(there, "0123456789", 10);
	UNIT_EQ(x->flow.fd, -1);
	UNIT_EQ(stat_of(b)->flows_ended, 1);
	close_two();
}

static void
those_that_are_idle_are_closed_before_the_first(void)
{
	unsigned files;

	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_tcp.connected", "2", PLX_CONF_FROM_API, NULL), 0);
	open_two("4", "4");
	files = unit_open_files();
	grow(a, true, 3);
	UNIT_EQ(tcp_queue(a)->n_further, 3);
	UNIT_EQ(tcp_queue(b)->n_further, 3);
	wait_ended(a, 3);
	wait_ended(b, 3);
	UNIT_EQ(tcp_queue(a)->n_further + tcp_queue(b)->n_further, 0);
	UNIT_EQ(unit_open_files(), files);
	UNIT_EQ(stat_of(a)->parked + stat_of(b)->parked, 0);
	UNIT_TRUE(goes() < N_OPS); /* the first has the first one */
	for (uint64_t since = now_ns(); stat_of(a)->flows < 6; others_turn(NULL)) /* and they are made again */
		CU_ASSERT_FATAL(patient(since));
	close_two();
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_tcp.connected", "32k", PLX_CONF_FROM_API, NULL), 0);
}

/* Frames that no sender of ours says. @return what the peer has died of */
static int
death_by(const struct said_put *put, size_t len)
{
	int err;

	open_two("3", "3");
	grow(a, true, 2);
	memset(there, 0x55, LONG);
	say(put, len);
	tcp_wait_dead(to_a);
	err = to_a->err;
	for (unsigned i = 0; i < LONG; i++)
		CU_ASSERT_FATAL(there[i] == 0x55);
	close_two();
	return err;
}

static void
malformed_frames_of_further_connections_end_the_peer(void)
{
	const uint64_t at = (uintptr_t)there;
	const struct said_put bad[] = {
		{{.len = 17, .kind = TCP_PUT, .flow = 1}, {77, at}},
		{{.len = 16, .kind = TCP_PUT, .flow = 1}, {0, at}},
		{{.len = 17, .kind = TCP_PUT, .flow = 3}, {0, at}},
		{{.len = 17, .kind = TCP_PUT, .flow = TCP_FLOWS_MAX}, {0, at}},
		{{.len = 17, .kind = TCP_PUT, .flow = UINT16_MAX}, {0, at}},
		{{.len = 8, .kind = TCP_GOT, .flow = 1}, {0, 0}},
		{{.len = 16, .kind = TCP_MSG, .flow = 1}, {0, 0}},
		{{.len = 0, .kind = TCP_BYE, .flow = 1}, {0, 0}},
	};

	for (unsigned i = 0; i < RTE_DIM(bad); i++)
		UNIT_EQ(death_by(&bad[i], sizeof(bad[i])), -EPROTO);
}

/* -- strangers -- */

/* Somebody who knows both addresses says that it is a further connection of a. @return whether b keeps it */
static bool
is_let_in(uint16_t flow, const uint8_t *first)
{
	const struct tcp_addr *to = &tcp_queue(b)->addr;
	struct tcp_ip ip = {6, {[15] = 1}};
	uint64_t since = now_ns(), taken = stat_of(b)->flows_taken;
	struct tcp_answer answer;
	struct tcp_confirm c;
	struct tcp_hello h;
	struct pollfd p = {.events = POLLOUT};
	uint16_t n = 0;
	int rc;

	p.fd = tcp_sock_connect(tcp_queue(b), &ip, to->port);
	UNIT_TRUE_FATAL(p.fd >= 0);
	UNIT_EQ_FATAL(poll(&p, 1, 1000), 1);
	UNIT_EQ_FATAL(tcp_hello_make(&h, &tcp_queue(a)->addr, to, flow), 0);
	UNIT_EQ_FATAL(tcp_sock_write(p.fd, &h, sizeof(h)), 0);
	while ((rc = tcp_sock_read(p.fd, &answer, sizeof(answer), &n)) == -EAGAIN) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	if (rc == 0) {
		tcp_confirm_make(&c, &answer, to, first);
		(void)tcp_sock_write(p.fd, &c, sizeof(c));
		n = 0;
		while ((rc = tcp_sock_read(p.fd, &h.head, sizeof(h.head), &n)) == -EAGAIN) {
			others_turn(NULL);
			CU_ASSERT_FATAL(patient(since));
		}
	}
	close(p.fd);
	UNIT_EQ(stat_of(b)->flows_taken - taken, rc == 0);
	return rc == 0;
}

static void
who_did_not_make_the_first_makes_no_further_one(void)
{
	const uint8_t guess[TCP_MAC_LEN] = {1};
	uint8_t first[TCP_MAC_LEN];

	open_two("3", "4");
	grow(a, true, 2);
	memcpy(first, tcp_peer(to_b)->more->first, sizeof(first));
	UNIT_TRUE(!is_let_in(1, first)); /* there is one */
	UNIT_TRUE(!is_let_in(3, guess));
	UNIT_TRUE(!is_let_in(3, NULL));
	UNIT_TRUE(!is_let_in(4, first));
	UNIT_TRUE(!is_let_in(TCP_FLOWS_MAX, first));
	UNIT_TRUE(!is_let_in(UINT16_MAX, first));
	UNIT_TRUE(!is_let_in(0, NULL)); /* there is a first */
	UNIT_TRUE(is_let_in(3, first));
	UNIT_EQ(begin(0, true, LONG), -EINPROGRESS); /* the peer lives */
	wait_all(1);
	UNIT_EQ(over[0], 0);
	close_two();
}

CU_TestInfo tcp_flow_tests[] = {
	UNIT_TEST(long_data_goes_by_further_connections),
	UNIT_TEST(so_does_what_is_read),
	UNIT_TEST(one_connection_is_the_default),
	UNIT_TEST(no_more_are_made_than_both_allow),
	UNIT_TEST(without_descriptors_the_first_has_it_all),
	UNIT_TEST(a_message_is_found_behind_all_writes_before_it),
	UNIT_TEST(writes_are_over_in_their_order),
	UNIT_TEST(who_keeps_data_back_stops_only_itself),
	UNIT_TEST(data_may_come_byte_by_byte_and_before_its_frame),
	UNIT_TEST(one_that_ends_in_the_middle_is_the_end_of_the_peer),
	UNIT_TEST(an_idle_one_that_ends_is_made_anew),
	UNIT_TEST(one_that_is_not_acknowledged_is_the_end_of_the_peer),
	UNIT_TEST(one_that_is_reset_while_data_goes_is_the_end_of_the_peer),
	UNIT_TEST(data_before_the_end_of_one_is_read),
	UNIT_TEST(those_that_are_idle_are_closed_before_the_first),
	UNIT_TEST(malformed_frames_of_further_connections_end_the_peer),
	UNIT_TEST(who_did_not_make_the_first_makes_no_further_one),
	CU_TEST_INFO_NULL,
};

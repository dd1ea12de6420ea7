/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_far_contract_test.c - memory that peers read and write over TCP: keys, what ends in the middle, malformed frames
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_unit_dev.h"

#include "tcp_contract_test.h"
#include "tcp_int.h"

#define LONG (8u << 20) /* bytes that no socket takes at once */

static uint8_t here[LONG], there[LONG];
static struct plx_queue *a, *b;
static struct plx_peer *to_a, *to_b;
static struct plx_dev_mem mem;

static void
open_two(void)
{
	a = queue_new();
	b = queue_new();
	to_b = connected_to(a, b);
	to_a = connected_to(b, a);
	memset(there, 0x55, sizeof(there));
	unit_fill(here, sizeof(here), 7);
	UNIT_EQ_FATAL(plx_queue_mem_reg(b, there, sizeof(there), PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE, &mem), 0);
}

static void
close_two(void)
{
	plx_queue_mem_dereg(b, &mem, true);
	queue_close(a);
	queue_close(b);
}

static bool
is_untouched(const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != 0x55)
			return false;
	return true;
}

static const struct tcp_stat *
stat_of(const struct plx_queue *q)
{
	return &tcp_queue(q)->stat;
}

static struct plx_rma_op
op_of(bool put, size_t len, int *over)
{
	*over = 1;
	return (struct plx_rma_op){.peer = to_b, .local = here, .remote = (uintptr_t)there, .len = len, .put = put,
		.key = mem.key, .done = rma_over, .arg = over};
}

/* Turns until it is over. @return its end */
static int
wait_over(const int *over)
{
	for (uint64_t since = now_ns(); *over == 1;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return *over;
}

void
tcp_wait_dead(const struct plx_peer *peer)
{
	for (uint64_t since = now_ns(); peer->state != PLX_PEER_DEAD;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
}

/* Until some, and not all, of a transfer has come to its place. */
static void
wait_middle(const struct plx_peer *at)
{
	const struct tcp_peer *p = (const struct tcp_peer *)at;

	for (uint64_t since = now_ns(); p->flow.bulk.left == 0 || p->flow.bulk.left == LONG;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
}

static void
long_data_goes_straight_to_its_place(void)
{
	struct plx_rma_op op;
	int over;

	open_two();
	op = op_of(true, LONG, &over);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	UNIT_EQ(wait_over(&over), 0);
	CU_ASSERT(unit_is_filled(there, LONG, 7));
	UNIT_TRUE(stat_of(b)->rx_straight >= LONG - TCP_RX_LEN && stat_of(b)->rx_straight <= LONG);
	memset(here, 0, sizeof(here));
	op = op_of(false, LONG, &over);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	UNIT_EQ(wait_over(&over), 0);
	CU_ASSERT(unit_is_filled(here, LONG, 7));
	UNIT_TRUE(stat_of(a)->rx_straight >= LONG - TCP_RX_LEN);
	close_two();
}

static void
writes_in_a_row_are_acknowledged_together(void)
{
	enum { N = 64, LEN = 65536 };
	int over[N];

	open_two();
	for (unsigned i = 0; i < N; i++) {
		struct plx_rma_op op = op_of(true, LEN, &over[i]);

		op.local = here + i * LEN;
		op.remote += i * LEN;
		for (uint64_t since = now_ns(); plx_peer_rma(&op) == -EAGAIN;) {
			others_turn(NULL); /* how much a socket takes is the kernel's affair */
			CU_ASSERT_FATAL(patient(since));
		}
		if (i % 8 == 7)
			others_turn(NULL);
	}
	for (unsigned i = 0; i < N; i++)
		UNIT_EQ(wait_over(&over[i]), 0);
	CU_ASSERT(unit_is_filled(there, N * LEN, 7));
	UNIT_TRUE(stat_of(b)->tx_calls <= N / 2);
	UNIT_EQ(stat_of(b)->puts, N);
	close_two();
}

static void
a_message_is_found_after_the_writes_before_it(void)
{
	static const uint32_t lens[] = {1, 4095, 33000, 70001, 262144, 300007, 1 << 20};
	uint64_t n = 0;

	open_two();
	for (unsigned round = 0; round < 20; round++) {
		uint32_t len = lens[round % RTE_DIM(lens)];
		struct plx_rma_op op;
		struct plx_rx rx;
		int over;

		unit_fill(here, len, round);
		memset(there, 0x55, len + 1);
		op = op_of(true, len, &over);
		for (uint64_t since = now_ns(); plx_peer_rma(&op) == -EAGAIN;) {
			others_turn(NULL);
			CU_ASSERT_FATAL(patient(since));
		}
		for (uint64_t since = now_ns(); msg_send(to_b, n, 100) == -EAGAIN;) {
			others_turn(b);
			CU_ASSERT_FATAL(patient(since));
		}
		for (uint64_t since = now_ns(); burst(b, &rx, 1) == 0;) {
			others_turn(b);
			CU_ASSERT_FATAL(patient(since));
		}
		CU_ASSERT(msg_is(&rx, n++, 100));
		CU_ASSERT(unit_is_filled(there, len, round) && there[len] == 0x55);
		b->rx_release(b, &rx, 1);
		UNIT_EQ(wait_over(&over), 0);
	}
	close_two();
}

static void
what_is_sent_arrives(void)
{
	struct plx_rx rx;

	for (uint64_t since = now_ns(); msg_send(to_b, 3, 100) == -EAGAIN;) {
		others_turn(b);
		CU_ASSERT_FATAL(patient(since));
	}
	for (uint64_t since = now_ns(); burst(b, &rx, 1) == 0;) {
		others_turn(b);
		CU_ASSERT_FATAL(patient(since));
	}
	CU_ASSERT(msg_is(&rx, 3, 100));
	b->rx_release(b, &rx, 1);
}

static void
refused(uint64_t key, uint8_t right)
{
	struct plx_rma_op op;
	int over;

	open_two();
	op = op_of(right == PLX_DEV_MEM_WRITE, 64, &over);
	op.atomic = right == PLX_DEV_MEM_ATOMIC ? PLX_DEV_FADD : PLX_DEV_NO_ATOMIC;
	op.len = right == PLX_DEV_MEM_ATOMIC ? 8 : 64;
	op.key = (key != 0 ? key : mem.key);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	UNIT_EQ(wait_over(&over), -ECONNRESET);
	tcp_wait_dead(to_a);
	UNIT_EQ(to_a->err, -EPROTO);
	UNIT_TRUE(is_untouched(there, sizeof(there)));
	CU_ASSERT(unit_is_filled(here, sizeof(here), 7));
	UNIT_EQ(stat_of(b)->drop_bad_key, 1);
	close_two();
}

static void
who_guesses_a_key_loses_the_connection(void)
{
	struct plx_dev_region region = {.dev = NULL};

	UNIT_EQ_FATAL(plx_dev_region_open(&conf, there, sizeof(there), PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE, &region), 0);
	for (unsigned bit = 0; bit < 64; bit += 9) {
		refused(region.keys[0].mem.key ^ 1ull << bit, PLX_DEV_MEM_WRITE);
		refused(PLX_DEV_KEY_SET | 1ull << 63 | bit, PLX_DEV_MEM_READ);
	}
	refused(region.keys[0].mem.key, PLX_DEV_MEM_ATOMIC); /* a right that it does not give */
	refused(0, PLX_DEV_MEM_ATOMIC);
	plx_dev_region_close(&region);
	refused(1, PLX_DEV_MEM_WRITE);
}

static void
keys_differ_and_end_with_their_memory(void)
{
	static uint64_t keys[3 * TCP_REGS];
	struct plx_dev_mem m[TCP_REGS];
	struct plx_dev_mem one;
	unsigned n = 0;

	a = queue_new();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < TCP_REGS; i++) {
			UNIT_EQ_FATAL(plx_queue_mem_reg(a, here, 64, PLX_DEV_MEM_WRITE, &m[i]), 0);
			keys[n++] = m[i].key;
		}
		UNIT_EQ(plx_queue_mem_reg(a, here, 64, PLX_DEV_MEM_WRITE, &one), -ENOSPC);
		for (unsigned i = 0; i < TCP_REGS; i++)
			plx_queue_mem_dereg(a, &m[i], false);
	}
	for (unsigned i = 0; i < n; i++) {
		UNIT_TRUE(tcp_key_hold(tcp_queue(a)->keys, keys[i], (uintptr_t)here, 1, PLX_DEV_MEM_WRITE) != 0);
		for (unsigned k = 0; k < i; k++)
			if (keys[i] == keys[k])
				CU_FAIL("a key comes twice");
	}
	queue_close(a);
}

static void
what_comes_for_a_receive_that_has_failed_is_dropped(void)
{
	struct plx_rma_op op;
	int over;

	open_two();
	op = op_of(true, 100000, &over);
	plx_queue_mem_dereg(b, &mem, true);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	UNIT_EQ(wait_over(&over), 0);
	UNIT_TRUE(is_untouched(there, sizeof(there)));
	UNIT_EQ(stat_of(b)->drop_ended, 1);
	/* In the middle. */
	UNIT_EQ_FATAL(plx_queue_mem_reg(b, there, sizeof(there), PLX_DEV_MEM_WRITE, &mem), 0);
	op = op_of(true, LONG, &over);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	wait_middle(to_a);
	plx_queue_mem_dereg(b, &mem, true);
	memset(there, 0x55, sizeof(there));
	UNIT_EQ(wait_over(&over), 0);
	UNIT_TRUE(is_untouched(there, sizeof(there)));
	/* The connection goes on. */
	UNIT_EQ_FATAL(plx_queue_mem_reg(b, there, sizeof(there), PLX_DEV_MEM_WRITE, &mem), 0);
	op = op_of(true, LONG, &over);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	UNIT_EQ(wait_over(&over), 0);
	CU_ASSERT(unit_is_filled(there, LONG, 7));
	close_two();
}

static void
a_region_that_goes_in_the_middle_ends_the_connection(void)
{
	for (unsigned put = 0; put < 2; put++) {
		struct plx_dev_region region = {.dev = NULL};
		struct plx_rma_op op;
		int over;

		UNIT_EQ_FATAL(plx_dev_region_open(&conf, there, sizeof(there), PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE,
			&region), 0);
		open_two();
		op = op_of(put != 0, LONG, &over);
		op.key = region.keys[0].mem.key;
		UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
		wait_middle(put != 0 ? to_a : to_b);
		plx_dev_region_close(&region);
		memset(there, 0x55, sizeof(there));
		UNIT_EQ(wait_over(&over), -ECONNRESET);
		UNIT_TRUE(is_untouched(there, sizeof(there)));
		close_two();
	}
}

/* Of a peer that is no more. */
static void
nothing_is_written_behind_its_end(bool put)
{
	struct plx_rma_op op;
	uint8_t *at = put ? there : here;
	int over;

	open_two();
	memset(put ? here : there, 0x77, LONG);
	op = op_of(put, LONG, &over);
	UNIT_EQ(plx_peer_rma(&op), -EINPROGRESS);
	wait_middle(put ? to_a : to_b);
	shutdown(tcp_peer(put ? to_b : to_a)->flow.fd, SHUT_RDWR);
	UNIT_TRUE(wait_over(&over) < 0);
	tcp_wait_dead(put ? to_a : to_b);
	UNIT_EQ(at[0], 0x77);
	memset(at, 0x55, LONG);
	for (unsigned i = 0; i < 100; i++)
		others_turn(NULL);
	UNIT_TRUE(is_untouched(at, LONG));
	close_two();
}

static void
a_transfer_that_ends_in_the_middle_fails_once_and_writes_no_more(void)
{
	nothing_is_written_behind_its_end(true);
	nothing_is_written_behind_its_end(false);
}

/* -- what no sender of ours says -- */

static void
say(const void *bytes, size_t len)
{
	UNIT_EQ(send(tcp_peer(to_b)->flow.fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void
malformed_frames_end_the_connection(void)
{
	const uint64_t at = (uintptr_t)there;
	const struct {
		struct tcp_frame f;
		uint64_t body[4];
	} bad[] = {
		{{.len = 24, .kind = TCP_PUT}, {0, at, 1}},
		{{.len = 15, .kind = TCP_PUT}, {0, at}},
		{{.len = UINT32_MAX, .kind = TCP_PUT}, {0, at}},
		{{.len = 16 + TCP_BULK_MAX + 1, .kind = TCP_PUT}, {0, at}},
		{{.len = 24, .kind = TCP_PUT, .flow = 1}, {0, at}},
		{{.len = 23, .kind = TCP_GET}, {0, at, 8}},
		{{.len = 24, .kind = TCP_GET}, {0, at, 8}},
		{{.len = 24, .kind = TCP_GET}, {0, at, 1ull << 31}},
		{{.len = 24, .kind = TCP_GET}, {0, at, UINT64_MAX}},
		{{.len = 32, .kind = TCP_ATOMIC, .op = PLX_DEV_FADD}, {0, at, 1, 1}},
		{{.len = 32, .kind = TCP_ATOMIC, .op = 7}, {0, at, 1, 1}},
		{{.len = 8, .kind = TCP_ACK}, {1}},
		{{.len = 8, .kind = TCP_ACK}, {UINT64_MAX}},
		{{.len = 16, .kind = TCP_ACK}, {0}},
		{{.len = 8, .kind = TCP_GOT}, {1}},
		{{.len = 0, .kind = TCP_GOT}, {1}},
		{{.len = 8, .kind = TCP_FRAME_N}, {1}},
	};

	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		open_two();
		say(&bad[i], sizeof(bad[i]));
		tcp_wait_dead(to_a);
		UNIT_EQ(to_a->err, -EPROTO);
		UNIT_TRUE(is_untouched(there, sizeof(there)));
		close_two();
	}
}

static void
a_frame_may_come_byte_by_byte(void)
{
	struct {
		struct tcp_frame f;
		struct tcp_where to;
		uint8_t data[16];
	} put = {{.len = 16 + 13, .kind = TCP_PUT}, {0, (uintptr_t)there}, "hello, there"};

	open_two();
	put.to.key = mem.key;
	for (size_t i = 0; i < 2 * sizeof(put); i++) {
		say((uint8_t *)&put + i % sizeof(put), 1);
		for (unsigned k = 0; k < 40; k++)
			others_turn(NULL);
	}
	UNIT_SAME(there, "hello, there", 13);
	UNIT_TRUE(is_untouched(there + 13, 100));
	UNIT_EQ(stat_of(b)->puts, 2);
	close_two();
}

static void
who_asks_for_more_than_is_allowed_is_malformed(void)
{
	struct {
		struct tcp_frame f;
		struct tcp_get get;
	} ask = {{.len = sizeof(struct tcp_get), .kind = TCP_GET}, {{0, (uintptr_t)there}, LONG}};
	struct plx_rx rx;

	open_two();
	ask.get.from.key = mem.key;
	for (unsigned i = 0; i < 4 * TCP_PEER_GETS; i++)
		say(&ask, sizeof(ask));
	for (uint64_t since = now_ns(); to_a->state != PLX_PEER_DEAD;) { /* the other reads nothing */
		UNIT_EQ(b->rx_burst(b, &rx, 1), 0);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(to_a->err, -EPROTO);
	close_two();
}

static void
answers_that_wait_come_in_order(void)
{
	enum { N = TCP_PEER_GETS };
	int over[N];
	unsigned n = 0;

	open_two();
	for (unsigned i = 0; i < N; i++)
		unit_fill(there + i * 200000, 150000, i);
	for (unsigned i = 0; i < N; i++) {
		struct plx_rma_op op = op_of(false, 1 + i * 4000, &over[i]);

		op.local = here + i * 200000;
		op.remote += i * 200000;
		for (uint64_t since = now_ns(); plx_peer_rma(&op) == -EAGAIN;) {
			others_turn(NULL);
			CU_ASSERT_FATAL(patient(since));
		}
	}
	for (unsigned i = 0; i < N; i++) {
		UNIT_EQ(wait_over(&over[i]), 0);
		n += unit_is_filled(here + i * 200000, 1 + i * 4000, i);
	}
	UNIT_EQ(n, N);
	close_two();
}

/* -- forked children -- */

static bool
is_closed(int fd)
{
	return fcntl(fd, F_GETFD) == -1 && errno == EBADF;
}

/* What a worker does in a child. @return the child, which lives until it is killed; its copies are closed */
static pid_t
child_of(struct plx_queue *q, int peer_fd)
{
	const struct tcp_queue *tq = tcp_queue(q);
	int said[2], epfd = tq->epfd, listener = tq->listener;
	pid_t pid;
	char yes = 0;

	UNIT_EQ_FATAL(pipe(said), 0);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		plx_queue_lose(q);
		yes = is_closed(epfd) && is_closed(listener) && is_closed(peer_fd) ? 'y' : 'n';
		(void)!write(said[1], &yes, 1);
		pause();
		_exit(0);
	}
	UNIT_EQ(read(said[0], &yes, 1), 1);
	UNIT_EQ(yes, 'y');
	close(said[0]);
	close(said[1]);
	return pid;
}

static void
a_child_that_lives_on_does_not_hide_the_end_of_its_parent(void)
{
	int fd;
	pid_t pid;

	open_two();
	fd = tcp_peer(to_b)->flow.fd;
	pid = child_of(a, fd);
	/* The child has changed nothing for the parent. */
	what_is_sent_arrives();
	close(fd); /* as its kernel does when it is killed */
	tcp_peer(to_b)->flow.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (uint64_t since = now_ns(); to_a->state != PLX_PEER_DEAD;) {
		struct plx_rx rx;

		UNIT_EQ(b->rx_burst(b, &rx, 1), 0);
		CU_ASSERT_FATAL(patient(since));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close_two();
}

CU_TestInfo tcp_far_tests[] = {
	UNIT_TEST(long_data_goes_straight_to_its_place),
	UNIT_TEST(writes_in_a_row_are_acknowledged_together),
	UNIT_TEST(a_message_is_found_after_the_writes_before_it),
	UNIT_TEST(who_guesses_a_key_loses_the_connection),
	UNIT_TEST(keys_differ_and_end_with_their_memory),
	UNIT_TEST(what_comes_for_a_receive_that_has_failed_is_dropped),
	UNIT_TEST(a_region_that_goes_in_the_middle_ends_the_connection),
	UNIT_TEST(a_transfer_that_ends_in_the_middle_fails_once_and_writes_no_more),
	UNIT_TEST(malformed_frames_end_the_connection),
	UNIT_TEST(a_frame_may_come_byte_by_byte),
	UNIT_TEST(who_asks_for_more_than_is_allowed_is_malformed),
	UNIT_TEST(answers_that_wait_come_in_order),
	UNIT_TEST(a_child_that_lives_on_does_not_hide_the_end_of_its_parent),
	CU_TEST_INFO_NULL,
};

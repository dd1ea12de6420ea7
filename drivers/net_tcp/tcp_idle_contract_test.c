/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_idle_contract_test.c - the cost of a thousand idle peers: bytes, descriptors, and instructions of a turn
 *
 * Design notes
 * The peers are sockets of this process that shake hands as a queue does, and have no queue.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_unit_dev.h"

#include "tcp_contract_test.h"
#include "tcp_int.h"

#define PEERS	  1000u
#define TURNS	  64u
#define STEPS_MAX 10000000ul
#define COST_MAX  512u /* bytes of a peer */

static struct plx_queue *hub;

static void
hub_turn(void)
{
	struct plx_rx rx[4];
	uint16_t n = hub->rx_burst(hub, rx, 4);

	for (uint16_t i = 0; i < n; i++)
		CU_ASSERT(msg_is(&rx[i], 5, 0));
	hub->rx_release(hub, rx, n);
	plx_queue_control(hub);
}

/* The hub's other end. @return a socket that has said its HELLO */
static int
peer_greets(const struct tcp_addr *from, const struct tcp_addr *to, struct tcp_hello *h)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(to->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	UNIT_TRUE_FATAL(fd >= 0);
	UNIT_EQ_FATAL(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	UNIT_EQ_FATAL(tcp_hello_make(h, from, to, 0), 0);
	UNIT_EQ_FATAL(send(fd, h, sizeof(*h), 0), (ssize_t)sizeof(*h));
	return fd;
}

/* One message comes of it, whole. */
static int
peer_joins(unsigned i)
{
	const struct tcp_addr *to = &tcp_queue(hub)->addr;
	struct tcp_addr from = *to;
	struct tcp_hello h;
	struct tcp_answer a;
	struct {
		struct tcp_confirm confirm;
		struct tcp_frame f;
		uint64_t number;
	} say = {.f = {.len = sizeof(say.number), .kind = TCP_MSG, .op = 5}, .number = 5};
	uint64_t since = now_ns(), came = hub->stat.rx_msgs;
	uint16_t n = 0;
	int fd;

	from.uid += i + 1;
	fd = peer_greets(&from, to, &h);
	for (int rc = -EAGAIN; rc != 0; hub_turn()) {
		rc = tcp_sock_read(fd, &a, sizeof(a), &n);
		UNIT_TRUE_FATAL((rc == 0 || rc == -EAGAIN) && patient(since));
	}
	UNIT_EQ_FATAL(tcp_answer_open(&a, &h, to), 0);
	tcp_confirm_make(&say.confirm, &a, to, NULL);
	UNIT_EQ_FATAL(send(fd, &say, sizeof(say), 0), (ssize_t)sizeof(say));
	for (; hub->stat.rx_msgs == came; hub_turn())
		CU_ASSERT_FATAL(patient(since));
	return fd;
}

static void
send_one(struct plx_peer *peer, void *arg)
{
	(void)arg;
	UNIT_EQ(msg_send(peer, 1, 60), 0);
}

/* All is acknowledged, and nobody was heard of for a while. */
static void
wait_idle(void)
{
	struct tcp_queue *tq = tcp_queue(hub);

	for (uint64_t since = now_ns(); tq->n_hot != 0 || !TAILQ_EMPTY(&tq->watched); hub_turn()) {
		tq->watch_ms = 0;
		CU_ASSERT_FATAL(patient(since));
	}
}

static void
stepped_child(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	raise(SIGSTOP);
	for (unsigned i = 0; i < TURNS; i++)
		hub_turn();
	_exit(0);
}

/* @return instructions of TURNS turns, and of the end of the child in which they run; 0: none can be counted here */
static unsigned long
steps_of_turns(void)
{
	unsigned long n = 0;
	int status = 0;
	pid_t pid = fork();

	UNIT_TRUE_FATAL(pid >= 0);
	if (pid == 0)
		stepped_child();
	UNIT_EQ_FATAL(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 0;
	while (WIFSTOPPED(status) && n++ < STEPS_MAX) {
		UNIT_EQ_FATAL(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		UNIT_EQ_FATAL(waitpid(pid, &status, 0), pid);
	}
	UNIT_TRUE_FATAL(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return n;
}

static void
has_room_for_descriptors(unsigned n)
{
	struct rlimit most;

	UNIT_EQ_FATAL(getrlimit(RLIMIT_NOFILE, &most), 0);
	if (most.rlim_cur >= n)
		return;
	most.rlim_cur = n;
	UNIT_EQ_FATAL(setrlimit(RLIMIT_NOFILE, &most), 0);
}

static void
is_looked_at_by_epoll_alone(void)
{
	const struct tcp_stat *st = &tcp_queue(hub)->stat;
	uint64_t polls = st->polls, calls = st->rx_calls + st->tx_calls;
	struct plx_rx rx;

	for (unsigned i = 0; i < 1000; i++)
		UNIT_EQ(hub->rx_burst(hub, &rx, 1), 0);
	UNIT_EQ(st->polls - polls, 1000); /* one epoll_wait a turn */
	UNIT_EQ(st->rx_calls + st->tx_calls - calls, 0);
}

static void
a_thousand_idle_peers_cost_little_and_no_time(void)
{
	static int fd[1 + PEERS];
	unsigned long none, many;
	unsigned before;
	size_t bytes;

	has_room_for_descriptors(2 * PEERS + 100);
	hub = queue_new();
	plx_queue_addr(hub, &(struct plx_addr){.len = 0}); /* it listens */
	none = steps_of_turns();
	fd[0] = peer_joins(0); /* with the first one the queue takes memory of its own */
	before = unit_open_files();
	bytes = mallinfo2().uordblks; /* 0 with a sanitizer; see struct tcp_peer, too */
	for (unsigned i = 1; i <= PEERS; i++)
		fd[i] = peer_joins(i);
	plx_peer_each(hub, send_one, NULL);
	wait_idle();
	bytes = mallinfo2().uordblks - bytes;
	UNIT_EQ(tcp_queue(hub)->n_conns, 1 + PEERS);
	UNIT_EQ(unit_open_files() - before, 2 * PEERS); /* the other end is here, too */
	UNIT_TRUE(bytes <= (size_t)COST_MAX * PEERS);
	UNIT_EQ(tcp_chunks_left(tcp_queue(hub)), tcp_queue(hub)->n_chunks);
	is_looked_at_by_epoll_alone();
	many = steps_of_turns();
	if (none == 0)
		printf("\n# skipped: instructions of turns: no process is traced here\n");
	UNIT_TRUE(many <= none + none / 50 && none <= many + many / 50);
	for (unsigned i = 0; i <= PEERS; i++)
		close(fd[i]);
	queue_close(hub);
}

CU_TestInfo tcp_idle_tests[] = {
	UNIT_TEST(a_thousand_idle_peers_cost_little_and_no_time),
	CU_TEST_INFO_NULL,
};

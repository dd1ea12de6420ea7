/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_contract_tables.c - the contract of what a driver may have: shared memory, keys, groups, datagrams
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plx_unit_dev.h"

uint8_t buf_here[200000], buf_there[200000];
struct heard heard;
struct found found;

static void
a_shared_area_is_seen_by_its_peers(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint8_t *there;

	CU_ASSERT_FATAL(to_b->caps & PLX_DEV_SHARED);
	CU_ASSERT_FATAL(b->shared != NULL && b->shared_len >= 64);
	for (size_t i = 0; i < b->shared_len; i++)
		CU_ASSERT_FATAL(((uint8_t *)b->shared)[i] == 0);
	there = plx_peer_shared(to_b);
	CU_ASSERT_FATAL(there != NULL);
	unit_fill(b->shared, b->shared_len, 5);
	CU_ASSERT(unit_is_filled(there, b->shared_len, 5));
	unit_fill(there, b->shared_len, 6);
	CU_ASSERT(unit_is_filled(b->shared, b->shared_len, 6));
	queue_close(a);
	queue_close(b);
}

/* Run in a child, so that a crash is one failure and not the end. @return its exit status */
static int
in_child(int (*fn)(void))
{
	pid_t pid;
	int st = -1;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn());
	CU_ASSERT_FATAL(pid > 0);
	CU_ASSERT_FATAL(waitpid(pid, &st, 0) == pid);
	if (WIFSIGNALED(st))
		printf("child died of %s\n", strsignal(WTERMSIG(st)));
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

void
rma_reads_and_writes(struct plx_peer *peer, uint64_t remote, size_t len)
{
	const size_t lens[] = {0, 1, 8, 4095, 4096, 4097, 65536, len};

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct plx_rma_op put = {.peer = peer, .local = buf_here, .remote = remote,
			.len = lens[i], .put = true};
		struct plx_rma_op get = {.peer = peer, .local = buf_here, .remote = remote,
			.len = lens[i]};

		unit_fill(buf_here, lens[i], i);
		UNIT_EQ(plx_peer_rma(&put), 0);
		memset(buf_here, 0xaa, sizeof(buf_here));
		UNIT_EQ(plx_peer_rma(&get), 0);
		CU_ASSERT(unit_is_filled(buf_here, lens[i], i));
		CU_ASSERT(lens[i] == sizeof(buf_here) || buf_here[lens[i]] == 0xaa);
	}
}

#define PIECES 8

/* Neither alone nor with others. */
static void
rma_of_memory_that_is_not_taken(struct plx_peer *peer, uint64_t remote)
{
	const struct plx_rma_op alone = {.peer = peer, .local = buf_here, .remote = remote, .len = 1,
		.mem_type = UCS_MEMORY_TYPE_CUDA};
	struct plx_rma_piece v[PIECES];

	for (unsigned i = 0; i < PIECES; i++)
		v[i] = (struct plx_rma_piece){buf_here + i, remote + i, 1,
			i == 2 ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST};
	memset(buf_here, 0xaa, PIECES);
	UNIT_EQ(plx_peer_rma(&alone), -EOPNOTSUPP);
	UNIT_TRUE(plx_peer_rma_burst(peer, false, v, PIECES) <= 2);
	UNIT_EQ(buf_here[2], 0xaa);
}

/* Where piece i lies on either side: 2 and 3, and on one side 6 and 7, are adjacent. */
static struct plx_rma_piece
piece_at(uint64_t remote, unsigned i)
{
	size_t at = i * 20000, len = i == 5 ? 0 : 10000 + i;

	return (struct plx_rma_piece){buf_here + (i == 3 ? 50002 : i == 7 ? 130006 : at),
		remote + (i == 3 ? 50002 : at), len, UCS_MEMORY_TYPE_HOST};
}

/* Several pieces by one call; at a bad one it stops, and the next are not touched. */
void
rma_bursts(struct plx_peer *peer, uint64_t remote)
{
	struct plx_rma_piece v[PIECES];
	unsigned i, n;

	for (unsigned put = 2; put-- > 0;) {
		unit_fill(buf_here, sizeof(buf_here), 3);
		if (!put)
			memset(buf_here, 0xaa, sizeof(buf_here));
		for (i = 0; i < PIECES; i++)
			v[i] = piece_at(remote, i);
		n = plx_peer_rma_burst(peer, put, v, PIECES);
		UNIT_EQ(n, PIECES);
		v[3].remote = 64;
		UNIT_EQ(plx_peer_rma_burst(peer, put, v, PIECES), 3);
		UNIT_EQ(plx_peer_rma_burst(peer, put, v + 3, 2), 0);
		UNIT_EQ(plx_peer_rma(&(struct plx_rma_op){.peer = peer, .local = v[3].local,
			.remote = v[3].remote, .len = v[3].len, .put = put}), -EFAULT);
	}
	for (i = 0; i < PIECES; i++) {
		static uint8_t want[sizeof(buf_here)];

		unit_fill(want, sizeof(want), 3);
		UNIT_SAME(v[i].local, want + ((uint8_t *)v[i].local - buf_here), v[i].len);
		if (i != 2 && i != 6)
			UNIT_EQ(((uint8_t *)v[i].local)[v[i].len], 0xaa);
	}
}

bool
rma_is_refused(struct plx_peer *peer, uint64_t remote)
{
	struct plx_rma_op op = {.peer = peer, .local = buf_here, .remote = remote, .len = 1};

	if (plx_peer_rma(&op) != -EOPNOTSUPP || peer->caps & PLX_DEV_GET)
		return false;
	printf("\n# skipped: the kernel copies nothing between processes here\n");
	return true;
}

/* @return whether it can be tried */
static bool
reads_and_writes(struct plx_queue *a, struct plx_peer *to_b)
{
	if (rma_is_refused(to_b, (uintptr_t)buf_there))
		return false;
	rma_reads_and_writes(to_b, (uintptr_t)buf_there, sizeof(buf_there));
	rma_of_memory_that_is_not_taken(to_b, (uintptr_t)buf_there);
	if (a->dev->ops->rma.burst != plx_dev_no_burst)
		rma_bursts(to_b, (uintptr_t)buf_there);
	return true;
}

static void
rma_reads_and_writes_here(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);

	UNIT_TRUE_FATAL(to_b->caps & PLX_DEV_GET && to_b->caps & PLX_DEV_PUT);
	if (reads_and_writes(a, to_b)) {
		UNIT_TRUE(a->stat.rma_ops >= 16);
		UNIT_TRUE(a->stat.rma_bytes > 2 * sizeof(buf_there));
	}
	queue_close(a);
	queue_close(b);
}

static int
bad_addresses_here(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);

	if (rma_is_refused(to_b, (uintptr_t)buf_there))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		struct plx_rma_op op = {.peer = to_b, .local = buf_here, .remote = 64, .len = 64,
			.put = i != 0};

		if (plx_peer_rma(&op) != -EFAULT)
			return 1;
	}
	return to_b->state == PLX_PEER_OPEN ? 0 : 2;
}

static void
rma_at_a_bad_address_here_is_an_error_and_no_crash(void)
{
	UNIT_EQ(in_child(bad_addresses_here), 0);
}

void
rma_over(void *arg, int err)
{
	int *out = arg;

	UNIT_EQ(*out, 1); /* told once */
	*out = err;
}

/* Until the device has done it. @return 0 or -errno */
int
rma_wait(struct plx_rma_op *op)
{
	uint64_t since = now_ns();
	int over = 1, rc;

	op->done = rma_over;
	op->arg = &over;
	rc = plx_peer_rma(op);
	if (rc != -EINPROGRESS)
		return rc;
	while (over == 1) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return over;
}

static void
registered_memory_is_written_and_read_by_its_key(void)
{
	const size_t lens[] = {0, 1, 8, 128, 129, 8256, 8300, 65536, sizeof(buf_here)};
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_dev_mem mem = {0};

	CU_ASSERT_FATAL(to_b->caps & PLX_DEV_KEYS);
	UNIT_EQ_FATAL(plx_queue_mem_reg(b, buf_there, sizeof(buf_there),
		PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE, &mem), 0);
	UNIT_TRUE(mem.key != 0);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct plx_rma_op op = {.peer = to_b, .local = buf_here, .put = true,
			.remote = (uintptr_t)buf_there, .len = lens[i], .key = mem.key};

		unit_fill(buf_here, lens[i], i);
		UNIT_EQ(rma_wait(&op), 0);
		CU_ASSERT(unit_is_filled(buf_there, lens[i], i));
		memset(buf_here, 0xaa, sizeof(buf_here));
		op.put = false;
		UNIT_EQ(rma_wait(&op), 0);
		CU_ASSERT(unit_is_filled(buf_here, lens[i], i));
		CU_ASSERT(lens[i] == sizeof(buf_here) || buf_here[lens[i]] == 0xaa);
	}
	plx_queue_mem_dereg(b, &mem, true);
	UNIT_TRUE(mem.drv == NULL);
	queue_close(a);
	queue_close(b);
}

/* As soon as there is room. */
int
rma_soon(struct plx_rma_op *op, bool told)
{
	uint64_t since = now_ns();
	int rc;

	while ((rc = told ? rma_wait(op)
			  : plx_peer_put_short(op->peer, op->local, (uint32_t)op->len, op->remote,
				    op->key)) == -EAGAIN) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return rc;
}

static void
a_region_is_reached_by_all_queues_and_its_words_are_changed(void)
{
	uint64_t *words = (uint64_t *)(void *)buf_there, old = 1;
	struct plx_dev_region region = {.dev = NULL};
	struct plx_rma_op op = {.local = &old, .remote = (uintptr_t)&words[1], .len = 8};
	struct plx_queue *q[3];

	UNIT_EQ_FATAL(plx_dev_region_open(&conf, buf_there, sizeof(buf_there),
		PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE | PLX_DEV_MEM_ATOMIC, &region), 0);
	for (unsigned i = 0; i < 3; i++)
		q[i] = queue_new();
	UNIT_EQ_FATAL(region.n_keys, 1);
	UNIT_TRUE(region.keys[0].port != 0 && region.keys[0].mem.key != 0);
	UNIT_EQ(region.atomics == PLX_DEV_ATOMICS_NONE, tried->atomics_by_message);
	op.key = region.keys[0].mem.key;
	memset(buf_there, 0, 24);
	for (unsigned i = 0; i < 2; i++) {
		op.peer = connected_to(q[i], q[2]);
		UNIT_EQ(op.peer->domain, plx_dev_domain(op.peer->proc, region.keys[0].port));
		op.atomic = PLX_DEV_FADD;
		op.operand[0] = 5;
		UNIT_EQ(rma_wait(&op), 0);
		UNIT_EQ(old, i * 5);
	}
	op.atomic = PLX_DEV_CSWAP;
	op.operand[0] = 9;
	op.operand[1] = ~0ull;
	UNIT_EQ(rma_wait(&op), 0);
	UNIT_EQ(words[1], 10); /* it was not 9 */
	op.operand[0] = old;
	UNIT_EQ(rma_wait(&op), 0);
	UNIT_EQ(old, 10);
	UNIT_EQ(words[1], ~0ull);
	UNIT_EQ(words[0] | words[2], 0);
	/* Beyond its end. */
	op.atomic = PLX_DEV_NO_ATOMIC;
	op.remote = (uintptr_t)buf_there + sizeof(buf_there) - 4;
	UNIT_EQ(rma_wait(&op), -ECONNRESET);
	for (unsigned i = 0; i < 3; i++)
		queue_close(q[i]);
	plx_dev_region_close(&region);
	UNIT_TRUE(region.dev == NULL);
}

static void
on_group(struct plx_queue *q, uint64_t group, const uint8_t *data, uint32_t len)
{
	uint64_t i = 0;

	memcpy(&i, data, RTE_MIN(len, (uint32_t)sizeof(i)));
	if (len >= sizeof(i))
		CU_ASSERT(unit_is_filled(data + sizeof(i), len - sizeof(i), i));
	heard.n++;
	heard.group = group;
	heard.number = i;
	heard.q = q;
}

int
group_send(struct plx_queue *q, uint64_t group, uint64_t i, uint32_t len)
{
	static uint8_t data[MSG_MAX];

	memcpy(data, &i, sizeof(i));
	if (len > sizeof(i))
		unit_fill(data + sizeof(i), len - sizeof(i), i);
	return plx_queue_group_tx(q, group, data, len);
}

/* Until so many have come, and then some time. */
void
hear(unsigned n)
{
	uint64_t since = now_ns();

	while (heard.n < n) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	for (since = now_ns(); now_ns() - since < quiet_ns / 4;)
		others_turn(NULL);
	UNIT_EQ(heard.n, n);
	heard.n = 0;
}

/* @return a queue of those that hear */
struct plx_queue *
group_queue(void)
{
	struct plx_queue *q = queue_new();

	q->on_group = on_group;
	return q;
}

static void
what_is_sent_to_a_group_comes_once_to_all_who_receive_it(void)
{
	struct plx_queue *from = group_queue(), *to[3];

	if (from->group_mtu == 0) { /* not on this network */
		UNIT_EQ(plx_queue_group_join(from, GROUP, true), -EOPNOTSUPP);
		queue_close(from);
		return;
	}
	UNIT_TRUE(from->group_mtu >= 1000);
	UNIT_EQ_FATAL(plx_queue_group_join(from, GROUP, false), 0);
	UNIT_EQ(group_send(from, GROUP, 1, 8), 0); /* to nobody */
	for (unsigned i = 0; i < 3; i++) {
		to[i] = group_queue();
		UNIT_EQ_FATAL(plx_queue_group_join(to[i], GROUP, true), 0);
	}
	for (uint32_t len = 0; len <= from->group_mtu; len += 1 + len / 3) {
		UNIT_EQ(group_send(from, GROUP, len < 8 ? 0 : len, len), 0);
		hear(3);
		UNIT_EQ(heard.number, len < 8 ? 0 : len);
		UNIT_TRUE(heard.group == GROUP);
	}
	UNIT_EQ(group_send(from, GROUP, 2, from->group_mtu), 0);
	hear(3);
	for (unsigned i = 0; i < 3; i++)
		queue_close(to[i]);
	queue_close(from);
}

static void
who_has_left_a_group_hears_nothing_of_it(void)
{
	struct plx_queue *q = group_queue();

	if (q->group_mtu == 0) {
		queue_close(q);
		return;
	}
	plx_queue_group_leave(q, GROUP, true); /* was never joined */
	UNIT_EQ(group_send(q, GROUP, 1, 8), -ENOENT);
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ_FATAL(plx_queue_group_join(q, GROUP, false), 0);
		UNIT_EQ_FATAL(plx_queue_group_join(q, GROUP, true), 0);
		UNIT_EQ_FATAL(plx_queue_group_join(q, GROUP, true), 0);
		UNIT_EQ(group_send(q, GROUP, 1, 8), 0);
		hear(1);
		plx_queue_group_leave(q, GROUP, true);
		UNIT_EQ(group_send(q, GROUP, 2, 8), 0);
		hear(1); /* twice joined, once left */
		plx_queue_group_leave(q, GROUP, true);
		UNIT_EQ(group_send(q, GROUP, 3, 8), 0);
		hear(0);
		plx_queue_group_leave(q, GROUP, false);
		UNIT_EQ(group_send(q, GROUP, 4, 8), -ENOENT);
	}
	queue_close(q);
}

static void
a_message_to_a_group_wakes_who_receives_it(void)
{
	struct plx_queue *from = group_queue(), *to = group_queue();
	uint64_t since = now_ns();
	struct pollfd p = {.events = POLLIN};

	if (from->group_mtu == 0) {
		queue_close(from);
		queue_close(to);
		return;
	}
	p.fd = plx_queue_efd(to);
	CU_ASSERT_FATAL(p.fd >= 0);
	UNIT_EQ_FATAL(plx_queue_group_join(from, GROUP, false), 0);
	UNIT_EQ_FATAL(plx_queue_group_join(to, GROUP, true), 0);
	while (plx_queue_arm(to) != 0)
		CU_ASSERT_FATAL(patient(since));
	heard.n = 0;
	UNIT_EQ(poll(&p, 1, 0), 0);
	UNIT_EQ(group_send(from, GROUP, 1, 8), 0);
	UNIT_EQ(poll(&p, 1, 5000), 1);
	plx_queue_disarm(to);
	UNIT_EQ(heard.n, 1);
	heard.n = 0;
	queue_close(from);
	queue_close(to);
}

static void
on_lossy(struct plx_queue *q, const struct plx_rx *rx)
{
	UNIT_EQ(rx->op, 7);
	UNIT_TRUE_FATAL(rx->len >= sizeof(found.number));
	memcpy(&found.number, rx->data, sizeof(found.number));
	CU_ASSERT(unit_is_filled(rx->data + sizeof(found.number), rx->len - sizeof(found.number),
		found.number));
	found.n++;
	found.q = q;
	found.src = rx->src;
}

int
lossy_send(struct plx_peer *peer, uint64_t i, uint32_t len)
{
	static uint8_t data[MSG_MAX];
	const struct plx_tx tx = {.peer = peer, .hdr = &i, .hdr_len = sizeof(i), .data = data,
		.len = len, .op = 7};

	unit_fill(data, len, i);
	return plx_peer_lossy_tx(&tx);
}

/* Two queues, and each as the other knows it; they have told each other, and are not connected. */
void
lossy_pair(struct plx_queue *q[2], struct plx_peer *to[2])
{
	struct plx_addr addr;
	uint32_t where;

	for (unsigned i = 0; i < 2; i++) {
		q[i] = queue_new();
		q[i]->on_lossy = on_lossy;
	}
	for (unsigned i = 0; i < 2; i++) {
		plx_queue_addr(q[!i], &addr);
		to[i] = peer_known(q[i], &addr);
		UNIT_EQ(plx_peer_lossy_to(to[i], 1), -EINVAL); /* it takes none itself */
		UNIT_EQ_FATAL(plx_queue_lossy_open(q[i], &where), 0);
		UNIT_TRUE(where != 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ_FATAL(plx_queue_lossy_open(q[!i], &where), 0); /* once more */
		UNIT_EQ(plx_peer_lossy_to(to[i], 0), -EINVAL);
		UNIT_EQ(to[i]->lossy_mtu, 0);
		UNIT_EQ_FATAL(plx_peer_lossy_to(to[i], where), 0);
	}
	found.n = 0;
}

/* Until so many have come, and then some time. */
void
find(unsigned n)
{
	uint64_t since = now_ns();

	while (found.n < n) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	for (since = now_ns(); now_ns() - since < quiet_ns / 4;)
		others_turn(NULL);
	UNIT_EQ(found.n, n);
	found.n = 0;
}

static void
what_may_get_lost_comes_from_its_sender_without_a_connection(void)
{
	struct plx_queue *q[2];
	struct plx_peer *to[2];

	lossy_pair(q, to);
	UNIT_EQ(to[0]->lossy_mtu, to[1]->lossy_mtu);
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t most = to[i]->lossy_mtu - sizeof(uint64_t);

		UNIT_TRUE(most >= 256 - 64);
		for (uint32_t len = 0; len < most; len += 1 + len / 2) {
			UNIT_EQ(lossy_send(to[i], len, len), 0);
			find(1);
			UNIT_EQ(found.number, len);
			UNIT_TRUE(found.q == q[!i] && found.src == to[!i]);
		}
		UNIT_EQ(lossy_send(to[i], 5, most), 0);
		find(1);
		UNIT_EQ(to[i]->state, PLX_PEER_NEW);
	}
	queue_close(q[0]);
	queue_close(q[1]);
}

static void
a_message_that_may_get_lost_wakes_its_receiver(void)
{
	struct pollfd p = {.events = POLLIN};
	uint64_t since = now_ns();
	struct plx_queue *q[2];
	struct plx_peer *to[2];

	lossy_pair(q, to);
	p.fd = plx_queue_efd(q[1]);
	CU_ASSERT_FATAL(p.fd >= 0);
	while (plx_queue_arm(q[1]) != 0)
		CU_ASSERT_FATAL(patient(since));
	UNIT_EQ(poll(&p, 1, 0), 0);
	UNIT_EQ(lossy_send(to[0], 1, 8), 0);
	UNIT_EQ(poll(&p, 1, 5000), 1);
	plx_queue_disarm(q[1]);
	UNIT_EQ(found.n, 1);
	queue_close(q[0]);
	queue_close(q[1]);
}

const struct dev_contract_test dev_contract_tables[] = {
	DEV_TEST(a_shared_area_is_seen_by_its_peers, NEED_SHARED),
	DEV_TEST(rma_reads_and_writes_here, NEED_RMA),
	DEV_TEST(rma_at_a_bad_address_here_is_an_error_and_no_crash, NEED_RMA),
	DEV_TEST(registered_memory_is_written_and_read_by_its_key, NEED_KEYS),
	DEV_TEST(a_region_is_reached_by_all_queues_and_its_words_are_changed, NEED_KEYS),
	DEV_TEST(what_is_sent_to_a_group_comes_once_to_all_who_receive_it, NEED_GROUP),
	DEV_TEST(who_has_left_a_group_hears_nothing_of_it, NEED_GROUP),
	DEV_TEST(a_message_to_a_group_wakes_who_receives_it, NEED_GROUP | NEED_SLEEP),
	DEV_TEST(what_may_get_lost_comes_from_its_sender_without_a_connection, NEED_DATAGRAM),
	DEV_TEST(a_message_that_may_get_lost_wakes_its_receiver, NEED_DATAGRAM | NEED_SLEEP),
	{{NULL, NULL}, 0},
};

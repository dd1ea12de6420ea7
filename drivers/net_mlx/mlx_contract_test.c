/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_contract_test.c - the net_mlx driver in the contract of drivers, and what only it has
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "plx_unit_dev.h"

#include "mlx5_int.h"
#include "mlx_conn.h"
#include "mlx_mem.h"
#include "mlx_peer.h"
#include "mlx_queue.h"
#include "mlx_tx.h"
#include "plx_net_mlx.h"

static void
addresses_of_other_networks_and_other_forms_are_refused(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *peer = NULL;
	struct plx_addr good, bad;
	struct mlx_addr m;

	plx_queue_addr(b, &good);
	UNIT_EQ_FATAL(good.len, sizeof(m));
	for (unsigned len = 0; len <= 255; len++) {
		bad = good;
		bad.len = (uint8_t)len;
		if (len != good.len)
			UNIT_EQ(plx_peer_get(a, &bad, &peer), -EINVAL);
	}
	memcpy(&m, good.bytes, sizeof(m));
	if (m.link == MLX_LINK_IB)
		m.net_bits = PLX_ROUTE_BITS_MAX;
	m.link = m.link == MLX_LINK_IB ? MLX_LINK_ROCE4 : MLX_LINK_IB;
	bad = good;
	memcpy(bad.bytes, &m, sizeof(m));
	UNIT_EQ(plx_peer_get(a, &bad, &peer), -EHOSTUNREACH);
	CU_ASSERT_PTR_NULL(peer);
	UNIT_EQ(a->stat.peers, 0);
	queue_close(a);
	queue_close(b);
}

static void
a_peer_that_never_answers_is_dead_in_time(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	uint64_t since = now_ns();
	struct plx_addr addr;
	struct plx_peer *peer;
	struct plx_rx rx;

	plx_queue_addr(b, &addr);
	queue_close(b);
	n_told = 0;
	a->on_dead = on_dead;
	peer = peer_known(a, &addr);
	UNIT_EQ(plx_peer_connect(peer), 0);
	UNIT_EQ(msg_send(peer, 1, 8), -EAGAIN);
	while (peer->state != PLX_PEER_DEAD) {
		plx_queue_control(a);
		UNIT_EQ_FATAL(burst(a, &rx, 1), 0);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_TRUE(now_ns() - since >= 300000000);
	UNIT_EQ(n_told, 1);
	UNIT_EQ(peer->err, -ETIMEDOUT);
	UNIT_EQ(msg_send(peer, 1, 8), -ETIMEDOUT);
	UNIT_TRUE(mlx_queue(a)->stat.link.asked_again > 0);
	plx_peer_put(peer);
	plx_queue_control(a); /* frees it */
	UNIT_EQ(a->n_dead, 0);
	queue_close(a);
}

static void
count_over(void *arg, int err)
{
	UNIT_EQ(err, 0);
	++*(unsigned *)arg;
}

static void
a_message_goes_from_registered_memory_and_from_no_other(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	const struct iovec iov = {buf_here, 5000};
	uint64_t hdr = 200, since = now_ns();
	unsigned n = 0;
	struct plx_tx_zcopy tx = {.peer = connected_to(a, b), .hdr = &hdr, .hdr_len = sizeof(hdr), .iov = &iov,
		.n_iov = 1, .op = 200, .done = count_over, .arg = &n};
	struct plx_dev_mem mem = {0};
	struct plx_rx rx;

	UNIT_EQ(plx_peer_tx_zcopy(&tx), -EOPNOTSUPP);
	UNIT_EQ_FATAL(plx_queue_mem_reg(a, buf_here, sizeof(buf_here), 0, &mem), 0);
	tx.mem = mem.drv;
	unit_fill(buf_here, 5000, 200);
	UNIT_EQ_FATAL(plx_peer_tx_zcopy(&tx), -EINPROGRESS);
	UNIT_EQ_FATAL(burst_some(b, &rx, 1), 1);
	CU_ASSERT(msg_is(&rx, 200, 5000));
	b->rx_release(b, &rx, 1);
	while (n == 0) {
		UNIT_EQ_FATAL(burst(a, &rx, 1), 0);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(mlx_queue(a)->stat.tx_zcopy, 1);
	UNIT_EQ(mlx_queue(a)->stat.tx_copied, 0);
	plx_queue_mem_dereg(a, &mem, false);
	queue_close(a);
	queue_close(b);
}

static void
a_queue_says_while_processors_move_its_data(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct mlx_port *port = mlx_queue(a)->port;
	struct plx_rma_op op = {.peer = connected_to(a, b), .local = buf_here, .put = true,
		.remote = (uintptr_t)buf_there, .len = sizeof(buf_here), .done = rma_over};
	struct plx_dev_mem mem = {0};
	bool soft = port->soft;
	uint64_t since = now_ns();
	int over[4] = {1, 1, 1, 1};

	UNIT_EQ_FATAL(plx_queue_mem_reg(b, buf_there, sizeof(buf_there), PLX_DEV_MEM_WRITE, &mem), 0);
	op.key = mem.key;
	for (unsigned i = 0; i < 4; i++) {
		port->soft = i != 0;
		op.len = i == 1 ? MLX_LONG - 1 : sizeof(buf_here);
		op.arg = &over[i];
		UNIT_EQ_FATAL(plx_peer_rma(&op), -EINPROGRESS);
		UNIT_EQ(a->by_cpu, i >= 2);
	}
	while (over[3] == 1) {
		UNIT_TRUE(a->by_cpu);
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(a->by_cpu, false);
	port->soft = soft;
	plx_queue_mem_dereg(b, &mem, true);
	queue_close(a);
	queue_close(b);
}

static void
the_end_of_what_follows_tells_of_writes_that_nobody_asks_about(void)
{
	enum { N = 5 * MLX_TX_RECS };
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct mlx_stat *st = &mlx_queue(a)->stat;
	uint64_t *words = (uint64_t *)(void *)buf_there, signalled = st->tx_signalled;
	struct plx_dev_mem mem = {0};

	UNIT_EQ_FATAL(plx_queue_mem_reg(b, buf_there, sizeof(buf_there), PLX_DEV_MEM_WRITE, &mem), 0);
	memset(buf_there, 0, sizeof(buf_there));
	for (uint64_t i = 1; i <= N; i++) {
		uint64_t word = i;
		struct plx_rma_op op = {.peer = to_b, .local = &word, .put = true,
			.remote = (uintptr_t)&words[i], .len = sizeof(word), .key = mem.key};

		UNIT_EQ_FATAL(rma_soon(&op, false), 0);
	}
	unit_fill(buf_here, to_b->short_max, 3);
	UNIT_EQ(rma_soon(&(struct plx_rma_op){.peer = to_b, .local = buf_here, .put = true,
		.remote = (uintptr_t)&words[N + 1], .len = to_b->short_max, .key = mem.key}, false), 0);
	UNIT_EQ(rma_soon(&(struct plx_rma_op){.peer = to_b, .put = true}, true), 0);
	for (uint64_t i = 0; i <= N; i++)
		UNIT_EQ(words[i], i);
	CU_ASSERT(unit_is_filled((uint8_t *)&words[N + 1], to_b->short_max, 3));
	/* Room comes back by one in many; the last was one. */
	UNIT_TRUE(st->tx_signalled - signalled <= (N + 1) / MLX_SIGNAL_EVERY + 1);
	plx_queue_mem_dereg(b, &mem, true);
	queue_close(a);
	queue_close(b);
}

static void
what_lies_in_a_region_is_not_registered_again(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	const struct mlx_stat *st = &mlx_queue(b)->stat;
	struct plx_rma_op op = {.peer = connected_to(a, b), .local = buf_here, .put = true,
		.remote = (uintptr_t)buf_there + 100, .len = 20000};
	struct plx_dev_region whole = {.dev = NULL}, readable = {.dev = NULL};
	struct plx_dev_mem in = {0}, beyond = {0}, refused = {0};

	UNIT_EQ_FATAL(plx_dev_region_open(&conf, buf_there, 30000,
		PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE, &whole), 0);
	UNIT_EQ_FATAL(plx_dev_region_open(&conf, buf_here, sizeof(buf_here), PLX_DEV_MEM_READ, &readable), 0);
	UNIT_EQ(plx_queue_mem_reg(b, buf_there + 100, 20000, PLX_DEV_MEM_WRITE, &in), 0);
	UNIT_EQ(st->mem_reused, 1);
	UNIT_EQ(st->regs.made, 0);
	UNIT_EQ(plx_queue_mem_reg(b, buf_there + 100, 29901, PLX_DEV_MEM_WRITE, &beyond), 0);
	UNIT_EQ(st->regs.made, 1);
	UNIT_EQ(plx_queue_mem_reg(b, buf_here, 100, PLX_DEV_MEM_WRITE, &refused), 0);
	UNIT_EQ(st->regs.made, 2);
	UNIT_EQ(st->mem_reused, 1);
	/* It is given back while it is used: who has its key may go on. */
	plx_dev_region_close(&whole);
	unit_fill(buf_here, op.len, 4);
	op.key = in.key;
	UNIT_EQ(rma_wait(&op), 0);
	CU_ASSERT(unit_is_filled(buf_there + 100, op.len, 4));
	UNIT_EQ(mlx_queue(a)->stat.mem_reused, 1); /* its own side may be sent from */
	op.put = false;
	UNIT_EQ(rma_wait(&op), 0);
	UNIT_EQ(mlx_queue(a)->stat.regs.made, 1); /* but not received into */
	plx_queue_mem_dereg(b, &in, true);
	plx_queue_mem_dereg(b, &beyond, true);
	plx_queue_mem_dereg(b, &refused, true);
	UNIT_EQ(plx_queue_mem_reg(b, buf_there + 100, 20000, PLX_DEV_MEM_WRITE, &in), 0);
	UNIT_EQ(st->regs.made, 3); /* it is gone */
	plx_queue_mem_dereg(b, &in, true);
	plx_dev_region_close(&readable);
	queue_close(a);
	queue_close(b);
}

/* Of what is kept registered nothing is older than the mapping. */
static void
memory_mapped_anew_is_sent_and_received_as_it_is(void)
{
	const size_t len = 1 << 18;
	struct plx_queue *a = queue_new(), *b = queue_new();
	const struct mlx_stat *at_a = &mlx_queue(a)->stat, *at_b = &mlx_queue(b)->stat;
	struct plx_rma_op op = {.peer = connected_to(a, b), .put = true, .len = len};
	uint8_t *here = NULL, *there = NULL;

	for (unsigned round = 0; round < 4; round++) {
		struct plx_dev_mem mem = {0};

		if (round % 2 == 0) {
			here = mmap(here, len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | (here != NULL ? MAP_FIXED : 0), -1, 0);
			there = mmap(there, len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | (there != NULL ? MAP_FIXED : 0), -1, 0);
			CU_ASSERT_FATAL(here != MAP_FAILED && there != MAP_FAILED);
		}
		unit_fill(here, len, round);
		memset(there, 0, len);
		UNIT_EQ_FATAL(plx_queue_mem_reg(b, there, len, PLX_DEV_MEM_WRITE, &mem), 0);
		op.local = here;
		op.remote = (uintptr_t)there;
		op.key = mem.key;
		UNIT_EQ(rma_wait(&op), 0);
		CU_ASSERT(unit_is_filled(there, len, round));
		plx_queue_mem_dereg(b, &mem, false);
	}
	if (at_a->regs.misses != 0) { /* else memory can't be watched here */
		/* What is registered while the watch still works is not kept, so there is no hit. */
		UNIT_EQ(at_a->regs.hits + at_a->regs.unfit, 2);
		UNIT_EQ(at_b->regs.hits + at_b->regs.unfit, 2);
		UNIT_EQ(at_a->regs.gone + at_b->regs.gone, 2);
	}
	queue_close(a);
	queue_close(b);
	munmap(here, len);
	munmap(there, len);
}

static void
a_key_that_is_not_valid_any_more_costs_the_connection(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rma_op op = {.peer = to_b, .local = buf_here, .put = true,
		.remote = (uintptr_t)buf_there, .len = 64};
	struct plx_dev_mem mem = {0};
	uint64_t since = now_ns();

	UNIT_EQ(plx_peer_rma(&op), -EOPNOTSUPP); /* without a key */
	UNIT_EQ_FATAL(plx_queue_mem_reg(b, buf_there, sizeof(buf_there), PLX_DEV_MEM_WRITE, &mem), 0);
	op.key = mem.key;
	plx_queue_mem_dereg(b, &mem, true);
	n_told = 0;
	a->on_dead = on_dead;
	memset(buf_there, 3, 64);
	unit_fill(buf_here, 64, 9);
	UNIT_EQ(rma_wait(&op), -ECONNRESET);
	while (n_told == 0) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(buf_there[0], 3);
	UNIT_EQ(to_b->state, PLX_PEER_DEAD);
	UNIT_EQ(mlx_queue(a)->stat.qp_access, 1);
	UNIT_EQ(n_told, 1);
	queue_close(a);
	queue_close(b);
}

static void
a_sender_stops_where_its_credits_end(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t next = 0, sent = 0;

	for (unsigned round = 0; round < 10; round++) {
		while (msg_send(to_b, sent, len_of(sent, 64)) == 0)
			sent++;
		/* One is kept for credits; some messages take two when tags are matched. */
		UNIT_TRUE(mlx_peer(to_b)->link.credit.left == 1 ||
			(with_tags && mlx_peer(to_b)->link.credit.left == 2));
		drain(b, 64, &next);
		UNIT_EQ_FATAL(next, sent);
	}
	UNIT_TRUE(sent > 10 * PLX_CREDIT_MIN);
	UNIT_EQ(mlx_queue(a)->stat.qp_rnr, 0);
	UNIT_EQ(mlx_queue(b)->stat.rx_drop_no_peer, 0);
	queue_close(a);
	queue_close(b);
}

/* What it completes later must find nobody. */
static void
a_queue_pair_that_is_closed_is_nobodys(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint32_t qpn = mlx_peer(to_b)->qp->qpn;

	UNIT_TRUE(mlx_peer_find(mlx_queue(a), qpn) == mlx_peer(to_b));
	UNIT_TRUE(mlx_peer_find(mlx_queue(a), qpn) == mlx_peer(to_b)); /* it was the last */
	plx_link_reset(&mlx_peer(to_b)->link);
	UNIT_TRUE(mlx_peer_find(mlx_queue(a), qpn) == NULL);
	queue_close(a);
	queue_close(b);
}

static void
a_window_is_small_until_its_peer_runs_out_of_it(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct plx_credit *c = &mlx_peer(to_b)->link.credit;
	uint64_t next = 0, sent = 0;
	struct plx_rx rx;

	for (; sent < 200; sent++, next++) {
		UNIT_EQ_FATAL(msg_send(to_b, sent, len_of(sent, 64)), 0);
		UNIT_EQ_FATAL(burst_some(b, &rx, 1), 1);
		b->rx_release(b, &rx, 1);
		others_turn(b);
	}
	UNIT_EQ(c->most, PLX_CREDIT_FIRST);
	for (unsigned round = 0; round < 6; round++) {
		while (msg_send(to_b, sent, len_of(sent, 64)) == 0)
			sent++;
		drain(b, 64, &next);
		UNIT_EQ_FATAL(next, sent);
	}
	UNIT_EQ(c->most, mlx_queue(b)->want);
	UNIT_EQ(mlx_queue(b)->stat.windows_grown, 2);
	UNIT_EQ(mlx_queue(b)->granted, mlx_queue(b)->want);
	UNIT_EQ(mlx_queue(a)->granted, PLX_CREDIT_FIRST);
	UNIT_EQ(mlx_queue(a)->stat.qp_rnr, 0);
	queue_close(a);
	queue_close(b);
}

static void
free_slots_are_posted_together_when_nothing_comes(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct mlx_queue *mq = mlx_queue(b);
	struct plx_rx rx[MLX_RX_BATCH];
	uint32_t before;
	uint16_t got = 0;

	for (unsigned i = 0; i < MLX_RX_BATCH; i++)
		UNIT_EQ(msg_send(to_b, i, 8), 0);
	while (got < MLX_RX_BATCH) {
		uint16_t n = burst_some(b, rx + got, MLX_RX_BATCH - got);

		CU_ASSERT_FATAL(n != 0);
		got += n;
	}
	others_turn(NULL);
	before = mq->n_free_slots;
	UNIT_TRUE(before < MLX_RX_BATCH);
	for (uint32_t i = 0; i < MLX_RX_BATCH; i++) {
		b->rx_release(b, &rx[i], 1);
		UNIT_EQ(mq->n_free_slots, (before + i) % MLX_RX_BATCH + 1);
		others_turn(NULL);
		UNIT_EQ(mq->n_free_slots, (before + i + 1) % MLX_RX_BATCH);
	}
	queue_close(a);
	queue_close(b);
}

static void
a_port_is_reached_by_the_gid_that_is_named(void)
{
	struct plx_queue *q = queue_new();
	char name[80];

	snprintf(name, sizeof(name), "%s:1:0", mlx_queue(q)->port->ctx->device->name);
	queue_close(q);
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_mlx.device", name, PLX_CONF_FROM_API, NULL), 0);
	q = queue_new();
	UNIT_EQ(mlx_queue(q)->port->gid_index, 0);
	queue_close(q);
	name[strlen(name) - 1] = '9'; /* there is none */
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_mlx.device", name, PLX_CONF_FROM_API, NULL), 0);
	UNIT_EQ(plx_queue_open(dev, &conf, NULL, &q), -ENODEV);
}

static void
queues_are_driven_by_verbs_when_told_so(void)
{
	struct plx_queue *q = queue_new();

	UNIT_TRUE((mlx_queue(q)->hw->ops == mlx_queue(q)->port->hw) == !with_tags);
	queue_close(q);
	UNIT_EQ_FATAL(plx_conf_set(&conf, "net_mlx.direct", "no", PLX_CONF_FROM_API, NULL), 0);
	q = queue_new();
	UNIT_TRUE(strcmp(mlx_queue(q)->hw->ops->name,
		with_tags ? "verbs, with tags" : "verbs") == 0);
	queue_close(q);
}

/* Only 18 bits of the number are in an IPv4 address. */
static void
groups_of_one_address_are_told_apart(void)
{
	const uint64_t other = GROUP ^ UINT64_C(1) << 60;
	struct plx_queue *from = group_queue(), *to = group_queue();
	bool shared;

	if (from->group_mtu == 0) {
		queue_close(from);
		queue_close(to);
		return;
	}
	shared = mlx_queue(from)->addr.link == MLX_LINK_ROCE4;
	UNIT_EQ_FATAL(plx_queue_group_join(from, GROUP, false), 0);
	UNIT_EQ_FATAL(plx_queue_group_join(from, other, false), 0);
	UNIT_EQ_FATAL(plx_queue_group_join(to, other, true), 0);
	UNIT_EQ(group_send(from, GROUP, 1, 8), 0);
	hear(0);
	UNIT_EQ(mlx_queue(to)->stat.group_drop_not_ours, shared);
	UNIT_EQ(group_send(from, other, 2, 8), 0);
	hear(1);
	UNIT_TRUE(heard.group == other);
	UNIT_TRUE(heard.q == to);
	/* joined and left beside each other */
	UNIT_EQ_FATAL(plx_queue_group_join(to, GROUP, true), 0);
	plx_queue_group_leave(to, other, true);
	UNIT_EQ(group_send(from, GROUP, 3, 8), 0);
	hear(1);
	queue_close(from);
	queue_close(to);
}

static void
more_than_a_group_has_room_for_is_refused_and_then_taken(void)
{
	struct plx_queue *q = group_queue();
	unsigned n = 0;

	if (q->group_mtu == 0) {
		queue_close(q);
		return;
	}
	UNIT_EQ_FATAL(plx_queue_group_join(q, GROUP, false), 0);
	while (n < 10000 && group_send(q, GROUP, n, 8) == 0)
		n++;
	UNIT_EQ(n, MLX_UD_TX);
	UNIT_EQ(mlx_queue(q)->stat.group_no_room, 1);
	for (uint64_t since = now_ns(); group_send(q, GROUP, n, 8) != 0;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	queue_close(q);
}

static void
what_may_get_lost_is_not_taken_from_who_was_not_told_of(void)
{
	struct plx_queue *q[2], *other = queue_new();
	struct plx_peer *to[2], *third;
	struct plx_addr addr;
	uint32_t where;

	lossy_pair(q, to);
	UNIT_EQ_FATAL(plx_queue_lossy_open(other, &where), 0);
	UNIT_EQ_FATAL(plx_queue_lossy_open(q[1], &where), 0);
	plx_queue_addr(q[1], &addr);
	third = peer_known(other, &addr);
	UNIT_EQ_FATAL(plx_peer_lossy_to(third, where), 0);
	UNIT_EQ(lossy_send(third, 1, 8), 0);
	UNIT_EQ(lossy_send(to[0], 2, 8), 0);
	find(1);
	UNIT_EQ(found.number, 2);
	UNIT_EQ(mlx_queue(q[1])->stat.lossy_drop_not_ours, 1);
	queue_close(other);
	queue_close(q[0]);
	queue_close(q[1]);
}

static void
more_than_there_is_room_for_to_get_lost_is_refused_and_then_taken(void)
{
	struct plx_queue *q[2];
	struct plx_peer *to[2];
	unsigned n = 0;

	lossy_pair(q, to);
	while (n < 10000 && lossy_send(to[0], n, 8) == 0)
		n++;
	UNIT_EQ(n, MLX_UD_TX);
	for (uint64_t since = now_ns(); lossy_send(to[0], n, 8) != 0;) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	find(n + 1);
	UNIT_EQ(found.number, n);
	queue_close(q[0]);
	queue_close(q[1]);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(addresses_of_other_networks_and_other_forms_are_refused),
	UNIT_TEST(a_peer_that_never_answers_is_dead_in_time),
	UNIT_TEST(a_sender_stops_where_its_credits_end),
	UNIT_TEST(a_queue_pair_that_is_closed_is_nobodys),
	UNIT_TEST(a_window_is_small_until_its_peer_runs_out_of_it),
	UNIT_TEST(free_slots_are_posted_together_when_nothing_comes),
	UNIT_TEST(a_port_is_reached_by_the_gid_that_is_named),
	UNIT_TEST(queues_are_driven_by_verbs_when_told_so),
	UNIT_TEST(a_message_goes_from_registered_memory_and_from_no_other),
	UNIT_TEST(a_queue_says_while_processors_move_its_data),
	UNIT_TEST(the_end_of_what_follows_tells_of_writes_that_nobody_asks_about),
	UNIT_TEST(what_lies_in_a_region_is_not_registered_again),
	UNIT_TEST(memory_mapped_anew_is_sent_and_received_as_it_is),
	UNIT_TEST(a_key_that_is_not_valid_any_more_costs_the_connection),
	UNIT_TEST(groups_of_one_address_are_told_apart),
	UNIT_TEST(more_than_a_group_has_room_for_is_refused_and_then_taken),
	UNIT_TEST(what_may_get_lost_is_not_taken_from_who_was_not_told_of),
	UNIT_TEST(more_than_there_is_room_for_to_get_lost_is_refused_and_then_taken),
	CU_TEST_INFO_NULL,
};

static void
set_up(unsigned i)
{
	(void)i;
	plx_conf_set(&conf, "net_mlx.connect_ms", "300", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.ports", "1", PLX_CONF_FROM_API, NULL); /* however many there are */
	plx_conf_set(&conf, "net_mlx.tag_matching", "yes", PLX_CONF_FROM_API, NULL);
}

static bool
is_settled(struct plx_peer *peer)
{
	return mlx_peer(peer)->link.state == PLX_LINK_OPEN;
}

static const struct dev_contract_suite suites[] = {
	{"itself", 0, tests, 0},
	{NULL, 0, NULL, 0},
};

static struct dev_contract contract = {
	.ops = &plx_net_mlx_ops,
	.suites = suites,
	.set_up = set_up,
	.is_settled = is_settled,
	.at_least = PLX_CREDIT_FIRST / 2,
};

RTE_INIT(mlx_contract)
{
	dev_contract_add(&contract);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_ports_test.c - workers of net_mlx that use several ports
 *
 * Design notes
 * The devices are a model, of which each port is on one of several wires: what is sent to another
 * wire is lost. getifaddrs() is wrapped (--wrap of the linker), as the driver asks the host
 * for the networks of its addresses.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cci.h>

#include "mlx5_verbs.h"
#include "mlx_tm_model.h"
#include "plx_cm.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_region.h"
#include "plx_unit_mlx.h"
#include "plx_unit_worker.h"

#define LEN   100000u
#define EDR   32 /* 25 Gb/s, as libibverbs says */
#define HDR   64 /* 50 */
#define LANES 2	 /* four of them */

static struct unit_workers u;
static uint8_t out[LEN], in[LEN];
static uint8_t mask_bits = 24;

int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

/* One interface for each port that has an IPv4 address. */
int
__wrap_getifaddrs(struct ifaddrs **list)
{
	static struct ifaddrs ifs[MLX5_VERBS_DEVICES + 1];
	static struct sockaddr_in addr[MLX5_VERBS_DEVICES], mask;
	unsigned n = 0;

	mask = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_addr.s_addr = htonl((uint32_t)(~0ull << (32 - mask_bits)))};
	for (unsigned i = 0; i < MLX5_VERBS_DEVICES; i++) {
		const struct mlx5_verbs_port *port = &mlx5_verbs.ports[i][0];

		if (!port->ethernet)
			continue;
		addr[n].sin_family = AF_INET;
		memcpy(&addr[n].sin_addr, port->gid + 12, 4);
		ifs[n] = (struct ifaddrs){.ifa_next = &ifs[n + 1],
			.ifa_addr = (struct sockaddr *)&addr[n], .ifa_netmask = (struct sockaddr *)&mask};
		n++;
	}
	if (n != 0)
		ifs[n - 1].ifa_next = NULL;
	*list = n != 0 ? ifs : NULL;
	return 0;
}

void
__wrap_freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}

/* A port of Ethernet: 10.0.wire.(device + 1). */
static void
roce(unsigned device, uint8_t wire, uint8_t speed)
{
	struct mlx5_verbs_port *port = &mlx5_verbs.ports[device][0];

	*port = (struct mlx5_verbs_port){.ethernet = true, .width = LANES, .speed = speed,
		.wire = wire};
	memcpy(port->gid, (const uint8_t[16]){[10] = 0xff, 0xff, 10, 0, wire, device + 1}, 16);
}

/* Two workers that have two ports each, on two networks of which the first is faster. */
static const char *const pairs[] = {"model0,model1", "model2,model3"};
static const char *const numbered[] = {"model0:1,model1:1", "model2:1,model3:1"};

static void
begin(unsigned devices)
{
	memset(mlx5_verbs.ports, 0, sizeof(mlx5_verbs.ports));
	mlx5_verbs.n_devices = devices;
	mlx5_verbs.n_ports = 1;
	mask_bits = 24;
	unit_workers_conf(&u);
	unit_workers_set(&u, "worker.devices", "net_mlx");
	unit_workers_set(&u, "proto.eager_max", "8k");
	unit_workers_set(&u, "net_mlx.connect_ms", "100");
}

static void
begin_pairs(void)
{
	begin(4);
	roce(0, 1, HDR);
	roce(1, 2, EDR);
	roce(2, 1, HDR);
	roce(3, 2, EDR);
}

static void
end(void)
{
	unit_workers_close(&u);
	CU_ASSERT_PTR_NULL(mlx_tm.wrong);
}

/* A worker whose ports are those of these devices. */
static struct plx_worker *
worker_of(const char *devices)
{
	struct plx_worker_params params = {.conf = &u.conf};
	struct plx_worker *w = NULL;

	unit_workers_set(&u, "net_mlx.device", devices);
	UNIT_EQ_FATAL(plx_worker_create(&params, &w), 0);
	return w;
}

static void
join(unsigned from, unsigned to)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	UNIT_TRUE_FATAL(plx_worker_addr(u.w[to], addr, sizeof(addr)) > 0);
	UNIT_EQ_FATAL(plx_worker_ep_get(u.w[from], addr, &u.to[from][to]), 0);
}

/* As unit_workers_open(), with devices for each. */
static void
open_with(unsigned n, const char *const *devices)
{
	u.n = n;
	for (unsigned i = 0; i < n; i++)
		u.w[i] = worker_of(devices[i]);
	for (unsigned from = 0; from < n; from++)
		for (unsigned to = 0; to < n; to++)
			join(from, to);
}

static const struct plx_queue *
queue_of(unsigned from, unsigned to)
{
	return u.to[from][to].ep->peer->q;
}

/* The device of the port by which one reaches the other. */
static const char *
way(unsigned from, unsigned to)
{
	return plx_queue_port(queue_of(from, to));
}

static void
exchange(unsigned from, unsigned to, uint64_t len)
{
	struct plx_req *r = unit_recv(&u, to, in, len, 7, UNIT_EXACT), *s;

	unit_fill(out, len, len + from);
	s = unit_send(&u, from, to, out, len, 7, false);
	UNIT_END(&u, s, 0);
	UNIT_END(&u, r, 0);
	CU_ASSERT(unit_is_filled(in, len, len + from));
}

/* Both directions, short and long, by one pair of queues. */
static void
all_works(unsigned a, unsigned b)
{
	const uint64_t lens[] = {0, 8, 4000, 9000, LEN};

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		exchange(a, b, lens[i]);
		exchange(b, a, lens[i]);
	}
	UNIT_EQ(u.to[a][b].ep->peer->uid, mlx_queue(queue_of(b, a))->addr.uid);
	UNIT_EQ(u.to[b][a].ep->peer->uid, mlx_queue(queue_of(a, b))->addr.uid);
}

static void
a_worker_uses_every_port_that_works_the_fastest_first(void)
{
	begin(4);
	roce(0, 1, EDR);
	roce(1, 1, HDR);
	roce(2, 1, HDR);
	roce(3, 1, EDR);
	mlx5_verbs.ports[2][0].down = true;
	unit_workers_open(&u, 1);
	UNIT_EQ_FATAL(u.w[0]->n_queues, 3);
	CU_ASSERT_STRING_EQUAL(plx_queue_port(u.w[0]->queues[0]), "model1:1");
	CU_ASSERT_STRING_EQUAL(plx_queue_port(u.w[0]->queues[1]), "model0:1");
	CU_ASSERT_STRING_EQUAL(plx_queue_port(u.w[0]->queues[2]), "model3:1");
	exchange(0, 0, 5000); /* to itself: by one queue */
	UNIT_EQ(u.to[0][0].ep->peer->uid, mlx_queue(queue_of(0, 0))->addr.uid);
	end();
}

/* What net_mlx.device and net_mlx.ports say, and the ports that are used then, in order. */
struct named {
	const char *devices, *max;
	const char *are[4];
};

static void
are_used(const struct named *c)
{
	unsigned n = 0;

	unit_workers_set(&u, "net_mlx.ports", c->max);
	unit_workers_set(&u, "net_mlx.device", c->devices);
	unit_workers_open(&u, 1);
	for (; n < 4 && c->are[n] != NULL && n < u.w[0]->n_queues; n++)
		CU_ASSERT_STRING_EQUAL(plx_queue_port(u.w[0]->queues[n]), c->are[n]);
	UNIT_TRUE(n == 4 || c->are[n] == NULL);
	UNIT_EQ(u.w[0]->n_queues, n);
	end();
}

static void
settings_name_ports_in_their_order_and_bound_them(void)
{
	static const struct named rows[] = {{"model2,model0", "4", {"model2:1", "model2:2", "model0:1", "model0:2"}},
		{"model2:2, model0:1", "4", {"model2:2", "model0:1"}},
		{"model1,model1:1,model1:1:0", "4", {"model1:1", "model1:2"}},
		{"nobody,model1:2", "4", {"model1:2"}}, {"model1:3,model1:2", "1", {"model1:2"}},
		{"", "3", {"model0:1", "model0:2", "model1:1"}}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(3);
		mlx5_verbs.n_ports = 2;
		are_used(&rows[i]);
	}
}

static void
none_of_the_named_is_none_at_all(void)
{
	struct plx_worker_params params = {.conf = &u.conf};
	struct plx_worker *w;

	begin(1);
	unit_workers_set(&u, "net_mlx.device", "nobody,model0:2,model0:1:1");
	UNIT_EQ(plx_worker_create(&params, &w), -ENODEV);
	mlx5_verbs.ports[0][0].down = true;
	unit_workers_set(&u, "net_mlx.device", "");
	UNIT_EQ(plx_worker_create(&params, &w), -ENODEV);
}

/* @return what two workers of these devices log; the caller frees it */
static char *
said_of(const char *devices)
{
	struct plx_worker_params params = {.conf = &u.conf};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	rte_openlog_stream(f);
	plx_log_set_level(RTE_LOG_WARNING);
	unit_workers_set(&u, "net_mlx.device", devices);
	for (unsigned i = 0; i < 2; i++) {
		struct plx_worker *w = NULL;

		plx_worker_create(&params, &w);
		plx_worker_destroy(w);
	}
	plx_log_set_level(RTE_LOG_EMERG);
	rte_openlog_stream(NULL);
	fclose(f);
	return text;
}

static void
says(const char *devices, const char *want)
{
	char *text = said_of(devices);

	CU_ASSERT_STRING_EQUAL(text, want);
	free(text);
}

/* It is often a typo; told once, however many workers there are. */
static void
a_named_port_that_is_missing_is_a_warning(void)
{
	begin(1);
	says("", "");
	says("model0:1", "");
	says("model0,model1:1,mlx5_0", "pollux: net_mlx.device: this machine has no working port model1:1\n"
				       "pollux: net_mlx.device: this machine has no working port mlx5_0\n");
	says("model0:2", "pollux: net_mlx.device: this machine has no working port model0:2\n");
	mlx5_verbs.absent = true;
	says("", "");
	says("model0", "pollux: net_mlx.device is model0, and this machine has no RDMA device\n");
	mlx5_verbs.absent = false;
	end();
}

/* The one that is down is faster. */
static void
begin_with_one_down(void)
{
	begin_pairs();
	mlx5_verbs.ports[0][0].down = true;
}

static void
a_port_that_is_down_stands_by_if_it_is_named_with_its_number(void)
{
	static const struct named rows[] = {{"model0:1,model1:1", "4", {"model0:1", "model1:1"}},
		{"model1,model0:1", "4", {"model1:1", "model0:1"}},
		{"model0:1,model1:1", "1", {"model1:1"}}, {"model0:1", "1", {"model0:1"}},
		{"model0,model1", "4", {"model1:1"}}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin_with_one_down();
		are_used(&rows[i]);
	}
	/* Of InfiniBand the lid is not known before. */
	begin(2);
	mlx5_verbs.ports[0][0].down = true;
	unit_workers_set(&u, "net_mlx.device", "model0:1,model1:1");
	unit_workers_open(&u, 1);
	UNIT_EQ(u.w[0]->n_queues, 1);
	end();
}

static void
each_port_more_makes_an_address_little_longer(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];
	char max[2] = "1";

	for (unsigned n = 1; n <= 4; n++, max[0]++) {
		begin(4);
		for (unsigned i = 0; i < 4; i++)
			roce(i, 1, EDR);
		unit_workers_set(&u, "net_mlx.ports", max);
		unit_workers_open(&u, 1);
		/* the second differs from the first in the last byte of its address and behind it */
		UNIT_EQ(plx_worker_addr(u.w[0], addr, sizeof(addr)), 77 + (n - 1) * 20);
		end();
	}
}

static void
two_ports_on_two_networks_meet_those_on_the_same(void)
{
	static const char *const devices[] = {"model0,model1", "model3,model2"};

	begin(4);
	roce(0, 1, EDR);
	roce(1, 2, EDR);
	roce(2, 1, EDR);
	roce(3, 2, HDR); /* as slow as the one that it meets */
	open_with(2, devices);
	UNIT_TRUE(strcmp(way(0, 1), "model0:1") == 0 ? strcmp(way(1, 0), "model2:1") == 0
						      : strcmp(way(1, 0), "model3:1") == 0);
	all_works(0, 1);
	end();
	/* The faster of the two networks. */
	begin(4);
	roce(0, 1, EDR);
	roce(1, 2, HDR);
	roce(2, 1, HDR);
	roce(3, 2, HDR);
	open_with(2, devices);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model1:1");
	CU_ASSERT_STRING_EQUAL(way(1, 0), "model3:1");
	all_works(0, 1);
	end();
}

static void
only_the_network_that_both_have_is_used(void)
{
	static const char *const devices[] = {"model0,model1", "model2"};

	begin(3);
	roce(0, 1, HDR);
	roce(1, 2, EDR);
	roce(2, 2, EDR);
	open_with(2, devices);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model1:1");
	all_works(0, 1);
	end();
}

static void
another_network_is_the_last_choice_and_may_be_forbidden(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];
	struct plx_ep_user user = {.ep = NULL};

	for (unsigned forbid = 0; forbid < 2; forbid++) {
		begin(2);
		roce(0, 1, EDR);
		roce(1, 2, EDR);
		mlx5_verbs.ports[1][0].wire = 1; /* there is a router */
		unit_workers_set(&u, "net_mlx.routed", forbid ? "no" : "yes");
		u.n = 2;
		u.w[0] = worker_of("model0");
		u.w[1] = worker_of("model1");
		UNIT_TRUE_FATAL(plx_worker_addr(u.w[1], addr, sizeof(addr)) > 0);
		join(0, 0);
		join(1, 1);
		if (forbid) {
			UNIT_EQ(plx_worker_ep_get(u.w[0], addr, &user), -EHOSTUNREACH);
			plx_worker_ep_put(u.w[0], &u.to[0][0]);
			plx_worker_ep_put(u.w[1], &u.to[1][1]);
			plx_worker_destroy(u.w[0]);
			plx_worker_destroy(u.w[1]);
			continue;
		}
		join(0, 1);
		join(1, 0);
		all_works(0, 1);
		end();
	}
}

/* Many workers, of which each pair chooses by itself. */
static void
peers_are_spread_over_equal_ports_and_both_sides_agree(void)
{
	enum { ROUNDS = 60 };
	unsigned first = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		begin(4);
		for (unsigned k = 0; k < 4; k++)
			roce(k, 1, EDR);
		open_with(2, pairs);
		first += strcmp(way(0, 1), "model0:1") == 0;
		UNIT_EQ(strcmp(way(0, 1), "model0:1") == 0, strcmp(way(1, 0), "model2:1") == 0);
		exchange(0, 1, 100);
		UNIT_EQ(u.to[0][1].ep->peer->uid, mlx_queue(queue_of(1, 0))->addr.uid);
		UNIT_EQ(LIST_NEXT(LIST_FIRST(&u.w[1]->eps.all), link) != NULL, true);
		end();
	}
	/* 60 throws of a coin: fewer than 10 of one side come once in 10^8 runs */
	UNIT_TRUE(first >= 10 && first <= ROUNDS - 10);
}

/* Two workers, not joined yet, with two ports each. */
static void
open_apart(void)
{
	begin_pairs();
	u.n = 2;
	for (unsigned i = 0; i < 2; i++)
		u.w[i] = worker_of(pairs[i]);
}

/* They join, and meet by the others. */
static void
first_port_is_left_out(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	UNIT_EQ(plx_worker_addr(u.w[0], addr, sizeof(addr)), 77);
	for (unsigned from = 0; from < 2; from++)
		for (unsigned to = 0; to < 2; to++)
			join(from, to);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model1:1");
	CU_ASSERT_STRING_EQUAL(way(1, 0), "model3:1");
	all_works(0, 1);
}

static void
a_port_that_is_down_is_neither_chosen_nor_told_of(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	open_apart();
	mlx5_verbs_switch(0, 1, true);
	first_port_is_left_out();
	mlx5_verbs_switch(1, 1, true); /* all are down: then all may be reported, as one may come back */
	UNIT_TRUE(plx_worker_addr(u.w[0], addr, sizeof(addr)) > 77);
	mlx5_verbs_switch(1, 1, false);
	mlx5_verbs_switch(0, 1, false);
	UNIT_TRUE(plx_worker_addr(u.w[0], addr, sizeof(addr)) > 77);
	end();
}

/* Who has met before stays where they are. */
static void
a_port_that_stood_by_is_used_once_it_is_up(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	begin_with_one_down();
	u.n = 3;
	for (unsigned i = 0; i < u.n; i++)
		u.w[i] = worker_of(numbered[i != 0]);
	UNIT_EQ(plx_worker_addr(u.w[0], addr, sizeof(addr)), 77);
	for (unsigned from = 0; from < u.n; from++)
		for (unsigned to = 0; to < u.n; to++)
			if (from + to < 2)
				join(from, to);
	all_works(0, 1);
	mlx5_verbs_switch(0, 1, false);
	UNIT_TRUE(plx_worker_addr(u.w[0], addr, sizeof(addr)) > 77);
	for (unsigned from = 0; from < u.n; from++)
		for (unsigned to = 0; to < u.n; to++)
			if (from + to >= 2)
				join(from, to);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model1:1");
	CU_ASSERT_STRING_EQUAL(way(0, 2), "model0:1");
	CU_ASSERT_STRING_EQUAL(way(2, 0), "model2:1");
	all_works(0, 1);
	all_works(0, 2);
	end();
}

/* There is no other: it is reported, and a later query finds it. */
static void
who_has_no_port_but_one_that_stands_by_waits_for_it(void)
{
	static const char *const devices[] = {"model0:1", "model2:1"};

	begin_with_one_down();
	unit_workers_set(&u, "net_mlx.connect_ms", "10000");
	open_with(2, devices);
	unit_turns(&u, 100);
	mlx5_verbs_switch(0, 1, false);
	all_works(0, 1);
	end();
}

static void
a_port_whose_address_is_another_is_neither_chosen_nor_told_of(void)
{
	static const uint8_t other[16] = {[10] = 0xff, 0xff, 10, 9, 9, 9};
	uint8_t addr[PLX_WIRE_ADDR_MAX], was[16];

	open_apart();
	memcpy(was, mlx5_verbs.ports[0][0].gid, sizeof(was));
	mlx5_verbs_move(0, 1, other);
	first_port_is_left_out();
	/* link and address are two things */
	mlx5_verbs_switch(0, 1, true);
	UNIT_EQ(plx_worker_addr(u.w[0], addr, sizeof(addr)), 77);
	mlx5_verbs_switch(0, 1, false);
	UNIT_EQ(plx_worker_addr(u.w[0], addr, sizeof(addr)), 77);
	mlx5_verbs_move(0, 1, was);
	UNIT_TRUE(plx_worker_addr(u.w[0], addr, sizeof(addr)) > 77);
	mlx5_verbs_move(0, 1, was);
	UNIT_TRUE(plx_worker_addr(u.w[0], addr, sizeof(addr)) > 77);
	end();
}

/* The clock is the driver's. */
#define WAIT_UNTIL(from, cond) \
	do { \
		time_t since_ = time(NULL); \
		while (!(cond) && time(NULL) - since_ < 15) { \
			unit_check_peers(u.w[from]); \
			unit_turns(&u, 10); \
			sched_yield(); \
		} \
		UNIT_TRUE(cond); \
	} while (0)

static void
wait_for_the_end(unsigned from, unsigned to)
{
	WAIT_UNTIL(from, u.to[from][to].ep->err != 0);
}

static void
rejoin(unsigned from, unsigned to, const uint8_t *addr)
{
	plx_worker_ep_put(u.w[from], &u.to[from][to]);
	memset(&u.to[from][to], 0, sizeof(u.to[from][to]));
	UNIT_EQ_FATAL(plx_worker_ep_get(u.w[from], addr, &u.to[from][to]), 0);
}

static void
who_loses_a_peer_reaches_it_again_by_another_port(void)
{
	uint8_t addr[2][PLX_WIRE_ADDR_MAX];
	struct plx_req *s;

	begin_pairs();
	open_with(2, pairs);
	for (unsigned i = 0; i < 2; i++)
		UNIT_TRUE_FATAL(plx_worker_addr(u.w[i], addr[i], PLX_WIRE_ADDR_MAX) > 0);
	exchange(0, 1, 100);
	exchange(1, 0, 100);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model0:1");
	/* It is the other side's port, and a switch between keeps ours up. */
	mlx5_verbs_switch(2, 1, true);
	s = unit_send(&u, 0, 1, out, 100, 7, false);
	wait_for_the_end(0, 1);
	plx_req_put(s);
	s = unit_send(&u, 1, 0, out, 100, 7, false);
	wait_for_the_end(1, 0);
	plx_req_put(s);
	/* By the addresses that they have had all the time. */
	rejoin(0, 1, addr[1]);
	rejoin(1, 0, addr[0]);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model1:1");
	CU_ASSERT_STRING_EQUAL(way(1, 0), "model3:1");
	all_works(0, 1);
	end();
}

/* With no other port, and before what has failed is cleared away. */
static void
who_loses_a_peer_reaches_it_again_at_once(void)
{
	static const char *const devices[] = {"model0", "model2"};
	uint8_t addr[2][PLX_WIRE_ADDR_MAX];

	begin_pairs();
	open_with(2, devices);
	all_works(0, 1);
	mlx5_verbs_switch(2, 1, true);
	for (unsigned i = 0; i < 2; i++) {
		struct plx_req *s = unit_send(&u, i, !i, out, 100, 7, false);

		UNIT_TRUE_FATAL(plx_worker_addr(u.w[i], addr[i], PLX_WIRE_ADDR_MAX) > 0);
		wait_for_the_end(i, !i);
		plx_req_put(s);
	}
	mlx5_verbs_switch(2, 1, false);
	for (unsigned k = 0; k < 2; k++) {
		rejoin(0, 1, addr[1]);
		rejoin(1, 0, addr[0]);
		UNIT_EQ(u.to[0][1].ep->err, 0);
		UNIT_EQ(u.to[1][0].ep->err, 0);
		all_works(0, 1);
	}
	end();
}

static void
who_does_not_answer_is_tried_by_another_port(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];
	struct plx_req *s;

	begin_pairs();
	open_with(2, pairs);
	UNIT_TRUE_FATAL(plx_worker_addr(u.w[1], addr, sizeof(addr)) > 0);
	mlx5_verbs.ports[2][0].wire = 9; /* a cable between two switches */
	s = unit_send(&u, 0, 1, out, 100, 7, false);
	wait_for_the_end(0, 1);
	UNIT_EQ(u.to[0][1].ep->err, -ETIMEDOUT);
	plx_req_put(s);
	rejoin(0, 1, addr);
	CU_ASSERT_STRING_EQUAL(way(0, 1), "model1:1");
	exchange(0, 1, 100);
	end();
}

/* -- no way to the peer -- */

static struct {
	struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *);
	unsigned n, n_fail; /* asked for; of these the first fail */
} ways;

static struct ibv_ah *
count_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	errno = ENETUNREACH;
	return ways.n++ < ways.n_fail ? NULL : ways.create(pd, attr);
}

/* Two workers with a port each, and a message on its way from the first. */
static struct plx_req *
begin_ways(unsigned n_fail, bool down)
{
	static const char *const devices[] = {"model0", "model2"};

	begin_pairs();
	unit_workers_set(&u, "net_mlx.connect_ms", "10000");
	open_with(2, devices);
	if (down)
		mlx5_verbs_switch(0, 1, true);
	ways.n = 0;
	ways.n_fail = n_fail;
	ways.create = mlx_glue.create_ah;
	mlx_glue.create_ah = count_ah;
	return unit_send(&u, 0, 1, out, 100, 7, false);
}

static void
end_ways(struct plx_req *s, int status)
{
	mlx_glue.create_ah = ways.create;
	if (status == 0) {
		struct plx_req *r = unit_recv(&u, 1, in, 100, 7, UNIT_EXACT);

		UNIT_END(&u, r, 0);
	}
	UNIT_END(&u, s, status);
	end();
}

static void
who_finds_no_way_tries_again(void)
{
	struct plx_req *s = begin_ways(2, false);

	WAIT_UNTIL(0, ways.n >= 3);
	end_ways(s, 0);
}

static void
who_finds_no_way_three_times_is_told(void)
{
	struct plx_req *s = begin_ways(UINT_MAX, false);

	wait_for_the_end(0, 1);
	UNIT_EQ(ways.n, 3);
	end_ways(s, -EHOSTUNREACH);
}

static void
no_way_is_looked_for_while_the_port_is_down(void)
{
	struct plx_req *s = begin_ways(0, true);
	uint64_t since = plx_clock_ns();

	WAIT_UNTIL(0, plx_clock_ns() - since > 100000000);
	UNIT_EQ(ways.n, 0);
	UNIT_EQ(u.to[0][1].ep->err, 0);
	mlx5_verbs_switch(0, 1, false);
	WAIT_UNTIL(0, ways.n != 0);
	end_ways(s, 0);
}

/* -- memory -- */

static struct plx_req *
rma(unsigned from, unsigned to, const struct plx_rkey *rkey, uint8_t kind, void *buf, void *remote)
{
	struct plx_req *req = plx_req_get(&u.w[from]->reqs);
	struct plx_rma_do d = {.kind = kind, .buf = buf, .len = LEN, .rkey = rkey,
		.remote = (uintptr_t)remote, .ep = u.to[from][to].ep,
		.conn_id = u.to[from][to].conn_id};

	UNIT_TRUE_FATAL(req != NULL);
	req->dt = NULL;
	plx_worker_rma(u.w[from], &d, req);
	return req;
}

static void
a_region_is_reached_by_each_port_with_its_own_key(void)
{
	static const char *const devices[] = {"model0", "model1", "model0,model1,model2"};
	struct plx_dev_region region = {.dev = NULL};
	struct plx_wire_rkey wire = {.len = LEN, .base = (uintptr_t)in,
		.rights = PLX_REGION_READ | PLX_REGION_WRITE};
	uint8_t blob[PLX_WIRE_RKEY_MAX];
	struct plx_region_key key;

	begin(3);
	for (unsigned i = 0; i < 3; i++)
		roce(i, i, EDR);
	unit_workers_set(&u, "rma.scheme", "device");
	unit_workers_set(&u, "net_mlx.device", devices[2]);
	UNIT_EQ_FATAL(plx_dev_region_open(&u.conf, in, LEN, PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE |
		PLX_DEV_MEM_ATOMIC, &region), 0);
	UNIT_EQ_FATAL(region.n_keys, 3);
	/* What one device adds to a word another does not see. */
	UNIT_EQ(region.atomics, PLX_DEV_ATOMICS_NONE);
	UNIT_TRUE(region.alone);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)in, LEN, wire.rights, &key), 0);
	wire.index = key.index;
	wire.token = key.token;
	for (unsigned i = 0; i < region.n_keys; i++)
		wire.devs[i] = (struct plx_wire_rkey_dev){(uint32_t)region.keys[i].mem.key,
			region.keys[i].port};
	wire.n_devs = 3;
	open_with(3, devices);
	wire.proc = u.to[0][2].ep->peer->proc & PLX_WIRE_PROC_MASK;
	UNIT_EQ(plx_wire_rkey_pack(&wire, blob), 40 + 3 * 6);
	for (unsigned i = 0; i < 2; i++) {
		struct plx_rkey *rkey;
		uint64_t before = u.w[i]->rma.stat.key;

		UNIT_EQ_FATAL(plx_rkey_unpack(u.to[i][2].ep->peer, blob, UINT8_MAX, false, &rkey), 0);
		unit_fill(out, LEN, i);
		UNIT_END(&u, rma(i, 2, rkey, PLX_RMA_PUT, out, in), 0);
		UNIT_EQ(u.w[i]->rma.stat.key, before + 1);
		CU_ASSERT(unit_is_filled(in, LEN, i));
		memset(out, 0, LEN);
		UNIT_END(&u, rma(i, 2, rkey, PLX_RMA_GET, out, in), 0);
		CU_ASSERT(unit_is_filled(out, LEN, i));
		plx_rkey_destroy(rkey);
	}
	plx_region_remove(&key);
	plx_dev_region_close(&region);
	end();
}

/* -- CCI, where a device is one port -- */

static void
count_queues(struct plx_worker *w, void *arg)
{
	*(unsigned *)arg += w->n_queues;
}

static cci_device_t *
cci_device(void)
{
	cci_device_t *const *list;
	uint32_t caps;

	UNIT_EQ_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	UNIT_EQ_FATAL(cci_get_devices(&list), CCI_SUCCESS);
	while (*list != NULL && strcmp((*list)->transport, "net_mlx") != 0)
		list++;
	UNIT_TRUE_FATAL(*list != NULL);
	return *list;
}

static void
hear_nothing(const void *data, size_t len, void *arg)
{
	(void)data;
	(void)len;
	(void)arg;
}

/* An endpoint with a name needs a kernel that lists sockets. */
static cci_status_t
endpoint_at(cci_device_t *d, const char *name, cci_endpoint_t **ep)
{
	if (plx_name_each(name, hear_nothing, NULL) != -EPROTONOSUPPORT)
		return cci_create_endpoint_at(d, name, 0, ep, NULL);
	printf("\n# skipped: an endpoint with a name, as the kernel lists no sockets here\n");
	return cci_create_endpoint(d, 0, ep, NULL);
}

static void
an_endpoint_of_cci_has_one_port(void)
{
	cci_endpoint_t *ep[2];
	cci_device_t *d;
	unsigned n = 0;

	begin(4);
	for (unsigned i = 0; i < 4; i++)
		roce(i, 1, EDR);
	d = cci_device();
	UNIT_EQ_FATAL(cci_create_endpoint(d, 0, &ep[0], NULL), CCI_SUCCESS);
	UNIT_EQ_FATAL(endpoint_at(d, "ports", &ep[1]), CCI_SUCCESS);
	plx_worker_each(count_queues, &n);
	UNIT_EQ(n, 2);
	for (unsigned i = 0; i < 2; i++)
		UNIT_EQ(cci_destroy_endpoint(ep[i]), CCI_SUCCESS);
	UNIT_EQ(cci_finalize(), CCI_SUCCESS);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_worker_uses_every_port_that_works_the_fastest_first),
	UNIT_TEST(settings_name_ports_in_their_order_and_bound_them),
	UNIT_TEST(none_of_the_named_is_none_at_all),
	UNIT_TEST(a_named_port_that_is_missing_is_a_warning),
	UNIT_TEST(a_port_that_is_down_stands_by_if_it_is_named_with_its_number),
	UNIT_TEST(each_port_more_makes_an_address_little_longer),
	UNIT_TEST(two_ports_on_two_networks_meet_those_on_the_same),
	UNIT_TEST(only_the_network_that_both_have_is_used),
	UNIT_TEST(another_network_is_the_last_choice_and_may_be_forbidden),
	UNIT_TEST(peers_are_spread_over_equal_ports_and_both_sides_agree),
	UNIT_TEST(a_port_that_is_down_is_neither_chosen_nor_told_of),
	UNIT_TEST(a_port_that_stood_by_is_used_once_it_is_up),
	UNIT_TEST(who_has_no_port_but_one_that_stands_by_waits_for_it),
	UNIT_TEST(a_port_whose_address_is_another_is_neither_chosen_nor_told_of),
	UNIT_TEST(who_loses_a_peer_reaches_it_again_by_another_port),
	UNIT_TEST(who_loses_a_peer_reaches_it_again_at_once),
	UNIT_TEST(who_does_not_answer_is_tried_by_another_port),
	UNIT_TEST(who_finds_no_way_tries_again),
	UNIT_TEST(who_finds_no_way_three_times_is_told),
	UNIT_TEST(no_way_is_looked_for_while_the_port_is_down),
	UNIT_TEST(a_region_is_reached_by_each_port_with_its_own_key),
	UNIT_TEST(an_endpoint_of_cci_has_one_port),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx_ports", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	plx_log_set_level(RTE_LOG_EMERG);
	if (rc == 0 && plx_init_drivers() != 0)
		rc = EXIT_FAILURE;
	return rc != 0 ? rc : unit_run(suites);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_join_test.c - groups on InfiniBand: what the connection manager and the subnet manager say
 *
 * Both are models, and so is the device.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mlx5_verbs.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"
#include "plx_unit_mlx_cm.h"

#define QUEUES	 3
#define GROUP	 UINT64_C(0x1122334455667788)
#define ADDRESS	 0x0a090001u /* 10.9.0.1 */
#define MLID	 0xc001
#define GID_LEN	 16
#define IPOIB_AT 4 /* of the gid in a hardware address */

/* The manager, and what it is to do wrong. */
static struct {
	unsigned channels, ids, members, unacked; /* that there are */
	bool silent, no_interface, elsewhere, other_key;
	int refuses;	      /* status of the answer */
	int fails;	      /* errno of the call */
	unsigned noise;	      /* events before the answer */
	struct sockaddr_in at; /* that the last id was bound to */
} sm;

static struct rdma_cm_event event;
static struct rdma_cm_id *asking;
static struct ibv_device elsewhere = {.name = "model9"};
static struct ibv_context other_context = {.device = &elsewhere};

static struct plx_conf conf;
static struct plx_dev *dev;
static struct plx_queue *q[QUEUES];

static struct {
	unsigned n;
	uint64_t group;
	uint32_t len;
} heard;

/* What was reported of joining: to send, to receive. */
static struct {
	uint64_t group; /* of which it may be */
	unsigned n[2];
	int rc;
} told;

int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

/* An interface of Ethernet, one of InfiniBand, and its address. */
int
__wrap_getifaddrs(struct ifaddrs **list)
{
	static struct {
		struct sockaddr_ll ll;
		uint8_t more[16];
	} eth, ib;
	static struct sockaddr_in other, at;
	static struct ifaddrs ifs[4];
	static char eth_name[] = "eth0", ib_name[] = "ib0";
	static const uint8_t gid[GID_LEN] = {0xfe, 0x80};

	eth.ll = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_halen = 6};
	ib.ll = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_halen = 20};
	memcpy((uint8_t *)&ib + offsetof(struct sockaddr_ll, sll_addr) + IPOIB_AT, gid, sizeof(gid));
	other = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ADDRESS + 1)};
	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ADDRESS)};
	for (unsigned i = 0; i < 4; i++)
		ifs[i] = (struct ifaddrs){.ifa_next = i < 3 ? &ifs[i + 1] : NULL,
			.ifa_name = i % 2 == 0 ? eth_name : ib_name};
	ifs[0].ifa_addr = (struct sockaddr *)&eth;
	ifs[1].ifa_addr = (struct sockaddr *)&ib;
	ifs[2].ifa_addr = (struct sockaddr *)&other;
	ifs[3].ifa_addr = (struct sockaddr *)&at;
	if (sm.no_interface)
		ib.ll.sll_halen = 6;
	*list = ifs;
	return 0;
}

void
__wrap_freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}

static struct rdma_event_channel *
create_event_channel(void)
{
	static struct rdma_event_channel channels[QUEUES * 4];
	struct rdma_event_channel *ch = &channels[sm.channels++];

	ch->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return ch;
}

static void
destroy_event_channel(struct rdma_event_channel *ch)
{
	close(ch->fd);
	sm.channels--;
}

static int
create_id(struct rdma_event_channel *ch, struct rdma_cm_id **out, void *arg,
	enum rdma_port_space ps)
{
	UNIT_EQ(ps, RDMA_PS_UDP);
	*out = calloc(1, sizeof(**out));
	(*out)->channel = ch;
	(*out)->context = arg;
	sm.ids++;
	return 0;
}

static int
destroy_id(struct rdma_cm_id *id)
{
	UNIT_EQ(sm.unacked, 0); /* it would wait for ever */
	free(id);
	sm.ids--;
	return 0;
}

static int
bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	memcpy(&sm.at, addr, sizeof(sm.at));
	id->verbs = sm.elsewhere ? &other_context : mlx_queue(q[0])->port->ctx;
	id->port_num = 1;
	return 0;
}

static void
ring(struct rdma_cm_id *id)
{
	uint64_t one = 1;

	UNIT_EQ(write(id->channel->fd, &one, sizeof(one)), sizeof(one));
}

static int
join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *arg)
{
	(void)arg;
	UNIT_EQ(attr->join_flags, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	if (sm.fails != 0) {
		errno = sm.fails;
		return -1;
	}
	sm.members++;
	asking = id;
	/* As IP's addresses become those of InfiniBand: the partition, and the last bytes. */
	event = (struct rdma_cm_event){.id = id, .event = RDMA_CM_EVENT_MULTICAST_JOIN};
	event.param.ud = (struct rdma_ud_param){.qkey = RDMA_UDP_QKEY + sm.other_key,
		.ah_attr = {.dlid = MLID, .is_global = 1, .port_num = 1}};
	memcpy(event.param.ud.ah_attr.grh.dgid.raw,
		&((struct sockaddr_in6 *)(void *)attr->addr)->sin6_addr, GID_LEN);
	event.param.ud.ah_attr.grh.dgid.raw[3] = 0x01;
	if (sm.refuses != 0) {
		event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		event.status = sm.refuses;
	}
	for (unsigned i = 0; !sm.silent && i <= sm.noise; i++)
		ring(id);
	return 0;
}

static int
leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	UNIT_EQ(addr->sa_family, AF_INET6);
	sm.members--;
	return 0;
}

static int
get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **out)
{
	static struct rdma_cm_event other = {.event = RDMA_CM_EVENT_ADDR_CHANGE};
	uint64_t one;

	if (read(ch->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	UNIT_TRUE(ch == asking->channel);
	*out = sm.noise != 0 ? &other : &event;
	sm.noise -= sm.noise != 0;
	sm.unacked++;
	return 0;
}

static int
ack_cm_event(struct rdma_cm_event *e)
{
	(void)e;
	sm.unacked--;
	return 0;
}

static void
on_group(struct plx_queue *queue, uint64_t group, const uint8_t *data, uint32_t len)
{
	(void)queue;
	(void)data;
	heard.n++;
	heard.group = group;
	heard.len = len;
}

static void
on_joined(struct plx_queue *queue, uint64_t group, bool rx, int rc)
{
	(void)queue;
	UNIT_EQ(group, told.group);
	told.n[rx]++;
	told.rc = rc;
}

static void
turns(void)
{
	struct plx_rx rx;

	for (unsigned k = 0; k < 2 * MLX_UD_EVERY; k++)
		for (unsigned i = 0; i < QUEUES; i++)
			UNIT_EQ_FATAL(q[i]->rx_burst(q[i], &rx, 1), 0);
}

static void
begin(void)
{
	plx_conf_defaults(&conf);
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[i]), 0);
		q[i]->on_group = on_group;
		q[i]->on_joined = on_joined;
	}
	heard.n = 0;
	memset(&told, 0, sizeof(told));
	told.group = GROUP;
}

static void
end(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_close(q[i]);
	plx_dev_close(dev);
	UNIT_EQ(mlx5_verbs.n_ahs, 0);
	UNIT_EQ(sm.channels, 0);
	UNIT_EQ(sm.ids, 0);
	UNIT_EQ(sm.members, 0);
	memset(&sm, 0, sizeof(sm));
}

/* @return what became of it, be it later */
static int
join(unsigned i, uint64_t group, bool rx)
{
	unsigned before = told.n[rx];
	int rc = plx_queue_group_join(q[i], group, rx);

	told.group = group;
	if (rc != -EINPROGRESS)
		return rc;
	while (told.n[rx] == before)
		turns();
	UNIT_EQ(told.n[rx], before + 1);
	return told.rc;
}

static void
who_the_manager_lets_in_sends_and_hears(void)
{
	uint8_t data[MLX_GROUP_LEN] = {0};

	begin();
	UNIT_EQ_FATAL(q[0]->group_mtu, MLX_GROUP_LEN);
	sm.noise = 2;
	UNIT_EQ_FATAL(join(0, GROUP, false), 0);
	UNIT_EQ(ntohl(sm.at.sin_addr.s_addr), ADDRESS);
	UNIT_EQ_FATAL(join(1, GROUP, true), 0);
	UNIT_EQ_FATAL(join(2, GROUP, true), 0);
	UNIT_EQ(sm.members, 3);
	UNIT_EQ(mlx_queue(q[0])->stat.group_by_cm, 1);
	for (uint32_t len = 0; len <= sizeof(data); len += 256) {
		heard.n = 0;
		UNIT_EQ(plx_queue_group_tx(q[0], GROUP, data, len), 0);
		turns();
		UNIT_EQ(heard.n, 2);
		UNIT_TRUE(heard.group == GROUP && heard.len == len);
	}
	end();
}

/* A membership is one, whether for sending, for receiving or for both. */
static void
who_leaves_is_a_member_until_the_last_time(void)
{
	begin();
	UNIT_EQ_FATAL(join(0, GROUP, false), 0);
	UNIT_EQ_FATAL(join(0, GROUP, true), 0);
	UNIT_EQ_FATAL(join(0, GROUP, true), 0);
	UNIT_EQ(sm.members, 1);
	plx_queue_group_leave(q[0], GROUP, true);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 0), 0);
	turns();
	UNIT_EQ(heard.n, 1);
	plx_queue_group_leave(q[0], GROUP, true);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 0), 0);
	turns();
	UNIT_EQ(heard.n, 1);
	UNIT_EQ(sm.members, 1);
	plx_queue_group_leave(q[0], GROUP, false);
	UNIT_EQ(sm.members, 0);
	UNIT_EQ(sm.channels + sm.ids, 0);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 0), -ENOENT);
	UNIT_EQ_FATAL(join(0, GROUP + 1, true), 0);
	UNIT_EQ(sm.members, 1);
	end();
}

/* The model ends the process when a handle goes that something out there was sent by. */
static void
who_leaves_is_a_member_until_what_was_sent_is_over(void)
{
	begin();
	UNIT_EQ_FATAL(join(0, GROUP, false), 0);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), 0);
	plx_queue_group_leave(q[0], GROUP, false);
	UNIT_TRUE(mlx5_verbs.n_ahs == 1 && sm.members == 1);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), -ENOENT);
	/* who comes back meanwhile has it again, and keeps it */
	UNIT_EQ_FATAL(join(0, GROUP, false), 0);
	UNIT_TRUE(mlx5_verbs.n_ahs == 1 && sm.members == 1);
	turns();
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), 0);
	/* who still receives does so afterwards */
	UNIT_EQ_FATAL(join(0, GROUP, true), 0);
	plx_queue_group_leave(q[0], GROUP, false);
	UNIT_EQ(mlx5_verbs.n_ahs, 1);
	turns();
	UNIT_TRUE(mlx5_verbs.n_ahs == 0 && sm.members == 1);
	plx_queue_group_leave(q[0], GROUP, true);
	UNIT_EQ(sm.members, 0);
	/* and the queue may close with something out */
	UNIT_EQ_FATAL(join(0, GROUP, false), 0);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), 0);
	plx_queue_group_leave(q[0], GROUP, false);
	end();
}

static void
memberships_outlast_a_queue_pair_that_failed(void)
{
	begin();
	UNIT_EQ_FATAL(join(0, GROUP, false), 0);
	UNIT_EQ_FATAL(join(1, GROUP, true), 0);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), 0);
	mlx5_verbs_fail();
	turns();
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), -EAGAIN);
	UNIT_EQ(q[0]->dev->ops->sleep.arm(q[0]), -EBUSY);
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_control(q[i]);
	UNIT_EQ(q[0]->dev->ops->sleep.arm(q[0]), 0);
	heard.n = 0;
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), 0);
	turns();
	UNIT_EQ(heard.n, 1);
	/* what was sent by it is over, so who leaves does */
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 1), 0);
	mlx5_verbs_fail();
	plx_queue_group_leave(q[0], GROUP, false);
	turns();
	plx_queue_control(q[0]);
	turns();
	UNIT_EQ(mlx5_verbs.n_ahs, 0);
	UNIT_EQ(sm.members, 1);
	end();
}

static void
refused(int rc)
{
	for (unsigned rx = 0; rx < 2; rx++)
		UNIT_EQ(join(0, GROUP, rx != 0), rc);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 0), -ENOENT);
	UNIT_EQ(sm.channels + sm.ids + sm.members, 0);
}

static void
what_the_managers_refuse_is_an_error_and_leaves_nothing(void)
{
	begin();
	sm.refuses = -EINVAL;
	refused(-ECONNREFUSED);
	sm.refuses = -ETIMEDOUT;
	refused(-ETIMEDOUT);
	sm.refuses = 0;
	sm.fails = EADDRNOTAVAIL;
	refused(-EHOSTUNREACH);
	sm.fails = EPERM;
	refused(-EPERM);
	sm.fails = 0;
	sm.elsewhere = true;
	refused(-ENODEV);
	sm.elsewhere = false;
	sm.other_key = true;
	refused(-EPROTO);
	sm.other_key = false;
	UNIT_EQ(join(0, GROUP, true), 0);
	end();
}

static void
a_manager_that_says_nothing_is_not_waited_for_any_longer(void)
{
	begin();
	sm.silent = true;
	UNIT_EQ(join(0, GROUP, true), -ETIMEDOUT);
	UNIT_EQ(sm.members, 0);
	end();
}

/* So many join, the first one to send, and the manager lets them wait. */
static void
ask_silent(unsigned n)
{
	begin();
	sm.silent = true;
	for (unsigned i = 0; i < n; i++)
		UNIT_EQ(plx_queue_group_join(q[0], GROUP, i != 0), -EINPROGRESS);
}

/* All wait for one answer; who receives twice leaves twice. */
static void
who_joins_meanwhile_waits_for_the_same_answer(void)
{
	ask_silent(3);
	turns();
	UNIT_EQ(sm.members, 1);
	UNIT_EQ(told.n[0] + told.n[1], 0);
	UNIT_TRUE(q[0]->dev->ops->sleep.arm(q[0]) == -EBUSY); /* the answer wakes nobody */
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 0), -ENOENT);
	ring(asking);
	turns();
	UNIT_TRUE(told.n[0] == 1 && told.n[1] == 1 && told.rc == 0);
	UNIT_EQ(q[0]->dev->ops->sleep.arm(q[0]), 0);
	plx_queue_group_leave(q[0], GROUP, true);
	UNIT_EQ(plx_queue_group_tx(q[0], GROUP, (const void *)&heard, 0), 0);
	turns();
	UNIT_EQ(heard.n, 1);
	end();
}

static void
all_who_wait_are_told_of_a_refusal(void)
{
	sm.refuses = -EINVAL;
	ask_silent(2);
	ring(asking);
	turns();
	UNIT_TRUE(told.n[0] == 1 && told.n[1] == 1 && told.rc == -ECONNREFUSED);
	UNIT_EQ(sm.channels + sm.ids + sm.members, 0);
	end();
}

static void
who_leaves_before_the_answer_is_told_nothing(void)
{
	ask_silent(2);
	plx_queue_group_leave(q[0], GROUP, true);
	plx_queue_group_leave(q[0], GROUP, true);
	UNIT_EQ(sm.members, 1);
	plx_queue_group_leave(q[0], GROUP, false);
	UNIT_EQ(sm.channels + sm.ids + sm.members, 0);
	turns();
	UNIT_EQ(told.n[0] + told.n[1], 0);
	UNIT_EQ(q[0]->dev->ops->sleep.arm(q[0]), 0);
	UNIT_EQ(plx_queue_group_join(q[0], GROUP, true), -EINPROGRESS); /* and the queue closes */
	end();
}

static void
a_port_without_an_interface_has_no_groups(void)
{
	sm.no_interface = true;
	begin();
	UNIT_EQ(q[0]->group_mtu, 0);
	UNIT_EQ(join(0, GROUP, true), -EOPNOTSUPP);
	end();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(who_the_manager_lets_in_sends_and_hears),
		UNIT_TEST(who_leaves_is_a_member_until_the_last_time),
		UNIT_TEST(who_leaves_is_a_member_until_what_was_sent_is_over),
		UNIT_TEST(memberships_outlast_a_queue_pair_that_failed),
		UNIT_TEST(what_the_managers_refuse_is_an_error_and_leaves_nothing),
		UNIT_TEST(a_manager_that_says_nothing_is_not_waited_for_any_longer),
		UNIT_TEST(who_joins_meanwhile_waits_for_the_same_answer),
		UNIT_TEST(all_who_wait_are_told_of_a_refusal),
		UNIT_TEST(who_leaves_before_the_answer_is_told_nothing),
		UNIT_TEST(a_port_without_an_interface_has_no_groups),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"mlx_join", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	plx_log_set_level(RTE_LOG_EMERG);
	mlx_cm_glue = (struct mlx_cm_glue){.create_event_channel = create_event_channel,
		.destroy_event_channel = destroy_event_channel, .create_id = create_id,
		.destroy_id = destroy_id, .bind_addr = bind_addr, .get_cm_event = get_cm_event,
		.ack_cm_event = ack_cm_event, .join_multicast_ex = join_multicast_ex,
		.leave_multicast = leave_multicast};
	if (plx_init_drivers() != 0)
		return EXIT_FAILURE;
	return unit_run(suites);
}

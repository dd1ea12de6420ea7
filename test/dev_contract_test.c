/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_contract_test.c - what plx_dev_ops.h promises, tried on every driver
 *
 * The suite "contract" runs on the fake device, on shm with a ring for every sender,
 * on shm where all share the mail ring, and on net_mlx where there is an RDMA device. What
 * only shm can do, other processes among it, follows in suites of its own. No EAL is needed
 * below lib/mem.
 *
 * A network needs time, and turns of both sides: there whoever looks gives one to every queue.
 *
 * usage: dev_contract_test [NAME-OF-A-DRIVER [MS [tags]]]   only the suites of this one; a
 * network that was quiet for MS, instead of 60, has nothing more to say; its devices match tags
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "plx_fence.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_proc.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"
#include "plx_unit_shm.h"

#define SENDERS	   6
#define MSG_MAX	   (SHM_MSG_MAX + 64)
#define PATIENCE_S 20

static struct plx_conf conf;
static struct plx_dev *dev;
static const char *dev_name;
static const char *fast_peers; /* text of the setting */
static bool with_tags;
static uint64_t rng_state;
static struct plx_queue *open_queues[8];

/* -- queues and messages -- */

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For loops that wait for another process: false when it has taken too long. */
static bool
patient(uint64_t since_ns)
{
	sched_yield();
	return now_ns() - since_ns < PATIENCE_S * UINT64_C(1000000000);
}

static void
dev_begin(void)
{
	plx_conf_defaults(&conf);
	CU_ASSERT_EQUAL_FATAL(plx_conf_set(&conf, "shm.fast_peers", fast_peers, PLX_CONF_FROM_API,
		NULL), 0);
	plx_conf_set(&conf, "shm.wide_peers", "1", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "shm.huge", "no", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.connect_ms", "300", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.ports", "1", PLX_CONF_FROM_API, NULL); /* however many there are */
	plx_conf_set(&conf, "tag.offload", with_tags ? "yes" : "no", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.tag_matching", "yes", PLX_CONF_FROM_API, NULL);
	fake_reset(1);
	memset(open_queues, 0, sizeof(open_queues)); /* a test that failed closed none */
	UNIT_EQ_FATAL(plx_dev_open(dev_name, &conf, &dev), 0);
	rng_state = 42;
}

static void
dev_end(void)
{
	plx_dev_close(dev);
	dev = NULL;
}

static bool
is_fake(void)
{
	return dev_name[0] == 'f';
}

static bool
is_net(void)
{
	return dev_name[0] == 'n';
}

static struct plx_queue *
queue_new(void)
{
	struct plx_queue *q = NULL;

	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q), 0);
	for (unsigned i = 0; i < sizeof(open_queues) / sizeof(open_queues[0]); i++) {
		if (open_queues[i] == NULL) {
			open_queues[i] = q;
			break;
		}
	}
	return q;
}

static void
queue_close(struct plx_queue *q)
{
	for (unsigned i = 0; i < sizeof(open_queues) / sizeof(open_queues[0]); i++)
		if (open_queues[i] == q)
			open_queues[i] = NULL;
	plx_queue_close(q);
}

/* What the others' owners would do meanwhile: nobody has sent to them. */
static void
net_others(const struct plx_queue *q)
{
	struct plx_rx rx;

	for (unsigned i = 0; i < sizeof(open_queues) / sizeof(open_queues[0]); i++) {
		if (open_queues[i] == NULL || open_queues[i] == q)
			continue;
		UNIT_EQ_FATAL(open_queues[i]->rx_burst(open_queues[i], &rx, 1), 0);
		plx_queue_control(open_queues[i]);
	}
}

static struct plx_peer *
peer_known(struct plx_queue *from, const struct plx_addr *addr)
{
	struct plx_peer *peer = NULL;

	UNIT_EQ_FATAL(plx_peer_get(from, addr, &peer), 0);
	return peer;
}

static struct plx_peer *
connected(struct plx_queue *from, const struct plx_addr *addr)
{
	struct plx_peer *peer = peer_known(from, addr);

	UNIT_EQ_FATAL(plx_peer_connect(peer), 0);
	UNIT_EQ(peer->state, PLX_PEER_OPEN);
	plx_peer_settle(peer);
	for (uint64_t since = now_ns(); is_net() && mlx_peer(peer)->conn != MLX_CONN_OPEN;) {
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return peer;
}

/* @return whether the peer can be sent to, once it is known whether it answers. */
static bool
connects(struct plx_queue *from, struct plx_peer *peer)
{
	if (plx_peer_connect(peer) != 0)
		return false;
	plx_peer_settle(peer);
	plx_queue_control(from);
	return peer->state == PLX_PEER_OPEN;
}

static struct plx_peer *
connected_to(struct plx_queue *from, const struct plx_queue *to)
{
	struct plx_addr addr;

	plx_queue_addr(to, &addr);
	return connected(from, &addr);
}

/* Message number i of a sender: header i, len bytes that follow from both. */
static int
msg_send(struct plx_peer *peer, uint64_t i, uint32_t len)
{
	static uint8_t data[MSG_MAX];
	struct plx_tx tx = {.peer = peer, .hdr = &i, .hdr_len = sizeof(i), .data = data,
		.len = len, .op = (uint8_t)i};
	int rc;

	unit_fill(data, len, i);
	if (len <= peer->short_max && i % 2 == 0)
		rc = plx_peer_tx_short(peer, (uint8_t)i, i, data, len);
	else
		rc = plx_peer_tx(&tx);
	memset(data, 0xee, len); /* copied before the call returned, or never */
	return rc;
}

static bool
msg_is(const struct plx_rx *rx, uint64_t i, uint32_t len)
{
	uint64_t hdr = 0;
	bool good;

	if (rx->len != len + sizeof(hdr)) {
		printf("message %llu has %u bytes, not %zu\n", (unsigned long long)i, rx->len,
			len + sizeof(hdr));
		return false;
	}
	memcpy(&hdr, rx->data, sizeof(hdr));
	good = hdr == i && rx->op == (uint8_t)i &&
	       unit_is_filled(rx->data + sizeof(hdr), len, i);
	if (!good)
		printf("message %llu came as %llu, opcode %u\n", (unsigned long long)i,
			(unsigned long long)hdr, rx->op);
	return good;
}

/* The number in a message's header. */
static uint64_t
msg_number(const struct plx_rx *rx)
{
	uint64_t hdr = UINT64_MAX;

	if (rx->len >= sizeof(hdr))
		memcpy(&hdr, rx->data, sizeof(hdr));
	return hdr;
}

static uint16_t
burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	return q->rx_burst(q, rx, n);
}

#define NET_LOOKS 2000u /* nothing has come at so many looks, and for so long: nothing comes */

static uint64_t net_quiet_ns = 60000000u;

static uint16_t
net_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	uint64_t since = now_ns();
	unsigned looks = 0;

	do {
		uint16_t got = burst(q, rx, n);

		if (got != 0)
			return got;
		net_others(q);
	} while (++looks < NET_LOOKS || now_ns() - since < net_quiet_ns);
	return 0;
}

/* One burst, looking again while there is none; a cold slot's turn comes within 64 looks. */
static uint16_t
burst_some(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	if (is_net())
		return net_burst(q, rx, n);
	for (unsigned i = 0; i < 200; i++) {
		uint16_t got = burst(q, rx, n);

		if (got != 0)
			return got;
	}
	return 0;
}

/* Length of message i, spread over what the peer takes. */
static uint32_t
len_of(uint64_t i, uint32_t mtu)
{
	uint64_t state = i + 7;
	uint64_t r = unit_rng(&state);

	if (r % 4 != 0)
		return (uint32_t)(r >> 8) % 200;
	return (uint32_t)(r >> 8) % (mtu - 8 + 1);
}

/* Take and check all that is there of one sender; *next is the number of the next. */
static unsigned
drain(struct plx_queue *q, uint32_t mtu, uint64_t *next)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	unsigned total = 0;
	uint16_t n;

	while ((n = burst_some(q, rx, PLX_DEV_RX_BURST)) != 0) {
		for (uint16_t k = 0; k < n; k++, ++*next)
			CU_ASSERT_FATAL(msg_is(&rx[k], *next, len_of(*next, mtu)));
		q->rx_release(q, rx, n);
		total += n;
	}
	return total;
}

/* -- the contract -- */

static void
what_was_taken_arrives_in_order_and_unchanged(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, next = 0;
	const uint64_t n = is_net() ? 3000 : 20000; /* rings go round a hundred times and more */

	if (is_fake()) {
		fake.full_percent = 10;
		fake.delay_max = 3;
		fake.short_percent = 20;
		fake.depth = 32;
	}
	while (next < n) {
		while (sent < n && unit_rng(&rng_state) % 64 != 0) {
			int rc = msg_send(to_b, sent, len_of(sent, to_b->mtu));

			if (rc != 0) {
				UNIT_EQ_FATAL(rc, -EAGAIN);
				break;
			}
			sent++;
		}
		drain(b, to_b->mtu, &next);
	}
	UNIT_EQ(sent, n);
	UNIT_EQ(a->stat.tx_msgs, n);
	UNIT_EQ(b->stat.rx_msgs, n);
	UNIT_EQ(a->stat.tx_bytes, b->stat.rx_bytes);
	UNIT_EQ(b->stat.rx_drop_bad_cell + b->stat.rx_drop_bad_peer + b->stat.rx_skip_dead, 0);
	queue_close(a);
	queue_close(b);
}

static void
a_full_queue_answers_again_and_changes_nothing(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, next = 0;

	fake.depth = 50;
	for (unsigned round = 0; round < 20; round++) {
		uint64_t full = a->stat.tx_full;
		int rc;

		while ((rc = msg_send(to_b, sent, len_of(sent, to_b->mtu))) == 0)
			sent++;
		UNIT_EQ_FATAL(rc, -EAGAIN);
		/* A larger one of its kind cannot fit either, and a refused one leaves no trace. */
		for (unsigned i = 0; i < 3; i++)
			UNIT_EQ(msg_send(to_b, (1 << 20) + (uint8_t)sent, to_b->mtu - 8), -EAGAIN);
		UNIT_EQ(a->stat.tx_full, full + 4);
		UNIT_EQ(to_b->state, PLX_PEER_OPEN);
		drain(b, to_b->mtu, &next);
		UNIT_EQ_FATAL(next, sent);
	}
	UNIT_TRUE(sent > 20 * 10);
	queue_close(a);
	queue_close(b);
}

static void
data_stays_until_it_is_released(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint64_t sent = 0, next = 0;

	fake.depth = 40;
	for (unsigned round = 0; round < (is_net() ? 50 : 200); round++) {
		uint16_t n;

		while (msg_send(to_b, sent, len_of(sent, to_b->mtu)) == 0)
			sent++;
		n = burst_some(b, rx, 1 + unit_rng(&rng_state) % PLX_DEV_RX_BURST);
		CU_ASSERT_FATAL(n != 0 || is_net()); /* there the sender may have had to wait */
		/* The sender goes on as far as it can while we still look at these. */
		while (msg_send(to_b, sent, len_of(sent, to_b->mtu)) == 0)
			sent++;
		for (uint16_t k = 0; k < n; k++, next++)
			CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, to_b->mtu)));
		b->rx_release(b, rx, n);
	}
	drain(b, to_b->mtu, &next);
	UNIT_EQ(next, sent);
	queue_close(a);
	queue_close(b);
}

static void
every_length_up_to_the_mtu_is_taken_and_no_longer(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const uint32_t lens[] = {0, 1, 7, 8, 9, to_b->short_max - 1, to_b->short_max,
		to_b->short_max + 1, 500, to_b->mtu - 9, to_b->mtu - 8};
	struct plx_tx bare = {.peer = to_b, .hdr = "", .op = 77};
	struct plx_rx rx[4];

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		/* Both ways in: even numbers go by tx_short where that is possible. */
		for (uint64_t number = 2 * i; number < 2 * i + 2; number++) {
			UNIT_EQ(msg_send(to_b, number, lens[i]), 0);
			UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
			CU_ASSERT(msg_is(&rx[0], number, lens[i]));
			b->rx_release(b, rx, 1);
			if (is_net())
				net_others(b); /* a learns that there is room again */
		}
	}
	UNIT_EQ(plx_peer_tx(&bare), 0); /* neither header nor data */
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	UNIT_EQ(rx[0].len, 0);
	UNIT_EQ(rx[0].op, 77);
	b->rx_release(b, rx, 1);
	UNIT_EQ(msg_send(to_b, 1, to_b->mtu - 7), -EMSGSIZE);
	UNIT_EQ(msg_send(to_b, 1, to_b->mtu), -EMSGSIZE);
	UNIT_EQ(burst_some(b, rx, 4), 0);
	UNIT_EQ(to_b->state, PLX_PEER_OPEN);
	queue_close(a);
	queue_close(b);
}

/* A look and, where that is not enough, a burst. @return how many messages */
static uint16_t
look_some(struct plx_queue *q, struct plx_rx *rx, enum plx_rx_found *found)
{
	*found = q->rx_look(q, rx);
	if (*found == PLX_RX_BURST)
		return burst_some(q, rx, 1);
	return *found != PLX_RX_NONE;
}

static void
look_end(struct plx_queue *q, const struct plx_rx *rx, enum plx_rx_found found)
{
	if (found == PLX_RX_BURST || found == PLX_RX_HELD)
		q->rx_release(q, rx, 1);
}

/* More messages than a ring has places. */
static void
a_look_tells_whether_something_has_come(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	enum plx_rx_found found;
	struct plx_rx rx[4];

	for (uint32_t i = 0; i < 300; i++) {
		UNIT_EQ(burst_some(b, rx, 4), 0);
		UNIT_TRUE(b->rx_look(b, rx) == PLX_RX_NONE || !plx_queue_looks(b));
		UNIT_EQ_FATAL(msg_send(to_b, i, len_of(i, to_b->mtu)), 0);
		UNIT_EQ_FATAL(look_some(b, rx, &found), 1);
		CU_ASSERT(msg_is(&rx[0], i, len_of(i, to_b->mtu)));
		look_end(b, rx, found);
	}
	queue_close(a);
	queue_close(b);
}

/* Some by slots of their own, and the rest by mail. */
static void
a_look_tells_of_each_of_many_senders(void)
{
	enum { MANY = 8 };
	struct plx_queue *b = queue_new(), *a[MANY];
	struct plx_peer *to_b[MANY];
	enum plx_rx_found found;
	struct plx_rx rx[4];

	for (unsigned k = 0; k < MANY; k++) {
		a[k] = queue_new();
		to_b[k] = connected_to(a[k], b);
	}
	for (uint32_t i = 0; i < 30 * MANY; i++) {
		UNIT_EQ(burst_some(b, rx, 4), 0);
		UNIT_TRUE(b->rx_look(b, rx) == PLX_RX_NONE || !plx_queue_looks(b));
		UNIT_EQ_FATAL(msg_send(to_b[i % MANY], i, 8), 0);
		UNIT_EQ_FATAL(look_some(b, rx, &found), 1);
		CU_ASSERT(msg_is(&rx[0], i, 8));
		look_end(b, rx, found);
	}
	for (unsigned k = 0; k < MANY; k++)
		queue_close(a[k]);
	queue_close(b);
}

static void
a_look_takes_a_short_message(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];

	UNIT_EQ(b->rx_look(b, rx), PLX_RX_BURST); /* the doorbell tells of the sender */
	UNIT_EQ(burst_some(b, rx, 4), 0);
	for (uint32_t i = 0; i < 300; i++) {
		const uint32_t len = i % 7 == 0 ? 2000 : 8 + i % 50;

		UNIT_EQ(b->rx_look(b, rx), PLX_RX_NONE);
		UNIT_EQ_FATAL(msg_send(to_b, i, len), 0);
		UNIT_EQ_FATAL(b->rx_look(b, rx), len < 100 ? PLX_RX_ONE : PLX_RX_HELD);
		CU_ASSERT_PTR_EQUAL(rx[0].src->q, b);
		CU_ASSERT(msg_is(&rx[0], i, len));
		if (len >= 100)
			b->rx_release(b, rx, 1);
	}
	for (uint32_t i = 0; i < 2; i++) /* of several longer ones a burst is due */
		UNIT_EQ_FATAL(msg_send(to_b, i, 2000), 0);
	UNIT_EQ(b->rx_look(b, rx), PLX_RX_BURST);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 2);
	CU_ASSERT(msg_is(&rx[1], 1, 2000));
	b->rx_release(b, rx, 2);
	for (uint32_t i = 0; i < 3; i++)
		UNIT_EQ_FATAL(msg_send(to_b, i, 8), 0);
	for (uint32_t i = 0; i < 3; i++) {
		UNIT_EQ(b->rx_look(b, rx), i < 2 ? PLX_RX_MORE : PLX_RX_ONE);
		CU_ASSERT(msg_is(&rx[0], i, 8));
	}
	UNIT_EQ(b->stat.rx_msgs, 305);
	queue_close(a);
	queue_close(b);
}

/* A sender has all cells again that were taken one by one, but for the last. */
static void
what_looks_take_is_free_for_the_sender(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint32_t sent = 0, got = 0;
	struct plx_rx rx[4];

	UNIT_EQ_FATAL(msg_send(to_b, 0, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	b->rx_release(b, rx, 1);
	for (unsigned round = 0; round < 10; round++) {
		while (msg_send(to_b, sent, 8) == 0)
			sent++;
		UNIT_TRUE(sent - got >= SHM_CELLS - SHM_CELLS / 4);
		while (b->rx_look(b, rx) != PLX_RX_NONE) {
			CU_ASSERT(msg_is(&rx[0], got, 8));
			got++;
		}
		UNIT_EQ_FATAL(sent, got);
	}
	queue_close(a);
	queue_close(b);
}

/* Sender and receiver see the same page at different addresses. */
static void
a_peer_tells_where_its_next_message_is_written(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];

	for (uint32_t i = 0; i < 300; i++) {
		uint32_t len = i % 7 == 0 ? 2000 : 8 + i % 50;
		const uintptr_t line = (uintptr_t)to_b->tx_line;

		UNIT_EQ_FATAL(msg_send(to_b, i, len), 0);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		if (len < 100)
			UNIT_EQ(((uintptr_t)rx[0].data ^ line) % 4096 / PLX_LINE, 0);
		UNIT_TRUE(to_b->tx_line != NULL && (uintptr_t)to_b->tx_line != line);
		b->rx_release(b, rx, 1);
	}
	queue_close(a);
	queue_close(b);
}

/* Over several laps of a ring, taken in pieces of all sizes: how many messages the peer is sure of. */
static void
what_a_driver_is_sure_of_it_takes(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, next = 0, n_sure = 0, since = now_ns();
	struct plx_rx rx[PLX_DEV_RX_BURST];

	while (next < 5000) {
		uint64_t more = unit_rng(&rng_state) % 200;

		UNIT_TRUE_FATAL(patient(since));

		for (uint64_t i = 0; i < more && sent < 5000; i++) {
			bool sure = plx_peer_is_sure(to_b, 8);
			int rc = plx_peer_tx_short(to_b, (uint8_t)sent, sent, &sent, 8);

			if (rc != 0) {
				UNIT_EQ_FATAL(rc, -EAGAIN);
				UNIT_TRUE_FATAL(!sure);
				break;
			}
			n_sure += sure;
			sent++;
		}
		for (more = unit_rng(&rng_state) % 200; more > 0 && next < sent;) {
			uint16_t got = burst_some(b, rx, RTE_MIN(more, (uint64_t)PLX_DEV_RX_BURST));

			if (got == 0)
				break;
			for (uint16_t k = 0; k < got; k++, next++) {
				uint64_t hdr, body;

				UNIT_EQ_FATAL(rx[k].len, 16);
				memcpy(&hdr, rx[k].data, 8);
				memcpy(&body, rx[k].data + 8, 8);
				UNIT_EQ_FATAL(hdr, next);
				UNIT_EQ_FATAL(body, next);
			}
			b->rx_release(b, rx, got);
			more -= got;
		}
		plx_queue_control(a);
	}
	UNIT_TRUE(!plx_peer_is_sure(to_b, (uint64_t)to_b->short_max + 1));
	if (!is_fake())
		UNIT_TRUE(shm_peer(to_b)->tx_mode == SHM_TX_SLOT ? n_sure > 4000 : n_sure == 0);
	queue_close(a);
	UNIT_EQ(sent, 5000);
	queue_close(b);
}

static void
a_line_is_asked_for_once(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];
	const void *line;

	UNIT_EQ_FATAL(msg_send(to_b, 1, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	b->rx_release(b, rx, 1);
	line = to_b->tx_line;
	plx_peer_tx_soon(to_b);
	CU_ASSERT_PTR_EQUAL(to_b->tx_asked, line);
	to_b->tx_asked = a;
	plx_peer_tx_now(to_b);
	CU_ASSERT_PTR_EQUAL(to_b->tx_asked, a);
	plx_peer_tx_soon(to_b);
	CU_ASSERT_PTR_EQUAL(to_b->tx_asked, line);
	queue_close(a);
	queue_close(b);
}

static void
pack_numbers(void *arg, uint64_t offset, void *to, uint64_t len)
{
	uint8_t *p = to;

	++*(unsigned *)arg;
	for (uint64_t i = 0; i < len; i++)
		p[i] = (uint8_t)(offset + i);
}

static void
packed_data_is_written_once_when_it_is_taken(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const uint32_t lens[] = {1, 60, 700, to_b->mtu - 8};
	uint64_t hdr = 5;
	unsigned calls = 0, taken = 0;
	struct plx_tx tx = {.peer = to_b, .hdr = &hdr, .hdr_len = 8, .op = 9, .pack = pack_numbers,
		.pack_arg = &calls, .pack_offset = 3};
	struct plx_rx rx[4];

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		tx.len = lens[i];
		UNIT_EQ(plx_peer_tx(&tx), 0);
		UNIT_EQ(calls, i + 1);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		UNIT_EQ_FATAL(rx[0].len, lens[i] + 8);
		for (uint32_t k = 0; k < lens[i]; k++)
			CU_ASSERT_FATAL(rx[0].data[8 + k] == (uint8_t)(3 + k));
		b->rx_release(b, rx, 1);
	}
	fake.depth = 10;
	calls = 0;
	while (plx_peer_tx(&tx) == 0)
		taken++;
	UNIT_EQ(calls, taken); /* the one that found it full was not written */
	queue_close(a);
	queue_close(b);
}

/* Everything that arrives from several senders, each in its order. */
static unsigned
drain_senders(struct plx_queue *q, uint64_t *next, struct plx_peer **src, uint16_t n_burst)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	unsigned total = 0;
	uint16_t n;

	while ((n = burst_some(q, rx, n_burst)) != 0) {
		for (uint16_t k = 0; k < n; k++) {
			uint64_t number = msg_number(&rx[k]);
			uint64_t s = number / 1000000;

			CU_ASSERT_FATAL(s < SENDERS);
			UNIT_EQ_FATAL(number % 1000000, next[s]);
			CU_ASSERT_FATAL(msg_is(&rx[k], number, len_of(number, 1024)));
			next[s]++;
			if (src[s] == NULL)
				src[s] = rx[k].src;
			CU_ASSERT_PTR_EQUAL(src[s], rx[k].src);
		}
		q->rx_release(q, rx, n);
		total += n;
	}
	return total;
}

static void
senders_exchange(uint16_t n_burst, uint64_t n)
{
	struct plx_queue *a[SENDERS], *b = queue_new();
	struct plx_peer *to_b[SENDERS], *src[SENDERS] = {NULL};
	uint64_t sent[SENDERS] = {0}, next[SENDERS] = {0}, total = 0;

	for (unsigned s = 0; s < SENDERS; s++) {
		a[s] = queue_new();
		to_b[s] = connected_to(a[s], b);
	}
	while (total < n * SENDERS) {
		unsigned got;

		for (unsigned i = 0; i < 100; i++) {
			unsigned s = unit_rng(&rng_state) % SENDERS;
			uint64_t number = s * 1000000 + sent[s];

			if (sent[s] < n && msg_send(to_b[s], number, len_of(number, 1024)) == 0)
				sent[s]++;
		}
		got = drain_senders(b, next, src, n_burst);
		UNIT_TRUE_FATAL(got != 0 || total == n * SENDERS);
		total += got;
	}
	for (unsigned s = 0; s < SENDERS; s++) {
		UNIT_EQ(next[s], n);
		for (unsigned t = 0; t < s; t++)
			CU_ASSERT_PTR_NOT_EQUAL(src[s], src[t]);
		queue_close(a[s]);
	}
	UNIT_EQ(b->stat.rx_drop_bad_cell + b->stat.rx_drop_bad_peer, 0);
	queue_close(b);
}

static void
many_senders_keep_their_order_each(void)
{
	senders_exchange(PLX_DEV_RX_BURST, is_net() ? 300 : 3000);
}

static void
a_burst_of_one_takes_from_many_senders_too(void)
{
	senders_exchange(1, 100);
	senders_exchange(3, 100);
}

static void
a_queue_sends_to_itself(void)
{
	struct plx_queue *a = queue_new();
	struct plx_peer *self = connected_to(a, a);
	uint64_t next = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		int rc = msg_send(self, i, len_of(i, self->mtu));

		if (i % 10 == 0 || rc == -EAGAIN)
			drain(a, self->mtu, &next);
		if (rc == -EAGAIN)
			rc = msg_send(self, i, len_of(i, self->mtu));
		UNIT_EQ_FATAL(rc, 0);
	}
	drain(a, self->mtu, &next);
	UNIT_EQ(next, 1000);
	plx_queue_control(a);
	UNIT_EQ(self->state, PLX_PEER_OPEN);
	queue_close(a);
}

static void
one_peer_stands_for_an_address_and_for_what_comes_from_it(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b), *to_a = connected_to(b, a);
	struct plx_addr addr;
	struct plx_peer *again;
	struct plx_rx rx[4];

	plx_queue_addr(b, &addr);
	again = peer_known(a, &addr);
	CU_ASSERT_PTR_EQUAL(again, to_b);
	plx_peer_put(again);
	UNIT_EQ(a->stat.peers, 1);
	UNIT_EQ(msg_send(to_b, 1, 10), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	CU_ASSERT_PTR_EQUAL(rx[0].src, to_a);
	b->rx_release(b, rx, 1);
	UNIT_EQ(plx_peer_connect(to_b), 0); /* once more is no error */
	queue_close(a);
	queue_close(b);
}

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

static void
addresses_of_other_hosts_and_other_forms_are_refused(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_addr good, bad;
	struct plx_peer *peer = NULL;

	plx_queue_addr(b, &good);
	for (unsigned bit = 96; bit < 128; bit++) { /* the boot, which stands behind the uid */
		bad = good;
		bad.bytes[bit / 8] ^= 1 << bit % 8;
		UNIT_EQ(plx_peer_get(a, &bad, &peer), -EHOSTUNREACH);
	}
	bad = good;
	for (unsigned len = 0; len <= 255; len++) {
		if (len == good.len)
			continue;
		bad.len = (uint8_t)len;
		UNIT_EQ(plx_peer_get(a, &bad, &peer), -EINVAL);
	}
	CU_ASSERT_PTR_NULL(peer);
	UNIT_EQ(a->stat.peers, 0);
	queue_close(a);
	queue_close(b);
}

static unsigned n_told;
static struct plx_peer *told;

static void
on_dead(struct plx_peer *peer)
{
	n_told++;
	told = peer;
}

static void
a_stale_address_does_not_connect(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_addr addr;
	struct plx_peer *peer;

	plx_queue_addr(b, &addr);
	queue_close(b);
	n_told = 0;
	a->on_dead = on_dead;
	peer = peer_known(a, &addr);
	UNIT_TRUE(plx_peer_connect(peer) < 0);
	UNIT_EQ(peer->state, PLX_PEER_DEAD);
	UNIT_EQ(n_told, 1);
	UNIT_TRUE(plx_peer_connect(peer) < 0);
	UNIT_TRUE(msg_send(peer, 1, 8) < 0);
	UNIT_EQ(n_told, 1);
	plx_peer_put(peer);
	plx_queue_control(a); /* frees it */
	UNIT_EQ(a->n_dead, 0);
	queue_close(a);
}

/* Of a sender that has gone, `sent` messages were taken by its device. */
static void
expect_farewell(struct plx_queue *b, struct plx_peer *to_a, uint32_t mtu, uint64_t at_most,
	uint64_t at_least)
{
	struct plx_rx rx[4];
	uint64_t next = 0;
	uint16_t n;

	/* Control may come first: what was sent is still delivered before it is told. */
	plx_queue_control(b);
	while ((n = burst_some(b, rx, 4)) != 0) {
		for (uint16_t k = 0; k < n; k++, next++) {
			CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, mtu)));
			CU_ASSERT_PTR_EQUAL(rx[k].src, to_a);
		}
		UNIT_EQ(n_told, 0); /* not while we hold its message */
		b->rx_release(b, rx, n);
		if (n_told != 0)
			break;
		plx_queue_control(b);
	}
	UNIT_TRUE(next <= at_most);
	UNIT_TRUE(next >= at_least);
	for (unsigned i = 0; i < 5; i++) {
		plx_queue_control(b);
		UNIT_EQ(burst_some(b, rx, 4), 0);
	}
	UNIT_EQ(n_told, 1);
	CU_ASSERT_PTR_EQUAL(told, to_a);
	UNIT_EQ(to_a->state, PLX_PEER_DEAD);
	UNIT_TRUE(msg_send(to_a, 1, 8) < 0);
	UNIT_TRUE(msg_send(to_a, 2, 8) != -EAGAIN);
	UNIT_EQ(b->stat.peers_dead, 1);
	UNIT_EQ(n_told, 1);
}

static void
farewell(unsigned n_msgs, bool look_first)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b), *to_a = connected_to(b, a);
	uint32_t mtu = to_b->mtu;
	struct plx_rx rx[4];
	unsigned sent = 0;

	n_told = 0;
	b->on_dead = on_dead;
	if (look_first)
		UNIT_EQ(burst_some(b, rx, 4), 0);
	while (sent < n_msgs && msg_send(to_b, sent, len_of(sent, mtu)) == 0)
		sent++;
	UNIT_TRUE(sent == n_msgs || (is_net() && sent >= MLX_CREDIT_FIRST / 2));
	n_msgs = sent;
	if (is_fake()) {
		fake_kill(a);
		queue_close(a);
		expect_farewell(b, to_a, mtu, n_msgs, 0);
	} else {
		queue_close(a);
		expect_farewell(b, to_a, mtu, n_msgs, n_msgs);
	}
	queue_close(b);
}

static void
a_dead_peer_is_told_once_and_after_its_messages(void)
{
	for (unsigned n = 0; n < 40; n += 13)
		farewell(n, true);
}

static void
a_dead_peer_never_heard_before_is_told_after_its_messages(void)
{
	for (unsigned n = 1; n < 40; n += 13)
		farewell(n, false);
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

static uint8_t buf_here[200000], buf_there[200000];

static void
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

/* Several pieces by one call; at a bad one it stops, and the next are not touched. */
static void
rma_bursts(struct plx_peer *peer, uint64_t remote)
{
	struct plx_rma_op ops[PLX_RMA_BURST];
	unsigned i, n;

	for (unsigned put = 2; put-- > 0;) {
		unit_fill(buf_here, sizeof(buf_here), 3);
		if (!put)
			memset(buf_here, 0xaa, sizeof(buf_here));
		for (i = 0; i < PLX_RMA_BURST; i++)
			ops[i] = (struct plx_rma_op){.peer = peer, .local = buf_here + i * 20000,
				.remote = remote + i * 20000, .len = i == 5 ? 0 : 10000 + i, .put = put};
		n = plx_peer_rma_burst(ops, PLX_RMA_BURST);
		UNIT_EQ(n, PLX_RMA_BURST);
		ops[3].remote = 64;
		UNIT_EQ(plx_peer_rma_burst(ops, PLX_RMA_BURST), 3);
		UNIT_EQ(plx_peer_rma_burst(ops + 3, 2), 0);
		UNIT_EQ(plx_peer_rma(&ops[3]), -EFAULT);
	}
	for (i = 0; i < PLX_RMA_BURST; i++) {
		static uint8_t want[sizeof(buf_here)];

		unit_fill(want, sizeof(want), 3);
		UNIT_SAME(buf_here + i * 20000, want + i * 20000, ops[i].len);
		UNIT_EQ(buf_here[i * 20000 + ops[i].len], 0xaa);
	}
}

static void
rma_reads_and_writes_here(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);

	UNIT_TRUE_FATAL(to_b->caps & PLX_DEV_GET && to_b->caps & PLX_DEV_PUT);
	rma_reads_and_writes(to_b, (uintptr_t)buf_there, sizeof(buf_there));
	if (a->dev->ops->rma.burst != plx_dev_no_burst)
		rma_bursts(to_b, (uintptr_t)buf_there);
	UNIT_TRUE(a->stat.rma_ops >= 16);
	UNIT_TRUE(a->stat.rma_bytes > 2 * sizeof(buf_there));
	queue_close(a);
	queue_close(b);
}

static int
bad_addresses_here(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);

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

/* -- net_mlx -- */

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
		m.net_bits = MLX_NET_BITS_MAX;
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
	UNIT_TRUE(mlx_queue(a)->stat.conn_asked_again > 0);
	plx_peer_put(peer);
	plx_queue_control(a); /* frees it */
	UNIT_EQ(a->n_dead, 0);
	queue_close(a);
}

static void
rma_over(void *arg, int err)
{
	int *out = arg;

	UNIT_EQ(*out, 1); /* told once */
	*out = err;
}

/* Until the device has done it. @return 0 or -errno */
static int
net_rma(struct plx_rma_op *op)
{
	uint64_t since = now_ns();
	int over = 1, rc;

	op->done = rma_over;
	op->arg = &over;
	rc = plx_peer_rma(op);
	if (rc != -EINPROGRESS)
		return rc;
	while (over == 1) {
		net_others(NULL);
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
		UNIT_EQ(net_rma(&op), 0);
		CU_ASSERT(unit_is_filled(buf_there, lens[i], i));
		memset(buf_here, 0xaa, sizeof(buf_here));
		op.put = false;
		UNIT_EQ(net_rma(&op), 0);
		CU_ASSERT(unit_is_filled(buf_here, lens[i], i));
		CU_ASSERT(lens[i] == sizeof(buf_here) || buf_here[lens[i]] == 0xaa);
	}
	plx_queue_mem_dereg(b, &mem, true);
	UNIT_TRUE(mem.drv == NULL);
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
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_EQ(a->by_cpu, false);
	port->soft = soft;
	plx_queue_mem_dereg(b, &mem, true);
	queue_close(a);
	queue_close(b);
}

/* As soon as there is room. */
static int
net_rma_soon(struct plx_rma_op *op, bool told)
{
	uint64_t since = now_ns();
	int rc;

	while ((rc = told ? net_rma(op)
			  : plx_peer_put_short(op->peer, op->local, (uint32_t)op->len, op->remote,
				    op->key)) == -EAGAIN) {
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return rc;
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

		UNIT_EQ_FATAL(net_rma_soon(&op, false), 0);
	}
	unit_fill(buf_here, to_b->short_max, 3);
	UNIT_EQ(net_rma_soon(&(struct plx_rma_op){.peer = to_b, .local = buf_here, .put = true,
		.remote = (uintptr_t)&words[N + 1], .len = to_b->short_max, .key = mem.key}, false), 0);
	UNIT_EQ(net_rma_soon(&(struct plx_rma_op){.peer = to_b, .put = true}, true), 0);
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
	UNIT_EQ(region.atomics, PLX_DEV_ATOMICS_OWN);
	op.key = region.keys[0].mem.key;
	memset(buf_there, 0, 24);
	for (unsigned i = 0; i < 2; i++) {
		op.peer = connected_to(q[i], q[2]);
		UNIT_EQ(op.peer->domain, plx_dev_domain(op.peer->proc, region.keys[0].port));
		op.atomic = PLX_DEV_FADD;
		op.operand[0] = 5;
		UNIT_EQ(net_rma(&op), 0);
		UNIT_EQ(old, i * 5);
	}
	op.atomic = PLX_DEV_CSWAP;
	op.operand[0] = 9;
	op.operand[1] = ~0ull;
	UNIT_EQ(net_rma(&op), 0);
	UNIT_EQ(words[1], 10); /* it was not 9 */
	op.operand[0] = old;
	UNIT_EQ(net_rma(&op), 0);
	UNIT_EQ(old, 10);
	UNIT_EQ(words[1], ~0ull);
	UNIT_EQ(words[0] | words[2], 0);
	/* Beyond its end. */
	op.atomic = PLX_DEV_NO_ATOMIC;
	op.remote = (uintptr_t)buf_there + sizeof(buf_there) - 4;
	UNIT_EQ(net_rma(&op), -ECONNRESET);
	for (unsigned i = 0; i < 3; i++)
		queue_close(q[i]);
	plx_dev_region_close(&region);
	UNIT_TRUE(region.dev == NULL);
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
	UNIT_EQ(st->mem_regs, 0);
	UNIT_EQ(plx_queue_mem_reg(b, buf_there + 100, 29901, PLX_DEV_MEM_WRITE, &beyond), 0);
	UNIT_EQ(st->mem_regs, 1);
	UNIT_EQ(plx_queue_mem_reg(b, buf_here, 100, PLX_DEV_MEM_WRITE, &refused), 0);
	UNIT_EQ(st->mem_regs, 2);
	UNIT_EQ(st->mem_reused, 1);
	/* It is given back while it is used: who has its key may go on. */
	plx_dev_region_close(&whole);
	unit_fill(buf_here, op.len, 4);
	op.key = in.key;
	UNIT_EQ(net_rma(&op), 0);
	CU_ASSERT(unit_is_filled(buf_there + 100, op.len, 4));
	UNIT_EQ(mlx_queue(a)->stat.mem_reused, 1); /* its own side may be sent from */
	op.put = false;
	UNIT_EQ(net_rma(&op), 0);
	UNIT_EQ(mlx_queue(a)->stat.mem_regs, 1); /* but not received into */
	plx_queue_mem_dereg(b, &in, true);
	plx_queue_mem_dereg(b, &beyond, true);
	plx_queue_mem_dereg(b, &refused, true);
	UNIT_EQ(plx_queue_mem_reg(b, buf_there + 100, 20000, PLX_DEV_MEM_WRITE, &in), 0);
	UNIT_EQ(st->mem_regs, 3); /* it is gone */
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
		UNIT_EQ(net_rma(&op), 0);
		CU_ASSERT(unit_is_filled(there, len, round));
		plx_queue_mem_dereg(b, &mem, false);
	}
	if (at_a->cache_misses != 0) { /* else memory can't be watched here */
		/* What is registered while the watch still works is not kept, so there is no hit. */
		UNIT_EQ(at_a->cache_hits + at_a->cache_unfit, 2);
		UNIT_EQ(at_b->cache_hits + at_b->cache_unfit, 2);
		UNIT_EQ(at_a->cache_gone + at_b->cache_gone, 2);
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
	UNIT_EQ(net_rma(&op), -ECONNRESET);
	while (n_told == 0) {
		net_others(NULL);
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
		UNIT_TRUE(mlx_peer(to_b)->credit.left == 1 ||
			(with_tags && mlx_peer(to_b)->credit.left == 2));
		drain(b, 64, &next);
		UNIT_EQ_FATAL(next, sent);
	}
	UNIT_TRUE(sent > 10 * MLX_CREDIT_MIN);
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

	UNIT_TRUE(mlx_conn_find(mlx_queue(a), qpn) == mlx_peer(to_b));
	UNIT_TRUE(mlx_conn_find(mlx_queue(a), qpn) == mlx_peer(to_b)); /* it was the last */
	mlx_conn_reset(mlx_peer(to_b));
	UNIT_TRUE(mlx_conn_find(mlx_queue(a), qpn) == NULL);
	queue_close(a);
	queue_close(b);
}

static void
a_window_is_small_until_its_peer_runs_out_of_it(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct mlx_credit *c = &mlx_peer(to_b)->credit;
	uint64_t next = 0, sent = 0;
	struct plx_rx rx;

	for (; sent < 200; sent++, next++) {
		UNIT_EQ_FATAL(msg_send(to_b, sent, len_of(sent, 64)), 0);
		UNIT_EQ_FATAL(burst_some(b, &rx, 1), 1);
		b->rx_release(b, &rx, 1);
		net_others(b);
	}
	UNIT_EQ(c->most, MLX_CREDIT_FIRST);
	for (unsigned round = 0; round < 6; round++) {
		while (msg_send(to_b, sent, len_of(sent, 64)) == 0)
			sent++;
		drain(b, 64, &next);
		UNIT_EQ_FATAL(next, sent);
	}
	UNIT_EQ(c->most, mlx_queue(b)->want);
	UNIT_EQ(mlx_queue(b)->stat.windows_grown, 2);
	UNIT_EQ(mlx_queue(b)->granted, mlx_queue(b)->want);
	UNIT_EQ(mlx_queue(a)->granted, MLX_CREDIT_FIRST);
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
	net_others(NULL);
	before = mq->n_free_slots;
	UNIT_TRUE(before < MLX_RX_BATCH);
	for (uint32_t i = 0; i < MLX_RX_BATCH; i++) {
		b->rx_release(b, &rx[i], 1);
		UNIT_EQ(mq->n_free_slots, (before + i) % MLX_RX_BATCH + 1);
		net_others(NULL);
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

/* -- shm: slots, bells, mail -- */

static struct shm_seg *
seg_of(struct plx_peer *peer)
{
	return shm_peer(peer)->seg;
}

static void
make_cold(struct plx_queue *b, struct plx_peer *to_b)
{
	struct plx_rx rx[4];

	UNIT_EQ(msg_send(to_b, 0, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	b->rx_release(b, rx, 1);
	for (unsigned i = 0; i < SHM_COLD_AFTER + 2; i++)
		UNIT_EQ_FATAL(burst(b, rx, 4), 0);
	UNIT_EQ(shm_peer(to_b)->slot->cold, 1);
	UNIT_EQ(shm_queue(b)->hot, 0);
}

static void
a_cold_slot_is_woken_by_the_doorbell(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];

	for (unsigned i = 0; i < 3; i++) {
		make_cold(b, to_b);
		UNIT_EQ(msg_send(to_b, 1, 30), 0);
		UNIT_TRUE(seg_of(to_b)->doorbell != 0);
		UNIT_EQ_FATAL(burst(b, rx, 4), 1); /* in the first look */
		CU_ASSERT(msg_is(&rx[0], 1, 30));
		b->rx_release(b, rx, 1);
		UNIT_EQ(msg_send(to_b, 2, 30), 0);
		UNIT_EQ(seg_of(to_b)->doorbell, 0); /* hot again: no bell */
		UNIT_EQ_FATAL(burst(b, rx, 4), 1);
		b->rx_release(b, rx, 1);
	}
	plx_queue_close(a);
	plx_queue_close(b);
}

static void
a_cold_slot_whose_bell_was_lost_is_seen_in_its_turn(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];
	unsigned looks;

	make_cold(b, to_b);
	shm_peer(to_b)->slot->cold = 0; /* as a sender sees it that read too early */
	UNIT_EQ(msg_send(to_b, 1, 30), 0);
	UNIT_EQ(seg_of(to_b)->doorbell, 0);
	for (looks = 1; looks <= 2 * SHM_SLOTS_MAX; looks++)
		if (burst(b, rx, 4) == 1)
			break;
	UNIT_TRUE_FATAL(looks <= 2 * SHM_SLOTS_MAX);
	CU_ASSERT(msg_is(&rx[0], 1, 30));
	b->rx_release(b, rx, 1);
	plx_queue_close(a);
	plx_queue_close(b);
}

#define LONG_LEN (SHM_MSG_MAX - 8) /* behind the header of msg_send() */

static void
the_first_senders_may_have_more_under_way(void)
{
	struct plx_queue *b = queue_new(), *a[3];
	uint64_t sent[3], next[3] = {0}, all = 0;
	struct plx_rx rx[4];

	UNIT_EQ_FATAL(shm_queue(b)->n_wide, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct plx_peer *to_b;

		a[i] = queue_new();
		to_b = connected_to(a[i], b);
		for (sent[i] = 0; msg_send(to_b, i << 16 | sent[i], LONG_LEN) == 0; sent[i]++)
			;
		all += sent[i];
	}
	UNIT_EQ(sent[0], SHM_DATA_WIDE / SHM_MSG_MAX);
	UNIT_EQ(sent[1], SHM_DATA_LEN / SHM_MSG_MAX);
	UNIT_EQ(sent[2], SHM_DATA_LEN / SHM_MSG_MAX);
	while (all != 0) { /* each has bytes of its own */
		uint16_t got = burst_some(b, rx, 4);

		UNIT_TRUE_FATAL(got != 0);
		for (uint16_t k = 0; k < got; k++, all--) {
			uint64_t hdr;

			memcpy(&hdr, rx[k].data, sizeof(hdr));
			UNIT_TRUE_FATAL(hdr >> 16 < 3);
			CU_ASSERT(msg_is(&rx[k], (hdr >> 16) << 16 | next[hdr >> 16]++, LONG_LEN));
		}
		b->rx_release(b, rx, got);
	}
	for (unsigned i = 0; i < 3; i++)
		queue_close(a[i]);
	queue_close(b);
}

static void
a_slot_is_used_again_when_its_sender_has_left(void)
{
	struct plx_queue *b = queue_new();
	struct plx_rx rx[4];

	UNIT_EQ_FATAL(shm_queue(b)->n_slots, 3);
	for (unsigned round = 0; round < 12; round++) {
		struct plx_queue *a = queue_new();
		struct plx_peer *to_b = connected_to(a, b);
		uint64_t next = 0;
		unsigned n = 1 + round * 11; /* up to nearly the whole ring */

		UNIT_EQ_FATAL(shm_peer(to_b)->tx_mode, SHM_TX_SLOT);
		for (unsigned i = 0; i < n; i++)
			UNIT_EQ_FATAL(msg_send(to_b, i, len_of(i, 300)), 0);
		plx_queue_close(a);
		plx_queue_control(b); /* not drained: stays as it is */
		while (next < n) {
			uint16_t k, got = burst_some(b, rx, 4);

			UNIT_TRUE_FATAL(got != 0);
			for (k = 0; k < got; k++, next++)
				CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, 300)));
			b->rx_release(b, rx, got);
		}
		plx_queue_control(b);
		UNIT_EQ(shm_queue(b)->ready, 0);
	}
	UNIT_EQ(b->stat.rx_drop_bad_cell, 0);
	plx_queue_close(b);
}

static void
senders_beyond_the_slots_use_the_mail_ring(void)
{
	struct plx_queue *a[5], *b = queue_new();
	struct plx_peer *to_b[5];
	unsigned slots = 0, mail = 0;

	for (unsigned i = 0; i < 5; i++) {
		a[i] = queue_new();
		to_b[i] = connected_to(a[i], b);
		slots += shm_peer(to_b[i])->tx_mode == SHM_TX_SLOT;
		mail += shm_peer(to_b[i])->tx_mode == SHM_TX_MAIL;
		UNIT_TRUE(to_b[i]->mtu > to_b[i]->short_max + 8);
	}
	UNIT_EQ(slots, 3);
	UNIT_EQ(mail, 2);
	for (unsigned i = 0; i < 5; i++)
		plx_queue_close(a[i]);
	plx_queue_close(b);
}

/* While the program's own function packs, which may take any time, others send. */
struct meanwhile {
	struct plx_peer *from; /* another sender */
	struct plx_queue *to;
	unsigned came;
};

static void
pack_meanwhile(void *arg, uint64_t offset, void *to, uint64_t len)
{
	struct meanwhile *m = arg;
	struct plx_rx rx;

	(void)offset;
	memset(to, 7, len);
	UNIT_EQ(msg_send(m->from, 1, 100), 0);
	if (burst_some(m->to, &rx, 1) == 0)
		return;
	m->came++;
	m->to->rx_release(m->to, &rx, 1);
}

static void
who_packs_a_mail_keeps_no_other_from_sending(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new(), *c = queue_new();
	struct meanwhile m = {.from = connected_to(c, b), .to = b};
	uint64_t hdr = 2;
	struct plx_tx tx = {.peer = connected_to(a, b), .hdr = &hdr, .hdr_len = 8, .len = 200,
		.pack = pack_meanwhile, .pack_arg = &m};
	struct plx_rx rx;

	UNIT_EQ(plx_peer_tx(&tx), 0);
	UNIT_EQ(m.came, 1);
	UNIT_EQ_FATAL(burst_some(b, &rx, 1), 1);
	UNIT_EQ(rx.len, 208);
	UNIT_EQ(rx.data[207], 7);
	b->rx_release(b, &rx, 1);
	plx_queue_close(a);
	plx_queue_close(c);
	plx_queue_close(b);
}

/* -- shm: other processes -- */

/* What a child tells and is told. */
struct child {
	pid_t pid;
	int in, out;	/* ours */
	struct plx_addr addr;
	uint64_t buf;	/* address of buf_there in it */
};

static int child_in, child_out; /* its own */

static void
must(bool ok)
{
	if (!ok)
		_exit(99);
}

static void
child_start(struct child *c, void (*fn)(struct plx_queue *q))
{
	int to[2], from[2];

	CU_ASSERT_FATAL(pipe(to) == 0 && pipe(from) == 0);
	fflush(stdout);
	c->pid = fork();
	CU_ASSERT_FATAL(c->pid >= 0);
	if (c->pid == 0) {
		uint64_t buf = (uintptr_t)buf_there;
		struct plx_queue *q = NULL;
		struct plx_addr addr;

		child_in = to[0];
		child_out = from[1];
		close(to[1]);
		close(from[0]);
		must(plx_queue_open(dev, &conf, NULL, &q) == 0);
		plx_queue_addr(q, &addr);
		must(write(child_out, &addr, sizeof(addr)) == sizeof(addr));
		must(write(child_out, &buf, sizeof(buf)) == sizeof(buf));
		fn(q);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	c->out = to[1];
	c->in = from[0];
	CU_ASSERT_FATAL(read(c->in, &c->addr, sizeof(c->addr)) == sizeof(c->addr));
	CU_ASSERT_FATAL(read(c->in, &c->buf, sizeof(c->buf)) == sizeof(c->buf));
}

/* @return the exit status, or minus the signal */
static int
child_end(struct child *c, int signo)
{
	int st = 0;

	if (signo != 0)
		kill(c->pid, signo);
	waitpid(c->pid, &st, 0);
	close(c->in);
	close(c->out);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

static void
child_tell(struct child *c, const struct plx_queue *q)
{
	struct plx_addr addr;

	plx_queue_addr(q, &addr);
	CU_ASSERT_FATAL(write(c->out, &addr, sizeof(addr)) == sizeof(addr));
}

/* In a child: the peer whose address the parent told. */
static struct plx_peer *
child_peer(struct plx_queue *q)
{
	struct plx_peer *peer = NULL;
	struct plx_addr addr;

	must(read(child_in, &addr, sizeof(addr)) == sizeof(addr));
	must(plx_peer_get(q, &addr, &peer) == 0);
	must(plx_peer_connect(peer) == 0);
	plx_peer_settle(peer);
	return peer;
}

static void
child_sleeps(struct plx_queue *q)
{
	char c;

	(void)q;
	while (read(child_in, &c, 1) == 1)
		;
}

/* One that is given the queue's segment, and is there until it is killed. */
static void
child_meets(struct plx_queue *q)
{
	(void)child_peer(q);
	must(write(child_out, "", 1) == 1);
	child_sleeps(q);
}

/* @return the number of a process that the queue has met, whose child c is. */
static uint64_t
guest(struct child *c, const struct plx_queue *q)
{
	struct shm_addr addr;
	char b;

	child_start(c, child_meets);
	child_tell(c, q);
	UNIT_EQ_FATAL(read(c->in, &b, 1), 1);
	memcpy(&addr, c->addr.bytes, sizeof(addr));
	return addr.proc;
}

static void
mail_claimed_by_a_dead_process_is_skipped(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct shm_seg *seg = seg_of(to_b);
	struct plx_rx rx[4];
	struct child c, lives;
	uint64_t dead = guest(&c, b), alive = guest(&lives, b);

	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	UNIT_EQ_FATAL(shm_peer(to_b)->tx_mode, SHM_TX_MAIL);
	for (unsigned round = 0; round < 3 * SHM_MAIL_CELLS; round++) {
		uint64_t pos = shm_queue(b)->mail_pos;
		uint32_t lap = pos / SHM_MAIL_CELLS;
		_Atomic uint64_t *state = &seg->mail[pos % SHM_MAIL_CELLS].state;

		UNIT_EQ_FATAL((uint32_t)*state, (uint32_t)SHM_MAIL_STATE(0, lap, SHM_MAIL_FREE));
		*state = SHM_MAIL_STATE(round % 2 == 0 ? alive : shm_queue(b)->proc, lap, SHM_MAIL_CLAIMED); /* slow, but alive */
		UNIT_EQ_FATAL(msg_send(to_b, round, 100), 0);
		UNIT_EQ(burst_some(b, rx, 4), 0); /* order: not before the claimed one */
		plx_queue_control(b);
		UNIT_EQ(b->stat.rx_skip_dead, round);
		UNIT_EQ(burst_some(b, rx, 4), 0);
		*state = SHM_MAIL_STATE(round % 2 == 0 ? dead : 0x3fffffff, lap,
			SHM_MAIL_CLAIMED);
		plx_queue_control(b);
		UNIT_EQ(b->stat.rx_skip_dead, round + 1);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		CU_ASSERT(msg_is(&rx[0], round, 100));
		b->rx_release(b, rx, 1);
	}
	child_end(&lives, SIGKILL);
	plx_queue_close(a);
	plx_queue_close(b);
}

static void
a_slot_taken_by_a_dead_process_is_free_again(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct shm_slot *slot = shm_slot_at(seg_of(to_b), 1);
	uint64_t since = now_ns();
	struct plx_rx rx[4];
	struct child c, lives;
	uint64_t dead = guest(&c, b), alive = guest(&lives, b);

	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	while (slot->state != SHM_SLOT_FREE) {
		(void)burst_some(b, rx, 4);
		plx_queue_control(b);
		UNIT_TRUE_FATAL(patient(since));
	}
	slot->state = SHM_SLOT_STATE(alive, SHM_SLOT_TAKEN);
	plx_queue_control(b);
	UNIT_EQ(SHM_SLOT_KIND(slot->state), SHM_SLOT_TAKEN);
	slot->state = SHM_SLOT_STATE(dead, SHM_SLOT_TAKEN);
	UNIT_EQ(burst_some(b, rx, 4), 0);
	plx_queue_control(b);
	UNIT_EQ(slot->state, SHM_SLOT_FREE);
	UNIT_EQ(b->stat.rx_skip_dead, 1);
	child_end(&lives, SIGKILL);
	plx_queue_close(a);
	plx_queue_close(b);
}

#define ECHO_N 20000

static void
child_echoes(struct plx_queue *q)
{
	struct plx_peer *to = child_peer(q);
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint64_t n = 0, since = now_ns();

	while (n < ECHO_N) {
		uint16_t got = q->rx_burst(q, rx, PLX_DEV_RX_BURST);

		must(patient(since));
		for (uint16_t k = 0; k < got; k++, n++) {
			must(rx[k].src == to);
			must(msg_is(&rx[k], n, len_of(n, to->mtu)));
			while (msg_send(to, n, len_of(n, to->mtu)) == -EAGAIN)
				must(patient(since));
		}
		q->rx_release(q, rx, got);
	}
	must(read(child_in, rx, 1) == 0); /* stays until told */
}

static void
messages_go_both_ways_between_processes(void)
{
	struct plx_queue *q = queue_new();
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint64_t sent = 0, next = 0, since = now_ns();
	struct plx_peer *to;
	struct child c;

	child_start(&c, child_echoes);
	to = connected(q, &c.addr);
	child_tell(&c, q);
	while (next < ECHO_N) {
		uint16_t got;

		UNIT_TRUE_FATAL(patient(since));
		/* Both may be full at once, so neither waits without receiving. */
		while (sent < ECHO_N && sent - next < 64 &&
			msg_send(to, sent, len_of(sent, to->mtu)) == 0)
			sent++;
		got = burst(q, rx, PLX_DEV_RX_BURST);
		for (uint16_t k = 0; k < got; k++, next++)
			CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, to->mtu)));
		q->rx_release(q, rx, got);
	}
	plx_queue_control(q);
	UNIT_EQ(to->state, PLX_PEER_OPEN);
	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	plx_queue_close(q);
}

static void
child_floods(struct plx_queue *q)
{
	struct plx_peer *to = child_peer(q);

	for (uint64_t i = 0;;) {
		int rc = msg_send(to, i, len_of(i, to->mtu));

		if (rc == 0 && ++i == 1000)
			must(write(child_out, "", 1) == 1);
		if (rc != 0)
			sched_yield();
	}
}

#define SLEEP_N 30000

/* Answers at once, so that the other side is about to sleep. */
static void
child_answers(struct plx_queue *q)
{
	struct plx_peer *to = child_peer(q);
	struct plx_rx rx;

	for (uint64_t i = 0; i < SLEEP_N; i++) {
		uint64_t since = now_ns();

		for (uint32_t k = 1; q->rx_burst(q, &rx, 1) == 0; k++)
			must(k % 4096 != 0 || patient(since));
		q->rx_release(q, &rx, 1);
		must(msg_send(to, i, 8) == 0);
	}
	must(read(child_in, &rx, 1) == 0);
}

/* As a reactor does where it dozes. @return whether it slept, and was woken if it had to be */
static bool
sleeps_soundly(struct plx_queue *q, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (plx_queue_arm(q) != 0)
		return true;
	if (q->dozes && (!plx_fence_world() || plx_queue_arm(q) != 0))
		return true;
	return poll(&p, 1, PATIENCE_S * 1000) == 1;
}

/* @param ticks before it is about to sleep */
static bool
sleepy_rx(struct plx_queue *q, int fd, uint64_t ticks)
{
	uint64_t start = rte_rdtsc();
	struct plx_rx rx;
	bool came;

	while (rte_rdtsc() - start < ticks)
		;
	do {
		if (!sleeps_soundly(q, fd))
			return false;
		plx_queue_disarm(q);
		came = q->rx_burst(q, &rx, 1) == 1; /* a bell may ring once for nothing */
	} while (!came);
	q->rx_release(q, &rx, 1);
	return true;
}

/* Message i, once the peer has answered how it is sent to. @return whether it went in time */
static bool
goes_in_time(struct plx_queue *q, struct plx_peer *to, uint64_t i)
{
	const struct shm_peer *p = shm_peer(to);
	uint64_t since = now_ns();

	while (msg_send(to, i, 8) == -EAGAIN) {
		plx_queue_control(q);
		if (!patient(since)) {
			printf("message %llu waits: mode %d, asking %d, busy %d, looks %u, position %llu of %llu\n",
				(unsigned long long)i, p->tx_mode, p->asking, p->busy, p->n_looks,
				(unsigned long long)p->rx_seen, (unsigned long long)p->tx_pos);
			return false;
		}
	}
	return true;
}

static void
who_sleeps_is_woken(bool dozes)
{
	struct plx_queue *q = queue_new();
	struct plx_peer *to;
	struct child c;
	int fd;

	q->dozes = dozes;
	fd = plx_queue_efd(q);
	UNIT_TRUE_FATAL(fd >= 0);
	to = connected_to(q, q);
	UNIT_TRUE(shm_peer(to)->wakes);
	UNIT_EQ(shm_peer(to)->fences, !dozes || !plx_fence_world_open() || !plx_fence_world());
	child_start(&c, child_answers);
	to = connected(q, &c.addr);
	child_tell(&c, q);
	for (uint64_t i = 0; i < SLEEP_N; i++) {
		UNIT_TRUE_FATAL(goes_in_time(q, to, i));
		UNIT_TRUE_FATAL(sleepy_rx(q, fd, i % 3001));
	}
	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	plx_queue_close(q);
}

static void
a_process_that_sleeps_is_woken_by_each_message(void)
{
	who_sleeps_is_woken(false);
}

static void
one_that_dozes_before_has_its_senders_fence_and_is_woken_too(void)
{
	who_sleeps_is_woken(true);
}

#define STUCK_HOLD_S 1 /* how long a stopped sender is left so */

static void
stop_here(int signo)
{
	(void)signo;
	raise(SIGSTOP);
}

/* From now on this process stops where it would ring a bell. */
static void
stop_at_write_to(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, fd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {RTE_DIM(code), code};

	must(signal(SIGSYS, stop_here) != SIG_ERR);
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
}

static void
child_stops_as_it_rings(struct plx_queue *q)
{
	struct plx_peer *to = child_peer(q);

	stop_at_write_to(shm_peer(to)->bell);
	must(write(child_out, "", 1) == 1);
	child_sleeps(q); /* until the receiver sleeps */
	(void)msg_send(to, 0, 8);
	_exit(98);
}

static void
count_asking(struct plx_peer *peer, void *arg)
{
	*(unsigned *)arg += shm_peer(peer)->asking;
}

/* Wait until all processes that the queue has met have said how they are sent to. */
static void
all_have_answered(struct plx_queue *q)
{
	uint64_t since = now_ns();
	unsigned n;

	do {
		plx_queue_control(q);
		n = 0;
		plx_peer_each(q, count_asking, &n);
		UNIT_TRUE_FATAL(patient(since));
	} while (n != 0);
}

/* A debugger, a frozen group or SIGSTOP may do so. */
static void
a_sender_that_is_stopped_as_it_rings_keeps_no_other_from_ringing(void)
{
	struct plx_queue *q = queue_new(), *other = queue_new();
	struct pollfd p = {.fd = plx_queue_efd(q), .events = POLLIN};
	struct plx_peer *peer = connected_to(other, q);
	struct plx_rx rx[2];
	struct child c;
	int st = 0;
	char b;

	child_start(&c, child_stops_as_it_rings);
	child_tell(&c, q);
	UNIT_EQ_FATAL(read(c.in, &b, 1), 1);
	while (q->rx_burst(q, rx, 2) != 0) /* its slot */
		;
	all_have_answered(q);
	UNIT_EQ_FATAL(plx_queue_arm(q), 0);
	close(c.out);
	c.out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	UNIT_EQ_FATAL(waitpid(c.pid, &st, WUNTRACED), c.pid);
	UNIT_TRUE_FATAL(WIFSTOPPED(st));
	UNIT_EQ(poll(&p, 1, 0), 0); /* nobody has rung */
	UNIT_EQ(msg_send(peer, 0, 8), 0);
	UNIT_EQ(poll(&p, 1, STUCK_HOLD_S * 1000), 1);
	UNIT_EQ(msg_send(peer, 1, 8), 0);
	plx_queue_disarm(q);
	UNIT_EQ(poll(&p, 1, 0), 0);
	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	queue_close(other);
	queue_close(q);
}

/* A peer that rings all the time costs a turn a bounded time. */
static void
a_flood_of_rings_is_taken_in_pieces(void)
{
	struct plx_queue *q = queue_new();
	struct pollfd p = {.fd = plx_queue_efd(q), .events = POLLIN};
	unsigned rings = 0, pieces = 0;

	while (rings < 100000 && send(shm_queue(q)->bell[1], "", 1, MSG_DONTWAIT) == 1)
		rings++; /* the kernel keeps no more */
	UNIT_TRUE(rings > 1 && rings < 100000);
	do {
		UNIT_EQ_FATAL(plx_queue_arm(q), 0);
		plx_queue_disarm(q);
	} while (++pieces < rings && poll(&p, 1, 0) == 1);
	UNIT_EQ(pieces, (rings + 63) / 64);
	queue_close(q);
}

static void
run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	UNIT_EQ_FATAL(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* @return another CPU that this thread may have, or the same if there is none */
static int
other_cpu(const cpu_set_t *set, int cpu)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != cpu && CPU_ISSET(i, set))
			return i;
	return cpu;
}

static void
who_wakes_a_sleeper_on_its_own_cpu_knows_it(void)
{
	struct plx_queue *from = queue_new(), *to = queue_new();
	struct pollfd p = {.fd = plx_queue_efd(to), .events = POLLIN};
	struct plx_peer *peer = connected_to(from, to);
	int here = sched_getcpu(), other;
	struct plx_rx rx;
	cpu_set_t set;

	UNIT_EQ_FATAL(sched_getaffinity(0, sizeof(set), &set), 0);
	other = other_cpu(&set, here);
	run_on(here);
	for (uint64_t i = 0; i < 3; i++) {
		if (i == 1)
			UNIT_EQ_FATAL(plx_queue_arm(to), 0);
		if (i == 2) {
			run_on(other);
			UNIT_EQ_FATAL(plx_queue_arm(to), 0);
			run_on(here);
		}
		UNIT_EQ(msg_send(peer, i, 8), 0);
		UNIT_EQ(atomic_load(&from->woke), i == 1 || (i == 2 && other == here));
		UNIT_EQ(poll(&p, 1, 0), i != 0);
		plx_queue_disarm(to);
		UNIT_EQ(to->rx_burst(to, &rx, 1), 1);
		to->rx_release(to, &rx, 1);
		atomic_store(&from->woke, false);
	}
	UNIT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
	plx_queue_close(from);
	plx_queue_close(to);
}

static void
a_killed_process_is_told_once_and_after_its_messages(void)
{
	for (unsigned round = 0; round < 8; round++) {
		struct plx_queue *q = queue_new();
		struct plx_rx rx[PLX_DEV_RX_BURST];
		uint64_t next = 0, since = now_ns();
		struct plx_peer *to;
		unsigned idle = 0;
		uint32_t mtu;
		struct child c;

		child_start(&c, child_floods);
		to = connected(q, &c.addr);
		mtu = to->mtu;
		n_told = 0;
		q->on_dead = on_dead;
		child_tell(&c, q);
		while (n_told == 0 || idle < 100) {
			uint16_t got = burst(q, rx, PLX_DEV_RX_BURST);

			UNIT_TRUE_FATAL(patient(since));
			for (uint16_t k = 0; k < got; k++, next++)
				CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, mtu)));
			UNIT_TRUE(got == 0 || n_told == 0);
			q->rx_release(q, rx, got);
			idle = got != 0 ? 0 : idle + 1;
			if (c.pid != 0 && next > 500 + round * 100) {
				UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
				c.pid = 0;
			}
			plx_queue_control(q);
		}
		UNIT_EQ(n_told, 1);
		UNIT_EQ(to->state, PLX_PEER_DEAD);
		UNIT_TRUE(msg_send(to, 0, 8) < 0 && msg_send(to, 0, 8) != -EAGAIN);
		plx_peer_put(to);
		plx_queue_control(q);
		UNIT_EQ(q->n_dead, 0);
		UNIT_EQ(shm_queue(q)->ready, 0);
		plx_queue_close(q);
	}
}

static void
child_sends_ten(struct plx_queue *q)
{
	struct plx_peer *to = child_peer(q);

	for (uint64_t i = 0; i < 10; i++)
		must(msg_send(to, i, len_of(i, to->mtu)) == 0);
}

static void
what_a_process_sent_before_it_ended_is_delivered_first(void)
{
	struct plx_queue *q = queue_new();
	struct plx_peer *to;
	uint32_t mtu;
	struct child c;

	child_start(&c, child_sends_ten);
	to = connected(q, &c.addr);
	mtu = shm_queue(q)->n_slots != 0 ? to->mtu : sizeof(((struct shm_mail *)0)->body);
	n_told = 0;
	q->on_dead = on_dead;
	child_tell(&c, q);
	UNIT_EQ_FATAL(child_end(&c, 0), 0);
	expect_farewell(q, to, mtu, 10, 10);
	plx_queue_close(q);
}

static void
an_unknown_process_that_ended_is_delivered_all_the_same(void)
{
	struct plx_queue *q = queue_new();
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint64_t next = 0;
	struct child c;
	uint32_t mtu = shm_queue(q)->n_slots != 0 ? SHM_MSG_MAX
						  : sizeof(((struct shm_mail *)0)->body);
	uint16_t n;

	child_start(&c, child_sends_ten);
	child_tell(&c, q);
	UNIT_EQ_FATAL(child_end(&c, 0), 0);
	while ((n = burst_some(q, rx, PLX_DEV_RX_BURST)) != 0) {
		for (uint16_t k = 0; k < n; k++, next++)
			CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, mtu)));
		q->rx_release(q, rx, n);
	}
	UNIT_EQ(next, 10);
	for (unsigned i = 0; i < 3; i++)
		plx_queue_control(q);
	UNIT_EQ(q->n_dead, 0);
	UNIT_EQ(q->stat.peers_dead, 1);
	plx_queue_close(q);
}

static void
the_address_of_a_process_that_ended_does_not_connect(void)
{
	struct plx_queue *q = queue_new();
	struct plx_peer *peer;
	struct child c;

	child_start(&c, child_sleeps);
	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	n_told = 0;
	q->on_dead = on_dead;
	peer = peer_known(q, &c.addr);
	UNIT_TRUE(plx_peer_connect(peer) < 0);
	UNIT_EQ(n_told, 1);
	UNIT_TRUE(msg_send(peer, 0, 8) < 0);
	plx_queue_close(q);
}

/* Its thread answers at once; it has ended before the answer is read. */
static void
an_answer_of_a_process_that_has_ended_since_does_not_connect(void)
{
	struct plx_queue *q = queue_new();
	struct plx_peer *peer;
	struct pollfd p = {.events = POLLIN};
	struct child c;

	child_start(&c, child_sleeps);
	peer = peer_known(q, &c.addr);
	p.fd = shm_peer(peer)->ask.fd;
	UNIT_EQ_FATAL(poll(&p, 1, 10000), 1);
	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	(void)plx_peer_connect(peer);
	UNIT_EQ(msg_send(peer, 0, 8), -ECONNRESET);
	plx_queue_close(q);
}

static void
a_pid_that_now_is_another_process_does_not_connect(void)
{
	struct plx_queue *q = queue_new();
	struct shm_addr a;
	struct plx_peer *peer;
	struct child c;

	child_start(&c, child_sleeps);
	memcpy(&a, c.addr.bytes, sizeof(a));
	a.proc--; /* same pid, another process */
	memcpy(c.addr.bytes, &a, sizeof(a));
	peer = peer_known(q, &c.addr);
	UNIT_TRUE(plx_peer_connect(peer) < 0);
	plx_queue_close(q);
	child_end(&c, SIGKILL);
}

static void
an_address_altered_anywhere_connects_to_nothing(void)
{
	struct plx_queue *q = queue_new();
	struct child c;

	child_start(&c, child_sleeps);
	for (unsigned bit = 0; bit < sizeof(struct shm_addr) * 8; bit++) {
		struct plx_addr bad = c.addr;
		struct plx_peer *peer;

		bad.bytes[bit / 8] ^= 1 << bit % 8;
		if (plx_peer_get(q, &bad, &peer) != 0)
			continue;
		UNIT_TRUE(!connects(q, peer));
	}
	UNIT_TRUE(connects(q, peer_known(q, &c.addr)));
	plx_queue_close(q);
	child_end(&c, SIGKILL);
}

static void
rma_reads_and_writes_another_process(void)
{
	struct plx_queue *q = queue_new();
	struct plx_rma_op bad = {.local = buf_here, .remote = 64, .len = 64};
	struct plx_peer *peer;
	struct child c;

	child_start(&c, child_sleeps);
	peer = connected(q, &c.addr);
	bad.peer = peer;
	if (plx_peer_rma(&bad) == -EOPNOTSUPP) {
		UNIT_EQ(peer->caps & (PLX_DEV_GET | PLX_DEV_PUT), 0);
		printf("(refused here) ");
	} else {
		rma_reads_and_writes(peer, c.buf, sizeof(buf_there));
		rma_bursts(peer, c.buf);
		UNIT_EQ(plx_peer_rma(&bad), -EFAULT);
		bad.put = true;
		UNIT_EQ(plx_peer_rma(&bad), -EFAULT);
		bad.remote = UINT64_MAX - 10;
		UNIT_EQ(plx_peer_rma(&bad), -EFAULT);
		UNIT_EQ(peer->state, PLX_PEER_OPEN);
		child_end(&c, SIGKILL);
		bad.remote = c.buf;
		UNIT_EQ(plx_peer_rma(&bad), -ECONNRESET);
	}
	plx_queue_close(q);
}

static void *
echo_thread(void *q)
{
	child_echoes(q);
	_exit(0);
}

static void
child_goes_on_without_its_first_thread(struct plx_queue *q)
{
	pthread_t t;

	must(pthread_create(&t, NULL, echo_thread, q) == 0);
	syscall(SYS_exit, 0); /* as pthread_exit() in main() does in the end */
}

/* The kernel says so of a process whose first thread has ended, too. */
static bool
is_zombie(pid_t pid)
{
	char path[64], text[512] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	must(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strstr(text, ") Z ") != NULL;
}

/* The kernel calls such a process a zombie, and finds nothing that it has open by its pid. */
static void
a_process_whose_first_thread_has_ended_lives(void)
{
	struct plx_queue *q = queue_new();
	uint64_t since = now_ns();
	struct plx_rma_op op = {.local = buf_here, .len = 8};
	struct plx_peer *peer;
	struct child c;
	struct plx_rx rx;

	child_start(&c, child_goes_on_without_its_first_thread);
	while (!is_zombie(c.pid))
		UNIT_TRUE_FATAL(patient(since));
	peer = connected(q, &c.addr);
	child_tell(&c, q);
	for (uint64_t i = 0; i < 100; i++) {
		UNIT_EQ_FATAL(msg_send(peer, i, len_of(i, peer->mtu)), 0);
		while (burst(q, &rx, 1) == 0)
			UNIT_TRUE_FATAL(patient(since));
		UNIT_TRUE(msg_is(&rx, i, len_of(i, peer->mtu)));
		q->rx_release(q, &rx, 1);
		plx_queue_control(q);
	}
	UNIT_EQ(peer->state, PLX_PEER_OPEN);
	op.peer = peer;
	op.remote = c.buf;
	UNIT_EQ(plx_peer_rma(&op), -EOPNOTSUPP); /* nor its memory: by messages, then */
	UNIT_EQ(peer->caps & (PLX_DEV_GET | PLX_DEV_PUT), 0);
	UNIT_EQ(peer->state, PLX_PEER_OPEN);
	UNIT_EQ(child_end(&c, SIGKILL), -SIGKILL);
	while (peer->state != PLX_PEER_DEAD) {
		plx_queue_control(q);
		UNIT_TRUE_FATAL(patient(since));
	}
	plx_queue_close(q);
}

/* Lists a segment, and takes it away when it is told to. */
static void
child_lists(struct plx_queue *q)
{
	struct plx_seg seg = {.base = NULL};
	char c;

	must(plx_seg_create(&seg, NULL, sizeof(buf_there), false) == 0);
	plx_window_add(&seg, 1);
	must(write(child_out, &seg.base, sizeof(seg.base)) == sizeof(seg.base));
	must(read(child_in, &c, 1) == 1);
	plx_window_remove(&seg);
	plx_seg_destroy(&seg);
	must(write(child_out, &c, 1) == 1);
	child_sleeps(q);
}

static void
rma_on_listed_memory(const char *windows, bool mapped)
{
	struct plx_rma_op gone = {.local = buf_here, .len = 64};
	struct plx_queue *q;
	uint64_t n_mapped;
	struct child c;
	char byte = 0;

	dev_end();
	plx_conf_set(&conf, "shm.windows", windows, PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open(dev_name, &conf, &dev), 0);
	q = queue_new();
	child_start(&c, child_lists);
	CU_ASSERT_FATAL(read(c.in, &gone.remote, sizeof(gone.remote)) == sizeof(gone.remote));
	gone.peer = connected(q, &c.addr);
	rma_reads_and_writes(gone.peer, gone.remote, sizeof(buf_there));
	rma_bursts(gone.peer, gone.remote);
	n_mapped = q->stat.rma_mapped;
	UNIT_EQ(n_mapped > 0, mapped);
	UNIT_EQ(plx_peer_rma(&(struct plx_rma_op){.peer = gone.peer, .local = buf_here,
		.remote = c.buf, .len = 100}), 0); /* what is not listed, by the kernel */
	UNIT_EQ(q->stat.rma_mapped, n_mapped);
	CU_ASSERT_FATAL(write(c.out, &byte, 1) == 1 && read(c.in, &byte, 1) == 1);
	UNIT_EQ(plx_peer_rma(&gone), -EFAULT);
	plx_queue_close(q);
	child_end(&c, SIGKILL);
}

static void
rma_on_listed_memory_needs_no_kernel(void)
{
	rma_on_listed_memory("yes", true);
}

static void
rma_on_listed_memory_is_by_the_kernel_where_the_setting_says_so(void)
{
	rma_on_listed_memory("no", false);
}

static void
rma_is_not_offered_where_the_setting_forbids_it(void)
{
	struct plx_queue *q;
	struct plx_rma_op op = {.local = buf_here, .len = 64};
	struct child c;

	dev_end();
	plx_conf_set(&conf, "shm.cma", "no", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open(dev_name, &conf, &dev), 0);
	q = queue_new();
	child_start(&c, child_sleeps);
	op.peer = connected(q, &c.addr);
	op.remote = c.buf;
	UNIT_EQ(op.peer->caps & (PLX_DEV_GET | PLX_DEV_PUT), 0);
	UNIT_EQ(plx_peer_rma(&op), -EOPNOTSUPP);
	plx_queue_close(q);
	child_end(&c, SIGKILL);
}

static void
child_shares(struct plx_queue *q)
{
	struct plx_peer *to = child_peer(q);
	uint64_t since = now_ns();

	must(plx_peer_shared(to) != NULL);
	unit_fill(q->shared, q->shared_len, 11);
	unit_fill(plx_peer_shared(to), q->shared_len, 12);
	must(write(child_out, "", 1) == 1);
	while (*(_Atomic uint8_t *)q->shared != 0xff)
		must(patient(since));
}

static void
a_shared_area_is_seen_by_another_process(void)
{
	struct plx_queue *q = queue_new();
	struct plx_peer *peer;
	struct child c;
	char byte;

	child_start(&c, child_shares);
	peer = connected(q, &c.addr);
	child_tell(&c, q);
	CU_ASSERT_FATAL(read(c.in, &byte, 1) == 1);
	CU_ASSERT(unit_is_filled(plx_peer_shared(peer), q->shared_len, 11));
	CU_ASSERT(unit_is_filled(q->shared, q->shared_len, 12));
	*(_Atomic uint8_t *)plx_peer_shared(peer) = 0xff;
	UNIT_EQ(child_end(&c, 0), 0);
	plx_queue_close(q);
}

/* -- lists -- */

static CU_TestInfo contract[] = {
	UNIT_TEST(what_was_taken_arrives_in_order_and_unchanged),
	UNIT_TEST(a_full_queue_answers_again_and_changes_nothing),
	UNIT_TEST(what_a_driver_is_sure_of_it_takes),
	UNIT_TEST(data_stays_until_it_is_released),
	UNIT_TEST(every_length_up_to_the_mtu_is_taken_and_no_longer),
	UNIT_TEST(a_look_tells_whether_something_has_come),
	UNIT_TEST(a_look_tells_of_each_of_many_senders),
	UNIT_TEST(packed_data_is_written_once_when_it_is_taken),
	UNIT_TEST(many_senders_keep_their_order_each),
	UNIT_TEST(a_burst_of_one_takes_from_many_senders_too),
	UNIT_TEST(a_queue_sends_to_itself),
	UNIT_TEST(one_peer_stands_for_an_address_and_for_what_comes_from_it),
	UNIT_TEST(a_shared_area_is_seen_by_its_peers),
	UNIT_TEST(addresses_of_other_hosts_and_other_forms_are_refused),
	UNIT_TEST(a_stale_address_does_not_connect),
	UNIT_TEST(a_dead_peer_is_told_once_and_after_its_messages),
	UNIT_TEST(a_dead_peer_never_heard_before_is_told_after_its_messages),
	UNIT_TEST(rma_reads_and_writes_here),
	UNIT_TEST(rma_at_a_bad_address_here_is_an_error_and_no_crash),
	CU_TEST_INFO_NULL,
};

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

#define GROUP UINT64_C(0x1234567890abcdef)

/* What came to groups. */
static struct {
	unsigned n;
	uint64_t group; /* of the last, and its number, of the queue that has it */
	uint64_t number;
	struct plx_queue *q;
} heard;

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

static int
group_send(struct plx_queue *q, uint64_t group, uint64_t i, uint32_t len)
{
	static uint8_t data[MSG_MAX];

	memcpy(data, &i, sizeof(i));
	if (len > sizeof(i))
		unit_fill(data + sizeof(i), len - sizeof(i), i);
	return plx_queue_group_tx(q, group, data, len);
}

/* Until so many have come, and then some time. */
static void
hear(unsigned n)
{
	uint64_t since = now_ns();

	while (heard.n < n) {
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	for (since = now_ns(); now_ns() - since < net_quiet_ns / 4;)
		net_others(NULL);
	UNIT_EQ(heard.n, n);
	heard.n = 0;
}

/* @return a queue of those that hear */
static struct plx_queue *
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

	if (from->group_mtu == 0) { /* InfiniBand */
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
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
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

/* What came that might have been lost. */
static struct {
	unsigned n;
	struct plx_queue *q;
	struct plx_peer *src; /* of the last, and its number */
	uint64_t number;
} found;

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

static int
lossy_send(struct plx_peer *peer, uint64_t i, uint32_t len)
{
	static uint8_t data[MSG_MAX];
	const struct plx_tx tx = {.peer = peer, .hdr = &i, .hdr_len = sizeof(i), .data = data,
		.len = len, .op = 7};

	unit_fill(data, len, i);
	return plx_peer_lossy_tx(&tx);
}

/* Two queues, and each as the other knows it; they have told each other, and are not connected. */
static void
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
static void
find(unsigned n)
{
	uint64_t since = now_ns();

	while (found.n < n) {
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	for (since = now_ns(); now_ns() - since < net_quiet_ns / 4;)
		net_others(NULL);
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
		net_others(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	find(n + 1);
	UNIT_EQ(found.number, n);
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

static CU_TestInfo net_contract[] = {
	UNIT_TEST(what_was_taken_arrives_in_order_and_unchanged),
	UNIT_TEST(a_full_queue_answers_again_and_changes_nothing),
	UNIT_TEST(data_stays_until_it_is_released),
	UNIT_TEST(every_length_up_to_the_mtu_is_taken_and_no_longer),
	UNIT_TEST(packed_data_is_written_once_when_it_is_taken),
	UNIT_TEST(many_senders_keep_their_order_each),
	UNIT_TEST(a_burst_of_one_takes_from_many_senders_too),
	UNIT_TEST(a_queue_sends_to_itself),
	UNIT_TEST(one_peer_stands_for_an_address_and_for_what_comes_from_it),
	UNIT_TEST(a_dead_peer_is_told_once_and_after_its_messages),
	UNIT_TEST(a_dead_peer_never_heard_before_is_told_after_its_messages),
	UNIT_TEST(addresses_of_other_networks_and_other_forms_are_refused),
	UNIT_TEST(a_peer_that_never_answers_is_dead_in_time),
	UNIT_TEST(a_sender_stops_where_its_credits_end),
	UNIT_TEST(a_queue_pair_that_is_closed_is_nobodys),
	UNIT_TEST(a_window_is_small_until_its_peer_runs_out_of_it),
	UNIT_TEST(free_slots_are_posted_together_when_nothing_comes),
	UNIT_TEST(a_port_is_reached_by_the_gid_that_is_named),
	UNIT_TEST(queues_are_driven_by_verbs_when_told_so),
	UNIT_TEST(registered_memory_is_written_and_read_by_its_key),
	UNIT_TEST(a_queue_says_while_processors_move_its_data),
	UNIT_TEST(the_end_of_what_follows_tells_of_writes_that_nobody_asks_about),
	UNIT_TEST(a_region_is_reached_by_all_queues_and_its_words_are_changed),
	UNIT_TEST(what_lies_in_a_region_is_not_registered_again),
	UNIT_TEST(memory_mapped_anew_is_sent_and_received_as_it_is),
	UNIT_TEST(a_key_that_is_not_valid_any_more_costs_the_connection),
	UNIT_TEST(what_is_sent_to_a_group_comes_once_to_all_who_receive_it),
	UNIT_TEST(who_has_left_a_group_hears_nothing_of_it),
	UNIT_TEST(groups_of_one_address_are_told_apart),
	UNIT_TEST(more_than_a_group_has_room_for_is_refused_and_then_taken),
	UNIT_TEST(a_message_to_a_group_wakes_who_receives_it),
	UNIT_TEST(what_may_get_lost_comes_from_its_sender_without_a_connection),
	UNIT_TEST(what_may_get_lost_is_not_taken_from_who_was_not_told_of),
	UNIT_TEST(more_than_there_is_room_for_to_get_lost_is_refused_and_then_taken),
	UNIT_TEST(a_message_that_may_get_lost_wakes_its_receiver),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo shm_slot_tests[] = {
	UNIT_TEST(a_look_takes_a_short_message),
	UNIT_TEST(what_looks_take_is_free_for_the_sender),
	UNIT_TEST(a_peer_tells_where_its_next_message_is_written),
	UNIT_TEST(a_line_is_asked_for_once),
	UNIT_TEST(a_cold_slot_is_woken_by_the_doorbell),
	UNIT_TEST(a_cold_slot_whose_bell_was_lost_is_seen_in_its_turn),
	UNIT_TEST(the_first_senders_may_have_more_under_way),
	UNIT_TEST(a_slot_is_used_again_when_its_sender_has_left),
	UNIT_TEST(senders_beyond_the_slots_use_the_mail_ring),
	UNIT_TEST(a_slot_taken_by_a_dead_process_is_free_again),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo shm_mail_tests[] = {
	UNIT_TEST(mail_claimed_by_a_dead_process_is_skipped),
	UNIT_TEST(who_packs_a_mail_keeps_no_other_from_sending),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo shm_process_tests[] = {
	UNIT_TEST(messages_go_both_ways_between_processes),
	UNIT_TEST(a_process_that_sleeps_is_woken_by_each_message),
	UNIT_TEST(one_that_dozes_before_has_its_senders_fence_and_is_woken_too),
	UNIT_TEST(a_sender_that_is_stopped_as_it_rings_keeps_no_other_from_ringing),
	UNIT_TEST(a_flood_of_rings_is_taken_in_pieces),
	UNIT_TEST(who_wakes_a_sleeper_on_its_own_cpu_knows_it),
	UNIT_TEST(a_killed_process_is_told_once_and_after_its_messages),
	UNIT_TEST(what_a_process_sent_before_it_ended_is_delivered_first),
	UNIT_TEST(an_unknown_process_that_ended_is_delivered_all_the_same),
	UNIT_TEST(the_address_of_a_process_that_ended_does_not_connect),
	UNIT_TEST(an_answer_of_a_process_that_has_ended_since_does_not_connect),
	UNIT_TEST(a_pid_that_now_is_another_process_does_not_connect),
	UNIT_TEST(an_address_altered_anywhere_connects_to_nothing),
	UNIT_TEST(a_process_whose_first_thread_has_ended_lives),
	UNIT_TEST(rma_reads_and_writes_another_process),
	UNIT_TEST(rma_on_listed_memory_needs_no_kernel),
	UNIT_TEST(rma_on_listed_memory_is_by_the_kernel_where_the_setting_says_so),
	UNIT_TEST(rma_is_not_offered_where_the_setting_forbids_it),
	UNIT_TEST(a_shared_area_is_seen_by_another_process),
	CU_TEST_INFO_NULL,
};

static void
on_fake(void)
{
	dev_name = "fake";
	fast_peers = "0";
	dev_begin();
}

static void
on_shm(void)
{
	dev_name = "shm";
	fast_peers = "32";
	dev_begin();
}

static void
on_shm_few(void)
{
	dev_name = "shm";
	fast_peers = "3";
	dev_begin();
}

static void
on_shm_mail(void)
{
	dev_name = "shm";
	fast_peers = "0";
	dev_begin();
}

static void
on_net(void)
{
	dev_name = "net_mlx";
	fast_peers = "0";
	dev_begin();
}

static CU_SuiteInfo net_suites[] = {
	{"contract, net_mlx", NULL, NULL, on_net, dev_end, net_contract},
	CU_SUITE_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"contract, fake", NULL, NULL, on_fake, dev_end, contract},
	{"contract, shm with slots for all", NULL, NULL, on_shm, dev_end, contract},
	{"contract, shm with slots for three", NULL, NULL, on_shm_few, dev_end, contract},
	{"contract, shm with mail only", NULL, NULL, on_shm_mail, dev_end, contract},
	{"shm slots", NULL, NULL, on_shm_few, dev_end, shm_slot_tests},
	{"shm mail", NULL, NULL, on_shm_mail, dev_end, shm_mail_tests},
	{"shm processes, slots", NULL, NULL, on_shm, dev_end, shm_process_tests},
	{"shm processes, mail", NULL, NULL, on_shm_mail, dev_end, shm_process_tests},
	CU_SUITE_INFO_NULL,
};

/* Whether a queue of this driver can be had here. */
static bool
is_here(const char *name)
{
	struct plx_queue *q = NULL;

	plx_conf_defaults(&conf);
	if (plx_dev_open(name, &conf, &dev) != 0)
		return false;
	if (plx_queue_open(dev, &conf, NULL, &q) == 0)
		plx_queue_close(q);
	plx_dev_close(dev);
	return q != NULL;
}

int
main(int argc, char **argv)
{
	bool net_only = argc > 1 && strcmp(argv[1], "net_mlx") == 0;

	with_tags = argc > 3 && strcmp(argv[3], "tags") == 0;
	if (argc > 2)
		net_quiet_ns = strtoull(argv[2], NULL, 10) * 1000000u;
	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_dev_register(&fake_dev_ops) != 0 || plx_init_drivers() != 0)
		return EXIT_FAILURE;
	if (!is_here("net_mlx")) {
		printf("net_mlx: no RDMA device here, its contract is not tried\n");
		return net_only ? 77 : unit_run(suites);
	}
	if (!net_only && unit_run(suites) != 0)
		return EXIT_FAILURE;
	return unit_run(net_suites);
}

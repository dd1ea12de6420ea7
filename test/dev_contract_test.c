/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_contract_test.c - what plx_dev_ops.h promises, tried on every driver
 *
 * The contract runs on each driver that adds itself by plx_unit_dev.h, in every way in which it can be
 * set up, and on the fake device; then what only this driver has. No EAL is needed below lib/mem.
 *
 * usage: dev_contract_test [NAME-OF-A-DRIVER [MS [tags]]]   only this one; a network that was quiet for MS,
 * instead of 60, has nothing more to say; its devices match tags
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit_dev.h"

#define SENDERS	   6
#define RUNS_MAX   32
#define TESTS_MAX  48

static struct dev_contract *contracts;
static unsigned setup; /* of those of the driver that is tried */
static struct plx_queue *open_queues[16];

const struct dev_contract *tried;
struct plx_conf conf;
struct plx_dev *dev;
bool with_tags;
uint64_t rng_state;
uint64_t quiet_ns = 60000000u;
unsigned n_told;
struct plx_peer *told;

/* -- queues and messages -- */

uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For loops that wait for another process: false when it has taken too long. */
bool
patient(uint64_t since_ns)
{
	sched_yield();
	return now_ns() - since_ns < PATIENCE_S * UINT64_C(1000000000);
}

static void
dev_begin(void)
{
	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "tag.offload", with_tags ? "yes" : "no", PLX_CONF_FROM_API, NULL);
	if (tried->set_up != NULL)
		tried->set_up(setup);
	memset(open_queues, 0, sizeof(open_queues)); /* a test that failed closed none */
	UNIT_EQ_FATAL(plx_dev_open(tried->ops->name, &conf, &dev), 0);
	rng_state = 42;
}

void
dev_end(void)
{
	plx_dev_close(dev);
	dev = NULL;
}

/* A network moves only while both sides have turns, and not at once: there a look runs the turns of every queue. */
bool
takes_time(void)
{
	return tried->ops->names != NULL && tried->ops->names->between_hosts;
}

static void
limit(unsigned n)
{
	if (tried->limit != NULL)
		tried->limit(n);
}

struct plx_queue *
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

void
queue_close(struct plx_queue *q)
{
	for (unsigned i = 0; i < sizeof(open_queues) / sizeof(open_queues[0]); i++)
		if (open_queues[i] == q)
			open_queues[i] = NULL;
	plx_queue_close(q);
}

/* What the others' owners would do meanwhile: nobody has sent to them. */
void
others_turn(const struct plx_queue *q)
{
	struct plx_rx rx;

	for (unsigned i = 0; i < sizeof(open_queues) / sizeof(open_queues[0]); i++) {
		if (open_queues[i] == NULL || open_queues[i] == q)
			continue;
		UNIT_EQ_FATAL(open_queues[i]->rx_burst(open_queues[i], &rx, 1), 0);
		plx_queue_control(open_queues[i]);
	}
}

struct plx_peer *
peer_known(struct plx_queue *from, const struct plx_addr *addr)
{
	struct plx_peer *peer = NULL;

	UNIT_EQ_FATAL(plx_peer_get(from, addr, &peer), 0);
	return peer;
}

struct plx_peer *
connected(struct plx_queue *from, const struct plx_addr *addr)
{
	struct plx_peer *peer = peer_known(from, addr);

	UNIT_EQ_FATAL(plx_peer_connect(peer), 0);
	UNIT_EQ(peer->state, PLX_PEER_OPEN);
	plx_peer_settle(peer);
	for (uint64_t since = now_ns(); tried->is_settled != NULL && !tried->is_settled(peer);) {
		others_turn(NULL);
		CU_ASSERT_FATAL(patient(since));
	}
	return peer;
}

/* @return whether the peer can be sent to, once it is known whether it answers. */
bool
connects(struct plx_queue *from, struct plx_peer *peer)
{
	if (plx_peer_connect(peer) != 0)
		return false;
	plx_peer_settle(peer);
	plx_queue_control(from);
	return peer->state == PLX_PEER_OPEN;
}

struct plx_peer *
connected_to(struct plx_queue *from, const struct plx_queue *to)
{
	struct plx_addr addr;

	plx_queue_addr(to, &addr);
	return connected(from, &addr);
}

/* Message number i of a sender: header i, len bytes that follow from both. */
int
msg_send(struct plx_peer *peer, uint64_t i, uint32_t len)
{
	static uint8_t data[MSG_MAX];
	struct plx_tx tx = {.peer = peer, .hdr = &i, .hdr_len = sizeof(i), .data = len != 0 ? data : NULL,
		.len = len, .op = (uint8_t)i};
	int rc;

	unit_fill(data, len, i);
	if (len <= peer->short_max && i % 2 == 0)
		rc = plx_peer_tx_short(peer, (uint8_t)i, i, tx.data, len);
	else
		rc = plx_peer_tx(&tx);
	memset(data, 0xee, len); /* copied before the call returned, or never */
	return rc;
}

bool
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

uint16_t
burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	return q->rx_burst(q, rx, n);
}

#define QUIET_LOOKS 2000u /* nothing has come at so many looks, and for so long: nothing comes */

static uint16_t
patient_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	uint64_t since = now_ns();
	unsigned looks = 0;

	do {
		uint16_t got = burst(q, rx, n);

		if (got != 0)
			return got;
		others_turn(q);
	} while (++looks < QUIET_LOOKS || now_ns() - since < quiet_ns);
	return 0;
}

/* One burst, looking again while there is none; who looks rarely at some senders does so within 64 looks. */
uint16_t
burst_some(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	if (takes_time())
		return patient_burst(q, rx, n);
	for (unsigned i = 0; i < 200; i++) {
		uint16_t got = burst(q, rx, n);

		if (got != 0)
			return got;
	}
	return 0;
}

/* Length of message i, spread over what the peer takes. */
uint32_t
len_of(uint64_t i, uint32_t mtu)
{
	uint64_t state = i + 7;
	uint64_t r = unit_rng(&state);

	if (r % 4 != 0)
		return (uint32_t)(r >> 8) % 200;
	return (uint32_t)(r >> 8) % (mtu - 8 + 1);
}

/* Take and check all that is there of one sender; *next is the number of the next. */
unsigned
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

/* The same, until all that were sent have come: the kernel of a busy host delivers late. */
static void
drain_all(struct plx_queue *q, uint32_t mtu, uint64_t *next, uint64_t sent)
{
	uint64_t since = now_ns();

	do
		drain(q, mtu, next);
	while (*next < sent && patient(since));
	UNIT_EQ_FATAL(*next, sent);
}

/* -- the contract -- */

static void
what_was_taken_arrives_in_order_and_unchanged(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, next = 0;
	const uint64_t n = takes_time() ? 3000 : 20000; /* rings go round a hundred times and more */

	if (tried->misbehave != NULL)
		tried->misbehave();
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

	limit(50);
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
		drain_all(b, to_b->mtu, &next, sent);
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

	limit(40);
	for (unsigned round = 0; round < (takes_time() ? 50 : 200); round++) {
		uint16_t n;

		while (msg_send(to_b, sent, len_of(sent, to_b->mtu)) == 0)
			sent++;
		n = burst_some(b, rx, 1 + unit_rng(&rng_state) % PLX_DEV_RX_BURST);
		CU_ASSERT_FATAL(n != 0 || takes_time()); /* there the sender may have had to wait */
		/* The sender goes on as far as it can while we still look at these. */
		while (msg_send(to_b, sent, len_of(sent, to_b->mtu)) == 0)
			sent++;
		for (uint16_t k = 0; k < n; k++, next++)
			CU_ASSERT_FATAL(msg_is(&rx[k], next, len_of(next, to_b->mtu)));
		b->rx_release(b, rx, n);
	}
	drain_all(b, to_b->mtu, &next, sent);
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
			if (takes_time())
				others_turn(b); /* a learns that there is room again */
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

/* Words, the longest short messages, and some that are no short ones. */
static uint32_t
sure_len(const struct plx_peer *peer, uint64_t i)
{
	if (i % 50 == 49)
		return peer->mtu - 8;
	return i % 3 == 0 ? peer->short_max : 8;
}

static int
sure_send(struct plx_peer *peer, uint64_t i)
{
	static uint8_t data[1u << 16];
	struct plx_tx tx = {.peer = peer, .hdr = &i, .hdr_len = 8, .data = data, .len = sure_len(peer, i),
		.op = (uint8_t)i};

	memcpy(data + tx.len - 8, &i, 8);
	return tx.len > peer->short_max ? plx_peer_tx(&tx) : plx_peer_tx_short(peer, tx.op, i, data, tx.len);
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
			bool sure = plx_peer_is_sure(to_b, sure_len(to_b, sent));
			int rc = sure_send(to_b, sent);

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

				UNIT_EQ_FATAL(rx[k].len, 8 + sure_len(to_b, next));
				memcpy(&hdr, rx[k].data, 8);
				memcpy(&body, rx[k].data + rx[k].len - 8, 8);
				UNIT_EQ_FATAL(hdr, next);
				UNIT_EQ_FATAL(body, next);
			}
			b->rx_release(b, rx, got);
			more -= got;
		}
		plx_queue_control(a);
	}
	UNIT_TRUE(!plx_peer_is_sure(to_b, (uint64_t)to_b->short_max + 1));
	if (tried->is_sure != NULL)
		UNIT_TRUE(tried->is_sure(to_b) ? n_sure > 2500 : n_sure == 0);
	queue_close(a);
	UNIT_EQ(sent, 5000);
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
	limit(10);
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
	senders_exchange(PLX_DEV_RX_BURST, takes_time() ? 300 : 3000);
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
	drain_all(a, self->mtu, &next, 1000);
	plx_queue_control(a);
	UNIT_EQ(self->state, PLX_PEER_OPEN);
	queue_close(a);
}

/* A program that seeds random() gets the same numbers with a device as without. */
static void
the_random_numbers_of_the_program_are_its_own(void)
{
	struct plx_queue *a, *b;
	struct plx_peer *to_b;
	uint64_t next = 0;
	long first;

	srandom(1);
	first = random();
	srandom(1);
	a = queue_new();
	b = queue_new();
	to_b = connected_to(a, b);
	UNIT_EQ_FATAL(msg_send(to_b, 0, len_of(0, to_b->mtu)), 0);
	drain_all(b, to_b->mtu, &next, 1);
	queue_close(a);
	queue_close(b);
	UNIT_EQ(random(), first);
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

void
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
void
expect_farewell(struct plx_queue *b, struct plx_peer *to_a, uint32_t mtu, uint64_t at_most,
	uint64_t at_least)
{
	struct plx_rx rx[4];
	uint64_t next = 0;
	uint16_t n;

	/* Control may come first: what was sent is still delivered before it is reported. */
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
	UNIT_TRUE(sent == n_msgs || (tried->at_least != 0 && sent >= tried->at_least));
	n_msgs = sent;
	if (tried->die != NULL) {
		tried->die(a);
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

/* Both ends of its time asleep: before it nothing has come, and a message ends it. */
static void
a_message_wakes_who_sleeps(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct pollfd p = {.fd = plx_queue_efd(b), .events = POLLIN};
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];

	CU_ASSERT_FATAL(p.fd >= 0);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t since = now_ns();

		UNIT_EQ(burst_some(b, rx, 4), 0);
		while (plx_queue_arm(b) != 0) {
			UNIT_EQ_FATAL(burst(b, rx, 4), 0);
			CU_ASSERT_FATAL(patient(since));
		}
		if (!takes_time()) /* else of what was sent before there may be news */
			UNIT_EQ(poll(&p, 1, 0), 0);
		UNIT_EQ_FATAL(msg_send(to_b, i, 8), 0);
		UNIT_EQ(poll(&p, 1, 5000), 1);
		plx_queue_disarm(b);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		CU_ASSERT(msg_is(&rx[0], i, 8));
		b->rx_release(b, rx, 1);
	}
	queue_close(a);
	queue_close(b);
}

bool
sleep_once(struct plx_queue *q)
{
	struct pollfd p = {.fd = plx_queue_efd(q), .events = POLLIN};
	uint64_t since = now_ns(), due, most_ms = 3000;
	struct plx_rx rx;
	bool woken = true, armed = plx_queue_arm(q) == 0;

	if (armed) {
		due = plx_queue_deadline(q);
		if (due != UINT64_MAX)
			most_ms = due > since ? (due - since) / 1000000 + 1 : 0;
		woken = poll(&p, 1, (int)most_ms) == 1 || due != UINT64_MAX;
		plx_queue_disarm(q);
	}
	if (!armed || plx_queue_deadline(q) <= now_ns())
		plx_queue_control(q);
	UNIT_EQ(burst(q, &rx, 1), 0);
	return woken;
}

/* By an event, or as it is time to look: nothing is sent to it, and no turn is run but after a wake-up. */
static void
who_sleeps_learns_of_a_peer_that_has_gone(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	uint64_t since = now_ns();
	struct plx_peer *to_b;
	struct plx_rx rx;

	UNIT_TRUE_FATAL(plx_queue_efd(a) >= 0);
	to_b = connected_to(a, b);
	UNIT_EQ_FATAL(msg_send(to_b, 1, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, &rx, 1), 1);
	b->rx_release(b, &rx, 1);
	queue_close(b);
	while (to_b->state != PLX_PEER_DEAD && sleep_once(a))
		CU_ASSERT_FATAL(patient(since));
	UNIT_EQ(to_b->state, PLX_PEER_DEAD);
	queue_close(a);
}

/* Who is called when it is time has done it: there is a later time, or none. */
static void
a_deadline_is_over_when_it_was_kept(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b;

	UNIT_TRUE_FATAL(plx_queue_efd(a) >= 0);
	to_b = connected_to(a, b);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4 && plx_queue_deadline(a) <= now_ns(); i++)
			plx_queue_control(a);
		UNIT_TRUE(plx_queue_deadline(a) > now_ns());
		if (round == 0)
			UNIT_EQ(msg_send(to_b, 1, 8), 0);
		if (round == 1)
			queue_close(b);
	}
	queue_close(a);
}

/* -- which tests run on which driver -- */

static const struct dev_contract_test messages[] = {
	DEV_TEST(what_was_taken_arrives_in_order_and_unchanged, 0),
	DEV_TEST(a_full_queue_answers_again_and_changes_nothing, 0),
	DEV_TEST(what_a_driver_is_sure_of_it_takes, NEED_WITHIN_HOST),
	DEV_TEST(data_stays_until_it_is_released, 0),
	DEV_TEST(every_length_up_to_the_mtu_is_taken_and_no_longer, 0),
	DEV_TEST(a_look_tells_whether_something_has_come, NEED_WITHIN_HOST),
	DEV_TEST(a_look_tells_of_each_of_many_senders, NEED_WITHIN_HOST),
	DEV_TEST(packed_data_is_written_once_when_it_is_taken, 0),
	DEV_TEST(many_senders_keep_their_order_each, 0),
	DEV_TEST(a_burst_of_one_takes_from_many_senders_too, 0),
	DEV_TEST(a_queue_sends_to_itself, 0),
	DEV_TEST(the_random_numbers_of_the_program_are_its_own, 0),
	DEV_TEST(one_peer_stands_for_an_address_and_for_what_comes_from_it, 0),
	DEV_TEST(addresses_of_other_hosts_and_other_forms_are_refused, NEED_WITHIN_HOST),
	DEV_TEST(a_stale_address_does_not_connect, NEED_WITHIN_HOST),
	DEV_TEST(a_dead_peer_is_told_once_and_after_its_messages, 0),
	DEV_TEST(a_dead_peer_never_heard_before_is_told_after_its_messages, 0),
	DEV_TEST(a_message_wakes_who_sleeps, NEED_SLEEP),
	DEV_TEST(who_sleeps_learns_of_a_peer_that_has_gone, NEED_SLEEP),
	DEV_TEST(a_deadline_is_over_when_it_was_kept, NEED_SLEEP),
	{{NULL, NULL}, 0},
};

void
dev_contract_add(struct dev_contract *c)
{
	struct dev_contract **at = &contracts;

	while (*at != NULL)
		at = &(*at)->next;
	*at = c;
}

/* What a driver can do, as enum dev_contract_need. @return false: no queue of it can be had here */
static bool
can(const struct dev_contract *c, unsigned *needs)
{
	const struct plx_dev_ops *ops = c->ops;
	struct plx_queue *q = NULL;
	uint32_t where;

	tried = c;
	plx_conf_defaults(&conf);
	if (c->set_up != NULL)
		c->set_up(0);
	if (plx_dev_open(c->ops->name, &conf, &dev) != 0)
		return false;
	if (plx_queue_open(dev, &conf, NULL, &q) == 0) {
		*needs = (takes_time() ? 0 : NEED_WITHIN_HOST) | (q->caps & PLX_DEV_SHARED ? NEED_SHARED : 0) |
			((q->caps & PLX_DEV_GET) != 0 && (q->caps & PLX_DEV_PUT) != 0 ? NEED_RMA : 0) |
			(q->caps & PLX_DEV_KEYS ? NEED_KEYS : 0) | (ops->group.join != NULL ? NEED_GROUP : 0) |
			(plx_queue_lossy_open(q, &where) == 0 ? NEED_DATAGRAM : 0) |
			(ops->sleep.arm != NULL ? NEED_SLEEP : 0) | (q->zcopy_min != 0 ? NEED_ZCOPY : 0) |
			(q->keep_min != 0 ? NEED_KEEP : 0);
		plx_queue_close(q);
	}
	plx_dev_close(dev);
	return q != NULL;
}

static void
choose(const struct dev_contract_test *all, unsigned can_do, CU_TestInfo *tests, unsigned *n)
{
	for (; all->test.pName != NULL; all++)
		if ((all->needs & can_do) == all->needs && *n < TESTS_MAX)
			tests[(*n)++] = all->test;
}

/* Suites in the order in which they run: which driver, and how it is set up. */
static struct {
	const struct dev_contract *contract;
	unsigned setup;
	char name[80];
} runs[RUNS_MAX];
static CU_SuiteInfo suites[RUNS_MAX + 1];
static unsigned n_runs, next_run;

static int
begin_suite(void)
{
	tried = runs[next_run].contract;
	setup = runs[next_run++].setup;
	return 0;
}

static void
suite_add(const struct dev_contract *c, unsigned i, const char *what, const char *how, CU_TestInfo *tests)
{
	if (n_runs == RUNS_MAX)
		return;
	runs[n_runs].contract = c;
	runs[n_runs].setup = i;
	snprintf(runs[n_runs].name, sizeof(runs[n_runs].name), "%s, %s%s%s", what, c->ops->name,
		how != NULL ? " " : "", how != NULL ? how : "");
	suites[n_runs] = (CU_SuiteInfo){runs[n_runs].name, begin_suite, NULL, dev_begin, dev_end, tests};
	n_runs++;
}

static void
driver_add(const struct dev_contract *c)
{
	CU_TestInfo *tests = calloc(TESTS_MAX + 1, sizeof(*tests));
	unsigned can_do = 0, n = 0, i = 0;

	if (tests == NULL || !can(c, &can_do)) {
		printf("%s: no such device here, its contract is not tried\n", c->ops->name);
		free(tests);
		return;
	}
	can_do &= c->lacks != NULL ? ~c->lacks() : ~0u;
	choose(messages, can_do, tests, &n);
	choose(dev_contract_tables, can_do, tests, &n);
	choose(dev_contract_lent, can_do, tests, &n);
	do
		suite_add(c, i, "contract", c->setups != NULL ? c->setups[i] : NULL, tests);
	while (c->setups != NULL && c->setups[++i] != NULL);
	for (const struct dev_contract_suite *s = c->suites; s != NULL && s->name != NULL; s++)
		if ((s->needs & can_do) == s->needs)
			suite_add(c, s->setup, s->name, NULL, s->tests);
}

int
main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;

	with_tags = argc > 3 && strcmp(argv[3], "tags") == 0;
	if (argc > 2)
		quiet_ns = strtoull(argv[2], NULL, 10) * 1000000u;
	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_init_drivers() != 0)
		return EXIT_FAILURE;
	for (const struct dev_contract *c = contracts; c != NULL; c = c->next)
		if (plx_dev_register(c->ops) != 0) /* who is not among those */
			return EXIT_FAILURE;
	for (const struct dev_contract *c = contracts; c != NULL; c = c->next)
		if (only == NULL || strcmp(c->ops->name, only) == 0)
			driver_add(c);
	return n_runs != 0 ? unit_run(suites) : 77;
}

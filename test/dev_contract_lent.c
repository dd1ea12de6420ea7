/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_contract_lent.c - the contract of sending without a copy, and of keeping what arrived
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plx_unit_dev.h"

/* -- messages that are sent from where their data lies -- */

#define SLOTS 24
#define FIRST 128u /* a device that matches tags looks at lower opcodes */

static uint8_t slots[SLOTS][MSG_MAX];
static struct plx_dev_mem slots_mem; /* of them all, where the device wants to know */
static bool slot_out[SLOTS];	     /* the driver's */
static unsigned n_done, n_failed;

static void
slot_done(void *arg, int err)
{
	uint8_t *slot = arg;
	unsigned i = (unsigned)((slot - slots[0]) / MSG_MAX);

	UNIT_TRUE_FATAL(slot_out[i]); /* once */
	slot_out[i] = false;
	memset(slot, 0xee, MSG_MAX); /* it is ours again: nobody may look at it any more */
	n_done++;
	n_failed += err != 0;
}

static void
slots_begin(struct plx_queue *q)
{
	memset(slot_out, 0, sizeof(slot_out));
	memset(&slots_mem, 0, sizeof(slots_mem));
	n_done = n_failed = 0;
	(void)plx_queue_mem_reg(q, slots, sizeof(slots), 0, &slots_mem); /* without keys it is not asked for */
}

static unsigned
slots_out(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		n += slot_out[i];
	return n;
}

/* So many pieces of len bytes, of different lengths. @return how many there are */
static unsigned
cut(struct iovec *iov, unsigned most, uint8_t *data, uint32_t len)
{
	unsigned n = 0;

	while (len != 0) {
		uint32_t part = n + 1 == most ? len : (len + 1) / 2;

		iov[n++] = (struct iovec){data, part};
		data += part;
		len -= part;
	}
	return n;
}

/* Message number i by a free slot. @return what the device says; it is taken at 0 and -EINPROGRESS */
static int
slot_send(struct plx_peer *peer, unsigned slot, uint64_t i, uint32_t len)
{
	struct iovec iov[UINT8_MAX];
	struct plx_tx_zcopy tx = {.peer = peer, .hdr = &i, .hdr_len = sizeof(i), .op = (uint8_t)i, .iov = iov,
		.mem = slots_mem.drv, .done = slot_done, .arg = slots[slot]};
	unsigned before = n_done;
	int rc;

	unit_fill(slots[slot], len, i);
	tx.n_iov = (uint8_t)cut(iov, 1 + (unsigned)i % peer->q->zcopy_iov, slots[slot], len);
	slot_out[slot] = true;
	rc = plx_peer_tx_zcopy(&tx);
	UNIT_EQ(n_done, before); /* a driver does not call done before it returns */
	slot_out[slot] = rc == -EINPROGRESS;
	if (rc != -EINPROGRESS)
		memset(slots[slot], 0xee, len);
	memset(iov, 0xee, sizeof(iov));
	return rc == -EINPROGRESS ? 0 : rc;
}

/* Message number i, by a slot if one is free, the dice say so, and the device does not say that it has to be copied. */
static int
any_send(struct plx_peer *peer, uint64_t i, uint32_t len)
{
	unsigned slot = (unsigned)(unit_rng(&rng_state) % SLOTS);
	int rc = -EOPNOTSUPP;

	if (len != 0 && !slot_out[slot] && unit_rng(&rng_state) % 4 != 0)
		rc = slot_send(peer, slot, i, len);
	return rc == -EOPNOTSUPP ? msg_send(peer, i, len) : rc;
}

static void
what_is_not_copied_arrives_in_order_and_unchanged(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, next = 0, since = now_ns();
	struct plx_rx rx[1];
	const uint64_t n = 3000;

	slots_begin(a);
	if (tried->misbehave != NULL)
		tried->misbehave();
	while (next < n || slots_out() != 0) {
		while (sent < n && unit_rng(&rng_state) % 64 != 0) {
			int rc = any_send(to_b, sent, len_of(sent, to_b->mtu));

			if (rc != 0) {
				UNIT_EQ_FATAL(rc, -EAGAIN);
				break;
			}
			sent++;
		}
		drain(b, to_b->mtu, &next);
		UNIT_EQ_FATAL(burst(a, rx, 1), 0); /* what is complete is reported in a turn */
		CU_ASSERT_FATAL(patient(since));
	}
	UNIT_TRUE(n_done != 0);
	UNIT_EQ(n_failed, 0);
	UNIT_EQ(a->stat.tx_msgs, n);
	UNIT_EQ(b->stat.rx_msgs, n);
	plx_queue_mem_dereg(a, &slots_mem, false);
	queue_close(a);
	queue_close(b);
}

static void
every_length_is_sent_without_a_copy_and_no_longer_than_the_mtu(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const uint32_t lens[] = {1, 7, 8, 9, a->zcopy_min, to_b->mtu - 9, to_b->mtu - 8};
	uint64_t since = now_ns();
	struct plx_rx rx[4];

	slots_begin(a);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		UNIT_EQ_FATAL(slot_send(to_b, 0, FIRST + i, lens[i]), 0);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		CU_ASSERT(msg_is(&rx[0], FIRST + i, lens[i]));
		b->rx_release(b, rx, 1);
		while (slots_out() != 0) {
			UNIT_EQ_FATAL(burst(a, rx, 1), 0);
			others_turn(a);
			CU_ASSERT_FATAL(patient(since));
		}
	}
	UNIT_EQ(slot_send(to_b, 0, FIRST, to_b->mtu - 7), -EMSGSIZE);
	UNIT_EQ(burst_some(b, rx, 4), 0);
	plx_queue_mem_dereg(a, &slots_mem, false);
	queue_close(a);
	queue_close(b);
}

/* Until nothing is out any more. */
static void
slots_wait(struct plx_queue *q)
{
	uint64_t since = now_ns();
	struct plx_rx rx;

	while (slots_out() != 0) {
		UNIT_EQ_FATAL(burst(q, &rx, 1), 0);
		plx_queue_control(q);
		CU_ASSERT_FATAL(patient(since));
	}
}

static void
what_a_dead_peer_did_not_take_is_the_senders_again(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	unsigned sent = 0;

	slots_begin(a);
	n_told = 0;
	a->on_dead = on_dead;
	while (sent < 5 && slot_send(to_b, sent, FIRST + sent, to_b->mtu / 2) == 0)
		sent++;
	UNIT_TRUE(sent > 0);
	if (tried->die != NULL)
		tried->die(b);
	queue_close(b);
	slots_wait(a);
	/* turns: control alone reads no completion, and the farewell may still be unread */
	for (uint64_t since = now_ns(); n_told == 0 && patient(since);)
		others_turn(NULL);
	UNIT_EQ(n_told, 1);
	UNIT_TRUE(slot_send(to_b, 0, FIRST, 100) < 0);
	UNIT_EQ(slots_out(), 0);
	plx_queue_mem_dereg(a, &slots_mem, false);
	queue_close(a);
}

/* Nothing more is reported of it, and what was taken arrives unchanged. */
static void
what_is_out_when_a_queue_closes_is_the_senders_behind_that(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint32_t len = to_b->mtu / 2;
	struct plx_rx rx[4];
	uint64_t next = 0;
	unsigned sent = 0;
	uint16_t n;

	slots_begin(a);
	while (sent < 5 && slot_send(to_b, sent, FIRST + sent, len) == 0)
		sent++;
	UNIT_TRUE(sent > 0);
	n_done = 0;
	queue_close(a);
	UNIT_EQ(n_done, 0);
	memset(slots, 0xee, sizeof(slots));
	while ((n = burst_some(b, rx, 4)) != 0) {
		for (uint16_t i = 0; i < n; i++, next++)
			CU_ASSERT(msg_is(&rx[i], FIRST + next, len));
		b->rx_release(b, rx, n);
	}
	UNIT_EQ(next, sent);
	queue_close(b);
}

/* -- messages that the receiver keeps -- */

#define KEPT_MAX 5000u

static struct kept {
	void *handle;
	uint8_t *data;
	uint64_t number;
	uint32_t len;
	bool ours; /* written to */
} kept[KEPT_MAX];
static unsigned n_kept;

/* Keep what has come, if the driver can do without. */
static void
keep(struct plx_queue *q, struct plx_rx *rx, uint64_t number, uint32_t len)
{
	struct kept *k = &kept[n_kept];

	CU_ASSERT_FATAL(n_kept < KEPT_MAX);
	*k = (struct kept){.data = (uint8_t *)(uintptr_t)rx->data, .number = number, .len = len};
	k->handle = plx_queue_rx_keep(q, rx);
	n_kept += k->handle != NULL;
}

static bool
is_as_it_was(const struct kept *k)
{
	uint64_t number;

	if (k->ours)
		return unit_is_filled(k->data, k->len + 8, k->number + 1);
	memcpy(&number, k->data, sizeof(number));
	return number == k->number && unit_is_filled(k->data + 8, k->len, number);
}

static void
all_are_as_they_were(void)
{
	for (unsigned i = 0; i < n_kept; i++)
		CU_ASSERT(is_as_it_was(&kept[i]));
}

/* Some messages, which are long and come in order; keeps the first of each burst, or none. */
static void
exchange(struct plx_queue *b, struct plx_peer *to_b, unsigned n, bool keeps)
{
	static uint64_t sent, next;
	uint32_t len = to_b->mtu - 8;
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint16_t got;

	sent = next = 0;
	while (next < n) {
		while (sent < n && msg_send(to_b, sent, len) == 0)
			sent++;
		got = burst_some(b, rx, PLX_DEV_RX_BURST);
		CU_ASSERT_FATAL(got != 0 || takes_time());
		for (uint16_t i = 0; i < got; i++, next++) {
			CU_ASSERT_FATAL(msg_is(&rx[i], next, len));
			if (keeps && i == 0)
				keep(b, &rx[i], next, len);
		}
		b->rx_release(b, rx, got);
		plx_queue_control(b);
	}
}

static void
kept_return(struct plx_queue *q, unsigned n)
{
	for (; n != 0; n--)
		plx_queue_rx_return(q, kept[--n_kept].handle);
}

/* A queue whose device matches tags keeps none, though others of the driver do. */
static bool
keeps_none(struct plx_queue *a, struct plx_queue *b)
{
	if (b->keep_min != 0)
		return false;
	queue_close(a);
	queue_close(b);
	return true;
}

static void
a_message_that_is_kept_stays_while_others_come_and_go(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	unsigned most;

	UNIT_TRUE_FATAL(b->keep_min <= to_b->mtu);
	if (keeps_none(a, b))
		return;
	n_kept = 0;
	exchange(b, to_b, 10, true);
	exchange(b, to_b, 10, true); /* a driver may get buffers for that when it sees that they are wanted */
	UNIT_TRUE(n_kept != 0);
	for (unsigned i = 0; i < n_kept; i += 2) {
		kept[i].ours = true;
		unit_fill(kept[i].data, kept[i].len + 8, kept[i].number + 1);
	}
	exchange(b, to_b, 2000, false);
	all_are_as_they_were();
	kept_return(b, n_kept / 2);
	exchange(b, to_b, 500, false);
	all_are_as_they_were();
	/* Whatever is wanted, there is an end to it, and messages come all the same. */
	exchange(b, to_b, 3000, true);
	most = n_kept;
	exchange(b, to_b, 500, true);
	UNIT_EQ(n_kept, most);
	all_are_as_they_were();
	kept_return(b, 1);
	exchange(b, to_b, 500, true);
	UNIT_EQ(n_kept, most);
	all_are_as_they_were();
	kept_return(b, n_kept / 2); /* the rest goes with the queue */
	queue_close(a);
	queue_close(b);
}

static void
a_message_that_is_kept_outlives_its_sender(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);

	if (keeps_none(a, b))
		return;
	n_kept = 0;
	exchange(b, to_b, 20, true);
	exchange(b, to_b, 20, true);
	UNIT_TRUE(n_kept != 0);
	if (tried->die != NULL)
		tried->die(a);
	queue_close(a);
	for (unsigned i = 0; i < 5; i++) {
		struct plx_rx rx;

		UNIT_EQ(burst_some(b, &rx, 1), 0);
		plx_queue_control(b);
	}
	all_are_as_they_were();
	kept_return(b, n_kept);
	queue_close(b);
}

/* It is to be sent as a copy: nothing has happened. */
static void
memory_that_a_device_does_not_take_it_leaves_alone(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct iovec iov = {slots[0], a->zcopy_min};
	struct plx_tx_zcopy tx = {.peer = to_b, .hdr = "8 bytes.", .hdr_len = 8, .op = FIRST, .iov = &iov, .n_iov = 1,
		.done = slot_done, .arg = slots[0]};
	uint64_t sent = a->stat.tx_msgs;
	struct plx_rx rx;

	slots_begin(a);
	UNIT_TRUE(plx_queue_takes(a, UCS_MEMORY_TYPE_HOST));
	for (unsigned type = 0; type < UINT8_MAX; type++) {
		tx.mem_type = (uint8_t)type;
		if (plx_queue_takes(a, (uint8_t)type))
			UNIT_TRUE(UCS_BIT(type) & UCS_MEMORY_TYPES_CPU_ACCESSIBLE);
		else
			UNIT_EQ(plx_peer_tx_zcopy(&tx), -EOPNOTSUPP);
	}
	UNIT_EQ(a->stat.tx_msgs, sent);
	UNIT_EQ(burst_some(b, &rx, 1), 0);
	plx_queue_mem_dereg(a, &slots_mem, false);
	queue_close(a);
	queue_close(b);
}

const struct dev_contract_test dev_contract_lent[] = {
	DEV_TEST(memory_that_a_device_does_not_take_it_leaves_alone, NEED_ZCOPY),
	DEV_TEST(what_is_not_copied_arrives_in_order_and_unchanged, NEED_ZCOPY),
	DEV_TEST(every_length_is_sent_without_a_copy_and_no_longer_than_the_mtu, NEED_ZCOPY),
	DEV_TEST(what_a_dead_peer_did_not_take_is_the_senders_again, NEED_ZCOPY),
	DEV_TEST(what_is_out_when_a_queue_closes_is_the_senders_behind_that, NEED_ZCOPY),
	DEV_TEST(a_message_that_is_kept_stays_while_others_come_and_go, NEED_KEEP),
	DEV_TEST(a_message_that_is_kept_outlives_its_sender, NEED_KEEP),
	{{NULL, NULL}, 0},
};

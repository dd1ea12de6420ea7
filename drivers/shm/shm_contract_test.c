/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_contract_test.c - the shm driver in the contract of drivers, and what only it has
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
#include "plx_proc.h"
#include "plx_unit_dev.h"

#include "plx_shm.h"
#include "shm_int.h"

static void
a_look_takes_a_short_message(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[4];

	UNIT_EQ(b->rx_look(b, rx), PLX_RX_BURST); /* the doorbell names the sender */
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

/* Wherever in a lap: the cell behind the last one is the first. */
static void
a_look_leaves_two_long_messages_to_a_burst(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, got = 0;
	struct plx_rx rx[4];

	UNIT_EQ_FATAL(msg_send(to_b, sent++, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
	b->rx_release(b, rx, 1);
	for (got = sent; sent < 3 * SHM_CELLS; got = sent) {
		for (unsigned k = 0; k < 2; k++)
			UNIT_EQ_FATAL(msg_send(to_b, sent++, 2000), 0);
		UNIT_EQ_FATAL(b->rx_look(b, rx), PLX_RX_BURST);
		UNIT_EQ_FATAL(burst_some(b, rx, 2), 2);
		CU_ASSERT(msg_is(&rx[0], got, 2000) && msg_is(&rx[1], got + 1, 2000));
		b->rx_release(b, rx, 2);
		UNIT_EQ_FATAL(msg_send(to_b, sent, 2000), 0);
		UNIT_EQ_FATAL(b->rx_look(b, rx), PLX_RX_HELD);
		CU_ASSERT(msg_is(&rx[0], sent++, 2000));
		b->rx_release(b, rx, 1);
	}
	queue_close(a);
	queue_close(b);
}

/* Data that is looked at from its page k on: the receiver looks, while the sender copies. */
static struct {
	struct plx_queue *q;
	uint8_t *data;
	uint32_t n;		/* pages read so far */
	bool in_order;		/* the first one first */
	uint32_t coming[4];	/* what the receiver had fetched then */
} slow_data;

#define SLOW_PAGE 4096u

static void
on_slow_page(int sig, siginfo_t *info, void *context)
{
	const uint64_t page = ((uintptr_t)info->si_addr - (uintptr_t)slow_data.data) / SLOW_PAGE;
	struct plx_rx rx[4];

	(void)sig;
	(void)context;
	if (page >= RTE_DIM(slow_data.coming) || (slow_data.in_order && page != slow_data.n))
		abort();
	if (slow_data.q->rx_look(slow_data.q, rx) != PLX_RX_NONE)
		abort();
	slow_data.coming[slow_data.n++] = shm_queue(slow_data.q)->only->coming;
	mprotect(slow_data.data + page * SLOW_PAGE, SLOW_PAGE, PROT_READ);
}

static void
what_is_written_of_a_message_is_fetched_while_the_rest_is_written(void)
{
	const uint32_t len = SHM_COMING_MAX;
	struct sigaction on_fault = {.sa_sigaction = on_slow_page, .sa_flags = SA_SIGINFO}, before;
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t i = 0, turns = 0;
	struct plx_tx tx = {.peer = to_b, .hdr = &i, .hdr_len = sizeof(i), .len = len};
	struct plx_rx rx[4];

	UNIT_EQ_FATAL(msg_send(to_b, 0, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	b->rx_release(b, rx, 1);
	slow_data.data = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_FATAL(slow_data.data != MAP_FAILED);
	slow_data.q = b;
	a->turns = &turns;
	tx.data = slow_data.data;
	sigaction(SIGSEGV, &on_fault, &before);
	for (i = 1; i < 4; i++) { /* the second begins again, and the third is one of several */
		mprotect(slow_data.data, len, PROT_READ | PROT_WRITE);
		unit_fill(slow_data.data, len, i);
		mprotect(slow_data.data, len, PROT_NONE);
		slow_data.n = 0;
		slow_data.in_order = i < 3; /* of one copy, the C library may read the end first */
		turns += i < 3;
		tx.op = (uint8_t)i;
		shm_peer(to_b)->past_min = UINT32_MAX;
		shm_peer(to_b)->probe_at = UINT64_MAX;
		UNIT_EQ_FATAL(plx_peer_tx(&tx), 0);
		UNIT_EQ(slow_data.n, 4);
		for (uint32_t k = 1; k < 4 && i < 3; k++)
			UNIT_EQ(slow_data.coming[k], RTE_ALIGN_CEIL(k * SLOW_PAGE + 8, SHM_LINE));
		UNIT_EQ(shm_queue(b)->only->coming_pos, RTE_MIN(i, 2u));
		UNIT_EQ_FATAL(b->rx_look(b, rx), PLX_RX_HELD);
		CU_ASSERT(msg_is(&rx[0], i, len));
		b->rx_release(b, rx, 1);
	}
	sigaction(SIGSEGV, &before, NULL);
	munmap(slow_data.data, len);
	queue_close(a);
	queue_close(b);
}

static void
a_message_that_is_said_to_come_from_elsewhere_is_not_fetched(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const struct shm_peer *p = shm_peer(to_b);
	const struct {
		union shm_ref ref;
		uint16_t len;
		uint8_t kind;
	} said[] = {
		{{{0, SHM_MSG_MAX + 1}}, 64, SHM_CELL_DATA},
		{{{p->data_len - 64, 65}}, 64, SHM_CELL_DATA},
		{{{UINT32_MAX, 64}}, 64, SHM_CELL_DATA},
		{{{0, 64}}, 65, SHM_CELL_DATA},
		{{{0, 64}}, UINT16_MAX, SHM_CELL_DATA},
		{{{0, 64}}, 64, SHM_CELL_INLINE},
		{{{0, 64}}, 64, 0},
		{{{0, 64}}, 64, SHM_CELL_DATA}, /* but this one is */
	};
	struct plx_rx rx[4];

	UNIT_EQ_FATAL(msg_send(to_b, 0, 8), 0);
	UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
	b->rx_release(b, rx, 1);
	for (uint32_t i = 0; i < RTE_DIM(said); i++) {
		struct shm_cell *cell = (struct shm_cell *)(uintptr_t)to_b->tx_line;
		const union shm_cell_head head = {.seq = p->tx_seq | SHM_SEQ_COMING, .len = said[i].len, .kind = said[i].kind};

		memcpy(cell->body, &said[i].ref, sizeof(said[i].ref));
		cell->head = head.word;
		UNIT_EQ(b->rx_look(b, rx), PLX_RX_NONE);
		UNIT_EQ(shm_queue(b)->only->coming, i + 1 < RTE_DIM(said) ? 0 : 64);
		UNIT_EQ(burst(b, rx, 4), 0);
	}
	UNIT_EQ_FATAL(msg_send(to_b, 1, 8), 0); /* and is forgotten */
	UNIT_EQ_FATAL(b->rx_look(b, rx), PLX_RX_ONE);
	CU_ASSERT(msg_is(&rx[0], 1, 8));
	UNIT_EQ(b->stat.rx_drop_bad_cell, 0);
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

/* No cell is used twice in a lap, and none is on the page of the one before. */
static void
a_lap_visits_each_cell_once_and_never_a_neighbour(void)
{
	static struct shm_cell cells[SHM_CELLS];
	const struct shm_cell *at, *last = NULL;
	unsigned visits[SHM_CELLS] = {0};

	for (uint64_t pos = 5 * SHM_CELLS; pos < 6 * SHM_CELLS; pos++, last = at) {
		at = shm_cell_at(cells, pos);
		UNIT_TRUE_FATAL(at >= cells && at < cells + SHM_CELLS);
		UNIT_EQ(visits[at - cells]++, 0);
		UNIT_TRUE(last == NULL || labs(at - last) * sizeof(*at) > 4096);
		CU_ASSERT_PTR_EQUAL(shm_cell_at(cells, pos + SHM_CELLS), at);
		if (pos % (SHM_CELLS / 2) < SHM_CELLS / 2 - 2)
			CU_ASSERT_PTR_EQUAL(shm_cell_at(cells, pos + 2), at + 2);
	}
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
	UNIT_EQ(sent[0], SHM_DATA_WIDE / SHM_MSG_ROOM);
	UNIT_EQ(sent[1], SHM_DATA_LEN / SHM_MSG_ROOM);
	UNIT_EQ(sent[2], SHM_DATA_LEN / SHM_MSG_ROOM);
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

/* A header of hdr_len bytes and len of data, of which skew come first; all of a pattern of i. */
static int
shaped_send(struct plx_peer *peer, uint64_t i, uint8_t hdr_len, uint8_t skew, uint32_t len)
{
	static uint8_t bytes[SHM_MSG_MAX];
	const struct plx_tx tx = {.peer = peer, .hdr = bytes, .hdr_len = hdr_len, .data = bytes + hdr_len, .len = len,
		.op = (uint8_t)i, .skew = skew};

	unit_fill(bytes, hdr_len + len, i);
	return plx_peer_tx(&tx);
}

static bool
shaped_is(const struct plx_rx *rx, uint64_t i, uint32_t len)
{
	static uint8_t bytes[SHM_MSG_MAX];

	unit_fill(bytes, len, i);
	return rx->op == (uint8_t)i && rx->len == len && memcmp(rx->data, bytes, len) == 0;
}

static void
long_data_begins_at_a_line(void)
{
	static const uint32_t lens[] = {1023, 1024, 1100, 1500, 4000, SHM_MSG_MAX - 255};
	static const uint8_t heads[] = {0, 1, 8, 24, 63, 64, 65, 255}, skews[] = {0, 5, 48, 255};
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct plx_rx rx[1];
	uint64_t n = 0;

	shm_peer(to_b)->past_min = UINT32_MAX;
	shm_peer(to_b)->probe_at = UINT64_MAX;
	for (unsigned h = 0; h < RTE_DIM(heads); h++) {
		for (unsigned k = 0; k < RTE_DIM(skews); k++) {
			for (unsigned i = 0; i < RTE_DIM(lens); i++, n++) {
				const uint32_t before = heads[h] + skews[k];

				UNIT_EQ_FATAL(shaped_send(to_b, n, heads[h], skews[k], lens[i]), 0);
				UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
				CU_ASSERT(shaped_is(rx, n, heads[h] + lens[i]));
				UNIT_EQ(((uintptr_t)rx->data + (lens[i] >= SHM_ALIGNED_MIN ? before : 0)) % SHM_LINE, 0);
				b->rx_release(b, rx, 1);
			}
		}
	}
	queue_close(a);
	queue_close(b);
}

/* @return b as a peer of a, with a narrow area, as first has the wide one */
static struct plx_peer *
narrow_of(struct plx_queue *first, struct plx_queue *a, struct plx_queue *b)
{
	struct plx_rx rx[1];
	struct plx_peer *to_b;

	UNIT_EQ_FATAL(msg_send(connected_to(first, b), 0, 8), 0);
	to_b = connected_to(a, b);
	UNIT_EQ_FATAL(shm_peer(to_b)->data_len, SHM_DATA_LEN);
	UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
	b->rx_release(b, rx, 1);
	return to_b;
}

/* A message that takes a line more than the longest short one leaves room for fewer of them. */
static void
what_leads_to_a_line_overwrites_nothing(void)
{
	struct plx_queue *b = queue_new(), *first = queue_new(), *a = queue_new();
	struct plx_peer *to_b = narrow_of(first, a, b);
	struct plx_rx rx[1];
	uint64_t sent = 0;

	for (; sent < 40; sent++)
		UNIT_EQ_FATAL(shaped_send(to_b, sent, 1, 0, 1479), 0);
	for (; msg_send(to_b, 2 * sent, SHM_SHORT_MAX) == 0; sent++) /* even: those that are certain */
		;
	UNIT_TRUE(sent < SHM_CELLS);
	for (uint64_t got = 0; got < sent; got++) {
		UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
		CU_ASSERT_FATAL(got < 40 ? shaped_is(rx, got, 1480) : msg_is(rx, 2 * got, SHM_SHORT_MAX));
		b->rx_release(b, rx, 1);
	}
	queue_close(first);
	queue_close(a);
	queue_close(b);
}

/* Short ones and long ones; a queue without a worker knows no turns. */
static void
the_first_message_of_a_turn_stands_apart_from_the_one_before(void)
{
	static const uint32_t lens[] = {200, 1400, 5000}; /* even messages are short ones, if they can be */
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	const uint8_t *end = NULL;
	struct plx_rx rx[1];
	uint64_t turns = 1;

	shm_peer(to_b)->past_min = UINT32_MAX;
	shm_peer(to_b)->probe_at = UINT64_MAX;
	for (uint64_t i = 0; i < 36; i++) {
		const uint32_t len = lens[i / 2 % RTE_DIM(lens)];
		const bool apart = i >= 18 && i % 3 == 0;

		a->turns = i < 18 ? NULL : &turns;
		turns += apart;
		UNIT_EQ_FATAL(msg_send(to_b, i, len), 0);
		UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
		CU_ASSERT(msg_is(rx, i, len));
		if (i > 0) {
			UNIT_TRUE(rx->data >= end + (apart ? SHM_GAP : 0));
			UNIT_TRUE(rx->data < end + (apart ? SHM_GAP : 0) + 2 * SHM_LINE);
		}
		end = rx->data + rx->len;
		b->rx_release(b, rx, 1);
	}
	a->turns = NULL;
	queue_close(a);
	queue_close(b);
}

/* However many turns they are of: short messages that are certain to find room look for none. */
static void
messages_that_stand_apart_overwrite_nothing(void)
{
	struct plx_queue *b = queue_new(), *first = queue_new(), *a = queue_new();
	struct plx_peer *to_b = narrow_of(first, a, b);
	uint64_t sent = 0, got = 0, turns = 0;
	unsigned full = 0;
	struct plx_rx rx[1];

	a->turns = &turns;
	srandom(1);
	while (got < 5000) {
		for (; msg_send(to_b, 2 * sent, SHM_SHORT_MAX) == 0; sent++)
			turns += random() % 4 != 0;
		UNIT_TRUE_FATAL(sent - got < SHM_CELLS);
		full++;
		turns++; /* the sender checks for room only a few times in a turn */
		for (unsigned n = random() % (sent - got + 1); n > 0; n--, got++) {
			UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
			CU_ASSERT_FATAL(msg_is(rx, 2 * got, SHM_SHORT_MAX));
			b->rx_release(b, rx, 1);
		}
	}
	UNIT_TRUE(full > 100);
	for (; got < sent; got++) {
		UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
		b->rx_release(b, rx, 1);
	}
	a->turns = NULL;
	queue_close(first);
	queue_close(a);
	queue_close(b);
}

/* The length of message i: four of much data, then a short one. */
static uint32_t
much_len(uint64_t i)
{
	return i % 5 == 4 ? 200 + i % 1000 : SHM_MSG_MAX - 8 - i % 3 * 64;
}

static int
much_send(struct plx_peer *peer, uint64_t i)
{
	static uint8_t data[SHM_MSG_MAX];
	struct plx_tx tx = {.peer = peer, .hdr = &i, .hdr_len = sizeof(i), .data = data, .len = much_len(i),
		.op = (uint8_t)i, .much = true};

	if (i % 5 == 4)
		return msg_send(peer, i, much_len(i));
	unit_fill(data, tx.len, i);
	return plx_peer_tx(&tx);
}

/* The first part of a wide area is enough for it, with other messages between; nothing is overwritten. */
static void
much_data_goes_round_in_few_lines(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	uint64_t sent = 0, got = 0, within = 0;
	struct plx_rx rx[8];

	for (unsigned i = 0; i < 40; i++) /* others use all of it */
		UNIT_EQ_FATAL(msg_send(to_b, 1, LONG_LEN), 0);
	for (unsigned i = 0; i < 40; i += 4) {
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 4);
		b->rx_release(b, rx, 4);
	}
	while (got < 2000) {
		const uint64_t before = sent;
		uint16_t n;

		while (sent - got < 100 && much_send(to_b, sent) == 0)
			sent++;
		UNIT_TRUE_FATAL(sent != got && (sent != before || sent - got >= 8));
		n = burst_some(b, rx, 1 + sent % 8);
		for (uint16_t k = 0; k < n; k++, got++) {
			const uint64_t at = (uint64_t)(rx[k].data - shm_queue(b)->rx[0].data);

			CU_ASSERT_FATAL(msg_is(&rx[k], got, much_len(got)));
			within += got % 5 != 4 && at + rx[k].len <= SHM_LAP_MUCH;
		}
		b->rx_release(b, rx, n);
	}
	UNIT_TRUE(within > 1600 * 3 / 4);
	while (burst_some(b, rx, 1) == 1)
		b->rx_release(b, rx, 1);
	queue_close(a);
	queue_close(b);
}

/* Much data may skip most of the area. Fewer messages behind it are then certain to find room. */
static void
others_overwrite_nothing_behind_much_data(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	static uint8_t data[400];
	uint64_t hdr = 33;
	const struct plx_tx tx = {.peer = to_b, .hdr = &hdr, .hdr_len = 8, .data = data, .len = sizeof(data), .op = 33,
		.much = true};
	struct plx_rx rx[1];
	uint64_t sent;

	unit_fill(data, sizeof(data), hdr);
	for (sent = 0; sent < hdr; sent++) { /* about as much under way as a lap of it */
		UNIT_EQ_FATAL(msg_send(to_b, sent, LONG_LEN), 0);
		if (sent >= 2)
			continue;
		UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
		b->rx_release(b, rx, 1);
	}
	UNIT_EQ_FATAL(plx_peer_tx(&tx), 0);
	for (sent++; msg_send(to_b, 2 * sent, SHM_SHORT_MAX) == 0; sent++) /* even: those that are certain */
		;
	for (uint64_t got = 2; got < sent; got++) {
		UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
		CU_ASSERT(msg_is(rx, got > hdr ? 2 * got : got,
			got < hdr ? LONG_LEN : got == hdr ? sizeof(data) : SHM_SHORT_MAX));
		b->rx_release(b, rx, 1);
	}
	queue_close(a);
	queue_close(b);
}

/* @return pages of a queue's only wide data area that are there, where seg maps it */
static unsigned
wide_pages(const struct shm_seg *seg)
{
	static unsigned char there[SHM_DATA_WIDE / 4096];
	unsigned n = 0;

	UNIT_EQ_FATAL(mincore((char *)seg + shm_data_off(seg->n_slots, 1, 0), SHM_DATA_WIDE, there), 0);
	for (unsigned i = 0; i < RTE_DIM(there); i++)
		n += there[i] & 1;
	return n;
}

static void
a_wide_area_takes_memory_when_its_sender_comes(void)
{
	struct plx_queue *a, *b, *c;
	const struct shm_seg *seg;

	plx_conf_set(&conf, "shm.huge", "auto", PLX_CONF_FROM_API, NULL);
	a = queue_new();
	b = queue_new();
	c = queue_new();
	UNIT_EQ_FATAL(shm_queue(b)->n_wide, 1);
	UNIT_EQ(wide_pages(shm_queue(b)->seg), 0);
	seg = seg_of(connected_to(c, b));
	UNIT_EQ(wide_pages(seg), shm_queue(b)->mem.huge ? SHM_DATA_WIDE / 4096 : 0);
	UNIT_EQ(wide_pages(seg_of(connected_to(a, b))), 0); /* the second has none */
	queue_close(a);
	queue_close(b);
	queue_close(c);
}

static void
a_receiver_is_far_after_two_slow_lines_and_near_after_a_quick_one(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct shm_peer *p = shm_peer(connected_to(a, b));
	const uint64_t slow = shm_queue(a)->far_ticks + 1, quick = shm_queue(a)->far_ticks;

	UNIT_EQ(quick, rte_get_tsc_hz() * SHM_FAR_NS / 1000000000);
	UNIT_EQ(p->past_min, UINT32_MAX);
	shm_far_learn(p, slow);
	UNIT_EQ(p->past_min, UINT32_MAX);
	shm_far_learn(p, quick);
	shm_far_learn(p, slow);
	UNIT_EQ(p->past_min, UINT32_MAX);
	shm_far_learn(p, slow);
	UNIT_EQ(p->past_min, SHM_PAST_FAR);
	shm_far_learn(p, quick);
	UNIT_EQ(p->past_min, UINT32_MAX);
	queue_close(a);
	queue_close(b);
}

static void
lines_come_slowly_after_two_slow_messages_and_fast_after_a_quick_one(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct shm_peer *p = shm_peer(connected_to(a, b));
	const uint64_t quick = 200 * 12, slow = 200 * 13;

	shm_queue(a)->lines_ticks = 12 * 1024;
	shm_far_learn_lines(p, slow, 200);
	UNIT_EQ(p->past_min, UINT32_MAX);
	shm_far_learn_lines(p, quick, 200);
	shm_far_learn_lines(p, slow, 200);
	UNIT_EQ(p->past_min, UINT32_MAX);
	shm_far_learn_lines(p, slow, 200);
	UNIT_EQ(p->past_min, SHM_PAST_LONG);
	shm_far_learn(p, shm_queue(a)->far_ticks + 1);
	shm_far_learn(p, shm_queue(a)->far_ticks + 1);
	UNIT_EQ(p->past_min, SHM_PAST_FAR);
	shm_far_learn(p, 0);
	UNIT_EQ(p->past_min, SHM_PAST_LONG);
	shm_far_learn_lines(p, quick, 200);
	UNIT_EQ(p->past_min, UINT32_MAX);
	queue_close(a);
	queue_close(b);
}

/* By clocks that find any time short, or long. */
static void
the_lines_of_long_messages_are_timed_now_and_then(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct shm_peer *p = shm_peer(to_b);
	struct plx_rx rx[4];

	for (uint64_t i = 0; i < 30; i++) {
		const bool is_long = i % 3 != 0, due = i % 2 != 0;

		shm_queue(a)->probe_ticks = 1ull << 60;
		shm_queue(a)->lines_ticks = i < 20 ? 0 : UINT64_MAX / SHM_MSG_MAX;
		p->probe_at = due ? 0 : UINT64_MAX;
		UNIT_EQ_FATAL(msg_send(to_b, i, is_long ? 8192 : 8000), 0);
		UNIT_EQ(p->probe_at > rte_rdtsc(), is_long || !due);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		CU_ASSERT(msg_is(&rx[0], i, is_long ? 8192 : 8000));
		b->rx_release(b, rx, 1);
		if (i == 19 || i == 29)
			UNIT_EQ(p->past_min, i == 19 ? SHM_PAST_LONG : UINT32_MAX);
	}
	queue_close(a);
	queue_close(b);
}

/* Four messages, which is what a device may choose (PLX_EP_PIECES_MAX), are enough for any of these. */
static void
messages_of_64_kib_are_sent_without_asking(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);

	UNIT_EQ(a->eager_max, 65536);
	UNIT_TRUE(a->eager_max <= 4 * (to_b->mtu - 24));
	queue_close(a);
	queue_close(b);
}

/* A clock that stands still, or jumps, in place of one that runs. */
static void
a_sender_learns_from_the_position_that_the_receiver_has_written(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct shm_peer *p = shm_peer(to_b);
	struct plx_rx rx[4];

	shm_queue(a)->far_ticks = 0;
	for (uint64_t i = 0; i < 2000; i++) { /* several laps */
		UNIT_EQ_FATAL(msg_send(to_b, i, 1400), 0);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		CU_ASSERT_FATAL(msg_is(&rx[0], i, 1400));
		b->rx_release(b, rx, 1);
	}
	UNIT_EQ(p->past_min, SHM_PAST_FAR);
	shm_queue(a)->far_ticks = UINT64_MAX;
	for (uint64_t i = 0; i < 2000; i++) {
		UNIT_EQ_FATAL(msg_send(to_b, i, 1400), 0);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		b->rx_release(b, rx, 1);
	}
	UNIT_EQ(p->past_min, UINT32_MAX);
	queue_close(a);
	queue_close(b);
}

/* As if the receiver were another process, whose memory is private. */
static void
long_transfers_go_as_messages_where_lines_come_fast(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	const struct plx_rma_op op = {.peer = connected_to(a, b), .remote = (uintptr_t)&op, .len = 1 << 20};
	struct shm_peer *p = shm_peer(op.peer);
	const uint32_t most = p->data_len / SHM_MSG_ROOM - 1;

	UNIT_EQ(shm_bulk(&op, 1), 0); /* of our own process: one copy */
	p->self = false;
	p->no_windows = true;
	UNIT_EQ(shm_bulk(&op, 0), 1);
	UNIT_EQ(shm_bulk(&op, most), 1);
	UNIT_EQ(shm_bulk(&op, most + 1), 0); /* there is never so much room */
	UNIT_EQ(shm_bulk(&op, UINT32_MAX), 0);
	p->far = true;
	UNIT_EQ(shm_bulk(&op, 1), 0);
	p->far = false;
	p->drags = true;
	p->probe_at = rte_rdtsc();
	shm_queue(a)->probe_ticks = 1ull << 40;
	UNIT_EQ(shm_bulk(&op, 1), 0);
	shm_queue(a)->probe_ticks = 0; /* it is time to try again */
	UNIT_EQ(shm_bulk(&op, 1), 1);
	p->drags = false;
	shm_tx_by(p, SHM_TX_MAIL);
	UNIT_EQ(shm_bulk(&op, 1), 0);
	shm_tx_by(p, SHM_TX_SLOT);
	p->self = true;
	queue_close(a);
	queue_close(b);
}

/* Messages of any length, in any number of turns. */
static void
try_promises(struct plx_queue *a, struct plx_queue *b, struct plx_peer *to_b)
{
	const struct plx_rma_op op = {.peer = to_b, .remote = (uintptr_t)&op, .len = 1 << 20};
	const uint32_t long_len = to_b->mtu - 8;
	struct shm_peer *p = shm_peer(to_b);
	uint64_t sent = 0, got = 0, turns = 0;
	unsigned full = 0;
	struct plx_rx rx[4];

	a->turns = &turns;
	p->self = false;
	p->no_windows = true;
	p->probe_at = UINT64_MAX;
	shm_queue(a)->far_ticks = UINT64_MAX; /* it is near, whatever the time */
	srandom(1);
	for (unsigned i = 0; i < 20000; i++) {
		const uint32_t n = 1 + random() % 4;
		int way;

		turns++;
		way = shm_bulk(&op, n);
		UNIT_TRUE_FATAL(way == 1 || way == -EAGAIN);
		full += way != 1;
		for (uint32_t k = 0; way == 1 && k < n; k++)
			UNIT_EQ_FATAL(msg_send(to_b, sent++, long_len), 0);
		turns += random() % 2;
		(void)(i % 3 == 0 && msg_send(to_b, sent, 1 + random() % long_len) == 0 && sent++);
		for (unsigned k = random() % 4; k > 0 && got < sent; k--, got++) {
			UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
			b->rx_release(b, rx, 1);
		}
	}
	UNIT_TRUE(full > 0 && sent > 1000);
	for (; got < sent; got++) {
		UNIT_EQ_FATAL(burst_some(b, rx, 1), 1);
		b->rx_release(b, rx, 1);
	}
	a->turns = NULL;
	p->self = true;
}

static void
room_that_was_promised_is_there(void)
{
	struct plx_queue *first = queue_new(), *a = queue_new(), *b = queue_new();
	struct plx_peer *narrow = narrow_of(first, a, b);

	try_promises(a, b, narrow);
	queue_close(a);
	queue_close(first);
	queue_close(b);
	a = queue_new();
	b = queue_new();
	try_promises(a, b, connected_to(a, b));
	queue_close(a);
	queue_close(b);
}

/* Then zeros follow the message up to the end of its last line. */
static bool
was_stored_past(const struct plx_rx *rx)
{
	const uint8_t *end = rx->data + rx->len;

	return *end == 0;
}

static void
long_messages_are_stored_past_the_caches(void)
{
	static const uint32_t lens[] = {200, 1000, 1023, 1024, 1400, 4000, 8191, 8192, 9001, 16000};
	struct plx_queue *a = queue_new(), *b = queue_new();
	struct plx_peer *to_b = connected_to(a, b);
	struct shm_peer *p = shm_peer(to_b);
	struct plx_rx rx[4];

	for (uint64_t i = 0; i < 40; i++) {
		const bool far = i % 4 > 1; /* so that each length goes by tx_short and by tx */
		const uint32_t len = lens[i % RTE_DIM(lens)];

		p->past_min = far ? SHM_PAST_FAR : SHM_PAST_LONG;
		p->probe_at = UINT64_MAX;
		memset(p->data + p->data_off, 0xee, RTE_MIN(SHM_MSG_MAX, p->data_len - p->data_off));
		UNIT_EQ_FATAL(msg_send(to_b, i, len), 0);
		UNIT_EQ_FATAL(burst_some(b, rx, 4), 1);
		CU_ASSERT_FATAL(msg_is(&rx[0], i, len));
		if (rx[0].len % SHM_LINE != 0)
			UNIT_EQ(was_stored_past(&rx[0]), len >= p->past_min);
		b->rx_release(b, rx, 1);
	}
	queue_close(a);
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

/* What a child sends and receives. */
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

/* As a reactor does before it sleeps. @return whether it slept, and was woken if it had to be */
static bool
sleeps_soundly(struct plx_queue *q, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (plx_queue_arm(q) != 0)
		return true;
	if (q->fences_world && (!plx_fence_world() || plx_queue_arm(q) != 0))
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
who_sleeps_is_woken(bool fences_world)
{
	struct plx_queue *q = queue_new();
	struct plx_peer *to;
	struct child c;
	int fd;

	q->fences_world = fences_world;
	fd = plx_queue_efd(q);
	UNIT_TRUE_FATAL(fd >= 0);
	to = connected_to(q, q);
	UNIT_TRUE(shm_peer(to)->wakes);
	UNIT_EQ(shm_peer(to)->fences, !fences_world || !plx_fence_world_open() || !plx_fence_world());
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
one_that_fences_before_it_sleeps_is_woken_too(void)
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
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		_exit(77);
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
	if (read(c.in, &b, 1) != 1) {
		UNIT_EQ(child_end(&c, 0), 77);
		printf("\n# skipped: no call can be stopped here\n");
		queue_close(other);
		queue_close(q);
		return;
	}
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

/* Lists a segment, and takes it away on request. */
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
	UNIT_EQ_FATAL(plx_dev_open(tried->ops->name, &conf, &dev), 0);
	q = queue_new();
	child_start(&c, child_lists);
	CU_ASSERT_FATAL(read(c.in, &gone.remote, sizeof(gone.remote)) == sizeof(gone.remote));
	gone.peer = connected(q, &c.addr);
	if (rma_is_refused(gone.peer, c.buf)) { /* what is not listed */
		plx_queue_close(q);
		child_end(&c, SIGKILL);
		return;
	}
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
	UNIT_EQ_FATAL(plx_dev_open(tried->ops->name, &conf, &dev), 0);
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

static CU_TestInfo shm_slot_tests[] = {
	UNIT_TEST(a_look_takes_a_short_message),
	UNIT_TEST(a_look_leaves_two_long_messages_to_a_burst),
	UNIT_TEST(what_is_written_of_a_message_is_fetched_while_the_rest_is_written),
	UNIT_TEST(a_message_that_is_said_to_come_from_elsewhere_is_not_fetched),
	UNIT_TEST(what_looks_take_is_free_for_the_sender),
	UNIT_TEST(a_lap_visits_each_cell_once_and_never_a_neighbour),
	UNIT_TEST(a_peer_tells_where_its_next_message_is_written),
	UNIT_TEST(a_line_is_asked_for_once),
	UNIT_TEST(a_cold_slot_is_woken_by_the_doorbell),
	UNIT_TEST(a_cold_slot_whose_bell_was_lost_is_seen_in_its_turn),
	UNIT_TEST(the_first_senders_may_have_more_under_way),
	UNIT_TEST(long_data_begins_at_a_line),
	UNIT_TEST(what_leads_to_a_line_overwrites_nothing),
	UNIT_TEST(the_first_message_of_a_turn_stands_apart_from_the_one_before),
	UNIT_TEST(messages_that_stand_apart_overwrite_nothing),
	UNIT_TEST(much_data_goes_round_in_few_lines),
	UNIT_TEST(others_overwrite_nothing_behind_much_data),
	UNIT_TEST(a_wide_area_takes_memory_when_its_sender_comes),
	UNIT_TEST(a_receiver_is_far_after_two_slow_lines_and_near_after_a_quick_one),
	UNIT_TEST(lines_come_slowly_after_two_slow_messages_and_fast_after_a_quick_one),
	UNIT_TEST(the_lines_of_long_messages_are_timed_now_and_then),
	UNIT_TEST(long_transfers_go_as_messages_where_lines_come_fast),
	UNIT_TEST(room_that_was_promised_is_there),
	UNIT_TEST(a_sender_learns_from_the_position_that_the_receiver_has_written),
	UNIT_TEST(long_messages_are_stored_past_the_caches),
	UNIT_TEST(messages_of_64_kib_are_sent_without_asking),
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
	UNIT_TEST(one_that_fences_before_it_sleeps_is_woken_too),
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

enum { SLOTS_FOR_ALL, SLOTS_FOR_THREE, MAIL_ONLY };

static const char *const setups[] = {"with slots for all", "with slots for three", "with mail only", NULL};

static void
set_up(unsigned i)
{
	static const char *const fast_peers[] = {"32", "3", "0"};

	plx_conf_set(&conf, "shm.fast_peers", fast_peers[i], PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "shm.wide_peers", "1", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "shm.huge", "no", PLX_CONF_FROM_API, NULL);
}

static bool
is_sure(const struct plx_peer *peer)
{
	return ((const struct shm_peer *)peer)->tx_mode == SHM_TX_SLOT;
}

static const struct dev_contract_suite suites[] = {
	{"slots", SLOTS_FOR_THREE, shm_slot_tests, 0},
	{"mail", MAIL_ONLY, shm_mail_tests, 0},
	{"processes, slots", SLOTS_FOR_ALL, shm_process_tests, 0},
	{"processes, mail", MAIL_ONLY, shm_process_tests, 0},
	{NULL, 0, NULL, 0},
};

static struct dev_contract contract = {
	.ops = &plx_shm_ops,
	.setups = setups,
	.suites = suites,
	.set_up = set_up,
	.is_sure = is_sure,
};

RTE_INIT(shm_contract)
{
	dev_contract_add(&contract);
}

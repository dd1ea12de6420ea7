/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_shm_test.c - the rings in shared memory and their wake-ups on a weakly ordered machine: see weak.h
 *
 * Design notes
 * The code of drivers/shm that sends, receives, sleeps and wakes runs as it is. A reactor sleeps as receive_asleep() does,
 * without its time limits.
 */
#include "plx_fence.h"
#include "weak_shm.h"

#define DATA	512 /* bytes of a longer message */
#define MOST	100000

static uint32_t data_end[SHM_CELLS];
static const uint8_t long_data[DATA] = {[0] = 7, [DATA - 9] = 9};

static void
new_queue(void)
{
	weak_shm_new(SLOTS);
	weak_shm_open();
	for (unsigned k = 0; k < SENDERS; k++) {
		peer[k].seg = weak_shm_seg();
		peer[k].bell = BELL;
		peer[k].peer.mtu = SHM_MSG_MAX;
	}
}

/* One sender has slot 0, which is polled. */
static void
new_slot(void)
{
	struct shm_peer *p = &peer[0];
	struct shm_queue *sq;

	new_queue();
	sq = shm_queue(&rx_q);
	p->slot = sq->rx[0].slot;
	p->data = (uint8_t *)(uintptr_t)sq->rx[0].data;
	p->data_len = sq->rx[0].data_len;
	p->past_min = UINT32_MAX;
	p->probe_at = UINT64_MAX;
	p->data_end = data_end;
	shm_tx_by(p, SHM_TX_SLOT);
	sq->rx[0].peer = &from[0].peer;
	sq->ready = 1;
	shm_hot_set(sq, 1);
}

/* -- messages -- */

static void send_two(void) { send_surely(0, 1); send_surely(0, 2); }
static void send_long(void) { while (shm_tx_short(&peer[0].peer, OP, 1, long_data, DATA - 8) != 0) weak_pause(); }
static void receive_one(void) { receive(1); }
static void receive_two(void) { receive(2); weak_check(got_sum == 3); }

/* The ring is full: a cell is used again once a quarter of the lap has been received. */
static void
new_full(void)
{
	new_slot();
	for (unsigned i = 0; i < SHM_CELLS; i++)
		if (send_one(0, 0) != 0)
			abort();
}

static void send_next_lap(void) { send_surely(0, 1); }
static void receive_quarter(void) { receive(SHM_CELLS / 4 + 1); }

/* -- mail -- */

static void
new_mail(void)
{
	new_queue();
	shm_tx_by(&peer[0], SHM_TX_MAIL);
	shm_tx_by(&peer[1], SHM_TX_MAIL);
}

static void
new_mail_full(void)
{
	new_mail();
	for (unsigned i = 0; i < SHM_MAIL_CELLS; i++)
		if (send_one(0, 0) != 0)
			abort();
}

static void mail_0(void) { send_surely(0, 1); }
static void mail_1(void) { send_surely(1, 2); }

/* -- sleeps -- */

static void
new_asleep(bool fences)
{
	new_slot();
	weak_check(shm_queue_efd(&rx_q) >= 0);
	peer[0].wakes = true;
	peer[0].fences = fences;
}

static void new_fencing(void) { new_asleep(true); }
static void new_fenced(void) { new_asleep(false); }

/* Both sides fence. */
static void
receive_asleep(void)
{
	while (n_got < 1) {
		if (look() != 0)
			continue;
		if (shm_queue_arm(&rx_q) == 0) {
			weak_event_wait(BELL);
			shm_queue_disarm(&rx_q);
		}
	}
}

/* The receiver fences for its senders, between two looks. */
static void
receive_asleep_fencing(void)
{
	while (n_got < 1) {
		if (look() != 0)
			continue;
		if (shm_queue_arm(&rx_q) == 0 && plx_fence_world() && shm_queue_arm(&rx_q) == 0) {
			weak_event_wait(BELL);
			shm_queue_disarm(&rx_q);
		}
	}
}

static void send_one_fenced(void) { send_surely(0, 1); }

static const struct weak_scene two = {.name = "two messages", new_slot,
	{send_two, receive_two}, NULL};
static const struct weak_scene far = {.name = "a message in the data area", new_slot,
	{send_long, receive_one}, NULL};
static const struct weak_scene lap = {.name = "the next lap", new_full,
	{send_next_lap, receive_quarter}, NULL};
static const struct weak_scene mail = {.name = "mail of one", new_mail,
	{mail_0, receive_one}, NULL};
static const struct weak_scene mail2 = {.name = "mail of two", new_mail,
	{mail_0, mail_1, receive_two}, NULL, .most = MOST};
static const struct weak_scene mail_lap = {.name = "mail in the next lap", new_mail_full,
	{mail_0, receive_one}, NULL};
static const struct weak_scene asleep = {.name = "a sender fences", new_fencing,
	{send_one_fenced, receive_asleep}, NULL};
static const struct weak_scene fenced = {.name = "a receiver fences for its senders", new_fenced,
	{send_one_fenced, receive_asleep_fencing}, NULL, .moves = "cell"};

static const struct weak_row rows[] = {
	{&two, WEAK_NOTHING, {0}},
	{&two, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "cell")},
	{&two, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "cell")},
	{&far, WEAK_NOTHING, {0}},
	{&far, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "cell")},
	{&lap, WEAK_NOTHING, {0}},
	{&lap, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "rx_pos")},
	{&lap, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "rx_pos")},
	{&mail, WEAK_NOTHING, {0}},
	{&mail, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "mail")},
	{&mail, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "mail")},
	{&mail2, WEAK_NOTHING, {0}},
	{&mail_lap, WEAK_NOTHING, {0}},
	{&mail_lap, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "mail")},
	{&mail_lap, WEAK_NOTHING, WEAK_WITHOUT(WEAK_RMW, "mail")}, /* the load before it acquires */
	{&asleep, WEAK_NOTHING, {0}},
	{&asleep, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&asleep, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&fenced, WEAK_NOTHING, {0}},
	{&fenced, WEAK_STUCK, WEAK_WITHOUT(WEAK_BARRIER, NULL)},
	{&fenced, WEAK_STUCK, WEAK_WITHOUT(WEAK_SIGNAL_FENCE, NULL)},
	{&asleep, WEAK_NOTHING, WEAK_WITHOUT(WEAK_RMW, "news")}, /* there is no news: weak_meet_test.c */
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}

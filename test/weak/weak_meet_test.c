/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_meet_test.c - how processes meet and part in shared memory on a weakly ordered machine: see weak.h
 *
 * Design notes
 * A queue is opened and offered; a sender asks, maps the segment, takes a slot, sends and leaves; the queue's control
 * tick frees the slot; a queue that closes says so. All of that is the code of drivers/shm. Its lap is made short, as
 * each cell is a place of the model. test/meet_explore_test.c has what processes say to each other before the segment
 * is mapped.
 */
#include "weak_shm.h"

#define MOST 100000

static struct plx_addr addr; /* of the queue, which a program passes on */
static struct shm_seg own;   /* of sender 0, which closes */

static void
new_open(unsigned n_slots)
{
	weak_shm_new(n_slots);
	weak_shm_open();
	shm_queue_addr(&rx_q, &addr);
}

static void
join(unsigned k)
{
	struct plx_peer *p = &peer[k].peer;

	weak_check(shm_peer_open(p, &addr) == 0);
	p->state = PLX_PEER_OPEN;
	weak_check(shm_peer_connect(p) == 0);
}

/* -- from nothing to the first message -- */

static void new_memory(void) { weak_shm_new(1); }

static void
open_receive(void)
{
	weak_shm_open();
	weak_check(shm_queue_efd(&rx_q) >= 0);
	shm_queue_addr(&rx_q, &addr);
	weak_event_write(ADDRESS);
	receive(1);
}

static void
meet_send(void)
{
	weak_event_wait(ADDRESS);
	weak_event_read(ADDRESS);
	join(0);
	send_surely(0, 1);
}

/* -- slots -- */

static void new_two(void) { new_open(2); }
static void connect_send_0(void) { join(0); send_surely(0, 1); }
static void connect_send_1(void) { join(1); send_surely(1, 2); }
static void receive_one(void) { receive(1); }
static void receive_two(void) { receive(2); weak_check(got_sum == 3); }

/* A turn, and the control tick, which finds slots without their doorbell. */
static void
receive_by_ticks(unsigned n)
{
	while (n_got < n) {
		shm_queue_control(&rx_q);
		if (look() == 0)
			weak_pause();
	}
}

static void receive_one_by_ticks(void) { receive_by_ticks(1); }
static void receive_two_by_ticks(void) { receive_by_ticks(2); weak_check(got_sum == 3); }

/* Sender 0 is connected. */
static void
new_connected(void)
{
	new_open(1);
	join(0);
	shm_queue_control(&rx_q);
	weak_check(look() == 0);
}

static void send_leave(void) { send_surely(0, 1); shm_tx_leave(&peer[0]); }

/* There is one slot. */
static void
wait_connect_send(void)
{
	struct shm_slot *slot = shm_slot_at(weak_shm_seg(), 0);

	while (atomic_load_explicit(&slot->state, memory_order_relaxed) != SHM_SLOT_FREE)
		weak_pause();
	connect_send_1();
}

/* -- the end -- */

/* The queue's owner sends to sender 0, too. */
static void
new_both(void)
{
	new_open(1);
	weak_check(shm_queue_efd(&rx_q) >= 0);
	join(0);
	tx_queue[0].seg = &own;
	tx_q[0].closing = true;
	own.closed = 0;
	from[0].seg = &own;
	weak_name(&own.closed, "closed");
	shm_queue_control(&rx_q);
	weak_check(look() == 0);
}

static void close_queue(void) { shm_peer_close(&peer[0].peer); }

static void
sleep_until_gone(void)
{
	while (!from[0].gone) {
		if (shm_queue_arm(&rx_q) == 0)
			weak_event_wait(BELL);
		shm_queue_disarm(&rx_q);
	}
}

static const struct weak_scene meeting = {.name = "processes meet", new_memory, {meet_send, open_receive}, NULL};
static const struct weak_scene taken = {.name = "a slot is taken", new_two, {connect_send_0, receive_one}, NULL};
static const struct weak_scene found = {.name = "a slot is found", new_two,
	{connect_send_0, receive_one_by_ticks}, NULL};
static const struct weak_scene two = {.name = "two take slots", new_two,
	{connect_send_0, connect_send_1, receive_two}, NULL, .most = MOST};
static const struct weak_scene again = {.name = "a slot is used again", new_connected,
	{send_leave, wait_connect_send, receive_two_by_ticks}, NULL, .most = MOST};
static const struct weak_scene closing = {.name = "a queue closes", new_both, {close_queue, sleep_until_gone}, NULL};

static const struct weak_row rows[] = {
	{&meeting, WEAK_NOTHING, {0}},
	{&meeting, WEAK_RACE, WEAK_WITHOUT(WEAK_KERNEL, NULL)},
	{&taken, WEAK_NOTHING, {0}},
	{&taken, WEAK_STUCK, WEAK_WITHOUT(WEAK_RMW, "doorbell")},
	{&taken, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "cell")},
	{&taken, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "cell")},
	{&found, WEAK_NOTHING, {0}},
	{&found, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "slot")},
	{&found, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "slot")},
	{&two, WEAK_NOTHING, {0}},
	{&again, WEAK_NOTHING, {0}},
	{&again, WEAK_RACE, {WEAK_STORE, "slot", WEAK_ANY, 0}},
	{&again, WEAK_RACE, {WEAK_STORE, "slot", WEAK_ANY, 2}},
	{&again, WEAK_RACE, {WEAK_RMW, "slot", WEAK_ANY, 1}},
	{&closing, WEAK_NOTHING, {0}},
	{&closing, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&closing, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&closing, WEAK_STUCK, WEAK_WITHOUT(WEAK_STORE, "news")},
	{&closing, WEAK_STUCK, WEAK_WITHOUT(WEAK_RMW, "news")},
	{&closing, WEAK_NOTHING, WEAK_WITHOUT(WEAK_STORE, "closed")}, /* the news hand it over */
	{&closing, WEAK_NOTHING, WEAK_WITHOUT(WEAK_LOAD, "closed")},
	{&closing, WEAK_NOTHING, WEAK_WITHOUT(WEAK_LOAD, "mail")}, /* weak_shm_test.c has these two */
	{&meeting, WEAK_NOTHING, WEAK_WITHOUT(WEAK_SIGNAL_FENCE, NULL)},
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}

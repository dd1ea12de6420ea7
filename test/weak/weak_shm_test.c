/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_shm_test.c - the rings in shared memory and their wake-ups on a weakly ordered machine: see weak.h
 *
 * Design notes
 * What sends, receives, sleeps and wakes in drivers/shm runs as it is, on a segment of two slots that is made here;
 * slot_take() is that of shm_seg.c. A reactor sleeps as receive_asleep() does, without its time limits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plx_fence.h"
#include "shm_int.h"

#define BELL	0
#define SLOTS	2
#define OP	3
#define DATA	512 /* bytes of a longer message */
#define MOST	100000

static uint8_t *memory; /* of the segment */
static size_t memory_len;
static struct shm_seg *seg;
static struct shm_queue rx_queue, tx_queue[2];
static struct plx_queue rx_q, tx_q[2];
static struct shm_peer peer[2], from; /* how the senders see the receiver; and it them */
static uint32_t data_end[2][SHM_CELLS];
static uint64_t got_sum;
static unsigned n_got;
static const uint8_t long_data[DATA] = {[0] = 7, [DATA - 9] = 9};

/* -- in place of other parts -- */

PLX_LOG_DEFINE(shm, "plx.drv.shm");

bool plx_fence_open(void) { return true; }
bool plx_fence_world_open(void) { return true; }
bool plx_fence_world(void) { weak_barrier(); return true; }
void plx_peer_met(struct plx_peer *p) { (void)p; }
void shm_queue_control(struct plx_queue *q) { (void)q; }
bool shm_events(struct shm_queue *sq) { (void)sq; return false; }
int shm_queue_offer(struct shm_queue *sq) { (void)sq; return 0; }
int shm_peer_meet(struct shm_peer *p) { (void)p; return -EAGAIN; }

int
shm_peer_of(struct shm_queue *sq, const struct shm_addr *addr, struct plx_peer **out)
{
	(void)sq;
	weak_check(addr->pid == 1 || addr->pid == 2); /* whole */
	*out = &from.peer;
	return 0;
}

bool
shm_slot_empty(const struct shm_queue *sq, uint32_t i)
{
	const struct shm_rx_slot *r = &sq->rx[i];
	const struct shm_cell *cell = &shm_slot_at(sq->seg, i)->cells[r->pos % SHM_CELLS];

	return (uint32_t)atomic_load_explicit(&cell->head, memory_order_acquire) != shm_seq(r->pos);
}

/* -- a queue and its senders -- */

static void
memory_new(void)
{
	memory_len = shm_data_off(SLOTS, SLOTS, SLOTS);
	if (memory == NULL)
		memory = aligned_alloc(4096, RTE_ALIGN_CEIL(memory_len, 4096));
	if (memory == NULL)
		abort();
	memset(memory, 0, shm_data_off(SLOTS, SLOTS, 0)); /* no message area */
	seg = (struct shm_seg *)memory;
	seg->n_slots = seg->n_wide = SLOTS;
	seg->len = memory_len;
	seg->magic = SHM_MAGIC;
}

static void
receiver_new(void)
{
	struct shm_queue *sq = &rx_queue;

	memset((void *)sq, 0, sizeof(*sq));
	memset((void *)&rx_q, 0, sizeof(rx_q));
	memset((void *)&from, 0, sizeof(from));
	rx_q.priv = sq;
	from.peer.q = sq->q = &rx_q;
	sq->seg = seg;
	sq->n_slots = sq->n_wide = SLOTS;
	sq->bell[0] = BELL;
	for (uint32_t i = 0; i < SLOTS; i++) {
		sq->rx[i].slot = shm_slot_at(seg, i);
		shm_slot_at_pos(&sq->rx[i], 0);
		sq->rx[i].data = memory + shm_data_off(SLOTS, SLOTS, i);
		sq->rx[i].data_len = shm_data_len(SLOTS, i);
	}
	shm_mail_at(sq, 0);
}

static void
sender_new(unsigned k)
{
	struct shm_peer *p = &peer[k];

	memset((void *)p, 0, sizeof(*p));
	memset((void *)&tx_q[k], 0, sizeof(tx_q[k]));
	memset((void *)&tx_queue[k], 0, sizeof(tx_queue[k]));
	tx_q[k].priv = &tx_queue[k];
	tx_queue[k].proc = tx_queue[k].addr.proc = tx_queue[k].addr.pid = k + 1;
	p->peer.q = &tx_q[k];
	p->peer.mtu = SHM_MSG_MAX;
	p->seg = seg;
	p->bell = BELL;
	p->data_end = data_end[k];
	memset(data_end[k], 0, sizeof(data_end[k]));
}

static void
slot_use(unsigned k, uint32_t i)
{
	struct shm_peer *p = &peer[k];

	p->slot = shm_slot_at(seg, i);
	p->slot_index = i;
	p->cells = p->slot->cells;
	p->data = memory + shm_data_off(SLOTS, SLOTS, i);
	p->data_len = shm_data_len(SLOTS, i);
	shm_tx_by(p, SHM_TX_SLOT);
}

/* That of shm_seg.c. */
static bool
slot_take(unsigned k)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct shm_slot *slot = shm_slot_at(seg, i);
		uint32_t st = SHM_SLOT_FREE;

		if (!atomic_compare_exchange_strong_explicit(&slot->state, &st, SHM_SLOT_STATE(k + 1, SHM_SLOT_TAKEN),
			    memory_order_acquire, memory_order_relaxed))
			continue;
		slot->sender = tx_queue[k].addr;
		atomic_store_explicit(&slot->state, SHM_SLOT_STATE(k + 1, SHM_SLOT_READY), memory_order_release);
		atomic_fetch_or_explicit(&seg->doorbell, 1ull << i, memory_order_release);
		slot_use(k, i);
		return true;
	}
	return false;
}

static void
new_queue(void)
{
	memory_new();
	receiver_new();
	sender_new(0);
	sender_new(1);
	n_got = 0;
	got_sum = 0;
	weak_share(memory, memory_len);
	weak_name(&seg->doorbell, "doorbell");
	weak_name(&seg->sleeping, "sleeping");
	weak_name(&seg->mail_head, "mail head");
	weak_name(&seg->mail[0].state, "mail");
	weak_name(&seg->mail[1].state, "mail");
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct shm_slot *slot = shm_slot_at(seg, i);

		weak_name(&slot->state, "slot");
		weak_name(&slot->rx_pos, "rx_pos");
		weak_name(&slot->cold, "cold");
		for (unsigned k = 0; k < 2; k++)
			weak_name(&slot->cells[k].head, "cell");
	}
}

/* One sender has slot 0, which is polled. */
static void
new_slot(void)
{
	new_queue();
	slot_use(0, 0);
	rx_queue.rx[0].peer = &from.peer;
	rx_queue.ready = 1;
	shm_hot_set(&rx_queue, 1);
}

static int
send_one(unsigned k, uint64_t value)
{
	return shm_tx_short(&peer[k].peer, OP, value, &value, 8);
}

static void
send_surely(unsigned k, uint64_t value)
{
	while (send_one(k, value) != 0)
		weak_pause();
}

static void
take(const struct plx_rx *rx)
{
	uint64_t hdr, data;

	weak_check(rx->op == OP && rx->len >= 16);
	memcpy(&hdr, rx->data, 8);
	memcpy(&data, rx->data + rx->len - 8, 8);
	weak_check(rx->len > 16 || hdr == data);
	got_sum += hdr;
	n_got++;
}

/* A turn that looks. @return messages */
static unsigned
look(void)
{
	struct plx_rx rx[4];
	uint16_t n;

	switch (shm_rx_look(&rx_q, rx)) {
	case PLX_RX_NONE:
		return 0;
	case PLX_RX_BURST:
		n = shm_rx_burst(&rx_q, rx, 4);
		for (uint16_t i = 0; i < n; i++)
			take(&rx[i]);
		shm_rx_release(&rx_q, rx, n);
		return n;
	case PLX_RX_HELD:
		take(rx);
		shm_rx_release(&rx_q, rx, 1);
		return 1;
	default:
		take(rx);
		return 1;
	}
}

static void
receive(unsigned n)
{
	while (n_got < n)
		if (look() == 0)
			weak_pause();
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

/* -- slots -- */

static void connect_send_0(void) { weak_check(slot_take(0)); send_surely(0, 1); }

/* As the control tick finds it, without the doorbell. */
static void
greet_receive(void)
{
	while (rx_queue.ready == 0) {
		shm_slot_greet(&rx_queue, 0);
		if (rx_queue.ready == 0)
			weak_pause();
	}
	shm_hot_set(&rx_queue, 1);
	receive(1);
}

static void connect_send_1(void) { weak_check(slot_take(1)); send_surely(1, 2); }

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
	peer[0].wakes = true;
	peer[0].fences = fences;
	seg->bells = 1;
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
static const struct weak_scene slots = {.name = "a slot is taken", new_queue,
	{connect_send_0, receive_one}, NULL};
static const struct weak_scene greeted = {.name = "a slot is found", new_queue,
	{connect_send_0, greet_receive}, NULL};
static const struct weak_scene slots2 = {.name = "two take slots", new_queue,
	{connect_send_0, connect_send_1, receive_two}, NULL,
	.most = MOST};
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
	{&slots, WEAK_NOTHING, {0}},
	{&greeted, WEAK_NOTHING, {0}},
	{&greeted, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "slot")},
	{&greeted, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "slot")},
	{&slots2, WEAK_NOTHING, {0}},
	{&mail, WEAK_NOTHING, {0}},
	{&mail, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "mail")},
	{&mail, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "mail")},
	{&mail2, WEAK_NOTHING, {0}},
	{&mail_lap, WEAK_NOTHING, {0}},
	{&mail_lap, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "mail")},
	{&asleep, WEAK_NOTHING, {0}},
	{&asleep, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&asleep, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&fenced, WEAK_NOTHING, {0}},
	{&fenced, WEAK_STUCK, WEAK_WITHOUT(WEAK_BARRIER, NULL)},
	{&fenced, WEAK_STUCK, WEAK_WITHOUT(WEAK_SIGNAL_FENCE, NULL)},
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}

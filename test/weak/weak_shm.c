/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_shm.c - the queue of weak_shm.h, and what stands in place of other libraries
 *
 * Design notes
 * In place of plx_meet.h there is what it gets from the kernel: who receives a message of a socket sees what was
 * stored before it was sent. In place of lib/dev the queue has two peers, of processes 1 and 2.
 */
#include <errno.h>
#include <string.h>

#include "plx_fence.h"
#include "plx_soft_tag.h"
#include "weak_shm.h"

#define MEM_FD	10
#define MEM_LEN (SHM_SLOTS_OFF + SLOTS * (sizeof(struct shm_slot) + SHM_DATA_WIDE) + SHM_HUGE_PAGE)

static alignas(4096) uint8_t memory[MEM_LEN]; /* of the segment */
static size_t memory_len;
static struct plx_dev dev;
static struct plx_conf conf;
static bool offered; /* before the scene began */
static int offered_bell;

struct plx_queue rx_q, tx_q[SENDERS];
struct shm_queue tx_queue[SENDERS];
struct shm_peer peer[SENDERS], from[SENDERS];
uint64_t got_sum;
unsigned n_got;

/* -- in place of other parts -- */

PLX_LOG_DEFINE(shm, "plx.drv.shm");
struct plx_conf_rows shm_settings;

bool plx_fence_open(void) { return true; }
bool plx_fence_world_open(void) { return true; }
bool plx_fence_world(void) { weak_barrier(); return true; }

int plx_soft_tag_open(struct plx_queue *q) { (void)q; return 0; }
void plx_soft_tag_close(struct plx_queue *q) { (void)q; }
int plx_window_table_get(struct plx_seg_name *out) { (void)out; return 0; }
void plx_window_table_put(void) {}
void shm_windows_close(struct shm_peer *p) { (void)p; }
bool shm_is_mapped(struct shm_peer *p, uint64_t addr) { (void)p; return addr == 0; }

int
plx_seg_create_part(struct plx_seg *seg, size_t len, size_t now, bool huge)
{
	(void)now;
	(void)huge;
	*seg = (struct plx_seg){.base = memory, .len = len, .fd = MEM_FD};
	return 0;
}

void plx_seg_destroy(struct plx_seg *seg) { (void)seg; }
bool plx_mem_populate(void *va, size_t len) { (void)va; (void)len; return true; }
void *weak_map(size_t len) { weak_check(len == memory_len); return memory; }

int
plx_proc_self(struct plx_proc *out)
{
	*out = (struct plx_proc){.host = 1, .id = SENDERS + 1, .pid = WEAK_PID};
	return 0;
}

bool plx_proc_host_same_boot(uint64_t a, uint64_t b) { return a == b; }

int
plx_meet_offer(uint64_t id, const int fd[PLX_MEET_FDS], bool own_user)
{
	(void)id;
	(void)own_user;
	weak_check(fd[PLX_MEET_MEM] == MEM_FD);
	offered_bell = fd[PLX_MEET_BELL];
	if (weak_thread() == WEAK_THREADS)
		offered = true;
	else
		weak_event_write(OFFER);
	return 0;
}

void plx_meet_refresh(void) {}
void plx_meet_withdraw(uint64_t id) { (void)id; }
bool plx_meet_own_user_only(void) { return true; }
bool plx_meet_gone(uint64_t proc) { (void)proc; return false; }
bool plx_meet_guest_gone(uint64_t bits, uint64_t mask) { (void)bits; (void)mask; return false; }
uint64_t plx_meet_memory_len(int fd) { return fd == MEM_FD ? memory_len : 0; }
bool plx_meet_is_memory(int fd, uint64_t len, bool trusted) { (void)trusted; return plx_meet_memory_len(fd) == len; }
bool plx_meet_is_huge(int fd) { (void)fd; return false; }

int
plx_ask_open(struct plx_ask *a, const struct plx_proc *whom, uint64_t id)
{
	*a = (struct plx_ask){.fd = -1, .id = id, .proc = whom->id, .pid = (pid_t)whom->pid};
	return 0;
}

int
plx_ask_poll(struct plx_ask *a, struct plx_answer *out)
{
	(void)a;
	*out = (struct plx_answer){.fd = {-1, -1, -1}, .own_user = true};
	if (!offered && weak_event_read(OFFER) == 0)
		return -EAGAIN;
	out->fd[PLX_MEET_MEM] = MEM_FD;
	out->fd[PLX_MEET_BELL] = offered_bell;
	return 0;
}

int
plx_ask_wait(struct plx_ask *a, struct plx_answer *out, int ms)
{
	(void)ms;
	return plx_ask_poll(a, out);
}

void plx_ask_close(struct plx_ask *a) { (void)a; }
void plx_answer_close(struct plx_answer *out) { (void)out; }

int
plx_peer_get(struct plx_queue *q, const struct plx_addr *addr, struct plx_peer **out)
{
	struct shm_addr a;

	(void)q;
	memcpy(&a, addr->bytes, sizeof(a));
	weak_check(a.pid == WEAK_PID && (a.proc == 1 || a.proc == 2)); /* whole */
	*out = &from[a.proc - 1].peer;
	return 0;
}

void plx_peer_put(struct plx_peer *p) { (void)p; }
void plx_peer_met(struct plx_peer *p) { (void)p; }

void
plx_peer_dead(struct plx_peer *p, int err)
{
	p->state = PLX_PEER_DEAD;
	p->err = (int16_t)err;
}

void
plx_peer_each(struct plx_queue *q, void (*fn)(struct plx_peer *p, void *arg), void *arg)
{
	(void)q;
	for (unsigned k = 0; k < SENDERS; k++)
		fn(&from[k].peer, arg);
}

/* -- a queue and its senders -- */

static void
sender_new(unsigned k)
{
	memset((void *)&peer[k], 0, sizeof(peer[k]));
	memset((void *)&tx_q[k], 0, sizeof(tx_q[k]));
	memset((void *)&tx_queue[k], 0, sizeof(tx_queue[k]));
	memset((void *)&from[k], 0, sizeof(from[k]));
	tx_q[k].priv = &tx_queue[k];
	tx_queue[k].proc = k + 1;
	tx_queue[k].addr = (struct shm_addr){.uid = k + 2, .host = 1, .proc = k + 1, .pid = WEAK_PID};
	peer[k].peer.q = &tx_q[k];
	from[k].peer.q = &rx_q;
	from[k].peer.state = PLX_PEER_OPEN;
	from[k].rx_slot = SHM_NO_SLOT;
}

void
weak_shm_new(unsigned n_slots)
{
	memory_len = shm_seg_len(n_slots, n_slots);
	memset(memory, 0, shm_front_len(n_slots, n_slots)); /* no message area */
	memset((void *)&rx_q, 0, sizeof(rx_q));
	rx_q.conf = &conf;
	rx_q.dev = &dev;
	conf.v[SHM_CONF(FAST_PEERS)].u = conf.v[SHM_CONF(WIDE_PEERS)].u = n_slots;
	for (unsigned k = 0; k < SENDERS; k++)
		sender_new(k);
	offered = false;
	n_got = 0;
	got_sum = 0;
	weak_share(memory, memory_len);
	weak_name(&weak_shm_seg()->closed, "closed");
	weak_name(&weak_shm_seg()->news, "news");
	weak_name(&weak_shm_seg()->doorbell, "doorbell");
	weak_name(&weak_shm_seg()->sleeping, "sleeping");
	weak_name(&weak_shm_seg()->mail_head, "mail head");
	weak_name(&weak_shm_seg()->mail[0].state, "mail");
	weak_name(&weak_shm_seg()->mail[1].state, "mail");
	for (uint32_t i = 0; i < n_slots; i++) {
		struct shm_slot *slot = (struct shm_slot *)(memory + SHM_SLOTS_OFF) + i;

		weak_name(&slot->state, "slot");
		weak_name(&slot->rx_pos, "rx_pos");
		weak_name(&slot->cold, "cold");
		for (unsigned c = 0; c < 2; c++)
			weak_name(&shm_cell_at(slot->cells, c)->head, "cell");
	}
}

void
weak_shm_open(void)
{
	weak_check(shm_queue_open(&rx_q) == 0);
}

struct shm_seg *
weak_shm_seg(void)
{
	return (struct shm_seg *)memory;
}

int
send_one(unsigned k, uint64_t value)
{
	return shm_tx_short(&peer[k].peer, OP, value, &value, 8);
}

void
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

unsigned
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

void
receive(unsigned n)
{
	while (n_got < n)
		if (look() == 0)
			weak_pause();
}

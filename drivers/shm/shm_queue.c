/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_queue.c - queues with their segments, and liveness of peers
 *
 * Design notes
 * - A process that has ended may have left messages in our segment: they are delivered before the
 *   peer is declared dead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_proc.h"
#include "plx_soft_tag.h"
#include "shm_int.h"

#define SHM_EVENTS 16 /* deaths detected in one control tick */

int
shm_queue_offer(struct shm_queue *sq)
{
	return plx_meet_offer(sq->addr.uid, (int[PLX_MEET_FDS]){sq->mem.fd, sq->bell[1], -1}, false);
}

int
shm_queue_open(struct plx_queue *q)
{
	const struct plx_conf *conf = q->conf;
	struct plx_seg_name windows;
	struct plx_proc self;
	struct shm_queue *sq;
	struct shm_seg *seg;
	int rc;

	sq = aligned_alloc(SHM_LINE, (sizeof(*sq) + SHM_LINE - 1) / SHM_LINE * SHM_LINE);
	if (sq == NULL)
		return -ENOMEM;
	memset(sq, 0, sizeof(*sq));
	sq->q = q;
	sq->n_slots = plx_conf_u64(conf, SHM_CONF(FAST_PEERS));
	sq->n_wide = RTE_MIN(sq->n_slots, plx_conf_u64(conf, SHM_CONF(WIDE_PEERS)));
	shm_far_open(sq, conf);
	sq->bell[0] = sq->bell[1] = -1;
	sq->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (sq->epfd < 0) {
		rc = -errno;
		goto free_sq;
	}
	rc = plx_seg_create_part(&sq->mem, shm_seg_len(sq->n_slots, sq->n_wide), shm_front_len(sq->n_slots, sq->n_wide),
		plx_conf_u64(conf, SHM_CONF(HUGE)) == PLX_CONF_AUTO && plx_meet_own_user_only());
	if (rc != 0)
		goto close_ep;
	if (getrandom(&sq->addr.uid, sizeof(sq->addr.uid), 0) != sizeof(sq->addr.uid)) {
		rc = -EIO;
		goto free_seg;
	}
	rc = plx_proc_self(&self);
	if (rc != 0)
		goto free_seg;
	sq->addr.pid = self.pid;
	sq->addr.host = self.host;
	sq->addr.proc = sq->proc = self.id;
	seg = sq->seg = sq->mem.base;
	seg->addr = sq->addr;
	seg->len = sq->mem.len;
	seg->n_slots = sq->n_slots;
	seg->n_wide = sq->n_wide;
	for (uint32_t i = 0; i < sq->n_slots; i++) {
		sq->rx[i].slot = shm_slot_at(seg, i);
		shm_slot_at_pos(&sq->rx[i], 0);
		sq->rx[i].data = (const uint8_t *)seg + shm_data_off(sq->n_slots, sq->n_wide, i);
		sq->rx[i].data_len = shm_data_len(sq->n_wide, i);
	}
	shm_mail_at(sq, 0);
	seg->magic = SHM_MAGIC;
	q->priv = sq;
	q->eager_max = SHM_EAGER_MAX;
	q->shared = seg->shared;
	q->shared_len = SHM_SHARED_LEN;
	q->caps = q->dev->caps;
	if (plx_conf_u64(conf, SHM_CONF(CMA)) == PLX_CONF_NO)
		q->caps &= ~(PLX_DEV_GET | PLX_DEV_PUT);
	rc = plx_window_table_get(&windows);
	if (rc != 0)
		goto free_seg;
	sq->windows = plx_conf_u64(conf, SHM_CONF(WINDOWS));
	rc = plx_soft_tag_open(q);
	if (rc != 0)
		goto put_windows;
	rc = shm_queue_offer(sq);
	if (rc != 0)
		goto close_tag;
	shm_queue_enlist(sq);
	return 0;
close_tag:
	plx_soft_tag_close(q);
put_windows:
	plx_window_table_put();
free_seg:
	plx_seg_destroy(&sq->mem);
close_ep:
	close(sq->epfd);
free_sq:
	free(sq);
	return rc;
}

void
shm_queue_close(struct plx_queue *q)
{
	struct shm_queue *sq = shm_queue(q);

	shm_queue_delist(sq);
	if (shm_is_owner(sq)) {
		atomic_store_explicit(&sq->seg->closed, 1, memory_order_release);
		plx_window_table_put();
		plx_meet_withdraw(sq->addr.uid);
	}
	shm_bell_close(sq);
	plx_soft_tag_close(q);
	plx_seg_destroy(&sq->mem);
	close(sq->epfd);
	free(sq);
}

void
shm_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	const struct shm_queue *sq = shm_queue(q);

	plx_meet_refresh();
	addr->len = sizeof(sq->addr);
	memcpy(addr->bytes, &sq->addr, sizeof(sq->addr));
}

/* A slot whose sender has closed or ended, and whose messages are all received. */
static void
slot_control_ready(struct shm_queue *sq, uint32_t i, uint32_t st)
{
	struct shm_peer *p = shm_peer(sq->rx[i].peer);
	bool left = SHM_SLOT_KIND(st) == SHM_SLOT_LEFT;

	if (!shm_slot_empty(sq, i) || !(left || p->gone))
		return;
	shm_slot_reset(sq, i);
	/* Receive-only peer that closed: drop it and its pidfd. */
	if (left && p->peer.state == PLX_PEER_NEW && p->peer.refs <= 1)
		shm_peer_gone(sq, p, "it left");
}

bool
shm_events(struct shm_queue *sq)
{
	struct epoll_event ev[SHM_EVENTS];
	int n = epoll_wait(sq->epfd, ev, SHM_EVENTS, 0);
	bool found = false;

	for (int i = 0; i < n; i++) {
		struct shm_peer *p = ev[i].data.ptr;

		if (ev[i].data.ptr == sq) /* the wake-up socket, which disarm drains */
			continue;
		if (p->asking)
			(void)shm_peer_meet(p);
		else
			shm_peer_gone(sq, p, "it has ended");
		found |= p->gone;
	}
	return found;
}

/* Slots without a doorbell ring, closed, or taken by a process that died meanwhile. */
static void
slots_control(struct shm_queue *sq)
{
	for (uint32_t i = 0; i < sq->n_slots; i++) {
		uint32_t st = atomic_load_explicit(&shm_slot_at(sq->seg, i)->state,
			memory_order_acquire);

		if (SHM_SLOT_KIND(st) == SHM_SLOT_FREE)
			continue;
		if (sq->ready >> i & 1) {
			slot_control_ready(sq, i, st);
		} else if (SHM_SLOT_KIND(st) != SHM_SLOT_TAKEN) {
			shm_slot_greet(sq, i);
			shm_hot_set(sq, sq->hot | (sq->ready & 1ull << i));
			if ((sq->ready >> i & 1) == 0 && plx_meet_guest_gone(SHM_SLOT_PROC(st), SHM_SLOT_PROC_MASK))
				shm_slot_reset(sq, i);
		} else if (plx_meet_guest_gone(SHM_SLOT_PROC(st), SHM_SLOT_PROC_MASK)) {
			PLX_STAT_INC(sq->q->stat.rx_skip_dead);
			shm_slot_reset(sq, i);
		}
	}
}

/* A mail cell claimed by a process that died before it committed. */
static void
mail_control(struct shm_queue *sq)
{
	struct shm_mail *m = &sq->seg->mail[sq->mail_pos % SHM_MAIL_CELLS];
	uint32_t lap = sq->mail_pos / SHM_MAIL_CELLS;
	uint64_t st = atomic_load_explicit(&m->state, memory_order_acquire);

	if ((uint32_t)st != (uint32_t)SHM_MAIL_STATE(0, lap, SHM_MAIL_CLAIMED) ||
		!plx_meet_guest_gone(st >> 32, UINT32_MAX))
		return;
	PLX_STAT_INC(sq->q->stat.rx_skip_dead);
	atomic_store_explicit(&m->state, SHM_MAIL_STATE(0, lap + 1, SHM_MAIL_FREE),
		memory_order_release);
	shm_mail_next(sq);
}

#define RARE_TICKS 50 /* control ticks between two checks of a process's socket */

/* Ended without a pidfd, or running another program. */
static bool
peer_vanished(struct shm_peer *p)
{
	return !p->self && ++p->ticks % RARE_TICKS == 0 && plx_meet_gone(p->addr.proc);
}

static void
peer_control(struct plx_peer *peer, void *arg)
{
	struct shm_queue *sq = arg;
	struct shm_peer *p = shm_peer(peer);

	if (!p->gone && p->asking)
		(void)shm_peer_meet(p);
	if (!p->gone && p->seg != NULL && p->seg != sq->seg &&
		atomic_load_explicit(&p->seg->closed, memory_order_acquire))
		shm_peer_gone(sq, p, "it has closed its queue");
	if (!p->gone && peer_vanished(p))
		shm_peer_gone(sq, p, "its socket is closed");
	if (!p->gone || peer->state == PLX_PEER_DEAD)
		return;
	if (p->rx_slot != SHM_NO_SLOT || shm_mail_waits(sq)) {
		sq->n_gone++;
		return; /* its messages are not all received yet */
	}
	plx_peer_dead(peer, peer->err != 0 ? peer->err : -ECONNRESET);
	shm_tx_leave(p);
}

void
shm_queue_control(struct plx_queue *q)
{
	struct shm_queue *sq = shm_queue(q);

	shm_events(sq);
	slots_control(sq);
	mail_control(sq);
	sq->n_gone = 0;
	plx_peer_each(q, peer_control, sq);
}

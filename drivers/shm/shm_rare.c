/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_rare.c - what befalls a slot rarely: a new sender, an invalid cell, a doorbell that is rung
 */
#include <string.h>

#include <rte_bitops.h>

#include "shm_int.h"

void
shm_slot_greet(struct shm_queue *sq, uint32_t i)
{
	struct shm_slot *slot = shm_slot_at(sq->seg, i);
	struct shm_addr addr;
	struct plx_peer *peer;
	uint32_t st = atomic_load_explicit(&slot->state, memory_order_acquire);

	if (SHM_SLOT_KIND(st) != SHM_SLOT_READY && SHM_SLOT_KIND(st) != SHM_SLOT_LEFT)
		return;
	memcpy(&addr, &slot->sender, sizeof(addr));
	if (shm_peer_of(sq, &addr, &peer) != 0) {
		/* Invalid, or no memory now: the slot stays with its sender until that ends. */
		PLX_STAT_INC(sq->q->stat.rx_drop_bad_peer);
		return;
	}
	sq->rx[i].peer = peer;
	shm_peer(sq->rx[i].peer)->rx_slot = i;
	sq->rx[i].peer->refs++;
	sq->ready |= 1ull << i;
	plx_peer_met(peer);
}

void
shm_slot_bad(struct shm_queue *sq, uint32_t i, uint16_t got)
{
	struct shm_rx_slot *r = &sq->rx[i];

	PLX_STAT_INC(sq->q->stat.rx_drop_bad_cell);
	shm_slot_at_pos(r, r->pos + 1);
	if (got == 0) /* no earlier message of this burst waits for its release */
		shm_slot_publish(r, r->pos);
}

void
shm_slot_idle(struct shm_queue *sq, uint32_t i)
{
	struct shm_rx_slot *r = &sq->rx[i];

	shm_slot_publish(r, r->pos);
	shm_hot_set(sq, sq->hot & ~(1ull << i));
	atomic_store_explicit(&r->slot->cold, 1, memory_order_release);
}

void
shm_slots_wake(struct shm_queue *sq, uint64_t bells)
{
	while (bells != 0) {
		uint32_t i = rte_bsf64(bells);

		bells &= bells - 1;
		if (i >= sq->n_slots)
			break;
		if ((sq->ready >> i & 1) == 0)
			shm_slot_greet(sq, i);
		if (sq->ready >> i & 1) {
			shm_hot_set(sq, sq->hot | 1ull << i);
			sq->rx[i].empty = 0;
		}
	}
}

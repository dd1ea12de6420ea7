/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_mail.c - messages through the mail ring, which all senders without a slot share
 */
#include <errno.h>
#include <string.h>

#include "shm_int.h"

#define MAIL_STEPS (2 * SHM_MAIL_CELLS)

/* The program's own function may take any time, and all other senders wait behind a claimed
 * cell. */
static void
pack_before_claim(struct plx_tx *tx, uint8_t *buf)
{
	if (tx->pack == NULL)
		return;
	tx->pack(tx->pack_arg, tx->pack_offset, buf, tx->len);
	tx->pack = NULL;
	tx->data = buf;
}

int
shm_mail_tx(struct shm_peer *p, const struct plx_tx *given)
{
	const struct shm_queue *sq = shm_queue(p->peer.q);
	uint8_t packed[sizeof(((struct shm_mail *)0)->body)];
	struct shm_seg *seg = p->seg;
	struct plx_tx copy = *given, *tx = &copy;

	/*
	 * Advance a hint that lags. If it lags by more steps than this a broken process
	 * wrote it: advance it a bit in each turn.
	 */
	for (unsigned i = 0; i < MAIL_STEPS; i++) {
		uint64_t pos = atomic_load_explicit(&seg->mail_head, memory_order_relaxed);
		uint32_t lap = pos / SHM_MAIL_CELLS;
		struct shm_mail *m = &seg->mail[pos % SHM_MAIL_CELLS];
		/* pairs with the release in mail_free(): the body is no longer read */
		uint64_t st = atomic_load_explicit(&m->state, memory_order_acquire);
		uint32_t low = (uint32_t)st;

		if (low == (uint32_t)SHM_MAIL_STATE(0, lap, SHM_MAIL_FREE)) {
			pack_before_claim(tx, packed);
			if (!atomic_compare_exchange_strong_explicit(&m->state, &st,
				    SHM_MAIL_STATE(sq->proc, lap, SHM_MAIL_CLAIMED),
				    memory_order_acquire, memory_order_relaxed))
				continue;
			atomic_compare_exchange_strong_explicit(&seg->mail_head, &pos, pos + 1,
				memory_order_relaxed, memory_order_relaxed);
			m->len = tx->hdr_len + tx->len;
			m->op = tx->op;
			m->sender = sq->addr;
			memcpy(m->body, tx->hdr, tx->hdr_len);
			shm_tx_copy(m->body + tx->hdr_len, tx);
			/* pairs with the acquire in shm_mail_waits() */
			atomic_store_explicit(&m->state,
				SHM_MAIL_STATE(sq->proc, lap, SHM_MAIL_READY),
				memory_order_release);
			if (unlikely(p->wakes) && shm_bell_due(p))
				shm_bell_ring(p);
			return 0;
		}
		if ((int32_t)((low & ~3u) - (lap << 2)) >= 0) {
			/* Claimed, or used since, and the hint was not advanced. */
			atomic_compare_exchange_strong_explicit(&seg->mail_head, &pos, pos + 1,
				memory_order_relaxed, memory_order_relaxed);
			continue;
		}
		if (atomic_load_explicit(&seg->mail_head, memory_order_relaxed) != pos)
			continue;
		return -EAGAIN; /* still of the previous lap */
	}
	return -EAGAIN;
}

static void
mail_free(struct shm_queue *sq, uint64_t pos)
{
	/* pairs with the acquire in mail_tx(): we have read the body */
	atomic_store_explicit(&sq->seg->mail[pos % SHM_MAIL_CELLS].state,
		SHM_MAIL_STATE(0, pos / SHM_MAIL_CELLS + 1, SHM_MAIL_FREE), memory_order_release);
}

uint16_t
shm_mail_rx(struct shm_queue *sq, struct plx_rx *rx)
{
	struct shm_mail *m = &sq->seg->mail[sq->mail_pos % SHM_MAIL_CELLS];
	uint32_t len = __atomic_load_n(&m->len, __ATOMIC_RELAXED); /* once: the sender may still
	                                                            * write */
	struct plx_peer *peer = NULL;
	struct shm_addr addr;
	int rc;

	memcpy(&addr, &m->sender, sizeof(addr));
	rc = shm_peer_of(sq, &addr, &peer);
	if (rc == -ENOMEM)
		return 0; /* it stays where it is */
	if (rc != 0 || len > sizeof(m->body)) {
		PLX_STAT_INC(sq->q->stat.rx_drop_bad_cell);
		mail_free(sq, sq->mail_pos);
		shm_mail_next(sq);
		return 0;
	}
	plx_peer_met(peer);
	rx->src = peer;
	rx->data = m->body;
	rx->len = len;
	rx->op = m->op;
	rx->drv[0] = SHM_RX_MAIL;
	rx->drv[1] = sq->mail_pos % SHM_MAIL_CELLS;
	shm_mail_next(sq);
	PLX_STAT_INC(sq->q->stat.rx_msgs);
	PLX_STAT_ADD(sq->q->stat.rx_bytes, len);
	return 1;
}

void
shm_mail_release(struct shm_queue *sq, uint8_t cell)
{
	uint64_t pos = sq->mail_pos - 1;

	/* the position that this cell index had, at most a lap ago */
	pos -= (pos - cell) % SHM_MAIL_CELLS;
	mail_free(sq, pos);
}

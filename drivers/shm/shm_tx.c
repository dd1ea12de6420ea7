/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_tx.c - sending: reserve, copy, release-store
 */
#include <errno.h>
#include <string.h>

#include <rte_memcpy.h>
#include <rte_prefetch.h>

#include "plx_copy.h"
#include "shm_int.h"

/* @return whether this turn has sent so much that the worker has to poll for arrivals first */
static bool
is_blind(struct shm_peer *p, uint32_t most)
{
	const uint64_t *turns = p->peer.q->turns;

	if (turns == NULL)
		return false;
	if (p->turn != *turns) {
		p->turn = *turns;
		p->n_blind = 0;
	}
	return p->n_blind++ >= most;
}

/* Separate, so that a message that is not the last of its lap saves no registers for it. */
static __rte_noinline void
next_lap(struct shm_peer *p)
{
	shm_tx_lap(p);
}

/* Read the cells that the receiver has freed since the last read. */
static __rte_noinline void
slot_refresh(struct shm_peer *p)
{
	/* pairs with the release in slot_publish(): the cells' content is no longer read */
	uint64_t pos = atomic_load_explicit(&p->slot->rx_pos, memory_order_acquire);

	/* Peer memory: a position outside of what we sent is invalid and changes nothing. */
	if (pos - p->rx_seen > p->tx_pos - p->rx_seen)
		return;
	if (pos != p->rx_seen && !is_blind(p, PLX_DEV_BLIND_MAX)) {
		uint32_t end = p->data_end[(pos - 1) % SHM_CELLS];

		p->data_tail = p->data_head - (uint32_t)((uint32_t)p->data_head - end);
		p->rx_seen = pos;
		next_lap(p);
	}
}

static inline bool
slot_full(struct shm_peer *p)
{
	if (likely(p->peer.tx_sure != 0))
		return false;
	slot_refresh(p);
	return shm_cells_free(p) == 0;
}

static __rte_noinline __rte_cold void
slot_ring(struct shm_peer *p)
{
	atomic_store_explicit(&p->slot->cold, 0, memory_order_relaxed);
	atomic_fetch_or_explicit(&p->seg->doorbell, 1ull << p->slot_index, memory_order_release);
}

/* Wake the receiver, if needed. */
static inline void
slot_tell(struct shm_peer *p)
{
	/* The receiver recovers from a stale 0 here, as it polls cold slots in rotation. */
	if (unlikely(atomic_load_explicit(&p->slot->cold, memory_order_relaxed)))
		slot_ring(p);
	if (unlikely(p->wakes) && shm_bell_due(p)) /* decided when connecting */
		shm_bell_ring(p);
}

/* The cell of the next message. */
static inline struct shm_cell *
slot_cell(const struct shm_peer *p)
{
	return (struct shm_cell *)(uintptr_t)p->peer.tx_line;
}

/* Publish the next cell to the receiver; slot_tell() wakes it. next_lap() may be due. */
static inline void
slot_put(struct shm_peer *p, uint8_t op, uint8_t kind, uint32_t len)
{
	struct shm_cell *cell = slot_cell(p);
	union shm_cell_head head;

	head.seq = p->tx_seq;
	head.len = len;
	head.op = op;
	head.kind = kind;
	p->data_end[p->tx_pos++ % SHM_CELLS] = (uint32_t)p->data_head;
	/* pairs with the acquire in slot_rx(): the body is there */
	atomic_store_explicit(&cell->head, head.word, memory_order_release);
	p->peer.tx_line = cell + 1;
	/* for reading: taking the line from the receiver so early costs a tenth of the rate */
	rte_prefetch0(cell + 1 + SHM_TX_AHEAD);
}

/* The next len bytes of the data area, a multiple of the line, contiguous; there is room. */
static inline uint8_t *
data_take(struct shm_peer *p, uint32_t len)
{
	if (unlikely(p->data_off + len > p->data_len)) { /* skip the rest of the lap */
		p->data_head += p->data_len - p->data_off;
		p->data_off = 0;
	}
	p->data_head += len;
	p->data_off += len;
	return p->data + p->data_off - len;
}

static inline bool
data_has(const struct shm_peer *p, uint32_t len)
{
	uint32_t skip = p->data_off + len > p->data_len ? p->data_len - p->data_off : 0;

	return skip + len <= shm_data_free(p);
}

static inline uint32_t
data_lines(uint32_t len)
{
	return RTE_ALIGN_CEIL(len, SHM_LINE);
}

/* Room for a message of len bytes, or NULL: nothing has changed then. */
static uint8_t *
slot_data(struct shm_peer *p, uint32_t len)
{
	len = data_lines(len);
	if (!data_has(p, len)) {
		slot_refresh(p);
		if (!data_has(p, len))
			return NULL;
	}
	return data_take(p, len);
}

/* Publish the message of len bytes at data, in the data area. */
static inline void
slot_put_data(struct shm_peer *p, uint8_t op, const uint8_t *data, uint32_t len)
{
	union shm_ref ref = {{(uint32_t)(data - p->data), len}};

	memcpy(slot_cell(p)->body, &ref, sizeof(ref));
	slot_put(p, op, SHM_CELL_DATA, sizeof(ref));
}

static inline void
copy_data(uint8_t *to, const struct plx_tx *tx)
{
	if (unlikely(tx->pack != NULL))
		tx->pack(tx->pack_arg, tx->pack_offset, to, tx->len);
	else if (tx->len != 0)
		plx_copy(to, tx->data, tx->len);
}

static int
slot_tx(struct shm_peer *p, const struct plx_tx *tx)
{
	uint32_t len = tx->hdr_len + tx->len;
	uint8_t *to;

	if (slot_full(p))
		return -EAGAIN;
	if (len <= SHM_CELL_BODY) {
		to = slot_cell(p)->body;
		memcpy(to, tx->hdr, tx->hdr_len);
		copy_data(to + tx->hdr_len, tx);
		slot_put(p, tx->op, SHM_CELL_INLINE, len);
	} else {
		to = slot_data(p, len);
		if (to == NULL)
			return -EAGAIN;
		plx_copy_ahead(to, len);
		memcpy(to, tx->hdr, tx->hdr_len);
		copy_data(to + tx->hdr_len, tx);
		slot_put_data(p, tx->op, to, len);
	}
	if (unlikely(len > 8 + SHM_SHORT_MAX || p->peer.tx_sure <= 1))
		next_lap(p);
	else
		p->peer.tx_sure--;
	slot_tell(p);
	return 0;
}

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

static int
mail_tx(struct shm_peer *p, const struct plx_tx *given)
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
			copy_data(m->body + tx->hdr_len, tx);
			/* pairs with the acquire in mail_rx() */
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

static __rte_noinline int
tx_slow(struct shm_peer *p, const struct plx_tx *tx)
{
	if (p->tx_mode == SHM_TX_NONE) {
		int rc = p->peer.state == PLX_PEER_DEAD ? p->peer.err : shm_peer_meet(p);

		if (rc != 0)
			return rc;
	}
	if (tx->hdr_len + tx->len > p->peer.mtu)
		return -EMSGSIZE;
	if (p->tx_mode == SHM_TX_SLOT)
		return slot_tx(p, tx);
	return is_blind(p, PLX_DEV_BLIND_MAX * SHM_MAIL_CELLS) ? -EAGAIN : mail_tx(p, tx);
}

static inline int
tx_count(struct plx_queue *q, int rc, uint32_t len)
{
	if (likely(rc == 0)) {
		PLX_STAT_INC(q->stat.tx_msgs);
		PLX_STAT_ADD(q->stat.tx_bytes, len);
	} else if (rc == -EAGAIN) {
		PLX_STAT_INC(q->stat.tx_full);
	}
	return rc;
}

int
shm_tx(const struct plx_tx *tx)
{
	struct shm_peer *p = shm_peer(tx->peer);
	int rc;

	if (likely(p->tx_mode == SHM_TX_SLOT && tx->hdr_len + tx->len <= SHM_MSG_MAX))
		rc = slot_tx(p, tx);
	else
		rc = tx_slow(p, tx);
	return tx_count(tx->peer->q, rc, tx->hdr_len + tx->len);
}

/* The rare parts of shm_tx_short() are separate, so that it saves no registers. */
static __rte_noinline int
tx_short_slow(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct plx_tx tx = {.peer = peer, .hdr = &hdr, .hdr_len = 8, .data = data, .len = len,
		.op = op};

	return shm_tx(&tx);
}

static __rte_noinline int
tx_short_tell(struct shm_peer *p)
{
	slot_tell(p);
	return 0;
}

static __rte_noinline int
tx_short_lap(struct shm_peer *p)
{
	next_lap(p);
	return tx_short_tell(p);
}

/* One less message is certain to be taken. */
static inline int
tx_short_end(struct shm_peer *p, struct plx_queue *q, uint32_t len)
{
	PLX_STAT_INC(q->stat.tx_msgs);
	PLX_STAT_ADD(q->stat.tx_bytes, len);
	if (unlikely(--p->peer.tx_sure == 0))
		return tx_short_lap(p);
	if (unlikely(atomic_load_explicit(&p->slot->cold, memory_order_relaxed) ||
		    (p->wakes && shm_bell_due(p))))
		return tx_short_tell(p);
	return 0;
}

/* More than a cell has room for. */
static __rte_noinline int
tx_short_data(struct shm_peer *p, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	uint8_t *to = data_take(p, data_lines(8 + len));

	plx_copy_ahead(to, 8 + len);
	memcpy(to, &hdr, 8);
	plx_copy(to + 8, data, len);
	slot_put_data(p, op, to, 8 + len);
	return tx_short_end(p, p->peer.q, 8 + len);
}

/* Any length. */
static __rte_noinline int
tx_short_any(struct shm_peer *p, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct shm_cell *cell = slot_cell(p);

	if (len > SHM_CELL_DATA_MAX)
		return tx_short_data(p, op, hdr, data, len);
	memcpy(cell->body, &hdr, 8);
	if (len > 0)
		rte_memcpy(cell->body + 8, data, len);
	slot_put(p, op, SHM_CELL_INLINE, 8 + len);
	return tx_short_end(p, p->peer.q, 8 + len);
}

int
shm_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct shm_peer *p = shm_peer(peer);
	struct shm_cell *cell;
	uint64_t word;

	PLX_ASSERT(len <= SHM_SHORT_MAX);
	if (unlikely(peer->tx_sure == 0))
		return tx_short_slow(peer, op, hdr, data, len);
	if (len != 8 && len != 16)
		return tx_short_any(p, op, hdr, data, len);
	cell = slot_cell(p);
	memcpy(cell->body, &hdr, 8);
	memcpy(&word, data, 8);
	rte_compiler_barrier(); /* word by word: a load of 16 bytes waits for two recent stores */
	memcpy(cell->body + 8, &word, 8);
	if (len == 16) {
		memcpy(&word, (const uint8_t *)data + 8, 8);
		rte_compiler_barrier();
		memcpy(cell->body + 16, &word, 8);
	}
	slot_put(p, op, SHM_CELL_INLINE, 8 + len);
	return tx_short_end(p, peer->q, 8 + len);
}

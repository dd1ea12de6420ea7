/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_slot.c - messages through slots: reserve, copy, release-store; acquire-load, bound, release
 */
#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>

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

/* Separate, so that a message that is not the last of half a lap saves no registers for it. */
static __rte_noinline void
next_lap(struct shm_peer *p)
{
	shm_tx_lap(p);
}

/* Read the cells that the receiver has freed since the last read. */
static __rte_noinline void
slot_refresh(struct shm_peer *p)
{
	uint64_t pos = shm_far_read(p);

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
	p->peer.tx_line = p->tx_behind;
	p->tx_behind = cell + 2; /* see shm_cell_at() */
}

/*
 * Note that a message of this turn goes to the data area. @return whether it is the first one, which a receiver may
 *   be waiting for. It begins SHM_GAP behind the one before: a processor that reads a message prefetches what is
 *   behind it, and the sender would have to take the lines of the next one from it. A receiver that has several to
 *   read uses what is prefetched, so that the others have no gap.
 */
static inline bool
data_enter(struct shm_peer *p)
{
	const uint64_t *turns = p->peer.q->turns;
	const uint64_t last = p->data_turn;

	if (turns == NULL)
		return false;
	p->data_turn = *turns;
	return p->data_turn != last;
}

/* The next len bytes of the data area, a multiple of the line, contiguous, within the lap; there is room. */
static inline uint8_t *
data_take(struct shm_peer *p, uint32_t len, uint32_t lap)
{
	if (unlikely(p->data_off + len > lap)) { /* skip the rest of the area */
		p->data_head += p->data_len - p->data_off;
		p->data_off = 0;
	}
	p->data_head += len;
	p->data_off += len;
	return p->data + p->data_off - len;
}

static inline bool
data_has(const struct shm_peer *p, uint32_t len, uint32_t lap)
{
	uint32_t skip = p->data_off + len > lap ? p->data_len - p->data_off : 0;

	return skip + len <= shm_data_free(p);
}

static inline uint32_t
data_lines(uint32_t len)
{
	return RTE_ALIGN_CEIL(len, SHM_LINE);
}

/*
 * Room for a message of len bytes, or NULL: nothing has changed then. A lap of the whole area is best
 * for data that caches hold: the receiver's has lost a line by the time that it is written again. Much
 * data goes back to the beginning after 512 KiB, as then the sender's keeps these lines; or, where
 * other messages have used more, when there is room.
 */
static uint8_t *
slot_data(struct shm_peer *p, uint32_t len, bool much)
{
	uint32_t lap = unlikely(much) ? RTE_MIN(p->data_len, SHM_LAP_MUCH) : p->data_len;

	len = data_lines(len);
	if (!data_has(p, len, lap)) {
		slot_refresh(p);
		if (!data_has(p, len, lap) && p->data_off > SHM_LAP_MUCH)
			lap = p->data_len;
		if (!data_has(p, len, lap))
			return NULL;
	}
	return data_take(p, len, lap);
}

/* By one store: a receiver may look at it while it is written again. */
static inline void
slot_set_ref(struct shm_peer *p, union shm_ref ref)
{
	__atomic_store_n((uint64_t *)slot_cell(p)->body, ref.word, __ATOMIC_RELAXED);
}

/* Publish the message of len bytes at data, in the data area. */
static inline void
slot_put_data(struct shm_peer *p, uint8_t op, const uint8_t *data, uint32_t len)
{
	union shm_ref ref = {{(uint32_t)(data - p->data), len}};

	slot_set_ref(p, ref);
	slot_put(p, op, SHM_CELL_DATA, sizeof(ref));
}

/*
 * The bytes to leave in front of a message, so that its data begins at a line: copies at both ends move whole
 * lines then (a quarter less time at 16 KiB). A short message would only take a line more, and what is stored
 * past the caches goes by whole lines anyway.
 */
static inline uint32_t
data_lead(const struct shm_peer *p, const struct plx_tx *tx)
{
	return tx->len >= SHM_ALIGNED_MIN && tx->len < p->past_min ? -(tx->hdr_len + tx->skew) & (SHM_LINE - 1) : 0;
}

static inline void
slot_coming(struct shm_peer *p, uint32_t len)
{
	union shm_cell_head head = {.seq = p->tx_seq | SHM_SEQ_COMING, .len = len, .kind = SHM_CELL_DATA};

	/* pairs with the acquire in look_at_coming() */
	atomic_store_explicit(&slot_cell(p)->head, head.word, memory_order_release);
}

/*
 * Copy data to its place behind a header, and let the receiver fetch what is written meanwhile: both work at
 * once: 8 KiB take a tenth less. Its chunks go by registers, as they are short.
 */
static __rte_noinline void
copy_coming(struct shm_peer *p, uint8_t *msg, const struct plx_tx *tx)
{
	union shm_ref ref = {{(uint32_t)(msg - p->data), tx->hdr_len + tx->len}};
	const uint8_t *from = tx->data;
	uint8_t *to = msg + tx->hdr_len;
	uint32_t left = tx->len;

	slot_set_ref(p, ref);
	for (; left > SHM_COMING_STEP; left -= SHM_COMING_STEP) {
		plx_copy(to, from, SHM_COMING_STEP);
		to += SHM_COMING_STEP;
		from += SHM_COMING_STEP;
		slot_coming(p, to - msg);
	}
	plx_copy(to, from, left);
}

static inline bool
copies_coming(const struct plx_tx *tx, bool first)
{
	return tx->len > SHM_COMING_STEP && tx->len <= SHM_COMING_MAX && tx->pack == NULL && first;
}

/* Into the data area; separate, so that a message that a cell has room for saves no registers for it. */
static __rte_noinline int
slot_tx_data(struct shm_peer *p, const struct plx_tx *tx)
{
	const bool first = data_enter(p);
	const uint32_t len = tx->hdr_len + tx->len, lead = data_lead(p, tx), gap = first ? SHM_GAP : 0;
	uint8_t *to = slot_data(p, gap + lead + len, tx->much);

	if (to == NULL)
		return -EAGAIN;
	to += gap;
	if (len >= SHM_PAST_LONG && unlikely(rte_rdtsc() >= p->probe_at))
		shm_far_probe(p, to, len);
	if (unlikely(tx->len >= p->past_min) && tx->pack == NULL && tx->hdr_len <= SHM_LINE) {
		plx_copy_lines(to, tx->hdr, tx->hdr_len, tx->data, tx->len);
	} else {
		to += lead;
		memcpy(to, tx->hdr, tx->hdr_len);
		if (copies_coming(tx, first))
			copy_coming(p, to, tx);
		else
			shm_tx_copy(to + tx->hdr_len, tx);
	}
	slot_put_data(p, tx->op, to, len);
	if (unlikely(gap + lead + len > SHM_SHORT_ROOM || tx->much || p->peer.tx_sure <= 1)) /* much may have skipped a lot */
		next_lap(p);
	else
		p->peer.tx_sure--;
	slot_tell(p);
	return 0;
}

static int
slot_tx(struct shm_peer *p, const struct plx_tx *tx)
{
	uint32_t len = tx->hdr_len + tx->len;
	uint8_t *to;

	if (slot_full(p))
		return -EAGAIN;
	if (len > SHM_CELL_BODY)
		return slot_tx_data(p, tx);
	to = slot_cell(p)->body;
	memcpy(to, tx->hdr, tx->hdr_len);
	shm_tx_copy(to + tx->hdr_len, tx);
	slot_put(p, tx->op, SHM_CELL_INLINE, len);
	if (unlikely(p->peer.tx_sure <= 1))
		next_lap(p);
	else
		p->peer.tx_sure--;
	slot_tell(p);
	return 0;
}

/* The first one may have a gap, and may skip as much at the end of the area. */
static bool
slot_holds(const struct shm_peer *p, uint32_t n)
{
	return shm_cells_free(p) >= n && shm_data_free(p) >= 2 * SHM_GAP + (n + 1) * SHM_MSG_ROOM;
}

/*
 * A call of the kernel copies once, and looks up each page first. Messages are copied twice, by a
 * processor on each side at once, through lines that stay in their caches: where these come fast,
 * two near cores moved 36 GB/s by messages and 25 by the kernel; elsewhere the kernel is as fast.
 */
int
shm_bulk(const struct plx_rma_op *op, uint32_t n)
{
	struct shm_peer *p = shm_peer(op->peer);

	if (p->self || shm_is_mapped(p, op->remote)) /* one copy, without the kernel */
		return 0;
	if (n == 0)
		return 1;
	if (p->tx_mode != SHM_TX_SLOT || n >= p->data_len / SHM_MSG_ROOM || p->far)
		return 0;
	/* Lines that come slowly are tried again now and then, and timed. */
	if (p->drags && rte_rdtsc() < p->probe_at + SHM_RETRY * shm_queue(p->peer.q)->probe_ticks)
		return 0;
	if (!slot_holds(p, n))
		slot_refresh(p);
	return slot_holds(p, n) ? 1 : -EAGAIN;
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
	return is_blind(p, PLX_DEV_BLIND_MAX * SHM_MAIL_CELLS) ? -EAGAIN : shm_mail_tx(p, tx);
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

static __rte_noinline int
tx_short_past(struct shm_peer *p, uint8_t op, uint64_t hdr, const void *data, uint32_t len, uint8_t *to)
{
	plx_copy_lines(to, &hdr, 8, data, len);
	slot_put_data(p, op, to, 8 + len);
	return tx_short_end(p, p->peer.q, 8 + len);
}

/* More than a cell has room for. */
static __rte_noinline int
tx_short_data(struct shm_peer *p, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	const uint32_t gap = data_enter(p) ? SHM_GAP : 0;
	uint8_t *to = data_take(p, gap + data_lines(8 + len), p->data_len) + gap;

	if (unlikely(len >= p->past_min))
		return tx_short_past(p, op, hdr, data, len, to);
	memcpy(to, &hdr, 8);
	plx_copy_some(to + 8, data, len);
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

/* Relaxed: taking the message reads again, with acquire. */
static inline bool
slot_has(const struct shm_rx_slot *r)
{
	return (uint32_t)atomic_load_explicit(&r->next->head, memory_order_relaxed) == r->seq;
}

/* The place of a message in the data area. @return whether it is valid */
static inline bool
slot_ref(const struct shm_rx_slot *r, const struct shm_cell *cell, uint8_t kind, union shm_ref *ref)
{
	/* once: the sender may still write */
	ref->word = __atomic_load_n((const uint64_t *)cell->body, __ATOMIC_RELAXED);
	return likely(kind == SHM_CELL_DATA && ref->len <= SHM_MSG_MAX && ref->off <= r->data_len - ref->len);
}

/* @return whether the message is valid */
static inline bool
slot_found_data(const struct shm_rx_slot *r, const struct shm_cell *cell, uint8_t kind, struct plx_rx *rx)
{
	union shm_ref ref;

	if (unlikely(!slot_ref(r, cell, kind, &ref)))
		return false;
	rx->data = r->data + ref.off;
	rx->len = ref.len;
	rte_prefetch0(rx->data);
	rte_prefetch0(rx->data + 64);
	rte_prefetch0(rx->data + 128);
	rte_prefetch0(rx->data + 192);
	return true;
}

/* On to the next position. @return whether it begins a quarter: shm_slot_at_pos() is due */
static inline bool
slot_step(struct shm_rx_slot *r)
{
	struct shm_cell *cell = r->next;

	r->pos++;
	r->next = r->behind;
	r->behind = cell + 2; /* see shm_cell_at() */
	return --r->left == 0;
}

/* Take messages from one slot; rx has room for n. */
static uint16_t
slot_rx(struct shm_queue *sq, uint32_t i, struct plx_rx *rx, uint16_t n)
{
	struct shm_rx_slot *r = &sq->rx[i];
	const struct shm_cell *const cells = r->slot->cells;
	struct plx_peer *peer = r->peer;
	uint64_t bytes = 0;
	bool bad = false;
	uint16_t got;

	/* Never a lap ahead of what is released: the sequence number forbids it anyway. */
	for (got = 0; got < n; got++, rx++) {
		const struct shm_cell *cell = r->next;
		union shm_cell_head head;

		/* pairs with the release in slot_put() */
		head.word = atomic_load_explicit(&cell->head, memory_order_acquire);
		if (head.seq != r->seq)
			break;
		if (likely(head.kind == SHM_CELL_INLINE && head.len <= SHM_CELL_BODY)) {
			rx->data = cell->body;
			rx->len = head.len;
		} else if (slot_found_data(r, cell, head.kind, rx)) {
			r->large = true;
		} else {
			bad = true;
			break; /* the next turn continues after it */
		}
		rx->src = peer;
		rx->op = head.op;
		rx->drv[0] = i;
		bytes += rx->len;
		rte_prefetch0(shm_cell_at(cells, r->pos + 1 + SHM_RX_AHEAD));
		if (unlikely(slot_step(r)))
			shm_slot_at_pos(r, r->pos);
	}
	if (unlikely(bad))
		shm_slot_bad(sq, i, got);
	if (got != 0) {
		r->empty = 0;
		PLX_STAT_ADD(sq->q->stat.rx_msgs, got);
		PLX_STAT_ADD(sq->q->stat.rx_bytes, bytes);
	}
	return got;
}

static inline uint16_t
slot_look(struct shm_queue *sq, uint32_t i, struct plx_rx *rx, uint16_t n)
{
	if (slot_has(&sq->rx[i]))
		return slot_rx(sq, i, rx, n);
	if (unlikely(++sq->rx[i].empty >= SHM_COLD_AFTER))
		shm_slot_idle(sq, i);
	return 0;
}

static inline void
slots_look(struct shm_queue *sq)
{
	uint64_t bells = atomic_load_explicit(&sq->seg->doorbell, memory_order_relaxed);
	uint64_t cold = sq->ready & ~sq->hot;

	if (unlikely(bells != 0)) {
		/* pairs with the release in slot_ring() */
		bells = atomic_exchange_explicit(&sq->seg->doorbell, 0, memory_order_acquire);
		shm_slots_wake(sq, bells);
	}
	if (unlikely(cold != 0)) {
		uint32_t i = sq->next_cold++ & 63;

		if ((cold >> i & 1) == 0)
			return;
		if (slot_has(&sq->rx[i])) {
			atomic_store_explicit(&sq->rx[i].slot->cold, 0, memory_order_relaxed);
			shm_slots_wake(sq, 1ull << i);
		}
	}
}

/* Several hot slots: a few messages from each, in rotating order. */
static __rte_noinline uint16_t
slots_rx(struct shm_queue *sq, struct plx_rx *rx, uint16_t n)
{
	uint32_t first = ++sq->next_hot & 63;
	uint64_t hot = sq->hot;
	uint16_t got = 0;

	hot = hot >> first | hot << ((64 - first) & 63);
	for (; hot != 0 && got < n; hot &= hot - 1) {
		uint16_t share = RTE_MAX(n / 4, 1), room = RTE_MIN(n - got, share);

		got += slot_look(sq, (rte_bsf64(hot) + first) & 63, rx + got, room);
	}
	return got;
}

uint16_t
shm_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct shm_queue *sq = shm_queue(q);
	uint64_t hot;
	uint16_t got = 0;

	slots_look(sq);
	hot = sq->hot;
	if (unlikely((hot & (hot - 1)) != 0))
		got = slots_rx(sq, rx, n);
	else if (likely(hot != 0))
		got = slot_look(sq, rte_bsf64(hot), rx, n);
	for (n -= got; unlikely(shm_mail_waits(sq)) && n > 0; n--)
		got += shm_mail_rx(sq, rx + got);
	return got;
}

/* More than one slot is hot. */
static __rte_noinline enum plx_rx_found
look_at_all(const struct shm_queue *sq)
{
	for (uint64_t hot = sq->hot; hot != 0; hot &= hot - 1)
		if (slot_has(&sq->rx[rte_bsf64(hot)]))
			return PLX_RX_BURST; /* which alternates between all */
	return shm_mail_waits(sq) ? PLX_RX_BURST : PLX_RX_NONE;
}

static inline enum plx_rx_found
look_behind(const struct shm_rx_slot *r)
{
	return likely(!slot_has(r)) ? PLX_RX_ONE : PLX_RX_MORE;
}

/* The previous cell is the last of a quarter, perhaps of the lap. All cells before may be
 * reused. */
static __rte_noinline enum plx_rx_found
look_quarter(struct shm_rx_slot *r)
{
	shm_slot_at_pos(r, r->pos);
	shm_slot_publish(r, r->pos - 1);
	return look_behind(r);
}

/* One message of len bytes is found, and valid until the next look. */
static inline enum plx_rx_found
look_found(struct plx_queue *q, struct shm_rx_slot *r, struct plx_rx *rx, uint8_t op, uint32_t len)
{
	rx->src = r->peer;
	rx->len = len;
	rx->op = op;
	r->empty = 0;
	PLX_STAT_INC(q->stat.rx_msgs);
	PLX_STAT_ADD(q->stat.rx_bytes, len);
	if (unlikely(slot_step(r)))
		return look_quarter(r);
	return look_behind(r);
}

/* A message in the data area whose room is freed with its cell; less than a quarter of the
 * lap waits for that. */
static inline bool
is_small(const struct plx_rx *rx)
{
	return rx->len <= SHM_RX_SMALL;
}

/* @return whether the cell after the next one has a message */
static inline bool
slot_has_two(const struct shm_rx_slot *r)
{
	const struct shm_cell *behind = shm_cell_at(r->slot->cells, r->pos + 1);

	return (uint32_t)atomic_load_explicit(&behind->head, memory_order_relaxed) == shm_seq(r->pos + 1);
}

/* One message in the data area; a burst is cheaper for several long ones. */
static __rte_noinline enum plx_rx_found
look_at_data(struct plx_queue *q, struct plx_rx *rx, struct shm_rx_slot *r, uint64_t word, const struct shm_cell *cell)
{
	union shm_cell_head head = {.word = word};

	if (unlikely(!slot_found_data(r, cell, head.kind, rx)))
		return PLX_RX_BURST;
	if (likely(is_small(rx)))
		return look_found(q, r, rx, head.op, rx->len);
	if (slot_has_two(r))
		return PLX_RX_BURST;
	(void)look_found(q, r, rx, head.op, rx->len);
	rx->drv[0] = (uint8_t)(r - shm_queue(q)->rx);
	r->large = true;
	return PLX_RX_HELD;
}

static inline enum plx_rx_found
look_at_mail(const struct shm_queue *sq)
{
	return unlikely(shm_mail_waits(sq)) ? PLX_RX_BURST : PLX_RX_NONE;
}

/* The next message is being written: fetch what is there. With no more than q, so that a look saves no registers. */
static __rte_noinline enum plx_rx_found
look_at_coming(struct plx_queue *q)
{
	const struct shm_queue *sq = shm_queue(q);
	struct shm_rx_slot *r = sq->only;
	union shm_cell_head head;
	union shm_ref ref;

	/* pairs with the release in slot_coming() */
	head.word = atomic_load_explicit(&r->next->head, memory_order_acquire);
	if ((head.seq ^ r->seq) != SHM_SEQ_COMING) /* all of it has come since */
		return look_at_mail(sq);
	if (r->coming_pos != r->pos) {
		r->coming_pos = r->pos;
		r->coming = 0;
	}
	if (likely(slot_ref(r, r->next, head.kind, &ref) && head.len <= ref.len))
		for (; r->coming < head.len; r->coming += SHM_LINE)
			rte_prefetch0(r->data + ref.off + r->coming);
	return look_at_mail(sq);
}

enum plx_rx_found
shm_rx_look(struct plx_queue *q, struct plx_rx *rx)
{
	struct shm_queue *sq = shm_queue(q);
	struct shm_rx_slot *r = sq->only;
	const struct shm_cell *cell;
	union shm_cell_head head;

	/* relaxed: slots_look() acquires the bits of the doorbell */
	if (unlikely(atomic_load_explicit(&sq->seg->doorbell, memory_order_relaxed) != 0))
		return PLX_RX_BURST;
	if (unlikely(r == NULL))
		return look_at_all(sq);
	cell = r->next;
	/* pairs with the release in slot_put() */
	head.word = atomic_load_explicit(&cell->head, memory_order_acquire);
	if (head.seq != r->seq)
		return unlikely((head.seq & SHM_SEQ_COMING) != 0) ? look_at_coming(q) : look_at_mail(sq);
	if (unlikely(head.kind != SHM_CELL_INLINE || head.len > SHM_CELL_BODY))
		return look_at_data(q, rx, r, head.word, cell);
	rx->data = cell->body;
	return look_found(q, r, rx, head.op, head.len);
}

static inline void
slot_release(struct shm_queue *sq, uint32_t i)
{
	struct shm_rx_slot *r = &sq->rx[i];

	/* Publish in quarters, and at once if data was large: the sender may wait. */
	if (r->pos - r->published >= SHM_CELLS / 4 || r->large)
		shm_slot_publish(r, r->pos);
}

/* Messages of several senders. */
static __rte_noinline void
release_each(struct shm_queue *sq, const struct plx_rx *rx, uint16_t n)
{
	for (uint16_t k = 0; k < n; k++) {
		if (rx[k].drv[0] == SHM_RX_MAIL)
			shm_mail_release(sq, rx[k].drv[1]);
		else
			slot_release(sq, rx[k].drv[0]);
	}
}

void
shm_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct shm_queue *sq = shm_queue(q);
	uint32_t i;

	if (unlikely(n == 0))
		return;
	i = rx[0].drv[0];
	if (likely(i == rx[n - 1].drv[0] && i != SHM_RX_MAIL)) /* a burst has all messages of a slot
	                                                    * together */
		slot_release(sq, i);
	else
		release_each(sq, rx, n);
}

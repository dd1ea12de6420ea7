/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_rx.c - receiving: acquire-load, copy the descriptor, bound it
 */
#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_prefetch.h>

#include "shm_int.h"

#define RX_MAIL 0xff /* plx_rx.drv[0]: from the mail ring */

/* Relaxed: taking the message reads again, with acquire. */
static inline bool
slot_has(const struct shm_rx_slot *r)
{
	return (uint32_t)atomic_load_explicit(&r->next->head, memory_order_relaxed) == r->seq;
}

/* Cells before pos may be reused. */
static void
slot_publish(struct shm_rx_slot *r, uint64_t pos)
{
	r->large = false;
	if (r->published == pos)
		return;
	r->published = pos;
	/* pairs with the acquire in slot_refresh(): we have read the cells */
	atomic_store_explicit(&r->slot->rx_pos, pos, memory_order_release);
}

/* An invalid cell is counted and skipped. */
static __rte_noinline __rte_cold void
slot_bad(struct shm_queue *sq, uint32_t i, uint16_t got)
{
	struct shm_rx_slot *r = &sq->rx[i];

	PLX_STAT_INC(sq->q->stat.rx_drop_bad_cell);
	shm_slot_at_pos(r, r->pos + 1);
	if (got == 0) /* no earlier message of this burst waits for its release */
		slot_publish(r, r->pos);
}

static __rte_noinline __rte_cold void
slot_idle(struct shm_queue *sq, uint32_t i)
{
	struct shm_rx_slot *r = &sq->rx[i];

	slot_publish(r, r->pos);
	shm_hot_set(sq, sq->hot & ~(1ull << i));
	atomic_store_explicit(&r->slot->cold, 1, memory_order_release);
}

/* The place of a message in the data area. @return whether it is valid */
static inline bool
slot_data(const struct shm_rx_slot *r, const struct shm_cell *cell, uint8_t kind, struct plx_rx *rx)
{
	union shm_ref ref;

	/* once: the sender may still write */
	ref.word = __atomic_load_n((const uint64_t *)cell->body, __ATOMIC_RELAXED);
	if (unlikely(kind != SHM_CELL_DATA || ref.len > SHM_MSG_MAX || ref.off > r->data_len - ref.len))
		return false;
	rx->data = r->data + ref.off;
	rx->len = ref.len;
	rte_prefetch0(rx->data);
	rte_prefetch0(rx->data + 64);
	rte_prefetch0(rx->data + 128);
	rte_prefetch0(rx->data + 192);
	return true;
}

/* Take messages from one slot; rx has room for n. */
static uint16_t
slot_rx(struct shm_queue *sq, uint32_t i, struct plx_rx *rx, uint16_t n)
{
	struct shm_rx_slot *r = &sq->rx[i];
	const struct shm_cell *const cells = r->slot->cells;
	struct plx_peer *peer = r->peer;
	uint64_t pos = r->pos, bytes = 0;
	bool bad = false;
	uint16_t got;

	/* Never a lap ahead of what is released: the sequence number forbids it anyway. */
	for (got = 0; got < n; got++, pos++, rx++) {
		const struct shm_cell *cell = &cells[pos % SHM_CELLS];
		union shm_cell_head head;

		/* pairs with the release in slot_put() */
		head.word = atomic_load_explicit(&cell->head, memory_order_acquire);
		if (head.seq != shm_seq(pos))
			break;
		if (likely(head.kind == SHM_CELL_INLINE && head.len <= SHM_CELL_BODY)) {
			rx->data = cell->body;
			rx->len = head.len;
		} else if (slot_data(r, cell, head.kind, rx)) {
			r->large = true;
		} else {
			bad = true;
			break; /* the next turn continues after it */
		}
		rx->src = peer;
		rx->op = head.op;
		rx->drv[0] = i;
		bytes += rx->len;
		rte_prefetch0(&cells[(pos + 1 + SHM_RX_AHEAD) % SHM_CELLS]);
	}
	shm_slot_at_pos(r, pos);
	if (unlikely(bad))
		slot_bad(sq, i, got);
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
		slot_idle(sq, i);
	return 0;
}

static void
mail_free(struct shm_queue *sq, uint64_t pos)
{
	/* pairs with the acquire in mail_tx(): we have read the body */
	atomic_store_explicit(&sq->seg->mail[pos % SHM_MAIL_CELLS].state,
		SHM_MAIL_STATE(0, pos / SHM_MAIL_CELLS + 1, SHM_MAIL_FREE), memory_order_release);
}

/* One message from the mail ring. */
static __rte_noinline uint16_t
mail_rx(struct shm_queue *sq, struct plx_rx *rx)
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
	rx->drv[0] = RX_MAIL;
	rx->drv[1] = sq->mail_pos % SHM_MAIL_CELLS;
	shm_mail_next(sq);
	PLX_STAT_INC(sq->q->stat.rx_msgs);
	PLX_STAT_ADD(sq->q->stat.rx_bytes, len);
	return 1;
}

/* Slot i has a new sender: identify it. */
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

/* Slots whose doorbell rang, and one cold slot in case a ring was lost. */
static __rte_noinline void
slots_wake(struct shm_queue *sq, uint64_t bells)
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

static inline void
slots_look(struct shm_queue *sq)
{
	uint64_t bells = atomic_load_explicit(&sq->seg->doorbell, memory_order_relaxed);
	uint64_t cold = sq->ready & ~sq->hot;

	if (unlikely(bells != 0)) {
		/* pairs with the release in slot_ring() */
		bells = atomic_exchange_explicit(&sq->seg->doorbell, 0, memory_order_acquire);
		slots_wake(sq, bells);
	}
	if (unlikely(cold != 0)) {
		uint32_t i = sq->next_cold++ & 63;

		if ((cold >> i & 1) == 0)
			return;
		if (slot_has(&sq->rx[i])) {
			atomic_store_explicit(&sq->rx[i].slot->cold, 0, memory_order_relaxed);
			slots_wake(sq, 1ull << i);
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
		got += mail_rx(sq, rx + got);
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
	slot_publish(r, r->pos - 1);
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
	r->pos++;
	r->next++;
	if (unlikely(--r->left == 0))
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
	const struct shm_cell *behind = &r->slot->cells[(r->pos + 1) % SHM_CELLS];

	return (uint32_t)atomic_load_explicit(&behind->head, memory_order_relaxed) == shm_seq(r->pos + 1);
}

/* One message in the data area; a burst is cheaper for several long ones. */
static __rte_noinline enum plx_rx_found
look_at_data(struct plx_queue *q, struct plx_rx *rx, struct shm_rx_slot *r, uint64_t word, const struct shm_cell *cell)
{
	union shm_cell_head head = {.word = word};

	if (unlikely(!slot_data(r, cell, head.kind, rx)))
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
		return unlikely(shm_mail_waits(sq)) ? PLX_RX_BURST : PLX_RX_NONE;
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
		slot_publish(r, r->pos);
}

static void
mail_release(struct shm_queue *sq, uint8_t cell)
{
	uint64_t pos = sq->mail_pos - 1;

	/* the position that this cell index had, at most a lap ago */
	pos -= (pos - cell) % SHM_MAIL_CELLS;
	mail_free(sq, pos);
}

/* Messages of several senders. */
static __rte_noinline void
release_each(struct shm_queue *sq, const struct plx_rx *rx, uint16_t n)
{
	for (uint16_t k = 0; k < n; k++) {
		if (rx[k].drv[0] == RX_MAIL)
			mail_release(sq, rx[k].drv[1]);
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
	if (likely(i == rx[n - 1].drv[0] && i != RX_MAIL)) /* a burst has all messages of a slot
	                                                    * together */
		slot_release(sq, i);
	else
		release_each(sq, rx, n);
}

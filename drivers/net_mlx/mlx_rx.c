/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rx.c - receiving: what came, where it lies, whose it is; slots and credits go back
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_prefetch.h>

#include "mlx_int.h"
#include "mlx_verbs.h"

static __rte_noinline void
slots_post(struct mlx_queue *mq)
{
	struct mlx_hw_rx rx[MLX_RX_FREE];

	for (unsigned i = 0; i < mq->n_free_slots; i++) {
		uint32_t slot = mq->free_slots[i];

		rx[i] = (struct mlx_hw_rx){.addr = (uintptr_t)mlx_bufs_at(&mq->rx_bufs, slot),
			.len = mq->rx_bufs.len, .lkey = mlx_bufs_lkey(&mq->rx_bufs, slot),
			.slot = slot};
	}
	mq->hw->ops->post_rx(mq->hw, rx, mq->n_free_slots);
	mq->n_free_slots = 0;
}

/*
 * Told at once, posted with others, and not while something that came is answered: rx_spare
 * slots more than are granted stand in for it.
 */
static inline void
slot_post(struct mlx_queue *mq, uint32_t slot)
{
	mq->free_slots[mq->n_free_slots++] = slot;
	if (unlikely(mq->n_free_slots == MLX_RX_FREE))
		slots_post(mq);
}

int
mlx_rx_grow(struct mlx_queue *mq, uint32_t granted)
{
	while (mq->n_slots < granted + mq->rx_spare) {
		uint32_t slot = mlx_bufs_get(&mq->rx_bufs);

		if (slot == MLX_NONE)
			return -ENOMEM;
		slot_post(mq, slot);
		mq->n_slots++;
	}
	return 0;
}

/* The slot of a message of p is free: p may be told so. */
static inline void
slot_freed(struct mlx_queue *mq, struct mlx_peer *p)
{
	p->credit.owed++;
	p->rx_held--;
	if (unlikely(mlx_credit_urgent(&p->credit) && !p->owes && p->conn == MLX_CONN_OPEN)) {
		p->owes = true;
		mlx_owes(mq, p);
	}
}

/* The peer ran out of credits: its window grows, up to twice what it was, if slots are left. */
static __rte_noinline void
window_grow(struct mlx_queue *mq, struct mlx_peer *p)
{
	uint16_t n = mlx_credit_more(&p->credit, mq->granted,
		RTE_MIN(mq->rx_budget, mq->rx_room - mq->rx_spare), mq->want);

	if (n == 0 || mlx_rx_grow(mq, mq->granted + n) != 0)
		return;
	mq->granted += n;
	mlx_credit_grow(&p->credit, n);
	PLX_STAT_INC(mq->stat.windows_grown);
}

/* The same, when it may be more than credits that come back. */
static __rte_noinline bool
take_imm_any(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm)
{
	if (unlikely(mlx_credit_told(&p->credit, MLX_IMM_CREDITS(imm),
		    (MLX_IMM_FLAGS(imm) & MLX_IMM_NEW) != 0) != 0)) {
		PLX_STAT_INC(mq->stat.rx_drop_bad_credit);
		mlx_conn_lose(p, -EBADMSG);
		return false;
	}
	if (unlikely(p->conn == MLX_CONN_READY))
		mlx_conn_works(p);
	if (unlikely(MLX_IMM_FLAGS(imm) & MLX_IMM_SHORT))
		window_grow(mq, p);
	if (likely((MLX_IMM_FLAGS(imm) & MLX_IMM_CTL) == 0))
		return true;
	PLX_STAT_INC(mq->stat.rx_credits_only);
	if (MLX_IMM_FLAGS(imm) & MLX_IMM_BYE)
		mlx_conn_bye(p);
	else if (MLX_IMM_FLAGS(imm) & MLX_IMM_PARK)
		mlx_park_told(p);
	return false;
}

/* Something of a peer that lives: what stands beside it. @return whether it is a message */
static inline bool
take_imm(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm)
{
	p->rx_ns = mq->now;
	if (likely(MLX_IMM_FLAGS(imm) == 0 && p->conn != MLX_CONN_READY &&
		    mlx_credit_told(&p->credit, MLX_IMM_CREDITS(imm), false) == 0))
		return true;
	return take_imm_any(mq, p, imm);
}

/* Of nobody, or an error. */
static bool
drop(struct mlx_queue *mq, const struct mlx_hw_comp *comp)
{
	PLX_STAT_INC(mq->stat.rx_drop_no_peer);
	slot_post(mq, comp->slot);
	return false;
}

/* @return whether *rx is a message; else its slot is posted again */
static inline bool
take_slot(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_comp comp, struct plx_rx *rx)
{
	p->rx_held++;
	if (unlikely(!take_imm(mq, p, comp.imm))) {
		slot_post(mq, comp.slot);
		slot_freed(mq, p);
		return false;
	}
	p->used = mq->looks;
	rx->src = &p->peer;
	rx->data = mlx_bufs_at(&mq->rx_bufs, comp.slot);
	rx->len = comp.len;
	rx->op = MLX_IMM_OP(comp.imm);
	rx->drv[0] = (uint8_t)comp.slot;
	rx->drv[1] = (uint8_t)(comp.slot >> 8);
	rx->drv[2] = (uint8_t)(comp.slot >> 16);
	rte_prefetch0(rx->data);
	return true;
}

bool
mlx_rx_accept(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	return p != NULL ? take_slot(mq, p, *comp, rx) : drop(mq, comp);
}

static_assert(offsetof(struct plx_rx, drv) == offsetof(struct plx_rx, op) + 1, "one word");

static inline uint32_t
slot_of(const struct plx_rx *rx)
{
	uint32_t word;

	memcpy(&word, (const uint8_t *)rx + offsetof(struct plx_rx, op), sizeof(word));
	return le32toh(word) >> 8;
}

void
mlx_rx_drop(struct mlx_queue *mq, const struct plx_rx *rx)
{
	slot_post(mq, slot_of(rx));
	slot_freed(mq, mlx_peer(rx->src));
}

void
mlx_rx_placed(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm)
{
	p->rx_held++;
	p->used = mq->looks;
	(void)take_imm(mq, p, imm);
	slot_freed(mq, p);
}

/* Of nobody, an error, or what a device says that matches tags. */
static __rte_noinline bool
take_other(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	return comp->status >= MLX_COMP_TM ? mlx_tm_take(mq, p, comp, rx) : drop(mq, comp);
}

/* One arrival. @return whether *rx is a message; else its slot is posted again */
static inline bool
take(struct mlx_queue *mq, const struct mlx_hw_comp *comp, struct plx_rx *rx)
{
	struct mlx_peer *p = mlx_conn_find(mq, comp->qpn);

	if (unlikely(p == NULL || comp->status != MLX_COMP_OK))
		return take_other(mq, p, comp, rx);
	return take_slot(mq, p, *comp, rx);
}

static __rte_noinline bool
take_other_wc(struct mlx_queue *mq, struct mlx_peer *p, const struct ibv_wc *wc, struct plx_rx *rx)
{
	struct mlx_hw_comp comp = mlx_verbs_arrived(wc);

	return take_other(mq, p, &comp, rx);
}

/* The same. By value, as what has an address is written to memory. */
static inline bool
take_wc(struct mlx_queue *mq, const struct ibv_wc *wc, struct plx_rx *rx)
{
	struct mlx_peer *p = mlx_conn_find(mq, wc->qp_num);

	if (unlikely(p == NULL || wc->status != IBV_WC_SUCCESS))
		return take_other_wc(mq, p, wc, rx);
	return take_slot(mq, p, (struct mlx_hw_comp){.slot = (uint32_t)wc->wr_id, .len = wc->byte_len,
		.imm = ntohl(wc->imm_data)}, rx);
}

/* What hardly ever is there, in one look. */
static inline bool
has_others(const struct mlx_queue *mq)
{
	return (mq->tx_due | (uintptr_t)TAILQ_FIRST(&mq->asking) | (uintptr_t)mq->groups |
		       (uintptr_t)mq->lossy.qp | (uintptr_t)SLIST_FIRST(&mq->lost) |
		       (uintptr_t)SLIST_FIRST(&mq->owes)) != 0;
}

/* Sends that are over, datagrams, the lost, and what is owed. */
static __rte_noinline void
others_poll(struct mlx_queue *mq, uint16_t got)
{
	bool rarely = mq->looks % MLX_UD_EVERY == 0;

	/* What came is waited for, and goes first. What is not signalled only ends with an error. */
	if ((got == 0 || mq->looks % MLX_TX_EVERY == 0) &&
		(mq->tx_due != 0 || (mq->tx_out != 0 && rarely)))
		mlx_tx_poll(mq);
	if (rarely || !TAILQ_EMPTY(&mq->asking))
		mlx_dgrams_poll(mq);
	if (mq->groups != NULL)
		mlx_groups_poll(mq);
	if (mq->lossy.qp != NULL)
		mlx_lossy_poll(mq);
	/* A full burst may have left something of theirs behind. */
	if (!SLIST_EMPTY(&mq->lost) && got == 0)
		mlx_conn_settle(mq);
	if (!mq->q->hold && !SLIST_EMPTY(&mq->owes))
		mlx_flush(mq->q);
}

/* The rest of a burst, after what came. */
static inline void
look_round(struct mlx_queue *mq, uint16_t got)
{
	mq->looks++;
	if (unlikely(got == 0 && mq->n_free_slots >= MLX_RX_BATCH))
		slots_post(mq);
	if (unlikely(has_others(mq) || mq->looks % MLX_UD_EVERY == 0))
		others_poll(mq, got);
}

/* What was found when arming goes first. */
static __rte_noinline __rte_cold uint16_t
kept_take(struct mlx_queue *mq, struct mlx_hw_comp *comp, uint16_t n)
{
	n = RTE_MIN(n, mq->n_kept);
	memcpy(comp, mq->kept, n * sizeof(*comp));
	mq->n_kept -= n;
	memmove(mq->kept, mq->kept + n, mq->n_kept * sizeof(*comp));
	return n;
}

static inline uint16_t
rx_poll(struct mlx_queue *mq, struct mlx_hw_comp *comp, uint16_t n)
{
	if (unlikely(n > MLX_HW_POLL_MAX))
		n = MLX_HW_POLL_MAX;
	return likely(mq->n_kept == 0) ? mq->hw->ops->poll_rx(mq->hw, comp, n)
				       : kept_take(mq, comp, n);
}

bool
mlx_rx_waits(struct mlx_queue *mq)
{
	if (mq->n_kept == 0)
		mq->n_kept = mq->hw->ops->poll_rx(mq->hw, mq->kept, MLX_HW_POLL_MAX);
	return mq->n_kept != 0;
}

/* By any hardware; or of what is kept. */
static __rte_noinline uint16_t
burst_any(struct mlx_queue *mq, struct plx_rx *rx, uint16_t n)
{
	struct mlx_hw_comp comp[MLX_HW_POLL_MAX];
	uint16_t found = rx_poll(mq, comp, n), got = 0;

	for (uint16_t i = 0; i < found; i++)
		got += take(mq, &comp[i], &rx[got]);
	look_round(mq, found);
	return got;
}

/* The rest of a burst that has found what is waited for: what else there is can wait a little. */
static inline void
look_on(struct mlx_queue *mq, uint16_t got)
{
	if (unlikely(++mq->looks % MLX_TX_EVERY == 0))
		others_poll(mq, got);
}

static __rte_noinline uint16_t
take_wcs(struct mlx_queue *mq, const struct ibv_wc *wc, unsigned n, struct plx_rx *rx)
{
	uint16_t got = 0;

	for (unsigned i = 0; i < n; i++) {
		if (take_wc(mq, &wc[i], rx)) {
			rx++;
			got++;
		}
	}
	look_on(mq, n);
	return got;
}

uint16_t
mlx_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	unsigned found;
	uint16_t got;

	if (unlikely(!mq->hw->plain_cq || mq->n_kept != 0))
		return burst_any(mq, rx, n);
	if (unlikely(n > MLX_HW_POLL_MAX))
		n = MLX_HW_POLL_MAX;
	found = mlx_verbs_poll(mq->hw->rx_cq, wc, n);
	if (found == 0) {
		look_round(mq, 0);
		return 0;
	}
	if (found > 1)
		return take_wcs(mq, wc, found, rx);
	got = take_wc(mq, wc, rx);
	look_on(mq, 1);
	return got;
}

static inline void
count_released(struct plx_queue *q, const struct plx_rx *rx)
{
	PLX_STAT_INC(q->stat.rx_msgs);
	PLX_STAT_ADD(q->stat.rx_bytes, rx->len);
}

static __rte_noinline void
release_any(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct mlx_queue *mq = mlx_queue(q);

	for (uint16_t i = 0; i < n; i++) {
		slot_post(mq, slot_of(&rx[i]));
		slot_freed(mq, mlx_peer(rx[i].src));
		count_released(q, &rx[i]);
	}
	if (unlikely(!q->hold && !SLIST_EMPTY(&mq->owes)))
		mlx_flush(q);
}

/* One message, for which neither slots are posted nor credits are told, is all but free. */
void
mlx_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_peer *p = mlx_peer(rx->src);

	if (unlikely(n != 1 || mq->n_free_slots == MLX_RX_FREE - 1 || !SLIST_EMPTY(&mq->owes) ||
		    mlx_credit_urgent_with(&p->credit, 1))) {
		release_any(q, rx, n);
		return;
	}
	mq->free_slots[mq->n_free_slots++] = slot_of(rx);
	p->credit.owed++;
	p->rx_held--;
	count_released(q, rx);
}

void
mlx_rx_drain(struct mlx_queue *mq)
{
	struct mlx_hw_comp comp[MLX_HW_POLL_MAX];
	struct plx_rx rx;
	uint16_t n = rx_poll(mq, comp, MLX_HW_POLL_MAX);

	for (uint16_t i = 0; i < n; i++)
		if (take(mq, &comp[i], &rx)) {
			slot_post(mq, comp[i].slot);
			mlx_peer(rx.src)->rx_held--;
		}
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_slot.h - a slot with a message: its peer, its credits, and how it is freed
 */
#ifndef MLX_SLOT_H
#define MLX_SLOT_H

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "plx_dev.h"

#include "mlx_tx.h"

/** Post the free slots. */
void mlx_slots_post(struct mlx_queue *mq);
/** Make and post slots until total may be granted. @return 0 or -ENOMEM: some may have been made */
int mlx_slots_grow(struct mlx_queue *mq, uint32_t granted);

/**
 * Its credit is returned at once; it is posted with others, and not while an arrival is
 * being answered: rx_spare slots beyond the granted ones replace it.
 */
static inline void
mlx_slot_post(struct mlx_queue *mq, uint32_t slot)
{
	mq->free_slots[mq->n_free_slots++] = slot;
	if (unlikely(mq->n_free_slots == MLX_RX_FREE))
		mlx_slots_post(mq);
}

/** The slot of a message of p is free: its credit may be returned. */
static inline void
mlx_slot_freed(struct mlx_queue *mq, struct mlx_peer *p)
{
	p->link.credit.owed++;
	p->link.rx_held--;
	if (unlikely(plx_credit_urgent(&p->link.credit) && !p->owes && p->link.state == PLX_LINK_OPEN)) {
		p->owes = true;
		mlx_owes(mq, p);
	}
}

/** Slow path of mlx_slot_told(). */
bool mlx_slot_told_any(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm);

/** A sign of life of a peer: process the note with it. @return whether it is a message */
static inline bool
mlx_slot_told(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm)
{
	p->link.rx_ns = mq->link.now_ns;
	if (likely(MLX_IMM_FLAGS(imm) == 0 && p->link.state != PLX_LINK_READY &&
		    plx_credit_told(&p->link.credit, MLX_IMM_CREDITS(imm), false) == 0))
		return true;
	return mlx_slot_told_any(mq, p, imm);
}

static inline void
mlx_slot_set(struct plx_rx *rx, uint32_t slot)
{
	rx->drv[0] = (uint8_t)slot;
	rx->drv[1] = (uint8_t)(slot >> 8);
	rx->drv[2] = (uint8_t)(slot >> 16);
}

static_assert(offsetof(struct plx_rx, drv) == offsetof(struct plx_rx, op) + 1, "one word");

/** @return the slot of a message */
static inline uint32_t
mlx_slot_of(const struct plx_rx *rx)
{
	uint32_t word;

	memcpy(&word, (const uint8_t *)rx + offsetof(struct plx_rx, op), sizeof(word));
	return le32toh(word) >> 8;
}

/** A message. @return whether *rx is a message; else its slot is posted again */
static inline bool
mlx_slot_take(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_comp comp, struct plx_rx *rx)
{
	p->link.rx_held++;
	if (unlikely(!mlx_slot_told(mq, p, comp.imm))) {
		mlx_slot_post(mq, comp.slot);
		mlx_slot_freed(mq, p);
		return false;
	}
	p->link.used_at = mq->link.looks;
	rx->src = &p->peer;
	rx->data = mlx_bufs_at(&mq->rx_bufs, comp.slot);
	rx->len = comp.len;
	rx->op = MLX_IMM_OP(comp.imm);
	mlx_slot_set(rx, comp.slot);
	rte_prefetch0(rx->data);
	return true;
}

/** An arrival without a peer, or an error. @return false */
bool mlx_slot_no_peer(struct mlx_queue *mq, const struct mlx_hw_comp *comp);
/**
 * A message in a slot. @param p NULL: no peer. @return whether *rx is one; else the slot is
 * free
 */
bool mlx_slot_accept(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx);
/** A message is processed. */
static inline void
mlx_slot_count(struct plx_queue *q, const struct plx_rx *rx)
{
	PLX_STAT_INC(q->stat.rx_msgs);
	PLX_STAT_ADD(q->stat.rx_bytes, rx->len);
}

/** Count it, and free its slot. */
void mlx_slot_done(struct mlx_queue *mq, const struct plx_rx *rx);
/** Invalid: free its slot. */
void mlx_slot_drop(struct mlx_queue *mq, const struct plx_rx *rx);
/** A message without a slot has arrived. */
void mlx_slot_placed(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm);

#endif

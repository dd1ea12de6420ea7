/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_slot.c - receive slots: made, posted, and freed
 */
#include <errno.h>

#include "mlx_slot.h"

#define KEEP_SPARES 16u /* at least, when slots are made */

void
mlx_slots_post(struct mlx_queue *mq)
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

/* So that a message can be kept without memory being taken: without it they are copied. */
static void
spares_make(struct mlx_queue *mq)
{
	uint32_t buf;

	if (mq->q->keep_min == 0 || mq->rx_bufs.n_free >= KEEP_SPARES)
		return;
	buf = mlx_bufs_grow(&mq->rx_bufs);
	if (buf != MLX_NONE)
		mlx_bufs_put(&mq->rx_bufs, buf);
}

int
mlx_slots_grow(struct mlx_queue *mq, uint32_t granted)
{
	while (mq->n_slots < granted + mq->rx_spare) {
		uint32_t slot = mlx_bufs_get(&mq->rx_bufs);

		if (slot == MLX_NONE)
			return -ENOMEM;
		mlx_slot_post(mq, slot);
		mq->n_slots++;
	}
	spares_make(mq);
	return 0;
}

/* The peer ran out of credits: its window grows, up to twice what it was, if slots are left. */
static __rte_noinline void
window_grow(struct mlx_queue *mq, struct mlx_peer *p)
{
	uint16_t n = plx_credit_more(&p->link.credit, mq->granted,
		RTE_MIN(mq->rx_budget, mq->rx_room - mq->rx_spare), mq->want);

	if (n == 0 || mlx_slots_grow(mq, mq->granted + n) != 0)
		return;
	mq->granted += n;
	plx_credit_grow(&p->link.credit, n);
	PLX_STAT_INC(mq->stat.windows_grown);
}

bool
mlx_slot_told_any(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm)
{
	if (unlikely(plx_credit_told(&p->link.credit, MLX_IMM_CREDITS(imm),
		    (MLX_IMM_FLAGS(imm) & MLX_IMM_NEW) != 0) != 0)) {
		PLX_STAT_INC(mq->stat.rx_drop_bad_credit);
		plx_link_lose(&p->link, -EBADMSG);
		return false;
	}
	if (unlikely(p->link.state == PLX_LINK_READY))
		plx_link_works(&p->link);
	if (unlikely(MLX_IMM_FLAGS(imm) & MLX_IMM_SHORT))
		window_grow(mq, p);
	if (likely((MLX_IMM_FLAGS(imm) & MLX_IMM_CTL) == 0))
		return true;
	PLX_STAT_INC(mq->stat.rx_credits_only);
	if (MLX_IMM_FLAGS(imm) & MLX_IMM_BYE)
		plx_link_bye(&p->link);
	else if (MLX_IMM_FLAGS(imm) & MLX_IMM_PARK)
		plx_link_park_told(&p->link);
	return false;
}

bool
mlx_slot_no_peer(struct mlx_queue *mq, const struct mlx_hw_comp *comp)
{
	PLX_STAT_INC(mq->stat.rx_drop_no_peer);
	mlx_slot_post(mq, comp->slot);
	return false;
}

bool
mlx_slot_accept(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	return p != NULL ? mlx_slot_take(mq, p, *comp, rx) : mlx_slot_no_peer(mq, comp);
}

void
mlx_slot_drop(struct mlx_queue *mq, const struct plx_rx *rx)
{
	mlx_slot_post(mq, mlx_slot_of(rx));
	mlx_slot_freed(mq, mlx_peer(rx->src));
}

void
mlx_slot_done(struct mlx_queue *mq, const struct plx_rx *rx)
{
	mlx_slot_drop(mq, rx);
	mlx_slot_count(mq->q, rx);
}

void
mlx_slot_placed(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm)
{
	p->link.rx_held++;
	p->link.used_at = mq->link.looks;
	(void)mlx_slot_told(mq, p, imm);
	mlx_slot_freed(mq, p);
}

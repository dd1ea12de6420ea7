/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rx.c - receiving: arrivals and their release, and a queue's other work in a burst
 */
#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "mlx5_int.h"
#include "mlx_conn.h"
#include "mlx_group.h"
#include "mlx_lossy.h"
#include "mlx_rx.h"
#include "mlx_slot.h"
#include "mlx_tm.h"
#include "mlx_verbs.h"

/* Without a peer, an error, or from a device that matches tags. */
static __rte_noinline bool
take_other(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	return comp->status >= MLX_COMP_TM ? mlx_tm_take(mq, p, comp, rx) : mlx_slot_no_peer(mq, comp);
}

/* One arrival. @return whether *rx is a message; else its slot is posted again */
static inline bool
take(struct mlx_queue *mq, const struct mlx_hw_comp *comp, struct plx_rx *rx)
{
	struct mlx_peer *p = mlx_peer_find(mq, comp->qpn);

	if (unlikely(p == NULL || comp->status != MLX_COMP_OK))
		return take_other(mq, p, comp, rx);
	return mlx_slot_take(mq, p, *comp, rx);
}

static __rte_noinline bool
take_other_wc(struct mlx_queue *mq, struct mlx_peer *p, const struct ibv_wc *wc, struct plx_rx *rx)
{
	struct mlx_hw_comp comp = mlx_verbs_arrived(wc);

	return take_other(mq, p, &comp, rx);
}

/* The same. By value, as a variable with an address is written to memory. */
static inline bool
take_wc(struct mlx_queue *mq, const struct ibv_wc *wc, struct plx_rx *rx)
{
	struct mlx_peer *p = mlx_peer_find(mq, wc->qp_num);

	if (unlikely(p == NULL || wc->status != IBV_WC_SUCCESS))
		return take_other_wc(mq, p, wc, rx);
	return mlx_slot_take(mq, p, (struct mlx_hw_comp){.slot = (uint32_t)wc->wr_id, .len = wc->byte_len,
		.imm = ntohl(wc->imm_data)}, rx);
}

/* Rare work, in one check. */
static inline bool
has_others(const struct mlx_queue *mq)
{
	return (mq->tx_due | (uintptr_t)TAILQ_FIRST(&mq->link.asking) | (uintptr_t)mq->groups |
		       (uintptr_t)mq->lossy.qp | (uintptr_t)SLIST_FIRST(&mq->link.lost) |
		       (uintptr_t)SLIST_FIRST(&mq->owes)) != 0;
}

/* Completed sends, datagrams, lost peers, and unreturned credits. */
static __rte_noinline void
others_poll(struct mlx_queue *mq, uint16_t got)
{
	bool rarely = mq->link.looks % MLX_UD_EVERY == 0;

	/* Arrivals have priority. An unsignalled request only completes with an error. */
	if ((got == 0 || mq->link.looks % MLX_TX_EVERY == 0) &&
		(mq->tx_due != 0 || (mq->tx_out != 0 && rarely)))
		mlx_tx_poll(mq);
	if (rarely || !TAILQ_EMPTY(&mq->link.asking))
		mlx_dgrams_poll(mq);
	if (mq->groups != NULL)
		mlx_groups_poll(mq);
	if (mq->lossy.qp != NULL)
		mlx_lossy_poll(mq);
	/* A full burst may have left some of their messages. */
	if (!SLIST_EMPTY(&mq->link.lost) && got == 0)
		plx_link_settle(&mq->link);
	if (!mq->q->hold && !SLIST_EMPTY(&mq->owes))
		mlx_flush(mq->q);
}

/* The remaining work of a burst, after the arrivals. */
static inline void
look_round(struct mlx_queue *mq, uint16_t got)
{
	mq->link.looks++;
	if (unlikely(got == 0 && mq->n_free_slots >= MLX_RX_BATCH))
		mlx_slots_post(mq);
	if (unlikely(has_others(mq) || mq->link.looks % MLX_UD_EVERY == 0))
		others_poll(mq, got);
}

/* Arrivals found when arming go first. */
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

/* By any hardware; or of the stored ones. */
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

/* The remaining work of a burst with arrivals: the rest can wait a little. */
static inline void
look_on(struct mlx_queue *mq, uint16_t got)
{
	if (unlikely(++mq->link.looks % MLX_TX_EVERY == 0))
		others_poll(mq, got);
}

/* The polled completions, in the form of the present implementation. */
union came {
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	struct mlx_hw_comp comp[MLX_HW_POLL_MAX];
};

static __rte_always_inline bool
take_one(struct mlx_queue *mq, const union came *came, unsigned i, struct plx_rx *rx, enum mlx_by by)
{
	return by == MLX_BY_VERBS ? take_wc(mq, &came->wc[i], rx) : take(mq, &came->comp[i], rx);
}

static __rte_noinline uint16_t
take_many(struct mlx_queue *mq, const union came *came, unsigned n, struct plx_rx *rx, enum mlx_by by)
{
	uint16_t got = 0;

	for (unsigned i = 0; i < n; i++) {
		if (take_one(mq, came, i, rx, by)) {
			rx++;
			got++;
		}
	}
	look_on(mq, n);
	return got;
}

static __rte_always_inline uint16_t
burst(struct mlx_queue *mq, struct plx_rx *rx, uint16_t n, enum mlx_by by)
{
	union came came;
	unsigned found;
	uint16_t got;

	if (unlikely((by == MLX_BY_VERBS && !mq->hw->plain_cq) || mq->n_kept != 0))
		return burst_any(mq, rx, n);
	if (unlikely(n > MLX_HW_POLL_MAX))
		n = MLX_HW_POLL_MAX;
	found = by == MLX_BY_VERBS ? mlx_verbs_poll(mq->hw->rx_cq, came.wc, n)
				   : mlx5_poll_rx(mq->hw, came.comp, n);
	if (found == 0) {
		look_round(mq, 0);
		return 0;
	}
	if (found > 1)
		return take_many(mq, &came, found, rx, by);
	got = take_one(mq, &came, 0, rx, by);
	look_on(mq, 1);
	return got;
}

uint16_t
mlx_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	return burst(mlx_queue(q), rx, n, MLX_BY_VERBS);
}

uint16_t
mlx_rx_burst_mlx5(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	return burst(mlx_queue(q), rx, n, MLX_BY_MLX5);
}

uint16_t
mlx_rx_burst_tags(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	uint16_t got = mlx_rx_burst(q, rx, n);

	mlx_tm_work(mlx_queue(q));
	return got;
}

static __rte_noinline void
release_any(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct mlx_queue *mq = mlx_queue(q);

	for (uint16_t i = 0; i < n; i++)
		mlx_slot_done(mq, &rx[i]);
	if (unlikely(!q->hold && !SLIST_EMPTY(&mq->owes)))
		mlx_flush(q);
}

/* All but the final steps of freeing one message, without posting slots or returning credits. */
void
mlx_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_peer *p = mlx_peer(rx->src);

	if (unlikely(n != 1 || mq->n_free_slots == MLX_RX_FREE - 1 || !SLIST_EMPTY(&mq->owes) ||
		    plx_credit_urgent_with(&p->link.credit, 1))) {
		release_any(q, rx, n);
		return;
	}
	mq->free_slots[mq->n_free_slots++] = mlx_slot_of(rx);
	p->link.credit.owed++;
	p->link.rx_held--;
	mlx_slot_count(q, rx);
}

/* Another slot is free in its place, when the message is released. */
void *
mlx_rx_keep(struct plx_queue *q, struct plx_rx *rx)
{
	struct mlx_queue *mq = mlx_queue(q);
	uint32_t slot = mlx_slot_of(rx);

	if (mq->rx_bufs.n_free == 0)
		return NULL;
	mlx_slot_set(rx, mlx_bufs_get(&mq->rx_bufs));
	return (void *)(uintptr_t)(slot + 1); /* not NULL */
}

void
mlx_rx_give_back(struct plx_queue *q, void *kept)
{
	mlx_bufs_put(&mlx_queue(q)->rx_bufs, (uint32_t)(uintptr_t)kept - 1);
}

void
mlx_rx_drain(struct mlx_queue *mq)
{
	struct mlx_hw_comp comp[MLX_HW_POLL_MAX];
	struct plx_rx rx;
	uint16_t n = rx_poll(mq, comp, MLX_HW_POLL_MAX);

	for (uint16_t i = 0; i < n; i++)
		if (take(mq, &comp[i], &rx)) {
			mlx_slot_post(mq, comp[i].slot);
			mlx_peer(rx.src)->link.rx_held--;
		}
}

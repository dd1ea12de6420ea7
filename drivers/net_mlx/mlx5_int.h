/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_int.h - the queues of an mlx5 device as we drive them
 *
 * Design notes
 * - Everything here works on memory that the device also reads and writes: mlx5.c gets its
 *   address from libmlx5, test/mlx5_model.c allocates it.
 * - The send queue of a queue pair is a ring of blocks of 64 bytes; pi and ci count them modulo
 *   2^16 and the device names an entry by its first. The shared receive queue is a list through
 *   its entries: we take free ones at its head, the device returns them in any order and they are
 *   linked at the tail, where one always stays. A completion is ours when its owner bit says so,
 *   and is not read again once ci is past it.
 */
#ifndef MLX5_INT_H
#define MLX5_INT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "plx_assert.h"

#include "mlx5_wqe.h"
#include "mlx_hw.h"

#define MLX5_QP_HASH	512 /* lists over which the queue pairs of a queue are spread */
#define MLX5_QPN_NONE	0u  /* in a completion whose queue pair is closed */
#define MLX5_SQ_MAX	32768u /* blocks, so that 16 bits distinguish old from new */

/** A doorbell register; all queue pairs of a thread domain share one. */
struct mlx5_bf {
	uint8_t *reg;
	uint32_t size; /* of each of its two halves, 0: it takes doorbells only */
	uint32_t off;  /* of the half written next */
};

/** Our record of the entry that begins at a block of a send queue. */
struct mlx5_sent {
	uint16_t seq;	 /* number of the request */
	uint8_t blocks;	 /* it takes; 0: none begins here */
};

struct mlx5_qp {
	struct mlx_hw_qp base;
	/* send queue; owner thread */
	alignas(PLX_LINE) uint8_t *sq;
	struct mlx5_sent *sent;	     /* by block */
	struct mlx5_bf *bf;
	_Atomic rte_be32_t *dbrec;   /* shows pi to the device */
	uint32_t mask;		     /* blocks - 1 */
	uint16_t pi, ci;	     /* next block; blocks before ci are free */
	uint16_t rung;		     /* pi at the last doorbell */
	uint16_t last;		     /* block of the newest entry */
	uint16_t signal_end;	     /* pi after the newest entry with MLX_WR_SIGNAL */
	uint16_t n_staged;	     /* entries since the last doorbell */
	/* cold */
	struct mlx5_bf bf_plain;     /* its own, when it has one */
	uint16_t ci_checked;	     /* ci at the last mlx5_check() */
	bool stuck;		     /* it had not advanced then */
	LIST_ENTRY(mlx5_qp) link;
};

struct mlx5_cq {
	uint8_t *buf;		     /* the first completion's mlx5_cqe64 */
	_Atomic rte_be32_t *dbrec;
	void *uar;
	uint32_t ci;
	uint32_t n;		     /* completions; a power of two */
	uint32_t shift;		     /* of their distance */
	uint32_t cqn;
	uint32_t arm_n;		     /* events so far */
};

/** The buffer of an entry of the shared receive queue; len 0: none. */
struct mlx5_slot {
	uint32_t slot;
	uint32_t len;
};

struct mlx5_srq {
	uint8_t *buf;
	struct mlx5_slot *slots;
	_Atomic rte_be32_t *dbrec;
	uint32_t n;		     /* entries */
	uint32_t stride;	     /* bytes */
	uint16_t head, tail;	     /* of the free ones */
	uint16_t count;		     /* posted so far */
};

/** The hardware of a queue. Owner: the queue's. */
struct mlx5_hw {
	struct mlx_hw base;
	struct mlx5_cq tx, rx;
	struct mlx5_srq srq;
	struct mlx5_qp *last_qp;     /* the last completion's */
	LIST_HEAD(, mlx5_qp) qps[MLX5_QP_HASH]; /* by number */
	struct mlx5_bf bf;	     /* of the thread domain */
	bool own_uar;		     /* the thread domain exists */
	/* cold; mlx5.c */
	struct ibv_td *td;
	struct ibv_pd *pd;	     /* that queue pairs are made in */
};

/** The used functions of libmlx5; NULL until it was loaded. */
struct mlx5_glue {
	bool (*is_supported)(struct ibv_device *device);
	int (*init_obj)(struct mlx5dv_obj *obj, uint64_t obj_type);
};

extern struct mlx5_glue mlx5_glue;

/** The objects to drive; as mlx5dv_init_obj() fills it in. */
struct mlx5_hw_obj {
	struct mlx5dv_cq tx, rx;
	struct mlx5dv_srq srq;
};

/** Take over the queues of obj, all fresh. Errors: -ENOMEM; -EINVAL they are invalid. */
int mlx5_hw_init(struct mlx5_hw *hw, const struct mlx5_hw_obj *obj);
/** All queue pairs are closed. */
void mlx5_hw_fini(struct mlx5_hw *hw);

/**
 * Take over the send queue of a fresh queue pair.
 * @param qp base.qpn, base.max_wr, base.max_inline are set, all else is zero
 * Errors: -ENOMEM; -EINVAL its queue is too short for these.
 */
int mlx5_qp_init(struct mlx5_hw *hw, struct mlx5_qp *qp, const struct mlx5dv_qp *obj);
/** The queue pair has been destroyed; its unread completions will name no queue pair. */
void mlx5_qp_fini(struct mlx5_qp *qp);
/** mlx5_check() of one queue pair. */
void mlx5_qp_check(struct mlx5_qp *qp);

/** Errors: -EINVAL no such completion queue exists. */
int mlx5_cq_init(struct mlx5_cq *cq, const struct mlx5dv_cq *obj);
/** The event that it was armed for has come. */
static inline void
mlx5_cq_event(struct mlx5_cq *cq)
{
	cq->arm_n++;
}

/** Unread completions of this queue pair name none any more: its number may be reused. */
void mlx5_cq_forget(struct mlx5_cq *cq, uint32_t qpn);

/** Errors: -ENOMEM, -EINVAL. */
int mlx5_srq_init(struct mlx5_srq *srq, const struct mlx5dv_srq *obj);
void mlx5_srq_post(struct mlx5_srq *srq, const struct mlx_hw_rx *rx, uint16_t n);

/** An entry: the link, then where the bytes go. */
struct mlx5_srq_entry {
	struct mlx5_wqe_srq_next_seg next;
	struct mlx5_seg data;
	struct mlx5_seg end; /* only when there is room for more than one segment */
};

static inline struct mlx5_srq_entry *
mlx5_srq_at(const struct mlx5_srq *srq, uint16_t index)
{
	return (struct mlx5_srq_entry *)(srq->buf + (size_t)index * srq->stride);
}

/** Return a used entry. @return false: it was not the device's */
static inline bool
mlx5_srq_take(struct mlx5_srq *srq, uint16_t index, struct mlx5_slot *slot)
{
	if (unlikely(index >= srq->n || srq->slots[index].len == 0))
		return false;
	*slot = srq->slots[index];
	srq->slots[index].len = 0;
	mlx5_srq_at(srq, srq->tail)->next.next_wqe_index = rte_cpu_to_be_16(index);
	srq->tail = index;
	return true;
}

/** The address for the bytes of an entry that the device left in a completion. */
static inline void *
mlx5_srq_addr(const struct mlx5_srq *srq, uint16_t index)
{
	return (void *)(uintptr_t)rte_be_to_cpu_64(mlx5_srq_at(srq, index)->data.w[1]);
}

/* Hooks of struct mlx_hw_ops. */
void mlx5_post(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, uint16_t n);
void mlx5_post_gather(struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr, const struct ibv_sge *sge);
int mlx5_ring(struct mlx_hw_qp *qp);
uint16_t mlx5_poll_tx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);
uint16_t mlx5_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n);
int mlx5_arm(struct mlx_hw *hw);
void mlx5_check(struct mlx_hw *hw);

static inline struct mlx5_hw *
mlx5_hw(struct mlx_hw *hw)
{
	return (struct mlx5_hw *)hw;
}

static inline struct mlx5_qp *
mlx5_qp(struct mlx_hw_qp *qp)
{
	return (struct mlx5_qp *)qp;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_srq.c - the shared receive queue: a list through its entries
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_io.h>

#include "mlx5_int.h"

#define SRQ_MAX 65536u /* entries that 16 bits name */

/* An entry: the link, then where the bytes go. */
struct srq_entry {
	struct mlx5_wqe_srq_next_seg next;
	struct mlx5_seg data;
	struct mlx5_seg end; /* only when there is room for more than one segment */
};

static inline struct srq_entry *
entry_at(const struct mlx5_srq *srq, uint16_t index)
{
	return (struct srq_entry *)(srq->buf + (size_t)index * srq->stride);
}

void
mlx5_srq_post(struct mlx5_srq *srq, const struct mlx_hw_rx *rx, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint16_t index = srq->head;
		struct srq_entry *e = entry_at(srq, index);

		PLX_ASSERT(index != srq->tail && rx[i].len != 0);
		mlx5_put_data(&e->data, rx[i].len, rx[i].lkey, rx[i].addr);
		srq->slots[index] = (struct mlx5_slot){.slot = rx[i].slot, .len = rx[i].len};
		srq->head = rte_be_to_cpu_16(e->next.next_wqe_index);
	}
	srq->count += n;
	rte_io_wmb(); /* the entries before the record */
	/* the device reads this; the barrier orders it */
	atomic_store_explicit(srq->dbrec, rte_cpu_to_be_32(srq->count), memory_order_relaxed);
}

bool
mlx5_srq_take(struct mlx5_srq *srq, uint16_t index, struct mlx5_slot *slot)
{
	if (unlikely(index >= srq->n || srq->slots[index].len == 0))
		return false;
	*slot = srq->slots[index];
	srq->slots[index].len = 0;
	entry_at(srq, srq->tail)->next.next_wqe_index = rte_cpu_to_be_16(index);
	srq->tail = index;
	return true;
}

void *
mlx5_srq_addr(const struct mlx5_srq *srq, uint16_t index)
{
	return (void *)(uintptr_t)rte_be_to_cpu_64(entry_at(srq, index)->data.w[1]);
}

int
mlx5_srq_init(struct mlx5_srq *srq, const struct mlx5dv_srq *obj)
{
	if (obj->head >= obj->tail || obj->tail >= SRQ_MAX ||
		obj->stride < offsetof(struct srq_entry, end))
		return -EINVAL;
	srq->n = obj->tail + 1;
	srq->slots = calloc(srq->n, sizeof(*srq->slots));
	if (srq->slots == NULL)
		return -ENOMEM;
	srq->buf = obj->buf;
	srq->dbrec = (_Atomic rte_be32_t *)obj->dbrec;
	srq->stride = obj->stride;
	srq->head = obj->head;
	srq->tail = obj->tail;
	if (srq->stride >= sizeof(struct srq_entry))
		for (uint32_t i = 0; i < srq->n; i++)
			mlx5_put_data(&entry_at(srq, i)->end, 0, MLX5_INVALID_LKEY, 0);
	return 0;
}

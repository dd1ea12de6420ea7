/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_srq.c - the shared receive queue: a list through its entries
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_io.h>

#include "mlx5_int.h"

#define SRQ_MAX 65536u /* entries that 16 bits name */

void
mlx5_srq_post(struct mlx5_srq *srq, const struct mlx_hw_rx *rx, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint16_t index = srq->head;
		struct mlx5_srq_entry *e = mlx5_srq_at(srq, index);

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

int
mlx5_srq_init(struct mlx5_srq *srq, const struct mlx5dv_srq *obj)
{
	if (obj->head >= obj->tail || obj->tail >= SRQ_MAX ||
		obj->stride < offsetof(struct mlx5_srq_entry, end))
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
	if (srq->stride >= sizeof(struct mlx5_srq_entry))
		for (uint32_t i = 0; i < srq->n; i++)
			mlx5_put_data(&mlx5_srq_at(srq, i)->end, 0, MLX5_INVALID_LKEY, 0);
	return 0;
}

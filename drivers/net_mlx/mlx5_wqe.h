/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_wqe.h - work queue entries of mlx5 devices, as two words of 8 bytes a segment
 *
 * Design notes
 * - The formats are those of <infiniband/mlx5dv.h>; test/mlx5_wqe_test.c compares every byte with
 *   rdma-core's own builders. All segments except inline data are 16 bytes long and big-endian,
 *   so each is two stores.
 * - An entry begins on a block of 64 bytes and may continue at the start of the queue after its
 *   end.
 */
#ifndef MLX5_WQE_H
#define MLX5_WQE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include <infiniband/mlx5dv.h>

#define MLX5_BLOCK	64u /* bytes; queue pairs count in these */
#define MLX5_DS_MAX	63u /* segments of an entry */
#define MLX5_INLINE_HDR 4u  /* bytes before inline data */

struct mlx5_seg {
	rte_be64_t w[2];
};

_Static_assert(sizeof(struct mlx5_seg) == 16, "wire layout");
_Static_assert(MLX5_BLOCK == MLX5_SEND_WQE_BB, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_ctrl_seg, qpn_ds) == 4, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_ctrl_seg, fm_ce_se) == 11, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_ctrl_seg, imm) == 12, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_raddr_seg, rkey) == 8, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_data_seg, lkey) == 4, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_data_seg, addr) == 8, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_atomic_seg, compare) == 8, "wire layout");
_Static_assert(offsetof(struct mlx5_wqe_srq_next_seg, next_wqe_index) == 2, "wire layout");
_Static_assert(offsetof(struct mlx5_cqe64, imm_inval_pkey) == 36, "wire layout");
_Static_assert(offsetof(struct mlx5_cqe64, byte_cnt) == 44, "wire layout");
_Static_assert(offsetof(struct mlx5_cqe64, sop_drop_qpn) == 56, "wire layout");
_Static_assert(offsetof(struct mlx5_cqe64, wqe_counter) == 60, "wire layout");
_Static_assert(offsetof(struct mlx5_cqe64, op_own) == 63, "wire layout");
_Static_assert(sizeof(struct mlx5_cqe64) == 64, "wire layout");
_Static_assert(offsetof(struct mlx5_err_cqe, vendor_err_synd) == 54, "wire layout");
_Static_assert(offsetof(struct mlx5_err_cqe, syndrome) == 55, "wire layout");

static inline void
mlx5_seg_put(struct mlx5_seg *seg, uint64_t w0, uint64_t w1)
{
	seg->w[0] = rte_cpu_to_be_64(w0);
	seg->w[1] = rte_cpu_to_be_64(w1);
}

/** @param pi block at which the entry begins, counted without wrap; ds segments it has */
static inline void
mlx5_put_ctrl(struct mlx5_seg *seg, uint16_t pi, uint8_t opcode, uint32_t qpn, uint8_t ds,
	uint8_t fm_ce_se, uint32_t imm)
{
	mlx5_seg_put(seg, (uint64_t)pi << 40 | (uint64_t)opcode << 32 | (uint64_t)qpn << 8 | ds,
		(uint64_t)fm_ce_se << 32 | imm);
}

static inline void
mlx5_put_raddr(struct mlx5_seg *seg, uint64_t remote, uint32_t rkey)
{
	mlx5_seg_put(seg, remote, (uint64_t)rkey << 32);
}

static inline void
mlx5_put_atomic(struct mlx5_seg *seg, uint64_t swap_add, uint64_t compare)
{
	mlx5_seg_put(seg, swap_add, compare);
}

/** @param len not 0, which means 2 GiB to the device */
static inline void
mlx5_put_data(struct mlx5_seg *seg, uint32_t len, uint32_t lkey, uint64_t addr)
{
	mlx5_seg_put(seg, (uint64_t)len << 32 | lkey, addr);
}

/** Segments that len bytes of inline data take. */
static inline unsigned
mlx5_inline_ds(uint32_t len)
{
	return (MLX5_INLINE_HDR + len + 15) / 16;
}

/** Write inline data at `to`; bytes beyond end continue at start. */
static inline void
mlx5_put_inline(void *to, void *start, void *end, const void *data, uint32_t len)
{
	rte_be32_t head = rte_cpu_to_be_32(len | MLX5_INLINE_SEG);
	uint8_t *p = (uint8_t *)to + MLX5_INLINE_HDR;
	uint32_t room = (uint8_t *)end - p;

	memcpy(to, &head, sizeof(head));
	if (likely(len <= room)) {
		memcpy(p, data, len);
	} else {
		memcpy(p, data, room);
		memcpy(start, (const uint8_t *)data + room, len - room);
	}
}

#endif

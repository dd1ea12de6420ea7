/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_wqe_test.c - our entries are, byte for byte, those of rdma-core's own builders
 */
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "mlx5_rig.h"

#define ROUNDS 20000

static uint64_t rng;

static uint64_t
rnd(void)
{
	return unit_rng(&rng);
}

static void
control_segment_is_rdma_cores(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint16_t pi = rnd();
		uint32_t qpn = rnd() & 0xffffff, imm = rnd();
		uint8_t opcode = rnd(), mode = rnd(), ds = rnd() & 0x3f;
		struct mlx5_wqe_ctrl_seg want;
		struct mlx5_seg got;

		memset(&want, 0, sizeof(want));
		mlx5dv_set_ctrl_seg(&want, pi, opcode, 0, qpn, mode, ds, 0, htobe32(imm));
		mlx5_put_ctrl(&got, pi, opcode, qpn, ds, mode, imm);
		if (!UNIT_SAME(&got, &want, sizeof(got)))
			return;
	}
}

static void
data_segment_is_rdma_cores(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t len = rnd() & 0x7fffffff, lkey = rnd();
		uint64_t addr = rnd();
		struct mlx5_wqe_data_seg want;
		struct mlx5_seg got;

		mlx5dv_set_data_seg(&want, len, lkey, addr);
		mlx5_put_data(&got, len, lkey, addr);
		if (!UNIT_SAME(&got, &want, sizeof(got)))
			return;
	}
}

static void
remote_and_atomic_segments_are_the_headers(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t a = rnd(), b = rnd();
		struct mlx5_wqe_raddr_seg raddr = {htobe64(a), htobe32((uint32_t)b), 0};
		struct mlx5_wqe_atomic_seg atomic = {htobe64(a), htobe64(b)};
		struct mlx5_seg got;

		mlx5_put_raddr(&got, a, b);
		if (!UNIT_SAME(&got, &raddr, sizeof(got)))
			return;
		mlx5_put_atomic(&got, a, b);
		if (!UNIT_SAME(&got, &atomic, sizeof(got)))
			return;
	}
}

/* What an entry should be, by rdma-core's builders; @return its blocks */
static unsigned
entry_want(uint8_t *to, const struct mlx_hw_wr *wr, uint16_t pi, uint32_t qpn)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_RDMA_WRITE,
		MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_CS};
	uint8_t *p = to + sizeof(struct mlx5_wqe_ctrl_seg);
	uint8_t mode = 0;

	if (wr->op != MLX_WR_SEND) {
		struct mlx5_wqe_raddr_seg raddr = {htobe64(wr->remote), htobe32(wr->rkey), 0};

		memcpy(p, &raddr, sizeof(raddr));
		p += sizeof(raddr);
	}
	if (wr->op >= MLX_WR_FADD) {
		bool add = wr->op == MLX_WR_FADD;
		struct mlx5_wqe_atomic_seg atomic = {htobe64(wr->operand[add ? 0 : 1]),
			htobe64(add ? 0 : wr->operand[0])};

		memcpy(p, &atomic, sizeof(atomic));
		p += sizeof(atomic);
	}
	if (wr->len != 0 && wr->flags & MLX_WR_INLINE) {
		struct mlx5_wqe_inl_data_seg inl = {htobe32(wr->len | MLX5_INLINE_SEG)};

		memcpy(p, &inl, sizeof(inl));
		memcpy(p + sizeof(inl), (const void *)(uintptr_t)wr->addr, wr->len);
		p += (sizeof(inl) + wr->len + 15) / 16 * 16;
	} else if (wr->len != 0) {
		mlx5dv_set_data_seg((void *)p, wr->len, wr->lkey, wr->addr);
		p += sizeof(struct mlx5_wqe_data_seg);
	}
	if (wr->flags & MLX_WR_SIGNAL)
		mode |= MLX5_WQE_CTRL_CQ_UPDATE;
	if (wr->flags & MLX_WR_FENCE)
		mode |= MLX5_WQE_CTRL_FENCE;
	mlx5dv_set_ctrl_seg((void *)to, pi, opcodes[wr->op], 0, qpn, mode, (p - to) / 16, 0,
		wr->op == MLX_WR_SEND ? htobe32(wr->imm) : 0);
	return (p - to + MLX5_BLOCK - 1) / MLX5_BLOCK;
}

static struct mlx_hw_wr
wr_random(const uint8_t *data, uint32_t max_inline)
{
	struct mlx_hw_wr wr = {.op = rnd() % 5, .imm = rnd(), .lkey = rnd(), .remote = rnd(),
		.rkey = rnd(), .operand = {rnd(), rnd()}, .addr = (uintptr_t)data};

	wr.flags = rnd() & (MLX_WR_SIGNAL | MLX_WR_FENCE);
	if (wr.op <= MLX_WR_WRITE && rnd() % 2 == 0)
		wr.flags |= MLX_WR_INLINE;
	wr.len = wr.op >= MLX_WR_FADD ? 8 : rnd() % (max_inline + 1);
	return wr;
}

/* Every kind, every length of inline data, from every block of the queue, over its end too. */
static void
whole_entries_are_rdma_cores(void)
{
	uint8_t data[256], want[MLX5_DS_MAX * 16 + MLX5_BLOCK], got[sizeof(want)];
	struct rig_conf conf = rig_plain;
	struct mlx5_qp *qp[2];
	struct rig r;

	conf.max_inline = 220;
	rig_open(&r, &conf);
	rig_pair(&r, qp);
	unit_fill(data, sizeof(data), 7);
	for (int i = 0; i < ROUNDS * 5; i++) {
		struct mlx_hw_wr wr = wr_random(data, conf.max_inline);
		uint16_t pi = qp[0]->pi;
		unsigned blocks;

		memset(want, 0, sizeof(want));
		for (uint32_t b = 0; b < 8; b++) /* padding is whatever was there */
			memset(qp[0]->sq + ((pi + b) & qp[0]->mask) * MLX5_BLOCK, 0, MLX5_BLOCK);
		mlx5_post(&qp[0]->base, &wr, 1);
		blocks = entry_want(want, &wr, pi, qp[0]->base.qpn);
		for (unsigned b = 0; b < blocks; b++)
			memcpy(got + b * MLX5_BLOCK, qp[0]->sq + ((pi + b) & qp[0]->mask) * MLX5_BLOCK,
				MLX5_BLOCK);
		if (!UNIT_EQ((uint16_t)(qp[0]->pi - pi), blocks) ||
			!UNIT_SAME(got, want, blocks * MLX5_BLOCK))
			break;
		qp[0]->ci = qp[0]->pi;
	}
	rig_close(&r);
}

static void
receive_entries_are_rdma_cores(void)
{
	struct rig r;

	rig_open(&r, &rig_plain); /* which posts them */
	for (unsigned i = 0; i < RIG_SLOTS; i++) {
		struct rig_node *n = &r.node[0];
		const uint8_t *at = n->hw->srq.buf + i * 32;
		struct mlx5_wqe_data_seg want;

		mlx5dv_set_data_seg(&want, RIG_SLOT_LEN, n->slots_key,
			(uintptr_t)(n->slots + i * RIG_SLOT_LEN));
		UNIT_SAME(at + 16, &want, sizeof(want));
		UNIT_EQ(be16toh(((const struct mlx5_wqe_srq_next_seg *)at)->next_wqe_index), i + 1);
	}
	UNIT_EQ(be32toh(*(uint32_t *)r.node[0].hw->srq.dbrec), RIG_SLOTS);
	rig_close(&r);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(control_segment_is_rdma_cores),
	UNIT_TEST(data_segment_is_rdma_cores),
	UNIT_TEST(remote_and_atomic_segments_are_the_headers),
	UNIT_TEST(whole_entries_are_rdma_cores),
	UNIT_TEST(receive_entries_are_rdma_cores),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx5 layouts", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	rng = unit_seed(20261);
	return unit_run(suites);
}

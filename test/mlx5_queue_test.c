/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_queue_test.c - the mlx5 direct way, step by step, on the model of the device
 */
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "mlx5_rig.h"

static struct rig rig;
static struct mlx5_qp *qp[2];

static void
start(const struct rig_conf *conf)
{
	rig_open(&rig, conf);
	rig_pair(&rig, qp);
}

/* len bytes at the beginning of node 0's memory, filled by key */
static struct mlx_hw_wr
wr_of(uint8_t op, uint32_t len, uint64_t key)
{
	struct rig_node *n = rig.node;

	unit_fill(n[0].mem, len, key);
	return (struct mlx_hw_wr){.op = op, .flags = MLX_WR_SIGNAL, .imm = key,
		.addr = (uintptr_t)n[0].mem, .len = len, .lkey = n[0].mem_key,
		.remote = (uintptr_t)n[1].mem, .rkey = n[1].mem_key};
}

/* @return the status of the only completion at node 0, or -1 */
static int
sent(uint16_t seq)
{
	struct mlx_hw_comp c[2];

	mlx5_model_run(rig.m);
	if (mlx5_poll_tx(&rig.node[0].hw->base, c, 2) != 1)
		return -1;
	UNIT_EQ(c[0].qpn, qp[0]->base.qpn);
	UNIT_EQ(c[0].seq, seq);
	UNIT_TRUE(c[0].status == MLX_COMP_OK || (c[0].vendor & 0x80) != 0);
	return c[0].status;
}

/* A message of len bytes filled by key is what has arrived at node 1; its slot is posted again. */
static void
arrived(uint32_t len, uint64_t key)
{
	struct mlx_hw_comp c[2];

	UNIT_EQ_FATAL(mlx5_poll_rx(&rig.node[1].hw->base, c, 2), 1);
	UNIT_EQ(c[0].status, MLX_COMP_OK);
	UNIT_EQ(c[0].qpn, qp[1]->base.qpn);
	UNIT_EQ(c[0].len, len);
	UNIT_EQ(c[0].imm, (uint32_t)key);
	UNIT_TRUE(unit_is_filled(rig.node[1].slots + c[0].slot * RIG_SLOT_LEN, len, key));
	rig_post_rx(&rig, 1, c[0].slot);
}

static void
send_of_every_length(const struct rig_conf *conf, uint8_t flags)
{
	uint32_t max = flags & MLX_WR_INLINE ? conf->max_inline : RIG_SLOT_LEN;

	start(conf);
	for (uint32_t len = 0; len <= max; len++) {
		struct mlx_hw_wr wr = wr_of(MLX_WR_SEND, len, len + 1000);

		wr.flags |= flags;
		rig_send(&rig, qp[0], &wr);
		UNIT_EQ(sent(len), MLX_COMP_OK);
		arrived(len, len + 1000);
	}
}

static void
sends_arrive_as_they_were(void)
{
	send_of_every_length(&rig_plain, 0);
	UNIT_TRUE(rig.stat->inline_rx > 0);
	rig_close(&rig);
}

static void
inline_sends_arrive_as_they_were(void)
{
	send_of_every_length(&rig_plain, MLX_WR_INLINE);
	UNIT_TRUE(rig.stat->blueflames > 0);
	UNIT_EQ(rig.stat->doorbells, 0);
	rig_close(&rig);
}

/* 64 bytes come inside of a completion of 128, before its second half. */
static void
long_completions_hold_64_bytes(void)
{
	struct rig_conf conf = rig_plain;

	conf.cqe_size = 128;
	conf.srq_stride = 64;
	send_of_every_length(&conf, 0);
	UNIT_TRUE(rig.stat->inline_rx > 32);
	rig_close(&rig);
}

static void
without_blueflame_doorbells_do(void)
{
	struct rig_conf conf = rig_plain;

	conf.bf_size = 0;
	send_of_every_length(&conf, MLX_WR_INLINE);
	UNIT_EQ(rig.stat->blueflames, 0);
	UNIT_EQ(rig.stat->doorbells, conf.max_inline + 1);
	rig_close(&rig);
}

/* A register that other threads may write to takes nothing longer than a doorbell. */
static void
shared_registers_take_doorbells_only(void)
{
	struct rig_conf conf = rig_plain;

	conf.own_uar = false;
	send_of_every_length(&conf, MLX_WR_INLINE);
	UNIT_EQ(rig.stat->blueflames, 0);
	rig_close(&rig);
}

static void
one_doorbell_shows_many(void)
{
	struct mlx_hw_comp c[8];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 40, 5);
	wr.flags = 0;
	for (int i = 0; i < 5; i++)
		mlx5_post(&qp[0]->base, &wr, 1);
	wr.flags = MLX_WR_SIGNAL;
	mlx5_post(&qp[0]->base, &wr, 1);
	mlx5_model_run(rig.m);
	UNIT_EQ(mlx5_poll_rx(&rig.node[1].hw->base, c, 8), 0); /* not rung */
	rig_ring(&rig, qp[0]);
	rig_ring(&rig, qp[0]); /* nothing new: nothing happens */
	UNIT_EQ(rig.stat->doorbells, 1);
	UNIT_EQ(sent(5), MLX_COMP_OK); /* stands for all before it */
	UNIT_EQ(mlx5_poll_rx(&rig.node[1].hw->base, c, 8), 6);
	rig_close(&rig);
}

static void
write_and_read_move_bytes(void)
{
	struct mlx_hw_wr wr;
	uint16_t seq = 0;

	start(&rig_plain);
	for (uint32_t len = 1; len < 200; len += 7) {
		wr = wr_of(MLX_WR_WRITE, len, len);
		wr.flags |= len <= 128 && len % 2 == 0 ? MLX_WR_INLINE : 0;
		rig_send(&rig, qp[0], &wr);
		UNIT_EQ(sent(seq++), MLX_COMP_OK);
		UNIT_TRUE(unit_is_filled(rig.node[1].mem, len, len));
		memset(rig.node[0].mem, 0, len);
		wr.op = MLX_WR_READ;
		wr.flags = MLX_WR_SIGNAL;
		rig_send(&rig, qp[0], &wr);
		UNIT_EQ(sent(seq++), MLX_COMP_OK);
		UNIT_TRUE(unit_is_filled(rig.node[0].mem, len, len));
	}
	UNIT_TRUE(rig.stat->inline_tx > 0); /* short ones came inside of the completion */
	rig_close(&rig);
}

static void
atomics_give_the_value_before(void)
{
	uint64_t word = 40, old;
	struct mlx_hw_wr wr;

	start(&rig_plain);
	memcpy(rig.node[1].mem, &word, 8);
	wr = wr_of(MLX_WR_FADD, 8, 0);
	for (uint16_t i = 0; i < 20; i++) {
		wr.operand[0] = 2;
		rig_send(&rig, qp[0], &wr);
		UNIT_EQ(sent(i), MLX_COMP_OK);
		memcpy(&old, rig.node[0].mem, 8);
		UNIT_EQ(old, 40 + 2u * i);
	}
	wr.op = MLX_WR_CSWAP;
	for (uint16_t i = 0; i < 2; i++) { /* the second finds 7 and changes nothing */
		wr.operand[0] = 80;
		wr.operand[1] = 7 + i;
		rig_send(&rig, qp[0], &wr);
		UNIT_EQ(sent(20 + i), MLX_COMP_OK);
		memcpy(&old, rig.node[0].mem, 8);
		UNIT_EQ(old, i == 0 ? 80 : 7);
	}
	memcpy(&word, rig.node[1].mem, 8);
	UNIT_EQ(word, 7);
	rig_close(&rig);
}

/* Without the fence the write would leave before what was read is there to be written. */
static void
fence_waits_for_reads(void)
{
	struct mlx_hw_comp c[4];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	unit_fill(rig.node[1].mem, 100, 3);
	wr = wr_of(MLX_WR_READ, 100, 0);
	mlx5_post(&qp[0]->base, &wr, 1);
	wr.op = MLX_WR_WRITE;
	wr.flags |= MLX_WR_FENCE;
	wr.remote += 4096;
	rig_send(&rig, qp[0], &wr);
	mlx5_model_run(rig.m);
	UNIT_EQ(mlx5_poll_tx(&rig.node[0].hw->base, c, 4), 2);
	UNIT_TRUE(unit_is_filled(rig.node[1].mem + 4096, 100, 3));
	rig_close(&rig);
}

static void
bad_key_of_the_peer_is_access(void)
{
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_WRITE, 16, 1);
	wr.rkey ^= 1;
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), MLX_COMP_ACCESS);
	wr.rkey ^= 1;
	rig_send(&rig, qp[0], &wr); /* the queue pair has failed */
	UNIT_EQ(sent(1), MLX_COMP_FLUSHED);
	rig_close(&rig);
}

static void
bad_key_of_ours_is_local(void)
{
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	wr.lkey ^= 1;
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), MLX_COMP_LOCAL);
	rig_close(&rig);
}

static void
message_longer_than_the_slot_fails_on_both_sides(void)
{
	struct mlx_hw_comp c[2];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, RIG_SLOT_LEN + 1, 1);
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), MLX_COMP_ACCESS);
	UNIT_EQ_FATAL(mlx5_poll_rx(&rig.node[1].hw->base, c, 2), 1);
	UNIT_EQ(c[0].status, MLX_COMP_LOCAL);
	UNIT_EQ(c[0].slot, 0); /* comes back all the same */
	rig_close(&rig);
}

static void
fault_has_its_status(enum mlx5_fault fault, int status)
{
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	mlx5_model_plant(rig.m, fault);
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), status);
	UNIT_EQ(rig.stat->planted[fault], 1);
	rig_close(&rig);
}

static void
peer_without_slots_is_rnr(void)
{
	fault_has_its_status(MLX5_FAULT_RNR, MLX_COMP_RNR);
}

static void
silent_peer_is_retry(void)
{
	fault_has_its_status(MLX5_FAULT_RETRY, MLX_COMP_RETRY);
}

static void
failed_queue_pair_is_flushed(void)
{
	fault_has_its_status(MLX5_FAULT_FLUSH, MLX_COMP_FLUSHED);
}

/* It has no completion of its own, but for having failed. */
static void
unsignalled_request_tells_of_its_failure(void)
{
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	wr.flags = 0;
	mlx5_model_plant(rig.m, MLX5_FAULT_RETRY);
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), MLX_COMP_RETRY);
	rig_close(&rig);
}

static void
sends_wait_for_slots(void)
{
	struct mlx_hw_comp c[MLX_HW_POLL_MAX];
	struct mlx_hw_wr wr;
	uint32_t n = 0;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 8, 1);
	for (uint32_t i = 0; i < RIG_SLOTS + 1; i++) {
		rig_send(&rig, qp[0], &wr);
		mlx5_model_run(rig.m);
		n += mlx5_poll_tx(&rig.node[0].hw->base, c, 1);
	}
	UNIT_EQ(n, RIG_SLOTS);
	UNIT_TRUE(rig.stat->rnr_waits > 0);
	UNIT_EQ(mlx5_poll_rx(&rig.node[1].hw->base, c, 1), 1);
	rig_post_rx(&rig, 1, c[0].slot);
	UNIT_EQ(sent(RIG_SLOTS), MLX_COMP_OK);
	rig_close(&rig);
}

static void
doorbell_that_is_lost_is_rung_again(void)
{
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	mlx5_model_plant(rig.m, MLX5_FAULT_DOORBELL);
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), -1); /* nothing happens */
	for (int i = 0; i < 3; i++)
		mlx5_check(&rig.node[0].hw->base);
	mlx5_model_mmio(rig.m);
	UNIT_EQ(rig.node[0].stat.rung_again, 1);
	UNIT_EQ(rig.stat->lost_again, 1);
	UNIT_EQ(sent(0), MLX_COMP_OK);
	for (int i = 0; i < 9; i++)
		mlx5_check(&rig.node[0].hw->base); /* nothing waits any more */
	UNIT_EQ(rig.node[0].stat.rung_again, 1);
	rig_close(&rig);
}

/* Fewer completions than there is room for: there are no more. */
static void
a_stale_completion_hides_none(void)
{
	struct mlx_hw_comp c;
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	rig_send(&rig, qp[0], &wr);
	mlx5_model_run(rig.m);
	rig_qp_close(&rig, qp[0]);
	rig_qp_close(&rig, qp[1]);
	rig_pair(&rig, qp);
	rig_send(&rig, qp[0], &wr);
	mlx5_model_run(rig.m);
	UNIT_EQ(mlx5_poll_tx(&rig.node[0].hw->base, &c, 1), 1);
	UNIT_EQ(c.qpn, qp[0]->base.qpn);
	UNIT_EQ(rig.node[0].stat.comp_stale, 1);
	rig_close(&rig);
}

static void
completions_of_a_closed_queue_pair_are_stale(void)
{
	struct mlx_hw_comp c[2];
	struct mlx_hw_wr wr;
	uint32_t qpn;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	rig_send(&rig, qp[0], &wr);
	mlx5_model_run(rig.m);
	qpn = qp[0]->base.qpn;
	rig_qp_close(&rig, qp[0]);
	rig_qp_close(&rig, qp[1]);
	mlx5_model_next_qpn(rig.m, qpn); /* the same numbers again */
	rig_pair(&rig, qp);
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(mlx5_poll_tx(&rig.node[0].hw->base, c, 2), 0);
	UNIT_EQ(rig.node[0].stat.comp_stale, 1);
	UNIT_EQ(mlx5_poll_rx(&rig.node[1].hw->base, c, 2), 1);
	UNIT_EQ(c[0].qpn, MLX5_QPN_NONE);
	UNIT_EQ(c[0].slot, 0); /* it comes back */
	UNIT_EQ(sent(0), MLX_COMP_OK);
	rig_close(&rig);
}

/* A completion of the device's for something we never asked for. */
static void
completion_that_fits_nothing_is_counted(void)
{
	struct mlx5_hw *hw;
	struct mlx5_cqe64 *tx, *rx;
	struct mlx_hw_comp c[2];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	hw = rig.node[0].hw;
	wr = wr_of(MLX_WR_SEND, 16, 1);
	rig_send(&rig, qp[0], &wr);
	mlx5_model_run(rig.m);
	tx = (struct mlx5_cqe64 *)hw->tx.buf;
	tx->wqe_counter = htobe16(1);
	UNIT_EQ(mlx5_poll_tx(&hw->base, c, 2), 0);
	UNIT_EQ(rig.node[0].stat.comp_bad, 1);
	hw = rig.node[1].hw;
	rx = (struct mlx5_cqe64 *)hw->rx.buf;
	for (int i = 0; i < 3; i++) {
		static const uint16_t index[] = {RIG_SLOTS, RIG_SLOTS + 1, UINT16_MAX};

		rx->wqe_counter = htobe16(index[i]);
		UNIT_EQ(mlx5_poll_rx(&hw->base, c, 2), 0);
		UNIT_EQ(rig.node[1].stat.comp_bad, (unsigned)i + 1);
		hw->rx.ci = 0;
	}
	rx->wqe_counter = 0;
	rx->op_own = MLX5_CQE_REQ << 4;
	UNIT_EQ(mlx5_poll_rx(&hw->base, c, 2), 0);
	UNIT_EQ(rig.node[1].stat.comp_bad, 4);
	rig_close(&rig);
}

static void
completion_told_twice_counts_once(void)
{
	struct mlx_hw_comp c[2];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	rig_send(&rig, qp[0], &wr);
	UNIT_EQ(sent(0), MLX_COMP_OK);
	arrived(16, 1);
	rig.node[0].hw->tx.ci = 0;
	rig.node[1].hw->rx.ci = 0;
	UNIT_EQ(mlx5_poll_tx(&rig.node[0].hw->base, c, 2), 0);
	UNIT_EQ(mlx5_poll_rx(&rig.node[1].hw->base, c, 2), 0);
	UNIT_EQ(rig.node[0].stat.comp_bad, 1);
	UNIT_EQ(rig.node[1].stat.comp_bad, 1);
	rig_close(&rig);
}

/* Messages with an immediate are all we send; a peer that sends others is not ours. */
static void
arrival_of_another_kind_is_refused(void)
{
	struct mlx5_cqe64 *rx;
	struct mlx_hw_comp c[2];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	rx = (struct mlx5_cqe64 *)rig.node[1].hw->rx.buf;
	wr = wr_of(MLX_WR_SEND, 16, 1);
	rig_send(&rig, qp[0], &wr);
	mlx5_model_run(rig.m);
	rx->op_own = MLX5_CQE_RESP_WR_IMM << 4;
	UNIT_EQ(mlx5_poll_rx(&rig.node[1].hw->base, c, 2), 1);
	UNIT_EQ(c[0].status, MLX_COMP_OTHER);
	UNIT_EQ(c[0].len, 0);
	rig_close(&rig);
}

static void
armed_queue_tells_of_the_next_completion(void)
{
	struct mlx_hw_comp c[2];
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 16, 1);
	for (uint16_t i = 0; i < 6; i++) { /* the sequence number of arming wraps */
		struct rig_node *n = &rig.node[1];

		rig_arm(&rig, 1);
		UNIT_TRUE(!mlx5_model_event(rig.m, n->rx_cq));
		rig_send(&rig, qp[0], &wr);
		UNIT_EQ(sent(i), MLX_COMP_OK);
		UNIT_TRUE(mlx5_model_event(rig.m, n->rx_cq));
		mlx5_cq_event(&n->hw->rx);
		UNIT_EQ(mlx5_poll_rx(&n->hw->base, c, 2), 1);
	}
	rig_send(&rig, qp[0], &wr); /* before it is armed, and not seen */
	UNIT_EQ(sent(6), MLX_COMP_OK);
	rig_arm(&rig, 1);
	UNIT_TRUE(mlx5_model_event(rig.m, rig.node[1].rx_cq));
	mlx5_cq_event(&rig.node[1].hw->rx);
	rig_close(&rig);
}

static void
queue_too_short_for_its_requests_is_refused(void)
{
	struct mlx5_qp *q;
	struct mlx5dv_qp obj;

	rig_open(&rig, &rig_plain);
	q = aligned_alloc(PLX_LINE, sizeof(*q));
	memset(q, 0, sizeof(*q));
	q->base.max_wr = 64;
	q->base.max_inline = 128; /* three blocks each */
	q->base.qpn = mlx5_model_qp(rig.m, 128, 0, 1, 0, -1, &obj);
	UNIT_EQ(mlx5_qp_init(rig.node[0].hw, q, &obj), -EINVAL);
	obj.sq.wqe_cnt = 192; /* no power of two */
	UNIT_EQ(mlx5_qp_init(rig.node[0].hw, q, &obj), -EINVAL);
	free(q);
	rig_close(&rig);
}

/* The model is a judge only if it says no. */
static void
violates(void)
{
	mlx5_model_run(rig.m);
	UNIT_TRUE(rig.stat->violations > 0);
	rig.stat->violations = 0;
	rig_close(&rig);
}

static struct mlx_hw_wr
start_judged(uint8_t flags)
{
	struct mlx_hw_wr wr;

	start(&rig_plain);
	wr = wr_of(MLX_WR_SEND, 40, 1);
	wr.flags = flags;
	return wr;
}

static void
model_sees_an_entry_change_before_it_ended(void)
{
	struct mlx_hw_wr wr = start_judged(0);

	rig_send(&rig, qp[0], &wr);
	while (rig.stat->entries == 0 && !mlx5_model_step(rig.m))
		;
	qp[0]->sq[20] ^= 1;
	violates();
}

static void
model_sees_a_record_that_is_behind(void)
{
	struct mlx_hw_wr wr = start_judged(0);

	mlx5_post(&qp[0]->base, &wr, 1);
	mlx5_ring(&qp[0]->base);
	*qp[0]->dbrec = 0;
	mlx5_model_mmio(rig.m);
	violates();
}

static void
model_sees_blueflame_in_the_same_half(void)
{
	struct mlx_hw_wr wr = start_judged(MLX_WR_INLINE);

	rig_send(&rig, qp[0], &wr);
	rig.node[0].hw->bf.off = 0;
	rig_send(&rig, qp[0], &wr);
	violates();
}

static void
model_sees_a_slot_posted_twice(void)
{
	struct mlx5_srq *srq;
	struct mlx5_slot slot;

	start(&rig_plain);
	srq = &rig.node[0].hw->srq;
	mlx5_srq_take(srq, 0, &slot); /* the device has them */
	mlx5_srq_take(srq, 1, &slot);
	rig_post_rx(&rig, 0, 0);
	rig_post_rx(&rig, 0, 1);
	rig_send(&rig, qp[1], &(struct mlx_hw_wr){.op = MLX_WR_SEND});
	violates();
}

static void
model_sees_an_overflow(void)
{
	struct mlx_hw_wr wr = start_judged(MLX_WR_SIGNAL);
	struct mlx_hw_comp c[1];

	for (uint32_t i = 0; i < 1025; i++) {
		rig_send(&rig, qp[0], &wr);
		mlx5_model_run(rig.m);
		UNIT_EQ_FATAL(mlx5_poll_tx(&rig.node[0].hw->base, c, 1), 1);
		*rig.node[0].hw->tx.dbrec = 0; /* as if it were never told */
		if (mlx5_poll_rx(&rig.node[1].hw->base, c, 1) == 1)
			rig_post_rx(&rig, 1, c[0].slot);
	}
	violates();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(sends_arrive_as_they_were),
	UNIT_TEST(inline_sends_arrive_as_they_were),
	UNIT_TEST(long_completions_hold_64_bytes),
	UNIT_TEST(without_blueflame_doorbells_do),
	UNIT_TEST(shared_registers_take_doorbells_only),
	UNIT_TEST(one_doorbell_shows_many),
	UNIT_TEST(write_and_read_move_bytes),
	UNIT_TEST(atomics_give_the_value_before),
	UNIT_TEST(fence_waits_for_reads),
	UNIT_TEST(bad_key_of_the_peer_is_access),
	UNIT_TEST(bad_key_of_ours_is_local),
	UNIT_TEST(message_longer_than_the_slot_fails_on_both_sides),
	UNIT_TEST(peer_without_slots_is_rnr),
	UNIT_TEST(silent_peer_is_retry),
	UNIT_TEST(failed_queue_pair_is_flushed),
	UNIT_TEST(unsignalled_request_tells_of_its_failure),
	UNIT_TEST(sends_wait_for_slots),
	UNIT_TEST(doorbell_that_is_lost_is_rung_again),
	UNIT_TEST(a_stale_completion_hides_none),
	UNIT_TEST(completions_of_a_closed_queue_pair_are_stale),
	UNIT_TEST(completion_that_fits_nothing_is_counted),
	UNIT_TEST(completion_told_twice_counts_once),
	UNIT_TEST(arrival_of_another_kind_is_refused),
	UNIT_TEST(armed_queue_tells_of_the_next_completion),
	UNIT_TEST(queue_too_short_for_its_requests_is_refused),
	UNIT_TEST(model_sees_an_entry_change_before_it_ended),
	UNIT_TEST(model_sees_a_record_that_is_behind),
	UNIT_TEST(model_sees_blueflame_in_the_same_half),
	UNIT_TEST(model_sees_a_slot_posted_twice),
	UNIT_TEST(model_sees_an_overflow),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx5 queues", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}

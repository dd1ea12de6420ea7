/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_random_test.c - a million random operations of the mlx5 direct way, with faults
 *
 * Design notes
 * Eight queue pairs between two nodes send, write, read and add at random; the model of the
 * device does it in any order it may, and loses doorbells, has others overtake, and fails queue
 * pairs. Whatever is reported as done is checked: messages arrive once, in order, unchanged; what
 * was written is there, what was read is what had been written. A queue pair that fails is
 * closed with its peer, and both are opened anew. In the end each fault planted has been found.
 *
 * PLX_TEST_SEED, if set, replaces the seed.
 */
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "mlx5_rig.h"

#define PAIRS	 4u
#define SIDES	 (2 * PAIRS)
#define CELL_LEN 512u
#define CELLS	 RIG_MAX_WR /* that one side writes to at the other */
#define QUIET	 300u	    /* turns of a side in which it posts nothing */
#define HELD_MAX 96u	    /* slots of a node that are not posted at once */

#ifdef __SANITIZE_ADDRESS__
#define OPS 100000u
#else
#define OPS 250000u /* of each of four kinds of device */
#endif

/** A request, until it is known to be done. */
struct op {
	uint64_t stamp;
	uint64_t key;  /* of the data */
	uint64_t old;  /* FADD: what it should bring */
	uint32_t len;
	uint8_t op;
	uint8_t cell;
	bool signal;
};

/** One end of a connection. */
struct side {
	struct mlx5_qp *q;
	unsigned node;
	struct op ops[CELLS];	  /* by number of the request */
	uint64_t cell_key[CELLS]; /* 0: nobody knows what is there */
	uint32_t cell_len[CELLS];
	uint64_t added;		  /* to the word at the other side */
	uint32_t done;		  /* requests */
	uint32_t next;
	uint32_t sends, sends_done, arrivals;
	uint32_t quiet;
	bool failed;
};

static struct rig rig;
static struct side sides[SIDES];
static uint64_t rng, stamp, stamp_seen, inversions, posted, failures, left;
static uint64_t found[MLX_COMP_OTHER + 1];
static uint32_t held[2][HELD_MAX], n_held[2];
static unsigned wrong;

static uint64_t
rnd(void)
{
	return unit_rng(&rng);
}

/* Counted and told once, since it may be wrong a million times. */
static void
check(bool ok, const char *what, const struct side *s)
{
	if (ok || wrong++ > 3)
		return;
	printf("after %llu operations, side %d: %s\n", (unsigned long long)posted,
		s != NULL ? (int)(s - sides) : -1, what);
}

/* Memory of a side at its own node: buffers, then cells that the other side writes, then a word. */
static uint8_t *
side_mem(const struct side *s)
{
	return rig.node[s->node].mem + (s - sides) / 2 * (RIG_MEM / PAIRS);
}

static uint8_t *
buffer_of(const struct side *s, uint32_t number)
{
	return side_mem(s) + number % CELLS * CELL_LEN;
}

static uint8_t *
cell_of(const struct side *s, uint32_t cell)
{
	return side_mem(s) + (CELLS + cell) * CELL_LEN;
}

static uint8_t *
word_of(const struct side *s)
{
	return side_mem(s) + 2 * CELLS * CELL_LEN;
}

static struct side *
other(const struct side *s)
{
	return &sides[(s - sides) ^ 1];
}

static uint64_t
send_key(const struct side *from, uint32_t number)
{
	return (uint64_t)(from - sides + 1) << 56 | (uint64_t)from->q->base.qpn << 32 | number;
}

static uint32_t
send_len(uint64_t key)
{
	key ^= key >> 17;
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 56 << (key & 1);
}

static void
pair_open(unsigned i)
{
	struct mlx5_qp *qp[2];

	rig_pair(&rig, qp);
	for (unsigned k = 0; k < 2; k++) {
		struct side *s = &sides[2 * i + k];

		memset(s, 0, sizeof(*s));
		s->q = qp[k];
		s->node = k;
		memset(word_of(s), 0, 8);
	}
}

static void
op_send(struct side *s, struct op *op, struct mlx_hw_wr *wr)
{
	op->key = send_key(s, s->sends);
	op->len = send_len(op->key);
	wr->imm = s->sends++;
}

static void
op_write(struct side *s, struct op *op, struct mlx_hw_wr *wr)
{
	op->key = rnd() | 1;
	op->len = 1 + rnd() % (CELL_LEN - 1);
	op->cell = s->next % CELLS;
	s->cell_key[op->cell] = op->key;
	s->cell_len[op->cell] = op->len;
	wr->remote = (uintptr_t)cell_of(other(s), op->cell);
}

static void
op_read(struct side *s, struct op *op, struct mlx_hw_wr *wr)
{
	op->cell = rnd() % CELLS;
	op->key = s->cell_key[op->cell];
	op->len = s->cell_len[op->cell];
	if (rnd() % 2 == 0 && op->len > 16)
		op->len = 16; /* comes inside of the completion */
	wr->remote = (uintptr_t)cell_of(other(s), op->cell);
}

static void
op_fadd(struct side *s, struct op *op, struct mlx_hw_wr *wr)
{
	op->len = 8;
	op->old = s->added;
	wr->operand[0] = rnd();
	s->added += wr->operand[0];
	wr->remote = (uintptr_t)word_of(other(s));
}

static void
post_one(struct side *s)
{
	struct op *op = &s->ops[s->next % CELLS];
	uint8_t *buf = buffer_of(s, s->next);
	struct mlx_hw_wr wr = {.addr = (uintptr_t)buf, .lkey = rig.node[s->node].mem_key,
		.rkey = rig.node[s->node ^ 1].mem_key};

	*op = (struct op){.stamp = ++stamp, .op = rnd() % 4};
	op->signal = rnd() % 4 == 0 || s->next - s->done == CELLS - 1;
	switch (op->op) {
	case MLX_WR_SEND:
		op_send(s, op, &wr);
		break;
	case MLX_WR_WRITE:
		op_write(s, op, &wr);
		break;
	case MLX_WR_READ:
		op_read(s, op, &wr);
		break;
	default:
		op_fadd(s, op, &wr);
	}
	wr.op = op->op;
	wr.len = op->len;
	wr.flags = (op->signal ? MLX_WR_SIGNAL : 0) | (rnd() % 8 == 0 ? MLX_WR_FENCE : 0);
	if (op->op <= MLX_WR_WRITE) {
		unit_fill(buf, op->len, op->key);
		if (op->len <= rig.conf.max_inline)
			wr.flags |= MLX_WR_INLINE;
	} else {
		memset(buf, 0xee, op->len);
	}
	mlx5_post(&s->q->base, &wr, 1);
	if (wr.flags & MLX_WR_INLINE)
		memset(buf, 0xdd, op->len); /* it was copied */
	s->next++;
	posted++;
}

static void
op_done(struct side *s, uint32_t number)
{
	const struct op *op = &s->ops[number % CELLS];
	uint8_t *buf = buffer_of(s, number);

	switch (op->op) {
	case MLX_WR_SEND:
		s->sends_done++;
		break;
	case MLX_WR_WRITE:
		check(unit_is_filled(cell_of(other(s), op->cell), op->len, op->key),
			"what was written is not there", s);
		break;
	case MLX_WR_READ:
		check(op->key == 0 || unit_is_filled(buf, op->len, op->key),
			"what was read is not what had been written", s);
		break;
	default:
		check(memcmp(buf, &op->old, 8) == 0, "not the value before", s);
	}
	memset(buf, 0xcc, op->len); /* nobody needs it now */
}

static struct side *
side_of(unsigned node, uint32_t qpn)
{
	for (unsigned i = node; i < SIDES; i += 2)
		if (sides[i].q->base.qpn == qpn)
			return &sides[i];
	return NULL;
}

static void
sent(struct side *s, const struct mlx_hw_comp *c)
{
	uint32_t upto = s->done + (uint16_t)(c->seq - (uint16_t)s->done);
	const struct op *op = &s->ops[upto % CELLS];

	check(upto < s->next, "a completion of nothing", s);
	found[c->status]++;
	if (c->status != MLX_COMP_OK) {
		s->failed = true;
		return;
	}
	check(!s->failed && op->signal, "a completion that was not asked for", s);
	inversions += op->stamp < stamp_seen;
	stamp_seen = op->stamp > stamp_seen ? op->stamp : stamp_seen;
	for (; s->done != upto + 1; s->done++) {
		check(s->done == upto || !s->ops[s->done % CELLS].signal,
			"one completion was left out", s);
		op_done(s, s->done);
	}
}

static void
arrived(struct side *s, const struct mlx_hw_comp *c)
{
	uint64_t key = send_key(other(s), s->arrivals);

	check(c->status == MLX_COMP_OK, "an arrival failed", s);
	check(c->imm == s->arrivals, "not the next message", s);
	check(c->len == send_len(key), "its length is wrong", s);
	check(unit_is_filled(rig.node[s->node].slots + c->slot * RIG_SLOT_LEN, c->len, key),
		"its bytes are wrong", s);
	s->arrivals++;
}

static uint16_t
poll(unsigned node, uint16_t n)
{
	struct mlx_hw *hw = &rig.node[node].hw->base;
	struct mlx_hw_comp c[MLX_HW_POLL_MAX];
	uint16_t got = mlx5_poll_tx(hw, c, n), rx;
	struct side *s;

	for (uint16_t i = 0; i < got; i++) {
		s = side_of(node, c[i].qpn);
		check(s != NULL, "a completion of nobody", s);
		if (s != NULL)
			sent(s, &c[i]);
	}
	if (n_held[node] + n > HELD_MAX)
		return got;
	rx = mlx5_poll_rx(hw, c, n);
	for (uint16_t i = 0; i < rx; i++) {
		s = side_of(node, c[i].qpn);
		check(s != NULL || c[i].qpn == MLX5_QPN_NONE, "an arrival of nobody", s);
		if (s != NULL)
			arrived(s, &c[i]);
		memset(rig.node[node].slots + c[i].slot * RIG_SLOT_LEN, 0xbb, RIG_SLOT_LEN);
		held[node][n_held[node]++] = c[i].slot;
	}
	return got + rx;
}

static void
post_held(unsigned node)
{
	while (n_held[node] > 0)
		rig_post_rx(&rig, node, held[node][--n_held[node]]);
}

/* All that the device has to say is said and heard. */
static void
settle(void)
{
	uint16_t n;

	do {
		mlx5_model_run(rig.m);
		n = 0;
		for (unsigned node = 0; node < 2; node++) {
			n += poll(node, MLX_HW_POLL_MAX);
			post_held(node);
		}
	} while (n > 0);
}

static void
pair_reopen(unsigned i)
{
	struct side *s = &sides[2 * i];

	settle();
	for (unsigned k = 0; k < 2; k++)
		check(s[k].sends_done <= other(&s[k])->arrivals, "a message is lost", &s[k]);
	rig_qp_close(&rig, s[0].q);
	rig_qp_close(&rig, s[1].q);
	pair_open(i);
	failures++;
}

static void
set_faults(bool on)
{
	static const uint32_t one_in[MLX5_FAULT_N] = {[MLX5_FAULT_DOORBELL] = 20,
		[MLX5_FAULT_LATE] = 10, [MLX5_FAULT_RNR] = 5000, [MLX5_FAULT_RETRY] = 10000,
		[MLX5_FAULT_FLUSH] = 10000};

	for (int f = 0; f < MLX5_FAULT_N; f++)
		mlx5_model_fault(rig.m, f, on ? one_in[f] : 0);
}

/* Closed with completions and arrivals that nobody has seen. */
static void
pair_leave(unsigned i)
{
	struct side *s = &sides[2 * i];

	settle();
	if (s[0].failed || s[1].failed)
		return;
	set_faults(false);
	while (s->next - s->done < CELLS)
		post_one(s);
	rig_ring(&rig, s->q);
	mlx5_model_run(rig.m);
	set_faults(true);
	rig_qp_close(&rig, s[0].q);
	rig_qp_close(&rig, s[1].q);
	pair_open(i);
	left++;
}

static void
turn(void)
{
	struct side *s = &sides[rnd() % SIDES];
	uint64_t r = rnd();

	if (s->quiet > 0)
		s->quiet--;
	else if ((r >> 54 & 255) == 0)
		s->quiet = QUIET;
	for (unsigned n = s->quiet > 0 ? 0 : r % 4; n > 0 && !s->failed && s->next - s->done < CELLS; n--)
		post_one(s);
	if (r >> 8 & 3)
		rig_ring(&rig, s->q);
	for (unsigned n = r >> 16 & 15; n > 0; n--)
		mlx5_model_step(rig.m);
	if ((r >> 24 & 3) == 0)
		poll(r >> 26 & 1, 1 + (r >> 27) % MLX_HW_POLL_MAX);
	if ((r >> 28 & 511) == 0)
		post_held(r >> 37 & 1);
	if ((r >> 38 & 511) == 0)
		rig_check(&rig);
	if ((r >> 40 & 16383) == 0)
		pair_leave((s - sides) / 2);
	for (unsigned i = 0; i < PAIRS; i++)
		if (unlikely(sides[2 * i].failed || sides[2 * i + 1].failed))
			pair_reopen(i);
}

static bool
all_done(void)
{
	for (unsigned i = 0; i < SIDES; i++)
		if (sides[i].done != sides[i].next)
			return false;
	return true;
}

/* No faults any more; what is under way ends. */
static void
finish(void)
{
	set_faults(false);
	for (unsigned i = 0; i < PAIRS; i++)
		if (sides[2 * i].failed || sides[2 * i + 1].failed)
			pair_reopen(i);
	for (unsigned i = 0; i < SIDES; i++) {
		if (sides[i].next - sides[i].done < CELLS) {
			struct mlx_hw_wr last = {.op = MLX_WR_WRITE, .flags = MLX_WR_SIGNAL};

			sides[i].ops[sides[i].next++ % CELLS] = (struct op){.op = MLX_WR_WRITE,
				.signal = true};
			mlx5_post(&sides[i].q->base, &last, 1);
		}
		rig_ring(&rig, sides[i].q);
	}
	for (int i = 0; i < 8 && !all_done(); i++) {
		settle();
		rig_check(&rig);
	}
	UNIT_TRUE(all_done());
}

static void
every_fault_is_found(void)
{
	const struct mlx5_model_stat *st = rig.stat;
	uint64_t again = 0, stale = 0;

	for (unsigned node = 0; node < 2; node++) {
		again += rig.node[node].stat.rung_again;
		stale += rig.node[node].stat.comp_stale;
		UNIT_EQ(rig.node[node].stat.comp_bad, 0);
	}
	printf("\n    doorbells lost %llu seen later %llu rung again %llu; overtaken %llu seen %llu; "
	       "rnr %llu; retry %llu; flushed %llu; waits for slots %llu; reopened %llu left %llu "
	       "stale %llu ",
		(unsigned long long)st->planted[MLX5_FAULT_DOORBELL],
		(unsigned long long)st->lost_healed, (unsigned long long)st->lost_again,
		(unsigned long long)st->overtaken, (unsigned long long)inversions,
		(unsigned long long)st->planted[MLX5_FAULT_RNR],
		(unsigned long long)st->planted[MLX5_FAULT_RETRY],
		(unsigned long long)st->planted[MLX5_FAULT_FLUSH],
		(unsigned long long)st->rnr_waits, (unsigned long long)failures,
		(unsigned long long)left, (unsigned long long)stale);
	UNIT_TRUE(st->planted[MLX5_FAULT_DOORBELL] > 0);
	UNIT_EQ(st->planted[MLX5_FAULT_DOORBELL], st->lost_healed + st->lost_again);
	UNIT_TRUE(st->lost_again > 0 && again >= st->lost_again);
	UNIT_TRUE(st->planted[MLX5_FAULT_LATE] > 0 && st->overtaken > 0 && inversions > 0);
	UNIT_TRUE(st->planted[MLX5_FAULT_RNR] > 0);
	UNIT_EQ(st->planted[MLX5_FAULT_RNR], found[MLX_COMP_RNR]);
	UNIT_TRUE(st->planted[MLX5_FAULT_RETRY] > 0);
	UNIT_EQ(st->planted[MLX5_FAULT_RETRY], found[MLX_COMP_RETRY]);
	UNIT_TRUE(st->planted[MLX5_FAULT_FLUSH] > 0);
	UNIT_EQ(st->planted[MLX5_FAULT_FLUSH], found[MLX_COMP_FLUSHED]);
	UNIT_TRUE(st->rnr_waits > 0);
	UNIT_TRUE(left > 0 && stale > 0);
	UNIT_EQ(found[MLX_COMP_ACCESS] + found[MLX_COMP_LOCAL] + found[MLX_COMP_OTHER], 0);
}

static void
run(struct rig_conf conf)
{
	conf.seed = rnd();
	stamp = stamp_seen = inversions = posted = failures = left = wrong = 0;
	memset(found, 0, sizeof(found));
	memset(n_held, 0, sizeof(n_held));
	rig_open(&rig, &conf);
	for (unsigned i = 0; i < PAIRS; i++)
		pair_open(i);
	set_faults(true);
	while (posted < OPS && wrong == 0 && rig.stat->violations == 0)
		turn();
	finish();
	UNIT_EQ(wrong, 0);
	every_fault_is_found();
	rig_close(&rig);
}

static void
plain_device(void)
{
	run(rig_plain);
}

static void
long_completions(void)
{
	struct rig_conf conf = rig_plain;

	conf.cqe_size = 128;
	conf.srq_stride = 64;
	run(conf);
}

static void
no_blueflame(void)
{
	struct rig_conf conf = rig_plain;

	conf.bf_size = 0;
	run(conf);
}

static void
registers_of_their_own_and_little_inline(void)
{
	struct rig_conf conf = rig_plain;

	conf.own_uar = false;
	conf.max_inline = 28;
	run(conf);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(plain_device),
	UNIT_TEST(long_completions),
	UNIT_TEST(no_blueflame),
	UNIT_TEST(registers_of_their_own_and_little_inline),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx5 at random", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	rng = unit_seed(20261);
	return unit_run(suites);
}

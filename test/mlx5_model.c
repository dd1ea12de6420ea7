/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_model.c - the model's objects, its registers, and what it does next
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5_model_int.h"
#include "test_util.h"

#define KEY(i)	      ((uint32_t)((i) + 1) << 8 | 0x5a) /* of memory region i */
#define RUN_MAX	      1000000 /* rounds, so that a model that never rests is noticed */
#define LOOK_AGAIN_IN 8	      /* entries, about: the device looks at the record by itself */

uint64_t
model_rng(struct mlx5_model *m)
{
	return util_splitmix64(&m->rng);
}

bool
model_chance(struct mlx5_model *m, enum mlx5_fault fault)
{
	if (m->plant[fault]) {
		m->plant[fault] = false;
		return true;
	}
	return m->one_in[fault] != 0 && model_rng(m) % m->one_in[fault] == 0;
}

void
model_violation(struct mlx5_model *m, const char *fmt, ...)
{
	va_list ap;

	if (m->stat.violations++ == 0) {
		va_start(ap, fmt);
		vsnprintf(m->stat.first, sizeof(m->stat.first), fmt, ap);
		va_end(ap);
	}
}

struct model_qp *
model_qp(struct mlx5_model *m, uint32_t qpn)
{
	for (uint32_t i = 0; i < m->n_qp; i++)
		if (m->qp[i]->qpn == qpn)
			return m->qp[i];
	return NULL;
}

void
model_wqe_read(const struct model_qp *q, uint16_t wqe, uint32_t blocks, void *to)
{
	for (uint32_t b = 0; b < blocks; b++)
		memcpy((uint8_t *)to + b * MLX5_SEND_WQE_BB,
			q->sq + ((wqe + b) & (q->n - 1)) * MLX5_SEND_WQE_BB, MLX5_SEND_WQE_BB);
}

uint64_t
model_hash(const void *p, uint32_t len)
{
	uint64_t h = len, w;

	for (uint32_t i = 0; i + 8 <= len; i += 8) {
		memcpy(&w, (const uint8_t *)p + i, 8);
		h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h | 1; /* 0 has a meaning of its own */
}

void *
model_mem(struct mlx5_model *m, uint32_t key, uint64_t addr, uint64_t len, bool remote)
{
	uint32_t i = (key >> 8) - 1;
	const struct model_mr *mr = &m->mr[i < MODEL_MRS ? i : 0];

	if (i >= MODEL_MRS || mr->addr == NULL || key != KEY(i) || (remote && !mr->remote) ||
		addr < (uintptr_t)mr->addr || len > mr->len ||
		addr - (uintptr_t)mr->addr > mr->len - len)
		return NULL;
	return (void *)(uintptr_t)addr;
}

void
model_cq_event(struct mlx5_model *m, struct model_cq *cq)
{
	cq->armed = false;
	cq->event = true;
	cq->arm_n++;
	m->stat.events++;
}

void
model_srq_look(struct mlx5_model *m, struct model_srq *s)
{
	uint16_t now = be32toh(*s->dbrec);

	for (; s->seen != now; s->seen++) {
		const uint8_t *at = s->buf + (size_t)s->walk * s->stride;
		const struct mlx5_wqe_srq_next_seg *next = (const void *)at;

		if (s->walk >= s->n || s->was[s->walk] != 0) {
			model_violation(m, "slot %u is posted twice, or does not exist", s->walk);
			s->seen = now;
			return;
		}
		s->was[s->walk] = model_hash(at + sizeof(*next), sizeof(struct mlx5_wqe_data_seg));
		s->walk = be16toh(next->next_wqe_index);
		s->avail++;
	}
}

int
mlx5_model_create(uint64_t seed, struct mlx5_model **out)
{
	struct mlx5_model *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->rng = seed;
	m->next_qpn = 0x100;
	*out = m;
	return 0;
}

struct mlx5_model_stat *
mlx5_model_stat(struct mlx5_model *m)
{
	return &m->stat;
}

void
mlx5_model_fault(struct mlx5_model *m, enum mlx5_fault fault, uint32_t one_in)
{
	m->one_in[fault] = one_in;
}

void
mlx5_model_inlines(struct mlx5_model *m)
{
	m->inlines = true;
}

void
mlx5_model_plant(struct mlx5_model *m, enum mlx5_fault fault)
{
	m->plant[fault] = true;
}

uint32_t
mlx5_model_mr(struct mlx5_model *m, void *addr, uint64_t len, bool remote)
{
	uint32_t i = 0;

	while (m->mr[i].addr != NULL)
		if (++i == MODEL_MRS)
			abort();
	m->mr[i] = (struct model_mr){addr, len, remote};
	return KEY(i);
}

void
mlx5_model_mr_free(struct mlx5_model *m, uint32_t key)
{
	m->mr[(key >> 8) - 1].addr = NULL;
}

/* The first object, each of len bytes and beginning with a pointer, that is not there. */
static uint32_t
unused(const void *objs, size_t len)
{
	uint32_t i = 0;

	while (*(void *const *)((const char *)objs + i * len) != NULL)
		if (++i == MODEL_OBJS)
			abort();
	return i;
}

int
mlx5_model_cq(struct mlx5_model *m, uint32_t n, uint32_t cqe_size, struct mlx5dv_cq *out)
{
	uint32_t i = unused(m->cq, sizeof(m->cq[0]));
	struct model_cq *cq = &m->cq[i];

	cq->buf = malloc((size_t)n * cqe_size);
	cq->dbrec = calloc(2, sizeof(*cq->dbrec));
	cq->reg = calloc(8, sizeof(*cq->reg));
	cq->n = n;
	cq->size = cqe_size;
	memset(cq->buf, MLX5_CQE_INVALID << 4, (size_t)n * cqe_size);
	*out = (struct mlx5dv_cq){.buf = cq->buf, .dbrec = cq->dbrec, .cqe_cnt = n,
		.cqe_size = cqe_size, .cq_uar = cq->reg, .cqn = 0x40 + i};
	return i;
}

void
mlx5_model_cq_free(struct mlx5_model *m, int cq)
{
	free(m->cq[cq].buf);
	free(m->cq[cq].dbrec);
	free(m->cq[cq].reg);
	m->cq[cq] = (struct model_cq){0};
}

int
mlx5_model_srq(struct mlx5_model *m, uint32_t n, uint32_t stride, struct mlx5dv_srq *out)
{
	uint32_t number = unused(m->srq, sizeof(m->srq[0]));
	struct model_srq *s = &m->srq[number];

	s->buf = calloc(n, stride);
	s->dbrec = calloc(1, sizeof(*s->dbrec));
	s->was = calloc(n, sizeof(*s->was));
	s->n = n;
	s->stride = stride;
	for (uint32_t i = 0; i < n; i++)
		((struct mlx5_wqe_srq_next_seg *)(s->buf + i * stride))->next_wqe_index =
			htobe16(i + 1);
	*out = (struct mlx5dv_srq){.buf = s->buf, .dbrec = s->dbrec, .stride = stride,
		.tail = n - 1};
	return number;
}

void
mlx5_model_srq_free(struct mlx5_model *m, int srq)
{
	free(m->srq[srq].buf);
	free(m->srq[srq].dbrec);
	free(m->srq[srq].was);
	m->srq[srq] = (struct model_srq){0};
}

/* Bytes of a half of a register. */
static uint32_t
uar_len(const struct model_uar *u)
{
	return u->size != 0 ? u->size : MLX5_SEND_WQE_BB;
}

int
mlx5_model_uar(struct mlx5_model *m, uint32_t bf_size)
{
	uint32_t i = unused(m->uar, sizeof(m->uar[0]));
	struct model_uar *u = &m->uar[i];

	u->size = bf_size;
	u->last = 1;
	u->reg = aligned_alloc(MLX5_SEND_WQE_BB, 2 * uar_len(u));
	memset(u->reg, 0, 2 * uar_len(u));
	return i;
}

void
mlx5_model_uar_free(struct mlx5_model *m, int uar)
{
	free(m->uar[uar].reg);
	m->uar[uar] = (struct model_uar){0};
}

uint32_t
mlx5_model_qp(struct mlx5_model *m, uint32_t blocks, int tx_cq, int rx_cq, int srq, int uar,
	struct mlx5dv_qp *out)
{
	struct model_qp *q = calloc(1, sizeof(*q));

	q->qpn = m->next_qpn++;
	q->sq = aligned_alloc(MLX5_SEND_WQE_BB, (size_t)blocks * MLX5_SEND_WQE_BB);
	q->n = blocks;
	q->dbrec = calloc(2, sizeof(*q->dbrec));
	q->ends = calloc(blocks, sizeof(*q->ends));
	q->tx = &m->cq[tx_cq];
	q->rx = &m->cq[rx_cq];
	q->srq = &m->srq[srq];
	q->own_uar = uar < 0;
	q->uar = &m->uar[q->own_uar ? mlx5_model_uar(m, 0) : uar];
	q->arrivals = calloc(q->srq->n, sizeof(*q->arrivals));
	memset(q->sq, 0x5a, (size_t)blocks * MLX5_SEND_WQE_BB);
	*out = (struct mlx5dv_qp){.dbrec = q->dbrec, .sq = {q->sq, blocks, MLX5_SEND_WQE_BB},
		.bf = {q->uar->reg, q->uar->size}};
	if (m->n_qp == MODEL_QPS)
		abort();
	m->qp[m->n_qp++] = q;
	return q->qpn;
}

void
mlx5_model_connect(struct mlx5_model *m, uint32_t qpn, uint32_t peer)
{
	model_qp(m, qpn)->peer = peer;
}

static void
qp_free(struct model_qp *q)
{
	for (; q->end_n > 0; q->end_n--, q->end_head = (q->end_head + 1) % q->n)
		free(q->ends[q->end_head].data);
	free(q->sq);
	free(q->dbrec);
	free(q->ends);
	free(q->arrivals);
	free(q);
}

void
mlx5_model_qp_destroy(struct mlx5_model *m, uint32_t qpn)
{
	struct model_qp *q = model_qp(m, qpn);
	uint32_t i = 0;

	while (model_end(m, q))
		;
	while (model_tell(m, q))
		;
	m->stat.lost_healed += q->lost;
	while (m->qp[i] != q)
		i++;
	m->qp[i] = m->qp[--m->n_qp];
	if (q->own_uar)
		mlx5_model_uar_free(m, q->uar - m->uar);
	qp_free(q);
}

void
mlx5_model_qp_fail(struct mlx5_model *m, uint32_t qpn)
{
	model_qp(m, qpn)->failed = true;
}

void
mlx5_model_next_qpn(struct mlx5_model *m, uint32_t qpn)
{
	m->next_qpn = qpn;
}

/* The device has learnt of all that the record shows. */
static void
qp_shown(struct model_qp *q, uint16_t pi, uint64_t *how)
{
	q->shown = pi;
	if (q->lost) {
		q->lost = false;
		(*how)++;
	}
}

static uint16_t
qp_record(struct mlx5_model *m, const struct model_qp *q)
{
	uint32_t pi = be32toh(q->dbrec[MLX5_SND_DBR]);

	if (pi > UINT16_MAX)
		model_violation(m, "doorbell record of %#x: %#x", q->qpn, pi);
	return pi;
}

static void
bell(struct mlx5_model *m, const struct model_uar *u, const uint8_t *reg, uint32_t half)
{
	const struct mlx5_wqe_ctrl_seg *c = (const void *)reg;
	uint16_t idx = be32toh(c->opmod_idx_opcode) >> 8, pi;
	struct model_qp *q = model_qp(m, be32toh(c->qpn_ds) >> 8);
	uint32_t blocks = ((be32toh(c->qpn_ds) & 0x3f) * 16 + MLX5_SEND_WQE_BB - 1) /
		MLX5_SEND_WQE_BB;
	uint8_t bytes[MODEL_WQE_MAX];
	bool whole = false;

	if (q == NULL || q->uar != u) {
		model_violation(m, "a doorbell for nobody: %#x", be32toh(c->qpn_ds) >> 8);
		return;
	}
	for (uint32_t i = 8; !whole && i < uar_len(u); i++)
		whole = reg[i] != 0;
	pi = qp_record(m, q);
	model_wqe_read(q, idx, blocks, bytes);
	if (memcmp(bytes, reg, whole ? blocks * MLX5_SEND_WQE_BB : 8) != 0)
		model_violation(m, "the register does not hold entry %u of %#x", idx, q->qpn);
	if ((uint16_t)(idx + blocks) != pi)
		model_violation(m, "doorbell of %#x: entry %u, record %u", q->qpn, idx, pi);
	if (whole && (idx != q->belled || blocks * MLX5_SEND_WQE_BB > u->size || half == u->last))
		model_violation(m, "blueflame of %#x: too much for it, or in the wrong half", q->qpn);
	whole ? m->stat.blueflames++ : m->stat.doorbells++;
	if (pi != q->shown && model_chance(m, MLX5_FAULT_DOORBELL)) {
		m->stat.planted[MLX5_FAULT_DOORBELL] += !q->lost;
		q->lost = true;
	} else {
		qp_shown(q, pi, q->belled == pi ? &m->stat.lost_again : &m->stat.lost_healed);
	}
	q->belled = pi;
}

static void
uar_look(struct mlx5_model *m, struct model_uar *u)
{
	uint32_t last = u->last;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t half = last ^ (i == 0); /* the one that ought to be written now, first */
		uint8_t *reg = u->reg + half * uar_len(u);
		uint64_t word;

		memcpy(&word, reg, sizeof(word));
		if (word == 0)
			continue;
		bell(m, u, reg, half);
		u->last = half;
		memset(reg, 0, uar_len(u));
	}
}

static void
cq_look(struct mlx5_model *m, struct model_cq *cq)
{
	uint64_t *reg = &cq->reg[MLX5_CQ_DOORBELL / sizeof(uint64_t)];
	uint32_t what = be64toh(*reg) >> 32, ci = what & 0xffffff, late;

	if (*reg == 0)
		return;
	*reg = 0;
	late = (cq->arm_n - (what >> 28)) & 3;
	if (what != be32toh(cq->dbrec[1]) || late > 1 || ci != (be32toh(cq->dbrec[0]) & 0xffffff))
		model_violation(m, "armed with %#x", what);
	if (late == 1)
		return; /* for an event that was given, and that nobody has taken yet */
	cq->armed = true;
	if (ci != (cq->pi & 0xffffff)) /* something came that was not seen */
		model_cq_event(m, cq);
}

void
mlx5_model_mmio(struct mlx5_model *m)
{
	for (uint32_t i = 0; i < MODEL_OBJS; i++) {
		if (m->uar[i].reg != NULL)
			uar_look(m, &m->uar[i]);
		if (m->cq[i].buf != NULL)
			cq_look(m, &m->cq[i]);
	}
}

bool
mlx5_model_event(struct mlx5_model *m, int cq)
{
	bool event = m->cq[cq].event;

	m->cq[cq].event = false;
	return event;
}

bool
mlx5_model_armed(const struct mlx5_model *m, int cq)
{
	return m->cq[cq].armed;
}

/* A device that works on a queue pair may see that there is more. */
static void
look_again(struct mlx5_model *m, struct model_qp *q)
{
	if (model_rng(m) % LOOK_AGAIN_IN == 0)
		qp_shown(q, qp_record(m, q), &m->stat.lost_healed);
}

bool
mlx5_model_step(struct mlx5_model *m)
{
	uint64_t r = model_rng(m);
	struct model_qp *q;
	bool did;

	if (m->n_qp == 0)
		return false;
	q = m->qp[(r >> 8) % m->n_qp];
	switch (r % 3) {
	case 0:
		did = model_begin(m, q);
		if (did)
			look_again(m, q);
		return did;
	case 1:
		if (q->end_n != 0 && model_chance(m, MLX5_FAULT_LATE)) {
			m->stat.planted[MLX5_FAULT_LATE]++;
			return false;
		}
		return model_end(m, q);
	default:
		if (q->arr_n != 0 && model_chance(m, MLX5_FAULT_LATE)) {
			m->stat.planted[MLX5_FAULT_LATE]++;
			return false;
		}
		return model_tell(m, q);
	}
}

void
mlx5_model_run(struct mlx5_model *m)
{
	bool did = true;

	for (uint32_t i = 0; did && i < RUN_MAX; i++) {
		did = false;
		for (uint32_t k = 0; k < m->n_qp; k++) {
			did |= model_begin(m, m->qp[k]);
			did |= model_end(m, m->qp[k]);
			did |= model_tell(m, m->qp[k]);
		}
	}
	if (did)
		model_violation(m, "it never rests");
}

void
mlx5_model_destroy(struct mlx5_model *m)
{
	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->n_qp; i++)
		qp_free(m->qp[i]);
	for (uint32_t i = 0; i < MODEL_OBJS; i++) {
		mlx5_model_cq_free(m, i);
		mlx5_model_srq_free(m, i);
		mlx5_model_uar_free(m, i);
	}
	free(m);
}

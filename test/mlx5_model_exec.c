/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_model_exec.c - the model's network: entries of send queues are read and done
 */
#include <stdlib.h>
#include <string.h>

#include "mlx5_model_int.h"

/** An entry as it was read: in one piece, its control segment taken apart. */
struct entry {
	uint8_t bytes[MODEL_WQE_MAX] __attribute__((aligned(16)));
	uint32_t at;  /* bytes looked at */
	uint32_t len; /* bytes it says it has */
	uint32_t blocks;
	uint8_t opcode, mode;
	uint32_t imm;
};

static const void *
seg_take(struct entry *e, uint32_t len)
{
	const void *seg = e->bytes + e->at;

	if (e->at + len > e->len)
		return NULL;
	e->at += len;
	return seg;
}

/* @return false: it is no entry */
static bool
entry_read(struct mlx5_model *m, const struct model_qp *q, struct entry *e)
{
	const struct mlx5_wqe_ctrl_seg *c = (const void *)e->bytes;
	uint32_t idx, qpn;

	model_wqe_read(q, q->next, 1, e->bytes);
	idx = be32toh(c->opmod_idx_opcode) >> 8;
	qpn = be32toh(c->qpn_ds) >> 8;
	e->opcode = be32toh(c->opmod_idx_opcode);
	e->len = (be32toh(c->qpn_ds) & 0x3f) * 16;
	e->mode = c->fm_ce_se;
	e->imm = c->imm;
	e->at = sizeof(*c);
	e->blocks = (e->len + MLX5_SEND_WQE_BB - 1) / MLX5_SEND_WQE_BB;
	if (idx != q->next || qpn != q->qpn || e->len < sizeof(*c) || c->signature != 0 ||
		c->dci_stream_channel_id != 0 ||
		(e->mode & ~(MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE)) != 0) {
		model_violation(m, "entry %u of %#x: its control segment is wrong", q->next, q->qpn);
		return false;
	}
	if (e->blocks > (uint16_t)(q->shown - q->next)) {
		model_violation(m, "entry %u of %#x: longer than what is shown", q->next, q->qpn);
		return false;
	}
	model_wqe_read(q, q->next, e->blocks, e->bytes);
	return true;
}

/* A piece of data that a key names, as entry_data(). */
static void *
entry_piece(struct mlx5_model *m, struct entry *e, uint32_t *len, uint8_t *syndrome)
{
	const struct mlx5_wqe_data_seg *d = seg_take(e, sizeof(*d));
	void *p = NULL;

	*len = d != NULL ? be32toh(d->byte_count) : 0;
	if (d != NULL && (*len & MLX5_INLINE_SEG) == 0)
		p = model_mem(m, be32toh(d->lkey), be64toh(d->addr), *len, false);
	if (p == NULL)
		*syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	return p;
}

/* More pieces behind the first: all of them, together. */
static void *
entry_gather(struct mlx5_model *m, struct entry *e, const void *first, uint32_t *len, uint8_t *syndrome)
{
	static uint8_t all[MODEL_MSG_MAX];
	uint32_t more;
	void *p;

	if (*len > sizeof(all))
		return NULL;
	memcpy(all, first, *len);
	while (e->at != e->len) {
		p = entry_piece(m, e, &more, syndrome);
		if (p == NULL || more > sizeof(all) - *len)
			return NULL;
		memcpy(all + *len, p, more);
		*len += more;
	}
	return all;
}

/*
 * The entry's data. @return where it lies, NULL with *syndrome set when a key does not give it.
 * to: it will be written, so it may not be inline.
 */
static void *
entry_data(struct mlx5_model *m, const struct model_qp *q, struct entry *e, bool to, uint32_t *len,
	uint8_t *syndrome)
{
	const uint32_t *head = (const void *)(e->bytes + e->at);
	void *p = NULL;

	*len = 0;
	if (e->at == e->len)
		return e->bytes;
	if (be32toh(*head) & MLX5_INLINE_SEG) {
		*len = be32toh(*head) & ~MLX5_INLINE_SEG;
		p = e->bytes + e->at + sizeof(*head);
		if (to || seg_take(e, (*len + sizeof(*head) + 15) / 16 * 16) == NULL)
			p = NULL;
	} else {
		p = entry_piece(m, e, len, syndrome);
		if (p != NULL && e->at != e->len && e->opcode == MLX5_OPCODE_SEND_IMM)
			p = entry_gather(m, e, p, len, syndrome);
	}
	if (*len == 0 || *len > MODEL_MSG_MAX || e->at != e->len || (p == NULL && *syndrome == 0)) {
		model_violation(m, "entry %u of %#x: its data makes no sense", q->next, q->qpn);
		*syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		p = NULL;
	}
	return p;
}

/* Take a slot of the peer's. @return false: there is none */
static bool
slot_take(struct mlx5_model *m, struct model_srq *s, uint16_t *index, struct mlx5_wqe_data_seg *d)
{
	const uint8_t *at;
	const struct mlx5_wqe_srq_next_seg *next;

	model_srq_look(m, s);
	if (s->avail == 0)
		return false;
	*index = s->next;
	at = s->buf + (size_t)*index * s->stride;
	next = (const void *)at;
	memcpy(d, at + sizeof(*next), sizeof(*d));
	if (model_hash(d, sizeof(*d)) != s->was[*index])
		model_violation(m, "slot %u was changed after it was posted", *index);
	s->was[*index] = 0;
	s->next = be16toh(next->next_wqe_index);
	s->avail--;
	return true;
}

/* How the bytes of an arrival or an answer may come inside of the completion. */
static uint8_t
scatter_how(struct mlx5_model *m, const struct model_cq *cq, uint32_t len)
{
	if (len == 0 || (!m->inlines && model_rng(m) % 4 == 0))
		return 0;
	if (cq->size == 128 && len <= 64)
		return MLX5_INLINE_SCATTER_64;
	return cq->size == 64 && len <= 32 ? MLX5_INLINE_SCATTER_32 : 0;
}

/* @return what the sender learns; -1: it has to wait */
static int
do_send(struct mlx5_model *m, struct model_qp *peer, const struct entry *e, const void *data,
	uint32_t len)
{
	struct mlx5_wqe_data_seg d;
	struct model_arrival *a;
	uint16_t index;
	void *to;

	if (!slot_take(m, peer->srq, &index, &d)) {
		m->stat.rnr_waits++;
		return -1;
	}
	a = &peer->arrivals[(peer->arr_head + peer->arr_n++) % peer->srq->n];
	*a = (struct model_arrival){.stamp = ++m->stamp, .wqe = index, .len = len, .imm = e->imm,
		.opcode = MLX5_CQE_RESP_SEND_IMM};
	to = model_mem(m, be32toh(d.lkey), be64toh(d.addr), be32toh(d.byte_count), false);
	if (to == NULL)
		model_violation(m, "slot %u: its key does not give its memory", index);
	if (to == NULL || len > be32toh(d.byte_count)) {
		a->opcode = MLX5_CQE_RESP_ERR;
		a->syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
		peer->failed = true;
		return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
	}
	a->scatter = scatter_how(m, peer->rx, len);
	memcpy(a->scatter != 0 ? a->data : to, data, len);
	return 0;
}

/* Change 8 bytes of the peer's; the value before goes to *old. */
static int
do_atomic(struct mlx5_model *m, const struct entry *e, const struct mlx5_wqe_raddr_seg *r,
	const struct mlx5_wqe_atomic_seg *a, uint64_t *old)
{
	uint64_t add = be64toh(a->swap_add), now;
	void *p = model_mem(m, be32toh(r->rkey), be64toh(r->raddr), 8, true);

	if (be64toh(r->raddr) % 8 != 0)
		return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
	if (p == NULL)
		return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
	memcpy(old, p, 8);
	if (e->opcode == MLX5_OPCODE_ATOMIC_FA)
		now = *old + add;
	else
		now = *old == be64toh(a->compare) ? add : *old;
	memcpy(p, &now, 8);
	return 0;
}

/* What names the peer's memory. @return false: the entry is too short */
static bool
entry_remote(struct entry *e, const struct mlx5_wqe_raddr_seg **r,
	const struct mlx5_wqe_atomic_seg **a)
{
	bool send = e->opcode == MLX5_OPCODE_SEND_IMM;
	bool atomic = e->opcode == MLX5_OPCODE_ATOMIC_FA || e->opcode == MLX5_OPCODE_ATOMIC_CS;

	*r = send ? NULL : seg_take(e, sizeof(**r));
	*a = atomic ? seg_take(e, sizeof(**a)) : NULL;
	return (send || (*r != NULL && (*r)->reserved == 0)) && (!atomic || *a != NULL);
}

/* Do it all, but for writing what a READ or an atomic brought. @return as do_send() */
static int
entry_do(struct mlx5_model *m, struct model_qp *q, struct entry *e, struct model_end *end)
{
	struct model_qp *peer = model_qp(m, q->peer);
	const struct mlx5_wqe_raddr_seg *r;
	const struct mlx5_wqe_atomic_seg *a;
	bool reads = e->opcode == MLX5_OPCODE_RDMA_READ, ok = entry_remote(e, &r, &a);
	uint8_t syndrome = 0;
	void *data, *p;
	uint32_t len;

	data = entry_data(m, q, e, reads || a != NULL, &len, &syndrome);
	if (!ok || (a != NULL && len != 8))
		model_violation(m, "entry %u of %#x: bad segments", q->next, q->qpn);
	if (data == NULL || !ok)
		return syndrome != 0 ? syndrome : MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (model_chance(m, MLX5_FAULT_RETRY) || peer == NULL || peer->failed)
		return MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
	if (peer->peer == 0)
		return -1; /* it is not ready; its answers would be lost until it is */
	if (e->opcode == MLX5_OPCODE_SEND_IMM) {
		if (model_chance(m, MLX5_FAULT_RNR))
			return MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR;
		return do_send(m, peer, e, data, len);
	}
	end->len = len;
	end->to = (uintptr_t)data;
	if (a != NULL)
		return do_atomic(m, e, r, a, end->small);
	if (len == 0)
		return 0; /* keys are not looked at */
	p = model_mem(m, be32toh(r->rkey), be64toh(r->raddr), len, true);
	if (p == NULL) {
		peer->failed = true;
		return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
	}
	if (!reads) {
		memcpy(p, data, len);
		return 0;
	}
	end->data = len > sizeof(end->small) ? malloc(len) : NULL;
	memcpy(end->data != NULL ? end->data : (uint8_t *)end->small, p, len);
	return 0;
}

static bool
is_opcode(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_RDMA_WRITE ||
		opcode == MLX5_OPCODE_RDMA_READ || opcode == MLX5_OPCODE_ATOMIC_FA ||
		opcode == MLX5_OPCODE_ATOMIC_CS;
}

/* The answer has not come: what it brings is not there, and fenced entries wait. */
static bool
is_read(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_RDMA_READ || opcode == MLX5_OPCODE_ATOMIC_FA ||
		opcode == MLX5_OPCODE_ATOMIC_CS;
}

bool
model_begin(struct mlx5_model *m, struct model_qp *q)
{
	struct entry e;
	struct model_end end = {0};
	int rc;

	if (q->next == q->shown)
		return false;
	if (!entry_read(m, q, &e)) {
		q->next = q->shown; /* nothing after it can be found */
		return false;
	}
	if (e.mode & MLX5_WQE_CTRL_FENCE && q->n_reads != 0 && !q->failed)
		return false;
	if (!q->failed && model_chance(m, MLX5_FAULT_FLUSH))
		q->failed = true;
	if (!is_opcode(e.opcode)) {
		model_violation(m, "entry %u of %#x: no opcode %#x", q->next, q->qpn, e.opcode);
		rc = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	} else if (q->failed) {
		rc = MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
	} else {
		rc = entry_do(m, q, &e, &end);
		if (rc < 0)
			return false;
	}
	end.hash = model_hash(e.bytes, e.blocks * MLX5_SEND_WQE_BB);
	end.stamp = ++m->stamp;
	end.wqe = q->next;
	end.blocks = e.blocks;
	end.opcode = e.opcode;
	end.syndrome = rc;
	/* what fails tells so, signalled or not; what is flushed after it may keep silent */
	end.signal = e.mode & MLX5_WQE_CTRL_CQ_UPDATE ||
		(rc != 0 && (rc != MLX5_CQE_SYNDROME_WR_FLUSH_ERR || model_rng(m) % 2 == 0));
	q->ends[(q->end_head + q->end_n++) % q->n] = end;
	q->n_reads += is_read(e.opcode);
	q->failed |= rc != 0;
	q->next += e.blocks;
	return true;
}

static struct mlx5_cqe64 *
cqe_put(struct mlx5_model *m, struct model_cq *cq, uint64_t stamp)
{
	uint8_t *at = cq->buf + (size_t)(cq->pi & (cq->n - 1)) * cq->size;

	if (((cq->pi - be32toh(cq->dbrec[0])) & 0xffffff) >= cq->n)
		model_violation(m, "a completion queue of %u overflows", cq->n);
	m->stat.overtaken += stamp < m->told;
	m->told = stamp > m->told ? stamp : m->told;
	memset(at, 0xa5, cq->size - 1); /* whoever reads it now is found out */
	return (struct mlx5_cqe64 *)(at + cq->size - sizeof(struct mlx5_cqe64));
}

static void
cqe_done(struct mlx5_model *m, struct model_cq *cq, struct mlx5_cqe64 *cqe, uint8_t opcode,
	uint8_t scatter)
{
	uint8_t owner = (cq->pi & cq->n) != 0;

	cqe->op_own = opcode << 4 | scatter | owner;
	cq->pi++;
	if (cq->armed)
		model_cq_event(m, cq);
}

static void
cqe_error(struct mlx5_model *m, struct mlx5_cqe64 *cqe, uint8_t syndrome, uint8_t opcode,
	uint32_t qpn)
{
	static const uint8_t fault_of[256] = {
		[MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] = MLX5_FAULT_RETRY,
		[MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR] = MLX5_FAULT_RNR,
		[MLX5_CQE_SYNDROME_WR_FLUSH_ERR] = MLX5_FAULT_FLUSH,
	};
	struct mlx5_err_cqe *err = (struct mlx5_err_cqe *)cqe;

	err->syndrome = syndrome;
	err->vendor_err_synd = syndrome | 0x80;
	err->s_wqe_opcode_qpn = htobe32((uint32_t)opcode << 24 | qpn);
	if (fault_of[syndrome] != 0)
		m->stat.planted[fault_of[syndrome]]++;
}

/* What it brought goes where the entry said, or inside of the completion. */
static uint8_t
end_data(struct mlx5_model *m, struct model_qp *q, struct model_end *end, uint8_t *inside)
{
	const uint8_t *from = end->data != NULL ? end->data : (uint8_t *)end->small;
	uint8_t scatter = end->signal ? scatter_how(m, q->tx, end->len) : 0;

	if (scatter != 0)
		m->stat.inline_tx++;
	memcpy(scatter != 0 ? inside : (uint8_t *)(uintptr_t)end->to, from, end->len);
	return scatter;
}

bool
model_end(struct mlx5_model *m, struct model_qp *q)
{
	struct model_end *end = &q->ends[q->end_head];
	uint8_t bytes[MODEL_WQE_MAX], scatter = 0, inside[64];
	struct mlx5_cqe64 *cqe;

	if (q->end_n == 0)
		return false;
	model_wqe_read(q, end->wqe, end->blocks, bytes);
	if (model_hash(bytes, end->blocks * MLX5_SEND_WQE_BB) != end->hash)
		model_violation(m, "entry %u of %#x was changed before it ended", end->wqe, q->qpn);
	if (is_read(end->opcode)) {
		q->n_reads--;
		if (end->syndrome == 0)
			scatter = end_data(m, q, end, inside);
	}
	m->stat.entries += end->syndrome == 0;
	if (end->signal) {
		cqe = cqe_put(m, q->tx, end->stamp);
		cqe->wqe_counter = htobe16(end->wqe);
		cqe->sop_drop_qpn = htobe32((uint32_t)end->opcode << 24 | q->qpn);
		cqe->byte_cnt = htobe32(end->len);
		if (end->syndrome != 0)
			cqe_error(m, cqe, end->syndrome, end->opcode, q->qpn);
		if (scatter != 0)
			memcpy(scatter == MLX5_INLINE_SCATTER_32 ? cqe : cqe - 1, inside, end->len);
		cqe_done(m, q->tx, cqe, end->syndrome != 0 ? MLX5_CQE_REQ_ERR : MLX5_CQE_REQ,
			scatter);
	}
	free(end->data);
	q->end_head = (q->end_head + 1) % q->n;
	q->end_n--;
	return true;
}

bool
model_tell(struct mlx5_model *m, struct model_qp *q)
{
	struct model_arrival *a = &q->arrivals[q->arr_head];
	struct mlx5_cqe64 *cqe;

	if (q->arr_n == 0)
		return false;
	cqe = cqe_put(m, q->rx, a->stamp);
	cqe->wqe_counter = htobe16(a->wqe);
	cqe->sop_drop_qpn = htobe32(q->qpn);
	cqe->byte_cnt = htobe32(a->len);
	cqe->imm_inval_pkey = a->imm;
	if (a->syndrome != 0)
		cqe_error(m, cqe, a->syndrome, 0, q->qpn);
	if (a->scatter != 0) {
		m->stat.inline_rx++;
		memcpy(a->scatter == MLX5_INLINE_SCATTER_32 ? cqe : cqe - 1, a->data, a->len);
	}
	cqe_done(m, q->rx, cqe, a->opcode, a->scatter);
	q->arr_head = (q->arr_head + 1) % q->srq->n;
	q->arr_n--;
	return true;
}

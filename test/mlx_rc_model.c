/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_rc_model.c - the model's reliable queue pairs, driven by libibverbs
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/tm_types.h>

#include "mlx5_verbs.h"
#include "mlx_tm_model_int.h"
#include "test_util.h"

#define QPN_FIRST 0x2000u

static LIST_HEAD(, tm_qp) qps = LIST_HEAD_INITIALIZER(qps);
static uint32_t n_qps, next_qpn = QPN_FIRST;

static struct tm_qp *
qp_find(uint32_t qpn)
{
	struct tm_qp *q;

	LIST_FOREACH(q, &qps, link)
		if (q->ibv.qp_num == qpn)
			break;
	return q;
}

struct ibv_qp *
mlx_tm_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct tm_qp *q = calloc(1, sizeof(*q));

	q->ibv = (struct ibv_qp){.context = pd->context, .pd = pd, .qp_num = next_qpn++,
		.qp_type = IBV_QPT_RC, .recv_cq = attr->recv_cq, .send_cq = attr->send_cq};
	q->srq = (struct tm_srq *)attr->srq;
	q->max = attr->cap.max_send_wr;
	q->sends = calloc(TM_SENDS, sizeof(q->sends[0]));
	LIST_INSERT_HEAD(&qps, q, link);
	n_qps++;
	return &q->ibv;
}

/* The first send is over, one way or another. */
static void
send_over(struct tm_qp *q, enum ibv_wc_status status)
{
	struct tm_send *s = &q->sends[q->head % TM_SENDS];
	struct ibv_wc wc = {.wr_id = s->wr.wr_id, .status = status, .opcode = IBV_WC_SEND,
		.qp_num = q->ibv.qp_num};

	free(s->data);
	q->head++;
	q->n--;
	q->begun = false;
	if (status != IBV_WC_SUCCESS)
		q->failed = true;
	if (status != IBV_WC_SUCCESS || (s->wr.send_flags & IBV_SEND_SIGNALED))
		mlx5_verbs_done(q->ibv.send_cq, &wc);
}

static void
flush(struct tm_qp *q)
{
	while (q->n != 0)
		send_over(q, IBV_WC_WR_FLUSH_ERR);
}

int
mlx_tm_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct tm_qp *q = (struct tm_qp *)ibv;

	if (mask & IBV_QP_PORT)
		q->port = mlx5_verbs_port(ibv->context, attr->port_num);
	if (attr->qp_state == IBV_QPS_RTR) {
		q->peer = attr->dest_qp_num;
		q->way = attr->ah_attr;
	}
	if (attr->qp_state == IBV_QPS_ERR) {
		q->failed = true;
		flush(q);
	}
	return 0;
}

int
mlx_tm_destroy_qp(struct ibv_qp *ibv)
{
	struct tm_qp *q = (struct tm_qp *)ibv;

	for (; q->n != 0; q->n--)
		free(q->sends[q->head++ % TM_SENDS].data);
	LIST_REMOVE(q, link);
	n_qps--;
	free(q->sends);
	free(q);
	return 0;
}

int
mlx_tm_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct tm_qp *q = (struct tm_qp *)ibv;

	for (; wr != NULL; wr = wr->next) {
		struct tm_send *s = &q->sends[(q->head + q->n) % TM_SENDS];

		*bad = wr;
		if (q->n == q->max)
			return ENOMEM;
		*s = (struct tm_send){.wr = *wr};
		s->n_pieces = wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++) {
			s->pieces[i] = wr->sg_list[i];
			s->sge = s->pieces[i];
		}
		if (wr->num_sge > 1)
			s->sge = (struct ibv_sge){.length = s->pieces[0].length + s->pieces[1].length};
		if ((wr->send_flags & IBV_SEND_INLINE) && s->sge.length != 0) {
			s->data = malloc(s->sge.length);
			memcpy(s->data, (const void *)(uintptr_t)s->sge.addr, s->sge.length);
		}
		q->n++;
		if (q->failed)
			flush(q);
	}
	if (mlx_tm.late == 0)
		tm_qps_run();
	else if (tm_armed())
		mlx_tm_model_run();
	return 0;
}

/* Together, as they are now. */
static uint8_t *
gathered(const struct tm_qp *q, struct tm_send *s)
{
	uint32_t at = 0;

	free(s->data);
	s->data = malloc(s->sge.length);
	for (int i = 0; i < s->n_pieces; i++) {
		const struct ibv_sge *p = &s->pieces[i];
		const uint8_t *mem = tm_mem(p->lkey, p->addr, p->length, false);

		if (mem == NULL || !mlx5_verbs_may_use(p->lkey, q->ibv.pd))
			return NULL;
		memcpy(s->data + at, mem, p->length);
		at += p->length;
	}
	return s->data;
}

/* The sender's bytes. @return NULL: it has no right to them */
static uint8_t *
local(const struct tm_qp *q, struct tm_send *s)
{
	static uint8_t nothing;

	if (s->n_pieces > 1)
		return gathered(q, s);
	if (s->sge.length == 0)
		return &nothing;
	if (s->data == NULL && !mlx5_verbs_may_use(s->sge.lkey, q->ibv.pd))
		return NULL;
	return s->data != NULL ? s->data : tm_mem(s->sge.lkey, s->sge.addr, s->sge.length, false);
}

static bool
do_send(struct tm_qp *q, struct tm_qp *to, struct tm_send *s, uint8_t *from)
{
	if (q->begun) {
		tm_recv_rest(to, &q->met, from + sizeof(struct ibv_tmh),
			s->sge.length - sizeof(struct ibv_tmh), s->wr.imm_data);
		return true;
	}
	switch (tm_recv(to, from, s->sge.length, s->wr.imm_data, &q->met)) {
	case TM_TOOK:
		return true;
	case TM_BEGAN:
		q->begun = true;
		return false;
	default:
		return false;
	}
}

/* @return whether the peer's memory allows it */
static bool
do_rma(const struct tm_qp *to, const struct tm_send *s, uint8_t *at)
{
	bool atomic = s->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		s->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint64_t remote = atomic ? s->wr.wr.atomic.remote_addr : s->wr.wr.rdma.remote_addr;
	uint32_t key = atomic ? s->wr.wr.atomic.rkey : s->wr.wr.rdma.rkey;
	uint64_t *word, old;
	uint8_t *there;

	if (s->sge.length == 0)
		return true;
	there = tm_mem(key, remote, s->sge.length, true);
	if (there == NULL || !mlx5_verbs_may_use(key, to->ibv.pd))
		return false;
	word = (uint64_t *)(uintptr_t)there;
	switch (s->wr.opcode) {
	case IBV_WR_RDMA_WRITE:
		memcpy(there, at, s->sge.length);
		break;
	case IBV_WR_RDMA_READ:
		memcpy(at, there, s->sge.length);
		break;
	default:
		old = *word;
		if (s->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			*word += s->wr.wr.atomic.compare_add;
		else if (old == s->wr.wr.atomic.compare_add)
			*word = s->wr.wr.atomic.swap;
		memcpy(at, &old, sizeof(old));
		break;
	}
	return true;
}

/* Go on with the first send. @return whether that did something */
static bool
step(struct tm_qp *q)
{
	struct tm_send *s = &q->sends[q->head % TM_SENDS];
	struct tm_qp *to = qp_find(q->peer);
	uint8_t *at;

	if (q->n == 0)
		return false;
	at = local(q, s);
	if (at == NULL)
		tm_wrong("what is sent is not registered");
	if (to == NULL || to->failed || to->peer != q->ibv.qp_num || at == NULL ||
		!mlx5_verbs_arrives(q->port, to->port, &q->way)) {
		send_over(q, IBV_WC_RETRY_EXC_ERR);
		flush(q);
		return true;
	}
	if (s->wr.opcode == IBV_WR_SEND_WITH_IMM) {
		bool began = q->begun;

		if (!do_send(q, to, s, at))
			return q->begun && !began;
	} else if (!do_rma(to, s, at)) {
		send_over(q, IBV_WC_REM_ACCESS_ERR);
		flush(q);
		return true;
	}
	send_over(q, IBV_WC_SUCCESS);
	return true;
}

bool
tm_qps_step(void)
{
	uint32_t skip = n_qps != 0 ? util_splitmix64(&mlx_tm.rng) % n_qps : 0;
	struct tm_qp *q;

	LIST_FOREACH(q, &qps, link)
		if (skip-- == 0)
			return step(q);
	return false;
}

/* What has begun waits; but only as long as nothing follows. */
void
tm_qps_run(void)
{
	bool did = true;
	struct tm_qp *q;

	while (did) {
		did = false;
		LIST_FOREACH(q, &qps, link)
			if (!q->begun || q->n > 1)
				did |= step(q);
	}
}

bool
tm_qps_begun(void)
{
	struct tm_qp *q;

	LIST_FOREACH(q, &qps, link)
		if (q->begun)
			return true;
	return false;
}

bool
tm_qps_rest(void)
{
	bool did = false;
	struct tm_qp *q;

	LIST_FOREACH(q, &qps, link)
		if (q->begun)
			did |= step(q);
	return did;
}

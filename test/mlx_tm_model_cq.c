/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_model_cq.c - the model's extended completion queues
 */
#include <errno.h>
#include <stdlib.h>

#include "mlx5_verbs.h"
#include "mlx_tm_model_int.h"

static LIST_HEAD(, tm_cq) cqs = LIST_HEAD_INITIALIZER(cqs);

bool
tm_armed(void)
{
	struct tm_cq *cq;

	LIST_FOREACH(cq, &cqs, link)
		if (cq->armed)
			return true;
	return mlx5_verbs_events();
}

bool
mlx_tm_model_waits(void)
{
	struct tm_cq *cq;

	LIST_FOREACH(cq, &cqs, link)
		if (cq->n != 0)
			return true;
	return false;
}

void
tm_cqe_put(struct tm_cq *cq, const struct tm_cqe *cqe, uint32_t at)
{
	if (cq->n == cq->size) {
		tm_wrong("a completion queue overflows");
		abort();
	}
	for (uint32_t i = cq->n++; i > at; i--)
		cq->cqes[(cq->head + i) % cq->size] = cq->cqes[(cq->head + i - 1) % cq->size];
	cq->cqes[(cq->head + at) % cq->size] = *cqe;
	if (cq->armed)
		mlx5_verbs_tell(ibv_cq_ex_to_cq(&cq->ex));
	cq->armed = false;
}

void
tm_cqe_add(struct tm_cq *cq, const struct tm_cqe *cqe)
{
	tm_cqe_put(cq, cqe, cq->n);
}

static int
next_poll(struct ibv_cq_ex *ex)
{
	struct tm_cq *cq = tm_cq(ex);

	if (cq->n == 0 || (mlx_tm.burst != 0 && cq->told++ == mlx_tm.burst))
		return ENOENT;
	cq->now = cq->cqes[cq->head];
	cq->head = (cq->head + 1) % cq->size;
	cq->n--;
	ex->status = cq->now.status;
	ex->wr_id = cq->now.id;
	if (cq->now.frees != 0)
		cq->srq->used[cq->now.frees - 1] = false;
	if (cq->now.over != 0)
		cq->srq->over = cq->now.over;
	return 0;
}

static int
start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	mlx_tm_model_work();
	tm_cq(ex)->told = 0;
	return next_poll(ex);
}

static void
end_poll(struct ibv_cq_ex *ex)
{
	(void)ex;
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ex)
{
	return tm_cq(ex)->now.opcode;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ex)
{
	return tm_cq(ex)->now.len;
}

static __be32
read_imm_data(struct ibv_cq_ex *ex)
{
	return tm_cq(ex)->now.imm;
}

static uint32_t
read_qp_num(struct ibv_cq_ex *ex)
{
	return tm_cq(ex)->now.qpn;
}

static unsigned
read_wc_flags(struct ibv_cq_ex *ex)
{
	return tm_cq(ex)->now.flags;
}

static void
read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	*info = tm_cq(ex)->now.info;
}

struct ibv_cq_ex *
mlx_tm_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct tm_cq *cq = calloc(1, sizeof(*cq));

	cq->ex = (struct ibv_cq_ex){.context = ctx, .channel = attr->channel, .cqe = attr->cqe,
		.start_poll = start_poll, .next_poll = next_poll, .end_poll = end_poll,
		.read_opcode = read_opcode, .read_byte_len = read_byte_len,
		.read_imm_data = read_imm_data, .read_qp_num = read_qp_num,
		.read_wc_flags = read_wc_flags};
	if (attr->wc_flags & IBV_WC_EX_WITH_TM_INFO)
		cq->ex.read_tm_info = read_tm_info;
	cq->size = attr->cqe;
	cq->cqes = calloc(cq->size, sizeof(cq->cqes[0]));
	LIST_INSERT_HEAD(&cqs, cq, link);
	return &cq->ex;
}

static struct tm_cq *
cq_find(const struct ibv_cq *ibv)
{
	struct tm_cq *cq;

	LIST_FOREACH(cq, &cqs, link)
		if ((void *)cq == (const void *)ibv)
			break;
	return cq;
}

bool
mlx_tm_destroy_cq(struct ibv_cq *ibv)
{
	struct tm_cq *cq = cq_find(ibv);

	if (cq == NULL)
		return false;
	LIST_REMOVE(cq, link);
	free(cq->cqes);
	free(cq);
	return true;
}

bool
mlx_tm_arm(struct ibv_cq *ibv)
{
	struct tm_cq *cq = cq_find(ibv);

	if (mlx5_verbs.plain)
		mlx_tm_model_run(); /* who sleeps gives it no time */
	if (cq != NULL)
		cq->armed = true;
	return cq != NULL;
}

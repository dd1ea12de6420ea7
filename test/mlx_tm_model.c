/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_model.c - the model's lists of receives, their commands, and what meets them
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/tm_types.h>

#include "mlx5_model_int.h"
#include "mlx5_verbs.h"
#include "mlx_tm_model_int.h"
#include "test_util.h"

#define STEPS 4 /* when late, each time somebody looks */
#define RUN_MAX 1000000
#define SLOTS_MIN 32 /* besides the one that is taken */

struct mlx_tm_model mlx_tm;

static LIST_HEAD(, tm_srq) srqs = LIST_HEAD_INITIALIZER(srqs);

void
tm_wrong(const char *what)
{
	if (mlx_tm.wrong == NULL)
		mlx_tm.wrong = what;
}

bool
tm_chance(uint32_t one_in)
{
	return one_in != 0 && util_splitmix64(&mlx_tm.rng) % one_in == 0;
}

void *
tm_mem(uint32_t key, uint64_t addr, uint64_t len, bool remote)
{
	return model_mem(mlx5_verbs.m, key, addr, len, remote);
}

void
mlx_tm_model_reset(uint32_t list_n)
{
	mlx_tm = (struct mlx_tm_model){.rng = 1, .caps = {.max_rndv_hdr_size = 64,
		.max_num_tags = list_n, .flags = IBV_TM_CAP_RC, .max_ops = 1 << 14, .max_sge = 1}};
}

int
mlx_tm_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
	struct ibv_device_attr_ex *attr, size_t len)
{
	(void)ctx;
	(void)in;
	memset(attr, 0, len);
	attr->tm_caps = mlx_tm.caps;
	return 0;
}

/* -- receive queues -- */

struct ibv_srq *
mlx_tm_create_srq(struct ibv_srq_init_attr *attr)
{
	struct tm_srq *s = calloc(1, sizeof(*s));

	s->ibv.context = mlx5_verbs.ctx;
	s->slot_max = attr->attr.max_wr;
	s->slots = calloc(s->slot_max, sizeof(s->slots[0]));
	s->sges = calloc(s->slot_max, sizeof(s->sges[0]));
	LIST_INSERT_HEAD(&srqs, s, link);
	return &s->ibv;
}

struct ibv_srq *
mlx_tm_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr plain = {.attr = attr->attr};
	struct tm_srq *s;

	(void)ctx;
	errno = mlx_tm.srq_err;
	if (mlx_tm.srq_err == 0 && (attr->srq_type != IBV_SRQT_TM ||
		    tm_cq((struct ibv_cq_ex *)attr->cq)->ex.read_tm_info == NULL ||
		    attr->tm_cap.max_num_tags == 0 ||
		    attr->tm_cap.max_num_tags > mlx_tm.caps.max_num_tags))
		errno = EINVAL;
	if (errno != 0)
		return NULL;
	s = (struct tm_srq *)mlx_tm_create_srq(&plain);
	s->cq = tm_cq((struct ibv_cq_ex *)attr->cq);
	s->cq->srq = s;
	s->max = attr->tm_cap.max_num_tags;
	s->cmd_max = attr->tm_cap.max_ops;
	s->cmds = calloc(s->cmd_max, sizeof(s->cmds[0]));
	return &s->ibv;
}

int
mlx_tm_destroy_srq(struct ibv_srq *srq)
{
	struct tm_srq *s = (struct tm_srq *)srq;

	LIST_REMOVE(s, link);
	free(s->cmds);
	free(s->slots);
	free(s->sges);
	free(s);
	return 0;
}

int
mlx_tm_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct tm_srq *s = (struct tm_srq *)srq;

	for (; wr != NULL; wr = wr->next) {
		uint32_t i = (s->slot_head + s->slot_n) % s->slot_max;

		*bad = wr;
		if (s->slot_n == s->slot_max)
			return ENOMEM;
		s->slots[i] = *wr;
		s->sges[i] = wr->sg_list[0];
		s->slot_n++;
	}
	return 0;
}

/* Into a slot. @return NULL: there is none */
static const struct ibv_recv_wr *
slot_take(struct tm_srq *s, const uint8_t *data, uint32_t len)
{
	const struct ibv_recv_wr *slot = &s->slots[s->slot_head];
	const struct ibv_sge *sge = &s->sges[s->slot_head];
	void *to;

	if (s->slot_n == 0)
		return NULL;
	to = tm_mem(sge->lkey, sge->addr, len, false);
	if (to == NULL || len > sge->length)
		tm_wrong("a slot is not registered, or too short");
	else
		memcpy(to, data, len);
	s->slot_head = (s->slot_head + 1) % s->slot_max;
	s->slot_n--;
	return slot;
}

/* -- the list -- */

static void
list_remove(struct tm_srq *s, uint32_t i)
{
	memmove(&s->list[i], &s->list[i + 1], (--s->n - i) * sizeof(s->list[0]));
}

static void
count_told(struct tm_srq *s, uint16_t count)
{
	if (mlx_tm.bug == MODEL_BUG_COUNT)
		count = s->given;
	if ((uint16_t)(s->given - count) > INT16_MAX)
		tm_wrong("software has dealt with more than it was given");
	if (count != s->given)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		s->list[i].active = true;
}

static uint32_t
list_find(const struct tm_srq *s, uint32_t handle)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->list[i].handle == handle)
			break;
	return i;
}

/* @return what its completion says */
static enum ibv_wc_status
command_del(struct tm_srq *s, const struct tm_cmd *c, struct tm_cqe *cqe)
{
	uint32_t i = list_find(s, c->wr.tm.handle);
	bool there = i != s->n;

	if (!(c->wr.flags & IBV_OPS_SIGNALED) && (!there || s->list[i].active))
		tm_wrong("a receive is taken back by force that a message may have met");
	if (there) {
		list_remove(s, i);
		cqe->frees = c->wr.tm.handle + 1;
		return IBV_WC_SUCCESS;
	}
	mlx_tm.late_removals++;
	return mlx_tm.bug == MODEL_BUG_CANCEL ? IBV_WC_SUCCESS : IBV_WC_TM_ERR;
}

/* Before what messages had to say, but not before what other commands had. */
static uint32_t
place_in_front(const struct tm_cq *cq)
{
	uint32_t i = cq->n;

	while (i > 0 && cq->cqes[(cq->head + i - 1) % cq->size].over == 0)
		i--;
	return i;
}

static void
command_run(struct tm_srq *s)
{
	static const enum ibv_wc_opcode opcodes[] = {IBV_WC_TM_ADD, IBV_WC_TM_DEL, IBV_WC_TM_SYNC};
	struct tm_cmd c = s->cmds[s->cmd_head];
	struct tm_cqe cqe = {.id = c.wr.wr_id, .opcode = opcodes[c.wr.opcode], .qpn = 1,
		.over = s->posted - s->cmd_n + 1};
	bool late = false;

	s->cmd_head = (s->cmd_head + 1) % s->cmd_max;
	s->cmd_n--;
	if (mlx_tm.dead) {
		cqe.status = IBV_WC_WR_FLUSH_ERR;
		tm_cqe_add(s->cq, &cqe);
		return;
	}
	if (c.wr.opcode == IBV_WR_TAG_ADD)
		s->list[s->n++] = (struct tm_entry){.handle = c.wr.tm.handle,
			.tag = c.wr.tm.add.tag, .mask = c.wr.tm.add.mask,
			.id = c.wr.tm.add.recv_wr_id, .sge = c.sge};
	if (c.wr.opcode == IBV_WR_TAG_DEL) {
		late = list_find(s, c.wr.tm.handle) == s->n;
		cqe.buf = s->bufs[c.wr.tm.handle];
		cqe.status = command_del(s, &c, &cqe);
	}
	if (c.wr.flags & IBV_OPS_TM_SYNC)
		count_told(s, c.wr.tm.unexpected_cnt);
	if (c.wr.opcode == IBV_WR_TAG_ADD && !s->list[s->n - 1].active)
		mlx_tm.held_back++;
	if (c.wr.flags & IBV_OPS_SIGNALED)
		tm_cqe_put(s->cq, &cqe, late && mlx_tm.front ? place_in_front(s->cq) : s->cq->n);
}

/* As a provider does it when a command is posted. */
static int
command_check(struct tm_srq *s, struct ibv_ops_wr *wr)
{
	uint32_t handle = s->next_handle;

	if (wr->opcode == IBV_WR_TAG_DEL) {
		if (wr->tm.handle >= TM_LIST_MAX || !s->used[wr->tm.handle])
			tm_wrong("a receive is taken out that is not there");
		else if (!(wr->flags & IBV_OPS_SIGNALED))
			s->used[wr->tm.handle] = false;
	}
	if (wr->opcode != IBV_WR_TAG_ADD)
		return 0;
	if ((wr->tm.add.tag & ~wr->tm.add.mask) != 0)
		tm_wrong("a tag has bits outside its mask");
	if (wr->tm.add.num_sge != 0 && tm_mem(wr->tm.add.sg_list->lkey, wr->tm.add.sg_list->addr,
		    wr->tm.add.sg_list->length, false) == NULL)
		tm_wrong("the memory of a receive is not registered");
	for (uint32_t i = 0; i < s->max; i++, handle = (handle + 1) % s->max)
		if (!s->used[handle]) {
			s->used[handle] = true;
			s->bufs[handle] = wr->tm.add.num_sge == 0 ? NULL
				: (void *)(uintptr_t)wr->tm.add.sg_list->addr;
			s->next_handle = (handle + 1) % s->max;
			wr->tm.handle = handle;
			return 0;
		}
	return ENOMEM;
}

int
mlx_tm_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	struct tm_srq *s = (struct tm_srq *)srq;
	struct tm_cmd *c = &s->cmds[(s->cmd_head + s->cmd_n) % s->cmd_max];
	int rc;

	*bad = wr;
	if (tm_chance(mlx_tm.full)) {
		mlx_tm.full_told++;
		return ENOMEM;
	}
	if (s->posted - s->over == s->cmd_max) {
		tm_wrong("more commands than were asked for");
		return ENOMEM;
	}
	rc = command_check(s, wr);
	if (rc != 0)
		return rc;
	c->wr = *wr;
	c->sge = wr->opcode == IBV_WR_TAG_ADD && wr->tm.add.num_sge != 0 ? wr->tm.add.sg_list[0]
									  : (struct ibv_sge){0};
	s->cmd_n++;
	s->posted++;
	while (!mlx_tm.held && (mlx_tm.late == 0 || tm_armed()) && s->cmd_n != 0)
		command_run(s);
	return 0;
}

/* -- messages -- */

void
tm_recv_rest(struct tm_qp *to, const struct tm_entry *met, const uint8_t *data, uint32_t len,
	uint32_t imm)
{
	struct tm_cqe cqe = {.id = met->id, .opcode = IBV_WC_TM_RECV, .flags = IBV_WC_TM_DATA_VALID |
		IBV_WC_WITH_IMM, .len = len, .imm = imm, .qpn = to->ibv.qp_num,
		.buf = (const void *)(uintptr_t)met->sge.addr, .frees = met->handle + 1};
	void *buf = tm_mem(met->sge.lkey, met->sge.addr, len, false);

	if (mlx_tm.broken != 0) {
		mlx_tm.broken--;
		cqe.status = IBV_WC_WR_FLUSH_ERR;
		cqe.flags = cqe.len = cqe.imm = 0;
	} else if (len > met->sge.length) {
		cqe.status = IBV_WC_LOC_LEN_ERR;
	} else if (len != 0 && buf == NULL) {
		tm_wrong("the memory of a receive is not registered any more");
	} else if (len != 0) {
		memcpy(buf, data, len);
	}
	tm_cqe_add(to->srq->cq, &cqe);
}

/* It has met a receive: in one part, or the first of two. */
static enum tm_took
recv_met(struct tm_qp *to, const struct tm_entry *met, const struct ibv_tmh *tmh,
	const uint8_t *data, uint32_t len, uint32_t imm)
{
	struct tm_cq *cq = to->srq->cq;
	struct tm_cqe *cqe;
	bool halves = mlx_tm.halves || tm_chance(2 * mlx_tm.late);

	mlx_tm.matched++;
	if (halves && len <= met->sge.length) {
		tm_cqe_add(cq, &(struct tm_cqe){.id = met->id, .opcode = IBV_WC_TM_RECV,
			.flags = IBV_WC_TM_MATCH, .qpn = to->ibv.qp_num,
			.buf = (const void *)(uintptr_t)met->sge.addr,
			.info = {be64toh(tmh->tag), be32toh(tmh->app_ctx)}});
		return TM_BEGAN;
	}
	tm_recv_rest(to, met, data, len, imm);
	cqe = &cq->cqes[(cq->head + cq->n - 1) % cq->size];
	cqe->flags |= IBV_WC_TM_MATCH;
	cqe->info = (struct ibv_wc_tm_info){be64toh(tmh->tag), be32toh(tmh->app_ctx)};
	return TM_TOOK;
}

static enum tm_took
recv_tagged(struct tm_qp *to, const uint8_t *data, uint32_t len, uint32_t imm,
	struct tm_entry *met)
{
	struct tm_srq *s = to->srq;
	struct ibv_tmh tmh;
	/* Both take part in the matching; what the device does with the second is not played. */
	bool tagged = len >= sizeof(tmh) && (data[0] == IBV_TMH_EAGER || data[0] == IBV_TMH_RNDV);
	const struct ibv_recv_wr *slot;

	memcpy(&tmh, data, len < sizeof(tmh) ? 1 : sizeof(tmh));
	for (uint32_t i = 0; tagged && i < s->n; i++) {
		*met = s->list[i];
		if (!met->active || (be64toh(tmh.tag) & met->mask) != met->tag)
			continue;
		list_remove(s, i);
		return recv_met(to, met, &tmh, data + sizeof(tmh), len - sizeof(tmh), imm);
	}
	slot = slot_take(s, data, len);
	if (slot == NULL)
		return TM_NO_SLOT;
	if (s->slot_n < SLOTS_MIN)
		tm_wrong("the device has fewer slots than it wants");
	s->given += tagged;
	mlx_tm.unexpected += tagged;
	tm_cqe_add(s->cq, &(struct tm_cqe){.id = slot->wr_id, .len = len, .imm = imm,
		.opcode = tagged ? IBV_WC_TM_RECV : IBV_WC_TM_NO_TAG, .flags = IBV_WC_WITH_IMM,
		.qpn = to->ibv.qp_num, .info = {tagged ? be64toh(tmh.tag) : 0, 0}});
	return TM_TOOK;
}

enum tm_took
tm_recv(struct tm_qp *to, const uint8_t *data, uint32_t len, uint32_t imm, struct tm_entry *met)
{
	const struct ibv_recv_wr *slot;
	struct ibv_wc wc = {.opcode = IBV_WC_RECV, .byte_len = len, .imm_data = imm,
		.wc_flags = IBV_WC_WITH_IMM, .qp_num = to->ibv.qp_num};

	if (to->srq->cq != NULL) {
		if (len == 0) {
			tm_wrong("a message has no byte to tell what it is");
			return TM_TOOK;
		}
		return recv_tagged(to, data, len, imm, met);
	}
	slot = slot_take(to->srq, data, len);
	if (slot == NULL)
		return TM_NO_SLOT;
	wc.wr_id = slot->wr_id;
	mlx5_verbs_done(to->ibv.recv_cq, &wc);
	return TM_TOOK;
}

/* -- what it does next -- */

bool
mlx_tm_model_command(void)
{
	struct tm_srq *s;

	LIST_FOREACH(s, &srqs, link)
		if (s->cmd_n != 0) {
			command_run(s);
			return true;
		}
	return false;
}

bool
mlx_tm_model_rest(void)
{
	return tm_qps_rest();
}

bool
mlx_tm_model_held(void)
{
	struct tm_srq *s;

	LIST_FOREACH(s, &srqs, link)
		if (s->cmd_n != 0)
			return true;
	return false;
}

bool
mlx_tm_model_begun(void)
{
	return tm_qps_begun();
}

void
mlx_tm_model_work(void)
{
	if (mlx_tm.late == 0)
		tm_qps_run();
	for (unsigned i = 0; i < STEPS && mlx_tm.late != 0; i++) {
		if (!tm_chance(mlx_tm.late))
			continue;
		if (tm_chance(3))
			mlx_tm_model_command();
		else
			tm_qps_step();
	}
}

void
mlx_tm_model_run(void)
{
	unsigned n = 0;

	do {
		tm_qps_run();
		if (n++ == RUN_MAX) {
			tm_wrong("it never rests");
			return;
		}
	} while (mlx_tm_model_command() || tm_qps_rest());
}

uint32_t
mlx_tm_model_listed(void)
{
	uint32_t n = 0;
	struct tm_srq *s;

	LIST_FOREACH(s, &srqs, link)
		n += s->n;
	return n;
}

uint16_t
mlx_tm_model_given(void)
{
	return LIST_FIRST(&srqs)->given;
}

uint64_t
mlx_tm_model_hash(uint64_t h, uint64_t (*mix)(uint64_t h, uint64_t v),
	uint64_t (*number)(const void *buf))
{
	const struct tm_srq *s = LIST_FIRST(&srqs);
	const struct tm_cq *cq = s->cq;

	h = mix(h, 1000 + s->n);
	for (uint32_t i = 0; i < s->n; i++)
		h = mix(h, number((const void *)(uintptr_t)s->list[i].sge.addr) << 1 ^
			s->list[i].active);
	h = mix(h, 2000 + cq->n);
	for (uint32_t i = 0; i < cq->n; i++) {
		const struct tm_cqe *e = &cq->cqes[(cq->head + i) % cq->size];

		h = mix(h, e->opcode << 24 ^ e->status << 16 ^ e->flags << 8 ^ number(e->buf));
		h = mix(h, e->info.tag);
	}
	h = mix(h, 3000 + s->cmd_n);
	for (uint32_t i = 0; i < s->cmd_n; i++) {
		const struct tm_cmd *c = &s->cmds[(s->cmd_head + i) % s->cmd_max];

		h = mix(h, c->wr.opcode << 16 ^ (uint16_t)(s->given - c->wr.tm.unexpected_cnt) ^
			number(s->bufs[c->wr.tm.handle]) << 32);
	}
	return h;
}

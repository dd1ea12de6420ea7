/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_hw.c - the hardware queues with a shared receive queue that matches tags
 *
 * Design notes
 * - All is libibverbs, on mlx5 devices as well: the commands to the list use a queue pair of the
 *   provider. Sending is that of mlx_verbs.c.
 * - Completions of slots, receives and commands come by one queue, in the order of messages and
 *   commands. Its wr_id identifies the object, since after an error nothing else is valid. That
 *   of a receive has the number of its use, so that a completion after its end finds nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "mlx_base.h"
#include "mlx_glue.h"
#include "mlx_tm.h"

#define ID_RECV (1ull << 62) /* | use << 16 | number */
#define ID_CMD	(1ull << 61) /* | number of the command */
#define NUMBER(id) ((uint32_t)(id) & 0xffff) /* of a receive: PLX_CONF_TAG_OFFLOAD_LIST is less */

static struct mlx_tm_hw *
tm_hw(struct mlx_hw *hw)
{
	return (struct mlx_tm_hw *)hw;
}

static int
last_error(void)
{
	return errno != 0 ? -errno : -EIO;
}

/* The device's capabilities. Errors: -EOPNOTSUPP */
static int
caps_get(struct ibv_context *ctx, struct ibv_tm_caps *caps)
{
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_device_ex);
	struct ibv_device_attr_ex attr = {0};

	if (v == NULL || v->query_device_ex(ctx, NULL, &attr, sizeof(attr)) != 0)
		return -EOPNOTSUPP;
	*caps = attr.tm_caps;
	return (caps->flags & IBV_TM_CAP_RC) != 0 && caps->max_num_tags > 0 && caps->max_sge > 0 &&
		caps->max_ops >= MLX_TM_OPS_MIN ? 0 : -EOPNOTSUPP;
}

static int
queues_open(struct mlx_tm_hw *h)
{
	const struct mlx_hw_conf *conf = &h->base.conf;
	struct verbs_context *v = verbs_get_ctx_op(conf->ctx, create_srq_ex);
	/* A receive has two events, and a third one as a command. */
	struct ibv_cq_init_attr_ex cq = {.cqe = conf->n_rx + 3 * h->list_n + h->n_ops,
		.channel = conf->channel, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
			IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_TM_INFO};
	struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = conf->n_rx, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			IBV_SRQ_INIT_ATTR_TM, .srq_type = IBV_SRQT_TM, .pd = conf->pd,
		.tm_cap = {.max_num_tags = h->list_n, .max_ops = h->n_ops}};

	if (v == NULL)
		return -EOPNOTSUPP;
	h->cq = ibv_create_cq_ex(conf->ctx, &cq);
	if (h->cq == NULL)
		return last_error();
	h->base.rx_cq = srq.cq = ibv_cq_ex_to_cq(h->cq);
	h->base.tx_cq = mlx_glue.create_cq(conf->ctx, conf->n_tx, NULL, conf->channel, 0);
	if (h->base.tx_cq != NULL)
		h->base.srq = v->create_srq_ex(conf->ctx, &srq);
	return h->base.srq != NULL ? 0 : last_error();
}

static void
tm_close(struct mlx_hw *hw)
{
	struct mlx_tm_hw *h = tm_hw(hw);

	mlx_hw_fini(hw);
	free(h->dels);
	free(h->gens);
	free(h->met);
	free(h);
}

/* A completion of a slot. @return whether there is something to report */
static bool
read_slot(struct mlx_tm_hw *h, struct mlx_hw_comp *comp)
{
	if (h->cq->status != IBV_WC_SUCCESS) {
		comp->status = MLX_COMP_OTHER;
		return true;
	}
	comp->status = ibv_wc_read_opcode(h->cq) == IBV_WC_TM_RECV ? MLX_TM_UNEXPECTED
								   : MLX_TM_NO_TAG;
	comp->len = ibv_wc_read_byte_len(h->cq);
	comp->imm = ntohl(ibv_wc_read_imm_data(h->cq));
	return true;
}

static uint8_t
recv_status(unsigned flags)
{
	if ((flags & IBV_WC_TM_MATCH) == 0)
		return MLX_TM_PLACED;
	return flags & IBV_WC_TM_DATA_VALID ? MLX_TM_MET_PLACED : MLX_TM_MET;
}

static bool
read_recv(struct mlx_tm_hw *h, struct mlx_hw_comp *comp)
{
	uint64_t id = h->cq->wr_id;
	uint32_t i = NUMBER(id);
	struct ibv_wc_tm_info info;

	if (i >= h->list_n || (uint32_t)(id >> 16) != h->gens[i]) {
		PLX_STAT_INC(h->base.conf.stat->comp_bad);
		return false;
	}
	comp->slot = i;
	/* Only the provider reports an excessive length: all else is valid. */
	comp->status = h->cq->status == IBV_WC_SUCCESS ? recv_status(ibv_wc_read_wc_flags(h->cq))
		: h->cq->status == IBV_WC_LOC_LEN_ERR ? MLX_TM_TOO_LONG : MLX_TM_FAILED;
	h->met[i].over = comp->status != MLX_TM_MET;
	if (comp->status == MLX_TM_FAILED)
		return true;
	if (comp->status != MLX_TM_PLACED) { /* only the first of two has it */
		ibv_wc_read_tm_info(h->cq, &info);
		h->met[i].tag = info.tag;
		h->met[i].app = info.priv;
	}
	comp->len = ibv_wc_read_byte_len(h->cq);
	comp->imm = ntohl(ibv_wc_read_imm_data(h->cq));
	return true;
}

/* A command and all earlier ones are complete. @return whether to report it */
static bool
read_cmd(struct mlx_tm_hw *h, struct mlx_hw_comp *comp)
{
	uint64_t n = h->cq->wr_id & ~ID_CMD;

	if (n - h->done_op >= h->next_op - h->done_op) {
		PLX_STAT_INC(h->base.conf.stat->comp_bad);
		return false;
	}
	h->done_op = n + 1;
	comp->slot = h->dels[n % h->n_ops];
	comp->status = h->cq->status == IBV_WC_SUCCESS ? MLX_TM_GONE
		: h->cq->status == IBV_WC_TM_ERR ? MLX_TM_LATE : MLX_TM_BROKEN;
	return comp->slot != MLX_NONE || comp->status == MLX_TM_BROKEN;
}

static bool
read_one(struct mlx_tm_hw *h, struct mlx_hw_comp *comp)
{
	*comp = (struct mlx_hw_comp){.qpn = ibv_wc_read_qp_num(h->cq),
		.slot = (uint32_t)h->cq->wr_id};
	if (h->cq->wr_id & ID_RECV)
		return read_recv(h, comp);
	if (h->cq->wr_id & ID_CMD)
		return read_cmd(h, comp);
	return read_slot(h, comp);
}

static uint16_t
tm_poll_rx(struct mlx_hw *hw, struct mlx_hw_comp *comp, uint16_t n)
{
	struct mlx_tm_hw *h = tm_hw(hw);
	struct ibv_poll_cq_attr attr = {0};
	uint16_t got = 0;

	if (ibv_start_poll(h->cq, &attr) != 0)
		return 0;
	do {
		got += read_one(h, &comp[got]);
	} while (got < n && ibv_next_poll(h->cq) == 0);
	ibv_end_poll(h->cq);
	return got;
}

int
mlx_tm_hw_open(const struct mlx_hw_conf *conf, uint32_t list_n, struct mlx_tm_hw **out)
{
	struct ibv_tm_caps caps;
	struct mlx_tm_hw *h;
	int rc = caps_get(conf->ctx, &caps);

	if (rc != 0)
		return rc;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	h->base.conf = *conf;
	h->base.ops = &h->ops;
	h->ops = mlx_hw_verbs_ops;
	h->ops.name = "verbs, with tags";
	h->ops.close = tm_close;
	h->ops.poll_rx = tm_poll_rx;
	h->list_n = RTE_MIN(list_n, caps.max_num_tags);
	h->n_ops = RTE_MAX(2 * h->list_n, (uint32_t)MLX_TM_OPS_MIN);
	h->n_ops = RTE_MIN(h->n_ops, caps.max_ops);
	h->dels = malloc(h->n_ops * sizeof(h->dels[0]));
	h->gens = calloc(h->list_n, sizeof(h->gens[0]));
	h->met = calloc(h->list_n, sizeof(h->met[0]));
	rc = h->dels == NULL || h->gens == NULL || h->met == NULL ? -ENOMEM : queues_open(h);
	if (rc == 0)
		*out = h;
	else
		tm_close(&h->base);
	return rc;
}

/* @param told the receive whose removal is to be reported, or MLX_NONE */
static int
command(struct mlx_tm_hw *h, struct ibv_ops_wr *wr, const struct mlx_tm_cmd *cmd, uint32_t told)
{
	struct ibv_ops_wr *bad;
	uint64_t n = h->next_op;
	int rc;

	if (n - h->done_op == h->n_ops)
		return -EAGAIN;
	/* Not that of a receive that belongs to the caller again: its place would stay in use. */
	if (told != MLX_NONE || (wr->opcode != IBV_WR_TAG_DEL && n % MLX_TM_SIGNAL_EVERY == 0) ||
		n - h->done_op >= h->n_ops / 2)
		wr->flags |= IBV_OPS_SIGNALED;
	if (cmd->counts)
		wr->flags |= IBV_OPS_TM_SYNC;
	wr->wr_id = ID_CMD | n;
	wr->tm.unexpected_cnt = cmd->count;
	wr->tm.handle = cmd->handle;
	rc = ibv_post_srq_ops(h->base.srq, wr, &bad);
	if (rc != 0)
		return rc == ENOMEM ? -EAGAIN : -rc;
	h->dels[n % h->n_ops] = told;
	h->next_op++;
	return 0;
}

int
mlx_tm_hw_add(struct mlx_tm_hw *h, struct mlx_tm_cmd *cmd, const struct plx_dev_recv *recv,
	uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)recv->buf, RTE_MIN(recv->len, MLX_TM_LEN_MAX), lkey};
	uint64_t gen = ++h->gens[cmd->recv];
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD, .tm.add = {
		.recv_wr_id = ID_RECV | gen << 16 | cmd->recv, .sg_list = &sge,
		.num_sge = recv->len != 0, .tag = recv->tag, .mask = recv->mask}};
	bool room = h->next_op - h->done_op < h->n_ops;
	int rc = command(h, &wr, cmd, MLX_NONE);

	cmd->handle = wr.tm.handle;
	h->met[cmd->recv].over = false;
	return rc == -EAGAIN && room ? -ENOSPC : rc;
}

int
mlx_tm_hw_del(struct mlx_tm_hw *h, const struct mlx_tm_cmd *cmd, bool told)
{
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL};

	return command(h, &wr, cmd, told ? cmd->recv : MLX_NONE);
}

int
mlx_tm_hw_sync(struct mlx_tm_hw *h, uint16_t count)
{
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC};

	return command(h, &wr, &(struct mlx_tm_cmd){.count = count, .counts = true}, MLX_NONE);
}

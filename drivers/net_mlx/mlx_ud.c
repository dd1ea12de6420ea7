/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_ud.c - a queue pair for datagrams, with its slots
 *
 * Design notes
 * - Sends complete in order, so a completion covers all earlier ones, and only some are signalled
 *   under load. An error completes in any case, and covers the earlier ones as well. The last
 *   ones stay in use until others follow: that costs nothing but their places, unless a caller
 *   waits for their completion. Then an empty datagram goes to the queue pair itself, whose
 *   completion covers them.
 * - A queue pair that fails returns everything with an error, posted receives too, so the failure
 *   is detected even without sends. It is emptied and made ready again, under the same number:
 *   peers only see some lost datagrams.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "mlx_glue.h"
#include "mlx_queue.h"
#include "mlx_ud.h"

#define GRH   40	   /* header of an arrival */
#define TX_ID (1ull << 32) /* in wr_id of sends, with the last bits of their number */

static size_t
mem_len(const struct mlx_ud *ud)
{
	return (size_t)(ud->n_rx + MLX_UD_TX) * ud->slot;
}

static void
ud_post(struct mlx_ud *ud, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)ud->mem + (size_t)i * ud->slot, ud->slot, ud->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(ud->qp, &wr, &bad) != 0)
		PLX_LOG_RATELIMIT(ERR, mlx, "a datagram's receive slot could not be posted again: lost");
}

static int
ud_ready(struct mlx_queue *mq, struct mlx_ud *ud)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = mq->port->num,
		.qkey = ud->qkey};
	int rc = mlx_glue.modify_qp(ud->qp, &a,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	a.qp_state = IBV_QPS_RTR;
	if (rc == 0)
		rc = mlx_glue.modify_qp(ud->qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (rc == 0)
		rc = mlx_glue.modify_qp(ud->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	for (uint32_t i = 0; rc == 0 && i < ud->n_rx; i++)
		ud_post(ud, i);
	return -rc;
}

void
mlx_ud_close(struct mlx_ud *ud)
{
	if (ud->qp != NULL)
		mlx_glue.destroy_qp(ud->qp);
	if (ud->cq != NULL)
		mlx_glue.destroy_cq(ud->cq);
	if (ud->mr != NULL)
		mlx_glue.dereg_mr(ud->mr);
	if (ud->self != NULL)
		mlx_glue.destroy_ah(ud->self);
	if (ud->mem != NULL)
		munmap(ud->mem, mem_len(ud));
	*ud = (struct mlx_ud){.qp = NULL};
}

int
mlx_ud_open(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, uint16_t n_rx, uint32_t qkey)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = MLX_UD_TX, .max_recv_wr = n_rx,
		.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = MLX_INLINE_MAX},
		.qp_type = IBV_QPT_UD};
	void *mem;
	int rc;

	*ud = (struct mlx_ud){.slot = GRH + len, .n_rx = n_rx, .every = 1, .qkey = qkey};
	mem = mmap(NULL, mem_len(ud), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -errno;
	ud->mem = mem;
	(void)madvise(mem, mem_len(ud), MADV_DONTFORK);
	errno = 0;
	ud->mr = mlx_glue.reg_mr(mq->port->pd, mem, mem_len(ud), IBV_ACCESS_LOCAL_WRITE);
	if (ud->mr != NULL)
		ud->cq = mlx_glue.create_cq(mq->port->ctx, n_rx + MLX_UD_TX, NULL, mq->channel, 0);
	if (ud->cq != NULL) {
		attr.send_cq = attr.recv_cq = ud->cq;
		ud->qp = mlx_glue.create_qp(mq->port->pd, &attr);
		ud->max_inline = attr.cap.max_inline_data;
	}
	rc = ud->qp != NULL ? ud_ready(mq, ud) : errno != 0 ? -errno : -EIO;
	if (rc != 0)
		mlx_ud_close(ud);
	return rc;
}

struct ibv_ah *
mlx_ud_way(struct mlx_queue *mq, const uint8_t *gid, uint16_t lid)
{
	struct ibv_ah_attr a = {.port_num = mq->port->num, .dlid = lid,
		.is_global = mq->addr.link != MLX_LINK_IB,
		.grh = {.sgid_index = mq->port->gid_index, .hop_limit = 64}};

	memcpy(a.grh.dgid.raw, gid, sizeof(a.grh.dgid.raw));
	return mlx_glue.create_ah(mq->port->pd, &a);
}

void *
mlx_ud_room(struct mlx_ud *ud)
{
	if (ud->failed || ud->sent - ud->done == MLX_UD_TX)
		return NULL;
	return ud->mem + (size_t)(ud->n_rx + ud->sent % MLX_UD_TX) * ud->slot;
}

static void
ud_send(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, struct ibv_ah *ah, uint32_t qpn,
	uint32_t qkey, bool signal)
{
	struct ibv_sge sge = {(uintptr_t)mlx_ud_room(ud), len, ud->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = TX_ID | (uint32_t)ud->sent, .sg_list = &sge,
		.num_sge = len != 0, .opcode = IBV_WR_SEND,
		.send_flags = (signal ? IBV_SEND_SIGNALED : 0) |
			(len <= ud->max_inline ? IBV_SEND_INLINE : 0),
		.wr = {.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}}}, *bad;

	if (ibv_post_send(ud->qp, &wr, &bad) != 0) {
		PLX_STAT_INC(mq->stat.ud_failed);
		return;
	}
	ud->sent++;
	if (signal)
		ud->due = ud->sent;
}

void
mlx_ud_send(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, struct ibv_ah *ah, uint32_t qpn,
	uint32_t qkey)
{
	ud_send(mq, ud, len, ah, qpn, qkey, ud->sent + 1 - ud->due >= ud->every);
}

void
mlx_ud_spare(struct mlx_queue *mq, struct mlx_ud *ud)
{
	ud->self = mlx_ud_way(mq, mq->addr.gid, mlx_addr_lid(&mq->addr));
	if (ud->self != NULL)
		ud->every = MLX_UD_SIGNAL;
}

void
mlx_ud_end(struct mlx_queue *mq, struct mlx_ud *ud)
{
	if (ud->due != ud->sent && mlx_ud_room(ud) != NULL)
		ud_send(mq, ud, 0, ud->self, ud->qp->qp_num, ud->qkey, true);
}

/* The datagram of mlx_ud_end(). */
static bool
is_own_end(const struct mlx_ud *ud, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->byte_len == GRH && wc->src_qp == ud->qp->qp_num;
}

static void
ud_rx(struct mlx_queue *mq, struct mlx_ud *ud, const struct ibv_wc *wc, mlx_ud_take *take)
{
	const uint8_t *at = ud->mem + wc->wr_id * ud->slot;
	struct mlx_ud_src src = {.qpn = wc->src_qp, .lid = wc->slid};

	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		ud->failed = true;
		return;
	}
	if (mq->addr.link != MLX_LINK_IB || (wc->wc_flags & IBV_WC_GRH) != 0)
		src.grh = at;
	if (wc->status != IBV_WC_SUCCESS || wc->byte_len < GRH)
		take(mq, &src, at, 0);
	else if (!is_own_end(ud, wc))
		take(mq, &src, at + GRH, wc->byte_len - GRH);
	ud_post(ud, wc->wr_id);
}

unsigned
mlx_ud_poll(struct mlx_queue *mq, struct mlx_ud *ud, mlx_ud_take *take)
{
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	int n = ibv_poll_cq(ud->cq, MLX_HW_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		if ((wc[i].wr_id & TX_ID) == 0) {
			ud_rx(mq, ud, &wc[i], take);
			continue;
		}
		ud->done += (uint32_t)wc[i].wr_id - (uint32_t)ud->done + 1;
		if (unlikely(wc[i].status != IBV_WC_SUCCESS)) {
			PLX_STAT_INC(mq->stat.ud_failed);
			ud->failed = true;
		}
	}
	return n > 0 ? n : 0;
}

static int
ud_restart(struct mlx_queue *mq, struct mlx_ud *ud)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	int rc = -mlx_glue.modify_qp(ud->qp, &a, IBV_QP_STATE);

	if (rc != 0)
		return rc;
	/* No more are added. Some libraries have removed the completions, others leave them. */
	while (ibv_poll_cq(ud->cq, MLX_HW_POLL_MAX, wc) > 0)
		;
	ud->done = ud->due = ud->sent;
	return ud_ready(mq, ud);
}

void
mlx_ud_mend(struct mlx_queue *mq, struct mlx_ud *ud)
{
	int rc;

	if (ud->qp == NULL || !ud->failed || mlx_port_is_gone(mq->port))
		return;
	rc = ud_restart(mq, ud);
	if (rc == 0) {
		PLX_LOG_RATELIMIT(WARNING, mlx, "port %s: the datagram queue failed and was set up again", mq->port->label);
		PLX_STAT_INC(mq->stat.ud_restarted);
		ud->failed = false;
		ud->n_tries = 0;
	} else if (++ud->n_tries == MLX_UD_TRIES) {
		PLX_LOG(ERR, mlx, "port %s: datagrams are off from now on: %s", mq->port->label,
			strerror(-rc));
		mlx_port_failed(mq->port);
	}
}

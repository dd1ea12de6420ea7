/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_ud.c - datagrams, by which two queues find each other's queue pairs
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mlx_glue.h"
#include "mlx_int.h"

#define GRH	 40 /* stands before what arrives */
#define SLOT	 (GRH + sizeof(struct mlx_dgram))
#define UD_LEN	 ((MLX_UD_RX + MLX_UD_TX) * SLOT)
#define TX_ID	 (1ull << 32) /* wr_id of what is sent */

static void
ud_post(struct mlx_queue *mq, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)mq->ud_mem + i * SLOT, SLOT, mq->ud_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(mq->ud_qp, &wr, &bad) != 0)
		PLX_LOG_RATELIMIT(ERR, mlx, "a datagram's slot was not taken: lost");
}

static int
ud_ready(struct mlx_queue *mq)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = mq->port->num,
		.qkey = mlx_addr_qkey(&mq->addr)};
	int rc = mlx_glue.modify_qp(mq->ud_qp, &a,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	a.qp_state = IBV_QPS_RTR;
	if (rc == 0)
		rc = mlx_glue.modify_qp(mq->ud_qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (rc == 0)
		rc = mlx_glue.modify_qp(mq->ud_qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -rc;
}

void
mlx_ud_close(struct mlx_queue *mq)
{
	if (mq->ud_qp != NULL)
		mlx_glue.destroy_qp(mq->ud_qp);
	if (mq->ud_cq != NULL)
		mlx_glue.destroy_cq(mq->ud_cq);
	if (mq->ud_mr != NULL)
		mlx_glue.dereg_mr(mq->ud_mr);
	if (mq->ud_mem != NULL)
		munmap(mq->ud_mem, UD_LEN);
}

int
mlx_ud_open(struct mlx_queue *mq)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = MLX_UD_TX, .max_recv_wr = MLX_UD_RX,
		.max_send_sge = 1, .max_recv_sge = 1}, .qp_type = IBV_QPT_UD};
	void *mem;
	int rc;

	mem = mmap(NULL, UD_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -errno;
	mq->ud_mem = mem;
	(void)madvise(mem, UD_LEN, MADV_DONTFORK);
	errno = 0;
	mq->ud_mr = mlx_glue.reg_mr(mq->port->pd, mem, UD_LEN, IBV_ACCESS_LOCAL_WRITE);
	if (mq->ud_mr != NULL)
		mq->ud_cq = mlx_glue.create_cq(mq->port->ctx, MLX_UD_RX + MLX_UD_TX, NULL,
			mq->channel, 0);
	if (mq->ud_cq != NULL) {
		attr.send_cq = attr.recv_cq = mq->ud_cq;
		mq->ud_qp = mlx_glue.create_qp(mq->port->pd, &attr);
	}
	rc = mq->ud_qp != NULL ? ud_ready(mq) : errno != 0 ? -errno : -EIO;
	if (rc != 0) {
		mlx_ud_close(mq);
		return rc;
	}
	for (uint32_t i = 0; i < MLX_UD_RX; i++)
		ud_post(mq, i);
	mq->addr.ud_qpn = mq->ud_qp->qp_num;
	return 0;
}

/* The way to a peer; also how its queue pair finds it. */
static int
ud_way(struct mlx_queue *mq, struct mlx_peer *p)
{
	struct ibv_ah_attr a = {.port_num = mq->port->num, .dlid = p->addr.lid,
		.is_global = p->addr.link != MLX_LINK_IB,
		.grh = {.sgid_index = mq->port->gid_index, .hop_limit = 64}};

	if (p->ah != NULL)
		return 0;
	memcpy(a.grh.dgid.raw, p->addr.gid, sizeof(p->addr.gid));
	errno = 0;
	p->ah = mlx_glue.create_ah(mq->port->pd, &a);
	return p->ah != NULL ? 0 : errno != 0 ? -errno : -EHOSTUNREACH;
}

int
mlx_ud_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_dgram *d)
{
	uint32_t i = mq->ud_sent % MLX_UD_TX;
	uint8_t *at = mq->ud_mem + (MLX_UD_RX + i) * SLOT;
	struct ibv_sge sge = {(uintptr_t)at, sizeof(*d), mq->ud_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = TX_ID, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	int rc = ud_way(mq, p);

	if (rc != 0)
		return rc;
	if (mq->ud_sent - mq->ud_done == MLX_UD_TX)
		return 0;
	d->to_uid = p->addr.uid;
	d->from = mq->addr;
	mlx_dgram_seal(d);
	memcpy(at, d, sizeof(*d));
	wr.wr.ud.ah = p->ah;
	wr.wr.ud.remote_qpn = p->addr.ud_qpn;
	wr.wr.ud.remote_qkey = mlx_addr_qkey(&p->addr);
	if (ibv_post_send(mq->ud_qp, &wr, &bad) == 0)
		mq->ud_sent++;
	return 0;
}

static void
ud_rx(struct mlx_queue *mq, const struct ibv_wc *wc)
{
	const uint8_t *at = mq->ud_mem + wc->wr_id * SLOT + GRH;
	struct mlx_dgram d;

	PLX_STAT_INC(mq->stat.dgram_rx);
	if (wc->status != IBV_WC_SUCCESS)
		return; /* its queue pair has failed: nobody connects any more */
	if (wc->byte_len < GRH || mlx_dgram_open(at, wc->byte_len - GRH, &d) != 0)
		PLX_STAT_INC(mq->stat.dgram_drop_bad);
	else
		mlx_conn_on_dgram(mq, &d);
	ud_post(mq, wc->wr_id);
}

unsigned
mlx_ud_poll(struct mlx_queue *mq)
{
	struct ibv_wc wc[MLX_HW_POLL_MAX];
	int n = ibv_poll_cq(mq->ud_cq, MLX_HW_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].wr_id == TX_ID)
			mq->ud_done++;
		else
			ud_rx(mq, &wc[i]);
	}
	return n > 0 ? n : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm_id.c - the objects of a listener or a connection, and the messages by its queue pair
 *
 * Design notes
 * - One receive is posted, and the next when the message is taken: later messages wait at their
 *   sender, as with a socket that is not read. The completion queue is armed before it is polled,
 *   so a completion after the last poll makes the descriptor readable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mlx_cm.h"
#include "mlx_glue.h"

#define SLOTS	(PLX_DEV_CM_SENDS + 1)
#define MEM_LEN (SLOTS * PLX_DEV_CM_MSG_MAX)
#define RX_ID	PLX_DEV_CM_SENDS /* wr_id of the receive, and its slot */

static int
watch(struct mlx_cm_id *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 ||
		epoll_ctl(c->dev.fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		return -errno;
	return 0;
}

int
mlx_cm_id_new(struct mlx_cm_id **out)
{
	struct mlx_cm_id *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL)
		return -ENOMEM;
	c->mem = MAP_FAILED;
	c->dev.fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->dev.fd >= 0)
		c->channel = mlx_cm_glue.create_event_channel();
	rc = c->channel != NULL ? watch(c, c->channel->fd) : -errno;
	if (rc != 0) {
		mlx_cm_id_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void
mlx_cm_id_free(struct mlx_cm_id *c)
{
	if (c->id != NULL && c->id->qp != NULL) {
		mlx_cm_glue.disconnect(c->id);
		mlx_cm_glue.destroy_qp(c->id);
	}
	if (c->cq != NULL)
		mlx_glue.destroy_cq(c->cq);
	if (c->comp != NULL)
		mlx_glue.destroy_comp_channel(c->comp);
	if (c->mr != NULL)
		mlx_glue.dereg_mr(c->mr);
	if (c->mem != MAP_FAILED)
		munmap(c->mem, MEM_LEN);
	if (c->id != NULL)
		mlx_cm_glue.destroy_id(c->id);
	if (c->channel != NULL)
		mlx_cm_glue.destroy_event_channel(c->channel);
	if (c->dev.fd >= 0)
		close(c->dev.fd);
	free(c);
}

static struct ibv_sge
slot(const struct mlx_cm_id *c, uint32_t i, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)c->mem + (size_t)i * PLX_DEV_CM_MSG_MAX, len, c->mr->lkey};
}

static void
post_rx(struct mlx_cm_id *c)
{
	struct ibv_sge sge = slot(c, RX_ID, PLX_DEV_CM_MSG_MAX);
	struct ibv_recv_wr wr = {.wr_id = RX_ID, .sg_list = &sge, .num_sge = 1}, *bad;
	int rc = ibv_post_recv(c->id->qp, &wr, &bad);

	if (rc != 0 && c->err == 0)
		c->err = -rc;
}

int
mlx_cm_id_qp(struct mlx_cm_id *c)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = PLX_DEV_CM_SENDS, .max_recv_wr = 1,
		.max_send_sge = 1, .max_recv_sge = 1}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
	int rc;

	if (c->id->verbs->device->transport_type != IBV_TRANSPORT_IB)
		return -ENODEV; /* the driver supports no other */
	errno = ENOMEM;
	c->mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->mem == MAP_FAILED)
		return -errno;
	(void)madvise(c->mem, MEM_LEN, MADV_DONTFORK);
	c->mr = mlx_glue.reg_mr(c->id->pd, c->mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE);
	if (c->mr != NULL)
		c->comp = mlx_glue.create_comp_channel(c->id->verbs);
	if (c->comp != NULL)
		c->cq = mlx_glue.create_cq(c->id->verbs, SLOTS, NULL, c->comp, 0);
	if (c->cq == NULL)
		return -errno;
	attr.send_cq = attr.recv_cq = c->cq;
	if (mlx_cm_glue.create_qp(c->id, NULL, &attr) != 0)
		return -errno;
	rc = watch(c, c->comp->fd);
	if (rc == 0)
		rc = -ibv_req_notify_cq(c->cq, 0);
	if (rc == 0)
		post_rx(c);
	return rc != 0 ? rc : c->err;
}

static int
err_of(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_LEN_ERR ? -EBADMSG : -ECONNRESET;
}

static void
look(struct mlx_cm_id *c)
{
	struct ibv_wc wc[SLOTS];
	int n = c->cq != NULL ? ibv_poll_cq(c->cq, SLOTS, wc) : 0;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS && c->err == 0)
			c->err = err_of(wc[i].status);
		if (wc[i].wr_id != RX_ID)
			c->done++;
		else if (wc[i].status == IBV_WC_SUCCESS)
			c->got_len = wc[i].byte_len;
	}
}

static void
rearm(struct mlx_cm_id *c)
{
	struct ibv_cq *cq;
	void *arg;

	if (c->comp == NULL)
		return;
	while (mlx_glue.get_cq_event(c->comp, &cq, &arg) == 0) {
		mlx_glue.ack_cq_events(cq, 1);
		(void)ibv_req_notify_cq(cq, 0);
	}
}

uint32_t
mlx_cm_id_poll(struct mlx_cm_id *c, void *buf)
{
	uint32_t len;

	rearm(c);
	look(c);
	len = c->got_len;
	if (len == 0)
		return 0;
	memcpy(buf, (const void *)(uintptr_t)slot(c, RX_ID, 0).addr, len);
	c->got_len = 0;
	post_rx(c);
	return len;
}

int
mlx_cm_id_send(struct plx_dev_cm_id *id, const void *msg, uint32_t len)
{
	struct mlx_cm_id *c = (struct mlx_cm_id *)id;
	struct ibv_sge sge = slot(c, c->sent % PLX_DEV_CM_SENDS, len);
	struct ibv_send_wr wr = {.wr_id = c->sent % PLX_DEV_CM_SENDS, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND}, *bad;
	int rc;

	look(c);
	if (c->err != 0)
		return c->err;
	if (c->sent - c->done == PLX_DEV_CM_SENDS)
		return -EAGAIN;
	memcpy((void *)(uintptr_t)sge.addr, msg, len);
	rc = ibv_post_send(c->id->qp, &wr, &bad);
	if (rc != 0)
		return -rc;
	c->sent++;
	return 0;
}

bool
mlx_cm_id_busy(struct plx_dev_cm_id *id)
{
	struct mlx_cm_id *c = (struct mlx_cm_id *)id;

	look(c);
	return c->err == 0 && c->sent != c->done;
}

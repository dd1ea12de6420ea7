/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_verbs.c - libibverbs and libmlx5 as the driver sees them, with the model as device
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include <rte_common.h>

#include "mlx5_verbs.h"
#include "mlx_tm_model.h"
#include "plx_unit_mlx.h"

#define UD_DEPTH   256 /* datagrams that wait */
#define UD_QPN	   0xd000u
#define GRH	   40 /* bytes before a datagram */
#define LID	   1
#define EVENTS_MAX 64
#define GROUPS_MAX 8
#define MULTICAST  0xffffffu /* as a queue pair */

struct fake_channel {
	struct ibv_comp_channel ibv;
	struct ibv_cq *cqs[EVENTS_MAX]; /* events that were not taken */
	unsigned n;
};

struct fake_cq {
	struct ibv_cq ibv;
	struct mlx5dv_cq dv;
	int number;		    /* in the model; -1: not yet driven directly */
	uint32_t depth;
	struct ibv_wc *wc;	    /* of what goes by libibverbs: depth of them */
	struct fake_sent *sent;	    /* beside them: what each stands for */
	unsigned head, n;
	bool armed;
	LIST_ENTRY(fake_cq) link;
};

/* The oldest n datagrams of a queue pair, or NULL. */
struct fake_sent {
	struct fake_qp *qp;
	unsigned n;
};

/* In use by the device until the completions of all that went by it are taken. */
struct fake_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	unsigned n_out;
};

struct fake_srq {
	struct ibv_srq ibv;
	struct mlx5dv_srq dv;
	int number;
};

struct fake_pd {
	struct ibv_pd ibv;
	int uar; /* -1: no parent domain */
};

struct fake_mr {
	struct ibv_mr ibv;
	LIST_ENTRY(fake_mr) link;
};

/* An opened device. */
struct fake_context {
	struct verbs_context verbs;
	struct ibv_async_event events[EVENTS_MAX]; /* that were not taken */
	unsigned n_events;
	LIST_ENTRY(fake_context) link;
};

/* A datagram that the device may still read. */
struct fake_out {
	struct fake_ah *ah;
	struct ibv_sge data;
	uint8_t *was; /* its bytes, or NULL: they are in the request */
};

struct fake_qp {
	struct ibv_qp ibv;
	struct mlx5dv_qp dv;
	const struct mlx5_verbs_port *port; /* of a datagram queue pair, with what follows */
	enum ibv_qp_state state;
	struct ibv_sge rx[UD_DEPTH];
	uint64_t rx_id[UD_DEPTH];
	unsigned head, n;
	uint32_t qkey;
	union ibv_gid groups[GROUPS_MAX];
	uint16_t lids[GROUPS_MAX];
	unsigned n_groups;
	struct fake_out out[UD_DEPTH];	 /* from out_head on: no completion of them was taken */
	unsigned out_head, n_out, n_new; /* n_new: no completion of them was written */
	uint32_t max_send, max_inline;
	LIST_ENTRY(fake_qp) link;
};

struct mlx5_verbs mlx5_verbs;

static LIST_HEAD(, fake_cq) cqs = LIST_HEAD_INITIALIZER(cqs);
static LIST_HEAD(, fake_qp) datagram_qps = LIST_HEAD_INITIALIZER(datagram_qps);
static struct ibv_td thread_domain;
static LIST_HEAD(, fake_mr) mrs = LIST_HEAD_INITIALIZER(mrs);
static LIST_HEAD(, fake_context) contexts = LIST_HEAD_INITIALIZER(contexts);
static struct fake_pd plain_pd = {.uar = -1};
#define DEVICE(n) {.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = n}
static struct ibv_device devices[MLX5_VERBS_DEVICES] = {DEVICE("model0"), DEVICE("model1"),
	DEVICE("model2"), DEVICE("model3")};
static const struct verbs_context context;

static struct ibv_td *
alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	(void)attr;
	thread_domain.context = ctx;
	return mlx5_verbs.no_td ? NULL : &thread_domain;
}

static int
dealloc_td(struct ibv_td *td)
{
	(void)td;
	return 0;
}

static struct ibv_pd *
alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr)
{
	struct fake_pd *pd = calloc(1, sizeof(*pd));

	if (((struct fake_pd *)attr->pd)->uar >= 0 || attr->td != &thread_domain)
		abort();
	pd->ibv.context = ctx;
	pd->uar = mlx5_model_uar(mlx5_verbs.m, mlx5_verbs.bf_size);
	return &pd->ibv;
}

static struct ibv_pd *
alloc_pd(struct ibv_context *ctx)
{
	struct fake_pd *pd = calloc(1, sizeof(*pd));

	pd->ibv.context = ctx;
	pd->uar = -1;
	return &pd->ibv;
}

static int
dealloc_pd(struct ibv_pd *ibv)
{
	struct fake_pd *pd = (struct fake_pd *)ibv;

	if (pd->uar >= 0)
		mlx5_model_uar_free(mlx5_verbs.m, pd->uar);
	if (pd != &plain_pd)
		free(pd);
	return 0;
}

static struct ibv_device **
get_device_list(int *n)
{
	static struct ibv_device *list[MLX5_VERBS_DEVICES + 1];

	*n = RTE_MAX(mlx5_verbs.n_devices, 1u);
	for (int i = 0; i < *n; i++)
		list[i] = &devices[i];
	return list;
}

static void
free_device_list(struct ibv_device **list)
{
	(void)list;
}

static const char *
get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

static struct ibv_context *
open_device(struct ibv_device *dev)
{
	struct fake_context *c = calloc(1, sizeof(*c));

	c->verbs = context;
	c->verbs.context.device = dev;
	c->verbs.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	LIST_INSERT_HEAD(&contexts, c, link);
	return &c->verbs.context;
}

static struct fake_context *
context_of(struct ibv_context *ctx)
{
	return (struct fake_context *)((char *)ctx - offsetof(struct fake_context, verbs.context));
}

static int
close_device(struct ibv_context *ctx)
{
	struct fake_context *c = context_of(ctx);

	close(ctx->async_fd);
	LIST_REMOVE(c, link);
	free(c);
	return 0;
}

static int
get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct fake_context *c = context_of(ctx);
	uint64_t one;

	if (read(ctx->async_fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	*event = c->events[0];
	memmove(c->events, c->events + 1, --c->n_events * sizeof(c->events[0]));
	return 0;
}

static void
ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

struct mlx5_verbs_port *
mlx5_verbs_port(const struct ibv_context *ctx, unsigned num)
{
	return &mlx5_verbs.ports[ctx->device == NULL ? 0 : ctx->device - devices][num - 1];
}

static void
tell_all(unsigned device, struct ibv_async_event e)
{
	struct fake_context *c;
	uint64_t one = 1;

	LIST_FOREACH(c, &contexts, link) {
		if (c->verbs.context.device != &devices[device])
			continue;
		c->events[c->n_events++] = e;
		if (write(c->verbs.context.async_fd, &one, sizeof(one)) != sizeof(one))
			abort();
	}
}

void
mlx5_verbs_switch(unsigned device, unsigned port, bool down)
{
	mlx5_verbs.ports[device][port - 1].down = down;
	tell_all(device, (struct ibv_async_event){.element.port_num = port,
		.event_type = down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE});
}

void
mlx5_verbs_move(unsigned device, unsigned port, const uint8_t gid[16])
{
	memcpy(mlx5_verbs.ports[device][port - 1].gid, gid, 16);
	tell_all(device, (struct ibv_async_event){.element.port_num = port,
		.event_type = IBV_EVENT_GID_CHANGE});
}

static void
gid_of(const struct mlx5_verbs_port *port, uint8_t gid[16])
{
	static const uint8_t none[16], usual[16] = {0xfe, 0x80};

	memcpy(gid, memcmp(port->gid, none, sizeof(none)) == 0 ? usual : port->gid, sizeof(usual));
}

bool
mlx5_verbs_arrives(const struct mlx5_verbs_port *from, const struct mlx5_verbs_port *to,
	const struct ibv_ah_attr *way)
{
	uint8_t gid[16];

	gid_of(to, gid);
	return !from->down && !to->down && from->wire == to->wire &&
		(!way->is_global || way->grh.dgid.raw[0] == 0xff ||
			memcmp(way->grh.dgid.raw, gid, sizeof(gid)) == 0);
}

static int
query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = (struct ibv_device_attr){.phys_port_cnt = RTE_MAX(mlx5_verbs.n_ports, 1u),
		.max_srq_wr = 32768, .max_cqe = 1 << 22, .max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16, .atomic_cap = IBV_ATOMIC_HCA};
	return 0;
}

static int
query_port(struct ibv_context *ctx, uint8_t num, struct ibv_port_attr *attr, size_t len)
{
	const struct mlx5_verbs_port *port = mlx5_verbs_port(ctx, num);

	(void)len;
	*attr = (struct ibv_port_attr){.state = port->down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.active_mtu = IBV_MTU_4096, .gid_tbl_len = 1, .lid = port->ethernet ? 0 : LID,
		.active_width = port->width, .active_speed = port->speed,
		.link_layer = port->ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND};
	return 0;
}

static int
query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
	uint32_t flags, size_t len)
{
	const struct mlx5_verbs_port *p = mlx5_verbs_port(ctx, port);

	(void)flags;
	memset(entry, 0, len);
	gid_of(p, entry->gid.raw);
	entry->gid_index = index;
	entry->gid_type = p->ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
	entry->port_num = port;
	return 0;
}

static struct ibv_mr *
reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct fake_mr *mr = calloc(1, sizeof(*mr));

	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = len;
	mr->ibv.lkey = mr->ibv.rkey = mlx5_model_mr(mlx5_verbs.m, addr, len,
		access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	LIST_INSERT_HEAD(&mrs, mr, link);
	return &mr->ibv;
}

static int
dereg_mr(struct ibv_mr *ibv)
{
	struct fake_mr *mr = (struct fake_mr *)ibv;

	mlx5_model_mr_free(mlx5_verbs.m, ibv->lkey);
	LIST_REMOVE(mr, link);
	free(mr);
	return 0;
}

bool
mlx5_verbs_may_use(uint32_t key, const struct ibv_pd *pd)
{
	const struct fake_mr *mr;

	LIST_FOREACH(mr, &mrs, link)
		if (mr->ibv.lkey == key)
			return mr->ibv.pd == pd;
	return true;
}

static struct ibv_comp_channel *
create_comp_channel(struct ibv_context *ctx)
{
	struct fake_channel *ch = calloc(1, sizeof(*ch));

	ch->ibv.context = ctx;
	ch->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	return &ch->ibv;
}

static int
destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

static int
get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **arg)
{
	struct fake_channel *ch = (struct fake_channel *)channel;
	uint64_t one;

	*arg = NULL;
	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	*cq = ch->cqs[--ch->n];
	return 0;
}

static void
ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

void
mlx5_verbs_tell(struct ibv_cq *cq)
{
	struct fake_channel *ch = (struct fake_channel *)cq->channel;
	uint64_t one = 1;

	if (ch == NULL || ch->n == EVENTS_MAX)
		return;
	ch->cqs[ch->n++] = cq;
	if (write(ch->ibv.fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

bool
mlx5_verbs_events(void)
{
	bool armed = false;
	struct fake_cq *cq;

	LIST_FOREACH(cq, &cqs, link) {
		if (cq->number >= 0 && mlx5_model_event(mlx5_verbs.m, cq->number))
			mlx5_verbs_tell(&cq->ibv);
		armed |= cq->armed || (cq->number >= 0 && mlx5_model_armed(mlx5_verbs.m, cq->number));
	}
	return armed;
}

static struct ibv_cq *
create_cq(struct ibv_context *ctx, int n, void *cq_context, struct ibv_comp_channel *channel,
	int vector)
{
	struct fake_cq *cq = calloc(1, sizeof(*cq));

	(void)cq_context;
	(void)vector;
	cq->ibv.context = ctx;
	cq->ibv.channel = channel;
	cq->depth = rte_align32pow2(n);
	cq->wc = calloc(cq->depth, sizeof(cq->wc[0]));
	cq->sent = calloc(cq->depth, sizeof(cq->sent[0]));
	cq->number = -1;
	LIST_INSERT_HEAD(&cqs, cq, link);
	return &cq->ibv;
}

/* The device is done with the oldest n datagrams. */
static void
out_end(struct fake_qp *qp, unsigned n)
{
	for (; n > 0; n--) {
		struct fake_out *o = &qp->out[qp->out_head++ % UD_DEPTH];

		if (o->was != NULL &&
			memcmp(o->was, (const void *)(uintptr_t)o->data.addr, o->data.length) != 0)
			abort();
		free(o->was);
		o->ah->n_out--;
		qp->n_out--;
	}
}

/* @return where the oldest completion stands, until the next */
static unsigned
cq_take(struct fake_cq *cq)
{
	unsigned at = cq->head;

	if (cq->sent[at].qp != NULL)
		out_end(cq->sent[at].qp, cq->sent[at].n);
	cq->head = (at + 1) % cq->depth;
	cq->n--;
	return at;
}

static int
destroy_cq(struct ibv_cq *ibv)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;

	if (mlx_tm_destroy_cq(ibv))
		return 0;
	if (cq->number >= 0)
		mlx5_model_cq_free(mlx5_verbs.m, cq->number);
	while (cq->n > 0)
		(void)cq_take(cq);
	LIST_REMOVE(cq, link);
	free(cq->wc);
	free(cq->sent);
	free(cq);
	return 0;
}

int
mlx5_verbs_cq(const struct ibv_cq *cq)
{
	return ((const struct fake_cq *)cq)->number;
}

static struct ibv_srq *
create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq;

	(void)pd;
	if (mlx5_verbs.plain)
		return mlx_tm_create_srq(attr);
	srq = calloc(1, sizeof(*srq));
	srq->number = mlx5_model_srq(mlx5_verbs.m, attr->attr.max_wr + 1, mlx5_verbs.srq_stride,
		&srq->dv);
	return &srq->ibv;
}

static int
destroy_srq(struct ibv_srq *srq)
{
	if (mlx5_verbs.plain)
		return mlx_tm_destroy_srq(srq);
	mlx5_model_srq_free(mlx5_verbs.m, ((struct fake_srq *)srq)->number);
	free(srq);
	return 0;
}

static struct ibv_qp *
create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	static uint32_t next_datagram_qpn = UD_QPN;
	uint32_t per = (32 + 4 + attr->cap.max_inline_data + MLX5_BLOCK - 1) / MLX5_BLOCK;
	struct fake_qp *qp;

	if (mlx5_verbs.plain && attr->qp_type == IBV_QPT_RC)
		return mlx_tm_create_qp(pd, attr);
	qp = calloc(1, sizeof(*qp));
	qp->ibv.context = pd->context;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.qp_type = attr->qp_type;
	if (attr->qp_type == IBV_QPT_UD) {
		qp->ibv.qp_num = next_datagram_qpn++;
		qp->max_send = attr->cap.max_send_wr;
		qp->max_inline = attr->cap.max_inline_data;
		LIST_INSERT_HEAD(&datagram_qps, qp, link);
		return &qp->ibv;
	}
	qp->ibv.qp_num = mlx5_model_qp(mlx5_verbs.m, rte_align32pow2(attr->cap.max_send_wr * per),
		mlx5_verbs_cq(attr->send_cq), mlx5_verbs_cq(attr->recv_cq),
		((struct fake_srq *)attr->srq)->number,
		((struct fake_pd *)pd)->uar, &qp->dv);
	return &qp->ibv;
}

/* What was posted for arrivals comes back; groups stay as they are. */
static void
datagrams_flush(struct fake_qp *qp)
{
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV,
		.qp_num = qp->ibv.qp_num};

	qp->state = IBV_QPS_ERR;
	for (; qp->n > 0; qp->n--) {
		wc.wr_id = qp->rx_id[qp->head];
		qp->head = (qp->head + 1) % UD_DEPTH;
		mlx5_verbs_done(qp->ibv.recv_cq, &wc);
	}
}

void
mlx5_verbs_fail(void)
{
	struct fake_qp *qp;

	LIST_FOREACH(qp, &datagram_qps, link)
		datagrams_flush(qp);
}

/* The device knows of nothing that was posted; the library of mlx5 forgets completions as well. */
static void
datagrams_reset(struct fake_qp *qp)
{
	struct fake_cq *cq = (struct fake_cq *)qp->ibv.send_cq;

	for (unsigned i = 0; i < cq->depth; i++)
		if (cq->sent[i].qp == qp)
			cq->sent[i].qp = NULL;
	out_end(qp, qp->n_out);
	qp->n = qp->n_new = 0;
	while (!mlx5_verbs.plain && cq->n > 0)
		(void)cq_take(cq);
	qp->state = IBV_QPS_RESET;
}

static int
datagrams_modify(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state == IBV_QPS_RESET) {
		datagrams_reset(qp);
		return 0;
	}
	if (attr->qp_state == IBV_QPS_ERR) {
		datagrams_flush(qp);
		return 0;
	}
	/* One after another: INIT, RTR, RTS. */
	if (attr->qp_state != qp->state + 1 || attr->qp_state > IBV_QPS_RTS)
		return EINVAL;
	qp->state = attr->qp_state;
	if (mask & IBV_QP_PORT)
		qp->port = mlx5_verbs_port(qp->ibv.context, attr->port_num);
	if (mask & IBV_QP_QKEY)
		qp->qkey = attr->qkey;
	return 0;
}

static int
modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (qp->qp_type == IBV_QPT_UD)
		return datagrams_modify((struct fake_qp *)qp, attr, mask);
	if (mlx5_verbs.plain)
		return mlx_tm_modify_qp(qp, attr, mask);
	if (attr->qp_state == IBV_QPS_RTR)
		mlx5_model_connect(mlx5_verbs.m, qp->qp_num, attr->dest_qp_num);
	else if (attr->qp_state == IBV_QPS_ERR)
		mlx5_model_qp_fail(mlx5_verbs.m, qp->qp_num);
	return 0;
}

static void
datagrams_end(struct fake_qp *qp)
{
	struct fake_cq *cq = (struct fake_cq *)qp->ibv.send_cq;

	for (unsigned i = 0; i < cq->depth; i++)
		if (cq->sent[i].qp == qp)
			cq->sent[i].qp = NULL;
	out_end(qp, qp->n_out);
	LIST_REMOVE(qp, link);
}

static int
destroy_qp(struct ibv_qp *ibv)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	if (mlx5_verbs.plain && ibv->qp_type == IBV_QPT_RC)
		return mlx_tm_destroy_qp(ibv);
	if (ibv->qp_type == IBV_QPT_UD)
		datagrams_end(qp);
	else
		mlx5_model_qp_destroy(mlx5_verbs.m, ibv->qp_num);
	free(qp);
	return 0;
}

static struct ibv_ah *
create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_ah *ah = calloc(1, sizeof(*ah));

	(void)pd;
	ah->attr = *attr;
	mlx5_verbs.n_ahs++;
	return &ah->ibv;
}

static int
destroy_ah(struct ibv_ah *ah)
{
	if (((struct fake_ah *)ah)->n_out != 0)
		abort();
	mlx5_verbs.n_ahs--;
	free(ah);
	return 0;
}

/* -- datagrams -- */

static unsigned
group_find(const struct fake_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	unsigned i = 0;

	while (i < qp->n_groups &&
		(memcmp(&qp->groups[i], gid, sizeof(*gid)) != 0 || qp->lids[i] != lid))
		i++;
	return i;
}

static int
attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	if (group_find(qp, gid, lid) != qp->n_groups || qp->n_groups == GROUPS_MAX)
		return EINVAL;
	qp->groups[qp->n_groups] = *gid;
	qp->lids[qp->n_groups++] = lid;
	return 0;
}

static int
detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;
	unsigned i = group_find(qp, gid, lid);

	if (i == qp->n_groups)
		return EINVAL;
	qp->groups[i] = qp->groups[--qp->n_groups];
	qp->lids[i] = qp->lids[qp->n_groups];
	return 0;
}

/* Whether a datagram comes to a queue pair, on whatever wire. */
static bool
is_meant(const struct fake_qp *to, const struct ibv_send_wr *wr, const struct ibv_ah_attr *way)
{
	if (wr->wr.ud.remote_qkey != to->qkey)
		return false;
	if (wr->wr.ud.remote_qpn != MULTICAST)
		return to->ibv.qp_num == wr->wr.ud.remote_qpn;
	return way->is_global && group_find(to, &way->grh.dgid, way->dlid) != to->n_groups;
}

static void
done_by(struct ibv_cq *ibv, const struct ibv_wc *wc, struct fake_sent sent)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	unsigned at = (cq->head + cq->n) % cq->depth;

	if (cq->n++ == cq->depth)
		abort();
	cq->wc[at] = *wc;
	cq->sent[at] = sent;
	if (cq->armed)
		mlx5_verbs_tell(ibv);
	cq->armed = false;
}

void
mlx5_verbs_done(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	done_by(ibv, wc, (struct fake_sent){.qp = NULL});
}

static int
post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	for (; wr != NULL; wr = wr->next) {
		unsigned i = (qp->head + qp->n) % UD_DEPTH;

		*bad = wr;
		if (qp->state == IBV_QPS_RESET)
			return EINVAL;
		if (qp->n++ == UD_DEPTH)
			return ENOMEM;
		qp->rx[i] = wr->sg_list[0];
		qp->rx_id[i] = wr->wr_id;
	}
	if (qp->state == IBV_QPS_ERR)
		datagrams_flush(qp);
	return 0;
}

static void
datagram_arrives(struct fake_qp *to, const struct ibv_sge *data, uint32_t src_qp)
{
	struct ibv_wc wc = {.wr_id = to->rx_id[to->head], .opcode = IBV_WC_RECV,
		.byte_len = data->length + GRH, .qp_num = to->ibv.qp_num, .src_qp = src_qp,
		.slid = LID};
	uint8_t *at = (uint8_t *)(uintptr_t)to->rx[to->head].addr;

	if (to->n == 0 || (to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS))
		return; /* lost */
	memcpy(at + GRH, (const void *)(uintptr_t)data->addr, data->length);
	to->head = (to->head + 1) % UD_DEPTH;
	to->n--;
	mlx5_verbs_done(to->ibv.recv_cq, &wc);
}

/* Every addressee gets it. */
static void
datagram_goes(const struct fake_qp *from, const struct ibv_send_wr *wr, const struct ibv_sge *data)
{
	const struct ibv_ah_attr *way = &((const struct fake_ah *)wr->wr.ud.ah)->attr;
	struct fake_qp *to;

	LIST_FOREACH(to, &datagram_qps, link)
		if (!mlx5_verbs.no_datagrams && is_meant(to, wr, way) &&
			mlx5_verbs_arrives(from->port, to->port, way))
			datagram_arrives(to, data, from->ibv.qp_num);
}

/* It is the device's until a completion is taken that stands for it. */
static void
out_add(struct fake_qp *qp, const struct ibv_send_wr *wr, const struct ibv_sge *data)
{
	struct fake_out *o = &qp->out[(qp->out_head + qp->n_out++) % UD_DEPTH];

	*o = (struct fake_out){.ah = (struct fake_ah *)wr->wr.ud.ah, .data = *data};
	o->ah->n_out++;
	qp->n_new++;
	mlx5_verbs.n_datagrams++;
	if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
		mlx5_verbs.n_inline++;
		return;
	}
	o->was = malloc(data->length);
	memcpy(o->was, (const void *)(uintptr_t)data->addr, data->length);
}

static int
post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	if (ibv->qp_type == IBV_QPT_RC)
		return mlx_tm_post_send(ibv, wr, bad);
	for (; wr != NULL; wr = wr->next) {
		const struct ibv_sge none = {.addr = (uintptr_t)wr};
		const struct ibv_sge *data = wr->num_sge != 0 ? wr->sg_list : &none;
		struct ibv_wc wc = {.wr_id = wr->wr_id, .opcode = IBV_WC_SEND,
			.qp_num = ibv->qp_num};

		*bad = wr;
		if (qp->state < IBV_QPS_RTS || qp->n_out == qp->max_send ||
			((wr->send_flags & IBV_SEND_INLINE) && data->length > qp->max_inline))
			return ENOMEM;
		out_add(qp, wr, data);
		if (qp->state == IBV_QPS_ERR)
			wc.status = IBV_WC_WR_FLUSH_ERR;
		else if (mlx5_verbs.datagrams_fail)
			wc.status = IBV_WC_LOC_QP_OP_ERR;
		else
			datagram_goes(qp, wr, data);
		if (wc.status == IBV_WC_SUCCESS && (wr->send_flags & IBV_SEND_SIGNALED) == 0)
			continue;
		mlx5_verbs.n_sent++;
		done_by(ibv->send_cq, &wc, (struct fake_sent){qp, qp->n_new});
		qp->n_new = 0;
		if (wc.status == IBV_WC_LOC_QP_OP_ERR)
			datagrams_flush(qp);
	}
	return 0;
}

static int
poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	int got = 0;

	mlx_tm_model_work();
	while (got < n && cq->n > 0)
		wc[got++] = cq->wc[cq_take(cq)];
	return got;
}

static int
req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	(void)solicited_only;
	if (!mlx_tm_arm(ibv))
		((struct fake_cq *)ibv)->armed = true;
	return 0;
}

/* -- libmlx5 -- */

static bool
is_supported(struct ibv_device *dev)
{
	(void)dev;
	return !mlx5_verbs.plain;
}

static int
init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	if (type & MLX5DV_OBJ_CQ) {
		struct fake_cq *cq = (struct fake_cq *)obj->cq.in;

		cq->number = mlx5_model_cq(mlx5_verbs.m, cq->depth, mlx5_verbs.cqe_size, &cq->dv);
		*obj->cq.out = cq->dv;
	}
	if (type & MLX5DV_OBJ_SRQ)
		*obj->srq.out = ((struct fake_srq *)obj->srq.in)->dv;
	if (type & MLX5DV_OBJ_QP)
		*obj->qp.out = ((struct fake_qp *)obj->qp.in)->dv;
	return 0;
}

static const struct verbs_context context = {.sz = sizeof(context), .query_port = query_port,
	.query_device_ex = mlx_tm_query_device_ex, .create_cq_ex = mlx_tm_create_cq_ex,
	.create_srq_ex = mlx_tm_create_srq_ex, .post_srq_ops = mlx_tm_post_srq_ops,
	.alloc_td = alloc_td, .dealloc_td = dealloc_td, .alloc_parent_domain = alloc_parent_domain,
	.context = {.abi_compat = __VERBS_ABI_IS_EXTENDED, .ops = {.poll_cq = poll_cq,
		.req_notify_cq = req_notify_cq, .post_send = post_send, .post_recv = post_recv,
		.post_srq_recv = mlx_tm_post_srq_recv}}};

void
mlx5_verbs_begin(void)
{
	static struct verbs_context first;

	first = context;
	mlx5_verbs.ctx = plain_pd.ibv.context = &first.context;
	mlx5_verbs.pd = &plain_pd.ibv;
	mlx5_glue = (struct mlx5_glue){is_supported, init_obj};
	mlx_glue = (struct mlx_glue){.get_device_list = get_device_list,
		.free_device_list = free_device_list, .get_device_name = get_device_name,
		.open_device = open_device, .close_device = close_device,
		.get_async_event = get_async_event, .ack_async_event = ack_async_event, .query_device = query_device,
		.query_gid_ex = query_gid_ex, .alloc_pd = alloc_pd, .dealloc_pd = dealloc_pd,
		.reg_mr = reg_mr, .dereg_mr = dereg_mr,
		.create_comp_channel = create_comp_channel,
		.destroy_comp_channel = destroy_comp_channel, .create_cq = create_cq,
		.destroy_cq = destroy_cq, .get_cq_event = get_cq_event,
		.ack_cq_events = ack_cq_events, .create_srq = create_srq,
		.destroy_srq = destroy_srq, .create_qp = create_qp, .modify_qp = modify_qp,
		.destroy_qp = destroy_qp, .create_ah = create_ah, .destroy_ah = destroy_ah,
		.attach_mcast = attach_mcast, .detach_mcast = detach_mcast};
}

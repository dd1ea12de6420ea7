/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm_model.c - librdmacm, and as much of libibverbs as messages by it need, in one process
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "mlx_cm_model.h"
#include "plx_unit_mlx.h"
#include "plx_unit_mlx_cm.h"

#define REQ_DATA     56 /* bytes of private data that come with a request */
#define REP_DATA     196
#define NO_SERVICE   8 /* status of a refusal: nobody listens */
#define BY_CONSUMER  28
#define PORT_FIRST   40000
#define COMPLETIONS  32
#define NOT_OURS     0xc0000200u /* 192.0.2.0 */

struct fake_event {
	struct rdma_cm_event ev;
	struct fake_id *id;
	uint8_t data[REP_DATA];
	TAILQ_ENTRY(fake_event) link;
};

struct fake_channel {
	struct rdma_event_channel rdma;
	TAILQ_HEAD(, fake_event) events;
};

struct fake_cq {
	struct ibv_cq ibv;
	struct ibv_wc wc[COMPLETIONS], held[COMPLETIONS];
	unsigned n, n_held;
	bool armed;
	LIST_ENTRY(fake_cq) link;
};

struct fake_qp {
	struct ibv_qp ibv;
	struct ibv_sge rx;
	uint64_t rx_id;
	bool posted, failed;
	uint8_t waiting[PLX_DEV_CM_SENDS][PLX_DEV_CM_MSG_MAX * 2]; /* no receive is posted */
	uint32_t waiting_len[PLX_DEV_CM_SENDS];
	unsigned n_waiting;
};

struct fake_id {
	struct rdma_cm_id rdma;
	struct fake_id *peer;
	bool listens, connected;
	unsigned n_unacked;
	LIST_ENTRY(fake_id) link;
};

struct mlx_cm_model mlx_cm_model;

static LIST_HEAD(, fake_id) ids = LIST_HEAD_INITIALIZER(ids);
static LIST_HEAD(, fake_cq) cqs = LIST_HEAD_INITIALIZER(cqs);
static uint16_t next_port = PORT_FIRST;
static struct ibv_device device = {.transport_type = IBV_TRANSPORT_IB, .name = "model0"};
static struct ibv_context context = {.device = &device};
static struct ibv_pd pd = {.context = &context};

static void *
make(size_t len)
{
	mlx_cm_model.live++;
	return calloc(1, len);
}

static int
destroy(void *p)
{
	mlx_cm_model.live--;
	free(p);
	return 0;
}

static int
fails(int err)
{
	errno = err;
	return -1;
}

static void
ring(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* --- completions and messages --- */

static void
complete(struct fake_cq *cq, const struct ibv_wc *wc)
{
	if (cq->n == COMPLETIONS)
		abort();
	cq->wc[cq->n++] = *wc;
	if (cq->armed)
		ring(cq->ibv.channel->fd);
	cq->armed = false;
}

static void
sent(struct fake_qp *q, uint64_t wr_id, enum ibv_wc_status status)
{
	struct fake_cq *cq = (struct fake_cq *)q->ibv.send_cq;
	struct ibv_wc wc = {.wr_id = wr_id, .status = status};

	q->failed |= status != IBV_WC_SUCCESS;
	if (mlx_cm_model.hold_acks)
		cq->held[cq->n_held++] = wc;
	else
		complete(cq, &wc);
}

static void
arrive(struct fake_qp *q, const void *data, uint32_t len)
{
	struct ibv_wc wc = {.wr_id = q->rx_id, .byte_len = len};

	q->posted = false;
	if (len <= q->rx.length)
		memcpy((void *)(uintptr_t)q->rx.addr, data, len);
	else
		wc.status = IBV_WC_LOC_LEN_ERR;
	q->failed |= wc.status != IBV_WC_SUCCESS;
	complete((struct fake_cq *)q->ibv.recv_cq, &wc);
}

static int
post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)ibv;

	*bad = wr;
	if (q->posted)
		return ENOMEM;
	q->posted = true;
	q->rx = wr->sg_list[0];
	q->rx_id = wr->wr_id;
	if (q->n_waiting > 0) {
		arrive(q, q->waiting[0], q->waiting_len[0]);
		q->n_waiting--;
		memmove(q->waiting[0], q->waiting[1], sizeof(q->waiting) - sizeof(q->waiting[0]));
		memmove(&q->waiting_len[0], &q->waiting_len[1],
			sizeof(q->waiting_len) - sizeof(q->waiting_len[0]));
	}
	return 0;
}

static struct fake_qp *
other_end(const struct fake_qp *q)
{
	struct fake_id *id;

	LIST_FOREACH(id, &ids, link) {
		if (id->rdma.qp == &q->ibv && id->connected && id->peer != NULL)
			return (struct fake_qp *)id->peer->rdma.qp;
	}
	return NULL;
}

static int
post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)ibv, *to = other_end(q);
	const void *data = (const void *)(uintptr_t)wr->sg_list[0].addr;
	uint32_t len = wr->sg_list[0].length;

	*bad = wr;
	if (to == NULL || to->failed || mlx_cm_model.fail_sends) {
		sent(q, wr->wr_id, IBV_WC_RETRY_EXC_ERR);
		return 0;
	}
	if (to->posted) {
		arrive(to, data, len);
	} else {
		memcpy(to->waiting[to->n_waiting], data, len);
		to->waiting_len[to->n_waiting++] = len;
	}
	sent(q, wr->wr_id, IBV_WC_SUCCESS);
	return 0;
}

static int
poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	int got = (int)cq->n < n ? (int)cq->n : n;

	memcpy(wc, cq->wc, got * sizeof(wc[0]));
	cq->n -= got;
	memmove(cq->wc, cq->wc + got, cq->n * sizeof(wc[0]));
	return got;
}

static int
req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	((struct fake_cq *)cq)->armed = true;
	return 0;
}

static struct ibv_mr *
reg_mr(struct ibv_pd *p, void *addr, size_t len, int access)
{
	(void)p;
	(void)addr;
	(void)len;
	(void)access;
	return make(sizeof(struct ibv_mr));
}

static int
dereg_mr(struct ibv_mr *mr)
{
	return destroy(mr);
}

static struct ibv_comp_channel *
create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *ch = make(sizeof(*ch));

	ch->context = ctx;
	ch->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return ch;
}

static int
destroy_comp_channel(struct ibv_comp_channel *ch)
{
	close(ch->fd);
	return destroy(ch);
}

static struct ibv_cq *
create_cq(struct ibv_context *ctx, int n, void *arg, struct ibv_comp_channel *ch, int vector)
{
	struct fake_cq *cq = make(sizeof(*cq));

	(void)n;
	(void)arg;
	(void)vector;
	cq->ibv.context = ctx;
	cq->ibv.channel = ch;
	LIST_INSERT_HEAD(&cqs, cq, link);
	return &cq->ibv;
}

static int
destroy_cq(struct ibv_cq *cq)
{
	LIST_REMOVE((struct fake_cq *)cq, link);
	return destroy(cq);
}

static int
get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **arg)
{
	struct fake_cq *c;
	uint64_t one;

	*arg = NULL;
	if (read(ch->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	LIST_FOREACH(c, &cqs, link) {
		if (c->ibv.channel == ch)
			break;
	}
	*cq = &c->ibv;
	return 0;
}

static void
ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

/* --- ids and events --- */

static void
tell(struct fake_id *id, enum rdma_cm_event_type type, int status, struct fake_id *listen_id,
	const void *data, uint8_t len, uint8_t max)
{
	struct fake_id *to = listen_id != NULL ? listen_id : id;
	struct fake_channel *ch = (struct fake_channel *)to->rdma.channel;
	struct fake_event *e = make(sizeof(*e));

	e->id = to;
	e->ev.id = &id->rdma;
	e->ev.listen_id = listen_id != NULL ? &listen_id->rdma : NULL;
	e->ev.event = type;
	e->ev.status = status;
	if (max != 0) {
		memcpy(e->data, data, len);
		e->ev.param.conn.private_data = e->data;
		e->ev.param.conn.private_data_len = max;
	}
	TAILQ_INSERT_TAIL(&ch->events, e, link);
	ring(ch->rdma.fd);
}

static void
tell_plain(struct fake_id *id, enum rdma_cm_event_type type, int status)
{
	tell(id, type, status, NULL, NULL, 0, 0);
}

static struct rdma_event_channel *
create_event_channel(void)
{
	struct fake_channel *ch = make(sizeof(*ch));

	ch->rdma.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	TAILQ_INIT(&ch->events);
	return &ch->rdma;
}

static void
destroy_event_channel(struct rdma_event_channel *channel)
{
	if (!TAILQ_EMPTY(&((struct fake_channel *)channel)->events))
		mlx_cm_model.wrong = "a channel is destroyed before its ids";
	close(channel->fd);
	destroy(channel);
}

static int
get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct fake_channel *ch = (struct fake_channel *)channel;
	struct fake_event *e;
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	e = TAILQ_FIRST(&ch->events);
	if (e == NULL)
		return fails(EAGAIN);
	TAILQ_REMOVE(&ch->events, e, link);
	e->id->n_unacked++;
	*out = &e->ev;
	return 0;
}

static int
ack_cm_event(struct rdma_cm_event *ev)
{
	struct fake_event *e = (struct fake_event *)ev;

	e->id->n_unacked--;
	return destroy(e);
}

static struct fake_id *
id_new(struct rdma_event_channel *channel, void *arg)
{
	struct fake_id *id = make(sizeof(*id));

	id->rdma.channel = channel;
	id->rdma.context = arg;
	LIST_INSERT_HEAD(&ids, id, link);
	return id;
}

static int
create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *arg,
	enum rdma_port_space ps)
{
	if (ps != RDMA_PS_TCP)
		mlx_cm_model.wrong = "not the number space of TCP";
	*out = &id_new(channel, arg)->rdma;
	return 0;
}

static int destroy_id(struct rdma_cm_id *rdma);

static void
take_back(struct fake_channel *ch, struct fake_event *e)
{
	uint64_t one;

	TAILQ_REMOVE(&ch->events, e, link);
	if (read(ch->rdma.fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* What was not taken goes with its id; clients that were not answered are refused. */
static void
drop_events(struct fake_id *id)
{
	struct fake_channel *ch = (struct fake_channel *)id->rdma.channel;
	struct fake_event *e, *next;

	for (e = TAILQ_FIRST(&ch->events); e != NULL; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->id != id)
			continue;
		take_back(ch, e);
		if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			destroy_id(e->ev.id);
		destroy(e);
	}
}

static void
part(struct fake_id *id)
{
	struct fake_id *peer = id->peer;

	if (peer == NULL)
		return;
	id->peer = peer->peer = NULL;
	tell_plain(peer, id->connected ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED,
		id->connected ? 0 : BY_CONSUMER);
	id->connected = peer->connected = false;
}

static int
destroy_id(struct rdma_cm_id *rdma)
{
	struct fake_id *id = (struct fake_id *)rdma;

	drop_events(id);
	if (id->n_unacked != 0)
		mlx_cm_model.wrong = "an id is destroyed while an event of it is used: waits for ever";
	if (rdma->qp != NULL)
		mlx_cm_model.wrong = "an id is destroyed before its queue pair";
	part(id);
	LIST_REMOVE(id, link);
	return destroy(id);
}

static int
migrate_id(struct rdma_cm_id *rdma, struct rdma_event_channel *channel)
{
	struct fake_id *id = (struct fake_id *)rdma;
	struct fake_channel *from = (struct fake_channel *)rdma->channel;
	struct fake_event *e, *next;

	if (id->n_unacked != 0)
		mlx_cm_model.wrong = "an id moves while an event of it is used: waits for ever";
	for (e = TAILQ_FIRST(&from->events); e != NULL; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->id == id) {
			take_back(from, e);
			TAILQ_INSERT_TAIL(&((struct fake_channel *)channel)->events, e, link);
			ring(channel->fd);
		}
	}
	rdma->channel = channel;
	return 0;
}

static bool
is_ours(const struct sockaddr *addr)
{
	uint32_t at = ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr);

	return (at & 0xffffff00u) != NOT_OURS && at >> 24 != IN_LOOPBACKNET;
}

static struct fake_id *
listener_of(uint16_t port)
{
	struct fake_id *id;

	LIST_FOREACH(id, &ids, link) {
		if (id->listens && id->rdma.route.addr.src_sin.sin_port == port)
			break;
	}
	return id;
}

static int
bind_addr(struct rdma_cm_id *rdma, struct sockaddr *addr)
{
	struct sockaddr_in *src = &rdma->route.addr.src_sin;

	if (!is_ours(addr))
		return fails(ENODEV);
	memcpy(src, addr, sizeof(*src));
	if (src->sin_port == 0)
		src->sin_port = htons(next_port++);
	else if (listener_of(src->sin_port) != NULL)
		return fails(EADDRINUSE);
	return 0;
}

static int
do_listen(struct rdma_cm_id *rdma, int backlog)
{
	(void)backlog;
	((struct fake_id *)rdma)->listens = true;
	return 0;
}

static void
id_device(struct rdma_cm_id *rdma)
{
	rdma->verbs = &context;
	rdma->pd = &pd;
}

static int
resolve_addr(struct rdma_cm_id *rdma, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	(void)timeout_ms;
	if (src != NULL && bind_addr(rdma, src) != 0)
		return -1;
	memcpy(&rdma->route.addr.dst_sin, dst, sizeof(struct sockaddr_in));
	if (!is_ours(dst)) {
		tell_plain((struct fake_id *)rdma, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
		return 0;
	}
	id_device(rdma);
	tell_plain((struct fake_id *)rdma, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return 0;
}

static int
resolve_route(struct rdma_cm_id *rdma, int timeout_ms)
{
	(void)timeout_ms;
	tell_plain((struct fake_id *)rdma, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

static int
create_qp(struct rdma_cm_id *rdma, struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *q = make(sizeof(*q));

	(void)p;
	q->ibv.context = &context;
	q->ibv.send_cq = attr->send_cq;
	q->ibv.recv_cq = attr->recv_cq;
	rdma->qp = &q->ibv;
	return 0;
}

static void
destroy_qp(struct rdma_cm_id *rdma)
{
	destroy(rdma->qp);
	rdma->qp = NULL;
}

static int
do_connect(struct rdma_cm_id *rdma, struct rdma_conn_param *p)
{
	struct fake_id *id = (struct fake_id *)rdma, *server;
	struct fake_id *l = listener_of(rdma->route.addr.dst_sin.sin_port);

	if (p->private_data_len > REQ_DATA)
		return fails(EINVAL);
	if (mlx_cm_model.silent)
		return 0;
	if (l == NULL) {
		tell_plain(id, RDMA_CM_EVENT_REJECTED, NO_SERVICE);
		return 0;
	}
	server = id_new(l->rdma.channel, l->rdma.context);
	id_device(&server->rdma);
	server->rdma.route.addr.src_sin = l->rdma.route.addr.src_sin;
	server->rdma.route.addr.dst_sin = rdma->route.addr.src_sin;
	server->rdma.route.addr.dst_sin.sin_family = AF_INET;
	server->peer = id;
	id->peer = server;
	tell(server, RDMA_CM_EVENT_CONNECT_REQUEST, 0, l, p->private_data, p->private_data_len,
		REQ_DATA);
	return 0;
}

static int
do_accept(struct rdma_cm_id *rdma, struct rdma_conn_param *p)
{
	struct fake_id *id = (struct fake_id *)rdma;
	uint8_t data[REP_DATA] = {0};

	if (id->peer == NULL)
		return fails(EINVAL); /* the client has gone */
	if (rdma->qp == NULL || !((struct fake_qp *)rdma->qp)->posted)
		mlx_cm_model.wrong = "accepted before it can receive";
	memcpy(data, p->private_data, p->private_data_len);
	data[4] ^= mlx_cm_model.strange;
	id->connected = id->peer->connected = true;
	tell(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, data, sizeof(data), sizeof(data));
	tell_plain(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	return 0;
}

static int
do_reject(struct rdma_cm_id *rdma, const void *data, uint8_t len)
{
	(void)data;
	(void)len;
	part((struct fake_id *)rdma);
	return 0;
}

static int
do_disconnect(struct rdma_cm_id *rdma)
{
	struct fake_id *id = (struct fake_id *)rdma;

	if (!id->connected)
		return fails(EINVAL);
	part(id);
	return 0;
}

void
mlx_cm_model_ack(void)
{
	struct fake_cq *cq;

	mlx_cm_model.hold_acks = false;
	LIST_FOREACH(cq, &cqs, link) {
		for (unsigned i = 0; i < cq->n_held; i++)
			complete(cq, &cq->held[i]);
		cq->n_held = 0;
	}
}

void
mlx_cm_model_remove(void)
{
	struct fake_id *id;

	LIST_FOREACH(id, &ids, link)
		tell_plain(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

void
mlx_cm_model_begin(void)
{
	mlx_cm_model = (struct mlx_cm_model){.live = 0};
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	mlx_glue.reg_mr = reg_mr;
	mlx_glue.dereg_mr = dereg_mr;
	mlx_glue.create_comp_channel = create_comp_channel;
	mlx_glue.destroy_comp_channel = destroy_comp_channel;
	mlx_glue.create_cq = create_cq;
	mlx_glue.destroy_cq = destroy_cq;
	mlx_glue.get_cq_event = get_cq_event;
	mlx_glue.ack_cq_events = ack_cq_events;
	mlx_cm_glue = (struct mlx_cm_glue){.create_event_channel = create_event_channel,
		.destroy_event_channel = destroy_event_channel, .get_cm_event = get_cm_event,
		.ack_cm_event = ack_cm_event, .create_id = create_id, .destroy_id = destroy_id,
		.migrate_id = migrate_id, .bind_addr = bind_addr, .listen = do_listen,
		.resolve_addr = resolve_addr, .resolve_route = resolve_route,
		.create_qp = create_qp, .destroy_qp = destroy_qp, .connect = do_connect,
		.accept = do_accept, .reject = do_reject, .disconnect = do_disconnect};
}

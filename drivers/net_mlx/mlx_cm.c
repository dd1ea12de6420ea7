/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm.c - listeners and clients by the RDMA connection manager (librdmacm)
 *
 * Design notes
 * - Each listener and each connection has an event channel of its own, so that another thread can
 *   take it over like a descriptor. The messages of both sides are longer than private data may
 *   be (56 bytes of a request), so a request carries a hello only, is accepted at once, and the
 *   messages use the queue pair of that connection. That one is closed after the exchange: the
 *   manager makes it on its own device context, outside of the worker's shared receive queue, and
 *   one for each connection.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "mlx_base.h"
#include "mlx_cm.h"

#define BACKLOG	    1024
#define RESOLVE_MS  5000 /* of an address, and of a route */
#define RETRIES	    7
#define RNR_RETRIES 7	 /* for ever: the other side has not polled yet */

static const struct mlx_cm_hello hello = {MLX_CM_MAGIC, MLX_CM_VERSION, PLX_DEV_CM_MSG_MAX};

static struct mlx_cm_id *
mlx_cm_id(struct plx_dev_cm_id *id)
{
	return (struct mlx_cm_id *)id;
}

static int
last_error(void)
{
	return errno > 0 ? -errno : -EIO;
}

static struct rdma_conn_param
conn_param(void)
{
	return (struct rdma_conn_param){.private_data = &hello, .private_data_len = sizeof(hello),
		.retry_count = RETRIES, .rnr_retry_count = RNR_RETRIES};
}

/* It comes from anybody, padded with zeros. */
static bool
is_hello(const struct rdma_conn_param *p)
{
	return p->private_data != NULL && p->private_data_len >= sizeof(hello) &&
		memcmp(p->private_data, &hello, sizeof(hello)) == 0;
}

static int
id_make(struct mlx_cm_id **out)
{
	struct mlx_cm_id *c;
	int rc = mlx_cm_glue_open();

	if (rc == 0)
		rc = mlx_cm_id_new(&c);
	if (rc != 0)
		return rc;
	if (mlx_cm_glue.create_id(c->channel, &c->id, c, RDMA_PS_TCP) != 0) {
		rc = last_error();
		c->id = NULL;
		mlx_cm_id_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

static int
cm_listen(const struct sockaddr *addr, struct plx_dev_cm_id **out)
{
	struct mlx_cm_id *c;
	int rc = id_make(&c);

	if (rc != 0)
		return rc;
	if (mlx_cm_glue.bind_addr(c->id, (struct sockaddr *)addr) != 0 ||
		mlx_cm_glue.listen(c->id, BACKLOG) != 0) {
		rc = last_error();
		mlx_cm_id_free(c);
		return rc == -EADDRNOTAVAIL ? -ENODEV : rc;
	}
	*out = &c->dev;
	return 0;
}

static int
cm_connect(const struct sockaddr *to, const struct sockaddr *local, struct plx_dev_cm_id **out)
{
	struct mlx_cm_id *c;
	int rc = id_make(&c);

	if (rc != 0)
		return rc;
	c->client = true;
	if (mlx_cm_glue.resolve_addr(c->id, (struct sockaddr *)local, (struct sockaddr *)to,
		RESOLVE_MS) != 0) {
		rc = last_error();
		mlx_cm_id_free(c);
		return rc;
	}
	*out = &c->dev;
	return 0;
}

static int
route_known(struct mlx_cm_id *c)
{
	struct rdma_conn_param p = conn_param();
	int rc = mlx_cm_id_qp(c);

	if (rc == 0 && mlx_cm_glue.connect(c->id, &p) != 0)
		rc = last_error();
	return rc;
}

static int
accept_it(struct mlx_cm_id *c)
{
	struct rdma_conn_param p = conn_param();
	int rc;

	if (mlx_cm_glue.migrate_id(c->id, c->channel) != 0)
		return last_error();
	rc = mlx_cm_id_qp(c);
	if (rc == 0 && mlx_cm_glue.accept(c->id, &p) != 0)
		rc = last_error();
	return rc;
}

/* A client asks; its hello is valid or not. */
static void
asked(struct rdma_cm_id *id, bool good, struct plx_dev_cm_event *ev)
{
	struct mlx_cm_id *c = NULL;
	int rc = good ? mlx_cm_id_new(&c) : -EPROTO;

	if (rc == 0) {
		c->id = id;
		rc = accept_it(c);
	}
	if (rc == 0) {
		ev->what = PLX_DEV_CM_ASKED;
		ev->id = &c->dev;
		return;
	}
	mlx_cm_glue.reject(id, NULL, 0);
	if (c != NULL)
		mlx_cm_id_free(c);
	else
		mlx_cm_glue.destroy_id(id);
	PLX_LOG_RATELIMIT(INFO, mlx, "a client of the connection manager is refused: error %d", -rc);
	ev->what = PLX_DEV_CM_REFUSED;
	ev->err = rc;
}

static void
failed(struct mlx_cm_id *c, int err, struct plx_dev_cm_event *ev)
{
	c->err = err;
	ev->what = PLX_DEV_CM_FAILED;
	ev->err = err;
}

/* Events of the manager other than requests. */
static void
told(struct mlx_cm_id *c, enum rdma_cm_event_type type, bool good, struct plx_dev_cm_event *ev)
{
	int rc = 0;

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (mlx_cm_glue.resolve_route(c->id, RESOLVE_MS) != 0)
			rc = last_error();
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		rc = route_known(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (c->client && !good)
			rc = -EPROTO;
		else if (c->client)
			ev->what = PLX_DEV_CM_OPEN;
		break;
	case RDMA_CM_EVENT_REJECTED:
		rc = -ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		rc = -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
		rc = -ECONNRESET;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		PLX_LOG_RATELIMIT(WARNING, mlx, "a device was removed: listeners on its addresses are closed");
		rc = -ENODEV;
		break;
	default:
		break;
	}
	if (rc != 0)
		failed(c, rc, ev);
}

static void
take(struct mlx_cm_id *c, struct plx_dev_cm_event *ev)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	bool good;

	if (mlx_cm_glue.get_cm_event(c->channel, &e) != 0) {
		if (errno != EAGAIN && errno != EINTR)
			failed(c, last_error(), ev);
		return;
	}
	type = e->event;
	id = e->id;
	good = (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED) &&
		is_hello(&e->param.conn);
	mlx_cm_glue.ack_cm_event(e); /* destroying an id waits for its events */
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		asked(id, good, ev);
	else
		told(c, type, good, ev);
}

static void
cm_event(struct plx_dev_cm_id *id, void *buf, struct plx_dev_cm_event *ev)
{
	struct mlx_cm_id *c = mlx_cm_id(id);
	struct pollfd p = {.fd = c->channel->fd, .events = POLLIN};
	/* Before the messages: those that were sent before the close are seen before it. */
	bool events = poll(&p, 1, 0) > 0;

	*ev = (struct plx_dev_cm_event){.what = PLX_DEV_CM_NONE};
	ev->len = mlx_cm_id_poll(c, buf);
	if (ev->len != 0)
		ev->what = PLX_DEV_CM_MSG;
	else if (c->err != 0)
		failed(c, c->err, ev);
	else if (events)
		take(c, ev);
}

static void
cm_addrs(const struct plx_dev_cm_id *id, struct sockaddr_storage *local,
	struct sockaddr_storage *remote)
{
	const struct rdma_addr *a = &((const struct mlx_cm_id *)id)->id->route.addr;

	*local = a->src_storage;
	*remote = a->dst_storage;
}

static void
cm_close(struct plx_dev_cm_id *id)
{
	mlx_cm_id_free(mlx_cm_id(id));
}

const struct plx_dev_cm_ops mlx_cm_ops = {
	.listen = cm_listen,
	.connect = cm_connect,
	.event = cm_event,
	.send = mlx_cm_id_send,
	.busy = mlx_cm_id_busy,
	.addrs = cm_addrs,
	.close = cm_close,
};

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci.c - the CCI back end: one endpoint, and to each destination a connection for data and one
 * for words between the tests
 *
 * Design notes
 * - CCI has no tags and no posted receives. A message belongs to a queue by its connection, and
 *   to the oldest receive of that queue; a message before its receive stays in its event.
 * - A message is read in place, as a program would do; only --verify copies it.
 * - Side A connects and side B answers on the accepted connection, as CCI programs do: messages
 *   on the same connection carry acknowledgements, which otherwise need messages of their own.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <cci.h>
#include "perf_ucp.h"

#define CCI_SIDE_BATCH	64 /* connection requests in progress */
#define CCI_SIDE_QUEUES 2  /* data, words */

/* A posted receive, or the event of a message without one. */
struct cci_item {
	STAILQ_ENTRY(cci_item) link;
	struct perf_io *io;
	void *buf;
	size_t len;
	cci_event_t *event;
};
STAILQ_HEAD(cci_items, cci_item);

/* A connection, or a request for one; its address is the connection's context. */
struct cci_link {
	unsigned queue;
	bool done;
	int status;
	cci_connection_t *conn;
};

struct cci_side {
	cci_endpoint_t *ep;
	struct cci_link links[CCI_SIDE_QUEUES]; /* with the other side */
	struct cci_items posted[CCI_SIDE_QUEUES];
	struct cci_items arrived[CCI_SIDE_QUEUES];
	struct cci_items free;
	cci_connection_t **eps; /* of the conn_mem test */
	unsigned n_eps;
	int send_flags;
	cci_rma_handle_t *local; /* of sbuf */
	cci_rma_handle_t *shown; /* of rbuf, to the other side */
	struct cci_rma_handle remote;
	ucp_context_h context; /* for mapped memory */
	ucp_mem_h memh;
};

static int
cci_side_fail(struct perf_side *s, const char *what, int status)
{
	return perf_fail(s, "%s: %s (%d)", what, cci_strerror(NULL, status), status);
}

static const char *
cci_side_version(void)
{
	return "ABI 2";
}

static int
cci_side_open(struct perf_side *s)
{
	struct cci_side *u = calloc(1, sizeof(*u));
	uint64_t start = rte_rdtsc();
	uint32_t caps;
	int rc;

	if (u == NULL)
		return perf_fail(s, "out of memory");
	for (int i = 0; i < CCI_SIDE_QUEUES; i++) {
		STAILQ_INIT(&u->posted[i]);
		STAILQ_INIT(&u->arrived[i]);
		u->links[i].queue = i;
	}
	STAILQ_INIT(&u->free);
	u->send_flags = (s->o->silent ? CCI_FLAG_SILENT : 0) | (s->o->no_copy ? CCI_FLAG_NO_COPY : 0);
	rc = cci_init(CCI_ABI_VERSION, 0, &caps);
	if (rc != CCI_SUCCESS) {
		free(u);
		return cci_side_fail(s, "cci_init", rc);
	}
	s->context_ticks = rte_rdtsc() - start;
	start = rte_rdtsc();
	rc = cci_create_endpoint(NULL, 0, &u->ep, NULL);
	if (rc != CCI_SUCCESS) {
		cci_finalize();
		free(u);
		return cci_side_fail(s, "cci_create_endpoint", rc);
	}
	s->worker_ticks = rte_rdtsc() - start;
	s->be_priv = u;
	return 0;
}

static void
cci_items_free(struct cci_items *items)
{
	struct cci_item *item;

	while ((item = STAILQ_FIRST(items)) != NULL) {
		STAILQ_REMOVE_HEAD(items, link);
		free(item);
	}
}

static void
cci_side_close(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;

	if (u == NULL)
		return;
	s->be_priv = NULL;
	cci_destroy_endpoint(u->ep);
	cci_finalize();
	for (int i = 0; i < CCI_SIDE_QUEUES; i++) {
		cci_items_free(&u->posted[i]);
		cci_items_free(&u->arrived[i]);
	}
	cci_items_free(&u->free);
	if (u->context != NULL)
		ucp_cleanup(u->context);
	free(u->eps);
	free(u);
}

static int
cci_side_address(struct perf_side *s, void **addr, size_t *len)
{
	struct cci_side *u = s->be_priv;
	char *uri;
	int rc = cci_get_opt(u->ep, CCI_OPT_ENDPT_URI, &uri);

	if (rc != CCI_SUCCESS)
		return cci_side_fail(s, "cci_get_opt", rc);
	*addr = uri;
	*len = strlen(uri) + 1;
	return 0;
}

/* ---- events ---- */

static struct cci_item *
cci_item_new(struct cci_side *u)
{
	struct cci_item *item = STAILQ_FIRST(&u->free);

	if (likely(item != NULL))
		STAILQ_REMOVE_HEAD(&u->free, link);
	else
		item = malloc(sizeof(*item));
	return item;
}

/* A message has matched its receive. */
static inline void
cci_side_received(struct perf_side *s, struct perf_io *io, void *buf, size_t len, cci_event_t *event)
{
	io->len = event->recv.len;
	io->status = io->len > len ? CCI_EMSGSIZE : 0;
	if (unlikely(s->o->verify) && io->status == 0)
		memcpy(buf, event->recv.ptr, io->len);
	io->done = 1;
	cci_return_event(event);
}

/* A message without a receive stays in its event. */
static inline void
cci_side_message(struct perf_side *s, struct cci_side *u, cci_event_t *event)
{
	const struct cci_link *link = event->recv.connection->context;
	unsigned queue = link->queue;
	struct cci_item *item = STAILQ_FIRST(&u->posted[queue]);

	if (likely(item != NULL)) {
		STAILQ_REMOVE_HEAD(&u->posted[queue], link);
		cci_side_received(s, item->io, item->buf, item->len, event);
		STAILQ_INSERT_HEAD(&u->free, item, link);
		return;
	}
	item = cci_item_new(u);
	if (item == NULL) {
		perf_fail(s, "out of memory");
		return;
	}
	item->event = event;
	STAILQ_INSERT_TAIL(&u->arrived[queue], item, link);
}

/* The first connection of each queue carries answers; the others belong to the conn_mem test. */
static void
cci_link_settle(struct cci_link *link, int status, cci_connection_t *conn)
{
	if (link->done)
		return;
	link->status = status;
	link->conn = conn;
	link->done = true;
}

static void
cci_side_other(struct perf_side *s, struct cci_side *u, cci_event_t *event)
{
	int rc = CCI_SUCCESS;

	switch (event->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		rc = cci_accept(event, &u->links[event->request.data_len % CCI_SIDE_QUEUES]);
		break;
	case CCI_EVENT_CONNECT:
		cci_link_settle(event->connect.context, event->connect.status,
			event->connect.connection);
		break;
	case CCI_EVENT_ACCEPT:
		rc = event->accept.status;
		cci_link_settle(event->accept.context, event->accept.status,
			event->accept.connection);
		break;
	default:
		perf_fail(s, "an unexpected %s", cci_event_type_str(event->type));
		break;
	}
	if (rc != CCI_SUCCESS)
		cci_side_fail(s, "accepting", rc);
	cci_return_event(event);
}

void
perf_cci_event(struct perf_side *s, cci_event_t *event)
{
	struct perf_io *io;

	switch (event->type) {
	case CCI_EVENT_SEND:
		io = event->send.context;
		io->status = event->send.status;
		io->done = 1;
		cci_return_event(event);
		break;
	case CCI_EVENT_RECV:
		cci_side_message(s, s->be_priv, event);
		break;
	default:
		cci_side_other(s, s->be_priv, event);
		break;
	}
}

static unsigned
cci_side_progress(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;
	cci_event_t *event;

	if (cci_get_event(u->ep, &event) != CCI_SUCCESS)
		return 0;
	perf_cci_event(s, event);
	return 1;
}

void
perf_cci_handles(struct perf_side *s, struct perf_cci *out)
{
	struct cci_side *u = s->be_priv;

	*out = (struct perf_cci){.ep = u->ep, .conn = u->links[0].conn, .send_flags = u->send_flags};
}

cci_event_t *
perf_cci_held(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;
	struct cci_item *item = STAILQ_FIRST(&u->arrived[0]);

	if (item == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&u->arrived[0], link);
	STAILQ_INSERT_HEAD(&u->free, item, link);
	return item->event;
}

/* ---- connections ---- */

/* The length of the request's data tells the queue of a connection. */
static int
cci_side_ask(struct perf_side *s, const char *uri, struct cci_link *link)
{
	struct cci_side *u = s->be_priv;
	int rc;

	link->done = false;
	rc = cci_connect(u->ep, uri, "w", link->queue, s->o->attr, link, 0, NULL);
	return rc == CCI_SUCCESS ? 0 : cci_side_fail(s, "cci_connect", rc);
}

static int
cci_side_asked(struct perf_side *s, const struct cci_link *link)
{
	uint64_t spins = 0;

	while (!link->done) {
		cci_side_progress(s);
		if ((++spins & 0xfff) == 0 && perf_wait_slow(s, spins) != 0)
			return -1;
	}
	return link->status == CCI_SUCCESS ? 0 : cci_side_fail(s, "connecting", link->status);
}

static int
cci_side_connect(struct perf_side *s, enum perf_dest dest, const void *addr, size_t len)
{
	struct cci_side *u = s->be_priv;

	(void)dest;
	if (len == 0 || ((const char *)addr)[len - 1] != '\0')
		return perf_fail(s, "the other side's address is no URI");
	for (unsigned q = 0; q < CCI_SIDE_QUEUES; q++) {
		if (s->rank == 0 && cci_side_ask(s, addr, &u->links[q]) != 0)
			return -1;
		if (cci_side_asked(s, &u->links[q]) != 0)
			return -1;
	}
	return 0;
}

static int
cci_side_disconnect(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;

	for (int q = 0; q < CCI_SIDE_QUEUES; q++) {
		if (u->links[q].conn != NULL)
			cci_disconnect(u->links[q].conn);
		u->links[q].conn = NULL;
	}
	return 0;
}

static int
cci_side_eps_create(struct perf_side *s, unsigned n)
{
	struct cci_link links[CCI_SIDE_BATCH] = {{0}};
	struct cci_side *u = s->be_priv;
	unsigned asked = 0;

	u->eps = calloc(n, sizeof(*u->eps));
	if (u->eps == NULL)
		return perf_fail(s, "out of memory");
	for (u->n_eps = 0; u->n_eps < n; u->n_eps++) {
		for (; asked < n && asked < u->n_eps + CCI_SIDE_BATCH; asked++) {
			if (cci_side_ask(s, s->peer_addr, &links[asked % CCI_SIDE_BATCH]) != 0)
				return -1;
		}
		if (cci_side_asked(s, &links[u->n_eps % CCI_SIDE_BATCH]) != 0)
			return -1;
		u->eps[u->n_eps] = links[u->n_eps % CCI_SIDE_BATCH].conn;
		if (u->n_eps % CCI_SIDE_BATCH == 0)
			perf_alive(s);
	}
	return 0;
}

static int
cci_side_eps_close(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;

	for (unsigned i = 0; i < u->n_eps; i++)
		cci_disconnect(u->eps[i]);
	free(u->eps);
	u->eps = NULL;
	u->n_eps = 0;
	return 0;
}

/* ---- messages ---- */

static inline unsigned
cci_queue(uint64_t tag)
{
	return tag == PERF_TAG_ACK;
}

/* The call found no buffer: run turns until it succeeds. */
static int
cci_side_retry(struct perf_side *s, uint64_t *spins)
{
	s->be->progress(s);
	return (++*spins & 0xfff) == 0 ? perf_wait_slow(s, *spins) : 0;
}

static int
cci_side_send_on(struct perf_side *s, cci_connection_t *conn, struct perf_io *io, const void *buf,
	size_t len)
{
	struct cci_side *u = s->be_priv;
	uint64_t spins = 0;
	int rc;

	io->done = (u->send_flags & CCI_FLAG_SILENT) != 0;
	io->status = 0;
	while ((rc = cci_send(conn, buf, (uint32_t)len, io, u->send_flags)) == CCI_ENOBUFS) {
		if (cci_side_retry(s, &spins) != 0)
			return -1;
	}
	return likely(rc == CCI_SUCCESS) ? 0 : cci_side_fail(s, "cci_send", rc);
}

static int
cci_side_send(struct perf_side *s, struct perf_io *io, enum perf_dest dest, const void *buf,
	size_t len, uint64_t tag, unsigned flags)
{
	struct cci_side *u = s->be_priv;

	(void)dest;
	(void)flags;
	return cci_side_send_on(s, u->links[cci_queue(tag)].conn, io, buf, len);
}

static int
cci_side_eps_use(struct perf_side *s, unsigned i, struct perf_io *io, uint64_t tag)
{
	struct cci_side *u = s->be_priv;

	(void)tag;
	return cci_side_send_on(s, u->eps[i], io, s->sbuf, 8);
}

static int
cci_side_recv(
	struct perf_side *s, struct perf_io *io, void *buf, size_t len, uint64_t tag, uint64_t mask)
{
	struct cci_side *u = s->be_priv;
	unsigned queue = cci_queue(tag);
	struct cci_item *item = STAILQ_FIRST(&u->arrived[queue]);

	(void)mask;
	io->done = 0;
	io->status = 0;
	if (item != NULL) {
		STAILQ_REMOVE_HEAD(&u->arrived[queue], link);
		cci_side_received(s, io, buf, len, item->event);
		STAILQ_INSERT_HEAD(&u->free, item, link);
		return 0;
	}
	item = cci_item_new(u);
	if (unlikely(item == NULL))
		return perf_fail(s, "out of memory");
	item->io = io;
	item->buf = buf;
	item->len = len;
	STAILQ_INSERT_TAIL(&u->posted[queue], item, link);
	return 0;
}

/* ---- memory ---- */

/* CCI allocates no memory, but registers memory that UCP has allocated in this process. */
static int
cci_side_mem_alloc(struct perf_side *s, size_t len)
{
	struct cci_side *u = s->be_priv;
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};

	if (u->context == NULL && ucp_init(&params, NULL, &u->context) != UCS_OK) {
		u->context = NULL;
		return perf_fail(s, "ucp_init failed");
	}
	return perf_ucp_alloc(s, u->context, len, &u->memh);
}

static void
cci_side_mem_free(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;

	if (u == NULL || u->memh == NULL)
		return;
	ucp_mem_unmap(u->context, u->memh);
	u->memh = NULL;
}

/* Register the buffers and send the handle to the other side. */
static int
cci_side_rma_open(struct perf_side *s)
{
	const int rights = CCI_FLAG_READ | CCI_FLAG_WRITE;
	struct cci_side *u = s->be_priv;
	void *data;
	size_t len;
	int rc;

	rc = cci_rma_register(u->ep, s->sbuf, s->buf_len, 0, &u->local);
	if (rc == CCI_SUCCESS)
		rc = cci_rma_register(u->ep, s->rbuf, s->buf_len, rights, &u->shown);
	if (rc != CCI_SUCCESS)
		return cci_side_fail(s, "cci_rma_register", rc);
	if (chan_send(s->ctl_fd, u->shown, sizeof(*u->shown), s->o->timeout) != 0 ||
		chan_recv(s, s->ctl_fd, &data, &len, s->o->timeout) != 0)
		return perf_fail(s, "the handles could not be exchanged");
	if (len == sizeof(u->remote))
		memcpy(&u->remote, data, len);
	free(data);
	return len == sizeof(u->remote) ? 0 : perf_fail(s, "the other side sent no handle");
}

static int
cci_side_rma_close(struct perf_side *s)
{
	struct cci_side *u = s->be_priv;
	int rc = cci_rma_deregister(u->ep, u->local);

	if (rc == CCI_SUCCESS)
		rc = cci_rma_deregister(u->ep, u->shown);
	return rc == CCI_SUCCESS ? 0 : cci_side_fail(s, "cci_rma_deregister", rc);
}

static int
cci_side_rma(struct perf_side *s, struct perf_io *io, bool write, size_t at, size_t len)
{
	const int flags = write ? CCI_FLAG_WRITE : CCI_FLAG_READ;
	struct cci_side *u = s->be_priv;
	uint64_t spins = 0;
	int rc;

	io->done = 0;
	io->status = 0;
	while ((rc = cci_rma(u->links[0].conn, NULL, 0, u->local, at, &u->remote, at, len, io,
			flags)) == CCI_ENOBUFS) {
		if (cci_side_retry(s, &spins) != 0)
			return -1;
	}
	return likely(rc == CCI_SUCCESS) ? 0 : cci_side_fail(s, "cci_rma", rc);
}

const struct perf_backend perf_backend_cci = {
	.name = "cci",
	.version = cci_side_version,
	.open = cci_side_open,
	.close = cci_side_close,
	.address = cci_side_address,
	.connect = cci_side_connect,
	.disconnect = cci_side_disconnect,
	.mem_alloc = cci_side_mem_alloc,
	.mem_free = cci_side_mem_free,
	.send = cci_side_send,
	.recv = cci_side_recv,
	.progress = cci_side_progress,
	.eps_create = cci_side_eps_create,
	.eps_use = cci_side_eps_use,
	.eps_close = cci_side_eps_close,
	.rma_open = cci_side_rma_open,
	.rma = cci_side_rma,
	.rma_close = cci_side_rma_close,
};

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_conn.c - connect, accept, reject, disconnect
 */
#include <errno.h>

#include "cci_int.h"

_Static_assert((int)PLX_CHAN_RO == CCI_CONN_ATTR_RO && (int)PLX_CHAN_RU == CCI_CONN_ATTR_RU &&
	(int)PLX_CHAN_UU == CCI_CONN_ATTR_UU, "the core's numbers are CCI's");
_Static_assert((int)PLX_CHAN_MC_TX == CCI_CONN_ATTR_UU_MC_TX &&
	(int)PLX_CHAN_MC_RX == CCI_CONN_ATTR_UU_MC_RX, "those of groups, too");

/* A connection's memory, with the application's parameters. */
static struct cci_conn *
conn_get(struct cci_ep *ep, cci_conn_attribute_t attribute, const void *context)
{
	struct cci_conn *c = plx_pool_get(&ep->conns);

	if (c == NULL)
		return NULL;
	c->pub.max_send_size = 0;
	c->pub.endpoint = &ep->pub;
	c->pub.attribute = attribute;
	c->pub.context = (void *)(uintptr_t)context;
	c->magic = CCI_MAGIC_CONN;
	c->ep = ep;
	c->member.fd = -1;
	c->send_timeout_us = 0;
	c->keepalive_us = ep->keepalive_us;
	c->keepalive_epoch = ep->keepalive_epoch;
	return c;
}

/* Microseconds; 0 never. @return whether t is valid */
static bool
timeout_us(const struct timeval *t, uint64_t *us)
{
	*us = 0;
	if (t == NULL)
		return true;
	if (t->tv_sec < 0 || t->tv_usec < 0 || t->tv_usec >= 1000000)
		return false;
	*us = RTE_MIN((uint64_t)t->tv_sec, (uint64_t)UINT32_MAX) * 1000000 + t->tv_usec;
	*us = RTE_MAX(*us, 1ull);
	return true;
}

/* Ask the endpoint at a URI. */
static int
conn_ask(struct cci_conn *c, const char *uri, struct plx_chan_asked *a)
{
	struct plx_wire_addr addr;
	int rc = cci_uri_parse(uri, cci_ep_driver(c->ep), &addr);

	a->addr = &addr;
	a->attr = c->pub.attribute;
	return rc != 0 ? rc : plx_worker_chan_ask(c->ep->core, a, &c->chan);
}

int
cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr,
	uint32_t data_len, cci_conn_attribute_t attribute, const void *context, int flags,
	const struct timeval *timeout)
{
	struct plx_chan_asked a = {.data = data_ptr, .len = data_len};
	struct cci_ep *ep = cci_ep_of(endpoint);
	struct cci_conn *c;
	int rc = -ENOMEM;

	if (endpoint == NULL || server_uri == NULL || data_len > CCI_CONN_REQ_LEN ||
		(data_ptr == NULL && data_len != 0) ||
		(unsigned)attribute > CCI_CONN_ATTR_UU_MC_RX || flags != 0 ||
		!timeout_us(timeout, &a.timeout_us))
		return CCI_EINVAL;
	cci_lock(ep);
	c = ep->failed ? NULL : conn_get(ep, attribute, context);
	if (ep->failed)
		rc = -ENETDOWN;
	if (c != NULL) {
		rc = attribute > CCI_CONN_ATTR_UU ? cci_group_join(c, server_uri)
						  : conn_ask(c, server_uri, &a);
		if (rc != 0)
			plx_pool_put(&ep->conns, c);
	}
	cci_started(ep);
	cci_unlock(ep);
	return cci_status(rc);
}

/* The request in an event, or NULL. */
static struct plx_chan_request *
request_of(cci_event_t *event)
{
	if (event == NULL || plx_mem_is_inherited(event) || event->type != CCI_EVENT_CONNECT_REQUEST)
		return NULL;
	return container_of(cci_item_of(event), struct plx_chan_request, item);
}

/* Answer a request: with a connection, or refuse it with NULL. */
static int
conn_answer(cci_event_t *event, bool yes, const void *context)
{
	struct plx_chan_request *r = request_of(event);
	struct cci_conn *c = NULL;
	struct cci_ep *ep;
	int rc = 0;

	if (r == NULL)
		return CCI_EINVAL;
	ep = r->item.chans->user;
	cci_lock(ep);
	if (r->item.answered)
		rc = -EINVAL;
	if (rc == 0 && yes) {
		c = conn_get(ep, (cci_conn_attribute_t)r->ask.attr, context);
		rc = c != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = plx_worker_chan_answer(ep->core, r, c != NULL ? &c->chan : NULL);
	if (rc == 0)
		r->item.answered = true;
	else if (c != NULL)
		plx_pool_put(&ep->conns, c);
	cci_started(ep);
	cci_unlock(ep);
	return cci_status(rc);
}

int
cci_accept(cci_event_t *conn_req, const void *context)
{
	return conn_answer(conn_req, true, context);
}

int
cci_reject(cci_event_t *conn_req)
{
	return conn_answer(conn_req, false, NULL);
}

int
cci_disconnect(cci_connection_t *connection)
{
	struct cci_conn *c = cci_conn_of(connection);
	struct cci_ep *ep;

	if (plx_mem_is_inherited(connection))
		return CCI_SUCCESS;
	if (connection == NULL || c->magic != CCI_MAGIC_CONN)
		return CCI_EINVAL;
	ep = c->ep;
	cci_lock(ep);
	c->magic = 0;
	cci_group_leave(c);
	plx_worker_chan_end(ep->core, &c->chan);
	plx_pool_put(&ep->conns, c);
	cci_started(ep);
	cci_unlock(ep);
	return CCI_SUCCESS;
}

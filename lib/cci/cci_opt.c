/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_opt.c - options of endpoints and connections
 */
#include <errno.h>
#include <string.h>

#include "cci_int.h"

/*
 * The object of an option; both kinds of handle say which they are.
 * @param out the connection; NULL: it is of the endpoint
 * @return the endpoint; NULL: it has no such option
 */
static struct cci_ep *
object_of(cci_opt_handle_t *handle, cci_opt_name_t name, struct cci_conn **out)
{
	struct cci_ep *ep = cci_ep_of(handle);
	struct cci_conn *c = cci_conn_of(handle);

	*out = NULL;
	if (name <= CCI_OPT_ENDPT_RMA_ALIGN)
		return ep->magic == CCI_MAGIC_EP ? ep : NULL;
	if (plx_mem_is_inherited(c) || c->magic != CCI_MAGIC_CONN)
		return NULL;
	*out = c;
	return c->ep;
}

static int
set_sends(struct cci_ep *ep, uint32_t n)
{
	if (n == 0 || n > CCI_COUNT_MAX || n < ep->n_sends)
		return -ERANGE;
	ep->sends_max = n;
	return 0;
}

static int
set_recvs(struct cci_ep *ep, uint32_t n)
{
	int rc = n == 0 || n > CCI_COUNT_MAX ? -ERANGE
		: plx_worker_chan_set(ep->core, NULL, PLX_CHAN_OPT_RX_MAX, n);

	if (rc == 0)
		ep->recvs_max = n;
	return rc;
}

/* A silence that a reactor has noticed before it got a new period ends the old one. */
static void
hear_silences(struct cci_ep *ep)
{
	if (plx_worker_has_reactor(ep->core))
		cci_hear(ep, NULL);
}

/* All connections get the period, later ones as well. */
static int
set_keepalive(struct cci_ep *ep, uint32_t us)
{
	int rc = plx_worker_chan_set(ep->core, NULL, PLX_CHAN_OPT_KEEPALIVE, us);

	hear_silences(ep);
	ep->keepalive_us = us;
	ep->keepalive_epoch++;
	return rc;
}

static int
set_keepalive_of(struct cci_conn *c, uint32_t us)
{
	int rc = plx_worker_chan_set(c->ep->core, &c->chan, PLX_CHAN_OPT_KEEPALIVE, us);

	hear_silences(c->ep);
	c->keepalive_us = us;
	c->keepalive_epoch = c->ep->keepalive_epoch;
	return rc;
}

static int
set_of_ep(struct cci_ep *ep, cci_opt_name_t name, uint32_t v)
{
	switch (name) {
	case CCI_OPT_ENDPT_SEND_TIMEOUT:
		ep->send_timeout_us = v;
		return plx_worker_chan_set(ep->core, NULL, PLX_CHAN_OPT_TIMEOUT, v);
	case CCI_OPT_ENDPT_RECV_BUF_COUNT:
		return set_recvs(ep, v);
	case CCI_OPT_ENDPT_SEND_BUF_COUNT:
		return set_sends(ep, v);
	case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
		return set_keepalive(ep, v);
	default: /* read-only */
		return -EINVAL;
	}
}

static int
set_of_conn(struct cci_conn *c, cci_opt_name_t name, uint32_t v)
{
	struct plx_worker *w = c->ep->core;

	if (c->pub.attribute > CCI_CONN_ATTR_RU)
		return -ENOSYS; /* not for unreliable ones */
	switch (name) {
	case CCI_OPT_CONN_SEND_TIMEOUT:
		c->send_timeout_us = v;
		return plx_worker_chan_set(w, &c->chan, PLX_CHAN_OPT_TIMEOUT,
			v != 0 ? v : c->ep->send_timeout_us);
	case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
		return set_keepalive_of(c, v);
	default:
		return -EINVAL;
	}
}

int
cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val)
{
	struct cci_ep *ep;
	struct cci_conn *c;
	uint32_t v;
	int rc;

	if (handle == NULL || val == NULL || (unsigned)name > CCI_OPT_CONN_KEEPALIVE_TIMEOUT)
		return CCI_EINVAL;
	ep = object_of(handle, name, &c);
	if (ep == NULL || name == CCI_OPT_ENDPT_URI || name == CCI_OPT_ENDPT_RMA_ALIGN)
		return CCI_EINVAL;
	memcpy(&v, val, sizeof(v));
	cci_lock(ep);
	rc = c != NULL ? set_of_conn(c, name, v) : set_of_ep(ep, name, v);
	cci_started(ep);
	cci_unlock(ep);
	return cci_status(rc);
}

static int
get_of_ep(struct cci_ep *ep, cci_opt_name_t name, void *val)
{
	uint32_t *v = val;

	switch (name) {
	case CCI_OPT_ENDPT_SEND_TIMEOUT:
		*v = ep->send_timeout_us;
		return 0;
	case CCI_OPT_ENDPT_RECV_BUF_COUNT:
		*v = ep->recvs_max;
		return 0;
	case CCI_OPT_ENDPT_SEND_BUF_COUNT:
		*v = ep->sends_max;
		return 0;
	case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
		*v = ep->keepalive_us;
		return 0;
	case CCI_OPT_ENDPT_URI:
		*(char **)val = strdup(ep->uri);
		return *(char **)val != NULL ? 0 : -ENOMEM;
	case CCI_OPT_ENDPT_RMA_ALIGN: /* no requirements */
		memset(val, 0, sizeof(struct cci_alignment));
		return 0;
	default:
		return -EINVAL;
	}
}

static int
get_of_conn(struct cci_conn *c, cci_opt_name_t name, uint32_t *v)
{
	if (c->pub.attribute > CCI_CONN_ATTR_RU)
		return -ENOSYS;
	if (name == CCI_OPT_CONN_SEND_TIMEOUT)
		*v = c->send_timeout_us;
	else
		*v = c->keepalive_epoch == c->ep->keepalive_epoch ? c->keepalive_us
								  : c->ep->keepalive_us;
	return 0;
}

int
cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val)
{
	struct cci_ep *ep;
	struct cci_conn *c;
	int rc;

	if (handle == NULL || val == NULL || (unsigned)name > CCI_OPT_CONN_KEEPALIVE_TIMEOUT)
		return CCI_EINVAL;
	ep = object_of(handle, name, &c);
	if (ep == NULL)
		return CCI_EINVAL;
	cci_lock(ep);
	rc = c != NULL ? get_of_conn(c, name, val) : get_of_ep(ep, name, val);
	cci_unlock(ep);
	return cci_status(rc);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_endpoint.c - endpoints: create, destroy
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cci_int.h"

#define CONNS_FIRST	   4	/* in the first chunk of memory */
#define LAST_TURNS	   1000 /* before an endpoint closes: its last messages */

/* It belongs to the parent. A thread that does not exist in the child may have had the lock. */
static void
on_lost(struct plx_worker *core)
{
	struct cci_ep *ep = plx_worker_user(core);
	struct cci_conn *c;

	ep->failed = true;
	plx_lock_open(&ep->lock);
	/* otherwise the names would be in use for as long as the child lives */
	plx_name_lose(&ep->service);
	LIST_FOREACH(c, &ep->joined, link)
		plx_name_lose(&c->member);
}

static bool
is_mine(const struct plx_worker *w)
{
	const struct cci_ep *ep = plx_worker_user(w);

	return plx_lock_is_mine(&ep->lock);
}

static int
ep_open(struct cci_ep *ep, const struct cci_dev *d, const struct plx_conf *conf, const char *service)
{
	struct plx_worker_params params = {.conf = conf, .name = d->name, .wakeup = ep->has_fd,
		.event_fd = -1, .lost = on_lost, .mine = is_mine, .user = ep, .own_keys = true,
		.chan_deliver = cci_deliver, .chan_ready = &ep->ready};
	int rc;

	ep->pub.device = &d->pub;
	ep->magic = CCI_MAGIC_EP;
	plx_lock_open(&ep->lock);
	ep->service.fd = -1;
	ep->sends_max = plx_conf_u64(conf, PLX_CONF_CCI_SEND_BUFS);
	ep->recvs_max = plx_conf_u64(conf, PLX_CONF_CCI_RECV_BUFS);
	STAILQ_INIT(&ep->ready);
	params.chan_max_send = d->pub.max_send_size;
	params.chan_rx_max = ep->recvs_max;
	rc = plx_worker_create(&params, &ep->core);
	if (rc != 0)
		return rc;
	ep->plain = !ep->has_fd && !plx_worker_has_reactor(ep->core);
	rc = service != NULL ? cci_service_publish(d->driver, service, ep->core, ep->uri, &ep->service)
		: cci_uri_format(d->driver, ep->core, ep->uri);
	if (rc != 0)
		plx_worker_destroy(ep->core);
	else
		plx_pool_open(&ep->conns, "cci_conn", sizeof(struct cci_conn), CONNS_FIRST, 0, NULL, NULL);
	return rc;
}

static int
ep_create(const struct cci_dev *d, const char *service, bool has_fd, struct cci_ep **out)
{
	struct plx_conf *conf = malloc(sizeof(*conf));
	struct cci_ep *ep = calloc(1, sizeof(*ep));
	int rc = -ENOMEM;

	if (conf != NULL && ep != NULL) {
		ep->has_fd = has_fd;
		cci_device_conf(d, conf);
		rc = ep_open(ep, d, conf, service);
	}
	free(conf);
	if (rc != 0) {
		free(ep);
		return rc;
	}
	cci_all_add(ep);
	*out = ep;
	return 0;
}

/* @param service NULL: none */
static int
ep_create_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
	cci_os_handle_t *fd)
{
	const struct cci_dev *d = cci_device_find(device);
	struct cci_ep *ep;
	int rc;

	if (endpoint == NULL || flags != 0 || (device != NULL && d == NULL))
		return CCI_EINVAL;
	if (d == NULL || !__atomic_load_n(&d->pub.up, __ATOMIC_RELAXED))
		return CCI_ENODEV;
	rc = ep_create(d, service, fd != NULL, &ep);
	if (rc == -ENXIO) /* it has failed since it was found */
		rc = -ENODEV;
	if (rc != 0)
		return cci_status(rc);
	*endpoint = &ep->pub;
	if (fd != NULL) {
		cci_wake(ep);
		*fd = plx_worker_efd(ep->core);
	}
	return CCI_SUCCESS;
}

int
cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	return ep_create_at(device, NULL, flags, endpoint, fd);
}

int
cci_create_endpoint_at(cci_device_t *device, const char *service, int flags,
	cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	if (service == NULL || !cci_service_is_good(service))
		return CCI_EINVAL;
	return ep_create_at(device, service, flags, endpoint, fd);
}

/* Acknowledge what has arrived: its sender learns of it before we close. */
static void
last_words(struct cci_ep *ep)
{
	struct plx_worker *w = ep->core;

	for (unsigned i = 0; i < LAST_TURNS && !w->dedicated; i++) {
		if (LIST_EMPTY(&w->chans.acks) && TAILQ_EMPTY(&w->eps.stalled))
			break;
		plx_worker_progress(w);
	}
}

void
cci_ep_free(struct cci_ep *ep)
{
	last_words(ep);
	plx_name_end(&ep->service);
	while (!LIST_EMPTY(&ep->joined))
		cci_group_leave(LIST_FIRST(&ep->joined));
	plx_worker_destroy(ep->core);
	cci_mrs_free(ep); /* now that no operation uses one */
	plx_pool_close(&ep->conns);
	free(ep);
}

int
cci_destroy_endpoint(cci_endpoint_t *endpoint)
{
	struct cci_ep *ep = cci_ep_of(endpoint);

	if (endpoint == NULL)
		return CCI_EINVAL;
	if (plx_worker_is_inherited(ep->core))
		return CCI_SUCCESS;
	cci_all_remove(ep);
	cci_ep_free(ep);
	return CCI_SUCCESS;
}

void
cci_endpoints_close(void)
{
	struct cci_ep *ep;

	while ((ep = cci_all_take()) != NULL)
		cci_ep_free(ep);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * send.c - a message with a request: to the device, or behind those that are pending
 */
#include <errno.h>

#include "worker_int.h"

void
worker_send_fail(struct plx_pend *p, int err)
{
	plx_req_complete(plx_req_of_own(container_of(p, struct plx_ep_send, pend)), err);
}

void
worker_frags_fail(struct plx_pend *p, int err)
{
	struct plx_req *req = plx_req_of_own(container_of(p, struct plx_ep_send, pend));
	struct plx_wire_cancel h = {.msg_id = plx_ep_send(req)->msg_id};

	/* The receiver of the first piece must not wait for the last. */
	if (err == -ECANCELED && plx_ep_send(req)->offset != 0)
		(void)plx_ep_tx_ctl(plx_ep_send(req)->ep, PLX_WIRE_CANCEL, &h, sizeof(h));
	plx_req_complete(req, err);
}

void
worker_send_or_pend(struct plx_req *req, enum plx_pend_order order, int (*send)(struct plx_pend *p),
	void (*fail)(struct plx_pend *p, int err))
{
	struct plx_ep *ep = plx_ep_send(req)->ep;
	int rc;

	plx_ep_send(req)->pend.send = send;
	plx_ep_send(req)->pend.fail = fail;
	plx_ep_send(req)->pend.conn_id = plx_ep_send(req)->conn_id;
	rc = plx_ep_open(ep) ? send(&plx_ep_send(req)->pend) : -EAGAIN;
	if (rc == -EAGAIN)
		plx_ep_pend_as(ep, &plx_ep_send(req)->pend, order);
	else if (rc != 0)
		plx_req_complete(req, rc);
}

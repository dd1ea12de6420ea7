/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * worker_int.h - between the files of lib/worker
 */
#ifndef WORKER_INT_H
#define WORKER_INT_H

#include <rte_common.h>

#include "plx_log.h"
#include "plx_worker.h"

PLX_LOG_DECLARE(worker);

/* recv.c */
unsigned worker_rx(struct plx_worker *w);
void worker_recv_msg(struct plx_worker *w, struct plx_msg *msg, struct plx_req *req);
int worker_take_msg(struct plx_worker *w, struct plx_msg *msg, struct plx_req *req);
void worker_drop_partial(struct plx_worker *w, struct plx_ep *ep, int err);
void worker_msg_free(struct plx_worker *w, struct plx_msg *msg);

/* send.c */
void worker_tag_send(struct plx_worker *w, struct plx_req *req, bool sync);

/* progress.c */
bool worker_flush_is_done(const struct plx_worker *w, const struct plx_flush *f);
void worker_flush_end(struct plx_worker *w, struct plx_flush *f);

/* rma.c */
void worker_rx_rma(struct plx_worker *w, const struct plx_rx *rx);

/* submit.c: what the owner does with an operation of the application's side */
bool worker_submit(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req);

static inline struct plx_worker *
worker_of(struct plx_req *req)
{
	return container_of(req->pool, struct plx_worker, reqs);
}

#endif

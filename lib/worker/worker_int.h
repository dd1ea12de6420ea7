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
void worker_send_or_pend(struct plx_req *req, int (*send)(struct plx_pend *p),
	void (*fail)(struct plx_pend *p, int err));
void worker_send_fail(struct plx_pend *p, int err);
void worker_frags_fail(struct plx_pend *p, int err);

enum worker_am_way {
	WORKER_AM_WHOLE, /* one message of the device */
	WORKER_AM_FRAGS,
	WORKER_AM_RNDV,
};
enum worker_am_way worker_am_choose(const struct plx_ep *ep, uint64_t all, uint64_t len,
	uint32_t how);

#define WORKER_FRAGS_LEN_MAX (1ull << 30) /* the most that proto.eager_max allows */

/* am.c */
void worker_rx_am_first(struct plx_worker *w, const struct plx_rx *rx);
void worker_rx_am_rts(struct plx_worker *w, const struct plx_rx *rx);
void worker_am_frag(struct plx_worker *w, struct plx_msg *m, const struct plx_wire_frag *h,
	const uint8_t *data, uint64_t len);
void worker_am_end(struct plx_am *am, struct plx_msg *m, int ack);

/* progress.c */
bool worker_flush_is_done(const struct plx_worker *w, const struct plx_flush *f);

/* submit.c: what the owner does with an operation of the application's side */
bool worker_submit(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req);
void worker_post(struct plx_worker *w, plx_inbox_fn fn, void *arg);
void worker_recv_init(struct plx_req *req, void *buf, uint64_t len);

static inline struct plx_worker *
worker_of(struct plx_req *req)
{
	return container_of(req->pool, struct plx_worker, reqs);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep_int.h - between the files of lib/ep
 */
#ifndef EP_INT_H
#define EP_INT_H

#include "plx_ep.h"

/** An operation on a handle that is not connected yet. */
struct plx_ep_defer {
	STAILQ_ENTRY(plx_ep_defer) link;
	void (*fn)(void *req);
	void (*fail)(struct plx_req *req, int err);
	struct plx_req *req;
	struct plx_ep **where;
};

#define EP_DEFER_SIZE sizeof(struct plx_ep_defer)

/* A pending control message: a copy of its header. */
struct ep_ctl {
	struct plx_pend pend;
	struct plx_ep *ep;
	uint8_t op;
	uint8_t hdr_len;
	uint8_t hdr[PLX_WIRE_HDR_MAX];
};

/* ep.c */
void ep_init(struct plx_ep *ep, struct plx_eps *eps);

/* ep_pend.c */
void ep_held_remove(struct plx_ep *ep, struct plx_pend *p);
/** Queue those that may be announced now. */
void ep_held_go(struct plx_ep *ep);

/* ep_conn.c */
void ep_stub_cancel(struct plx_ep_stub *s, int err);

#endif

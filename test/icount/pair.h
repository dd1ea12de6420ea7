/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pair.h - two workers in two contexts of one process and one thread, which talk to each other
 *
 * Only what the program calls runs, so it is known what has arrived when a call is counted. Only UCP
 * is used: it runs on UCX as well.
 */
#ifndef ICOUNT_PAIR_H
#define ICOUNT_PAIR_H

#include <stdalign.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#define SIDES	2
#define BUF_LEN (4u << 20)

struct side {
	ucp_context_h ctx;
	ucp_worker_h worker;
	ucp_ep_h ep; /* to the other one */
	ucp_address_t *addr;
	alignas(4096) uint8_t buf[BUF_LEN]; /* pages without other data: only those of no file can be watched */
};

extern struct side side[SIDES];

/** 0 sends, and 1 receives what is counted. */
#define from (&side[0])
#define to   (&side[1])

/** End the program unless status is UCS_OK. */
void must(ucs_status_t status, const char *what);

/** So many turns of each worker. */
void turns(unsigned n);
/** @return how many are enough to end all; not always as many, so that what is due now and then is due elsewhere */
unsigned turns_between(void);
void settle(void);

/** Run turns until a request has ended, and free it. */
void finish(void *request);

/** Make the ep to the other side. */
void side_connect(struct side *s, const struct side *other);
void side_close(struct side *s);

#endif

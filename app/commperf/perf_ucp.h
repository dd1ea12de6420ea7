/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * perf_ucp.h - what the files that call UCP directly share
 */
#ifndef PERF_UCP_H
#define PERF_UCP_H

#include <ucp/api/ucp.h>

#include "perf.h"

/* ucp.c: its handles; the ep is that to the other side */
void perf_ucp_handles(struct perf_side *s, ucp_worker_h *worker, ucp_ep_h *ep);
ucp_context_h perf_ucp_context(struct perf_side *s);
ucp_mem_h perf_ucp_memh(struct perf_side *s); /* of both buffers; NULL: they are private */
/* Both buffers in one piece of memory that the library allocates. */
int perf_ucp_alloc(struct perf_side *s, ucp_context_h context, size_t len, ucp_mem_h *memh);
/* Wait for the completion of an operation without a callback; request is what its call returned. */
int perf_ucp_finish(struct perf_side *s, const char *what, void *request);
/* Handle the result of a call with a callback. @return 0, or perf_fail() was called */
int perf_ucp_posted(struct perf_side *s, const char *what, struct perf_io *io, void *request);
/* A send callback whose user data is a struct perf_io. */
void perf_ucp_done(void *request, ucs_status_t status, void *user_data);

/* ucp_rma.c: the back end's functions of these names, and the address of the other side's rbuf */
int perf_ucp_rma_open(struct perf_side *s);
int perf_ucp_rma(struct perf_side *s, struct perf_io *io, bool write, size_t at, size_t len);
int perf_ucp_rma_flush(struct perf_side *s);
int perf_ucp_rma_close(struct perf_side *s);
ucp_rkey_h perf_ucp_remote(uint64_t *addr);

/* am.c: call it when the worker is created, so that no message comes before */
int perf_am_listen(struct perf_side *s);
/* sleep.c: the worker's file descriptor */
int perf_sleep_open(struct perf_side *s);

/* payload.c: perf_payload_type() replaces the buffer and count of a message in the side's buffers,
 * and sets its datatype. */
int perf_payload_open(struct perf_side *s);
void perf_payload_close(struct perf_side *s);
void perf_payload_type(struct perf_side *s, bool send, const void **buf, size_t *count, ucp_request_param_t *p);

/* Whether --datatype applies to a message of len bytes; not to the empty ones that tests add. */
static inline bool
perf_ucp_typed(const struct perf_side *s, size_t len)
{
	return unlikely(s->o->typed) && len > 0;
}

static inline void
perf_ucp_type(struct perf_side *s, bool send, const void **buf, size_t *count, ucp_request_param_t *p)
{
	if (perf_ucp_typed(s, *count))
		perf_payload_type(s, send, buf, count, p);
}

#endif /* PERF_UCP_H */

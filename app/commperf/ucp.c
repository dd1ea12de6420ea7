/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp.c - the UCP back end: one context, one worker, an ep to the other side and one to itself
 *
 * Design notes
 * - Only public ucp_* functions of UCX 1.13, so that the same program runs on either library.
 * - Requests come from the library. A callback marks the perf_io done and frees the request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf_ucp.h"

/* The oldest API with all functions that we call: we request this one, whichever headers we
 * were built with. */
#define UCP_SIDE_MAJOR 1
#define UCP_SIDE_MINOR 13

struct ucp_side {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep[2]; /* by enum perf_dest */
	ucp_ep_h *eps;  /* of the ep_mem test */
	unsigned n_eps;
	ucp_mem_h memh;
	ucp_request_param_t send_param;
	ucp_request_param_t recv_param;
	ucp_tag_recv_info_t info; /* of a receive that is complete on return */
};

static int
ucp_side_fail(struct perf_side *s, const char *what, ucs_status_t status)
{
	return perf_fail(s, "%s: %s (%d)", what, ucs_status_string(status), (int)status);
}

static const char *
ucp_side_version(void)
{
	return ucp_get_version_string();
}

void
perf_ucp_done(void *request, ucs_status_t status, void *user_data)
{
	struct perf_io *io = user_data;

	io->status = status;
	io->done = 1;
	ucp_request_free(request);
}

static void
ucp_side_received(
	void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	struct perf_io *io = user_data;

	io->status = status;
	if (status == UCS_OK) {
		io->len = info->length;
		io->tag = info->sender_tag;
	}
	io->done = 1;
	ucp_request_free(request);
}

static uint64_t
ucp_side_features(const struct perf_side *s)
{
	static const struct {
		unsigned need;
		uint64_t features;
	} table[] = {{PERF_AM, UCP_FEATURE_AM}, {PERF_STREAM, UCP_FEATURE_STREAM},
		{PERF_RMA, UCP_FEATURE_RMA}, {PERF_AMO, UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64},
		{PERF_WAKE, UCP_FEATURE_WAKEUP}};
	uint64_t features = UCP_FEATURE_TAG; /* for the tests' own control messages */

	for (size_t i = 0; i < RTE_DIM(table); i++) {
		if (s->needs & table[i].need)
			features |= table[i].features;
	}
	return features;
}

static int
ucp_side_open(struct perf_side *s)
{
	ucp_worker_params_t worker_params = {0};
	ucp_params_t params = {0};
	ucp_config_t *config;
	struct ucp_side *u;
	ucs_status_t status;
	uint64_t start = rte_rdtsc();

	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return perf_fail(s, "out of memory");
	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK) {
		free(u);
		return ucp_side_fail(s, "ucp_config_read", status);
	}
	params.field_mask = UCP_PARAM_FIELD_FEATURES;
	params.features = ucp_side_features(s);
	status = ucp_init_version(UCP_SIDE_MAJOR, UCP_SIDE_MINOR, &params, config, &u->context);
	ucp_config_release(config);
	if (status != UCS_OK) {
		free(u);
		return ucp_side_fail(s, "ucp_init_version", status);
	}
	s->context_ticks = rte_rdtsc() - start;
	start = rte_rdtsc();
	worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
	worker_params.thread_mode =
		s->o->threads > 1 ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
	status = ucp_worker_create(u->context, &worker_params, &u->worker);
	if (status != UCS_OK) {
		ucp_cleanup(u->context);
		free(u);
		return ucp_side_fail(s, "ucp_worker_create", status);
	}
	s->worker_ticks = rte_rdtsc() - start;
	u->send_param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	u->send_param.cb.send = perf_ucp_done;
	u->recv_param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				     UCP_OP_ATTR_FIELD_RECV_INFO;
	u->recv_param.cb.recv = ucp_side_received;
	s->be_priv = u;
	if ((s->needs & PERF_AM) && perf_am_listen(s) != 0)
		return -1;
	return s->needs & PERF_WAKE ? perf_sleep_open(s) : 0;
}

static void
ucp_side_close(struct perf_side *s)
{
	struct ucp_side *u = s->be_priv;

	if (u == NULL)
		return;
	s->be_priv = NULL;
	ucp_worker_destroy(u->worker);
	ucp_cleanup(u->context);
	free(u->eps);
	free(u);
}

void
perf_ucp_handles(struct perf_side *s, ucp_worker_h *worker, ucp_ep_h *ep)
{
	const struct ucp_side *u = s->be_priv;

	*worker = u->worker;
	*ep = u->ep[PERF_PEER];
}

ucp_context_h
perf_ucp_context(struct perf_side *s)
{
	return ((const struct ucp_side *)s->be_priv)->context;
}

ucp_mem_h
perf_ucp_memh(struct perf_side *s)
{
	return ((const struct ucp_side *)s->be_priv)->memh;
}

static int
ucp_side_address(struct perf_side *s, void **addr, size_t *len)
{
	struct ucp_side *u = s->be_priv;
	ucp_address_t *own;
	ucs_status_t status;
	size_t own_len;

	status = ucp_worker_get_address(u->worker, &own, &own_len);
	if (status != UCS_OK)
		return ucp_side_fail(s, "ucp_worker_get_address", status);
	*addr = malloc(own_len);
	*len = own_len;
	if (*addr != NULL)
		memcpy(*addr, own, own_len);
	ucp_worker_release_address(u->worker, own);
	return *addr != NULL ? 0 : perf_fail(s, "out of memory");
}

static int
ucp_side_ep(struct perf_side *s, const void *addr, ucp_ep_h *ep)
{
	struct ucp_side *u = s->be_priv;
	ucp_ep_params_t params = {0};
	ucs_status_t status;

	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
	params.address = addr;
	status = ucp_ep_create(u->worker, &params, ep);
	return status == UCS_OK ? 0 : ucp_side_fail(s, "ucp_ep_create", status);
}

static int
ucp_side_connect(struct perf_side *s, enum perf_dest dest, const void *addr, size_t len)
{
	struct ucp_side *u = s->be_priv;

	(void)len;
	return u->ep[dest] != NULL ? 0 : ucp_side_ep(s, addr, &u->ep[dest]);
}

int
perf_ucp_finish(struct perf_side *s, const char *what, void *request)
{
	struct ucp_side *u = s->be_priv;
	ucs_status_t status;
	uint64_t spins = 0;

	if (request == NULL)
		return 0;
	if (UCS_PTR_IS_ERR(request))
		return ucp_side_fail(s, what, UCS_PTR_STATUS(request));
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
		ucp_worker_progress(u->worker);
		if ((++spins & 0xfff) == 0 && perf_wait_slow(s, spins) != 0)
			return -1;
	}
	ucp_request_free(request);
	return status == UCS_OK ? 0 : ucp_side_fail(s, what, status);
}

int
perf_ucp_posted(struct perf_side *s, const char *what, struct perf_io *io, void *request)
{
	if (request == NULL)
		io->done = 1;
	if (unlikely(UCS_PTR_IS_ERR(request)))
		return ucp_side_fail(s, what, UCS_PTR_STATUS(request));
	return 0;
}

static int
ucp_side_ep_close(struct perf_side *s, ucp_ep_h *ep)
{
	ucp_request_param_t param = {0};
	void *request;

	if (*ep == NULL)
		return 0;
	request = ucp_ep_close_nbx(*ep, &param);
	*ep = NULL;
	return perf_ucp_finish(s, "ucp_ep_close_nbx", request);
}

static int
ucp_side_disconnect(struct perf_side *s)
{
	struct ucp_side *u = s->be_priv;
	int rc = ucp_side_ep_close(s, &u->ep[PERF_SELF]);

	return ucp_side_ep_close(s, &u->ep[PERF_PEER]) != 0 ? -1 : rc;
}

/* Both buffers lie in one piece of memory that the library allocates. */
int
perf_ucp_alloc(struct perf_side *s, ucp_context_h context, size_t len, ucp_mem_h *memh)
{
	ucp_mem_map_params_t params = {0};
	ucp_mem_attr_t attr = {0};
	ucs_status_t status;

	params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			    UCP_MEM_MAP_PARAM_FIELD_FLAGS;
	params.address = NULL;
	params.length = 2 * len;
	params.flags = UCP_MEM_MAP_ALLOCATE;
	status = ucp_mem_map(context, &params, memh);
	if (status != UCS_OK)
		return ucp_side_fail(s, "ucp_mem_map", status);
	attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
	status = ucp_mem_query(*memh, &attr);
	if (status != UCS_OK || attr.address == NULL || attr.length < 2 * len) {
		ucp_mem_unmap(context, *memh);
		*memh = NULL;
		return ucp_side_fail(s, "ucp_mem_query", status);
	}
	s->sbuf = attr.address;
	s->rbuf = s->sbuf + len;
	return 0;
}

static int
ucp_side_mem_alloc(struct perf_side *s, size_t len)
{
	struct ucp_side *u = s->be_priv;

	if (perf_ucp_alloc(s, u->context, len, &u->memh) != 0)
		return -1;
	u->send_param.memh = u->memh;
	u->recv_param.memh = u->memh;
	return 0;
}

static void
ucp_side_mem_free(struct perf_side *s)
{
	struct ucp_side *u = s->be_priv;

	if (u == NULL || u->memh == NULL)
		return;
	u->send_param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMH;
	u->recv_param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMH;
	ucp_mem_unmap(u->context, u->memh);
	u->memh = NULL;
}

/* A message without bytes has no buffer that a memory handle could cover. */
static inline void
ucp_side_memh(ucp_request_param_t *param, ucp_mem_h memh, size_t len)
{
	if (likely(memh == NULL))
		return;
	param->op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_MEMH;
	if (len > 0)
		param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
}

static int
ucp_side_send(struct perf_side *s, struct perf_io *io, enum perf_dest dest, const void *buf,
	size_t len, uint64_t tag, unsigned flags)
{
	struct ucp_side *u = s->be_priv;
	const ucp_request_param_t *param = &u->send_param;
	ucp_request_param_t typed;
	ucs_status_ptr_t p;

	io->done = 0;
	io->status = 0;
	u->send_param.user_data = io;
	ucp_side_memh(&u->send_param, u->memh, len);
	if (perf_ucp_typed(s, len)) {
		typed = *param;
		perf_payload_type(s, true, &buf, &len, &typed);
		param = &typed;
	}
	if (unlikely(flags & PERF_SYNC))
		p = ucp_tag_send_sync_nbx(u->ep[dest], buf, len, tag, param);
	else
		p = ucp_tag_send_nbx(u->ep[dest], buf, len, tag, param);
	if (p == NULL) {
		io->done = 1;
		return 0;
	}
	if (unlikely(UCS_PTR_IS_ERR(p)))
		return ucp_side_fail(s, "ucp_tag_send_nbx", UCS_PTR_STATUS(p));
	return 0;
}

static int
ucp_side_recv(
	struct perf_side *s, struct perf_io *io, void *buf, size_t len, uint64_t tag, uint64_t mask)
{
	struct ucp_side *u = s->be_priv;
	const ucp_request_param_t *param = &u->recv_param;
	ucp_request_param_t typed;
	const void *to = buf;
	size_t count = len;
	ucs_status_ptr_t p;

	io->done = 0;
	io->status = 0;
	u->recv_param.user_data = io;
	ucp_side_memh(&u->recv_param, u->memh, len);
	u->recv_param.recv_info.tag_info = &u->info;
	u->info.length = SIZE_MAX;
	if (perf_ucp_typed(s, len)) {
		typed = *param;
		perf_payload_type(s, false, &to, &count, &typed);
		param = &typed;
	}
	p = ucp_tag_recv_nbx(u->worker, (void *)(uintptr_t)to, count, tag, mask, param);
	if (p == NULL) {
		bool told = u->info.length != SIZE_MAX; /* UCX 1.13 leaves it unchanged */

		io->len = told ? u->info.length : len;
		io->tag = told ? u->info.sender_tag : tag;
		io->done = 1;
		return 0;
	}
	if (unlikely(UCS_PTR_IS_ERR(p)))
		return ucp_side_fail(s, "ucp_tag_recv_nbx", UCS_PTR_STATUS(p));
	return 0;
}

static unsigned
ucp_side_progress(struct perf_side *s)
{
	struct ucp_side *u = s->be_priv;

	return ucp_worker_progress(u->worker);
}

static int
ucp_side_eps_create(struct perf_side *s, unsigned n)
{
	struct ucp_side *u = s->be_priv;

	u->eps = calloc(n, sizeof(*u->eps));
	if (u->eps == NULL)
		return perf_fail(s, "out of memory");
	for (u->n_eps = 0; u->n_eps < n; u->n_eps++) {
		if (ucp_side_ep(s, s->peer_addr, &u->eps[u->n_eps]) != 0)
			return -1;
	}
	return 0;
}

static int
ucp_side_eps_use(struct perf_side *s, unsigned i, struct perf_io *io, uint64_t tag)
{
	struct ucp_side *u = s->be_priv;
	ucp_ep_h saved = u->ep[PERF_PEER];
	int rc;

	u->ep[PERF_PEER] = u->eps[i];
	rc = ucp_side_send(s, io, PERF_PEER, s->sbuf, 8, tag, 0);
	u->ep[PERF_PEER] = saved;
	return rc;
}

static int
ucp_side_eps_close(struct perf_side *s)
{
	struct ucp_side *u = s->be_priv;
	int rc = 0;

	for (unsigned i = 0; i < u->n_eps && rc == 0; i++)
		rc = ucp_side_ep_close(s, &u->eps[i]);
	free(u->eps);
	u->eps = NULL;
	u->n_eps = 0;
	return rc;
}

const struct perf_backend perf_backend_ucp = {
	.name = "ucp",
	.version = ucp_side_version,
	.open = ucp_side_open,
	.close = ucp_side_close,
	.address = ucp_side_address,
	.connect = ucp_side_connect,
	.disconnect = ucp_side_disconnect,
	.typed_open = perf_payload_open,
	.typed_close = perf_payload_close,
	.mem_alloc = ucp_side_mem_alloc,
	.mem_free = ucp_side_mem_free,
	.send = ucp_side_send,
	.recv = ucp_side_recv,
	.progress = ucp_side_progress,
	.eps_create = ucp_side_eps_create,
	.eps_use = ucp_side_eps_use,
	.eps_close = ucp_side_eps_close,
	.rma_open = perf_ucp_rma_open,
	.rma = perf_ucp_rma,
	.rma_flush = perf_ucp_rma_flush,
	.rma_close = perf_ucp_rma_close,
};

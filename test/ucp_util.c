/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_util.c - what test programs of the UCP API share
 */
#include "ucp_util.h"

bool util_on_ucx;
unsigned util_n_init, util_n_cleanup;

void
util_request_init(void *request)
{
	struct area *a = request;

	memset(a, 0, sizeof(*a));
	a->magic = UTIL_MAGIC;
	__atomic_add_fetch(&util_n_init, 1, __ATOMIC_RELAXED);
}

void
util_request_cleanup(void *request)
{
	struct area *a = request;

	a->magic = 0;
	__atomic_add_fetch(&util_n_cleanup, 1, __ATOMIC_RELAXED);
}

static void
complete(struct op *op, ucs_status_t status, const ucp_tag_recv_info_t *info)
{
	op->n_calls++;
	if (op->in_call)
		op->n_inside++;
	op->status = status;
	if (info != NULL)
		op->info = *info;
}

void
util_sent(void *request, ucs_status_t status, void *user_data)
{
	(void)request;
	complete(user_data, status, NULL);
}

static void
recv_nbx_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	(void)request;
	complete(user_data, status, info);
}

static void
send_nb_cb(void *request, ucs_status_t status)
{
	struct area *a = request;

	a->calls++;
	a->status = status;
	/* It never comes inside the call, so the cookie is there. */
	if (a->op == NULL)
		UTIL_DIE("send callback before the send call returned");
	complete(a->op, status, NULL);
}

static void
recv_nb_cb(void *request, ucs_status_t status, ucp_tag_recv_info_t *info)
{
	struct area *a = request;

	a->calls++;
	a->status = status;
	a->info = *info;
}

static void
started(struct op *op, void *ret, bool by_area)
{
	op->in_call = false;
	op->by_area = by_area;
	if (ret == NULL) {
		op->immediate = true;
		op->status = UCS_OK;
	} else if (UCS_PTR_IS_ERR(ret)) {
		op->immediate = true;
		op->status = UCS_PTR_STATUS(ret);
	} else {
		op->req = ret;
		if (by_area)
			((struct area *)ret)->op = op;
	}
}

void
util_send(struct op *op, ucp_ep_h ep, const void *buf, size_t len, ucp_tag_t tag,
	enum util_how how)
{
	ucp_request_param_t param;
	void *ret;

	/* What no bit names may hold anything. */
	memset(&param, 0xa5, sizeof(param));
	memset(op, 0, sizeof(*op));
	op->in_call = true;
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	param.cb.send = util_sent;
	param.user_data = op;
	switch (how) {
	case UTIL_NB:
		ret = ucp_tag_send_nb(ep, buf, len, ucp_dt_make_contig(1), tag, send_nb_cb);
		break;
	case UTIL_SYNC_NB:
		ret = ucp_tag_send_sync_nb(ep, buf, len, ucp_dt_make_contig(1), tag, send_nb_cb);
		break;
	case UTIL_SYNC:
		ret = ucp_tag_send_sync_nbx(ep, buf, len, tag, &param);
		break;
	case UTIL_NO_IMM:
		param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
		ret = ucp_tag_send_nbx(ep, buf, len, tag, &param);
		break;
	case UTIL_FAST:
		param.op_attr_mask |= UCP_OP_ATTR_FLAG_FAST_CMPL;
		ret = ucp_tag_send_nbx(ep, buf, len, tag, &param);
		break;
	default:
		ret = ucp_tag_send_nbx(ep, buf, len, tag, &param);
		break;
	}
	started(op, ret, how == UTIL_NB || how == UTIL_SYNC_NB);
}

static void
recv_param(ucp_request_param_t *param, struct op *op, enum util_how how)
{
	memset(param, 0xa5, sizeof(*param));
	memset(op, 0, sizeof(*op));
	op->in_call = true;
	param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
		UCP_OP_ATTR_FIELD_RECV_INFO;
	param->cb.recv = recv_nbx_cb;
	param->user_data = op;
	param->recv_info.tag_info = &op->info;
	if (how == UTIL_NO_IMM || util_on_ucx)
		param->op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
}

void
util_recv(struct op *op, ucp_worker_h w, void *buf, size_t len, ucp_tag_t tag, ucp_tag_t mask,
	enum util_how how)
{
	ucp_request_param_t param;
	void *ret;

	recv_param(&param, op, how);
	if (how == UTIL_NB)
		ret = ucp_tag_recv_nb(w, buf, len, ucp_dt_make_contig(1), tag, mask, recv_nb_cb);
	else
		ret = ucp_tag_recv_nbx(w, buf, len, tag, mask, &param);
	started(op, ret, how == UTIL_NB);
}

void
util_msg_recv(struct op *op, ucp_worker_h w, void *buf, size_t len, ucp_tag_message_h msg,
	enum util_how how)
{
	ucp_request_param_t param;
	void *ret;

	recv_param(&param, op, how);
	if (how == UTIL_NB)
		ret = ucp_tag_msg_recv_nb(w, buf, len, ucp_dt_make_contig(1), msg, recv_nb_cb);
	else
		ret = ucp_tag_msg_recv_nbx(w, buf, len, msg, &param);
	started(op, ret, how == UTIL_NB);
}

bool
util_done(const struct op *op)
{
	if (op->immediate)
		return true;
	if (op->by_area)
		return ((struct area *)op->req)->calls > 0;
	return op->n_calls > 0;
}

void
util_free(struct op *op)
{
	struct area *a = op->req;

	if (a == NULL)
		return;
	if (op->by_area) {
		op->n_calls = a->calls;
		op->status = a->status;
		if (a->info.length != 0 || a->info.sender_tag != 0)
			op->info = a->info;
	}
	if (a->magic != UTIL_MAGIC)
		UTIL_DIE("the user area of request %p was overwritten", op->req);
	/* Left clean, as it has to be found clean by the next use. */
	a->op = NULL;
	a->calls = 0;
	memset(&a->info, 0, sizeof(a->info));
	op->req = NULL;
	ucp_request_free(a);
}

void
util_forced_count(struct util_forced *f, void *ret)
{
	if (ret == NULL)
		f->n_sent++;
	else if (UCS_PTR_RAW_STATUS(ret) == UCS_ERR_NO_RESOURCE)
		f->n_refused++;
	else
		f->n_bad++;
}

static bool
only_devices_are(const char *prefix)
{
	const char *devices = getenv("PLX_WORKER_DEVICES");

	return devices != NULL && strncmp(devices, prefix, strlen(prefix)) == 0;
}

bool
util_by_network(void)
{
	return only_devices_are("net_");
}

bool
util_by_rdma(void)
{
	return only_devices_are("net_mlx");
}

ucp_context_h
util_context_with(uint64_t features, const char *name, const char *value)
{
	ucp_config_t *config = NULL;
	ucp_context_h ctx;
	ucp_params_t params;

	if (name != NULL) {
		UTIL_OK(ucp_config_read(NULL, NULL, &config));
		UTIL_OK(ucp_config_modify(config, name, value));
	}

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
		UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP;
	params.features = features;
	params.request_size = sizeof(struct area);
	params.request_init = util_request_init;
	params.request_cleanup = util_request_cleanup;
	UTIL_OK(ucp_init(&params, config, &ctx));
	if (config != NULL)
		ucp_config_release(config);
	return ctx;
}

ucp_context_h
util_context(uint64_t features)
{
	return util_context_with(features, NULL, NULL);
}

ucp_worker_h
util_worker(ucp_context_h ctx, ucs_thread_mode_t mode)
{
	ucp_worker_params_t params;
	ucp_worker_h w;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
	params.thread_mode = mode;
	UTIL_OK(ucp_worker_create(ctx, &params, &w));
	return w;
}

static ucp_ep_h
ep_create(ucp_worker_h w, const ucp_address_t *addr, ucp_ep_params_t *params)
{
	ucp_ep_h ep;

	params->field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
	params->address = addr;
	UTIL_OK(ucp_ep_create(w, params, &ep));
	return ep;
}

void
util_say_address(ucp_worker_h w)
{
	ucp_address_t *addr;
	size_t len;

	UTIL_OK(ucp_worker_get_address(w, &addr, &len));
	for (size_t i = 0; i < len; i++)
		printf("%02x", ((uint8_t *)addr)[i]);
	printf("\n");
	fflush(stdout);
	ucp_worker_release_address(w, addr);
}

void
util_read_address(uint8_t *addr)
{
	char text[2 * UTIL_ADDR_MAX + 2];
	unsigned byte;

	if (fgets(text, sizeof(text), stdin) == NULL)
		UTIL_DIE("no address");
	for (size_t i = 0; i < UTIL_ADDR_MAX && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
		addr[i] = (uint8_t)byte;
}

ucp_ep_h
util_ep(ucp_worker_h w, const ucp_address_t *addr)
{
	ucp_ep_params_t params;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = 0;
	return ep_create(w, addr, &params);
}

ucp_ep_h
util_ep_with_handler(ucp_worker_h w, const ucp_address_t *addr, ucp_err_handler_cb_t cb, void *arg)
{
	ucp_ep_params_t params;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
	params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params.err_handler.cb = cb;
	params.err_handler.arg = arg;
	return ep_create(w, addr, &params);
}

static void
pair_open(struct pair *p, bool one_context, ucs_thread_mode_t mode, const char *name, const char *value)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->one_context = one_context;
	for (i = 0; i < 2; i++) {
		p->n[i].ctx = i == 1 && one_context ? p->n[0].ctx
			: util_context_with(UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM, name, value);
		p->n[i].w = util_worker(p->n[i].ctx, mode);
		UTIL_OK(ucp_worker_get_address(p->n[i].w, &p->n[i].addr, &p->n[i].addr_len));
	}
	for (i = 0; i < 2; i++)
		p->n[i].ep = util_ep(p->n[i].w, p->n[!i].addr);
}

void
util_pair_open(struct pair *p, bool one_context, ucs_thread_mode_t mode)
{
	pair_open(p, one_context, mode, NULL, NULL);
}

void
util_pair_open_with(struct pair *p, const char *name, const char *value)
{
	pair_open(p, true, UCS_THREAD_MODE_SINGLE, name, value);
}

unsigned
util_pair_turn(struct pair *p)
{
	unsigned n = 0;

	n += ucp_worker_progress(p->n[0].w);
	n += ucp_worker_progress(p->n[1].w);
	return n;
}

bool
util_ep_close(struct pair *p, ucp_ep_h ep, unsigned flags)
{
	ucp_request_param_t param;
	bool ok = true;
	void *req;

	memset(&param, 0xa5, sizeof(param));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
	param.flags = flags;
	req = ucp_ep_close_nbx(ep, &param);
	if (UCS_PTR_IS_ERR(req))
		return false;
	if (req != NULL) {
		ok = UTIL_UNTIL(p, ucp_request_check_status(req) != UCS_INPROGRESS);
		ucp_request_free(req);
	}
	return ok;
}

void
util_pair_close(struct pair *p)
{
	void *req[2];
	int i;

	for (i = 0; i < 2; i++) {
		req[i] = NULL;
		if (p->n[i].ep != NULL)
			req[i] = ucp_ep_close_nb(p->n[i].ep, UCP_EP_CLOSE_MODE_FLUSH);
	}
	for (i = 0; i < 2; i++) {
		if (!UCS_PTR_IS_PTR(req[i]))
			continue;
		if (!UTIL_UNTIL(p, ucp_request_check_status(req[i]) != UCS_INPROGRESS))
			UTIL_DIE("an ep did not close in %d s", UTIL_DEADLINE_S);
		ucp_request_free(req[i]);
	}
	for (i = 0; i < 2; i++) {
		ucp_worker_release_address(p->n[i].w, p->n[i].addr);
		ucp_worker_destroy(p->n[i].w);
	}
	ucp_cleanup(p->n[0].ctx);
	if (!p->one_context)
		ucp_cleanup(p->n[1].ctx);
}

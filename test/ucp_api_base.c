/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_base.c - contexts, workers, eps and threads behave as UCP says
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "ucp_api_test.h"

/* ---- context and configuration ---- */

static void
library_tells_its_thread_level(void)
{
	ucp_lib_attr_t attr = {.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL};

	attr.max_thread_level = (ucs_thread_mode_t)77;
	CU_ASSERT_EQUAL(ucp_lib_query(&attr), UCS_OK);
	CU_ASSERT(attr.max_thread_level <= UCS_THREAD_MODE_MULTI);
}

static void
version_number_and_string_agree(void)
{
	unsigned major = 0, minor = 0, release = 0, a = 0, b = 0, c = 0;

	ucp_get_version(&major, &minor, &release);
	CU_ASSERT_EQUAL(sscanf(ucp_get_version_string(), "%u.%u.%u", &a, &b, &c), 3);
	CU_ASSERT_EQUAL(a, major);
	CU_ASSERT_EQUAL(b, minor);
	CU_ASSERT_EQUAL(c, release);
	/* Open MPI refuses less than 1.5 and all of 1.8. */
	CU_ASSERT(major == 1 && minor >= 9);
}

static void
configuration_is_read_modified_printed_released(void)
{
	ucp_config_t *config = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	CU_ASSERT_EQUAL_FATAL(ucp_config_read(NULL, NULL, &config), UCS_OK);
	CU_ASSERT_EQUAL(ucp_config_modify(config, "LOG_LEVEL", "error"), UCS_OK);
	CU_ASSERT_NOT_EQUAL(ucp_config_modify(config, "LOG_LEVEL", "no_such_level"), UCS_OK);
	f = open_memstream(&text, &len);
	ucp_config_print(config, f, "a title", UCS_CONFIG_PRINT_CONFIG | UCS_CONFIG_PRINT_HEADER);
	fclose(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "a title"));
	CU_ASSERT_PTR_NOT_NULL(strchr(text, '='));
	free(text);
	ucp_config_release(config);
}

static void
configuration_may_go_before_the_context(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_config_t *config;
	ucp_context_h ctx;

	CU_ASSERT_EQUAL_FATAL(ucp_config_read("MPI", NULL, &config), UCS_OK);
	CU_ASSERT_EQUAL_FATAL(ucp_init(&params, config, &ctx), UCS_OK);
	ucp_config_release(config);
	ucp_worker_destroy(util_worker(ctx, UCS_THREAD_MODE_SINGLE));
	ucp_cleanup(ctx);
}

static void
context_tells_request_size_and_thread_mode(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_context_attr_t attr;

	memset(&attr, 0xa5, sizeof(attr));
	attr.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_THREAD_MODE |
		UCP_ATTR_FIELD_NAME;
	CU_ASSERT_EQUAL_FATAL(ucp_context_query(ctx, &attr), UCS_OK);
	CU_ASSERT(attr.request_size > 0 && attr.request_size <= 1024);
	CU_ASSERT_EQUAL(attr.request_size % 8, 0);
	CU_ASSERT(attr.thread_mode <= UCS_THREAD_MODE_MULTI);
	CU_ASSERT(memchr(attr.name, 0, sizeof(attr.name)) != NULL);
	/* A bit not set is a field not written. */
	CU_ASSERT_EQUAL(attr.memory_types, 0xa5a5a5a5a5a5a5a5u);
	ucp_cleanup(ctx);
}

static void
context_information_has_the_lines_open_mpi_reads(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	char *text = NULL, *line, *save;
	char tl[64], dev[64];
	unsigned n = 0;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	ucp_context_print_info(ctx, f);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "# resource %*d : md %*d dev %*d flags -- %63[^/ \n\r]/%63[^/ \n\r]",
			tl, dev) == 2)
			n++;
	CU_ASSERT(n > 0);
	free(text);
	ucp_cleanup(ctx);
}

static void
context_information_names_devices_that_are_there(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	bool has_rdma = access("/sys/class/infiniband_verbs", F_OK) == 0;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	ucp_context_print_info(ctx, f);
	fclose(f);
	CU_ASSERT(has_rdma || strstr(text, "net_mlx") == NULL);
	free(text);
	ucp_cleanup(ctx);
}

static void
unnamed_parameter_fields_may_hold_anything(void)
{
	/* util_* fill every parameter block with 0xa5 before they name a field. */
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 100, 5, true, UTIL_NBX);
	util_pair_close(&p);
}

static void
init_and_cleanup_may_be_repeated(void)
{
	struct pair p;
	int i;

	for (i = 0; i < 5; i++) {
		util_pair_open(&p, i & 1, UCS_THREAD_MODE_SINGLE);
		exchange(&p, 0, 1000, 5, true, UTIL_NBX);
		exchange(&p, 1, 100000, 5, false, UTIL_NBX);
		util_pair_close(&p);
	}
}

static void
a_context_without_features_has_workers_with_addresses(void)
{
	ucp_params_t params;
	ucp_address_t *address;
	ucp_context_h ctx;
	ucp_worker_h w;
	size_t len;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = 0;
	CU_ASSERT_EQUAL_FATAL(ucp_init(&params, NULL, &ctx), UCS_OK);
	w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL(ucp_worker_get_address(w, &address, &len), UCS_OK);
	ucp_worker_release_address(w, address);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

/* ---- worker ---- */

static void
worker_grants_the_thread_mode_asked_for(void)
{
	static const ucs_thread_mode_t modes[] = {UCS_THREAD_MODE_SINGLE, UCS_THREAD_MODE_SERIALIZED,
		UCS_THREAD_MODE_MULTI};
	ucp_lib_attr_t lib = {.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL};
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_worker_attr_t attr;
	ucp_worker_h w;
	unsigned i;

	UTIL_OK(ucp_lib_query(&lib));
	for (i = 0; i < 3; i++) {
		if (modes[i] > lib.max_thread_level)
			continue;
		w = util_worker(ctx, modes[i]);
		memset(&attr, 0xa5, sizeof(attr));
		attr.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
		CU_ASSERT_EQUAL(ucp_worker_query(w, &attr), UCS_OK);
		CU_ASSERT(attr.thread_mode >= modes[i]);
		ucp_worker_destroy(w);
	}
	ucp_cleanup(ctx);
}

static void
worker_address_is_short_and_the_same_by_both_calls(void)
{
	ucp_worker_attr_t attr;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	memset(&attr, 0xa5, sizeof(attr));
	attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
	CU_ASSERT_EQUAL_FATAL(ucp_worker_query(p.n[0].w, &attr), UCS_OK);
	CU_ASSERT_EQUAL(attr.address_length, p.n[0].addr_len);
	CU_ASSERT(attr.address_length > 0 && attr.address_length <= 1024);
	if (attr.address_length == p.n[0].addr_len)
		CU_ASSERT_EQUAL(memcmp(attr.address, p.n[0].addr, p.n[0].addr_len), 0);
	ucp_worker_release_address(p.n[0].w, attr.address);
	util_pair_close(&p);
}

static void
worker_addresses_carry_distinct_uids(void)
{
	ucp_worker_address_attr_t attr[2];
	struct pair p;
	int i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 2; i++) {
		attr[i].field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID;
		CU_ASSERT_EQUAL(ucp_worker_address_query(p.n[i].addr, &attr[i]), UCS_OK);
	}
	CU_ASSERT_NOT_EQUAL(attr[0].worker_uid, attr[1].worker_uid);
	util_pair_close(&p);
}

static void
idle_worker_reports_no_progress(void)
{
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 100, 5, true, UTIL_NBX);
	CU_ASSERT(UTIL_UNTIL(&p, util_pair_turn(&p) == 0));
	util_pair_close(&p);
}

static void
information_calls_print_something(void)
{
	char *text = NULL;
	size_t len = 0;
	struct pair p;
	FILE *f;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	f = open_memstream(&text, &len);
	ucp_worker_print_info(p.n[0].w, f);
	fflush(f);
	CU_ASSERT(len > 0);
	ucp_ep_print_info(p.n[0].ep, f);
	fclose(f);
	CU_ASSERT_PTR_NOT_NULL(strchr(text, '\n'));
	free(text);
	util_pair_close(&p);
}

static void
worker_goes_with_unexpected_messages_left(void)
{
	struct op send[N_FEW];
	static uint8_t out[MIB];
	ucp_tag_recv_info_t info;
	struct pair p;
	unsigned i;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N_FEW; i++)
		util_send(&send[i], p.n[0].ep, out, few_sizes[i], i, UTIL_NBX);
	CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, N_FEW - 1, UTIL_ALL_BITS, 0,
		&info) != NULL));
	/* The large ones never complete: nobody receives them. */
	for (i = 0; i < N_FEW; i++)
		if (util_done(&send[i]))
			util_free(&send[i]);
	ucp_worker_release_address(p.n[1].w, p.n[1].addr);
	ucp_worker_destroy(p.n[1].w);
	ucp_cleanup(p.n[1].ctx);
	ucp_worker_release_address(p.n[0].w, p.n[0].addr);
	ucp_worker_destroy(p.n[0].w);
	ucp_cleanup(p.n[0].ctx);
}

static void
worker_goes_with_posted_receives_left(void)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_FLAGS,
		.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
	};
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	struct op recv[10];
	ucp_worker_h w;
	char buf[64];
	int i;

	UTIL_OK(ucp_worker_create(ctx, &params, &w));
	for (i = 0; i < 10; i++)
		util_recv(&recv[i], w, buf, sizeof(buf), i, i & 1 ? UTIL_ALL_BITS : 3, UTIL_NO_IMM);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
	for (i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(recv[i].n_calls, 0); /* no message came */
}

static void
requests_are_cleaned_as_often_as_initialised(void)
{
	unsigned n_init = util_n_init, n_cleanup = util_n_cleanup;
	struct pair p;
	int i;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 100; i++)
		exchange(&p, i & 1, 1000, 5, i & 2, UTIL_NO_IMM);
	util_pair_close(&p);
	CU_ASSERT(util_n_init > n_init);
	CU_ASSERT_EQUAL(util_n_init - n_init, util_n_cleanup - n_cleanup);
}

static void
worker_flush_and_fence_return_with_nothing_to_do(void)
{
	ucp_request_param_t param = {0};
	struct pair p;
	void *req;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL(ucp_worker_fence(p.n[0].w), UCS_OK);
	req = ucp_worker_flush_nbx(p.n[0].w, &param);
	CU_ASSERT_FALSE(UCS_PTR_IS_ERR(req));
	if (UCS_PTR_IS_PTR(req)) {
		CU_ASSERT(UTIL_UNTIL(&p, ucp_request_check_status(req) != UCS_INPROGRESS));
		ucp_request_free(req);
	}
	CU_ASSERT_EQUAL(ucp_worker_flush(p.n[0].w), UCS_OK);
	util_pair_close(&p);
}

/* ---- endpoints ---- */

static void
loopback_ep_delivers_every_size(void)
{
	struct pair p;
	ucp_ep_h ep;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	/* Node 1 stands for node 0's own worker. */
	ep = util_ep(p.n[0].w, p.n[0].addr);
	for (i = 0; i < N_SIZES; i++) {
		struct op send, recv;
		uint8_t *out = util_guarded(sizes[i]), *in = util_guarded(sizes[i]);
		ucp_tag_recv_info_t info;
		bool expected = i & 1;

		util_fill(out, sizes[i], i);
		if (expected)
			util_recv(&recv, p.n[0].w, in, sizes[i], i, UTIL_ALL_BITS, UTIL_NBX);
		util_send(&send, ep, out, sizes[i], i, UTIL_NBX);
		if (!expected) {
			CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[0].w, i, UTIL_ALL_BITS, 0,
				&info) != NULL));
			util_recv(&recv, p.n[0].w, in, sizes[i], i, UTIL_ALL_BITS, UTIL_NBX);
		}
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		util_free(&send);
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.info.length, sizes[i]);
		CU_ASSERT(util_check(in, sizes[i], i));
		CU_ASSERT(util_guards_ok(in, sizes[i]));
		util_guarded_free(out);
		util_guarded_free(in);
	}
	CU_ASSERT(util_ep_close(&p, ep, 0));
	util_pair_close(&p);
}

static void
several_eps_to_one_address_all_deliver(void)
{
	enum { N = 20 };
	struct op send[N], recv[N];
	ucp_ep_h ep[N];
	uint64_t out[N], in[N];
	struct pair p;
	int i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N; i++)
		ep[i] = util_ep(p.n[0].w, p.n[1].addr);
	for (i = 0; i < N; i++) {
		out[i] = 1000 + i;
		util_recv(&recv[i], p.n[1].w, &in[i], 8, i, UTIL_ALL_BITS, UTIL_NBX);
		util_send(&send[i], ep[i], &out[i], 8, i, UTIL_NBX);
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i]) && util_done(&recv[i])));
		util_free(&send[i]);
		util_free(&recv[i]);
		CU_ASSERT_EQUAL(in[i], 1000u + i);
	}
	for (i = 0; i < N; i++)
		CU_ASSERT(util_ep_close(&p, ep[i], 0));
	/* The first ep is not one of them and goes on. */
	exchange(&p, 0, 1000, 99, true, UTIL_NBX);
	util_pair_close(&p);
}

static void
address_may_be_unaligned_and_go_after_the_call(void)
{
	uint8_t *copy;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT(util_ep_close(&p, p.n[0].ep, 0));
	/* Odd address, and other bytes behind, as in MPI's exchange buffer. */
	copy = malloc(p.n[1].addr_len + 65);
	memset(copy, 0x5a, p.n[1].addr_len + 65);
	memcpy(copy + 1, p.n[1].addr, p.n[1].addr_len);
	p.n[0].ep = util_ep(p.n[0].w, (const ucp_address_t *)(copy + 1));
	memset(copy, 0, p.n[1].addr_len + 65);
	free(copy);
	exchange(&p, 0, 100, 1, true, UTIL_NBX);
	exchange(&p, 0, 100000, 1, false, UTIL_NBX);
	util_pair_close(&p);
}

static void
receiver_needs_no_ep_back(void)
{
	struct pair p;
	unsigned i;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT(util_ep_close(&p, p.n[1].ep, 0));
	p.n[1].ep = NULL;
	for (i = 0; i < N_FEW; i++) {
		exchange(&p, 0, few_sizes[i], i, true, UTIL_NBX);
		exchange(&p, 0, few_sizes[i], i, false, UTIL_SYNC);
	}
	util_pair_close(&p);
}

static void
ep_is_made_without_help_of_the_peer(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_worker_h a = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	ucp_worker_h b = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	struct pair p = {.n = {{.ctx = ctx, .w = a}, {.ctx = ctx, .w = b}}, .one_context = true};
	struct op send[2], recv[2];
	uint64_t out[2] = {1, 2}, in[2];
	int i;

	for (i = 0; i < 2; i++)
		UTIL_OK(ucp_worker_get_address(p.n[i].w, &p.n[i].addr, &p.n[i].addr_len));
	p.n[0].ep = util_ep(a, p.n[1].addr);
	/* Sent before the peer has done anything at all. */
	for (i = 0; i < 2; i++)
		util_send(&send[i], p.n[0].ep, &out[i], 8, i, UTIL_NBX);
	for (i = 0; i < 2; i++)
		util_recv(&recv[i], b, &in[i], 8, i, UTIL_ALL_BITS, UTIL_NBX);
	for (i = 0; i < 2; i++) {
		CU_ASSERT(UTIL_UNTIL(&p, util_done(&send[i]) && util_done(&recv[i])));
		util_free(&send[i]);
		util_free(&recv[i]);
		CU_ASSERT_EQUAL(in[i], out[i]);
	}
	util_pair_close(&p);
}

static unsigned n_flush_cb;

static void
flush_cb(void *request, ucs_status_t status)
{
	(void)request;
	(void)status;
	n_flush_cb++;
}

static void
ep_flush_completes(void)
{
	ucp_request_param_t param = {0};
	struct op send, recv;
	uint64_t out = 1, in;
	struct pair p;
	void *req;

	n_flush_cb = 0;
	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	req = ucp_ep_flush_nbx(p.n[0].ep, &param);
	CU_ASSERT_FALSE(UCS_PTR_IS_ERR(req));
	if (UCS_PTR_IS_PTR(req)) {
		CU_ASSERT(UTIL_UNTIL(&p, ucp_request_check_status(req) != UCS_INPROGRESS));
		CU_ASSERT_EQUAL(ucp_request_check_status(req), UCS_OK);
		ucp_request_free(req);
	}
	util_send(&send, p.n[0].ep, &out, 8, 1, UTIL_NBX);
	req = ucp_ep_flush_nb(p.n[0].ep, 0, flush_cb);
	CU_ASSERT_FALSE(UCS_PTR_IS_ERR(req));
	if (UCS_PTR_IS_PTR(req)) {
		CU_ASSERT(UTIL_UNTIL(&p, ucp_request_is_completed(req)));
		CU_ASSERT_EQUAL(n_flush_cb, 1);
		ucp_request_free(req);
	}
	util_recv(&recv, p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

/* The ways to close without force. */
static void *
close_nbx(ucp_ep_h ep)
{
	ucp_request_param_t param;

	memset(&param, 0xa5, sizeof(param));
	param.op_attr_mask = 0;
	return ucp_ep_close_nbx(ep, &param);
}

static void *
close_nb(ucp_ep_h ep)
{
	return ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);
}

static void
closing_an_ep_first_delivers_what_was_sent(void)
{
	static void *(*const ways[])(ucp_ep_h) = {close_nbx, close_nb, ucp_disconnect_nb};
	enum { N = 300 };
	static struct op send[N];
	static uint8_t out[20000], in[20000];
	unsigned i, k, n_bad = 0;
	struct op recv;
	struct pair p;
	size_t len;
	void *req;

	for (k = 0; k < 3; k++) {
		util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
		util_fill(out, sizeof(out), 7);
		for (i = 0; i < N; i++) {
			len = i % 16 == 15 ? 20000 : i;
			util_send(&send[i], p.n[0].ep, out, len, i, UTIL_NBX);
		}
		req = ways[k](p.n[0].ep);
		p.n[0].ep = NULL;
		CU_ASSERT_FALSE(UCS_PTR_IS_ERR(req));
		for (i = 0; i < N; i++) {
			len = i % 16 == 15 ? 20000 : i;
			util_recv(&recv, p.n[1].w, in, sizeof(in), i, UTIL_ALL_BITS, UTIL_NBX);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
			util_free(&recv);
			n_bad += recv.status != UCS_OK || recv.info.length != len ||
				!util_check(in, len, 7);
		}
		CU_ASSERT_EQUAL(n_bad, 0);
		if (UCS_PTR_IS_PTR(req)) {
			CU_ASSERT(UTIL_UNTIL(&p, ucp_request_check_status(req) != UCS_INPROGRESS));
			ucp_request_free(req);
		}
		for (i = 0; i < N; i++) {
			CU_ASSERT(UTIL_UNTIL(&p, util_done(&send[i])));
			util_free(&send[i]);
			CU_ASSERT_EQUAL(send[i].status, UCS_OK);
		}
		util_pair_close(&p);
	}
}

static void
forced_close_needs_error_handling(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	struct pair p;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ret = ucp_ep_close_nbx(p.n[0].ep, &param);
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ret), UCS_ERR_INVALID_PARAM);
	/* Refused: the ep is still there. */
	exchange(&p, 0, 100, 1, true, UTIL_NBX);
	util_pair_close(&p);
}

static unsigned n_err_cb;

static void
err_cb(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
	n_err_cb++;
}

static void
forced_close_ends_what_is_outstanding(void)
{
	ucp_ep_params_t params;
	static uint8_t out[4 * MIB];
	struct op send;
	struct pair p;

	n_err_cb = 0;
	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT(util_ep_close(&p, p.n[0].ep, 0));
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
		UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.address = p.n[1].addr;
	params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params.err_handler.cb = err_cb;
	params.err_handler.arg = NULL;
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(p.n[0].w, &params, &p.n[0].ep), UCS_OK);
	exchange(&p, 0, 100, 1, true, UTIL_NBX);
	util_send(&send, p.n[0].ep, out, sizeof(out), 1, UTIL_NBX);
	UTIL_FOR_MS(&p, 20);
	CU_ASSERT_FALSE(util_done(&send));
	CU_ASSERT(util_ep_close(&p, p.n[0].ep, UCP_EP_CLOSE_FLAG_FORCE));
	p.n[0].ep = NULL;
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	CU_ASSERT(send.status < 0);
	CU_ASSERT_EQUAL(send.n_calls, 1);
	/* Closing is not an error of the peer. */
	CU_ASSERT_EQUAL(n_err_cb, 0);
	util_pair_close(&p);
}

static sigjmp_buf fault_jump;

static void
on_fault(int sig)
{
	(void)sig;
	siglongjmp(fault_jump, 1);
}

/* Try an address that is wrong; true when it was refused without a fault. */
static bool
refused(ucp_worker_h w, const void *addr)
{
	struct sigaction sa = {.sa_handler = on_fault}, segv, bus;
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = addr};
	volatile bool ok = false;
	ucp_ep_h ep = NULL;

	sigaction(SIGSEGV, &sa, &segv);
	sigaction(SIGBUS, &sa, &bus);
	if (sigsetjmp(fault_jump, 1) == 0)
		ok = ucp_ep_create(w, &params, &ep) < 0;
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return ok;
}

static void
altered_address_is_refused(void)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	unsigned n_accepted = 0;
	uint8_t *copy;
	struct pair p;
	size_t i, k;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	copy = malloc(p.n[1].addr_len);
	for (i = 0; i < p.n[1].addr_len; i++) {
		for (k = 0; k < sizeof(flips); k++) {
			memcpy(copy, p.n[1].addr, p.n[1].addr_len);
			copy[i] ^= flips[k];
			if (!refused(p.n[0].w, copy)) {
				fprintf(stderr, "byte %zu of %zu altered by %02x was taken\n", i,
					p.n[1].addr_len, flips[k]);
				n_accepted++;
			}
		}
	}
	CU_ASSERT_EQUAL(n_accepted, 0);
	free(copy);
	exchange(&p, 0, 1000, 1, true, UTIL_NBX);
	util_pair_close(&p);
}

static void
truncated_address_is_refused(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len, n_accepted = 0;
	struct pair p;
	uint8_t *map, *at;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_FATAL(map != MAP_FAILED);
	CU_ASSERT_EQUAL(mprotect(map + 2 * page, page, PROT_NONE), 0);
	for (len = 0; len < p.n[1].addr_len; len++) {
		/* The page ends where the copy ends. */
		at = map + 2 * page - len;
		memset(map, 0, 2 * page);
		memcpy(at, p.n[1].addr, len);
		if (!refused(p.n[0].w, at)) {
			fprintf(stderr, "%zu of %zu bytes were taken\n", len, p.n[1].addr_len);
			n_accepted++;
		}
		/* Zeroes follow. */
		memset(map, 0, 2 * page);
		memcpy(map, p.n[1].addr, len);
		n_accepted += memcmp(map, p.n[1].addr, p.n[1].addr_len) != 0 &&
			!refused(p.n[0].w, map);
	}
	CU_ASSERT_EQUAL(n_accepted, 0);
	munmap(map, 3 * page);
	exchange(&p, 0, 1000, 1, true, UTIL_NBX);
	util_pair_close(&p);
}

static void
random_bytes_as_address_are_refused(void)
{
	unsigned n_accepted = 0;
	uint8_t buf[4096];
	struct pair p;
	size_t i, k;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 200; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t)(rnd() >> 20);
		n_accepted += !refused(p.n[0].w, buf);
	}
	CU_ASSERT_EQUAL(n_accepted, 0);
	util_pair_close(&p);
}

/* ---- threads ---- */

struct sender {
	struct pair *p;
	pthread_mutex_t *lock; /* where the application serialises, or NULL */
	unsigned id, n_messages, n_bad;
};

static void
enter(struct sender *s)
{
	if (s->lock != NULL)
		pthread_mutex_lock(s->lock);
}

static void
leave(struct sender *s)
{
	if (s->lock != NULL)
		pthread_mutex_unlock(s->lock);
}

static void *
send_many(void *arg)
{
	static const size_t lens[] = {8, 2000, 20000, 100000};
	ucp_request_param_t param = {0};
	struct sender *s = arg;
	uint8_t *out = malloc(100000);
	ucs_status_t st;
	unsigned i;
	void *req;

	for (i = 0; i < s->n_messages; i++) {
		size_t len = lens[i % 16 == 0 ? i / 16 % 4 : 0];
		uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

		util_fill(out, len, s->id * 100000 + i);
		enter(s);
		req = ucp_tag_send_nbx(s->p->n[0].ep, out, len, s->id, &param);
		leave(s);
		if (UCS_PTR_IS_ERR(req)) {
			s->n_bad++;
			continue;
		}
		st = req == NULL ? UCS_OK : UCS_INPROGRESS;
		while (st == UCS_INPROGRESS && util_now_ns() < end) {
			enter(s);
			ucp_worker_progress(s->p->n[0].w);
			st = ucp_request_check_status(req);
			leave(s);
		}
		s->n_bad += st != UCS_OK;
		if (req != NULL) {
			enter(s);
			ucp_request_free(req);
			leave(s);
		}
	}
	free(out);
	return NULL;
}

static void
threads_send(ucs_thread_mode_t mode, pthread_mutex_t *lock)
{
	enum { N_THREADS = 4, N = 400 };
	struct sender sender[N_THREADS];
	unsigned next[N_THREADS] = {0}, i, n_bad = 0;
	pthread_t thread[N_THREADS];
	static uint8_t in[100000];
	struct op recv;
	struct pair p;

	/* Two contexts, two workers: the second belongs to this thread alone. */
	util_pair_open(&p, false, mode);
	for (i = 0; i < N_THREADS; i++) {
		sender[i] = (struct sender){.p = &p, .lock = lock, .id = i, .n_messages = N};
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, send_many, &sender[i]), 0);
	}
	for (i = 0; i < N_THREADS * N; i++) {
		uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
		unsigned id;

		util_recv(&recv, p.n[1].w, in, sizeof(in), 0, 0, UTIL_NBX);
		while (!util_done(&recv) && util_now_ns() < end)
			ucp_worker_progress(p.n[1].w);
		CU_ASSERT_FATAL(util_done(&recv));
		util_free(&recv);
		id = (unsigned)recv.info.sender_tag;
		CU_ASSERT_FATAL(id < N_THREADS);
		/* In order for each thread. */
		n_bad += !util_check(in, recv.info.length, id * 100000 + next[id]++);
	}
	for (i = 0; i < N_THREADS; i++) {
		pthread_join(thread[i], NULL);
		n_bad += sender[i].n_bad;
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	util_pair_close(&p);
}

static void
threads_share_a_multi_worker(void)
{
	ucp_lib_attr_t lib = {.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL};

	UTIL_OK(ucp_lib_query(&lib));
	if (lib.max_thread_level < UCS_THREAD_MODE_MULTI)
		return;
	threads_send(UCS_THREAD_MODE_MULTI, NULL);
}

static void
threads_take_turns_on_a_serialized_worker(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	threads_send(UCS_THREAD_MODE_SERIALIZED, &lock);
}

static void *
whole_life(void *arg)
{
	unsigned *n_bad = arg, i;
	struct op send, recv;
	uint64_t out, in = 0;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (out = 0; out < 200; out++) {
		util_recv(&recv, p.n[1].w, &in, 8, out, UTIL_ALL_BITS, UTIL_NBX);
		util_send(&send, p.n[0].ep, &out, 8, out, UTIL_NBX);
		if (!UTIL_UNTIL(&p, util_done(&send) && util_done(&recv))) {
			++*n_bad;
			return NULL;
		}
		util_free(&send);
		util_free(&recv);
		*n_bad += in != out;
	}
	for (i = 0; i < 100; i++)
		util_pair_turn(&p);
	util_pair_close(&p);
	return NULL;
}

static void
threads_have_contexts_and_workers_of_their_own(void)
{
	enum { N = 4 };
	unsigned n_bad[N] = {0}, i;
	pthread_t thread[N];

	for (i = 0; i < N; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, whole_life, &n_bad[i]), 0);
	for (i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		CU_ASSERT_EQUAL(n_bad[i], 0);
	}
}

const struct api_test api_base_tests[] = {
	T(library_tells_its_thread_level),
	T(version_number_and_string_agree),
	T(configuration_is_read_modified_printed_released),
	T(configuration_may_go_before_the_context),
	T(context_tells_request_size_and_thread_mode),
	T(context_information_has_the_lines_open_mpi_reads),
	T(context_information_names_devices_that_are_there),
	T(unnamed_parameter_fields_may_hold_anything),
	T(init_and_cleanup_may_be_repeated),
	T(a_context_without_features_has_workers_with_addresses),
	T(worker_grants_the_thread_mode_asked_for),
	T(worker_address_is_short_and_the_same_by_both_calls),
	T(worker_addresses_carry_distinct_uids),
	T(idle_worker_reports_no_progress),
	T(information_calls_print_something),
	T(worker_goes_with_unexpected_messages_left),
	T(worker_goes_with_posted_receives_left),
	T(requests_are_cleaned_as_often_as_initialised),
	T(worker_flush_and_fence_return_with_nothing_to_do),
	T(loopback_ep_delivers_every_size),
	T(several_eps_to_one_address_all_deliver),
	T(address_may_be_unaligned_and_go_after_the_call),
	T(receiver_needs_no_ep_back),
	T(ep_is_made_without_help_of_the_peer),
	T(ep_flush_completes),
	T(closing_an_ep_first_delivers_what_was_sent),
	T(forced_close_needs_error_handling),
	T_NOT_UCX(forced_close_ends_what_is_outstanding,
		"no error handling over shared memory"),
	T_NOT_UCX(altered_address_is_refused, "its address has no checksum"),
	T_NOT_UCX(truncated_address_is_refused, "it reads beyond the end"),
	T_NOT_UCX(random_bytes_as_address_are_refused, "its address has no checksum"),
	T(threads_share_a_multi_worker),
	T(threads_take_turns_on_a_serialized_worker),
	T(threads_have_contexts_and_workers_of_their_own),
	{NULL, NULL, NULL, NULL},
};

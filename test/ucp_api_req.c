/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_req.c - requests, callbacks and cancelling behave as UCP says
 */
#include <alloca.h>

#include "ucp_api_test.h"

/* ---- callbacks and requests ---- */

static void
callback_never_runs_inside_a_send(void)
{
	static const enum util_how hows[] = {UTIL_NBX, UTIL_NB, UTIL_SYNC, UTIL_SYNC_NB, UTIL_FAST};
	enum { N = 200 };
	static struct op send[N], recv[N];
	static uint8_t out[MIB], in[N][64];
	unsigned i, k, n_inside = 0;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (k = 0; k < sizeof(hows) / sizeof(hows[0]); k++) {
		for (i = 0; i < N; i++)
			util_recv(&recv[i], p.n[1].w, in[i], 64, 1, UTIL_ALL_BITS, UTIL_NBX);
		for (i = 0; i < N; i++) {
			util_send(&send[i], p.n[0].ep, out, 64, 1, hows[k]);
			n_inside += send[i].n_inside;
		}
		for (i = 0; i < N; i++) {
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i]) && util_done(&recv[i])));
			/* A call that was done inline calls nobody back. */
			CU_ASSERT_EQUAL(send[i].n_calls, send[i].immediate ? 0 : 1);
			CU_ASSERT_EQUAL(recv[i].n_inside, 0);
			util_free(&send[i]);
			util_free(&recv[i]);
		}
	}
	CU_ASSERT_EQUAL(n_inside, 0);
	util_pair_close(&p);
}

static void
no_immediate_completion_gives_a_request_and_one_callback(void)
{
	struct op send, recv;
	static uint8_t out[MIB], in[MIB];
	ucp_tag_recv_info_t info;
	struct pair p;
	unsigned i, expected;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N_FEW; i++) {
		for (expected = 0; expected < 2; expected++) {
			if (expected)
				util_recv(&recv, p.n[1].w, in, few_sizes[i], i, UTIL_ALL_BITS, UTIL_NO_IMM);
			util_send(&send, p.n[0].ep, out, few_sizes[i], i, UTIL_NO_IMM);
			if (!expected) {
				CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0,
					&info) != NULL));
				util_recv(&recv, p.n[1].w, in, few_sizes[i], i, UTIL_ALL_BITS, UTIL_NO_IMM);
			}
			CU_ASSERT_PTR_NOT_NULL_FATAL(send.req);
			CU_ASSERT_PTR_NOT_NULL_FATAL(recv.req);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
			UTIL_FOR_MS(&p, 1);
			CU_ASSERT_EQUAL(send.n_calls, 1);
			CU_ASSERT_EQUAL(recv.n_calls, 1);
			CU_ASSERT_EQUAL(ucp_request_check_status(send.req), UCS_OK);
			CU_ASSERT_EQUAL(ucp_request_check_status(recv.req), UCS_OK);
			CU_ASSERT(ucp_request_is_completed(recv.req));
			memset(&info, 0, sizeof(info));
			CU_ASSERT_EQUAL(ucp_request_test(recv.req, &info), UCS_OK);
			CU_ASSERT_EQUAL(info.length, few_sizes[i]);
			CU_ASSERT_EQUAL(info.sender_tag, i);
			util_free(&send);
			util_free(&recv);
		}
	}
	util_pair_close(&p);
}

static void
receive_nb_always_gives_a_request(void)
{
	struct op send, recv;
	static uint8_t out[MIB], in[MIB];
	ucp_tag_recv_info_t info;
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N_FEW; i++) {
		util_send(&send, p.n[0].ep, out, few_sizes[i], i, UTIL_NBX);
		CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0, &info) != NULL));
		util_recv(&recv, p.n[1].w, in, few_sizes[i], i, UTIL_ALL_BITS, UTIL_NB);
		CU_ASSERT_PTR_NOT_NULL_FATAL(recv.req);
		CU_ASSERT(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		util_free(&send);
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.n_calls, 1);
		CU_ASSERT_EQUAL(recv.info.length, few_sizes[i]);
	}
	util_pair_close(&p);
}

static void
receive_without_request_fills_recv_info(void)
{
	struct op send, recv;
	uint8_t out[200], in[200];
	unsigned i;
	ucp_tag_recv_info_t info;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 50; i++) {
		util_send(&send, p.n[0].ep, out, i, 1000 + i, UTIL_NBX);
		CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, 1000 + i, UTIL_ALL_BITS, 0,
			&info) != NULL));
		util_recv(&recv, p.n[1].w, in, sizeof(in), 1000 + i, UTIL_ALL_BITS, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv) && util_done(&send)));
		CU_ASSERT_EQUAL(recv.n_calls, recv.immediate ? 0 : 1);
		CU_ASSERT_EQUAL(recv.info.length, i);
		CU_ASSERT_EQUAL(recv.info.sender_tag, 1000u + i);
		util_free(&send);
		util_free(&recv);
	}
	util_pair_close(&p);
}

/* The areas seen so far, with the stamp each has to hold. */
static struct {
	void *req;
	uint64_t stamp;
} seen[4096];
static unsigned n_seen;

static bool
area_is_as_left(void *req)
{
	struct area *a = req;
	unsigned i;

	for (i = 0; i < n_seen && seen[i].req != req; i++)
		;
	if (i == n_seen) {
		if (n_seen == sizeof(seen) / sizeof(seen[0]))
			return true;
		seen[n_seen++].req = req;
		seen[i].stamp = 0;
	}
	if (a->magic != UTIL_MAGIC || a->stamp != seen[i].stamp)
		return false;
	a->stamp = seen[i].stamp = rnd();
	return true;
}

static void
user_area_is_initialised_once_and_then_kept(void)
{
	enum { N = 64 };
	static struct op send[N], recv[N];
	static uint8_t out[20000], in[N][20000];
	unsigned round, i, n_bad = 0, n_init = util_n_init;
	struct pair p;

	n_seen = 0;
	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (round = 0; round < 40; round++) {
		size_t len = round & 1 ? 20000 : 8;

		for (i = 0; i < N; i++) {
			util_recv(&recv[i], p.n[1].w, in[i], len, i, UTIL_ALL_BITS, UTIL_NO_IMM);
			n_bad += !area_is_as_left(recv[i].req);
		}
		for (i = 0; i < N; i++)
			util_send(&send[i], p.n[0].ep, out, len, i, UTIL_NBX);
		for (i = 0; i < N; i++) {
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i]) && util_done(&recv[i])));
			util_free(&send[i]);
			util_free(&recv[i]);
		}
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	/* Objects are reused, and each was initialised once. */
	CU_ASSERT(n_seen < 40 * N);
	CU_ASSERT(util_n_init - n_init >= n_seen);
	util_pair_close(&p);
}

static void
count_cb(void *request, ucs_status_t status, void *user_data)
{
	(void)request;
	(void)status;
	++*(unsigned *)user_data;
}

static void
count_recv_cb(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	(void)request;
	(void)status;
	(void)info;
	++*(unsigned *)user_data;
}

/* A receive dropped before it completes, by release or by free. */
static void
drop_receive(struct pair *p, size_t len, bool release, unsigned *n_calls)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
			UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv = count_recv_cb,
		.user_data = n_calls,
	};
	uint8_t *out = util_guarded(len), *in = util_guarded(len);
	struct op send;
	void *req;

	*n_calls = 0;
	util_fill(out, len, 5);
	req = ucp_tag_recv_nbx(p->n[1].w, in, len, 5, UTIL_ALL_BITS, &param);
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
	if (release)
		ucp_request_release(req);
	else
		ucp_request_free(req);
	/* The receive itself goes on. */
	util_send(&send, p->n[0].ep, out, len, 5, UTIL_SYNC);
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&send) && memcmp(in, out, len) == 0));
	util_free(&send);
	UTIL_FOR_MS(p, 5);
	CU_ASSERT(util_guards_ok(in, len));
	util_guarded_free(out);
	util_guarded_free(in);
}

static void
released_receive_still_calls_back_freed_one_does_not(void)
{
	unsigned n_calls, i;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 1; i < N_FEW; i++) {
		drop_receive(&p, few_sizes[i], true, &n_calls);
		CU_ASSERT_EQUAL(n_calls, 1);
		drop_receive(&p, few_sizes[i], false, &n_calls);
		CU_ASSERT_EQUAL(n_calls, 0);
	}
	CU_ASSERT(nothing_waits(&p, 1));
	util_pair_close(&p);
}

static void
released_send_still_calls_back_freed_one_does_not(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = count_cb,
	};
	static uint8_t out[MIB], in[MIB];
	unsigned n_calls, i, release;
	struct op recv;
	struct pair p;
	void *req;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	param.user_data = &n_calls;
	for (i = 0; i < N_FEW; i++) {
		for (release = 0; release < 2; release++) {
			n_calls = 0;
			/* Nobody receives yet, so it cannot be complete. */
			req = ucp_tag_send_sync_nbx(p.n[0].ep, out, few_sizes[i], 1, &param);
			CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
			if (release)
				ucp_request_release(req);
			else
				ucp_request_free(req);
			util_recv(&recv, p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS, UTIL_NBX);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
			util_free(&recv);
			CU_ASSERT_EQUAL(recv.status, UCS_OK);
			CU_ASSERT_EQUAL(recv.info.length, few_sizes[i]);
			if (release)
				CU_ASSERT(UTIL_UNTIL(&p, n_calls == 1));
			UTIL_FOR_MS(&p, 5);
			CU_ASSERT_EQUAL(n_calls, release);
		}
	}
	util_pair_close(&p);
}

static void
free_in_callback(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
	void *user_data)
{
	(void)status;
	(void)info;
	++*(unsigned *)user_data;
	ucp_request_free(request);
}

static void
callback_may_free_its_own_request(void)
{
	unsigned n_calls = 0, i, k;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
			UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv = free_in_callback,
		.user_data = &n_calls,
	};
	static uint8_t out[MIB], in[MIB];
	ucp_tag_recv_info_t info;
	struct op send;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (k = 0; k < 50; k++) {
		for (i = 0; i < N_FEW; i++) {
			n_calls = 0;
			if (k & 1)
				CU_ASSERT(UCS_PTR_IS_PTR(ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), i,
					UTIL_ALL_BITS, &param)));
			util_send(&send, p.n[0].ep, out, few_sizes[i], i, UTIL_NBX);
			if (!(k & 1)) {
				CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0,
					&info) != NULL));
				CU_ASSERT(UCS_PTR_IS_PTR(ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), i,
					UTIL_ALL_BITS, &param)));
			}
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, n_calls == 1 && util_done(&send)));
			util_free(&send);
		}
	}
	util_pair_close(&p);
}

/* A request in the caller's memory, with patterns on both sides. */
struct own {
	uint8_t *mem;
	size_t size;
	void *req;
};

static void
own_open(struct own *o, ucp_context_h ctx)
{
	ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};

	UTIL_OK(ucp_context_query(ctx, &attr));
	o->size = attr.request_size;
	if (posix_memalign((void **)&o->mem, 64, o->size + 128 + 320) != 0)
		UTIL_DIE("no memory");
	memset(o->mem, 0xcc, o->size + 128 + 320);
	o->req = o->mem + 128 + o->size;
}

static bool
own_guards_ok(const struct own *o)
{
	unsigned i;

	for (i = 0; i < 128; i++)
		if (o->mem[i] != 0xcc)
			return false;
	for (i = 0; i < 320; i++)
		if (((uint8_t *)o->req)[i] != 0xcc)
			return false;
	return true;
}

static void
own_requests(bool nbr)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
	static uint8_t out[4 * MIB + 3], in[4 * MIB + 3];
	unsigned n_init = util_n_init, i, expected;
	ucs_status_t send_st = UCS_OK, recv_st;
	ucp_tag_recv_info_t info;
	struct own send, recv;
	struct pair p;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	own_open(&send, p.n[0].ctx);
	own_open(&recv, p.n[0].ctx);
	n_init = util_n_init;
	for (i = 0; i < N_SIZES; i++) {
		for (expected = 0; expected < 2; expected++) {
			size_t len = sizes[i];
			ucp_tag_t tag = 2 * i + expected;

			util_fill(out, len, tag);
			memset(in, 0, len);
			for (int step = 0; step < 2; step++) {
				if (step == (int)!expected) {
					if (!expected)
						CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, tag,
							UTIL_ALL_BITS, 0, &info) != NULL));
					/* The returned value is ignored, as Open MPI does. */
					param.request = recv.req;
					if (nbr)
						(void)ucp_tag_recv_nbr(p.n[1].w, in, len, ucp_dt_make_contig(1),
							tag, UTIL_ALL_BITS, recv.req);
					else
						(void)ucp_tag_recv_nbx(p.n[1].w, in, len, tag, UTIL_ALL_BITS,
							&param);
				} else {
					param.request = send.req;
					memset(send.mem, 0xcc, send.size + 128);
					if (nbr) {
						send_st = ucp_tag_send_nbr(p.n[0].ep, out, len,
							ucp_dt_make_contig(1), tag, send.req);
					} else {
						ret = ucp_tag_send_nbx(p.n[0].ep, out, len, tag, &param);
						send_st = UCS_PTR_IS_PTR(ret) ? UCS_INPROGRESS :
							UCS_PTR_RAW_STATUS(ret);
						if (UCS_PTR_IS_PTR(ret))
							CU_ASSERT_PTR_EQUAL(ret, send.req);
					}
				}
			}
			memset(&info, 0, sizeof(info));
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, (recv_st = ucp_request_test(recv.req, &info)) !=
				UCS_INPROGRESS));
			CU_ASSERT_EQUAL(recv_st, UCS_OK);
			CU_ASSERT_EQUAL(info.length, len);
			CU_ASSERT_EQUAL(info.sender_tag, tag);
			if (send_st == UCS_INPROGRESS) {
				CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_request_check_status(send.req) !=
					UCS_INPROGRESS));
			} else {
				CU_ASSERT_EQUAL(send_st, UCS_OK);
			}
			/* A program that polls it instead of the return value sees it complete as well. */
			CU_ASSERT_EQUAL(ucp_request_check_status(send.req), UCS_OK);
			CU_ASSERT(util_check(in, len, tag));
			CU_ASSERT(own_guards_ok(&send));
			CU_ASSERT(own_guards_ok(&recv));
		}
	}
	/* Not pooled objects, so never initialised. */
	(void)n_init;
	util_pair_close(&p);
	CU_ASSERT(own_guards_ok(&send));
	CU_ASSERT(own_guards_ok(&recv));
	free(send.mem);
	free(recv.mem);
}

static void
own_request_is_polled_and_nothing_behind_it_touched(void)
{
	own_requests(false);
}

static void
own_request_of_nbr_calls_works_the_same(void)
{
	own_requests(true);
}

static void __attribute__((noinline))
receive_on_the_stack(struct pair *p, size_t request_size, size_t len)
{
	ucp_request_param_t param;
	uint8_t *in = util_guarded(len), *out = util_guarded(len);
	uint8_t *mem = alloca(request_size + 16);
	void *req = mem + request_size;
	ucp_tag_recv_info_t info;
	struct op send;
	ucs_status_t st;

	req = (void *)((uintptr_t)req & ~(uintptr_t)15);
	util_fill(out, len, len);
	memset(&param, 0xa5, sizeof(param));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_DATATYPE;
	param.datatype = ucp_dt_make_contig(1);
	param.request = req;
	(void)ucp_tag_recv_nbx(p->n[1].w, in, len, 9, UTIL_ALL_BITS, &param);
	util_send(&send, p->n[0].ep, out, len, 9, UTIL_NBX);
	CU_ASSERT(UTIL_UNTIL(p, (st = ucp_request_test(req, &info)) != UCS_INPROGRESS));
	CU_ASSERT_EQUAL(st, UCS_OK);
	CU_ASSERT_EQUAL(info.length, len);
	CU_ASSERT(util_check(in, len, len));
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&send)));
	util_free(&send);
	util_guarded_free(in);
	util_guarded_free(out);
}

static void
receive_polled_on_the_stack_is_left_alone_after_completion(void)
{
	ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
	struct pair p;
	unsigned i, k;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	UTIL_OK(ucp_context_query(p.n[1].ctx, &attr));
	for (k = 0; k < 20; k++)
		for (i = 0; i < N_FEW; i++)
			receive_on_the_stack(&p, attr.request_size + 16, few_sizes[i]);
	util_pair_close(&p);
}

static void
own_request_with_callback_is_called_back_once(void)
{
	unsigned n_calls = 0;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK |
			UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv = count_recv_cb,
		.user_data = &n_calls,
	};
	static uint8_t out[MIB], in[MIB];
	struct op send, later;
	struct own recv;
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	own_open(&recv, p.n[0].ctx);
	param.request = recv.req;
	for (i = 0; i < N_FEW; i++) {
		n_calls = 0;
		CU_ASSERT_PTR_EQUAL(ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS, &param),
			recv.req);
		util_send(&send, p.n[0].ep, out, few_sizes[i], 1, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, n_calls > 0 && util_done(&send)));
		util_free(&send);
		UTIL_FOR_MS(&p, 1);
		CU_ASSERT_EQUAL(n_calls, 1);
		CU_ASSERT_EQUAL(ucp_request_check_status(recv.req), UCS_OK);
	}
	/* Freed before it completes, it does not become the worker's. */
	in[0] = 0;
	out[0] = 1;
	(void)ucp_tag_recv_nbx(p.n[1].w, in, 8, 1, UTIL_ALL_BITS, &param);
	ucp_request_free(recv.req);
	util_send(&send, p.n[0].ep, out, 8, 1, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, in[0] == 1 && util_done(&send)));
	util_free(&send);
	util_recv(&later, p.n[1].w, in, 8, 2, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT_PTR_NOT_EQUAL(later.req, recv.req);
	util_send(&send, p.n[0].ep, out, 8, 2, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&later) && util_done(&send)));
	util_free(&send);
	util_free(&later);
	util_pair_close(&p);
	CU_ASSERT(own_guards_ok(&recv));
	free(recv.mem);
}

static void
own_request_can_be_cancelled(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
	struct own recv;
	uint8_t in[100];
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	own_open(&recv, p.n[0].ctx);
	param.request = recv.req;
	CU_ASSERT_PTR_EQUAL(ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS, &param),
		recv.req);
	CU_ASSERT_EQUAL(ucp_request_check_status(recv.req), UCS_INPROGRESS);
	ucp_request_cancel(p.n[1].w, recv.req);
	CU_ASSERT(UTIL_UNTIL(&p, ucp_request_check_status(recv.req) != UCS_INPROGRESS));
	CU_ASSERT_EQUAL(ucp_request_check_status(recv.req), UCS_ERR_CANCELED);
	CU_ASSERT(own_guards_ok(&recv));
	exchange(&p, 0, 100, 1, false, UTIL_NBX);
	util_pair_close(&p);
	free(recv.mem);
}

/* The message came before the receive. @param flag UCP_OP_ATTR_FLAG_x, or 0 */
static void
own_request_of_kept(uint32_t flag, size_t room)
{
	unsigned n_calls = 0;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK |
			UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_RECV_INFO | flag,
		.cb.recv = count_recv_cb,
		.user_data = &n_calls,
	};
	ucs_status_t status = room < 8 ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK;
	ucp_tag_recv_info_t at_once = {0}, info = {0};
	uint64_t out = 0x1234, in = 0;
	struct own recv;
	struct op send;
	struct pair p;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	own_open(&recv, p.n[0].ctx);
	param.request = recv.req;
	param.recv_info.tag_info = &at_once;
	util_send(&send, p.n[0].ep, &out, 8, 5, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) &&
		ucp_tag_probe_nb(p.n[1].w, 5, UTIL_ALL_BITS, 0, &info) != NULL));
	util_free(&send);
	ret = ucp_tag_recv_nbx(p.n[1].w, &in, room, 5, UTIL_ALL_BITS, &param);
	if (UCS_PTR_IS_PTR(ret)) { /* always with this flag, and with a reactor */
		CU_ASSERT_PTR_EQUAL(ret, recv.req);
		CU_ASSERT_EQUAL(n_calls, 0); /* none inside of the call */
	} else {
		CU_ASSERT_EQUAL(flag, 0);
		CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ret), status);
		CU_ASSERT_EQUAL(at_once.length, status == UCS_OK ? 8 : 0);
	}
	memset(&info, 0, sizeof(info));
	CU_ASSERT(UTIL_UNTIL(&p, ucp_request_test(recv.req, &info) != UCS_INPROGRESS));
	CU_ASSERT_EQUAL(ucp_request_check_status(recv.req), status);
	CU_ASSERT_EQUAL(info.sender_tag, 5);
	CU_ASSERT_EQUAL(info.length, 8);
	UTIL_FOR_MS(&p, 1);
	CU_ASSERT_EQUAL(n_calls, UCS_PTR_IS_PTR(ret));
	CU_ASSERT_EQUAL(in, room < 8 ? 0x34 : 0x1234);
	CU_ASSERT(nothing_waits(&p, 1));
	CU_ASSERT(own_guards_ok(&recv));
	util_pair_close(&p);
	free(recv.mem);
}

static void
own_request_takes_a_kept_message(void)
{
	static const uint32_t flags[] = {0, UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

	for (unsigned i = 0; i < 2; i++) {
		own_request_of_kept(flags[i], 8);
		own_request_of_kept(flags[i], 1);
	}
}

static void
request_query_tells_status_and_text(void)
{
	ucp_request_attr_t attr;
	struct op recv, send;
	char text[200];
	uint64_t in, out = 4;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	util_recv(&recv, p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
	memset(&attr, 0xa5, sizeof(attr));
	memset(text, 'x', sizeof(text));
	attr.field_mask = UCP_REQUEST_ATTR_FIELD_STATUS | UCP_REQUEST_ATTR_FIELD_INFO_STRING |
		UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE;
	attr.debug_string = text;
	attr.debug_string_size = 20;
	CU_ASSERT_EQUAL(ucp_request_query(recv.req, &attr), UCS_OK);
	CU_ASSERT_EQUAL(attr.status, UCS_INPROGRESS);
	CU_ASSERT(memchr(text, 0, 20) != NULL);
	CU_ASSERT_EQUAL(text[20], 'x');
	attr.debug_string_size = sizeof(text);
	CU_ASSERT_EQUAL(ucp_request_query(recv.req, &attr), UCS_OK);
	CU_ASSERT(strstr(text, "recv") != NULL && strstr(text, "host") != NULL);
	util_send(&send, p.n[0].ep, &out, 8, 1, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv) && util_done(&send)));
	attr.field_mask = UCP_REQUEST_ATTR_FIELD_STATUS;
	CU_ASSERT_EQUAL(ucp_request_query(recv.req, &attr), UCS_OK);
	CU_ASSERT_EQUAL(attr.status, UCS_OK);
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

static void
status_calls_make_no_progress(void)
{
	ucp_tag_recv_info_t info = {.sender_tag = 77, .length = 88};
	struct op send, recv;
	uint64_t in = 0, out = 4;
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 8, 5, true, UTIL_NBX);
	util_recv(&recv, p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
	for (i = 0; i < 1000; i++) {
		CU_ASSERT_EQUAL(ucp_request_test(recv.req, &info), UCS_INPROGRESS);
		CU_ASSERT_EQUAL(ucp_tag_recv_request_test(recv.req, &info), UCS_INPROGRESS);
		CU_ASSERT_FALSE(ucp_request_is_completed(recv.req));
	}
	CU_ASSERT_EQUAL(info.length, 88);
	util_send(&send, p.n[0].ep, &out, 8, 1, UTIL_NBX);
	for (i = 0; i < 1000; i++)
		(void)ucp_request_check_status(recv.req);
	/* Callbacks come from progress only. */
	CU_ASSERT_EQUAL(recv.n_calls, 0);
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

static void
forced_immediate_send_sends_or_leaves_no_trace(void)
{
	enum { N = 2000 };
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	struct util_forced sends = {0};
	unsigned i, n_bad = 0;
	struct op recv;
	uint64_t out, in;
	struct pair p;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 8, 5, true, UTIL_NBX);
	for (i = 0; i < N; i++) {
		out = sends.n_sent;
		ret = ucp_tag_send_nbx(p.n[0].ep, &out, 8, 1, &param);
		util_forced_count(&sends, ret);
		out = UINT64_MAX;
		if (i % 100 == 99)
			util_pair_turn(&p);
	}
	CU_ASSERT_EQUAL(sends.n_bad, 0);
	CU_ASSERT_EQUAL(sends.n_sent + sends.n_refused, N);
	for (i = 0; i < sends.n_sent; i++) {
		util_recv(&recv, p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
		n_bad += in != i;
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT(nothing_waits(&p, 1));
	util_pair_close(&p);
}

static void
flood_of_short_sends_waits_with_requests_and_stays_in_order(void)
{
	enum { N = 20000 };
	unsigned n_requests = 0, i, n_bad = 0;
	static uint64_t out[N];
	static struct op op[N];
	struct op recv;
	uint64_t in;
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 8, 5, true, UTIL_NBX);
	for (i = 0; i < N; i++) {
		out[i] = i;
		util_send(&op[i], p.n[0].ep, &out[i], 8, 1, UTIL_NBX);
		n_requests += !op[i].immediate;
		if (op[i].immediate)
			out[i] = UINT64_MAX; /* it is ours again */
	}
	if (getenv("PLX_REACTOR") == NULL)
		CU_ASSERT(n_requests > 0); /* nobody receives; a reactor does */
	for (i = 0; i < N; i++) {
		util_recv(&recv, p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
		n_bad += in != i;
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op[i])));
		n_bad += op[i].status != UCS_OK;
		util_free(&op[i]);
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	util_pair_close(&p);
}

static void
forced_immediate_receive_posts_nothing(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	uint8_t in[100];
	struct pair p;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ret = ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS, &param);
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ret), UCS_ERR_NO_RESOURCE);
	/* Unexpected, so nothing was posted for it. */
	exchange(&p, 0, 100, 1, false, UTIL_NBX);
	util_pair_close(&p);
}

static void
forced_immediate_receive_never_loses_a_message(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_RECV_INFO,
	};
	static uint8_t out[4 * MIB + 3], in[4 * MIB + 3];
	ucp_tag_recv_info_t info, got;
	struct op send, recv;
	struct pair p;
	unsigned i;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	param.recv_info.tag_info = &got;
	for (i = 0; i < N_SIZES; i++) {
		util_fill(out, sizes[i], i);
		memset(in, 0, sizes[i]);
		util_send(&send, p.n[0].ep, out, sizes[i], i, UTIL_NBX);
		CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0, &info) != NULL));
		ret = ucp_tag_recv_nbx(p.n[1].w, in, sizes[i], i, UTIL_ALL_BITS, &param);
		if (ret != NULL) {
			CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ret), UCS_ERR_NO_RESOURCE);
			/* Still there for a receive without the flag. */
			CU_ASSERT_PTR_NOT_NULL(ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0, &info));
			util_recv(&recv, p.n[1].w, in, sizes[i], i, UTIL_ALL_BITS, UTIL_NBX);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
			util_free(&recv);
		} else {
			CU_ASSERT_EQUAL(got.length, sizes[i]);
		}
		CU_ASSERT(util_check(in, sizes[i], i));
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
		util_free(&send);
	}
	util_pair_close(&p);
}

static void
forced_immediate_receive_of_a_removed_message_takes_what_is_here(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_RECV_INFO,
	};
	static uint8_t out[1 * MIB], in[1 * MIB];
	ucp_tag_message_h msg = NULL;
	ucp_tag_recv_info_t info, got;
	struct op send, recv;
	struct pair p;
	unsigned i;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	param.recv_info.tag_info = &got;
	for (i = 0; i < N_FEW; i++) {
		bool is_short = few_sizes[i] <= 1000;

		util_fill(out, few_sizes[i], i);
		memset(in, 0, few_sizes[i]);
		util_send(&send, p.n[0].ep, out, few_sizes[i], i, UTIL_NBX);
		CU_ASSERT(UTIL_UNTIL(&p,
			(msg = ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 1, &info)) != NULL));
		CU_ASSERT_FATAL(msg != NULL);
		ret = ucp_tag_msg_recv_nbx(p.n[1].w, in, few_sizes[i], msg, &param);
		if (is_short) /* the rest of it may be on its way */
			CU_ASSERT(UTIL_UNTIL(&p, UCS_PTR_RAW_STATUS(ret) != UCS_ERR_NO_RESOURCE ||
				(ret = ucp_tag_msg_recv_nbx(p.n[1].w, in, few_sizes[i], msg,
					&param)) == NULL));
		if (ret != NULL) {
			CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ret), UCS_ERR_NO_RESOURCE);
			CU_ASSERT_FALSE_FATAL(is_short);
			/* The message is still the caller's. */
			util_msg_recv(&recv, p.n[1].w, in, few_sizes[i], msg, UTIL_NBX);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
			util_free(&recv);
			CU_ASSERT_EQUAL(recv.status, UCS_OK);
		} else {
			CU_ASSERT_EQUAL(got.length, few_sizes[i]);
			CU_ASSERT_EQUAL(got.sender_tag, i);
		}
		CU_ASSERT(util_check(in, few_sizes[i], i));
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
		util_free(&send);
	}
	util_pair_close(&p);
}

/* Whether it was taken back only its sender can tell: that takes a request. */
static void
forced_immediate_receive_leaves_a_message_taken_back(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	static uint8_t out[1 * MIB], in[1 * MIB];
	ucp_tag_recv_info_t info;
	struct op send, recv;
	struct pair p;
	ucp_ep_h ep;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ep = util_ep_with_handler(p.n[0].w, p.n[1].addr, NULL, NULL);
	util_send(&send, ep, out, sizeof(out), 1, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, 1, UTIL_ALL_BITS, 0, &info) != NULL));
	CU_ASSERT(util_ep_close(&p, ep, UCP_EP_CLOSE_FLAG_FORCE));
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	CU_ASSERT_EQUAL(send.status, UCS_ERR_CANCELED);
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS,
		&param)), UCS_ERR_NO_RESOURCE);
	util_recv(&recv, p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS, UTIL_NO_IMM);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	CU_ASSERT_EQUAL(recv.status, UCS_ERR_CONNECTION_RESET);
	CU_ASSERT(nothing_waits(&p, 1));
	util_pair_close(&p);
}

static void
no_imm_with_force_imm_is_refused(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
	};
	uint8_t buf[8] = {0};
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ucp_tag_send_nbx(p.n[0].ep, buf, 8, 1, &param)),
		UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ucp_tag_recv_nbx(p.n[0].w, buf, 8, 1, UTIL_ALL_BITS,
		&param)), UCS_ERR_INVALID_PARAM);
	util_pair_close(&p);
}

static void
hints_that_exclude_each_other_are_no_error(void)
{
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND,
	};
	uint8_t out[8] = {1, 2, 3}, in[8];
	struct op recv;
	struct pair p;
	void *sent;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	util_recv(&recv, p.n[1].w, in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
	sent = ucp_tag_send_nbx(p.n[0].ep, out, 8, 1, &param);
	CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(sent));
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&recv)));
	CU_ASSERT_EQUAL(memcmp(in, out, 8), 0);
	util_free(&recv);
	if (sent != NULL)
		ucp_request_free(sent);
	util_pair_close(&p);
}

/* ---- cancel ---- */

static void
cancelled_receive_calls_back_once_and_matches_nothing(void)
{
	static const ucp_tag_t masks[] = {UTIL_ALL_BITS, 0, 0xff, 0xffffffff9fffffff};
	struct op recv;
	uint8_t in[100];
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 4; i++) {
		util_recv(&recv, p.n[1].w, in, sizeof(in), 1, masks[i], i & 1 ? UTIL_NB : UTIL_NO_IMM);
		CU_ASSERT_FALSE(util_done(&recv));
		ucp_request_cancel(p.n[1].w, recv.req);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		UTIL_FOR_MS(&p, 1);
		CU_ASSERT_EQUAL(ucp_request_check_status(recv.req), UCS_ERR_CANCELED);
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.n_calls, 1);
		CU_ASSERT_EQUAL(recv.status, UCS_ERR_CANCELED);
		exchange(&p, 0, 100, 1, false, UTIL_NBX);
	}
	util_pair_close(&p);
}

static void
cancel_takes_one_of_many(void)
{
	enum { N = 300 };
	static struct op recv[N];
	static uint64_t in[N];
	unsigned i, n_cancelled = 0, next = 0;
	struct op send;
	struct pair p;
	uint64_t out;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N; i++)
		util_recv(&recv[i], p.n[1].w, &in[i], 8, 1, i % 3 == 0 ? 0 : i % 3 == 1 ? 0xf :
			UTIL_ALL_BITS, UTIL_NO_IMM);
	for (i = 0; i < N; i += 1 + rnd() % 3) {
		ucp_request_cancel(p.n[1].w, recv[i].req);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv[i])));
		CU_ASSERT_EQUAL(recv[i].status, UCS_ERR_CANCELED);
		n_cancelled++;
	}
	for (out = 0; out < N - n_cancelled; out++) {
		util_send(&send, p.n[0].ep, &out, 8, 1, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
		util_free(&send);
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv[i])));
		CU_ASSERT_EQUAL(recv[i].n_calls, 1);
		if (recv[i].status == UCS_OK)
			CU_ASSERT_EQUAL(in[i], next++);
		util_free(&recv[i]);
	}
	CU_ASSERT_EQUAL(next, N - n_cancelled);
	util_pair_close(&p);
}

static void
cancel_of_anything_else_changes_nothing(void)
{
	static uint8_t out[MIB], in[MIB];
	struct op send, recv;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	/* a send that waits for its receiver */
	util_fill(out, sizeof(out), 3);
	util_send(&send, p.n[0].ep, out, sizeof(out), 1, UTIL_SYNC);
	CU_ASSERT_PTR_NOT_NULL_FATAL(send.req);
	ucp_request_cancel(p.n[0].w, send.req);
	util_recv(&recv, p.n[1].w, in, sizeof(in), 1, UTIL_ALL_BITS, UTIL_NO_IMM);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	/* a receive that is complete */
	ucp_request_cancel(p.n[1].w, recv.req);
	UTIL_FOR_MS(&p, 1);
	CU_ASSERT_EQUAL(recv.n_calls, 1);
	CU_ASSERT_EQUAL(recv.status, UCS_OK);
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	CU_ASSERT(util_check(in, sizeof(in), 3));
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

const struct api_test api_req_tests[] = {
	T(callback_never_runs_inside_a_send),
	T(no_immediate_completion_gives_a_request_and_one_callback),
	T(receive_nb_always_gives_a_request),
	T_NOT_UCX(receive_without_request_fills_recv_info, "1.13 leaves recv_info as it was"),
	T(user_area_is_initialised_once_and_then_kept),
	T(released_receive_still_calls_back_freed_one_does_not),
	T(released_send_still_calls_back_freed_one_does_not),
	T(callback_may_free_its_own_request),
	T(own_request_is_polled_and_nothing_behind_it_touched),
	T(own_request_of_nbr_calls_works_the_same),
	T(receive_polled_on_the_stack_is_left_alone_after_completion),
	T(own_request_with_callback_is_called_back_once),
	T(own_request_takes_a_kept_message),
	T(own_request_can_be_cancelled),
	T(request_query_tells_status_and_text),
	T(status_calls_make_no_progress),
	T(forced_immediate_send_sends_or_leaves_no_trace),
	T(flood_of_short_sends_waits_with_requests_and_stays_in_order),
	T(forced_immediate_receive_posts_nothing),
	T_NOT_UCX(forced_immediate_receive_never_loses_a_message,
		"it drops a message that is not fully buffered"),
	T_NOT_UCX(forced_immediate_receive_of_a_removed_message_takes_what_is_here,
		"a long one is lost"),
	T_NOT_UCX(forced_immediate_receive_leaves_a_message_taken_back,
		"no error handling over shared memory"),
	T_NOT_UCX(no_imm_with_force_imm_is_refused, "it does not check"),
	T(hints_that_exclude_each_other_are_no_error),
	T(cancelled_receive_calls_back_once_and_matches_nothing),
	T(cancel_takes_one_of_many),
	T(cancel_of_anything_else_changes_nothing),
	{NULL, NULL, NULL, NULL},
};

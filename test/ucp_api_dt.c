/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_dt.c - iov and generic datatypes on either side, in every way to travel
 */
#include <stdalign.h>
#include <stddef.h>

#include "ucp_api_test.h"

enum { N_IOV = 5 };

/* A message of len bytes cut in N_IOV unequal buffers, one of them empty. */
struct iov {
	ucp_dt_iov_t v[N_IOV];
};

static void
iov_open(struct iov *iov, size_t len)
{
	size_t left = len, n;
	int i;

	for (i = 0; i < N_IOV; i++) {
		n = i == N_IOV - 1 ? left : i == 2 ? 0 : left / (size_t)(i + 2);
		iov->v[i].buffer = util_guarded(n);
		iov->v[i].length = n;
		left -= n;
	}
}

static void
iov_fill(struct iov *iov, const uint8_t *from)
{
	int i;

	for (i = 0; i < N_IOV; i++) {
		memcpy(iov->v[i].buffer, from, iov->v[i].length);
		from += iov->v[i].length;
	}
}

static bool
iov_is(const struct iov *iov, const uint8_t *want)
{
	bool ok = true;
	int i;

	for (i = 0; i < N_IOV; i++) {
		ok = ok && memcmp(iov->v[i].buffer, want, iov->v[i].length) == 0 &&
			util_guards_ok(iov->v[i].buffer, iov->v[i].length);
		want += iov->v[i].length;
	}
	return ok;
}

static void
iov_close(struct iov *iov)
{
	int i;

	for (i = 0; i < N_IOV; i++)
		util_guarded_free(iov->v[i].buffer);
}

/* Bytes with a gap after each, packed and unpacked by callbacks. */
struct gen {
	uint8_t *mem; /* byte i of the message is mem[2 * i] */
	size_t len;
	int n_start, n_finish, n_bad;
	size_t unpacked;
};

/* Bytes of an element: pack stops at whole ones, as MPICH's does, and unpack takes no part of one. */
static size_t gen_elem = 1;

static void *
gen_start_pack(void *context, const void *buffer, size_t count)
{
	struct gen *g = (struct gen *)(uintptr_t)buffer;

	(void)context;
	g->n_start++;
	g->n_bad += count != g->len;
	return g;
}

static void *
gen_start_unpack(void *context, void *buffer, size_t count)
{
	return gen_start_pack(context, buffer, count);
}

static size_t
gen_packed_size(void *state)
{
	return ((struct gen *)state)->len;
}

static size_t
gen_pack(void *state, size_t offset, void *dest, size_t max_length)
{
	struct gen *g = state;
	size_t n = max_length < g->len - offset ? max_length : g->len - offset, i;

	g->n_bad += offset > g->len;
	/* as malloc() gives it; UCX promises nothing */
	g->n_bad += !util_on_ucx && offset == 0 && (uintptr_t)dest % alignof(max_align_t) != 0;
	if (offset + n < g->len)
		n -= n < (offset + n) % gen_elem ? n : (offset + n) % gen_elem;
	for (i = 0; i < n; i++)
		((uint8_t *)dest)[i] = g->mem[2 * (offset + i)];
	return n;
}

static ucs_status_t
gen_unpack(void *state, size_t offset, const void *src, size_t length)
{
	struct gen *g = state;
	size_t i;

	if (offset + length > g->len)
		return UCS_ERR_MESSAGE_TRUNCATED;
	if (offset % gen_elem != 0 || (offset + length < g->len && (offset + length) % gen_elem != 0))
		return UCS_ERR_INVALID_PARAM;
	for (i = 0; i < length; i++)
		g->mem[2 * (offset + i)] = ((const uint8_t *)src)[i];
	g->unpacked += length;
	return UCS_OK;
}

static void
gen_finish(void *state)
{
	((struct gen *)state)->n_finish++;
}

static void
gen_open(struct gen *g, size_t len)
{
	memset(g, 0, sizeof(*g));
	g->mem = malloc(2 * len + 1);
	memset(g->mem, 0xee, 2 * len + 1);
	g->len = len;
}

static bool
gen_is(const struct gen *g, const uint8_t *want)
{
	size_t i;

	for (i = 0; i < g->len; i++)
		if (g->mem[2 * i] != want[i] || g->mem[2 * i + 1] != 0xee)
			return false;
	return true;
}

static ucp_datatype_t
gen_type(void)
{
	static const ucp_generic_dt_ops_t ops = {
		.start_pack = gen_start_pack,
		.start_unpack = gen_start_unpack,
		.packed_size = gen_packed_size,
		.pack = gen_pack,
		.unpack = gen_unpack,
		.finish = gen_finish,
	};
	ucp_datatype_t type;

	UTIL_OK(ucp_dt_create_generic(&ops, NULL, &type));
	return type;
}

enum kind { CONTIG, IOV, GENERIC };

/* One message with its own kind of memory on each side. */
static void
mixed(struct pair *p, ucp_datatype_t type, enum kind out_kind, enum kind in_kind, size_t len,
	bool expected)
{
	uint8_t *flat = util_guarded(len), *in = util_guarded(len);
	ucp_request_param_t sp, rp;
	struct gen gout, gin;
	struct iov iout, iin;
	ucp_tag_recv_info_t info;
	ucs_status_t st;
	void *sreq = NULL, *rreq = NULL;
	const void *sbuf;
	void *rbuf;
	size_t i, sn, rn;
	int step;

	util_fill(flat, len, len);
	gen_open(&gout, len);
	gen_open(&gin, len);
	iov_open(&iout, len);
	iov_open(&iin, len);
	for (i = 0; i < len; i++)
		gout.mem[2 * i] = flat[i];
	iov_fill(&iout, flat);
	memset(&sp, 0xa5, sizeof(sp));
	sp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	rp = sp;
	sp.datatype = out_kind == IOV ? ucp_dt_make_iov() : out_kind == GENERIC ? type :
		ucp_dt_make_contig(1);
	rp.datatype = in_kind == IOV ? ucp_dt_make_iov() : in_kind == GENERIC ? type :
		ucp_dt_make_contig(1);
	sbuf = out_kind == IOV ? (void *)iout.v : out_kind == GENERIC ? (void *)&gout : flat;
	rbuf = in_kind == IOV ? (void *)iin.v : in_kind == GENERIC ? (void *)&gin : in;
	sn = out_kind == IOV ? N_IOV : len;
	rn = in_kind == IOV ? N_IOV : len;
	for (step = 0; step < 2; step++) {
		if (step == (int)!expected) {
			if (!expected)
				CU_ASSERT(UTIL_UNTIL(p, ucp_tag_probe_nb(p->n[1].w, 1, UTIL_ALL_BITS, 0,
					&info) != NULL));
			rreq = ucp_tag_recv_nbx(p->n[1].w, rbuf, rn, 1, UTIL_ALL_BITS, &rp);
		} else {
			sreq = ucp_tag_send_nbx(p->n[0].ep, sbuf, sn, 1, &sp);
		}
	}
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(sreq));
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(rreq));
	memset(&info, 0, sizeof(info));
	CU_ASSERT_FATAL(UTIL_UNTIL(p, (st = ucp_tag_recv_request_test(rreq, &info)) !=
		UCS_INPROGRESS));
	CU_ASSERT_EQUAL(st, UCS_OK);
	CU_ASSERT_EQUAL(info.length, len);
	CU_ASSERT_FATAL(UTIL_UNTIL(p, ucp_request_is_completed(sreq)));
	CU_ASSERT_EQUAL(ucp_request_check_status(sreq), UCS_OK);
	ucp_request_free(sreq);
	ucp_request_free(rreq);
	if (in_kind == IOV)
		CU_ASSERT(iov_is(&iin, flat));
	if (in_kind == GENERIC) {
		CU_ASSERT(gen_is(&gin, flat));
		CU_ASSERT_EQUAL(gin.unpacked, len);
		CU_ASSERT_EQUAL(gin.n_start, 1);
		CU_ASSERT_EQUAL(gin.n_finish, 1);
		CU_ASSERT_EQUAL(gin.n_bad, 0);
	}
	if (in_kind == CONTIG)
		CU_ASSERT_EQUAL(memcmp(in, flat, len), 0);
	CU_ASSERT(util_guards_ok(in, len));
	if (out_kind == GENERIC) {
		CU_ASSERT_EQUAL(gout.n_start, 1);
		CU_ASSERT_EQUAL(gout.n_finish, 1);
		CU_ASSERT_EQUAL(gout.n_bad, 0);
	}
	free(gout.mem);
	free(gin.mem);
	iov_close(&iout);
	iov_close(&iin);
	util_guarded_free(flat);
	util_guarded_free(in);
}

static void
all_lengths(enum kind out_kind, enum kind in_kind)
{
	ucp_datatype_t type = gen_type();
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N_SIZES; i++) {
		mixed(&p, type, out_kind, in_kind, sizes[i], true);
		mixed(&p, type, out_kind, in_kind, sizes[i], false);
	}
	util_pair_close(&p);
	ucp_dt_destroy(type);
}

static void
iov_is_gathered_into_one_buffer(void)
{
	all_lengths(IOV, CONTIG);
}

static void
one_buffer_is_scattered_into_iov(void)
{
	all_lengths(CONTIG, IOV);
}

static void
iov_is_received_into_iov(void)
{
	all_lengths(IOV, IOV);
}

static void
sent_nothing(void *request, ucs_status_t status)
{
	(void)request;
	CU_ASSERT_EQUAL(status, UCS_OK);
}

/* Of one tag; the sender makes no progress until all are posted: room that comes is of those that wait. */
static void
iovs_of_few_bytes_arrive_in_the_order_sent(void)
{
	static const size_t lens[] = {0, 1, 100, 1023, 1024, 1025, 1400, 3000};
	enum { DEEP = 400, N_LENS = sizeof(lens) / sizeof(lens[0]) };
	ucp_request_param_t sp = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.datatype = ucp_dt_make_iov(), .memory_type = UCS_MEMORY_TYPE_HOST};
	static uint8_t out[DEEP][3000], in[3000];
	ucp_request_param_t rp = {.op_attr_mask = 0};
	static ucp_dt_iov_t v[DEEP][3];
	static void *req[DEEP];
	struct op first, got;
	unsigned i, n_late = 0;
	struct pair p;
	void *recv;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	util_send(&first, p.n[0].ep, in, 8, 7, UTIL_NBX); /* connects */
	util_recv(&got, p.n[1].w, in, 8, 7, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&first) && util_done(&got)));
	util_free(&first);
	util_free(&got);
	for (i = 0; i < DEEP; i++) {
		size_t len = lens[i % N_LENS];

		v[i][0] = (ucp_dt_iov_t){NULL, 0};
		v[i][1] = (ucp_dt_iov_t){out[i], len / 3};
		v[i][2] = (ucp_dt_iov_t){out[i] + len / 3, len - len / 3};
		util_fill(out[i], len, i);
		req[i] = i % 3 == 0 ? ucp_tag_send_nb(p.n[0].ep, v[i], 3, ucp_dt_make_iov(), 7, sent_nothing)
				    : ucp_tag_send_nbx(p.n[0].ep, v[i], 3, 7, &sp);
		CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(req[i]));
		n_late += req[i] != NULL;
		if (req[i] == NULL) { /* all is ours again */
			memset(out[i], 0xee, len);
			memset(v[i], 0, sizeof(v[i]));
		}
		if (i % 150 == 149)
			ucp_worker_progress(p.n[1].w);
	}
	CU_ASSERT(n_late > 0);
	CU_ASSERT(n_late < DEEP || getenv("PLX_REACTOR") != NULL);
	for (i = 0; i < DEEP; i++) {
		size_t len = lens[i % N_LENS];

		memset(in, 0, sizeof(in));
		recv = ucp_tag_recv_nbx(p.n[1].w, in, sizeof(in), 7, UTIL_ALL_BITS, &rp);
		CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(recv));
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, recv == NULL || ucp_request_is_completed(recv)));
		if (recv != NULL)
			ucp_request_free(recv);
		CU_ASSERT(util_check(in, len, i));
		CU_ASSERT(len == sizeof(in) || in[len] == 0);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, req[i] == NULL || ucp_request_is_completed(req[i])));
		if (req[i] != NULL)
			ucp_request_free(req[i]);
	}
	util_pair_close(&p);
}

static void
generic_type_is_packed_and_finished_once(void)
{
	all_lengths(GENERIC, CONTIG);
}

static void
generic_type_is_unpacked_and_finished_once(void)
{
	all_lengths(CONTIG, GENERIC);
}

static void
generic_type_is_received_into_generic_type(void)
{
	all_lengths(GENERIC, GENERIC);
	all_lengths(IOV, GENERIC);
}

static void
generic_type_of_whole_elements_is_never_cut_in_one(void)
{
	gen_elem = 24;
	all_lengths(GENERIC, GENERIC);
	all_lengths(CONTIG, GENERIC);
	all_lengths(GENERIC, CONTIG);
	gen_elem = 1;
}

static void
truncated_or_cancelled_generic_receive_is_finished_once(void)
{
	ucp_datatype_t type = gen_type();
	ucp_request_param_t rp = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.datatype = type,
	};
	static uint8_t out[MIB];
	struct op send;
	struct gen gin;
	struct pair p;
	unsigned i;
	void *req;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 2; i < N_FEW; i++) {
		gen_open(&gin, 100);
		req = ucp_tag_recv_nbx(p.n[1].w, &gin, 100, 1, UTIL_ALL_BITS, &rp);
		CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
		util_send(&send, p.n[0].ep, out, few_sizes[i], 1, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && ucp_request_is_completed(req)));
		CU_ASSERT_EQUAL(ucp_request_check_status(req), UCS_ERR_MESSAGE_TRUNCATED);
		CU_ASSERT_EQUAL(gin.n_finish, 1);
		util_free(&send);
		ucp_request_free(req);
		free(gin.mem);
	}
	gen_open(&gin, 100);
	req = ucp_tag_recv_nbx(p.n[1].w, &gin, 100, 1, UTIL_ALL_BITS, &rp);
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
	ucp_request_cancel(p.n[1].w, req);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_request_is_completed(req)));
	CU_ASSERT_EQUAL(gin.n_finish, 1);
	ucp_request_free(req);
	free(gin.mem);
	util_pair_close(&p);
	ucp_dt_destroy(type);
}

const struct api_test api_dt_tests[] = {
	T(iov_is_gathered_into_one_buffer),
	T(one_buffer_is_scattered_into_iov),
	T(iov_is_received_into_iov),
	T(iovs_of_few_bytes_arrive_in_the_order_sent),
	T(generic_type_is_packed_and_finished_once),
	T(generic_type_is_unpacked_and_finished_once),
	T(generic_type_is_received_into_generic_type),
	T(generic_type_of_whole_elements_is_never_cut_in_one),
	T_NOT_UCX(truncated_or_cancelled_generic_receive_is_finished_once,
		"a cancelled receive is never finished"),
	{NULL, NULL, NULL, NULL},
};

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_am.c - active messages: handlers, headers, kept and announced data, answers
 */
#include <pthread.h>

#include "ucp_api_test.h"

enum { ID = 77, ID_OLD = 65535, N_LOG = 4096 };

/* What the handler of a node is to do, and what it saw. */
struct am {
	struct pair *p;
	int node;
	enum { AM_COPY, AM_KEEP, AM_DROP, AM_REFUSE, AM_FETCH, AM_FETCH_NOW } what;
	ucp_datatype_t type; /* 0: contiguous */
	void *into;
	size_t into_count;
	unsigned places; /* at into, of place_len bytes each: of messages that are fetched at once; 0: one */
	size_t place_len;
	unsigned n;
	int n_bad;
	size_t hdr_len, len;
	uint64_t attr;
	uint8_t hdr[8192];
	uint8_t *data;
	void *kept; /* data, while it is the application's */
	ucp_ep_h reply;
	void *req;
	int n_fetched;
	ucs_status_t fetch_status;
	size_t fetch_len;
	pthread_t thread;
	uint32_t log[N_LOG];
};

static struct am am[2];

static void
fetched_cb(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct am *a = user_data;

	(void)request;
	a->n_fetched++;
	a->fetch_status = status;
	a->fetch_len = length;
}

/* Of the message whose handler ran last. */
static void *
place(const struct am *a)
{
	return a->places == 0 ? a->into : (uint8_t *)a->into + a->n % a->places * a->place_len;
}

static void
fetch(struct am *a, void *data, bool no_imm)
{
	ucp_request_param_t param;
	size_t length = SIZE_MAX;
	void *ret;

	memset(&param, 0xa5, sizeof(param));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
		UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_RECV_INFO |
		(no_imm ? UCP_OP_ATTR_FLAG_NO_IMM_CMPL : 0);
	param.cb.recv_am = fetched_cb;
	param.user_data = a;
	param.datatype = a->type != 0 ? a->type : ucp_dt_make_contig(1);
	param.recv_info.length = &length;
	a->req = NULL;
	ret = ucp_am_recv_data_nbx(a->p->n[a->node].w, data, place(a), a->into_count, &param);
	if (UCS_PTR_IS_PTR(ret)) {
		a->req = ret;
	} else {
		a->n_bad += no_imm && !UCS_PTR_IS_ERR(ret);
		a->n_fetched++;
		a->fetch_status = UCS_PTR_STATUS(ret);
		a->fetch_len = length;
	}
}

/* Where the data is behind the header, and aligned, the bytes between are none of the sender's memory. */
static bool
gap_is_clear(const uint8_t *header, size_t len, const uint8_t *data)
{
	static const uint8_t zeros[8];
	size_t gap = -len & 7;

	return len == 0 || data != header + len + gap || memcmp(header + len, zeros, gap) == 0;
}

static ucs_status_t
handler(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	struct am *a = arg;
	bool rndv = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;

	a->thread = pthread_self();
	a->hdr_len = header_length;
	a->len = length;
	a->attr = param->recv_attr;
	a->n_bad += !rndv && !gap_is_clear(header, header_length, data);
	a->reply = param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP ? param->reply_ep : NULL;
	if (header_length > sizeof(a->hdr))
		a->n_bad++;
	else if (header_length != 0)
		memcpy(a->hdr, header, header_length);
	if (a->n < N_LOG && header_length >= sizeof(uint32_t))
		memcpy(&a->log[a->n], header, sizeof(uint32_t));
	a->n++;
	switch (a->what) {
	case AM_COPY:
		if (rndv) {
			a->into_count = length;
			fetch(a, data, true);
			if (a->req != NULL)
				ucp_request_release(a->req);
			a->req = NULL;
			return UCS_INPROGRESS;
		}
		if (a->into != NULL)
			memcpy(place(a), data, length);
		a->n_fetched++;
		return UCS_OK;
	case AM_KEEP:
		a->kept = data;
		if (rndv || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0)
			return UCS_INPROGRESS;
		a->n_bad++;
		return UCS_OK;
	case AM_FETCH_NOW:
		fetch(a, data, false);
		return UCS_OK;
	case AM_REFUSE:
		return UCS_ERR_REJECTED;
	default:
		return UCS_OK;
	}
}

static void
set_handler(struct pair *p, int node, unsigned id, unsigned flags, bool on)
{
	ucp_am_handler_param_t param;

	memset(&param, 0xa5, sizeof(param));
	param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
		UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
	param.id = id;
	param.cb = on ? handler : NULL;
	param.arg = &am[node];
	param.flags = flags;
	UTIL_OK(ucp_worker_set_am_recv_handler(p->n[node].w, &param));
}

static void
handlers_set(struct pair *p, unsigned flags)
{
	int i;

	memset(am, 0, sizeof(am));
	for (i = 0; i < 2; i++) {
		am[i].p = p;
		am[i].node = i;
		set_handler(p, i, ID, flags, true);
	}
}

static void
am_pair_open(struct pair *p, bool one_context, ucs_thread_mode_t mode, unsigned flags)
{
	util_pair_open(p, one_context, mode);
	handlers_set(p, flags);
}

static void
am_send(struct op *op, ucp_ep_h ep, unsigned id, const void *hdr, size_t hdr_len, const void *buf,
	size_t count, ucp_datatype_t type, uint32_t flags, uint32_t attr)
{
	ucp_request_param_t param;
	void *ret;

	memset(&param, 0xa5, sizeof(param));
	memset(op, 0, sizeof(*op));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
		UCP_OP_ATTR_FIELD_FLAGS | attr | (type != 0 ? UCP_OP_ATTR_FIELD_DATATYPE : 0);
	param.cb.send = util_sent;
	param.user_data = op;
	param.flags = flags;
	param.datatype = type;
	op->in_call = true;
	ret = ucp_am_send_nbx(ep, id, hdr, hdr_len, buf, count, &param);
	op->in_call = false;
	op->immediate = !UCS_PTR_IS_PTR(ret);
	if (op->immediate)
		op->status = UCS_PTR_STATUS(ret);
	else
		op->req = ret;
}

static void
one(struct pair *p, size_t hdr_len, size_t len, uint32_t flags)
{
	uint8_t *out = util_guarded(len), *in = util_guarded(len), hdr[4096];
	struct am *a = &am[1];
	unsigned n = a->n;
	struct op op;

	util_fill(out, len, len + hdr_len);
	util_fill(hdr, hdr_len, hdr_len);
	a->what = AM_COPY;
	a->into = in;
	a->n_fetched = 0;
	am_send(&op, p->n[0].ep, ID, hdr, hdr_len, out, len, 0, flags, 0);
	CU_ASSERT_EQUAL(op.n_inside, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&op) && a->n_fetched == 1));
	CU_ASSERT_EQUAL(op.status, UCS_OK);
	CU_ASSERT_EQUAL(a->n, n + 1);
	CU_ASSERT_EQUAL(a->len, len);
	CU_ASSERT_EQUAL(a->hdr_len, hdr_len);
	CU_ASSERT(util_check(a->hdr, hdr_len, hdr_len));
	CU_ASSERT(util_check(in, len, len + hdr_len));
	CU_ASSERT(util_guards_ok(in, len));
	CU_ASSERT_EQUAL(a->n_bad, 0);
	if (flags & UCP_AM_SEND_FLAG_RNDV && len > 0)
		CU_ASSERT((a->attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
	if (flags & UCP_AM_SEND_FLAG_EAGER)
		CU_ASSERT((a->attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0);
	util_free(&op);
	util_guarded_free(out);
	util_guarded_free(in);
}

static void
every_am_arrives_with_its_header(void)
{
	static const uint32_t ways[] = {0, UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV};
	static const size_t hdr_lens[] = {0, 1, 8, 100, 119, 120, 121, 128, 2000, 4096};
	struct pair p;
	size_t i, k, h;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	for (i = 0; i < N_SIZES; i++)
		for (k = 0; k < 3; k++)
			for (h = 0; h < sizeof(hdr_lens) / sizeof(hdr_lens[0]); h++)
				one(&p, hdr_lens[h], sizes[i], ways[k]);
	util_pair_close(&p);
}

/* The threshold is compared with header and data, and may be 0. */
static void
am_of_the_threshold_is_announced(void)
{
	static const struct {
		const char *threshold;
		size_t hdr_len, len;
		bool rndv;
	} cases[] = {
		{"128", 0, 127, false}, {"128", 0, 128, true}, {"128", 127, 0, false}, {"128", 126, 1, false},
		{"128", 127, 1, true}, {"128", 128, 0, true}, {"1", 0, 0, false}, {"1", 1, 0, true},
		{"0", 0, 0, true}, {"0", 0, 8, true}, {"inf", 100, 100000, false}, {"-1", 100, 100000, false},
	};
	struct pair p;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		util_pair_open_with(&p, "RNDV_THRESH", cases[i].threshold);
		handlers_set(&p, 0);
		one(&p, cases[i].hdr_len, cases[i].len, 0);
		CU_ASSERT_EQUAL((am[1].attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0, cases[i].rndv);
		util_pair_close(&p);
	}
}

static void
every_am_arrives_in_multi_mode(void)
{
	struct pair p;
	size_t i;

	am_pair_open(&p, false, UCS_THREAD_MODE_MULTI, UCP_AM_FLAG_PERSISTENT_DATA);
	for (i = 0; i < N_SIZES; i++)
		one(&p, 16, sizes[i], 0);
	util_pair_close(&p);
}

static void
am_of_one_ep_arrive_in_the_order_sent(void)
{
	enum { N = 600, DEEP = 32 };
	static uint8_t out[128 * KIB], in[DEEP][128 * KIB];
	static struct op op[DEEP];
	static uint32_t seq[N];
	struct pair p;
	unsigned i, first = 0;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	am[1].into = in;
	am[1].places = DEEP;
	am[1].place_len = sizeof(in[0]);
	for (i = 0; i < N; i++) {
		size_t len = few_sizes[rnd() % (N_FEW - 1)];

		if (i - first == DEEP) {
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op[first % DEEP])));
			util_free(&op[first++ % DEEP]);
		}
		seq[i] = i;
		am_send(&op[i % DEEP], p.n[0].ep, ID, &seq[i], sizeof(seq[i]), out, len, 0,
			rnd() % 4 == 0 ? UCP_AM_SEND_FLAG_RNDV : rnd() % 4 == 0 ?
			UCP_AM_SEND_FLAG_EAGER : 0, 0);
	}
	for (; first < N; first++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op[first % DEEP])));
		CU_ASSERT_EQUAL(op[first % DEEP].status, UCS_OK);
		util_free(&op[first % DEEP]);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n == N && am[1].n_fetched == N));
	for (i = 0; i < N; i++)
		if (am[1].log[i] != i)
			break;
	CU_ASSERT_EQUAL(i, N);
	util_pair_close(&p);
}

/*
 * The sender makes no progress until all are posted: when some wait, later ones may not use room that comes.
 * Without a header short ones go their own way; a header has the number of the message.
 */
static void
iovs_in_order(bool has_hdr)
{
	const size_t least = has_hdr ? 0 : 4; /* one that has neither would look like others */
	const size_t lens[] = {least, 1, 100, 1023, 1024, 1025, 1400, 3000};
	enum { DEEP = 400, N_LENS = sizeof(lens) / sizeof(lens[0]) };
	static uint8_t in[DEEP][3000], out[DEEP][3000];
	static ucp_dt_iov_t v[DEEP][3];
	static struct op op[DEEP];
	static uint32_t seq[DEEP];
	unsigned i, n_late = 0;
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	one(&p, 0, 8, 0); /* connects */
	am[1].n = 0;
	am[1].into = in;
	am[1].places = DEEP;
	am[1].place_len = sizeof(in[0]);
	for (i = 0; i < DEEP; i++) {
		size_t len = lens[i % N_LENS];

		seq[i] = i;
		v[i][0] = (ucp_dt_iov_t){out[i], len / 3};
		v[i][1] = (ucp_dt_iov_t){NULL, 0};
		v[i][2] = (ucp_dt_iov_t){out[i] + len / 3, len - len / 3};
		util_fill(out[i], len, i);
		am_send(&op[i], p.n[0].ep, ID, &seq[i], has_hdr ? sizeof(seq[i]) : 0, v[i], 3, ucp_dt_make_iov(),
			i % 2 == 0 ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER, 0);
		CU_ASSERT_EQUAL(op[i].status, UCS_OK);
		n_late += !op[i].immediate;
		if (op[i].immediate) { /* all is ours again */
			memset(out[i], 0xee, len);
			memset(v[i], 0, sizeof(v[i]));
			seq[i] = UINT32_MAX;
		}
		if (i % 150 == 149)
			ucp_worker_progress(p.n[1].w);
	}
	CU_ASSERT(n_late > 0);
	CU_ASSERT(n_late < DEEP || getenv("PLX_REACTOR") != NULL);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n == DEEP));
	for (i = 0; i < DEEP; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, op[i].immediate || util_done(&op[i])));
		CU_ASSERT_EQUAL(op[i].status, UCS_OK);
		util_free(&op[i]);
		if (has_hdr)
			CU_ASSERT_EQUAL(am[1].log[i], i);
		CU_ASSERT(util_check(in[(i + 1) % DEEP], lens[i % N_LENS], i)); /* counted before it is placed */
	}
	CU_ASSERT_EQUAL(am[1].n_bad, 0);
	util_pair_close(&p);
}

static void
iovs_of_few_bytes_arrive_in_the_order_sent(void)
{
	iovs_in_order(true);
}

static void
iovs_without_a_header_arrive_in_the_order_sent(void)
{
	iovs_in_order(false);
}

static void
forced_immediate_am_sends_or_leaves_no_trace(void)
{
	uint8_t out[40];
	ucp_dt_iov_t iov = {.buffer = out, .length = sizeof(out)};
	unsigned n_sent = 0, n_bad = 0;
	uint32_t i;
	struct pair p;
	struct op op;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	one(&p, 0, 8, 0); /* connects */
	am[1].n = 0;
	util_fill(out, sizeof(out), 3);
	am[1].into = NULL;
	for (i = 0; i < N_LOG; i++) {
		bool whole = i % 2 == 0;
		uint32_t seq = n_sent;

		am_send(&op, p.n[0].ep, ID, &seq, sizeof(seq), whole ? out : (void *)&iov,
			whole ? sizeof(out) : 1, whole ? 0 : ucp_dt_make_iov(), 0,
			UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
		n_sent += op.immediate && op.status == UCS_OK;
		n_bad += !op.immediate || (op.status != UCS_OK && op.status != UCS_ERR_NO_RESOURCE);
		if (i % 16 == 15)
			util_pair_turn(&p);
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	CU_ASSERT(n_sent > 1);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n == n_sent));
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT_EQUAL(am[1].n, n_sent);
	for (i = 0; i < n_sent && am[1].log[i] == i; i++)
		;
	CU_ASSERT_EQUAL(i, n_sent);
	/* What can't end at once does not begin. */
	am_send(&op, p.n[0].ep, ID, NULL, 0, out, 8, 0, UCP_AM_SEND_FLAG_RNDV,
		UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
	CU_ASSERT(op.immediate);
	CU_ASSERT_EQUAL(op.status, UCS_ERR_NO_RESOURCE);
	util_pair_close(&p);
}

static void
kept_am_data_stays_until_it_is_released(void)
{
	static uint8_t out[32 * KIB];
	static const size_t lens[] = {8, 100, 5000, 32 * KIB};
	void *kept[8];
	struct pair p;
	struct op op;
	int i;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, UCP_AM_FLAG_PERSISTENT_DATA);
	am[1].what = AM_KEEP;
	for (i = 0; i < 8; i++) {
		util_fill(out, lens[i % 4], i);
		am_send(&op, p.n[0].ep, ID, NULL, 0, out, lens[i % 4], 0, UCP_AM_SEND_FLAG_EAGER, 0);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[1].n == (unsigned)i + 1));
		util_free(&op);
		CU_ASSERT((am[1].attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0);
		kept[i] = am[1].kept;
	}
	for (i = 0; i < 8; i++)
		CU_ASSERT(util_check(kept[i], lens[i % 4], i));
	for (i = 7; i >= 0; i -= 2)
		ucp_am_data_release(p.n[1].w, kept[i]);
	for (i = 0; i < 8; i += 2) {
		CU_ASSERT(util_check(kept[i], lens[i % 4], i));
		ucp_am_data_release(p.n[1].w, kept[i]);
	}
	CU_ASSERT_EQUAL(am[1].n_bad, 0);
	util_pair_close(&p);
}

static void
kept_am_data_can_be_received_in_the_handler_and_later(void)
{
	static uint8_t out[20000], in[20000];
	struct pair p;
	struct op op;
	int how;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, UCP_AM_FLAG_PERSISTENT_DATA);
	util_fill(out, sizeof(out), 5);
	for (how = 0; how < 3; how++) {
		memset(in, 0, sizeof(in));
		am[1].what = how == 0 ? AM_FETCH_NOW : AM_KEEP;
		am[1].into = in;
		am[1].into_count = how == 2 ? 100 : sizeof(in);
		am[1].n = am[1].n_fetched = 0;
		am_send(&op, p.n[0].ep, ID, NULL, 0, out, sizeof(out), 0, UCP_AM_SEND_FLAG_EAGER, 0);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[1].n == 1));
		util_free(&op);
		if (how != 0)
			fetch(&am[1], am[1].kept, how == 1);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n_fetched == 1));
		CU_ASSERT_EQUAL(am[1].fetch_status, how == 2 ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK);
		if (how != 2) {
			CU_ASSERT_EQUAL(am[1].fetch_len, sizeof(out));
			CU_ASSERT(util_check(in, sizeof(in), 5));
		}
		if (am[1].req != NULL)
			ucp_request_free(am[1].req);
	}
	CU_ASSERT_EQUAL(am[1].n_bad, 0);
	util_pair_close(&p);
}

static void
announced_am(struct pair *p, int what, bool later, size_t into_count, ucs_status_t sender,
	ucs_status_t receiver)
{
	static uint8_t out[200000], in[200000];
	struct am *a = &am[1];
	struct op op;

	util_fill(out, sizeof(out), what);
	memset(in, 0, sizeof(in));
	a->what = what;
	a->into = in;
	a->into_count = into_count;
	a->n = a->n_fetched = 0;
	a->req = NULL;
	am_send(&op, p->n[0].ep, ID, "head", 4, out, sizeof(out), 0, UCP_AM_SEND_FLAG_RNDV, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(p, a->n == 1));
	CU_ASSERT((a->attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
	if (what == AM_KEEP) {
		UTIL_FOR_MS(p, 5);
		CU_ASSERT(!util_done(&op));
		if (later)
			fetch(a, a->kept, true);
		else
			ucp_am_data_release(p->n[1].w, a->kept);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&op)));
	CU_ASSERT_EQUAL(op.status, sender);
	util_free(&op);
	if (what != AM_FETCH_NOW && !later)
		return;
	CU_ASSERT_FATAL(UTIL_UNTIL(p, a->n_fetched == 1));
	CU_ASSERT_EQUAL(a->fetch_status, receiver);
	if (receiver == UCS_OK && into_count != 0) {
		CU_ASSERT_EQUAL(a->fetch_len, sizeof(out));
		CU_ASSERT(util_check(in, sizeof(in), what));
	}
	if (a->req != NULL)
		ucp_request_free(a->req);
}

static void
announced_am_is_fetched_in_the_handler_and_later(void)
{
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	announced_am(&p, AM_FETCH_NOW, false, 200000, UCS_OK, UCS_OK);
	announced_am(&p, AM_KEEP, true, 200000, UCS_OK, UCS_OK);
	util_pair_close(&p);
}

static void
announced_am_that_nobody_fetches_is_sent(void)
{
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	announced_am(&p, AM_DROP, false, 0, UCS_OK, UCS_OK);
	announced_am(&p, AM_KEEP, false, 0, UCS_OK, UCS_OK);
	util_pair_close(&p);
}

static void
announced_am_fetched_with_no_room_is_sent(void)
{
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	announced_am(&p, AM_KEEP, true, 0, UCS_OK, UCS_OK);
	announced_am(&p, AM_KEEP, true, 100, UCS_OK, UCS_ERR_MESSAGE_TRUNCATED);
	util_pair_close(&p);
}

static void
refusal_of_an_announced_am_reaches_its_sender(void)
{
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	announced_am(&p, AM_REFUSE, false, 0, UCS_ERR_REJECTED, UCS_OK);
	util_pair_close(&p);
}

static void
am_without_a_handler_is_dropped_and_sent(void)
{
	static uint8_t out[100000];
	struct pair p;
	struct op op;
	size_t i;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	set_handler(&p, 1, ID, 0, false);
	for (i = 0; i < N_FEW - 1; i++) {
		am_send(&op, p.n[0].ep, i % 2 ? ID : 4000, NULL, 0, out, few_sizes[i], 0, 0, 0);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op)));
		CU_ASSERT_EQUAL(op.status, UCS_OK);
		util_free(&op);
	}
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT_EQUAL(am[1].n, 0);
	util_pair_close(&p);
}

static void
answers_go_back_to_the_handle_that_asked(void)
{
	ucp_ep_h ep[3], reply[3];
	struct pair p;
	struct op op;
	int i, round;

	am_pair_open(&p, false, UCS_THREAD_MODE_SINGLE, 0);
	ep[0] = p.n[0].ep;
	ep[1] = util_ep(p.n[0].w, p.n[1].addr);
	ep[2] = util_ep(p.n[0].w, p.n[1].addr);
	am[1].what = am[0].what = AM_DROP;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 3; i++) {
			am[1].n = am[0].n = 0;
			am_send(&op, ep[i], ID, NULL, 0, "ask", 3, 0, UCP_AM_SEND_FLAG_REPLY |
				(round ? UCP_AM_SEND_FLAG_RNDV : 0), 0);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[1].n == 1));
			util_free(&op);
			CU_ASSERT_PTR_NOT_NULL_FATAL(am[1].reply);
			if (round == 0)
				reply[i] = am[1].reply;
			CU_ASSERT_PTR_EQUAL(reply[i], am[1].reply);
			am_send(&op, am[1].reply, ID, NULL, 0, "yes", 3, 0, UCP_AM_SEND_FLAG_REPLY, 0);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[0].n == 1));
			util_free(&op);
			CU_ASSERT_PTR_EQUAL(am[0].reply, ep[i]);
		}
	}
	am[1].n = 0;
	am_send(&op, ep[0], ID, NULL, 0, "tell", 4, 0, 0, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[1].n == 1));
	util_free(&op);
	CU_ASSERT_PTR_NULL(am[1].reply);
	CU_ASSERT(util_ep_close(&p, reply[1], 0));
	CU_ASSERT(util_ep_close(&p, ep[1], 0));
	CU_ASSERT(util_ep_close(&p, ep[2], 0));
	util_pair_close(&p);
}

static void
crossed_eps_of_one_worker_answer_each_other(void)
{
	ucp_ep_params_t params;
	ucp_ep_h a, b, self;
	struct pair p;
	struct op op;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	am[0].what = AM_DROP;
	self = util_ep(p.n[0].w, p.n[0].addr);
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_FLAGS;
	params.address = p.n[0].addr;
	params.flags = UCP_EP_PARAMS_FLAGS_NO_LOOPBACK;
	UTIL_OK(ucp_ep_create(p.n[0].w, &params, &a));
	UTIL_OK(ucp_ep_create(p.n[0].w, &params, &b));
	am_send(&op, a, ID, NULL, 0, "x", 1, 0, UCP_AM_SEND_FLAG_REPLY, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[0].n == 1));
	util_free(&op);
	CU_ASSERT_PTR_EQUAL(am[0].reply, b);
	am_send(&op, b, ID, NULL, 0, "x", 1, 0, UCP_AM_SEND_FLAG_REPLY, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[0].n == 2));
	util_free(&op);
	CU_ASSERT_PTR_EQUAL(am[0].reply, a);
	am_send(&op, self, ID, NULL, 0, "x", 1, 0, UCP_AM_SEND_FLAG_REPLY, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[0].n == 3));
	util_free(&op);
	CU_ASSERT_PTR_EQUAL(am[0].reply, self);
	CU_ASSERT(util_ep_close(&p, a, 0));
	CU_ASSERT(util_ep_close(&p, b, 0));
	CU_ASSERT(util_ep_close(&p, self, 0));
	util_pair_close(&p);
}

struct old {
	int n, n_bad;
	size_t len;
	ucp_ep_h reply;
	void *kept;
	uint8_t in[100000];
};

static ucs_status_t
old_handler(void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags)
{
	struct old *o = arg;

	o->n++;
	o->len = length;
	o->reply = reply_ep;
	memcpy(o->in, data, length);
	if ((flags & UCP_CB_PARAM_FLAG_DATA) == 0)
		return UCS_OK;
	o->kept = data;
	return UCS_INPROGRESS;
}

static void
old_am_calls_send_any_length_eagerly(void)
{
	static struct old o;
	static uint8_t out[100000];
	struct pair p;
	size_t i;
	int k;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	memset(&o, 0, sizeof(o));
	for (k = 0; k < 2; k++) {
		UTIL_OK(ucp_worker_set_am_handler(p.n[1].w, ID_OLD, old_handler, &o,
			k == 0 ? UCP_AM_FLAG_WHOLE_MSG : UCP_AM_FLAG_PERSISTENT_DATA));
		for (i = 0; i < N_FEW - 1; i++) {
			void *req;

			util_fill(out, few_sizes[i], i);
			o.n = 0;
			o.kept = NULL;
			req = ucp_am_send_nb(p.n[0].ep, ID_OLD, out, few_sizes[i],
				ucp_dt_make_contig(1), NULL, i % 2 ? UCP_AM_SEND_REPLY : 0);
			CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(req));
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, o.n == 1 &&
				(req == NULL || ucp_request_is_completed(req))));
			if (req != NULL)
				ucp_request_free(req);
			CU_ASSERT_EQUAL(o.len, few_sizes[i]);
			CU_ASSERT(util_check(o.in, o.len, i));
			CU_ASSERT_EQUAL(o.reply != NULL, i % 2 == 1);
			CU_ASSERT(k == 0 || o.kept != NULL);
			if (o.kept != NULL) {
				CU_ASSERT(util_check(o.kept, o.len, i));
				ucp_am_data_release(p.n[1].w, o.kept);
			}
		}
	}
	UTIL_OK(ucp_worker_set_am_handler(p.n[1].w, ID_OLD, NULL, NULL, 0));
	util_pair_close(&p);
}

/* Send elements or an iov by the older form, and check what arrives. */
static void
old_send(struct pair *p, struct old *o, const void *buf, size_t count, ucp_datatype_t type, size_t len, unsigned seed)
{
	void *req;

	o->n = 0;
	req = ucp_am_send_nb(p->n[0].ep, ID_OLD, buf, count, type, NULL, 0);
	CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(req));
	CU_ASSERT_FATAL(UTIL_UNTIL(p, o->n == 1 && (req == NULL || ucp_request_is_completed(req))));
	if (req != NULL)
		ucp_request_free(req);
	CU_ASSERT_EQUAL(o->len, len);
	CU_ASSERT(util_check(o->in, len, seed));
}

static void
old_am_calls_take_elements_and_iovs(void)
{
	static const size_t lens[] = {0, 1, 8, 100, 1000, 1960, 1961, 2048, 2049, 3000, 5000, 40000};
	static struct old o;
	static uint8_t out[100000];
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	memset(&o, 0, sizeof(o));
	UTIL_OK(ucp_worker_set_am_handler(p.n[1].w, ID_OLD, old_handler, &o, UCP_AM_FLAG_WHOLE_MSG));
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		ucp_dt_iov_t v[] = {{out, 88}, {NULL, 0}, {out + 88, lens[i]}};

		util_fill(out, sizeof(out), i);
		old_send(&p, &o, out, lens[i], ucp_dt_make_contig(2), 2 * lens[i], i);
		old_send(&p, &o, v, 3, UCP_DATATYPE_IOV, 88 + lens[i], i);
		old_send(&p, &o, v, 1, UCP_DATATYPE_IOV, 88, i);
	}
	UTIL_OK(ucp_worker_set_am_handler(p.n[1].w, ID_OLD, NULL, NULL, 0));
	util_pair_close(&p);
}

static void
old_am_calls_refuse_what_they_cannot_send(void)
{
	static uint8_t out[16];
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	CU_ASSERT_EQUAL(UCS_PTR_STATUS(ucp_am_send_nb(p.n[0].ep, ID_OLD, out, (SIZE_MAX >> 4) + 2,
		ucp_dt_make_contig(16), NULL, 0)), UCS_ERR_INVALID_PARAM); /* 16 bytes, if it wraps */
	CU_ASSERT_EQUAL(UCS_PTR_STATUS(ucp_am_send_nb(p.n[0].ep, ID_OLD, out, 8, ucp_dt_make_contig(1), NULL,
		UCP_AM_SEND_FLAG_RNDV)), UCS_ERR_INVALID_PARAM);
	util_pair_close(&p);
}

static void
copied_header_is_free_when_the_call_returns(void)
{
	static uint8_t out[10000], in[400][10000];
	uint8_t hdr[64];
	struct op op[400];
	struct pair p;
	unsigned i;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	am[1].into = in;
	am[1].places = 400;
	am[1].place_len = sizeof(in[0]);
	for (i = 0; i < 400; i++) { /* more than the device takes at once */
		memset(hdr, 0, sizeof(hdr));
		memcpy(hdr, &i, sizeof(i));
		am_send(&op[i], p.n[0].ep, ID, hdr, sizeof(hdr), out, i % 7 == 0 ? sizeof(out) : 1000, 0,
			UCP_AM_SEND_FLAG_COPY_HEADER, 0);
		memset(hdr, 0xff, sizeof(hdr));
	}
	for (i = 0; i < 400; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op[i])));
		util_free(&op[i]);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n == 400));
	for (i = 0; i < 400 && am[1].log[i] == i;)
		i++;
	CU_ASSERT_EQUAL(i, 400);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n_fetched == 400));
	util_pair_close(&p);
}

static void
am_that_makes_no_sense_is_refused(void)
{
	static uint8_t hdr[8192];
	ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
	struct pair p;
	struct op op;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	UTIL_OK(ucp_worker_query(p.n[0].w, &attr));
	CU_ASSERT(attr.max_am_header >= 4096 && attr.max_am_header < sizeof(hdr));
	am_send(&op, p.n[0].ep, ID, hdr, attr.max_am_header + 1, NULL, 0, 0, 0, 0);
	CU_ASSERT_EQUAL(op.status, UCS_ERR_INVALID_PARAM);
	am_send(&op, p.n[0].ep, ID, NULL, 0, hdr, 8, 0,
		UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_RNDV, 0);
	CU_ASSERT_EQUAL(op.status, UCS_ERR_INVALID_PARAM);
	am_send(&op, p.n[0].ep, 65536, NULL, 0, hdr, 8, 0, 0, 0);
	CU_ASSERT_EQUAL(op.status, UCS_ERR_INVALID_PARAM);
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT_EQUAL(am[1].n, 0);
	one(&p, 4096, 8, 0);
	util_pair_close(&p);
}

static void
am_data_is_aligned_as_the_worker_asked(void)
{
	static uint8_t out[100000];
	ucp_worker_params_t params;
	struct pair p;
	ucp_worker_h w;
	ucp_address_t *addr;
	ucp_ep_h ep;
	struct op op;
	size_t i, len;
	unsigned h;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
	params.am_alignment = 3;
	CU_ASSERT_EQUAL(ucp_worker_create(p.n[0].ctx, &params, &w), UCS_ERR_INVALID_PARAM);
	params.am_alignment = 64;
	UTIL_OK(ucp_worker_create(p.n[0].ctx, &params, &w));
	UTIL_OK(ucp_worker_get_address(w, &addr, &len));
	ep = util_ep(p.n[0].w, addr);
	ucp_worker_destroy(p.n[1].w);
	ucp_worker_release_address(w, p.n[1].addr);
	p.n[1].ep = NULL;
	p.n[1].w = w;
	p.n[1].addr = addr;
	set_handler(&p, 1, ID, 0, true);
	am[1].what = AM_DROP;
	for (i = 0; i < N_FEW - 1; i++) {
		for (h = 0; h < 20; h += 5) {
			am[1].n = 0;
			am[1].what = AM_KEEP;
			am[1].kept = NULL;
			am_send(&op, ep, ID, out, h, out, few_sizes[i], 0, UCP_AM_SEND_FLAG_EAGER, 0);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[1].n == 1));
			util_free(&op);
			CU_ASSERT_EQUAL((uintptr_t)am[1].kept % 64, 0);
			if (am[1].attr & UCP_AM_RECV_ATTR_FLAG_DATA)
				ucp_am_data_release(w, am[1].kept);
		}
	}
	CU_ASSERT(util_ep_close(&p, ep, 0));
	util_pair_close(&p);
}

/* Words with gaps, packed and unpacked by callbacks. */
struct gaps {
	uint32_t v[2 * 40000];
	size_t n; /* words */
	int n_finish;
};

static void *
gaps_start(void *context, void *buffer, size_t count)
{
	(void)context;
	((struct gaps *)buffer)->n = count;
	return buffer;
}

static void *
gaps_start_pack(void *context, const void *buffer, size_t count)
{
	return gaps_start(context, (void *)(uintptr_t)buffer, count);
}

static size_t
gaps_size(void *state)
{
	return ((struct gaps *)state)->n * 4;
}

static size_t
gaps_pack(void *state, size_t offset, void *dest, size_t max_length)
{
	struct gaps *g = state;
	size_t i;

	for (i = 0; i < max_length && offset + i < g->n * 4; i++)
		((uint8_t *)dest)[i] = ((uint8_t *)&g->v[(offset + i) / 4 * 2])[(offset + i) % 4];
	return i;
}

static ucs_status_t
gaps_unpack(void *state, size_t offset, const void *src, size_t length)
{
	struct gaps *g = state;
	size_t i;

	if (offset + length > g->n * 4)
		return UCS_ERR_MESSAGE_TRUNCATED;
	for (i = 0; i < length; i++)
		((uint8_t *)&g->v[(offset + i) / 4 * 2])[(offset + i) % 4] = ((const uint8_t *)src)[i];
	return UCS_OK;
}

static void
gaps_finish(void *state)
{
	((struct gaps *)state)->n_finish++;
}

static void
am_of_every_datatype_arrives(void)
{
	static const ucp_generic_dt_ops_t ops = {gaps_start_pack, gaps_start, gaps_size, gaps_pack,
		gaps_unpack, gaps_finish};
	static const size_t words[] = {0, 1, 20, 3000, 40000};
	static const uint32_t ways[] = {UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV};
	static struct gaps out, in;
	static uint8_t flat[160000];
	ucp_dt_iov_t v[3];
	ucp_datatype_t type;
	struct pair p;
	struct op op;
	size_t i, k, w, n;

	UTIL_OK(ucp_dt_create_generic(&ops, NULL, &type));
	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, UCP_AM_FLAG_PERSISTENT_DATA);
	for (i = 0; i < 5; i++) {
		for (w = 0; w < 2; w++) {
			for (k = 0; k < 2; k++) { /* generic to generic; iov to contiguous */
				n = words[i] * 4;
				memset(&in, 0, sizeof(in));
				out.n_finish = 0;
				util_fill(flat, n, i);
				out.n = words[i];
				gaps_unpack(&out, 0, flat, n);
				v[0] = (ucp_dt_iov_t){flat, n / 3};
				v[1] = (ucp_dt_iov_t){NULL, 0};
				v[2] = (ucp_dt_iov_t){flat + n / 3, n - n / 3};
				am[1].n = am[1].n_fetched = 0;
				am[1].what = AM_KEEP;
				am[1].type = k == 0 ? type : 0;
				am[1].into = &in;
				am[1].into_count = k == 0 ? words[i] : n;
				am_send(&op, p.n[0].ep, ID, "hdr", 3, k == 0 ? (void *)&out : (void *)v,
					k == 0 ? words[i] : 3, k == 0 ? type : ucp_dt_make_iov(),
					ways[w], 0);
				CU_ASSERT_FATAL(UTIL_UNTIL(&p, am[1].n == 1));
				fetch(&am[1], am[1].kept, true);
				CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&op) && am[1].n_fetched == 1));
				CU_ASSERT_EQUAL(am[1].fetch_status, UCS_OK);
				CU_ASSERT_EQUAL(am[1].fetch_len, n);
				CU_ASSERT_EQUAL(memcmp(am[1].hdr, "hdr", 3), 0);
				if (k == 0) {
					CU_ASSERT_EQUAL(memcmp(in.v, out.v, 2 * n), 0);
					CU_ASSERT_EQUAL(in.n_finish, 1);
					CU_ASSERT_EQUAL(out.n_finish, 1);
				} else {
					CU_ASSERT_EQUAL(memcmp(&in, flat, n), 0);
				}
				util_free(&op);
				ucp_request_free(am[1].req);
			}
		}
	}
	util_pair_close(&p);
	ucp_dt_destroy(type);
}

static void
am_handlers_run_in_the_thread_that_calls_progress(void)
{
	struct pair p;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	one(&p, 8, 8, 0);
	CU_ASSERT(pthread_equal(am[1].thread, pthread_self()));
	one(&p, 8, 100000, 0);
	CU_ASSERT(pthread_equal(am[1].thread, pthread_self()));
	util_pair_close(&p);
}

static void
am_sent_with_no_imm_calls_back_once(void)
{
	static uint8_t out[100000], in[100000];
	struct pair p;
	struct op op;
	size_t i;

	am_pair_open(&p, true, UCS_THREAD_MODE_SINGLE, 0);
	am[1].into = in;
	for (i = 0; i < N_FEW - 1; i++) {
		am_send(&op, p.n[0].ep, ID, NULL, 0, out, few_sizes[i], 0, 0,
			UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(op.req);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, op.n_calls == 1 && am[1].n_fetched == (int)i + 1));
		util_free(&op);
		CU_ASSERT_EQUAL(op.status, UCS_OK);
	}
	util_pair_close(&p);
}

const struct api_test api_am_tests[] = {
	T(every_am_arrives_with_its_header),
	T(every_am_arrives_in_multi_mode),
	T(am_of_the_threshold_is_announced),
	T_NOT_UCX(am_of_one_ep_arrive_in_the_order_sent, "only single eager ones keep it"),
	T(iovs_of_few_bytes_arrive_in_the_order_sent),
	T(iovs_without_a_header_arrive_in_the_order_sent),
	T(forced_immediate_am_sends_or_leaves_no_trace),
	T(kept_am_data_stays_until_it_is_released),
	T(kept_am_data_can_be_received_in_the_handler_and_later),
	T(announced_am_is_fetched_in_the_handler_and_later),
	T(announced_am_that_nobody_fetches_is_sent),
	T(announced_am_fetched_with_no_room_is_sent),
	T(refusal_of_an_announced_am_reaches_its_sender),
	T(am_without_a_handler_is_dropped_and_sent),
	T(answers_go_back_to_the_handle_that_asked),
	T(crossed_eps_of_one_worker_answer_each_other),
	T(old_am_calls_send_any_length_eagerly),
	T(old_am_calls_take_elements_and_iovs),
	T_NOT_UCX(old_am_calls_refuse_what_they_cannot_send, "1.13 lets the length wrap"),
	T_NOT_UCX(copied_header_is_free_when_the_call_returns, "no such flag in 1.13"),
	T_NOT_UCX(am_that_makes_no_sense_is_refused, "checked in some builds only"),
	T(am_data_is_aligned_as_the_worker_asked),
	T(am_of_every_datatype_arrives),
	T(am_handlers_run_in_the_thread_that_calls_progress),
	T(am_sent_with_no_imm_calls_back_once),
	{NULL, NULL, NULL, NULL},
};

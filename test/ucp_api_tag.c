/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_tag.c - messages of every length, truncation, probes and datatypes
 */
#include "ucp_api_test.h"

/* ---- every size, every way ---- */

static void
every_size_arrives(bool one_context, bool expected, enum util_how how)
{
	struct pair p;
	unsigned i;

	util_pair_open(&p, one_context, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N_SIZES; i++) {
		exchange(&p, 0, sizes[i], 0x100 + i, expected, how);
		exchange(&p, 1, sizes[i], 0x200 + i, expected, how);
	}
	CU_ASSERT(nothing_waits(&p, 0));
	CU_ASSERT(nothing_waits(&p, 1));
	util_pair_close(&p);
}

static void
expected_messages_of_every_size_arrive(void)
{
	every_size_arrives(true, true, UTIL_NBX);
	every_size_arrives(false, true, UTIL_NB);
}

static void
unexpected_messages_of_every_size_arrive(void)
{
	every_size_arrives(true, false, UTIL_NBX);
	every_size_arrives(false, false, UTIL_NB);
}

static void
messages_without_immediate_completion_arrive(void)
{
	every_size_arrives(false, true, UTIL_NO_IMM);
	every_size_arrives(true, false, UTIL_NO_IMM);
}

static void
fast_completion_messages_arrive(void)
{
	every_size_arrives(true, true, UTIL_FAST);
	every_size_arrives(false, false, UTIL_FAST);
}

/* What a truncated receive has to be, however it was posted. */
static void
truncate_one(struct pair *p, size_t len, size_t room, bool expected, enum util_how how)
{
	uint8_t *out = util_guarded(len), *in = util_guarded(room);
	struct op send, recv;
	ucp_tag_recv_info_t info;

	util_fill(out, len, len);
	if (expected)
		util_recv(&recv, p->n[1].w, in, room, 3, UTIL_ALL_BITS, how);
	util_send(&send, p->n[0].ep, out, len, 3, UTIL_NBX);
	if (!expected) {
		CU_ASSERT_FATAL(UTIL_UNTIL(p, ucp_tag_probe_nb(p->n[1].w, 3, UTIL_ALL_BITS, 0,
			&info) != NULL));
		util_recv(&recv, p->n[1].w, in, room, 3, UTIL_ALL_BITS, how);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&send) && util_done(&recv)));
	CU_ASSERT_EQUAL(recv.status == UCS_ERR_MESSAGE_TRUNCATED || recv.by_area, true);
	if (!recv.immediate) {
		ucp_tag_recv_info_t tested = {0};

		CU_ASSERT_EQUAL(ucp_tag_recv_request_test(recv.req, &tested),
			UCS_ERR_MESSAGE_TRUNCATED);
	}
	util_free(&send);
	util_free(&recv);
	CU_ASSERT_EQUAL(recv.status, UCS_ERR_MESSAGE_TRUNCATED);
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	if (!recv.immediate) {
		CU_ASSERT_EQUAL(recv.info.sender_tag, 3);
		CU_ASSERT_EQUAL(recv.info.length, len);
	}
	CU_ASSERT(util_guards_ok(in, room));
	util_guarded_free(out);
	util_guarded_free(in);
}

static void
truncation_is_reported_and_nothing_written_beyond(void)
{
	static const size_t cases[][2] = {{1, 0}, {100, 8}, {1000, 999}, {1000, 0}, {8000, 100},
		{16 * KIB, 1000}, {20000, 9000}, {32768, 32767}, {64 * KIB, 5000}, {100000, 99999},
		{1 * MIB, 64 * KIB}, {4 * MIB, 0}, {4 * MIB, 4 * MIB - 1}};
	static const enum util_how hows[] = {UTIL_NBX, UTIL_NO_IMM, UTIL_NB};
	struct pair p;
	unsigned i, k;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < 3; k++) {
			truncate_one(&p, cases[i][0], cases[i][1], true, hows[k]);
			truncate_one(&p, cases[i][0], cases[i][1], false, hows[k]);
		}
		exchange(&p, 0, 1000, 1, false, UTIL_NBX);
	}
	util_pair_close(&p);
}

static void
sync_send_waits_for_the_match(void)
{
	struct op send, recv;
	struct pair p;
	uint8_t *out, *in;
	unsigned i, k;
	bool removed;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < N_FEW; i++) {
			size_t len = few_sizes[i];
			ucp_tag_message_h msg = NULL;
			ucp_tag_recv_info_t info;

			out = util_guarded(len);
			in = util_guarded(len);
			util_fill(out, len, i);
			util_send(&send, p.n[0].ep, out, len, i, k ? UTIL_SYNC_NB : UTIL_SYNC);
			CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0,
				&info) != NULL));
			removed = i & 1;
			if (removed)
				msg = ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 1, &info);
			UTIL_FOR_MS(&p, 10);
			/* Arrived, perhaps taken out, but not matched. */
			CU_ASSERT_FALSE(util_done(&send));
			if (removed)
				util_msg_recv(&recv, p.n[1].w, in, len, msg, UTIL_NBX);
			else
				util_recv(&recv, p.n[1].w, in, len, i, UTIL_ALL_BITS, UTIL_NBX);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
			util_free(&send);
			util_free(&recv);
			CU_ASSERT_EQUAL(send.status, UCS_OK);
			CU_ASSERT(util_check(in, len, i));
			util_guarded_free(out);
			util_guarded_free(in);
			/* And with the receive there first. */
			exchange(&p, 0, len, i, true, k ? UTIL_SYNC_NB : UTIL_SYNC);
		}
	}
	util_pair_close(&p);
}

/* ---- probe ---- */

static void
probe_finds_without_and_takes_with_remove(void)
{
	static const enum util_how hows[] = {UTIL_NBX, UTIL_NB, UTIL_NO_IMM};
	static uint8_t out[4 * MIB + 3], in[4 * MIB + 3];
	ucp_tag_message_h msg;
	ucp_tag_recv_info_t info;
	struct op send, recv;
	struct pair p;
	unsigned i, k;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N_SIZES; i++) {
		size_t len = sizes[i];

		k = i % 3;
		util_fill(out, len, i);
		CU_ASSERT_PTR_NULL(ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 1, &info));
		util_send(&send, p.n[0].ep, out, len, i, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0,
			&info) != NULL));
		memset(&info, 0, sizeof(info));
		CU_ASSERT_PTR_NOT_NULL(ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 0, &info));
		CU_ASSERT_EQUAL(info.length, len);
		CU_ASSERT_EQUAL(info.sender_tag, i);
		CU_ASSERT_PTR_NULL(ucp_tag_probe_nb(p.n[1].w, i + 1, UTIL_ALL_BITS, 0, &info));
		msg = ucp_tag_probe_nb(p.n[1].w, i, UTIL_ALL_BITS, 1, &info);
		CU_ASSERT_PTR_NOT_NULL_FATAL(msg);
		CU_ASSERT_EQUAL(info.length, len);
		/* Out of sight now. */
		CU_ASSERT(nothing_waits(&p, 1));
		util_msg_recv(&recv, p.n[1].w, in, len, msg, hows[k]);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		util_free(&send);
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.status, UCS_OK);
		CU_ASSERT_EQUAL(recv.info.length, len);
		CU_ASSERT_EQUAL(recv.info.sender_tag, i);
		CU_ASSERT(util_check(in, len, i));
	}
	util_pair_close(&p);
}

static void
removed_message_can_be_truncated(void)
{
	static uint8_t out[MIB];
	ucp_tag_message_h msg = NULL;
	ucp_tag_recv_info_t info;
	struct op send, recv;
	struct pair p;
	uint8_t *in = util_guarded(7);
	unsigned i;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (i = 1; i < N_FEW; i++) {
		util_send(&send, p.n[0].ep, out, few_sizes[i], 1, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, (msg = ucp_tag_probe_nb(p.n[1].w, 1, UTIL_ALL_BITS, 1,
			&info)) != NULL));
		util_msg_recv(&recv, p.n[1].w, in, 7, msg, UTIL_NO_IMM);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		util_free(&send);
		util_free(&recv);
		CU_ASSERT_EQUAL(send.status, UCS_OK);
		CU_ASSERT_EQUAL(recv.status, UCS_ERR_MESSAGE_TRUNCATED);
		CU_ASSERT_EQUAL(recv.info.length, few_sizes[i]);
		CU_ASSERT(util_guards_ok(in, 7));
	}
	util_guarded_free(in);
	util_pair_close(&p);
}

static void
removed_messages_are_received_in_any_order(void)
{
	enum { N = 12 };
	static uint8_t out[N][100000], in[100000];
	ucp_tag_message_h msg[N];
	struct op send[N], recv;
	ucp_tag_recv_info_t info;
	struct pair p;
	int i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N; i++) {
		util_fill(out[i], few_sizes[i % 5], i);
		util_send(&send[i], p.n[0].ep, out[i], few_sizes[i % 5], 1, UTIL_NBX);
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, (msg[i] = ucp_tag_probe_nb(p.n[1].w, 0, 0, 1, &info)) !=
			NULL));
		CU_ASSERT_EQUAL(info.length, few_sizes[i % 5]);
	}
	for (i = N - 1; i >= 0; i--) {
		util_msg_recv(&recv, p.n[1].w, in, sizeof(in), msg[i], UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.info.length, few_sizes[i % 5]);
		CU_ASSERT(util_check(in, few_sizes[i % 5], i));
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i])));
		util_free(&send[i]);
	}
	util_pair_close(&p);
}

/* ---- datatypes ---- */

static void
contiguous_elements_count_in_bytes(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_contig(24),
	};
	static uint8_t out[24 * 5000], in[24 * 5000];
	ucp_tag_recv_info_t info;
	static const size_t counts[] = {1, 3, 100, 5000};
	ucs_status_t st;
	void *sreq, *rreq;
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 4; i++) {
		util_fill(out, 24 * counts[i], i);
		param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
		rreq = ucp_tag_recv_nbx(p.n[1].w, in, counts[i], 1, UTIL_ALL_BITS, &param);
		CU_ASSERT_FATAL(UCS_PTR_IS_PTR(rreq));
		sreq = ucp_tag_send_nbx(p.n[0].ep, out, counts[i], 1, &param);
		CU_ASSERT_FATAL(UCS_PTR_IS_PTR(sreq));
		CU_ASSERT(UTIL_UNTIL(&p, (st = ucp_tag_recv_request_test(rreq, &info)) != UCS_INPROGRESS));
		CU_ASSERT_EQUAL(st, UCS_OK);
		CU_ASSERT_EQUAL(info.length, 24 * counts[i]);
		CU_ASSERT(util_check(in, 24 * counts[i], i));
		CU_ASSERT(UTIL_UNTIL(&p, ucp_request_is_completed(sreq)));
		ucp_request_free(rreq);
		ucp_request_free(sreq);
	}
	util_pair_close(&p);
}

/* What a worker says of itself, as a number behind a name; UINT64_MAX: nothing. */
static uint64_t
info_number(ucp_worker_h w, const char *name)
{
	uint64_t number = UINT64_MAX;
	char *text = NULL, *at;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_FATAL(f != NULL);
	ucp_worker_print_info(w, f);
	fclose(f);
	at = strstr(text, name);
	if (at != NULL)
		number = strtoull(at + strlen(name), NULL, 10);
	free(text);
	return number;
}

static void
a_device_matches_if_the_setting_says_so(void)
{
	const char *set = getenv("PLX_TAG_OFFLOAD");
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	/* none shorter than tag.offload_min, unless that is set higher than it is by itself */
	exchange(&p, 0, 2000, 5, true, UTIL_NBX);
	exchange(&p, 0, 5000, 6, true, UTIL_NBX);
	exchange(&p, 0, 100000, 7, true, UTIL_NBX);
	CU_ASSERT_EQUAL(info_number(p.n[1].w, "#   consumed "), set != NULL && set[0] == 'y' ? 3 : 0);
	util_pair_close(&p);
}

static void
empty_message_waits_for_its_receive_where_all_are_announced(void)
{
	struct op send, recv;
	struct pair p;

	util_pair_open_with(&p, "RNDV_THRESH", "0");
	util_send(&send, p.n[0].ep, NULL, 0, 7, UTIL_NBX);
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT(!util_done(&send));
	util_recv(&recv, p.n[1].w, NULL, 0, 7, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	CU_ASSERT_EQUAL(recv.status, UCS_OK);
	CU_ASSERT_EQUAL(recv.info.length, 0);
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

const struct api_test api_tag_tests[] = {
	T(empty_message_waits_for_its_receive_where_all_are_announced),
	T(expected_messages_of_every_size_arrive),
	T(unexpected_messages_of_every_size_arrive),
	T(messages_without_immediate_completion_arrive),
	T(fast_completion_messages_arrive),
	T(truncation_is_reported_and_nothing_written_beyond),
	T(sync_send_waits_for_the_match),
	T(probe_finds_without_and_takes_with_remove),
	T(removed_message_can_be_truncated),
	T(removed_messages_are_received_in_any_order),
	T(contiguous_elements_count_in_bytes),
	T_NOT_UCX(a_device_matches_if_the_setting_says_so, "prints other things of a worker"),
	{NULL, NULL, NULL, NULL},
};

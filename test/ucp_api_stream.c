/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_stream.c - streams: order, elements, borrowed data, poll, back-pressure
 */
#include "ucp_api_test.h"

static void
recv_cb(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct op *op = user_data;

	(void)request;
	op->n_calls++;
	op->status = status;
	op->info.length = length;
}

static void
s_send_dt(struct op *op, ucp_ep_h ep, const void *buf, size_t count, ucp_datatype_t type)
{
	ucp_request_param_t param;
	void *ret;

	memset(&param, 0xa5, sizeof(param));
	memset(op, 0, sizeof(*op));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
		UCP_OP_ATTR_FIELD_DATATYPE;
	param.cb.send = util_sent;
	param.user_data = op;
	param.datatype = type;
	op->in_call = true;
	ret = ucp_stream_send_nbx(ep, buf, count, &param);
	op->in_call = false;
	op->immediate = !UCS_PTR_IS_PTR(ret);
	if (op->immediate)
		op->status = UCS_PTR_STATUS(ret);
	else
		op->req = ret;
}

static void
s_send(struct op *op, ucp_ep_h ep, const void *buf, size_t len)
{
	s_send_dt(op, ep, buf, len, ucp_dt_make_contig(1));
}

static void
s_recv_dt(struct op *op, ucp_ep_h ep, void *buf, size_t count, ucp_datatype_t type, bool waitall,
	uint32_t attr)
{
	ucp_request_param_t param;
	size_t length = SIZE_MAX;
	void *ret;

	memset(&param, 0xa5, sizeof(param));
	memset(op, 0, sizeof(*op));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
		UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS | attr;
	param.cb.recv_stream = recv_cb;
	param.user_data = op;
	param.datatype = type;
	param.flags = waitall ? UCP_STREAM_RECV_FLAG_WAITALL : 0;
	ret = ucp_stream_recv_nbx(ep, buf, count, &length, &param);
	op->immediate = !UCS_PTR_IS_PTR(ret);
	if (op->immediate) {
		op->status = UCS_PTR_STATUS(ret);
		op->info.length = length;
	} else {
		op->req = ret;
	}
}

static void
s_recv(struct op *op, ucp_ep_h ep, void *buf, size_t len, bool waitall)
{
	s_recv_dt(op, ep, buf, len, ucp_dt_make_contig(1), waitall, 0);
}

/* The bytes of a stream: byte i is the same whatever it is sent with. */
static void
s_fill(uint8_t *buf, size_t len, uint64_t from)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = (uint8_t)util_mix(from + i);
}

static bool
s_is(const uint8_t *buf, size_t len, uint64_t from)
{
	size_t i;

	for (i = 0; i < len && buf[i] == (uint8_t)util_mix(from + i); i++)
		;
	return i == len;
}

static void
each_length(struct pair *p, bool posted_first)
{
	struct op send, recv;
	size_t i;

	for (i = 0; i < N_SIZES; i++) {
		uint8_t *out = util_guarded(sizes[i]), *in = util_guarded(sizes[i]);

		s_fill(out, sizes[i], i);
		if (posted_first)
			s_recv(&recv, p->n[1].ep, in, sizes[i], true);
		s_send(&send, p->n[0].ep, out, sizes[i]);
		CU_ASSERT_EQUAL(send.n_inside, 0);
		if (!posted_first) {
			UTIL_FOR_MS(p, 1);
			s_recv(&recv, p->n[1].ep, in, sizes[i], true);
		}
		CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&send) && util_done(&recv)));
		CU_ASSERT_EQUAL(send.status, UCS_OK);
		CU_ASSERT_EQUAL(recv.status, UCS_OK);
		CU_ASSERT_EQUAL(recv.info.length, sizes[i]);
		CU_ASSERT(s_is(in, sizes[i], i));
		CU_ASSERT(util_guards_ok(in, sizes[i]));
		util_free(&send);
		util_free(&recv);
		util_guarded_free(out);
		util_guarded_free(in);
	}
}

static void
stream_carries_every_length(void)
{
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	each_length(&p, true);
	each_length(&p, false);
	util_pair_close(&p);
}

static void
stream_carries_every_length_in_multi_mode(void)
{
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_MULTI);
	each_length(&p, true);
	util_pair_close(&p);
}

static void
stream_keeps_its_bytes_in_order_however_they_are_cut(void)
{
	enum { TOTAL = 16 * 1024 * 1024, MOST = 200000, DEEP = 16 };
	static const size_t lens[] = {1, 8, 100, 3000, 20000, 70000, MOST};
	static uint8_t out[DEEP][MOST], in[MOST];
	static struct op send[DEEP];
	uint64_t sent = 0, got = 0;
	unsigned head = 0, tail = 0;
	struct op recv;
	struct pair p;
	bool recving = false;
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	while (got < TOTAL && util_now_ns() < end) {
		while (tail < head && util_done(&send[tail % DEEP]))
			util_free(&send[tail++ % DEEP]);
		if (head - tail < DEEP && sent < TOTAL) {
			size_t n = lens[rnd() % 7];

			if (n > TOTAL - sent)
				n = TOTAL - sent;
			s_fill(out[head % DEEP], n, sent);
			s_send(&send[head % DEEP], p.n[0].ep, out[head % DEEP], n);
			head++;
			sent += n;
		}
		if (!recving) {
			size_t n = lens[rnd() % 7], len;
			uint8_t *data;

			if (rnd() % 4 == 0) {
				data = ucp_stream_recv_data_nb(p.n[1].ep, &len);
				CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(data));
				if (data != NULL) {
					CU_ASSERT_FATAL(s_is(data, len, got));
					got += len;
					ucp_stream_data_release(p.n[1].ep, data);
				}
			} else {
				s_recv(&recv, p.n[1].ep, in, n < TOTAL - got ? n : TOTAL - got,
					rnd() % 2);
				recving = true;
			}
		}
		if (recving && util_done(&recv)) {
			CU_ASSERT_EQUAL_FATAL(recv.status, UCS_OK);
			CU_ASSERT_FATAL(s_is(in, recv.info.length, got));
			got += recv.info.length;
			util_free(&recv);
			recving = false;
		}
		util_pair_turn(&p);
	}
	CU_ASSERT_EQUAL(got, TOTAL);
	while (tail < head) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[tail % DEEP])));
		util_free(&send[tail++ % DEEP]);
	}
	util_pair_close(&p);
}

static void
stream_receive_ends_with_whole_elements(void)
{
	uint8_t out[64], in[64];
	struct op send, recv;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	s_recv_dt(&recv, p.n[1].ep, in, 4, ucp_dt_make_contig(8), false, 0);
	s_send(&send, p.n[0].ep, out, 5);
	UTIL_FOR_MS(&p, 3);
	CU_ASSERT(!util_done(&recv));
	util_free(&send);
	s_send(&send, p.n[0].ep, out + 5, 14); /* 19 bytes: two elements and three bytes */
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	CU_ASSERT_EQUAL(recv.info.length, 16);
	CU_ASSERT(s_is(in, 16, 0));
	util_free(&send);
	util_free(&recv);
	s_recv(&recv, p.n[1].ep, in, 3, false);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	CU_ASSERT_EQUAL(recv.info.length, 3);
	CU_ASSERT(s_is(in, 3, 16));
	util_free(&recv);
	util_pair_close(&p);
}

static void
stream_receive_that_waits_for_all_waits_for_all(void)
{
	uint8_t out[100], in[100];
	struct op send, recv;
	struct pair p;
	size_t len;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	s_recv(&recv, p.n[1].ep, in, sizeof(in), true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(recv.req);
	s_send(&send, p.n[0].ep, out, 60);
	UTIL_FOR_MS(&p, 3);
	CU_ASSERT(!util_done(&recv));
	CU_ASSERT_EQUAL(ucp_stream_recv_request_test(recv.req, &len), UCS_INPROGRESS);
	util_free(&send);
	s_send(&send, p.n[0].ep, out + 60, 40);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	CU_ASSERT_EQUAL(ucp_stream_recv_request_test(recv.req, &len), UCS_OK);
	CU_ASSERT_EQUAL(len, 100);
	CU_ASSERT(s_is(in, 100, 0));
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

static void
empty_stream_receive_is_over_at_once(void)
{
	struct op recv;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_recv(&recv, p.n[1].ep, NULL, 0, false);
	CU_ASSERT(recv.immediate);
	CU_ASSERT_EQUAL(recv.status, UCS_OK);
	CU_ASSERT_EQUAL(recv.info.length, 0);
	s_recv(&recv, p.n[1].ep, NULL, 0, true);
	CU_ASSERT(recv.immediate);
	util_pair_close(&p);
}

static void
stream_data_waits_for_its_ep(void)
{
	static uint8_t out[300000], in[300000];
	struct op send[3], recv;
	struct pair p;
	ucp_ep_h late;
	int i;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	late = util_ep(p.n[0].w, p.n[1].addr); /* the second: its partner is still to be made */
	s_send(&send[0], late, out, 10);
	s_send(&send[1], late, out + 10, 20000 - 10);
	s_send(&send[2], late, out + 20000, sizeof(out) - 20000);
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT_PTR_NULL(ucp_stream_recv_data_nb(p.n[1].ep, &(size_t){0}));
	p.n[1].ep = (ucp_stream_worker_poll(p.n[1].w, &(ucp_stream_poll_ep_t){0}, 1, 0) == 0) ?
		p.n[1].ep : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(p.n[1].ep);
	{
		ucp_ep_h here = util_ep(p.n[1].w, p.n[0].addr);
		ucp_stream_poll_ep_t found;

		CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_stream_worker_poll(p.n[1].w, &found, 1, 0) == 1));
		CU_ASSERT_PTR_EQUAL(found.ep, here);
		s_recv(&recv, here, in, sizeof(in), true);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv) && util_done(&send[2])));
		CU_ASSERT_EQUAL(recv.status, UCS_OK);
		CU_ASSERT(s_is(in, sizeof(in), 0));
		util_free(&recv);
		CU_ASSERT(util_ep_close(&p, here, 0));
	}
	for (i = 0; i < 3; i++)
		util_free(&send[i]);
	CU_ASSERT(util_ep_close(&p, late, 0));
	util_pair_close(&p);
}

static void
borrowed_stream_data_may_be_released_in_any_order(void)
{
	enum { N = 6 };
	static uint8_t out[N * 2000];
	uint8_t *data[4 * N]; /* a message may come in pieces */
	size_t len[4 * N];
	uint64_t got = 0;
	struct op send;
	struct pair p;
	int i, n = 0;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	CU_ASSERT_PTR_NULL(ucp_stream_recv_data_nb(p.n[1].ep, &len[0]));
	for (i = 0; i < N; i++) {
		s_send(&send, p.n[0].ep, out + i * 2000, 2000);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
		util_free(&send);
	}
	while (got < sizeof(out)) {
		CU_ASSERT_FATAL(n < 4 * N);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, (data[n] = ucp_stream_recv_data_nb(p.n[1].ep,
			&len[n])) != NULL));
		got += len[n++];
	}
	CU_ASSERT_PTR_NULL(ucp_stream_recv_data_nb(p.n[1].ep, &(size_t){0}));
	for (i = n - 1; i >= 0; i -= 2)
		ucp_stream_data_release(p.n[1].ep, data[i]);
	got = 0;
	for (i = 0; i < n; i++) {
		if ((n - 1 - i) % 2 != 0) {
			CU_ASSERT(s_is(data[i], len[i], got));
			ucp_stream_data_release(p.n[1].ep, data[i]);
		}
		got += len[i];
	}
	CU_ASSERT_EQUAL(got, sizeof(out));
	util_pair_close(&p);
}

static void
borrowed_rest_of_a_message_is_what_no_receive_took(void)
{
	uint8_t out[100], in[100], *data;
	struct op send, recv;
	struct pair p;
	size_t len;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	s_send(&send, p.n[0].ep, out, sizeof(out));
	s_recv(&recv, p.n[1].ep, in, 3, false);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, (data = ucp_stream_recv_data_nb(p.n[1].ep, &len)) != NULL));
	CU_ASSERT_EQUAL(len, 97);
	CU_ASSERT(s_is(data, len, 3));
	ucp_stream_data_release(p.n[1].ep, data);
	util_free(&send);
	util_pair_close(&p);
}

static void
poll_names_an_ep_once_for_each_arrival(void)
{
	ucp_stream_poll_ep_t found[4];
	uint8_t out[16] = {1}, in[16];
	struct op send, recv;
	struct pair p;
	ssize_t n = 0;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL(ucp_stream_worker_poll(p.n[1].w, found, 4, 0), 0);
	CU_ASSERT(ucp_stream_worker_poll(p.n[1].w, found, 4, 1) < 0);
	s_send(&send, p.n[0].ep, out, 16);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, (n = ucp_stream_worker_poll(p.n[1].w, found, 4, 0)) != 0));
	util_free(&send);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_EQUAL(found[0].ep, p.n[1].ep);
	CU_ASSERT_EQUAL(ucp_stream_worker_poll(p.n[1].w, found, 4, 0), 0); /* though nothing is read */
	s_send(&send, p.n[0].ep, out, 16);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, (n = ucp_stream_worker_poll(p.n[1].w, found, 4, 0)) != 0));
	util_free(&send);
	CU_ASSERT_EQUAL(n, 1);
	s_recv(&recv, p.n[1].ep, in, 16, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	CU_ASSERT_EQUAL(ucp_stream_worker_poll(p.n[1].w, found, 4, 0), 0);
	util_pair_close(&p);
}

static void
send_wait_and_read_later(const size_t *lens, size_t n, bool lent)
{
	size_t total = 0, got = 0, i;
	uint8_t *out, *in, *data;
	struct op *send, recv;
	struct pair p;

	for (i = 0; i < n; i++)
		total += lens[i];
	out = malloc(total);
	in = calloc(1, total);
	send = calloc(n, sizeof(*send));
	CU_ASSERT_FATAL(out != NULL && in != NULL && send != NULL);
	s_fill(out, total, 0);
	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < n; got += lens[i++])
		s_send(&send[i], p.n[0].ep, out + got, lens[i]);
	for (i = 0; i < n; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i]))); /* before anything is read */
		CU_ASSERT_EQUAL(send[i].status, UCS_OK);
		util_free(&send[i]);
	}
	memset(out, 0x5a, total); /* the buffer is the program's again */
	if (!lent) {
		s_recv(&recv, p.n[1].ep, in, total, true);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		CU_ASSERT_EQUAL(recv.status, UCS_OK);
		util_free(&recv);
	}
	for (got = 0; lent && got < total; got += i) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p,
			(data = ucp_stream_recv_data_nb(p.n[1].ep, &i)) != NULL));
		CU_ASSERT_FATAL(UCS_PTR_IS_PTR(data) && i <= total - got);
		memcpy(in + got, data, i);
		ucp_stream_data_release(p.n[1].ep, data);
	}
	CU_ASSERT(s_is(in, total, 0));
	util_pair_close(&p);
	free(out);
	free(in);
	free(send);
}

static void
sender_may_wait_for_its_sends_before_its_peer_reads(void)
{
	enum { N = 2000 };
	static size_t small[N], mixed[N / 10];
	const size_t one = 8 * MIB + 1;
	size_t i;

	for (i = 0; i < N; i++)
		small[i] = 4000;
	for (i = 0; i < N / 10; i++)
		mixed[i] = rnd() % 3 == 0 ? 1 + rnd() % (256 << 10) : 1 + rnd() % 5000;
	for (i = 0; i < 2; i++) {
		send_wait_and_read_later(small, N, i == 1);
		send_wait_and_read_later(&one, 1, i == 1);
		send_wait_and_read_later(mixed, N / 10, i == 1);
	}
}

/* The bound is the worker's: what one stream keeps another has not, and gets when that is read. */
static void
stopped_stream_goes_on_when_another_is_read(void)
{
	enum { N = 100, LEN = 4000, LONG = 200000 };
	static uint8_t out[LONG], in[LONG];
	static struct op send[N];
	struct op all, longer, recv;
	struct pair p;
	ucp_ep_h a, b;
	int i;

	util_pair_open_with(&p, "stream.unread_max", "300k");
	s_fill(out, LONG, 0);
	for (i = 0; i < N; i++)
		s_send(&send[i], p.n[0].ep, out, LEN);
	UTIL_FOR_MS(&p, 30);
	a = util_ep(p.n[0].w, p.n[1].addr);
	b = util_ep(p.n[1].w, p.n[0].addr);
	s_send(&all, a, out, 8000);
	s_send(&longer, a, out, LONG);
	UTIL_FOR_MS(&p, 30);
	CU_ASSERT(!util_done(&longer)); /* there is no room for it */
	for (i = 0; i < N; i++) {
		s_recv(&recv, p.n[1].ep, in, LEN, true);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		CU_ASSERT_FATAL(s_is(in, LEN, 0));
		util_free(&recv);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&longer))); /* and nobody has read it */
	s_recv(&recv, b, in, 8000, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	s_recv(&recv, b, in, LONG, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	CU_ASSERT(s_is(in, LONG, 0));
	util_free(&recv);
	util_free(&all);
	util_free(&longer);
	for (i = 0; i < N; i++)
		util_free(&send[i]);
	CU_ASSERT(util_ep_close(&p, a, 0));
	CU_ASSERT(util_ep_close(&p, b, 0));
	util_pair_close(&p);
}

static void
failed_cb(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
}

/* Send len bytes, and break the stream after ms. @return the bytes that its receiver reads afterwards */
static uint64_t
read_behind_break(uint8_t *out, uint8_t *in, size_t len, unsigned ms)
{
	struct op send, recv;
	uint64_t got = 0;
	struct pair p;
	ucp_ep_h a, b;

	util_pair_open_with(&p, "stream.unread_max", "1m");
	a = util_ep_with_handler(p.n[0].w, p.n[1].addr, failed_cb, NULL);
	b = util_ep_with_handler(p.n[1].w, p.n[0].addr, failed_cb, NULL);
	s_fill(out, len, 0);
	s_send(&send, a, out, len);
	UTIL_FOR_MS(&p, ms);
	CU_ASSERT(!util_done(&send)); /* the receiver takes half of it at most */
	CU_ASSERT(util_ep_close(&p, a, UCP_EP_CLOSE_FLAG_FORCE));
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	memset(out, 0x5a, len);
	for (;;) {
		s_recv(&recv, b, in, 4096, true);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
		if (recv.status != UCS_OK)
			break;
		CU_ASSERT_FATAL(s_is(in, 4096, got));
		got += 4096;
	}
	CU_ASSERT(util_ep_close(&p, b, UCP_EP_CLOSE_FLAG_FORCE));
	util_pair_close(&p);
	return got;
}

/* The receiver still reads what arrived before the sender broke the stream. */
static void
stream_that_breaks_is_read_to_where_it_was(void)
{
	enum { LEN = 2 * MIB };
	uint8_t *out = malloc(LEN), *in = malloc(LEN);
	unsigned ms = util_by_network() ? 2000 : 50;
	uint64_t got;

	CU_ASSERT_FATAL(out != NULL && in != NULL);
	do /* a reactor may get no core for long */
		got = read_behind_break(out, in, LEN, ms);
	while (got < 64 * KIB && (ms *= 10) <= 5000);
	CU_ASSERT(got >= 64 * KIB && got < LEN);
	free(out);
	free(in);
}

static void
reader_that_stops_stops_its_sender(void)
{
	enum { N = 3000, LEN = 4000 };
	static uint8_t out[LEN], in[LEN];
	static struct op send[N];
	struct op tag_send, tag_recv, recv;
	uint64_t word = 7, back = 0;
	struct pair p;
	int i, n_done = 0;

	util_pair_open_with(&p, "stream.unread_max", "300k");
	s_fill(out, LEN, 0);
	for (i = 0; i < N; i++)
		s_send(&send[i], p.n[0].ep, out, LEN);
	UTIL_FOR_MS(&p, 30);
	for (i = 0; i < N; i++)
		n_done += util_done(&send[i]);
	CU_ASSERT(n_done < 200);
	/* Other messages of the ep pass. */
	util_recv(&tag_recv, p.n[1].w, &back, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&tag_send, p.n[0].ep, &word, 8, 1, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&tag_recv) && util_done(&tag_send)));
	CU_ASSERT_EQUAL(back, 7);
	util_free(&tag_recv);
	util_free(&tag_send);
	for (i = 0; i < N; i++) {
		s_recv(&recv, p.n[1].ep, in, LEN, true);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		CU_ASSERT_FATAL(s_is(in, LEN, 0));
		util_free(&recv);
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i])));
		util_free(&send[i]);
	}
	util_pair_close(&p);
}

static void
long_stream_send_can_be_read_in_small_steps(void)
{
	static uint8_t out[MIB], in[1000];
	struct op send, recv;
	uint64_t got = 0;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	s_send(&send, p.n[0].ep, out, sizeof(out));
	while (got < sizeof(out)) {
		s_recv(&recv, p.n[1].ep, in, 1 + rnd() % sizeof(in), false);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		CU_ASSERT_FATAL(s_is(in, recv.info.length, got));
		got += recv.info.length;
		util_free(&recv);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	util_free(&send);
	util_pair_close(&p);
}

static void
stream_receive_that_can_not_end_at_once_is_not_posted(void)
{
	uint8_t out[16] = {1}, in[16];
	struct op send, recv;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_recv_dt(&recv, p.n[1].ep, in, 16, ucp_dt_make_contig(1), false,
		UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
	CU_ASSERT_EQUAL(recv.status, UCS_ERR_NO_RESOURCE);
	s_send(&send, p.n[0].ep, out, 16);
	s_recv(&recv, p.n[1].ep, in, 16, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	CU_ASSERT_EQUAL(recv.info.length, 16);
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

/* A forced receive of count elements. @return its status, and what it got */
static ucs_status_t
s_recv_forced(struct pair *p, void *buf, size_t count, size_t elem, bool waitall, size_t *got)
{
	struct op recv;

	s_recv_dt(&recv, p->n[1].ep, buf, count, ucp_dt_make_contig(elem), waitall,
		UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
	CU_ASSERT_FATAL(recv.immediate);
	*got = recv.info.length;
	return recv.status;
}

static void
forced_immediate_stream_receive_takes_what_is_here(void)
{
	uint8_t out[22], in[32];
	struct op send;
	struct pair p;
	size_t got = 0;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	s_send(&send, p.n[0].ep, out, 16);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, s_recv_forced(&p, in, 8, 1, true, &got) == UCS_OK));
	CU_ASSERT_EQUAL(got, 8);
	CU_ASSERT(s_is(in, 8, 0));
	CU_ASSERT_EQUAL(s_recv_forced(&p, in, 9, 1, true, &got), UCS_ERR_NO_RESOURCE);
	CU_ASSERT_EQUAL(s_recv_forced(&p, in, 1, 9, false, &got), UCS_ERR_NO_RESOURCE);
	CU_ASSERT_EQUAL(s_recv_forced(&p, in, 10, 3, false, &got), UCS_OK);
	CU_ASSERT_EQUAL(got, 6); /* whole elements */
	CU_ASSERT(s_is(in, 6, 8));
	s_send(&send, p.n[0].ep, out + 16, 6);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, s_recv_forced(&p, in, 1, 8, false, &got) == UCS_OK));
	CU_ASSERT_EQUAL(got, 8); /* of two pieces */
	CU_ASSERT(s_is(in, 8, 14));
	CU_ASSERT_EQUAL(s_recv_forced(&p, in, 1, 1, false, &got), UCS_ERR_NO_RESOURCE);
	util_pair_close(&p);
}

static void
forced_immediate_stream_send_of_nothing_is_over(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_PTR_NULL(ucp_stream_send_nbx(p.n[0].ep, NULL, 0, &param));
	util_pair_close(&p);
}

static void
forced_immediate_stream_send_sends_or_leaves_no_trace(void)
{
	enum { N = 2000 };
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	static uint64_t in[N];
	struct util_forced sends = {0};
	unsigned i;
	struct op recv;
	uint64_t out;
	struct pair p;
	void *ret;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	out = UINT64_MAX;
	s_send(&recv, p.n[0].ep, &out, 8); /* connects */
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	for (i = 0; i < N; i++) {
		out = sends.n_sent;
		ret = ucp_stream_send_nbx(p.n[0].ep, &out, 8, &param);
		util_forced_count(&sends, ret);
		out = UINT64_MAX;
	}
	CU_ASSERT_EQUAL(sends.n_bad, 0);
	CU_ASSERT(sends.n_sent > 0);
	CU_ASSERT_EQUAL(sends.n_sent + sends.n_refused, N);
	s_recv(&recv, p.n[1].ep, in, 8, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	s_recv(&recv, p.n[1].ep, in, 8 * sends.n_sent, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	util_free(&recv);
	for (i = 0; i < sends.n_sent && in[i] == i; i++)
		;
	CU_ASSERT_EQUAL(i, sends.n_sent);
	UTIL_FOR_MS(&p, 5);
	s_recv_dt(&recv, p.n[1].ep, in, 8, ucp_dt_make_contig(1), false,
		UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
	CU_ASSERT_EQUAL(recv.status, UCS_ERR_NO_RESOURCE);
	util_pair_close(&p);
}

static void
streams_of_two_handles_do_not_mix(void)
{
	ucp_ep_h a[2], b[2];
	uint8_t out[2][50], in[50];
	struct op send, recv;
	struct pair p;
	int i, round;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	a[0] = p.n[0].ep;
	b[0] = p.n[1].ep;
	a[1] = util_ep(p.n[0].w, p.n[1].addr);
	b[1] = util_ep(p.n[1].w, p.n[0].addr);
	for (i = 0; i < 2; i++)
		s_fill(out[i], 50, 1000 * i);
	for (round = 0; round < 4; round++) {
		for (i = 1; i >= 0; i--) {
			s_send(&send, round % 2 ? b[i] : a[i], out[i], 50);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
			util_free(&send);
		}
		for (i = 0; i < 2; i++) {
			s_recv(&recv, round % 2 ? a[i] : b[i], in, 50, true);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
			CU_ASSERT(s_is(in, 50, 1000 * i));
			util_free(&recv);
		}
	}
	CU_ASSERT(util_ep_close(&p, a[1], 0));
	CU_ASSERT(util_ep_close(&p, b[1], 0));
	util_pair_close(&p);
}

static void
stream_to_oneself_comes_back_unless_crossed(void)
{
	ucp_ep_h self, x, y;
	ucp_ep_params_t params;
	uint8_t out[50], in[50];
	struct op send, recv;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, 50, 0);
	self = util_ep(p.n[0].w, p.n[0].addr);
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_FLAGS;
	params.address = p.n[0].addr;
	params.flags = UCP_EP_PARAMS_FLAGS_NO_LOOPBACK;
	UTIL_OK(ucp_ep_create(p.n[0].w, &params, &x));
	UTIL_OK(ucp_ep_create(p.n[0].w, &params, &y));
	s_send(&send, self, out, 50);
	s_recv(&recv, self, in, 50, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	CU_ASSERT(s_is(in, 50, 0));
	util_free(&send);
	util_free(&recv);
	memset(in, 0, sizeof(in));
	s_send(&send, x, out, 50);
	s_recv(&recv, y, in, 50, true);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
	CU_ASSERT(s_is(in, 50, 0));
	util_free(&send);
	util_free(&recv);
	CU_ASSERT(util_ep_close(&p, x, 0));
	CU_ASSERT(util_ep_close(&p, y, 0));
	CU_ASSERT(util_ep_close(&p, self, 0));
	util_pair_close(&p);
}

static void
stream_gathers_and_scatters_iov(void)
{
	static const size_t lens[] = {30, 3000, 90000, MIB};
	static uint8_t out[MIB], in[MIB];
	ucp_dt_iov_t ov[3], iv[2];
	struct op send, recv;
	struct pair p;
	size_t i, n;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, sizeof(out), 0);
	for (i = 0; i < 4; i++) {
		n = lens[i];
		memset(in, 0, n);
		ov[0] = (ucp_dt_iov_t){out, n / 3};
		ov[1] = (ucp_dt_iov_t){out + n / 3, n / 3};
		ov[2] = (ucp_dt_iov_t){out + n / 3 * 2, n - n / 3 * 2};
		iv[0] = (ucp_dt_iov_t){in, n / 2};
		iv[1] = (ucp_dt_iov_t){in + n / 2, n - n / 2};
		s_send_dt(&send, p.n[0].ep, ov, 3, ucp_dt_make_iov());
		s_recv_dt(&recv, p.n[1].ep, iv, 2, ucp_dt_make_iov(), true, 0);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		CU_ASSERT_EQUAL(recv.info.length, n);
		CU_ASSERT(s_is(in, n, 0));
		util_free(&send);
		util_free(&recv);
	}
	util_pair_close(&p);
}

static void
closing_an_ep_ends_its_stream_receives(void)
{
	uint8_t in[8];
	struct op recv;
	struct pair p;
	ucp_ep_h ep;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ep = util_ep(p.n[1].w, p.n[0].addr);
	s_recv(&recv, ep, in, 8, true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(recv.req);
	CU_ASSERT(util_ep_close(&p, ep, 0));
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
	CU_ASSERT_EQUAL(recv.status, UCS_ERR_CANCELED);
	util_free(&recv);
	util_pair_close(&p);
}

static void
closed_ep_takes_no_room_from_its_sender(void)
{
	enum { N = 500, LEN = 4000 };
	static uint8_t out[MIB];
	static struct op send[N];
	struct op big;
	ucp_ep_h a, b;
	struct pair p;
	int i;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	a = util_ep(p.n[0].w, p.n[1].addr);
	b = util_ep(p.n[1].w, p.n[0].addr);
	for (i = 0; i < N; i++)
		s_send(&send[i], a, out, LEN);
	s_send(&big, a, out, sizeof(out));
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT(util_ep_close(&p, b, 0));
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i])));
		util_free(&send[i]);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&big)));
	util_free(&big);
	CU_ASSERT(util_ep_close(&p, a, 0));
	util_pair_close(&p);
}

static void
old_nb_callback(void *request, ucs_status_t status, size_t length)
{
	struct area *a = request;

	a->calls++;
	a->status = status;
	a->info.length = length;
}

static void
old_stream_calls_work(void)
{
	uint8_t out[40], in[40];
	struct area *a;
	struct pair p;
	size_t len = 0;
	void *req, *sreq;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	s_fill(out, 40, 0);
	req = ucp_stream_recv_nb(p.n[1].ep, in, 10, ucp_dt_make_contig(4), old_nb_callback, &len,
		UCP_STREAM_RECV_FLAG_WAITALL);
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
	sreq = ucp_stream_send_nb(p.n[0].ep, out, 40, ucp_dt_make_contig(1), NULL, 0);
	CU_ASSERT(!UCS_PTR_IS_ERR(sreq));
	a = req;
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, a->calls == 1 &&
		(sreq == NULL || ucp_request_is_completed(sreq))));
	CU_ASSERT_EQUAL(a->status, UCS_OK);
	CU_ASSERT_EQUAL(a->info.length, 40);
	CU_ASSERT(s_is(in, 40, 0));
	a->calls = 0;
	memset(&a->info, 0, sizeof(a->info));
	ucp_request_free(req);
	if (sreq != NULL)
		ucp_request_free(sreq);
	util_pair_close(&p);
}

const struct api_test api_stream_tests[] = {
	T_NOT_UCX(stream_carries_every_length, "a receive of 0 bytes does not end"),
	T_NOT_UCX(stream_carries_every_length_in_multi_mode, "a receive of 0 bytes does not end"),
	T(stream_keeps_its_bytes_in_order_however_they_are_cut),
	T_NOT_UCX(stream_receive_ends_with_whole_elements, "1.13 takes whole messages only"),
	T(stream_receive_that_waits_for_all_waits_for_all),
	T_NOT_UCX(empty_stream_receive_is_over_at_once, "it does not end"),
	T(stream_data_waits_for_its_ep),
	T(borrowed_stream_data_may_be_released_in_any_order),
	T(borrowed_rest_of_a_message_is_what_no_receive_took),
	T_NOT_UCX(poll_names_an_ep_once_for_each_arrival, "flags are not checked"),
	T_NOT_UCX(reader_that_stops_stops_its_sender, "it is not stopped"),
	T(sender_may_wait_for_its_sends_before_its_peer_reads),
	T_NOT_UCX(stopped_stream_goes_on_when_another_is_read, "it has no bound"),
	T_NOT_UCX(stream_that_breaks_is_read_to_where_it_was, "it sends all at once"),
	T(long_stream_send_can_be_read_in_small_steps),
	T(stream_receive_that_can_not_end_at_once_is_not_posted),
	T_NOT_UCX(forced_immediate_stream_receive_takes_what_is_here, "1.13 takes whole messages only"),
	T(forced_immediate_stream_send_of_nothing_is_over),
	T(forced_immediate_stream_send_sends_or_leaves_no_trace),
	T(streams_of_two_handles_do_not_mix),
	T(stream_to_oneself_comes_back_unless_crossed),
	T(stream_gathers_and_scatters_iov),
	T_NOT_UCX(closing_an_ep_ends_its_stream_receives, "they never end"),
	T(closed_ep_takes_no_room_from_its_sender),
	T(old_stream_calls_work),
	{NULL, NULL, NULL, NULL},
};

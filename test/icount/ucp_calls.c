/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_calls.c - each call of UCP that is on a hot path, for icount
 *
 * usage: icount OUT HOLD ucp_calls all|network|reactor single|serialized|multi
 *
 * Design notes
 * The calls are those of a pair of workers (pair.h). A row counts what its call does when the turns
 * before it had something to do: that is what a program sees that waits for messages which come.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "device.h"
#include "marks.h"
#include "pair.h"

#define TAG	  7
#define MEM_LEN	  65536
#define KEPT	  100 /* unexpected messages that nobody takes */
#define WARM	  300  /* messages each way, before the first row */
#define LONG_TIME 5000 /* turns that find nothing */

static ucp_mem_h mem;
static ucp_rkey_h rkey; /* of to's memory, for from */
static uint64_t remote;
static void *req;
static unsigned n_got, n_am;
static ucp_tag_recv_info_t info;

static const ucp_request_param_t plain;
static const ucp_request_param_t iov = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = UCP_DATATYPE_IOV};
static const ucp_request_param_t eight_bytes = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
	.datatype = ucp_dt_make_contig(8)};
static const ucp_request_param_t whole = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
	.flags = UCP_STREAM_RECV_FLAG_WAITALL};

static void
on_recv(void *request, ucs_status_t status, const ucp_tag_recv_info_t *got, void *arg)
{
	(void)request, (void)got, (void)arg;
	must(status, "a receive");
	n_got++;
}

static const ucp_request_param_t told = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
	.cb.recv = on_recv};

/* Parameters as MPI libraries give them: the request is theirs, or one is required. */
static char own[1024] __attribute__((aligned(64)));

static const ucp_request_param_t many = {.op_attr_mask = UCP_OP_ATTR_FLAG_MULTI_SEND};
static const ucp_request_param_t own_sent = {
	.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_FAST_CMPL, .request = own + sizeof(own)};
static const ucp_request_param_t own_got = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK,
	.request = own + sizeof(own), .cb.recv = on_recv};
static const ucp_request_param_t required = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb.recv = on_recv};

static const ucp_request_param_t reply = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_REPLY};

static ucs_status_t
on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	(void)arg, (void)header, (void)header_len, (void)data, (void)len, (void)param;
	n_am++;
	return UCS_OK;
}

/* -- before: -- */

static void
send_len(struct side *s, size_t len)
{
	finish(ucp_tag_send_nbx(s->ep, s->buf, len, TAG, &plain));
	device_run();
}

static void
post_len(size_t len)
{
	n_got = 0;
	req = ucp_tag_recv_nbx(to->worker, to->buf, len, TAG, UINT64_MAX, &told);
}

static void
send_8(void)
{
	send_len(from, 8);
}

static void
post_8_send(void)
{
	post_len(8);
	send_len(from, 8);
}

static void
post_1k_send(void)
{
	post_len(1024);
	send_len(from, 1024);
}

static void
post_8_done(void)
{
	post_8_send();
	settle();
}

static void
send_8_kept(void)
{
	send_8();
	settle();
}

static void
send_8_kept_told(void)
{
	n_got = 0;
	send_8_kept();
}

/* Others stay kept: the last row, as they add to what each call finds. */
static void
send_8_kept_behind(void)
{
	static unsigned n;

	for (; n < KEPT; n++) {
		finish(ucp_tag_send_nbx(from->ep, from->buf, 8, TAG + 1 + n, &plain));
		settle();
	}
	send_8_kept();
}

/* So long that senders ring a bell again. */
static void
rest_long(void)
{
	static bool rested;

	for (unsigned i = 0; !rested && i < LONG_TIME; i++)
		ucp_worker_progress(to->worker);
	rested = true;
}

static void
send_am(void)
{
	n_am = 0;
	finish(ucp_am_send_nbx(from->ep, 1, NULL, 0, from->buf, 8, &plain));
	device_run();
}

static void
send_stream(void)
{
	finish(ucp_stream_send_nbx(from->ep, from->buf, 8, &plain));
	device_run();
}

/* -- counted: -- */

static void
call_progress(void)
{
	ucp_worker_progress(to->worker);
}

static void
call_tag_send_8(void)
{
	req = ucp_tag_send_nbx(from->ep, from->buf, 8, TAG, &plain);
}

static void
call_tag_send_many(void)
{
	req = ucp_tag_send_nbx(from->ep, from->buf, 8, TAG, &many);
}

static void
call_tag_send_own(void)
{
	req = ucp_tag_send_nbx(from->ep, from->buf, 8, TAG, &own_sent);
}

static void
call_tag_send_1k(void)
{
	req = ucp_tag_send_nbx(from->ep, from->buf, 1024, TAG, &plain);
}

static void
call_tag_recv(void)
{
	req = ucp_tag_recv_nbx(to->worker, to->buf, 8, TAG, UINT64_MAX, &told);
}

static void
call_tag_recv_own(void)
{
	req = ucp_tag_recv_nbx(to->worker, to->buf, 8, TAG, UINT64_MAX, &own_got);
}

static void
call_tag_recv_required(void)
{
	req = ucp_tag_recv_nbx(to->worker, to->buf, 8, TAG, UINT64_MAX, &required);
}

static void
call_tag_recv_kept(void)
{
	req = ucp_tag_recv_nbx(to->worker, to->buf, 8, TAG, UINT64_MAX, &plain);
}

static void
call_request_free(void)
{
	ucp_request_free(req);
}

static void
call_probe(void)
{
	ucp_tag_probe_nb(to->worker, TAG + 1, UINT64_MAX, 0, &info);
}

static void
call_am_send(void)
{
	req = ucp_am_send_nbx(from->ep, 1, NULL, 0, from->buf, 8, &plain);
}

/* A header and data, as a library puts one in front of what it is given. */
static void
call_am_send_iov(void)
{
	const ucp_dt_iov_t v[] = {{from->buf, 40}, {from->buf, 24}};

	req = ucp_am_send_nbx(from->ep, 1, NULL, 0, v, 2, &iov);
}

static void
call_am_send_headed(void)
{
	req = ucp_am_send_nbx(from->ep, 1, from->buf, 16, from->buf + 16, 64, &reply);
}

static void
call_am_send_headed_1k(void)
{
	req = ucp_am_send_nbx(from->ep, 1, from->buf, 16, from->buf + 16, 1024, &reply);
}

/* The older form. */
static void
call_am_send_nb(void)
{
	req = ucp_am_send_nb(from->ep, 1, from->buf, 24, ucp_dt_make_contig(1), NULL, 0);
}

/* A library's own header, and few or many bytes of data. */
static void
am_send_nb_iov(size_t len)
{
	const ucp_dt_iov_t v[] = {{from->buf, 88}, {from->buf + 88, len}};

	req = ucp_am_send_nb(from->ep, 1, v, 2, UCP_DATATYPE_IOV, NULL, 0);
}

static void
call_am_send_nb_iov(void)
{
	am_send_nb_iov(8);
}

static void
call_am_send_nb_iov_1k(void)
{
	am_send_nb_iov(1024);
}

static void
call_stream_send(void)
{
	req = ucp_stream_send_nbx(from->ep, from->buf, 8, &plain);
}

static void
call_put_8(void)
{
	req = ucp_put_nbx(from->ep, from->buf, 8, remote, rkey, &plain);
}

static void
call_put_4k(void)
{
	req = ucp_put_nbx(from->ep, from->buf, 4096, remote, rkey, &plain);
}

static void
call_get_8(void)
{
	req = ucp_get_nbx(from->ep, from->buf, 8, remote, rkey, &plain);
}

static void
call_add(void)
{
	req = ucp_atomic_op_nbx(from->ep, UCP_ATOMIC_OP_ADD, from->buf, 1, remote, rkey, &eight_bytes);
}

static void
call_worker_flush(void)
{
	req = ucp_worker_flush_nbx(from->worker, &plain);
}

static void
call_ep_flush(void)
{
	req = ucp_ep_flush_nbx(from->ep, &plain);
}

/* -- behind: -- */

static void
end_call(void)
{
	finish(req);
	settle();
}

static void
end_sent(void)
{
	end_call();
	finish(ucp_tag_recv_nbx(to->worker, to->buf, 1024, TAG, UINT64_MAX, &plain));
	settle();
}

static void
end_recv(void)
{
	while (n_got == 0)
		turns(1);
	ucp_request_free(req);
	settle();
}

static void
end_posted(void)
{
	n_got = 0;
	send_8();
	end_recv();
}

static void
end_posted_own(void)
{
	n_got = 0;
	send_8();
	while (n_got == 0)
		turns(1);
	must(ucp_request_check_status(req), "an own request");
	settle();
}

static void
end_kept(void)
{
	finish(ucp_tag_recv_nbx(to->worker, to->buf, 8, TAG, UINT64_MAX, &plain));
	settle();
}

static void
end_am(void)
{
	while (n_am == 0)
		turns(1);
	settle();
}

static void
end_stream_sent(void)
{
	size_t len;

	end_call();
	finish(ucp_stream_recv_nbx(to->ep, to->buf, 8, &len, &whole));
	settle();
}

static void
end_stream(void)
{
	req = NULL;
	end_stream_sent();
}

static const struct icount_row rows_network[] = {
	{"progress, nothing", post_8_done, call_progress, end_recv},
	{"tag_send_nbx 8 B", NULL, call_tag_send_8, end_sent},
	{"tag_send_nbx 1 KiB", NULL, call_tag_send_1k, end_sent},
	{"tag_recv_nbx, posts", NULL, call_tag_recv, end_posted},
	{"progress, 8 B for a posted receive", post_8_send, call_progress, end_recv},
	{"progress, 1 KiB for a posted receive", post_1k_send, call_progress, end_recv},
	{"am_send_nbx 8 B", NULL, call_am_send, settle},
	{"progress, 8 B active message", send_am, call_progress, end_am},
	{NULL, NULL, NULL, NULL},
};

static const struct icount_row rows_all[] = {
	{"progress, nothing", post_8_done, call_progress, end_recv},
	{"progress, nothing for long", rest_long, call_progress, NULL},
	{"tag_send_nbx 8 B", NULL, call_tag_send_8, end_sent},
	{"tag_send_nbx 1 KiB", NULL, call_tag_send_1k, end_sent},
	{"tag_recv_nbx, posts", NULL, call_tag_recv, end_posted},
	{"progress, 8 B for a posted receive", post_8_send, call_progress, end_recv},
	{"progress, 1 KiB for a posted receive", post_1k_send, call_progress, end_recv},
	{"request_free", post_8_done, call_request_free, settle},
	{"progress, 8 B unexpected", send_8, call_progress, end_kept},
	{"tag_recv_nbx, takes unexpected 8 B", send_8_kept, call_tag_recv_kept, end_call},
	{"tag_probe_nb, nothing", NULL, call_probe, NULL},
	{"am_send_nbx 8 B", NULL, call_am_send, end_call},
	{"am_send_nbx, iov of 2", NULL, call_am_send_iov, end_call},
	{"progress, 8 B active message", send_am, call_progress, end_am},
	{"stream_send_nbx 8 B", NULL, call_stream_send, end_stream_sent},
	{"progress, 8 B of a stream", send_stream, call_progress, end_stream},
	{"put_nbx 8 B, mapped", NULL, call_put_8, end_call},
	{"put_nbx 4 KiB, mapped", NULL, call_put_4k, end_call},
	{"get_nbx 8 B, mapped", NULL, call_get_8, end_call},
	{"atomic add 64, mapped", NULL, call_add, end_call},
	{"worker_flush_nbx, idle", NULL, call_worker_flush, end_call},
	{"ep_flush_nbx, idle", NULL, call_ep_flush, end_call},
	{"tag_send_nbx 8 B, MULTI_SEND", NULL, call_tag_send_many, end_sent},
	{"tag_send_nbx 8 B, own request", NULL, call_tag_send_own, end_sent},
	{"tag_recv_nbx, posts, own request", NULL, call_tag_recv_own, end_posted_own},
	{"tag_recv_nbx, posts, NO_IMM_CMPL", NULL, call_tag_recv_required, end_posted},
	{"tag_recv_nbx, NO_IMM_CMPL, takes unexpected 8 B", send_8_kept_told, call_tag_recv_required, end_recv},
	{"am_send_nbx, header of 16, 64 B", NULL, call_am_send_headed, end_call},
	{"am_send_nbx, header of 16, 1 KiB", NULL, call_am_send_headed_1k, end_call},
	{"am_send_nb 24 B", NULL, call_am_send_nb, end_call},
	{"am_send_nb, iov of 88 and 8 B", NULL, call_am_send_nb_iov, end_call},
	{"am_send_nb, iov of 88 B and 1 KiB", NULL, call_am_send_nb_iov_1k, end_call},
	{"tag_recv_nbx, takes one of 101 unexpected", send_8_kept_behind, call_tag_recv_kept, end_call},
	{NULL, NULL, NULL, NULL},
};

static void
side_open(struct side *s, ucs_thread_mode_t mode)
{
	const ucp_params_t p = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG |
			UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_STREAM};
	const ucp_worker_params_t w = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = mode};
	const ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 1, .cb = on_am};
	ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};
	size_t len;

	must(ucp_init(&p, NULL, &s->ctx), "ucp_init");
	must(ucp_worker_create(s->ctx, &w, &s->worker), "ucp_worker_create");
	must(ucp_worker_query(s->worker, &attr), "ucp_worker_query");
	if (attr.thread_mode != mode) {
		fprintf(stderr, "ucp_calls: this library has not the thread mode that was asked for\n");
		exit(77);
	}
	must(ucp_worker_set_am_recv_handler(s->worker, &h), "ucp_worker_set_am_recv_handler");
	must(ucp_worker_get_address(s->worker, &s->addr, &len), "ucp_worker_get_address");
}

static void
mem_open(void)
{
	const ucp_mem_map_params_t p = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = MEM_LEN, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	size_t len;
	void *key;

	must(ucp_mem_map(to->ctx, &p, &mem), "ucp_mem_map");
	must(ucp_mem_query(mem, &attr), "ucp_mem_query");
	must(ucp_rkey_pack(to->ctx, mem, &key, &len), "ucp_rkey_pack");
	must(ucp_ep_rkey_unpack(from->ep, key, &rkey), "ucp_ep_rkey_unpack");
	remote = (uintptr_t)attr.address;
	ucp_rkey_buffer_release(key);
}

static void
mem_close(void)
{
	ucp_rkey_destroy(rkey);
	must(ucp_mem_unmap(to->ctx, mem), "ucp_mem_unmap");
}

static void
meet(void)
{
	side_connect(from, to);
	side_connect(to, from);
	for (unsigned i = 0; i < SIDES * WARM; i++) {
		struct side *s = &side[i % SIDES];

		send_len(s, 8);
		finish(ucp_tag_recv_nbx(side[1 - i % SIDES].worker, s->buf, 8, TAG, UINT64_MAX, &plain));
	}
	settle();
}

static void
close_eps(void)
{
	void *closing[SIDES];

	for (unsigned i = 0; i < SIDES; i++)
		closing[i] = ucp_ep_close_nbx(side[i].ep, &plain);
	for (unsigned i = 0; i < SIDES; i++)
		finish(closing[i]);
}

static void
run_rows(const struct icount_row *rows, ucs_thread_mode_t mode, bool maps)
{
	side_open(from, mode);
	side_open(to, mode);
	meet();
	if (maps)
		mem_open();
	device_plain();
	icount_mark(ICOUNT_CLOCK, NULL);
	settle();
	icount_rows(rows);
	if (maps)
		mem_close();
	close_eps();
}

/* -- with a reactor: it is held before a turn of 1's worker, behind which 0's has one -- */

static void
turn(const char *name)
{
	icount_mark(ICOUNT_TURN, name);
	icount_mark(ICOUNT_TURN, NULL);
}

/* All that was posted is complete, and delivered. */
static void
reactor_settle(void)
{
	for (unsigned i = turns_between(); i > 0; i--) {
		turn(NULL);
		ucp_worker_progress(from->worker);
		ucp_worker_progress(to->worker);
	}
}

static void
reactor_finish(void *request)
{
	if (UCS_PTR_IS_ERR(request))
		must(UCS_PTR_STATUS(request), "a call");
	if (request == NULL)
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS) {
		turn(NULL);
		ucp_worker_progress(from->worker);
		ucp_worker_progress(to->worker);
	}
	must(ucp_request_check_status(request), "a request");
	ucp_request_free(request);
}

/* 1 counts itself here, with what it sends to 0. */
static void
reactor_sends(void)
{
	void *recv = ucp_tag_recv_nbx(from->worker, from->buf, 8, TAG, UINT64_MAX, &plain);

	reactor_settle();
	icount_mark(ICOUNT_BEGIN, "tag_send_nbx 8 B");
	req = ucp_tag_send_nbx(to->ep, to->buf, 8, TAG, &plain);
	icount_mark(ICOUNT_END, NULL);
	turn("turn, tag_send_nbx 8 B was posted");
	reactor_finish(req);
	reactor_finish(recv);
	reactor_settle();
	icount_mark(ICOUNT_BEGIN, "am_send_nbx 8 B");
	req = ucp_am_send_nbx(to->ep, 1, NULL, 0, to->buf, 8, &plain);
	icount_mark(ICOUNT_END, NULL);
	turn("turn, am_send_nbx 8 B was posted");
	reactor_finish(req);
	reactor_settle();
}

static void
reactor_receives(void)
{
	icount_mark(ICOUNT_BEGIN, "tag_recv_nbx, posts");
	req = ucp_tag_recv_nbx(to->worker, to->buf, 8, TAG, UINT64_MAX, &told);
	icount_mark(ICOUNT_END, NULL);
	turn("turn, tag_recv_nbx was posted");
	reactor_settle();
	n_got = 0;
	reactor_finish(ucp_tag_send_nbx(from->ep, from->buf, 8, TAG, &plain));
	if (n_got == 0)
		turn(NULL); /* 0's worker sends */
	turn("turn, 8 B for a posted receive");
	icount_mark(ICOUNT_BEGIN, "progress, 8 B for a posted receive");
	ucp_worker_progress(to->worker);
	icount_mark(ICOUNT_END, NULL);
	while (n_got == 0) {
		turn(NULL);
		ucp_worker_progress(to->worker);
	}
	icount_mark(ICOUNT_BEGIN, "request_free");
	ucp_request_free(req);
	icount_mark(ICOUNT_END, NULL);
	reactor_settle();
	n_am = 0;
	req = ucp_am_send_nbx(from->ep, 1, NULL, 0, from->buf, 8, &plain);
	turn(NULL);
	turn("turn, 8 B active message");
	icount_mark(ICOUNT_BEGIN, "progress, 8 B active message");
	ucp_worker_progress(to->worker);
	icount_mark(ICOUNT_END, NULL);
	reactor_finish(req);
	reactor_settle();
}

/* On memory that is mapped the application does it itself. */
static void
reactor_reaches(void)
{
	static const struct {
		const char *name;
		void (*call)(void);
	} rows[] = {
		{"put_nbx 8 B, mapped", call_put_8},
		{"get_nbx 8 B, mapped", call_get_8},
		{"atomic add 64, mapped", call_add},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		icount_mark(ICOUNT_BEGIN, rows[i].name);
		rows[i].call();
		icount_mark(ICOUNT_END, NULL);
		reactor_finish(req);
	}
}

static void
reactor_rests(void)
{
	turn("turn, nothing");
	icount_mark(ICOUNT_BEGIN, "progress, nothing");
	ucp_worker_progress(to->worker);
	icount_mark(ICOUNT_END, NULL);
}

static void
run_reactor(ucs_thread_mode_t mode)
{
	side_open(from, mode);
	icount_mark(ICOUNT_HOLD, "0"); /* there is no other worker yet: it is known from now on */
	icount_mark(ICOUNT_LET, NULL);
	side_open(to, mode);
	meet();
	mem_open();
	icount_mark(ICOUNT_CLOCK, NULL);
	icount_mark(ICOUNT_HOLD, "1");
	reactor_settle();
	for (unsigned i = 0; i < ICOUNT_REPEATS; i++) {
		reactor_sends();
		reactor_receives();
		reactor_reaches();
		reactor_rests();
	}
	icount_mark(ICOUNT_LET, NULL);
	mem_close();
	close_eps();
}

static void
usage(void)
{
	fprintf(stderr, "usage: icount OUT HOLD ucp_calls all|network|reactor single|serialized|multi\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	static const char *const modes[] = {"single", "serialized", "multi"};
	unsigned mode = 0;

	if (argc != 3 || getenv("ICOUNT") == NULL)
		usage();
	while (mode <= UCS_THREAD_MODE_MULTI && strcmp(argv[2], modes[mode]) != 0)
		mode++;
	if (mode > UCS_THREAD_MODE_MULTI)
		usage();
	if (strcmp(argv[1], "all") == 0)
		run_rows(rows_all, mode, true);
	else if (strcmp(argv[1], "network") == 0)
		run_rows(rows_network, mode, false);
	else if (strcmp(argv[1], "reactor") == 0)
		run_reactor(mode);
	else
		usage();
	side_close(from);
	side_close(to);
	return 0;
}

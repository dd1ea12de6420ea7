/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_cm.c - listeners, eps by socket address, closing, and peers that die
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "ucp_api_test.h"

/* A listener's side (node 0 of the pair) and a client's (node 1). */
struct cs {
	struct pair p;
	ucp_listener_h l;
	struct sockaddr_storage addr;
	ucp_conn_request_h req; /* the last that came */
	int n_reqs, n_accepts;
	int n_err[2];
	ucs_status_t err[2];
	ucp_ep_h err_ep[2];
	bool reject;
	void (*on_request)(ucp_conn_request_h r, void *arg); /* NULL: as below */
	void (*on_error_0)(void *arg, ucp_ep_h ep, ucs_status_t status);
};

static void
on_request(ucp_conn_request_h r, void *arg)
{
	struct cs *s = arg;

	s->n_reqs++;
	if (!s->reject) {
		s->req = r;
		return;
	}
	CU_ASSERT_EQUAL(ucp_listener_reject(s->l, r), UCS_OK);
}

static void
on_accept(ucp_ep_h ep, void *arg)
{
	struct cs *s = arg;

	s->n_accepts++;
	s->p.n[0].ep = ep;
}

static void
on_error(struct cs *s, int side, ucp_ep_h ep, ucs_status_t status)
{
	s->n_err[side]++;
	s->err[side] = status;
	s->err_ep[side] = ep;
}

static void
on_error_0(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	on_error(arg, 0, ep, status);
}

static void
on_error_1(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	on_error(arg, 1, ep, status);
}

static socklen_t
sockaddr(struct sockaddr_storage *a, const char *text, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a;

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	inet_pton(AF_INET6, text, &in6->sin6_addr);
	return sizeof(*in6);
}

static uint16_t
port_of(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
					     : ((const struct sockaddr_in6 *)a)->sin6_port);
}

static ucs_status_t
listen_on(struct cs *s, const char *text, bool accept)
{
	struct sockaddr_storage a;
	ucp_listener_params_t params;
	ucp_listener_attr_t attr;
	ucs_status_t status;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		(accept ? UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER
			: UCP_LISTENER_PARAM_FIELD_CONN_HANDLER);
	params.sockaddr.addrlen = sockaddr(&a, text, 0);
	params.sockaddr.addr = (struct sockaddr *)&a;
	if (accept) {
		params.accept_handler.cb = on_accept;
		params.accept_handler.arg = s;
	} else {
		params.conn_handler.cb = s->on_request != NULL ? s->on_request : on_request;
		params.conn_handler.arg = s;
	}
	status = ucp_listener_create(s->p.n[0].w, &params, &s->l);
	if (status != UCS_OK)
		return status;
	attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
	CU_ASSERT_EQUAL(ucp_listener_query(s->l, &attr), UCS_OK);
	s->addr = attr.sockaddr;
	CU_ASSERT_NOT_EQUAL(port_of(&s->addr), 0);
	return UCS_OK;
}

static void
cs_open_with(struct cs *s, bool one_context, ucs_thread_mode_t mode, const char *name,
	const char *value)
{
	int i;

	memset(s, 0, sizeof(*s));
	s->p.one_context = one_context;
	for (i = 0; i < 2; i++) {
		s->p.n[i].ctx = i == 1 && one_context ? s->p.n[0].ctx
			: util_context_with(UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM |
				UCP_FEATURE_WAKEUP, name, value);
		s->p.n[i].w = util_worker(s->p.n[i].ctx, mode);
		UTIL_OK(ucp_worker_get_address(s->p.n[i].w, &s->p.n[i].addr, &s->p.n[i].addr_len));
	}
}

static void
cs_open_mode(struct cs *s, bool one_context, ucs_thread_mode_t mode)
{
	cs_open_with(s, one_context, mode, NULL, NULL);
}

/* Where listeners are, of tests that are not about that. */
static const char *
address(void)
{
	const char *text = getenv("UCP_TEST_ADDRESS");

	return text != NULL ? text : "127.0.0.1";
}

static void
cs_open(struct cs *s)
{
	cs_open_mode(s, false, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL_FATAL(listen_on(s, address(), false), UCS_OK);
}

static void
cs_close(struct cs *s)
{
	if (s->l != NULL)
		ucp_listener_destroy(s->l);
	util_pair_close(&s->p);
}

static void
client_params(struct cs *s, ucp_ep_params_t *params)
{
	memset(params, 0xa5, sizeof(*params));
	params->field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
		UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params->flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
	params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params->err_handler.cb = on_error_1;
	params->err_handler.arg = s;
	params->sockaddr.addr = (struct sockaddr *)&s->addr;
	params->sockaddr.addrlen = s->addr.ss_family == AF_INET ? sizeof(struct sockaddr_in)
								: sizeof(struct sockaddr_in6);
}

static void
client(struct cs *s)
{
	ucp_ep_params_t params;

	client_params(s, &params);
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(s->p.n[1].w, &params, &s->p.n[1].ep), UCS_OK);
}

static ucs_status_t
accept_request(struct cs *s, ucp_worker_h w, ucp_ep_h *ep)
{
	ucp_ep_params_t params;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.conn_request = s->req;
	params.err_handler.cb = s->on_error_0 != NULL ? s->on_error_0 : on_error_0;
	params.err_handler.arg = s;
	return ucp_ep_create(w, &params, ep);
}

static void
server(struct cs *s)
{
	CU_ASSERT_FATAL(UTIL_UNTIL(&s->p, s->req != NULL));
	CU_ASSERT_EQUAL_FATAL(accept_request(s, s->p.n[0].w, &s->p.n[0].ep), UCS_OK);
	s->req = NULL;
}

static void
connect_both(struct cs *s)
{
	client(s);
	server(s);
}

/* Close node i's ep and forget it. */
static void
close_ep(struct cs *s, int i, unsigned flags)
{
	ucp_ep_h ep = s->p.n[i].ep;

	s->p.n[i].ep = NULL;
	CU_ASSERT(util_ep_close(&s->p, ep, flags));
}

static void
listener_wants_an_address_and_one_handler(void)
{
	ucp_listener_params_t params;
	struct sockaddr_storage a;
	ucp_listener_h l;
	struct cs s;

	cs_open_mode(&s, false, UCS_THREAD_MODE_SINGLE);
	memset(&params, 0, sizeof(params));
	params.sockaddr.addrlen = sockaddr(&a, "127.0.0.1", 0);
	params.sockaddr.addr = (struct sockaddr *)&a;
	params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR;
	CU_ASSERT_EQUAL(ucp_listener_create(s.p.n[0].w, &params, &l), UCS_ERR_INVALID_PARAM);
	params.conn_handler.cb = on_request;
	params.accept_handler.cb = on_accept;
	params.field_mask |= UCP_LISTENER_PARAM_FIELD_CONN_HANDLER |
		UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
	CU_ASSERT_EQUAL(ucp_listener_create(s.p.n[0].w, &params, &l), UCS_ERR_INVALID_PARAM);
	params.field_mask = UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
	CU_ASSERT_EQUAL(ucp_listener_create(s.p.n[0].w, &params, &l), UCS_ERR_INVALID_PARAM);
	params.field_mask |= UCP_LISTENER_PARAM_FIELD_SOCK_ADDR;
	params.sockaddr.addrlen = 4;
	CU_ASSERT_EQUAL(ucp_listener_create(s.p.n[0].w, &params, &l), UCS_ERR_INVALID_PARAM);
	cs_close(&s);
}

static void
two_listeners_on_one_port_are_refused(void)
{
	ucp_listener_params_t params;
	ucp_listener_h l;
	struct cs s;

	cs_open(&s);
	memset(&params, 0, sizeof(params));
	params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
	params.sockaddr.addr = (struct sockaddr *)&s.addr;
	params.sockaddr.addrlen = sizeof(struct sockaddr_in);
	params.conn_handler.cb = on_request;
	CU_ASSERT_EQUAL(ucp_listener_create(s.p.n[1].w, &params, &l), UCS_ERR_BUSY);
	cs_close(&s);
}

/* A number that ucp_worker_print_info() shows of a worker; the sum, if several of its parts have it. */
static long
shown(ucp_worker_h w, const char *name)
{
	char *text = NULL, *at;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	long n = -1;

	ucp_worker_print_info(w, f);
	fclose(f);
	for (at = text; (at = strstr(at, name)) != NULL; at += strlen(name))
		n = (n < 0 ? 0 : n) + strtol(at + strlen(name), NULL, 10);
	free(text);
	return n;
}

/* UCP_TEST_BY_DEVICE: by the devices' manager of connections; else by TCP. */
static void
client_and_server_meet_the_way_that_is_set(void)
{
	long by_device = getenv("UCP_TEST_BY_DEVICE") != NULL;
	struct cs s;

	cs_open(&s);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	CU_ASSERT_EQUAL(shown(s.p.n[0].w, " accepts "), 1);
	CU_ASSERT_EQUAL(shown(s.p.n[1].w, " connects "), 1);
	CU_ASSERT_EQUAL(shown(s.p.n[0].w, " dev_accepts "), by_device);
	CU_ASSERT_EQUAL(shown(s.p.n[1].w, " dev_connects "), by_device);
	CU_ASSERT_EQUAL(shown(s.p.n[1].w, " dev_falls "), 0);
	cs_close(&s);
}

static void
client_and_server_meet_at(const char *listen_text, const char *connect_text)
{
	struct cs s;

	cs_open_mode(&s, false, UCS_THREAD_MODE_SINGLE);
	if (listen_on(&s, listen_text, false) != UCS_OK) { /* no such protocol here */
		printf("(no %s) ", listen_text);
		cs_close(&s);
		return;
	}
	sockaddr(&s.addr, connect_text, port_of(&s.addr));
	connect_both(&s);
	exchange(&s.p, 0, 8, 1, true, UTIL_NBX);
	exchange(&s.p, 1, 8, 2, true, UTIL_NBX);
	cs_close(&s);
}

static void
client_and_server_meet_by_every_kind_of_address(void)
{
	client_and_server_meet_at("127.0.0.1", "127.0.0.1");
	client_and_server_meet_at("0.0.0.0", "127.0.0.1");
	client_and_server_meet_at("::1", "::1");
	client_and_server_meet_at("::", "::1");
	client_and_server_meet_at("::", "127.0.0.1");
}

static void
messages_of_every_length_go_both_ways(void)
{
	struct cs s;
	size_t i;

	cs_open(&s);
	connect_both(&s);
	for (i = 0; i < N_SIZES; i++) {
		exchange(&s.p, 0, sizes[i], i, true, UTIL_NBX);
		exchange(&s.p, 1, sizes[i], i, false, UTIL_NBX);
		exchange(&s.p, 1, sizes[i], i, true, UTIL_SYNC);
	}
	cs_close(&s);
}

/* What a call names more than once is taken as UCX takes it: flag, request, address. */
static void
ep_is_made_by_the_first_of_its_ways(void)
{
	ucp_ep_params_t params;
	struct cs s;

	cs_open(&s);
	client_params(&s, &params);
	params.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
	params.address = s.p.n[1].addr; /* the flag is set: this is not looked at */
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(s.p.n[1].w, &params, &s.p.n[1].ep), UCS_OK);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
	server(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	cs_close(&s);

	cs_open(&s);
	client_params(&s, &params);
	params.flags = 0;
	params.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
	params.address = s.p.n[0].addr; /* it is not: the socket address is not looked at */
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(s.p.n[1].w, &params, &s.p.n[1].ep), UCS_OK);
	s.p.n[0].ep = util_ep(s.p.n[0].w, s.p.n[1].addr);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	CU_ASSERT_PTR_NULL(s.req);
	cs_close(&s);
}

static void
client_ep_wants_its_flag_and_an_address(void)
{
	ucp_ep_params_t params;
	struct cs s;
	ucp_ep_h ep;

	cs_open(&s);
	client_params(&s, &params);
	params.flags = 0;
	CU_ASSERT_EQUAL(ucp_ep_create(s.p.n[1].w, &params, &ep), UCS_ERR_INVALID_PARAM);
	client_params(&s, &params);
	params.field_mask &= ~(uint64_t)UCP_EP_PARAM_FIELD_FLAGS;
	CU_ASSERT_EQUAL(ucp_ep_create(s.p.n[1].w, &params, &ep), UCS_ERR_INVALID_PARAM);
	client_params(&s, &params);
	params.sockaddr.addrlen = 1;
	CU_ASSERT_EQUAL(ucp_ep_create(s.p.n[1].w, &params, &ep), UCS_ERR_INVALID_PARAM);
	cs_close(&s);
}

#define N_EARLY 60

static void
sends_before_the_connection_go_out_in_order(void)
{
	static uint8_t out[N_EARLY][32], in[32];
	static uint8_t big[200000], big_in[200000];
	struct op send[N_EARLY], recv;
	struct cs s;
	int i;

	cs_open(&s);
	client(&s);
	util_fill(big, sizeof(big), 9);
	for (i = 0; i < N_EARLY; i++) {
		memset(out[i], i, sizeof(out[i]));
		if (i % 10 == 9)
			util_send(&send[i], s.p.n[1].ep, big, sizeof(big), 5, UTIL_NBX);
		else
			util_send(&send[i], s.p.n[1].ep, out[i], sizeof(out[i]), 5,
				i % 3 == 0 ? UTIL_SYNC : i % 3 == 1 ? UTIL_NO_IMM : UTIL_NBX);
		CU_ASSERT_EQUAL(send[i].n_inside, 0);
		CU_ASSERT(!util_done(&send[i]) || util_on_ucx);
	}
	server(&s);
	for (i = 0; i < N_EARLY; i++) {
		bool is_big = i % 10 == 9;

		util_recv(&recv, s.p.n[0].w, is_big ? big_in : in, is_big ? sizeof(big) : 32, 5,
			UTIL_ALL_BITS, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, util_done(&recv)));
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.status, UCS_OK);
		CU_ASSERT_EQUAL(recv.info.length, is_big ? sizeof(big) : 32);
		CU_ASSERT(is_big ? util_check(big_in, sizeof(big), 9) : in[0] == i);
	}
	for (i = 0; i < N_EARLY; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, util_done(&send[i])));
		util_free(&send[i]);
		CU_ASSERT_EQUAL(send[i].status, UCS_OK);
	}
	cs_close(&s);
}

static void
worker_flush_covers_eps_that_connect(void)
{
	ucp_request_param_t param = {.op_attr_mask = 0};
	uint64_t out = 3, in = 0;
	struct op send, recv;
	struct cs s;
	void *req;

	cs_open(&s);
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	req = ucp_worker_flush_nbx(s.p.n[1].w, &param);
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
	UTIL_FOR_MS(&s.p, 20);
	CU_ASSERT_EQUAL(ucp_request_check_status(req), UCS_INPROGRESS);
	server(&s);
	CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(req) == UCS_OK));
	ucp_request_free(req);
	util_recv(&recv, s.p.n[0].w, &in, 8, 5, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, util_done(&recv) && util_done(&send)));
	util_free(&send);
	util_free(&recv);
	CU_ASSERT_EQUAL(in, 3);
	cs_close(&s);
}

static void
accept_handler_gets_an_ep_that_works(void)
{
	struct cs s;

	cs_open_mode(&s, false, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL_FATAL(listen_on(&s, address(), true), UCS_OK);
	client(&s);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.n_accepts != 0));
	CU_ASSERT_EQUAL(s.n_accepts, 1);
	exchange(&s.p, 0, 1000, 1, true, UTIL_NBX);
	exchange(&s.p, 1, 100000, 1, true, UTIL_NBX);
	cs_close(&s);
}

static void
request_tells_the_client_and_its_id(void)
{
	ucp_worker_params_t wp;
	ucp_conn_request_attr_t attr;
	ucp_ep_params_t params;
	ucp_ep_attr_t ea;
	ucp_worker_h w;
	struct cs s;

	cs_open(&s);
	memset(&wp, 0xa5, sizeof(wp));
	wp.field_mask = UCP_WORKER_PARAM_FIELD_CLIENT_ID;
	wp.client_id = 0x1234567890abcdefu;
	CU_ASSERT_EQUAL_FATAL(ucp_worker_create(s.p.n[1].ctx, &wp, &w), UCS_OK);
	ucp_worker_release_address(s.p.n[1].w, s.p.n[1].addr);
	ucp_worker_destroy(s.p.n[1].w);
	s.p.n[1].w = w;
	UTIL_OK(ucp_worker_get_address(w, &s.p.n[1].addr, &s.p.n[1].addr_len));
	client_params(&s, &params);
	params.flags |= UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(w, &params, &s.p.n[1].ep), UCS_OK);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
	memset(&attr, 0, sizeof(attr));
	attr.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR |
		UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID;
	CU_ASSERT_EQUAL(ucp_conn_request_query(s.req, &attr), UCS_OK);
	CU_ASSERT_EQUAL(attr.client_id, 0x1234567890abcdefu);
	CU_ASSERT_EQUAL(attr.client_address.ss_family, AF_INET);
	/* a client's addresses are known before it is accepted */
	ea.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
	CU_ASSERT_EQUAL(ucp_ep_query(s.p.n[1].ep, &ea), UCS_OK);
	CU_ASSERT_EQUAL(port_of(&ea.remote_sockaddr), port_of(&s.addr));
	CU_ASSERT_EQUAL(port_of(&ea.local_sockaddr), port_of(&attr.client_address));
	server(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	ea.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
	CU_ASSERT_EQUAL(ucp_ep_query(s.p.n[1].ep, &ea), UCS_OK);
	CU_ASSERT_EQUAL(port_of(&ea.remote_sockaddr), port_of(&s.addr));
	CU_ASSERT_EQUAL(port_of(&ea.local_sockaddr), port_of(&attr.client_address));
	CU_ASSERT_EQUAL(ucp_ep_query(s.p.n[0].ep, &ea), UCS_OK);
	CU_ASSERT_EQUAL(port_of(&ea.local_sockaddr), port_of(&s.addr));
	CU_ASSERT_EQUAL(port_of(&ea.remote_sockaddr), port_of(&attr.client_address));
	cs_close(&s);
}

static void
client_binds_to_the_local_address_given(void)
{
	struct sockaddr_storage local;
	ucp_conn_request_attr_t attr;
	ucp_ep_params_t params;
	struct cs s;

	cs_open(&s);
	client_params(&s, &params);
	params.field_mask |= UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
	params.local_sockaddr.addrlen = sockaddr(&local, "127.0.0.2", 0);
	params.local_sockaddr.addr = (struct sockaddr *)&local;
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(s.p.n[1].w, &params, &s.p.n[1].ep), UCS_OK);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
	attr.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
	CU_ASSERT_EQUAL(ucp_conn_request_query(s.req, &attr), UCS_OK);
	CU_ASSERT_EQUAL(((struct sockaddr_in *)&attr.client_address)->sin_addr.s_addr,
		((struct sockaddr_in *)&local)->sin_addr.s_addr);
	server(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	cs_close(&s);
}

static void
stashed_request_is_accepted_later_by_another_worker(void)
{
	ucp_worker_h other;
	uint64_t out = 5, in = 0;
	struct op send, recv;
	struct cs s;
	ucp_ep_h ep;
	void *close;

	cs_open(&s);
	other = util_worker(s.p.n[0].ctx, UCS_THREAD_MODE_SINGLE);
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
	UTIL_FOR_MS(&s.p, 100);
	ucp_listener_destroy(s.l); /* the request does without */
	s.l = NULL;
	CU_ASSERT_EQUAL_FATAL(accept_request(&s, other, &ep), UCS_OK);
	util_recv(&recv, other, &in, 8, 5, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT(UTIL_UNTIL(&s.p, (ucp_worker_progress(other), util_done(&recv) &&
		util_done(&send))));
	CU_ASSERT_EQUAL(in, 5);
	util_free(&send);
	util_free(&recv);
	close = ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);
	if (UCS_PTR_IS_PTR(close)) {
		CU_ASSERT(UTIL_UNTIL(&s.p, (ucp_worker_progress(other),
			ucp_request_check_status(close) != UCS_INPROGRESS)));
		ucp_request_free(close);
	}
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_err[1] == 1));
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_CONNECTION_RESET);
	close_ep(&s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	ucp_worker_destroy(other);
	cs_close(&s);
}

static void
a_flush_of_the_worker_waits_for_a_put_that_waits_for_the_connection(void)
{
	static uint8_t from[4 * MIB], to[sizeof(from)];
	const ucp_request_param_t none = {.op_attr_mask = 0};
	ucp_mem_map_params_t params;
	ucs_status_ptr_t flush;
	ucp_rkey_h rkey;
	size_t blob_len;
	ucp_mem_h mem;
	void *blob;
	struct cs s;

	cs_open(&s);
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
	params.address = to;
	params.length = sizeof(to);
	memset(to, 0, sizeof(to));
	util_fill(from, sizeof(from), 1);
	UTIL_OK(ucp_mem_map(s.p.n[0].ctx, &params, &mem));
	UTIL_OK(ucp_rkey_pack(s.p.n[0].ctx, mem, &blob, &blob_len));
	client(&s);
	UTIL_OK(ucp_ep_rkey_unpack(s.p.n[1].ep, blob, &rkey));
	CU_ASSERT(!UCS_STATUS_IS_ERR(ucp_put_nbi(s.p.n[1].ep, from, sizeof(from), (uintptr_t)to, rkey)));
	flush = ucp_worker_flush_nbx(s.p.n[1].w, &none);
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(flush));
	server(&s);
	CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(flush) != UCS_INPROGRESS));
	CU_ASSERT_EQUAL(ucp_request_check_status(flush), UCS_OK);
	CU_ASSERT(util_check(to, sizeof(to), 1));
	ucp_request_free(flush);
	ucp_rkey_destroy(rkey);
	ucp_rkey_buffer_release(blob);
	close_ep(&s, 1, 0);
	UTIL_OK(ucp_mem_unmap(s.p.n[0].ctx, mem));
	cs_close(&s);
}

/* What an active message told its handler. */
struct am_seen {
	int n;
	ucp_ep_h reply;
};

static ucs_status_t
am_seen(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	struct am_seen *a = arg;

	(void)header;
	(void)header_length;
	(void)data;
	(void)length;
	a->n++;
	a->reply = param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP ? param->reply_ep : NULL;
	return UCS_OK;
}

static void
am_handler(ucp_worker_h w, struct am_seen *a)
{
	ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = 5, .cb = am_seen, .arg = a};

	memset(a, 0, sizeof(*a));
	UTIL_OK(ucp_worker_set_am_recv_handler(w, &param));
}

static void
am_post(struct op *op, ucp_ep_h ep, const void *buf, size_t len, uint32_t flags)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS, .cb.send = util_sent,
		.user_data = op, .flags = flags};
	void *ret;

	memset(op, 0, sizeof(*op));
	ret = ucp_am_send_nbx(ep, 5, NULL, 0, buf, len, &param);
	op->immediate = !UCS_PTR_IS_PTR(ret);
	if (op->immediate)
		op->status = UCS_PTR_STATUS(ret);
	else
		op->req = ret;
}

/* A handler that relies on its reply ep must not be called without: io_demo dereferences it. */
static void
am_that_wants_an_answer_of_a_closed_ep_is_dropped(void)
{
	static uint8_t buf[100 * KIB];
	static const struct {
		uint32_t flags;
		size_t len;
	} ways[] = {{UCP_AM_SEND_FLAG_REPLY, 8}, {UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER, 20000},
		{UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_RNDV, sizeof(buf)},
		{UCP_AM_SEND_FLAG_RNDV, sizeof(buf)}};
	struct am_seen seen;
	struct op op;
	struct cs s;
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
			.flags = UCP_EP_CLOSE_FLAG_FORCE};
		ucp_ep_h ep;
		void *req;

		cs_open(&s);
		am_handler(s.p.n[0].w, &seen);
		connect_both(&s);
		exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
		am_post(&op, s.p.n[1].ep, buf, 8, UCP_AM_SEND_FLAG_REPLY);
		CU_ASSERT(UTIL_UNTIL(&s.p, util_done(&op) && seen.n == 1));
		CU_ASSERT_EQUAL(seen.reply, s.p.n[0].ep);
		util_free(&op);
		ep = s.p.n[0].ep;
		s.p.n[0].ep = NULL;
		req = ucp_ep_close_nbx(ep, &force);
		CU_ASSERT(!UCS_PTR_IS_ERR(req));
		am_post(&op, s.p.n[1].ep, buf, ways[i].len, ways[i].flags);
		/* with a reactor the sender may hear of the end before it sends */
		CU_ASSERT(UTIL_UNTIL(&s.p, util_done(&op) && (op.status == UCS_ERR_CONNECTION_RESET ||
			shown(s.p.n[0].w, " rx_drop_closed ") == 1)));
		CU_ASSERT_EQUAL(seen.n, 1);
		CU_ASSERT((ways[i].flags & UCP_AM_SEND_FLAG_RNDV) == 0 || op.status != UCS_OK);
		util_free(&op);
		if (req != NULL) {
			CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(req) != UCS_INPROGRESS));
			ucp_request_free(req);
		}
		cs_close(&s);
	}
}

/* The same for eps by address: what is announced on a closed one is cancelled, and nothing hangs. */
static void
announced_am_of_a_closed_ep_is_cancelled(void)
{
	static uint8_t buf[100 * KIB];
	struct am_seen seen;
	struct op op;
	struct pair p;
	ucp_ep_h ep;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	am_handler(p.n[0].w, &seen);
	am_post(&op, p.n[1].ep, buf, 8, 0);
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&op) && seen.n == 1));
	util_free(&op);
	ep = p.n[0].ep;
	p.n[0].ep = NULL;
	CU_ASSERT(util_ep_close(&p, ep, 0));
	am_post(&op, p.n[1].ep, buf, sizeof(buf), UCP_AM_SEND_FLAG_RNDV);
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&op)));
	CU_ASSERT_EQUAL(op.status, UCS_ERR_CANCELED);
	CU_ASSERT_EQUAL(seen.n, 1);
	util_free(&op);
	am_post(&op, p.n[1].ep, buf, 8, 0); /* one that needs nothing of the ep comes */
	CU_ASSERT(UTIL_UNTIL(&p, util_done(&op) && seen.n == 2));
	util_free(&op);
	util_pair_close(&p);
}

/* As Python's os.fork() and sys.exit() do: destructors run in the child. */
static void
clean_up_in_child(struct cs *s, ucp_mem_h memh, ucp_rkey_h rkey)
{
	void *req;

	alarm(20);
	for (int i = 0; i < 100; i++)
		ucp_worker_progress(s->p.n[i & 1].w);
	for (int i = 0; i < 2; i++) {
		req = ucp_worker_flush_nb(s->p.n[i].w, 0, NULL);
		if (req != NULL)
			_exit(2);
		if (ucp_ep_close_nb(s->p.n[i].ep, UCP_EP_CLOSE_MODE_FLUSH) != NULL)
			_exit(3);
	}
	ucp_rkey_destroy(rkey);
	ucp_mem_unmap(s->p.n[0].ctx, memh);
	ucp_listener_destroy(s->l);
	for (int i = 0; i < 2; i++)
		ucp_worker_destroy(s->p.n[i].w);
	ucp_cleanup(s->p.n[0].ctx);
	exit(0); /* with what runs at the exit */
}

static void
forked_child_that_cleans_up_harms_nobody(void)
{
	ucp_mem_map_params_t mp = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
		UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = 4096, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_ep_params_t params;
	ucp_rkey_h rkey;
	ucp_ep_h first[2];
	ucp_mem_h memh;
	size_t len;
	void *buf;
	struct cs s;
	int status;
	pid_t pid;

	cs_open(&s);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	UTIL_OK(ucp_mem_map(s.p.n[0].ctx, &mp, &memh));
	UTIL_OK(ucp_rkey_pack(s.p.n[0].ctx, memh, &buf, &len));
	UTIL_OK(ucp_ep_rkey_unpack(s.p.n[1].ep, buf, &rkey));
	ucp_rkey_buffer_release(buf);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		clean_up_in_child(&s, memh, rkey);
	CU_ASSERT_FATAL(pid > 0);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (size_t i = 0; i < 2; i++) /* what was connected goes on */
		exchange(&s.p, i, 100 * KIB, 1, true, UTIL_NBX);
	ucp_rkey_destroy(rkey);
	UTIL_OK(ucp_mem_unmap(s.p.n[0].ctx, memh));
	for (size_t i = 0; i < 2; i++)
		first[i] = s.p.n[i].ep;
	s.req = NULL; /* the listener hears new clients */
	client_params(&s, &params);
	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(s.p.n[1].w, &params, &s.p.n[1].ep), UCS_OK);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
	server(&s);
	exchange(&s.p, 1, 8, 2, true, UTIL_NBX);
	for (size_t i = 0; i < 2; i++)
		CU_ASSERT(util_ep_close(&s.p, first[i], 0));
	cs_close(&s);
}

/* By memory it may come before the acceptance, which comes by a socket. */
static void
am_at_once_from_a_server_has_the_ep_that_answers(void)
{
	struct am_seen seen[2];
	uint8_t buf[8] = {0};
	struct op op[2];
	struct cs s;
	int i;

	for (i = 0; i < 20; i++) {
		cs_open(&s);
		am_handler(s.p.n[0].w, &seen[0]);
		am_handler(s.p.n[1].w, &seen[1]);
		client(&s);
		CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
		CU_ASSERT_EQUAL_FATAL(accept_request(&s, s.p.n[0].w, &s.p.n[0].ep), UCS_OK);
		am_post(&op[0], s.p.n[0].ep, buf, sizeof(buf), UCP_AM_SEND_FLAG_REPLY);
		CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, util_done(&op[0]) && seen[1].n == 1));
		CU_ASSERT_EQUAL_FATAL(seen[1].reply, s.p.n[1].ep);
		am_post(&op[1], seen[1].reply, buf, sizeof(buf), UCP_AM_SEND_FLAG_REPLY);
		CU_ASSERT(UTIL_UNTIL(&s.p, util_done(&op[1]) && seen[0].n == 1));
		CU_ASSERT_EQUAL(seen[0].reply, s.p.n[0].ep);
		CU_ASSERT_EQUAL(op[1].status, UCS_OK);
		util_free(&op[0]);
		util_free(&op[1]);
		cs_close(&s);
	}
}

static void
rejected_client_learns_it_once(void)
{
	uint64_t out = 5;
	struct op send, late;
	struct cs s;

	cs_open(&s);
	s.reject = true;
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.n_err[1] != 0 && util_done(&send)));
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_REJECTED);
	CU_ASSERT_EQUAL(send.status, UCS_ERR_REJECTED);
	CU_ASSERT_PTR_EQUAL(s.err_ep[1], s.p.n[1].ep);
	util_free(&send);
	util_send(&late, s.p.n[1].ep, &out, 8, 5, UTIL_NO_IMM);
	CU_ASSERT(late.immediate && late.status != UCS_OK);
	UTIL_FOR_MS(&s.p, 50);
	CU_ASSERT_EQUAL(s.n_err[1], 1);
	close_ep(&s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	cs_close(&s);
}

static void
nobody_listening_is_an_error(void)
{
	uint64_t out = 5;
	struct op send;
	struct cs s;

	cs_open(&s);
	ucp_listener_destroy(s.l);
	s.l = NULL;
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.n_err[1] != 0 && util_done(&send)));
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_UNREACHABLE);
	CU_ASSERT_EQUAL(send.status, UCS_ERR_UNREACHABLE);
	util_free(&send);
	close_ep(&s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	cs_close(&s);
}

static void
server_has_the_error_mode_of_its_client(void)
{
	ucp_ep_params_t params;
	struct cs s;
	ucp_ep_h ep;

	cs_open(&s);
	client(&s);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.req != NULL));
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
	params.conn_request = s.req;
	params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
	CU_ASSERT_EQUAL(ucp_ep_create(s.p.n[0].w, &params, &ep), UCS_ERR_UNSUPPORTED);
	server(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	close_ep(&s, 0, UCP_EP_CLOSE_FLAG_FORCE); /* which mode NONE refuses */
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_err[1] == 1));
	CU_ASSERT_EQUAL(s.n_err[0], 0);
	cs_close(&s);
}

/* Node i closes; the other learns it once, after all messages. */
static void
close_tells(int i, unsigned flags)
{
	uint64_t out[50], in;
	struct op send[50], recv;
	struct cs s;
	int k;

	cs_open(&s);
	connect_both(&s);
	exchange(&s.p, i, 8, 1, true, UTIL_NBX);
	for (k = 0; k < 50; k++) {
		out[k] = k;
		util_send(&send[k], s.p.n[i].ep, &out[k], 8, 5, UTIL_NBX);
	}
	CU_ASSERT(UTIL_UNTIL(&s.p, util_done(&send[49])));
	close_ep(&s, i, flags);
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_err[!i] != 0));
	CU_ASSERT_EQUAL(s.err[!i], UCS_ERR_CONNECTION_RESET);
	CU_ASSERT_PTR_EQUAL(s.err_ep[!i], s.p.n[!i].ep);
	for (k = 0; k < 50; k++) {
		util_recv(&recv, s.p.n[!i].w, &in, 8, 5, UTIL_ALL_BITS, UTIL_NBX);
		CU_ASSERT(util_done(&recv) || UTIL_UNTIL(&s.p, util_done(&recv)));
		CU_ASSERT_EQUAL(in, (uint64_t)k);
		util_free(&recv);
		util_free(&send[k]);
	}
	util_send(&recv, s.p.n[!i].ep, &in, 8, 5, UTIL_NBX);
	CU_ASSERT(recv.immediate && recv.status == UCS_ERR_CONNECTION_RESET);
	UTIL_FOR_MS(&s.p, 30);
	CU_ASSERT_EQUAL(s.n_err[!i], 1);
	CU_ASSERT_EQUAL(s.n_err[i], 0);
	close_ep(&s, !i, 0);
	cs_close(&s);
}

static void
flush_close_tells_the_other_side_after_all_messages(void)
{
	close_tells(0, 0);
	close_tells(1, 0);
}

static void
forced_close_tells_the_other_side(void)
{
	close_tells(0, UCP_EP_CLOSE_FLAG_FORCE);
	close_tells(1, UCP_EP_CLOSE_FLAG_FORCE);
}

static void
forced_close_ends_what_is_open_on_both_sides(void)
{
	uint64_t buf = 0;
	struct op a, b;
	struct cs s;

	cs_open(&s);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	util_send(&a, s.p.n[0].ep, &buf, 8, 5, UTIL_SYNC); /* never matched */
	util_send(&b, s.p.n[1].ep, &buf, 8, 5, UTIL_SYNC);
	UTIL_FOR_MS(&s.p, 10);
	CU_ASSERT(!util_done(&a) && !util_done(&b));
	close_ep(&s, 0, UCP_EP_CLOSE_FLAG_FORCE);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, util_done(&a) && util_done(&b)));
	CU_ASSERT_EQUAL(a.status, UCS_ERR_CANCELED);
	CU_ASSERT_EQUAL(b.status, UCS_ERR_CONNECTION_RESET);
	util_free(&a);
	util_free(&b);
	cs_close(&s);
}

static void
both_sides_may_close_at_once(void)
{
	struct cs s;
	void *req[2];
	int i;

	cs_open(&s);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	for (i = 0; i < 2; i++) {
		req[i] = ucp_ep_close_nb(s.p.n[i].ep, UCP_EP_CLOSE_MODE_FLUSH);
		s.p.n[i].ep = NULL;
	}
	for (i = 0; i < 2; i++) {
		if (!UCS_PTR_IS_PTR(req[i]))
			continue;
		CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(req[i]) != UCS_INPROGRESS));
		ucp_request_free(req[i]);
	}
	UTIL_FOR_MS(&s.p, 20);
	CU_ASSERT_EQUAL(s.n_err[0] + s.n_err[1], 0);
	cs_close(&s);
}

static void
close_before_the_connection_delivers_or_cancels(void)
{
	uint64_t out = 77, in = 0;
	struct op send, recv;
	struct cs s;
	void *req;

	cs_open(&s);
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	req = ucp_ep_close_nb(s.p.n[1].ep, UCP_EP_CLOSE_MODE_FLUSH);
	s.p.n[1].ep = NULL;
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
	server(&s);
	util_recv(&recv, s.p.n[0].w, &in, 8, 5, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT(UTIL_UNTIL(&s.p, util_done(&send) && util_done(&recv) &&
		ucp_request_check_status(req) == UCS_OK && s.n_err[0] == 1));
	CU_ASSERT_EQUAL(in, 77);
	util_free(&send);
	util_free(&recv);
	ucp_request_free(req);
	close_ep(&s, 0, UCP_EP_CLOSE_FLAG_FORCE);
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	close_ep(&s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	CU_ASSERT(UTIL_UNTIL(&s.p, util_done(&send)));
	CU_ASSERT_EQUAL(send.status, UCS_ERR_CANCELED);
	util_free(&send);
	CU_ASSERT_EQUAL(s.n_err[1], 0);
	UTIL_FOR_MS(&s.p, 20);
	if (s.req != NULL) /* its client is gone */
		CU_ASSERT_EQUAL(ucp_listener_reject(s.l, s.req), UCS_OK);
	cs_close(&s);
}

static void
server_that_closes_at_once_is_noticed(void)
{
	struct cs s;

	cs_open(&s);
	connect_both(&s);
	/* The client has not heard yet that it is connected. */
	close_ep(&s, 0, 0);
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_err[1] == 1));
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_CONNECTION_RESET);
	close_ep(&s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	cs_close(&s);
}

static void
workers_may_go_while_clients_connect(void)
{
	uint64_t out = 1;
	struct op send;
	struct cs s;

	cs_open(&s);
	client(&s);
	util_send(&send, s.p.n[1].ep, &out, 8, 5, UTIL_NBX);
	UTIL_FOR_MS(&s.p, 20);
	if (s.req != NULL)
		CU_ASSERT_EQUAL(ucp_listener_reject(s.l, s.req), UCS_OK);
	ucp_listener_destroy(s.l);
	s.l = NULL;
	s.p.n[1].ep = NULL; /* goes with its worker */
	cs_close(&s);
}

#define N_CLIENTS 20

static void
handles_of_one_pair_of_workers_are_told_apart(void)
{
	ucp_ep_h c[N_CLIENTS], v[N_CLIENTS];
	struct cs s;
	int i;

	cs_open_mode(&s, true, UCS_THREAD_MODE_MULTI);
	CU_ASSERT_EQUAL_FATAL(listen_on(&s, address(), false), UCS_OK);
	for (i = 0; i < N_CLIENTS; i++) {
		connect_both(&s);
		c[i] = s.p.n[1].ep;
		v[i] = s.p.n[0].ep;
	}
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	for (i = 0; i < N_CLIENTS; i++) {
		CU_ASSERT(util_ep_close(&s.p, c[i], 0));
		CU_ASSERT(UTIL_UNTIL(&s.p, s.n_err[0] == i + 1));
		CU_ASSERT_PTR_EQUAL(s.err_ep[0], v[i]);
		CU_ASSERT(util_ep_close(&s.p, v[i], UCP_EP_CLOSE_FLAG_FORCE));
	}
	CU_ASSERT_EQUAL(s.n_err[1], 0);
	s.p.n[0].ep = s.p.n[1].ep = NULL;
	cs_close(&s);
}

static int
raw_client(struct cs *s)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&s->addr, sizeof(struct sockaddr_in)) != 0)
		UTIL_DIE("connect");
	return fd;
}

static void
put_some(int fd, const void *buf, size_t len)
{
	ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

	(void)n;
}

static void
hostile_bytes_are_refused_and_others_served(void)
{
	static const uint8_t head[] = {'P', 'L', 'X', 'M', 1, 0};
	uint8_t junk[2048];
	struct cs s;
	int i, fd;

	cs_open(&s);
	for (i = 0; i < 200; i++) {
		size_t k, len = rnd() % sizeof(junk);

		for (k = 0; k < len; k++)
			junk[k] = rnd();
		fd = raw_client(&s);
		if (i % 2 == 0 && len > 40) { /* a head that is right and any length, then junk */
			memcpy(junk, head, sizeof(head));
			if (i % 4 == 0) {
				junk[6] = (len - 8) & 0xff;
				junk[7] = (len - 8) >> 8;
			}
		}
		put_some(fd, junk, len);
		if (i % 3 == 0)
			shutdown(fd, SHUT_WR);
		UTIL_FOR_MS(&s.p, 1);
		close(fd);
	}
	UTIL_FOR_MS(&s.p, 20);
	CU_ASSERT_EQUAL(s.n_reqs, 0);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	cs_close(&s);
}

static void
silent_connections_keep_nobody_out(void)
{
	int fd[400], i;
	struct cs s;

	cs_open(&s);
	for (i = 0; i < 400; i++) {
		fd[i] = raw_client(&s);
		util_pair_turn(&s.p);
	}
	UTIL_FOR_MS(&s.p, 10);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	for (i = 0; i < 400; i++)
		close(fd[i]);
	cs_close(&s);
}

/* Record the first message of a client that connects to a socket of ours. @return its length */
static size_t
overhear_hello(struct cs *s, uint8_t *hello, size_t max)
{
	struct sockaddr_storage listener = s->addr;
	socklen_t len = sizeof(s->addr);
	int on = socket(AF_INET, SOCK_STREAM, 0), fd;
	ssize_t n;

	if (bind(on, (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, sizeof(struct sockaddr_in)) != 0 ||
		listen(on, 1) != 0 || getsockname(on, (struct sockaddr *)&s->addr, &len) != 0)
		UTIL_DIE("listen");
	client(s);
	UTIL_FOR_MS(&s->p, 20);
	fd = accept(on, NULL, NULL);
	n = recv(fd, hello, max, 0);
	CU_ASSERT_FATAL(n > 8 && (size_t)n < max);
	close_ep(s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	close(fd);
	close(on);
	s->addr = listener;
	return n;
}

static void
accept_all(ucp_conn_request_h r, void *arg)
{
	struct cs *s = arg;
	ucp_ep_h ep;

	s->n_reqs++;
	s->req = r;
	CU_ASSERT_EQUAL(accept_request(s, s->p.n[0].w, &ep), UCS_OK);
	s->p.n[0].ep = ep;
	s->req = NULL;
}

static void
let_go(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct cs *s = arg;

	on_error(s, 0, ep, status);
	ucp_request_free(ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FORCE));
}

/* They are accepted, and say nothing more: that has an end, and so has their number. */
static void
accepted_clients_that_say_nothing_are_let_go(void)
{
	enum { N = 400, BOUND = 256 };
	uint8_t hello[2048];
	int fd[N];
	size_t len;
	struct cs s;

	cs_open_with(&s, false, UCS_THREAD_MODE_SINGLE, "cm.done_ms", "400");
	s.on_request = accept_all;
	s.on_error_0 = let_go;
	CU_ASSERT_EQUAL_FATAL(listen_on(&s, "127.0.0.1", false), UCS_OK);
	len = overhear_hello(&s, hello, sizeof(hello));
	for (int i = 0; i < N; i++) {
		fd[i] = raw_client(&s);
		put_some(fd[i], hello, len);
	}
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_reqs >= BOUND));
	UTIL_FOR_MS(&s.p, 100);
	CU_ASSERT(s.n_reqs - s.n_err[0] <= BOUND + 32); /* some were accepted, and not heard yet */
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_reqs == N && s.n_err[0] == N));
	CU_ASSERT_EQUAL(s.err[0], UCS_ERR_CONNECTION_RESET);
	for (int i = 0; i < N; i++)
		close(fd[i]);
	client(&s);
	CU_ASSERT(UTIL_UNTIL(&s.p, s.n_reqs == N + 1));
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	UTIL_FOR_MS(&s.p, 600); /* a client that has said all is not let go */
	CU_ASSERT_EQUAL(s.n_err[0], N);
	exchange(&s.p, 0, 8, 1, true, UTIL_NBX);
	cs_close(&s);
}

static void
connecting_and_requests_wake_who_sleeps(void)
{
	struct cs s;
	int fd[2], i;
	uint64_t end;

	cs_open(&s);
	for (i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(ucp_worker_get_efd(s.p.n[i].w, &fd[i]), UCS_OK);
	client(&s);
	end = util_now_ns() + 10000000000ull;
	while (s.req == NULL && util_now_ns() < end) {
		for (i = 0; i < 2; i++) {
			struct pollfd p = {.fd = fd[i], .events = POLLIN};

			if (ucp_worker_progress(s.p.n[i].w) == 0 &&
				ucp_worker_arm(s.p.n[i].w) == UCS_OK)
				poll(&p, 1, 20);
		}
	}
	server(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	cs_close(&s);
}

/* ---- peers that die ---- */

static void
failed_ep_refuses(struct cs *s)
{
	ucp_dt_iov_t iov[2];
	ucp_request_param_t param;
	uint64_t buf[2] = {0, 0};
	struct op op;
	void *ret;
	int how;

	for (how = 0; how < UTIL_N_HOW; how++) {
		util_send(&op, s->p.n[0].ep, buf, 8, 5, how);
		CU_ASSERT(op.immediate && op.status == s->err[0]);
	}
	iov[0] = iov[1] = (ucp_dt_iov_t){buf, 8};
	param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
	param.datatype = UCP_DATATYPE_IOV;
	ret = ucp_tag_send_nbx(s->p.n[0].ep, iov, 2, 5, &param);
	CU_ASSERT(UCS_PTR_IS_ERR(ret));
}

/* A process that is gone from another host says nothing, unless a kernel does. */
static ucs_status_t
status_of_death(void)
{
	return util_by_rdma() ? UCS_ERR_ENDPOINT_TIMEOUT : UCS_ERR_CONNECTION_RESET;
}

/* All that is open with the child ends when it dies, and the handler is called once. */
static void
kill_and_look(struct cs *s, struct child *c)
{
	static uint8_t big[1 << 20];
	struct op sync, rndv, frag[300];
	uint64_t begin, out = 5;
	int i;

	util_send(&sync, s->p.n[0].ep, &out, 8, 99, UTIL_SYNC);
	util_send(&rndv, s->p.n[0].ep, big, sizeof(big), 99, UTIL_NBX);
	kill(c->pid, SIGSTOP); /* it takes nothing more: some has to wait here */
	for (i = 0; i < 300; i++)
		util_send(&frag[i], s->p.n[0].ep, big, 9000, 99, UTIL_NBX);
	kill(c->pid, SIGKILL);
	begin = util_now_ns();
	CU_ASSERT(UTIL_UNTIL(&s->p, s->n_err[0] != 0 && util_done(&sync) && util_done(&rndv) &&
		util_done(&frag[299])));
	CU_ASSERT(util_now_ns() - begin < 1000000000u);
	CU_ASSERT_EQUAL(s->err[0], status_of_death());
	CU_ASSERT_PTR_EQUAL(s->err_ep[0], s->p.n[0].ep);
	CU_ASSERT_NOT_EQUAL(sync.status, UCS_OK);
	CU_ASSERT_NOT_EQUAL(rndv.status, UCS_OK);
	CU_ASSERT_NOT_EQUAL(frag[299].status, UCS_OK);
	util_free(&sync);
	util_free(&rndv);
	for (i = 0; i < 300; i++) {
		CU_ASSERT(util_done(&frag[i]));
		util_free(&frag[i]);
	}
	failed_ep_refuses(s);
	UTIL_FOR_MS(&s->p, 50);
	CU_ASSERT_EQUAL(s->n_err[0], 1);
}

static void
client_that_dies_is_told_once_within_a_second(void)
{
	struct child c;
	struct cs s;

	cs_open(&s);
	child_open_client(&c, port_of(&s.addr));
	server(&s);
	child_hello(&c, s.p.n[0].w, s.p.n[0].ep);
	kill_and_look(&s, &c);
	close_ep(&s, 0, UCP_EP_CLOSE_FLAG_FORCE);
	child_close(&c);
	cs_close(&s);
}

static void
peer_by_address_that_dies_is_told_once_within_a_second(void)
{
	struct child c;
	struct cs s;

	cs_open(&s);
	child_open(&c, s.p.n[0].w, "address");
	s.p.n[0].ep = util_ep_with_handler(s.p.n[0].w, c.addr, on_error_0, &s);
	child_hello(&c, s.p.n[0].w, s.p.n[0].ep);
	kill_and_look(&s, &c);
	close_ep(&s, 0, 0); /* a failed ep has nothing to wait for */
	child_close(&c);
	cs_close(&s);
}

static ucs_status_t
flush_of(struct pair *p, ucp_ep_h ep)
{
	const ucp_request_param_t param = {.op_attr_mask = 0};
	ucs_status_ptr_t ret = ep != NULL ? ucp_ep_flush_nbx(ep, &param)
					  : ucp_worker_flush_nbx(p->n[1].w, &param);
	ucs_status_t status;

	if (!UCS_PTR_IS_PTR(ret))
		return UCS_PTR_STATUS(ret);
	CU_ASSERT_FATAL(UTIL_UNTIL(p, ucp_request_check_status(ret) != UCS_INPROGRESS));
	status = ucp_request_check_status(ret);
	ucp_request_free(ret);
	return status;
}

/* As long as the ep is open. */
static void
flush_tells_of_the_failure(struct cs *s)
{
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(flush_of(&s->p, s->p.n[1].ep), UCS_ERR_CONNECTION_RESET);
		CU_ASSERT_EQUAL(flush_of(&s->p, NULL), UCS_ERR_CONNECTION_RESET);
	}
	close_ep(s, 1, UCP_EP_CLOSE_FLAG_FORCE);
	CU_ASSERT_EQUAL(flush_of(&s->p, NULL), UCS_OK);
}

static void
flush_of_an_ep_that_the_other_side_closed_answers_so(void)
{
	struct cs s;

	cs_open(&s);
	connect_both(&s);
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	CU_ASSERT_EQUAL(flush_of(&s.p, s.p.n[1].ep), UCS_OK);
	close_ep(&s, 0, 0);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.n_err[1] != 0));
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_CONNECTION_RESET);
	flush_tells_of_the_failure(&s);
	cs_close(&s);
}

/* Node 0 goes, and another takes its place, so that there are two again. */
static void
worker_0_anew(struct cs *s)
{
	ucp_worker_release_address(s->p.n[0].w, s->p.n[0].addr);
	ucp_worker_destroy(s->p.n[0].w);
	s->p.n[0].w = util_worker(s->p.n[0].ctx, UCS_THREAD_MODE_SINGLE);
	s->p.n[0].ep = NULL;
	UTIL_OK(ucp_worker_get_address(s->p.n[0].w, &s->p.n[0].addr, &s->p.n[0].addr_len));
}

static void
a_worker_that_is_gone_is_a_reset_and_flushes_answer_so(void)
{
	ucp_address_t *old;
	struct op send;
	size_t len;
	struct cs s;

	cs_open_mode(&s, false, UCS_THREAD_MODE_SINGLE);
	s.p.n[1].ep = util_ep_with_handler(s.p.n[1].w, s.p.n[0].addr, on_error_1, &s);
	UTIL_OK(ucp_worker_get_address(s.p.n[0].w, &old, &len));
	exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
	worker_0_anew(&s);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, s.n_err[1] != 0));
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_CONNECTION_RESET);
	flush_tells_of_the_failure(&s);
	if (util_by_network()) { /* from there nobody answers, and whether it was there is not known */
		ucp_worker_release_address(s.p.n[1].w, old);
		cs_close(&s);
		return;
	}
	/* One that was never met before it went. */
	s.p.n[1].ep = util_ep_with_handler(s.p.n[1].w, old, on_error_1, &s);
	util_send(&send, s.p.n[1].ep, &len, 8, 1, UTIL_NO_IMM);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, util_done(&send) && s.n_err[1] == 2));
	CU_ASSERT_EQUAL(send.status, UCS_ERR_CONNECTION_RESET);
	CU_ASSERT_EQUAL(s.err[1], UCS_ERR_CONNECTION_RESET);
	util_free(&send);
	flush_tells_of_the_failure(&s);
	ucp_worker_release_address(s.p.n[1].w, old);
	cs_close(&s);
}

/* By memory this side does all by itself: nothing but a flush can tell. */
static void
a_flush_behind_puts_to_a_worker_that_is_gone_tells_at_once(void)
{
	ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
		UCP_MEM_MAP_PARAM_FIELD_LENGTH};
	static uint8_t there[256], here[256];
	ucp_request_param_t param = {.op_attr_mask = 0};
	void *packed, *ret[2];
	ucp_rkey_h rkey;
	ucp_mem_h memh;
	size_t len;
	struct cs s;
	int turn, get, i;

	if (util_by_network()) { /* where the other side's end can't be looked at */
		printf("(by a network) ");
		return;
	}
	/* The last two have sent no message; the very last has not even been flushed. */
	for (turn = 0; turn < 4; turn++) {
		get = turn == 1;
		cs_open_mode(&s, false, UCS_THREAD_MODE_SINGLE);
		s.p.n[1].ep = util_ep_with_handler(s.p.n[1].w, s.p.n[0].addr, on_error_1, &s);
		map.address = there;
		map.length = sizeof(there);
		UTIL_OK(ucp_mem_map(s.p.n[0].ctx, &map, &memh));
		UTIL_OK(ucp_rkey_pack(s.p.n[0].ctx, memh, &packed, &len));
		UTIL_OK(ucp_ep_rkey_unpack(s.p.n[1].ep, packed, &rkey));
		if (turn < 2)
			exchange(&s.p, 1, 8, 1, true, UTIL_NBX);
		if (turn < 3)
			CU_ASSERT_EQUAL(flush_of(&s.p, s.p.n[1].ep), UCS_OK);
		worker_0_anew(&s);
		/* No turn in between in which it could be found gone. */
		ret[0] = get ? ucp_get_nbx(s.p.n[1].ep, here, sizeof(here), (uintptr_t)there, rkey, &param)
			     : ucp_put_nbx(s.p.n[1].ep, here, sizeof(here), (uintptr_t)there, rkey, &param);
		ret[1] = ucp_ep_flush_nbx(s.p.n[1].ep, &param);
		if (UCS_PTR_IS_PTR(ret[1])) {
			CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(ret[1]) != UCS_INPROGRESS));
			CU_ASSERT(UCS_STATUS_IS_ERR(ucp_request_check_status(ret[1])));
		} else {
			CU_ASSERT_EQUAL(UCS_PTR_STATUS(ret[1]), UCS_ERR_CONNECTION_RESET);
		}
		CU_ASSERT(UTIL_UNTIL(&s.p, s.n_err[1] == 1));
		for (i = 0; i < 2; i++) {
			if (!UCS_PTR_IS_PTR(ret[i]))
				continue;
			CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(ret[i]) != UCS_INPROGRESS));
			ucp_request_free(ret[i]);
		}
		ucp_rkey_destroy(rkey);
		ucp_rkey_buffer_release(packed);
		UTIL_OK(ucp_mem_unmap(s.p.n[0].ctx, memh));
		close_ep(&s, 1, UCP_EP_CLOSE_FLAG_FORCE);
		cs_close(&s);
	}
}

static void
handler_of_a_closed_ep_is_not_called(void)
{
	struct child c;
	struct cs s;

	cs_open(&s);
	child_open(&c, s.p.n[0].w, "address");
	s.p.n[0].ep = util_ep_with_handler(s.p.n[0].w, c.addr, on_error_0, &s);
	child_hello(&c, s.p.n[0].w, s.p.n[0].ep);
	kill(c.pid, SIGKILL);
	close_ep(&s, 0, UCP_EP_CLOSE_FLAG_FORCE);
	UTIL_FOR_MS(&s.p, 200);
	CU_ASSERT_EQUAL(s.n_err[0], 0);
	child_close(&c);
	cs_close(&s);
}

static void
estimate_grows_with_the_message(void)
{
	ucp_ep_evaluate_perf_param_t param = {.field_mask = UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE};
	ucp_ep_evaluate_perf_attr_t attr = {.field_mask = UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME};
	double last = 0;
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (param.message_size = 1; param.message_size < 1u << 30; param.message_size *= 4) {
		CU_ASSERT_EQUAL(ucp_ep_evaluate_perf(p.n[0].ep, &param, &attr), UCS_OK);
		CU_ASSERT(attr.estimated_time > last && attr.estimated_time < 10);
		last = attr.estimated_time;
	}
	util_pair_close(&p);
}

#define NOT_UCX "no shared memory for this error mode; statuses of its TCP"

const struct api_test api_cm_tests[] = {
	T(listener_wants_an_address_and_one_handler),
	T(two_listeners_on_one_port_are_refused),
	T(client_and_server_meet_by_every_kind_of_address),
	T(messages_of_every_length_go_both_ways),
	T(ep_is_made_by_the_first_of_its_ways),
	T(client_ep_wants_its_flag_and_an_address),
	T_NOT_UCX(client_and_server_meet_the_way_that_is_set, "its counters are others"),
	T(sends_before_the_connection_go_out_in_order),
	T(worker_flush_covers_eps_that_connect),
	T(accept_handler_gets_an_ep_that_works),
	T(request_tells_the_client_and_its_id),
	T(client_binds_to_the_local_address_given),
	T(stashed_request_is_accepted_later_by_another_worker),
	T_NOT_UCX(a_flush_of_the_worker_waits_for_a_put_that_waits_for_the_connection, "the key needs a connection"),
	T_NOT_UCX(announced_am_of_a_closed_ep_is_cancelled, NOT_UCX),
	T_NOT_UCX(forked_child_that_cleans_up_harms_nobody, NOT_UCX),
	T_NOT_UCX(am_that_wants_an_answer_of_a_closed_ep_is_dropped, NOT_UCX),
	T(am_at_once_from_a_server_has_the_ep_that_answers),
	T(rejected_client_learns_it_once),
	T_NOT_UCX(nobody_listening_is_an_error, NOT_UCX),
	T(server_has_the_error_mode_of_its_client),
	T(flush_close_tells_the_other_side_after_all_messages),
	T_NOT_UCX(forced_close_tells_the_other_side, NOT_UCX),
	T_NOT_UCX(forced_close_ends_what_is_open_on_both_sides, NOT_UCX),
	T(both_sides_may_close_at_once),
	T_NOT_UCX(close_before_the_connection_delivers_or_cancels, NOT_UCX),
	T(server_that_closes_at_once_is_noticed),
	T(workers_may_go_while_clients_connect),
	T(handles_of_one_pair_of_workers_are_told_apart),
	T_NOT_UCX(hostile_bytes_are_refused_and_others_served, "speaks another protocol"),
	T(silent_connections_keep_nobody_out),
	T_NOT_UCX(accepted_clients_that_say_nothing_are_let_go, "speaks another protocol"),
	T(connecting_and_requests_wake_who_sleeps),
	T_NOT_UCX(client_that_dies_is_told_once_within_a_second, NOT_UCX),
	T_NOT_UCX(peer_by_address_that_dies_is_told_once_within_a_second, NOT_UCX),
	T_NOT_UCX(flush_of_an_ep_that_the_other_side_closed_answers_so, NOT_UCX),
	T_NOT_UCX(a_worker_that_is_gone_is_a_reset_and_flushes_answer_so, NOT_UCX),
	T_NOT_UCX(a_flush_behind_puts_to_a_worker_that_is_gone_tells_at_once, NOT_UCX),
	T(handler_of_a_closed_ep_is_not_called),
	T(estimate_grows_with_the_message),
	{NULL, NULL, NULL, NULL},
};

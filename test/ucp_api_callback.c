/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_callback.c - every callback may call every function
 *
 * Design notes
 * Each test is one kind of callback. It makes a scene, two workers that are connected, brings one
 * callback of its kind about at node 0, and in that callback does one thing of the table of actions;
 * then both nodes go on for a while and what is left is destroyed. A scene is made for each action,
 * once with endpoints by address of a worker for one thread, and once by socket address of a worker
 * for several. Sanitizers tell what went wrong.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "ucp_api_test.h"

#define LEN_LONG (256 * KIB) /* goes by rendezvous */
#define AM_ID 7
#define MEM_LEN 4096
#define TURNS_AFTER 300

struct scene {
	struct pair p;
	bool by_sockaddr;
	bool is_open;	   /* callbacks act */
	ucp_ep_h other;	   /* of node 0: another to node 1 */
	ucp_listener_h l;  /* of node 0 */
	ucp_listener_h l1; /* of node 1 */
	struct sockaddr_in at, at1;
	ucp_mem_h memh;	   /* of node 1 */
	uint64_t mem;
	ucp_rkey_h rkey;   /* of memh, at ep */
	void *posted;	   /* a receive of node 0 that nothing matches */
	void *held;	   /* the request whose callback runs; NULL: none */
	void *am_data;	   /* the data of the handler that runs */
	const struct action *action;
	unsigned n_calls, n_posted;
	uint8_t in[2 * LEN_LONG];
	uint8_t got[64]; /* what an action gets: a receive may write to in meanwhile */
};

struct action {
	const char *name;
	void (*fn)(struct scene *s);
};

static uint8_t out[LEN_LONG], small[64];

/* --- what a callback does --- */

static void
on_done(void *request, ucs_status_t status, void *arg)
{
	(void)status;
	(void)arg;
	ucp_request_free(request);
}

static void
on_done_recv(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)info;
	on_done(request, status, arg);
}

static void
on_done_stream(void *request, ucs_status_t status, size_t len, void *arg)
{
	(void)len;
	on_done(request, status, arg);
}

static ucp_request_param_t
param_send(void)
{
	return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_done};
}

/* A request that its callback frees, or none. */
static void
posted(ucs_status_ptr_t ptr)
{
	CU_ASSERT(!UCS_PTR_IS_ERR(ptr) || UCS_PTR_STATUS(ptr) != UCS_ERR_INVALID_PARAM);
}

static void
send_tag_of(struct scene *s, size_t len)
{
	ucp_request_param_t p = param_send();

	posted(ucp_tag_send_nbx(s->p.n[0].ep, out, len, 99, &p));
}

static void
do_tag_send(struct scene *s)
{
	send_tag_of(s, 8);
	send_tag_of(s, LEN_LONG);
}

static void
do_tag_send_sync(struct scene *s)
{
	ucp_request_param_t p = param_send();

	posted(ucp_tag_send_sync_nbx(s->p.n[0].ep, out, 8, 98, &p));
}

static void
do_tag_recv(struct scene *s)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = on_done_recv};

	posted(ucp_tag_recv_nbx(s->p.n[0].w, s->in, 8, 97, UTIL_ALL_BITS, &p));
}

static void
do_tag_recv_no_imm(struct scene *s)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb.send = on_done};

	posted(ucp_tag_send_nbx(s->p.n[0].ep, out, 8, 96, &p));
}

static void
do_tag_probe(struct scene *s)
{
	ucp_tag_recv_info_t info;

	(void)ucp_tag_probe_nb(s->p.n[0].w, 0, 0, 0, &info);
}

static void
do_am_send(struct scene *s)
{
	ucp_request_param_t p = param_send();

	posted(ucp_am_send_nbx(s->p.n[0].ep, AM_ID, small, 8, out, 100, &p));
	posted(ucp_am_send_nbx(s->p.n[0].ep, AM_ID, small, 8, out, LEN_LONG, &p));
}

static void
do_am_handlers(struct scene *s)
{
	ucp_am_handler_param_t p = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID};

	CU_ASSERT_EQUAL(ucp_worker_set_am_recv_handler(s->p.n[0].w, &p), UCS_OK);
}

static void
do_stream(struct scene *s)
{
	ucp_request_param_t p = param_send();
	ucp_request_param_t r = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
		.cb.recv_stream = on_done_stream};
	ucp_stream_poll_ep_t ep;
	size_t len;

	posted(ucp_stream_send_nbx(s->p.n[0].ep, out, 100, &p));
	posted(ucp_stream_send_nbx(s->p.n[0].ep, out, LEN_LONG, &p));
	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in + LEN_LONG, 8, &len, &r));
	(void)ucp_stream_worker_poll(s->p.n[0].w, &ep, 1, 0);
}

static void
do_rma(struct scene *s)
{
	ucp_request_param_t p = param_send(), a = p;
	uint64_t one = 1;

	if (s->rkey == NULL)
		return;
	posted(ucp_put_nbx(s->p.n[0].ep, out, 64, s->mem, s->rkey, &p));
	posted(ucp_get_nbx(s->p.n[0].ep, s->got, 64, s->mem, s->rkey, &p));
	a.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
	a.datatype = ucp_dt_make_contig(8);
	posted(ucp_atomic_op_nbx(s->p.n[0].ep, UCP_ATOMIC_OP_ADD, &one, 1, s->mem, s->rkey, &a));
	(void)ucp_worker_fence(s->p.n[0].w);
}

/* The blocking forms end at once or say that they can't. */
static void
do_rma_blocking(struct scene *s)
{
	uint64_t v;

	if (s->rkey == NULL)
		return;
	(void)ucp_put(s->p.n[0].ep, out, 64, s->mem, s->rkey);
	(void)ucp_get(s->p.n[0].ep, s->got, 64, s->mem, s->rkey);
	(void)ucp_atomic_add64(s->p.n[0].ep, 1, s->mem, s->rkey);
	(void)ucp_atomic_fadd64(s->p.n[0].ep, 1, s->mem, s->rkey, &v);
}

static void
do_flush(struct scene *s)
{
	ucp_request_param_t p = param_send();

	posted(ucp_ep_flush_nbx(s->p.n[0].ep, &p));
	posted(ucp_worker_flush_nbx(s->p.n[0].w, &p));
}

static void
do_flush_blocking(struct scene *s)
{
	(void)ucp_ep_flush(s->p.n[0].ep);
	(void)ucp_worker_flush(s->p.n[0].w);
}

static void
close_ep(ucp_ep_h *ep, unsigned flags)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
		.cb.send = on_done, .flags = flags};

	if (*ep != NULL)
		posted(ucp_ep_close_nbx(*ep, &p));
	*ep = NULL;
}

static void
rkey_destroy(struct scene *s)
{
	if (s->rkey != NULL)
		ucp_rkey_destroy(s->rkey);
	s->rkey = NULL;
}

static void
do_close(struct scene *s)
{
	rkey_destroy(s);
	close_ep(&s->p.n[0].ep, 0);
}

static void
do_close_forced(struct scene *s)
{
	do_tag_send(s); /* so that there is something to cancel */
	rkey_destroy(s);
	close_ep(&s->p.n[0].ep, UCP_EP_CLOSE_FLAG_FORCE);
}

static void
do_close_other(struct scene *s)
{
	close_ep(&s->other, UCP_EP_CLOSE_FLAG_FORCE);
}

static void
do_close_all(struct scene *s)
{
	do_close_other(s);
	do_close_forced(s);
}

static void
do_ep_destroy(struct scene *s)
{
	rkey_destroy(s);
	ucp_ep_destroy(s->p.n[0].ep);
	s->p.n[0].ep = NULL;
}

static void ep_to_node_1(struct scene *s, ucp_ep_h *ep);

static void
do_ep_create(struct scene *s)
{
	close_ep(&s->other, 0);
	ep_to_node_1(s, &s->other);
}

static void
do_ep_queries(struct scene *s)
{
	ucp_ep_attr_t attr = {.field_mask = UCP_EP_ATTR_FIELD_NAME | UCP_EP_ATTR_FIELD_USER_DATA};
	FILE *f = fopen("/dev/null", "w");

	(void)ucp_ep_query(s->p.n[0].ep, &attr);
	ucp_ep_print_info(s->p.n[0].ep, f);
	ucp_worker_print_info(s->p.n[0].w, f);
	ucp_context_print_info(s->p.n[0].ctx, f);
	fclose(f);
}

static void
do_worker_queries(struct scene *s)
{
	ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};
	ucp_context_attr_t ctx = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
	ucp_address_t *addr;
	size_t len;

	CU_ASSERT_EQUAL(ucp_worker_query(s->p.n[0].w, &attr), UCS_OK);
	CU_ASSERT_EQUAL(ucp_context_query(s->p.n[0].ctx, &ctx), UCS_OK);
	CU_ASSERT_EQUAL(ucp_worker_get_address(s->p.n[0].w, &addr, &len), UCS_OK);
	ucp_worker_release_address(s->p.n[0].w, addr);
}

static void
do_progress(struct scene *s)
{
	(void)ucp_worker_progress(s->p.n[0].w); /* behind a call and not in a turn it may find something */
}

/* Also a worker that something waits for may be asked to sleep: it must not. */
static void
do_wakeup(struct scene *s)
{
	int fd;

	CU_ASSERT_EQUAL(ucp_worker_get_efd(s->p.n[0].w, &fd), UCS_OK);
	(void)ucp_worker_arm(s->p.n[0].w);
	CU_ASSERT_EQUAL(ucp_worker_signal(s->p.n[0].w), UCS_OK);
	CU_ASSERT_EQUAL(ucp_worker_wait(s->p.n[0].w), UCS_OK);
}

static void
do_cancel(struct scene *s)
{
	if (s->posted != NULL)
		ucp_request_cancel(s->p.n[0].w, s->posted);
	if (s->held != NULL)
		ucp_request_cancel(s->p.n[0].w, s->held);
}

static void
do_request_query(struct scene *s)
{
	ucp_request_attr_t attr = {.field_mask = UCP_REQUEST_ATTR_FIELD_STATUS};

	if (s->held == NULL)
		return;
	CU_ASSERT_EQUAL(ucp_request_query(s->held, &attr), UCS_OK);
	CU_ASSERT_NOT_EQUAL(ucp_request_check_status(s->held), UCS_INPROGRESS);
}

static void
do_memory(struct scene *s)
{
	ucp_mem_map_params_t p = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
		UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = MEM_LEN, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_h memh;
	ucp_rkey_h rkey;
	void *packed;
	size_t len;

	CU_ASSERT_EQUAL_FATAL(ucp_mem_map(s->p.n[0].ctx, &p, &memh), UCS_OK);
	CU_ASSERT_EQUAL_FATAL(ucp_rkey_pack(s->p.n[0].ctx, memh, &packed, &len), UCS_OK);
	if (ucp_ep_rkey_unpack(s->p.n[0].ep, packed, &rkey) == UCS_OK)
		ucp_rkey_destroy(rkey);
	ucp_rkey_buffer_release(packed);
	CU_ASSERT_EQUAL(ucp_mem_unmap(s->p.n[0].ctx, memh), UCS_OK);
}

static ucp_listener_h listener(ucp_worker_h w, struct sockaddr_in *at, struct scene *s);

static void
do_listener(struct scene *s)
{
	struct sockaddr_in at;

	if (s->l != NULL)
		ucp_listener_destroy(s->l);
	s->l = listener(s->p.n[0].w, &at, s);
}

static void
do_listener_destroy(struct scene *s)
{
	if (s->l != NULL)
		ucp_listener_destroy(s->l);
	s->l = NULL;
}

static void
do_new_worker(struct scene *s)
{
	ucp_worker_h w = util_worker(s->p.n[0].ctx, UCS_THREAD_MODE_SINGLE);

	ucp_worker_progress(w);
	ucp_worker_destroy(w);
}

static void
listeners_destroy(struct scene *s)
{
	do_listener_destroy(s);
	if (s->l1 != NULL)
		ucp_listener_destroy(s->l1);
	s->l1 = NULL;
}

static void
do_worker_destroy(struct scene *s)
{
	rkey_destroy(s);
	do_listener_destroy(s);
	ucp_worker_release_address(s->p.n[0].w, s->p.n[0].addr);
	ucp_worker_destroy(s->p.n[0].w);
	s->p.n[0].w = NULL;
	s->p.n[0].ep = s->other = NULL;
	s->posted = NULL;
}

static void
do_cleanup(struct scene *s)
{
	do_worker_destroy(s);
	ucp_cleanup(s->p.n[0].ctx);
	s->p.n[0].ctx = NULL;
}

/* The other side, as a program of one thread has both. */
static void
do_peer_destroy(struct scene *s)
{
	if (s->p.n[1].w == NULL)
		return;
	CU_ASSERT_EQUAL(ucp_mem_unmap(s->p.n[1].ctx, s->memh), UCS_OK);
	s->memh = NULL;
	if (s->l1 != NULL)
		ucp_listener_destroy(s->l1);
	s->l1 = NULL;
	ucp_worker_release_address(s->p.n[1].w, s->p.n[1].addr);
	ucp_worker_destroy(s->p.n[1].w);
	ucp_cleanup(s->p.n[1].ctx);
	s->p.n[1].w = NULL;
	s->p.n[1].ctx = NULL;
}

static void
do_am_release(struct scene *s)
{
	(void)s; /* see on_am(): data is kept there, and released */
}

#define A(f) {#f, do_##f}
static const struct action actions[] = {A(tag_send), A(tag_send_sync), A(tag_recv),
	A(tag_recv_no_imm), A(tag_probe), A(am_send), A(am_handlers), A(am_release), A(stream), A(rma),
	A(rma_blocking), A(flush), A(flush_blocking), A(close), A(close_forced), A(close_other),
	A(close_all), A(ep_destroy), A(ep_create), A(ep_queries), A(worker_queries), A(progress),
	A(wakeup), A(cancel), A(request_query), A(memory), A(listener), A(listener_destroy),
	A(new_worker), A(worker_destroy), A(cleanup), A(peer_destroy)};

/* --- the callbacks --- */

/* Node 0's callback of the kind that is tested. */
static void
act(struct scene *s, void *request)
{
	s->n_calls++;
	if (s->n_calls != 1 || !s->is_open)
		return;
	s->held = request;
	s->action->fn(s);
	s->held = NULL;
}

static void
on_send(void *request, ucs_status_t status, void *arg)
{
	(void)status;
	act(arg, request);
	if (((struct scene *)arg)->p.n[0].w != NULL)
		ucp_request_free(request);
}

static void
on_recv(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)info;
	on_send(request, status, arg);
}

static void
on_stream(void *request, ucs_status_t status, size_t len, void *arg)
{
	(void)len;
	on_send(request, status, arg);
}

static void
on_posted(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	struct scene *s = arg;

	(void)status;
	(void)info;
	s->posted = NULL;
	s->n_posted++;
	ucp_request_free(request);
}

static void
on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct scene *s = arg;

	(void)status;
	if (ep == s->p.n[0].ep)
		act(s, NULL);
}

static void
on_error_1(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
}

static void
on_request_1(ucp_conn_request_h r, void *arg)
{
	struct scene *s = arg;
	ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST |
		UCP_EP_PARAM_FIELD_ERR_HANDLER, .conn_request = r, .err_handler = {on_error_1, s}};
	ucp_ep_h ep;

	CU_ASSERT_EQUAL(ucp_ep_create(s->p.n[1].w, &p, &ep), UCS_OK);
	if (s->p.n[1].ep == NULL)
		s->p.n[1].ep = ep;
}

static void
on_request(ucp_conn_request_h r, void *arg)
{
	struct scene *s = arg;
	ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST, .conn_request = r};
	ucp_ep_h ep;

	CU_ASSERT_EQUAL(ucp_ep_create(s->p.n[0].w, &p, &ep), UCS_OK);
	act(s, NULL);
}

static ucs_status_t
on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	struct scene *s = arg;
	ucp_worker_h w = s->p.n[0].w;
	bool keep = (param->recv_attr & (UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV)) != 0;

	(void)header;
	(void)header_len;
	(void)len;
	act(s, NULL);
	if (!keep || s->p.n[0].w == NULL)
		return UCS_OK;
	ucp_am_data_release(w, data);
	return UCS_INPROGRESS;
}

/* --- scenes --- */

static ucp_listener_h
listener(ucp_worker_h w, struct sockaddr_in *at, struct scene *s)
{
	ucp_listener_params_t p = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		UCP_LISTENER_PARAM_FIELD_CONN_HANDLER};
	ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
	ucp_listener_h l;

	memset(at, 0, sizeof(*at));
	at->sin_family = AF_INET;
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	p.sockaddr.addr = (struct sockaddr *)at;
	p.sockaddr.addrlen = sizeof(*at);
	p.conn_handler.cb = w == s->p.n[0].w ? on_request : on_request_1;
	p.conn_handler.arg = s;
	CU_ASSERT_EQUAL_FATAL(ucp_listener_create(w, &p, &l), UCS_OK);
	CU_ASSERT_EQUAL_FATAL(ucp_listener_query(l, &attr), UCS_OK);
	memcpy(at, &attr.sockaddr, sizeof(*at));
	return l;
}

static void
ep_by_sockaddr(struct scene *s, ucp_worker_h w, struct sockaddr_in *to, ucp_err_handler_cb_t cb,
	ucp_ep_h *ep)
{
	ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
		UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER, .err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {cb, s}, .sockaddr = {(struct sockaddr *)to, sizeof(*to)}};

	CU_ASSERT_EQUAL_FATAL(ucp_ep_create(w, &p, ep), UCS_OK);
}

static void
ep_to_node_1(struct scene *s, ucp_ep_h *ep)
{
	if (s->by_sockaddr && s->l1 != NULL)
		ep_by_sockaddr(s, s->p.n[0].w, &s->at1, on_error, ep);
	else if (s->p.n[1].w != NULL)
		*ep = util_ep_with_handler(s->p.n[0].w, s->p.n[1].addr, on_error, s);
}

static bool
is_flushed(ucs_status_ptr_t ptr)
{
	return !UCS_PTR_IS_PTR(ptr) || ucp_request_check_status(ptr) != UCS_INPROGRESS;
}

/* Turns of those that are left. */
static void
turn(struct scene *s)
{
	for (int i = 0; i < 2; i++)
		if (s->p.n[i].w != NULL)
			ucp_worker_progress(s->p.n[i].w);
}

#define UNTIL(s, cond) \
	do { \
		uint64_t end_ = util_now_ns() + UTIL_DEADLINE_S * UINT64_C(1000000000); \
		while (!(cond) && util_now_ns() < end_) \
			turn(s); \
		CU_ASSERT_FATAL(cond); \
	} while (0)

static void
memory_open(struct scene *s)
{
	ucp_mem_map_params_t p = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
		UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = MEM_LEN, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	void *packed;
	size_t len;

	CU_ASSERT_EQUAL_FATAL(ucp_mem_map(s->p.n[1].ctx, &p, &s->memh), UCS_OK);
	CU_ASSERT_EQUAL_FATAL(ucp_mem_query(s->memh, &attr), UCS_OK);
	s->mem = (uintptr_t)attr.address;
	CU_ASSERT_EQUAL_FATAL(ucp_rkey_pack(s->p.n[1].ctx, s->memh, &packed, &len), UCS_OK);
	CU_ASSERT_EQUAL_FATAL(ucp_ep_rkey_unpack(s->p.n[0].ep, packed, &s->rkey), UCS_OK);
	ucp_rkey_buffer_release(packed);
}

static void
handlers_set(struct scene *s)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
		UCP_AM_HANDLER_PARAM_FIELD_FLAGS, .id = AM_ID, .cb = on_am, .arg = s,
		.flags = UCP_AM_FLAG_PERSISTENT_DATA};

	CU_ASSERT_EQUAL_FATAL(ucp_worker_set_am_recv_handler(s->p.n[0].w, &h), UCS_OK);
}

static ucs_status_ptr_t
message(struct scene *s, int to, bool recv)
{
	ucp_request_param_t none = {.op_attr_mask = 0};

	return recv ? ucp_tag_recv_nbx(s->p.n[to].w, small, 8, 0, UTIL_ALL_BITS, &none)
		    : ucp_tag_send_nbx(s->p.n[!to].ep, out, 8, 0, &none);
}

/* So that each knows the other and would be notified of its end. */
static void
hello(struct scene *s, int to)
{
	ucs_status_ptr_t ptr[2] = {message(s, to, true), message(s, to, false)};

	UNTIL(s, s->n_calls != 0 || (is_flushed(ptr[0]) && is_flushed(ptr[1])));
	CU_ASSERT_FATAL(s->n_calls == 0); /* no connection has failed */
	for (int i = 0; i < 2; i++)
		if (UCS_PTR_IS_PTR(ptr[i]))
			ucp_request_free(ptr[i]);
}

static void
scene_open(struct scene *s, const struct action *action, bool by_sockaddr)
{
	const uint64_t features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
		UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP;
	ucp_request_param_t r = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv = on_posted, .user_data = s};

	memset(s, 0, offsetof(struct scene, in));
	s->action = action;
	s->by_sockaddr = by_sockaddr;
	for (int i = 0; i < 2; i++) {
		s->p.n[i].ctx = util_context(features);
		s->p.n[i].w = util_worker(s->p.n[i].ctx, by_sockaddr ? UCS_THREAD_MODE_MULTI
								   : UCS_THREAD_MODE_SINGLE);
		UTIL_OK(ucp_worker_get_address(s->p.n[i].w, &s->p.n[i].addr, &s->p.n[i].addr_len));
	}
	s->l = listener(s->p.n[0].w, &s->at, s);
	s->l1 = listener(s->p.n[1].w, &s->at1, s);
	handlers_set(s);
	ep_to_node_1(s, &s->p.n[0].ep);
	if (!by_sockaddr)
		s->p.n[1].ep = util_ep_with_handler(s->p.n[1].w, s->p.n[0].addr, on_error_1, s);
	UNTIL(s, s->p.n[1].ep != NULL);
	ep_to_node_1(s, &s->other);
	memory_open(s);
	hello(s, 0);
	hello(s, 1);
	s->is_open = true;
	s->posted = ucp_tag_recv_nbx(s->p.n[0].w, small, 8, UINT64_MAX, UTIL_ALL_BITS, &r);
}

static void
scene_close(struct scene *s)
{
	rkey_destroy(s);
	listeners_destroy(s);
	if (s->memh != NULL)
		CU_ASSERT_EQUAL(ucp_mem_unmap(s->p.n[1].ctx, s->memh), UCS_OK);
	for (int i = 0; i < 2; i++) {
		if (s->p.n[i].w != NULL) {
			ucp_worker_release_address(s->p.n[i].w, s->p.n[i].addr);
			ucp_worker_destroy(s->p.n[i].w);
		}
		if (s->p.n[i].ctx != NULL)
			ucp_cleanup(s->p.n[i].ctx);
	}
}

/* Each action in a callback that begin() brings about at node 0. */
static void
run_all(void (*begin)(struct scene *s))
{
	struct scene *s = malloc(sizeof(*s));

	for (size_t i = 0; i < 2 * sizeof(actions) / sizeof(actions[0]); i++) {
		scene_open(s, &actions[i / 2], i % 2 != 0);
		begin(s);
		UNTIL(s, s->n_calls != 0);
		for (int k = 0; k < TURNS_AFTER; k++)
			turn(s);
		scene_close(s);
	}
	free(s);
}

static ucp_request_param_t
param_acting(struct scene *s)
{
	return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.send = on_send, .user_data = s};
}

static ucp_request_param_t
param_receiving(struct scene *s)
{
	return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.recv = on_recv, .user_data = s};
}

/* A message of node 1 to node 0. */
static void
sent_by_peer(struct scene *s, size_t len, ucp_tag_t tag)
{
	ucp_request_param_t p = param_send();

	posted(ucp_tag_send_nbx(s->p.n[1].ep, out, len, tag, &p));
}

static void
begin_send(struct scene *s)
{
	ucp_request_param_t p = param_acting(s), r = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
		.cb.recv = on_done_recv};

	posted(ucp_tag_recv_nbx(s->p.n[1].w, s->in, LEN_LONG, 1, UTIL_ALL_BITS, &r));
	posted(ucp_tag_send_nbx(s->p.n[0].ep, out, LEN_LONG, 1, &p));
}

static void
begin_send_no_imm(struct scene *s)
{
	ucp_request_param_t p = param_acting(s);

	p.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	posted(ucp_tag_send_nbx(s->p.n[0].ep, out, 8, 1, &p));
	posted(ucp_tag_send_nbx(s->p.n[0].ep, out, 8, 1, &p));
}

static void
begin_recv(struct scene *s)
{
	ucp_request_param_t r = param_receiving(s);

	posted(ucp_tag_recv_nbx(s->p.n[0].w, s->in, 8, 2, UTIL_ALL_BITS, &r));
	posted(ucp_tag_recv_nbx(s->p.n[0].w, s->in + 8, 8, 2, UTIL_ALL_BITS, &r));
	sent_by_peer(s, 8, 2);
	sent_by_peer(s, 8, 2);
	sent_by_peer(s, LEN_LONG, 3);
}

static void
begin_recv_long(struct scene *s)
{
	ucp_request_param_t r = param_receiving(s);

	posted(ucp_tag_recv_nbx(s->p.n[0].w, s->in, LEN_LONG, 2, UTIL_ALL_BITS, &r));
	posted(ucp_tag_recv_nbx(s->p.n[0].w, s->in + LEN_LONG, LEN_LONG, 2, UTIL_ALL_BITS, &r));
	sent_by_peer(s, LEN_LONG, 2);
	sent_by_peer(s, LEN_LONG, 2);
}

static void
begin_recv_nb(struct scene *s)
{
	ucp_tag_recv_info_t info;
	ucp_request_param_t r = param_receiving(s);

	sent_by_peer(s, 8, 4);
	UNTIL(s, ucp_tag_probe_nb(s->p.n[0].w, 4, UTIL_ALL_BITS, 0, &info) != NULL);
	r.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	posted(ucp_tag_recv_nbx(s->p.n[0].w, s->in, 8, 4, UTIL_ALL_BITS, &r));
}

static void
begin_cancel(struct scene *s)
{
	ucp_request_param_t r = param_receiving(s);
	void *req = ucp_tag_recv_nbx(s->p.n[0].w, s->in, 8, 5, UTIL_ALL_BITS, &r);

	ucp_request_cancel(s->p.n[0].w, req);
}

static void
begin_am(struct scene *s)
{
	ucp_request_param_t p = param_send();

	posted(ucp_am_send_nbx(s->p.n[1].ep, AM_ID, small, 8, out, 64, &p));
	posted(ucp_am_send_nbx(s->p.n[1].ep, AM_ID, small, 8, out, 64, &p));
	posted(ucp_am_send_nbx(s->p.n[1].ep, AM_ID, small, 8, out, LEN_LONG, &p));
}

static void
begin_am_long(struct scene *s)
{
	ucp_request_param_t p = param_send();

	posted(ucp_am_send_nbx(s->p.n[1].ep, AM_ID, small, 8, out, LEN_LONG, &p));
	posted(ucp_am_send_nbx(s->p.n[1].ep, AM_ID, small, 8, out, LEN_LONG, &p));
}

static void
begin_stream_recv(struct scene *s)
{
	ucp_request_param_t p = param_send(), r = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.recv_stream = on_stream, .user_data = s};
	size_t len;

	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in, 8, &len, &r));
	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in + 8, LEN_LONG, &len, &r));
	posted(ucp_stream_send_nbx(s->p.n[1].ep, out, 100, &p));
	posted(ucp_stream_send_nbx(s->p.n[1].ep, out, LEN_LONG, &p));
}

static void
begin_flush(struct scene *s)
{
	ucp_request_param_t p = param_acting(s);

	p.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	do_rma(s);
	posted(ucp_ep_flush_nbx(s->p.n[0].ep, &p));
	posted(ucp_worker_flush_nbx(s->p.n[0].w, &p));
}

static void
begin_put(struct scene *s)
{
	ucp_request_param_t p = param_acting(s);

	p.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	posted(ucp_put_nbx(s->p.n[0].ep, out, 64, s->mem, s->rkey, &p));
	posted(ucp_get_nbx(s->p.n[0].ep, s->in, 64, s->mem, s->rkey, &p));
}

/* Another endpoint of node 0 is closed, with sends and receives that end so. */
static void
begin_close(struct scene *s)
{
	ucp_request_param_t p = param_acting(s);
	ucp_ep_h ep;

	ep_to_node_1(s, &ep);
	p.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	posted(ucp_ep_close_nbx(ep, &p));
}

static void
begin_close_forced(struct scene *s)
{
	ucp_request_param_t p = param_acting(s), c = param_send();
	ucp_ep_h ep;

	ep_to_node_1(s, &ep);
	for (int i = 0; i < 4; i++)
		posted(ucp_tag_send_nbx(ep, out, LEN_LONG, 100 + i, &p));
	c.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	c.flags = UCP_EP_CLOSE_FLAG_FORCE;
	posted(ucp_ep_close_nbx(ep, &c));
}

/* Sends, receives of the stream and flushes fail as the peer goes: io_demo closes its endpoint then. */
static void
begin_peer_gone(struct scene *s)
{
	ucp_request_param_t p = param_acting(s), r = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.recv_stream = on_stream, .user_data = s};
	size_t len;

	for (int i = 0; i < 4; i++)
		posted(ucp_tag_send_nbx(s->p.n[0].ep, out, LEN_LONG, 200 + i, &p));
	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in, 8, &len, &r));
	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in, 8, &len, &r));
	for (int k = 0; k < 100; k++)
		turn(s);
	if (s->n_calls == 0)
		do_peer_destroy(s);
}

static void
begin_peer_closes(struct scene *s)
{
	ucp_request_param_t r = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.recv_stream = on_stream, .user_data = s};
	size_t len;

	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in, 8, &len, &r));
	posted(ucp_stream_recv_nbx(s->p.n[0].ep, s->in, 8, &len, &r));
	if (s->by_sockaddr)
		close_ep(&s->p.n[1].ep, UCP_EP_CLOSE_FLAG_FORCE);
	else
		do_peer_destroy(s); /* a peer known by address gets no message of a close */
}

static void
begin_error(struct scene *s)
{
	if (s->by_sockaddr)
		close_ep(&s->p.n[1].ep, 0);
	else
		do_peer_destroy(s);
}

static void
begin_request(struct scene *s)
{
	ucp_ep_h ep;

	ep_by_sockaddr(s, s->p.n[1].w, &s->at, on_error_1, &ep);
}

/* Operations wait for a connection that never comes. */
static void
begin_no_connection(struct scene *s)
{
	ucp_request_param_t p = param_acting(s);
	struct sockaddr_in nowhere = s->at1;
	ucp_ep_h ep = s->p.n[0].ep;

	ucp_listener_destroy(s->l1);
	s->l1 = NULL;
	rkey_destroy(s);
	close_ep(&ep, UCP_EP_CLOSE_FLAG_FORCE);
	ep_by_sockaddr(s, s->p.n[0].w, &nowhere, on_error_1, &s->p.n[0].ep);
	for (int i = 0; i < 4; i++)
		posted(ucp_tag_send_nbx(s->p.n[0].ep, out, 8, 300 + i, &p));
}

/* Operations wait for a connection that comes, and end as they begin. */
static void
begin_connected(struct scene *s)
{
	ucp_request_param_t p = param_acting(s);
	ucp_ep_h ep = s->p.n[0].ep;

	rkey_destroy(s);
	close_ep(&ep, UCP_EP_CLOSE_FLAG_FORCE);
	ep_by_sockaddr(s, s->p.n[0].w, &s->at1, on_error_1, &s->p.n[0].ep);
	for (int i = 0; i < 4; i++)
		posted(ucp_tag_send_nbx(s->p.n[0].ep, out, 8, 400 + i, &p));
}

static unsigned n_nested, n_progress;

static void
on_recv_progress(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)status, (void)info;
	n_nested++;
	n_progress += ucp_worker_progress(arg);
	ucp_request_free(request);
}

/* Though more messages are there, whether the first is taken alone or in a burst. */
static void
progress_in_a_callback_does_nothing(void)
{
	ucp_request_param_t recv = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv = on_recv_progress}, send = param_send();
	struct pair p;
	uint64_t in[3];

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 8, 1, true, UTIL_NBX);
	recv.user_data = p.n[1].w;
	n_nested = n_progress = 0;
	for (unsigned round = 1; round <= 100; round++) {
		for (unsigned i = 0; i < round % 20; i++)
			ucp_worker_progress(p.n[1].w);
		for (unsigned i = 0; i < 3; i++) {
			CU_ASSERT(UCS_PTR_IS_PTR(ucp_tag_recv_nbx(p.n[1].w, &in[i], 8, i, UTIL_ALL_BITS, &recv)));
			CU_ASSERT(!UCS_PTR_IS_ERR(ucp_tag_send_nbx(p.n[0].ep, out, 8, i, &send)));
		}
		while (n_nested < 3 * round) {
			ucp_worker_progress(p.n[0].w);
			ucp_worker_progress(p.n[1].w);
		}
	}
	CU_ASSERT(n_progress == 0);
	util_pair_close(&p);
}

static void
on_recv_destroy(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	struct node *n = arg;

	(void)status, (void)info;
	ucp_request_free(request);
	ucp_worker_release_address(n->w, n->addr);
	ucp_worker_destroy(n->w);
}

/* The message is alone and the worker has nothing else to do, so that a look is all its progress is. */
static void
a_worker_that_a_callback_destroys_is_gone_behind_it(void)
{
	for (unsigned k = 0; k < 2; k++) {
		ucp_request_param_t recv = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
				UCP_OP_ATTR_FIELD_USER_DATA, .cb.recv = on_recv_destroy}, send = param_send();
		struct pair p;
		ucp_worker_h w;
		uint64_t in;
		unsigned n;

		util_pair_open(&p, false, k == 0 ? UCS_THREAD_MODE_SINGLE : UCS_THREAD_MODE_MULTI);
		exchange(&p, 0, 8, 1, true, UTIL_NBX);
		recv.user_data = &p.n[1];
		w = p.n[1].w;
		CU_ASSERT(UCS_PTR_IS_PTR(ucp_tag_recv_nbx(w, &in, 8, 1, UTIL_ALL_BITS, &recv)));
		for (unsigned i = 0; i < TURNS_AFTER; i++) {
			ucp_worker_progress(p.n[0].w);
			ucp_worker_progress(w);
		}
		n = util_open_files();
		CU_ASSERT(!UCS_PTR_IS_ERR(ucp_tag_send_nbx(p.n[0].ep, out, 8, 1, &send)));
		while (ucp_worker_progress(w) == 0)
			ucp_worker_progress(p.n[0].w);
		CU_ASSERT(util_open_files() < n);
		ucp_worker_release_address(p.n[0].w, p.n[0].addr);
		ucp_worker_destroy(p.n[0].w);
		for (unsigned i = 0; i < 2; i++)
			ucp_cleanup(p.n[i].ctx);
	}
}

static unsigned n_told;

static ucs_status_t
on_am_destroy(void *arg, const void *header, size_t header_length, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	struct node *n = arg;

	(void)header, (void)header_length, (void)data, (void)len, (void)param;
	if (n_told++ == 0) {
		ucp_worker_release_address(n->w, n->addr);
		ucp_worker_destroy(n->w);
	}
	return UCS_OK;
}

/* What came behind the message whose handler destroyed it. */
static void
a_worker_that_a_handler_destroys_calls_none_any_more(void)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
		UCP_AM_HANDLER_PARAM_FIELD_ARG, .id = AM_ID, .cb = on_am_destroy};
	ucp_request_param_t send = param_send();
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	exchange(&p, 0, 8, 1, true, UTIL_NBX);
	h.arg = &p.n[1];
	UTIL_OK(ucp_worker_set_am_recv_handler(p.n[1].w, &h));
	n_told = 0;
	for (unsigned i = 0; i < 5; i++)
		CU_ASSERT(!UCS_PTR_IS_ERR(ucp_am_send_nbx(p.n[0].ep, AM_ID, NULL, 0, out, 8, &send)));
	while (n_told == 0) {
		ucp_worker_progress(p.n[0].w);
		ucp_worker_progress(p.n[1].w);
	}
	CU_ASSERT_EQUAL(n_told, 1);
	ucp_worker_release_address(p.n[0].w, p.n[0].addr);
	ucp_worker_destroy(p.n[0].w);
	for (unsigned i = 0; i < 2; i++)
		ucp_cleanup(p.n[i].ctx);
}

#define CALLBACK(kind) \
	static void \
	in_the_callback_of_##kind##_all_may_be_called(void) \
	{ \
		run_all(begin_##kind); \
	}
#define C(kind) T_NOT_UCX(in_the_callback_of_##kind##_all_may_be_called, \
	"UCX crashes when a callback destroys what it runs for")

CALLBACK(send)
CALLBACK(send_no_imm)
CALLBACK(recv)
CALLBACK(recv_long)
CALLBACK(recv_nb)
CALLBACK(cancel)
CALLBACK(am)
CALLBACK(am_long)
CALLBACK(stream_recv)
CALLBACK(flush)
CALLBACK(put)
CALLBACK(close)
CALLBACK(close_forced)
CALLBACK(peer_gone)
CALLBACK(peer_closes)
CALLBACK(error)
CALLBACK(request)
CALLBACK(no_connection)
CALLBACK(connected)

const struct api_test api_callback_tests[] = {C(send), C(send_no_imm), C(recv), C(recv_long),
	C(recv_nb), C(cancel), C(am), C(am_long), C(stream_recv), C(flush), C(put), C(close),
	C(close_forced), C(peer_gone), C(peer_closes), C(error), C(request), C(no_connection),
	C(connected), T_NOT_UCX(progress_in_a_callback_does_nothing, "UCX goes on"),
	T_NOT_UCX(a_worker_that_a_callback_destroys_is_gone_behind_it, "UCX crashes"),
	T_NOT_UCX(a_worker_that_a_handler_destroys_calls_none_any_more, "UCX crashes"), {NULL, NULL, NULL, NULL}};

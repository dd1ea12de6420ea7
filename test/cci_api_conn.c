/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_conn.c - connections: asked for, answered, given up, closed
 */
#include "cci_api_test.h"

/* Ask e[1] for a connection; the request is the caller's. */
static cci_event_t *
request(struct pair *p, cci_conn_attribute_t attribute, const void *data, uint32_t len)
{
	cci_event_t *ev;

	CU_ASSERT_EQUAL_FATAL(cci_connect(p->e[0].ep, p->e[1].uri, data, len, attribute, COOKIE(1), 0,
		NULL), CCI_SUCCESS);
	ev = util_pair_wait(p, 1, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	return ev;
}

static void
both_sides_of_a_connection_agree(void)
{
	cci_connection_t *a, *b;
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	for (size_t i = 0; i < 3; i++) {
		ev = request(&p, unicast[i], NULL, 0);
		CU_ASSERT_EQUAL(ev->request.attribute, unicast[i]);
		CU_ASSERT_EQUAL(ev->request.data_len, 0);
		CU_ASSERT_EQUAL(cci_accept(ev, COOKIE(2)), CCI_SUCCESS);
		util_return(ev);
		ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL_FATAL(ev->connect.status, CCI_SUCCESS);
		CU_ASSERT_PTR_EQUAL(ev->connect.context, COOKIE(1));
		a = ev->connect.connection;
		util_return(ev);
		ev = util_pair_wait(&p, 1, CCI_EVENT_ACCEPT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL_FATAL(ev->accept.status, CCI_SUCCESS);
		CU_ASSERT_PTR_EQUAL(ev->accept.context, COOKIE(2));
		b = ev->accept.connection;
		util_return(ev);
		CU_ASSERT_PTR_EQUAL(a->context, COOKIE(1));
		CU_ASSERT_PTR_EQUAL(b->context, COOKIE(2));
		CU_ASSERT_PTR_EQUAL(a->endpoint, p.e[0].ep);
		CU_ASSERT_PTR_EQUAL(b->endpoint, p.e[1].ep);
		CU_ASSERT_EQUAL(a->attribute, unicast[i]);
		CU_ASSERT_EQUAL(b->attribute, unicast[i]);
		CU_ASSERT_EQUAL(a->max_send_size, b->max_send_size);
		CU_ASSERT(a->max_send_size >= 256);
		CU_ASSERT(a->max_send_size <= p.e[0].ep->device->max_send_size);
		CU_ASSERT_EQUAL(cci_disconnect(a), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_disconnect(b), CCI_SUCCESS);
	}
	util_pair_close(&p);
}

static void
a_request_brings_its_data(void)
{
	static const uint32_t lens[] = {0, 1, 7, 8, 9, 100, 500, 1000, CCI_CONN_REQ_LEN};
	uint8_t data[CCI_CONN_REQ_LEN + 1];
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		util_fill(data, lens[i], i);
		CU_ASSERT_EQUAL_FATAL(cci_connect(p.e[0].ep, p.e[1].uri, data, lens[i],
			CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
		memset(data, 0, sizeof(data)); /* it was copied */
		ev = util_pair_wait(&p, 1, CCI_EVENT_CONNECT_REQUEST);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL_FATAL(ev->request.data_len, lens[i]);
		CU_ASSERT(lens[i] == 0 || (uintptr_t)ev->request.data_ptr % 8 == 0);
		CU_ASSERT(util_check(ev->request.data_ptr, lens[i], i));
		CU_ASSERT_EQUAL(cci_reject(ev), CCI_SUCCESS);
		util_return(ev);
		ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		util_return(ev);
	}
	CU_ASSERT_EQUAL(cci_connect(p.e[0].ep, p.e[1].uri, data, CCI_CONN_REQ_LEN + 1,
		CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0);
	util_pair_close(&p);
}

static void
connect_refuses_what_makes_no_sense(void)
{
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_connect(NULL, p.e[1].uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL),
		CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 8, CCI_CONN_ATTR_RO, NULL, 0, NULL),
		CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 0, (cci_conn_attribute_t)99, NULL, 0,
		NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_disconnect(NULL), CCI_EINVAL);
	util_pair_close(&p);
}

static void
a_rejected_connection_is_refused(void)
{
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	for (size_t i = 0; i < 3; i++) {
		ev = request(&p, unicast[i], "no", 2);
		CU_ASSERT_EQUAL(cci_reject(ev), CCI_SUCCESS);
		util_return(ev);
		ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->connect.status, CCI_ECONNREFUSED);
		CU_ASSERT_PTR_EQUAL(ev->connect.context, COOKIE(1));
		CU_ASSERT_PTR_NULL(ev->connect.connection);
		util_return(ev);
	}
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0);
	util_pair_close(&p);
}

static void
a_request_is_answered_once(void)
{
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	ev = request(&p, CCI_CONN_ATTR_RO, NULL, 0);
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_reject(ev), CCI_EINVAL);
	util_return(ev);
	ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_SUCCESS);
	/* neither is an answer to what is no request */
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_reject(ev), CCI_EINVAL);
	util_return(ev);
	ev = request(&p, CCI_CONN_ATTR_RO, NULL, 0);
	CU_ASSERT_EQUAL(cci_reject(ev), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_reject(ev), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_EINVAL);
	util_return(ev);
	CU_ASSERT_EQUAL(cci_accept(NULL, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_reject(NULL), CCI_EINVAL);
	util_pair_close(&p);
}

static void
an_unanswered_request_is_not_taken_back(void)
{
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	ev = request(&p, CCI_CONN_ATTR_RU, "still here", 10);
	CU_ASSERT_EQUAL(cci_return_event(ev), CCI_EINVAL);
	CU_ASSERT_EQUAL(ev->type, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_EQUAL(memcmp(ev->request.data_ptr, "still here", 10), 0);
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_return_event(ev), CCI_SUCCESS);
	ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_SUCCESS);
	util_return(ev);
	util_pair_close(&p);
}

static void
an_unanswered_request_times_out_once(void)
{
	const struct timeval soon = {.tv_usec = 50000};
	uint64_t start = util_now_ns();
	cci_event_t *ev, *req;
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 0, CCI_CONN_ATTR_RO, COOKIE(7), 0,
		&soon), CCI_SUCCESS);
	ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT(util_now_ns() - start >= 50000000);
	CU_ASSERT(util_now_ns() - start < 5000000000);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_ETIMEDOUT);
	CU_ASSERT_PTR_EQUAL(ev->connect.context, COOKIE(7));
	CU_ASSERT_PTR_NULL(ev->connect.connection);
	util_return(ev);
	/* the answer comes too late: nobody is half connected */
	req = util_pair_wait(&p, 1, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(req);
	if (cci_accept(req, NULL) == CCI_SUCCESS) {
		ev = util_pair_wait(&p, 1, CCI_EVENT_ACCEPT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		if (ev->accept.status == CCI_SUCCESS &&
			cci_send(ev->accept.connection, "?", 1, NULL, 0) == CCI_SUCCESS)
			CU_ASSERT_EQUAL(util_pair_sent(&p, 1, NULL), CCI_ERR_DISCONNECTED);
		util_return(ev);
	}
	util_return(req);
	UTIL_FOR_MS(&p, 100);
	CU_ASSERT_EQUAL(p.e[0].n_kept, 0);
	util_pair_close(&p);
}

static void
a_timeout_that_was_not_needed_does_not_fire(void)
{
	const struct timeval soon = {.tv_usec = 100000};
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 0, CCI_CONN_ATTR_RU, NULL, 0, &soon),
		CCI_SUCCESS);
	ev = util_pair_wait(&p, 1, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
	util_return(ev);
	ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_SUCCESS);
	p.e[0].conn = ev->connect.connection;
	util_return(ev);
	UTIL_FOR_MS(&p, 200);
	CU_ASSERT_EQUAL(p.e[0].n_kept, 0);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "alive", 5, NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	util_pair_close(&p);
}

static void
the_peer_of_a_closed_connection_learns_it_by_using_it(void)
{
	struct pair p;

	for (size_t i = 0; i < 2; i++) {
		util_pair_open_with(&p, reliable[i]);
		CU_ASSERT_EQUAL(cci_disconnect(p.e[1].conn), CCI_SUCCESS);
		p.e[1].conn = NULL;
		UTIL_FOR_MS(&p, 20);
		CU_ASSERT_EQUAL(p.e[0].n_kept, 0); /* there is no event for it */
		for (int k = 0; k < 3; k++) {
			int rc = cci_send(p.e[0].conn, "anyone?", 7, NULL, 0);

			CU_ASSERT(rc == CCI_SUCCESS || rc == CCI_ERR_DISCONNECTED);
			if (rc == CCI_SUCCESS)
				CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_DISCONNECTED);
		}
		CU_ASSERT_EQUAL(p.e[1].n_kept, 0);
		util_pair_close(&p);
	}
}

static void
rma_over_a_half_closed_connection_fails(void)
{
	static uint8_t local[64], remote[64];
	cci_rma_handle_t *lh, *rh;
	struct pair p;
	int rc;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	UTIL_OK(cci_rma_register(p.e[0].ep, local, sizeof(local), 0, &lh));
	UTIL_OK(cci_rma_register(p.e[1].ep, remote, sizeof(remote), CCI_FLAG_WRITE, &rh));
	memset(local, 1, sizeof(local));
	memset(remote, 2, sizeof(remote));
	CU_ASSERT_EQUAL(cci_disconnect(p.e[1].conn), CCI_SUCCESS);
	p.e[1].conn = NULL;
	UTIL_FOR_MS(&p, 20);
	rc = cci_rma(p.e[0].conn, NULL, 0, lh, 0, rh, 0, sizeof(local), NULL, CCI_FLAG_WRITE);
	CU_ASSERT(rc == CCI_SUCCESS || rc == CCI_ERR_DISCONNECTED);
	if (rc == CCI_SUCCESS)
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_DISCONNECTED);
	CU_ASSERT_EQUAL(remote[0], 2);
	util_pair_close(&p);
}

/* They are freed at once: a sanitizer sees a later look at them. */
static void
disconnect_gives_pending_buffers_back(void)
{
	enum { N = 20 };
	uint32_t one = 1, len;
	uint8_t *buf[N];
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &one), CCI_SUCCESS);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	len = p.e[0].conn->max_send_size;
	for (int i = 0; i < N; i++) {
		buf[i] = malloc(len);
		memset(buf[i], i, len);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf[i], len, NULL, CCI_FLAG_NO_COPY), CCI_SUCCESS);
	}
	CU_ASSERT(UTIL_UNTIL(&p, p.e[1].n_kept == 1));
	CU_ASSERT_EQUAL(cci_disconnect(p.e[0].conn), CCI_SUCCESS);
	p.e[0].conn = NULL;
	for (int i = 0; i < N; i++)
		free(buf[i]);
	util_return(util_end_take(&p.e[1], CCI_EVENT_RECV));
	UTIL_FOR_MS(&p, 20);
	util_pair_close(&p);
}

static void
events_outlive_their_connection(void)
{
	cci_event_t *ev;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "kept for later", 15, NULL, 0), CCI_SUCCESS);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == 10 &&
		util_end_count(&p.e[0], CCI_EVENT_SEND) == 10));
	CU_ASSERT_EQUAL(cci_disconnect(p.e[0].conn), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_disconnect(p.e[1].conn), CCI_SUCCESS);
	p.e[0].conn = p.e[1].conn = NULL;
	UTIL_FOR_MS(&p, 10);
	for (int i = 0; i < 10; i++) {
		ev = util_end_take(&p.e[1], CCI_EVENT_RECV);
		CU_ASSERT_STRING_EQUAL((const char *)ev->recv.ptr, "kept for later");
		util_return(ev);
		util_return(util_end_take(&p.e[0], CCI_EVENT_SEND));
	}
	util_pair_close(&p);
}

static void
an_endpoint_connects_to_itself(void)
{
	cci_connection_t *out, *in;
	cci_event_t *ev;
	struct end e;

	util_end_open(&e, NULL, false);
	CU_ASSERT_EQUAL_FATAL(cci_connect(e.ep, e.uri, "me", 2, CCI_CONN_ATTR_RO, NULL, 0, NULL),
		CCI_SUCCESS);
	ev = end_wait(&e, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
	util_return(ev);
	ev = end_wait(&e, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL_FATAL(ev->connect.status, CCI_SUCCESS);
	out = ev->connect.connection;
	util_return(ev);
	ev = end_wait(&e, CCI_EVENT_ACCEPT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	in = ev->accept.connection;
	util_return(ev);
	CU_ASSERT_PTR_NOT_EQUAL(in, out);
	CU_ASSERT_EQUAL(cci_send(out, "to me", 6, NULL, 0), CCI_SUCCESS);
	ev = end_wait(&e, CCI_EVENT_RECV);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_STRING_EQUAL((const char *)ev->recv.ptr, "to me");
	CU_ASSERT_PTR_EQUAL(ev->recv.connection, in);
	util_return(ev);
	CU_ASSERT_EQUAL(end_sent(&e), CCI_SUCCESS);
	util_end_close(&e);
}

static void
connections_of_the_same_endpoints_are_kept_apart(void)
{
	enum { N = 12 };
	cci_connection_t *conn[N][2];
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	for (int i = 0; i < N; i++)
		util_pair_connect(&p, unicast[i % 3], &conn[i][0], &conn[i][1]);
	for (int i = N - 1; i >= 0; i--) {
		CU_ASSERT_EQUAL(cci_send(conn[i][0], &i, sizeof(i), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_PTR_EQUAL(ev->recv.connection, conn[i][1]);
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &i, sizeof(i)), 0);
		util_return(ev);
	}
	for (int i = 0; i < N; i += 2)
		CU_ASSERT_EQUAL(cci_disconnect(conn[i][1]), CCI_SUCCESS);
	for (int i = 1; i < N; i += 2) {
		CU_ASSERT_EQUAL(cci_send(conn[i][1], &i, sizeof(i), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		ev = util_pair_wait(&p, 0, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_PTR_EQUAL(ev->recv.connection, conn[i][0]);
		util_return(ev);
	}
	util_pair_close(&p);
}

/* The accepting side sends at once, and the other learns of the connection first. */
static void
no_message_comes_before_its_connection(void)
{
	struct pair p;

	util_pair_open(&p);
	for (int i = 0; i < 50; i++) {
		cci_event_t *ev = request(&p, unicast[i % 3], NULL, 0);
		cci_connection_t *conn[2];

		CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
		util_return(ev);
		do
			util_end_poll(&p.e[1]);
		while ((ev = util_end_take(&p.e[1], CCI_EVENT_ACCEPT)) == NULL &&
			util_end_poll(&p.e[0]) < 1000);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		conn[1] = ev->accept.connection;
		util_return(ev);
		CU_ASSERT_EQUAL(cci_send(conn[1], "first", 5, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, p.e[0].n_kept == 2));
		CU_ASSERT_EQUAL(p.e[0].kept[0]->type, CCI_EVENT_CONNECT);
		CU_ASSERT_EQUAL_FATAL(p.e[0].kept[1]->type, CCI_EVENT_RECV);
		ev = util_end_take(&p.e[0], CCI_EVENT_CONNECT);
		conn[0] = ev->connect.connection;
		util_return(ev);
		util_return(util_end_take(&p.e[0], CCI_EVENT_RECV));
		CU_ASSERT_EQUAL(cci_disconnect(conn[0]), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_disconnect(conn[1]), CCI_SUCCESS);
	}
	util_pair_close(&p);
}

/* From inside the handling of the failure, as some programs do. */
static void
a_refused_client_may_ask_again(void)
{
	cci_event_t *ev, *req;
	struct pair p;

	util_pair_open(&p);
	req = request(&p, CCI_CONN_ATTR_RO, NULL, 0);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(cci_reject(req), CCI_SUCCESS);
		util_return(req);
		ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->connect.status, CCI_ECONNREFUSED);
		req = request(&p, CCI_CONN_ATTR_RO, NULL, 0);
		util_return(ev);
	}
	CU_ASSERT_EQUAL(cci_accept(req, NULL), CCI_SUCCESS);
	util_return(req);
	ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_SUCCESS);
	util_return(ev);
	util_pair_close(&p);
}

static void
a_client_that_left_can_be_answered(void)
{
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	ev = request(&p, CCI_CONN_ATTR_RO, NULL, 0);
	UTIL_OK(cci_destroy_endpoint(p.e[0].ep));
	CU_ASSERT_EQUAL(cci_accept(ev, COOKIE(3)), CCI_SUCCESS);
	util_return(ev);
	ev = end_wait(&p.e[1], CCI_EVENT_ACCEPT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_PTR_EQUAL(ev->accept.context, COOKIE(3));
	if (ev->accept.status == CCI_SUCCESS) {
		if (cci_send(ev->accept.connection, "?", 1, NULL, 0) == CCI_SUCCESS)
			CU_ASSERT_EQUAL(end_sent(&p.e[1]), CCI_ERR_DISCONNECTED);
	} else {
		CU_ASSERT_PTR_NULL(ev->accept.connection);
	}
	util_return(ev);
	util_end_close(&p.e[1]);
	free(p.e[0].kept);
	UTIL_OK(cci_finalize());
}

const struct api_test cci_conn_tests[] = {
	T(both_sides_of_a_connection_agree),
	T(a_request_brings_its_data),
	T(connect_refuses_what_makes_no_sense),
	T(a_rejected_connection_is_refused),
	T(a_request_is_answered_once),
	T(an_unanswered_request_is_not_taken_back),
	T(an_unanswered_request_times_out_once),
	T(a_timeout_that_was_not_needed_does_not_fire),
	T(the_peer_of_a_closed_connection_learns_it_by_using_it),
	T(rma_over_a_half_closed_connection_fails),
	T(disconnect_gives_pending_buffers_back),
	T(events_outlive_their_connection),
	T(an_endpoint_connects_to_itself),
	T(connections_of_the_same_endpoints_are_kept_apart),
	T(no_message_comes_before_its_connection),
	T(a_refused_client_may_ask_again),
	T(a_client_that_left_can_be_answered),
	{NULL, NULL, NULL, NULL},
};

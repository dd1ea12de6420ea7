/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_flow.c - a receiver that has no buffers: not ready, dropped, going on
 */
#include "cci_api_test.h"

#define N_BUFS 4

/* A pair whose second end has N_BUFS buffers, all held; these messages are silent. */
static void
starved_pair(struct pair *p, cci_conn_attribute_t attribute, uint32_t timeout_us)
{
	uint32_t count = N_BUFS;

	util_pair_open(p);
	UTIL_OK(cci_set_opt(p->e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count));
	UTIL_OK(cci_set_opt(p->e[0].ep, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us));
	util_pair_connect(p, attribute, &p->e[0].conn, &p->e[1].conn);
	for (int i = 0; i < N_BUFS; i++)
		UTIL_OK(cci_send(p->e[0].conn, "held", 4, NULL, CCI_FLAG_SILENT));
	if (!UTIL_UNTIL(p, util_end_count(&p->e[1], CCI_EVENT_RECV) == N_BUFS))
		UTIL_DIE("messages did not arrive");
	UTIL_FOR_MS(p, 5);
}

static void
feed(struct pair *p)
{
	cci_event_t *ev;

	while ((ev = util_end_take(&p->e[1], CCI_EVENT_RECV)) != NULL)
		util_return(ev);
}

/* On an ordered connection all that follow end so too, in their order. */
static void
a_receiver_without_buffers_until_the_timeout_is_not_ready(void)
{
	uint64_t start;
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		starved_pair(&p, reliable[a], 100000);
		start = util_now_ns();
		for (int i = 0; i < 5; i++)
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "late", 4, COOKIE(i), 0), CCI_SUCCESS);
		for (int i = 0; i < 5; i++) {
			void *context;

			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, &context), CCI_ERR_RNR);
			if (reliable[a] == CCI_CONN_ATTR_RO)
				CU_ASSERT_PTR_EQUAL(context, COOKIE(i));
		}
		CU_ASSERT(util_now_ns() - start >= 100000000);
		CU_ASSERT(util_now_ns() - start < 5000000000);
		feed(&p);
		UTIL_FOR_MS(&p, 20);
		/* What was given up has not come after all. */
		CU_ASSERT_EQUAL(p.e[1].n_kept, 0);
		util_pair_close(&p);
	}
}

static void
without_a_timeout_a_sender_waits_for_buffers(void)
{
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		starved_pair(&p, reliable[a], 0);
		for (int i = 0; i < 5; i++)
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "late", 4, COOKIE(i), 0), CCI_SUCCESS);
		UTIL_FOR_MS(&p, 200);
		CU_ASSERT_EQUAL(p.e[0].n_kept, 0);
		for (int i = 0; i < 5; i++) {
			feed(&p);
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		}
		util_pair_close(&p);
	}
}

/* What is begun behind a message that has to go back comes after it all the same. */
static void
rma_keeps_its_place_behind_what_waits_for_buffers(void)
{
	static uint8_t from[20000], to[20000];
	cci_rma_handle_t *l, *r;
	struct pair p;

	starved_pair(&p, CCI_CONN_ATTR_RO, 0);
	UTIL_OK(cci_rma_register(p.e[0].ep, from, sizeof(from), 0, &l));
	UTIL_OK(cci_rma_register(p.e[1].ep, to, sizeof(to), CCI_FLAG_WRITE, &r));
	for (int i = 0; i < 12; i++) {
		int rc = i % 3 != 1 ? cci_send(p.e[0].conn, &i, sizeof(i), COOKIE(i), 0)
			: cci_rma(p.e[0].conn, &i, sizeof(i), l, 0, r, 0, 1 + i % 2 * 19999, COOKIE(i),
				  CCI_FLAG_WRITE);

		CU_ASSERT_EQUAL(rc, CCI_SUCCESS);
	}
	UTIL_FOR_MS(&p, 20);
	feed(&p);
	for (int i = 0; i < 12; i++) {
		cci_event_t *ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		void *context;

		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->recv.len, sizeof(i));
		CU_ASSERT_EQUAL(*(const int *)ev->recv.ptr, i);
		util_return(ev);
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, &context), CCI_SUCCESS);
		CU_ASSERT_PTR_EQUAL(context, COOKIE(i));
	}
	util_pair_close(&p);
}

static void
buffers_returned_in_time_let_everything_through(void)
{
	unsigned n = 0;
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		starved_pair(&p, reliable[a], 10000000);
		for (int i = 0; i < 20; i++)
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &i, sizeof(i), COOKIE(i), 0), CCI_SUCCESS);
		UTIL_FOR_MS(&p, 20);
		feed(&p);
		for (n = 0; n < 20; n++) {
			cci_event_t *ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);

			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			if (reliable[a] == CCI_CONN_ATTR_RO)
				CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &n, sizeof(n)), 0);
			util_return(ev);
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		}
		util_pair_close(&p);
	}
}

/* The timeout of a connection goes before that of its endpoint. */
static void
a_connection_has_a_timeout_of_its_own(void)
{
	uint32_t soon = 50000;
	uint64_t start;
	struct pair p;

	starved_pair(&p, CCI_CONN_ATTR_RO, 20000000);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].conn, CCI_OPT_CONN_SEND_TIMEOUT, &soon), CCI_SUCCESS);
	start = util_now_ns();
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "late", 4, NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_RNR);
	CU_ASSERT(util_now_ns() - start < 10000000000);
	util_pair_close(&p);
}

/* The messages before have none, or a longer one. */
static void
a_new_timeout_holds_for_what_is_sent_next(void)
{
	const uint32_t before_us[] = {0, 60000000}, timeout_us = 100000;
	struct pair p;

	for (size_t i = 0; i < 4; i++) {
		starved_pair(&p, reliable[i / 2], before_us[i % 2]);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "late", 4, NULL, 0), CCI_SUCCESS);
		UTIL_OK(cci_set_opt(p.e[0].conn, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us));
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "late", 4, NULL, 0), CCI_SUCCESS);
		CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[0], CCI_EVENT_SEND) == 2));
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_RNR);
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_RNR);
		util_pair_close(&p);
	}
}

/* It is still there to be disconnected, and fails what it is given. */
static void
after_a_timeout_the_connection_is_broken(void)
{
	cci_connection_t *other[2];
	cci_event_t *ev;
	struct pair p;
	int rc;

	starved_pair(&p, CCI_CONN_ATTR_RO, 50000);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "late", 4, NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_RNR);
	feed(&p);
	UTIL_FOR_MS(&p, 10);
	rc = cci_send(p.e[0].conn, "after", 5, NULL, 0);
	if (rc == CCI_SUCCESS)
		rc = util_pair_sent(&p, 0, NULL);
	CU_ASSERT_NOT_EQUAL(rc, CCI_SUCCESS);
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(util_end_count(&p.e[1], CCI_EVENT_RECV), 0);
	/* the endpoints are well */
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &other[0], &other[1]);
	CU_ASSERT_EQUAL(cci_send(other[0], "new", 3, NULL, 0), CCI_SUCCESS);
	ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_PTR_EQUAL(ev->recv.connection, other[1]);
	util_return(ev);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	util_pair_close(&p);
}

static void
an_unreliable_message_without_a_buffer_is_dropped(void)
{
	struct pair p;

	starved_pair(&p, CCI_CONN_ATTR_UU, 50000);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "lost", 4, NULL, 0), CCI_SUCCESS);
		/* it is over when the buffer is free, and is neither late nor not ready */
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	}
	UTIL_FOR_MS(&p, 100);
	CU_ASSERT_EQUAL(p.e[0].n_kept, 0);
	feed(&p);
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(p.e[1].n_kept, 0);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "next", 4, NULL, 0), CCI_SUCCESS);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == 1));
	feed(&p);
	util_pair_close(&p);
}

/* Nothing but messages needs a receive buffer. */
static void
other_events_come_without_receive_buffers(void)
{
	cci_connection_t *conn[2];
	cci_event_t *ev;
	struct pair p;

	starved_pair(&p, CCI_CONN_ATTR_RO, 0);
	CU_ASSERT_EQUAL(p.e[1].last, CCI_ENOBUFS);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &conn[0], &conn[1]);
	CU_ASSERT_EQUAL(cci_send(p.e[1].conn, "answer", 6, COOKIE(1), 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 1, NULL), CCI_SUCCESS);
	feed(&p);
	ev = end_wait(&p.e[0], CCI_EVENT_RECV);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	util_return(ev);
	util_pair_close(&p);
}

/* A receiver that is slow for one sender holds up nobody who does not send to it. */
static void
a_sender_that_waits_holds_up_no_other_peer(void)
{
	cci_connection_t *conn;
	cci_event_t *ev;
	struct end third;
	struct pair p;

	starved_pair(&p, CCI_CONN_ATTR_RO, 0);
	util_end_open(&third, NULL, false);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "waits", 5, NULL, 0), CCI_SUCCESS);
	UTIL_OK(cci_connect(p.e[0].ep, third.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
	ev = end_wait_from(&third, &p.e[0], CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	UTIL_OK(cci_accept(ev, NULL));
	util_return(ev);
	ev = end_wait_from(&p.e[0], &third, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	conn = ev->connect.connection;
	util_return(ev);
	for (int i = 0; i < 1000; i++) {
		CU_ASSERT_EQUAL(cci_send(conn, "passes", 6, NULL, 0), CCI_SUCCESS);
		ev = end_wait_from(&third, &p.e[0], CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		util_return(ev);
		CU_ASSERT_EQUAL(end_sent(&p.e[0]), CCI_SUCCESS);
	}
	feed(&p);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	util_end_close(&third);
	util_pair_close(&p);
}

const struct api_test cci_flow_tests[] = {
	T(a_receiver_without_buffers_until_the_timeout_is_not_ready),
	T(without_a_timeout_a_sender_waits_for_buffers),
	T(rma_keeps_its_place_behind_what_waits_for_buffers),
	T(buffers_returned_in_time_let_everything_through),
	T(a_connection_has_a_timeout_of_its_own),
	T(a_new_timeout_holds_for_what_is_sent_next),
	T(after_a_timeout_the_connection_is_broken),
	T(an_unreliable_message_without_a_buffer_is_dropped),
	T(other_events_come_without_receive_buffers),
	T(a_sender_that_waits_holds_up_no_other_peer),
	{NULL, NULL, NULL, NULL},
};

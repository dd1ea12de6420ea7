/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_event.c - events: taken, held, returned in any order
 */
#include "cci_api_test.h"

static void
no_event_is_no_pointer(void)
{
	cci_event_t *ev = (cci_event_t *)(uintptr_t)1;
	struct end e;

	util_end_open(&e, NULL, false);
	CU_ASSERT_EQUAL(cci_get_event(e.ep, &ev), CCI_EAGAIN);
	CU_ASSERT_PTR_NULL(ev);
	CU_ASSERT_EQUAL(cci_get_event(NULL, &ev), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_event(e.ep, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_return_event(NULL), CCI_EINVAL);
	util_end_close(&e);
}

static void
events_are_returned_in_any_order(void)
{
	enum { N = 40 };
	cci_event_t *ev[N];
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < N; i++)
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &i, sizeof(i), NULL, 0), CCI_SUCCESS);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, p.e[0].n_kept == N && p.e[1].n_kept == N));
		for (int i = 0; i < N; i++)
			ev[i] = util_end_take(&p.e[1], CCI_EVENT_RECV);
		for (int left = N; left > 0; left--) {
			int i = (int)(rnd() % (unsigned)left);
			uint32_t n;

			memcpy(&n, ev[i]->recv.ptr, sizeof(n));
			CU_ASSERT(n < N);
			util_return(ev[i]);
			ev[i] = ev[left - 1];
			i = (int)(rnd() % p.e[0].n_kept);
			util_return(p.e[0].kept[i]);
			p.e[0].kept[i] = p.e[0].kept[--p.e[0].n_kept];
		}
	}
	util_pair_close(&p);
}

/* A second return finds no event, and gives nothing back twice. */
static void
an_event_is_returned_once(void)
{
	cci_event_t *first, *second;
	struct pair p;

	util_pair_open(&p);
	UTIL_OK(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
	first = util_pair_wait(&p, 1, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	CU_ASSERT_EQUAL(cci_return_event(first), CCI_EINVAL); /* unanswered, it stays */
	UTIL_OK(cci_reject(first));
	util_return(first);
	CU_ASSERT_EQUAL(cci_return_event(first), CCI_ENOMSG);
	first = util_pair_wait(&p, 0, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	util_return(first);
	CU_ASSERT_EQUAL(cci_return_event(first), CCI_ENOMSG);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &i, sizeof(i), NULL, 0), CCI_SUCCESS);
	for (int side = 0; side < 2; side++) {
		cci_event_type_t type = side == 0 ? CCI_EVENT_SEND : CCI_EVENT_RECV;

		first = util_pair_wait(&p, side, type);
		second = util_pair_wait(&p, side, type);
		CU_ASSERT_FATAL(first != NULL && second != NULL);
		util_return(first);
		CU_ASSERT_EQUAL(cci_return_event(first), CCI_ENOMSG);
		util_return(second);
		CU_ASSERT_EQUAL(cci_return_event(first), CCI_ENOMSG);
	}
	util_pair_close(&p);
}

static void
a_held_message_stays_as_it_is_and_blocks_nobody(void)
{
	enum { N = 50000 };
	cci_connection_t *other[2];
	cci_event_t *held, *ev;
	static uint8_t buf[200];
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	util_pair_connect(&p, CCI_CONN_ATTR_RU, &other[0], &other[1]);
	util_fill(buf, sizeof(buf), 42);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, sizeof(buf), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
	held = util_pair_wait(&p, 1, CCI_EVENT_RECV);
	CU_ASSERT_PTR_NOT_NULL_FATAL(held);
	memset(buf, 0, sizeof(buf));
	for (unsigned i = 0, got = 0; got < N; i++) {
		if (i < N)
			while (cci_send(i % 2 ? p.e[0].conn : other[0], buf, sizeof(buf), NULL,
				CCI_FLAG_SILENT) == CCI_ENOBUFS)
				util_end_poll(&p.e[0]);
		util_pair_turn(&p);
		while ((ev = util_end_take(&p.e[1], CCI_EVENT_RECV)) != NULL) {
			util_return(ev);
			got++;
		}
	}
	CU_ASSERT_EQUAL(held->recv.len, sizeof(buf));
	CU_ASSERT(util_check(held->recv.ptr, sizeof(buf), 42));
	util_return(held);
	util_pair_close(&p);
}

static void
all_messages_that_are_held_stay_whole(void)
{
	uint32_t lens[] = {8, 100, 200, 1000, 4000}, count;
	static uint8_t buf[4000];
	unsigned n = 0;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
	for (; n < count && n < 1000; n++) {
		uint32_t len = lens[n % 5] < p.e[0].conn->max_send_size ? lens[n % 5] : 8;

		util_fill(buf, len, n);
		while (cci_send(p.e[0].conn, buf, len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)
			util_pair_turn(&p);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, p.e[1].n_kept == n));
	for (unsigned i = 0; i < n; i++) {
		cci_event_t *ev = util_end_take(&p.e[1], CCI_EVENT_RECV);

		CU_ASSERT_EQUAL((uintptr_t)ev->recv.ptr % 8, 0);
		CU_ASSERT(util_check(ev->recv.ptr, ev->recv.len, i));
		util_return(ev);
	}
	util_pair_close(&p);
}

/* Of all connections of an endpoint, whichever has the messages. */
static void
buffers_are_shared_by_all_connections(void)
{
	enum { N = 10 };
	uint32_t count = 100;
	cci_connection_t *conn[N][2];
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
	for (int i = 0; i < N; i++)
		util_pair_connect(&p, CCI_CONN_ATTR_RO, &conn[i][0], &conn[i][1]);
	for (uint32_t i = 0; i < count; i++)
		while (cci_send(conn[0][0], "one", 3, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)
			util_pair_turn(&p);
	CU_ASSERT(UTIL_UNTIL(&p, p.e[1].n_kept == count));
	UTIL_FOR_MS(&p, 5);
	CU_ASSERT_EQUAL(p.e[1].last, CCI_ENOBUFS);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(cci_send(conn[i][0], "all", 3, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
	UTIL_FOR_MS(&p, 20);
	CU_ASSERT_EQUAL(p.e[1].n_kept, count);
	for (int i = 0; i < N; i++)
		util_return(util_end_take(&p.e[1], CCI_EVENT_RECV));
	CU_ASSERT(UTIL_UNTIL(&p, p.e[1].n_kept == count));
	util_pair_close(&p);
}

const struct api_test cci_event_tests[] = {
	T(no_event_is_no_pointer),
	T(events_are_returned_in_any_order),
	T(an_event_is_returned_once),
	T(a_held_message_stays_as_it_is_and_blocks_nobody),
	T(all_messages_that_are_held_stay_whole),
	T(buffers_are_shared_by_all_connections),
	{NULL, NULL, NULL, NULL},
};

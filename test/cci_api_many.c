/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_many.c - ten thousand connections on one endpoint
 */
#include "cci_api_test.h"

#define N 10000

/* Bytes of this process in memory. */
static size_t
resident(void)
{
	unsigned long size, pages;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%lu %lu", &size, &pages) != 2)
		UTIL_DIE("/proc/self/statm");
	fclose(f);
	return pages * 4096;
}

/* As many as are asked for at a time that all requests of a batch have a buffer. */
static void
connect_all(struct pair *p, cci_connection_t *(*conn)[2])
{
	enum { BATCH = 50 };
	cci_event_t *ev;

	for (int i = 0; i < N; i += BATCH) {
		for (int k = i; k < i + BATCH; k++)
			CU_ASSERT_EQUAL_FATAL(cci_connect(p->e[0].ep, p->e[1].uri, NULL, 0,
				k % 2 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU, COOKIE(k), 0, NULL), CCI_SUCCESS);
		for (int k = 0; k < BATCH; k++) {
			ev = util_pair_wait(p, 1, CCI_EVENT_CONNECT_REQUEST);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
			util_return(ev);
		}
		for (int k = i; k < i + BATCH; k++) {
			ev = util_pair_wait(p, 0, CCI_EVENT_CONNECT);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_EQUAL_FATAL(ev->connect.status, CCI_SUCCESS);
			conn[(uintptr_t)ev->connect.context - 0x1000][0] = ev->connect.connection;
			util_return(ev);
			ev = util_pair_wait(p, 1, CCI_EVENT_ACCEPT);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			util_return(ev);
		}
	}
}

/* A message of all that have arrived may hold a buffer yet: its acknowledgement is another turn's. */
static void
send_number(struct pair *p, cci_connection_t *conn, uint32_t n)
{
	int rc;

	while ((rc = cci_send(conn, &n, sizeof(n), NULL, CCI_FLAG_SILENT)) == CCI_ENOBUFS)
		util_pair_turn(p);
	CU_ASSERT_EQUAL_FATAL(rc, CCI_SUCCESS);
}

/* The manual's goal: buffers do not grow with the connections; commperf times a look. */
static void
ten_thousand_connections_cost_little_and_all_work(void)
{
	static cci_connection_t *conn[N][2];
	size_t before, after;
	cci_event_t *ev;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	before = resident();
	connect_all(&p, conn);
	after = resident();
	for (uint32_t i = 0; i < N; i++) {
		const uint32_t k = i * 7919 % N;

		send_number(&p, conn[k][0], k);
		ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &k, sizeof(k)), 0);
		conn[k][1] = ev->recv.connection;
		util_return(ev);
	}
	for (uint32_t i = 0; i < N; i++) {
		send_number(&p, conn[i][1], i);
		ev = util_pair_wait(&p, 0, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_PTR_EQUAL(ev->recv.connection, conn[i][0]);
		util_return(ev);
	}
	printf("%zu bytes each side ... ", (after - before) / (2 * N));
#if !defined(__SANITIZE_ADDRESS__)
	CU_ASSERT(after - before < 2 * N * 1024);
#endif
	for (int i = 0; i < N; i += 3)
		CU_ASSERT_EQUAL_FATAL(cci_disconnect(conn[i][i % 2]), CCI_SUCCESS);
	util_pair_close(&p);
}

/* Nothing of a connection is left when both sides have closed it. */
static void
connections_made_and_closed_leave_no_memory_behind(void)
{
	size_t before = 0, after;
	struct pair p;

	util_pair_open(&p);
	for (int i = 0; i < 6000; i++) {
		cci_connection_t *conn[2];

		if (i == 2000)
			before = resident();
		util_pair_connect(&p, unicast[i % 3], &conn[0], &conn[1]);
		CU_ASSERT_EQUAL(cci_disconnect(conn[i % 2]), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_disconnect(conn[1 - i % 2]), CCI_SUCCESS);
	}
	after = resident();
#if !defined(__SANITIZE_ADDRESS__)
	CU_ASSERT(after < before + 4000 * 64);
#else
	(void)before, (void)after;
#endif
	CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0);
	util_pair_close(&p);
}

const struct api_test cci_many_tests[] = {
	T(ten_thousand_connections_cost_little_and_all_work),
	T(connections_made_and_closed_leave_no_memory_behind),
	{NULL, NULL, NULL, NULL},
};

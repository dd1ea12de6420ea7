/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_threads_test.c - several threads on one endpoint, which CCI allows any time
 *
 * Design notes
 * Only the public API is used. There is nothing here to measure: the test is for the
 * thread sanitizer, and otherwise that every message arrives once and whole, and that
 * every event goes to one thread.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <CUnit/Basic.h>

#include "cci_util.h"

#define N_THREADS 4
#define N_MSGS	  2000 /* of each thread */
#define N_RMAS	  100
#define RMA_LEN	  20000u

static struct pair p;
static _Atomic unsigned n_sent, n_received, n_bad, n_senders;
static _Atomic uint8_t seen[N_THREADS * N_MSGS];

struct thread {
	pthread_t id;
	unsigned i;
};

/* Take one event of an endpoint, whoever it is for. @return whether there was one */
static bool
take(int end)
{
	cci_event_t *ev;

	if (cci_get_event(p.e[end].ep, &ev) != CCI_SUCCESS)
		return false;
	if (ev->type == CCI_EVENT_RECV) {
		uint32_t n;

		memcpy(&n, ev->recv.ptr, sizeof(n));
		if (n >= N_THREADS * N_MSGS || atomic_fetch_add(&seen[n], 1) != 0 ||
			!util_check((const uint8_t *)ev->recv.ptr + 8, ev->recv.len - 8, n))
			atomic_fetch_add(&n_bad, 1);
		atomic_fetch_add(&n_received, 1);
	} else if (ev->type == CCI_EVENT_SEND) {
		if (ev->send.status != CCI_SUCCESS)
			atomic_fetch_add(&n_bad, 1);
		atomic_fetch_add(&n_sent, 1);
	}
	if (cci_return_event(ev) != CCI_SUCCESS)
		atomic_fetch_add(&n_bad, 1);
	return true;
}

static void *
send_and_take(void *arg)
{
	const struct thread *t = arg;
	_Alignas(8) uint8_t buf[300];

	for (unsigned k = 0; k < N_MSGS; k++) {
		uint32_t n = t->i * N_MSGS + k, len = 8 + n % 290;

		memset(buf, 0, 8);
		memcpy(buf, &n, sizeof(n));
		util_fill(buf + 8, len - 8, n);
		while (cci_send(p.e[0].conn, buf, len, NULL, 0) == CCI_ENOBUFS)
			take(0);
		if (k % 4 == 0)
			take(0);
	}
	atomic_fetch_sub(&n_senders, 1);
	while (atomic_load(&n_sent) < N_THREADS * N_MSGS)
		take(0);
	return NULL;
}

static void *
receive(void *arg)
{
	(void)arg;
	while (atomic_load(&n_received) < N_THREADS * N_MSGS || atomic_load(&n_senders) > 0)
		take(1);
	/* the last answers leave with these */
	while (atomic_load(&n_sent) < N_THREADS * N_MSGS)
		take(1);
	return NULL;
}

static void
run(struct thread *t, unsigned n, void *(*fn)(void *))
{
	for (unsigned i = 0; i < n; i++) {
		t[i].i = i;
		if (pthread_create(&t[i].id, NULL, fn, &t[i]) != 0)
			UTIL_DIE("no thread");
	}
}

static void
join(struct thread *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i].id, NULL);
}

static void
threads_share_both_endpoints(void)
{
	static const cci_conn_attribute_t attrs[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
	struct thread tx[N_THREADS], rx[2];

	for (int a = 0; a < 2; a++) {
		util_pair_open_with(&p, attrs[a]);
		memset(seen, 0, sizeof(seen));
		n_sent = n_received = n_bad = 0;
		n_senders = N_THREADS;
		run(tx, N_THREADS, send_and_take);
		run(rx, 2, receive);
		join(tx, N_THREADS);
		join(rx, 2);
		CU_ASSERT_EQUAL(n_received, N_THREADS * N_MSGS);
		CU_ASSERT_EQUAL(n_sent, N_THREADS * N_MSGS);
		CU_ASSERT_EQUAL(n_bad, 0);
		util_pair_close(&p);
	}
}

static uint8_t *rma_from, *rma_to;
static cci_rma_handle_t *rma_local, *rma_remote;

static void *
write_and_take(void *arg)
{
	const struct thread *t = arg;

	for (unsigned k = 0; k < N_RMAS; k++) {
		uint64_t at = (uint64_t)(t->i * N_RMAS + k) * RMA_LEN;

		while (cci_rma(p.e[0].conn, NULL, 0, rma_local, at, rma_remote, at, RMA_LEN, NULL,
			CCI_FLAG_WRITE) == CCI_ENOBUFS)
			take(0);
		take(0);
	}
	while (atomic_load(&n_sent) < N_THREADS * N_RMAS)
		take(0);
	return NULL;
}

static void *
look_on(void *arg)
{
	(void)arg;
	while (atomic_load(&n_sent) < N_THREADS * N_RMAS)
		take(1);
	return NULL;
}

static void
threads_write_over_one_connection(void)
{
	const size_t len = (size_t)N_THREADS * N_RMAS * RMA_LEN;
	struct thread tx[N_THREADS], rx[1];

	util_pair_open_with(&p, CCI_CONN_ATTR_RU);
	rma_from = malloc(len);
	rma_to = calloc(1, len);
	util_fill(rma_from, len, 3);
	UTIL_OK(cci_rma_register(p.e[0].ep, rma_from, len, 0, &rma_local));
	UTIL_OK(cci_rma_register(p.e[1].ep, rma_to, len, CCI_FLAG_WRITE, &rma_remote));
	n_sent = n_bad = 0;
	run(tx, N_THREADS, write_and_take);
	run(rx, 1, look_on);
	join(tx, N_THREADS);
	join(rx, 1);
	CU_ASSERT_EQUAL(n_bad, 0);
	UTIL_OK(cci_rma_deregister(p.e[1].ep, rma_remote)); /* behind whoever wrote there */
	CU_ASSERT(util_check(rma_to, len, 3));
	util_pair_close(&p);
	free(rma_from);
	free(rma_to);
}

/* Each has endpoints of its own and talks to itself; only start and end are shared. */
static void *
live_alone(void *arg)
{
	(void)arg;
	for (int k = 0; k < 10; k++) {
		struct pair own;

		util_pair_open_with(&own, CCI_CONN_ATTR_RO);
		for (uint32_t i = 0; i < 100; i++) {
			cci_event_t *ev;

			UTIL_OK(cci_send(own.e[0].conn, &i, sizeof(i), NULL, CCI_FLAG_SILENT));
			ev = util_pair_wait(&own, 1, CCI_EVENT_RECV);
			if (ev == NULL || memcmp(ev->recv.ptr, &i, sizeof(i)) != 0)
				UTIL_DIE("a message is lost or wrong");
			util_return(ev);
		}
		util_pair_close(&own);
	}
	return NULL;
}

static void
threads_have_endpoints_of_their_own(void)
{
	struct thread t[N_THREADS];

	run(t, N_THREADS, live_alone);
	join(t, N_THREADS);
}

/* Connections come and go in several threads, on one endpoint. */
static void *
come_and_go(void *arg)
{
	const struct thread *t = arg;

	for (int k = 0; k < 50; k++) {
		if (cci_connect(p.e[0].ep, p.e[1].uri, &k, sizeof(k), CCI_CONN_ATTR_RU,
			(void *)(uintptr_t)t->i, 0, NULL) != CCI_SUCCESS)
			atomic_fetch_add(&n_bad, 1);
	}
	return NULL;
}

static void *
answer(void *arg)
{
	const struct thread *t = arg;
	cci_event_t *ev;

	while (atomic_load(&n_sent) < N_THREADS * 50) {
		if (cci_get_event(p.e[t->i % 2].ep, &ev) != CCI_SUCCESS)
			continue;
		if (ev->type == CCI_EVENT_CONNECT_REQUEST)
			UTIL_OK(cci_accept(ev, NULL));
		if (ev->type == CCI_EVENT_CONNECT) {
			UTIL_OK(cci_disconnect(ev->connect.connection));
			atomic_fetch_add(&n_sent, 1);
		}
		UTIL_OK(cci_return_event(ev));
	}
	return NULL;
}

static void
threads_connect_and_disconnect(void)
{
	struct thread ask[N_THREADS], serve[4];

	util_pair_open(&p);
	n_sent = n_bad = 0;
	run(serve, 4, answer);
	run(ask, N_THREADS, come_and_go);
	join(ask, N_THREADS);
	join(serve, 4);
	CU_ASSERT_EQUAL(n_bad, 0);
	util_pair_close(&p);
}

static _Atomic int blocked_status;

static void *
block(void *arg)
{
	(void)arg;
	atomic_store(&blocked_status, cci_send(p.e[0].conn, "blocked", 7, NULL, CCI_FLAG_BLOCKING));
	return NULL;
}

/* It waits for room when its connection ends; another one gets the same memory. */
static void
a_blocked_send_goes_by_no_other_connection(void)
{
	cci_connection_t *ended, *conn[2], *held[2];
	const uint32_t one = 1;
	struct thread t;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &held[0], &held[1]);
	ended = p.e[0].conn;
	UTIL_OK(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &one));
	UTIL_OK(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &one));
	UTIL_OK(cci_send(held[0], "held", 4, NULL, CCI_FLAG_SILENT));
	CU_ASSERT_PTR_NOT_NULL(util_pair_wait(&p, 1, CCI_EVENT_RECV));
	UTIL_FOR_MS(&p, 5);
	UTIL_OK(cci_send(held[0], "waits", 5, NULL, CCI_FLAG_SILENT)); /* without a buffer there */
	blocked_status = -1;
	run(&t, 1, block);
	UTIL_FOR_MS(&p, 20);
	CU_ASSERT_EQUAL(blocked_status, -1);
	UTIL_OK(cci_disconnect(ended));
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &conn[0], &conn[1]);
	UTIL_OK(cci_disconnect(held[0])); /* now there is room */
	(void)UTIL_UNTIL(&p, blocked_status != -1);
	CU_ASSERT_EQUAL(blocked_status, CCI_ERR_DISCONNECTED);
	if (blocked_status == -1)
		UTIL_OK(cci_disconnect(conn[0]));
	join(&t, 1);
	p.e[0].conn = NULL;
	util_pair_close(&p);
}

int
main(void)
{
	CU_pSuite suite;
	unsigned n_failed;

	alarm(280);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite("threads", NULL, NULL);
	CU_add_test(suite, "threads_share_both_endpoints", threads_share_both_endpoints);
	CU_add_test(suite, "threads_write_over_one_connection", threads_write_over_one_connection);
	CU_add_test(suite, "threads_have_endpoints_of_their_own", threads_have_endpoints_of_their_own);
	CU_add_test(suite, "threads_connect_and_disconnect", threads_connect_and_disconnect);
	CU_add_test(suite, "a_blocked_send_goes_by_no_other_connection",
		a_blocked_send_goes_by_no_other_connection);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	n_failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return n_failed != 0;
}

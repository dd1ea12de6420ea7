/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_ep.c - endpoints, their URIs and their OS handles
 */
#include <ctype.h>
#include <poll.h>

#include "cci_api_test.h"

static bool
readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0 && (p.revents & POLLIN) != 0;
}

static void
create_wants_a_place_for_the_endpoint(void)
{
	cci_os_handle_t fd;
	uint32_t caps;

	CU_ASSERT_EQUAL_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_create_endpoint(NULL, 0, NULL, &fd), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_create_endpoint_at(NULL, "here", 0, NULL, &fd), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_destroy_endpoint(NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

/* Programs pass NULL when they only poll, whatever the manual says. */
static void
an_endpoint_needs_no_os_handle(void)
{
	struct end e;

	util_end_open(&e, NULL, false);
	CU_ASSERT_PTR_NOT_NULL(e.ep->device);
	CU_ASSERT_EQUAL(cci_arm_os_handle(e.ep, 0), CCI_EINVAL);
	util_end_close(&e);
}

static void
uris_are_short_plain_and_different(void)
{
	enum { N = 32 };
	struct end e[N];
	char *again;

	for (int i = 0; i < N; i++) {
		util_end_open(&e[i], NULL, false);
		CU_ASSERT(strlen(e[i].uri) < 200);
		CU_ASSERT_PTR_NOT_NULL(strstr(e[i].uri, "://"));
		for (const char *p = e[i].uri; *p != '\0'; p++)
			CU_ASSERT(isgraph((unsigned char)*p));
		for (int k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(e[i].uri, e[k].uri);
	}
	CU_ASSERT_EQUAL(cci_get_opt(e[0].ep, CCI_OPT_ENDPT_URI, &again), CCI_SUCCESS);
	CU_ASSERT_STRING_EQUAL(again, e[0].uri);
	free(again); /* it is the caller's */
	for (int i = 0; i < N; i++)
		util_end_close(&e[i]);
}

static void
a_service_makes_the_uri_known_beforehand(void)
{
	char uri[UTIL_URI_MAX];
	cci_endpoint_t *ep = NULL;
	struct end e;

	util_end_open(&e, "known-beforehand", false);
	strcpy(uri, e.uri);
	CU_ASSERT_EQUAL(cci_create_endpoint_at(NULL, "known-beforehand", 0, &ep, NULL), CCI_EBUSY);
	CU_ASSERT_PTR_NULL(ep);
	util_end_close(&e);
	util_end_open(&e, "known-beforehand", false);
	CU_ASSERT_STRING_EQUAL(uri, e.uri);
	util_end_close(&e);
}

static void
what_cannot_be_a_service_is_refused(void)
{
	char longest[4096];
	const char *bad[] = {NULL, "", "../../etc/passwd", "a/b", "with space", "line\nbreak", longest};
	cci_endpoint_t *ep = NULL;
	uint32_t caps;

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_EQUAL_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_NOT_EQUAL(cci_create_endpoint_at(NULL, bad[i], 0, &ep, NULL), CCI_SUCCESS);
		CU_ASSERT_PTR_NULL(ep);
	}
	CU_ASSERT_EQUAL(cci_create_endpoint_at(NULL, NULL, 0, &ep, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

/* Ask for a connection that cannot be. @return the status of either the call or the event */
static int
connect_in_vain(struct end *e, const char *uri)
{
	const struct timeval soon = {.tv_usec = 300000};
	cci_event_t *ev;
	int rc = cci_connect(e->ep, uri, NULL, 0, CCI_CONN_ATTR_RO, COOKIE(1), 0, &soon);

	if (rc != CCI_SUCCESS)
		return rc;
	ev = end_wait(e, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	rc = ev->connect.status;
	CU_ASSERT_PTR_EQUAL(ev->connect.context, COOKIE(1));
	CU_ASSERT_PTR_NULL(ev->connect.connection);
	util_return(ev);
	return rc;
}

static void
what_is_no_uri_is_refused(void)
{
	char longest[8192];
	const char *bad[] = {"", "x", "://", "shm", "shm:", "shm://", "shm://..", "shm:///dev/null",
		"shm://../../../../etc/passwd", "ip://127.0.0.1:80", "verbs://1.2.3.4:5", "\n", "shm://%n%n",
		longest};
	struct end e;

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "shm://", 6);
	util_end_open(&e, NULL, false);
	CU_ASSERT_EQUAL(cci_connect(e.ep, NULL, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_NOT_EQUAL(connect_in_vain(&e, bad[i]), CCI_SUCCESS);
	util_end_close(&e);
}

static void
a_uri_with_a_letter_changed_leads_nowhere(void)
{
	char uri[UTIL_URI_MAX];
	struct end a, b;

	util_end_open(&a, NULL, false);
	util_end_open(&b, NULL, false);
	for (size_t i = 0; i < strlen(b.uri); i++) {
		strcpy(uri, b.uri);
		uri[i] = uri[i] == 'q' ? 'r' : 'q';
		CU_ASSERT_NOT_EQUAL(connect_in_vain(&a, uri), CCI_SUCCESS);
		util_end_poll(&b);
		CU_ASSERT_EQUAL(util_end_count(&b, CCI_EVENT_CONNECT_REQUEST), 0);
	}
	util_end_close(&a);
	util_end_close(&b);
}

static void
the_uri_of_an_ended_endpoint_leads_nowhere(void)
{
	char uri[UTIL_URI_MAX];
	struct end a, b;

	util_end_open(&a, NULL, false);
	util_end_open(&b, NULL, false);
	strcpy(uri, b.uri);
	util_end_close(&b);
	CU_ASSERT_NOT_EQUAL(connect_in_vain(&a, uri), CCI_SUCCESS);
	util_end_close(&a);
}

static void
destroy_takes_all_that_is_open_with_it(void)
{
	static uint8_t mem[4096];
	cci_rma_handle_t *handle;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_rma_register(p.e[1].ep, mem, sizeof(mem), CCI_FLAG_WRITE, &handle),
		CCI_SUCCESS);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "held", 4, NULL, 0), CCI_SUCCESS);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == 20));
	CU_ASSERT_EQUAL(cci_connect(p.e[1].ep, p.e[0].uri, NULL, 0, CCI_CONN_ATTR_RU, NULL, 0, NULL),
		CCI_SUCCESS);
	/* the events, connections and the registration are still there */
	util_end_close(&p.e[1]);
	util_end_close(&p.e[0]);
}

static void
many_endpoints_can_be_open(void)
{
	enum { N = 64 };
	static struct end e[N];
	cci_event_t *ev;

	for (int i = 0; i < N; i++)
		util_end_open(&e[i], NULL, false);
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL_FATAL(cci_connect(e[i].ep, e[(i + 1) % N].uri, NULL, 0,
			CCI_CONN_ATTR_RU, COOKIE(i), 0, NULL), CCI_SUCCESS);
		ev = end_wait_from(&e[(i + 1) % N], &e[i], CCI_EVENT_CONNECT_REQUEST);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(cci_accept(ev, NULL), CCI_SUCCESS);
		util_return(ev);
		ev = end_wait_from(&e[i], &e[(i + 1) % N], CCI_EVENT_CONNECT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->connect.status, CCI_SUCCESS);
		util_return(ev);
	}
	for (int i = 0; i < N; i++)
		util_end_close(&e[i]);
}

/* A program that waits before every single event must not miss one. */
static void
the_handle_is_readable_while_there_is_an_event(void)
{
	enum { N = 50 }; /* fewer than a device takes in one turn of the sender */
	cci_event_t *ev;
	struct pair p;
	int n = 0;

	util_end_open(&p.e[0], NULL, false);
	util_end_open(&p.e[1], NULL, true);
	CU_ASSERT(p.e[1].fd >= 0);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &i, sizeof(i), NULL, CCI_FLAG_SILENT),
			CCI_SUCCESS);
	util_end_poll(&p.e[0]);
	while (n < N) {
		if (!readable(p.e[1].fd, 5000))
			break;
		if (cci_get_event(p.e[1].ep, &ev) != CCI_SUCCESS)
			continue;
		if (ev->type == CCI_EVENT_RECV) {
			CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &n, sizeof(n)), 0);
			n++;
		}
		util_return(ev);
	}
	CU_ASSERT_EQUAL(n, N);
	util_pair_close(&p);
}

static void
an_armed_handle_wakes_for_what_comes_later(void)
{
	struct child c;
	cci_event_t *ev;
	struct end e;
	int n = 0;

	child_open(&c, NULL);
	util_end_open(&e, NULL, true);
	e.conn = child_connect(&e, &c, CCI_CONN_ATTR_RO);
	for (int i = 0; i < 20; i++) {
		const struct child_msg msg = {CHILD_ECHOES, i};
		bool got = false;

		CU_ASSERT_EQUAL(cci_send(e.conn, &msg, sizeof(msg), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		while (!got) {
			CU_ASSERT_EQUAL_FATAL(cci_arm_os_handle(e.ep, 0), CCI_SUCCESS);
			CU_ASSERT_FATAL(readable(e.fd, 5000));
			while (cci_get_event(e.ep, &ev) == CCI_SUCCESS) {
				got |= ev->type == CCI_EVENT_RECV;
				util_return(ev);
			}
		}
		n++;
	}
	CU_ASSERT_EQUAL(n, 20);
	util_end_close(&e);
	child_close(&c);
}

/* Waking without cause is allowed now and then, but not for ever. */
static void
a_drained_and_armed_handle_becomes_quiet(void)
{
	unsigned n_woken = 0;
	struct end e;

	util_end_open(&e, NULL, true);
	for (int i = 0; i < 20; i++) {
		util_end_poll(&e);
		CU_ASSERT_EQUAL(cci_arm_os_handle(e.ep, 0), CCI_SUCCESS);
		n_woken += readable(e.fd, 10);
	}
	CU_ASSERT(n_woken < 10);
	CU_ASSERT_EQUAL(cci_arm_os_handle(NULL, 0), CCI_EINVAL);
	util_end_close(&e);
}

/* Pings and their answers wake who sleeps, but bring no event: it sleeps again at once. */
static void
a_wake_up_without_an_event_is_one(void)
{
	enum { PERIOD_MS = 5, QUIET = 60 };
	uint32_t us = PERIOD_MS * 1000;
	unsigned n_woken = 0, n_quiet = 0;
	uint64_t start, n_periods;
	struct pair p;

	util_end_open(&p.e[0], NULL, true);
	util_end_open(&p.e[1], NULL, false);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &us), CCI_SUCCESS);
	for (int i = 0; i < 100; i++)
		util_pair_turn(&p);
	start = util_now_ns() / 1000000;
	while (n_quiet < QUIET) {
		cci_event_t *ev;

		if (!readable(p.e[0].fd, 1)) {
			n_quiet++;
		} else {
			n_woken++;
			CU_ASSERT_EQUAL(cci_get_event(p.e[0].ep, &ev), CCI_EAGAIN);
		}
		util_end_poll(&p.e[1]);
	}
	n_periods = (util_now_ns() / 1000000 - start) / PERIOD_MS + 2;
	CU_ASSERT(n_woken > 0);
	CU_ASSERT(n_woken < 12 * n_periods);
	util_pair_close(&p);
}

/* Nobody reads it, and nothing wedges. */
static void
a_handle_may_be_ignored(void)
{
	struct pair p;
	unsigned n = 0;

	util_end_open(&p.e[0], NULL, true);
	util_end_open(&p.e[1], NULL, true);
	util_pair_connect(&p, CCI_CONN_ATTR_RU, &p.e[0].conn, &p.e[1].conn);
	for (int i = 0; i < 20000; i++) {
		cci_event_t *ev;

		while (cci_send(p.e[0].conn, "12345678", 8, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)
			util_pair_turn(&p);
		util_end_poll(&p.e[1]);
		while ((ev = util_end_take(&p.e[1], CCI_EVENT_RECV)) != NULL) {
			util_return(ev);
			n++;
		}
	}
	while (n < 20000) {
		cci_event_t *ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);

		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		util_return(ev);
		n++;
	}
	util_pair_close(&p);
}

const struct api_test cci_ep_tests[] = {
	T(create_wants_a_place_for_the_endpoint),
	T(an_endpoint_needs_no_os_handle),
	T(uris_are_short_plain_and_different),
	T_NEEDS(a_service_makes_the_uri_known_beforehand, lacks_names),
	T(what_cannot_be_a_service_is_refused),
	T(what_is_no_uri_is_refused),
	T(a_uri_with_a_letter_changed_leads_nowhere),
	T(the_uri_of_an_ended_endpoint_leads_nowhere),
	T(destroy_takes_all_that_is_open_with_it),
	T(many_endpoints_can_be_open),
	T(the_handle_is_readable_while_there_is_an_event),
	T(an_armed_handle_wakes_for_what_comes_later),
	T(a_drained_and_armed_handle_becomes_quiet),
	T(a_wake_up_without_an_event_is_one),
	T(a_handle_may_be_ignored),
	{NULL, NULL, NULL, NULL},
};
